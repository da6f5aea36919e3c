"""Columns of a matrix that are computed alike, and what they are computed from.

The right-hand sides of one factorization go through the same operations with other numbers. From the
results downward, operations of such columns are followed as long as they are the same in every
column and have an operand in common; what they end at are the values that vectors are gathered from.
"""

from __future__ import annotations

from collections import defaultdict

from axode.codegen.tape.operations import ARITY, COMMUTATIVE, LEAVES, Kind
from axode.codegen.tape.tape import Tape

FEWEST, MOST = 4, 16  # columns side by side
MISSING = -1
DEPTH = 3  # operations, from a result downward, that columns alike have in common

Group = tuple[int, ...]
_SUMS = (Kind.ADD, Kind.SUB)


def column_groups(tape: Tape) -> tuple[list[Group], set[int]]:
    """Values that the columns of a matrix are computed from, and those computed alike.

    Nothing if there is no matrix with columns alike. Vectors have the same length; lanes that one
    does not have are missing.
    """
    shapes = [port.shape for port in tape.outputs]
    if len(shapes) != 1 or len(shapes[0]) != 2:
        return [], set()
    rows, count = shapes[0]
    results = tape.results.reshape(rows, count).tolist()
    walk = _Walk(tape)
    alike: dict[object, list[int]] = defaultdict(list)
    for column in range(count):
        alike[tuple(walk.look(row[column]) for row in results)].append(column)
    sets = [columns for columns in alike.values() if len(columns) >= FEWEST]
    if not sets:
        return [], set()
    lanes = _lanes([len(columns) for columns in sets])
    for columns in sets:
        for first in range(0, len(columns), lanes):
            for row in results:
                walk.follow(tuple(row[column] for column in columns[first : first + lanes]))
    full = [seed + (MISSING,) * (lanes - len(seed)) for seed in walk.seeds]
    return full, walk.followed


def _lanes(sizes: list[int]) -> int:
    """Columns in a vector: the number that leaves fewest lanes empty, more rather than fewer."""

    def cost(lanes: int) -> tuple[int, int]:
        return sum(-(-size // lanes) * (-(-lanes // FEWEST)) for size in sizes), -lanes

    return min(range(FEWEST, min(MOST, max(sizes)) + 1), key=cost)


class _Walk:
    """Follows groups of values, one per column, downward from results."""

    def __init__(self, tape: Tape) -> None:
        self._kinds = [Kind(kind) for kind in tape.kinds.tolist()]
        self._operands = tape.operands.tolist()
        self._seen: set[Group] = set()
        self._owned: set[int] = set()
        self.seeds: list[Group] = []
        self.followed: set[int] = set()

    def look(self, value: int, depth: int = DEPTH) -> object:
        """What values of columns alike have in common: their last operations."""
        kind = self._kinds[value]
        if not depth or kind in LEAVES:
            return kind
        return kind, *(self.look(v, depth - 1) for v in self._operands[value][: ARITY[kind]])

    def follow(self, group: Group) -> None:
        """Follow a group as far down as its members are computed alike."""
        waiting = [group]
        while waiting:
            group = waiting.pop()
            if len(set(group)) == 1 or group in self._seen:
                continue
            self._seen.add(group)
            operands = self._step(group)
            if operands is not None:
                waiting += operands
                self.followed |= set(group)
            elif len(set(group)) == len(group) and not self._owned & set(group):
                self._owned |= set(group)
                self.seeds.append(group)

    def _step(self, group: Group) -> list[Group] | None:
        """Operands of a group, None where its members are not the same or share nothing."""
        kind = self._kinds[group[0]]
        if any(self._kinds[value] != kind for value in group):
            return None
        if kind == Kind.NEG:
            return self._aligned(group, kind)
        if kind in _SUMS:
            operands = self._aligned(group, kind)
            return operands if any(self._is_scaled(operand) for operand in operands) else None
        return self._aligned(group, kind) if self._is_scaled(group) else None

    def _is_scaled(self, group: Group) -> bool:
        """Return whether a group is one number times, or by, others."""
        kind = self._kinds[group[0]]
        if kind not in (Kind.MUL, Kind.DIV) or any(self._kinds[v] != kind for v in group):
            return False
        return any(len(set(operand)) == 1 for operand in self._aligned(group, kind))

    def _aligned(self, group: Group, kind: Kind) -> list[Group]:
        """Operands one by one; of a product the common one first."""
        pairs = [self._operands[value][: ARITY[kind]] for value in group]
        if kind == Kind.MUL:
            common = set(pairs[0]).intersection(*pairs[1:])
            pairs = [sorted(pair, key=lambda v: v not in common) for pair in pairs]
        elif kind in COMMUTATIVE:
            scaled = [[self._kinds[v] == Kind.MUL for v in pair] for pair in pairs]
            pairs = [p[::-1] if s == [True, False] else p for p, s in zip(pairs, scaled, strict=True)]
        return [tuple(column) for column in zip(*pairs, strict=True)]
