"""``devlint.audit()`` around some lines that use the simulated device; run by test_api.py."""

from __future__ import annotations

import linecache
import os
import runpy
import sys
import tempfile
from types import SimpleNamespace

import pytest
import torch

import devlint
import devlint.simulator

CUDA = "cuda"


@pytest.fixture
def simulated() -> None:
    """The simulated device, for as long as this process lives."""
    devlint.simulator.install()


LOOP = """
def train(model, x, device):
    for _ in range(4):
        model(x.to(device)).sum().backward()
"""


def test_copies_in_the_block_are_counted_and_no_others(simulated: None, tree) -> None:
    # in a file of its own, since rules go easy on tests
    train = runpy.run_path(str(tree({"loop.py": LOOP}) / "loop.py"))["train"]
    model, x = torch.nn.Linear(4, 2).to(CUDA), torch.ones(3, 4)
    x.to(CUDA)
    with devlint.audit() as run:
        train(model, x, CUDA)
    x.to(CUDA)
    assert run.record.complete
    assert run.record.simulated
    (process,) = run.record.processes
    copies = [event for event in process.events if event.kind == "copy"]
    # 12 floats in each of four steps
    assert [(event.calls, event.bytes) for event in copies] == [(4, 4 * 48)]
    assert copies[0].frame is not None
    assert copies[0].frame.line == 4
    assert [finding["code"] for finding in run.findings] == ["DVL202"]
    assert "model(x.to(device)).sum().backward()" in run.report()
    assert run.report(quiet=True).startswith("warning[DVL202]")


def test_nothing_of_it_is_left(simulated: None) -> None:
    def hooked() -> list[object]:
        owners = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.utils.data.DataLoader, torch.cuda)
        return [{name: value for name, value in vars(owner).items() if callable(value)} for owner in owners]

    before = hooked()
    for _ in range(2):
        with devlint.audit() as run:
            torch.ones(1).to(CUDA)
        assert len(run.record.processes[0].events) == 1
    assert hooked() == before


def test_exceptions_pass_through_and_a_mismatch_is_explained(simulated: None) -> None:
    model = torch.nn.Linear(4, 2).to(CUDA)
    audit = devlint.audit()
    with pytest.raises(RuntimeError, match="same device"), audit as run:
        model(torch.ones(3, 4))
    assert run is audit
    (process,) = run.record.processes
    assert process.ending.kind == "exception"
    (mismatch,) = process.mismatches
    assert {party.text for party in mismatch.parties} >= {"model.weight"}
    with audit:
        pass
    assert audit.record.processes[0].ending.kind == "finished"


def test_steps_end_the_block(simulated: None) -> None:
    model = torch.nn.Linear(4, 2).to(CUDA)
    passed = 0
    with devlint.audit(steps=2) as run:
        for _ in range(10):
            model(torch.ones(3, 4).to(CUDA)).sum().backward()
            passed += 1
    # the second backward ends the second step, and the block with it
    assert passed == 1
    assert run.record.processes[0].steps.limited


def test_one_at_a_time(simulated: None) -> None:
    with devlint.audit() as outer:
        with pytest.raises(devlint.AuditError, match="another audit is running"), devlint.audit():
            pass
        torch.ones(1).to(CUDA)
        with pytest.raises(devlint.AuditError, match="before the block has ended"):
            outer.record  # noqa: B018  # asking is what raises
    assert len(outer.record.processes[0].events) == 1


def test_an_exit_passes_through(simulated: None) -> None:
    with pytest.raises(SystemExit), devlint.audit() as run:
        raise SystemExit(3)
    assert run.record.processes[0].ending.kind == "exit"


def test_the_report_is_also_a_page(simulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra `html`")
    with devlint.audit() as run:
        torch.ones(3).to(CUDA)
    assert "torch.ones(3).to(CUDA)" in run.html()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(devlint.AuditError, match="needs the extra `html`"):
        run.html()


CELL = """
with devlint.audit() as run:
    for batch in DataLoader(data, batch_size=1):
        model(batch.to(device)).sum().backward()
"""


def test_a_cell_of_a_notebook_is_called_as_in_its_tracebacks(simulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # as ipykernel names the code of a cell; there is no such file
    file = os.path.join(tempfile.gettempdir(), "ipykernel_12", "345.py")
    compiler = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]") if name == file else None)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(linecache.cache, file, (len(CELL), None, CELL.splitlines(keepends=True), file))
    values = {
        "devlint": devlint,
        "DataLoader": torch.utils.data.DataLoader,
        "data": torch.rand(8, 4),
        "model": torch.nn.Linear(4, 2).to(CUDA),
        "device": CUDA,
    }
    exec(compile(CELL, file, "exec"), values)
    run = values["run"]
    assert list(run.record.sources) == ["<In[7]>"]
    (process,) = run.record.processes
    assert {event.frame.file for event in process.events if event.frame is not None} == {"<In[7]>"}
    assert "  loader     <In[7]>:3: 0 workers" in run.report()
    assert "\n<In[7]>\n     4  H2D" in run.report()
    assert "model(batch.to(device)).sum().backward()" in run.report()
    assert file not in run.report()
