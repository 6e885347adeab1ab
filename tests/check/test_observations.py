"""`devlint check --evidence`: what a run has seen teaches the reader."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from devlint.auditor.judgement.evidence import Run
from devlint.auditor.judgement.teaching import observations
from devlint.auditor.running import storage
from devlint.cli import main
from devlint.observation import Observation, Sight
from devlint.record import Process, Record
from tests.auditor.running import ROOT, audit

PAGE = Path(ROOT) / "docs" / "teaching.md"
BRANCH = """\
import torch


def smooth(values, width, weights=None):
    if weights is None:
        return values[..., :width]
    kernel = torch.ones(width) / width
    return values * kernel
"""


def sight(
    name: str, *devices: str, kinds: tuple[str, ...] = ("tensor",), scalar: bool = False, calls: int = 40
) -> Sight:
    return Sight(name=name, kinds=kinds, devices=devices, scalar=scalar, calls=calls)  # type: ignore[arg-type]


def observed(function: str, line: int, *sights: Sight) -> Observation:
    return Observation(file="", function=function, line=line, calls=40, sights=sights)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def given(folder: Path) -> Callable[..., None]:
    """A file ``code.py``, and the record ``run.json`` of a run of it."""

    def write(text: str, *found: Observation, device: str = "cuda:0", name: str = "code.py") -> None:
        file = folder / name
        file.write_text(text, encoding="utf-8")
        process = Process(pid=1, device=device, observations=tuple(replace(one, file=str(file)) for one in found))
        digests = {str(file): hashlib.sha256(file.read_bytes()).hexdigest()}
        record = Record(directory=str(folder), processes=(process,), digests=digests, findings=())
        storage.write(record, str(folder / "run.json"))

    return write


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(main, [*arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def check(*arguments: str, evidence: bool = True) -> list[dict[str, Any]]:
    given = ["--evidence", "run.json"] if evidence else []
    return json.loads(invoke("check", "--isolated", "--output-format", "json", "code.py", *given, *arguments).stdout)


def brief(found: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(one["code"], one["location"]["row"], one["severity"]) for one in found]


def labels(found: dict[str, Any]) -> list[str]:
    return [place["message"] for place in found["related"]]


def test_a_branch_that_the_run_did_not_take_is_judged(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
    assert check(evidence=False) == []
    (found,) = check()
    assert brief([found]) == [("DVL101", 8, "warning")]
    assert found["message"].startswith("`kernel` is on the CPU but `values` is on `cuda:0`")
    assert "`values` was on `cuda:0` in run.json (40 calls)" in labels(found)
    # a run knows which device it was, the code should not name it
    assert "values.device" in found["help"]
    assert "cuda" not in found["help"]


def test_the_report_says_so(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0", calls=1)))
    assert (
        "`values` was on `cuda:0` in run.json (1 call)"
        in invoke("check", "--isolated", "code.py", "--evidence", "run.json").stdout
    )


def test_on_the_cpu_there_is_nothing_wrong(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cpu")))
    assert check() == []


@pytest.mark.parametrize(
    "seen",
    [
        sight("values", "cuda:0", "cpu"),
        sight("values", "cuda:0", kinds=("tensor", "other")),
        sight("values", "cuda:0", kinds=("module",)),
        sight("values", "meta"),
    ],
)
def test_what_was_not_always_the_same_teaches_nothing(given, seen: Sight) -> None:
    given(BRANCH, observed("smooth", 4, seen))
    assert check() == []


def test_of_several_accelerators_it_is_on_one(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0", "cuda:1")))
    (found,) = check()
    assert "`values` was on `cuda` in run.json (40 calls)" in labels(found)


def test_one_without_dimensions_may_meet_an_accelerator(given) -> None:
    text = "import torch\n\n\ndef scaled(values, by, flag):\n    if flag:\n        return values * by\n"
    there = sight("values", "cuda:0")
    given(text, observed("scaled", 4, there, sight("by", "cpu", scalar=True)))
    assert check() == []
    given(text, observed("scaled", 4, there, sight("by", "cpu")))
    assert brief(check()) == [("DVL101", 6, "warning")]


def test_a_file_that_has_changed_since_is_read_as_without(given, folder: Path) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
    (folder / "code.py").write_text(BRANCH + "\n# later\n", encoding="utf-8")
    assert check() == []


def test_a_run_without_an_accelerator_teaches_nothing(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")), device="")
    assert check() == []


def test_another_function_of_that_name_is_another(given) -> None:
    given(BRANCH, observed("smooth", 5, sight("values", "cuda:0")))
    assert check() == []


def test_a_function_is_known_by_its_first_decorator(given) -> None:
    text = BRANCH.replace("def smooth", "@torch.no_grad()\ndef smooth")
    given(text, observed("smooth", 4, sight("values", "cuda:0")))
    assert brief(check()) == [("DVL101", 9, "warning")]


def test_where_the_code_says_otherwise_it_is_right(given) -> None:
    text = BRANCH + "\n\ndef main():\n    smooth(torch.ones(8), 3)\n"
    given(text, observed("smooth", 4, sight("values", "cuda:0")))
    assert check() == []


def test_where_the_code_says_the_same_it_counts(given) -> None:
    text = BRANCH + "\n\ndef main():\n    smooth(torch.ones(8).cuda(), 3)\n"
    given(text, observed("smooth", 4, sight("values", "cuda:0")))
    assert ("DVL101", 8, "warning") in brief(check())


@pytest.mark.parametrize(
    "test", ["values.is_cuda", "values.device.type == 'cpu'", "values.device != weights.device", "use_gpu"]
)
def test_where_the_code_asks_for_the_device_nothing_is_assumed(given, test: str) -> None:
    text = BRANCH.replace("weights is None", test)
    given(text, observed("smooth", 4, sight("values", "cuda:0")))
    assert check() == []


MODULE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.total = make()

    def forward(self, x, mask=None):
        if mask is not None:
            x = x * torch.ones(4)
        return self.layer(x)

    def decay(self):
        self.total = self.total * torch.full((4,), 0.9)
"""


