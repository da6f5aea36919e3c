r"""The two Jacobians of a robot's input-output velocity relation; dexterity and stiffness.

.. math:: A\, \dot x = B\, \dot\theta, \qquad C\, \dot x = 0,

x' the output's twist or chosen components of it, :math:`\dot\theta` the driven speeds. A row of A
is the wrench that a leg transmits while its driven joint is locked, referred to the output; rows
of C are the wrenches that legs transmit whatever the motors do. With the whole twist, rows belong
to one leg each. A serial arm is a single leg without passive joints: A is the identity, B its
Jacobian.

Angular and linear velocities compare only by a length L: the condition number is that of the map
:math:`\dot\theta \to (L \omega, v)`. The characteristic length is the one for which it is smallest;
where it becomes one, the robot is isotropic. (J. Angeles, *Fundamentals of Robotic Mechanical
Systems*, chapter 5.)

With springs K on some joints, those of motors or of flexible links, and all other driven joints
rigid, feasible velocities :math:`(t, \dot\theta) = Q c` give the compliance of the output

.. math:: C = Q_t\, (Q_\theta^T K Q_\theta)^{-1} Q_t^T,

which is the inverse of :math:`A^T B^{-T} K B^{-1} A` where both Jacobians are square. It holds for
the unloaded robot: what a preload adds by turning the legs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.kinematics.velocities.feasible_velocities import (
    COMPONENTS,
    TWIST,
    LegRows,
    RobotVelocities,
    Velocities,
    speed_scales,
)
from axode.kinematics.workspaces.pose_arguments import by_signals
from axode.mechanism.topology import speed_meanings
from axode.model.conditions import Conditions
from axode.numerics.rank import pseudo_inverse, singular_values, singular_vectors
from axode.numerics.tolerances import MATRIX_ROUNDING, NEGLIGIBLE, RANK, ROUNDING
from axode.problems.arguments import checked_parameters, number, read_state, start_time
from axode.problems.simulate.starts import find_starts

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
UNITS = ("rad/s",) * 3 + ("m/s",) * 3  # of a twist
_MADE = "_velocities_of_robot"  # kept with the robot


@dataclass(frozen=True)
class VelocityJacobians:
    """Matrices of the velocity relation A x' = B theta', C x' = 0 at a state or a batch of states.

    Attributes:
        components: Names of the output's velocities x': w for angular velocity [rad/s], v for
            velocity of the reference point [m/s], in world axes.
        driven: Names of the driven speeds.
        direct: A, (..., rows, components): wrenches of the legs with locked motors. Singular at
            singularities of type 2.
        inverse: B, (..., rows, driven): what motors do on these wrenches. Singular at type 1.
        constraint: C, (..., constraints, components): wrenches that hold the output anyway.
        forward: J, (..., components, driven): the output's velocity for unit driven speeds; NaN
            where these do not determine it.
        length: Length by which turning and moving are compared unless another is given [m].
    """

    components: tuple[str, ...]
    driven: tuple[str, ...]
    direct: Array
    inverse: Array
    constraint: Array
    forward: Array
    length: float

    def __repr__(self) -> str:
        rows, width = self.direct.shape[-2:]
        batch = f", batch of shape {self.direct.shape[:-2]}" if self.direct.ndim > 2 else ""
        return (
            f"VelocityJacobians: direct {rows} x {width} ({', '.join(self.components)}), inverse "
            f"{rows} x {len(self.driven)} ({', '.join(self.driven)}), "
            f"{self.constraint.shape[-2]} constraints{batch}"
        )


@dataclass(frozen=True)
class OutputChoice:
    """What of the output's motion counts: rows that select components of the twist.

    Attributes:
        names: Names of the components.
        matrix: Orthonormal rows, (components, 6).
        units: Their units.
    """

    names: tuple[str, ...]
    matrix: Array
    units: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Return whether it is the whole twist."""
        return len(self.names) == TWIST


