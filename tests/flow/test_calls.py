"""Calls of functions of the same file: what goes in, what comes out, and what they do to what they are given."""

from __future__ import annotations

import ast

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.flow import analyze
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, script
from tests.growth import QUADRATIC, Work, growth

SCRIPTS = {
    "a result": """
        def _make():
            return torch.ones(4).cuda()

        def f():
            _make() + torch.ones(4)  # raises
            _make() + torch.ones(4).cuda()
    """,
    "a device in a dict": """
        def f():
            where = {"device": "cuda"}
            torch.ones(4).new_zeros(4, **where) + torch.ones(4)  # raises
    """,
    "an argument passed through": """
        def _same(value):
            return value

        def f():
            _same(torch.ones(4).cuda()) + torch.ones(4)  # raises
            _same(torch.ones(4)) + torch.ones(4)
    """,
    "a move in a helper": """
        def _move(value, device):
            return value.to(device)

        def f(device):
            x = _move(torch.ones(4), device)
            x + torch.ones(4).to(device)
            x + torch.ones(4)  # raises
    """,
    "a helper's clash with what it is given": """
        def _add(one, two):
            return one + two  # raises

        def f(device):
            _add(torch.ones(4), torch.ones(4))
            _add(torch.ones(4).to(device), torch.ones(4))
    """,
    "keywords and defaults": """
        def _make(n, device="cpu"):
            return torch.ones(n, device=device)

        def f():
            _make(4) + torch.ones(4)
            _make(4, "cuda") + torch.ones(4)  # raises
            _make(device="cuda", n=4) + torch.ones(4)  # raises
            _make(4, device="cuda") + _make(n=4, device="cuda")
    """,
    "keyword only": """
        def _make(*, device=None):
            return torch.ones(4, device=device)

        def f(device):
            _make() + torch.ones(4)
            _make(device=device) + torch.ones(4)  # raises
    """,
    "starred arguments": """
        def _make(n, device):
            return torch.ones(n, device=device)

        def f():
            _make(*(4, "cuda")) + torch.ones(4)  # raises
            _make(*(4, "cpu")) + torch.ones(4)
            _make(**{"n": 4, "device": "cpu"}) + torch.ones(4)
    """,
    "what is spelled out beside starred arguments": """
        import json

        def _make(n, device="cuda", **rest):
            return torch.ones(n, device=device)

        def f():
            options, sizes = json.loads("{}"), json.loads("[4]")
            _make(4, device="cpu", **options) + torch.ones(4)
            _make(4, device="cuda", **options) + torch.ones(4)  # raises
            _make(*sizes, device="cuda") + torch.ones(4)  # raises
            _make(4, "cuda", **options) + torch.ones(4)  # raises
            _make(4, **options) + torch.ones(4)  # raises, unseen
    """,
    "several results": """
        def _pair(device):
            return torch.ones(4), torch.ones(4).to(device)

        def f(device):
            x, y = _pair(device)
            x + torch.ones(4)
            y + torch.ones(4)  # raises
            x + y  # raises
    """,
    "several returns": """
        def _make(flag):
            if flag:
                return torch.ones(4)
            return torch.ones(4)

        def f(flag):
            _make(flag) + torch.ones(4)
            _make(flag) + torch.ones(4).cuda()  # raises
    """,
    "a return on one side only": """
        def _make(flag):
            if flag:
                return torch.ones(4).cuda()

        def f():
            _make(True) + torch.ones(4)  # raises
    """,
    "a condition decided by the argument": """
        def _make(on_gpu):
            x = torch.ones(4)
            if on_gpu:
                x = x.cuda()
            return x

        def f():
            _make(False) + torch.ones(4)
            _make(True) + torch.ones(4)  # raises
            _make(True) + torch.ones(4).cuda()
    """,
    "a module moved by a helper": """
        def _prepare(net, device):
            net.to(device)
            net.eval()

        def f(device):
            model = nn.Linear(4, 4)
            _prepare(model, device)
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4).to(device))
    """,
    "a tensor is not moved by a helper": """
        def _prepare(value, device):
            value = value.to(device)

        def f(device):
            x = torch.ones(4)
            _prepare(x, device)
            x + torch.ones(4)
    """,
    "a module made by a helper": """
        def _build(device):
            return nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(device)

        def f(device):
            _build(device)(torch.ones(4, 4))  # raises
            _build(device)(torch.ones(4, 4, device=device))
    """,
    "helpers of helpers": """
        def _one(value):
            return _two(value)

        def _two(value):
            return value.cuda()

        def f():
            _one(torch.ones(4)) + torch.ones(4)  # raises
    """,
    "recursion": """
        def _again(value, n):
            if n == 0:
                return value
            return _again(value.cuda(), n - 1)

        def f():
            _again(torch.ones(4), 3) + torch.ones(4).cuda()
            _again(torch.ones(4), 0) + torch.ones(4)
    """,
    "mutual recursion": """
        def _even(value, n):
            return value if n == 0 else _odd(value.cuda(), n - 1)

        def _odd(value, n):
            return value if n == 0 else _even(value.cpu(), n - 1)

        def f():
            _even(torch.ones(4), 2) + torch.ones(4)
    """,
    "a closure reads what is around it": """
        def f(device):
            y = torch.ones(4)

            def add(value):
                return value.to(device) + y  # raises

            add(torch.ones(4))
    """,
    "a closure is called with what holds then": """
        def f(device):
            x = torch.ones(4)

            def get():
                return x

            get() + torch.ones(4)
            x = x.to(device)
            get() + torch.ones(4)  # raises
            get() + torch.ones(4).to(device)
    """,
    "nonlocal": """
        def f(device):
            x = torch.ones(4)

            def move():
                nonlocal x
                x = x.to(device)

            move()
            x + torch.ones(4).to(device)
    """,
    "a nested function's own names": """
        def f(device):
            x = torch.ones(4)

            def other():
                x = torch.ones(4).to(device)
                return x

            other()
            x + torch.ones(4)
    """,
    "a generator's result is no tensor": """
        def _parts(value):
            for part in value:
                yield part.cuda()

        def f():
            for part in _parts(torch.ones(4, 4)):
                part + torch.ones(4).cuda()
    """,
    "an argument's own default": """
        def _scale(value, factor=torch.tensor([2.0])):
            return value * factor  # raises

        def f(x: torch.Tensor):
            _scale(x)
            _scale(x.cpu())
    """,
    "a decorated function": """
        import functools

        def _moving(function):
            @functools.wraps(function)
            def inner(*args):
                return function(*args).cuda()
            return inner

        @_moving
        def _make():
            return torch.ones(4)

        def f():
            _make() + torch.ones(4).cuda()
    """,
    "without gradients": """
        @torch.no_grad()
        def _make():
            return torch.ones(4).cuda()

        def f():
            _make() + torch.ones(4)  # raises
    """,
    "a function as an argument": """
        def _apply(function, value):
            return function(value)

        def _move(value):
            return value.cuda()

        def f():
            _apply(_move, torch.ones(4)) + torch.ones(4).cuda()
    """,
    "moved where the other is": """
        def f(x: torch.Tensor, y: torch.Tensor):
            y = y.cpu()
            x + y  # raises, unseen
            x + y.to(x)
            x + y.to(x.device)
            x + y.type_as(x)
    """,
    "two arguments live together, as far as is known": """
        def f(x: torch.Tensor, y: torch.Tensor, device):
            x + y
            x.to(device) + y
            x.to(device) + y.to(device)
    """,
    "a method": """
        class Maker:
            def __init__(self, device):
                self.device = device

            def make(self):
                return torch.ones(4, device=self.device)

            def use(self):
                self.make() + torch.ones(4)  # raises
                self.make() + torch.ones(4).to(self.device)
                self.make() + self.make()

        def f(device):
            Maker(device).use()
    """,
    "a static method": """
        class Maker:
            @staticmethod
            def make(device):
                return torch.ones(4, device=device)

        def f(device):
            Maker.make(device) + torch.ones(4)  # raises
            Maker().make(device) + torch.ones(4)  # raises
            Maker.make("cpu") + torch.ones(4)
    """,
    "a class method": """
        class Maker:
            @classmethod
            def make(cls, device):
                return torch.ones(4, device=device)

        def f(device):
            Maker.make(device) + torch.ones(4)  # raises, unseen
            Maker.make("cpu") + torch.ones(4)
    """,
}
GAPS = {}


