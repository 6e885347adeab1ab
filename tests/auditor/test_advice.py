"""Advice speaks where the figures ask for it, says them, and is silent otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from devlint.auditor.judgement.advice import advise
from devlint.record import Device, Ending, Event, Models, Process, Record, Steady, Steps
from tests.report import records

GIB = 2**30


def changed(record: Record | None = None, **fields: object) -> Record:
    """The usual run, where every process is a bit different."""
    record = record or records.cnn()
    return replace(record, processes=tuple(replace(process, **fields) for process in record.processes))  # type: ignore[arg-type]  # a test's own fields


def only(record: Record, word: str) -> str:
    """The one line of advice with a word in it."""
    (line,) = [line for line in advise(record) if word in line]
    return line


def quiet() -> Record:
    """The usual run without anything to be said of it: nobody waits."""
    (process,) = records.cnn().processes
    return changed(events=(), steps=replace(process.steps, loader_seconds=0.0001))


def timed(**fields: object) -> Record:
    (process,) = records.cnn().processes
    return changed(steps=replace(process.steps, **fields), events=())  # type: ignore[arg-type]  # a test's own fields


def loader(workers: int, step: float, waited: float, cpus: int = 16) -> Record:
    (process,) = timed(step_seconds=step, loader_seconds=waited).processes
    return changed(
        steps=process.steps,
        events=(),
        loaders=(replace(process.loaders[0], workers=workers),),
        environment=replace(process.environment, cpu_count=cpus),
    )


def test_a_run_without_anything_to_improve_gets_none() -> None:
    assert advise(quiet()) == ()
    assert advise(Record()) == ()
    assert advise(records.nothing()) == ()


def test_a_loader_without_workers() -> None:
    """4.1 ms to load against 8.2 ms for the rest: one worker would just keep up, so two."""
    assert only(loader(0, 0.0123, 0.0041), "loader") == (
        "the loop waited for its loader at train.py:7 for 4.10 ms of each 12.3 ms step (33 %): with `num_workers=0` "
        "the loop loads each batch itself; `num_workers=2` would load while the device works"
    )


def test_too_few_workers() -> None:
    """2 workers deliver a batch each 10 ms, so each takes 20 ms; for one each 4 ms it takes 5."""
    line = only(loader(2, 0.010, 0.006), "loader")
    assert line.endswith("`num_workers=5` instead of 2 workers would keep up, as a batch takes about 20.0 ms to load")


def test_more_workers_than_there_are_cpus_are_not_advised() -> None:
    assert "`num_workers=4` instead of 2 workers (all the CPUs there are for it; more would be needed)" in only(
        loader(2, 0.010, 0.006, cpus=4), "loader"
    )
    assert "its 4 workers use all 4 CPUs there are for it, so loading itself has to get cheaper" in only(
        loader(4, 0.010, 0.006, cpus=4), "loader"
    )


def test_the_ranks_of_a_machine_share_its_cpus() -> None:
    both = tuple(
        replace(process, steps=replace(process.steps, step_seconds=0.01, loader_seconds=0.006))
        for process in records.distributed().processes
    )
    line = only(replace(records.distributed(), processes=both), "loader")
    assert "`num_workers=3`" in line  # 6 / 4 rounded up, and one more; 8 of the 16 CPUs would be allowed
    few = tuple(replace(process, environment=replace(process.environment, cpu_count=4)) for process in both)
    assert "`num_workers=2` (all the CPUs there are for it; more would be needed)" in only(
        replace(records.distributed(), processes=few), "loader"
    )


def test_a_short_wait_is_nothing_to_speak_of() -> None:
    assert advise(timed(step_seconds=0.1, loader_seconds=0.0049)) == ()
    assert len(advise(timed(step_seconds=0.1, loader_seconds=0.0051))) == 1


def test_few_steps_say_nothing_of_time() -> None:
    assert advise(timed(train=4)) == ()  # two are left after the warm-up
    assert len(advise(timed(train=5))) == 1


def test_a_simulation_gets_no_advice_on_times() -> None:
    assert advise(records.simulated(records.cnn())) == ()
    # not even if somebody wrote some down
    assert advise(replace(records.cnn(), simulated=True)) == ()


def test_the_model_that_stayed_on_the_cpu() -> None:
    there = changed(quiet(), models=Models(outermost=("Net",), devices=("cpu",), parameters=50_890))
    assert advise(there) == (
        (
            "the model (Net, 50,890 parameters) was on the CPU in all 40 training steps, though cuda:0 NVIDIA H100 "
            '80GB HBM3 is there: move it with `.to("cuda")` before the optimizer is made, and each batch too'
        ),
    )
    assert "on the CPU" in only(records.simulated(there), "cuda:0 (simulated) is there")
    once = changed(there, steps=Steps(train=1), models=Models(outermost=("Policy",), devices=("cpu",), parameters=898))
    assert "was on the CPU in the only training step, though" in only(once, "Policy")
    assert only(once, "Policy").endswith("and each batch too, unless so small a model is faster there")
    for models in (
        Models(outermost=("Net",), devices=("cpu", "cuda:0")),
        Models(outermost=("Net",), devices=("cpu",), managed="accelerate"),
        Models(),
    ):
        assert advise(changed(quiet(), models=models)) == ()
    (process,) = there.processes
    assert advise(changed(there, environment=replace(process.environment, devices=()))) == ()


def with_memory(peak: int, reserved: int, parameters: int = 0, **models: object) -> Record:
    (process,) = quiet().processes
    device = replace(records.H100, memory=80 * GIB, peak=peak * GIB, reserved=reserved * GIB)
    return changed(
        quiet(),
        environment=replace(process.environment, devices=(device,)),
        models=replace(process.models, parameters=parameters, **models),  # type: ignore[arg-type]  # a test's own fields
    )


def test_short_memory_that_the_activations_take() -> None:
    """A model of 100 million float32 parameters under Adam: 16 bytes each, 1.49 GiB."""
    assert advise(with_memory(75, 76, 100_000_000)) == (
        (
            "tensors took 75.0 GiB of the 80.0 GiB of cuda:0 at the peak (94 %): what helps is a smaller batch with "
            "gradient accumulation, mixed precision (it ran in float32) or activation checkpointing, since parameters, "
            "gradients and optimizer take only about 1.49 GiB"
        ),
    )
    assert advise(with_memory(70, 72, 100_000_000)) == ()  # 90 % is the limit


def test_short_memory_that_the_model_takes() -> None:
    """4 billion parameters are 59.6 GiB with gradients and Adam's two values."""
    (line,) = advise(with_memory(75, 76, 4_000_000_000, autocast="bfloat16"))
    assert "its parameters, gradients and optimizer take about 59.6 GiB; what helps is splitting the model" in line
    assert "mixed precision" not in line


