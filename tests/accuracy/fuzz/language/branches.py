"""Conditions, branches and loops."""

from __future__ import annotations

from tests.accuracy.fuzz.language.expressions import simple
from tests.accuracy.fuzz.writer import CPU, CUDA, DEVICE, DICT, FLAG, LIST, MATRIX, PAIR, VECTOR, Writer

MOST_WORDS = 2


def condition(w: Writer, depth: int = 1) -> str:
    """A test: of an unknown word, of a constant, of a device, or of what is available; or of several."""
    if depth and w.chance(15):
        w.use("condition: and, or, not")
        first, second = condition(w, 0), condition(w, 0)
        return w.choose(
            (f"{first} and {second}", f"{first} or {second}", f"not ({first})", f"not {first} and {second}")
        )
    flags = w.all(FLAG)
    form = w.number(0, 9)
    if form < 6 and flags:
        w.use("condition: flag")
        flag = w.choose(flags)
        return f"not {flag.text}" if w.chance(25) else flag.text
    if form == 6:
        w.use("condition: available")
        return "torch.cuda.is_available()"
    if form == 7 and w.all(DEVICE):
        named = [name for name in w.all(DEVICE) if name.info == "object"]
        if named:
            w.use("condition: device.type")
            return f'{w.choose(named).text}.type == "cuda"'
    if form == 8 and w.all(MATRIX):
        w.use("condition: is_cuda")
        return f"{w.choose(w.all(MATRIX)).text}.is_cuda"
    if form == 9 and w.all(MATRIX):
        w.use("condition: x.device.type")
        return f'{w.choose(w.all(MATRIX)).text}.device.type == "{w.choose((CUDA, CPU))}"'
    w.use("condition: constant")
    return w.choose(("True", "False"))


def flag(w: Writer) -> None:
    """A name for a condition."""
    if len(w.words) < MOST_WORDS and not w.inside and w.chance(70):
        word = w.fresh("word")
        w.words.append(word)
        w.use("flag: unknown")
        text = w.fresh("flag")
        w.line(f'{text} = "{word}" in sys.argv')
        w.declare(text, FLAG, fixed=True)
        return
    text = w.fresh("flag")
    w.use("flag: known or composed")
    w.line(f"{text} = {w.choose(('True', 'False', 'torch.cuda.is_available()')) if w.chance(50) else condition(w)}")
    w.declare(text, FLAG)


def branch(w: Writer) -> None:
    """An `if`, perhaps with `elif` and `else`."""
    from tests.accuracy.fuzz.language.statements import body

    w.use("branch: if")
    with w.block(f"if {condition(w)}:"):
        body(w, 1, 3)
        leave(w)
    if w.chance(20):
        w.use("branch: elif")
        with w.block(f"elif {condition(w)}:"):
            body(w, 1, 2)
    if w.chance(40):
        w.use("branch: else")
        with w.block("else:"):
            body(w, 1, 2)
            leave(w)


def leave(w: Writer) -> None:
    """Now and then a branch leaves the loop or the function."""
    if w.loops and w.chance(25):
        word = w.choose(("continue", "break"))
        w.use(f"branch: {word}")
        w.line(word)
    elif w.returns is not None and w.chance(25):
        w.use("branch: early return")
        if w.returns:
            text, _ = simple(w, w.returns)
            w.line(f"return {text}", "return torch.ones(4, 4)")
        else:
            w.line("return")


def loop(w: Writer) -> None:
    """A loop over numbers, a container, the rows of a tensor."""
    from tests.accuracy.fuzz.language.statements import body

    header, declared = _header(w)
    w.loops += 1
    grows = " in range(" not in header
    w.iterated += grows
    with w.block(header):
        for text, kind, place in declared:
            w.declare(text, kind, place)
        body(w, 1, 3)
        if w.chance(35):
            branch(w)
        if w.chance(30):
            body(w, 1, 1)
    w.loops -= 1
    w.iterated -= grows
    if w.chance(8):
        w.use("loop: else")
        with w.block("else:"):
            body(w, 1, 2)


def _header(w: Writer) -> tuple[str, list[tuple[str, str, str]]]:
    item = w.fresh("e")
    containers = w.all(LIST, PAIR, DICT)
    form = w.number(0, 7)
    if form in (1, 2, 3) and containers:
        container = w.choose(containers)
        if container.kind == DICT:
            w.use("loop: over a dict")
            if w.chance(50):
                key = w.fresh("key")
                return f"for {key}, {item} in {container.text}.items():", [(item, MATRIX, container.place)]
            return f"for {item} in {container.text}.values():", [(item, MATRIX, container.place)]
        w.use(f"loop: over a {container.kind}")
        if w.chance(25):
            w.use("loop: enumerate")
            return f"for {w.fresh('n')}, {item} in enumerate({container.text}):", [(item, MATRIX, container.place)]
        if w.chance(15):
            w.use("loop: zip")
            other = w.fresh("e")
            tensor = simple(w, MATRIX)
            header = f"for {item}, {other} in zip({container.text}, {tensor[0]}):"
            return header, [(item, MATRIX, container.place), (other, VECTOR, tensor[1])]
        return f"for {item} in {container.text}:", [(item, MATRIX, container.place)]
    if form == 4 and w.all(MATRIX):
        tensor = w.choose(w.all(MATRIX))
        w.use("loop: over a tensor")
        return f"for {item} in {tensor.text}:", [(item, VECTOR, tensor.place)]
    if form == 5:
        w.use("loop: while")
        w.line(f"{item} = 0")
        return f"while ({item} := {item} + 1) < {w.number(3, 4)}:", []
    w.use("loop: over numbers")
    return f"for {w.fresh('n')} in range({w.number(1, 4)}):", []


def context(w: Writer) -> None:
    """A `with` block that always runs."""
    from tests.accuracy.fuzz.language.statements import body

    w.use("with")
    with w.block(f"with {w.choose(('torch.no_grad()', 'torch.enable_grad()'))}:", always=True):
        body(w, 1, 3)
