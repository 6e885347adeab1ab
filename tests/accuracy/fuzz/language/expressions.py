"""Expressions: each function returns a text and the place where the value probably is."""

from __future__ import annotations

from collections.abc import Callable

from tests.accuracy.fuzz.writer import (
    ANY,
    CPU,
    CUDA,
    DEVICE,
    DICT,
    FLAG,
    FUNCTION,
    INDEX,
    LEAF,
    LIST,
    MASK,
    MATRIX,
    MODULE,
    NET,
    PAIR,
    SCALAR,
    VECTOR,
    Name,
    Writer,
)  # fmt: skip

Expression = tuple[str, str]
_FACTORIES = {
    MATRIX: (
        "torch.ones(4, 4{})", "torch.zeros(4, 4{})", "torch.rand(4, 4{})", "torch.randn(4, 4{})", "torch.eye(4{})",
        "torch.full((4, 4), 2.0{})", "torch.arange(16.0{}).view(4, 4)", "torch.linspace(0, 1, 16{}).reshape(4, 4)",
    ),
    VECTOR: ("torch.ones(4{})", "torch.zeros(4{})", "torch.tensor([1.0, 2.0, 3.0, 4.0]{})", "torch.arange(4.0{})"),
    SCALAR: ("torch.tensor(2.0{})", "torch.ones((){})", "torch.scalar_tensor(3.0{})"),
    INDEX: ("torch.tensor([3, 1, 0, 2]{})", "torch.arange(4{})", "torch.randint(0, 4, (4,){})", "torch.randperm(4{})"),
    MASK: ("torch.ones(4, 4, dtype=torch.bool{})", "torch.zeros(4, 4, dtype=torch.bool{})"),
}  # fmt: skip
_SAME = {
    MATRIX: ("torch.zeros_like({})", "torch.rand_like({})", "{}.new_zeros(4, 4)", "{}.new_full((4, 4), 1.0)"),
    VECTOR: ("torch.zeros_like({})", "{}.new_ones(4)", "{}.new_tensor([1.0, 2.0, 3.0, 4.0])"),
    SCALAR: ("torch.ones_like({})", "{}.new_tensor(2.0)"),
    INDEX: ("torch.zeros_like({})",),
    MASK: ("torch.ones_like({})",),
}
_UNARY = {
    MATRIX: (
        "{}.relu()", "-{}", "{}.t() * 1", "torch.sigmoid({})", "{}.clone()", "F.softmax({}, dim=1)", "{} * 2",
        "{}.detach() + 0.0", "{}.reshape(-1).reshape(4, 4) * 1.0", "{}.contiguous() - 1", "torch.clamp({}, 0.0, 1.0)",
        "{}[:2].repeat(2, 1)", "{}.unsqueeze(0)[0] * 1", "F.dropout({}, 0.5)", "1 - {}",
    ),
    VECTOR: ("{} * 2", "{}.abs()", "torch.exp({})", "{}.flip(0)", "{} + 1"),
    SCALAR: ("{} * 2", "{}.abs()", "{} / 2"),
    INDEX: ("{}.flip(0)", "{} * 1"),
    MASK: ("~{}", "{}.clone()"),
}  # fmt: skip
_BINARY = {
    MATRIX: (
        "{} + {}", "{} * {}", "{} - {}", "{} @ {}", "torch.matmul({}, {})", "torch.cat([{}, {}])[:4]", "{}.add({})",
        "torch.stack([{}, {}]).sum(0)", "torch.where(torch.eye(4, device={0}.device) > 0, {0}, {1})", "{}.mm({})",
        "torch.maximum({}, {})", "torch.minimum({1}, {0})", "{}.expand_as({}) * 1", "torch.add({}, {})",
    ),
    VECTOR: ("{} + {}", "{} * {}", "torch.maximum({}, {})", "torch.stack([{}, {}])[0] * 1"),
    SCALAR: ("{} + {}", "{} * {}"),
    MASK: ("{} & {}", "{} | {}"),
}  # fmt: skip
_REDUCED = ("{}.sum()", "{}.mean()", "{}.max()", "torch.norm({})", "{}[0, 0] * 1")


