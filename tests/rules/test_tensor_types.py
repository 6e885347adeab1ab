"""What the type of its numbers says of where a module is, beside the legacy types that another rule reports."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source

TYPED = """\
import torch
from torchvision.models import inception_v3

def scores(x, precision, cuda=True):
    chosen = torch.cuda.FloatTensor if cuda else torch.FloatTensor
    model = inception_v3()
    model.type({type})
    return model({given})
"""


@pytest.mark.parametrize(
    ("kind", "given", "clash"),
    [
        ("chosen", "x.type(chosen)", False),
        ("torch.cuda.FloatTensor", "x.cuda()", False),
        ("torch.cuda.FloatTensor", "torch.ones(1, 3)", True),
        ("torch.FloatTensor", "x.cuda()", True),
        ("torch.float16", "x.cuda()", True),
        ("precision", "x.cuda()", False),
    ],
)
def test_a_tensor_type_moves_a_module_and_a_dtype_does_not(kind: str, given: str, clash: bool) -> None:
    """Seen in inception-score-pytorch."""
    found = check_source(TYPED.format(type=kind, given=given))
    assert ("DVL101" in {finding.code for finding in found}) is clash
