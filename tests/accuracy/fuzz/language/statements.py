"""Statements at any place of a program: assignments, moves, containers, writes into tensors."""

from __future__ import annotations

from collections.abc import Callable

from tests.accuracy.fuzz.language import branches, functions, loading, modules
from tests.accuracy.fuzz.language.expressions import call, device, leaf, move, moved, simple, value, wanted
from tests.accuracy.fuzz.writer import (
    ANY,
    CPU,
    CUDA,
    DEVICE,
    DICT,
    FUNCTION,
    INDEX,
    LEAF,
    LIST,
    MASK,
    MATRIX,
    PAIR,
    SCALAR,
    VECTOR,
    Writer,
)  # fmt: skip

DEEPEST = 3


def body(w: Writer, least: int, most: int) -> None:
    """So many statements."""
    for _ in range(w.number(least, most)):
        statement(w)


def statement(w: Writer) -> None:
    """One statement."""
    options = list(_STATEMENTS)
    if w.indent < DEEPEST:
        options += _COMPOUND
    if not w.inside and not w.indent:
        options += _TOP
    w.weighted(options)(w)


def assign(w: Writer) -> None:
    """A value under a name, new or not."""
    kind = w.weighted(((MATRIX, 12), (VECTOR, 2), (SCALAR, 2), (INDEX, 2), (MASK, 1)))
    known = w.own(kind)
    if known and w.chance(35):
        w.use("assignment: to a known name")
        text = w.choose(known).text
    else:
        w.use("assignment: to a new name")
        text = w.fresh(kind[0] if kind != INDEX else "i")
    expression, place = value(w, kind, ANY if w.chance(40) else w.choose((CUDA, CPU)))
    w.bind(text, kind, expression, place)


def alias(w: Writer) -> None:
    """A second name for a tensor or a container, in both of which changes show."""
    names = w.all(MATRIX, LIST, DICT, PAIR)
    if names:
        name = w.choose(names)
        w.use(f"alias: of a {name.kind}")
        w.bind(w.fresh("a"), name.kind, name.text, name.place)


def move_name(w: Writer) -> None:
    """``x = x.to(device)``."""
    names = w.own(MATRIX, VECTOR, INDEX)
    if names:
        name = w.choose(names)
        w.use("move: kept under the same name")
        text, place = move(w, ANY, name.kind)
        w.bind(name.text, name.kind, f"{name.text}{text}", place)


def drop_move(w: Writer) -> None:
    """``x.to(device)``, which has no effect."""
    names = w.all(MATRIX, VECTOR, INDEX)
    if names:
        w.use("move: dropped")
        w.line(f"{w.choose(names).text}{move(w)[0]}")


def unpack(w: Writer) -> None:
    """Several names at once."""
    first, second = w.fresh("u"), w.fresh("u")
    containers = w.all(PAIR)
    if containers and w.chance(50):
        name = w.choose(containers)
        w.use("unpacking: of a pair")
        expression, places = name.text, (name.place, name.place)
    elif w.own(MATRIX)[1:] and not w.loops and w.chance(40):
        # what each has after a loop depends on the number of its rounds, which is documented not to be followed
        one, two = w.own(MATRIX)[:2]
        w.use("unpacking: names exchanged")
        first, second = one.text, two.text
        expression, places = f"{two.text}, {one.text}", (two.place, one.place)
    else:
        w.use("unpacking: of values")
        left, right = value(w, MATRIX, depth=1), value(w, MATRIX, depth=1)
        expression, places = f"{left[0]}, {right[0]}", (left[1], right[1])
    w.line(f"{first}, {second} = {expression}", f"{first}, {second} = torch.ones(4, 4), torch.ones(4, 4)")
    w.declare(first, MATRIX, places[0])
    w.declare(second, MATRIX, places[1])


def container(w: Writer) -> None:
    """A new list, tuple or dict."""
    kind = w.choose((LIST, LIST, PAIR, DICT))
    want = w.choose((CPU, CUDA))
    one, place = value(w, MATRIX, want, 1)
    two, other = value(w, MATRIX, wanted(w, want), 1)
    w.use(f"container: {kind}")
    text = {LIST: f"[{one}, {two}]", PAIR: f"({one}, {two})", DICT: f'{{"a": {one}, "b": {two}}}'}[kind]
    if kind == LIST and w.chance(15):
        text = f"[{one} for _ in range({w.number(2, 3)})]"
    if kind == DICT and w.chance(20):
        text = f"dict(a={one}, b={two})"
    w.bind(w.fresh(kind[0] + "s"), kind, text, place if place == other else ANY)


def mapped(w: Writer) -> None:
    """A container made of another by a comprehension."""
    names = w.all(LIST, DICT, PAIR)
    if not names:
        return
    name = w.choose(names)
    w.use(f"comprehension: from a {name.kind}")
    made, place = f"part{move(w)[0]}", ANY
    if w.chance(30):
        made, place = f"part + {simple(w, MATRIX, wanted(w, name.place))[0]}", name.place
    if name.kind == DICT:
        text = f"{{key: {made} for key, part in {name.text}.items()}}"
    elif name.kind == PAIR:
        text = f"tuple({made} for part in {name.text})"
    else:
        text = f"[{made} for part in {name.text}]"
    known = [n.text for n in w.own(name.kind)]
    w.bind(w.choose([w.fresh("c"), *known]), name.kind, text, place)


