"""The table of torch's functions: what it says, that it is read without torch, and that it fits the installed torch."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.torch_table import Function, Module

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "devlint" / "flow" / "catalog" / "data" / "torch_table.json"
DATA = json.loads(TABLE.read_text(encoding="utf-8"))

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


class TableDriftWarning(UserWarning):
    """The table was derived from another torch than the one which is installed."""


def run_python(code: str) -> Any:
    """What the code prints as JSON, in a process of its own: what it does to torch, or imports, stays there."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def known(name: str) -> Function:
    function = torch_table.function(name)
    assert function is not None, f"{name} is not in the table"
    return function


def known_module(name: str) -> Module:
    module = torch_table.module(name)
    assert module is not None, f"{name} is not in the table"
    return module


# --- What it says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("torch.zeros", "default_or_kwarg"),
        ("torch.fft.fftfreq", "default_or_kwarg"),
        ("torch.linspace", "default_or_kwarg"),
        ("torch.zeros_like", "like_input_or_kwarg"),
        ("torch.Tensor.new_zeros", "like_input_or_kwarg"),
        ("torch.tensor", "data_or_default"),
        ("torch.normal", "arg_tensor_or_cpu"),
        ("torch.from_numpy", "cpu"),
        ("torch.Tensor.numpy", "numpy"),
        ("torch.Tensor.item", "python"),
        ("torch.Tensor.shape", "python"),
        ("torch.Tensor.T", "same_as_input"),
        ("torch.Tensor.to", "mover:arg"),
        ("torch.Tensor.cuda", "mover:cuda"),
        ("torch.Tensor.type_as", "mover:other"),
        ("torch.nn.functional.one_hot", "same_as_input"),
        ("torch.linalg.inv", "same_as_input"),
        ("torch.special.erf", "same_as_input"),
        ("torch.nn.utils.rnn.pad_sequence", "same_as_input"),
        ("torch.nn.utils.rnn.pad_packed_sequence", "tuple:same_as_input,cpu"),
        ("torch.nn.init.normal_", "same_as_input"),
    ],
)
def test_rule_says_where_the_result_lives(name: str, rule: str) -> None:
    assert known(name).rule == rule


def test_factories_say_what_decides_their_device() -> None:
    assert DATA["functions"]["torch.zeros"].get("device_kwarg")
    assert DATA["functions"]["torch.zeros"].get("honours_default_device") is True
    assert DATA["functions"]["torch.zeros_like"].get("device_kwarg")
    assert DATA["functions"]["torch.zeros_like"].get("honours_default_device") is False
    assert DATA["functions"]["torch.normal"].get("honours_default_device") is False
    assert not DATA["functions"]["torch.add"].get("device_kwarg")


@pytest.mark.parametrize(
    ("name", "rejects"),
    [
        ("torch.add", {"input", "other"}),
        ("torch.Tensor.add_", {"self", "other"}),
        ("torch.mm", {"input", "mat2"}),
        ("torch.cat", {"tensors"}),
        ("torch.einsum", {"args"}),
        ("torch.where", {"condition", "input", "other"}),
        ("torch.Tensor.scatter_", {"self", "index", "src"}),
        ("torch.Tensor.index_put_", {"self", "values"}),
        ("torch.nn.functional.cross_entropy", {"input", "target", "weight"}),
        ("torch.nn.functional.embedding", {"input", "weight"}),
        ("torch.nn.functional.linear", {"input", "weight", "bias"}),
        # FakeTensor lets these pass; CUDA does not.
        ("torch.conv2d", {"input", "weight", "bias"}),
        ("torch.nn.functional.conv_transpose1d", {"input", "weight", "bias"}),
        ("torch.masked_select", {"input", "mask"}),
        # These copy from the CPU themselves.
        ("torch.Tensor.copy_", set()),
        ("torch.Tensor.bernoulli_", set()),
        ("torch.select_scatter", set()),
    ],
)
def test_which_arguments_reject_a_cpu_tensor(name: str, rejects: set[str]) -> None:
    assert known(name).rejects_cpu == rejects


def test_which_arguments_accept_a_cpu_tensor() -> None:
    assert known("torch.Tensor.copy_").accepts_cpu == {"self", "other"}
    assert known("torch.Tensor.index_put_").accepts_cpu == {"indices"}
    assert known("torch.Tensor.view_as").accepts_cpu == {"self", "other"}
    assert known("torch.add").accepts_cpu == frozenset()


