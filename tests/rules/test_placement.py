"""What DVL101, DVL103 and DVL104 say, and which of them says it; where they fire is in the fixtures."""

from __future__ import annotations

import ast

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.device import (
    AVAILABLE,
    CPU,
    IMPLIED_CPU,
    UNKNOWN,
    Device,
    Predicate,
    Role,
    accelerator,
    choice,
    symbol,
)
from devlint.finding import Applicability, Finding, Severity
from devlint.immutable import replace
from devlint.rules.code.edits import shown
from devlint.rules.placement.operands.device_mismatch import DeviceMismatch
from devlint.rules.placement.operands.forward_factory import ForwardFactoryWithoutDevice
from devlint.rules.placement.operands.meetings import beside, meetings, takes_device
from devlint.sites.base import Operand, Scope, Step
from devlint.sites.placement import Forward, Operation, OperationKind
from devlint.source.tree import Source

OF_DEVICES = Config(rule_layers=(RuleLayer(("DVL101", "DVL107")),))

DEVICE = symbol("f:device", "device")
SWITCH = choice(AVAILABLE, accelerator("cuda"), CPU, "device")
INPUT = symbol("f:x", "x", Role.INPUT)
PLACE = symbol("place:Net", "self", Role.PLACE)
PLAIN, AWARE, METHOD = Scope(), Scope(device_aware=True), Scope(module=True)


def source(text: str) -> Source:
    parsed = Source.parse(text)
    assert isinstance(parsed, Source)
    return parsed


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def operand(text: str, device: Device, **more: object) -> Operand:
    base = Operand(expression(text), text, device, many=True, certain=True)
    return replace(base, **more)  # type: ignore[arg-type]  # the fields are checked when the dataclass is made


def fresh(text: str = "mask", factory: str = "torch.ones") -> Operand:
    return operand(text, IMPLIED_CPU, factory=factory, factory_node=expression(f"{factory}(3)"))


def operation(*operands: Operand, scope: Scope = PLAIN) -> Operation:
    return Operation(expression("mask * x"), scope, "*", OperationKind.OPERANDS, operands)


def told(site: Operation | Forward) -> list[tuple[str, Severity]]:
    """Which rule tells a meeting, and how grave it is."""
    return [("DVL101" if m.creation is None else "DVL103", m.severity) for m in meetings(site)]


def check(text: str, *codes: str) -> list[Finding]:
    return check_source(text, config=Config(rule_layers=(RuleLayer(select=codes),)))


@pytest.mark.parametrize(
    ("other", "scope", "expected"),
    [
        (INPUT, METHOD, [("DVL103", Severity.WARNING)]),
        (INPUT, AWARE, [("DVL103", Severity.WARNING)]),
        (INPUT, PLAIN, [("DVL103", Severity.INFO)]),
        (PLACE, METHOD, [("DVL103", Severity.WARNING)]),
        (DEVICE, PLAIN, [("DVL101", Severity.ERROR)]),
        (SWITCH, PLAIN, [("DVL101", Severity.ERROR)]),
        (accelerator("cuda"), METHOD, [("DVL101", Severity.ERROR)]),
        (CPU, PLAIN, []),
        (UNKNOWN, METHOD, []),
    ],
)
def test_a_fresh_tensor_is_the_creations_fault_where_nobody_chose_a_device(
    other: Device, scope: Scope, expected: list[tuple[str, Severity]]
) -> None:
    assert told(operation(fresh(), operand("x", other), scope=scope)) == expected
    assert told(operation(operand("x", other), fresh(), scope=scope)) == expected


@pytest.mark.parametrize(("scope", "expected"), [(PLAIN, []), (AWARE, ["DVL101"]), (METHOD, ["DVL101"])])
def test_a_chosen_cpu_against_an_argument_is_silent_in_a_function_that_places_nothing(
    scope: Scope, expected: list[str]
) -> None:
    chosen = operand("table", CPU)
    assert [code for code, _ in told(operation(chosen, operand("x", INPUT), scope=scope))] == expected
    assert [code for code, _ in told(operation(chosen, operand("x", DEVICE)))] == ["DVL101"]


@pytest.mark.parametrize("many", [False, None])
def test_a_cpu_tensor_that_may_be_0_dim_is_silent(many: bool | None) -> None:
    assert not told(operation(replace(fresh(), many=many), operand("x", DEVICE)))


def test_an_operand_that_may_be_no_tensor_is_silent() -> None:
    assert not told(operation(fresh(), operand("x", DEVICE, certain=False)))


