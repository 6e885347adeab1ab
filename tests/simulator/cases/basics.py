"""Tensors on one device and on two."""

from __future__ import annotations

import copy
import io
import pickle
import sys
import threading

import torch
import torch.nn.functional as F
from torch import nn

from devlint.simulator import backend
from tests.simulator.cases.support import CPU, ONE, ZERO, raises, same

DEVICES = 2


def case_factories_give_tensors_of_their_device() -> None:
    for device in (ZERO, ONE):
        for tensor in (
            torch.zeros(3, device=device),
            torch.randn(3, device=device),
            torch.arange(5, device=device),
            torch.full((2,), 1.0, device=device),
            torch.tensor([1.0, 2.0], device=device),
            torch.as_tensor([1, 2], device=device),
            torch.randperm(5, device=device),
            torch.zeros(3, device=device).new_tensor([1.0]),
            torch.zeros_like(torch.zeros(3, device=device)),
        ):
            assert tensor.device == device


def case_devices_may_be_added_but_not_taken_away() -> None:
    backend.install(2)
    with raises(backend.DevicesError, "2 simulated devices are in use, so there cannot be 1"):
        backend.install(1)
    text = "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\nCUDA kernel "
    for refused in (
        lambda: torch.zeros(1, device=torch.device("cuda", 2)),
        lambda: torch.zeros(1).to("cuda:2"),
        lambda: torch.cuda.set_device(2),
    ):
        with raises(getattr(torch, "AcceleratorError", RuntimeError), text):
            refused()
    assert torch.zeros(1).to(ONE).device == ONE


def case_metadata_changes_reach_views_and_out_arguments() -> None:
    out = torch.empty(0, device=ZERO)
    torch.add(torch.ones(2, 3, device=ZERO), 1, out=out)
    same(out, torch.full((2, 3), 2.0))
    other = torch.empty(0, device=ZERO)
    other.set_(out[1])
    other.zero_()
    same(out, torch.tensor([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]))
    complex_numbers = torch.tensor([1 + 2j, 3 - 1j], device=ZERO)
    same(complex_numbers.conj().imag.clone(), torch.tensor([-2.0, 1.0]))
    values = [torch.ones(2, device=ZERO), torch.zeros(2, device=ZERO)]
    torch._foreach_add_(values, 1.0)
    assert [value.tolist() for value in values] == [[2.0, 2.0], [1.0, 1.0]]


def case_to_returns_the_tensor_itself_only_where_it_is() -> None:
    tensor = torch.ones(3, device=ZERO)
    assert tensor.to(ZERO) is tensor
    assert tensor.to(ONE).device == ONE
    assert tensor.to(CPU).device == CPU
    assert type(tensor.cpu()) is torch.Tensor


def case_views_share_memory() -> None:
    tensor = torch.zeros(4, 4, device=ZERO)
    tensor[0] = 1
    tensor.view(16)[5] = 2
    tensor[:, 1].add_(3)
    tensor.t()[0, 0] = 9
    expected = torch.tensor([[9.0, 4, 1, 1], [0, 5, 0, 0], [0, 3, 0, 0], [0, 3, 0, 0]])
    same(tensor, expected)


def case_shape_changes_in_place() -> None:
    tensor = torch.zeros(4, 3, device=ZERO)
    tensor.unsqueeze_(0)
    assert tensor.shape == (1, 4, 3)
    tensor.squeeze_(0).t_()
    assert tensor.shape == (3, 4)
    assert tensor.stride() == (1, 3)
    tensor.resize_(2, 2)
    assert tensor.shape == (2, 2)


def case_pointwise_mismatch_names_both_devices_in_order() -> None:
    text = "Expected all tensors to be on the same device, but found at least two devices, {0} and cpu!"
    with raises(RuntimeError, text):
        torch.ones(3, device=ZERO) + torch.ones(3)
    with raises(RuntimeError, "two devices, cpu and {0}!"):
        torch.ones(3) + torch.ones(3, device=ZERO)
    with raises(RuntimeError, "two devices, {0} and {1}!"):
        torch.ones(3, device=ZERO) + torch.ones(3, device=ONE)


