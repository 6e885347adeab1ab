"""What the multi-GPU rules say, where a fixture cannot show it."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from devlint.check.analysis import check_source
from devlint.check.engine import check_paths
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Severity
from devlint.flow.catalog.modules import OF_WRAPPERS
from devlint.rules.base import Report
from devlint.rules.multi_gpu.data_parallel import DataParallel
from devlint.rules.subsumption import summarized
from devlint.sites.base import Scope
from devlint.sites.distributed import Wrap
from devlint.source.tree import Source

ASKED = Config(rule_layers=(RuleLayer(("DVL502",)),))


def judged(
    ids: int | None = None, beside: tuple[str, ...] = (), wrapper: str = "torch.nn.DataParallel", rest: str = ""
) -> list[Report]:
    source = Source.parse(f"m = nn.DataParallel(m)\n{rest}")
    assert isinstance(source, Source)
    call = source.tree.body[0]
    assert isinstance(call, ast.Assign)
    return list(DataParallel(source).judge(Wrap(call.value, Scope(), wrapper, ids, beside)))


def test_the_message_uses_the_name_in_the_code() -> None:
    (report,) = judged()
    assert report.message.startswith("`nn.DataParallel` drives all GPUs from one process")
    assert "torchrun" in report.help
    assert report.severity is None
    assert report.fix is None


def test_what_only_infers_needs_no_wrapper() -> None:
    """Seen in EasyOCR: a library that reads text serves nobody by torchrun."""
    (report,) = judged(rest="m.eval()\ny = m(x)\n")
    assert report.help.startswith("nothing is trained here")
    assert report.asked
    for rest in ("y = m(x)\n", "m.eval()\nm(x).backward()\n", "with torch.no_grad():\n    loss = m(x)\n"):
        (report,) = judged(rest=rest)
        assert "torchrun" in report.help
        assert not report.asked


def test_one_id_is_no_parallelism() -> None:
    (report,) = judged(ids=1)
    assert "parallelizes nothing" in report.message
    assert report.severity is None
    assert "move the module" in report.help
    (report,) = judged(ids=2)
    assert "parallelizes nothing" not in report.message


@pytest.mark.parametrize("other", ["torch.nn.parallel.DistributedDataParallel", "FullyShardedDataParallel"])
def test_the_better_wrapper_beside_it_is_pointed_out(other: str) -> None:
    (report,) = judged(beside=(other,))
    assert report.help.startswith("`DistributedDataParallel` is here already")
    (report,) = judged(beside=("torch.nn.DataParallel",))
    assert "torchrun" in report.help


@pytest.mark.parametrize("wrapper", ["torch.nn.parallel.DistributedDataParallel", "torch_geometric.nn.DataParallel"])
def test_other_wrappers_are_not_its_business(wrapper: str) -> None:
    assert not judged(wrapper=wrapper)


@pytest.mark.parametrize(("use", "told"), [("train(model)", True), ("print(model)", False), ("model.train()", False)])
def test_who_is_given_a_wrapper_with_an_attribute_has_to_look_behind_it(use: str, told: bool) -> None:
    """Seen in yolov7: the loss reads the attribute from the wrapper, and would not find it there any more."""
    text = (
        "from torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "def f(rank, hyp):\n    model = DDP(nn.Linear(2, 2).to(rank), device_ids=[rank])\n"
        f"    model.hyp = hyp\n    {use}\n    return model\n"
    )
    (finding,) = check_source(text, config=Config(rule_layers=(RuleLayer(select=("DVL502",)),)))
    assert "before it is wrapped" in finding.help
    assert ("who is given the wrapper" in finding.help) is told


@pytest.mark.parametrize("name", ["DataParallel", "DistributedDataParallel"])
def test_what_a_wrapper_has_is_known(name: str) -> None:
    wrapper = getattr(pytest.importorskip("torch.nn.parallel"), name)
    kept = re.findall(r"\bself\.([a-z]\w*)(?:, self\.\w+)*\s*(?::[^=\n]+)?=[^=]", inspect.getsource(wrapper))
    public = {name for name in (*dir(wrapper), *kept) if not name.startswith("_") and _is_of_torch(wrapper, name)}
    assert {"module", "device_ids", "state_dict"} <= public
    assert public <= OF_WRAPPERS


def _is_of_torch(wrapper: type, name: str) -> bool:
    """Other libraries give modules methods of their own, once they are imported."""
    found = getattr(wrapper, name, None)
    return not inspect.isfunction(found) or found.__module__.startswith("torch.")


def test_what_is_wrapped_to_be_saved_is_never_called() -> None:
    """Seen in pytorch-semseg."""
    for use, told in (("torch.save(m.state_dict(), path)", False), ("torch.save(m.state_dict(), m(path))", True)):
        assert bool(judged(rest=f"{use}\n")) is told


def test_what_is_read_from_one_wrapper_is_one_finding() -> None:
    """The wrapper is the cause of them all."""
    text = """from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def setup(build, rank=None):
    model = build().to(rank)
    if rank is not None:
        model = DDP(model, device_ids=[rank])
    print(model.layers)
    return model, model.compiled()
