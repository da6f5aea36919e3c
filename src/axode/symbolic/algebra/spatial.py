"""Rotations, frames, cross products and rigid-body inertia on CasADi symbols (S, K).

Vectors are 3 x 1, in whatever axes the caller keeps; spatial pairs are (angular, linear). A
rotation is kept as the turns it is made of, because turning a vector about one axis costs six
operations and a general matrix fifteen. Frames and poses are made from the numbers and formulas of
a description.

Numbers that are nothing but rounding are made exact, so that they vanish from the code. A number
counts as rounding only against the terms it is the sum of: in a robot of micrometres a nanometre is
a length, and what is small because a frame stands far away is not small at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from axode.mechanism.values.expressions import Scalar, numeric
from axode.mechanism.values.geometry import Vector, rotation_matrix
from axode.numerics.tolerances import HALF_DIGITS, PRODUCT_ROUNDING, TWO_ROUNDINGS
from axode.symbolic.algebra.formula_symbols import symbolic_value

ROUNDING = 16 * np.finfo(float).eps  # of the terms of a sum: what a few operations leave


def snap_rotation(R: SX) -> SX:
    """Make entries of a rotation within rounding of 0, 1 and -1 exact."""
    if not is_constant(R):
        return R
    entries = constant_values(R)
    nearest = np.round(entries)
    return SX(np.where(np.abs(entries - nearest) < PRODUCT_ROUNDING, nearest, entries))


def place(R: SX, x: SX, p: SX) -> SX:
    """Return R x + p without the rounding of its terms."""
    placed = R @ x + p
    if not (is_constant(R) and is_constant(x) and is_constant(p)):
        return placed
    pattern = constant_values(R) != 0  # a rotation's entries are off by rounding, not its zeros
    terms = pattern @ np.abs(constant_values(x)) + np.abs(constant_values(p))
    return _without_rounding(placed, terms)


def turn_tensor(R: SX, tensor: SX, *, ideal: bool) -> SX:
    """Return R I R^T without the rounding of its terms.

    A small moment is all that the joint of a thin rod feels, so moments stay, unless the body is
    an ideal one (a point, a line), whose moments may be zero.
    """
    turned = Rotation.from_matrix(R).outward_symmetric(tensor)
    if not (is_constant(R) and is_constant(tensor)):
        return turned
    pattern = constant_values(R) != 0
    terms = pattern @ np.abs(constant_values(tensor)) @ pattern.T
    if not ideal:
        np.fill_diagonal(terms, 0.0)
    return _without_rounding(turned, terms)


def add_up(parts: list[SX], total: SX) -> SX:
    """Return a total, or zero where its parts cancel but for rounding."""
    if not all(map(is_constant, parts)) or len(parts) < 2:
        return total
    return _without_rounding(
        total, np.sum([np.abs(constant_values(part)) for part in parts], axis=0)
    )


def _without_rounding(x: SX, terms: np.ndarray) -> SX:
    values = constant_values(x)
    return SX(np.where(np.abs(values) < ROUNDING * terms, 0.0, values))


SX = ca.SX
Array = np.ndarray


def skew(a: SX) -> SX:
    r"""Cross-product matrix, \hat a x = a \times x.  (S1)"""
    return ca.skew(a)


def cross(a: SX, b: SX) -> SX:
    """a x b, (S1)."""
    return ca.cross(a, b)


# Operators of CasADi try numbers and MX before SX, which takes eight times as long as these. They
# serve where single entries are computed one by one, and give the same expressions.
def times(a: SX, b: SX) -> SX:
    """a b, entry by entry."""
    return SX.binary(ca.OP_MUL, a, b)


def plus(a: SX, b: SX) -> SX:
    """a + b."""
    return SX.binary(ca.OP_ADD, a, b)


def minus(a: SX, b: SX) -> SX:
    """a - b."""
    return SX.binary(ca.OP_SUB, a, b)


def over(a: SX, b: SX) -> SX:
    """a / b, entry by entry."""
    return SX.binary(ca.OP_DIV, a, b)


def dot(a: SX, b: SX) -> SX:
    """Inner product of two vectors."""
    return ca.dot(a, b)


def turned_by(sines: SX, cosine: SX) -> SX:
    """Angle along a direction [rad], up to half a turn, from its sine along that direction.

    Smooth but at half a turn, where the direction is arbitrary and the angle is not.

    Args:
        sines: The direction times the sine.
        cosine: Cosine of the angle.
    """
    # beyond a right angle add a little of one direction, the sum may vanish otherwise
    aside = ca.if_else(sines[0] < 0, -HALF_DIGITS, HALF_DIGITS) * ca.fmax(-cosine, 0)
    sines = sines + ca.vertcat(aside, SX(sines.numel() - 1, 1))
    sine = ca.sqrt(ca.fmax(ca.sumsqr(sines), HALF_DIGITS**2))
    return ca.atan2(sine, cosine) / sine * sines


def vector(values: Iterable[Any]) -> SX:
    """A column of numbers and symbols."""
    column: SX = ca.vertcat(*[SX(value) for value in values])
    return column


def is_constant(x: SX) -> bool:
    """Return whether no symbol is left in an expression."""
    return bool((x if isinstance(x, SX) else SX(x)).is_constant())


def constant_values(x: SX) -> Array:
    """Return the numbers of an expression without symbols."""
    return np.asarray(ca.evalf(x).full())


def is_zero(x: SX) -> bool:
    """Return whether an expression is the constant zero, entry by entry."""
    return bool((x if isinstance(x, SX) else SX(x)).is_zero())


def symmetric(x: SX) -> SX:
    """The matrix with the upper triangle of x on both sides, so that no entry is built twice."""
    return ca.triu2symm(ca.triu(x))


@dataclass(frozen=True)
class Turn:
    """One elementary rotation, from inner to outer axes, about x or z; or any matrix."""

    axis: str  # "x", "z" or "matrix"
    matrix: SX

    @classmethod
    def about(cls, axis: str, angle: SX | float) -> Turn:
        """A turn by an angle about x or z, exact for multiples of a right angle."""
        angle = SX(angle)
        c, s = ca.cos(angle), ca.sin(angle)
        if angle.is_constant():
            c, s = (SX(_snapped(float(x))) for x in (c, s))
        zero, one = SX(0), SX(1)
        if axis == "x":
            rows = [[one, zero, zero], [zero, c, -s], [zero, s, c]]
        else:
            rows = [[c, -s, zero], [s, c, zero], [zero, zero, one]]
        return cls(axis, ca.vertcat(*[ca.horzcat(*row) for row in rows]))

    @cached_property
    def transposed(self) -> SX:
        """The matrix of the turn back."""
        return self.matrix.T

    @property
    def is_identity(self) -> bool:
        """Return whether it turns nothing."""
        return is_zero(self.matrix - SX.eye(3))

    def turn_symmetric(self, x: SX) -> SX:
        """R X R^T for symmetric X in 16 operations about an axis.  (S2)

        With i, j the axes that turn, :math:`w = s (X_{ii} - X_{jj}) + 2 c X_{ij}` gives
        :math:`X_{ii} - s w`, :math:`X_{jj} + s w` and :math:`c w - X_{ij}`.
        """
        if self.axis == "matrix":
            return symmetric(self.matrix @ x @ self.matrix.T)
        i, j, k = (0, 1, 2) if self.axis == "z" else (1, 2, 0)
        c, s = self.matrix[i, i], self.matrix[j, i]
        xii, xjj, xij, xik, xjk = x[i, i], x[j, j], x[i, j], x[i, k], x[j, k]
        w = plus(times(s, minus(xii, xjj)), times(SX(2), times(c, xij)))  # (S2)
        sw = times(s, w)
        out = SX.zeros(3, 3)
        out[i, i], out[j, j], out[k, k] = minus(xii, sw), plus(xjj, sw), x[k, k]
        out[i, j] = out[j, i] = minus(times(c, w), xij)
        out[i, k] = out[k, i] = minus(times(c, xik), times(s, xjk))
        out[j, k] = out[k, j] = plus(times(s, xik), times(c, xjk))
        return out


@dataclass(frozen=True)
class Rotation:
    """A rotation as a sequence of turns; maps the inner frame's components to the outer's."""

    turns: tuple[Turn, ...] = ()

    @classmethod
    def of(cls, *turns: Turn) -> Rotation:
        """Make a rotation of turns, outermost first; those that turn nothing are dropped."""
        return cls(tuple(turn for turn in turns if not turn.is_identity))

    @classmethod
    def from_matrix(cls, matrix: SX) -> Rotation:
        """Make a rotation of a matrix."""
        return cls.of(Turn("matrix", SX(matrix)))

    def outward(self, x: SX) -> SX:
        """Map components outward: R x, for one vector or several columns."""
        for turn in reversed(self.turns):
            x = _turned(turn.matrix, x)
        return x

    def inward(self, x: SX) -> SX:
        """Map components inward: R^T x, for one vector or several columns."""
        for turn in self.turns:
            x = _turned(turn.transposed, x)
        return x

    def outward_symmetric(self, x: SX) -> SX:
        """Map a symmetric X outward: R X R^T."""
        for turn in reversed(self.turns):
            x = turn.turn_symmetric(x)
        return x

    def outward_matrix(self, x: SX) -> SX:
        """Map any X outward: R X R^T."""
        for turn in reversed(self.turns):
            x = turn.matrix @ x @ turn.matrix.T
        return x

    @property
    def matrix(self) -> SX:
        """The rotation as one matrix."""
        return self.outward(SX.eye(3))


def _turned(R: SX, x: SX) -> SX:
    """R x, numbers without the rounding of their terms: a turn may bring a vector to an axis."""
    turned = R @ x
    if not (is_constant(R) and is_constant(x)):
        return turned
    return _without_rounding(turned, np.abs(constant_values(R)) @ np.abs(constant_values(x)))


def _snapped(x: float) -> float:
    nearest = round(x)
    return float(nearest) if abs(x - nearest) < 4e-16 else x


def quaternion_matrix(w: SX, x: SX, y: SX, z: SX) -> SX:
    """Rotation of the unit quaternion (w, x, y, z).  (S3)"""
    return ca.vertcat(
        ca.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def quaternion_rate(w: SX, x: SX, y: SX, z: SX) -> SX:
    r"""E with \dot{quaternion} = E \omega, \omega in the turning body's axes.  (S4)"""
    return 0.5 * ca.vertcat(
        ca.horzcat(-x, -y, -z), ca.horzcat(w, -z, y), ca.horzcat(z, w, -x), ca.horzcat(-y, x, w)
    )


