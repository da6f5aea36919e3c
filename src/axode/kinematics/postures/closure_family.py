"""Polynomials of closure: a family whose parameters are the geometry of a locked robot.

The pose of a node is a dual quaternion (q, g) with q . g = 0, homogeneous, in a chart l . q = 1,
where poses at infinity are at infinity. It turns by q v q* / |q|^2 and shifts by g q* / |q|^2, so
that the square of the distance of two points, times |q|^2, is quadratic in (q, g). Joints that stay
unknowns turn about an axis a by the quaternion (c, s a) with (c, s) on a line, or slide.

Vectors between two points of a chain are sums of vectors that are constant in one frame each.
The frames form a sequence, from one end of the chain to the other. Products of two vectors need the
turns between their frames only; all are multiplied by the squares of the turns' quaternions, so
that polynomials are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.kinematics.polynomials.polynomial_family import (
    ComplexArray,
    PolynomialFamily,
    evaluate_rational,
)
from axode.kinematics.postures.chains import ChainEnd, PlacedJoint, ReducedChain
from axode.kinematics.postures.closure_problem import Carrier, ClosureProblem
from axode.mechanism.elements.bodies import GROUND
from axode.symbolic.algebra.spatial import SX, cross, dot

Array = npt.NDArray[np.float64]
CHART_SEED = 7  # of the complex numbers of all charts
ENTRIES = {"floating": range(8), "planar": (0, 3, 5, 6), "spherical": range(4)}


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


@dataclass(frozen=True, eq=False)
class UnknownPose:
    """Where the unknowns of a carrier are, and which of the eight homogeneous ones they are.

    Attributes:
        carrier: What they belong to.
        unknowns: Places in x.
        entries: Places in (q, g).
        chart: Places of the chart in the parameters; empty for a translational carrier.
    """

    carrier: Carrier
    unknowns: slice
    entries: tuple[int, ...]
    chart: slice


@dataclass(frozen=True, eq=False)
class UnknownJoint:
    """Where the unknown of a joint is.

    Attributes:
        placed: The joint.
        unknown: Place in x.
        chart: Places of the line (c, s) = (p0, p1) + x (p2, p3) in the parameters; empty for one
            that slides.
    """

    placed: PlacedJoint
    unknown: int
    chart: slice


@dataclass(frozen=True, eq=False)
class ClosureFamily:
    """Polynomials of a locked robot, and how their parameters follow from it.

    Attributes:
        problem: What they were written from.
        family: The polynomials.
        geometry: Parameters that are not charts, from what is held and the mechanism's parameters.
        poses: Unknowns of carriers.
        joints: Unknowns of joints.
        charts: Places of all charts in the parameters.
    """

    problem: ClosureProblem
    family: PolynomialFamily
    geometry: ca.Function
    poses: tuple[UnknownPose, ...]
    joints: tuple[UnknownJoint, ...]
    charts: npt.NDArray[np.intp]

    @cached_property
    def chart_values(self) -> ComplexArray:
        """Parameters with the charts that roots are found in, and nothing else."""
        values = np.zeros(self.family.parameters, dtype=complex)
        values[self.charts] = chart_numbers(len(self.charts))
        return values

    def geometry_of(self, held: Array, parameters: Array) -> Array:
        """Real parameters of many robots, (robots, parameters); charts are zero.

        Args:
            held: What is held, (robots, size).
            parameters: Parameters of the mechanisms, (robots, size).
        """
        if not len(held):  # CasADi takes no columns for missing arguments
            return np.zeros((0, self.family.parameters))
        columns = np.array(self.geometry(held.T, parameters.T))
        return np.ascontiguousarray(columns.reshape(self.family.parameters, len(held)).T)


def closure_family(problem: ClosureProblem) -> ClosureFamily:
    """Write the polynomials of a locked robot."""
    return _FamilyWriter(problem).write()


class _FamilyWriter:
    """Unknowns, parameters and equations of a family under construction."""

    def __init__(self, problem: ClosureProblem) -> None:
        self.problem = problem
        self.flat = problem.space == "planar"
        self.parameters = FamilyParameters()
        self.x: list[SX] = []
        self.rows: list[SX] = []
        self.poses: list[UnknownPose] = []
        self.joints: list[UnknownJoint] = []
        self.shifts: dict[str, UnknownShift] = {}

    def write(self) -> ClosureFamily:
        """Write everything."""
        problem = self.problem
        for carrier in problem.carriers:
            self._add_carrier(carrier)
        self.first_chain = len(self.rows)
        for chain in problem.chains:
            self.rows += self._equations(chain)
        x, p = ca.vertcat(*self.x), ca.vertcat(*self.parameters.symbols)
        rows = ca.vertcat(*self.rows)
        residual = ca.Function("closure", [x, p], [ca.densify(rows)], ["x", "p"], ["r"])
        charts = np.array(self.parameters.charts, dtype=np.intp)
        free = np.array(self.parameters.free, dtype=np.intp)
        chains = np.arange(self.first_chain, rows.numel())
        seed = _Seed(residual, tuple(self.poses), charts, free, chains)
        family = PolynomialFamily(self._key(), residual, len(self.x), p.numel(), seed)
        values = ca.vertcat(*self.parameters.values)
        arguments = [problem.held, problem.parameters]
        names = ["held", "parameters"]
        geometry = ca.Function("geometry", arguments, [values], names, ["p"])
        return ClosureFamily(
            problem, family, geometry, tuple(self.poses), tuple(self.joints), charts
        )

    def _key(self) -> str:
        """Name of the structure: carriers, then chains with their unknown joints."""
        numbers = {GROUND.name: 0, **{c.node: k + 1 for k, c in enumerate(self.problem.carriers)}}
        chains = []
        for chain in self.problem.chains:
            sides = [
                f"{numbers[side.node]}{''.join(item.joint.kind[0] for item in side.tree)}"
                for side in (chain.first, chain.second)
            ]
            chains.append(f"{chain.kind} {'-'.join(sides)}")
        return "; ".join([*(c.kind for c in self.problem.carriers), *chains])

    def _unknown(self, count: int) -> tuple[SX, slice]:
        first = len(self.x)
        self.x += [SX.sym(f"x{first + k}") for k in range(count)]
        return ca.vertcat(*self.x[first:]), slice(first, first + count)

    def _add_carrier(self, carrier: Carrier) -> None:
        """Unknown pose of a node, its chart, and q . g = 0 where both have all entries."""
        if carrier.kind == "translational":
            r, places = self._unknown(3)
            self.poses.append(UnknownPose(carrier, places, (5, 6, 7), slice(0, 0)))
            turn = UnknownTurn(SX.eye(3), SX(1))
            self.shifts[carrier.node] = UnknownShift(r, r, dot(r, r), turn)
            return
        entries = tuple(ENTRIES[carrier.kind])
        unknown, places = self._unknown(len(entries))
        turning = sum(entry < 4 for entry in entries)
        chart, where = self.parameters.chart(turning)
        self.poses.append(UnknownPose(carrier, places, entries, where))
        self.rows.append(dot(chart, unknown[:turning]) - 1)
        both = SX.zeros(8)
        for k, entry in enumerate(entries):
            both[entry] = unknown[k]
        q, g = both[:4], both[4:]
        if carrier.kind == "floating":
            self.rows.append(dot(q, g))
        mixed = cross(g[1:], q[1:])
        outer = q[0] * g[1:] - g[0] * q[1:] - mixed
        inner = q[0] * g[1:] - g[0] * q[1:] + mixed
        turn = UnknownTurn.of(*ca.vertsplit(q))
        self.shifts[carrier.node] = UnknownShift(outer, inner, dot(g, g), turn)

    def _equations(self, chain: ReducedChain) -> Iterator[SX]:
        """Equations of a chain."""
        add, size = self.parameters.add, self.problem.size
        sequence = self._sequence(chain)
        terms = sequence.terms(self.parameters, free=chain.kind == "meeting")
        last, middle = len(sequence.frames) - 1, sequence.middle
        if chain.kind == "meeting":
            total = sum((sequence.numerator(term, middle) for term in terms), SX.zeros(3))
            yield from ca.vertsplit(total[: 2 if self.flat else 3])
            return
        c = chain.constants
        if chain.kind in ("points", "axis-point"):
            squares = sum((dot(f.value, f.value) for f in sequence.frames), SX(0))
            if self.flat:
                squares = sum((dot(f.value[:2], f.value[:2]) for f in sequence.frames), SX(0))
            yield self._distance(sequence, terms, add(squares - c[0] / size**2, free=True))
        if chain.kind == "points":
            return
        a = VectorTerm(0, add(chain.first.axis))
        if chain.kind == "axis-point":
            along = dot(chain.first.axis, sequence.frames[0].value) - c[1] / size
            others = [term for term in terms if not (term.constant and term.frame == 0)]
            total = sum((sequence.product(a, term) for term in others), SX(0))
            yield total + add(along, free=True) * sequence.rest()
            return
        b = VectorTerm(last, add(chain.second.axis))
        if chain.kind == "axes":
            one, two = (sequence.numerator(axis, middle) for axis in (a, b))
            k = add(ca.vertcat(*c[:3]) / size, free=True)
            normal = cross(
                sequence.carry(a.vector, 0, middle), sequence.carry(b.vector, last, middle)
            )
            total = sum((sequence.numerator(term, middle) for term in terms), SX.zeros(3))
            yield from ca.vertsplit(total - k[0] * one - k[1] * two - k[2] * normal)
        yield sequence.product(a, b) - add(c[-1], free=True) * sequence.rest()

    @staticmethod
    def _distance(sequence: FrameSequence, terms: Sequence[VectorTerm], constant: SX) -> SX:
        """Square of the length of a vector; the constant holds squares of constant terms."""
        total = constant * sequence.rest()
        for k, one in enumerate(terms):
            if not one.constant:
                total += sequence.square(one)
            for two in terms[:k]:
                total += 2 * sequence.product(one, two)
        return total

    def _sequence(self, chain: ReducedChain) -> FrameSequence:
        """Frames from the first element to the second, by way of the ground."""
        made = FrameSequence(self.flat)
        before, turns = self._outward(chain.first)
        made.frames = [
            SequenceFrame([-vector for vector in frame.unknown], -frame.value)
            for frame in reversed(before)
        ]
        made.turns = [turn.inverse for turn in reversed(turns)]
        one, two = chain.first.node, chain.second.node
        if one != two:
            if one in self.shifts:
                shift = self.shifts[one]
                made.turns.append(shift.turn.inverse)
                made.frames.append(SequenceFrame())
                shift = UnknownShift(shift.outer, shift.inner, shift.square, made.turns[-1])
                base = len(made.frames) - 1
                made.shifts.append(VectorTerm(base, SX(0), shift=shift, sign=-1, ahead=False))
            made.middle = len(made.frames) - 1
            if two in self.shifts:
                shift = self.shifts[two]
                made.turns.append(shift.turn)
                made.shifts.append(VectorTerm(made.middle, SX(0), shift=shift))
                made.frames.append(SequenceFrame())
        else:
            made.middle = len(made.frames) - 1
        after, turns = self._outward(chain.second)
        here = made.frames[-1]
        made.frames[-1] = SequenceFrame(
            here.unknown + after[0].unknown, here.value + after[0].value
        )
        made.frames += after[1:]
        made.turns += turns
        return made

    def _outward(self, end: ChainEnd) -> tuple[list[SequenceFrame], list[UnknownTurn]]:
        """Frames from a node to an element, with the vectors between joints, and their turns."""
        frames, turns, at = [SequenceFrame()], [], SX.zeros(3)
        size = self.problem.size
        for placed in end.tree:
            if placed.joint.kind == "prismatic":
                s, where = self._unknown(1)
                self.joints.append(UnknownJoint(placed, where.start, slice(0, 0)))
                direction = FrameSequence(self.flat).added(self.parameters, placed.axis)
                frames[-1].unknown.append(s * direction)
                continue
            frames[-1].value += (placed.point - at) / size
            at = placed.point
            turns.append(self._turn(placed))
            frames.append(SequenceFrame())
        frames[-1].value += (end.point - at) / size
        return frames, turns

    def _turn(self, placed: PlacedJoint) -> UnknownTurn:
        """Unknown turn about an axis, z in a plane."""
        w, where = self._unknown(1)
        chart, places = self.parameters.chart(4)
        self.joints.append(UnknownJoint(placed, where.start, places))
        c, s = chart[0] + w * chart[2], chart[1] + w * chart[3]
        axis = SX([0, 0, 1]) if self.flat else self.parameters.add(placed.axis)
        return UnknownTurn.of(c, *ca.vertsplit(s * axis))


@dataclass(frozen=True, eq=False)
class _Seed:
    """Makes generic members: any unknowns and geometry; the numbers of eliminated links follow.

    The residuals of chains are affine in these.
    """

    residual: ca.Function
    poses: tuple[UnknownPose, ...]
    charts: npt.NDArray[np.intp]
    free: npt.NDArray[np.intp]
    chains: npt.NDArray[np.intp]  # rows of the chains

    def __call__(self, rng: np.random.Generator) -> tuple[ComplexArray, ComplexArray]:
        """Return unknowns and parameters of a member."""
        x = _random(rng, self.residual.numel_in(0))
        p = _random(rng, self.residual.numel_in(1))
        p[self.charts] = chart_numbers(len(self.charts))
        for pose in self.poses:
            if pose.carrier.kind == "floating":
                q, t = _random(rng, 4), _random(rng, 3)
                x[pose.unknowns] = [*q, -t @ q[1:], *(t * q[0] + np.cross(t, q[1:]))]
            if pose.carrier.kind != "translational":
                chart = p[pose.chart]
                x[pose.unknowns] /= chart @ x[pose.unknowns][: len(chart)]
        count = len(self.free)
        columns = np.repeat(p[:, np.newaxis], count + 1, axis=1)
        columns[self.free] = np.eye(count, count + 1)
        tape = Tape.from_casadi(self.residual)
        unknowns = [np.full(count + 1, value) for value in x]
        rows = evaluate_rational(
            tape, (unknowns, list(columns)), lambda value: np.full(count + 1, value + 0j)
        )
        values = np.array(rows)[self.chains]
        constant = values[:, -1]
        p[self.free] = np.linalg.solve(values[:, :-1] - constant[:, np.newaxis], -constant)
        return x, p


def _random(rng: np.random.Generator, count: int) -> ComplexArray:
    return rng.normal(size=count) + 1j * rng.normal(size=count)


def chart_numbers(count: int) -> ComplexArray:
    """Complex numbers of all charts, the same for all members."""
    return _random(np.random.default_rng(CHART_SEED), count)
