"""Gallery mechanisms of Staicu, of Yesiloglu and others, and of Valencia and others."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axode as ax
from axode.gallery import build
from axode.literature.acceptance.case_runs import Answers
from axode.literature.acceptance.cases import Case, Quantity, load_cases
from axode.mechanism.values.expressions import numeric
from gallery.known import Known, each_check
from laws.cases import gallery_case

OPEN = {case.id: case for case in load_cases() if case.system[0] in "CDE"}
HANGING = {"d": 0.08, "Jx": 0.1556, "Jy": 0.0456}  # the load of the cart, below its axle
KNOWN = {
    "wheeled_pendulum": Known(
        3, 6, 3, 0, 6, 5, "underactuated", 2, {"theta3": 0.8, "theta1_dot": 2.0, "theta2_dot": -1.0}
    ),
    "two_wheeled_cart": Known(
        3,
        6,
        3,
        0,
        6,
        5,
        "underactuated",
        2,
        {"pitch": 0.8, "wheel1_rate": 2.0, "wheel2_rate": 5.0},
        options=HANGING,
    ),
    "cart_of_two_arms": Known(
        3,
        12,
        11,
        0,
        6,
        5,
        "underactuated",
        2,
        {"q1": 0.4, "q2": 0.4, "q1_dot": 0.5},
        name="two_wheeled_cart",
        options={"arms": True, **HANGING},
        spread=0.1,
    ),
    "cooperating_arms": Known(
        3,
        12,
        6,
        2,
        3,
        3,
        "redundantly actuated",
        6,
        {"along": 0.2, "across": -0.3, "F_dot": 0.5},
        spread=0.1,
    ),
    "five_axis_arm": Known(
        5,
        0,
        0,
        0,
        5,
        5,
        "fully actuated",
        5,
        {"theta1_dot": 0.8, "theta3_dot": 0.5, "theta5_dot": 1.0},
    ),
    "six_wheel_platform": Known(
        2, 6, 3, 0, 5, 4, "fully actuated", 2, {"phi_R_dot": 3.0, "phi_L_dot": 1.0}
    ),
    "six_separate_wheels": Known(
        2,
        13,
        7,
        0,
        9,
        4,
        "redundantly actuated",
        6,
        {"v": 0.4, "w": -0.3},
        name="six_wheel_platform",
        options={"separate": True},
    ),
    "mobile_manipulator": Known(
        7,
        6,
        3,
        0,
        10,
        9,
        "fully actuated",
        7,
        {"phi_R_dot": 3.0, "phi_L_dot": 1.0, "theta1_dot": 0.5},
    ),
}


@each_check(KNOWN, long_runs={"cooperating_arms", "cart_of_two_arms"})
def test_known(label: str, check: Callable[[str, Known], None]):
    check(label, KNOWN[label])


# cases --------------------------------------------------------------------------------------------


def test_every_system_has_its_cases():
    wanted = {
        "C1_quasimoro",
        "D2_cooperating_arms",
        "D5_two_wheeled_cart",
        "E1_valencia_arm",
        "E2_valencia_platform",
    }
    assert {case.system for case in OPEN.values()} == wanted


def answers(case: Case, **changes: Any) -> Answers:
    """Of a case with other parameters, states or inputs."""
    return Answers(replace(case, **changes))


def ask(found: Answers, *names: str) -> list[Any]:
    return [found.of(Quantity.of(name)) for name in names]


def pendulum(theta3: float, rates: np.ndarray, p: dict[str, float]) -> tuple[np.ndarray, ...]:
    """Staicu's inertia and bias with gravity, J3 where A33 prints J2."""
    c, s, rho, (w1, w2, w3) = np.cos(theta3), np.sin(theta3), p["rho"], rates
    yaw, J = p["J1"] * c**2 + p["J2"] * s**2, p["J1"] - p["J2"]
    a = p["m"] * p["r"] ** 2
    a11 = a * (3 + rho**2) / 2 + rho**2 * yaw + p["M"] * p["r"] ** 2 / 4
    a12 = -a * rho**2 / 2 - rho**2 * yaw + p["M"] * p["r"] ** 2 / 4
    mrd = p["M"] * p["r"] * p["d"]
    a13 = mrd * c / 2
    A = np.array([[a11, a12, a13], [a12, a11, a13], [a13, a13, p["J3"]]])
    spread, thrown = 2 * rho**2 * J * s * c * (w2 - w1) * w3, -mrd / 2 * s * w3**2
    b = [
        mrd * rho**2 * s * (w1 * w2 - w2**2) + spread + thrown,
        mrd * rho**2 * s * (w1 * w2 - w1**2) - spread + thrown,
        J * rho**2 * s * c * (w1 - w2) ** 2 + p["M"] * p["g"] * p["d"] * s,
    ]
    return A, np.array(b)


def held(y: np.ndarray, torque: float, p: dict[str, float]) -> np.ndarray:
    """theta1_ddot, theta3_ddot and the torque M2 that keeps theta2 still."""
    A, b = pendulum(y[2], y[3:], p)
    unknown = np.column_stack([A[:, 0], A[:, 2], [0.0, -1.0, -1.0]])
    return np.linalg.solve(unknown, torque * np.array([1.0, 0.0, 1.0]) - b)


