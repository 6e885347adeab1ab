"""Sparse and nested tensors."""

from __future__ import annotations

import copy
import io
import pickle

import torch
from torch import nn

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"
COMPRESSED = {
    torch.sparse_csr: None,
    torch.sparse_csc: None,
    torch.sparse_bsr: (2, 2),
    torch.sparse_bsc: (2, 2),
}


def _coo() -> torch.Tensor:
    return torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), device=d)


@idiom("a sparse tensor from a dense one")
def _() -> None:
    x = torch.eye(3, device=d).to_sparse()
    assert x.is_cuda
    assert x.is_sparse
    assert x.layout is torch.sparse_coo
    assert x.device == torch.device("cuda:0")
    assert x.type() == "torch.cuda.sparse.FloatTensor"
    assert x.is_coalesced()
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), len(x)) == (3, 2, 0, 3)
    assert x.indices().is_cuda
    assert x.values().tolist() == [1, 1, 1]
    assert torch.equal(x.to_dense(), torch.eye(3, device=d))


@idiom("sparse tensors are made on the device")
def _() -> None:
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    for options in ({}, {"device": d}, {"device": d, "dtype": torch.float64}):
        assert torch.sparse_coo_tensor(indices.cuda(), values.cuda(), (2, 3), **options).is_cuda
    assert torch.sparse_coo_tensor(indices, values, (2, 3), device=d).is_cuda
    assert torch.sparse_coo_tensor((2, 3), device=d).is_cuda
    assert torch.sparse_coo_tensor(indices, values, device="cuda:1").device.index == 1
    for layout in (torch.sparse_coo, torch.sparse_csr):
        assert torch.zeros(2, 3, layout=layout, device=d).is_cuda
        assert torch.zeros_like(torch.empty(2, 3, layout=layout, device=d)).layout is layout
    with torch.device(d):
        assert torch.sparse_coo_tensor([[0]], [1.0], (2,)).is_cuda


@idiom("indices follow the values of a sparse tensor")
def _() -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, device=d), (2,))
    assert x.is_cuda
    assert x._indices().is_cuda


@idiom("coalescing adds up")
def _() -> None:
    x = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), device=d)
    assert not x.is_coalesced()
    assert x.coalesce().values().tolist() == [3]
    assert x.coalesce().coalesce().is_coalesced()


@idiom("indices of a sparse tensor that is not coalesced", raises="Cannot get indices on an uncoalesced tensor")
def _() -> None:
    _coo().indices()


@idiom("sparse tensors move")
def _() -> None:
    for x in (_coo().coalesce(), _coo(), _coo().to_sparse_csr()):
        host = x.cpu()
        assert type(host) is torch.Tensor
        assert host.layout is x.layout
        assert host.device.type == "cpu"
        back = host.cuda()
        assert back.is_cuda
        assert torch.equal(back.to_dense(), x.to_dense())
        assert x.to("cuda:1").device.index == 1
        assert x.to(d) is x
        assert x.to(d, torch.float64).dtype is torch.float64
        assert x.half().dtype is torch.float16
        host = host * 0
        host.copy_(x)
        assert torch.equal(host.to_dense(), x.cpu().to_dense())
    assert _coo().coalesce().cpu().cuda().is_coalesced()
    assert not _coo().cpu().is_coalesced()


@idiom("every compressed layout")
def _() -> None:
    for layout, blocks in COMPRESSED.items():
        x = torch.eye(4, device=d).to_sparse(layout=layout, blocksize=blocks)
        assert x.is_cuda
        assert x.layout is layout
        assert x.is_sparse_csr == (layout is torch.sparse_csr)
        by_rows = layout in (torch.sparse_csr, torch.sparse_bsr)
        indices = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
        again = torch.sparse_compressed_tensor(*indices, x.values(), x.shape, layout=layout, device=d)
        assert torch.equal(again.to_dense(), torch.eye(4, device=d))
        assert torch.equal(x.cpu().cuda().to_dense(), torch.eye(4, device=d))
        assert f"device='cuda:0', size=(4, 4), nnz={x._nnz()}" in repr(x)
    assert torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), device=d).is_cuda
    assert torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), device=d).is_cuda
    assert _coo().to_sparse_csr().to_sparse_csc().to_sparse_coo().is_cuda