def case_scalars_of_the_host_go_with_a_device_in_pointwise_operations_only() -> None:
    same(torch.ones(3, device=ZERO) * torch.tensor(2.0), torch.full((3,), 2.0))
    with raises(RuntimeError, "but got mat2 is on cpu, different from other tensors on {0}"):
        torch.ones(3, 3, device=ZERO) @ torch.ones(3, 3)
    with raises(RuntimeError, "two devices, cpu and {0}!"):
        torch.ones(3).add_(torch.tensor(1.0, device=ZERO))


def case_generated_checks_name_argument_and_kernel() -> None:
    common = "different from other tensors on {0} (when checking argument in method "
    with raises(RuntimeError, "but got mat1 is on cpu, " + common + "wrapper_CUDA_addmm)"):
        nn.Linear(3, 3).to(ZERO)(torch.ones(2, 3))
    with raises(RuntimeError, "but got index is on cpu, " + common + "wrapper_CUDA__index_select)"):
        nn.Embedding(4, 3).to(ZERO)(torch.tensor([1]))


def case_an_index_on_the_host_goes_with_a_device_but_not_the_other_way() -> None:
    same(torch.arange(5, device=ZERO)[torch.tensor([1, 3])], torch.tensor([1, 3]))
    with raises(RuntimeError, "indices should be either on cpu or on the same device as the indexed tensor (cpu)"):
        torch.arange(5)[torch.tensor([1], device=ZERO)]


def case_what_is_written_into_gets_a_copy_of_the_index() -> None:
    """See `make_info` in torch's `TensorAdvancedIndexing.cpp`; `x[i] += 1` reads first."""
    host, index = torch.zeros(4), torch.tensor([1, 3], device=ZERO)
    host[index] = 2.0
    host[torch.tensor([True, False, False, False], device=ZERO)] = torch.tensor(5.0, device=ZERO)
    assert host.tolist() == [5.0, 2.0, 0.0, 2.0]
    with raises(RuntimeError, "indices should be either on cpu or on the same device as the indexed tensor (cpu)"):
        host[index] += 1.0
    with raises(RuntimeError, "Expected all tensors to be on the same device"):
        host[index] = torch.ones(2, device=ZERO)


def case_a_model_trains_as_on_the_host() -> None:
    def train(device: torch.device) -> list[float]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model.to(device)
        assert optimizer.param_groups[0]["params"][0] is model[0].weight
        losses = []
        for _ in range(4):
            batch, labels = torch.randn(6, 4).to(device), torch.randint(3, (6,)).to(device)
            loss = F.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(ZERO) == train(CPU)
    assert train(ONE) == train(CPU)


def case_gradients_go_back_over_devices() -> None:
    leaf = torch.ones(3, requires_grad=True)
    ((leaf.to(ZERO) * 2).to(ONE) * 3).sum().backward()
    assert leaf.grad is not None
    assert type(leaf.grad) is torch.Tensor
    assert leaf.grad.tolist() == [6.0, 6.0, 6.0]


def case_threads_compute_at_once() -> None:
    results: list[float] = []

    def work(device: torch.device) -> None:
        weight = torch.ones(8, device=device, requires_grad=True)
        for _ in range(20):
            (weight * 2).sum().backward()
        results.append(weight.grad.sum().item())

    threads = [threading.Thread(target=work, args=(device,)) for device in (ZERO, ONE) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [320.0] * 6, "8 weights, 20 times 2"


def case_a_forked_loader_worker_stays_on_the_host() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0).view(4, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1, pin_memory=True)
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    same(torch.cat([batch.to(ONE, non_blocking=True) for batch in batches]), torch.arange(8.0).view(4, 2))


