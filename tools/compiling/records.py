"""Dataclasses as plain classes, whose fields mypyc keeps in a C structure.

A dataclass writes its methods when the program runs, where no compiler sees them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

_DECORATORS = frozenset({"dataclass", "immutable"})
UNCHANGED = "UNCHANGED"
"""What stands in ``replaced_`` for a field that stays as it is."""
_KNOWN = frozenset({"frozen", "slots", "eq"})
_OPTIONS = frozenset({"default", "default_factory", "kw_only", "compare", "hash", "repr"})
_WRITTEN = frozenset({"__init__", "__post_init__", "__eq__", "__hash__", "__setattr__", "__delattr__"})
"""Methods that a dataclass calls, or keeps where the class has one of its own."""
_SPECIAL = re.compile(r"\b(ClassVar|InitVar|KW_ONLY)\b")


@dataclass(frozen=True)
class Field:
    """A field of a record: its name, and code for its type and its default."""

    name: str
    annotation: str
    default: str | None
    factory: str | None
    keyword_only: bool
    compared: bool
    hashed: bool

    @property
    def parameter(self) -> str:
        """The parameter that gives it a value."""
        if self.factory is not None:
            return f"{self.name}: {self.annotation} | None = None"
        return f"{self.name}: {self.annotation}" + ("" if self.default is None else f" = {self.default}")

    @property
    def value(self) -> str:
        """What the parameter says."""
        return self.name if self.factory is None else f"({self.factory})() if {self.name} is None else {self.name}"

    def argument(self, value: str) -> str:
        """A value for it in a call."""
        return f"{self.name}={value}" if self.keyword_only else value


class Records:
    """The dataclasses of several modules, each with the fields of its bases."""

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        self._decorators = {node: decorator for node in classes for decorator in [_decorator(node)] if decorator}
        self._named: dict[str, list[ast.ClassDef]] = defaultdict(list)
        for node in self._decorators:
            self._named[node.name].append(node)
        self._fields = {node: self._all(node) for node in self._decorators}

    def _all(self, node: ast.ClassDef) -> list[Field]:
        bases = [self._named.get(last_name(base), []) for base in node.bases]
        if any(len(found) > 1 for found in bases):
            raise ValueError(f"{node.name} inherits from a name that several records have")
        # what the type of a base's field is called may be unknown where the class stands
        inherited = [replace(field, annotation="Any") for found in bases for base in found for field in self._all(base)]
        fields = [*inherited, *(_field(item) for item in node.body if isinstance(item, ast.AnnAssign))]
        _check(node, fields)
        return fields

    def rewrite(self, node: ast.ClassDef) -> list[ast.stmt]:
        """Make a plain class of a dataclass, if it is one; what is to stand before it: the defaults of its fields."""
        if node not in self._decorators:
            return []
        decorator, fields = self._decorators[node], self._fields[node]
        node.decorator_list = [other for other in node.decorator_list if other is not decorator]
        defaults: dict[str, str] = {}
        for at, field in enumerate(fields):
            if field.default is not None and not isinstance(ast.parse(field.default, mode="eval").body, ast.Constant):
                # inside of the class, a name that it uses may mean a field
                defaults[f"{node.name}_{field.name}_"] = field.default
                fields[at] = replace(field, default=f"{node.name}_{field.name}_")
        methods = ast.parse("\n".join(_methods(node.name, fields, _options(decorator)))).body
        node.body = [*map(_declared, node.body), *methods]
        return ast.parse("\n".join(f"{name}: Final = {default}" for name, default in defaults.items())).body


def _decorator(node: ast.ClassDef) -> ast.Call | ast.Name | None:
    for decorator in node.decorator_list:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(name, ast.Name) and name.id in _DECORATORS and isinstance(decorator, (ast.Call, ast.Name)):
            return decorator
    return None


def _options(decorator: ast.Call | ast.Name) -> dict[str, bool]:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    options = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in keywords}
    if not options.keys() <= _KNOWN:
        raise ValueError(f"what a dataclass does with {', '.join(sorted(options.keys() - _KNOWN))} is not known here")
    return options


def last_name(base: ast.expr) -> str:
    """The name of a base class, without its module, and without what stands in brackets."""
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else ast.unparse(base)


def _check(node: ast.ClassDef, fields: list[Field]) -> None:
    """Refuse a class of which the methods that are written for it would do something else."""
    own = _WRITTEN & {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    if own:
        raise ValueError(f"{node.name}.{min(own)}: a dataclass with a method of its own for that is not known here")
    names = [field.name for field in fields]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{node.name}.{twice[0]}: a field that a base has, too, is not known here")
    bound: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and item.value is not None:
            used = sorted(bound & {part.id for part in ast.walk(item.value) if isinstance(part, ast.Name)})
            if used:
                raise ValueError(f"{ast.unparse(item)}: a default made of {node.name}.{used[0]} is not known here")
        bound |= _binds(item)


def _binds(item: ast.stmt) -> set[str]:
    """The names that a statement of a class gives a value."""
    if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
        return {item.name}
    targets = item.targets if isinstance(item, ast.Assign) else []
    if isinstance(item, ast.AnnAssign) and item.value is not None:
        targets = [item.target]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _field(item: ast.AnnAssign) -> Field:
    value, given = item.value, dict[str, str]()
    if _SPECIAL.search(ast.unparse(item.annotation)):
        raise ValueError(f"{ast.unparse(item)}: what is no field is not known here")
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        given = {keyword.arg or "**": ast.unparse(keyword.value) for keyword in value.keywords}
        if not given.keys() <= _OPTIONS:
            raise ValueError(f"what a field does with {', '.join(sorted(given.keys() - _OPTIONS))} is not known here")
        odd = [name for name in ("kw_only", "compare", "hash") if given.get(name, "True") not in ("True", "False")]
        if odd or (given.get("compare") == "False" and given.get("hash") == "True"):
            raise ValueError(f"{ast.unparse(item)}: what a field does with that is not known here")
    elif value is not None:
        given = {"default": ast.unparse(value)}
    compared = given.get("compare") != "False"
    return Field(
        ast.unparse(item.target), ast.unparse(item.annotation), given.get("default"), given.get("default_factory"),
        given.get("kw_only") == "True", compared, compared and given.get("hash") != "False",
    )  # fmt: skip


def _declared(item: ast.stmt) -> ast.stmt:
    """A field without its default, which ``__init__`` gives it; anything else as it is."""
    return ast.AnnAssign(item.target, item.annotation, None, 1) if isinstance(item, ast.AnnAssign) else item


def _methods(name: str, fields: list[Field], options: dict[str, bool]) -> Iterable[str]:
    ordered = [field for field in fields if not field.keyword_only]
    keywords = [field for field in fields if field.keyword_only]
    parameters = [field.parameter for field in ordered]
    parameters += ["*", *(field.parameter for field in keywords)] if keywords else []
    yield f"def __init__(self, {', '.join(parameters)}) -> None:"
    yield from [f"    self.{field.name} = {field.value}" for field in fields] or ["    pass"]
    if options.get("eq", True):
        yield from _comparison(name, [field.name for field in fields if field.compared])
        if options.get("frozen", False):
            hashed = "".join(f"self.{field.name}, " for field in fields if field.hashed)
            yield "def __hash__(self) -> int:"
            yield f"    return hash(({hashed}))"
    arguments = [
        field.argument(f"self.{field.name} if {field.name} is {UNCHANGED} else {field.name}")
        for field in (*ordered, *keywords)
    ]
    given = "".join(f", {field.name}: Any = {UNCHANGED}" for field in fields)
    yield f"def replaced_(self{', *' if fields else ''}{given}) -> {name}:"
    yield f"    return {name}({', '.join(arguments)})"


def _comparison(name: str, compared: list[str]) -> Iterable[str]:
    """What compares field by field, as a dataclass does: what is the same is equal."""
    tests = " and ".join(f"(self.{field} is that.{field} or self.{field} == that.{field})" for field in compared)
    yield "def __eq__(self, that: object) -> bool:"
    yield "    if self is that:"
    yield "        return True"
    yield f"    if type(that) is not {name}:"
    yield "        return False"
    yield f"    assert isinstance(that, {name})"
    yield f"    return {tests or 'True'}"
