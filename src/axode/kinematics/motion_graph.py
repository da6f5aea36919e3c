"""Links and elementary joints of a mechanism, and the groups, chains and legs that they form.

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

Links that do not move against each other are one group. Two equal rods between two links are one
joint, a parallelogram. The output's pose along a leg of k joints is the product of constant
matrices and motions,

    T = C_0 J_1(q_1) C_1 J_2(q_2) ... J_k(q_k) C_k,

with one `LegMotion` for each J.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import parameters_of
from axode.numerics.tolerances import LOOP_TOLERANCE
from axode.symbolic.algebra.spatial import SX, Pose, Values, align, cross, is_zero, placement
from axode.symbolic.joints import symbolic_joint
from axode.symbolic.joints.base import Move

JointKind = Literal["revolute", "prismatic", "screw", "spherical", "parallelogram"]
HALF_TURN = SX([[1, 0, 0], [0, -1, 0], [0, 0, -1]])  # about x: reverses an axis
Step = tuple[JointKind, SX, SX, slice, SX]
Array = npt.NDArray[np.float64]
LETTERS = {"revolute": "R", "prismatic": "P", "screw": "H", "spherical": "S", "parallelogram": "Q"}


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
    def freedoms(self) -> int:
        """How many turns or slides it leaves."""
        return 3 if self.kind == "spherical" else 1

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
    inner = [f"{connection.name}:{k}" for k in range(1, len(steps))]
    links = pairwise([connection.parent, *inner, connection.child])
    for k, ((kind, turn, back, place, size), ends) in enumerate(zip(steps, links, strict=False), 1):
        at_child = in_child @ Pose(turned_back.T, SX.zeros(3))
        after = at_child if k == len(steps) else Pose.identity()
        frames = Pose(base.R @ turn, base.p), Pose(after.R @ back.T, after.p)
        names = tuple(connection.coordinates[place]) if in_tree else ()
        yield ElementaryJoint(connection.name, kind, *ends, *frames, names, size=size)
        base = Pose.identity()


def _steps(move: Move) -> Iterator[Step]:
    """Kind, turn to its axis and back, places of the coordinates and size of every freedom."""
    twists, eye = move.joint.twists, SX.eye(3)
    if len(twists) == 3 and all(is_zero(linear) for _, linear in twists):
        every = slice(move.first, len(move.joint.description.coordinate_names))
        yield "spherical", move.turn, eye, every, SX(0)
        return
    for k, (angular, linear) in enumerate(twists):
        slides = is_zero(angular)
        kind: JointKind = "prismatic" if slides else "revolute" if is_zero(linear) else "screw"
        turn = align(linear if slides else angular)
        place = slice(move.first + k, move.first + k + 1)
        before = move.turn if k == 0 else eye
        yield kind, before @ turn, turn.T, place, linear[2] if kind == "screw" else SX(0)


@dataclass(frozen=True, eq=False)
class LinkGroups:
    """Links that rigid joints hold together, as one link each.

    Attributes:
        graph: Graph of the groups; each has the name and the frame of one of its links.
        places: Group of every link, and pose of the link in it.
    """

    graph: MotionGraph
    places: Mapping[str, tuple[str, Pose]]


def group_links(graph: MotionGraph, first: Sequence[str] = ()) -> LinkGroups:
    """Join the links that do not move against each other.

    Args:
        graph: Links and joints.
        first: Links that give their groups their names, if the ground is not in them.

    Raises:
        InvalidArgument: if rigid joints form a loop.
    """
    touching: dict[str, list[RigidJoint]] = {}
    for rigid in graph.rigid:
        touching.setdefault(rigid.first, []).append(rigid)
        back = RigidJoint(rigid.second, rigid.first, rigid.pose.inverse())
        touching.setdefault(rigid.second, []).append(back)
    places: dict[str, tuple[str, Pose]] = {}
    for root in dict.fromkeys((GROUND.name, *first, *graph.links)):
        if root in places:
            continue
        places[root] = root, Pose.identity()
        waiting = [root]
        while waiting:
            link = waiting.pop()
            for rigid in touching.get(link, ()):
                if rigid.second not in places:
                    places[rigid.second] = root, places[link][1] @ rigid.pose
                    waiting.append(rigid.second)
    _check_no_rigid_loop(graph, places)
    joints = tuple(
        replace(
            joint,
            first=places[joint.first][0],
            second=places[joint.second][0],
            frame_1=places[joint.first][1] @ joint.frame_1,
            frame_2=places[joint.second][1] @ joint.frame_2,
        )
        for joint in graph.joints
    )
    names = tuple(dict.fromkeys(group for group, _ in places.values()))
    return LinkGroups(replace(graph, links=names, joints=joints, rigid=()), places)


def _check_no_rigid_loop(graph: MotionGraph, places: Mapping[str, tuple[str, Pose]]) -> None:
    links = Counter(group for group, _ in places.values())
    rigid = Counter(places[joint.first][0] for joint in graph.rigid)
    for group, count in rigid.items():
        if count >= links[group]:
            held = sorted(link for link, (root, _) in places.items() if root == group)
            raise InvalidArgument(
                f"locked joints hold {', '.join(held)} in a loop, where not all of them can have "
                "any value: name fewer driven coordinates, driven=[...]"
            )


def lock_joints(graph: MotionGraph, held: Mapping[str, SX]) -> MotionGraph:
    """Make the joints whose coordinates are held rigid, at those values."""
    locked, others = [], []
    for joint in graph.joints:
        if len(joint.coordinates) == 1 and joint.coordinates[0] in held:
            pose = joint.frame_1 @ joint.motion(held[joint.coordinates[0]])
            locked.append(RigidJoint(joint.first, joint.second, pose @ joint.frame_2.inverse()))
        else:
            others.append(joint)
    return replace(graph, joints=tuple(others), rigid=(*graph.rigid, *locked))


def joint_chains(graph: MotionGraph, nodes: Iterable[str]) -> list[tuple[ElementaryJoint, ...]]:
    """Chains of joints between nodes: the given groups, and those on which three joints end.

    Joints are turned so that every chain leads from its first node to its last.
    """
    ends = Counter(link for joint in graph.joints for link in (joint.first, joint.second))
    stops = {*nodes, *(link for link, count in ends.items() if count > 2)}
    touching: dict[str, list[int]] = {}
    for k, joint in enumerate(graph.joints):
        for link in (joint.first, joint.second):
            touching.setdefault(link, []).append(k)
    used: set[int] = set()
    chains = []
    for stop in (link for link in graph.links if link in stops):
        for start in touching.get(stop, ()):
            chain, link, k = [], stop, start
            while k not in used:
                used.add(k)
                joint = graph.joints[k]
                chain.append(joint if joint.first == link else joint.reverse())
                link = chain[-1].second
                onward = [other for other in touching[link] if other not in used]
                if link in stops or not onward:
                    break
                k = onward[0]
            if chain:
                chains.append(tuple(chain))
    return chains


def frame_numbers(
    joints: Sequence[ElementaryJoint], symbols: SX, values: Array
) -> list[tuple[Array, Array]]:
    """Homogeneous matrices of the two frames of every joint, at values of all symbols."""
    frames = [frame for j in joints for frame in (j.frame_1, j.frame_2)]
    made = homogeneous(np.array(ca.Function("frames", [symbols], [flat_poses(frames)])(values)).T)
    pairs = made.reshape(-1, 2, 4, 4)
    return [(one, two) for one, two in pairs]


def flat_poses(poses: Sequence[Pose]) -> SX:
    """Columns of rotation and position of all poses, one after the other."""
    return ca.densify(ca.vertcat(SX(0, 1), *(ca.vec(ca.horzcat(T.R, T.p)) for T in poses)))


def homogeneous(flat: Array) -> Array:
    """Homogeneous matrices (..., poses, 4, 4) of flat poses (..., 12 poses)."""
    columns = flat.reshape(*flat.shape[:-1], flat.shape[-1] // 12, 4, 3)
    made = np.zeros((*columns.shape[:-2], 4, 4))
    made[..., :3, :], made[..., 3, 3] = columns.swapaxes(-1, -2), 1.0
    return made


Rod = tuple[ElementaryJoint, ElementaryJoint]  # from one link to the rod, and on to the other link


def join_parallelograms(
    graph: MotionGraph, parameters: Array, home: Mapping[str, Array]
) -> tuple[MotionGraph, tuple[tuple[Rod, Rod], ...]]:
    """Replace every parallelogram of four parallel revolutes by one joint, and list its rods.

    The joint has the coordinate of the first rod. The rods must not be crossed at home.

    Args:
        graph: Groups of links.
        parameters: Values of the parameters, in the order of `graph.values`.
        home: Poses of the bodies at home.
    """
    symbols = ca.vertcat(*graph.values.values())
    for one, other in _pairs_of_rods(graph):
        if not {one[0].first, one[1].second} <= home.keys():
            continue
        joint = _parallelogram(one, other)
        if _is_parallelogram(one, other, joint, symbols, parameters, home):
            gone = {one[0].second, other[0].second}
            links = tuple(link for link in graph.links if link not in gone)
            joints = tuple(j for j in graph.joints if not gone & {j.first, j.second})
            made = replace(graph, links=links, joints=(*joints, joint))
            rest, rods = join_parallelograms(made, parameters, home)
            return rest, ((one, other), *rods)
    return graph, ()


def _pairs_of_rods(graph: MotionGraph) -> Iterator[tuple[Rod, Rod]]:
    """Pairs of rods with revolutes between the same two links."""
    ends = Counter(link for joint in graph.joints for link in (joint.first, joint.second))
    rods: dict[tuple[str, str], list[Rod]] = {}
    for link in graph.links[1:]:
        touching = [j for j in graph.joints if link in (j.first, j.second)]
        if ends[link] != 2 or any(j.kind != "revolute" for j in touching):
            continue
        before, after = touching
        before = before if before.second == link else before.reverse()
        after = after if after.first == link else after.reverse()
        if graph.links.index(before.first) > graph.links.index(after.second):
            before, after = after.reverse(), before.reverse()
        if before.first != after.second:
            rods.setdefault((before.first, after.second), []).append((before, after))
    for found in rods.values():
        yield from combinations(found, 2)


def _parallelogram(one: Rod, other: Rod) -> ElementaryJoint:
    """Joint that replaces two rods: its circle is that of the first rod's end."""
    before, after = one
    rod = before.frame_2.inverse() @ after.frame_1
    length = ca.norm_2(rod.p[:2])
    c, s = rod.p[0] / length, rod.p[1] / length
    turn = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    frame_1 = before.frame_1 @ Pose(turn, ca.vertcat(0, 0, rod.p[2]))
    base = _triad(other[0].frame_1.p - before.frame_1.p, before.frame_1.R[:, 2])
    same = rod.R[2, 2]  # 1 or -1: whether the two axes of the rod have one direction
    top = _triad(other[1].frame_2.p - after.frame_2.p, same * after.frame_2.R[:, 2])
    frames = frame_1, Pose(top @ base.T @ frame_1.R, after.frame_2.p)
    ends = before.first, after.second
    return ElementaryJoint(
        before.name, "parallelogram", *ends, *frames, before.coordinates, size=length
    )


