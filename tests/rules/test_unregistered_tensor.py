"""What DVL104 says, and to whom, where a buffer is not all that is needed."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

TEXT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, model, n):
        super().__init__()
        self.model = model
        self.ends = torch.arange(n)

    def forward(self, x):
        return self.model(x) + self.ends.to(x.device)

"""


def check(text: str, selected: bool = True) -> list[Finding]:
    """The findings of the rule: if it is selected, with what is only for those who ask."""
    config = Config(rule_layers=(RuleLayer(("DVL104",)),)) if selected else Config()
    return [found for found in check_source(text, config=config) if found.code == "DVL104"]


@pytest.mark.parametrize("read", ["self.ends[0].item()", "self.ends.max().tolist()", "int(self.ends[0])"])
def test_what_is_read_on_the_host_is_asked_for(read: str) -> None:
    text = f"{TEXT}    def last(self):\n        return {read}\n"
    assert not check(text, selected=False)
    (found,) = check(text)
    assert (found.help or "").endswith("; keep a number beside it for what reads it on the host")
    assert found.fix is None


@pytest.mark.parametrize("read", ["self.ends.size(0)", "int(self.ends.shape[0])", "self.ends.cuda().max().item()"])
def test_a_description_waits_for_nothing(read: str) -> None:
    assert check(f"{TEXT}    def last(self):\n        return {read}\n", selected=False)


def test_a_move_of_the_class_has_to_reach_the_buffer() -> None:
    text = f"{TEXT}    def cuda(self):\n        self.model.cuda()\n        return self\n"
    assert not check(text, selected=False)
    (found,) = check(text)
    assert (found.help or "").endswith("; `cuda()` of the class has to call that of the bases then")


@pytest.mark.parametrize("move", ["super().cuda()", "self.to(0)", "nn.Module.cuda(self)", "self._apply(torch.relu)"])
def test_a_move_may_end_in_that_of_the_bases(move: str) -> None:
    assert check(f"{TEXT}    def cuda(self):\n        return {move}\n", selected=False)


def test_of_what_is_selected_parts_are_copied() -> None:
    (found,) = check(TEXT.replace("self.ends.to", "self.ends[:2].to"))
    assert found.message.endswith("does not move: parts of it are copied to the device of the inputs at every use")
