"""``[tool.devlint]`` in pyproject.toml becomes one frozen Config; what is wrong there becomes one clear line."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from devlint.finding import Severity
from devlint.source.files import content

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


@dataclass(frozen=True, slots=True)
class Selection:
    """One layer of rule selection; ``select`` of None keeps what the layers below it selected."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a run needs to know; paths and patterns are relative to ``root``."""

    selections: tuple[Selection, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    target_torch: tuple[int, int] | None = None
    fail_on: Severity = Severity.WARNING
    output_format: str = "text"
    baseline: str | None = None
    cache_dir: str | None = None
    no_cache: bool = False
    budgets: tuple[tuple[str, float], ...] = ()
    root: str = ""

    def selecting(self, selection: Selection) -> Config:
        """This configuration with one more layer of rule selection on top."""
        return self if selection == Selection() else replace(self, selections=(*self.selections, selection))


def parse_torch_version(text: str) -> tuple[int, int]:
    """Read ``2.4`` or ``2.4.1``; a ValueError says what was expected."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", text.strip())
    if not match:
        raise ValueError(f"expected a torch version such as '2.4', not {text!r}")
    return int(match[1]), int(match[2])


Vouching = Callable[[Config], set[str]]
"""Says for a configuration which selectors are known to mean rules; those that prove to are added."""


def load(path: str, vouching: Vouching | None = None) -> Config:
    """Read the file that the user named: a pyproject.toml, or a TOML file with devlint's keys at the top."""
    document = _read_toml(path)
    tool = document.get("tool")
    if isinstance(tool, dict) and "devlint" in tool:
        return from_table(tool["devlint"], path, vouching)
    if os.path.basename(path) == "pyproject.toml":
        raise ConfigError(f"{path}: there is no [tool.devlint] table")
    return from_table(document, path, vouching)


def load_directory(directory: str, vouching: Vouching | None = None) -> Config | None:
    """The configuration in a directory's pyproject.toml, None if it has none for devlint."""
    path = os.path.join(directory, "pyproject.toml")
    try:
        # A pipe of that name would keep the run waiting for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            # Somebody else's pyproject.toml, however broken it may be, is not devlint's to judge.
            if b"devlint" not in stream.read():
                return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    tool = _read_toml(path).get("tool")
    return from_table(tool["devlint"], path, vouching) if isinstance(tool, dict) and "devlint" in tool else None


def from_table(table: object, path: str, vouching: Vouching | None = None) -> Config:
    """Turn the table into a Config, or say which key is wrong and why."""
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.devlint] must be a table")
    values: dict[str, Any] = {"root": os.path.dirname(os.path.abspath(path))}
    for key, value in table.items():
        reader = _READERS.get(key)
        if reader is None:
            raise ConfigError(f"{path}: unknown key {key!r} in [tool.devlint]{did_you_mean(key, _READERS)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise ConfigError(f"{path}: {key}: {error}") from error
    for key in {"baseline", "cache_dir"} & values.keys():
        values[key] = os.path.join(values["root"], values[key])
    if "audit" in values:
        values["budgets"] = values.pop("audit")
    layer = Selection(values.pop("select", None), values.pop("ignore", ()), values.pop("extend_select", ()))
    config = Config(**values).selecting(layer)
    _check_selectors(config, path, vouching)
    return config


def did_you_mean(word: str, known: Mapping[str, object] | Sequence[str]) -> str:
    """The end of an error line which offers the nearest known word, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def leads_out(relative: str) -> bool:
    """Whether a relative path leads out of the directory that it starts from."""
    return relative == os.pardir or relative.startswith(os.pardir + os.sep)


def _check_selectors(config: Config, path: str, vouching: Vouching | None) -> None:
    named = [selector for layer in config.selections for selector in selectors_of(layer)]
    named += [selector for _, selectors in config.per_file_ignores for selector in selectors]
    named += [selector for selector, _ in config.severity]
    if not named:
        return
    from devlint.selection import UnknownSelectorError, check_selectors

    try:
        check_selectors(named, vouching(config) if vouching is not None else set())
    except UnknownSelectorError as error:
        raise ConfigError(f"{path}: {error}") from error


def selectors_of(layer: Selection) -> tuple[str, ...]:
    """All that a layer of rule selection names."""
    return (*(layer.select or ()), *layer.ignore, *layer.extend_select)


def _read_toml(path: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        # Some editors begin every file with a byte order mark.
        document: dict[str, Any] = tomllib.loads(content(path).decode("utf-8-sig"))
        return document
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # among the former, an integer longer than Python's limit
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of strings")
    return tuple(value)


def _file(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected the name of a file")
    return value


def _directory(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected the name of a directory")
    return os.path.expanduser(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _per_file_ignores(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError('expected a table such as { "tests/**" = ["DVL6"] }')
    return tuple((file_pattern(pattern), _strings(selectors)) for pattern, selectors in value.items())


def _severity(value: object) -> tuple[tuple[str, Severity], ...]:
    if not isinstance(value, dict):
        raise ValueError('expected a table such as { DVL601 = "error" }')
    if "off" in value.values():
        raise ValueError("expected 'info', 'warning' or 'error'; a rule is switched off by `ignore`")
    return tuple((selector, _fail_on(severity)) for selector, severity in value.items())


def _audit(value: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, dict):
        raise ValueError("expected a table such as [tool.devlint.audit.budgets]")
    from devlint.budgets import NAMES, budgets

    for key in value:
        if key.replace("-", "_") in NAMES:
            raise ValueError(f"{key} is a budget, and belongs in [tool.devlint.audit.budgets]")
        if key != "budgets":
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, ['budgets'])}")
    table = value.get("budgets", {})
    if not isinstance(table, dict):
        raise ValueError("budgets: expected a table such as { h2d-per-step = 2 }")
    return tuple(budgets(table).items())


def _patterns(value: object) -> tuple[str, ...]:
    return tuple(file_pattern(pattern) for pattern in _strings(value))


def file_pattern(pattern: str) -> str:
    """A gitignore-like pattern, known to compile; ``./`` in front means the root, as in a shell."""
    from pathspec import GitIgnoreSpec

    if pattern.startswith("./"):
        pattern = pattern[1:]
    try:
        GitIgnoreSpec.from_lines([pattern])
    except Exception as error:
        raise ValueError(f"{pattern!r} is not a file pattern") from error
    return pattern


def _torch_version(value: object) -> tuple[int, int]:
    if not isinstance(value, str):
        raise ValueError("expected a string such as '2.4'")
    return parse_torch_version(value)


def _fail_on(value: object) -> Severity:
    return FAIL_ON[_choice(tuple(FAIL_ON))(value)]


def _choice(choices: tuple[str, ...]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(map(repr, choices))}, not {value!r}")
        return str(value)

    return read


_READERS: dict[str, Callable[[object], Any]] = {
    "audit": _audit,
    "baseline": _file,
    "cache-dir": _directory,
    "exclude": _patterns,
    "extend-exclude": _patterns,
    "extend-select": _strings,
    "fail-on": _fail_on,
    "force-exclude": _boolean,
    "ignore": _strings,
    "no-cache": _boolean,
    "output-format": _choice(OUTPUT_FORMATS),
    "per-file-ignores": _per_file_ignores,
    "respect-gitignore": _boolean,
    "select": _strings,
    "severity": _severity,
    "target-torch": _torch_version,
}


class Resolver:
    """Which Config holds where: the nearest pyproject.toml with a [tool.devlint] table, looked up once per directory.

    ``adjust`` puts the command line's options on top of whatever was found; ``vouching`` knows selectors that mean
    rules.
    """

    def __init__(
        self,
        fixed: Config | None = None,
        adjust: Callable[[Config], Config] = lambda config: config,
        vouching: Vouching | None = None,
    ) -> None:
        self._adjust = adjust
        self._vouching = vouching
        self._fixed = None if fixed is None else adjust(fixed)
        self._found: dict[str, Config] = {}

    @property
    def hierarchical(self) -> bool:
        """Whether a directory below may have a configuration of its own."""
        return self._fixed is None

    def at(self, directory: str) -> Config:
        """The configuration for the files of an absolute directory."""
        if self._fixed is not None:
            return self._fixed
        seen: list[str] = []
        config: Config | None = None
        while config is None:
            config = self._found.get(directory)
            if config is None:
                seen.append(directory)
                own = load_directory(directory, self._vouching)
                parent = os.path.dirname(directory)
                if own is not None:
                    config = self._adjust(own)
                elif parent == directory:
                    config = self._adjust(Config(root=os.getcwd()))
                directory = parent
        self._found.update(dict.fromkeys(seen, config))
        return config
