"""From content and paths to findings, whatever happens on the way."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import devlint
from devlint.check import analysis, engine, task, workers
from devlint.check.analysis import check_source
from devlint.check.discovery.target import Target
from devlint.check.discovery.walk import discover
from devlint.check.engine import check_paths
from devlint.check.outcome import AnalysisError
from devlint.check.project import content
from devlint.check.task import Task
from devlint.config.load import Resolver
from devlint.config.schema import Config, RuleLayer
from devlint.rules.selection import validate
from tests.growth import HANG

pytestmark = pytest.mark.usefixtures("stub_rules")


def summary(result) -> list[str]:
    return [f"{finding.filename}:{finding.span.row}:{finding.code}" for finding in result.findings]


def test_findings_are_sorted_by_place() -> None:
    found = check_source("hint()\ndropped(); mismatch()\ndropped()\n")
    assert [(finding.span.row, finding.code) for finding in found] == [
        (1, "DVL601"),
        (2, "DVL102"),
        (2, "DVL101"),
        (3, "DVL102"),
    ]


def test_selection_reaches_the_rules() -> None:
    code = "mismatch(); dropped(); strict()"
    select = RuleLayer(("ALL",), ("DVL101",))
    assert [finding.code for finding in check_source(code, "x.py", Config().selecting(select))] == ["DVL102", "DVL605"]
    assert [finding.code for finding in check_source(code)] == ["DVL101", "DVL102"]


def test_per_file_ignores(tree) -> None:
    root = str(tree({"tests/a.py": "mismatch(); dropped()", "src/a.py": "mismatch(); dropped()"}))
    config = Config(root=root, per_file_ignores=(("tests/**", ("DVL1",)), ("!tests/**", ("device-mismatch",))))
    assert summary(check_paths(["."], config)) == ["src/a.py:1:DVL102"]


def test_a_rule_ignored_in_the_file_did_not_run_there(tree) -> None:
    root = str(tree({"a.py": "x = 1  # devlint: ignore[DVL102]\n"}))
    assert summary(check_paths(["."], Config(root=root))) == ["a.py:1:DVL901"]
    assert summary(check_paths(["."], Config(root=root, per_file_ignores=(("a.py", ("DVL102",)),)))) == []


def test_a_file_that_does_not_parse_is_reported_under_any_selection() -> None:
    assert [finding.code for finding in check_source("def f(:", "x.py")] == ["DVL900"]
    assert [f.code for f in check_source("def f(:", "x.py", Config().selecting(RuleLayer(("DVL6",))))] == ["DVL900"]
    assert check_source("def f(:", "x.py", Config().selecting(RuleLayer(ignore=("DVL900",)))) == []


def test_target_torch_reaches_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "devlint.check.analysis.rule_findings",
        lambda source, rules, config, project: seen.append(config.target_torch) or [],
    )
    check_source("x", "x.py", Config(target_torch=(2, 4)))
    assert seen == [(2, 4)]


@pytest.mark.parametrize("call", ["fails()", "recurses()"])
def test_a_failure_of_the_analysis_names_the_file_and_the_run_goes_on(tree, call: str) -> None:
    tree({"a.py": "mismatch()", "b.py": call, "c.py": "dropped()"})
    result = check_paths(["."], Config())
    assert summary(result) == ["a.py:1:DVL101", "c.py:1:DVL102"]
    assert result.files == 2
    (line,) = result.errors
    assert line.startswith("b.py: devlint failed on this file")
    assert "\n" not in line
    assert "stubs.py:" in line, "the place is what a bug report needs"
    with pytest.raises(AnalysisError):
        check_source(call)


@pytest.mark.parametrize(
    "code",
    [
        "if x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(1, 900)),
        "x = " + " + ".join(["f(1)"] * 900),
        "x = y" + ".add(1)" * 900,
    ],
    ids=["elif", "sum", "chain"],
)
def test_deep_code_is_analysed_all_the_same(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def depth(node: ast.AST) -> int:
        return 1 + max([depth(child) for child in ast.iter_child_nodes(node)], default=0)

    depths = []
    monkeypatch.setattr(
        "devlint.check.analysis.rule_findings",
        lambda source, rules, config, project: depths.append(depth(source.tree)) or [],
    )
    limit = sys.getrecursionlimit()
    assert check_source(code) == []
    assert depths[0] > 900
    assert sys.getrecursionlimit() == limit


def test_code_too_deep_for_the_analysis_is_the_files_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("devlint.check.analysis.rule_findings", run)
    code = "x = " + "-" * 50 + "y"
    with pytest.raises(AnalysisError):
        check_source(code)
    monkeypatch.setattr(analysis, "TOO_DEEP", 50)
    [finding] = check_source(code)
    assert (finding.code, finding.message) == ("DVL900", "the code is nested too deeply")


def test_an_unreadable_file_is_an_error_and_the_run_goes_on(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"a.py": "mismatch()", "b.py": ""})
    real = open

    def refuse(path, *rest, **more):
        if path == "b.py":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr("builtins.open", refuse)
    result = check_paths(["."], Config())
    assert (summary(result), result.errors) == (["a.py:1:DVL101"], ["b.py: Permission denied"])


def test_a_file_too_large_to_be_read_is_an_error(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"a.py": "mismatch()", "b.py": "mismatch()" + " " * 100})
    monkeypatch.setattr(task, "LARGEST", 50)
    result = check_paths(["."], Config())
    assert (summary(result), result.errors) == (["a.py:1:DVL101"], [f"b.py: {content.TOO_LARGE}"])


def test_check_never_runs_what_it_reads(tree) -> None:
    tree({"a.py": "open('ran', 'w')", "conftest.py": "open('ran', 'w')", "setup.py": "open('ran', 'w')"})
    assert check_paths(["."], Config()).files == 3
    assert not os.path.exists("ran")


def test_the_api_is_lazy_and_whole() -> None:
    assert devlint.check_source is check_source
    assert devlint.check_paths is check_paths
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = devlint.nothing


# --- several processes ---------------------------------------------------------------------------


def many(count: int, extra: dict[str, str]) -> dict[str, str]:
    return {f"f{number:02}.py": f"dropped()\n{'#' * number}\n" for number in range(count)} | extra


def test_processes_find_what_one_finds(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BYTES_WORTH_A_PROCESS", 1)
    tree(many(40, {"bad.py": "def f(:"}))
    steps: list[tuple[int, int]] = []
    alone = check_paths(["."], Config(), jobs=1)
    together = check_paths(["."], Config(), jobs=3, progress=lambda done, total: steps.append((done, total)))
    assert together == alone
    assert len(alone.findings) == 41
    assert sorted(steps)[-1] == (41, 41)


def test_a_crashed_process_costs_its_file_only(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BYTES_WORTH_A_PROCESS", 1)
    tree(many(30, {"crash1.py": "dies()", "crash2.py": "dies()" + "#" * 99, "odd.py": "fails()"}))
    result = check_paths(["."], Config(), jobs=2)
    assert len(result.findings) == 30
    assert sorted(line.partition(",")[0] for line in result.errors) == [
        "crash1.py: the process that checked this file died (SIGKILL)",
        "crash2.py: the process that checked this file died (SIGKILL)",
        "odd.py: devlint failed on this file",
    ]


def test_big_files_go_first(tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(many(10, {}))
    targets = discover(["."], Resolver(validate, Config())).targets
    order = [outcome.path for outcome in workers.run(targets, 1, Task())]
    assert order == [f"f{number:02}.py" for number in reversed(range(10))]


def test_processes_only_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRE_COMMIT", raising=False)
    monkeypatch.setattr(engine, "_processors", lambda: 8)
    small, big = [Target("a", 100, Config())] * 50, [Target("a", 1_000_000, Config())] * 50
    assert engine.processes(small, 0) == 1
    assert engine.processes(small, 16) == 1
    assert engine.processes(big, 0) == 8
    assert engine.processes(big, 3) == 3
    assert engine.processes(big, 1) == 1
    assert engine.processes(big[:2], 0) == 2
    monkeypatch.setenv("PRE_COMMIT", "1")
    assert engine.processes(big, 0) == 1
    assert engine.processes(big, 3) == 3


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a process does not begin as a copy")
def test_what_all_processes_need_is_loaded_once(tree) -> None:
    code = "import torch\n\n\ndef go(model: torch.nn.Module):\n    return model(torch.ones(3))\n"
    root = tree({"a.py": code, "b.py": code})
    (root / "go.txt").write_text(
        textwrap.dedent(
            """
            import sys
            from devlint.check import workers
            from devlint.check.discovery.target import Target
            from devlint.check.outcome import Outcome
            from devlint.check.task import Task
            from devlint.config.schema import Config
            heavy = {"devlint.rules.placement", "devlint.flow.engine.engine", "devlint.check.suppressions"}
            class New(Task):
                def run(self, target):
                    before = set(sys.modules)
                    super().run(target)
                    return Outcome(target.path, error=" ".join(sorted(heavy & set(sys.modules) - before)))
            for outcome in workers.run([Target(name, 9, Config()) for name in ("a.py", "b.py")], 2, New()):
                print(outcome.error)
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(devlint.__file__).parents[1])}
    done = subprocess.run([sys.executable, "go.txt"], capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout, done.stderr) == ("\n\n", "")


