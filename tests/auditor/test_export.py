"""`--html` and `--trace`: what is written, what is said, and that nothing is left half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.auditor.judgement import export
from devlint.auditor.judgement.export import Exports
from devlint.auditor.judgement.presentation import show
from devlint.auditor.running import storage
from devlint.config.schema import ConfigError
from devlint.record import FORMAT, Record
from devlint.report.html import library
from tests.auditor.running import ROOT
from tests.report import pages, records
from tests.simulator.available import simulates

pytest.importorskip("vl_convert", reason="needs the extra `html`")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither does the page carry its library here, nor is this user's own directory written to."""
    monkeypatch.setattr("devlint.report.html.plotting_library", lambda cache=None: "")
    monkeypatch.setattr(storage, "home", lambda: str(tmp_path))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    storage.write(pages.every()["cnn"], str(path))
    return path


def listed(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_page_and_a_trace_are_written_instead_of_the_report(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, trace = run.with_suffix(".html"), run.with_name("trace.json")
    assert show([str(run)], exports=Exports(str(page), str(trace))) == 0
    assert capfd.readouterr() == ("", f"Wrote {page}\nWrote {trace}\n")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(trace.read_text())["traceEvents"]
    assert show([str(run)], True, Exports(str(page))) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("option", ["html", "trace"])
def test_a_path_that_cannot_be_written_is_said_before_anything_is_done(
    run: Path, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = listed(run.parent)
    for path, text in {
        "": "no file is named",
        "a\0b": "no file is named",
        str(run.parent): f"{run.parent}: Is a directory",
        str(run.parent / "gone" / "x"): f"{run.parent / 'gone'}: No such directory",
        os.devnull: f"{os.devnull}: Is no regular file",
    }.items():
        assert show([str(run)], exports=Exports(**{option: path})) == 2
        assert capfd.readouterr() == ("", f"error: --{option}: {text}\n")
    assert listed(run.parent) == before


def test_a_report_does_not_take_the_place_of_its_record(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = run.read_bytes()
    assert show([str(run)], exports=Exports(trace=str(run))) == 2
    assert capfd.readouterr() == ("", f"error: --trace: {run}: is read by this very run, and would be lost\n")
    assert run.read_bytes() == before


def test_one_file_cannot_be_two_things(run: Path) -> None:
    path = str(run.with_suffix(".out"))
    with pytest.raises(ConfigError, match=r"--trace: .*: is what --html names, too"):
        Exports(path, os.path.join(run.parent, ".", "run.out")).check()
    with pytest.raises(ConfigError, match=r"--html: .*: is what --output names, too"):
        Exports(path).check(path)


@pytest.mark.parametrize("text", ["", "{", '{"format": 1', "[]", json.dumps({"format": FORMAT + 1, "processes": []})])
def test_of_a_record_that_cannot_be_read_nothing_is_written(
    tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    broken, page = tmp_path / "run.json", tmp_path / "page.html"
    broken.write_text(text)
    page.write_text("the old one")
    assert show([str(broken)], exports=Exports(str(page))) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"error: {broken}: ")
    assert err.count("\n") == 1
    assert page.read_text() == "the old one"


def test_what_fails_leaves_the_old_file(run: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    page = run.with_suffix(".html")
    page.write_text("the old one")
    before = listed(run.parent)
    monkeypatch.setattr(export, "page_of", lambda record: 1 / 0)
    assert show([str(run)], exports=Exports(str(page))) == 2
    assert capfd.readouterr().err == f"error: {page}: cannot be made: ZeroDivisionError: division by zero\n"
    assert page.read_text() == "the old one"
    assert listed(run.parent) == before


def test_a_full_disk_is_one_line(run: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write", full)
    assert show([str(run)], exports=Exports(str(run.with_suffix(".html")))) == 2
    assert capfd.readouterr().err == f"error: {run.with_suffix('.html')}: cannot be written: No space left on device\n"


def test_without_the_extra_one_line_names_it(run: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "vl_convert" else object())
    assert show([str(run)], exports=Exports(str(run.with_suffix(".html")))) == 2
    assert capfd.readouterr().err == f"error: {library.EXTRA}\n"
    # the trace does not need it
    assert show([str(run)], True, Exports(trace=str(run.with_suffix(".trace")))) == 0


def test_a_trace_of_an_older_record_cannot_be_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, trace = tmp_path / "run.json", tmp_path / "trace.json"
    storage.write(records.cnn(), str(run))
    assert show([str(run)], exports=Exports(trace=str(trace))) == 2
    assert "made by an older devlint" in capfd.readouterr().err
    assert not trace.exists()


def shown_sources(record: Record, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[int, str]]:
    found: list[Record] = []

    def page(record: Record, cache: str | None) -> str:
        found.append(record)
        return ""

    monkeypatch.setattr("devlint.report.html.page", page)
    export.page_of(record)
    return found[0].sources


def test_a_file_that_is_still_the_same_is_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("a = 1\nb = 2\nc = 3\n")
    gone = {"/nowhere/gone.py": {7: "x"}}
    record = replace(records.cnn(), sources={str(script): {2: "b = 2"}, **gone})
    assert shown_sources(record, monkeypatch) == {str(script): {1: "a = 1", 2: "b = 2", 3: "c = 3"}, **gone}
    # a file of which the record has nothing is nobody's business
    assert shown_sources(replace(record, sources={str(script): {}}), monkeypatch) == {str(script): {}}
    script.write_text("a = 1\nb = 3\nc = 3\n")
    assert shown_sources(record, monkeypatch) == record.sources


def test_of_very_long_files_only_the_lines_of_the_record_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_MOST_LINES", 5)
    files = {str(tmp_path / name): {1: "a = 1"} for name in ("first.py", "second.py")}
    for path in files:
        Path(path).write_text("a = 1\nb = 2\nc = 3\n")
    shown = shown_sources(replace(records.cnn(), sources=files), monkeypatch)
    assert [len(lines) for lines in shown.values()] == [3, 1]


@simulates
def test_an_audit_writes_them_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    # a module of the script by the name of a library of the page's
    (tmp_path / "jinja2.py").write_text("raise ImportError('not this one')")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path / "runs")}
    (tmp_path / "runs").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "audit", "--simulate", "--html", "run.html", "--trace", "trace.json",
         "--output", "run.json", "--exit-zero", "-q", "train.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    record = storage.read(str(tmp_path / "run.json"))
    steps = [each.number for each in record.processes[0].timeline if each.phase == "train" and each.number]
    assert steps == [1, 2, 3, 4]
    whole = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "x.to(&#34;cuda&#34;)" in whole
    assert "vegaEmbed" in whole
    names = [event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]
    assert names.count('H2D x.to("cuda")') == 4
    # the same as from the record, once more
    assert show([str(tmp_path / "run.json")], True, Exports(trace=str(tmp_path / "again.json"))) == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "trace.json").read_bytes()


SCRIPT = """\
import os
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (x,) in DataLoader(TensorDataset(torch.rand(8, 4)), 2):
    model(x.to("cuda")).sum().backward()
    optimizer.step()
os.chdir("/")
"""


@pytest.mark.parametrize(
    ("option", "path", "line"),
    [
        ("--html", "gone/run.html", "gone: No such directory"),
        ("--output", "train", "train: is read by this very run, and would be lost"),
        ("--trace", "model.py", "model.py: holds code, which would be lost"),
    ],
)
def test_an_audit_refuses_before_the_script_runs(tmp_path: Path, option: str, path: str, line: str) -> None:
    for name in ("train", "model.py"):
        (tmp_path / name).write_text("print('it ran')")
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "audit", "--simulate", option, path, "train"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {option}: {line}\n")
    assert {each.read_text() for each in tmp_path.iterdir()} == {"print('it ran')"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run.json"], "--compare takes two files, BEFORE and AFTER, and neither --output, --html nor --trace"),
        (
            ["run.json", "run.json", "--html", "x"],
            "--compare takes two files, BEFORE and AFTER, and neither --output, --html",
        ),
        (["run.json", "gone.json"], "gone.json: No such file or directory"),
        (
            ["run.json", "broken.json"],
            "broken.json: neither a record of devlint nor a trace",
        ),
        (["newer.json", "run.json"], f"newer.json: written by a newer devlint (format {FORMAT + 1}"),
    ],
)
def test_what_cannot_be_compared_is_one_line(run: Path, arguments: list[str], line: str) -> None:
    (run.parent / "broken.json").write_text('{"format": 1')
    (run.parent / "newer.json").write_text(json.dumps({"format": FORMAT + 1, "processes": []}))
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "report", "--compare", *arguments],
        cwd=run.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {line}")
    assert done.stderr.count("\n") == 1
    assert not (run.parent / "x").exists()