def value(w: Writer, kind: str, want: str = ANY, depth: int = 2) -> Expression:
    """An expression of a kind; most often something simple."""
    options: list[tuple[Callable[[Writer, str, str, int], Expression | None], int]] = [
        (_named, 8 if depth == 2 else 14),
        (_factory, 3),
    ]
    if depth:
        options += [(_moved, 4), (_unary, 3), (_same, 2), (_chosen, 1)]
        if kind in _BINARY:
            options.append((_binary, 5))
        special = _SPECIAL.get(kind)
        if special is not None:
            options.append((special, 8))
    for _ in range(2):
        found = w.weighted(options)(w, kind, want, depth)
        if found is not None:
            return found
    return _factory(w, kind, want, depth)


def wanted(w: Writer, want: str) -> str:
    """The place where an operand should be, if it should go with another: now and then it does not."""
    return ANY if w.chance(22) else want


def simple(w: Writer, kind: str, want: str = ANY) -> Expression:
    """A name, or what makes a new tensor."""
    return _named(w, kind, want, 0) or _factory(w, kind, want, 0)


def device(w: Writer, want: str = ANY) -> Expression:
    """Something that names a device."""
    named = w.pick(DEVICE, want)
    if named is not None and not w.chance(25):
        w.use("device: variable")
        return named.text, named.place
    tensors = [name for name in w.all(MATRIX, VECTOR, INDEX) if want in (ANY, name.place)]
    if tensors and w.chance(25):
        w.use("device: of a tensor")
        tensor = w.choose(tensors)
        return f"{tensor.text}.device", tensor.place
    if want == ANY:
        want = w.choose((CUDA, CUDA, CPU))
    w.use("device: literal")
    texts = ('"cuda"', 'torch.device("cuda")') if want == CUDA else ('"cpu"', 'torch.device("cpu")')
    return w.choose(texts), want


