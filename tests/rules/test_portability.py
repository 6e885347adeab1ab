"""What the portability rules say and write, where a fixture cannot show it."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest

import devlint
from devlint import device
from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.device import AVAILABLE, CPU, Device
from devlint.finding import Applicability, Fix
from devlint.rules.base import Report, Rule
from devlint.rules.code import device_candidates, edits
from devlint.rules.portability.hardcoded_cuda_call import HardcodedCudaCall
from devlint.rules.portability.hardcoded_cuda_device import HardcodedCudaDevice
from devlint.rules.portability.load_without_map_location import LoadWithoutMapLocation
from devlint.sites.base import Operand, Scope, Site
from devlint.sites.devices import ApiCall, Literal
from devlint.sites.transfers import Transfer
from devlint.source.tree import Source

CUDA = device.accelerator("cuda")
SYMBOL = device.symbol("f:device", "device")
SWITCH = device.choice(AVAILABLE, CUDA, CPU, "device")


def source_of(text: str) -> Source:
    source = Source.parse(text)
    assert isinstance(source, Source)
    return source


def call_in(source: Source, method: str = "") -> ast.Call:
    """The outermost call in a file, or the outermost one of a method."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (not method or getattr(node.func, "attr", "") == method):
            return node
    raise AssertionError("no such call")


def judged(rule: type[Rule], source: Source, site: Site) -> Report:
    (report,) = rule(source).judge(site)
    return report


def silent(rule: type[Rule], source: Source, site: Site) -> bool:
    return not list(rule(source).judge(site))


def fixed(source: Source, fix: Fix) -> str:
    """The file after a fix of one edit; it has to parse, and to keep what stands around the edit."""
    (edit,) = fix.edits
    lines = source.text.split("\n")
    first, last = lines[edit.span.row - 1], lines[edit.span.end_row - 1]
    before = "\n".join([*lines[: edit.span.row - 1], first[: edit.span.column - 1]])
    after = "\n".join([last[edit.span.end_column - 1 :], *lines[edit.span.end_row :]])
    text = before + edit.content + after
    ast.parse(text)
    assert text.startswith(before)
    assert text.endswith(after)
    return text


def cuda(text: str, target: Device = CUDA, **scope: object) -> tuple[Source, Transfer]:
    """The site of the `.cuda()` in a file."""
    source = source_of(text)
    call = call_in(source, "cuda")
    assert isinstance(call.func, ast.Attribute)
    value = Operand(call.func.value, ast.unparse(call.func.value))
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    node = call.args[0] if call.args else keywords.get("device")
    return source, Transfer(call, Scope(**scope), "cuda", "", value, target, node)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda()\n", "x.to(device)\n"),
        ("x = x.cuda(non_blocking=True)\n", "x = x.to(device, non_blocking=True)\n"),
        ("x.cuda(  # note\n    memory_format=f,\n)\n", "x.to(  # note\n    device, memory_format=f,\n)\n"),
        ("(x\n  .float()  # why\n  .cuda()\n)\n", "(x\n  .float()  # why\n  .to(device)\n)\n"),
        ("é = 'ä', x.cuda ( )\n", "é = 'ä', x.to ( device)\n"),
        ("f(x.cuda())  # kept\n", "f(x.to(device))  # kept\n"),
    ],
)
def test_bare_call_names_the_device_at_hand(before: str, after: str) -> None:
    source, site = cuda(before, devices=("device",))
    report = judged(HardcodedCudaCall, source, site)
    assert report.help == "use `.to(device)`"
    assert report.fix is not None
    assert report.fix.applicability is Applicability.UNSAFE
    assert fixed(source, report.fix) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda(device)\n", "x.to(device)\n"),
        ("x.cuda(device=device)\n", "x.to(device=device)\n"),
        ("x.cuda(device, True)\n", "x.to(device, non_blocking=True)\n"),
        ("x.cuda(\n  device,  # why\n  non_blocking = n)\n", "x.to(\n  device,  # why\n  non_blocking = n)\n"),
        ("x.cuda(device, memory_format=f)\n", "x.to(device, memory_format=f)\n"),
    ],
)
@pytest.mark.parametrize(("target", "applicability"), [(SWITCH, Applicability.SAFE), (SYMBOL, Applicability.UNSAFE)])
def test_call_with_a_device_keeps_it(before: str, after: str, target: Device, applicability: Applicability) -> None:
    source, site = cuda(before, target, devices=("other",))
    report = judged(HardcodedCudaCall, source, site)
    assert "`.to(device)`" in report.message
    assert report.fix is not None
    assert report.fix.applicability is applicability
    assert fixed(source, report.fix) == after


