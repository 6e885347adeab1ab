"""What DVL301 says and how safe its fix is; where it fires is in the fixtures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from devlint.check.analysis import Analyzer, check_source
from devlint.check.engine import check_paths
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.device import CPU, UNKNOWN, Device, accelerator, symbol
from devlint.finding import Applicability
from devlint.rules.base import Report
from devlint.rules.loading.missing_pin_memory import MissingPinMemory
from devlint.rules.subsumption import summarized
from devlint.sites.base import Operand, Scope
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer
from devlint.source.tree import Source

DEVICE = symbol("f:device", "device")
LOOP = Scope(loop=ast.Pass())


def move(target: Device | None, scope: Scope = LOOP, non_blocking: bool = False) -> Transfer:
    node = ast.parse("x.to(device)", mode="eval").body
    value = Operand(ast.Name("x"), "x", CPU)
    return Transfer(node, scope, "to", "tensor", value, target, non_blocking=non_blocking)


def judge(
    *moves: Transfer, call: str = "DataLoader(data)", batches: Device = CPU, escapes: bool = False
) -> list[Report]:
    source = Source.parse(call)
    assert isinstance(source, Source)
    node = source.tree.body[0].value  # type: ignore[attr-defined]  # an expression statement
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    opened = any(keyword.arg is None for keyword in node.keywords)
    site = Load(node, Scope(), "torch.utils.data.DataLoader", keywords, opened, batches, moves, escapes=escapes)
    return list(MissingPinMemory(source).judge(site))


def test_it_names_the_device_and_the_places() -> None:
    first, second = move(DEVICE), move(DEVICE)
    (report,) = judge(first, second)
    assert report.message == (
        "the batches of this `DataLoader` are copied to `device` from pageable memory at every step"
    )
    assert [step.label for step in report.steps] == ["copied to `device` here"] * 2
    assert report.severity is None
    assert "non_blocking=True" in report.help


def test_the_help_does_not_ask_for_what_is_there() -> None:
    (report,) = judge(move(DEVICE, non_blocking=True))
    assert "non_blocking" not in report.help


@pytest.mark.parametrize(
    ("batches", "target", "applicability"),
    [
        (CPU, accelerator("cuda"), Applicability.SAFE),
        (UNKNOWN, accelerator("cuda"), Applicability.UNSAFE),
        (CPU, accelerator("xpu"), Applicability.UNSAFE),
        (CPU, DEVICE, Applicability.UNSAFE),
    ],
)
def test_the_fix_is_safe_where_the_batches_are_on_the_cpu_and_the_device_is_cuda(
    batches: Device, target: Device, applicability: Applicability
) -> None:
    (report,) = judge(move(target), batches=batches)
    assert report.fix is not None
    assert report.fix.applicability is applicability
    assert [edit.content for edit in report.fix.edits] == ["DataLoader(data, pin_memory=True)"]


def fixed(code: str) -> Applicability:
    """How safe the fix of the copy in a loop is."""
    head = "from torch.utils.data import DataLoader\ndef f(dataset, model):\n    for x, y in DataLoader(dataset):\n"
    (finding,) = check_source(head + code, config=Config(rule_layers=(RuleLayer(("DVL301",)),)))
    assert finding.fix is not None
    assert len(finding.fix.edits) == 2
    return finding.fix.applicability


@pytest.mark.parametrize("writes", ["x.zero_()", "x[0] = 1", "x += 1", "x[0].data.add_(1)"])
def test_what_the_host_writes_to_must_not_be_on_its_way(writes: str) -> None:
    copy = "        model(x.to('cuda'))\n"
    assert fixed(copy) is Applicability.SAFE
    assert fixed(f"{copy}        y.zero_()\n        x.__len__()\n") is Applicability.SAFE
    assert fixed(f"{copy}        {writes}\n") is Applicability.UNSAFE


@pytest.mark.parametrize("target", [CPU, UNKNOWN, accelerator("mps"), None])
def test_only_a_copy_to_what_reads_pinned_memory_counts(target: Device | None) -> None:
    assert not judge(move(target))
    assert not judge(move(target), escapes=True)


@pytest.mark.parametrize("batches", [DEVICE, accelerator("cuda")])
def test_batches_elsewhere_cannot_be_pinned(batches: Device) -> None:
    assert not judge(move(DEVICE), batches=batches)


@pytest.mark.parametrize(
    "call",
    [
        "DataLoader(data, pin_memory=use_cuda)",
        "DataLoader(data, **options)",
        "DataLoader(data, batch_size=None)",
        "DataLoader(data, 8, True, None, None, 2, None, True)",
    ],
)
def test_what_was_decided_is_respected(call: str) -> None:
    assert not judge(move(DEVICE), call=call)


def test_a_literal_false_is_for_those_who_ask() -> None:
    (report,) = judge(move(DEVICE), call="DataLoader(data, pin_memory=False)")
    assert report.asked
    assert report.fix is None
    for call in ("DataLoader(data, batch_size=None, pin_memory=False)", "DataLoader(data, pin_memory=0)"):
        assert not judge(move(DEVICE), call=call)
    assert not judge(escapes=True, call="DataLoader(data, pin_memory=False)")


def test_a_loader_that_leaves_the_file_is_a_hint_for_those_who_ask() -> None:
    (report,) = judge(escapes=True)
    assert report.severity is None
    assert report.asked
    assert not judge()


def told(code: str) -> list[str]:
    """The severities of what everybody is told."""
    head = "from torch.utils.data import DataLoader\n"
    return [str(finding.severity) for finding in check_source(head + code) if finding.code == "DVL301"]


def copied(loader: str, copy: str) -> list[str]:
    loop = f"    for x in {loader}:\n        model({copy}).backward()\n"
    return told(f"def f(dataset, model, device):\n{loop}")


def test_without_workers_only_copies_that_do_not_wait_are_worth_a_word() -> None:
    assert copied("DataLoader(dataset, num_workers=2)", "x.to(device)") == ["info"]
    assert copied("DataLoader(dataset)", "x.to(device)") == []
    assert copied("DataLoader(dataset, num_workers=0)", "x.to(device)") == []
    assert copied("DataLoader(dataset)", "x.to(device, non_blocking=True)") == ["info"]


@pytest.mark.parametrize("converted", ["x.float()", "x[0].view(-1).long()", "x.type(dtype)", "x.double().t()"])
def test_what_is_converted_on_the_host_may_leave_the_pinned_memory(converted: str) -> None:
    assert copied("DataLoader(dataset, num_workers=2)", f"{converted}.to(device)") == []
    assert copied("DataLoader(dataset, num_workers=2)", f"{converted}.to(device), x.to(device)") == ["info"]


def test_examples_and_what_trains_nothing_have_little_to_copy() -> None:
    """Seen in torchopt and pytorch-ood, and in scripts that look once at a data set."""
    text = (
        "from torch.utils.data import DataLoader\n\ndef f(data, model, device):\n"
        "    for x in DataLoader(data, num_workers=2):\n        model(x.to(device)){}\n"
    )
    trains = text.format(".backward()")
    assert [one.code for one in check_source(trains, "net/train.py")] == ["DVL301"]
    for name, code in (("examples/train.py", trains), ("net/train.py", text.format(""))):
        assert check_source(code, name) == []


def test_what_becomes_of_the_batches_of_a_loader_that_leaves_is_not_known() -> None:
    """Seen in STCN, which pads and joins them before they are copied."""
    text = "def f(net, data, workers=2):\n    net.cuda()\n    return DataLoader(data, num_workers=workers)\n"
    assert told(text) == []


@pytest.mark.parametrize(("waiting", "expected"), [("", []), (", non_blocking=True", ["info"])])
def test_a_loader_that_goes_to_copies_which_do_not_wait_is_a_hint(
    tmp_path: Path, waiting: str, expected: list[str]
) -> None:
    trainer = (
        "class Trainer:\n    def train(self, loader):\n        self.epoch(loader)\n"
        "    def epoch(self, loader):\n        for batch in loader:\n            self.step(self.placed(batch))\n"
        f"    def placed(self, batch):\n        return [x.to(self.device{waiting}) for x in batch]\n"
    )
    (tmp_path / "training.py").write_text(trainer)
    main = "from torch.utils.data import DataLoader\nfrom training import Trainer\n"
    main += "def main(data):\n    Trainer().train(DataLoader(data))\n"
    (tmp_path / "main.py").write_text(main)
    found = check_paths([str(tmp_path)], Config()).findings
    assert [str(finding.severity) for finding in found if finding.code == "DVL301"] == expected


def test_a_single_batch_is_no_loop() -> None:
    assert not judge(move(DEVICE, scope=Scope()))


@pytest.mark.parametrize(
    ("loop", "waits"),
    [
        ("for batch in loader:\n        net(**batch.to(device))", False),
        ("for i, batch in enumerate(loader):\n        net(i, **batch.to(device))", False),
        ("for x, y in loader:\n        net(x.to(device), y.to(device))", True),
    ],
)
def test_what_a_collate_fn_makes_need_not_know_how_not_to_wait(loop: str, waits: bool) -> None:
    text = f"""
