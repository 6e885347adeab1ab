"""What libraries call those things for which the interpreter has values and conditions of its own."""

from __future__ import annotations

import re

ARRAY = "numpy.ndarray"
DEVICE = "torch.device"
GENERATOR = "torch.Generator"
CPU_GENERATORS = frozenset({"torch.default_generator", "torch.random.default_generator"})
"""Generators that are there without having been made."""
TENSOR = "torch.Tensor"
METHOD = f"{TENSOR}."
"""How the names of its methods begin."""
NUMPY = f"{TENSOR}.numpy"
VARIABLE = "torch.autograd.Variable"
DEFAULT_DTYPE = "torch.float32"
PARAMETER = "torch.nn.Parameter"
MEMBERS = frozenset({PARAMETER, "torch.nn.Buffer"})
"""What makes a tensor a part of a module."""
MODULE = "torch.nn.Module"
MODULE_ANNOTATIONS = frozenset({"Module", "nn.Module", MODULE})
NN = "torch.nn"
LOAD = "torch.load"
LOADERS = {LOAD: 2, "torch.hub.load_state_dict_from_url": 3, "torch.utils.model_zoo.load_url": 3}
"""The functions that read what was saved, each with the position of `map_location` among its parameters."""
FROM_NUMPY = "torch.from_numpy"
SETS_STATE = frozenset(
    f"torch.{name}set_rng_state{several}"
    for name in ("", "random.", "cuda.", "cuda.random.")
    for several in ("", "_all")
)
"""What takes the state of a generator, a tensor of the CPU even for that of a GPU."""
SEED = "torch.manual_seed"
SEEDS = frozenset({SEED, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"})
"""They wait until there is an accelerator, and the first seeds all that there are."""
FLUSH = "torch.cuda.empty_cache"
"""It does nothing without an accelerator."""
CUDNN_SETTINGS = "torch.backends.cudnn."
DISTRIBUTED_SAMPLER = "torch.utils.data.distributed.DistributedSampler"
"""The sampler that gives each process a part of a data set."""
IS_TENSOR = "torch.is_tensor"
"""The function that asks what ``isinstance`` does."""
LOADER = "torch.utils.data.DataLoader"
OPTIMIZERS = "torch.optim."
"""How the names of optimizers begin."""
DISTRIBUTED = "torch.distributed"
MAKES_GROUP = f"{DISTRIBUTED}.init_process_group"
ENDS_GROUP = "destroy_process_group"
ASKS_GROUP = frozenset(f"{DISTRIBUTED}.{name}" for name in ("get_rank", "get_world_size", "get_backend"))
"""What raises as long as there is no process group."""
ACCELERATOR = "accelerate.Accelerator"
"""The class whose ``prepare`` places what it is given."""
COLLECTIVES = frozenset(
    (
        *(
            f"{DISTRIBUTED}.{name}"
            for name in """all_reduce broadcast reduce all_gather all_gather_into_tensor gather reduce_scatter
            reduce_scatter_tensor all_to_all all_to_all_single send recv isend irecv""".split()
        ),
        *(f"{ACCELERATOR}.{name}" for name in ("gather", "gather_for_metrics", "reduce")),
    )
)
"""What NCCL carries out between accelerators only."""
DEFAULT_DTYPES = frozenset({"torch.float32", "torch.float"})
"""The type of most numbers that have gradients."""
IS_AVAILABLE = "torch.cuda.is_available"
AVAILABILITY = re.compile(
    r"torch\.(?:cuda|accelerator|xpu|backends\.mps|mps|npu)\."
    r"(?:is_available|is_initialized|device_count|is_built|is_bf16_supported)"
)
"""What asks for an accelerator, or counts them."""
RECORDING = re.compile(
    r"(?:^torch\.jit\.is_scripting|^torch\.jit\.is_tracing|\.is_in_onnx_export|\._get_tracing_state"
    r"|\.is_torch_fx_proxy|\.is_fx_tracing|\.is_symbolic_tracing)$"
)
"""What asks whether a compiler records the code, which Python then does not run as it is written."""
TRANSPARENT_DECORATORS = ("no_grad", "inference_mode", "torch.jit.script")
"""How decorators end that leave a function as it is."""
INERT_DECORATORS = frozenset({
    "staticmethod", "classmethod", "property", "functools.wraps", "functools.cache", "functools.lru_cache",
    "functools.cached_property", "functools.total_ordering", "contextlib.contextmanager", "dataclasses.dataclass",
    "contextlib.asynccontextmanager", "abc.abstractmethod", "typing.final", "typing.override", "numba.jit",
    "numba.njit", "torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled",
    "torch.compile", "torch.jit.script", "torch.jit.script_method", "torch.jit.ignore", "torch.jit.unused",
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.custom_bwd", "torch.amp.custom_fwd", "torch.amp.custom_bwd",
    "torch.autograd.function.once_differentiable",
})  # fmt: skip
"""Decorators that tell nobody of what they decorate."""
SHORT_NAMES = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional"}
"""What everybody calls parts of torch, where the import cannot be seen."""
FRAGMENT_NAMES = {
    **SHORT_NAMES,
    "np": "numpy",
    "optim": "torch.optim",
    "autocast": "torch.amp.autocast",
    "DataLoader": LOADER,
    "DataParallel": "torch.nn.DataParallel",
    "DDP": "torch.nn.parallel.DistributedDataParallel",
    "DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "DistributedSampler": DISTRIBUTED_SAMPLER,
    "GradScaler": "torch.amp.GradScaler",
}
"""The same in a part of a program, such as an example of a documentation, which does not say where they are from."""
