"""Names and arguments of other libraries that concern devices and have been given up, most for what torch has."""

from __future__ import annotations

from devlint.torch_api.rows import Api, Kind, Topic

_LIGHTNING = "pytorch_lightning.Trainer"
_APEX = "https://github.com/NVIDIA/apex#deprecated"
_TRAINER = "https://lightning.ai/docs/pytorch/stable/upgrade/from_1_9.html"
ROWS: tuple[Api, ...] = (
    *(
        Api(f"apex.amp.{name}", Kind.NOTHING, topic=Topic.AMP, reference=_APEX, note=f"`{new}` is a part of torch")
        for name, new in (("initialize", "torch.amp.autocast"), ("scale_loss", "torch.amp.GradScaler"))
    ),
    *(
        Api(f"apex.parallel.{name}", Kind.NOTHING, reference=_APEX, note=f"`{new}` is a part of torch")
        for name, new in (
            ("DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"),
            ("SyncBatchNorm", "torch.nn.SyncBatchNorm"),
            ("convert_syncbn_model", "torch.nn.SyncBatchNorm.convert_sync_batchnorm"),
        )
    ),
    *(
        Api(_LIGHTNING, Kind.NOTHING, argument=name, only=only, reference=_TRAINER, note=f"Lightning 2 {note}")
        for name, only, note in (
            ("gpus", (), 'takes `accelerator="gpu", devices=...`'),
            ("tpu_cores", (), 'takes `accelerator="tpu", devices=...`'),
            ("amp_backend", (), 'takes `precision="16-mixed"`, and knows torch alone'),
            ("accelerator", ("ddp", "ddp2", "ddp_spawn", "dp"), "takes it as `strategy`"),
        )
    ),
)
