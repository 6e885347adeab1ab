"""Provenance: how a tensor came to be what and where it is, which explains a finding and locates its mend.

Facts do not hang on it: what a join, a widening or an arithmetic operation says of a tensor is the same whatever its
origin, which the tests hold them to.  It decides where the question is about the past itself: whether a claim may begin
with a creation, a move or an attribute; whether writing into a tensor is checked, which it is where that was just
created; whether what was not seen to be a tensor is a module when called, which it is where it was moved.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from devlint.immutable import immutable, replace
from devlint.sites.base import Step

_LONGEST_STORY = 8


@immutable(frozen=True, slots=True)
class Origin:
    """What happened to a tensor (its ``story``), what created it, and what keeps it.

    ``factory`` is the torch function that made it on the default device without being asked for one, ``node`` its call;
    ``blended`` are the creations of what else it was computed from, ``alternatives`` those on other paths.
    """

    story: tuple[Step, ...] = ()
    factory: str = ""
    node: ast.AST | None = None
    blended: tuple[tuple[str, ast.AST], ...] = ()
    alternatives: tuple[ast.AST, ...] = ()
    attribute: Step | None = None
    """The assignment of the plain module attribute that it was read from."""
    attribute_of: tuple[str, str] | None = None
    """The class and the name of that attribute."""
    kept: Step | None = None
    """Where ``__init__`` keeps it, on the CPU, in an attribute of an object that is no module."""

    def plain(self) -> Origin:
        """The story alone."""
        return Origin(self.story) if self.story else NO_ORIGIN

    def elsewhere(self, story: tuple[Step, ...] | None = None) -> Origin:
        """The origin of what is no longer where it was created, with another story where that is given."""
        if self.node is None and story is None:
            return self
        story = self.story if story is None else story
        return replace(self, story=story, factory="", node=None, blended=(), alternatives=())

    def needs(self, others: Collection[Origin]) -> tuple[tuple[str, ast.AST], ...]:
        """What has to be created elsewhere together with it: the creations of what else it was computed from."""
        own = [(other.factory, other.node) for other in others if other.node is not None]
        found = dict.fromkeys([*own, *(creation for other in others for creation in other.blended)])
        return tuple(creation for creation in found if creation[1] is not self.node)


NO_ORIGIN = Origin()


def join(first: Origin, second: Origin) -> Origin:
    """The origin of what has one or the other: one story after the other, as far as a reader would follow them.

    The creation and the attribute are the first that there are, other creations are alternatives; what is kept is so on
    both paths.
    """
    if first is second:
        return first
    made = first if first.node is not None else second
    creations = dict.fromkeys((*first.alternatives, *second.alternatives, second.node))
    steps = tuple(dict.fromkeys((*first.story, *second.story)))[:_LONGEST_STORY]
    return Origin(
        first.story if first.story == second.story else steps,
        made.factory,
        made.node,
        tuple(dict.fromkeys((*first.blended, *second.blended))),
        tuple(node for node in creations if node is not None and node is not made.node),
        first.attribute or second.attribute,
        first.attribute_of or second.attribute_of,
        first.kept if second.kept else None,
    )
