"""Platforms leg by leg: agreement, the book's matrices, the acceptance numbers, refusals."""

import json
import math
from dataclasses import replace
from functools import cache
from importlib.resources import files

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.formulations.legs import LegsFormulation
from laws.cases import ROUNDING, SOLVED, Case, agree, case_of
from laws.test_more_formulations import compare
from legged_platforms import GEOMETRY, hanging_legs, leg_geometry, rotation_zyx, six_legs
from random_mechanisms import MECHANISMS, platform
from variants import further, some

OPEN = {
    c["id"]: c
    for c in json.loads(
        (files("axode") / "literature" / "acceptance" / "cases_open.json").read_text()
    )
}


def dressed():
    """Springs, dampers, wrenches, a load on the platform, rotors and a lighter gravity."""
    motor = ax.Motor(gear=2.0, rotor_inertia=ax.Parameter("rotor", 0.02))
    bot = six_legs({"g": 3.7}, base="spherical", tip="universal", held_by="leg", motor=motor)
    load = bot.add_body(
        "load", mass=ax.Parameter("load", 2.0), com=(0.1, 0, 0.2), inertia=(0.1, 0.2, 0.15)
    )
    bot.add_joint(
        "weld", ax.Fixed(), parent="platform", child=load, at=(0, 0.1, 0.1), rotation=(0.2, 0, 0.3)
    )
    bot.add_wrench("push", "load", at=(0.1, 0, 0))
    bot.add_wrench("kick", "lower2", frame="body")
    bot.add_damper("friction", "upper1.joint", coefficient=0.7)
    bot.add_spring("coil", "upper3.joint", stiffness=4.0, rest=0.2)
    bot.add_spring(
        "strut",
        parent="platform",
        child="lower4",
        at=(0, 0, 0.5),
        stiffness=5.0,
        rest=0.3,
        damping=0.4,
    )
    return bot


def three_legs():
    """Two motors a leg."""
    bot = six_legs({key: GEOMETRY[key][::2] for key in ("beta", "pi")}, tip="universal")
    for number in range(3):
        bot.add_motor(f"hip{number}", f"one{number}.joint")
    return bot


PLATFORMS = {
    "6R legs": six_legs,
    "ball, knee, cross": lambda: six_legs(base="spherical", tip="universal"),
    "sliding knees": lambda: six_legs(base="spherical", knee="prismatic", tip="universal"),
    "axes that miss": lambda: six_legs(base="skew"),
    "tree through a leg": lambda: six_legs(held_by="leg"),
    "dressed": dressed,
    "hanging legs": hanging_legs,
    "two motors a leg": three_legs,
    "eight legs": lambda: platform(8),
}


@cache
def platform_case(name):
    return Case(PLATFORMS[name]())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    some(
        PLATFORMS,
        *("ball, knee, cross", "eight legs", "sliding knees", "hanging legs"),
        *("tree through a leg", "two motors a leg"),
    ),
)
def test_legs_agree(name):
    compare(platform_case(name), "legs")


@pytest.mark.parametrize("formulation", ["virtual_work", "spatial_operators"])
@pytest.mark.parametrize("name", [further("6R legs"), "dressed"])
def test_other_formulations_agree_on_platforms(name, formulation):
    compare(platform_case(name), formulation)


def test_legs_take_the_flight_simulator():
    compare(case_of("platform"), "legs")


@pytest.mark.parametrize(
    "name",
    some([n for n in PLATFORMS if n != "eight legs"], "ball, knee, cross", "tree through a leg"),
)
def test_matrices_of_the_book(name):
    """J L = T, Z nu = Y t_M, Lambda the identity, N the common Coriolis matrix, N nu the bias."""
    case = platform_case(name)
    by = LegsFormulation(case.system)
    e = case.equations
    assert all(leg.inverse.closed_form == (name != "axes that miss") for leg in by.legs)
    for state in case.states:
        T, Y, Z, Lambda = case.at(state, by.T, by.Y, by.Z, by.Lambda)
        agree(Y @ T, Z, SOLVED, "T")
        agree(Lambda, np.eye(6), SOLVED, "Lambda")
        N, bias = case.at(state, by.coriolis(), by.bias())
        agree(N, case.at(state, e.C)[0], SOLVED, "N")
        agree(N @ state.nu[:, np.newaxis], bias, SOLVED, "N nu")
        for leg in by.legs:
            J, inverse, L = case.at(state, leg.J, leg.inverse.matrix, leg.L)
            agree(J @ inverse, np.eye(6), SOLVED, "inverse of J")
            agree(J @ L, T, SOLVED, "L")


