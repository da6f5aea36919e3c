"""Dexterity, stiffness and clearance of robots."""

import math

import numpy as np
import pytest

import axode as ax
from axode.kinematics.velocities.velocity_jacobians import characteristic_length
from axode.model.model_parts import facts_of
from problems import parallel_robots

LEVEL = {"c_M.x": 0.0, "c_M.y": 0.0, "c_M.z": 1.0, "roll": 0.0, "pitch": 0.0}
PLANE = ("wz", "vx", "vy")


@pytest.fixture(scope="module")
def hexapod():
    return parallel_robots.hexapod()


@pytest.fixture(scope="module")
def five_bar():
    return parallel_robots.five_bar()


# dexterity ----------------------------------------------------------------------------------------


def test_characteristic_length_of_a_wheeled_platform():
    """Angeles, exercise 12.5: half the track at the middle of the axle, less before it."""
    robot = ax.Kinematics(ax.gallery.build("differential_drive"), "body")
    half = 0.2
    for ahead in (0.0, 0.05, 0.15):
        found = robot.dexterity(length="optimal", components=PLANE, at=(ahead, 0, 0))
        assert found.length == pytest.approx(math.sqrt(half**2 - ahead**2), rel=1e-9)
        assert found.condition == pytest.approx(1.0, abs=1e-9)
        assert found.distance == pytest.approx(1.0, abs=1e-9)


def test_characteristic_length_is_the_best(hexapod):
    state = {**LEVEL, "yaw": np.array([0.0, 0.2]), "roll": 0.1}
    best = hexapod.dexterity(state, length="optimal")
    for k in range(2):
        one = {n: v[k] if np.ndim(v) else v for n, v in state.items()}
        for factor in (0.5, 0.97, 1.03, 2.0):
            other = hexapod.dexterity(one, length=factor * best.length[k])
            assert other.condition > best.condition[k]
    usual = hexapod.dexterity(state)
    assert (usual.condition >= best.condition).all()
    assert usual.length[0] == pytest.approx(hexapod.jacobians().length)


def test_characteristic_length_of_a_singular_map():
    turning = [True, False]
    assert np.isnan(characteristic_length([[1.0, 1.0], [1.0, 1.0]], turning))
    lengths = characteristic_length([[[3.0, 0.0], [0.0, 6.0]], [[0.0, 0.0], [0.0, 1.0]]], turning)
    assert lengths[0] == pytest.approx(2.0, rel=1e-9)
    assert np.isnan(lengths[1])


def test_dexterity_shows_its_numbers(hexapod):
    one = hexapod.dexterity(length=0.5)
    assert repr(one).startswith(f"Dexterity: condition {one.condition:.4g}, length 0.5 m, manip")
    two = hexapod.dexterity({"yaw": [0.0, 0.3]})
    assert repr(two).startswith("Dexterity of 2 states: condition ")


def test_condition_is_infinite_at_a_singularity(hexapod):
    found = hexapod.dexterity({**LEVEL, "yaw": math.pi / 2})
    assert np.isinf(found.condition)
    assert found.distance == 0.0


def test_length_is_checked(hexapod):
    with pytest.raises(ax.errors.InvalidArgument, match=r"length: expected a number \[m\] or 'opt"):
        hexapod.dexterity(length="best")


# stiffness ----------------------------------------------------------------------------------------


def test_stiffness_of_a_hexapod_is_that_of_its_legs(hexapod):
    """K = sum of k s s' of the legs' lines, which is J^-T k J^-1."""
    springs = {
        f"l_{leg}": 1e6 * (1 + k) for k, leg in enumerate(("I", "II", "III", "IV", "V", "VI"))
    }
    state = {**LEVEL, "yaw": np.array([0.0, 0.3])}
    found = hexapod.stiffness(state, springs)
    A = hexapod.jacobians(state).direct
    k = np.array(list(springs.values()))
    expected = np.swapaxes(A, -1, -2) @ (k[:, np.newaxis] * A)
    np.testing.assert_allclose(found.stiffness, expected, rtol=1e-8, atol=1e-3)
    np.testing.assert_allclose(found.compliance @ found.stiffness, [np.eye(6)] * 2, atol=1e-8)
    singular = hexapod.stiffness({**LEVEL, "yaw": math.pi / 2}, 1e6)
    assert np.isinf(singular.compliance).all()


