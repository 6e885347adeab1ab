"""What devlint tells its user: a rule's verdict on one place in the code."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from devlint.immutable import immutable

ALSO = "also here"
"""How a finding labels the place of another one, for which it stands, too."""
OF_RULE = "of {}"
"""The design of what is a hint: all those of a rule, by its code, are one."""
OF_COPIES = "in copies of the class"
"""What findings have in common that differ in the name of the class that they are about."""
ENOUGH_STEPS = 3
"""What was seen in fewer steps of a run may be a matter of its beginning."""


class Severity(enum.IntEnum):
    """One axis: does it break, does it cost, or is it only a hint."""

    INFO = 1
    """A hint; never fails a run by default."""
    WARNING = 2
    """Very probably a bug or a real cost."""
    ERROR = 3
    """Raises, or computes garbage, on an accelerator."""

    def __str__(self) -> str:
        return self.name.lower()


class Applicability(str, enum.Enum):
    """Whether a fix keeps the program's results."""

    SAFE = "safe"
    """The result is identical on every device, apart from the removed defect."""
    UNSAFE = "unsafe"
    """Nearly always right; a person should look at it."""


class Failure(str):
    """One line that says what devlint could not do; ``path`` is the file it is about, empty where that is none."""

    __slots__ = ("path",)

    path: str

    def __new__(cls, path: str, text: str) -> Failure:
        """The line begins with the path, or with its notation where it has no characters that could be shown."""
        line = super().__new__(cls, f"{path or repr(path)}: {text}")
        line.path = path
        return line


def failed_file(line: str) -> str:
    """The file that a line about a failure is about, empty where it is about none."""
    return line.path if isinstance(line, Failure) else ""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of source text: rows and columns count characters from 1, the end is exclusive.

    In a notebook they are those of a ``cell``, which counts from 1, too; elsewhere it is 0.
    """

    row: int
    column: int
    end_row: int
    end_column: int
    cell: int = 0

    @property
    def start(self) -> tuple[int, int, int]:
        """Where it begins, to be compared with others."""
        return self.cell, self.row, self.column

    @property
    def end(self) -> tuple[int, int, int]:
        """Where it ends."""
        return self.cell, self.end_row, self.end_column


@immutable(frozen=True, slots=True)
class Place:
    """A labelled place which helps to explain a finding; ``filename`` is empty in the finding's own file."""

    span: Span
    label: str
    filename: str = ""


def elsewhere(places: Iterable[Place], filename: str, change: Callable[[Place], Place]) -> tuple[Place, ...]:
    """Places with others for those that are in the file of that name itself."""
    return tuple(change(place) if place.filename in ("", filename) else place for place in places)


@immutable(frozen=True, slots=True)
class Edit:
    """Replace the text of ``span`` by ``content``."""

    span: Span
    content: str


@immutable(frozen=True, slots=True)
class Fix:
    """Edits that remove the defect, and whether they may be applied unasked."""

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability

    def overlaps(self, other: Fix) -> bool:
        """Whether different edits of the two touch the same text."""
        pairs = ((one.span, two.span) for one in self.edits for two in other.edits if one != two)
        return any(one.start < two.end and two.start < one.end for one, two in pairs)


@immutable(frozen=True, slots=True)
class Context:
    """What surrounds a finding, and tells it from others when lines have moved.

    ``scope`` is the qualified name of the definition around it, ``text`` its code without the layout, ``rows`` are the
    first and the last row of its statement.
    """

    scope: str
    text: str
    rows: tuple[int, int]


@immutable(frozen=True, slots=True)
class Measurement:
    """What an audit saw at a site, summed over all processes.

    ``steps`` are the training and evaluation steps in which it happened, ``per_step`` the calls of a median training
    step of one process, or of an average evaluation step where it did not happen in training.  ``seconds`` is how long
    the host was blocked, ``None`` in a simulated run.  ``repeats`` counts copies of something that had been copied
    there before and had not changed since.
    """

    calls: int
    bytes: int = 0
    seconds: float | None = None
    steps: int = 0
    per_step: float = 0.0
    bytes_per_step: float = 0.0
    repeats: int = 0
    ranks: tuple[int, ...] = ()

    @property
    def each_step(self) -> bool:
        """Whether it happened at every step, in enough of them to say so."""
        return self.per_step >= 1 and self.steps >= ENOUGH_STEPS


@immutable(frozen=True, slots=True)
class Evidence:
    """What a run says of a finding: confirmed, contradicted, not reached or undecided; why, and what it cost."""

    verdict: str
    note: str = ""
    measured: Measurement | None = None


@immutable(frozen=True, slots=True)
class Finding:
    """A rule's verdict on one place, with the story that led to it.

    ``label`` stands under the underlined code, ``related`` are the places that led there, ``help`` says what to do.
    ``context`` is None where the file has no syntax tree, so that the finding speaks of all of it.  ``asked`` says that
    it is only for those who select the rule themselves.  ``evidence`` is what a run says of it, if one was asked.
    Findings of a rule with one ``cause`` in a file, if that is not empty, are told as one, and so are those of one
    ``design`` in all files, or about copies of a class, if they have ``shared`` what they say of it; those of the rules
    that it ``covers`` have nothing to add about the same place.
    ``selected`` says that somebody has asked for its rule, ``implied`` that it rests on the CPU being the default.
    ``unproven`` is how grave a hint is if what it was inferred from holds, as a run can show; None where it is no more.
    ``minor`` says that it costs little: several of its rule may add up.
    """

    code: str
    name: str
    severity: Severity
    message: str
    filename: str
    span: Span
    label: str = ""
    related: tuple[Place, ...] = ()
    help: str = ""
    fix: Fix | None = field(default=None)
    context: Context | None = field(default=None, compare=False, repr=False)
    asked: bool = field(default=False, compare=False, repr=False)
    evidence: Evidence | None = field(default=None, compare=False, repr=False)
    cause: str = field(default="", compare=False, repr=False)
    design: str = field(default="", compare=False, repr=False)
    shared: str = field(default="", compare=False, repr=False)
    covers: tuple[str, ...] = field(default=(), compare=False, repr=False)
    selected: bool = field(default=False, compare=False, repr=False)
    implied: bool = field(default=False, compare=False, repr=False)
    unproven: Severity | None = field(default=None, compare=False, repr=False)
    minor: bool = field(default=False, compare=False, repr=False)

    @property
    def sort_key(self) -> tuple[str, int, Span, str]:
        """Order of output: by file, then place, then code."""
        return (self.filename, self.span.cell, self.span, self.code)


def told(findings: Iterable[Finding]) -> list[Finding]:
    """Those that are for everybody, and not only for those who select their rules."""
    return [finding for finding in findings if not finding.asked]


@immutable(frozen=True, slots=True)
class Answer:
    """What is known of one name at one place.

    ``kind`` is what it is ("tensor", "module", "device", ...), ``devices`` where it can be: "cpu", "cuda:1", what the
    code calls it, or "module" for wherever the module is that it belongs to. ``message`` says both in a sentence, or
    that nothing is known.  ``story`` are the places that led there.  ``caller`` is the function whose call says so,
    empty where the code itself does; ``observed`` is where a run had it, in a sentence.
    """

    name: str
    filename: str
    span: Span
    message: str
    kind: str = ""
    devices: tuple[str, ...] = ()
    certain: bool = False
    story: tuple[Place, ...] = ()
    caller: str = ""
    observed: str = ""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return bool(self.kind or self.devices or self.observed)


def named(filename: str, cell: int) -> str:
    """How a file is called where people read it: with the cell, if it is a notebook."""
    return f"{filename}:cell {cell}" if cell else filename
