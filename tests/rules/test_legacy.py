"""What the fixes of the legacy rules write, and that the result does the same as what was there."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding
from tests.flow.reading import needs_torch
from tests.test_fixtures import apply


def told(text: str, code: str = "DVL7", target: tuple[int, int] | None = None) -> list[Finding]:
    return check_source(text, "fixture.py", Config(rule_layers=(RuleLayer(select=(code,)),), target_torch=target))


def fixed(text: str) -> str:
    """The text after the fixes of all its findings, which are safe for who has the newest torch."""
    fixes = [finding.fix for finding in told(text, target=(2, 13)) if finding.fix is not None]
    assert fixes
    assert all(fix.applicability is Applicability.SAFE for fix in fixes)
    return apply(text, {edit for fix in fixes for edit in fix.edits})


FIXES = {
    "no arguments": ("torch.cuda.amp.autocast()", 'torch.amp.autocast("cuda")'),
    "one positional argument": ("torch.cuda.amp.autocast(False)", 'torch.amp.autocast("cuda", enabled=False)'),
    "all positional arguments": (
        "torch.cuda.amp.autocast(True, torch.float16, False)",
        'torch.amp.autocast("cuda", enabled=True, dtype=torch.float16, cache_enabled=False)',
    ),
    "a mixture": (
        "torch.cuda.amp.autocast(True, dtype=torch.float16)",
        'torch.amp.autocast("cuda", enabled=True, dtype=torch.float16)',
    ),
    "the scaler": (
        "torch.cuda.amp.GradScaler(1.0, 2.0)",
        'torch.amp.GradScaler("cuda", init_scale=1.0, growth_factor=2.0)',
    ),
    "the other device": ("torch.cpu.amp.autocast(False)", 'torch.amp.autocast("cpu", enabled=False)'),
    "a decorated function": ("torch.cuda.amp.custom_fwd(len)", 'torch.amp.custom_fwd(len, device_type="cuda")'),
    "a layout": (
        "torch.cuda.amp.autocast(\n    False,  # off\n    torch.float16,\n)",
        'torch.amp.autocast(\n    "cuda",\n    enabled=False,  # off\n    dtype=torch.float16,\n)',
    ),
    "a name": ("torch.cuda.memory_cached()", "torch.cuda.memory_reserved()"),
    "a name that is not called": ("f = map(torch.cuda.memory_cached, ())", "f = map(torch.cuda.memory_reserved, ())"),
    "a question": ("torch.is_autocast_cpu_enabled()", 'torch.is_autocast_enabled("cpu")'),
    "a setting": ("torch.set_autocast_cpu_enabled(False)", 'torch.set_autocast_enabled("cpu", False)'),
    "a constant": ("torch.has_cuda", "torch.backends.cuda.is_built()"),
    "a variable of something new": ("torch.autograd.Variable(torch.ones(2))", "torch.ones(2)"),
    "a variable with a gradient": (
        "x = torch.ones(2)\ntorch.autograd.Variable(x * 2, requires_grad=True)",
        "x = torch.ones(2)\n(x * 2).detach().requires_grad_()",
    ),
    "an argument": (
        "torch.utils.data.DataLoader([], pin_memory_device='cuda', num_workers=0)",
        "torch.utils.data.DataLoader([], num_workers=0)",
    ),
    "the only argument": ("torch.zeros(1).is_pinned('cuda')", "torch.zeros(1).is_pinned()"),
    "a renamed argument": (
        "torch.autograd.profiler.profile(use_cuda=True, record_shapes=True)",
        'torch.autograd.profiler.profile(use_device="cuda", record_shapes=True)',
    ),
}


@pytest.mark.parametrize(("before", "after"), FIXES.values(), ids=FIXES)
def test_fix(before: str, after: str) -> None:
    assert fixed(f"import torch\n{before}\n") == f"import torch\n{after}\n"


def test_the_help_says_which_torch_has_a_young_name_unless_that_is_known() -> None:
    text = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"
    # where nobody says which torch is needed, few have asked for one that has it
    assert check_source(text) == []
    (finding,) = told(text, "DVL701")
    assert finding.help == 'use `torch.amp.GradScaler("cuda")` (there since torch 2.3)'
    (finding,) = check_source(text, config=Config(target_torch=(2, 5)))
    assert finding.help == 'use `torch.amp.GradScaler("cuda")`'
    (finding,) = check_source("import torch\nmixed = torch.cuda.amp.autocast()\n")
    assert finding.help == 'use `torch.amp.autocast("cuda")`'
    code = "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), {})\n"
    (finding,) = told(code.format("broadcast_buffers=False"), "DVL703")
    assert finding.help == "use `forward_sync_buffers` (there since torch 2.13)"
    (finding,) = told(code.format("broadcast_buffers=True"), "DVL703")
    assert finding.help == "leave `broadcast_buffers` out"


def test_a_young_argument_is_young_too() -> None:
    """Seen in torchrec."""
    wrap = "torch.nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)"
    text = f"import torch\n\ndef f(net):\n    return {wrap}\n"
    (finding,) = told(text, "DVL703")
    assert finding.help == "use `forward_sync_buffers` (there since torch 2.13)"
    # an installation in use may not have it
    assert check_source(text) == []
    assert [each.code for each in check_source(text, config=Config(target_torch=(2, 13)))] == ["DVL703"]


def test_how_torch_was_built_is_not_whether_there_is_a_gpu() -> None:
    """Seen in neuraloperator, which chooses a device by it."""
    (finding,) = told("import torch\nif torch.has_cuda:\n    device = 'cuda'\n", "DVL703")
    assert finding.message.endswith("and `torch.cuda.is_available()` whether that can be used")
    assert finding.help == "use `torch.backends.cuda.is_built()` (there since torch 2.0)"


def test_a_help_that_is_cut_short_still_names_the_device() -> None:
    settings = "enabled=settings.mixed_precision.enabled, dtype=settings.mixed_precision.dtype"
    (finding,) = told(f"import torch\ntorch.cuda.amp.autocast({settings})\n", "DVL701")
    assert finding.help == 'use `torch.amp.autocast("cuda", ...)`'
    assert finding.message.endswith(finding.help)


def test_a_fix_that_is_too_long_to_be_shown_is_named() -> None:
    long = "torch.ones(32, 1, kernel_size, kernel_size).expand(batch, 1, kernel_size, kernel_size).contiguous()"
    (finding,) = told(f"import torch\ntorch.autograd.Variable({long})\n", "DVL702")
    assert finding.fix is not None
    assert finding.fix.message == "Use the tensor itself"


@needs_torch
@pytest.mark.parametrize(("before", "after"), FIXES.values(), ids=FIXES)
def test_the_fix_can_be_run(before: str, after: str) -> None:
    import torch

    exec(after, {"torch": torch})


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_a_fixed_autocast_is_as_enabled_and_of_the_same_dtype() -> None:
    import torch

    for arguments in ("", "False", "True, torch.bfloat16", "False, torch.bfloat16, False", "dtype=torch.float16"):
        old = f"torch.cpu.amp.autocast({arguments})"
        new = fixed(f"import torch\n{old}\n").splitlines()[1]
        first, second = (eval(code, {"torch": torch}) for code in (old, new))
        for name in ("device", "_enabled", "fast_dtype", "_cache_enabled"):
            assert getattr(first, name) == getattr(second, name), (arguments, name)


def test_a_variable_of_something_that_may_have_a_graph_is_left_to_a_person() -> None:
    (finding,) = told("from torch.autograd import Variable\ny = Variable(x + 1)\n", "DVL702")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert [edit.content for edit in finding.fix.edits] == ["(x + 1)"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = Variable(x)\n    y = x + 1", "y = x + 1"),
        ("x = Variable(x, requires_grad=False)  # as it was\n    return x", "return x"),
        ("y = Variable(x)\n    return y", "y = x\n    return y"),
        ("x, y = Variable(x), Variable(y)\n    return x", "x, y = x, y\n    return x"),
        ("x = Variable(x, requires_grad=True)\n    return x", "x = x.detach().requires_grad_()\n    return x"),
        ("x = Variable(x)", "x = x"),
        ("z = Variable(x.detach().clone(), requires_grad=True)", "z = x.detach().clone().requires_grad_()"),
        ("z = Variable(x.clone(), requires_grad=True)", "z = x.clone().detach().requires_grad_()"),
    ],
)
def test_a_variable_under_the_name_of_its_tensor_leaves_no_assignment_of_it(before: str, after: str) -> None:
    head = "from torch.autograd import Variable\ndef f(x, y):\n    "
    text = f"{head}{before}\n"
    edits = {edit for finding in told(text) if finding.fix is not None for edit in finding.fix.edits}
    assert apply(text, edits) == f"{head}{after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.FloatTensor([1, 2])", "torch.tensor([1, 2], dtype=torch.float32, device=device)"),
        ("torch.cuda.LongTensor(2, 3)", "torch.empty(2, 3, dtype=torch.int64, device=device)"),
        ("x.type('torch.cuda.HalfTensor')", "x.to(device, torch.float16)"),
        ("torch.cuda.FloatTensor(n)", None),
        ("torch.cuda.FloatTensor([1, 2], device=d)", None),
        ("torch.cuda.sparse.FloatTensor([1, 2])", None),
    ],
)
def test_a_tensor_type_becomes_a_dtype_and_a_device(before: str, after: str | None) -> None:
    (finding,) = told(f"import torch\ndef f(x, n, device):\n    return {before}\n", "DVL702")
    assert (finding.fix and [edit.content for edit in finding.fix.edits]) == (after and [after])
    assert finding.fix is None or finding.fix.applicability is Applicability.UNSAFE


def test_a_fix_imports_torch_once_and_leaves_the_old_import() -> None:
    text = "from torch.cuda.amp import GradScaler, autocast\n\nscaler = GradScaler()\nmixed = autocast()\n"
    assert fixed(text) == (
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\n\n"
        'scaler = torch.amp.GradScaler("cuda")\nmixed = torch.amp.autocast("cuda")\n'
    )


def test_bare_decorators_are_called() -> None:
    text = "import torch\nfrom torch.cuda.amp import custom_bwd\n\n@custom_bwd\ndef f(): ...\n"
    assert '@torch.amp.custom_bwd(device_type="cuda")\n' in fixed(text)


UNFIXED = {
    "arguments through a star": "import torch\ntorch.cuda.amp.autocast(*options)",
    "too many arguments": "import torch\ntorch.cuda.amp.autocast(1, 2, 3, 4)",
    "handed on": "import torch\nf(torch.cuda.amp.autocast)",
    "torch is another name": "from torch.cuda.amp import autocast\ntorch = None\nautocast()",
    "a choice that a person has to make": "import torch\ntorch.profiler.profile(use_cuda=True)",
    "an argument beside a star": "import torch\ntorch.utils.data.DataLoader(*given, pin_memory_device='cuda')",
}


@pytest.mark.parametrize("text", UNFIXED.values(), ids=UNFIXED)
def test_no_fix(text: str) -> None:
    (finding,) = told(text)
    assert finding.fix is None


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("torch.cuda.amp.autocast()", (1, 12)),
        ("torch.cuda.amp.GradScaler()", (2, 3)),
        ("torch.cuda.amp.custom_fwd(f)", (2, 4)),
        ("torch.get_autocast_gpu_dtype()", (2, 4)),
        ("torch.utils.data.DataLoader(d, pin_memory_device='cuda')", (2, 9)),
    ],
)
def test_a_name_is_reported_from_the_torch_on_that_has_the_new_one(text: str, first: tuple[int, int]) -> None:
    before = (first[0], first[1] - 1)
    code = f"import torch\n{text}\n"
    assert [bool(told(code, target=target)) for target in (before, first, None)] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("functools.partial(torch.cuda.amp.autocast, enabled=True)", '"cuda"'),
        ("list(map(torch.cuda.amp.custom_fwd, fs))", 'device_type="cuda"'),
    ],
)
def test_what_is_called_elsewhere_wants_more_there(text: str, more: str) -> None:
    """Seen in DINOv2: torch.amp asks for the type of the device."""
    (found,) = told(f"import functools\nimport torch\n\nx = {text}\n")
    assert f", and give it `{more}`, too" in found.help
    assert found.fix is None


def test_types_to_tell_tensors_apart_are_no_constructors() -> None:
    """Seen in Megatron."""
    assert told("import torch\nFLOATS = (torch.FloatTensor, torch.cuda.FloatTensor)\n", "DVL702") == []
    assert [each.code for each in told("import torch\nx = (torch.cuda.FloatTensor(3),)\n", "DVL702")] == ["DVL702"]


def test_a_type_of_cuda_in_a_file_for_cuda_alone_is_for_those_who_ask() -> None:
    text = "import torch\n\ndef f(n):\n    return torch.cuda.FloatTensor(n, 3)\n"
    assert check_source(text) == check_source(text.replace("f(n)", "f(n, device)")) == []
    (finding,) = told(text, "DVL702")
    assert (finding.design, str(finding.severity)) == ("", "warning")
    assert told(f"{text}\nthere = torch.cuda.is_available()\n", "DVL702")[0].design == ""


def test_what_is_asked_of_a_type_of_cuda_says_that_there_is_one() -> None:
    """Seen in WaveGlow."""
    asked = (
        "import torch\n\ndef f(x):\n    if x.type() == 'torch.cuda.HalfTensor':\n        x = torch.cuda.HalfTensor(3)\n"
    )
    (finding,) = told(asked, "DVL702")
    assert (str(finding.severity), "fails" in finding.message) == ("info", False)
    (finding,) = told(asked.replace(".cuda.HalfTensor':", ".HalfTensor':"), "DVL702")
    assert str(finding.severity) == "warning"


def test_code_for_the_torch_that_had_volatile_may_keep_it() -> None:
    """Seen in practical-pytorch, whose losses are read as before torch 0.4."""
    text = "import torch\nfrom torch.autograd import Variable\n\nx = Variable(torch.ones(3), volatile=True), {}\n"
    for target in ((1, 8), (2, 0)):
        config = Config(target_torch=target)
        assert [found.code for found in check_source(text.format("loss.item()"), config=config)] == ["DVL702"]
        assert check_source(text.format("loss.data[0]"), config=config) == []
    # nothing says which torch it is for, or that it is for one that had it
    assert check_source(text.format("loss.item()")) == []
    old = Config(target_torch=(0, 2), rule_layers=(RuleLayer(("DVL702",)),))
    assert check_source(text.format("loss.item()"), config=old) == []
    assert [found.code for found in told(text.format("loss.data[0]"), "DVL702")] == ["DVL702"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("from apex import amp\n\ndef f(model, optimizer):\n    return amp.initialize(model, optimizer)\n", ["DVL701"]),
        (
            "from apex import amp\n\ndef f(loss, o):\n    with amp.scale_loss(loss, o) as x:\n        x.backward()\n",
            ["DVL701"],
        ),
        ("from apex.parallel import DistributedDataParallel as DDP\n\ndef f(net):\n    return DDP(net)\n", ["DVL703"]),
        ("import lightning as L\n\ndef f():\n    return L.Trainer(gpus=2, strategy='ddp')\n", ["DVL703"]),
        ("import lightning as L\n\ndef f():\n    return L.Trainer(accelerator='ddp')\n", ["DVL703"]),
        (
            "import lightning as L\n\ndef f():\n    L.Trainer(accelerator='gpu', amp_backend='apex')\n",
            ["DVL703"],
        ),
        ("import lightning as L\n\ndef f():\n    return L.Trainer(accelerator='gpu', devices=2)\n", []),
    ],
)
def test_what_other_libraries_have_given_up_is_told_to_those_who_ask(text: str, codes: list[str]) -> None:
    text = f"import torch\n{text}"
    assert [finding.code for finding in told(text)] == codes
    assert check_source(text) == []


FILTER = "import warnings\n\nwarnings.filterwarnings('ignore', {})\n"


@pytest.mark.parametrize(
    ("told_to", "everybody"),
    [
        ("message='`torch.cuda.amp.autocast.*is deprecated.*', category=FutureWarning", False),
        (r"message=r'.*torch\.cuda\.amp\.autocast.*'", False),
        ("category=FutureWarning", False),
        ("message='Grad strides do not match.*', category=FutureWarning", True),
        ("category=UserWarning", True),
    ],
)
def test_whoever_has_the_warning_ignored_knows_of_it(told_to: str, everybody: bool) -> None:
    """Seen in Retrieval-based-Voice-Conversion-WebUI."""
    text = FILTER.format(told_to) + "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"
    assert [one.code for one in check_source(text)] == ["DVL701"] * everybody
    assert [one.code for one in check_source(text, config=Config(rule_layers=(RuleLayer(("DVL701",)),)))] == ["DVL701"]
