"""An Axode mechanism of common joints as a Pinocchio model, its point loops included."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

import axode as ax
from axode.mechanism.elements.bodies import Body
from axode.mechanism.mechanism import Connection
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix

# Pinocchio solves loops by proximal iterations. With mu = 0 the first step is the exact solve of
# the constrained system, and further ones stop at once.
PROXIMAL_ACCURACY, PROXIMAL_MU, PROXIMAL_ITERATIONS = 1e-14, 0.0, 10


@dataclass
class PinocchioPeer:
    """The model, and where it keeps Axode's coordinates and speeds.

    Pinocchio writes positions before quaternions, quaternions x, y, z, w, linear speeds before
    angular ones.
    """

    model: pin.Model
    coordinate_order: np.ndarray  # q_pinocchio = q_axode[coordinate_order]
    speed_order: np.ndarray
    loops: list[pin.RigidConstraintModel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.data = self.model.createData()
        if self.loops:
            self._loop_data = [loop.createData() for loop in self.loops]
            pin.initConstraintDynamics(self.model, self.data, self.loops, self._loop_data)
            self._proximal = (PROXIMAL_ACCURACY, PROXIMAL_MU, PROXIMAL_ITERATIONS)

    def q(self, q: np.ndarray) -> np.ndarray:
        """Coordinates in Pinocchio's order."""
        return np.asarray(q)[self.coordinate_order]

    def v(self, v: np.ndarray) -> np.ndarray:
        """Speeds, accelerations or forces in Pinocchio's order."""
        return np.asarray(v)[self.speed_order]

    def back(self, v: np.ndarray) -> np.ndarray:
        """Speeds, accelerations or forces in Axode's order."""
        found = np.empty_like(v)
        found[self.speed_order] = v
        return found

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, v_dot: np.ndarray) -> np.ndarray:
        """Forces on all speeds of the tree, by `rnea`."""
        forces = pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(v_dot))
        return self.back(forces)

    def direct_dynamics(
        self, q: np.ndarray, v: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations of all speeds and forces of the loops, by `aba` or `constraintDynamics`."""
        q, v, force = self.q(q), self.v(v), self.v(force)
        if not self.loops:
            return self.back(pin.aba(self.model, self.data, q, v, force)), np.zeros((0, 3))
        settings = pin.ProximalSettings(*self._proximal)
        v_dot = pin.constraintDynamics(
            self.model, self.data, q, v, force, self.loops, self._loop_data, settings
        )
        forces = [data.contact_force.linear.copy() for data in self._loop_data]
        return self.back(v_dot.copy()), np.array(forces)


def pinocchio_peer(mechanism: ax.Mechanism, *, split_universals: bool = False) -> PinocchioPeer:
    """Build the peer of a tree with spherical loops, or of a tree alone.

    Args:
        mechanism: What is built.
        split_universals: Make two revolute joints of a universal one. Its own takes less time, but
            Pinocchio's derivatives leave out that its axes turn against each other.
    """
    model = pin.Model()
    model.gravity.linear = _numbers(mechanism.gravity)
    bodies = {body.name: body for body in mechanism.bodies}
    joint_of, pose_of = {mechanism.ground.name: 0}, {mechanism.ground.name: pin.SE3.Identity()}
    coordinates: list[int] = []
    speeds: list[int] = []
    for connection in tree_order(mechanism):
        joint, at = joint_of[connection.parent], pose_of[connection.parent] * _at(connection)
        pose = at * _in_child(connection).inverse()
        if not isinstance(connection.joint, ax.Fixed):
            joint = _add_joint(model, joint, connection, at, split_universals)
            pose = _in_child(connection).inverse()
            q0, v0 = len(coordinates), len(speeds)
            coordinates += [q0 + k for k in _coordinate_order(connection.joint)]
            speeds += [v0 + k for k in _speed_order(connection.joint)]
        model.appendBodyToJoint(joint, _inertia(bodies[connection.child]), pose)
        joint_of[connection.child], pose_of[connection.child] = joint, pose
    loops = [_point_loop(model, loop, joint_of, pose_of) for loop in mechanism.loops]
    return PinocchioPeer(model, np.array(coordinates), np.array(speeds), loops)


def _add_joint(
    model: pin.Model, parent: int, connection: Connection, at: pin.SE3, split_universals: bool
) -> int:
    joint = connection.joint
    if not (split_universals and isinstance(joint, ax.Universal)):
        return model.addJoint(parent, joint_model(joint), at, connection.name)
    first, second = (joint_model(ax.Revolute(axis)) for axis in (joint.axis, joint.second))
    middle = model.addJoint(parent, first, at, f"{connection.name} first")
    return model.addJoint(middle, second, pin.SE3.Identity(), connection.name)


def joint_model(joint: object) -> pin.JointModel:
    """Pinocchio's model of an Axode joint."""
    if isinstance(joint, ax.Universal):
        return pin.JointModelUniversal(_numbers(joint.axis), _numbers(joint.second))
    simple = {ax.Spherical: pin.JointModelSpherical, ax.Floating: pin.JointModelFreeFlyer}
    if type(joint) in simple:
        return simple[type(joint)]()
    aligned = {
        ax.Revolute: {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ},
        ax.Prismatic: {"x": pin.JointModelPX, "y": pin.JointModelPY, "z": pin.JointModelPZ},
    }
    general = {
        ax.Revolute: pin.JointModelRevoluteUnaligned,
        ax.Prismatic: pin.JointModelPrismaticUnaligned,
    }
    if type(joint) not in general:
        raise NotImplementedError(f"no Pinocchio joint for {type(joint).__name__}")
    axis = _numbers(joint.axis)
    for name, row in zip("xyz", np.eye(3), strict=True):
        if np.array_equal(axis, row):  # its fastest kind of joint
            return aligned[type(joint)][name]()
    return general[type(joint)](axis)


def _coordinate_order(joint: object) -> list[int]:
    if isinstance(joint, ax.Floating):
        return [4, 5, 6, 1, 2, 3, 0]
    return [1, 2, 3, 0] if isinstance(joint, ax.Spherical) else list(range(joint.dof))


def _speed_order(joint: object) -> list[int]:
    return [3, 4, 5, 0, 1, 2] if isinstance(joint, ax.Floating) else list(range(joint.dof))


def _point_loop(
    model: pin.Model, loop: Connection, joint_of: dict[str, int], pose_of: dict[str, pin.SE3]
) -> pin.RigidConstraintModel:
    if not isinstance(loop.joint, ax.Spherical):
        raise NotImplementedError("only spherical loops are handed to Pinocchio")
    return pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D,
        model,
        joint_of[loop.parent],
        pose_of[loop.parent] * _at(loop),
        joint_of[loop.child],
        pose_of[loop.child] * _in_child(loop),
        pin.ReferenceFrame.LOCAL,
    )


def _numbers(v: object) -> np.ndarray:
    return np.array([numeric(x) for x in v])


def _se3(at: object, rotation: object) -> pin.SE3:
    R = np.array([_numbers(row) for row in rotation_matrix(rotation)])
    return pin.SE3(R, _numbers(at))


def _at(connection: Connection) -> pin.SE3:
    return _se3(connection.at, connection.rotation)


def _in_child(connection: Connection) -> pin.SE3:
    return _se3(connection.child_at, connection.child_rotation)


def _inertia(body: Body) -> pin.Inertia:
    xx, yy, zz, xy, xz, yz = (numeric(entry) for entry in body.inertia.entries)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return pin.Inertia(numeric(body.mass), _numbers(body.com), tensor)
