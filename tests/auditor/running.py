"""Scripts that are run under audit in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import devlint

ROOT = str(Path(devlint.__file__).parents[1])
LIMIT = 120
MODEL = """
import os, sys, torch
from torch import nn
data = torch.ones(3, 4)
def train(steps):
    global model
    model = nn.Linear(4, 2).cuda()
    for step in range(steps):
        loss = model(data.cuda()).sum()
        loss.backward()
        yield step
"""
"""Trains on ``cuda``, in steps that end with each backward: an optimizer would import another half of torch.

The model has 10 parameters, 40 bytes; each step copies the same 12 floats,
48 bytes, which DVL202 finds fault with.
"""


@dataclass(frozen=True)
class Done:
    """What a process left behind."""

    code: int
    out: str
    err: str


def environment(directory: Path, **more: str) -> dict[str, str]:
    """The environment of a run whose records stay in the directory."""
    return {
        **os.environ,
        "PYTHONPATH": ROOT,
        "TMPDIR": str(directory),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
        **more,
    }


def run(directory: Path, *command: str, **more: str) -> Done:
    """Run ``python COMMAND`` there."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment(directory, **more),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def audit(directory: Path, *arguments: str, **more: str) -> Done:
    """Run ``devlint audit ARGUMENTS`` there; the report is never about devlint itself."""
    done = run(directory, "-m", "devlint", "audit", *arguments, **more)
    assert "devlint/auditor" not in done.err
    return done


def script(text: str) -> str:
    """The model above, and what a test wants to do with it."""
    return MODEL + dedent(text)
