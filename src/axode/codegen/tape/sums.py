"""Tapes with whole sums: a chain of additions and subtractions as one operation of many terms.

Sums over equal limbs are then the same for every limb, whatever the order they were added in.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from axode.codegen.tape.operations import ARITY, Kind
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
