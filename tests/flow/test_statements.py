"""Statements and expressions beside branches and loops: how values are bound, kept in containers, and passed on."""

from __future__ import annotations

import pytest

from tests.flow.reading import assert_read, assert_runs, cases, claims, needs_torch

SCRIPTS = {
    # names
    "an alias of a tensor stays behind": """
        x = torch.ones(4)
        y = x
        x = x.cuda()
        x + y  # raises
    """,
    "an alias of a module goes with it": """
        model = nn.Linear(4, 4)
        alias = model
        model.cuda()
        alias(torch.ones(4, 4))  # raises
        alias(torch.ones(4, 4).cuda())
    """,
    "a module's move returns the module": """
        model = nn.Linear(4, 4)
        moved = model.cuda()
        model(torch.ones(4, 4).cuda())
        moved.cpu()
        model(torch.ones(4, 4))
    """,
    "a tensor's move returns another tensor": """
        x = torch.ones(4)
        x.cuda()
        x + torch.ones(4)
    """,
    "numbers from 0 on are no empty tensor": """
        kept = [torch.ones(2).cuda(), torch.ones(2).cuda()]
        for _ in range(3):
            fresh = torch.randint(0, 4, (2,)) * 2
            there = torch.ones(2).cuda()
            kept = [part + there for part in kept]  # raises
            kept[0] = fresh
    """,
    "a list under two names, made on one of two paths": """
        parts = [torch.ones(4), torch.ones(4)]
        if torch.get_num_threads() > 0:
            parts = [part.cuda() for part in parts]
        same = parts
        same[0] = torch.ones(4)
        parts[0] * torch.ones(4)
    """,
    "several targets": """
        x = y = torch.ones(4).cuda()
        x + y
        x + torch.ones(4)  # raises
        y + torch.ones(4)  # raises
    """,
    "unpacking": """
        x, y = torch.ones(4), torch.ones(4).cuda()
        x + torch.ones(4)
        y + torch.ones(4)  # raises
        x, y = y, x
        x + torch.ones(4)  # raises
        y + torch.ones(4)
    """,
    "nested unpacking": """
        (a, [b, c]), d = (torch.ones(4), [torch.ones(4).cuda(), torch.ones(4)]), 3
        a + c
        a + b  # raises
    """,
    "a starred target": """
        first, *rest = torch.ones(4), torch.ones(4).cuda(), torch.ones(4).cuda()
        first + torch.ones(4)
        rest[0] + torch.ones(4).cuda()
    """,
    "a walrus": """
        if (x := torch.ones(4).cuda()) is not None:
            x + torch.ones(4)  # raises
        y = (z := torch.ones(4)).cuda()
        y + z  # raises
        z + torch.ones(4)
    """,
    "deleted and made again": """
        x = torch.ones(4).cuda()
        del x
        x = torch.ones(4)
        x + torch.ones(4)
    """,
    "an annotation": """
        x: torch.Tensor = torch.ones(4).cuda()
        x + torch.ones(4)  # raises
    """,
    "augmented": """
        x = torch.ones(4).cuda()
        x += torch.ones(4)  # raises
        x *= 2
        x += torch.tensor(2.0)
        x += torch.ones(4).cuda()
    """,
    "augmented where it is": """
        x = torch.ones(4)
        x += torch.ones(4).cuda()  # raises
        x += torch.ones(4)
    """,
    # containers
    "a tuple": """
        pair = torch.ones(4), torch.ones(4).cuda()
        pair[0] + torch.ones(4)
        pair[1] + torch.ones(4)  # raises
        pair[-1] + torch.ones(4).cuda()
    """,
    "a dict": """
        batch = {"x": torch.ones(4), "y": torch.ones(4).cuda()}
        batch["x"] + torch.ones(4)
        batch["y"] + torch.ones(4)  # raises
        batch["x"] = batch["x"].cuda()
        batch["x"] + batch["y"]
    """,
    "a dict by keywords": """
        batch = dict(x=torch.ones(4), y=torch.ones(4).cuda())
        batch["x"] + batch["y"]  # raises
    """,
    "a dict moved by a comprehension": """
        batch = {"x": torch.ones(4), "y": torch.ones(4)}
        batch = {key: value.cuda() for key, value in batch.items()}
        batch["x"] + batch["y"]
        batch["x"] + torch.ones(4)  # raises
    """,
    "a list moved by a comprehension": """
        parts = [torch.ones(4), torch.ones(4)]
        parts = [part.cuda() for part in parts]
        parts[0] + parts[1]
        parts[0] + torch.ones(4)  # raises
        torch.stack(parts) + torch.ones(4)  # raises
    """,
    "a comprehension's names are its own": """
        x = torch.ones(4)
        moved = [x.cuda() for x in (torch.ones(4), torch.ones(4))]
        x + torch.ones(4)
    """,
    "a comprehension in a comprehension": """
        rows = [[torch.ones(4) for _ in range(2)] for _ in range(2)]
        rows[0][1] + torch.ones(4).cuda()  # raises
        rows[1][0] + torch.ones(4)
    """,
    "a generator expression": """
        x = torch.ones(4).cuda()
        for part in (x * n for n in range(3)):
            part + torch.ones(4)  # raises
    """,
    "a list of both": """
        torch.cat([torch.ones(4), torch.ones(4).cuda()])  # raises
        torch.cat((torch.ones(4), torch.ones(4)))
        torch.stack([torch.ones(4).cuda(), torch.ones(4).cuda()])
    """,
    "a list that is appended to": """
        parts = []
        parts.append(torch.ones(4))
        parts.append(torch.ones(4))
        torch.stack(parts) + torch.ones(4).cuda()  # raises
        torch.stack(parts) + torch.ones(4)
    """,
    "an item of a list is replaced": """
        parts = [torch.ones(4).cuda(), torch.ones(4)]
        parts[0] = torch.ones(4)
        parts[0] + torch.ones(4)
    """,
    "a list is turned around": """
        parts = [torch.ones(4).cuda(), torch.ones(4)]
        parts.reverse()
        parts[0] + torch.ones(4)
        parts[::-1][1] + torch.ones(4)
    """,
    # try, with
    "moved in a try": """
        x = torch.ones(4)
        try:
            x = x.cuda()
        except ValueError:
            pass
        x + torch.ones(4)  # raises
    """,
    "both moved in a try": """
        x, y = torch.ones(4), torch.ones(4)
        try:
            x = x.cuda()
            y = y.cuda()
        except ValueError:
            raise
        x + y
    """,
    "finally": """
        x = torch.ones(4)
        try:
            pass
        finally:
            x = x.cuda()
        x + torch.ones(4)  # raises
    """,
    "the else of a try": """
        x = torch.ones(4)
        try:
            pass
        except ValueError:
            x = x.cuda()
        else:
            x = x.cuda()
        x + torch.ones(4)  # raises
        x + torch.ones(4).cuda()
    """,
    "a fallback in a handler": """
        def f(device):
            try:
                x = torch.ones(4).to(device)
            except RuntimeError:
                x = torch.ones(4)
            x + torch.ones(4).to(x.device)
    """,
    "what a handler raises is not joined": """
        def f(device):
            x = torch.ones(4)
            try:
                x = x.to(device)
            except RuntimeError as error:
                raise ValueError from error
            x + torch.ones(4).to(device)
    """,
    "a device as context": """
        with torch.device("cuda"):
            x = torch.ones(4)
            model = nn.Linear(4, 4)
            y = torch.zeros(4, device="cpu")
        x + torch.ones(4)  # raises
        x + torch.ones(4).cuda()
        model(x)
        x + y  # raises
        y + torch.ones(4)
    """,
    "a context that is no device": """
        x = torch.ones(4).cuda()
        with torch.no_grad():
            y = torch.ones(4)
            x + y  # raises
        with torch.no_grad(), torch.autograd.set_detect_anomaly(False):
            x + x
    """,
    # functions as values
    "a lambda's argument is anything": """
        move = lambda x: x.cuda()
        move(torch.ones(4)) + torch.ones(4).cuda()
    """,
    "a conditional value": """
        def f(flag):
            x = torch.ones(4)
            y = x if flag else x.clone()
            y + torch.ones(4)
            y + torch.ones(4).cuda()  # raises
    """,
    "a chain of calls": """
        x = torch.ones(2, 2).view(4).cuda().float().clone().detach()
        x + torch.ones(4)  # raises
        x.cpu().view(4) + torch.ones(4)
    """,
    "an f-string": """
        x = torch.ones(4).cuda()
        text = f"{x + torch.ones(4)}"  # raises
    """,
    "inside other expressions": """
        x, y = torch.ones(4).cuda(), torch.ones(4)
        print([x + y])  # raises
        z = {"sum": (x * 2) + y}  # raises
        z = -(x + 1), ~(y > 0), not_here if False else 1
    """,
    "compared": """
        x, y = torch.ones(4).cuda(), torch.ones(4)
        x == y  # raises
        x > 0
        x is y
        x != None
    """,
    "matrix product": """
        x, y = torch.ones(4, 4).cuda(), torch.ones(4, 4)
        x @ y  # raises
        x @ y.cuda()
        y.T @ y
    """,
    "a raise in between": """
        def f(x: torch.Tensor):
            if x.shape[0] != 4:
                raise ValueError(torch.ones(4) + 1)
            return x + torch.ones(4)  # raises
    """,
    "global": """
        table = torch.ones(4)

        def f(x: torch.Tensor):
            x + table  # raises, unseen

        def g(x: torch.Tensor):
            x + table.to(x.device)
    """,
    "a global that others move": """
        table = torch.ones(4)

        def move(device):
            global table
            table = table.to(device)

        def use(x: torch.Tensor):
            move(x.device)
            x + table
    """,
    "sent by a generator": """
        def f(x: torch.Tensor):
            y = torch.ones(4)
            yield x + y  # raises
            yield from (x, y)
            x + y  # raises
    """,
    "deep attribute chains": """
        class Box:
            pass

        box = Box()
        box.inner = Box()
        box.inner.x = torch.ones(4).cuda()
        box.inner.x + torch.ones(4)  # raises
        box.inner.x = torch.ones(4)
        box.inner.x + torch.ones(4)
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


# What torch cannot run on the stand-in, or Python only knows at some version.


def test_await_and_async_for() -> None:
    code = """
        async def f(source):
            x = torch.ones(4).cuda()
            await source(x + torch.ones(4))
            async for _ in source:
                x + torch.ones(4)
            async with source:
                x - torch.ones(4)
    """
    assert claims(code) == {4, 6, 8}


def test_match_binds_names() -> None:
    code = """
        def f(value):
            x = torch.ones(4).cuda()
            match value:
                case [x, *rest]:
                    x + torch.ones(4)
                case {"x": x}:
                    x + torch.ones(4)
                case _:
                    x + torch.ones(4)
    """
    assert claims(code) == {10}
