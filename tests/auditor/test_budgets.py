"""Budgets of a run: what they count, what breaks them, and how `devlint audit` says so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from devlint.auditor.budgets import broken
from devlint.config.budgets import NAMES, BudgetError, read
from devlint.config.load import load
from devlint.config.schema import ConfigError
from devlint.record import Record, Steps
from devlint.rules.selection import validate
from tests.auditor.running import audit
from tests.report import records
from tests.simulator.available import simulates

# Two copies of a batch and an `item()` in each training step, an `any()` in each of 40 steps.
CNN = records.cnn()


def figures(record: Record, **limits: float) -> dict[str, str]:
    return {breach.name: breach.text for breach in broken(record, limits)}


def test_what_is_counted() -> None:
    """By hand from the record: 40 training steps, 8 of evaluation, set-up and the end."""
    assert figures(CNN, **dict.fromkeys((name for name in NAMES if not name.startswith("no_")), 0)) == {
        "h2d": "94 copies to the device, none allowed",  # 2 x 40, 8, and 6 of the model
        "h2d_per_step": "2 copies to the device in a training step, none allowed",
        "h2d_bytes": "9.40 MiB copied to the device, none allowed",  # 201,216 x 40 + 8 x 200,704 + 203,560
        "h2d_bytes_per_step": "196 KiB copied to the device in a training step, none allowed",  # 200,704 + 512
        "d2h": "46 copies from the device, none allowed",  # 40 items, 6 of the model
        "d2h_per_step": "1 copy from the device in a training step, none allowed",
        "d2h_bytes": "199 KiB copied from the device, none allowed",
        "d2h_bytes_per_step": "4 B copied from the device in a training step, none allowed",
        "syncs": "86 waits for the device, none allowed",  # 40 items, 40 times any, 6 copies
        "syncs_per_step": "2 waits for the device in a training step, none allowed",
    }


def test_a_limit_may_be_reached_and_not_exceeded() -> None:
    assert not broken(CNN, {"h2d_per_step": 2, "h2d_bytes_per_step": 201_216, "syncs": 86, "no_device_mismatch": 1})
    assert figures(CNN, h2d_bytes_per_step=201_215).keys() == {"h2d_bytes_per_step"}


def test_the_lines_are_named_the_costliest_first() -> None:
    (breach,) = broken(CNN, {"h2d_per_step": 1.5})
    assert breach.text.endswith(", 1.5 allowed")
    assert breach.places == (
        "train.py:12: 1 x 196 KiB  images, labels = images.to(device), labels.to(device)",
        "train.py:12: 1 x 512 B  images, labels = images.to(device), labels.to(device)",
    )
    framework = broken(records.framework(), {"h2d_per_step": 23})[0]
    assert len(framework.places) == 9
    assert framework.places[0].startswith("finetune.py:12 via /opt/venv/lib/python3.11/site-packages/transformers/")
    assert framework.places[-1] == "and 16 more places"


def test_what_is_rare_counts_by_its_mean() -> None:
    (process,) = CNN.processes
    rare = [
        replace(event, calls=4, steps=4, steady=replace(event.steady, calls=0, bytes=0)) if event.steady else event
        for event in process.events
        if event.name == "item"
    ]
    record = replace(CNN, processes=(replace(process, events=tuple(rare)),))
    assert figures(record, syncs_per_step=0) == {
        "syncs_per_step": "0.1 waits for the device in a training step, none allowed"
    }
    assert not broken(record, {"syncs_per_step": 0.1})


def test_an_evaluation_has_steps_too_and_no_step_is_no_proof() -> None:
    (process,) = CNN.processes
    evaluation = replace(CNN, processes=(replace(process, steps=Steps(eval=8)),))
    assert figures(evaluation, h2d_per_step=0) == {
        "h2d_per_step": "1 copy to the device in an evaluation step, none allowed"
    }
    nothing = replace(CNN, processes=(replace(process, steps=Steps()),))
    assert figures(nothing, h2d_per_step=99)["h2d_per_step"].startswith("there was no training or evaluation step")
    assert not broken(nothing, {"h2d": 94})
    # that of all tests says nothing of one without a step; in all, it does
    assert not broken(nothing, {"h2d_per_step": 99}, general={"h2d_per_step"})
    assert broken(nothing, {"h2d": 1}, general={"h2d"})
    assert broken(CNN, {"h2d_per_step": 0}, general={"h2d_per_step"})


def test_the_rank_that_does_most_counts() -> None:
    assert figures(records.distributed(), h2d_per_step=2) == {
        "h2d_per_step": "4 copies to the device in a training step of rank 1, 2 allowed"
    }
    assert figures(records.distributed(), syncs=1)["syncs"].startswith("86 waits for the device in rank 0")


def test_a_mismatch_is_explained() -> None:
    (breach,) = broken(records.mismatch(), {"no_device_mismatch": 1})
    (place,) = breach.places
    assert place.startswith("nets/model.py:10: `input` on cuda:0 and `self.heads[0].weight` on cpu (`heads` is a plain")


def test_findings_are_named() -> None:
    (breach,) = broken(CNN, {"no_findings": 1})
    assert breach.text == "1 found by the rules"
    assert breach.places[0].startswith("train.py:7: DVL301 the batches of this `DataLoader`")
    hint = replace(CNN, findings=({**records.MISSING_PIN, "severity": "info"},))
    assert not broken(hint, {"no_findings": 1})


def test_an_audit_that_failed_proves_nothing() -> None:
    (process,) = CNN.processes
    record = replace(CNN, processes=(replace(process, failure="TypeError: no"),))
    assert figures(record, h2d_per_step=2) == {
        "audit": "devlint switched itself off, so that nobody knows: TypeError: no"
    }
    assert not broken(record, {})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"h2d-per-stepp": 1}, "there is no budget 'h2d-per-stepp' (did you mean 'h2d-per-step'?)"),
        ({"syncs": -1}, "syncs: expected a number, 0 or more"),
        ({"syncs": True}, "syncs: expected a number, 0 or more"),
        ({"syncs": "none"}, "syncs: expected a number, 0 or more"),
        ({"syncs": float("nan")}, "syncs: expected a number, 0 or more"),
        ({"no-findings": 1}, "no-findings: expected true or false"),
    ],
)
def test_what_is_wrong_with_a_budget_is_one_line(table: dict[str, object], message: str) -> None:
    with pytest.raises(BudgetError, match=f"^{re.escape(message)}$"):
        read(table)


def test_they_are_read_from_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.devlint.audit.budgets]\nh2d-per-step = 2\nno_findings = false\nno-device-mismatch = true\n")
    assert dict(load(str(file), validate).budgets) == {"h2d_per_step": 2, "no_device_mismatch": True}
    for text, message in (
        (
            "[tool.devlint.audit]\nh2d-per-step = 2",
            "h2d-per-step is a budget, and belongs in [tool.devlint.audit.budgets]",
        ),
        ("[tool.devlint.audit.budget]", "audit: unknown key 'budget' (did you mean 'budgets'?)"),
        ("[tool.devlint]\naudit = 1", "audit: expected a table such as [tool.devlint.audit.budgets]"),
        ("[tool.devlint.audit]\nbudgets = 1", "audit: budgets: expected a table such as { h2d-per-step = 2 }"),
        ("[tool.devlint.audit.budgets]\nsync = 1", "audit: there is no budget 'sync' (did you mean 'syncs'?)"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=re.escape(message)):
            load(str(file), validate)


@simulates
def test_the_audit_fails_and_says_which_line_it_was(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.devlint]\nignore = ['ALL']\n[tool.devlint.audit.budgets]\nsyncs-per-step = 0\nh2d-per-step = 1\n"
    )
    code = """
    import torch
    model = torch.nn.Linear(4, 2).to("cuda")
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(5):
        loss = model(torch.ones(3, 4).to("cuda")).sum()
        loss.backward()
        optimizer.step()
        print(loss.item() < 99)
    """
    (tmp_path / "train.py").write_text(dedent(code))
    done = audit(tmp_path, "--simulate", "train.py")
    assert (done.code, done.out) == (1, "True\n" * 5)
    assert done.err.endswith(
        "error: the budget syncs-per-step was broken: 1 wait for the device in a training step, none allowed\n"
        "  train.py:9: 1 x 4 B  print(loss.item() < 99)\n"
    )
    assert "h2d-per-step" not in done.err
