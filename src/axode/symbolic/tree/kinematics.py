"""The tree in motion: link frames, coordinates, speeds, transforms and accelerations (K).

A link carries a joint whose directions S are constant in the link's own frame, so that the relative
velocity is S v and no derivative of S is ever needed; a universal joint is two links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import casadi as ca
import numpy as np

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import tree_order
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    Pose,
    Rotation,
    Values,
    constant_values,
    cross,
    is_constant,
    placement,
    skew,
    snap_rotation,
    symbolic_scalar,
    times,
)
from axode.symbolic.joints import symbolic_joint
from axode.symbolic.joints.base import SymbolicJoint

REACH = 10.0  # distances between two joints that a link's frame may stand away from them


@dataclass(frozen=True)
class Frame:
    """One link of the internal tree: the joint that carries it and where its frame stands.

    `base` is the constant pose of the joint's frame (z along its axis) in the parent link's frame;
    the moving part turns by `angle_offset` plus the coordinate and slides along z (or `axis` for a
    link that only slides, whose frame never turns).
    """

    connection: Connection
    joint: SymbolicJoint
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


def build_frames(mechanism: Mechanism, values: Values) -> Frames:
    """Choose a frame for every link of a mechanism's tree.

    Users put body frames where they like. The recursions are cheapest when a revolute axis is the
    link's z axis, when x lies along the common normal to the next axis, when sliding links do not
    turn at all and when rigidly joined bodies are one link. None of this is visible outside: a
    body's pose in its link frame is kept, and every public quantity is given in the user's frames.
    """
    links: list[Frame] = []
    body_link: dict[str, int] = {GROUND.name: ROOT}
    body_pose: dict[str, Pose] = {GROUND.name: Pose.identity()}
    for connection in tree_order(mechanism):
        parent = body_link[connection.parent]
        at = placement(connection.at, connection.rotation, values)
        in_child = placement(connection.child_at, connection.child_rotation, values)
        base = body_pose[connection.parent] @ at  # joint's frame in the parent link's
        moves, turned_back = symbolic_joint(connection.joint, values).moves()
        for move in moves:
            base = Pose(snap_rotation(base.R @ move.turn), base.p)
            frame = Frame(connection, move.joint, parent, move.first, base)
            if move.joint.slides_only:  # its parent's axes and, at zero, its parent's origin
                frame = replace(frame, base=Pose.identity(), axis=base.R[:, 2])
            else:
                base = Pose.identity()
            links.append(frame)
            parent = len(links) - 1
        base = Pose(snap_rotation(base.R @ turned_back), base.p)
        body_link[connection.child] = parent
        body_pose[connection.child] = base @ in_child.inverse()
    return _adjusted(links, body_link, body_pose)


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
        if link.joint.slides_only:
            # its frame follows the parent's wherever that went
            shift[i] = parent_shift
            adjusted.append(replace(link, axis=snap_rotation(parent_shift.R.T @ link.axis)))
            continue
        base = parent_shift.inverse() @ link.base
        angle = slide = 0.0
        if link.joint.turns_only and i in chosen:
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
    if not child.joint.turns_only or not is_constant(child.base.R):
        return 0.0, 0.0
    z = constant_values(child.base.R[:, 2]).ravel()
    p = constant_values(child.base.p).ravel() if is_constant(child.base.p) else None
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


@dataclass(frozen=True)
class Link:
    """A link of the tree, its joint's motion written out in symbols."""

    parent: int
    joint: SymbolicJoint
    rotation: Rotation  # link's components -> parent's components
    p: SX  # the link's origin in the parent's frame
    S_w: SX  # 3 x k: angular directions of the joint, in the link's axes
    S_v: SX  # 3 x k: linear directions
    speeds: range  # which entries of v

    @property
    def k(self) -> int:
        """How many speeds the joint has."""
        return len(self.speeds)

    @cached_property
    def _axes(self) -> list[list[tuple[int, SX]]] | None:
        """Entries of each column of S that are not zero, where all are numbers."""
        S = ca.vertcat(self.S_w, self.S_v)
        if not is_constant(S):
            return None
        return [[(i, S[i, c]) for i in range(6) if not S[i, c].is_zero()] for c in range(self.k)]

    def power(self, n: SX, f: SX) -> list[SX]:
        """Power of a wrench on the link for unit speeds of its joint."""
        if self._axes is None:
            return list(ca.vertsplit(self.S_w.T @ n + self.S_v.T @ f))
        found = []
        for axis in self._axes:
            parts = [x * n[i] if i < 3 else x * f[i - 3] for i, x in axis]
            found.append(sum(parts[1:], parts[0]) if parts else SX(0))
        return found

    @property
    def turns_only(self) -> bool:
        """Return whether it is a revolute about its own z."""
        return self.joint.turns_only

    @property
    def rotation_at_rest(self) -> Rotation:
        """The constant part of `rotation` that comes before the turn of a revolute joint."""
        return Rotation(self.rotation.turns[:-1])


