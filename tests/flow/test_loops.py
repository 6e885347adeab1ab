"""Loops: what the first round does to the second, and that loops inside each other cost no more than others."""

from __future__ import annotations

import ast

import pytest

from devlint.device import Kind
from devlint.flow import analyze
from devlint.sites.placement import Operation
from devlint.sites.transfers import Transfer
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, place, script, sites
from tests.growth import Work, growth

SCRIPTS = {
    "moved at the end of a round": """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            x + y  # raises
            x = x.cuda()
    """,
    "both moved at the end of a round": """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            x + y
            x, y = x.cuda(), y.cuda()
    """,
    "moved and back": """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            x + y
            x = x.cuda()
            x = x.cpu()
        x + y
    """,
    "moved on the way out": """
        def f(flag):
            x, y = torch.ones(4), torch.ones(4)
            for _ in range(3):
                if flag:
                    x = x.cuda()
                    break
                x + y
            x + y  # raises
    """,
    "moved before continuing": """
        def f(flag):
            x, y = torch.ones(4), torch.ones(4)
            for _ in range(3):
                x + y  # raises
                if flag:
                    x = x.cuda()
                    continue
                x = x.cpu()
    """,
    "after the loop": """
        model, x = nn.Linear(4, 4), torch.ones(4, 4)
        for _ in range(3):
            model.cuda()
        model(x)  # raises
    """,
    "in a while": """
        x, y, n = torch.ones(4), torch.ones(4), 0
        while n < 3:
            x + y  # raises
            x = x.cuda()
            n += 1
    """,
    "rounds that are skipped": """
        def f(flag, device):
            model, x = nn.Linear(4, 4).to(device), torch.ones(4, 4)
            for _ in range(3):
                if flag:
                    continue
                x = x.to(device)
            if not flag:
                model(x)
    """,
    "an endless while": """
        def f(n):
            x, y = torch.ones(4), torch.ones(4)
            while True:
                x = x.cuda()
                n -= 1
                if not n:
                    break
            x + y  # raises
    """,
    "in the else of a loop": """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            pass
        else:
            x = x.cuda()
        x + y  # raises
    """,
    "an inner loop": """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            for _ in range(3):
                x + y  # raises
            x = x.cuda()
    """,
    "two loops later": """
        a, b, c = torch.ones(4), torch.ones(4), torch.ones(4)
        for _ in range(4):
            a + torch.ones(4)  # raises
            a = b
            b = c
            c = c.cuda()
    """,
    "an accumulator": """
        def f(x: torch.Tensor):
            total = torch.zeros(4)
            for part in x:
                total = total + part  # raises
            return total
    """,
    "a 0-dim accumulator": """
        def f(x: torch.Tensor):
            total = torch.tensor(0.0)
            for part in x:
                total = total + part.sum()
            return total
    """,
    "a Python accumulator": """
        def f(x: torch.Tensor):
            total = 0
            for part in x:
                total = total + part.sum()
                total += part.sum()
            return total + torch.ones(4)  # raises
    """,
    "a list that grows": """
        def f(x: torch.Tensor):
            parts = []
            for part in x:
                parts.append(part * 2)
            return torch.stack(parts) + x
    """,
    "a list that grows on the CPU": """
        def f(x: torch.Tensor):
            parts = []
            for part in x:
                parts.append(part.cpu())
            return torch.stack(parts) + x  # raises, unseen
    """,
    "a list that starts elsewhere": """
        def f(x: torch.Tensor):
            parts = [torch.zeros(4)]
            for part in x:
                parts.append(part)
            return torch.stack(parts)  # raises
    """,
    "a list of placed tensors": """
        def f(x: torch.Tensor):
            parts = [torch.zeros(4, device=x.device)]
            for part in x:
                parts.append(part)
            return torch.stack(parts)
    """,
    "a round's own tensor": """
        def f(x: torch.Tensor):
            for _ in range(3):
                y = torch.ones(4)
                y = y.to(x.device)
                x = x + y
            return x
    """,
    "the loop variable is another each time": """
        def f(device):
            for module in [nn.Linear(4, 4), nn.Linear(4, 4)]:
                module.to(device)
                module(torch.ones(4, 4).to(device))
    """,
    "enumerated rows": """
        def f(x: torch.Tensor):
            for position, part in enumerate(x):
                part + torch.ones(4)  # raises
                part + position
    """,
    "zipped rows": """
        def f(x: torch.Tensor, device):
            y = torch.ones(4, 4).to(x.device)
            for one, two in zip(x, y):
                one + two
            for one, two in zip(x, torch.ones(4, 4)):
                one + two  # raises
    """,
    "a recurrent state": """
        def f(x: torch.Tensor):
            cell = nn.RNNCell(4, 4).to(x.device)
            state = torch.zeros(4, 4)
            for _ in range(3):
                state = cell(x, state)  # raises
            return state
    """,
    "a recurrent state on the device": """
        def f(x: torch.Tensor):
            cell = nn.RNNCell(4, 4).to(x.device)
            state = torch.zeros(4, 4, device=x.device)
            for _ in range(3):
                state = cell(x, state)
            return state
    """,
    "a state made in the first round": """
        def f(x: torch.Tensor):
            state = None
            for part in x:
                if state is None:
                    state = part
                else:
                    state = state + part
            return state
    """,
}


@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_read(code: str) -> None:
    assert_read(code)


@needs_torch
@pytest.mark.parametrize("code", cases(SCRIPTS))
def test_run(code: str) -> None:
    assert_runs(code)


def test_a_place_in_a_loop_speaks_once() -> None:
    code = """
        x, y = torch.ones(4), torch.ones(4)
        for _ in range(3):
            for _ in range(3):
                x.cuda() + y
    """
    assert len(sites(code, Operation)) == 1
    assert len(sites(code, Transfer)) == 1


def test_later_rounds_are_seen_where_the_loop_begins() -> None:
    device = place("""
        x = torch.ones(4)
        for _ in range(3):
            see(x)
            x = x.cuda()
    """)
    assert {leaf.kind for leaf in device.leaves()} == {Kind.CPU, Kind.ACCELERATOR}


def test_a_loop_is_read_as_run() -> None:
    """That a loop runs no round is possible and never meant: what its rounds do holds after it."""
    device = place("""
        def f(n):
            x = torch.ones(4)
            for _ in range(n):
                x = x.cuda()
            see(x)
    """)
    assert device.kind is Kind.ACCELERATOR


def test_an_operation_on_known_places_is_claimed_inside_as_outside() -> None:
    body = "x = torch.ones(4).cuda()\n{}x + torch.ones(4)\n"
    for loop in ("", "for _ in range(3): ", "while x.shape: "):
        assert sites("\n" + body.format(loop), Operation), loop


@pytest.mark.parametrize("head", ["for _ in range(3):", "while n:", "for _ in data:"])
@pytest.mark.parametrize("branch", [False, True])
def test_loops_inside_each_other_take_no_exponential_time(head: str, branch: bool) -> None:
    def analysis(loops: int) -> Work:
        lines = ["", "def f(n, data, flag, device):", "    x, y = torch.ones(4), torch.ones(4)"]
        for depth in range(1, loops + 1):
            lines.append("    " * depth + head)
            if branch:
                lines.append("    " * (depth + 1) + f"if flag == {depth}:")
                lines.append("    " * (depth + 2) + "x = x.to(device)")
        lines.append("    " * (loops + 1) + "x + y")
        text = script("\n".join(lines))
        tree = ast.parse(text)
        return lambda: list(analyze(tree, text))

    # twice as much at each loop would be a power of 4
    assert growth(analysis, 4, 8) < 2
