"""The tensor of the simulated accelerator: torch sees a device, the numbers are in a tensor on the host."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

from devlint.simulator import layouts
from devlint.simulator.devices import device

if TYPE_CHECKING:
    from collections.abc import Callable

_make: Any = torch.Tensor._make_wrapper_subclass
_data: Any = torch.Tensor.data
index_of: Callable[[torch.Tensor], int] = torch._C.TensorBase.get_device
"""The virtual device of a simulated tensor; fast, and the same whatever ``device`` is made to say."""
_attributes: Any = next(vars(base)["__dict__"] for base in torch.Tensor.__mro__ if "__dict__" in vars(base))
_text: Any = torch._tensor_str._str
_contents: Any = torch._tensor_str._tensor_str
OWN = ("host", "_is_param")
"""What only the attributes of a simulated tensor hold."""
dispatch: Callable[[Any, Any, Any], Any] | None = None
"""What runs an operation on simulated tensors: ``dispatch(op, args, kwargs)``."""
on_made: Callable[[torch.Tensor, int], object] | None = None
"""Called with the host tensor and the device of each simulated tensor that is made."""


class SimulatedTensor(torch.Tensor):
    """A tensor on a virtual device.

    ``host`` is the tensor that holds its numbers, on the CPU and of the same shape, strides, dtype and offset; a view
    of a simulated tensor holds the same view of its ``host``.  ``device.index`` is the virtual device.
    :func:`wrap` makes one.
    """

    __module__, __qualname__ = torch.Tensor.__module__, torch.Tensor.__qualname__
    host: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # as torch says to

    @staticmethod
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """What the class of a CUDA tensor makes where it is called: on CUDA that is ``nn.Parameter`` or ``Tensor``.

        Libraries rebuild parameters by ``type(parameter)(value, requires_grad=...)``, wherever the value is.
        """
        if "requires_grad" in kwargs or "data" in kwargs or (len(args) == 2 and isinstance(args[1], bool)):
            return torch.nn.Parameter(*args, **kwargs)
        return torch.Tensor(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # the base class has none, its stub a function
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, below autograd; a class that says itself what becomes of it is left to do so."""
        for kind in types:
            if kind is not SimulatedTensor and not issubclass(kind, SimulatedTensor):
                return NotImplemented
        return dispatch(func, args, kwargs or {})  # type: ignore[misc]  # set when the backend is installed

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # torch's own signature
        """As a tensor of an accelerator is shown, with the reads that this takes there."""
        for part in layouts.parts(self.detach()):
            # torch formats a tensor on its own device and reads it piece by piece; the text is made on the host, since
            # it would name this class
            if part.numel():
                _contents(part, 0)
        shown = _text(self.host)[:-1]
        parts = (
            [layouts.text(shown, self.device)]
            if self.layout is not torch.strided
            else [shown, f"device='{self.device}'"]
        )
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        text = ", ".join(parts) + ")"
        return f"Parameter containing:\n{text}" if getattr(self, "_is_param", False) else text

    def __format__(self, spec: str) -> str:
        """A number as a number, all else as ``repr``."""
        return self.item().__format__(spec) if self.dim() == 0 else object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> SimulatedTensor:
        """A copy on the same device; tensors that shared memory share it afterwards."""
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]  # what was put there below
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
            )
        with torch.no_grad():
            result = wrap(_twin(self.host, memo), self.device.index, self.requires_grad)
            if self.grad is not None:
                result.grad = copy.deepcopy(self.grad, memo)
        own = {name: value for name, value in self.__dict__.items() if name != "host"}
        result.__dict__.update(copy.deepcopy(own, memo))
        result.__class__ = type(self)  # it may be one of the script's own classes, too
        memo[id(self)] = result
        return result

    @property
    def __dict__(self) -> dict[str, Any]:
        """The attributes; those of another tensor may be put in their place, as fastai does."""
        return _attributes.__get__(self)  # type: ignore[no-any-return]  # typed as Any

    @__dict__.setter
    def __dict__(self, value: dict[str, Any]) -> None:
        own = {name: known for name, known in self.__dict__.items() if name in OWN}
        _attributes.__set__(self, {**{name: item for name, item in value.items() if name not in OWN}, **own})

    def data_ptr(self) -> int:
        """The address of the host tensor."""
        return self.host.data_ptr()

    def tolist(self) -> Any:
        """The numbers as nested lists, after one copy to the host."""
        return self.item() if self.dim() == 0 else self.detach().to("cpu").tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Raise ``TypeError`` as for an accelerator's tensor, unless ``force``."""
        if force:
            return self.detach().to("cpu").resolve_conj().resolve_neg().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise ``TypeError`` as for an accelerator's tensor."""
        return self.numpy()

    def __setitem__(self, index: Any, value: Any) -> None:
        """As in any tensor; for CUDA, torch keeps a number on the host until it is written."""
        if isinstance(value, (bool, int, float, complex)):
            value = torch.scalar_tensor(value, dtype=self.dtype)
        super().__setitem__(index, value)

    def new_tensor(  # type: ignore[override]  # the options pass through unseen
        self, data: Any, *, device: Any = None, **options: Any
    ) -> torch.Tensor:
        """A tensor with the data, on this one's device unless told otherwise."""
        # torch takes the device's index from a device guard here, and guards from Python have only one.
        return super().new_tensor(data, device=self.device if device is None else device, **options)

    def record_stream(self, stream: Any) -> None:
        """Do nothing: there are no streams."""


