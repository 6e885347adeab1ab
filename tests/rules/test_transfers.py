"""What DVL201 says, and what its fix leaves behind; where it fires is in the fixtures."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability, Finding

IMPORTS = "import torch\nfrom torch import nn\n\n"


def check(body: str) -> list[Finding]:
    text = IMPORTS + "def f(device, steps):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    return check_source(text, config=Config(rule_layers=(RuleLayer(select=("DVL201",)),)))


def only(body: str) -> Finding:
    (finding,) = check(body)
    return finding


def test_it_does_not_claim_a_copy() -> None:
    finding = only(
        """
        x = torch.zeros(3, device=device)
        return x.to(device)
        """
    )
    assert finding.message == "`x` is already on `device`: `.to()` returns its input and moves nothing"
    assert [place.label for place in finding.related] == ["created on `device` here"]
    assert finding.help == "drop the call, and use `x` as it is"


def test_the_call_gives_way_to_its_receiver() -> None:
    finding = only(
        """
        x = torch.zeros(3, device=device)
        return x.mul(2).to(device)
        """
    )
    assert finding.fix is not None
    assert finding.fix.message == "Remove `.to()`"
    assert finding.fix.applicability is Applicability.SAFE
    (edit,) = finding.fix.edits
    assert edit.content == ""
    # what is taken off is the call alone: brackets and comments of the receiver stay
    assert edit.span == replace(finding.span, column=finding.span.column + len("x.mul(2)"))


@pytest.mark.parametrize("statement", ["x = x.to(device)", "x = x.to(device)  # to be sure"])
def test_a_statement_of_which_nothing_is_left_goes_with_its_line(statement: str) -> None:
    finding = only(f"x = torch.zeros(3, device=device)\n{statement}\nreturn x")
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    assert (edit.span.row, edit.span.column, edit.span.end_row, edit.span.end_column) == (6, 1, 7, 1)
    assert edit.content == ""


@pytest.mark.parametrize(
    "statement",
    [
        "for _ in range(steps):\n    x = x.to(device)",
        "print(x); x = x.to(device)",
        "x = x.to(device); print(x)",
    ],
)
def test_a_statement_that_shares_its_line_or_is_alone_in_its_block_stays(statement: str) -> None:
    finding = only(f"x = torch.zeros(3, device=device)\n{statement}\nreturn x")
    assert finding.fix is None


def test_a_module_is_visited_for_nothing() -> None:
    finding = only(
        """
        model = nn.Linear(2, 2)
        model.to(device)
        for _ in range(steps):
            model.to(device)
            model(torch.zeros(1, 2, device=device))
        """
    )
    assert str(finding.severity) == "warning"
    assert finding.fix is not None


@pytest.mark.parametrize("name", ["place", "steps.place"])
def test_a_device_has_the_name_that_the_code_gives_it(name: str) -> None:
    """Seen in torchdiffeq and ElegantRL: of what a device is made is too long to be read."""
    finding = only(
        f"""
        {name} = torch.device("cuda:" + str(steps.gpu) if torch.cuda.is_available() else "cpu")
        x = torch.log(steps.x.to({name})).to({name})
        """
    )
    assert f"is already on `{name}`:" in finding.message
    assert finding.related[0].label.endswith(f"moved to `{name}` here")
