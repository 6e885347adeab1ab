"""Every file becomes a tree or one reason why not."""

from __future__ import annotations

import ast
import sys
import warnings

import libcst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.finding import Span
from devlint.source.text import ParseFailure, split_lines
from devlint.source.tree import Source
from tests.growth import QUADRATIC, Work, growth_of_time


def parsed(data: bytes | str) -> Source:
    source = Source.parse(data, "file.py")
    assert isinstance(source, Source), source
    return source


def failure(data: bytes | str) -> ParseFailure:
    source = Source.parse(data, "file.py")
    assert isinstance(source, ParseFailure)
    assert "\n" not in source.message
    return source


def call_in(source: Source) -> ast.Call:
    return next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("café = f('é', x)\n".encode(), id="utf-8"),
        pytest.param(b"\xef\xbb\xbfcaf\xc3\xa9 = f('\xc3\xa9', x)\n", id="bom"),
        pytest.param("# -*- coding: latin-1 -*-\ncafé = f('é', x)\n".encode("latin-1"), id="latin-1"),
        pytest.param(
            "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ncafé = f('é', x)\n".encode("cp1252"), id="vim"
        ),
        pytest.param("café = f('é', x)\r\n".encode(), id="crlf"),
        pytest.param("# one\rcafé = f('é', x)\r".encode(), id="cr"),
        pytest.param("# one\n\x0c\ncafé = f('é', x)\n".encode(), id="form feed"),
        pytest.param("s = 'a\u2028b\x1cc\x85d'\ncafé = f('é', x)\n".encode(), id="unicode line separators"),
        pytest.param("café = f('é', x)", id="text"),
        pytest.param("\ufeffcafé = f('é', x)", id="text with a bom"),
    ],
)
def test_spans_count_characters_in_any_encoding(data: bytes | str) -> None:
    source = parsed(data)
    call = call_in(source)
    assert source.segment(call) == "f('é', x)"
    span = source.span(call)
    assert (span.column, span.end_column) == (8, 17)
    assert source.lines[span.row - 1][span.column - 1 : span.end_column - 1] == "f('é', x)"


def test_rows_after_a_form_feed_and_a_lone_carriage_return_are_pythons() -> None:
    source = parsed(b"a = 1\r\x0cb = 2\r\nc = f()\n")
    assert source.span(call_in(source)) == Span(3, 5, 3, 8)


def test_segment_over_several_lines() -> None:
    source = parsed(b"x = f(\r\n    1,\r\n)\r\n")
    assert source.segment(call_in(source)) == "f(\n    1,\n)"


@pytest.mark.parametrize(
    ("data", "message", "row"),
    [
        pytest.param(b"x = 1\ny = '\0'\n", "NUL byte", 2, id="NUL"),
        pytest.param(b"x = 1\ny = '\xff'\n", "not valid UTF-8", 2, id="invalid UTF-8"),
        pytest.param(b"# coding: no-such\n", "no-such", 1, id="unknown encoding"),
        pytest.param(b"# coding: hex\nx\n", "hex", 1, id="not a text encoding"),
        pytest.param(b"\xef\xbb\xbf# coding: latin-1\n", "byte order mark", 1, id="bom against comment"),
        pytest.param(b"x = 1\nprint 'loss'\n", "print", 2, id="Python 2"),
        pytest.param(b"try:\n    pass\nexcept E, e:\n    pass\n", "parenthes", 3, id="Python 2 except"),
        pytest.param(b"x.cuda(async=True)\n", "invalid syntax", 1, id="async"),
        pytest.param(b"(" * 2000 + b")" * 2000, "nested", 1, id="2,000 parentheses"),
        pytest.param(b"-" * 100_000 + b"1", "nested", 1, id="100,000 minus signs"),
        pytest.param(b"x = " + b"9" * 5000, "", 1, id="too many digits"),
        pytest.param("x = '\ud800'\n", "", 1, id="lone surrogate"),
        pytest.param(b"def f(:\n", "", 1, id="syntax error"),
        pytest.param(b"if x:\n", "", 1, id="end of file"),
        pytest.param(b"\t x = 1\n        y = 2\n", "", 1, id="tabs and blanks"),
    ],
)
def test_what_cannot_be_parsed_is_a_failure_with_a_place(data: bytes | str, message: str, row: int) -> None:
    found = failure(data)
    assert message.lower() in found.message.lower()
    assert found.message
    assert found.row >= row
    assert found.column >= 1