from torch.utils.data import DataLoader

def train(data, collate, net, device):
    loader = DataLoader(data, collate_fn=collate)
    {loop}
"""
    fixed = (
        ApplyFixes(True)
        .rewrite(text.encode(), Analyzer("train.py", Config(rule_layers=(RuleLayer(("ALL",)),))))
        .data.decode()
    )
    assert "pin_memory=True" in fixed
    assert ("non_blocking=True" in fixed) is waits


LOADED = """
import torch
from torch.utils.data import DataLoader

def run(dataset, model, device):
    options = {{"batch_size": 4, "num_workers": 2{options}}}
    loader = DataLoader(dataset, **options)
    {before}
    for images in loader:
        model(images.to(device)){after}
"""


def test_what_a_known_dict_says_of_pinning_is_said() -> None:
    """Seen in ProteinMPNN."""
    text = LOADED.format(options="", before="model.train()", after=".mean().backward()")
    (finding,) = check_source(text)
    assert (finding.code, str(finding.severity)) == ("DVL301", "info")
    assert check_source(text.replace('"num_workers": 2', '"num_workers": 2, "pin_memory": False')) == []


def test_no_evaluation_waits_for_its_batches() -> None:
    evaluation = LOADED.format(options="", before="model.eval()", after="")
    assert check_source(evaluation) == []
    (finding,) = check_source(evaluation, config=Config(rule_layers=(RuleLayer(("DVL301",)),)))
    assert (finding.code, str(finding.severity)) == ("DVL301", "info")


def test_a_default_that_came_with_a_type_of_tensors_is_no_default_device() -> None:
    """Seen in yolact: `torch.get_default_device()` does not know of it."""
    text = """
