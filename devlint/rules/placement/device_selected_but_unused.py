"""DVL113: an accelerator is chosen, and then nothing is put there."""

from __future__ import annotations

from devlint.rules.base import Report, Reports, Rule
from devlint.sites.placement import UnusedDevice


class DeviceSelectedButUnused(Rule):
    """A device is chosen and never used, so that the training runs on the CPU.

    ## What it does
    Reports `device = "cuda" if torch.cuda.is_available() else "cpu"`, and its like, where nobody reads the name but to
    print it, and the code beside it trains a network, or loads batches for one, and moves nothing.

    ## Why it matters
    Nothing fails: the log says "Using device: cuda", and the network and its batches stay on the CPU, where training
    takes many times as long.

    ## Example
    ```python
    def train(dataset):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(dataset, pin_memory=True):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    def train(dataset):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(dataset, pin_memory=True):
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## When it stays silent
    - The name is read: passed on, returned, used by a function of the file.
    - It is meant for others: a constant of a file that does not train, an attribute of a class, `__all__`, `global`.
    - The file places something in another way: `.cuda()`, `.to(...)`, a default device, Lightning, accelerate.

    ## Fix safety
    There is no fix: the model and every batch have to be moved.

    ## References
    - [CUDA semantics: device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code)
    """

    code = "DVL113"

    def judge(self, site: UnusedDevice) -> Reports:
        """A report for each device that is chosen in vain."""
        verb = "used" if site.shown is None else "more than printed"
        yield Report(
            f"`{site.name}` is chosen and never {verb}: the network and its batches stay on the CPU",
            label="nothing is put there",
            steps=(site.works,) if site.shown is None else (site.shown, site.works),
            help=f"move the network and each batch: `.to({site.name})`",
        )
