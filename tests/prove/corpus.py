"""Prove all findings of many files: ``python -m tests.prove.corpus FILE...`` prints what came of each.

What a command does for one finding in processes of its own is done here in copies of one process, which has torch and
the simulated accelerator already; the code that is run is in none but its own copy.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from devlint.finding import Finding
from devlint.prove import process
from devlint.prove.chosen import findings
from devlint.prove.claim import Claim
from devlint.prove.modules import Module
from devlint.prove.verdict import CONFIRMED, Verdict, prove
from devlint.source.tree import Source

_SHARED = (
    "devlint.prove.child",
    "devlint.prove.running.confinement",
    "devlint.prove.running.reasons",
    "devlint.prove.running.signs",
    "devlint.prove.searching.layout",
    "devlint.prove.searching.minimise",
    "devlint.prove.searching.printed",
    "devlint.simulator.backend",
    "devlint.simulator.masquerade",
    "torch._dynamo",
)
"""What is imported once, for all copies."""


def told(file: str, asked: bool = False) -> tuple[Source, list[Finding]]:
    """The file, and its findings that can be proven, those too which only who asks is told if ``asked``."""
    source, found = findings(file)
    return source, [finding for finding in found if asked or not finding.asked]


def verdicts(files: Sequence[str], asked: bool = False) -> Iterator[tuple[Finding, Verdict]]:
    """What comes of each finding of the files."""
    import torch

    for name in _SHARED:
        importlib.import_module(name)

    torch.set_num_threads(1)
    process.ask = _ask  # type: ignore[assignment]
    from devlint.prove import verdict

    verdict.ask = _ask  # type: ignore[assignment]
    for file in files:
        source, found = told(file, asked)
        for finding in found:
            try:
                yield finding, prove(finding, source, found)
            except process.ProcessError as error:
                yield finding, Verdict("not shown", f"failed: {error}")


def _ask(claim: Claim, module: Module, script: str = "") -> dict[str, Any]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        request = {"claim": claim.written(), "module": module.name, "path": module.path, "script": script}
        request["folder"] = folder
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _serve(request, folder, write)
        os.close(write)
        found: dict[str, Any] = {"late": False}
        for line in _lines(read, child, process.PATIENCE["script" if script else "search"]):
            if line.endswith("}"):
                found |= json.loads(line)
        if len(found) == 1:
            raise process.ProcessError("the process has said nothing")
        return found


def _serve(request: dict[str, Any], folder: str, write: int) -> None:
    from devlint.prove import child
    from devlint.simulator import install

    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir(folder)
        os.environ.update(dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"), folder))
        tempfile.tempdir = folder
        sys.dont_write_bytecode = True
        sys.path[:] = request["path"]
        sys.argv[:] = [request["claim"]["file"]]
        install(2)
        child._work(request, lambda reply: os.write(write, f"{json.dumps(reply)}\n".encode()) and None)
    except BaseException as error:
        reply = {"why": f"devlint failed: {type(error).__name__}: {error}"}
        os.write(write, f"{json.dumps(reply)}\n".encode())
    finally:
        os._exit(0)


def _lines(read: int, child: int, seconds: float) -> list[str]:
    deadline, data = time.monotonic() + seconds, b""
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(read, 65536) if ready else b""
        data += part
        if not part:
            break
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    os.waitpid(child, 0)
    os.close(read)
    return data.decode().splitlines()


def main() -> int:
    """Print each finding with what came of it, and how many of each rule are confirmed."""
    parser = argparse.ArgumentParser("python -m tests.prove.corpus", description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--asked", action="store_true", help="also what only who selects the rule is told")
    parser.add_argument("--json", action="store_true", help="an object per finding and line, and nothing else")
    parser.add_argument("--scripts", action="store_true", help="with the scripts")
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for finding, verdict in verdicts(options.files, options.asked):
        counts[finding.code, verdict.kind] += 1
        if options.json:
            told_as = {"kind": verdict.kind, "text": verdict.text, "script": verdict.script}
            print(json.dumps({"file": finding.filename, "row": finding.span.row, "code": finding.code, **told_as}))
            continue
        place = f"{Path(finding.filename).parent.name[:6]}/{Path(finding.filename).name}:{finding.span.row}"
        print(f"{place} {finding.code} {verdict.kind}: {verdict.text}", flush=True)
        if options.scripts:
            print(f"    # {finding.message}")
            print("".join(f"    {line}\n" for line in verdict.script.splitlines()[1:]), flush=True)
    if options.json:
        return 0
    total = sum(counts.values())
    confirmed = sum(number for (_, kind), number in counts.items() if kind == CONFIRMED)
    for (code, kind), number in sorted(counts.items()):
        print(f"{code} {kind} {number}")
    print(f"{confirmed} of {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
