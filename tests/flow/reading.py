"""Scripts that are both read by the interpreter and run by torch: what the one claims, the other has to show.

A script marks the lines that raise where there is an accelerator with `# raises`.  Reading it has to claim exactly
those; running it, on torch's stand-in for an accelerator (see running.py), has to raise exactly there.
`# raises, unseen` is a line that raises and of which nothing can be known, or is not known on purpose.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from devlint.device import Device
from devlint.flow import analyze
from devlint.rules.placement.operands.meetings import meetings
from devlint.sites.base import Operand, Site
from devlint.sites.placement import COPYING, Attribute, Forward, Operation
from devlint.sites.transfers import Transfer

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = "import torch; from torch import nn; import torch.nn.functional as F\n"
MARK = re.compile(r"#\s*raises(, unseen)?\s*$")
PROBE = re.compile(r"\bsee\(([^()]*)\)")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

Kind = TypeVar("Kind", bound=Site)


def script(code: str) -> str:
    """The code with its imports, on one line in front so that rows stay what they are."""
    return PRELUDE.rstrip("\n") + textwrap.dedent(code).rstrip() + "\n"


@functools.lru_cache(maxsize=2048)
def sites_of(code: str) -> tuple[Site, ...]:
    """What the interpreter infers from a script; `see(x)` in it is a place at which `x` can be looked at."""
    text = script(PROBE.sub(r"(\1).to(torch.float64)", code))
    return tuple(analyze(ast.parse(text), text))


def sites(code: str, kind: type[Kind]) -> list[Kind]:
    """The sites of one kind, in the order of their rows."""
    return sorted((site for site in sites_of(code) if isinstance(site, kind)), key=lambda site: row(site.node))


def row(node: ast.AST) -> int:
    found = getattr(node, "lineno", 0)
    assert isinstance(found, int)
    return found


def claims(code: str) -> set[int]:
    """The rows at which the operands are claimed to be on different devices, whichever rule tells of it."""
    found = {
        row(site.node)
        for site in sites_of(code)
        if isinstance(site, Operation | Forward) and getattr(site, "kind", None) not in COPYING and meetings(site)
    }
    # a plain attribute's own rule speaks of copies on every call, too, which do not raise
    uses = [use for site in sites_of(code) if isinstance(site, Attribute) for use in site.uses]
    return found | {row(use.node) for use in uses if not use.label.startswith("moved")}


def marked(code: str) -> tuple[set[int], set[int]]:
    """The rows that raise and are claimed to, and those that raise unseen."""
    seen, unseen = set(), set()
    for number, line in enumerate(script(code).splitlines(), 1):
        match = MARK.search(line)
        if match:
            (unseen if match[1] else seen).add(number)
    return seen, unseen


def seen(code: str, name: str = "x") -> Operand:
    """What is known of `name` where the script says `see(name)`; the last time, where it does so repeatedly."""
    return [site.value for site in sites(code, Transfer) if site.target is None and site.value.text == name][-1]


def place(code: str, name: str = "x") -> Device:
    """Where `name` is at `see(name)`."""
    return seen(code, name).device


def cases(scripts: dict[str, str], gaps: dict[str, str] | None = None) -> list[ParameterSet]:
    """The scripts as parameters of a test, with what is known to be missing marked as such."""
    missing = gaps or {}
    assert missing.keys() <= scripts.keys()
    return [
        pytest.param(
            code, id=name, marks=[pytest.mark.xfail(strict=True, reason=missing[name])] if name in missing else []
        )
        for name, code in scripts.items()
    ]


def assert_read(code: str) -> None:
    """Reading the script claims what its marks say, and nothing else."""
    claimed, right = claims(code), marked(code)[0]
    assert claimed == right, f"wrong: {lines(code, claimed - right)}, missed: {lines(code, right - claimed)}"


def assert_runs(code: str) -> None:
    """Running the script shows that its marks are right."""
    raised, right = raising(code), set().union(*marked(code))
    assert raised == right, f"does not raise: {lines(code, right - raised)}"


def lines(code: str, rows: set[int]) -> list[str]:
    """The text of some rows of a script."""
    text = script(code).splitlines()
    return [text[number - 1].strip() for number in sorted(rows)]


# --- Running ------------------------------------------------------------------------------------------------------


class Runner:
    """A process with a stand-in accelerator, which runs one script after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.flow.running"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, code: str, rows: set[int]) -> tuple[set[int], list[str]]:
        """The rows that raised, of those to watch, and what went wrong elsewhere."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([code, sorted(rows)]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that runs the scripts has died; run `python -m tests.flow.running` to see why"
        raised, failures = json.loads(answer)
        return set(raised), failures


@functools.cache
def runner() -> Runner:
    return Runner()


def raising(code: str) -> set[int]:
    """The rows that raise because of a device; anything else that goes wrong is the test's own mistake."""
    rows = set().union(*marked(code))
    raised, failures = runner().run(script(code), rows)
    assert not failures, failures
    return raised
