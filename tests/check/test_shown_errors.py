"""A notebook that keeps the error that devlint would tell of is there to show it."""

from __future__ import annotations

from typing import Any

from devlint import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.source.notebook.cells import read
from devlint.source.notebook.script import Script
from tests.notebooks import cell, notebook, sources

IMPORTS = "import torch\nfrom torch import nn"
MISMATCH = "print(1)\nz = x + y"
X, Y = "x = torch.ones(3, 3)", "y = torch.ones(3, 3).cuda()"


def places(*cells: str | dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """What is found: code, cell, row, column."""
    found = check_source(notebook(*cells), "a.ipynb")
    return [(finding.code, finding.span.cell, finding.span.row, finding.span.column) for finding in found]


class TestShownErrors:
    """It is told only to those who select the rule."""

    PARTED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"

    @staticmethod
    def raised(text: str, says: str, line: str) -> dict[str, Any]:
        frame = f"\x1b[32m      1\x1b[0m print(1)\n\x1b[1;32m----> 2\x1b[0;31m \x1b[0m{line}\n      3 print(2)"
        error = {"output_type": "error", "ename": "RuntimeError", "evalue": says, "traceback": [frame, says]}
        return {**cell(text), "outputs": [error]}

    def test_the_place_that_it_points_at(self) -> None:
        shown = self.raised(MISMATCH, self.PARTED, "z = x + y")
        assert places(IMPORTS, X, Y, shown) == []
        assert places(IMPORTS, X, Y, shown, "z = y + x") == [("DVL101", 5, 1, 5)]

    def test_for_those_who_select_the_rule(self) -> None:
        data = notebook(IMPORTS, X, Y, self.raised(MISMATCH, self.PARTED, "z = x + y"))
        found = check_source(data, "a.ipynb", Config((RuleLayer(("DVL101",)),)))
        assert [finding.span.cell for finding in found] == [4]

    def test_another_line_or_another_error(self) -> None:
        assert places(IMPORTS, X, Y, self.raised(MISMATCH, self.PARTED, "print(1)")) == [("DVL101", 4, 2, 5)]
        assert places(IMPORTS, X, Y, self.raised(MISMATCH, "out of memory", "z = x + y")) == [("DVL101", 4, 2, 5)]

    def test_the_outputs_stay_what_they_are(self) -> None:
        data = notebook(IMPORTS, "x = torch.ones(3).cuda()", self.raised("x + torch.ones(3)", self.PARTED, "x"))
        opened = Script.read(read(data))
        assert opened.with_text(opened.text).texts() == dict(enumerate(sources(data), 1))
