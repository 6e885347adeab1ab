"""Loops of real scripts and frameworks, on the CPU: the steps that are seen, and a run that --steps stops.

All data sets hold 32 samples in batches of 8, so that an epoch has 4 of them.
"""

from __future__ import annotations

import gc
import logging
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from devlint.auditor.loop.hooks import LoopHooks
from devlint.auditor.loop.loaders import Loaders
from devlint.auditor.loop.steps import StepsReached
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Process, Steps
from tests.auditor.loops import (
    LOOPS,
    cross_entropy,
    data,
    net,
    plain,
    sgd,
)


@contextmanager
def audited(steps: int | None = None) -> Iterator[Session]:
    """A session that hears of steps and loaders alone, and of calls of outermost modules."""
    session = Session(Settings(steps=steps))
    loaders = Loaders(session)
    session.start([loaders, LoopHooks(session, loaders)])
    depth = [0]

    def enter(module: object, inputs: object) -> None:
        if not depth[0]:
            for handle in session.signals.forward:
                handle()
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

    name = "_engine_run_backward"
    entrances: list[tuple[object, str]] = [(torch.autograd.graph, name), (torch.autograd, name)]
    if not hasattr(torch.autograd.graph, name):
        entrances = [(torch.autograd.Variable, "_execution_engine")]

    def hooks() -> list[object]:
        return [
            _BaseDataLoaderIter.__next__,
            _BaseDataLoaderIter.__init__,
            DataLoader.__init__,
            *(getattr(owner, name) for owner, name in entrances),
            len(module._global_optimizer_post_hooks),
        ]

    before = hooks()
    with audited():
        assert all(one is not other for one, other in zip(hooks()[:-1], before[:-1], strict=True))
    assert hooks() == before


def test_a_bug_of_ours_is_not_the_scripts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, *given: object) -> bool:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("devlint.auditor.loop.steps.LoopSteps.batch", broken)
    session = Session(Settings())
    loaders = Loaders(session)
    session.start([loaders, LoopHooks(session, loaders)])
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
        session.signals.step_end = (lambda: seen.append(steps_of(session).train),)
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
    simulated.start([loaders, LoopHooks(simulated, loaders)])
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


@pytest.mark.slow
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
