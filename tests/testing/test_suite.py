"""Whole suites on a simulated accelerator."""

from __future__ import annotations

import os
import re
import shlex
import sys

import pytest
import torch  # noqa: F401  # here, since the fixture `pytester` takes away what is imported in a test

from devlint.config.suite import Suite, read
from tests.documented import TEXTS, blocks
from tests.testing.test_plugin import TRAIN, needs_the_simulation, run

pytest_plugins = "pytester"

CONFTEST = """\
import os
import sys

# torch reads it when it is imported, so nobody may have imported it yet
assert "torch" not in sys.modules
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch

DEVICES = [f"cuda:{index}" for index in range(torch.cuda.device_count())]

@pytest.fixture(params=["cpu", *DEVICES])
def device(request):
    return torch.device(request.param)
"""
MODEL = """\
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
        self.heads = [torch.nn.Linear(2, 2)]

    def forward(self, x):
        return self.heads[0](self.layer(x))
"""
SUITE = """\
import os
import subprocess
import sys

import pytest
import torch
import torch.multiprocessing
from training import train
from model import Model

import devlint

CUDA = torch.cuda.is_available()
AUTO = torch.device("cuda" if CUDA else "cpu")

def run(device):
    train(torch.nn.Linear(8, 2).to(device), [(torch.rand(4, 8), torch.rand(4, 2)) for _ in range(3)], device)

def test_train(device):
    assert torch.get_num_threads() == 1
    run(device)

def test_model(device):
    Model().to(device)(torch.rand(4, 8).to(device))

def test_automatic():
    Model().to(AUTO)(torch.rand(4, 8).to(AUTO))

def test_broken():
    assert AUTO.type == "nowhere"

@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_not_simulated():
    torch.cuda.temperature()

def test_raises_what_is_expected():
    with pytest.raises(RuntimeError):
        torch.rand(2, device=AUTO) + torch.rand(2, device="cpu" if CUDA else "meta")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    torch.rand(2, device=AUTO) + torch.rand(2, device="cpu" if CUDA else "meta")

@pytest.mark.device_audit(syncs_per_step=0)
def test_audited():
    assert CUDA
    run("cuda")

@pytest.mark.device_audit(simulate=False)
def test_for_a_real_one():
    pass

@pytest.mark.device_audit(devices=3)
def test_with_more_devices():
    assert torch.cuda.device_count() == 3

def test_audits_itself():
    with devlint.audit(simulate=CUDA) as audited:
        run(AUTO)
    assert len(audited.record.processes) == 1

def test_counted_after_an_audit():
    run(AUTO)

def place(rank, path):
    assert torch.cuda.is_available()
    with open(path, "w") as stream:
        stream.write(str(torch.ones(1, device="cuda").device))

def test_spawned(tmp_path):
    torch.multiprocessing.spawn(place, (str(tmp_path / "place"),))
    assert (tmp_path / "place").read_text() == "cuda:0"

@pytest.mark.skipif(not CUDA, reason="needs a GPU")
def test_started():
    script = "import torch; print(torch.ones(1, device='cuda').device)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "cuda:0\\n"
"""


def lay_out(suite: pytest.Pytester) -> None:
    suite.makeconftest(CONFTEST)
    suite.makepyfile(training=TRAIN, model=MODEL, test_shop=SUITE)


def section(result: pytest.RunResult) -> str:
    """The closing section."""
    text = re.split(r"=+ devlint: .* =+\n", result.stdout.str())[1]
    return re.split(r"^=+ ", text, flags=re.MULTILINE)[0]