import torch
from torch.utils.data import DataLoader

{}
loader = DataLoader(list(range(8)), shuffle=True)
for item in loader:
    print(item)
"""
    fixes = []
    for default in ('torch.set_default_device("cuda")', 'torch.set_default_tensor_type("torch.cuda.FloatTensor")'):
        (finding,) = (one for one in check_source(text.format(default)) if one.code == "DVL304")
        fixes.append(finding.fix is not None)
    assert fixes == [True, False]


CHOSEN = """
from torch.utils.data import DataLoader

def train(model, data, workers, device):
    if workers > 0:
        loader = DataLoader(data, num_workers=workers, pin_memory=True)
    else:
        loader = DataLoader(data, num_workers=workers)
    for x in loader:
        model(x.to(device)).backward()
"""


def test_who_pins_in_the_other_branch_has_chosen() -> None:
    """Seen in RWKV-LM."""
    assert [found.code for found in check_source(CHOSEN)] == []
    left = CHOSEN.replace(", pin_memory=True", "")
    assert [found.code for found in check_source(left)] == ["DVL301"] * 2


STEPS = """
from torch.utils.data import DataLoader

def run(model, data, device, meter):
    model.{mode}()
    for x in DataLoader(data, num_workers=4):
        y = x.float()
        loss = model({moved}.to(device))
        meter.step(loss)
        {more}