class _Nested(SimulatedTensor):
    """One whose sizes C++ code may ask for where they differ, and Python code may not; autograd does not know it."""

    __module__, __qualname__ = torch.Tensor.__module__, torch.Tensor.__qualname__

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # as in the base class
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation that needs no gradients."""
        if any(str(result.type).startswith("Tensor") for result in func._schema.returns):  # C++ code may ask for sizes
            layouts.refuse_gradients((args, kwargs))
        return super().__torch_dispatch__(func, types, args, kwargs)

    def size(self, *dim: Any) -> Any:
        """As the host says, or refuses to say."""
        return self.host.size(*dim)

    shape = property(size)


for _kind in (SimulatedTensor, _Nested):
    _kind.__name__ = torch.Tensor.__name__  # torch tells the class in messages


def _twin(host: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A deep copy of a host tensor, whose storage may have been asked for and say since that it is on a device."""
    if not layouts.is_dense(host):
        return host.clone()
    storage: Any = host.untyped_storage()
    kind = type(storage)
    storage.__class__ = torch.UntypedStorage
    try:
        return copy.deepcopy(host, memo)
    finally:
        storage.__class__ = kind


def wrap(host: torch.Tensor, index: int, requires_grad: bool = False, counted: bool = False) -> SimulatedTensor:
    """The host tensor's memory as a tensor of a virtual device; ``counted`` if another tensor there has it already.

    Raises ``NotImplementedError`` for a quantized one, and for what is neither dense nor sparse nor nested.
    """
    if host.layout is not torch.strided or host.is_nested:
        kind = _Nested if host.is_nested else SimulatedTensor
        made: SimulatedTensor = layouts.make(kind, host, device(index), requires_grad)
        made.host = host
        if on_made is not None:
            for part in layouts.parts(host):
                on_made(part, index)
        return made
    if host.is_quantized:
        layouts.refuse_quantized(host.dtype)
    if type(host) is not torch.Tensor and hasattr(host, "trigger_wait"):
        host = host.trigger_wait()  # what a collective will have put there: it has no memory of its own
    result: SimulatedTensor = _make(
        SimulatedTensor,
        host.size(),
        strides=host.stride(),
        storage_offset=host.storage_offset(),
        dtype=host.dtype,
        device=device(index),
        requires_grad=requires_grad,
    )
    result.host = host
    if host.is_neg():
        torch._C._set_neg(result, True)
    if host.dtype.is_complex and host.is_conj():
        torch._C._set_conj(result, True)
    if not counted and on_made is not None:
        on_made(host, index)
    return result


def host_of(value: Any) -> Any:
    """The host tensor of a simulated one, anything else as it is."""
    return value.host if isinstance(value, SimulatedTensor) else value


def refresh(tensor: Any) -> None:
    """Bring shape and strides up to those of the host tensor, after an operation that changed them in place."""
    if isinstance(tensor, SimulatedTensor):
        if not layouts.is_dense(tensor.host):
            if not tensor.is_nested and tensor.size() != tensor.host.size():
                _data.__set__(tensor, wrap(tensor.host, tensor.device.index))
            return
        shapes = [(each.size(), each.stride(), each.storage_offset()) for each in (tensor, tensor.host)]
        if shapes[0] != shapes[1]:
            _data.__set__(tensor, wrap(tensor.host, tensor.device.index))
