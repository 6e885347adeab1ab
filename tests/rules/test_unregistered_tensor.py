"""What DVL104 says, and to whom, where a buffer is not all that is needed."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

TEXT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, model, n):
        super().__init__()
        self.model = model
        self.ends = torch.arange(n)

    def forward(self, x):
        return self.model(x) + self.ends.to(x.device)

"""


def check(text: str, selected: bool = True) -> list[Finding]:
    """The findings of the rule: if it is selected, with what is only for those who ask."""
    config = Config(rule_layers=(RuleLayer(("DVL104",)),)) if selected else Config()
    return [found for found in check_source(text, config=config) if found.code == "DVL104"]


@pytest.mark.parametrize("read", ["self.ends[0].item()", "self.ends.max().tolist()", "int(self.ends[0])"])
def test_what_is_read_on_the_host_is_asked_for(read: str) -> None:
    text = f"{TEXT}    def last(self):\n        return {read}\n"
    assert not check(text, selected=False)
    (found,) = check(text)
    assert (found.help or "").endswith("; keep a number beside it for what reads it on the host")
    assert found.fix is None


@pytest.mark.parametrize("read", ["self.ends.size(0)", "int(self.ends.shape[0])", "self.ends.cuda().max().item()"])
def test_a_description_waits_for_nothing(read: str) -> None:
    assert check(f"{TEXT}    def last(self):\n        return {read}\n", selected=False)


def test_a_move_of_the_class_has_to_reach_the_buffer() -> None:
    text = f"{TEXT}    def cuda(self):\n        self.model.cuda()\n        return self\n"
    assert not check(text, selected=False)
    (found,) = check(text)
    assert (found.help or "").endswith("; `cuda()` of the class has to call that of the bases then")


@pytest.mark.parametrize("move", ["super().cuda()", "self.to(0)", "nn.Module.cuda(self)", "self._apply(torch.relu)"])
def test_a_move_may_end_in_that_of_the_bases(move: str) -> None:
    assert check(f"{TEXT}    def cuda(self):\n        return {move}\n", selected=False)


def test_of_what_is_selected_parts_are_copied() -> None:
    """Seen in EfficientAT, where all of it is gigabytes."""
    rows = TEXT.replace("self.ends.to", "self.ends[:2].to")
    assert not check(rows, selected=False)
    (found,) = check(rows)
    assert found.message.endswith("does not move: parts of it are copied to the device of the inputs at every use")


def told(made: str, used: str, filename: str = "net.py") -> list[tuple[str, str]]:
    """How grave a class with such a tensor is, or that it is only for those who ask, and what to do."""
    text = TEXT.replace("self.ends = torch.arange(n)", made)
    text = text.replace("return self.model(x) + self.ends.to(x.device)", used)
    config = Config(rule_layers=(RuleLayer(("DVL104",)),))
    everybody = any(found.code == "DVL104" for found in check_source(text, filename))
    selected = check_source(text, filename, config=config)
    return [(str(found.severity) if everybody else "asked", found.help or "") for found in selected]


BESIDE = "return x + self.ends.to(x.device)"
MET = "return x + self.ends"
FILLED = "        values = torch.zeros(n)\n        values[0] = self.one * 2\n        self.ends = values"


@pytest.mark.parametrize("used", [BESIDE, MET])
@pytest.mark.parametrize(
    "made",
    [
        "self.ends = torch.ones(n, requires_grad=True) * 2",
        "self.one = nn.Parameter(torch.ones(n))\n        self.ends = self.one * torch.ones(n)",
        f"self.one = nn.Parameter(torch.ones(()))\n{FILLED}",
    ],
)
def test_what_is_computed_from_parameters_is_to_be_computed_again(made: str, used: str) -> None:
    cure = "compute `self.ends` where it is used: what it is computed from collects gradients"
    assert told(made, used) == [("asked", cure)]


