"""The lattice of devices: its laws, and what its answers mean in every world that the code can run in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import assume as suppose
from hypothesis import example, given
from hypothesis import strategies as st

from devlint.device import (
    ACCELERATOR_TYPES,
    AVAILABLE,
    CPU,
    IMPLIED_CPU,
    UNKNOWN,
    Condition,
    Device,
    Kind,
    Predicate,
    Role,
    accelerator,
    choice,
    parse,
    seen,
    symbol,
)

CUDA, FIRST, SECOND, MPS = accelerator("cuda"), accelerator("cuda", 0), accelerator("cuda", 1), accelerator("mps")
ARGS = symbol("args.device", "args.device")
OTHER = symbol("f:device", "device")
INPUT = symbol("f:x", "x", Role.INPUT)
PLACE = symbol("place:Net", "self", Role.PLACE)
SWITCH = choice(AVAILABLE, CUDA, CPU, "device")
G, H = Predicate("g"), Predicate("h")
GUARDS = (AVAILABLE, Predicate("args.cuda"), Predicate("training"))

facts = st.sampled_from([CPU, IMPLIED_CPU, CUDA, FIRST, SECOND, MPS])
symbols = st.sampled_from([ARGS, OTHER, INPUT, PLACE])
simple = st.one_of(facts, symbols)


@st.composite
def choices(draw: st.DrawFn, inner: st.SearchStrategy[Device]) -> Device:
    """A choice as a branch makes it: what each side holds is already known to hang on the condition."""
    guard = draw(st.sampled_from(GUARDS))
    then, other = draw(inner).assume(guard, True), draw(inner).assume(guard, False)
    return choice(guard, then, other, draw(st.sampled_from(["", "device"])))


known = st.recursive(simple, choices, max_leaves=4).filter(lambda device: device.known)
devices = st.one_of(known, st.just(UNKNOWN))


@st.composite
def related(draw: st.DrawFn) -> tuple[Device, Device]:
    """Two devices which share a condition or a part, as those of two variables often do."""
    one, two, three = draw(known), draw(known), draw(known)
    guard = draw(st.sampled_from(GUARDS))
    made = [choice(guard, side.assume(guard, True), two.assume(guard, False)) for side in (one, three)]
    return draw(st.sampled_from([(one, two), (made[0], made[1]), (made[0], two), (one, one), (made[0], made[0])]))


def nested_alike(device: Device, outside: int = -1) -> bool:
    """Whether conditions lie inside each other in one order, see the gap below."""
    if device.then is None or device.other is None:
        return True
    depth = GUARDS.index(device.guard)
    return depth > outside and nested_alike(device.then, depth) and nested_alike(device.other, depth)


pairs = related().filter(lambda pair: all(device.known and nested_alike(device) for device in pair))


observed = st.builds(seen, facts, symbols)
mixed = st.one_of(simple, observed, choices(st.one_of(simple, observed)).filter(lambda device: device.known))


# --- What a run has seen ------------------------------------------------------------------------------------------


@given(mixed, mixed)
def test_the_laws_hold_of_what_a_run_has_seen(one: Device, two: Device) -> None:
    assert one.same(two) is two.same(one)
    assert one.differs(two) is two.differs(one)
    assert not (one.same(two) and one.differs(two))
    assert one.same(one) is True
    assert one.differs(one) is False


@given(observed, simple)
def test_what_was_seen_is_the_same_as_itself_and_nothing_else(one: Device, other: Device) -> None:
    assert one.seen_of is not None
    assert one.same(other) is (True if other == one.seen_of else None if one.same(other) is None else False)
    assert one.same(one.seen_of) is True
    assert one.differs(one.seen_of) is False


@pytest.mark.parametrize(
    ("one", "two", "differs"),
    [
        (seen(FIRST, INPUT), CPU, True),
        (seen(FIRST, INPUT), IMPLIED_CPU, True),
        (seen(CPU, INPUT), CUDA, True),
        (seen(CPU, INPUT), seen(FIRST, PLACE), True),
        (seen(FIRST, INPUT), SECOND, True),
        # it can be there, and elsewhere
        (seen(FIRST, INPUT), FIRST, None),
        (seen(CPU, INPUT), CPU, None),
        (seen(FIRST, INPUT), seen(FIRST, PLACE), None),
        # what nobody looked at may be anywhere
        (seen(CPU, INPUT), ARGS, None),
        (seen(CPU, INPUT), PLACE, None),
        (seen(FIRST, INPUT), ARGS, None),
        # but on a machine with an accelerator the code goes to that
        (seen(CPU, INPUT), SWITCH, True),
    ],
)
def test_whether_what_was_seen_differs(one: Device, two: Device, differs: bool | None) -> None:
    assert one.differs(two) is differs
    assert two.differs(one) is differs
    assert not one.same(two)


# --- Laws ---------------------------------------------------------------------------------------------------------


@given(st.one_of(pairs, st.tuples(devices, devices)))
def test_both_questions_are_symmetric(pair: tuple[Device, Device]) -> None:
    one, two = pair
    assert one.same(two) is two.same(one)
    assert one.differs(two) is two.differs(one)


@given(st.one_of(pairs, st.tuples(devices, devices)))
def test_no_two_devices_are_both_the_same_and_different(pair: tuple[Device, Device]) -> None:
    one, two = pair
    if one.same(two):
        assert one.differs(two) is False
    if one.differs(two):
        assert not one.same(two)


@given(known)
def test_a_known_device_is_the_same_as_itself(device: Device) -> None:
    assert device.same(device) is True
    assert device.differs(device) is False


@given(devices)
def test_the_unknown_answers_nothing(device: Device) -> None:
    assert device.same(UNKNOWN) is None
    assert device.differs(UNKNOWN) is None
    assert UNKNOWN.accelerates() is None
    assert not UNKNOWN.known


@given(devices, st.sampled_from(GUARDS), st.booleans())
def test_assuming_a_guard_settles_it(device: Device, guard: Condition, truth: bool) -> None:
    settled = device.assume(guard, truth)
    assert guard not in guards_of(settled)
    assert settled.assume(guard, truth) == settled
    assert settled.assume(guard, not truth) == settled


@given(devices, st.sampled_from(GUARDS), st.booleans())
def test_assuming_another_guard_changes_nothing(device: Device, guard: Condition, truth: bool) -> None:
    suppose(guard not in guards_of(device))
    assert device.assume(guard, truth) == device


@given(devices, st.sampled_from(GUARDS))
@example(Device(Kind.CHOICE, guard=GUARDS[0], then=CPU, other=IMPLIED_CPU, text="device"), GUARDS[0])
def test_a_choice_between_equals_is_no_choice(device: Device, guard: Condition) -> None:
    assert choice(guard, device, device) == device


@given(known, st.sampled_from(GUARDS))
def test_a_choice_with_the_unknown_is_unknown(device: Device, guard: Condition) -> None:
    if guard != AVAILABLE:
        # on a machine with an accelerator it is known what that comes to
        assert choice(guard, device, UNKNOWN) == UNKNOWN
    assert choice(guard, UNKNOWN, device) == UNKNOWN


@given(devices)
def test_leaves_are_no_choices(device: Device) -> None:
    assert all(leaf.kind is not Kind.CHOICE for leaf in device.leaves())
    assert (device.leaves() == (device,)) is (device.kind is not Kind.CHOICE)


def test_choices_do_not_grow_without_end() -> None:
    grown = CPU
    for position in range(12):
        grown = choice(Predicate(f"guard {position}"), accelerator("cuda", position), grown)
    assert grown == UNKNOWN or len(grown.leaves()) <= 16


# --- What the answers mean ------------------------------------------------------------------------------------------

Place = tuple[str, int]
World = dict[object, object]
HOST, ONE, TWO, METAL = ("cpu", 0), ("cuda", 0), ("cuda", 1), ("mps", 0)


def worlds(*of: Device) -> Iterator[World]:
    """Every assignment of a truth to each guard, of a device to each symbol, and of the current CUDA device.

    Where no accelerator is available, no symbol is one.
    """
    guards = sorted(set().union(*map(guards_of, of)), key=lambda guard: guard.text)
    leaves = {leaf for device in of for leaf in device.leaves()}
    names = sorted({leaf.symbol for leaf in leaves if leaf.kind is Kind.SYMBOL})
    bare = CUDA in leaves
    for truths in itertools.product([True, False], repeat=len(guards)):
        host_only = AVAILABLE in guards and not truths[guards.index(AVAILABLE)]
        for places in itertools.product([HOST] if host_only else [HOST, ONE, TWO], repeat=len(names)):
            for current in (0, 1) if bare else (0,):
                yield {
                    **dict(zip(guards, truths, strict=True)),
                    **dict(zip(names, places, strict=True)),
                    "current": current,
                }


def guards_of(device: Device) -> set[Condition]:
    if device.then is None or device.other is None:
        return set()
    return {device.guard, *guards_of(device.then), *guards_of(device.other)}


def place(device: Device, world: World) -> Place:
    """Where the device is in a world."""
    if device.then is not None and device.other is not None:
        return place(device.then if world[device.guard] else device.other, world)
    if device.kind is Kind.CPU:
        return HOST
    if device.kind is Kind.SYMBOL:
        found = world[device.symbol]
        assert isinstance(found, tuple)
        return found
    index = device.index if device.index is not None else world["current"] if device.type == "cuda" else 0
    assert isinstance(index, int)
    return device.type, index


@given(pairs)
def test_the_same_is_the_same_in_every_world(pair: tuple[Device, Device]) -> None:
    one, two = pair
    if one.same(two):
        assert all(place(one, world) == place(two, world) for world in worlds(one, two))


@given(pairs)
def test_not_the_same_is_seen_in_some_world(pair: tuple[Device, Device]) -> None:
    one, two = pair
    if one.same(two) is False:
        assert any(place(one, world) != place(two, world) for world in worlds(one, two))


@given(pairs)
@example((ARGS, choice(AVAILABLE, ARGS, CPU)))
@example((choice(AVAILABLE, ARGS, CPU), choice(AVAILABLE, ARGS, OTHER)))
@example((ARGS, choice(AVAILABLE, choice(GUARDS[1], ARGS, OTHER), CPU)))
def test_a_difference_is_met_in_some_world_with_an_accelerator(pair: tuple[Device, Device]) -> None:
    one, two = pair
    if one.differs(two):
        met = [(place(one, world), place(two, world)) for world in worlds(one, two)]
        assert any(first != second and (first, second) != (HOST, HOST) for first, second in met)


def test_the_order_of_conditions_makes_no_difference() -> None:
    one = choice(G, choice(H, ARGS, SECOND), choice(H, ARGS, FIRST))
    two = choice(H, ARGS, choice(G, SECOND, FIRST))
    assert all(place(one, world) == place(two, world) for world in worlds(one, two))
    assert not one.differs(two)


@given(pairs)
@example((ARGS, choice(AVAILABLE, ARGS, IMPLIED_CPU)))
def test_no_difference_is_no_difference_in_any_world(pair: tuple[Device, Device]) -> None:
    one, two = pair
    if one.differs(two) is False:
        assert all(place(one, world) == place(two, world) for world in worlds(one, two))


@given(known)
def test_accelerates_means_it_in_every_world(device: Device) -> None:
    answer = device.accelerates()
    if answer is not None:
        assert all((place(device, world) != HOST) is answer for world in worlds(device))


@given(known, st.sampled_from(GUARDS), st.booleans())
def test_assuming_a_guard_keeps_what_holds_where_it_is_so(device: Device, guard: Condition, truth: bool) -> None:
    settled = device.assume(guard, truth)
    for world in worlds(device):
        if world.get(guard, truth) is truth:
            assert place(settled, world) == place(device, world)


@pytest.mark.parametrize(("one", "two"), list(itertools.product([CPU, IMPLIED_CPU, FIRST, SECOND], repeat=2)))
def test_facts_that_differ_in_every_world_are_told_apart(one: Device, two: Device) -> None:
    """The converse, where there is nothing to guess."""
    assert one.same(two) is (place(one, {}) == place(two, {}))
    assert one.differs(two) is (place(one, {}) != place(two, {}))


# --- The special rules ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two", "same", "differs"),
    [
        # "cuda" is the current device, which set_device may have changed
        (CUDA, FIRST, None, None),
        (CUDA, CUDA, True, False),
        (FIRST, SECOND, False, True),
        (CUDA, MPS, False, True),
        (CPU, CUDA, False, True),
        (CPU, IMPLIED_CPU, True, False),
        # a symbol may be anything, but on an accelerator it is not the CPU
        (ARGS, ARGS, True, False),
        (ARGS, OTHER, None, None),
        (ARGS, CPU, None, True),
        (INPUT, IMPLIED_CPU, None, True),
        (ARGS, CUDA, None, None),
        # one symbol is one device, however the code spells it
        (symbol("args.device", "a"), symbol("args.device", "b"), True, False),
        # an accelerator-or-CPU switch is an accelerator where there is one
        (SWITCH, CPU, None, True),
        (SWITCH, SWITCH, True, False),
        (SWITCH, CUDA, None, None),
        (SWITCH, ARGS, None, None),
        (SWITCH, choice(AVAILABLE, CUDA, IMPLIED_CPU), True, False),
        (SWITCH, choice(AVAILABLE, FIRST, CPU), None, None),
        (SWITCH, choice(GUARDS[1], CUDA, CPU), None, None),
        # on the other side of the same condition
        (choice(G, FIRST, SECOND), choice(G, SECOND, FIRST), False, True),
        (choice(G, ARGS, CPU), choice(G, ARGS, CPU), True, False),
        # created by default, moved on one path only
        (choice(G, ARGS, IMPLIED_CPU), ARGS, None, True),
        # the code itself chooses the CPU for some reason: a choice of devices like any other
        (choice(G, ARGS, CPU), ARGS, None, None),
        (choice(G, ARGS, CPU), CPU, None, True),
        (choice(G, FIRST, SECOND), CPU, False, True),
        # where the code goes without an accelerator, what the caller keeps is on the CPU, too
        (choice(G, CUDA, IMPLIED_CPU), choice(G, CUDA, INPUT), None, None),
        (choice(G, CUDA, IMPLIED_CPU), choice(G, FIRST, INPUT), None, None),
        (choice(G, CUDA, IMPLIED_CPU), choice(G, MPS, INPUT), False, True),
        (choice(G, ARGS, IMPLIED_CPU), choice(G, ARGS, INPUT), None, True),
    ],
)
def test_special_rules(one: Device, two: Device, same: bool | None, differs: bool | None) -> None:
    assert one.same(two) is same
    assert one.differs(two) is differs


@pytest.mark.parametrize(
    ("device", "answer"),
    [
        (CPU, False),
        (CUDA, True),
        (MPS, True),
        (ARGS, None),
        (SWITCH, None),
        (UNKNOWN, None),
        (choice(G, CUDA, MPS), True),
        (choice(G, CPU, IMPLIED_CPU), False),
    ],
)
def test_accelerates(device: Device, answer: bool | None) -> None:
    assert device.accelerates() is answer


@pytest.mark.parametrize(
    ("device", "switched"),
    [
        (CPU, False),
        (CUDA, False),
        (SWITCH, True),
        (choice(G, CUDA, MPS), False),
        (choice(G, ARGS, CPU), True),
        (choice(G, ARGS, IMPLIED_CPU), False),
    ],
)
def test_a_switch_is_between_an_accelerator_and_the_cpu(device: Device, switched: bool) -> None:
    assert device.switched is switched


# --- Text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("cpu", CPU),
        ("cpu:0", CPU),
        ("cuda", CUDA),
        ("cuda:0", FIRST),
        ("cuda:12", accelerator("cuda", 12)),
        ("mps", MPS),
        ("xpu:1", accelerator("xpu", 1)),
        # a tensor there has no data, so nothing is known of what it may meet
        ("meta", UNKNOWN),
        ("", None),
        ("auto", None),
        ("cuda:", None),
        ("cuda:x", None),
        ("cuda:-1", None),
        (" cuda", None),
        ("CUDA", None),
        ("cuda:0\n", None),
        ("float32", None),
    ],
)
def test_parse(text: str, device: Device | None) -> None:
    assert parse(text) == device


@pytest.mark.parametrize("type_", sorted(ACCELERATOR_TYPES))
def test_parse_knows_every_accelerator(type_: str) -> None:
    assert parse(type_) == accelerator(type_)
    assert parse(f"{type_}:3") == accelerator(type_, 3)


@given(st.sampled_from(sorted(ACCELERATOR_TYPES)), st.one_of(st.none(), st.integers(0, 99)))
def test_a_literal_reads_as_it_is_written(type_: str, index: int | None) -> None:
    device = accelerator(type_, index)
    assert parse(str(device).strip("`")) == device


@pytest.mark.parametrize(
    ("device", "text"),
    [
        (CPU, "the CPU"),
        (IMPLIED_CPU, "the CPU"),
        (CUDA, "`cuda`"),
        (SECOND, "`cuda:1`"),
        (ARGS, "`args.device`"),
        (INPUT, "`x.device`"),
        (symbol("a", "parser.parse_args(argv)", Role.INPUT), "`parser.parse_args(argv).device`"),
        # of what cannot have a dot behind it
        (symbol("b", "x or y", Role.INPUT), "the device of `x or y`"),
        (symbol("c", "an item of batches[0]", Role.INPUT), "the device of an item of `batches[0]`"),
        (symbol("d", "an item of an item of xs", Role.INPUT), "the device of an item of an item of `xs`"),
        (
            choice(Predicate("x"), symbol("a", "a"), choice(Predicate("y"), symbol("b", "b"), CPU)),
            "`a`, `b` or another device",
        ),
        (PLACE, "the module's device"),
        (SWITCH, "`device`"),
        (choice(G, SECOND, CPU), "`cuda:1` or the CPU"),
        (choice(G, CPU, SECOND), "`cuda:1` or the CPU"),
        (choice(G, CPU, IMPLIED_CPU), "the CPU"),
        (UNKNOWN, "an unknown device"),
    ],
)
def test_text(device: Device, text: str) -> None:
    assert str(device) == text


def test_torch_reads_the_same_literals() -> None:
    torch = pytest.importorskip("torch")
    for text in ("cpu", "cpu:0", "cuda", "cuda:0", "mps", "xpu:1", "meta"):
        assert parse(text) is not None
        torch.device(text)
    for text in ("", "auto", "cuda:", "cuda:x", " cuda", "CUDA", "float32"):
        assert parse(text) is None
        with pytest.raises(RuntimeError):
            torch.device(text)
