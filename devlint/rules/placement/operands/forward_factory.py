"""DVL103: a tensor created on the default device, which then meets an argument."""

from __future__ import annotations

import ast

from devlint.device import Kind, Role
from devlint.flow.catalog.creation import ASKS_FOR_TENSORS, FROM_VALUES, UNWRITTEN
from devlint.flow.syntax.nodes import holds, parameters
from devlint.rules.base import Applicability, Edit, Fix, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import (
    around,
    function_at,
    given,
    keyword_of,
    later,
    method_of,
    receiver,
    statement_of,
    targets_of,
    way_to,
)
from devlint.rules.code.control_flow import is_rebound, stands_at
from devlint.rules.code.device_owners import has_device, says_tensor
from devlint.rules.code.edits import as_written, fix_of, in_test, on_samples, shown, with_arguments
from devlint.rules.placement.operands.integer_matrices import multiplies_integers
from devlint.rules.placement.operands.legacy_constructors import in_constructor
from devlint.rules.placement.operands.meetings import (
    LISTED,
    MODULE,
    Meeting,
    beside,
    can_be_told,
    meetings,
    mere,
    takes_device,
)
from devlint.sites.base import Operand, Step
from devlint.sites.placement import COPYING, Forward, Hint, HintKind, Operation, OperationKind
from devlint.source.file_kinds import is_for_export
from devlint.source.syntax import walk
from devlint.source.tree import Source

_MET = ("the result meets", "meets", "this raises when that is an accelerator")
_WORDS = {
    OperationKind.ACCUMULATOR: (
        "the result takes in",
        "takes in",
        "each write copies to the CPU",
    ),
    OperationKind.INDEXED: (
        "the result is the index of a write into",
        "is the index of a write into",
        "each write copies the index there",
    ),
    HintKind.ALTERNATIVE: (
        "on another path its place is taken by",
        "stands beside",
        "what follows gets tensors of two devices",
    ),
    HintKind.ROW: (
        "the result is kept in one row with",
        "stands beside",
        "the rows' columns are joined later, on one device",
    ),
    HintKind.TOGETHER: (
        "the result goes into one call with",
        "goes into one call with",
        "functions of tensors raise when that is an accelerator",
    ),
    HintKind.REBUILT: (
        "the result is kept for the device of",
        "is kept for the device of",
        "where that is an accelerator, each call makes it anew, and never there",
    ),
    HintKind.SIBLING: (
        "the result is kept beside",
        "is kept beside",
        "what is taken from both is on two devices",
    ),
    HintKind.RETURNED: (
        "the result is returned for",
        "is returned for",
        "what comes next expects it where that is",
    ),
    HintKind.REPLACED: (
        "the result takes the place of the numbers of",
        "takes the place of the numbers of",
        "that is on the CPU from then on, wherever it was",
    ),
    HintKind.COLLECTIVE: ("the result goes as it is into", "goes into", "NCCL takes tensors of accelerators only"),
}
"""What happens to the new tensor, by the kind of operation or hint: said of it, of the place, and what comes of it."""
_WRITTEN_AT = ("the result is written at", "is written at", "each write copies the index to the CPU")
"""The same of a new tensor that is written through an index."""
_MULTIPLIED = "move what comes of it there, `.to({})`: CUDA multiplies no matrices of integers"


