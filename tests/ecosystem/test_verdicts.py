"""Verdicts find their findings again, and add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ecosystem.errors import EcosystemError
from tests.ecosystem.reported import Identity, Reported
from tests.ecosystem.verdicts import (
    DEBATABLE,
    RIGHT,
    UNREAD,
    WORDS,
    WRONG,
    Verdict,
    load_verdicts,
    match,
    store_verdicts,
    table,
    tally,
    verdict_file,
    with_unread_rows,
)
from tests.ecosystem.wheels import WHEELS, Wheel

if TYPE_CHECKING:
    from pathlib import Path

LINE = "x = x.to(device)"


def finding(row: int, line: str = LINE, code: str = "DVL201", severity: str = "warning") -> Reported:
    return Reported(Identity("toy/a.py", row, code), severity, "moved already", line)


def verdict(row: int, word: str = RIGHT, line: str = LINE, code: str = "DVL201") -> Verdict:
    return Verdict("toy/a.py", row, code, word, 'because, of "commas"', line)


def test_a_verdict_follows_its_line() -> None:
    reading = match([finding(20)], [verdict(10)])
    assert reading.matched[0].word == RIGHT
    assert not reading.gone


@pytest.mark.parametrize("other", [verdict(10, line="y = y.to(device)"), verdict(10, code="DVL101")])
def test_a_verdict_is_not_for_another_line_or_rule(other: Verdict) -> None:
    reading = match([finding(10)], [other])
    assert reading.unread == (finding(10),)
    assert reading.gone == (other,)


def test_the_same_line_twice_is_told_apart_by_its_row_then_by_order() -> None:
    reading = match([finding(20), finding(30)], [verdict(10, WRONG), verdict(20, RIGHT)])
    assert [pair.word for pair in reading.matched] == [RIGHT, WRONG]


def test_one_verdict_judges_one_finding() -> None:
    reading = match([finding(10), finding(10)], [verdict(10)])
    assert [pair.word for pair in reading.matched] == [RIGHT, UNREAD]


def test_all_that_is_reported_by_default_is_to_be_read() -> None:
    hint, elsewhere, error = finding(1, severity="info"), finding(2, code="DVL602"), finding(3, severity="error")
    assert match([hint, elsewhere, error], [verdict(1)]).unread == (elsewhere, error)


def test_a_question_mark_is_not_a_reading() -> None:
    assert match([finding(10)], [verdict(10, UNREAD)]).unread


def test_unread_findings_get_a_row_and_verdicts_move_along() -> None:
    reading = match(
        [finding(20), finding(40, line="new")], [verdict(10), verdict(1, WRONG, "gone"), verdict(2, UNREAD, "gone")]
    )
    rows = {(row.row, row.verdict, row.line) for row in with_unread_rows(reading)}
    assert rows == {(20, RIGHT, LINE), (40, UNREAD, "new"), (1, WRONG, "gone")}


def test_what_is_stored_is_what_is_loaded(tmp_path: Path) -> None:
    file = verdict_file(Wheel("toy", "1", ""), tmp_path)
    assert load_verdicts(file) == []
    rows = [verdict(2, WRONG), verdict(10, line='print("a, b")  # x')]
    store_verdicts(file, reversed(rows))
    assert load_verdicts(file) == rows


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a.py,1,DVL201,rihgt,,x", "'rihgt' is none of right, wrong"),
        ("a.py,one,DVL201,right,,x", "not a verdict"),
        ("a.py,1,DVL201,wrong,,x", "wrong needs a why"),
    ],
)
def test_a_spoilt_row_is_refused_in_one_line(tmp_path: Path, row: str, reason: str) -> None:
    file = tmp_path / "toy.csv"
    file.write_text(f"path,row,code,verdict,why,line\n{row}\n")
    with pytest.raises(EcosystemError, match=f"toy.csv line 2: .*{reason}"):
        load_verdicts(file)


def test_debatable_counts_as_half_right() -> None:
    pairs = match(
        [finding(row) for row in range(1, 5)], [verdict(row, word) for row, word in enumerate(WORDS, 1)]
    ).matched
    result = tally(pairs)
    assert result == (1, 1, 1, 1)
    assert result.share == pytest.approx(1.5 / 3)
    assert tally([]).share is None


def test_the_table_has_a_line_per_rule_and_severity_and_one_for_the_promise() -> None:
    findings = [finding(1), finding(2, severity="info"), finding(3, code="DVL102", severity="error")]
    lines = list(table(match(findings, [verdict(1), verdict(2, DEBATABLE)]).matched))
    assert [line.split()[:2] for line in lines[1:]] == [
        ["DVL102", "error"],
        ["DVL201", "info"],
        ["DVL201", "warning"],
        ["all", "1"],
    ]
    # one right, one debatable, one that nobody has read: one and a half of two
    assert lines[-1].split() == ["all", "1", "0", "1", "1", "75.0%"]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_the_verdicts_in_the_repository_can_be_read(wheel: Wheel) -> None:
    rows = load_verdicts(verdict_file(wheel))
    assert rows == sorted(rows, key=lambda row: row.identity)
