"""Hints that are only for those who ask for their rule."""

from __future__ import annotations

from devlint.check.engine import check_source
from devlint.config import Config, Selection

PLAIN = """\
import torch

def masked(scores: torch.Tensor):
    mask = torch.ones(3, 3)
    return scores.clamp(0, 1) * mask
"""


def told(text: str, *layers: Selection) -> list[tuple[str, str]]:
    found = check_source(text, "m.py", Config(selections=layers))
    return [(finding.code, str(finding.severity)) for finding in found]


def test_a_plain_function_is_hinted_at_where_the_rule_is_selected() -> None:
    """Nothing shows who calls it, and with what."""
    assert told(PLAIN) == []
    for layer in (Selection(("DVL103",)), Selection(extend_select=("DVL1",)), Selection(("ALL",))):
        assert told(PLAIN, layer) == [("DVL103", "info")]
    assert told(PLAIN, Selection(("DVL103",)), Selection(("DVL2",))) == []


def test_such_a_hint_uses_the_comment_that_silences_it() -> None:
    silenced = PLAIN.replace("torch.ones(3, 3)", "torch.ones(3, 3)  # devlint: ignore[DVL103]")
    assert told(silenced) == []
