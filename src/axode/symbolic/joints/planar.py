"""Planar: moves in the plane across its axis and turns about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.values.geometry import product, rotation_matrix
from axode.symbolic.algebra.spatial import SX, Turn
from axode.symbolic.joints.base import ZERO, SymbolicJoint, X, Y, Z


class SymbolicPlanar(SymbolicJoint):
    """Position x, y and angle; the speeds are along the axes of the child."""

    twists: ClassVar = [(ZERO, X), (ZERO, Y), (Z, ZERO)]

    def displacement(self, q: SX) -> tuple[SX, SX]:
        """Yaw, and a shift in the plane."""
        return q[2], ca.vertcat(q[0], q[1], 0)

    def rate_matrix(self, q: SX) -> SX:
        """The turn from the child's axes to the parent's."""
        return Turn.about("z", q[2]).matrix

    def turns_in_parent(self, q: SX, axes: dict[str, SX]) -> Iterator[tuple[str, SX]]:
        """About the normal of the plane."""
        yield "the ground's normal", ca.vertcat(-q[1], q[0], 1)

    def floating_equivalent(self, connection: Connection) -> Connection:
        """A floating joint whose z is the normal of the plane.

        Coordinates x and y and the speeds keep their names, so that what acts on them still does.
        """
        rows: Any = tuple(tuple(float(x) for x in row) for row in np.array(ca.DM(self.turn)))
        name = connection.name
        x, y, _ = connection.coordinates
        surge, sway, yaw_rate = connection.speeds
        return replace(
            connection,
            joint=Floating(),
            rotation=product(rotation_matrix(connection.rotation), rows),
            child_rotation=product(rotation_matrix(connection.child_rotation), rows),
            coordinate_names=(*(f"{name}.q{part}" for part in "wxyz"), x, y, f"{name}.height"),
            speed_names=(f"{name}.wx", f"{name}.wy", yaw_rate, surge, sway, f"{name}.vz"),
        )
