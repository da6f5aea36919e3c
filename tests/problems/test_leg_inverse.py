"""Driven coordinates of poses, leg by leg: against assembled models and closed forms."""

import math

import numpy as np
import pytest

import axode as ax
from axode.kinematics.workspaces.closed_form import closed_form_legs
from axode.kinematics.workspaces.pose_arguments import home_coordinates
from axode.numerics.rotations import from_angles, from_quaternions, to_angles
from tests.problems.small_parallel_robots import (
    BASES,
    TOPS,
    known_robot,
    mixed_legs,
    three_rpr,
    three_rps,
)
from variants import further, slow, some

ROBOTS = {
    "flight_simulator": "spatial",
    "three_legs_with_knees": "spatial",
    "delta_robot": "translational",
    "three_rpr": "planar",
    "three_rrr": "planar",
    "spherical_rrr": "spherical",
    "three_rps": "restricted",
    "five_bar": "point",
}


@pytest.fixture(scope="module")
def simulator():
    return known_robot("flight_simulator")


def output_poses(robot, q):
    return robot.model.poses(q)[..., robot.model.bodies.index(robot.output), :, :]


def apart(values, expected, name):
    """Distance of two values, of angles up to whole turns."""
    gap = np.abs(values - expected)
    return gap if name.startswith("l") else np.abs((gap + math.pi) % (2 * math.pi) - math.pi)


@pytest.mark.parametrize(
    "name", slow(some(ROBOTS, "three_legs_with_knees", "three_rpr"), "delta_robot")
)
def test_driven_coordinates_of_assembled_states_come_back(name):
    robot, kind = known_robot(name), ROBOTS[name]
    motion = closed_form_legs(robot).motion
    assert motion.kind == kind
    rng = np.random.default_rng(4)
    near = {c: robot.model.home[robot.model.coordinates.index(c)] for c in robot.driven}
    asked = {c: value + 0.1 * rng.uniform(-1, 1, 4) for c, value in near.items()}
    states = [
        ax.assemble(robot.model, {c: float(v[k]) for c, v in asked.items()}) for k in range(4)
    ]
    q = np.array([state.q for state in states])
    poses = output_poses(robot, q)
    given = poses
    if kind in ("restricted", "point"):
        angles = to_angles(poses[:, :3, :3])
        known = dict(zip("xyz", poses[:, :3, 3].T, strict=True))
        known |= dict(zip(("roll", "pitch", "yaw"), angles.T, strict=True))
        given = {n: known[n] for n in motion.names}
    found = robot.inverse(given)
    for c in robot.driven:
        expected = q[:, robot.model.coordinates.index(c)]
        assert apart(found[c], expected, c).max() < 1e-10


@pytest.mark.parametrize(
    ("legs", "seed"),
    [
        ("USR* UP*S R*US", 1),
        further("USP* UR*S P*US SP*U R*US UR*S", 2),
        further("SR*U P*SU R*US UP*S SP*U UR*S", 3),
    ],
)
def test_legs_may_be_of_any_kind(legs, seed):
    robot = ax.Kinematics(mixed_legs(legs, seed))
    rng = np.random.default_rng(seed)
    for _ in range(3):
        asked = {name: float(rng.uniform(-0.05, 0.05)) for name in robot.driven}
        q = ax.assemble(robot.model, asked).q  # with the nearest values where these do not close
        found = robot.inverse(output_poses(robot, q), branch="all")
        for name in asked:
            value = q[robot.model.coordinates.index(name)]
            assert np.nanmin(np.abs(found[name] - value)) < 1e-9


def test_poses_may_be_given_in_any_form(simulator):
    rng = np.random.default_rng(1)
    r, rpy = rng.uniform(-0.1, 0.1, (5, 3)), rng.uniform(-0.2, 0.2, (5, 3))
    r[:, 2] += 1.0
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    named = simulator.inverse(dict(zip(names, np.column_stack([r, rpy]).T, strict=True)))
    R = from_angles(rpy)
    matrices = np.zeros((5, 4, 4))
    matrices[:, :3, :3], matrices[:, :3, 3], matrices[:, 3, 3] = R, r, 1.0
    half = rpy[:, 2] / 2
    for other in (matrices, (r, rpy), (r, R)):
        again = simulator.inverse(other)
        assert all(np.abs(again[n] - named[n]).max() < 1e-14 for n in simulator.driven)
    turn = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)
    assert np.abs(from_quaternions(2 * turn) - from_angles(rpy * [0, 0, 1])).max() < 1e-15
    assert np.abs(to_angles(R) - rpy).max() < 1e-14
    assert simulator.inverse({"z": 1.1})["l_I"].shape == ()
    assert simulator.inverse({"z": np.ones((2, 3))})["l_I"].shape == (2, 3)