def test_hints_become_warnings(given) -> None:
    text = "import torch\n\n\ndef mix(x):\n    y = x.softmax(0)\n    return y * torch.ones(4)\n"
    given(text)
    assert check(evidence=False) == []
    assert brief(check("--select", "DVL103", evidence=False)) == [("DVL103", 6, "info")]
    given(text, observed("mix", 4, sight("x", "cuda:0")))
    assert [(row, severity) for _, row, severity in brief(check())] == [(6, "warning")]


def test_what_the_run_had_on_the_cpu_is_silent(given) -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Augment(nn.Module):\n    def forward(self, x):\n"
    text += "        return x + torch.randn(4)\n"
    given(text)
    assert brief(check("--select", "DVL103", evidence=False)) == [("DVL103", 7, "info")]
    given(text, observed("forward", 6, sight("x", "cpu")))
    assert check("--select", "DVL103") == []


def test_an_attribute_is_where_all_methods_found_it(given) -> None:
    there = sight("self.total", "cuda:0")
    given(MODULE, observed("forward", 11, there))
    (found,) = (one for one in check() if one["location"]["row"] == 17)
    assert (found["code"], found["severity"]) == ("DVL101", "warning")
    assert "`self.total` was on `cuda:0` in run.json (40 calls)" in labels(found)
    given(MODULE, observed("forward", 11, there), observed("decay", 16, sight("self.total", "cpu")))
    assert [one for one in check() if one["location"]["row"] == 17] == []


BRANCHES = {
    "method": """\
import torch


class Kept:
    def __init__(self, make):
        self.kept = make()

    def update(self, x, flag):
        if flag:
            self.kept = torch.ones(4)
        return self.kept + x
""",
    "function in it": """\
import torch


class Kept:
    def __init__(self, make):
        self.kept = make()

    def update(self, x, flag):
        def chosen():
            if flag:
                self.kept = torch.ones(4)
            return self.kept + x

        return chosen()
""",
}


@pytest.mark.parametrize("text", BRANCHES.values(), ids=BRANCHES)
@pytest.mark.parametrize(
    ("kept", "x", "said"),
    [
        ("cpu", "cpu", ""),
        ("cpu", "cuda:0", "`self.kept` is on the CPU but `x` is on `cuda:0`; this raises"),
        ("cuda:0", "cpu", "`x` is on the CPU but `self.kept` is on `cuda:0` or the CPU"),
        # that both hang on one setting is what the run cannot show
        ("cuda:0", "cuda:0", ""),
    ],
)
def test_an_attribute_that_a_branch_assigns_is_else_where_it_was(
    given: Callable[..., None], text: str, kept: str, x: str, said: str
) -> None:
    given(text, observed("update", 8, sight("self.kept", kept), sight("x", x)))
    messages = [one["message"] for one in check()]
    assert len(messages) == bool(said)
    assert all(message.startswith(said) for message in messages)


