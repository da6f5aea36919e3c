"""Chains of passive joints with one link eliminated: a few equations, and angles from their roots.

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

Once nodes and unknown joints are known, the eliminated link is placed by the element with fewer
freedoms, whose turn takes the other element's point to where it is; what is left is the turn of the
other element. Two axes that meet can do it in two ways, and so can three: these are the branches.
Rotations have the batch along their first axis; directions have length one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.kinematics.motion_graph import ElementaryJoint, flat_poses, homogeneous
from axode.numerics.rotations import about_axis, cross_matrix, from_quaternions, to_quaternions
from axode.numerics.tolerances import NEGLIGIBLE, ROUNDING
from axode.symbolic.algebra.spatial import SX, Pose, cross, dot

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
        return sum(item.joint.freedoms for item in self.element)


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
    simple = [joint.kind in ("revolute", "prismatic") for joint in chain]
    choices = [  # after which the joints that stay unknowns have one freedom each
        choice
        for choice in _choices(geometry, space)
        if all(simple[: choice.start] + simple[choice.start + choice.first + choice.second :])
    ]
    if not choices:
        return None
    best = min(choices, key=lambda choice: choice.order)
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


def _choices(geometry: ChainGeometry, space: Space) -> Iterator[_Choice]:
    """Links that can be eliminated, and points that meet."""
    total = sum(joint.freedoms for joint in geometry.chain)
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


Mask = npt.NDArray[np.bool_]
Values = dict[int, Array]  # by the place of the joint in the side: tree, then element


def placed(rotation: Array, point: Array) -> Array:
    """Homogeneous matrices of rotations about points: (n, 4, 4)."""
    made = np.zeros((len(rotation), 4, 4))
    made[:, :3, :3], made[:, 3, 3] = rotation, 1.0
    made[:, :3, 3] = point - apply(rotation, point)
    return made


def shifted(shift: Array) -> Array:
    """Homogeneous matrices of shifts: (n, 4, 4)."""
    made = np.tile(np.eye(4), (len(shift), 1, 1))
    made[:, :3, 3] = shift
    return made


def inverse_pose(T: Array) -> Array:
    """Inverses of homogeneous matrices: (n, 4, 4)."""
    made = np.zeros_like(T)
    made[:, :3, :3], made[:, 3, 3] = T[:, :3, :3].swapaxes(1, 2), 1.0
    made[:, :3, 3] = -apply(made[:, :3, :3], T[:, :3, 3])
    return made


def apply(matrices: Array, vectors: Array) -> Array:
    """Products of matrices, 3 x 3 or homogeneous, with vectors or points: (n, 3)."""
    made = np.einsum("nij,nj->ni", matrices[:, :3, :3], vectors)
    return made + matrices[:, :3, 3] if matrices.shape[1] == 4 else made


def dots(a: Array, b: Array) -> Array:
    """Products of vectors: (n,)."""
    return np.einsum("ni,ni->n", a, b)


def angle_about(axis: Array, start: Array, end: Array) -> Array:
    """Angles by which vectors turn about axes, as far as they are across them: (n,)."""
    u = start - axis * dots(axis, start)[:, None]
    v = end - axis * dots(axis, end)[:, None]
    return np.arctan2(dots(axis, np.cross(u, v)), dots(u, v))


def angle_of(rotation: Array, axis: Array) -> Array:
    """Angles of rotations about given axes: (n,)."""
    q = to_quaternions(rotation)
    return 2 * np.arctan2(dots(q[:, 1:], axis), q[:, 0])


def two_angles(first: Array, second: Array, start: Array, end: Array) -> list[tuple[Array, ...]]:
    """Angles about two axes whose turns, the second one first, take vectors to others.

    Returns:
        Two branches of angle about the first axis, angle about the second, and the square of what
        is missing, where no angles do it: positive there, zero elsewhere.
    """
    c, a, b = dots(first, second), dots(first, end), dots(second, start)
    sine = 1 - c * c
    alpha, beta = (a - c * b) / sine, (b - c * a) / sine
    left = (dots(start, start) - alpha**2 - beta**2 - 2 * alpha * beta * c) / sine
    flat = alpha[:, None] * first + beta[:, None] * second
    made: list[tuple[Array, ...]] = []
    for sign in (1.0, -1.0):
        gamma = sign * np.sqrt(np.maximum(left, 0.0))
        middle = flat + gamma[:, None] * np.cross(first, second)
        angles = angle_about(first, middle, end), angle_about(second, start, middle)
        made.append((*angles, np.maximum(-left, 0.0)))
    return made


def shortest_turn(start: Array, end: Array) -> Array:
    """Rotations that take directions to others by the shortest way: (n, 3, 3)."""
    c = dots(start, end)
    axis = np.cross(start, end)
    K = cross_matrix(axis)
    factor = 1.0 / np.maximum(1.0 + c, ROUNDING)
    made = np.eye(3) + K + factor[:, None, None] * (K @ K)
    opposite = c < -1 + NEGLIGIBLE
    if opposite.any():
        across = np.eye(3)[np.argmin(np.abs(start[opposite]), axis=1)]
        axis = np.cross(start[opposite], across)
        axis /= np.linalg.norm(axis, axis=1)[:, None]
        made[opposite] = about_axis(axis, np.full(len(axis), np.pi))
    return made


@dataclass(frozen=True, eq=False)
class SideNumbers:
    """Numbers of one side of a chain, (n, ...) each.

    Attributes:
        joints: Those of the tree, then those of the element.
        tree: How many are of the tree.
        frames: Their frames in the axes of the node at zero, homogeneous.
        links: Poses of the links after them.
        sizes: Lengths of parallelograms.
        point: Point of the element.
        link: Pose of the eliminated link.
        link_point: Point of the element in the link.
    """

    joints: tuple[ElementaryJoint, ...]
    tree: int
    frames: tuple[Array, ...]
    links: tuple[Array, ...]
    sizes: tuple[Array, ...]
    point: Array
    link: Array
    link_point: Array

    @property
    def form(self) -> tuple[object, ...]:
        """What decides how values are computed: kinds of joints, and which stay unknowns."""
        return (self.tree, *((joint.kind, joint.inverted) for joint in self.joints))

    @classmethod
    def joined(cls, sides: Sequence[SideNumbers]) -> SideNumbers:
        """Join sides of one form along their first axis; names are those of the first."""

        def together(name: str) -> Any:
            given = [getattr(side, name) for side in sides]
            if isinstance(given[0], tuple):
                return tuple(map(np.concatenate, zip(*given, strict=True)))
            return np.concatenate(given)

        arrays = ("frames", "links", "sizes", "point", "link", "link_point")
        return cls(sides[0].joints, sides[0].tree, *map(together, arrays))

    def axis(self, k: int) -> Array:
        """Direction of a joint's axis."""
        return self.frames[k][:, :3, 2]

    def outward(self, values: Mapping[int, Array]) -> Array:
        """Motion of the last link of the tree."""
        return self._motions(values, self.tree)

    def _motions(self, values: Mapping[int, Array], count: int) -> Array:
        made = np.tile(np.eye(4), (len(self.point), 1, 1))
        for k in range(count):
            made = made @ self.motion(k, values[k])
        return made

    def link_poses(self, node: Array, values: Mapping[int, Array]) -> dict[str, Array]:
        """Poses of the links after all joints, by name, for poses of the node."""
        return {
            joint.second: node @ self._motions(values, k + 1) @ self.links[k]
            for k, joint in enumerate(self.joints)
        }

    def motion(self, k: int, value: Array) -> Array:
        """Motion of a joint in the axes of the node."""
        if self.joints[k].kind == "prismatic":
            return shifted(self.axis(k) * value[:, None])
        if self.joints[k].kind == "spherical":
            F, R = self.frames[k][:, :3, :3], from_quaternions(value)
            R = R.swapaxes(1, 2) if self.joints[k].inverted else R
            return placed(F @ R @ F.swapaxes(1, 2), self.frames[k][:, :3, 3])
        if self.joints[k].kind == "parallelogram":
            moved = np.stack([np.cos(value) - 1, np.sin(value), np.zeros(len(value))], axis=1)
            return shifted(apply(self.frames[k][:, :3, :3], self.sizes[k][:, None] * moved))
        return placed(about_axis(self.axis(k), value), self.frames[k][:, :3, 3])

    @property
    def element(self) -> range:
        """Places of the element's joints."""
        return range(self.tree, len(self.joints))

    @property
    def freedoms(self) -> int:
        """How many turns the element leaves."""
        return sum(self.joints[k].freedoms for k in self.element)


