"""Changes of device code that broke real projects when tools made them: `--fix --unsafe-fixes` must not.

Each piece is fixed under all rules, and what it was and what it became is run, on the CPU and with arguments elsewhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from devlint.check.analysis import Analyzer, check_source
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.rules.code.edits import as_written
from devlint.source.tree import Source

torch = pytest.importorskip("torch", reason="the fixed code is run")

EVERY_RULE = Config(rule_layers=(RuleLayer(("ALL",)),))
HEAD = "import torch\nfrom torch import nn\n\n\n"


def fixed(code: str) -> str:
    result = ApplyFixes(True).rewrite((HEAD + code).encode(), Analyzer("file.py", EVERY_RULE))
    assert result.unfixed is None
    return result.data.decode().removeprefix(HEAD)


def results(code: str, device: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(HEAD + code, "file.py", "exec"), space)
    x = torch.ones(3, device=device)
    return space["f"](x, torch.device(device))


def assert_it_works(code: str) -> None:
    """On the CPU as before, and elsewhere too."""
    torch.testing.assert_close(results(code, "cpu"), results(fixed(code), "cpu"))
    assert results(fixed(code), "meta").device.type == "meta"


@pytest.mark.parametrize(
    "made",
    [
        "torch.FloatTensor([1, 2, 3])",
        "torch.LongTensor([1, 2, 3])",
        "torch.Tensor([1, 2, 3])",
        "torch.FloatTensor(range(3))",
        "torch.FloatTensor(values)",
        "torch.ByteTensor([1, 0, 1]).bool()",
        "torch.HalfTensor([1, 2, 3]).unsqueeze(0)",
        "(torch.FloatTensor([1, 2, 3]) + torch.ones(3))",
        "torch.from_numpy(torch.ones(3).numpy())",
    ],
)
@pytest.mark.parametrize("move", ["{}.to(device)", "{}.to(x.device)", "{}.to(device=device, non_blocking=True)"])
def test_constructors_by_type_take_no_device(made: str, move: str) -> None:
    code = f"def f(x, device):\n    values = [1.0, 2.0, 3.0]\n    y = {move.format(made)}\n    return x * y\n"
    assert "Tensor(" not in fixed(code) or "device=device)" not in fixed(code).partition("Tensor(")[2][:30]
    assert_it_works(code)


@pytest.mark.parametrize("length", ["len(x)", "3"])
def test_constructors_by_size_are_as_long_as_before(length: str) -> None:
    code = f"def f(x, device):\n    y = torch.FloatTensor({length}).to(device)\n    return x * y.zero_()\n"
    assert_it_works(code)


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(3, generator=g).to(device)",
        "torch.rand(3, generator=g).to(device) + torch.randperm(3, generator=g).to(device)",
        "torch.randn(3, generator=g) .to(x.device)",
        "torch.empty(3).normal_(generator=g).to(device)",
        "torch.empty(3).uniform_(0, 1, generator=g).to(device)",
        "torch.normal(0.0, 1.0, (3,), generator=g).to(device)",
        "torch.bernoulli(torch.ones(3), generator=g).to(device)",
        "torch.multinomial(torch.ones(3), 3, generator=g).to(device)",
    ],
)
def test_a_generator_of_the_cpu_draws_on_the_cpu(draw: str) -> None:
    code = f"def f(x, device):\n    g = torch.Generator()\n    g.manual_seed(0)\n    return x + {draw}\n"
    assert_it_works(code)


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(3, generator=g)",
        "torch.bernoulli(torch.full((3,), 0.5), generator=g)",
        "torch.full((3,), 0.5).bernoulli(generator=g)",
        "torch.multinomial(torch.ones(3), 3, generator=g) * torch.ones(3)",
    ],
)
def test_a_generator_keeps_a_creation_where_it_is(draw: str) -> None:
    code = (
        "class M(nn.Module):\n    def forward(self, x):\n        g = torch.Generator()\n"
        f"        y = {draw}\n        return x.clamp(0, 1) + y\n"
    )
    assert [finding.code for finding in check_source(HEAD + code)] == ["DVL103"]
    assert fixed(code) == code


TOGETHER = {
    "in one expression": "return x.clamp(0, 1) + a * b\n",
    "in two": "c = a * b\n        return x.clamp(0, 1) + c\n",
    "through a third": (
        "c = (a + 1) * b.clamp(0, 1)\n        d = c - torch.full((3,), 2.0)\n        return x.clamp(0, 1) * d\n"
    ),
    "twice": "return x.clamp(0, 1) + a * b + a * a\n",
}
MODULE = (
    "class M(nn.Module):\n    def forward(self, x):\n        a = {}\n        b = {}\n        {}\n"
    "\ndef f(x, device):\n    return M()(x)\n"
)


@pytest.mark.parametrize("name", TOGETHER)
def test_operands_move_together(name: str) -> None:
    code = MODULE.format("torch.arange(3)", "torch.ones(3)", TOGETHER[name])
    (finding,) = check_source(HEAD + code)
    assert finding.fix is not None
    assert len(finding.fix.edits) >= 2, "one fix moves them all, or none"
    assert_it_works(code)


@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.parametrize("stays", ["torch.FloatTensor([1, 2, 3])", "torch.rand(3, generator=torch.Generator())"])
@pytest.mark.parametrize("first", [True, False])
def test_where_one_operand_has_to_stay_none_moves(name: str, stays: str, first: bool) -> None:
    pair = (stays, "torch.ones(3)") if first else ("torch.ones(3)", stays)
    code = MODULE.format(*pair, TOGETHER[name])
    assert "DVL103" in [finding.code for finding in check_source(HEAD + code)]
    assert fixed(code) == code


@pytest.mark.parametrize(
    "body",
    [
        "w = torch.zeros(3)\n    t = w + torch.ones(3)\n    w = w.to(device)\n    return x * w + t.to(device)\n",
        "w = torch.zeros(3)\n    w = w + torch.FloatTensor([1, 2, 3])\n    return x * w.to(device)\n",
        "return x * (torch.zeros(3) + torch.FloatTensor([1, 2, 3])).to(device)\n",
        "w = torch.cat([torch.zeros(1), torch.FloatTensor([1, 2])]).to(device)\n    return x * w\n",
        "w = torch.ones(3)\n    w[torch.tensor([0, 1])] = torch.zeros(2)\n    return x * w.to(device)\n",
        "w = torch.ones(3)\n    w = w.to(device) if len(w) > 2 else w\n    return x * w\n",
    ],
)
def test_what_meets_on_the_cpu_goes_on_meeting_there(body: str) -> None:
    assert_it_works(f"def f(x, device):\n    {body}")


@pytest.mark.parametrize(
    "body",
    [
        "if mask is None:\n            mask = torch.ones(3)\n        return x * mask\n",
        "if mask is None:\n            mask = torch.ones(3)\n        return torch.cat([mask, mask]) + x.sum()\n",
        "mask = mask if mask is not None else torch.ones(3)\n        return torch.cat([mask, mask])\n",
        "total = torch.zeros(3)\n        for p in x.unbind():\n            total = total + p\n        return total\n",
    ],
)
def test_no_device_is_asked_of_what_is_not_there_yet(body: str) -> None:
    """Of a name that is None at the creation, or has no value there."""
    code = "class M(nn.Module):\n    def forward(self, x, mask=None):\n        " + body
    code += "\ndef f(x, device):\n    return M()(x)\n"
    assert fixed(code) == code or "device=x.device" in fixed(code)
    torch.testing.assert_close(results(code, "cpu"), results(fixed(code), "cpu"))


def test_what_a_method_is_given_has_its_name_in_there() -> None:
    """The caller's name for it says nothing in the method."""
    code = (
        "class M(nn.Module):\n    def forward(self, labels):\n        return self.shift(labels)\n\n"
        "    def shift(self, ids):\n        return torch.cat([torch.zeros(1), ids])\n"
        "\ndef f(x, device):\n    return M()(x)\n"
    )
    assert "labels.device)" not in fixed(code)
    torch.testing.assert_close(results(code, "cpu"), results(fixed(code), "cpu"))