class ForwardFactoryWithoutDevice(Rule):
    """A tensor created on the default device meets a tensor that is wherever the caller keeps it.

    ## What it does
    Reports a factory call without `device=` (`torch.zeros`, `torch.arange`, a module built on the fly) whose result
    meets an argument of the function, or a parameter or submodule of the module, that nobody here placed. It is a hint
    in the methods of a module and in functions that place other tensors: where the argument is, its caller knows. In
    plain functions, and where less is certain, it is for those who select this rule by its code: seldom does such code
    say who calls it with what. So it is in tests, in methods beside the `forward` of modules that have neither
    parameters nor buffers, and where what comes of the meeting goes to a device at once, and not to where the
    argument is, `torch.cat([x, zeros]).to(device)`: whoever wrote that holds both to be on the CPU.
    So it is where the result takes the place of a cache that was not where the argument is,
    `if self.mask.device != x.device: self.mask = torch.zeros(n)`.
    A tensor that takes in others raises nothing, and may be for the host.
    A write `x[index] = value` raises nothing, since torch copies the index to where `x` is, each time: that one of the
    two was created so is for those who select the rule, too, and so is a tensor that `forward` makes in the size of its
    input and returns as it is, one that takes the place of the numbers of an argument or of what the class moves,
    `x.data = torch.zeros(n)`, and one that a method keeps beside three or more which the same function of torch makes
    with a `device=`.

    ## Why it matters
    A factory without `device=` creates on the CPU, while the arguments follow the module to the accelerator: the
    function works in every test on a CPU and raises on the first accelerator.

    ## Example
    ```python
    class Noise(nn.Module):
        def forward(self, x):
            noise = torch.randn(x.shape)
            return x.clamp(0, 1) + noise
    ```

    ## Use instead
    ```python
    class Noise(nn.Module):
        def forward(self, x):
            noise = torch.randn(x.shape, device=x.device)
            return x.clamp(0, 1) + noise
    ```

    ## When it stays silent
    - It is anything but the `forward` of a module, and only the caller knows where the argument is, perhaps on the CPU:
      who selects the rule is told.
    - The file has the training loop, and never names a device, or so it is with the whole project: it is for the CPU,
      and who selects the rule is told.
    - `device=` is given, or the tensor follows another one: `zeros_like`, `x.new_zeros`, `.to(x.device)`,
      `.type_as(x)`.
    - The result is 0-dim (and no bound of `torch.clamp`, which takes none from the CPU), or used for its shape, to
      read by index, on the CPU, or as `lengths` of `pack_padded_sequence`.
    - Who selects the rule is told where a module without parameters makes the argument itself, on the CPU, if it is
      left out: `if position is None: position = torch.arange(n)`.
    - Who selects the rule is told where a function returns nothing but a size of what comes of the new tensor, which is
      asked for while the module is built; and where a transform of samples, in a file that is called so
      (`transforms.py`, `datasets/`), meets its argument.
    - A loop puts something else in its place in the first round, `if i == 0: total = y`, before it is met.
    - The index of a write is made of values of the host for this write alone, or of what another function made; or
      DVL203 tells of the copy.
    - Results are collected on the CPU in a function that chose a device itself.
    - A default device is set: `torch.set_default_device`, `with torch.device(...)`.
    - The function moves its arguments to a device of its own; DVL101 tells about those that it forgot. The argument is
      moved only further down, `x = x.cuda()`, or is known to be on the CPU here, since the function asked `x.is_cuda`.

    ## Fix safety
    Adding `device=` is unsafe: random numbers are drawn from another generator on the accelerator, and everything
    else that the tensor meets has to be there too. What it was computed with on the way is told the device in the same
    fix. There is no fix for constructors without `device=` (`torch.FloatTensor`, `from_numpy`), nor for
    what a distribution of numbers draws, nor where `generator=` ties the call to the CPU, nor for integers of which the
    function makes a product of matrices, as only the CPU does, and none if that is so for anything that would have to
    come along. The device of an argument is named only if the code shows that to be a
    tensor: by its annotation, its attributes, or what it is given to.

    ## References
    - [CUDA semantics: device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code)
    """

    code = "DVL103"
    severity = Severity.INFO
    raising = True
    accelerated = True
    implied = True
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Forward | Operation | Hint) -> Reports:
        """One report per creation that meets a caller's tensor at this place."""
        # who calls a function that places nothing may have all on the CPU, and so may a module with nothing to place
        layer = site.scope.module and (not site.scope.stateless or site.scope.function == "forward")
        placing = layer or site.scope.device_aware
        tested = in_test(self.source, site.scope)
        for meeting in meetings(site):
            if meeting.creation is None or self._may_stay(meeting, meeting.creation, site):
                continue
            happens, verb, raises = _words(meeting, site)
            target = self._target(site, meeting, meeting.creation)
            listed = isinstance(meeting.other.node, ast.Name) and _is_appended_to(
                around(self.source, site.node), meeting.other.node.id
            )
            target = as_written(self.source, target)
            creations = (meeting.creation, *(node for _, node in meeting.stray.blended))
            apart = bool(target) and any(multiplies_integers(self.source, node) for node in creations)
            made = f"{shown(meeting.stray.factory)} creates on the CPU, but {happens}"
            if meeting.stray.role == MODULE:
                made = f"{shown(meeting.stray.text)} is made on the CPU, but {verb}"
            mild = tested or not (placing or meeting.other.device.role is not Role.INPUT)
            mild = mild or meeting.severity is Severity.INFO or self._moves_on(site.node, meeting.other)
            yield Report(
                f"{made} {_party(meeting.other)}; {raises}",
                node=meeting.creation,
                label="created on the default device, the CPU",
                severity=None if mild else Severity.WARNING,
                steps=(Step(site.node, f"{verb} {shown(meeting.other.text)} here"),),
                help=_MULTIPLIED.format(target) if apart else _advice(meeting, target, in_list=listed),
                fix=None if apart else self._fix(meeting, target),
                # what else a function places shows what it can do, and not who calls it with what
                asked=mild
                or meeting.partly
                # where it is filled from arrays as well, the CPU is the place for it
                or getattr(site, "kind", None) is OperationKind.ACCUMULATOR
                or (not (layer and site.scope.function == "forward") and meeting.other.device.role is Role.INPUT)
                or (meeting.other.device.role is Role.INPUT and on_samples(self.source, site.scope))
                or (mere(meeting.other.device) and is_for_export(self.source.filename))
                or (site.scope.stateless and _may_be_made_here(meeting.other))
                or self._stands_in(meeting.creation)
                or self._measures(meeting.creation)
                or meeting.stray.factory in UNWRITTEN,
                assumed=mere(meeting.other.device),
            )

    def _target(self, site: Forward | Operation | Hint, meeting: Meeting, made: ast.AST) -> str:
        """An expression for where the other operand is, which says so where the tensor is made; empty for none."""
        other = meeting.other
        if function_at(self.source, made) is not function_at(self.source, site.node):
            # what the place of the meeting knows of devices is known at the creation only if both are in one function
            return ""
        target = _caller(self.source, site) or beside(other, self.source, site)
        named = other.node.id if isinstance(other.node, ast.Name) else ""
        if not target and named and other.role != LISTED:
            # of what is taken from a list, only the part has a device
            target = f"{named}.device" if has_device(self.source, site.node, named) else ""
        if target == f"{named}.device" and other.device.role is not Role.INPUT:
            # what the name stands for here is not what it stood for before
            target = "" if is_rebound(self.source, named, made, site.node) else target
        if target and not stands_at(self.source, target, made) and other.device.role is Role.INPUT:
            # what may be None there, or comes later, is beside another argument as a rule
            target = self._of_argument(made) if site.scope.module else ""
        return target if target and stands_at(self.source, target, made) else ""

    def _of_argument(self, made: ast.AST) -> str:
        """The device of the first argument that is shown to be a tensor, and surely is there; empty for none."""
        function = function_at(self.source, made)
        arguments = getattr(function, "args", None)
        if function is None or not isinstance(arguments, ast.arguments):
            return ""
        given = parameters(arguments)[1:]
        given = [one for one in given if one.annotation is None or says_tensor(function, one.arg)]
        alone = (
            one for one in given if one.annotation is None or isinstance(one.annotation, (ast.Name, ast.Attribute))
        )
        known = (f"{one.arg}.device" for one in alone if has_device(self.source, made, one.arg))
        return next((text for text in known if stands_at(self.source, text, made)), "")

    def _is_replaced_first(self, made: ast.AST, met: ast.AST) -> bool:
        """Whether the first round of a loop puts something else in the place of a tensor, before it is met."""
        statement = statement_of(self.source, made)
        named = targets_of(statement)
        if statement is None or len(named) != 1 or function_at(self.source, made) is not function_at(self.source, met):
            return False
        behind = range(statement.lineno + 1, getattr(met, "lineno", 0) + 1)
        loops = [part for part in walk(around(self.source, made)) if isinstance(part, ast.For)]
        inside = (part for loop in loops if loop.lineno in behind for part in walk(loop) if isinstance(part, ast.If))
        return any(_is_first(part.test) and _assigns(part, named[0]) for part in inside)

    def _is_mask(self, made: ast.AST) -> bool:
        """Whether what is made is of truth values."""
        for outer, _ in reversed(way_to(self.source, made)):
            if isinstance(outer, ast.Attribute) and outer.attr == "bool":
                return True
            if not isinstance(outer, (ast.Attribute, ast.Call)):
                break
        dtype = keyword_of(made, "dtype") if isinstance(made, ast.Call) else None
        return dtype is not None and ast.unparse(dtype).rpartition(".")[2] == "bool"

    def _may_stay(self, meeting: Meeting, made: ast.AST, site: Forward | Operation | Hint) -> bool:
        """Whether it is an index that comes from the host in any case: for one write, or with what is not made here."""
        stray = meeting.stray
        if self._is_replaced_first(made, site.node):
            return True
        if isinstance(site, Forward):
            return self._is_mask(made)
        if not isinstance(site, Operation) or site.kind is not OperationKind.INDEXED or stray is site.operands[0]:
            return False
        here = around(self.source, site.node)
        if any(around(self.source, node) is not here for _, node in stray.blended):
            return True
        values = stray.factory in FROM_VALUES or not takes_device(stray.factory)
        return values and holds(site.scope.loop or here, made)

    def _stands_in(self, made: ast.AST) -> bool:
        """Whether a tensor is made of an argument that is none."""
        targets = set(targets_of(statement_of(self.source, made)))
        tests = (outer.test for outer, inner in way_to(self.source, made) if isinstance(outer, ast.If))
        asked = [part for test in tests for part in walk(test) if isinstance(part, ast.Call)]
        asked = [call for call in asked if ast.unparse(call.func) in ASKS_FOR_TENSORS and call.args]
        return any(ast.unparse(call.args[0]) in targets for call in asked)

    def _measures(self, made: ast.AST) -> bool:
        """Whether a tensor is made to see how large what comes of it is, and the function returns nothing else."""
        function = function_at(self.source, made)
        inside = walk(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        results = [part.value for part in inside if isinstance(part, ast.Return)]
        return bool(results) and all(value is not None and _is_size(value) for value in results)

    def _moves_on(self, node: ast.AST, other: Operand) -> bool:
        """Whether the result goes to a device at once, as of what is on the CPU, and not to where ``other`` is."""
        outer = node
        for parent, inner in reversed(way_to(self.source, node)):
            called = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is inner)
            if not called:
                break
            if _goes(parent, other):
                return True
            outer = parent
        statement = statement_of(self.source, outer)
        after = later(self.source, statement)[:1] if statement is not None else ()
        names = targets_of(statement)
        value = after[0].value if after and isinstance(after[0], ast.Assign) else None
        return len(names) == 1 and _goes(value, other) and ast.unparse(receiver(value) or ast.Pass()) == names[0]

    def _fix(self, meeting: Meeting, target: str) -> Fix | None:
        if meeting.creation is None or not target or meeting.stray.role == MODULE:
            return None
        here = function_at(self.source, meeting.creation)
        edits: list[Edit | None] = []
        for factory, node in ((meeting.stray.factory, meeting.creation), *meeting.stray.blended):
            told = can_be_told(factory, node) and function_at(self.source, node) is here
            stands = told and stands_at(self.source, target, node)
            edits.append(with_arguments(self.source, node, device=target) if stands else None)
        return fix_of(f"Add `device={target}`", *edits)


