"""Readings by strangers: how findings are drawn, and what two readers' words add up to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.accuracy.readings.rounds import (
    Candidate,
    Drawn,
    Round,
    RoundError,
    Subject,
    draw,
    judge,
    load,
    rounds,
    shares,
    store,
)
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, WRONG


def candidates(**numbers: int) -> list[Candidate]:
    """So many findings of each rule, in three repositories in turn."""
    return [
        Candidate("warning", code, f"repo{row % 3}", "a.py", row, "")
        for code, number in numbers.items()
        for row in range(number)
    ]


def judged(*verdicts: tuple[str, str, str, str], population: dict[str, int]) -> Round:
    drawn = [Drawn("repo", "a.py", 1, code, severity, first, second) for severity, code, first, second in verdicts]
    return Round(1, "2026-01-01", "abc", "seed", [], population, drawn)


def test_rules_are_drawn_in_turn_until_one_has_no_more() -> None:
    drawn = draw(candidates(A=100, B=2, C=100), 12, "seed")
    assert Counter(one.code for one in drawn) == {"A": 5, "B": 2, "C": 5}


def test_repositories_are_drawn_in_turn_within_a_rule() -> None:
    many, few = candidates(A=90), [Candidate("warning", "A", "small", "a.py", 1, "")]
    assert Counter(one.repository for one in draw([*many, *few], 4, "seed")) == dict.fromkeys(
        ("repo0", "repo1", "repo2", "small"), 1
    )


def test_a_draw_depends_on_the_seed_and_not_on_the_order_of_findings() -> None:
    found = candidates(A=50, B=50)
    assert draw(found, 10, "seed") == draw(found[::-1], 10, "seed")
    assert draw(found, 10, "seed") != draw(found, 10, "another")


def test_severities_of_one_rule_are_groups_of_their_own() -> None:
    found = [Candidate(severity, "A", "r", "a.py", row, "") for severity in ("info", "error") for row in range(9)]
    assert [one.severity for one in draw(found, 4, "seed")] == ["error", "info", "error", "info"]


def test_where_the_readers_differ_a_finding_is_debatable() -> None:
    assert Drawn("r", "a.py", 1, "A", "info", "right", "wrong").verdict == "debatable"
    assert Drawn("r", "a.py", 1, "A", "info", "wrong", "wrong").verdict == "wrong"


def test_a_group_counts_by_how_often_it_was_found() -> None:
    verdicts = [("warning", "A", "right", "right"), ("warning", "B", "wrong", "wrong"), ("info", "A", "wrong", "wrong")]
    one = judged(*verdicts, population={"warning A": 90, "warning B": 10, "info A": 500})
    assert shares(one, ("error", "warning")) == (2, 0.9, 0.0, 0.1)
    assert shares(one, ("error", "warning"), weighted=False) == (2, 0.5, 0.0, 0.5)


def test_the_density_is_that_of_the_median_repository() -> None:
    subjects = [Subject("a", "", 1000, 1), Subject("b", "", 2000, 8), Subject("c", "", 100, 100)]
    assert Round(1, "", "", "", subjects, {}).density == 4.0


def test_a_reader_who_leaves_one_out_is_refused_and_nothing_is_entered(tmp_path: Path) -> None:
    one = judged(("info", "A", "", ""), ("info", "A", "", ""), population={"info A": 2})
    whole, short = tmp_path / "whole.json", tmp_path / "short.json"
    answers = [{"number": number, "verdict": "right", "why": "it is"} for number in (1, 2)]
    whole.write_text(json.dumps(answers))
    short.write_text(json.dumps(answers[:1]))
    with pytest.raises(RoundError, match=r"short\.json: no verdict .* on finding 2"):
        judge(one, whole, short)
    assert not one.judged
    assert not one.drawn[0].first
    judge(one, whole, whole)
    assert one.judged
    assert load(store(one, tmp_path)) == one


@pytest.mark.parametrize("one", rounds(), ids=lambda one: str(one.number))
def test_a_round_keeps_to_the_protocol(one: Round) -> None:
    # one that waits for its readers has been drawn, with its commit and its seed, and has no figures yet
    assert {word for finding in one.drawn for word in (finding.first, finding.second)} <= {RIGHT, DEBATABLE, WRONG, ""}
    assert len(one.repositories) >= 14
    assert len(one.drawn) == min(150, sum(one.population.values()))
    assert {finding.repository for finding in one.drawn} <= {subject.name for subject in one.repositories}
    earlier = {subject.name for other in rounds() if other.number < one.number for subject in other.repositories}
    assert not earlier & {subject.name for subject in one.repositories}
