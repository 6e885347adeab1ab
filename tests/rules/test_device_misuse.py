"""What is told of devices taken for what they are not is what torch does with them."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding
from devlint.flow.observers.portability.device_misuse import wrong_text
from tests.flow.reading import needs_torch
from tests.test_fixtures import apply


def told(line: str, code: str) -> list[Finding]:
    text = f"import torch\nx, y = torch.zeros(3), torch.zeros(3)\n{line}\n"
    return check_source(text, "fixture.py", Config(rule_layers=(RuleLayer(select=(code,)),)))


VALID = ["cpu", "cuda", "cuda:0", "cuda:12", "cuda:127", "mps", "xpu:1", "meta", "xla", "hpu", "mtia", "privateuseone"]
WRONG = ["gpu", "GPU", "gpu:0", "CUDA", "Cuda:0", "CPU", "cuda0", "cuda:-1", "cuda: 0", "cuda:", "cuda 0", " cuda",
         "cuda:01", "cpu0", "rocm", "MPS", "tpu"]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("text", VALID)
def test_a_name_that_torch_takes_is_right(text: str) -> None:
    import torch

    torch.device(text)
    assert wrong_text(text) == ""


@needs_torch
@pytest.mark.parametrize("text", WRONG)
def test_a_name_that_is_told_of_raises(text: str) -> None:
    import torch

    assert wrong_text(text) == "name"
    with pytest.raises(RuntimeError):
        torch.device(text)


@needs_torch
def test_an_index_beyond_what_torch_counts_is_another_one() -> None:
    import torch

    assert wrong_text("cuda:128") == "range"
    assert torch.device("cuda:128").index != 128


@pytest.mark.parametrize(
    "text", ["npu", "npu:1", "fancy", "auto", "disk", "cuda_fast", "km", "", "my gpu", "0", "hpu:0"]
)
def test_a_name_of_which_nothing_is_known_is_let_be(text: str) -> None:
    assert wrong_text(text) == ""


def test_a_name_that_the_file_gives_its_own_device_is_let_be() -> None:
    assert (wrong_text("gpu", renamed=True), wrong_text("cuda0", renamed=True)) == ("", "name")


CONSTANT = [
    'x.device == "cpu"', 'x.device != "cpu"', '"cpu" == x.device', 'x.device in ("cpu", "cuda")',
    'x.device not in ["cpu"]', "x.device is y.device", 'x.device is not torch.device("cpu")',
    'torch.device("cpu") == "cpu"',
]  # fmt: skip
TELLING = [
    'x.device == torch.device("cpu")', "x.device == y.device", 'x.device.type == "cpu"', 'str(x.device) == "cpu"',
    'x.device in (torch.device("cpu"),)', "x.device is None", 'x.device.type in ("cpu", "cuda")',
    '"cpu" in str(x.device)',
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("line", CONSTANT)
def test_a_comparison_that_is_told_of_has_the_outcome_that_is_told(line: str) -> None:
    import torch

    (finding,) = told(line, "DVL110")
    outcome = eval(line, {"torch": torch, "x": torch.zeros(3), "y": torch.zeros(3)})
    assert f"is always {outcome}" in finding.message
    other = eval(line, {"torch": torch, "x": torch.zeros(3, device="meta"), "y": torch.zeros(3, device="meta")})
    assert other is outcome


@needs_torch
@pytest.mark.parametrize("line", TELLING)
def test_a_comparison_that_tells_something_is_let_be(line: str) -> None:
    assert not told(line, "DVL110")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('x.device == "cpu"', 'x.device.type == "cpu"'),
        ('"cpu" == x.device', '"cpu" == x.device.type'),
        ('x.device != "cuda:0"', 'x.device != torch.device("cuda:0")'),
        ('x.device in ("cpu", "cuda")', 'x.device.type in ("cpu", "cuda")'),
        ('x.device in ("cpu", "cuda:0")', None),
        ('x.device == torch.device("cuda")', 'x.device.type == "cuda"'),
        ("x.device is y.device", "x.device == y.device"),
        ("x.device  is not  y.device", "x.device != y.device"),
        ('"cpu" in x.device', None),
    ],
)
def test_fix_of_a_comparison(before: str, after: str | None) -> None:
    (finding,) = told(before, "DVL110")
    if finding.fix is None:
        assert after is None
        return
    assert finding.fix.applicability is Applicability.UNSAFE
    text = f"import torch\nx, y = torch.zeros(3), torch.zeros(3)\n{before}\n"
    assert apply(text, finding.fix.edits).splitlines()[2] == after


RAISING = [
    'torch.zeros(3, device="gpu")', 'x.to("CUDA")', "torch.device(None)", "x.cuda(True)", "x.to(torch.cuda)",
    "torch.zeros(3, device=torch.cuda.device(0))", 'torch.cuda("cpu")', "torch.zeros(3, device=x.get_device())",
    "torch.autocast(x.device)", 'torch.FloatTensor([1.0], device="cuda")', "x.cpu(non_blocking=True)",
    'x.to("cpu", True)', 'x.cuda("cpu")', "torch.nn.Linear(3, 3).cpu(True)", "torch.zeros(3, device=True)",
    "torch.nn.Linear(3, 3).cuda(non_blocking=True)", 'torch.Generator("gpu")', 'x.new_zeros(3, device="gpu")',
]  # fmt: skip
PASSING = [
    'torch.zeros(3, device="meta")', 'x.to("meta")', "x.to(torch.float32, True)", "x.to(y, True)", "x.to(None)",
    'torch.autocast("cpu:0")', 'torch.FloatTensor([1.0], device="cpu")', "torch.zeros(3, device=None)", "x.to(True)",
    "torch.amp.GradScaler(x.device)", 'x.to("cpu", torch.float64, True)', 'x.to("cpu", non_blocking=True)',
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("line", RAISING)
def test_an_argument_that_is_told_of_raises(line: str) -> None:
    import torch

    assert len(told(line, "DVL112")) == 1
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        eval(line, {"torch": torch, "x": torch.zeros(3), "y": torch.zeros(3)})


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", PASSING)
def test_an_argument_that_torch_takes_is_let_be(line: str) -> None:
    import torch

    eval(line, {"torch": torch, "x": torch.zeros(3), "y": torch.zeros(3)})
    assert not told(line, "DVL112")