@pytest.mark.parametrize("text", ["x.cuda(0)", "x.cuda(rank)", "x.cuda('cuda:1')", "x.cuda(None)", "x.cuda(args.gpu)"])
def test_an_index_is_left_alone(text: str) -> None:
    # .to(None) stays where .cuda(None) moves, and a name may hold None
    source, site = cuda(text, devices=("device",))
    assert judged(HardcodedCudaCall, source, site).fix is None


@pytest.mark.parametrize("number", ["rank", "config.gpu_ids[0]", "device_id"])
def test_the_help_for_an_index_keeps_it(number: str) -> None:
    source, site = cuda(f"x.cuda({number})", devices=("device",))
    chosen = f'torch.device("cuda", {number}) if torch.cuda.is_available() else torch.device("cpu")'
    assert judged(HardcodedCudaCall, source, site).help == f"choose once, `device = {chosen}`, and use `.to(device)`"


@pytest.mark.parametrize("text", ["x.cuda(*rest)", "x.cuda(device, True, f)", "x.cuda(**options)"])
def test_arguments_that_cannot_be_told_are_left_alone(text: str) -> None:
    source, site = cuda(text, SYMBOL, devices=("device",))
    assert judged(HardcodedCudaCall, source, site).fix is None


def test_a_device_is_not_taken_from_the_value_that_moves() -> None:
    source, site = cuda("self.cuda()", devices=("self.device",))
    report = judged(HardcodedCudaCall, source, site)
    assert report.fix is None
    assert report.help.startswith("choose once")


@pytest.mark.parametrize(
    ("text", "devices", "told"),
    [
        ("mask = mask.permute(2, 1, 0)[None].cuda()", ("mask.device",), ""),
        ("y = embedding[:, 0].t().to(device='cuda')", ("embedding.device",), ""),
        ("y = embedding[:, 0].t().to('cuda')", ("embedding.device", "other.device"), "other.device"),
        ("y = torch.zeros(mask.shape, device='cuda')", ("mask.device",), "mask.device"),
        ("y = self.encode(x).cuda()", ("self.device",), "self.device"),
    ],
)
def test_a_part_of_a_tensor_is_not_moved_to_where_the_tensor_is(text: str, devices: tuple[str, ...], told: str) -> None:
    source = source_of(f"{text}\nother.shape, embedding.shape, mask.shape\n")
    cuda_literals = [node for node in ast.walk(source.tree) if isinstance(node, ast.Constant) and node.value == "cuda"]
    node = cuda_literals[0] if cuda_literals else call_in(source, "cuda")
    assert device_candidates.device_instead_of_cuda(source, node, Scope(devices=devices)) == told


@pytest.mark.parametrize("name", ["rank", "global_rank", "gpu_id", "device_ids", "device_id", "args.local_rank"])
def test_a_number_is_no_device_to_name(name: str) -> None:
    source = source_of("print(args.device)")
    assert not device_candidates.device_at_hand(source, source.tree, Scope(devices=(name,)))
    for good in ("device", "args.device", "self._device", "DEVICE", "dev", "cuda_device", "device1"):
        assert device_candidates.device_at_hand(source, source.tree, Scope(devices=(name, good))) == good


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ('if device == "gpu":\n        x = x.cuda()', ""),
        ('if device in ("gpu", "cpu"):\n        print(device)\n    x = x.cuda()', ""),
        ('if device != "cpu":\n        x = x.cuda()', "device"),
        ('if device == "auto":\n        device = "mps"\n    x = x.cuda()', "device"),
    ],
)
def test_a_word_that_torch_does_not_know_is_no_device_to_name(test: str, told: str) -> None:
    # seen in YOLOX: `self.device` is "gpu" or "cpu"
    source = source_of(f"import torch\n\ndef f(x: torch.Tensor, device):\n    {test}\n    return x\n")
    assert device_candidates.device_instead_of_cuda(source, call_in(source, "cuda"), Scope(devices=("device",))) == told