def test_an_attribute_is_left_to_its_own_rule() -> None:
    kept = operand("self.mask", IMPLIED_CPU, attribute=Step(expression("torch.ones(3)"), "kept"))
    assert not told(operation(kept, operand("x", PLACE), scope=METHOD))


def test_every_stray_operand_has_its_meeting_and_a_chosen_device_explains_best() -> None:
    both = operation(fresh("a"), fresh("b"), operand("x", INPUT), scope=METHOD)
    assert [meeting.stray.text for meeting in meetings(both)] == ["a", "b"]
    known = operation(fresh("a"), operand("x", INPUT), operand("y", DEVICE), scope=METHOD)
    assert told(known) == [("DVL101", Severity.ERROR)]


def test_a_module_is_compared_with_its_inputs_and_they_not_with_one_another() -> None:
    call = expression("model(x, y)")
    inputs = (operand("x", DEVICE), operand("y", CPU))
    assert [m.stray.text for m in meetings(Forward(call, PLAIN, "model", DEVICE, (), inputs))] == ["y"]
    assert not meetings(Forward(call, PLAIN, "model", UNKNOWN, (), inputs))
    left = meetings(Forward(call, PLAIN, "model", IMPLIED_CPU, (), inputs[:1]))
    assert [m.stray.text for m in left] == ["model"]


@pytest.mark.parametrize(
    ("other", "scope", "expected"),
    [
        (operand("y", PLACE), METHOD, [("DVL103", Severity.WARNING)]),
        (operand("y", INPUT), AWARE, [("DVL103", Severity.INFO)]),
        (operand("y", INPUT, derived=True), METHOD, [("DVL103", Severity.INFO)]),
        (operand("y", INPUT), PLAIN, [("DVL103", Severity.INFO)]),
        (operand("y", DEVICE), METHOD, []),
    ],
)
def test_a_write_into_a_cpu_tensor_copies_and_never_raises(
    other: Operand, scope: Scope, expected: list[tuple[str, Severity]]
) -> None:
    site = operation(fresh("out", "torch.zeros"), other, scope=scope)
    assert told(replace(site, kind=OperationKind.ACCUMULATOR, operator="[] =")) == expected


@pytest.mark.parametrize(
    ("target", "index", "scope", "expected"),
    [
        (operand("x", INPUT), fresh("mask", "torch.zeros"), PLAIN, [("DVL103", Severity.INFO)]),
        (operand("x", DEVICE), fresh("mask", "torch.zeros"), METHOD, [("DVL103", Severity.INFO)]),
        (operand("x", INPUT), fresh("rows", "torch.arange"), PLAIN, [("DVL103", Severity.INFO)]),
        # of these DVL203 tells
        (operand("x", DEVICE), fresh("rows", "torch.arange"), PLAIN, []),
        (operand("x", INPUT), fresh("rows", "torch.arange"), METHOD, []),
        (operand("x", INPUT), operand("mask", CPU), METHOD, []),
        (fresh("out", "torch.zeros"), operand("mask", INPUT), METHOD, [("DVL103", Severity.INFO)]),
        (fresh("out", "torch.zeros"), operand("mask", DEVICE), METHOD, []),
    ],
)
def test_a_write_copies_its_index_and_never_raises(
    target: Operand, index: Operand, scope: Scope, expected: list[tuple[str, Severity]]
) -> None:
    site = operation(target, index, scope=scope)
    assert told(replace(site, kind=OperationKind.INDEXED, operator="[] =")) == expected


@pytest.mark.parametrize("scope", [AWARE, METHOD])
def test_a_device_that_is_only_likely_makes_a_hint_at_most(scope: Scope) -> None:
    likely = operand("f(x)", INPUT, derived=True)
    assert told(operation(fresh(), likely, scope=scope)) == [("DVL103", Severity.INFO)]
    assert not told(operation(operand("table", CPU), likely, scope=scope))


def test_two_accelerators() -> None:
    (meeting,) = meetings(operation(operand("a", accelerator("cuda", 0)), operand("b", accelerator("cuda", 1))))
    assert (meeting.stray.text, meeting.other.text) == ("b", "a")
    assert not meetings(operation(operand("a", accelerator("cuda")), operand("b", accelerator("cuda", 0))))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (operand("x", INPUT), "x.device"),
        (operand("y", symbol("k", "batch['image']", Role.INPUT)), "batch['image'].device"),
        (operand("y", symbol("k", "f(x)", Role.INPUT)), ""),
        (operand("y", symbol("k", "an item of x", Role.INPUT)), ""),
        (operand("y", DEVICE), "device"),
        (operand("y", SWITCH), "device"),
        (operand("y", accelerator("cuda", 1)), '"cuda:1"'),
        (operand("self.weight", PLACE), "self.weight.device"),
        (operand("self.weight.t()[0]", PLACE), "self.weight.device"),
        # the replicas of DataParallel have no `self.parameters()`
        (operand("self.layer(x)", PLACE), ""),
        (operand("scores", PLACE), ""),
        (operand("self.rnn", PLACE, role="module"), ""),
    ],
)
def test_the_device_expression_can_be_used_in_the_function(other: Operand, expected: str) -> None:
    scope = Scope(devices=("device",) if expected == "device" else ())
    assert beside(other, source("x.shape, batch['image'].shape"), operation(other, scope=scope)) == expected


