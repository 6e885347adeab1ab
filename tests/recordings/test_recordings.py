"""What recordings of real cards say is what the simulated device and the recorder do; without the traces themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from devlint.cli import main
from tests.recordings import page
from tests.recordings.comparing import differences
from tests.recordings.listed import Recording, digests, recordings
from tests.recordings.operators import agrees, believed, kept, table_agrees, tabled

RECORDINGS = recordings()
REASONS = page.reasons()
PROGRAMS = {page.command(each): each for each in RECORDINGS if each.program}


def test_every_recording_can_be_found_again_and_is_kept() -> None:
    assert len({each.name for each in RECORDINGS}) == len({each.sha256 for each in RECORDINGS}) == len(RECORDINGS)
    assert all(len(each.commit) == 40 and each.path and each.card for each in RECORDINGS)
    assert set(digests()) == {each.name for each in RECORDINGS}
    assert set(page.audits()) == set(PROGRAMS)


def test_enough_was_compared() -> None:
    agreeing = [recording for recording, digest, found in page.compared() if found == [] and digest.quantities]
    assert len(agreeing) >= 10
    assert len({recording.program for recording in agreeing}) >= 5


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.name)
def test_an_audit_agrees_or_there_is_a_reason(recording: Recording) -> None:
    (found,) = [found for each, _, found in page.compared() if each is recording or each == recording]
    assert found == [] or recording.name in REASONS


@pytest.mark.parametrize("operator", kept(), ids=lambda each: each.name)
def test_the_recorder_believes_what_was_recorded(operator) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("torch")
    assert believed(operator.name) == operator.believed
    assert agrees(operator) or operator.name in REASONS


@pytest.mark.parametrize("operator", kept(), ids=lambda each: each.name)
def test_the_table_knows_of_the_waits_that_were_recorded(operator) -> None:  # type: ignore[no-untyped-def]
    assert tabled(operator.name) == operator.tabled
    assert table_agrees(operator) or operator.name in REASONS


def test_no_reason_is_left_over() -> None:
    needed = {recording.name for recording, _, found in page.compared() if found != []}
    assert set(REASONS) == needed | {
        operator.name for operator in kept() if not (agrees(operator) and table_agrees(operator))
    }


def test_the_page_shows_what_the_report_prints() -> None:
    text = (Path(__file__).parents[2] / "docs" / "profiler-trace.md").read_text(encoding="utf-8")
    shown = text.partition("```text\n")[2].partition("```")[0]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, ["report", str(Path("docs/trace.json"))])
    assert done.output == shown


def _rerun(command: str) -> None:
    running = pytest.importorskip("tests.recordings.running")
    recording = PROGRAMS[command]
    audited = running.run(recording)
    assert audited == page.audits()[command]
    found = differences(digests()[recording.name], audited)
    assert found == [] or recording.name in REASONS


@pytest.mark.parametrize("command", ["tensors/product.py 3", "models/trimmer.py 1 5"])
def test_a_program_is_audited_as_it_is_kept(command: str) -> None:
    from tests.documented import needs_a_simulated_accelerator

    needs_a_simulated_accelerator()
    _rerun(command)


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(PROGRAMS))
def test_every_program_is_audited_as_it_is_kept(command: str) -> None:
    from tests.documented import needs_a_simulated_accelerator

    needs_a_simulated_accelerator()
    _rerun(command)