"""
    (found,) = summarized(check_source(text, config=ASKED))
    assert found.span.row == 8
    assert [place.span.row for place in found.related] == [7, 9]


@pytest.mark.parametrize(("added", "told"), [("inputs", []), ("outputs", ["DVL502"])])
def test_what_a_base_adds_to_the_wrapper_is_there(tmp_path: Path, added: str, told: list[str]) -> None:
    base = f"class Flow:\n    def prepare(self, layer):\n        self.model.add_module('{added}', layer)\n"
    (tmp_path / "flow.py").write_text(base)
    text = "import torch\nfrom flow import Flow\n\nclass Training(Flow):\n    def __init__(self, model):\n"
    text += "        self.model = torch.nn.parallel.DistributedDataParallel(model)\n"
    text += "        self.prepare(torch.nn.Linear(2, 2))\n\n"
    text += "    def step(self):\n        return self.model.inputs()\n"
    (tmp_path / "main.py").write_text(text)
    assert [finding.code for finding in check_paths([str(tmp_path)], ASKED).findings] == told


BASE = """\
import torch.distributed as dist
from torch import nn


class Base(nn.Module):
    def __init__(self, width, parallel=True):
        super().__init__()
        self.network = nn.Linear(width, 2)
        if parallel:
            if dist.get_world_size() > 1:
                self.network = nn.parallel.DistributedDataParallel(self.network)
"""
LEFT_TO_THE_BASE = f"""{BASE}
    def forward(self, x, target):
        return nn.functional.cross_entropy(self.network(x), target.to(x.device))


class Trained(Base):
    def __init__(self, width):
        super().__init__(width)
        self.features = self.network.out_features

    def forward(self, x, target):
        return super().forward(x, target.to(x.device))


class TrainedAtWill(Base):
    def __init__(self, width, parallel):
        super().__init__(width, parallel=parallel)

    def forward(self, x, target):
        return super().forward(x, target.to(x.device)) / self.network.out_features
"""
DENIED_BY_A_SUBCLASS = f"""{BASE}

class Trained(Base):
    def __init__(self, width):
        super().__init__(width, parallel=False)
        self.features = self.network.out_features

    def forward(self, x, target):
        return nn.functional.cross_entropy(self.network(x), target.to(x.device))


class TrainedByPlace(Base):
    def __init__(self, width):
        super().__init__(width, False)

    def forward(self, x, target):
        return super().forward(x, target.to(x.device)) / self.network.out_features
