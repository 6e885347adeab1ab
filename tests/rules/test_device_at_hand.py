"""Which device the help of a written `cuda` names: one that would do, or none."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.rules.code.device_candidates import made_of

CREATED = Config(rule_layers=(RuleLayer(("DVL203",)),))
ONE_RULE = Config(rule_layers=(RuleLayer(("DVL601",)),))
CHOSEN = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
SIDES = """
def f(net, ids, off):
    if off:
        raise ValueError(off)
    elif ids is None:
        device = next(net.parameters()).device
    else:
        device = ids.device
    for _ in range(3):
        torch.ones(3).cuda()
"""
HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n\n\n"


def helps(code: str) -> list[str]:
    found = check_source(HEAD + dedent(code), "file.py", ONE_RULE)
    return [finding.help for finding in found]


@pytest.mark.parametrize(
    "code",
    [
        # a number that CUDA gives raises without CUDA, as what it would replace does
        """
        class Detector:
            def __init__(self):
                self.device = torch.cuda.current_device()

            def detect(self, image):
                return torch.from_numpy(image).cuda()
        """,
        """
        def f(image):
            device = torch.cuda.current_device()
            return torch.from_numpy(image).cuda()
        """,
        # a static method has no object
        """
        class Detector:
            def __init__(self, device):
                self.device = device

            @staticmethod
            def detect(image):
                return torch.from_numpy(image).cuda()
        """,
        # None has no device
        """
        def f(n, bias: torch.Tensor | None):
            if bias is None:
                return torch.zeros(n).cuda()
        """,
        # a local of unknown origin may be a batch, or not be bound yet
        """
        def f(data, net):
            image, label = data.pull(0)
            x = torch.ones(image.shape[0])
            return net(x.cuda())
        """,
        """
        def f(batches, net):
            for x in batches:
                x.cuda()
                kept = net.kept
                kept.view(1, -1)
        """,
        # what is moved is made of it
        """
        def f(x, net, prepare):
            size = x.shape[:2]
            return net(prepare((x + 1.0) * 127.5).cuda(), size)
        """,
        """
        def f(image, net):
            height = image.shape[0]
            x = torch.from_numpy(image)
            x = x.unsqueeze(0)
            return net(x.cuda()), height
        """,
        # a part of it is moved, too
        """
        def f(flows, features, held):
            for i, feature in enumerate(features):
                feature = feature.cuda() if held else feature
                flow = flows[:, i]
                if held:
                    flow = flow.cuda()
                feature = feature + flow
            return feature
        """,
        """
        class Data(torch.utils.data.Dataset):
            def __init__(self, samples: torch.Tensor, labels: torch.Tensor, there: bool):
                self.samples = samples
                self.labels = labels
                if there:
                    self.samples = self.samples.cuda()
                    self.labels = self.labels.cuda()
        """,
        # no tensor, but several
        """
        class Loss(nn.Module):
            def forward(self, predictions, targets):
                boxes, scores = predictions
                wanted = torch.zeros(boxes.size(0))
                return boxes - wanted.cuda(), scores
        """,
        """
        class Net(nn.Module):
            def forward(self, clips):
                first = clips[0][0] if isinstance(clips[0], list) else clips[0]
                return first + torch.ones(first.size(0)).cuda()
        """,
        # a word, which says for what the module runs
        """
        class Expert(nn.Module):
            def forward(self, mode, features):
                weights = torch.ones(len(features)).cuda()
                return weights if mode in ("train", "test") else weights * 2
        """,
        """
        class Expert(nn.Module):
            def forward(self, mode, features):
                weights = torch.ones(len(features)).cuda()
                return weights if mode == "train" else weights * 2
        """,
        # nobody reads it
        """
        class Expert(nn.Module):
            def forward(self, mode, features):
                return torch.ones(len(features)).cuda()
        """,
        # a list, until its tensors are put together
        """
        def f(labels, logits, net):
            weights = torch.ones(len(logits)).cuda()
            labels = torch.stack(labels).to(net.place)
            return weights * labels[:, 0]
        """,
        # nobody may have given it
        """
        def f(n, time=None):
            steps = torch.zeros(n).cuda()
            return steps.copy_(time.unsqueeze(0))
        """,
        # where something else is
        """
        def evaluate(model, loader, on_host):
            gather_device = torch.device("cpu") if on_host else torch.device("cuda")
            for x in loader:
                model(x.cuda()).to(gather_device)
        """,
        # nowhere, or on the CPU, unless somebody says otherwise
        """
        def load(state, device=torch.device("cpu")):
            return {name: part.cuda() for name, part in state.items()}
        """,
        """
        def load(state, device=None):
            return {name: part.cuda() for name, part in state.items()}
        """,
        # the CPU, as it was when the object was made
        """
        class Memory(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.register_buffer("memory", torch.rand(n))
                self.device = self.memory.device

            def resize(self, n):
                self.memory = torch.rand(n).cuda()
        """,
        # where the thing was, kept to put it back
        """
        def broadcast(bias: torch.Tensor):
            origin_device = bias.device
            whole = bias.cuda()
            torch.distributed.broadcast(whole, src=0)
            return whole.to(origin_device)
        """,
        """
        def quantize(model):
            model_device = next(model.parameters()).device
            if model_device.type == "cpu":
                model.cuda()
            return model
        """,
        """
        def gather(parts, group):
            target_device = parts[0].device
            flat = torch.cat([part.data for part in parts]).cuda()
            torch.distributed.all_reduce(flat, group=group)
            return flat.to(target_device)
        """,
        # where the result goes on to
        """
        def collect(values, device: torch.device):
            kept = []
            for value in values:
                value = value.view(-1)
                value = value.cuda()
                torch.distributed.all_reduce(value)
                kept.append(value.detach().clone().to(device))
            return kept
        """,
        # the CPU if the caller says so, for another reason than that there is nothing else
        """
        def features(model, loader, on_cpu=False):
            gather_device = torch.device("cpu") if on_cpu else torch.device("cuda")
            kept = torch.zeros(9, 8, device=gather_device)
            for index, images in loader:
                kept[index] = model(images.cuda()).to(gather_device)
            return kept
        """,
        # nobody may have given it
        """
        class Table(nn.Module):
            def __init__(self, sizes, device=None):
                super().__init__()
                self.offsets = torch.cumsum(torch.tensor(sizes), 0).cuda()
        """,
        # bound on one way only, or not yet when the function is called
        """
        def f(net, ids=None):
            if ids is None:
                device = next(net.parameters()).device
                ids = torch.arange(9, device=device)
            steps = torch.arange(len(ids))
            return steps.cuda(), ids
        """,
        """
        def build():
            return nn.Linear(8, 2).cuda()


        if __name__ == "__main__":
            model = build()
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model.to(device)
        """,
        # it need not be a tensor
        """
        def f(batch: torch.Tensor):
            ids = batch["ids"] if isinstance(batch, dict) else batch
            return torch.zeros(len(ids)).cuda()
        """,
    ],
)
def test_no_help_names_what_has_no_such_device(code: str) -> None:
    told = helps(code)
    assert told
    assert all(help_.startswith("choose once") for help_ in told)


@pytest.mark.parametrize(
    ("code", "device"),
    [
        ("def f(x):\n    return x * torch.ones(x.shape[0]).cuda()", "x.device"),
        (
            "def f(x: torch.Tensor):\n    ids = np.argsort(x.cpu().numpy())\n    return x[torch.tensor(ids).cuda()]",
            "x.device",
        ),
        ("def f(x: torch.Tensor, ids):\n    n = len(x)\n    return x + torch.tensor([n, *ids]).cuda()", "x.device"),
        ("def f(x, device):\n    return torch.ones(3).cuda() + x", "device"),
        ("def f(x, device):\n    y = make(x, device=device)\n    return y.cuda()", "device"),
        ("class Net(nn.Module):\n    def forward(self, x):\n        return x + torch.ones(3).cuda()", "x.device"),
        (
            (
                "def f(x):\n    if isinstance(x, list):\n        x = torch.cat(x)\n"
                "    return x * torch.ones(x.shape[0]).cuda()"
            ),
            "x.device",
        ),
        ("device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\ntorch.ones(3).cuda()", "device"),
        ("device = torch.device('cuda:1')\ndef f(n):\n    return torch.ones(n).cuda()", ""),
        (CHOSEN.replace("'cuda'", "'cuda:{}'.format(2)") + "def f():\n    return [torch.ones(3).cuda()]", ""),
        (CHOSEN.replace("'cuda'", "'cuda:1'") + "def f():\n    return [torch.ones(3).cuda()]", ""),
        (CHOSEN.replace("'cuda'", "'cuda:0'") + "def f():\n    return [torch.ones(3).cuda()]", "device"),
        (f"{CHOSEN}def f():\n    return [torch.ones(3).cuda()]", "device"),
        (f"{CHOSEN}def f():\n    def g():\n        return torch.ones(3).cuda()\n    return g", "device"),
        (f"def f(used):\n    {CHOSEN.replace('if', 'if used and')}    with used:\n        used.cuda()", "device"),
        ("def f(x: torch.Tensor):\n    assert isinstance(x, torch.Tensor)\n    torch.ones(len(x)).cuda()", "x.device"),
        (SIDES, "device"),
        (SIDES.replace("raise ValueError", "print"), ""),
        ("def f(x, device):\n    y = torch.ones(len(x)).cuda()\n    return x.to(device), y", "device"),
        ("def f(batches, device):\n    for dev in [device]:\n        pass\n    return batches.cuda()", "device"),
    ],
)
def test_help_names_the_device_of_an_argument_that_meets_it(code: str, device: str) -> None:
    (told,) = helps(code)
    if device:
        assert told == f"use `.to({device})`" or (
            told.startswith("create it there") and f"(..., device={device})" in told
        )
    else:
        assert told.startswith("choose once")


@pytest.mark.parametrize("device", ["torch.device(self.number)", "torch.device('cuda', rank)"])
def test_help_names_the_device_that_is_given(device: str) -> None:
    assert helps(f"def f(self, x, rank):\n    return x.cuda(device={device}, non_blocking=True)") == [
        f"use `.to({device})`"
    ]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("y = x + z\ny.cuda()", {"y", "x", "z"}),
        ("y.cuda()\ny = x", {"y"}),
        ("for y in ys:\n    y.float().cuda()", {"y", "ys"}),
        ("a, b = pair\n(a if c else 0).cuda()", {"a", "c", "pair"}),
        ("y: T = x.data[0]\ny.cuda()", {"y", "x"}),
        ("y = z\ny += args.x\ny.cuda()", {"y", "z", "args.x"}),
        ("torch.zeros(x.shape, len(z), y.size(0)).cuda()", {"torch"}),
        ("f(k=x.item(), n=z.T).cuda()", {"z"}),
        ("self.cuda()", {"self"}),
        ("self.net(self.x).cuda()", {"self.x"}),
        ("self.x = y\nself.x.cuda()", {"self.x", "y"}),
    ],
)
def test_a_value_is_made_of_what_is_read_for_it(text: str, made: set[str]) -> None:
    tree = ast.parse(text)
    moved = [
        node.func.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"
    ]
    assert made_of(moved[0], tree) == made


@pytest.mark.parametrize(
    ("asked", "told"), [("self.device >= 0", "choose once"), ("self.device", "use `.to(self.device)`")]
)
def test_an_index_below_zero_is_no_device(asked: str, told: str) -> None:
    """Seen in gluonts: -1 stands for the CPU, and raises in `.to()`."""
    (said,) = helps(
        f"""
        class Trainer:
            def __init__(self, model, number: int):
                self.device = number if torch.cuda.is_available() else -1
                if {asked}:
                    self.model = model.cuda(self.device)
        """
    )
    assert said.startswith(told)


def test_the_type_for_autocast_is_that_of_a_tensor() -> None:
    """Seen in ignite: what the code calls its device is a string, a device or None."""
    function = "def f(net, x, device='cpu'):\n    with torch.autocast('cuda'):\n        return net(x.to(device))\n"
    config = Config(rule_layers=(RuleLayer(("DVL602",)),))
    (found,) = check_source(f"import torch\n{function}", config=config)
    assert "`x.device.type`" in found.help
    assert "`device.type`" not in found.help


DECORATED = """
@torch.autocast("cuda", enabled=False)
def rotate(x):
    with torch.autocast("cuda", enabled=False):
        return x
"""


def test_a_decorator_knows_no_device_in_use() -> None:
    """Seen in x-transformers."""
    found = check_source(HEAD + DECORATED, "file.py", Config(rule_layers=(RuleLayer(("DVL602",)),)))
    decorator, inside = (finding.help for finding in found)
    assert decorator.startswith("say it inside the function")
    assert inside.startswith("pass the type")


SPELLED_OUT = """
import torch

for data_device, device in ((None, "cuda"), ("cpu", None)):
    run(torch.zeros(3).to("cuda:0"), device)
"""
UNPACKED = """
import torch
from data import load

def train(args):
    features, mask = load(args)
    mask.view(-1)
    if args.gpu >= 0:
        features = features.cuda()
"""
ARGUMENT = """
import torch

def train(features, model, mask: torch.Tensor):
    return model.cuda()
"""


@pytest.mark.parametrize(("text", "named"), [(SPELLED_OUT, ""), (UNPACKED, ""), (ARGUMENT, "mask.device")])
def test_what_may_be_none_or_anywhere_is_no_device_to_name_instead_of_cuda(text: str, named: str) -> None:
    chosen = Config(rule_layers=(RuleLayer(("DVL601", "DVL602")),))
    said = [found.help or "" for found in check_source(text, config=chosen)]
    assert said
    wanted = f"`.to({named})`" if named else "choose once"
    assert all(wanted in text for text in said)


def test_the_number_of_a_gpu_is_no_device() -> None:
    crop = """
    class Crop:
        def __init__(self):
            self.device = -1

        def crop(self, boxes, scores):
            if boxes.is_cuda:
                self.device = torch.cuda.current_device()
                scores = scores.cuda(self.device)
            return scores
    """
    assert helps(crop) == ["use `.to(boxes.device)`"]
    assert helps(crop.replace("-1", "device").replace("torch.cuda.current_device()", "device")) == [
        "use `.to(self.device)`"
    ]
    # seen in AutoDL-Projects: assigned beside something else
    pair = "def f(x):\n    times, device = [], {}\n    return x.cuda(device=device), times\n"
    assert helps(pair.format("torch.cuda.current_device()")) != helps(pair.format("choose()"))


ARRAYS = """
def f(faces, other: torch.Tensor):
    sums = np.zeros((3, 3))
    {use}
    return torch.ones(3).cuda() + faces[:, 0].sum() + other[0]
"""


@pytest.mark.parametrize(
    ("use", "device"),
    [
        ("sums[faces[:, 0]] = 1", "other"),
        ("print(np.unique(faces))", "other"),
        ("print(torch.from_numpy(faces[0]))", "other"),
        ("sums[faces.shape[0]] = 1", "faces"),
    ],
)
def test_an_array_has_no_device_to_name(use: str, device: str) -> None:
    """Seen in Pose2Mesh and yolact."""
    config = Config(rule_layers=(RuleLayer(("DVL601",)),))
    hinted = ARRAYS.replace("faces,", "faces: torch.Tensor,").format(use=use)
    (found,) = check_source(HEAD + hinted, config=config)
    assert f"device={device}.device" in found.help


KEPT = """
class Average:
    def __init__(self, model, device{default}):
        self.model = model
        self.device = device

    def restore(self, path):
        self.model.load_state_dict(torch.load(path)["model"], assign=True)
        return self.model(torch.load("best.pt").to(torch.float16))
"""


@pytest.mark.parametrize(("default", "place"), [("", "self.device"), ("=''", '"cpu"'), ("='cuda'", "self.device")])
def test_an_empty_name_is_no_device(default: str, place: str) -> None:
    """Seen in GLIP: `map_location=''` raises."""
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    helps = {found.help for found in check_source(HEAD + KEPT.format(default=default), config=config)}
    assert f"add `map_location={place}`" in helps


@pytest.mark.parametrize(
    ("held", "told"),
    [
        # seen in NeuS: naming what is CUDA as well opens nothing
        ('torch.device("cuda")', False),
        ('f"cuda:{rank}"', False),
        ("device", True),
        ('"cuda" if torch.cuda.is_available() else "cpu"', True),
    ],
)
def test_a_device_that_is_cuda_itself_is_none_at_hand(held: str, told: bool) -> None:
    text = f"class Rays:\n    def __init__(self, device, rank):\n        self.device = {held}\n\n"
    text = HEAD + text + "    def some(self, i):\n        return self.rays[i].cuda()\n"
    assert ["self.device" in one.help for one in check_source(text, "file.py", ONE_RULE)] == [told]
    text = HEAD + f"def f(x, rank, device):\n    here = {held}\n    device = here\n    return x.cuda()\n"
    assert ["`.to(device)`" in one.help for one in check_source(text, "file.py", ONE_RULE)] == [True]


@pytest.mark.parametrize("move", ["image.to(device=self.device)", "image.to(self.device)", 'image.to("cuda:0")'])
def test_the_device_of_what_is_moved_away_is_none_at_hand(move: str) -> None:
    """Seen in gsplat: what is given may be on the host, and all work is done elsewhere."""
    text = (
        "class Trainer:\n    def __init__(self, image: torch.Tensor):\n"
        f'        self.device = torch.device("cuda:0")\n        self.image = {move}\n'
    )
    helps = [one.help for one in check_source(HEAD + text, "file.py", Config(rule_layers=(RuleLayer(("DVL602",)),)))]
    assert helps
    assert not any("image.device" in text for text in helps)


KERNELS = """
from torch.utils.cpp_extension import load

attention = load(name="attention", sources=["op.cpp", "{}"])


device = "cuda" if torch.cuda.is_available() else "cpu"


def f(k):
    return attention.forward(k, torch.empty(3, device="cuda"))
"""


@pytest.mark.parametrize(("kernel", "told"), [("kernel.cu", 0), ("kernel.cpp", 1)])
def test_kernels_for_cuda_need_it(kernel: str, told: int) -> None:
    """Seen in RWKV-LM."""
    found = check_source(HEAD + KERNELS.format(kernel), "file.py")
    assert [one.code for one in found] == ["DVL602"] * told


GRAPHS = """
class Clip(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(4, 4)

    def encode(self, graph):
        return self.encoder(graph)

    def forward(self, graph{default}):
        {first}
        return torch.arange(3).cuda()
"""


@pytest.mark.parametrize(
    ("first", "default", "named"),
    [
        ("self.head(graph)", "", True),
        ("print(graph.device)", "", True),
        # a method takes anything, and so does a part of which nobody knows what it is
        ("self.encode(graph)", "", False),
        ("self.encoder(graph)", "", False),
        ("self.encoder(graph.to(self.head.weight.device))", "", False),
        # it may be left out
        ("self.head(graph)", "=None", False),
    ],
)
def test_an_argument_says_a_device_where_it_is_shown_to_have_one(first: str, default: str, named: bool) -> None:
    """Seen in GraphGPT: a graph that is only handed to methods, and moved there."""
    found = check_source(HEAD + GRAPHS.format(first=first, default=default), "file.py", CREATED)
    assert ["graph.device" in str(finding.help) for finding in found] == [named]
