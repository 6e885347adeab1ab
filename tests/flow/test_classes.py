"""Classes: what `__init__` leaves in `self`, what moves with a module, and what stays behind."""

from __future__ import annotations

import pytest

from devlint.sites.placement import Attribute
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, sites

SCRIPTS = {
    "a plain tensor stays": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

            def forward(self, x):
                return x * self.mask  # raises
    """,
    "a buffer moves": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4))

            def forward(self, x):
                return x * self.mask
    """,
    "a buffer that is not saved moves, too": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4), persistent=False)

            def forward(self, x):
                return x * self.mask
    """,
    "a parameter moves": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))
                self.register_parameter("shift", nn.Parameter(torch.ones(4)))

            def forward(self, x):
                return x * self.scale + self.shift
    """,
    "what is computed from a parameter is none": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4)) * 2

            def forward(self, x):
                return x * self.scale  # raises
    """,
    "a submodule moves": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.layers = nn.ModuleList([nn.Linear(4, 4)])
                self.chain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

            def forward(self, x):
                x = self.chain(self.layer(x))
                for layer in self.layers:
                    x = layer(x)
                return x * self.layer.weight
    """,
    "a submodule in a list stays": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(4, 4)]

            def forward(self, x):
                return self.layers[0](x)  # raises, unseen
    """,
    "a factory in forward": """
        class Net(nn.Module):
            def forward(self, x):
                y = torch.ones(4)
                return x * y  # raises
    """,
    "a factory in forward that follows the input": """
        class Net(nn.Module):
            def forward(self, x):
                a = torch.ones(4, device=x.device)
                b = torch.ones_like(x)
                c = x.new_ones(4)
                d = torch.ones(4).to(x)
                return x * a * b * c * d
    """,
    "a factory against a parameter": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))

            def forward(self, x):
                torch.ones(4) * self.scale  # raises
                return torch.ones(4, device=self.scale.device) * self.scale
    """,
    "a factory against a submodule": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                self.layer(torch.ones(4, 4))  # raises
                return self.layer(torch.ones(4, 4, device=self.layer.weight.device))
    """,
    "a tensor made of a buffer": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4))

            def forward(self, x):
                half = self.mask[:4] * 2
                half + torch.ones(4)  # raises
                return half + x
    """,
    "a 0-dim tensor may stay": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.tensor(2.0)

            def forward(self, x):
                return x * self.scale
    """,
    "a shape is no tensor": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.size = torch.ones(4).shape
                self.count = torch.ones(4).numel()

            def forward(self, x):
                return x * self.count + x.new_ones(self.size)
    """,
    "an index may stay": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.order = torch.tensor([0, 2, 1])

            def forward(self, x):
                return x[:, self.order]
    """,
    "a tensor placed by another method": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

            def prepare(self, device):
                self.mask = self.mask.to(device)

            def forward(self, x):
                self.prepare(x.device)
                return x * self.mask
    """,
    "a tensor placed in _apply": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

            def _apply(self, function, recurse=True):
                self.mask = function(self.mask)
                return super()._apply(function, recurse)

            def forward(self, x):
                self.mask = self.mask.to(x.device)
                return x * self.mask
    """,
    "a tensor kept by a base class": """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

        class Net(Base):
            def forward(self, x):
                return x * self.mask  # raises
    """,
    "a buffer kept by a base class": """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4))

        class Net(Base):
            def forward(self, x):
                return x * self.mask
    """,
    "a buffer that replaces the base's": """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4))

        class Net(Base):
            def __init__(self):
                super().__init__()
                self.mask = torch.zeros(4)

            def forward(self, x):
                return x * self.mask
    """,
    "a method of the base class": """
        class Base(nn.Module):
            def make(self, x):
                return torch.ones(4, device=x.device)

        class Net(Base):
            def forward(self, x):
                return x * self.make(x)
    """,
    "an overridden method": """
        class Base(nn.Module):
            def make(self, x):
                return torch.ones(4)

        class Net(Base):
            def make(self, x):
                return torch.ones(4, device=x.device)

            def forward(self, x):
                return x * self.make(x)
    """,
    "a method that makes on the CPU": """
        class Net(nn.Module):
            def make(self):
                return torch.ones(4)

            def forward(self, x):
                return x * self.make()  # raises
    """,
    "an attribute set in forward": """
        class Net(nn.Module):
            def forward(self, x):
                self.cache = torch.ones(4, device=x.device)
                return x * self.cache
    """,
    "an attribute that starts as None": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cache = None

            def forward(self, x):
                if self.cache is None:
                    self.cache = torch.ones(4, device=x.device)
                return x * self.cache
    """,
    "a device in a property": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            @property
            def device(self):
                return self.layer.weight.device

            def forward(self, x):
                return self.layer(x) * torch.ones(4, device=self.device)
    """,
    "a device in a property that asks the parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            @property
            def device(self):
                try:
                    return next(self.parameters()).device
                except StopIteration:
                    return "cpu"

            def forward(self, x):
                return self.layer(x)

        def f():
            model = Net()
            model(torch.ones(4, device=model.device))
            model.to("cuda")
            model(torch.ones(4, device=model.device))
            model(torch.ones(4))  # raises
    """,
    "a device in an attribute": """
        class Trainer:
            def __init__(self, device):
                self.device = device
                self.model = nn.Linear(4, 4).to(device)

            def step(self):
                self.model(torch.ones(4, 4))  # raises
                return self.model(torch.ones(4, 4).to(self.device))

        def f(device):
            Trainer(device).step()
    """,
    "a model moved by another method": """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(4, 4)

            def move(self, device):
                self.model.to(device)

            def step(self):
                return self.model(torch.ones(4, 4))

        def f():
            Trainer().step()
    """,
    "a tensor of an object": """
        class Trainer:
            def __init__(self):
                self.mask = torch.ones(4)

            def step(self):
                return self.mask + torch.ones(4)

            def clash(self, device):
                return self.mask + torch.ones(4, device=device)  # raises

        def f(device):
            Trainer().step()
            Trainer().clash(device)
    """,
    "a call of a module of the file": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        def f(device):
            model = Net().to(device)
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4).to(device))
            model(torch.ones(4, 4).to(device)) + torch.ones(4)  # raises
    """,
    "a module of the file that moves its inputs": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x.to(self.layer.weight.device))

        def f(device):
            Net().to(device)(torch.ones(4, 4))
    """,
    "a module of the file without parameters": """
        class Double(nn.Module):
            def forward(self, x):
                return x * 2

        def f(device):
            model = Double().to(device)
            model(torch.ones(4)) + torch.ones(4)
    """,
    "two objects of one class": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        def f(device):
            one, two = Net(), Net()
            one.to(device)
            two(torch.ones(4, 4))
            one(torch.ones(4, 4))  # raises
    """,
    "an own to() is called": """
        class Batch:
            def __init__(self, x):
                self.x = x

            def to(self, device):
                self.x = self.x.to(device)
                return self

        def f(device):
            batch = Batch(torch.ones(4))
            batch.to(device)
            batch.x + torch.ones(4, device=device)
    """,
    "an attribute changed from outside": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

            def forward(self, x):
                return x * self.mask.to(x.device)

        def f(device):
            model = Net()
            model.mask = model.mask.to(device)
            model.mask + torch.ones(4, device=device)
    """,
}
GAPS = {}


@pytest.mark.parametrize("code", cases(SCRIPTS, GAPS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


def test_the_attribute_site_says_where_it_was_kept_and_used() -> None:
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(4)

            def forward(self, x):
                y = x + self.mask
                return y * self.mask.to(x.device)
    """
    (site,) = sites(code, Attribute)
    assert (site.owner, site.name) == ("Net", "mask")
    assert [step.node.lineno for step in site.uses] == [8, 9]
    assert site.moved
    assert not site.kept


def test_an_attribute_that_never_meets_an_input_is_nobodys_business() -> None:
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.widths = torch.ones(4)

            def forward(self, x):
                return x * self.widths.sum().item()
    """
    assert not sites(code, Attribute)
