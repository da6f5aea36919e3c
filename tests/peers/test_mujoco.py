"""Trees against MuJoCo, contacts and everything soft switched off."""

from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from tests.peers.trees import (
    GRAVITY,
    GROUND,
    HERE,
    MUJOCO_KINDS,
    Placed,
    TreeLink,
    quaternion_matrix,
    random_coordinates,
    random_tree,
    relative_error,
    to_axode,
)

# MuJoCo diagonalises every inertia tensor when it compiles a model, to about 1e-12; the rest is
# rounding. Any wrong term is larger than 1e-3.
TOLERANCE = 1e-9
SEEDS = range(16)


class MujocoTree:
    """The same tree in MuJoCo, with maps between the two libraries' vectors.

    Where speeds differ they are linear in each other: a planar joint is two slides and a hinge, so
    its linear speeds are along fixed axes, and a free joint's linear speed is in the world's axes.
    `N` and `N_dot_v` say so: v_mujoco = N v, v_dot_mujoco = N v_dot + N_dot v.
    """

    def __init__(self, links: list[TreeLink]) -> None:
        self.links = links
        root = ElementTree.Element("mujoco")
        ElementTree.SubElement(
            root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false"
        )
        option = ElementTree.SubElement(root, "option", gravity=_text(GRAVITY))
        ElementTree.SubElement(option, "flag", contact="disable")
        world = ElementTree.SubElement(root, "worldbody")
        elements, poses = {GROUND: world}, {GROUND: HERE}
        for link in links:
            at = poses[link.parent] @ link.in_parent
            poses[link.name] = link.body_in_joint
            elements[link.name] = _body(elements[link.parent], link, at)
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)

    def put(self, coordinates: list[np.ndarray]) -> None:
        """Set the configuration, given as Axode has it."""
        parts = []
        for link, x in zip(self.links, coordinates, strict=True):
            if link.kind == "floating":
                x = self._free_coordinates(link, x)
            parts.append(x)
        self.data.qpos[:] = np.concatenate(parts)

    @staticmethod
    def _free_coordinates(link: TreeLink, x: np.ndarray) -> np.ndarray:
        pose = link.in_parent @ Placed(quaternion_matrix(x[:4]), x[4:])
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, pose.R.ravel())
        return np.concatenate([pose.p, quaternion])

    def speed_map(
        self, coordinates: list[np.ndarray], v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """N, and N_dot v."""
        n = self.model.nv
        N, N_dot_v = np.eye(n), np.zeros(n)
        start = 0
        for link, x in zip(self.links, coordinates, strict=True):
            if link.kind == "planar":
                c, s = np.cos(x[2]), np.sin(x[2])
                two = slice(start, start + 2)
                N[two, two] = [[c, -s], [s, c]]
                N_dot_v[two] = v[start + 2] * np.array([[-s, -c], [c, -s]]) @ v[two]
                start += 3
            elif link.kind == "floating":
                first, last = slice(start, start + 3), slice(start + 3, start + 6)
                R = link.in_parent.R @ quaternion_matrix(x[:4])
                N[first, first] = N[last, last] = 0.0
                N[first, last], N[last, first] = R, np.eye(3)
                N_dot_v[first] = R @ np.cross(v[first], v[last])
                start += 6
            else:
                start += {"fixed": 0, "spherical": 3}.get(link.kind, len(x))
        return N, N_dot_v


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def _body(parent: ElementTree.Element, link: TreeLink, at: Placed) -> ElementTree.Element:
    """A MuJoCo body whose frame is the joint's moving frame."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, at.R.ravel())
    body = ElementTree.SubElement(
        parent, "body", name=link.name, pos=_text(at.p), quat=_text(quaternion)
    )
    for kind, axis in _joints(link):
        options = {} if kind in ("ball", "free") else {"axis": _text(axis)}
        ElementTree.SubElement(body, "joint", type=kind, **options)
    inside = link.body_in_joint
    tensor = inside.R @ link.inertia @ inside.R.T
    six = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    ElementTree.SubElement(
        body,
        "inertial",
        mass=repr(link.mass),
        fullinertia=_text(six),
        pos=_text(inside.R @ link.com + inside.p),
    )
    return body


def _joints(link: TreeLink) -> list[tuple[str, np.ndarray]]:
    x, y, z = np.eye(3)
    return {
        "revolute": [("hinge", link.axis)],
        "prismatic": [("slide", link.axis)],
        "cylindrical": [("hinge", link.axis), ("slide", link.axis)],
        "universal": [("hinge", link.axis), ("hinge", link.second)],
        "spherical": [("ball", z)],
        "planar": [("slide", x), ("slide", y), ("hinge", z)],
        "floating": [("free", z)],
        "fixed": [],
    }[link.kind]


class Case:
    """A random tree in both libraries at a random state."""

    def __init__(self, seed: int) -> None:
        links = random_tree(seed, MUJOCO_KINDS)
        rng = np.random.default_rng(2000 + seed)
        self.mujoco = MujocoTree(links)
        self.axode = to_axode(links).derive().compile("interpreter")
        coordinates = random_coordinates(links, rng)
        self.q = np.concatenate(coordinates)
        n = len(self.axode.independent)
        self.v, self.v_dot, self.u = rng.uniform(-2, 2, (3, n))
        self.N, self.N_dot_v = self.mujoco.speed_map(coordinates, self.v)
        self.mujoco.put(coordinates)
        self.data.qvel[:] = self.N @ self.v
        mujoco.mj_forward(self.model, self.data)

    @property
    def model(self) -> mujoco.MjModel:
        return self.mujoco.model

    @property
    def data(self) -> mujoco.MjData:
        return self.mujoco.data

    def mass_matrix(self) -> np.ndarray:
        """MuJoCo's, for its own speeds."""
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_every_kind_of_joint_occurs():
    kinds = {link.kind for seed in SEEDS for link in random_tree(seed, MUJOCO_KINDS)}
    assert kinds == set(MUJOCO_KINDS)


def test_mass_matrix(case: Case):
    wanted = case.N.T @ case.mass_matrix() @ case.N
    assert relative_error(case.axode.mass_matrix(case.q), wanted) < TOLERANCE


def test_bias_and_gravity(case: Case):
    wanted = case.N.T @ (case.data.qfrc_bias + case.mass_matrix() @ case.N_dot_v)
    found = case.axode.bias(case.q, case.v) - case.axode.potential_force(case.q)
    assert relative_error(found, wanted) < TOLERANCE


def test_inverse_dynamics(case: Case):
    case.data.qacc[:] = case.N @ case.v_dot + case.N_dot_v
    mujoco.mj_inverse(case.model, case.data)
    wanted = case.N.T @ case.data.qfrc_inverse
    found = case.axode.inverse_dynamics(case.q, case.v, case.v_dot)
    assert relative_error(found, wanted) < TOLERANCE


def test_direct_dynamics(case: Case):
    case.data.qfrc_applied[:] = np.linalg.solve(case.N.T, case.u)
    mujoco.mj_forward(case.model, case.data)
    wanted = np.linalg.solve(case.N, case.data.qacc - case.N_dot_v)
    found = case.axode.forward_dynamics(case.q, case.v, case.u)
    assert relative_error(found, wanted) < TOLERANCE
