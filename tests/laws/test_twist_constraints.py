"""Constraints on twists leave exactly the motions that the independent speeds span."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.oracle.machine import Machine
from axode.oracle.numbers import numbers
from axode.symbolic.analysis.twist_constraints import TwistConstraints
from axode.symbolic.constraints.redundant_rows import rank_of
from laws.cases import ROUNDING, agree, case_of
from random_mechanisms import MECHANISMS

COUPLED = ("cam_five_bar", "coupled_tree", "geared_five_bar", "differential_car")


@pytest.mark.parametrize("name", MECHANISMS)
def test_twists_of_unit_speeds_span_the_null_space(name: str):
    case = case_of(name)
    state = case.states[0]
    A, T = TwistConstraints(case.equations).at(state.q, state.t)
    assert np.abs(A @ T).max() <= ROUNDING * np.abs(A).max() * np.abs(T).max()
    assert rank_of(T) == T.shape[1]
    if not case.mechanism.prescribed:  # what time prescribes is no joint's business
        assert A.shape[1] - rank_of(A) == T.shape[1]


@pytest.mark.parametrize("name", COUPLED)
def test_rows_of_couplings_are_rates_of_what_they_relate(name: str):
    """For speeds that break them: twists of the oracle, residuals by differences in time."""
    case = case_of(name)
    system, machine = case.equations.system, Machine(case.mechanism)
    residual = system.assembly.residual
    q = case.states[0].q
    rows = {row.name: k for k, row in enumerate(system.assembly.rows)}
    rng = np.random.default_rng(2)
    for coupling in case.mechanism.couplings:
        k = rows.get(f"{coupling.name}.coupling")
        parts = case.equations.twist_constraints.of(coupling.name)
        values = ca.Function("A", [case.equations.q, case.equations.p], list(parts.values()))
        blocks = values.call([q, system.defaults])
        v = rng.normal(size=len(machine.speeds))
        frames = machine.frames(q)
        twists = machine.twists(frames, v)
        found = 0.0
        for body, block in zip(parts, blocks, strict=True):
            i = machine.number[body]
            (com,) = (b.com for b in case.mechanism.bodies if b.name == body)
            arm = frames.R[i] @ numbers(com, machine.parameters)
            twist = np.concatenate([twists.w[i], twists.u[i] + np.cross(twists.w[i], arm)])
            found += (np.array(block) @ twist).item()
        if k is None:  # a relation of speeds, which are the oracle's own
            terms = [v[machine.speeds.index(machine.meanings[n])] * c for n, c in coupling.terms]
            assert found == pytest.approx(sum(terms), rel=1e-12)
            continue
        h, q_dot = 1e-4, machine.rates(q, v)
        steps = {n: residual(q + n * h * q_dot)[k] for n in (-2, -1, 1, 2)}
        slope = (8 * (steps[1] - steps[-1]) - (steps[2] - steps[-2])) / (12 * h)
        assert found == pytest.approx(slope, rel=1e-8, abs=1e-9), coupling.name


def test_two_gears_on_the_ground_are_a_pair_and_on_a_carrier_three_bodies():
    bot = ax.Mechanism("gears")
    for name in ("carrier", "sun", "planet", "rack"):
        bot.add_body(name, mass=1.0, com=(0.1, 0.2, 0.3), inertia=(1.0, 1.0, 1.0))
    bot.add_joint("carrier", ax.Revolute("z"), parent="ground", child="carrier")
    bot.add_joint("sun", ax.Revolute("z"), parent="carrier", child="sun")
    bot.add_joint("planet", ax.Revolute("z"), parent="carrier", child="planet", at=(0.3, 0, 0))
    bot.add_joint("rack", ax.Prismatic("x"), parent="ground", child="rack")
    bot.add_gear("mesh", "sun", "planet", 1.5)
    bot.add_rack("teeth", "carrier", "rack", 0.2)
    equations = bot.derive()
    rows = equations.twist_constraints
    at_home = lambda x: np.array(ca.DM(ca.substitute(x, equations.q, 0.0)))[0]  # noqa: E731
    mesh = {body: at_home(A).tolist() for body, A in rows.of("mesh").items()}
    z = np.array([0, 0, 1.0, 0, 0, 0])
    expected = {"carrier": -2.5 * z, "sun": z, "planet": 1.5 * z}
    assert mesh.keys() == expected.keys()
    for body, A_i in mesh.items():
        assert A_i == pytest.approx(expected[body], abs=1e-15)
    teeth = {body: at_home(A) for body, A in rows.of("teeth").items()}
    assert teeth["carrier"] == pytest.approx(-0.2 * z, abs=1e-15)
    assert teeth["rack"] == pytest.approx([0, -0.3, 0.2, 1, 0, 0], abs=1e-15)
    with pytest.raises(ax.UnknownName, match="carrier, sun, planet, rack, mesh, teeth"):
        rows.of("tooth")


def test_rows_of_a_hinge_and_of_a_rolling_wheel():
    """Six rows of rank five and three of rank three, each on two bodies or on one."""
    case = case_of("balancer")
    constraints = TwistConstraints(case.equations)
    A, _ = constraints.at(case.states[0].q)
    assert [(rows.name, rows.linear.shape[0]) for rows in constraints.blocks] == [
        ("left", 6),
        ("right", 6),
        ("left", 3),
        ("right", 3),
    ]
    for first, rows, rank, bodies in ((0, 6, 5, {"pole", "left"}), (12, 3, 3, {"left"})):
        block = A[first : first + rows]
        assert rank_of(block) == rank
        touched = np.abs(block).reshape(rows, -1, 6).max(axis=(0, 2)) > 0
        names = {name for name, used in zip(constraints.bodies, touched, strict=True) if used}
        assert names == bodies


def test_a_planar_base_has_rows_only_where_wheels_do_not_keep_it():
    on_wheels = TwistConstraints(case_of("caster_robot").equations)
    on_two_skates = TwistConstraints(case_of("snakeboard").equations)
    assert "base" not in {rows.name for rows in on_wheels.blocks}
    assert "base" in {rows.name for rows in on_two_skates.blocks}


def test_numbers_of_the_natural_orthogonal_complement():
    """A T = 0, I = T^T M T and C = T^T M T_dot + T^T W M T, from a batch of numbers."""
    model = ax.gallery.build("caster_robot").derive().compile("interpreter")
    rng = np.random.default_rng(3)
    q = rng.normal(size=(4, len(model.coordinates)))
    nu = rng.normal(size=(4, len(model.independent)))
    bodies = model.newton_euler
    A, T, T_dot = bodies.constraints(q), bodies.complement(q), bodies.complement_rate(q, nu)
    assert A.shape == (4, 33, 30) and len(bodies.rows) == 33 and T.shape == (4, 30, 2)
    assert {rank_of(one) for one in A} == {28}
    assert np.abs(A @ T).max() < ROUNDING
    M, W = (_block_diagonal(x) for x in (bodies.inertias(q), bodies.angular_velocities(q, nu)))
    Tt = np.swapaxes(T, -1, -2)
    agree(Tt @ M @ T, model.mass_matrix(q), ROUNDING, "I")
    agree(Tt @ (M @ T_dot + W @ M @ T), model.coriolis(q, nu), ROUNDING, "C")
    twists = model.twists(q, nu).reshape(4, 30)
    agree(np.einsum("kij,kj->ki", T, nu), twists, ROUNDING, "t")


def _block_diagonal(blocks):
    """(..., bodies, 6, 6) as (..., 6 bodies, 6 bodies)."""
    count = blocks.shape[-3]
    wide = np.einsum("...kij,kl->...kilj", blocks, np.eye(count))
    return wide.reshape(*blocks.shape[:-3], 6 * count, 6 * count)