@pytest.mark.parametrize("released", [False, True], ids=["held", "released"])
def test_pendulum_with_a_wheel_held(released: bool):
    """Manoeuvre 3 by the source's own equations, theta2 held throughout or for a second."""
    case = OPEN["C1-5"]
    p = {**case.parameters, "J3": 0.37, "d": 0.15}
    hold = {"theta2": 0.0} | ({"until": 1.0} if released else {})
    pulse = {"signal": "0.15*sin(pi*t)", "until": 1}
    found = answers(case, parameters=p, input={"M1": pulse, "hold": hold, "t_end": 3.0})

    def rates(t: float, y: np.ndarray, first: bool) -> np.ndarray:
        torque = 0.15 * np.sin(np.pi * t) if first else 0.0
        if first or not released:
            x = held(y, torque, p)
            return np.array([*y[3:], x[0], 0.0, x[1]])
        A, b = pendulum(y[2], y[3:], p)
        return np.array([*y[3:], *np.linalg.solve(A, -b)])

    exact = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    one = solve_ivp(rates, (0, 1), np.zeros(6), args=(True,), dense_output=True, **exact)
    two = solve_ivp(rates, (1, 3), one.y[:, -1], args=(False,), **exact)
    got = ask(found, "theta1@1", "theta2@1", "theta3@1", "theta1", "theta2", "theta3")
    np.testing.assert_allclose(got, [*one.y[:3, -1], *two.y[:3, -1]], rtol=1e-8, atol=1e-11)
    assert ask(found, "M2@0.5") == pytest.approx([held(one.sol(0.5), 0.15, p)[2]], rel=1e-8)
    late = 0.0 if released else held(two.y[:, -1], 0.0, p)[2]
    assert ask(found, "M2") == pytest.approx([late], rel=1e-7, abs=1e-12)


def test_cart_and_pendulum_are_one_robot():
    """The same numbers in both sources' terms, at a state that no open case has."""
    p, theta3, rates, torques = OPEN["C1-1"].parameters, -0.7, (1.0, -2.0, 0.6), (0.3, -0.1)
    state = {"theta3": theta3, "rates": rates, "psi": 1.0}
    mine = answers(OPEN["C1-1"], state=state, input=dict(zip(("M1", "M2"), torques, strict=True)))
    cart = answers(
        OPEN["D5-5"],
        state={
            "psi": 1.0,
            "load_pitch": -theta3,
            "wheel_rates": rates[:2],
            "load_pitch_rate": -rates[2],
        },
        input={"tau1": -torques[0], "tau2": -torques[1]},
    )
    assert p["m"] == OPEN["D5-5"].parameters["mw"]
    th1, th2, th3 = ask(mine, "accelerations")[0]
    (spins, pitch, side) = ask(
        cart, "wheel_spin_acc", "load_pitch_acc", "total_lateral_ground_force"
    )
    np.testing.assert_allclose([*spins, pitch], [th1, th2, -th3], rtol=1e-10)
    assert side == pytest.approx(ask(mine, "multipliers_forward_lateral_yaw")[0][1], rel=1e-10)


def test_cart_of_two_arms_moves_alike():
    """Half of the load on each arm, the grip closed: the accelerations of the plain cart."""
    plain = build("two_wheeled_cart", **HANGING).derive(
        independent=["q1_dot", "q2_dot", "pitch_rate"]
    )
    arms = build("two_wheeled_cart", arms=True, **HANGING).derive()
    one, two = (e.compile("interpreter") for e in (plain, arms))
    state = ax.assemble(one, {"pitch": 0.3})
    torques = [0.4, -0.2]
    wanted = one.forward_dynamics(state.q, state.nu, torques)[:2]
    other = ax.assemble(two, {"q1": 0.3, "q2": 0.3})
    nu_dot = two.forward_dynamics(other.q, other.nu, torques)
    found = dict(zip(two.speed_names, two.accelerations(other.q, other.nu, nu_dot), strict=True))
    np.testing.assert_allclose([found["q1_dot"], found["q2_dot"]], wanted, rtol=1e-9)


def test_arms_with_more_joints_hold_the_load():
    """Four joints an arm leave five freedoms, two two; the load is where it was asked for."""
    for joints, mobility in ((2, 1), (4, 5)):
        bot = build("cooperating_arms", joints=joints)
        assert bot.derive().mobility.mobility == mobility
    model = bot.derive().compile("interpreter")
    home = dict(zip(model.coordinates, model.home, strict=True))
    angles = sum(home[f"theta1{k}"] for k in range(1, 5))
    assert np.cos(angles - home["F"]) == pytest.approx(1.0, abs=1e-12)


