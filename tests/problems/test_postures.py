"""Postures: all of them, closed, certified, and the same however the robot is described."""

from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.kinematics.motion_graph import RigidJoint, group_links, lock_joints, motion_graph
from axode.kinematics.polynomials import path_tracker
from axode.kinematics.polynomials.polynomial_family import evaluate_rational
from axode.kinematics.postures.closure_family import closure_family
from axode.kinematics.postures.postures import direct_closure
from axode.symbolic.algebra.spatial import SX, Pose
from posture_robots import (
    arm,
    free_platform,
    gallery_robot,
    hexapod,
    nut,
    planar_platform,
    rounded,
    spatial_four_bar,
    universal_legs,
    wedge,
)
from variants import further

COUNTS = [  # in general, those that are finite, and the real ones at home
    ("five_bar", 2, 2, 2),
    ("planar_3rrr", 6, 6, 2),
    ("agile_eye", 8, 8, 8),
    ("delta_robot", 2, 2, 2),
    pytest.param("dietmaier_platform", 40, 40, 40, marks=pytest.mark.slow),
    further("four_bar", 2, 2, 2),
    further("platform_3rps", 16, 16, 8),
    further("flight_simulator", 40, 28, 8),  # two plane hexagons with three axes of symmetry
    further("six_legged_platform", 40, 28, 8),
    further("gough_stewart", 40, 40, 8),
]
OUTPUTS = {"four_bar": "coupler"}


def robot_of(name):
    return gallery_robot(name, OUTPUTS.get(name))


@pytest.mark.parametrize(("name", "paths", "finite", "real"), COUNTS)
def test_the_gallery_has_all_its_postures(name, paths, finite, real):
    robot = robot_of(name)
    found = robot.direct()
    counts = found.counts
    assert (counts.paths, counts.finite[0], counts.infinite[0]) == (paths, finite, paths - finite)
    assert len(found) == found.number == real
    assert found.certified.all()
    assert found.residual.max() < 1e-12
    assert np.abs(robot.model.residual(found.q)).max() < 1e-12
    assert np.abs(found.q[found.nearest] - robot.model.home).max() < 1e-9
    places = [robot.model.coordinates.index(name) for name in robot.driven]
    assert np.abs(found.q[:, places] - robot.model.home[places]).max() < 1e-12
    apart = np.abs(found.q[:, None] - found.q).max(axis=2) + np.eye(real)
    assert apart.min() > 1e-3


def test_postures_are_states():
    robot = robot_of("five_bar")
    found = robot.direct({"theta1": 1.9})
    assert found.labels == ("+1", "-1")
    other = found["+1" if found.nearest else "-1"]
    assert isinstance(other, ax.State)
    again = ax.assemble(robot.model, other)
    assert np.abs(again.q - other.q).max() < 1e-12
    run = ax.simulate(robot.model, 0.01, start=other, progress=False)
    assert np.abs(run.at(0.0)["theta1"] - 1.9) < 1e-12
    assert [state.q[0] for state in found] == [1.9, 1.9]
    assert found.states.q.shape == (2, 4)
    assert "2 real postures, 2 over the complex numbers" in repr(found)
    assert "nearest home" in repr(found)
    with pytest.raises(ax.InvalidArgument, match=r"no posture has the label '\+3'; there are"):
        found["+3"]


def test_batches_agree_with_single_targets():
    robot = robot_of("planar_3rrr")
    home = dict(zip(robot.model.coordinates, robot.model.home, strict=True))
    first = home["theta1"] + np.array([[0.0, 0.2, -0.2], [0.4, -0.4, 0.1]])
    found = robot.direct({"theta1": first, "theta2": home["theta2"] - 0.1})
    assert found.shape == (2, 3) and found.number.shape == (2, 3)
    assert found.number.sum() == len(found)
    assert "targets" in repr(found)
    for place in np.ndindex(first.shape):
        one = robot.direct({"theta1": first[place], "theta2": home["theta2"] - 0.1})
        part = found.of(*place)
        assert part.labels == one.labels
        assert np.abs(part.q - one.q).max() < 1e-9
    rows = robot.direct(np.array([[home[f"theta{k}"] for k in (1, 2, 3)]] * 2))
    assert rows.shape == (2,)
    table = rows.to_pandas()
    assert len(table) == len(rows) and "phi2" in table


def test_parameters_make_batches_too():
    robot = robot_of("five_bar")
    found = robot.direct(parameters={"l2": [0.3, 0.32, 0.15]})
    assert found.number.tolist() == [2, 2, 0]
    assert found.counts.finite.tolist() == [2, 2, 2]
    options = found.conditions.at(found.target).options
    assert np.abs(robot.model.residual(found.q, **options)).max() < 1e-12
    assert "0 real postures" in repr(found.of(2))


def test_a_rod_between_ball_joints_keeps_its_spin():
    robot = ax.Kinematics(spatial_four_bar(), "rocker", driven=["crank"])
    assert robot.mobility == 2  # the rod spins
    found = robot.direct()
    assert len(found) == found.counts.paths == 2
    assert np.abs(found.q[found.nearest] - robot.model.home).max() < 1e-9


