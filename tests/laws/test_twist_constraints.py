"""Constraints on twists leave exactly the motions that the independent speeds span."""

import numpy as np
import pytest

import axode as ax
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.constraints.twist_constraints import TwistConstraints
from laws.cases import ROUNDING, agree, case_of
from random_mechanisms import MECHANISMS

COUPLED = ("cam_five_bar", "coupled_tree", "geared_five_bar", "differential_car")


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n not in COUPLED])
def test_twists_of_unit_speeds_span_the_null_space(name: str):
    case = case_of(name)
    state = case.states[0]
    A, T = TwistConstraints(case.equations).at(state.q, state.t)
    assert np.abs(A @ T).max() <= ROUNDING * np.abs(A).max() * np.abs(T).max()
    assert rank_of(T) == T.shape[1]
    if not case.mechanism.prescribed:  # what time prescribes is no joint's business
        assert A.shape[1] - rank_of(A) == T.shape[1]


@pytest.mark.parametrize("name", COUPLED)
def test_couplings_have_no_rows_of_this_form(name: str):
    with pytest.raises(ax.NotApplicable, match="relates joints, not the twists of two bodies"):
        TwistConstraints(case_of(name).equations)


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
