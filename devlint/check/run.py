"""What ``devlint check`` does with its options: configure, check, print, and choose the exit code."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass, replace
from functools import partial

import click

from devlint.check.discover import discover, force_excluded
from devlint.check.engine import AnalysisError, Fixing, Result, Task, check_source, check_targets, fixing_task
from devlint.check.narrow import Narrowing, judged
from devlint.config import (
    FAIL_ON,
    OUTPUT_FORMATS,
    Config,
    ConfigError,
    Resolver,
    Selection,
    did_you_mean,
    file_pattern,
    leads_out,
    parse_torch_version,
)
from devlint.config import load as load_config
from devlint.selection import UnknownSelectorError, union

STDIN = "-"
EXIT_CLEAN, EXIT_FOUND, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``devlint check`` as the user gave them."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    output_format: str | None = None
    statistics: bool = False
    exit_zero: bool = False
    fail_on: str | None = None
    config: str | None = None
    isolated: bool = False
    exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    target_torch: str | None = None
    stdin_filename: str | None = None
    jobs: int = 0
    quiet: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    baseline: str | None = None
    update_baseline: bool = False
    since: str | None = None
    add_suppressions: str | None = None


def run(options: Options) -> int:
    """Check what the options say, print the report, and return the exit code."""
    # A syntax tree is a great many objects without cycles: a collection after every 700 of them costs an eighth.
    gc.set_threshold(100_000, 20, 20)
    _open_streams()
    try:
        return _run(options)
    except ConfigError as error:
        _say("error", str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        _say("error", "interrupted")
        return EXIT_INTERRUPTED


def _run(options: Options) -> int:
    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the current directory cannot be used: {error.strerror}") from error
    resolver, config = configure(options)
    stdin_only = _reads_stdin(options)
    narrowing = _narrowing(options, config, stdin_only)
    fixing = Fixing(options.unsafe_fixes, not options.diff) if options.fix or options.diff else None
    if stdin_only:
        result, stdin = _check_stdin(options, config, fixing)
    else:
        result, stdin = _check_files(options, resolver, _task(options, fixing, narrowing), narrowing), {}
    for line in (*result.errors, *result.unfixed):
        _say("error", line)
    if options.add_suppressions is not None and not options.quiet:
        _say_silenced(result)
    narrowing = _compared(options, narrowing, result)
    known = narrowing.known(result.findings)
    result.findings = narrowing.new(result.findings)
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
    from devlint.report.base import plural

    where = f" in {plural(len(result.silenced), 'file')}" if result.silenced else ""
    click.echo(f"Added suppressions for {plural(sum(result.silenced), 'problem')}{where}.", err=True)


def _narrowing(options: Options, config: Config, stdin: bool) -> Narrowing:
    """What is left out of the report; a combination of options that makes no sense is an error."""
    baseline = since = None
    if options.since is not None:
        for wrong, text in (
            (stdin, "compares files, and cannot be asked about the standard input"),
            (options.fix or options.diff, "cannot be combined with --fix or --diff, which speak of whole files"),
            (options.update_baseline, "cannot be combined with --update-baseline, which needs all findings of a file"),
        ):
            if wrong:
                raise ConfigError(f"--since {text}")
        from devlint.check.since import since as changed

        since = changed(options.since, _first_directory(options), options.paths)
    if options.add_suppressions is not None:
        if stdin:
            raise ConfigError("--add-suppressions changes files, and cannot be given the standard input")
        if options.fix or options.diff or options.update_baseline:
            raise ConfigError("--add-suppressions cannot be combined with --fix, --diff or --update-baseline")
    if options.update_baseline:
        if config.baseline is None:
            raise ConfigError("--update-baseline: no baseline is named, by --baseline or in the configuration")
        if options.diff:
            raise ConfigError("--update-baseline cannot be combined with --diff, which changes nothing")
        if stdin and options.stdin_filename is None:
            raise ConfigError("--update-baseline: the standard input needs a name, by --stdin-filename")
    if config.baseline is not None:
        from devlint.check.baseline import Baseline

        baseline = Baseline.read(_shown(config.baseline), may_lack=options.update_baseline)
    return Narrowing(baseline, since)


def _compared(options: Options, narrowing: Narrowing, result: Result) -> Narrowing:
    """Say, or see to it, that entries of the baseline occur no more."""
    from devlint.report.base import plural

    baseline = narrowing.baseline
    if baseline is None or options.diff:
        return narrowing
    seen = judged(result.checked, result.findings, options.paths or (os.curdir,))
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
        return narrowing.updated(result.findings, seen)
    except OSError as error:
        result.errors.append(f"{baseline.file}: {error.strerror}")
        _say("error", result.errors[-1])
        return narrowing


def _shown(path: str) -> str:
    """A path as short as it is from the current directory."""
    relative = os.path.relpath(path)
    return path if leads_out(relative) else relative


def configure(options: Options) -> tuple[Resolver, Config]:
    """The configuration of every file, and the one that holds for the run as a whole: the first path's."""
    changes = _changes(options)
    layer = Selection(options.select, options.ignore or (), options.extend_select or ())
    if layer.select == ():
        # Perhaps a variable of the shell that was never set: a check of nothing would pass for ever.
        raise ConfigError("--select: no rule is named")
    for name, selectors in (("select", layer.select), ("ignore", layer.ignore), ("extend-select", layer.extend_select)):
        try:
            union(selectors or ())
        except UnknownSelectorError as error:
            raise ConfigError(f"--{name}: {error}") from error

    patterns = _patterns(options.exclude)

    def adjust(config: Config) -> Config:
        excluded = (*config.extend_exclude, *_from_here(patterns, config.root))
        return replace(config.selecting(layer), extend_exclude=excluded, **changes)  # type: ignore[arg-type]  # the options are checked by click

    fixed = None
    if options.config is not None:
        fixed = load_config(options.config)
    elif options.isolated:
        fixed = Config(root=os.getcwd())
    resolver = Resolver(fixed, adjust)
    return resolver, resolver.at(_first_directory(options))


