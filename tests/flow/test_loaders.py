"""Loaders: their batches are followed through whatever iterates them to the place where they are moved."""

from __future__ import annotations

import pytest

from devlint.device import Kind
from devlint.sites.loaders import Load
from devlint.sites.transfers import Transfer
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, sites

HEAD = """
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.ones(8, 4), torch.ones(8, 4))
        loader = DataLoader(data, batch_size=4)
"""
SCRIPTS = {
    "batches are on the CPU": """
        for x, y in loader:
            x + y
            x.cuda() + y  # raises
            x.cuda() + y.cuda()
    """,
    "moved where they are used": """
        model = nn.Linear(4, 4).cuda()
        for x, y in loader:
            model(x)  # raises
            x, y = x.cuda(), y.cuda()
            F.mse_loss(model(x), y)
    """,
    "one of them forgotten": """
        model = nn.Linear(4, 4).cuda()
        for x, y in loader:
            x = x.cuda()
            F.mse_loss(model(x), y)  # raises
    """,
    "enumerated": """
        for step, (x, y) in enumerate(loader):
            x.cuda() + y  # raises
            x + step
    """,
    "the first batch": """
        x, y = next(iter(loader))
        x.cuda() + y  # raises
        x + y
    """,
    "zipped": """
        for (x, _), (y, _) in zip(loader, loader):
            x.cuda() + y  # raises
            x + y
    """,
    "moved in a comprehension": """
        for batch in loader:
            batch = [part.cuda() for part in batch]
            batch[0] + batch[1]
    """,
    "a batch in one piece": """
        for batch in loader:
            batch[0] + batch[1]
            batch[0].cuda() + batch[1]  # raises
            batch[0].cuda() + batch[1].cuda()
    """,
    "a dataset on the device": """
        there = TensorDataset(torch.ones(8, 4).cuda(), torch.ones(8, 4).cuda())
        for x, y in DataLoader(there, batch_size=4):
            x + y
            x + torch.ones(4)  # raises
            x + torch.ones(4).cuda()
    """,
    "passed to a function": """
        def _epoch(model, batches, device):
            for x, y in batches:
                F.mse_loss(model(x.to(device)), y)  # raises
                F.mse_loss(model(x.to(device)), y.to(device))

        def main(device):
            _epoch(nn.Linear(4, 4).to(device), loader, device)
    """,
    "nested functions": """
        def main(device):
            model = nn.Linear(4, 4).to(device)

            def step(x, y):
                return F.mse_loss(model(x), y)

            for x, y in loader:
                step(x.to(device), y.to(device))
    """,
    "collated elsewhere": """
        def _collate(samples):
            return torch.stack([x for x, _ in samples]).cuda()

        for x in DataLoader(data, batch_size=4, collate_fn=_collate):
            x + torch.ones(4).cuda()
    """,
}
SCRIPTS = {name: HEAD + code for name, code in SCRIPTS.items()}


@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


# --- The site ---------------------------------------------------------------------------------------------------------


def load(body: str, arguments: str = "dataset", more: str = "") -> Load:
    """The site of `loader` in a function that goes on with `body`."""
    code = f"""
        from torch.utils.data import DataLoader
        from tqdm import tqdm
        {more}
        def f(model, dataset, device, options):
            loader = DataLoader({arguments})
            {body}
    """
    (site,) = sites(code, Load)
    return site


