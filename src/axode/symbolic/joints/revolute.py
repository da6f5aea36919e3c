"""Revolute: turns about its axis."""

from __future__ import annotations

from typing import ClassVar

import casadi as ca

from axode.symbolic.algebra.spatial import SX, RigidInertia, is_constant
from axode.symbolic.joints.base import ZERO, SymbolicJoint, Z


class SymbolicRevolute(SymbolicJoint):
    """Angle q about z."""

    twists: ClassVar = [(Z, ZERO)]
    turns_only: ClassVar = True

    def displacement(self, q: SX) -> tuple[SX, SX]:
        """The coordinate is the angle."""
        return q[0], ZERO

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        """A mass on the axis, a first moment along it, equal moments across it.  (D1)"""
        across = _across(inertia.tensor)
        moment = ca.vertcat(0, 0, inertia.moment[2])
        return RigidInertia(inertia.mass, moment, ca.diag(ca.vertcat(across, 0)))


def _across(tensor: SX) -> SX:
    """I_yy, or I_xx where the two are equal but for rounding: their difference then vanishes."""
    x, y = tensor[0, 0], tensor[1, 1]
    if is_constant(x) and is_constant(y) and abs(float(x) - float(y)) < 1e-14 * abs(float(y)):
        return ca.diag(tensor)[0:2]
    return ca.vertcat(y, y)
