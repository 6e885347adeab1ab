"""The spans of a trace around some moments: who ran then inside of whom, by thread.

Of all other spans nothing is kept, so that memory grows with the moments that are asked for and not with the trace.
Times are the trace's own, microseconds.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

Thread = tuple[str, str]
"""Process and thread, as the trace numbers them."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where an object was, for which a builtin's name differs from call to call."""


class Span(NamedTuple):
    """Something that ran from ``start`` to ``end``."""

    start: float
    end: float
    name: str
    stack: str
    """Its call stack where the trace keeps one for each operator, as it writes it."""
    number: int
    """By which the spans of its thread are told apart."""


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
        return Span(self._starts[index], self._ends[index], text(self._texts[index]), text(self._stacks[index]), index)


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


class Timeline:
    """The spans around moments: operators and annotations in one tree of each thread, Python functions in another.

    ``moments`` are the times that matter, of each thread in their order.
    """

    def __init__(self, moments: Mapping[Thread, Sequence[float]]) -> None:
        names = Names()
        self._moments = moments
        self._operators = {thread: _Spans(names) for thread in moments}
        self._functions = {thread: _Spans(names) for thread in moments}

    def operator(self, thread: Thread, start: float, end: float, name: str, stack: str) -> None:
        """An operator ran."""
        if self._matters(thread, start, end):
            self._operators[thread].add(start, end, name, stack)

    def function(self, thread: Thread, start: float, end: float, name: str) -> None:
        """A Python function ran."""
        if self._matters(thread, start, end):
            self._functions[thread].add(start, end, _ADDRESS.sub("", name), "")

    def around(self, thread: Thread) -> Iterator[tuple[list[Span], list[Span]]]:
        """Yield, for each moment of a thread, the operators and the Python functions, the outermost first."""
        moments = self._moments[thread]
        return zip(self._operators[thread].around(moments), self._functions[thread].around(moments), strict=True)

    def _matters(self, thread: Thread, start: float, end: float) -> bool:
        moments = self._moments.get(thread)
        if moments is None:
            return False
        index = bisect_left(moments, start)
        return index < len(moments) and moments[index] < end
