"""Chains of passive joints with one link eliminated: what is left are a few equations.

A chain leads from one node to another. One of its links, held by an *element* at either end, is
eliminated: an element is one axis (a revolute), or a point (a spherical joint, or two or three
revolutes whose axes meet). The joints between a node and its element stay unknowns. By kind, with
p, q the points of the two elements and a, b their axes:

    points      |q - p|^2 = c                                       a point that may turn freely
    axis-point  |q - p|^2 = c, a . (q - p) = d                      an axis, and such a point
    axes        q - p = s a + t b + k a x b, a . b = c              two axes that are not parallel
    directions  a . b = c                                           all axes meet in one point
    meeting     q = p                                               one joint and no link

A chain's joints are placed in the axes of its nodes with all joints at zero; a turn about the axis
of each, one after the other from the node outwards, leads to any other configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.kinematics.motion_graph import ElementaryJoint
from axode.symbolic.algebra.frames import Pose
from axode.symbolic.algebra.spatial import SX, cross, dot

Array = npt.NDArray[np.float64]
Space = Literal["spatial", "planar", "spherical", "translational"]
ReductionKind = Literal["points", "axis-point", "axes", "directions", "meeting"]
LEAST_SINE = 0.02  # of two axes that are certainly not parallel


@dataclass(frozen=True, eq=False)
class PlacedJoint:
    """A joint, its frame and the link after it in the axes of a node, all joints at zero."""

    joint: ElementaryJoint
    frame: Pose
    link: Pose

    @classmethod
    def after(cls, joint: ElementaryJoint, link: Pose) -> PlacedJoint:
        """Place a joint behind a link."""
        frame = link @ joint.frame_1
        return cls(joint, frame, frame @ joint.zero_motion @ joint.frame_2.inverse())

    @property
    def axis(self) -> SX:
        """Direction of its axis."""
        return self.frame.R[:, 2]

    @property
    def point(self) -> SX:
        """Origin of its frame."""
        return self.frame.p


@dataclass(frozen=True, eq=False)
class ChainEnd:
    """One side of a chain, from a node to the link that is eliminated.

    Attributes:
        node: Name of the node.
        tree: Joints that stay unknowns, from the node outwards.
        element: Joints that are eliminated, from the node outwards.
        point: The element's point in the axes of the node at zero.
        link: Pose of the eliminated link in the axes of the node at zero.
        link_point: The element's point in the link.
    """

    node: str
    tree: tuple[PlacedJoint, ...]
    element: tuple[PlacedJoint, ...]
    point: SX
    link: Pose
    link_point: SX

    @property
    def axis(self) -> SX:
        """Axis of an element with one, in the axes of the node at zero."""
        return self.element[0].axis

    @property
    def link_axis(self) -> SX:
        """Axis of such an element in the link."""
        return self.element[-1].joint.frame_2.R[:, 2]

    @property
    def freedoms(self) -> int:
        """How many turns the element leaves."""
        return sum(3 if item.joint.kind == "spherical" else 1 for item in self.element)


@dataclass(frozen=True, eq=False)
class ReducedChain:
    """A chain between two nodes with its equations.

    Attributes:
        kind: Which equations are left.
        first, second: Its two sides; the first has the axis of "axis-point". The second side of
            "meeting" has no element.
        constants: Numbers of the eliminated link: c; c, d; s, t, k, c; c; none.
    """

    kind: ReductionKind
    first: ChainEnd
    second: ChainEnd
    constants: tuple[SX, ...]

    @property
    def unknown(self) -> tuple[PlacedJoint, ...]:
        """Joints that stay unknowns."""
        return self.first.tree + self.second.tree


class ChainGeometry:
    """Numbers of a chain that decide which of its links can be eliminated.

    Args:
        chain: Joints from one node to another.
        frames: Matrices of their frames, at several configurations of what is locked.
        tolerance: Angles that are taken for zero [rad], and lengths against `size`.
        size: Length of the mechanism [m].
    """

    def __init__(
        self,
        chain: Sequence[ElementaryJoint],
        frames: Sequence[Sequence[tuple[Array, Array]]],
        tolerance: float,
        size: float,
    ) -> None:
        self.chain = tuple(chain)
        self.frames, self.tolerance, self.size = frames, tolerance, size

    def sine(self, k: int) -> float:
        """Smallest sine of the angle between axes k and k + 1."""
        return min(float(np.linalg.norm(np.cross(a[1], b[1]))) for a, b in self._lines(k))

    def parallel(self, k: int) -> bool:
        """Return whether axes k and k + 1 are parallel."""
        sines = [float(np.linalg.norm(np.cross(a[1], b[1]))) for a, b in self._lines(k)]
        return max(sines) <= self.tolerance

    def meet(self, k: int) -> bool:
        """Return whether axes k and k + 1 meet."""
        return self.sine(k) > LEAST_SINE and all(
            abs(np.cross(a[1], b[1]) @ (b[0] - a[0])) <= self.tolerance * self.size
            for a, b in self._lines(k)
        )

    def concurrent(self, k: int) -> bool:
        """Return whether axes k, k + 1 and k + 2 meet in one point."""
        if not (self.meet(k) and self.meet(k + 1)):
            return False
        here = [_offsets(*pair)[1] for pair in self._lines(k)]
        there = [_offsets(*pair)[0] for pair in self._lines(k + 1)]
        return bool(np.abs(np.subtract(here, there)).max() <= self.tolerance * self.size)

    def _lines(self, k: int) -> Iterator[tuple[tuple[Array, Array], tuple[Array, Array]]]:
        """Points and directions of axes k and k + 1 in the link between them."""
        for sample in self.frames:
            one, two = sample[k][1], sample[k + 1][0]
            yield (one[:3, 3], one[:3, 2]), (two[:3, 3], two[:3, 2])

    def elements(self) -> Iterator[tuple[int, int, int]]:
        """First joint, number of joints and freedoms of every possible element."""
        kinds = [joint.kind for joint in self.chain]
        for k, kind in enumerate(kinds):
            if kind == "spherical":
                yield k, 1, 3
            if kind == "revolute":
                yield k, 1, 1
                if kinds[k : k + 2] == ["revolute"] * 2 and self.meet(k):
                    yield k, 2, 2
                if kinds[k : k + 3] == ["revolute"] * 3 and self.concurrent(k):
                    yield k, 3, 3


def _offsets(one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[float, float]:
    """Places on two lines, given by points and directions, where they are nearest."""
    (p, a), (q, b) = one, two
    c = float(a @ b)
    along, other = float(a @ (q - p)), float(b @ (q - p))
    return (along - c * other) / (1 - c * c), (c * along - other) / (1 - c * c)


def reduce_chain(geometry: ChainGeometry, space: Space) -> ReducedChain | None:
    """Eliminate the link of a chain that leaves the fewest unknowns; None if there is none."""
    chain = geometry.chain
    if space == "translational":
        return _reduce_rods(geometry)
    if any(joint.kind == "parallelogram" for joint in chain):
        return None
    found = (choice for choice in _choices(geometry, space) if choice.leaves_simple(chain))
    choices = sorted(found, key=lambda choice: choice.order)
    if not choices:
        return None
    best = choices[0]
    back = tuple(joint.reverse() for joint in reversed(chain))
    before = chain_end(chain, best.start, best.first)
    after = chain_end(back, len(chain) - best.start - best.first - best.second, best.second)
    if best.kind == "axis-point" and before.freedoms > 1:
        before, after = after, before
    return ReducedChain(best.kind, before, after, _constants(best.kind, before, after))


@dataclass(frozen=True)
class _Choice:
    """A link to eliminate: where its first element starts, and how many joints both have."""

    order: tuple[float, ...]
    kind: ReductionKind
    start: int
    first: int
    second: int

    def leaves_simple(self, chain: Sequence[ElementaryJoint]) -> bool:
        """Return whether the joints that stay unknowns have one freedom each."""
        rest = (*chain[: self.start], *chain[self.start + self.first + self.second :])
        return all(joint.kind in ("revolute", "prismatic") for joint in rest)


def _choices(geometry: ChainGeometry, space: Space) -> Iterator[_Choice]:
    """Links that can be eliminated, and points that meet."""
    total = sum(3 if joint.kind == "spherical" else 1 for joint in geometry.chain)
    elements = list(geometry.elements())
    for start, count, freedoms in elements:
        if freedoms == (1 if space == "planar" else 3) and count == 1 and space != "spherical":
            yield _Choice((total - freedoms, 1, 0.0, 0.0), "meeting", start, 1, 0)
        for other, others, more in elements:
            if other != start + count:
                continue
            sine = geometry.sine(other - 1) if count == others == freedoms == more == 1 else 0.0
            kind = _kind(space, freedoms, more, sine)
            if kind is not None:
                left, right = start, len(geometry.chain) - other - others
                order = (total - freedoms - more, 0, float(abs(left - right)), -sine)
                yield _Choice(order, kind, start, count, others)


def _kind(space: Space, one: int, other: int, sine: float) -> ReductionKind | None:
    """Return the equations of a link between two elements with the given numbers of freedoms."""
    if space == "planar":
        return "points" if one == other == 1 else None
    if one == other == 1:
        skew: ReductionKind = "directions" if space == "spherical" else "axes"
        return skew if sine > LEAST_SINE else None
    if space == "spherical":
        return None
    if {one, other} == {1, 3}:
        return "axis-point"
    return "points" if max(one, other) == 3 and min(one, other) > 1 else None


def chain_end(chain: Sequence[ElementaryJoint], tree: int, element: int) -> ChainEnd:
    """Place the joints of one side: the chain's first ones, then those of the element."""
    at, placed = Pose.identity(), []
    for joint in chain[: tree + element]:
        placed.append(PlacedJoint.after(joint, at))
        at = placed[-1].link
    used = tuple(placed[tree:])
    if not used:  # the other side has the joint; its frame is in the last link here
        met = chain[tree].frame_1
        return ChainEnd(chain[0].first, tuple(placed), (), at.point(met.p), at, met.p)
    point, link_point = used[0].point, used[-1].joint.frame_2.p
    if len(used) > 1:
        point = point + used[0].axis * _nearest(used[0].frame, used[1].frame)
        one, two = used[-2].joint, used[-1].joint
        link_point = link_point + two.frame_2.R[:, 2] * _nearest(two.frame_1, one.frame_2)
    return ChainEnd(chain[0].first, tuple(placed[:tree]), used, point, at, link_point)


