"""What is measured: devlint and its peers, each in an environment of its own, and the parsers that set the scale."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import devlint
from tests.benchmarks import compiled
from tests.benchmarks.corpora import TWO_LINES, Corpus
from tests.benchmarks.kept import ALONE, AST, CHANGED, COLD, COMPILED, LIBCST, SEVERAL, WARM
from tests.benchmarks.measure import CommandFailedError, Cost, cost

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PEERS = {"ruff": "0.17.5", "pyrefly": "1.4.1", "torch-preflight": "0.5.0", "torchfix": "0.7.0"}
"""Releases on the package index."""
_FOUND = (0, 1)
"""Exit codes of a linter that did its work."""


@dataclass(frozen=True)
class Tool:
    """Something that reads a corpus; ``command`` gets the corpus and a directory for what is kept between runs.

    ``before`` is done once, ``each`` and ``after`` time by time, without being measured; the last one fails if it was
    something else that was measured.
    """

    name: str
    group: str
    release: str
    command: Callable[[Corpus, Path], Sequence[str]]
    variables: dict[str, str] = field(default_factory=dict)
    before: Callable[[Tool, Corpus, Path], object] | None = None
    each: Callable[[Tool, Corpus, Path], object] | None = None
    after: Callable[[], object] | None = None

    def cost(self, corpus: Corpus, kept: Path) -> Cost:
        """One run over a corpus."""
        return cost(self.command(corpus, kept), kept, self._environment(kept), _FOUND)

    def _environment(self, kept: Path) -> dict[str, str]:
        """As installed: Python's bytecode is written once, and nothing of this machine's set-up is obeyed."""
        gone = {"PYTHONDONTWRITEBYTECODE", "DEVLINT_NO_CACHE", "DEVLINT_CACHE_DIR", "PRE_COMMIT", "FORCE_COLOR"}
        inherited = {name: value for name, value in os.environ.items() if name not in gone}
        return {
            **inherited,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONPYCACHEPREFIX": str(kept.parent / "bytecode"),
            "NO_COLOR": "1",
            **self.variables,
        }


class Shares(Tool):
    """devlint with several processes as if each had a processor: what the longest way through them takes."""

    def cost(self, corpus: Corpus, kept: Path) -> Cost:
        """The CPU seconds of all processes; those of the first and the busiest of the others are what goes by."""
        done = subprocess.run(
            self.command(corpus, kept), cwd=kept, env=self._environment(kept), capture_output=True, text=True
        )
        if done.returncode:
            raise CommandFailedError(done.stderr.strip())
        first, *others = json.loads(done.stdout)
        return Cost(first + sum(others), 0, first + max(others))


def tools(environments: Path, jobs: int, peers_jobs: int = 1) -> list[Tool]:
    """All that can be measured, in the order of the tables; ``peers_jobs`` processes for the slow peers."""
    ours = [*_devlint(jobs), *_compiled(jobs, environments)]
    return [*_parsers(), *ours, *_ruff(environments), *_others(environments, peers_jobs)]


def _parsers() -> list[Tool]:
    parse = [sys.executable, str(HERE / "parse_all.py")]

    def parsing(parser: str, corpus: Corpus, _: Path) -> Sequence[str]:
        return [*parse, parser, str(corpus.path)]

    python = f"Python {sys.version.split()[0]}"
    return [
        Tool(AST, "ast", python, partial(parsing, "ast")),
        Tool(LIBCST, "libcst", f"LibCST {version('libcst')}", partial(parsing, "libcst")),
    ]


def _devlint(jobs: int, folder: str = "devlint") -> list[Tool]:
    """devlint in all ways in which it is run; its cache lies in a folder of that name."""
    base = [sys.executable, "-m", "devlint", "check", "--isolated"]

    def cold(count: int, corpus: Corpus, _: Path) -> Sequence[str]:
        return [*base, "--no-cache", "-j", str(count), str(corpus.path)]

    def warm(corpus: Corpus, kept: Path) -> Sequence[str]:
        return [*base, "--cache-dir", str(kept / folder), "-j", "1", str(corpus.path)]

    def share(corpus: Corpus, _: Path) -> Sequence[str]:
        # not with -m, which would find the devlint of the directory that it runs in
        return [sys.executable, str(HERE / "shares.py"), str(corpus.path), str(jobs)]

    made = partial(Tool, group="devlint", release=f"devlint {devlint.__version__}")
    found = [made(COLD, command=partial(cold, 1), before=_begun)]
    if jobs > 1:
        found.append(made(SEVERAL.format(jobs), command=partial(cold, jobs), before=_begun))
        found.append(Shares(ALONE.format(jobs), "devlint", found[0].release, share, before=_begun))
    found.append(made(WARM, command=warm, each=_twice))
    found.append(made(CHANGED, command=warm, each=_changed))
    return found


def _compiled(jobs: int, environments: Path) -> list[Tool]:
    """The same, compiled."""
    folder = compiled.place(environments)
    return [
        replace(
            tool,
            name=COMPILED.format(tool.name),
            group="compiled",
            release=f"{tool.release}, mypyc {compiled.mypyc()}",
            variables=compiled.variables(folder),
            after=partial(compiled.prove, folder),
        )
        for tool in _devlint(jobs, "compiled")
    ]


def _ruff(environments: Path) -> list[Tool]:
    program = str(environments / f"ruff-{PEERS['ruff']}" / _SCRIPTS / "ruff")

    def cold(corpus: Corpus, _: Path) -> Sequence[str]:
        return [program, "check", "--isolated", "--silent", "--no-cache", str(corpus.path)]

    def warm(corpus: Corpus, kept: Path) -> Sequence[str]:
        return [program, "check", "--isolated", "--silent", "--cache-dir", str(kept / "ruff"), str(corpus.path)]

    made = partial(Tool, group="ruff", release=f"ruff {PEERS['ruff']}", variables={"RAYON_NUM_THREADS": "1"})
    return [made("ruff, cold", command=cold), made("ruff, nothing changed", command=warm, each=_twice)]


def _others(environments: Path, jobs: int) -> list[Tool]:
    def program(name: str) -> str:
        return str(environments / f"{name}-{PEERS[name]}" / _SCRIPTS / name)

    def pyrefly(corpus: Corpus, _: Path) -> Sequence[str]:
        options = ["--preset", "default", "--error", "pytorch-efficiency-lints", "--summary", "none", "-j", "1"]
        everything = ["--disable-project-excludes-heuristics", "--project-excludes", "nothing"]
        return [
            program("pyrefly"), "check", *options, *everything, "--python-interpreter-path", sys.executable,
            str(corpus.path),
        ]  # fmt: skip

    def preflight(corpus: Corpus, _: Path) -> Sequence[str]:
        return [program("torch-preflight"), "check", "-j", str(jobs), str(corpus.path)]

    def torchfix(corpus: Corpus, _: Path) -> Sequence[str]:
        return [program("torchfix"), "-j", str(jobs), "--select", "ALL", str(corpus.path)]

    more = f", {jobs} processes" if jobs > 1 else ""
    return [
        Tool("pyrefly", "pyrefly", f"pyrefly {PEERS['pyrefly']}", pyrefly),
        Tool("torch-preflight", "torch-preflight", f"torch-preflight {PEERS['torch-preflight']}{more}", preflight),
        Tool("TorchFix", "torchfix", f"TorchFix {PEERS['torchfix']}{more}", torchfix),
    ]


def install(name: str, environments: Path) -> None:
    """Put a peer into an environment of its own, unless it is there."""
    release = PEERS[name]
    folder = environments / f"{name}-{release}"
    if (folder / "complete").exists():
        return
    print(f"installing {name} {release}", file=sys.stderr)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(folder / _SCRIPTS / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q",
         f"{name}=={release}"],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise CommandFailedError(f"{name} {release} cannot be installed: {reason}")
    (folder / "complete").touch()


def torch_for_types() -> str:
    """The torch whose types a type checker finds, empty if there is none."""
    return version("torch").partition("+")[0] if importlib.util.find_spec("torch") else ""


def _begun(tool: Tool, _: Corpus, kept: Path) -> None:
    """Let Python write its bytecode."""
    (kept / "begun.py").write_text(TWO_LINES, encoding="utf-8")
    tool.cost(Corpus("", kept / "begun.py", 1, 2), kept)


def _changed(tool: Tool, corpus: Corpus, kept: Path) -> None:
    """Change a file that the cache knows, and no other: tools that were measured before may have changed some."""
    _twice(tool, corpus, kept)
    with open(corpus.changed, "a", encoding="utf-8") as stream:
        stream.write("# one more line\n")


def _twice(tool: Tool, corpus: Corpus, kept: Path) -> None:
    # the first run finds the results, the second that the files have not been touched for a while
    for _ in range(2):
        tool.cost(corpus, kept)


_SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
