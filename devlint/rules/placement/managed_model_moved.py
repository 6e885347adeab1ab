"""DVL114: a model, or a batch, that a library places is moved by hand."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.catalog.creation import is_legacy
from devlint.immutable import immutable
from devlint.rules.base import Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import way_to
from devlint.rules.code.edits import shown
from devlint.rules.placement.operands.meetings import can_be_told
from devlint.sites.placement import ManagedMove


@immutable(frozen=True, slots=True)
class _Manager:
    """What a message says of who places something, and how grave it is to move that.

    It may be less so where the code goes to a device that it has ``chosen``.
    """

    places: str
    consequence: str
    help: str
    severity: Severity | None = None
    chosen: Severity | None = None


_LEAVE_OUT = "leave the move out"
_TO_THE_CPU = "move it to the CPU, or not at all"
_IN_VAIN = "the move does nothing, or undoes that"
_MANAGERS = {
    "device map": _Manager(
        "is placed by its device map",
        "the move undoes that, or raises where parts are offloaded",
        "leave the move out, or the map, where all is meant for one device",
        Severity.INFO,
    ),
    "mapped pipeline": _Manager(
        "is placed by its device map",
        "the pipeline refuses to be moved",
        _LEAVE_OUT,
        Severity.ERROR,
    ),
    "8-bit": _Manager("is quantized to 8 bits and placed", "most versions refuse to move it", _LEAVE_OUT),
    "prepared": _Manager("is placed by accelerate", _IN_VAIN, _LEAVE_OUT, Severity.INFO),
    "offloaded": _Manager("is put on the device model by model", "the move puts all of it there at once", _TO_THE_CPU),
    "sequentially offloaded": _Manager(
        "is put on the device layer by layer", "it refuses to be moved there at once", _TO_THE_CPU, Severity.ERROR
    ),
    "offloaded later": _Manager(
        "is offloaded afterwards",
        "all of it has to fit on the device for that moment, which offloading is to avoid",
        "move it only where it is not offloaded: offloading starts from the CPU",
    ),
    "Lightning": _Manager(
        "is in a hook of Lightning, whose trainer chooses the device",
        "it goes elsewhere if the trainer has chosen another",
        _LEAVE_OUT,
        chosen=Severity.INFO,
    ),
    "Lightning's own": _Manager(
        "comes from Lightning's trainer", "the trainer has put it there already", _LEAVE_OUT, Severity.INFO
    ),
}


class ManagedModelMoved(Rule):
    """Something is moved by hand that a library places by itself.

    ## What it does
    Reports `.to(device)` and `.cuda()` on a model that was loaded with `device_map="auto"` (or another that spreads
    it) or in 8 bits; on what `accelerator.prepare` returned, as a hint; in the steps and other hooks of a
    `LightningModule`; on a pipeline of diffusers before or after `enable_model_cpu_offload()` and
    `enable_sequential_cpu_offload()`; and on what a [row](models.md) says that something else places.

    ## Why it matters
    Who places a model also installs what moves its inputs, shards it, or brings its parts when they are needed. A move
    by hand undoes that: the model has to fit on one device again, and what was offloaded raises "You can't move a model
    that has some modules offloaded to cpu or disk". At best it does nothing. A pipeline that is moved before it is
    offloaded fills the device with all that offloading is to keep off it.

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    def load(name, device):
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float16, device_map="auto")
        return model.to(device)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    def load(name):
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float16, device_map="auto")
        return model
    ```

    ## When it stays silent
    - The model goes to the CPU, or only to another dtype.
    - The device map is no literal, or names one device: then a move to it does nothing.
    - Who selects the rule is told of models with a device map, since one GPU holds many of them whole: then the move
      does nothing. Elsewhere it is the map that is often too much.
    - It is quantized to 4 bits, or by a configuration that is not known.
    - `Accelerator(device_placement=False)`, and what was moved before it was prepared.
    - New tensors that go to `self.device`, or to where another tensor is, in Lightning's hooks.
    - The one branch offloads, and the other moves.
    - It is an info in Lightning's hooks where the device is one that the code has chosen, be it for what the machine
      has: it is the trainer's nearly always. It is one in tests, which may see to it that the library notices.

    ## Fix safety
    There is no fix: what the move was meant for is for the author to say.

    ## References
    - [Accelerate: big models](https://huggingface.co/docs/accelerate/usage_guides/big_modeling)
    - [Accelerate: migration](https://huggingface.co/docs/accelerate/basic_tutorials/migration)
    - [Lightning: hardware agnostic training](https://lightning.ai/docs/pytorch/stable/accelerators/accelerator_prepare.html)
    - [Diffusers: reduce memory](https://huggingface.co/docs/diffusers/optimization/memory)
    """

    code = "DVL114"
    hints = False

    def judge(self, site: ManagedMove) -> Reports:
        """A report for each such move."""
        manager = _MANAGERS.get(site.manager) or _Manager(f"is placed by {site.manager}", _IN_VAIN, _LEAVE_OUT)
        chosen = site.target.kind is not Kind.ACCELERATOR
        severity = (chosen and manager.chosen) or manager.severity
        yield Report(
            f"{shown(site.value.text)} {manager.places}; {manager.consequence}",
            label="moved by hand",
            severity=Severity.INFO if edits.in_test(self.source, site.scope) else severity,
            steps=(site.by,),
            help=_to_the_trainers(site) if site.manager == "Lightning" and site.part else manager.help,
            asked=self._is_optional(site),
        )

    def _is_optional(self, site: ManagedMove) -> bool:
        """Whether the manager takes it over only under a condition, and the move stands outside of that."""
        moved = {outer for outer, _ in way_to(self.source, site.node)}
        managed = (outer for outer, inner in way_to(self.source, site.by.node) if isinstance(outer, ast.If))
        return any(outer not in moved for outer in managed)


def _to_the_trainers(site: ManagedMove) -> str:
    """How to put what a hook makes where the trainer has put the rest."""
    made, factory = site.value.node, site.value.factory
    if not isinstance(made, ast.Call):
        return f"{_LEAVE_OUT}; make new tensors with `device=self.device`"
    if site.value.factory_node is made and is_legacy(factory) and made.args and isinstance(made.args[0], ast.List):
        return "make it there: `torch.tensor(..., device=self.device)`"
    if site.value.factory_node is made and can_be_told(factory, made):
        return f"make it there: `{factory}(..., device=self.device)`"
    # what a helper makes is where that makes it
    return "move it to where the trainer has put the rest: `.to(self.device)`"
