"""Loading: the nearest pyproject.toml becomes a Config; what is wrong there becomes one clear line."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from devlint.config import default_device, python_requirement, torch_requirement
from devlint.config.messages import did_you_mean
from devlint.config.schema import Config, ConfigError, RuleLayer
from devlint.config.values import READERS
from devlint.source.files import content, toml

Validator = Callable[[Config], None]
"""Raises a ValueError, a line of text, if one of the selectors that a configuration names means no rule."""


def load(path: str, validate: Validator) -> Config:
    """Read the file that the user named: a pyproject.toml, or a TOML file with devlint's keys at the top."""
    document = _read_toml(path)
    tool = document.get("tool")
    if isinstance(tool, dict) and "devlint" in tool:
        return from_table(tool["devlint"], path, validate)
    if os.path.basename(path) == "pyproject.toml":
        raise ConfigError(f"{path}: there is no [tool.devlint] table")
    return from_table(document, path, validate)


def load_directory(directory: str, validate: Validator) -> Config | None:
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
    return from_table(tool["devlint"], path, validate) if isinstance(tool, dict) and "devlint" in tool else None


def from_table(table: object, path: str, validate: Validator) -> Config:
    """Turn the table into a Config, or say which key is wrong and why."""
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.devlint] must be a table")
    values: dict[str, Any] = {"root": os.path.dirname(os.path.abspath(path))}
    for key, value in table.items():
        reader = READERS.get(key)
        if reader is None:
            raise ConfigError(f"{path}: unknown key {key!r} in [tool.devlint]{did_you_mean(key, READERS)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise ConfigError(f"{path}: {key}: {error}") from error
    for key in {"baseline", "cache_dir", "evidence"} & values.keys():
        values[key] = os.path.join(values["root"], values[key])
    values["models"] = tuple(os.path.join(values["root"], name) for name in values.get("models", ()))
    if "audit" in values:
        values["budgets"] = values.pop("audit")
    layer = RuleLayer(values.pop("select", None), values.pop("ignore", ()), values.pop("extend_select", ()))
    config = Config(**values).selecting(layer)
    try:
        validate(config)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def _read_toml(path: str) -> dict[str, Any]:
    try:
        return toml(content(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # among the former, an integer longer than Python's limit
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


class Resolver:
    """Which Config holds where: the nearest pyproject.toml with a [tool.devlint] table, looked up once per directory.

    ``validate`` knows which selectors mean rules; ``fixed`` holds everywhere, where it is given; ``adjust`` puts the
    command line's options on top of whatever was found.  Where none of these has a ``target_torch``, and ``reads`` is
    not false, it is the oldest torch that the project's own files allow; so they say which Python it requires.
    """

    def __init__(
        self,
        validate: Validator,
        fixed: Config | None = None,
        adjust: Callable[[Config], Config] = lambda config: config,
        reads: bool | None = None,
    ) -> None:
        self._adjust = adjust
        self._validate = validate
        self._fixed = None if fixed is None else adjust(fixed)
        self._reads = fixed is None if reads is None else reads
        self._configured: dict[str, Config] = {}
        self._required: torch_requirement.Known = {}
        self._scripts: default_device.Known = {}
        self._python: python_requirement.Known = {}
        self._completed: dict[tuple[object, ...], Config] = {}

    def differs(self, names: Collection[str]) -> bool:
        """Whether a directory that has files of such names may have a configuration of its own."""
        configured = "pyproject.toml" in names and self._fixed is None
        scripts = "__init__.py" not in names and any(name.endswith(".py") for name in names)
        return configured or (self._reads and (scripts or torch_requirement.may_declare(names)))

    def at(self, directory: str, checked: str = "") -> Config:
        """The configuration for the files of an absolute directory, in the one that is checked."""
        config = self._fixed or self._nearest(directory)
        if not self._reads:
            return config
        known = self._required
        found = None if config.target_torch is not None else torch_requirement.nearest(directory, known, checked)
        scripts = default_device.importers(directory, self._scripts)
        python = python_requirement.nearest(directory, self._python)
        key = id(config), found, scripts, python
        if key not in self._completed:
            if found is not None:
                config = replace(config, target_torch=found.release, torch_requirement=found)
            self._completed[key] = replace(config, default_device=scripts, required_python=python)
        return self._completed[key]

    def _nearest(self, directory: str) -> Config:
        if directory not in self._configured:
            own, parent = load_directory(directory, self._validate), os.path.dirname(directory)
            if own is not None:
                config = self._adjust(own)
            else:
                config = self._adjust(Config(root=os.getcwd())) if parent == directory else self._nearest(parent)
            self._configured[directory] = config
        return self._configured[directory]
