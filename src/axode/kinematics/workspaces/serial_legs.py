"""Serial legs of a robot: the joints between the ground and the output, as screws at home.

With the axes of all joints where they stand at home, the output's displacement from home is the
product of the joints' own displacements along any chain of joints from the ground to it, each
about or along its axis at home.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.bodies import GROUND

if TYPE_CHECKING:
    from axode.kinematics.motion_graph import ElementaryJoint
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.symbolic.algebra.frames import Pose

Array = npt.NDArray[np.float64]
MAX_CHAINS = 1000  # from the ground to the output: more belong to nets of loops


@dataclass(frozen=True, eq=False)
class HomeScrew:
    """One freedom of a joint, in the world while the mechanism is at home.

    Attributes:
        kind: Whether it turns about the axis or slides along it.
        point: A point of the axis [m].
        axis: Unit vector; positive coordinates move what is nearer to the output about or along it.
        joint: Name of the joint.
        coordinate: Name of its coordinate; empty for joints that close loops and for balls.
    """

    kind: Literal["turn", "slide"]
    point: Array
    axis: Array
    joint: str
    coordinate: str = ""

    @property
    def reversed(self) -> HomeScrew:
        """Return the same freedom, seen from its other body."""
        return replace(self, axis=-self.axis)


def turn_matrix(axis: Array, angle: float) -> Array:
    """Rotation about a unit vector."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Array = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return turned


def perpendiculars(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors that complete a unit vector to a right-handed frame."""
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u /= np.linalg.norm(u)
    return u, np.cross(axis, u)


def serial_chains(robot: Kinematics) -> list[list[HomeScrew]]:
    """Chains of joints from the ground to the output that meet no body twice, at most MAX_CHAINS.

    Chains through screws, and through links inside of joints that close loops whose place is not
    known, are left out.
    """
    beside: dict[str, list[tuple[str, list[HomeScrew]]]] = {}
    for joint in robot.graph.joints:
        screws = _home_screws(robot, joint)
        if screws:
            back = [screw.reversed for screw in reversed(screws)]
            beside.setdefault(joint.first, []).append((joint.second, screws))
            beside.setdefault(joint.second, []).append((joint.first, back))
    for rigid in robot.graph.rigid:
        beside.setdefault(rigid.first, []).append((rigid.second, []))
        beside.setdefault(rigid.second, []).append((rigid.first, []))

    def extend(body: str, seen: frozenset[str], made: list[HomeScrew]) -> Iterator[list[HomeScrew]]:
        if body == robot.output:
            yield made
            return
        for other, screws in beside.get(body, ()):
            if other not in seen:
                yield from extend(other, seen | {other}, made + screws)

    return list(islice(extend(GROUND.name, frozenset({GROUND.name}), []), MAX_CHAINS))


def _home_screws(robot: Kinematics, joint: ElementaryJoint) -> list[HomeScrew]:
    """Freedoms of a joint at home, from its first link to its second."""
    home = robot.home_poses
    if joint.first in home:
        frame = home[joint.first] @ _numbers(robot, joint.frame_1)
    elif joint.second in home:
        frame = home[joint.second] @ _numbers(robot, joint.frame_2)
    else:
        return []
    point, name = frame[:3, 3], joint.name
    match joint.kind:
        case "revolute":
            return [HomeScrew("turn", point, frame[:3, 2], name, "".join(joint.coordinates))]
        case "prismatic":
            return [HomeScrew("slide", point, frame[:3, 2], name, "".join(joint.coordinates))]
        case "spherical":
            return [HomeScrew("turn", point, axis, name) for axis in np.eye(3)]
    return []


def _numbers(robot: Kinematics, pose: Pose) -> Array:
    """Homogeneous matrix of a frame at the parameters of the model."""
    values = robot.graph.values
    symbols = ca.vertcat(ca.SX(0, 1), *values.values())
    parameters = [robot.model.parameters[name] for name in values]
    function = ca.Function("frame", [symbols], [ca.densify(pose.R), ca.densify(pose.p)])
    R, p = (np.array(part) for part in function(parameters))
    return np.block([[R, p.reshape(3, 1)], [np.zeros((1, 3)), np.ones((1, 1))]])