@dataclass(frozen=True)
class Motion:
    """Velocity and acceleration of every link's origin, each in its own axes.

    `U` is the matrix :math:`\\hat{\\dot\\omega} + \\hat\\omega \\hat\\omega` that gives the
    acceleration of any point: :math:`a + U r` (K5).
    """

    w: list[SX]
    w_dot: list[SX]
    a: list[SX]
    U: list[SX]


@dataclass(frozen=True)
class Tree:
    """The mechanism's tree with its symbols, without loop closures and contacts."""

    mechanism: Mechanism
    links: tuple[Link, ...]
    q: SX
    v: SX
    t: SX
    parameters: SX
    values: Values  # parameter (and "t") symbols by name
    coordinate_names: tuple[str, ...]
    speed_names: tuple[str, ...]
    body_link: dict[str, int]
    body_pose: dict[str, Pose]
    N: SX  # q_dot = N v
    gravity: SX
    quaternions: tuple[tuple[int, int, int, int], ...]
    _poses: dict[int, Pose] = field(default_factory=dict)

    @property
    def q_dot(self) -> SX:
        r"""\dot q = N(q) v.  (K3)"""
        return self.N @ self.v

    def time_derivative(self, x: SX, v: SX | None = None) -> SX:
        """Rate of an expression of q and t along the motion, speeds held, by differentiation."""
        q_dot = self.N @ (self.v if v is None else v)
        return ca.jtimes(x, self.q, q_dot) + ca.jtimes(x, self.t, SX(1))

    def pose(self, link: int) -> Pose:
        """A link's frame in the world."""
        if link == ROOT:
            return Pose.identity()
        if link not in self._poses:
            own, outer = self.links[link], self.pose(self.links[link].parent)
            R = own.rotation.outward(SX.eye(3))
            self._poses[link] = Pose(outer.R @ R, outer.R @ own.p + outer.p)
        return self._poses[link]

    def body_world_pose(self, body: str) -> Pose:
        """A body's own frame in the world."""
        return self.pose(self.body_link[body]) @ self.body_pose[body]

    def path(self, link: int) -> Iterator[int]:
        """A link and its ancestors, up to but without the ground."""
        while link != ROOT:
            yield link
            link = self.links[link].parent

    def common_ancestor(self, a: int, b: int) -> int:
        """The last link on both paths to the ground."""
        on_path = set(self.path(a)) | {ROOT}
        while b not in on_path:
            b = self.links[b].parent
        return b

    def path_between(self, ancestor: int, link: int) -> list[int]:
        """The links after an ancestor, down to a link."""
        found = []
        while link != ancestor:
            found.append(link)
            link = self.links[link].parent
        return found[::-1]

    def carry(self, x: SX, source: int, target: int) -> SX:
        """A direction given in one link's axes, in another's."""
        meet = self.common_ancestor(source, target)
        while source != meet:
            x = self.links[source].rotation.outward(x)
            source = self.links[source].parent
        for link in self.path_between(meet, target):
            x = self.links[link].rotation.inward(x)
        return x

    def carry_point(self, x: SX, source: int, target: int) -> SX:
        """A point given in one link's frame, in another's."""
        meet = self.common_ancestor(source, target)
        while source != meet:
            x = self.links[source].rotation.outward(x) + self.links[source].p
            source = self.links[source].parent
        for link in self.path_between(meet, target):
            x = self.links[link].rotation.inward(x - self.links[link].p)
        return x

    def velocities(self, v: SX) -> tuple[list[SX], list[SX]]:
        """Angular velocity and velocity of the origin of every link, in its axes.  (K4)"""
        w: list[SX] = []
        u: list[SX] = []
        for link in self.links:
            w_p, u_p = (
                (w[link.parent], u[link.parent])
                if link.parent != ROOT
                else (SX.zeros(3), SX.zeros(3))
            )
            own = v[link.speeds.start : link.speeds.stop]
            w.append(link.rotation.inward(w_p) + link.S_w @ own)
            u.append(link.rotation.inward(u_p + cross(w_p, link.p)) + link.S_v @ own)
        return w, u

    def world_velocities(self, v: SX) -> tuple[list[SX], list[SX]]:
        """Angular velocity and velocity of the origin of every link, in world axes."""
        w: list[SX] = []
        u: list[SX] = []
        for i, link in enumerate(self.links):
            own, pose, outer = v[link.speeds.start : link.speeds.stop], self.pose(i), link.parent
            w_i, u_i = pose.R @ (link.S_w @ own), pose.R @ (link.S_v @ own)
            if outer != ROOT:
                w_i += w[outer]
                u_i += u[outer] + cross(w[outer], pose.p - self.pose(outer).p)
            w.append(w_i)
            u.append(u_i)
        return w, u

    def motion(self, v: SX, v_dot: SX | None, gravity: bool = True) -> Motion:
        r"""Accelerations of all links, outward from the ground; gravity as an upward start.

        .. math:: a = R^T (a_p + U_p p) + 2 (R^T \omega_p) \times S_v v + S_w v \times S_v v
                  + S_v \dot v                                                    \tag{K5}
        """
        w: list[SX] = []
        w_dot: list[SX] = []
        a: list[SX] = []
        U: list[SX] = []
        upward = -self.gravity if gravity else SX.zeros(3)
        ground = (SX.zeros(3), SX.zeros(3), upward, SX.zeros(3, 3))
        for link in self.links:
            p = link.parent
            w_p, w_dot_p, a_p, U_p = ground if p == ROOT else (w[p], w_dot[p], a[p], U[p])
            own = v[link.speeds.start : link.speeds.stop]
            w_rel, u_rel = link.S_w @ own, link.S_v @ own
            w_in = link.rotation.inward(w_p)
            w_dot_i = link.rotation.inward(w_dot_p) + cross(w_in, w_rel)
            a_i = link.rotation.inward(a_p + U_p @ link.p)
            a_i += cross(2 * w_in + w_rel, u_rel)  # (K5)
            if v_dot is not None:
                own_dot = v_dot[link.speeds.start : link.speeds.stop]
                w_dot_i += link.S_w @ own_dot
                a_i += link.S_v @ own_dot
            w.append(w_in + w_rel)
            w_dot.append(w_dot_i)
            a.append(a_i)
            U.append(acceleration_matrix(w[-1], w_dot_i))
        return Motion(w, w_dot, a, U)


