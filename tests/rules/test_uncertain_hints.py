"""Hints that are only for those who ask for their rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from tests.notebooks import notebook

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"

PLAIN = """\
import torch

def masked(scores: torch.Tensor):
    mask = torch.ones(3, 3)
    return scores.clamp(0, 1) * mask
"""
OF_A_TEST = """\
import torch

def test_sum(device):
    for _ in range(2):
        x = torch.ones(3, 3).to(device)
        y = torch.tensor([2.0, 4.0, 8.0])
        y.to(device)
        assert (x @ y).sum() == 42
"""


def told(text: str | bytes, *layers: RuleLayer, name: str = "m.py") -> list[tuple[str, str]]:
    found = check_source(text, name, Config(rule_layers=layers))
    return [(finding.code, str(finding.severity)) for finding in found]


def test_a_plain_function_is_hinted_at_where_the_rule_is_selected() -> None:
    """Nothing shows who calls it, and with what."""
    assert told(PLAIN) == []
    for layer in (RuleLayer(("DVL103",)), RuleLayer(extend_select=("DVL1",)), RuleLayer(("ALL",))):
        assert told(PLAIN, layer) == [("DVL103", "info")]
    assert told(PLAIN, RuleLayer(("DVL103",)), RuleLayer(("DVL2",))) == []


def test_gpus_that_are_hidden_while_nothing_has_used_any_are_for_those_who_ask() -> None:
    """That works, for as long as nothing else comes before it."""
    text = 'import os\n\nimport torch\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "1"\n'
    assert told(text) == []
    assert told(text, RuleLayer(("DVL608",))) == [("DVL608", "info")]
    assert told(text.replace("\nos.", "\ntorch.cuda.is_available()\nos.")) == [("DVL608", "warning")]


def test_such_a_hint_uses_the_comment_that_silences_it() -> None:
    silenced = PLAIN.replace("torch.ones(3, 3)", "torch.ones(3, 3)  # devlint: ignore[DVL103]")
    assert told(silenced) == []


def test_a_decision_is_pointed_out_to_those_who_ask_and_a_warning_of_the_same_rule_to_all() -> None:
    """`pin_memory=False` may have been measured to be faster."""
    decided = (FIXTURES / "DVL301_missing_pin_memory" / "bad_turned_off.py").read_text(encoding="utf-8")
    assert told(decided) == []
    assert told(decided, RuleLayer(("DVL301",))) == [("DVL301", "info")] * 2
    left_open = decided.replace(", pin_memory=False", "")
    assert told(left_open) == [("DVL301", "info")]
    kept = decided.replace("# expect: DVL301 info", "# devlint: ignore[DVL301]")
    assert told(kept) == told(kept, RuleLayer(("ALL",))) == []


ASSEMBLED = """\
import torch

def learn(data, model, device):
    for part in data:
        x = torch.stack([torch.from_numpy(row) for row in part])
        model(x.to(device)).backward()
"""


def test_copies_from_memory_that_is_not_pinned_are_for_those_who_ask_and_from_pinned_memory_for_all() -> None:
    pinned = ASSEMBLED.replace("model(x.", "x = x.pin_memory()\n        model(x.")
    assert told(pinned) == [("DVL204", "info")]
    assert told(ASSEMBLED) == []
    assert told(ASSEMBLED, RuleLayer(("DVL204",))) == [("DVL204", "info")]


CHOSEN = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
NAMES_OF_TESTS = ("test_sum.py", "sum_test.py", "sum_tests.py", "conftest.py", "test/sums.py", "a/tests/sums.py")
FURTHER_DOWN = ("tests/common/sums.py", "a/tests/b/c/sums.py", "/of/somebody/tests/sums.py")


@pytest.mark.parametrize("name", [*NAMES_OF_TESTS, *FURTHER_DOWN])
def test_hints_about_a_file_of_tests_are_for_those_who_ask(name: str) -> None:
    """What it costs, or where else it could run, hardly matters there; what fails does."""
    assert told(OF_A_TEST, name=name) == [("DVL102", "error")]
    assert told(OF_A_TEST, RuleLayer(("DVL1", "DVL203")), name=name) == [("DVL203", "info"), ("DVL102", "error")]


@pytest.mark.parametrize(
    "name",
    [
        "third_party/sums.py",
        "src/Vendor/net/sums.py",
        "/of/somebody/dependencies/sums.py",
        "net/Backup/sums.py",
        "old/sums.py",
    ],
)
def test_what_only_costs_in_a_copy_of_other_peoples_code_is_for_those_who_ask(name: str) -> None:
    costs = f"import torch\n\n{CHOSEN}"
    costs += "def f(n):\n    return torch.ones(n).cuda()\n"
    assert told(costs, name="sums.py") == [("DVL601", "info")]
    assert told(costs, name=name) == []
    assert told(costs, RuleLayer(("DVL601",)), name=name) == [("DVL601", "info")]
    # what raises raises there, too
    assert told(OF_A_TEST, name=name) == [("DVL102", "error")]


def test_hints_about_notebooks_are_for_those_who_ask() -> None:
    cells = notebook(f"import torch\n{CHOSEN}", "def f():\n    return torch.rand(3, 3).cuda()\n")
    assert check_source(cells, "sums.ipynb") == []
    config = Config(rule_layers=(RuleLayer(("DVL601",)),))
    assert [finding.code for finding in check_source(cells, "sums.ipynb", config)] == ["DVL601"]


def test_an_old_default_type_is_for_those_who_ask() -> None:
    """Seen in BindsNET, whose buffers are of `torch.Tensor(n)`, and in experiments of years ago."""
    text = "import torch\n\ntorch.set_default_tensor_type(torch.DoubleTensor)\n"
    for name, data in (("a.ipynb", notebook(text)), ("a.py", text)):
        assert check_source(data, name) == []
        assert told(data, RuleLayer(("DVL702",)), name=name) == [("DVL702", "info")]


def test_hints_about_other_files_are_for_all() -> None:
    for name in ("sums.py", "contests/sums.py", "/of/somebody/tests/project/sums.py", "C:/tests/project/sums.py"):
        assert ("DVL203", "info") in told(OF_A_TEST.replace("test_sum", "total"), name=name)


@pytest.mark.parametrize("line", ["from torch.autograd import Function, gradcheck", "import pytest"])
def test_what_a_file_imports_may_say_that_it_is_one_of_tests(line: str) -> None:
    """Seen beside the CUDA kernels of Deformable-DETR: `ops/test.py`, which looks at their gradients."""
    text = "import torch\n{}\n\n" + CHOSEN
    text += "def same():\n    x = torch.rand(3, 3).cuda()\n    return (x - x).max() < 1e-7\n"
    assert {code for code, _ in told(text.format(""))} == {"DVL601"}
    assert told(text.format(line)) == []
    assert told(text.format(line), RuleLayer(("DVL601",))) == [("DVL601", "info")]
    assert told(text.format("import pytest_check")) == told(text.format(""))


ONCE = """\
import torch

