"""Draws programs whose functions are called in ways that nobody can follow who only reads them.

What a function is given is random, and so is what it does with it, on branches that hang on arguments, on where a
tensor is, and on words in ``sys.argv``. A word decides either what functions are given or what they do: that both hang
on one setting is what a run cannot show.
"""

from __future__ import annotations

from random import Random

from tests.accuracy.fuzz.program import Line, Program

_HEAD = "import sys\nimport numpy as np\nimport torch\nfrom torch import nn"
_PLACES = ("torch.ones(4)", "torch.ones(4).cuda()", "torch.ones(4, device='cuda')", "torch.ones(4)")
_OPERATORS = ("+", "*", "-")


class Drawing:
    """One program in the making."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines = [Line(text) for text in _HEAD.split("\n")]
        self.names = 0
        self.given = ["given1"] if random.random() < 0.5 else []
        """Words that decide what functions are given."""
        self.words = [f"word{number}" for number in range(1, random.randint(1, 3))]

    def program(self) -> Program:
        """The program as it is."""
        return Program(tuple(self.lines), (*self.given, *self.words))

    def name(self) -> str:
        """A new name."""
        self.names += 1
        return f"v{self.names}"

    def add(self, text: str, depth: int, repaired: str = "pass") -> None:
        """One more line."""
        indent = "    " * depth
        self.lines.append(Line(indent + text, repaired))

    def tensor(self, known: list[str]) -> str:
        """An expression for a tensor."""
        made = ["torch.zeros(4)", "torch.ones(4, device='cuda')", "torch.full((4,), 2.0).cuda()", "torch.tensor(1.0)"]
        pick = self.random.random()
        if pick < 0.65 and known:
            return self.random.choice(known)
        if pick < 0.75 and known:
            return f"torch.ones(4, device={self.random.choice(known)}.device)"
        if pick < 0.85 and known:
            return f"torch.zeros_like({self.random.choice(known)})"
        return self.random.choice(made)

    def body(self, depth: int, known: list[str], flags: list[str], devices: list[str], attributes: list[str]) -> None:
        """The statements of a block."""
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, known, flags, devices, attributes)

    def statement(
        self, depth: int, known: list[str], flags: list[str], devices: list[str], attributes: list[str]
    ) -> None:
        """One statement, which may bind names."""
        random, some = self.random, known[0] if not known else self.random.choice(known)
        kind = random.choice("compute compute compute branch branch move read keep loop index call".split())
        if kind == "compute":
            name = random.choice([self.name(), some if some.isidentifier() else self.name()])
            left, right = self.tensor(known), self.tensor(known)
            self.add(f"{name} = {left} {random.choice(_OPERATORS)} {right}", depth, f"{name} = {some}")
            known.append(name)
        elif kind == "branch" and depth < 4:
            self.add(f"if {self.condition(known, flags)}:", depth)
            self.body(depth + 1, [*known], flags, devices, attributes)
            if random.random() < 0.5:
                self.add("else:", depth)
                self.body(depth + 1, [*known], flags, devices, attributes)
            elif random.random() < 0.3:
                self.add(f"return {some}", depth + 1)
        elif kind == "move":
            target = random.choice([f"{random.choice(known)}.device", *[f"{one}" for one in devices], "'cuda'"])
            name = random.choice([self.name(), some if some.isidentifier() else self.name()])
            move = random.choice([f".to({target})", ".cpu()", ".cuda()", f".to({target})"])
            self.add(f"{name} = {some}{move}", depth, f"{name} = {some}")
            known.append(name)
        elif kind == "read":
            self.add(random.choice([f"{some}.numpy()", f"np.asarray({some})", f"{some}.sum().item()"]), depth)
        elif kind == "keep" and attributes:
            self.add(f"{random.choice(attributes)} = {self.tensor(known)}", depth)
        elif kind == "loop" and depth < 3:
            self.add(f"for _ in range({random.choice([1, 2])}):", depth)
            self.body(depth + 1, [*known], flags, devices, attributes)
        elif kind == "index":
            name = self.name()
            self.add(f"{name} = {some}[torch.tensor([3, 1, 0, 2])]", depth, f"{name} = {some}")
            known.append(name)
        else:
            self.add(f"torch.stack([{some}, {self.tensor(known)}])", depth)

    def condition(self, known: list[str], flags: list[str]) -> str:
        """What a branch hangs on."""
        some, other = self.random.choice(known), self.random.choice(known)
        asked = [f"{some}.is_cuda", f"{some}.device.type == 'cpu'", f"{some}.device != {other}.device"]
        words = [f"'{word}' in sys.argv" for word in self.words]
        return self.random.choice(
            [*asked, *words, *words, *flags, *flags, f"{some}.shape[0] > 8", "torch.cuda.is_available()"]
        )


def draw(seeded: int) -> Program:
    """A program; the same for the same seed."""
    drawing = Drawing(Random(seeded))
    random = drawing.random
    calls: list[str] = []
    for number in range(random.randint(1, 2)):
        arguments = ["x", "y"][: random.randint(1, 2)]
        extra = [name for name in ("flag", "device", "items", "mask") if random.random() < 0.35]
        drawing.add(f"def function{number}({', '.join([*arguments, *(f'{name}=None' for name in extra)])}):", 0)
        known = [*arguments, *(["items[0]"] if "items" in extra else [])]
        flags = [name for name in ("flag",) if name in extra] + [f"{name} is not None" for name in extra]
        drawing.body(1, known, flags, ["device"] if "device" in extra else [], [])
        drawing.add(f"return {random.choice(known[:2])}", 1)
        for _ in range(random.randint(1, 3)):
            calls.append(_call(drawing, f"function{number}", arguments, extra))
    if random.random() < 0.6:
        _module(drawing, calls)
    for call in calls:
        drawing.add(call, 0)
    return drawing.program()


def _module(drawing: Drawing, calls: list[str]) -> None:
    random = drawing.random
    module = random.random() < 0.6
    drawing.add(f"class Kept({'nn.Module' if module else ''}):", 0)
    drawing.add("def __init__(self, make, given):", 1)
    drawing.add("super().__init__()", 2)
    if module:
        drawing.add("self.weight = nn.Parameter(torch.ones(4))", 2)
        drawing.add("self.register_buffer('mean', torch.zeros(4))", 2)
    drawing.add("self.kept = make()", 2)
    drawing.add("self.given = given", 2)
    attributes = ["self.kept", "self.given", *(["self.weight.detach()", "self.mean"] if module else [])]
    for name in ("forward", "update"):
        drawing.add(f"def {name}(self, x, flag=None):", 1)
        known = ["x", *random.sample(attributes, random.randint(1, len(attributes)))]
        drawing.body(2, known, ["flag", "flag is not None"], [], ["self.kept"])
        drawing.add(f"return {random.choice(known[:2])}", 2)
    moved = random.choice(["", ".cuda()", ".cuda()"]) if module else ""
    made, given = random.choice(_PLACES), random.choice(_PLACES)
    calls.append(f"object1 = globals()['Kept'](lambda: {made}, {given}){moved}")
    for _ in range(random.randint(1, 3)):
        name = random.choice(["forward", "update"])
        flag = random.choice(["", ", flag=True", ", flag=False"])
        calls.append(f"getattr(object1, '{name}')({_argument(drawing)}{flag})")


def _argument(drawing: Drawing) -> str:
    one, two = drawing.random.choice(_PLACES), drawing.random.choice(_PLACES)
    if drawing.given and drawing.random.random() < 0.4:
        return f"{one} if '{drawing.given[0]}' in sys.argv else {two}"
    return one


def _call(drawing: Drawing, name: str, arguments: list[str], extra: list[str]) -> str:
    random = drawing.random
    given = [_argument(drawing) for _ in arguments]
    values = {
        "flag": random.choice(["True", "False", "None"]),
        "device": random.choice(["'cpu'", "'cuda'", "torch.device('cuda')", "'cuda'"]),
        "items": f"[{random.choice(_PLACES)}, {random.choice(_PLACES)}]",
        "mask": random.choice(["None", "torch.ones(4)", "torch.ones(4).cuda()"]),
    }
    given += [f"{one}={values[one]}" for one in extra]
    hidden = random.random() < 0.8
    return f"globals()['{name}']({', '.join(given)})" if hidden else f"{name}({', '.join(given)})"
