"""`devlint check --evidence`: a run laid beside what was read."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from devlint.auditor.judgement.evidence import _MEANING, Run
from devlint.auditor.running import storage
from devlint.cli import main
from devlint.finding import Evidence, Finding, Severity, Span
from devlint.record import Event, Frame, Loader, Mismatch, Optimizer, Process, Record, Steps, Wrapper
from devlint.rules.registry import registry
from devlint.sites import proof
from tests.auditor.running import audit
from tests.report import consumers

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def drop(x: torch.Tensor):
    x.to(device)


def never(y: torch.Tensor):
    y.to(device)


def train():
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.rand(64, 4), torch.rand(64, 2))
    weight, unused = torch.ones(2), torch.ones(3)
    unused.to(device)
    for x, y in DataLoader(data, batch_size=8):
        out = model(x.to(device, non_blocking=True)) - y.to(device, non_blocking=True)
        loss = (out * weight.to(device)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    drop(out)


train()
"""


def check(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["check", "--isolated", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def found(*arguments: str) -> list[tuple[str, int, dict[str, Any]]]:
    entries = json.loads(check("--output-format", "json", *arguments).stdout)
    return [(entry["code"], entry["location"]["row"], entry["evidence"]) for entry in entries]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script, and the record of one simulated run of it."""
    from tests.simulator.available import need_simulation

    need_simulation()
    folder = tmp_path_factory.mktemp("run")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = audit(folder, "--simulate", "--isolated", "--exit-zero", "--output", "run.json", "train.py")
    assert done.code == 0, done.err
    return folder


class TestARun:
    @pytest.fixture(autouse=True)
    def inside(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A copy of the folder, under another name."""
        for file in ("train.py", "run.json"):
            (tmp_path / file).write_bytes((folder / file).read_bytes())
        monkeypatch.chdir(tmp_path)

    def test_findings_are_confirmed_contradicted_or_not_reached(self) -> None:
        results = found("train.py", "--evidence", "run.json")
        assert [(code, row, evidence["verdict"]) for code, row, evidence in results] == [
            ("DVL301", 22, "confirmed"),  # two copies a step, 16 rows of floats
            ("DVL202", 24, "confirmed"),  # one copy a step
            ("DVL102", 21, "confirmed"),  # one copy
            ("DVL102", 13, "not reached"),
            ("DVL102", 9, "contradicted"),  # what it was called with was on the device
        ]

    def test_what_was_measured_is_told(self) -> None:
        evidence = {code: evidence for code, _, evidence in found("train.py", "--evidence", "run.json")}
        # 8 steps with 8 rows of 4 floats and 8 of 2
        measured = evidence["DVL301"]["measured"]
        assert (measured["calls"], measured["bytes"], measured["per_step"]) == (16, 8 * (128 + 64), 2)
        assert evidence["DVL202"]["measured"]["repeats"] == 7
        # DVL102 stands for its last one, in which the input came back
        assert evidence["DVL102"] == {
            "verdict": "contradicted",
            "note": f"there was {proof.ONLY_IN_PLACE}",
            "measured": evidence["DVL102"]["measured"],
        }

    def test_as_text(self) -> None:
        text = check("train.py", "--evidence", "run.json").stdout
        assert "  = run: confirmed: 16 calls, 2 per step, 192 B per step\n" in text
        assert "  = run: confirmed: 1 call, 12 B\n" in text
        assert "  = run: not reached\n" in text
        assert f"  = run: contradicted: there was {proof.ONLY_IN_PLACE}\n" in text
        assert "By run.json: 3 confirmed, 1 not reached, 1 contradicted.\n" in text
        assert "run:" not in check("train.py").stdout

    def test_in_a_line_and_as_an_annotation(self) -> None:
        lines = check("train.py", "--evidence", "run.json", "--output-format", "concise").stdout.splitlines()
        assert [line.partition(" [")[2] for line in lines] == [
            "confirmed: 16 calls, 2 per step, 192 B per step]",
            "confirmed: 8 calls, 1 per step, 8 B per step, 7 repeated]",
            "confirmed: 1 call, 12 B]",
            "not reached]",
            f"contradicted: there was {proof.ONLY_IN_PLACE}]",
        ]
        # what a run cannot tell of is as it is without one
        plain = check("train.py", "--output-format", "concise").stdout
        assert sorted(line.partition(" [")[0] for line in lines) == sorted(plain.splitlines())
        first, *_ = check("train.py", "--evidence", "run.json", "--output-format", "github").stdout.splitlines()
        assert "%0Arun: confirmed: 16 calls, 2 per step, 192 B per step%0Ahelp: " in first

    def test_as_sarif(self) -> None:
        text = check("train.py", "--evidence", "run.json", "--output-format", "sarif").stdout
        first, *_, last = consumers.sarif(text)["results"]
        assert first["properties"]["evidence"]["verdict"] == "confirmed"
        assert first["properties"]["evidence"]["measured"]["calls"] == 16
        assert "\nrun: confirmed: 16 calls, 2 per step, 192 B per step\n" in first["message"]["text"]
        assert last["properties"]["evidence"]["verdict"] == "contradicted"

    def test_of_a_file_that_has_changed_nothing_is_claimed(self) -> None:
        Path("train.py").write_text(SCRIPT.replace("lr=0.1", "lr=0.2"), encoding="utf-8")
        results = found("train.py", "--evidence", "run.json")
        assert {evidence["verdict"] for *_, evidence in results} == {"undecided"}
        text = check("train.py", "--evidence", "run.json").stdout
        assert text.count("= run: undecided: the file has changed since the run\n") == 5
        # in the order in which they are found
        assert [row for _, row, _ in results] == [9, 13, 21, 22, 24]

    def test_a_record_without_digests_is_compared_line_by_line(self) -> None:
        document = json.loads(Path("run.json").read_text())
        assert len(document.pop("digests")) == 1
        Path("run.json").write_text(json.dumps(document))
        assert found("train.py", "--evidence", "run.json")[0][2]["verdict"] == "confirmed"
        Path("train.py").write_text(SCRIPT.replace("lr=0.1", "lr=0.2"), encoding="utf-8")
        assert found("train.py", "--evidence", "run.json")[0][2]["verdict"] == "undecided"

    def test_a_file_that_the_run_does_not_name_was_not_reached(self) -> None:
        code = "import torch\n\n\ndef drop(x: torch.Tensor, device):\n    x.to(device)\n"
        Path("other.py").write_text(code, encoding="utf-8")
        arguments = ("other.py", "--evidence", "run.json")
        assert [evidence["verdict"] for *_, evidence in found(*arguments)] == ["not reached"]
        Path("train.py").unlink()  # of what is not here either, the run may have been as well
        document = json.loads(Path("run.json").read_text().replace("train.py", "lost.py"))
        Path("run.json").write_text(json.dumps(document))
        assert "= run: undecided: the run was of other files\n" in check(*arguments).stdout

    def test_a_notebook_is_in_no_record(self) -> None:
        cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": []}
        source = "import torch\nx = torch.ones(1)\nx.to('cuda')\n"
        notebook = {"cells": [{**cell, "source": source}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        Path("book.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        results = found("book.ipynb", "--select", "DVL102", "--evidence", "run.json")
        assert [evidence["verdict"] for *_, evidence in results] == ["undecided"]

    def test_what_no_run_can_tell_says_so(self) -> None:
        """Every verdict that is counted has its line."""
        code = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"
        Path("old.py").write_text(code, encoding="utf-8")
        text = check("old.py", "--select", "DVL701", "--evidence", "run.json").stdout
        assert "  = run: undecided: no run shows it\n" in text
        assert "1 undecided" in text

    def test_the_standard_input_is_compared_too(self) -> None:
        arguments = ["check", "--isolated", "-", "--stdin-filename", "train.py", "--evidence", "run.json"]
        for code, expected in ((SCRIPT, "3 confirmed"), (f"{SCRIPT}\n", "5 undecided")):
            assert expected in CliRunner().invoke(main, arguments, input=code).stdout


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "run.json: No such file or directory"),
            (
                "{",
                "run.json: neither a record of devlint nor a trace",
            ),
            ("[]", "run.json: neither a record of devlint nor a trace"),
            ('{"format": 99, "processes": []}', "run.json: written by a newer devlint (format 99"),
            ('{"format": 1, "processes": 3}', "run.json: not a record of devlint"),
        ],
    )
    def test_a_broken_record_is_one_line(self, content: str | None, message: str, tree) -> None:
        tree({"a.py": "x", **({} if content is None else {"run.json": content})})
        result = check("a.py", "--evidence", "run.json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: --evidence: {message}")
        assert result.stderr.count("\n") == 1

    def test_what_it_cannot_go_with(self, tree) -> None:
        tree({"a.py": "x"})
        assert "--diff makes none" in check("a.py", "--diff", "--evidence", "run.json").stderr
        assert check("a.py", "--evidence", "").stderr == "error: --evidence: no file is named\n"


HERE = Frame(file="/src/a.py", line=3, function="f", column=8, end_line=3, end_column=20)
SPAN = Span(3, 9, 3, 21)


def copy(source: str = "cpu", target: str = "cuda:0", **more: Any) -> Event:
    fields: dict[str, Any] = {"kind": "copy", "name": "copy_", "phase": "train", "frame": HERE, "calls": 4, "steps": 4}
    return Event(**{**fields, "source": source, "target": target, **more})


def other(kind: Any, **more: Any) -> Event:
    return Event(**{"kind": kind, "name": "x", "phase": "train", "frame": HERE, "calls": 1, "steps": 1, **more})


MOVE = other("move", source="cuda:0", target="cuda:0")
LOADER = Loader(name="torch.utils.data.DataLoader", frame=HERE, device="cpu", training=True)
OPTIMIZER = Optimizer(name="Adam", frame=HERE, made_on=("cuda:0",), stepped_on=("cuda:0",))


def witness(process: Process) -> Run:
    """The run of a script that is taken to be here."""
    run = Run(Record(complete=True, directory="/src", processes=(process,)))
    run._files["/src/a.py"] = "/src/a.py", True
    run.__dict__["_is_here"] = True
    return run


@pytest.mark.parametrize(
    ("code", "seen", "verdict"),
    [
        ("DVL101", [Mismatch(frame=HERE)], "confirmed"),
        ("DVL101", [copy()], "contradicted"),
        ("DVL101", [copy(), Mismatch(frame=HERE)], "confirmed"),
        ("DVL101", [], "undecided"),
        ("DVL102", [copy(), MOVE], "confirmed"),
        ("DVL102", [MOVE], "contradicted"),
        ("DVL102", [], "not reached"),
        ("DVL106", [copy()], "confirmed"),
        ("DVL109", [OPTIMIZER], "contradicted"),
        ("DVL109", [replace(OPTIMIZER, stepped_on=())], "undecided"),
        ("DVL109", [], "not reached"),
        ("DVL201", [MOVE], "confirmed"),
        ("DVL201", [MOVE, copy()], "contradicted"),
        ("DVL202", [copy(repeats=1)], "confirmed"),
        ("DVL202", [copy()], "contradicted"),
        ("DVL202", [copy(steps=2)], "undecided"),
        ("DVL202", [copy("cuda:0", "cpu")], "not reached"),
        ("DVL203", [copy()], "confirmed"),
        ("DVL203", [MOVE], "contradicted"),
        ("DVL204", [copy(pinned=True, blocking=True)], "confirmed"),
        ("DVL204", [copy(pinned=False, blocking=True)], "contradicted"),
        ("DVL204", [copy(pinned=True, blocking=False)], "undecided"),
        ("DVL205", [copy("cuda:0", "cpu", unwaited=1)], "confirmed"),
        ("DVL205", [copy("cuda:0", "cpu")], "undecided"),
        ("DVL206", [other("pin")], "confirmed"),
        ("DVL301", [LOADER, copy(frame=None, pinned=False, loader=0)], "confirmed"),
        ("DVL301", [replace(LOADER, pinned=True)], "contradicted"),
        ("DVL301", [LOADER], "undecided"),
        ("DVL301", [replace(LOADER, frame=None)], "not reached"),
        ("DVL302", [LOADER], "contradicted"),
        ("DVL302", [replace(LOADER, device="")], "undecided"),
        ("DVL305", [LOADER], "confirmed"),
        ("DVL305", [replace(LOADER, workers=2)], "contradicted"),
        ("DVL401", [copy("cuda:0", "cpu", blocking=True)], "confirmed"),
        ("DVL401", [other("sync", phase="eval")], "undecided"),
        ("DVL401", [copy("cuda:0", "cpu", blocking=False)], "not reached"),
        ("DVL404", [other("call")], "confirmed"),
        ("DVL404", [other("call", phase="setup")], "undecided"),
        ("DVL501", [Wrapper(name="DataParallel", frame=HERE)], "confirmed"),
        ("DVL502", [Wrapper(name="DistributedDataParallel", frame=HERE)], "undecided"),
        ("DVL601", [copy()], "undecided"),  # that it fails elsewhere, no run here can tell
    ],
)  # fmt: skip
def test_what_speaks_for_and_against_a_rule(code: str, seen: list[Any], verdict: str) -> None:
    """As each rule says in its data, of what an audit's own rules do not judge since it happened too seldom."""
    parts: dict[str, tuple[Any, ...]] = {
        name: tuple(one for one in seen if isinstance(one, kind))
        for name, kind in (
            ("events", Event),
            ("loaders", Loader),
            ("optimizers", Optimizer),
            ("wrappers", Wrapper),
            ("mismatches", Mismatch),
        )
    }
    process = Process(pid=1, steps=Steps(train=4), **parts)
    run = witness(process)
    run._record = replace(run._record, findings=())
    finding = Finding(code, registry()[code].name, Severity.WARNING, "m", "/src/a.py", SPAN)
    (weighed,) = run.weigh([finding], {})
    assert weighed.evidence is not None
    assert weighed.evidence.verdict == verdict


def test_another_place_in_the_line_is_not_meant() -> None:
    beside = replace(HERE, column=30, end_column=40)
    process = Process(pid=1, steps=Steps(train=4), events=(copy(frame=beside),))
    run = witness(process)
    finding = Finding("DVL102", "discarded-move", Severity.WARNING, "m", "/src/a.py", SPAN)
    (weighed,) = run.weigh([finding], {})
    assert weighed.evidence == Evidence("not reached")
    # before Python 3.11 only the line is known
    line = Frame(file="/src/a.py", line=3, function="f")
    run._record = replace(run._record, processes=(replace(process, events=(copy(frame=line),)),), findings=())
    (weighed,) = run.weigh([finding], {})
    assert weighed.evidence is not None
    assert weighed.evidence.verdict == "confirmed"


def test_what_costs_most_comes_first() -> None:
    rows = {1: copy(bytes=10), 2: copy(bytes=10**9), 3: copy(bytes=10, seconds=5.0)}
    events = tuple(
        replace(event, frame=replace(HERE, line=row, end_line=row)) for row, event in rows.items()
    )  # fmt: skip
    run = witness(Process(pid=1, events=events))
    finding = Finding("DVL102", "discarded-move", Severity.WARNING, "m", "/src/a.py", SPAN)
    findings = [replace(finding, span=Span(row, 9, row, 21)) for row in (1, 2, 3, 4)]
    assert [finding.span.row for finding in run.weigh(findings, {})] == [3, 2, 1, 4]


def test_the_data_of_the_rules_has_a_meaning() -> None:
    known = {value for name, value in vars(proof).items() if name.isupper() and isinstance(value, str)}
    known -= {*proof.VERDICTS}
    assert known == _MEANING.keys()
    for rule in registry().values():
        if rule.proof is not None:
            words = (*rule.proof.left, *rule.proof.confirm, *rule.proof.contradict)
            assert set(words) <= known, rule.code


def test_a_record_keeps_the_digests_of_what_ran(tmp_path: Path) -> None:
    import hashlib

    from devlint.auditor.judgement.judge import judge

    file = tmp_path / "a.py"
    file.write_bytes(b"x = 1\n")
    frame = Frame(file=str(file), line=1, function="<module>")
    record = Record(complete=True, directory=str(tmp_path), processes=(Process(pid=1, events=(copy(frame=frame),)),))
    judged = judge(record)
    assert judged.digests == {str(file): hashlib.sha256(b"x = 1\n").hexdigest()}
    storage.write(judged, str(tmp_path / "run.json"))
    file.write_bytes(b"x = 2\n")
    again = judge(storage.read(str(tmp_path / "run.json")))
    assert again.digests == judged.digests
    assert os.path.exists(file)


KEPT = """\
import torch


class Keeper:
    def __init__(self):
        self.means = torch.ones(3)

    def f(self, x: torch.Tensor):
        return x.cuda() + self.means


Keeper().f(torch.ones(3))
"""


def test_what_was_inferred_and_has_happened_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint because it hangs on what a method has left in an object; the run was there."""
    monkeypatch.chdir(tmp_path)
    Path("kept.py").write_text(KEPT, encoding="utf-8")
    audit(tmp_path, "--simulate", "--isolated", "--exit-zero", "--output", "run.json", "kept.py")
    given = ("--select", "DVL101", "--output-format", "json", "kept.py")
    for evidence, severity, verdict in (((), "info", None), (("--evidence", "run.json"), "error", "confirmed")):
        (entry,) = json.loads(check(*given, *evidence).stdout)
        assert (entry["severity"], (entry.get("evidence") or {}).get("verdict")) == (severity, verdict)
    # nobody has to ask for the rule
    (entry,) = json.loads(check("--output-format", "json", "kept.py", "--evidence", "run.json").stdout)
    assert (entry["code"], entry["severity"], entry["location"]["row"]) == ("DVL101", "error", 9)
    assert entry["help"]
    assert json.loads(check("--output-format", "json", "kept.py").stdout) == []
    graded = tmp_path / "graded.toml"
    graded.write_text('[tool.devlint.severity]\nDVL101 = "warning"\n', encoding="utf-8")
    done = CliRunner().invoke(main, ["check", "--config", str(graded), *given, "--evidence", "run.json"])
    assert [entry["severity"] for entry in json.loads(done.stdout)] == ["warning"]
