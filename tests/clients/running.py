"""Running a client: plain, on the simulated accelerator, and audited there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devlint.simulator.children import VARIABLE
from tests.clients.catalog import Client
from tests.clients.data import MAKERS

ROOT = Path(__file__).resolve().parents[2]
STARTUP = ROOT / "devlint" / "simulator" / "startup"
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?|(?<![\w.])nan\b")
_TIMES = re.compile(
    r"'train_(?:runtime|\w+_per_second)': '[\d.e+-]+'|\d+\.\d+\s*(?:ms|s\b|sec|it/s)|(?:ms/batch|time)\W+\d+\.\d+"
    r"|\d+\.\d+(?=\s*\|\s*loss)"
)
_IN_SHORT = re.compile(r"^  in short +(.*?)(?=^  \w)", re.MULTILINE | re.DOTALL)
_STEPS = re.compile(r"^  steps +([^;\n]*)", re.MULTILINE)
_RAISED_HERE = re.compile(r'File "[^"]*[/\\]devlint[/\\](?:auditor|report|record|cli|observation)')


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended, what it printed, and how long it took in seconds; ``code`` is ``None`` at the limit."""

    code: int | None
    output: str
    errors: str
    seconds: float

    @property
    def numbers(self) -> list[str]:
        """The numbers with a fraction that it printed, those of times left out; the others where there is none."""
        told = _TIMES.sub("", self.output)
        return _NUMBER.findall(told) or re.findall(r"\d+", told)


@dataclass(slots=True)
class Report:
    """What came of an audited run."""

    in_short: str = ""
    steps: str = ""
    findings: list[dict] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    """The files with functions that were looked at."""
    crashed: bool = False
    """Whether devlint switched itself off, or raised something of its own."""


def run(command: list[str], folder: Path, limit: float, environment: Mapping[str, str] = {}) -> Outcome:
    """Run a command in a group of processes of its own, which is ended at the limit."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **_QUIET, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code: int | None = child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            code = None
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Outcome(code, *texts, time.monotonic() - begin)


_QUIET = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "160",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "WANDB_MODE": "disabled",
    "YOLO_OFFLINE": "true",
    "YOLO_VERBOSE": "false",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
}


def lay(client: Client, folder: Path, mirror: Path | None) -> Path | None:
    """Put the script and its data into a folder; returns it, ``None`` where the mirror does not have it."""
    if not client.repository:
        return Path(shutil.copy(client.own(), folder / client.own().name))
    repository = _repository(client, mirror) if mirror else None
    if repository is None:
        return None
    # file by file: what a mirror has left out, such as large data, is not needed
    top = os.path.dirname(client.script)
    listed = _git(repository, "ls-tree", "-r", "--name-only", "HEAD", *([f"{top}/"] if top else []))
    for name in (listed or b"").decode().splitlines():
        content = _git(repository, "cat-file", "blob", f"HEAD:{name}")
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    script = folder / client.script
    if not script.is_file():
        return None
    if client.data:
        MAKERS[client.data](script.parent)
    return script


def commit(client: Client, mirror: Path) -> str:
    """The commit of a script of a repository, in short."""
    repository = _repository(client, mirror)
    return (_git(repository, "rev-parse", "--short=10", "HEAD") or b"").decode().strip() if repository else ""


def _repository(client: Client, mirror: Path) -> Path | None:
    bare = mirror / client.repository.replace("/", "+")
    return next((place for place in (bare / "repo", bare) if place.is_dir()), None)


def _git(repository: Path, *arguments: str) -> bytes | None:
    told = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    return None if told.returncode else told.stdout


def plain(client: Client, script: Path, python: str, limit: float) -> Outcome:
    """Run it as it is, without an accelerator."""
    extra = ("--device=cpu",) if client.device == ("--device=cuda",) else ()
    command = [*_start(client, python), str(script), *client.arguments, *extra]
    return run(command, script.parent, limit, {"CUDA_VISIBLE_DEVICES": ""})


def simulated(client: Client, script: Path, python: str, limit: float) -> Outcome:
    """Run it on the simulated accelerator, without an audit."""
    prefix = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    command = [*_start(client, python), str(script), *client.arguments, *client.device]
    boarded = {"PYTHONPATH": f"{STARTUP}{os.pathsep}{ROOT}", VARIABLE: f"{client.ranks} {prefix.stdout.strip()}"}
    return run(command, script.parent, limit, {"CUDA_VISIBLE_DEVICES": "", **boarded})


def audited(client: Client, script: Path, python: str, limit: float, record: Path) -> tuple[Outcome, Report]:
    """Run it under the audit on the simulated accelerator."""
    audit = ["-m", "devlint", "audit", "--simulate", "--isolated", "--exit-zero", "--output", str(record)]
    if client.ranks > 1:
        audit += ["--devices", str(client.ranks)]
    start = _start(client, python)
    command = [*start, *audit, script.name, *client.arguments, *client.device]
    outcome = run(command, script.parent, limit)
    return outcome, _report(outcome, record)


def _start(client: Client, python: str) -> list[str]:
    if client.ranks == 1:
        return [python]
    return [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={client.ranks}"]


def _report(outcome: Outcome, record: Path) -> Report:
    report = Report(crashed=bool(_RAISED_HERE.search(outcome.errors.rpartition("Traceback (most")[2])))
    if found := _IN_SHORT.search(outcome.errors):
        report.in_short = re.sub(r"\s+", " ", found[1]).strip()
    if found := _STEPS.search(outcome.errors):
        report.steps = found[1].strip()
    if record.is_file():
        kept = json.loads(record.read_text(encoding="utf-8"))
        report.findings = kept["findings"] or []
        report.crashed |= any(process["failure"] for process in kept["processes"])
        seen = (one["file"] for process in kept["processes"] for one in process["observations"])
        report.observed = sorted(set(seen))
    else:
        report.crashed |= outcome.code == 0
    return report


def check(python: str, files: list[str], folder: Path, limit: float, *options: str) -> dict[tuple, dict]:
    """What is found in files, by place and rule."""
    command = [python, "-m", "devlint", "check", "--isolated", "--no-cache", "-j", "1", "--exit-zero"]
    outcome = run([*command, "--output-format", "json", *options, *files], folder, limit)
    if outcome.code != 0:
        raise RuntimeError(f"devlint check ended with {outcome.code}: {outcome.errors[-500:]}")
    return {
        (os.path.relpath(one["filename"], folder), one["location"]["row"], one["location"]["column"], one["code"]): one
        for one in json.loads(outcome.output)
    }
