"""The functions and classes of a file by its text alone: where each stands, and whether that is worth a parse."""

from __future__ import annotations

import re
from functools import cached_property

from devlint.flow.program.project import is_worth_reading
from devlint.flow.program.relevance import each, says_where, spoken_of

_STAR = re.compile(r"[\s\\]*\*")
"""What brings names into a file that its text does not have."""
_USES = frozenset("([.")
"""What follows directly on a name that is used; on one that is bound only after one of the next words."""
_BINDERS = ("def", "class", "import", "type")
_QUOTES = ('"', "'", "`")
_PROMPTS = (">>>", "...")
"""How the lines of an example begin that stands in a documentation."""
_DEFINITION = re.compile(r"\n(?:async +def|def|class) +(\w+)")
_NEXT = re.compile(r"\n(?![\s#)\]}])")


class Definitions:
    """The functions and classes in the first column of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._worth: dict[str, bool] = {}

    @cached_property
    def _begin(self) -> dict[str, int | None]:
        """Where the definition of each name begins; None where there are several."""
        begin: dict[str, int | None] = {}
        for match in _DEFINITION.finditer(f"\n{self._text}"):
            begin[match[1]] = None if match[1] in begin else match.start()
        return begin

    @cached_property
    def _has_star(self) -> bool:
        end = len("import")
        return any(_STAR.match(self._text, at + end) for at in each(self._text, "import"))

    def may_bind(self, name: str) -> bool:
        """Whether the text gives a reason to parse the file in search of what binds a name."""
        return self._has_star or any(_binds(self._text, at, at + len(name)) for at in spoken_of((name,), self._text))

    def defines(self, name: str) -> bool:
        """Whether the text has one definition of a name."""
        return self._begin.get(name) is not None

    def worth(self, name: str) -> bool:
        """Whether the text of a definition gives a reason to parse it; what is none, or unclear, does."""
        if name not in self._worth:
            code = self._code(name)
            self._worth[name] = code is None or is_worth_reading(code, self._sayers)
        return self._worth[name]

    def _code(self, name: str) -> str | None:
        """The lines of the only definition of a name; ``None`` if it is none, or unclear."""
        begin = self._begin.get(name)
        if begin is None:
            return None
        end = _NEXT.search(self._text, begin)
        return self._text[begin : end.end() if end else len(self._text)]

    @cached_property
    def _sayers(self) -> frozenset[str]:
        """The functions that say where something is."""
        codes = ((name, self._code(name) or "") for name in self._begin)
        return frozenset(name for name, code in codes if not code.startswith("class") and says_where(code))


def _binds(text: str, start: int, end: int) -> bool:
    """Whether a name that is spoken of may be bound there, and is not called, asked for a part, or quoted."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if text[end : end + 1] in _USES and not any(word in line for word in _BINDERS):
        return False
    return not line.endswith(_QUOTES) and not line.lstrip().startswith(_PROMPTS)
