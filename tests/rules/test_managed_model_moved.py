"""What DVL114 advises in the hooks of Lightning."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer

TEXT = """
import pytorch_lightning as pl
import torch
from torch import nn

def mask(shape):
    return torch.rand(shape) < 0.5

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 2)

    def training_step(self, batch, batch_idx):
        made = {made}
        return self.net(batch["x"]).sum() + made.sum()
"""


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("torch.zeros(1).cuda()", "make it there: `torch.zeros(..., device=self.device)`"),
        ("torch.Tensor([0.0]).cuda()", "make it there: `torch.tensor(..., device=self.device)`"),
        ("torch.Tensor(2).cuda()", "move it to where the trainer has put the rest: `.to(self.device)`"),
        ("mask((2, 2)).cuda()", "move it to where the trainer has put the rest: `.to(self.device)`"),
        ("self.helper(2).cuda()", "move it to where the trainer has put the rest: `.to(self.device)`"),
        ("mask((2, 2)).to(device)", "move it to where the trainer has put the rest: `.to(self.device)`"),
        ('batch["x"].cuda()', "leave the move out"),
        ("self.net.cuda()(batch)", "leave the move out"),
    ],
)
def test_what_a_hook_makes_goes_to_the_device_of_the_trainer(made: str, told: str) -> None:
    text = TEXT.format(made=made).replace("def mask", 'device = torch.device("cuda")\n\ndef mask')
    (found,) = (found for found in check_source(text) if found.code == "DVL114")
    assert found.help == told


@pytest.mark.parametrize(("spread", "severity"), [("balanced", "error"), ("auto", "info")])
def test_a_pipeline_takes_one_device_map_that_spreads_it(spread: str, severity: str) -> None:
    """Seen in Plato: `"auto"` raises where the move would."""
    text = "import torch\nfrom diffusers import StableDiffusionPipeline\n\n\ndef load(name):\n"
    text += (
        f'    return StableDiffusionPipeline.from_pretrained(name, device_map="{spread}").to(torch.device("cuda"))\n'
    )
    (found,) = check_source(text, config=Config(rule_layers=(RuleLayer(("DVL114",)),)))
    assert str(found.severity) == severity
