"""Sites where code decides which accelerator it uses."""

from __future__ import annotations

import ast

from devlint.immutable import immutable
from devlint.sites import Site, Step


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
