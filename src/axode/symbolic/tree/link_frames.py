r"""Link frames: where the recursions keep their vectors (K).

Users put body frames where they like. The recursions are cheapest when a revolute axis is the
link's z axis, when x lies along the common normal to the next axis, when sliding links do not turn
at all and when rigidly joined bodies are one link. None of this is visible outside: a body's pose
in its link frame is kept, and every public quantity is given in the user's frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import tree_order
from axode.symbolic.algebra.frames import ROOT, Pose, Values, placement
from axode.symbolic.algebra.rounding import snap_rotation
from axode.symbolic.algebra.spatial import SX, constant_values, is_constant
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
    """Choose a frame for every link of a mechanism's tree."""
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
