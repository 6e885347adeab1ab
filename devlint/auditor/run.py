"""What ``devlint audit`` does: run the script, judge what was seen, report, and leave as the script would have."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib.util
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass, replace

from devlint._about import __version__
from devlint.auditor.budgets import broken
from devlint.auditor.judgement.export import Exports
from devlint.auditor.judgement.presentation import judged
from devlint.auditor.running import console, ranks, storage
from devlint.auditor.running.child_processes import Children
from devlint.auditor.running.console import say
from devlint.auditor.running.merge import merge
from devlint.auditor.running.process_exit import Departures
from devlint.auditor.running.recording import Plan, Recording, Simulator
from devlint.auditor.running.runner import Script, ScriptError, die_of, flush_all, prepare_path
from devlint.auditor.running.runner import run as run_script
from devlint.auditor.session import Settings
from devlint.config.load import Resolver
from devlint.config.schema import FAIL_ON, Config, ConfigError
from devlint.record import Ending, Environment, Process, Record
from devlint.report.terminal import one_line

EXIT_FOUND, EXIT_FAILED = 1, 2
PATIENCE = 30.0
"""Seconds that the first rank of a machine waits for the others to finish, as long as they live."""
_PATIENCE_WHEN_KILLED = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``devlint audit`` as the user gave them."""

    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    steps: int | None = None
    every_step: bool = False
    simulate: bool = False
    devices: int | None = None
    output: str | None = None
    html: str | None = None
    trace: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    fail_on: str | None = None
    exit_zero: bool = False
    config: str | None = None
    isolated: bool = False
    quiet: bool = False


def run(options: Options, simulator: Simulator) -> object:
    """Run the script under audit; the result is for ``sys.exit``.

    ``simulator`` makes so many simulated devices, where the options ask for some.
    """
    script = Script(options.script, options.arguments, options.module)
    paths = list(sys.path)
    try:
        resolver, config = _configure(options)
        if options.devices is not None and not options.simulate:
            raise ConfigError("--devices says how many devices to simulate, and needs --simulate")
        read = (None if options.module else options.script, options.config)
        Exports(options.html, options.trace).check(options.output, read)
        prepare_path(script)
        script.check()
        _check_torch()
    except (ConfigError, ScriptError) as error:
        say("error", str(error))
        return EXIT_FAILED
    audit = Audit(options, simulator if options.simulate else None, resolver, config, paths)
    return audit.run(script)


class Audit:
    """One run of a script, as the process sees it in which the script itself runs."""

    def __init__(
        self, options: Options, simulator: Simulator | None, resolver: Resolver, config: Config, paths: list[str]
    ) -> None:
        self._options = options
        self._resolver = resolver
        self._config = config
        self._paths = paths
        self._pid = os.getpid()
        self._rank = ranks.find()
        self._plan = _plan(options, simulator, _directory(self._rank), self._rank)
        file = f"rank-{self._rank.number}.json" if self._rank else "main.json"
        self._leads = self._rank is None or self._rank.local == 0
        """Whether this process merges and reports for its machine."""
        output, html, trace = (
            _for_node(path, self._rank) if path and self._leads else None
            for path in (options.output, options.html, options.trace)
        )
        self._output = output or ""
        self._exports = Exports(html, trace)
        self._recording = Recording(self._plan, file, "rank" if self._rank else "main", self._rank, self._output)
        self._children = Children(self._plan)
        self._departures = Departures(self._leave)
        self._ending: Ending | None = None
        self._limited = False
        self._failing = False
        self._reported = False

    def run(self, script: Script) -> object:
        """Run the script and report; the result is for ``sys.exit``."""
        if self._rank is not None:  # so that the others know of this one however it ends
            self._recording.save(self._recording.record(Ending(), complete=False))
        self._recording.begin()
        self._children.follow()
        self._departures.watch()
        ending, code = run_script(script, self._script_ended)
        if os.getpid() != self._pid:
            return code
        refused = self._recording.refused
        if refused is not None:
            self._departures.remove()
            self._recording.end()
            if self._leads:
                say("error", refused.line)
            return EXIT_FAILED
        self._report(ending)
        self._departures.remove()
        if ending.kind == "interrupted":
            die_of(signal.SIGINT)
        return EXIT_FOUND if self._failing and not ending.code else code

    def _script_ended(self, ending: Ending, error: BaseException | None) -> None:
        """The script has ended, but for its threads and exit functions, which may take time, or for ever."""
        if os.getpid() != self._pid:
            return
        self._ending = ending
        if error is not None:
            # devlint itself has ended the script, since that had made the steps that it was to make
            steps = sys.modules.get("devlint.auditor.loop.steps")
            self._limited = steps is not None and isinstance(error, steps.StepsReached)
            self._recording.explain(error)

    def _leave(self, code: int | None) -> None:
        """The process ends without coming back to :meth:`run`."""
        if code is None:
            self._recording.save(self._recording.record(Ending(), complete=False))
            say("warning", "the script lets another program take its place (os.exec), which is not audited")
            return
        status = 128 - code if code < 0 else code & 0xFF
        if self._ending is not None and self._ending.kind != "finished":
            self._report(replace(self._ending, code=status))
        elif code < 0:
            self._report(Ending(kind="terminated", code=status, error=signal.Signals(-code).name))
        else:
            self._report(Ending(kind="exit", code=status))

    def _report(self, ending: Ending) -> None:
        """Whatever goes wrong here, the script has run and shall end as it would have ended."""
        if self._reported:
            return
        self._reported = True
        try:
            self._write_report(ending)
        except KeyboardInterrupt:
            die_of(signal.SIGINT)
        except Exception as error:
            say("error", f"devlint failed to report: {type(error).__name__}: {error}")

    def _write_report(self, ending: Ending) -> None:
        record = self._recording.record(replace(ending, kind="steps") if self._limited else ending)
        self._recording.save(record)
        self._recording.end()
        self._children.forget()
        if not self._leads:
            return
        patience = PATIENCE if ending.kind != "terminated" else _PATIENCE_WHEN_KILLED
        record = judged(merge([record, *self._others(patience)]), self._resolver)
        self._keep(record)
        flush_all()
        console.show(record, sys.stderr, self._options.quiet)
        self._export(record)
        breaches = broken(record, dict(self._config.budgets))
        for breach in breaches:
            say("error", f"the budget {breach.name.replace('_', '-')} was broken: {breach.text}")
            console.write(sys.stderr, "".join(f"  {one_line(place)}\n" for place in breach.places))
        grave = any(FAIL_ON[finding["severity"]] >= self._config.fail_on for finding in record.findings or ())
        self._failing = not self._options.exit_zero and (bool(breaches) or grave)
        if self._failing and self._rank is not None and not ending.code:
            say("note", _TAKEN_FOR_A_CRASH)

    def _others(self, patience: float) -> list[Record]:
        """The records of the run's other processes on this machine; ranks are waited for."""
        if not self._plan.directory:
            return []
        own = os.getpid()
        deadline = time.monotonic() + patience
        while True:
            found = [part for part in storage.parts(self._plan.directory) if _pid(part) != own]
            missing = self._missing(self._rank, found) if self._rank is not None else []
            running = missing or any(not part.complete and _alive(_pid(part)) for part in found)
            if self._rank is None or not running or time.monotonic() > deadline:
                return found + missing
            time.sleep(0.05)

    def _missing(self, rank: ranks.Rank, found: list[Record]) -> list[Record]:
        """For each rank that has left no record at all, one that says so."""
        first = rank.number - rank.local
        there = {process.rank for part in found for process in part.processes if process.role == "rank"}
        absent = sorted({*range(first, first + rank.local_size)} - {*there, rank.number})
        environment = Environment(host=socket.gethostname())
        silent = [Process(pid=0, role="rank", rank=number, environment=environment) for number in absent]
        return [replace(self._plan.header, complete=False, processes=(process,)) for process in silent]

    def _keep(self, record: Record) -> None:
        """Write the whole record: to the run's directory, and to where the user wants it."""
        paths = [os.path.join(self._plan.directory, storage.WHOLE)] if self._plan.directory else []
        for path in filter(None, [*paths, self._output]):
            try:
                storage.write(record, path)
            except OSError as error:
                say("error", f"{path}: the record cannot be written: {error.strerror}")

    def _export(self, record: Record) -> None:
        """Write what is wanted besides, with libraries from where they were before the script changed the path."""
        paths, sys.path[:] = sys.path[:], self._paths
        try:
            self._exports.write(record, self._options.quiet)
        finally:
            sys.path[:] = paths


