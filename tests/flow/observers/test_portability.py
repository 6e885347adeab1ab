"""What is not portable: each case is an event, and what a detector says after it."""

from __future__ import annotations

import ast

import pytest

from devlint.device import AVAILABLE, IMPLIED_CPU, symbol
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.tensors import DeviceValue, Tensor
from devlint.flow.domain.values import Const, Flag, Named, Value
from devlint.flow.observers.portability.api_mentions import ApiMentions
from devlint.flow.observers.portability.device_literals import DeviceLiterals
from devlint.flow.observers.portability.device_misuse import DeviceMisuse
from devlint.flow.observers.portability.gpu_selection import GpuSelection
from devlint.flow.observers.portability.unused_devices import UnusedDevices
from devlint.flow.transfer import api_use
from devlint.sites.base import Operand
from devlint.sites.devices import Alternative, Current, DeviceArgument, DeviceTest, Literal, Mention, Numbered, Visible
from devlint.sites.placement import UnusedDevice
from devlint.sites.transfers import Transfer
from tests.flow.observers.scene import CUDA, Scene, emit

SYNCHRONIZE = "torch.cuda.synchronize"
ASKED = Named("torch.cuda.is_available")
OF_A_TENSOR = DeviceValue(symbol("f:x", "x"), form="tensor")


# -- mentions ----------------------------------------------------------------------------------------------------------


def mentions(scene: Scene) -> list[tuple[str, str]]:
    return [(site.path, site.use) for site in scene.sites(Mention)]


def spoken(code: str, path: str, call: bool = False, **besides: object) -> list[tuple[str, str]]:
    scene = Scene(code, ApiMentions)
    called = scene.first(ast.Call) if call else None
    emit("on_name", scene.frame(**besides), scene.first(ast.Attribute), path, called)
    return mentions(scene)


def test_a_name_is_mentioned_if_a_table_knows_it() -> None:
    code = f"def f(): {SYNCHRONIZE}()"
    assert spoken(code, SYNCHRONIZE, call=True) == [(SYNCHRONIZE, "")]
    assert spoken(code, "torch.zeros", call=True) == []
    assert spoken(code, "numpy.cuda.synchronize", call=True) == []


def test_a_name_in_a_comparison_is_not_used() -> None:
    assert spoken(f"def f(): {SYNCHRONIZE}", SYNCHRONIZE, comparing=True) == [(SYNCHRONIZE, "comparison")]


@pytest.mark.parametrize(("code", "use"), [("x.type(t.T)", "conversion"), ("isinstance(x, t.T)", "comparison")])
def test_a_type_is_converted_to_or_compared(code: str, use: str) -> None:
    scene = Scene(f"def f(x): {code}", ApiMentions)
    frame = scene.frame(asking=scene.first(ast.Call))
    emit("on_name", frame, scene.node("t.T"), "torch.cuda.FloatTensor", None)
    assert mentions(scene) == [("torch.cuda.FloatTensor", use)]


@pytest.mark.parametrize(("text", "said"), [("torch.cuda.FloatTensor", 1), ("torch.cuda.is_available", 0)])
def test_a_string_is_a_name_only_of_a_type(text: str, said: int) -> None:
    scene = Scene(f"def f(x): x.type({text!r})", ApiMentions)
    frame = scene.frame(asking=scene.first(ast.Call))
    emit("on_name", frame, scene.node(repr(text)), text, None)
    assert len(scene.sites(Mention)) == said


def test_a_function_is_always_true() -> None:
    scene = Scene("def f():\n    if torch.cuda.is_available: pass", ApiMentions)
    emit("on_test", scene.frame(), scene.node("torch.cuda.is_available"), ASKED)
    emit("on_test", scene.frame(), scene.node("torch.cuda"), Named("torch.cuda"))
    assert mentions(scene) == [("torch.cuda.is_available", "test")]


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("unittest.skipIf(torch.cuda.is_available)", "test"),
        ("load(pin_memory=torch.cuda.is_available)", "switch"),
        ("register(torch.cuda.is_available)", ""),
    ],
)
def test_the_truth_of_an_argument_is_asked_for(code: str, use: str) -> None:
    scene = Scene(f"def f(): {code}", ApiMentions)
    scene.values["torch.cuda.is_available"] = ASKED
    frame = scene.frame()
    emit("on_call", frame, scene.call(code, frame))
    assert [site.use for site in scene.sites(Mention)] == ([use] if use else [])


