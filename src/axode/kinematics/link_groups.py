"""Groups of links that do not move against each other, and chains of joints between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.kinematics.motion_graph import ElementaryJoint, MotionGraph, RigidJoint
from axode.mechanism.elements.bodies import GROUND
from axode.symbolic.algebra.frames import Pose
from axode.symbolic.algebra.spatial import SX

Array = npt.NDArray[np.float64]


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
    entries = [
        ca.vec(ca.horzcat(frame.R, frame.p)) for j in joints for frame in (j.frame_1, j.frame_2)
    ]
    function = ca.Function("frames", [symbols], [ca.horzcat(*entries) if entries else SX(0, 0)])
    columns = np.array(function(values)).T.reshape(-1, 4, 3)
    frames = np.zeros((len(columns), 4, 4))
    frames[:, :3], frames[:, 3, 3] = columns.swapaxes(1, 2), 1.0
    return [(frames[2 * k], frames[2 * k + 1]) for k in range(len(joints))]
