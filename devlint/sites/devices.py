"""Sites where code names, chooses, compares or is given a device."""

from __future__ import annotations

import ast
from dataclasses import field

from devlint.immutable import immutable
from devlint.sites.base import Site, Step


@immutable(frozen=True, slots=True)
class ApiCall(Site):
    """A call of a named torch function.

    ``arguments`` maps keywords to nodes, ``positional`` counts the others, ``open`` says that ``*`` or ``**`` may add
    more.  ``purpose`` says what the result is for, where that is seen: "state dict", "dataset", or "state of numbers"
    where it is restored by a class of a file that knows no tensors.
    """

    function: str
    arguments: dict[str, ast.AST] = field(hash=False)
    positional: int
    open: bool
    purpose: str = ""


@immutable(frozen=True, slots=True)
class Mention(Site):
    """A name of torch, of those in :mod:`devlint.torch_api`, that the code speaks of.

    ``path`` is the canonical name that is meant, ``node`` the name in the code (or the alias in an import), ``call``
    its call.  ``use`` is "import", "decorator", "test" (its truth is asked for), "switch" (the same of an argument,
    which may have to be a bool), "comparison" (also ``isinstance``), "conversion" (the type of tensors that ``call``
    converts to), or empty for a plain call or reference.  ``shim`` says that the code is for another torch: an
    ImportError or AttributeError is handled, a version or ``hasattr`` decides.
    """

    path: str
    call: ast.Call | None = None
    use: str = ""
    shim: bool = False


@immutable(frozen=True, slots=True)
class Literal(Site):
    """A string that names an accelerator, where it decides about a placement.

    ``role`` is what it is passed to: ".to", "device", "torch.device", "map_location", "autocast", "parameter", ...;
    "argument" where nobody knows what becomes of it, "handed" where a function of the file places something by it,
    "option" where it is the default of an option of a command line.
    "rank" is a device of CUDA whose index is computed, "autocast off" one that is left out of mixed precision.
    ``revised`` says that it overrides the CPU, on purpose, that it is itself replaced further down where CUDA is
    missing, or that the other side of the branch takes the CPU instead.
    """

    text: str
    role: str
    revised: bool = False


@immutable(frozen=True, slots=True)
class Numbered(Site):
    """A GPU chosen by a number in the code.

    ``spelled`` is how, ``others`` are the other numbers that the same file places something on.
    """

    index: int
    spelled: str
    others: tuple[int, ...] = ()


@immutable(frozen=True, slots=True)
class Alternative(Site):
    """A choice between CUDA and the CPU, and nothing else.

    ``whole`` is the ``torch.device(...)`` around it, ``None`` where the choice is between two strings.
    """

    whole: ast.Call | None = None


@immutable(frozen=True, slots=True)
class Current(Site):
    """The current accelerator, asked for without looking whether there is one.

    ``use`` is where it is taken for granted; ``read`` says that an attribute is read there, which ``None`` has not;
    ``asked`` that the call itself asked for an accelerator which is there.
    """

    use: Step
    read: bool = False
    asked: bool = False


@immutable(frozen=True, slots=True)
class Visible(Site):
    """The variable ``name``, which hides GPUs from the process, is set.

    ``after`` is the use of CUDA that came before, ``imported`` the import of torch; ``spawns`` says that the file
    starts other processes, for which the variable may be meant.
    """

    name: str
    after: Step | None = None
    imported: Step | None = None
    spawns: bool = False


@immutable(frozen=True, slots=True)
class DeviceTest(Site):
    """A comparison of a ``torch.device`` that has one outcome, whatever the device is, or that raises.

    ``subject`` is the operand that is proven to be a ``torch.device``, ``other`` what it is compared with.  ``problem``
    is one of "text" (with strings, or one of several), "membership" (a string is looked for in it), "identity"
    (``is``), "index": a tensor's device, which has an index, with an accelerator named without one, "name": with a
    word that is none of those that the code chooses from, or "type": ``subject``, a tensor or the name of its type, is
    asked whether it is ``other``, a type of the CPU, which has that outcome on an accelerator.
    """

    subject: ast.expr
    other: ast.expr
    operator: str
    problem: str


@immutable(frozen=True, slots=True)
class DeviceArgument(Site):
    """An argument where torch takes a device, or takes nothing, with which the call raises.

    ``role`` is what it is passed to: ".to", ".cuda", "device", "torch.device", "map_location", "autocast", ...
    ``problem`` is one of "name" (no device of torch is called so), "range" (the index is beyond what torch can count),
    "bool", "number", "none", "module" (such as ``torch.cuda``), "scope" (``torch.cuda.device(0)``), "index"
    (``x.get_device()``, which is -1 on the CPU), "object" (a ``torch.device`` where its type is taken), "legacy" (an
    accelerator for a constructor of CPU tensors), "position" (a device that has to be named), "unknown" (the method has
    no such parameter), "second" (the parameter there is another one), "cpu" (where only CUDA is taken) and "call"
    (``torch.cuda`` itself is called).
    """

    call: ast.Call
    role: str
    problem: str
    text: str = ""


@immutable(frozen=True, slots=True)
class Override(Site):
    """A module's own ``to``, ``cuda`` or ``cpu``, which does something ``besides`` what it inherits, at ``node``."""

    method: str
    besides: Step
