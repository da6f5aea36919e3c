r"""Small changes of a state that keep the constraints (D).

Coordinates that a loop or the ground ties together change together; rolling forbids rates, not
places. A state is any set of functions x(q, nu), and its rate follows by the chain rule,

.. math:: \dot x = \frac{\partial x}{\partial q}\,\dot q
          + \frac{\partial x}{\partial\nu}\,\dot\nu + \frac{\partial x}{\partial t}.   \tag{D12}

Of a motion that is steady in axes which move along with it, by a field X of the states z, the same
states are counted in these axes:

.. math:: \dot x = \frac{\partial x}{\partial z}\,(f - X).                       \tag{D16}

Of forward dynamics, as numbers, the derivatives along the tangents,
:math:`\partial\dot\nu/\partial\xi`, are those by coordinates that the constraints on positions let
change, :math:`\delta q = T \xi`:

.. math:: \frac{\partial\dot\nu}{\partial q} = \frac{\partial\dot\nu}{\partial\xi}\, T^+.   \tag{X9}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.derivatives.derivative_tables import TableName, derivative_graph
from axode.mechanism.elements.parts import Connection
from axode.mechanism.topology import tree_order
from axode.numerics.rank import least_squares, null_space, pseudo_inverse, smallest_singular_value
from axode.numerics.tolerances import ROW_RANK
from axode.symbolic.algebra.linear import NumericFunction
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.analysis.mobility import configuration_dof
from axode.symbolic.constraints.system import preference
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]

_MADE: WeakKeyDictionary[Equations, dict[bool, LocalDynamics]] = WeakKeyDictionary()
_PREFERRED: WeakKeyDictionary[Equations, list[Connection]] = WeakKeyDictionary()


@dataclass(frozen=True)
class LocalValues:
    """Accelerations and constraint forces at one state, and how they change.

    `by_z` means by q and nu, one after the other; right only along changes that keep loops closed
    and wheels on the ground. Constraint forces are empty unless asked for.
    """

    nu_dot: Array
    by_z: Array
    by_u: Array
    forces: Array
    forces_by_z: Array
    forces_by_u: Array
    tangents: Array  # T


class LocalDynamics:
    """Forward dynamics of some equations, evaluated at one state after the other."""

    def __init__(self, e: Equations, forces: bool) -> None:
        self._sizes = [1, len(e.system.tangents.asked), len(e.independent), len(e.inputs)]
        self._n = len(e.independent)
        name = TableName("forward_dynamics", ("q", "nu", "u"), forces)
        graph = derivative_graph(e, name, fixed=False)
        symbols = {"q": e.q, "nu": e.nu, "u": e.u, "t": e.t, "p": e.p}
        flat = graph.function(*[symbols[argument] for argument in graph.arguments])
        table = ca.reshape(flat, *graph.shape[::-1]).T
        made = {"table": table, "tangents": e.system.tree.N @ e.system.tangents.Theta}
        self._function = NumericFunction("local", list(symbols.values()), made)
        self._last: tuple[bytes, LocalValues] | None = None

    def at(self, q: Array, nu: Array, u: Array, t: float, p: Array) -> LocalValues:
        """Evaluate everything at one state; several charts ask for the same one in turn."""
        state = np.concatenate([q, nu, u, [t], p]).tobytes()
        if self._last is None or self._last[0] != state:
            self._last = state, self._values(q, nu, u, t, p)
        return self._last[1]

    def _values(self, q: Array, nu: Array, u: Array, t: float, p: Array) -> LocalValues:
        table, T = self._function(q, nu, u, t, p).values()
        value, by_q, by_nu, by_u = np.split(table, np.cumsum(self._sizes)[:-1], axis=1)
        by_coordinates = np.full((len(table), q.size), np.nan)
        if np.isfinite(T).all():
            by_coordinates = by_q @ pseudo_inverse(T)  # (X9)
        by_z = np.hstack([by_coordinates, by_nu])
        n = self._n
        return LocalValues(value[:n, 0], by_z[:n], by_u[:n], value[n:, 0], by_z[n:], by_u[n:], T)


def local_dynamics(e: Equations, *, forces: bool = False) -> LocalDynamics:
    """Forward dynamics of some equations, made once."""
    made = _MADE.setdefault(e, {})
    if forces not in made:
        made[forces] = LocalDynamics(e, forces)
    return made[forces]


THRESHOLDS = (0.05, 1e-3, 1e-6)  # smallest singular value of a choice, the best that can be had
LEVEL = 0.99  # |sine of the pitch| above which roll and yaw are not used: they become one angle


@dataclass(frozen=True)
class SmallAngle:
    """One of three small angles that turn a body from a reference, about the body's axes."""

    name: str
    four: tuple[int, int, int, int]  # its quaternion's places in q
    axis: int

    def expression(self, q: SX, reference: SX) -> SX:
        """Twice the vector part of the quaternion from the reference to q."""
        r, x = (ca.vertsplit(vector[list(self.four)]) for vector in (reference, q))
        return small_angle(r, x, self.axis)


