"""The head of a report: what the run ran on, how it ended, its steps."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator

from devlint.record import Device, Environment, Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.findings import fatal
from devlint.report.audit.processes import leaders, ranks, shared, title, trainers, waiting
from devlint.report.audit.summary import in_short
from devlint.report.terminal import BLUE, BOLD, Paint, one_line
from devlint.report.wording import between, duration, listed, number, plural, rank_list, share, size

CONFIRMED: frozenset[str] = frozenset()
"""Backends on whose hardware the counts of an audit have been compared with a profiler's; see ``tests/gpu``.

Those of simulated runs have been, with recordings of real cards: ``docs/confirmed.md``.
"""

_NO_STEPS = "the script told the profiler of none"
_LABEL = 9
_MOST_DEVICES = 8
_BOUNDARIES = {
    "loader": "a step begins when the loop takes a batch",
    "optimizer": "a step ends when the optimizer has stepped",
    "backward": "a step ends with backward",
}


def header(record: Record, code: Code, paint: Paint) -> Iterator[str]:
    """Yield the lines of the head."""
    yield paint(BOLD, command(record))
    yield ""
    before = ""
    for label, text in facts(record, code):
        lead, blank = (f"  {paint(BLUE, f'{shown:<{_LABEL}}')}  " for shown in (label if label != before else "", ""))
        yield from paint.hanging(one_line(text), lead, blank, _LABEL + 4)
        before = label


def command(record: Record) -> str:
    """The command line of the audit, without devlint's own options but one."""
    if record.source:
        only = record.processes[0] if len(record.processes) == 1 else None
        rank = [f"rank {only.rank} of {only.world_size}"] if only is not None and only.rank is not None else []
        return one_line(": ".join(["PyTorch's profiler", *(record.command or rank)]))
    text = f"devlint audit{' --simulate' if record.simulated else ''} {shlex.join(record.command)}"
    return one_line(text.strip())


def facts(record: Record, code: Code) -> Iterator[tuple[str, str]]:
    """Yield what the head says, each with its label; several may have the same."""
    parts: tuple[Callable[[Record, Code], Iterator[tuple[str, str]]], ...] = (
        _in_short, _environment, _ranks, _model, _loaders, _run, _steps, _sampled, _caveats,
    )  # fmt: skip
    for part in parts:
        yield from part(record, code)


def _in_short(record: Record, code: Code) -> Iterator[tuple[str, str]]:
    if text := in_short(record, code):
        yield "in short", text


