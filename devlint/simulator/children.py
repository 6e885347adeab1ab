"""The Python processes that a simulated process starts: they have the same devices.

Those of `multiprocessing` are told by what it prepares for them.  Those of `subprocess` are told by the environment:
Python imports `sitecustomize` when it starts, and finds the one in `startup/` first, which calls :func:`board`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from devlint.auditor.running.import_hook import when_imported

VARIABLE = "_DEVLINT_SIMULATED_DEVICES"
"""The environment variable that says how many devices there are, and of which Python."""
_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


def follow(devices: int) -> None:
    """Let the Python processes that this one starts from now on have so many simulated devices."""
    when_imported("multiprocessing.spawn", partial(_send_along, devices))
    path = [entry for entry in _entries(os.environ) if entry != _STARTUP]
    os.environ["PYTHONPATH"] = os.pathsep.join([_STARTUP, *path])
    os.environ[VARIABLE] = f"{devices} {sys.prefix}"


def unfollowed(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is to have none."""
    left = {name: value for name, value in environment.items() if name not in (VARIABLE, "PYTHONPATH")}
    path = os.pathsep.join(entry for entry in _entries(environment) if entry != _STARTUP)
    return {**left, "PYTHONPATH": path} if path else left


def board_by_environment() -> None:
    """This process has been started by a simulated one; nothing happens if it runs another Python."""
    devices, _, prefix = os.environ.get(VARIABLE, "").partition(" ")
    if devices and prefix == sys.prefix:
        board(int(devices))


def board(devices: int) -> None:
    """Simulate in this process, and in those that it starts, as soon as it has torch."""
    when_imported("torch", partial(_simulate, devices))
    when_imported("multiprocessing.spawn", partial(_send_along, devices))


def _simulate(devices: int) -> None:
    from devlint import simulator

    try:
        simulator.install(devices)
    except Exception as error:
        sys.stderr.write(f"warning: devlint does not simulate devices in a child process: {error}\n")


def _send_along(devices: int) -> None:
    from multiprocessing import spawn

    from devlint.auditor.running.child_processes import Stowaway

    original: Callable[[str], dict[str, Any]] = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        data["devlint"] = Stowaway(board, devices)
        return data

    spawn.get_preparation_data = get_preparation_data


def _entries(environment: Mapping[str, str]) -> list[str]:
    """The directories of `PYTHONPATH`; an empty one is that in which a process starts."""
    path = environment.get("PYTHONPATH", "")
    return path.split(os.pathsep) if path else []
