"""What an audit notes of the models."""

from __future__ import annotations

import torch
from torch import nn

from devlint.auditor.modules.forward import ForwardCheck
from tests.auditor.watching import seen, watching


def test_the_largest_model_comes_first_and_losses_do_not_count() -> None:
    with watching(ForwardCheck) as session:
        small, large, loss = nn.Linear(2, 2), nn.Sequential(nn.Linear(4, 4)), nn.CrossEntropyLoss(torch.ones(2))
        loss(small(torch.ones(1, 2)), torch.tensor([1]))
        large(torch.ones(1, 4))
        models = seen(session).models
    assert models.outermost == ("Sequential", "Linear")
    assert (models.devices, models.dtypes) == (("cpu",), ("float32",))
    assert models.parameters == (4 * 4 + 4) + (2 * 2 + 2)


def test_models_of_a_class_are_counted_together_and_what_they_share_once() -> None:
    with watching(ForwardCheck) as session:
        body = nn.Linear(4, 4)
        actor, critic = nn.Sequential(body, nn.Linear(4, 2)), nn.Sequential(body, nn.Linear(4, 1))
        for _ in range(3):
            for model in (actor, critic):
                model(torch.ones(1, 4))
        for _ in range(3):
            nn.Linear(4, 4)(torch.ones(1, 4))  # one after the other
        models = seen(session).models
    assert models.outermost == ("Sequential", "Linear")
    assert models.parameters == (4 * 4 + 4) + (4 * 2 + 2) + (4 + 1) + (4 * 4 + 4)


def test_a_wrapper_is_seen_through_and_tied_weights_count_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    with watching(ForwardCheck) as session:
        nn.DataParallel(Tied())(torch.tensor([1]))
        models = seen(session).models
    assert models.outermost == ("Tied",)
    assert models.parameters == 40


def test_autocast_is_seen_where_a_layer_runs_under_it() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(16, 10_001)

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.head(x)

    with watching(ForwardCheck) as session:
        Net()(torch.ones(1, 16))
        models = seen(session).models
    assert models.autocast == "bfloat16"
    # 10,001 is 1 more than a multiple of 8
    assert models.unaligned == ("head (Linear 16 -> 10,001, bfloat16)",)


def test_full_precision_has_no_alignment() -> None:
    with watching(ForwardCheck) as session:
        nn.Linear(16, 10_001)(torch.ones(1, 16))
        models = seen(session).models
    assert (models.autocast, models.unaligned) == ("", ())


def test_unaligned_layers_of_low_precision() -> None:
    with watching(ForwardCheck) as session:
        nn.Sequential(
            nn.Conv2d(3, 16, 1),  # the three channels of an image
            nn.Conv2d(16, 20, 1),
            nn.Conv2d(20, 20, 1, groups=20),  # no matmul
            nn.Flatten(),
            nn.Linear(20, 100),
            nn.Linear(100, 1),
        ).to(torch.bfloat16)(torch.ones(1, 3, 1, 1, dtype=torch.bfloat16))
        found = seen(session).models.unaligned
    assert found == (
        "4 (Linear 20 -> 100, bfloat16)",
        "1 (Conv2d 16 -> 20, bfloat16)",
        "5 (Linear 100 -> 1, bfloat16)",
    )


def test_models_placed_by_accelerate() -> None:
    with watching(ForwardCheck) as session:
        net = nn.Linear(2, 2)
        net.hf_device_map = {"": "cpu"}
        net(torch.ones(1, 2))
        assert seen(session).models.managed == "accelerate"


class Halves(nn.Module):
    """A model whose halves are called one by one while it is built, and later."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 2))

    def forward(self, x):
        return self.second(self.first(x))


def test_a_part_that_is_called_by_itself_is_no_model_besides_the_whole() -> None:
    with watching(ForwardCheck) as session:
        whole, other = Halves(), nn.Linear(4, 1)
        whole.forward(torch.ones(1, 4))
        assert seen(session).models.outermost == ("Halves",)
        for model in (whole, whole.second, other, whole.first):
            model(torch.ones(1, 4))
        models = seen(session).models
    assert models.outermost == ("Halves", "Linear")
    assert models.parameters == (4 * 4 + 4) + (4 * 2 + 2) + (4 + 1)


def test_a_part_says_where_the_whole_is_by_now() -> None:
    with watching(ForwardCheck) as session:
        whole = Halves()
        whole(torch.ones(1, 4))
        whole.to("meta")
        whole.first(torch.ones(1, 4, device="meta"))
        models = seen(session).models
    assert (models.outermost, models.devices) == (("Halves",), ("meta",))


def test_a_model_whose_method_calls_its_parts_is_the_model() -> None:
    """As that of a framework, whose `training_step` calls a network and not the model itself."""

    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 4))

        def training_step(self, x):
            return self.net(x)

        def judge(self, other, x):
            return other(x)

    with watching(ForwardCheck) as session:
        mine = Mine()
        mine.training_step(torch.ones(1, 4))
        assert seen(session).models.outermost == ("Mine",)
        assert mine.judge(nn.Linear(4, 2), torch.ones(1, 4)).shape == (1, 2)
        models = seen(session).models
    assert models.outermost == ("Mine", "Linear")
    assert models.parameters == (16 + 4) + (8 + 2)
