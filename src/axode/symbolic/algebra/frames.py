"""Frames and poses in symbols, made from the numbers and formulas of a description (K)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from axode.mechanism.values.expressions import Scalar, numeric
from axode.mechanism.values.geometry import Vector, rotation_matrix
from axode.numerics.tolerances import TWO_ROUNDINGS
from axode.symbolic.algebra.formula_symbols import symbolic_value
from axode.symbolic.algebra.spatial import (
    SX,
    Turn,
    constant_values,
    is_constant,
    place,
    snap_rotation,
    vector,
)

Values = dict[str, SX]
ROOT = -1  # the ground's link index
FROM_BELOW = -0.5  # z of axes that frames are turned to from -z
ANGLE_ROUNDING = 1e-14  # [rad]: from a multiple of a right angle that is meant


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
    first = _right_angle(np.arctan2(M[0, 2], -M[1, 2]), ANGLE_ROUNDING / max(sine, ANGLE_ROUNDING))
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
    return _right_angle(float(np.remainder(angle + np.pi, 2 * np.pi) - np.pi), ANGLE_ROUNDING)


def _right_angle(angle: float, within: float) -> float:
    """The multiple of a right angle nearest to an angle within half a turn, if it is this near."""
    nearest = round(angle / (np.pi / 2)) * (np.pi / 2)
    return nearest if abs(angle - nearest) < within else float(angle)