class ChainNumbers:
    """Numbers of chains as a function of what is held and of the mechanism's parameters."""

    def __init__(self, chains: Sequence[ReducedChain], arguments: Sequence[SX]) -> None:
        self.sides = [side for chain in chains for side in (chain.first, chain.second)]
        entries: list[SX] = []
        for side in self.sides:
            items = side.tree + side.element
            poses = [*(item.frame for item in items), *(item.link for item in items), side.link]
            sizes = [SX(item.joint.size) for item in items]
            entries += [flat_poses(poses), *sizes, side.point, side.link_point]
        made = ca.densify(ca.vertcat(SX(0, 1), *entries))
        self.function = ca.Function("chains", list(arguments), [made])

    def at(self, held: Array, parameters: Array, rows: npt.NDArray[np.intp]) -> list[SideNumbers]:
        """Both sides of every chain, at some rows of what is held and of parameters."""
        table = np.array(self.function(held.T, parameters.T)).T[rows]
        sides = []
        for side in self.sides:
            joints = tuple(item.joint for item in side.tree + side.element)
            n = len(joints)
            ends = np.cumsum([12 * (2 * n + 1), n, 3, 3])
            flat, sizes, point, link_point, table = np.split(table, ends, axis=1)
            frames = tuple(np.moveaxis(homogeneous(flat), 1, 0))
            numbers = frames[:n], frames[n:-1], tuple(sizes.T), point, frames[-1], link_point
            sides.append(SideNumbers(joints, len(side.tree), *numbers))
        return sides


