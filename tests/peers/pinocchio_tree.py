"""A tree of plain numbers as Pinocchio's model, and the maps between the two libraries' vectors."""

import numpy as np
import pinocchio as pin

from tests.peers.trees import GRAVITY, GROUND, HERE, Placed, TreeLink


class PinocchioTree:
    """The same tree in Pinocchio, with maps between the two libraries' vectors.

    Pinocchio writes quaternions x, y, z, w and puts positions before them, linear speeds before
    angular ones, and a planar angle as its cosine and sine. Speeds of floating, spherical and
    planar joints are in the moving frame in both.
    """

    def __init__(self, links: list[TreeLink]) -> None:
        self.links = links
        self.model = pin.Model()
        self.model.gravity.linear = GRAVITY
        self.joint_of = {GROUND: 0}
        self.body_in_joint: dict[str, Placed] = {GROUND: HERE}
        for link in links:
            self._add(link)
        self.data = self.model.createData()

    def _add(self, link: TreeLink) -> None:
        parent = self.joint_of[link.parent]
        at = self.body_in_joint[link.parent] @ link.in_parent
        if link.kind == "fixed":
            joint, body = parent, at @ link.body_in_joint
        else:
            joint = self.model.addJoint(parent, _joint_model(link), _se3(at), link.name)
            body = link.body_in_joint
        inertia = pin.Inertia(link.mass, link.com, link.inertia)
        self.model.appendBodyToJoint(joint, inertia, _se3(body))
        self.model.addFrame(pin.Frame(link.name, joint, 0, _se3(body), pin.FrameType.OP_FRAME))
        self.joint_of[link.name], self.body_in_joint[link.name] = joint, body

    def q(self, coordinates: list[np.ndarray]) -> np.ndarray:
        """Pinocchio's configuration vector."""
        q = np.zeros(self.model.nq)
        for link, x in zip(self.links, coordinates, strict=True):
            if link.kind == "spherical":
                x = x[[1, 2, 3, 0]]
            elif link.kind == "floating":
                x = x[[4, 5, 6, 1, 2, 3, 0]]
            elif link.kind == "planar":
                x = np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
            if link.kind != "fixed":
                joint = self.model.joints[self.joint_of[link.name]]
                q[joint.idx_q : joint.idx_q + joint.nq] = x
        return q

    @property
    def order(self) -> np.ndarray:
        """Where Pinocchio keeps each of Axode's speeds."""
        found: list[int] = []
        for link in self.links:
            if link.kind != "fixed":
                joint = self.model.joints[self.joint_of[link.name]]
                own = list(range(joint.idx_v, joint.idx_v + joint.nv))
                found += own[3:] + own[:3] if link.kind == "floating" else own
        return np.array(found)

    def vector(self, v: np.ndarray) -> np.ndarray:
        """A vector of speeds, accelerations or forces in Pinocchio's order."""
        ordered = np.zeros(self.model.nv)
        ordered[self.order] = v
        return ordered


def _se3(pose: Placed) -> pin.SE3:
    return pin.SE3(pose.R, pose.p)


def _joint_model(link: TreeLink) -> object:
    match link.kind:
        case "revolute":
            return pin.JointModelRevoluteUnaligned(link.axis)
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(link.axis)
        case "screw":
            return pin.JointModelHelicalUnaligned(link.axis, link.pitch)
        case "cylindrical":
            both = pin.JointModelComposite()
            both.addJoint(pin.JointModelRevoluteUnaligned(link.axis))
            both.addJoint(pin.JointModelPrismaticUnaligned(link.axis))
            return both
        case "universal":
            return pin.JointModelUniversal(link.axis, link.second)
        case "spherical":
            return pin.JointModelSpherical()
        case "planar":
            return pin.JointModelPlanar()
    return pin.JointModelFreeFlyer()