@idiom("compressed tensors like those of the CPU are whole")
def _() -> None:
    for layout, blocks in COMPRESSED.items():
        given = torch.eye(4).to_sparse(layout=layout, blocksize=blocks)
        for make in (
            torch.empty_like,
            torch.zeros_like,
            torch.ones_like,
            lambda x, **how: torch.full_like(x, 2, **how),
        ):
            x = make(given, device=d)
            assert x.device == torch.device("cuda:0")
            assert x.layout is layout
            assert x.cpu().to_dense().shape == x.to_dense().shape == given.shape


@idiom("computing with sparse tensors gives what the CPU gives")
def _() -> None:
    x = torch.randn(4, 4, device=d).relu().to_sparse()
    y = torch.randn(4, 2, device=d)
    csr = x.to_sparse_csr()
    for compute in (
        lambda x, y, csr: torch.sparse.mm(x, y),
        lambda x, y, csr: x @ y[:, 0],
        lambda x, y, csr: torch.sparse.addmm(torch.ones_like(y), x, y),
        lambda x, y, csr: torch.sparse.mm(x, x.t()).to_dense(),
        lambda x, y, csr: torch.sparse.softmax(x, 1).to_dense(),
        lambda x, y, csr: torch.sparse.sum(x, 0).to_dense(),
        lambda x, y, csr: x.sum() + csr.sum(),
        lambda x, y, csr: (x * 2 + x * x - x).abs().sqrt().to_dense(),
        lambda x, y, csr: torch.cat([x, x])[1].to_dense(),
        lambda x, y, csr: x.clone().mul_(2).to_dense() + x,
        lambda x, y, csr: x.index_select(0, x.indices()[0]).to_dense(),
        lambda x, y, csr: torch.ones(4, 4, device=x.device).sparse_mask(x).to_dense(),
        lambda x, y, csr: csr @ y,
        lambda x, y, csr: torch.sparse.mm(csr, csr).to_dense(),
        lambda x, y, csr: torch.sparse.sampled_addmm(csr, x.to_dense(), x.to_dense()).to_dense(),
        lambda x, y, csr: (csr * 2 + csr).to_dense(),
    ):
        result = compute(x, y, csr)
        assert result.is_cuda
        assert torch.equal(result.cpu(), compute(x.cpu(), y.cpu(), csr.cpu()))


@idiom("gradients of and through sparse tensors")
def _() -> None:
    x = torch.randn(4, 5, device=d).relu().to_sparse().requires_grad_()
    y = torch.randn(5, 2, device=d, requires_grad=True)
    torch.sparse.mm(x, y).sum().backward()
    assert x.grad.is_sparse
    assert y.grad.is_cuda
    values = torch.tensor([3.0, 4.0, 5.0], device=d, requires_grad=True)
    sparse = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    (sparse.coalesce() @ torch.ones(3, 1, device=d)).pow(2).sum().backward()
    assert values.grad.tolist() == [6, 18, 18]
    weight = torch.randn(3, 3, requires_grad=True)
    torch.sparse.sum(weight.to_sparse().cuda()).backward()
    assert weight.grad.device.type == "cpu"
    csr = torch.randn(4, 4, device=d).relu().to_sparse_csr().requires_grad_()
    (csr @ torch.randn(4, 2, device=d)).sum().backward()
    assert csr.grad.is_cuda


@idiom("sparse gradients of embeddings")
def _() -> None:
    layer = nn.Embedding(10, 3, sparse=True).cuda()
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SparseAdam(layer.parameters())
    for _ in range(2):
        layer(torch.tensor([1, 2, 2], device=d)).sum().backward()
    assert layer.weight.grad.is_sparse
    optimizer.step()
    changed = (layer.weight != before).any(1)
    assert changed.nonzero().flatten().tolist() == [1, 2]


@idiom("sparse tensors in modules, copies and files")
def _() -> None:
    for x in (torch.eye(3, device=d).to_sparse(), torch.eye(3, device=d).to_sparse_csr()):
        buffer = io.BytesIO()
        torch.save(x, buffer)
        for place, expected in ((None, "cuda:0"), ("cpu", "cpu"), ("cuda:1", "cuda:1")):
            buffer.seek(0)
            loaded = torch.load(buffer, map_location=place)
            assert str(loaded.device) == expected
            assert loaded.layout is x.layout
        assert pickle.loads(pickle.dumps(x)).is_cuda
        assert copy.deepcopy(x).layout is x.layout
        module = nn.Module()
        module.register_buffer("adjacency", x.cpu())
        module.weight = nn.Parameter(x.cpu())
        module.cuda()
        assert module.adjacency.is_cuda
        assert isinstance(module.weight, nn.Parameter)
        assert module.weight.layout is x.layout
        assert not module.cpu().adjacency.is_cuda