@pytest.mark.parametrize("name", ["6R legs", "sliding knees", "hanging legs"])
def test_rates_of_the_matrices(name):
    """T_dot and L_dot without differentiating an inverse, against differentiating everything."""
    case = platform_case(name)
    by, tree = LegsFormulation(case.system), case.tree
    state = case.states[0]
    agree(*case.at(state, by.T_dot, tree.time_derivative(by.T)), SOLVED, "T_dot")
    for leg in (by.legs[0], by.legs[4]):
        agree(*case.at(state, by.L_dot(leg), tree.time_derivative(leg.L)), SOLVED, "L_dot")


@pytest.mark.parametrize("name", ["6R legs", further("tree through a leg")])
def test_legs_and_weight_move_the_platform(name):
    """The wrenches of the legs, with the weight, are what the platform's motion needs."""
    case = platform_case(name)
    by = LegsFormulation(case.system)
    t_dot = by.twist_rate(by.forward_dynamics())
    total = by.platform_bodies.weight
    for number, leg in enumerate(by.legs):
        tau = ca.SX.zeros(6)
        tau[3] = case.equations.u[number]
        total += leg.wrench(t_dot, tau)
    top = by.platform_bodies
    need = top.inertia @ t_dot + top.coriolis @ by.t_M
    for state in case.states:
        agree(*case.at(state, total, need), SOLVED, "platform")


def test_axes_that_meet_only_by_a_parameter_are_not_trusted_to():
    system = six_legs(base="skew", miss=ax.Parameter("miss", 0.0)).derive().system
    by, tree = LegsFormulation(system), system.tree
    assert not any(leg.inverse.closed_form for leg in by.legs)
    leg = by.legs[0]
    function = ca.Function("f", [tree.q, tree.parameters], [leg.J @ leg.inverse.matrix])
    for miss in (0.0, 0.1):
        agree(np.array(function(system.home, miss)), np.eye(6), SOLVED, "inverse of J")


# acceptance numbers ------------------------------------------------------------------------------


def of_case(case):
    """The case's platform at its configuration, a wrench on it, and values of expressions."""
    p, state = dict(case["parameters"]), case["state"]
    bot = six_legs(p, state["c_M"], state["rpy_zyx"])
    bot.add_wrench("w_W", "platform")
    equations = bot.derive("legs")
    system = equations.system
    assert equations.independent == tuple(f"upper{k}.joint.rate" for k in range(6))

    def values(expression, nu, nu_dot=(0.0,) * 6, wrench=(0.0,) * 6):
        inputs = [equations.q, equations.nu, equations.nu_dot, equations.u, equations.weights]
        function = ca.Function("f", inputs, [ca.densify(system.at_speeds(expression))])
        u = np.concatenate([np.zeros(6), wrench])
        return np.array(function(system.home, nu, nu_dot, u, np.ones(6)))

    return equations, LegsFormulation(system), values


@pytest.mark.parametrize("key", ["A2-1", further("A2-2")])
def test_inverse_dynamics_of_the_acceptance_cases(key):
    case = OPEN[key]
    equations, by, values = of_case(case)
    e, given = case["expected"], case["input"]
    nu, nu_dot, wrench = given["q_dot"], given["q_ddot"], given["w_W"]
    close = 1e-8
    agree(values(by.t_M, nu).ravel(), e["t_M"], close, "t_M")
    agree(values(by.inertia(), nu), e["M_q"], close, "M(q)")
    phi = values(equations.inverse_dynamics, nu, nu_dot, wrench).ravel()
    agree(phi[:6], e["phi"], close, "phi")
    rest = by.bias() - by.gamma() - by.tau()
    agree(values(rest, nu, wrench=wrench).ravel(), e["bias_Nqd_minus_gravity_minus_TtwW"], close)


