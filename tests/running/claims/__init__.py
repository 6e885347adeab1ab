"""How the mistake that a rule reports shows when the code runs, by the rule's code.

A claim answers `shown(finding, run)`: `None` where the run shows what the finding says, or else what speaks against it,
in a few words.  It looks at what `observed.Run` has: the failure and where it was raised, what the recorder counted on
the rows of the finding, the values of expressions it asked to watch (`watches`).  `raising` makes the claim that the
code raises, and `costing` the claim that the recorder counts something there; others are functions of their own.
`absent(run)` yields the signs of the mistake in the run of a `good` case, beyond its running without an exception.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from devlint.finding import Finding
from devlint.record import Event
from tests.running.observed import Run

Machine = Literal["accelerator", "host"]
"""Where a mistake shows: with two accelerators, simulated or real, or on a machine that has none."""

Shown = Callable[[Finding, Run], str | None]


def nothing(run: Run) -> Iterable[str]:
    """No sign of a mistake but an exception."""
    return ()


def watch_nothing(node: ast.AST) -> Iterable[ast.expr]:
    """No value is needed."""
    return ()


def itself(node: ast.AST) -> Iterable[ast.expr]:
    """The value of what is underlined."""
    return [node] if isinstance(node, ast.expr) else []


@contextmanager
def nothing_else(run: Run) -> Iterator[None]:
    """Nothing is done besides."""
    yield


@dataclass(frozen=True)
class Claim:
    """How a rule's mistake shows.

    ``watches`` chooses, given the node that a finding underlines, expressions whose values are kept; ``surveys`` does
    so for the whole tree, in all files of the rule, where `absent` has to see something.  ``raises``: the code dies of
    it; it is left out then, and the case goes on after it.  ``causal``: what the finding underlines does its harm
    elsewhere.  The case has to run clean when every such thing is moved to the accelerator, and `shown` is asked of a
    run in which all but this one are.  ``during`` is entered around each run of a file for which the claim is made.
    ``ends`` matches the exception that the mistake leads to, wherever it is raised.
    ``leaves_out_call``: to go on after the mistake, the call around it is left out, and not only what is underlined.
    ``others`` are the claims of findings whose message has certain words.
    """

    shown: Shown
    absent: Callable[[Run], Iterable[str]] = nothing
    watches: Callable[[ast.AST], Iterable[ast.expr]] = watch_nothing
    surveys: Callable[[ast.Module], Iterable[ast.expr]] = watch_nothing
    machine: Machine = "accelerator"
    raises: bool = False
    causal: bool = False
    during: Callable[[Run], AbstractContextManager[None]] = nothing_else
    ends: str = ""
    leaves_out_call: bool = False
    others: Mapping[str, Claim] = field(default_factory=dict)

    def of(self, finding: Finding) -> Claim:
        """The claim of a finding of the rule."""
        return next((claim for words, claim in self.others.items() if words in finding.message), self)

    def is_fatal(self, finding: Finding, run: Run) -> bool:
        """Whether what was shown has ended the run."""
        if run.failure is None:
            return False
        return self.raises or bool(self.ends and re.search(self.ends, run.failure.text))


def raising(*patterns: str, machine: Machine = "accelerator") -> Claim:
    """The code raises where the finding is, in words that match one of the patterns."""

    def shown(finding: Finding, run: Run) -> str | None:
        if run.failure is None:
            return "nothing was raised"
        if not run.failure.is_at(finding):
            return f"not raised there: {run.failure.text}"
        matched = any(re.search(pattern, run.failure.text) for pattern in patterns)
        return None if matched else f"raised otherwise: {run.failure.text}"

    return Claim(shown, machine=machine, raises=True)


def costing(*kinds: str, when: Callable[[Event], bool] = lambda event: True, calls: int = 1) -> Claim:
    """The recorder counts at least so many of such events where the finding is."""

    def shown(finding: Finding, run: Run) -> str | None:
        found = run.events(finding)
        counted = sum(event.calls for event in found if event.kind in kinds and when(event))
        if counted >= calls:
            return None
        return f"{counted} of {calls} counted; there are {[(event.kind, event.name, event.calls) for event in found]}"

    return Claim(shown)


@dataclass(frozen=True)
class Unobservable:
    """Nothing of the rule's claim can be seen in a run, and why."""

    reason: str


def registry() -> dict[str, Claim | Unobservable]:
    """All claims: what the modules of this package have in their ``CLAIMS``."""
    found: dict[str, Claim | Unobservable] = {}
    for module in pkgutil.iter_modules(__path__):
        found |= importlib.import_module(f"{__name__}.{module.name}").CLAIMS
    return found
