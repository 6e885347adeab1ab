"""Branches: what holds on each side, what is joined after them, and which conditions hang together."""

from __future__ import annotations

import pytest

from devlint.device import AVAILABLE, IMPLIED_CPU, Kind
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, place

SCRIPTS = {
    "both moved under one condition": """
        def f(cuda):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if cuda:
                x = x.cuda()
            if cuda:
                model.cuda()
            model(x)
    """,
    "only one of them moved": """
        def f(cuda):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if cuda:
                model.cuda()
            model(x)  # raises
    """,
    "moved under opposite conditions": """
        def f(cuda):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if cuda:
                model.cuda()
            if not cuda:
                x = x.cuda()
            model(x)  # raises
    """,
    "moved in the else of the negation": """
        def f(cuda):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if not cuda:
                pass
            else:
                x = x.cuda()
            if cuda:
                model.cuda()
            model(x)
    """,
    "used only where the condition holds": """
        def f(cuda):
            x, y = torch.ones(4), torch.ones(4)
            if cuda:
                x = x.cuda()
            if not cuda:
                x + y
    """,
    "used where the condition fails": """
        def f(cuda):
            x, y = torch.ones(4), torch.ones(4)
            if not cuda:
                x = x.cuda()
            if cuda:
                return
            x + y  # raises
    """,
    "a condition kept in a variable": """
        def f():
            use = torch.cuda.is_available()
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if use:
                model.cuda()
            if torch.cuda.is_available():
                x = x.cuda()
            model(x)
    """,
    "a condition of another name is another condition": """
        def f(cuda, other=True):
            x, y = torch.ones(4), torch.ones(4)
            if cuda:
                x = x.cuda()
            if other:
                y = y.cuda()
            x + y  # raises, unseen
    """,
    "a flag that was assigned again is another condition": """
        def f(flag):
            x, y = torch.ones(4), torch.ones(4)
            if flag:
                x = x.cuda()
            flag = not flag
            if flag:
                y = y.cuda()
            x + y  # raises
    """,
    "device chosen by availability": """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(4, 4).to(device)
        model(torch.ones(2, 4))  # raises
        model(torch.ones(2, 4).to(device))
    """,
    "device chosen by if and else": """
        if torch.cuda.is_available():
            device = torch.device("cuda")
        else:
            device = torch.device("cpu")
        torch.ones(4, device=device) + torch.ones(4)  # raises
        torch.ones(4, device=device) + torch.ones(4).to(device)
    """,
    "device chosen by a default and an override": """
        device = "cpu"
        if torch.cuda.is_available():
            device = "cuda"
        torch.ones(4, device=device) + torch.ones(4)  # raises
        torch.ones(4, device=device) + torch.ones(4, device=device)
    """,
    "two devices chosen alike": """
        first = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        second = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.ones(4).to(first) + torch.ones(4).to(second)
    """,
    "moved where the device is chosen": """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model, x = nn.Linear(4, 4), torch.ones(4, 4)
        if torch.cuda.is_available():
            model.cuda()
        x = x.to(device)
        model(x)
    """,
    "early return where there is none": """
        def f():
            if not torch.cuda.is_available():
                return
            x = torch.ones(4).cuda()
            x + torch.ones(4)  # raises
    """,
    "returned before the move": """
        def f(flag):
            x, y = torch.ones(4), torch.ones(4)
            if flag:
                return x + y
            x = x.cuda()
            return x + y  # raises
    """,
    "raised on the other path": """
        def f(flag):
            x = torch.ones(4)
            y = torch.ones(4)
            if flag:
                x = x.cuda()
                y = y.cuda()
            elif flag is None:
                raise ValueError
            x + y
    """,
    "a conditional expression": """
        def f(cuda):
            x = torch.ones(4).cuda() if cuda else torch.ones(4)
            y = torch.ones(4)
            y = y.cuda() if cuda else y
            x + y
            x + torch.ones(4)  # raises
    """,
    "an expression's arms know the condition": """
        def f(cuda):
            x, y = torch.ones(4), torch.ones(4)
            if cuda:
                x = x.cuda()
            z = y if cuda else x + y
            z = x + y.cuda() if cuda else x
    """,
    "both and": """
        def f(cuda, flag):
            x, y = torch.ones(4), torch.ones(4)
            if cuda and flag:
                x = x.cuda()
            if cuda and flag:
                y = y.cuda()
            x + y
    """,
    "what an and implies": """
        def f(cuda, flag):
            x, y = torch.ones(4), torch.ones(4)
            if cuda:
                x = x.cuda()
            if cuda and flag:
                x + y.cuda()
                x + y  # raises
    """,
    "an and with a part that fails": """
        def f(flag, gpu=True):
            x, y = torch.ones(4), torch.ones(4)
            if flag and gpu:
                x = x.cuda()
            if not flag:
                x + y
    """,
    "an or with a part that holds": """
        def f(flag, gpu=True):
            x, y = torch.ones(4), torch.ones(4)
            if flag:
                if flag or gpu:
                    pass
                else:
                    x = x.cuda()
            x + y
    """,
    "a 0-dim tensor moved on one side": """
        def f(flag, device):
            x, scale = torch.ones(4).cuda(), torch.tensor(2.0)
            if not flag:
                x = x.to(device)
                scale = scale.cuda()
            x * scale
    """,
    "elif chains": """
        def f(n):
            x, y = torch.ones(4), torch.ones(4)
            if n == 3:
                x, y = x.cuda(), y.cuda()
            elif n == 2:
                x = x.cpu()
            else:
                y = y.cpu()
            x + y
    """,
    "match on the device's type": """
        def f(device):
            x, y = torch.ones(4), torch.ones(4)
            match device.type:
                case "cuda":
                    x, y = x.cuda(), y.cuda()
                case _:
                    x, y = x.cpu(), y.cpu()
            x + y
    """,
    "one case of a match": """
        def f(n):
            x, y = torch.ones(4), torch.ones(4)
            match n:
                case 3:
                    x = x.cuda()
                case _:
                    pass
            x + y  # raises
    """,
    "never run": """
        from typing import TYPE_CHECKING

        x = torch.ones(4)
        if TYPE_CHECKING:
            x = x.cuda()
        if False:
            x = x.cuda()
        x + torch.ones(4)
    """,
    "always run": """
        x = torch.ones(4)
        if True:
            x = x.cuda()
        x + torch.ones(4)  # raises
    """,
    "unreachable": """
        def f(x: torch.Tensor):
            return x
            x + torch.ones(4)
    """,
    "isinstance of a known tensor": """
        def f(x: torch.Tensor, device):
            y = torch.ones(4).to(device)
            if not isinstance(y, torch.Tensor):
                y = torch.ones(4)
            x.to(device) + y
    """,
    "isinstance of a class of tensors": """
        def f(x: torch.Tensor, device):
            y = torch.ones(4).to(device)
            if isinstance(y, torch.LongTensor) or isinstance(y, torch.IntTensor):
                return x
            return torch.ones(4) + y  # raises
    """,
    "moved unless it is there": """
        def f(device):
            x = torch.ones(4)
            if x.device != device:
                x = x.to(device)
            x + torch.ones(4, device=device)
    """,
    "a default for a missing argument": """
        def f(x: torch.Tensor, mask=None):
            if mask is None:
                mask = torch.ones(4, device=x.device)
            return x * mask
    """,
    "a default for a missing argument on the CPU": """
        def f(x: torch.Tensor, mask=None):
            if mask is None:
                mask = torch.ones(4)
            return x * mask  # raises
    """,
    "a default for a missing device": """
        def f(x: torch.Tensor, where=None):
            if where is None:
                where = x.device
            return x * torch.ones(4, device=where)
    """,
    "a condition inside a condition": """
        def f(cuda, flag):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if flag:
                if cuda:
                    model.cuda()
                    x = x.cuda()
            else:
                if cuda:
                    x = x.cuda()
                    model.cuda()
            model(x)
    """,
    "the flag of an object": """
        def f(args):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if args.gpu:
                model.cuda()
            if args.gpu:
                x = x.cuda()
            model(x)
            if args.gpu:
                model(torch.ones(4, 4))  # raises
    """,
    "the negative flag of an object": """
        def f(args):
            model, x = nn.Linear(4, 4), torch.ones(4, 4)
            if not args.no_gpu:
                model.cuda()
            if not args.no_gpu:
                x = x.cuda()
            model(x)
    """,
    "a flag in self": """
        class Trainer:
            def __init__(self):
                self.cuda = torch.cuda.is_available()

            def step(self):
                model, x = nn.Linear(4, 4), torch.ones(4, 4)
                if self.cuda:
                    model.cuda()
                if self.cuda:
                    x = x.cuda()
                model(x)

        def run():
            Trainer().step()
    """,
}