def _nearest(one: Pose, two: Pose) -> SX:
    """Place on the z axis of a frame that is nearest to the z axis of another."""
    a, b, d = one.R[:, 2], two.R[:, 2], two.p - one.p
    c = dot(a, b)
    return (dot(a, d) - c * dot(b, d)) / (1 - c * c)


def _constants(kind: ReductionKind, first: ChainEnd, second: ChainEnd) -> tuple[SX, ...]:
    """Numbers of the eliminated link that the equations contain."""
    if kind == "meeting":
        return ()
    d = second.link_point - first.link_point
    if kind == "points":
        return (dot(d, d),)
    a = first.link_axis
    if kind == "axis-point":
        return dot(d, d), dot(a, d)
    b = second.link_axis
    if kind == "directions":
        return (dot(a, b),)
    parts = ca.solve(ca.horzcat(a, b, cross(a, b)), d)
    return parts[0], parts[1], parts[2], dot(a, b)


def _reduce_rods(geometry: ChainGeometry) -> ReducedChain | None:
    """Reduce the leg of a body that does not turn: a revolute, a parallelogram, a revolute.

    The ends of the parallelogram's rods, shifted to the axes of the revolutes, are at the distance
    of a rod's length if the shifts cancel.
    """
    chain = geometry.chain
    if [joint.kind for joint in chain] != ["revolute", "parallelogram", "revolute"]:
        return None
    for sample in geometry.frames:
        (_, up), (rod_1, rod_2), (down, _) = sample
        apart = rod_1[:3, :3].T @ (rod_1[:3, 3] - up[:3, 3])
        apart += rod_2[:3, :3].T @ (down[:3, 3] - rod_2[:3, 3])
        if (
            np.linalg.norm(np.cross(rod_1[:3, :3].T @ up[:3, 2], apart))
            > geometry.tolerance * geometry.size
        ):
            return None
    back = tuple(joint.reverse() for joint in reversed(chain))
    before, after = chain_end(chain, 0, 1), chain_end(back, 0, 1)
    rod = chain[1]
    shift = rod.frame_1.R.T @ (rod.frame_1.p - chain[0].frame_2.p)
    shift = shift + rod.frame_2.R.T @ (chain[2].frame_1.p - rod.frame_2.p)
    axis = rod.frame_1.R.T @ chain[0].frame_2.R[:, 2]
    placed = PlacedJoint.after(rod, before.link)
    moved = replace(
        before,
        element=(*before.element, placed),
        link=placed.link,
        point=before.point + before.axis * dot(axis, shift),
    )
    return ReducedChain("points", moved, after, (rod.size**2,))
