"""Angeles, *Fundamentals of Robotic Mechanical Systems*, chapter 12: rows A-1 to A-20."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import axode as ax
from tests.errata.systems import (
    FAILS,
    LEGS,
    PLATFORM_CENTRE,
    PLATFORM_INERTIA,
    PLATFORM_MASS,
    SLOPE,
    Caster,
    Delta,
    bar_angles,
    bars,
    conforms,
    delta_model,
    error,
    holds,
    judge,
    one_leg,
    six_legs,
    slope,
    twist_map,
)
from tests.textbook.closed_forms import skew

# 12.3: holonomic systems --------------------------------------------------------------------------


def test_A1_gravity_is_missing_from_12_4a():
    """Four-bar: the three joints' own equations, closed by multipliers of the loop."""
    closed, tree = bars(closed=True), bars(closed=False)
    q, nu, u = bar_angles(0.7), np.array([8.0]), np.array([0.5])
    nu_dot = closed.forward_dynamics(q, nu, u)
    rates = closed.joint_speeds(q, nu)
    rates_dot = closed.accelerations(q, nu, nu_dot)
    inertial = tree.mass_matrix(q) @ rates_dot + tree.bias(q, rates)
    applied = tree.input_force(q, u)
    # the part that multipliers cannot supply, whatever they are: A Theta = 0
    Theta = closed.speed_map(q)
    judge(
        Theta.T @ inertial,
        printed=Theta.T @ applied,
        correct=Theta.T @ (applied + tree.potential_force(q)),
    )


# 12.4: the six-legged platform --------------------------------------------------------------------

RATES = np.array([0.7, -0.4, 0.5, 0.9, -0.6, 0.3])
WANTED = np.array([1.0, -2.0, 0.5, 0.8, 1.5, -0.7])
K = 3  # the elbow, joint 4 of a leg


def leg_jacobian(q: np.ndarray, j: int) -> np.ndarray:
    """J_J: columns [e; e x r], r from the joint to the platform's mass centre."""
    model, leg = six_legs(), LEGS[j]
    poses = model.poses(q)
    frame = {name: poses[i] for i, name in enumerate(model.bodies)}
    links = [frame[f"leg{j}_{k}"] for k in range(1, 6)]
    axes = [pose[:3, :3] @ e for pose, e in zip(links, leg.axes, strict=False)]
    axes.append(frame["platform"][:3, :3] @ leg.axes[5])
    points = [pose[:3, 3] for pose in links]
    points.append(points[-1])
    centre = frame["platform"][:3, 3]
    return np.array([[*e, *np.cross(e, centre - o)] for e, o in zip(axes, points, strict=True)]).T


def leg_map(q: np.ndarray, j: int) -> np.ndarray:
    """L_J = J_J^-1 T (12.25): the leg's joint rates for unit elbow rates."""
    return np.linalg.solve(leg_jacobian(q, j), twist_map(six_legs(), q, "platform"))


@cache
def platform_parts() -> dict[str, np.ndarray]:
    """What 12.27 is made of, in the reference posture: stacks over the six legs."""
    model = six_legs()
    q = model.home
    L = np.array([leg_map(q, j) for j in range(6)])
    L_dot = slope(lambda q, _: [leg_map(q, j) for j in range(6)], model, q, RATES)
    inertia, inertia_dot, bias = np.zeros((6, 6, 6)), np.zeros((6, 6, 6)), np.zeros((6, 6))
    gravity = np.zeros((6, 6))
    for j in range(6):  # the sixth link is the platform itself, so a leg has five
        leg, rest, rates = one_leg(j), np.zeros(5), L[j, :5] @ RATES
        inertia[j, :5, :5] = leg.mass_matrix(rest)
        inertia_dot[j, :5, :5] = slope(lambda q, _, m=leg: m.mass_matrix(q), leg, rest, rates)
        bias[j, :5] = leg.bias(rest, rates)
        gravity[j, :5] = leg.potential_force(rest)
    return {
        "L": L,
        "L_dot": L_dot,
        "I": inertia,
        "I_dot": inertia_dot,
        "C theta_dot": bias,
        "gravity": gravity,
    }


