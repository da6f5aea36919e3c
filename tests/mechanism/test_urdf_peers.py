"""URDF files, read by Axode and by Pinocchio: the same robot."""

import re

import numpy as np
import pinocchio as pin
import pytest

import axode as ax
from tests.mechanism.random_urdf import KINDS, random_robot
from tests.peers.trees import relative_error

TOLERANCE = 1e-10  # rounding leaves about 1e-13, and any wrong term more than 1e-3
ROOTS = {"fixed": None, "floating": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar}
CASES = [(seed, "fixed") for seed in range(12)] + [(3, "floating"), (8, "floating"), (5, "planar")]


class Robot:
    """One file in both libraries at a random state.

    Pinocchio sorts the joints by name, writes quaternions last and behind positions, linear speeds
    before angular ones, and angles without limits as cosine and sine; the root's joint is its own.
    """

    def __init__(self, text, path, base):
        path.write_text(text)
        bot = ax.load(path, base=base)
        for connection in bot.connections:
            if len(connection.speeds) > 1:  # so that there is an input for every speed
                for speed in connection.speeds:
                    bot.add_motor(speed, speed)
        root = ROOTS[base]
        self.theirs = pin.buildModelFromXML(text, root()) if root else pin.buildModelFromXML(text)
        self.data = self.theirs.createData()
        self.bot, self.model = bot, bot.derive().compile("interpreter")
        rng = np.random.default_rng(17)
        self.v, self.v_dot, self.u = rng.uniform(-2, 2, (3, len(self.model.independent)))
        self.q, self.their_q = np.zeros(len(self.model.coordinates)), pin.neutral(self.theirs)
        self.order = np.zeros(len(self.v), dtype=int)  # where Pinocchio keeps each of our speeds
        for connection in bot.connections:
            self._place(connection, rng)

    def _place(self, connection, rng):
        """Random coordinates of one joint, and where its speeds are."""
        if not connection.speeds:
            return
        name = "root_joint" if connection.name == "base" else connection.name
        joint = self.theirs.joints[self.theirs.getJointId(name)]
        own = np.arange(joint.idx_v, joint.idx_v + joint.nv)
        x = rng.uniform(-2, 2, len(connection.coordinates))
        theirs = x
        if len(x) == 7:
            x[:4] /= np.linalg.norm(x[:4])
            theirs, own = x[[4, 5, 6, 1, 2, 3, 0]], own[[3, 4, 5, 0, 1, 2]]
        elif joint.nq == len(x) + 1:
            theirs = [*x[:-1], np.cos(x[-1]), np.sin(x[-1])]
        self.their_q[joint.idx_q : joint.idx_q + joint.nq] = theirs
        for name, value in zip(connection.coordinates, x, strict=True):
            self.q[self.model.coordinates.index(name)] = value
        for name, place in zip(connection.speeds, own, strict=True):
            self.order[self.model.independent.index(name)] = place

    def vector(self, ours):
        """A vector of speeds or forces in Pinocchio's order."""
        found = np.zeros(self.theirs.nv)
        found[self.order] = ours
        return found

    def inputs(self, forces):
        """Motor inputs that are these forces on the speeds."""
        by_speed = dict(zip(self.model.independent, forces, strict=True))
        speed = {c.name: c.speeds[0] for c in self.bot.connections if len(c.speeds) == 1}
        return [by_speed[speed.get(d.coordinate, d.coordinate)] for d in self.bot.drives]

    def forces(self, inputs):
        """The forces on the speeds that motor inputs are."""
        found = np.zeros(len(self.v))
        for k, unit in enumerate(np.eye(len(self.v))):
            found[k] = np.dot(self.inputs(unit), inputs)
        return found


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[1]}{case[0]}")
def robot(request, tmp_path_factory):
    seed, base = request.param
    return Robot(random_robot(seed), tmp_path_factory.mktemp("robot") / "robot.urdf", base)


def test_every_kind_of_joint_occurs():
    text = "".join(random_robot(seed) for seed, _ in CASES)
    assert set(re.findall(r'type="(\w+)"', text)) == set(KINDS)


def test_poses(robot):
    pin.framesForwardKinematics(robot.theirs, robot.data, robot.their_q)
    frames = [robot.theirs.getFrameId(body, pin.FrameType.BODY) for body in robot.model.bodies]
    wanted = np.array([robot.data.oMf[frame].homogeneous for frame in frames])
    assert relative_error(robot.model.poses(robot.q), wanted) < TOLERANCE


def test_mass_matrix(robot):
    M = pin.crba(robot.theirs, robot.data, robot.their_q)
    M = np.triu(M) + np.triu(M, 1).T  # it fills the upper triangle
    wanted = M[np.ix_(robot.order, robot.order)]
    assert relative_error(robot.model.mass_matrix(robot.q), wanted) < TOLERANCE


def test_inverse_dynamics(robot):
    wanted = pin.rnea(
        robot.theirs, robot.data, robot.their_q, robot.vector(robot.v), robot.vector(robot.v_dot)
    )[robot.order]
    found = robot.forces(robot.model.inverse_dynamics(robot.q, robot.v, robot.v_dot))
    assert relative_error(found, wanted) < TOLERANCE


def test_direct_dynamics(robot):
    wanted = pin.aba(
        robot.theirs, robot.data, robot.their_q, robot.vector(robot.v), robot.vector(robot.u)
    )[robot.order]
    found = robot.model.forward_dynamics(robot.q, robot.v, robot.inputs(robot.u))
    assert relative_error(found, wanted) < TOLERANCE
