"""What the fixes of DVL203 and DVL206 make of the code, and that the code still does the same."""

from __future__ import annotations

import textwrap

import pytest
import torch

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding
from tests.test_fixtures import apply


def check(text: str, code: str = "DVL203") -> list[Finding]:
    return check_source(text, config=Config(rule_layers=(RuleLayer(select=(code,)),)))


def function(line: str) -> str:
    return f"import torch\n\ndef f(device, n, x: torch.Tensor):\n    return {line}\n"


def fixed(text: str, code: str = "DVL203") -> tuple[str, Finding]:
    (finding,) = check(text, code)
    assert finding.fix is not None
    return apply(text, finding.fix.edits), finding


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("torch.zeros(n).expand(2, n).to(device)", False),
        ("torch.zeros(n, n)[:, ::2].to(device)", False),
        ("torch.zeros(n, n)[:, 1:].to(device)", False),
        ("torch.zeros(n, n)[::2].to(device)", False),
        ("torch.zeros(n, n)[1:].to(device)", True),
        ("torch.zeros(n, n)[None].to(device)", True),
        ("torch.zeros(n, n).t().to(device)", True),
    ],
)
def test_a_view_that_the_copy_laid_out_anew_is_not_safe(line: str, same: bool) -> None:
    after, finding = fixed(function(line))
    assert finding.fix is not None
    assert finding.fix.applicability is (Applicability.SAFE if same else Applicability.UNSAFE)
    strides = []
    for text in (function(line), after):
        names: dict[str, object] = {}
        exec(text, names)
        strides.append(names["f"](torch.device("meta"), 4, None).stride())  # type: ignore[operator]  # the function f above
    assert (strides[0] == strides[1]) is same


@pytest.mark.parametrize(
    "line",
    [
        "torch.zeros(n, 2).to(device)",
        "torch.ones(n, dtype=torch.int64).to(device=device)",
        "torch.eye(n).to(x)",
        "torch.zeros((n, 2)).type_as(x)",
        "torch.full((n,), 1.5).to(device, non_blocking=True)",
        "torch.arange(len(x)).to(device)",
        "torch.arange(0, x.size(0) * 2).view(1, -1).float().to(x.device)",
        "torch.zeros(n).fill_(3).unsqueeze(0).to(device)",
        "(torch.zeros(n, 2)).to(device)",
        "torch.zeros(n, 2).to(x.device, x.dtype)",
    ],
)
@pytest.mark.parametrize("place", ["cpu", "meta"])
def test_a_safe_fix_makes_the_same_tensor_in_the_same_place(line: str, place: str) -> None:
    after, finding = fixed(function(line))
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    x = torch.ones(3, 4, dtype=torch.float64, device=place)
    results = []
    for text in (function(line), after):
        names: dict[str, object] = {}
        exec(text, names)
        results.append(names["f"](torch.device(place), 3, x))  # type: ignore[operator]  # the function f above
    first, second = results
    assert (first.shape, first.dtype, first.device) == (second.shape, second.dtype, second.device)
    assert place == "meta" or torch.equal(first, second)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.rand(n).to(device)", "torch.rand(n, device=device)"),
        ("(2 * torch.rand(n) - 1).to(device)", "(2 * torch.rand(n, device=device) - 1)"),
        ("torch.linspace(0, 1, n).to(device)", "torch.linspace(0, 1, n, device=device)"),
        ("torch.arange(n).to(device)", "torch.arange(n, device=device)"),
        ("torch.Tensor(3, 4).to(device)", "torch.empty(3, 4, device=device)"),
        ("torch.rand(n).cuda()", "torch.rand(n, device=device)"),
    ],
)
def test_a_fix_that_may_change_values_is_unsafe(line: str, after: str) -> None:
    text, finding = fixed(function(line))
    assert text == function(after)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.arange(n).to(x)", "torch.arange(n, device=x.device).to(x.dtype)"),
        ("torch.arange(n).view(-1, 1).type_as(x)", "torch.arange(n, device=x.device).view(-1, 1).to(x.dtype)"),
        ("torch.arange(n).to(x.device, x.dtype)", "torch.arange(n, device=x.device).to(x.dtype)"),
        ("torch.arange(n).to(device, torch.float64)", "torch.arange(n, dtype=torch.float64, device=device)"),
        ("torch.full((n,), 2).to(x)", "torch.full((n,), 2, device=x.device).to(x.dtype)"),
        ("torch.zeros(n).half().to(device, torch.float64)", "torch.zeros(n, device=device).half().to(torch.float64)"),
    ],
)
def test_what_cannot_be_made_in_any_dtype_is_converted_where_it_was_moved(line: str, after: str) -> None:
    text, _ = fixed(function(line))
    assert text == function(after)
    results = []
    for code in (function(line), text):
        names: dict[str, object] = {}
        exec(code, names)
        numbers = torch.ones(3, 4, dtype=torch.complex64)
        results.append(names["f"](torch.device("cpu"), 3, numbers))  # type: ignore[operator]  # the function f above
    assert results[0].dtype == results[1].dtype
    assert torch.equal(results[0], results[1])


