"""Large code that reads as people write it: the fixtures one after the other, with names of their own."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.accuracy.robustness.mutants import fixtures

_FUTURE = re.compile(r"^from __future__ import .*$", re.MULTILINE)


def file_of(lines: int) -> str:
    """One file of at least so many lines."""
    parts, count = [], 0
    for part in _renamed():
        parts.append(part)
        count += part.count("\n")
        if count >= lines:
            break
    return "".join(parts)


def project(folder: Path, lines: int, longest: int = 500) -> int:
    """A project of so many lines in files of at most about ``longest``; returns how many files there are."""
    parts = _renamed()
    written = 0
    for number in itertools.count():
        if written >= lines:
            return number
        text = ""
        while text.count("\n") < longest:
            text += next(parts)
        written += text.count("\n")
        path = folder / f"package{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    raise AssertionError


def _renamed() -> Iterator[str]:
    """The fixtures again and again, the definitions of each under a new name each time."""
    texts = [_FUTURE.sub("", path.read_text(encoding="utf-8")).rstrip() + "\n\n\n" for path in fixtures()]
    names = [_definitions(text) for text in texts]
    for number in itertools.count():
        for text, pattern in zip(texts, names, strict=True):
            yield text if pattern is None else pattern.sub(rf"\1_{number}", text)


def _definitions(text: str) -> re.Pattern[str] | None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    named = sorted({node.name for node in ast.parse(text).body if isinstance(node, definitions)})
    return re.compile(rf"\b({'|'.join(named)})\b") if named else None
