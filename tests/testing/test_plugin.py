"""The pytest plugin, in suites like those of its users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch  # here, since the fixture `pytester` takes away what is imported in a test, and torch does not survive it

import devlint
from tests.simulator.available import need_simulation

pytest_plugins = "pytester"
ROOT = Path(devlint.__file__).parents[1]
PAGE = (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8") if (ROOT / "docs").is_dir() else ""

TRAIN = """\
import torch

def train(model, batches, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for x, y in batches:
        loss = (model(x.to(device)) - y.to(device)).pow(2).sum()
        total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return total
"""
SUITE = """
import os
import pytest
import torch
from training import train

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

@pytest.fixture(scope="module")
def shared():
    yield "shared"
    print("shared is torn down")

def run():
    batches = [(torch.rand(4, 8), torch.rand(4, 2)) for _ in range(5)]
    train(torch.nn.Linear(8, 2).to(DEVICE), batches, DEVICE)

def test_before(shared):
    assert DEVICE == "cpu"

@pytest.mark.device_audit(h2d_per_step=2, syncs_per_step=1, no_device_mismatch=True, d2h_bytes_per_step=4)
@pytest.mark.parametrize("name", ["a b", "c"])
def test_kept(name, shared, tmp_path):
    assert DEVICE == "cuda"
    run()

def test_between(shared):
    assert not torch.cuda.is_available()

@pytest.mark.device_audit(h2d_per_step=1, syncs_per_step=0)
def test_broken():
    print("to be captured")
    run()

def test_block(device_audit):
    torch.ones(1, device=DEVICE).item()
    with device_audit(syncs=1) as audited:
        torch.ones(1, device=DEVICE).item()
    assert audited.record.simulated
    with pytest.raises(pytest.fail.Exception, match="syncs: 2 waits for the device, 1 allowed"):
        with device_audit(syncs=1):
            torch.ones(1, device=DEVICE).item()
            torch.ones(1, device=DEVICE).item()

@pytest.mark.device_audit
def test_mismatch():
    torch.nn.Linear(4, 2)(torch.ones(2, 4, device=DEVICE))

@pytest.mark.device_audit(h2d_per_step=1)
def test_without_a_step():
    pass

@pytest.mark.device_audit(steps=1, h2d_per_step=2)
def test_that_is_cut_short():
    run()
    assert False, "never reached"

@pytest.mark.device_audit(syncs_per_stepp=1)
def test_with_a_mistake():
    pass

@pytest.mark.device_audit(2)
def test_without_a_name():
    pass

@pytest.mark.device_audit
def test_that_ends_its_process():
    os._exit(3)

@pytest.mark.device_audit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_whose_fork_comes_back():
    child = os.fork()
    assert child
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

@pytest.mark.device_audit(devices=2)
def test_after_that():
    assert torch.cuda.device_count() == 2

@pytest.mark.device_audit(devices=10**9)
def test_with_more_devices_than_there_can_be():
    pass

@pytest.mark.device_audit
@pytest.mark.skip(reason="not now")
def test_skipped():
    pass

@pytest.mark.device_audit
@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert False

def test_afterwards(shared):
    assert not torch.cuda.is_available()
"""


def needs_the_simulation() -> None:
    need_simulation()
    if torch.cuda.is_available():
        pytest.skip("a machine with a GPU does not simulate one")


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess(*arguments, timeout=300)


def test_it_is_inert_until_it_is_used(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        "import sys\n\ndef test_nothing():\n"
        "    names = {name for name in sys.modules if name == 'torch' or name.startswith('devlint')}\n"
        "    assert names == {'devlint', 'devlint._about', 'devlint.testing', 'devlint.testing.marks'}\n"
    )
    result = run(suite)
    result.assert_outcomes(passed=1)


def test_budgets_are_enforced_and_other_tests_notice_nothing(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    suite.makepyfile(training=TRAIN, test_suite=SUITE)
    result = run(suite, "-v", "--junitxml=report.xml", "-rA")
    outcomes = dict(re.findall(r"^test_suite\.py::(\S+(?: b\])?) (\w+)", result.stdout.str(), re.MULTILINE))
    assert outcomes == {
        "test_before": "PASSED",
        "test_kept[a b]": "PASSED",
        "test_kept[c]": "PASSED",
        "test_between": "PASSED",
        "test_broken": "FAILED",
        "test_block": "PASSED",
        "test_mismatch": "FAILED",
        "test_without_a_step": "FAILED",
        "test_that_is_cut_short": "PASSED",
        "test_with_a_mistake": "FAILED",
        "test_without_a_name": "FAILED",
        "test_that_ends_its_process": "FAILED",
        "test_whose_fork_comes_back": "PASSED",
        "test_after_that": "PASSED",
        "test_with_more_devices_than_there_can_be": "FAILED",
        "test_skipped": "SKIPPED",
        "test_expected_to_fail": "XFAIL",
        "test_afterwards": "PASSED",
    }
    text = result.stdout.str()
    broken = text.partition("_ test_broken _")[2].partition("_ test_mismatch _")[0]
    assert broken.partition("\n")[2].startswith(
        "device audit: 2 budgets were broken\n"
        "h2d_per_step: 2 copies to the device in a training step, 1 allowed\n"
        "  training.py:7: 1 x 128 B  loss = (model(x.to(device)) - y.to(device)).pow(2).sum()\n"
        "  training.py:7: 1 x 32 B  loss = (model(x.to(device)) - y.to(device)).pow(2).sum()\n"
        "syncs_per_step: 1 wait for the device in a training step, none allowed\n"
        "  training.py:8: 1 x 4 B  total += loss.item()\n"
    )
    assert "to be captured" in broken
    assert "Training, per step: the median of 3 steps, the first 2 left out" in broken
    died = text.partition("_ test_mismatch _")[2].partition("_ test_without_a_step _")[0]
    assert "error[DVL101] device-mismatch: the run died when tensors on cpu and cuda:0 met (Linear)" in died
    # the traceback ends in torch, as on a GPU
    assert "devlint/simulator" not in died
    for line in (
        "h2d_per_step: there was no training or evaluation step*",
        "device_audit: there is no budget 'syncs_per_stepp' (did you mean 'syncs_per_step'?)",
        "device_audit: budgets are given by name, such as h2d_per_step=2, not 2",
        "device_audit: the process with the simulated accelerator ended with code 3",
        "device_audit: devices: expected a number from 1 to 16, not 1000000000",
    ):
        result.stdout.fnmatch_lines(line.replace("[", "[[]"))
    assert (suite.path / "report.xml").read_text(encoding="utf-8").count("<testcase ") == 18


@pytest.mark.slow
def test_with_xdist_and_budgets_of_the_configuration(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    pytest.importorskip("xdist")
    suite.makepyfile(training=TRAIN)
    suite.makepyprojecttoml("[tool.devlint.audit.budgets]\nsyncs-per-step = 0\nh2d-per-step = 2\n")
    head = SUITE.partition("def test_before")[0] + "pytestmark = pytest.mark.xdist_group('g')\n\n"
    for name in ("test_one", "test_two"):
        suite.makepyfile(
            **{
                name: f"{head}@pytest.mark.device_audit\ndef test_broken():\n    run()\n\n"
                "@pytest.mark.device_audit(syncs_per_step=None)\nclass TestBoth:\n"
                "    @pytest.mark.device_audit(d2h=5)\n    def test_taken_back(self):\n        run()\n\n"
                "@pytest.mark.device_audit\ndef test_without_a_step():\n    torch.ones(1, device=DEVICE).item()\n\n"
                "def test_plain():\n    assert DEVICE == 'cpu'\n"
            }
        )
    result = run(suite, "-p", "xdist", "-n", "1", "--dist", "loadgroup")
    result.assert_outcomes(passed=6, failed=2)
    text = "syncs_per_step: 1 wait for the device in a training step, none allowed"
    result.stdout.fnmatch_lines([text])


def test_without_torch_the_test_says_what_is_missing(suite: pytest.Pytester) -> None:
    suite.makeconftest("import sys\nsys.modules['torch'] = None\n")
    suite.makepyfile("import pytest\n\n@pytest.mark.device_audit\ndef test_it():\n    pass\n")
    result = run(suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["device_audit: torch is not installed for this Python*"])


def test_the_page_is_true_and_the_first_failure_stops_the_suite(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    if not PAGE:
        pytest.skip("the documentation is not part of this distribution")
    example = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    package = suite.mkpydir("shop")
    (package / "training.py").write_text(TRAIN.replace("import torch", "import torch\n"), encoding="utf-8")
    suite.makepyfile(f"{example}\n\n@pytest.mark.device_audit\ndef test_next():\n    pass\n")
    result = run(suite, "-x", "--pdb")
    result.assert_outcomes(failed=1)
    assert shown in result.stdout.str()