def test_stiffness_of_a_robot_with_rigid_directions():
    robot = parallel_robots.translating_upu()
    found = robot.stiffness(springs=1e5)
    np.testing.assert_allclose(found.compliance[:3], 0.0, atol=1e-15)  # it does not turn
    part = robot.stiffness(springs=1e5, components=("vx", "vy", "vz"))
    np.testing.assert_allclose(found.compliance[3:, 3:], part.compliance, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(part.stiffness @ part.compliance, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(found.stiffness[3:, 3:], part.stiffness, rtol=1e-8, atol=1e-3)


def test_springs_in_series(five_bar):
    """One rigid motor, one with a spring; a spring in a passive joint stiffens."""
    J = five_bar.jacobians(components=("vx", "vy")).forward
    one = five_bar.stiffness(springs={"theta1": 50.0}, components=("vx", "vy"))
    np.testing.assert_allclose(one.compliance, np.outer(J[:, 0], J[:, 0]) / 50.0, atol=1e-12)
    both = five_bar.stiffness(springs=50.0, components=("vx", "vy"))
    more = five_bar.stiffness(
        springs={"theta1": 50.0, "theta2": 50.0, "phi1": 10.0}, components=("vx", "vy")
    )
    assert (np.linalg.eigvalsh(both.compliance - more.compliance) > -1e-12).all()
    assert np.trace(more.compliance) < np.trace(both.compliance)


def test_springs_are_checked(five_bar):
    with pytest.raises(ax.errors.UnknownName, match="has no joint 'theta9'"):
        five_bar.stiffness(springs={"theta9": 1.0})
    with pytest.raises(ax.errors.InvalidArgument, match="springs 'theta1': must be finite and > 0"):
        five_bar.stiffness(springs={"theta1": -1.0, "theta2": 1.0})


# clearance ----------------------------------------------------------------------------------------


def test_clearance_finds_the_crossing_between_samples(hexapod):
    """Through Fichter's singularity at yaw = 90 degrees, which no sample meets."""
    model = hexapod.model
    times = np.linspace(0.0, 1.0, 24)
    yaw = 1.2 + 0.7 * times
    q = [ax.assemble(model, {**LEVEL, "yaw": y}).q for y in yaw]
    columns = {name: np.array(q)[:, k] for k, name in enumerate(model.coordinates)}
    run = ax.Trajectory(
        time=times,
        values=np.stack(list(columns.values()), axis=-1),
        names=tuple(columns),
        units=facts_of(model).coordinate_units,
        kinds=dict.fromkeys(columns, "coordinate"),
    )
    found = hexapod.clearance(run)
    crossing = (math.pi / 2 - 1.2) / 0.7
    assert found.closest["parallel"].time == pytest.approx(crossing, abs=1e-4)
    assert found.closest["parallel"].margin < 1e-4 < found.margins.parallel.min()
    assert found.closest["serial"].margin > 0.1
    assert "turns about" in found.closest["parallel"].text
    assert "parallel: " in str(found)


def test_clearance_of_a_batch_of_runs(five_bar):
    model = five_bar.model
    runs = ax.simulate(model, 0.2, start={"theta1_dot": np.array([0.0, 1.0, 2.0])}, save_every=0.02)
    found = five_bar.clearance(runs, components=("vx", "vy"))
    assert found.margins.serial.shape == (3, len(runs.time))
    for kind, one in found.closest.items():
        assert one.margin <= np.nanmin(found.margins[kind]) * (1 + 1e-9)
    alone = five_bar.clearance(runs.run(2), components=("vx", "vy"))
    np.testing.assert_allclose(alone.margins.parallel, found.margins.parallel[2], rtol=1e-9)


def test_clearance_needs_a_run_of_the_robot(hexapod, five_bar):
    with pytest.raises(ax.errors.InvalidArgument, match="run: expected a Trajectory, got"):
        hexapod.clearance([1.0])
    run = ax.simulate(five_bar.model, 0.01)
    with pytest.raises(ax.errors.UnknownName, match="has to be one of 'flight_simulator'"):
        hexapod.clearance(run)
