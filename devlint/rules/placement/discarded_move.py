"""DVL102: a tensor's move whose result nobody takes."""

from __future__ import annotations

import ast
import re
import sys
from typing import TypeGuard

from devlint.device import Kind, Role
from devlint.flow.program.type_hints import objects
from devlint.flow.syntax.names import called, dotted, inside, of_self
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity, proof
from devlint.rules.code import edits
from devlint.rules.code.blocks import (
    around,
    assigned,
    function_at,
    given,
    method_of,
    receiver,
    statement_of,
    stores,
    way_to,
)
from devlint.sites.base import Act
from devlint.sites.transfers import Transfer, Uncalled
from devlint.source.syntax import walk

_OWN_MOVE = re.compile(r"\bself\.(?:to|cuda)\(|\bvars\(self\)|\bself\.__dict__")
"""What may move all that an object keeps."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARAMETERS = frozenset({"parameters", "buffers", "named_parameters", "named_buffers"})
_WITHOUT_ARGUMENTS = frozenset({"cuda", "cpu", "xpu"})
_VALUES = frozenset({"items", "values"})
_REGISTERED = frozenset({"weight", "bias"})
_LEAVES = frozenset({"parameter", "leaf"})
_PLACE = r"\.to\([\w.]*device\)$"
"""How a tensor is put on a device, and nothing else."""
_RAISES = re.compile(r"raises|warns|Raises|Warns|suppress")
"""Contexts in which something is done to see what comes of it."""
_TO_THE_HOST = frozenset({"cpu", "item", "tolist", "numpy", "shape"})
"""Attributes of a tensor that lead to what is on the host, or has no device."""


class DiscardedMove(Rule):
    """The result of a tensor's `.to()`, `.cuda()` or `.cpu()` is dropped, so the tensor stays where it was.

    ## What it does
    Reports a statement such as `x.to(device)` whose receiver is proven to be a tensor, and the method itself where it
    is returned or gets the tensor's name, as in `x = x.cuda`. It is an error; a warning for a
    conversion, for a copy to the CPU, without which nothing raises at once, for an argument that a module would put
    where it was told once, and for a tensor of which the function makes an array, or which goes to a module that is
    not moved either; a hint for a copy to the CPU of what
    the function does not read any more, where the tensor happens to be there already, for a buffer of the module
    itself, which moves with it, and for the type and the device that it was made with: such a line can go.

    ## Why it matters
    `nn.Module.to()` moves a module in place. `Tensor.to()` does not: it returns a copy and leaves the tensor alone. The
    statement looks like a move and does nothing, and the next operation on an accelerator raises, or runs on the CPU.

    ## Example
    ```python
    def predict(model, device):
        x = torch.randn(4, 8)
        x.to(device)
        return model(x)
    ```

    ## Use instead
    ```python
    def predict(model, device):
        x = torch.randn(4, 8)
        x = x.to(device)
        return model(x)
    ```

    ## When it stays silent
    - The receiver is a module, a loss, a metric or a container that moves in place (`BatchEncoding`, PyG's `Data`).
    - The receiver is not proven to be a tensor.
    - Who selects the rule is told of a call that asks for nothing but what the tensor was made with, or for the place
      that a module keeps, where the tensor was made like another, and so beside it.
    - The result is used: assigned (also to `_`), returned, passed on.
    - The tensor was made for the statement, as in the warm-up `torch.zeros(1).cuda()`.
    - The function measures: its name speaks of a benchmark, a warm-up, a profile, a latency.
    - The tensor is already there: then nothing is lost.
    - A loop copies the same tensor to one device after another, and uses it for nothing else: it wants the copies.
    - It is done to see whether it can be: at the end of a `try`, or in `with pytest.raises(...)`.

    ## Fix safety
    There is no fix for a method that is not called. `x.to(device)` becomes `x = x.to(device)`, where `x` is a name or
    an attribute that can be assigned to. It is unsafe: other names of the same tensor stay where they are. There is no
    fix where the copy would reach a `.numpy()` further down, and raise; nor for parameters and buffers: move their
    module; nor for a tensor that collects gradients, whose copy would get none; nor where what gets it next is a module
    in an attribute, which nothing in the file moves: both stay where they are; nor for a module's argument, which
    assigned would take the input of every replica of `nn.DataParallel` to one device.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
    """

    code = "DVL102"
    severity = Severity.ERROR
    fixes = (Applicability.UNSAFE,)
    proof = proof.Traces(left=(proof.COPY, proof.MOVE), confirm=(proof.COPY,), contradict=(proof.ONLY_IN_PLACE,))

    def judge(self, site: Transfer | Uncalled) -> Reports:
        """A report where a tensor's new copy is thrown away, or never made."""
        if isinstance(site, Uncalled):
            yield self._uncalled(site)
            return
        if not site.discarded or site.kind != "tensor" or not site.value.certain:
            return
        lasting = isinstance(site.value.node, ast.Name | ast.Attribute | ast.Subscript)
        there = site.target is not None and site.plain and site.target.same(site.value.device) is True
        kept = isinstance(site.value.node, ast.Attribute) and site.value.device.implied
        if not lasting or (there and not kept) or edits.measures(site.scope):
            return
        if isinstance(site.value.node, ast.Name) and site.value.node.id in objects(around(self.source, site.node)):
            # a batch with parts of its own, which may well move in place
            return
        if _to_one_after_another(site) or self._is_tried(site):
            return
        name = edits.short(self.source.segment(site.value.node), "the tensor")
        quoted = edits.quoted(self.source.segment(site.value.node), "the tensor")
        call = edits.short(self.source.segment(site.node), f"{name}.{site.spelled}(…)")
        made, stays = ("moved", "where it is") if site.target is not None else ("converted", "as it is")
        # a copy to the CPU is missed by nothing that runs on an accelerator
        to_host = site.target is not None and site.target.kind is Kind.CPU
        idle = self._useless(site, quoted, to_host)
        read = (
            "" if to_host or site.target is None else self._read_on_the_host(site) or self._left_behind_together(site)
        )
        mild = Severity.WARNING if to_host or site.target is None or _of_caller(site) or read else None
        yield Report(
            f"`{call}` returns the {made} tensor and leaves {quoted} {stays}: the result is dropped",
            label="nobody takes the result",
            # a tensor that happens to be there loses nothing, and with a conversion devices still agree
            severity=Severity.INFO if there or idle else mild,
            steps=site.value.story,
            help=idle or read or self._help(site, name, call),
            fix=None if idle or read else self._fix(site, name),
            asked=(bool(idle) and bool(self._made_with(site) or self._made_like(site)))
            # with a conversion everything works, and a test may count what happens
            or (site.target is None and edits.in_test(self.source, site.scope)),
        )

    def _uncalled(self, site: Uncalled) -> Report:
        """A report where a method takes the place of the tensor that it is to move."""
        spelled = self.source.segment(site.node)
        call = f"{spelled}()" if site.spelled in _WITHOUT_ARGUMENTS else f"{spelled}(...)"
        return Report(
            f"`{spelled}` is a method that is not called: it takes the place of the moved tensor",
            label="never called",
            steps=site.value.story,
            help=f"call it: `{call}`",
        )

    def _useless(self, site: Transfer, quoted: str, to_host: bool) -> str:
        """What to do about a call that would change nothing if its result was taken, empty if it would."""
        unread = to_host or (_is_bound_by_loop(site) and not _parameters_of(site))
        if unread and not self._is_read(site):
            return f"drop the call: nothing reads {quoted} afterwards"
        if self._goes_with_the_module(site):
            return f"delete the line: {quoted} is a buffer, which moves with the module"
        made = self._made_with(site)
        if made:
            return f"delete the line: {quoted} was made with `{made}`"
        like = self._made_like(site)
        return f"delete the line: {quoted} was made like `{like}`, where that is" if like else ""

    def _goes_with_the_module(self, site: Transfer) -> bool:
        """Whether it is a buffer of the module itself, and to be moved alone."""
        name, moved = of_self(site.value.node), site.plain and site.target is not None
        calls = (node for node in walk(self.source.tree) if moved and isinstance(node, ast.Call))
        named = (word for call in calls if called(call) == "self.register_buffer" for word in given(call))
        return any(isinstance(word, ast.Constant) and word.value == name for word in named)

    def _made_with(self, site: Transfer) -> str:
        """The type and the place that a call asks for, if all that its function assigned to the tensor was made so."""
        scope, asked = around(self.source, site.node), _asked(site)
        bound = self._bound(site) if asked else []
        created = {step.node for step in site.value.story if step.act is Act.CREATED}
        for _, made in bound:
            if not asked.items() <= _words(made, created).items():
                return ""
        # what is asked of something may be another one by then
        named = inside(ast.parse(", ".join(asked.values())))
        first, last = min((row for row, _ in bound), default=0), _end(site)
        changed = not bound or any(first <= where <= last for name in named for where in stores(scope).get(name, ()))
        return "" if changed else ", ".join(f"{word}={text}" for word, text in asked.items())

    def _made_like(self, site: Transfer) -> str:
        """The tensor like which it was made, where a method of a module moves it to the place that the module keeps."""
        own = site.target_node is not None and site.scope.module and site.plain and bool(of_self(site.target_node))
        if not own or any(leaf.kind is Kind.CPU for leaf in site.value.device.leaves()):
            return ""
        models = {ast.unparse(made.args[0]) if _is_like(made) else "" for _, made in self._bound(site)}
        return models.pop() if len(models) == 1 else ""

    def _bound(self, site: Transfer) -> list[tuple[int, ast.expr]]:
        """What the function has assigned to the tensor by then, each with its row; none unless that is all it is."""
        node, scope, last = site.value.node, around(self.source, site.node), _end(site)
        if not isinstance(node, ast.Name):
            return []
        bound = [(row, made) for row, made in assigned(scope).get(node.id, []) if row <= last]
        return bound if len(bound) == len([row for row in stores(scope).get(node.id, ()) if row <= last]) else []

    def _is_read(self, site: Transfer) -> bool:
        """Whether the function reads the receiver after the move, or in another round of the loop; else it may."""
        if not isinstance(site.value.node, ast.Name) or not isinstance(function_at(self.source, site.node), _FUNCTIONS):
            return True
        last, name = getattr(site.node, "end_lineno", 0), site.value.node.id
        parts = [*walk(around(self.source, site.node)), *(() if site.scope.loop is None else walk(site.scope.loop))]
        read = (part for part in parts if isinstance(part, ast.Name) and part.id == name)
        # what the loop itself binds is another one in the next round
        again = site.scope.loop is not None and not _is_bound_by_loop(site)
        return any((part.lineno > last or again) and part is not site.value.node for part in read)

    def _is_tried(self, site: Transfer) -> bool:
        """Whether a call is there to see if it raises: at the end of a ``try``, or in ``with pytest.raises()``."""
        for parent, child in way_to(self.source, site.node)[-2:]:
            if isinstance(parent, ast.Try) and parent.handlers and child in parent.body[-1:]:
                return True
            if isinstance(parent, ast.With) and any(_RAISES.search(ast.unparse(item)) for item in parent.items):
                return True
        return False

    def _read_on_the_host(self, site: Transfer) -> str:
        """What to do about a call whose result would raise further down, in a `.numpy()`, if it was taken."""
        held = inside(site.value.node) if isinstance(site.value.node, ast.Name) else set()
        last = getattr(site.node, "end_lineno", 0)
        later = [node for node in walk(around(self.source, site.node)) if getattr(node, "lineno", 0) > last and held]
        for node in sorted(later, key=lambda one: (getattr(one, "lineno", 0), isinstance(one, ast.Assign))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "numpy" and not node.keywords and _carries(node.func.value, held):
                    return f"delete the line: taken, the result would raise in line {node.lineno}, in `.numpy()`"
                if node.func.attr == "append" and any(_carries(given, held) for given in node.args):
                    held |= inside(node.func.value)
            elif isinstance(node, ast.Assign):
                bound = {name for target in node.targets if isinstance(target, ast.Name) for name in inside(target)}
                held = held | bound if _carries(node.value, held) else held - bound
        return ""

    def _left_behind_together(self, site: Transfer) -> str:
        """What to do about a tensor that goes to a module in an attribute which nothing in the file moves either."""
        node, last = site.value.node, getattr(site.node, "end_lineno", 0)
        if not isinstance(node, ast.Name) or site.scope.module or _OWN_MOVE.search(self.source.text):
            return ""
        for call in walk(around(self.source, site.node)):
            name = dotted(call.func) if isinstance(call, ast.Call) and call.lineno > last else ""
            given_to = isinstance(call, ast.Call) and any(dotted(value) == node.id for value in call.args)
            if given_to and re.fullmatch(r"self\.\w+", name):
                moved = rf"{re.escape(name)}\b\s*(?:=.*)?\.(?:to|cuda|xpu|mps)\("
                made = re.search(rf"{re.escape(name)}\s*=[^=]", self.source.text)
                if made and not re.search(moved, self.source.text):
                    return (
                        f"delete the line, or move `{name}` there as well, which gets it and which nothing here moves"
                    )
        return ""

    def _help(self, site: Transfer, name: str, call: str) -> str:
        owner, moved = _parameters_of(site), call.replace(name, f"{name}.data", 1)
        itself = owner == "self" and site.scope.function.rpartition(".")[2] == site.spelled
        if owner and (itself or _differs_by_round(site)):
            # here the module is being moved, and would ask itself again, or each of its parameters is treated apart
            return f"move its data, which keeps the parameter or the buffer itself: `{name}.data = {moved}`"
        if owner:
            verb = "move" if site.target is not None else "convert"
            return f"{verb} the module, which {verb}s its parameters in place: `{call.replace(name, owner, 1)}`"
        if site.value.grad in _LEAVES:
            return f"move its data, so that it stays what collects the gradients: `{name}.data = {moved}`"
        if _of_caller(site):
            return (
                "delete the line where the callers move it, as those of a module do; "
                f"assigned, `{name} = {call}` takes the input of each replica of `nn.DataParallel` to one device"
            )
        return f"assign the result: `{name} = {call}`; or delete the line, if all works as it is"

    def _fix(self, site: Transfer, name: str) -> Fix | None:
        kept = site.value.grad in _LEAVES or _parameters_of(site) or not _assignable(site) or _of_caller(site)
        call, found = self.source.cst(site.node), statement_of(self.source, site.node)
        # a statement begins and ends with its brackets, an expression within them
        alone = isinstance(found, ast.Expr) and self.source.span(found) == self.source.span(site.node)
        if kept or call is None or not alone:
            return None
        edit = self.replace(site.node, f"{self.source.segment(site.value.node)} = {edits.code(call)}")
        return edits.fix_of(f"Assign the result to `{name}`", edit)


def _carries(value: ast.expr, held: set[str]) -> bool:
    """Whether an expression is made of one of some tensors by torch alone, and is where that is."""
    for part in walk(value):
        if isinstance(part, ast.Attribute) and part.attr in _TO_THE_HOST:
            return False
        if isinstance(part, ast.Constant) and part.value == "cpu":
            return False
        if isinstance(part, ast.Call):
            made_of = receiver(part)
            # a module may be elsewhere, and raise as it is
            if not called(part).startswith("torch.") and (made_of is None or held.isdisjoint(inside(made_of))):
                return False
    return not held.isdisjoint(inside(value))


def _is_like(made: ast.expr) -> TypeGuard[ast.Call]:
    """Whether something is made like another, and where that is."""
    if not isinstance(made, ast.Call) or not made.args or not re.fullmatch(r"torch\.\w+_like", called(made)):
        return False
    return all(word.arg not in ("device", None) for word in made.keywords)


def _end(site: Transfer) -> int:
    """The row up to which something comes before: in a loop, what comes later does as well."""
    return getattr(site.node, "lineno", 0) if site.scope.loop is None else sys.maxsize


def _asked(site: Transfer) -> dict[str, str]:
    """The arguments of a call that asks for a type, for a device or for both; empty where it asks for more."""
    call = site.node
    if not isinstance(call, ast.Call) or site.spelled != "to":
        return {}
    places = ("device", "dtype") if site.target is not None else ("dtype",)
    asked = [*zip(places, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
    known = len(call.args) <= len(places) and all(word in ("device", "dtype") for word, _ in asked)
    return {word or "": ast.unparse(value) for word, value in asked} if known else {}


def _of_caller(site: Transfer) -> bool:
    """Whether it is an argument of a module's method, and goes where the module was told once."""
    told = site.target_node is not None and bool(of_self(site.target_node))
    return told and site.scope.module and site.value.device.role is Role.INPUT


def _to_one_after_another(site: Transfer) -> bool:
    """Whether a loop copies one tensor to each of its devices, and does nothing else with it."""
    loop, receiver_names = site.scope.loop, inside(site.value.node)
    if not isinstance(loop, ast.For) or site.target_node is None:
        return False
    counted = inside(loop.target)
    read = [node for node in walk(loop) if isinstance(node, ast.Name) and node.id in receiver_names]
    alone = len(read) == len(receiver_names)
    return alone and not counted & receiver_names and bool(counted & inside(site.target_node))


def _assignable(site: Transfer) -> bool:
    """Whether the receiver is a name, or an attribute which is not known, or likely, to be a registered parameter."""
    node = site.value.node
    while isinstance(node, ast.Attribute):
        if node is site.value.node and node.attr in _REGISTERED:
            return False
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    own = isinstance(site.value.node, ast.Attribute) and node.id == "self" and site.scope.module
    return not own or site.value.attribute is not None


def _parameters_of(site: Transfer) -> str:
    """The module through whose parameters the loop around the site runs, empty where it is no such loop."""
    loop = site.scope.loop
    if not isinstance(loop, ast.For) or site.value.text not in inside(loop.target):
        return ""
    # what a state dict holds is the memory of the parameters: another tensor under the name is none of them
    of_state = method_of(loop.iter) in _VALUES
    call = receiver(loop.iter) if of_state else loop.iter
    owner = receiver(call) if method_of(call) in ({"state_dict"} if of_state else _PARAMETERS) else None
    return "" if owner is None else ast.unparse(owner)


def _words(made: ast.expr, created: set[ast.AST]) -> dict[str, str]:
    """What a creation is told by name; if it is put on a device at once, not where."""
    placed = isinstance(made, ast.Call) and method_of(made) == "to" and re.search(_PLACE, ast.unparse(made)) is not None
    inner = receiver(made) if placed else made if made in created else None
    words = inner.keywords if isinstance(inner, ast.Call) and called(inner).startswith("torch.") else []
    return {word.arg or "": ast.unparse(word.value) for word in words if not placed or word.arg != "device"}


def _differs_by_round(site: Transfer) -> bool:
    """Whether what a call asks for is chosen in each round of the loop around it."""
    loop, call = site.scope.loop, site.node
    asked = inside(*call.args, *(word.value for word in call.keywords)) if isinstance(call, ast.Call) else set()
    return loop is not None and not asked.isdisjoint(stores(loop))


def _is_bound_by_loop(site: Transfer) -> bool:
    """Whether it is what the loop around takes in each round."""
    loop, node = site.scope.loop, site.value.node
    return isinstance(loop, ast.For) and isinstance(node, ast.Name) and node.id in inside(loop.target)
