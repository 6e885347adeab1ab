"""An error or a warning is for what a function itself shows; what rests on more is a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.load import Resolver
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Severity
from devlint.rules.selection import validate
from devlint.rules.subsumption import summarized

CONFIG = Config(rule_layers=(RuleLayer(("DVL101", "DVL103", "DVL104", "DVL107")),))
HEAD = "import torch\nfrom torch import nn\n\n"
PLACED = "def f(x: torch.Tensor):\n    x = x.cuda()\n    y = torch.ones(3)\n    return x + y\n"
USED = "def f(x: torch.Tensor):\n    return x.cuda() + made()\n"
CALLED = f"def made():\n    return torch.ones(3)\n\n{USED}"
NESTED = "def f(x: torch.Tensor):\n    x = x.cuda()\n    def g(y):\n        return x + torch.ones(3)\n    return g(x)\n"
GLOBAL = "MEANS = torch.ones(3)\n\ndef f(x: torch.Tensor):\n    return x.cuda() + MEANS\n"
KEPT = """\
class Keeper:
    def __init__(self):
        self.means = torch.ones(3)

    def f(self, x: torch.Tensor):
        return x.cuda() + self.means
"""
WITHIN = """\
class Keeper:
    def f(self, x: torch.Tensor):
        self.means = torch.ones(3)
        return x.cuda() + self.means
"""
GIVEN = "class Net(nn.Module):\n    def forward(self, x):\n        return x.clamp(0, 1) + torch.ones(3)\n"
READ = "def f(x: torch.Tensor):\n    x = x.cuda()\n    return x.numpy()\n"
READ_OF_A_MODULE = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x).detach().numpy()
"""

CHOSEN = """\
def f(weights, channels, device):
    if weights == "mean":
        weights = torch.ones(3)
    elif weights == "random":
        weights = torch.rand(channels, device=device)
    if len(weights) < channels:
        weights = torch.cat([weights, torch.zeros(channels - len(weights))])
    return weights
"""


def severities(text: str) -> list[tuple[str, str]]:
    return [(one.code, str(one.severity)) for one in check_source(HEAD + text, "net.py", CONFIG)]


@pytest.mark.parametrize("text", [PLACED, CALLED, NESTED, GLOBAL])
def test_what_a_function_shows_with_those_that_it_calls_is_an_error(text: str) -> None:
    assert severities(text) == [("DVL101", "error")]


def test_what_methods_have_left_in_an_object_is_a_hint() -> None:
    assert severities(KEPT) == [("DVL101", "info")]
    # what the same method has made, nothing can have exchanged
    assert severities(WITHIN) == [("DVL101", "error")]


def test_what_hangs_on_where_callers_keep_things_is_a_hint() -> None:
    assert severities(GIVEN) == [("DVL103", "info")]
    assert severities(READ) == [("DVL107", "error")]
    assert severities(READ_OF_A_MODULE) == [("DVL107", "info")]


def test_what_callers_choose_is_for_those_who_ask() -> None:
    """Seen in deepinv: what was made on the device is never too short."""
    assert severities(CHOSEN) == [("DVL101", "error")]
    assert summarized(check_source(HEAD + CHOSEN, "net.py")) == []
    assert [one.code for one in summarized(check_source(HEAD + PLACED, "net.py"))] == ["DVL101"]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ('os.environ["CUDA_VISIBLE_DEVICES"] = ""', []),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '-1'", []),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0"', ["DVL101"]),
        ('if ALONE:\n    os.environ["CUDA_VISIBLE_DEVICES"] = ""', ["DVL101"]),
    ],
)
def test_a_program_without_gpus_has_no_mismatch(first: str, told: list[str]) -> None:
    """Seen in malaya-speech: a notebook that is for the CPU."""
    text = f"import os\n{first}\n{HEAD}{PLACED}"
    found = summarized(check_source(text, "net.py"))
    assert [one.code for one in found if one.code == "DVL101"] == told
    assert [one.code for one in check_source(text, "net.py", CONFIG)] == ["DVL101"]


def test_a_function_of_another_file_is_followed_as_one_of_this(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(f"{HEAD}def made():\n    return torch.ones(3)\n")
    (tmp_path / "use.py").write_text(f"{HEAD}from parts import made\n\n{USED}")
    found = check_paths([tmp_path], Resolver(validate, CONFIG)).findings
    assert [str(one.severity) for one in found] == ["error"]


def test_nobody_who_has_not_asked_is_told_of_hints_in_tests() -> None:
    """Nor, anywhere, of what methods have left in an object: whoever selects the rule is, and a run can confirm it."""
    for name, told in (("net.py", ["DVL103"]), ("tests/test_net.py", [])):
        found = summarized(check_source(f"{HEAD}{GIVEN}\n{KEPT}", name))
        assert [one.code for one in found if one.code in ("DVL101", "DVL103")] == told


def test_a_mismatch_in_a_test_is_for_those_who_ask() -> None:
    """Of 29 that were read none but one was a bug: whoever has the device runs the test."""
    for name, told in (("net.py", ["DVL101"]), ("tests/helpers.py", []), ("test_net.py", [])):
        found = check_source(f"{HEAD}{PLACED}", name)
        assert [one.code for one in summarized(found) if one.code != "DVL601"] == told
        assert [str(one.severity) for one in check_source(f"{HEAD}{PLACED}", name, CONFIG)] == ["error"]
    # what is lost is lost without a word
    lost = check_source(f"{HEAD}def f(x: torch.Tensor):\n    x.cuda()\n    return x\n", "test_net.py")
    assert [one.code for one in summarized(lost)] == ["DVL102"]


def test_a_project_can_have_them_fail() -> None:
    config = Config(rule_layers=CONFIG.rule_layers, severity=(("DVL101", Severity.ERROR),))
    assert [str(one.severity) for one in check_source(HEAD + KEPT, config=config)] == ["error"]
