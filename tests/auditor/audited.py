"""Runs scripts under `devlint.audit(simulate=True)`, each in an audit of its own, and prints what was found as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import warnings
from typing import Any

import devlint
from devlint.auditor.judgement.judge import judge
from devlint.config.schema import Config, RuleLayer

EVERY_RULE = Config(rule_layers=(RuleLayer(select=("ALL",)),))


def audit(script: str) -> list[dict[str, Any]]:
    """The findings in the script itself, under all rules."""
    warnings.simplefilter("ignore")
    # what a run dies of is part of its record
    silenced, survived = contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception)
    with silenced, survived, devlint.audit(simulate=True, devices=2) as run:
        runpy.run_path(script, run_name="__main__")
    failures = [process.failure for process in run.record.processes if process.failure]
    assert not failures, failures
    findings = judge(run.record, EVERY_RULE).findings or ()
    return [
        {key: finding[key] for key in ("code", "severity", "message", "filename", "location")} for finding in findings
    ]


def main(scripts: list[str]) -> None:
    """Print an object with the findings of each script."""
    json.dump({script: audit(os.path.abspath(script)) for script in scripts}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