def test_accepting_and_rejecting_exclude_each_other() -> None:
    for name in DATA["functions"]:
        function = known(name)
        assert not function.rejects_cpu & (function.accepts_cpu | function.must_be_cpu), name


def test_scalars_on_the_cpu_pass_where_the_kernel_makes_an_exception_for_them() -> None:
    assert known("torch.add").accepts_cpu_scalar
    assert known("torch.add").device_check == "NoCheck"
    assert not known("torch.mm").accepts_cpu_scalar
    assert known("torch.mm").device_check == "ExactSame"
    # of several variants, those count that take another tensor, as a bound
    assert known("torch.clamp").device_check == known("torch.Tensor.clamp_").device_check == "ExactSame"


def test_arguments_that_must_be_on_the_cpu() -> None:
    assert known("torch.nn.utils.rnn.pack_padded_sequence").must_be_cpu == {"lengths"}
    assert known("torch.tensor_split").must_be_cpu == {"tensor_indices_or_sections"}


def test_what_makes_the_host_wait() -> None:
    assert known("torch.Tensor.item").sync == "always"
    assert known("torch.Tensor.nonzero").sync == "always"
    assert known("torch.equal").sync == "always"
    assert known("torch.linalg.inv").sync == "always"
    assert known("torch.repeat_interleave").sync == "sometimes"
    assert known("torch.add").sync is None


def test_positions_are_matched_to_names() -> None:
    assert known("torch.add").parameters == ("input", "other")
    # Of the overloads, the one with the tensors.
    assert known("torch.max").parameters == ("input", "other")
    assert known("torch.Tensor.addmm").parameters == ("self", "mat1", "mat2")
    convolution = known("torch.nn.functional.conv2d")
    assert [convolution.parameter_at(n) for n in (0, 2, 9)] == ["input", "bias", None]
    varargs = known("torch.broadcast_tensors")
    assert [varargs.parameter_at(n) for n in (0, 7)] == ["tensors", "tensors"]


def test_methods_and_unknown_names() -> None:
    assert torch_table.method("add_") is torch_table.function("torch.Tensor.add_")
    assert torch_table.method("no_such_method") is None
    assert torch_table.function("torch.no_such_function") is None
    assert torch_table.module("torch.nn.NoSuchModule") is None


def test_modules() -> None:
    assert known_module("torch.nn.Linear") == Module("torch.nn.Linear", has_params=True)
    assert DATA["modules"]["torch.nn.Linear"]["device_kwarg"]
    # Takes `device=` without naming it.
    assert DATA["modules"]["torch.nn.LSTM"]["device_kwarg"]
    assert not DATA["modules"]["torch.nn.TransformerEncoder"].get("device_kwarg")
    assert known_module("torch.nn.BatchNorm2d").has_buffers
    assert known_module("torch.nn.ReLU") == Module("torch.nn.ReLU")
    # What a container holds is up to the user.
    assert torch_table.module("torch.nn.Sequential") is None


def test_losses_that_keep_a_tensor_as_buffer() -> None:
    keeping = {name.rsplit(".", 1)[1]: known_module(name).buffer_arguments for name in torch_table.module_names()}
    weight = frozenset({"weight"})
    assert {name: arguments for name, arguments in keeping.items() if arguments} == {
        "BCELoss": weight,
        "BCEWithLogitsLoss": {"weight", "pos_weight"},
        "CrossEntropyLoss": weight,
        "MultiLabelSoftMarginLoss": weight,
        "MultiMarginLoss": weight,
        "NLLLoss": weight,
    }


# --- How it is kept and read --------------------------------------------------------------------------------------


def test_reading_it_needs_no_torch() -> None:
    loaded = run_python("""
        import json, sys
        sys.modules["torch"] = None  # importing it raises
        from devlint.flow.catalog import torch_table
        assert torch_table.function("torch.zeros") and torch_table.module("torch.nn.Linear")
        print(json.dumps([name for name in sys.modules if name.startswith("torch.")]))
    """)
    assert loaded == []


def test_one_function_is_one_line_and_all_is_small() -> None:
    text = TABLE.read_text(encoding="utf-8")
    assert len(text) < 150_000
    lines = text.splitlines()
    for name in DATA["functions"]:
        assert sum(line.startswith(f'"{name}":{{') for line in lines if name in line) == 1
    assert [line for line in lines if line.startswith('"torch.')] == sorted(
        (line for line in lines if line.startswith('"torch.')), key=_function_first
    )