def _environment(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    known = [process.environment for process in record.processes if process.environment.torch or record.source]
    if not known:
        yield "torch", "was not imported" if record.complete else "had not been imported yet"
        return
    for text in filter(None, dict.fromkeys(map(_torch, known))):
        yield "torch", text
    for text in filter(None, dict.fromkeys(map(_system, known))):
        yield "system", text
    hosts = {environment.host: environment for environment in known}
    for host in hosts:
        found = list(_devices(record, host))
        prefix = f"{host}: " if host and len(hosts) > 1 else ""
        visible = hosts[host].visible_devices
        none = "none was visible" + (f", with CUDA_VISIBLE_DEVICES={visible!r}" if visible is not None else "")
        for text in found or [none]:
            yield "devices", prefix + text


def _torch(environment: Environment) -> str:
    torch = environment.torch.partition("+")[0]
    if environment.build == "CPU":
        parts = [f"{torch}, a CPU build: it cannot use a GPU"]
    else:
        parts = [f"{torch} for {environment.build}" if environment.build else torch]
    parts += [f"driver {environment.driver}"] if environment.driver else []
    return ", ".join(parts)


def _system(environment: Environment) -> str:
    python = f"Python {environment.python}" if environment.python else ""
    cores = plural(environment.cpu_count, "CPU") if environment.cpu_count else ""
    return ", ".join(filter(None, [python, environment.platform, cores]))


def _devices(record: Record, host: str) -> Iterator[str]:
    merged: dict[str, list[Device]] = {}
    for process in record.processes:
        if process.environment.host == host:
            for device in process.environment.devices:
                merged.setdefault(device.name, []).append(device)
    used = {name for name, seen in merged.items() if any(device.peak for device in seen)}
    if record.source:  # it lists all devices of the machine
        events = [event for process in record.processes for event in process.events]
        used = {name for event in events for name in (event.source, event.target)} & merged.keys()
    chosen = [name for name in merged if name in used or not used][:_MOST_DEVICES]
    for name in chosen:
        yield _device(merged[name])
    if len(merged) > len(chosen):
        unused = used >= set(chosen) and used and not record.source
        yield f"and {len(merged) - len(chosen)} more{', unused' if unused else ''}"


def _device(seen: list[Device]) -> str:
    """A device as several processes saw it; what each took of it adds up."""
    device = seen[0]
    parts = [called(device)]
    if device.capability:
        parts.append("capability {}.{}".format(*device.capability))
    peak = sum(each.peak for each in seen)
    if peak and device.memory:
        parts.append(f"peak {size(peak)} of {size(device.memory)} ({share(peak, device.memory)})")
    elif device.memory or peak:
        parts.append(size(device.memory) if device.memory else f"peak {size(peak)}")
    return ", ".join(parts)


def called(device: Device) -> str:
    """``cuda:0``, with its maker's name if it has a maker."""
    return f"{device.name} {device.model}".rstrip()


def _ranks(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    every = ranks(record)
    if not every:
        return
    hosts = len({process.environment.host for process in every})
    where = f" on {plural(hosts, 'machine')}" if hosts > 1 else ""
    placed = [f"{title(process)} on {process.device}" for process in every if process.device]
    yield "ranks", f"{len(every)}{where}" + (f": {listed(placed)}" if placed else "")
    for device, users in shared(record):
        yield "ranks", f"{rank_list(process.rank or 0 for process in users)} share {device}"


def _model(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    for process in trainers(record)[:1]:
        models = process.models
        if not models.outermost:
            continue
        parts = [listed(models.outermost, 4)]
        parts += [f"{_millions(models.parameters)} parameters"] if models.parameters else []
        parts += [listed(models.dtypes, 3)] if models.dtypes else []
        devices = dict.fromkeys(device for each in trainers(record) for device in each.models.devices)
        parts += [f"on {listed(list(devices), 4)}"] if devices else []
        parts += [f"autocast to {models.autocast}"] if models.autocast else []
        parts += [f"placed by {models.managed}"] if models.managed else []
        yield "model", ", ".join(parts)


def _millions(count: int) -> str:
    for least, unit in ((1_000_000_000, "billion"), (1_000_000, "million")):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count:,}"


def _loaders(record: Record, code: Code) -> Iterator[tuple[str, str]]:
    fed = [loader for process in trainers(record)[:1] for loader in process.loaders if loader.training]
    for loader in fed[:3]:
        name = code.place(loader.frame) if loader.frame else loader.name.rpartition(".")[2]
        parts = [f"{name}: {plural(loader.workers, 'worker')}"]
        if loader.device.startswith("cpu"):
            parts.append("pinned" if loader.pinned else "pageable")
        elif loader.device:
            parts.append(f"on {loader.device}")
        parts += [f"batches of {loader.batch}"] if loader.batch else []
        yield "loader", ", ".join(parts)


def _run(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    if record.source and not record.simulated:  # what was before and after, and how it ended, is not in a trace
        if spans := [process.seconds for process in leaders(record)]:
            yield "recorded", between(spans, duration)
        return
    died_of = fatal(record)
    main = leaders(record)
    groups: dict[str, list[Process]] = {}
    for process in main:
        known = died_of is not None and died_of in process.mismatches
        groups.setdefault(_ending(process, known), []).append(process)
    for text, group in groups.items():
        numbers = [process.rank for process in group if process.rank is not None]
        who = rank_list(numbers) if len(numbers) == len(group) else listed([title(process) for process in group])
        seconds = max(process.seconds for process in group)
        after = f" after {duration(seconds)}" if seconds > 0 and not record.simulated else ""
        yield "run", f"{f'{who}: ' if len(groups) > 1 else ''}{text.replace(_AFTER, after)}"
    helpers = Counter(process.role for process in record.processes)
    children = helpers["child"] if len(main) < len(record.processes) else 0
    counts = [plural(children, "subprocess", "subprocesses")] if children else []
    counts += [plural(helpers["loader worker"], "loader worker")] if helpers["loader worker"] else []
    if counts:
        yield "run", f"with {listed(counts)}"
    if record.started:
        yield "started", record.started[:16].replace("T", " ")


def _ending(process: Process, explained: bool) -> str:
    ending = process.ending
    error = " of the mismatch below" if explained else f": {ending.error}" if ending.error else " of an exception"
    texts = {
        "finished": f"finished{_AFTER}",
        "exception": f"died{_AFTER}{error}",
        "exit": f"exited{_AFTER} with code {ending.code}",
        "interrupted": f"interrupted by Ctrl-C{_AFTER}",
        "terminated": f"terminated by {ending.error or 'a signal'}{_AFTER}",
        "steps": f"stopped by --steps{_AFTER}",
        "unknown": f"killed; this is what was known{_AFTER}",
    }
    return texts[ending.kind]


_AFTER = "\0"
"""Where in these texts the time goes: it differs between processes that ended alike."""


def _steps(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    processes = trainers(record)
    if not processes:
        return
    trained = between([process.steps.train for process in processes], number)
    evaluated = max(process.steps.eval for process in record.processes)
    parts = []
    if trained != "0":
        optimizers = [f"{count:,} of {name}" for name, count in processes[0].steps.optimizer_steps.items()]
        parts.append(f"{trained} training" + (f" ({listed(optimizers, 4)})" if optimizers else ""))
    parts += [f"{evaluated:,} evaluation"] if evaluated else []
    if passes := processes[0].steps.inference:
        parts.append(f"{plural(sum(passes.values()), 'forward pass', 'forward passes')} in {_functions(list(passes))}")
    boundary = processes[0].steps.boundary
    parts = parts or [_NO_STEPS if record.source else "no step of a training loop was seen"]
    yield "steps", ", ".join(parts) + (f"; {_BOUNDARIES[boundary]}" if boundary else "")
    timed = [process.steps.step_seconds for process in processes if process.steps.step_seconds]
    if timed and not record.simulated:
        several = any(process.steps.train > 1 or process.steps.eval > 1 for process in record.processes)
        text = f"{between(timed, duration)}{' in the median' if several else ''}"
        if found := waiting(processes):
            part, waited, worst = found
            text += f", {'at worst ' if worst else ''}{waited} of it ({part}) waiting for the loader"
        yield "step", text


def _functions(names: list[str]) -> str:
    named = [f"{name}()" for name in names if name and not name.startswith("<")]
    return listed(named, 3) if named else "a loop of inference"


def _sampled(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    left = [process for process in trainers(record) if process.sampled is not None]
    if not left:
        return
    whole = between([each.steps.train - each.sampled.steps for each in left if each.sampled], number)
    cost = max(each.sampled.share for each in left if each.sampled)
    text = (
        f"{whole} training steps whole, as that takes {share(cost, 1)} of a step; in the forward and backward passes "
        "of the others, copies are taken to be the same (`--every-step` records all)"
    )
    yield "recorded", text


def _caveats(record: Record, _code: Code) -> Iterator[tuple[str, str]]:
    if record.simulated:
        yield "note", "the device was simulated: what is counted is real, times would mean nothing and are left out"
        return
    if record.source:
        return  # these are the profiler's figures
    backends = {process.backend for process in record.processes if process.backend} - CONFIRMED
    if backends:
        names = listed(sorted(backends))
        yield "note", f"devlint's figures have not been compared with a profiler's on {names} hardware yet"
