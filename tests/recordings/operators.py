"""What operators did in recordings, and what the recorder of an audit and the table of torch believe of them."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from devlint.auditor.profile.seen import look
from devlint.auditor.profile.stream import Trace
from devlint.flow.catalog import torch_table
from tests.recordings.listed import HERE

OPERATORS = HERE / "operators.csv"
COPIES = "copy_"
"""Its result is where it was, so that the table has no rule for it; the interpreter knows of the copy."""
_ATEN = "aten::"


@dataclass(frozen=True)
class Operator:
    """An operator in all recordings: how often it was called, copied and waited, what lies in others left to these."""

    name: str
    calls: int
    recordings: int
    to_the_device: int
    from_the_device: int
    waited: int
    waited_in: int
    """In how many recordings."""
    within: int
    """In how many calls the host waited, for what other operators in them did included."""
    believed: str
    tabled: str
    """What the table says of the function of that name: ``moves``, ``always``, ``sometimes`` or ``no wait``; empty if
    it has none."""


def believed(name: str) -> str:
    """What the recorder takes an operator for; torch is imported for that."""
    from devlint.auditor.recorder.kernels import COPY, READ, SPARSE_SYNCS, SYNCS

    known = {COPY: "copies, and waits unless `non_blocking`", READ: "copies from the device, and waits"}
    known |= {operator.partition(".")[0]: "waits" for operator in (*SYNCS, *SPARSE_SYNCS)}
    return known.get(name, "neither")


def tabled(name: str) -> str:
    """What devlint's table of torch says of the function of that name, be it a method."""
    names = (f"torch.Tensor.{name}", f"torch.{name}", f"torch.nn.functional.{name}")
    known = [entry for entry in map(torch_table.function, names) if entry is not None]
    if not known:
        return ""
    moves = name == COPIES or any(entry.rule.startswith("mover:") for entry in known)
    return "moves" if moves else next((entry.sync for entry in known if entry.sync), "no wait")


def table_agrees(operator: Operator) -> bool:
    """Whether the table knows of the wait if there was one; that of an operator without a function is another's."""
    return not operator.within or operator.tabled != "no wait"


def agrees(operator: Operator) -> bool:
    """Whether what was recorded is what the recorder believes."""
    copied = operator.to_the_device + operator.from_the_device
    if operator.believed.startswith("copies"):
        return bool(copied and operator.waited)
    return bool(operator.waited) == (operator.believed == "waits") and not operator.to_the_device


def kept() -> list[Operator]:
    """Those of the list."""
    with OPERATORS.open(encoding="utf-8", newline="") as file:
        return [
            Operator(
                **{key: value if key in ("name", "believed", "tabled") else int(value) for key, value in row.items()}
            )  # type: ignore[arg-type]
            for row in csv.DictReader(file)
        ]


def as_text(operators: Iterable[Operator]) -> str:
    """The text of the list."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Operator)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(operator) for operator in operators)
    return text.getvalue()


def counted(traces: Iterable[str]) -> list[Operator]:
    """The operators of traces, those first that waited most."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for path in traces:
        for name, found in _in(path).items():
            sums[name] += found
            sums[name]["recordings"] += 1
            sums[name]["waited in"] += bool(found["waited"])
    rows = [_row(name, found) for name, found in sums.items()]
    return sorted(rows, key=lambda row: (-row.waited, -row.within, -row.to_the_device, -row.calls, row.name))


def _row(name: str, found: Counter[str]) -> Operator:
    counts = (found[each] for each in ("calls", "recordings", "HtoD", "DtoH", "waited", "waited in", "within"))
    return Operator(name, *counts, believed(name), tabled(name))


def _in(path: str) -> dict[str, Counter[str]]:
    """By operator: its calls, and how many of them copied and waited themselves."""
    sums = defaultdict[str, Counter[str]](Counter)
    for event in Trace(path).events():
        if event.get("ph") == "X" and _is_operator(event):
            sums[str(event["name"]).removeprefix(_ATEN)]["calls"] += 1
    happened: dict[Any, set[str]] = defaultdict(set)
    within: set[Any] = set()
    seen = look(path)
    for thread in seen.calls.threads():
        for call, operators, _ in seen.around(thread):
            if operators and operators[-1].name.startswith(_ATEN):
                owner = (thread, operators[-1])
                waits = not call.copies or not call.name.endswith("Async")
                way = call.copy.way
                if operators[-1].name == f"{_ATEN}_local_scalar_dense" and way == "DtoD":
                    way = "DtoH"  # ROCm
                waited = waits and way != "DtoD"
                happened[owner] |= {way} | ({"waited"} if waited else set())
                within |= {(thread, span) for span in operators if waited and span.name.startswith(_ATEN)}
    for (_, span), found in happened.items():
        sums[span.name.removeprefix(_ATEN)].update(found - {""})
    for _, span in within:
        sums[span.name.removeprefix(_ATEN)]["within"] += 1
    return sums


def _is_operator(event: dict[str, Any]) -> bool:
    return event.get("cat") in ("cpu_op", "Operator") and str(event["name"]).startswith(_ATEN)
