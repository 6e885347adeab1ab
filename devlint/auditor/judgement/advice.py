"""Advice on a run: what would make it faster or make it fit, each line with the figures that it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from devlint.record import WARM_UP, Environment, Event, Loader, Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.header import called
from devlint.report.audit.processes import shared, trainers
from devlint.report.wording import duration, listed, plural, rank_list, share, size

ENOUGH_STEPS = 3
"""A median of fewer training steps, the warm-up left out, says nothing of the next run."""
LOADER_SHARE = 0.05
"""TensorBoard's profiler plugin calls the loader a bottleneck from 5 % of the step on."""
MEMORY_SHARE = 0.9
"""The same plugin warns of a device whose memory was used to more than 90 %."""
FRAGMENTED = 0.7
"""The allocator held so little of its memory in tensors at most: a guess, and only said where memory is short."""
BLOCKED_SHARE = 0.2
"""A host that is blocked for a smaller part of the step has time left to keep the device fed."""
DEVICE_BOUND = 0.3
"""A host that waits for the device for this part of the step or more says that the device's work decides."""
SMALL = 10_000
"""A model of fewer parameters, such as the policies of reinforcement learning, may well run faster on the host."""
TENSOR_CORES, BFLOAT16 = (7, 0), (8, 0)
"""The least capability with tensor cores (Volta), and with bfloat16 in them (Ampere); NVIDIA's guide to mixed
precision says the same of dimensions that are multiples of 8."""
_LOW = ("float16", "bfloat16", "float8")
_ADAMS = ("Adam", "NAdam", "RAdam", "SparseAdam")
_MOST_SHAPES = 3


def advise(record: Record) -> tuple[str, ...]:
    """The lines of advice, the most important first; none that this run's own figures do not ask for."""
    code = Code(record)
    lines = [*_builds(record), *_unused_devices(record), *_sharing(record), *_memory(record)]
    lines += _cache_emptied(record, code)
    if not record.simulated:
        lines += [*_loading(record, code), *_blocked(record, code), *_precision(record)]
    lines += _alignment(record)
    return tuple(lines)


def _builds(record: Record) -> Iterator[str]:
    known = (process.environment for process in record.processes if process.environment.torch)
    environment = next(known, Environment())
    if environment.build == "CPU" and environment.driver and not record.simulated:
        yield (
            f"torch {environment.torch} is a CPU build, though the machine has a graphics driver "
            f"({environment.driver}): install the build for your card, see pytorch.org/get-started"
        )


def _unused_devices(record: Record) -> Iterator[str]:
    for process in trainers(record)[:1]:
        models, devices, train = process.models, process.environment.devices, process.steps.train
        if not devices or models.managed or not models.outermost or {*map(_kind, models.devices)} != {"cpu"}:
            continue
        steps = f" in {f'all {train:,} training steps' if train > 1 else 'the only training step'}" if train else ""
        parameters = f", {models.parameters:,} parameters" if models.parameters else ""
        device = devices[0]
        small = ", unless so small a model is faster there" if 0 < models.parameters < SMALL else ""
        yield (
            f"the model ({models.outermost[0]}{parameters}) was on the CPU{steps}, though {called(device)} is there: "
            f'move it with `.to("{_kind(device.name)}")` before the optimizer is made, and each batch too{small}'
        )


def _sharing(record: Record) -> Iterator[str]:
    for device, users in shared(record):
        peaks = [each.peak for process in users for each in process.environment.devices if each.name == device]
        took = f", and took {size(sum(peaks))} of its memory together" if any(peaks) else ""
        there = max(len(process.environment.devices) for process in users)
        others = f", though there are {there} devices" if there > 1 else ""
        yield (
            f"{rank_list(process.rank or 0 for process in users)} share {device}{others}{took}: give each its own, "
            "with `torch.cuda.set_device(local_rank)` before anything is moved"
        )