def small_angle(r: Sequence[Any], x: Sequence[Any], axis: int) -> Any:
    """Small angle by which the quaternion x turns further than r about one of its own axes."""
    i, j, k = (1 + (axis + n) % 3 for n in range(3))
    return 2 * (r[0] * x[i] - r[i] * x[0] - r[j] * x[k] + r[k] * x[j])


def small_angles(e: Equations) -> dict[str, SmallAngle]:
    """The angles of every joint that has a quaternion: `ball.rx`, `ball.ry`, `ball.rz`."""
    joints = [c for c in tree_order(e.system.mechanism) if c.joint.has_quaternion]
    taken = {*e.coordinates, *e.speeds, *e.measures}
    angles = [
        SmallAngle(f"{c.name}.r{axis}", four, k)
        for c, four in zip(joints, e.system.tree.quaternions, strict=True)
        for k, axis in enumerate("xyz")
    ]
    return {angle.name: angle for angle in angles if angle.name not in taken}


def _preferred_joints(e: Equations) -> list[Connection]:
    """Joints whose speeds are independent, then bases, then the rest."""
    known = _PREFERRED.get(e)
    if known is None:
        system = e.system
        order = [*system.independent, *preference(system.mechanism, system.tree)]
        joint_of = {e.speeds.index(s): c for c in tree_order(system.mechanism) for s in c.speeds}
        joints = {joint_of[j].name: joint_of[j] for j in order if j in joint_of}
        known = _PREFERRED[e] = [*joints.values()]
    return known


def place_candidates(e: Equations, q: Array, t: float, p: Array) -> dict[str, list[str]]:
    """List names that describe the configuration, by joint, in order of preference.

    The joints whose speeds are independent come first, then bases, then the rest. A floating body's
    attitude is given by roll, pitch and yaw where these are regular, else by small angles; its
    height comes last, because what rolls may lean and is then as high as it leans.
    """
    names: dict[str, list[str]] = {}
    for connection in _preferred_joints(e):
        joint = connection.name
        if not connection.joint.has_quaternion:
            names[joint] = list(connection.coordinates)
            continue
        angles = [f"{joint}.{a}" for a in ("roll", "pitch", "yaw")]
        if not all(a in e.measures for a in angles) or _upended(e, angles[1], q, t, p):
            angles = [f"{joint}.r{axis}" for axis in "xyz"]
        place = connection.coordinates[4:]
        names[joint] = [*place[:2], *angles, *place[2:]]
    return names


def _upended(e: Equations, pitch: str, q: Array, t: float, p: Array) -> bool:
    known = _PITCHES.setdefault(e, {})
    if pitch not in known:
        known[pitch] = ca.Function("pitch", [e.q, e.t, e.p], [e.measures[pitch].expression])
    return abs(np.sin(float(known[pitch](q, t, p)))) > LEVEL


@dataclass(frozen=True)
class ChartValues:
    """A state's functions x, their rates and outputs y at one point, with all derivatives.

    `by_z` means by q and nu, one after the other, along changes that keep the constraints.
    """

    x: Array
    x_dot: Array
    y: Array
    x_by_z: Array
    x_dot_by_z: Array
    y_by_z: Array
    x_dot_by_u: Array
    y_by_u: Array
    carried_by_z: Array  # of the rates that the axes' own motion gives the states


# coordinates that constraints on positions leave free, a matter of several ranks
_FREEDOMS: WeakKeyDictionary[Equations, int] = WeakKeyDictionary()
_PITCHES: WeakKeyDictionary[Equations, dict[str, ca.Function]] = WeakKeyDictionary()