"""


@pytest.mark.parametrize(
    ("mode", "moved", "more", "hints"),
    [
        # a step is not always an optimizer's: seen in votenet
        ("eval", "x", "pass", 0),
        ("train", "x", "loss.backward()", 1),
        # what is converted first is memory of its own: seen in Informer
        ("train", "y[:, 1:]", "loss.backward()", 0),
        ("train", "x[1:]", "loss.backward()", 1),
    ],
)
def test_what_pinning_is_worth(mode: str, moved: str, more: str, hints: int) -> None:
    found = [one for one in check_source(STEPS.format(mode=mode, moved=moved, more=more)) if one.code == "DVL301"]
    assert [str(one.severity) for one in found] == ["info"] * hints


SAMPLES = """
import torch
from torch.utils.data import DataLoader, Dataset

class Pairs(Dataset):
    def __getitem__(self, index):
        x = torch.tensor(self.x[index], device="cuda")
        y = torch.tensor(self.y[index], device="cuda")
        return x, y

{loader}
"""


@pytest.mark.parametrize(
    ("loader", "severity"),
    [("", "info"), ("DataLoader(Pairs(), num_workers=count)", "warning")],
)
def test_what_a_data_set_does_to_a_sample_is_one_finding(loader: str, severity: str) -> None:
    """Seen in RWKV-LM."""
    found = [one for one in summarized(check_source(SAMPLES.format(loader=loader))) if one.code == "DVL303"]
    assert [(one.span.row, str(one.severity)) for one in found] == [(7, severity)]
    assert [place.span.row for place in found[0].related if place.label == "also here"] == [8]


def test_who_makes_samples_on_a_device_where_no_worker_does_has_chosen_to() -> None:
    text = SAMPLES.format(loader="DataLoader(Pairs())")
    assert "DVL303" not in [one.code for one in check_source(text)]
    config = Config(rule_layers=(RuleLayer(select=("DVL303",)),))
    assert {one.code for one in check_source(text, config=config)} == {"DVL303"}


COLLATED = """
from torch.utils.data import DataLoader
{imported}
def train(model, data, size, device):
    loader = DataLoader(data, num_workers=4, collate_fn={collate})
    for x in loader:
        model(x.to(device)).backward()
"""


@pytest.mark.parametrize(
    ("collate", "told"), [("BatchCollator(size)", []), ("stacked", ["DVL301"]), ("made.collate", ["DVL301"])]
)
def test_an_object_that_makes_batches_makes_a_kind_of_its_own(collate: str, told: list[str]) -> None:
    """Seen in maskrcnn-benchmark: such batches have no `pin_memory`, and a `.to` that takes a device alone."""
    text = COLLATED.format(collate=collate, imported="from boxes import BatchCollator, made, stacked\n")
    assert [one.code for one in check_source(text)] == told


BUSY = """
import torch
from torch.utils.data import DataLoader, Dataset

class Frames(Dataset):
    def __init__(self, folder, device):
        self.folder, self.device = folder, device

    def __getitem__(self, index):
        return encode(self.folder, index, self.device)

def train(model, folder, device):
    frames = Frames(folder, device)
    loader = DataLoader(frames, batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in loader:
        model(x.to(device, non_blocking=True)).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", False),
        ("DataLoader(frames", "DataLoader(dataset=frames", False),
        ("Frames(folder, device)", 'Frames(folder, "cuda:1")', True),
        ("batch_size=4", "batch_size=4, num_workers=2", True),
    ],
)
def test_samples_that_are_computed_on_the_device_take_the_time(old: str, new: str, told: bool) -> None:
    """Seen in habitat-lab, whose data set runs a network for each of its samples."""
    text = BUSY.replace(old, new) if old else BUSY
    assert ("DVL301" in {one.code for one in check_source(text)}) is told
    asking = Config(rule_layers=(RuleLayer(("DVL301",)),))
    assert [one.code for one in check_source(text, config=asking)] == ["DVL301"]
