"""The symbol table: the functions and classes of a file, its imports, and which of its lines matter."""

from __future__ import annotations

import ast
import bisect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from devlint.flow.catalog.libraries import BUILT_IN, Catalog, canonical
from devlint.flow.catalog.methods import OF_MODULES
from devlint.flow.catalog.modules import WRAPPERS
from devlint.flow.program import fragments, hooks, relevance
from devlint.flow.program.identity import identity
from devlint.flow.program.module_bases import is_module_path, is_plain, registers
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.bindings import Outline, rebound, top_level
from devlint.source.syntax import line_starts

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_INITIALISERS = frozenset("__init__ _init_weights reset_parameters init_weights __new__ _reset_parameters".split())


@dataclass(eq=False)
class FunctionInfo(nodes.Holder):
    """A function or method: its node, its class, whether it mentions anything that matters."""

    node: FunctionNode
    owner: ClassInfo | None
    triggered: bool
    index: Index
    shim: bool = False
    """Whether it is defined for the sake of another version of torch."""
    guarded: bool = False
    """Whether it is defined only where an accelerator was found."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    def _all(self) -> list[ast.AST]:
        return nodes.walk(self.node)

    @cached_property
    def own(self) -> list[ast.AST]:
        """Every node of the function that belongs to no function or class inside it."""
        return nodes.own(self.node)

    @cached_property
    def qualname(self) -> str:
        """The name with its class, the line, which makes it unique in a file, and what stands for another file."""
        prefix = f"{self.owner.node.name}." if self.owner else ""
        return f"{self.index.label}{prefix}{self.name}:{self.node.lineno}"

    @cached_property
    def decorators(self) -> tuple[str, ...]:
        """The dotted names of the decorators, calls included."""
        return names.decorators(self.node)

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters that have names."""
        return nodes.parameters(self.node.args)

    @cached_property
    def is_generator(self) -> bool:
        """Whether a call makes a generator instead of running the body."""
        yields = any(self.of(kind) for kind in (ast.Yield, ast.YieldFrom))
        return yields and any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in self.own)

    @cached_property
    def device_aware(self) -> bool:
        """Whether the function itself says where something is to live."""
        found: list[ast.AST] = [node for node in self.of(ast.keyword) if node.arg == "device"]
        found += [node for node in self.attributes if node.attr in ("device", "is_cuda", "cuda", "type_as")]
        return bool(found) and not set(found).isdisjoint(self.own)

    @cached_property
    def dedicated(self) -> bool:
        """Whether it imports what needs CUDA, whatever it is asked for."""
        tried = (part for each in self.node.body if isinstance(each, ast.Try) for part in each.body)
        return bool(self.index.needs([*self.node.body, *tried]))

    @cached_property
    def initialises(self) -> bool:
        """Whether it runs before the module can have been moved: a constructor, and what only constructors call."""
        if self.name in _INITIALISERS:
            return True
        if self.owner is None:
            return False
        callers = self.owner.callers.get(self.name, ())
        if callers:
            return all(caller.name == "__init__" for caller in callers)
        return self.owner.index.constructors.alone_call(self.name)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names that functions inside of this one assign as ``nonlocal``."""
        all_ = self.of(ast.Nonlocal)
        own = {name for node in self.own if isinstance(node, ast.Nonlocal) for name in node.names} if all_ else ()
        return frozenset(name for node in all_ for name in node.names).difference(own)

    @property
    def stated(self) -> str:
        """The name under which a user has written a row for it, empty where nobody has."""
        return self.index.stated.get(self.name if self.owner is None else f"{self.owner.name}.{self.name}", "")

    @property
    def private(self) -> bool:
        """Whether only the file itself is meant to call it."""
        return self.name.startswith("_") and not self.name.startswith("__")

    @property
    def moves(self) -> bool:
        """Whether it implements a move, where a literal device is the point."""
        return self.name in OF_MODULES or self.name == "_apply"


@dataclass(eq=False)
class ClassInfo(nodes.Holder):
    """A class of the file: its methods, its bases as canonical names, and whether it is a module."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    index: Index
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    shim: bool = False
    """Whether it is defined for the sake of another version of torch."""
    inherited: dict[str, FunctionInfo | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The class's name."""
        return self.node.name

    @property
    def stated(self) -> str:
        """The name under which a user has written a row for it, empty where nobody has."""
        return self.index.stated.get(self.name, "")

    @property
    def key(self) -> str:
        """The name, told apart from that of a class of another file."""
        return f"{self.index.label}{self.name}"

    @property
    def place(self) -> str:
        """The identity of the device where the caller puts the module."""
        return f"place:{self.key}"

    @cached_property
    def oid(self) -> int:
        """The identity of ``self`` in the methods."""
        return -identity()

    def _all(self) -> list[ast.AST]:
        found: list[ast.AST] = [self.node]
        for item in ast.iter_child_nodes(self.node):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found += self.index.function(item, self).nodes
            else:
                found += nodes.walk(item)
        return found

    def parents(self) -> Iterator[ClassInfo]:
        """The bases that the file defines, or another file of the project."""
        return (parent for _, parent in self._given() if parent is not None and parent is not self)

    def _given(self) -> Iterator[tuple[str, ClassInfo | None]]:
        for node, base in zip(self.node.bases, self.bases, strict=True):
            known = self.index.classes.get(base)
            # of a well-known class the name says all
            strange = known is None and not is_module_path(base, self.index.catalog)
            yield base, self.index.outside(names.dotted(node), base) if strange else known

    def ancestors(self) -> Iterator[ClassInfo]:
        """All bases that the project defines, bases of bases included, each once."""
        seen: set[ClassInfo] = set()
        left = [(parent, 0) for parent in reversed([*self.parents()])]
        while left:
            info, depth = left.pop()
            if info not in seen:
                yield info
                seen.add(info)
                left += [(parent, depth + 1) for parent in reversed([*info.parents()])] if depth < 8 else []

    def linearization(self) -> Iterator[ClassInfo]:
        """The class itself, and all bases that the project defines."""
        yield self
        yield from self.ancestors()

    def method(self, name: str) -> FunctionInfo | None:
        """The method of that name, inherited ones of this project included."""
        if name in self.methods:
            return self.methods[name]
        if name not in self.inherited:
            found = (info.methods[name] for info in self.ancestors() if name in info.methods)
            self.inherited[name] = next(found, None)
        return self.inherited[name]

    def roots(self) -> set[str]:
        """The names of the bases that the project does not define."""
        return {base for info in self.linearization() for base, parent in info._given() if parent is None}

    @cached_property
    def is_module(self) -> bool:
        """Whether it is an ``nn.Module``, by its bases, or because it registers parameters or holds modules as one."""
        roots = self.roots()
        if any(is_module_path(root, self.index.catalog) for root in roots):
            return True
        if not roots or any(root.startswith("torch.") for root in roots):
            return False
        return registers(self.nodes, "forward" in self.methods, self.index.resolve)

    @cached_property
    def callers(self) -> dict[str, list[FunctionInfo]]:
        """For each name, the methods that mention it as an attribute of ``self`` or of the class."""
        found: dict[str, list[FunctionInfo]] = {}
        own = ("self", "cls", self.name)
        for method in self.methods.values():
            for node in method.attributes:
                if isinstance(node.value, ast.Name) and node.value.id in own:
                    found.setdefault(node.attr, []).append(method)
        return found

    @cached_property
    def is_open(self) -> bool:
        """Whether a base outside the file may well make it a module, or take care of its tensors."""
        return not self.is_module and not all(is_plain(name) for name in self.lineage())

    @cached_property
    def is_dataset(self) -> bool:
        """Whether it is a data set, whose tensors are read by loader workers on the CPU."""
        return any("Dataset" in name for name in self.lineage())

    @cached_property
    def is_collator(self) -> bool:
        """Whether it makes batches of samples, by its name or a base's: what a loader is given as ``collate_fn``."""
        own = (self.name, *(base.name for base in self.ancestors()))
        return any("Collat" in name for name in (*own, *self.lineage()))

    def lineage(self) -> list[str]:
        """The names of all that it inherits from beyond the file."""
        others = [base.name for base in self.ancestors() if base.index is not self.index]
        return [*others, *(root.rpartition(".")[2] for root in self.roots())]

    @cached_property
    def stored(self) -> frozenset[str]:
        """The attributes of ``self`` that are assigned, or written to, outside ``__init__``."""
        others = [method for name, method in self.methods.items() if name != "__init__"]
        items = [node for method in others for node in method.of(ast.Subscript) if not isinstance(node.ctx, ast.Load)]
        plain = [node for method in others for node in method.attributes if not isinstance(node.ctx, ast.Load)]
        written = [item.value for item in items if isinstance(item.value, ast.Attribute)]
        return frozenset(node.attr for node in (*plain, *written))


class Index(nodes.Holder):
    """All definitions of a file, with the imports of its top level.

    ``label`` stands in keys for a file that others import from, ``elsewhere`` tells the class behind a dotted name.
    """

    def __init__(
        self,
        tree: ast.Module,
        text: str,
        label: str = "",
        elsewhere: Callable[[str], ClassInfo | None] | None = None,
        catalog: Catalog = BUILT_IN,
    ) -> None:
        self.tree = tree
        self.catalog = catalog
        self.stated: dict[str, str] = {}
        """The rows that users have written for what the file defines, by the name here: `helper`, `Class.method`."""
        self.label = label
        self.elsewhere = elsewhere
        self.outside_known: dict[str, ClassInfo | None] = {}
        self.imports: dict[str, str] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.functions: dict[ast.AST, FunctionInfo] = {}
        self._made: dict[ast.ClassDef, ClassInfo] = {}
        self._outermost: dict[str, ast.ClassDef] = {}
        needed = self.needs(tree.body)
        self.dedicated = bool(needed)
        self.bound = "cuda" in needed
        self.star_modules: list[str] = []
        self.rebound = rebound(text)
        self._text = text
        self._triggers: list[int] = []
        self._starts = line_starts(text)
        for node in top_level(tree.body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports.update(names.imported(node))
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                self.star_modules.append(names.source(node))
        meant = fragments.meant(tree, text, self.imports, bool(self.star_modules), catalog)
        self.imports = {**meant, **self.imports}
        self._look_for_triggers()
        self._collect(tree.body)
        self._outermost = {info.name: info.node for info in self.classes.values()}
        self._trigger_callers()

    def needs(self, statements: Iterable[ast.AST]) -> set[str]:
        """What the packages that are imported do nothing without: "cuda", or "accelerator"."""
        imported = [name for statement in statements for name in names.modules(statement, beside=True)]
        # so those who compile kernels for CUDA call the module of them
        extensions = {"cuda" for name in imported if re.search(r"\w_cuda_?$", name)}
        return extensions | {self.catalog.need(name) for name in imported} - {"", "nothing"}

    def runs(self, what: str) -> bool:
        """Whether a package that is imported, wherever that is, runs "training" or "processes" by itself."""
        return any(what in row.runs for row in self.catalog.packages(relevance.imported(self._text)))

    def _look_for_triggers(self) -> None:
        mentioned = itertools.chain(relevance.places(self._text), relevance.aliases(self.imports.items(), self._text))
        self._triggers = sorted(self._rows(mentioned))

    def _rows(self, places: Iterable[int]) -> set[int]:
        return {bisect.bisect_right(self._starts, place) for place in places}

    def _trigger_callers(self) -> None:
        """What calls a function that mentions something is worth entering, too."""
        named = {info.name for info in self.functions.values() if info.triggered and info.owner is None}
        called = {
            info.name
            for info in self.functions.values()
            if info.triggered and info.owner is not None and not info.name.startswith("__")
        }
        called -= {"forward", *OF_MODULES}
        named |= {info.name for info in self.classes.values() if not WRAPPERS.isdisjoint(info.bases)}
        self.trigger(self._rows(relevance.calls(named, self._text)))
        self.trigger(self._rows(relevance.calls_of_self(called, self._text)))

    def trigger_calls(self, called: Iterable[str]) -> None:
        """What calls one of these functions of other files is worth entering, too."""
        self.trigger(self._rows(relevance.calls(frozenset(called), self._text)))

    def trigger(self, rows: set[int]) -> None:
        """What these rows belong to is worth a run."""
        if rows.issubset(self._triggers):
            return
        self._triggers = sorted({*self._triggers, *rows})
        for info in self.functions.values():
            info.triggered = info.triggered or self.triggered(info.node)

    def triggered(self, node: ast.AST) -> bool:
        """Whether the lines of ``node`` mention anything that matters."""
        first = getattr(node, "lineno", 1)
        last = getattr(node, "end_lineno", None) or first
        at = bisect.bisect_left(self._triggers, first)
        return at < len(self._triggers) and self._triggers[at] <= last

    @property
    def index(self) -> Index:
        """Itself: the top level is code, too."""
        return self

    @cached_property
    def own(self) -> list[ast.AST]:
        """Every node of the file that belongs to no definition."""
        return nodes.own(self.tree)

    def _all(self) -> list[ast.AST]:
        return self.own

    def mentions(self, word: str) -> bool:
        """Whether the file has a word in it."""
        return word in self._text

    @cached_property
    def host_functions(self) -> set[str]:
        """The functions that work where batches are made."""
        return relevance.given(("collate_fn", "worker_init_fn"), self._text)

    @cached_property
    def hooked(self) -> bool:
        """Whether hooks of the file may move what goes into its modules, or what comes out of them."""
        return hooks.exchange(self.tree, self._text)

    @cached_property
    def constructors(self) -> relevance.Constructors:
        """What the constructors of the file ask for."""
        inits = (info.methods["__init__"] for info in self.classes.values() if "__init__" in info.methods)
        return relevance.Constructors((self.code(init.node) for init in inits), self._text)

    def code(self, node: ast.stmt) -> str:
        """The lines of a definition."""
        last = node.end_lineno or node.lineno
        end = self._starts[last] if last < len(self._starts) else len(self._text)
        return self._text[self._starts[node.lineno - 1] : end]

    def resolve(self, path: str) -> str:
        """The canonical name of a dotted name as the top level of the file understands it."""
        head, dot, rest = path.partition(".")
        base = self.imports.get(head)
        return path if base is None else canonical(f"{base}{dot}{rest}")

    def outside(self, name: str, path: str) -> ClassInfo | None:
        """The class that a name stands for, of which the canonical form is ``path``, if another file defines it."""
        if self.elsewhere is None or not name:
            return None
        if name not in self.outside_known:
            self.outside_known[name] = self._elsewhere(name, path, self.elsewhere)
        return self.outside_known[name]

    def _elsewhere(self, name: str, path: str, find: Callable[[str], ClassInfo | None]) -> ClassInfo | None:
        head = name.partition(".")[0]
        if head not in self.outline.bound:
            found = (find(names.joint(module, name)) for module in self.outline.stars)
            return next((info for info in found if info is not None), None)
        return find(path) if self.outline.alias(head) is not None else None

    @cached_property
    def outline(self) -> Outline:
        """What the file binds at its top level."""
        return Outline(self.tree)

    def function(self, node: FunctionNode, owner: ClassInfo | None = None) -> FunctionInfo:
        """The info of a definition, made when first asked for."""
        info = self.functions.get(node)
        if info is None:
            info = self.functions[node] = FunctionInfo(node, owner, self.triggered(node), self)
        return info

    def class_(self, node: ast.ClassDef) -> ClassInfo:
        """The info of a class, made when first asked for."""
        info = self._made.get(node)
        if info is None:
            info = ClassInfo(node, tuple(self.resolve(names.dotted(base)) or "?" for base in node.bases), self)
            self._made[node] = info
            inside = (item for item in top_level(node.body) if isinstance(item, FunctionNode))
            info.methods.update((item.name, self.function(item, info)) for item in inside)
        # a class inside of something takes no name from one that has it everywhere
        if self._outermost.get(node.name, node) is node:
            self.classes[node.name] = info
        return info

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in top_level(body):
            if isinstance(node, ast.ClassDef):
                self.class_(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.function(node)
