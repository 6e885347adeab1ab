"""What DVL102 says and writes, where a fixture cannot show it."""

from __future__ import annotations

import ast

import pytest

from devlint import device
from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability
from devlint.rules.base import Report
from devlint.rules.placement.discarded_move import DiscardedMove
from devlint.sites.base import Operand, Scope, Step
from devlint.sites.transfers import Transfer
from devlint.source.tree import Source

DEVICE = device.symbol("f:device", "device")
ASKING = Config(rule_layers=(RuleLayer(("DVL102",)),))


def judged(
    text: str, target: device.Device | None = DEVICE, known: device.Device = device.CPU, **scope: object
) -> list[Report]:
    """The verdict on the last expression statement of a file."""
    source = Source.parse(text)
    assert isinstance(source, Source)
    statement = [node for node in ast.walk(source.tree) if isinstance(node, ast.Expr)][-1]
    call = statement.value
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    story = (Step(source.tree.body[0], "created on the CPU here"),)
    value = Operand(receiver, ast.unparse(receiver), known, certain=True, story=story)
    site = Transfer(call, Scope(**scope), call.func.attr, "tensor", value, target, discarded=True)  # type: ignore[arg-type]  # by name
    return list(DiscardedMove(source).judge(site))


def fixed(text: str, report: Report) -> str:
    assert report.fix is not None
    assert report.fix.applicability is Applicability.UNSAFE
    (edit,) = report.fix.edits
    lines = text.split("\n")
    first, last = lines[edit.span.row - 1], lines[edit.span.end_row - 1]
    before = "\n".join([*lines[: edit.span.row - 1], first[: edit.span.column - 1]])
    text = before + edit.content + "\n".join([last[edit.span.end_column - 1 :], *lines[edit.span.end_row :]])
    ast.parse(text)
    return text


def test_it_says_what_happened_and_tells_the_story() -> None:
    (report,) = judged("x = torch.ones(3)\nx.to(device)\n")
    assert report.message == "`x.to(device)` returns the moved tensor and leaves `x` where it is: the result is dropped"
    assert report.help == "assign the result: `x = x.to(device)`; or delete the line, if all works as it is"
    assert [step.label for step in report.steps] == ["created on the CPU here"]
    (report,) = judged("x = 1\nx.to(torch.float16)\n", target=None)
    assert "converted tensor and leaves `x` as it is" in report.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.to(device)\n", "x = x.to(device)\n"),
        ("a.b.to(device)\n", "a.b = a.b.to(device)\n"),
        ("if a: x.to(device)\n", "if a: x = x.to(device)\n"),
        ("a = 1; x.cuda(); b = 2\n", "a = 1; x = x.cuda(); b = 2\n"),
        (
            "def f():\n    x.to(  # é\n        device,\n    )  # kept\n    return x\n",
            "def f():\n    x = x.to(  # é\n        device,\n    )  # kept\n    return x\n",
        ),
        ("ä.to( device )  # ü\n", "ä = ä.to( device )  # ü\n"),
        ("for x in xs:\n\tx.to(device)\n\tf(x)\n", "for x in xs:\n\tx = x.to(device)\n\tf(x)\n"),
    ],
)
def test_the_result_is_assigned(before: str, after: str) -> None:
    text = before.replace("f(x)", "y = f(x)")
    (report,) = judged(text)
    assert fixed(text, report) == after.replace("f(x)", "y = f(x)")


@pytest.mark.parametrize(
    "text",
    [
        "(x.to(device))\n",
        "(\n    x.to(device)\n)\n",
        "batch['x'].to(device)\n",
        "model.weight.to(device)\n",
    ],
)
def test_what_cannot_be_assigned_is_left_alone(text: str) -> None:
    (report,) = judged(text)
    assert report.fix is None
    assert report.help


def test_a_parameter_or_buffer_of_its_own_class_is_left_alone() -> None:
    # assigning a tensor to a registered parameter raises
    (report,) = judged("self.scale.to(device)\n", module=True, owner="Net")
    assert report.fix is None
    (report,) = judged("self.scale.to(device)\n", owner="Scheduler")
    assert report.fix is not None


@pytest.mark.parametrize(
    ("loop", "owner"),
    [
        ("for p in net.parameters():\n    p.to(device)\n", "net"),
        ("for name, p in self.net.named_parameters():\n    p.to(device)\n", "self.net"),
        ("for p in net.buffers():\n    p.to(device)\n", "net"),
    ],
)
def test_parameters_are_moved_by_their_module(loop: str, owner: str) -> None:
    (report,) = judged(loop, loop=ast.parse(loop).body[0])
    assert f"`{owner}.to(device)`" in report.help
    assert report.fix is None


@pytest.mark.parametrize("name", ["benchmark_copy", "warmup", "_warm_up", "profile_step", "measure_latency"])
def test_code_that_measures_drops_results_on_purpose(name: str) -> None:
    assert not judged("x.to(device)\n", function=name)


@pytest.mark.parametrize("receiver", ["torch.zeros(1)", "f(x)", "(x + 1)"])
def test_a_tensor_made_for_the_statement_is_dropped_on_purpose(receiver: str) -> None:
    assert not judged(f"{receiver}.to(device)\n")


