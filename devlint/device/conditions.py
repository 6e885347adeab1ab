"""Path conditions: what decides on which of several devices a value is.

Some are asked by the program (:class:`Available`, :class:`Wanted`, :class:`Predicate`, :class:`Conjunction`).  The
others tell apart what the interpreter joins: rounds of a loop, items of a list, paths that lead to one place.
Conditions are hash-consed: equal ones are one object, so that comparing and hashing them costs next to nothing.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar
from weakref import ref

_instances: dict[tuple[object, ...], _Reference] = {}


class Topic(enum.Enum):
    """What a test asks about, as far as that matters."""

    COUNT = enum.auto()
    """How many accelerators there are."""
    PRESENCE = enum.auto()
    """Whether there is an accelerator: it calls something that says so by its name."""
    BACKEND = enum.auto()
    """Whether processes talk through NCCL, the backend of CUDA."""
    PLACE = enum.auto()
    """Whether a tensor is on CUDA."""
    MAIN = enum.auto()
    """Whether the file is run as a script."""
    VERSION = enum.auto()
    """Which version of torch this is, or what it has."""


class _Reference(ref["Condition"]):
    """Lets go of a condition that nobody else has; one of :mod:`weakref` would be made in Python."""

    __slots__ = ("made_of",)
    made_of: tuple[object, ...]


def _forget(gone: ref[Condition]) -> None:
    if isinstance(gone, _Reference) and _instances.get(gone.made_of) is gone:
        del _instances[gone.made_of]


class _HashConsed(type):
    """Makes one object of all instances of a class that are made of the same."""

    def __call__(cls, *parts: object) -> Any:
        made_of = (cls, *parts)
        reference = _instances.get(made_of)
        known = None if reference is None else reference()
        if known is None:
            known = super().__call__(*parts)
            _instances[made_of] = reference = _Reference(known, _forget)
            reference.made_of = made_of
        return known


class Condition(metaclass=_HashConsed):
    """What decides between two devices; it never changes.

    ``text`` tells it from every other, ``spelled`` is what of that the program spells, ``subject`` what it is a
    condition of.  ``volatile`` says that it hangs on what was bound, or computed, on the way; ``necessary`` that
    nothing is on an accelerator where it does not hold.
    """

    __slots__ = ("__weakref__", "necessary", "spelled", "subject", "text", "topics", "volatile")
    asked: ClassVar[bool] = False
    """Whether the program asks it, so that a test further down can be the same condition."""

    def __init__(
        self,
        text: str,
        spelled: str = "",
        topics: tuple[Topic, ...] = (),
        volatile: bool = False,
        subject: str = "",
        necessary: bool = False,
    ) -> None:
        self.text = text
        self.spelled = spelled
        self.topics = topics
        self.volatile = volatile
        self.subject = subject or text
        self.necessary = necessary

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.text}>"

    def implies(self, that: Condition) -> bool:
        """Whether ``that`` holds wherever this does."""
        return self is that


class Truth(Condition):
    """What always holds, or never does."""

    __slots__ = ("value",)
    asked = True

    def __init__(self, value: bool) -> None:
        super().__init__(str(value))
        self.value = value


class Available(Condition):
    """An accelerator is available, as ``torch.cuda.is_available()`` and its relatives say."""

    __slots__ = ()
    asked = True

    def __init__(self) -> None:
        super().__init__("an accelerator is available", "cuda.is_available", necessary=True)


class Predicate(Condition):
    """A test in the program: ``text`` is the expression, in which names are told apart by what they are bound to.

    ``subject`` is the left side of a comparison, ``name`` the name that it begins with, where that is bound to a value
    of its own.  A tensor that is not on CUDA is taken to be on the CPU.
    """

    __slots__ = ("name",)
    asked = True

    def __init__(
        self, text: str, subject: str = "", name: str = "", topics: tuple[Topic, ...] = (), volatile: bool = False
    ) -> None:
        super().__init__(text, text, topics, volatile, subject, necessary=Topic.PLACE in topics)
        self.name = name


class TypePredicate(Predicate):
    """A predicate that tells whether the value of that key is of one of some ``classes``."""

    __slots__ = ("classes", "value")

    def __init__(self, plain: Predicate, value: str, classes: frozenset[str]) -> None:
        super().__init__(plain.text, "", plain.name, plain.topics, plain.volatile)
        self.value = value
        self.classes = classes


class Wanted(Condition):
    """An accelerator is to be used, since a test holds, or fails: ``use_cuda``, ``not args.cpu``."""

    __slots__ = ()
    asked = True

    def __init__(self, test: Predicate) -> None:
        text = f"wanted {test.text}"
        super().__init__(text, test.text, test.topics, test.volatile, test.subject, necessary=True)


class Conjunction(Condition):
    """Each of its parts holds, or fails where it stands with ``False``."""

    __slots__ = ("parts",)
    asked = True

    def __init__(self, parts: tuple[tuple[Condition, bool], ...]) -> None:
        topics = dict.fromkeys(topic for part, _ in parts for topic in part.topics)
        text = " and ".join(part.text if holds else f"not {part.text}" for part, holds in parts)
        super().__init__(text, text, tuple(topics), any(part.volatile for part, _ in parts), parts[0][0].subject)
        self.parts = parts

    def implies(self, that: Condition) -> bool:
        """Its parts hold where it does."""
        return self is that or (that, True) in self.parts

    def bare(self, that: Condition) -> bool | None:
        """The answer to ``that`` with which nothing is on an accelerator where this fails; ``None`` for neither."""
        rest = [part for part in self.parts if part[0] is not that]
        if len(rest) == len(self.parts) or not all(holds and part.necessary for part, holds in rest):
            return None
        return (that, True) in self.parts


class LoopRound(Condition):
    """More than ``number`` rounds of a loop are over."""

    __slots__ = ("loop", "number")
    asked = True

    def __init__(self, loop: str, number: int = 0) -> None:
        super().__init__(f"loop {loop}{' again' * number}")
        self.loop = loop
        self.number = number

    def implies(self, that: Condition) -> bool:
        """A later round comes after the ones before."""
        return isinstance(that, LoopRound) and that.loop == self.loop and that.number <= self.number


class Items(Condition):
    """Tells apart the items of a list that was filled from several sources."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("one of several items")


class EachItem(Condition):
    """Tells apart the items that the rounds of a loop in some ``line`` take out of such a list."""

    __slots__ = ()

    def __init__(self, line: int) -> None:
        super().__init__(f"each of several items {line}")


class Returned(Condition):
    """A function gives one of its results, that of an earlier ``return``, and not that of a later one."""

    __slots__ = ()

    def __init__(self, position: int, function: str) -> None:
        super().__init__(f"return {position} of {function}", function)


class PathTaken(Condition):
    """One of several paths was taken: into a handler, out of a loop, past an operand; ``at`` says which by where."""

    __slots__ = ()

    def __init__(self, construct: str, at: str, position: int = 0) -> None:
        super().__init__(f"{construct} {position} at {at}")


AVAILABLE = Available()
ITEMS = Items()
ALWAYS = Truth(True)
NEVER = Truth(False)