def test_a_device_at_hand_goes_before_the_modules_own() -> None:
    scores, scope = operand("scores", PLACE), Scope(devices=("self.rank", "self.device"))
    assert beside(scores, source(""), operation(scores, scope=scope)) == "self.device"


@pytest.mark.parametrize(
    "annotation", ["Data", "Sequence[Union[list, torch.Tensor]]", "Optional[typing.Dict[str, Any]]"]
)
def test_what_is_said_to_hold_others_has_no_device(annotation: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nclass Sum(nn.Module):\n    def __init__(self, width):\n"
        "        super().__init__()\n        self.weight = nn.Parameter(torch.ones(width))\n\n"
        f"    def forward(self, inputs: {annotation}):\n"
        "        total = None\n        for values, weight in zip(inputs, self.weight):\n"
        "            total = weight * torch.FloatTensor(values)\n        return total\n"
    )
    (finding,) = (finding for finding in check_source(text) if finding.code == "DVL103")
    assert finding.help == "move it there: `.to(weight.device)`"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("count = len(inputs)", "create it on the module's device"),
        ("for i, one in enumerate(inputs): print(one)", "create it on the module's device"),
        ("outputs = self.head(inputs)", "create it there: `torch.ones(..., device=inputs.device)`"),
        ("count = len(inputs) + inputs.shape[0]", "create it there: `torch.ones(..., device=inputs.device)`"),
        ("outputs = inputs[:, 0]", "create it there: `torch.ones(..., device=inputs.device)`"),
    ],
)
def test_a_device_is_named_of_what_is_shown_to_be_a_tensor(before: str, told: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nclass Sum(nn.Module):\n    def __init__(self, width):\n"
        "        super().__init__()\n        self.rank = width or 3\n        self.head = nn.Linear(width, 8)\n\n"
        f"    def forward(self, inputs):\n        {before}\n        return self.head(torch.ones(8))\n"
    )
    (finding,) = (finding for finding in check_source(text) if finding.code == "DVL103")
    assert str(finding.help).startswith(told)
    assert finding.fix is None or "inputs.device" in finding.fix.message


def test_factories_that_take_a_device() -> None:
    assert takes_device("torch.zeros")
    assert not any(map(takes_device, ("torch.FloatTensor", "torch.Tensor", "torch.from_numpy", "torch.load", "")))


def test_long_operands_are_cut() -> None:
    assert shown("x +\n  y") == "`x + y`"
    assert shown("x" * 99).endswith("x...`")
    assert len(shown("x" * 99)) == 62


def test_device_mismatch_tells_both_stories() -> None:
    text = """
import torch
from torch import nn

def predict(device):
    model = nn.Linear(8, 2).to(device)
    x = torch.randn(4, 8)
    return model(x)
"""
    (finding,) = check(text, "DVL101")
    assert finding.message == "`x` is on the CPU but `model` is on `device`; this raises when that is an accelerator"
    assert finding.label == "`model` and its input are on different devices"
    assert finding.help == "create it there: `torch.randn(..., device=device)`"
    assert {place.span.row for place in finding.related} == {6, 7}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (SWITCH, "`x` is on the CPU but `y` is on `device`; this raises on a machine with an accelerator"),
        (accelerator("cuda"), "`x` is on the CPU but `y` is on `cuda`; this raises"),
        (INPUT, "`x` is on the CPU but `y` is where the caller keeps `x`; this raises when that is an accelerator"),
    ],
)
def test_device_mismatch_says_when_it_raises(other: Device, expected: str) -> None:
    rule = DeviceMismatch(source(""))
    (report,) = rule.judge(operation(operand("x", CPU), operand("y", other), scope=AWARE))
    assert report.message == expected


