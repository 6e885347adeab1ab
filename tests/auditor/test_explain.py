"""Explanations of mismatches: realistic scripts, each with what somebody has to be told to mend it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.auditor import explaining
from tests.auditor.mismatches import CASES
from tests.auditor.mismatches_besides import SILENT
from tests.simulator.available import simulates

pytestmark = simulates


@functools.cache
def outcomes() -> dict[str, Any]:
    scripts = {name: code for name, (code, *_) in CASES.items()}
    return explaining.explained({**scripts, **{f"3.10 {name}": code for name, code in scripts.items()}, **SILENT})


def shown(party: dict[str, Any]) -> str:
    lines = [f"{party['text']} | {party['device']} | {party['role']}"]
    lines += [f"    {party['why']}"] if party["why"] else []
    lines += [f"    at: {party['origin']}"] if party["origin"] else []
    text = "".join(f"{line}\n" for line in lines)
    return text.replace("cuda:0", "device").replace("cuda:1", "other")


@pytest.mark.parametrize("name", CASES)
def test_explained(name: str) -> None:
    _, at, module, parties = CASES[name]
    found = outcomes()[name]
    assert "unexplained" not in found, found["unexplained"]
    assert found["frame"] == at
    assert f"{found['module']} {found['module_class']}".strip() == module
    assert "".join(shown(party) for party in found["parties"]) == parties


@pytest.mark.parametrize("name", CASES)
def test_explained_where_only_the_line_is_known(name: str) -> None:
    """As on Python 3.10; who is to blame, and why, is the same."""
    _, at, _, parties = CASES[name]
    found = outcomes()[f"3.10 {name}"]
    assert found["frame"] == at
    blamed = "".join(shown(party) for party in found["parties"] if party["why"] or party["origin"])
    assert parties.startswith(blamed)


@pytest.mark.parametrize("name", SILENT)
def test_other_failures_are_not_explained(name: str) -> None:
    assert "Error" in outcomes()[name]["unexplained"]
