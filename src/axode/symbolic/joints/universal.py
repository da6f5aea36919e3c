"""Universal: turns about an axis fixed in the parent, then about one fixed in the child."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axode.mechanism.elements.joints import Revolute
from axode.symbolic.algebra.spatial import SX, align, cross, dot, unit_vector
from axode.symbolic.joints.base import ZERO, Move, SymbolicJoint, Twist
from axode.symbolic.joints.revolute import SymbolicRevolute

if TYPE_CHECKING:
    from axode.symbolic.constraints.loops import Closure, RelativeMotion


class SymbolicUniversal(SymbolicJoint):
    """Two revolutes whose axes meet: two links in the tree."""

    @property
    def axes(self) -> list[SX]:
        """Unit axes as described: in the parent, and in the child."""
        joint = self.description
        return [unit_vector(getattr(joint, name), self.values) for name in joint.directions]

    def moves(self) -> tuple[list[Move], SX]:
        """Two revolutes, with a constant turn from one axis to the other."""
        first, second = (align(axis) for axis in self.axes)
        hinge = SymbolicRevolute(Revolute(), self.values)
        return [Move(hinge, 0, first), Move(hinge, 1, first.T @ second)], second.T

    def closure_axes(self, closure: Closure) -> Sequence[SX]:
        """The axis fixed in each of a loop's two links."""
        mine, other = self.axes if closure.parent_first else self.axes[::-1]
        return closure.frame_1.R @ mine, closure.frame_2.R @ other

    def _together(self, closure: Closure) -> tuple[SX, SX]:
        """Both axes in the first link's axes."""
        a1, a2 = closure.axes
        return a1, closure.tree.carry(a2, closure.second, closure.first)

    def closure_directions(self, closure: Closure) -> dict[str, Twist]:
        """With the row `cross`: no turning about the normal to both axes.  (C2)"""
        normal = cross(*self._together(closure))
        return super().closure_directions(closure) | {"cross": (normal, ZERO)}

    def closure_bias(self, closure: Closure, name: str, motion: RelativeMotion) -> SX:
        """As for every joint, but the direction of `cross` turns with both links."""
        if name != "cross":
            return super().closure_bias(closure, name, motion)
        one, two = motion.first, motion.second
        a1, a2 = self._together(closure)
        n_dot = cross(cross(one.w, a1), a2) + cross(a1, cross(two.w, a2))
        n, _ = closure.directions[name]
        return dot(n, one.w_dot - two.w_dot) + dot(n_dot, one.w - two.w)

    def closure_residuals(self, closure: Closure) -> dict[str, SX]:
        """With the change of the cosine between the two axes.  (C4)"""
        change = dot(*self._together(closure)) - dot(*self.axes)
        return super().closure_residuals(closure) | {"cross": change}

    def free_directions(self, closure: Closure) -> Sequence[Twist]:
        """Turning about each of the two axes."""
        links = closure.first, closure.second
        pairs = zip(links, closure.axes, strict=True)
        return [(closure.tree.pose(link).R @ axis, ZERO) for link, axis in pairs]
