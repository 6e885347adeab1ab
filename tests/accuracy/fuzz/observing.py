"""Observes the calls of a program's functions while it runs on the simulated accelerator, as an audit does."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from pathlib import Path
from typing import Any

from devlint.auditor.judgement.teaching import observations
from devlint.sites.observed import Observations
from tests.accuracy.fuzz.running import simulate
from tests.auditor.profiling import observing, seen_of


def observe(text: str, words: tuple[str, ...] = ()) -> Observations | None:
    """What a run of a program with these words in ``sys.argv`` has seen, as far as it gets."""
    simulate()()
    file = str(Path(__file__).with_name("drawn_program.py"))
    space: dict[str, Any] = {"__name__": "program"}
    argv, sys.argv = sys.argv, ["program", *words]
    try:
        with observing(str(Path(__file__).parent)) as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
                exec(compile(text, file, "exec", dont_inherit=True), space)
            record = seen_of(session, file, text)
    finally:
        sys.argv = argv
    assert not session.failure, session.failure
    return observations(record, file, "run.json")
