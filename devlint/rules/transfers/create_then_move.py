"""DVL203: a tensor created on the CPU, only to be copied to the device."""

from __future__ import annotations

import ast
import math
import re
from functools import lru_cache

from devlint.device import UNKNOWN
from devlint.finding import OF_RULE
from devlint.flow.catalog import distributions
from devlint.flow.catalog.concepts import DEFAULT_DTYPE
from devlint.flow.syntax.names import called
from devlint.flow.syntax.nodes import holds
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import (
    around,
    builds_no_graph,
    earlier,
    function_at,
    is_compiled,
    later,
    later_with,
    names_in,
    receiver,
    statement_around,
    statement_of,
    targets_of,
    way_to,
)
from devlint.rules.code.control_flow import runs_in_forward, stands_at
from devlint.rules.code.device_candidates import device_instead_of_cuda
from devlint.rules.code.edits import fix_of, in_test, measures, quoted, with_arguments
from devlint.rules.transfers.creating import HANDFUL, LEGACY, creating, made_beside, reads_the_host
from devlint.rules.transfers.destination import destination, follows_the_host, is_like_another, target_of
from devlint.sites.base import Creation, Step
from devlint.sites.transfers import ArrayCopy, IndexCopy, Transfer
from devlint.source.syntax import walk

_STAGED = frozenset({"pin_memory", "requires_grad", "out"})
"""Arguments for which a creation on the CPU is meant, or with which another rule is concerned."""

_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)
_SIZES = (ast.List, ast.Tuple)
_OF_SIZES = frozenset({"zeros", "ones", "empty", "full"})
"""Functions that are given nothing but sizes, or sizes first."""
_FLAT = frozenset({"arange", "eye", "linspace", "logspace", "range"})
"""Functions that make a vector or a matrix."""
_NO_DIMENSION = r"\(\)|\[\]|(?:torch\.)?Size\((?:\[\]|\(\))?\)"
_ALIKE = ("type_as", "type")
"""The moves that go by another tensor, and take its type as well."""
_DRAWS = r"rand\w*|normal|bernoulli|multinomial|poisson"
"""Functions that draw random numbers."""
_NAMED = r"[A-Za-z_][\w.]*"
_LACKED = re.compile(
    r"not hasattr\((self), '(\w+)'\)|\b(?:(self)\.)?(\w+) is None|not in (self)\.(\w+)"
    r"|\blen\((?:(self)\.)?(\w+)\) == 0|\bnot (?:(self)\.)?(\w+)\Z"
)
_HAD = re.compile(
    r"(?<!not )\bhasattr\((self), '(\w+)'\)|\b(?:(self)\.)?(\w+) is not None|(?<!not )\bin (self)\.(\w+)"
    r"|\A(?:(self)\.)(\w+)\Z"
)
_SEED = r"^(?:torch\.)?(?:manual_seed|seed_everything|set_seed)$"