class Chart:
    """Functions of the state whose values and derivatives are asked for at many points.

    Rates are those in axes that move: without the motion of the axes, a field of q and nu.
    Accelerations and constraint forces are symbols here, whose derivatives `LocalDynamics` has.

    Args:
        e: Equations of the mechanism.
        x, y: States and outputs.
        lifted: Symbols that small angles are counted from, and those of constraint forces in y.
        axes: Motion of the axes.
    """

    def __init__(
        self,
        e: Equations,
        x: Sequence[SX],
        y: Sequence[SX],
        lifted: tuple[SX, SX],
        axes: SX | None = None,
    ) -> None:
        reference, forces = lifted
        state, shown = (ca.vertcat(SX(0, 1), *items) for items in (x, y))
        self._dynamics = local_dynamics(e, forces=bool(ca.depends_on(shown, forces)))
        z = ca.vertcat(e.q, e.nu)
        by_z = ca.jacobian(state, z)
        rate = by_z @ ca.vertcat(e.q_dot, e.nu_dot) + ca.jacobian(state, e.t)  # (D12)
        carried = SX.zeros(state.shape[0]) if axes is None else by_z @ axes
        rate -= carried  # (D16)
        values = {
            "x": state,
            "x_dot": rate,
            "y": shown,
            "x_by_z": by_z,
            "x_dot_by_z": ca.jacobian(rate, z),
            "y_by_z": ca.jacobian(shown, z),
            "x_dot_by_nu_dot": ca.jacobian(rate, e.nu_dot),
            "y_by_u": ca.jacobian(shown, e.u),
            "y_by_forces": ca.jacobian(shown, forces),
            "carried_by_z": ca.jacobian(carried, z),
        }
        arguments = [e.q, e.nu, e.u, e.t, e.p, reference, e.nu_dot, forces]
        self._function = NumericFunction("chart", arguments, values)
        self._no_forces = np.zeros(forces.shape[0])

    def at(
        self, q: Array, nu: Array, u: Array, t: float, p: Array, reference: Array | None = None
    ) -> ChartValues:
        """Evaluate everything at one state, small angles counted from there or from a reference."""
        origin = q if reference is None else reference
        moving = self._dynamics.at(q, nu, u, t, p)
        forces = moving.forces if moving.forces.size else self._no_forces
        found = self._function(q, nu, u, t, p, origin, moving.nu_dot, forces)
        by_nu_dot, by_forces = found.pop("x_dot_by_nu_dot"), found.pop("y_by_forces")
        found["x_dot_by_z"] += by_nu_dot @ moving.by_z
        found["x_dot_by_u"] = by_nu_dot @ moving.by_u
        if moving.forces.size:
            found["y_by_z"] += by_forces @ moving.forces_by_z
            found["y_by_u"] += by_forces @ moving.forces_by_u
        parts = {n: v.ravel() if n in ("x", "x_dot", "y") else v for n, v in found.items()}
        return ChartValues(**parts)


def tangent_basis(e: Equations, residual_jacobian: Array, q: Array) -> Array | None:
    """Changes of q and nu that keep loops closed, wheels on the ground and quaternions of length
    one: orthonormal columns; None where these constraints lose rank."""
    n = len(e.independent)
    unit = np.zeros((len(e.system.tree.quaternions), q.size))
    for row, four in zip(unit, map(list, e.system.tree.quaternions), strict=True):
        row[four] = q[four]
    rows = np.vstack([residual_jacobian, unit])
    if not np.isfinite(rows).all():
        return None
    free = null_space(rows, ROW_RANK, floor=1.0)
    dimension = free.shape[1]
    if e not in _FREEDOMS:
        _FREEDOMS[e] = configuration_dof(e.system)
    if dimension != _FREEDOMS[e]:
        return None
    basis = np.zeros((q.size + n, dimension + n))
    basis[: q.size, :dimension] = free
    basis[q.size :, dimension:] = np.eye(n)
    return basis


def independent_rows(gradients: Array, count: int) -> list[int] | None:
    """The first rows that are far enough from each other's span; None if there are too few."""
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    unit = np.where(lengths > ROW_RANK, gradients / lengths.clip(1e-300), 0.0)
    for threshold in THRESHOLDS:
        chosen: list[int] = []
        for row in range(len(unit)):
            trial = [*chosen, row]
            if len(chosen) < count and smallest_singular_value(unit[trial]) > threshold:
                chosen = trial
        if len(chosen) == count:
            return chosen
    return None


def on_states(derivatives: Array, gradients: Array) -> tuple[Array, Array]:
    r"""Changes of some quantities for unit changes of the states, and what is left.

    With the tangents Z in columns, X the states' derivatives and F those of the quantities,

    .. math:: A = (F Z)(X Z)^+, \qquad F Z - A\, X Z \to 0.                          \tag{D13}

    The rest vanishes if the quantities change with nothing but these states.

    Args:
        derivatives: F Z.
        gradients: X Z, of full row rank.
    """
    A = np.asarray(least_squares(gradients.T, derivatives.T).T, float)  # (D13)
    return A, derivatives - A @ gradients
