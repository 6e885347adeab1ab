"""DVL701: mixed precision by its old names."""

from __future__ import annotations

from devlint.finding import Applicability
from devlint.rules.legacy.deprecation import DeprecatedName
from devlint.torch_api.rows import Topic


class DeprecatedCudaAmp(DeprecatedName):
    """`torch.cuda.amp` and `torch.cpu.amp` are deprecated: `torch.amp` does the same for every device.

    ## What it does
    Reports `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of `torch.cuda.amp`, and `autocast` and
    `GradScaler` of `torch.cpu.amp`, where they are called or used as decorators; it is a hint where they are handed on,
    `autocast if amp else nullcontext`. Who selects the rule by its code is also told of `amp.initialize` and
    `amp.scale_loss` of Apex, which it has given up for torch's.

    ## Why it matters
    Since torch 2.4, each of them warns: "`torch.cuda.amp.autocast(args...)` is deprecated". The new names take the
    device as an argument, so that the same code can serve other accelerators. The arguments are in another order, too:
    what was `autocast(False)` is not `autocast("cuda", False)`, which takes `False` for the dtype and leaves autocast
    on.

    ## Example
    ```python
    from torch.cuda.amp import GradScaler, autocast

    def train(model, images):
        scaler = GradScaler()
        with autocast(False):
            return scaler.scale(model(images).sum())
    ```

    ## Use instead
    ```python
    def train(model, images, device):
        scaler = torch.amp.GradScaler(device.type)
        with torch.amp.autocast(device.type, enabled=False):
            return scaler.scale(model(images).sum())
    ```

    ## When it stays silent
    - Code for several versions of torch: a `try` that handles an ImportError or AttributeError, a branch that hangs on
      `hasattr` or on the version.
    - The import alone, `isinstance` and other comparisons, and base classes.
    - `target-torch` is older than the new name: `torch.amp.autocast` came with 1.12, `torch.amp.GradScaler` with 2.3,
      `torch.amp.custom_fwd` and `torch.amp.custom_bwd` with 2.4. Without a `target-torch`, the newest torch is meant.

    ## Fix safety
    Safe: `torch.amp` is what the old names call. Positional arguments become keywords, the device is named, and the new
    name is written in full, so that no other name changes its meaning. Arguments that come through `*` are left alone.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code = "DVL701"
    fixes = (Applicability.SAFE,)
    topic = Topic.AMP