def _changes(options: Options) -> dict[str, object]:
    """The fields of a Config that the options replace."""
    changes: dict[str, object] = {}
    if options.output_format is not None:
        changes["output_format"] = _choice("--output-format", options.output_format, OUTPUT_FORMATS)
    if options.fail_on is not None:
        changes["fail_on"] = FAIL_ON[_choice("--fail-on", options.fail_on, tuple(FAIL_ON))]
    if options.target_torch is not None:
        try:
            changes["target_torch"] = parse_torch_version(options.target_torch)
        except ValueError as error:
            raise ConfigError(f"--target-torch: {error}") from error
    if options.force_exclude:
        changes["force_exclude"] = True
    if options.baseline is not None:
        changes["baseline"] = _baseline(options.baseline)
    return changes


def _baseline(file: str) -> str:
    if not file or "\0" in file:
        raise ConfigError("--baseline: no file is named")
    return os.path.abspath(file)


def _check_files(options: Options, resolver: Resolver, task: Task | None, narrowing: Narrowing) -> Result:
    from devlint.report.progress import Progress

    discovery = discover(options.paths or (os.curdir,), resolver)
    targets = narrowing.targets(discovery.targets)
    if not discovery.targets and not discovery.errors and not options.quiet:
        _say("warning", "no Python files found under the given paths")
    elif discovery.targets and not targets and not options.quiet:
        click.echo(f"No Python file has changed since {options.since}.", err=True)
    with Progress(enabled=not options.quiet and sys.stderr.isatty()) as progress:
        result = check_targets(targets, options.jobs, progress, task)
    result.errors[:0] = discovery.errors
    return result


