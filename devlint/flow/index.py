"""A file's definitions: which there are, which matter, and what their own text shows of their arguments."""

from __future__ import annotations

import ast
import bisect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from devlint.flow import dedicated, evidence, names, nodes, table, triggers
from devlint.flow.constructors import Constructors

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_MODULE_ROOTS = {
    "pytorch_lightning.LightningModule",
    "torch.nn.Module",
    "transformers.PreTrainedModel",
    "torchmetrics.Metric",
    "torch_geometric.nn.MessagePassing",
}
_PLAIN_BASES = frozenset(
    {"object", "ABC", "Generic", "Protocol", "Enum", "NamedTuple", "TestCase", "Dataset", "Exception"}
)
_INITIALISERS = frozenset(
    {"__init__", "_init_weights", "reset_parameters", "init_weights", "__new__", "_reset_parameters"}
)
_BY_STAR = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
_MOVERS = frozenset({"to", "cuda", "cpu", "_apply"})


@dataclass(eq=False)
class FunctionInfo:
    """A function or method: its node, its class, whether it mentions anything that matters."""

    node: FunctionNode
    owner: ClassInfo | None
    triggered: bool
    shim: bool = False
    """Whether it is defined for the sake of another version of torch."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the function."""
        return nodes.walk(self.node)

    @cached_property
    def own(self) -> list[ast.AST]:
        """Every node of the function that belongs to no function or class inside it."""
        return nodes.own(self.node)

    @cached_property
    def qualname(self) -> str:
        """The name with its class, and the line, which makes it unique in a file."""
        prefix = f"{self.owner.node.name}." if self.owner else ""
        return f"{prefix}{self.name}:{self.node.lineno}"

    @cached_property
    def decorators(self) -> tuple[str, ...]:
        """The dotted names of the decorators, calls included."""
        return tuple(
            names.dotted(item.func if isinstance(item, ast.Call) else item) or "?" for item in self.node.decorator_list
        )

    @cached_property
    def hints(self) -> dict[str, str]:
        """What each name of the function shows itself to be by annotation or by the way it is used."""
        forward = self.name == "forward" and self.owner is not None and self.owner.is_module
        return evidence.hints(self.nodes, self.node.args, forward)

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters that have names."""
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    @cached_property
    def is_generator(self) -> bool:
        """Whether a call makes a generator instead of running the body."""
        return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in self.own)

    @cached_property
    def device_aware(self) -> bool:
        """Whether the function itself says where something is to live."""
        for node in self.own:
            if isinstance(node, ast.keyword) and node.arg == "device":
                return True
            if isinstance(node, ast.Attribute) and node.attr in ("device", "is_cuda", "cuda", "type_as"):
                return True
        return False

    @cached_property
    def dedicated(self) -> bool:
        """Whether it imports what needs CUDA."""
        return dedicated.needs_cuda(self.nodes)

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
        inside = (node.names for node in self.nodes if isinstance(node, ast.Nonlocal))
        return frozenset(name for names_ in inside for name in names_) - self._nonlocal

    @cached_property
    def _nonlocal(self) -> frozenset[str]:
        own = (node.names for node in self.own if isinstance(node, ast.Nonlocal))
        return frozenset(name for names_ in own for name in names_)

    @property
    def private(self) -> bool:
        """Whether only the file itself is meant to call it."""
        return self.name.startswith("_") and not self.name.startswith("__")

    @property
    def moves(self) -> bool:
        """Whether it implements a move, where a literal device is the point."""
        return self.name in _MOVERS


@dataclass(eq=False)
class ClassInfo:
    """A class of the file: its methods, its bases as canonical names, and whether it is a module."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    index: Index
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    shim: bool = False
    """Whether it is defined for the sake of another version of torch."""

    @property
    def name(self) -> str:
        """The class's name."""
        return self.node.name

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the class."""
        found: list[ast.AST] = [self.node]
        for item in ast.iter_child_nodes(self.node):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found += self.index.function(item, self).nodes
            else:
                found += nodes.walk(item)
        return found

    def parents(self) -> Iterator[ClassInfo]:
        """The bases that the same file defines."""
        for base in self.bases:
            parent = self.index.classes.get(base)
            if parent is not None and parent is not self:
                yield parent

    def ancestors(self, depth: int = 0) -> Iterator[ClassInfo]:
        """All bases that the same file defines, bases of bases included."""
        for parent in self.parents():
            yield parent
            if depth < 8:
                yield from parent.ancestors(depth + 1)

    def method(self, name: str) -> FunctionInfo | None:
        """The method of that name, inherited ones of this file included."""
        return self._method(name, 0)

    def _method(self, name: str, depth: int) -> FunctionInfo | None:
        if name in self.methods:
            return self.methods[name]
        found = (parent._method(name, depth + 1) for parent in self.parents() if depth < 8)
        return next((method for method in found if method is not None), None)

    def roots(self, depth: int = 0) -> set[str]:
        """The names of the bases outside the file."""
        found = {base for base in self.bases if base not in self.index.classes}
        for parent in self.parents():
            if depth < 8:
                found |= parent.roots(depth + 1)
        return found

    @cached_property
    def is_module(self) -> bool:
        """Whether it is an ``nn.Module``, by its bases, or because it registers parameters or holds modules as one."""
        roots = self.roots()
        if any(_is_module_path(root) for root in roots):
            return True
        if not roots or any(root.startswith("torch.") for root in roots):
            return False
        return self._registers()

    def _registers(self) -> bool:
        """Whether a class with an unknown base calls what only a module has."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                registers = node.func.attr in ("register_buffer", "register_parameter")
                if registers and names.dotted(node.func.value) == "self":
                    return True
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and "forward" in self.methods:
                target = node.targets[0]
                if isinstance(target, ast.Attribute) and names.dotted(target.value) == "self":
                    path = self.index.resolve(names.dotted(node.value.func))
                    if path == "torch.nn.Parameter" or table.module(path) is not None:
                        return True
        return False

    @cached_property
    def callers(self) -> dict[str, list[FunctionInfo]]:
        """For each name, the methods that mention it as an attribute of ``self`` or of the class."""
        found: dict[str, list[FunctionInfo]] = {}
        for method in self.methods.values():
            for node in method.nodes:
                if isinstance(node, ast.Attribute) and names.dotted(node.value) in ("self", "cls", self.name):
                    found.setdefault(node.attr, []).append(method)
        return found

    @cached_property
    def is_open(self) -> bool:
        """Whether a base outside the file may well make it a module."""
        return not self.is_module and any(root.rpartition(".")[2] not in _PLAIN_BASES for root in self.roots())

    @cached_property
    def is_dataset(self) -> bool:
        """Whether it is a data set, whose tensors are read by loader workers on the CPU."""
        return any("Dataset" in root.rpartition(".")[2] for root in self.roots())

    @cached_property
    def is_collator(self) -> bool:
        """Whether it makes batches of samples, by its name or a base's: what a loader is given as ``collate_fn``."""
        return any("Collat" in name for name in (self.name, *(base.name for base in self.ancestors()), *self.roots()))

    @cached_property
    def has_state(self) -> bool | None:
        """Whether it has parameters or buffers; ``None`` where that cannot be seen."""
        answer: bool | None = False
        for node in self.nodes:
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("register_buffer", "register_parameter"):
                return True
            path = self.index.resolve(names.dotted(node.func))
            known = table.module(path)
            if path == "torch.nn.Parameter" or (known is not None and known.has_params):
                return True
            inner = self.index.classes.get(path)
            if inner is not None and inner is not self and inner.is_module:
                answer = None
        strange = {root for root in self.roots() if root not in _MODULE_ROOTS}
        return None if strange or any(parent.has_state is not False for parent in self.parents()) else answer

    @cached_property
    def moves_inputs(self) -> bool:
        """Whether ``forward`` itself places what it is given."""
        forward = self.method("forward")
        if forward is None:
            return True
        moves = ("to", "cuda", "cpu", "type_as")
        return any(isinstance(node, ast.Attribute) and node.attr in moves for node in forward.nodes)

    @cached_property
    def stored(self) -> frozenset[str]:
        """The attributes of ``self`` that are assigned, or written to, outside ``__init__``."""
        found = (
            node.value if isinstance(node, ast.Subscript) else node
            for name, method in self.methods.items()
            if name != "__init__"
            for node in method.nodes
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        )
        return frozenset(node.attr for node in found if isinstance(node, ast.Attribute))

    @cached_property
    def changed(self) -> dict[str, str]:
        """The attributes of ``self`` that a method other than ``__init__`` assigns ("assigned") or moves ("moved")."""
        found: dict[str, str] = {}
        for name, method in self.methods.items():
            if name == "__init__":
                continue
            moved = set(nodes.moved_in_place(method.nodes))
            for node in method.nodes:
                if not isinstance(node, (ast.Attribute, ast.Subscript)):
                    continue
                if isinstance(node, ast.Subscript):
                    item = names.dotted(node.value)
                    if isinstance(node.ctx, ast.Store) and item.startswith("self.") and item.count(".") == 1:
                        found[item.partition(".")[2]] = "assigned"
                    continue
                if isinstance(node.ctx, (ast.Store, ast.Del)) and names.dotted(node.value) == "self":
                    found[node.attr] = "moved" if node in moved and found.get(node.attr) != "assigned" else "assigned"
                elif node.attr in ("to", "cuda", "cpu") and names.dotted(node.value).startswith("self."):
                    found.setdefault(names.dotted(node.value).split(".")[1], "moved")
        return found


