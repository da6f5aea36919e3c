"""Which joints of a graph of links make its tree, and which close its loops.

Joints that something acts on belong to the tree, where they have coordinates. Of the others those
with the most freedom close loops: they need the fewest rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axode.mechanism.elements.bodies import GROUND


@dataclass(frozen=True)
class GraphEdge:
    """A joint between two bodies, by their names.

    Attributes:
        cost: What is cut last, first; joints with equal costs are cut from the end of the file.
    """

    parent: str
    child: str
    cost: tuple[int, ...]


@dataclass
class SpanningTree:
    """The tree that was chosen.

    Attributes:
        forward: By the number of an edge in the tree, whether it leads from parent to child.
        roots: Bodies that no joint connects to the ground, one per free part.
    """

    forward: dict[int, bool]
    roots: list[str]


def choose_tree(
    bodies: Sequence[str], edges: Sequence[GraphEdge], root_of: Callable[[list[str]], str]
) -> SpanningTree:
    """Choose a spanning tree.

    Args:
        bodies: All bodies but the ground.
        edges: All joints.
        root_of: Chooses the root among the bodies of a part that nothing connects to the ground.
    """
    kept = _spanning_edges([GROUND.name, *bodies], edges)
    beside: dict[str, list[int]] = {}
    for number in kept:
        for end in (edges[number].parent, edges[number].child):
            beside.setdefault(end, []).append(number)
    forward: dict[int, bool] = {}
    reached: set[str] = set()

    def spread(root: str) -> None:
        reached.add(root)
        waiting = [root]
        while waiting:
            body = waiting.pop(0)
            for number in beside.get(body, ()):
                edge = edges[number]
                if number not in forward:
                    forward[number] = edge.parent == body
                    other = edge.child if edge.parent == body else edge.parent
                    reached.add(other)
                    waiting.append(other)

    spread(GROUND.name)
    roots = []
    for body in bodies:
        if body not in reached:
            roots.append(root_of(_part(body, beside, edges)))
            spread(roots[-1])
    return SpanningTree(forward, roots)


def _spanning_edges(bodies: list[str], edges: Sequence[GraphEdge]) -> list[int]:
    """Numbers of edges without a ring, the cheapest first."""
    above = {body: body for body in bodies}

    def top(body: str) -> str:
        while above[body] != body:
            above[body] = above[above[body]]
            body = above[body]
        return body

    kept = []
    for number in sorted(range(len(edges)), key=lambda n: (edges[n].cost, n)):
        first, second = top(edges[number].parent), top(edges[number].child)
        if first != second:
            above[second] = first
            kept.append(number)
    return sorted(kept)


def _part(body: str, beside: dict[str, list[int]], edges: Sequence[GraphEdge]) -> list[str]:
    """All bodies that the tree joins to one."""
    found, waiting = {body: None}, [body]
    while waiting:
        for number in beside.get(waiting.pop(), ()):
            for end in (edges[number].parent, edges[number].child):
                if end not in found:
                    found[end] = None
                    waiting.append(end)
    return list(found)
