"""Measure devlint beside its peers: what each costs, cold and warm, on three projects, on two lines, and with size.

The peers are installed from the package index, each into an environment of its own. All tools of a part are measured
in turns, with `ast.parse` among them, and their figures are kept in tests/benchmarks/figures/ until they are measured
again; `python -m docs.generate` writes them into docs/speed.md. TorchFix and torch-preflight need half an hour each for
transformers, and minutes for every eighth file of it. `compiled` is the same devlint, compiled with mypyc
(docs/compiled.md): it is built once, in a minute, which needs a C compiler, and again if the sources have changed.
Parts and tools can be chosen:

    python -m tests.benchmarks --only timm small            # all tools, on these
    python -m tests.benchmarks --tools devlint compiled     # these, on everything
    python -m tests.benchmarks --only transformers --tools torchfix --rounds 1
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tests.benchmarks.compiled import build
from tests.benchmarks.corpora import CURVE, PROJECTS, SMALL, Corpus, collection, corpus, eighth
from tests.benchmarks.kept import AST, CHANGED, COLD, COMPILED, PARTS, Row, save
from tests.benchmarks.measure import CommandFailedError, Summary
from tests.benchmarks.tools import PEERS, Tool, install, tools, torch_for_types
from tests.ecosystem.errors import EcosystemError
from tests.ecosystem.wheels import default_cache

GROUPS = ("libcst", "devlint", "compiled", *PEERS)
ENOUGH = 60.0
"""CPU seconds after which a tool need not take another turn: what disturbs it evens out."""


def main() -> int:
    """0 if all that was asked for was measured, 2 if something could not be."""
    options = _options()
    options.cache.mkdir(parents=True, exist_ok=True)
    try:
        complete = _installed(options)
        # Copies of their own: several runs may be at it.
        with tempfile.TemporaryDirectory(dir=options.cache) as scratch:
            for part in options.only:
                _measure(part, options, Path(scratch))
    except (CommandFailedError, EcosystemError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if complete else 2


def _installed(options: argparse.Namespace) -> bool:
    """Whether all chosen tools are there; a machine without a C compiler measures the others."""
    environments = options.cache / "environments"
    for peer in PEERS:
        if peer in options.tools:
            install(peer, environments)
    if "compiled" not in options.tools:
        return True
    try:
        build(environments)
    except CommandFailedError as error:
        print(f"error: {error}; the rest is measured", file=sys.stderr)
        options.tools = [tool for tool in options.tools if tool != "compiled"]
        return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    add("--tools", nargs="+", choices=GROUPS, default=GROUPS, metavar="TOOL", help=f"of {', '.join(GROUPS)}")
    add("--rounds", type=int, default=3, metavar="N", help="turns of each tool; the median counts (3)")
    add("-j", "--jobs", type=int, default=4, metavar="N", help="processes of the run of devlint with several (4)")
    add("--peers-jobs", type=int, default=1, metavar="N", help="processes of TorchFix and torch-preflight (1)")
    add("--cache", type=Path, default=default_cache().with_name("devlint-benchmarks"), metavar="DIR",
        help="where the environments and the copies lie (%(default)s)")  # fmt: skip
    options = parser.parse_args()
    options.cache = Path(os.path.abspath(options.cache))  # the tools are run elsewhere
    return options


def _measure(part: str, options: argparse.Namespace, scratch: Path) -> None:
    """Measure a part, and keep the figures of each corpus as soon as they are there."""
    known = tools(options.cache / "environments", options.jobs, options.peers_jobs)
    chosen = [tool for tool in known if tool.group == "ast" or (tool.group in options.tools and _has_part(tool, part))]
    for read in _corpora(part, scratch):
        save(part, _in_turns(chosen, read, options.rounds, scratch), [tool.name for tool in known])


def _has_part(tool: Tool, part: str) -> bool:
    """Whether a tool takes part: the curve is about one process that reads, and of one file nothing can be shared."""
    if part == "curve":
        return tool.group == "libcst" or tool.name in (COLD, COMPILED.format(COLD))
    return part != "small" or not (tool.name.endswith(CHANGED) or "processes" in tool.name)


def _corpora(part: str, scratch: Path) -> list[Corpus]:
    if part == "curve":
        return [collection(thousands, default_cache(), scratch) for thousands in CURVE]
    if part == "eighth":
        return [eighth(default_cache(), scratch)]
    return [corpus(part if part in PROJECTS else SMALL, default_cache(), scratch)]


def _in_turns(chosen: Sequence[Tool], read: Corpus, rounds: int, kept: Path) -> list[Row]:
    """What each tool costs, measured in turns so that a slow minute of the machine falls on all of them."""
    for tool in chosen:
        if tool.before is not None:
            tool.before(tool, read, kept)
    found: dict[str, Summary] = {}
    for _ in range(rounds if read.name != SMALL else 3 * rounds):
        for tool in chosen:
            before = found.get(tool.name, Summary(()))
            if sum(run.cpu_seconds for run in before.runs) > ENOUGH:
                continue
            if tool.each is not None:
                tool.each(tool, read, kept)
            last = tool.cost(read, kept)
            if tool.after is not None:
                tool.after()
            found[tool.name] = Summary((*before.runs, last))
            print(
                f"{read.name:20} {tool.name:52} {last.cpu_seconds:9.2f} CPU s {last.seconds:9.2f} s"
                f" {last.peak_bytes >> 20:6} MiB",
                file=sys.stderr,
            )
    return [_row(tool, read, found[tool.name], found[AST]) for tool in chosen]


def _row(tool: Tool, read: Corpus, summary: Summary, yardstick: Summary) -> Row:
    release = tool.release
    if tool.group == "pyrefly" and torch_for_types():
        release = f"{release} with torch {torch_for_types()}"
    machine = f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return Row(
        read.name, read.files, read.lines, tool.name, release, round(summary.cpu_seconds, 3), round(summary.seconds, 3),
        summary.peak_bytes, len(summary.runs), round(yardstick.cpu_seconds, 3), date.today().isoformat(), machine,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
