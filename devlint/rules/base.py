"""What a rule is: a class with a code, which looks at one kind of site and reports; and what every rule speaks of."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from typing import Any, ClassVar, TypeAlias, get_args, get_type_hints

from devlint.finding import Applicability, Edit, Fix, Severity, Span
from devlint.immutable import immutable
from devlint.sites import proof
from devlint.sites.base import Site, Step
from devlint.source.tree import Source

__all__ = ["Applicability", "Edit", "Fix", "Report", "Reports", "Rule", "Severity", "Span", "Step", "proof"]

_EXAMPLE = re.compile(r"(?<=^```python\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_IMPORTS = {
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "DataLoader": "from torch.utils.data import DataLoader",
}
"""What an example may leave out: every reader knows what these mean, but Python does not."""

_RECENT = (2, 5)
"""The youngest torch of two years ago, which code can be taken to run on where nobody says how old it may be."""


@immutable(frozen=True, slots=True)
class Report:
    """A verdict of a rule, before it is given a file and positions.

    ``severity`` overrides the rule's own; ``steps`` are the places that explain it, ``fix`` the edits that mend it.
    ``asked`` says that it is only for those who select the rule themselves; ``node`` is what the report is about, if
    that is not the site's. Reports with one ``cause``, if that is not empty, become one finding, whose fix mends all.
    Of a ``design`` one finding tells, for all files of a run; its reports are hints but for those who select the rule.
    ``covers`` are the codes of rules that have nothing to add about the same call. ``implied`` says, as that of the
    rule does of all its reports, that it rests on the CPU being the default device, which another file may change.
    ``unproven`` says that it is told to everybody once a run has shown it, and before to those who ask.
    ``assumed`` says that it rests on what no text shows: where a caller keeps an argument, or somebody puts a module.
    ``minor`` says that it costs little: a few of its rule are for those who select it.
    """

    message: str
    label: str = ""
    severity: Severity | None = None
    steps: tuple[Step, ...] = ()
    help: str = ""
    fix: Fix | None = None
    asked: bool = False
    node: ast.AST | None = None
    cause: str = ""
    design: str = ""
    covers: tuple[str, ...] = ()
    implied: bool = False
    assumed: bool = False
    unproven: bool = False
    minor: bool = False


Reports: TypeAlias = Iterable[Report]


class Rule:
    """A rule of the catalogue: one file, one class, its docstring is its documentation.

    Subclasses set ``code``, and ``severity`` unless it is a warning, and implement :meth:`judge`.  The ``name`` is that
    of the class: ``LossKeepsGraph`` is ``loss-keeps-graph``; ``sites`` are the kinds of sites that :meth:`judge` takes.
    ``fixes`` says of what kind its fixes can be: safe, unsafe, or either, as the case is.
    ``hints`` says whether what it reports as a hint is for all, or only for those who select the rule themselves.
    ``accelerated`` says that it speaks of what only happens once somebody has put a network on an accelerator.
    ``raising`` says that it speaks of tensors that are not on the device where they are used, which raises.
    ``implied`` says that it rests on the CPU being the default device, which another file may change.
    ``deprecates`` says that it speaks of what a later torch takes away.
    ``observed`` says that the rule judges what an audit observed, too, and not only what was inferred from the code.
    ``proof`` says what of a run speaks for or against what was inferred; None where no run can tell.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.WARNING
    fixes: ClassVar[tuple[Applicability, ...]] = ()
    default: ClassVar[bool] = True
    hints: ClassVar[bool] = True
    accelerated: ClassVar[bool] = False
    raising: ClassVar[bool] = False
    implied: ClassVar[bool] = False
    deprecates: ClassVar[bool] = False
    observed: ClassVar[bool] = False
    sites: ClassVar[tuple[type[Site], ...]] = ()
    proof: ClassVar[proof.Traces | None] = None

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        if "judge" in vars(cls):
            taken = get_type_hints(cls.judge)["site"]
            cls.sites = get_args(taken) or (taken,)

    def __init__(
        self,
        source: Source,
        target_torch: tuple[int, int] | None = None,
        latest_torch: tuple[int, int] | None = None,
    ) -> None:
        self.source = source
        self.target_torch = target_torch
        self.latest_torch = latest_torch

    def judge(self, site: Any) -> Reports:
        """The verdicts on a site of one of its ``sites``; none where nothing is wrong or too little is known."""
        raise NotImplementedError

    def can_count_on(self, since: tuple[int, int]) -> bool:
        """Whether the code runs on a torch that has what came with ``since``: the target, or else a recent one."""
        return since <= (_RECENT if self.target_torch is None else self.target_torch)

    def can_name(self, since: tuple[int, int]) -> bool:
        """Whether advice may name what came with ``since``: the target has it, or nobody says how old it may be."""
        return self.target_torch is None or since <= self.target_torch

    def may_be(self, since: tuple[int, int]) -> bool:
        """Whether the code may run on a torch as young as ``since``: the project does not say that it cannot."""
        return self.latest_torch is None or since <= self.latest_torch

    def replace(self, node: ast.AST, content: str) -> Edit:
        """An edit that puts ``content`` in the place of ``node``."""
        return Edit(self.source.span(node), content)

    @classmethod
    def documentation(cls) -> str:
        """The docstring, without indentation, its examples with the imports that they leave out."""
        return _EXAMPLE.sub(_with_imports, inspect.cleandoc(cls.__doc__ or ""))

    @classmethod
    def sections(cls) -> dict[str, str]:
        """What stands under each heading of the docstring."""
        parts = re.split(r"^## (.+)\n", cls.documentation(), flags=re.MULTILINE)
        return {heading.strip(): body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return cls.documentation().partition("\n")[0]


def _with_imports(example: re.Match[str]) -> str:
    code = example[0]
    if re.search(r"^\s*(?:import|from) ", code, re.MULTILINE):
        return code
    imports = [line for name, line in _IMPORTS.items() if re.search(rf"(?<![\w.]){name}\b(?!=)", code)]
    return "\n".join([*imports, "", code]) if imports else code