_TAKEN_FOR_A_CRASH = (
    "the exit code is 1 because of what was found, not because the script failed; "
    "a launcher such as torchrun calls that a failure, which `--exit-zero` prevents"
)


def header(command: tuple[str, ...] = (), simulated: bool = False) -> Record:
    """A record of a run that begins now."""
    started = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    return Record(devlint=__version__, simulated=simulated, command=command, directory=os.getcwd(), started=started)


def _configure(options: Options) -> tuple[Resolver, Config]:
    from devlint.check.options import Options as CheckOptions
    from devlint.check.options import configure

    return configure(
        CheckOptions(
            paths=() if options.module else (options.script,),
            select=options.select,
            ignore=options.ignore,
            extend_select=options.extend_select,
            fail_on=options.fail_on,
            config=options.config,
            isolated=options.isolated,
        )
    )


def _check_torch() -> None:
    with contextlib.suppress(ImportError, ValueError):
        if "torch" in sys.modules or importlib.util.find_spec("torch") is not None:
            return
    raise ScriptError("torch is not installed for this Python: pip install 'devlint[audit]'")


def _plan(options: Options, simulator: Simulator | None, directory: str, rank: ranks.Rank | None) -> Plan:
    module = ("-m",) if options.module else ()
    # the package that is run is the project even where it is installed
    package = importlib.util.find_spec(options.script.partition(".")[0]) if options.module else None
    roots = (package and package.submodule_search_locations) or ()
    return Plan(
        header=header((*module, options.script, *options.arguments), options.simulate),
        directory=directory,
        simulator=simulator,
        # a launcher starts as many processes as there are devices
        devices=options.devices or (rank.local_size if rank is not None else 1),
        settings=Settings(steps=options.steps, sampling=not options.every_step, roots=tuple(roots)),
    )


def _directory(rank: ranks.Rank | None) -> str:
    try:
        return storage.new_run() if rank is None else storage.shared_run(rank.key)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say("warning", f"no record of the run is kept: {where}{error.strerror}")
        return ""


def _for_node(output: str, rank: ranks.Rank | None) -> str:
    """Each machine writes its own file, since they may share the disk."""
    output = os.path.abspath(output)  # the script may go elsewhere
    if rank is None or rank.node == 0:
        return output
    stem, suffix = os.path.splitext(output)
    return f"{stem}.node{rank.node}{suffix}"


def _pid(record: Record) -> int:
    return record.processes[0].pid if record.processes else 0


def _alive(pid: int) -> bool:
    if os.name != "posix":  # where asking like this would end the process
        return True
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return b") Z" not in stream.read()  # dead, but its parent has not asked yet
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's, or a system without /proc
        return True