{start}
    x = torch.{made}(3, 3).to({device})
    print(x + 1, other.shape)
"""


@pytest.mark.parametrize(
    ("start", "made", "device", "everybody"),
    [
        ("def f(other, device):", "zeros", "device", False),
        ("def f(other, device):", "randn", "device", False),
        ("def f(other, device):", "randn", "other.device", False),
        ("def f(args, other):", "randn", "args.device", False),
        ("def f(other, device):\n  for _ in range(9):", "randn", "device", False),
        ("def f(other, device):\n  for _ in range(9):", "zeros", "device", True),
        ("def main(other, device):", "zeros", "device", False),
        (
            "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nwith open() as other:",
            "zeros",
            "device",
            False,
        ),
    ],
)
def test_what_is_made_once_or_drawn_is_for_those_who_ask(start: str, made: str, device: str, everybody: bool) -> None:
    """On the device the numbers are others, and what happens once costs nothing."""
    text = ONCE.format(start=start, made=made, device=device)
    assert [code for code, _ in told(text)] == ["DVL203"] * everybody
    assert [code for code, _ in told(text, RuleLayer(("DVL203",)))] == ["DVL203"]


CALLED = """\
import torch
from torch import nn

def scores(x: torch.Tensor):
    return x.softmax(0).cpu()

def looped(rows, x: torch.Tensor):
    for row in rows:
        print(scores(x).cpu())
"""
WRAPPED = "from torch import nn\n\ndef wrapped(model, args):\n{}    return nn.DataParallel(model)\n"
STEPPED = """\
import torch
from torch import nn

def made(device):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model.to(device)
    return model, optimizer
"""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (CALLED, "DVL201"),
        (CALLED.replace("scores(x).cpu()", "x.cpu().cpu()"), "DVL201"),
        (WRAPPED.format("    if args.several:\n    "), "DVL501"),
        (WRAPPED.format(""), "DVL501"),
        (STEPPED, "DVL109"),
    ],
)
def test_what_few_would_change_is_a_hint_where_the_rule_is_selected(text: str, code: str) -> None:
    assert told(text) == []
    assert told(text, RuleLayer((code,))) == [(code, "info")]


def test_what_is_sure_to_matter_is_told_to_all() -> None:
    replacing = "torch.__future__.set_overwrite_module_params_on_conversion(True)"
    assert told(STEPPED.replace("\n\n", f"\n\n{replacing}\n\n", 1)) == [("DVL109", "warning")]


JOINED = """\
import torch
from torch import nn