def summed(*factors: np.ndarray) -> np.ndarray:
    """Sum over the legs of L_J^T times the rest."""
    L = platform_parts()["L"]
    total = 0
    for j in range(6):
        product = L[j].T
        for factor in factors:
            product = product @ factor[j]
        total = total + product
    return total


def platform_inertia() -> np.ndarray:
    T, M = twist_map(six_legs(), six_legs().home, "platform"), np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = PLATFORM_INERTIA, PLATFORM_MASS * np.eye(3)
    return T.T @ M @ T


def platform_bias() -> np.ndarray:
    """T^T (M_M Tdot + W_M M_M T) q_dot of the platform."""
    model = six_legs()
    q, T = model.home, twist_map(model, model.home, "platform")
    at = model.bodies.index("platform")
    drift = slope(lambda q, nu: model.twists(q, nu)[at], model, q, RATES)
    omega = T[:3] @ RATES
    moment = PLATFORM_INERTIA @ drift[:3] + np.cross(omega, PLATFORM_INERTIA @ omega)
    return T.T @ np.array([*moment, *(PLATFORM_MASS * drift[3:])])


def test_12_9_counts_five_loops_and_six_freedoms():
    """Right as printed: j - l + 1 loops."""
    model = six_legs()
    joints, links = 36, len(model.bodies) + 1
    assert (joints - links + 1, 6 * len(model.bodies) - 5 * joints) == (5, 6)
    assert len(model.independent) == 6


def test_12_34_is_right():
    """Z q_dot = Y t_M with zeta_J, y_J of the spherical joint's annihilator."""
    model = six_legs()
    T = twist_map(model, model.home, "platform")
    for j, leg in enumerate(LEGS):
        e, s4, s5 = leg.axes, leg.E - leg.B, leg.P - leg.B
        r1 = PLATFORM_CENTRE - leg.B
        u = np.cross(np.cross(e[4], -s5), np.cross(e[5], -s5))
        zeta = u @ np.cross(e[3], -s4)
        y = np.array([*-np.cross(r1, u), *u])
        holds(zeta * np.eye(6)[j], y @ T)


def test_12_27_is_right():
    """Inertia and convective terms of platform and legs."""
    model, parts = six_legs(), platform_parts()
    holds(model.mass_matrix(model.home), platform_inertia() + summed(parts["I"], parts["L"]))
    convective = np.einsum(
        "jki,j...k->...i",
        parts["L"],
        np.einsum("jkl,jlm,m->jk", parts["I"], parts["L_dot"], RATES) + parts["C theta_dot"],
    )
    holds(model.bias(model.home, RATES), platform_bias() + convective, SLOPE)


def test_example_12_4_1_inverts_the_leg():
    """The block inverse, with D the cross-product matrix of c_M - o_J1."""
    for j, leg in enumerate(LEGS):
        e, s4, s5 = leg.axes, leg.B - leg.E, leg.B - leg.P
        K11, K12 = e[:3].T, e[3:].T
        K22 = np.array([np.cross(e[3], s4), np.cross(e[4], s5), np.cross(e[5], s5)]).T
        D = skew(PLATFORM_CENTRE - leg.B)
        A, B = np.linalg.inv(K11), np.linalg.inv(K22)
        inverse = np.block([[A - A @ K12 @ B @ D, -A @ K12 @ B], [B @ D, B]])
        holds(np.eye(6), inverse @ leg_jacobian(six_legs().home, j))


def test_A2_the_legs_torques_come_by_the_transpose():
    model, L = six_legs(), platform_parts()["L"]
    torque = np.array([3.0, -1.0, 2.0, 0.5, -2.5, 1.5])
    along = np.eye(6)[K]
    judge(
        model.input_force(model.home, torque),
        printed=sum(L[j] @ along * torque[j] for j in range(6)),
        correct=sum(L[j].T @ along * torque[j] for j in range(6)),
    )


def test_A3_the_actuators_matrix_is_the_identity():
    model, L = six_legs(), platform_parts()["L"]
    found = model.jacobian("input_force", "u", model.home, np.zeros(6))
    judge(
        found,
        printed=np.array([L[j] @ np.eye(6)[K] for j in range(6)]).T,
        correct=np.array([L[j].T @ np.eye(6)[K] for j in range(6)]).T,
    )
    assert error(found, np.eye(6)) < 1e-10


