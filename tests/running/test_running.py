"""Every fixture does what it is said to do; a case that cannot run says why, and those are few."""

from __future__ import annotations

import pytest

from devlint.rules.registry import registry as rules
from tests.running.cases import read
from tests.running.claims import registry as claims
from tests.running.outcomes import GROUPS, cannot_run, fixtures, run

GROUPS_BY_MACHINE = [(machine, pattern) for machine, patterns in GROUPS.items() for pattern in patterns]


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "pattern"), GROUPS_BY_MACHINE)
def test_fixtures_do_what_they_are_said_to_do(machine: str, pattern: str) -> None:
    wrong = [complaint for outcome in run(machine, pattern) for complaint in outcome.complaints()]
    assert not wrong, "\n" + "\n".join(wrong)


def test_rules_say_how_their_mistakes_show() -> None:
    about_code = [code for code in rules() if not code.startswith("DVL9")]  # those are about files and comments
    silent = [code for code in about_code if code not in claims()]
    assert not silent, "a rule has a claim in tests/running/claims/, or says there why none can be seen"


def test_few_cases_cannot_run() -> None:
    reasons = [f"{fixture.name}: {case.name}: {case.cannot}" for fixture, case in cannot_run()]
    cases = sum(len(read(path).cases) for path in fixtures())
    assert len(reasons) <= cases / 40, "\n".join(reasons)
