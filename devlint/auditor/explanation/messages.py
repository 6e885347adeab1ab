"""What torch says when tensors on different devices meet, from 2.2 to 2.13."""

from __future__ import annotations

import re

_DEVICE = r"(?:cpu|cuda|mps|xpu|hpu|npu|xla|mtia|privateuseone)(?::\d+)?"
_TEXTS = (
    # "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!", with or without
    # "(when checking argument for argument mat1 in method wrapper_CUDA_addmm)", and from 2.9 "but got mat1 is on cpu,
    # different from other tensors on cuda:0"; masks, conditions, `out=` and tensors of an optimizer say it likewise
    r"\bsame device\b",
    r"on the same device as the indexed tensor",
    # convolutions, which speak of the types torch.cuda.FloatTensor and torch.FloatTensor
    r"Input type \([\w.]*\) and (?:weight|bias) type \([\w.]*\) should be the same",
    r"tensors are not at the same device",  # recurrent modules, of their hidden state and parameters
    r"Expected object of device type \w+ but got device type \w+",
    r"is on (?:CPU|GPU|cpu|gpu), but expected (?:it to be on|them to be on|to be on)",  # cuDNN
    r"Expected tensor to have \w+ DeviceType, but got tensor with \w+ DeviceType",
    r"(?:found|have|got) (?:two |at least two )different devices",  # torch.compile, on its fake tensors
    r"Unhandled FakeTensor Device Propagation",
    r"Expected query, key, and value to have the same device type",
    r"assign a gradient with device type",
    r"Placeholder storage has not been allocated on MPS device",
    r"must have its parameters and buffers on device",  # DataParallel
    r"device_ids and output_device arguments only work with",  # DistributedDataParallel
    r"Expected a '[\w:]+' device type for generator but found '[\w:]+'",
    rf"can't convert {_DEVICE} device type tensor to numpy",
    r"'lengths' argument should be a 1D CPU int64 tensor, but got \dD (?!cpu)\w",
    r"cannot pin '(?:torch\.)?(?!FloatTensor|LongTensor)[\w.]+' only dense CPU tensors can be pinned",
)
_MISMATCH = re.compile("|".join(_TEXTS))
_DEMANDS = (
    (re.compile(r"can't convert .* to numpy"), "NumPy reads the memory of the host only"),
    (re.compile(r"'lengths' argument should be"), "the lengths have to be on the CPU"),
    (re.compile(r"cannot pin"), "only memory of the host can be pinned"),
    (re.compile(r"device type for generator"), "a generator serves its own device only"),
)
_ARGUMENT = re.compile(
    r"'(lengths)' argument|but got (\w+) is on|for argument (\w+) in method|for argument #\d+ '(\w+)'"
)
_TYPE = re.compile(r"\btorch\.(?:([a-z]\w*)\.)?\w*Tensor\b")
_NAMED = re.compile(rf"\b{_DEVICE}\b|\bCPU\b|\bGPU\b")
_WRAPPED = re.compile(r"but got device_ids \[(\d+)[^]]*\].*module parameters \{(.*)\}")
_KINDS = (RuntimeError, ValueError, TypeError, AssertionError)


def is_mismatch(error: BaseException) -> bool:
    """Whether an exception says that tensors were on different devices, or on another one than they had to be."""
    return isinstance(error, _KINDS) and _MISMATCH.search(str(error)) is not None


def demand(text: str) -> str:
    """What was wanted of a single tensor; empty where the message is about several that met."""
    return next((words for pattern, words in _DEMANDS if pattern.search(text)), "")


def devices_in(text: str) -> tuple[str, ...]:
    """The devices that a message names, in its order, each once."""
    wrapped = _WRAPPED.search(text)
    if wrapped:  # what comes before speaks of GPU and CPU modules in general
        return tuple(dict.fromkeys([f"cuda:{wrapped.group(1)}", *devices_in(wrapped.group(2))]))
    found = [(match.start(), match.group()) for match in _NAMED.finditer(text)]
    found += [(match.start(), match.group(1) or "cpu") for match in _TYPE.finditer(text)]
    names = [{"CPU": "cpu", "GPU": "cuda"}.get(name, name) for _, name in sorted(found)]
    return tuple(dict.fromkeys(names))


def argument_in(text: str) -> str:
    """The argument that a message blames, empty if it names none."""
    match = _ARGUMENT.search(text)
    return next((group for group in match.groups() if group), "") if match else ""