def choose_output(components: Sequence[str] | None) -> OutputChoice:
    """Choose components of the output's twist by name; all unless given.

    Raises:
        UnknownName: for others than wx, wy, wz, vx, vy and vz.
        InvalidArgument: for none, or one twice.
    """
    if components is None:
        return OutputChoice(COMPONENTS, np.eye(TWIST), UNITS)
    if isinstance(components, str) or not all(isinstance(name, str) for name in components):
        raise InvalidArgument(
            f"components: expected a list of names of {', '.join(COMPONENTS)}, got "
            f"{shortened(components)}"
        )
    for name in components:
        if name not in COMPONENTS:
            raise UnknownName("the output's twist", "component", name, COMPONENTS)
    if not components or len(set(components)) != len(components):
        raise InvalidArgument(
            f"components: name each once, at least one of {', '.join(COMPONENTS)}"
        )
    places = [COMPONENTS.index(name) for name in components]
    return OutputChoice(tuple(components), np.eye(TWIST)[places], tuple(UNITS[k] for k in places))


def robot_velocities(robot: Kinematics, joints: Sequence[str] = ()) -> RobotVelocities:
    """Return the ranks and rows of a robot, found once.

    Args:
        robot: The robot.
        joints: Speeds that count as driven besides the robot's own.
    """
    made: dict[tuple[str, ...], RobotVelocities] = robot.__dict__.setdefault(_MADE, {})
    meanings = speed_meanings(robot.mechanism)
    without = [name for name in robot.driven if name not in meanings]
    if without:
        raise InvalidArgument(
            f"driven: {', '.join(without)} of '{robot.mechanism.name}' has no speed of its own, as "
            "coordinates of revolute and prismatic joints have; drive such joints"
        )
    driven = tuple(dict.fromkeys([*(meanings[name] for name in robot.driven), *joints]))
    if driven not in made:
        rows = LegRows(robot.model, robot.output, driven)
        made[driven] = RobotVelocities(robot.model, rows)
    return made[driven]


def velocities_at(
    robot: Kinematics,
    state: Any,
    *,
    at: Any = None,
    length: float | None = None,
    t: float | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    joints: Sequence[str] = (),
) -> Velocities:
    """Evaluate the feasible velocities of a robot at a state, in any of its forms."""
    model = robot.model
    p = checked_parameters(model, parameters)
    given = read_state(model, by_signals(robot, state), "state")
    t = start_time(t, given)
    starts = find_starts(model, given, t, p, ())
    starts.require_some()
    q, p = starts.q.reshape(*starts.batch, starts.q.shape[-1]), starts.p
    if p is not None and p.ndim > 1:
        p = p.reshape(*starts.batch, p.shape[-1])
    conditions = Conditions(t, p)
    found = robot_velocities(robot, joints)
    return found.at(model, q, conditions, read_point(at), check_length(length))


def read_point(at: Any) -> Array | None:
    """Read a point of the output body, three numbers.

    Raises:
        InvalidArgument: for anything else.
    """
    if at is None:
        return None
    try:
        point = np.asarray(at, dtype=float)
    except (TypeError, ValueError):
        point = np.zeros(0)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InvalidArgument(
            f"at: expected three finite numbers [m] in the output's frame, got {shortened(at)}"
        )
    return point


def check_length(length: Any) -> float | None:
    """Check a characteristic length.

    Raises:
        InvalidArgument: if it is not positive.
    """
    if length is None:
        return None
    given = number("length", length)
    if not 0.0 < given < np.inf:
        raise InvalidArgument(f"length: must be finite and > 0 m, got {given:g}")
    return given


def jacobians_of(velocities: Velocities, output: OutputChoice) -> VelocityJacobians:
    """Write the feasible velocities as Jacobians, in metres and radians."""
    made = _rows_of_legs(velocities) if output.is_whole else _rows_of_components(velocities, output)
    length = velocities.length
    x, theta = (speed_scales(units, length) for units in (output.units, velocities.rows.units))
    A, B, C = (part / unit for part, unit in zip(made, (x, theta, x), strict=True))
    A, B, C = _normalized(A, B, C, output)
    if _is_serial(velocities) and A.shape[-2] == A.shape[-1]:
        sign = np.diagonal(A, axis1=-2, axis2=-1)[..., np.newaxis]  # of an identity
        A, B = sign * A, sign * B
    J = forward_map(velocities, output.matrix) * x[:, np.newaxis] / theta
    A, B, C, J = map(velocities.fill, (A, B, C, J))
    return VelocityJacobians(output.names, velocities.rows.driven, A, B, C, J, length)


