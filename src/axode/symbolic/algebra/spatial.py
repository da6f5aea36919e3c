"""Rotations, cross products and rigid-body inertia on CasADi symbols (S).

Vectors are 3 x 1, in whatever axes the caller keeps; spatial pairs are (angular, linear). A
rotation is kept as the turns it is made of, because turning a vector about one axis costs six
operations and a general matrix fifteen.

Numbers that are nothing but rounding are made exact, so that they vanish from the code. A number
counts as rounding only against the terms it is the sum of: in a robot of micrometres a nanometre is
a length, and what is small because a frame stands far away is not small at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

ROUNDING = 16 * np.finfo(float).eps  # of the terms of a sum: what a few operations leave
SNAPPED = 1e-14  # from 0, 1 or -1: an entry of a rotation matrix that is meant to be that


def snap_rotation(R: SX) -> SX:
    """Make entries of a rotation within rounding of 0, 1 and -1 exact."""
    if not is_constant(R):
        return R
    entries = constant_values(R)
    nearest = np.round(entries)
    return SX(np.where(np.abs(entries - nearest) < SNAPPED, nearest, entries))


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
LEAST_SINE = 1e-8  # of smaller angles the sine is the angle, to rounding


def skew(a: SX) -> SX:
    r"""Cross-product matrix, \hat a x = a \times x.  (S1)"""
    return ca.skew(a)


def cross(a: SX, b: SX) -> SX:
    """a x b, (S1)."""
    return ca.cross(a, b)


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
    aside = ca.if_else(sines[0] < 0, -LEAST_SINE, LEAST_SINE) * ca.fmax(-cosine, 0)
    sines = sines + ca.vertcat(aside, SX(sines.numel() - 1, 1))
    sine = ca.sqrt(ca.fmax(ca.sumsqr(sines), LEAST_SINE**2))
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
        w = s * (x[i, i] - x[j, j]) + 2 * (c * x[i, j])  # (S2)
        sw = s * w
        out = SX.zeros(3, 3)
        out[i, i], out[j, j], out[k, k] = x[i, i] - sw, x[j, j] + sw, x[k, k]
        out[i, j] = out[j, i] = c * w - x[i, j]
        out[i, k] = out[k, i] = c * x[i, k] - s * x[j, k]
        out[j, k] = out[k, j] = s * x[i, k] + c * x[j, k]
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
            x = _turned(turn.matrix.T, x)
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
    spread = -(mixed + mixed.T) / 2
    for i in range(3):
        spread[i, i] = mixed[(i + 1) % 3, (i + 1) % 3] + mixed[(i + 2) % 3, (i + 2) % 3]
    return spread