def test_memory_in_pieces() -> None:
    lines = advise(with_memory(40, 78, 1000))
    assert "the allocator held 78.0 GiB for 40.0 GiB of tensors" in lines[1]


def test_running_out_of_memory() -> None:
    died = changed(
        with_memory(60, 60, 1000),
        ending=Ending(kind="exception", code=1, error="OutOfMemoryError: CUDA out of memory."),
    )
    (line,) = advise(died)
    assert line.startswith("the run ran out of memory; tensors took 60.0 GiB of the 80.0 GiB of cuda:0")


def blocked(capability: tuple[int, int] = (9, 0), seconds: float = 0.006, **models: object) -> Record:
    (process,) = quiet().processes
    item = records.copy(records.at(17, "loss.item()"), 1, 4, seconds, name="item", source="cuda:0", target="cpu")
    device = replace(records.H100, capability=capability)
    return changed(
        quiet(),
        events=(item,),
        environment=replace(process.environment, devices=(device,)),
        models=replace(process.models, **models),  # type: ignore[arg-type]  # a test's own fields
    )


def test_a_blocked_host() -> None:
    assert only(blocked(), "blocked") == (
        "the host was blocked for 6.00 ms of each 12.3 ms step (49 %), 6.00 ms of it at train.py:17: meanwhile "
        "nothing is queued for the device; keep the value on the device, and read it every so many steps"
    )
    assert advise(blocked(seconds=0.0024)) == ()  # 19.5 %


