"""Where DVL604 wants a checkpoint to go, and how safe that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.load import Resolver
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability
from devlint.rules.selection import validate

OWN_STATE = """
import torch

class Sampler:
    def load(self, path):
        self.load_state_dict(torch.load(path))

    def load_state_dict(self, state):
        self.count = state["count"].clone()
"""


@pytest.mark.parametrize("owner", ["Sampler", "Net(torch.nn.Module)"])
def test_a_state_that_a_class_takes_itself_may_be_wanted_where_it_was(owner: str) -> None:
    """Seen in TorchRL, and in drivestudio, whose modules keep parts of the state as they are."""
    text = OWN_STATE.replace("Sampler", owner)
    (own,) = [found for found in check_source(text) if found.code == "DVL604"]
    assert own.fix is not None
    assert own.fix.applicability is Applicability.UNSAFE
    assert own.help == 'add `map_location="cpu"`'


def test_the_state_of_a_module_is_copied_to_where_that_is() -> None:
    text = OWN_STATE.partition("    def load_state_dict")[0].replace("Sampler", "Net(torch.nn.Module)")
    (module,) = [found for found in check_source(text) if found.code == "DVL604"]
    assert module.fix is not None
    assert module.fix.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    ("imports", "base", "told"),
    [("import random", "", False), ("import torch", "", True), ("from torch.nn import Module", "(Module)", True)],
)
def test_a_class_that_knows_no_tensors_restores_numbers(tmp_path: Path, imports: str, base: str, told: bool) -> None:
    source = (
        f"{imports}\n\nclass Source{base}:\n    def load_state_dict(self, state):\n        self.left = state['left']\n"
    )
    resume = """
import torch
from source import Source

def resume(source: Source, path):
    state = torch.load(path)
    source.load_state_dict(state["source"])
"""
    (tmp_path / "source.py").write_text(source, encoding="utf-8")
    (tmp_path / "resume.py").write_text(resume, encoding="utf-8")
    result = check_paths([tmp_path], Resolver(validate, Config()))
    assert [finding.code for finding in result.findings if not finding.asked] == ["DVL604"] * told


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ("def read(self, path)", "self.device"),
        ("@classmethod\n    def read(cls, path)", '"cpu"'),
        ("@staticmethod\n    def read(path)", '"cpu"'),
    ],
)
def test_without_an_object_there_is_no_device_of_it(head: str, place: str) -> None:
    text = f"""
import torch

class Results:
    def __init__(self, device):
        self.device = device
        self.boxes = torch.zeros(4, device=self.device)

    {head}:
        return torch.load(path)["boxes"]
"""
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    (found,) = check_source(text, config=config)
    assert found.help == f"add `map_location={place}`"


RESUMED = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def save(net, path):
    torch.save(net.state_dict(), path)

def f(net, path, device):
    points = torch.zeros(9, 2).to(device)
    state = torch.load(path)
    BODY
"""


@pytest.mark.parametrize(
    ("body", "place"),
    [
        # seen in torchdiffeq: what was moved is taken from the checkpoint as it comes
        ("net.load_state_dict(state['net']); points = state['points']; net(points)", "device"),
        ("net.load_state_dict(state['net']); net(points); return state['epoch']", '"cpu"'),
        # seen in pytorch/examples: it is moved from there itself
        ("net.load_state_dict(state['net']); points = state['points']; points = points.to(device)", '"cpu"'),
        # seen in ogb: what workers read and a loader copies in batches has to stay on the host
        ("rows, kinds = state['x'], state['y']; return TensorDataset(rows[1:], kinds[1:])", '"cpu"'),
        ("return DataLoader(state)", '"cpu"'),
        ("return net(state['x'])", "device"),
    ],
)
def test_a_load_goes_where_it_is_used(body: str, place: str) -> None:
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    (found,) = check_source(RESUMED.replace("BODY", body.replace("; ", "\n    ")), config=config)
    assert found.help.partition(":")[0] == f"add `map_location={place}`"


def test_processes_with_a_gpu_each_load_to_that_of_the_one_that_saved() -> None:
    """Seen in inplace_abn; one process that needs CUDA has the only GPU."""
    text = "import torch\nfrom torch.nn.parallel import {}\nthere = torch.cuda.is_available()\n\n"
    text += "def main(net, path):\n    net.cuda()\n    net.load_state_dict(torch.load(path))\n"
    for wrapper, told in (("DistributedDataParallel", ["DVL604"]), ("DataParallel", [])):
        assert [one.code for one in check_source(text.format(wrapper)) if one.code == "DVL604"] == told