def test_complex_numbers_are_no_buffer() -> None:
    """`Module.to(dtype)` would make them real."""
    code = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.turn = torch.polar(torch.ones(3), torch.ones(3))\n\n"
        "    def forward(self, x):\n        return x * self.turn.to(x.device)\n"
        "\ndef f(x, device):\n    return M().to(torch.float64)(x).abs()\n"
    )
    assert "DVL104" not in [finding.code for finding in check_source(HEAD + code)]
    assert "DVL104" in [finding.code for finding in check_source(HEAD + code, "file.py", EVERY_RULE)]
    assert_it_works(code)


@pytest.mark.parametrize(
    ("value", "real"),
    [
        ("torch.zeros(3)", True),
        ("torch.full((3,), 0.5).unsqueeze(0)", True),
        ("torch.tensor([1.0, -2.0, 3.0], dtype=torch.float32)", True),
        ("torch.tril(torch.ones(3, 3)).repeat(1, 1)", True),
        ("torch.ones(3, dtype=torch.complex64)", False),
        ("torch.full((3,), 1j)", False),
        ("torch.tensor([1.0, 2j, 3.0])", False),
        ("torch.view_as_complex(torch.ones(3, 2))", False),
        ("torch.fft.fft(torch.ones(3))", False),
        ("torch.ones(3, 2).view(torch.complex64).squeeze(1)", False),
        ("made(3)", False),
    ],
)
def test_real_numbers_are_a_buffer_in_a_file_with_complex_ones(value: str, real: bool) -> None:
    code = (
        "def made(n):\n    return torch.polar(torch.ones(n), torch.ones(n))\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.turn = {value}\n\n"
        "    def forward(self, x):\n        return x * self.turn.to(x.device)\n"
        f"\ndef f(x, device):\n    return M(){'' if real else '.to(torch.float64)'}(x).abs()\n"
    )
    (finding,) = [finding for finding in check_source(HEAD + code, "file.py", EVERY_RULE) if finding.code == "DVL104"]
    assert ("register_buffer" in str(finding.help)) is real
    assert ("register_buffer" in fixed(code)) is real
    assert_it_works(code)


