"""DVL105: modules in a plain list of a module."""

from __future__ import annotations

import ast
import re

from devlint.flow.catalog.concepts import NN
from devlint.flow.syntax.names import called, chains, imported, inside, of_self
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import function_at, method_of, receiver
from devlint.rules.code.edits import fix_of, in_test
from devlint.sites.placement import Attribute
from devlint.source.syntax import walk

_CONTAINERS = {"container": "nn.ModuleList", "list": "nn.ModuleList", "tuple": "nn.ModuleList", "dict": "nn.ModuleDict"}

_MOVES = frozenset({"to", "cuda"})
_TO_STRINGS = frozenset({"str", "repr"})

_DROP = "drop the comma behind the module, which makes a tuple of it"


class UnregisteredSubmodule(Rule):
    """Modules in a plain list, tuple or dict of a module are no submodules: neither moved, nor trained, nor saved.

    ## What it does
    Reports `self.layers = [nn.Linear(8, 8), ...]`, a dict of modules, modules put into a plain list or dict, and an
    argument that is annotated as a list or dict of modules and kept so, in `__init__` of an `nn.Module`. Where a
    submodule has the name already, `self.layers = nn.ModuleList()`, the assignment of a list raises.

    ## Why it matters
    A module knows the modules that are its attributes, not those in its lists. `Module.to()` leaves them on the CPU,
    where the first batch on an accelerator raises. `parameters()` leaves them out, so that no optimizer trains them,
    and `state_dict()` does, so that they are not saved.

    ## Example
    ```python
    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = [nn.Linear(8, 8) for _ in range(depth)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## Use instead
    ```python
    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## When it stays silent
    - The modules are registered in some other way: as attributes of their own, by `nn.Sequential(*self.layers)`, by
      `add_module`; or what is in them is: `self.tables[name].register_parameter("weight", layer.weight)`.
    - The container is a placeholder, and an `nn.ModuleList` or another module has its place when `__init__` is over.
    - The constructor deletes the container again, `del self.layers`, once it has stacked their weights, say.
    - The only module in it is the one that keeps it: `[self]`.
    - The container is handed to a call that may register them.
    - The class overrides `parameters`, `to`, `_apply`, `state_dict` or the like.
    - A list that hides a module on purpose: `self._teacher = [teacher]`, of which the module was made elsewhere.
    - The modules have no parameters.
    - The file calls modules by `torch.func.functional_call`, which gives them the parameters that it keeps elsewhere:
      it is a hint for those who select the rule.
    - An argument is kept under a private name, `self._layers = layers`, as what belongs to somebody else: it is a hint
      for those who select the rule.
    - The class moves the modules itself, one by one, `self.parts[name].to(x.device)`, also in a loop over them outside
      of `__init__`, or where it makes all that it puts into a dict, `self.parts[name] = nn.Linear(8, 8).to(device)`, or
      registers the one that it takes, `self.part = self.parts[name]`: it is a hint for those who select the rule. So it
      is in tests.

    ## Fix safety
    Wrapping the container in `nn.ModuleList` or `nn.ModuleDict` is unsafe: `parameters()` and the keys of the state
    dict change, as they should, and a checkpoint that was saved before lacks them. There is none for a dict with keys
    that may be no strings, which `nn.ModuleDict` refuses. So does to drop the comma that makes
    a tuple of a module which is called.

    ## References
    - [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
    - [torch.nn.Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
    """

    code = "DVL105"
    fixes = (Applicability.UNSAFE,)
    observed = True

    def judge(self, site: Attribute) -> Reports:
        """A report where modules are kept out of sight of their owner."""
        # what an audit saw may look like a choice: the modules are in place, and trained or hidden on purpose
        there = site.measured is not None and site.value.device.same(site.beside) is True and not site.uses
        if site.kind != "module" or (there and (site.registered or site.name.startswith("_"))):
            return
        name = f"self.{site.name}"
        holder = f"a plain {site.container}" if site.container else "no submodule"
        lost = "`.to()` does not move them, `parameters()` and `state_dict()` leave them out"
        if site.registered:
            lost = "`.to()` does not move them, `state_dict()` leaves them out"
        wrapper = _CONTAINERS.get(site.container, "")
        keys, put = self._filled(site)
        by_hand = bool(site.container) and self._takes_care(site, put)
        # what was made elsewhere, and goes by a private name, is borrowed: who made it has registered it
        borrowed = site.name.startswith("_") and isinstance(site.value.node, ast.Name)
        # its parameters may be given to its calls from elsewhere
        by_hand = by_hand or "functional_call(" in self.source.text
        alone, tested = self._alone(site), in_test(self.source, site.scope)
        unsure = next((key for key in keys if not _is_string(key)), None)
        told = f"`{name}` is {holder}, whose modules `{site.owner}` does not know: {lost}"
        if site.refused:
            told = f"`{name}` is a submodule, in whose place `{site.owner}` takes no {site.container}: this raises"
        yield Report(
            told,
            node=site.value.node,
            label="no module" if site.refused else "modules, but no submodules",
            severity=Severity.INFO if by_hand or borrowed or tested else None,
            # it may be hidden from `state_dict()` on purpose, and what a test makes it may move part by part
            asked=by_hand or borrowed or tested,
            steps=site.uses,
            help=_DROP if alone else _keep_in(wrapper, unsure),
            fix=self._without_comma(site, alone) if alone else None if unsure else self._fix(site, wrapper),
        )

    def _takes_care(self, site: Attribute, put: list[ast.expr]) -> bool:
        """Whether the class does itself what it would leave to `nn.Module` if it did not know."""
        # it moves what it keeps there, item by item, or registers the one that it takes from there
        moved = rf"self\.{site.name}\[[^\]]*\]\.(?:to|cuda)\("
        taken = rf"self\.\w+\s*=\s*self\.{site.name}(?:\[|\.get\()"
        if any(map(re.compile(f"{moved}|{taken}").search, self.source.lines)) or self._moves_each(site):
            return True
        # or makes each of them where it belongs
        node = site.value.node
        empty = isinstance(node, ast.Dict) and not node.keys
        listed = node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else []
        made = put if empty else listed
        if not made or any(method_of(value) not in _MOVES for value in made):
            return False
        # and gives the parameters of each of a list to an optimizer
        trained = re.compile(rf"self\.{site.name}\[[^\]]*\]\.parameters\(")
        return empty or any(map(trained.search, self.source.lines))

    def _moves_each(self, site: Attribute) -> bool:
        """Whether another method than the constructor goes over the modules and moves them."""
        for whole in walk(self.source.tree):
            loop = whole if isinstance(whole, ast.For) else next(iter(getattr(whole, "generators", ())), None)
            if loop is None or f"self.{site.name}" not in chains(loop.iter):
                continue
            one, function = inside(loop.target), function_at(self.source, loop.iter)
            moves = (node for node in walk(whole) if isinstance(node, ast.Call) and method_of(node) in _MOVES)
            by_name = any(getattr(receiver(move), "id", None) in one for move in moves)
            if by_name and getattr(function, "name", "__init__") != "__init__":
                return True
        return False

    def _filled(self, site: Attribute) -> tuple[list[ast.expr], list[ast.expr]]:
        """The keys of a dict, and what is put under one once the dict is there."""
        node = site.value.node
        if site.container != "dict":
            return [], []
        keys = [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
        keys += [node.key] if isinstance(node, ast.DictComp) else []
        put: list[ast.expr] = []
        for found in walk(self.source.tree):
            for target in found.targets if isinstance(found, ast.Assign) else ():
                if isinstance(target, ast.Subscript) and of_self(target.value) == site.name:
                    keys.append(target.slice)
                    put.append(found.value)  # type: ignore[attr-defined]  # it is an assignment
        return keys, put

    def _alone(self, site: Attribute) -> ast.expr | None:
        """The only item of a tuple that is called like a module: it was made by a comma too many."""
        node = site.value.node
        call = re.compile(rf"\bself\.{site.name}\(")
        if not isinstance(node, ast.Tuple) or len(node.elts) != 1 or not any(map(call.search, self.source.lines)):
            return None
        return node.elts[0]

    def _without_comma(self, site: Attribute, alone: ast.expr) -> Fix | None:
        return fix_of("Drop the comma", self.replace(site.value.node, self.source.segment(alone)))

    def _fix(self, site: Attribute, wrapper: str) -> Fix | None:
        node = site.value.node
        text = self.source.segment(node)
        listed = isinstance(node, ast.List | ast.ListComp) or (isinstance(node, ast.Tuple) and text.startswith("("))
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)] if isinstance(node, ast.Dict) else []
        named = isinstance(node, ast.Dict) and [type(key) for key in keys] == [str] * len(node.keys)
        prefix = self._prefix()
        if prefix is None or not (listed or named):
            return None
        return fix_of(f"Wrap in `{wrapper}`", self.replace(node, f"{prefix}{wrapper.removeprefix('nn.')}({text})"))

    def _prefix(self) -> str | None:
        """How the top level of the file reaches ``torch.nn``, ``None`` where it does not."""
        imports = [node for node in self.source.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [item for node in imports for item in imported(node).items()]
        of_nn = (f"{name}." for name, path in names if path == NN and name != "torch")
        return next(of_nn, "torch.nn." if any(name == "torch" for name, _ in names) else None)


def _is_string(key: ast.expr) -> bool:
    """Whether a key is plainly a string, as those of an ``nn.ModuleDict`` have to be."""
    if isinstance(key, ast.BinOp):
        return _is_string(key.left) or _is_string(key.right)
    if isinstance(key, ast.Call):
        return called(key) in _TO_STRINGS or (method_of(key) == "format")
    return isinstance(key, ast.JoinedStr) or (isinstance(key, ast.Constant) and isinstance(key.value, str))


def _keep_in(wrapper: str, unsure: ast.expr | None) -> str:
    """What to keep modules in, and the key to make a string of, if one may be none."""
    strings = "" if unsure is None else f", whose keys have to be strings: `str({ast.unparse(unsure)})`"
    return f"keep them in an `{wrapper}`{strings}" if wrapper else "assign the module as an attribute"