def test_order_of_legs_does_not_matter():
    found = ax.Kinematics(planar_platform((0, 1, 2))).direct()
    other = ax.Kinematics(planar_platform((2, 0, 1))).direct()
    assert len(found) == len(other) >= 2
    for pose in found.poses:
        assert np.abs(other.poses - pose).max(axis=(1, 2)).min() < 1e-9


@pytest.mark.parametrize(
    "name", ["planar_3rrr", *map(further, ("agile_eye", "six_legged_platform"))]
)
def test_rounded_numbers_change_no_counts(name):
    exact, near = robot_of(name).direct(), ax.Kinematics(rounded(ax.gallery.build(name))).direct()
    assert near.counts.finite[0] == exact.counts.finite[0]
    assert len(near) == len(exact)
    assert near.residual.max() < 1e-4  # what the rounded rows that follow from others leave open
    for pose in exact.poses:
        assert np.abs(near.poses - pose).max(axis=(1, 2)).min() < 1e-3


def test_equal_triangles_have_fewer_postures():
    """Cranks turned alike: other solutions are counted, not claimed."""
    found = robot_of("planar_3rrr").direct([0.2 + 2 * k * np.pi / 3 for k in range(3)])
    counts = found.counts
    assert counts.finite[0] == 2 and counts.lost[0] == 0
    assert counts.singular[0] + counts.infinite[0] == 4
    assert "at infinity" in repr(found) or "singular" in repr(found)
    assert len(found) <= counts.finite[0]


@pytest.mark.soak
def test_special_platforms_claim_nothing_false():
    """Legs that share points (6-3), and a planar base and platform."""
    for shared in (True, False):
        robot = ax.Kinematics(hexapod(np.random.default_rng(5), shared))
        found = robot.direct()
        counts = found.counts
        assert counts.lost[0] == 0
        assert counts.finite[0] + counts.singular[0] + counts.infinite[0] == 40
        assert found.residual.max(initial=0.0) < 1e-10
        assert np.abs(found.poses - robot.home_poses["platform"]).max(axis=(1, 2)).min() < 1e-8


def test_home_is_a_root_of_the_polynomials():
    for name in ("planar_3rrr", "agile_eye", "delta_robot", "five_bar"):
        robot = robot_of(name)
        closure = direct_closure(robot)
        x, p = closure.family.seed(np.random.default_rng(3))
        rows = evaluate_rational(closure.family.residual_tape, (list(x), list(p)), complex)
        assert np.abs(rows).max() < 1e-11
        again = closure_family(closure.problem)
        assert again.family.digest == closure.family.digest


# serial robots -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_wrist_doubles_the_ways_of_an_arm():
    robot = ax.Kinematics(arm(wrist=True))
    pose = robot.home_poses[robot.output]
    found = robot.all_inverse(pose)
    assert (found.counts.paths, found.counts.finite[0]) == (8, 8)
    assert len(found) == 4 and found.residual.max() < 1e-12
    reached = robot.model.poses(found.q)[:, -1]
    assert np.abs(reached - pose).max() < 1e-12
    assert np.abs(found.q - robot.model.home).max(axis=1).min() < 1e-9
    assert "q6" in repr(found)


@pytest.mark.soak
def test_a_general_arm_has_sixteen_ways():
    robot = ax.Kinematics(arm(wrist=False))
    poses = np.stack([robot.home_poses[robot.output]] * 2)
    found = robot.all_inverse(poses)
    assert found.counts.paths == 16 and (found.counts.finite == 16).all()
    assert found.residual.max() < 1e-12 and found.certified.all()
    assert np.abs(found.q - robot.model.home).max(axis=1).min() < 1e-9


def test_values_without_posture_give_none():
    """Also where a joint of the output constrains nothing, as the one of a free platform."""
    robot = ax.Kinematics(free_platform())
    none = robot.direct({"l0": 60.0})
    assert (len(none), none.number, none.nearest) == (0, 0, -1)
    with pytest.raises(ax.InvalidArgument, match="'free' has no posture to show for these values"):
        none.plot()
    assert repr(none).startswith("'free': 0 real postures, 6 over the complex numbers")
    some = robot.direct({"l0": [60.0, robot.model.home[robot.model.coordinates.index("l0")]]})
    assert some.number.tolist() == [0, 2]
    assert repr(some) == "Postures of 'free': 2 real postures of 2 targets, 0 to 2 per target"
    alike = robot.direct({"l0": np.full(3, 60.0)})
    assert repr(alike).endswith("0 real postures of 3 targets, 0 per target")


def test_every_posture_has_a_picture(tmp_path):
    robot = robot_of("five_bar")
    figure = robot.direct().plot(save=tmp_path / "modes.png")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["+1", "-1, nearest home"]
    assert (tmp_path / "modes.png").stat().st_size > 5000
    batch = robot.direct({"theta1": [1.9, 40.0]})
    with pytest.raises(ax.InvalidArgument, match=r"of one target, and there are 2; choose one"):
        batch.plot()


# what is refused ---------------------------------------------------------------------------------