class CreateThenMove(Rule):
    """A tensor is created on the CPU, only to be copied to the device at once.

    ## What it does
    Reports `torch.zeros(n).to(device)`, `torch.rand(n).cuda()` and the like: a factory call without `device=` whose
    result is moved in the same expression, or a few statements later without having been read on the CPU, be it made on
    each side of a branch. It is told in a loop, and where the `forward` of a module, or a step, comes to it (but
    for methods other than `forward` under `@torch.no_grad()`). Who selects the rule is told of it elsewhere and in
    functions that measure; where NumPy makes an array of numbers alone, such as `np.triu(np.ones((n, n)))`, and
    torch a tensor of that, be it on the device at once; where `torch.zeros_like(x)` follows `x` and is moved
    elsewhere; and where the index of a tensor is made so, `x[torch.arange(n), labels]`, which torch copies to `x`
    in the forward pass, and in the backward pass once more.

    ## Why it matters
    The host fills the memory and waits until all of it is copied, where one kernel on the device would do both.

    ## Example
    ```python
    def train(loader, generator, device):
        for images in loader:
            start = torch.zeros(64, 100).to(device)
            generator(start).sum().backward()
    ```

    ## Use instead
    ```python
    def train(loader, generator, device):
        for images in loader:
            start = torch.zeros(64, 100, device=device)
            generator(start).sum().backward()
    ```

    ## When it stays silent
    - It has at most four elements, `torch.zeros(1)` or `torch.ones(2, 2)`, or nothing shows that it happens again and
      again, as in a loop, a step of training or the methods of a module; it is kept from its first use on, under a test
      that it is not there yet, or in the state of an optimizer, or registered as a buffer; the function is compiled
      with `torch.compile`, which makes it on the device by itself; or they are random numbers, of which the device
      draws others from the same seed: then it is a hint for those who select the rule. So is `.type_as(x)` in a module,
      which follows `x` in a trace of it, where `device=x.device` becomes a constant.
    - A run tells it once, as a hint, but for those who select the rule: they are warned of what costs each step.
    - All that a run has found of it are vectors and matrices, and fewer than five: `torch.arange(n).to(device)` costs
      little by itself. They are for those who select the rule.
    - Nobody reads the result before its name stands for something else.
    - The tensor is read, written to or kept on the CPU before the move, or the code asks for the CPU: `device="cpu"`.
    - Random numbers are drawn after a `torch.manual_seed` in the same block: on the CPU they are the same on every
      machine.
    - A distribution draws them, `Normal(0, 1).sample(size)`, which does so where its parameters are.
    - `generator=` is given, for which the numbers are drawn on the CPU, unless the function takes any generator from
      its caller: then a hint, since a generator of the accelerator makes the call raise.
    - `torch.tensor([1.0, 2.0])`, `torch.FloatTensor([1.0, 2.0])`, `torch.from_numpy(array)` and their like read values
      of the host, which are copied in any case: with `device=`, torch builds on the CPU and copies, too.
    - `pin_memory=True`, which prepares a copy; `requires_grad=True`, which DVL106 reports.
    - An index is drawn, `x[torch.randperm(n)]`, or becomes a mask, `torch.arange(n) < k`, which is to be waited for
      where it is on an accelerator; and what is indexed is an argument of a function that no module calls.
    - Where the tensor goes is not known, or is the CPU, as the device of an item of a loop is that stays where it is
      while others beside it are moved.

    ## Fix safety
    Safe where the values are the same on every device: `zeros`, `ones`, `full`, `empty`, `eye`, `arange` of whole
    numbers. Unsafe for random numbers, which the device draws from a stream of its own, for `linspace` and `arange` of
    fractions, whose last digit may differ, for `expand` and columns, which the copy laid out anew, and for the
    constructors by type, such as `torch.FloatTensor`, which take no accelerator and become `torch.tensor(...)` or
    `torch.empty(...)`.

    ## References
    - [Create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """

    code = "DVL203"
    severity = Severity.INFO
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    proof = proof.Traces(left=(proof.UPLOAD, proof.MOVE), confirm=(proof.UPLOAD,), contradict=(proof.ONLY_IN_PLACE,))

    def judge(self, site: Transfer | IndexCopy | ArrayCopy) -> Reports:
        """A report where the host makes what only the device uses."""
        if isinstance(site, ArrayCopy):
            yield _converting(site)
            return
        if isinstance(site, IndexCopy):
            yield self._selecting(site)
            return
        made = site.creation
        if made is None or site.discarded or (made.like and site.value.device.same(site.target or UNKNOWN)):
            return
        ways = (made, *made.others)
        if any(way.generator == "else" for way in ways):
            return
        together = all(holds(site.node, way.node) for way in ways)
        if site.invariant and together:
            # the same values each time, of which DVL202 tells
            return
        meant = any(_needed(way) or self._seeded(way) or self._of_a_list(way) for way in ways)
        if meant or not _goes_away(site) or follows_the_host(self.source, site):
            return
        if self._overwritten(site):
            return
        costs = self._costs(site, made)
        yield Report(
            _message(made, site, destination(self.source, site)),
            label="copies what was made for it" if not together else f"made {_where(made)}, and copied",
            severity=Severity.WARNING if costs else Severity.INFO,
            steps=() if together else tuple(Step(way.node, f"created {_where(way)} here") for way in ways),
            help=_advice(made, self._spelled(site) if together else "...", together and made_beside(site, made)),
            fix=creating(self.source, site, made),
            asked=self._seldom(site, made) or not costs,
            minor=all(map(_is_flat, ways)),
            design=OF_RULE.format(self.code),
        )

    def _selecting(self, site: IndexCopy) -> Report:
        """A hint at an index that torch copies to what is indexed."""
        made = site.creation
        together = holds(site.node, made.node)
        goal = f"{site.value.text}.device" if re.fullmatch(_NAMED, site.value.text) else ""
        told = goal and stands_at(self.source, goal, made.node)
        edit = with_arguments(self.source, made.node, device=goal) if told else None
        return Report(
            f"`{made.function}` creates an index on the CPU, which each use copies to "
            + (f"`{goal}`" if goal else "the device of what it indexes"),
            label="made on the CPU, and copied" if together else "copied to what it indexes",
            severity=Severity.INFO,
            steps=() if together else (Step(made.node, "created on the CPU here"),),
            help=f"create it there: `{made.function}(..., device={goal if edit is not None else '...'})`",
            fix=fix_of(f"Create with `device={goal}`", edit),
            asked=True,
        )

    def _spelled(self, site: Transfer) -> str:
        """The device that the move names, as it may be named where the tensor is created."""
        text = target_of(self.source, site)
        if text and is_like_another(site):
            # what is computed with in between may have to stay of its type up to there
            whole = site.creation is not None and receiver(site.node) is site.creation.node
            return f"{text}.device, dtype={text}.dtype" if whole else f"{text}.device"
        literal = site.target_node is None or isinstance(site.target_node, ast.Constant)
        text = text or (device_instead_of_cuda(self.source, site.node, site.scope) if literal else "")
        return text if site.plain and text else "..."

    def _seeded(self, made: Creation) -> bool:
        """Whether torch is seeded for what is drawn: on the CPU, the numbers are the same on every machine."""
        if not re.fullmatch(_DRAWS, made.function.rpartition(".")[2]):
            return False
        here = statement_around(self.source, made.node) or made.node
        before = [node.value for node in earlier(self.source, here) if isinstance(node, ast.Expr)]
        return any(isinstance(call, ast.Call) and re.search(_SEED, ast.unparse(call.func)) for call in before)

    def _of_a_list(self, made: Creation) -> bool:
        """Whether a constructor by type gets what the function takes for a list: values of the host, and no size."""
        given = made.node.args[0] if _by_type(made) else None
        if not isinstance(given, (ast.Name, ast.Attribute)):
            return False
        text, inside = ast.unparse(given), walk(around(self.source, made.node))
        calls = (part for part in inside if isinstance(part, ast.Call) and part.args)
        asked = (call.args[0] for call in calls if ast.unparse(call.func) == "len")
        items = (part.value for part in inside if isinstance(part, ast.Subscript))
        loops = (part.iter for part in inside if isinstance(part, (ast.For, ast.comprehension)))
        return any(ast.unparse(node) == text for nodes in (asked, items, loops) for node in nodes)

    def _overwritten(self, site: Transfer) -> bool:
        """Whether nobody reads the name that the result gets before it stands for something else."""
        statement = statement_of(self.source, site.node)
        targets = targets_of(statement)
        if statement is None or len(targets) != 1 or not targets[0].isidentifier():
            return False
        uses = names_in(around(self.source, site.node)).get(targets[0], [])
        uses = [name for name in uses if name.lineno > (statement.end_lineno or 0)]
        other = later_with(self.source, statement, uses[0]) if uses else None
        if other is None or targets != targets_of(other):
            return False
        return sum(name.lineno <= (other.end_lineno or 0) for name in uses) == 1

    def _seldom(self, site: Transfer, made: Creation) -> bool:
        """Whether nothing shows that it happens again and again, or the numbers would be others on the device."""
        if any(re.fullmatch(_DRAWS, way.function.rpartition(".")[2]) for way in (made, *made.others)):
            return True
        if site.scope.module and site.spelled in _ALIKE:
            # it follows the other tensor at run time even in a trace of the module
            return True
        if is_compiled(function_at(self.source, site.node)):
            # the compiler makes it on the device by itself
            return True
        if all(map(_is_handful, (made, *made.others))):
            # a few numbers, which are not copied sooner than they are made
            return True
        again = site.scope.step or (site.scope.module and site.scope.function != "__init__") or site.repeated
        return not again or self._kept(site)

    def _costs(self, site: Transfer, made: Creation) -> bool:
        """Whether the copy is avoidable, and happens again and again."""
        name = made.function.rpartition(".")[2]
        in_module = site.scope.module and runs_in_forward(self.source, site.node)
        often = site.repeated or (in_module and not self._is_for_evaluation(site))
        often = often and not site.scope.sometimes and not self._kept(site)
        alike = name.islower() and not made.array and not made.like
        drawn = any(way.generator for way in (made, *made.others))
        avoidable = site.spelled not in _ALIKE and alike and not made.helper and not drawn
        return often and avoidable and not measures(site.scope) and not in_test(self.source, site.scope)

    def _is_for_evaluation(self, site: Transfer) -> bool:
        """Whether it is in a method that no training step calls: one that builds no graph."""
        decorators = getattr(function_at(self.source, site.node), "decorator_list", ())
        return site.scope.function != "forward" and any(map(builds_no_graph, decorators))

    def _kept(self, site: Transfer) -> bool:
        """Whether the copy is made on first use only: under a test for what is then kept under that name."""
        looped = False
        for outer, inner in way_to(self.source, site.node):
            looped = looped or isinstance(outer, (ast.For, ast.While))
            if isinstance(outer, ast.If):
                missing = inner in outer.body
                names = _asked(_LACKED if missing else _HAD, outer, looped)
                if any(_keeps(outer.body if missing else outer.orelse, name) for name in names):
                    return True
            if isinstance(inner, ast.stmt) and self._left_before(inner):
                return True
        function = function_at(self.source, site.node)
        # whoever registers a buffer does not do so in each step
        return site.scope.function != "forward" and function is not None and _registers(function)

    def _left_before(self, statement: ast.stmt) -> bool:
        """Whether the function is left in front of a statement if it has been there: what shows that is kept then."""
        guards = (node for node in earlier(self.source, statement) if isinstance(node, ast.If) and not node.orelse)
        names = (name for node in guards if isinstance(node.body[-1], ast.Return) for name in _asked(_HAD, node, False))
        rest = [statement, *later(self.source, statement)]
        return any(_keeps(rest, name) for name in names)


