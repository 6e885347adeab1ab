"""What reads sound and images into tensors: it makes them on the CPU, whatever it is given."""

from __future__ import annotations

from devlint import device
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, MODELS, ObjectModel
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Sequence, Value
from devlint.sites.base import Step

_READ = {
    "torchaudio.load": 1,
    "torchvision.io.read_video": 2,
    "torchvision.io.video.read_video": 2,
}
"""How many tensors stand first in the tuple that a function returns; at last there is something else."""
_PICTURES = frozenset({"torchvision.transforms.ToTensor", "torchvision.transforms.PILToTensor"})
"""What makes a tensor of an image in the host's memory, and takes no tensor."""


def _origin(call: Call) -> Origin:
    return Origin((Step(call.node, "read into tensors on the CPU here"),))


def _read(frame: Frame, call: Call, path: str) -> Value:
    tensor = Tensor(device.CPU, many=True, origin=_origin(call))
    return Sequence((*[tensor] * _READ[path], UNKNOWN), UNKNOWN)


def _transform(frame: Frame, call: Call, path: str) -> Value:
    return Stateful(path, node=call.node)


class _Picture(ObjectModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value:
        """A tensor made of an image."""
        return Tensor(device.CPU, many=True, origin=_origin(call))


MODELS.register({**dict.fromkeys(_READ, _read), **dict.fromkeys(_PICTURES, _transform)})
CLASSES.register(dict.fromkeys(_PICTURES, _Picture()))
