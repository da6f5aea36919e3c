"""The formulations of the sources against the default one, on everything that they accept."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axode as ax
from axode import gallery
from axode.symbolic.formulations.spatial_operators import Base, SpatialOperatorFormulation
from laws.cases import FOR_LOOPS, ROUNDING, SOLVED, Case, agree, case_of, gallery_case
from laws.test_formulations import compare_terms as compare
from random_mechanisms import MECHANISMS, random_loop, random_tree, random_vehicle
from variants import slow, some

EXAMPLES = 2  # seeds that hypothesis draws: each mechanism is derived once a formulation
SIX_LEGS = ("six_legged_platform", "flight_simulator", "gough_stewart", "dietmaier_platform")
LARGE = (*SIX_LEGS, "delta_robot", "planar_3rrr", "platform_3rps", "agile_eye")
SEEDS = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize("name", some(gallery.NAMES, *LARGE))
def test_the_gallery_agrees(name):
    case = gallery_case(name)
    refusing = FOR_LOOPS if not case.mechanism.loops else () if name in SIX_LEGS else ("legs",)
    for formulation in ("virtual_work", "spatial_operators", *FOR_LOOPS):
        if formulation in refusing:
            with pytest.raises(ax.NotApplicable):
                case.by(formulation)
        else:
            compare(case, formulation)


# virtual work ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_virtual_work_takes_every_mechanism_and_agrees(name):
    compare(case_of(name), "virtual_work")


@pytest.mark.parametrize("make", [random_loop, random_vehicle])
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_virtual_work_agrees_on_any(make, seed):
    compare(Case(make(np.random.default_rng(seed)), seed), "virtual_work")


@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_virtual_work_agrees_on_any_tree(seed):
    compare(Case(random_tree(np.random.default_rng(seed), 3), seed), "virtual_work")


# spatial operators -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n != "massless_coupler"])
def test_spatial_operators_agree(name):
    compare(case_of(name), "spatial_operators")


@pytest.mark.parametrize("make", slow([random_loop, random_vehicle], random_vehicle))
@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_spatial_operators_agree_on_any(make, seed):
    compare(Case(make(np.random.default_rng(seed)), seed), "spatial_operators")


@settings(max_examples=EXAMPLES)
@given(seed=SEEDS)
def test_spatial_operators_agree_on_any_tree(seed):
    compare(Case(random_tree(np.random.default_rng(seed), 3), seed), "spatial_operators")


def test_spatial_operators_refuse_a_tree_without_inertia():
    with pytest.raises(ax.NotApplicable, match="rod"):
        MECHANISMS["massless_coupler"]().derive("spatial_operators")


@pytest.mark.parametrize("name", ["platform", "balancer", "disk_on_plate", "loop_cylindrical"])
def test_operators_move_tips_as_the_rows_say(name):
    """A~ J is the constraint matrix, and the six steps add up."""
    case = case_of(name)
    by = SpatialOperatorFormulation(case.system)
    steps = by.six_steps
    B, beta = by.closure
    for state in case.states:
        agree(*case.at(state, B, case.system.A), ROUNDING, "B")
        left, right = case.at(state, B @ steps.total, -beta)
        agree(left, right, SOLVED, "closure")
        agree(*case.at(state, steps.free + steps.error, steps.total), ROUNDING, "sum")
        compliance, A_t = case.at(state, steps.compliance, by.annihilator)
        direct = case.at(state, B)[0]
        M = case.at(state, by.mass_matrix)[0]
        agree(A_t @ compliance @ A_t.T, direct @ np.linalg.solve(M, direct.T), SOLVED, "Lambda")


def test_arms_on_a_moving_base():
    """An arm on a free body needs the joint forces that it needs on a base moved likewise."""

    def arm_on(joint):
        bot = ax.Mechanism("arm on a base")
        parent = bot.ground
        if joint is not None:
            parent = bot.add_body("base", mass=5.0, com=(0.1, 0, 0), inertia=(0.3, 0.2, 0.4))
            bot.add_joint("free", joint, parent=bot.ground, child=parent)
        for i, kind in enumerate((ax.Revolute("y"), ax.Prismatic("x"), ax.Universal("x", "z"))):
            body = bot.add_body(f"link{i}", mass=1.0, com=(0.1, 0.02, 0), inertia=(0.1, 0.2, 0.25))
            bot.add_joint(f"joint{i}", kind, parent=parent, child=body, at=(0.2, 0.1, 0.3))
            parent = body
        return bot.derive().system

    fixed, free = arm_on(None), arm_on(ax.Floating())
    rng = np.random.default_rng(5)
    q, v, v_dot = rng.normal(size=(3, 4))
    V, V_dot = rng.normal(size=(2, 6))  # body axes, which stand along the world's
    turning = np.cross(V[:3], V[3:])
    alpha = V_dot + np.array([0, 0, 0, turning[0], turning[1], turning[2] + 9.81])
    ops = SpatialOperatorFormulation(fixed).on_base(Base(V=ca.SX(V), alpha=ca.SX(alpha)))
    need = ops.mass_matrix @ ca.SX(v_dot) + ops.required
    mine = ca.Function("f", [fixed.tree.q, fixed.tree.v], [need])(q, v)
    whole = SpatialOperatorFormulation(free).tree_forces(ca.SX(np.concatenate([V_dot, v_dot])))
    there = ca.Function("f", [free.tree.q, free.tree.v], [whole])(
        np.concatenate([[1, 0, 0, 0, 0, 0, 0], q]), np.concatenate([V, v])
    )
    assert free.tree.speed_names[6:] == fixed.tree.speed_names
    agree(np.array(mine), np.array(there)[6:], ROUNDING, "joint forces")
