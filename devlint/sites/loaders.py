"""Sites of data loaders: what makes their samples, who draws their order, what trains with their batches."""

from __future__ import annotations

import ast
from dataclasses import field

from devlint.device import Device
from devlint.immutable import immutable
from devlint.sites.base import Site, Step
from devlint.sites.transfers import Transfer


@immutable(frozen=True, slots=True)
class Load(Site):
    """A data loader, and the places where its batches are put on a device.

    ``keywords`` maps the keyword arguments to their nodes; ``open`` says that more arguments may come in through
    ``**``.  ``batches`` is where the batches are made, ``escapes`` says that the loader leaves the code that can be
    seen.  ``pinned`` says whether it pins them, ``workers`` how many processes make them, and
    ``training`` what trains with them.  ``put`` is the place where a function of the file, which makes the samples or
    the batches, returns tensors that it has put on ``batches``.  ``anywhere`` says that the samples are tensors, or a
    list of some, of which nothing tells that they are on the host.  ``released`` says that the code to which the loader
    goes makes copies with ``non_blocking=True``; ``given`` that a run has seen it get a ``pin_memory`` which the code
    at hand does not show.
    """

    loader: str
    keywords: dict[str, ast.AST] = field(hash=False)
    open: bool
    batches: Device
    moves: tuple[Transfer, ...]
    custom_batches: bool = False
    escapes: bool = False
    pinned: bool | None = None
    workers: int | None = None
    training: Training | None = None
    put: Step | None = None
    anywhere: bool = False
    released: bool = False
    given: bool = False


@immutable(frozen=True, slots=True)
class Training:
    """What a loader is to a loop that trains with its batches.

    ``at_hand`` says that the samples are in memory, ``whole`` that each process gets all of them where the model is
    ``wrapped`` for several.  ``sampler`` shuffles alike in each of the ``epochs``, which nobody tells it of.
    """

    at_hand: bool
    epochs: Step | None
    wrapped: Step | None
    sampler: Step | None
    whole: bool


@immutable(frozen=True, slots=True)
class Idle(Site):
    """A sampler for several processes that its function gives to nobody; ``told`` is where it gets the epoch."""

    told: Step | None


@immutable(frozen=True, slots=True)
class Worker:
    """A loader at ``node`` as the owner of worker processes: how many (``None``: not known), and how they start.

    ``context`` is "fork" where the code says nothing, and empty where it cannot be told; ``open`` says that more
    arguments may come in through ``**``.
    """

    node: ast.AST
    workers: int | None
    context: str
    open: bool = False


@immutable(frozen=True, slots=True)
class SampleWork(Site):
    """Code that makes samples or batches puts something on a device.

    ``role`` is what runs it: "__getitem__", "__iter__", "collate_fn", "transform", "worker_init_fn"; ``loaders`` are
    those of the file that do, none where they are elsewhere.
    """

    role: str
    place: Device
    loaders: tuple[Worker, ...]


@immutable(frozen=True, slots=True)
class Draw(Site):
    """A random order is drawn: the numbers on the device ``default``, with a generator on the device ``place``.

    ``generator`` is the argument that gives it, ``None`` where ``drawer`` brings its own; ``default_by`` is where the
    default device was set.
    """

    drawer: str
    generator: ast.AST | None
    place: Device
    default: Device
    default_by: Step | None = None