def test_while_it_is_made_an_object_keeps_nothing_of_what_was_seen_later(given: Callable[..., None]) -> None:
    text = """\
import torch
from library import Base


class Kept(Base):
    def __init__(self, make):
        super().__init__(make)
        self.prepare()
        self.scaled = self.kept * torch.ones(4)

    def prepare(self):
        self.ready = True

    def update(self, x):
        return self.kept * torch.ones(4)
"""
    given(text, observed("update", 14, sight("self.kept", "cuda:0")))
    assert brief(check()) == [("DVL101", 15, "warning")]


def test_beside_a_setting_the_cpu_is_no_contradiction(given) -> None:
    # where the run had the argument on the CPU, it may have been told to work there
    text = "import torch\n\n\ndef work(x, args):\n    return x + torch.ones(4, device=args.device)\n"
    given(text, observed("work", 4, sight("x", "cpu")))
    assert check() == []


def test_nothing_is_said_to_be_redundant(given) -> None:
    # the run shows that it can be there, and not that it always is
    text = "import torch\n\n\ndef work(x: torch.Tensor):\n    return x.to('cuda:0'), x.cpu()\n"
    given(text, observed("work", 4, sight("x", "cuda:0")))
    assert not [one for one in check("--select", "DVL201") if one["code"] == "DVL201"]


def test_items_of_a_container_are_where_they_were(given) -> None:
    text = "import torch\n\n\ndef work(items, flag):\n    if flag:\n        return items[0] * torch.ones(4)\n"
    given(text, observed("work", 4, sight("items", "cuda:0", kinds=("tensors",))))
    assert brief(check()) == [("DVL101", 6, "warning")]


def test_a_moved_argument_is_a_tensor_by_what_was_seen(given) -> None:
    text = "import torch\n\n\ndef work(x, y):\n    z = x.to('cuda')\n    return z * torch.ones(4)\n"
    given(text)
    assert [one for one in check(evidence=False) if one["code"] == "DVL101"] == []
    given(text, observed("work", 4, sight("x", "cpu")))
    (found,) = (one for one in check() if one["code"] == "DVL101")
    assert "`x` was on the CPU in run.json (40 calls)" in labels(found)


