"""Measure what the recorder of ``devlint audit`` costs on the CPU, with and without it in one run.

``python -m tests.benchmarks.audit_overhead`` puts the recorder at the dispatch key of the CPU, the worst case: there
every copy and every read is overridden, while a GPU's key sees those on the GPU only. Two models are trained, one of
two hundred tiny layers and one of four transformer layers, in turns with and without. Then the small one is trained
under mixed precision, with its many casts, and a whole audit, at first and once that samples its steps. A model of
modules and functions of its own is trained while their calls are observed, from Python 3.12. At last single
operations are timed. If a ratio or a cost is above its limit, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from devlint.auditor.calls.observer import CallObserver
from devlint.auditor.listeners import listeners
from devlint.auditor.recorder.attribution import Attribution
from devlint.auditor.recorder.kernels import Kernels
from devlint.auditor.recorder.moves import Moves
from devlint.auditor.recorder.sampling import WHOLE
from devlint.auditor.recorder.syncs import Syncs
from devlint.auditor.recorder.syncwarnings import SyncWarnings
from devlint.auditor.recorder.uncompiled import Uncompiled
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Session, Settings, emit

LIMITS = {
    "model of small layers": 2.1,
    "transformer": 1.09,
    "small layers under autocast, each step recorded": 1.9,
    "small layers under autocast, steps sampled": 1.08,
    "a step of 5 ms, calls observed": 1.03,
    "op not overridden (add)": 0.1,
    "copy_ on one device": 2.7,
    "item, counted": 4.2,
    "to() that moves nothing, counted": 1.2,
    "to() that names no device": 1.0,
}
"""Ratios for the models, microseconds beyond the original for the operations."""


def main() -> int:
    """0 if all limits hold, 1 if one does not."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.audit_overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="how often each is run (9)")
    parser.add_argument("--slack", type=float, default=1.0, metavar="R", help="multiply the limits, on a noisy machine")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {name: _ratio(step, runs, options.rounds) for name, (step, runs) in _models().items()}
    found |= _sampled(options.rounds)
    found |= _observed(options.rounds)
    found |= _operations(options.rounds)
    print(json.dumps(found, indent=2) if options.json else table(found))
    return int(any(value > LIMITS[name] * options.slack for name, value in found.items()))


def table(found: dict[str, float]) -> str:
    """The figures beside their limits as a Markdown table."""
    rows = [f"torch {torch.__version__}", "", "| | measured | limit |", "|---|---:|---:|"]
    for name, value in found.items():
        written = "{:+.2f} µs" if name in _operation_names() else "x{:.2f}"
        rows.append(f"| {name} | {written.format(value)} | {written.format(LIMITS[name])} |")
    return "\n".join(rows)


@contextmanager
def recorded() -> Iterator[None]:
    """The recorder alone, at the key of the CPU."""
    session = Session(Settings(key="CPU"))
    attribution, waits = Attribution(session), Waits(session)
    warnings = SyncWarnings(session, attribution, waits)
    kernels = Kernels(session, attribution, waits, warnings)
    syncs = Syncs(session, waits, warnings)
    session.start([attribution, waits, warnings, kernels, syncs, Moves(session), Uncompiled()])
    try:
        yield
    finally:
        session.stop()
    assert not session.failure, session.failure


@contextmanager
def audited() -> Iterator[None]:
    """A whole audit, at the key of the CPU."""
    session = Session(Settings(key="CPU"))
    session.start(listeners(session))
    try:
        yield
    finally:
        session.stop()
    assert not session.failure, session.failure


def _names() -> tuple[list[str], list[str]]:
    """The models, and the other ratios."""
    names = list(LIMITS)
    return names[:2], names[2:4]


def _operation_names() -> list[str]:
    return list(LIMITS)[5:]


def _models() -> dict[str, tuple[Callable[[], float], int]]:
    """A training step of each model, and how many of them make a round."""
    small = _small()
    layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
    transformer = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    steps = _step(small, torch.randn(4, 16)), _step(transformer, torch.randn(8, 64, 256))
    return dict(zip(_names()[0], zip(steps, (20, 2), strict=True), strict=True))


