"""What is compiled is rewritten first: it still does what the sources do, as plain Python, too."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import devlint
from devlint.immutable import replace
from tools.compiling.records import Records
from tools.compiling.rewriting import rewritten
from tools.compiling.selected import modules

ROOT = Path(devlint.__file__).parents[1]

HEADER = """\
from __future__ import annotations
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from devlint.device import Kind
from devlint.immutable import immutable, replace
"""


def rewrite(code: str, name: str = "devlint/flow/made.py") -> str:
    tree = ast.parse(HEADER + code)
    return rewritten(tree, Records([tree]), {}, name)


def both(code: str, name: str = "devlint/flow/made.py") -> tuple[dict[str, Any], dict[str, Any]]:
    """What a module defines, as it is written and as it is compiled."""
    # dataclasses look for the module of a class, which has to be one that was imported
    plain: dict[str, Any] = {"__name__": __name__}
    exec(HEADER + code, plain)
    other: dict[str, Any] = {"__name__": __name__}
    exec(rewrite(code, name), other)
    return plain, other


RECORDS = """
UNKNOWN = (0,)

@immutable(frozen=True, slots=True)
class Base:
    name: str
    device: object = UNKNOWN
    note: str = field(default="", compare=False, repr=False)
    hint: str = field(default="?", hash=False)

@immutable(frozen=True, slots=True)
class Derived(Base):
    '''With a field that has the name of what its default speaks of.'''
    more: tuple[int, ...] = ()
    kept: int = field(default=3, kw_only=True)

    @property
    def twice(self) -> str:
        return self.name * 2

@dataclass
class Bag:
    items: list[int] = field(default_factory=list)
    size: int = 0

@dataclass(eq=False)
class Thing:
    size: int

class Scope:
    UNKNOWN = "not this one"
