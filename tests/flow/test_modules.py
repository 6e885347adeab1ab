"""Modules: where their state is, what they may be called with, and where the result is."""

from __future__ import annotations

import pytest

from devlint.device import IMPLIED_CPU, Kind
from devlint.sites.distributed import Wrap
from devlint.sites.placement import Forward
from devlint.sites.transfers import Transfer
from tests.flow.reading import assert_read, assert_runs, cases, claims, needs_torch, place, sites

SCRIPTS = {
    "a layer": """
        def f(device):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            model(x)
            model.to(device)
            model(x)  # raises
            model(x.to(device))
            model(model(x.to(device)))
            model.cpu()
            model(x)
            model(x.to(device))  # raises
    """,
    "made on a device": """
        def f(device):
            model = nn.Linear(4, 4, device=device)
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4, device=device))
            nn.Linear(4, 4, device="cpu")(torch.ones(4, 4))
    """,
    "moved in a chain": """
        def f(device):
            model = nn.Linear(4, 4).eval().to(device).float()
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4).to(device))
    """,
    "moved by its type only": """
        def f(device):
            model = nn.Linear(4, 4).to(device)
            model.to(torch.float32)
            model.to(dtype=torch.float32)
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4).to(device))
    """,
    "the result is on the module's device": """
        def f(device):
            model = nn.Linear(4, 4).to(device)
            y = model(torch.ones(4, 4, device=device))
            y + torch.ones(4)  # raises
            y.argmax(1) == torch.zeros(4)  # raises
            y + torch.ones(4, device=device)
            y.cpu() + torch.ones(4)
    """,
    "without state": """
        def f(device):
            x = torch.ones(4, 4)
            relu = nn.ReLU().to(device)
            relu(x) + x
            relu(x.to(device)) + x  # raises
            nn.Flatten()(x.to(device)) + torch.ones(4)  # raises
            nn.Dropout(0.0)(x) + x
    """,
    "a sequence": """
        def f(device):
            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            model(torch.ones(4, 4))
            model.to(device)
            model(torch.ones(4, 4))  # raises
            model(torch.ones(4, 4).to(device)) + torch.ones(4)  # raises
    """,
    "a sequence of unpacked layers": """
        def f(device):
            layers = [nn.Linear(4, 4) for _ in range(3)]
            model = nn.Sequential(*layers).to(device)
            model(torch.ones(4, 4).to(device))
            layers[0](torch.ones(4, 4).to(device))
    """,
    "parts move with the whole": """
        def f(device):
            first = nn.Linear(4, 4)
            model = nn.Sequential(first, nn.ReLU())
            model.to(device)
            first(torch.ones(4, 4))  # raises
            first(torch.ones(4, 4).to(device))
    """,
    "a sequence without state": """
        def f(device):
            model = nn.Sequential(nn.ReLU(), nn.Flatten()).to(device)
            model(torch.ones(4, 4)) + torch.ones(4)
    """,
    "a list of modules": """
        def f(device):
            layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]).to(device)
            x = torch.ones(4, 4, device=device)
            for layer in layers:
                x = layer(x)
            layers[0](x)
    """,
    "a dict of results": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return {"y": self.layer(x)}

        def f(device):
            results = Net()(torch.ones(4, 4))
            results["y"] + torch.ones(4)
            results = Net().to(device)(torch.ones(4, 4, device=device))
            results["y"] + torch.ones(4)  # raises
    """,
    "a copy": """
        import copy

        def f(device):
            model = nn.Linear(4, 4)
            twin = copy.deepcopy(model)
            model.to(device)
            twin(torch.ones(4, 4))
            twin(torch.ones(4, 4).to(device))  # raises
    """,
    "weights": """
        def f(device):
            model = nn.Linear(4, 4).to(device)
            model.weight + torch.ones(4)  # raises
            model.weight + torch.ones(4).to(device)
            model.bias.cpu() + torch.ones(4)
            for parameter in model.parameters():
                parameter + torch.ones(4)  # raises
                parameter + torch.ones(4).to(device)
    """,
    "the device of a weight": """
        def f(model):
            device = next(model.parameters()).device
            x = torch.ones(4, 4).to(device)
            model(x)
            x + torch.ones(4)  # raises
    """,
    "a model given by the caller": """
        def f(model, device):
            model(torch.ones(4, 4).to(device))
            model = model.to(device)
            model(torch.ones(4, 4).to(device))
            model(torch.ones(4, 4))  # raises
    """,
    # losses
    "a loss": """
        def f(device):
            loss = nn.MSELoss()
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            loss(d, d) + loss(c, c)
            loss(d, c)  # raises
            loss.to(device)
            loss(c, c)
    """,
    "a loss with a weight": """
        def f(device):
            x, y = torch.ones(4, 4, device=device), torch.zeros(4, dtype=torch.long, device=device)
            loss = nn.CrossEntropyLoss(weight=torch.ones(4))
            loss(x, y)  # raises
            loss.to(device)
            loss(x, y)
            nn.CrossEntropyLoss(weight=torch.ones(4).to(device))(x, y)
            nn.CrossEntropyLoss()(x, y)
            nn.CrossEntropyLoss(torch.ones(4))(x, y)  # raises
            nn.CrossEntropyLoss(weight=None)(x, y)
            nn.BCEWithLogitsLoss(pos_weight=torch.ones(4))(x, x)  # raises
    """,
    "a loss of a loss": """
        def f(device):
            x = torch.ones(4, 4, device=device)
            value = nn.MSELoss()(x, x)
            value + torch.tensor(0.0)
            total = 0.0
            total += value
            total = total + value * 2
            torch.tensor(0.0) + value
    """,
    # recurrent
    "a recurrent module": """
        def f(device):
            rnn = nn.RNN(4, 4).to(device)
            x = torch.ones(4, 2, 4, device=device)
            out, state = rnn(x)
            out + torch.ones(4)  # raises
            state + torch.ones(4, device=device)
            rnn(x, torch.zeros(1, 2, 4))  # raises
            rnn(x, torch.zeros(1, 2, 4, device=device))
    """,
    "a state of two": """
        def f(device):
            rnn = nn.LSTM(4, 4).to(device)
            x = torch.ones(4, 2, 4, device=device)
            out, (h, c) = rnn(x)
            h + torch.ones(4)  # raises
            rnn(x, (h, c))
            rnn(x, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)))  # raises
    """,
    "attention": """
        def f(device):
            attend = nn.MultiheadAttention(4, 2).to(device)
            x = torch.ones(3, 2, 4, device=device)
            attend(x, x, x)
            attend(x, x, torch.ones(3, 2, 4))  # raises
            attend(x, x, x, attn_mask=torch.zeros(3, 3))  # raises
            attend(x, x, x)[0] + torch.ones(4)  # raises
    """,
    "embedding": """
        def f(index: torch.Tensor, device):
            table = nn.Embedding(9, 4).to(device)
            table(torch.zeros(4, dtype=torch.long))  # raises
            table(torch.arange(3))  # raises
            table(torch.arange(3, device=device)) + torch.ones(4)  # raises
            table(index.to(device))
    """,
    "normalisation": """
        def f(device):
            norm = nn.LayerNorm(4).to(device)
            norm(torch.ones(4, 4))  # raises
            norm(torch.ones(4, 4, device=device))
            nn.LayerNorm(4, elementwise_affine=False).to(device)(torch.ones(4, 4))
    """,
    "convolution": """
        def f(device):
            layer = nn.Conv1d(4, 4, 1).to(device)
            layer(torch.ones(1, 4, 4, device=device)) + torch.ones(4)  # raises
    """,
}


@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


# --- What cannot be run on the stand-in -----------------------------------------------------------------------------


def test_a_convolution_needs_its_input_where_it_is() -> None:
    """FakeTensor does not check convolutions; CUDA does (catalogue 3.4)."""
    code = """
        def f(device):
            layer = nn.Conv1d(4, 4, 1).to(device)
            layer(torch.ones(1, 4, 4))
            layer(torch.ones(1, 4, 4).to(device))
    """
    assert claims(code) == {4}


@pytest.mark.parametrize(
    ("wrapped", "moves"),
    [
        ("nn.DataParallel(model)", True),
        ("nn.DataParallel(model, device_ids=[0])", True),
        ("nn.DataParallel(model).cuda()", True),
        ("nn.DataParallel(model.cuda())", True),
        ("nn.parallel.DistributedDataParallel(model, device_ids=[0])", True),
        ("nn.parallel.DistributedDataParallel(model, [0])", True),
        ("nn.parallel.DistributedDataParallel(model)", False),
        ("nn.parallel.DistributedDataParallel(model, device_ids=None)", False),
    ],
)
def test_wrappers_that_move_their_inputs(wrapped: str, moves: bool) -> None:
    """DataParallel and DDP with ids scatter what they are given, DDP without does not (catalogue 1.16)."""
    code = f"""
        def f():
            model = nn.Linear(4, 4).cuda()
            model = {wrapped}
            model(torch.ones(4, 4))
    """
    assert bool(sites(code, Forward)) is not moves
    assert len(sites(code, Wrap)) == 1


def test_a_wrapper_counts_its_devices() -> None:
    code = """
        def f(model, ids):
            nn.DataParallel(model, device_ids=[0, 1])
            nn.DataParallel(model, ids)
            nn.parallel.DistributedDataParallel(model, device_ids=[0])
    """
    assert [site.ids for site in sites(code, Wrap)] == [2, None, 1]


def test_a_module_moves_in_place() -> None:
    code = """
        def f(device):
            model = nn.Linear(4, 4)
            model.to(device)
    """
    (site,) = sites(code, Transfer)
    assert site.kind == "module"
    assert site.discarded
    assert site.value.device == IMPLIED_CPU
    assert site.target is not None
    assert site.target.kind is Kind.SYMBOL


def test_a_condition_in_a_module_s_move() -> None:
    code = """
        def f(device, flag):
            model = nn.Linear(4, 4)
            if flag:
                model.to(device)
            see(model)
    """
    found = place(code, "model")
    assert {leaf.kind for leaf in found.leaves()} == {Kind.SYMBOL, Kind.CPU}


@pytest.mark.parametrize(
    "made",
    [
        "build_model()",
        "AutoModel.from_pretrained('a', device_map='auto')",
        "registry['a'](4)",
        "torch.jit.load('a')",
        "torch.hub.load('a', 'b')",
        "torch.load('a')",
        "nn.Linear(4, 4, **options)",
    ],
)
def test_modules_of_which_nothing_is_known(made: str) -> None:
    code = f"""
        def f(options, device):
            model = {made}
            model(torch.ones(4, 4))
            model(torch.ones(4, 4).to(device))
            model(torch.ones(4, 4).to(device)) + torch.ones(4)
    """
    assert not sites(code, Forward)
    assert not claims(code)


def test_a_sequence_with_an_unknown_part_is_unknown() -> None:
    code = """
        def f(device):
            model = nn.Sequential(build(), nn.Linear(4, 4))
            model(torch.ones(4, 4).to(device))
    """
    assert not sites(code, Forward)


def test_a_pipeline_is_written_on_purpose() -> None:
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(4, 4).to("cuda:0")
                self.second = nn.Linear(4, 4).to("cuda:1")

            def forward(self, x):
                x = self.first(x.to("cuda:0"))
                return self.second(x.to("cuda:1"))
    """
    assert not claims(code)


def test_a_pretrained_model_is_on_the_cpu() -> None:
    code = """
        import torchvision

        def f(device):
            model = torchvision.models.resnet18()
            model(torch.ones(1, 3, 8, 8).to(device))
            model.to(device)
            model(torch.ones(1, 3, 8, 8).to(device))
            model(torch.ones(1, 3, 8, 8))
    """
    assert claims(code) == {6, 9}
