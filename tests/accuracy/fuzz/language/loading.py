"""Loaders over data on the CPU or on the device, and training with them."""

from __future__ import annotations

from tests.accuracy.fuzz.language.expressions import move, simple, wanted
from tests.accuracy.fuzz.writer import CPU, CUDA, INDEX, LOADER, MATRIX, MODULE, NET, SCALAR, Writer


def define(w: Writer) -> None:
    """A loader of pairs of tensors."""
    place = CPU if w.chance(60) else CUDA
    data, _ = simple(w, MATRIX, place)
    labels, _ = simple(w, INDEX, place)
    name = w.fresh("loader")
    w.use(f"loader: data probably on {place}")
    dataset = f"TensorDataset(torch.cat([{data}] * 2), torch.cat([{labels}] * 2))"
    spare = "TensorDataset(torch.ones(8, 4), torch.arange(8) % 4)"
    if w.chance(30):
        kept = w.fresh("dataset")
        w.line(f"{kept} = {dataset}", f"{kept} = {spare}")
        dataset = spare = kept
    w.line(f"{name} = DataLoader({dataset}, batch_size=4)", f"{name} = DataLoader({spare}, batch_size=4)")
    w.declare(name, LOADER, place, fixed=True)


def loop(w: Writer) -> None:
    """A loop over a loader's batches."""
    from tests.accuracy.fuzz.language.statements import body

    loader = w.pick(LOADER)
    if loader is None:
        return
    data, labels = w.fresh("x"), w.fresh("y")
    w.use("loader: loop")
    form = w.number(0, 2)
    if form == 2:
        header = f"for {w.fresh('n')}, ({data}, {labels}) in enumerate({loader.text}):"
    elif form == 1:
        header = f"for batch in {loader.text}:"
    else:
        header = f"for {data}, {labels} in {loader.text}:"
    with w.block(header):
        if form == 1:
            w.line(w.choose((f"{data}, {labels} = batch", f"{data}, {labels} = batch[0], batch[1]")))
        w.declare(data, MATRIX, loader.place)
        w.declare(labels, INDEX, loader.place)
        if w.chance(50):
            call, place = move(w, CUDA)
            w.bind(data, MATRIX, f"{data}{call}", place)
        body(w, 1, 3)


def train(w: Writer) -> None:
    """A training loop with an optimizer."""
    loader, net = w.pick(LOADER), w.pick(NET) or w.pick(MODULE)
    if loader is None or net is None:
        return
    data, labels, loss = w.fresh("x"), w.fresh("y"), w.fresh("loss")
    w.use("training loop")
    with w.block(f"for {data}, {labels} in {loader.text}:"):
        w.declare(data, MATRIX, loader.place)
        w.declare(labels, INDEX, loader.place)
        if w.chance(70):
            call, place = move(w, net.place, INDEX)
            w.line(f"{data}, {labels} = {data}{call}, {labels}{call if w.chance(80) else ''}")
            w.declare(data, MATRIX, place)
        w.bind(loss, SCALAR, f"F.cross_entropy({net.text}({data}), {labels})", net.place)
        if w.chance(50):
            weight, _ = simple(w, SCALAR, wanted(w, net.place))
            w.line(f"{loss} = {loss} * {weight}", f"{loss} = {loss} * 1")
        w.line(f"print({loss}.item())")
