"""What inputs move and outputs show, laws that balance the whole robot, python-control."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov
from scipy.spatial.transform import Rotation

import axode as ax
from axode.problems.linearize.controllability import controllable
from tests.problems.linear_machines import balancer, cart_pole, gimbal

# ------------------------------------------------------------------- what moves and what shows


def test_at_rest_no_input_moves_a_wheeled_robot_sideways_and_on_its_way_they_do():
    for speed, missing in ((0.0, 3), (0.8, 2)):
        found = ax.linearize(balancer(), {"surge": speed}).controllable
        assert not found and found.rank == 9 - missing
        assert ("base.y" in found.missing) == (speed == 0.0)
    assert str(found) == (
        "controllable: 7 of 9 modes; no input moves base.x - 0.1 base.pitch - "
        "0.05 left - 0.05 right; base.yaw + 0.25 left - 0.25 right "
        "(poles 0 (2 times))"
    )


def test_outputs_that_do_not_show_a_state():
    lin = ax.linearize(cart_pole(), outputs=["lean"])
    assert (lin.observable.rank, lin.observable.missing) == (2, ("rail", "rail.rate"))
    assert ax.linearize(cart_pole(), outputs=["rail"]).observable


def test_rank_agrees_with_the_matrix_of_powers():
    """Kalman's criterion, for systems small enough for it."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        n, m, hidden = 5, 2, int(rng.integers(0, 4))
        A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
        A[n - hidden :, : n - hidden], B[n - hidden :] = 0, 0  # nothing reaches the last ones
        V = np.linalg.qr(rng.normal(size=(n, n)))[0]
        A, B = V @ A @ V.T, V @ B
        powers = np.hstack([np.linalg.matrix_power(A, k) @ B for k in range(n)])
        found = controllable(A, B, [f"x{k}" for k in range(n)])
        assert found.rank == np.linalg.matrix_rank(powers, tol=1e-8) == n - hidden
        assert np.allclose(np.sort_complex(found.poles), _left_poles(A, B), atol=1e-8)


def _left_poles(A, B):
    """Poles whose left eigenvectors are orthogonal to the inputs (Popov, Belevitch, Hautus)."""
    values, vectors = np.linalg.eig(A.T)
    return np.sort_complex(values[np.abs(vectors.T @ B).max(axis=1) < 1e-8])


# ------------------------------------------------------------------------------------ feedback


def test_lqr_solves_the_riccati_equation_and_is_stable():
    lin = ax.linearize(cart_pole())
    Q, R = np.diag([1.0, 2.0, 0.1, 0.1]), np.array([[0.5]])
    K = lin.lqr({"rail": 1, "lean": 2, "rail.rate": 0.1, "lean.rate": 0.1}, R=0.5)
    assert (K.poles.real < 0).all()
    # P from K: the cost of the closed loop, which must give the same K again
    closed = lin.A - lin.B @ K.K
    P = solve_continuous_lyapunov(closed.T, -(Q + K.K.T @ R @ K.K))
    assert np.allclose(np.linalg.solve(R, lin.B.T @ P), K.K)


@pytest.mark.slow
def test_lqr_balances_the_whole_robot():
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    upright = {"theta3": np.pi}
    lin = ax.linearize(model, upright, states=["theta3", "theta3_dot", "surge", "psi", "psi_dot"])
    law = lin.lqr({"theta3": 10, "surge": 1, "psi": 1})
    assert not lin.stable and (law.poles.real < 0).all()
    run = ax.simulate(model, 12.0, start={"theta3": np.pi + 0.25, "psi": 0.4}, input=law)
    for name, end in (("theta3", np.pi), ("surge", 0.0), ("psi", 0.0)):
        assert abs(run.final[name] - end) < 1e-3
    on = ax.simulate(model, 12.0, start=upright, input=law.at({"surge": 0.5, "psi": -1.0}))
    assert on.final["surge"] == pytest.approx(0.5, abs=1e-3)
    assert on.final["psi"] == pytest.approx(-1.0, abs=1e-3)


def test_feedback_reads_small_angles_and_angles_that_turn():
    """Small deviations of a top that hangs from a ball; half a turn away from home."""
    lin = ax.linearize(gimbal(), input="hold")
    assert {"ball.rx", "ball.ry", "ball.rz"} < set(lin.states)
    law = lin.state_feedback(np.eye(6)[[lin.states.index(f"ball.r{a}") for a in "xyz"] + [0, 0, 0]])
    point = lin.point.as_dict()
    for turn in np.eye(3) * 1e-3:
        q = Rotation.from_rotvec(turn).as_quat()
        for sign in (1, -1):  # both quaternions are the same attitude
            moved = dict(zip(("ball.qx", "ball.qy", "ball.qz", "ball.qw"), sign * q, strict=True))
            u = law(point | moved)
            assert np.allclose([u[f"hand.m{a}"] for a in "xyz"], -turn, atol=1e-8)
    lin = ax.linearize(balancer(), {"yaw": 3.0}, states=["yaw", "yaw_rate"])
    law = lin.state_feedback({"left.torque": {"yaw": 1.0}})
    assert law(lin.point.as_dict() | {"base.yaw": -3.2})["left.torque"] == pytest.approx(
        -(2 * np.pi - 6.2)
    )


def test_steps_are_the_exact_flow_with_inputs_held():
    with pytest.warns(ax.errors.NotAnEquilibriumWarning) as warned:
        lin = ax.linearize(cart_pole(), {"lean": 0.1, "rail.rate": 0.3}, input={"push": 1.0})
    assert warned[0].filename == __file__  # the user's line
    dt, x, u = 0.05, np.array([0.1, -0.2, 0.3, 0.1]), np.array([0.7])
    made = lin.discretized(dt)
    many = 4000  # Euler's steps, whose error halves with their length
    y = x.copy()
    for _ in range(many):
        y = y + dt / many * (lin.A @ y + lin.B @ u + lin.drift)
    assert np.allclose(made.A @ x + made.B @ u + made.drift, y, atol=1e-5)
    law = ax.linearize(cart_pole()).discretized(dt).lqr()
    assert (np.abs(law.poles) < 1).all()


def test_python_control_gets_names():
    control = pytest.importorskip("control")
    lin = ax.linearize(balancer(), states=["pitch", "pitch_rate", "surge"])
    made = lin.to_control()
    assert np.allclose(np.sort_complex(made.poles()), lin.poles)
    assert made.state_labels == ["base_pitch", "base_pitch_rate", "base_surge"]
    assert made.input_labels == ["left_torque", "right_torque"]
    K = control.lqr(made, np.eye(3), np.eye(2))[0]
    assert np.allclose(K, lin.lqr().K)


def test_without_python_control_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(ax.errors.NotApplicable, match=r"pip install .*\[control\]"):
        ax.linearize(cart_pole()).to_control()