def forward_map(velocities: Velocities, S: Array) -> Array:
    """Output velocities for unit driven speeds, scaled; NaN where they are not determined."""
    Q = velocities.basis()
    x, theta = S @ Q[..., :TWIST, :], Q[..., TWIST:, :]
    if min(theta.shape[-2:]) == 0:
        return np.zeros((*velocities.batch, S.shape[0], theta.shape[-2]))
    smallest = singular_values(theta)[..., -1]
    J = x @ pseudo_inverse(theta, tolerance=MATRIX_ROUNDING)
    J[(smallest < MATRIX_ROUNDING) | (theta.shape[-2] < theta.shape[-1])] = np.nan
    return np.asarray(J)


def _rows_of_legs(velocities: Velocities) -> tuple[Array, Array, Array]:
    """Rows of the whole twist, leg by leg: A, B and C, scaled."""
    driven = list(velocities.rows.driven)
    none = np.zeros((*velocities.batch, 0, TWIST + len(driven)))
    direct, inverse, held = [none[..., :TWIST]], [none[..., TWIST:]], [none[..., :TWIST]]
    for leg in velocities.legs:
        A, B = leg.rows[..., :TWIST], -leg.rows[..., TWIST:]
        count = leg.ranks.drive
        if count:
            U = np.swapaxes(singular_vectors(B)[0], -1, -2)
            A, B = U @ A, U @ B
            own = slice(count)
            if count == B.shape[-1] and leg.part.passive:
                mix = _one_each(B[..., own, :])
                A[..., own, :], B[..., own, :] = mix @ A[..., own, :], mix @ B[..., own, :]
            elif _is_serial(velocities) and count == TWIST:
                mix = np.asarray(np.linalg.inv(A))
                A, B = mix @ A, mix @ B
        places = [driven.index(velocities.rows.speeds[k]) for k in leg.part.driven]
        full = np.zeros((*velocities.batch, count, len(driven)))
        full[..., places] = B[..., :count, :]
        direct.append(A[..., :count, :])
        inverse.append(full)
        held.append(A[..., count:, :])
    A, B, C = (np.concatenate(parts, axis=-2) for parts in (direct, inverse, held))
    count = TWIST + len(driven) - velocities.freedoms - A.shape[-2]
    return A, B, (singular_vectors(C)[2] if count else C)[..., :count, :]


def _rows_of_components(velocities: Velocities, output: OutputChoice) -> tuple[Array, Array, Array]:
    """Rows on chosen components of the twist, the others eliminated: A, B and C, scaled."""
    S, n = output.matrix, velocities.freedoms
    Q = velocities.basis()
    both = np.concatenate([S @ Q[..., :TWIST, :], Q[..., TWIST:, :]], axis=-2)
    moves = velocities.output_rank(S, velocities.tolerance)
    left = np.swapaxes(singular_vectors(both)[0][..., n:], -1, -2)
    m = S.shape[0]
    A, B = left[..., :m], -left[..., m:]
    held, count = m - moves, left.shape[-2] - (m - moves)
    if not B.shape[-1]:
        return A[..., :0, :], B[..., :0, :], A
    U = np.swapaxes(singular_vectors(B)[0], -1, -2)
    A, B = U @ A, U @ B
    C = A[..., count:, :] if held else A[..., :0, :]
    A, B = A[..., :count, :], B[..., :count, :]
    if _is_serial(velocities) and count == m:
        mix = np.linalg.inv(A)
    elif count == B.shape[-1]:
        mix = _one_each(B)
    else:
        return A, B, C
    return mix @ A, mix @ B, C


def _is_serial(velocities: Velocities) -> bool:
    """Return whether the robot is one chain of driven joints."""
    return len(velocities.legs) == 1 and not velocities.legs[0].part.passive


def _one_each(B: Array) -> Array:
    """Combinations of rows that contain one driven speed each.

    Where a column vanishes, at a singularity of type 1, its row is what the others leave.
    """
    n = B.shape[-1]
    size = np.linalg.norm(B, axis=-2, keepdims=True)
    there = size > RANK * size.max(axis=-1, keepdims=True)
    unit = np.where(there, B / np.where(there, size, 1.0), 0.0)
    lost = ~there[..., 0, :]
    place = n - lost.sum(axis=-1, keepdims=True) + np.cumsum(lost, axis=-1) - 1
    place = np.clip(place, 0, n - 1)[..., np.newaxis, :]
    left = np.take_along_axis(singular_vectors(unit)[0], place, axis=-1)
    return np.asarray(pseudo_inverse(np.where(there, unit, left), tolerance=RANK))


