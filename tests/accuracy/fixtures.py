"""``python -m tests.accuracy.fixtures``: run every fixture, and keep how much of what is claimed was seen to happen."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

from devlint.rules.registry import registry as rules
from tests.accuracy.figures import Figures, Table, save
from tests.running.claims import Unobservable, registry
from tests.running.outcomes import GROUPS, Outcome, cannot_run, run

COMMAND = "python -m tests.accuracy.fixtures"


def main() -> int:
    """1 if something is not as it is said to be."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--real", action="store_true", help="on the GPU of this machine instead of a simulated one")
    options = parser.parse_args()
    machines = {"real" if options.real and name == "simulated" else name: codes for name, codes in GROUPS.items()}
    groups = [(machine, pattern) for machine, patterns in machines.items() for pattern in patterns]
    outcomes = [outcome for machine, pattern in groups for outcome in run(machine, pattern, apart=True)]
    wrong = [complaint for outcome in outcomes for complaint in outcome.complaints()]
    print("\n".join(wrong))
    figures = figures_of(outcomes, len(wrong), "a GPU" if options.real else "the simulated accelerator")
    print(figures.summary)
    if not options.real:
        print(f"kept in {save('fixtures', figures)}")
    return 1 if wrong else 0


def figures_of(outcomes: list[Outcome], wrong: int, machine: str) -> Figures:
    """The sums, by rule and in all."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        row = rows[outcome.fixture.code]
        kind = "good" if outcome.fixture.is_good else "bad"
        done = [each for each in outcome.runs if "cannot" not in each]
        row.update({f"{kind} runs": len(done), f"{kind} cases": len({each["case"] for each in done})})
        for number in outcome.shown | (outcome.judged - outcome.excused):
            rows[outcome.findings[number].code].update(claims=1, seen=int(number in outcome.shown))
    for fixture, _ in cannot_run():
        rows[fixture.code]["cannot"] += 1
    total = sum(rows.values(), Counter())
    summary = (
        f"Each case of the fixtures is run on {machine}, or on a machine without one where its rule speaks of that: "
        f"{total['bad cases']} bad cases in {total['bad runs']} runs, {total['good cases']} good ones in "
        f"{total['good runs']}. Of {total['claims']} claims that can be seen in a run, {total['seen']} were seen where "
        f"the message says; {wrong} things were not as they are said to be. {total['cannot']} cases cannot run. "
        "The fixtures are the project's own examples: this shows that rules say what is so, and not how they do on "
        "other code."
    )
    columns = ["rule", "bad cases", "bad runs", "good cases", "good runs", "claims", "seen", "cannot"]
    per_rule = [[code, *(rows[code][name] for name in columns[1:])] for code in sorted(rows)]
    per_rule = [[f"{row[0]} {rules()[str(row[0])].name}", *row[1:]] for row in per_rule]
    reasons = Counter(case.cannot for _, case in cannot_run())
    unseen = [(code, claim.reason) for code, claim in sorted(registry().items()) if isinstance(claim, Unobservable)]
    return Figures(
        title="Every fixture is run",
        command=COMMAND,
        summary=summary,
        tables=(
            Table("By rule; claims are findings, also those of other rules' fixtures", columns, per_rule),
            Table("Why cases cannot run", ["reason", "cases"], [list(item) for item in reasons.most_common()]),
            *([Table("Rules whose claims no run can show", ["rule", "why"], unseen)] if unseen else ()),
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
