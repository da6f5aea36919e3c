"""Loops with all their rows: pseudo joints and the reduced order, where rows are redundant."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.numerics.rank import rank
from axode.symbolic.formulations.deficient_arms import (
    PseudoJointFormulation,
    ReducedOrderFormulation,
)
from laws.cases import ROUNDING, SOLVED, Case, agree, gallery_case
from laws.test_formulations import compare_terms

TILTED = np.linalg.qr([[0.9, -0.3, 0.2], [0.4, 0.8, -0.5], [0.1, 0.6, 0.7]])[0]
UPRIGHT = np.eye(3)
FORMULATIONS = ("pseudo_joints", "reduced_order")


def four_bar(plane, length=1.0, hinges=1, rocker=0.6, misfit=0.0, home=(0.98, -0.464, 1.445)):
    """A four-bar in any plane, with springs, a damper, and hinges beside each other at the end.

    Args:
        plane: Its axes; the third is that of the hinges.
        length: Of a metre.
        hinges: How many close the loop; all but one are redundant.
        rocker: Length of the rocker.
        misfit: How far the second hinge is off along the rocker.
        home: Angles of crank, coupler and rocker.
    """
    bot = ax.Mechanism("four-bar", gravity=(1.0, -3.0, -9.81))
    axis = tuple(plane[:, 2])

    def place(x, z=0.0):
        return tuple(length * (plane @ [x, 0.0, z]))

    for name, size in (("crank", 0.3), ("coupler", 0.7), ("rocker", rocker)):
        bot.add_body(name, mass=1.0, com=place(size / 2, 0.01), inertia=(0.02 * length**2,) * 3)
    ends = (
        ("a", "ground", "crank", 0.0),
        ("b", "crank", "coupler", 0.3),
        ("c", "ground", "rocker", 0.7),
    )
    for name, parent, child, x in ends:
        bot.add_joint(name, ax.Revolute(axis), parent=parent, child=child, at=place(x))
    for k in range(hinges):
        far = place(rocker + misfit * k, 0.1 * k)
        at = place(0.7, 0.1 * k)
        bot.add_loop(
            f"end{k}", ax.Revolute(axis), parent="coupler", child="rocker", at=at, child_at=far
        )
    bot.add_motor("m", "a")
    bot.add_spring("s", "b", stiffness=3.0 * length**2)
    bot.add_damper("d", "c", coefficient=0.2 * length**2)
    bot.set_home(dict(zip("abc", home, strict=True)))
    return bot


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(
    ("length", "hinges"), [(1.0, 1), (1.0, 3), (1e-3, 2), (1e-6, 2), (100.0, 1)]
)
def test_redundant_loops_of_any_size_agree(length, hinges, formulation):
    compare_terms(Case(four_bar(TILTED, length, hinges)), formulation)


@pytest.mark.parametrize("angle", [1e-2, 1e-4])
@pytest.mark.parametrize("plane", [UPRIGHT, TILTED], ids=["upright", "tilted"])
def test_near_a_singular_posture_no_more_digits_are_lost_than_by_others(plane, angle):
    """A parallelogram near the posture in which it is flat: rows become dependent with its sine."""
    flat = four_bar(plane, rocker=0.3, home=(0.9, -0.9, 0.9))
    state = [angle, -angle, angle], [0.7], [2.0]
    known = flat.derive().compile("interpreter")
    for name in FORMULATIONS:
        model = flat.derive(name).compile("interpreter")
        for function in ("forward_dynamics", "multipliers"):
            found, right = (getattr(m, function)(*state) for m in (model, known))
            assert np.abs(found - right).max() < 3e-16 / angle**2 * np.abs(right).max()


@pytest.mark.parametrize("name", ["tilted", "cooperating_arms", "delta_robot"])
def test_pseudo_joints_stand_still_under_the_forces_that_hold_them(name):
    """(F27) in numbers, with the rank of d4 by (F33); no force acts on redundant ones."""
    case = Case(four_bar(TILTED, hinges=2)) if name == "tilted" else gallery_case(name)
    by = PseudoJointFormulation(case.system)
    joints, n = by.pseudo_joints, case.tree.v.shape[0]
    redundant = [k for k, joint in enumerate(joints) if not joint.is_held]
    assert len(redundant) == len(by.dependent_rows) < len(joints)
    steps = by.six_steps
    for state in case.states:
        M, free, total, D, start, T_p = case.at(
            state, by.mass_matrix, steps.free, steps.total, by.D, by.bias_accelerations,
            by.holding_forces,
        )  # fmt: skip
        assert rank(D[n:, n:], 1e-9) == len(joints) - len(redundant)
        assert not T_p[redundant].any()
        d1, d2, d3, d4 = D[:n, :n], D[:n, n:], D[n:, :n], D[n:, n:]
        Theta, I = case.at(state, case.equations.Theta, case.equations.I)
        kept = d1 - d2 @ np.linalg.pinv(d4, rcond=1e-9, hermitian=True) @ d3
        agree(kept, Theta @ np.linalg.solve(I, Theta.T), SOLVED, "(17)")
        moved = D @ np.concatenate([M @ free, T_p]) + start
        agree(moved, np.concatenate([total, 0 * T_p]), SOLVED, "accelerations")


def test_the_cart_of_two_arms_has_the_pseudo_joints_of_its_source():
    """Four, d4 of rank three: the ground's lateral forces share what one of them would bear."""
    system = gallery.build("two_wheeled_cart", arms=True).derive().system
    joints = PseudoJointFormulation(system).pseudo_joints
    at = [(joint.row, joint.body) for joint in joints]
    assert at[0] == ("contact2.lateral", "wheel2")
    assert {body for _, body in at[1:]} == {"half1", "half2"}
    assert [joint.is_held for joint in joints] == [False, True, True, True]


