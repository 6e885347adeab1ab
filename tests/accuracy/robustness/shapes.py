"""Code of unusual shape, of any size: each a function from a size to a text, all of it about torch."""

from __future__ import annotations

from collections.abc import Callable

_HEAD = "import time\nimport torch\nimport torch.nn as nn\nfrom torch.utils.data import DataLoader\n"
_MADE = "torch.zeros(3).cuda()"

SHAPES: dict[str, Callable[[int], str]] = {}
"""By what there is many of, or what is deep."""


def _shape(name: str, line: str, before: str = "", after: str = "", deepest: int = 0) -> None:
    """Lines that all look alike; ``{n}`` in them is their number, ``{m}`` that of the line before."""

    def text(size: int) -> str:
        size = min(size, deepest) if deepest else size
        lines = (line.replace("{n}", str(n)).replace("{m}", str(max(n - 1, 0))) for n in range(size))
        return f"{_HEAD}{before}{''.join(lines)}{after}"

    SHAPES[name] = text


_CLASS = "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"

# -- many in one statement ---------------------------------------------------------------------------------------------
_shape("findings in one list", f"{_MADE}, ", "x = [", "]\n")
_shape("findings in one list, a line each", f"    {_MADE},\n", "x = [\n", "]\n")
_shape("findings in one call", f"{_MADE}, ", "x = f(", ")\n")
_shape("findings in one call, by name", f"a{{n}}={_MADE}, ", "x = f(", ")\n")
_shape("findings in one dict", f"'a{{n}}': {_MADE}, ", "x = {", "}\n")
_shape("findings in one f-string", f"{{{_MADE}}}", "x = f'", "'\n")
_shape("findings in one line", f"{_MADE}; ", "", "pass\n")
_shape("findings in one sum", f"{_MADE} + ", "x = ", "1\n")
_shape("conditions of one if", "(a{n} is not None or torch.cuda.is_available()) and ", "if ", f"b:\n    x = {_MADE}\n")
_shape("targets of one assignment", "a{n} = ", "", f"{_MADE}\n")
_shape("decorators of one function", "@torch.no_grad()\n", "", "def f(x):\n    return x.cuda()\n")
_shape("parameters of one function", "a{n}, ", "def f(", "):\n    return a0.cuda()\n")
_shape("names of one import", "b{n}, ", "from a import (", ")\nb0.cuda()\n")
_shape("cases of one match", "    case {n}:\n        x = x.cuda()\n", "x = torch.zeros(3)\nmatch a:\n")
_shape("words in one string", "torch.cuda .to(device) ", '"""', f'"""\nx = {_MADE}\n')

# -- many in one body --------------------------------------------------------------------------------------------------
_shape("names, each moved", "a{n} = torch.zeros(3)\nb{n} = a{n}.cuda()\n")
_shape("names, moved to one device", "a{n} = torch.zeros(3)\na{n} = a{n}.to(d)\n", "d = torch.device('cuda')\n")
_shape(
    "devices", "d{n} = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nx{n} = torch.zeros(3).to(d{n})\n"
)
_shape("branches, each on a name", "a{n} = torch.zeros(3)\nif c{n}:\n    a{n} = a{n}.cuda()\n")
_shape("branches on one name", "if c{n}:\n    x = x.cuda()\n", "x = torch.zeros(3)\n")
_shape("exits of one function", "    if a == {n}:\n        return x.cuda()\n", "def f(a, x):\n", "    return x\n")
_shape("exits of one loop",
       "        if b == {n}:\n            break\n        if b == -{n}:\n            continue\n        x.cuda()\n",
       "def f(a, x):\n    for b in a:\n")  # fmt: skip
_shape("tries", "try:\n    x = x.cuda()\nexcept RuntimeError:\n    pass\n", "x = torch.zeros(3)\n")
_shape("loops", f"for i in range(3):\n    x = {_MADE}\n")
_shape("loaders", "l{n} = DataLoader(ds)\nfor b in l{n}:\n    b = b.cuda()\n")
_shape("losses in one loop", "        loss = model(x).sum()\n        loss.backward()\n        total += loss\n",
       "def train(model, loader, total):\n    for x in loader:\n")  # fmt: skip
_shape("models and optimizers", "m{n} = nn.Linear(3, 3)\no{n} = torch.optim.SGD(m{n}.parameters())\nm{n}.cuda()\n")
_shape("timings", f"t = time.time()\nx = {_MADE}\nprint(time.time() - t)\n")
_shape("items of one list", f"x.append({_MADE})\n", "x = []\n")
_shape("items of one dict", "x['a{n}'] = torch.zeros(3)\ny = x['a{n}'].cuda()\n", "x = {}\n")
_shape("aliases of torch", "import torch as t{n}\nt{n}.zeros(3).cuda()\n")
_shape("suppressions", "# devlint: ignore[DVL101]\nx = 1\n", f"x = {_MADE}  # noqa\n")

