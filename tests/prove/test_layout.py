"""The layout of a script changes nothing of what it does."""

from __future__ import annotations

import ast

from devlint.prove.searching.layout import WIDTH, laid_out

LONG = (
    'made = Net(first=Inner(second=Config(width=8, height=8), name="é, (x)"), '
    'third=torch.rand(2, 3, device="cuda"), fourth=None)'
)


def test_a_long_call_has_a_line_for_each_argument() -> None:
    script = f'import torch\n\n{LONG}.to("cuda")\nmade(torch.rand(2))\n'
    found = laid_out(script)
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(script))
    assert max(map(len, found.splitlines())) <= WIDTH
    assert '    first=Inner(second=Config(width=8, height=8), name="é, (x)"),\n' in found


def test_what_is_short_stays() -> None:
    script = 'import torch\n\nmodel = Net(width=2).to("cuda")\nmodel(torch.rand(2))\n'
    assert laid_out(script) == script