def change_container(w: Writer) -> None:
    """Something put into a container that is there."""
    names = w.all(LIST, DICT)
    if not names:
        return
    name = w.choose(names)
    expression, place = value(w, MATRIX, wanted(w, name.place), 1)
    if name.kind == DICT:
        form = w.number(0, 2)
        w.use(("dict: item assigned", "dict: update", "dict: item moved")[form])
        key = w.choose(("a", "b"))
        if form == 0:
            w.line(f'{name.text}["{key}"] = {expression}')
        elif form == 1:
            w.line(
                w.choose((f'{name.text}.update({{"{key}": {expression}}})', f"{name.text}.update({key}={expression})"))
            )
        else:
            w.line(f'{name.text}["{key}"] = {name.text}["{key}"]{move(w)[0]}')
    else:
        # what grows while it is iterated over may never end
        form = 1 if w.iterated else w.number(0, 3)
        w.use(("list: append", "list: item assigned", "list: extend", "list: insert")[form])
        if form == 1:
            w.line(f"{name.text}[{w.choose((0, -1))}] = {expression}")
        else:
            call_ = ("append({})", "", "extend([{}])", "insert(0, {})")[form]
            w.line(f"{name.text}.{call_.format(expression)}")
    w.place(name.text, place if place == name.place else ANY)


def shared(w: Writer) -> None:
    """A list or dict that changes under one name, and is read under another."""
    names = w.all(LIST, DICT)
    if not names:
        return
    name = w.choose(names)
    other = w.fresh("a")
    w.use(f"alias: of a {name.kind} that changes")
    w.bind(other, name.kind, name.text, name.place)
    expression, _ = value(w, MATRIX, ANY, 1)
    key = '"a"' if name.kind == DICT else "0"
    changed, read = (other, name.text) if w.chance(50) else (name.text, other)
    w.line(f"{changed}[{key}] = {expression}")
    w.bind(w.fresh("m"), MATRIX, f"{read}[{key}] * {simple(w, MATRIX)[0]}", ANY)


def collect(w: Writer) -> None:
    """A list that starts empty and is filled in a loop."""
    name, item = w.fresh("collected"), w.fresh("e")
    tensor, _ = simple(w, MATRIX)
    w.use("list: filled in a loop")
    w.line(f"{name} = []")
    with w.block(f"for {item} in {tensor}:"):
        w.line(
            f"{name}.append({item}{w.choose(('', ' * 2', '.cpu()', '.cuda()', '.clone()'))})",
            f"{name}.append(torch.ones(4))",
        )
    w.bind(w.fresh("m"), MATRIX, f"torch.stack({name})", ANY)


def write(w: Writer) -> None:
    """A write into a tensor, in place; an attribute that a method writes to is documented to be unknown."""
    names = [name for name in w.all(MATRIX) if not name.text.startswith("self.")]
    if not names:
        return
    name = w.choose(names)
    other, _ = value(w, MATRIX, wanted(w, name.place), 1)
    row, _ = simple(w, VECTOR, wanted(w, name.place))
    number, _ = simple(w, SCALAR, wanted(w, name.place))
    mask, _ = simple(w, MASK, wanted(w, name.place))
    index, _ = simple(w, INDEX, wanted(w, name.place))
    text, construct = w.choose(
        (
            (f"{name.text} {'+=' if name in w.own(MATRIX) else '* '} {other}", "in place: +="),
            (f"{name.text}.add_({other})", "in place: method"),
            (f"{name.text}.mul_({number})", "in place: method with a 0-dim tensor"),
            (f"{name.text}.copy_({other})", "in place: copy_"),
            (f"{name.text}[0] = {row}", "write: slice"),
            (
                f"{name.text}[1:3] = {other}[:2] * 1" if other.isidentifier() else f"{name.text}[:, 0] = {row}",
                "write: slice",
            ),
            (f"{name.text}[{mask}] = 0.0", "write: mask"),
            (f"{name.text}[{mask}] = {number}", "write: mask and 0-dim value"),
            (f"{name.text}[{index}] = ({other}) * 1", "write: index"),
            (f"{name.text}[0] += {row}", "write: += into a slice"),
            (f"{name.text}.masked_fill_({mask}, 1.0)", "in place: masked_fill_"),
        )
    )
    w.use(construct)
    w.line(text)


def to_numpy(w: Writer) -> None:
    """A tensor as an array of NumPy, which only the CPU has."""
    tensor, _ = simple(w, w.choose((MATRIX, VECTOR)), CPU if w.chance(60) else ANY)
    w.use("numpy")
    tensor = tensor if tensor.replace(".", "").isalnum() else f"({tensor})"
    form = w.choose(("{}.detach().numpy()", "np.asarray({}.detach())", "{}.detach().cpu().numpy()"))
    w.line(f"{w.fresh('array')} = {form.format(tensor)}")


