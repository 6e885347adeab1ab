"""Cells of a notebook by the names that IPython shows, ``In[3]``, instead of those of files that nobody has seen."""

from __future__ import annotations

import sys
from typing import Any

from devlint.record import Record


def named(record: Record) -> Record:
    """The record with each cell that IPython knows called as in its tracebacks; as it is where there is no IPython."""
    session = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(session, "compile", None), "format_code_name", lambda _: None)  # since IPython 7.31
    names = {file: f"<{found[1]}>" for file in record.sources if (found := name_of(file))}
    if not names:
        return record
    import msgspec

    renamed: Record = msgspec.convert(_renamed(msgspec.to_builtins(record), names), Record)
    return renamed


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """A value in which every text that is the name of a file is its other name; of code and figures nothing changes."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list | tuple) else value
