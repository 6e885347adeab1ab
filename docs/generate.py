"""Write what stands elsewhere into the documentation: pages of docs/, or parts of them.

    python -m docs.generate            write them
    python -m docs.generate --check    write nothing; fail if one of them says anything else

docs/rules.md and docs/audit.md get what the rules say of themselves, docs/options.md what the commands do,
docs/models.md the words of library rows, docs/accuracy.md and docs/speed.md the figures in tests/accuracy/figures/ and
tests/benchmarks/figures/, docs/confirmed.md what tests/recordings/ keeps, docs/prove.md what
tests/prove/ keeps.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import click
from devlint.cli import main as commands
from devlint.flow.catalog.schema import VOCABULARY, Word
from devlint.report.rule import fixes
from devlint.rules.base import Rule
from devlint.rules.registry import registry
from tests.accuracy.figures import Figures, Table, load
from tests.benchmarks.page import tables
from tests.prove import wheels
from tests.recordings import page as recordings

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "docs" / "rules.md"
ACCURACY = ROOT / "docs" / "accuracy.md"
SPEED = ROOT / "docs" / "speed.md"
AUDIT = ROOT / "docs" / "audit.md"
OPTIONS = ROOT / "docs" / "options.md"
MODELS = ROOT / "docs" / "models.md"
PROVE = ROOT / "docs" / "prove.md"
CONFIRMED = ROOT / "docs" / "confirmed.md"
HEAD = """\
# The rules

Written by `python -m docs.generate` from the docstrings of the rules; change those.
`devlint rule DVL101` prints the same on a terminal. An error raises, or computes garbage, on an accelerator. A
warning is very probably a bug or a real cost. A hint (`info`) does not fail a run unless `--fail-on info` asks for it;
some rules report a hint where less is certain. The hints of a few, and all hints about tests and notebooks, come only
where the rule is selected, by code, name or prefix. Rules that are marked "audit" judge audited runs, too. A safe fix,
applied by `--fix`, leaves every result as it is; what else a fix does, and when it is safe, stands under its rule.
"""
OPTIONS_HEAD = """\
# Commands and options

Written by `python -m docs.generate` from the commands themselves; `devlint check --help` prints the same on a terminal.
`devlint --version` prints which devlint this is.
"""
ACCURACY_HEAD = """\
# How often devlint is right

Written by `python -m docs.generate` from what the commands below measured, each with its date and versions.
"""


_FORMS = {
    "flag": "`true`",
    "names": "a list of strings",
    "path": "a dotted name",
    "place": "a place",
    "result": "a result",
    "text": "a string",
    "words": "names in a string",
}
"""How values are written that are not one of a few."""


def table() -> str:
    """The rules as a Markdown table, each linked to its section below."""
    rows = ["| code | name | severity | fix | audit | what it reports |", "|---|---|---|---|---|---|"]
    for code, rule in registry().items():
        severity = str(rule.severity) if rule.default else f"{rule.severity}, off by default"
        cells = (rule.name, severity, fixes(rule), "audit" if rule.observed else "", rule.summary())
        rows.append(f"| [{code}](#{_anchor(rule)}) | {' | '.join(cells)} |")
    return "\n".join(rows)


def audit(text: str) -> str:
    """The text of docs/audit.md with the list of rules brought up to date."""
    judges = [(code, rule) for code, rule in registry().items() if rule.observed]
    rows = [f"* [{code}](rules.md#{_anchor(rule)}) {rule.name}" for code, rule in judges]
    return _between(text, "judges", "\n" + "\n".join(rows) + "\n")


def options() -> str:
    """The text of docs/options.md."""
    return "\n".join([OPTIONS_HEAD, *(_command(name, command) for name, command in commands.commands.items())])


def _command(name: str, command: click.Command) -> str:
    """A command's usage, its help, and its options as a table."""
    # as in the program: a command keeps the help option that its first context names
    program = click.Context(commands, info_name="devlint", **commands.context_settings)
    context = click.Context(command, program, name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text = re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.cleandoc(command.help or ""))
    records = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    rows = [f"| `{names}` | {meaning} |" for names, meaning in filter(None, records)]
    table = "\n".join(["\n| option | |", "|---|---|", *rows, ""]) if rows else ""
    section = f"## devlint {name}\n\n```text\n{usage}\n```\n\n{text}\n{table}"
    inner = command.commands if isinstance(command, click.Group) else {}
    return "\n".join([section, *(_command(f"{name} {part}", one) for part, one in inner.items())])