@pytest.mark.parametrize(
    "line",
    [
        "torch.cat([torch.zeros(n), torch.ones(n)]).to(device)",  # one operand would stay behind
        "torch.zeros(n).to(device, copy=True)",
        "torch.zeros(n).to(device=device, memory_format=torch.contiguous_format)",
        "torch.zeros(n)  # why\n    .to(device)",
    ],
)
def test_there_is_no_fix_where_more_would_have_to_change(line: str) -> None:
    (finding,) = check(function(f"({line})" if "\n" in line else line))
    assert finding.fix is None


def test_the_device_has_to_be_known_where_the_tensor_is_created() -> None:
    text = textwrap.dedent(
        """
        import torch

        def f(n, config):
            noise = torch.zeros(n)
            device = config.device
            return noise.to(device)
        """
    )
    (finding,) = check(text)
    assert finding.fix is None


def test_a_move_that_is_a_statement_goes_with_its_line() -> None:
    text = "import torch\n\ndef f(n, device):\n    x = torch.zeros(n)\n    x = x.to(device)\n    return x\n"
    after, _ = fixed(text)
    assert after == "import torch\n\ndef f(n, device):\n    x = torch.zeros(n, device=device)\n    return x\n"


def test_pinning_leaves_a_chain_as_it_stands() -> None:
    chain = "(\n        x.flatten()\n        .pin_memory()\n        .to(device)\n    )"
    after, finding = fixed(function(chain), "DVL206")
    assert after == function(chain.replace("        .pin_memory()\n", ""))
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("torch.zeros(n).to(device)", "device"),
        ("torch.zeros(n).float().to(x.device)", "x.device"),
        ("torch.zeros(n).to(x)", "x.device, dtype=x.dtype"),
        ("torch.zeros(n).to(x, non_blocking=True)", "x.device, dtype=x.dtype"),
        ("torch.zeros(n).to(device, torch.half)", "..."),
        ("torch.zeros(n).cuda()", "device"),
    ],
)
def test_the_advice_names_the_device_that_the_move_names(line: str, device: str) -> None:
    (finding,) = check(function(line))
    assert finding.help == f"create it there: `torch.zeros(..., device={device})`"


@pytest.mark.parametrize(
    ("line", "beside"),
    [
        ("torch.cat([torch.ones(n), torch.zeros(n)]).to(device)", True),
        ("(torch.ones(n) + torch.arange(n)).to(device)", True),
        ("torch.cat([torch.ones(n)]).to(device)", False),
        ("torch.stack([torch.ones(n)] * 2).to(device)", False),
    ],
)
def test_the_advice_thinks_of_what_is_made_beside(line: str, beside: bool) -> None:
    (finding,) = check(function(line))
    assert finding.fix is None
    assert finding.help is not None
    assert finding.help.endswith(", and what is made beside it too") is beside


def test_the_advice_names_no_device_that_may_come_later() -> None:
    (finding,) = check("import torch\n\ndef f(n, args):\n    made = torch.zeros(n)\n    return made.to(args.device)\n")
    assert finding.help == "create it there: `torch.zeros(..., device=...)`"


@pytest.mark.parametrize(("kind", "dtype"), [("Byte", "dtype=torch.uint8, "), ("Float", "")])
def test_the_advice_for_a_constructor_by_type_keeps_the_type(kind: str, dtype: str) -> None:
    (finding,) = check(f"import torch\n\ndef f(n, device):\n    return torch.{kind}Tensor(*n, 3).to(device)\n")
    told = f"{dtype}device=..."
    assert finding.help == (
        f"`torch.{kind}Tensor` takes no accelerator: `torch.empty(..., {told})` does, "
        f"or `torch.tensor(..., {told})` for values"
    )


@pytest.mark.parametrize(
    ("uses", "device"), [("x[:, made.long()]", "x.device"), ("[y[:, made.long()] for y in x]", "...")]
)
def test_the_advice_names_no_device_that_an_index_meets_later(uses: str, device: str) -> None:
    """Seen in fairseq: the targets of a loss, one by one."""
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        f"    def forward(self, x):\n        made = torch.arange(3).float()\n        return {uses}\n"
    )
    (finding,) = check(text)
    assert finding.help == f"create it there: `torch.arange(..., device={device})`"