def test_the_state_of_a_sampler_is_numbers() -> None:
    """Seen in Open-Sora."""
    text = "import torch\n{0}.load_state_dict(torch.load('state.pt'))\n"
    assert [check_source(text.format(name)) for name in ("sampler", "self.lr_scheduler", "sched")] == [[], [], []]
    assert [finding.code for finding in check_source(text.format("optimizer"))] == ["DVL604"]


TRAINED = """
import torch

def train(model, batches, path):
    {before}
    for batch in batches:
        model(batch).sum().backward()
    model.load_state_dict(torch.load(path + "/best.pth"))

model.load_state_dict(torch.load("last.pth"))
"""


def test_what_a_function_has_trained_it_finds_where_it_was() -> None:
    """Seen in Informer: an early stop that goes back to its best checkpoint."""
    rows = [found.span.row for found in check_source(TRAINED.format(before="pass")) if found.code == "DVL604"]
    assert rows == [10]
    resumed = TRAINED.format(before='model.load_state_dict(torch.load("resume.pth"))')
    assert [found.span.row for found in check_source(resumed) if found.code == "DVL604"] == [5, 10]


WHOLE = """
import torch

def best(path, x{more}):
    with open(path, "rb") as stream:
        net = torch.load(stream)
    {use}
    net.load_state_dict({{}})
    return net(x)
"""


def test_a_whole_network_that_stays_where_it_is_put_has_to_be_moved_too() -> None:
    """Seen in awd-lstm-lm: on the CPU it would meet batches that are elsewhere."""
    for use, more, told in (
        ("net.eval()", "", []),
        ("net = net.cuda() if USE_CUDA else net", "", ["cpu"]),
        ("net.eval()", ", device", ["device"]),
    ):
        text = WHOLE.format(use=use, more=more) + "torch.cuda.is_available()\n"
        found = [one for one in check_source(text) if one.code == "DVL604"]
        assert [one.help.split("map_location=")[1].split("`")[0].strip('"') for one in found] == told


def test_what_a_function_saves_it_finds_where_it_was_however_it_is_opened() -> None:
    """Seen in DeOldify: an object that frees its memory by way of a file."""
    text = "import torch\n\ndef purge(net, file):\n    torch.save(net, {})\n    return torch.load({}).half()\n"
    for saved in ("file", "open(file, 'wb')"):
        for loaded in ("file", "open(file, 'rb')"):
            assert check_source(text.format(saved, loaded)) == []
    assert [found.code for found in check_source(text.format("open(other, 'wb')", "file"))] == ["DVL604"]


def test_what_a_file_saves_from_the_cpu_it_loads_anywhere() -> None:
    """Seen in vid2vid and the CycleGANs."""
    text = "import torch\n\ndef save(net, p):\n    torch.save(net{}.state_dict(), p)\n"
    text += "\ndef load(net, p):\n    net.load_state_dict(torch.load(p))\n"
    assert check_source(text.format(".cpu()")) == []
    assert [found.code for found in check_source(text.format(""))] == ["DVL604"]
    # seen in PixArt: what is saved to another path says nothing of this one
    other = "\ndef log(state):\n    torch.save(state, 'log.pt')\n"
    assert [found.code for found in check_source(text.format(".cpu()") + other)] == []


CONVERTED = """
import torch

def restore(net):
    net.load_state_dict(torch.load({}))

net = convert()
torch.save(net.state_dict(), "net.pth")
restore({})
"""


def test_what_a_script_makes_without_a_word_of_devices_it_loads_anywhere() -> None:
    """Seen in FastPhotoStyle: a converter."""
    assert check_source(CONVERTED.format("'net.pth'", "net")) == []
    assert [found.code for found in check_source(CONVERTED.format("'other.pth'", "net"))] == ["DVL604"]
    assert [found.code for found in check_source(CONVERTED.format("'net.pth'", "net.to(device)"))] == ["DVL604"]


