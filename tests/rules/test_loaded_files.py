"""What DVL604 knows of the file that is loaded: who saved it, from where, and where its tensors belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.load import Resolver
from devlint.config.schema import Config, RuleLayer
from devlint.rules.selection import validate

REFILLED = """
import torch

class Goals:
    def __init__(self, size, device):
        self.states = {made}

    def load(self, path):
        self.states = torch.load(path)

    def nearest(self, state):
        return torch.cdist(state, self.states.to(state.device))
"""
RHYTHM = """
import torch

class Rhythm:
    def load_state_dict(self, state):
        self.source = torch.tensor(state["source"])
"""
CONVERT = """
import torch
from rhythm import Rhythm

def convert(source, target):
    rhythm = Rhythm()
    rhythm.load_state_dict({"source": torch.load(source), "target": torch.load(target)})
"""


def _told(text: str) -> list[tuple[int, str | None]]:
    """The rows, with the advice, of what is told of loads to those who select the rule."""
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    return [(found.span.row, found.help) for found in check_source(text, config=config)]


@pytest.mark.parametrize(
    ("made", "place"),
    [
        ("torch.zeros(size).to(device)", "self.states.device"),
        ("torch.zeros(size, device=device)", "self.states.device"),
        ("torch.zeros(size)", '"cpu"'),
        ("None", '"cpu"'),
    ],
)
def test_what_is_loaded_again_goes_where_the_constructor_has_put_it(made: str, place: str) -> None:
    assert _told(REFILLED.format(made=made)) == [(9, f"add `map_location={place}`")]


def test_what_an_object_of_another_file_takes_itself_is_no_state_of_a_module(tmp_path: Path) -> None:
    """Seen in seq2seq-vc, where it is numbers."""
    (tmp_path / "rhythm.py").write_text(RHYTHM, encoding="utf-8")
    (tmp_path / "convert.py").write_text(CONVERT, encoding="utf-8")
    found = check_paths([tmp_path], Resolver(validate, Config())).findings
    assert [one.span.row for one in found if one.code == "DVL604" and not one.asked] == []
    (tmp_path / "rhythm.py").write_text("import torch\n\nclass Rhythm(torch.nn.Linear):\n    pass\n", encoding="utf-8")
    found = check_paths([tmp_path], Resolver(validate, Config())).findings
    assert [one.span.row for one in found if one.code == "DVL604" and not one.asked] == [7, 7]