class Padded(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.linear = nn.Linear(3, 3)

    def forward(self, batch):
        return self.linear({})
"""


@pytest.mark.parametrize(
    ("joined", "everybody"),
    [
        ("torch.cat([batch, torch.zeros(4, 3)])", True),
        ("torch.cat([batch, torch.zeros(4, 3)]).float().to(self.device)", False),
        ("torch.cat([batch, torch.zeros(4, 3)]).cuda()", False),
        ("torch.cat([batch, torch.zeros(4, 3)]).to(torch.float32)", True),
        ("torch.cat([batch, torch.zeros(4, 3)]).to(batch.device)", True),
    ],
)
def test_what_is_joined_and_moved_at_once_may_be_on_the_host(joined: str, everybody: bool) -> None:
    found = [severity for code, severity in told(JOINED.format(joined)) if code == "DVL103"]
    assert found == ["info"] * everybody
    assert ("DVL103", "info") in told(JOINED.format(joined), RuleLayer(("DVL103",)))
    assert told(JOINED.format(joined), RuleLayer(("DVL103",)), name="tests/net.py") == [("DVL103", "info")]


@pytest.mark.parametrize(
    ("text", "everybody"),
    [
        ("import tensorflow as tf\nprint 'x'\n", False),
        ("import torch\nprint 'x'\n", True),
        # a fragment may be anything
        ("def f(:\n", True),
    ],
)
def test_what_cannot_be_read_matters_where_it_may_be_torch(text: str, everybody: bool) -> None:
    """Seen in dgcnn, whose other half is for TensorFlow and Python 2."""
    assert [code for code, _ in told(text)] == ["DVL900"] * everybody
    assert [code for code, _ in told(text, RuleLayer(("DVL9",)))] == ["DVL900"]


def test_an_index_of_the_cpu_matters_where_the_program_may_run_there() -> None:
    """Seen in yolact, which needs CUDA throughout."""
    text = "import torch\n\ndef f(x: torch.Tensor):\n    return torch.zeros(3, device=x.get_device())\n"
    assert told(text) == []
    assert told(text, RuleLayer(("DVL112",))) == [("DVL112", "warning")]
    assert ("DVL112", "warning") in told(f"{text}\nthere = torch.cuda.is_available()\n")


SCRIPT = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x) + torch.zeros(2, 3)

def {name}(model, x):
    model(x).sum().backward()
"""


def test_a_script_that_trains_and_names_no_device_is_for_the_cpu() -> None:
    """Seen in nlp-tutorial."""
    text = SCRIPT.format(name="train")
    assert told(text) == []
    assert told(text, RuleLayer(("DVL103",))) == [("DVL103", "info")]
    # what somebody else trains may be anywhere
    assert told(text.replace(".backward()", "")) == [("DVL103", "info")]
    assert told(f"{text}    model.to(x.device)\n") == [("DVL103", "info")]


def test_cuda_takes_no_device_of_a_tensor_on_the_cpu() -> None:
    """Seen in vid2vid: `.cuda(x.device)` would raise where `.cuda(x.get_device())` does."""
    asks = (
        "import torch\nthere = torch.cuda.is_available()\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return {}\n"
    )
    assert "DVL112" not in [code for code, _ in told(asks.format("y.cuda(x.get_device())"))]
    assert ("DVL112", "warning") in told(asks.format("y.to(x.get_device())"))


LIGHTING = """
import torch
{base}
    def __init__(self, values):
        {start}self.values = torch.Tensor(values)

    def {name}(self, image):
        return self.values.type_as(image).clone() + image.{use}
"""


def test_a_transform_may_have_all_on_the_cpu() -> None:
    """Seen in NVIDIA's semantic-segmentation."""
    own = LIGHTING.format(base="class Lighting:", start="", name="__call__", use="sum()")
    assert told(own) == []
    assert told(own, RuleLayer(("DVL202",))) == [("DVL202", "info")]


def test_complex_numbers_are_told_to_those_who_ask() -> None:
    """What is moved by hand may be meant so; and what is not, be for the host."""
    text = (FIXTURES / "DVL104_unregistered_tensor_attribute" / "bad_complex_numbers.py").read_text("utf-8")
    rows = [finding.span.row for finding in check_source(text)]
    selected = Config(rule_layers=(RuleLayer(("DVL104",)),))
    asked = [finding.span.row for finding in check_source(text, "rope.py", selected)]
    assert (rows, asked) == ([28], [16, 28, 39])


KEPT = """\
import torch


class Memory(torch.nn.Module):
    queue = None

    def forward(self, images):
        if {}:
            self.queue = torch.zeros(8, 3).to(images.device)
        return images + self.queue
"""


@pytest.mark.parametrize(("test", "told_to_all"), [("self.queue is None", []), ("images.ndim", ["DVL203"])])
def test_what_is_made_on_first_use_is_for_those_who_ask(test: str, told_to_all: list[str]) -> None:
    """Seen in swav: a queue that is kept from an epoch on."""
    text = KEPT.format(test)
    assert [code for code, _ in told(text)] == told_to_all
    assert [code for code, _ in told(text, RuleLayer(("DVL203",)))] == ["DVL203"]


@pytest.mark.parametrize(("export", "told_to_all"), [("torch.onnx.export", []), ("torch.save", ["DVL103"])])
def test_what_a_network_is_recorded_with_is_made_where_that_is(export: str, told_to_all: list[str]) -> None:
    """Seen in so-vits-svc: a method that exports its module to ONNX, on the host."""
    text = (
        "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.layer = nn.Linear(3, 3)\n\n    def write(self, path):\n"
        f"        x = torch.randn(2, 3)\n        {export}(self.layer, (x,), path)\n        return self.layer(x)\n"
        "\ndef place(net: Net, device):\n    return net.to(device)\n"
    )
    assert [code for code, _ in told(text)] == told_to_all
    assert [code for code, _ in told(text, RuleLayer(("DVL103",)))] == ["DVL103"]


@pytest.mark.parametrize(("first", "told_to_all"), [("model.eval()", []), ("model.train()", ["DVL204"])])
def test_a_copy_that_an_evaluation_waits_for_is_for_those_who_ask(first: str, told_to_all: list[str]) -> None:
    """Seen in LlamaGen and stargan-v2: what each step makes is written to a file at once."""
    text = (
        "from torch.utils.data import DataLoader\n\ndef run(data, model, device, save):\n"
        f"    {first}\n    for x in DataLoader(data, pin_memory=True, num_workers=2):\n"
        "        save(model(x.to(device)))\n"
    )
    assert [code for code, _ in told(text)] == told_to_all
    assert [code for code, _ in told(text, RuleLayer(("DVL204",)))] == ["DVL204"]


@pytest.mark.parametrize(("library", "codes"), [("diffusers", ["DVL114"]), ("photomaker", [])])
def test_a_pipeline_of_somebody_else_may_have_parts_that_nothing_else_moves(library: str, codes: list[str]) -> None:
    """Seen in PhotoMaker: an encoder that is no part of the pipeline, and is put where that is by then."""
    text = (
        f"import torch\nfrom {library} import DiffusionPipeline\n\n"
        'pipe = DiffusionPipeline.from_pretrained("x").to("cuda")\npipe.fuse_lora()\n'
        "pipe.enable_model_cpu_offload()\n"
    )
    assert [code for code, _ in told(text, RuleLayer(("DVL1",)))] == codes


@pytest.mark.parametrize(("owner", "told_to_all"), [("nn.Module", ["DVL103"]), ("object", [])])
def test_what_only_callers_know_of_a_function_is_for_those_who_ask(owner: str, told_to_all: list[str]) -> None:
    """Seen in three copies of DETR, whose data set alone calls it, in Kats and in chai-lab."""
    text = (
        f"import torch\nfrom torch import nn\n\nclass Boxes({owner}):\n"
        "    def forward(self, masks: torch.Tensor):\n        if masks.numel() == 0:\n"
        "            return torch.zeros((0, 4), device=masks.device)\n"
        "        return masks * torch.arange(0, masks.shape[-1]).unsqueeze(0)\n"
    )
    assert [code for code, _ in told(text)] == told_to_all
    assert told(text, RuleLayer(("DVL103",))) == [("DVL103", "info")]


@pytest.mark.parametrize(
    ("size", "told_to_all"), [("1", []), ("1, 1", []), ("len(x)", ["DVL203"]), ("4", []), ("5", ["DVL203"])]
)
def test_one_element_that_is_copied_is_for_those_who_ask(size: str, told_to_all: list[str]) -> None:
    """Seen in VIBE and other losses: a zero where there is nothing to add."""
    text = (
        "import torch\nfrom torch import nn\n\nclass Loss(nn.Module):\n    def forward(self, x):\n"
        f"        return torch.zeros({size}).to(x.device)\n"
    )
    assert [code for code, _ in told(text)] == told_to_all
    assert [code for code, _ in told(text, RuleLayer(("DVL203",)))] == ["DVL203"]


@pytest.mark.parametrize(
    ("body", "told_to_all"),
    [
        ("return tuple(torch.tensor([0, 1, 2, 3, 4]).to(z) for _ in range(n))", []),
        (
            "y = z\n        for _ in n:\n            y = y + torch.tensor([0, 1, 2, 3, 4]).to(z)\n        return y",
            ["DVL202"],
        ),
    ],
)
def test_a_comprehension_may_want_as_many_tensors_as_it_has_rounds(body: str, told_to_all: list[str]) -> None:
    """Seen in ffjord."""
    text = (
        f"import torch\nfrom torch import nn\n\nclass Flow(nn.Module):\n    def forward(self, z, n):\n        {body}\n"
    )
    assert [code for code, _ in told(text)] == told_to_all
    assert "DVL202" in [code for code, _ in told(text, RuleLayer(("DVL202",)))]


@pytest.mark.parametrize(
    ("besides", "found"),
    [
        ("stream = torch.cuda.Stream(device=kind)", []),
        ("x = torch.zeros(3, device=kind)", [("DVL607", "info")]),
        ('x = torch.zeros(3, device="cpu").to(kind)', [("DVL607", "warning")]),
        ("x = torch.cuda.is_available()", [("DVL607", "warning")]),
    ],
)
def test_an_accelerator_may_be_missing_where_the_code_is_meant_to_run_without(
    besides: str, found: list[tuple[str, str]]
) -> None:
    """Seen in mergekit, which spreads its work over several GPUs."""
    text = f"import torch\n\nkind = torch.accelerator.current_accelerator().type\n{besides}\n"
    assert [one for one in told(text) if one[0] == "DVL607"] == found
    assert "DVL607" in [code for code, _ in told(text, RuleLayer(("DVL607",)))]


SIZED = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return self.layer(x)

    @property
    def feature_dim(self):
        x = self.layer(torch.zeros(1, 8))
        return {}
"""


@pytest.mark.parametrize(
    ("returned", "everybody"),
    [
        ("x.shape[1]", False),
        ("x.flatten().size(0)", False),
        ("int(x.numel()) // 2", False),
        ("(x.shape[0], x.shape[1])", False),
        ("x", True),
        ("x.shape[1], x", True),
    ],
)
def test_what_is_made_to_be_measured_is_for_those_who_ask(returned: str, everybody: bool) -> None:
    """Seen in torcheeg, whose networks ask for it while they are built."""
    text = SIZED.format(returned)
    assert [code for code, _ in told(text) if code == "DVL103"] == ["DVL103"] * everybody
    assert "DVL103" in [code for code, _ in told(text, RuleLayer(("DVL103",)))]


PATHWAYS = """import torch
from torch import nn

class Pathways(nn.Module):
    def __init__(self, alpha=4):
        super().__init__()
        self.alpha = alpha
        {}

    def forward(self, frames: torch.Tensor):
        frames.permute(0, 1).numpy()
        return frames[::2] + torch.linspace(0, 1, frames.shape[1])
"""


@pytest.mark.parametrize(
    ("name", "part", "everybody"),
    [
        ("project/pytorch/transforms.py", "", False),
        ("project/transforms/corruption.py", "", False),
        ("project/video_augmentations.py", "", False),
        ("project/datasets/pathways.py", "", False),
        ("project/models/pathways.py", "", True),
        ("project/models/transformer.py", "", True),
        # a network, whatever its file is called
        ("project/transforms/coupling.py", "self.layer = nn.Linear(8, 8)", True),
    ],
)
def test_samples_are_on_the_host_while_they_are_transformed(name: str, part: str, everybody: bool) -> None:
    """Seen in zamba, dinov3 and torch-uncertainty."""
    text = PATHWAYS.format(part)
    codes = [code for code, _ in told(text, name=name) if code in ("DVL103", "DVL107")]
    assert codes == ["DVL103"] * everybody
    assert {"DVL103", "DVL107"} <= {code for code, _ in told(text, RuleLayer(("DVL103", "DVL107")), name=name)}


def test_a_leaf_that_may_be_there_already_or_is_replaced_is_for_those_who_ask() -> None:
    """What a call of others has made may be on the device, and torch takes no plain tensor for a parameter."""
    text = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8)).to(device)

    def forward(self, x):
        return x * self.scale
"""
    assert told(text) == [("DVL106", "error")]
    replaced = text + "\n    def reset(self, x):\n        self.scale = x.mean(0)\n"
    assert told(replaced) == []
    assert ("DVL106", "error") in told(replaced, RuleLayer(("DVL106",)))
    renewed = text + "\n    def reset(self, x):\n        self.scale = nn.Parameter(x.mean(0))\n"
    assert told(renewed) == [("DVL106", "error")]
    given = """\
import torch
from torch import nn

def refine(start, device):
    roll = nn.Parameter(start.roll, requires_grad=True).to(device)
    torch.optim.Adam([roll]).step()
"""
    assert told(given) == []
    assert told(given, RuleLayer(("DVL106",))) == [("DVL106", "error")]


SUM = """\
import torch

def train(model, optimizer, batches):
    total = 0
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss
"""


def test_losses_that_nobody_reads_are_for_those_who_ask() -> None:
    """They go with the function."""
    assert told(SUM) == []
    assert told(SUM, RuleLayer(("DVL403",))) == [("DVL403", "warning")]
    assert told(SUM + "    return total / len(batches)\n") == [("DVL403", "warning")]
    collected = SUM.replace("total = 0", "total = []").replace("total += loss", "total.append(loss)")
    assert told(collected) == []
    assert told(collected + "    print(total[0])\n") == [("DVL403", "warning")]


MICRO_BATCHES = """\
import torch

def train(model, optimizer, batches, parts):
    for batch in batches:
        total = torch.zeros(())
        for part in range(parts):
            loss = model(batch[part::parts]).mean()
            loss.backward()
            total += loss
        optimizer.step()
        print(total)
"""
ROWS = """\
def gradients(model, rows):
    values = []
    for row in rows:
        value = model(row.unsqueeze(0)).sum()
        value.backward()
        values.append(value)
    return torch.stack(values)
"""


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MICRO_BATCHES, "optimizer.step()", "pass"),
        (MICRO_BATCHES, "for batch in batches:", "while batch := next(batches, None):"),
        (MICRO_BATCHES, "total = torch.zeros(())", "total: torch.Tensor = torch.zeros(())"),
        (ROWS, "", ""),
    ],
)
def test_losses_that_are_let_go_with_the_step_are_for_those_who_ask(text: str, old: str, new: str) -> None:
    text = text.replace(old, new)
    assert told(text) == []
    assert told(text, RuleLayer(("DVL403",))) == [("DVL403", "warning")]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MICRO_BATCHES, "            loss.backward()\n", "            loss.backward()\n            optimizer.step()\n"),
        (MICRO_BATCHES, "range(parts)", "range(len(batch))"),
        (
            MICRO_BATCHES,
            "    for batch in batches:\n        total = torch.zeros(())",
            "    total = 0\n    for batch in batches:",
        ),
        (MICRO_BATCHES, "total +=", "model.total +="),
        (ROWS, ".unsqueeze(0)", ""),
        (ROWS, "values.append", "model.values.append"),
    ],
    ids=[
        "a step each",
        "the data are counted",
        "kept for all steps",
        "kept by the model",
        "no rows",
        "kept in the model",
    ],
)
def test_losses_that_outlive_the_step_are_told_of(text: str, old: str, new: str) -> None:
    assert told(text.replace(old, new)) == [("DVL403", "warning")]


