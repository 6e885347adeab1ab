"""What other programs read."""

from __future__ import annotations

import io
import json

import pytest

from devlint.check.analysis import check_source
from devlint.report.base import Report
from devlint.report.formats import render
from devlint.report.formats.counts import statistics
from devlint.report.progress import Progress

pytestmark = pytest.mark.usefixtures("stub_rules")

CODE = "é = 1; dropped(é)\nmismatch()\ndropped()\n"


def report(tmp_path, **more) -> Report:
    return Report(check_source(CODE, str(tmp_path / "x.py")), 1, **more)


def test_json_has_ruffs_shape(tmp_path) -> None:
    first, second, _ = json.loads("".join(render(report(tmp_path), "json")))
    assert first == {
        "code": "DVL102",
        "name": "discarded-move",
        "severity": "warning",
        "message": "`dropped` was called",
        "label": "this call",
        "help": "call something else",
        "filename": str(tmp_path / "x.py"),
        "location": {"row": 1, "column": 8},
        "end_location": {"row": 1, "column": 18},
        "fix": {
            "applicability": "unsafe",
            "message": "Call `mended`",
            "edits": [
                {"content": "mended", "location": {"row": 1, "column": 8}, "end_location": {"row": 1, "column": 15}}
            ],
        },
        "related": [
            {
                "message": "from here",
                "filename": str(tmp_path / "x.py"),
                "location": {"row": 1, "column": 16},
                "end_location": {"row": 1, "column": 17},
            }
        ],
    }
    assert second["fix"] is None
    assert second["related"] == []


def test_json_without_findings_is_an_empty_list() -> None:
    assert json.loads("".join(render(Report([], 3), "json"))) == []


def test_json_makes_paths_absolute(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (entry,) = json.loads("".join(render(Report(check_source("dropped()", "a/x.py")), "json")))
    assert entry["filename"] == str(tmp_path / "a" / "x.py")


def test_concise_is_one_line_each(tmp_path) -> None:
    path = tmp_path / "x.py"
    assert list(render(report(tmp_path), "concise")) == [
        f"{path}:1:8: DVL102 `dropped` was called",
        f"{path}:2:1: DVL101 `mismatch` was called",
        f"{path}:3:1: DVL102 `dropped` was called",
    ]


def test_statistics_count_the_most_frequent_first(tmp_path) -> None:
    assert list(statistics(report(tmp_path), "text")) == [
        "2  warning  DVL102  discarded-move   in 1 file",
        "1  error    DVL101  device-mismatch  in 1 file",
    ]
    assert next(statistics(report(tmp_path, unsafe_fixes=True), "text")).endswith("in 1 file, 2 fixable")
    assert json.loads("".join(statistics(report(tmp_path), "json")))[0] == {
        "code": "DVL102",
        "name": "discarded-move",
        "severity": "warning",
        "count": 2,
    }


def test_progress_shows_on_a_long_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with Progress(enabled=True) as progress:
        progress(1, 9)
        assert terminal.getvalue() == ""
        clock[0] = 2.0
        progress(5, 9)
        assert "5/9" in terminal.getvalue()
    with Progress(enabled=False) as progress:
        clock[0] = 9.0
        size = len(terminal.getvalue())
        progress(6, 9)
        assert len(terminal.getvalue()) == size