def test_A4_the_legs_maps_are_stacked():
    model, parts = six_legs(), platform_parts()
    whole = np.zeros((36, 36))
    for j in range(6):
        whole[6 * j : 6 * j + 6, 6 * j : 6 * j + 6] = parts["I"][j]
    row, stack = np.hstack(list(parts["L"])), np.vstack(list(parts["L"]))
    assert not conforms(row.T.shape, whole.shape, row.shape)
    assert conforms(stack.T.shape, whole.shape, stack.shape)
    holds(model.mass_matrix(model.home), platform_inertia() + stack.T @ whole @ stack)


def test_A5_the_maps_are_differentiated_not_the_inertia():
    model, parts = six_legs(), platform_parts()
    rates = np.einsum("jkl,l->jk", parts["L"], RATES)
    rest = platform_bias() + np.einsum("jki,jk->i", parts["L"], parts["C theta_dot"])
    judge(
        model.bias(model.home, RATES),
        printed=rest + np.einsum("jki,jkl,jl->i", parts["L"], parts["I_dot"], rates),
        correct=rest + np.einsum("jki,jkl,jlm,m->i", parts["L"], parts["I"], parts["L_dot"], RATES),
        within=SLOPE,
    )


def test_A6_forces_need_accelerations_and_gravity():
    """At one q, q_dot two motions need different forces; gravity of legs and platform counts."""
    model, parts = six_legs(), platform_parts()
    q = model.home
    needed = model.inverse_dynamics(q, RATES, WANTED)
    assert error(model.inverse_dynamics(q, RATES, -WANTED), needed) > 0.01
    printed = model.mass_matrix(q) @ WANTED + model.bias(q, RATES)
    weight = twist_map(model, q, "platform").T @ [0, 0, 0, 0, 0, -9.81 * PLATFORM_MASS]
    weight = weight + np.einsum("jki,jk->i", parts["L"], parts["gravity"])
    judge(needed, printed=printed, correct=printed - weight)


# 12.5.1: conventional wheels ----------------------------------------------------------------------

CASTERS = [(0.7, (3.0, 1.0)), (1.4, (8.0, 6.0)), (-2.0, (-4.0, 5.0))]


@pytest.fixture(params=CASTERS, ids=lambda p: f"psi{p[0]}")
def caster(request: pytest.FixtureRequest) -> Caster:
    return Caster(*request.param)


def test_A7_the_platform_has_coriolis_forces(caster: Caster):
    judge(
        caster.model.coriolis(caster.q, caster.rates),
        printed=caster.coriolis(platform=False),
        correct=caster.coriolis(),
    )


def test_A7_a_steady_turn_needs_far_larger_torques():
    """Circle of 1 m at 1 m/s for the midpoint of the axle, caster settled."""
    k = Caster
    v, omega = -1.0, -1.0
    rates = np.array([v + k.l / 2 * omega, v - k.l / 2 * omega]) / k.r
    ahead = np.arctan2(-(k.a + k.b) * omega, v)
    size = np.hypot(v, (k.a + k.b) * omega)
    psi = next(
        p
        for p in (ahead + np.arccos(k.d * omega / size), ahead - np.arccos(k.d * omega / size))
        if abs(Caster(p, rates).psi_dot) < 1e-12
    )
    turn = Caster(psi, rates)
    needed = turn.model.inverse_dynamics(turn.q, rates, np.zeros(2))
    printed = turn.coriolis(platform=False) @ rates
    holds(needed, turn.coriolis() @ rates)
    assert np.abs(needed).max() > 20 * np.abs(printed).max()


def test_A8_the_bracket_has_barred_factors(caster: Caster):
    judge(
        caster.model.coriolis(caster.q, caster.rates),
        printed=caster.coriolis(barred=False),
        correct=caster.coriolis(),
    )


def test_A8_as_printed_the_power_does_not_balance(caster: Caster):
    """I_dot - 2 C of the model is skew; with the unbarred factors it is not."""
    I_dot = slope(lambda q, _: caster.model.mass_matrix(q), caster.model, caster.q, caster.rates)
    right, wrong = (I_dot - 2 * caster.coriolis(barred=barred) for barred in (True, False))
    size = np.abs(I_dot).max()
    assert np.abs(right + right.T).max() < 1e-8 * size
    assert np.abs(wrong + wrong.T).max() > 1e-4 * size


