"""URDF files as they are found in the field: read with one warning, and as Pinocchio reads them.

The files in `field/` are written in the style of those that CAD programs, macros and hands leave
behind, each with the defects of its kind.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.errors import FileDeviationWarning, PlausibilityWarning
from tests.mechanism.random_urdf import rounded_robot
from tests.peers.robots import QUANTITIES, Robot
from tests.peers.trees import relative_error

TOLERANCE = 1e-9  # rounding leaves about 1e-14, angles written with ten digits 2e-10
FIELD = Path(__file__).parent / "field"
FILES = sorted(path.stem for path in FIELD.glob("*.urdf"))
# line, place and what was done; the fault itself is the strict reader's
DEVIATIONS = {
    "attributes": [
        (7, "link.upper", "ignored"),
        (8, "link.upper", "ignored"),
        (8, "link.upper", "ignored"),
        (8, "link.upper", "ignored"),
        (16, "joint.base_to_upper", "ignored"),
        (17, "joint.base_to_upper", "not read"),
    ],
    "axes": [(10, "joint.nowhere", "the joint is fixed")],
    "declaration": [
        (3, "robot", "ignored"),
        (4, "robot", "ignored"),
        (5, "robot", "replaced, and others after it"),
    ],
    "exported_inertia": [
        (10, "link.shoulder", "used as written"),
        (14, "link.upper_arm", "used as written"),
        (18, "link.forearm", "used as written"),
    ],
    "extensions": [
        (6, "link.bob", "taken as blanks"),
        (8, "joint.weld", "it is the ground"),
        (9, "joint.ball", "a ball joint, as its name says"),
        (9, "joint.ball", "taken as blanks"),
        (11, "robot", "ignored"),
    ],
    "foot_frames": [
        (9, "link.rotor", "mass and inertia are used as written"),
        (15, "link.foot", "mass and inertia are used as written"),
    ],
    "gripper": [(43, "joint.pad_joint", "the joint moves by itself")],
    "ground_link": [
        (3, "link.ground", "called 'ground_'"),
        (10, 'link."[tool]"', "called '_[tool]'"),
        (14, 'joint."[1] swing"', "called '_[1] swing'"),
    ],
    "leftovers": [(3, "robot", "ignored"), (17, "joint.push", "left out")],
    "massless_root": [],
    "rounding": [],
    "transmissions": [
        (21, "transmission.finger_trans", "ignored"),
        (24, "transmission.torso_trans", "ignored"),
    ],
    "unfinished_inertia": [
        (2, "link.base", "the link is massless"),
        (4, "link.arm", "the link is a point mass"),
        (10, "link.plate", "the link is massless"),
        (17, "link.hand", "the link is a point mass"),
    ],
}
NOT_FOR_PINOCCHIO = {
    "extensions": "commas and ball joints are refused there",
    "axes": "a joint without an axis is a coordinate without motion there",
}
MASSLESS_WHEN_FLOATING = ("unfinished_inertia",)
COMPARED = [
    (name, base)
    for name in FILES
    for base in ("fixed", "floating")
    if name not in NOT_FOR_PINOCCHIO
    and (base == "fixed" or name not in (*MASSLESS_WHEN_FLOATING, "declaration"))
]


def test_every_file_has_its_list():
    assert sorted(DEVIATIONS) == FILES


@pytest.mark.parametrize("name", FILES)
def test_one_warning_lists_every_deviation(name):
    path = FIELD / f"{name}.urdf"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ax.load(path)
    expected = DEVIATIONS[name]
    if not expected:
        assert not caught
        return
    (warning,) = caught
    assert warning.category is FileDeviationWarning and warning.filename == __file__
    head, *lines = str(warning.message).split("\n")
    count = f"{len(expected)} deviation" + "s" * (len(expected) != 1)
    assert head == f"{path} was read with {count} (strict=True refuses it)."
    pattern = re.compile(r'  line +(\d+)  \[((?:[^]"]|"[^"]*")*)\] .+ -> (.+)')
    found = [pattern.fullmatch(line).groups() for line in lines]
    assert [(int(line), place, done) for line, place, done in found] == expected
    assert [fault.line for fault in warning.message.deviations] == [e[0] for e in expected]


@pytest.mark.parametrize("name", FILES)
def test_strict_reading_refuses_all_of_them_at_once(name):
    path = FIELD / f"{name}.urdf"
    if not DEVIATIONS[name]:
        ax.load(path, strict=True)
        return
    with pytest.raises(ax.MechanismError) as caught:
        ax.load(path, strict=True)
    assert [fault.line for fault in caught.value.faults] == [e[0] for e in DEVIATIONS[name]]
    assert "->" not in str(caught.value)


@pytest.mark.parametrize(("name", "base"), COMPARED)
def test_pinocchio_reads_the_same_robot(name, base):
    robot = Robot(FIELD / f"{name}.urdf", base)
    for quantity in QUANTITIES:
        assert relative_error(*getattr(robot, quantity)()) < TOLERANCE, quantity


@pytest.mark.parametrize("name", MASSLESS_WHEN_FLOATING)
def test_where_nothing_resists_a_motion_pinocchio_has_no_inertia_either(name):
    path = FIELD / f"{name}.urdf"
    with pytest.warns(FileDeviationWarning):
        bot = ax.load(path, base="floating")
    with pytest.warns(PlausibilityWarning, match="nothing resists the motion of"):
        bot.derive()
    robot = Robot(path, "floating")
    M = robot.mass_matrix()[1]
    assert abs(np.linalg.eigvalsh(M)).min() < 1e-15 * abs(M).max()
    for quantity in QUANTITIES[:-1]:
        assert relative_error(*getattr(robot, quantity)()) < TOLERANCE, quantity
    with pytest.raises(ax.MechanismError, match="nothing resists the motion of"):
        robot.direct_dynamics()


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("seed", range(8))
def test_nearly_parallel_axes_and_few_digits(seed, base, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(rounded_robot(seed))
    robot = Robot(path, base, seed)
    for quantity in QUANTITIES:
        assert relative_error(*getattr(robot, quantity)()) < TOLERANCE, quantity


def test_a_joint_without_an_axis_is_fixed():
    with pytest.warns(FileDeviationWarning):
        bot = ax.load(FIELD / "axes.urdf")
    joints = {connection.name: connection.joint for connection in bot.connections}
    assert joints["nowhere"] == ax.Fixed()
    assert "nowhere" not in [drive.name for drive in bot.drives]
    assert [len(c.speeds) for c in bot.connections] == [0, 1, 1, 1, 0]


def test_extensions_of_other_programs():
    with pytest.warns(FileDeviationWarning):
        bot = ax.load(FIELD / "extensions.urdf")
    weld, ball = bot.connections
    assert (weld.parent, ball.joint, ball.at) == ("ground", ax.Spherical(), (0.4, 0, 1))
    assert bot.bodies[1].com == (0, 0, -0.3)


def test_motors_of_a_gripper_are_on_the_joints_that_lead():
    with pytest.warns(FileDeviationWarning):
        bot = ax.load(FIELD / "gripper.urdf")
    assert [d.name for d in bot.drives] == ["finger_joint1", "knuckle_joint", "pad_joint"]
    assert [(c.name, c.offset) for c in bot.couplings] == [("finger_joint2", 0), ("tip_joint", 0.1)]
    assert bot.derive().mobility.mobility == 3


@pytest.mark.parametrize("name", FILES)
def test_all_of_it_becomes_toml(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bot = ax.load(FIELD / f"{name}.urdf", base="floating" if name == "gripper" else None)
    bot.save(tmp_path / "robot.toml")
    assert ax.load(tmp_path / "robot.toml") == bot