def test_the_state_of_a_generator_is_always_on_the_cpu() -> None:
    text = "import torch\nimport random\n\nstate = torch.load('rng.pt')\n{}(state['torch'])\n"
    for name in ("torch.set_rng_state", "torch.cuda.set_rng_state_all", "random.setstate", "np.random.set_state"):
        assert check_source(text.format(name)) == []
    assert [found.code for found in check_source(text.format("net.load_state_dict"))] == ["DVL604"]


def test_what_had_the_name_before_was_moved_by_itself() -> None:
    """Seen in awd-lstm-lm: the best network replaces the one that was trained on the GPU."""
    text = (
        "import torch\n\nnet = make()\n{}net.cuda(args.gpu)\n{}print(net.eval()(x), {{}})\nnet.load_state_dict({{}})\n"
    )
    load = "net = torch.load('best.pt')\n"
    for order, told in ((("", load), []), ((load, ""), ["DVL604"])):
        asking = text.format(*order) + "torch.cuda.is_available()\n"
        assert [one.code for one in check_source(asking) if one.code == "DVL604"] == told


KEPT = """
import torch

class Progress:
    def __init__(self, folder, net):
        self.log = torch.load(folder + "/log.pt")BODY

    def add(self, net):
        torch.save(net.state_dict(), "net.pt")
        self.log = torch.cat([self.log, torch.zeros(1)])
"""


@pytest.mark.parametrize(
    ("body", "weights"),
    [
        # seen in RCAN: what a program notes down of its progress is made on the CPU
        ("", False),
        (".long()", False),
        ("; self.log.eval()", True),
        ("; self.log(net)", True),
        ("; load_weights(net, self.log)", True),
        ("; len(self.log)", False),
        ("; net.load_state_dict(self.log)", True),
        ("; net.load_state_dict(self.log['net'])", True),
        ("; self.log.to(net.device)", True),
    ],
)
def test_data_that_an_object_keeps_was_made_on_the_cpu(body: str, weights: bool) -> None:
    text = KEPT.replace("BODY", body)
    assert [found.code for found in check_source(text) if found.code == "DVL604"] == ["DVL604"] * weights
    assert len(check_source(text, config=Config(rule_layers=(RuleLayer(("DVL604",)),)))) == 1


@pytest.mark.parametrize(
    ("load", "told"),
    [
        # seen in wanda: how far a loss is scaled is a number
        ("self.scaler.load_state_dict(torch.load(path))", []),
        ("self.net.load_state_dict(torch.load(path))", ["DVL604"]),
        # seen in pyGAT: it was saved a moment before, in another epoch
        (
            "torch.save(net, '{}.pt'.format(1))\n        net.load_state_dict(torch.load('{}.pt'.format(path)))",
            [],
        ),
        (
            "torch.save(net, '{}.pt'.format(1))\n        net.load_state_dict(torch.load('{}.pth'.format(path)))",
            ["DVL604"],
        ),
    ],
)
def test_numbers_and_what_was_saved_before_are_where_they_are_wanted(load: str, told: list[str]) -> None:
    text = f"import torch\n\nclass Trainer:\n    def restore(self, path):\n        {load}\n"
    assert [one.code for one in check_source(text)] == told


RUN = """
import torch

there = torch.cuda.is_available()

def main(net, optimizer, path, device):
    {}


def keep(net, optimizer, path):
    torch.save({{"net": {}, "optimizer": optimizer.state_dict(), "epoch": 3}}, path)
"""


@pytest.mark.parametrize(
    ("load", "saved", "told_to_all"),
    [
        # seen in cifar scripts, VIBE and SPIN: who goes on with a training goes on where it was
        ("state = torch.load(path); net.load_state_dict(state['net']); return state['epoch']", "net", []),
        (
            "state = torch.load(path); net.load_state_dict(state['net']); optimizer.load_state_dict(state['o'])",
            "net",
            [],
        ),
        ("state = torch.load(path); net.load_state_dict(state['net'])", "net", ["DVL604"]),
        # seen in Bringing-Old-Photos-Back-to-Life
        ("net.load_state_dict(torch.load(path))", "net.cpu().state_dict()", []),
        # seen in Transfer-Learning-Library
        ("shutil.copy(path, 'best'); net.load_state_dict(torch.load('best'))", "net", []),
        ("shutil.copy(path, 'best'); net.load_state_dict(torch.load('worst'))", "net", ["DVL604"]),
    ],
)
def test_who_loads_what_the_program_saved_itself_is_told_if_asked(
    load: str, saved: str, told_to_all: list[str]
) -> None:
    text = RUN.format(load.replace("; ", "\n    "), saved)
    assert [one.code for one in check_source(text) if one.code == "DVL604"] == told_to_all
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    assert [one.code for one in check_source(text, config=config)] == ["DVL604"]


