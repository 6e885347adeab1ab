"""What the cases share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from devlint.simulator import backend

CPU = torch.device("cpu")
ZERO = torch.device("cuda", 0)
ONE = torch.device("cuda", 1)


@contextlib.contextmanager
def raises(kind: type[Exception], text: str) -> Iterator[None]:
    """The block raises an exception with this text; `{0}` and `{1}` in it are the devices."""
    wanted = text.format(ZERO, ONE)
    try:
        yield
    except kind as error:
        if wanted not in str(error):
            raise AssertionError(f"wanted: {wanted}\ngot:    {error}") from error
    else:
        raise AssertionError(f"nothing was raised, wanted: {wanted}")


def same(simulated: torch.Tensor, expected: torch.Tensor) -> None:
    """The simulated tensor is on a device, and equals one of the host bit for bit."""
    assert isinstance(simulated, backend.SimulatedTensor), type(simulated)
    torch.testing.assert_close(simulated.detach().host, expected.detach(), rtol=0, atol=0, equal_nan=True)
    assert simulated.shape == simulated.host.shape
    assert simulated.stride() == simulated.host.stride()
