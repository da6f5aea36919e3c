"""Vectors between two points of a chain: sums of vectors that are constant in one frame each.

The frames form a sequence, from one end of the chain to the other. Products of two vectors need the
turns between their frames only; all are multiplied by the squares of the turns' quaternions, so
that polynomials are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca

from axode.symbolic.algebra.spatial import SX, dot


class FamilyParameters:
    """Parameters of a family under construction, each with what it is for a robot."""

    def __init__(self) -> None:
        self.symbols: list[SX] = []
        self.values: list[SX] = []
        self.free: list[int] = []  # those that make a root of any unknowns
        self.charts: list[int] = []

    @property
    def count(self) -> int:
        return len(self.symbols)

    def add(self, value: SX, *, free: bool = False) -> SX:
        """Add parameters and return their symbols."""
        made = [SX.sym(f"p{self.count + k}") for k in range(value.numel())]
        if free:
            self.free += range(self.count, self.count + len(made))
        self.symbols += made
        self.values += ca.vertsplit(ca.vec(ca.densify(value)))
        return ca.vertcat(*made)

    def chart(self, size: int) -> tuple[SX, slice]:
        """Add parameters of a chart."""
        first = self.count
        made = self.add(SX.zeros(size))
        self.charts += range(first, self.count)
        return made, slice(first, self.count)


@dataclass(frozen=True, eq=False)
class UnknownTurn:
    """A rotation M / N."""

    M: SX
    N: SX

    @classmethod
    def of(cls, w: SX, x: SX, y: SX, z: SX) -> UnknownTurn:
        """Rotation of a quaternion of any length."""
        M = ca.vertcat(
            ca.horzcat(w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
            ca.horzcat(2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
            ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
        )
        return cls(M, w * w + x * x + y * y + z * z)

    @property
    def inverse(self) -> UnknownTurn:
        return UnknownTurn(self.M.T, self.N)


@dataclass(frozen=True, eq=False)
class UnknownShift:
    """A position: `outer` / N in the axes before a turn, `inner` / N in those after it."""

    outer: SX
    inner: SX
    square: SX  # of the position, times N
    turn: UnknownTurn


@dataclass(eq=False)
class SequenceFrame:
    """Vectors in one frame of a sequence: unknown ones, and the value of the constant one."""

    unknown: list[SX] = field(default_factory=list)
    value: SX = field(default_factory=lambda: SX.zeros(3))


@dataclass(frozen=True, eq=False)
class VectorTerm:
    """A part of a vector: in one frame, or a shift between two frames that are neighbours."""

    frame: int
    vector: SX
    constant: bool = False
    shift: UnknownShift | None = None
    sign: int = 1
    ahead: bool = True  # of a shift: whether its inner axes are those of the next frame


class FrameSequence:
    """Frames from the first element of a chain to the second, and the vector between them."""

    def __init__(self, flat: bool) -> None:
        self.frames: list[SequenceFrame] = []
        self.turns: list[UnknownTurn] = []  # from each frame after the first to the one before it
        self.shifts: list[VectorTerm] = []
        self.middle, self.flat = 0, flat

    def terms(self, parameters: FamilyParameters, *, free: bool = False) -> list[VectorTerm]:
        """Parts of the vector; constant ones that vanish are left out."""
        made = list(self.shifts)
        for k, frame in enumerate(self.frames):
            made += [VectorTerm(k, vector) for vector in frame.unknown]
            meets = free and k == self.middle
            if meets or not frame.value[: 2 if self.flat else 3].is_zero():
                made.append(VectorTerm(k, self.added(parameters, frame.value, meets), True))
        return made

    def added(self, parameters: FamilyParameters, value: SX, free: bool = False) -> SX:
        """Parameters of a vector; those of a plane have two entries."""
        if self.flat:
            return ca.vertcat(parameters.add(value[:2], free=free), 0)
        return parameters.add(value, free=free)

    def carry(self, vector: SX, start: int, end: int) -> SX:
        """Numerator of a vector of one frame in another."""
        for k in range(start, end):
            vector = self.turns[k].M.T @ vector
        for k in reversed(range(end, start)):
            vector = self.turns[k].M @ vector
        return vector

    def rest(self, *between: tuple[int, int], extra: Sequence[UnknownTurn] = ()) -> SX:
        """Product of all squares that are not between frames."""
        gone = {id(self.turns[k]) for a, b in between for k in range(min(a, b), max(a, b))}
        gone |= {id(turn) for turn in extra}
        product = SX(1)
        for turn in self.turns:
            if id(turn) not in gone:
                product = product * turn.N
        return product

    def product(self, one: VectorTerm, two: VectorTerm) -> SX:
        """Product of two vectors, times all squares."""
        (i, a, left), (j, b, right) = self._seen(one, two.frame), self._seen(two, one.frame)
        value = dot(a, self.carry(b, j, i))
        return one.sign * two.sign * value * self.rest((i, j), extra=[*left, *right])

    def _seen(self, term: VectorTerm, other: int) -> tuple[int, SX, list[UnknownTurn]]:
        """Frame, numerator and further denominators of a term next to another frame."""
        if term.shift is None:
            return term.frame, term.vector, []
        inner = term.frame + 1 if term.ahead else term.frame - 1
        beyond = other >= inner if term.ahead else other <= inner
        if beyond:
            return inner, term.shift.inner, [term.shift.turn]
        return term.frame, term.shift.outer, [term.shift.turn]

    def square(self, term: VectorTerm) -> SX:
        """Square of a vector, times all squares."""
        if term.shift is None:
            return dot(term.vector, term.vector) * self.rest()
        return term.shift.square * self.rest(extra=[term.shift.turn])

    def numerator(self, term: VectorTerm, end: int) -> SX:
        """A vector in a frame, times all squares."""
        k, vector, turns = self._seen(term, end)
        return term.sign * self.carry(vector, k, end) * self.rest((k, end), extra=turns)
