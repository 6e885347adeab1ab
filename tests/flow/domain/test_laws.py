"""The laws of the abstract domain: what a join and a widening may forget, and what they must not make up.

``leq`` is the partial order: ``leq(a, b)`` says that ``b`` claims no more than ``a``.  The product never asks for it.
"""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.device import AVAILABLE, CPU, ITEMS, Condition, Device, LoopRound, Predicate, Role
from devlint.device import UNKNOWN as NOWHERE
from devlint.flow.domain import provenance, widening
from devlint.flow.domain.join import join
from devlint.flow.domain.objects import Module, Stateful, is_host
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.state import State, merge, settle
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, as_tensor, placement
from devlint.flow.domain.values import UNKNOWN, Const, Flag, Mapping, Named, Opaque, Sequence, Value
from devlint.flow.transfer.placement import blend
from devlint.immutable import replace
from devlint.sites.base import Step
from tests.device.test_lattice import GUARDS, devices

FRESH = Predicate("fresh")
"""A condition on which no device that is drawn hangs."""
ROUND = LoopRound("loop", 1)
laws = settings(max_examples=300, derandomize=True)
guards = st.sampled_from([*GUARDS, FRESH])

nodes = st.sampled_from([ast.Call(ast.Name(name), [], []) for name in ("ones", "zeros", "rand")])
steps = st.builds(Step, nodes, st.sampled_from(["created here", "moved here"]))
creations = st.tuples(st.just("torch.ones"), nodes)
origins = st.builds(
    lambda story, made, blended, attribute, kept: Origin(
        tuple(story), *(made or ("", None)), tuple(blended), attribute=attribute, kept=kept
    ),
    st.lists(steps, max_size=2, unique=True),
    st.none() | creations,
    st.lists(creations, max_size=2, unique=True),
    st.none() | steps,
    st.none() | steps,
)
tensors = st.builds(
    Tensor,
    devices,
    many=st.sampled_from([None, True, False]),
    rank=st.sampled_from([None, 0, 2]),
    certain=st.booleans(),
    optional=st.booleans(),
    derived=st.booleans(),
    buffer=st.booleans(),
    grad=st.sampled_from(["", "leaf", "graph"]),
    near=st.sampled_from([NOWHERE, CPU]),
    number=st.booleans(),
    origin=st.just(NO_ORIGIN) | origins,
)
constants = st.builds(Const, st.sampled_from([None, 0, "text", "cpu", "cuda:1"]))
opaques = st.builds(
    Opaque,
    st.sampled_from(["x", "y"]),
    st.just("x"),
    hint=st.sampled_from(["", "tensor", "device", "host"]),
    role=st.sampled_from([Role.INPUT, Role.DEVICE]),
    derived=st.booleans(),
    computed=st.booleans(),
    optional=st.booleans(),
)
simple = st.one_of(
    tensors,
    tensors,
    constants,
    opaques,
    st.builds(DeviceValue, devices),
    st.builds(Module, st.sampled_from([1, 2]), st.just("torch.nn.Linear")),
    st.builds(Flag, guards, st.booleans()),
    st.builds(Batches, st.sampled_from([(1,), (2,)]), devices, st.booleans(), st.booleans()),
    st.builds(Loader, st.sampled_from([(1,), (2,)]), devices, st.booleans()),
    st.builds(Stateful, st.sampled_from(["torch.optim.SGD", "torch.utils.data.RandomSampler"])),
    st.builds(Named, st.sampled_from(["a.b", "a.c"])),
    st.just(UNKNOWN),
)