def test_matrices_of_the_acceptance_case():
    case = OPEN["A2-3"]
    _, by, values = of_case(case)
    e, still = case["expected"], np.zeros(6)
    agree(values(by.T, still), e["T"], 1e-8, "T")
    agree(values(by.legs[0].L, still), e["L_leg1"], 1e-8, "L_I")
    zeta = np.diag(values(by.Z, still))
    agree(zeta, e["zeta"], 1e-8, "zeta")


def test_u_of_the_book():
    """u = (e5 x s5) x (e6 x s5) from the geometry alone."""
    case = OPEN["A2-3"]
    _, by, values = of_case(case)
    R, c = rotation_zyx(case["state"]["rpy_zyx"]), np.array(case["state"]["c_M"])
    for number, elimination in enumerate(by.eliminations):
        g = leg_geometry(case["parameters"], number, R, c)
        s4, s5 = g["B"] - g["E"], g["B"] - g["P"]
        u = np.cross(np.cross(g["e5"], s5), np.cross(g["e6"], s5))
        agree(values(elimination.u, np.zeros(6)).ravel(), u, ROUNDING, "u")
        zeta = values(elimination.zeta, np.zeros(6))[0, 0]
        agree(zeta, u @ np.cross(g["e4"], s4), ROUNDING, "zeta")
        K22 = [np.cross(g["e4"], s4), np.cross(g["e5"], s5), np.cross(g["e6"], s5)]
        agree(zeta, np.linalg.det(K22), ROUNDING, "det K22")
        y = np.concatenate([-np.cross(c - g["B"], u), u])
        agree(values(elimination.y, np.zeros(6)).ravel(), y, ROUNDING, "y")


# refusals ----------------------------------------------------------------------------------------

REASONS = {
    "arm": "three joints or more",
    "four_bar": "three joints or more",
    "balancer": "rolls",
    "shaken_pendulum": "is prescribed",
    "loop_revolute": "belongs to no leg",
    "tree_1": "both move freely",
    "all_joints_tree": "not on the ground",
}


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n != "platform"])
def test_legs_refuse_what_is_no_platform(name):
    with pytest.raises(ax.NotApplicable, match=REASONS.get(name, "legs from the ground")):
        case_of(name).by("legs")


def test_legs_refuse_a_leg_of_five_freedoms():
    bot = platform(6)
    bot.loops[2] = replace(bot.loops[2], joint=ax.Universal("x", "y"))
    with pytest.raises(ax.NotApplicable, match="5 freedoms"):
        bot.derive("legs")


def test_legs_refuse_a_body_outside_the_legs():
    bot = platform(6)
    bot.add_body("pendulum", mass=1.0, com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("swing", ax.Revolute("x"), parent="platform", child="pendulum")
    with pytest.raises(ax.NotApplicable, match="'pendulum' belongs to no leg"):
        bot.derive("legs")


def test_legs_refuse_a_free_body_without_legs():
    bot = ax.Mechanism("stone")
    bot.add_body("stone", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("free", ax.Floating(), parent="ground", child="stone")
    with pytest.raises(ax.NotApplicable, match="nothing carries 'stone'"):
        bot.derive("legs")


def test_legs_refuse_a_rotor_of_the_free_platform():
    bot = six_legs()
    bot.add_motor("rotor", "free.wz", motor=ax.Motor(rotor_inertia=0.1))
    with pytest.raises(ax.NotApplicable, match="free platform itself"):
        bot.derive("legs")


def test_legs_refuse_a_branching_leg():
    bot = platform(6)
    bot.add_body("flap", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("hinge", ax.Revolute("y"), parent="piston3", child="flap")
    with pytest.raises(ax.NotApplicable, match="does not continue from 'piston3'"):
        bot.derive("legs")


def test_home_of_the_platforms_is_closed():
    for make in (six_legs, hanging_legs):
        system = make().derive().system
        assert system.home.size and math.isclose(np.abs(system.home).sum(), 1.0, abs_tol=1e-9)