@dataclass(frozen=True)
class RigidInertia:
    """Mass, first moment and second moment about a frame's origin, in the frame's axes.

    Regrouped parameters need not belong to a real body, so mass may be zero here.
    """

    mass: SX
    moment: SX  # h = m c
    tensor: SX  # I about the origin, 3 x 3 symmetric

    @classmethod
    def zero(cls) -> RigidInertia:
        """Inertia of a body without mass."""
        return cls(SX(0), SX.zeros(3), SX.zeros(3, 3))

    @classmethod
    def at_centre(cls, mass: SX, centre: SX, tensor: SX) -> RigidInertia:
        """From mass centre and central inertia: I = I_c + m(c^2 1 - c c^T).  (S5)"""
        moment = mass * centre
        return cls(SX(mass), moment, tensor + symmetric(spread(moment, centre)))

    @property
    def is_axial(self) -> bool:
        """Return whether only turning about z takes a moment: a balanced wheel's, regrouped."""
        across = [self.tensor[i, j] for i in range(3) for j in range(3) if (i, j) != (2, 2)]
        return all(x.is_zero() for x in (self.mass, self.moment, *across))

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            self.mass + other.mass, self.moment + other.moment, self.tensor + other.tensor
        )

    def moved(self, rotation: Rotation, p: SX) -> RigidInertia:
        r"""As seen in an outer frame in which this one stands at p, turned.  (S6)

        :math:`h' = R h + m p`, :math:`I' = R I R^T + 2 (p \cdot R h) 1 - (p (R h)^T + (R h) p^T)
        + m (p^2 1 - p p^T)`.
        """
        h = rotation.outward(self.moment)
        tensor = rotation.outward_symmetric(self.tensor)
        shift = spread(p, 2 * h + self.mass * p)
        return RigidInertia(self.mass, h + self.mass * p, symmetric(tensor + shift))  # (S6)


