"""Operations side by side: equal limbs as vectors, and columns of a matrix that are computed alike.

A single sample has no neighbours to share a vector with, but a platform on six legs does the same
arithmetic six times with other numbers. Starting from inputs that are used alike, operations on the
same operands of different limbs are packed, level by level. Values that no limb owns are repeated
in every lane; sums over limbs are vectors added up at the end. A chain of additions and
subtractions is one operation of many terms: sums over equal limbs are then the same for every limb,
whatever the order they were added in.

The right-hand sides of one factorization go through the same operations with other numbers, too.
From the results downward, operations of such columns are followed as long as they are the same in
every column and have an operand in common; what they end at are the values that columns begin with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import ARITY, COMMUTATIVE, LEAVES, LOGICAL, Kind
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
    kinds, columns = tape.kinds.tolist(), tape.operands.T.tolist()
    pairs = list(zip(columns[0], columns[1], strict=True))
    return [
        (_KINDS[kind], pair if _LENGTHS[kind] == 2 else (*pair, third)[: _LENGTHS[kind]])
        for kind, pair, third in zip(kinds, pairs, columns[2], strict=True)
    ]


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
        sign = 1 if kind == Kind.ADD else -1
        first, second = operands
        if uses[first] == 1 and first in sums and first not in whole:
            terms, signs = sums.pop(first)
        else:
            terms, signs = [first], [1]
        if uses[second] == 1 and second in sums and second not in whole:
            more, own = sums.pop(second)
            terms += more
            signs += own if sign > 0 else [-s for s in own]
        else:
            terms.append(second)
            signs.append(sign)
        sums[number] = terms, signs
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
    kinds_of = np.array([node.kind for node in graph.values()], dtype=np.uint64)
    places = np.zeros(max(graph, default=0) + 1, dtype=np.int64)
    places[list(graph)] = np.arange(len(graph))
    lengths = np.array(
        [0 if node.kind in LEAVES else len(node.operands) for node in graph.values()],
        dtype=np.int64,
    )
    inner = (node.operands for node in graph.values() if node.kind not in LEAVES)
    users = np.repeat(np.arange(len(graph)), lengths)
    values = places[np.fromiter(chain.from_iterable(inner), dtype=np.int64)]
    operands = np.arange(len(users)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    operands[np.isin(kinds_of[users], list(COMMUTATIVE))] = 0
    looks = _mix(kinds_of)
    inputs = sorted(
        (n for n in graph if graph[n].kind == Kind.INPUT), key=lambda n: graph[n].operands
    )
    for radius in range(1, FAR + 1):
        around = np.zeros_like(looks)
        np.add.at(around, users, _mix(looks[values]))
        np.add.at(around, values, _mix(looks[users] + operands.astype(np.uint64) + np.uint64(1)))
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


FEWEST, MOST = 4, 8  # columns side by side; the longest vector holds as many
FEWEST_STEPS = 3  # per result; less is not worth moving numbers into columns
MOST_TERMS = 16  # of a sum that are looked at for one that is scaled
MOST_WALKS = 8  # until columns begin with nothing that columns lead to

Group = tuple[int, ...]
_SUMS = (Kind.ADD, Kind.SUB)
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


MISSING = -1  # a lane that a vector does not have

# A value of every lane; the same one everywhere if no limb owns it.
Vector = tuple[int, ...]
# What is computed: a number, or a vector.
Unit = int | Vector

# Lowering keeps conditions as bits, of scalars only.
_UNPACKED = LOGICAL | {Kind.SELECT}

# Instructions, roughly: of functions, of moving a number into or out of a vector, of adding up one.
# Counted so, whatever took fewer was also faster, for every mechanism of the gallery.
_FUNCTION, _MOVE, _REDUCTION = 30, 1, 6
_ARITHMETIC = (Kind.ADD, Kind.MUL, Kind.DIV, Kind.NEG, Kind.SQRT, Kind.FABS, *LOGICAL, Kind.SELECT)
_COSTS = dict.fromkeys(Kind, _FUNCTION) | dict.fromkeys(_ARITHMETIC, 1) | dict.fromkeys(LEAVES, 0)
LANES_PER_INSTRUCTION = 4  # wider ones take as long as two

FAMILIES_TRIED = 3
# Roles of vectors follow those of numbers, and roles of subtracted terms come before both.
_OF_VECTORS, _SUBTRACTED = 2**40, 2**50
MOST_PASSES = 64  # to bring the values of vectors to one level


class Packing:
    """Which operations of a tape are done together.

    Attributes:
        nodes: All operations, sums whole.
        results: Values that are asked for.
        lanes: How many limbs there are.
        home: The vector and the lane of every value that a limb owns.
        gathered: Vectors whose values are computed one by one.
        of_columns: Whether lanes are columns of a matrix, not limbs.
    """

    def __init__(
        self,
        levels: list[Graph],
        results: Iterable[int],
        family: Family,
        allowed: Container[int] | None = None,
    ) -> None:
        self.nodes = {number: node for level in levels for number, node in level.items()}
        self.results = tuple(results)
        self.lanes = len(family[0])
        self.home: dict[int, tuple[Vector, int]] = {}
        self._number: dict[Vector, int] = {}  # of vectors whose lanes are owned by limbs
        # What values of different limbs have in common when they may be packed: equal numbers for
        # values of one vector, and for others that differ in constants only.
        self._role: dict[int, int] = {}
        self._roles: dict[object, int] = {}
        self._operands: dict[Vector, list[Vector]] = {}
        self._costs: dict[Unit, int] = {}
        self._sums: dict[int, tuple[list[tuple[int, Vector]], list[tuple[int, int]]]] = {}
        for values in family:
            self._pack(values)
        self.gathered = frozenset(family)
        self.of_columns = allowed is not None
        self._allowed = allowed  # values that may be packed; all if None
        for level in levels:
            self._grow(level)

    def _pack(self, members: Vector) -> None:
        role = _OF_VECTORS + len(self._number)
        self._number[members] = len(self._number)
        for lane, v in enumerate(members):
            if v != MISSING:
                self.home[v] = members, lane
                self._role[v] = role

    def _grow(self, level: Graph) -> None:
        """Pack what a level has in several lanes."""
        groups: dict[object, list[list[int]]] = {}
        home, role = self.home, self._role
        for number, node in level.items():
            if number in home:
                continue
            owner, mixed = MISSING, node.kind in _UNPACKED
            if node.kind not in LEAVES:
                for v in node.operands:
                    if v in home:
                        mixed |= owner not in (MISSING, home[v][1])
                        owner = home[v][1]
            apart = self._allowed is not None and number not in self._allowed
            if mixed or (owner != MISSING and apart):
                role[number] = self._role_of(number)
            elif owner != MISSING:
                key = self._key(node)
                if key not in groups:
                    groups[key] = [[] for _ in range(self.lanes)]
                groups[key][owner].append(number)
            elif node.kind != Kind.CONSTANT:
                role[number] = self._roles.setdefault(self._key(node), 1 + len(self._roles))
        for group in groups.values():
            for place in range(max(map(len, group))):
                members = tuple([lane[place] if place < len(lane) else MISSING for lane in group])
                if members.count(MISSING) < self.lanes - 1:
                    self._pack(members)
                else:
                    alone = max(members)
                    role[alone] = self._role_of(alone)

    def _role_of(self, key: object) -> int:
        return self._roles.setdefault(key, 1 + len(self._roles))

    def _key(self, node: Node) -> object:
        if node.kind in LEAVES:
            return node
        if not node.signs:
            roles = list(map(self._role.get, node.operands, repeat(0)))
        else:
            roles = self._operand_roles(node)
        if node.kind in COMMUTATIVE:
            roles.sort()
        return node.kind, *roles

    def _operand_roles(self, node: Node) -> list[int]:
        """Role of every operand; those of subtracted terms come first in their order."""
        roles = list(map(self._role.get, node.operands, repeat(0)))
        for k, sign in enumerate(node.signs):
            if sign < 0:
                roles[k] -= _SUBTRACTED
        return roles

    def operands(self, vector: Vector) -> list[Vector]:
        """Operands of a packed operation, in the order of its first member."""
        known = self._operands.get(vector)
        if known is None:
            known = self._operands[vector] = self._matched_operands(vector)
        return known

    def _matched_operands(self, vector: Vector) -> list[Vector]:
        columns: list[list[int]] = []
        order: list[int] = []
        for lane, number in enumerate(vector):
            if number == MISSING:
                continue
            node = self.nodes[number]
            places = list(range(len(node.operands)))
            if node.kind in COMMUTATIVE:  # an order that limbs agree on
                places.sort(key=self._operand_roles(node).__getitem__)
            if not columns:
                columns, order = [[MISSING] * self.lanes for _ in places], places
            for column, place in zip(columns, places, strict=True):
                column[lane] = node.operands[place]
        placed = sorted(zip(order, columns, strict=True))
        return [self._vector(column) for _, column in placed]

    def _vector(self, column: list[int]) -> Vector:
        """The vector that has these values in their lanes."""
        first = next(v for v in column if v != MISSING)
        if first in self.home:
            return self.home[first][0]
        return tuple(first if v == MISSING else v for v in column)

    def in_vector(self, number: int) -> bool:
        """Return whether a number is computed in a vector."""
        there = self.home.get(number)
        return there is not None and there[0] not in self.gathered

    def first(self, vector: Vector) -> Node:
        """The operation of a vector, as its first member has it."""
        return self.nodes[next(v for v in vector if v != MISSING)]

    def split_sum(self, number: int) -> tuple[list[tuple[int, Vector]], list[tuple[int, int]]]:
        """A sum over limbs: vectors to add up whole, and the other terms, all with their signs."""
        known = self._sums.get(number)
        if known is not None:
            return known
        node = self.nodes[number]
        terms = list(zip(node.signs, node.operands, strict=True))
        lanes: dict[tuple[int, Vector], list[int]] = {}
        for sign, value in terms:
            if value in self.home and self.home[value][0] not in self.gathered:
                vector, lane = self.home[value]
                lanes.setdefault((sign, vector), []).append(lane)
        whole, rest = [], terms
        if lanes:
            every = list(range(self.lanes))
            whole = [key for key, found in lanes.items() if sorted(found) == every]
        if whole:
            rest = [
                (sign, value)
                for sign, value in terms
                if value not in self.home or (sign, self.home[value][0]) not in whole
            ]
        self._sums[number] = whole, rest
        return whole, rest

    def _look(self, unit: Unit) -> tuple[Sequence[Unit], int]:
        """What a unit needs, and its instructions, roughly."""
        if isinstance(unit, int):
            node = self.nodes[unit]
            if node.kind in LEAVES:
                return (), 0
            there = self.home.get(unit)
            if there is not None and there[0] not in self.gathered:
                return (there[0],), _MOVE
            if node.kind == Kind.ADD:
                whole, rest = self.split_sum(unit)
                if whole:
                    parts: list[Unit] = [part for _, part in whole]
                    parts += [value for _, value in rest]
                    return parts, len(rest) + len(whole) * self._pieces + _REDUCTION
                return node.operands, len(rest) - self.of_columns
            return node.operands, _COSTS[node.kind]
        if len(set(unit)) == 1 or unit in self.gathered or self.first(unit).kind in LEAVES:
            cost = _MOVE if len(set(unit)) == 1 else _MOVE * self.lanes * (unit in self.gathered)
            return [value for value in unit if value != MISSING], cost
        node = self.first(unit)
        return self.operands(unit), _COSTS[node.kind] * max(1, len(node.signs) - 1) * self._pieces

    @cached_property
    def units(self) -> list[Unit]:
        """All that the results need, operands before operations, each as late as possible.

        Nothing if a vector waits for its own values.
        """
        done: dict[Unit, None] = {}
        waiting: list[Unit] = list(reversed(self.results))
        begun: set[Unit] = set()
        while waiting:
            unit = waiting[-1]
            if unit in begun:
                done[waiting.pop()] = None
                continue
            begun.add(unit)
            needs, self._costs[unit] = self._look(unit)
            for need in reversed(needs):
                if need not in done:
                    if need in begun:
                        return []  # a vector that its own values wait for
                    waiting.append(need)
        return list(done)

    @property
    def saved(self) -> int:
        """Operations that need not be done one by one; moving numbers about is not counted."""
        return len(self.home) - len(self._number) * self._pieces

    @property
    def _pieces(self) -> int:
        """Instructions of an operation on a vector."""
        return -(-self.lanes // LANES_PER_INSTRUCTION)

    @cached_property
    def cost(self) -> int:
        """Instructions, roughly."""
        return sum([self._costs[unit] for unit in self.units])

    @property
    def plain_cost(self) -> int:
        """Instructions of the tape as it is, counted the same way."""
        return sum([_COSTS[n.kind] * max(1, len(n.signs) - 1) for n in self.nodes.values()])


def _levels(nodes: Graph, together: Sequence[Vector] = ()) -> list[Graph]:
    """Nodes by the longest way from an input or a constant.

    Args:
        nodes: All operations.
        together: Vectors whose values are to be on one level.
    """
    place = {v: k for k, vector in enumerate(together) for v in vector if v != MISSING}
    least = [0] * len(together)
    depth: dict[int, int] = {}
    for _ in range(MOST_PASSES):
        before = list(least)
        for number, node in nodes.items():
            own = 0
            if node.kind not in LEAVES:
                for v in node.operands:
                    if depth[v] >= own:
                        own = depth[v] + 1
            k = place.get(number)
            if k is not None:
                own = least[k] = max(own, least[k])
            depth[number] = own
        if least == before:
            break
    levels: list[Graph] = [{} for _ in range(max(depth.values(), default=-1) + 1)]
    for number, node in nodes.items():
        levels[depth[number]][number] = node
    return levels


def packings(tape: Tape) -> list[Packing]:
    """Yield candidate packings of a tape."""
    nodes = graph(tape)
    steps, results = _levels(nodes), tape.results.tolist()
    found = [Packing(steps, results, family) for family in families(nodes)[:FAMILIES_TRIED]]
    sets = column_sets(tape)
    if sets:
        seeds = _seed_vectors(sets)
        nodes = graph(tape, whole={value for seed in seeds for value in seed})
        followed = set().union(*(columns.values for columns in sets))
        packing = Packing(_levels(nodes, seeds), results, tuple(seeds), followed)
        found += [packing] if packing.units else []
    return found


def _seed_vectors(sets: list[ColumnSet]) -> list[Vector]:
    """What columns begin with, in vectors of one length; no value is in two of them."""
    lanes = max(columns.lanes for columns in sets)
    found: list[Vector] = []
    owned: set[int] = set()
    for seed in (seed for columns in sets for seed in columns.seeds):
        if len(set(seed)) == len(seed) and not owned & set(seed):
            owned |= set(seed)
            found.append(seed + (MISSING,) * (lanes - len(seed)))
    return found


@lru_cache(maxsize=32)  # steps of one model share tapes
def best_packing(tape: Tape) -> Packing | None:
    """The best packing of a tape; None if there is nothing to gain."""
    found = packings(tape)
    limbs = [packing for packing in found if not packing.of_columns]
    chosen = [packing for packing in found if packing.of_columns]
    chosen += [max(limbs, key=lambda packing: packing.saved)] if limbs else []
    worth = [packing for packing in chosen if packing.cost < packing.plain_cost]
    return min(worth, key=lambda packing: packing.cost, default=None)
