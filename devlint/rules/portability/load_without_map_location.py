"""DVL604: a checkpoint that goes to the device it was saved from."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from devlint.finding import Applicability, Fix, Severity
from devlint.rules.base import Report, Rule, SourceText
from devlint.rules.code import edits
from devlint.rules.code.device_candidates import device_at_hand
from devlint.rules.portability.restoring import names_of, only_restored, replaces_moved, sampled
from devlint.sites.devices import ApiCall
from devlint.source.syntax import says_none

# The functions, each with the position of map_location among its parameters.
_LOADERS = {"torch.load": 2, "torch.hub.load_state_dict_from_url": 3, "torch.utils.model_zoo.load_url": 3}

_USES = frozenset({"()", "to", "cuda", "cpu", "eval", "train", "half", "float", "numpy", "parameters"})
"""What is done with a network or a tensor, and not with what else a file may hold."""


class LoadWithoutMapLocation(Rule):
    """`torch.load` without `map_location` puts tensors on the device they were saved from, if it exists.

    ## What it does
    Reports `torch.load`, `torch.hub.load_state_dict_from_url` and `torch.utils.model_zoo.load_url` without
    `map_location`.

    ## Why it matters
    A checkpoint remembers the device of each tensor. One saved on a GPU fails to load on a machine without one:
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False". In a multi-GPU job,
    every process loads onto the GPU of the one that saved. `weights_only=True` changes none of this, nor do
    `set_default_device` and `with torch.device(...)`.

    ## Example
    ```python
    def restore(model, path):
        model.load_state_dict(torch.load(path))
    ```

    ## Use instead
    ```python
    def restore(model, path):
        model.load_state_dict(torch.load(path, map_location="cpu"))
    ```

    ## When it stays silent
    - `map_location` is given, by name or by position, or may come in through `*args` or `**kwargs`.
    - The code runs only where an accelerator is available.
    - safetensors and other libraries.
    - The result is an array: `torch.from_numpy(data[3:])`.
    - It is an info only in tests; where the result is a dataset; where the same function saved the file before, or
      reads it from memory; for weights from a URL: what is published is nearly always saved from the CPU; and where the
      file of code never speaks of a state dict, and the result is not used as a network or a tensor: words and numbers
      are nowhere.

    ## Fix safety
    `map_location="cpu"` is safe where the result is only given to `load_state_dict`, which copies the values to
    wherever the parameters are (unless it is told to keep what it gets, `assign=True`). Elsewhere the fix is unsafe,
    and names the device at hand if there is one, but for what is only saved again, or becomes a data set: what follows
    may count on the tensors being on the GPU. So it may beside `load_state_dict`, if another item of the checkpoint
    takes the place of a tensor that was moved there.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [Saving and loading with DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "DVL604"
    name = "load-without-map-location"
    hints = False
    severity = Severity.WARNING
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    sites = (ApiCall,)

    def judge(self, site: ApiCall) -> Iterable[Report]:
        """A report for every load that leaves the device to the file."""
        if site.function not in _LOADERS or site.open or site.scope.guarded:
            return
        given = site.arguments.get("map_location")
        nothing = says_none(given)
        if site.positional >= _LOADERS[site.function] or (given is not None and not nothing):
            return
        state = site.purpose == "state dict"
        used = _uses(self.source, site.node)
        saved = bool(used) and all(name.rpartition(".")[2] == "save" for name in used)
        # what is only written to a file again had better not depend on the machine
        stays = saved or (state and not replaces_moved(self.source, site.node)) or sampled(self.source, site.node)
        device = "" if stays else device_at_hand(self.source, site.node, site.scope)
        place = device or '"cpu"'
        name = site.function.removeprefix("torch.utils.")
        mild = site.purpose == "dataset" or site.function != "torch.load" or _from_here(self.source, site.node)
        if not mild and not any("state_dict" in line for line in self.source.lines):
            if "torch.from_numpy" in used:
                return
            mild = not used & _USES
        safe = state and only_restored(self.source, site.node)
        yield Report(
            site.node,
            f"`{name}` without `map_location` puts tensors where they were saved from, which not every machine has",
            label="goes to the device that the file names",
            severity=Severity.INFO if mild or edits.in_test(self.source, site.scope) else None,
            help=f"add `map_location={place}`"
            + (": `load_state_dict` copies the values to the parameters' device" if state and not device else ""),
            fix=None if nothing else self._fix(site, place, Applicability.SAFE if safe else Applicability.UNSAFE),
        )

    def _fix(self, site: ApiCall, place: str, applicability: Applicability) -> Fix | None:
        import libcst as cst

        call = edits.parsed(self.source, site.node)
        if not isinstance(call, cst.Call):
            return None
        edit = self.replace(site.node, edits.code(edits.with_keyword(call, "map_location", place)))
        return Fix(f"Add `map_location={place}`", (edit,), applicability)


def _uses(source: SourceText, node: ast.AST) -> set[str]:
    """What the function does with the result of a call: the methods that it calls, and what it hands it to."""
    names = names_of(source, node)

    def is_it(part: ast.AST) -> bool:
        return part is node or (isinstance(part, ast.Name) and part.id in names)

    used: set[str] = set()
    for call in ast.walk(edits.around(source, node)):
        if not isinstance(call, ast.Call):
            continue
        if is_it(call.func):
            used.add("()")
        elif isinstance(call.func, ast.Attribute) and is_it(call.func.value):
            used.add(call.func.attr)
        given = [argument.value if isinstance(argument, ast.Subscript) else argument for argument in call.args]
        if any(map(is_it, given)):
            used.add(ast.unparse(call.func))
    return used


def _from_here(source: SourceText, node: ast.AST) -> bool:
    """Whether the data is the program's own: bytes in memory, or a file that the function has just saved."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    file = node.args[0]
    if isinstance(file, ast.Call) and ast.unparse(file.func).endswith("BytesIO"):
        return True
    path = ast.dump(file)
    if ast.unparse(file).startswith("self."):
        # what an object keeps is one file, whichever of its methods saves it
        around = (found for found in _classes(source.tree) if found.lineno <= node.lineno <= (found.end_lineno or 0))
        return path in _saved(next(around, None) or edits.around(source, node))
    first = _saved(edits.around(source, node)).get(path)
    return first is not None and first < node.lineno


@lru_cache(maxsize=1)
def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [found for found in ast.walk(tree) if isinstance(found, ast.ClassDef)]


@lru_cache(maxsize=8)
def _saved(body: ast.AST) -> dict[str, int]:
    """What is saved to, as a dump, with the first row where it is."""
    rows: dict[str, int] = {}
    for call in ast.walk(body):
        if isinstance(call, ast.Call) and len(call.args) > 1 and ast.unparse(call.func).endswith("save"):
            to = ast.dump(call.args[1])
            rows[to] = min(call.lineno, rows.get(to, call.lineno))
    return rows