"""


def test_a_base_wraps_where_its_subclass_lets_it() -> None:
    """Seen in gritlm: the class that is trained tells its base that it does not want that."""
    found = check_source(LEFT_TO_THE_BASE, config=ASKED)
    lines = [LEFT_TO_THE_BASE.splitlines()[one.span.row - 1].strip() for one in found]
    assert lines == [
        "self.features = self.network.out_features",
        "return super().forward(x, target.to(x.device)) / self.network.out_features",
    ]
    assert check_source(DENIED_BY_A_SUBCLASS, config=ASKED) == []


MEET = """\
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
{met}
{more}
x = torch.ones(3, device=f"cuda:{{os.environ['LOCAL_RANK']}}")
"""


@pytest.mark.parametrize(
    ("met", "does"),
    [
        ("dist.barrier()", "this opens a context on the current device"),
        ("dist.broadcast_object_list([3])", "this uses the current device"),
    ],
)
def test_a_barrier_is_not_said_to_use_the_first_gpu(met: str, does: str) -> None:
    """NCCL takes the GPU that a process has used for it, or guesses that from the rank, as torch's docstring says."""
    (found,) = (one for one in check_source(MEET.format(met=met, more="")) if one.code == "DVL502")
    assert [place.label for place in found.related] == [does]
    barrier = pytest.importorskip("torch.distributed").barrier
    assert "the device index indicated by the global rank mod local device count" in str(barrier.__doc__)
    late = MEET.format(met=met, more='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))')
    (found,) = (one for one in check_source(late) if one.code == "DVL502")
    assert found.message.endswith("each opens a context on GPU 0")


INSIDE = """\
import torch
from torch.nn.parallel import DistributedDataParallel

class Net(torch.nn.Module):
    def restore(self, path):
        self.load_state_dict(torch.load(path, map_location="cpu"))

def resume(rank, path, make):
    model = DistributedDataParallel({made}.to(rank), device_ids=[rank])
    model.restore(path)
"""


@pytest.mark.parametrize(("made", "sure"), [("Net()", True), ("torch.nn.Sequential(*make)", False)])
def test_what_a_module_of_an_unknown_class_has_is_not_promised(made: str, sure: bool) -> None:
    """Seen in Latte: no class of the project has what the training reads from its wrapper."""
    (found,) = (one for one in check_source(INSIDE.format(made=made), config=ASKED) if one.code == "DVL502")
    assert ("if that has it" not in found.help, found.severity is Severity.ERROR) == (sure, sure)


DIVIDED = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

rows = TensorDataset(torch.zeros(8, 8))


def train(options, rank):
    model = nn.Linear(8, 2).to(rank)
    if options.together:
        model = DDP(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    if options.together:
        sampler = DistributedSampler(rows)
        loader = DataLoader(rows, batch_size=4, sampler=sampler, pin_memory=True)
    else:
        loader = DataLoader(rows, batch_size=4, shuffle=True, pin_memory=True)
    for epoch in range(2):
        if options.together:
            sampler.set_epoch(epoch)
        for (batch,) in loader:
            model(batch.to(rank, non_blocking=True)).sum().backward()
            optimizer.step()


options = parse()
if options.together:
    train(options, 0)
else:
    train(options, 0)
"""


def test_a_loader_of_the_other_branch_is_not_for_what_this_one_has_wrapped() -> None:
    """Seen in Mat2Seq: which branch it is, each call has settled."""
    assert [one.code for one in check_source(DIVIDED) if one.code == "DVL503"] == []


@pytest.mark.parametrize(("claim", "told"), [('== "0"', False), ('!= "1"', True)])
def test_the_only_process_of_its_machine_has_the_first_gpu(claim: str, told: bool) -> None:
    """Seen in oat."""
    text = f"import os\nimport torch\nimport torch.distributed as dist\n\nassert os.environ['LOCAL_RANK'] {claim}\n"
    text += "dist.init_process_group(backend='nccl')\nhosts = [None] * 2\ndist.all_gather_object(hosts, 'here')\n"
    assert ("DVL502" in {finding.code for finding in check_source(text)}) is told
