"""Guards: the code that only runs where there is an accelerator, by whichever condition it says so."""

from __future__ import annotations

import ast
import textwrap

import pytest

from devlint.flow import analyze
from devlint.sites.transfers import Transfer

GUARDED = {
    "available": "if torch.cuda.is_available():\n    x.cuda()",
    "available elsewhere": "if torch.accelerator.is_available():\n    x.cuda()",
    "count": "if torch.cuda.device_count() > 1:\n    x.cuda()",
    "truth of the count": "if torch.cuda.device_count():\n    x.cuda()",
    "no count": "if torch.cuda.device_count() == 0:\n    pass\nelse:\n    x.cuda()",
    "argument": "if args.cuda:\n    x.cuda()",
    "argument for GPUs": "if args.use_gpu:\n    x.cuda()",
    "negative argument": "if not args.no_cuda:\n    x.cuda()",
    "else of the negative": "if args.no_cuda:\n    pass\nelse:\n    x.cuda()",
    "negation": "if not torch.cuda.is_available():\n    pass\nelse:\n    x.cuda()",
    "elif": "if args.verbose:\n    pass\nelif torch.cuda.is_available():\n    x.cuda()",
    "is True": "if torch.cuda.is_available() is True:\n    x.cuda()",
    "return": "if not torch.cuda.is_available():\n    return\nx.cuda()",
    "raise": "if not torch.cuda.is_available():\n    raise RuntimeError\nx.cuda()",
    "sys.exit": "if not torch.cuda.is_available():\n    sys.exit(1)\nx.cuda()",
    "exit": "if not torch.cuda.is_available():\n    exit()\nx.cuda()",
    "os._exit": "if not torch.cuda.is_available():\n    os._exit(1)\nx.cuda()",
    "pytest.skip": "if not torch.cuda.is_available():\n    pytest.skip('no GPU')\nx.cuda()",
    "continue": "for _ in data:\n    if not torch.cuda.is_available():\n        continue\n    x.cuda()",
    "assert": "assert torch.cuda.is_available()\nx.cuda()",
    "assert with a message": "assert torch.cuda.is_available(), 'no GPU'\nx.cuda()",
    "ternary": "y = x.cuda() if torch.cuda.is_available() else x",
    "negative ternary": "y = x if not torch.cuda.is_available() else x.cuda()",
    "and": "if args.fast and torch.cuda.is_available():\n    x.cuda()",
    "and behind": "torch.cuda.is_available() and x.cuda()",
    "or returned": "if args.slow or not torch.cuda.is_available():\n    return\nx.cuda()",
    "variable": "use = torch.cuda.is_available()\nif use:\n    x.cuda()",
    "variable of a conjunction": "use = torch.cuda.is_available() and not args.cpu\nif use:\n    x.cuda()",
    "tensor": "if x.is_cuda:\n    y.cuda()",
    "tensor under a name": "there = x.is_cuda\nif there:\n    y.cuda()",
    "tensor asked by name": "if getattr(x, 'is_cuda', False):\n    y.cuda()",
    "tensor, or none": "if not x.is_cpu:\n    y.cuda()",
    "one of several tensors": "if any(t.is_cuda for t in x):\n    y.cuda()",
    "all of several tensors": "if all([t.is_cuda for t in x]):\n    y.cuda()",
    "tensors apart": "if x.is_cuda != y.is_cuda:\n    y.cuda()",
    "devices apart": "if x.device != y.device:\n    y.cuda()",
    "class of a tensor": "if isinstance(x, torch.cuda.FloatTensor):\n    y.cuda()",
    "exact class of a tensor": "if type(x) == torch.cuda.FloatTensor:\n    y.cuda()",
    "class by name": "if x.type().startswith('torch.cuda'):\n    y.cuda()",
    "device type": "if device.type == 'cuda':\n    x.cuda()",
    "device name": "if args.device == 'cuda':\n    x.cuda()",
    "device prefix": "if str(args.device).startswith('cuda'):\n    x.cuda()",
    "not the CPU": "if device.type != 'cpu':\n    x.cuda()",
    "else of the CPU": "if device.type == 'cpu':\n    pass\nelse:\n    x.cuda()",
    "match": "match device.type:\n    case 'cuda':\n        x.cuda()",
    "while": "while torch.cuda.is_available():\n    x.cuda()",
    "comprehension": "y = [v.cuda() for v in x if torch.cuda.is_available()]",
    "nested": "if torch.cuda.is_available():\n    if args.fast:\n        for _ in x:\n            x.cuda()",
    "in a with": "if torch.cuda.is_available():\n    with torch.no_grad():\n        x.cuda()",
    "walrus": "if (n := torch.cuda.device_count()) > 0:\n    x.cuda()",
    "try": "if torch.cuda.is_available():\n    try:\n        x.cuda()\n    except RuntimeError:\n        pass",
}
UNGUARDED = {
    "nothing": "x.cuda()",
    "after": "if torch.cuda.is_available():\n    pass\nx.cuda()",
    "other side": "if torch.cuda.is_available():\n    pass\nelse:\n    x.cuda()",
    "negation": "if not torch.cuda.is_available():\n    x.cuda()",
    "or": "if args.fast or torch.cuda.is_available():\n    x.cuda()",
    "else of an and": "if args.fast and torch.cuda.is_available():\n    pass\nelse:\n    x.cuda()",
    "another condition": "if args.fast:\n    x.cuda()",
    "negative argument": "if args.no_cuda:\n    x.cuda()",
    "the CPU": "if device.type == 'cpu':\n    x.cuda()",
    "return where there is one": "if torch.cuda.is_available():\n    return\nx.cuda()",
    "no early exit": "if not torch.cuda.is_available():\n    print('slow')\nx.cuda()",
    "the other arm": "y = x.cuda() if not torch.cuda.is_available() else x",
    "inequality of versions": "if torch.__version__ > '2':\n    x.cuda()",
    "another function's": "def g():\n    if not torch.cuda.is_available():\n        return\nx.cuda()",
    "no count": "if torch.cuda.device_count() == 0:\n    x.cuda()",
    "less than one": "if torch.cuda.device_count() < 1:\n    x.cuda()",
    "tensor of the host": "if x.is_cpu:\n    y.cuda()",
    "tensors together": "if x.device == y.device:\n    y.cuda()",
    "something of several": "if any(t.requires_grad for t in x):\n    y.cuda()",
    "class of the host": "if isinstance(x, torch.FloatTensor):\n    y.cuda()",
    "no index": "if args.gpu is None:\n    x.cuda()",
}
GAPS: dict[str, str] = {}