def _normalized(A: Array, B: Array, C: Array, output: OutputChoice) -> tuple[Array, Array, Array]:
    """Scale rows to unit forces, or unit couples where there is no force, B not negative."""
    linear = np.array([unit == "m/s" for unit in output.units])

    def sizes(rows: Array, others: Array) -> Array:
        force = np.linalg.norm(rows[..., linear], axis=-1, keepdims=True)
        couple = np.linalg.norm(rows[..., ~linear], axis=-1, keepdims=True)
        size = np.where(force > NEGLIGIBLE * couple, force, couple)
        rest = np.linalg.norm(others, axis=-1, keepdims=True)  # a row on driven speeds alone
        size = np.where(size > NEGLIGIBLE * rest, size, rest)
        return np.where(size > 0.0, size, 1.0)

    if B.size:
        main = np.abs(B).argmax(axis=-1)[..., np.newaxis]
        sign = np.where(np.take_along_axis(B, main, axis=-1) < 0.0, -1.0, 1.0)
        divide = sign * sizes(A, B)
        A, B = A / divide, B / divide
    return A, B, C / sizes(C, C[..., :0])


SPREAD = 1e4  # times the ratio of linear to angular velocities, either way: where L is looked for
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
SECTIONS = 60  # of the golden ratio: a minimum is as flat as half of the digits


@dataclass(frozen=True)
class Dexterity:
    """How evenly motors move the output at a state or a batch of states.

    Attributes:
        condition: Condition number of driven speeds to (L w, v); one if isotropic, infinite at a
            singularity.
        length: Length L [m]; NaN where angular and linear velocities do not occur together.
        manipulability: Product of the singular values (Yoshikawa), with that length.
        distance: Smallest relative change of the map that makes it singular: 1 / condition.
    """

    condition: Array
    length: Array
    manipulability: Array

    @property
    def distance(self) -> Array:
        """Smallest relative change of the map that makes it singular."""
        return np.asarray(1.0 / self.condition)

    def __repr__(self) -> str:
        if self.condition.ndim:
            low, high = self.condition.min(), self.condition.max()
            states = counted(self.condition.size, "state")
            return f"Dexterity of {states}: condition {low:.4g} to {high:.4g}"
        length = f", length {self.length:.4g} m" if np.isfinite(self.length) else ""
        return (
            f"Dexterity: condition {self.condition:.4g}{length}, manipulability "
            f"{self.manipulability:.4g}"
        )


def dexterity_of(jacobians: VelocityJacobians, length: float | str | None = None) -> Dexterity:
    """Measure how evenly motors move the output.

    Args:
        jacobians: Jacobians of a robot.
        length: Length L [m], "optimal", or the robot's size unless given.
    """
    if isinstance(length, str) and length != "optimal":
        raise InvalidArgument(f"length: expected a number [m] or 'optimal', got '{length}'")
    J = jacobians.forward
    turning = np.array([name.startswith("w") for name in jacobians.components])
    if turning.all() or not turning.any():
        L, scaled = np.full(J.shape[:-2], np.nan), J
    else:
        if isinstance(length, str):
            L = characteristic_length(J, turning)
        else:
            L = np.full(J.shape[:-2], check_length(length) or jacobians.length)
        scaled = _scaled(J, turning, L)
    s = _singular_values(scaled)
    return Dexterity(_ratio(s), L, np.prod(s, axis=-1))


def characteristic_length(J: npt.ArrayLike, turning: npt.ArrayLike) -> Array:
    """Find the length that makes the condition number of (L w, v) smallest [m].

    The condition number has a single valley along L, so that golden sections find it.

    Args:
        J: Velocities for unit driven speeds, (..., components, driven).
        turning: Which components are angular velocities.

    Returns:
        The length per matrix; NaN for a matrix that is singular whatever the length.
    """
    J, turning = np.asarray(J, dtype=float), np.asarray(turning, dtype=bool)
    angular, linear = (
        np.linalg.norm(J[..., part, :], axis=(-2, -1)) for part in (turning, ~turning)
    )
    whole = (angular > 0) & (linear > 0) & np.isfinite(angular) & np.isfinite(linear)
    middle = np.log(np.where(whole, linear, 1.0) / np.where(whole, angular, 1.0))
    low, high = middle - np.log(SPREAD), middle + np.log(SPREAD)

    def value(x: Array) -> Array:
        return _ratio(_singular_values(_scaled(J, turning, np.exp(x))))

    for _ in range(SECTIONS):
        inner = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = value(inner[0]) < value(inner[1])
        low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
    middle = (low + high) / 2
    return np.asarray(np.where(whole & np.isfinite(value(middle)), np.exp(middle), np.nan))