def test_a_copy_out_of_loops_goes_where_all_of_them_go() -> None:
    code = (
        "def f(x, device):\n    scale = torch.full((3,), 2.0)\n    y = x\n"
        "    for _ in range(2):\n        x = x * scale.to(y.device)\n    y = torch.ones(3)\n"
        "    for _ in range(2):\n        y = y * scale.to(y.device)\n    return x\n"
    )
    assert "scale.to(y.device)" in fixed(code)
    assert_it_works(code)


def test_a_tensor_that_is_moved_next_is_no_device_at_hand() -> None:
    code = (
        "def g(a, b):\n    print(b.device)\n    a = a.cuda()\n    b = b.cuda()\n    return a * b\n"
        "\ndef f(x, device):\n    return x\n"
    )
    assert "a.to(b.device)" not in fixed(code)


def test_what_takes_something_from_the_host_is_created_there() -> None:
    code = (
        "def f(x, device):\n    at = x.argmax().view(1).cpu()\n"
        "    y = torch.zeros(x.shape).scatter_(0, at, 0.5)\n    return x + y\n"
    )
    found = check_source(HEAD + code, "file.py", EVERY_RULE)
    assert [finding.fix for finding in found if finding.code == "DVL103"] == [None]
    along = code.replace("at,", "torch.zeros(3, dtype=torch.long),")
    assert along.count("device=x.device") == 0
    assert fixed(along).count("device=x.device") == 2


def test_what_may_be_of_either_argument_says_itself_where_it_is() -> None:
    code = (
        "def f(x, device, mask=None, chances=None):\n    if mask is None:\n"
        "        mask = torch.bernoulli(chances).bool()\n"
        "    chosen = torch.bernoulli(torch.full(x.shape, 0.8)).bool() & mask\n    return x[chosen]\n"
    )
    assert "torch.full(x.shape, 0.8, device=mask.device)" in fixed(code)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_device_is_written_with_the_quotes_of_the_file(quote: str) -> None:
    source = Source.parse(f"mask = torch.rand(parts[{quote}a{quote}].shape)")
    assert isinstance(source, Source)
    assert as_written(source, "parts['a'].device") == f"parts[{quote}a{quote}].device"
    assert as_written(source, "parts['b'].device") == "parts['b'].device"


@pytest.mark.parametrize(
    ("body", "lets_go"),
    [
        ("with torch.no_grad():\n            return self.v(x).numpy()", False),
        ("with torch.no_grad():\n            y = self.v(x)\n        return y.numpy()", False),
        ("y = self.v(x)\n        with torch.no_grad():\n            return y.numpy()", True),
        ("return self.v(x).numpy()", True),
    ],
)
def test_what_has_no_graph_is_not_detached(body: str, lets_go: bool) -> None:
    code = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.v = nn.Linear(3, 3)\n\n"
        f"    def act(self, x):\n        {body}\n"
    )
    assert ".cpu().numpy()" in fixed(code)
    assert (".detach()" in fixed(code)) is lets_go


@pytest.mark.parametrize(
    ("use", "bare"),
    [("f({})", True), ("f(1, device={}, k=2)", True), ("f(1, {})", False), ("f({}.type)", False), ("f(d=={})", False)],
)
def test_a_choice_is_in_brackets_only_where_it_needs_them(use: str, bare: bool) -> None:
    written = use.format('torch.device("cuda" if torch.cuda.is_available() else "cpu")')
    choice = 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
    assert fixed(f"{written}\n").strip() == use.format(choice if bare else f"({choice})")