@pytest.mark.parametrize("code", cases(SCRIPTS, GAPS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


@pytest.mark.parametrize("fan", [2, 4])
def test_calls_of_calls_take_no_exponential_time(fan: int) -> None:
    def analysis(depth: int) -> Work:
        lines = ["", "def f0(x, device):", "    return x.to(device) + torch.ones(4)"]
        for level in range(1, depth):
            calls = " + ".join([f"f{level - 1}(x, device)"] * fan)
            lines += [f"def f{level}(x, device):", f"    return {calls}"]
        return analysis_of("\n".join(lines))

    assert growth(analysis, 6, 12) < QUADRATIC


def test_a_long_file_takes_time_in_proportion() -> None:
    def analysis(functions: int) -> Work:
        body = "\ndef f{n}(x, device):\n    y = torch.ones(4)\n    y = y.to(device)\n    return x + y\n"
        return analysis_of("".join(body.format(n=n) for n in range(functions)))

    assert growth(analysis, 50, 400) < 1.1


def analysis_of(code: str) -> Work:
    text = script(code)
    tree = ast.parse(text)
    return lambda: list(analyze(tree, text))


def test_where_an_unknown_argument_is_nobody_knows_after_the_call_either() -> None:
    """Seen in mamba: two results of one function are together only if what it was given is."""
    text = (
        "import torch\nfrom stores import *\n\n"
        "def rise(x: torch.Tensor):\n    return x[:, None] - x[None], [x.sin()]\n\n"
        "def f():\n    up, (wave,) = rise(kept)\n    up + torch.ones(3)\n"
        "    wave + torch.ones(3)\n"
    )
    assert check_source(text, config=Config(rule_layers=(RuleLayer(("ALL",)),))) == []


def test_a_generator_may_come_in_a_dict() -> None:
    """Seen in TabPFN."""
    text = "import torch\n\nhow = {'device': 'cuda', 'generator': torch.Generator()}\nx = torch.randn(4, **how)\n"
    assert [found.code for found in check_source(text)] == []


def test_a_method_that_no_tensor_has_may_wait_for_the_device() -> None:
    """Seen in index-tts: a network that generates reads each token."""
    text = (
        "import time\nimport torch\n\nclass Voice:\n    def __init__(self, net, device):\n"
        "        self.net = net.to(device)\n\n    def speak(self, x: torch.Tensor):\n        x = x.cuda()\n"
        "        begun = time.perf_counter()\n        y = (1 - torch.sum(x)) * x\n        {}\n"
        "        return time.perf_counter() - begun, y\n"
    )
    assert [found.code for found in check_source(text.format("y.sin()"))] == ["DVL402"]
    assert [found.code for found in check_source(text.format("y = self.net.generate(y)"))] == []