@pytest.mark.parametrize(
    ("code", "since"),
    [
        ("try:\n    f()\nexcept* E:\n    pass\n", (3, 11)),
        ("def first[T](items: list[T]) -> T:\n    return items[0]\n", (3, 12)),
        ("async def first[T](x: T): ...\n", (3, 12)),
        ("class Box[T]:\n    pass\n", (3, 12)),
        ("type Pair[T] = tuple[T, T]\n", (3, 12)),
        ("x = f'{a['b']}'\n", (3, 12)),
        ("x = f'{a!r:{b[\"\\n\"]}}'\n", (3, 12)),
        ("x = f'a {\n    b['c']\n} d'\n", (3, 12)),
        ('f(rf"{g(1,  # one)\n  "}", {2: {3}})} d {{")\n', (3, 12)),
        ('f(1, f"""{a}""", f"{g(1,\n2)} {f"{b}"} d")\n', (3, 12)),
        ("x = t'{a}'\n", (3, 14)),
    ],
)
def test_syntax_of_a_newer_python_is_told_as_such(code: str, since: tuple[int, int]) -> None:
    if sys.version_info >= since:
        assert parsed(code.encode()).tree.body
        return
    told = f"Python {since[0]}.{since[1]} may know it, devlint runs on {sys.version_info[0]}.{sys.version_info[1]}"
    assert failure(code.encode()).message.endswith(told)


@pytest.mark.parametrize(
    "code",
    ["type = 3 4\n", "def f(:\n", "class A(:\n", "print 'a'\n", "x.type == [1 2]\n", "'a {\n1}'\n",
     "f'don't {x}'\n", "f'a {(\n]} b'\n", "f'{a} b\n'\n", "f'a {b\n"],
)  # fmt: skip
def test_other_broken_code_is_of_no_python(code: str) -> None:
    assert "may know it" not in failure(code.encode()).message


def test_invalid_bytes_have_their_column() -> None:
    assert failure("é = 1\r\nyé = '".encode() + b"\xff'\n") == ParseFailure(
        "the file is not valid UTF-8: invalid start byte", 2, 7
    )


def test_an_empty_file_and_a_long_line_parse() -> None:
    assert parsed(b"").lines == [""]
    assert parsed(b"\xef\xbb\xbf").tree.body == []
    source = parsed(b"x = [" + b"1, " * 350_000 + b"f()]\n")
    assert source.span(call_in(source)).column == 5 + 3 * 350_000 + 1


def test_many_terms_are_a_tree_or_a_failure() -> None:
    for count in (20_000, 400_000):
        assert isinstance(Source.parse(b"x = " + b"+".join([b"1"] * count)), Source | ParseFailure)


def test_warnings_about_the_code_read_are_not_ours(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("error")
    parsed(b"x = '\\d'\ny = 1 is 1\n")
    assert not recwarn.list


def test_cst_of_an_expression_that_needs_its_brackets() -> None:
    source = parsed("y = (é.a\n     .to(device))\n")
    node = source.cst(source.tree.body[0].value)  # type: ignore[attr-defined]  # an expression statement
    assert isinstance(node, libcst.Call)
    assert not node.lpar
    assert libcst.Module([]).code_for_node(node) == "é.a\n     .to(device)"


def test_cst_of_a_plain_expression_keeps_its_text() -> None:
    source = parsed("f( x ,y )")
    assert libcst.Module([]).code_for_node(source.cst(call_in(source))) == "f( x ,y )"  # type: ignore[arg-type]  # it is not None


def test_cst_is_none_where_libcst_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = parsed("f(x)")
    call = call_in(source)
    call.end_col_offset = 2
    assert source.cst(call) is None


@given(st.text(alphabet="a\n\r\x0c\x1c\u2028\x85", max_size=30))
def test_lines_are_pythons_lines(text: str) -> None:
    code = text.replace("a", "a;").replace("\x1c", "").replace("\x85", "").replace("\u2028", "")
    tree = ast.parse(code)
    lines = split_lines(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert lines[node.lineno - 1][node.col_offset] == "a"


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_no_bytes_raise(data: bytes) -> None:
    source = Source.parse(data)
    if isinstance(source, Source):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.expr):
                source.segment(node)


def test_many_places_on_one_long_line_take_time_in_proportion() -> None:
    def work(size: int) -> Work:
        source = Source.parse("x = ['é', " + "f(1), " * size + "]\n")
        assert isinstance(source, Source)
        calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
        assert len(calls) == size
        assert source.span(calls[0]) == Span(1, 11, 1, 15)
        return lambda: [source.span(call) for call in calls]

    assert growth_of_time(work, 2_500, 20_000) < QUADRATIC


@given(st.text("ab é中😀", max_size=12), st.integers(0, 50))
def test_bytes_are_counted_as_characters(line: str, offset: int) -> None:
    source = Source("x.py", line, ast.Module([], []))
    expected = len(line.encode()[:offset].decode("utf-8", "ignore")) if not line.isascii() else offset
    assert source._characters(1, offset) == expected


def test_nodes_inside_f_strings_never_raise() -> None:
    source = parsed('x = f"""\n{a +\n b}\n{c!r:>{width}}"""\n')
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr):
            source.segment(node)
