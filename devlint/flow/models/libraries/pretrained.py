"""Networks with trained weights, as transformers and diffusers load them: on the CPU, unless the call says more."""

from __future__ import annotations

import re

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.objects import Module
from devlint.flow.domain.values import UNKNOWN, Value, is_none
from devlint.flow.models.nn import construction
from devlint.flow.program.identity import identity

_NETWORK = re.compile(
    r"transformers\.(?:models\.[\w.]+\.)?(?!(?:TF|Flax)[A-Z])\w+(?:Model|For[A-Z]\w+|LMHead\w*)"
    r"|diffusers\.(?:models\.[\w.]+\.)?(?!Flax)(?:\w+Model|AutoencoderKL)"
)
"""Classes of networks, as both libraries name them; not of those for TensorFlow or JAX."""
_PLACED_BY = ("device_map", "quantization_config", "load_in_8bit", "load_in_4bit", "tp_plan", "device_mesh", "config")
"""Arguments that may put what is loaded somewhere else; a configuration may ask for quantized weights."""


def network(frame: Frame, call: Call, path: str) -> Value:
    """The network that ``X.from_pretrained(...)`` loads; unknown where something may place it, or what it loads."""
    name = path.rpartition(".")[0]
    asked = (call.keywords.get(argument) for argument in _PLACED_BY)
    if not _NETWORK.fullmatch(name) or call.open or not all(value is None or is_none(value) for value in asked):
        return UNKNOWN
    module = Module(identity(), name, text=name.rpartition(".")[2])
    frame.put(module, *construction.made_on(frame, call, module))
    return module
