"""How a message names what code keeps on a device."""

from __future__ import annotations

import re

AN_ITEM = "an item of "
"""What the text of something begins with that has no name: an item of a list."""
_PRIMARY = re.compile(r"[^\W\d][\w.]*(?:\(.*\)|\[.*\])?")
"""Text after which an attribute can be written as it is: ``x``, ``self.layers[0]``, ``parser.parse_args(argv)``."""


def device_of(text: str) -> str:
    """The device of something that the code calls ``text``."""
    return f"`{text}.device`" if _PRIMARY.fullmatch(text) else f"the device of {_quoted(text)}"


def listed(names: list[str]) -> str:
    """Several devices, of which two are enough to find the rest."""
    return " or ".join(names) if len(names) <= 2 else f"{names[0]}, {names[1]} or another device"


def _quoted(text: str) -> str:
    """A piece of code in a message: "an item of `xs`", where the item has no name."""
    return f"{AN_ITEM}{_quoted(text[len(AN_ITEM) :])}" if text.startswith(AN_ITEM) else f"`{text}`"
