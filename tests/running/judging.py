"""Runs a case as often as it takes to tell, for each finding of its file, whether the run shows what is claimed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from devlint.finding import Finding
from tests.running.arguments import Unfilled
from tests.running.cases import Case, Fixture
from tests.running.claims import Claim
from tests.running.execution import execute
from tests.running.imaginary import NotInstalled
from tests.running.observed import Run

Claims = dict[Finding, Claim]


@dataclass
class Verdict:
    """What the runs of one call of a case have shown; ``against`` says why a finding was not."""

    shown: set[Finding] = field(default_factory=set)
    against: dict[Finding, str] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def as_json(self, findings: list[Finding]) -> dict[str, Any]:
        """The same, with findings by number."""
        return {
            "problem": "; ".join(self.problems),
            "shown": sorted(findings.index(finding) for finding in self.shown),
            "against": {
                findings.index(finding): words for finding, words in self.against.items() if finding not in self.shown
            },
            "entered": sorted(self.entered),
        }


@dataclass(frozen=True)
class Trial:
    """One call of one case of a fixture on a machine; ``own`` is the claim of the fixture's rule."""

    fixture: Fixture
    case: Case
    call: str
    machine: str
    claims: Claims
    own: Claim | None

    def judge(self) -> Verdict:
        """Run it, and again after each mistake that ended it or was put right."""
        verdict = Verdict()
        causes = tuple(finding for finding, claim in self.claims.items() if claim.causal)
        while True:
            run = self._run(verdict, causes)
            fatal = self._look(run, verdict)
            if run.failure and not fatal and all(self.claims[finding].causal for finding in run.left_out):
                self._complain(run, verdict)
            if not fatal or not self._has_more(verdict):
                break
            causes = (*causes, *fatal)
        if self.own and self.fixture.is_good and self._is_at_home():
            self._look_for_signs(verdict, list(self.own.absent(run)))
        for finding in causes:
            if self.claims[finding].causal and run.seen(run.node(finding)):
                self._try_without(finding, tuple(other for other in causes if other != finding), verdict)
        return verdict

    def _is_at_home(self) -> bool:
        """Whether this is the machine on which the mistakes of the fixture's rule show."""
        return self.own is not None and (self.own.machine == "host") == (self.machine == "host")

    def _look_for_signs(self, verdict: Verdict, signs: list[str]) -> None:
        """There must be no signs of the mistake, but in a case that is let be: that must show them."""
        if not self.case.let_be:
            verdict.problems += signs
        elif self.machine == "host" and verdict.problems:
            verdict.problems.clear()
        elif not signs:
            verdict.problems.append(f"nothing is seen of what is let be: {self.case.let_be}")

    def _run(self, verdict: Verdict, left_out: tuple[Finding, ...]) -> Run:
        run = execute(self.fixture, self.case, self.call, self.machine, self.claims, self.own, left_out)
        verdict.entered |= run.entered
        return run

    def _look(self, run: Run, verdict: Verdict) -> list[Finding]:
        """Ask all claims but the causal ones; the result are the findings that have ended the run."""
        fatal = []
        for finding, claim in self.claims.items():
            if claim.causal or finding in run.left_out:
                continue
            said = claim.shown(finding, run)
            if said is None:
                verdict.shown.add(finding)
                fatal += [finding] if claim.is_fatal(finding, run) else []
            else:
                verdict.against.setdefault(finding, said)
        return [finding for finding in fatal if run.failure and run.failure.is_in_statement(finding)] or fatal

    def _try_without(self, finding: Finding, others: tuple[Finding, ...], verdict: Verdict) -> None:
        """With all other mistakes put right, this one alone has to make the difference."""
        run = self._run(verdict, others)
        self._look(run, verdict)
        said = self.claims[finding].shown(finding, run)
        if said is None:
            verdict.shown.add(finding)
        else:
            verdict.against[finding] = said

    def _has_more(self, verdict: Verdict) -> bool:
        """Whether the case that was ended has more to show."""
        ended = {self.fixture.case_of(finding.span.row).name for finding in verdict.shown}
        rest = (finding for finding in self.claims if finding not in verdict.shown)
        return any(self.fixture.case_of(finding.span.row).name in ended for finding in rest)

    def _complain(self, run: Run, verdict: Verdict) -> None:
        """Of an exception that nobody has spoken of."""
        assert run.failure
        if self.machine == "host" and not self._is_at_home():
            return
        if self.machine == "host" and run.failure.is_own:
            return
        error = run.failure.error
        rows = [place.span.row for place in run.failure.places]
        words = f"{run.failure.text} (rows {rows})"
        if isinstance(error, NotInstalled):
            library = str(error).partition(".")[0]
            words = f"{error} is not installed: say so with `# cannot run: needs {library}`"
        elif isinstance(error, Unfilled):
            words = str(error)
        verdict.problems.append(words)