def test_device_mismatch_on_some_paths_only() -> None:
    perhaps = choice(Predicate("flag"), IMPLIED_CPU, DEVICE)
    (report,) = DeviceMismatch(source("")).judge(operation(operand("x", perhaps), operand("y", DEVICE)))
    assert report.message.startswith("`x` can be on the CPU but `y` is on `device`")
    assert report.help == "move it first: `x.to(device)`"
    assert report.asked
    (surely,) = DeviceMismatch(source("")).judge(operation(operand("x", IMPLIED_CPU), operand("y", DEVICE)))
    assert not surely.asked


def test_a_module_left_behind_is_to_be_moved() -> None:
    site = Forward(expression("model(x)"), AWARE, "model", IMPLIED_CPU, (), (operand("x", DEVICE),))
    (report,) = DeviceMismatch(source("")).judge(site)
    assert report.help == "move it first: `model.to(device)`"


@pytest.mark.parametrize(
    ("creation", "fixed", "advice"),
    [
        ("torch.ones(3)", "torch.ones(3, device=x.device)", "create it there: `torch.ones(..., device=x.device)`"),
        ("torch.ones()", "torch.ones(device=x.device)", "create it there: `torch.ones(..., device=x.device)`"),
        (
            "torch.ones(\n    3,\n    dtype=d,\n)",
            "torch.ones(\n    3,\n    dtype=d,\n    device=x.device,\n)",
            "create it there: `torch.ones(..., device=x.device)`",
        ),
        ("torch.ones(3, **options)", None, "move it there: `.to(x.device)`"),
        ("torch.randn(3, generator=g)", None, "move it there: `.to(x.device)`"),
        ("torch.ones(3, pin_memory=True)", None, "move it there: `.to(x.device)`"),
        ("torch.FloatTensor([1.0, 2.0])", None, "move it there: `.to(x.device)`"),
        ("torch.from_numpy(a)", None, "move it there: `.to(x.device)`"),
    ],
)
def test_forward_factory_adds_a_device_where_the_call_takes_one(creation: str, fixed: str | None, advice: str) -> None:
    file = source(f"x = y.view(-1)\n{creation}\nx.shape")
    node = file.tree.body[1].value  # type: ignore[attr-defined]  # an expression statement
    stray = operand("mask", IMPLIED_CPU, factory=creation.partition("(")[0], factory_node=node)
    (report,) = ForwardFactoryWithoutDevice(file).judge(operation(stray, operand("x", INPUT), scope=METHOD))
    assert report.node is node
    assert report.help == advice
    if fixed is None:
        assert report.fix is None
    else:
        assert report.fix is not None
        assert [edit.content for edit in report.fix.edits] == [fixed]
        assert report.fix.applicability is Applicability.UNSAFE


def test_forward_factory_points_at_the_creation_and_tells_the_meeting() -> None:
    site = operation(fresh(), operand("x", INPUT), scope=METHOD)
    (report,) = ForwardFactoryWithoutDevice(source("torch.ones(3)")).judge(site)
    assert report.message == (
        "`torch.ones` creates on the CPU, but the result meets `x`, which is where the caller keeps it; "
        "this raises when that is an accelerator"
    )
    assert [(step.node, step.label) for step in report.steps] == [(site.node, "meets `x` here")]


def test_a_module_that_is_made_on_the_host_is_said_to_be_there() -> None:
    text = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
    text += "        norm = nn.BatchNorm2d(3)\n        return norm(x + torch.ones(1, device=x.device))\n"
    (finding,) = check(text, "DVL103")
    assert finding.message.startswith("`norm` is made on the CPU, but meets `x + ")


def test_all_that_a_sum_is_made_of_is_created_there_however_it_came_to_the_meeting() -> None:
    text = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x, deep):\n"
    text += "        mask = torch.ones(3, 3) + torch.rand(3, 3)\n"
    text += "        if deep:\n            mask = mask.reshape(1, 3, 3)\n        return x + mask\n"
    (finding,) = check(text, "DVL103")
    assert finding.fix is not None
    assert len(finding.fix.edits) == 2, "with one of them elsewhere, the two would meet"


def test_unregistered_tensor_tells_its_uses_and_how_to_register() -> None:
    text = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.linspace(0, 1, width)

    def forward(self, x):
        return x * self.scale.to(x.device)
