"""What modules hold unregistered: found exactly, and told only where it did harm."""

from __future__ import annotations

import torch
from torch import nn

from devlint.auditor.introspection.tensors import home, leaves, storage_of
from devlint.auditor.introspection.unregistered import unregistered
from devlint.auditor.modules.strays import Strays
from devlint.auditor.session import Session, Settings


class Net(nn.Module):
    def __init__(self, **attributes) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)
        for name, value in attributes.items():
            setattr(self, name, value)


def found(net: nn.Module) -> list[tuple[str, str, str]]:
    return [(held.text, held.container, held.device) for held in unregistered(net)]


def test_tensors_and_modules_in_attributes_and_containers() -> None:
    inner = Net(pos=torch.ones(2), heads=[nn.Linear(2, 2), nn.Linear(2, 2)], named={"a": [torch.ones(3)]})
    assert found(nn.Sequential(inner)) == [
        ("0.pos", "", "cpu"),
        ("0.heads.0", "list", "cpu"),
        ("0.heads.1", "list", "cpu"),
        ("0.named.a.0", "dict", "cpu"),
    ]


def test_what_is_registered_or_harmless() -> None:
    shared = nn.Linear(2, 2)
    net = Net(
        layer=shared,
        layers=[shared],
        view=None,
        scale=torch.tensor(2.0),
        empty=torch.ones(0),
        meta=torch.ones(2, device="meta"),
        bare=[nn.ReLU()],
        names=("a", "b"),
        deep=[[[torch.ones(2)]]],
        parameters_of=nn.ParameterList([nn.Parameter(torch.ones(2))]),
    )
    net.view = net.body.weight.detach()[0]
    net.register_buffer("mask", torch.ones(2))
    net.parent = [nn.Sequential(net)]
    assert found(net) == []


def test_nothing_of_the_script_is_run() -> None:
    class Careful(Net):
        @property
        def trap(self) -> None:
            raise AssertionError("a property was read")

        def __getattr__(self, name: str) -> object:
            if name in ("_modules", "_parameters", "_buffers"):
                raise AssertionError("an attribute was asked for")
            return super().__getattr__(name)

    net = Net()
    net.__class__ = Careful
    net.__dict__["pos"] = torch.ones(2)
    assert found(net) == [("pos", "", "cpu")]


def test_home() -> None:
    net = Net()
    assert home(net) == "cpu"
    net.other = nn.Linear(2, 2)
    net.register_buffer("count", torch.tensor(0))
    assert home(net) == "cpu"
    assert home(nn.ReLU()) == ""


def strays(**facts) -> Strays:
    session = Session(Settings())
    for name, value in facts.items():
        setattr(session.signals, name, value)
    return Strays(session)


def test_harmless_strays_are_not_told() -> None:
    watch = strays()
    watch.scan(Net(pos=torch.ones(2), heads=[nn.Linear(2, 2)]))
    assert watch.describe() == ()


def test_one_that_is_copied_again_and_again() -> None:
    net = Net(pos=torch.ones(2), other=torch.ones(2))
    session = Session(Settings())
    place = session.frames.here()
    storage = storage_of(net.pos)
    session.signals.places_copying = lambda asked: [place] if asked == storage else []
    watch = Strays(session)
    watch.scan(net)
    (stray,) = watch.describe()
    assert (stray.owner, stray.path, stray.name, stray.kind, stray.example) == (
        "Net",
        "",
        "pos",
        "tensor",
        "float32[2]",
    )
    assert [frame.file for frame in stray.moved] == [__file__]


def test_modules_that_are_trained_but_not_optimized() -> None:
    net = Net(heads=[nn.Linear(2, 3), nn.Linear(2, 3)])
    net.heads[1](net.heads[0](net.body(torch.ones(1, 2)))[:, :2]).sum().backward()
    own = {id(parameter) for parameter in net.parameters()}
    watch = strays(is_optimized=lambda parameter: id(parameter) in own)
    watch.scan(net)
    (stray,) = watch.describe()
    # two layers of 2 * 3 weights and 3 biases
    assert (stray.name, stray.kind, stray.container, stray.parameters) == ("heads", "module", "list", 18)
    assert not stray.optimized


def test_modules_that_an_optimizer_has_or_that_nobody_trains() -> None:
    net = Net(heads=[nn.Linear(2, 2)])
    net.heads[0](net.body(torch.ones(1, 2))).sum().backward()
    everything = strays(is_optimized=lambda parameter: True)
    everything.scan(net)
    assert everything.describe() == ()
    nobody = strays(is_optimized=lambda parameter: False)
    nobody.scan(net)
    assert nobody.describe() == ()


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)
        self.pos = torch.zeros(2)


def test_one_that_took_part_in_a_mismatch_is_told_where_it_is_assigned() -> None:
    net = Positions()
    watch = strays()
    watch.took_part([watch.note(held, "cuda:0") for held in unregistered(net)])
    (stray,) = watch.describe()
    assert (stray.owner, stray.name, stray.device, stray.owner_device) == ("Positions", "pos", "cpu", "cuda:0")
    assert stray.frame is not None
    with open(__file__, encoding="utf-8") as file:
        assert file.readlines()[stray.frame.line - 1].strip() == "self.pos = torch.zeros(2)"


def test_keys_are_not_read() -> None:
    class Key:
        def __repr__(self) -> str:
            raise AssertionError("a key was written down")

    weight = nn.Parameter(torch.ones(2))
    net = Net(
        frozen={weight: True, Key(): torch.ones(2), weight.detach(): [torch.ones(3)]},
        named={("a", 1): torch.ones(2), 2: torch.ones(3)},
    )
    assert [text for text, _, _ in found(net)] == ["frozen.1", "frozen.2.0", "named.('a', 1)", "named.2"]
    assert [access for access, _ in leaves(vars(net)["frozen"])] == ["[...]", "[...][0]"]
