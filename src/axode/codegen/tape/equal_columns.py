"""Columns of a matrix that are computed alike, and what they are computed from.

The right-hand sides of one factorization go through the same operations with other numbers. From
the results downward, operations of such columns are followed as long as they are the same in every
column and have an operand in common; what they end at are the values that columns begin with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from axode.codegen.tape.operations import ARITY, COMMUTATIVE, Kind
from axode.codegen.tape.tape import Tape

FEWEST, MOST = 4, 8  # columns side by side; the longest vector holds as many
FEWEST_STEPS = 3  # per result; less is not worth moving numbers into columns
MOST_TERMS = 16  # of a sum that are looked at for one that is scaled
MOST_WALKS = 8  # until columns begin with nothing that columns lead to

Group = tuple[int, ...]
_SUMS = (Kind.ADD, Kind.SUB)
_KINDS = {int(kind): kind for kind in Kind}  # much faster than Kind(number)
_ARITIES = {int(kind): ARITY[kind] for kind in Kind}  # of leaves, nothing


@dataclass(frozen=True)
class ColumnStep:
    """One operation of columns that are computed alike.

    Attributes:
        group: Its value in every column.
        kind: What it does.
        operands: Values of every column; one and the same where columns have it in common.
    """

    group: Group
    kind: Kind
    operands: tuple[Group, ...]


@dataclass(frozen=True)
class ColumnSet:
    """Columns that are computed alike.

    Attributes:
        lanes: How many there are.
        seeds: Values that they begin with.
        steps: What is done with them, operands first.
    """

    lanes: int
    seeds: tuple[Group, ...]
    steps: tuple[ColumnStep, ...]

    @property
    def outside(self) -> set[Group]:
        """Groups that the steps use and do not compute."""
        inside = {step.group for step in self.steps}
        return {group for step in self.steps for group in step.operands} - inside

    @property
    def values(self) -> set[int]:
        """Everything that the steps compute."""
        return {value for step in self.steps for value in step.group}


def last_columns(tape: Tape) -> list[ColumnSet]:
    """Columns of a matrix, the one result of a tape, that are computed alike, and last of all.

    They begin with values that no column leads to.
    """
    stops: set[int] = set()
    operands = [
        row[: _ARITIES[kind]]
        for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True)
    ]
    for _ in range(MOST_WALKS):
        sets = column_sets(tape, stops)
        own = set().union(*(columns.values for columns in sets)) if sets else set()
        begins = {v for columns in sets for group in columns.outside for v in group}
        early = _leading_to(operands, begins)
        if not early & own:
            return sets
        stops |= {v for number in early - own for v in operands[number] if v in own}
        stops |= begins & own
    return []


def _leading_to(operands: list[list[int]], values: set[int]) -> set[int]:
    """These values and all that they are computed from."""
    found = set(values)
    waiting = list(values)
    while waiting:
        for value in operands[waiting.pop()]:
            if value not in found:
                found.add(value)
                waiting.append(value)
    return found


def column_sets(tape: Tape, stops: Collection[int] = ()) -> list[ColumnSet]:
    """Columns of a matrix, the one result of a tape, that are computed alike.

    Args:
        tape: What computes them.
        stops: Values that they begin with, whatever these are computed by.
    """
    shapes = [port.shape for port in tape.outputs]
    if len(shapes) != 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        return []
    rows, count = shapes[0]
    results = tape.results.reshape(rows, count).tolist()
    walk = _Walk(tape, stops)
    terms = _Terms(tape, results)
    alike: dict[object, list[int]] = defaultdict(list)
    for column in range(count):
        alike[tuple(terms.of(row[column]) for row in results)].append(column)
    found = []
    for columns in alike.values():
        parts = -(-len(columns) // MOST)
        size = -(-len(columns) // parts)
        for first in range(0, len(columns), size):
            some = columns[first : first + size]
            if len(some) >= FEWEST:
                found.append(walk.follow([tuple(row[c] for c in some) for row in results]))
    return [columns for columns in found if len(columns.steps) > FEWEST_STEPS * rows]


class _Terms:
    """What results are sums of: columns alike multiply their own numbers by the same factors."""

    def __init__(self, tape: Tape, results: list[list[int]]) -> None:
        self._kinds = [_KINDS[kind] for kind in tape.kinds.tolist()]
        self._operands = tape.operands.tolist()
        self._columns = [0] * len(self._kinds)  # that each value leads to, one bit each
        for row in results:
            for column, value in enumerate(row):
                self._columns[value] |= 1 << column
        for value in reversed(range(len(self._kinds))):
            for operand in self._operands[value][: ARITY[self._kinds[value]]]:
                self._columns[operand] |= self._columns[value]

    def of(self, result: int) -> object:
        """Factors of the terms of a result that more columns have, whatever else is in it."""
        found: set[tuple[Kind, int]] = set()
        waiting = [result]
        while waiting:
            value = waiting.pop()
            kind = self._kinds[value]
            operands = self._operands[value][: ARITY[kind]]
            if kind in (*_SUMS, Kind.NEG):
                waiting += [v for v in operands if self._columns[v] == self._columns[result]]
            elif kind in (Kind.MUL, Kind.DIV):
                shared = max(operands, key=lambda v: (self._columns[v].bit_count(), -v))
                found.add((kind, shared))
        return self._kinds[result], frozenset(found)


class _Walk:
    """Follows groups of values, one per column, downward from results."""

    def __init__(self, tape: Tape, stops: Collection[int]) -> None:
        self._stops = stops
        self._kinds = [_KINDS[kind] for kind in tape.kinds.tolist()]
        self._operands = tape.operands.tolist()

    def follow(self, results: list[Group]) -> ColumnSet:
        """Follow groups of results as far down as their members are computed alike."""
        seeds: dict[Group, None] = {}
        steps: dict[Group, ColumnStep] = {}
        waiting, open_ = list(results), set()
        while waiting:
            group = waiting[-1]
            if len(set(group)) == 1 or group in seeds or group in steps:
                waiting.pop()
                continue
            operands = self._step(group)
            if operands is None:
                seeds[group] = None
            elif group not in open_:
                open_.add(group)
                waiting += reversed(operands)
                continue
            else:
                steps[group] = ColumnStep(group, self._kinds[group[0]], tuple(operands))
            waiting.pop()
        return ColumnSet(len(results[0]), tuple(seeds), tuple(steps.values()))

    def _step(self, group: Group) -> list[Group] | None:
        """Operands of a group, None where its members are not the same or share nothing."""
        kind = self._kinds[group[0]]
        if any(self._kinds[value] != kind or value in self._stops for value in group):
            return None
        if kind == Kind.NEG:
            return self._aligned(group, kind)
        if kind in _SUMS:
            return self._aligned(group, kind) if self._has_scaled(group) else None
        return self._aligned(group, kind) if self._is_scaled(group) else None

    def _has_scaled(self, group: Group) -> bool:
        """Return whether a group is a sum with a scaled group among its terms."""
        waiting = [group]
        for _ in range(MOST_TERMS):
            if not waiting:
                break
            some = waiting.pop()
            kind = self._kinds[some[0]]
            if kind in _SUMS and all(self._kinds[value] == kind for value in some):
                operands = self._aligned(some, kind)
                if any(map(self._is_scaled, operands)):
                    return True
                waiting += operands
        return False

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
            pairs = [
                p[::-1] if s == [True, False] else p for p, s in zip(pairs, scaled, strict=True)
            ]
        return [tuple(column) for column in zip(*pairs, strict=True)]