"""


@pytest.fixture(scope="module")
def records() -> tuple[dict[str, Any], dict[str, Any]]:
    return both(RECORDS)


MAKE = [
    "Base('a')",
    "Base('a', 1)",
    "Base(name='a', device=2, note='x', hint='y')",
    "Derived('a')",
    "Derived('a', 1, 'n', 'h', (1, 2), kept=4)",
    "Bag()",
    "Bag([1], 2)",
    "Bag(size=3)",
    "Thing(3)",
]


@pytest.mark.parametrize("made", MAKE)
def test_a_record_has_the_fields_that_it_is_given(records: tuple[dict[str, Any], dict[str, Any]], made: str) -> None:
    plain, compiled = (eval(made, module) for module in records)
    names = plain.__dataclass_fields__
    assert not hasattr(compiled, "__dataclass_fields__")
    assert {name: getattr(plain, name) for name in names} == {name: getattr(compiled, name) for name in names}


@pytest.mark.parametrize("wrong", ["Base()", "Base('a', wrong=1)", "Derived('a', 1, 'n', 'h', (), 4)", "Thing(1, 2)"])
def test_what_it_does_not_take_is_refused(records: tuple[dict[str, Any], dict[str, Any]], wrong: str) -> None:
    for module in records:
        with pytest.raises(TypeError):
            eval(wrong, module)


VARIANTS = [
    *("Base('a')", "Base('a', note='x')", "Base('a', hint='x')", "Base('b')", "Base('a', device=1)", "Derived('a')"),
    *("Derived('a', kept=4)", "Derived('a', note='other')", "Derived('a', more=(1,))", "Bag()", "Bag([1])", "'a'"),
]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(VARIANTS, repeat=2)))
def test_records_are_equal_where_dataclasses_are(
    records: tuple[dict[str, Any], dict[str, Any]], left: str, right: str
) -> None:
    plain, compiled = (eval(left, module) == eval(right, module) for module in records)
    assert plain is compiled


@pytest.mark.parametrize("made", VARIANTS[:9])
def test_equal_records_have_the_same_hash_and_others_have_others(
    records: tuple[dict[str, Any], dict[str, Any]], made: str
) -> None:
    for module in records:
        found = {other for other in VARIANTS[:9] if hash(eval(other, module)) == hash(eval(made, module))}
        # what is not compared, or not hashed, makes no difference
        same = {"Base('a')", "Base('a', note='x')", "Base('a', hint='x')"} if made in VARIANTS[:3] else {made}
        same |= {"Derived('a')", "Derived('a', note='other')"} if made in ("Derived('a')", VARIANTS[7]) else set()
        assert found == same


def test_objects_that_are_not_compared_are_told_apart(records: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for module in records:
        one = module["Thing"](3)
        assert one == one
        assert one != module["Thing"](3)
        assert len({one, module["Thing"](3)}) == 2


def test_each_bag_has_a_list_of_its_own(records: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for module in records:
        module["Bag"]().items.append(1)
        assert module["Bag"]().items == []


@pytest.mark.parametrize(
    "changes", [{}, {"name": "b"}, {"device": None, "more": (7,)}, {"kept": 9}, {"note": "n", "hint": "h"}]
)
def test_a_copy_has_the_changes_and_everything_else(
    records: tuple[dict[str, Any], dict[str, Any]], changes: dict[str, object]
) -> None:
    names = ("name", "device", "note", "hint", "more", "kept")
    for module in records:
        value = module["Derived"]("a", 1, "n0", "h0", (1, 2), kept=4)
        twin = replace(value, **changes)
        expected = dict(zip(names, ("a", 1, "n0", "h0", (1, 2), 4), strict=True)) | changes
        assert type(twin) is type(value)
        assert twin is not value
        assert {name: getattr(twin, name) for name in names} == expected


def test_the_copies_that_the_interpreter_makes_need_no_dictionary() -> None:
    code = RECORDS + "\ndef renamed(value: Base, name: str) -> Base:\n    return replace(value, name=name)\n"
    plain, compiled = both(code)
    assert "replaced_(name=name)" in rewrite(code)
    for module in (plain, compiled):
        assert module["renamed"](module["Derived"]("a", kept=7), "b").kept == 7


@pytest.mark.parametrize(
    "code",
    [
        "from dataclasses import replace\n@dataclass\nclass A:\n    x: int\nreplace(A(1), x=2)\n",
        "@dataclass(order=True)\nclass A:\n    x: int\n",
        "@dataclass\nclass A:\n    x: int = field(init=False)\n",
        "@dataclass\nclass A:\n    x: ClassVar[int] = 3\n",
        "@dataclass\nclass A:\n    x: InitVar[int] = 3\n",
        "@dataclass\nclass A:\n    _: KW_ONLY\n    x: int\n",
        "@dataclass\nclass A:\n    x: int = dataclasses.field(init=False)\n",
        "@dataclass\nclass A:\n    x: int = field(compare=not True)\n",
        "@dataclass(frozen=True)\nclass A:\n    x: int = field(compare=False, hash=True)\n",
        "@dataclass\nclass A:\n    x: int\n    def __post_init__(self):\n        self.x += 1\n",
        "@dataclass\nclass A:\n    x: int\n    def __eq__(self, that):\n        return True\n",
        "@dataclass\nclass A:\n    x: int\n@dataclass\nclass B(A):\n    x: int\n",
        "@dataclass\nclass A:\n    x: int = 3\n    y: int = x\n",
        "@dataclass\nclass A:\n    x = 3\n    y: int = -x\n",
        "class A:\n    @cached_property\n    def x(self):\n        return 3\n",
        "@dataclass\nclass A:\n    x: int\n" * 2 + "@dataclass\nclass B(A):\n    z: int\n",
    ],
)
def test_what_is_not_known_how_to_rewrite_stops_the_build(code: str) -> None:
    with pytest.raises(ValueError, match=r"known here|a kept property|several records"):
        rewrite(code)


def test_every_module_that_is_compiled_can_be_rewritten() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules(ROOT)}
    records = Records(trees.values())
    for path, tree in trees.items():
        compile(rewritten(tree, records, {}, path.relative_to(ROOT).as_posix()), str(path), "exec")


def test_a_default_may_have_the_name_of_its_field() -> None:
    code = "x = 3\n\n@dataclass\nclass A:\n    x: int = -x\n\nresult = A().x\n"
    plain, other = both(code)
    assert other["result"] == plain["result"] == -3


def test_a_factory_may_be_a_lambda_and_spelled_in_full() -> None:
    code = """
