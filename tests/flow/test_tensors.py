"""Tensors: where they are made, how they move, what may meet what, and what is known of their dimensions."""

from __future__ import annotations

import pytest

from devlint.device import CPU, IMPLIED_CPU, Device, accelerator
from devlint.sites.placement import Operation
from tests.flow.reading import assert_read, assert_runs, cases, needs_torch, place, seen, sites

SCRIPTS = {
    # where they are made
    "factories": """
        def f(device):
            d = torch.ones(4, device=device)
            d + torch.zeros(4)  # raises
            d + torch.rand(4)  # raises
            d + torch.full((4,), 2.0)  # raises
            d + torch.arange(4)  # raises
            d + torch.linspace(0, 1, 4)  # raises
            d + torch.tensor([1.0, 2.0, 3.0, 4.0])  # raises
            d + torch.eye(4)  # raises
            d + torch.hann_window(4)  # raises
            d + torch.randint(0, 3, (4,))  # raises
            d + torch.empty(size=(4,))  # raises
    """,
    "factories on the device": """
        def f(device):
            d = torch.ones(4, device=device)
            d + torch.zeros(4, device=device)
            d + torch.rand(4, device=d.device)
            d + torch.full((4,), 2.0, device=device)
            d + torch.arange(4, device=device)
            d + torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
            d + torch.eye(4, device=device)
            d + torch.randint(0, 3, (4,), device=device)
            d + torch.zeros(4, dtype=torch.float32, device=device)
    """,
    "no device is the default device": """
        def f(device):
            torch.ones(4, device=None) + torch.ones(4)
            torch.ones(4, device=device) + torch.ones(4, device=None)  # raises
    """,
    "like another": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + torch.zeros_like(d) + torch.rand_like(d)
            d + torch.zeros_like(c)  # raises
            d + torch.zeros_like(c, device=device)
            c + torch.zeros_like(d)  # raises
            c + torch.zeros_like(d, device="cpu")
            d + d.new_zeros(4) + d.new_tensor([1.0, 2.0, 3.0, 4.0]) + d.new_full((4,), 1.0)
            c + c.new_ones(4)
            d + c.new_ones(4, device=device)
    """,
    "new beside another": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + c.new_zeros(4)  # raises
            c + d.new_zeros(4)  # raises
    """,
    "made of another": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + torch.as_tensor(d)
            d + torch.as_tensor(c)  # raises
            d + torch.as_tensor([1.0, 2.0, 3.0, 4.0])  # raises
            d + torch.as_tensor([1.0, 2.0, 3.0, 4.0]).to(d)
            d + torch.as_tensor(c, device=device)
    """,
    "triangles": """
        def f(device):
            d = torch.ones(4, 4, device=device)
            torch.triu(d) + d
            d.masked_fill(torch.triu(torch.ones(4, 4)).bool(), 0.0)  # raises
            d.masked_fill(torch.triu(torch.ones(4, 4, device=device)).bool(), 0.0)
    """,
    # how they move
    "moves": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + c.to(device)
            d + c.to(device=device)
            d + c.to(d)
            d + c.to(d.device)
            d + c.to(device, torch.float32)
            d + c.to(device, non_blocking=True)
            d + c.to(device, copy=True)
            d + c.type_as(d)
            c + d.cpu()
            c + d.to("cpu")
            c + d.to(c)
            c + d.to(torch.device("cpu"))
    """,
    "moves of the type only": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + c.to(torch.float64)  # raises
            d + c.to(dtype=torch.float64)  # raises
            d + c.to(d.dtype)  # raises
            d + c.float()  # raises
            d + c.to(None)  # raises
            d.to(torch.float64) + d
            d.double().half() + c  # raises
    """,
    "moves by keyword and type": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d + c.to(dtype=torch.float64, device=device)
            c + d.to(dtype=torch.float64, device=device)  # raises
            c + d.to(dtype=torch.float64, device="cpu")
    """,
    "cuda": """
        d = torch.ones(4).cuda()
        d + torch.ones(4)  # raises
        d + torch.ones(4).cuda()
        d + torch.ones(4).to("cuda")
        d + torch.ones(4, device="cuda")
        d + torch.ones(4, device=torch.device("cuda"))
        d + torch.ones(4).cuda(non_blocking=True)
        d + torch.ones(4).cuda(0)
        d + torch.ones(4).to("cuda:0")
    """,
    "there and back": """
        def f(device):
            torch.ones(4).to(device).cpu() + torch.ones(4)
            torch.ones(4).to(device).cpu().to(device) + torch.ones(4)  # raises
            torch.ones(4).to(device).detach().cpu().clone() + torch.ones(4)
    """,
    "two symbols may be one": """
        def f(x: torch.Tensor, y: torch.Tensor, device):
            x.to(device) + y
            torch.ones(4).to(device) + x
    """,
    "put on the CPU on purpose": """
        def f(x: torch.Tensor):
            kept = x.view(16).cpu()
            x.view(16) + kept  # raises, unseen

        def g(x: torch.Tensor):
            made = torch.ones(4)
            x + made  # raises
    """,
    # 0-dim
    "a 0-dim tensor on the CPU meets everything": """
        def f(device):
            d = torch.ones(4, device=device)
            d * torch.tensor(2.0)
            torch.tensor(2.0) * d
            d + torch.ones(())
            d + torch.zeros([])
            d * torch.ones(4).sum()
            d * torch.ones(4).mean()
            d + torch.ones(4).max()
            d + torch.ones(4)[0]
            d.maximum(torch.tensor(0.0))
            torch.where(d > 0, d, torch.tensor(0.0))
            d += torch.tensor(2.0)
    """,
    "what is reckoned in a loop has no value": """
        def f(device):
            d, n = torch.ones(4, device=device), 1
            for _ in range(9):
                n = n + 1
                d = d * torch.full((n,), 2.0)[0]
            return d + torch.full((2 * 2,), 1.0)  # raises
    """,
    "one element is not 0-dim": """
        def f(device):
            d = torch.ones(4, device=device)
            d * torch.tensor([2.0])  # raises
            d * torch.ones(1)  # raises
            d * torch.zeros(4, 4)[0]  # raises
            d * torch.ones(4)[0:1]  # raises
            d * torch.ones(4, 4).sum(dim=1, keepdim=True)  # raises
            d * torch.tensor(2.0).unsqueeze(0)  # raises
            d * torch.tensor(2.0).view(1)  # raises
    """,
    "the exception is one way": """
        def f(device):
            s, c = torch.tensor(2.0, device=device), torch.ones(4)
            c * s  # raises
            c += s  # raises
            s * 2 + torch.tensor(1.0)
    """,
    "numbers are not tensors": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            c * d.shape[0] + c.numel() * d.dim()
            c * len(d)
            c + d.size(0)
            d * 2 + 1
            d ** 2 - c.shape[0]
    """,
    # indexing
    "indexes": """
        def f(index: torch.Tensor, device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d[torch.arange(4)]
            d[torch.arange(4)] + d
            d[torch.arange(4)] + c  # raises
            c[index.to(device)]  # raises
            c[torch.arange(4, device=device)]  # raises
            c[index.cpu()]
            d[index.to(device)]
            c[torch.arange(4)]
            c[0], d[0], c[1:], d[..., None]
    """,
    "a slice has dimensions": """
        def f(device):
            d, c = torch.ones((), device=device), torch.ones(4, 4, 4)
            d + c[1, 2, 3]
            d + c[0, 1:, 0]  # raises
            for i in range(2):
                d + c[i, 1:]  # raises
                d + c[i, i, i]
    """,
    "slices keep the device": """
        def f(device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            d[0] + c[0]  # raises
            d[1:] + c[1:]  # raises
            d[:, 0] + d[0, :]
            d[0, 0] + c  # raises
            d.T + d[None][0]
            for row in d:
                row + c[0]  # raises
    """,
    "assignment to a slice copies": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d[0:2] = c[0:2]
            c[0:2] = d[0:2]
            d[0] = torch.tensor(1.0)
            d[:] = c
            d[...] = c
            d.copy_(c)
            c.copy_(d)
    """,
    "assignment by an index does not": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d[torch.tensor([0, 1])] = c[0:2]  # raises
            d[torch.tensor([0, 1])] = d[0:2]
            d[torch.tensor([0, 1])] = 1.0
            d[torch.tensor([0, 1])] = torch.tensor(1.0)
            c[torch.arange(2, device=device)] = c[0:2]
            c[torch.arange(2, device=device)] = d[0:2]  # raises
            c[torch.arange(2, device=device)] += 1.0  # raises
            c.index_put_((torch.arange(2, device=device),), torch.tensor(1.0))
            torch.index_put(d, (torch.arange(2),), torch.tensor(1.0, device=device))
            d.index_put_((torch.arange(2),), c[0:2])  # raises
    """,
    "augmented assignment to a part does not": """
        def f(device):
            d, c = torch.ones(4, device=device), torch.ones(4)
            d[0:2] += c[0:2]  # raises
            d[0:2] += d[0:2]
            d[0:2] += 1
    """,
    # what meets
    "functions of several tensors": """
        def f(device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            torch.add(d, c)  # raises
            torch.add(input=d, other=c)  # raises
            torch.mm(d, c)  # raises
            torch.cat([d, c])  # raises
            torch.stack((d, d, c))  # raises
            torch.where(d > 0, d, c)  # raises
            torch.where(c > 0, d, d)  # raises
            torch.einsum("ij,jk->ik", d, c)  # raises
            torch.maximum(d, c)  # raises
            F.linear(d, c)  # raises
            torch.cat([d, c.to(device)])
            torch.mm(d, d) + torch.mm(d, torch.ones(4, 4, device=device))
    """,
    "methods of several tensors": """
        def f(device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            d.add(c)  # raises
            d.mul_(c)  # raises
            c.mm(d)  # raises
            d.gather(1, torch.zeros(4, 4).long())  # raises
            d.scatter_(0, torch.zeros(4, 4).long(), d)  # raises
            d.masked_fill(c > 0, 0.0)  # raises
            d.expand_as(c)
            d.view_as(c)
            d.type_as(c) + c
            d.add(d).mul_(d)
            d.lerp(d, 0.5)
    """,
    "what never meets": """
        def f(device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            (d, c)
            [d, c]
            d.reshape(c.shape)
            d.view(c.size(0), -1)
            d.expand_as(c) + d
            d.dtype == c.dtype
            d.shape == c.shape
            torch.zeros(c.shape, device=device) + d
    """,
    "the result lives with the operands": """
        def f(device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            torch.mm(d, d) + c  # raises
            d.mean(0) + c  # raises
            torch.cat([d, d]).chunk(2)[0] + c  # raises
            d.topk(2)[0] + c[:, :2]  # raises
            d.max(dim=1).values + c  # raises
            F.relu(d) + c  # raises
            torch.sigmoid(d).exp().log() + c  # raises
            (d > 0) & (c > 0)  # raises
            d.split(2)[0] + c[:2]  # raises
            torch.linalg.norm(d, dim=1) + c  # raises
    """,
    "losses": """
        def f(index: torch.Tensor, device):
            d, c = torch.ones(4, 4, device=device), torch.ones(4, 4)
            F.mse_loss(d, c)  # raises
            F.cross_entropy(d, index.cpu())  # raises, unseen
            F.cross_entropy(d, torch.zeros(4, dtype=torch.long))  # raises
            F.cross_entropy(d, index.to(device))
            F.cross_entropy(d, index.to(device), weight=torch.ones(4))  # raises
            F.cross_entropy(d, index.to(device), torch.ones(4, device=device))
            F.mse_loss(d, d) + F.mse_loss(c, c)
    """,
    "embedding": """
        def f(index: torch.Tensor, device):
            table = torch.ones(9, 4, device=device)
            F.embedding(index.to(device), table)
            F.embedding(torch.zeros(4, dtype=torch.long), table)  # raises
            F.one_hot(torch.zeros(4, dtype=torch.long), 4) + table[:4]  # raises
    """,
    "gradients and data": """
        def f(device):
            d = torch.ones(4, device=device, requires_grad=True)
            d.data + torch.ones(4)  # raises
            d.detach() + torch.ones(4)  # raises
            d.detach().cpu() + torch.ones(4)
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


@pytest.mark.parametrize(
    ("expression", "device"),
    [
        ("torch.ones(4)", IMPLIED_CPU),
        ("torch.ones(4, device='cpu')", CPU),
        ("torch.ones(4, device='cuda')", accelerator("cuda")),
        ("torch.ones(4, device='cuda:1')", accelerator("cuda", 1)),
        ("torch.ones(4, device=1)", accelerator("cuda", 1)),
        ("torch.ones(4, device=torch.device('cuda', 1))", accelerator("cuda", 1)),
        ("torch.ones(4, device=torch.device('mps'))", accelerator("mps")),
        ("torch.ones(4).cuda(1)", accelerator("cuda", 1)),
        ("torch.ones(4).to(1)", accelerator("cuda", 1)),
        ("torch.ones(4).to('xpu')", accelerator("xpu")),
        ("torch.ones(4).xpu()", accelerator("xpu")),
        ("torch.from_numpy(array)", IMPLIED_CPU),
        ("torch.frombuffer(array, dtype=torch.float32)", IMPLIED_CPU),
        ("torch.Tensor(4)", IMPLIED_CPU),
        ("torch.FloatTensor([1.0])", IMPLIED_CPU),
        ("torch.LongTensor(3)", IMPLIED_CPU),
        ("torch.cuda.FloatTensor(4)", accelerator("cuda")),
        ("torch.ones(4).pin_memory()", IMPLIED_CPU),
        ("torch.ones(4).cuda().type(torch.float64)", accelerator("cuda")),
        ("torch.nn.Transformer.generate_square_subsequent_mask(4)", IMPLIED_CPU),
        ("torch.nn.Transformer.generate_square_subsequent_mask(4, device='cuda')", accelerator("cuda")),
        ("torch.normal(0.0, 1.0, (4,))", IMPLIED_CPU),
        ("torch.fft.fft(torch.ones(4).cuda())", accelerator("cuda")),
    ],
)
def test_where_a_tensor_is(expression: str, device: Device) -> None:
    found = place(f"""
        def f(array):
            x = {expression}
            see(x)
    """)
    assert found == device


def test_two_accelerators_do_not_meet() -> None:
    code = """
        x, y = torch.ones(4).cuda(0), torch.ones(4).cuda(1)
        x + y
        x + y.to(0)
        x + torch.ones(4).cuda()
    """
    assert [site.node.lineno for site in sites(code, Operation)] == [3]


@pytest.mark.parametrize("spelled", ["cuda", "cuda:0"])
def test_the_current_accelerator_may_be_any(spelled: str) -> None:
    code = f"""
        torch.cuda.set_device(1)
        x = torch.ones(4).cuda()
        x + torch.ones(4, device="{spelled}")
    """
    assert not sites(code, Operation)


@pytest.mark.parametrize(
    "set_up",
    [
        "torch.set_default_device(device)",
        "torch.set_default_device('cuda')",
        "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
    ],
)
def test_a_default_device_silences_what_is_made_without_one(set_up: str) -> None:
    code = f"""
        def main(device):
            {set_up}

        def f(x: torch.Tensor, device):
            y = torch.ones(4)
            see(y)
            y + x.to(device)
            nn.Linear(4, 4)(x.to(device))
    """
    assert not place(code, "y").known
    assert not sites(code, Operation)


@pytest.mark.parametrize(
    ("expression", "many"),
    [
        ("torch.tensor(1.)", False),
        ("torch.tensor([1.])", True),
        ("torch.tensor(data)", None),
        ("torch.ones(())", False),
        ("torch.ones([])", False),
        ("torch.ones(1)", True),
        ("torch.ones(2, 3)", True),
        ("torch.ones((2, 3))", True),
        ("torch.ones(*shape)", True),
        ("torch.ones(size=(2,))", True),
        ("torch.arange(3)", True),
        ("torch.eye(3)", True),
        ("torch.randint(0, 3, (2,))", True),
        ("torch.randint(3, ())", None),
        ("torch.full((), 1.)", False),
        ("torch.full((2,), 1.)", True),
        ("torch.ones(3).sum()", False),
        ("torch.ones(3).mean()", False),
        ("torch.sum(torch.ones(3))", False),
        ("torch.ones(3, 3).sum(0)", True),
        ("torch.ones(3).sum(0)", None),
        ("torch.ones(3, 3).sum(dim=0, keepdim=True)", True),
        ("torch.ones(3)[0]", False),
        ("torch.ones(3, 3)[0]", True),
        ("torch.ones(3, 3)[0, 0]", False),
        ("torch.ones(3, 3)[0:1]", True),
        ("torch.ones(3)[None]", True),
        ("torch.ones(3)[index]", None),
        ("torch.ones(3).view(1, 3)", True),
        ("torch.tensor(1.).unsqueeze(0)", True),
        ("torch.ones(3).squeeze()", None),
        ("torch.ones(3) * 2", True),
        ("torch.ones(3) + torch.tensor(1.)", True),
        ("torch.tensor(1.) * 2", False),
        ("torch.ones(3).cuda()", True),
        ("torch.tensor(1.).cuda()", False),
        ("torch.nn.functional.mse_loss(torch.ones(3), torch.ones(3))", False),
        ("torch.zeros_like(torch.tensor(1.))", False),
        ("torch.zeros_like(torch.ones(3))", True),
        ("-torch.ones(3)", True),
        ("torch.cat([torch.ones(3), torch.ones(3)])", True),
        ("torch.stack([torch.tensor(1.), torch.tensor(1.)])", True),
    ],
)
def test_dimensions(expression: str, many: bool | None) -> None:
    """`None` may always stand for what is not known; the contrary of the truth may not."""
    found = seen(f"""
        def f(data, shape, index):
            x = {expression}
            see(x)
    """)
    assert found.many is many
