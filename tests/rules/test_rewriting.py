"""What DVL609 makes of calls that serve CUDA only, and what it leaves alone."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding
from tests.test_fixtures import apply

CONFIG = Config(rule_layers=(RuleLayer(select=("DVL609",)),))


def found(text: str, config: Config = CONFIG) -> list[Finding]:
    return list(check_source(text, "m.py", config))


def rewritten(text: str) -> str:
    """The text after the fixes, each applied alone, until none is left."""
    for _ in range(20):
        fixes = [finding.fix for finding in found(text) if finding.fix]
        if not fixes:
            return text
        text = apply(text, fixes[0].edits)
        ast.parse(text)
    raise AssertionError("its fixes do not come to an end")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
        ("torch.cuda.synchronize( device = d )", "torch.accelerator.synchronize( d )"),
        ("torch.cuda.set_device(rank)  # mine", "torch.accelerator.set_device_index(rank)  # mine"),
        ("i = torch.cuda.current_device()", "i = torch.accelerator.current_device_index()"),
        ("free, _ = torch.cuda.mem_get_info(d)", "free, _ = torch.accelerator.get_memory_info(d)"),
        ("torch.cuda.manual_seed_all(seed=3)", "torch.manual_seed(seed=3)"),
        ("e = torch.cuda.Event(True, False)", "e = torch.Event(enable_timing=True, blocking=False)"),
        ("s = torch.cuda.Stream(priority=-1)", "s = torch.Stream(priority=-1)"),
        ("with torch.cuda.device(1): f()", "with torch.accelerator.device_index(1): f()"),
        ("torch.cuda.reset_peak_memory_stats(d)", "torch.accelerator.reset_peak_memory_stats(d)"),
    ],
)
def test_a_call_keeps_its_arguments_and_its_layout(before: str, after: str) -> None:
    assert rewritten(f"import torch\n{before}\n") == f"import torch\n{after}\n"


@pytest.mark.parametrize(
    "code",
    [
        "m = torch.cuda.memory_allocated()",  # raises without an accelerator, and is no statement of its own
        "torch.cuda.empty_cache(); f()",  # no line of its own
        "if x: torch.cuda.empty_cache()",  # no line of its own
        "with torch.cuda.device(d): f()",  # may be a device, which device_index does not take
        "with torch.cuda.stream(s): f()",  # may be None
        "e = torch.cuda.Event(external=True)",  # torch.Event knows no such argument
        "e = torch.cuda.Event(*given)",
        "s = torch.cuda.synchronize",  # whoever calls it may name its argument
        'd = "cuda:0" if torch.cuda.is_available() else "cpu"',  # half of it would be left
        "use_cuda = torch.cuda.is_available()",
        'b = "nccl" if torch.cuda.device_count() > 1 else "gloo"',
        "if torch.cuda.is_available(): x = x.cuda()",
    ],
)
def test_what_would_be_wrong_is_reported_and_left_alone(code: str) -> None:
    text = f"import torch\n{code}\n"
    assert found(text)
    assert rewritten(text) == text


def test_what_raises_without_an_accelerator_gets_the_question_for_one() -> None:
    before = "import torch\n\n\ndef f():\n\tg()\n\ttorch.cuda.empty_cache()  # now\n"
    after = (
        "import torch\n\n\ndef f():\n\tg()\n\tif torch.accelerator.is_available():\n"
        "\t\ttorch.accelerator.empty_cache()  # now\n"
    )
    assert rewritten(before) == after


def test_the_question_is_changed_last_and_only_if_nothing_else_is_bound_to_cuda() -> None:
    before = "import torch\n\n\ndef f():\n    if torch.cuda.is_available():\n        torch.cuda.empty_cache()\n"
    assert rewritten(before) == before.replace("torch.cuda", "torch.accelerator")
    left = before + "        x.cuda()\n"
    assert "torch.cuda.is_available()" in rewritten(left)
    assert "torch.accelerator.empty_cache()" in rewritten(left)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.manual_seed(s)\n    torch.cuda.manual_seed(s)\n    torch.cuda.manual_seed_all(s)",
            "torch.manual_seed(s)",
        ),
        ("torch.cuda.manual_seed(s)\n    torch.cuda.manual_seed_all(s)", "torch.manual_seed(s)"),
        (
            "torch.manual_seed(s)\n    if torch.cuda.is_available(): torch.cuda.manual_seed_all(s)",
            "torch.manual_seed(s)",
        ),
        (
            "torch.manual_seed(s)\n    if torch.cuda.is_available():\n        torch.cuda.manual_seed(s)\n    g()",
            "torch.manual_seed(s)\n    g()",
        ),
        (
            "torch.manual_seed(s)\n    if s:\n        torch.cuda.manual_seed(s)\n        g()",
            "torch.manual_seed(s)\n    if s:\n        g()",
        ),
        (
            "torch.manual_seed(s)\n    if s:\n        if s > 1:\n            torch.cuda.manual_seed(s)\n        g()",
            "torch.manual_seed(s)\n    if s:\n        g()",
        ),
        (
            "torch.manual_seed(s)\n    torch.cuda.manual_seed(s + 1)",
            "torch.manual_seed(s)\n    torch.manual_seed(s + 1)",
        ),
    ],
)
def test_what_is_seeded_is_not_seeded_again(before: str, after: str) -> None:
    assert rewritten(f"import torch\n\ndef f(s):\n    {before}\n") == f"import torch\n\ndef f(s):\n    {after}\n"


def test_a_condition_that_does_something_keeps_its_call() -> None:
    text = "import torch\n\ndef f(s):\n    torch.manual_seed(s)\n    if g():\n        torch.cuda.manual_seed(s)\n"
    assert found(text)
    assert rewritten(text) == text


@pytest.mark.parametrize(
    "code",
    [
        "s = torch.cuda.Stream()\nwith torch.cuda.stream(s):\n    f()",
        "if torch.cuda.current_stream() == torch.cuda.default_stream():\n    f()",
        "def current() -> torch.cuda.Stream:\n    return torch.cuda.current_stream()",
        "launch(torch.cuda.current_stream().cuda_stream)",
        "e = torch.cuda.Event()\nassert isinstance(e, torch.cuda.Event)",
    ],
)
def test_streams_and_events_of_cuda_stay_where_their_class_is_asked_for(code: str) -> None:
    text = f"import torch\n{code}\n"
    assert found(text)
    assert rewritten(text) == text


def test_names_go_by_the_name_that_torch_has_in_the_file() -> None:
    assert (
        rewritten("import torch as th\nth.cuda.synchronize()\n") == "import torch as th\nth.accelerator.synchronize()\n"
    )
    imported = rewritten("from torch.cuda import synchronize\nsynchronize()\n")
    assert "import torch\n" in imported
    assert imported.endswith("torch.accelerator.synchronize()\n")


def test_only_what_needs_a_device_on_either_side_is_safe() -> None:
    def applicability(code: str, target: tuple[int, int] | None = (2, 13)) -> Applicability | None:
        (finding,) = found(f"import torch\n{code}\n", replace(CONFIG, target_torch=target))
        return finding.fix.applicability if finding.fix else None

    assert applicability("torch.cuda.synchronize()") is Applicability.SAFE
    # nobody says that there is torch 2.6, which has the new name
    assert applicability("torch.cuda.synchronize()", None) is Applicability.UNSAFE
    assert applicability("torch.cuda.Event()") is Applicability.UNSAFE
    assert applicability("torch.cuda.manual_seed(0)") is Applicability.UNSAFE
    assert applicability("torch.cuda.empty_cache()") is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("code", "since"),
    [
        ("torch.cuda.synchronize()", (2, 6)),
        ("torch.cuda.device(0)", (2, 8)),
        ("torch.cuda.empty_cache()", (2, 9)),
        ("torch.cuda.mem_get_info()", (2, 10)),
        ("torch.cuda.Event()", (2, 5)),
    ],
)
def test_an_equivalent_counts_from_the_torch_that_has_it(code: str, since: tuple[int, int]) -> None:
    text = f"import torch\n{code}\n"
    assert len(found(text, Config(CONFIG.rule_layers, target_torch=since))) == 1
    assert not found(text, Config(CONFIG.rule_layers, target_torch=(since[0], since[1] - 1)))


@pytest.mark.parametrize(
    "body",
    [
        'if d.type == "cuda":\n        torch.cuda.synchronize()',
        "if x.is_cuda:\n        torch.cuda.synchronize()",
        "if torch.cuda.is_available():\n        torch.cuda.synchronize()\n    elif is_npu_available():\n        pass",
        "return torch.cuda.device_count() > 1 or torch.xpu.device_count() > 1",
        'if d.type != "mps":\n        torch.cuda.synchronize()',
    ],
)
def test_a_branch_for_cuda_beside_others_is_reported_and_stays_one(body: str) -> None:
    text = f"import torch\n\ndef f(x, d):\n    {body}\n"
    assert found(text)
    assert rewritten(text) == text
