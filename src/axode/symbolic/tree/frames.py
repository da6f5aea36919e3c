r"""Link frames: where the recursions keep their vectors (K).

Users put body frames where they like. The recursions are cheapest when a revolute axis is the
link's z axis, when x lies along the common normal to the next axis, when sliding links do not turn
at all and when rigidly joined bodies are one link. None of this is visible outside: a body's pose
in its link frame is kept, and every public quantity is given in the user's frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.joints import (
    AbstractJoint,
    Fixed,
    Floating,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import Scalar, numeric
from axode.mechanism.values.geometry import UNIT_ROUNDING, Vector, rotation_matrix
from axode.symbolic.algebra.formula_symbols import symbolic_value
from axode.symbolic.algebra.rounding import place, snap_rotation
from axode.symbolic.algebra.spatial import SX, is_constant, vector

Values = dict[str, SX]
ROOT = -1  # the ground's link index
FROM_BELOW = -0.5  # z of axes that frames are turned to from -z
REACH = 10.0  # distances between two joints that a link's frame may stand away from them


@dataclass(frozen=True)
class Pose:
    """Orientation and position of one frame in another."""

    R: SX
    p: SX

    @classmethod
    def identity(cls) -> Pose:
        """No turn, no shift."""
        return cls(SX.eye(3), SX.zeros(3))

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(snap_rotation(self.R @ other.R), self.point(other.p))

    def inverse(self) -> Pose:
        """The first frame in the second."""
        return Pose(self.R.T, place(-self.R.T, self.p, SX.zeros(3)))

    def point(self, x: SX) -> SX:
        """A point given in the inner frame, in the outer."""
        return place(self.R, x, self.p)


@dataclass(frozen=True)
class Frame:
    """One link of the internal tree: the joint that carries it and where its frame stands.

    `base` is the constant pose of the joint's frame (z along its axis) in the parent link's frame;
    the moving part turns by `angle_offset` plus the coordinate and slides along z (or `axis` for a
    link that only slides, whose frame never turns).
    """

    connection: Connection
    joint: AbstractJoint  # Revolute, Prismatic, Screw, Cylindrical, Spherical, Planar, Floating
    parent: int
    first_coordinate: int  # offset within the connection's coordinates and speeds
    base: Pose
    angle_offset: float = 0.0
    slide_offset: float = 0.0
    # of a sliding link, in its parent's axes
    axis: SX = field(default_factory=lambda: SX([0.0, 0.0, 1.0]))


@dataclass(frozen=True)
class Frames:
    """All links, and the link and pose of every body in it."""

    links: tuple[Frame, ...]
    body_link: dict[str, int]
    body_pose: dict[str, Pose]  # the user's body frame in the link's frame


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
        n = np.array(ca.DM(x)).ravel()
        return snap_rotation(SX(n / np.linalg.norm(n)))
    length = math.hypot(*(numeric(entry) for entry in v))
    return x if abs(length - 1) <= UNIT_ROUNDING else x / ca.norm_2(x)


def placement(at: Vector, rotation: object, values: Values) -> Pose:
    """Pose from a position and any form of rotation."""
    rows = rotation_matrix(rotation)  # type: ignore[arg-type]
    R = ca.vertcat(*[symbolic_vector(row, values).T for row in rows])
    return Pose(snap_rotation(R), symbolic_vector(at, values))


def align(axis: SX) -> SX:
    """A rotation matrix whose z column is the axis: the shortest turn from z.  (K1)"""
    if is_constant(axis):
        a = np.array(ca.DM(axis)).ravel()
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
    way = SX(1) if z.is_zero() else ca.if_else(z < FROM_BELOW, -1, 1)
    turn = way * ca.skew(ca.vertcat(-y, x, 0))
    return (SX.eye(3) + turn + turn @ turn / (1 + way * z)) @ ca.diag(ca.vertcat(1, way, way))


def build_frames(mechanism: Mechanism, values: Values) -> Frames:
    """Choose a frame for every link of a mechanism's tree."""
    links: list[Frame] = []
    body_link: dict[str, int] = {GROUND.name: ROOT}
    body_pose: dict[str, Pose] = {GROUND.name: Pose.identity()}
    for connection in tree_order(mechanism):
        parent = body_link[connection.parent]
        at = placement(connection.at, connection.rotation, values)
        in_child = placement(connection.child_at, connection.child_rotation, values)
        base = body_pose[connection.parent] @ at  # joint's frame in the parent link's
        for first, joint, turn in _elementary(connection.joint, values):
            base = Pose(snap_rotation(base.R @ turn), base.p)
            if isinstance(joint, Fixed):
                continue
            links.append(_link(connection, joint, parent, first, base))
            parent = len(links) - 1
            base = _after(joint, base)
        body_link[connection.child] = parent
        body_pose[connection.child] = base @ in_child.inverse()
    return _adjusted(links, body_link, body_pose)


