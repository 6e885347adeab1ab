"""The vocabulary: places where something happens to a device.

The static wing infers sites from the code, the audit observes them in a run; a rule looks at one kind of site and does
not ask where it came from.  What a wing cannot know is ``None`` (or empty), and a rule never guesses.
"""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING

from devlint.device import UNKNOWN, Device
from devlint.immutable import immutable
from devlint.measurement import Measurement

if TYPE_CHECKING:
    from devlint.loader_sites import Training


@immutable(frozen=True, slots=True)
class Step:
    """A place in a value's story, e.g. "created on the CPU here"."""

    node: ast.AST
    label: str


@immutable(frozen=True, slots=True)
class Scope:
    """What surrounds a site.

    ``function`` and ``owner`` (its class) are names, empty at module level.  ``module`` says that the owner is an
    ``nn.Module`` and the code can run after the module was moved; ``loop`` is the innermost loop, ``step`` says that
    every round of it is, or is a part of, a training or evaluation step, ``sometimes`` that only some of its rounds
    come here (a setting that no round changes holds for all of them); ``called`` that a loop of steps in this file
    calls the function in every round.  ``guarded`` says that the code only runs where an accelerator is available,
    ``handler`` that it handles an exception, or that its own failure is handled, ``test`` that it belongs to a test.
    ``required`` says that it is only reached after a call that raises without CUDA, ``counted`` that it was asked how
    many accelerators there are.  ``devices`` are the device expressions that the code has at hand, best first.
    ``device_aware`` says that the function places other tensors by device.  ``bound`` says that it uses what knows CUDA
    alone: a library, or NCCL.
    """

    function: str = ""
    owner: str = ""
    module: bool = False
    loop: ast.AST | None = None
    step: bool = False
    guarded: bool = False
    handler: bool = False
    test: bool = False
    device_aware: bool = False
    devices: tuple[str, ...] = ()
    sometimes: bool = False
    called: bool = False
    required: bool = False
    counted: bool = False
    bound: bool = False


@immutable(frozen=True, slots=True)
class Operand:
    """A tensor that takes part in something.

    ``many`` says whether it surely has (``True``) or surely lacks (``False``) dimensions: a 0-dim CPU tensor may meet
    an accelerator.  ``certain`` says that it is proven to be a tensor.  ``factory`` is the torch function that made
    it on the default device, in the same function and with no device asked for, ``blended`` are the other creations of
    what it was computed from: they have to move with it; ``scattered`` says that on other paths other functions made
    it.  ``attribute`` is the assignment of the plain attribute of a module through which it came.  ``role`` is the
    parameter it is passed to, where that matters.  ``derived`` says that it came out of a call that could not be
    followed, so that its device is only likely the one of what went in; ``near`` is that device, where it is no
    argument's.  ``grad`` is "parameter" or "leaf" for what collects gradients, "graph" for what may be computed from
    such.
    """

    node: ast.AST
    text: str
    device: Device = UNKNOWN
    many: bool | None = None
    certain: bool = False
    story: tuple[Step, ...] = ()
    factory: str = ""
    factory_node: ast.AST | None = None
    blended: tuple[tuple[str, ast.AST], ...] = ()
    scattered: bool = False
    attribute: Step | None = None
    role: str = ""
    derived: bool = False
    grad: str = ""
    near: Device = UNKNOWN


@immutable(frozen=True, slots=True)
class Site:
    """A place where something happens to a device.

    ``measured`` is what an audit saw there, ``None`` where the site was inferred from the code; ``via`` names the file
    and line of the library that did it, where the code at ``node`` only called that.
    """

    node: ast.AST
    scope: Scope
    measured: Measurement | None = field(default=None, kw_only=True)
    via: str = field(default="", kw_only=True)

    @property
    def repeated(self) -> bool:
        """Whether it happens again and again: in a loop, or at every step of the run that was observed."""
        if self.measured is not None:
            return self.measured.each_step
        return self.scope.loop is not None or self.scope.called


@immutable(frozen=True, slots=True)
class Creation:
    """The call of a torch function that made a tensor on the default device, only for a move to take it elsewhere.

    ``generator`` says that the call draws with one: "argument" if the function's caller may hand one over, "else" for
    any other.  ``helper`` names the function of the file that made it, empty where the moving function did.  ``array``
    says that it is a function of NumPy, which made an array of numbers alone.
    """

    node: ast.Call
    function: str
    generator: str = ""
    helper: str = ""
    array: bool = False
    others: tuple[Creation, ...] = ()


