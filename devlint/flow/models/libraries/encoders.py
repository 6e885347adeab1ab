"""What prepares text, images and sound for a network, and is told `return_tensors="pt"`, as transformers has it."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Device, Predicate, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, ObjectModel
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, Tensor
from devlint.flow.domain.values import Const, Value
from devlint.sites.base import Step

TOKENIZER = "transformers.PreTrainedTokenizerBase"
_ENCODER = re.compile(r"transformers\.\w*Tokenizer(?:Fast)?")
_AS_TENSORS = "pt"
"""The value of `return_tensors` that asks for tensors of torch."""
_AS_IDS = frozenset({"encode"})
"""The methods of tokenizers that return one tensor."""


def loaded(call: Call, path: str) -> Value | None:
    """A tokenizer that ``X.from_pretrained(...)`` loads; ``None`` where it loads anything else."""
    return Stateful(TOKENIZER, node=call.node) if _ENCODER.fullmatch(path.rpartition(".")[0]) else None


def makes_tensors(call: Call) -> bool:
    """Whether a call asks for tensors of torch, and for no device."""
    asked = call.keywords.get("return_tensors")
    return isinstance(asked, Const) and asked.value == _AS_TENSORS and "device" not in call.keywords and not call.open


def encoded(frame: Frame, call: Call) -> Value:
    """What something unknown makes: on the CPU, unless it was given tensors that are elsewhere."""
    at = frame.at(call.node)
    given = device.symbol(f"{frame.name}:given@{at}", frame.interpreter.text(call.node), Role.INPUT)
    place = device.choice(Predicate(f"{frame.name}: made of host memory @{at}"), device.IMPLIED_CPU, given)
    return _batch(frame, call, place)


def _batch(frame: Frame, call: Call, place: Device) -> Batches:
    batch = Batches((), place, certain=True, makers=(call.node,), origin=_origin(call))
    # not the one that this call made before
    frame.state.forget(batch)
    return batch


def _origin(call: Call) -> Origin:
    return Origin((Step(call.node, "made of text on the CPU here"),))


class _Tokenizer(ObjectModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """Tensors of the CPU, by name."""
        return _batch(frame, call, device.CPU) if makes_tensors(call) else None

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        if not makes_tensors(call):
            return None
        one = node.attr in _AS_IDS
        return Tensor(device.CPU, many=True, origin=_origin(call)) if one else _batch(frame, call, device.CPU)


CLASSES.register({TOKENIZER: _Tokenizer()})
