"""Ignore patterns match what git's match, in a time that no pattern can make long."""

from __future__ import annotations

import random

import pytest
from pathspec import GitIgnoreSpec

from devlint.check.discovery.patterns import compiled
from tests.growth import hang_guard

PARTS = ("**", "*a*b*", "a*a*b*c", "*?a*b?", "[ab]*c*[a-c]*", "a", "b*", "*", "*a*a*a*")


def test_it_matches_what_pathspec_matches() -> None:
    chance = random.Random(3)
    outcomes = set()
    for _ in range(400):
        parts = [chance.choice(PARTS) for _ in range(chance.randint(1, 5))]
        pattern = chance.choice(("", "/", "!")) + "/".join(parts) + chance.choice(("", "", "/"))
        theirs, ours = GitIgnoreSpec.from_lines(["a*", pattern]), compiled(("a*", pattern))
        for _ in range(20):
            names = ("".join(chance.choices("abc", k=chance.randint(1, 6))) for _ in range(chance.randint(1, 6)))
            path = "/".join(names) + chance.choice(("", "/"))
            expected = theirs.check_file(path).include
            assert ours.check_file(path).include is expected, (pattern, path)
            outcomes.add(expected)
    assert outcomes == {True, False, None}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a*" * 40 + "b", "a" * 250),
        ("*a" * 100 + "*b/c", "a" * 250),
        ("/".join(["**/a*a*a"] * 30) + "/b", "/".join(["aaa"] * 400)),
        ("a/**/" * 40 + "b", "/".join("a" * 1000)),
        ("?*" * 60 + "b", "a" * 250),
        ("*" * 200 + "b", "a" * 250),
    ],
    ids=["stars", "stars in a directory", "directories with stars", "directories", "any one and stars", "only stars"],
)
def test_a_pattern_that_could_be_tried_for_ever(pattern: str, path: str) -> None:
    with hang_guard():
        assert not compiled((pattern,)).match_file(path)