def _converting(site: ArrayCopy) -> Report:
    """A hint at an array of NumPy that is made for a tensor on a device."""
    made = site.creation
    together = holds(site.node, made.node)
    return Report(
        f"`{made.function}` makes an array on the CPU, only for `{site.function}` to copy it to {site.target}",
        label="copies what was made for it" if not together else "made on the CPU, and copied",
        severity=Severity.INFO,
        steps=() if together else (Step(made.node, "made on the CPU here"),),
        help=_advice(made, "...", False),
        asked=True,
    )


def _asked(pattern: re.Pattern[str], node: ast.If, looped: bool) -> list[str]:
    """The names that a condition asks for: a local one keeps what it has from one round of a loop to the next."""
    found = map(_words, pattern.finditer(ast.unparse(node.test)))
    return [words[-1] for words in found if looped or len(words) > 1]


@lru_cache(maxsize=4)
def _registers(function: ast.AST) -> bool:
    """Whether a function registers a buffer of its own object."""
    return any(called(node) == "self.register_buffer" for node in walk(function))


def _words(match: re.Match[str]) -> list[str]:
    return [word for word in match.groups() if word]


def _keeps(block: list[ast.stmt], name: str) -> bool:
    """Whether a block gives a name or an attribute a value, or something in it."""
    for node in (node for statement in block for node in walk(statement)):
        if isinstance(node, ast.Call):
            named = any(isinstance(part, ast.Constant) and part.value == name for part in node.args)
        else:
            stored = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
            target = node.value if isinstance(node, ast.Subscript) else node
            named = stored and isinstance(target, ast.Attribute) and target.attr == name
            named = named or (stored and isinstance(target, ast.Name) and target.id == name)
            named = named or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        if named:
            return True
    return False


