"""Inertia, Coriolis matrix, energies, forward and inverse dynamics."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from axode.symbolic.formulations.lagrange import kinetic_energy, potential_energy
from laws.cases import ROUNDING, SOLVED, agree, case_of
from random_mechanisms import MECHANISMS

RHEONOMIC = ("shaken_pendulum", "driven_five_bar", "steered_plate", "prescribed_yaw", "double_spin")
NOTHING_ACTS = ("rolling_ball", "steered_plate", "prescribed_yaw", "disk_on_plate")
SCLERONOMIC = [name for name in MECHANISMS if name not in RHEONOMIC]


@pytest.mark.parametrize("name", MECHANISMS)
def test_inertia_is_symmetric_and_positive_definite(name):
    case = case_of(name)
    for state in case.states:
        I = case.at(state, case.equations.I)[0]
        agree(I, I.T, ROUNDING, "I")
        assert np.linalg.eigvalsh(I)[0] > 0


@pytest.mark.parametrize("name", MECHANISMS)
def test_inertia_is_the_second_derivative_of_kinetic_energy(name):
    """Summed over the bodies by their twists, not by the links of the recursion."""
    case = case_of(name)
    e, book = case.equations, case.by("complement")
    t = book.U @ e.v
    energy = ca.dot(t, book.M @ t) / 2
    for state in case.states:
        I, H, mine, right = case.at(state, e.I, ca.hessian(energy, e.nu)[0], e.energy[0], energy)
        agree(I, H, ROUNDING, "I")
        agree(mine, right, ROUNDING, "kinetic energy")


@pytest.mark.parametrize("name", SCLERONOMIC)
@pytest.mark.parametrize("formulation", ["recursive", "complement"])
def test_rate_of_inertia_minus_twice_coriolis_is_skew(name, formulation):
    case = case_of(name)
    e = case.by(formulation)
    I_dot = case.along(case.equations.I)
    for state in case.states:
        I_dot_n, C = case.at(state, I_dot, e.C)
        S = I_dot_n - 2 * C
        agree(S, -S.T, ROUNDING, "I_dot - 2 C")


@pytest.mark.parametrize("name", MECHANISMS)
def test_coriolis_matrices_agree_entry_by_entry(name):
    case = case_of(name)
    for state in case.states:
        agree(*case.at(state, case.equations.C, case.by("complement").C), ROUNDING, "C")


@pytest.mark.parametrize("name", SCLERONOMIC)
def test_bias_is_coriolis_matrix_times_speeds(name):
    case = case_of(name)
    e = case.equations
    for state in case.states:
        C, bias = case.at(state, e.C, e.bias)
        agree(C @ state.nu, bias.ravel(), ROUNDING, "C nu")


@pytest.mark.parametrize("name", MECHANISMS)
def test_gravity_and_springs_are_minus_the_slope_of_potential_energy(name):
    """Along the directions in which the mechanism can move."""
    case = case_of(name)
    e = case.equations
    slope = (ca.jacobian(potential_energy(case.system), e.q) @ case.tree.N @ e.Theta).T
    for state in case.states:
        gamma, right = case.at(state, e.gamma, -slope)
        agree(gamma, right, ROUNDING, "gamma")


@pytest.mark.parametrize("name", MECHANISMS)
def test_potential_energy_of_gravity_is_that_of_the_bodies(name):
    case = case_of(name)
    e = case.equations
    values = case.tree.values
    from axode.symbolic.algebra.spatial import symbolic_scalar, symbolic_vector

    weight = sum(
        -symbolic_scalar(body.mass, values)
        * ca.dot(case.tree.gravity, e.poses[body.name].point(symbolic_vector(body.com, values)))
        for body in case.mechanism.bodies
    )
    rate = case.along(weight - potential_energy(case.system, springs=False))
    for state in case.states:
        agree(case.vector(state, rate), [0.0], ROUNDING, "difference of two potentials")


@pytest.mark.parametrize("name", SCLERONOMIC)
def test_energy_changes_by_the_power_of_inputs_and_dissipation(name):
    case = case_of(name)
    e = case.equations
    rate = case.along(e.energy, e.forward_dynamics)
    power = ca.dot(e.tau + e.delta, e.nu)
    for state in case.states:
        E_dot, P = (case.vector(state, x) for x in (rate, power))
        size = np.abs(E_dot).max()  # kinetic and potential energy may exchange much more
        assert abs(E_dot.sum() - P[0]) <= ROUNDING * max(1.0, size), f"{E_dot.sum()} is not {P[0]}"


@pytest.mark.parametrize("name", MECHANISMS)
def test_dissipation_takes_energy(name):
    case = case_of(name)
    e, forces = case.equations, case.system.forces
    damped = bool(case.mechanism.dampers) or any(s.damping for s in case.mechanism.struts)
    for state in case.states:
        on_all = case.vector(state, ca.dot(forces.dissipative, case.tree.v))[0]
        assert on_all < 0 if damped else on_all == 0
        if not case.system.rheonomic:
            agree(case.vector(state, ca.dot(e.delta, e.nu)), [on_all], ROUNDING, "its power")


@pytest.mark.parametrize("name", MECHANISMS)
def test_direct_dynamics_undoes_inverse_dynamics(name):
    """With what the motors cannot give, if anything, added to the forces."""
    case = case_of(name)
    e = case.equations
    for state in case.states:
        u, missing = (case.vector(state, x) for x in (e.inverse_dynamics, e.inverse_residual))
        again = ca.substitute(e.forward_dynamics, e.u, ca.DM(u)) if e.inputs else e.forward_dynamics
        nu_dot, I = case.at(state, again, e.I)
        agree(nu_dot.ravel() + np.linalg.solve(I, missing), state.nu_dot, SOLVED, "nu_dot")
        if e.actuation in ("fully actuated", "redundantly actuated"):
            agree(missing, np.zeros(missing.size), 0.0, "what is missing")


@pytest.mark.parametrize("name", MECHANISMS)
def test_inverse_dynamics_undoes_direct_dynamics(name):
    """The motors' forces, or those of least effort that have the same effect."""
    case = case_of(name)
    e = case.equations
    motors = case.system.forces.motors
    for state in case.states:
        nu_dot = case.vector(state, e.forward_dynamics)
        u = case.vector(state, ca.substitute(e.inverse_dynamics, e.nu_dot, ca.DM(nu_dot)))
        G = case.at(state, ca.jacobian(e.tau, e.u))[0] if e.inputs else np.zeros((nu_dot.size, 0))
        # near a dead point inertia and bias are large and nearly cancel: their rounding is left
        largest = np.abs(case.vector(state, e.bias)).max(initial=0.0)
        solved = max(SOLVED, 8 * np.finfo(float).eps * largest)
        agree(G @ u, G @ state.u, solved, "generalized force")
        assert np.linalg.norm(u) <= np.linalg.norm(state.u) * (1 + solved), "not the least effort"
        if np.linalg.matrix_rank(G[:, :motors], tol=1e-9) == motors:
            agree(u, state.u, solved * 10, "inputs")


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in NOTHING_ACTS])
def test_hybrid_dynamics_agrees_with_direct_dynamics(name):
    case = case_of(name)
    e = case.equations
    # exchange an acceleration for the input that changes it most
    G, I = case.at(case.states[0], ca.jacobian(e.tau, e.u), e.I)
    effect = np.abs(np.linalg.solve(I, G))
    i, j = np.unravel_index(effect.argmax(), effect.shape)
    inputs = [n for k, n in enumerate(e.inputs) if k != j]
    solved = ca.vertcat(*e.hybrid_dynamics([e.independent[i]], inputs))
    expected = e.forward_dynamics
    for state in case.states:
        nu_dot = case.vector(state, expected)
        both = case.vector(replace(state, nu_dot=nu_dot), solved)
        agree(both[: nu_dot.size], nu_dot, SOLVED, "nu_dot")
        agree(both[nu_dot.size :], state.u, SOLVED, "u")


@pytest.mark.parametrize("name", MECHANISMS)
def test_kinetic_energy_is_positive_and_that_of_the_links(name):
    case = case_of(name)
    for state in case.states:
        by_links, by_nu = case.at(state, kinetic_energy(case.system), case.equations.energy[0])
        agree(by_links, by_nu, ROUNDING, "kinetic energy")
        assert by_links > 0