@dataclass(frozen=True, eq=False)
class Branch:
    """One way to place the joints of a chain.

    Attributes:
        first, second: Values of the joints of either side, by their places.
        missing: Square of the length by which a direction cannot be reached, (n,).
    """

    first: Values
    second: Values
    missing: Array

    def split(self, count: int) -> list[Branch]:
        """Divide what was computed together into equal parts."""
        sides = ({k: np.split(v, count) for k, v in s.items()} for s in (self.first, self.second))
        one, two = ([{k: v[i] for k, v in s.items()} for i in range(count)] for s in sides)
        return [Branch(*part) for part in zip(one, two, np.split(self.missing, count), strict=True)]


def joined_values(values: Sequence[Values]) -> Values:
    """Join values of sides of one form along their first axis."""
    return {k: np.concatenate([one[k] for one in values]) for k in values[0]}


def chain_branches(
    first: SideNumbers,
    second: SideNumbers,
    nodes: tuple[Array, Array],
    known: tuple[Values, Values],
    spin: Array | None = None,
) -> list[Branch]:
    """Find all values of the joints of a chain's elements.

    Args:
        first, second: Its two sides.
        nodes: Poses of the two nodes, (n, 4, 4).
        known: Values of the joints of the trees, by their places.
        spin: Turn of the first element that a link between two spherical joints is near to.
    """
    ends = [
        node @ side.outward(v) for node, side, v in zip(nodes, (first, second), known, strict=True)
    ]
    across = inverse_pose(ends[0]) @ ends[1]
    if not second.element:  # they meet in one joint
        turn = across @ second.link @ inverse_pose(first.link)
        return [
            Branch(known[0] | values, known[1], missing)
            for values, missing in _element_values(first, turn)
        ]
    if first.joints[-1].kind == "parallelogram":
        return _rod_branches(first, second, across)
    if first.freedoms > second.freedoms:
        swapped = chain_branches(second, first, nodes[::-1], known[::-1], spin)
        return [Branch(b.second, b.first, b.missing) for b in swapped]
    made = []
    start, end = _directions(first, second, across)
    for values, missing, turn in _point_values(first, start, end, spin):
        rest = inverse_pose(across) @ turn @ first.link @ inverse_pose(second.link)
        for others, more in _element_values(second, rest):
            made.append(Branch(known[0] | values, known[1] | others, missing + more))
    return made


