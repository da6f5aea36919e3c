r"""How errors of geometry, drives and joints move the output of a robot whose motors stand.

Closure :math:`\Phi(q, p) = 0` with the driven coordinates held gives the change of all coordinates
for small errors :math:`\delta` of parameters, drives and joint centres,

.. math:: \begin{pmatrix} \Phi_q \\ D \end{pmatrix} \delta q =
          \begin{pmatrix} -\Phi_p\, \delta p \\ \delta\theta \end{pmatrix}, \qquad
          \delta x = X_q\, \delta q + X_p\, \delta p = E\, \delta,

with exact derivatives. Errors come in groups: a number within an interval, or a vector within a
ball or a disk, as the play of a joint. In a direction d the output moves by no more than

.. math:: h(d) = \sum_g r_g\, \lVert E_g^T d \rVert,

and its largest displacement is the largest h. A sample of errors, with closure solved for each,
shows what first order leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, counted
from axode.kinematics.robot_kinematics import Kinematics
from axode.kinematics.velocities.velocity_jacobians import read_point
from axode.kinematics.workspaces.pose_arguments import by_signals
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import Parameter, numeric
from axode.mechanism.values.geometry import added, rotation_matrix, turned
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of
from axode.numerics.rank import pseudo_inverse, singular_vectors
from axode.numerics.rotations import perpendiculars
from axode.numerics.tolerances import CLOSED, RANK, ROW_RANK
from axode.problems.arguments import coordinate_units, number, read_state, residual_units
from axode.problems.assemble.closure import ClosureSystem
from axode.problems.simulate.starts import find_starts
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]
COMPONENTS = ("rx", "ry", "rz", "x", "y", "z")
UNITS = ("rad",) * 3 + ("m",) * 3
DIRECTIONS = 400  # from which the largest displacement is sought
ASCENTS = 30
LISTED = 8


@dataclass(frozen=True, eq=False)
class ErrorGroup:
    """An error of a robot, or several that are bounded together.

    Attributes:
        name: Parameter, driven coordinate, or joint with what of it.
        size: Largest error [unit of the parameter or coordinate; m of joints], or the radius of
            the ball or disk in which it is.
        columns: Displacement of the output for unit errors, (..., 6, errors).
    """

    name: str
    size: float
    columns: Array

    @property
    def share(self) -> Array:
        """Largest displacement in each component that it causes alone, (..., 6)."""
        return np.asarray(self.size * np.linalg.norm(self.columns, axis=-1))


@dataclass(frozen=True, eq=False, repr=False)
class ErrorMap:
    """First-order displacements of the output by errors, while the motors hold their coordinates.

    Displacements are rx, ry, rz [rad], a rotation vector, and x, y, z of the reference point [m],
    in world axes; NaN where the motors do not hold the output.

    Attributes:
        robot: Name of the mechanism.
        groups: The errors.
    """

    robot: str
    groups: tuple[ErrorGroup, ...]
    _solve: Callable[[Array], Array]  # displacements for errors (count, errors)

    @cached_property
    def matrix(self) -> Array:
        """E, the displacement for unit errors in the order of the groups, (..., 6, errors)."""
        return np.concatenate([group.columns for group in self.groups], axis=-1)

    @cached_property
    def worst(self) -> Array:
        """Largest displacement in each component, all errors at their worst, (..., 6)."""
        return np.asarray(sum(group.share for group in self.groups))

    @cached_property
    def root_sum_square(self) -> Array:
        """Root of the sum of squares of what each error causes alone, (..., 6)."""
        return np.asarray(np.sqrt(sum(group.share**2 for group in self.groups)))

    @cached_property
    def position(self) -> Array:
        """Largest distance by which errors move the reference point [m]."""
        return self._largest(slice(3, 6))

    @cached_property
    def rotation(self) -> Array:
        """Largest angle by which errors turn the output [rad]."""
        return self._largest(slice(0, 3))

    def _largest(self, rows: slice) -> Array:
        """Largest displacement in any direction: h(d) grows along d := the displacement itself."""
        parts = [group.size * group.columns[..., rows, :] for group in self.groups]
        k = np.arange(DIRECTIONS) + 0.5  # evenly spread over the sphere
        tilt, turn = np.arccos(1 - 2 * k / DIRECTIONS), np.pi * (1 + np.sqrt(5.0)) * k
        d = np.stack([np.cos(turn) * np.sin(tilt), np.sin(turn) * np.sin(tilt), np.cos(tilt)])
        d = np.broadcast_to(d, (*parts[0].shape[:-2], *d.shape))
        moved = d
        for _ in range(ASCENTS):
            moved = np.zeros(d.shape)
            for part in parts:
                y = np.swapaxes(part, -1, -2) @ d
                size = np.linalg.norm(y, axis=-2, keepdims=True)
                moved = moved + part @ (y / np.where(size > 0.0, size, 1.0))
            length = np.linalg.norm(moved, axis=-2, keepdims=True)
            d = moved / np.where(length > 0.0, length, 1.0)
        return np.asarray(np.linalg.norm(moved, axis=-2).max(axis=-1))

    def sample(
        self, count: int = 1000, *, errors: Literal["uniform", "limits"] = "uniform", seed: int = 0
    ) -> ErrorSample:
        """Draw errors and assemble the robot with each of them: a check of first order.

        Args:
            count: How many robots are drawn.
            errors: "uniform" within intervals, balls and disks, or at their "limits".
            seed: Seed of the draws.

        Raises:
            InvalidArgument: for a map of several states.
        """
        if self.matrix.ndim > 2:
            raise InvalidArgument("sample: take the map of one state, not of several")
        generator = np.random.default_rng(seed)
        drawn = []
        for group in self.groups:
            k = group.columns.shape[-1]
            direction = generator.normal(size=(count, k))
            direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
            radius = generator.random((count, 1)) ** (1 / k) if errors == "uniform" else 1.0
            drawn.append(group.size * radius * direction)
        every = np.concatenate(drawn, axis=-1)
        return ErrorSample(self.robot, self._solve(every), every @ self.matrix.T)

    def __repr__(self) -> str:
        if self.matrix.ndim > 2:
            shape = self.matrix.shape[:-2]
            worst = float(np.nanmax(self.position))
            return f"ErrorMap of '{self.robot}' at states {shape}: up to {worst:.3g} m"
        shares = [np.linalg.norm(group.share[3:]) for group in self.groups]
        width = max(len(group.name) for group in self.groups)
        listed = ", ".join(
            f"{name} {value:.3g} {unit}"
            for name, value, unit in zip(COMPONENTS, self.worst, UNITS, strict=True)
        )
        lines = [
            f"ErrorMap of '{self.robot}': up to {self.position:.3g} m and {self.rotation:.3g} rad",
            f"  worst case of each component: {listed}",
        ]
        for k in np.argsort(shares)[::-1][:LISTED]:
            group = self.groups[k]
            lines.append(f"  {group.name:<{width}}  {group.size:.3g} moves it {shares[k]:.3g} m")
        more = len(self.groups) - LISTED
        return "\n".join([*lines, f"  and {counted(more, 'error')} more"] if more > 0 else lines)


@dataclass(frozen=True, eq=False, repr=False)
class ErrorSample:
    """Displacements of the output of robots with random errors.

    Attributes:
        robot: Name of the mechanism.
        displacement: Rotation vector [rad] and displacement of the reference point [m], (count, 6),
            of the closed mechanism; NaN where it cannot be assembled.
        first_order: The same by the linear map.
    """

    robot: str
    displacement: Array
    first_order: Array

    @property
    def position(self) -> Array:
        """Distance by which the reference point moves [m], (count,)."""
        return np.asarray(np.linalg.norm(self.displacement[:, 3:], axis=-1))

    @property
    def rotation(self) -> Array:
        """Angle by which the output turns [rad], (count,)."""
        return np.asarray(np.linalg.norm(self.displacement[:, :3], axis=-1))

    @property
    def deviation(self) -> float:
        """Largest difference from first order in position [m]."""
        gap = (self.displacement - self.first_order)[:, 3:]
        return float(np.nanmax(np.linalg.norm(gap, axis=-1)))

    def __repr__(self) -> str:
        middle, most = np.nanquantile(self.position, [0.5, 0.99])
        return (
            f"ErrorSample of {counted(len(self.position), 'robot')} '{self.robot}': position off "
            f"by {middle:.3g} m (median), {most:.3g} m (99 %), {np.nanmax(self.position):.3g} m "
            f"(largest); first order differs by up to {self.deviation:.2g} m"
        )


@stoppable
def error_map(
    robot: Kinematics,
    state: Any = None,
    *,
    tolerances: Mapping[str, float] | None = None,
    positions: Mapping[str, float] | None = None,
    clearances: Mapping[str, float] | None = None,
    at: Any = None,
) -> ErrorMap:
    """Find how errors of a robot move its output while the motors hold their coordinates.

    Patterns such as `u*` stand for several names.

    Args:
        robot: The robot.
        state: Where, as verbs take it, arrays for several states; home unless given.
        tolerances: Largest errors of parameters of the description, and of driven coordinates.
        positions: Radius of the ball in which the centre of a joint is, by the joint's name [m].
        clearances: Play of joints by name [m]: of spherical and universal joints in all
            directions, of those with one axis normal to it.
        at: Reference point in the output's frame [m]; its origin unless given.

    Raises:
        UnknownName: for names of neither parameters, driven coordinates nor joints.
        InvalidArgument: for errors that no rigid robot can have, since its constraints are
            redundant, and sizes that are not positive.
    """
    check_arguments(error_map, locals())
    point = read_point(at)
    starts = find_starts(
        robot.model, read_state(robot.model, by_signals(robot, state), "state"), 0.0, None, ()
    )
    starts.require_some()
    plan = _Errors(robot, tolerances or {}, positions or {}, clearances or {})
    q = starts.q.reshape(*starts.batch, -1)
    E = plan.columns(q.reshape(-1, q.shape[-1]), np.zeros(3) if point is None else point)
    E = E.reshape(*starts.batch, *E.shape[1:])
    groups, first = [], 0
    for name, size, width in plan.sizes:
        groups.append(ErrorGroup(name, size, E[..., first : first + width]))
        first += width

    def solve(errors: Array) -> Array:
        return plan.displacements(q.reshape(-1), errors, np.zeros(3) if point is None else point)

    return ErrorMap(robot.mechanism.name, tuple(groups), solve)


class _Errors:
    """Errors of a robot as parameters of a mechanism that has them, and as its drives'.

    Args:
        robot: The robot.
        tolerances, positions, clearances: As for `error_map`.
    """

    def __init__(
        self,
        robot: Kinematics,
        tolerances: Mapping[str, float],
        positions: Mapping[str, float],
        clearances: Mapping[str, float],
    ) -> None:
        joints = {c.name: c for c in (*robot.mechanism.connections, *robot.mechanism.loops)}
        places = _sizes("positions", "joint", positions, joints)
        play = _sizes("clearances", "joint", clearances, joints)
        known = {**dict.fromkeys(robot.model.parameters, ""), **dict.fromkeys(robot.driven, "")}
        single = _sizes("tolerances", "parameter or driven coordinate", tolerances, known)
        if not (single or places or play):
            raise InvalidArgument("error_map: give tolerances, positions or clearances")
        self.driven = robot.driven
        mechanism, offsets = _with_offsets(robot.mechanism, dict.fromkeys([*places, *play]))
        self.model = mechanism.derive(self_check=False).compile() if offsets else robot.model
        self.body = self.model.bodies.index(robot.output)
        self.held = [self.model.coordinates.index(name) for name in robot.driven]
        order = list(self.model.parameters)
        self.sizes: list[tuple[str, float, int]] = []
        by_p, by_drive = [], []  # columns: changes of parameters and of driven coordinates
        for name, size in single.items():
            p, theta = np.zeros((len(order), 1)), np.zeros((len(self.held), 1))
            if name in robot.driven:
                theta[robot.driven.index(name)] = 1.0
            else:
                p[order.index(name)] = 1.0
            by_p.append(p)
            by_drive.append(theta)
            self.sizes.append((name, size, 1))
        for what, given in (("position", places), ("clearance", play)):
            for name, size in given.items():
                basis = np.eye(3) if what == "position" else _free_play(joints[name])
                p = np.zeros((len(order), basis.shape[1]))
                p[[order.index(parameter) for parameter in offsets[name]]] = basis
                by_p.append(p)
                by_drive.append(np.zeros((len(self.held), basis.shape[1])))
                self.sizes.append((f"{name} ({what})", size, basis.shape[1]))
        self.by_p, self.by_drive = np.hstack(by_p), np.hstack(by_drive)

    def columns(self, q: Array, point: Array) -> Array:
        """Displacements of the output for unit errors, (states, 6, errors)."""
        model, n = self.model, q.shape[1]
        C, r = coordinate_units(model), residual_units(model)
        rows = [model.residual_jacobian(q) * (C / r[:, np.newaxis])]
        right = [np.zeros((len(q), len(r), self.by_p.shape[1]))]
        if len(model.parameters):
            right = [-(model.jacobian("residual", "p", q) / r[:, np.newaxis]) @ self.by_p]
        rows.append(np.broadcast_to(np.eye(n)[self.held], (len(q), len(self.held), n)))
        theta = self.by_drive / C[self.held, np.newaxis]
        right.append(np.broadcast_to(theta, (len(q), *theta.shape)))
        for four in map(list, facts_of(model).quaternions):  # lengths of quaternions stay
            unit = np.zeros((len(q), 1, n))
            unit[:, 0, four] = q[:, four] * C[four]
            rows.append(unit)
            right.append(np.zeros((len(q), 1, theta.shape[1])))
        A, b = np.concatenate(rows, axis=1), np.concatenate(right, axis=1)
        change = pseudo_inverse(A, tolerance=RANK) @ b
        loose_states = np.zeros(len(q), dtype=bool)
        s, Vt = singular_vectors(A)[1:]
        free = int((s < ROW_RANK * s[:, :1]).sum(axis=-1).max()) + n - s.shape[-1]
        if free > 0:
            loose = np.swapaxes(Vt[:, n - free :], -1, -2)
            motion = self._moved(
                q, C[:, np.newaxis] * loose, np.zeros((len(self.by_p), free)), point
            )
            size = np.pad(s, ((0, 0), (0, n - s.shape[-1])))[:, n - free :]
            is_free = (size < ROW_RANK * s[:, :1])[:, np.newaxis]
            units = np.where(np.arange(6) < 3, 1.0, float(np.max(C)))
            moves = np.abs(motion / units[:, np.newaxis])
            loose_states = (moves * is_free).max(axis=(1, 2)) > ROW_RANK
        left = np.abs(A @ change - b)[~loose_states].max(axis=(0, 1), initial=0.0)
        if (left > ROW_RANK * np.abs(b).max()).any():
            bad = int(np.argmax(left))
            widths = np.cumsum([width for *_, width in self.sizes])
            name = self.sizes[int(np.searchsorted(widths, bad, side="right"))][0]
            raise InvalidArgument(
                f"error_map: '{model.name}' cannot take an error of {name} as a rigid robot: its "
                "constraints are redundant, and would have to bend\n  Leave it out, or replace "
                "joints so that the robot is not overconstrained"
            )
        E = self._moved(q, C[:, np.newaxis] * change, self.by_p, point)
        E[loose_states] = np.nan
        return E

    def _moved(self, q: Array, dq: Array, dp: Array, point: Array) -> Array:
        """Displacements of the output along changes of coordinates and parameters."""
        count = dq.shape[-1]
        every = np.repeat(q, count, axis=0)
        along = {"q": np.ascontiguousarray(np.swapaxes(dq, -1, -2).reshape(len(every), -1))}
        if len(self.model.parameters):
            along["p"] = np.tile(dp.T, (len(q), 1))
        dT = self.model.jvp("poses", along, every)[:, self.body]
        T = self.model.poses(every)[:, self.body]
        W = dT[:, :3, :3] @ np.swapaxes(T[:, :3, :3], -1, -2)
        turn = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=-1)
        E = np.concatenate([turn, dT[:, :3, 3] + dT[:, :3, :3] @ point], axis=-1)
        return np.swapaxes(E.reshape(len(q), count, 6), -1, -2)

    def displacements(self, q: Array, errors: Array, point: Array) -> Array:
        """Displacements of the output of robots that are assembled with errors, (count, 6)."""
        from scipy.spatial.transform import Rotation

        model = self.model
        guess = np.tile(q, (len(errors), 1))
        guess[:, self.held] += errors @ self.by_drive.T
        p = None
        if len(model.parameters):
            p = model.parameter_vector() + errors @ self.by_p.T
        closure = ClosureSystem(model, {}, self.held, Conditions(0.0, p), many=len(errors) > 1)
        found, left = closure.find(guess)
        here, there = model.poses(q)[self.body], model.poses(found, **Conditions(0.0, p).options)
        there = there[:, self.body]
        turn = Rotation.from_matrix(there[:, :3, :3] @ here[:3, :3].T).as_rotvec()
        move = (there - here)[:, :3, 3] + (there - here)[:, :3, :3] @ point
        moved = np.concatenate([turn, move], axis=-1)
        moved[~(left <= CLOSED)] = np.nan
        return np.asarray(moved)


def _sizes(
    argument: str, what: str, given: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, float]:
    """Read sizes of errors by names and patterns."""
    found: dict[str, float] = {}
    for pattern, size in given.items():
        meant = [name for name in known if name == pattern] or [
            name for name in known if fnmatchcase(name, pattern)
        ]
        if not meant:
            raise UnknownName(f"error_map, {argument}", what, pattern, list(known))
        value = number(f"{argument} '{pattern}'", size)
        if not 0.0 < value < np.inf:
            raise InvalidArgument(f"{argument} '{pattern}': must be finite and > 0, got {value:g}")
        found |= dict.fromkeys(meant, value)
    return found


def _with_offsets(
    mechanism: Mechanism, joints: Mapping[str, Any]
) -> tuple[Mechanism, dict[str, list[str]]]:
    """Displace joints on their parents by parameters that are zero, in the joints' own axes."""
    made, names = mechanism.copy(), {}
    for k, name in enumerate(joints):
        names[name] = [f"joint_error_{k}_{axis}" for axis in "xyz"]

    def displaced(c: Connection) -> Connection:
        if c.name not in names:
            return c
        offset: Any = tuple(Parameter(name, 0.0) for name in names[c.name])
        return replace(c, at=added(c.at, turned(rotation_matrix(c.rotation), offset)))

    made.connections = [displaced(c) for c in made.connections]
    made.loops = [displaced(c) for c in made.loops]
    return made, names


def _free_play(connection: Connection) -> Array:
    """Directions in which a joint has play, in its own axes, as columns."""
    axes = connection.joint.directions
    if len(axes) != 1:
        return np.eye(3)
    axis = np.array([numeric(x) for x in getattr(connection.joint, axes[0])])
    return np.column_stack(perpendiculars(axis))
