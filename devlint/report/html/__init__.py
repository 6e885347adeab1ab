"""The report of an audited run as one HTML file that needs nothing else: no network, no other file.

:func:`page` makes it from a record.  Jinja2 fills ``page.html.jinja``; ``script/`` draws what is interactive (charts,
code, table) from the data in the page, with Vega-Lite, whose JavaScript the package vl-convert carries.  Whatever comes
out of the record is escaped: by Jinja2 in the markup, as JSON without ``<`` in the data, as text nodes in the script.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from devlint._about import __version__
from devlint.record import Record
from devlint.report.audit import notes
from devlint.report.audit.code import Code
from devlint.report.audit.header import command, facts
from devlint.report.html.costs import Texts, costs
from devlint.report.html.history import history
from devlint.report.html.library import plotting_library
from devlint.report.html.problems import problems
from devlint.report.html.ranks import side_by_side
from devlint.report.html.summary import cards, status

if TYPE_CHECKING:
    from markupsafe import Markup

_SCRIPTS = ("data", "elements", "figures", "theme", "steps", "source", "table", "findings")


def page(record: Record, cache: str | None = None) -> str:
    """The whole page; ``cache`` is a directory of this user alone, where what is slow to make may be kept.

    Raises :class:`devlint.report.html.library.MissingLibraryError` where the extra is not installed.
    """
    library = plotting_library(cache)
    code = Code(record)
    texts = Texts()
    found = problems(record, code)
    data: dict[str, Any] = {
        **costs(record, code, texts, found.files),
        "problems": [[*texts.of(*problem[:5]), *problem[5:]] for problem in found.further],
        "history": history(record),
        "texts": texts.all(),
    }
    fields: dict[str, Any] = {
        "version": __version__,
        "command": command(record),
        "status": status(record),
        "cards": cards(record),
        "facts": list(facts(record, code)),
        "problems": found,
        "ranks": side_by_side(record),
        "advice": record.advice or (),
        "notes": list(notes(record)),
        "data": data,
        "style": _asset("page.css"),
        "scripts": [_asset(f"script/{name}.js") for name in _SCRIPTS],
        "library": library,
    }
    return str(_environment().get_template("page.html.jinja").render(fields))


def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined
    from jinja2 import FunctionLoader as Loader

    environment = Environment(
        loader=Loader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = _code
    environment.filters["markdown"] = _markdown
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return environment


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _code(text: str) -> Markup:
    """Text in which what stands in backticks is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _markdown(text: str) -> Markup:
    """Text of devlint's own, whose links lead out of the page only if they are followed."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark", {"html": False}).render(text))
