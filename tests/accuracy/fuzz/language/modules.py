"""Modules: torch's, the program's own, and where they are moved."""

from __future__ import annotations

from tests.accuracy.fuzz.language.expressions import device, simple, value, wanted
from tests.accuracy.fuzz.language.expressions import move as moving
from tests.accuracy.fuzz.language.functions import placing
from tests.accuracy.fuzz.writer import (
    ANY,
    CPU,
    CUDA,
    INDEX,
    MATRIX,
    MODULE,
    NET,
    SCALAR,
    VECTOR,
    Name,
    Writer,
)  # fmt: skip

GIVEN = "what the caller gives to a class"
OUTSIDE = "attributes read from outside of a class"
_BUILTIN = (
    ("nn.Linear(4, 4)", "linear"), ("nn.Linear(4, 4, bias=False)", "linear"), ("nn.ReLU()", ""),
    ("nn.LayerNorm(4)", ""), ("nn.Sequential(nn.Linear(4, 4), nn.ReLU())", ""), ("nn.Identity()", ""),
    ("nn.BatchNorm1d(4)", ""), ("nn.PReLU()", ""),
)  # fmt: skip
_CRITERIA = (
    ("nn.CrossEntropyLoss()", INDEX), ("nn.CrossEntropyLoss(weight={})", INDEX), ("nn.NLLLoss(weight={})", INDEX),
    ("nn.BCEWithLogitsLoss(pos_weight={})", MATRIX), ("nn.MSELoss()", MATRIX), ("nn.L1Loss()", MATRIX),
)  # fmt: skip


def builtin(w: Writer) -> None:
    """One of torch's modules, used at once or later."""
    text, info = w.choose(_BUILTIN)
    name, place = w.fresh("net"), CPU
    w.use("module: torch's")
    if info == "linear" and w.chance(25):
        where, place = device(w)
        w.use("module: made on a device")
        text = f"{text[:-1]}, device={where})"
    elif w.chance(45):
        call, place = moving(w, CUDA, MODULE)
        text = f"{text}{call}"
    w.line(f"{name} = {text}")
    w.declare(name, MODULE, place, info)


def criterion(w: Writer) -> None:
    """A loss with or without weights, and its call."""
    form, kind = w.choose(_CRITERIA)
    place = w.choose((CPU, CUDA))
    weight, where = simple(w, VECTOR, wanted(w, place))
    name = w.fresh("criterion")
    w.use("loss: module")
    if "{" not in form:
        where = place
    moved = ""
    if w.chance(40):
        w.use("loss: module moved")
        moved, where = moving(w, place, MODULE)[0], place
    w.line(f"{name} = {form.format(weight)}{moved}", f"{name} = {form.format('torch.ones(4)')}")
    for _ in range(w.number(1, 2)):
        logits, at = simple(w, MATRIX, wanted(w, where))
        target, _ = simple(w, kind, wanted(w, at))
        w.bind(w.fresh("s"), SCALAR, f"{name}({logits}, {target})", at)


def move(w: Writer) -> None:
    """A module is moved, in place."""
    # of a module that moves its own parts when it is called, `check` is documented to know nothing
    names = [name for name in w.all(MODULE, NET) if not (w.method and name.text.startswith("self."))]
    if not names:
        return
    name = w.choose(names)
    call, place = moving(w, w.choose((CUDA, CUDA, CPU)), MODULE)
    if not w.inside and not w.indent and w.chance(15):
        w.line(f"{placing(w)}({name.text})")
        place = CUDA
    elif w.chance(25) and name.text in w.scopes[-1].names:
        w.use("module: moved and assigned")
        w.line(f"{name.text} = {name.text}{call}")
    else:
        w.use("module: moved in place")
        w.line(f"{name.text}{call}")
    w.place(name.text, place)


# -- classes of the program ------------------------------------------------------------------------------------------


def define(w: Writer) -> None:
    """A module of the program, and an object of it."""
    name = w.fresh("Net")
    w.use("module: the program's")
    with w.function(f"class {name}(nn.Module):"):
        taken, attributes = _init(w)
        w.lines.append(type(w.lines[-1])(""))
        _forward(w, attributes)
    for _ in range(w.number(1, 2)):
        make(w, name, taken, attributes)


def _init(w: Writer) -> tuple[list[str], list[Name]]:
    """``__init__``: the kinds of its parameters, and the attributes that are left."""
    taken = [w.choose((MATRIX, MODULE))] if w.chance(25) else []
    attributes = [Name("self.layer", MODULE, ANY, "linear")]
    parameters = "".join(f", given{position}" for position in range(len(taken)))
    with w.function(f"def __init__(self{parameters}):"):
        w.line("super().__init__()")
        for position, kind in enumerate(taken):
            w.declare(f"given{position}", kind)
        w.line("self.layer = nn.Linear(4, 4)")
        for _ in range(w.number(0, 3)):
            found = _attribute(w, taken)
            if found is not None:
                attributes.append(found)
        if w.chance(10):
            w.use("module: moves itself in __init__")
            w.line(f"self{moving(w, CUDA, MODULE)[0]}")
            if w.chance(50):
                found = _attribute(w, taken)
                if found is not None:
                    attributes.append(found)
    return taken, attributes


