"""What `torch.cuda`, `torch.accelerator` and `torch.backends` answer."""

from __future__ import annotations

import os

import torch

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"


@idiom("the choice of a device")
def _() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert device.type == "cuda"
    assert torch.cuda.device_count() == 2
    assert torch.backends.cuda.is_built()
    assert torch.version.cuda
    assert torch.cuda.is_initialized() in (True, False)


@idiom("what the card says of itself")
def _() -> None:
    assert torch.cuda.get_device_name() == torch.cuda.get_device_name("cuda:1") == "devlint simulated GPU"
    assert torch.cuda.get_device_capability(0) == (8, 0)
    properties = torch.cuda.get_device_properties(torch.device("cuda"))
    assert properties.total_memory == 80 * 1024**3
    assert (properties.major, properties.minor) == (8, 0)
    assert properties.multi_processor_count == 108
    assert str(properties).startswith("_CudaDeviceProperties(name='devlint simulated GPU', major=8, minor=0, total_mem")
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.is_tf32_supported()
    assert "sm_80" in torch.cuda.get_arch_list()
    assert torch.cuda.can_device_access_peer(0, 1)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == properties.total_memory


@idiom("the current device")
def _() -> None:
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    try:
        assert torch.zeros(1, device=d).device.index == 1
        assert torch.zeros(1).cuda().device.index == 1
        assert torch.tensor([1.0], device="cuda").device.index == 1
        assert torch.nn.Linear(1, 1).to("cuda").weight.device.index == 1
        assert torch.zeros(1).to(torch.device("cuda")).get_device() == 1
    finally:
        torch.cuda.set_device("cuda:0")
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device=d).get_device() == 1
        with torch.cuda.device("cuda:0"):
            assert torch.cuda.current_device() == 0
        with torch.cuda.device(-1):
            assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.current_device() == 0


@idiom("each thread has its own current device")
def _() -> None:
    import threading

    seen: list[int] = []
    torch.cuda.set_device(1)
    try:
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
        thread.start()
        thread.join()
    finally:
        torch.cuda.set_device(0)
    assert seen == [0]


@idiom("memory")
def _() -> None:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1024, 1024, device=d)
    assert torch.cuda.memory_allocated() - before == 4 << 20
    y = x.view(-1)
    assert torch.cuda.memory_allocated() - before == 4 << 20
    assert torch.cuda.memory_allocated(1) == 0
    del x
    assert torch.cuda.memory_allocated() - before == 4 << 20
    del y
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4 << 20
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    assert "CUDA memory" in torch.cuda.memory_summary() or "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    assert torch.cuda.memory_stats()["num_ooms"] == 0
    assert torch.cuda.max_memory_reserved() >= 0
    torch.cuda.empty_cache()
    torch.cuda.reset_max_memory_allocated()
    torch.cuda.reset_accumulated_memory_stats()
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert torch.cuda.memory_snapshot() == []
    assert torch.cuda.get_allocator_backend() == "native"
    torch.cuda.ipc_collect()
    torch.cuda.memory._record_memory_history(max_entries=10)
    torch.cuda.memory._record_memory_history(enabled=None)


@idiom("streams")
def _() -> None:
    stream = torch.cuda.Stream()
    default = torch.cuda.current_stream()
    assert default == torch.cuda.default_stream()
    assert stream != default
    assert isinstance(stream, torch.Stream)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        x = torch.randn(3, device=d)
    assert torch.cuda.current_stream() == default
    with stream:
        assert torch.cuda.current_stream() == stream
    assert torch.cuda.current_stream() == default
    torch.cuda.current_stream().wait_stream(stream)
    stream.wait_event(default.record_event())
    stream.synchronize()
    x.record_stream(stream)
    assert stream.query()
    assert torch.cuda.Stream(device="cuda:1").device == torch.device("cuda", 1)
    assert torch.cuda.Stream(priority=-1).priority == -1
    assert stream.cuda_stream != 0
    assert "torch.cuda.Stream device=cuda:0" in repr(stream)
    with torch.cuda.stream(None):
        pass
    with torch.cuda.stream(torch.cuda.Stream(device=1)):
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    torch.cuda.set_stream(stream)
    assert torch.cuda.current_stream() == stream
    torch.cuda.set_stream(default)


@idiom("events")
def _() -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(10, device=d).sum()
    end.record(torch.cuda.current_stream())
    torch.cuda.synchronize()
    end.synchronize()
    assert start.elapsed_time(end) > 0
    assert end.query()
    torch.cuda.Event().wait()
    torch.cuda.current_stream().wait_event(end)