def _triad(along: SX, axis: SX) -> SX:
    """Rotation matrix whose z is an axis and whose x is along a vector, as far as z allows."""
    flat = along - axis * ca.dot(axis, along)
    x = flat / ca.norm_2(flat)
    return ca.horzcat(x, cross(axis, x), axis)


def _is_parallelogram(
    one: Rod,
    other: Rod,
    joint: ElementaryJoint,
    symbols: SX,
    parameters: Array,
    home: Mapping[str, Array],
) -> bool:
    """Return whether the axes are parallel, opposite sides equal and the rods not crossed."""
    frames = frame_numbers([*one, *other, joint], symbols, parameters)
    (la, al), (am, ma), (lb, bl), (bm, mb), (in_first, in_second) = frames
    if not np.isfinite(in_second).all():
        return False
    pairs = ((la, lb), (al, am), (bl, bm), (ma, mb))
    parallel = all(abs(abs(a[:3, 2] @ b[:3, 2]) - 1) < LOOP_TOLERANCE**2 for a, b in pairs)
    spans = [(b[:3, 3] - a[:3, 3], a[:3, 2]) for a, b in pairs]
    sides = [float(np.linalg.norm(span - axis * (axis @ span))) for span, axis in spans]
    size = max(sides)
    unequal = max(abs(sides[0] - sides[3]), abs(sides[1] - sides[2]))
    turn = home[joint.first][:3, :3].T @ home[joint.second][:3, :3]
    uncrossed = np.abs(turn @ in_second[:3, :3] - in_first[:3, :3]).max() < np.sqrt(LOOP_TOLERANCE)
    fits = unequal < LOOP_TOLERANCE * size < min(sides)
    return parallel and fits and bool(uncrossed)


