"""Hooks into what a training loop cannot do without: loaders, backward, optimizers.  Imports torch."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter

from devlint.auditor.compatibility import is_compiling, wrap_backward
from devlint.auditor.frames import NOWHERE
from devlint.auditor.loop.loaders import Loaders
from devlint.auditor.loop.steps import LoopSteps
from devlint.auditor.session import Listener, Session, emit

_Function = Callable[..., Any]


class LoopHooks(Listener):
    """The listener to the loop of a script.

    Only the thread that runs the loop is heard: the one which called backward last, at first the one that installed.
    A loader that another thread reads ahead is no boundary, and nothing is ever raised in another thread or in the
    middle of a backward.
    """

    def __init__(self, session: Session, loaders: Loaders) -> None:
        self.session = session
        self.loaders = loaders
        self.steps = LoopSteps(session.ledger, session.settings.steps, _has_optimizers)
        self._optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count()
        self._thread = threading.get_ident()
        self._backwards = 0
        self._fetching = False

    def install(self) -> None:
        """Hook in."""
        self.session.patches.set(_BaseDataLoaderIter, "__next__", self._wrap_next(_BaseDataLoaderIter.__next__))
        wrap_backward(self.session.patches, self._wrap_backward)
        self.session.patches.add(register_optimizer_step_post_hook(self._optimizer_step).remove)
        self.loaders.gone = self.steps.gone
        self.loaders.training = self.steps.training_loaders

    def describe(self) -> Mapping[str, object]:
        """The steps so far."""
        return {"steps": self.steps.describe()}

    def _in_loop(self) -> bool:
        return self.session.alive and threading.get_ident() == self._thread

    # loaders

    def _wrap_next(self, original: _Function) -> _Function:
        def following(iterator: Any) -> Any:
            guarded = self.session.guarded
            if not self.session.alive or self._fetching:
                return original(iterator)
            in_loop = self._in_loop()
            loader = guarded(self._asked, iterator) if in_loop else None
            if in_loop:
                self.steps.stop_if_due()
                self._fetching = True
            started = time.perf_counter()
            try:
                batch = original(iterator)
            except StopIteration:
                if in_loop:
                    guarded(self.steps.exhausted, loader)
                    guarded(emit, self.session.signals.forward_due)  # of a batch that was read ahead
                raise
            except Exception as error:
                guarded(self.loaders.failed, iterator, error)
                raise
            finally:
                if in_loop:
                    self._fetching = False
            seconds = time.perf_counter() - started
            guarded(self.loaders.delivered, iterator, batch)
            if in_loop:
                guarded(self.steps.delivered, seconds)
                guarded(emit, self.session.signals.forward_due)
            return batch

        return following

    def _asked(self, iterator: Any) -> int:
        loader, anew = self.loaders.asked(iterator)
        emit(self.session.signals.pass_end)
        if self.steps.batch(loader, anew):
            emit(self.session.signals.step_end)
        return loader

    # backward

    def _wrap_backward(self, original: _Function) -> _Function:
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            if not self.session.alive or self._backwards or is_compiling():
                return original(*args, **kwargs)
            trains = self.session.guarded(self._backward, args, kwargs)
            self._backwards += 1
            try:
                result = original(*args, **kwargs)
            finally:
                self._backwards -= 1
            if trains:
                self.session.guarded(self._backward_done)
                self.steps.stop_if_due()
            return result

        return _engine_run_backward

    def _backward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        if self._fetching or not _trains(args, kwargs):
            return False
        self._thread = threading.get_ident()
        self.steps.backward()
        return True

    def _backward_done(self) -> None:
        emit(self.session.signals.pass_end)
        if self.steps.backward_done():
            emit(self.session.signals.step_end)
        emit(self.session.signals.forward_due)

    # optimizers and modules

    def _optimizer_step(self, optimizer: Any, args: object, kwargs: object) -> None:
        if not self.session.alive:
            return
        self.session.guarded(self._count_step, optimizer)
        if self._in_loop() and not self._backwards:
            self.steps.stop_if_due()

    def _count_step(self, optimizer: Any) -> None:
        number = self._optimizers.get(optimizer)
        if number is None:
            number = self._optimizers[optimizer] = next(self._numbers)
        if self.steps.optimizer_step(number, type(optimizer).__name__):
            emit(self.session.signals.step_end)
        emit(self.session.signals.forward_due)

    def on_forward(self) -> None:
        """The loop has come to a forward: with autograd a pass begins, without it one is over."""
        if self._in_loop() and not self._fetching:
            recorded, signals = torch.is_grad_enabled(), self.session.signals
            emit(() if recorded else signals.pass_end)
            if self.steps.forward(recorded, NOWHERE if recorded else self.session.frames.here()):
                emit(signals.forward_due)
            emit(signals.pass_begin if recorded else ())


def _trains(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether gradients of parameters are computed, which is what training does.

    The gradient of something else, as of an energy by positions, may be the purpose of an evaluation.
    """
    if kwargs.get("accumulate_grad", True):
        return True
    return any(isinstance(item, torch.nn.Parameter) for part in args if isinstance(part, tuple) for item in part)


def _has_optimizers() -> bool:
    """Whether there is any optimizer; looks at all objects, and is asked only where a loop seems to have none."""
    return any(issubclass(kind, torch.optim.Optimizer) for kind in set(map(type, gc.get_objects())))
