"""DVL900, a parse error: said of code without a syntax tree, unless the configuration or a comment leaves it out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from devlint.check.suppressions import file_suppressions
from devlint.config.schema import Config
from devlint.finding import Finding, Span
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, active_rules, graded

PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"


def parse_errors(
    failures: Sequence[tuple[str, Span]], help_text: str, filename: str, config: Config, text: str = ""
) -> list[Finding]:
    """The findings that say so, at their places; of the comments in ``text`` those count that speak of all of it.

    What lines of the text mean is not known where its tokens end early.
    """
    rule = registry().get(PARSE_ERROR) if failures else None
    if rule is None or rule not in active_rules(filename, config):
        return []
    found = [
        Finding(PARSE_ERROR, rule.name, rule.severity, message, filename, span, help=help_text)
        for message, span in failures
    ]
    return graded(file_suppressions(text).apply(found), config)