def test_standard_input(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
    arguments = ["check", "--isolated", "--stdin-filename", "code.py", "--evidence", "run.json", "-"]
    assert "DVL101" in CliRunner().invoke(main, arguments, input=BRANCH).stdout
    assert "DVL101" not in CliRunner().invoke(main, arguments, input=BRANCH + "\n").stdout


def test_the_cache_neither_gives_nor_keeps_it(given) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
    for evidence, expected in ((False, 0), (True, 1), (False, 0), (True, 1)):
        assert len(check(evidence=evidence)) == expected


def test_the_run_may_have_been_elsewhere(given, folder: Path) -> None:
    given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
    text = (folder / "run.json").read_text(encoding="utf-8").replace(str(folder), "/home/somebody/project")
    (folder / "run.json").write_text(text, encoding="utf-8")
    assert brief(check()) == [("DVL101", 8, "warning")]


def test_ranks_are_taken_together(folder: Path) -> None:
    def process(rank: int, *sights: Sight) -> Process:
        seen = replace(observed("smooth", 4, *sights), file="code.py")
        return Process(pid=rank, role="rank", rank=rank, device=f"cuda:{rank}", observations=(seen,))

    record = Record(processes=(process(0, sight("values", "cuda:0")), process(1, sight("values", "cuda:1"))))
    found = observations(record, "code.py", "run.json")
    assert found is not None
    values = found.functions["smooth", 4]["values"]
    assert (str(values.place), values.calls, values.sized) == ("`cuda`", 80, True)
    assert observations(record, "other.py", "run.json") is None


def test_a_record_keeps_what_was_seen(given, folder: Path) -> None:
    seen = observed("smooth", 4, sight("values", "cuda:0"), sight("return", "cuda:0"))
    given(BRANCH, seen)
    (process,) = storage.read(str(folder / "run.json")).processes
    assert process.observations == (replace(seen, file=str(folder / "code.py")),)
    assert Run.read("run.json").observations("code.py") is not None
    assert Run.read("run.json").observations(os.path.join("no", "such.py")) is None


class TestWhere:
    def test_both_are_told(self, given) -> None:
        given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
        text = invoke("where", "code.py:8:values", "--evidence", "run.json").stdout
        assert text.startswith(
            "`values` is wherever the caller keeps it; `values` was on `cuda:0` in run.json (40 calls)\n"
        )
        assert "in run.json" not in invoke("where", "code.py:8:values").stdout

    def test_where_the_code_says_nothing(self, given) -> None:
        given(MODULE, observed("decay", 16, sight("self.total", "cuda:0")))
        text = invoke("where", "code.py:17:self.total", "--evidence", "run.json").stdout
        assert "the code does not say where `self.total` is; `self.total` was on `cuda:0` in run.json" in text

    def test_for_programs(self, given) -> None:
        given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
        arguments = ["where", "code.py:8", "--evidence", "run.json", "--output-format", "json"]
        found = {one["name"]: one["observed"] for one in json.loads(invoke(*arguments).stdout)}
        assert found == {"values": "`values` was on `cuda:0` in run.json (40 calls)", "kernel": None}

    def test_the_configuration_names_a_record(self, given, folder: Path) -> None:
        given(BRANCH, observed("smooth", 4, sight("values", "cuda:0")))
        (folder / "pyproject.toml").write_text('[tool.devlint]\nevidence = "run.json"\n', encoding="utf-8")
        assert "in run.json" in invoke("where", "code.py:8:values").stdout
        (folder / "run.json").unlink()
        assert "in run.json" not in invoke("where", "code.py:8:values").stdout

    def test_what_is_wrong_with_a_record_is_said(self, given) -> None:
        given(BRANCH)
        result = invoke("where", "code.py:8", "--evidence", "nothing.json")
        assert (result.exit_code, "nothing.json" in result.stderr) == (2, True)

    def test_self_is_where_it_was(self, given) -> None:
        given(MODULE, observed("forward", 11, sight("self", "cuda:0", kinds=("module",))))
        text = invoke("where", "code.py:11:self", "--evidence", "run.json").stdout
        assert "`self` was on `cuda:0` in run.json (40 calls)" in text


class TestThePage:
    """What docs/teaching.md shows, with a record as the run leaves it that stands there."""

    @pytest.fixture(autouse=True)
    def written(self, given) -> None:
        if not PAGE.is_file():
            pytest.skip("the documentation is not part of this distribution")
        (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        given(script, observed("smooth", 11, sight("values", "cuda:0", calls=1)), name="smooth.py")

    def shown(self) -> list[str]:
        return re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    def test_check(self) -> None:
        done = invoke("check", "--isolated", "smooth.py", "--evidence", "run.json")
        assert done.stdout.partition("\n\n")[0] + "\n" == self.shown()[0]
        assert (
            "DVL103 forward-factory-without-device: smooth.py:15" in invoke("check", "--isolated", "smooth.py").stdout
        )

    def test_where(self) -> None:
        assert (
            invoke("where", "smooth.py:13:values", "--evidence", "run.json").stdout.rstrip("\n") + "\n"
            == self.shown()[1]
        )

    @pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="Python itself tells of calls from 3.12")
    def test_the_run(self, folder: Path) -> None:
        before = storage.read("run.json").processes[0].observations[0].sights[0]
        done = audit(folder, "--simulate", "--isolated", "--exit-zero", "--output", "run.json", "smooth.py")
        assert done.code == 0, done.err
        (seen,) = (one for one in storage.read("run.json").processes[0].observations if one.function == "smooth")
        assert seen.sights[0] == before


def test_what_the_code_shows_by_itself_does_not_rest_on_the_run(given) -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor, device):\n    return torch.ones(3) + x.to(device)\n"
    given(text)
    (alone,) = check(evidence=False)
    for named in ("cuda:0", "cpu"):
        given(text, observed("f", 4, sight("x", named), sight("device", named, kinds=("device",))))
        (found,) = check()
        assert (found["severity"], found["message"]) == (alone["severity"], alone["message"])
        assert labels(found) == labels(alone)


def test_what_another_method_has_found_is_said_where_only_its_kind_counts(given) -> None:
    text = """\
import torch


class Kept:
    def __init__(self, make):
        self.kept = make()

    def update(self, x):
        self.kept = x

    def late(self):
        rest = self.kept.cpu()
        return torch.ones(4, device="cuda") * rest
"""
    given(text)
    assert not [one for one in check(evidence=False) if one["code"] == "DVL101"]
    given(text, observed("update", 8, sight("self.kept", "cpu")))
    (found,) = (one for one in check() if one["code"] == "DVL101")
    assert "`self.kept` was on the CPU in run.json (40 calls)" in labels(found)
