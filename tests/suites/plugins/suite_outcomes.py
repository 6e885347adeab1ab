"""A pytest plugin that writes what becomes of each test at once, so that it is known if the process is killed.

``SUITE_OUTCOMES`` is the file, with an object of JSON a line; the tests that it holds already are not run again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

PATH = Path(os.environ["SUITE_OUTCOMES"])
SECONDS = int(os.environ.get("SUITE_SECONDS_A_TEST", "60"))
"""A test that takes longer has failed."""
_tests: dict[str, dict[str, Any]] = {}


def _write(entry: dict[str, Any]) -> None:
    with PATH.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _allocations() -> int:
    """How often memory of the device was taken so far."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    known = set()
    if PATH.is_file():
        known = {json.loads(line).get("id") for line in PATH.read_text(encoding="utf-8").splitlines()}
    items[:] = [item for item in items if item.nodeid not in known]
    _write({"collected": [item.nodeid for item in items]})


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write({"id": report.nodeid, "outcome": "failed", "message": _message(report), "seconds": 0, "device": False})


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    _tests[nodeid] = {
        "id": nodeid,
        "outcome": "passed",
        "message": "",
        "seconds": 0.0,
        "device": False,
        "allocations": _allocations(),
    }
    _write({"started": nodeid})


def pytest_runtest_setup(item: Any) -> None:
    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"the test took more than {SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return f"{crash.message[:600]} ({crash.path}:{crash.lineno})"
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return "\n".join(str(report.longrepr).splitlines()[-3:])[:600]


def pytest_runtest_logreport(report: Any) -> None:
    entry = _tests.setdefault(report.nodeid, {"id": report.nodeid, "outcome": "passed", "message": "", "seconds": 0.0})
    entry["seconds"] += report.duration
    if report.failed or (report.skipped and entry["outcome"] == "passed"):
        expected = hasattr(report, "wasxfail")
        entry["outcome"] = "failed" if report.failed else "xfailed" if expected else "skipped"
        entry["message"] = _message(report)


def pytest_runtest_logfinish(nodeid: str, location: Any) -> None:
    signal.alarm(0)
    entry = _tests.pop(nodeid)
    entry["device"] = _allocations() > entry.pop("allocations")
    entry["seconds"] = round(entry["seconds"], 3)
    _write(entry)


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    _write({"finished": int(exitstatus)})
