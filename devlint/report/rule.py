"""``devlint rule``: the rules' own words, on a terminal, as plain text or as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import click

from devlint.config.messages import did_you_mean
from devlint.rules.registry import registry

if TYPE_CHECKING:
    from devlint.rules.base import Rule

_WIDTH = 80
_UNBROKEN = 200
"""Code is not wrapped: a line that is longer than the terminal is the terminal's to break."""


def explain(wanted: str | None, output_format: str) -> int:
    """Print one rule's documentation, or the list of all; returns the exit code."""
    known = registry()
    if wanted is None:
        _list_all([*known.values()], output_format)
        return 0
    found = [rule for code, rule in known.items() if wanted.upper() == code or wanted.lower() == rule.name]
    if not found:
        names = [rule.name for rule in known.values()]
        hint = did_you_mean(wanted.upper(), list(known)) or did_you_mean(wanted.lower(), names)
        click.echo(f"error: there is no rule {wanted!r}{hint}", err=True)
        return 2
    if output_format == "json":
        click.echo(json.dumps(_described(found[0]), indent=2))
    elif sys.stdout is not None and sys.stdout.isatty():
        _print(found[0])
    else:
        rule = found[0]
        click.echo(f"# {rule.code} {rule.name}\n\n{_state(rule)}\n\n{rule.documentation()}")
    return 0


def fixes(rule: type[Rule]) -> str:
    """Of what kind a rule's fixes are: `safe`, `unsafe`, `safe or unsafe`, or nothing."""
    return " or ".join(kind.value for kind in rule.fixes)


def _list_all(every: list[type[Rule]], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps([_described(rule) for rule in every], indent=2))
        return
    width = max((len(rule.name) for rule in every), default=0)
    columns = os.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
    for rule in every:
        severity = str(rule.severity) if rule.default else f"{rule.severity}, off"
        line = f"{rule.code}  {rule.name:<{width}}  {severity:<12}  {rule.summary()}"
        # A table on a terminal is easier to read than its lines are when they are wrapped.
        click.echo(line if columns is None or len(line) <= columns else f"{line[: max(columns - 3, 0)]}...")


def _described(rule: type[Rule]) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": str(rule.severity),
        "default": rule.default,
        "hints": rule.hints,
        "audit": rule.observed,
        "fixes": [kind.value for kind in rule.fixes],
        "summary": rule.summary(),
        "sections": rule.sections(),
        "explanation": rule.documentation(),
    }


def _state(rule: type[Rule]) -> str:
    state = f"{rule.severity}, {'on' if rule.default else 'off'} by default"
    state += "" if rule.hints else ", hints only where it is selected"
    state += f", fix: {fixes(rule)}" if rule.fixes else ""
    return f"{state}; audits, too" if rule.observed else state


def _print(rule: type[Rule]) -> None:
    """Show a rule's words on a terminal: wrapped to 80 columns, but for its code, which stays as it is."""
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.padding import Padding
    from rich.syntax import Syntax
    from rich.text import Text
    from rich.theme import Theme

    class Title(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(self.text.plain, style="bold")

    class Code(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            syntax = Syntax("", self.lexer_name, theme="ansi_dark", background_color="default")
            text = syntax.highlight(str(self.text))
            text.rstrip()
            text.no_wrap, text.overflow = True, "ignore"
            yield from console.render(Padding(text, (0, 0, 0, 4), expand=False), options.update(width=_UNBROKEN))

    class Words(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": Title, "fence": Code}

    plain = Theme({"markdown.code": "cyan", "markdown.h2": "bold"})
    console = Console(width=min(Console().width, _WIDTH), highlight=False, theme=plain)
    console.print(Text(f"{rule.code} {rule.name}", style="bold"), Text(_state(rule), style="dim"), "", sep="\n")
    console.print(Words(rule.documentation(), hyperlinks=False, inline_code_lexer=None), crop=False)