def spread(p: SX, h: SX) -> SX:
    """(p . h) 1 - (p h^T + h p^T) / 2; what cancels on the diagonal is never written."""
    mixed = p @ h.T
    spread = over(-plus(mixed, mixed.T), SX(2))
    diagonal = [mixed[i, i] for i in range(3)]
    for i in range(3):
        spread[i, i] = plus(diagonal[(i + 1) % 3], diagonal[(i + 2) % 3])
    return spread


Values = dict[str, SX]
ROOT = -1  # the ground's link index
FROM_BELOW = -0.5  # z of axes that frames are turned to from -z


@dataclass(frozen=True)
class Pose:
    """Orientation and position of one frame in another."""

    R: SX
    p: SX

    @classmethod
    def identity(cls) -> Pose:
        """The pose without turn and shift."""
        return cls(SX.eye(3), SX.zeros(3))

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(snap_rotation(self.R @ other.R), self.point(other.p))

    def inverse(self) -> Pose:
        """Pose of the outer frame in the inner one."""
        return Pose(self.R.T, place(-self.R.T, self.p, SX.zeros(3)))

    def point(self, x: SX) -> SX:
        """A point given in the inner frame, in the outer."""
        return place(self.R, x, self.p)


def symbolic_scalar(scalar: Scalar, values: Values) -> SX:
    """A number or formula as a symbol."""
    return SX(symbolic_value(scalar, values))


