"""``[tool.devlint.pytest]``: whether pytest runs a suite on a simulated accelerator, and how."""

from __future__ import annotations

from collections.abc import Mapping

from devlint.config.messages import did_you_mean
from devlint.config.sizes import size_of
from devlint.immutable import immutable


@immutable(frozen=True, slots=True)
class Suite:
    """How a suite is run; what is ``None`` the configuration leaves open.

    ``simulate``: every process of pytest has simulated CUDA devices, ``devices`` of them, each with so much ``memory``.
    ``compare_cpu``: the tests that failed run again without.
    """

    simulate: bool | None = None
    devices: int | None = None
    memory: str | None = None
    compare_cpu: bool | None = None

    def over(self, other: Suite) -> Suite:
        """This one, and where it leaves something open, the other."""
        return Suite(
            other.simulate if self.simulate is None else self.simulate,
            other.devices if self.devices is None else self.devices,
            other.memory if self.memory is None else self.memory,
            other.compare_cpu if self.compare_cpu is None else self.compare_cpu,
        )

    def table(self) -> tuple[tuple[str, object], ...]:
        """What it says, as the table has it."""
        values = zip(KEYS, (self.simulate, self.devices, self.memory, self.compare_cpu), strict=True)
        return tuple((key, value) for key, value in values if value is not None)


KEYS = ("simulate", "devices", "memory", "compare-cpu")


def read(table: object) -> Suite:
    """Read the table; a ValueError says what is wrong with it."""
    if not isinstance(table, Mapping):
        raise ValueError("expected a table such as { simulate = true, devices = 2 }")
    for key, value in table.items():
        if key not in KEYS:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, KEYS)}")
        if key == "devices":
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"devices: expected a number, 1 or more, not {value!r}")
        elif key == "memory":
            _check_size(value)
        elif not isinstance(value, bool):
            raise ValueError(f"{key}: expected true or false")
    return Suite(**{key.replace("-", "_"): value for key, value in table.items()})


def _check_size(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f'memory: expected a size such as "8GiB", not {value!r}')
    try:
        size_of(value)
    except ValueError as error:
        raise ValueError(f"memory: {error}") from None
