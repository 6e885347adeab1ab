"""Whole projects: what is inferred across their files, and what has to stay unknown.

A project is a folder `fixtures/projects/NAME`; an expectation stands at the end of the finding's first row, as in the
fixtures of the rules. All files of a project are checked together.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.engine import check_paths
from devlint.check.outcome import Result
from devlint.config.load import Resolver
from devlint.config.schema import Config, RuleLayer
from devlint.rules.selection import validate
from tests.test_fixtures import RESERVED, differences, expected

ROOT = Path(__file__).parents[2] / "fixtures" / "projects"
PROJECTS = sorted(path for path in ROOT.iterdir() if path.is_dir())
EVERY_RULE = Config(rule_layers=(RuleLayer(("ALL",), tuple(sorted(RESERVED | {"DVL606"}))),))


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_project_is_judged_as_a_whole(project: Path, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devlint.check.engine.BYTES_WORTH_A_PROCESS", 1)
    files = sorted(project.rglob("*.py"))
    assert not wrong(check_paths([project], Resolver(validate, EVERY_RULE), jobs=jobs), files)


@pytest.mark.parametrize("file", sorted((ROOT / "inherited").rglob("*.py")), ids=lambda file: file.stem)
def test_a_file_by_itself_is_judged_as_among_the_others(file: Path) -> None:
    result = check_paths([file], Resolver(validate, EVERY_RULE))
    assert {finding.filename for finding in result.findings} <= {str(file)}
    assert not wrong(result, [file])


def wrong(result: Result, files: list[Path]) -> str:
    """What of the findings in these files is not as they say."""
    assert not result.errors
    lines: list[str] = []
    for file in files:
        found = [
            (finding.span.row, finding.code, str(finding.severity))
            for finding in result.findings
            if finding.filename == str(file)
        ]
        lines += differences(file, expected(file.read_text(encoding="utf-8")), found)
    return "\n".join(lines)
