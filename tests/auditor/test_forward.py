"""The hooks of the forward check: what they see, what they cost, and that nobody notices them."""

from __future__ import annotations

import copy
import gc
import io
import threading
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

from devlint.auditor.loop.hooks import LoopHooks
from devlint.auditor.modules.forward import ForwardCheck
from devlint.auditor.modules.optimizers import Optimizers
from tests.auditor.watching import seen, watching


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x, *, scale=1.0):
        return self.head(self.body(x)) * scale


def installed() -> int:
    return len(hooks._global_forward_hooks) + len(hooks._global_forward_pre_hooks)


def test_calls_from_outside_are_told_and_no_others() -> None:
    told = []
    with watching(ForwardCheck) as session:
        session.signals.forward = (lambda: told.append(1),)
        net = Net()
        net(torch.ones(1, 4))
        net(torch.ones(1, 4), scale=2.0)
        nn.functional.relu(torch.ones(1))
    assert len(told) == 2


def test_a_call_that_raises_is_over() -> None:
    told = []
    with watching(ForwardCheck) as session:
        session.signals.forward = (lambda: told.append(1),)
        net = Net()
        with pytest.raises(RuntimeError):
            net(torch.ones(1, 5))
        net(torch.ones(1, 4))
    assert len(told) == 2


def test_recomputation_in_backward_is_no_call_from_outside() -> None:
    from torch.utils.checkpoint import checkpoint

    told = []
    with watching(ForwardCheck) as session:
        session.signals.forward = (lambda: told.append(1),)
        net = Net()
        checkpoint(net, torch.ones(1, 4, requires_grad=True), use_reentrant=False).sum().backward()
    assert len(told) == 1


def test_hooks_leave_once_nothing_is_new_and_come_back_for_a_new_model() -> None:
    told = []
    with watching(ForwardCheck) as session:
        session.signals.forward = (lambda: told.append(1),)
        net = Net()
        assert installed() == 2
        for _ in range(20):
            net(torch.ones(1, 4))
        # new in the first call, then twelve without anything new
        assert len(told) == 12
        assert installed() == 0
        (expect,) = session.signals.forward_due
        expect()
        expect()
        assert installed() == 1
        net(torch.ones(1, 4))
        assert len(told) == 13
        assert installed() == 0
        expect()
        other = Net()
        other(torch.ones(1, 4))
        assert installed() == 2
        other(torch.ones(1, 4))
        assert seen(session).models.outermost == ("Net",)
    assert installed() == 0


def test_who_hears_of_a_forward_may_ask_for_the_one_after_it() -> None:
    """Not for what runs inside of it, and whether or not it fails; what was settled before stays so."""
    told = []
    with watching(ForwardCheck) as session:

        def tell() -> None:
            told.append(1)
            for expect in session.signals.forward_due:
                expect()

        session.signals.forward = (tell,)
        net = Net()
        for _ in range(20):
            net(torch.ones(1, 4))
        assert len(told) == 20
        with pytest.raises(RuntimeError):
            net(torch.ones(1, 5))
        net(torch.ones(1, 4))
        assert len(told) == 22
        assert not net._forward_hooks
    assert installed() == 0


def test_loops_ask_for_the_next_forward() -> None:
    from devlint.auditor.loop.loaders import Loaders

    loaders = []

    def signals(session):
        loaders.append(Loaders(session))
        return LoopHooks(session, loaders[0])

    with watching(signals, ForwardCheck) as session:
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = torch.utils.data.DataLoader(torch.ones(30, 4), batch_size=1)
        for x in loader:
            net(x).sum().backward()
            optimizer.step()
        with torch.no_grad():
            for x in loader:
                net(x)
        del x
        gc.collect()
        steps = seen(session).steps
    assert (steps.train, steps.eval) == (30, 30)


def test_outputs_hooks_and_pickles_are_as_without() -> None:
    torch.manual_seed(0)
    net = Net()
    order: list[str] = []
    net.head.register_forward_pre_hook(lambda module, args: order.append("pre"))
    net.head.register_forward_hook(lambda module, args, result: order.append("post"))
    x = torch.randn(3, 4)
    expected = net(x)
    order.clear()
    with watching(ForwardCheck):
        assert torch.equal(net(x), expected)
        assert order == ["pre", "post"]
        plain = Net()
        plain(x)
        buffer = io.BytesIO()
        torch.save(plain, buffer)
        assert not plain._forward_hooks
        assert not copy.deepcopy(plain)._forward_pre_hooks
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert torch.equal(again(x), plain(x))


def test_modules_and_tensors_are_not_kept() -> None:
    with watching(ForwardCheck):
        net, x = Net(), torch.ones(1, 4)
        net(x)
        refs = [weakref.ref(net), weakref.ref(x)]
        del net, x
        gc.collect()
        assert [ref() for ref in refs] == [None, None]


@pytest.mark.parametrize("whole", [True, False], ids=["module", "function"])
def test_compiled_code_stays_one_graph(whole: bool) -> None:
    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    with watching(ForwardCheck), warnings.catch_warnings():
        # torch warns of global hooks in compiled modules, which are not the script's
        warnings.simplefilter("error")
        net = Net()
        target = net if whole else lambda x: net(x) * 2
        compiled = torch.compile(target, backend="eager")
        x = torch.ones(2, 4)
        for _ in range(30):
            result = compiled(x)
        assert torch.equal(result, target(x))
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    torch._dynamo.reset()


