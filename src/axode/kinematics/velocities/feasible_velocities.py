r"""What the output and the driven joints of a robot may do together at a state.

Passive speeds of each leg are eliminated by rows that do no power on them. What is left of all
legs are rows on the output's twist t and the driven speeds,

.. math:: G \begin{pmatrix} t \\ \dot\theta \end{pmatrix} = 0, \qquad
          \begin{pmatrix} t \\ \dot\theta \end{pmatrix} = Q c,

with orthonormal rows per leg and orthonormal columns of Q. Lengths are measured in a length of the
robot, so that metres and radians compare. Singular values of G, and of the parts of Q, are the
margins that vanish at singularities.

The rows come from the mechanism with its output body cut out, so that every leg is separate.
The output body is carried by one leg of the spanning tree, and rows of the other legs reach the
ground through that one. Here a twin, free in space, takes over everything that is attached to the
output body except the joint that carries it, and is welded to it by six rows. A row then contains
the output's twist t and the speeds of one leg,

.. math:: A_t\, t + A_\theta\, \dot\theta + A_p\, v_p = 0,

whichever leg the tree runs through: nothing that follows depends on the order of the legs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.bodies import GROUND, Body, Inertia
from axode.mechanism.elements.joints import Fixed, Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.function_source import Entry, shaped_tape, tape_entry
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import rank, singular_vectors
from axode.numerics.rotations import to_quaternions
from axode.numerics.tolerances import NEGLIGIBLE, ROW_RANK

TWIST = 6
FEW = 2000  # states that are evaluated before code would have been compiled
Array = npt.NDArray[np.float64]
ROUNDED = 30.0  # of the loop tolerance that was used: rounding that rank must not see
COMPONENTS = ("wx", "wy", "wz", "vx", "vy", "vz")


@dataclass(frozen=True)
class LegPart:
    """Rows that have speeds in common, and these speeds.

    Attributes:
        rows: Their numbers.
        driven: Columns of driven speeds, in the order of all driven speeds.
        passive: Columns of the other speeds.
    """

    rows: tuple[int, ...]
    driven: tuple[int, ...]
    passive: tuple[int, ...]


class LegRows:
    """Rows of a model on the twist of its output body and the speeds of separate legs.

    Args:
        model: What moves; it must have its equations.
        output: Name of the output body.
        driven: Names of driven speeds; prescribed ones are added.

    Attributes:
        driven: Names of all driven speeds.
        units: Their units.
        row_units: Units of the rows: "m" or "rad".
        legs: What belongs together.
        length: Size of the robot [m]: root mean square distance of the other bodies' frames from
            the output body's, at home.
    """

    def __init__(self, model: Model, output: str, driven: Sequence[str]) -> None:
        from axode.symbolic.constraints.system import build_open_system

        mechanism, twin = cut_out(model.equations.system.mechanism, output)
        self._opened = opened = build_open_system(mechanism)
        self._output = output
        names = opened.tree.speed_names
        prescribed = {
            name: j
            for row in opened.rows
            if row.kind == "prescribed"
            for j, name in enumerate(names)
            if j in row.entries
        }
        self.driven = tuple(dict.fromkeys([*driven, *prescribed]))
        self._rows = [row for row in opened.rows if row.kind != "prescribed"]
        self._twin = [j for j, name in enumerate(names) if name in twin.speeds]
        self._own = [j for j in range(len(names)) if j not in self._twin]
        units = dict(zip(model.speed_names, facts_of(model).speed_units, strict=True))
        self.row_units = tuple(row.unit for row in self._rows)
        self.speeds = tuple(names[j] for j in self._own)
        self.speed_units = tuple(units[name] for name in self.speeds)
        self.units = tuple(units[name] for name in self.driven)
        self.legs = tuple(self._legs())
        order = opened.tree.coordinate_names
        self._coordinates = [order.index(name) for name in model.coordinates]
        self._free = [order.index(name) for name in twin.coordinates]
        known = list(model.parameters)
        self._parameters = [known.index(name) for name in opened.parameter_names]
        self._entry: Entry | None = None
        self.length = _size(model, output)

    def _legs(self) -> list[LegPart]:
        """Rows grouped by the speeds that they have in common."""
        group = {j: j for j in self._own}

        def root(j: int) -> int:
            while group[j] != j:
                j = group[j]
            return j

        own = [sorted(set(row.entries) - set(self._twin)) for row in self._rows]
        for speeds in own:
            for j in speeds[1:]:
                group[root(j)] = root(speeds[0])
        parts: list[LegPart] = []
        for leader in dict.fromkeys(root(j) for j in self._own):
            members = [k for k, j in enumerate(self._own) if root(j) == leader]
            rows = tuple(r for r, s in enumerate(own) if s and root(s[0]) == leader)
            if rows:
                driven = [k for k in map(self.speeds.index, self.driven) if k in members]
                passive = [k for k in members if k not in driven]
                parts.append(LegPart(rows, tuple(driven), tuple(passive)))
        held = tuple(r for r, speeds in enumerate(own) if not speeds)
        return [*parts, LegPart(held, (), ())] if held else parts

    def evaluate(self, model: Model, q: Array, conditions: Conditions) -> tuple[Array, Array]:
        """Evaluate all rows, (..., rows, 6 + speeds), and the output's poses, (..., 4, 4).

        The first six columns belong to the output's angular velocity and the velocity of its
        frame's origin, in world axes.
        """
        from axode.problems.other_models import interpret_few_states

        batch = q.shape[:-1]
        flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
        spread = conditions.spread(batch)
        few = interpret_few_states(model, len(flat))
        pose = np.asarray(few.poses(flat, **spread.options)[:, model.bodies.index(self._output)])
        R = pose[:, :3, :3]
        size = len(self._opened.tree.coordinate_names)
        everything = np.empty((len(flat), size))
        everything[:, self._coordinates] = flat
        everything[:, self._free] = np.concatenate([to_quaternions(R), pose[:, :3, 3]], axis=1)
        A = self._matrix(everything, spread, model)
        t = A[..., self._twin].reshape(*A.shape[:2], 2, 3) @ np.swapaxes(R, 1, 2)[:, np.newaxis]
        own = np.concatenate([t.reshape(*A.shape[:2], TWIST), A[..., self._own]], axis=-1)
        return own.reshape(*batch, *own.shape[1:]), pose.reshape(*batch, 4, 4)

    def _matrix(self, q: Array, conditions: Conditions, model: Model) -> Array:
        tree = self._opened.tree
        p = np.broadcast_to(
            model.parameter_vector(conditions.p)[..., self._parameters],
            (len(q), len(self._parameters)),
        )
        t = np.broadcast_to(conditions.t, (len(q),))[:, np.newaxis]
        shape = (len(self._rows), tree.v.shape[0])
        if not len(q):  # CasADi takes no columns for missing arguments
            return np.zeros((0, *shape))
        if len(q) <= FEW and self._entry is None:
            flat = np.array(self._function(q.T, t.T, p.T).full())
            return np.ascontiguousarray(flat.T).reshape(len(q), *shape)
        if self._entry is None:
            sizes = {"q": q.shape[1], "t": 1, "p": p.shape[1]}
            self._entry = tape_entry(shaped_tape(self._function, sizes, "leg_rows", shape))
        arrays = {"q": q, "t": np.ascontiguousarray(t), "p": np.ascontiguousarray(p)}
        return np.asarray(self._entry.call(*(arrays[name] for name in self._entry.arguments)))

    @cached_property
    def _function(self) -> Any:
        import casadi as ca

        from axode.symbolic.tree.rows import matrix_of

        tree = self._opened.tree
        A = ca.densify(matrix_of(self._rows, tree.v.shape[0]))
        symbols = [tree.q, tree.t, tree.parameters]
        return ca.Function("leg_rows", symbols, [ca.vec(A.T)], ["q", "t", "p"], ["leg_rows"])


def cut_out(mechanism: Mechanism, output: str) -> tuple[Mechanism, Connection]:
    """Give what is attached to a body to a twin of it that is free in space.

    Returns:
        The mechanism, without forces and measures, and the joint of the twin.
    """
    names = {body.name for body in mechanism.bodies}
    twin = f"{output} (twin)"
    while twin in names:
        twin += "'"

    def moved(name: str) -> str:
        return twin if name == output else name

    own = next(c for c in mechanism.connections if c.child == output)
    free = Connection(twin, Floating(), GROUND.name, twin)
    bodies = [*mechanism.bodies, Body(twin, 0.0, (0.0, 0.0, 0.0), Inertia.point())]
    weld = Connection(f"{twin} weld", Fixed(), output, twin)
    cut = Mechanism(
        mechanism.name,
        mechanism.gravity,
        bodies,
        [c if c is own else replace(c, parent=moved(c.parent)) for c in mechanism.connections],
        [replace(c, parent=moved(c.parent), child=moved(c.child)) for c in mechanism.loops],
        [
            replace(c, body=moved(c.body), plane=replace(c.plane, on=moved(c.plane.on)))
            for c in mechanism.contacts
        ],
        couplings=mechanism.couplings,
        prescribed=mechanism.prescribed,
    )
    cut.connections.append(free)
    cut.loops.append(weld)
    return cut, free


def _size(model: Model, output: str) -> float:
    """Root mean square distance of bodies' frames from the output body's at home [m]."""
    from axode.problems.other_models import interpret_few_states

    extent = model.equations.system.assembly.extent
    origins = interpret_few_states(model, 1).poses(model.home)[:, :3, 3]
    place = model.bodies.index(output)
    distance = np.linalg.norm(np.delete(origins, place, axis=0) - origins[place], axis=-1)
    if not distance.size:
        distance = np.linalg.norm(origins, axis=-1)
    size = float(np.sqrt(np.mean(distance**2))) if distance.size else 0.0
    return size if size > NEGLIGIBLE * extent else float(extent)


@dataclass(frozen=True)
class LegRanks:
    """Ranks of a leg wherever it is not singular.

    Attributes:
        passive: Rank of the columns of its passive speeds.
        rows: Number of independent rows without them.
        drive: Rank of these rows on its driven speeds.
    """

    passive: int
    rows: int
    drive: int


@dataclass(frozen=True)
class LegWrenches:
    """What a leg asks of the output and of its driven speeds, at a batch of states.

    Attributes:
        part: The leg.
        ranks: Its ranks.
        rows: Orthonormal rows on the twist and the leg's driven speeds, scaled.
        passive_margin: Smallest singular value of the passive columns; zero where passive joints
            of the leg move by themselves.
        row_margin: Smallest singular value of the rows; zero where the leg gains a freedom.
        passive_motion: Speeds of the passive joints that belong to the passive margin.
    """

    part: LegPart
    ranks: LegRanks
    rows: Array
    passive_margin: Array
    row_margin: Array
    passive_motion: Array

    def select(self, k: Any) -> LegWrenches:
        """Select some states of a batch."""
        arrays = (self.rows, self.passive_margin, self.row_margin, self.passive_motion)
        return LegWrenches(self.part, self.ranks, *(array[k] for array in arrays))


class Velocities:
    """Feasible velocities of a robot at a batch of states.

    Attributes:
        rows: Rows of the robot.
        length: Length in which lengths are measured [m].
        legs: What each leg asks.
        freedoms: Dimension of the feasible velocities wherever the robot is not singular.
        origin: Where the output's reference point is in the world, (..., 3).
        known: Which states are states, and not NaN.
        tolerance: Relative singular value below which rows depend on each other.
        usual: Feasible velocities at some configurations, in columns: what is possible usually.
    """

    def __init__(
        self,
        rows: LegRows,
        matrix: Array,
        poses: Array,
        ranks: Sequence[LegRanks],
        freedoms: int,
        length: float,
        tolerance: float = ROW_RANK,
    ) -> None:
        self.rows, self.length, self.freedoms = rows, length, freedoms
        self.tolerance = tolerance
        self.origin = poses[..., :3, 3]
        self.known = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)))
        scaled = scale(rows, np.where(self.known[..., np.newaxis, np.newaxis], matrix, 0.0), length)
        self.legs = [eliminate(scaled, leg, own) for leg, own in zip(rows.legs, ranks, strict=True)]
        self.batch = matrix.shape[:-2]
        self.usual = np.zeros((1, TWIST + len(rows.driven), freedoms))

    def output_rank(self, S: Array, tolerance: float = ROW_RANK) -> int:
        """Number of independent velocities that the output has usually, of those that S selects."""
        return int(rank(S @ self.usual[:, :TWIST], tolerance, floor=1.0).max())

    def select(self, k: Any) -> Velocities:
        """Select some states of a batch."""
        part = copy(self)
        for name in ("stacked", "_svd"):
            part.__dict__.pop(name, None)
        part.origin, part.legs = self.origin[k], [leg.select(k) for leg in self.legs]
        part.known = self.known[k]
        part.batch = part.origin.shape[:-1]
        return part

    @cached_property
    def stacked(self) -> Array:
        """Rows of all legs on the twist and all driven speeds, scaled."""
        order = [self.rows.speeds.index(name) for name in self.rows.driven]
        parts = []
        for leg in self.legs:
            part = np.zeros((*self.batch, leg.rows.shape[-2], TWIST + len(order)))
            part[..., :TWIST] = leg.rows[..., :TWIST]
            places = [TWIST + order.index(k) for k in leg.part.driven]
            part[..., places] = leg.rows[..., TWIST:]
            parts.append(part)
        return np.concatenate([*parts, np.zeros((*self.batch, 0, TWIST + len(order)))], axis=-2)

    @cached_property
    def _svd(self) -> tuple[Array, Array]:
        return singular_vectors(self.stacked)[1:]

    def fill(self, values: Array) -> Array:
        """Put NaN where a state is none."""
        unknown = (slice(None),) * len(self.batch) + (np.newaxis,) * (values.ndim - len(self.batch))
        return np.where(self.known[unknown], values, np.nan)

    @property
    def mobility_margin(self) -> Array:
        """Smallest singular value of all rows; zero where the robot gains a freedom."""
        s, Vt = self._svd
        count = Vt.shape[-1] - self.freedoms
        own = s[..., count - 1] if count else np.full(self.batch, np.inf)
        return np.asarray(np.min([own, *(leg.row_margin for leg in self.legs)], axis=0))

    @property
    def passive_margin(self) -> Array:
        """Smallest singular value of passive joints; zero where some move by themselves."""
        none = np.full(self.batch, np.inf)
        return np.asarray(np.min([none, *(leg.passive_margin for leg in self.legs)], axis=0))

    def basis(self, more: int = 0) -> Array:
        """Orthonormal feasible velocities in columns, scaled; with `more`, also the next ones."""
        Vt = self._svd[1]
        count = self.freedoms + more
        return np.swapaxes(Vt[..., Vt.shape[-2] - count :, :], -1, -2)


def scale(rows: LegRows, matrix: Array, length: float) -> Array:
    """Measure rows and speeds in a length instead of metres."""
    r = np.array([1.0 / length if unit == "m" else 1.0 for unit in rows.row_units])
    units = ["rad/s"] * 3 + ["m/s"] * 3 + list(rows.speed_units)
    return np.asarray(r[:, np.newaxis] * matrix * speed_scales(units, length))


def speed_scales(units: Sequence[str], length: float) -> Array:
    """Size of one scaled unit of each speed: a radian, or the length, per second."""
    return np.array([length if unit == "m/s" else 1.0 for unit in units])


def eliminate(matrix: Array, leg: LegPart, ranks: LegRanks) -> LegWrenches:
    """Eliminate the passive speeds of a leg from its rows."""
    own = matrix[..., list(leg.rows), :]
    batch = own.shape[:-2]
    columns = [*range(TWIST), *(TWIST + k for k in leg.driven)]
    left, passive_margin, motion = np.eye(len(leg.rows)), np.full(batch, np.inf), np.zeros(batch)
    if ranks.passive:
        U, s, Vt = singular_vectors(own[..., [TWIST + k for k in leg.passive]])
        left = U[..., ranks.passive :]
        passive_margin, motion = s[..., ranks.passive - 1], Vt[..., ranks.passive - 1, :]
    G = np.swapaxes(left, -1, -2) @ own[..., columns]
    if not ranks.rows:
        none = np.full(batch, np.inf)
        return LegWrenches(leg, ranks, G[..., :0, :], passive_margin, none, motion)
    _, s, Vt = singular_vectors(G, full=False)
    rows, row_margin = Vt[..., : ranks.rows, :], s[..., ranks.rows - 1]
    return LegWrenches(leg, ranks, rows, passive_margin, row_margin, motion)


class RobotVelocities:
    """Ranks of a robot, found once, and its feasible velocities at any states.

    Args:
        model: What moves.
        rows: Its rows with the output body cut out.
    """

    def __init__(self, model: Model, rows: LegRows) -> None:
        self.rows = rows
        system = model.equations.system
        self.tolerance = max(ROW_RANK, ROUNDED * system.report.tolerance)
        samples = np.array([*system.samples, system.home])
        matrix, poses = rows.evaluate(model, samples, Conditions())
        scaled = scale(rows, matrix, rows.length)
        self.ranks = [_ranks(scaled, leg, self.tolerance) for leg in rows.legs]
        unknown = TWIST + len(rows.driven)
        found = Velocities(rows, matrix, poses, self.ranks, unknown, rows.length)
        held = int(rank(found.stacked, self.tolerance).max()) if found.stacked.size else 0
        self.freedoms = unknown - held
        self._samples = matrix, poses

    def at(
        self,
        model: Model,
        q: Array,
        conditions: Conditions,
        point: Array | None = None,
        length: float | None = None,
    ) -> Velocities:
        """Evaluate the feasible velocities at states, for a point of the output body.

        Args:
            model: What moves.
            q: States, (..., coordinates).
            conditions: Time and parameters.
            point: Reference point of the twist in the output's frame [m]; its origin unless given.
            length: Length in which lengths are measured [m]; the robot's size unless given.
        """
        length = self.rows.length if length is None else length
        found, usual = (
            Velocities(
                self.rows, *refer(*made, point), self.ranks, self.freedoms, length, self.tolerance
            )
            for made in (self.rows.evaluate(model, q, conditions), self._samples)
        )
        found.usual = usual.basis()
        return found


def refer(matrix: Array, poses: Array, point: Array | None) -> tuple[Array, Array]:
    """Refer the twist to another point of the output: v_origin = v_point + offset x omega.

    Args:
        matrix: Rows on the twist of the output's origin and the speeds.
        poses: Poses of the output.
        point: The point in the output's frame [m]; its origin unless given.

    Returns:
        The rows, and the poses of a frame at the point.
    """
    if point is None:
        return matrix, poses
    offset = poses[..., :3, :3] @ point
    moved, placed = matrix.copy(), poses.copy()
    moved[..., :3] -= np.cross(offset[..., np.newaxis, :], matrix[..., 3:6])
    placed[..., :3, 3] += offset
    return moved, placed


def _ranks(matrix: Array, leg: LegPart, tolerance: float) -> LegRanks:
    """Largest ranks of a leg at several configurations."""
    own = matrix[..., list(leg.rows), :]
    columns = [*range(TWIST), *(TWIST + k for k in leg.driven)]
    passive = own[..., [TWIST + k for k in leg.passive]]
    ranks = rank(passive, tolerance) if leg.passive else np.zeros(len(own), int)
    most = int(ranks.max())
    regular = own[ranks == most]
    U = singular_vectors(passive[ranks == most])[0] if leg.passive else np.eye(own.shape[-2])
    left = np.swapaxes(np.broadcast_to(U, (len(regular), *U.shape[-2:]))[..., most:], -1, -2)
    G = left @ regular[..., columns]
    if not G.shape[-2]:
        return LegRanks(most, 0, 0)
    rows = int(rank(G, tolerance, floor=1.0).max())
    drive = int(rank(G[..., TWIST:], tolerance, floor=1.0).max()) if leg.driven else 0
    return LegRanks(most, rows, drive)