def test_lengths_of_planar_legs_are_distances():
    robot = ax.Kinematics(three_rpr(home=(0.1, 0.05, 0.3)))
    found = robot.inverse({"x": 0.2, "y": -0.1, "yaw": 0.4})
    c, s = math.cos(0.4), math.sin(0.4)
    for k, ((a, b), (u, v)) in enumerate(zip(BASES, TOPS, strict=True)):
        length = math.hypot(0.2 + c * u - s * v - a, -0.1 + s * u + c * v - b)
        assert found[f"l{k}"] == pytest.approx(length, abs=1e-14)


def test_both_solutions_of_a_leg_close_it_and_meet_where_it_is_stretched():
    crank, rod = 0.6, 0.75
    robot = known_robot("three_rrr")
    both = robot.inverse({"x": [0.05, 5.0], "y": 0.02, "yaw": 0.1}, branch="all")
    assert both["theta0"].shape == (2, 2)
    assert np.isnan(both["theta0"][1]).all()
    c, s = math.cos(0.1), math.sin(0.1)
    for k, ((a, b), (u, v)) in enumerate(zip(BASES, TOPS, strict=True)):
        tip = np.array([0.05 + c * u - s * v, 0.02 + s * u + c * v])
        for angle in both[f"theta{k}"][0]:
            elbow = np.array([a + crank * math.cos(angle), b + crank * math.sin(angle)])
            assert np.linalg.norm(tip - elbow) == pytest.approx(rod, abs=1e-14)
    # the first leg stretched along its own line, by a little less and a little more
    (a, b), (u, v) = BASES[0], TOPS[0]
    for gap, reached in ((-1e-9, True), (1e-9, False)):
        x = a + (crank + rod + gap) - u
        found = robot.inverse({"x": x, "y": b - v, "yaw": 0.0}, branch="all")["theta0"]
        assert np.isfinite(found).all() == reached
        if reached:
            assert np.abs(found).max() < 1e-4


def test_assembly_at_the_driven_coordinates_gives_the_pose(simulator):
    pose = {"x": 0.05, "y": -0.08, "z": 1.07, "roll": 0.1, "pitch": -0.12, "yaw": 0.2}
    lengths = {name: float(value) for name, value in simulator.inverse(pose).items()}
    state = ax.assemble(simulator.model, lengths)
    got = output_poses(simulator, state.q)
    assert np.abs(got[:3, 3] - [0.05, -0.08, 1.07]).max() < 1e-9
    assert np.abs(to_angles(got[:3, :3]) - [0.1, -0.12, 0.2]).max() < 1e-9


def test_direct_and_inverse_undo_each_other():
    robot = known_robot("three_rpr")
    pose = {"x": 0.1, "y": -0.05, "yaw": 0.2}
    lengths = robot.inverse(pose)
    modes = robot.direct({name: float(value) for name, value in lengths.items()})
    places = np.column_stack([modes.poses[:, :2, 3], to_angles(modes.poses[:, :3, :3])[:, 2]])
    assert np.abs(places - list(pose.values())).max(axis=1).min() < 1e-10
    again = robot.inverse(modes.poses)
    for name, value in lengths.items():
        assert np.abs(again[name] - value).max() < 1e-10


def test_planes_may_have_any_direction():
    flat = known_robot("three_rpr")
    tilted = ax.Kinematics(three_rpr(rotation=(0.3, -0.4, 0.5)))
    motion = closed_form_legs(tilted).motion
    assert motion.names == ("u", "v", "turn")
    R = from_angles(np.array([0.3, -0.4, 0.5]))
    own = from_angles(np.array([0.0, 0.0, 0.25]))
    r = np.array([0.1, 0.2, 0.0])
    one, two = flat.inverse((r, own)), tilted.inverse((R @ r, R @ own))
    assert all(abs(one[name] - two[name]) < 1e-13 for name in flat.driven)
    u, v = (float(axis @ R @ r) for axis in motion.in_plane)
    home = home_coordinates(motion)["turn"]
    three = tilted.inverse({"u": u, "v": v, "turn": home + 0.25})
    assert all(abs(one[name] - three[name]) < 1e-13 for name in flat.driven)
    ws = tilted.workspace(limits={"l0": (0.4, 0.9)}, grid=40)
    assert abs(ws.size - math.pi * (0.9**2 - 0.4**2)) < 4 * ws.size_error < 0.03


