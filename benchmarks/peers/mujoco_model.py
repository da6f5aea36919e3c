"""An Axode tree, its point loops included, as a MuJoCo model.

MuJoCo's loops are soft: forces pull the two points together, and how far they stay apart depends on
its solver's settings. Nothing else is soft here: no contacts, no limits.
"""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco
import numpy as np

import axode as ax
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix


def text(numbers: object) -> str:
    """Numbers as MJCF has them."""
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


class MujocoPeer:
    """The model and its data, and maps from Axode's vectors.

    A free joint has its position first, and its linear speed along the world's axes.
    """

    def __init__(self, mechanism: ax.Mechanism) -> None:
        root = _document(mechanism)
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)
        self.free = []  # where a free joint's speeds and coordinates start
        q = v = 0
        for connection in tree_order(mechanism):
            if isinstance(connection.joint, ax.Floating):
                self.free.append((q, v))
            q += 7 if isinstance(connection.joint, ax.Floating) else connection.joint.dof
            v += connection.joint.dof

    def q(self, q: np.ndarray) -> np.ndarray:
        """Coordinates, one row a sample."""
        found = q.copy()
        for at, _ in self.free:
            found[:, at : at + 3], found[:, at + 3 : at + 7] = (
                q[:, at + 4 : at + 7],
                q[:, at : at + 4],
            )
        return found

    def v(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Speeds, one row a sample."""
        return self._swapped(q, v, v[:, :0])

    def v_dot(self, q: np.ndarray, v: np.ndarray, v_dot: np.ndarray) -> np.ndarray:
        """Accelerations, one row a sample."""
        return self._swapped(q, v_dot, v)

    def _swapped(self, q: np.ndarray, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        found = x.copy()
        for at, start in self.free:
            angular, linear = slice(start, start + 3), slice(start + 3, start + 6)
            moved = x[:, linear]
            if v.size:
                moved = moved + np.cross(v[:, angular], v[:, linear])
            R = np.array([_quaternion_matrix(row[at : at + 4]) for row in q])
            found[:, angular] = np.einsum("nij,nj->ni", R, moved)
            found[:, linear] = x[:, angular]
        return found


def _document(mechanism: ax.Mechanism) -> ElementTree.Element:
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(
        root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false"
    )
    option = ElementTree.SubElement(root, "option", gravity=text(_numbers(mechanism.gravity)))
    ElementTree.SubElement(option, "flag", contact="disable")
    elements = {mechanism.ground.name: ElementTree.SubElement(root, "worldbody")}
    bodies = {body.name: body for body in mechanism.bodies}
    for connection in tree_order(mechanism):
        R_at, R_child = _rotation(connection.rotation), _rotation(connection.child_rotation)
        R = R_at @ R_child.T
        child_at = _numbers(connection.child_at)
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, R.ravel())
        element = ElementTree.SubElement(
            elements[connection.parent],
            "body",
            name=connection.child,
            pos=text(_numbers(connection.at) - R @ child_at),
            quat=text(quaternion),
        )
        for kind, axis in _joints(connection.joint):
            more = {} if kind == "free" else {"axis": text(R_child @ axis), "pos": text(child_at)}
            ElementTree.SubElement(element, "joint", type=kind, **more)
        body = bodies[connection.child]
        ElementTree.SubElement(
            element,
            "inertial",
            mass=repr(numeric(body.mass)),
            pos=text(_numbers(body.com)),
            fullinertia=text([numeric(entry) for entry in body.inertia.entries]),
        )
        elements[connection.child] = element
    _add_loops(mechanism, root, elements)
    return root


def _add_loops(
    mechanism: ax.Mechanism, root: ElementTree.Element, elements: dict[str, ElementTree.Element]
) -> None:
    if not mechanism.loops:
        return
    equality = ElementTree.SubElement(root, "equality")
    for loop in mechanism.loops:
        if not isinstance(loop.joint, ax.Spherical):
            raise NotImplementedError("only spherical loops are handed to MuJoCo")
        ends = ((loop.parent, loop.at, "one"), (loop.child, loop.child_at, "other"))
        for body, at, which in ends:
            ElementTree.SubElement(
                elements[body], "site", name=f"{loop.name}.{which}", pos=text(_numbers(at))
            )
        ElementTree.SubElement(
            equality, "connect", site1=f"{loop.name}.one", site2=f"{loop.name}.other"
        )


def _joints(joint: object) -> list[tuple[str, np.ndarray]]:
    if isinstance(joint, ax.Floating):
        return [("free", np.zeros(3))]
    if isinstance(joint, ax.Universal):
        return [("hinge", _numbers(joint.axis)), ("hinge", _numbers(joint.second))]
    kinds = {ax.Revolute: "hinge", ax.Prismatic: "slide"}
    if type(joint) not in kinds:
        raise NotImplementedError(f"no MuJoCo joint for {type(joint).__name__}")
    return [(kinds[type(joint)], _numbers(joint.axis))]


def _numbers(v: object) -> np.ndarray:
    return np.array([numeric(x) for x in v])


def _rotation(rotation: object) -> np.ndarray:
    return np.array([_numbers(row) for row in rotation_matrix(rotation)])


def _quaternion_matrix(quaternion: np.ndarray) -> np.ndarray:
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return R.reshape(3, 3)
