"""Links and elementary joints of a mechanism: what the reduction of its loops starts from.

Every joint of the description becomes elementary ones in series. A universal joint is two
revolutes with a link of its own between them, a cylindrical one a revolute and a prismatic, a
planar one two prismatics and a revolute. A floating joint constrains nothing and is kept apart.

    kind            motion of the second frame in the first, at coordinate q
    revolute        turns by q about z
    prismatic       slides by q along z
    screw           turns by q about z and slides by pitch times q
    spherical       turns freely about the origin, by a unit quaternion
    parallelogram   moves on a circle, by length times (cos q, sin q, 0), without turning

Frames are in symbols of the mechanism's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca

from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import parameters_of
from axode.symbolic.algebra.frames import Pose, Values, align, placement
from axode.symbolic.algebra.spatial import SX, is_zero
from axode.symbolic.joints import symbolic_joint
from axode.symbolic.joints.base import Move

JointKind = Literal["revolute", "prismatic", "screw", "spherical", "parallelogram"]
HALF_TURN = SX([[1, 0, 0], [0, -1, 0], [0, 0, -1]])  # about x: reverses an axis


@dataclass(frozen=True, eq=False)
class ElementaryJoint:
    """A joint between two links, with its frame in either.

    Attributes:
        name: That of the joint in the description.
        kind: How it moves.
        first, second: Links; it moves the second one as seen from the first.
        frame_1, frame_2: Frame of the joint in either link, z along its axis; they coincide at
            zero. That of a parallelogram's second link keeps the axes of the first.
        coordinates: Their names; none for a joint that closes a loop.
        inverted: Whether the quaternion of a spherical joint is that of the first link in the
            second.
        size: Pitch of a screw [m/rad], length of a parallelogram's rods [m].
    """

    name: str
    kind: JointKind
    first: str
    second: str
    frame_1: Pose
    frame_2: Pose
    coordinates: tuple[str, ...] = ()
    inverted: bool = False
    size: SX = SX(0)

    def reverse(self) -> ElementaryJoint:
        """Return the same joint seen from its second link, with the same coordinate."""
        turn = SX.eye(3) if self.kind == "spherical" else HALF_TURN  # -q about z is q about -z
        one, two = (Pose(frame.R @ turn, frame.p) for frame in (self.frame_2, self.frame_1))
        return replace(
            self,
            first=self.second,
            second=self.first,
            frame_1=one,
            frame_2=two,
            inverted=self.kind == "spherical" and not self.inverted,
        )

    @property
    def zero_motion(self) -> Pose:
        """Pose of the second frame in the first at zero."""
        shift = self.size if self.kind == "parallelogram" else 0
        return Pose(SX.eye(3), ca.vertcat(shift, 0, 0))

    def motion(self, q: SX) -> Pose:
        """Pose of the second frame in the first at the coordinate q of a joint that has one."""
        c, s = ca.cos(q), ca.sin(q)
        turned = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
        if self.kind == "parallelogram":
            return Pose(SX.eye(3), self.size * ca.vertcat(c, s, 0))
        slide = q if self.kind == "prismatic" else self.size * q
        return Pose(
            SX.eye(3) if self.kind == "prismatic" else turned,
            SX.zeros(3) if self.kind == "revolute" else ca.vertcat(0, 0, slide),
        )


@dataclass(frozen=True, eq=False)
class RigidJoint:
    """Two links that do not move against each other, and the pose of the second in the first."""

    first: str
    second: str
    pose: Pose


@dataclass(frozen=True, eq=False)
class MotionGraph:
    """Links of a mechanism, the ground first, and the elementary joints between them.

    Attributes:
        values: Symbols of the parameters by name.
        links: Names of bodies, and of the links inside joints, such as "cross:1".
        joints: Those that move.
        rigid: Fixed joints.
        free: Joints that constrain nothing.
    """

    values: Values
    links: tuple[str, ...]
    joints: tuple[ElementaryJoint, ...]
    rigid: tuple[RigidJoint, ...]
    free: tuple[Connection, ...]


def motion_graph(mechanism: Mechanism) -> MotionGraph:
    """Divide the joints of a mechanism into elementary ones.

    Raises:
        NotApplicable: for wheels, couplings and prescribed motions.
    """
    _require_joints_only(mechanism)
    values = {name: SX.sym(name) for name in parameters_of(mechanism)}
    links = [GROUND.name, *(body.name for body in mechanism.bodies)]
    joints: list[ElementaryJoint] = []
    rigid: list[RigidJoint] = []
    free: list[Connection] = []
    held = [*((c, True) for c in mechanism.connections), *((c, False) for c in mechanism.loops)]
    for connection, in_tree in held:
        if connection.joint.is_free:
            free.append(connection)
            continue
        made = list(_elementary(connection, values, in_tree))
        joints += made
        links += [joint.second for joint in made[:-1]]
        if not made:
            at, in_child = _placements(connection, values)
            rigid.append(RigidJoint(connection.parent, connection.child, at @ in_child.inverse()))
    return MotionGraph(values, tuple(links), tuple(joints), tuple(rigid), tuple(free))


def _require_joints_only(mechanism: Mechanism) -> None:
    found = [
        *(f"wheel '{contact.name}'" for contact in mechanism.contacts),
        *(f"coupling '{coupling.name}'" for coupling in mechanism.couplings),
        *(f"prescribed '{given.coordinate}'" for given in mechanism.prescribed),
    ]
    if found:
        raise NotApplicable(
            f"postures of '{mechanism.name}': bodies may be held by joints only, there are "
            f"{', '.join(found)}.\n  Describe the robot without them, its base on the ground."
        )


def _placements(connection: Connection, values: Values) -> tuple[Pose, Pose]:
    """Frame of a joint in its parent and in its child."""
    at = placement(connection.at, connection.rotation, values)
    return at, placement(connection.child_at, connection.child_rotation, values)


def _elementary(connection: Connection, values: Values, in_tree: bool) -> Iterator[ElementaryJoint]:
    """Elementary joints of a joint, in series from its parent to its child."""
    joint = symbolic_joint(connection.joint, values)
    base, in_child = _placements(connection, values)
    moves, turned_back = joint.moves()
    steps = [step for move in moves for step in _steps(move)]
    link = connection.parent
    for k, (kind, turn, back, place, size) in enumerate(steps):
        last = k + 1 == len(steps)
        second = connection.child if last else f"{connection.name}:{k + 1}"
        after = in_child @ Pose(turned_back.T, SX.zeros(3)) if last else Pose.identity()
        names = connection.coordinates[place] if in_tree else ()
        frame_2 = Pose(after.R @ back.T, after.p)
        yield ElementaryJoint(
            connection.name,
            kind,
            link,
            second,
            Pose(base.R @ turn, base.p),
            frame_2,
            tuple(names),
            size=size,
        )
        link, base = second, Pose.identity()


Step = tuple[JointKind, SX, SX, slice, SX]


def _steps(move: Move) -> Iterator[Step]:
    """Kind, turn to its axis and back, places of the coordinates and size of every freedom."""
    twists, here = (
        move.joint.twists,
        slice(move.first, len(move.joint.description.coordinate_names)),
    )
    eye = SX.eye(3)
    if len(twists) == 3 and all(is_zero(linear) for _, linear in twists):
        yield "spherical", move.turn, eye, here, SX(0)
        return
    for k, (angular, linear) in enumerate(twists):
        slides = is_zero(angular)
        kind: JointKind = "prismatic" if slides else "revolute" if is_zero(linear) else "screw"
        turn = align(linear if slides else angular)
        place = slice(move.first + k, move.first + k + 1)
        before = move.turn if k == 0 else eye
        yield kind, before @ turn, turn.T, place, linear[2] if kind == "screw" else SX(0)