def test_what_is_imported_in_a_shim_is_one_wherever_it_is_used() -> None:
    code = "def f():\n    from torch.cuda.amp import autocast\n    torch.cuda.amp.autocast"
    scene = Scene(code, ApiMentions)
    emit("on_import", scene.frame(shim=True), scene.node("from torch.cuda.amp import autocast", ast.ImportFrom))
    emit("on_name", scene.frame(), scene.node("torch.cuda.amp.autocast"), "torch.cuda.amp.autocast", None)
    assert [(site.use, site.shim) for site in scene.sites(Mention)] == [("import", True), ("", True)]


@pytest.mark.parametrize(("prelude", "said"), [("profile()", 1), ("", 0), ("profile(); cuda_time = 1", 0)])
def test_an_attribute_of_a_profiled_event(prelude: str, said: int) -> None:
    scene = Scene(f"{prelude}\ndef f(event): event.cuda_time", ApiMentions)
    emit("on_attribute", scene.frame(), scene.node("event.cuda_time"), scene.evaluate(scene.frame(), ast.Name("event")))
    assert len(scene.sites(Mention)) == said


# -- literals ----------------------------------------------------------------------------------------------------------


def literals(code: str, role: str, call: str = "", function: str = "f", **besides: object) -> list[tuple[str, bool]]:
    scene = Scene(code, DeviceLiterals)
    frame = scene.frame(function, **besides)
    given = scene.call(call, frame) if call else None
    emit("on_device", frame, scene.node("'cuda'"), role, Const("cuda"), given)
    return [(site.role, site.revised) for site in scene.sites(Literal)]


def test_a_literal_is_told_with_what_it_is_for() -> None:
    assert literals("def f(): torch.zeros(3, device='cuda')", "device") == [("device", False)]
    assert literals("def f(): d == 'cuda'", "device", comparing=True) == []


def test_only_accelerators_are_literals() -> None:
    scene = Scene("def f(): g('cpu', 'cudnn', 3)", DeviceLiterals)
    for text in ("'cpu'", "'cudnn'", "3"):
        emit("on_device", scene.frame(), scene.node(text), "device", None, None)
    assert scene.sites(Literal) == []


@pytest.mark.parametrize(
    ("code", "role", "said"),
    [
        ("torch.device('cuda', rank)", "torch.device", "rank"),
        ("torch.device('cuda', 1)", "torch.device", "torch.device"),
        ("torch.autocast('cuda', enabled=False)", "autocast", "autocast off"),
        ("torch.autocast('cuda', enabled=on)", "autocast", "autocast"),
    ],
)
def test_other_arguments_say_more_of_what_it_is_for(code: str, role: str, said: str) -> None:
    assert literals(f"def f(rank, on): {code}", role, code) == [(said, False)]


REVISED = {
    "chosen further down": "d = torch.device('cuda')\n    if d == 'cuda' and not torch.cuda.is_available(): d = 'cpu'",
    "a branch for each": "if big: d = 'cuda'\n    else: d = 'cpu'",
    "an expression for each": "d = 'cuda' if big else 'cpu'",
}


@pytest.mark.parametrize("body", REVISED.values(), ids=REVISED)
def test_somebody_can_choose(body: str) -> None:
    assert literals(f"def f(big):\n    {body}", "variable") == [("variable", True)]


NEEDED = {"by NCCL": "init(backend='nccl', device_id='cuda')", "beside the CPU": "[device('cuda'), device('cpu')]"}


@pytest.mark.parametrize("code", NEEDED.values(), ids=NEEDED)
def test_cuda_is_meant(code: str) -> None:
    assert literals(f"def f(): {code}", "device") == []


@pytest.mark.parametrize("body", ["d = d or 'cuda'", "if d is None: d = 'cuda'", "d = 'cuda' if d is None else d"])
def test_what_stands_in_for_nothing_is_a_default(body: str) -> None:
    assert literals(f"def f(d=None):\n    {body}", "variable") == [("default", False)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x.to(device)", 1),
        ("torch.zeros(3, device=device)", 1),
        ("print(device)", 0),
        ("x.to(device if torch.cuda.is_available() else 'cpu')", 0),
        ("if not torch.cuda.is_available(): device = 'cpu'\n    x.to(device)", 0),
    ],
)
def test_the_default_of_a_parameter_is_one_if_it_places_something(body: str, said: int) -> None:
    assert literals(f"def f(x, device='cuda'):\n    {body}", "parameter") == [("parameter", False)] * said


def test_a_literal_in_a_default_is_the_default_of_a_parameter() -> None:
    assert literals("def f(d=torch.device('cuda')): ...", "torch.device", defaults=True) == [("parameter", False)]


