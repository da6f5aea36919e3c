"""Equal limbs side by side: an operation that every limb has becomes one operation on a vector.

A single sample has no neighbours to share a vector with, but a platform on six legs does the same
arithmetic six times with other numbers. Starting from inputs that are used alike, operations on the
same operands of different limbs are packed, level by level. Values that no limb owns are repeated
in every lane; sums over limbs are vectors added up at the end.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import repeat

from axode.codegen.tape.equal_columns import ColumnSet, column_sets
from axode.codegen.tape.equal_limbs import Family, Graph, Node, families, graph
from axode.codegen.tape.operations import COMMUTATIVE, LEAVES, LOGICAL, Kind
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