def test_A9_the_final_vector_mixes_up_an_index(caster: Caster):
    k, nu = caster, caster.rates
    mixed = k.t1_dot[1] * nu[0] + k.t2_dot[1] * nu[1]  # theta_12_dot where theta_21_dot belongs
    change = k.mc * k.r**2 / 4 * k.bar * (mixed - k.t2_dot @ nu)
    correct = k.coriolis() @ nu
    judge(k.model.bias(k.q, nu), printed=correct + change, correct=correct)


def test_A10_why_the_casters_gyroscopic_term_vanishes(caster: Caster):
    """Not because Omega_3 Theta_3 = 0, and not for a wheel without symmetry."""
    Theta3 = twist_map(caster.model, caster.q, "caster")[:3]
    Omega = skew(Theta3 @ caster.rates)
    assert np.abs(Omega @ Theta3).max() > 1e-3
    frame = np.array([caster.e3, caster.f3, [0, 0, 1]]).T
    disk = frame @ np.diag([2.0, 1.0, 1.0]) @ frame.T
    assert np.abs(Theta3.T @ Omega @ disk @ Theta3).max() < 1e-12
    c, s = np.cos(0.6), np.sin(0.6)
    spun = frame @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    unlike = spun @ np.diag([2.0, 0.5, 1.5]) @ spun.T
    assert np.abs(Theta3.T @ Omega @ unlike @ Theta3).max() > 1e-3


def test_A11_two_columns_each(caster: Caster):
    """12.46, 12.50 and Theta_3_dot read as two columns; run together they are one."""
    G3 = -caster.r * np.outer(caster.f3, caster.t1)
    holds(twist_map(caster.model, caster.q, "caster")[3:], G3)
    run_together = -caster.r * (caster.t1[0] + caster.t1[1]) * caster.f3
    assert run_together[:, None].shape != G3.shape
    G4 = caster.d * (
        np.outer(caster.e3, caster.bar) / 2 - caster.rho * np.outer(caster.f3, caster.t1)
    )
    holds(twist_map(caster.model, caster.q, "caster_bracket")[3:], G4)
    turning = caster.bar @ caster.rates
    Theta3_dot = (
        np.outer(caster.e3, caster.t1_dot)
        + turning * np.outer(caster.f3, caster.t1)
        + np.outer([0, 0, 1], caster.t2_dot)
    )
    found = slope(
        lambda q, _: twist_map(caster.model, q, "caster")[:3], caster.model, caster.q, caster.rates
    )
    holds(found, Theta3_dot, SLOPE)


def test_A11_J_c_not_I_c(caster: Caster):
    """The contribution I_c to the 2 x 2 inertia does not fit between two 3 x 3 matrices."""
    Theta3 = twist_map(caster.model, caster.q, "caster")[:3]
    assert not conforms(Theta3.T.shape, (3, 3), caster.model.mass_matrix(caster.q).shape)
    assert conforms(Theta3.T.shape, (3, 3), (3, 3), Theta3.shape)


# 12.5.2: omnidirectional wheels -------------------------------------------------------------------

DELTAS = [(0.4, (3.0, -1.0, 5.0)), (-1.0, (2.0, 2.5, -0.5))]


@pytest.fixture(params=DELTAS, ids=["one", "another"])
def delta(request: pytest.FixtureRequest) -> Delta:
    return Delta(*request.param)


def wheel_share(delta: Delta, i: int) -> np.ndarray:
    T = twist_map(delta.model, delta.q, f"wheel{i}")
    return T.T @ delta.wheel_inertia(i) @ T


def test_A12_the_third_wheels_share(delta: Delta):
    k, squared = delta, delta.lam**2
    K, L, M = k.J + 9 * k.mw * k.r**2, k.J + 3 * k.mw * k.r**2, k.J - 3 * k.mw * k.r**2
    own = k.I / squared + K
    printed = squared * np.array([[L, k.J, k.J], [k.J, L, k.J], [k.J, k.J, own]])
    correct = squared * np.array([[L, M, k.J], [M, L, k.J], [k.J, k.J, own]])
    judge(wheel_share(delta, 2), printed=printed, correct=correct)
    first = squared * np.array([[own, k.J, k.J], [k.J, L, M], [k.J, M, L]])
    holds(wheel_share(delta, 0), first)


