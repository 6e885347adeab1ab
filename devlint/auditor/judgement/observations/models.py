"""What was seen of modules: tensors that met on different devices, what a module does not know it holds, wrappers
for several devices, and optimizers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from devlint.auditor.judgement.locator import Location, Locator, name_of
from devlint.auditor.judgement.observations import syntax
from devlint.auditor.judgement.observations.measure import Seen, common, grouped, measure, place, places, ranks
from devlint.device import CPU, IMPLIED_CPU
from devlint.finding import Measurement
from devlint.record import Frame, Mismatch, Party, Process, Record, Stray, Wrapper
from devlint.report.audit.processes import shared
from devlint.report.wording import listed
from devlint.sites.base import Act, Operand, Site, Step
from devlint.sites.distributed import Optimize, Wrap
from devlint.sites.placement import Attribute, Forward, Operation, OperationKind

_NOTHING = Measurement(0)
"""What was seen happened no certain number of times."""
_HELD = frozenset({"parameter", "buffer"})
_WRAPPERS = {
    "DataParallel": "torch.nn.DataParallel",
    "data_parallel": "torch.nn.parallel.data_parallel",
    "DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
}
_DISTRIBUTED = _WRAPPERS["DistributedDataParallel"]
_NO_GROUP = ("process group", "init_process_group")
_StrayKey = tuple[str, str, str, Frame | None]


def modules(record: Record, locator: Locator, seen: Sequence[Seen]) -> Iterator[Site]:
    """Sites for what strayed from its module, and for every meeting on different devices that raised.

    A meeting which a stray explains is told where the stray was assigned, and only there; one with the state of an
    optimizer, where that was made.
    """
    found = (stray for process in record.processes for stray in process.strays)
    strays: dict[_StrayKey, list[Stray]]
    strays = grouped(found, lambda stray: (stray.owner, stray.name, stray.kind, stray.frame))
    met: dict[_StrayKey, list[Step]] = defaultdict(list)
    meetings: list[Site] = []
    left = [one.name for process in record.processes for one in process.optimizers if one.state_on and one.frame]
    # what torch minded, each once: every rank dies of the same
    raised = (one for process in record.processes for one in process.mismatches if one.error)
    for mismatch, *_ in grouped(raised, lambda one: (one.frame, one.via, one.module)).values():
        frame = mismatch.frame or mismatch.via
        # an optimizer met the state that it left behind
        state = any(party.text.startswith(f"state of {name}") for party in mismatch.parties for name in left)
        if frame is None or state:
            continue
        location = locator.locate(frame)
        culprits = [key for key in strays if key[3] is not None and _is_party(strays[key], mismatch)]
        for key in culprits:
            met[key].append(Step(location.node, "meets tensors on another device here"))
        if not culprits:
            meetings.append(_meeting(location, mismatch, locator))
    for key, group in strays.items():
        fetches = {frame for stray in group for frame in stray.moved}
        fetched = [entry for entry in seen if entry.event.kind == "copy" and entry.event.frame in fetches]
        yield from _attribute(group, met[key], fetched, locator)
    yield from meetings


def _is_party(strays: list[Stray], mismatch: Mismatch) -> bool:
    """Whether what a module does not know of took part in a meeting: an attribute of it, or a module below it."""
    for stray in strays:
        if stray.frame is not None and any(party.origin == stray.frame for party in mismatch.parties):
            return True
        path = [part for part in (*stray.path.split("."), stray.name) if part]
        for party in mismatch.parties:
            if party.device != stray.device or stray.device == stray.owner_device:
                continue
            named = party.text.removeprefix("self.").replace("[", ".").replace("]", "").split(".")
            inside = [*mismatch.module.split("."), *named] if mismatch.module else named
            if party.role == "attribute" and stray.kind == "tensor":
                if named[0] == stray.name and stray.owner == mismatch.module_class:
                    return True
            elif stray.kind == "module" and (named[: len(path)] == path or inside[: len(path)] == path):
                return True
    return False


def _attribute(strays: list[Stray], met: list[Step], fetched: list[Seen], locator: Locator) -> Iterator[Site]:
    """A site where an attribute is assigned; ``strays`` are that attribute in all instances and processes.

    ``fetched`` are the copies of it to the module's device.
    """
    first = strays[0]
    moved = [locator.locate(frame, syntax.COPIERS).node for frame in dict.fromkeys(f for s in strays for f in s.moved)]
    if first.frame is None:
        return
    location = locator.locate(first.frame)
    uses = (*met, *(Step(node, "copied to the module's device here, on every call") for node in moved))
    where = place(first.device)
    node = location.node
    assigned = node.value or node if isinstance(node, ast.Assign | ast.AnnAssign) else node
    value = Operand(
        assigned,
        f"self.{first.name}",
        # who asked for the CPU did so in the code, which the record does not show
        IMPLIED_CPU if where == CPU else where,
        many=None if first.example.endswith("[]") and not met else True,
        certain=True,
    )
    yield Attribute(
        location.node,
        location.scope,
        first.owner,
        first.name,
        value,
        uses,
        moved=bool(moved) and not met,
        kind=first.kind,
        container=first.container,
        registered=any(stray.optimized for stray in strays),
        beside=place(first.owner_device),
        measured=measure(fetched) if fetched else _NOTHING,
    )


def _meeting(location: Location, mismatch: Mismatch, locator: Locator) -> Site:
    operands = [_operand(party, location, locator) for party in mismatch.parties]
    roles = [(party.role, operand) for party, operand in zip(mismatch.parties, operands, strict=True)]
    held = [operand for role, operand in roles if role in _HELD]
    inputs = [operand for role, operand in roles if role == "input"]
    measured = Measurement(mismatch.calls)
    if held and inputs:
        name = mismatch.module or mismatch.module_class or "the module"
        where, story = held[0].device, held[0].story
        return Forward(location.node, location.scope, name, where, story, tuple(inputs), measured=measured)
    kind, name = OperationKind.OPERANDS, _operator(location)
    return Operation(location.node, location.scope, name, kind, tuple(operands), measured=measured)


def _operand(party: Party, location: Location, locator: Locator) -> Operand:
    where = place(party.device)
    story: tuple[Step, ...] = ()
    if party.origin is not None or party.why:
        node = locator.locate(party.origin, syntax.COPIERS).node if party.origin else location.node
        story = (Step(node, party.why or f"`{party.text}` was put on {where} here"),)
    # of a tensor nothing is known but what torch said
    text = party.text or "one operand"
    return Operand(location.node, text, where, many=not party.example.endswith("[]"), certain=True, story=story)


def _operator(location: Location) -> str:
    """The name of the operation at a place, as a message quotes it."""
    node = location.node
    if isinstance(node, ast.Call):
        return name_of(node) or "the call"
    if isinstance(node, ast.BinOp):
        pattern = ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))
        return ast.unparse(pattern).split()[1]
    return "this operation"


def wrappers(record: Record, locator: Locator) -> Iterator[Site]:
    """A site for each place where a module was wrapped for several devices."""
    made = (wrapper for process in record.processes for wrapper in process.wrappers)
    sharing = "; ".join(label for label, _ in _sharing(record))
    found = False
    for (frame, name), group in grouped(made, lambda one: (one.frame, one.name.rpartition(".")[2])).items():
        if frame is None:
            continue
        distributed = name == "DistributedDataParallel"
        found = found or distributed
        yield _wrap(locator.locate(frame, {name, "DDP"}), name, group, record, sharing if distributed else "")
    if sharing and not found:
        yield from _shared(record, locator)


def _wrap(location: Location, name: str, group: list[Wrapper], record: Record, sharing: str) -> Site:
    errors = " ".join(wrapper.error for wrapper in group).lower()
    return Wrap(
        location.node,
        location.scope,
        _WRAPPERS.get(name, name),
        common(None if wrapper.device_ids is None else len(wrapper.device_ids) for wrapper in group),
        device=places(wrapper.module_device for wrapper in group if wrapper.module_device),
        group=False if any(word in errors for word in _NO_GROUP) else None,
        fixed=Step(location.node, sharing) if sharing else None,
        devices=common(len(process.environment.devices) for process in record.processes),
        measured=Measurement(0, ranks=ranks(record.processes)),
    )


def _shared(record: Record, locator: Locator) -> Iterator[Site]:
    """Sites where ranks that share a device put most of their data there, for want of a wrapper."""
    for label, processes in _sharing(record):
        copies = [event for event in processes[0].events if event.kind == "copy" and event.source == "cpu"]
        frames = [event.frame for event in sorted(copies, key=lambda event: -event.bytes) if event.frame is not None]
        if frames:
            location = locator.locate(frames[0], syntax.COPIERS)
            measured = Measurement(0, ranks=ranks(processes))
            fixed = Step(location.node, label)
            yield Wrap(location.node, location.scope, _DISTRIBUTED, None, fixed=fixed, measured=measured)


def _sharing(record: Record) -> Iterator[tuple[str, list[Process]]]:
    """Ranks that use one device of one machine, and what to say of them."""
    for name, processes in shared(record):
        numbers = [str(number) for number in ranks(processes)]
        devices = len(processes[0].environment.devices)
        left = f", though there are {devices} devices" if devices > 1 else ""
        use = "both use" if len(numbers) == 2 else "all use"
        yield f"ranks {listed(numbers, len(numbers))} {use} `{name}`{left}", processes


def optimizers(record: Record, locator: Locator) -> Iterator[Site]:
    """A site for each place where an optimizer was made."""
    made = (optimizer for process in record.processes for optimizer in process.optimizers)
    for (frame, name), group in grouped(made, lambda one: (one.frame, one.name)).items():
        if frame is None:
            continue
        location = locator.locate(frame, {name.rpartition(".")[2]})
        eager = any(one.state_on and set(one.state_on) != set(one.stepped_on or one.state_on) for one in group)
        orphans = max(one.orphans for one in group)
        frames = (one.moved for one in group if one.moved is not None)
        moves = (locator.locate(moved, syntax.COPIERS) for moved in frames)
        # a library that does both, as `accelerator.prepare`, knows how; but harm is harm
        moved = next((at for at in moves if eager or orphans or syntax.move_at(at).name), None)
        stepped = places(text for one in group for text in one.stepped_on)
        yield Optimize(
            location.node,
            location.scope,
            name,
            places(text for one in group for text in one.made_on),
            stepped,
            Step(moved.node, "the module is moved here", Act.MOVED) if moved else None,
            # state on the old device: the step that follows raises
            eager=eager,
            orphans=orphans,
            measured=_NOTHING,
        )
