"""Derived facts: what is found out about a definition when somebody first asks, and is kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from devlint.flow.syntax.nodes import Holder

Definition = TypeVar("Definition", bound=Holder)
Fact = TypeVar("Fact")


def derived(derive: Callable[[Definition], Fact]) -> Callable[[Definition], Fact]:
    """Let a function be called once for each definition: symbols need not know who finds out what about them."""

    def ask(definition: Definition) -> Fact:
        facts = definition.facts
        if derive not in facts:
            facts[derive] = derive(definition)
        found: Fact = facts[derive]
        return found

    return ask