def test_the_sums_of_12_5_2_are_right(delta: Delta):
    """alpha, beta, the inverse and 12.79 with its sign."""
    k, squared = delta, delta.lam**2
    alpha = k.I + squared * (k.H + 3 * k.J + 15 * k.mw * k.r**2 + 4 * k.mp * k.r**2)
    beta = squared * (k.H + 3 * k.J - 3 * k.mw * k.r**2 - 2 * k.mp * k.r**2)
    inertia = k.model.mass_matrix(k.q)
    holds(inertia, (alpha - beta) * np.eye(3) + beta)
    inverse = ((alpha + 2 * beta) * np.eye(3) - beta) / ((alpha + beta) * alpha - 2 * beta**2)
    holds(np.linalg.inv(inertia), inverse)
    C = 2 * np.sqrt(3) * squared * (3 * k.mw + k.mp) * k.r**2 * k.omega * k.across
    holds(k.model.coriolis(k.q, k.rates), C)


def test_A13_the_platforms_velocity_turns_the_other_way(delta: Delta):
    k = delta
    found = slope(lambda q, _: twist_map(k.model, q, "platform")[3:], k.model, k.q, k.rates)
    printed = -2 * k.lam * k.mp * k.r * k.omega * k.e.T
    judge(k.mp * found, printed=printed, correct=-printed, within=SLOPE)
    T4 = twist_map(k.model, k.q, "platform")[3:]
    sum_12_74a = 2 * np.sqrt(3) * k.lam**2 * k.mp * k.r**2 * k.omega * k.across
    holds(T4.T @ (k.mp * found), sum_12_74a, SLOPE)


def test_A14_the_other_two_wheels_are_2_and_3(delta: Delta):
    """Wheel i has the cross-product matrix of the vector without its own entry."""
    k = delta
    size = 3 * np.sqrt(3) * k.lam**2 * k.mw * k.r**2 * k.omega
    vectors = size * np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    shares = []
    for i in range(3):
        T_dot = slope(lambda q, _, i=i: twist_map(k.model, q, f"wheel{i}"), k.model, k.q, k.rates)
        shares.append(twist_map(k.model, k.q, f"wheel{i}").T @ k.wheel_inertia(i) @ T_dot)
    holds(shares[0], skew(vectors[0]), SLOPE)
    correct = [skew(vectors[1]), skew(vectors[2])]
    judge(shares[1:], printed=shares[:2], correct=correct, within=SLOPE)


def test_A15_the_twist_holds_a_velocity():
    """A robot at rest away from the origin has no twist."""
    model = delta_model()
    q = np.zeros(len(model.coordinates))
    q[model.coordinates.index("base.x")] = 7.0
    at = model.bodies.index("platform")
    judge(
        model.twists(q, np.zeros(3))[at, 3:5],
        printed=model.poses(q)[at, :2, 3],
        correct=np.zeros(2),
    )
    rates = named_rates(model, q, np.array([3.0, -1.0, 5.0]))
    holds([rates["base.x"], rates["base.y"]], model.twists(q, [3.0, -1.0, 5.0])[at, 3:5])


def named_rates(model: ax.Model, q: np.ndarray, nu: np.ndarray) -> dict[str, float]:
    return dict(zip(model.coordinates, model.rates(q, nu), strict=True))


def test_A16_the_complement_is_tall(caster: Caster):
    """6r x n, and it takes rates: angles in their place do not give the twists."""
    T = twist_map(caster.model, caster.q)
    bodies, speeds = len(caster.model.bodies), len(caster.rates)
    assert T.shape == (6 * bodies, speeds) != (speeds, 6 * bodies)
    angles = np.array([0.3, -0.2])
    judge(
        caster.model.twists(caster.q, caster.rates).ravel(),
        printed=T @ angles,
        correct=T @ caster.rates,
    )