def _function_first(line: str) -> tuple[bool, str]:
    """Functions come before modules, each by name."""
    name = line.split('"')[1]
    return name in torch_table.module_names(), name


# --- Whether it fits the installed torch ----------------------------------------------------------------------------


@needs_torch
def test_no_drift_from_the_installed_torch() -> None:
    """Names that came or went. Only for the version which the table was derived from, they are an error."""
    installed = run_python("import json, torch; print(json.dumps(torch.__version__))").partition("+")[0]
    try:
        names = set(
            run_python("""
                import json
                from tools.device_table.universe import universe
                print(json.dumps(list(universe())))
            """)
        )
    except RuntimeError as error:
        if installed == DATA["torch"]:
            raise
        warnings.warn(f"torch {installed} cannot be listed: {error}", TableDriftWarning, stacklevel=1)
        return
    new, gone = sorted(names - set(DATA["functions"])), sorted(set(DATA["functions"]) - names)
    message = (
        f"torch_table.json was derived from torch {DATA['torch']}, torch {installed} is installed: "
        f"{len(new)} functions are new {new[:10]}, {len(gone)} are gone {gone[:10]}. "
        "Run `python -m tools.make_device_table` and look at the difference."
    )
    if installed == DATA["torch"]:
        assert not new, message
        assert not gone, message
    elif new or gone:
        warnings.warn(message, TableDriftWarning, stacklevel=1)


# What running torch on the stand-in accelerator shows, against what the table says.
RUNS = {
    "torch.zeros(2)": ("torch.zeros", "cpu"),
    "torch.zeros_like(g)": ("torch.zeros_like", "gpu"),
    "torch.zeros_like(c, device='gpu')": ("torch.zeros_like", "gpu"),
    "g.new_zeros(2)": ("torch.Tensor.new_zeros", "gpu"),
    "torch.from_numpy(numpy.zeros(2))": ("torch.from_numpy", "cpu"),
    "torch.add(g, c)": ("torch.add", "mismatch"),
    "torch.add(c, other=g)": ("torch.add", "mismatch"),
    "torch.add(g, torch.zeros(()))": ("torch.add", "gpu"),
    "torch.mm(g, c)": ("torch.mm", "mismatch"),
    "torch.cat([g, c])": ("torch.cat", "mismatch"),
    "g.copy_(c)": ("torch.Tensor.copy_", "gpu"),
    "c.type_as(g)": ("torch.Tensor.type_as", "gpu"),
    "g.index_put((torch.tensor([0]),), g)": ("torch.Tensor.index_put", "gpu"),
    "torch.where(g > 0, g, c)": ("torch.where", "mismatch"),
    "g.sum().item()": ("torch.Tensor.item", "synchronised"),
    "torch.masked_select(g, g > 0)": ("torch.masked_select", "synchronised"),
    "torch.nn.functional.linear(g, c)": ("torch.nn.functional.linear", "mismatch"),
    "g.size()": ("torch.Tensor.size", "python"),
}


@pytest.fixture(scope="module")
def seen() -> dict[str, str]:
    if run_python("import json, torch; print(json.dumps(torch.__version__))").partition("+")[0] != DATA["torch"]:
        pytest.skip(f"the table was derived from torch {DATA['torch']}")
    result: dict[str, str] = run_python(f"""
        import json, numpy, torch
        from tools.device_table import fake
        def outcome(code):
            def function(g, c):
                return eval(code, {{"torch": torch, "numpy": numpy, "g": g, "c": c}})
            call = fake.Call(function, (torch.ones(3, 3), torch.ones(3, 3)))
            done = fake.run(call, [fake.ACCELERATOR, fake.CPU], strict=True)
            return done.where or done.kind
        print(json.dumps({{code: outcome(code) for code in {list(RUNS)!r}}}))
    """)
    return result


@needs_torch
@pytest.mark.parametrize("code", RUNS)
def test_running_torch_shows_what_the_table_says(seen: dict[str, str], code: str) -> None:
    name, expected = RUNS[code]
    function = known(name)
    assert seen[code] == expected
    if expected == "mismatch":
        assert function.rejects_cpu
    elif expected == "synchronised":
        assert function.sync == "always"
    elif expected == "cpu":
        assert function.rule in ("default_or_kwarg", "cpu")
    elif expected == "python":
        assert function.rule == "python"
    else:
        assert function.rule in ("like_input_or_kwarg", "same_as_input", "mover:other")