_SIZES = frozenset({"size", "numel", "int", "tuple", "list", "len", "prod"})
"""Functions and methods of which a size comes, or that take one."""


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is a size of a tensor: a part of its shape, or the number of its elements."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts) and all(map(_is_size, node.elts))
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) or _is_size(node.right)
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Attribute) and node.attr == "shape"
    name = method_of(node) or ast.unparse(node.func)
    return name in ("size", "numel") or (name in _SIZES and any(map(_is_size, node.args)))


def _is_first(test: ast.expr) -> bool:
    """Whether a test holds in the first round of a loop: of its number, which is counted from 0."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Name)
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    return isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 0


def _assigns(branch: ast.If, name: str) -> bool:
    """Whether a branch gives a name something that is not made of what it held."""
    given = [part for part in branch.body if isinstance(part, ast.Assign) and name in targets_of(part)]
    return any(name not in {part.id for part in walk(one.value) if isinstance(part, ast.Name)} for one in given)


def _is_appended_to(function: ast.AST, name: str) -> bool:
    """Whether a function appends to what has a name, which a tensor does not let anybody."""
    calls = (node for node in walk(function) if isinstance(node, ast.Call) and method_of(node) == "append")
    return any(ast.unparse(receiver(call) or call) == name for call in calls)


def _may_be_made_here(other: Operand) -> bool:
    """Whether an argument gives way, where it is left out, to what the function makes on the CPU, as its default."""
    leaves = other.device.leaves()
    made = any(leaf.kind is Kind.CPU for leaf in leaves)
    return made and all(leaf.role is Role.INPUT for leaf in leaves if leaf.kind is not Kind.CPU)


def _words(meeting: Meeting, site: Forward | Operation | Hint) -> tuple[str, str, str]:
    """What happens to the new tensor, in words."""
    happens, verb, raises = _MET if isinstance(site, Forward) else _WORDS.get(site.kind, _MET)
    if isinstance(site, Operation) and site.kind in COPYING and meeting.stray is site.operands[0]:
        happens, verb, raises = _WRITTEN_AT if site.kind is OperationKind.INDEXED else (happens, verb, raises)
        raises += "" if site.sent else ", and the result stays there"
    return happens, verb, raises


def _goes(node: ast.AST | None, other: Operand) -> bool:
    """Whether a node is a call of `.cuda()`, or of `.to()` with a device that is not that of ``other``."""
    arguments = given(node) if isinstance(node, ast.Call) else []
    if method_of(node) != "to" or not arguments:
        return method_of(node) == "cuda"
    target = ast.unparse(arguments[0])
    places = (other.text, other.device.text)
    near = any(place and (target == place or target.startswith(f"{place}.")) for place in places)
    return not near and (target.startswith("torch.device(") or not target.startswith("torch."))


def _party(operand: Operand) -> str:
    if operand.device.text == "NCCL":
        return shown(operand.text)
    if operand.text == operand.device.text:
        return f"{shown(operand.text)}, which is where the caller keeps it"
    if not operand.device.known:
        return f"{shown(operand.text)}, which the network may have on an accelerator"
    return f"{shown(operand.text)}, which is on {operand.device}"


def _caller(source: Source, site: Forward | Operation | Hint) -> str:
    """The device of an argument that takes part; empty where none does."""
    if isinstance(site, Hint):
        operands: tuple[Operand, ...] = (site.stray, site.beside)
    else:
        operands = site.inputs if isinstance(site, Forward) else site.operands
    return next((beside(operand, source, site) for operand in operands if operand.device.role is Role.INPUT), "")


def _advice(meeting: Meeting, target: str, in_list: bool = False) -> str:
    """What to do about the creation; ``target`` is the device expression to use, empty where none is at hand.

    ``in_list`` says that the other operand is a list, which has no device, but things in it.
    """
    tensor = in_constructor(meeting, target)
    if tensor:
        return f"drop the constructor, which raises for a tensor that is on an accelerator: use `{tensor}`"
    if not target and meeting.other.device.role is Role.PLACE:
        # what is there may have a name in another function only, and the module has one everywhere
        return "create it on the module's device, which is that of an input or of a parameter"
    if not target:
        party = f"what else is in {shown(meeting.other.text)}" if in_list else shown(meeting.other.text)
        return f"create it on the device of {party}, handed over as an argument if need be"
    if meeting.stray.role != MODULE and can_be_told(meeting.stray.factory, meeting.creation):
        return f"create it there: `{meeting.stray.factory}(..., device={target})`"
    return f"move it there: `.to({target})`"