@immutable(frozen=True, slots=True)
class Transfer(Site):
    """A call that puts a tensor or a module somewhere: ``.to``, ``.cuda``, ``.cpu``, ``.type_as``.

    ``kind`` is "tensor", "module" or empty where the receiver is not known; ``target`` is where it goes (``None``: the
    call asks for no device).  ``plain`` says that nothing but a device is asked for; ``discarded`` that nobody takes
    the result; ``foreign`` that the receiver is known to be neither.  ``pinned`` says whether the host's side is pinned
    memory, ``pinned_by`` where that was asked for.  ``invariant`` says that every round of the loop copies the same
    unchanged tensor; ``unwaited`` is where the result of an asynchronous copy to the host is read although nothing
    has waited for it.  ``creation`` is the call that made the tensor, where nothing else wants it on the CPU; ``kept``
    is where an object that is no module keeps it, of which each call of this method copies it again.  ``empty`` says
    that the receiver is a module without any part, of which the move does nothing.
    """

    spelled: str
    kind: str
    value: Operand
    target: Device | None
    target_node: ast.AST | None = None
    plain: bool = True
    discarded: bool = False
    non_blocking: bool = False
    foreign: bool = False
    pinned: bool | None = None
    pinned_by: Step | None = None
    invariant: bool = False
    unwaited: Step | None = None
    creation: Creation | None = None
    kept: Step | None = None
    empty: bool = False


@immutable(frozen=True, slots=True)
class Selection(Site):
    """An index made on the CPU for a tensor elsewhere, to where torch copies it: ``node`` of ``x[torch.arange(n), i]``.

    ``value`` is the tensor that is indexed, ``creation`` the call that makes the index, for nothing else.
    """

    value: Operand
    creation: Creation


@immutable(frozen=True, slots=True)
class Upload(Site):
    """A call of ``function`` which makes the same tensor of literals on ``target`` in every step."""

    function: str
    target: Device


@immutable(frozen=True, slots=True)
class Forward(Site):
    """A call of a module with tensors."""

    module: str
    device: Device
    story: tuple[Step, ...]
    inputs: tuple[Operand, ...]


LEADS = frozenset({"alternative", "collective", "together", "row", "parted", "half", "unplaced", "shaped"})
"""The kinds of operations that clash only later: a tensor in the wrong place, and what speaks against it."""


@immutable(frozen=True, slots=True)
class Operation(Site):
    """An operation that needs its operands on one device.

    ``kind``: "operands", "loss target", "index", "assignment" (by a tensor index); "accumulator": a write into a part,
    which copies between devices without raising; "alternative": the first operand on one path, the second on the other;
    "together": both go into one call that cannot be followed; "row": both are kept in one row of a list; "parted": a
    branch moves the second and leaves the first, another does it the other way round; "half": the second is moved on
    one path, the first takes its place on the other as it is; "unplaced": the first, which nobody placed, is an input
    of the second, a model that was; "shaped": the first was made in the shape of the second; "generator": numbers are
    drawn with the first where the second is; "brought": a function of another file made the first, and brings it
    together with the second, which it is given.  ``sent`` says that the result is moved at once to where no operand is
    known to be.
    """

    operator: str
    kind: str
    operands: tuple[Operand, ...]
    sent: bool = False


@immutable(frozen=True, slots=True)
class Attribute(Site):
    """A tensor or a module kept in a plain attribute of a module, which ``Module.to()`` does not move.

    ``kind`` is "tensor", "distribution" or "module", ``container`` the type that holds it ("list", "tuple", "dict"),
    empty where it stands alone.  ``uses`` are the places where it meets the module's inputs or is moved to them;
    ``kept`` says that some use assigns the moved tensor back to the attribute.  ``registered`` says that its
    parameters are known to the module, or to an optimizer, in some other way; ``beside`` is where the module is.
    ``open``: unknown bases; ``follows`` says of such a class that it does as modules do: ``__init__`` calls that of
    the bases, and a method puts the attribute where a tensor is that it is given.  ``copies`` are the calls that copy
    it to where the inputs are, each with the name of the method.
    """

    owner: str
    name: str
    value: Operand
    uses: tuple[Step, ...]
    moved: bool = False
    kept: bool = False
    kind: str = "tensor"
    container: str = ""
    registered: bool = False
    beside: Device = UNKNOWN
    open: bool = False
    follows: bool = False
    copies: tuple[tuple[ast.AST, str], ...] = ()