def models(text: str) -> str:
    """The text of docs/models.md with the words that a row may use."""
    rows = [f"| `{name}` | {_form(word)} | {word.meaning} |" for name, word in VOCABULARY.items()]
    return _between(text, "vocabulary", "\n" + "\n".join(["| word | value | meaning |", "|---|---|---|", *rows]) + "\n")


def _form(word: Word) -> str:
    """How the values of a word are written."""
    if word.form in _FORMS:
        return _FORMS[word.form]
    return ", ".join(f'`"{choice}"`' for choice in word.choices)


def speed(text: str) -> str:
    """The text of docs/speed.md with the tables brought up to date."""
    return _between(text, "tables", f"\n{tables()}")


def confirmed(text: str) -> str:
    """The text of docs/confirmed.md with the tables brought up to date."""
    return _between(text, "confirmed", f"\n{recordings.tables()}")


def prove(text: str) -> str:
    """The text of docs/prove.md with the table brought up to date."""
    return _between(text, "wheels", f"\n{wheels.table()}")


def _between(text: str, name: str, content: str) -> str:
    """A text with something else between the comments that say what stands there."""
    begin, end = f"<!-- {name}: written by docs/generate.py -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"error: the lines {begin!r} and {end!r} are missing")
    return f"{before}{begin}{content}{end}{after}"


def rules() -> str:
    """The text of docs/rules.md."""
    return "\n".join([HEAD, table(), *(_section(rule) for rule in registry().values())])


def accuracy() -> str:
    """The text of docs/accuracy.md."""
    return "\n".join([ACCURACY_HEAD, *(_measured(figures) for figures in load())])


def _measured(figures: Figures) -> str:
    tables = "".join(f"\n{_rows(one)}\n" for one in figures.tables)
    return (
        f"## {figures.title}\n\n{figures.summary}\n{tables}\n"
        f"Measured with `{figures.command}` on {figures.measured} ({figures.versions}).\n"
    )


def _rows(one: Table) -> str:
    rows = [one.columns, ["---"] * len(one.columns), *one.rows]
    text = "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return f"{one.caption}\n\n{text}" if one.caption else text


def _anchor(rule: type[Rule]) -> str:
    return f"{rule.code}-{rule.name}".lower()


def _section(rule: type[Rule]) -> str:
    state = "" if rule.default else ", off by default"
    state += "" if rule.hints else ", hints only where it is selected"
    state += f"; fix: {fixes(rule)}" if rule.fixes else ""
    state += "; audits, too" if rule.observed else ""
    text = re.sub(r"^## ", "### ", rule.documentation(), flags=re.MULTILINE)
    return f"\n## {rule.code} {rule.name}\n\n{str(rule.severity).capitalize()}{state}. {text}\n"


def main(arguments: list[str]) -> int:
    """Write or check the files; the exit code is 1 if ``--check`` finds a difference."""
    current = {
        RULES: rules(),
        ACCURACY: accuracy(),
        SPEED: speed(SPEED.read_text(encoding="utf-8")),
        AUDIT: audit(AUDIT.read_text(encoding="utf-8")),
        OPTIONS: options(),
        MODELS: models(MODELS.read_text(encoding="utf-8")),
        PROVE: prove(PROVE.read_text(encoding="utf-8")),
        CONFIRMED: confirmed(CONFIRMED.read_text(encoding="utf-8")),
    }
    stale = [path for path, text in current.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run `python -m docs.generate`\n")
        else:
            path.write_text(current[path], encoding="utf-8")
            sys.stderr.write(f"wrote {path.relative_to(ROOT)}\n")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