def _containers(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    held = st.lists(inner, max_size=3).map(tuple)
    entries = st.lists(st.tuples(st.sampled_from("ab"), inner), max_size=2, unique_by=lambda entry: entry[0])
    return st.one_of(
        st.builds(Sequence, held, st.just(UNKNOWN), st.booleans()),
        st.builds(Sequence, st.none(), inner, st.booleans(), head=held),
        st.builds(Mapping, entries.map(tuple), st.one_of(st.just(UNKNOWN), inner)),
    )


values = st.recursive(simple, _containers, max_leaves=4)


# --- The order ----------------------------------------------------------------------------------------------------


def place_leq(one: Device, two: Device) -> bool:
    """Whether ``two`` may be wherever ``one`` may be."""
    if NOWHERE in two.leaves():
        return True
    return {*one.leaves()} <= {*two.leaves()}


def leq(one: Value, two: Value) -> bool:
    """Whether ``two`` says no more than ``one``."""
    if one == two or two is UNKNOWN:
        return True
    if isinstance(two, Tensor) and isinstance(one, (Tensor, Opaque, Batches)):
        mine = as_tensor(one)
        return (
            place_leq(mine.device, two.device)
            and (two.rank is None or two.rank == mine.rank)
            and all(not told or also for told, also in zip(_doubts(mine), _doubts(two), strict=True))
            and (two.near == NOWHERE or two.near == mine.near)
        )
    if isinstance(two, DeviceValue):
        place = placement(one)
        return place is not None and place_leq(place, two.device)
    if isinstance(one, Opaque) and isinstance(two, Opaque):
        return two.role is one.role and two.hint in ("", one.hint) and two.derived >= one.derived
    if isinstance(one, Batches) and isinstance(two, Batches):
        return {*one.loaders} <= {*two.loaders} and place_leq(one.device, two.device) and one.certain >= two.certain
    if isinstance(one, Loader) and isinstance(two, Loader):
        return {*one.oids} <= {*two.oids} and place_leq(one.batches, two.batches) and one.certain >= two.certain
    return False


def _doubts(tensor: Tensor) -> tuple[bool, ...]:
    return tensor.optional, tensor.derived, tensor.number, tensor.buffer


def state_leq(one: State, two: State) -> bool:
    """Whether every name and fact of ``two`` says no more than ``one``; a name of ``two`` alone counts as no claim."""
    facts = all(one.facts.get(condition) is holds for condition, holds in two.facts.items())
    return facts and all(name not in one.env or leq(one.env[name], value) for name, value in two.env.items())


# --- What join leaves out on purpose --------------------------------------------------------------------------------


def kept_alone(one: Value, two: Value) -> bool:
    """Whether a join keeps ``one`` of the two, as its docstring lists: the other is no place where a bug could be."""
    if isinstance(one, Tensor):
        # of a tensor and a plain value, only the tensor can be on the wrong device
        return is_host(two)
    if isinstance(one, Named):
        # a module that may fail to be imported is there where it is used
        return is_host(two) or two is UNKNOWN
    sampler = isinstance(one, Stateful) and one.path.endswith("Sampler")
    # what may be ``None`` is used where it is not
    return (sampler or isinstance(one, (Sequence, Loader))) and two == Const(None)


def exempt(one: Value, two: Value) -> bool:
    """Whether either is what a join drops."""
    return kept_alone(one, two) or kept_alone(two, one)


# --- Laws of join ---------------------------------------------------------------------------------------------------


@laws
@given(values, guards)
def test_a_join_of_a_value_with_itself_is_that_value(value: Value, guard: Condition) -> None:
    assert join(value, value, guard) == value


@laws
@given(simple, simple, guards)
def test_a_join_says_no_more_than_either_side(one: Value, two: Value, guard: Condition) -> None:
    if exempt(one, two):
        return
    # what each side holds is known to hang on the condition, as after a branch
    joined = join(_under(one, guard, True), _under(two, guard, False), guard)
    assert leq(_under(one, guard, True), joined)
    assert leq(_under(two, guard, False), joined)


def _under(value: Value, guard: Condition, truth: bool) -> Value:
    if isinstance(value, (Tensor, DeviceValue, Batches)):
        return replace(value, device=value.device.assume(guard, truth))
    return replace(value, batches=value.batches.assume(guard, truth)) if isinstance(value, Loader) else value


@laws
@given(simple, simple, guards)
def test_what_is_dropped_is_what_is_listed(one: Value, two: Value, guard: Condition) -> None:
    if kept_alone(one, two):
        expected = replace(one, optional=True) if isinstance(one, Tensor) else one
        assert join(one, two, guard) == join(two, one, guard) == expected


@laws
@given(simple, simple)
def test_the_order_of_the_branches_matters_to_the_guard_alone(one: Value, two: Value) -> None:
    there, back = join(one, two, FRESH), join(two, one, FRESH)
    assert type(there) is type(back)
    if isinstance(there, Tensor) and isinstance(back, Tensor):
        assert {*there.device.leaves()} == {*back.device.leaves()}
        assert (there.rank, there.many, there.certain, there.near) == (back.rank, back.many, back.certain, back.near)
        assert _doubts(there) == _doubts(back)


# --- Laws of origins ------------------------------------------------------------------------------------------------


def _bare(value: Value) -> Value:
    return replace(value, origin=NO_ORIGIN) if isinstance(value, Tensor) else value


@laws
@given(simple, simple, guards, st.booleans())
def test_no_fact_hangs_on_an_origin(one: Value, two: Value, guard: Condition, truth: bool) -> None:
    assert _bare(join(one, two, guard)) == join(_bare(one), _bare(two), guard)
    assert _bare(settle(one, guard, truth)) == settle(_bare(one), guard, truth)
    assert _bare(blend(one, two)) == _bare(blend(_bare(one), _bare(two)))
    states = State({"x": join(one, two, ROUND)}), State({"x": join(_bare(one), _bare(two), ROUND)})
    for state in states:
        widening.forget(state, ROUND.loop)
    assert _bare(states[0].env["x"]) == states[1].env["x"]


@laws
@given(origins, origins)
def test_a_join_of_origins_loses_no_creation(one: Origin, two: Origin) -> None:
    joined = provenance.join(one, two)
    assert {joined.node, *joined.alternatives} - {None} == {one.node, two.node} - {None}
    assert {*joined.blended} == {*one.blended, *two.blended}
    assert joined.node is (one.node or two.node)
    assert joined.node not in joined.alternatives
    assert joined.story[: len(one.story)] == one.story
    assert joined.attribute is (one.attribute or two.attribute)
    assert (joined.kept is None) == (one.kept is None or two.kept is None), "kept on one path is not kept"
    assert provenance.join(one, one) == one == provenance.join(one, replace(one))


# --- Laws of states and of widening ---------------------------------------------------------------------------------

states = st.builds(
    State,
    st.dictionaries(st.sampled_from("abc"), simple, max_size=3),
    facts=st.dictionaries(st.sampled_from([Predicate("g"), Predicate("h")]), st.booleans()),
)


@laws
@given(states)
def test_merging_a_state_with_itself_changes_nothing(state: State) -> None:
    merged = merge(state.copy(), state.copy(), FRESH)
    assert (merged.env, merged.heap, merged.facts) == (state.env, state.heap, state.facts)


@laws
@given(states, states)
def test_a_merged_state_is_above_both(one: State, two: State) -> None:
    merged = merge(one.copy(), two.copy(), FRESH)
    assert {*merged.env} == {*one.env, *two.env}  # bound on one path stays bound
    for name in one.env.keys() & two.env.keys():
        if exempt(one.env[name], two.env[name]):
            del merged.env[name]
    assert state_leq(one, merged)
    assert state_leq(two, merged)


@laws
@given(st.lists(devices, min_size=1, max_size=12))
def test_a_loop_settles_whatever_its_rounds_leave(places: list[Device]) -> None:
    """However many rounds come, a place is no deeper than the lattice allows, and forgetting it is final."""
    state = State({"x": Tensor(places[0])})
    for number, place in enumerate(places[1:]):
        state = merge(State({"x": Tensor(place)}), state, LoopRound("loop", number))
    assert len(state.env["x"].device.leaves()) <= 16
    before = state.copy()
    widening.forget(state, "loop")
    assert state_leq(before, state) or _in_general(before.env["x"], state.env["x"])
    assert not any(isinstance(guard, LoopRound) for guard in state.env["x"].device.guards())
    again = state.copy()
    widening.forget(again, "loop")
    assert again.env == state.env
    assert not widening.moved(state, again)


def _in_general(before: Tensor, after: Tensor) -> bool:
    """Accelerators of one type, or CPUs, of which nothing is left but that."""
    return {(leaf.kind, leaf.type) for leaf in before.device.leaves()} == {(after.device.kind, after.device.type)}


@pytest.mark.parametrize("guard", [AVAILABLE, ITEMS, FRESH])
def test_the_unknown_is_above_all(guard: Condition) -> None:
    for value in (Flag(FRESH), Module(1), Mapping((("a", UNKNOWN),))):
        assert join(value, UNKNOWN, guard) is join(UNKNOWN, value, guard) is UNKNOWN
