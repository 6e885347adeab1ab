"""The command line: options in, calls out, nothing else."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from devlint._about import __version__, is_compiled
from devlint.interrupt import dies_at_once
from devlint.models.commands import models
from devlint.simulator import MOST_DEVICES

# Heavy modules are imported inside the commands: `devlint --version` answers at once.


def _selectors(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    """Accept both ``--select A,B`` and ``--select A --select B``; None where the option was not given."""
    if not value:
        return None
    return tuple(word.strip() for words in value for word in words.split(",") if word.strip())


def _selector_option(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, metavar="RULES", callback=_selectors, help=text)


class _Refusal(click.ClickException):
    """What is wrong with a command line, said in one line as all that goes wrong is."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        from devlint.report.terminal import one_line

        click.echo(f"error: {one_line(self.format_message())}", err=True)


class _Interruption(_Refusal):
    """Ctrl-C before a command could take it."""

    exit_code = 130


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # which is the help, and no error to look at
            raise
        text = re.sub(r"\.? \(?Did you mean (.*\?)\)?$", r" (did you mean \1)", error.format_message()).rstrip(".")
        raise _Refusal(text[:1].lower() + text[1:]) from None
    except KeyboardInterrupt:
        raise _Interruption("interrupted") from None


@contextmanager
def _heard() -> Iterator[None]:
    """What is printed may find no room, or a reader who has seen enough (`| head`)."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        from devlint.report.terminal import silence

        silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(0) from None
        raise _Refusal(f"the output cannot be written: {error.strerror}") from None


class _Command(click.Command):
    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Read the options, of which some print and end."""
        with _heard():
            return super().make_context(*arguments, **more)


class _Program(click.Group):
    """The commands; click's own complaints would take four lines."""

    command_class = _Command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Read the options before the command's name, of which some print and end."""
        with _heard(), _in_one_line():
            return super().make_context(*arguments, **more)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; who names a file instead probably wants it checked."""
        if args and self.get_command(ctx, args[0]) is None and os.path.exists(args[0]):
            raise click.UsageError(f"no such command {args[0]!r} (did you mean 'devlint check {args[0]}'?)")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Read the command's options, and run it."""
        with _in_one_line():
            return super().invoke(ctx)


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="%(prog)s %(version)s" + (" (compiled)" if is_compiled() else ""))
def main() -> None:
    """Find PyTorch device bugs: tensors on the wrong device, dropped moves, hidden copies and syncs."""


