"""Positions as editors count them, and what changes between two texts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol import types

from devlint.finding import Span
from devlint.server.documents import Part, changed, units
from devlint.server.messages import FIX_ALL
from devlint.source.text import split_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

UTF8, UTF16, UTF32 = types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16, types.PositionEncodingKind.Utf32
TEXT = st.text(st.sampled_from("ab é😀\n\r\x0c\u2028"), max_size=30)
ENCODING = st.sampled_from([UTF8, UTF16, UTF32])


def applied(text: str, edits: list[types.TextEdit], encoding: types.PositionEncodingKind) -> str:
    """The last first, so that no edit moves another."""
    for edit in reversed(edits):
        text = changed(text, types.TextDocumentContentChangePartial(edit.range, edit.new_text), encoding)
    return text


@example("\r\n", "\r", UTF8)
@example("\r\n", "\n", UTF8)
@example("a\r\nb", "a\rb", UTF16)
@given(TEXT, TEXT, ENCODING)
def test_edits_lead_from_one_text_to_the_other(before: str, after: str, encoding: types.PositionEncodingKind) -> None:
    edits = Part("", before, encoding=encoding).edits(after)
    assert applied(before, edits, encoding) == after
    assert (edits == []) == (before == after)


@given(TEXT, ENCODING, st.data())
def test_places_lead_back(text: str, encoding: types.PositionEncodingKind, data: st.DataObject) -> None:
    lines = split_lines(text)
    row = data.draw(st.integers(1, len(lines)))
    column = data.draw(st.integers(1, len(lines[row - 1]) + 1))
    part = Part("", text, encoding=encoding)
    place = part.place(Span(row, column, row, column))
    assert part.column(place.start) == (row, column)
    assert place.start.character == units(lines[row - 1][: column - 1], encoding)


@pytest.mark.parametrize(("encoding", "count"), [(UTF8, 6), (UTF16, 3), (UTF32, 2)])
def test_units(encoding: types.PositionEncodingKind, count: int) -> None:
    assert units("é😀", encoding) == count


def test_changes_of_an_editor() -> None:
    def change(text: str, start: tuple[int, int], end: tuple[int, int], new: str) -> str:
        place = types.Range(types.Position(*start), types.Position(*end))
        return changed(text, types.TextDocumentContentChangePartial(place, new), UTF16)

    assert change("a\r\n😀b\n", (1, 2), (1, 3), "x") == "a\r\n😀x\n"
    assert change("a\nb", (0, 1), (1, 0), "") == "ab"
    # a form feed ends no line
    assert change("a\x0cb\nc", (1, 0), (1, 1), "x") == "a\x0cb\nx"
    # beyond the end is the end
    assert change("a", (0, 9), (7, 7), "!") == "a!"
    assert changed("a", types.TextDocumentContentChangeWholeDocument("b"), UTF16) == "b"


def test_an_edit_is_small() -> None:
    (edit,) = Part("", "x = 1\ny.to(d)\nz = 2\n").edits("x = 1\ny = y.to(d)\nz = 2\n")
    assert edit.range.start.line == edit.range.end.line == 1
    assert len(edit.new_text) == 4


def test_the_settings_that_the_documentation_shows() -> None:
    """All of them start `devlint server`, and can be read by the editor."""
    text = (ROOT / "docs" / "editor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = {kind: [body for other, body in blocks if other == kind] for kind, _ in blocks}
    helix = tomllib.loads(found["toml"][0])
    assert helix["language-server"]["devlint"] == {"command": "devlint", "args": ["server"]}
    assert helix["language"][0]["language-servers"][0] == "devlint"
    settings, manifest = map(json.loads, found["json"])
    assert [settings["glspc.server.command"], *settings["glspc.server.commandArguments"]] == ["devlint", "server"]
    assert list(settings["editor.codeActionsOnSave"]) == [FIX_ALL]
    assert manifest["main"] == "./extension.js"
    assert 'cmd = { "devlint", "server" }' in found["lua"][0]
    assert f'only = {{ "{FIX_ALL}" }}' in found["lua"][1]
    assert 'command: "devlint", args: ["server"]' in found["js"][0]
