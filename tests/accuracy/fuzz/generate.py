"""The strategy: a whole program."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from tests.accuracy.fuzz.language import branches, statements
from tests.accuracy.fuzz.program import Line, Program
from tests.accuracy.fuzz.writer import Writer

HEADER = """\
import sys
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
"""


@lru_cache(maxsize=256)
def _below(bound: int) -> st.SearchStrategy[int]:
    return st.integers(0, bound - 1)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs that run from top to bottom, with nothing in them that is not known but the words in ``sys.argv``."""
    w = Writer(lambda bound: draw(_below(bound)))
    w.lines.extend(Line(line) for line in HEADER.splitlines())
    if w.chance(50):
        branches.flag(w)
    for _ in range(2):
        statements.assign(w)
    for _ in range(w.number(6, 22)):
        statements.statement(w)
    return w.program()
