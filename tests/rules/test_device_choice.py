"""What the help chooses a device by: what the project's torch has, and what cures the complaint."""

from __future__ import annotations

import re
import textwrap

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding
from tests.test_fixtures import apply

HEAD = "import torch\nfrom torch import nn\n"
CALL = HEAD + "def f(x):\n    return x.cuda()\n"
GUARDED = HEAD + "def f(x):\n    if torch.cuda.is_available():\n        x = x.cuda()\n    return x\n"
LITERAL = HEAD + 'def f(n):\n    return torch.zeros(n, device="cuda")\n'
CHOSEN = 'device = "cuda" if torch.cuda.is_available() else "cpu"\n'
SELECTED = (RuleLayer(("DVL601", "DVL602")),)
ANY = 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
CUDA = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def found(text: str, torch: tuple[int, int] | None = None, layers: tuple[RuleLayer, ...] = ()) -> list[Finding]:
    return check_source(text, config=Config(rule_layers=layers, target_torch=torch))


@pytest.mark.parametrize("text", [CALL, LITERAL])
@pytest.mark.parametrize(
    ("torch", "chosen", "others"),
    [(None, f"`device = {ANY}` (torch 2.7),", True), ((2, 7), f"`device = {ANY}`,", True), ((2, 6), CUDA, False)],
)
def test_the_choice_is_what_the_torch_has_and_the_complaint_what_it_cures(
    text: str, torch: tuple[int, int] | None, chosen: str, others: bool
) -> None:
    (finding,) = found(text, torch, SELECTED)
    assert chosen in finding.help
    assert ("MPS" in finding.message) is others


def test_a_guarded_call_is_told_of_to_those_who_ask_if_there_is_a_cure() -> None:
    assert found(GUARDED) == []
    (finding,) = found(GUARDED, None, SELECTED)
    assert ANY in finding.help
    # the code does already what could be advised
    assert found(GUARDED, (2, 1), SELECTED) == []
    (finding,) = found(GUARDED.replace("f(x)", "f(x, y: torch.Tensor)"), (2, 1), SELECTED)
    assert finding.help == "use `.to(y.device)`"


def test_nobody_knows_what_becomes_of_an_argument_of_another_library() -> None:
    text = HEAD + 'from plugins import Precision\n\nplugin = Precision(16, device="cuda")\n'
    assert found(text) == []
    (finding,) = found(text, None, SELECTED)
    assert finding.help == 'choose what the machine has: `"cuda" if torch.cuda.is_available() else "cpu"`'
    assert finding.fix is None


@pytest.mark.parametrize(
    ("refusal", "going_on"),
    [
        ("assert torch.cuda.is_available(), 'no GPU'", "print(torch.cuda.is_available())"),
        ("if not torch.cuda.is_available():\n    raise SystemExit", "if not torch.cuda.is_available():\n    print()"),
        ("if torch.cuda.is_available():\n    pass\nelse:\n    sys.exit(1)", "if torch.cuda.is_available():\n    pass"),
    ],
)
def test_who_stops_without_cuda_has_chosen(refusal: str, going_on: str) -> None:
    text = HEAD + "import sys\n" + CHOSEN + "def f(n):\n    return torch.cuda.FloatTensor(n)\n\ndef main():\n"
    stops, goes = (text + textwrap.indent(way, "    ") + "\n" for way in (refusal, going_on))
    assert found(stops) == []
    assert [each.code for each in found(stops, None, (RuleLayer(("DVL702",)),))] == ["DVL702"]
    assert [each.code for each in found(goes)] == ["DVL702"]


@pytest.mark.parametrize(("text", "code"), [(CALL, "DVL601"), (LITERAL, "DVL602")])
def test_where_the_file_has_chosen_no_device_only_who_asks_is_told(text: str, code: str) -> None:
    """Seen in SupContrast, Person_reID and modded-nanogpt: to choose one is a change of the whole program."""
    others = (
        "there = torch.cuda.is_available()\n",
        'device = torch.device("cuda", int(rank))\nthere = torch.cuda.is_available()\n',
        'device = f"cuda:{rank}"\n',
        "device = args.device\n",
        CHOSEN + "assert torch.cuda.is_available()\n",
    )
    for other in others:
        assert [each.code for each in found(text + other) if each.code == code] == []
        assert len(found(text + other, None, (RuleLayer((code,)),))) >= 1
    for given in ("f(x, y: torch.Tensor)", "f(x, device)"):
        assert found(re.sub(r"f\(\w\)", given, text)) == []
    (finding,) = found(text + CHOSEN)
    assert (finding.code, str(finding.severity)) == (code, "info")
    assert "device" in str(finding.help)


def test_what_is_where_its_owner_is_leaves_no_accelerator_unused() -> None:
    made = (
        HEAD
        + "def f(x: torch.Tensor):\n    y = torch.zeros(3, device=x.device)\n    if x.is_cuda:\n        y = y.cuda()\n"
    )
    assert found(made, None, SELECTED) == []
    (finding,) = found(made.replace("(3, device=x.device)", "(3)"), None, SELECTED)
    assert finding.help == "use `.to(x.device)`, without asking: it moves nothing where they are together"


