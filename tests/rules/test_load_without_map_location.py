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


def test_the_state_of_a_generator_is_always_on_the_cpu() -> None:
    text = "import torch\nimport random\n\nstate = torch.load('rng.pt')\n{}(state['torch'])\n"
    for name in ("torch.set_rng_state", "torch.cuda.set_rng_state_all", "random.setstate", "np.random.set_state"):
        assert check_source(text.format(name)) == []
    assert [found.code for found in check_source(text.format("net.load_state_dict"))] == ["DVL604"]


@pytest.mark.parametrize(
    ("load", "told"),
    [
        # seen in wanda: how far a loss is scaled is a number
        ("self.scaler.load_state_dict(torch.load(path))", []),
        ("self.net.load_state_dict(torch.load(path))", ["DVL604"]),
    ],
)
def test_how_far_a_loss_is_scaled_is_a_number(load: str, told: list[str]) -> None:
    text = f"import torch\n\nclass Trainer:\n    def restore(self, path):\n        {load}\n"
    assert [one.code for one in check_source(text)] == told


def test_a_torch_that_knows_no_devices_by_name_is_told_nothing() -> None:
    """Seen in pytorch-adda, for torch 0.2: `map_location` was a function or a dict."""
    text = "import torch\n\ndef f(net, path, device):\n    net.load_state_dict(torch.load(path))\n"
    for target, told in (((0, 3), []), ((0, 4), ["DVL604"])):
        assert [one.code for one in check_source(text, config=Config(target_torch=target))] == told


RESTORING = """
import io
import shutil
import torch

there = torch.cuda.is_available()

def restore(net, trainer, path, other):
    {}


def keep(net, path):
    {}
"""


@pytest.mark.parametrize(
    ("load", "keep", "told_to_all"),
    [
        ("net.load_state_dict(torch.load(path))", "pass", True),
        ("state = torch.load(path); net.load_state_dict(state['net'], assign=True)", "pass", True),
        # seen in cifar scripts, VIBE and SPIN: who goes on with a training goes on where it was
        ("net.load_state_dict(torch.load(path))", "torch.save(net.state_dict(), path)", False),
        ("torch.save(net, other); net.load_state_dict(torch.load(path))", "pass", False),
        # seen in Transfer-Learning-Library
        ("shutil.copy(path, other); net.load_state_dict(torch.load(other))", "pass", False),
        ("net.load_state_dict(torch.load(io.BytesIO(path)))", "pass", False),
        ("trainer.fit(net); net.load_state_dict(torch.load(trainer.best))", "pass", False),
        ("net.load_state_dict(torch.load(trainer.best)); trainer.fit(net)", "pass", True),
        # words, numbers, data, and a network that is used where it was saved from
        ("net = torch.load(path); return net.eval()", "pass", False),
        ("return torch.load(path)['scores']", "pass", False),
        ("for name, value in torch.load(path).items(): setattr(net, name, value)", "pass", False),
    ],
)
def test_a_checkpoint_of_somebody_else_is_told_of_to_all(load: str, keep: str, told_to_all: bool) -> None:
    """Of such loads, in files that save nothing, strangers held 44 of 56 worth a patch, of others 31 of 66."""
    text = RESTORING.format(load.replace("; ", "\n    "), keep)
    assert [one.code for one in check_source(text) if one.code == "DVL604"] == ["DVL604"] * told_to_all
    config = Config(rule_layers=(RuleLayer(("DVL604",)),))
    assert [one.code for one in check_source(text, config=config)] == ["DVL604"]


@pytest.mark.parametrize(
    ("bases", "method", "told_to_all"),
    [
        ("(torch.utils.data.Dataset)", "get", []),
        ("(Volumes)", "__getitem__", []),
        ("(Volumes)", "get", []),
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