def test_call_says_what_is_wrong_and_how_bad() -> None:
    source, site = cuda("model.cuda()")
    report = judged(HardcodedCudaCall, source, site)
    assert report.message == (
        "`model.cuda()` fails where CUDA is not available, and leaves MPS, XPU and other accelerators unused"
    )
    guarded = judged(HardcodedCudaCall, *cuda("model.cuda()", guarded=True))
    assert "fails" not in guarded.message


@pytest.mark.parametrize(
    "name", ["cuda", "to", "_apply", "cpu", "half", "to_cuda", "_move_to_cuda", "to_gpu", "tensor2cuda", "_to"]
)
def test_the_caller_of_a_mover_decides(name: str) -> None:
    assert silent(HardcodedCudaCall, *cuda("x.cuda()", function=name))


@pytest.mark.parametrize("name", ["", "main", "train_gpu", "test_cuda", "cuda_setup", "total", "type_of"])
def test_other_functions_are_no_movers(name: str) -> None:
    assert not edits.moves_to_cuda_by_name(name)


@pytest.mark.parametrize(
    ("code", "role", "said"),
    [
        ('x.to("cuda:0")', ".to", '`.to("cuda:0")` fails'),
        ('torch.device("cuda")', "torch.device", '`"cuda"` is written into this device'),
        ('torch.zeros(3, device="cuda")', "device", '`device="cuda"` fails'),
        ('torch.set_default_device("cuda")', "set_default_device", "the first tensor after it"),
        ('torch.load(f, map_location="cuda")', "map_location", '`map_location="cuda"` fails'),
        ('torch.autocast("cuda")', "autocast", "switched off"),
    ],
)
def test_literal_is_explained_by_its_role(code: str, role: str, said: str) -> None:
    source = source_of(code)
    call = call_in(source)
    node = call.keywords[0].value if call.keywords else call.args[0]
    assert isinstance(node, ast.Constant)
    report = judged(HardcodedCudaDevice, source, Literal(node, Scope(), str(node.value), role))
    assert said in report.message
    assert report.help
    assert report.fix is None


@pytest.mark.parametrize("role", [".to", "device", "map_location"])
def test_literal_gives_way_to_the_device_at_hand(role: str) -> None:
    source = source_of("x = f('cuda')  # 'cuda'\nprint(args.device)\n")
    site = Literal(call_in(source).args[0], Scope(devices=("args.device", "device")), "cuda", role)
    report = judged(HardcodedCudaDevice, source, site)
    assert report.fix is not None
    assert report.fix.applicability is Applicability.UNSAFE
    assert fixed(source, report.fix) == "x = f(args.device)  # 'cuda'\nprint(args.device)\n"


@pytest.mark.parametrize(
    ("body", "fixes"),
    [
        ("return w.to('cuda') + x", ["x.device"]),
        # x itself, from where it was
        ("return x.to('cuda')", []),
        ("return x.cuda()", []),
        # where x was is not where the others go
        ("y = x.to('cuda:0')\n    return y + torch.ones(3, device='cuda')", []),
        ("assert y.is_floating_point()\n    return x.cuda() + y.cuda()", []),
    ],
)
def test_the_device_of_what_goes_to_cuda_is_no_device_at_hand(body: str, fixes: list[str]) -> None:
    code = f"import torch\n\ndef f(x: torch.Tensor, y, w):\n    {body}\n"
    found = devlint.check_source(code, config=Config(rule_layers=(RuleLayer(("DVL601", "DVL602")),)))
    assert found
    assert [finding.fix.message for finding in found if finding.fix] == [f"Use `{text}`" for text in fixes]