"""
    (finding,) = check(text, "DVL104")
    assert finding.message == (
        "`self.scale` is a plain attribute, which `Scale.to()` does not move: "
        "it is copied to the device of the inputs at every use"
    )
    assert finding.help == (
        'register it: `self.register_buffer("scale", torch.linspace(0, 1, width), persistent=False)`'
    )
    assert [place.span.row for place in finding.related] == [11]
    long = text.replace("torch.linspace(0, 1, width)", "torch.linspace(0, 1, steps=width).log().clamp(min=-10, max=10)")
    (finding,) = check(long, "DVL104")
    assert finding.help == 'register it: `self.register_buffer("scale", ..., persistent=False)`'


def test_what_is_switched_to_may_be_a_symbol() -> None:
    """Seen in kornia: one path takes the caller's device, the other a helper that falls back to the CPU."""
    switched = choice(Predicate("short"), DEVICE, CPU)
    assert switched.switched
    site = operation(operand("bound", CPU), operand("zeros", switched))
    (report,) = DeviceMismatch(source("")).judge(site)
    assert "`zeros` is on `device` or the CPU" in report.message


def test_no_buffer_is_registered_before_the_module_is_made() -> None:
    """Seen in TorchRL: `register_buffer` raises where `super().__init__()` has yet to be called."""
    text = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, width):
        self.scale = torch.linspace(0, 1, width)
        super().__init__()

    def forward(self, x):
        return x * self.scale.to(x.device)
"""
    (finding,) = check(text, "DVL104")
    assert (finding.help or "").startswith("register it after `super().__init__()`: ")


def test_what_is_moved_once_by_hand_is_not_moved_on_every_call() -> None:
    """Seen in DGL."""
    text = """
import torch
from torch import nn

class Table(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = torch.linspace(0, 1, width)

    def place(self, device):
        self.table = self.table.to(device)

    def forward(self, x):
        return x * self.table
"""
    (finding,) = check(text, "DVL104")
    assert finding.related[0].label == "moved here"


CODES = """
import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self, values):
        super().__init__()
        self.register_buffer("values", values)

    def _look_up(self, found):
        mapped = found.clone()
        for i in range(3):
            row = self.values[i, :4]
            mapped[..., i] = row[found[..., i].long()]
        return mapped

    def sample(self, n):
        return self._look_up(torch.zeros(n, 3))
"""


def test_advice_names_nothing_that_only_another_function_knows() -> None:
    """Seen in sbi."""
    (found,) = check_source(CODES, config=Config(rule_layers=(RuleLayer(("DVL103",)),)))
    # what takes in others raises nothing, and may be for the host: seen in sam-pt
    assert not [one for one in check_source(CODES) if one.code == "DVL103"]
    assert found.help == "create it on the module's device, which is that of an input or of a parameter"


def test_a_fix_names_the_device_of_what_is_met_and_of_no_other_tensor_at_hand() -> None:
    code = """
import torch

def noisy(images: torch.Tensor):
    x = images.to("cuda" if torch.cuda.is_available() else "cpu")
    return x * torch.randn(8, 4)
"""
    (finding,) = (found for found in check_source(code) if found.code in ("DVL101", "DVL103"))
    assert finding.help == "create it there: `torch.randn(..., device=x.device)`"
    assert finding.fix is not None
    assert [edit.content for edit in finding.fix.edits] == ["torch.randn(8, 4, device=x.device)"]


@pytest.mark.parametrize(("result", "stays"), [("out", True), ("torch.inverse(out).to(self.w.device)", False)])
def test_what_is_moved_when_it_is_full_does_not_stay(result: str, stays: bool) -> None:
    code = f"""
import torch

class Scene(torch.nn.Module):
    def place(self, rows: torch.Tensor):
        out = torch.zeros(4, 4)
        out[:3] = rows * 2
        return {result}
"""
    (finding,) = check(code, "DVL103")
    assert finding.message.endswith("each write copies to the CPU" + ", and the result stays there" * stays)


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ("kinds == 1", "this raises when that is an accelerator"),
        ("~(kinds == 1)", "this raises when that is an accelerator"),
        ("(kinds == 1) | (kinds == 2)", "this raises when that is an accelerator"),
        ("kinds[0]", "each write copies to the CPU, and the result stays there"),
    ],
)
def test_what_is_written_through_a_comparison_is_not_copied(index: str, told: str) -> None:
    code = f"""
import torch

class Scene(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, rows: torch.Tensor, kinds):
        out = torch.zeros(4, 4)
        out[{index}] = torch.cat([rows, rows])
        return out
"""
    (finding,) = check(code, "DVL103")
    assert finding.message.endswith(told)


MASKED = """
import torch
from torch import nn

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        mask = torch.zeros(3){made}
        for block in self.blocks:
            x = block(x, mask)
        return x

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, mask):
        return self.linear(x){used}