def test_a_whole_suite(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    lay_out(suite)
    result = run(suite, "-v", "--devlint-simulate", "--devlint-compare-cpu")
    outcomes = dict(re.findall(r"^test_shop\.py::(\S+) (\w+)", result.stdout.str(), re.MULTILINE))
    assert outcomes == {
        "test_train[cpu]": "PASSED",
        "test_train[cuda:0]": "PASSED",
        "test_model[cpu]": "PASSED",
        "test_model[cuda:0]": "FAILED",
        "test_automatic": "FAILED",
        "test_broken": "FAILED",
        "test_not_simulated": "FAILED",
        "test_raises_what_is_expected": "PASSED",
        "test_expected_to_fail": "XFAIL",
        "test_audited": "FAILED",
        "test_for_a_real_one": "FAILED",
        "test_with_more_devices": "PASSED",
        "test_audits_itself": "PASSED",
        "test_counted_after_an_audit": "PASSED",
        "test_spawned": "PASSED",
        "test_started": "PASSED",
    }
    text = result.stdout.str()
    assert "devlint: 1 simulated CUDA device\n" in text
    assert "devlint/simulator" not in text, "the traceback ends in torch, as on a GPU"
    assert "device_audit: simulate=False: the accelerator of this suite is a simulated one" in text
    assert "syncs_per_step: 1 wait for the device in a training step, none allowed" in text
    closing = section(result)
    errors, _, rest = closing.partition("devlint does not simulate ")
    assert errors.startswith(
        "running 6 failed tests again without an accelerator\n\n"
        "error[DVL101] device-mismatch: 2 tests died when tensors on cpu and cuda:0 met in `heads.0`\n"
        "    (Linear)\n"
        "  --> model.py:10:"
    )
    assert "is on cpu: `heads` is a plain list, so `.to()` did not move the modules in it" in " ".join(errors.split())
    assert "= tests: test_shop.py::test_model[cuda:0] and 1 more\n" in errors
    missing, failures, lines = (part.splitlines() for part in re.split(r"\n\n", rest))
    assert " ".join(missing) == "torch.cuda.temperature: there is no card to ask (test_shop.py::test_not_simulated)"
    assert [line.split("  ")[:2] for line in failures] == [
        ["Fails only with an accelerator (1)"],
        ["", "test_shop.py::test_automatic"],
        ["Fails on the CPU, too (1)"],
        ["", "test_shop.py::test_broken"],
        ["Fails with an accelerator, and does not run on the CPU (3)"],
        ["", "test_shop.py::test_model[cuda:0]"],
        ["", "test_shop.py::test_audited"],
        ["", "test_shop.py::test_for_a_real_one"],
    ]
    # three runs of three steps that no audit of a test's own has counted
    assert lines[:3] == [
        "Lines that copy or wait the most, in all tests",
        "  H2D  12 960 B  training.py:7  loss = (model(x.to(device)) - y.to(device)).pow(2).sum()",
        "  D2H   6  24 B  training.py:8  total += loss.item()",
    ]
    assert lines[-1].startswith("Besides, the tests themselves: ")


@pytest.mark.slow
def test_the_configuration_and_xdist(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    pytest.importorskip("xdist")
    lay_out(suite)
    suite.makepyprojecttoml("[tool.devlint.pytest]\nsimulate = true\ndevices = 2\n")
    chosen = ("-k", "train or model or automatic")
    result = run(suite, "-p", "xdist", "-n", "2", *chosen)
    result.assert_outcomes(passed=4, failed=3)
    closing = section(result)
    assert " 3 tests died when tensors on cpu, cuda:0" not in closing, "those on another device are another error"
    assert "device-mismatch: 2 tests died when tensors on cpu and cuda:0" in closing
    assert "device-mismatch: a test died when tensors on cpu and cuda:1" in closing
    assert "3 tests failed: --devlint-compare-cpu runs them again on the CPU, and tells which pass there\n" in closing
    assert re.search(r"^  D2H +6 +24 B  training\.py:8  total \+= loss\.item\(\)$", closing, re.MULTILINE)
    result = run(suite, "--no-devlint-simulate", *chosen)
    result.assert_outcomes(passed=3)
    assert "devlint:" not in result.stdout.str()


STRICT = """\
import os
import subprocess
import sys

def test_it():
    import torch

    assert torch.ones(1, device="cuda").item() == 1

def test_in_a_process_of_its_own():
    if "INNER" not in os.environ:
        command = [sys.executable, "-m", "pytest", "-W", "error", "test_strict.py"]
        subprocess.run(command, env={**os.environ, "INNER": "1"}, check=True)
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_warnings_may_be_errors(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]) -> None:
    """pytest warns of modules of its plugins that have been imported before it: it finds those of installed ones."""
    needs_the_simulation()
    if workers:
        pytest.importorskip("xdist")
    metadata = suite.mkdir("devlint-0.0.0.dist-info")
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: devlint\nVersion: 0.0.0\n")
    metadata.joinpath("entry_points.txt").write_text("[pytest11]\ndevlint = devlint.testing\n")
    metadata.joinpath("RECORD").write_text("devlint/__init__.py,,\ndevlint/testing/__init__.py,,\n")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTHONPATH", f"{suite.path}{os.pathsep}{os.environ['PYTHONPATH']}")
    suite.makeini("[pytest]\naddopts = -p no:cacheprovider\n")
    suite.makepyfile(test_strict=STRICT)
    result = run(suite, "-W", "error", "--devlint-simulate", *workers)
    result.assert_outcomes(passed=2)
    assert "Warning" not in result.stdout.str() + result.stderr.str()


def test_the_debugger_starts_where_it_would_on_a_gpu(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    suite.makepyfile("import torch\n\ndef test_it():\n    torch.nn.Linear(2, 2)(torch.ones(1, 2, device='cuda'))\n")
    result = suite.run(sys.executable, "-m", "pytest", "--devlint-simulate", "--pdb", stdin=b"p input.device\nc\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*torch/nn/modules/linear.py*forward()", "*device(type='cuda', index=0)"])
    assert "device-mismatch: a test died when tensors on cpu and cuda:0" in section(result)


def test_a_suite_without_failures(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    of_64_mib = "torch.cuda.get_device_properties(0).total_memory == 64 << 20"
    suite.makepyfile(f"import torch\n\ndef test_it():\n    assert {of_64_mib}\n")
    result = run(suite, "--devlint-simulate", "--devlint-compare-cpu", "--devlint-memory=64MiB")
    result.assert_outcomes(passed=1)
    assert section(result) == "No device error was met: no test failed.\n"


def test_what_could_not_be_collected_is_no_test_that_failed(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    suite.makepyfile(
        test_one="import nothing_of_that_name\n",
        test_two="import torch\n\nassert not torch.cuda.is_available()\n",
        test_three="def test_it():\n    pass\n",
        test_four="import torch\n\ntorch.ones(2, device='cuda') @ torch.ones(3, device='cuda')\n",
    )
    in_vain = "--devlint-compare-cpu has no effect: no test has run that it could run again\n"
    for options, more in (([], ""), (["--devlint-compare-cpu"], in_vain)):
        result = run(suite, "--devlint-simulate", *options)
        result.assert_outcomes(errors=3)
        assert section(result) == (
            "No test failed of tensors on different devices.\n\n"
            f"test_four.py and 2 more could not be collected: their tests did not run\n{more}"
        )
        assert "devlint/simulator" not in result.stdout.str()
    result = run(suite, "--no-devlint-simulate", "--devlint-compare-cpu")
    result.stdout.fnmatch_lines(["devlint: --devlint-compare-cpu has no effect with --no-devlint-simulate"])


def test_the_program_that_runs_pytest_has_no_lines(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    script = suite.mkdir("bin") / "pytest"
    script.write_text("import pytest\n\npytest.console_main()\n", encoding="utf-8")
    suite.makepyfile("import torch\n\ndef test_it():\n    x = torch.ones(3, device='cuda')\n    assert x is None\n")
    result = suite.run(sys.executable, str(script), "--devlint-simulate", "--showlocals")
    result.assert_outcomes(failed=1)
    assert "Lines that copy" not in section(result)


@pytest.mark.parametrize(
    ("arguments", "table", "line"),
    [
        (
            ["--devlint-simulate", "--devlint-devices=99"],
            "",
            "--devlint-devices: expected a number from 1 to 16, *",
        ),
        (["--devlint-devices=2"], "", "--devlint-devices is for a suite on a simulated accelerator, and needs *"),
        (["--devlint-memory=1G"], "", "--devlint-memory is for a suite on a simulated accelerator, and needs *"),
        (
            ["--devlint-simulate", "--devlint-memory=much"],
            "",
            "--devlint-memory: 'much' is no size of memory such as 8GiB",
        ),
        (["--devlint-compare-cpu"], "", "--devlint-compare-cpu is for a suite on a simulated accelerator, and needs *"),
        ([], "simulat = true", "*pyproject.toml: pytest: unknown key 'simulat' (did you mean 'simulate'?)"),
        ([], "simulate = 1", "*pyproject.toml: pytest: simulate: expected true or false"),
        ([], "devices = 0", "*pyproject.toml: pytest: devices: expected a number, 1 or more, not 0"),
        ([], "memory = 8", '*pyproject.toml: pytest: memory: expected a size such as "8GiB", not 8'),
        ([], "memory = 'all'", "*pyproject.toml: pytest: memory: 'all' is no size of memory such as 8GiB"),
    ],
)
def test_what_is_wrong_is_one_clear_line(suite: pytest.Pytester, arguments: list[str], table: str, line: str) -> None:
    suite.makepyprojecttoml(f"[tool.devlint.pytest]\n{table}\n")
    result = run(suite, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}".replace("[", "[[]")])
    assert len(result.stderr.lines) == 2


def test_where_there_is_a_real_one_nothing_runs(suite: pytest.Pytester) -> None:
    suite.makepyfile(before="import torch\n\ntorch.cuda.device_count = lambda: 1\n")
    result = run(suite, "-p", "before", "--devlint-simulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    expected = "ERROR: --devlint-simulate: a CUDA device is present: use it without simulating one, or hide it with *"
    result.stderr.fnmatch_lines([expected])
    suite.makeconftest("import sys\n\nsys.modules['torch'] = None\n")
    result = run(suite, "--devlint-simulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --devlint-simulate: torch is not installed for this Python"])


def test_a_broken_conftest_is_shown_as_ever(suite: pytest.Pytester) -> None:
    suite.makeconftest("import nothing_of_that_name\n")
    result = run(suite, "--devlint-simulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ModuleNotFoundError: No module named 'nothing_of_that_name'"])


EXAMPLES = re.compile(r"^`(\S+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Those for pytest that the page shows, also in the workflow."""
    page = TEXTS["docs/simulator.md"]
    return re.findall(r"^(?: *- run: )?((?:\w+='' )?pytest .*)$", page, re.MULTILINE)


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=pytest.mark.slow if number else ()) for number, each in enumerate(commands())]
)
def test_the_page_is_true(suite: pytest.Pytester, command: str) -> None:
    needs_the_simulation()
    page = TEXTS["docs/simulator.md"]
    for name, text in EXAMPLES.findall(page):
        path = suite.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.with_name("__init__.py").touch()
    xdist = ("-p", "xdist") if "-n" in shlex.split(command) else ()
    result = run(suite, *xdist, *shlex.split(command.partition("pytest ")[2]))
    result.assert_outcomes(failed=1, passed=1)
    (shown,) = blocks(page, "text")
    if command == commands()[0] and sys.version_info >= (3, 11):
        assert shown in result.stdout.str()
    assert "`heads` is a plain list" in " ".join(result.stdout.str().split())


def test_the_page_shows_commands() -> None:
    assert "pytest -n auto --devlint-simulate --devlint-compare-cpu" in commands()
    assert "CUDA_VISIBLE_DEVICES='' pytest --devlint-simulate --devlint-devices 2" in commands()


def test_reading_the_table() -> None:
    suite = read({"simulate": True, "devices": 2})
    assert suite == Suite(simulate=True, devices=2)
    assert Suite(simulate=False).over(suite) == Suite(simulate=False, devices=2)
    assert suite.over(Suite(devices=3, memory="8GiB", compare_cpu=True)) == Suite(True, 2, "8GiB", True)
    with pytest.raises(ValueError, match="expected a table"):
        read(True)
