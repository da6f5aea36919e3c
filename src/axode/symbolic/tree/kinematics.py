r"""The tree in motion: coordinates, speeds, transforms, twists and accelerations (K).

A link carries a joint whose directions S are constant in the link's own frame, so that the relative
velocity is S v and no derivative of S is ever needed; a universal joint is two links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from axode.mechanism.elements.joints import (
    AbstractJoint,
    Cylindrical,
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
)
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import tree_order
from axode.symbolic.algebra.spatial import (
    SX,
    Rotation,
    Turn,
    cross,
    is_constant,
    quaternion_matrix,
    quaternion_rate,
    skew,
)
from axode.symbolic.tree.frames import ROOT, Frame, Pose, Values, build_frames, symbolic_scalar

ANGLE_ROUNDING = 1e-14  # [rad]: from a multiple of a right angle that is meant


@dataclass(frozen=True)
class Link:
    """A link of the tree, its joint's motion written out in symbols."""

    parent: int
    joint: AbstractJoint
    rotation: Rotation  # link's components -> parent's components
    p: SX  # the link's origin in the parent's frame
    S_w: SX  # 3 x k: angular directions of the joint, in the link's axes
    S_v: SX  # 3 x k: linear directions
    speeds: range  # which entries of v

    @property
    def k(self) -> int:
        """How many speeds the joint has."""
        return len(self.speeds)

    @property
    def turns_only(self) -> bool:
        """Whether it is a revolute about its own z."""
        return isinstance(self.joint, Revolute)


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
    """The mechanism's tree with its symbols; chords are elsewhere."""

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
        r"""Angular velocity and velocity of the origin of every link, in its axes.  (K4)"""
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
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
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
        k = frame.joint.dof
        own = q[q0 : q0 + len(frame.joint.coordinate_names)]
        rotation, p = _transform(frame, own, values)
        S_w, S_v = _directions(frame, values)
        links.append(Link(frame.parent, frame.joint, rotation, p, S_w, S_v, range(v0, v0 + k)))
        N[q0 : q0 + own.shape[0], v0 : v0 + k] = _rate_matrix(frame.joint, own)
        if isinstance(frame.joint, (Spherical, Floating)):
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


def _transform(frame: Frame, q: SX, values: Values) -> tuple[Rotation, SX]:
    """Rotation and origin of a link in its parent, at coordinates q."""
    joint, base = frame.joint, frame.base
    if isinstance(joint, Prismatic):
        return Rotation(), frame.axis * q
    if isinstance(joint, (Spherical, Floating)):
        turn = quaternion_matrix(*(q[i] for i in range(4)))
        shift = q[4:7] if isinstance(joint, Floating) else SX.zeros(3)
        rotation = Rotation.of(*_constant_turns(base.R), Turn("matrix", turn))
        return rotation, base.p + base.R @ shift
    angle = q[2] if isinstance(joint, Planar) else q[0]
    shift = SX.zeros(3)
    if isinstance(joint, Planar):
        shift = ca.vertcat(q[0], q[1], 0)
    elif isinstance(joint, Cylindrical):
        shift = ca.vertcat(0, 0, q[1])
    elif isinstance(joint, Screw):
        shift = ca.vertcat(0, 0, symbolic_scalar(joint.pitch, values) * q[0])
    elif isinstance(joint, Revolute):
        shift = SX([0.0, 0.0, frame.slide_offset])
    p = base.point(shift)
    turns = _constant_turns(base.R)
    offset = frame.angle_offset
    if turns and turns[-1].axis == "z":  # a constant turn about the joint's own axis joins it
        offset += float(np.arctan2(float(turns[-1].matrix[1, 0]), float(turns[-1].matrix[0, 0])))
        turns = turns[:-1]
    return Rotation.of(*turns, Turn.about("z", angle + _principal(offset))), p


def _constant_turns(R: SX) -> list[Turn]:
    """A constant rotation as turns about z, x and z (Euler's angles).  (K6)

    Each turn is found after the ones before it are taken off. Read off the matrix one by one, the
    first and the last would each be wrong by rounding over the sine of the middle one.
    """
    if not is_constant(R):
        return [Turn("matrix", R)]
    M = np.array(ca.DM(R))
    sine = np.hypot(M[0, 2], M[1, 2])
    first = _right_angle(np.arctan2(M[0, 2], -M[1, 2]), ANGLE_ROUNDING / max(sine, ANGLE_ROUNDING))
    if abs(first) == np.pi or sine == 0.0:  # x may turn either way: no turn, not half a one
        first = 0.0
    about_z = Turn.about("z", first)
    M = np.array(ca.DM(about_z.matrix)).T @ M
    about_x = Turn.about("x", np.arctan2(-M[1, 2], M[2, 2]))
    M = np.array(ca.DM(about_x.matrix)).T @ M
    turns = [about_z, about_x, Turn.about("z", np.arctan2(M[1, 0], M[0, 0]))]
    return [turn for turn in turns if not turn.is_identity]


def _principal(angle: float) -> float:
    """An angle within half a turn of zero, rounding removed."""
    return _right_angle(float(np.remainder(angle + np.pi, 2 * np.pi) - np.pi), ANGLE_ROUNDING)


def _right_angle(angle: float, within: float) -> float:
    """The multiple of a right angle nearest to an angle within half a turn, if it is this near."""
    nearest = round(angle / (np.pi / 2)) * (np.pi / 2)
    return nearest if abs(angle - nearest) < within else float(angle)


def _directions(frame: Frame, values: Values) -> tuple[SX, SX]:
    """S of a link's joint in the link's own axes."""
    joint, k = frame.joint, frame.joint.dof
    S_w, S_v = SX.zeros(3, k), SX.zeros(3, k)
    match joint:
        case Prismatic():
            S_v[:, 0] = frame.axis
        case Revolute() | Screw() | Cylindrical():
            S_w[2, 0] = 1
            if isinstance(joint, Screw):
                S_v[2, 0] = symbolic_scalar(joint.pitch, values)
            elif isinstance(joint, Cylindrical):
                S_v[2, 1] = 1
        case Planar():
            S_v[0, 0] = S_v[1, 1] = S_w[2, 2] = 1
        case Spherical() | Floating():
            S_w[:, 0:3] = SX.eye(3)
            if isinstance(joint, Floating):
                S_v[:, 3:6] = SX.eye(3)
    return S_w, S_v


def _rate_matrix(joint: AbstractJoint, q: SX) -> SX:
    """N of one joint: rates of its coordinates from its speeds."""
    if isinstance(joint, Planar):
        return Turn.about("z", q[2]).matrix
    if isinstance(joint, Spherical):
        return quaternion_rate(*(q[i] for i in range(4)))
    if isinstance(joint, Floating):
        quaternion = [q[i] for i in range(4)]
        return ca.diagcat(quaternion_rate(*quaternion), quaternion_matrix(*quaternion))
    return SX.eye(joint.dof)
