"""What training scripts say to a GPU, and what a CUDA machine answers: tables of snippets for the simulator.

A snippet is a function; it passes if it returns, or raises what `raises` quotes from torch.  The modules of this
package are run in a child process of their own, since a simulator cannot be taken out again:

    python -m tests.simulator.idioms.run tensors

prints a JSON object with what each snippet raised, or null; with ``real`` as a second argument, on the devices that the
machine has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TABLES = ("tensors", "contents", "classes", "layouts", "errors", "training", "runtime", "graphs", "saving", "several")
"""The modules with snippets; each is run in one process with two simulated devices."""


@dataclass(frozen=True)
class Idiom:
    """A snippet, and the error that it ends with on a CUDA machine."""

    name: str
    run: Callable[[], None]
    raises: str


class Table:
    """The snippets of a module, in the order in which they are written."""

    def __init__(self) -> None:
        self.idioms: list[Idiom] = []

    def __call__(self, name: str, raises: str = "") -> Callable[[Callable[[], None]], Callable[[], None]]:
        def add(function: Callable[[], None]) -> Callable[[], None]:
            assert all(idiom.name != name for idiom in self.idioms), f"two idioms are called {name}"
            self.idioms.append(Idiom(name, function, raises))
            return function

        return add
