"""The documentation of the record says what the record is: every class, every field, every type, every fixed word."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from pathlib import Path

import msgspec
import pytest

import devlint
from devlint import observation, record
from tests.report import records

PAGE = Path(devlint.__file__).parents[1] / "docs" / "audit-record.md"
if not PAGE.is_file():
    pytest.skip("the documentation is not part of this distribution", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")
CLASSES = {
    name: value
    for module in (record, observation)
    for name, value in vars(module).items()
    if dataclasses.is_dataclass(value) and value.__module__ == module.__name__
}
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", typing.Any: "object"}


def in_json(hint: object) -> str:
    """A field's type in the words of the page."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return f"{in_json(inner)}, or null"
    if origin is tuple:
        return f"array of {in_json(arguments[0])}"
    if origin is dict:
        return "object" if arguments[1] is typing.Any else f"object of {in_json(arguments[1]).partition(' of')[0]}"
    if origin is typing.Literal:
        return "string"
    return WORDS.get(hint) or hint.__name__  # type: ignore[call-overload,attr-defined]  # what is left is a class of the record


def test_every_class_is_documented_and_nothing_else() -> None:
    assert SECTIONS.keys() == CLASSES.keys()
    assert f"format **{record.FORMAT}**" in TEXT
    assert f"The version of this format: {record.FORMAT}." in TEXT


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_is_documented_and_nothing_else(name: str) -> None:
    hints = typing.get_type_hints(CLASSES[name])
    rows = ROW.findall(SECTIONS[name])
    assert [(field, kind) for field, kind, _ in rows] == [(field, in_json(hint)) for field, hint in hints.items()]
    for field, _, meaning in rows:
        words = typing.get_args(hints[field]) if typing.get_origin(hints[field]) is typing.Literal else ()
        assert [word for word in words if word and f"`{word}`" not in meaning] == []


def test_what_was_measured_is_documented() -> None:
    """The same words as a finding of an audit has."""
    from devlint.finding import Measurement

    paragraph = SECTIONS["Record"].partition("The `measured` of a finding")[2]
    assert set(re.findall(r"`(\w+)`", paragraph)) - {"null"} == {each.name for each in dataclasses.fields(Measurement)}


@pytest.mark.parametrize("name", records.every())
def test_a_record_survives_its_json(name: str) -> None:
    before = records.every()[name]
    assert msgspec.json.decode(msgspec.json.encode(before), type=record.Record) == before
