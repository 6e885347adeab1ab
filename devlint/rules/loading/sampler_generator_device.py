"""DVL304: a data set's order drawn on one device with a generator of another."""

from __future__ import annotations

import ast

from devlint.device import AVAILABLE, Device, Kind, Role
from devlint.flow.catalog.concepts import DISTRIBUTED_SAMPLER
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import method_of, receiver
from devlint.rules.code.edits import fix_of, rewritten, with_arguments, without_argument
from devlint.rules.code.imports import importing
from devlint.sites.loaders import Draw

_MATCHING = "torch.Generator(device=torch.get_default_device())"


class SamplerGeneratorDevice(Rule):
    """A data set is shuffled by a generator of another device than the one on which the order is drawn.

    ## What it does
    Reports `DataLoader`, `random_split` and samplers with a generator of an accelerator, and, where the file makes an
    accelerator the default device, those that shuffle with a generator of the CPU: their own, where none is given.

    ## Why it matters
    The order is drawn by `torch.randperm` on the default device, and torch takes only a generator of the same device.
    The first batch raises "Expected a 'cpu' device type for generator but found 'cuda'", or the other way round. A
    `DataLoader` draws the seed of its workers with the generator, too, and raises without `shuffle=True` as well.

    ## Example
    ```python
    def load(dataset):
        return DataLoader(dataset, shuffle=True, generator=torch.Generator(device="cuda"), pin_memory=True)
    ```

    ## Use instead
    ```python
    def load(dataset):
        return DataLoader(dataset, shuffle=True, generator=torch.Generator(), pin_memory=True)
    ```

    ## When it stays silent
    - Where the generator is, or the default device, is not known: `torch.Generator(device=images.device)`.
    - The loader does not shuffle and is given no generator, or `shuffle` is anything but a literal `True`.
    - A `sampler` or `batch_sampler` is given: it draws, not the loader.
    - The default device is set by `with torch.device(...)`, and the loader may be used outside.
    - A method takes the accelerator under a condition of its object, and the file leaves the default device as it is:
      whoever made the object so may have set it.

    ## Fix safety
    The fix is unsafe: another generator draws another order. It leaves the device out of a `torch.Generator(...)` that
    stands in the call, or adds `generator=torch.Generator(device=torch.get_default_device())` (torch 2.3 and later).

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    - [torch.set_default_device](https://docs.pytorch.org/docs/stable/generated/torch.set_default_device.html)
    """

    code = "DVL304"
    implied = True
    severity = Severity.ERROR
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Draw) -> Reports:
        """A report where the generator is surely not where the order is drawn."""
        if not site.place.differs(site.default):
            return
        guards = site.place.guards()
        # whoever made an object that asks for an accelerator may have made that the default device
        theirs = bool(site.scope.owner and guards) and site.default_by is None and AVAILABLE not in guards
        if not (_chosen(site.place) and _chosen(site.default)) or theirs:
            return
        drawer = site.drawer.rpartition(".")[2]
        away = site.place if site.default.kind is Kind.CPU else site.default
        when = "" if away.accelerates() else " where that is an accelerator"
        whose = "a generator" if site.generator is not None else "its own generator, which is"
        yield Report(
            f"`{drawer}` draws the order on {site.default} with {whose} on {site.place}, which raises{when}",
            node=site.generator,
            label=f"on {site.place}",
            steps=() if site.default_by is None else (site.default_by,),
            help="give it a generator on the device on which the order is drawn: the default device",
            fix=self._fix(site),
        )

    def _fix(self, site: Draw) -> Fix | None:
        made = _made_here(site.generator)
        if made is None and (site.generator is not None or site.default.kind is Kind.CPU):
            return None
        if made is not None and site.default.kind is Kind.CPU:
            bare = rewritten(self.source, made, lambda call: call.with_changes(args=call.args[1:]))
            bare = without_argument(self.source, made, "device") if made.keywords else bare
            return fix_of("Make the generator on the CPU", bare)
        # of a default that came with a type of tensors, `get_default_device` knows nothing
        typed = any("set_default_tensor_type" in line for line in self.source.lines)
        if site.drawer == DISTRIBUTED_SAMPLER or typed:
            return None
        edit = with_arguments(self.source, site.node, generator=_MATCHING)
        edit = edit if made is None else self.replace(made, _MATCHING)
        return fix_of("Use a generator on the default device", edit, importing(self.source, "torch", site.node))


def _made_here(generator: ast.AST | None) -> ast.Call | None:
    """The `torch.Generator(...)` that an argument is, or begins with, where the call makes it for itself."""
    while (made := receiver(generator)) is not None and method_of(generator) != "Generator":
        generator = made
    return generator if isinstance(generator, ast.Call) else None


def _chosen(place: Device) -> bool:
    """Whether the code itself names the device, so that it knows of both."""
    return all(leaf.kind is not Kind.SYMBOL or leaf.role is Role.DEVICE for leaf in place.leaves())