@pytest.mark.parametrize("role", ["parameter", "set_default_device", "autocast"])
def test_literal_that_defines_a_device_is_left_alone(role: str) -> None:
    source = source_of("f('cuda')")
    site = Literal(call_in(source).args[0], Scope(devices=("device",)), "cuda", role)
    assert judged(HardcodedCudaDevice, source, site).fix is None


def test_literal_is_silent_where_it_is_guarded_or_is_no_cuda() -> None:
    source = source_of("f('cuda')")
    node = call_in(source).args[0]
    for scope in (Scope(guarded=True), Scope(handler=True), Scope(function="cuda")):
        assert silent(HardcodedCudaDevice, source, Literal(node, scope, "cuda", ".to"))
    assert silent(HardcodedCudaDevice, source, Literal(node, Scope(), "mps", ".to"))
    assert silent(HardcodedCudaDevice, source, Literal(node, Scope(), "cuda", "GradScaler"))


def load(text: str, function: str = "torch.load", purpose: str = "", **scope: object) -> tuple[Source, ApiCall]:
    """The site of the load in a file."""
    source = source_of(text)
    call = call_in(source)
    arguments: dict[str, ast.AST] = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    open_ = any(isinstance(arg, ast.Starred) for arg in call.args) or any(not keyword.arg for keyword in call.keywords)
    return source, ApiCall(call, Scope(**scope), function, arguments, len(call.args), open_, purpose)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("load(f)\n", 'load(f, map_location="cpu")\n'),
        ("x = load( f ) # é\n", 'x = load( f, map_location="cpu" ) # é\n'),
        ("load(f, weights_only=True,)\n", 'load(f, weights_only=True, map_location="cpu",)\n'),
        (
            "load(\n    f,  # the file\n    weights_only=True,  # safe\n)\n",
            'load(\n    f,  # the file\n    weights_only=True,\n    map_location="cpu",  # safe\n)\n',
        ),
        ("load(\n    f\n)\n", 'load(\n    f,\n    map_location="cpu"\n)\n'),
        ("load(\n    f,\n)\n", 'load(\n    f,\n    map_location="cpu",\n)\n'),
        ("load(f,\n     weights_only=w)\n", 'load(f,\n     weights_only=w,\n     map_location="cpu")\n'),
        ("load(g('f'), w=(w))['a']\n", "load(g('f'), w=(w), map_location=\"cpu\")['a']\n"),
        ("load((f))\n", 'load((f), map_location="cpu")\n'),
    ],
)
def test_load_gets_the_argument_in_its_own_layout(before: str, after: str) -> None:
    source, site = load(before, purpose="state dict")
    report = judged(LoadWithoutMapLocation, source, site)
    assert report.fix is not None
    assert report.fix.applicability is Applicability.SAFE
    text = fixed(source, report.fix)
    assert text == after
    assert silent(LoadWithoutMapLocation, *load(text, purpose="state dict"))


def test_load_for_anything_else_goes_to_the_device_at_hand() -> None:
    source, site = load("m = load(f)", devices=("device",))
    report = judged(LoadWithoutMapLocation, source, site)
    assert report.help == "add `map_location=device`"
    assert report.fix is not None
    assert report.fix.applicability is Applicability.UNSAFE
    assert fixed(source, report.fix) == "m = load(f, map_location=device)"


def test_load_for_another_file_goes_to_the_cpu() -> None:
    report = judged(LoadWithoutMapLocation, *load("m = load(f)\ntorch.save(m, g)", devices=("device",)))
    assert report.help == 'add `map_location="cpu"`'
    kept = judged(LoadWithoutMapLocation, *load("m = load(f)\ntorch.save(m, g)\nuse(m)", devices=("device",)))
    assert kept.help == "add `map_location=device`"


