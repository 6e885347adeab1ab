"""Records made by hand, and what the rules say of them."""

from __future__ import annotations

from typing import Any

from devlint.auditor.judgement.judge import judge
from devlint.config.schema import Config, RuleLayer
from devlint.record import (
    Event,
    Frame,
    Loader,
    Process,
    Record,
    Steady,
    Steps,
    Stray,
)
from tests.auditor.script import Script

EVERY_RULE = Config(rule_layers=(RuleLayer(select=("ALL",)),))


BATCH = 4096


STEPS = 10


TRAIN = """
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.ones(3)
            self.heads = [nn.Linear(3, 2), nn.Linear(3, 2)]

        def forward(self, x):
            x = x - self.mean.to(x.device)
            return self.heads[0](x)


    def train(dataset, model, device, weights, options):
        loader = DataLoader(dataset, batch_size=64)
        pinned = DataLoader(dataset, pin_memory=True)
        unpinned = DataLoader(dataset, pin_memory=False)
        given = DataLoader(dataset, **options)
        optimizer = torch.optim.Adam(model.parameters())
        model.to(device)
        parallel = nn.DataParallel(model)
        model = DDP(model, device_ids=[0])
        for images in loader:
            images = images.to(device)
            images = images.to(device, torch.float16)
            loss = model(images) + images * weights.to(device)
            output = loss.to("cpu", non_blocking=True)
            print(loss.item())
            torch.cuda.empty_cache()
            kept = output.cpu()
"""


def copy(frame: Frame, steps: int = STEPS, **fields: Any) -> Event:
    """A copy of a batch from pageable memory at each training step."""
    values: dict[str, Any] = {
        "kind": "copy",
        "name": "copy_",
        "phase": "train",
        "source": "cpu",
        "target": "cuda:0",
        "pinned": False,
        "blocking": True,
        "calls": steps,
        "bytes": steps * BATCH,
        "steps": steps,
        "steady": Steady(calls=1, bytes=BATCH),
    }
    return Event(frame=frame, **(values | fields))


def run(*events: Event, steps: int = STEPS, **fields: Any) -> Record:
    """A run of one process."""
    return Record(processes=(Process(pid=1, device="cuda:0", events=events, steps=Steps(train=steps), **fields),))


def findings(record: Record, config: Config | None = EVERY_RULE) -> list[dict[str, Any]]:
    found = judge(record, config).findings
    assert found is not None
    return list(found)


def codes(record: Record) -> list[str]:
    return [finding["code"] for finding in findings(record)]


def only(record: Record) -> dict[str, Any]:
    (finding,) = findings(record)
    return finding


# -- DVL301 ----------------------------------------------------------------------------------------------------------


def loading(script: Script, made: str, event: dict[str, Any] | None = None, **fields: Any) -> Record:
    """A run whose loader, made at ``made``, has its batches copied at each step."""
    values: dict[str, Any] = {
        "name": "torch.utils.data.DataLoader",
        "device": "cpu",
        "pinned": False,
        "batches": STEPS,
        "training": True,
    }
    loader = Loader(frame=script.at(made), **(values | fields))
    return run(copy(script.at("images.to(device)"), loader=0, **(event or {})), loaders=(loader,))


# -- DVL101 and DVL104 -----------------------------------------------------------------------------------------------

ERROR = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def stray(script: Script, **fields: Any) -> Stray:
    values: dict[str, Any] = {
        "owner": "Net",
        "path": "",
        "name": "mean",
        "kind": "tensor",
        "device": "cpu",
        "owner_device": "cuda:0",
        "example": "float32[3]",
        "frame": script.at("self.mean = torch.ones(3)"),
    }
    return Stray(**(values | fields))
