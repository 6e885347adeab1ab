"""What DVL105 and DVL106 advise about modules and parameters in plain containers."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
"""


def check(code: str, body: str, selected: bool = False) -> list[Finding]:
    """What one rule says about a class, by default or if it is selected."""
    config = Config(rule_layers=(RuleLayer((code,)),)) if selected else Config()
    return [found for found in check_source(HEAD + body, config=config) if found.code == code]


@pytest.mark.parametrize("made", ["nn.Linear(2, 2),", "(nn.Linear(2, 2),)"])
def test_a_tuple_by_a_comma_that_is_called_loses_the_comma(made: str) -> None:
    body = f"""
    def __init__(self):
        super().__init__()
        self.layer = {made}

    def forward(self, x):
        return self.layer(x.to("cuda"))
"""
    (found,) = check("DVL105", body)
    assert found.help == "drop the comma behind the module, which makes a tuple of it"
    assert found.fix is not None
    (edit,) = found.fix.edits
    assert edit.content == "nn.Linear(2, 2)"
    (found,) = check("DVL105", body.replace("self.layer(x", "self.layer[0](x"))
    assert found.help == "keep them in an `nn.ModuleList`"


def test_what_is_given_and_kept_under_a_private_name_is_borrowed() -> None:
    body = """
    def __init__(self, layers: list[nn.Module]):
        super().__init__()
        self._layers = layers
"""
    assert not check("DVL105", body)
    assert check("DVL105", body, selected=True)
    assert check("DVL105", body.replace("_layers", "layers"))


@pytest.mark.parametrize(
    ("kept", "listed"),
    [
        ("self.factors = []\n        self.factors.append({})", True),
        ("self.factors = []\n        factor = {}\n        self.factors.append(factor)", True),
        ("self.factors = [{} for _ in range(2)]", True),
        ("self.factor = {}", False),
    ],
)
def test_a_parameter_in_a_plain_list_needs_another_list(kept: str, listed: bool) -> None:
    made = kept.format("nn.Parameter(torch.ones(2)).to(device)")
    body = f"    def __init__(self, device):\n        super().__init__()\n        {made}\n"
    (found,) = check("DVL106", body)
    rest = ", in an `nn.ParameterList`: the plain list `self.factors` registers nothing" if listed else ""
    assert found.help == f"move the data first, and make it a parameter then{rest}"


@pytest.mark.parametrize("key", ["number", "1", "self.key(number)"])
def test_a_dict_with_keys_that_may_be_numbers_is_not_wrapped_as_it_is(key: str) -> None:
    body = """
    def __init__(self, numbers):
        super().__init__()
        self.parts = {}
        for number in numbers:
            self.parts[KEY] = nn.Linear(2, 2)

    def forward(self, x):
        return self.parts[1](x.to("cuda"))
"""
    (found,) = check("DVL105", body.replace("KEY", key))
    assert found.help == f"keep them in an `nn.ModuleDict`, whose keys have to be strings: `str({key})`"
    assert found.fix is None
    for text in (f"str({key})", f'f"{{{key}}}"', f'"part" + {key}', f'"{{}}".format({key})'):
        (found,) = check("DVL105", body.replace("KEY", text))
        assert found.help == "keep them in an `nn.ModuleDict`"
        assert found.fix is not None


@pytest.mark.parametrize(("called", "told"), [("torch.func.functional_call(self.parts[0], given, x)", 0), ("x", 1)])
def test_a_template_gets_its_parameters_from_elsewhere(called: str, told: int) -> None:
    """Seen in vmc_torch: what the list holds is never to be moved, its parameters are given to each call."""
    body = f"""
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(2, 2)]

    def forward(self, x, given):
        return self.parts[0]({called})
"""
    assert len(check("DVL105", body)) == told
    assert len(check("DVL105", body, selected=True)) == 1