@dataclass(frozen=True)
class LegMotion:
    """One joint of a leg.

    Attributes:
        name: That of the joint in the description.
        kind: "revolute", "prismatic", "screw", "spherical" or "parallelogram".
        coordinates: Names in the model; none for a joint that closes a loop.
        driven: Whether its coordinate is driven.
        inverted: Whether a spherical joint's quaternion belongs to the inverse of its motion.
        size: Pitch of a screw [m/rad], length of a parallelogram's rods [m].
    """

    name: str
    kind: JointKind
    coordinates: tuple[str, ...]
    driven: bool
    inverted: bool = False
    size: float = 0.0


@dataclass(frozen=True, eq=False)
class LegPath:
    """A leg: its joints, and the constant matrices before, between and after them.

    Attributes:
        name: Names of its driven coordinates, or of its joints if none is driven.
        joints: From the ground to the output body.
        constants: C_0 ... C_k, homogeneous matrices: (k + 1, 4, 4).
    """

    name: str
    joints: tuple[LegMotion, ...]
    constants: Array

    @property
    def letters(self) -> str:
        """Kinds of its joints in short, those of driven ones underlined by a following _."""
        return "".join(LETTERS[joint.kind] + ("_" if joint.driven else "") for joint in self.joints)


def leg_paths(
    graph: MotionGraph,
    output: str,
    driven: tuple[str, ...],
    parameters: Array,
    home: dict[str, Array],
) -> tuple[LegPath, ...]:
    """Find the legs that lead from the ground to the output body.

    Args:
        graph: Links and joints of the mechanism.
        output: Name of the output body.
        driven: Names of the driven coordinates.
        parameters: Values of the parameters, in the order of `graph.values`.
        home: Poses of the bodies at home, homogeneous matrices.

    Raises:
        NotApplicable: if a chain from the ground branches before it reaches the output.
    """
    groups = group_links(graph, (output,))
    target, within = groups.places[output]
    merged, _ = join_parallelograms(groups.graph, parameters, home)
    legs = []
    for chain in joint_chains(merged, (GROUND.name, target)):
        ends = chain[0].first, chain[-1].second
        if ends == (GROUND.name, target):
            legs.append(chain)
        else:
            stray = next((end for end in ends if end not in (GROUND.name, target)), ends[1])
            raise NotApplicable(
                f"legs to '{output}': a chain of joints ends on '{stray}', which is neither the "
                f"ground nor the output.\n  Choose another output body, output=..."
            )
    symbols = ca.vertcat(*graph.values.values())
    offset = np.eye(4)
    function = ca.Function("offset", [symbols], [within.R, within.p])
    offset[:3, :3], offset[:3, 3:] = (np.array(part) for part in function(parameters))
    return tuple(_leg(chain, driven, symbols, parameters, offset) for chain in legs)


def _leg(
    chain: tuple[ElementaryJoint, ...],
    driven: tuple[str, ...],
    symbols: ca.SX,
    parameters: Array,
    offset: Array,
) -> LegPath:
    before: Array = np.eye(4)
    constants = []
    for frame_1, frame_2 in frame_numbers(chain, symbols, parameters):
        constants.append(before @ frame_1)
        before = np.asarray(np.linalg.inv(frame_2), np.float64)
    function = ca.Function("sizes", [symbols], [ca.vertcat(*(joint.size for joint in chain))])
    sizes = np.array(function(parameters)).ravel().tolist()
    joints = tuple(
        LegMotion(j.name, j.kind, j.coordinates, bool({*j.coordinates} & {*driven}), j.inverted, s)
        for j, s in zip(chain, sizes, strict=True)
    )
    names = [name for joint in joints for name in joint.coordinates if name in driven]
    names = names or list(dict.fromkeys(joint.name for joint in joints))
    return LegPath(", ".join(names), joints, np.array([*constants, before @ offset]))
