"""Multipliers: the forces that constraints need, and the work they do or do not do."""

import casadi as ca
import numpy as np
import pytest

from axode.symbolic.algebra.spatial import symbolic_scalar
from axode.symbolic.formulations.lagrange import potential_energy
from laws.cases import ROUNDING, SOLVED, agree, case_of
from random_mechanisms import MECHANISMS

TREES = ("tree", "all_joints", "arm", "parametric_arm")
CONSTRAINED = [name for name in MECHANISMS if not name.startswith(TREES)]
RHEONOMIC = ("shaken_pendulum", "driven_five_bar", "steered_plate", "prescribed_yaw", "double_spin")


def all_accelerations(case):
    e = case.equations
    return ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_multipliers_balance_the_uncoupled_bodies(name):
    """U^T (M t_dot + W M t - weights) = B u + Q + A^T lambda, on the book's matrices."""
    case = case_of(name)
    e, tree, forces = case.equations, case.tree, case.system.forces
    book = case.by("complement")._by
    v_dot = all_accelerations(case)
    t_dot = book.U @ v_dot + tree.time_derivative(ca.densify(book.U)) @ tree.v
    momentum_rate = book.M @ t_dot + book.W @ (book.M @ (book.U @ tree.v))
    weights = ca.vertcat(
        *[
            ca.vertcat(ca.SX.zeros(3), symbolic_scalar(b.mass, tree.values) * tree.gravity)
            for b in case.mechanism.bodies
        ]
    )
    weights = ca.vertcat(weights, ca.SX.zeros(book.U.shape[0] - weights.shape[0]))
    springs = potential_energy(case.system) - potential_energy(case.system, springs=False)
    elastic = -(ca.jacobian(springs, e.q) @ tree.N).T
    applied = forces.B @ e.u + forces.dissipative + elastic
    force = book.U.T @ (momentum_rate - weights) - applied
    for state in case.states:
        need, given = case.at(state, force, e.A.T @ e.multipliers)
        agree(given, need, SOLVED, "A^T lambda")


@pytest.mark.parametrize("name", CONSTRAINED)
def test_constraint_forces_do_no_work_on_any_motion_the_rows_allow(name):
    case = case_of(name)
    e = case.equations
    for state in case.states:
        on_free, force = case.at(state, e.Theta.T @ (e.A.T @ e.multipliers), e.multipliers)
        scale = max(1.0, np.abs(force).max())
        agree(on_free / scale, np.zeros_like(on_free), ROUNDING, "generalized constraint force")


@pytest.mark.parametrize("name", CONSTRAINED)
def test_energy_changes_by_inputs_dissipation_and_prescribed_motions_only(name):
    """dE/dt = (B u + dissipation).v + lambda.b: rheonomic forces are the only ones that work."""
    case = case_of(name)
    e, forces = case.equations, case.system.forces
    rate = case.along(e.energy, e.forward_dynamics)
    power = ca.dot(forces.B @ e.u + forces.dissipative, case.tree.v)
    led = ca.dot(e.multipliers, case.system.b)
    for state in case.states:
        E_dot, P, P_led = (case.vector(state, x) for x in (rate, power, led))
        size = max(1.0, np.abs(E_dot).max())
        assert abs(E_dot.sum() - P[0] - P_led[0]) <= SOLVED * size
        assert (abs(P_led[0]) > 1e-6) == (name in RHEONOMIC), "only leading does work"


def test_a_wheel_at_rest_carries_its_weight():
    """Normal forces of a balanced car's wheels add up to its weight."""
    case = case_of("car")
    model = case.equations.compile("interpreter")
    q = model.home
    m = sum(body.mass for body in case.mechanism.bodies)
    touch = [i for i, row in enumerate(model.rows) if row.endswith(".touch")]
    forces = model.multipliers(q, np.zeros(len(model.independent)))[touch]
    agree(forces.sum(), m * 9.81, ROUNDING, "sum of normal forces")
