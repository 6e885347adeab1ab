"""The audit of one test, or of a block in it, in the process that runs it."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from devlint.auditor.budgets import broken
from devlint.config.budgets import BudgetError, read
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.rules.selection import validate
from devlint.testing.marks import NAME, simulated
from devlint.testing.parent import devices_of

if TYPE_CHECKING:
    from devlint.audit_context import Audit

_OPTIONS: dict[str, tuple[type, ...]] = {"simulate": (bool, type(None)), "devices": (int,), "steps": (int, type(None))}
_WORDS = {"simulate": "True or False", "devices": "a number", "steps": "a number"}


def arguments_of(item: pytest.Item) -> dict[str, Any]:
    """What the markers of a test were given, the innermost going first; a mistake in one fails the test."""
    found: dict[str, Any] = {}
    for marker in item.iter_markers(NAME):
        if marker.args:
            example = "such as h2d_per_step=2"
            pytest.fail(f"device_audit: budgets are given by name, {example}, not {marker.args[0]!r}", pytrace=False)
        found = {**marker.kwargs, **found}
    return found


def simulates(item: pytest.Item) -> bool:
    """Whether a test needs another process: it asks for a simulated accelerator, or none is here, or not enough."""
    markers = item.iter_markers(NAME)
    wanted = next((marker.kwargs["simulate"] for marker in markers if "simulate" in marker.kwargs), None)
    here = simulated(item)
    if here:
        return wanted is not False and devices_of(item) > here
    if isinstance(wanted, bool):
        return wanted
    try:
        from devlint.auditor.running.recording import missing_accelerator

        return bool(missing_accelerator())
    except ImportError:
        return False  # without torch nothing is audited, as the test itself will say


class Block:
    """A block that is audited, and whose budgets are enforced when it ends; those of the configuration hold, too."""

    def __init__(self, item: pytest.Item, arguments: dict[str, Any]) -> None:
        self._item = item
        self._options = {name: arguments.pop(name) for name in list(arguments) if name in _OPTIONS}
        self._limits = _limits(item, arguments)
        self._general = self._limits.keys() - arguments.keys()
        for name, value in self._options.items():
            if not isinstance(value, _OPTIONS[name]) or (isinstance(value, bool) and name != "simulate"):
                pytest.fail(f"device_audit: {name}: expected {_WORDS[name]}, not {value!r}", pytrace=False)
        self._run: Audit | None = None

    def __enter__(self) -> Audit:
        from devlint.audit_context import Audit, AuditError

        here = simulated(self._item) > 0
        if here and self._options.get("simulate") is False:
            pytest.fail("device_audit: simulate=False: the accelerator of this suite is a simulated one", pytrace=False)
        options = {**self._options, "simulate": here, "every_step": True}
        run = Audit(**options)
        try:
            run.__enter__()
        except AuditError as error:
            raise pytest.fail.Exception(f"device_audit: {error}", pytrace=False) from None
        self._run = run
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        run = self._run
        if run is None:
            return False
        ended = run.__exit__(kind, error, trace)
        if error is not None and not ended:
            if isinstance(error, Exception):
                self._item.add_report_section("call", "device audit", run.report(quiet=True))
                hide_the_simulator()
            return False
        found = broken(run.record, self._limits, self._general)
        if found:
            self._item.add_report_section("call", "device audit", run.report())
            count = "a budget was" if len(found) == 1 else f"{len(found)} budgets were"
            text = "\n".join(str(breach) for breach in found)
            raise pytest.fail.Exception(f"device audit: {count} broken\n{text}", pytrace=False)
        return ended


def hide_the_simulator() -> None:
    """Let pytest end the traceback of an operation that failed in the test, as it does where a GPU's kernel failed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("devlint.simulator."):
            vars(module)["__tracebackhide__"] = True


def _limits(item: pytest.Item, arguments: dict[str, Any]) -> dict[str, float]:
    """The budgets of the configuration of the test's directory, and on top of them what the test says itself."""
    try:
        configured = Resolver(validate).at(os.path.dirname(os.path.abspath(item.path)))
        given = read({name: value for name, value in arguments.items() if value is not None})
    except (ConfigError, BudgetError) as error:
        raise pytest.fail.Exception(f"device_audit: {error}", pytrace=False) from None
    # None and False take back what the configuration says.
    taken_back = {name for name, value in arguments.items() if value is None or value is False}
    return {name: limit for name, limit in {**dict(configured.budgets), **given}.items() if name not in taken_back}