def case_an_operation_takes_few_calls_of_python() -> None:
    """What an operation costs is the calls around it; with `weakref.finalize` for its memory there were 29."""
    one, other = torch.ones(4, device=ZERO), torch.ones(4, device=ZERO)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    one + other
    sys.setprofile(count)
    try:
        one + other
    finally:
        sys.setprofile(None)
    assert calls <= 22, calls


def case_memory_is_counted_as_long_as_it_lives() -> None:
    before = torch.cuda.memory_stats()
    kept = torch.ones(1024, device=ZERO)
    view = kept[1:]
    torch.ones(1 << 20, device=ZERO)
    stats = torch.cuda.memory_stats()
    grown = {name: stats[name] - before[name] for name in stats}
    assert grown["allocated_bytes.all.current"] == grown["allocated_bytes.small_pool.current"] == 4096
    assert grown["allocated_bytes.all.freed"] == grown["allocated_bytes.large_pool.freed"] == 4 << 20
    assert grown["allocation.all.allocated"] - grown["allocation.all.freed"] == grown["allocation.all.current"] == 1
    assert stats["allocated_bytes.all.peak"] >= before["allocated_bytes.all.current"] + (4 << 20) + 4096
    del kept
    assert torch.cuda.memory_allocated() - before["allocated_bytes.all.current"] == 4096
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    del view
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == 0
    assert stats["allocated_bytes.all.freed"] == 4096
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"] + 4096


def case_the_class_of_a_parameter_makes_parameters_where_their_data_is() -> None:
    """As accelerate does where it moves the weights of a module away and back."""
    kind = type(nn.Linear(2, 2, device=ZERO).weight)
    for device in (CPU, ZERO, ONE, torch.device("meta")):
        value = torch.ones(2, 2, device=device)
        for made in (kind(value, requires_grad=False), kind(value, False), kind(data=value, requires_grad=False)):
            assert isinstance(made, nn.Parameter)
            assert made.device == device
            assert not made.requires_grad
    assert kind(torch.ones(2, device=ZERO)).device == ZERO
    assert kind([1, 2]).tolist() == [1, 2]


def case_a_number_of_a_device_does_not_fill_a_tensor_of_the_host() -> None:
    one = torch.ones((), device=ZERO)
    with raises(RuntimeError, "masked_fill_: Expected inputs to be on same device"):
        torch.ones(2).masked_fill(torch.tensor([True, False]), one)
    torch.ones(2).index_fill(0, torch.tensor([0]), one)


def case_numpy_is_refused() -> None:
    with raises(TypeError, "can't convert {0} device type tensor to numpy. Use Tensor.cpu() to copy the tensor"):
        torch.ones(2, device=ZERO).numpy()


def case_copies_keep_sharing() -> None:
    base = torch.arange(4.0, device=ONE)
    first, view = copy.deepcopy((base, base[1:3]))
    assert first.device == view.device == ONE
    first[1] = 7
    assert view.tolist() == [7.0, 2.0]
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0]


def case_pickled_and_saved_as_host_tensors() -> None:
    tensor = torch.arange(3, device=ZERO)
    assert pickle.loads(pickle.dumps(tensor)).tolist() == [0, 1, 2]
    parameter = nn.Linear(2, 2).to(ZERO).weight
    assert isinstance(parameter, nn.Parameter)
    buffer = io.BytesIO()
    torch.save({"weight": parameter}, buffer)
    buffer.seek(0)
    assert isinstance(torch.load(buffer)["weight"], nn.Parameter)


def case_pinned_memory_is_remembered_by_storage() -> None:
    pinned = torch.ones(3).pin_memory()
    assert pinned.is_pinned()
    assert pinned[1:].is_pinned()
    assert not torch.ones(3).is_pinned()
    assert torch.ones(3, device=ZERO).to("cpu", non_blocking=True).is_pinned()
    assert not torch.ones(3, device=ZERO).cpu().is_pinned()