@pytest.mark.parametrize(
    "body",
    [
        "for x, y in loader: x.to(device)",
        "for batch in loader: batch[0].to(device)",
        "for batch in loader: batch['x'].to(device)",
        "for batch in loader: [v.to(device) for v in batch]",
        "for batch in loader: {k: v.to(device) for k, v in batch.items()}",
        "for i, batch in enumerate(loader): batch.to(device)",
        "for i, (x, y) in enumerate(loader, 1): x.to(device)",
        "for x, y in tqdm(loader): x.to(device)",
        "for i, (x, y) in tqdm(enumerate(loader), total=3): x.to(device)",
        "for i, (x, y) in enumerate(tqdm(loader)): x.cuda()",
        "for x, y in iter(loader): x.to(device)",
        "for a, b in zip(loader, loader): a.to(device)",
        "for (x, y), _ in zip(loader, range(3)): x.cuda()",
        "batch = next(iter(loader)); batch.to(device)",
        "for x, y in loader: z = x.float().to(device, non_blocking=True)",
        "for x, y in loader: model(x.to(device)) + y",
        "x = [v.to(device) for v in loader]",
    ],
)
def test_moves_are_traced_to_the_loader(body: str) -> None:
    site = load(body)
    assert site.batches.kind is Kind.CPU
    assert site.moves, body
    assert all(move.target is not None for move in site.moves)


@pytest.mark.parametrize(
    "body",
    [
        "for x, y in loader: model(x)",
        "for x, y in dataset: x.to(device)",
        "for x, y in loader: model.to(device)",
        "for x, y in loader: x.to(torch.float32)",
        "torch.ones(4).to(device)",
    ],
)
def test_other_moves_are_none_of_its_batches(body: str) -> None:
    assert not load(body).moves


def test_moves_in_the_loop_know_the_loop() -> None:
    (move,) = load("for x, y in loader: x.to(device)").moves
    assert move.scope.loop is not None
    assert move.scope.step


@pytest.mark.parametrize(
    ("body", "escapes"),
    [
        ("return loader", True),
        ("return {'train': loader}", True),
        ("train(model, loader)", True),
        ("self_like = [loader]; train(self_like)", True),
        ("for x in loader: model(x)", False),
        ("len(loader)", False),
    ],
)
def test_loaders_that_leave(body: str, escapes: bool) -> None:
    assert load(body).escapes is escapes


def test_the_arguments_of_the_call() -> None:
    site = load("pass", "dataset, 4, num_workers=2, pin_memory=True")
    assert sorted(site.keywords) == ["num_workers", "pin_memory"]
    assert not site.open
    assert load("pass", "dataset, **options").open
    assert load("pass", "*options").open


def test_a_collate_function_of_the_file_makes_batches_of_its_own() -> None:
    more = "\n        def collate(samples):\n            return samples\n"
    assert load("pass", "dataset, collate_fn=collate", more).custom_batches
    assert not load("pass", "dataset, collate_fn=None").custom_batches
    assert not load("pass").custom_batches


def test_a_loader_that_a_function_is_given() -> None:
    code = """
        from torch.utils.data import DataLoader

        def epoch(batches, device):
            for x, y in batches:
                x = x.to(device)

        def main(dataset, device):
            loader = DataLoader(dataset)
            epoch(loader, device)
    """
    (site,) = sites(code, Load)
    assert len(site.moves) == 1
    assert site.moves[0].scope.loop is not None


def test_a_loader_in_self() -> None:
    code = """
        from torch.utils.data import DataLoader

        class Trainer:
            def __init__(self, dataset):
                self.loader = DataLoader(dataset)

            def fit(self, device):
                for x, y in self.loader:
                    x = x.to(device)
    """
    (site,) = sites(code, Load)
    assert len(site.moves) == 1


def test_two_loaders_keep_their_own_moves() -> None:
    code = """
        from torch.utils.data import DataLoader

        def main(one, two, device):
            train, test = DataLoader(one), DataLoader(two)
            for x in train:
                x.to(device)
            for x in test:
                x.cpu()
    """
    moves = [[move.spelled for move in site.moves] for site in sites(code, Load)]
    assert sorted(moves) == [["cpu"], ["to"]]


def test_a_batch_that_was_moved_is_there() -> None:
    code = """
        from torch.utils.data import DataLoader

        def main(dataset, device):
            for x, y in DataLoader(dataset):
                x = x.to(device)
                x = x.to(device)
    """
    first, second = sites(code, Transfer)
    assert first.target is not None
    assert first.value.device.same(first.target) is not True
    assert second.value.device.same(first.target) is True