def symbolic_vector(v: Vector, values: Values) -> SX:
    """Three numbers or formulas as a column."""
    return vector(symbolic_value(x, values) for x in v)


def unit_vector(v: Vector, values: Values) -> SX:
    """Return a unit vector: the length of rounded numbers is made one.

    That of formulas too, unless it is one at the defaults of their parameters.
    """
    x = symbolic_vector(v, values)
    if is_constant(x):
        n = constant_values(x).ravel()
        return snap_rotation(SX(n / np.linalg.norm(n)))
    length = math.hypot(*(numeric(entry) for entry in v))
    return x if abs(length - 1) <= TWO_ROUNDINGS else x / ca.norm_2(x)


def placement(at: Vector, rotation: object, values: Values) -> Pose:
    """Pose from a position and any form of rotation."""
    rows = rotation_matrix(rotation)  # type: ignore[arg-type]
    R = ca.vertcat(*[symbolic_vector(row, values).T for row in rows])
    return Pose(snap_rotation(R), symbolic_vector(at, values))


def align(axis: SX) -> SX:
    """A rotation matrix whose z column is the axis: the shortest turn from z.  (K1)"""
    if is_constant(axis):
        a = constant_values(axis).ravel()
        sine = math.hypot(a[0], a[1])
        if sine == 0.0:  # z itself, or half a turn about x
            return SX(np.diag([1.0, *(2 * [math.copysign(1.0, a[2])])]))
        # Rodrigues' formula about the unit axis v; 1 + a_z, which vanishes at -z, divides nothing
        v = np.array([-a[1], a[0], 0.0]) / sine
        K = np.array([[0.0, 0.0, v[1]], [0.0, 0.0, -v[0]], [-v[1], v[0], 0.0]])
        R = np.eye(3) + sine * K + (1 - a[2]) * (np.outer(v, v) - np.eye(3))
        return snap_rotation(SX(R))
    x, y, z = axis[0], axis[1], axis[2]
    if y.is_zero():  # about y, by the angle whose cosine and sine these are
        return ca.vertcat(ca.horzcat(z, 0, x), ca.horzcat(0, 1, 0), ca.horzcat(-x, 0, z))
    if x.is_zero():
        return ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, z, y), ca.horzcat(0, -y, z))
    # -z may be any half turn away: axes near it are turned to from there, after one about x
    sign = SX(1) if z.is_zero() else ca.if_else(z < FROM_BELOW, -1, 1)
    turn = sign * ca.skew(ca.vertcat(-y, x, 0))
    return (SX.eye(3) + turn + turn @ turn / (1 + sign * z)) @ ca.diag(ca.vertcat(1, sign, sign))


def constant_turns(R: SX) -> list[Turn]:
    """A constant rotation as turns about z, x and z (Euler's angles).  (K6)

    Each turn is found after the ones before it are taken off. Read off the matrix one by one, the
    first and the last would each be wrong by rounding over the sine of the middle one.
    """
    if not is_constant(R):
        return [Turn("matrix", R)]
    M = constant_values(R)
    sine = np.hypot(M[0, 2], M[1, 2])
    rounding = PRODUCT_ROUNDING / max(sine, PRODUCT_ROUNDING)
    first = _right_angle(np.arctan2(M[0, 2], -M[1, 2]), rounding)
    if abs(first) == np.pi or sine == 0.0:  # x may turn either way: no turn, not half a one
        first = 0.0
    about_z = Turn.about("z", first)
    M = constant_values(about_z.matrix).T @ M
    about_x = Turn.about("x", np.arctan2(-M[1, 2], M[2, 2]))
    M = constant_values(about_x.matrix).T @ M
    turns = [about_z, about_x, Turn.about("z", np.arctan2(M[1, 0], M[0, 0]))]
    return [turn for turn in turns if not turn.is_identity]


def principal_angle(angle: float) -> float:
    """An angle within half a turn of zero, rounding removed."""
    return _right_angle(float(np.remainder(angle + np.pi, 2 * np.pi) - np.pi), PRODUCT_ROUNDING)


def _right_angle(angle: float, within: float) -> float:
    """The multiple of a right angle nearest to an angle within half a turn, if it is this near."""
    nearest = round(angle / (np.pi / 2)) * (np.pi / 2)
    return nearest if abs(angle - nearest) < within else float(angle)
