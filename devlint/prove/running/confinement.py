"""What the code that is run may not do: write outside of a folder, start programs, use the network."""

from __future__ import annotations

import os
import sys
from typing import Any

_CHANGING = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
     "shutil.rmtree", "shutil.move"}
)  # fmt: skip
_STARTING = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(folder: str) -> None:
    """Refuse from now on, with an ``OSError`` that says so; it cannot be undone."""
    root = os.path.join(os.path.realpath(folder), "")

    def is_outside(path: Any) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False  # a file that is open already
        text = os.path.realpath(os.fsdecode(path))
        return not (os.path.join(text, "").startswith(root) or text.startswith(("/dev/", "/proc/self/")))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING and is_outside(path):
                raise PermissionError(f"nothing is written while a finding is proven: {os.fsdecode(path)}")
        elif event in _CHANGING:
            if any(is_outside(path) for path in arguments[:2] if isinstance(path, (str, bytes, os.PathLike))):
                raise PermissionError(f"nothing is changed while a finding is proven: {arguments[0]}")
        elif event in _STARTING:
            raise PermissionError("no program is started while a finding is proven")
        elif event == "socket.connect":
            address = arguments[1]
            host = address[0] if isinstance(address, tuple) else ""
            if host and host not in ("localhost", "127.0.0.1", "::1"):
                raise ConnectionError("the network is not used while a finding is proven")
        elif event == "socket.getaddrinfo" and arguments[0] not in (None, "", "localhost", "127.0.0.1", "::1"):
            raise ConnectionError("the network is not used while a finding is proven")

    sys.addaudithook(refuse)