def test_a_literal_that_something_is_moved_to() -> None:
    scene = Scene("def f(x): x.to('cuda')", DeviceLiterals)
    move(scene, "x.to('cuda')", Tensor(IMPLIED_CPU, certain=True))
    assert [site.role for site in scene.sites(Literal)] == [".to"]


def move(scene: Scene, text: str, receiver: Value) -> None:
    frame = scene.frame()
    call = scene.call(text, frame)
    assert isinstance(call.node.func, ast.Attribute)
    operand = Operand(call.node.func.value, "x", CUDA, None, True, ())
    target = call.nodes[0] if call.nodes else None
    transfer = Transfer(call.node, scope_of(frame), call.node.func.attr, "tensor", operand, CUDA, target)
    emit("on_move", frame, transfer, receiver, call)


# -- misuse ------------------------------------------------------------------------------------------------------------

TEXT = DeviceValue(CUDA, form="text")
MADE = DeviceValue(CUDA, form="made")
COMPARED = {
    "with a string": ("x.device == 'cuda'", [OF_A_TENSOR, Const("cuda")], "text"),
    "a string with it": ("'cuda' == x.device", [Const("cuda"), OF_A_TENSOR], "text"),
    "with a device without its index": ("x.device == d", [OF_A_TENSOR, MADE], "index"),
    "by identity": ("x.device is y.device", [OF_A_TENSOR, OF_A_TENSOR], "identity"),
    "searched for text": ("'cuda' in x.device", [Const("cuda"), OF_A_TENSOR], "membership"),
    "in a chain": ("x.device == y.device == 'cuda'", [OF_A_TENSOR, OF_A_TENSOR, Const("cuda")], "text"),
    "with another": ("x.device == y.device", [OF_A_TENSOR, OF_A_TENSOR], ""),
    "its type": ("x.device.type == 'cuda'", [TEXT, Const("cuda")], ""),
}


@pytest.mark.parametrize(("code", "values", "problem"), COMPARED.values(), ids=COMPARED)
def test_a_comparison_of_a_device(code: str, values: list[Value], problem: str) -> None:
    scene = Scene(f"def f(x, y, d): {code}", DeviceMisuse)
    emit("on_comparison", scene.frame(), scene.first(ast.Compare), values)
    assert [site.problem for site in scene.sites(DeviceTest)] == ([problem] if problem else [])


PASSED = {
    "no name of a device": (Const("gpu"), "device", "name"),
    "an index that is too large": (Const("cuda:900"), "device", "range"),
    "a bool": (Const(True), "device", "bool"),
    "nothing": (Const(None), "torch.device", "none"),
    "nothing, where it may be": (Const(None), "device", ""),
    "a number": (Const(0), "map_location", "number"),
    "a module": (Named("torch.cuda"), "device", "module"),
    "an index": (Stateful("torch.Tensor.get_device"), "device", "index"),
    "a context": (Stateful("torch.cuda.device"), "device", "scope"),
    "a device for a type": (MADE, "autocast", "object"),
    "a device": (MADE, "device", ""),
    "its name": (Const("cuda:1"), "device", ""),
}


@pytest.mark.parametrize(("value", "role", "problem"), PASSED.values(), ids=PASSED)
def test_an_argument_is_a_device(value: Value, role: str, problem: str) -> None:
    scene = Scene("def f(d): torch.zeros(3, device=d)", DeviceMisuse)
    call = scene.call("torch.zeros(3, device=d)", scene.frame())
    emit("on_device", scene.frame(), scene.node("d"), role, value, call)
    emit("on_device", scene.frame(), scene.node("d"), role, value, None)
    assert [site.problem for site in scene.sites(DeviceArgument)] == ([problem] if problem else [])


MOVED = {
    "to the CPU, and elsewhere": ("x.cpu('cuda')", "unknown"),
    "to CUDA, and the CPU": ("x.cuda('cpu')", "cpu"),
    "with a bool for a type": ("x.to('cuda', True)", "second"),
    "to what is none": ("x.to('gpu')", "name"),
    "as it should be": ("x.to('cuda', non_blocking=True)", ""),
}


@pytest.mark.parametrize(("code", "problem"), MOVED.values(), ids=MOVED)
def test_a_move_takes_devices(code: str, problem: str) -> None:
    for certain in (True, False):
        scene = Scene(f"def f(x): {code}", DeviceMisuse)
        move(scene, code, Tensor(IMPLIED_CPU, certain=certain))
        told = [site.problem for site in scene.sites(DeviceArgument)]
        assert told == ([problem] if problem and certain else [])


