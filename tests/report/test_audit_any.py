"""Whatever is in a record, a report comes of it."""

from __future__ import annotations

import re
import typing
from dataclasses import fields

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from devlint.auditor.judgement.advice import advise
from devlint.record import (
    PHASES,
    Call,
    Device,
    Ending,
    Environment,
    Event,
    Frame,
    Loader,
    Mismatch,
    Models,
    Optimizer,
    Part,
    Party,
    Process,
    Record,
    Slice,
    Steady,
    Steps,
    Stray,
    Wrapper,
)
from devlint.report.audit import render
from tests.report import records

COUNTS = st.integers(0, 2**24)
SECONDS = st.floats(0, 1e7, allow_subnormal=False)
TEXTS = st.text(max_size=12)
FILES = st.sampled_from([records.TRAIN, records.MODEL, records.TRAINER, "<stdin>", "", "C:\\work\\a.py", "é/日本.py"])
DEVICES = st.sampled_from(["", "cpu", "cuda:0", "cuda:1", "mps"])
ROWS = st.integers(0, 30)


def some(what: st.SearchStrategy, most: int = 3) -> st.SearchStrategy:
    return st.lists(what, max_size=most).map(tuple)


def made(cls: type, **given: st.SearchStrategy) -> st.SearchStrategy:
    """Any value of a record's class: what is not given by its type, left at the default where that is a class."""
    by_type = {
        "str": TEXTS, "int": COUNTS, "float": SECONDS, "bool": st.booleans(), "float | None": st.none() | SECONDS,
        "int | None": st.none() | st.integers(0, 9), "bool | None": st.none() | st.booleans(),
        "tuple[str, ...]": some(TEXTS), "Frame | None": st.none() | FRAMES if cls is not Frame else st.none(),
    }  # fmt: skip
    typed = {each.name: by_type[each.type] for each in fields(cls) if each.type in by_type}
    hints = typing.get_type_hints(cls).items()
    literal = {name: st.sampled_from(typing.get_args(hint)) for name, hint in hints if "Literal" in str(hint)}
    return st.builds(cls, **{**typed, **literal, **given})


FRAMES = made(Frame, file=FILES, line=ROWS, end_line=st.none() | ROWS)
EVENTS = made(
    Event, phase=st.sampled_from(PHASES), source=DEVICES, target=DEVICES, steps=st.integers(0, 20),
    name=st.sampled_from(["copy_", "item", "torch.cuda.empty_cache"]), steady=st.none() | made(Steady),
)  # fmt: skip
PARTS = made(Part, event=st.integers(-1, 6), first=some(made(Call)))
SLICES = made(Slice, phase=st.sampled_from(PHASES), parts=some(PARTS))
STEPS = made(Steps, train=st.integers(0, 20), optimizer_steps=st.dictionaries(TEXTS, COUNTS, max_size=3))
DEVICE = made(Device, name=DEVICES, capability=st.none() | st.tuples(st.integers(0, 12), st.integers(0, 9)))
ENVIRONMENT = made(
    Environment, torch=st.sampled_from(["", "2.13.0+cpu"]), devices=some(DEVICE), visible_devices=st.none() | TEXTS,
    host=st.sampled_from(["", "a", "b"]), build=st.sampled_from(["", "CPU", "CUDA 12.8"]),
)  # fmt: skip
PROCESS = made(
    Process,
    device=DEVICES,
    ending=made(Ending, error=st.sampled_from(["", "boom", f"RuntimeError: {records.ERROR}", "out of memory"])),
    environment=ENVIRONMENT,
    steps=STEPS,
    events=some(EVENTS, 6),
    timeline=some(SLICES, 4),
    loaders=some(made(Loader)),
    mismatches=some(made(Mismatch, parties=some(made(Party)), error=st.sampled_from(["", "boom", records.ERROR]))),
    strays=some(made(Stray, moved=some(FRAMES)), 1),
    wrappers=some(made(Wrapper), 1),
    optimizers=some(made(Optimizer), 1),
    models=made(Models),
)
RECORDS = made(
    Record, processes=some(PROCESS), findings=st.sampled_from([None, (), (records.MISSING_PIN,)]),
    advice=st.none() | some(TEXTS), sources=st.sampled_from([{}, records.SOURCES]), started=TEXTS,
)  # fmt: skip


# To shrink a whole record takes minutes; the first example says enough.
PATIENCE = settings(
    deadline=None,
    derandomize=True,  # the same records each time; --hypothesis-seed tries others
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(PATIENCE, max_examples=150)
@given(RECORDS, st.integers(1, 200))
def test_any_record_is_shown(record: Record, width: int) -> None:
    advise(record)
    text = "\n".join(render(record, width=width))
    assert "\x1b" not in text
    assert "\n\n\n" not in text
    if width >= 80:
        assert [line for line in text.split("\n") if not _framed(line) and len(line) > width] == []


def _framed(line: str) -> bool:
    """Code, what is written below it, or a word that is longer than a line."""
    return bool(re.match(r" *\d* *(\||-->|:::)", line)) or max(map(len, line.split()), default=0) > 40


@settings(PATIENCE, max_examples=50)
@given(RECORDS)
def test_a_simulated_record_shows_no_time(record: Record) -> None:
    shown = "\n".join(render(records.simulated(record)))
    assert not re.search(r"(?<!\S)[\d.]+ (us|ms|min)\b", shown)
