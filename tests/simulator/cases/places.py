"""What is on a device, and what it is called: no tensor, device or message names another type than CUDA's."""

from __future__ import annotations

import pickle

import torch

from tests.simulator.cases.support import ONE, ZERO, raises

DEVICES = 2


def case_the_devices_of_tensors_are_torchs_own_devices() -> None:
    tensor = torch.ones(3, device="cuda")
    assert tensor.device == ZERO == torch.device(0) == pickle.loads(pickle.dumps(tensor.device))
    assert repr(tensor.device) == "device(type='cuda', index=0)"
    assert torch.Tensor.device.__get__(torch.ones(1, device=ONE)) == ONE
    assert (tensor.is_cuda, tensor.is_privateuseone, torch.ones(1).is_cuda) == (True, False, False)
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert type(torch.device) is type
    assert repr(type(tensor)) == "<class 'torch.Tensor'>"
    assert not hasattr(torch, "devlintsim")


def case_factories_with_a_device_write_out() -> None:
    for name, arguments in {
        **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), (3,)),
        "full": ((3,), 2.0),
        "arange": (3.0,),
        "linspace": (0, 1, 3),
        "logspace": (0, 1, 3),
        "normal": (0.0, 1.0, (3,)),
    }.items():
        out = torch.full((3,), -9.0, device=ONE)
        assert getattr(torch, name)(*arguments, device=ONE, out=out) is out
        assert name == "empty" or -9.0 not in out.tolist(), name
        assert getattr(torch, name)(*arguments, device="cuda", out=torch.empty(3, device="cuda")).device == ZERO
        with raises(RuntimeError, "device type cuda does not match device type of out parameter (cpu)"):
            getattr(torch, name)(*arguments, device=ONE, out=torch.empty(3))
    square, order = torch.empty(3, 3, device=ZERO), torch.empty(3, device=ZERO, dtype=torch.int64)
    assert torch.eye(3, device=ZERO, out=square).sum().item() == 3
    assert sorted(torch.randperm(3, device=ZERO, out=order).tolist()) == [0, 1, 2]


def case_an_operation_of_a_library_runs_what_the_library_has_for_cuda() -> None:
    library = torch.library.Library("devlint_tests", "DEF")
    for name, key in (("by_key", "CUDA"), ("by_type", "cuda")):
        library.define(f"{name}(Tensor x) -> Tensor")
        torch.library.impl(f"devlint_tests::{name}", "cpu", lib=library)(lambda x: x * 2)
        if key == "CUDA":
            library.impl(name, lambda x: x * 3, key)
        else:
            torch.library.impl(f"devlint_tests::{name}", key, lib=library)(lambda x: x * 3)
        operation = getattr(torch.ops.devlint_tests, name)
        assert operation(torch.ones(2, device=ONE)).tolist() == [3.0, 3.0]
        assert operation(torch.ones(2)).tolist() == [2.0, 2.0]
    library.define("on_host(Tensor x) -> Tensor")
    library.impl("on_host", lambda x: x * 2, "CPU")
    assert torch.ops.devlint_tests.on_host(torch.ones(2, device=ONE)).device == ONE
    library.define("compiled(Tensor x) -> Tensor")
    library.impl("compiled", lambda x: x * 2, "CPU")
    library.impl("compiled", lambda x: x * 3, "CUDA")
    # a kernel in C++ is in the dispatcher, and not among what was registered in Python
    registered = "devlint_tests/compiled/CUDA"
    torch.library._impls.remove(registered)
    try:
        assert torch.ops.devlint_tests.compiled(torch.ones(2, device=ONE)).tolist() == [2.0, 2.0]
    finally:
        torch.library._impls.add(registered)


def case_a_class_finds_the_functions_of_torch_that_it_knows() -> None:
    functions = {torch.zeros_like: "now", torch._C._VariableFunctions.ones_like: "before"}

    class Known:
        @classmethod
        def __torch_function__(cls, func: object, types: object, args: object = (), kwargs: object = None) -> object:
            return functions.get(func, NotImplemented)

    assert torch.zeros_like(Known()) == "now"
    assert torch.ones_like(Known()) == "before"
    with raises(TypeError, "torch.empty_like"):
        torch.empty_like(Known())
