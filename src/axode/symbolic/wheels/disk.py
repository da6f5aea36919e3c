r"""A disk with a spin axis: rolling wheels, omni wheels and skates, exact where they lean (C).

Wheel centre c, unit spin axis a, ground normal n, radius R:

.. math:: d = -\frac{n - (n \cdot a) a}{|n - (n \cdot a) a|}, \quad Q = c + R d, \quad
          t_1 = \frac{a \times n}{|a \times n|}, \quad t_2 = n \times t_1.        \tag{C5}

The three kinds differ in which rows hold, and these their descriptions name.
"""

from __future__ import annotations

import casadi as ca

from axode.symbolic.algebra.spatial import SX, cross, dot
from axode.symbolic.wheels.base import SymbolicWheel


class SymbolicDisk(SymbolicWheel):
    """Touches the ground with the lowest point of its rim."""

    def lowest(self, n: SX, axis: SX | None, tangent: SX) -> tuple[SX, SX]:
        """Directions d and t_1.  (C5)"""
        assert axis is not None
        across = n - dot(n, axis) * axis
        length = ca.sqrt(dot(across, across))
        return -across / length, cross(axis, n) / length  # |a x n| = |n - (n.a) a|
