"""The process that runs the code: it looks for a reproduction, or runs one; JSON comes in, lines of JSON go out."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what imports torch waits until the standard streams are taken away
    from devlint.prove.claim import Claim
    from devlint.prove.running.trial import Watch
    from devlint.prove.searching.entries import Entry
    from devlint.prove.searching.plan import Plan
    from devlint.prove.searching.search import Search

Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Take the standard streams away from the code that is run, and do what is asked."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    request = json.load(sys.stdin)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    sys.path[:] = request["path"]
    sys.argv[:] = ["repro.py"] if request["script"] else [request["claim"]["file"]]

    def tell(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    try:
        import torch  # noqa: F401  # before it is simulated

        from devlint.simulator import install

        install(2)
    except (ImportError, RuntimeError) as error:
        tell({"failed": " ".join(str(error).split())})
    else:
        try:
            _work(request, tell)
        except Exception as error:
            tell({"failed": f"devlint failed: {type(error).__name__}: {' '.join(str(error).split())}"})
    # what the code has left behind, such as threads, does not matter any more
    os._exit(0)


def _work(request: dict[str, Any], tell: Tell) -> None:
    from devlint.prove.claim import Claim
    from devlint.prove.running.confinement import confine
    from devlint.prove.running.reasons import reason
    from devlint.prove.running.signs import shown
    from devlint.prove.running.trial import IMPORTING, PATIENCE, Watch

    claim = Claim.read(request["claim"])
    watch = Watch(claim)
    watch.prepare()
    confine(request["folder"])
    if request["script"]:
        trial = watch.run(request["script"], patience=IMPORTING + PATIENCE)
        _, why = reason(claim, trial, 1, 0)
        tell({"shown": shown(claim, trial), "why": why})
    else:
        _look(request, claim, watch, tell)


def _look(request: dict[str, Any], claim: Claim, watch: Watch, tell: Tell) -> None:
    """Look for a plan, and tell its script, then smaller ones; or why there is none.

    What is told last holds, also where the process does not come to its end.
    """
    from devlint.prove.running.reasons import reason, stopped
    from devlint.prove.running.trial import IMPORTING
    from devlint.prove.searching.entries import conditions, entries
    from devlint.prove.searching.plan import Target, targets
    from devlint.prove.searching.search import Search

    with open(claim.file, "rb") as stream:
        tree = ast.parse(stream.read())
    name, ways = request["module"], entries(tree, claim)
    search = Search(watch, claim, conditions(tree, claim))
    top = next((way for way in ways if way.is_module), None)
    mains = [Target(name, claim.file, top, kind="main")] if top is not None else []
    if top is not None and ways[0].is_module:
        plan = search.find([Target(name, claim.file, top, kind="module"), *mains])
        mains = []
        if plan is not None:
            tell({"script": plan.script()})
            return
    tell({"why": "importing the file takes too long, or ends the process"})
    imported = watch.run(f"__import__('importlib').import_module({name!r})", patience=IMPORTING)
    if imported.error is not None:
        tell({"verdict": "not shown", "why": f"the file cannot be imported: {stopped(claim, imported)}"})
        return
    tell({"why": "a call takes too long, or ends the process"})
    module = sys.modules[name]
    known = [one for way in ways for one in targets(module, name, claim.file, way, inner_of(tree, way, claim))]
    plan = search.find([*known, *mains])
    if plan is not None:
        _reduce(tree, claim, plan, search, tell)
    elif known or mains or search.runs:
        verdict, why = reason(claim, search.best, search.runs, search.reached)
        tell({"verdict": verdict, "why": why})
    else:
        tell({"verdict": "not shown", "why": "it is in code that nothing outside can call"})


def _reduce(tree: ast.Module, claim: Claim, plan: Plan, search: Search, tell: Tell) -> None:
    """Tell the script of a plan, and of the smallest that shows the same."""
    from devlint.prove.searching.layout import laid_out
    from devlint.prove.searching.minimise import minimised
    from devlint.prove.searching.printed import printed

    tell({"script": plan.script()})
    with contextlib.suppress(Exception):
        plan = minimised(plan, search)
    script, line = plan.script(), printed(tree, claim, plan)
    if line and search.watch.run(f"{script}{line}").error is None:
        script += line
    tell({"script": laid_out(script)})


def inner_of(tree: ast.Module, way: Entry, claim: Claim) -> tuple[str, ...]:
    """The parameters of the function inside of the entry's that holds the finding."""
    from devlint.prove.searching.entries import definition

    outer = definition(tree, way)
    around = [
        node
        for node in ast.walk(outer or ast.Pass())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node is not outer
        and node.lineno <= claim.span[0] <= (node.end_lineno or 0)
    ]
    given = around[-1].args if around else None
    if given is None:
        return ()
    positional = [*given.posonlyargs, *given.args]
    return tuple(one.arg for one in positional[: len(positional) - len(given.defaults)])


if __name__ == "__main__":
    main()
