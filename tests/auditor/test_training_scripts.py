"""The scripts of fixtures/train run in simulation, and what they say about themselves is what is seen of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import socket
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.auditor.training import ALONE, RANKS, SCRIPTS, TRAIN, expected, observed

pytestmark = pytest.mark.slow


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def simulate(name: str, record: Path) -> subprocess.CompletedProcess[str]:
    audit = ["-m", "devlint", "audit", "--simulate", "--isolated", "--exit-zero", "--output", str(record)]
    command = [sys.executable, *audit, str(TRAIN / f"{name}.py")]
    if name == "ddp":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        launch = ["-m", "torch.distributed.run", f"--nproc-per-node={RANKS}", f"--master-port={port}"]
        audit.insert(3, f"--devices={RANKS}")
        command = [sys.executable, *launch, *audit, str(TRAIN / "ddp.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment(), check=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    """All scripts at once, as many as there are processors."""
    directory = tmp_path_factory.mktemp("records")
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        futures = {name: pool.submit(simulate, name, directory / f"{name}.json") for name in SCRIPTS}
        for future, name in zip(futures.values(), futures, strict=True):
            future.record = directory / f"{name}.json"  # type: ignore[attr-defined]  # the test wants to know where it is
        yield futures


def finished(runs: dict[str, Any], name: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    result = runs[name].result()
    assert result.returncode == 0, result.stderr
    return result, json.loads(runs[name].record.read_text())


@pytest.mark.parametrize("name", SCRIPTS)
def test_everything_is_counted_once_and_where_it_happens(runs: dict[str, Any], name: str) -> None:
    _, record = finished(runs, name)
    seen, _ = expected(name)
    anytime = {line for line, phase, *_ in seen if phase == "any"}
    medians = {key: [word for word in key if str(word).startswith("median=")] for key in seen}
    plain = Counter(tuple(word for word in key if word not in medians[key]) for key in seen)
    processes = [process for process in record["processes"] if process["role"] != "loader worker"]
    assert len(processes) == (RANKS if name == "ddp" else 1)
    for process in processes:
        found = observed(name, process, anytime)
        assert sorted(map(str, found)) == sorted(map(str, plain))
        for (line, *_), words in medians.items():
            for word in words:
                events = [event for event in process["events"] if event["frame"]["line"] == line]
                assert [event["steady"]["calls"] for event in events] == [float(str(word).partition("=")[2])]


@pytest.mark.parametrize("name", SCRIPTS)
def test_steps_are_told_apart(runs: dict[str, Any], name: str) -> None:
    _, record = finished(runs, name)
    _, words = expected(name)
    for process in record["processes"]:
        if process["role"] == "loader worker":
            continue
        steps = process["steps"]
        optimizers = {key.replace(" ", "_"): str(count) for key, count in steps["optimizer_steps"].items()}
        told = {"train": str(steps["train"]), "eval": str(steps["eval"]), "boundary": steps["boundary"], **optimizers}
        assert told == words


@pytest.mark.parametrize("name", ALONE)
def test_the_numbers_are_those_of_the_cpu(runs: dict[str, Any], name: str) -> None:
    result, _ = finished(runs, name)
    plain = io.StringIO()
    threads = torch.get_num_threads()
    # sums of several threads round in another way than those of one, which the simulated run has
    torch.set_num_threads(1)
    try:
        with contextlib.redirect_stdout(plain), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(TRAIN / f"{name}.py"), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    assert result.stdout == plain.getvalue()