def _small() -> nn.Module:
    return nn.Sequential(*(layer for _ in range(100) for layer in (nn.Linear(16, 16), nn.ReLU())))


def _sampled(rounds: int) -> dict[str, float]:
    """A step under mixed precision and an audit, as a multiple of one without, at first and later."""
    # an optimizer without numbers in tensors, which on a GPU are none of its key's
    step = _step(_small(), torch.randn(4, 16), mixed=True, make=torch.optim.SGD)
    at_first, later = [], []
    before = _time(step, 50)
    for _ in range(rounds):
        with audited():
            step()
            whole = _time(step, 20)
            _time(step, WHOLE)
            sampled = _time(step, 100)
        after = _time(step, 50)
        # each round by what the machine gave at its time
        base = (before + after) / 2
        at_first.append(whole / base)
        later.append(sampled / base)
        before = after
    return dict(zip(_names()[1], map(statistics.median, (at_first, later)), strict=True))


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.scale = nn.Linear(16, 16), nn.Linear(16, 16), 0.5

    def act(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(self.act(self.first(x))) * self.scale


def _observed(rounds: int) -> dict[str, float]:
    """A step while the calls in it are observed, the first hundred of a run, as a multiple of one without."""
    if not hasattr(sys, "monitoring"):
        return {}
    step, steps = _step(nn.Sequential(*(_Block() for _ in range(28))), torch.randn(64, 16)), 100

    def seconds(session: Session | None) -> float:
        # of this process, since others may take their turn while so many steps are made
        start = time.process_time()
        for _ in range(steps):
            step()
            if session is not None:
                emit(session.signals.forward)
                emit(session.signals.step_end)
        return time.process_time() - start

    ratios = []
    before = seconds(None)
    for _ in range(rounds):
        session = Session(Settings(key="CPU"))
        session.start([CallObserver(session)])
        inside = seconds(session)
        session.stop()
        assert not session.failure, session.failure
        after = seconds(None)
        ratios.append(2 * inside / (before + after))
        before = after
    return {list(LIMITS)[4]: statistics.median(ratios)}


def _step(
    model: nn.Module, batch: torch.Tensor, mixed: bool = False, make: type[Any] = torch.optim.Adam
) -> Callable[[], float]:
    optimizer = make(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            loss = model(batch).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(3):
        step()
    return step


def _ratio(step: Callable[[], float], runs: int, rounds: int) -> float:
    """The time of a step with the recorder, as a multiple of that without, in the median round."""
    ratios = []
    before = _time(step, runs)
    for _ in range(rounds):
        with recorded():
            step()
            inside = _time(step, runs)
        after = _time(step, runs)
        ratios.append(2 * inside / (before + after))
        before = after
    return statistics.median(ratios)


def _operations(rounds: int) -> dict[str, float]:
    """What a call costs more with the recorder, in microseconds: the smallest times, since all else is noise."""
    target, source, one = torch.empty(16), torch.randn(16), torch.ones(())
    calls: list[Callable[[], object]] = [
        lambda: source + source,
        lambda: target.copy_(source),
        lambda: one.item(),
        lambda: source.to("cpu"),
        lambda: source.to(torch.float32),
    ]
    without: list[list[float]] = [[] for _ in calls]
    inside: list[list[float]] = [[] for _ in calls]
    with torch.no_grad():
        for _ in range(rounds):
            for call, times in zip(calls, without, strict=True):
                times.append(_time(call, 5_000))
            with recorded():
                for call, times in zip(calls, inside, strict=True):
                    times.append(_time(call, 5_000))
    names = _operation_names()
    return {name: 1e6 * (min(after) - min(before)) for name, before, after in zip(names, without, inside, strict=True)}


def _time(call: Callable[[], object], runs: int) -> float:
    start = time.perf_counter()
    for _ in range(runs):
        call()
    return (time.perf_counter() - start) / runs


if __name__ == "__main__":
    sys.exit(main())
