"""Equal limbs side by side: an operation that every limb has becomes one operation on a vector.

A single sample has no neighbours to share a vector with, but a platform on six legs does the same
arithmetic six times with other numbers. Starting from inputs that are used alike, operations on the
same operands of different limbs are packed, level by level. Values that no limb owns are repeated
in every lane; sums over limbs are vectors added up at the end.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cached_property

from axode.codegen.tape.equal_columns import ColumnSet, column_sets
from axode.codegen.tape.equal_limbs import Family, families
from axode.codegen.tape.operations import COMMUTATIVE, LEAVES, LOGICAL, Kind
from axode.codegen.tape.sums import Graph, Node, graph
from axode.codegen.tape.tape import Tape

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
_ARITHMETIC = (Kind.MUL, Kind.DIV, Kind.NEG, Kind.SQRT, Kind.FABS, *LOGICAL, Kind.SELECT)
LANES_PER_INSTRUCTION = 4  # wider ones take as long as two

FAMILIES_TRIED = 3
MOST_PASSES = 64  # to bring the values of vectors to one level


class Packing:
    """Which operations of a tape are done together.

    Attributes:
        nodes: All operations, sums whole.
        results: Values that are asked for.
        lanes: How many limbs there are.
        home: The vector and the lane of every value that a limb owns.
        gathered: Vectors whose values are computed one by one.
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
        self._shape: dict[int, int] = {}  # equal for values that differ in constants only
        self._shapes: dict[object, int] = {}
        for values in family:
            self._pack(values)
        self.gathered = frozenset(family)
        self._allowed = allowed  # values that may be packed; all if None
        for level in levels:
            self._grow(level)

    def _pack(self, members: Vector) -> None:
        self._number[members] = len(self._number)
        self.home |= {v: (members, lane) for lane, v in enumerate(members) if v != MISSING}

    def _grow(self, level: Graph) -> None:
        """Pack what a level has in several lanes."""
        groups: dict[object, list[list[int]]] = {}
        for number, node in level.items():
            if number in self.home:
                continue
            lanes = {self.home[v][1] for v in node.values if v in self.home}
            apart = self._allowed is not None and number not in self._allowed
            if node.kind in _UNPACKED or len(lanes) > 1 or (lanes and apart):
                self._shape[number] = self._shape_of(number)
            elif lanes:
                group = groups.setdefault(self._key(node), [[] for _ in range(self.lanes)])
                group[lanes.pop()].append(number)
            elif node.kind != Kind.CONSTANT:
                self._shape[number] = self._shape_of(self._key(node))
        for group in groups.values():
            for place in range(max(map(len, group))):
                members = tuple(lane[place] if place < len(lane) else MISSING for lane in group)
                present = [v for v in members if v != MISSING]
                if len(present) > 1:
                    self._pack(members)
                else:
                    self._shape[present[0]] = self._shape_of(present[0])

    def _shape_of(self, key: object) -> int:
        return self._shapes.setdefault(key, len(self._shapes))

    def _role(self, value: int) -> tuple[int, int]:
        """What values of different limbs have in common when they may be packed."""
        if value in self.home:
            return 2, self._number[self.home[value][0]]
        return (1, self._shape[value]) if value in self._shape else (0, 0)

    def _key(self, node: Node) -> object:
        if node.kind in LEAVES:
            return node
        return node.kind, tuple((sign, role) for sign, role, _ in self._sorted(node))

    def _sorted(self, node: Node) -> list[tuple[int, tuple[int, int], int]]:
        """Sign, role and place of every operand, in an order that limbs agree on."""
        signs = node.signs or (1,) * len(node.operands)
        roles = map(self._role, node.operands)
        listed = list(zip(signs, roles, range(len(signs)), strict=True))
        return sorted(listed) if node.kind in COMMUTATIVE else listed

    def operands(self, vector: Vector) -> list[Vector]:
        """Operands of a packed operation, in the order of its first member."""
        columns: list[list[int]] = []
        order: list[int] = []
        for lane, number in enumerate(vector):
            if number == MISSING:
                continue
            node = self.nodes[number]
            places = [place for _, _, place in self._sorted(node)]
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

    @property
    def of_columns(self) -> bool:
        """Return whether lanes are columns of a matrix, not limbs."""
        return self._allowed is not None

    def in_vector(self, number: int) -> bool:
        """Return whether a number is computed in a vector."""
        return number in self.home and self.home[number][0] not in self.gathered

    def first(self, vector: Vector) -> Node:
        """The operation of a vector, as its first member has it."""
        return self.nodes[next(v for v in vector if v != MISSING)]

    def split_sum(self, number: int) -> tuple[list[tuple[int, Vector]], list[tuple[int, int]]]:
        """A sum over limbs: vectors to add up whole, and the other terms, all with their signs."""
        node = self.nodes[number]
        terms = list(zip(node.signs, node.operands, strict=True))
        lanes: dict[tuple[int, Vector], list[int]] = {}
        for sign, value in terms:
            if value in self.home and self.home[value][0] not in self.gathered:
                vector, lane = self.home[value]
                lanes.setdefault((sign, vector), []).append(lane)
        every = list(range(self.lanes))
        whole = [key for key, found in lanes.items() if sorted(found) == every]
        rest = [
            (sign, value)
            for sign, value in terms
            if value not in self.home or (sign, self.home[value][0]) not in whole
        ]
        return whole, rest

    def needs(self, unit: Unit) -> list[Unit]:
        """Return the units required before a unit."""
        if isinstance(unit, int):
            node = self.nodes[unit]
            if node.kind in LEAVES:
                return []
            if self.in_vector(unit):
                return [self.home[unit][0]]
            if node.kind == Kind.ADD:
                whole, rest = self.split_sum(unit)
                return [vector for _, vector in whole] + [value for _, value in rest]
            return list(node.values)
        if len(set(unit)) == 1 or unit in self.gathered or self.first(unit).kind in LEAVES:
            return [value for value in unit if value != MISSING]
        return list(self.operands(unit))

    @cached_property
    def units(self) -> list[Unit]:
        """All that the results need, operands before operations, each as late as possible.

        Nothing if a vector waits for its own values.
        """
        done: dict[Unit, None] = {}
        waiting: list[Unit] = list(reversed(self.results))
        needs: dict[Unit, list[Unit]] = {}
        while waiting:
            unit = waiting[-1]
            if unit not in needs:
                needs[unit] = self.needs(unit)
            missing = [u for u in needs[unit] if u not in done]
            if missing:
                if any(u in needs for u in missing):
                    return []  # a vector that its own values wait for
                waiting += reversed(missing)
            else:
                done[waiting.pop()] = None
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
        return sum(map(self._cost, self.units))

    @property
    def plain_cost(self) -> int:
        """Instructions of the tape as it is, counted the same way."""
        return sum(_operations(node) for node in self.nodes.values() if node.kind not in LEAVES)

    def _cost(self, unit: Unit) -> int:
        if isinstance(unit, int):
            node = self.nodes[unit]
            if node.kind in LEAVES:
                return 0
            if self.in_vector(unit):
                return _MOVE
            if node.kind != Kind.ADD:
                return _operations(node)
            whole, rest = self.split_sum(unit)
            if self.of_columns and not whole:
                return _operations(node)
            return len(rest) + len(whole) * self._pieces + _REDUCTION * bool(whole)
        if len(set(unit)) == 1:
            return _MOVE
        if unit in self.gathered:
            return _MOVE * self.lanes
        node = self.first(unit)
        if node.kind in LEAVES:
            return 0
        return _operations(node) * self._pieces


def _operations(node: Node) -> int:
    if node.kind == Kind.ADD:
        return len(node.operands) - 1
    return 1 if node.kind in _ARITHMETIC else _FUNCTION


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
            own = max([depth[v] + 1 for v in node.values], default=0)
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


def best_packing(tape: Tape) -> Packing | None:
    """The best packing of a tape; None if there is nothing to gain."""
    found = packings(tape)
    limbs = [packing for packing in found if not packing.of_columns]
    chosen = [packing for packing in found if packing.of_columns]
    chosen += [max(limbs, key=lambda packing: packing.saved)] if limbs else []
    worth = [packing for packing in chosen if packing.cost < packing.plain_cost]
    return min(worth, key=lambda packing: packing.cost, default=None)