def test_copies_of_a_handful_of_numbers_are_for_those_who_ask() -> None:
    """Beside the rest of a round they are nothing."""
    text = """\
import torch
from torch import nn

class Unrolled(nn.Module):
    def forward(self, x):
        y = x
        for _ in range(4):
            y = torch.where(y > 0, y, torch.tensor([0.0]).to(x.device))
        return y
"""
    assert told(text) == []
    assert told(text, RuleLayer(("DVL202",))) == [("DVL202", "warning")]
    # seen in CT-CLIP and GiGL
    assert told(text.replace("[0.0]", "[0.0, 1.0]")) == []
    assert told(text.replace("torch.tensor([0.0]", "torch.Tensor([]")) == []
    assert told(text.replace("[0.0]", "[0.0, 1.0, 2.0, 3.0, 4.0]")) == [("DVL202", "warning")]


@pytest.mark.parametrize(
    ("used", "told_to_all"),
    [
        ("total += model(images).sum().item()", []),
        ("correct = model(images).argmax(1).cpu()", []),
        ("loss = model(images).sum()", ["DVL204"]),
        ("loss = model(images).sum()\n        if loss > 3:\n            print(loss.item())", ["DVL204"]),
        ("loss = model(images).sum()\n        total += loss.item()", []),
        ("with autocast():\n            total += model(images).sum().item()", []),
        ("with autocast():\n            if total > 3:\n                print(model(images).item())", ["DVL204"]),
    ],
)
def test_who_waits_in_every_step_anyway_gains_nothing(used: str, told_to_all: list[str]) -> None:
    """Seen in torchquantum and aihwkit."""
    text = f"""from torch.utils.data import DataLoader

def train(dataset, model, optimizer, device="cuda"):
    total = 0.0
    for images, labels in DataLoader(dataset, pin_memory=True, num_workers=2):
        images = images.to(device)
        {used}
        optimizer.step()
"""
    assert [code for code, _ in told(text) if code == "DVL204"] == told_to_all
    assert "DVL204" in [code for code, _ in told(text, RuleLayer(("DVL204",)))]


