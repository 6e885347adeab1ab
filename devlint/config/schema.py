"""The schema: the fields of a configuration, their defaults, and the choices that some of them leave."""

from __future__ import annotations

from dataclasses import replace

from devlint.config.default_device import Importers
from devlint.config.suite import Suite
from devlint.config.torch_requirement import TorchRequirement
from devlint.finding import Severity
from devlint.immutable import immutable

OUTPUT_FORMATS = ("text", "concise", "json", "json-lines", "github", "gitlab", "sarif", "junit", "rdjson")
FAIL_ON = {"info": Severity.INFO, "warning": Severity.WARNING, "error": Severity.ERROR}
# Ruff's list: directories that hold other people's code, or machine-made code.
DEFAULT_EXCLUDE = (
    ".bzr", ".devlint_cache", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache",
    ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode",
    "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip


class ConfigError(Exception):
    """The configuration cannot be used; the text is the one line that the user sees."""


@immutable(frozen=True, slots=True)
class RuleLayer:
    """One layer of rule selection; ``select`` of None keeps what the layers below it selected."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()

    @property
    def selectors(self) -> tuple[str, ...]:
        """All that the layer names."""
        return (*(self.select or ()), *self.ignore, *self.extend_select)


@immutable(frozen=True, slots=True)
class Config:
    """Everything a run needs to know; paths and patterns are relative to ``root``."""

    rule_layers: tuple[RuleLayer, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    exclude_kinds: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    target_torch: tuple[int, int] | None = None
    torch_requirement: TorchRequirement | None = None
    default_device: Importers = ()
    required_python: tuple[int, int] | None = None
    fail_on: Severity = Severity.WARNING
    output_format: str = "text"
    baseline: str | None = None
    evidence: str | None = None
    cache_dir: str | None = None
    no_cache: bool = False
    budgets: tuple[tuple[str, float], ...] = ()
    pytest: Suite = Suite()
    models: tuple[str, ...] = ()
    root: str = ""

    @property
    def latest_torch(self) -> tuple[int, int] | None:
        """The youngest torch that the project allows, None where it leaves that open."""
        return self.torch_requirement.latest if self.torch_requirement is not None else None

    @property
    def selectors(self) -> tuple[str, ...]:
        """All selectors of rules that the configuration names."""
        layers = (selector for layer in self.rule_layers for selector in layer.selectors)
        ignored = (selector for _, selectors in self.per_file_ignores for selector in selectors)
        return (*layers, *ignored, *(selector for selector, _ in self.severity))

    def selecting(self, layer: RuleLayer) -> Config:
        """This configuration with one more layer of rule selection on top."""
        return self if layer == RuleLayer() else replace(self, rule_layers=(*self.rule_layers, layer))
