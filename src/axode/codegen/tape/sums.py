"""Tapes with whole sums: a chain of additions and subtractions as one operation of many terms.

Sums over equal limbs are then the same for every limb, whatever the order they were added in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Tape

_KINDS = {int(kind): kind for kind in Kind}  # much faster than Kind(number)
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

    @property
    def values(self) -> tuple[int, ...]:
        """The operands that are values."""
        return () if self.kind in LEAVES else self.operands


Graph = dict[int, Node]


def graph(tape: Tape, whole: Collection[int] = ()) -> Graph:
    """The nodes of a tape in its order; sums that only serve another sum are part of it.

    Args:
        tape: What they are on.
        whole: Values that stay nodes of their own.
    """
    kinds = [_KINDS[number] for number in tape.kinds.tolist()]
    rows = [
        (kind, tuple(row[: ARITY[kind] or 2]))
        for kind, row in zip(kinds, tape.operands.tolist(), strict=True)
    ]
    uses = Counter(v for kind, operands in rows if kind not in LEAVES for v in operands)
    uses.update(tape.results.tolist())
    nodes: Graph = {}
    sums: dict[int, tuple[list[int], list[int]]] = {}
    for number, (kind, operands) in enumerate(rows):
        if kind not in _CHAINED:
            nodes[number] = Node(kind, operands)
            continue
        first, second = (
            sums.pop(v) if uses[v] == 1 and v in sums and v not in whole else ([v], [1])
            for v in operands
        )
        sign = 1 if kind == Kind.ADD else -1
        sums[number] = (first[0] + second[0], first[1] + [sign * s for s in second[1]])
    nodes |= {n: Node(Kind.ADD, tuple(terms), tuple(signs)) for n, (terms, signs) in sums.items()}
    return dict(sorted(nodes.items()))
