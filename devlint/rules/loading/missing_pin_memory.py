"""DVL301: batches that are copied to an accelerator from pageable memory."""

from __future__ import annotations

import ast
import operator
from functools import lru_cache

from devlint.device import Kind
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.blocks import (
    around,
    assigned,
    evaluates,
    function_at,
    given,
    keyword_of,
    method_of,
    receiver,
    way_to,
)
from devlint.rules.code.edits import fix_of, with_arguments
from devlint.rules.loading.unpinnable import unpinnable
from devlint.rules.transfers.pinned import can_be_released, is_whole, reads_pinned, release, released_safely, root
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer
from devlint.source.file_kinds import is_example
from devlint.source.syntax import says_none, walk
from devlint.source.tree import Source

_PIN_MEMORY_POSITION = 7
_HERE = "set `pin_memory=True`, or `pin_memory=torch.cuda.is_available()` for machines without an accelerator"
_ELSEWHERE = "turn it on where that is chosen, in an option or a default: `pin_memory=True`"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CASTS = frozenset("float double half bfloat16 int long short byte bool char type type_as to".split())
"""Methods that copy on the host, unless the tensor has the dtype already."""


class MissingPinMemory(Rule):
    """The batches of a loader go to an accelerator from pageable memory.

    ## What it does
    Reports a `DataLoader` without `pin_memory` whose batches are moved to what may be an accelerator, at every step of
    a loop: as a hint, since what is won depends on the size of the batches; an audit, which has seen the copies, makes
    it a warning. Without worker processes (`num_workers` absent or 0) the loop itself pins: then only copies that ask
    for `non_blocking=True` count, as they do where the loader leaves the code that can be seen. For those who select
    the rule: loaders without workers or such copies, or where none are seen; code that is not seen to train with the
    batches, and examples, in `examples/` or `tutorials/`, whose data are small, but for such copies; a conversion on
    the host, `batch.float().to(device)`, which may leave the pinned memory; and `pin_memory=False`, a decision, where
    the batches are seen to be copied.

    Those who select the rule are told, too, where `pin_memory=True` pins nothing, since the `collate_fn` makes objects
    of a class without a method of that name.

    ## Why it matters
    A copy to the accelerator starts from page-locked memory. Out of ordinary, pageable memory the driver first
    copies every batch into a buffer of its own, and the copy cannot overlap with computation. With
    `pin_memory=True` a thread of the loader does that ahead of time.

    ## Example
    ```python
    def train(dataset, model, device):
        loader = DataLoader(dataset, batch_size=64, num_workers=4)
        for images, labels in loader:
            images = images.to(device)
            model(images)
    ```

    ## Use instead
    ```python
    def train(dataset, model, device):
        loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            model(images)
    ```

    ## When it stays silent
    - Where a condition is otherwise, the code makes the same loader with `pin_memory`: it has chosen.
    - `pin_memory` is given, whatever its value, or may be given through `**kwargs`; a literal `False` is pointed out
      only where the rule is selected.
    - The batches are on an accelerator already: pinning them would raise.
    - The batches go to `cpu` or `mps`, or are not moved in a loop; one batch that each round copies is DVL202's, and
      for one that is drawn alone, `next(iter(loader))`, pinning is not worth its thread.
    - The loader leaves the code that can be seen, in a file for TPUs, which uses `torch_xla`, or its samples are
      tensors, or a list, of which it is not known where they are.
    - It has no samples: `DataLoader([])`, which stands in for one.
    - The batches are objects of the program's own: a `collate_fn` that makes them, `batch_size=None`.
    - Who selects the rule is told where all that is copied is converted on the host before, or has gaps in memory,
      `x[:, :-1]`, which torch closes there first.
    - So is who selects the rule where the loader has no workers, and its data set is given the device that the batches
      go to, `DataLoader(Frames(device))`: what it computes there takes the time.
    - The default device of the file is an accelerator.

    ## Fix safety
    The fix adds `pin_memory=True`, and `non_blocking=True` to the copies that can then go on by themselves. The first
    changes no result where the batches are seen to be on the CPU, and no `collate_fn` decides what they are; a dataset
    of accelerator tensors cannot be pinned. The second is safe where the device is `cuda` or the CPU and the function
    does not write into the batch (see DVL204). The fix is safe where both are. On a machine without an accelerator
    pinning adds a warning; `pin_memory=torch.cuda.is_available()` does not.

    ## References
    - [Memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "DVL301"
    severity = Severity.INFO
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    observed = True
    proof = proof.Traces(left=(proof.LOADER,), confirm=(proof.PAGEABLE_BATCHES,), contradict=(proof.PINNED_BATCHES,))

    def judge(self, site: Load) -> Reports:
        """A report where the batches are copied in a loop, or may be in code that cannot be seen."""
        if site.pinned and site.measured is None and (kind := unpinnable(self.source, site.node)) is not None:
            yield Report(
                f"`pin_memory` pins nothing here: the batches are a `{kind.name}`, which has no `pin_memory()`",
                label="torch looks into tuples, lists and dicts alone",
                severity=Severity.INFO,
                steps=(Step(kind, "the class of the batches"),),
                help=f"give `{kind.name}` a method `pin_memory()` that pins its tensors and returns it",
                asked=True,
            )
        if site.custom_batches or site.batches.kind not in (Kind.CPU, Kind.UNKNOWN):
            return
        repeated = (move for move in site.moves if move.repeated and not self._of_one_batch(move))
        moves = [move for move in repeated if reads_pinned(move.target)]
        loader = site.loader.rpartition(".")[2]
        if _decided(site):
            asked = site.keywords.get("pin_memory")
            off = isinstance(asked, ast.Constant) and asked.value is False and site.measured is None
            if asked is not None and off and moves and not says_none(site.keywords.get("batch_size")):
                # perhaps with good reason: pinning can be measured to be slower
                target = moves[0].target
                yield Report(
                    f"the batches of this `{loader}` are copied to {target} at every step, and pinning is turned off",
                    label="copied from pageable memory",
                    severity=Severity.INFO,
                    steps=(Step(asked, "pinning is turned off here"), *_copies(moves)),
                    help="unless it was measured to be slower, set `pin_memory=True`" + _overlap(moves),
                    asked=True,
                )
            return
        if site.pinned or (not moves and (site.moves or not site.escapes or site.anywhere or site.scope.test)):
            return
        # the loaders of torch_xla make no use of pinned memory
        if not moves and any("torch_xla" in line for line in self.source.lines):
            return
        if _pinned_otherwise(self.source, site):
            return
        evaluated = bool(moves) and site.training is None and site.measured is None
        evaluated = evaluated and all(evaluates(self.source, move.node) for move in moves)
        alone = self._workers(site) == 0 and site.measured is None
        released = site.released or any(move.non_blocking for move in moves)
        converted = bool(moves) and site.measured is None and all(self._converted(move) for move in moves)
        told = released or (bool(moves) and not alone)
        busy = alone and self._works_there(site, moves)
        copied = f"are copied to {moves[0].target}" if moves else "may be copied to an accelerator"
        yield Report(
            f"the batches of this `{loader}` {copied} from pageable memory at every step",
            label=_said(site),
            # what is won depends on the size of the batches and on what else a step waits for, which an audit has seen;
            # an argument that the code takes from elsewhere may have been a decision
            severity=None if site.measured is None or not moves or site.open or site.given else Severity.WARNING,
            steps=_copies(moves),
            help=(_ELSEWHERE if site.given else _HERE) + _overlap(moves),
            # no evaluation waits for this, and what nobody sees copied may be another tensor by then
            asked=converted or evaluated or not told or (not released and self._is_idle(site)) or busy,
            fix=self._fix(site, moves),
            # loaders whose batches are copied at one place, as those of training and validation are one design
            cause=" ".join(str(self.source.span(move.node)) for move in moves),
        )

    def _is_idle(self, site: Load) -> bool:
        """Whether the copies cost little: nothing is trained with them, or an example does it, on data of a few MB."""
        return site.measured is None and (site.training is None or is_example(self.source.filename))

    def _workers(self, site: Load) -> int | None:
        """How many processes make the batches, ``None`` where that is not known; the default of an argument counts."""
        call, function = site.node, function_at(self.source, site.node)
        given = keyword_of(call, "num_workers") if isinstance(call, ast.Call) else None
        if not isinstance(given, ast.Name) or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return site.workers
        arguments = function.args
        placed = [*arguments.posonlyargs, *arguments.args]
        placed = [*placed[len(placed) - len(arguments.defaults) :], *arguments.kwonlyargs]
        pairs = zip(placed, (*arguments.defaults, *arguments.kw_defaults), strict=True)
        default = next((value for parameter, value in pairs if parameter.arg == given.id), None)
        number = default.value if isinstance(default, ast.Constant) else None
        # the default of none is for some caller to raise
        return number if isinstance(number, int) and number > 0 else site.workers

    def _works_there(self, site: Load, moves: list[Transfer]) -> bool:
        """Whether what makes the samples is told where the batches go: it uses the device itself, in this process."""
        targets = {ast.unparse(move.target_node) for move in moves if move.target_node is not None}
        first = site.node.args[:1] if isinstance(site.node, ast.Call) else []
        rest, seen = [*first, *filter(None, [site.keywords.get("dataset")])], set[str]()
        while rest:
            for part in walk(rest.pop()):
                if isinstance(part, ast.Call) and not targets.isdisjoint(map(ast.unparse, given(part))):
                    return True
                if isinstance(part, ast.Name) and part.id not in seen:
                    seen.add(part.id)
                    rest += [value for _, value in assigned(around(self.source, site.node)).get(part.id, ())]
        return False

    def _converted(self, move: Transfer) -> bool:
        """Whether the batch may be converted on the host, into memory of its own, before it is copied."""
        node: ast.AST | None = move.value.node
        row, seen = getattr(node, "lineno", 0), assigned(around(self.source, move.node))
        while isinstance(node, (ast.Name, ast.Subscript)) or method_of(node):
            if method_of(node) in _CASTS:
                return True
            if isinstance(node, ast.Subscript):
                if _parts_rows(node.slice):
                    return True
                node = node.value
            elif isinstance(node, ast.Name):
                before = (each for each in seen.get(node.id, ()) if each[0] < row)
                row, node = max(before, key=operator.itemgetter(0), default=(0, None))
            else:
                node = receiver(node)
        return False

    def _of_one_batch(self, move: Transfer) -> bool:
        """Whether it is one batch and no stream of them.

        One that is copied again and again had better be copied once: of that DVL202 tells. For one that is drawn alone,
        ``next(iter(loader))``, pinning starts a thread, and nothing is ready before it is asked for.
        """
        around_it = [outer for outer, _ in way_to(self.source, move.node)]
        loops = [outer for outer in around_it if isinstance(outer, _LOOPS)]
        named = root(move.value.node)
        bindings = assigned(around(self.source, move.node)).get(named, ())
        bound = (each for each in bindings if each[0] < getattr(move.value.node, "lineno", 0))
        _, drawn = max(bound, key=operator.itemgetter(0), default=(0, None))
        # its parts may be what a comprehension goes through, or a loop
        taken = [over.iter for outer in around_it for over in _goes_through(outer) if ast.unparse(over.target) == named]
        alone = any(ast.unparse(each).startswith("next(iter(") for each in (drawn, *taken) if each is not None)
        return alone or (move.invariant and len(loops) == 1)

    def _fix(self, site: Load, moves: list[Transfer]) -> Fix | None:
        if site.via:
            return None
        pinned = with_arguments(self.source, site.node, pin_memory="True")
        custom = "collate_fn" in site.keywords
        # what a collate_fn makes may be an object of the program's own, whose `.to()` takes a device alone
        moves = [move for move in moves if move.value.certain or not (custom and is_whole(move))]
        waiting = [move for move in moves if not move.non_blocking and can_be_released(move)]
        released = tuple(edit for move in waiting if (edit := release(self, move)) is not None)
        seen = site.batches.kind is Kind.CPU and not custom
        safe = seen and all(released_safely(self, move) for move in waiting)
        message = "Add `pin_memory=True`" + (" and `non_blocking=True`" if released else "")
        return fix_of(message, pinned, released, safe=safe)


def _said(site: Load) -> str:
    """What the place where the loader is made has to do with it."""
    if site.given:
        return "gets `pin_memory=False` from elsewhere"
    return "made in this call, without `pin_memory`" if site.via else "`pin_memory` is not set"


def _goes_through(node: ast.AST) -> tuple[ast.For | ast.comprehension, ...]:
    """What goes through something one by one here."""
    if isinstance(node, ast.For):
        return (node,)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return tuple(node.generators)
    return ()


def _decided(site: Load) -> bool:
    """Whether the call says something about pinning, or makes no batches."""
    positional = len(site.node.args) if isinstance(site.node, ast.Call) else 0
    hidden = site.open and site.measured is None
    told = "pin_memory" in site.keywords or positional > _PIN_MEMORY_POSITION
    first = site.node.args[0] if isinstance(site.node, ast.Call) and positional else site.keywords.get("dataset")
    # `DataLoader([])` stands in for one
    empty = isinstance(first, ast.List | ast.Tuple) and not first.elts
    return hidden or told or empty or says_none(site.keywords.get("batch_size"))


def _pinned_otherwise(source: Source, site: Load) -> bool:
    """Whether the code has chosen: where a condition is otherwise, it makes the same loader with pinned memory."""
    ways = [(outer, inner in outer.body) for outer, inner in way_to(source, site.node) if isinstance(outer, ast.If)]
    name = ast.unparse(site.node.func) if isinstance(site.node, ast.Call) else ""
    return any(name in _pinning(asked, not here) for asked, here in ways)


@lru_cache(maxsize=16)
def _pinning(asked: ast.If, there: bool) -> frozenset[str]:
    """What is called with ``pin_memory`` where a condition holds, or where it does not."""
    inside = (part for statement in (asked.body if there else asked.orelse) for part in walk(statement))
    calls = (part for part in inside if isinstance(part, ast.Call) and keyword_of(part, "pin_memory"))
    return frozenset(ast.unparse(call.func) for call in calls)


def _copies(moves: list[Transfer]) -> tuple[Step, ...]:
    return tuple(
        Step(move.node, f"copied to {move.target} " + (f"in `{move.via}`" if move.via else "here")) for move in moves
    )


def _overlap(moves: list[Transfer]) -> str:
    blocking = any(not move.non_blocking for move in moves)
    return "; `.to(..., non_blocking=True)` then overlaps the copy with work" if blocking else ""


def _parts_rows(index: ast.expr) -> bool:
    """Whether an index leaves gaps in memory, which torch closes on the host before it copies: ``x[:, :-1]``."""
    parts = index.elts[1:] if isinstance(index, ast.Tuple) else []
    return any(not isinstance(part, ast.Slice) or part.lower or part.upper or part.step for part in parts)