def test_a_device_is_called_what_the_code_calls_it_there() -> None:
    (finding,) = check(
        "import torch\n\nclass Grid:\n    def __init__(self, steps, device):\n"
        "        self.steps = torch.ones(steps, device=device)\n\n    def made(self, n):\n"
        "        d = self.steps.device\n        return torch.arange(n).to(d)\n"
    )
    assert finding.message.endswith("to be copied to `d`")
    assert finding.help == "create it there: `torch.arange(..., device=d)`"


@pytest.mark.parametrize("parameter", ["device", "device=choose()", "where=choose()", "device=None"])
def test_what_a_module_is_told_about_devices_is_no_tensor(parameter: str) -> None:
    text = f"""
    import torch
    from torch import nn

    def choose(): return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    class Simple(nn.Module):
        def forward(self, {parameter}):
            return torch.ones(1).to({parameter.partition("=")[0]})
    """
    for finding in check(textwrap.dedent(text)):
        assert finding.fix is not None
        assert "device.device" not in apply(text, finding.fix.edits)
        assert "the device of" not in finding.message


def test_what_the_compiler_makes_on_the_device_is_told_to_those_who_ask() -> None:
    text = (
        "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def f(self, n, x):\n"
        "        return torch.zeros(n).to(x.device)\n"
    )
    assert [finding.code for finding in check_source(text)] == ["DVL203"]
    compiled = text.replace("def f", "@torch.compile(dynamic=True)\n    def f")
    assert check_source(compiled) == []
    assert [finding.code for finding in check(compiled)] == ["DVL203"]
    for method, told in (("f", []), ("forward", ["DVL203"])):
        evaluated = text.replace("def f", f"@torch.no_grad()\n    def {method}")
        assert [finding.code for finding in check_source(evaluated)] == told
        assert [finding.code for finding in check(evaluated)] == ["DVL203"]


def test_a_literal_gives_way_to_the_device_at_hand() -> None:
    after, finding = fixed(function('torch.zeros(n).to("cuda")'))
    assert after == function("torch.zeros(n, device=device)")
    assert finding.help == "create it there: `torch.zeros(..., device=device)`"
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    # `"cpu"` says what it says
    after, _ = fixed(function("torch.zeros(n).to(device)").replace("device, n, x: torch.Tensor", "n, device"))
    assert after.endswith("torch.zeros(n, device=device)\n")


def test_what_is_computed_with_before_the_move_keeps_its_type_up_to_there() -> None:
    """Seen in boltz: of a mask of truth values, `1 - mask` raises."""
    text = (
        "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def forward(self, mask):\n"
        "        return mask * {}\n"
    )
    (finding,) = check(text.format("(1 - torch.eye(len(mask))).to(mask)"))
    assert finding.help == "create it there: `torch.eye(..., device=mask.device)`"
    (finding,) = check(text.format("torch.eye(len(mask)).to(mask)"))
    assert finding.help == "create it there: `torch.eye(..., device=mask.device, dtype=mask.dtype)`"


@pytest.mark.parametrize("size", ["1", "()", "[]", "torch.Size([])", "torch.Size()", "(1, 1)"])
def test_one_number_is_for_those_who_ask(size: str) -> None:
    """Seen in CellBender: the hyperparameters of a model, each times a one without dimensions."""
    text = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
    text += "        return x + {}.to(x.device)\n"
    assert [one.code for one in check_source(text.format("torch.ones(30)"))] == ["DVL203"]
    assert check_source(text.format(f"torch.ones({size})")) == []
    assert [one.code for one in check(text.format(f"torch.ones({size})"))] == ["DVL203"]


@pytest.mark.parametrize(
    ("made", "told_to_all"),
    [
        ("torch.zeros(1)", False),
        ("torch.ones(2, 2)", False),
        ("torch.full((2,), 7.0)", False),
        ("torch.ones(())", False),
        ("torch.ones(n)", True),
        ("torch.zeros(1, n)", True),
        ("torch.zeros(2, 4)", True),
        ("torch.full((4, 4), 1)", True),
        ("torch.arange(0, 8)", True),
        ("torch.linspace(0, 1, 64)", True),
    ],
)
def test_a_copy_of_a_few_numbers_is_for_those_who_select_the_rule(made: str, told_to_all: bool) -> None:
    text = f"""import torch

class Net(torch.nn.Module):
    def forward(self, x, n):
        return x * {made}.to(x.device)
"""
    assert [found.code for found in check_source(text)] == ["DVL203"] * told_to_all
    assert [found.code for found in check(text) if found.code == "DVL203"] == ["DVL203"]