@pytest.mark.parametrize(
    ("options", "applicability"),
    [
        ("", Applicability.SAFE),
        (", strict=False", Applicability.SAFE),
        (", assign=False", Applicability.SAFE),
        (", assign=True", Applicability.UNSAFE),
        (", assign=wanted", Applicability.UNSAFE),
    ],
)
def test_load_for_a_module_that_keeps_the_tensors_is_not_fixed_safely(
    options: str, applicability: Applicability
) -> None:
    code = f"import torch\n\n\ndef f(net, path, wanted):\n    net.load_state_dict(torch.load(path){options})\n"
    (finding,) = check_source(code)
    assert finding.fix is not None
    assert finding.fix.applicability is applicability
    assert ("copies" in finding.help) is (applicability is Applicability.SAFE)


RESTORED = {
    "as it is": "net.load_state_dict(torch.load(path)['net'])",
    "beside numbers": "c = torch.load(path)\nnet.load_state_dict(c['net'])\nprint(len(c))\nepoch = c['epoch'] + 1",
    "asked for keys": "c = torch.load(path)\nif 'net' in c:\n    c = c['net']\nassert c.keys()\nnet.load_state_dict(c)",
    "changed before": "c = torch.load(path)\nc.pop('head')\ndel c['mean']\nc['new'] = 1\nnet.load_state_dict(c)",
    "renamed": "c = torch.load(path)\nc = {k[7:]: v for k, v in c.items()}\nnet.load_state_dict(c)",
    "looked through": "c = torch.load(path)\nfor k, v in c.items():\n    print(k, v.shape)\nnet.load_state_dict(c)",
}
KEPT = {
    "returned": "c = torch.load(path)\nnet.load_state_dict(c['net'])\nreturn c['mean']",
    "an attribute": "c = torch.load(path)\nnet.load_state_dict(c['net'])\nnet.mean = c['mean']",
    "under another name": "c = torch.load(path)\nnet.load_state_dict(c['net'])\nm = c['mean']\nuse(m)",
    "handed on": "c = torch.load(path)\nuse(c)\nnet.load_state_dict(c)",
    "on the other path": "if net:\n    c = torch.load(path)\n    use(c)\nelse:\n    c = {}\n    net.load_state_dict(c)",
    "an item of another": "c = torch.load(path)\nd = {}\nd['c'] = c\nnet.load_state_dict(c)\nuse(d)",
}


@pytest.mark.parametrize("code", RESTORED.values(), ids=RESTORED)
def test_load_that_only_goes_into_a_module_is_fixed_safely(code: str) -> None:
    assert _applicability(code) is Applicability.SAFE


@pytest.mark.parametrize("code", KEPT.values(), ids=KEPT)
def test_load_of_which_something_is_kept_is_not_fixed_safely(code: str) -> None:
    assert _applicability(code) is Applicability.UNSAFE


def _applicability(code: str) -> Applicability:
    (finding,) = check_source("import torch\n\n\ndef f(net, path, use):\n" + indent(code, "    ") + "\n")
    assert finding.fix is not None
    return finding.fix.applicability


def test_what_maps_a_storage_is_told_to_give_the_device_itself() -> None:
    text = "import torch\n\ndef f(path, i):\n    return torch.load(path, map_location=lambda a, b: a.cuda(i))\n"
    assert check_source(text) == []
    (finding,) = check_source(text, config=Config(rule_layers=(RuleLayer(("DVL601",)),)))
    assert finding.help is not None
    assert "`map_location=device`" in finding.help
    assert finding.fix is None


def test_load_of_little_weight_is_for_those_who_ask() -> None:
    state = "net.load_state_dict(load(f))"
    assert not judged(LoadWithoutMapLocation, *load(state, purpose="state dict")).asked
    others = ({"test": True}, {"purpose": "dataset"}, {"function": "torch.utils.model_zoo.load_url"})
    for kind in others:
        assert judged(LoadWithoutMapLocation, *load(state, **{"purpose": "state dict", **kind})).asked  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("text", ["load(f, 'cpu')", "load(f, map_location=None or d)", "load(*a)", "load(f, **k)"])
def test_load_that_may_say_where_is_fine(text: str) -> None:
    assert silent(LoadWithoutMapLocation, *load(text))


