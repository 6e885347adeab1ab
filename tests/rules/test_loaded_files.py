"""What DVL604 knows of the file that is loaded: who saved it, from where, and where its tensors belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.load import Resolver
from devlint.config.schema import Config
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
WEIGHTS = """
import torch

class Probe:
    def save(self, folder):
        weight = self.proj.weight.data{moved}
        if folder:
            weight = torch.cat([{first}, weight], dim=0)
        torch.save(weight, f"{{folder}}/weight.pt")

    def load(self, folder):
        weight = torch.load(f"{{folder}}/weight.pt")
        self.proj.weight.data = weight.to(self.device)
"""
SCRIPT = """
import os
import torch

def write(flow, folder):
    torch.save(flow.state_dict(), os.path.join(folder, "flow.pt"))

def read(flow, folder):
    flow.load_state_dict(torch.load(os.path.join(folder, {name})))

{end}
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
    """The rows, with the advice, of what everybody is told of loads."""
    return [(found.span.row, found.help) for found in check_source(text) if found.code == "DVL604"]


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


@pytest.mark.parametrize(
    ("moved", "first", "rows"),
    [
        (".cpu()", "torch.zeros(0)", []),
        ("", "torch.zeros(0)", [12]),
        # another path leaves it where it is
        ("", "torch.zeros(0).cpu()", [12]),
    ],
)
def test_a_name_that_is_copied_to_the_host_is_saved_from_there(moved: str, first: str, rows: list[int]) -> None:
    assert [row for row, _ in _told(WEIGHTS.format(moved=moved, first=first))] == rows


@pytest.mark.parametrize(
    ("name", "end", "rows"),
    [
        ('"flow.pt"', "if __name__ == '__main__':\n    write(torch.nn.Linear(2, 2), '.')", []),
        ('"flow.pt"', "", [9]),
        ('"best.pt"', "if __name__ == '__main__':\n    write(torch.nn.Linear(2, 2), '.')", [9]),
        ('"flow.pt"', "if __name__ == '__main__':\n    write(torch.nn.Linear(2, 2).to('xpu'), '.')", [9]),
    ],
)
def test_a_script_that_names_no_device_reads_what_it_has_saved_from_the_host(
    name: str, end: str, rows: list[int]
) -> None:
    assert [row for row, _ in _told(SCRIPT.format(name=name, end=end))] == rows


def test_what_an_object_of_another_file_takes_itself_is_no_state_of_a_module(tmp_path: Path) -> None:
    """Seen in seq2seq-vc, where it is numbers."""
    (tmp_path / "rhythm.py").write_text(RHYTHM, encoding="utf-8")
    (tmp_path / "convert.py").write_text(CONVERT, encoding="utf-8")
    found = check_paths([tmp_path], Resolver(validate, Config())).findings
    assert [one.span.row for one in found if one.code == "DVL604" and not one.asked] == []
    (tmp_path / "rhythm.py").write_text("import torch\n\nclass Rhythm(torch.nn.Linear):\n    pass\n", encoding="utf-8")
    found = check_paths([tmp_path], Resolver(validate, Config())).findings
    assert [one.span.row for one in found if one.code == "DVL604" and not one.asked] == [7, 7]


BEST = """
import torch
from settings import config

class Trainer:
    def train(self, name):
        torch.save(self.model.state_dict(), {saved})

    def test(self, name):
        self.model.load_state_dict(torch.load({loaded}))
        self.model.to(self.device)
"""


@pytest.mark.parametrize(
    ("saved", "loaded", "told"),
    [
        ('f"runs/{config.name}/best.pt"', 'f"runs/{config.name}/best.pt"', False),
        ('"best.pt"', '"best.pt"', False),
        ('f"{self.folder}/best.pt"', 'f"{self.folder}/best.pt"', False),
        # whoever calls it says which file
        ('f"runs/{name}/best.pt"', 'f"runs/{name}/best.pt"', True),
        ("name", "name", True),
        ('"best.pt"', '"released.pt"', True),
    ],
)
def test_a_path_that_two_methods_of_a_class_write_out_is_one_file(saved: str, loaded: str, told: bool) -> None:
    """Seen in torchquantum."""
    rows = [row for row, _ in _told(BEST.format(saved=saved, loaded=loaded))]
    assert rows == [10] * told
