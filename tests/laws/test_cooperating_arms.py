"""Arms with a common load in numbers: six steps, load, reduced order and pseudo joints."""

import json
from importlib.resources import files

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.literature.cooperating_arms import Arm, ArmLink, ArmsOfSource, Lump
from axode.symbolic.formulations.operators import Base
from laws.cases import agree

OPEN = {
    c["id"]: c
    for c in json.loads(
        (files("axode") / "literature" / "acceptance" / "cases_open.json").read_text()
    )
}
CARTS = [OPEN[key] for key in ("D5-1", "D5-2", "D5-5")]
TOLERANCE = 1e-9  # relative: a matrix of condition 1e4 is inverted twice


def turn(axis, motion=(0.0, 0.0, 0.0)):
    """One direction of a joint."""
    return np.concatenate([axis, motion])[:, np.newaxis]


# the two-wheeled cart ----------------------------------------------------------------------------


def cart(parameters, state, pseudo="none", *, rolls=True):
    """Two wheels, each an arm from its contact; half of the rod on either.

    Pseudo joints are a lean and a lift at the wheel's centre, or two leans side by side.
    """
    p = parameters
    (x, e, z), r, l = _axes(state["psi"]), p["r"], p["l"]
    rates, pitch, axle = state["wheel_rates"], state["load_pitch"], p["r"] * _axes(0.0)[2]
    yaw_rate = r / l * (rates[1] - rates[0])
    R = np.column_stack(
        [np.cos(pitch) * x - np.sin(pitch) * z, e, np.sin(pitch) * x + np.cos(pitch) * z]
    )
    J = np.diag([p["Jx"], p["Jy"], p["Jz"]]) - p["Mc"] * p["d"] ** 2 * np.diag([1.0, 1.0, 0.0])
    half = Lump(p["Mc"] / 2, axle - p["d"] * R[:, 2], R @ J @ R.T / 2)
    spin = np.outer(e, e)
    wheel = p["Ia"] * spin + p["It"] * (np.eye(3) - spin)
    ball = np.vstack([np.column_stack([x, e, z]), np.zeros((3, 3))])
    arms = []
    for side, rate in zip((0.5, -0.5), rates, strict=True):
        contact = side * l * e
        centre = contact + r * z
        links = [
            ArmLink(
                contact,
                ball,
                [0.0, rate, yaw_rate],
                [Lump(p["mw"], centre, wheel)],
                rolls_at=r * rate * x if rolls else None,
            )
        ]
        if pseudo == "lean and lift":
            links += [ArmLink(centre, turn(x), [0.0]), ArmLink(centre, turn(0 * x, z), [0.0])]
        elif pseudo == "two leans":
            links += [ArmLink(centre, turn(x), [0.0]), ArmLink(centre + 0.1 * e, turn(x), [0.0])]
        links.append(ArmLink(centre, turn(e), [state["load_pitch_rate"] - rate], [half]))
        arms.append(Arm(links, centre))
    return ArmsOfSource(arms, axle, (0.0, 0.0, -p["g"]))


def _axes(psi):
    c, s = np.cos(psi), np.sin(psi)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def expected(case):
    e = case["expected"]
    return np.array(
        [
            *e["arm1_omega_dot_platform_axes"],
            e["arm1_q_ddot"],
            *e["arm2_omega_dot_platform_axes"],
            e["arm2_q_ddot"],
        ]
    )


def torques(case, joints=4):
    zeros = [0.0] * (joints - 1)
    return [*zeros, case["input"]["tau1"], *zeros, case["input"]["tau2"]]


@pytest.mark.parametrize("case", CARTS, ids=lambda c: c["id"])
def test_cart_by_six_steps_and_reduced_order(case):
    arms = cart(case["parameters"], case["state"])
    assert arms.rank_of_closure == case["expected"]["rank_closure_real"] == 5
    assert arms.mobility == case["expected"]["mobility"] == 3
    agree(arms.six_steps(torques(case)).total, expected(case), TOLERANCE, "six steps")
    agree(arms.by_reduced_order(torques(case)), expected(case), TOLERANCE, "reduced order")
    order = arms.reduced_order
    agree(order.R.T @ order.J_r, arms.J, 1e-12, "J = R^T J_r")
    assert len(order.R) == 8  # four directions a wheel, of twelve


def test_dropping_the_redundant_row_gives_the_same():
    case = CARTS[1]  # heads along x, so that lateral is the world's y
    arms = cart(case["parameters"], case["state"])
    regular = [0, 1, 2, 3, 5]
    assert np.linalg.cond(arms.B[regular]) < 1e3 < 1e12 < np.linalg.cond(arms.B)
    steps = arms.six_steps(torques(case), regular)
    agree(steps.total, expected(case), TOLERANCE, "without the lateral row")


