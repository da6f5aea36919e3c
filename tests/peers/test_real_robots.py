"""Robots of example-robot-data, read by Axode and by Pinocchio.

A dozen that differ in kind: arms, hands, legs and wheels, with joints that mimic others, inertias
that no body has, massless links, and angles written with few digits. All the others are compared by
`python -m tests.peers.soak_robots`.
"""

import pytest

from tests.peers.robots import QUANTITIES, Robot, packaged_robots
from tests.peers.trees import relative_error

TOLERANCE = 1e-9  # rounding leaves 1e-12 and less, angles written with ten digits 2e-10
ROBOTS = {
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "icub": "icub_description/robots/icub_reduced.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "two dofs": "asr_twodof_description/urdf/TwoDofs.urdf",
    "ur5 with a gripper": "ur_description/urdf/ur5_gripper.urdf",
}
FLOATING = ("anymal", "bolt", "icub", "panda", "ur5 with a gripper")
CASES = [(name, "fixed") for name in ROBOTS] + [(name, "floating") for name in FLOATING]
FOLDER = packaged_robots()

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="no example-robot-data: `make test-all` installs it"
)


@pytest.mark.parametrize(("name", "base"), CASES)
def test_pinocchio_reads_the_same_robot(name, base):
    robot = Robot(FOLDER / ROBOTS[name], base)
    for quantity in QUANTITIES:
        assert relative_error(*getattr(robot, quantity)()) < TOLERANCE, quantity
