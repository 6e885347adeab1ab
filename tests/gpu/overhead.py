"""What the audit costs on a real device, as ratios of steps with and without it, taken in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

import devlint
from devlint.auditor.recorder.sampling import WHOLE

ROUNDS, STEPS = 5, 20


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds of a median step without and with the audit, their ratio, and the most that it may be.

    ``whole`` is the ratio of the steps that are recorded whole, as the first of a run are.
    """

    name: str
    plain: float
    audited: float
    ratio: float
    bar: float
    whole: float


def measure(name: str) -> Overhead:
    """Alternate rounds of steps with and without the audit; each round is timed until the device has finished."""
    make, bar = MODELS[name]
    step = make()
    for _ in range(STEPS):
        step()
    plain, whole, audited = [], [], []
    for _ in range(ROUNDS):
        plain.append(_seconds(step))
        with devlint.audit():
            step()
            whole.append(_seconds(step))
            for _ in range(WHOLE - STEPS):
                step()
            audited.append(_seconds(step))
    before, first, after = (statistics.median(times) for times in (plain, whole, audited))
    return Overhead(name, before * 1000, after * 1000, after / before, bar, first / before)


def _small() -> Callable[[], object]:
    model = nn.Sequential(*(layer for _ in range(100) for layer in (nn.Linear(64, 64), nn.ReLU()))).cuda()
    return _training(model, torch.randn(8, 64))


def _encoder(mixed: bool) -> Callable[[], object]:
    layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
    return _training(
        nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda(), torch.randn(8, 64, 256), mixed
    )


def _large() -> Callable[[], object]:
    model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(8192, 8192), nn.GELU()))).cuda()
    return _training(model, torch.randn(1024, 8192))


MODELS: dict[str, tuple[Callable[[], Callable[[], object]], float]] = {
    "launch-bound: 100 x Linear(64)": (_small, 1.05),
    "launch-bound: 12 transformer layers": (lambda: _encoder(False), 1.05),
    "launch-bound: the same under bfloat16 autocast": (lambda: _encoder(True), 1.05),
    "device-bound: 8 x Linear(8192)": (_large, 1.01),
}
"""Models that wait for their launches, among them mixed precision with its many casts, and one that does not; what a
step may cost under the audit."""


def _training(model: nn.Module, x: torch.Tensor, mixed: bool = False) -> Callable[[], object]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    pinned = x.pin_memory()

    def step() -> None:
        batch = pinned.to("cuda", non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed):
            loss = model(batch).float().pow(2).mean()
        loss.backward()
        optimizer.step()

    return step


def _seconds(step: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS
