"""What the rules on deprecated names share: which row of the tables a mention meets, what to say, what to write."""

from __future__ import annotations

import ast
import itertools
import re
from typing import ClassVar

from devlint import torch_api
from devlint.rules.base import Fix, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import keyword_of, statement_of
from devlint.rules.code.imports import importing
from devlint.rules.code.lazy import cst
from devlint.sites.devices import Mention
from devlint.source.syntax import says_none
from devlint.torch_api import rows
from devlint.torch_api.rows import Api, Kind, Topic

_LONG = 60
_YOUNG = (2, 0)
"""What came with this torch, or later, an installation that is still in use may lack."""
_COMMON = (2, 2)
"""What a project that says nothing of its torch is taken to have."""
_FILTERED = r"\b(?:filterwarnings|simplefilter)\(\s*(?:action=)?[\"']ignore[\"']([^()]*)\)"
"""What Python is told to be silent about; torch warns of old names by a ``FutureWarning``."""
_SPOKEN_OF = frozenset({"import", "test", "switch", "comparison"})


class DeprecatedName(Rule):
    """A rule about the deprecated names, and arguments, of one topic."""

    deprecates = True
    topic: ClassVar[Topic]

    def judge(self, site: Mention) -> Reports:
        """A report for each use of an old name or argument."""
        # a name that is only imported or asked for says nothing yet
        if not site.shim and site.use not in _SPOKEN_OF:
            offered = (row for row in torch_api.deprecations(site.path) if row.offered(self.target_torch))
            about = (row for row in offered if row.topic is self.topic and not _renamed(self, site, row))
            met = (row for row in about if not row.argument or _holds(row, _argument(site, row)))
            yield from (_report(self, site, row) for row in itertools.islice(met, 1))


def _report(rule: Rule, site: Mention, row: Api) -> Report:
    fix = _replaced(rule, site, row)
    given = _argument(site, row)
    last = site.path.rpartition(".")[2]
    what = f"`{row.argument}` of `{last}`"
    if given is None and site.path.startswith(rows.PROFILED_EVENT):
        what = f"`.{last}` of a profiled event"
    elif given is None:
        what = edits.with_path(edits.short(rule.source.segment(site.node), site.path), site.path)
    since = f" since torch {row.deprecated[0]}.{row.deprecated[1]}" if row.deprecated else ""
    # one who hands a name on, to be called elsewhere, may have to give the new one more
    more = "" if site.call is not None else row.prepend or "=".join(row.keyword or ())
    advice = row.note or f"use `{row.replacement}`" + (f", and give it `{more}`, too" if more else "")
    if fix is not None:
        advice = fix.message[:1].lower() + fix.message[1:]
    # an argument that is gone needs no newer torch; what is as old as any, or for a known one, needs no word
    told = rule.target_torch is None and row.since >= _YOUNG and (not row.argument or row.kind is Kind.ARGUMENT)
    needs = f" (there since torch {row.since[0]}.{row.since[1]})" if told else ""
    message = f"{what} is deprecated{since}: {row.note or advice}"
    # where an installation in use may lack the new one, the old one is right, and perhaps no allowed one warns of it
    early = row.deprecated is not None and (rule.latest_torch or row.deprecated) < row.deprecated
    # what a project of its time was written with, of which only its releases say what they have given up
    other = not row.name.startswith("torch.") or edits.in_test(rule.source, site.scope)
    young = row.since > (_COMMON if rule.target_torch is None else rule.target_torch)
    asked = other or early or row.hidden or (bool(row.replacement) and young) or _is_filtered(rule, site.path)
    # where it is called is elsewhere, and takes another name, too, as a rule: `autocast if amp else nullcontext`
    mild = Severity.INFO if more and fix is None else None
    return Report(message, "deprecated", mild, help=advice + needs, fix=fix, node=given, asked=asked)


def _is_filtered(rule: Rule, path: str) -> bool:
    """Whether the file has torch's warning of a name filtered out: it is known there, and left."""
    texts = (match[1].replace("\\", "") for match in re.finditer(_FILTERED, rule.source.text))
    return any(path in text or ("FutureWarning" in text and "message" not in text) for text in texts)


