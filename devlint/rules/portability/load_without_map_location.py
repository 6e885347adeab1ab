"""DVL604: a checkpoint that goes to the device it was saved from."""

from __future__ import annotations

import ast
import re

from devlint.flow.catalog.concepts import FROM_NUMPY, LOAD, LOADERS
from devlint.flow.catalog.methods import TO_DEVICE
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import (
    Way,
    around,
    assigned,
    function_at,
    keyword_of,
    method_of,
    statement_of,
    targets_of,
    way_to,
)
from devlint.rules.code.device_candidates import device_at_hand, made_of
from devlint.rules.code.device_choice import has_chosen_cuda, is_for_cuda
from devlint.rules.portability.own_files import made_here
from devlint.sites.devices import ApiCall
from devlint.source.syntax import says_none, walk
from devlint.source.tree import Source

_NUMBER = r"(?:\w+_)?(?:epochs?|steps?|iters?|iterations?|version|arch|args|config|cfg|hparams|hyper_parameters)"
"""Items of a checkpoint that hold no tensors."""
_ASKING = frozenset({"len", "print", "isinstance", "type"})
_DATA = r"(?:Dataset|DataLoader)$"
_LOGGING = frozenset({"debug", "info", "warning", "error"})
_CUDA_ALONE = r"^(?:[\w.]*device\()?'cuda(?::0)?'\)?$"
_CUDA = re.compile(r"\.cuda\(|[\"']cuda\b")
_NUMBERS = (
    r"(?i)(?:.*[._])?\w*(?:(?:sampler|sched|dataloader|scaler)\w*\.load_state_dict"
    r"|set_rng_state(?:_all)?|random\.set_?state)"
)
"""What takes a state that is numbers: which step it is, from which seed, how far a loss is scaled."""
_NAMES_DEVICES = (0, 4)
"""The torch since which ``map_location`` may be a device, by its name or as an object."""
_PROCESSES = re.compile(r"\b(?:init_process_group|DistributedDataParallel|set_device)\b")
"""How a file speaks of processes with a GPU each, which load to the one that saved."""
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""What does not run where it stands."""
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.BoolOp)


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
    - The result is an array, `torch.from_numpy(data[3:])`, or the state of a sampler, a scheduler, a scaler or a random
      number generator: numbers.

    It is one hint for a project, of the loads whose files may come from another machine. Who selects the rule is told
    of all others, too:

    - what is loaded does not go into `load_state_dict`: words, numbers, prepared data and what a data set loads are
      nearly always on the CPU, and a whole network is used where it was saved from; or it comes from a URL, which has
      nearly always been saved from the CPU
    - the program has made the file itself, as far as its file shows: it saves or copies files, too, it has trained in
      the same function before, or reads from memory
    - the file names CUDA, and never asks which accelerator there is, or stops where CUDA is missing, or calls before
      what raises without it; the function moves something to CUDA whatever happens, `net.cuda()`, unless the file
      speaks of processes with a GPU each; the file builds kernels for CUDA or imports what needs it; only a setting
      says by its name, `if use_gpu:`, that there is an accelerator
    - tests

    ## Fix safety
    `map_location="cpu"` is safe where the result is only given to `load_state_dict`, which copies the values to
    wherever the parameters are (unless it is told to keep what it gets, `assign=True`, or the class has a
    `load_state_dict` of its own). Elsewhere the fix is unsafe, and names the device at hand if there is one, or that
    where the constructor has put what is loaded again, `self.states.device`, but for what is only saved again, or
    becomes a data set: what follows may count on the tensors being on the GPU. So it may beside `load_state_dict`, if
    another item of the checkpoint takes the place of a tensor that was moved there.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [Saving and loading with DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "DVL604"
    severity = Severity.INFO
    fixes = (Applicability.SAFE, Applicability.UNSAFE)

    def judge(self, site: ApiCall) -> Reports:
        """A report for every load that leaves the device to the file."""
        # for a library that needs CUDA it has a GPU, and perhaps another one than the file names
        wanted = site.scope.guarded and not site.scope.bound
        if site.function not in LOADERS or site.open or (wanted and not site.scope.by_name):
            return
        if not self.can_name(_NAMES_DEVICES):
            return
        given = site.arguments.get("map_location")
        if site.positional >= LOADERS[site.function] or (given is not None and not says_none(given)):
            return
        used = _uses(self.source, site.node)
        if used and all(re.fullmatch(_NUMBERS, name) for name in used):
            return
        state = site.purpose == "state dict"
        saved = bool(used) and all(name.rpartition(".")[2] == "save" for name in used)
        # what is only written to a file again had better not depend on the machine
        stays = saved or (state and not _replaces_moved(self.source, site.node)) or _sampled(self.source, site.node)
        there = _device_before(self.source, site.node)
        device = "" if stays else there or device_at_hand(self.source, site.node, site.scope)
        place = device or '"cpu"'
        name = site.function.removeprefix("torch.utils.")
        if FROM_NUMPY in used and "state_dict" not in self.source.text:
            return
        restored = state or any(name.rpartition(".")[2] == "load_state_dict" for name in used)
        weights = restored and site.purpose != "state of numbers" and site.function == LOAD
        weights = weights and not made_here(self.source, site.node)
        safe = state and _only_restored(self.source, site.node)
        placed = edits.with_arguments(self.source, site.node, map_location=place)
        # a program for CUDA alone finds its GPU again, unless it saved from another one
        at_home = not site.scope.bound and _CUDA.search(self.source.text) is not None
        needs_cuda = has_chosen_cuda(self.source, site.scope) or (
            at_home and (is_for_cuda(self.source) or site.scope.required or _needs_cuda(self.source, site.node))
        )
        elsewhere = weights and not (wanted or needs_cuda or edits.in_test(self.source, site.scope))
        yield Report(
            f"`{name}` without `map_location` puts tensors where they were saved from, which not every machine has",
            label="goes to the device that the file names",
            help=f"add `map_location={place}`"
            + (": `load_state_dict` copies the values to the parameters' device" if state and not device else ""),
            fix=None if given is not None else edits.fix_of(f"Add `map_location={place}`", placed, safe=safe),
            asked=not elsewhere,
        )


def _device_before(source: Source, node: ast.AST) -> str:
    """Where an attribute is that a load fills again: the constructor has put a tensor there; empty for none."""
    held = assigned(source.tree)
    for target in targets_of(statement_of(source, node)):
        for _, value in held.get(target, ()) if target.startswith("self.") else ():
            made = getattr(function_at(source, value), "name", "") == "__init__"
            placed = method_of(value) in TO_DEVICE or (isinstance(value, ast.Call) and keyword_of(value, "device"))
            if made and placed:
                return f"{target}.device"
    return ""


def _needs_cuda(source: Source, node: ast.AST) -> bool:
    """Whether the function moves something to CUDA wherever it comes to ``node``, in the only process there is."""
    if _PROCESSES.search(source.text):
        return False
    inside = {inner for _, inner in way_to(source, node)}
    rest = list(ast.iter_child_nodes(around(source, node)))
    while rest:
        part = rest.pop()
        if isinstance(part, _BRANCHES):
            # of a branch, only that to which the load belongs
            lists = (getattr(part, name, None) for name in ("body", "orelse", "finalbody"))
            rest += [one for each in lists if isinstance(each, list) and not inside.isdisjoint(each) for one in each]
        elif not isinstance(part, _APART):
            if isinstance(part, ast.Call) and _moves_to_cuda(part):
                return True
            rest += ast.iter_child_nodes(part)
    return False


def _moves_to_cuda(call: ast.Call) -> bool:
    """Whether a call moves something to the one GPU of a program."""
    if method_of(call) == "cuda":
        return not call.args
    return method_of(call) == "to" and bool(call.args) and re.search(_CUDA_ALONE, ast.unparse(call.args[0])) is not None


def _uses(source: Source, node: ast.AST, later: bool = False) -> set[str]:
    """What the function does with the result of a call: the methods that it calls, and what it hands it to.

    What it did with what had that name before does not count if only what comes ``later`` does.
    """
    names = _names_of(source, node)

    def is_it(part: ast.AST) -> bool:
        return part is node or getattr(part, "id", None) in names

    used: set[str] = set()
    for call in ast.walk(around(source, node)):
        if not isinstance(call, ast.Call) or (later and call.lineno < getattr(node, "lineno", 0)):
            continue
        if is_it(call.func):
            used.add("()")
        elif isinstance(call.func, ast.Attribute) and is_it(call.func.value):
            used.add(call.func.attr)
        given = [argument.value if isinstance(argument, ast.Subscript) else argument for argument in call.args]
        if any(map(is_it, given)):
            used.add(ast.unparse(call.func))
    return used


def _only_restored(source: Source, call: ast.AST) -> bool:
    """Whether each use of what ``call`` returns, under all names, copies its values or only looks at them."""
    names: set[str] = set()
    rest: list[ast.AST] = [call]
    while rest:
        targets = _given_to(way_to(source, rest.pop()))
        if targets is None:
            return False
        fresh = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)} - names
        names |= fresh
        named = (node for node in ast.walk(around(source, call)) if isinstance(node, ast.Name)) if fresh else ()
        rest += (node for node in named if node.id in fresh and isinstance(node.ctx, ast.Load))
    return True


def _replaces_moved(source: Source, call: ast.AST) -> bool:
    """Whether something in what ``call`` returns takes the place of a tensor that the function has moved before."""
    names, row = _names_of(source, call), int(getattr(call, "lineno", 0))
    for values in assigned(around(source, call)).values() if names else ():
        moved = [at for at, value in values if method_of(value) in TO_DEVICE]
        items = (value.value for _, value in values if isinstance(value, ast.Subscript))
        if moved and max(moved) < row and any(getattr(item, "id", None) in names for item in items):
            return True
    return False


def _sampled(source: Source, call: ast.AST) -> bool:
    """Whether what ``call`` returns, or something in it, goes into a data set or its loader."""
    names, function = _names_of(source, call), around(source, call)
    calls = [node for node in walk(function) if isinstance(node, ast.Call)] if names else []
    loads = (call for call in calls if re.search(_DATA, ast.unparse(call.func)))
    return any(not names.isdisjoint(made_of(given, function)) for load in loads for given in load.args)


def _names_of(source: Source, call: ast.AST) -> set[str]:
    """The names that are given what a call returns."""
    return {name for name in targets_of(statement_of(source, call)) if name.isidentifier()}


def _given_to(way: Way) -> list[ast.expr] | None:
    """The targets that take the expression at the end of a way; none where it is copied, ``None`` where it is lost."""
    mere = True
    for outer, inner in reversed(way):
        if isinstance(outer, ast.Assign):
            # an item of a dict goes where the dict does
            targets = [target.value if isinstance(target, ast.Subscript) else target for target in outer.targets]
            named = all(isinstance(target, ast.Name) for target in targets)
            return [] if inner is not outer.value else targets if named else None
        if isinstance(outer, ast.For) and inner is outer.iter:
            return [outer.target]
        if (isinstance(outer, ast.Call) and _copies(outer, inner)) or _looks_up(outer, inner):
            return []
        if isinstance(outer, ast.stmt):
            # a method of its own, as in ``state.pop(key)``
            return [] if isinstance(outer, ast.Expr) and mere else None
        own = isinstance(outer, ast.Attribute | ast.Subscript) or (isinstance(outer, ast.Call) and inner is outer.func)
        mere = mere and own
    return None


def _copies(call: ast.Call, part: ast.AST) -> bool:
    """Whether a call copies the values of what stands in a part of it, or only looks at that."""
    if isinstance(call.func, ast.Name):
        return call.func.id in _ASKING
    copying = ("load_state_dict", *_LOGGING) if part is not call.func else ("keys",)
    return method_of(call) in copying


def _looks_up(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether something is asked about a value, or an item taken that is a number by its name, or is replaced."""
    if isinstance(outer, ast.Subscript) and inner is outer.value:
        key = outer.slice.value if isinstance(outer.slice, ast.Constant) else None
        return not isinstance(outer.ctx, ast.Load) or (isinstance(key, str) and re.fullmatch(_NUMBER, key) is not None)
    return isinstance(outer, ast.Compare) or (isinstance(outer, ast.If | ast.Assert) and inner is outer.test)
