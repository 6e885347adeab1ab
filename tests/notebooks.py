"""Notebooks to check, made of the texts of their cells."""

from __future__ import annotations

import json
from typing import Any


def cell(text: str, kind: str = "code", **more: Any) -> dict[str, Any]:
    """One cell, as Jupyter writes it."""
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **more}
    if kind == "code":
        made |= {"execution_count": 3, "outputs": [{"name": "stdout", "output_type": "stream", "text": ["é\n"]}]}
    return made


def document(*cells: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    """A notebook of cells, of which texts are code."""
    return {
        "cells": [cell(item) if isinstance(item, str) else item for item in cells],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
        **more,
    }


def notebook(*cells: str | dict[str, Any], indent: int | None = 1, end: str = "\n", **more: Any) -> bytes:
    """The file of a notebook, as Jupyter writes it."""
    return (json.dumps(document(*cells, **more), indent=indent, ensure_ascii=False) + end).encode()


def sources(data: bytes) -> list[str]:
    """The texts of a notebook's cells, as any reader of JSON has them."""
    return ["".join(cell["source"]) for cell in json.loads(data.decode("utf-8-sig"))["cells"]]