def test_load_in_the_file_of_a_test_is_for_those_who_ask() -> None:
    for name in ("test_a.py", "a_test.py", "conftest.py", "pkg/tests/helpers.py", "tests/common/data.py"):
        source, site = load("net.load_state_dict(load(f))", purpose="state dict")
        source.filename = name
        assert judged(LoadWithoutMapLocation, source, site).asked
    for name in ("testing.py", "contest.py", "latest.py", "contests/data/train.py"):
        source, site = load("net.load_state_dict(load(f))", purpose="state dict")
        source.filename = name
        assert not judged(LoadWithoutMapLocation, source, site).asked


def test_url_loader_has_another_position_for_it() -> None:
    function = "torch.hub.load_state_dict_from_url"
    assert not silent(LoadWithoutMapLocation, *load("load(url, folder)", function))
    assert silent(LoadWithoutMapLocation, *load("load(url, folder, 'cpu')", function))


def test_none_is_no_location() -> None:
    report = judged(LoadWithoutMapLocation, *load("load(f, map_location=None)"))
    assert report.fix is None


@pytest.mark.parametrize(
    ("text", "receiver"),
    [
        ("x > 0", "(x > 0)"),
        ("-x", "(-x)"),
        ("x if wanted else y", "(x if wanted else y)"),
        ("(y := x)", "(y := x)"),
        ("self.model", "self.model"),
        ("batch['x'].float()", "batch['x'].float()"),
        ("cut_short(a, b + ...", "cut_short(a, b + ..."),
        ("", ""),
    ],
)
def test_a_receiver_is_in_brackets_where_it_needs_them(text: str, receiver: str) -> None:
    assert edits.in_brackets(text) == receiver


def test_a_comparison_that_is_moved_is_quoted_with_its_brackets() -> None:
    source = source_of("mask = (x > 0).cuda()\n")
    call = call_in(source)
    assert isinstance(call.func, ast.Attribute)
    moved = Operand(call.func.value, "x > 0", device.UNKNOWN)
    site = Transfer(call, Scope(), "cuda", "tensor", moved, CUDA)
    assert judged(HardcodedCudaCall, source, site).message.startswith("`(x > 0).cuda()` fails")


def test_what_is_asked_before_does_not_fail() -> None:
    """Seen in torchdrug."""
    source, site = cuda("task.cuda(self.device)", device.symbol("f:self.device", "self.device"), guarded=True)
    assert judged(HardcodedCudaCall, source, site).message == (
        "`task.cuda(self.device)` takes CUDA devices only, so that has to be asked first: "
        "`.to(self.device)` takes them all"
    )


def test_a_tensor_that_goes_where_another_one_is_gets_its_device() -> None:
    code = "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    if x.is_cuda:\n        {0} = {0}.cuda()\n"
    config = Config(rule_layers=(RuleLayer(("DVL601",)),))
    helps = [[found.help for found in check_source(code.format(name), config=config)] for name in "yx"]
    assert helps[0] == ["use `.to(x.device)`, without asking: it moves nothing where they are together"]
    assert "x.device" not in str(helps[1])


@pytest.mark.parametrize(("made", "there"), [("from_numpy", False), ("zeros", True)])
def test_what_shares_memory_of_the_host_takes_no_device(made: str, there: bool) -> None:
    text = f"import torch\n\ndef f(x, y: torch.Tensor):\n    return torch.{made}(x).cuda()\n"
    (found,) = check_source(text, config=Config(rule_layers=(RuleLayer(("DVL601",)),)))
    assert found.help is not None
    assert ("create it there" in found.help) is there


@pytest.mark.parametrize(("given", "bound"), [("t", True), ("other", False)])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_what_nccl_takes_from_cuda_alone_is_for_those_who_ask(given: str, bound: bool, backend: str) -> None:
    code = f"""
import torch
import torch.distributed as dist

# started with {backend}
device = "cuda" if torch.cuda.is_available() else "cpu"

def total(count, other):
    t = torch.tensor([count], device="cuda")
    dist.all_reduce({given})
    return t
"""
    code = code.replace("# started with", "BACKEND =").replace(backend, repr(backend))
    told = [found.code for found in check_source(code)]
    assert told == ([] if bound and backend == "nccl" else ["DVL602"])