def _named(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    name = w.pick(kind, want)
    return None if name is None else (name.text, name.place)


def _factory(w: Writer, kind: str, want: str, depth: int) -> Expression:
    if kind == LEAF:
        return leaf(w)
    text = w.choose(_FACTORIES[kind])
    w.use(f"factory: {text.partition('(')[0]}")
    if want == CUDA or (want == ANY and w.chance(45)):
        where, place = device(w, want)
        w.use("factory: with device")
        return text.format(f", device={where}"), place
    w.use("factory: default device")
    if w.method:
        w.placed[text.format("")] = text.format(", device=next(self.parameters()).device")
    return text.format(""), CPU


def leaf(w: Writer) -> Expression:
    """A tensor that collects gradients."""
    w.use("leaf")
    if w.chance(50):
        where, place = device(w)
        return f"torch.randn(4, 4, device={where}, requires_grad=True)", place
    if w.chance(25):
        w.use("move: of a leaf")
        where, place = device(w)
        return f"torch.randn(4, 4, requires_grad=True).to({where})", place
    return "torch.randn(4, 4, requires_grad=True)", CPU


def moved(w: Writer, kind: str, want: str = ANY, depth: int = 1) -> Expression:
    """A tensor that is moved."""
    found = _moved(w, kind, want, depth)
    assert found is not None
    return found


def _moved(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    text, _ = simple(w, kind) if depth < 2 or w.chance(70) else value(w, kind, ANY, depth - 1)
    call, place = move(w, want, kind)
    return f"{_grouped(text)}{call}", place


def move(w: Writer, want: str = ANY, kind: str = MATRIX) -> Expression:
    """The call that moves something; ``.to(other)`` would also make it what the other is, so it is for matrices."""
    if want == ANY:
        want = w.choose((CUDA, CUDA, CPU))
    others = [name for name in w.all(MATRIX, VECTOR) if name.place == want]
    form = w.number(0, 9)
    if form < 3:
        w.use("move: .cuda() or .cpu()")
        return (".cuda()", CUDA) if want == CUDA else (".cpu()", CPU)
    if form == 9 and others and kind == MATRIX:
        w.use("move: to another tensor's device")
        return f".to({w.choose(others).text})", want
    w.use("move: .to(device)")
    where, place = device(w, want)
    return f".to({where})" if form < 7 else f".to(device={where})", place


def _unary(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    if kind not in _UNARY:
        return None
    text, place = value(w, kind, want, depth - 1) if w.chance(30) else simple(w, kind, want)
    operation = w.choose(_UNARY[kind])
    w.use("operation: of one tensor")
    return operation.format(_grouped(text)), place


def _same(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    name = w.pick(kind, want)
    if name is None or kind not in _SAME:
        return None
    w.use("factory: like another tensor")
    return w.choose(_SAME[kind]).format(name.text), name.place


def _chosen(w: Writer, kind: str, want: str, depth: int) -> Expression:
    from tests.accuracy.fuzz.language.branches import condition

    w.use("conditional expression")
    first, place = simple(w, kind, want)
    second, other = simple(w, kind, want)
    return f"({first} if {condition(w)} else {second})", place if place == other else ANY


def _binary(w: Writer, kind: str, want: str, depth: int) -> Expression:
    operation = w.choose(_BINARY[kind])
    first, place = value(w, kind, want, depth - 1) if w.chance(30) else simple(w, kind, want)
    if kind == MATRIX and "{} " in operation and "@" not in operation and w.chance(25):
        w.use("operation: with a 0-dim tensor or a vector")
        second, other = simple(w, w.choose((SCALAR, VECTOR)), wanted(w, place))
    else:
        second, other = simple(w, kind, wanted(w, place))
    w.use("operation: of two tensors")
    return operation.format(_grouped(first), _grouped(second)), place if place == other else ANY


def _grouped(text: str) -> str:
    """The text in brackets, if it is an operation."""
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if not depth and character in " -~":
            return f"({text})"
    return text


# -- what only one kind has ------------------------------------------------------------------------------------------


def _matrix(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    options: list[tuple[Callable[[Writer, str], Expression | None], int]] = [
        (called, 5), (item, 3), (applied, 5), (indexed, 3), (masked, 2), (rows, 2), (of_parameter, 1), (looked_up, 1),
        (of_leaf, 1), (comprehension, 2),
    ]  # fmt: skip
    return w.weighted(options)(w, want)


def called(w: Writer, want: str) -> Expression | None:
    """The call of a function of the program that returns a matrix."""
    functions = [name for name in w.all(FUNCTION) if name.info.result == MATRIX]
    if not functions:
        return None
    return call(w, w.choose(functions))


def call(w: Writer, function: Name) -> Expression:
    """The call of one function, with arguments of the kinds that it takes."""
    w.use("call: of a function")
    arguments = []
    for position, parameter in enumerate(function.info.parameters):
        if parameter.default and w.chance(60):
            w.use("call: default argument")
            continue
        text = _argument(w, parameter)
        named = parameter.default or (position and w.chance(20)) or any("=" in one for one in arguments)
        arguments.append(f"{parameter.text}={text}" if named else text)
    return f"{function.text}({', '.join(arguments)})", function.place


def _argument(w: Writer, parameter: Name) -> str:
    if parameter.kind == FLAG:
        flags = [name.text for name in w.all(FLAG)]
        return w.choose(["True", "False", *flags])
    if parameter.kind == DEVICE:
        return device(w, wanted(w, parameter.place))[0]
    if parameter.kind == MODULE:
        name = w.pick(MODULE, wanted(w, parameter.place)) or w.pick(MODULE)
        return name.text if name is not None else "nn.Linear(4, 4)"
    if parameter.kind == LIST:
        name = w.pick(LIST)
        return name.text if name is not None else f"[{simple(w, MATRIX)[0]}]"
    return simple(w, parameter.kind, wanted(w, parameter.place))[0]


def item(w: Writer, want: str) -> Expression | None:
    """An element of a container."""
    containers = w.all(LIST, PAIR, DICT)
    if not containers:
        return None
    container = w.choose(containers)
    w.use(f"container: item of a {container.kind}")
    if container.kind == DICT:
        key = w.choose(("a", "b"))
        read = f'{container.text}.get("{key}")' if w.chance(15) else f'{container.text}["{key}"]'
        return read, container.place
    return f"{container.text}[{w.choose((0, -1))}]", container.place


def applied(w: Writer, want: str) -> Expression | None:
    """The call of a module."""
    module = w.pick(MODULE, want) or w.pick(NET, want)
    if module is None:
        return None
    w.use("call: of a module")
    text, _ = value(w, MATRIX, wanted(w, module.place), 1)
    return f"{module.text}({text})", module.place


def indexed(w: Writer, want: str) -> Expression:
    """A tensor with another as its index."""
    w.use("index: by a tensor")
    text, place = simple(w, MATRIX, want)
    index, _ = simple(w, INDEX, ANY if w.chance(30) else place)
    form = w.choose(("{}[{}]", "{}[:, {}]", "{}[{}, :]", "torch.index_select({}, 0, {})"))
    return form.format(_grouped(text), index), place


def masked(w: Writer, want: str) -> Expression:
    """Values chosen by a mask."""
    w.use("index: by a mask")
    text, place = simple(w, MATRIX, want)
    mask, _ = simple(w, MASK, wanted(w, place))
    form = w.choose(
        ("{}.masked_fill({}, 0.0)", "torch.where({1}, {0}, 0.0)", "torch.where({1}, {0}, torch.tensor(0.0))")
    )
    return form.format(_grouped(text), _grouped(mask)), place


def rows(w: Writer, want: str) -> Expression:
    """Rows of a tensor with something else."""
    w.use("index: by numbers and slices")
    text, place = simple(w, MATRIX, want)
    other, _ = simple(w, VECTOR, wanted(w, place))
    form = w.choose(("{0}[1:3].repeat(2, 1) + {1}", "({0}[0] + {1}).expand(4, 4) * 1", "{0}[:, :] * {1}"))
    return form.format(_grouped(text), _grouped(other)), place


def of_parameter(w: Writer, want: str) -> Expression | None:
    """A module's weight in an operation."""
    modules = [name for name in w.all(MODULE) if name.info == "linear" and want in (ANY, name.place)]
    if not modules:
        return None
    module = w.choose(modules)
    w.use("module: weight read")
    text, _ = simple(w, MATRIX, wanted(w, module.place))
    return f"{_grouped(text)} @ {module.text}.weight", module.place


def of_leaf(w: Writer, want: str) -> Expression | None:
    """A leaf in an operation."""
    leaves = w.all(LEAF)
    if not leaves:
        return None
    name = w.choose(leaves)
    text, _ = simple(w, MATRIX, wanted(w, name.place))
    return f"{name.text} * {_grouped(text)}", name.place


def looked_up(w: Writer, want: str) -> Expression:
    """An embedding of an index."""
    w.use("operation: embedding")
    table, place = simple(w, MATRIX, want)
    index, _ = simple(w, INDEX, wanted(w, place))
    return f"F.embedding({index}, {table})", place


def comprehension(w: Writer, want: str) -> Expression | None:
    """The sum or stack of what a comprehension makes."""
    name = w.pick(LIST, want) or w.pick(LIST)
    if name is None:
        return None
    w.use("comprehension")
    other, _ = simple(w, MATRIX, wanted(w, name.place))
    made = w.choose((f"part + {_grouped(other)}", f"part.to({device(w)[0]})", "part * 2", "part.cpu()"))
    form = w.choose(
        ("torch.stack([{} for part in {}]).sum(0)", "sum([{} for part in {}])", "torch.cat([{} for part in {}])[:4]")
    )
    return form.format(made, name.text), ANY


def _vector(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    text, place = simple(w, MATRIX, want)
    w.use("index: by numbers and slices")
    return f"{_grouped(text)}{w.choose(('[0]', '[-1]', '[:, 1]', '.sum(0)', '.mean(dim=1)'))} * 1", place


def _scalar(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    text, place = simple(w, MATRIX, want)
    form = w.number(0, 3)
    if form == 0:
        w.use("loss: function")
        other, _ = simple(w, MATRIX, wanted(w, place))
        return f"F.mse_loss({text}, {other})", place
    if form == 1:
        w.use("loss: function")
        index, _ = simple(w, INDEX, wanted(w, place))
        if w.chance(40):
            w.use("loss: function with weights")
            weight, _ = simple(w, VECTOR, wanted(w, place))
            return f"F.cross_entropy({text}, {index}, weight={weight})", place
        return f"F.cross_entropy({text}, {index})", place
    return w.choose(_REDUCED).format(_grouped(text)), place


def _mask(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    text, place = simple(w, MATRIX, want)
    if w.chance(40):
        other, _ = simple(w, MATRIX, wanted(w, place))
        return f"{_grouped(text)} > {_grouped(other)}", place
    return f"{_grouped(text)} > 0.5", place


def _index(w: Writer, kind: str, want: str, depth: int) -> Expression | None:
    text, place = simple(w, MATRIX, want)
    return f"{_grouped(text)}.argmax(dim=1)", place


_SPECIAL: dict[str, Callable[[Writer, str, str, int], Expression | None]] = {
    MATRIX: _matrix, VECTOR: _vector, SCALAR: _scalar, MASK: _mask, INDEX: _index,
}  # fmt: skip