@idiom("how a sparse tensor is shown")
def _() -> None:
    text = repr(_coo())
    assert text.startswith("tensor(indices=tensor([[0, 1, 1],")
    assert text.endswith("device='cuda:0', size=(2, 3), nnz=3, layout=torch.sparse_coo)")


@idiom("legacy types of sparse tensors")
def _() -> None:
    indices, values = torch.tensor([[0, 1], [2, 0]], device=d), torch.tensor([3.0, 4.0], device=d)
    x = torch.cuda.sparse.FloatTensor(indices, values, torch.Size([2, 3]))
    assert x.shape == (2, 3)
    assert isinstance(x, torch.cuda.sparse.FloatTensor)
    assert not isinstance(x, (torch.cuda.FloatTensor, torch.cuda.sparse.DoubleTensor))
    assert not isinstance(values, torch.cuda.sparse.FloatTensor)
    assert torch.cuda.sparse.DoubleTensor(2, 3).dtype is torch.float64
    assert x.cpu().type("torch.cuda.sparse.DoubleTensor").is_cuda


@idiom("memory of a sparse tensor is that of its parts")
def _() -> None:
    before = torch.cuda.memory_allocated()
    x = torch.sparse_coo_tensor(torch.arange(1024).view(1, -1), torch.ones(1024), (2048,)).cuda()
    assert torch.cuda.memory_allocated() - before == 1024 * 8 + 1024 * 4
    del x
    assert torch.cuda.memory_allocated() == before


@idiom("sparse on the device times dense on the CPU", raises="Expected all tensors to be on the same device")
def _() -> None:
    _coo() @ torch.ones(3, 2)


SPARSE_KERNEL = "different from other tensors on cuda:0 (when checking argument in method wrapper_{}"


@idiom("a product of sparse tensors of both", raises=SPARSE_KERNEL.format("SparseCUDA___sparse_sparse_matmul)"))
def _() -> None:
    torch.sparse.mm(torch.eye(3, device=d).to_sparse(), torch.eye(3).to_sparse())


@idiom("a sampled product of both", raises=SPARSE_KERNEL.format("SparseCsrCUDA__sparse_sampled_addmm)"))
def _() -> None:
    torch.sparse.sampled_addmm(torch.eye(3, device=d).to_sparse_csr(), torch.eye(3), torch.eye(3, device=d))


@idiom("a mask of the CPU", raises=SPARSE_KERNEL.format("SparseCUDA__sparse_mask)"))
def _() -> None:
    torch.eye(3, device=d).sparse_mask(torch.eye(3).to_sparse())


@idiom("what is for dense tensors only", raises="Could not run 'aten::gather' with arguments from the 'SparseCUDA'")
def _() -> None:
    torch.gather(torch.eye(3, device=d).to_sparse(), 0, torch.zeros(1, 3, dtype=torch.long, device=d))


@idiom("sparse tensors of both", raises="Expected all tensors to be on the same device")
def _() -> None:
    _coo() + _coo().cpu()


@idiom("strides of a compressed tensor", raises="Sparse CSR tensors do not have strides")
def _() -> None:
    _coo().to_sparse_csr().stride()


@idiom("a sparse tensor on the device as an array", raises="can't convert cuda:0 device type tensor to numpy")
def _() -> None:
    _coo().numpy()


@idiom(
    "a product that is reduced, on the CPU only", raises="Could not run 'aten::_sparse_mm_reduce_impl' with arguments"
)
def _() -> None:
    torch.sparse.mm(_coo().to_sparse_csr(), torch.ones(3, 2, device=d, requires_grad=True), "amax").sum().backward()