import dataclasses
@dataclass
class A:
    x: list[int] = field(default_factory=lambda: [1])
    y: list[int] = dataclasses.field(default_factory=list)
A().y.append(2)
result = A().x, A().y, A([3]).x
"""
    plain, other = both(code)
    assert other["result"] == plain["result"] == ([1], [], [3])


def test_a_base_is_known_by_its_name() -> None:
    code = """
from typing import Generic, TypeVar
T = TypeVar("T")
@dataclass
class A(Generic[T]):
    x: T
@dataclass
class B(A[int]):
    y: int
result = B(1, 2).x, B(1, 2) == B(2, 2)
"""
    plain, other = both(code)
    assert other["result"] == plain["result"] == (1, False)


def test_a_name_is_given_its_value_once_where_a_class_of_nodes_is_asked_for() -> None:
    code = """
parts = [ast.Pass(), ast.Name("x")]
result = isinstance(part := parts.pop, (ast.Call, ast.Name)), isinstance(last := parts[-1], (ast.Call, ast.Name))
"""
    assert rewrite(code).count("parts[-1]") == 1
    plain, other = both(code)
    assert other["result"] == plain["result"] == (False, True)


def test_a_kept_property_is_computed_once_and_can_be_set() -> None:
    code = """
class Kept:
    def __init__(self) -> None:
        self.asked = 0
    @cached_property
    def answer(self) -> int:
        self.asked += 1
        return 42
"""
    for module in both(code):
        one, other = module["Kept"](), module["Kept"]()
        assert (one.answer, one.answer, one.asked, other.asked) == (42, 42, 1, 0)
        other.answer = 7
        assert (other.answer, other.asked, one.answer) == (7, 0, 42)


def test_an_attribute_that_is_missing_in_a_kept_property_is_an_error() -> None:
    code = "class Kept:\n    @cached_property\n    def answer(self) -> int:\n        return self.nothing\n"
    for module in both(code):
        with pytest.raises(AttributeError, match="nothing"):
            _ = module["Kept"]().answer


def test_what_is_emptied_has_no_attributes_left() -> None:
    code = """
class Holder:
    @cached_property
    def nodes(self) -> list[int]:
        return [1]

@dataclass(eq=False)
class FunctionInfo(Holder):
    node: int
    slots: list[int] | None = None

    def fill(self) -> None:
        self.later = 4

def _empty(one: object) -> None:
    vars(one).clear()
"""
    for module in both(code):
        info = module["FunctionInfo"](3, [4])
        info.fill()
        assert info.nodes == [1]
        module["_empty"](info)
        assert not any(name in vars(info) for name in ("node", "later", "nodes", "kept_nodes_"))
        module["_empty"](info)


GENERATORS = """
def squares(values: list[int]) -> Iterator[int]:
    return (value * value for value in values)

def first(values: list[int]) -> int | None:
    return next((value for value in values if value > 1), None)

def enough(values: list[int]) -> bool:
    return any(value > 1 for value in values)

def spread(values: list[int]) -> list[int]:
    return [0, *(value + 1 for value in values)]

def nested(values: list[list[int]]) -> list[int]:
    return sorted((sum(part for part in value) for value in values), key=lambda value: -value)

def joined(values: list[int]) -> str:
    return ",".join(str(value) for value in (other for other in values))
