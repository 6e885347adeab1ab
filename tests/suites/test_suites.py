"""The comparison, the pages and the child processes: no foreign suite, no torch."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.suites import comparing, report, running
from tests.suites.comparing import Reason, compare, read_reasons
from tests.suites.running import Outcome, Run
from tests.suites.table import SUITES, Suite, chosen

if TYPE_CHECKING:
    from pathlib import Path

PASSED, FAILED, SKIPPED = Outcome("passed"), Outcome("failed", "no such kernel (a.py:3)"), Outcome("skipped")
REASON = Reason("", re.compile("no such kernel"), "lacks", "kernels")
HARDWARE = Reason("", re.compile("no such kernel"), "hardware", "clocks")


def compared(cpu: dict[str, Outcome], simulated: dict[str, Outcome], *reasons: Reason) -> comparing.Comparison:
    return compare("toy", Run(cpu), Run(simulated), list(reasons))


@pytest.mark.parametrize(
    ("before", "after", "both", "alike", "differences"),
    [
        (PASSED, PASSED, 1, 0, 0),
        (PASSED, FAILED, 0, 0, 1),
        (PASSED, SKIPPED, 0, 0, 1),
        (PASSED, Outcome("crashed"), 0, 0, 1),
        (FAILED, FAILED, 0, 1, 0),
        (FAILED, PASSED, 0, 0, 0),
        (SKIPPED, PASSED, 1, 0, 0),
        (SKIPPED, FAILED, 0, 0, 1),
        (SKIPPED, SKIPPED, 0, 0, 0),
    ],
)
def test_what_counts_as_a_difference(before: Outcome, after: Outcome, both: int, alike: int, differences: int) -> None:
    found = compared({"a.py::test": before}, {"a.py::test": after})
    assert (found.both, found.fail_alike, len(found.differences)) == (both, alike, differences)


def test_a_parameter_that_names_the_device_has_its_counterpart_on_the_cpu() -> None:
    cpu = {"a.py::test_cuda_x[cpu-float32]": FAILED, "a.py::test_y[cpu]": PASSED}
    cuda = {"a.py::test_cuda_x[cuda:0-float32]": FAILED, "a.py::test_y[cuda]": PASSED, "a.py::test_z[cuda]": PASSED}
    found = compared(cpu, cuda)
    assert (found.both, found.fail_alike, len(found.differences)) == (2, 1, 0)


def test_what_the_cpu_had_no_time_for_does_not_count() -> None:
    cpu = Run({"a.py::test_a": PASSED}, collected={"a.py::test_a", "a.py::test_b[cpu]"})
    simulated = Run({"a.py::test_a": PASSED, "a.py::test_b[cuda:0]": PASSED, "a.py::test_c": PASSED})
    found = compare("toy", cpu, simulated, [])
    assert found.both == 2


def test_what_is_for_hardware_does_not_count_against_the_simulation() -> None:
    cpu, cuda = {"a": PASSED, "b": PASSED}, {"a": PASSED, "b": FAILED}
    assert compared(cpu, cuda, REASON).share == 0.5
    assert compared(cpu, cuda, HARDWARE).share == 1.0
    assert compared(cpu, cuda).share == 0.5
    assert compared(cpu, cuda).counted == {comparing.UNEXPLAINED: 1}


def test_the_reasons_can_be_read() -> None:
    known = {"", *(suite.name for suite in SUITES)}
    assert all(reason.suite in known and reason.text for reason in read_reasons())


def test_a_kind_of_reason_that_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reasons.csv"
    path.write_text("suite,pattern,kind,reason\n,x,whatever,because\n")
    with pytest.raises(ValueError, match="whatever"):
        read_reasons(path)


def test_the_tables_are_put_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    kept = report.figures(chosen(["kornia"])[0], "1.0", compared({"a": PASSED}, {"a": FAILED}, REASON))
    report.write({"kornia": kept}, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| kornia | 1.0 | 1, 0 | 0, 1 | 0 | 0 | 1 | 0.00% | 0 s, 0 s |" in text
    assert "| kornia | 1 | lacks | kernels | `a` |" in text


def test_a_source_is_found_by_the_names_of_packages_and_clones(tmp_path: Path) -> None:
    for name in ("timm-1.0.2", "timm-1.0.3.dev0", "timm-extras", "pytorch_geometric"):
        (tmp_path / name).mkdir()
    found = [suite.source(tmp_path) for suite in chosen(["timm", "torch_geometric", "kornia"])]
    assert found == [tmp_path / "timm-1.0.3.dev0", tmp_path / "pytorch_geometric", None]


def test_only_files_that_mention_a_device_are_run(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    for name, text in (("test_a.py", "x.cuda()"), ("test_b.py", "x"), ("other.py", "device")):
        (tmp_path / "test" / name).write_text(text)
    assert Suite("toy", ("test",), "", "").files(tmp_path) == ["test/test_a.py"]
    assert Suite("toy", ("test",), "", "", all_files=True).files(tmp_path) == ["test/test_a.py", "test/test_b.py"]


TESTS = """
import os, time, unittest
import pytest

def test_passes(): pass
def test_fails(): assert os.environ["DEVICE"] == "cpu of " + os.getcwd()[:0]
def test_skipped(): pytest.skip("not here")
def test_ends_the_process(): os._exit(3)
@pytest.mark.xfail
def test_expected(): assert 0
def test_after(): pass
"""


def test_a_suite_goes_on_after_a_test_that_ends_the_process(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(TESTS)
    suite = Suite("toy", ("test_toy.py",), "", "", environment={"DEVICE": "{device}"}, all_files=True)
    done = running.run(suite, tmp_path, sys.executable, simulated=False, limit=300, log=tmp_path / "toy.log")
    found = {name.partition("::")[2]: outcome.outcome for name, outcome in done.outcomes.items()}
    assert found == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_ends_the_process": "crashed",
        "test_expected": "xfailed",
        "test_after": "passed",
    }
    assert "assert" in done.outcomes["test_toy.py::test_fails"].message
    assert not done.cut_off


def test_a_run_is_cut_off_at_its_limit(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text("import time\ndef test_first(): pass\ndef test_long(): time.sleep(1000)\n")
    suite = Suite("toy", ("test_toy.py",), "", "", all_files=True)
    done = running.run(suite, tmp_path, sys.executable, simulated=False, limit=20, log=tmp_path / "toy.log")
    assert done.cut_off
    assert done.outcomes["test_toy.py::test_first"].outcome == "passed"
