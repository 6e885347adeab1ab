"""``devlint check``: find the files, check or rewrite them, filter the findings, print, and choose the exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from devlint.check.cache.policy import CachePolicy
from devlint.check.discovery.exclusion import force_excluded
from devlint.check.discovery.target import Target
from devlint.check.discovery.walk import discover
from devlint.check.engine import check_targets
from devlint.check.filters import Filters
from devlint.check.options import STDIN, Options, check_combination, configure, first_directory, reads_stdin, shortest
from devlint.check.outcome import Result
from devlint.check.output import note, show
from devlint.check.project.content import LARGEST, TOO_LARGE, Content
from devlint.check.witness import Witness
from devlint.config.load import Resolver
from devlint.config.schema import Config, ConfigError
from devlint.finding import Failure
from devlint.report.wording import plural
from devlint.rules.subsumption import summarized
from devlint.sites.proof import CONFIRMED
from devlint.streams import open_streams

if TYPE_CHECKING:
    from devlint.check.cache.results import Cache
    from devlint.check.filters.baseline import Baseline
    from devlint.check.task import Task

COLLECTING = (5_000_000, 5, 5)
"""When garbage is looked for."""
EXIT_CLEAN, EXIT_FOUND, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130


def run(options: Options, evidence: Callable[[str], Witness]) -> int:
    """Check what the options say, print the report, and return the exit code.

    ``evidence`` reads the record of a run that is asked about the findings; a ConfigError says what is wrong with it.
    """
    # A syntax tree is a great many objects without cycles: a collection after every 700 of them costs an eighth.
    gc.set_threshold(*COLLECTING)
    # nor is it looked for when Python ends, among all that is still in use: that took a tenth of some runs
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    open_streams()
    try:
        return _run(options, evidence)
    except ConfigError as error:
        note(f"error: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        note("error: interrupted")
        return EXIT_INTERRUPTED


def _run(options: Options, evidence: Callable[[str], Witness]) -> int:
    caching = CachePolicy(options)
    resolver, config = configure(options, caching.selectors)
    check_combination(options, config)
    if options.show_settings:
        from devlint.check.settings import settings

        sys.stdout.write(settings(config, first_directory(options)))
        return EXIT_CLEAN
    # what is wrong with a record is better known before the work
    witness = evidence(options.evidence) if options.evidence is not None else None
    filters = _filters(options, config)
    task = _task(options, filters)
    if reads_stdin(options):
        result, contents = _check_stdin(options, config, task, witness)
    else:
        try:
            result, contents = _check_files(options, resolver, task, filters, caching.cache(config), witness), {}
        finally:
            # also what was found before Ctrl-C
            problem = caching.save()
        if problem and not options.quiet:
            note(f"warning: {problem}")
    for line in (*result.errors, *result.unfixed):
        note(f"error: {line}")
    if options.add_suppressions is not None and not options.quiet:
        where = f" in {plural(len(result.gone), 'file')}" if result.gone else ""
        note(f"Added suppressions for {plural(sum(result.gone), 'problem')}{where}.")
    if filters.baseline is not None and not options.diff:
        filters = replace(filters, baseline=_compared(options, filters.baseline, result))
    known = 0 if filters.baseline is None else len(result.findings) - len(filters.baseline.new(result.findings))
    result.findings = filters.new(result.findings)
    # a baseline has none of them
    result.withheld = replace(filters, baseline=None).new(result.withheld)
    if witness is not None:
        _weigh(result, witness, contents)
    elif not contents:
        _leave_out(result)
    result.findings = summarized(result.findings)
    if not show(options, config, result, contents, known) or result.errors or result.unfixed:
        return EXIT_FAILED
    if options.diff:
        failing = bool(result.diffs)
    else:
        failing = any(finding.severity >= config.fail_on for finding in result.findings)
    return EXIT_FOUND if failing and not options.exit_zero else EXIT_CLEAN


def _weigh(result: Result, witness: Witness, contents: Mapping[str, bytes]) -> None:
    """What a run says of each finding; what was inferred, and has happened, is told to all."""
    inferred = [finding for finding in result.withheld if finding.unproven is not None]
    proven = [one for one in witness.weigh(inferred, contents) if one.evidence and one.evidence.verdict == CONFIRMED]
    told = {(finding.code, finding.filename, finding.span) for finding in proven}
    result.withheld = [one for one in result.withheld if (one.code, one.filename, one.span) not in told]
    findings = [*result.findings, *(replace(finding, asked=False) for finding in proven)]
    result.findings = witness.weigh(findings, contents)


def _leave_out(result: Result) -> None:
    """Who has not selected a rule is not told of code that nothing uses, or turns on, or that others wrote.

    The project may change the default device, or never leave it, or have no future. What costs little comes last.
    """
    told = [finding for finding in result.findings if not finding.selected]
    if told:
        from devlint.check.filters.copies import copied
        from devlint.check.filters.dead_code import dead
        from devlint.check.filters.minor import few
        from devlint.check.filters.project_devices import elsewhere, staying
        from devlint.check.filters.switches import untouched
        from devlint.check.filters.unmaintained import outlasted

        left_out: set[int] = set()
        for irrelevant in (copied, dead, untouched, elsewhere, staying, outlasted, few):
            gone = irrelevant([finding for finding in told if id(finding) not in left_out])
            result.withheld += gone
            left_out.update(map(id, gone))
        result.findings = [finding for finding in result.findings if id(finding) not in left_out]


def _task(options: Options, filters: Filters) -> Task | None:
    """What is done with the files besides checking them."""
    if options.fix or options.diff:
        from devlint.check.rewrite.fixes import ApplyFixes
        from devlint.check.task import Destination, Task

        stays = Destination.OUTCOME if reads_stdin(options) else Destination.FILE
        return Task(ApplyFixes(options.unsafe_fixes, filters), Destination.DIFF if options.diff else stays)
    if options.add_suppressions is None:
        return None
    from devlint.check.rewrite.suppressions import AddSuppressions, wrong_reason
    from devlint.check.task import Task

    reason = options.add_suppressions.strip()
    if wrong := wrong_reason(reason):
        raise ConfigError(f"--add-suppressions: {wrong}")
    return Task(AddSuppressions(reason, filters))


def _filters(options: Options, config: Config) -> Filters:
    """What is left out of the report."""
    since = baseline = None
    if options.since is not None:
        from devlint.check.filters.revision import since as changed

        since = changed(options.since, first_directory(options), options.paths)
    if config.baseline is not None:
        from devlint.check.filters.baseline import Baseline

        baseline = Baseline.read(shortest(config.baseline), may_lack=options.update_baseline)
    return Filters(baseline, since)


def _compared(options: Options, baseline: Baseline, result: Result) -> Baseline:
    """Say, or see to it, that entries of the baseline occur no more."""
    from devlint.check.filters.baseline import Judged

    judged = Judged.of(result.checked, result.findings, options.paths or (os.curdir,))
    if not options.update_baseline:
        stale = baseline.stale(result.findings, judged)
        if stale and not options.quiet:
            entries = plural(stale, "entry", "entries")
            occur = "occurs" if stale == 1 else "occur"
            note(f"warning: {entries} of the baseline no longer {occur}; run --update-baseline")
        return baseline
    updated = baseline.updated(result.findings, judged)
    try:
        if updated != baseline or not os.path.exists(updated.file):
            updated.write()
        return updated
    except OSError as error:
        result.errors.append(Failure(baseline.file, error.strerror or str(error)))
        note(f"error: {result.errors[-1]}")
        return baseline


def _check_files(
    options: Options,
    resolver: Resolver,
    task: Task | None,
    filters: Filters,
    cache: Cache | None,
    witness: Witness | None,
) -> Result:
    from devlint.report.progress import Progress

    discovery = discover(options.paths or (os.curdir,), resolver)
    targets = filters.targets(discovery.targets)
    if not discovery.targets and not discovery.errors and not options.quiet:
        note("warning: no Python files found under the given paths")
    elif discovery.targets and not targets and not options.quiet:
        note(f"No Python file has changed since {options.since}.")
    if witness is not None:
        targets = [target._replace(observations=witness.observations(target.path)) for target in targets]
    with Progress(enabled=not options.quiet and sys.stderr.isatty()) as progress:
        result = check_targets(targets, options.jobs, progress, task, cache)
    result.errors[:0] = discovery.errors
    return result


def _check_stdin(
    options: Options, config: Config, task: Task | None, witness: Witness | None
) -> tuple[Result, dict[str, bytes]]:
    """What comes of the standard input, and its content, fixed if that is asked for, under its name."""
    name = options.stdin_filename or STDIN
    if sys.stdin is None:
        return Result(errors=["the standard input is closed"]), {}
    try:
        data = sys.stdin.buffer.read(LARGEST + 1)
    except OSError as error:
        return Result(errors=[f"the standard input cannot be read: {error.strerror}"]), {}
    if len(data) > LARGEST:
        return Result(errors=[Failure(name, TOO_LARGE)]), {}
    if options.stdin_filename and config.force_exclude and force_excluded(os.path.abspath(name), config):
        return Result(files=1), {name: data}
    from devlint.check.analysis import Analyzer
    from devlint.check.project.view import view_of
    from devlint.check.task import Task

    project = view_of(Target(name, len(data), config)) if options.stdin_filename else None
    observations = witness.observations(name, data) if witness is not None else None
    outcome = (task or Task()).apply(Content(data), Analyzer(name, config, project, observations))
    result = Result()
    result.add(outcome, config)
    return result, {name: data if outcome.data is None else outcome.data}