def _reads_stdin(options: Options) -> bool:
    """Whether it is the standard input that is checked: `-`, or a name for it and nothing else to check."""
    named = options.stdin_filename is not None
    if STDIN in options.paths or (named and not options.paths):
        if len(options.paths) > 1:
            raise ConfigError("`-` is the standard input and cannot be checked together with other paths")
        return True
    if named:
        raise ConfigError("--stdin-filename names the standard input, `-`, which is not among the paths")
    return False


def _check_stdin(options: Options, config: Config, fixing: Fixing | None) -> tuple[Result, dict[str, bytes]]:
    """What comes of the standard input, and its content, fixed if that is asked for, under its name."""
    name = options.stdin_filename or STDIN
    if sys.stdin is None:
        return Result(errors=["the standard input is closed"]), {}
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        return Result(errors=[f"the standard input cannot be read: {error.strerror}"]), {}
    if options.stdin_filename and config.force_exclude and force_excluded(os.path.abspath(name), config):
        return Result(files=1), {name: data}
    if fixing is not None:
        from devlint.check.fixes.output import fix_text

        result, data = fix_text(data, name, config, fixing)
        result.checked = [(name, config)] * result.files
        return result, {name: data}
    try:
        return Result(check_source(data, name, config), files=1, checked=[(name, config)]), {name: data}
    except AnalysisError as error:
        return Result(errors=[f"{name}: devlint failed on this file, please report it: {error}"]), {}


def _print(options: Options, config: Config, result: Result, stdin: dict[str, bytes], known: int) -> bool:
    """Print what there is to print; whether that was possible."""
    from devlint.report.base import silence

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
    from devlint.check.fixes.output import write_diffs
    from devlint.report.base import wants_color

    write_diffs(result, wants_color(sys.stdout), options.quiet)


def _print_report(options: Options, config: Config, result: Result, stdin: dict[str, bytes], known: int) -> None:
    from devlint.report import Report, render
    from devlint.report.base import wants_color

    stream = sys.stdout
    if options.fix and stdin:
        # The standard output is for the fixed text.
        stream = sys.stderr
        click.echo(next(iter(stdin.values())), nl=False)
    color = wants_color(stream)
    report = Report(
        result.findings,
        result.files,
        len(result.errors),
        stdin,
        color,
        options.quiet,
        fixed=result.fixed if options.fix else None,
        unsafe_fixes=options.unsafe_fixes,
        known=known,
    )
    for text in render(report, "statistics" if options.statistics else "", config.output_format):
        click.echo(text, file=stream, color=color)


def _open_streams() -> None:
    """Let a file stand for the standard streams that the caller closed, where Python has None."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # stays open until the process ends


def _say(kind: str, text: str) -> None:
    from devlint.report.base import one_line, silence

    try:
        click.echo(f"{kind}: {one_line(text)}", err=True)
    except OSError:  # nobody listens, but the exit code still tells
        silence(sys.stderr)


def _choice(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        expected = ", ".join(choices)
        raise ConfigError(f"{option}: expected one of {expected}, not {value!r}{did_you_mean(value, choices)}")
    return value


def _patterns(patterns: tuple[str, ...]) -> list[str]:
    try:
        return [file_pattern(pattern) for pattern in patterns]
    except ValueError as error:
        raise ConfigError(f"--exclude: {error}") from error


def _from_here(patterns: list[str], root: str) -> list[str]:
    """Patterns of the command line are meant from the current directory, those of a Config from its root."""
    here = os.path.relpath(os.getcwd(), root or None)
    if here == os.curdir or leads_out(here):
        return patterns
    return [f"/{here}/{pattern.lstrip('/')}" if "/" in pattern.rstrip("/") else pattern for pattern in patterns]


def _first_directory(options: Options) -> str:
    first = options.paths[0] if options.paths else os.curdir
    if first == STDIN:
        return os.path.dirname(os.path.abspath(options.stdin_filename or "stdin"))
    absolute = os.path.abspath(first)
    return absolute if os.path.isdir(absolute) else os.path.dirname(absolute)