def _directions(first: SideNumbers, second: SideNumbers, across: Array) -> tuple[Array, Array]:
    """Vectors that the first element takes from one to the other.

    They lead to the other element's point, or, between two axes that are not parallel, along the
    other axis: points may coincide.
    """
    if first.freedoms == second.freedoms == 1:
        axis = second.axis(second.tree)
        start = apply(first.link[:, :3, :3] @ second.link[:, :3, :3].swapaxes(1, 2), axis)
        sines = np.linalg.norm(np.cross(first.axis(first.tree), start), axis=1)
        if sines.max(initial=0.0) > LEAST_SINE:
            return start, apply(across[:, :3, :3], axis)
    start = apply(first.link, second.link_point) - first.point
    return start, apply(across, second.point) - first.point


def _point_values(
    side: SideNumbers, start: Array, end: Array, spin: Array | None
) -> list[tuple[Values, Array, Array]]:
    """Values of an element that take a vector to another, and the motion that they make."""
    k = side.tree
    none = np.zeros(len(start))
    if side.freedoms == 1:
        angle = angle_about(side.axis(k), start, end)
        return [({k: angle}, none, side.motion(k, angle))]
    if side.freedoms == 2:
        made = []
        for one, two, missing in two_angles(side.axis(k), side.axis(k + 1), start, end):
            turn = side.motion(k, one) @ side.motion(k + 1, two)
            made.append(({k: one, k + 1: two}, missing, turn))
        return made
    near = np.tile(np.eye(3), (len(start), 1, 1)) if spin is None else spin
    unit = np.einsum("nij,nj->ni", near, start)
    unit = unit / np.linalg.norm(unit, axis=1)[:, None]
    turn = placed(
        shortest_turn(unit, end / np.linalg.norm(end, axis=1)[:, None]) @ near, side.point
    )
    return [(values, missing, turn) for values, missing in _element_values(side, turn)]


def _element_values(side: SideNumbers, turn: Array) -> list[tuple[Values, Array]]:
    """Values of an element's joints that make a given turn, and what is missing."""
    k, R = side.tree, turn[:, :3, :3]
    none = np.zeros(len(R))
    if side.joints[k].kind == "spherical":
        F = side.frames[k][:, :3, :3]
        q = to_quaternions(F.swapaxes(1, 2) @ R @ F)
        if side.joints[k].inverted:
            q[:, 1:] *= -1
        return [({k: q}, none)]
    if side.freedoms == 1:
        return [({k: angle_of(R, side.axis(k))}, none)]
    if side.freedoms == 2:
        one = angle_about(side.axis(k), side.axis(k + 1), apply(R, side.axis(k + 1)))
        rest = about_axis(side.axis(k), -one) @ R
        return [({k: one, k + 1: angle_of(rest, side.axis(k + 1))}, none)]
    made = []
    last = side.axis(k + 2)
    for one, two, missing in two_angles(side.axis(k), side.axis(k + 1), last, apply(R, last)):
        before = about_axis(side.axis(k), one) @ about_axis(side.axis(k + 1), two)
        three = angle_of(before.swapaxes(1, 2) @ R, last)
        made.append(({k: one, k + 1: two, k + 2: three}, missing))
    return made


def _rod_branches(first: SideNumbers, second: SideNumbers, across: Array) -> list[Branch]:
    """Values of a revolute, a parallelogram and a revolute of a body that does not turn."""
    rod = first.frames[1]
    start = first.sizes[1][:, None] * rod[:, :3, 0]
    end = apply(across, second.point) - first.point
    turned = first.link[:, :3, :3] @ second.link[:, :3, :3].swapaxes(1, 2)
    made = []
    for one, two, missing in two_angles(first.axis(0), rod[:, :3, 2], start, end):
        turn = about_axis(first.axis(0), one) @ turned
        angle = angle_of(across[:, :3, :3].swapaxes(1, 2) @ turn, second.axis(0))
        made.append(Branch({0: one, 1: two}, {0: angle}, missing))
    return made


def nearest_branch(branches: Sequence[Branch], cost: Sequence[Array]) -> Branch:
    """Choose the branch of least cost, row by row."""
    chosen = np.argmin(np.stack(cost), axis=0)
    rows = np.arange(len(chosen))

    def pick(values: Sequence[Values]) -> Values:
        return {k: np.stack([v[k] for v in values])[chosen, rows] for k in values[0]}

    missing = np.stack([b.missing for b in branches])[chosen, rows]
    return Branch(pick([b.first for b in branches]), pick([b.second for b in branches]), missing)