def _link(
    connection: Connection, joint: AbstractJoint, parent: int, first: int, base: Pose
) -> Frame:
    if isinstance(joint, Prismatic):
        # A sliding link keeps its parent's axes and, at zero, its parent's origin.
        axis = base.R[:, 2]
        return Frame(connection, joint, parent, first, Pose.identity(), axis=axis)
    return Frame(connection, joint, parent, first, base)


def _after(joint: AbstractJoint, base: Pose) -> Pose:
    """The joint's outer frame at zero coordinates, as its new link sees it."""
    return base if isinstance(joint, Prismatic) else Pose.identity()


def _elementary(joint: AbstractJoint, values: Values) -> list[tuple[int, AbstractJoint, SX]]:
    """A joint as moves whose directions are constant in their own link: (offset, move, turn).

    Each entry's turn takes the frame before it to one whose z is the move's axis; a closing Fixed
    entry turns back, so that the user's joint frame is what is left.
    """
    if isinstance(joint, (Spherical, Floating, Fixed)):
        return [(0, joint, SX.eye(3))]
    first = align(unit_vector(joint.axis, values))  # type: ignore[attr-defined]
    if isinstance(joint, Universal):
        second = align(unit_vector(joint.second, values))
        return [(0, Revolute(), first), (1, Revolute(), first.T @ second), (2, Fixed(), second.T)]
    return [(0, joint, first), (1, Fixed(), first.T)]


def _adjusted(links: list[Frame], body_link: dict[str, int], body_pose: dict[str, Pose]) -> Frames:
    """Turn and slide the frames of revolute links towards the next axis, as Denavit and Hartenberg
    do, wherever geometry is numeric.

    Turning a revolute link's frame about its own axis only shifts its angle; sliding it along the
    axis changes nothing else. Both are free.
    """
    shift: list[Pose] = [Pose.identity() for _ in links]  # new frame in the old one
    chosen = {link.parent: i for i, link in reversed(list(enumerate(links)))}
    adjusted: list[Frame] = []
    for i, link in enumerate(links):
        parent_shift = shift[link.parent] if link.parent != ROOT else Pose.identity()
        if isinstance(link.joint, Prismatic):
            # its frame follows the parent's wherever that went
            shift[i] = parent_shift
            adjusted.append(replace(link, axis=snap_rotation(parent_shift.R.T @ link.axis)))
            continue
        base = parent_shift.inverse() @ link.base
        angle = slide = 0.0
        if isinstance(link.joint, Revolute) and i in chosen:
            angle, slide = _towards(links[chosen[i]])
            shift[i] = Pose(_turn_z(angle), SX([0.0, 0.0, slide]))
        adjusted.append(replace(link, base=base, angle_offset=angle, slide_offset=slide))
    poses = {
        body: shift[link].inverse() @ body_pose[body] if link != ROOT else body_pose[body]
        for body, link in body_link.items()
    }
    return Frames(tuple(adjusted), body_link, poses)


def _towards(child: Frame) -> tuple[float, float]:
    """Turn about and slide along z that put x along the common normal to the child's axis.  (K2)

    Axes that are nearly parallel meet their common normal far away; there, inertia about the
    frame's origin would drown in rounding. The origin then stays level with the child's.
    """
    if not isinstance(child.joint, Revolute) or not is_constant(child.base.R):
        return 0.0, 0.0
    z = np.array(ca.DM(child.base.R[:, 2])).ravel()
    p = np.array(ca.DM(child.base.p)).ravel() if is_constant(child.base.p) else None
    sine = math.hypot(z[0], z[1])
    if sine == 0.0:  # parallel axes: x towards the other axis
        return (0.0, 0.0) if p is None else (math.atan2(p[1], p[0]), float(p[2]))
    angle = math.atan2(z[0], -z[1])  # x along z cross the other axis
    if p is None:
        return angle, 0.0
    # foot of the common normal: p + s z_child - d e_z has no part along e_z, and none along
    # z_child less its part along e_z
    level = float(p[2])
    away = (p[0] * z[0] + p[1] * z[1]) * z[2] / sine**2
    return angle, level - away if abs(away) <= REACH * np.linalg.norm(p) else level


def _turn_z(angle: float) -> SX:
    c, s = math.cos(angle), math.sin(angle)
    return snap_rotation(SX(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])))