@immutable(frozen=True, slots=True)
class Load(Site):
    """A data loader, and the places where its batches are put on a device.

    ``keywords`` maps the keyword arguments to their nodes; ``open`` says that more arguments may come in through
    ``**``.  ``batches`` is where the batches are made, ``escapes`` says that the loader leaves the code that can be
    seen.  ``pinned`` says whether it pins them, ``workers`` how many processes make them, and
    ``training`` what trains with them.  ``put`` is the place where a function of the file, which makes the samples or
    the batches, returns tensors that it has put on ``batches``.  ``anywhere`` says that the samples are tensors, or a
    list of some, of which nothing tells that they are on the host.
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


@immutable(frozen=True, slots=True)
class Wrap(Site):
    """A module wrapped for several devices; ``beside`` names other wrappers used in the same function.

    ``ids`` counts the device ids, ``device`` is where the module is, ``group`` says whether a process group exists by
    then, ``fixed`` is the device index that every process of a group takes alike, ``moved_after`` a move of the
    wrapped module, and ``attached`` an attribute that is set on the wrapper.
    """

    wrapper: str
    ids: int | None
    beside: tuple[str, ...] = ()
    device: Device = UNKNOWN
    group: bool | None = None
    fixed: Step | None = None
    moved_after: Step | None = None
    attached: Step | None = None


@immutable(frozen=True, slots=True)
class Unforwarded(Site):
    """An attribute is read from a wrapper for several devices which has none of this name, as its module may have.

    ``text`` is the wrapper as the code names it, ``made`` where it was made, and ``perhaps`` says that there is one on
    some paths only.
    """

    wrapper: str
    text: str
    made: Step
    perhaps: bool


@immutable(frozen=True, slots=True)
class Group(Site):
    """A process group is made in a file that chooses no device for its processes, or too late.

    ``backend`` is its name, empty where that is not known; ``named`` is where the same function names the device of a
    process, ``waits`` a collective that uses the current device.  ``script`` says that the processes start in this
    file, so that nobody else has chosen for them.  ``late`` is where the device is chosen after the collective.
    """

    backend: str
    named: ast.AST | None
    waits: Step | None
    script: bool
    late: Step | None = None


@immutable(frozen=True, slots=True)
class Sync(Site):
    """A place where the host waits for the device: ``.item()``, ``bool(t)``, ``nonzero``, ``synchronize``.

    ``region`` says how often: "train" and "eval" in every training or evaluation step, "element" for every part of
    such a step, "loop" in every round of some other loop, "forward" in every call of a module, "check" in every call of
    a function that raises or goes on, as the values are; empty where that is not known.
    """

    spelled: str
    value: Operand | None = None
    region: str = ""


@immutable(frozen=True, slots=True)
class Timing(Site):
    """A time between two readings of a clock, the first at ``started``.

    ``work`` is what the device was given in between and nothing had waited for at the second reading.
    """

    started: Step
    work: Step


@immutable(frozen=True, slots=True)
class Keep(Site):
    """A loss that is kept, with the graph behind it, from one round of a loop to the next.

    ``node`` is the part of the loss in what is kept, ``value`` its name, ``holder`` what keeps it (since ``began``) and
    ``kind`` how: "sum" or "list".  ``backward`` is where the round has done with the graph, ``emptied`` where some
    rounds let go of what they and those before them have kept.
    """

    value: str
    holder: str
    kind: str
    backward: Step
    emptied: Step | None = None


@immutable(frozen=True, slots=True)
class Optimize(Site):
    """An optimizer, made at ``node`` with parameters on ``made``, stepping with parameters on ``stepped``.

    ``moved`` is the move of its module in between; ``eager`` says that it had state by then: because the class
    allocates it when made (Adagrad), or because it was loaded, at ``loaded``.  ``orphans`` counts the parameters that
    it holds and the module does not, since they were replaced.
    """

    optimizer: str
    made: Device
    stepped: Device
    moved: Step | None = None
    eager: bool = False
    loaded: Step | None = None
    orphans: int = 0


@immutable(frozen=True, slots=True)
class ApiCall(Site):
    """A call of a named torch function.

    ``arguments`` maps keywords to nodes, ``positional`` counts the others, ``open`` says that ``*`` or ``**`` may add
    more.  ``purpose`` says what the result is for, where that is seen ("state dict", "dataset").
    """

    function: str
    arguments: dict[str, ast.AST] = field(hash=False)
    positional: int
    open: bool
    purpose: str = ""


@immutable(frozen=True, slots=True)
class Mention(Site):
    """A name of torch, of those in :mod:`devlint.torch_api`, that the code speaks of.

    ``path`` is the canonical name that is meant, ``node`` the name in the code (or the alias in an import), ``call``
    its call.  ``use`` is "import", "decorator", "test" (its truth is asked for), "switch" (the same of an argument,
    which may have to be a bool), "comparison" (also ``isinstance``), "conversion" (the type of tensors that ``call``
    converts to), or empty for a plain call or reference.  ``shim`` says that the code is for another torch: an
    ImportError or AttributeError is handled, a version or ``hasattr`` decides.
    """

    path: str
    call: ast.Call | None = None
    use: str = ""
    shim: bool = False


@immutable(frozen=True, slots=True)
class Literal(Site):
    """A string that names an accelerator, where it decides about a placement.

    ``role`` is what it is passed to: ".to", "device", "torch.device", "map_location", "autocast", "parameter", ...
    "rank" is a device of CUDA whose index is computed, "autocast off" one that is left out of mixed precision.
    ``revised`` says that it overrides the CPU, on purpose, that it is itself replaced further down where CUDA is
    missing, or that the other side of the branch takes the CPU instead.
    """

    text: str
    role: str
    revised: bool = False