def _memory(record: Record) -> Iterator[str]:
    ran_out = any("out of memory" in process.ending.error.lower() for process in record.processes)
    cards = (device for process in record.processes for device in process.environment.devices if device.memory)
    device = max(cards, key=lambda each: max(each.peak, each.reserved) / each.memory, default=None)
    full = device is not None and max(device.peak, device.reserved) > MEMORY_SHARE * device.memory
    if not ran_out and not full:
        return
    took = ""
    if device is not None and device.peak:
        took = f"tensors took {size(device.peak)} of the {size(device.memory)} of {device.name} at the peak"
        took += f" ({share(device.peak, device.memory)})"
    lead = "the run ran out of memory" if ran_out else ""
    yield f"{'; '.join(filter(None, [lead, took]))}: {_remedies(record)}"
    if device is not None and device.peak and device.peak < FRAGMENTED * device.reserved:
        yield (
            f"the allocator held {size(device.reserved)} for {size(device.peak)} of tensors: its memory is in "
            "pieces, which `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` helps to avoid"
        )


def _remedies(record: Record) -> str:
    """What saves memory in this run: that depends on whether the model or its activations take it."""
    process = (trainers(record) or list(record.processes))[0]
    models = process.models
    held = _state_bytes(process)
    low = models.autocast or any(dtype.startswith(_LOW) for dtype in models.dtypes)
    precision = [] if low or not models.dtypes else [f"mixed precision (it ran in {models.dtypes[0]})"]
    memory = max((device.memory for device in process.environment.devices), default=0)
    if held and memory and held > memory / 2:
        ways = ["splitting the model (`torch.distributed.fsdp.fully_shard`)", "an optimizer with less state"]
        taken = f"its parameters, gradients and optimizer take about {size(held)}"
        return f"{taken}; what helps is {listed([*ways, *precision], last='or')}"
    ways = ["a smaller batch with gradient accumulation", *precision, "activation checkpointing"]
    besides = f", since parameters, gradients and optimizer take only about {size(held)}" if held and memory else ""
    return f"what helps is {listed(ways, last='or')}{besides}"


def _state_bytes(process: Process) -> int:
    """Parameters and gradients, and what the optimizer keeps for each: two values for Adam and its kin, else one."""
    if not process.models.parameters or not process.steps.train or process.models.managed:
        return 0
    width = 2 if any(dtype.startswith(_LOW) for dtype in process.models.dtypes) else 4
    kept = 2 if any(name.startswith(_ADAMS) for name in process.steps.optimizer_steps) else 1
    return process.models.parameters * width * (2 + kept)


def _cache_emptied(record: Record, code: Code) -> Iterator[str]:
    if any(found["name"] == "cache-flush-in-loop" for found in record.findings or ()):
        return  # it has been said, with the code
    for process in trainers(record)[:1]:
        for event in process.events:
            often = event.steps * 2 >= process.steps.train > 1
            if event.kind == "call" and event.name.endswith("empty_cache") and event.phase == "train" and often:
                where = f" at {code.place(event.frame)}" if event.frame else ""
                each = (event.seconds or 0.0) / max(event.calls, 1)
                took = f" and took {duration(each)} each time" if each else ""
                yield (
                    f"`empty_cache()`{where} ran in {event.steps:,} of {plural(process.steps.train, 'training step')}"
                    f"{took}: each time the memory has to be asked from the driver again; call it once, or not at all"
                )


def _loading(record: Record, code: Code) -> Iterator[str]:
    slow = [process for process in _measured(record) if _waiting(process) >= LOADER_SHARE]
    if not slow:
        return
    process = max(slow, key=_waiting)
    step, waited = process.steps.step_seconds or 0.0, process.steps.loader_seconds or 0.0
    loaders = [loader for loader in process.loaders if loader.training]
    who = f" (rank {process.rank})" if process.rank is not None and len(slow) > 1 else ""
    where = f" at {code.place(loaders[0].frame)}" if loaders and loaders[0].frame else ""
    yield (
        f"the loop waited for its loader{where} for {duration(waited)} of each {duration(step)} step "
        f"({share(waited, step)}){who}" + (_more_workers(record, process, loaders[0], step, waited) if loaders else "")
    )


