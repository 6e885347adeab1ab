"""The options of ``devlint check``: what they mean together with the configuration, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from devlint.config.load import Resolver, load
from devlint.config.messages import did_you_mean, leads_out
from devlint.config.schema import FAIL_ON, OUTPUT_FORMATS, Config, ConfigError, RuleLayer
from devlint.config.values import file_pattern, parse_torch_version
from devlint.immutable import immutable
from devlint.rules.selection import UnknownSelectorError, check_selectors

STDIN = "-"
_COUNTED = ("text", "concise", "json")
"""The formats in which --statistics can be asked for."""


@immutable(frozen=True, slots=True)
class Options:
    """The options of ``devlint check`` as the user gave them."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    output_format: str | None = None
    statistics: bool = False
    show_settings: bool = False
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
    output_file: str | None = None
    evidence: str | None = None
    cache_dir: str | None = None
    no_cache: bool = False

    @property
    def only_checks(self) -> bool:
        """Whether it is files that are checked, and nothing more is done with them."""
        stdin = STDIN in self.paths or self.stdin_filename is not None
        return not (stdin or self.fix or self.diff or self.add_suppressions is not None)


def configure(options: Options, known: Callable[[Config], set[str]] = lambda config: set()) -> tuple[Resolver, Config]:
    """The configuration of every file, and the one that holds for the run as a whole: the first path's.

    ``known`` says which selectors have been found to mean rules before, so that no rule is looked at for them; those
    that are found to now are added.
    """

    def validate(config: Config) -> None:
        if config.selectors:
            check_selectors(config.selectors, known(config))

    try:
        os.getcwd()
    except OSError as error:
        raise ConfigError(f"the current directory cannot be used: {error.strerror}") from error
    changes = _changes(options)
    layer = RuleLayer(options.select, options.ignore or (), options.extend_select or ())
    if layer.select == ():
        # Perhaps a variable of the shell that was never set: a check of nothing would pass for ever.
        raise ConfigError("--select: no rule is named")
    try:
        patterns = [file_pattern(pattern) for pattern in options.exclude]
    except ValueError as error:
        raise ConfigError(f"--exclude: {error}") from error

    def adjust(config: Config) -> Config:
        excluded = (*config.extend_exclude, *_from_here(patterns, config.root))
        return replace(config.selecting(layer), extend_exclude=excluded, **changes)  # type: ignore[arg-type]  # the options are checked by click

    fixed = None
    if options.config == "":
        raise ConfigError("--config: no file is named")
    if options.config is not None:
        fixed = load(options.config, validate)
    elif options.isolated:
        fixed = Config(root=os.getcwd())
    resolver = Resolver(validate, fixed, adjust, reads=not options.isolated)
    first = first_directory(options)
    config = resolver.at(first, first if first in map(os.path.abspath, options.paths) else "")
    for name, selectors in (("select", layer.select), ("ignore", layer.ignore), ("extend-select", layer.extend_select)):
        try:
            check_selectors(selectors or (), known(config))
        except UnknownSelectorError as error:
            raise ConfigError(f"--{name}: {error}") from error
    return resolver, config


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
        if not options.baseline or "\0" in options.baseline:
            raise ConfigError("--baseline: no file is named")
        changes["baseline"] = os.path.abspath(options.baseline)
    return changes


def reads_stdin(options: Options) -> bool:
    """Whether it is the standard input that is checked: `-`, or a name for it and nothing else to check."""
    named = options.stdin_filename is not None
    if STDIN in options.paths or (named and not options.paths):
        if len(options.paths) > 1:
            raise ConfigError("`-` is the standard input and cannot be checked together with other paths")
        return True
    if named:
        raise ConfigError("--stdin-filename names the standard input, `-`, which is not among the paths")
    return False


def check_combination(options: Options, config: Config) -> None:
    """Refuse what makes no sense together."""
    stdin = reads_stdin(options)
    fixes = options.fix or options.diff
    silences = options.add_suppressions is not None
    since, updates = options.since is not None, options.update_baseline
    needs_all = "--since cannot be combined with --update-baseline, which needs all findings of a file"
    rewrites = "--add-suppressions cannot be combined with --fix, --diff or --update-baseline"
    unnamed = "--update-baseline: no baseline is named, by --baseline or in the configuration"
    of_stdin = updates and stdin and options.stdin_filename is None
    for wrong, text in (
        (since and stdin, "--since compares files, and cannot be asked about the standard input"),
        (since and fixes, "--since cannot be combined with --fix or --diff: they mend whole files"),
        (since and updates, needs_all),
        (silences and stdin, "--add-suppressions changes files, and cannot be given the standard input"),
        (silences and (fixes or updates), rewrites),
        (updates and config.baseline is None, unnamed),
        (updates and options.diff, "--update-baseline cannot be combined with --diff, which changes nothing"),
        (of_stdin, "--update-baseline: the standard input needs a name, by --stdin-filename"),
        (options.output_file is not None and options.diff, "--output-file is for the report, and --diff makes none"),
        (options.evidence is not None and options.diff, "--evidence is shown in the report, and --diff makes none"),
        (options.evidence == "", "--evidence: no file is named"),
        (
            options.statistics and config.output_format not in _COUNTED,
            f"--statistics has no {config.output_format} format, only text or json",
        ),
    ):
        if wrong:
            raise ConfigError(text)
    if options.output_file is not None:
        from devlint.source.output import destination_problem

        read = (*options.paths, options.evidence, options.config, config.baseline)
        if problem := destination_problem(options.output_file, read):
            raise ConfigError(f"--output-file: {problem}")


def first_directory(options: Options) -> str:
    """The directory of what is checked first, whose configuration holds for the run as a whole."""
    first = options.paths[0] if options.paths else os.curdir
    if first == STDIN:
        return os.path.dirname(os.path.abspath(options.stdin_filename or "stdin"))
    absolute = os.path.abspath(first)
    return absolute if os.path.isdir(absolute) else os.path.dirname(absolute)


def shortest(path: str) -> str:
    """A path as short as it is from the current directory."""
    relative = os.path.relpath(path)
    return path if leads_out(relative) else relative


def _choice(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        expected = ", ".join(choices)
        raise ConfigError(f"{option}: expected one of {expected}, not {value!r}{did_you_mean(value, choices)}")
    return value


def _from_here(patterns: list[str], root: str) -> list[str]:
    """Patterns of the command line are meant from the current directory, those of a Config from its root."""
    here = os.path.relpath(os.getcwd(), root or None)
    if here == os.curdir or leads_out(here):
        return patterns
    return [f"/{here}/{pattern.lstrip('/')}" if "/" in pattern.rstrip("/") else pattern for pattern in patterns]