def test_a_torch_that_knows_no_devices_by_name_is_told_nothing() -> None:
    """Seen in pytorch-adda, for torch 0.2: `map_location` was a function or a dict."""
    text = "import torch\n\ndef f(net, path, device):\n    net.load_state_dict(torch.load(path))\n"
    for target, told in (((0, 3), []), ((0, 4), ["DVL604"])):
        assert [one.code for one in check_source(text, config=Config(target_torch=target))] == told


@pytest.mark.parametrize(("moved", "told"), [("net.eval(); net.cpu()", []), ("net.eval()", ["DVL604"])])
def test_a_network_that_is_moved_to_the_cpu_is_saved_from_there(moved: str, told: list[str]) -> None:
    """Seen in PyTorch-Multi-Style-Transfer."""
    text = RUN.format("net.load_state_dict(torch.load(path))", "0").partition("def keep")[0]
    text += f"def keep(net, path):\n    {moved}\n    torch.save(net.state_dict(), path)\n"
    assert [one.code for one in check_source(text) if one.code == "DVL604"] == told


def test_what_is_saved_may_be_a_word() -> None:
    """Seen in temporal-shift-module."""
    text = "import torch\n\ndef f(net, x, path, other, device):\n    x.cpu()\n    np.save('scores', other)\n"
    text += "    net.load_state_dict(torch.load(path))\n"
    assert [one.code for one in check_source(text) if one.code == "DVL604"] == ["DVL604"]


MADE_HERE = """
import os
from pathlib import Path

import torch

BASIS = "basis.pt"

class Cache:
    def load(self, path):
        self.tuples = torch.load(path)

    def keys(self):
        return self.tuples.keys()

def best(model, folder, epochs):
    for epoch in range(epochs):
        torch.save(model.state_dict(), os.path.join(folder, f"{epoch}.pt"))
    model.load_state_dict(torch.load(os.path.join(folder, "0.pt")))

def basis(device):
    path = Path(__file__).parent / "data" / BASIS
    return torch.load(path).to(torch.float32).to_dense()
"""


def test_what_a_program_makes_or_brings_is_for_those_who_ask() -> None:
    """Seen in CrypTen, LibCity and the geometric algebra transformer."""

    def rows(text: str) -> list[int]:
        return [one.span.row for one in check_source(text) if one.code == "DVL604"]

    cache, _, rest = MADE_HERE.partition("def best")
    made = f"import os\nimport torch\nfrom pathlib import Path\n\ndef best{rest}"
    assert rows(cache) == rows(made) == []
    # a mapping of weights, the best epoch of another folder, and a file of the user's
    assert rows(f"{cache}\ndef stored(model):\n    return model.state_dict()\n") == [11]
    assert rows(made.replace('(folder, "0', '("runs", "0')) == [8]
    assert rows(made.replace("Path(__file__).parent", "Path('/data')")) == [12]


@pytest.mark.parametrize(
    ("bases", "method", "told_to_all"),
    [
        ("(torch.utils.data.Dataset)", "get", []),
        ("(Volumes)", "__getitem__", []),
        ("(Volumes)", "get", ["DVL604"]),
    ],
)
def test_what_a_data_set_loads_is_data(bases: str, method: str, told_to_all: list[str]) -> None:
    """Whoever prepares samples does so on the CPU, or `pin_memory` and the workers of a loader would fail."""
    text = f"import torch\n\n\nclass Scans{bases}:\n    def {method}(self, path):\n"
    text += "        return torch.load(path).float()\n"
    assert [one.code for one in check_source(text)] == told_to_all
    assert len(check_source(text, config=Config(rule_layers=(RuleLayer(("DVL604",)),)))) == 1
    state = text.replace("return torch.load(path).float()", "self.net.load_state_dict(torch.load(path))")
    assert [one.code for one in check_source(state)] == ["DVL604"]
