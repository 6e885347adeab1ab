"""DVL502: DistributedDataParallel that cannot work, or not on several GPUs."""

from __future__ import annotations

import ast
from collections.abc import Callable

from devlint.device import Kind
from devlint.flow.catalog.modules import DISTRIBUTED
from devlint.flow.syntax.names import called
from devlint.rules.base import Report, Reports, Rule, Severity, Step, proof
from devlint.rules.code.blocks import around, function_at, given
from devlint.rules.code.edits import in_test
from devlint.sites.distributed import Group, Unforwarded, Ungrouped, Wrap
from devlint.source.syntax import walk

_LOOKS_ON = frozenset({"callable", "hasattr", "id", "isinstance", "print", "repr", "str", "type"})
"""Functions of Python that read no attribute of what they are given, or ask for one."""
_ASKS = frozenset({"getattr", "hasattr", "isinstance", "type"})
"""Functions of Python that tell a wrapper from a module, or what has an attribute from what has none."""
_ON_GPU_0 = (2, 1)
"""From then on a barrier opens a context on the current device, too."""
_RANKS = frozenset({"rank", "local_rank", "gpu", "gpu_id"})


class DdpSetup(Rule):
    """`DistributedDataParallel` is set up in a way that raises, or puts every process on the same GPU.

    ## What it does
    Reports `DistributedDataParallel` with several `device_ids`, with `device_ids` and a module on the CPU, with a
    device that is the same one in every process, with a module that is moved after it was wrapped, and in a script that
    makes no process group; `get_rank()` before the function makes one; and processes that meet at a barrier before each
    has chosen its device. Also what is read
    from the wrapper, or from a `DataParallel`, and can only be the module's: `model.encode(x)`; all that is read from
    one wrapper is one finding. As a hint, attributes that are set on the wrapper,
    `device_ids=[rank]` beside `rank % torch.cuda.device_count()`, and NCCL process groups in a script that never says
    which GPU is a process's own. In an audit also ranks that used one GPU together.

    ## Why it matters
    Each process serves one GPU, on which its module has to be before it is wrapped: wrapping looks at the parameters
    and prepares their communication. Several ids, or parameters on the CPU, raise a `ValueError`. If every process
    takes GPU 0, NCCL refuses to work, and any other backend works on one GPU while the others are idle.

    A wrapper hands on its call to the module, and no other attribute: `model.encode` raises an `AttributeError`, and
    only where there are several GPUs if it is only wrapped there.

    A process that has chosen no device uses GPU 0 for whatever names none. In the collectives of objects, NCCL then
    meets several processes on one GPU, and they hang or raise "Duplicate GPU detected". For a `barrier`, it takes the
    GPU that the process has used, or guesses one from the rank; torch opens a context on GPU 0 all the same, which
    takes memory there for each process.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def worker(rank):
        model = nn.Linear(8, 2).to(rank)
        return DistributedDataParallel(model, device_ids=[0])
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def worker(rank):
        model = nn.Linear(8, 2).to(rank)
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## When it stays silent
    - `device_ids` is left out or `None`, as for a module on the CPU or on several devices.
    - Where the module is is not known.
    - An attribute that is set on the wrapper is read there, in the same function, which hands the wrapper to nobody.
    - An attribute is read from a wrapper, but the function asks what it is (`isinstance`, `hasattr`), or handles that
      it may be missing, or is on a path where the module may not be wrapped; or the file says `__getattr__` or
      `setattr`, or gives anything an attribute or a submodule of this name, as a base of the class may do to the
      wrapper; or the class of the module inside is known, and nothing in it has this name, so that unwrapping would
      not help. Who selects the rule is told where that class is not known.
    - Processes meet at a barrier, and the project allows only torch before 2.1, which takes the GPU of the rank there.
    - In an audit, processes that each see a GPU of their own as `cuda:0`, by `CUDA_VISIBLE_DEVICES`.
    - A fixed id is a hint in a function that takes no rank: each process may see one GPU only.
    - The script imports anything that may make the process group, such as another module of the project.
    - Anything in the file chooses a device: `set_device`, unless that comes after a barrier in the same function,
      `device_id=`, `CUDA_VISIBLE_DEVICES`, or a function of another file that is called something like `get_device`,
      or makes the process group; the wrapper is given a number that is not known, as in `device_ids=[args.gpu]`;
      the backend may be another than NCCL; or the processes start elsewhere.

    ## Fix safety
    There is no fix.

    ## References
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [torch.distributed.init_process_group](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group)
    - [DDP tutorial](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
    """

    code = "DVL502"
    hints = False
    severity = Severity.ERROR
    observed = True
    proof = proof.Traces(left=(proof.WRAPPER,))

    def judge(self, site: Wrap | Group | Unforwarded | Ungrouped) -> Reports:
        """One report, about the gravest that is wrong."""
        if isinstance(site, Group):
            yield from self._ungrounded(site)
        elif isinstance(site, Unforwarded):
            yield from self._unforwarded(site)
        elif isinstance(site, Ungrouped):
            yield self._ungrouped(site)
        elif isinstance(site, Wrap) and site.wrapper == DISTRIBUTED:
            yield from self._wrapped(site)

    def _wrapped(self, site: Wrap) -> Reports:
        if site.group is False:
            yield _report(site, "there is no process group yet", "call `init_process_group` first")
        elif site.ids is not None and site.ids > 1:
            message = f"{site.ids} device ids: each process serves one GPU, and more raise a `ValueError`"
            yield _report(site, message, "start a process for each GPU, and give each its own id")
        elif site.ids == 1 and site.device.kind is Kind.CPU:
            message = "the module is on the CPU and `device_ids` names a GPU, which raises a `ValueError`"
            yield _report(site, message, "move the module to its GPU first")
        elif site.moved_after is not None:
            message = "the module is moved after it was wrapped, though its communication is prepared for where it was"
            yield _report(site, message, "move the module, then wrap it", Severity.WARNING, site.moved_after)
        elif site.fixed is not None:
            yield self._shared(site, site.fixed)
        elif site.beyond is not None:
            message = "the device id is the number of the process, of which a second machine has no GPU"
            help_ = "`device_ids=[local_rank]`, the number that is taken modulo the GPUs of the machine"
            yield _report(site, message, help_, Severity.INFO, site.beyond)
        elif site.attached is not None:
            yield from self._extended(site, site.attached)

    def _ungrouped(self, site: Ungrouped) -> Report:
        """A report where a process asks a group that is not there yet."""
        return Report(
            f"`{site.function.rpartition('.')[2]}` is asked before there is a process group: this raises",
            label="there is no process group yet",
            steps=(site.made,),
            help="call `init_process_group` first, or read `RANK` and `WORLD_SIZE` of the environment",
        )

    def _unforwarded(self, site: Unforwarded) -> Reports:
        """A report where an attribute is read that only the module inside can have."""
        if site.scope.handler or not isinstance(site.node, ast.Attribute) or self._told_apart(site.node):
            return
        name, attribute = site.wrapper.rpartition(".")[2], site.node.attr
        verb, inside = ("may be", f'getattr({site.text}, "module", {site.text})') if site.perhaps else ("is", "")
        yield Report(
            f"`{site.text}` {verb} a `{name}`, which has no `{attribute}`: this raises an `AttributeError`",
            label="only the module inside can have it",
            # what the module inside has, and whether it comes here wrapped, may be for others to know
            severity=None if site.known and not site.perhaps else Severity.INFO,
            steps=(site.made,),
            help=f"read it from the module inside{'' if site.known else ', if that has it'}: "
            f"`{inside or site.text + '.module'}.{attribute}`",
            # the wrapper is the cause of them all, and what is done about it is done once
            cause=f"{site.text} of line {getattr(site.made.node, 'lineno', 0)}",
        )

    def _told_apart(self, read: ast.Attribute) -> bool:
        """Whether the function asks what the wrapper is, or has, or puts the module in its place."""
        inside, wrapper = walk(around(self.source, read)), ast.unparse(read.value)
        # what an object keeps, any of its methods may exchange
        places = inside if isinstance(read.value, ast.Name) else walk(self.source.tree)
        return any(_unwraps(part, wrapper) for part in places) or any(_asks(part, wrapper) for part in inside)

    def _extended(self, site: Wrap, attached: Step) -> Reports:
        """A hint where an attribute is set on the wrapper, and not only for the function itself."""
        shared = self._after(attached.node, _hands_on)
        if not shared and self._after(attached.node, _reads):
            return
        message = "an attribute is set on the wrapper afterwards, where the module that it wraps does not see it"
        help_ = "set it on the module before it is wrapped, or on `.module`"
        if shared:
            help_ += "; who is given the wrapper reads it from its `.module`, then"
        yield Report(message, "its module is `.module`", Severity.INFO, (attached,), help_)

    def _after(self, target: ast.AST, does: Callable[[ast.AST, ast.Attribute], bool]) -> bool:
        """Whether something is done to an attribute that was set, or to its owner, further down in the function."""
        if not isinstance(target, ast.Attribute):
            return False
        inside = walk(around(self.source, target))
        return any(does(part, target) for part in inside if getattr(part, "lineno", 0) > target.lineno)

    def _ungrounded(self, site: Group) -> Reports:
        """A hint where the processes of an NCCL group all keep the first GPU as their current device.

        A warning where they meet before they choose another.
        """
        made = Step(site.node, "the process group is made here")
        # before that, a barrier that is told no device uses the GPU of the process's rank alone
        guessed = site.waits is not None and called(site.waits.node).endswith("barrier") and not self.may_be(_ON_GPU_0)
        if site.late is not None and site.waits is not None:
            if guessed:
                return
            yield Report(
                "the processes meet before each has chosen its device: each opens a context on GPU 0",
                node=site.waits.node,
                label="the current device is still GPU 0",
                severity=Severity.WARNING,
                steps=(made, site.late),
                help="call `set_device` first, or pass `device_id=` to `init_process_group`",
            )
        elif "nccl" in site.backend and site.script:
            yield Report(
                "nothing makes the GPU of a process its current device: whatever names none uses GPU 0 in all of them",
                node=site.named,
                label="the current device stays GPU 0",
                asked=in_test(self.source, site.scope),
                severity=Severity.INFO if site.waits is None or guessed else Severity.WARNING,
                steps=tuple(filter(None, (None if site.named is None else made, site.waits))),
                help="call `torch.cuda.set_device(local_rank)` before the process group is used",
            )

    def _shared(self, site: Wrap, fixed: Step) -> Report:
        """A verdict on processes that take the same device."""
        if site.measured is not None:
            help_ = "`torch.cuda.set_device(local_rank)` gives each process its own"
            return _report(site, fixed.label, help_, Severity.WARNING)
        function = function_at(self.source, site.node)
        taken = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} if function else set()
        severity = Severity.WARNING if taken & _RANKS else Severity.INFO
        message = "every process takes the same GPU: which one does not depend on the rank"
        return _report(site, message, "`device_ids=[local_rank]` gives each process its own", severity, fixed)


