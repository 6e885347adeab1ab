"""The spans of a trace, in little memory: who ran inside of whom, by thread and time.

Of an operator or a Python function three numbers are kept, so that a trace of a gigabyte takes a small part of that.
Times are the trace's own, microseconds.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Thread = tuple[str, str]
"""Process and thread, as the trace numbers them."""


class Span(NamedTuple):
    """Something that ran from ``start`` to ``end``."""

    start: float
    end: float
    name: str
    stack: str = ""
    """Its call stack where the trace keeps one for each operator, as it writes it."""


class _Spans:
    """The spans of one thread."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._starts, self._ends = array("d"), array("d")
        self._texts, self._stacks = array("I"), array("I")

    def add(self, start: float, end: float, name: str, stack: str) -> None:
        self._starts.append(start)
        self._ends.append(end)
        self._texts.append(self._names.number(name))
        self._stacks.append(self._names.number(stack))

    def around(self, moments: Sequence[float]) -> Iterator[list[Span]]:
        """Yield, for each of these moments in order of time, the spans that it lies in, the outermost first."""
        starts, ends = self._starts, self._ends
        order = self._order()
        open_: list[int] = []
        position = 0
        for moment in moments:
            while position < len(order) and starts[order[position]] <= moment:
                index = order[position]
                while open_ and ends[open_[-1]] <= starts[index]:
                    open_.pop()
                open_.append(index)
                position += 1
            yield [self._span(index) for index in open_ if moment < ends[index]]

    def _order(self) -> Sequence[int]:
        """The numbers of the spans in order of time, of two that begin together the longer first."""
        starts, ends = self._starts, self._ends
        if all(
            starts[index] < starts[index + 1] or (starts[index] == starts[index + 1] and ends[index] >= ends[index + 1])
            for index in range(len(starts) - 1)
        ):
            return range(len(starts))  # as the profiler mostly writes them; a list of millions takes more than they do
        # one sort by both would make a pair for each
        return sorted(sorted(range(len(starts)), key=ends.__getitem__, reverse=True), key=starts.__getitem__)

    def _span(self, index: int) -> Span:
        text = self._names.text
        return Span(self._starts[index], self._ends[index], text(self._texts[index]), text(self._stacks[index]))


class Names:
    """Texts as numbers, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._texts = [""]

    def number(self, text: str) -> int:
        """The number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def text(self, number: int) -> str:
        """The text of a number."""
        return self._texts[number]


@dataclass(slots=True)
class Timeline:
    """The spans of all threads: operators and annotations in one tree, Python functions in another."""

    names: Names = field(default_factory=Names)
    _operators: dict[Thread, _Spans] = field(default_factory=dict)
    _functions: dict[Thread, _Spans] = field(default_factory=dict)

    def operator(self, thread: Thread, start: float, end: float, name: str, stack: str = "") -> None:
        """An operator ran."""
        self._of(self._operators, thread).add(start, end, name, stack)

    def function(self, thread: Thread, start: float, end: float, name: str) -> None:
        """A Python function ran."""
        self._of(self._functions, thread).add(start, end, name, "")

    def around(self, moments: Sequence[tuple[Thread, float]]) -> list[tuple[list[Span], list[Span]]]:
        """For each moment the operators and the Python functions that it lies in, the outermost first."""
        found: list[tuple[list[Span], list[Span]]] = [([], [])] * len(moments)
        threads: dict[Thread, list[int]] = defaultdict(list)
        for index, (thread, _) in enumerate(moments):
            threads[thread].append(index)
        for thread, indices in threads.items():
            indices.sort(key=lambda index: moments[index][1])
            times = [moments[index][1] for index in indices]
            trees = [
                tree[thread].around(times) if thread in tree else iter([[]] * len(times))
                for tree in (self._operators, self._functions)
            ]
            for index, operators, functions in zip(indices, *trees, strict=True):
                found[index] = (operators, functions)
        return found

    def _of(self, tree: dict[Thread, _Spans], thread: Thread) -> _Spans:
        spans = tree.get(thread)
        if spans is None:
            spans = tree[thread] = _Spans(self.names)
        return spans