class _Check(_Command):
    """With an option whose value, if there is one, stands behind `=`: what follows it may be a path."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        given = [f"{word}=" if word == "--add-suppressions" else word for word in args[:end]]
        return super().parse_args(ctx, given + args[end:])


@main.command(cls=_Check, short_help="Find device bugs in files and directories, without running them.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@_selector_option("--select", "Rules to run instead of the default ones: codes, prefixes, names, or ALL.")
@_selector_option("--ignore", "Rules not to run.")
@_selector_option("--extend-select", "Rules to run besides the others.")
@click.option("--fix", is_flag=True, help="Apply the fixes that keep every result as it is.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix and --diff, all fixes: read what they change.")
@click.option("--diff", is_flag=True, help="Change nothing, print what --fix would change; exit with 1 if it would.")
@click.option("--baseline", metavar="FILE", help="Do not report the findings that this file holds.")
@click.option("--update-baseline", is_flag=True, help="Write what is found now into the baseline.")
@click.option("--since", metavar="REV", help="Report only what concerns lines changed since this git revision.")
@click.option(
    "--add-suppressions",
    metavar="[=REASON]",
    help="Add a comment to the code for each finding, so that it is not reported again.",
)
@click.option(
    "--output-format",
    metavar="FORMAT",
    help="text (the default), concise, json, json-lines, github, gitlab, sarif, junit or rdjson.",
)
@click.option("--output-file", metavar="FILE", help="Write the report there, whole or not at all.")
@click.option(
    "--evidence", metavar="FILE", help="Ask the record of an audit about each finding, and where things were."
)
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if something was found.")
@click.option("--fail-on", metavar="SEVERITY", help="Least severity that makes the run fail: info, warning or error.")
@click.option("--config", metavar="FILE", help="Read the configuration from this TOML file.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--exclude", multiple=True, metavar="PATTERNS", callback=_selectors, help="Files not to check, besides.")
@click.option("--force-exclude", is_flag=True, help="Exclude also what is named on the command line.")
@click.option("--target-torch", metavar="VERSION", help="The oldest torch that the code must run on, such as 2.4.")
@click.option("--show-settings", is_flag=True, help="Check nothing, print the configuration that holds for the paths.")
@click.option("--cache-dir", metavar="DIR", envvar="DEVLINT_CACHE_DIR", help="Where results are kept for the next run.")
@click.option("--no-cache", is_flag=True, envvar="DEVLINT_NO_CACHE", help="Neither use nor keep results.")
@click.option("--stdin-filename", metavar="FILE", help="The name of what is read from the standard input.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes; 0 for as many as pay."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the findings and nothing besides.")
def check(**options: Any) -> None:
    """Check files and directories, the current one by default; `-` is the standard input.

    Exits with 0 if nothing was found, 1 if something was, 2 if devlint could not do its work.
    """
    with dies_at_once():
        from devlint.check.command import run
        from devlint.check.options import Options

    options["exclude"] = options["exclude"] or ()
    sys.exit(run(Options(**options), _evidence))


def _evidence(file: str) -> Any:
    """The run whose record a file holds."""
    from devlint.auditor.judgement.evidence import Run

    return Run.read(file)


@main.command(
    short_help="Run a training script, and see what it copies and where it waits.",
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] [--]",
)
@click.argument("script", metavar="SCRIPT|MODULE")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("-m", "module", is_flag=True, help="Run a module, as `python -m` does.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after so many training steps.")
@click.option("--every-step", is_flag=True, help="Record every training step whole, even where that slows it down.")
@click.option("--simulate", is_flag=True, help="Run on a simulated accelerator: no GPU is needed, times are not shown.")
@click.option(
    "--devices",
    type=click.IntRange(1, MOST_DEVICES),
    metavar="N",
    help="How many devices to simulate; one for each process of this machine by default.",
)
@click.option("--output", metavar="FILE", help="Keep the record of the run there, as JSON for `devlint report`.")
@click.option(
    "--html", metavar="FILE", help="Write the report there as one page for a browser, which needs no network."
)
@click.option("--trace", metavar="FILE", help="Write what happened there as a trace for Perfetto or chrome://tracing.")
@_selector_option("--select", "Rules to run instead of the default ones: codes, prefixes, names, or ALL.")
@_selector_option("--ignore", "Rules not to run.")
@_selector_option("--extend-select", "Rules to run besides the others.")
@click.option("--fail-on", metavar="SEVERITY", help="Least severity that makes the run fail: info, warning or error.")
@click.option("--exit-zero", is_flag=True, help="Exit as the script does, even if something was found.")
@click.option("--config", metavar="FILE", help="Read the configuration from this TOML file.")
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("-q", "--quiet", is_flag=True, help="Print the findings and nothing besides.")
def audit(**options: Any) -> None:
    """Run a training script, unmodified, and see where its tensors really are and what is copied.

    All that follows the script's name is the script's. Its standard output is its own: the report goes to the standard
    error, when the script has ended, however it does.

    Exits as the script did if it failed; else with 1 if something was found, 0 if nothing was. It is 2 if the script
    cannot be audited: if there is no such script, no torch, or (when the script imports torch) no accelerator.
    """
    from devlint.auditor.run import Options, run
    from devlint.simulator import install

    sys.exit(run(Options(**options), install))  # type: ignore[arg-type]  # what the script gave to sys.exit, whatever that is


@main.command(short_help="Show audited runs again, as text or in a browser; compare two.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--output", metavar="FILE", help="Keep the record there, as JSON: what matters of a large trace is small."
)
@click.option(
    "--html", metavar="FILE", help="Write the report there as one page for a browser, which needs no network."
)
@click.option("--trace", metavar="FILE", help="Write what happened there as a trace for Perfetto or chrome://tracing.")
@click.option("--compare", is_flag=True, help="Of two files, BEFORE and AFTER, say what has changed between the runs.")
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="Of --compare: for people or programs."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the findings and nothing besides.")
def report(
    files: tuple[str, ...],
    quiet: bool,
    output: str | None,
    html: str | None,
    trace: str | None,
    compare: bool,
    output_format: str,
) -> None:
    """Show the record of an audited run again: of the files, or of the latest run; torch is not needed.

    A file may also be a trace that torch.profiler has written, plain or compressed. Several files, of the machines or
    ranks that took part in a run, become one report. With --output, --html or --trace it is written there instead of
    printed.
    """
    if compare and (len(files) != 2 or any(path is not None for path in (output, html, trace))):
        raise click.UsageError("--compare takes two files, BEFORE and AFTER, and neither --output, --html nor --trace")
    if output_format != "text" and not compare:
        raise click.UsageError("--output-format is for --compare: a record is JSON already")
    with dies_at_once():
        from devlint.auditor.judgement.export import Exports
        from devlint.auditor.judgement.presentation import show, show_comparison

    exports = Exports(html, trace, output)
    sys.exit(show_comparison(files, output_format) if compare else show(files, quiet, exports))


@main.command(short_help="Say on which device a name is, and how it came there.")
@click.argument("places", nargs=-1, required=True, metavar="FILE:LINE[:NAME]...")
@click.option("--evidence", metavar="FILE", help="Say besides where the run of this record had it.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="For people, or programs.")
def where(places: tuple[str, ...], output_format: str, evidence: str | None) -> None:
    """Show on which device the names of a line are, and how they came there.

    What code that devlint does not read does with devices can be said in rows of TOML: see docs/models.md.

    A column can stand in place of the name; in a notebook, the cell before the line. Exits with 0 if something is
    known, 1 if nothing is, 2 if there is no such place.
    """
    with dies_at_once():
        from devlint.check.where.command import run

    with _heard():
        code = run(places, output_format, _evidence, evidence)
    sys.exit(code)


@main.command(short_help="Show by a short script that a finding about devices is right.")
@click.argument("place", metavar="FILE:LINE")
@click.option("--rule", "code", metavar="CODE", help="Only the finding of this rule, of DVL101 to DVL108.")
@click.option("--output", metavar="FILE", help="Write the script there, if it confirms the finding.")
def prove(place: str, code: str | None, output: str | None) -> None:
    """Find the smallest call with which a finding happens, and run it on the simulated accelerator.

    `check` never runs what it reads; `prove` does: it imports the file and calls what is in it, with made-up arguments,
    in a process that may write nothing, start no programs and use no network. It needs torch, and no GPU.

    Exits with 0 if the finding is confirmed, 1 if it is refuted or not shown, 2 if there is no such finding.
    """
    with dies_at_once():
        from devlint.prove.command import run

    with _heard():
        exit_code = run(place, code, output)
    sys.exit(exit_code)


@main.command(short_help="Remove the results that `check` keeps for its next run.")
@click.option("--cache-dir", metavar="DIR", envvar="DEVLINT_CACHE_DIR", help="The directory to clean, and no other.")
def clean(cache_dir: str | None) -> None:
    """Remove the results that `devlint check` keeps for its next run, here and in the directories below."""
    from devlint.check.cache.place import clean as remove

    with _heard():
        code = remove(cache_dir)
    sys.exit(code)


@main.command(short_help="Serve an editor, by the Language Server Protocol.")
def server() -> None:
    """Serve an editor by the Language Server Protocol, on the standard streams.

    Findings as you type, quick fixes, and on which device a name is. The editor starts it: docs/editor.md shows how.
    """
    with dies_at_once():
        from devlint.server.serving import run

    sys.exit(run())


@main.command(short_help="Print the versions that a report of a bug needs.")
def info() -> None:
    """Print the versions that a report of a bug needs: of devlint, Python, the platform and what devlint works with.

    No paths and no names are among them, and nothing is imported for it.
    """
    from devlint.installation import installed

    with _heard():
        click.echo(installed())


@main.command()
@click.argument("rule", required=False, metavar="[CODE|NAME]")
@click.option("--all", "every", is_flag=True, help="List all rules.")
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="Words for people, or all there is."
)
def rule(rule: str | None, every: bool, output_format: str) -> None:
    """Explain a rule, or list them all."""
    from devlint.report.rule import explain

    if every == (rule is not None):
        raise click.UsageError("give the code or the name of a rule, or --all")
    with _heard():
        code = explain(rule, output_format)
    sys.exit(code)


main.add_command(models)
