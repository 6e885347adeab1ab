"""A generated program: its lines, each with what may stand in its place when it has failed."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Line:
    """One line of code.

    ``repaired`` takes its place once it has raised: it leaves the same names behind.  ``mended`` is the line as a rule
    that warns of it (a plain attribute, a plain list of modules, a factory in ``forward``) wants it to be.  ``limit``
    names what `check` is documented not to know here: the line may fail unclaimed, and nothing uses what it computes.
    """

    text: str
    repaired: str = "pass"
    mended: str = ""
    limit: str = ""

    @property
    def indent(self) -> str:
        return self.text[: len(self.text) - len(self.text.lstrip())]


@dataclass(frozen=True)
class Program:
    """The lines, the words that may stand in ``sys.argv`` and decide branches, the constructs that were used.

    ``placed`` are the calls in methods that make a tensor on the default device, each as it is beside the module.
    """

    lines: tuple[Line, ...]
    words: tuple[str, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines) + "\n"

    @property
    def statements(self) -> int:
        """How many lines there are besides the imports."""
        return sum(bool(line.text) and not line.text.startswith(("import ", "from ")) for line in self.lines)

    def repair(self, row: int) -> Program:
        """The program without what fails in a row."""
        return self._with(row, self.lines[row - 1].repaired)

    def without_uncalled(self, reached: set[int]) -> Program:
        """The program with nothing in the functions of which no statement has begun."""
        lines = list(self.lines)
        for start, line in enumerate(lines):
            end = self.end(start)
            if line.text.lstrip().startswith("def ") and reached.isdisjoint(range(start + 2, end + 1)):
                inside = f"{line.indent}    pass"
                lines[start + 1 : end] = [Line(inside), *[Line("")] * (end - start - 2)]
        return replace(self, lines=tuple(lines))

    def end(self, start: int) -> int:
        """Where the block ends that a line begins."""
        end = start + 1
        while end < len(self.lines) and (
            not self.lines[end].text or len(self.lines[end].indent) > len(self.lines[start].indent)
        ):
            end += 1
        return end

    def function_of(self, row: int) -> int:
        """The row of the innermost function around a row; 0 at the top level."""
        around = (
            start
            for start, line in enumerate(self.lines[: row - 1])
            if line.text.lstrip().startswith("def ") and row - 1 < self.end(start)
        )
        return max((start + 1 for start in around), default=0)

    def longer(self) -> Program:
        """The program with one more round of every loop."""
        lines = []
        for line in self.lines:
            text = re.sub(r"^( *for .* in )(.*):$", r"\1[*(\2), *[*(\2)][:1]]:", line.text)
            text = re.sub(r"\) < (\d+):$", lambda found: f") < {int(found[1]) + 1}:", text)
            lines.append(replace(line, text=text))
        return replace(self, lines=tuple(lines))

    def mend(self, row: int) -> Program | None:
        """The program with a row as the rule that warns of it wants it to be, if there is such a form."""
        line = self.lines[row - 1]
        mended = line.mended or functools.reduce(
            lambda text, one: text.replace(*one), self.placed.items(), line.text.strip()
        )
        mended = "" if mended == line.text.strip() else mended
        return self._with(row, mended) if mended else None

    def _with(self, row: int, text: str) -> Program:
        line = self.lines[row - 1]
        lines = list(self.lines)
        lines[row - 1] = Line(line.indent + text)
        return replace(self, lines=tuple(lines))
