"""Saha and Angeles, *J. Applied Mechanics* 58, 1991: rows B-1 to B-8."""

import numpy as np
import pytest

from tests.errata.systems import (
    BARS,
    SLOPE,
    Caster,
    Disk,
    G,
    Pendulum,
    bar_angles,
    bars,
    conforms,
    error,
    holds,
    judge,
    slope,
    twist_map,
    wheel_on_a_plank,
)
from tests.textbook.closed_forms import skew

STATES = [(0.3, (0.2, 8.0, 0.5)), (-0.8, (1.0, -3.0, 0.7))]


@pytest.fixture(params=STATES, ids=["leaning", "far over"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return Disk(*request.param)


def gravity(disk: Disk) -> np.ndarray:
    return disk.m * np.cross(-disk.s, [0, 0, -G])


def inertia_about_contact(disk: Disk) -> np.ndarray:
    s = disk.s
    return disk.inertia + disk.m * (s @ s * np.eye(3) - np.outer(s, s))


def test_30_32_and_34_are_right(disk: Disk):
    """T, the inertia about the contact and the moment of gravity."""
    holds(disk.T(disk.q), np.vstack([np.eye(3), skew(disk.s)]))
    turn, model = disk.turn, disk.model
    holds(turn @ model.mass_matrix(disk.q) @ turn.T, inertia_about_contact(disk))
    holds(turn @ model.potential_force(disk.q), gravity(disk))


def test_B1_the_contact_point_moves_too(disk: Disk):
    """T_dot needs the velocity of the geometric contact point, q_dot."""
    c_dot = np.cross(disk.omega, -disk.s)
    contact = slope(lambda q, _: q[4:7] + vector(disk, q), disk.model, disk.q, disk.nu)
    printed = np.vstack([np.zeros((3, 3)), skew(-c_dot)])
    correct = np.vstack([np.zeros((3, 3)), skew(contact - c_dot)])
    judge(disk.T_dot, printed=printed, correct=correct, within=SLOPE)


def vector(disk: Disk, q: np.ndarray) -> np.ndarray:
    """From the centre to the lowest point of the rim, by geometry."""
    n = disk.model.poses(q)[0][:3, 1]
    down = np.array([0.0, 0.0, -1.0]) + n[2] * n
    return disk.R * down / np.linalg.norm(down)


def convective(disk: Disk, printed: bool) -> np.ndarray:
    """C of equation 33, on the right-hand side."""
    s, omega = disk.s, disk.omega
    gyroscopic = -skew(omega) @ disk.inertia
    if printed:
        return gyroscopic - disk.m * np.outer(np.cross(s, omega), s)
    return gyroscopic + disk.m * np.outer(disk.s_dot, s)


def acceleration(disk: Disk, printed: bool) -> np.ndarray:
    force = convective(disk, printed) @ disk.omega + gravity(disk)
    return np.linalg.solve(inertia_about_contact(disk), force)


def test_B2_the_disks_angular_acceleration(disk: Disk):
    judge(
        disk.turn @ disk.model.forward_dynamics(disk.q, disk.nu),
        printed=acceleration(disk, True),
        correct=acceleration(disk, False),
        within=SLOPE,
    )


def test_B2_as_printed_energy_is_not_kept(disk: Disk):
    model = disk.model

    def power(omega_dot: np.ndarray) -> float:
        change = disk.turn.T @ omega_dot  # omega's own axes turn with the disk: no more terms
        return slope(lambda q, nu: model.energy(q, nu).sum(), model, disk.q, disk.nu, change)

    scale = model.energy(disk.q, disk.nu).sum()
    assert abs(power(acceleration(disk, False))) < 1e-7 * scale
    assert abs(power(acceleration(disk, True))) > 1e-3 * scale


def test_B2_does_no_harm_to_straight_rolling():
    """Upright and straight the missing torque m ((q - c) . omega) q_dot is zero."""
    disk = Disk(0.0, (0.0, 5.0, 0.0))
    truth = disk.turn @ disk.model.forward_dynamics(disk.q, disk.nu)
    assert np.abs(truth - acceleration(disk, True)).max() < 1e-9


def test_B3_the_sign_of_the_line_for_M_T_dot():
    """A disk that only tips over: its contact stays, so that q_dot = 0 and B-1 does not matter."""
    disk = Disk(0.3, (0.9, 0.0, 0.0))
    s, omega, m = disk.s, disk.omega, disk.m
    judge(
        m * disk.T_dot[3:],
        printed=-m * skew(np.cross(omega, s)),
        correct=-m * skew(np.cross(omega, -s)),
        within=SLOPE,
    )


def test_B4_the_rolling_body_has_its_own_arm():
    """A ball on a tilting plank: A_i t_i + A_j t_j = 0 with each body's own centre."""
    model = wheel_on_a_plank()
    q, nu = model.home, np.array([0.7, -0.4, 1.1, 0.5])[: len(model.independent)]
    plank, ball = model.twists(q, nu)
    c_i, c_j = np.array([0.2, 0.1, -0.1]), np.array([0.3, 0.05, 0.1])
    contact = np.array([0.3, 0.05, 0.0])
    C_i = skew(c_i - contact)
    far = -C_i @ plank[:3] - plank[3:]
    judge(
        -far, printed=C_i @ ball[:3] + ball[3:], correct=skew(c_j - contact) @ ball[:3] + ball[3:]
    )
    assert np.abs(far).max() > 0.1


def test_B5_inverse_dynamics_at_rest_gives_minus_C():
    """C as in 18, on the right-hand side, from torques that keep the speeds."""
    state = Caster(0.7, (3.0, 1.0))
    model, nu = state.model, state.rates
    T = twist_map(model, state.q)
    T_dot = slope(lambda q, _: twist_map(model, q), model, state.q, nu)
    M, W = masses_and_turning(state)
    C_SA = -T.T @ (M @ T_dot + W @ M @ T)
    keeping = model.inverse_dynamics(state.q, nu, np.zeros(2))
    keeping = keeping + model.potential_force(state.q) + model.dissipative_force(state.q, nu)
    judge(C_SA @ nu, printed=keeping, correct=-keeping, within=SLOPE)


def masses_and_turning(state: Caster) -> tuple[np.ndarray, np.ndarray]:
    """M and W of all bodies in world axes, from the data of the robot."""
    k, model = state, state.model
    own = {
        "platform": (k.mp, np.diag([0.4, 0.3, k.Ip])),
        "wheel1": (k.mw, np.diag([k.spin, k.turn, k.turn])),
        "wheel2": (k.mw, np.diag([k.spin, k.turn, k.turn])),
        "caster": (k.mc, k.mc * k.r**2 / 4 * np.diag([1.0, 2.0, 1.0])),
        "caster_bracket": (k.mb, np.diag([0.0005, 0.0006, k.Ib])),
    }
    size = 6 * len(model.bodies)
    M, W = np.zeros((size, size)), np.zeros((size, size))
    poses, twists = model.poses(state.q), model.twists(state.q, state.rates)
    for i, name in enumerate(model.bodies):
        mass, inertia = own[name]
        R = poses[i, :3, :3]
        at = slice(6 * i, 6 * i + 3)
        M[at, at], W[at, at] = R @ inertia @ R.T, skew(twists[i, :3])
        M[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = mass * np.eye(3)
    return M, W


def test_B6_the_two_conventions_have_opposite_signs():
    """I theta_dd = C theta_d + tau + ...: true for minus Angeles's C, not for his."""
    state = Pendulum(0.3, 0.4, (3.0, 1.0, -0.8))
    model, q, nu = state.model, state.q, state.nu
    torque = np.array([0.1, 0.05])
    inertial = model.mass_matrix(q) @ model.forward_dynamics(q, nu, torque)
    others = (
        model.input_force(q, torque) + model.potential_force(q) + model.dissipative_force(q, nu)
    )
    C = model.coriolis(q, nu)
    judge(inertial, printed=C @ nu + others, correct=-C @ nu + others)


def test_B7_equation_35_needs_its_dot(disk: Disk):
    """In copies without it, I omega stands where I omega_dot belongs."""
    I = inertia_about_contact(disk)
    force = convective(disk, printed=False) @ disk.omega + gravity(disk)
    omega_dot = disk.turn @ disk.model.forward_dynamics(disk.q, disk.nu)
    judge(force, printed=I @ disk.omega, correct=I @ omega_dot, within=SLOPE)


def test_11_counts_of_the_constraint_matrix_are_right():
    """Disk: three rows for six twist components leave three speeds."""
    disk = Disk(*STATES[0])
    A = np.hstack([skew(-disk.s), np.eye(3)])
    T = disk.T(disk.q)
    assert conforms(A.shape, T.shape) and A.shape == (3, 6)
    assert np.abs(A @ T).max() < 1e-12
    assert error(np.linalg.matrix_rank(A), 6 - len(disk.model.independent)) == 0


def test_B8_a_coupling_has_two_bodies():
    """19 with the matrices of 22, for the hinge between two bars."""
    model = bars(closed=False)
    q = bar_angles(0.7)
    first, second, _ = model.twists(q, [1.0, -2.0, 0.5])
    crank, coupler = model.poses(q)[:2]
    hinge = coupler[:3, 3]
    to_i, to_j = (
        pose[:3, 3] + pose[:3, 0] * length / 2 - hinge
        for pose, (_, length) in zip((crank, coupler), BARS.values(), strict=False)
    )
    e, zero = skew(np.array([0.0, 0.0, 1.0])), np.zeros((3, 3))
    A_i = np.block([[-e, zero], [-skew(to_i), -np.eye(3)]])
    A_j = np.block([[e, zero], [skew(to_j), np.eye(3)]])
    judge(np.zeros(6), printed=2 * A_i @ first, correct=A_i @ first + A_j @ second)