"""


def test_generators_give_what_they_gave() -> None:
    plain, compiled = both(GENERATORS)
    for module in (plain, compiled):
        found = module["squares"]([1, 2])
        assert isinstance(found, Iterator)
        assert next(found) == 1
        assert list(found) == [4]
    for name, values in {
        "first": [[], [1], [1, 2, 3]],
        "enough": [[], [1], [1, 2]],
        "spread": [[], [1, 2]],
        "nested": [[], [[1, 2], [7]]],
        "joined": [[], [1, 2]],
    }.items():
        for value in values:
            assert plain[name](value) == compiled[name](value)


def test_a_generator_that_stops_early_still_does() -> None:
    code = "def first(values: Iterator[int]) -> bool:\n    return any(value > 1 for value in values)\n"
    for module in both(code):
        values = iter([1, 2, 3])
        assert module["first"](values)
        assert next(values) == 3


KINDS = [
    "ast.Name",
    "(ast.Name, ast.Attribute)",
    "ast.expr",
    "(ast.stmt, ast.Call)",
    "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda",
    "(ast.operator, int)",
    "ast.AST",
]


@pytest.mark.parametrize("kinds", KINDS)
def test_nodes_are_of_the_same_kinds(kinds: str) -> None:
    code = f"def is_one(node: object) -> bool:\n    return isinstance(node, {kinds})\n"
    plain, compiled = both(code)
    classes = {kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)}
    # what stands for an older Python's nodes makes nodes of other classes
    nodes = [kind() for kind in classes if type(kind) is type and kind.__new__ is ast.AST.__new__]
    assert len(nodes) > 80
    answers = [plain["is_one"](node) for node in (*nodes, 3, None)]
    assert answers == [compiled["is_one"](node) for node in (*nodes, 3, None)]
    assert True in answers


def test_what_is_asked_of_a_call_is_called_once() -> None:
    code = """
def is_one(calls: list[ast.AST]) -> bool:
    return isinstance(calls.pop(), (ast.Name, ast.Attribute))

def last(calls: list[ast.AST]) -> bool:
    return isinstance(calls.pop(), ast.Name)
"""
    for module in both(code):
        calls: list[ast.AST] = [ast.Name(), ast.Attribute()]
        assert module["is_one"](calls)
        assert module["last"](calls)
        assert calls == []


def test_members_of_enumerations_and_classes_of_nodes_are_looked_up_once() -> None:
    code = (
        "def known(kind: Kind) -> bool:\n    return kind is Kind.CPU\n\ndef made() -> ast.AST:\n    return ast.Pass()\n"
    )
    text = rewrite(code)
    assert "Kind_CPU_: Final = Kind.CPU" in text
    assert "ast_Pass_: Final = ast.Pass" in text
    for module in both(code):
        assert module["known"](module["Kind"].CPU)
        assert not module["known"](module["Kind"].UNKNOWN)
        assert type(module["made"]()) is ast.Pass


DEEP = """
def evaluate(node: object, frame: int = 0) -> int:
    if isinstance(node, str):
        raise ValueError(node)
    return 0 if node is None else 1 + evaluate(node[0], frame)
"""


def nested(depth: int, last: object = None) -> object:
    for _ in range(depth):
        last = [last]
    return last


def test_what_nests_too_deeply_is_an_error_and_not_the_end() -> None:
    _, compiled = both(DEEP, "devlint/flow/evaluation/expressions.py")
    assert "evaluate_unguarded_(node, frame)" in rewrite(DEEP, "devlint/flow/evaluation/expressions.py")
    evaluate, depth = compiled["evaluate"], compiled["DEPTH_"]
    assert evaluate(nested(100)) == 100
    with pytest.raises(ValueError, match="no number"):
        evaluate(nested(50, "no number"))
    assert depth.now == 0
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(20_000)
        assert evaluate(nested(3_000)) == 3_000
        sys.setrecursionlimit(9_000)
        depth.now = 8_999
        with pytest.raises(RecursionError):
            evaluate(nested(3))
        assert depth.now == 8_999
    finally:
        sys.setrecursionlimit(limit)


def test_a_function_to_guard_that_is_gone_stops_the_build() -> None:
    with pytest.raises(ValueError, match="evaluate"):
        rewrite("def other() -> None:\n    pass\n", "devlint/flow/evaluation/expressions.py")