def _replaced(rule: Rule, site: Mention, row: Api) -> Fix | None:
    """The edits that bring a mention up to date; ``None`` where a person has to."""
    node: ast.AST = site.call or site.node
    if row.kind is Kind.ATTRIBUTE and isinstance(node, ast.Attribute):
        edit = rule.replace(node, f"{rule.source.segment(node.value)}.{row.replacement}")
        return edits.fix_of(f"Use `.{row.replacement}`", edit, safe=rule.can_count_on(row.since))
    expression = rule.source.cst(node)
    changed = None if expression is None else _changed(expression, site, row)
    if changed is None:
        return None
    text = edits.code(changed)
    needed = () if row.argument else importing(rule.source, "torch", node)
    safe = row.safe and rule.can_count_on(row.since)
    return edits.fix_of(_title(row, text), needed, rule.replace(node, text), safe=safe)


def _title(row: Api, text: str) -> str:
    if row.kind is Kind.DROPPED:
        return f"Leave `{row.argument}` out"
    if row.kind is not Kind.ARGUMENT and len(text) <= _LONG and text.isprintable():
        return f"Use `{text}`"
    if row.kind is not Kind.ARGUMENT and (row.prepend or row.keyword is not None):
        added = f"{row.prepend}, ..." if row.prepend else f"..., {'='.join(row.keyword or ())}"
        return f"Use `{row.replacement}({added})`"
    return f"Use `{row.replacement}`"


def _changed(expression: cst.BaseExpression, site: Mention, row: Api) -> cst.BaseExpression | None:
    """The expression as it should be written; ``None`` where that cannot be said."""
    if site.call is None:
        # only where another name, or a call, takes the place of a name as it stands
        if row.kind in (Kind.RENAMED, Kind.EXPRESSION):
            return cst.parse_expression(row.replacement)
        decorates = row.keyword is not None and site.use == "decorator"
        return cst.parse_expression(f"{row.replacement}({'='.join(row.keyword or ())})") if decorates else None
    if not isinstance(expression, cst.Call) or any(argument.star == "*" for argument in expression.args):
        return None
    if row.argument:
        return _with_argument(expression, row)
    if row.kind not in (Kind.RENAMED, Kind.BOUND):
        return None
    return _bound(expression.with_changes(func=cst.parse_expression(row.replacement)), row)


def _bound(call: cst.Call, row: Api) -> cst.Call | None:
    """The call with its positional arguments named, if the replacement has them in another place, and the device."""
    args, names = list(call.args), iter(row.parameters)
    for position, argument in enumerate(args):
        if row.parameters and argument.keyword is None and not argument.star:
            name = next(names, None)
            if name is None:
                return None
            args[position] = edits.named(argument, name)
    call = call.with_changes(args=args)
    if row.prepend:
        call = edits.with_first(call, row.prepend)
    return edits.with_keyword(call, *row.keyword) if row.keyword is not None else call


def _with_argument(call: cst.Call, row: Api) -> cst.Call | None:
    """The call without the deprecated argument, or with its new name."""
    named = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == row.argument]
    if row.kind is Kind.DROPPED and named:
        return edits.without_keyword(call, row.argument)
    if row.kind is Kind.DROPPED and len(call.args) == 1 and not call.args[0].star:
        return call.with_changes(args=[])
    given = any(arg.keyword is not None and arg.keyword.value == row.replacement for arg in call.args)
    if row.kind is not Kind.ARGUMENT or not named or given:
        return None
    new = named[0].with_changes(keyword=cst.Name(row.replacement))
    if row.value:
        new = new.with_changes(value=cst.parse_expression(row.value))
    return call.with_changes(args=[new if arg is named[0] else arg for arg in call.args])


def _argument(site: Mention, row: Api) -> ast.expr | None:
    """The deprecated argument of the call, where it is given."""
    if site.call is None or not row.argument:
        return None
    if (named := keyword_of(site.call, row.argument)) is not None:
        return named
    given = site.call.args[row.position :] if row.position is not None else []
    return given[0] if given and not isinstance(given[0], ast.Starred) else None


def _holds(row: Api, given: ast.expr | None) -> bool:
    """Whether a row speaks of an argument that is given so."""
    if given is None or says_none(given):
        return False
    return not row.only or (isinstance(given, ast.Constant) and given.value in row.only)


def _renamed(rule: Rule, site: Mention, row: Api) -> bool:
    """Whether a name is only given another one: what is done under that is judged where it is done."""
    value = site.call is not None or row.kind in (Kind.EXPRESSION, Kind.ATTRIBUTE)
    return not value and isinstance(statement_of(rule.source, site.node), ast.Assign | ast.AnnAssign)
