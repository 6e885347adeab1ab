"""The figures of bugs in repositories not seen before, and the list of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.accuracy import unseen
from tests.accuracy.mined import DECIDABLE


def case(name: str, repo: str, decidable: str, first: bool, why: str = "") -> dict[str, Any]:
    told = {"id": name, "repo": repo, "class": "other", "decidable": decidable, "first_look": first, "why": why}
    return {**told, "round": 2 if repo == "o/c" else 1, "note": "made on the CPU"}


CASES = [
    case("b-1", "o/b", "yes", True),
    case("a-1", "o/a", "yes", False),
    case("a-2", "o/a", "yes", False, "its base is in another file"),
    case("a-3", "o/a", "no", False, "needs ranks"),
    case("b-2", "o/b", "heuristic", False),
    case("c-1", "o/c", "yes", False),
]
NAMES = [str(row["id"]) for row in CASES]


def test_what_was_found_at_first_is_told_from_what_is_found_now() -> None:
    found = unseen.figures(CASES, {"a-1": True, "a-2": False, "a-3": False, "b-1": True, "b-2": False, "c-1": True})
    rounds, classes, read, repositories, *missed = found.tables
    assert [list(cells) for cells in rounds.rows] == [
        [1, 5, 2, "1 of 3 (33 %); 2 of 3 (67 %)", "0 of 1 (0 %); 0 of 1 (0 %)", "0 of 1 (0 %); 0 of 1 (0 %)"],
        [2, 1, 1, "0 of 1 (0 %); 1 of 1 (100 %)", "0 of 0 (0 %); 0 of 0 (0 %)", "0 of 0 (0 %); 0 of 0 (0 %)"],
    ]
    assert [list(cells) for cells in classes.rows] == [["other", "1; 2 of 3", "0; 1 of 1"]]
    assert [row[2] for row in read.rows][-1] == sum(int(row[2]) for row in read.rows[:-1])
    assert [list(cells) for cells in repositories.rows] == [
        ["o/a", "0; 1 of 2", "", "0; 0 of 1"],
        ["o/b", "1; 1 of 1", "0; 0 of 1", ""],
        ["o/c", "0; 1 of 1", "", ""],
    ]
    assert "6 other fixes were gathered from 3 repositories" in found.summary
    assert "seen in the file 0 of 1 (0 %), of those" in found.summary
    assert "Now it is 1 of 1 (100 %), 0 of 0 (0 %) and 0 of 0 (0 %)." in found.summary
    assert [list(table.rows) for table in missed] == [
        [("a-2", "other", "its base is in another file")],
        [("b-2", "other", "made on the CPU")],
    ]


def test_every_finding_that_was_read_has_a_verdict() -> None:
    for _, _, read, right, debatable, wrong, mended in unseen.figures(CASES, dict.fromkeys(NAMES, True)).tables[2].rows:
        assert read == sum(map(int, (right, debatable, wrong)))
        assert int(mended) <= int(wrong)


def test_the_rounds_since_are_told_by_themselves() -> None:
    found = unseen.figures_since(CASES, dict.fromkeys(NAMES, True))
    assert "6 more fixes, of 3 other repositories," in found.summary
    assert "seen in the file 1 of 4 (25 %), of those" in found.summary
    assert "Now it is 4 of 4 (100 %), 1 of 1 (100 %) and 1 of 1 (100 %)." in found.summary
    assert [table.caption.split()[1] for table in found.tables] == ["round,", "class,", "repository,"]


@pytest.mark.parametrize("path", [unseen.CASES, unseen.SINCE])
def test_the_list_is_complete(path: Path) -> None:
    cases = unseen.read(path)
    assert len({case["id"] for case in cases}) == len(cases)
    for case in cases:
        assert case["decidable"] in DECIDABLE
        assert isinstance(case["first_look"], bool)
        assert case["first_look"] or case["round"] > 1 or case["why"], case["id"]
        assert len(case["fix_commit"]) == len(case["parent_commit"]) == 40
        assert case["accept_spans"]


def test_a_fix_that_is_not_in_the_mirror_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "score.py").touch()
    monkeypatch.setattr(unseen, "scored", lambda *given: ([], 0, 0))
    assert unseen.main(["--score", str(tmp_path / "score.py"), "--mirror", str(tmp_path)]) == 1
    assert "are not in the mirror" in capsys.readouterr().out
