"""``devlint rule``: the rules' own words, on a terminal, as plain text or as JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from devlint.config import did_you_mean
from devlint.selection import rules

if TYPE_CHECKING:
    from devlint.rules.base import Rule


def explain(wanted: str | None, output_format: str) -> int:
    """Print one rule's documentation, or the list of all; returns the exit code."""
    known = rules()
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
    elif sys.stdout.isatty():
        _print_markdown(_markdown(found[0]))
    else:
        click.echo(_markdown(found[0]))
    return 0


def _list_all(every: list[type[Rule]], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps([_described(rule) for rule in every], indent=2))
        return
    width = max((len(rule.name) for rule in every), default=0)
    for rule in every:
        severity = str(rule.severity) if rule.default else f"{rule.severity}, off"
        click.echo(f"{rule.code}  {rule.name:<{width}}  {severity:<12}  {rule.summary()}")


def _described(rule: type[Rule]) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": str(rule.severity),
        "default": rule.default,
        "summary": rule.summary(),
        "explanation": rule.documentation(),
    }


def _markdown(rule: type[Rule]) -> str:
    state = "on by default" if rule.default else "off by default"
    return f"# {rule.code} {rule.name}\n\n{rule.severity}, {state}\n\n{rule.documentation()}"


def _print_markdown(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, 100)).print(Markdown(text))