@idiom("jagged tensors are on the device of their values")
def _() -> None:
    rows = [torch.randn(2, 4), torch.randn(3, 4)]
    for x in (
        torch.nested.nested_tensor(rows, layout=torch.jagged, device=d),
        torch.nested.as_nested_tensor([row.cuda() for row in rows], layout=torch.jagged),
        torch.nested.nested_tensor_from_jagged(torch.cat(rows).cuda(), torch.tensor([0, 2, 5], device=d)),
    ):
        assert x.is_nested
        assert x.is_cuda
        assert x.values().is_cuda
        assert x.offsets().tolist() == [0, 2, 5]
        assert [row.is_cuda for row in x.unbind()] == [True, True]
        assert torch.equal((x * 2 + x).cpu().values(), torch.cat(rows) * 2 + torch.cat(rows))
        assert torch.equal(x.softmax(-1).values().cpu(), torch.cat(rows).softmax(-1))
        assert x.to("cuda:1").values().device.index == 1


ROWS = [torch.arange(8.0).view(2, 4), -torch.arange(4.0).view(1, 4)]


@idiom("a nested tensor of strided ones")
def _() -> None:
    before = torch.cuda.memory_allocated()
    host = torch.nested.nested_tensor(ROWS)
    for x in (host.cuda(), torch.nested.as_nested_tensor([row.cuda() for row in ROWS]), host.to("cuda:0").clone()):
        assert (x.is_nested, x.is_cuda, x.dim(), x.numel()) == (True, True, 3, 12)
        assert (x.size(0), x.size(-1), x.layout) == (2, 4, torch.strided)
        assert repr(x) == repr(host)[:-1] + ", device='cuda:0')"
        assert torch.equal(x.to_padded_tensor(0.0).cpu(), host.to_padded_tensor(0.0))
        assert [row.tolist() for row in (x * 2).unbind()] == [row.tolist() for row in (host * 2).unbind()]
        assert copy.deepcopy(x).device == x.half().device == torch.device("cuda:0")
        assert x.cpu().device.type == "cpu"
        assert torch.cuda.memory_allocated() > before
        with torch.no_grad():
            assert nn.Linear(4, 2).cuda()(x).is_cuda


@idiom("a nested tensor tells no sizes that differ", raises="Given dimension 1 is irregular and does not have a size")
def _() -> None:
    torch.nested.nested_tensor(ROWS).cuda().size(1)


@idiom("a nested tensor and a layer of the host", raises="Expected all tensors to be on the same device")
def _() -> None:
    with torch.no_grad():
        nn.Linear(4, 2)(torch.nested.nested_tensor(ROWS).cuda())


@idiom("a nested tensor that needs gradients", raises="devlint does not simulate nested tensors that need gradients")
def _() -> None:
    torch.nested.as_nested_tensor([row.cuda().requires_grad_() for row in ROWS])


@idiom("a nested tensor and parameters", raises="devlint does not simulate nested tensors that need gradients")
def _() -> None:
    nn.Linear(4, 2).cuda()(torch.nested.nested_tensor(ROWS).cuda())


@idiom("a nested tensor of lists", raises="devlint does not simulate nested tensors that need gradients or are made of")
def _() -> None:
    torch.nested.nested_tensor([[1.0, 2.0], [3.0]], device=d) * 2


@idiom("an encoder in evaluation, which computes with nested tensors")
def _() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 16)
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            expected = encoder.cpu()(x, src_key_padding_mask=mask)
            found = encoder.cuda()(x.cuda(), src_key_padding_mask=mask.cuda())
            assert torch.equal(found.cpu(), expected)
            assert not expected[1, 3:].any(), "nested tensors were taken"


@idiom("attention of jagged tensors")
def _() -> None:
    rows = [torch.randn(2, 8), torch.randn(3, 8)]
    found = []
    for device in (d, "cpu"):
        x = torch.nested.nested_tensor(rows, layout=torch.jagged, device=device).unflatten(-1, [2, 4]).transpose(1, 2)
        found.append(nn.functional.scaled_dot_product_attention(x, x, x).values().cpu())
    assert torch.equal(*found)


@idiom("attention of jagged tensors that need gradients", raises="devlint does not simulate nested tensors")
def _() -> None:
    x = torch.nested.nested_tensor([torch.randn(2, 8)], layout=torch.jagged, device=d, requires_grad=True)
    x = x.unflatten(-1, [2, 4]).transpose(1, 2)
    nn.functional.scaled_dot_product_attention(x, x, x)
