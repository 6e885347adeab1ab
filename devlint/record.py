"""The record of an audited run: what was seen, kept as data, so that it can be shown again without torch or a GPU.

One :class:`Record` holds a :class:`Process` for every process of the run.  It is written as JSON; ``FORMAT`` counts up
when a reader of the older one would misunderstand it.  All bytes are bytes, all times seconds; in a simulated run
times are ``None``, since they would say nothing about a real device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from devlint.observation import Observation

FORMAT = 1

WARM_UP = 2
"""So many training steps are left out of the median: caches fill, memory is allocated, kernels are chosen."""

FIRST_CALLS = 8
"""So many calls of an event in one step are told one by one."""

Phase = Literal["setup", "train", "eval", "inference", "between", "teardown"]
"""What a run was doing: ``inference`` is a loop of forward passes without autograd that no loader feeds, such as an
evaluation, a rollout or generation; ``between`` is the time after one loop and before the next."""
PHASES: tuple[Phase, ...] = ("setup", "train", "eval", "inference", "between", "teardown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A place in running code.

    ``file`` is an absolute path, or a name such as ``<stdin>``.  The span is that of the expression which was running
    and counts as ``ast`` does: lines from 1, columns in UTF-8 bytes from 0.  Only the line is known before Python 3.11.
    """

    file: str
    line: int
    function: str = ""
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The median training step, the first two (``WARM_UP``) left out where there are more."""

    calls: float = 0
    bytes: float = 0
    seconds: float | None = None
    copying: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened between the host and a device, from one place in the code, in one phase, in sum.

    ``kind`` and ``name``:

    * ``copy``: bytes went from ``source`` to ``target``; ``name`` is the operation (``copy_``, ``item``).
    * ``sync``: the host waited for the device (``nonzero``, ``torch.cuda.synchronize``).
    * ``pin``: host memory was copied to pinned memory.
    * ``move``: a ``.to``, ``.cuda`` or ``.cpu`` which returned its input, since that was on ``target`` already;
      ``name`` is the method, ``subject`` says whether of a tensor or a module.
    * ``call``: a call that costs by itself, such as ``torch.cuda.empty_cache``.

    ``frame`` is the innermost frame of the project, ``via`` the innermost frame of a library inside of that, of
    torch's layers, optimizers and distributions only where no other library is in between. ``backward`` says that
    autograd ran it, for the forward operation in ``frame``. ``pinned`` speaks of the host's side of a copy,
    ``blocking`` says whether the host waited, ``non_blocking`` what the code asked for; ``temporary`` that the copy
    needed a temporary tensor first (its memory was not dense, or its dtype changed).
    ``repeats`` counts copies of an unchanged tensor that this place had copied to the same device before.
    ``doubled`` counts copies of one that another place had copied there before. ``unwaited`` counts asynchronous
    copies to the host whose result was read before anything waited for them. ``loader`` is the index in
    ``Process.loaders`` of the loader whose batch it was. ``steps`` counts the steps of the phase in which it
    happened.
    """

    kind: Literal["copy", "sync", "pin", "move", "call"]
    name: str
    phase: Phase
    frame: Frame | None = None
    via: Frame | None = None
    source: str = ""
    target: str = ""
    subject: Literal["", "tensor", "module"] = ""
    backward: bool = False
    pinned: bool | None = None
    blocking: bool | None = None
    non_blocking: bool = False
    temporary: bool = False
    loader: int | None = None
    by: str = ""
    """What the innermost function of the place called for that; only a trace of the profiler tells, which knows no
    lines."""
    example: str = ""
    """Shape and dtype of one of the tensors, such as ``float32[64, 3, 32, 32]``."""
    calls: int = 0
    bytes: int = 0
    seconds: float | None = None
    copying: float | None = None
    """How long the devices copied, while the host waited or went on; only a trace of the profiler tells."""
    steps: int = 0
    repeats: int = 0
    doubled: int = 0
    double: Frame | None = None
    """Where the same was copied before, of the latest of those that are ``doubled``."""
    unwaited: int = 0
    threads: tuple[str, ...] = ()
    steady: Steady | None = None
    """Per training step; only in the phase ``train``."""

    @property
    def waits(self) -> bool:
        """Whether the host waited for the device, to read what that had yet to compute or without."""
        reading = self.kind == "copy" and self.source != "cpu" and self.target == "cpu" and self.blocking is True
        return self.kind == "sync" or reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The loop of the run: how many steps there were, and how long they took."""

    train: int = 0
    eval: int = 0
    inference: dict[str, int] = field(default_factory=dict)
    """Forward passes of the phase ``inference``, by the function that made them."""
    optimizer_steps: dict[str, int] = field(default_factory=dict)
    """Steps of each optimizer, by class name; a second one of a class is ``Adam 2``."""
    boundary: Literal["", "loader", "optimizer", "backward"] = ""
    """What a step was told by."""
    step_seconds: float | None = None
    """The median training step, the first two left out."""
    loader_seconds: float | None = None
    """The part of the median training step in which the loop waited for its loader."""
    limited: bool = False
    """Whether the run was stopped by ``--steps``."""

    def of(self, phase: str) -> int:
        """How many steps a phase has: training or evaluation steps, forward passes of inference, 0 of others."""
        return {"train": self.train, "eval": self.eval, "inference": sum(self.inference.values())}.get(phase, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What was not recorded, since recording it would have slowed the run down.

    In the forward and backward passes of ``steps`` training steps no copies were seen, and no waits but those for a
    value.  They are taken to be those of the steps that were recorded whole.
    """

    steps: int
    share: float = 0.0
    """How much of a step recording it whole takes, by estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an event."""

    start: float
    """When it began, in seconds since ``Process.began``."""
    seconds: float = 0.0
    """How long the host was blocked."""
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What of an event happened in one slice of the run."""

    event: int
    """The index of the event in ``Process.events``."""
    calls: int = 0
    bytes: int = 0
    seconds: float | None = None
    first: tuple[Call, ...] = ()
    """The first calls (``FIRST_CALLS``) one by one; none in a simulated run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A step of the run, or what happened in one go and was no step."""

    phase: Phase
    number: int | None = None
    """Which step of its phase it is, from 1; ``None`` for what was no step."""
    start: float | None = None
    """When it began, in seconds since ``Process.began``; only of a step."""
    seconds: float | None = None
    waited: float | None = None
    """How long the loop waited for its loader."""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """A DataLoader that was iterated."""

    name: str
    """The class, such as ``torch.utils.data.DataLoader``."""
    frame: Frame | None = None
    """Where it was made."""
    workers: int = 0
    pin_memory: bool = False
    pin_memory_given: bool = False
    """Whether the constructor of the loader was given ``pin_memory``, be it by a function that makes loaders."""
    device: str = ""
    """Where its batches are: ``cpu``, ``cuda:0``, or empty where they hold no tensor."""
    pinned: bool | None = None
    """Whether its batches arrive pinned."""
    batches: int = 0
    batch: str = ""
    """What a batch looks like: ``float32[64, 3, 32, 32], int64[64]``."""
    training: bool = False
    """Whether training steps were fed by it."""
    error: str = ""
    """The message with which it failed, empty if it did not."""
    custom: bool = False
    """Whether its batches are of a type that only its own ``pin_memory()`` method, if any, can pin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One side of a mismatch: an input, a parameter, a tensor in a variable."""

    text: str
    """How the code, or the path of the module, names it: ``x``, ``self.pos``, ``encoder.weight``."""
    device: str
    example: str = ""
    role: Literal["input", "parameter", "buffer", "attribute", "variable"] = "variable"
    why: str = ""
    """Why it is there, where that is known: ``heads`` is a plain list, so ``.to()`` did not move it."""
    origin: Frame | None = None
    """Where it was put there, or assigned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Tensors on different devices met in one place; ``error`` is what torch said, empty where it did not mind."""

    frame: Frame | None
    via: Frame | None = None
    module: str = ""
    """The path of the module that was running, from the outermost one: ``encoder.heads.0``."""
    module_class: str = ""
    parties: tuple[Party, ...] = ()
    error: str = ""
    calls: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A tensor or a module which a module holds without having registered it, so that ``.to()`` leaves it alone."""

    owner: str
    """The class of the module."""
    path: str
    """The path of the module from the outermost one, empty for that one itself."""
    name: str
    kind: Literal["tensor", "module"]
    container: Literal["", "list", "tuple", "dict"] = ""
    device: str = ""
    owner_device: str = ""
    example: str = ""
    frame: Frame | None = None
    """The assignment in the code of the class."""
    parameters: int = 0
    """How many elements the parameters of an unregistered module have."""
    optimized: bool = False
    """Whether an optimizer holds those parameters all the same."""
    moved: tuple[Frame, ...] = ()
    """Where it was copied to the module's device, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A live DataParallel or DistributedDataParallel."""

    name: str
    frame: Frame | None = None
    device_ids: tuple[int, ...] | None = None
    module_device: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """An optimizer: its parameters when it was made, and when it stepped."""

    name: str
    frame: Frame | None = None
    parameters: int = 0
    """How many tensors it holds."""
    made_on: tuple[str, ...] = ()
    """Devices of its parameters when it was made."""
    stepped_on: tuple[str, ...] = ()
    """Devices of its parameters at its first step, empty if it never stepped."""
    moved: Frame | None = None
    """The move of the module after it was made."""
    state_on: tuple[str, ...] = ()
    """Devices of the state it held when the parameters moved; scalars left out."""
    orphans: int = 0
    """How many of its parameters had stopped to be those of their module when it stepped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An accelerator of the machine."""

    name: str
    """``cuda:0``."""
    model: str = ""
    capability: tuple[int, int] | None = None
    memory: int = 0
    peak: int = 0
    """The most bytes that tensors took at once."""
    reserved: int = 0
    """The most bytes that the allocator held at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the run ran on; empty or ``None`` is unknown."""

    python: str = ""
    platform: str = ""
    torch: str = ""
    build: str = ""
    """What torch was built for: ``CUDA 12.8``, ``ROCm 6.3``, ``CPU``."""
    driver: str = ""
    devices: tuple[Device, ...] = ()
    cpu_count: int = 0
    visible_devices: str | None = None
    """``CUDA_VISIBLE_DEVICES``, if set."""
    host: str = ""
    """The machine's name where several took part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What was seen of the modules that ran, as far as advice needs it."""

    outermost: tuple[str, ...] = ()
    """Classes of the modules that were called from outside any module."""
    devices: tuple[str, ...] = ()
    """Where their parameters were at their last call."""
    parameters: int = 0
    """How many elements their parameters have together; what they share counts once."""
    dtypes: tuple[str, ...] = ()
    autocast: str = ""
    """The dtype of autocast, where a module ran under it."""
    unaligned: tuple[str, ...] = ()
    """Low-precision matmuls with a dimension that is no multiple of 8: ``head (Linear 512 -> 10,001, float16)``."""
    managed: str = ""
    """What places the modules itself: ``accelerate``, ``FSDP``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a process ended."""

    kind: Literal["finished", "exception", "exit", "interrupted", "terminated", "steps", "unknown"] = "unknown"
    """``unknown``: it was killed; what is here comes from its last snapshot."""
    code: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one process saw."""

    pid: int
    role: Literal["main", "rank", "child", "loader worker"] = "main"
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    device: str = ""
    """The device that most of its copies went to; with several ranks, each should have its own."""
    backend: str = ""
    """The dispatch key that was listened to: ``CUDA``, ``MPS``; empty before the script used torch."""
    ending: Ending = Ending()
    seconds: float = 0.0
    environment: Environment = Environment()
    steps: Steps = Steps()
    sampled: Sampled | None = None
    """What was left out, ``None`` if nothing was."""
    events: tuple[Event, ...] = ()
    began: float | None = None
    """When, in seconds since 1970: where the times of ``timeline`` count from."""
    timeline: tuple[Slice, ...] = ()
    """The steps one by one; of a long run every second, fourth, ... of them."""
    loaders: tuple[Loader, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    strays: tuple[Stray, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    optimizers: tuple[Optimizer, ...] = ()
    models: Models = Models()
    observations: tuple[Observation, ...] = ()
    """Where the project's own functions had their arguments; empty before Python 3.12."""
    notes: tuple[str, ...] = ()
    """What the reader has to know of how this was observed."""
    failure: str = ""
    """Why devlint switched itself off, empty if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A whole run.  ``findings`` and ``advice`` are ``None`` until the run has been judged."""

    format: int = FORMAT
    devlint: str = ""
    source: Literal["", "profiler"] = ""
    """Who watched the run where devlint did not: PyTorch's profiler."""
    simulated: bool = False
    complete: bool = False
    """Whether the run came to its end; a snapshot is not complete."""
    command: tuple[str, ...] = ()
    directory: str = ""
    """Where it ran."""
    started: str = ""
    """ISO 8601, with the offset."""
    processes: tuple[Process, ...] = ()
    findings: tuple[dict[str, Any], ...] | None = None
    """As in the JSON of ``devlint check``, with a ``measured`` besides."""
    advice: tuple[str, ...] | None = None
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files in ``sources``, and of those with ``observations``, when the run was judged, in hexadecimal:
    whether one is still what ran."""
    sources: dict[str, dict[int, str]] = field(default_factory=dict)
    """The lines of code that the record speaks of, with some around them, by file and number."""