# -- many definitions --------------------------------------------------------------------------------------------------
_shape("functions", "def f{n}(x):\n    y = torch.zeros(3)\n    return x.cuda() + y\n")
_shape("functions, each calling the one before", "def f{n}(x):\n    return f{m}(x) + f{m}(torch.zeros(3))\n")
_shape("functions in a function", "    def g{n}(x):\n        return x.cuda()\n", "def f():\n")
_shape("globals", "g{n} = torch.zeros(3)\ndef f{n}():\n    global g{n}\n    g{n} = g{n}.cuda()\n")
_shape("modules", "class A{n}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
       "        self.y = torch.zeros(3)\n    def forward(self, x):\n        return x.cuda() + self.y\n")  # fmt: skip
_shape(
    "methods of one module",
    "    def m{n}(self, x):\n        self.z{n} = x.cuda()\n        return self.m{m}(x)\n",
    _CLASS,
)
_shape(
    "buffers of one module",
    "        self.y{n} = torch.zeros(3)\n",
    _CLASS,
    "    def forward(self, x):\n        return x + self.y0\n",
)
_shape(
    "layers of one module", "        self.l{n} = nn.Linear(3, 3)\n", _CLASS, "m = A()\nm.cuda()\nm(torch.zeros(3))\n"
)
_shape("subclasses of each other", "class A{n}(A{m}):\n    def __init__(self):\n        super().__init__()\n"
       "        self.y{n} = torch.zeros(3)\n    def forward(self, x):\n"
       "        return x.cuda() + self.y{n}\n")  # fmt: skip

# -- deep --------------------------------------------------------------------------------------------------------------
_shape("elifs", "elif a == {n}:\n    x = x.cuda()\n", "x = torch.zeros(3)\nif a:\n    pass\n", deepest=900)
_shape("nots", "not ", "x = torch.zeros(3)\nif ", "torch.cuda.is_available():\n    x = x.cuda()\n")
_shape("signs", "-", "x = ", f"{_MADE}\n")
_shape("moves of moves", ".cuda()", "x = torch.zeros(3)", "\n")
_shape("operations on each other's results", ".add(1).to('cuda')", "x = torch.zeros(3)", "\n")
_shape("conditional expressions", f"{_MADE} if c{{n}} else ", "x = ", "y\n")
_shape("subscripts", "[0]", f"x = {_MADE}", "\n")
_shape("parts of an import path", ".a", "import a", "\na.cuda()\n")
_shape("parts of a module's name", ".a", "from a", " import b\nb.cuda()\n")
_shape("lambdas", "lambda a: ", "x = ", f"{_MADE}\n", deepest=150)
_shape("loops of one comprehension", "for a{n} in b{n} ", f"x = [{_MADE} ", "]\n", deepest=150)
_shape("lines of one statement", "\\\n+ 1", f"x = {_MADE}", "\n")


def _loops_in_loops(size: int) -> str:
    size = min(size, 18)  # Python reads no more than 20 blocks in each other
    lines = (f"{' ' * depth}for i{depth} in range(3):\n" for depth in range(size))
    return f"{_HEAD}{''.join(lines)}{' ' * size}x = {_MADE}\n"


def _nested(opening: str, closing: str) -> Callable[[int], str]:
    # Python's tokenizer counts no more than 200 brackets in each other
    return lambda size: f"{_HEAD}x = {opening * min(size, 190)}{_MADE}{closing * min(size, 190)}\n"


SHAPES["loops in loops"] = _loops_in_loops
SHAPES["brackets"] = _nested("(", ")")
SHAPES["lists in lists"] = _nested("[", "]")
SHAPES["calls of calls"] = _nested("f(", ")")


def _bases_of_bases(size: int) -> str:
    size = min(size, 100)
    lines = [_HEAD, *(f"class A{n}(nn.Module):\n    pass\n" for n in range(10))]
    for n in range(10, size):
        around = ", ".join(f"A{m}" for m in range(n // 10 * 10 - 10, n // 10 * 10))
        lines.append(f"class A{n}({around}):\n    def forward(self, x):\n        return x.cuda() + self.y\n")
    return "".join(lines)


SHAPES["ten bases, ten of each, and so on"] = _bases_of_bases