"""


def test_a_mask_may_index_from_the_cpu() -> None:
    """Seen in RFdiffusion."""
    codes = [[f.code for f in check_source(MASKED.format(made=made, used="[mask]"))] for made in (".bool()", "")]
    assert codes[0] == []
    assert [f.code for f in check_source(MASKED.format(made="", used=" * mask"))] == ["DVL103"]


PLOTTED = """
import matplotlib.pyplot as plt
import torch
from torch import nn

model = nn.Linear(3, 3).cuda()
losses = []
for step in range(3):
    loss = model(torch.ones(3, device="cuda")).pow(2).mean()
    loss.backward()
    losses.append(loss{read})
plt.plot(losses)
"""


def test_an_item_of_what_has_no_dimensions_is_no_tensor() -> None:
    """Seen in RL-Adventure: a number until torch 0.4."""
    codes = [
        [f.code for f in check_source(PLOTTED.format(read=read)) if f.code == "DVL107"] for read in (".data[0]", "")
    ]
    assert codes == [[], ["DVL107"]]


def test_a_part_of_a_batch_is_read_where_the_loader_left_it() -> None:
    """Seen in deep-person-reid."""
    text = """
import torch

def scored(model, loader, use_gpu):
    for data in loader:
        images, labels = data
        if use_gpu:
            images{0} = images.cuda()
        labels = labels.data.numpy()
        print(model(images), labels[0, :])
"""
    assert [f.span.row for f in check_source(text.format("")) if f.code == "DVL107"] == []
    moved = text.format(", labels").replace("images.cuda()", "images.cuda(), labels.cuda()")
    assert [f.span.row for f in check_source(moved, config=OF_DEVICES) if f.code == "DVL107"] == [9]


def test_a_part_of_what_is_moved_further_down_is_not_there_yet() -> None:
    """Seen in RFdiffusion."""
    text = """
import torch

class Sampler:
    def __init__(self, device):
        self.device = device

    def prepared(self, x, t):
        x = x[None, None]
        x = torch.cat((x, torch.full((1, 1, 3), 0.5)), dim=2)
        t = t.to(self.device)
        {}
        return x, t
"""
    config = Config(rule_layers=(RuleLayer(("DVL103",)),))
    assert [f.code for f in check_source(text.format("x = x.to(self.device)"), config=config)] == []
    assert [f.code for f in check_source(text.format("x = x.float()"), config=config)] == ["DVL103"]


def test_a_number_that_an_unknown_network_gives_is_none_of_its_tensors() -> None:
    """Seen in Restormer."""
    text = """
import lpips
import numpy as np
import torch

distance = lpips.LPIPS(net="alex").cuda()
scores = []
for image in range(3):
    patch = torch.from_numpy(image).cuda()
    scores.append(distance(patch, patch){})
scores = np.array(scores)
"""
    config = Config(rule_layers=(RuleLayer(("DVL107",)),))
    assert [f.code for f in check_source(text.format(".item()"), config=config)] == []
    assert [f.code for f in check_source(text.format(""), config=config)] == ["DVL107"]
    # what it returns may be an array as well
    assert "DVL107" not in [f.code for f in check_source(text.format(""))]


def test_what_is_decided_by_a_comparison_needs_more_than_a_move() -> None:
    """Seen in pytorch-optimizer: moved or not, a tensor of many truth values is no answer."""
    text = "import torch\n\ndef f(device):\n    a = torch.zeros(3, device=device)\n    b = torch.ones(3)\n    {}\n"
    helps = []
    for use in ("assert a == b", "return (a == b).sum()"):
        (found,) = [each for each in check_source(text.format(use)) if each.code == "DVL101"]
        helps.append((found.help, found.fix is None))
    assert helps == [
        ("compare them as a whole, both on one device: `torch.equal(...)`", True),
        ("create it there: `torch.ones(..., device=device)`", False),
    ]


OLD_LOSS = """
import matplotlib.pyplot as plt
import torch
from torch import nn

net = nn.Linear(3, 1).cuda()

def train(x, net, criterion):
    loss = 0
    for part in x:
        loss += criterion(net(part), part)
    {back}
    return loss.data[0] / 3

points = []
for epoch in range(3):
    points.append(train(torch.ones(3, 3).cuda(), net, nn.NLLLoss()))
plt.plot(points)
"""


def test_the_first_item_of_what_goes_backward_is_a_number() -> None:
    """Seen in practical-pytorch: until torch 0.4, losses were read so."""
    for back, told in (("loss.backward()", []), ("loss.backward(x)", ["DVL107"])):
        assert [f.code for f in check_source(OLD_LOSS.format(back=back)) if f.code == "DVL107"] == told


CONVERTED = """
import numpy as np
import torch
from torch import nn


