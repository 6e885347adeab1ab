"""Random number generators of the simulated devices.

A device draws from the host's default generator as long as both were seeded alike, as by `torch.manual_seed`, so that a
simulated run computes what the CPU computes.  Once a script seeds the device otherwise, it has a stream of its own.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.simulator import devices, dispatch
from devlint.simulator.masquerade.device_type import stand_in

_Native: Any = torch._C.Generator
_FILLING = (
    "bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_".split()
)
"""Methods of tensors that draw random numbers where the tensor is."""
_DRAWING = "bernoulli multinomial poisson rand_like randn_like randint_like".split()
"""Functions of torch that draw random numbers where their first argument is."""


class SimulatedGenerator(_Native):  # type: ignore[misc]  # torch's class is Any here
    """A generator that says it is on a device; it is used where it is passed."""

    def __new__(cls, index: int) -> SimulatedGenerator:
        """A generator of the host underneath."""
        return _Native.__new__(cls, "cpu")  # type: ignore[no-any-return]  # of this class

    def __init__(self, index: int) -> None:
        self.index = index

    @property
    def device(self) -> torch.device:
        """The virtual device."""
        return devices.device(self.index)

    def get_offset(self) -> int:
        """The offset of a Philox generator; what is simulated has none."""
        return 0

    def set_offset(self, offset: int) -> None:
        """Nothing is kept."""

    def __reduce__(self) -> Any:
        return _restore, (self.index, self.get_state())


def _restore(index: int, state: torch.Tensor) -> SimulatedGenerator:
    generator = SimulatedGenerator(index)
    generator.set_state(state)
    return generator


def _made(device: Any = "cpu") -> Any:
    """The generator of the device that `torch.Generator` is asked for."""
    index = devices.index_of(device)
    if index is None:
        return _Native(device)
    devices.use()
    return SimulatedGenerator(index)


class DefaultGenerator(SimulatedGenerator):
    """The generator from which a device draws if it is given none."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self._alike: Callable[[], bool] | None = lambda: True
        """Tells whether the host's generator was set as this one was; `None` once it has been seen that it was not."""

    def manual_seed(self, seed: int) -> DefaultGenerator:
        """Start a stream, the host's if that was seeded alike."""
        super().manual_seed(seed)
        # torch.manual_seed seeds the host last, so this can be told only at the next draw.
        self._alike = lambda: torch.default_generator.initial_seed() == seed
        return self

    def seed(self) -> int:
        """Start a stream anywhere."""
        seed: int = super().seed()
        self.manual_seed(seed)
        return seed

    def set_state(self, state: torch.Tensor) -> DefaultGenerator:
        """Go on from a state, with the host's stream if that is, or is put, in the same."""
        super().set_state(state)
        state = state.clone()
        alike = self._same(state)
        self._alike = lambda: alike or self._same(state)
        return self

    def get_state(self) -> torch.Tensor:
        """The state of the stream from which the device draws."""
        state: torch.Tensor = torch.default_generator.get_state() if self.follows() else super().get_state()
        return state

    def follows(self) -> bool:
        """Whether the device draws from the host's stream."""
        if self._alike is not None:
            self._alike = (lambda: True) if self._alike() else None
        return self._alike is not None

    @staticmethod
    def _same(state: torch.Tensor) -> bool:
        return torch.equal(state, torch.default_generator.get_state())


@functools.cache
def _default(index: int) -> DefaultGenerator:
    return DefaultGenerator(index)


@contextlib.contextmanager
def _random_numbers(index: int) -> Iterator[None]:
    """Lend the host's generator to a device that has a stream of its own."""
    own = _default(index)
    if own.follows():
        yield
        return
    host = torch.default_generator
    before = host.get_state()
    host.set_state(_Native.get_state(own))
    try:
        yield
    finally:
        _Native.set_state(own, host.get_state())
        host.set_state(before)


def defaults() -> tuple[DefaultGenerator, ...]:
    """`torch.cuda.default_generators`."""
    return tuple(_default(index) for index in range(devices.visible()))


def check(generator: torch.Generator, wanted: str) -> None:
    """Raise as torch does where a generator is of another type of device than the tensor that is filled."""
    if generator.device.type != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{generator.device.type}'")


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which draws where the tensor is that it is given."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("generator") is not None and args and isinstance(args[0], torch.Tensor):
            check(kwargs["generator"], args[0].device.type)
        return function(*args, **kwargs)

    return wrapper


def install(patches: Patches) -> None:
    """Let `torch.Generator` make generators of simulated devices, which draw numbers only there."""
    patches.set(dispatch, "random_numbers", _random_numbers)
    patches.set(torch, "Generator", stand_in(_Native, _made))
    tensor: Any = torch.Tensor
    for name in _FILLING:
        patches.set(tensor, name, _checked(getattr(tensor, name)))
    for name in _DRAWING:
        patches.set(torch, name, _checked(getattr(torch, name)))
