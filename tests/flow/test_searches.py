"""What is looked for in texts, against expressions that say the same plainly, on texts of odd pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint import torch_api
from devlint.check.project.definitions import Definitions
from devlint.flow.program.relevance import Constructors, called_of, calls, calls_of_self, places, says_where, spoken_of
from devlint.flow.syntax.bindings import rebound

_ODD = ("\n", "\n", "\r\n", "\r", "\f", " ", "\t", "\u00a0", "\u2028", "\\\n", "\u00e9", "\U0001f917", "_", "1", "\x1c")
"""Line ends, spaces, and what goes on with a name, or does not."""
_SIGNS = (".", "(", ")", "[", "{", "=", "==", ":", "#", '"', "*", ",")
_FACTORIES = """zeros ones full empty eye arange linspace logspace rand randn randint randperm tensor as_tensor
from_numpy tril_indices triu_indices""".split()
_ANYWHERE = """cuda device .to( .cpu( type_as( xpu( DataLoader DataParallel data_parallel load_url state_dict_from_url
register_buffer empty_cache gc.collect .backward( Sampler( random_split( init_process_group _VISIBLE_ .numpy(
pin_memory( pack_padded_sequence( Tensor( _window( square_subsequent_mask current_accelerator )(""".split()
_WORDS = "|".join([*map(re.escape, _ANYWHERE), rf"(?<!\w)(?:load|range|{'|'.join(_FACTORIES)})\("])
_OF_TORCH = "|".join(word for word in sorted(torch_api.words()) if not re.search(_WORDS, f"{word}("))
_MATTERS = re.compile(rf"{_WORDS}|self\.\w+ *(?::[^=\n]+)?= *[\[({{]|\.(?:{_OF_TORCH})(?!\w)")
_SAYS_WHERE = re.compile(
    r"device|cuda|\.(?:to|cpu|type_as|xpu|mps|pin_memory)\(|DataLoader\(|Parallel\(|\.load\(|Tensor\("
    rf"|(?<!\w)(?:{'|'.join(_FACTORIES)})\("
)
_MENTION = re.compile(r"(?<!\bself)\.(\w+)|\bself\.(\w+)\(")


def _texts(*words: str) -> st.SearchStrategy[str]:
    pieces = st.one_of(*map(st.sampled_from, (words, _ODD, _SIGNS)))
    return st.lists(pieces, max_size=14).map("".join)


_CALLS = [f"{name}(" for name in ("load", "range", *_FACTORIES)]
_CODE = _texts(*_ANYWHERE, *_CALLS, "range", ".is_available", ".mps(")


def _rows_of(text: str, places: Iterable[int]) -> set[int]:
    return {text.count("\n", 0, at) for at in places}


def _rows(text: str) -> set[int]:
    """The rows with something that matters, by an expression for each row."""
    return {row for row, line in enumerate(text.split("\n")) if _MATTERS.search(line)}


@given(st.one_of(_CODE, _texts("self.x", "self.x:", "self.x = [", "=[", "= {")))
@settings(max_examples=400)
def test_what_matters_is_found_in_its_row(text: str) -> None:
    assert _rows_of(text, places(text)) == _rows(text)


@given(_CODE)
@settings(max_examples=400)
def test_what_says_where_something_is_is_found(text: str) -> None:
    assert says_where(text) == bool(_SAYS_WHERE.search(text))


@pytest.mark.parametrize("word", [*_ANYWHERE, *_CALLS])
def test_each_word_matters_by_itself(word: str) -> None:
    assert _rows(f"\n{word}") == {1}
    assert _rows_of(word, places(word)) == {0}


@given(_texts("a", "b", "a.", "b(", "a.b(", ".a.b("))
def test_what_is_called_of_a_module(text: str) -> None:
    assert [*called_of("a", text)] == re.findall(r"(?<![\w.])a\.(\w+)\(", text)


@given(_texts("a", "b(", "a.b(", "aa(", ".a("), st.booleans())
def test_where_functions_are_called(text: str, many: bool) -> None:
    functions = ["a", "b", "a.b", *(f"c{number}" for number in range(50 if many else 1))]
    found = re.finditer(rf"(?<![\w.])(?:{'|'.join(map(re.escape, functions))})\(", text)
    assert _rows_of(text, calls(functions, text)) == _rows_of(text, (match.start() for match in found))


@given(_texts("a", "b", "ab", ".a"), st.booleans())
def test_where_names_are_spoken_of(text: str, many: bool) -> None:
    names = ["a", "b", *(f"c{number}" for number in range(50 if many else 1))]
    assert {*spoken_of(names, text)} == {match.start() for match in re.finditer(r"(?<![\w.])[ab]\b", text)}


@given(_texts("self.a(", "self.", "a(", "self.aa(", "self.self.b("))
def test_where_methods_of_self_are_called(text: str) -> None:
    found = re.finditer(r"self\.(?:a|b)\(", text)
    assert _rows_of(text, calls_of_self({"a", "b"}, text)) == _rows_of(text, (match.start() for match in found))


@given(_texts("global", "nonlocal", "global x", "nonlocal x, y"))
def test_what_functions_rebind(text: str) -> None:
    found = re.findall(r"^\s+(?:global|nonlocal)\s+(.*)$", text, re.MULTILINE)
    assert rebound(text) == {name.strip() for listed in found for name in listed.split("#")[0].split(",")}


@given(_texts("self", ".a", ".a(", "self.a", "self.a("), _texts("self.a(", ".a(", "self.a"))
def test_who_asks_for_a_method(text: str, body: str) -> None:
    def mentions(code: str) -> int:
        return sum("a" in either for either in _MENTION.findall(code))

    asked = "a" in re.findall(r"\.(\w+)\(", body) and mentions(text + body) <= mentions(body)
    assert Constructors([body], text + body).alone_call("a") == asked


_DEFINING = _texts("\ndef a(", "def a", "def", "class a", "async  def a", "import", "import *", "import \\\n*", "a")


@given(_DEFINING)
def test_stars_are_seen(text: str) -> None:
    # a name that stands nowhere can only come from a star
    assert Definitions(text).may_bind("other") == bool(re.search(r"import[\s\\]*\*", text))


@given(_DEFINING)
def test_a_definition_ends_where_the_next_statement_begins(text: str) -> None:
    found = re.findall(r"^(?:async +def|def|class) +(\w+)", text, re.MULTILINE)
    definitions = Definitions(text)
    assert [name for name in {*found, "a"} if definitions.defines(name)] == [
        name for name in {*found, "a"} if found.count(name) == 1
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n\f\n"])
@pytest.mark.parametrize("before", ["", "x = 1", "# cuda"])
@pytest.mark.parametrize(
    ("line", "inside"),
    [("    x.cuda()", True), ("# cuda", True), ("): x.cuda()", True), ("x.cuda()", False), ("@cuda", False)],
)
def test_a_definition_is_read_to_its_end(before: str, line: str, inside: bool, end: str) -> None:
    text = end.join([before, "async def a(", "    x", "):", "    return 1", line, ""])
    assert Definitions(text).worth("a") == inside
