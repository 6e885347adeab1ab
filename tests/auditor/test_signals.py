"""Loops of real scripts and frameworks, on the CPU: the steps that are seen, and a run that --steps stops.

All data sets hold 32 samples in batches of 8, so that an epoch has 4 of them.
"""

from __future__ import annotations

import gc
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 -- needs torch
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402 -- needs torch

from devlint.auditor.loaders import Loaders  # noqa: E402 -- needs torch
from devlint.auditor.session import Session, Settings  # noqa: E402 -- needs torch
from devlint.auditor.signals import Signals  # noqa: E402 -- needs torch
from devlint.auditor.steps import StepsReached  # noqa: E402 -- keeps the imports together
from devlint.record import Ending, Process, Steps  # noqa: E402 -- keeps the imports together

cross_entropy = nn.functional.cross_entropy


@contextmanager
def audited(steps: int | None = None) -> Iterator[Session]:
    """A session that hears of steps and loaders alone, and of calls of outermost modules."""
    session = Session(Settings(steps=steps))
    loaders = Loaders(session)
    session.start([loaders, Signals(session, loaders)])
    depth = [0]

    def enter(module: object, inputs: object) -> None:
        if not depth[0]:
            session.forward_seen()
        depth[0] += 1

    def leave(module: object, inputs: object, output: object) -> None:
        depth[0] -= 1

    handles = [
        nn.modules.module.register_module_forward_pre_hook(enter),
        nn.modules.module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield session
    finally:
        for handle in handles:
            handle.remove()
        session.stop()
        assert not session.failure


def data() -> TensorDataset:
    numbers = torch.arange(128, dtype=torch.float32).reshape(32, 4) / 128
    return TensorDataset(numbers, torch.arange(32) % 2)


def net() -> nn.Module:
    return nn.Linear(4, 2)


def sgd(*models: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([parameter for model in models for parameter in model.parameters()], 0.1)


def plain() -> None:
    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(data(), 8):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()


def two_epochs_and_validation() -> None:
    model = net()
    optimizer = sgd(model)
    training, validation = DataLoader(data(), 8), DataLoader(data(), 16)
    for _ in range(2):
        for x, y in training:
            cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, _ in validation:
                model(x)


def accumulation() -> None:
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        if number % 2:
            optimizer.step()


def scaler() -> None:
    model = net()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu")
    for x, y in DataLoader(data(), 8):
        scaler.scale(cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()


def closures() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    for x, y in DataLoader(data(), 8):

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def closures_without_a_loader() -> None:
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = data().tensors

    def closure() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)


def adversaries() -> None:
    generator, critic = net(), net()
    first, second = torch.optim.Adam(critic.parameters()), torch.optim.Adam(generator.parameters())
    for x, _ in DataLoader(data(), 8):
        critic(x).sum().backward()
        first.step()
        generator(x).sum().backward()
        second.step()


def evaluation() -> None:
    model = net().eval()
    with torch.no_grad():
        for x, _ in DataLoader(data(), 8):
            model(x)


def forces() -> None:
    """A gradient by the inputs is no training."""
    model = net().eval()
    for x, _ in DataLoader(data(), 8):
        x.requires_grad_()
        torch.autograd.grad(model(x).sum(), x)


def by_hand() -> None:
    model = net()
    for x, y in DataLoader(data(), 8):
        grads = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter -= 0.1 * grad


def by_hand_without_a_loader() -> None:
    model = net()
    x, y = data().tensors
    for _ in range(4):
        cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad


def own_optimizer() -> None:
    class Descent(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

        def step(self, closure: Any = None) -> None:
            with torch.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter -= 0.1 * parameter.grad

    model = net()
    optimizer = Descent(model.parameters())
    for x, y in DataLoader(data(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()


def in_backward() -> None:
    model = net()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

    def step(parameter: Any) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    hooks = [parameter.register_post_accumulate_grad_hook(step) for parameter in model.parameters()]
    try:
        for x, y in DataLoader(data(), 8):
            cross_entropy(model(x), y).backward()
    finally:
        for hook in hooks:
            hook.remove()  # the optimizers would never be freed


def scheduled() -> None:
    model = net()
    optimizer = sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for x, y in DataLoader(data(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


def endless() -> None:
    def cycle(loader: Any) -> Iterator[Any]:
        while True:
            yield from loader

    model = net()
    optimizer = sgd(model)
    batches = cycle(DataLoader(data(), 8))
    for _ in range(6):
        x, y = next(batches)
        cross_entropy(model(x), y).backward()
        optimizer.step()


def broken_off() -> None:
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        if number == 2:
            break


def validation_inside() -> None:
    """After every second step, 2 batches are validated; training goes on with the same loader."""
    model = net()
    optimizer = sgd(model)
    validation = DataLoader(data(), 16)
    for number, (x, y) in enumerate(DataLoader(data(), 8)):
        cross_entropy(model(x), y).backward()
        optimizer.step()
        if number % 2:
            with torch.no_grad():
                for other, _ in validation:
                    model(other)


def zipped() -> None:
    model = net()
    optimizer = sgd(model)
    for (x, y), (other, _) in zip(DataLoader(data(), 8), DataLoader(data(), 8), strict=True):
        (cross_entropy(model(x), y) + model(other).sum()).backward()
        optimizer.step()


def in_turns() -> None:
    """A forward after the batch of the one, then the batch of the other: one step."""
    model = net()
    optimizer = sgd(model)
    labelled, unlabelled = iter(DataLoader(data(), 8)), iter(DataLoader(data(), 8))
    for _ in range(4):
        x, y = next(labelled)
        loss = cross_entropy(model(x), y)
        other, _ = next(unlabelled)
        (loss + model(other).sum()).backward()
        optimizer.step()


def one_shot() -> None:
    model = net()
    optimizer = sgd(model)
    loader = DataLoader(data(), 8, shuffle=True)
    for _ in range(4):
        x, y = next(iter(loader))
        cross_entropy(model(x), y).backward()
        optimizer.step()


def overfitted() -> None:
    model = net()
    optimizer = sgd(model)
    batches = iter(DataLoader(data(), 8))
    x, y = next(batches)
    for _ in range(5):
        cross_entropy(model(x), y).backward()
        optimizer.step()


def several_updates_a_batch() -> None:
    """3 updates a batch; until the loader feeds again, the loop seems to go on without it, and 3 steps are counted."""
    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(data(), 8):
        for _ in range(3):
            cross_entropy(model(x), y).backward()
            optimizer.step()


def micro_batches() -> None:
    """As in nanoGPT: no loader, and 2 backwards per step."""
    model = net()
    optimizer = sgd(model)
    x, y = data().tensors
    for _ in range(4):
        for _ in range(2):
            cross_entropy(model(x), y).backward()
        optimizer.step()


def lookahead_thread() -> None:
    """Batches that another thread fetches are no boundaries; the optimizer's steps are."""
    from queue import Queue

    model = net()
    optimizer = sgd(model)
    queue: Queue[Any] = Queue()

    def fetch() -> None:
        for batch in DataLoader(data(), 8):
            queue.put(batch)

    thread = threading.Thread(target=fetch)
    thread.start()
    for _ in range(4):
        x, y = queue.get()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    thread.join()


def nested_data() -> None:
    """A data set that is fed by a loader of its own, and calls a module."""

    class Features(Dataset):  # type: ignore[type-arg]  # of whatever
        def __init__(self) -> None:
            self.model, self.inner = net(), iter(DataLoader(data(), 1))

        def __len__(self) -> int:
            return 32

        def __getitem__(self, index: int) -> Any:
            x, y = next(self.inner)
            with torch.no_grad():
                self.model(x)
            return x[0], y[0]

    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(Features(), 8):
        cross_entropy(model(x), y).backward()
        optimizer.step()


# expected: training steps, evaluation steps, what ended them, optimizer steps
LOOPS: dict[Callable[[], None], tuple[int, int, str, dict[str, int]]] = {
    plain: (4, 0, "loader", {"SGD": 4}),
    two_epochs_and_validation: (8, 4, "loader", {"SGD": 8}),
    accumulation: (4, 0, "loader", {"SGD": 2}),
    scaler: (4, 0, "loader", {"SGD": 4}),
    closures: (4, 0, "loader", {"LBFGS": 4}),
    closures_without_a_loader: (4, 0, "optimizer", {"LBFGS": 4}),
    adversaries: (4, 0, "loader", {"Adam": 4, "Adam 2": 4}),
    evaluation: (0, 4, "", {}),
    forces: (0, 4, "", {}),
    by_hand: (4, 0, "loader", {}),
    by_hand_without_a_loader: (4, 0, "backward", {}),
    own_optimizer: (4, 0, "loader", {"Descent": 4}),
    in_backward: (4, 0, "loader", {"SGD": 4, "SGD 2": 4}),
    scheduled: (4, 0, "loader", {"SGD": 4}),
    endless: (6, 0, "loader", {"SGD": 6}),
    broken_off: (3, 0, "loader", {"SGD": 3}),
    validation_inside: (4, 4, "loader", {"SGD": 4}),
    zipped: (4, 0, "loader", {"SGD": 4}),
    in_turns: (4, 0, "loader", {"SGD": 4}),
    one_shot: (4, 0, "optimizer", {"SGD": 4}),
    overfitted: (5, 0, "optimizer", {"SGD": 5}),
    several_updates_a_batch: (6, 0, "loader", {"SGD": 12}),
    micro_batches: (4, 0, "optimizer", {"SGD": 4}),
    lookahead_thread: (4, 0, "optimizer", {"SGD": 4}),
    nested_data: (4, 0, "loader", {"SGD": 4}),
}


def steps_of(session: Session) -> Steps:
    return process_of(session).steps


def process_of(session: Session) -> Process:
    return session.process(Ending())


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_the_steps_of_a_loop(loop: Callable[[], None]) -> None:
    gc.collect()  # the optimizers of other tests
    train, evaluated, boundary, optimizers = LOOPS[loop]
    with audited() as session:
        loop()
        steps = steps_of(session)
    assert (steps.train, steps.eval, steps.boundary) == (train, evaluated, boundary)
    assert steps.optimizer_steps == optimizers
    assert not steps.limited


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if LOOPS[loop][0] > 2], ids=lambda loop: loop.__name__)
def test_a_loop_is_stopped(loop: Callable[[], None]) -> None:
    gc.collect()
    with audited(steps=2) as session:
        with pytest.raises(StepsReached) as reached:
            loop()
        steps = steps_of(session)
    assert reached.value.code == 0
    assert isinstance(reached.value, SystemExit)
    assert steps.limited
    # several updates on the first batch count as steps of their own until the next batch comes
    assert steps.train == 2


def test_what_a_script_computes_is_the_same() -> None:
    """Bit by bit, and the random numbers that follow are the same, too."""

    def run() -> tuple[list[float], Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
        optimizer, losses = sgd(model), []
        for _ in range(2):
            for x, y in DataLoader(data(), 8, shuffle=True):
                loss = cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses, torch.get_rng_state()

    alone, state = run()
    with audited():
        heard, heard_state = run()
    assert heard == alone
    assert torch.equal(state, heard_state)


def test_everything_is_as_before_when_the_audit_is_over() -> None:
    from torch.optim import optimizer as module
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    def hooks() -> list[object]:
        return [
            _BaseDataLoaderIter.__next__,
            _BaseDataLoaderIter.__init__,
            DataLoader.__init__,
            torch.autograd.graph._engine_run_backward,
            torch.autograd._engine_run_backward,
            len(module._global_optimizer_post_hooks),
        ]

    before = hooks()
    with audited():
        assert all(one is not other for one, other in zip(hooks()[:5], before[:5], strict=True))
    assert hooks() == before


def test_a_bug_of_ours_is_not_the_scripts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, loader: int) -> bool:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("devlint.auditor.steps.LoopSteps.batch", broken)
    session = Session(Settings())
    loaders = Loaders(session)
    session.start([loaders, Signals(session, loaders)])
    plain()
    session.stop()
    assert session.failure == "ZeroDivisionError: ours"
    assert capsys.readouterr().err.count("\n") == 1


def test_the_scripts_errors_are_its_own() -> None:
    class Broken(Dataset):  # type: ignore[type-arg]  # of whatever
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Any:
            raise KeyError("no such image")

    with audited() as session:
        with pytest.raises(KeyError, match="no such image"):
            next(iter(DataLoader(Broken())))
        (loader,) = process_of(session).loaders
    assert loader.error == "'no such image'"


def test_a_stop_runs_what_is_final_and_is_not_caught_by_handlers_of_errors() -> None:
    done = []

    def run() -> None:
        try:
            try:
                plain()
            except Exception:
                done.append("caught")
        finally:
            done.append("final")

    with audited(steps=2), pytest.raises(StepsReached):
        run()
    assert done == ["final"]


def test_nothing_is_raised_in_the_middle_of_a_backward() -> None:
    """Without a loader, the optimizer of the first parameter ends the step; the others have to come, too."""
    done: list[str] = []

    def run() -> None:
        model = net()
        optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

        def step(parameter: Any) -> None:
            optimizers[parameter].step()
            done.append("step")

        hooks = [parameter.register_post_accumulate_grad_hook(step) for parameter in model.parameters()]
        try:
            for _ in range(4):
                model(data().tensors[0]).sum().backward()
                done.append("backward")
        finally:
            for hook in hooks:
                hook.remove()

    gc.collect()
    with audited(steps=2), pytest.raises(StepsReached):
        run()
    assert done == ["step", "step", "backward", "step", "step"]


def test_no_iterator_is_kept_alive() -> None:
    with audited():
        iterator = iter(DataLoader(data(), 8))
        next(iterator)
        reference = weakref.ref(iterator)
        del iterator
        assert reference() is None


def test_snapshots_come_when_steps_end() -> None:
    seen = []
    with audited() as session:
        session.snapshot = lambda: seen.append(steps_of(session).train)
        plain()
    # at the first batch, set-up ends; then each step does, and with the end of the data the last one
    assert seen == [0, 1, 2, 3, 4]


def test_times_are_those_of_the_loop_and_not_told_in_simulation() -> None:
    with audited() as session:
        plain()
        steps = steps_of(session)
    assert steps.step_seconds is not None
    assert steps.loader_seconds is not None
    assert 0 < steps.loader_seconds < steps.step_seconds
    simulated = Session(Settings(simulated=True))
    loaders = Loaders(simulated)
    simulated.start([loaders, Signals(simulated, loaders)])
    plain()
    steps = steps_of(simulated)
    simulated.stop()
    assert (steps.train, steps.step_seconds, steps.loader_seconds) == (4, None, None)


# frameworks, unmodified


def accelerate_loop(tmp_path: Path) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = net()
    model, optimizer, training, validation = accelerator.prepare(
        model, sgd(model), DataLoader(data(), 8), DataLoader(data(), 16)
    )
    for _ in range(2):
        for x, y in training:
            accelerator.backward(cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for x, _ in validation:
                model(x)


def trainer_loop(tmp_path: Path, accumulate: int = 1) -> None:
    import transformers

    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0
    )
    samples = [{"input_ids": torch.arange(6), "labels": torch.arange(6)} for _ in range(32)]
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=accumulate,
        num_train_epochs=2,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    model = transformers.GPT2LMHeadModel(config)
    transformers.Trainer(model, arguments, train_dataset=samples, eval_dataset=samples).train()


def accumulating_trainer_loop(tmp_path: Path) -> None:
    trainer_loop(tmp_path, 2)


def lightning_loop(tmp_path: Path) -> None:
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: Any, index: int) -> Any:
            return cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> None:
            self.net(batch[0])

        def configure_optimizers(self) -> Any:
            return sgd(self)

    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
    )
    trainer.fit(Module(), DataLoader(data(), 8), DataLoader(data(), 16))


def ignite_loop(tmp_path: Path) -> None:
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer

    model = net()
    trainer = create_supervised_trainer(model, sgd(model), cross_entropy)
    evaluator = create_supervised_evaluator(model)
    validation = DataLoader(data(), 16)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(validation))
    trainer.run(DataLoader(data(), 8), max_epochs=2)


FRAMEWORKS = {
    accelerate_loop: ("accelerate", 8, "SGD"),
    trainer_loop: ("transformers", 8, "AdamW"),
    # it takes the 2 batches of an optimizer's step at once, so that they are one step
    accumulating_trainer_loop: ("transformers", 4, "AdamW"),
    lightning_loop: ("lightning", 8, "SGD"),
    ignite_loop: ("ignite", 8, "SGD"),
}


@pytest.mark.parametrize("loop", FRAMEWORKS, ids=lambda loop: loop.__name__)
def test_the_steps_of_a_framework(loop: Callable[[Path], None], tmp_path: Path) -> None:
    """2 epochs of 4 batches, each followed by a validation of 2; a stop after 3 steps passes through."""
    name, expected, optimizer = FRAMEWORKS[loop]
    pytest.importorskip(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with audited() as session:
            loop(tmp_path)
            found = process_of(session)
        assert (found.steps.train, found.steps.eval) == (expected, 4)
        assert sum(found.steps.optimizer_steps.values()) == expected
        assert list(found.steps.optimizer_steps) == [optimizer]
        batches = {loader.training: loader.batches for loader in found.loaders}
        assert batches == {True: 8, False: 4}
        with audited(steps=3) as session:
            with pytest.raises(StepsReached):
                loop(tmp_path)
            steps = steps_of(session)
        assert (steps.train, steps.limited) == (3, True)
