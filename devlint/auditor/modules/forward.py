"""The check at every forward: which modules run, from where, and whether their inputs are where they are.

While anything is new, two global hooks of torch see each call of each module.  Once nothing has been new for a while
they are taken out, and a single hook is put in before each loop's next forward, which takes itself out again: a call
of a module then costs what it costs without an audit.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.nn.modules import module as hooks

from devlint.auditor.compatibility import is_compiling
from devlint.auditor.explanation.explain import examine
from devlint.auditor.explanation.messages import is_mismatch
from devlint.auditor.explanation.origin import chain
from devlint.auditor.introspection.tensors import describe, device_of, fields, is_placed, leaves, own_tensors, path_of
from devlint.auditor.modules.models import Observed, holder
from devlint.auditor.modules.strays import Key, Strays
from devlint.auditor.session import Listener, Session, emit
from devlint.record import Mismatch, Party

_CHECKED = 4
"""So many calls of each module are looked at."""
_SETTLED = 12
"""After so many calls from outside without any module that is new, hooks are taken out."""
_SCANNED = (1, 2, 8)
"""At these calls of an outermost module it is searched for what it holds unregistered."""
_MOST = 16


class _Local(threading.local):
    """The modules that run in this thread, the outermost first."""

    def __init__(self) -> None:
        self.running: list[nn.Module] = []


class _Early(NamedTuple):
    """What an exception was explained by before the script, or its framework, could tidy up."""

    error: int
    text: str
    mismatch: Mismatch
    strays: tuple[Key, ...]


class ForwardCheck(Listener):
    """The listener to modules."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._local = _Local()
        self._handles: list[Any] = []
        self._state: Literal["watching", "armed", "calling", "resting"] = "resting"
        self._called: nn.Module | None = None
        """The module that is being called, while it is told."""
        self._asked = False
        """Whether somebody wants to hear of the call after the one that runs, while all calls are seen."""
        self._calls: dict[int, int] = {}
        self._outermost: dict[int, int] = {}
        self._quiet = 0
        self._compiled = 0
        self._mismatches: dict[tuple[str, int], Mismatch] = {}
        self._models = Observed()
        self._strays = Strays(session)
        self._early: _Early | None = None

    def install(self) -> None:
        """Hook in."""
        if hasattr(hooks, "_has_any_global_hook"):
            # torch.compile warns of global hooks, and means those of the script
            self._session.patches.set(hooks, "_has_any_global_hook", self._others(hooks._has_any_global_hook))
        self._session.patches.add(self._rest)
        self._watch()

    def describe(self) -> Mapping[str, object]:
        """The models, what they hold unregistered, and meetings that torch did not mind."""
        return {
            "models": self._models.describe(),
            "strays": self._strays.describe(),
            "mismatches": tuple(self._mismatches.values()),
        }

    # mismatches that were raised

    def explain(self, error: BaseException) -> Mismatch | None:
        """What a run died of; what took part in it without being registered is a stray for sure."""
        early = self._early
        if early is None or not any((id(one), str(one)) == (early.error, early.text) for one in chain(error)):
            self._examine(error)
            early = self._early
        self._early = None
        if early is None:
            return None
        self._strays.took_part(early.strays)
        return early.mismatch

    def on_move(self) -> None:
        """A framework that moves its model back after a failure hides what failed: look now."""
        error = sys.exc_info()[1]
        if error is not None and is_mismatch(error) and (self._early is None or self._early.error != id(error)):
            self._examine(error)

    def _examine(self, error: BaseException) -> None:
        found = examine(error, error.__traceback__, self._session.frames)
        self._early = None
        if found is not None:
            strays = tuple(self._strays.note(held, device) for held, device in found.held)
            self._early = _Early(id(error), str(error), found.mismatch, strays)

    def _others(self, original: Callable[[], object]) -> Callable[[], object]:
        def _has_any_global_hook() -> object:
            if not self._session.alive or not self._handles:
                return original()
            own = {handle.id for handle in self._handles}
            kinds = ("forward_pre", "forward", "backward_pre", "backward")
            return any(set(getattr(hooks, f"_global_{kind}_hooks", ())) - own for kind in kinds)

        return _has_any_global_hook

    # what is hooked

    def _watch(self) -> None:
        """See every call of every module."""
        self._rest()
        self._state = "watching"
        self._quiet = 0
        self._compiled = _compiled()
        guarded, enter, leave = self._session.guarded, self._see_enter, self._see_leave

        def entering(module: nn.Module, args: object) -> None:
            if not is_compiling():
                guarded(enter, module)

        def leaving(module: nn.Module, args: object, *rest: object) -> None:
            if not is_compiling():
                guarded(leave, module, args, rest)

        known = inspect.signature(hooks.register_module_forward_hook).parameters
        asked = {name: True for name in ("with_kwargs", "always_call") if name in known}
        self._handles = [
            hooks.register_module_forward_pre_hook(entering),
            hooks.register_module_forward_hook(leaving, **asked),
        ]

    def on_forward_due(self) -> None:
        """See the next call of a module, and no further one; told of a call, the one after that has returned."""
        if self._called is not None:
            self._follow(self._called)
        self._asked = True
        if self._state != "resting" or not self._session.alive:
            return
        self._state = "armed"
        self._handles = [hooks.register_module_forward_pre_hook(self._first)]

    def _follow(self, module: nn.Module) -> None:
        """See the next call after this one.

        A hook of the module itself, while it runs: one of all modules would be asked of each that is called inside, and
        torch.compile would compile them for it.
        """
        if isinstance(module, torch.jit.ScriptModule) or fields(module).get("_compiled_call_impl") is not None:
            return  # its hooks are a part of what is compiled

        def returned(*_: object) -> None:
            handle.remove()
            self._session.guarded(self.on_forward_due)

        handle = module.register_forward_hook(returned, always_call=True)

    def _rest(self) -> None:
        while self._handles:
            handle = self._handles.pop()
            handle.remove()
            # torch forgets to, and then believes in global hooks for ever
            getattr(hooks, "_global_forward_hooks_with_kwargs", {}).pop(handle.id, None)
        if self._state == "watching":
            self._local = _Local()
        self._state = "resting"

    # what the hooks do

    def _first(self, module: nn.Module, args: object) -> None:
        if not is_compiling():
            self._session.guarded(self._see_first, module)

    def _see_first(self, module: nn.Module) -> None:
        if _in_backward():
            return
        self._rest()
        self._state, self._called = "calling", module
        try:
            emit(self._session.signals.forward)
        finally:
            self._state, self._called = "resting", None
        if id(module) not in self._outermost and id(module) not in self._calls:
            self._watch()
            self._local.running.append(module)  # it is being called, and the new hooks will hear it return

    def _see_enter(self, module: nn.Module) -> None:
        running = self._local.running
        running.append(module)
        if len(running) == 1 and not _in_backward():
            self._asked = False
            emit(self._session.signals.forward)

    def _see_leave(self, module: nn.Module, args: object, rest: tuple[object, ...]) -> None:
        running = self._local.running
        if not any(one is module for one in running):
            return  # it was called before the hooks were there
        while running.pop() is not module:
            pass  # one that was left by an exception which no hook hears of
        if torch._C._get_tracing_state() is not None:
            return  # whatever is asked of a tensor would be traced
        root = running[0] if running else module
        # a call that failed has no result; keyword arguments come before it where torch hands them over
        self._look(module, root, None if rest[-1] is None else (args, *rest[:-1]))
        if not running and not _in_backward():
            self._see_outermost(module)

    def _look(self, module: nn.Module, root: nn.Module, inputs: object) -> None:
        own = fields(module)
        if not own.get("_parameters") and not own.get("_buffers"):
            return
        number = self._calls.get(id(module), 0)
        if number >= _CHECKED:
            return
        self._calls[id(module)] = number + 1
        if number == 0:
            self._quiet = 0
        self._models.layer(module, root)
        self._compare(module, root, inputs)

    def _see_outermost(self, module: nn.Module) -> None:
        number = self._outermost[id(module)] = self._outermost.get(id(module), 0) + 1
        if number == 1:
            self._quiet = 0
        if number in _SCANNED:
            self._models.outermost(holder(module, self._session.frames))
            self._strays.scan(module)
        self._quiet += 1
        # what was compiled with the hooks in place would be compiled again without them
        if self._quiet >= _SETTLED and _compiled() == self._compiled:
            asked = self._asked
            self._rest()
            if asked:
                self.on_forward_due()

    def _compare(self, module: nn.Module, root: nn.Module, inputs: object) -> None:
        """A layer of torch that took an input from another device, and whose kernel did not refuse.

        Only what is certainly wrong: MPS used to compute nonsense.  A module of the script may move its inputs, and an
        index may be on the CPU.
        """
        own = fields(module)
        if not type(module).__module__.startswith("torch.nn.modules.") or "forward" in own or "_hf_hook" in own:
            return
        held = [(name, one) for name, one in own_tensors(module) if is_placed(one)]
        devices = {device_of(tensor) for _, tensor in held}
        if len(devices) != 1:
            return
        here = devices.pop()
        for _, tensor in leaves(inputs):
            if tensor.is_floating_point() and is_placed(tensor) and device_of(tensor) != here:
                self._report(module, root, Party(text=held[0][0], device=here, role="parameter"), tensor)
                return

    def _report(self, module: nn.Module, root: nn.Module, own: Party, tensor: torch.Tensor) -> None:
        place = self._session.frames.here()
        path = path_of(root, module) or ""
        known = self._mismatches.get((path, place))
        frame, via = self._session.frames.resolve(place)
        if known is None and len(self._mismatches) >= _MOST:
            return
        self._mismatches[(path, place)] = Mismatch(
            frame=frame,
            via=via,
            module=path,
            module_class=type(module).__name__,
            parties=(Party(text="input", device=device_of(tensor), example=describe(tensor), role="input"), own),
            calls=known.calls + 1 if known else 1,
        )


def _in_backward() -> bool:
    """Whether autograd runs this, as it does where activations are computed anew."""
    task: int = torch._C._current_graph_task_id()
    return task != -1


def _compiled() -> int:
    """How many graphs torch.compile has compiled in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    graphs: int = getattr(utils, "counters", {"stats": {}})["stats"].get("unique_graphs", 0)
    return graphs