def acceleration_matrix(w: SX, w_dot: SX) -> SX:
    r"""U = \hat{\dot\omega} + \hat\omega \hat\omega, each product formed once."""
    x, y, z = w[0], w[1], w[2]
    pairs = (x, x), (y, y), (z, z), (x, y), (x, z), (y, z)
    xx, yy, zz, xy, xz, yz = (times(a, b) for a, b in pairs)
    return skew(w_dot) + ca.vertcat(
        ca.horzcat(-(yy + zz), xy, xz),
        ca.horzcat(xy, -(xx + zz), yz),
        ca.horzcat(xz, yz, -(xx + yy)),
    )


def build_tree(mechanism: Mechanism, values: Values, t: SX, parameters: SX) -> Tree:
    """Symbols and transforms for a mechanism's tree."""
    frames = build_frames(mechanism, values)
    q_names: list[str] = []
    v_names: list[str] = []
    start: dict[str, tuple[int, int]] = {}
    for connection in tree_order(mechanism):
        start[connection.name] = (len(q_names), len(v_names))
        q_names += connection.coordinates
        v_names += connection.speeds
    q = ca.vertcat(*[SX.sym(name) for name in q_names]) if q_names else SX.zeros(0)
    v = ca.vertcat(*[SX.sym(name) for name in v_names]) if v_names else SX.zeros(0)
    N = SX.zeros(len(q_names), len(v_names))
    links, quaternions = [], []
    for frame in frames.links:
        q0, v0 = (s + frame.first_coordinate for s in start[frame.connection.name])
        joint = frame.joint
        k = joint.description.dof
        own = q[q0 : q0 + len(joint.description.coordinate_names)]
        rotation, p = joint.transform(frame, own)
        S_w, S_v = joint.motion_axes(frame)
        links.append(Link(frame.parent, joint, rotation, p, S_w, S_v, range(v0, v0 + k)))
        N[q0 : q0 + own.shape[0], v0 : v0 + k] = joint.rate_matrix(own)
        if joint.description.has_quaternion:
            quaternions.append((q0, q0 + 1, q0 + 2, q0 + 3))
    gravity = ca.vertcat(*[symbolic_scalar(g, values) for g in mechanism.gravity])
    return Tree(
        mechanism,
        tuple(links),
        q,
        v,
        t,
        parameters,
        values,
        tuple(q_names),
        tuple(v_names),
        frames.body_link,
        frames.body_pose,
        N,
        gravity,
        tuple(quaternions),
    )