def test_driven_values_are_checked():
    robot = robot_of("five_bar")
    with pytest.raises(ax.UnknownName, match="has no driven coordinate 'phi1'"):
        robot.direct({"phi1": 0.1})
    with pytest.raises(ax.InvalidArgument, match="values of theta1: must be finite"):
        robot.direct({"theta1": np.nan})
    with pytest.raises(ax.InvalidArgument, match="expected one value for each of theta1, theta2"):
        robot.direct([1.0, 2.0, 3.0])
    with pytest.raises(
        ax.InvalidArgument, match=r"values: shapes do not go together: theta1 \(2,\)"
    ):
        robot.direct({"theta1": [1.0, 2.0], "theta2": [1.0, 2.0, 3.0]})


def test_wrong_numbers_of_driven_coordinates_are_refused():
    bar = ax.gallery.build("five_bar")
    with pytest.raises(ax.NotApplicable, match=r"unknowns and 1 equations.\n  1 motions are left"):
        ax.Kinematics(bar, driven=["theta1"]).direct()
    with pytest.raises(ax.NotApplicable, match="1 equations too many: name fewer driven"):
        ax.Kinematics(bar, driven=["theta1", "theta2", "phi1"]).direct()
    serial = arm(wrist=True)
    with pytest.raises(
        ax.NotApplicable,
        match="held by fewer than two passive joints, so that nothing decides where it is",
    ):
        ax.Kinematics(serial, driven=[f"q{k}" for k in range(1, 6)]).direct()
    serial.add_joint("shut", ax.Revolute("z"), parent="link6", child=serial.ground)
    robot = ax.Kinematics(arm(wrist=True))
    graph = lock_joints(motion_graph(serial), {f"q{k}": SX(0.0) for k in range(1, 7)})
    closed = replace(graph, rigid=(*graph.rigid, RigidJoint("link6", "ground", Pose.identity())))
    with pytest.raises(ax.InvalidArgument, match=r"locked joints hold .* in a loop, where not all"):
        group_links(closed)
    assert len(robot.direct()) == 1


def test_joints_that_polynomials_cannot_describe_are_refused():
    with pytest.raises(ax.NotApplicable, match="is not driven, and postures of passive screws"):
        ax.Kinematics(nut(), "rod", driven=["crank"]).direct()
    with pytest.raises(ax.NotApplicable, match="cannot be reduced to equations of points and axes"):
        ax.Kinematics(wedge(), "above", driven=["push"]).direct()
    with pytest.raises(ax.NotApplicable, match="would stay unknowns beside the pose of a node"):
        ax.Kinematics(universal_legs()).direct()


def test_all_inverse_needs_a_serial_robot_with_as_many_joints():
    with pytest.raises(ax.NotApplicable, match="has loops; all_inverse takes serial robots"):
        robot_of("five_bar").all_inverse(np.eye(4))
    robot = robot_of("seven_axis_arm")
    with pytest.raises(ax.NotApplicable, match="more joints than a pose needs to reach a pose"):
        robot.all_inverse(robot.home_poses[robot.output])


@pytest.mark.parametrize("unit", [1e-6, 1e9])
def test_postures_do_not_depend_on_the_unit_of_length(unit):
    """What is closed is decided by the size of the mechanism."""
    usual = ax.Kinematics(planar_platform((0, 1, 2))).direct()
    other = ax.Kinematics(planar_platform((0, 1, 2), unit)).direct()
    assert len(usual) == len(other) > 0
    apart = np.abs(other.poses[:, np.newaxis, :3, :3] - usual.poses[:, :3, :3]).max(axis=(2, 3))
    assert apart.min(axis=1).max() < 1e-9


@pytest.mark.slow
def test_empty_batches_have_no_postures():
    robot = robot_of("five_bar")
    found = robot.direct({"theta1": np.zeros((2, 0))})
    assert len(found) == 0 and found.shape == (2, 0)
    assert robot.jacobians({"theta1": np.zeros(0)}).direct.shape[0] == 0
    assert robot.singularities({"theta1": np.zeros(0)}).type.shape == (0,)
    serial = ax.Kinematics(arm(wrist=False))
    assert len(serial.all_inverse(np.zeros((0, 4, 4)))) == 0
    none = ax.inverse_kinematics(serial.model, {"link6": np.zeros((0, 3))})
    assert none.q.shape == (0, 6) and none.reached.shape == (0,)


def test_threads_are_checked():
    with pytest.raises(ax.InvalidArgument, match="threads: must be a whole number > 0"):
        robot_of("five_bar").direct(threads=0)
    with pytest.raises(ax.InvalidArgument, match="threads: must be a whole number > 0"):
        ax.Kinematics(arm(wrist=False)).all_inverse(np.eye(4), threads=0)


def test_paths_in_parts_end_at_the_same_roots(monkeypatch):
    """Between the parts of a batch Ctrl-C is answered."""
    robot = robot_of("five_bar")
    turns = {"theta1": np.linspace(1.5, 2.2, 12)}
    usual = robot.direct(turns)
    monkeypatch.setattr(path_tracker, "PATHS_PER_PART", 5)
    assert np.array_equal(robot.direct(turns).q, usual.q)