@idiom("streams and events of any accelerator")
def _() -> None:
    stream = torch.Stream(device="cuda")
    assert stream.device == torch.device("cuda:0")
    assert isinstance(stream, torch.Stream)
    assert torch.Stream(1).device.index == 1
    event = torch.Event("cuda", enable_timing=True)
    event.record()
    assert isinstance(event, torch.Event)
    assert torch.accelerator.current_stream().device == torch.device("cuda:0")
    with stream:
        assert torch.accelerator.current_stream() == stream


@idiom("waiting for the device")
def _() -> None:
    torch.cuda.synchronize()
    torch.cuda.synchronize(1)
    torch.cuda.synchronize("cuda:0")
    torch.cuda.synchronize(device=torch.device("cuda"))
    torch.accelerator.synchronize()


@idiom("modes of sync debugging")
def _() -> None:
    torch.cuda.set_sync_debug_mode("warn")
    assert torch.cuda.get_sync_debug_mode() == 1
    torch.cuda.set_sync_debug_mode(0)
    assert torch.cuda.get_sync_debug_mode() == 0


@idiom("torch.accelerator")
def _() -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.current_accelerator(check_available=True).type == "cuda"
    assert torch.accelerator.device_count() == 2
    assert torch.accelerator.current_device_index() == 0
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
        assert torch.cuda.current_device() == 1
    torch.accelerator.set_device_index(1)
    torch.accelerator.set_device_index(0)
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_allocated() == torch.cuda.memory_allocated()
    assert torch.accelerator.get_memory_info()[1] == 80 * 1024**3
    assert torch.get_device_module("cuda") is torch.cuda
    assert torch.get_device_module() is torch.cuda


@idiom("seeds")
def _() -> None:
    torch.manual_seed(0)
    torch.cuda.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    assert torch.cuda.initial_seed() == 0
    torch.cuda.seed()
    torch.cuda.seed_all()
    torch.manual_seed(3)
    a = torch.rand(3, device=d)
    torch.manual_seed(3)
    assert torch.equal(a, torch.rand(3, device=d))
    with torch.random.fork_rng():
        torch.rand(3, device=d)


@idiom("seeds of the device alone")
def _() -> None:
    torch.manual_seed(1)
    torch.cuda.manual_seed(7)
    a = torch.rand(3, device=d)
    torch.cuda.manual_seed(7)
    assert torch.equal(a, torch.rand(3, device=d))
    torch.manual_seed(1)
    torch.cuda.manual_seed(7)
    b = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(b, torch.rand(3))


@idiom("states of random numbers")
def _() -> None:
    state = torch.cuda.get_rng_state()
    a = torch.rand(3, device=d)
    torch.cuda.set_rng_state(state)
    assert torch.equal(a, torch.rand(3, device=d))
    states = torch.cuda.get_rng_state_all()
    assert len(states) == 2
    torch.cuda.set_rng_state_all(states)
    assert torch.cuda.get_rng_state("cuda:1").dtype == torch.uint8
    torch.manual_seed(0)


@idiom("generators")
def _() -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)
    assert generator.device.type == "cuda"
    a = torch.randn(3, device=d, generator=generator)
    generator.manual_seed(0)
    assert torch.equal(a, torch.randn(3, device=d, generator=generator))
    assert torch.rand_like(a, generator=generator).is_cuda
    assert a.uniform_(generator=generator).is_cuda
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.Generator("cpu").device.type == "cpu"
    state = generator.get_state()
    a = torch.rand(3, device=d, generator=generator)
    generator.set_state(state)
    assert torch.equal(a, torch.rand(3, device=d, generator=generator))
    torch.randint(0, 5, (3,), device=d, generator=generator)
    torch.randperm(5, device=d, generator=generator)
    torch.empty(3, device=d).normal_(generator=generator)
    torch.multinomial(torch.ones(3, device=d), 2, generator=generator)
    torch.bernoulli(torch.full((3,), 0.5, device=d), generator=generator)
    assert len(torch.cuda.default_generators) == 2


@idiom("switches of the backends")
def _() -> None:
    torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.deterministic = False
    assert torch.backends.cudnn.enabled
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.version() > 90000
    with torch.backends.cudnn.flags(enabled=False):
        assert not torch.backends.cudnn.enabled
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    torch.backends.cuda.enable_flash_sdp(True)
    assert torch.backends.cuda.flash_sdp_enabled()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        q = torch.randn(1, 1, 2, 4, device=d)
        torch.nn.functional.scaled_dot_product_attention(q, q, q)


@idiom("ranges and marks for profilers")
def _() -> None:
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.mark("b")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("c"):
        pass
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()
    with torch.autograd.profiler.emit_nvtx():
        torch.ones(2, device=d)


@idiom("the CUDA runtime")
def _() -> None:
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaProfilerStart())
    assert runtime.cudaMemGetInfo(0)[1] == 80 * 1024**3