def test_mixed_precision_where_the_device_decides() -> None:
    assert only(blocked(), "autocast") == (
        "the model ran in float32, and the host waited for the device for 6.00 ms of each 12.3 ms step (49 %): "
        '`torch.autocast("cuda", dtype=torch.bfloat16)` would use the tensor cores of the NVIDIA H100 80GB HBM3 '
        "(capability 9.0)"
    )
    assert "torch.float16)` with a `GradScaler`" in only(blocked((7, 5)), "autocast")


@pytest.mark.parametrize(
    "record",
    [
        blocked((6, 1)),
        blocked(seconds=0.003),
        blocked(autocast="bfloat16"),
        blocked(dtypes=("bfloat16",)),
        blocked(devices=("cpu",)),
    ],
    ids=["old card", "device idle", "autocast", "bfloat16", "not on the card"],
)
def test_mixed_precision_is_not_for_everybody(record: Record) -> None:
    assert not any("autocast" in line for line in advise(record))


def test_dimensions_that_tensor_cores_dislike() -> None:
    odd = ("head (Linear 512 -> 10,001, float16)",)
    assert advise(changed(quiet(), models=Models(unaligned=odd))) == (
        (
            "head (Linear 512 -> 10,001, float16): tensor cores work at full speed where all dimensions are multiples "
            "of 8, so pad them"
        ),
    )
    (process,) = quiet().processes
    old = replace(process.environment, devices=(Device(name="cuda:0", capability=(6, 1)),))
    assert advise(changed(quiet(), models=Models(unaligned=odd), environment=old)) == ()


def test_the_cache_emptied_in_every_step() -> None:
    call = Event(
        kind="call", name="torch.cuda.empty_cache", phase="train", frame=records.at(16), calls=40, steps=40,
        seconds=0.08, steady=Steady(calls=1, seconds=0.002),
    )  # fmt: skip
    (line,) = advise(changed(quiet(), events=(call,)))
    assert line.startswith("`empty_cache()` at train.py:16 ran in 40 of 40 training steps and took 2.00 ms each time")
    assert advise(changed(quiet(), events=(replace(call, steps=2, calls=2),))) == ()
    found = {**records.MISSING_PIN, "code": "DVL404", "name": "cache-flush-in-loop"}
    assert advise(replace(changed(quiet(), events=(call,)), findings=(found,))) == ()  # the finding says it
    assert advise(changed(quiet(), events=(replace(call, phase="teardown", steady=None),))) == ()


def test_ranks_on_one_card() -> None:
    line = only(records.distributed(), "share")
    assert line.startswith("ranks 0 and 1 share cuda:0, and took 6.00 GiB of its memory together: give each its own")


def test_a_cpu_build_on_a_machine_with_a_driver() -> None:
    (process,) = quiet().processes
    environment = replace(process.environment, build="CPU", devices=(), torch="2.13.0+cpu")
    assert advise(changed(quiet(), environment=environment))[0].startswith(
        "torch 2.13.0+cpu is a CPU build, though the machine has a graphics driver (570.86.15)"
    )
    assert advise(changed(quiet(), environment=replace(environment, driver=""))) == ()


def test_advice_is_text_for_one_line() -> None:
    for record in records.every().values():
        assert all(line and "\n" not in line for line in advise(record))


def test_a_process_alone_may_know_nothing() -> None:
    assert advise(Record(processes=(Process(pid=1),))) == ()