class Index:
    """All definitions of a file, with the imports of its top level."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.tree = tree
        self.imports: dict[str, str] = {}
        self.classes: dict[str, ClassInfo] = {}
        self.functions: dict[ast.AST, FunctionInfo] = {}
        self.dedicates = dedicated.speaks(text)
        self.dedicated = self.dedicates and dedicated.needs_cuda(tree.body)
        self._star = False
        self.star_modules: list[str] = []
        self.rebound = _rebound(text)
        self._text = text
        self._triggers: list[int] = []
        self._starts = [0]
        self._starts.extend(match.end() for match in re.finditer(r"\r\n|\r|\n" if "\r" in text else "\n", text))
        self.host_functions = set(re.findall(r"(?:collate_fn|worker_init_fn)\s*=\s*(?:self\.)?(\w+)", text))
        for node in _top_level(tree.body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports.update(names.imported(node))
                if any(alias.name == "*" for alias in node.names):
                    self._star = True
                    self.star_modules.append(getattr(node, "module", None) or "")
        if self._star:
            # what a star brings in cannot be seen, but these names have one meaning
            self.imports = {**_BY_STAR, **self.imports}
        mentioned = itertools.chain(triggers.places(text), triggers.aliases(self.imports.items(), text))
        self._triggers = sorted(self._rows(mentioned))
        self._collect(tree.body)
        self._trigger_callers()

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
        called -= {"forward", "to", "cuda", "cpu"}
        for before, words in ((r"(?<![\w.])", named), (r"self\.", called)):
            found = triggers.any_of(words, before, r"\(", self._text)
            self._triggers = sorted({*self._triggers, *self._rows(found)})
        for info in self.functions.values():
            info.triggered = info.triggered or self.triggered(info.node)

    def triggered(self, node: ast.AST) -> bool:
        """Whether the lines of ``node`` mention anything that matters."""
        first = getattr(node, "lineno", 1)
        last = getattr(node, "end_lineno", None) or first
        at = bisect.bisect_left(self._triggers, first)
        return at < len(self._triggers) and self._triggers[at] <= last

    @cached_property
    def top(self) -> list[ast.AST]:
        """Every node of the file that belongs to no definition."""
        return nodes.own(self.tree)

    def mentions(self, word: str) -> bool:
        """Whether the file has a word in it."""
        return word in self._text

    @cached_property
    def constructors(self) -> Constructors:
        """What the constructors of the file ask for."""
        inits = (info.methods["__init__"] for info in self.classes.values() if "__init__" in info.methods)
        return Constructors((self.code(init.node) for init in inits), self._text)

    def code(self, node: ast.stmt) -> str:
        """The lines of a definition."""
        last = node.end_lineno or node.lineno
        end = self._starts[last] if last < len(self._starts) else len(self._text)
        return self._text[self._starts[node.lineno - 1] : end]

    def resolve(self, path: str) -> str:
        """The canonical name of a dotted name as the top level of the file understands it."""
        head, dot, rest = path.partition(".")
        base = self.imports.get(head)
        return path if base is None else names.canonical(f"{base}{dot}{rest}")

    def function(self, node: FunctionNode, owner: ClassInfo | None = None) -> FunctionInfo:
        """The info of a definition, made when first asked for."""
        info = self.functions.get(node)
        if info is None:
            info = self.functions[node] = FunctionInfo(node, owner, self.triggered(node))
        return info

    def class_(self, node: ast.ClassDef) -> ClassInfo:
        """The info of a class, made when first asked for."""
        known = self.classes.get(node.name)
        if known is not None and known.node is node:
            return known
        info = ClassInfo(node, tuple(self.resolve(names.dotted(base)) or "?" for base in node.bases), self)
        self.classes[node.name] = info
        for item in _top_level(node.body):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info.methods[item.name] = self.function(item, info)
        return info

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in _top_level(body):
            if isinstance(node, ast.ClassDef):
                self.class_(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.function(node)


def _rebound(text: str) -> set[str]:
    """The names that functions assign as ``global`` or ``nonlocal``."""
    if "global" not in text and "nonlocal" not in text:
        return set()
    found = re.findall(r"^\s+(?:global|nonlocal)\s+(.*)$", text, re.MULTILINE)
    return {name.strip() for listed in found for name in listed.split("#")[0].split(",")}


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under ``if``, ``try`` and ``with`` included."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from _top_level(getattr(node, name, []))
        for handler in getattr(node, "handlers", ()):
            yield from _top_level(handler.body)


def _is_module_path(path: str) -> bool:
    return path in _MODULE_ROOTS or path.endswith((".nn.Module", ".PreTrainedModel")) or table.module(path) is not None
