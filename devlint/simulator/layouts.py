"""Tensors on a virtual device that are not dense: sparse or nested ones of the host, and what torch is told of them."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import torch
from torch.utils import _pytree as pytree

_make = torch.Tensor._make_wrapper_subclass
_Key = torch._C.DispatchKey
_CSR = torch._C.DispatchKeySet(_Key.SparseCsrPrivateUse1)
_NESTED = torch._C.DispatchKeySet(_Key.NestedTensorPrivateUse1).add(_Key.AutogradNestedTensor)
_BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_BY_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)
COMPRESSED = (*_BY_ROWS, *_BY_COLUMNS)
_BEFORE_SIZE = re.compile(r"(?=size=\([\d, ]*\), nnz=)")


def make(cls: Any, host: torch.Tensor, device: torch.device, requires_grad: bool) -> Any:
    """A tensor of class ``cls`` that says of itself what the sparse or nested ``host`` does.

    Raises ``NotImplementedError`` for any other layout.
    """
    if host.is_nested:
        places: dict[str, Any] = {"dtype": host.dtype, "device": device, "requires_grad": requires_grad}
        shape = [0] * host.dim()  # whoever asks for it asks the host's tensor
        return _make(cls, shape, dispatch_sizes_strides_policy="sizes", _extra_dispatch_keys=_NESTED, **places)
    options: dict[str, Any] = {
        "dtype": host.dtype,
        "device": device,
        "requires_grad": requires_grad,
        "dispatch_sizes_strides_policy": "strides",  # it has none: what asks for them asks the host's tensor
    }
    if host.layout is torch.sparse_coo:
        return _make(cls, host.size(), layout=torch.sparse_coo, **options)
    if host.layout in COMPRESSED:
        # C++ takes the layout of such a tensor from a class of its own, and asks the dispatch for that of a wrapper.
        return _make(cls, host.size(), dispatch_layout=True, _extra_dispatch_keys=_CSR, **options)
    raise NotImplementedError(f"devlint does not simulate tensors of {host.layout}")


def refuse_nested() -> NoReturn:
    """Raise ``RuntimeError`` that names what is not simulated of nested tensors; jagged ones are classes of their own.

    Not ``NotImplementedError``, which those take for "try something else": they need strided ones for attention.
    """
    which = "that need gradients or are made of lists, unless of layout=torch.jagged"
    raise RuntimeError(f"devlint does not simulate nested tensors {which}")


def refuse_quantized(dtype: Any) -> NoReturn:
    """Raise ``NotImplementedError`` that says why a tensor of such a dtype cannot be on a simulated device."""
    why = "torch keeps scale and zero point in tensors of its own only"
    raise NotImplementedError(f"devlint does not simulate quantized tensors, such as of {dtype}: {why}")


def refuse_gradients(arguments: Any) -> None:
    """Raise ``RuntimeError`` where autograd would have to know of a nested tensor with or of these arguments."""
    if torch.is_grad_enabled():
        leaves = pytree.tree_leaves(arguments)
        if any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves):
            refuse_nested()


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one piece of memory with strides."""
    return tensor.layout is torch.strided and not tensor.is_nested


def sizes(nested: torch.Tensor) -> list[int]:
    """The sizes of a nested tensor of the host, -1 where its tensors differ, as C++ code may ask for them."""
    each = nested._nested_tensor_size()
    return [len(each), *(int(one[0]) if len(one) and bool((one == one[0]).all()) else -1 for one in each.unbind(1))]


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The dense tensors that a tensor is made of: of a sparse one its indices and its values, as they lie in memory."""
    if tensor.is_nested:
        return (tensor.values(),)
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in _BY_ROWS:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in _BY_COLUMNS:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def joined(like: torch.Tensor, pieces: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The sparse or nested tensor of other parts; shape, layout and order are those of ``like``."""
    if like.is_nested:
        shape = (like._nested_tensor_size(), like._nested_tensor_strides(), like._nested_tensor_storage_offsets())
        return torch._nested_view_from_buffer(pieces[0], *shape)
    if like.layout is torch.sparse_coo:
        made: Any = torch.sparse_coo_tensor
        options: dict[str, Any] = {"is_coalesced": like.is_coalesced()}
    else:
        made, options = torch.sparse_compressed_tensor, {"layout": like.layout}
    result: torch.Tensor = made(*pieces, like.shape, check_invariants=False, **options)
    return result


def text(shown: str, device: torch.device) -> str:
    """How torch shows a sparse tensor of a device, from how it shows the same on the host."""
    return _BEFORE_SIZE.sub(f"device='{device}', ", shown, count=1)


def title(layout: torch.layout) -> str:
    """What C++ calls a layout in its messages: ``Strided``, ``Sparse``, ``SparseCsr``."""
    words = str(layout).removeprefix("torch.").split("_")
    return "".join(word.capitalize() for word in words).removesuffix("Coo")