def _scaled(J: Array, turning: Array, L: Array) -> Array:
    factor = np.where(turning, L[..., np.newaxis], 1.0)
    return np.asarray(factor[..., np.newaxis] * J)


def _singular_values(J: Array) -> Array:
    """Singular values, largest first; zero of a matrix that is not finite, so that all end."""
    known = np.isfinite(J).all(axis=(-2, -1), keepdims=True)
    finite: Array = np.where(known, J, 0.0)
    return singular_values(finite)


def _ratio(s: Array) -> Array:
    """Condition number; infinite of a singular matrix."""
    if not s.shape[-1]:
        return np.full(s.shape[:-1], np.inf)
    regular = s[..., -1] > np.finfo(float).eps * s[..., 0]
    return np.asarray(np.where(regular, s[..., 0] / np.where(regular, s[..., -1], 1.0), np.inf))


@dataclass(frozen=True)
class OutputStiffness:
    """Stiffness of a robot's output at a state or a batch of states.

    Attributes:
        components: Directions of turns [rad] and moves [m] of the output, and of the couples and
            forces that belong to them.
        compliance: (..., components, components), displacement per load; infinite where nothing
            holds the output.
        stiffness: Its inverse; where the legs hold the output rigidly in some directions, that of
            the displacements which are possible.
    """

    components: tuple[str, ...]
    compliance: Array
    stiffness: Array


def read_springs(robot: Kinematics, springs: Any) -> dict[str, float]:
    """Read stiffnesses by the names of speeds; a number holds for every driven joint.

    Raises:
        UnknownName: for an unknown joint or coordinate.
        InvalidArgument: for numbers that are not positive.
    """
    meanings = speed_meanings(robot.mechanism)
    if not isinstance(springs, Mapping):
        springs = dict.fromkeys(robot.driven, springs)
    found: dict[str, float] = {}
    for name, value in springs.items():
        if name not in meanings:
            raise UnknownName(f"mechanism '{robot.mechanism.name}'", "joint", name, list(meanings))
        stiffness = number(f"springs '{name}'", value)
        if not 0.0 < stiffness < np.inf:
            raise InvalidArgument(f"springs '{name}': must be finite and > 0, got {stiffness:g}")
        found[meanings[name]] = stiffness
    return found


def stiffness_of(
    velocities: Velocities, springs: Mapping[str, float], output: OutputChoice
) -> OutputStiffness:
    """Find the stiffness of feasible velocities; driven joints without a spring are rigid."""
    rows, length = velocities.rows, velocities.length
    Q = velocities.basis()
    sprung = [TWIST + rows.driven.index(name) for name in springs]
    rigid = [TWIST + k for k in range(len(rows.driven)) if TWIST + k not in sprung]
    if rigid:  # motions in which they stand
        Q = Q @ np.swapaxes(singular_vectors(Q[..., rigid, :])[2][..., len(rigid) :, :], -1, -2)
    units = [rows.units[k - TWIST] for k in sprung]
    K = np.array(list(springs.values())) * speed_scales(units, length) ** 2
    S = np.swapaxes(Q[..., sprung, :], -1, -2) @ (K[:, np.newaxis] * Q[..., sprung, :])
    X = output.matrix @ Q[..., :TWIST, :]
    w, V = np.linalg.eigh(S)
    held = w[..., 0] > ROUNDING * w[..., -1] if w.shape[-1] else np.ones(w.shape[:-1], bool)
    Y = X @ V
    C = (Y / np.where(held[..., np.newaxis], w, 1.0)[..., np.newaxis, :]) @ np.swapaxes(Y, -1, -2)
    stiffness = pseudo_inverse(C, tolerance=RANK, symmetric=True)
    C[~held], stiffness[~held] = np.inf, np.nan
    x = speed_scales(output.units, length)
    both = x[:, np.newaxis] * x
    return OutputStiffness(
        output.names, velocities.fill(C * both), velocities.fill(stiffness / both)
    )
