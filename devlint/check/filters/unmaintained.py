"""Projects that say in their README that nobody maintains them: nobody takes a hint there, or meets a new torch."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache

from devlint.check.filters import project_files
from devlint.finding import Finding, Severity
from devlint.rules.registry import registry
from devlint.source.files import held

_HEAD = 4_000
"""So many characters of a README are its notices; what comes later may speak of a part, or of an old version."""
_TITLE = re.compile(r"^\s*(?:#+|=+\n)?\s*([\w][\w .+-]{1,40}?)\s*$", re.MULTILINE)
_KINDS = r"(?:repo(?:sitory)?|project|package|library|codebase|code ?base|toolkit|toolbox|framework)\b"
_OVER = (
    r"(?:no longer (?:being )?(?:actively )?(?:maintained|developed|supported|updated)|no longer under (?:active )?"
    r"(?:development|maintenance)|not (?:being )?(?:actively )?maintained|(?:now )?(?:officially )?"
    r"(?:unmaintained|archived|discontinued|deprecated))\b(?! (?:in favou?r|since version))"
)
_SAYS = (
    r"(?i)\b(?:this (?:[\w-]+ ){{0,2}}{kinds}|(?:{title})\b)(?:\W{{0,4}}(?:is|has been|was|will be)){{1,2}}\W+{over}"
)
_WE = re.compile(rf"(?i)\b(?:no longer|not) (?:actively )?maintain(?:ing)? (?:this|the) (?:[\w-]+ ){{0,2}}{_KINDS}")


def outlasted(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings that are hints, or of what a later torch takes away, in projects that have ended."""
    ended = cache(_ended)
    deprecated = frozenset(code for code, rule in registry().items() if rule.deprecates)
    about = (one for one in findings if one.severity is Severity.INFO or one.code in deprecated)
    return [finding for finding, root in project_files.rooted(about) if root and ended(root)]


def _ended(root: str) -> bool:
    """Whether a README at the root of a project says so."""
    folder = os.path.basename(root)
    names = (name for name in os.listdir(root) if name.lower().startswith("readme"))
    heads = ((held(os.path.join(root, name)) or b"").decode("utf-8", "replace")[:_HEAD] for name in names)
    return any(_says_so(head, folder) for head in heads)


def _says_so(text: str, folder: str) -> bool:
    """Whether the beginning of a README says that its project has ended: "this project", its title or its folder."""
    plain = " ".join(re.sub(r"[*_`>]", "", text).split())
    title = _TITLE.search(text)
    named = "|".join(map(re.escape, filter(None, (title and title[1], folder))))
    return bool(_WE.search(plain) or re.search(_SAYS.format(kinds=_KINDS, title=named or "(?!)", over=_OVER), plain))
