"""What ``devlint check`` does with its options: configure, check, print, and choose the exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from devlint.check.caching import Caching
from devlint.check.content import LARGEST
from devlint.check.discover import Target, discover, force_excluded
from devlint.check.engine import (
    FAILED,
    TOO_LARGE,
    AnalysisError,
    Fixing,
    Result,
    Task,
    check_source,
    check_targets,
    fixing_task,
)
from devlint.check.narrow import Narrowing, judged
from devlint.check.options import STDIN, Options, check_combination, configure, first_directory, reads_stdin, shortest
from devlint.config.load import Resolver
from devlint.config.schema import Config, ConfigError
from devlint.finding import Failure, Finding
from devlint.streams import open_streams

if TYPE_CHECKING:
    from devlint.check.cache.results import Cache

COLLECTING = (5_000_000, 5, 5)
"""When garbage is looked for."""
Weigh = Callable[[Iterable[Finding], Mapping[str, bytes]], list[Finding]]
"""The findings with what a run says of each; beside them, the content of files that are not read from the disk."""
EXIT_CLEAN, EXIT_FOUND, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130


def run(options: Options, evidence: Callable[[str], Weigh]) -> int:
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
        _say("error", str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        _say("error", "interrupted")
        return EXIT_INTERRUPTED


def _run(options: Options, evidence: Callable[[str], Weigh]) -> int:
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the current directory cannot be used: {error.strerror}") from error
    caching = Caching(options)
    resolver, config = configure(options, caching.selectors)
    check_combination(options, config)
    # what is wrong with a record is better known before the work
    weigh = evidence(options.evidence) if options.evidence is not None else None
    narrowing = _narrowing(options, config)
    fixing = Fixing(options.unsafe_fixes, not options.diff, narrowing) if options.fix or options.diff else None
    if reads_stdin(options):
        result, stdin = _check_stdin(options, config, fixing)
    else:
        task = _task(options, fixing, narrowing)
        try:
            result, stdin = _check_files(options, resolver, task, narrowing, caching.cache(config)), {}
        finally:
            # also what was found before Ctrl-C
            problem = caching.save()
        if problem and not options.quiet:
            _say("warning", problem)
    for line in (*result.errors, *result.unfixed):
        _say("error", line)
    if options.add_suppressions is not None and not options.quiet:
        _say_silenced(result)
    narrowing = _compared(options, narrowing, result)
    known = narrowing.known(result.findings)
    result.findings = narrowing.new(result.findings)
    if weigh is not None:
        result.findings = weigh(result.findings, stdin)
    if not _print(options, config, result, stdin, known) or result.errors or result.unfixed:
        return EXIT_FAILED
    if options.diff:
        failing = bool(result.diffs)
    else:
        failing = any(finding.severity >= config.fail_on for finding in result.findings)
    return EXIT_FOUND if failing and not options.exit_zero else EXIT_CLEAN


def _task(options: Options, fixing: Fixing | None, narrowing: Narrowing) -> Task | None:
    """What is done with the files besides checking them."""
    if options.add_suppressions is None:
        return fixing_task(fixing)
    from devlint.check.silence import Silencing, silence_target, wrong_reason

    reason = options.add_suppressions.strip()
    if wrong := wrong_reason(reason):
        raise ConfigError(f"--add-suppressions: {wrong}")
    return partial(silence_target, Silencing(reason, narrowing))


def _say_silenced(result: Result) -> None:
    from devlint.report.wording import plural

    where = f" in {plural(len(result.silenced), 'file')}" if result.silenced else ""
    _note(f"Added suppressions for {plural(sum(result.silenced), 'problem')}{where}.")


def _narrowing(options: Options, config: Config) -> Narrowing:
    """What is left out of the report."""
    since = baseline = None
    if options.since is not None:
        from devlint.check.since import since as changed

        since = changed(options.since, first_directory(options), options.paths)
    if config.baseline is not None:
        from devlint.check.baseline import Baseline

        baseline = Baseline.read(shortest(config.baseline), may_lack=options.update_baseline)
    return Narrowing(baseline, since)


def _compared(options: Options, narrowing: Narrowing, result: Result) -> Narrowing:
    """Say, or see to it, that entries of the baseline occur no more."""
    from devlint.report.wording import plural

    baseline = narrowing.baseline
    if baseline is None or options.diff:
        return narrowing
    seen = partial(judged, result.checked, result.findings, options.paths or (os.curdir,))
    if not options.update_baseline:
        stale = narrowing.stale(result.findings, seen)
        if stale and not options.quiet:
            occur = "occurs" if stale == 1 else "occur"
            _say(
                "warning",
                f"{plural(stale, 'entry', 'entries')} of the baseline no longer {occur}; run --update-baseline",
            )
        return narrowing
    try:
        return narrowing.updated(result.findings, seen())
    except OSError as error:
        result.errors.append(Failure(baseline.file, error.strerror or str(error)))
        _say("error", result.errors[-1])
        return narrowing


def _check_files(
    options: Options, resolver: Resolver, task: Task | None, narrowing: Narrowing, cache: Cache | None
) -> Result:
    from devlint.report.progress import Progress

    discovery = discover(options.paths or (os.curdir,), resolver)
    targets = narrowing.targets(discovery.targets)
    if not discovery.targets and not discovery.errors and not options.quiet:
        _say("warning", "no Python files found under the given paths")
    elif discovery.targets and not targets and not options.quiet:
        _note(f"No Python file has changed since {options.since}.")
    with Progress(enabled=not options.quiet and sys.stderr.isatty()) as progress:
        result = check_targets(targets, options.jobs, progress, task, cache)
    result.errors[:0] = discovery.errors
    return result


def _check_stdin(options: Options, config: Config, fixing: Fixing | None) -> tuple[Result, dict[str, bytes]]:
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
    if fixing is not None:
        from devlint.check.fixes.output import fix_text

        result, data = fix_text(data, name, config, fixing)
        result.checked = [(name, config)] * result.files
        return result, {name: data}
    from devlint.check.project import surroundings

    try:
        around = surroundings(Target(name, len(data), config)) if options.stdin_filename else None
        return Result(check_source(data, name, config, around), files=1, checked=[(name, config)]), {name: data}
    except AnalysisError as error:
        return Result(errors=[Failure(name, f"{FAILED}: {error}")]), {}


def _print(options: Options, config: Config, result: Result, stdin: dict[str, bytes], known: int) -> bool:
    """Print what there is to print; whether that was possible."""
    from devlint.report.terminal import silence

    # A name or a line that the terminal's encoding lacks must not cost the report.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if options.diff:
            _print_diffs(options, result)
        else:
            _print_report(options, config, result, stdin, known)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`).
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        _say("error", f"the report cannot be written: {error.strerror}")
        return False
    return True


def _print_diffs(options: Options, result: Result) -> None:
    from devlint.check.fixes.output import would_fix, write_diffs
    from devlint.report.terminal import wants_color

    write_diffs(result, wants_color(sys.stdout))
    if not options.quiet:
        _note(would_fix(result))


def _print_report(options: Options, config: Config, result: Result, stdin: dict[str, bytes], known: int) -> None:
    from devlint.report.base import Report
    from devlint.report.formats import render
    from devlint.report.terminal import shows_links, wants_color, width_of

    stream = sys.stdout
    if options.fix and stdin:
        # The standard output is for the fixed text.
        stream = sys.stderr
        click.echo(next(iter(stdin.values())), nl=False)
    filed = options.output_file is not None
    color = not filed and wants_color(stream)
    report = Report(
        result.findings,
        result.files,
        failures=result.errors,
        contents=stdin,
        color=color,
        quiet=options.quiet,
        fixed=result.fixed if options.fix else None,
        unsafe_fixes=options.unsafe_fixes,
        width=None if filed else width_of(stream),
        known=known,
        fail_on=config.fail_on,
        unfixed=result.unfixed,
        filed=filed,
        run=options.evidence or "",
        links=not filed and shows_links(stream),
    )
    pieces = render(report, "statistics" if options.statistics else "", config.output_format)
    if options.output_file is not None:
        _write(options.output_file, pieces)
        return
    for text in pieces:
        click.echo(text, file=stream, color=color)


def _write(file: str, pieces: Iterable[str]) -> None:
    from devlint.source.output import write

    text = "".join(f"{piece}\n" for piece in pieces)
    try:
        write(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ConfigError(f"--output-file: {file}: {error.strerror or error}") from error


def _say(kind: str, text: str) -> None:
    _note(f"{kind}: {text}")


def _note(line: str) -> None:
    """One line on the standard error, which is not part of the report."""
    from devlint.report.terminal import one_line, silence

    try:
        click.echo(one_line(line), err=True)
    except OSError:  # nobody listens, but the exit code still tells
        silence(sys.stderr)