def _where(made: Creation) -> str:
    """Where a creation makes a tensor."""
    return f"where {quoted(made.like, 'the other')} is" if made.like else "on the CPU"


def _message(made: Creation, site: Transfer, goal: str) -> str:
    name = made.function
    if made.generator:
        return f"`{name}` draws on the CPU, so it raises for a generator of the accelerator, and copies for none"
    if made.like:
        return f"`{name}` creates {_where(made)}, only to be copied to {goal}"
    if _by_type(made):
        return f"`{name}` builds on the CPU, and `.{site.spelled}()` moves the result to {goal}"
    inside = f", in `{made.helper}`," if made.helper else ""
    return f"`{name}` creates on the CPU{inside} only to be copied to {goal}"


def _advice(made: Creation, device: str, beside: bool) -> str:
    name = made.function
    if made.others:
        return "create it there, on every path: with `device=...`"
    if made.array:
        return "make it there, with the functions of torch, which take `device=`"
    if made.generator:
        return "draw on the device of the generator where there is one, else on the target's"
    if made.helper:
        return f"hand the device over to `{made.helper}`, for `{name}(..., device=...)`"
    if not name.rpartition(".")[2].islower():
        # what makes the same as a constructor by type, and takes a device
        dtype = LEGACY.get(name.rpartition(".")[2], "")
        told = f"dtype={dtype}, device=..." if dtype not in ("", DEFAULT_DTYPE) else "device=..."
        other = f"`torch.empty(..., {told})` does, or `torch.tensor(..., {told})` for values"
        return f"`{name}` takes no accelerator: {other}"
    too = ", and what is made beside it too" if beside else ""
    return f"create it there: `{name}(..., device={device})`{too}"


