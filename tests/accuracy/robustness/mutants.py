"""Fixtures with tokens dropped, doubled, swapped or replaced: code as it looks while it is typed, or merged."""

from __future__ import annotations

import io
import random
import tokenize
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from tests.accuracy.robustness.trial import Tally, attempt

FIXTURES = Path(__file__).parents[3] / "fixtures" / "rules"
THOROUGH = 4
"""Of so many mutants, one is also silenced, remembered and shown."""
_LAYOUT = frozenset({tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT})


def mutant(number: int, seed: int) -> tuple[str, str]:
    """The name and the text of the mutant of that number: the same for the same fixtures, whoever asks."""
    chance = random.Random(f"{seed}:{number}")
    path = chance.choice(fixtures())
    pieces = list(_pieces(path))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        chance.choice(_CHANGES)(pieces, chance)
    return f"mutant {number} of {path.parent.name}/{path.name}", "".join(pieces)


def tried(numbers: Sequence[int], seed: int) -> Tally:
    """What comes of some mutants."""
    tally = Tally()
    for number in numbers:
        name, text = mutant(number, seed)
        attempt(tally, name, text, number % THOROUGH == 0)
    return tally


@lru_cache(maxsize=1)
def fixtures() -> list[Path]:
    """The fixtures that can be taken apart."""
    return [path for path in sorted(FIXTURES.glob("*/*.py")) if not path.parent.name.startswith("DVL900")]


@lru_cache(maxsize=1024)
def _pieces(path: Path) -> tuple[str, ...]:
    """The text of a fixture in pieces: tokens, and what is between them."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces, reached = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT or not token.string:
            continue
        start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        pieces += [text[reached:start], text[start:end]]
        reached = end
    return (*pieces, text[reached:])


def _token(pieces: list[str], chance: random.Random) -> int:
    """The place of a token: every second piece is one."""
    return chance.randrange(len(pieces) // 2) * 2 + 1


def _drop(pieces: list[str], chance: random.Random) -> None:
    pieces[_token(pieces, chance)] = ""


def _double(pieces: list[str], chance: random.Random) -> None:
    at = _token(pieces, chance)
    pieces[at] = f"{pieces[at]} {pieces[at]}"


def _swap(pieces: list[str], chance: random.Random) -> None:
    at = min(_token(pieces, chance), len(pieces) - 4)
    pieces[at], pieces[at + 2] = pieces[at + 2], pieces[at]


def _exchange(pieces: list[str], chance: random.Random) -> None:
    one, other = _token(pieces, chance), _token(pieces, chance)
    pieces[one], pieces[other] = pieces[other], pieces[one]


def _name_another(pieces: list[str], chance: random.Random) -> None:
    """Put one name in the place of another, after which most code still parses."""
    named = [at for at in range(1, len(pieces), 2) if pieces[at].isidentifier()]
    pieces[chance.choice(named)] = pieces[chance.choice(named)]


def _drop_line(pieces: list[str], chance: random.Random) -> None:
    ends = [at for at in range(1, len(pieces), 2) if pieces[at].endswith("\n")]
    if len(ends) > 2:
        at = chance.randrange(len(ends) - 1)
        del pieces[ends[at] + 1 : ends[at + 1] + 1]


_CHANGES: tuple[Callable[[list[str], random.Random], None], ...] = (
    _drop, _double, _swap, _exchange, _name_another, _name_another, _name_another, _drop_line,
)  # fmt: skip