def test_A17_freedom_and_mobility_are_two_numbers(caster: Caster):
    """Two speeds move it; the directions that they and their brackets reach are six of seven."""
    model = caster.model
    assert np.abs(model.residual(caster.q + 0.1)).max() < 1e-12  # all seven are free
    fields = [lambda q, unit=unit: model.rates(q, unit) for unit in np.eye(2)]
    reached = np.array([field(caster.q) for field in fields])
    assert np.linalg.matrix_rank(reached) == len(model.independent) == 2
    own, newest = list(fields), [bracket(*fields)]
    for _ in range(3):
        fields += newest
        newest = [bracket(f, g) for f in own for g in newest]
    reached = np.array([field(caster.q) for field in fields])
    assert np.linalg.matrix_rank(reached, tol=1e-4) == 6 < len(model.coordinates) == 7


def bracket(f: Callable, g: Callable, step: float = 1e-2) -> Callable:
    """Lie bracket of two fields of directions, by central differences."""

    def along(field: Callable, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        h = step / np.linalg.norm(direction)
        return (field(q + h * direction) - field(q - h * direction)) / (2 * h)

    return lambda q: along(g, q, f(q)) - along(f, q, g(q))


def test_A19_what_dissipates_is_added_with_its_own_sign(delta: Delta):
    """delta of 12.8a is a force, so that its power is negative; 12.77 prints its opposite."""
    found = delta_model(damping=0.3).dissipative_force(delta.q, delta.rates)
    judge(found, printed=0.3 * delta.rates, correct=-0.3 * delta.rates)
    assert found @ delta.rates < 0.0


def test_A20_a_constant_inertia_drops_no_gyroscopic_term():
    """A free body on its own axes: T^T M T is constant, T^T W M T is not zero."""
    mechanism = ax.Mechanism("top")
    moments = np.diag([1.0, 2.0, 2.5])
    body = mechanism.add_body("body", mass=1.0, inertia=moments)
    mechanism.add_joint("ball", ax.Spherical(), parent=mechanism.ground, child=body)
    model, nu = mechanism.derive().compile("interpreter"), np.array([0.7, -1.1, 0.4])
    turned = np.array([0.8, 0.0, 0.6, 0.0])
    holds(model.mass_matrix(turned), model.mass_matrix(model.home))
    judge(model.bias(turned, nu), printed=np.zeros(3), correct=np.cross(nu, moments @ nu))


def test_A20_driven_wheels_drop_out_for_their_symmetry(caster: Caster):
    """omega x I_w Theta lies along the heading, to which the columns of Theta are normal."""
    k = caster
    for wheel in ("wheel1", "wheel2"):
        Theta = twist_map(k.model, k.q, wheel)[:3]
        axle = Theta[:, 0] - Theta[:, 0] @ [0, 0, 1] * np.array([0, 0, 1.0])
        axle = axle if np.abs(axle).max() > 0 else Theta[:, 1] * [1, 1, 0]
        axle = axle / np.linalg.norm(axle)
        Omega = skew(Theta @ k.rates)
        disk = k.turn * np.eye(3) + (k.spin - k.turn) * np.outer(axle, axle)
        assert np.abs(Omega @ disk @ Theta).max() > 1e-5
        assert np.abs(Theta.T @ Omega @ disk @ Theta).max() < 1e-15
        lopsided = (
            disk + k.turn * np.outer(axle, [0, 0, 1.0]) + k.turn * np.outer([0, 0, 1.0], axle)
        )
        assert np.abs(Theta.T @ Omega @ lopsided @ Theta).max() < 1e-15  # still in the same plane
        ahead = np.cross([0, 0, 1.0], axle)
        lopsided = disk + k.turn * (np.outer(axle, ahead) + np.outer(ahead, axle))
        assert np.abs(Theta.T @ Omega @ lopsided @ Theta).max() > 1e-4


def test_A18_the_inertia_depends_on_psi_alone(caster: Caster):
    model, here = caster.model, caster.model.mass_matrix(caster.q)
    for name in model.coordinates:
        moved = caster.q.copy()
        moved[model.coordinates.index(name)] += 0.3
        change = error(model.mass_matrix(moved), here)
        assert change > FAILS if name == "caster_bracket" else change < 1e-12