def show(w: Writer) -> None:
    """Something that reads a tensor on the host, which is right everywhere."""
    tensor, _ = value(w, MATRIX, ANY, 1)
    w.use("read on the host")
    w.line(
        w.choose((f"print({tensor})", f"float(({tensor}).sum())", f"({tensor}).sum().item()", f"({tensor}).tolist()"))
    )


def name_device(w: Writer) -> None:
    """A name for a device."""
    expression, place, info = w.choose(
        (
            ('torch.device("cuda" if torch.cuda.is_available() else "cpu")', CUDA, "object"),
            ('torch.device("cuda")', CUDA, "object"),
            ('"cuda"', CUDA, ""),
            ('"cuda" if torch.cuda.is_available() else "cpu"', CUDA, ""),
            ('torch.device("cpu")', CPU, "object"),
            ('"cpu"', CPU, ""),
            ('torch.device("cuda", 0)', CUDA, "object"),
            ("", ANY, ""),
        )
    )
    if not expression:
        expression, place = f'"cuda" if {branches.condition(w)} else "cpu"', ANY
    # another name of the top level is the CPU only as long as nobody writes something else there
    kind = "cpu_device" if place == CPU else "device"
    known = [name.text for name in w.own(DEVICE) if name.info == info and name.text.startswith(kind)]
    text = w.choose(known) if known and w.chance(20) else w.fresh(kind)
    w.use("device: named")
    w.line(f"{text} = {expression}")
    w.declare(text, DEVICE, place, info)


def name_leaf(w: Writer) -> None:
    """A leaf, and perhaps an optimizer of it."""
    text = w.fresh("leaf")
    expression, place = leaf(w)
    w.bind(text, LEAF, expression, place)
    if w.chance(30):
        w.use("optimizer: of a leaf")
        w.line(f"{w.fresh('optimizer')} = torch.optim.SGD([{text}], lr=0.1)")


def call_function(w: Writer) -> None:
    """The call of a function for what it does."""
    functions = w.all(FUNCTION)
    if not functions:
        return
    function = w.choose(functions)
    expression, place = call(w, function)
    if function.info.result == MATRIX and not w.chance(15):
        w.bind(w.fresh("m"), MATRIX, expression, place)
    elif function.info.result == PAIR:
        first, second = w.fresh("u"), w.fresh("u")
        w.line(f"{first}, {second} = {expression}", f"{first}, {second} = torch.ones(4, 4), torch.ones(4, 4)")
        w.declare(first, MATRIX, place)
        w.declare(second, MATRIX, ANY)
    else:
        w.use("call: result dropped")
        w.line(expression)


def tensor_with(w: Writer) -> None:
    """``torch.tensor`` and ``as_tensor`` of another tensor, ``type_as``, ``to`` with a type."""
    tensor, place = simple(w, MATRIX)
    other, _ = simple(w, MATRIX)
    tensor = tensor if tensor.replace(".", "").isalnum() else f"({tensor})"
    expression, result, construct = w.choose(
        (
            (f"{tensor}.type_as({other})", ANY, "move: type_as"),
            (f"torch.as_tensor({tensor})", place, "as_tensor"),
            (f"{tensor}.to(torch.float32)", place, "to a type"),
            (f"{tensor}.to({device(w)[0]}, non_blocking=False)", ANY, "move: .to(device)"),
            (f"{tensor}.to(device={device(w)[0]}, dtype=torch.float32)", ANY, "move: with a type"),
            (f"{tensor}.float().double().float()", place, "to a type"),
        )
    )
    w.use(construct)
    w.bind(w.fresh("m"), MATRIX, expression, result)


def move_new(w: Writer) -> None:
    """``y = x.to(device)``."""
    w.use("move: kept under another name")
    expression, place = moved(w, MATRIX)
    w.bind(w.fresh("m"), MATRIX, expression, place)


Statements = list[tuple[Callable[[Writer], None], int]]
_STATEMENTS: Statements = [
    (assign, 14), (move_name, 4), (move_new, 4), (shared, 1), (drop_move, 1), (alias, 3), (unpack, 3), (container, 4),
    (mapped, 2),
    (change_container, 5), (write, 6), (to_numpy, 1), (show, 1), (name_device, 3), (call_function, 5), (tensor_with, 2),
    (modules.move, 3), (modules.attribute, 3), (modules.objects, 3), (name_leaf, 1), (branches.flag, 1),
]  # fmt: skip
_COMPOUND: Statements = [
    (branches.branch, 7), (branches.loop, 5), (branches.context, 1), (collect, 1), (loading.loop, 2),
]  # fmt: skip
_TOP: Statements = [
    (functions.define, 5), (modules.define, 5), (modules.builtin, 4), (branches.flag, 3), (loading.define, 2),
    (loading.train, 1), (modules.criterion, 2), (functions.closure, 1),
]  # fmt: skip