@pytest.mark.parametrize(
    ("code", "told_to_all"),
    [
        ("def copied(x: torch.Tensor, device):\n    return x.to(device).data.numpy()", []),
        ("def copied(x: torch.Tensor, device):\n    y = x.to(device)\n    return y.numpy()", ["DVL107"]),
        ("device = 'cuda'\ndef copied(x: torch.Tensor):\n    return x.to(device).numpy()", ["DVL107"]),
    ],
)
def test_who_moves_and_reads_at_once_is_told_the_host(code: str, told_to_all: list[str]) -> None:
    """Seen in torchdistill, which copies what it keeps in a file."""
    text = f"import torch\n\n{code}\n"
    assert [found for found, _ in told(text) if found == "DVL107"] == told_to_all
    assert "DVL107" in [found for found, _ in told(text, RuleLayer(("DVL107",)))]


POSITIONS = """import torch
from torch import nn

class Positions(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        {part}

    def forward(self, n=None, position: torch.Tensor | None = None):
        {default}
        return position.unsqueeze(1) * torch.arange(self.width, dtype=torch.float32)
"""


@pytest.mark.parametrize(
    ("default", "part", "everybody"),
    [
        ("position = torch.arange(n) if position is None else position", "", False),
        ("position = position * 2", "", True),
        ("position = torch.arange(n) if position is None else position", "self.layer = nn.Linear(8, 8)", False),
        ("", "self.layer = nn.Linear(8, 8)", True),
    ],
)
def test_who_makes_an_argument_on_the_host_holds_it_to_be_there(default: str, part: str, everybody: bool) -> None:
    """Seen in timesfm, which moves what it makes of positions afterwards."""
    text = POSITIONS.format(default=default, part=part)
    assert [code for code, _ in told(text) if code == "DVL103"] == ["DVL103"] * everybody
    assert "DVL103" in [code for code, _ in told(text, RuleLayer(("DVL103",)))]