def _goes_away(site: Transfer) -> bool:
    """Whether the move goes to a device which is not known to be the CPU."""
    if site.target is None:
        return False
    # whatever it belongs to, the device of something is one
    named = isinstance(site.target_node, ast.Attribute) and site.target_node.attr == "device"
    return site.target.accelerates() is not False if site.target.known else named


def _needed(made: Creation) -> bool:
    """Whether a creation reads values of the host, is drawn where its parameters are, or on the CPU for a purpose."""
    values = _by_type(made) and isinstance(made.node.args[0], _DISPLAYS)
    given = [keyword.value for keyword in made.node.keywords if keyword.arg in _STAGED]
    staged = any(not isinstance(value, ast.Constant) or bool(value.value) for value in given)
    drawn = made.function.startswith(distributions.ROOT)
    return values or staged or drawn or reads_the_host(made.function)


def _is_handful(made: Creation) -> bool:
    """Whether a creation says in its size that it makes a few elements: `torch.zeros(1)`, `torch.full((2, 2), x)`."""
    name = made.function.rpartition(".")[2]
    given = made.node.args[:1] if name == "full" else made.node.args
    if len(given) == 1 and re.fullmatch(_NO_DIMENSION, ast.unparse(given[0])):
        return True
    sizes = _sizes(made)
    known = [size.value for size in sizes if isinstance(size, ast.Constant) and isinstance(size.value, (int, float))]
    if not sizes or len(known) < len(sizes):
        return False
    return math.prod(known) <= HANDFUL if name in _OF_SIZES else set(known) == {1}


def _is_flat(made: Creation) -> bool:
    """Whether a creation makes a vector or a matrix, as far as it says its size, and not what has another's shape."""
    name = made.function.rpartition(".")[2]
    sizes = list(map(ast.unparse, _sizes(made)))
    shaped = any(re.search(r"\.shape\b(?!\[)", size) for size in sizes)
    return name in _FLAT or (name in _OF_SIZES and len(sizes) < 3 and not shaped)


def _sizes(made: Creation) -> list[ast.expr]:
    """What a creation is given for a size, one by one."""
    full = made.function.rpartition(".")[2] == "full"
    named = [keyword.value for keyword in made.node.keywords if keyword.arg == "size"]
    given = named or (made.node.args[:1] if full else made.node.args)
    return [part for one in given for part in (one.elts if isinstance(one, _SIZES) else (one,))]


def _by_type(made: Creation) -> bool:
    """Whether a constructor by type may be given values, as `torch.Tensor(values)`; several numbers are sizes."""
    return not made.function.rpartition(".")[2].islower() and len(made.node.args) == 1
