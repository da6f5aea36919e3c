"""Inputs that belong to equal limbs, recognized by how they are used.

A chain of additions and subtractions is one operation of many terms: sums over equal limbs are then
the same for every limb, whatever the order they were added in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import ARITY, COMMUTATIVE, LEAVES, Kind
from axode.codegen.tape.tape import Tape

_KINDS = {int(kind): kind for kind in Kind}  # much faster than Kind(number)
_LENGTHS = [ARITY[kind] or 2 for kind in Kind]
_CHAINED = (Kind.ADD, Kind.SUB)


class Node(NamedTuple):
    """An operation on values, which are named by their place on the tape.

    Attributes:
        kind: Operation; ADD for every sum.
        operands: Values, or argument and element of an input, or the number of a constant.
        signs: 1 or -1 for every term of a sum, else empty.
    """

    kind: Kind
    operands: tuple[int, ...]
    signs: tuple[int, ...] = ()


Graph = dict[int, Node]


def operation_rows(tape: Tape) -> list[tuple[Kind, tuple[int, ...]]]:
    """Kind and operands of every instruction, as plain Python."""
    rows = zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True)
    return [(_KINDS[kind], tuple(row[: _LENGTHS[kind]])) for kind, row in rows]


def graph(tape: Tape, whole: Collection[int] = ()) -> Graph:
    """The nodes of a tape in its order; sums that only serve another sum are part of it.

    Args:
        tape: What they are on.
        whole: Values that stay nodes of their own.
    """
    rows = operation_rows(tape)
    used = tape.operands[tape.kinds > Kind.CONSTANT].ravel()
    uses = np.bincount(np.concatenate([used[used >= 0], tape.results])).tolist()
    nodes: Graph = {}
    sums: dict[int, tuple[list[int], list[int]]] = {}
    for number, (kind, operands) in enumerate(rows):
        if kind not in _CHAINED:
            nodes[number] = Node(kind, operands)
            continue
        terms, signs = sums[number] = [], []
        for v, sign in zip(operands, (1, 1 if kind == Kind.ADD else -1), strict=True):
            if uses[v] == 1 and v in sums and v not in whole:
                more, own = sums.pop(v)
                terms += more
                signs += own if sign > 0 else [-s for s in own]
            else:
                terms.append(v)
                signs.append(sign)
    nodes |= {n: Node(Kind.ADD, tuple(terms), tuple(signs)) for n, (terms, signs) in sums.items()}
    return dict(sorted(nodes.items()))


# How far around an input one looks: nearer, other inputs look alike; farther, equal ones do not.
NEAR, FAR = 2, 4
LARGEST_FAMILY = 16

Family = tuple[tuple[int, ...], ...]  # for every kind of input its values, one per limb


def families(graph: Graph) -> list[Family]:
    """Candidates, the largest first: inputs used alike, as many of each kind as there are limbs.

    Those much smaller than the largest are left out.

    Limbs are taken to come in the same order in every kind; where they do not, little will fit
    together later and the candidate loses.
    """
    found: dict[int, dict[tuple[int, ...], None]] = {}
    for kinds in _input_kinds(graph):
        for values in kinds:
            if 2 <= len(values) <= LARGEST_FAMILY:
                found.setdefault(len(values), {})[values] = None
    largest_first = sorted(map(tuple, found.values()), key=_size, reverse=True)
    return [family for family in largest_first if 2 * _size(family) >= _size(largest_first[0])]


def _size(family: Family) -> int:
    return sum(map(len, family))


def _input_kinds(graph: Graph) -> Iterator[list[tuple[int, ...]]]:
    """Inputs with equal surroundings, ever larger ones; constants are not looked at."""
    places = {number: place for place, number in enumerate(graph)}
    edges = np.array(
        [
            (places[number], places[value], 0 if node.kind in COMMUTATIVE else operand)
            for number, node in graph.items()
            if node.kind not in LEAVES
            for operand, value in enumerate(node.operands)
        ],
        dtype=np.uint64,
    ).reshape(-1, 3)
    users, values, operands = edges.T
    looks = _mix(np.array([node.kind for node in graph.values()], dtype=np.uint64))
    inputs = sorted(
        (n for n in graph if graph[n].kind == Kind.INPUT), key=lambda n: graph[n].operands
    )
    for radius in range(1, FAR + 1):
        around = np.zeros_like(looks)
        np.add.at(around, users, _mix(looks[values]))
        np.add.at(around, values, _mix(looks[users] + operands + np.uint64(1)))
        looks = _mix(looks + _mix(around))
        if radius >= NEAR:
            kinds: dict[int, list[int]] = {}
            for number in inputs:
                kinds.setdefault(int(looks[places[number]]), []).append(number)
            yield [tuple(found) for found in kinds.values()]


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers scattered over all of 64 bits, so that their sums identify what was added."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
