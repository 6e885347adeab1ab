"""DVL503: several processes that train on the same data, or on the same parts of it in every epoch."""

from __future__ import annotations

from devlint.rules.base import Report, Reports, Rule, Severity
from devlint.sites.loaders import Idle, Load


class MissingDistributedSampler(Rule):
    """Processes that share a model train on the whole data set each, or on the same parts of it in every epoch.

    ## What it does
    Reports a `DataLoader` that has no `DistributedSampler` although the same function, or what it calls, wraps the
    model in `DistributedDataParallel`, and a loop trains with its batches. Also a `DistributedSampler` that shuffles,
    if the file never calls `set_epoch`; and, for those who select the rule, one that its function gives to nobody.

    ## Why it matters
    `DistributedDataParallel` averages gradients and leaves the data alone. Without a sampler that gives each process
    its part, every process goes through all of it: an epoch takes as long as with one GPU. A `DistributedSampler`
    draws its order from the number of the epoch. Unless `set_epoch` tells it that, each epoch has the same order.

    ## Example
    ```python
    def train(rank, model, dataset, optimizer):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        loader = DataLoader(dataset, batch_size=64, shuffle=True, pin_memory=True)
        for images in loader:
            model(images.to(rank, non_blocking=True)).sum().backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    def train(rank, model, dataset, optimizer):
        model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        sampler = DistributedSampler(dataset)
        loader = DataLoader(dataset, batch_size=64, sampler=sampler, pin_memory=True)
        for epoch in range(10):
            sampler.set_epoch(epoch)
            for images in loader:
                model(images.to(rank, non_blocking=True)).sum().backward()
                optimizer.step()
    ```

    ## When it stays silent
    - A `sampler` or `batch_sampler` is given, or may be given through `**kwargs`.
    - No loop is seen that trains with the batches: loaders for evaluation, or for one rank only.
    - The data set is not known to be one that a sampler can split, such as an `IterableDataset`.
    - The data set is split by rank already: something that it is made of is named after a rank or a shard, or it is a
      selection of itself, `rows = rows[mine]`.
    - The loader is made in a branch, where another one may have the sampler; Lightning and accelerate split themselves.
    - The sampler is read for anything but `set_epoch` and questions such as `sampler is None`.
    - `set_epoch`: the sampler does not shuffle, or there is no loop over epochs.

    ## Fix safety
    There is no fix.

    ## References
    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    - [DDP tutorial](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
    """

    code = "DVL503"

    def judge(self, site: Load | Idle) -> Reports:
        """A report about the loader, or about its sampler."""
        if isinstance(site, Idle):
            yield Report(
                "no loader gets this `DistributedSampler`: every process goes through the whole data set",
                label="divides nothing",
                severity=Severity.INFO,
                steps=() if site.told is None else (site.told,),
                help="pass it to the loader: `sampler=sampler`",
                asked=True,
            )
            return
        if site.training is None:
            return
        training = site.training
        if training.whole and training.wrapped is not None:
            loader = site.loader.rpartition(".")[2]
            yield Report(
                f"every process trains on the whole data set: this `{loader}` has no `DistributedSampler`",
                label="the same samples in every process",
                steps=(training.wrapped,),
                help="pass `sampler=DistributedSampler(dataset)` instead of `shuffle=True`, and call its `set_epoch`",
            )
        elif training.sampler is not None and training.epochs is not None:
            yield Report(
                "this `DistributedSampler` shuffles alike in every epoch: nothing calls its `set_epoch`",
                node=training.sampler.node,
                label="draws its order from the number of the epoch",
                steps=(training.epochs,),
                help="call `sampler.set_epoch(epoch)` at the beginning of each epoch",
            )