def remapped(table: torch.Tensor, size):
    rows = [np.flip(table[:, i].view(size, size).numpy()) for i in range(size)]
    return torch.tensor(np.stack(rows)) + table


class Remapped(nn.Module):
    def forward(self, table: torch.Tensor):
        return torch.tensor(np.flip(table.numpy())) + self.bias


def moved(table: torch.Tensor):
    table = table.cuda()
    return np.flip(table.numpy())
"""


def test_a_function_that_reads_on_the_host_asks_for_a_tensor_of_the_host() -> None:
    """Seen in SimMIM, which loads to the CPU what the function remaps."""

    def told(*codes: str) -> list[int]:
        config = Config(rule_layers=(RuleLayer(codes),) if codes else ())
        return [one.span.row for one in check_source(CONVERTED, config=config) if one.code == "DVL107"]

    assert told() == [19]
    assert told("DVL107") == [8, 14, 19]


READ = """
import torch
import torchaudio
from PIL import Image
from torch import nn
from torchvision import transforms
from torchvision.io import read_image

net = nn.Linear(8, 2).to(device)
sound, rate = torchaudio.load("cat.wav")
net({})
"""


@pytest.mark.parametrize(
    "made", ["sound", "read_image('cat.png').float()", "transforms.ToTensor()(Image.open('cat.png')).unsqueeze(0)"]
)
def test_what_is_read_from_files_is_on_the_cpu(made: str) -> None:
    text = READ.replace("net = ", "device = torch.device('cuda:0')\nnet = ")
    assert "DVL101" in [f.code for f in check_source(text.format(made))]
    assert "DVL101" not in [f.code for f in check_source(text.format(f"({made}).to(device)"))]


@pytest.mark.parametrize(
    ("loaded", "first", "codes"),
    [
        # seen in PhotoMaker: what is given a text makes tensors of it where they have to be
        ("Net", '"a portrait"', []),
        ("Net", "faces", ["DVL101"]),
        # seen in Marigold
        ("NormalsPipeline", "faces", []),
    ],
)
def test_a_pipeline_moves_what_it_is_given(loaded: str, first: str, codes: list[str]) -> None:
    text = (
        f"import torch\nfrom pipelines import {loaded}\n\ndef f(arrays, device: torch.device):\n"
        f"    pipe = {loaded}.from_pretrained('large').to(device)\n"
        "    faces = torch.stack([torch.from_numpy(face) for face in arrays])\n"
        f"    return pipe({first}, faces=faces)\n"
    )
    assert [f.code for f in check_source(text) if f.code == "DVL101"] == codes


def test_of_operands_that_nobody_knows_the_dimensions_are_not_known() -> None:
    """Seen in diffusers."""
    text = (
        "import torch\n\ndef f(mask, k):\n"
        "    mask = torch.maximum(1.0 - mask, (1 - mask**2) ** 0.5 * k)\n    return mask.cuda()\n"
    )
    config = Config(rule_layers=(RuleLayer(("DVL601",)),))
    assert [f.code for f in check_source(text, config=config)] == ["DVL601"]


def test_modules_of_other_frameworks_know_what_their_lists_hold() -> None:
    """Seen in moshi: MLX takes the parameters of modules in a list."""
    text = (
        "import {} as nn\n\nclass Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.line = nn.Linear(3, 3)\n\nclass Whole(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.parts = []\n        for _ in range(3):\n"
        "            self.parts.append(Part())\n\n    def forward(self, x):\n        return self.parts[0](x)\n"
    )
    assert [found.code for found in check_source(text.format("torch.nn"))] == ["DVL105"]
    assert check_source(text.format("mlx.nn")) == []


def test_a_batch_with_parts_of_its_own_may_move_in_place() -> None:
    """Seen in inseq."""
    text = (
        "import torch\n\ndef f(batches, net: torch.nn.Module):\n    for batch in zip(batches[1:], batches):\n"
        "        first = batch[0]\n        first.detach()\n        first.to(net.device)\n        {}\n"
        "        net(first.shape, first)\n"
    )
    assert [f.code for f in check_source(text.format("pass")) if f.code == "DVL102"] == ["DVL102"]
    assert [f.code for f in check_source(text.format("first.targets")) if f.code == "DVL102"] == []


def test_the_batches_of_a_tensor_are_where_it_is() -> None:
    """Seen in mammoth: the loader takes the rows of a tensor for its samples."""
    text = (
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.part = nn.Linear(3, 2)\n\n"
        "    def forward(self, x):\n        return self.part(x)\n\n    def fit(self, x: torch.Tensor):\n"
        "        for batch in DataLoader({}, batch_size=64):\n            self.part(batch)\n"
    )
    assert [f.code for f in check_source(text.format("x - x.min()"), config=OF_DEVICES)] == []
    assert [f.code for f in check_source(text.format("(x - x.min()).cpu()"), config=OF_DEVICES)] == ["DVL101"]


def test_what_is_only_counted_with_is_no_tensor_whose_device_could_be_named() -> None:
    """Seen in algorithmic-efficiency, whose callers give `forward` a length."""
    text = """import torch