def test_what_collects_gradients_is_to_be_a_parameter() -> None:
    made, cure = "self.ends = torch.ones(n, requires_grad=True)", "make it a parameter: `self.ends = nn.Parameter(...)`"
    assert told(made, MET) == [("asked", cure)]
    assert told(made, BESIDE) == [("asked", cure)]
    assert [severity for severity, _ in told(f"{made}.detach()", BESIDE)] == ["info"]
    assert [severity for severity, _ in told(f"{made}.detach()", MET)] == ["asked"]


def test_a_list_that_holds_it_keeps_the_tensor_on_the_cpu() -> None:
    made = "self.ends = torch.arange(n)\n        self.both = [self.ends, 1.0 / n]"
    used = "return x + self.both[0].to(x.device)"
    cure = "register it, and take it from there: `self.both` keeps the tensor that is on the CPU"
    assert told(made, used) == [("asked", cure)]
    assert [severity for severity, _ in told(made, BESIDE)] == ["info"]


@pytest.mark.parametrize(("index", "severity"), [("torch.randint(1, 9, (len(x),))", "asked"), ("len(x)", "info")])
def test_an_index_of_the_cpu_picks_from_the_cpu(index: str, severity: str) -> None:
    used = f"n = {index}\n        return x + self.ends[n + 1].reshape(-1, 1).to(x.device)"
    ((found, cure),) = told("self.ends = torch.zeros(9, 2)", used)
    assert found == severity
    assert cure.endswith("make the index on its device") is (severity == "asked")


def test_who_selects_the_rule_is_told_of_tests() -> None:
    assert [severity for severity, _ in told("self.ends = torch.arange(n)", MET, "tests/test_net.py")] == ["asked"]


def test_a_name_that_is_taken_becomes_a_buffer_where_it_is_first_assigned() -> None:
    """Seen in miles-credit: `register_buffer` refuses a name that the module has."""
    made = "self.ends = None\n        if n:\n            self.ends = torch.arange(n)"
    used = "return x if self.ends is None else x + self.ends.to(x.device)"
    ((severity, cure),) = told(made, used)
    assert severity == "info"
    assert cure.startswith('make it a buffer where it is first assigned, `self.register_buffer("ends", None,')


HANDED_ON = """
import torch
from torch import nn

class Crop(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.grid = torch.linspace(-1, 1, size)

    def forward(self, x):
        return x * self.grid.to(x.device)

def craft(images, device):
    {made}
    return train(images, crop)

def train(images, part):
    {used}
    return part(images)
"""


@pytest.mark.parametrize(
    ("made", "used", "told"),
    [
        ("crop = Crop(8)", "pass", False),
        ("crop = Crop(8).to(device)", "pass", True),
        ("crop = Crop(8)", "part.cuda()", True),
        ("crop = Crop(8)", "prepare(part)", True),
        ("crop = nn.Sequential(Crop(8))", "pass", True),
        ("crop = Crop(8)", "return part", True),
        ("crop = Crop(8)", "kept = [part]", True),
        ("crop = Crop(8)", "part.eval()", False),
        # nobody makes one here
        ("crop = None", "pass", True),
    ],
)
def test_a_module_that_its_makers_leave_on_the_cpu_is_asked_for(made: str, used: str, told: bool) -> None:
    text = HANDED_ON.format(made=made, used=used)
    assert bool(check(text, selected=False)) is told
    (found,) = check(text)
    assert (found.help or "").endswith(", and move the `Crop` where it is made") is not told


INHERITED = """
import torch
from torch import nn

class Base(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.{name} = torch.arange(n)

class Net({base}):
    def __init__(self, n):
        super().__init__()
        self.ends = torch.linspace(0, 1, 8)

    def forward(self, x):
        return x + self.ends.to(x.device)
"""


@pytest.mark.parametrize(("name", "base", "taken"), [("ends", "Base", True), ("starts", "Base", False)])
def test_a_base_may_have_taken_the_name_of_a_buffer(name: str, base: str, taken: bool) -> None:
    """Seen in EvoX: register_buffer would raise a KeyError."""
    (found,) = [one for one in check(INHERITED.format(name=name, base=base)) if one.span.row > 9]
    assert ("make it a buffer where it is first assigned" in (found.help or "")) is taken
    assert (found.fix is None) is taken
