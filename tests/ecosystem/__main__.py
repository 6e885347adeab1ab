"""Run devlint over pinned releases of large projects and compare what it finds with what was reviewed.

``python -m tests.ecosystem --help`` says what there is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from . import __doc__ as manual
from .compare import Difference, compare, load, store
from .errors import EcosystemError
from .fixes import HEAD, fix_wheel
from .reported import Reported, check, excerpt, source_line
from .verdicts import (
    READ_BY_HAND,
    RIGHT,
    SHARE_RIGHT,
    UNREAD,
    WRONG,
    Matched,
    Reading,
    load_verdicts,
    match,
    store_verdicts,
    table,
    tally,
    verdict_file,
    with_unread_rows,
)
from .wheels import Wheel, chosen_wheels, default_cache, unpacked


def main() -> int:
    """0 if all is as reviewed, 1 if something differs, 2 if it could not be found out."""
    options = _options()
    commands = {"compare": compare_wheels, "verdicts": judge_wheels, "fixes": fix_wheels}
    try:
        return commands[options.command](options)
    except EcosystemError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m tests.ecosystem", description=manual, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("command", nargs="?", choices=("compare", "verdicts", "fixes"), default="compare")
    add("--wheel", action="append", default=[], metavar="NAME", help="only this project (may be repeated)")
    add("--code", action="append", default=[], metavar="CODE", help="with --show: only this rule (may be repeated)")
    add("--show", action="store_true", help="print findings with their code; with verdicts: those that nobody has read")
    add("--context", type=int, default=6, metavar="N", help="lines of code around a shown finding (6)")
    add(
        "--update",
        action="store_true",
        help="record what is found now; with verdicts: add a '?' row for each unread one",
    )
    add("--cache", type=Path, default=default_cache(), metavar="DIR", help="where the wheels are kept (%(default)s)")
    add("--jobs", metavar="N", help="devlint's own -j")
    return parser.parse_args()


def _findings(wheel: Wheel, options: argparse.Namespace, *selection: str) -> tuple[Path, list[Reported]]:
    """The unpacked wheel and what devlint reports on it."""
    folder = unpacked(wheel, options.cache)
    jobs = ["-j", options.jobs] if options.jobs else []
    start = time.perf_counter()
    findings = check(folder, [*selection, *jobs])
    seconds = time.perf_counter() - start
    print(f"{wheel.name} {wheel.version}: {len(findings)} findings in {seconds:.1f} s", flush=True)
    return folder, findings


def compare_wheels(options: argparse.Namespace) -> int:
    """Compare, show or record the findings of all rules."""
    differs = False
    for wheel in chosen_wheels(options.wheel):
        folder, findings = _findings(wheel, options, "--select", "ALL")
        if options.show:
            _show(findings, folder, options)
        else:
            differs |= _compare_wheel(wheel, folder, findings)
            if options.update:
                store(wheel, [finding.identity for finding in findings])
    if differs and not options.update:
        print("\nRead what came and what went; if it is better so, record it with --update.")
    return int(differs and not options.update)


def _compare_wheel(wheel: Wheel, folder: Path, findings: list[Reported]) -> bool:
    """Print how the findings of ``wheel`` differ from the reviewed ones; whether they do."""
    reviewed = load(wheel)
    if reviewed is None:
        print("  nobody has reviewed this wheel yet: read it with --show, record it with --update")
        _print_counts(Counter(finding.identity.code for finding in findings))
        return True
    if reviewed.version != wheel.version:
        print(f"  the review was of {reviewed.version}")
    difference = compare(reviewed, [finding.identity for finding in findings])
    _print_difference(difference, folder, findings)
    return bool(difference)


def _print_counts(counts: Counter[str]) -> None:
    """One line per rule."""
    for code, number in sorted(counts.items()):
        print(f"  {code} {number:6}")


def _print_difference(difference: Difference, folder: Path, findings: list[Reported]) -> None:
    """The counts that changed, then each finding that came or went."""
    for code, before, now in difference.counts:
        print(f"  {code} {before:6} -> {now} ({now - before:+})")
    messages = {finding.identity: f"{finding.severity}: {finding.message}" for finding in findings}
    for identity in difference.added:
        print(f"  + {identity} {messages[identity]}")
    for identity in difference.lost:
        file = folder / identity.path
        print(f"  - {identity} | {source_line(file, identity.row).strip() if file.is_file() else '(no such file)'}")


def _show(findings: list[Reported], folder: Path, options: argparse.Namespace) -> None:
    """Print findings with the code around them."""
    for finding in findings:
        if not options.code or finding.identity.code in options.code:
            print(excerpt(finding, folder, options.context))


def judge_wheels(options: argparse.Namespace) -> int:
    """Sum up the verdicts on the default findings of the wheels that are read by hand."""
    pairs: list[Matched] = []
    for wheel in chosen_wheels(options.wheel or list(READ_BY_HAND)):
        folder, findings = _findings(wheel, options)
        file = verdict_file(wheel)
        reading = match(findings, load_verdicts(file))
        pairs += reading.matched
        if options.show:
            _show(list(reading.unread), folder, options)
        if options.update:
            store_verdicts(file, with_unread_rows(reading))
        _print_reading(reading)
    print()
    print("\n".join(table(pairs)))
    return _verdict_on_the_verdicts(pairs)


def fix_wheels(options: argparse.Namespace) -> int:
    """Apply all fixes to copies of the wheels, and hold them to what a fix promises."""
    outcomes = []
    for wheel in chosen_wheels(options.wheel):
        outcome = fix_wheel(wheel, unpacked(wheel, options.cache), int(options.jobs or 0))
        outcomes.append(outcome)
        print("\n".join([wheel.name, *(f"  {line}" for line in outcome.broken)]), flush=True)
    print("\n".join(["", HEAD, *(outcome.row() for outcome in outcomes)]))
    return int(any(outcome.broken for outcome in outcomes))


def _print_reading(reading: Reading) -> None:
    """What a reader still has to do, and what changed since the reading."""
    for finding in reading.unread:
        print(f"  unread: {finding.identity} | {finding.line}")
    for verdict in reading.gone:
        if verdict.verdict == RIGHT:
            print(f"  lost, though it was right: {verdict.identity} | {verdict.line}")
    wrong = sum(verdict.verdict == WRONG for verdict in reading.gone)
    if wrong:
        print(f"  no longer reported, and were wrong: {wrong}")


def _verdict_on_the_verdicts(pairs: list[Matched]) -> int:
    """Whether everything that must be read was read, and enough of it is right."""
    result = tally(pairs)
    if result.unread:
        print(
            f"\n{result.unread} findings have no verdict: add '{UNREAD}' rows for them with --update, and fill them in."
        )
        return 1
    if result.share is not None and result.share < SHARE_RIGHT:
        print(f"\nonly {result.share:.1%} of the findings are right; {SHARE_RIGHT:.0%} is promised.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