def test_arm_keeps_its_energy_in_a_case():
    """The energy of the point masses at the start, still there at the end."""
    case = OPEN["E1-1"]
    p, state = case.parameters, case.state
    found = answers(case, input={"t_end": 3.0})
    l, m = (np.array([p[f"{n}{k}"] for k in (1, 2, 3)]) for n in "lm")
    f, rates = np.cumsum(state["theta"][1:]), np.cumsum(state["theta_dot"][1:])
    reach = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5], [1, 1, 1]]) * l
    x, y = reach @ np.cos(f), reach @ np.sin(f)
    vx, vy = -reach @ (np.sin(f) * rates), reach @ (np.cos(f) * rates)
    masses, yaw = np.array([*m, p["mc"]]), state["theta_dot"][0]
    energy = (masses / 2 * (vx**2 + vy**2 + (x * yaw) ** 2)).sum() + p["Ib"] * yaw**2 / 2
    energy += p["g"] * (masses * y).sum()
    assert ask(found, "energy@0", "energy") == pytest.approx([energy, energy], rel=1e-10)


def test_platform_under_torques_that_vary():
    """Speeds and heading obey the two scalar equations of the differential drive."""
    case = OPEN["E2-5"]
    p = {**case.parameters, "bR": 0.5, "bL": 0.5}
    found = answers(
        case,
        parameters=p,
        input={"tau_R": "3*sin(2*t)", "tau_L": {"signal": "1 + t**2", "until": 1}, "t_end": 2.0},
    )
    mass, turn = (
        p["m"] * p["r"] ** 2 + 2 * p["I1"],
        p["I"] * p["r"] ** 2 + 2 * p["I1"] * p["l"] ** 2,
    )

    def rates(t: float, s: np.ndarray, left: bool) -> list[float]:
        theta, v, w = s[2:]
        R, L = 3 * np.sin(2 * t), (1 + t**2) * left
        R -= p["bR"] * (v + p["l"] * w) / p["r"]
        L -= p["bL"] * (v - p["l"] * w) / p["r"]
        return [
            v * np.cos(theta),
            v * np.sin(theta),
            w,
            p["r"] * (R + L) / mass,
            p["l"] * p["r"] * (R - L) / turn,
        ]

    exact = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
    one = solve_ivp(rates, (0, 1), [0, 0, case.state["theta"], 0, 0], args=(True,), **exact)
    two = solve_ivp(rates, (1, 2), one.y[:, -1], args=(False,), **exact)
    np.testing.assert_allclose(ask(found, "x", "y", "theta", "v", "w"), two.y[:, -1], rtol=1e-8)


# the platform's wheels and the arm on it ----------------------------------------------------------


def test_six_wheels_move_like_two():
    """A third of a side's torque on each of its wheels: the motion of the lumped platform."""
    values = {"bR": 0.4, "bL": 0.5}
    lumped = build("six_wheel_platform", **values).derive(independent=["v", "w"])
    separate = build("six_wheel_platform", separate=True, **values).derive(independent=["v", "w"])
    nu, (right, left) = [0.4, -0.8], (10.0, 8.0)
    wanted = lumped.compile("interpreter").forward_dynamics(None, nu, [right, left])
    torques = [right / 3] * 3 + [left / 3] * 3
    found = separate.compile("interpreter").forward_dynamics(None, nu, torques)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_arm_on_a_heavy_platform_is_the_arm():
    """What does not move does not matter: with a platform of a million tons the arm's own model."""
    arm = gallery_case("five_axis_arm").equations.compile("interpreter")
    heavy = build("mobile_manipulator", m=1e9, I=1e9).derive().compile("interpreter")
    q = np.array([0.3, 0.5, -0.7, 0.4, 0.2])
    nu, torques = np.array([0.8, -0.5, 1.2, -0.9, 0.3]), np.array([1.0, 9.0, 3.0, 0.5, 0.001])
    wanted = arm.forward_dynamics(q, nu, torques)
    names = [f"theta{k}" for k in range(1, 6)]
    found = heavy.forward_dynamics(
        dict(zip(names, q, strict=True)),
        {f"{n}_dot": x for n, x in zip(names, nu, strict=True)},
        {f"tau{k}": x for k, x in enumerate(torques, start=1)},
    )
    np.testing.assert_allclose(found[2:], wanted, rtol=1e-6)


@pytest.mark.slow
def test_arm_pushes_the_platform():
    """Wheels without inertia pass on no force along the track: the common mass centre stays."""
    bot = build("mobile_manipulator", I1=1e-9, g=0.0)
    model = bot.derive().compile()
    run = ax.simulate(
        model,
        2.0,
        start={"theta2": 0.3},
        rtol=1e-11,
        progress=False,
        input={"tau2": "0.2*sin(3*t)", "tau3": "0.1*cos(2*t)"},
    )
    poses = model.poses(np.stack([run[n] for n in model.coordinates], axis=-1)[[0, -1]])
    centre, total = np.zeros(2), 0.0
    for body in bot.bodies:
        mass, place = numeric(body.mass), [numeric(x) for x in body.com]
        pose = poses[:, model.bodies.index(body.name)]
        centre += mass * (pose[:, 0, :3] @ place + pose[:, 0, 3])
        total += mass
    assert abs(run.final["x_c"]) > 1e-3
    assert abs(np.diff(centre)[0]) / total < 1e-8
