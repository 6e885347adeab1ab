"""DVL403: a loss kept from step to step, and the graph of each step with it."""

from __future__ import annotations

import ast

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import function_at, names_in, statement_around
from devlint.rules.code.edits import fix_of, in_test
from devlint.sites.base import Step
from devlint.sites.costs import Keep, Kept
from devlint.source.syntax import walk

_VERBS = {"sum": "adds up", "list": "collects"}
_ALONE = (
    "it keeps the number alone, and does not wait for the device",
    "they keep the numbers alone, and do not wait for the device",
)


class LossKeepsGraph(Rule):
    """A loss is added up or collected over the steps of a training loop, and the graph of each step is kept with it.

    ## What it does
    Reports `total += loss` and `losses.append(loss)` in a loop that also calls `loss.backward()`, where what is kept
    lives longer than the step. What the loop keeps besides of the parts of the loss is in the same finding, as each of
    them keeps the graph.

    ## Why it matters
    A loss is more than a number: it refers to the graph that led to it. What keeps the loss keeps the graph, so memory
    grows with every step until the job dies, and a running total is a graph as deep as the loop is long.
    `.detach()` gives the number alone, without waiting for the device as `.item()` and `float()` do.

    ## Example
    ```python
    import torch

    def train(loader, model, loss_fn, optimizer):
        total = 0.0
        for images, labels in loader:
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss
        return total
    ```

    ## Use instead
    ```python
    import torch

    def train(loader, model, loss_fn, optimizer):
        total = 0.0
        for images, labels in loader:
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total
    ```

    ## When it stays silent
    - The loss is detached or made a number: `.item()`, `.detach()`, `float(loss)`, or under `torch.no_grad()`.
    - The name is bound to something else once the step is done with the loss, as by unpacking a call's result.
    - What is kept is a dict or a record that holds the loss, `loss["loss"].backward()`, and cannot be detached.
    - What was added up or collected goes backward itself, or `backward` is told to keep the graph.
    - Every step begins with a new total or list, or the list forgets (`deque(maxlen=100)`).
    - The function never reads what it has added up or collected, or the loop is over the micro-batches or the rows of
      one step of the optimizer, whose graphs are let go soon: who selects the rule is told.
    - Tests.
    - It is an info only where some of the steps let go of all that was kept, as where gradients are accumulated.

    ## Fix safety
    `.detach()` is safe: the values are the same, and `backward` has already used the graph.

    ## References
    - [My model reports "cuda runtime error: out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "DVL403"
    fixes = (Applicability.SAFE,)

    def judge(self, site: Keep) -> Reports:
        """A report for all that the rounds of a loop keep."""
        if in_test(self.source, site.scope):
            return
        every = (site.kept, *site.others)
        held = _joined([f"`{kept.holder}` {_VERBS[kept.kind]} `{kept.value}`" for kept in every])
        values = list(dict.fromkeys(kept.value for kept in every))
        whose = "with its graph" if len(values) == 1 else "each with its graph"
        grows = "with every step" if site.emptied is None else "until that is let go"
        steps = (site.backward, *(Step(kept.node, "another is kept here") for kept in site.others))
        yield Report(
            f"{held}{' ' if len(values) == 1 else ', '}{whose}, so memory grows {grows}",
            label="the graph of this step is kept here",
            severity=None if site.emptied is None else Severity.INFO,
            steps=steps if site.emptied is None else (*steps, site.emptied),
            help=f"use {_joined([f'`{value}.detach()`' for value in values])}: {_ALONE[len(values) > 1]}",
            fix=fix_of(
                f"Detach {_joined([f'`{value}`' for value in values])}",
                [self.replace(kept.node, f"{kept.value}.detach()") for kept in every],
                safe=True,
            ),
            # who reads no sum has forgotten it, and it goes with the function
            asked=site.passing or all(self._is_unread(kept) for kept in every),
        )

    def _is_unread(self, kept: Kept) -> bool:
        """Whether the function keeps a loss under a name of its own, and never asks for it."""
        function, statement = function_at(self.source, kept.node), statement_around(self.source, kept.node)
        if function is None or not kept.holder.isidentifier():
            return False
        inside = set(walk(statement)) if statement is not None else set()
        named = names_in(function).get(kept.holder, ())
        return not any(isinstance(one.ctx, ast.Load) and one not in inside for one in named)


def _joined(texts: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``: each text once."""
    *first, last = dict.fromkeys(texts)
    return f"{', '.join(first)} and {last}" if first else last