@pytest.mark.parametrize(
    ("code", "path", "problem"),
    [
        ("torch.FloatTensor(3, device=d)", "torch.FloatTensor", "legacy"),
        ("torch.zeros(3, device=d)", "torch.zeros", ""),
        ("torch.cuda('x')", "torch.cuda", "call"),
    ],
)
def test_a_call_of_what_takes_no_device(code: str, path: str, problem: str) -> None:
    scene = Scene(f"def f(d): {code}", DeviceMisuse)
    frame = scene.frame(env={"d": MADE})
    emit("on_library_call", frame, scene.call(code, frame), path)
    assert [site.problem for site in scene.sites(DeviceArgument)] == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("code", "told"), [("torch.zeros(3, d)", 1), ("torch.zeros((3,), y.device)", 1), ("torch.full((3,), y.device)", 0)]
)
def test_a_device_among_sizes(code: str, told: int) -> None:
    scene = Scene(f"def f(d, y): {code}", DeviceMisuse)
    frame = scene.frame(env={"d": MADE})
    emit("on_creation", frame, scene.call(code, frame))
    assert [site.problem for site in scene.sites(DeviceArgument)] == ["position"] * told


# -- choices -----------------------------------------------------------------------------------------------------------


def test_numbers_know_the_other_numbers_of_the_file() -> None:
    scene = Scene("def f(x): x.cuda(0); x.cuda(1)", GpuSelection)
    for index in (0, 1):
        emit("on_device_index", scene.frame(), scene.node(f"x.cuda({index})"), Const(index), f".cuda({index})")
    emit("on_device_index", scene.frame(), scene.node("x"), Const(True), ".cuda(True)")
    emit("on_device_index", scene.frame(inlined=True), scene.node("x"), Const(3), ".cuda(3)")
    assert [(site.index, site.others) for site in scene.sites(Numbered)] == [(0, (1,)), (1, (0,))]


def test_a_number_of_what_is_the_current_device() -> None:
    scene = Scene("def f(): torch.cuda.set_device(2)", GpuSelection)
    emit("on_name", scene.frame(), scene.node("torch.cuda.set_device"), "torch.cuda.set_device", scene.first(ast.Call))
    assert [site.spelled for site in scene.sites(Numbered)] == ["torch.cuda.set_device(...)"]


@pytest.mark.parametrize(("test", "told"), [("torch.cuda.is_available()", 1), ("torch.cuda.is_available() and on", 0)])
def test_a_choice_between_cuda_and_the_cpu(test: str, told: int) -> None:
    scene = Scene(f"def f(on): torch.device('cuda' if {test} else 'cpu')", GpuSelection)
    frame = scene.frame()
    emit("on_choice", frame, scene.first(ast.IfExp), Flag(AVAILABLE, True), Const("cuda"), Const("cpu"))
    call = scene.call(ast.unparse(scene.first(ast.Call)), frame)
    emit("on_device", frame, call.nodes[0], "torch.device", None, call)
    assert [site.whole for site in scene.sites(Alternative)] == [call.node] * told


CURRENT = "torch.accelerator.current_accelerator"


def current(scene: Scene, frame: Frame) -> DeviceValue:
    call = scene.call(f"{CURRENT}()", frame)
    emit("on_library_call", frame, call, CURRENT)
    return DeviceValue(symbol("current", "current"), call.node)


def test_the_current_accelerator_is_used_as_if_there_was_one() -> None:
    scene = Scene(f"def f(x):\n    d = {CURRENT}()\n    x.to(d)", GpuSelection)
    frame = scene.frame()
    value = current(scene, frame)
    assert scene.sites(Current) == []
    emit("on_device_use", frame, scene.node("x.to(d)"), value, False)
    assert [site.read for site in scene.sites(Current)] == [False]


def test_whoever_asks_whether_there_is_one_may_use_it() -> None:
    scene = Scene(f"def f(x):\n    d = {CURRENT}()\n    if d is not None: x.to(d)", GpuSelection)
    frame = scene.frame()
    frame.state.env["d"] = value = current(scene, frame)
    emit("on_condition", frame, scene.node("d is not None"))
    emit("on_device_use", frame, scene.node("x.to(d)"), value, False)
    assert scene.sites(Current) == []


