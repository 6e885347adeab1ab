"""Names bound to one kind of accelerator, and what does the same on any."""

from __future__ import annotations

from devlint.torch_api import Api

ROWS: tuple[Api, ...] = ()