def guarded(body: str, head: str = "def f(x, y, args, device, data):") -> list[bool]:
    text = f"import os, sys, pytest, torch\n{head}\n{textwrap.indent(body, '    ')}\n"
    moves = [site for site in analyze(ast.parse(text), text) if isinstance(site, Transfer)]
    assert moves, "the transfer is not seen at all"
    return [site.scope.guarded for site in moves]


@pytest.mark.parametrize("name", GUARDED)
def test_guarded(name: str, request: pytest.FixtureRequest) -> None:
    if name in GAPS:
        request.applymarker(pytest.mark.xfail(strict=True, reason=GAPS[name]))
    assert all(guarded(GUARDED[name]))


@pytest.mark.parametrize("name", UNGUARDED)
def test_unguarded(name: str, request: pytest.FixtureRequest) -> None:
    if f"not {name}" in GAPS:
        request.applymarker(pytest.mark.xfail(strict=True, reason=GAPS[f"not {name}"]))
    assert not any(guarded(UNGUARDED[name]))


@pytest.mark.parametrize(
    "decorator",
    [
        "@pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')",
        "@unittest.skipUnless(torch.cuda.is_available(), 'no GPU')",
        "@unittest.skipIf(not torch.cuda.is_available(), 'no GPU')",
        "@require_torch_gpu",
    ],
)
def test_decorators(decorator: str) -> None:
    head = f"{decorator}\ndef f(x, args):"
    assert all(guarded("x.cuda()", head))


def test_a_decorated_class() -> None:
    head = "@unittest.skipUnless(torch.cuda.is_available(), 'no GPU')\nclass T:\n  def test(self, x):"
    assert all(guarded("x.cuda()", head))


def test_other_decorators() -> None:
    assert not any(guarded("x.cuda()", "@torch.no_grad()\ndef f(x, args):"))


def test_a_flag_of_self() -> None:
    text = textwrap.dedent("""
        import torch

        class Trainer:
            def __init__(self):
                self.fast = torch.cuda.is_available()

            def step(self, x):
                if self.fast:
                    x.cuda()

            def other(self, x):
                x.cuda()
    """)
    moves = [site for site in analyze(ast.parse(text), text) if isinstance(site, Transfer)]
    assert [site.scope.guarded for site in moves] == [True, False]


def test_a_flag_of_the_file() -> None:
    text = "import torch\nFAST = torch.cuda.is_available()\ndef f(x):\n    if FAST:\n        x.cuda()\n    x.cuda()\n"
    moves = [site for site in analyze(ast.parse(text), text) if isinstance(site, Transfer)]
    assert [site.scope.guarded for site in moves] == [True, False]


def test_an_exit_of_the_file() -> None:
    text = "import sys, torch\nif not torch.cuda.is_available():\n    sys.exit(1)\nx = torch.ones(4)\nx.cuda()\n"
    moves = [site for site in analyze(ast.parse(text), text) if isinstance(site, Transfer)]
    assert [site.scope.guarded for site in moves] == [True]