def test_axes_that_nearly_meet_are_not_taken_for_a_ball():
    """A leg with an elbow whose base axes miss each other by five micrometres."""
    for gap, meets in ((0.0, True), (5e-6, False)):
        arm = ax.Mechanism("leg")
        for k, (axis, at) in enumerate(
            (("z", 0.0), ("y", gap), ("x", 0.0), ("y", 0.5), ("y", 0.6), ("x", 0.0))
        ):
            arm.add_body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
            parent = arm.ground if k == 0 else f"link{k - 1}"
            place = (at, 0, gap) if k == 1 else (at, 0, 0)
            arm.add_joint(f"q{k}", ax.Revolute(axis), parent=parent, child=f"link{k}", at=place)
        arm.set_home(q1=-0.5, q3=1.0)
        robot = ax.Kinematics(arm, output="link5", driven=["q3"])
        if meets:
            assert abs(robot.inverse({})["q3"] - 1.0) < 1e-12
        else:
            text = "q3: the passive joints are not two groups of.*axes of revolutes nearly meet"
            with pytest.raises(ax.NotApplicable, match=text):
                robot.inverse({})


def test_poses_that_cannot_be_are_refused(simulator):
    with pytest.raises(ax.UnknownName, match="has no branch 'both'"):
        simulator.inverse({"z": 1.0}, branch="both")
    with pytest.raises(ax.UnknownName, match="has no pose coordinate 'height'"):
        simulator.inverse({"height": 1.0})
    with pytest.raises(ax.InvalidArgument, match="pose: "):
        simulator.inverse({"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(ax.InvalidArgument, match="pose: expected a dictionary of pose coordinates"):
        simulator.inverse([1.0, 2.0])
    with pytest.raises(
        ax.InvalidArgument, match="pose: not numbers: 'home'; expected a dictionary"
    ):
        simulator.inverse("home")
    with pytest.raises(ax.InvalidArgument, match="a position has three numbers"):
        simulator.inverse(([0.0, 1.0], np.eye(3)))
    with pytest.raises(ax.InvalidArgument, match="a rotation is a 3 x 3 matrix, a quaternion"):
        simulator.inverse(([0.0, 0.0, 1.0], [1.0, 2.0]))
    with pytest.raises(ax.InvalidArgument, match=r"no rotation matrix: R R' differs from one"):
        simulator.inverse(([0.0, 0.0, 1.0], 2 * np.eye(3)))
    planar = known_robot("three_rpr")
    with pytest.raises(ax.InvalidArgument, match=r"motion is planar.*give it by x, y, yaw"):
        planar.inverse(([0.0, 0.0, 0.1], np.eye(3)))
    with pytest.raises(ax.InvalidArgument, match=r"motion is translational"):
        known_robot("delta_robot").inverse(([0, 0, -0.5], [0.1, 0, 0]))
    with pytest.raises(ax.InvalidArgument, match=r"motion is spherical"):
        known_robot("spherical_rrr").inverse(([0, 0, 0.1], [0.1, 0, 0]))
    assert np.isnan(simulator.inverse(([0, 0, np.inf], np.eye(3)))["l_I"])


@pytest.mark.slow
def test_whole_poses_of_restricted_motions_are_kept_or_refused():
    """Coordinates that follow from others must not be replaced in silence."""
    robot = known_robot("platform_3rps")
    wanted = robot.inverse({"z": 0.8, "roll": 0.1, "pitch": -0.2})
    postures = robot.direct(wanted)
    assert len(postures) >= 8
    for name, values in robot.inverse(postures.poses).items():
        np.testing.assert_allclose(values, wanted[name], atol=1e-9)
    beside = postures.poses.copy()
    beside[:, 0, 3] += 0.01
    with pytest.raises(ax.InvalidArgument, match=r"motion is restricted.*give it by z, roll, pit"):
        robot.inverse(beside)


def test_legs_without_a_closed_form_are_named():
    arm = ax.Mechanism("arm")
    for k, parent in ((1, "ground"), (2, "link1")):
        arm.add_body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        arm.add_joint(
            f"q{k}", ax.Revolute("y"), parent=parent, child=f"link{k}", at=(0.3 * (k - 1), 0, 0)
        )
    with pytest.raises(ax.NotApplicable, match=r"(?s)one by one.*q1, q2: .*each alone"):
        ax.Kinematics(arm, driven=["q1", "q2"]).inverse({"x": 0.3})
    rods = ax.Kinematics(three_rps(), driven=["l0", "l1"])  # the third leg is free to slide
    with pytest.raises(ax.NotApplicable, match="does not follow from z, roll, pitch by the equat"):
        rods.inverse({"z": 1.0})
    loose = ax.Kinematics(three_rpr(), driven=["base0", "l1", "l2"])
    assert set(loose.inverse({"x": 0.1})) == {"base0", "l1", "l2"}