def test_who_follows_a_tensor_need_not_ask_where_it_is() -> None:
    """Seen in Pointnet_Pointnet2 and deepvoice3: under the question a move to the tensor's device cures nothing."""
    text = (
        HEAD + "def f(x: torch.Tensor):\n    y = torch.eye(3).repeat(2, 1)\n    if x.is_cuda:\n        y = y.cuda()\n"
    )
    (finding,) = [each for each in found(text, None, SELECTED) if each.code == "DVL601"]
    assert finding.fix is not None
    assert apply(text, {*finding.fix.edits}) == text.replace(
        "if x.is_cuda:\n        y = y.cuda()", "y = y.to(x.device)"
    )
    # what else hangs on it may be a kernel for CUDA alone
    more = text + "        kernel(x, y)\n"
    other = text.replace("if x.is_cuda:", "if not x.is_cuda:\n        host(x, y)\n    else:") + "        kernel(x, y)\n"
    for kernels in (more, other):
        assert [each.code for each in found(kernels)] == []
        assert [each.code for each in found(kernels, None, SELECTED)] == ["DVL601"]


@pytest.mark.parametrize(
    "statement",
    [
        "import iou3d_cuda",
        "from . import iou3d_cuda",
        "from ops.iou3d_cuda import nms",
        "import flash_attn",
        "from apex import amp",
        "import spconv.pytorch as spconv",
        "from torch.utils.cpp_extension import CUDAExtension\nkernels = CUDAExtension('kernels', sources)",
    ],
)
def test_who_imports_kernels_of_cuda_has_it(statement: str) -> None:
    """Seen in bevfusion: CUDA was chosen with them."""
    text = HEAD + "def f(y):\n    return y.cuda(), torch.zeros(3, device='cuda')\n"
    text += "def g(x, y):\n    x.load_state_dict(torch.load(y))\n" + CHOSEN
    told = [each.code for each in found(f"from misc import to_cuda\n{text}")]
    assert sorted(told) == ["DVL601", "DVL602", "DVL604"]
    assert [each.code for each in found(f"{statement}\n{text}")] == []


def test_what_apex_has_in_python_alone_needs_no_cuda() -> None:
    text = HEAD + "def f(x):\n    return x.cuda()\n" + CHOSEN
    assert [each.code for each in found(f"from apex.reparameterization import apply_weight_norm\n{text}")] == ["DVL601"]
    assert found(f"from apex.parallel import DistributedDataParallel\n{text}") == []


def test_what_an_option_imports_is_not_needed() -> None:
    """Seen in mt-dnn: mixed precision by apex, if somebody asks for it."""
    text = HEAD + "def f(x, fp16):\n    {}\n    return x.cuda()\n" + CHOSEN
    assert [each.code for each in found(text.format("if fp16:\n        from apex import amp"))] == ["DVL601"]
    assert found(text.format("from apex import amp")) == []


AT_HAND = HEAD + "def f(x, y: torch.Tensor):\n    return {}\n"
LOADED = AT_HAND.format("x.cuda(), y.load_state_dict(torch.load(x))")


def test_a_program_for_cuda_alone_loads_what_it_saved_on_its_gpu() -> None:
    assert "DVL604" not in [each.code for each in found(LOADED)]
    selected = found(LOADED, None, (RuleLayer(("DVL604",)),))
    assert [(each.code, str(each.severity)) for each in selected] == [("DVL604", "info")]
    asks = f"{LOADED}there = torch.cuda.is_available()\n"
    # what the function does anyway needs a GPU, whatever the rest of the file asks
    assert "DVL604" not in [each.code for each in found(asks)]
    for moved in (
        "x.cuda() if x else x",
        "x.cuda(y.rank)",
        "dist.init_process_group(), x.cuda()",
        "(lambda: x.cuda())",
    ):
        told = [(each.code, str(each.severity)) for each in found(asks.replace("x.cuda()", moved))]
        assert ("DVL604", "info") in told


def test_a_module_has_no_device_of_its_own() -> None:
    """Seen in FastPhotoStyle, whose network has a property `is_cuda`."""
    text = HEAD + "class Net(nn.Module):\n    def forward(self, x):\n        y = torch.eye(3)\n"
    text += "        if self.is_cuda:\n            y = y.cuda()\n        return y\n"
    assert not any("self.device" in each.help for each in found(text, None, SELECTED))


NUMBERED = (
    HEAD
    + """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--device", {option})
args = parser.parse_args()

def f(parts, device_ids, x):
    print(torch.cuda.is_available())
    x = x.cuda(args.device)
    return [part.cuda(device) for part, device in zip(parts, {ids})]
"""
)


@pytest.mark.parametrize(
    ("option", "ids", "told"),
    [
        # seen in flops-counter.pytorch and in DANet
        ("type=int, default=0", "device_ids", []),
        ("default=0", "range(3)", []),
        ("default='cuda'", "device_ids", ["args.device"]),
        ("type=int", "places", ["device"]),
    ],
)
def test_a_number_is_no_device_whatever_it_is_called(option: str, ids: str, told: list[str]) -> None:
    findings = found(NUMBERED.format(option=option, ids=ids), None, (RuleLayer(("DVL601",)),))
    helps = [each.help for each in findings if not str(each.help).startswith("choose once")]
    assert helps == [f"use `.to({text})`" for text in told]