@pytest.mark.parametrize("function", ["parse_errors", "suppressions"])
def test_a_failure_beside_the_analysis_costs_its_file_only(
    tree, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    tree({"a.py": "x = 1" if function == "suppressions" else "x ="})
    monkeypatch.setattr(f"devlint.check.analysis.{function}", fail)
    [error] = check_paths(["a.py"], Config()).errors
    assert error.startswith("a.py: devlint failed on this file, please report it: MemoryError")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_who_kills_the_run_leaves_no_process(tree, how: signal.Signals) -> None:
    root = tree({f"f{number}.py": "sleeps()\n" for number in range(6)})
    script = root / "go.txt"
    script.write_text(
        textwrap.dedent(
            """
            import os, time
            import devlint.check.analysis
            from devlint.check import engine
            from devlint.cli import main
            engine.BYTES_WORTH_A_PROCESS = 1
            def run(*_):
                os.write(1, b"working\\n")
                time.sleep(1)
                return []
            devlint.check.analysis.rule_findings = run
            main(["check", "-j", "3", "--isolated"])
            """
        )
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(devlint.__file__).parents[1])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(how)
    # The pipes close when the last worker is gone, which is once it is done with its file.
    _, errors = process.communicate(timeout=HANG)
    assert errors == ""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_run_at_once_and_leaves_no_process(tree) -> None:
    root = tree({f"f{number}.py": "sleeps()\n" for number in range(6)})
    script = root / "go.txt"
    script.write_text(
        textwrap.dedent(
            """
            import os, time
            import devlint.check.analysis
            from devlint.check import engine
            from devlint.cli import main
            engine.BYTES_WORTH_A_PROCESS = 1
            def run(*_):
                os.write(1, b"working\\n")
                time.sleep(600)
            devlint.check.analysis.rule_findings = run
            main(["check", "-j", "2", "--isolated"])
            """
        )
    )
    here = str(Path(devlint.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=HANG)  # the workers would sleep for longer
    assert process.returncode == 130
    assert errors == "error: interrupted\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
