"""What a move asks for: a device, a dtype, or both; whether anybody takes the result."""

from __future__ import annotations

import pytest

from devlint.device import Kind
from devlint.sites.transfers import Transfer
from tests.flow.reading import sites


@pytest.mark.parametrize(
    ("call", "kind", "plain"),
    [
        ("x.to('cuda')", Kind.ACCELERATOR, True),
        ("x.to(device='cuda')", Kind.ACCELERATOR, True),
        ("x.to('cuda', torch.float16)", Kind.ACCELERATOR, False),
        ("x.to('cuda', copy=True)", Kind.ACCELERATOR, False),
        ("x.to('cuda', non_blocking=True)", Kind.ACCELERATOR, True),
        ("x.to('cuda', memory_format=torch.channels_last)", Kind.ACCELERATOR, False),
        ("x.to(y)", Kind.ACCELERATOR, False),
        ("x.cuda()", Kind.ACCELERATOR, True),
        ("x.cpu()", Kind.CPU, True),
        ("x.to(torch.float16)", None, False),
        ("x.to(dtype=torch.float16)", None, False),
        ("x.to(None)", None, False),
        ("x.to(*where)", Kind.UNKNOWN, False),
        ("x.to(**where)", Kind.UNKNOWN, False),
    ],
)
def test_what_a_move_asks_for(call: str, kind: Kind | None, plain: bool) -> None:
    (site,) = sites(
        f"""
        def f(where):
            x, y = torch.ones(4), torch.ones(4, device="cuda")
            {call}
        """,
        Transfer,
    )
    assert (site.target and site.target.kind) is kind
    if kind is not None:
        assert site.plain is plain
    assert site.discarded
    assert site.kind == "tensor"
    assert site.non_blocking is ("non_blocking" in call)


def test_a_move_that_is_used_is_not_discarded() -> None:
    code = """
        def f(x: torch.Tensor, device):
            x = x.to(device)
            print(x.to(device))
            y = [x.to(device)]
            return x.to(device)
    """
    assert [site.discarded for site in sites(code, Transfer)] == [False] * 4


def test_a_stranger_may_be_anything() -> None:
    code = """
        def f(thing, device):
            thing.to(device)
    """
    (site,) = sites(code, Transfer)
    assert site.kind == ""
    assert not site.value.certain
