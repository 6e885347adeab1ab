"""The readers of ``[tool.devlint]``: each key's TOML value becomes a field, and a ValueError says what was expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from devlint.config import budgets, suite
from devlint.config.messages import did_you_mean
from devlint.config.schema import FAIL_ON, OUTPUT_FORMATS
from devlint.finding import Severity
from devlint.source.file_kinds import PATTERNS


def parse_torch_version(text: str) -> tuple[int, int]:
    """Read ``2.4`` or ``2.4.1``; a ValueError says what was expected."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", text.strip())
    if not match:
        raise ValueError(f"expected a torch version such as '2.4', not {text!r}")
    return int(match[1]), int(match[2])


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


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of strings")
    return tuple(value)


def _file(value: object, kind: str = "file") -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"expected the name of a {kind}")
    return value


def _files(value: object) -> tuple[str, ...]:
    return tuple(map(_file, _strings(value)))


def _directory(value: object) -> str:
    return os.path.expanduser(_file(value, "directory"))


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
    for key in value:
        if key.replace("-", "_") in budgets.NAMES:
            raise ValueError(f"{key} is a budget, and belongs in [tool.devlint.audit.budgets]")
        if key != "budgets":
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, ['budgets'])}")
    table = value.get("budgets", {})
    if not isinstance(table, dict):
        raise ValueError("budgets: expected a table such as { h2d-per-step = 2 }")
    return tuple(budgets.read(table).items())


def _patterns(value: object) -> tuple[str, ...]:
    return tuple(file_pattern(pattern) for pattern in _strings(value))


def _kinds(value: object) -> tuple[str, ...]:
    return tuple(map(_choice(tuple(PATTERNS)), _strings(value)))


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


READERS: dict[str, Callable[[object], Any]] = {
    "audit": _audit,
    "baseline": _file,
    "cache-dir": _directory,
    "evidence": _file,
    "exclude": _patterns,
    "exclude-kinds": _kinds,
    "extend-exclude": _patterns,
    "extend-select": _strings,
    "fail-on": _fail_on,
    "force-exclude": _boolean,
    "ignore": _strings,
    "models": _files,
    "no-cache": _boolean,
    "output-format": _choice(OUTPUT_FORMATS),
    "per-file-ignores": _per_file_ignores,
    "pytest": suite.read,
    "respect-gitignore": _boolean,
    "select": _strings,
    "severity": _severity,
    "target-torch": _torch_version,
}