from torch import nn

class Positions(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("scales", torch.ones(width))

    def forward(self, length):
        signal = torch.arange({}, device=self.scales.device)[:, None] * self.scales
        return torch.cat([signal, torch.zeros(signal.shape[0], 1)], dim=1)
"""
    for counted in ("length", "end=length", "0, length"):
        (finding,) = [one for one in check_source(text.format(counted)) if one.code == "DVL103"]
        assert "length" not in finding.help


ROTATED = """
import torch

def rotate(layer, Q):
    W = layer.projection
    rotated = torch.matmul(Q.T, W.weight.data.to(torch.float64))
    W.weight.data = rotated.to(device="cpu", dtype=torch.float32)

def rotate_all(model):
    Q = torch.ones(4, 4, device=model.device)
    layers = model.layers
    for index, layer in enumerate(layers):
        rotate({layer}, Q)
"""


@pytest.mark.parametrize(("layer", "found"), [("layers[index]", 0), ("layer", 0), ("layers[0]", 1)])
def test_each_round_takes_another_item(layer: str, found: int) -> None:
    """Seen in QuaRot: what was done to the item of one round was not done to that of the next."""
    assert len(check(ROTATED.format(layer=layer), "DVL101")) == found


SAMPLES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, x):
        self.x = {kept}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {sample}

def run(x, device):
    net = nn.Linear(4, 2).to(device)
    for rows in DataLoader(Rows(x), batch_size=2):
        net(rows)
"""


@pytest.mark.parametrize(
    ("kept", "sample", "found"),
    [
        ("x", "self.x[index]", 0),
        ('x["train"]', "self.x[index]", 0),
        ("x", "torch.tensor(self.x[index])", 1),
        ("torch.load(x)", "self.x[index]", 1),
    ],
)
def test_samples_that_are_items_of_what_was_given_are_where_that_is(kept: str, sample: str, found: int) -> None:
    """Seen in TALENT, which moves everything before it makes the data set."""
    assert len(check(SAMPLES.format(kept=kept, sample=sample), "DVL101")) == found


def by_default(text: str) -> list[str]:
    return [finding.code for finding in check_source(text) if finding.code.startswith("DVL10")]


def test_who_copies_to_the_host_what_meets_the_module_takes_it_to_be_there() -> None:
    """Seen in dualdiffusion, which counts losses on the host; what torch calls is where the module is."""
    text = """
import torch
from torch import nn

class Buckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("counts", torch.zeros(4))

    def {method}(self, loss):
        fetched = torch.stack([loss, loss]).cpu()
        return fetched * self.counts
"""
    for method in ("log", "forward"):
        assert by_default(text.format(method=method)) == []
        assert check(text.format(method=method), "DVL101")


def test_a_module_is_where_it_says() -> None:
    """Seen in dac, of which a mixin says that."""
    text = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

net = Net()
net(torch.ones(3, 4, device=net.device))
"""
    assert by_default(text) == []


def test_a_rank_may_be_that_of_a_matrix() -> None:
    """Seen in neuromancer."""
    text = """
import torch
from torch import nn

class Low(nn.Module):
    def __init__(self, size, rank=None):
        super().__init__()
        self.rank = rank if rank is not None else size // 2
        self.weight = nn.Parameter(torch.rand(self.rank, size))

    def forward(self, x):
        return x @ (self.weight.T @ self.weight + torch.eye(4))
"""
    (found,) = check(text, "DVL103")
    assert found.help == "create it there: `torch.eye(..., device=x.device)`"


def test_outside_of_its_methods_nobody_calls_an_object_self() -> None:
    code = """
import torch


class Chooser:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.kept = None

    def ones(self):
        return torch.ones(3, device=self.device)

    def keep(self):
        self.kept = self.ones()


def returned():
    chooser = Chooser()
    return chooser.ones() + torch.ones(3)


def kept():
    chooser = Chooser()
    chooser.keep()
    return chooser.kept + torch.ones(3)
"""
    found = check_source(code, config=OF_DEVICES)
    assert [one.message.count("`chooser.device`") for one in found] == [1, 1]
    assert not any("self" in f"{one.message} {one.help}" for one in found)