@pytest.mark.parametrize("name", ["tilted", "stretched", "delta_robot", "two_wheeled_cart"])
def test_the_smaller_task_space_has_the_whole_jacobian(name):
    """(F26), also where an arm is stretched; closures keep the rank of the kept rows."""
    if name == "two_wheeled_cart":
        case = Case(gallery.build(name, arms=True))
    elif name == "delta_robot":
        case = gallery_case(name)
    else:
        case = Case(four_bar(TILTED))
    by = ReducedOrderFormulation(case.system)
    for state in case.states:
        if name == "stretched":
            state = replace(state, q=np.array([0.3, 0.0, 0.0]))
        R, J_r, J, A_r, A, R_c, B_r, B = case.at(
            state, by.R, by.J_r, by.J, by.A_r, by.annihilator, *by.reduced_closure, by.closure[0]
        )
        agree(R.T @ J_r, J, ROUNDING, "J")
        agree(R @ R.T, np.eye(len(R)), ROUNDING, "R")
        agree(A_r @ J_r, A @ J, ROUNDING, "closure")
        assert R_c.shape == (len(case.system.kept), len(by.closing_rows))
        if name != "stretched":  # no state of the closed loop
            agree(R_c.T @ B_r, B, ROUNDING, "B")


def test_the_smaller_task_space_does_not_jump():
    """Along a turn of an arm in a tilted plane: singular vectors do."""
    case = Case(four_bar(TILTED))
    by, tree = ReducedOrderFormulation(case.system), case.tree
    function = ca.Function("R", [tree.q, tree.parameters], [ca.densify(by.R), ca.densify(by.J)])
    step = 0.01
    found = [function(s * np.array([1.0, 0.5, 2.0]) + 0.3, []) for s in np.arange(0, 6, step)]
    R, J = (np.array(list(map(np.array, values))) for values in zip(*found, strict=True))
    singular = np.linalg.svd(J)[0]
    assert np.abs(np.diff(R, axis=0)).max() < 3 * step
    assert np.abs(np.diff(singular[:, :, :3], axis=0)).max() > 0.5


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_what_they_refuse(formulation):
    with pytest.raises(ax.NotApplicable, match=f"'{formulation}' closes loops of arms, and"):
        gallery.build("caster_robot").derive(formulation)
    loose = four_bar(TILTED, hinges=2, misfit=1e-9)
    with (
        pytest.warns(UserWarning, match="contradict others"),
        pytest.raises(ax.NotApplicable, match=r"contradict others by more than .*: end1"),
    ):
        loose.derive(formulation)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_two_flywheels_on_a_tilted_axis_that_are_welded_together(formulation):
    """Bodies without mass: moments of inertia alone, five of six rows redundant."""
    bot = ax.Mechanism("flywheels")
    for name in ("first", "second"):
        bot.add_body(name, mass=0.0, inertia=ax.Inertia(0.1, 0.1, 0.1, ideal=True))
        bot.add_joint(name, ax.Revolute((0.48, 0.6, 0.64)), parent="ground", child=name)
    bot.add_loop("weld", ax.Fixed(), parent="first", child="second")
    bot.add_motor("motor", "first")
    model = bot.derive(formulation).compile("interpreter")
    assert model.forward_dynamics(model.home, [1.0], [1.0]) == pytest.approx([5.0], rel=1e-12)