def test_exports_run_on_the_host() -> None:
    """What is where the module is, or its caller keeps it, is on the CPU in a file that exports it."""
    text = """\
import torch
from torch import nn

class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        mask = torch.zeros(4, 4)
        return self.layer(x) * mask
"""
    assert told(text, name="net.py") == [("DVL103", "info")]
    for name in ("diffusion_onnx.py", "onnx_export.py", "tools/convert_weights.py"):
        assert told(text, name=name) == []
        assert told(text, RuleLayer(("DVL103",)), name=name) == [("DVL103", "info")]
    assert told(text, name="converted.py") == [("DVL103", "info")]


def test_a_module_that_registers_the_one_that_it_takes_is_asked_of() -> None:
    text = """\
from torch import nn

class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = {"small": nn.Linear(4, 4), "large": nn.Linear(4, 8)}

    def choose(self, name):
        self.net = self.nets[name]

    def forward(self, x):
        return self.net(x)
"""
    assert told(text) == []
    assert told(text, RuleLayer(("DVL105",))) == [("DVL105", "info")]
    assert told(text.replace("self.net = self.nets[name]", "return self.nets[name]")) == [("DVL105", "warning")]


def test_a_part_of_an_argument_need_not_be_where_its_other_parts_are() -> None:
    text = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, data):
        x = self.layer(data["x"])
        return torch.tensor_split(data["x"], data["sizes"])