@pytest.mark.parametrize("kind", ["lean and lift", "two leans"])
@pytest.mark.parametrize("case", CARTS, ids=lambda c: c["id"])
def test_cart_by_pseudo_joints(case, kind):
    arms = cart(case["parameters"], case["state"], kind)
    found = arms.pseudo_joints(torques(case, 6), [3, 4, 9, 10])
    agree(found.accelerations, expected(case), TOLERANCE, kind)
    assert found.rank == case["expected"]["rank_d4"] == 3
    assert np.linalg.cond(found.d4) > 1e12  # the printed inverse of it does not exist


def test_a_contact_is_no_pivot():
    """Without its own acceleration the arms' accelerations come out wrong."""
    for case in CARTS:
        pivots = cart(case["parameters"], case["state"], rolls=False)
        wrong = pivots.six_steps(torques(case)).total - expected(case)
        assert np.abs(wrong).max() > 0.008


@pytest.mark.parametrize("seed", range(3))
def test_cart_of_arms_is_the_cart_of_wheels(seed):
    """The same cart as a mechanism, at random states."""
    rng = np.random.default_rng(seed)
    p = CARTS[1]["parameters"]
    state = {
        "psi": rng.uniform(-3, 3),
        "load_pitch": rng.uniform(-1, 1),
        "wheel_rates": rng.normal(size=2) * 3,
        "load_pitch_rate": rng.normal(),
    }
    tau = rng.normal(size=2)
    bot = ax.Mechanism("cart", gravity=(0, 0, -p["g"]))
    Md2 = p["Mc"] * p["d"] ** 2
    pole = bot.add_body(
        "pole", mass=p["Mc"], com=(0, 0, -p["d"]), inertia=(p["Jx"] - Md2, p["Jy"] - Md2, p["Jz"])
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for name, y in (("one", p["l"] / 2), ("two", -p["l"] / 2)):
        bot.add_wheel(
            name,
            ax.Rolling(p["r"]),
            on=pole,
            at=(0, y, 0),
            mass=p["mw"],
            motor=True,
            inertia=(p["It"], p["Ia"], p["It"]),
        )
    bot.set_home({"base.z": p["r"]})
    names = ("one.rate", "two.rate", "base.wy")
    model = bot.derive(independent=names).compile("interpreter")
    psi, pitch = state["psi"] / 2, state["load_pitch"] / 2
    q = [
        np.cos(psi) * np.cos(pitch),
        -np.sin(psi) * np.sin(pitch),
        np.cos(psi) * np.sin(pitch),
        np.sin(psi) * np.cos(pitch),
        0,
        0,
        p["r"],
        0.3,
        -0.2,
    ]
    relative = np.array(state["wheel_rates"]) - state["load_pitch_rate"]
    nu_dot = model.forward_dynamics(q, [*relative, state["load_pitch_rate"]], -tau)
    steps = cart(p, state).six_steps([0, 0, 0, tau[0], 0, 0, 0, tau[1]])
    agree(-np.asarray(nu_dot)[:2], steps.total[[3, 7]], TOLERANCE, "joint accelerations")


# two arms with a common load ---------------------------------------------------------------------


def arms_of(case, base=None):
    """Two planar arms of uniform rods."""
    p, e = case["parameters"], case["expected"]
    X, Y, _ = case["state"]["load_X_Y_F"]
    arms = []
    for a in range(2):
        at, angle, links = np.array([a * p["base"], 0.0, 0.0]), 0.0, []
        for k in range(3):
            L, m = p[f"L{k + 1}"], p[f"m{k + 1}"]
            angle += e["theta"][3 * a + k]
            rod = L * np.array([np.cos(angle), np.sin(angle), 0.0])
            lump = Lump(m, at + rod / 2, m * L**2 / 12 * np.eye(3))
            links.append(ArmLink(at, turn((0, 0, 1)), [e["theta_dot"][3 * a + k]], [lump]))
            at = at + rod
        arms.append(Arm(links, at))
    load = Lump(p["mc"], (X, Y, 0.0), p["Jc"] * np.eye(3))
    return ArmsOfSource(arms, (X, Y, 0.0), (0.0, -p["g"], 0.0), load, base)


PLANE = [2, 3, 4]  # about z, along x, along y


def test_two_arms_with_a_load():
    case = OPEN["D2-1"]
    arms, e = arms_of(case), case["expected"]
    theta_dd, alpha, F_t = arms.with_load(case["input"]["tau"])
    agree(theta_dd, e["theta_ddot"], TOLERANCE, "accelerations")
    agree(alpha[PLANE], e["load_acc_alpha_ax_ay"], TOLERANCE, "load")
    agree(F_t.reshape(2, 6)[:, PLANE].ravel(), e["tip_forces_on_load"], TOLERANCE, "tip forces")
    agree(arms.C, e["bias_C"], TOLERANCE, "C")
    agree(arms.M[:3, :3], e["mass_matrix_arm1"], TOLERANCE, "M")


def test_two_arms_with_a_load_that_weighs_nothing():
    case = OPEN["D2-2"]
    arms, e, tau = arms_of(case), case["expected"], case["input"]["tau"]
    steps = arms.six_steps(tau)
    agree(steps.free, e["free_theta_ddot"], TOLERANCE, "free")
    agree(steps.total, e["theta_ddot"], TOLERANCE, "total")
    agree(steps.F_c[PLANE], e["F_c"], TOLERANCE, "F_c")
    agree(steps.tips, arms.J @ steps.free + arms.tip_bias, 1e-12, "tips")
    agree(arms.by_reduced_order(tau), e["theta_ddot"], TOLERANCE, "reduced order")
    agree(arms.with_load(tau)[0], e["theta_ddot"], TOLERANCE, "all at once")


def test_a_load_may_be_shared_between_the_arms():
    """Lumped on the last links in any shares it is the same load."""
    case = OPEN["D2-1"]
    whole, tau = arms_of(case), case["input"]["tau"]
    shared = []
    for arm, share in zip(whole.arms, (0.3, 0.7), strict=True):
        part = Lump(share * whole.load.mass, whole.load.centre, share * whole.load.tensor)
        last = arm.links[-1]
        links = [*arm.links[:-1], ArmLink(last.origin, last.H, last.rates, [*last.lumps, part])]
        shared.append(Arm(links, arm.tip))
    lumped = ArmsOfSource(shared, whole.meet, (0.0, -case["parameters"]["g"], 0.0))
    agree(lumped.six_steps(tau).total, whole.with_load(tau)[0], TOLERANCE, "accelerations")


def test_two_arms_on_a_turning_base():
    """Against a mechanism whose base is led by time."""
    case = OPEN["D2-1"]
    p, e = case["parameters"], case["expected"]
    rate, acceleration = 0.8, -1.3
    bot = ax.Mechanism("arms on a table", gravity=(0, -p["g"], 0))
    bot.add_body("table", mass=1.0, inertia=(1.0, 1.0, 1.0))
    bot.add_joint("turn", ax.Revolute("z"), parent="ground", child="table")
    bot.prescribe("turn", lambda t: rate * t + acceleration / 2 * t**2)
    X, Y, _ = case["state"]["load_X_Y_F"]
    for a in range(2):
        parent, at = "table", (a * p["base"], 0.0, 0.0)
        for k in range(1, 4):
            L, m, name = p[f"L{k}"], p[f"m{k}"], f"link{a}{k}"
            bot.add_body(name, mass=m, com=(L / 2, 0, 0), inertia=(m * L**2 / 12,) * 3)
            bot.add_joint(f"joint{a}{k}", ax.Revolute("z"), parent=parent, child=name, at=at)
            bot.add_motor(f"motor{a}{k}", f"joint{a}{k}")
            parent, at = name, (L, 0.0, 0.0)
    bot.add_body("load", mass=p["mc"], inertia=(p["Jc"],) * 3)
    tips = [arm.tip for arm in arms_of(case).arms]
    sums = np.array(e["theta"]).reshape(2, 3).sum(axis=1)
    for a, name in enumerate(("grip", "grip2")):
        add = bot.add_joint if a == 0 else bot.add_loop
        c, s = np.cos(sums[a]), np.sin(sums[a])
        inward = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])  # of the link, the load upright
        add(
            name,
            ax.Fixed(),
            parent=f"link{a}3",
            child="load",
            at=(p["L3"], 0, 0),
            rotation=inward,
            child_at=tuple(np.asarray(tips[a]) - (X, Y, 0)),
        )
    bot.set_home({f"joint{a}{k}": e["theta"][3 * a + k - 1] for a in range(2) for k in (1, 2, 3)})
    equations = bot.derive()
    tau, v = case["input"]["tau"], [rate, *e["theta_dot"]]
    nu = [v[equations.speeds.index(s)] for s in equations.independent]
    x = ca.substitute(equations.accelerations, equations.nu_dot, equations.forward_dynamics)
    names = [equations.q, equations.nu, equations.u, equations.t]
    v_dot = ca.Function("f", names, [x])([0.0, *e["theta"]], nu, tau, 0.0)
    V, alpha = ([0, 0, value, 0, 0, 0] for value in (rate, acceleration))
    arms = arms_of(case, Base(V=ca.SX(V), alpha=ca.SX(alpha)))
    agree(arms.with_load(tau)[0], np.array(v_dot).ravel()[1:], TOLERANCE, "accelerations")
