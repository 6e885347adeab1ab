"""Makes a program as small as it gets while linter and run still disagree in the same way about it.

Hypothesis shrinks what it drew; taking lines out of the text gets further, and is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.accuracy.fuzz.comparing import Disagreement, compare
from tests.accuracy.fuzz.program import Line, Program
from tests.accuracy.fuzz.running import NotAProgram


def shrink(found: Disagreement) -> Disagreement:
    """The same disagreement about less code."""
    before = None
    while before != found.program.lines:
        before = found.program.lines
        for smaller in (_without_lines, _without_words, _with_simpler_lines):
            found = smaller(found)
    return found


def _without_lines(found: Disagreement) -> Disagreement:
    """Blocks, lines and the headers of blocks taken out, from the end to the start."""
    start = len(found.program.lines)
    while start:
        start = min(start, len(found.program.lines)) - 1
        for lines in _shorter(found.program, start):
            less = _same(replace(found.program, lines=lines), found)
            if less is not None:
                found = less
                break
    return found


def _without_words(found: Disagreement) -> Disagreement:
    for word in (word for word in found.program.words if f'"{word}"' not in found.program.text):
        words = tuple(other for other in found.program.words if other != word)
        found = _same(replace(found.program, words=words), found) or found
    return found


def _with_simpler_lines(found: Disagreement) -> Disagreement:
    for position in range(len(found.program.lines)):
        for _ in range(3):
            line = found.program.lines[position]
            for text in sorted((text for text in _simpler(line) if len(text) < len(line.text.strip())), key=len):
                lines = list(found.program.lines)
                lines[position] = replace(line, text=line.indent + text)
                simpler = _same(replace(found.program, lines=tuple(lines)), found)
                if simpler is not None and len(simpler.program.lines) == len(lines):
                    found = simpler
                    break
            else:
                break
    return found


def _same(program: Program, found: Disagreement) -> Disagreement | None:
    try:
        compare(program)
    except Disagreement as other:
        return other if other.kind == found.kind and other.detail[:6] == found.detail[:6] else None
    except (NotAProgram, SyntaxError):
        pass
    return None


def _shorter(program: Program, start: int) -> Iterator[tuple[Line, ...]]:
    """The lines without the block that begins somewhere, or without its header."""
    lines, end = program.lines, program.end(start)
    yield (*lines[:start], *lines[end:])
    if end > start + 1:
        inner = tuple(_dedented(line) for line in lines[start + 1 : end])
        yield (*lines[:start], *inner, *lines[end:])


def _dedented(line: Line) -> Line:
    return replace(line, text=line.text[4:] if line.text.startswith("    ") else line.text)


def _simpler(line: Line) -> Iterator[str]:
    text = line.text.strip()
    if line.repaired not in ("pass", text):
        yield line.repaired
    target, equals, expression = text.partition(" = ")
    if equals and "(" in expression and not line.indent and target[0] in "muap":
        yield f"{target} = torch.ones(4, 4)"
        yield f"{target} = torch.ones(4, 4).cuda()"
    for old, new in _REPLACED:
        if old in text:
            yield text.replace(old, new)


_REPLACED = (
    ('torch.device("cuda")', '"cuda"'),
    ('torch.device("cpu")', '"cpu"'),
    ("torch.zeros(", "torch.ones("),
    ("torch.rand(", "torch.ones("),
    ("torch.randn(", "torch.ones("),
    ("torch.full((4, 4), 2.0", "torch.ones(4, 4"),
    ("torch.linspace(0, 1, 16).reshape(4, 4)", "torch.ones(4, 4)"),
    ('.to(device="cuda")', ".cuda()"),
    ('.to("cuda")', ".cuda()"),
    ('.to("cpu")', ".cpu()"),
    (", dtype=torch.bool", ""),
)
