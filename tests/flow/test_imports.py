"""Names: under whichever name a file imports torch, the same is read."""

from __future__ import annotations

import ast

import pytest

from devlint.flow import analyze
from devlint.sites.base import Site
from devlint.sites.devices import ApiCall
from devlint.sites.distributed import Wrap
from devlint.sites.loaders import Load
from devlint.sites.placement import Forward, Operation


def found(text: str) -> list[Site]:
    return list(analyze(ast.parse(text), text))


@pytest.mark.parametrize(
    ("imports", "ones"),
    [
        ("import torch", "torch.ones(4)"),
        ("import torch as th", "th.ones(4)"),
        ("from torch import ones", "ones(4)"),
        ("from torch import ones as make", "make(4)"),
        ("from torch import *\nimport torch", "torch.ones(4)"),
        ("import torch, os", "torch.ones(4)"),
        ("import torch.nn", "torch.ones(4)"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.ones(4)"),
        ("if True:\n    import torch", "torch.ones(4)"),
    ],
)
def test_functions(imports: str, ones: str) -> None:
    code = f"{imports}\ndef f():\n    x = {ones}.cuda()\n    return x + {ones}\n"
    assert [site.operator for site in found(code) if isinstance(site, Operation)] == ["+"]


@pytest.mark.parametrize(
    ("imports", "linear"),
    [
        ("import torch\nimport torch.nn as nn", "nn.Linear"),
        ("import torch\nfrom torch import nn", "nn.Linear"),
        ("import torch\nfrom torch.nn import Linear", "Linear"),
        ("import torch\nfrom torch.nn import Linear as Dense", "Dense"),
        ("import torch", "torch.nn.Linear"),
        ("import torch\nfrom torch.nn.modules.linear import Linear", "Linear"),
        ("import torch\nfrom torch.nn import *", "Linear"),
        ("import torch\nimport torch.nn as layers", "layers.Linear"),
    ],
)
def test_modules(imports: str, linear: str) -> None:
    code = f"{imports}\ndef f():\n    model = {linear}(4, 4).cuda()\n    return model(torch.ones(4))\n"
    assert [site.module for site in found(code) if isinstance(site, Forward)] == ["model"]


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from torch.utils.data import DataLoader", "DataLoader"),
        ("from torch.utils.data import DataLoader as Batches", "Batches"),
        ("import torch.utils.data as data", "data.DataLoader"),
        ("from torch.utils import data", "data.DataLoader"),
        ("from torch.utils.data.dataloader import DataLoader", "DataLoader"),
    ],
)
def test_loaders(imports: str, name: str) -> None:
    code = f"{imports}\ndef f(dataset):\n    return {name}(dataset)\n"
    assert [site.loader for site in found(code) if isinstance(site, Load)] == ["torch.utils.data.DataLoader"]


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from torch import nn", "nn.DataParallel"),
        ("from torch.nn import DataParallel", "DataParallel"),
        ("from torch.nn.parallel import DataParallel as DP", "DP"),
        ("import torch", "torch.nn.parallel.DataParallel"),
    ],
)
def test_wrappers(imports: str, name: str) -> None:
    code = f"{imports}\ndef f(model, device):\n    return {name}(model)\n"
    assert [site.wrapper for site in found(code) if isinstance(site, Wrap)] == ["torch.nn.DataParallel"]


@pytest.mark.parametrize(
    "call", ["import torch\ntorch.load('a')", "from torch import load\nload('a')", "import torch as t\nt.load('a')"]
)
def test_calls(call: str) -> None:
    assert [site.function for site in found(call) if isinstance(site, ApiCall)] == ["torch.load"]


@pytest.mark.parametrize(
    "text",
    [
        # other people's names
        "import cupy as torch_like\nx = torch_like.ones(4).cuda() + torch_like.ones(4)",
        "import numpy as torch\nx = torch.ones(4)\ny = x + x  # torch",
        "import joblib\nmodel = joblib.load('torch.pkl')",
        "from mytorch import DataLoader\nloader = DataLoader(1)",
        "def ones(n):\n    return torch_free\nx = ones(4) + ones(4)",
    ],
)
def test_strangers_of_the_same_name(text: str) -> None:
    assert not [site for site in found(text) if isinstance(site, Operation | Forward | Load | Wrap | ApiCall)]


def test_a_local_name_hides_an_import() -> None:
    code = "import torch\ndef f(torch):\n    return torch.ones(4).cuda() + torch.ones(4)\n"
    assert not [site for site in found(code) if isinstance(site, Operation)]


def test_an_import_in_a_function() -> None:
    code = "def f():\n    import torch\n    return torch.ones(4).cuda() + torch.ones(4)\n"
    assert [site.operator for site in found(code) if isinstance(site, Operation)] == ["+"]


def test_a_file_without_torch_has_nothing_to_say_unless_it_speaks_as_torch_alone_does() -> None:
    assert found("x = model.to(place)") == []
    assert found("x = model.to(device)")
    assert found("x = model.cuda()")
