"""Displacements by errors: closed forms, Jacobians, and robots that are assembled with errors."""

import numpy as np
import pytest

import axode as ax
from tests.design.designed_robots import POSE, RADII, arm, hexapod, leg_vectors

STATE = dict(zip(POSE, (0.05, -0.02, 0.72, 0.1, -0.05, 0.2), strict=True))
POINT = (0.1, -0.05, 0.2)


def columns(found, start):
    return np.concatenate([g.columns for g in found.groups if g.name.startswith(start)], axis=-1)


def test_errors_of_drives_move_the_platform_by_the_jacobian():
    found = ax.design.error_map(hexapod(), STATE, tolerances={"l*": 1e-4}, at=POINT)
    J = hexapod().jacobians(STATE, at=POINT).forward
    assert found.matrix == pytest.approx(J, abs=1e-11)
    assert found.worst == pytest.approx(1e-4 * np.abs(J).sum(axis=1))
    assert found.root_sum_square == pytest.approx(1e-4 * np.linalg.norm(J, axis=1))


@pytest.mark.slow
def test_a_joint_that_is_off_along_its_leg_acts_as_an_error_of_the_leg():
    """s . v_head = dl + s . d_foot, and the same with the other sign at the head."""
    robot = hexapod()
    found = ax.design.error_map(
        robot, STATE, positions={"u*": 1e-4}, clearances={"ball*": 5e-5}, at=POINT
    )
    J = robot.jacobians(STATE, at=POINT).forward
    vectors, _ = leg_vectors(tuple(STATE.values()), RADII)
    s = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    R = robot.model.poses(ax.assemble(robot.model, STATE).q)[robot.model.bodies.index("platform")]
    for k in range(6):
        at_foot, at_head = columns(found, f"u{k}"), columns(found, f"ball{k}")
        assert at_foot == pytest.approx(np.outer(J[:, k], s[k]), abs=1e-11)
        assert at_head == pytest.approx(-np.outer(J[:, k], s[k] @ R[:3, :3]), abs=1e-11)
    # all feet at worst along their legs, heads too
    assert found.worst == pytest.approx(1.5e-4 * np.abs(J).sum(axis=1))


@pytest.mark.parametrize("name", ["five_bar", "hexapod"])
def test_assembled_robots_with_finite_errors_differ_by_their_square(name):
    """The displacement less E delta is of second order: half the error leaves a quarter."""
    robot = hexapod() if name == "hexapod" else ax.Kinematics(ax.gallery.build(name))
    state = STATE if name == "hexapod" else {"tip.x": 0.05, "tip.y": 0.3}
    sizes = {name: 1e-2 for name in robot.model.parameters}
    found = ax.design.error_map(robot, state, tolerances=sizes, at=POINT)
    before = ax.assemble(robot.model, state)
    held = {name: before[name] for name in robot.driven}
    body = robot.model.bodies.index(robot.output)
    here = robot.model.poses(before.q)[body]
    place = here[:3, :3] @ POINT + here[:3, 3]
    gaps = []
    for h in (1.0, 0.5, 0.25):
        errors = h * 1e-2 * np.resize([1.0, -0.6, 0.8, 0.5], len(sizes))
        p = {n: robot.model.parameters[n] + e for n, e in zip(sizes, errors, strict=True)}
        state = ax.assemble(robot.model, before.q, fix=held, parameters=p)
        there = robot.model.poses(state.q, parameters=p)[body]
        move = there[:3, :3] @ POINT + there[:3, 3] - place
        turn = (
            ((there[:3, :3] @ here[:3, :3].T)[[2, 0, 1], [1, 2, 0]])
            - ((there[:3, :3] @ here[:3, :3].T)[[1, 2, 0], [2, 0, 1]])
        )
        both = np.concatenate([turn / 2, move])
        gaps.append(np.linalg.norm(both - found.matrix @ errors))
        assert np.linalg.norm(both) > 3 * gaps[-1]
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.15)
    assert gaps[1] / gaps[2] == pytest.approx(4.0, rel=0.15)


