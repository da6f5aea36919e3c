"""Floating: free in space, by a unit quaternion and a position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import casadi as ca
import numpy as np

from axode.numerics.tolerances import PRODUCT_ROUNDING
from axode.symbolic.algebra.spatial import (
    SX,
    Rotation,
    Turn,
    align,
    constant_turns,
    cross,
    quaternion_matrix,
    quaternion_rate,
    snap_rotation,
)
from axode.symbolic.joints.base import ZERO, X, Y, Z
from axode.symbolic.joints.spherical import SymbolicSpherical

if TYPE_CHECKING:
    from axode.symbolic.tree.kinematics import Frame


class SymbolicFloating(SymbolicSpherical):
    """A spherical joint whose point moves; speeds are in the child's axes."""

    twists: ClassVar = [*SymbolicSpherical.twists, *((ZERO, e) for e in (X, Y, Z))]

    def transform(self, frame: Frame, q: SX) -> tuple[Rotation, SX]:
        """That of a spherical joint, and the position in the parent's joint frame."""
        return super().transform(frame, q)[0], frame.base.point(q[4:7])

    def rate_matrix(self, q: SX) -> SX:
        """That of the quaternion, and the child's axes in the parent's for the velocity."""
        R = quaternion_matrix(*ca.vertsplit(q[:4]))
        return ca.diagcat(super().rate_matrix(q[:4]), R)

    def turns_in_parent(self, q: SX, axes: dict[str, SX]) -> Iterator[tuple[str, SX]]:
        """About any axis, which carries the position too."""
        for name, turned in super().turns_in_parent(q, axes):
            yield name, ca.vertcat(turned, cross(axes[name], q[4:7]))

    def turn_in_child(self, q: SX, axis: np.ndarray, offset: np.ndarray) -> SX:
        """About any axis; the origin moves where the axis misses it."""
        shift = quaternion_matrix(*ca.vertsplit(q[:4])) @ SX((-offset).tolist())
        return ca.vertcat(self._spin(q, axis), shift)


@dataclass(frozen=True, eq=False)
class SymbolicLevel(SymbolicFloating):
    r"""A floating body that turns about one direction alone, because contacts keep it from tilting.

    With n this direction in the parent, b the same in the child, both constant, and Q_0 the
    shortest rotation from b to n, the unit quaternion q is

    .. math:: q = (C + S n) \circ q_0, \qquad C = q \cdot q_0, \qquad
              S = n \cdot \operatorname{vec}(q \circ \bar q_0), \qquad
              R = R_n(\psi)\, Q_0, \quad \cos \psi = 1 - 2 S^2, \quad \sin \psi = 2 S C,  \tag{K7}

    which holds where the contacts do. Coordinates and speeds are those of the floating body.
    """

    normal: np.ndarray
    in_child: np.ndarray

    @property
    def start(self) -> np.ndarray:
        """Quaternion q_0."""
        n, b = self.normal, self.in_child
        if n @ b > -0.5:
            q = np.array([1.0 + n @ b, *np.cross(b, n)])
        else:  # half a turn about an axis across n, then the shortest turn
            across = np.eye(3)[np.argmin(np.abs(n))]
            across = np.cross(n, across) / np.linalg.norm(np.cross(n, across))
            back = 2.0 * (across @ b) * across - b  # b after half a turn
            w, x = 1.0 + n @ back, np.cross(back, n)
            q = np.array([-x @ across, *(w * across + np.cross(x, across))])
        q /= np.linalg.norm(q)
        exact: np.ndarray = np.where(np.abs(q - np.round(q)) < PRODUCT_ROUNDING, np.round(q), q)
        return exact

    def half_angle(self, q: SX) -> tuple[SX, SX]:
        """Cosine C and sine S of half the angle psi.  (K7)"""
        (w, *e), n = self.start, self.normal
        along = np.array([-(n @ e), *(w * n - np.cross(e, n))])
        return _combined(self.start, q), _combined(along, q)

    def turns(self, q: SX) -> list[Turn]:
        """Rotation of the child in the parent as turns: constant ones around that about n."""
        C, S = self.half_angle(q)
        c, s, zero = 1 - 2 * S * S, 2 * S * C, SX(0)
        about = ca.vertcat(ca.horzcat(c, -s, zero), ca.horzcat(s, c, zero), SX([[0, 0, 1]]))
        A = align(SX(self.normal.tolist()))
        Q_0 = snap_rotation(quaternion_matrix(*map(SX, self.start.tolist())))
        before, after = constant_turns(A), constant_turns(snap_rotation(A.T @ Q_0))
        return [*before, Turn("z", about), *after]

    def level(self, C: SX, S: SX) -> list[SX]:
        """Quaternion (C + S n) after q_0.  (K7)"""
        (w, *e), n = self.start, self.normal
        turned = np.array([-(n @ e), *(w * n + np.cross(n, e))])
        return [C * float(a) + S * float(b) for a, b in zip(self.start, turned, strict=True)]

    def upright(self, q: SX) -> SX:
        """Nearest quaternion that does not tilt, of unit length."""
        C, S = self.half_angle(q)
        length = ca.sqrt(C * C + S * S)
        return ca.vertcat(*self.level(C / length, S / length))

    def rate_matrix(self, q: SX) -> SX:
        """That of a floating body, at the quaternion that contacts leave."""
        rates = quaternion_rate(*self.level(*self.half_angle(q)))
        return ca.diagcat(rates, Rotation.of(*self.turns(q)).matrix)


def _combined(weights: np.ndarray, q: SX) -> SX:
    """Sum of the four parts of a quaternion, each weighted."""
    parts = [float(w) * q[i] for i, w in enumerate(weights) if w]
    return sum(parts, SX(0))
