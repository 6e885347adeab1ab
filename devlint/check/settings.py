"""``--show-settings``: the configuration that holds for a directory as TOML, and where the oldest torch comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from devlint.config.schema import Config
from devlint.finding import Severity
from devlint.rules.selection import selected


def settings(config: Config, directory: str) -> str:
    """A [tool.devlint] table that says all that holds for the files of a directory."""
    lines = [f"# {os.path.relpath(directory)}", "[tool.devlint]"]
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in _values(config)), ""])


def _values(config: Config) -> Iterator[tuple[str, str]]:
    yield "select", json.dumps([rule.code for rule in selected(config)])
    for key in ("exclude", "exclude-kinds", "extend-exclude", "models"):
        yield key, json.dumps(getattr(config, key.replace("-", "_")))
    for key, table in (("per-file-ignores", config.per_file_ignores), ("severity", config.severity)):
        if table:
            yield key, _inline(table)
    yield "force-exclude", json.dumps(config.force_exclude)
    yield "respect-gitignore", json.dumps(config.respect_gitignore)
    yield _torch(config)
    yield "fail-on", json.dumps(str(config.fail_on))
    yield "output-format", json.dumps(config.output_format)
    for key in ("baseline", "evidence", "cache-dir"):
        if value := getattr(config, key.replace("-", "_")):
            yield key, json.dumps(value)
    yield "no-cache", json.dumps(config.no_cache)
    if config.budgets:
        yield "audit.budgets", _inline(config.budgets)
    if suite := config.pytest.table():
        yield "pytest", _inline(suite)


def _torch(config: Config) -> tuple[str, str]:
    """The oldest torch, and what says so."""
    if config.target_torch is None:
        return "# target-torch", "nothing says how old the oldest torch may be"
    said = config.torch_requirement
    version = json.dumps("{}.{}".format(*config.target_torch))
    return "target-torch", version if said is None else f"{version}  # {os.path.relpath(said.file)}: {said.text}"


def _inline(table: tuple[tuple[str, object], ...]) -> str:
    values = ((key, str(value) if isinstance(value, Severity) else value) for key, value in table)
    items = (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values)
    return f"{{ {', '.join(items)} }}"