def _attribute(w: Writer, taken: list[str]) -> Name | None:
    """One attribute of a module, registered or not."""
    text = w.fresh("part")
    form = w.number(0, 9)
    expression, place = simple(w, MATRIX, CPU if w.chance(70) else ANY)
    registered = f'self.register_buffer("{text}", {expression})'
    if form == 0:
        w.use("module: buffer")
        options = (registered, f"{registered[:-1]}, persistent=False)", f"self.{text} = nn.Buffer({expression})")
        w.line(w.choose(options))
        return Name(f"self.{text}", MATRIX)
    if form == 1:
        w.use("module: parameter")
        w.line(f"self.{text} = nn.Parameter({expression})")
        return Name(f"self.{text}", MATRIX, info="parameter")
    if form in (2, 3):
        w.use("module: plain tensor")
        w.line(f"self.{text} = {expression}", f"self.{text} = torch.ones(4, 4)", registered)
        return Name(f"self.{text}", MATRIX, place)
    if form == 4:
        w.use("module: plain list of modules")
        made = "[nn.Linear(4, 4), nn.Linear(4, 4)]"
        made = "[nn.Linear(4, 4) for _ in range(2)]" if w.chance(40) else made
        w.line(f"self.{text} = {made}", mended=f"self.{text} = nn.ModuleList({made})")
        return Name(f"self.{text}", "modules")
    if form == 5:
        w.use("module: ModuleList")
        w.line(f"self.{text} = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])")
        return Name(f"self.{text}", "modules")
    if form == 6:
        w.use("module: Sequential")
        w.line(f"self.{text} = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))")
        return Name(f"self.{text}", MODULE)
    if form == 7 and taken:
        w.use("module: keeps what it is given")
        w.line(f"self.{text} = given0")
        return Name(f"self.{text}", taken[0], info="given")
    if form == 8:
        w.use("module: 0-dim attribute")
        w.line(f"self.{text} = {simple(w, SCALAR, CPU)[0]}")
        return Name(f"self.{text}", SCALAR)
    return None


def _forward(w: Writer, attributes: list[Name]) -> None:
    from tests.accuracy.fuzz.language.statements import body

    with w.function("def forward(self, x):"):
        w.declare("x", MATRIX, CUDA)
        w.method = True
        for name in attributes:
            # a parameter or what is shared may not be written to in place, and is read alone
            if name.kind != "modules" and name.info not in ("parameter", "given"):
                w.scopes[-1].names[name.text] = Name(name.text, name.kind, CUDA, name.info, fixed=True)
        for name in attributes:
            # a module is documented to do something with its input and its own parts
            if name is attributes[0] or w.chance(75):
                _use(w, name)
        w.returns = MATRIX
        body(w, 0, 2)
        text, _ = value(w, MATRIX, CUDA)
        w.line(f"return {text}", "return torch.ones(4, 4)")
        w.method = False


def _use(w: Writer, name: Name) -> None:
    """An attribute in ``forward``."""
    if name.kind == "modules":
        w.use("module: loop over its modules")
        with w.block(f"for part in {name.text}:", always=True):
            w.line("x = part(x)")
        return
    if name.info == "given":
        w.line(f"print({name.text}(x))" if name.kind == MODULE else f"print(x + {name.text})", limit=GIVEN)
    elif name.kind == MODULE:
        w.line(f"x = {name.text}(x)", "x = torch.ones(4, 4)")
    else:
        moved = ".to(x.device)" if w.chance(12) else ""
        w.line(f"x = x {w.choose(('+', '*', '-'))} {name.text}{moved}", "x = torch.ones(4, 4)")


def make(w: Writer, name: str, taken: list[str], attributes: list[Name]) -> None:
    """An object of a class, moved or not."""
    given = "".join("nn.Linear(4, 4)" if kind == MODULE else simple(w, MATRIX)[0] for kind in taken)
    call, place = ("", CPU) if w.chance(50) else (moving(w, CUDA, MODULE)[0], CUDA)
    text = w.fresh("net")
    w.use("module: object made")
    w.line(f"{text} = {name}({given}){call}")
    w.declare(text, NET, place, [name.text.replace("self", text) for name in attributes if name.kind == MATRIX])


def attribute(w: Writer) -> None:
    """An attribute of a module is read, moved or replaced from outside."""
    names = [name for name in w.all(NET) if name.info]
    if not names:
        return
    net = w.choose(names)
    text = w.choose(net.info)
    w.use("attribute: read from outside")
    other, _ = simple(w, MATRIX, wanted(w, net.place))
    w.line(f"print({other} + {text})", limit=OUTSIDE)


def objects(w: Writer) -> None:
    """A plain object that keeps tensors."""
    kept = [name for name in w.all("object") if name.text in w.scopes[-1].names]
    if not kept or w.chance(25):
        if w.inside or w.indent:
            return
        name, text = w.fresh("Box"), w.fresh("box")
        w.use("object: plain class")
        w.line(f"class {name}:")
        w.line("    def __init__(self, kept):")
        w.line("        self.kept = kept")
        expression, place = value(w, MATRIX, ANY, 1)
        w.line(f"{text} = {name}({expression})", f"{text} = {name}(torch.ones(4, 4))")
        w.declare(text, "object", place)
        return
    box = w.choose(kept)
    form = w.number(0, 2)
    if form == 0:
        w.use("object: attribute moved")
        call, place = moving(w)
        w.line(f"{box.text}.kept = {box.text}.kept{call}")
        w.place(box.text, place)
    elif form == 1:
        w.use("object: attribute assigned")
        expression, place = value(w, MATRIX, ANY, 1)
        w.line(f"{box.text}.kept = {expression}", f"{box.text}.kept = torch.ones(4, 4)")
        if not w.indent:
            w.declare(box.text, "object", place, "assigned")
    else:
        w.use("object: attribute read")
        other, _ = simple(w, MATRIX, wanted(w, box.place))
        if box.info == "assigned":
            w.bind(w.fresh("m"), MATRIX, f"{box.text}.kept + {other}", box.place)
        else:
            w.line(f"print({box.text}.kept + {other})", limit=OUTSIDE)
