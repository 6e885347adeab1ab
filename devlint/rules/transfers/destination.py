"""Where a move goes, in the words of the code that moves."""

from __future__ import annotations

import ast

from devlint.device import Kind, Role
from devlint.rules.code.blocks import keyword_of
from devlint.rules.code.edits import short
from devlint.sites.transfers import Transfer
from devlint.source.tree import Source


def target_of(source: Source, site: Transfer) -> str:
    """The name of what the move goes to; empty where it has none, or a long one."""
    node = site.target_node
    return short(source.segment(node), "") if isinstance(node, (ast.Name, ast.Attribute)) else ""


def destination(source: Source, site: Transfer) -> str:
    """Where the move goes: the device as the code names it there, or else what is known of it, or was observed."""
    text = target_of(source, site)
    if not text or site.measured is not None:
        return str(site.target)
    if is_like_another(site):
        return f"the device of `{text}`"
    # what a device is called elsewhere, such as in the constructor, says nothing here
    said = site.target is not None and site.target.kind is Kind.SYMBOL and site.target.role is Role.DEVICE
    return f"`{text}`" if text.endswith("device") or (said and site.plain) else str(site.target)


def is_like_another(site: Transfer) -> bool:
    """Whether a move takes a tensor, and goes to its device and its dtype."""
    call = site.node
    alone = isinstance(call, ast.Call) and len(call.args) == 1 and keyword_of(call, "dtype") is None
    return alone and not site.plain
