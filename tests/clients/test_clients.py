"""The clients that need nothing but torch print the same with the audit as without, and their phases have names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.clients import page
from tests.clients.catalog import CLIENTS, SCRIPTS, chosen
from tests.clients.running import Outcome, audited, lay, plain

STEPS = {
    "ddp_ranks": "4 training (4 of SGD)",
    "lora_recipe": "8 training (4 of AdamW)",
    "own_generation": "36 forward passes in generate()",
    "rollouts": "5 training (5 of Adam), 60 forward passes in rollout()",
    "self_play": "6 training (6 of SGD), 50 forward passes in play()",
    "spawned_workers": "4 training (4 of SGD)",
}


@pytest.mark.parametrize("name", STEPS)
def test_a_program_is_what_it_was(name: str, tmp_path: Path) -> None:
    (client,) = chosen((name,))
    script = lay(client, tmp_path, None)
    assert script is not None
    without = plain(client, script, sys.executable, 120)
    outcome, report = audited(client, script, sys.executable, 120, tmp_path / "run.json")
    assert (without.code, outcome.code) == (0, 0), without.errors + outcome.errors
    assert outcome.output == without.output != ""
    assert not report.crashed
    assert report.steps == STEPS[name]
    assert report.in_short.startswith("each ")


def test_the_page_shows_the_results_that_are_kept() -> None:
    shown = page.PAGE.read_text(encoding="utf-8").partition(page.BEGIN)[2].partition(page.END)[0]
    assert shown == page.tables(page.load())
    assert set(page.load()["runs"]) == {client.name for client in CLIENTS}


def test_each_script_is_run_by_one_client() -> None:
    own = [client.name for client in CLIENTS if not client.repository]
    assert len(own) == len(set(own))
    assert {path.stem for path in SCRIPTS.glob("*.py")} <= set(own)
    assert all(client.own().is_file() for client in CLIENTS if not client.repository)


def test_the_numbers_of_an_output_are_not_its_times() -> None:
    told = "loss 1.25 of 3 in 0.5 s, 12.5it/s, ms/batch 3.5 | loss  -2.5e-3\n{'train_runtime': '0.37', 'x': 'nan'}"
    assert Outcome(0, told, "", 1.0).numbers == ["1.25", "-2.5e-3", "nan"]
    assert Outcome(0, "tokens 3 17 in 0.5 s", "", 1.0).numbers == ["3", "17"]