def test_links_of_an_arm_that_are_too_long_move_its_tip_along_them():
    found = ax.design.error_map(arm(), {"one": 0.4, "two": 0.9}, tolerances={"a": 1e-3, "b": 2e-3})
    along = np.array([[np.cos(0.4), np.cos(1.3)], [np.sin(0.4), np.sin(1.3)]])
    assert found.matrix[3:5] == pytest.approx(along)
    corners = [along @ (1e-3 * np.array([i, 2 * j])) for i in (1, -1) for j in (1, -1)]
    assert found.position == pytest.approx(max(np.linalg.norm(corners, axis=-1)))
    assert found.rotation == pytest.approx(0.0, abs=1e-15)
    batch = ax.design.error_map(arm(), {"two": np.array([0.9, 1.5])}, tolerances={"b": 1e-3})
    assert batch.matrix.shape == (2, 6, 1) and batch.position == pytest.approx([1e-3, 1e-3])
    with pytest.raises(ax.InvalidArgument, match="one state"):
        batch.sample(10)


def test_play_of_hinges_adds_up_and_lies_in_their_plane():
    """Both hinges give way in the plane, wherever the arm is; across it nothing moves."""
    found = ax.design.error_map(arm(), {"two": 0.9}, clearances={"one": 2e-5, "two": 3e-5})
    assert found.position == pytest.approx(5e-5, rel=1e-9)
    assert found.worst == pytest.approx([0, 0, 0, 5e-5, 5e-5, 0], abs=1e-18)
    drawn = found.sample(200, errors="limits")
    assert np.nanmax(drawn.position) <= 5e-5 * (1 + 1e-9)
    assert drawn.deviation < 1e-9 and drawn.rotation.max() < 1e-12


@pytest.mark.slow
def test_no_assembled_platform_leaves_the_worst_case():
    """Thousands of robots with all errors at their limits, but for what is of second order."""
    found = ax.design.error_map(
        hexapod(),
        STATE,
        tolerances={"l*": 2e-5, "base_radius": 1e-4},
        positions={"u*": 5e-5},
        clearances={"ball*": 2e-5},
        at=POINT,
    )
    drawn = found.sample(3000, errors="limits", seed=1)
    assert np.isfinite(drawn.displacement).all()
    assert drawn.deviation < 1e-3 * found.position
    assert drawn.position.max() < found.position and drawn.rotation.max() < found.rotation
    assert drawn.position.max() > 0.4 * found.position  # and the bound is no exaggeration
    assert (np.abs(drawn.displacement).max(axis=0) < found.worst).all()
    assert found.sample(20, seed=1).displacement == pytest.approx(
        found.sample(20, seed=1).displacement, abs=0
    )
    inside = found.sample(500)
    assert np.median(inside.position) < np.median(drawn.position)


def test_nothing_is_known_where_the_motors_do_not_hold_the_platform():
    """Fichter's singularity: turned by a right angle the platform moves with its legs locked."""
    robot = ax.Kinematics(ax.gallery.build("flight_simulator"))
    at = {"c_M.x": 0, "c_M.y": 0, "c_M.z": 1.1, "roll": 0, "pitch": 0}
    yaw = np.array([0.0, np.pi / 2])
    found = ax.design.error_map(robot, {**at, "yaw": yaw}, tolerances={"l_*": 1e-4})
    assert np.isfinite(found.matrix[0]).all() and np.isnan(found.matrix[1]).all()


def test_redundant_constraints_leave_no_room_for_errors_across_them():
    """A planar loop of hinges is overconstrained: a hinge off across the plane would bend it."""
    robot = ax.Kinematics(ax.gallery.build("five_bar"))
    hinge = next(c.name for c in robot.mechanism.connections)
    inside = ax.design.error_map(robot, clearances={hinge: 1e-4})
    assert 1e-5 < inside.position < 1e-2
    with pytest.raises(ax.AxodeError, match=hinge):
        ax.design.error_map(robot, positions={hinge: 1e-4})


def test_mistakes_are_named():
    with pytest.raises(ax.UnknownName, match="length"):
        ax.design.error_map(arm(), tolerances={"length": 1e-3})
    with pytest.raises(ax.UnknownName, match="three"):
        ax.design.error_map(arm(), clearances={"three": 1e-3})
    with pytest.raises(ax.InvalidArgument, match="> 0"):
        ax.design.error_map(arm(), tolerances={"a": -1e-3})
    with pytest.raises(ax.InvalidArgument, match="give tolerances"):
        ax.design.error_map(arm())
    with pytest.raises(ax.InvalidArgument, match="three finite numbers"):
        ax.design.error_map(arm(), tolerances={"a": 1e-3}, at=(0, np.nan, 0))
