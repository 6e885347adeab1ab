"""Expressions that mypyc takes for something else, or makes slower than they have to be."""

from __future__ import annotations

import ast

_CONSUMERS = frozenset(
    {"tuple", "list", "set", "frozenset", "dict", "sorted", "max", "min", "any", "all", "sum", "next"}
)
_TAKERS = frozenset({"join", "extend", "update"})
"""Functions and methods that use up what a generator expression yields, which mypyc knows."""
_ABSTRACT = frozenset(
    {"AST", "expr", "stmt", "mod", "operator", "cmpop", "unaryop", "boolop", "expr_context", "pattern", "slice"}
    | {"excepthandler", "type_ignore", "type_param"}
)
"""Classes of nodes that have subclasses."""
_ONCE = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""What must not be computed once more for each class that ``isinstance`` is asked about."""


class Generators(ast.NodeTransformer):
    """Where a generator expression is handed on, mypyc makes a list of it; make an iterator of that at least.

    What it yields is computed at once then: none of the sources' generators asks for what changes meanwhile.
    """

    def __init__(self) -> None:
        self._used_up: set[ast.expr] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """One that is used up by the function it is given to is left alone."""
        function = node.func
        consumes = isinstance(function, ast.Name) and function.id in _CONSUMERS
        if consumes or (isinstance(function, ast.Attribute) and function.attr in _TAKERS):
            self._used_up.update(node.args[:1])
        return self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        """So is one that is unpacked."""
        self._used_up.add(node.value)
        return self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """An iterator over a list."""
        self.generic_visit(node)
        if node in self._used_up:
            return node
        made = ast.ListComp(node.elt, node.generators)
        return ast.Call(ast.Name("iter", ast.Load()), [made], [])


class Constants(ast.NodeTransformer):
    """``ast.Name`` and ``Kind.CPU`` are looked up once in each module, and kinds of nodes are compared by identity.

    ``replace`` of a value calls what its class has for that, which mypyc knows.
    """

    def __init__(self, enumerations: frozenset[str], replaces: bool) -> None:
        self.found: dict[str, str] = {}
        self._enumerations = enumerations
        self._replaces = replaces

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Types stay as they are."""
        node.body = [self.visit(statement) for statement in node.body]
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Bases stay as they are."""
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """So does what an annotation says."""
        node.value = self.visit(node.value) if node.value is not None else None
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """So do names for types."""
        union = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        alias = isinstance(node.value, (ast.Attribute, ast.Subscript)) and not node.col_offset
        return node if union or alias else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A class of nodes, or a member of an enumeration."""
        owner = ast.unparse(node.value) if isinstance(node.ctx, ast.Load) else ""
        is_class = owner == "ast" and isinstance(getattr(ast, node.attr, None), type)
        if is_class or (owner in self._enumerations and node.attr.isupper()):
            return self._constant(owner, node.attr)
        return self.generic_visit(node)

    def _constant(self, owner: str, name: str) -> ast.Name:
        key = f"{owner.replace('.', '_')}_{name}_"
        self.found[key] = f"{owner}.{name}"
        return ast.Name(key, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``isinstance``, ``replace``, and the emptying of an object."""
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function in ("TypeVar", "cast"):
            return node
        if function == "isinstance":
            kinds = _nodes(node.args[1])
            if kinds and (len(kinds) == 1 or not any(isinstance(part, _ONCE) for part in ast.walk(node.args[0]))):
                return self._is_one_of(self.visit(node.args[0]), kinds)
        if function == "replace" and self._replaces and len(node.args) == 1:
            self.generic_visit(node)
            return ast.Call(ast.Attribute(node.args[0], "replaced_", ast.Load()), [], node.keywords)
        if ast.unparse(node.func).endswith(").clear") and ast.unparse(node.func).startswith("vars("):
            emptied = ast.unparse(node.func)[len("vars(") : -len(").clear")]
            return ast.parse(f"getattr({emptied}, 'dissolve_')()", mode="eval").body
        return self.generic_visit(node)

    def _is_one_of(self, value: ast.expr, kinds: list[str]) -> ast.expr:
        tests: list[ast.expr] = []
        for kind in kinds:
            constant = self._constant("ast", kind)
            if kind in _ABSTRACT:
                tests.append(ast.Call(ast.Name("isinstance", ast.Load()), [value, constant], []))
            else:
                exact = ast.Call(ast.Name("type", ast.Load()), [value], [])
                tests.append(ast.Compare(exact, [ast.Is()], [constant]))
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)


def _nodes(kinds: ast.expr) -> list[str]:
    """The classes of nodes that the second argument of ``isinstance`` names; none if there is anything else."""
    if isinstance(kinds, ast.Tuple):
        parts: list[ast.expr] = kinds.elts
    elif isinstance(kinds, ast.BinOp):
        parts = [kinds.left, kinds.right]
    else:
        plain = isinstance(kinds, ast.Attribute) and ast.unparse(kinds.value) == "ast"
        return [kinds.attr] if plain and isinstance(kinds, ast.Attribute) else []
    found = [_nodes(part) for part in parts]
    return [name for names in found for name in names] if all(found) else []