"""
    assert told(text, RuleLayer(("DVL108",))) == []


def test_arguments_that_set_up_their_process_choose_its_device() -> None:
    text = """\
import torch.distributed as dist
{imported}

def main():
    dist.init_process_group("nccl")
    {made}
    dist.barrier()

if __name__ == "__main__":
    main()
"""
    plain = text.format(imported="", made="pass")
    assert told(plain) == [("DVL502", "warning")]
    imported, made = "from transformers import TrainingArguments", 'arguments = TrainingArguments("out")'
    assert told(text.format(imported=imported, made=made)) == []


NETWORK = """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x * 2

def {name}():
    net = Net().cuda()
    for _ in range(10):
        with torch.cuda.amp.autocast():
            print(net(torch.ones(3, 4).cuda()).shape)

if __name__ == "__main__":
    {name}()
"""


def test_a_trial_of_a_network_is_run_by_hand() -> None:
    """Seen in sd-scripts: what costs, or where else it could run, matters to nobody there."""
    assert told(NETWORK.format(name="try_net")) == []
    assert ("DVL701", "warning") in told(NETWORK.format(name="try_net"), RuleLayer(("DVL701",)))
    assert ("DVL701", "warning") in told(NETWORK.format(name="train"))
    parsed = NETWORK.format(name="try_net").replace('__":\n', '__":\n    print(parser.parse_args())\n')
    assert ("DVL701", "warning") in told(parsed)


def test_a_comparison_on_which_nothing_hangs_is_for_those_who_ask() -> None:
    """Without an accelerator, what seeds it waits for one."""
    folder = FIXTURES / "DVL110_device_comparison_always_false"
    text = (folder / "bad_idle.py").read_text(encoding="utf-8")
    assert "DVL110" not in [code for code, _ in told(text)]
    assert "DVL110" in [code for code, _ in told(text, RuleLayer(("DVL110",)))]
    text = (folder / "bad.py").read_text(encoding="utf-8")
    assert [code for code, _ in told(text)].count("DVL110") == text.count("# expect: DVL110")


def test_batches_that_an_option_moves_are_for_those_who_ask() -> None:
    """Whoever names a device for them has asked for that."""
    text = """\
import torch
from torch.utils.data import DataLoader, default_collate


class Moved:
    def __init__(self, device=None):
        self.device = device

    def __call__(self, samples):
        x = default_collate(samples)
        if self.device is not None:
            x = x.to(self.device)
        return x


class Loader(DataLoader):
    def __init__(self, dataset, device=None, **options):
        self.moved = Moved(device)
        super().__init__(dataset, collate_fn=self.moved, **options)
"""
    assert "DVL303" not in [code for code, _ in told(text)]
    assert told(text, RuleLayer(("DVL303",))) == [("DVL303", "info")]
    assert ("DVL303", "info") in told(text.replace("if self.device is not None", "if x.is_floating_point()"))


def test_a_choice_of_cuda_or_the_cpu_opens_nothing_where_cuda_is() -> None:
    """Whoever has asked for CUDA gains no other accelerator by it."""
    text = """\
import torch
from torch import nn


class Extractor:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def load(self, model: nn.Module):
        if torch.cuda.is_available():
            print("Using the GPU")
            model = model.cuda()
        return model
"""
    assert "DVL601" not in [code for code, _ in told(text)]
    assert told(text, RuleLayer(("DVL601",))) == [("DVL601", "info")]
    wider = text.replace('else "cpu")', 'else "mps" if torch.backends.mps.is_available() else "cpu")')
    assert told(wider) == [("DVL601", "info")]


DETOURS = """\
import torch

def there_and_back(model, x, y, device):
    x, y = x.to(device), y.to(device)
    predicted = model(x).detach().cpu()
    true = y.detach().cpu()
    return (predicted - true).abs().mean()


def copied_again(model, optimizer, batches, device):
    for x in batches:
        first = model(x.to(device))
        second = model(x.to(device))
        (first + second).sum().backward()
        optimizer.step()