def _asks(part: ast.AST, wrapper: str) -> bool:
    """Whether code asks what something is, or has."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name) or part.func.id not in _ASKS:
        return False
    return bool(part.args) and ast.unparse(part.args[0]) == wrapper


def _unwraps(part: ast.AST, wrapper: str) -> bool:
    """Whether the module inside takes the place of its wrapper."""
    if not isinstance(part, ast.Assign) or not any(ast.unparse(target) == wrapper for target in part.targets):
        return False
    inside = (node for node in walk(part.value) if isinstance(node, ast.Attribute) and node.attr == "module")
    return any(ast.unparse(node.value) == wrapper for node in inside)


def _reads(part: ast.AST, target: ast.Attribute) -> bool:
    """Whether an attribute is read."""
    read = isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load)
    return read and ast.unparse(part) == ast.unparse(target)


def _hands_on(part: ast.AST, target: ast.Attribute) -> bool:
    """Whether the object which has an attribute is given to a function, that may read it there."""
    if not isinstance(part, ast.Call) or (isinstance(part.func, ast.Name) and part.func.id in _LOOKS_ON):
        return False
    return ast.unparse(target.value) in map(ast.unparse, given(part))


def _report(site: Wrap, message: str, help_: str, severity: Severity | None = None, *steps: Step) -> Report:
    return Report(message, "one process for each GPU", severity, steps, help_)
