"""The figures of bugs that were mended upstream, and what is said where the collection is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.accuracy import mined


def row(name: str, kind: str, decidable: str, hit: bool) -> dict[str, Any]:
    return {"id": name, "class": kind, "decidable": decidable, "hit": hit, "cleared": hit}


ROWS = [
    row("b-1", "mismatch", "yes", True),
    row("a-2", "mismatch", "yes", False),
    row("a-1", "buffer", "heuristic", True),
    row("c-1", "buffer", "no", False),
]


def test_hits_are_counted_by_class_and_by_what_it_takes_to_see_them() -> None:
    found = mined.figures(ROWS, 0, 27, {"a-2": "its base is in another file"})
    classes, *misses = found.tables
    assert [list(cells) for cells in classes.rows] == [
        ["buffer", "", "1 of 1", "0 of 1", 1],
        ["mismatch", "1 of 2", "", "", 1],
        ["**all**", "1 of 2", "1 of 1", "0 of 1", 2],
    ]
    assert "1 of 2 (50 %)" in found.summary
    assert "Of 27 places that look wrong and are right, 0 are" in found.summary
    assert [list(table.rows) for table in misses] == [
        [("a-2", "mismatch", "its base is in another file")],
        [("c-1", "buffer", "not read yet")],
    ]


def test_without_the_collection_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        mined.main(["--score", str(tmp_path / "score.py"), "--mirror", str(tmp_path)])
    assert stopped.value.code == 2
    assert "neither comes with devlint" in capsys.readouterr().err


def test_a_miss_without_a_reason_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "score.py").touch()
    monkeypatch.setattr(mined, "scored", lambda score, mirror: (ROWS, 0, 27))
    monkeypatch.setattr(mined, "save", lambda section, figures: tmp_path / section)
    assert mined.main(["--score", str(tmp_path / "score.py"), "--mirror", str(tmp_path)]) == 1
    assert "gives no reason for a-2, c-1" in capsys.readouterr().out
