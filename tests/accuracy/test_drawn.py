"""The draw and its tally: no wheel, no repository, no network."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.accuracy.drawing import (
    NUMBER,
    DrawingError,
    Found,
    Reading,
    Verdict,
    draw,
    found_in,
    hashed,
    load,
    match,
    shortfalls,
    store,
    tallies,
    without_twins,
)
from tests.accuracy.drawn import VERDICTS
from tests.accuracy.repositories import REPOSITORIES, MirrorError, Repository, unpack
from tests.ecosystem.reported import Identity, Reported
from tests.ecosystem.verdicts import DEBATABLE, RIGHT, UNREAD, WRONG
from tests.ecosystem.wheels import WHEELS


def reported(row: int, line: str = "x = x.cuda()", code: str = "DVL601", path: str = "toy/a.py") -> Reported:
    return Reported(Identity(path, row, code), "warning", "CUDA only", line)


def population(number: int, project: str = "toy") -> list[Found]:
    return found_in(project, "1.0", [reported(row, f"x = x.cuda()  # {row}") for row in range(1, number + 1)])


def judged(found: Found, word: str) -> Verdict:
    path, row, code = found.finding.identity
    return Verdict(found.place.project, found.version, path, row, code, "warning", word, "because", found.place.line)


def test_a_draw_takes_so_many_and_is_the_same_each_time() -> None:
    everything = population(1000)
    assert len(draw(everything)) == NUMBER
    assert draw(everything) == draw(reversed(everything))
    assert len(draw(everything[:10])) == 10


def test_a_draw_hardly_changes_when_findings_come_and_go() -> None:
    everything = population(1000)
    before, after = draw(everything), draw([*everything[5:], *population(5, "another")])
    assert len(set(before) - set(after)) <= 10


def test_a_draw_keeps_a_finding_whose_line_moves() -> None:
    """As all lines below one that was added do; only the order of equal lines tells those apart."""
    findings = [found.finding for found in population(300)]
    moved = [reported(finding.identity.row + 7, finding.line) for finding in findings]
    before, after = (draw(found_in("toy", "1.0", some)) for some in (findings, moved))
    assert [found.place for found in before] == [found.place for found in after]


def test_what_a_rule_or_a_project_finds_has_no_better_chance() -> None:
    """A fifth is drawn of each, as near as chance comes: three standard deviations of 40 in 200."""
    several = [found for name in ("a", "b", "c", "d", "e") for found in population(200, name)]
    for name in ("a", "b", "c", "d", "e"):
        assert 40 - 16 < sum(found.place.project == name for found in draw(several)) < 40 + 16


def test_equal_lines_are_several_findings() -> None:
    first, second = found_in("toy", "1.0", [reported(3), reported(9)])
    assert (first.place.number, second.place.number) == (0, 1)
    assert first.rank != second.rank


def test_a_release_and_its_repository_count_once() -> None:
    release = found_in("toy", "1.0", [reported(3)])
    repository = found_in("owner/toy", "abc", [reported(4, path="src/toy/a.py"), reported(8, "y.cuda()")])
    kept = without_twins([*release, *repository])
    assert [(found.place.project, found.finding.identity.row) for found in kept] == [("toy", 3), ("owner/toy", 8)]


def test_a_verdict_is_found_by_the_hash_of_its_line() -> None:
    (found,) = found_in("toy", "1.0", [reported(20)])
    verdict = replace(judged(found, RIGHT), row=10)
    assert verdict.line == hashed("    x = x.cuda()\n") != hashed("y = y.cuda()")
    assert match([found], [verdict]).drawn == [(found, verdict)]
    for other in (replace(verdict, line=hashed("y")), replace(verdict, version="2.0"), replace(verdict, code="DVL602")):
        reading = match([found], [other])
        assert reading.unread == [found]
        assert reading.others == [other]


def test_equal_lines_take_the_nearest_verdict_each() -> None:
    first, second = found_in("toy", "1.0", [reported(20), reported(30)])
    verdicts = [replace(judged(first, RIGHT), row=31), replace(judged(first, WRONG), row=18)]
    assert [verdict.verdict for _, verdict in match([first, second], verdicts).drawn if verdict] == [WRONG, RIGHT]


def test_only_what_is_right_counts_as_right() -> None:
    everything = population(9) + found_in("toy", "1.0", [reported(50, code="DVL101")])
    words = [RIGHT] * 7 + [WRONG, DEBATABLE, RIGHT]
    reading = match(everything, [judged(found, word) for found, word in zip(everything, words, strict=True)])
    rows = tallies([*everything, *population(3, "more")], reading)
    assert [tuple(row) for row in rows] == [("DVL101", 1, 1, 0, 0), ("DVL601", 12, 7, 1, 1), ("all", 13, 8, 1, 1)]
    assert shortfalls(rows) == [
        "DVL601: 7 of 9 are right; 90% are promised",
        "all: 8 of 10 are right; 95% are promised",
    ]


def test_enough_is_enough() -> None:
    everything = population(20)
    words = [RIGHT] * 19 + [WRONG]
    reading = match(everything, [judged(found, word) for found, word in zip(everything, words, strict=True)])
    assert shortfalls(tallies(everything, reading)) == []


def test_what_is_stored_is_what_is_loaded(tmp_path: Path) -> None:
    """What nobody has read gets a row; an old verdict stays, a question that nobody asks any more does not."""
    first, second = population(2)
    gone = replace(judged(first, WRONG), path="toy/gone.py")
    asked = replace(gone, verdict=UNREAD, why="", line=hashed("asked"))
    file = tmp_path / "drawn.csv"
    store(file, match([first, second], [judged(first, DEBATABLE), gone, asked]))
    assert {(verdict.path, verdict.row, verdict.verdict) for verdict in load(file)} == {
        ("toy/a.py", 1, DEBATABLE),
        ("toy/a.py", 2, UNREAD),
        ("toy/gone.py", 1, WRONG),
    }
    assert match([first, second], load(file)).unread == [second]


@pytest.mark.parametrize(
    ("verdict", "why", "reason"),
    [("rihgt", "x", "'rihgt' is none of right"), (RIGHT, "", "no reason"), (WRONG, "", "no reason")],
)
def test_a_spoilt_row_is_refused_in_one_line(tmp_path: Path, verdict: str, why: str, reason: str) -> None:
    file = tmp_path / "drawn.csv"
    (found,) = population(1)
    store(file, Reading([(found, replace(judged(found, verdict), why=why))], []))
    with pytest.raises(DrawingError, match=f"drawn.csv line 2: .*{reason}"):
        load(file)


def test_the_verdicts_in_the_repository_are_in_order_and_complete() -> None:
    rows = load(VERDICTS)
    assert rows == sorted(rows, key=lambda row: row.order)
    assert {row.verdict for row in rows} <= {RIGHT, WRONG, DEBATABLE}
    versions = {wheel.name: wheel.version for wheel in WHEELS}
    versions |= {repository.name: repository.version for repository in REPOSITORIES}
    assert all(versions[row.project] == row.version for row in rows)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_python_files_of_a_commit_are_unpacked_from_a_bare_clone(tmp_path: Path) -> None:
    bare = tmp_path / "owner+toy" / "repo"
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "a.py").write_bytes(b"a = 1\n")
    (work / "b.py").write_bytes(b"")
    (work / "picture.bin").write_bytes(b"\0" * 10)
    (work / "link.py").symlink_to("b.py")
    git(work, "init", "--quiet")
    git(work, "add", "-A")
    git(work, "commit", "--quiet", "-m", "x")
    commit = git(work, "rev-parse", "HEAD")
    git(work, "clone", "--quiet", "--bare", ".", str(bare))
    unpack(Repository("owner/toy", commit), tmp_path, tmp_path / "out")
    files = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.*")}
    assert files.keys() == {"src/a.py", "b.py"}
    assert files["src/a.py"].read_bytes() == b"a = 1\n"
    with pytest.raises(MirrorError, match="git ls-tree failed"):
        unpack(Repository("owner/toy", "0" * 40), tmp_path, tmp_path / "out")
    with pytest.raises(MirrorError, match="git clone --bare"):
        unpack(Repository("owner/other", commit), tmp_path, tmp_path / "out")
