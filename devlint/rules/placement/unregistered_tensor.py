"""DVL104: a tensor in a plain attribute of a module."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.device import Kind
from devlint.flow.catalog.creation import MAKING
from devlint.flow.syntax.names import called, chains, dotted, inside
from devlint.rules.base import Applicability, Edit, Fix, Report, Reports, Rule, Severity, Span
from devlint.rules.code.blocks import (
    around,
    assigned,
    function_at,
    keyword_of,
    method_of,
    receiver,
    statement_of,
)
from devlint.rules.code.control_flow import builds_no_graph_at
from devlint.rules.code.edits import fix_of, in_test, put_after, shown
from devlint.rules.code.owners import is_never_moved, is_set_by_base, moves_to_itself
from devlint.sites.base import Act, Step
from devlint.sites.devices import Override
from devlint.sites.placement import Attribute

_BUILT_EMPTY = re.compile(r"\b(?:skip_init|to_empty|init_empty_weights|materialize_\w*buffers)\(|[\"']meta[\"']")
"""Code that makes modules without memory, which leaves the buffers to itself to fill."""
_COMPLEX = re.compile(r"\.(?:polar|view_as_complex|complex(?:32|64|128)?|c(?:half|float|double)|fft\.\w+)\b")

_REAL = frozenset(
    """zeros ones empty eye arange linspace logspace rand randn randint randperm Tensor FloatTensor DoubleTensor
    HalfTensor LongTensor IntTensor ByteTensor BoolTensor real imag abs angle""".split()
)
"""Functions whose result is real, whatever they are given but for a dtype."""
_AS_REAL = frozenset(
    """reshape unsqueeze squeeze permute transpose t T mT repeat expand flatten contiguous clone float double half
    long int bool tril triu sqrt exp sin cos flip cumsum cumprod""".split()
)
"""What leaves real numbers real, as a method or as a function of one tensor."""
_NUMBERS = (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context)

_COPIED = "{} copied to the device of the inputs at every use"
_MADE_REAL = "override `_apply` and move it there: `.to(torch.bfloat16)` makes a buffer of complex numbers real"


class UnregisteredTensorAttribute(Rule):
    """A tensor in a plain attribute of a module is not moved by `Module.to()`.

    ## What it does
    Reports `self.mask = torch.ones(...)` in an `nn.Module` whose other methods combine `self.mask` with the module's
    inputs, and a distribution made of such tensors. It is a hint where they copy it to the device of the inputs on
    every call, and, for those who select the rule, where a call keeps the moved tensor in the attribute, for an
    argument of `__init__` that is annotated as a tensor and kept so, for a tensor that another method makes in a class
    that moves itself, for a tensor that `__init__` makes on the device
    that it is given, for lists and dicts of tensors, in a class whose base is not seen and which looks like a module,
    and for an own `to()`, `cuda()` or `cpu()` that keeps its arguments in the module, or passes them on there: a module
    that contains this one does not call it.

    Who selects the rule is told, too, of what is a parameter only if the constructor is told so, and of what goes into
    a layer of the module without meeting an input.

    ## Why it matters
    `Module.to()`, `.cuda()` and `.half()` move parameters, buffers and submodules; a plain tensor stays on the CPU
    and the first operation with an input raises. The usual repair, `self.mask.to(x.device)` in `forward`, is a
    blocking copy on every call, and it breaks CUDA graphs.

    ## Example
    ```python
    class Normalize(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)

        def forward(self, x):
            return x - self.mean
    ```

    ## Use instead
    ```python
    class Normalize(nn.Module):
        def __init__(self):
            super().__init__()
            mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
            self.register_buffer("mean", mean, persistent=False)

        def forward(self, x):
            return x - self.mean
    ```

    ## When it stays silent
    - The file has the training loop, and never names a device, or so it is with the whole project: it is for the CPU,
      and who selects the rule is told.
    - The attribute never meets the module's inputs, or it is a parameter, a buffer or a module.
    - It is moved by hand, and its numbers are complex, of which `Module.to(dtype)` would leave the real part if it was
      a buffer: it may be kept out of the module on purpose, and only who selects the rule is told.
    - A distribution is made of parameters or buffers, or of numbers, or its attributes are assigned by hand.
    - The tensor is 0-dim, is not on the CPU, or is assigned in `forward`, as a state or a cache.
    - The class moves the attribute itself, in its own `_apply`, `to` or `cuda`; only the first is always called. It
      moves it to where it is: `self.device = self.mask.device`.
    - It is only copied where it is used, and a method makes a number of it, `.item()`, which costs nothing on the CPU
      and as a buffer would make each call wait; or the class has a `cuda()` or `to()` that does not call that of
      `nn.Module`, and would move no buffer: who selects the rule is told.
    - It stays on the CPU and meets the module's inputs there, which raises where somebody moves the module: who selects
      the rule is told, and whoever has a run that shows it. Modules of the file are built without memory (`to_empty`,
      `skip_init`), so that what is in their buffers is for the code to see to: likewise.
    - A buffer alone is no cure: the functions of the file make modules of the class, hand them on among themselves, and
      move none of them; it is computed from what collects gradients; or it is taken from a list in another
      attribute, which keeps the tensor on the CPU; or single items of it are copied, picked by an index that is made on
      the CPU. Who selects the rule is told, and so it is with tests.
    - The class is not an `nn.Module`, or is a LightningModule that sets it in a hook.

    ## Fix safety
    The fix puts `register_buffer` in the place of the assignment, which is unsafe: the attribute is now moved and
    converted with the module, as it should be. `persistent=False` keeps the keys of the state dict as they are. There
    is no fix for an assignment before `super().__init__()`, or for a name that is taken by then, since
    `register_buffer` raises "attribute 'mask' already exists"; and none in a file that makes complex numbers, unless
    the assigned value is plainly real.

    ## References
    - [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
    """

    code = "DVL104"
    severity = Severity.INFO
    raising = True
    accelerated = True
    fixes = (Applicability.UNSAFE,)
    observed = True

    def judge(self, site: Attribute | Override) -> Reports:
        """A report where the attribute surely stays behind and is missed, or fetched over and over."""
        if isinstance(site, Override):
            yield _left_to_the_caller(site)
        if isinstance(site, Attribute) and site.kind == "given":
            yield _stays_with_the_maker(site)
        if isinstance(site, Attribute) and site.kind == "distribution":
            yield from _drawn_on_the_host(site)
        if not isinstance(site, Attribute) or site.kind != "tensor" or not site.uses:
            return
        if site.open:
            yield from _moved_by_hand(site) if site.kept else _copied_each_time(site)
            return
        leaves = site.value.device.leaves()
        if not any(leaf.kind is Kind.CPU for leaf in leaves):
            return
        moved = site.moved and all(use.act is Act.MOVED for use in site.uses)
        if moved and all(moves_to_itself(self.source, site.name, use.node) for use in site.uses):
            return
        if moved:
            # a copy costs whatever its size; but a value put on the CPU on purpose may be kept off the accelerator
            if site.value.many is False or not all(leaf.implied for leaf in leaves):
                return
            part = all(map(_is_of_part, site.uses))
            what = _COPIED.format("parts of it are" if part else "it is")
        elif site.value.many is not False:
            part = False
            what = "it stays on the CPU and meets the inputs there"
        else:
            return
        if site.kept:
            what = "it is moved by hand"
        sure = site.value.many is True and len(leaves) == 1 and not site.kept
        # as a buffer it would make each call wait, or would not be moved either
        against = site.stopped or (site.fetched if moved else None)
        # `Module.to(dtype)` would make a buffer of complex numbers real
        made = site.value.complex
        perhaps = made or (not _is_real(site.value.node) and any(map(_COMPLEX.search, self.source.lines)))
        instead = self._instead(site, moved)
        # what collects gradients, and meets the inputs on the CPU, raises all the same
        idle = bool(instead) and (moved or site.value.grad != "leaf")
        asked = against is not None or idle or site.later or in_test(self.source, site.scope)
        stays = moved and is_never_moved(self.source, site.owner)
        # a table of which only rows are moved may be too large for the accelerator
        asked = asked or stays or part or _BUILT_EMPTY.search(self.source.text) is not None
        yield Report(
            f"`self.{site.name}` is a plain attribute, which `{site.owner}.to()` does not move: {what}",
            node=site.value.node,
            label="a tensor, but neither a parameter nor a buffer",
            # a copy that is made again and again costs little as a rule, and raises nowhere
            severity=Severity.WARNING if sure and (not moved or site.measured is not None) and not asked else None,
            steps=site.uses if against is None else (*site.uses, against),
            help=_MADE_REAL
            if made
            else instead or self._taken(site) or self._helped(site) + _beware(site, moved, stays),
            fix=None if perhaps or against or instead or self._taken(site) else self._fix(site),
            # what meets the inputs raises where somebody moves the module, and works where nobody does
            unproven=not moved and site.measured is None,
            asked=asked or (made and (moved or site.kept)) or site.kept or not (sure or moved),
        )

    def _instead(self, site: Attribute, moved: bool) -> str:
        """What to do where a buffer alone cures nothing; empty where it does."""
        name = f"self.{site.name}"
        holder = self._holder(site)
        if holder:
            return f"register it, and take it from there: `{holder}` keeps the tensor that is on the CPU"
        if site.value.grad == "leaf":
            return f"make it a parameter: `{name} = nn.Parameter(...)`"
        if site.value.grad and not builds_no_graph_at(self.source, site.value.node):
            return f"compute `{name}` where it is used: what it is computed from collects gradients"
        if moved and all(self._is_picked_on_the_host(use) for use in site.uses):
            return f"{self._helped(site)}, and make the index on its device"
        return ""

    def _holder(self, site: Attribute) -> str:
        """The list in another attribute from which each use takes the tensor, empty where it is none."""
        name = f"self.{site.name}"
        if any(name in chains(use.node) for use in site.uses):
            return ""
        function = around(self.source, site.value.node)
        for target, made in ((target, made) for target, rows in assigned(function).items() for _, made in rows):
            items = made.elts if isinstance(made, ast.List | ast.Tuple) else ()
            items = made.values if isinstance(made, ast.Dict) else items
            if target.startswith("self.") and target != name and name in map(dotted, items):
                return target
        return ""

    def _is_picked_on_the_host(self, use: Step) -> bool:
        """Whether a few items are moved, picked by an index that the function makes on the CPU."""
        node = receiver(use.node)
        while isinstance(node, ast.Call):
            node = receiver(node)
        index = inside(node.slice) if isinstance(node, ast.Subscript) else ()
        bound = assigned(around(self.source, use.node))
        made = (value for name in index for _, value in bound.get(name, ()) if isinstance(value, ast.Call))
        return any(called(one) in MAKING and keyword_of(one, "device") is None for one in made)

    def _helped(self, site: Attribute) -> str:
        return _help(site, self._is_early(site.value.node))

    def _taken(self, site: Attribute) -> str:
        """What to do where the attribute has another value before, as ``None``; empty where it has none."""
        function, row = function_at(self.source, site.value.node), getattr(site.value.node, "lineno", 0)
        if not isinstance(function, ast.FunctionDef):
            return ""
        if not (_rows(function).get(site.name, row) < row or is_set_by_base(self.source, site.owner, site.name)):
            return ""
        first = f'`self.register_buffer("{site.name}", None, persistent=False)`'
        return f"make it a buffer where it is first assigned, {first}, and assign the tensor then"

    def _is_early(self, node: ast.AST) -> bool:
        """Whether the constructor of the module's bases has still to run."""
        function = function_at(self.source, node)
        row = getattr(node, "lineno", 0)
        return isinstance(function, ast.FunctionDef) and _rows(function).get("__init__()", row) > row

    def _fix(self, site: Attribute) -> Fix | None:
        """Let ``register_buffer`` take the place of the assignment, where nothing has the name by then."""
        node = site.value.node
        found, function = statement_of(self.source, node), function_at(self.source, node)
        if found is None or not isinstance(function, ast.FunctionDef) or not _registrable(site, found, function):
            return None
        statement, value = self.source.span(found), self.source.span(node)
        if (statement.end_row, statement.end_column) != (value.end_row, value.end_column):
            # brackets around the value, or comments in them
            return None
        if self.source.segment(found)[: -len(self.source.segment(node))].split() != [f"self.{site.name}", "="]:
            return None
        head = Span(statement.row, statement.column, value.row, value.column)
        registering = Edit(head, f'self.register_buffer("{site.name}", ')
        return fix_of("Register it as a buffer", registering, put_after(self.source, node, ", persistent=False)"))


def _is_real(node: ast.AST) -> bool:
    """Whether an expression surely makes real numbers, which a conversion of the module leaves real."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        named = node.func if isinstance(node, ast.Call) else node
        if not isinstance(named, ast.Attribute):
            return False
        dtypes = [word.value for word in node.keywords if word.arg == "dtype"] if isinstance(node, ast.Call) else []
        if any(not isinstance(dtype, ast.Attribute) or _COMPLEX.search(f".{dtype.attr}") for dtype in dtypes):
            return False
        if named.attr in _REAL:
            return True
        if isinstance(node, ast.Call) and named.attr in ("tensor", "full"):
            given = [inner for argument in node.args[-1:] for inner in ast.walk(argument)]
            numbers = (inner.value for inner in given if isinstance(inner, ast.Constant))
            real = all(isinstance(number, (bool, int, float)) for number in numbers)
            return bool(given) and real and all(isinstance(inner, _NUMBERS) for inner in given)
        if named.attr not in _AS_REAL:
            return False
        # torch.sqrt(x) as well as x.sqrt()
        of_torch = isinstance(named.value, ast.Name) and isinstance(node, ast.Call) and bool(node.args)
        node = node.args[0] if of_torch and isinstance(node, ast.Call) else named.value
    return False


def _left_to_the_caller(site: Override) -> Report:
    """A hint at what only a direct call of a move does."""
    owner, method = site.scope.owner, site.method
    return Report(
        f"a module that contains this `{owner}` moves it without calling `{method}()`, and so does no more than this",
        label="what every move does",
        severity=Severity.INFO,
        steps=(site.besides,),
        help="override `_apply`, which every move and conversion calls, or register what has to move",
        asked=True,
    )


def _stays_with_the_maker(site: Attribute) -> Report:
    """A hint at what only whoever makes the module can put where its inputs will be, or at a list of such."""
    return Report(
        f"`self.{site.name}` is a plain attribute, which `{site.owner}.to()` does not move: it stays where it was "
        "when the module was made, and meets the inputs there",
        node=site.value.node,
        label=f"a {site.container} of tensors" if site.container else "a tensor, but neither a parameter nor a buffer",
        severity=Severity.INFO,
        steps=site.uses,
        help="register each of them: `self.register_buffer(name, ..., persistent=False)`"
        if site.container
        else _help(site),
        asked=True,
    )


def _drawn_on_the_host(site: Attribute) -> Reports:
    """A distribution stays where it was made, with its parameters: it is no part of the module, whatever they are."""
    device = site.value.device
    if site.moved or not site.uses or device.kind is not Kind.CPU or site.value.many is not True:
        return
    yield Report(
        f"`self.{site.name}` is no part of the module, and `{site.owner}.to()` does not move its parameters: "
        "they stay on the CPU and meet the inputs there",
        node=site.value.node,
        label="a distribution, which holds tensors",
        steps=site.uses,
        help="register its parameters as buffers, and make the distribution of them where it is used",
    )


def _registrable(site: Attribute, statement: ast.stmt, function: ast.FunctionDef) -> bool:
    """Whether the module is made by then, and has nothing else under that name."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not site.value.certain:
        return False
    rows, row = _rows(function), statement.lineno
    sure = site.value.many is True and site.value.device.kind is Kind.CPU and function.name == "__init__"
    return sure and rows.get("__init__()", row) < row and not rows.get(site.name, row) < row


@lru_cache(maxsize=4)
def _rows(function: ast.FunctionDef) -> dict[str, int]:
    """The first row where each attribute is assigned, and where an ``__init__`` is called."""
    rows: dict[str, int] = {}
    for node in ast.walk(function):
        name = ""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif method_of(node) == "__init__":
            name = "__init__()"
        if name:
            rows[name] = min(rows.get(name, node.lineno), node.lineno)  # type: ignore[attr-defined]  # both have one
    return rows


def _copied_each_time(site: Attribute) -> Reports:
    """Hints where a class that may be no module copies what it made on the CPU, and does not keep the copy."""
    implied = all(leaf.implied for leaf in site.value.device.leaves())
    if not site.moved or not implied or site.value.many is False:
        return
    for use in site.uses:
        moved = receiver(use.node)
        text = f"self.{site.name}" if moved is None else ast.unparse(moved)
        yield Report(
            f"{shown(text)} stays on the CPU, where `__init__` put it, and is copied at every call",
            node=use.node,
            label="the same copy each time",
            severity=Severity.INFO,
            steps=(Step(site.value.node, "made on the CPU here"),),
            help="keep the copy in the attribute, or register the tensor as a buffer if the class is a module",
            asked=True,
        )


def _moved_by_hand(site: Attribute) -> Reports:
    """A hint, for those who ask, where a class that may be a module moves the tensor to its inputs, and keeps it."""
    # what is no module has to do so: a hint for all would be wrong too often
    if not site.follows or any(leaf.known and not leaf.implied for leaf in site.value.device.leaves()):
        return
    yield Report(
        f"`self.{site.name}` is moved by hand to where the inputs are, and left there",
        node=site.value.node,
        label="a plain attribute",
        severity=Severity.INFO,
        steps=site.uses,
        help=f"if `{site.owner}` is a module, let it move the tensor: " + _help(site).removeprefix("register it: "),
        asked=True,
    )


def _is_of_part(use: Step) -> bool:
    """Whether it is a part of the attribute that is moved."""
    return isinstance(receiver(use.node), ast.Subscript)


def _beware(site: Attribute, moved: bool, stays: bool) -> str:
    """What has to be done besides, for a buffer to be any better; ``stays`` says that nobody moves the module."""
    if stays:
        return f", and move the `{site.owner}` where it is made"
    if site.stopped is not None:
        return f"; `{getattr(site.stopped.node, 'name', '')}()` of the class has to call that of the bases then"
    return "; keep a number beside it for what reads it on the host" if site.fetched is not None and moved else ""


def _help(site: Attribute, early: bool = False) -> str:
    value = ast.unparse(site.value.node) if isinstance(site.value.node, ast.expr) else ""
    when = "register it"
    if early:
        when = "register it after `super().__init__()`"
    elif value == f"self.{site.name}":
        # one of several targets: the buffer cannot take the name of an attribute that is there already
        when = "unpack into a local name, then register it"
    elif value and shown(value) == f"`{value}`":
        return f'register it: `self.register_buffer("{site.name}", {value}, persistent=False)`'
    return f'{when}: `self.register_buffer("{site.name}", ..., persistent=False)`'