def test_code_compiled_before_the_session_keeps_no_hook_in_place() -> None:
    assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)) == 2
    with watching(ForwardCheck):
        assert installed() == 2
        net = Net()
        for _ in range(20):
            net(torch.ones(1, 4))
        assert installed() == 0
    torch._dynamo.reset()


@pytest.mark.skipif(not hasattr(hooks, "_has_any_global_hook"), reason="this torch does not ask for hooks")
def test_a_hook_of_the_script_is_still_warned_of() -> None:
    handle = hooks.register_module_forward_hook(lambda module, args, result: None)
    try:
        with watching(ForwardCheck):
            assert hooks._has_any_global_hook()
    finally:
        handle.remove()
    with watching(ForwardCheck):
        assert not hooks._has_any_global_hook()
        net = Net()
        for _ in range(20):
            net(torch.ones(1, 4))
        assert not hooks._has_any_global_hook()
    assert not hooks._has_any_global_hook()


def test_scripted_and_traced_modules_run() -> None:
    with watching(ForwardCheck):
        model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
        x = torch.ones(1, 4)
        expected = model(x)
        assert torch.equal(torch.jit.script(model)(x), expected)
        assert torch.equal(torch.jit.trace(model, x)(x), expected)
        assert torch.equal(torch.fx.symbolic_trace(model)(x), expected)


def test_threads_have_their_own_stacks() -> None:
    told = []
    with watching(ForwardCheck) as session:
        session.signals.forward = (lambda: told.append(threading.get_ident()),)
        started, go = threading.Event(), threading.Event()

        class Slow(nn.Module):
            def forward(self, x):
                started.set()
                assert go.wait(10)
                return x

        thread = threading.Thread(target=Slow(), args=(torch.ones(1),))
        thread.start()
        assert started.wait(10)
        Net()(torch.ones(1, 4))
        go.set()
        thread.join(10)
    assert len(set(told)) == 2


class Careless(nn.Linear):
    """A layer whose kernel does not mind: it looks at the shape of its input only."""


def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x)


def test_a_layer_that_does_not_mind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """`meta` stands for a device here: its parameters are managed, so it is the input that is elsewhere."""
    careless(monkeypatch)
    with watching(ForwardCheck) as session:
        monkeypatch.setattr("devlint.auditor.modules.forward.is_placed", lambda tensor: tensor.dim() > 0)
        net = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        x = torch.ones(3, 4, device="meta")
        for args, kwargs in [((x,), {}), ((), {"input": x})]:
            net(*args, **kwargs)
        (mismatch,) = seen(session).mismatches
    assert (mismatch.module, mismatch.module_class, mismatch.error, mismatch.calls) == ("1", "Linear", "", 2)
    assert [(party.role, party.device) for party in mismatch.parties] == [("input", "meta"), ("parameter", "cpu")]
    assert mismatch.parties[0].example == "float32[3, 4]"
    assert mismatch.frame is not None
    assert mismatch.frame.file == __file__


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: nn.Linear(4, 2)(torch.tensor(1.0)), id="no dimensions"),
        pytest.param(lambda: nn.Linear(4, 2)(torch.ones(2, device="meta")), id="a meta input"),
        pytest.param(lambda: nn.Linear(4, 2, device="meta")(torch.ones(2)), id="meta parameters"),
        pytest.param(lambda: Careless(4, 2)(torch.ones(2, device="meta")), id="a class of the script"),
    ],
)
def test_what_may_be_elsewhere(call, monkeypatch: pytest.MonkeyPatch) -> None:
    careless(monkeypatch)
    with watching(ForwardCheck) as session:
        call()
        assert not seen(session).mismatches


def test_a_layer_that_refuses_is_left_to_whoever_explains_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with watching(ForwardCheck) as session:
        monkeypatch.setattr("devlint.auditor.modules.forward.is_placed", lambda tensor: tensor.dim() > 0)
        with pytest.raises(RuntimeError):
            nn.Linear(4, 2)(torch.ones(3, 5, device="meta"))
        assert not seen(session).mismatches


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.pos = torch.zeros(4)

    def forward(self, x):
        self.pos + self.body(x)
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")


def test_an_error_is_explained_before_its_handler_moves_the_model() -> None:
    with watching(Optimizers, ForwardCheck) as session:
        try:
            try:
                Positions()(torch.ones(1, 4))
            finally:
                nn.Linear(1, 1).cpu()
                early = session.listeners[-1]._early
        except RuntimeError as error:
            raised = error
        assert early is not None
        assert early.text == str(raised)
        assert session.signals.explain(raised) is early.mismatch
        assert early.mismatch.module_class == "Positions"
        assert session.signals.explain(ValueError("the same device")) is not None
        assert session.signals.explain(ValueError("another")) is None


def test_failing_hooks_let_the_script_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from tests.auditor import watching as helper

    session = helper.Session(helper.Settings())
    session.start([ForwardCheck(session)])

    def broken() -> None:
        raise ZeroDivisionError("a bug")

    session.signals.forward = (broken,)
    net = Net()
    assert net(torch.ones(1, 4)).shape == (1, 2)
    assert not session.alive
    assert capsys.readouterr().err.count("a bug") == 1
    assert net(torch.ones(1, 4)).shape == (1, 2)
    session.stop()