def test_a_tensor_that_is_there_already_loses_nothing() -> None:
    assert not judged("x.cpu()\n", target=device.CPU)
    assert judged("x.cpu()\n", target=device.CPU, known=DEVICE)


@pytest.mark.parametrize(
    ("loop", "help_"),
    [
        ("for name, p in model.state_dict().items():", "`model.to(torch.half)`"),
        ("for p in self.net.state_dict().values():", "`self.net.to(torch.half)`"),
        ("for p in model.parameters():", "`model.to(torch.half)`"),
    ],
)
def test_another_tensor_under_the_name_of_the_loop_is_no_part_of_the_module(loop: str, help_: str) -> None:
    """Seen in ColossalAI: what a state dict holds is the memory of the parameters."""
    text = f"{loop}\n    p.to(torch.half)\n"
    source = Source.parse(text)
    assert isinstance(source, Source)
    (report,) = judged(text, target=None, loop=source.tree.body[0])
    assert report.help == f"convert the module, which converts its parameters in place: {help_}"
    assert report.fix is None
    (report,) = judged(text, loop=source.tree.body[0])
    assert report.help.startswith("move the module")


@pytest.mark.parametrize("loop", ["for n, p in tensors.items():", "for p in model.parts().values():", "for p in ps:"])
def test_what_is_no_part_of_a_module_can_be_assigned(loop: str) -> None:
    text = f"{loop}\n    p.to(torch.half)\n    f(p)\n"
    source = Source.parse(text)
    assert isinstance(source, Source)
    (report,) = judged(text.removesuffix("    f(p)\n"), target=None, loop=source.tree.body[0])
    assert report.help == "assign the result: `p = p.to(torch.half)`; or delete the line, if all works as it is"


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("to", "move its data, which keeps the parameter or the buffer itself: `param.data = param.data.to(device)`"),
        ("place", "move the module, which moves its parameters in place: `self.to(device)`"),
    ],
)
def test_a_module_that_is_being_moved_is_not_asked_to_move_itself(method: str, told: str) -> None:
    """Seen in torchrec, whose `to` moves what it has one by one."""
    text = f"""
import torch
from torch import nn

class Net(nn.Module):
    def {method}(self, device):
        for param in self.parameters():
            param.to(device)
        return self
"""
    (found,) = [found for found in check_source(text) if found.code == "DVL102"]
    assert found.help == told


def test_a_line_that_would_change_nothing_is_deleted() -> None:
    text = """
import torch

def biased(query):
    bias = torch.zeros(2, 2, dtype=query.dtype)
    bias.to(query.dtype)
    return bias
"""
    (found,) = [found for found in check_source(text, config=ASKING) if found.code == "DVL102"]
    assert found.help == "delete the line: `bias` was made with `dtype=query.dtype`"
    assert found.fix is None


@pytest.mark.parametrize("asked", ["dtype=query.dtype, device=query.device", "query.device, query.dtype"])
def test_a_line_that_repeats_how_each_branch_made_it_is_deleted(asked: str) -> None:
    """Seen in brevitas, as torch tells what its attention does."""
    text = f"""
import torch

def biased(query, mask):
    if mask is None:
        bias = torch.zeros(2, 2, dtype=query.dtype, device=query.device)
    else:
        bias = torch.zeros(3, 3, device=query.device, dtype=query.dtype)
    bias.to({asked})
    return bias
"""
    (found,) = [found for found in check_source(text, config=ASKING) if found.code == "DVL102"]
    assert (str(found.severity), found.fix) == ("info", None)
    assert (found.help or "").startswith("delete the line: `bias` was made with `d")
    # what was changed in between, or made in another way, may have another type
    for before, after in (
        (f"bias.to({asked})", f"query = query.half()\n    bias.to({asked})"),
        ("(3, 3, device=query.device, ", "(3, 3, "),
    ):
        others = [found for found in check_source(text.replace(before, after), config=ASKING) if found.code == "DVL102"]
        assert not any((found.help or "").startswith("delete") for found in others)


def test_a_buffer_moves_with_its_module() -> None:
    text = """
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("steps", torch.arange(width), persistent=False)

    def forward(self, x):
        self.steps.to(x.device)
        return x * self.steps
"""
    (found,) = [found for found in check_source(text) if found.code == "DVL102"]
    assert (str(found.severity), found.fix) == ("info", None)
    assert found.help == "delete the line: `self.steps` is a buffer, which moves with the module"


def test_an_argument_of_a_module_is_for_its_caller_to_move() -> None:
    text = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device

    def forward(self, x: torch.Tensor):
        x.to(self.device)
        return x
"""
    (found,) = [found for found in check_source(text) if found.code == "DVL102"]
    assert found.help.startswith("delete the line where the callers move it")
    assert "`nn.DataParallel`" in found.help
    assert found.fix is None


def test_a_move_that_would_raise_further_down_if_it_was_taken_is_to_be_deleted() -> None:
    code = """
import torch