@idiom("devices that are hidden by the script")
def _() -> None:
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    try:
        from devlint.simulator import devices

        assert devices.visible() == 1
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        if before is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


@idiom("names, docs and signatures are torch's")
def _() -> None:
    import inspect

    assert torch.Tensor.to.__name__ == "to"
    assert "device conversion" in (torch.Tensor.to.__doc__ or "")
    assert torch.Tensor.cuda.__name__ == "cuda"
    assert torch.tensor.__name__ == "tensor"
    assert list(inspect.signature(torch.cuda.synchronize).parameters) == ["device"]
    assert list(inspect.signature(torch.compile).parameters)[:2] == ["model", "fullgraph"]
    assert inspect.isfunction(torch.cuda.synchronize)
    assert inspect.isfunction(torch.cuda.Stream.synchronize)
    assert inspect.isfunction(torch.cuda.Event.synchronize)
    assert torch.cuda.FloatTensor.__module__ == "torch.cuda"
    assert torch.Generator.__name__ == "Generator"


@idiom("streams of other libraries")
def _() -> None:
    own = torch.cuda.Stream()
    for stream in (torch.cuda.ExternalStream(own.cuda_stream), torch.cuda.get_stream_from_external(own.cuda_stream)):
        assert stream.cuda_stream == own.cuda_stream
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream().cuda_stream == own.cuda_stream


@idiom("settings of CUDA's libraries are kept")
def _() -> None:
    from torch.cuda import tunable

    tunable.enable(True)
    tunable.set_max_tuning_duration(5)
    assert tunable.is_enabled()
    assert tunable.get_max_tuning_duration() == 5
    assert tunable.get_results() == ()
    assert not tunable.record_untuned_is_enabled()
    plans = torch.backends.cuda.cufft_plan_cache
    assert (plans.size, plans.max_size) == (0, 4096)
    plans[1].max_size = 10
    plans.clear()
    assert [cache.max_size for cache in (plans[0], plans[1])] == [4096, 10]
    torch.backends.cuda.preferred_linalg_library("cusolver")
    assert torch.backends.cuda.preferred_linalg_library() == torch._C._LinalgBackend.Cusolver
    torch.backends.cuda.preferred_linalg_library("default")
    torch._C._cuda_clearCublasWorkspaces()


@idiom("storages are made on the device")
def _() -> None:
    storage = torch.UntypedStorage(8, device=d)
    assert storage.is_cuda
    assert storage.device == torch.device("cuda:0")
    assert torch.cuda.FloatStorage(3).device.type == "cuda"
    x = torch.empty(0, device=d).set_(storage, 0, (2,))
    x.fill_(3)
    assert x.tolist() == [3, 3]
    assert torch.UntypedStorage(8).device.type == "cpu"


@idiom("a profiler of the device only")
def _() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        torch.ones(2, device=d).sum()
    assert profiler.key_averages() is not None


@idiom(
    "functions compiled from C++ are named, and why",
    raises="devlint does not simulate torch.cuda.jiterator: it compiles C++ for a card, and there is none",
)
def _() -> None:
    double = torch.cuda.jiterator._create_jit_fn("template <typename T> T double_it(T x) { return 2 * x; }")
    double(torch.ones(2, device=d))


@idiom("broadcast, scatter, gather and sum over devices")
def _() -> None:
    from torch.cuda import comm

    x = torch.arange(4.0, device=d)
    assert [y.device.index for y in comm.broadcast(x, (0, 1))] == [0, 1]
    assert [y.device.index for (y,) in comm.broadcast_coalesced([x], (0, 1))] == [0, 1]
    parts = comm.scatter(x, (0, 1))
    assert [y.tolist() for y in parts] == [[0, 1], [2, 3]]
    assert torch.equal(comm.gather(parts), x)
    assert comm.reduce_add(parts).tolist() == [2, 4]
    assert comm.reduce_add_coalesced([[y] for y in parts])[0].tolist() == [2, 4]


@idiom("forward derivatives")
def _() -> None:
    x = torch.ones(2, device=d)
    value, tangent = torch.func.jvp(lambda x: x * 2, (x,), (x,))
    assert value.is_cuda
    assert tangent.tolist() == [2, 2]
    assert torch.func.jacfwd(lambda x: x.pow(3))(x).tolist() == [[3, 0], [0, 3]]


@idiom("drivers of a singular value decomposition")
def _() -> None:
    for driver in ("gesvd", "gesvdj", "gesvda", None):
        assert torch.linalg.svd(torch.eye(3, device=d), driver=driver).S.is_cuda
        assert torch.linalg.svdvals(torch.eye(3, device=d), driver=driver).tolist() == [1, 1, 1]