@pytest.mark.parametrize("found", [True, False])
def test_a_function_that_is_named_only_where_an_accelerator_was_found(found: bool) -> None:
    scene = Scene(f"def f(x):\n    d = {CURRENT}()\n    x.to(d)\nf(x)", GpuSelection)
    frame, top = scene.frame(), scene.frame("")
    emit("on_device_use", frame, scene.node("x.to(d)"), current(scene, frame), False)
    top.state.accelerated = found
    emit("on_function", top, scene.node("f"), frame.info)
    assert len(scene.sites(Current)) == (0 if found else 1)


VISIBLE = "os.environ['CUDA_VISIBLE_DEVICES']"


def test_a_variable_is_set_after_cuda_was_used() -> None:
    scene = Scene(f"import os\ndef f(): {VISIBLE} = '0'", GpuSelection)
    frame = scene.frame()
    api_use.name(frame, scene.node("os.environ"), "torch.cuda.current_device", ast.parse("g()", mode="eval").body)
    assert frame.state.touched is not None
    target = scene.node(VISIBLE, ast.Subscript)
    emit("on_item", frame, target, Named("os.environ"), Const("CUDA_VISIBLE_DEVICES"), Const("0"))
    emit("on_item", frame, target, Named("other"), Const("CUDA_VISIBLE_DEVICES"), Const("0"))
    emit("on_item", frame, target, Named("os.environ"), Const("OTHER"), Const("0"))
    assert [(site.name, site.after) for site in scene.sites(Visible)] == [("CUDA_VISIBLE_DEVICES", frame.state.touched)]


def test_a_variable_that_is_put_back_is_meant_for_others() -> None:
    code = f"import os\ndef f():\n    old = {VISIBLE}\n    {VISIBLE} = '0'\n    {VISIBLE} = old"
    scene = Scene(code, GpuSelection)
    target = scene.node(VISIBLE, ast.Subscript)
    emit("on_item", scene.frame(), target, Named("os.environ"), Const("CUDA_VISIBLE_DEVICES"), Const("0"))
    assert scene.sites(Visible) == []


def test_what_the_top_level_used_is_used_in_functions() -> None:
    scene = Scene("import os\nos.putenv('CUDA_VISIBLE_DEVICES', '0')\ndef f(): os.putenv('CUDA_VISIBLE_DEVICES', '1')")
    scene.observers = (GpuSelection,)
    api_use.initialize(scene.frame(""), scene.node("os"))
    frame = scene.frame()
    emit("on_library_call", frame, scene.call("os.putenv('CUDA_VISIBLE_DEVICES', '1')", frame), "os.putenv")
    assert [site.after is not None for site in scene.sites(Visible)] == [True]


# -- devices that nobody uses ------------------------------------------------------------------------------------------

TRAINS = "model = nn.Linear(3, 3); model(x).backward()"
UNUSED = {
    "never read": (f"device = chosen()\n    {TRAINS}", True),
    "only shown": (f"device = chosen()\n    print(device); {TRAINS}", True),
    "read": (f"device = chosen()\n    use(device); {TRAINS}", False),
    "where nothing trains": ("device = chosen()", False),
    "where something is placed": (f"device = chosen()\n    x.to(other); {TRAINS}", False),
    "where all names are looked at": (f"device = chosen()\n    locals(); {TRAINS}", False),
    "nobody is to read it": (f"_device = chosen()\n    {TRAINS}", False),
}


@pytest.mark.parametrize(("body", "told"), UNUSED.values(), ids=UNUSED)
def test_a_device_is_chosen_and_not_used(body: str, told: bool) -> None:
    scene = Scene(f"def f(x, other):\n    {body}", UnusedDevices)
    target = scene.first(ast.Assign).targets[0]
    emit("on_binding", scene.frame(), target, MADE)
    assert len(scene.sites(UnusedDevice)) == told


# -- what is told to them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "path", "roles"),
    [
        ("g(device='cuda')", "", ["device"]),
        ("g(device='cuda', map_location='cuda')", "torch.g", ["device", "map_location"]),
        ("g(kwargs={'device': 'cuda', 'other': 'cuda'})", "", ["device"]),
        ("g(device_type='cuda')", "torch.amp.autocast", ["autocast"]),
        ("g(device='cuda')", "torch.amp.GradScaler", []),
        ("g(name='cuda')", "", []),
    ],
)
def test_devices_among_the_arguments_of_a_call(code: str, path: str, roles: list[str]) -> None:
    scene = Scene(f"def f(): {code}", DeviceLiterals)
    frame = scene.frame()
    api_use.devices(frame, scene.call(code, frame), path)
    assert [site.role for site in scene.sites(Literal)] == roles