"""


def test_one_copy_too_many_is_for_those_who_ask() -> None:
    assert told(DETOURS) == []
    assert told(DETOURS, RuleLayer(("DVL201",))) == [("DVL201", "info"), ("DVL201", "info")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("......", []), ("{% if trains %}", []), ("import {{ package }}", []), ("x = = 1", [("DVL900", "error")])],
)
def test_what_is_no_python_by_intention_is_for_those_who_ask(line: str, expected: list[tuple[str, str]]) -> None:
    text = f"import torch\n{line}\nx = torch.ones(3)\n"
    assert told(text) == expected
    assert len(told(text, RuleLayer(("DVL900",)))) == 1


def test_a_number_of_a_gpu_and_a_flush_in_every_step_are_for_those_who_ask() -> None:
    text = """\
import gc

import torch

def train(loader, model, loss_fn, optimizer):
    model = model.to("cuda:1")
    for images, labels in loader:
        optimizer.zero_grad()
        loss_fn(model(images), labels).backward()
        optimizer.step()
        torch.cuda.empty_cache()
        gc.collect()
"""
    assert not {"DVL404", "DVL603"} & {code for code, _ in told(text)}
    assert told(text, RuleLayer(("DVL404", "DVL603"))) == [("DVL603", "info"), ("DVL404", "info"), ("DVL404", "info")]
    found = check_source(text, "m.py", Config(rule_layers=(RuleLayer(("DVL404",)),)))
    assert [finding.fix is None for finding in found] == [False, True]


def test_a_conversion_to_what_a_tensor_was_made_with_is_for_those_who_ask() -> None:
    text = """\
import torch

def biased(query: torch.Tensor):
    bias = torch.zeros(3, dtype=query.dtype, device=query.device)
    bias.to(query.dtype)
    return query + bias
"""
    assert told(text) == []
    assert told(text, RuleLayer(("DVL102",))) == [("DVL102", "info")]


@pytest.mark.parametrize(("part", "expected"), [("[:, :, :-1]", []), ("[:, -1]", []), ("[:2]", [("DVL301", "info")])])
def test_what_has_gaps_in_memory_is_copied_on_the_host_in_any_case(part: str, expected: list[tuple[str, str]]) -> None:
    text = f"""\
import torch
from torch import nn
from torch.utils.data import DataLoader

def train(dataset, model: nn.Module, loss_fn, optimizer, device):
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    for data in loader:
        features = data{part}.to(device)
        optimizer.zero_grad()
        loss_fn(model(features)).backward()
        optimizer.step()
"""
    assert [one for one in told(text) if one[0] == "DVL301"] == expected
    assert [one for one in told(text, RuleLayer(("DVL301",))) if one[0] == "DVL301"] == [("DVL301", "info")]


def test_a_module_that_a_test_makes_is_for_those_who_ask() -> None:
    """Seen in veScale, whose tests of pipelines move and replace the parts of a toy one by one."""
    text = "from torch import nn\n\n\nclass Toy(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    text += "        self.parts = [nn.Linear(8, 8) for _ in range(4)]\n\n    def forward(self, x):\n"
    text += "        return self.parts[0](x)\n"
    assert told(text, name="net.py") == [("DVL105", "warning")]
    assert told(text, name="tests/net.py") == []
    assert told(text, RuleLayer(("DVL105",)), name="tests/net.py") == [("DVL105", "info")]


DRAWN = """\
import torch

def {name}({parameters}):
    {chosen}
    generator = torch.Generator().manual_seed(42)
    return torch.randn(3, generator=generator, device=device)
"""


@pytest.mark.parametrize("parameters", ["device", "self, device=None"])
def test_a_mismatch_with_a_device_that_a_fixture_says_is_for_those_who_ask(parameters: str) -> None:
    """Which may be the CPU in every run; elsewhere, who calls a function gives it what it is made for."""
    text = DRAWN.format(name="test_numbers", parameters=parameters, chosen="")
    assert told(text) == []
    assert told(text, RuleLayer(("DVL101",))) == [("DVL101", "error")]
    assert told(text, name="tests/unit/numbers.py") == []
    assert told(text.replace("test_numbers", "numbers"), name="numbers.py") == [("DVL101", "error")]


def test_a_mismatch_with_a_device_that_a_test_chooses_is_for_all() -> None:
    chosen = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    text = DRAWN.format(name="test_numbers", parameters="dtype", chosen=chosen)
    assert told(text) == [("DVL101", "error")]


@pytest.mark.parametrize(("name", "everybody"), [("m.py", True), ("tests/test_m.py", False)])
def test_what_only_costs_in_a_test_is_for_those_who_ask(name: str, everybody: bool) -> None:
    """Seen in ao: that a second move does nothing is what is tested."""
    text = "import torch\n\ndef moved(devices):\n    for device in devices:\n"
    text += "        layer = torch.nn.Linear(3, 3, device=device)\n        layer.to(device)\n"
    assert told(text, name=name) == ([("DVL201", "warning")] if everybody else [])