def _more_workers(record: Record, process: Process, loader: Loader, step: float, waited: float) -> str:
    """How many workers would keep up: as many as the loading of a batch is longer than the rest of the step."""
    beside = sum(other.environment.host == process.environment.host for other in trainers(record))
    cpus = process.environment.cpu_count // max(beside, 1)
    load = waited if loader.workers == 0 else loader.workers * step
    rest = max(step - waited, 1e-9)
    wanted = math.ceil(load / rest) + (loader.workers == 0)
    if wanted <= loader.workers:
        return ""
    if cpus and loader.workers >= cpus:
        return (
            f"; its {plural(loader.workers, 'worker')} use all {plural(cpus, 'CPU')} there are for it, so loading "
            "itself has to get cheaper: prepare data ahead, or move transforms to the device"
        )
    fits = min(wanted, cpus) if cpus else wanted
    short = " (all the CPUs there are for it; more would be needed)" if fits < wanted else ""
    if not loader.workers:
        itself = "with `num_workers=0` the loop loads each batch itself"
        return f": {itself}; `num_workers={fits}`{short} would load while the device works"
    instead = f"`num_workers={fits}` instead of {loader.workers} workers{short}"
    return f": {instead} would keep up, as a batch takes about {duration(load)} to load"


def _blocked(record: Record, code: Code) -> Iterator[str]:
    for process in _measured(record)[:1]:
        step = process.steps.step_seconds or 0.0
        events = _blocking(process)
        total = sum(map(_seconds, events))
        if total < BLOCKED_SHARE * step or not events:
            continue
        worst = max(events, key=_seconds)
        place = f" of it at {code.place(worst.frame)}" if worst.frame else ""
        yield (
            f"the host was blocked for {duration(total)} of each {duration(step)} step ({share(total, step)}), "
            f"{duration(_seconds(worst))}{place}: meanwhile nothing is queued for the device{_instead(worst)}"
        )


def _instead(event: Event) -> str:
    if event.kind == "copy" and event.name == "item":
        return "; keep the value on the device, and read it every so many steps"
    if event.kind == "copy" and _kind(event.source) == "cpu":
        pin = "" if event.pinned else "pin the loader's memory and "
        return f"; {pin}copy with `non_blocking=True`"
    return ""


def _precision(record: Record) -> Iterator[str]:
    for process in _measured(record)[:1]:
        models, step = process.models, process.steps.step_seconds or 0.0
        cards = {device.name: device for device in process.environment.devices}
        card = next((cards[name] for name in models.devices if name in cards), None)
        if card is None or card.capability is None or card.capability < TENSOR_CORES:
            continue
        if models.autocast or not models.dtypes or any(dtype != "float32" for dtype in models.dtypes):
            continue
        waited = sum(map(_seconds, _blocking(process)))
        if waited < DEVICE_BOUND * step:
            continue
        brain = card.capability >= BFLOAT16
        how = "bfloat16" if brain else "float16"
        scaled = "" if brain else " with a `GradScaler`"
        name = f"{card.model or card.name} (capability {card.capability[0]}.{card.capability[1]})"
        yield (
            f"the model ran in float32, and the host waited for the device for {duration(waited)} of each "
            f'{duration(step)} step ({share(waited, step)}): `torch.autocast("{_kind(card.name)}", dtype=torch.{how})`'
            f"{scaled} would use the tensor cores of the {name}"
        )


def _alignment(record: Record) -> Iterator[str]:
    for process in trainers(record)[:1]:
        capable = [device for device in process.environment.devices if (device.capability or (0, 0)) >= TENSOR_CORES]
        if process.models.unaligned and capable:
            yield (
                f"{listed(process.models.unaligned, _MOST_SHAPES)}: tensor cores work at full speed where all "
                "dimensions are multiples of 8, so pad them"
            )


def _measured(record: Record) -> list[Process]:
    """The processes whose steady state is known, the slowest first."""
    enough = [process for process in trainers(record) if process.steps.train - WARM_UP >= ENOUGH_STEPS]
    found = [process for process in enough if process.steps.step_seconds]
    return sorted(found, key=lambda process: -(process.steps.step_seconds or 0.0))


def _waiting(process: Process) -> float:
    step = process.steps.step_seconds
    return (process.steps.loader_seconds or 0.0) / step if step else 0.0


def _blocking(process: Process) -> list[Event]:
    """What stopped the host in a training step until the device was done."""
    timed = [event for event in process.events if event.phase == "train" and _seconds(event)]
    return [event for event in timed if event.kind == "sync" or (event.kind == "copy" and event.blocking)]


def _seconds(event: Event) -> float:
    return (event.steady.seconds or 0.0) if event.steady else 0.0


def _kind(device: str) -> str:
    """The type of a device by its name."""
    return device.partition(":")[0]