def f(device):
    x = torch.ones(3)
    x.to(device)
    y = x{held} * 2
    return y.numpy()
"""
    (dropped,) = [one for one in check_source(code.format(held="")) if one.code == "DVL102"]
    assert dropped.help.startswith("delete the line")
    assert "line 9" in dropped.help
    assert dropped.fix is None
    (taken,) = [one for one in check_source(code.format(held=".cpu()")) if one.code == "DVL102"]
    assert taken.help == "assign the result: `x = x.to(device)`; or delete the line, if all works as it is"
    assert taken.fix is not None


LEFT = """\
import torch

class Tracker:
    def __init__(self, path, device):
        self.device = device
        self.net = build(path){moved}

    def __call__(self, rows):
        x = torch.from_numpy(rows)
        x.to(self.device)
        return self.net(x)
"""


@pytest.mark.parametrize(
    ("moved", "severity", "fixes"),
    [("", "warning", 0), (".to(device)", "error", 1), ("\n        self.net.cuda()", "error", 1)],
)
def test_what_goes_to_a_module_that_stays_behind_stays_with_it(moved: str, severity: str, fixes: int) -> None:
    """Seen in DeepLabCut: assigned, the move would make the call of the network raise."""
    (found,) = (one for one in check_source(LEFT.format(moved=moved)) if one.code == "DVL102")
    assert (str(found.severity), int(found.fix is not None)) == (severity, fixes)
    assert found.help.startswith("delete the line, or move `self.net`") is (not fixes)


BESIDE = """\
import torch
from torch import nn

class Denoiser(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device

    def forward(self, x):
        z = self.encode(x)
        mask = torch.zeros_like(z)
        mask[0] = 1
        mask.to(self.device)
        return z * mask
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", []),
        ("self.encode(x)", "torch.ones(3)", ["error"]),
        ("self.encode(x)", "x if self.training else torch.ones(3)", ["error"]),
        ("torch.zeros_like(z)", "torch.zeros_like(z, device='cpu')", ["error"]),
        ("mask[0] = 1", "mask = torch.zeros(3) if self.training else mask", ["error"]),
        (".to(self.device)", ".to(self.device, torch.half)", ["warning"]),
        (".to(self.device)", ".to(device_of(self))", ["error"]),
    ],
    ids=[
        "beside it",
        "of the host",
        "perhaps of the host",
        "asked for the host",
        "made twice",
        "converted",
        "elsewhere",
    ],
)
def test_what_was_made_like_another_is_beside_it(old: str, new: str, told: list[str]) -> None:
    """Seen in causica: a module moves nothing to where it is by moving what is like what it has computed."""
    text = BESIDE.replace(old, new)
    assert [str(one.severity) for one in check_source(text) if one.code == "DVL102"] == told
    if not told:
        (asked,) = (one for one in check_source(text, config=ASKING) if one.code == "DVL102")
        assert str(asked.severity) == "info"
        assert asked.help == "delete the line: `mask` was made like `z`, where that is"
        assert asked.fix is None


UNTOLD = """\
import pytest
import torch

def f(device):
    x = torch.ones(3)
    {before}
        {move}
    {after}
    return x
"""


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("if device:", "y = 1", True),
        # it is moved to see whether that can be done
        ("try:", "except RuntimeError: y = 1", False),
        ("with pytest.raises(RuntimeError):", "y = 1", False),
        ("with torch.no_grad():", "y = 1", True),
    ],
)
def test_a_move_may_be_there_to_see_whether_it_can_be_done(before: str, after: str, told: bool) -> None:
    """Seen in SimpleTuner and tensordict."""
    text = UNTOLD.format(before=before, move="x.to(device)", after=after)
    assert ("DVL102" in {finding.code for finding in check_source(text)}) is told


def test_the_data_of_each_parameter_is_converted_where_each_has_a_type_of_its_own() -> None:
    """Seen in musubi-tuner."""
    loop = "import torch\nfrom torch import nn\n\ndef cast(kept):\n    model = nn.Linear(3, 3)\n"
    loop += "    for name, weight in model.named_parameters():\n{}    return model\n"
    (own,) = check_source(
        loop.format("        chosen = torch.float32 if name in kept else torch.float16\n        weight.to(chosen)\n")
    )
    assert own.help.endswith("`weight.data = weight.data.to(chosen)`")
    (same,) = check_source(loop.format("        weight.to(torch.float16)\n"))
    assert same.help.endswith("`model.to(torch.float16)`")


def test_a_type_that_a_tensor_was_made_with_is_no_conversion_wherever_that_was() -> None:
    """Seen in SEED-Voken: what torch's documentation says of its attention."""
    text = "import torch\n\ndef attention(query: torch.Tensor, is_causal):\n"
    text += "    bias = torch.zeros(3, 3, dtype=query.dtype){}\n    if is_causal:\n        bias.to(query.dtype)\n"
    text += "    return query @ bias\n"
    for moved in ("", ".to(query.device)"):
        assert "DVL102" not in {finding.code for finding in check_source(text.format(moved))}
    assert "DVL102" in {finding.code for finding in check_source(text.format(".to(torch.float16)"))}
