"""DVL204: a copy from pinned memory for which the host waits."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from devlint.device import Kind
from devlint.flow.catalog.methods import FETCHES
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.blocks import evaluates, later, method_of, statement_around
from devlint.rules.code.control_flow import exclude_each_other
from devlint.rules.code.edits import fix_of, in_test, quoted
from devlint.rules.transfers.creating import reads_the_host
from devlint.rules.transfers.destination import destination
from devlint.rules.transfers.pinned import (
    can_be_released,
    parts_of,
    pins_inline,
    reads_pinned,
    release,
    released_in_time,
    released_safely,
    root,
)
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer
from devlint.source.syntax import walk
from devlint.source.tree import Source

_MOVES = frozenset({"to", "cuda"})
_SETTABLE = frozenset({"accelerate", "transformers"})
"""Libraries which copy batches, by way of accelerate, and can be told not to wait."""
_SETTING = (
    "`DataLoaderConfiguration(non_blocking=True)` for an `Accelerator`, or "
    '`accelerator_config={"non_blocking": True}` among the arguments of a `Trainer`, lets them go on'
)


class BlockingCopyFromPinned(Rule):
    """A batch is copied from pinned memory, but the host waits for the copy.

    ## What it does
    Reports `.to(device)` and `.cuda()` without `non_blocking=True` on the batches of a loader with `pin_memory=True`,
    or on what the code itself has pinned, in a loop or in a function that a loop of steps calls; on a part of a batch
    beside other parts that are copied with it; also `.cuda(True)`, which takes the flag for a device. In an audit also
    copies by accelerate and transformers, which can be told not to wait. Where the rule is selected by its code, its
    name or a prefix, also copies of what the code makes of arrays or numbers in each step, and has not pinned.

    ## Why it matters
    Pinning is half of it: a copy from pinned memory can run while Python goes on, but only if the code does not ask to
    wait. Without `non_blocking=True` the host stands still until each batch has arrived, and all that was queued before
    it is done. A small copy from any other memory need not wait either.

    ## Example
    ```python
    def train(dataset, model, device):
        loader = DataLoader(dataset, batch_size=64, pin_memory=True)
        for images in loader:
            model(images.to(device))
    ```

    ## Use instead
    ```python
    def train(dataset, model, device):
        loader = DataLoader(dataset, batch_size=64, pin_memory=True)
        for images in loader:
            model(images.to(device, non_blocking=True))
    ```

    ## When it stays silent
    - `non_blocking` is given, whatever its value.
    - The function evaluates, and trains nothing: it is a hint for those who select the rule.
    - Each step waits for the device, `total += loss.item()`, or the very next line does, `model(images).item()`: it is
      a hint for those who select the rule.
    - The copy is not made at every step, or not to a device that reads pinned memory.
    - Whether the memory is pinned is not known, unless other parts of the batch are copied with `non_blocking=True`, or
      the code itself makes the tensor of values of the host, and writes nothing into it.

    ## Fix safety
    Adding `non_blocking=True` is safe where the device is `cuda` or the CPU and the function does not write into the
    batch. It is unsafe elsewhere: what is written to the host tensor before the copy has ended changes what arrives,
    and on MPS the copy is not ordered with what follows.

    ## References
    - [Use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "DVL204"
    severity = Severity.INFO
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    observed = True
    proof = proof.Traces(left=(proof.UPLOAD,), confirm=(proof.WAITED_FOR_PINNED,), contradict=(proof.FROM_PAGEABLE,))

    def __init__(
        self,
        source: Source,
        target_torch: tuple[int, int] | None = None,
        latest_torch: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(source, target_torch, latest_torch)
        self._told: set[ast.AST] = set()
        self._free: dict[ast.AST, ast.AST] = {}
        self._waiting: defaultdict[ast.AST, list[Transfer]] = defaultdict(list)

    def judge(self, site: Transfer | Load) -> Reports:
        """A report for each copy that every step waits for, and need not."""
        if isinstance(site, Load):
            # the moves of batches in functions to which the loader was passed
            for move in site.moves:
                yield from self._judge(move)
        elif isinstance(site, Transfer):
            yield from self._judge(site)
            yield from self._beside(site)

    def _beside(self, site: Transfer) -> Reports:
        """A report for each part of a batch that is waited for, once another part is known not to be."""
        loop = site.scope.loop
        # of a batch on the CPU the loader is known, and whether it pins
        known = site.value.device.kind is Kind.CPU or site.pinned is not None
        if known or not site.scope.step or not isinstance(loop, ast.For):
            return
        if not reads_pinned(site.target) or root(site.value.node) not in parts_of(loop):
            return
        moved = site.kind != "module" and site.value.device.accelerates() is not True
        if site.non_blocking:
            self._free.setdefault(loop, site.node)
        elif moved and not site.scope.sometimes and can_be_released(site):
            self._waiting[loop].append(site)
        while loop in self._free and self._waiting[loop]:
            waiting = self._waiting[loop].pop()
            apart = exclude_each_other(self.source, self._free[loop], waiting.node)
            if waiting.node not in self._told and not apart:
                what = quoted(waiting.value.text, "this part of the batch")
                yield self._blocked(
                    waiting,
                    f"the host waits for each copy of {what} to {waiting.target}, and not for other parts of the batch",
                    f"let it go on, too: `.{waiting.spelled}(..., non_blocking=True)`",
                    (Step(self._free[loop], "does not wait"),),
                )

    def _judge(self, site: Transfer) -> Reports:
        if site.node in self._told or site.non_blocking or not site.repeated:
            return
        if site.value.device.kind is not Kind.CPU or not reads_pinned(site.target):
            return
        # a library's copy has to be one that can be told not to wait
        if site.via.partition("/")[0] not in _SETTABLE if site.via else not can_be_released(site):
            return
        value = site.value
        what = "a batch" if site.via else quoted(site.value.text, "the tensor")
        if not site.pinned:
            every = (site.scope.step and not site.scope.sometimes) or site.scope.called
            # each step copies what the code has made of values of the host
            made = value.certain and value.many is True and reads_the_host(value.factory) and not site.invariant
            if every and made and released_in_time(self, site) and not in_test(self.source, site.scope):
                yield self._blocked(
                    site,
                    f"the host waits for the copy of {what} to {destination(self.source, site)} in every step, "
                    "until the device has caught up",
                    f"do not wait: `.{site.spelled}(..., non_blocking=True)`; pinned, it overlaps too",
                    site.value.story,
                    asked=True,
                )
            return
        if pins_inline(site):
            # DVL206 tells to leave the pinning out
            return
        # the flag where the device is expected
        given = site.node.args[:1] if isinstance(site.node, ast.Call) and site.spelled != "to" else []
        if any(isinstance(argument, ast.Constant) and argument.value is True for argument in given):
            self._told.add(site.node)
            yield Report(
                f"`.{site.spelled}(True)` takes `True` for a device, which raises a `TypeError`",
                node=site.node,
                label="the first argument is the device",
                severity=Severity.ERROR,
                steps=() if site.pinned_by is None else (site.pinned_by,),
                help=f"name the argument: `.{site.spelled}(non_blocking=True)`",
            )
            return
        place, there = f"in `{site.via}`, " if site.via else "", destination(self.source, site)
        yield self._blocked(
            site,
            f"{place}the host waits for each copy of {what} to {there}, though its memory is pinned",
            _SETTING if site.via else f"let it go on: `.{site.spelled}(..., non_blocking=True)`",
            () if site.pinned_by is None or site.pinned_by.node is site.node else (site.pinned_by,),
        )

    def _blocked(
        self, site: Transfer, message: str, advice: str, steps: tuple[Step, ...], asked: bool = False
    ) -> Report:
        self._told.add(site.node)
        fix = fix_of("Add `non_blocking=True`", release(self, site), safe=released_safely(self, site))
        # what evaluates reads its results in every step, and waits there
        asked = asked or (site.measured is None and evaluates(self.source, site.node))
        asked = asked or (site.measured is None and _waits_anyway(self.source, site))
        return Report(message, "waits for the copy", None, steps, advice, fix, asked, node=site.node)


def _waits_anyway(source: Source, site: Transfer) -> bool:
    """Whether each round of the loop waits for the device, or the statement behind a copy and those beside it does."""
    rounds = _always(site.scope.loop.body) if isinstance(site.scope.loop, ast.For | ast.While) else ()
    if any(_is_simple(one) and not FETCHES.isdisjoint(map(method_of, walk(one))) for one in rounds):
        return True
    statement = statement_around(source, site.node)
    behind = later(source, statement) if statement is not None else []
    used = next((one for one in behind if _MOVES.isdisjoint(map(method_of, walk(one)))), None)
    return used is not None and _is_simple(used) and not FETCHES.isdisjoint(map(method_of, walk(used)))


def _always(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those of the contexts in it, which run whenever it does."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _always(statement.body)
        else:
            yield statement


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return)
