"""Inputs that belong to equal limbs, told by how they are used."""

from __future__ import annotations

from collections.abc import Iterator

from axode.codegen.operations import COMMUTATIVE, Kind
from axode.codegen.sums import Graph

# How far around an input one looks: nearer, other inputs look alike; farther, equal ones do not.
NEAR, FAR = 2, 4
LARGEST_FAMILY = 16

Family = tuple[tuple[int, ...], ...]  # for every kind of input its values, one a limb


def families(graph: Graph) -> list[Family]:
    """Candidates, the largest first: inputs used alike, as many of each kind as there are limbs.

    Limbs are taken to come in the same order in every kind; where they do not, little will fit
    together later and the candidate loses.
    """
    found: dict[int, dict[tuple[int, ...], None]] = {}
    for kinds in _input_kinds(graph):
        for values in kinds:
            if 2 <= len(values) <= LARGEST_FAMILY:
                found.setdefault(len(values), {})[values] = None
    return sorted(map(tuple, found.values()), key=lambda family: -sum(map(len, family)))


def _input_kinds(graph: Graph) -> Iterator[list[tuple[int, ...]]]:
    """Inputs with equal surroundings, ever larger ones; constants are not looked at."""
    users: dict[int, list[tuple[int, int]]] = {number: [] for number in graph}
    for number, node in graph.items():
        alike = node.kind in COMMUTATIVE
        for place, value in enumerate(node.values):
            users[value].append((number, 0 if alike else place))
    looks = {number: int(node.kind) for number, node in graph.items()}
    inputs = sorted((n for n in graph if graph[n].kind == Kind.INPUT),
                    key=lambda n: graph[n].operands)  # fmt: skip
    for radius in range(1, FAR + 1):
        looks = {
            number: hash((
                looks[number],
                tuple(sorted([looks[v] for v in node.values])),
                tuple(sorted([(looks[u], place) for u, place in users[number]])),
            ))
            for number, node in graph.items()
        }  # fmt: skip
        if radius >= NEAR:
            kinds: dict[int, list[int]] = {}
            for number in inputs:
                kinds.setdefault(looks[number], []).append(number)
            yield [tuple(values) for values in kinds.values()]