GAPS: dict[str, str] = {}


@pytest.mark.parametrize("code", cases(SCRIPTS, GAPS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


def test_a_join_keeps_both_sides_and_their_condition() -> None:
    device = place("""
        x = torch.ones(4)
        if torch.cuda.is_available():
            x = x.cuda()
        see(x)
    """)
    assert device.guard == AVAILABLE
    assert device.then is not None
    assert (device.then.kind, device.then.type) == (Kind.ACCELERATOR, "cuda")
    assert device.other is not None
    assert device.other.kind is Kind.CPU


@pytest.mark.parametrize("test", ["flag", "not flag", "flag is None", "n > 3", "n == 3", "x.is_cuda"])
def test_each_side_of_a_branch_knows_its_condition(test: str) -> None:
    code = f"""
        def f(x, flag, n):
            y = torch.ones(4)
            if {test}:
                y = y.cuda()
            if {test}:
                see(y)
    """
    assert place(code, "y").kind is Kind.ACCELERATOR


def test_a_known_condition_leaves_one_side() -> None:
    assert (
        place("""
        x = torch.ones(4)
        if False:
            x = x.cuda()
        see(x)
    """)
        == IMPLIED_CPU
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("if x.is_cuda:\n        x = x.cpu()", Kind.CPU),
        ("if not x.is_cuda:\n        x = x.cuda()", Kind.ACCELERATOR),
        ("if not x.is_cuda:\n        pass\n    else:\n        x = x.cpu()", Kind.CPU),
        ("if x.device.type != 'cpu':\n        x = x.cpu()", Kind.CPU),
        ("if x.device.type == 'mps':\n        x = x.cpu()", Kind.CHOICE),
        ("x = x.cpu() if x.is_cuda else x", Kind.CPU),
        ("x = x if x.is_cuda else x.cuda()", Kind.ACCELERATOR),
        # the same device, and another tensor
        ("if x.is_cuda:\n        x = x.half()", Kind.SYMBOL),
        ("if x.is_cuda:\n        y = y.cpu()", Kind.SYMBOL),
    ],
)
def test_the_side_that_leaves_a_tensor_alone_found_it_where_it_was_to_be(code: str, kind: Kind) -> None:
    assert place(f"\ndef f(x: torch.Tensor, y: torch.Tensor):\n    {code}\n    see(x)\n", "x").kind is kind
