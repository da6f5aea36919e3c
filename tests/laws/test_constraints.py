"""Rows of loops, contacts and prescribed motions, and the complement that satisfies them."""

import casadi as ca
import numpy as np
import pytest

from axode.mechanism.values.expressions import numeric
from axode.numerics.tolerances import ROW_RANK
from axode.symbolic.constraints import loops
from axode.symbolic.tree.rows import column_of, matrix_of
from axode.symbolic.wheels import contacts
from kinematics_by_hand import (
    coordinates_by_hand,
    joint_motion,
    numbers,
    pose,
    poses_by_hand,
    quaternion_turn,
    turn,
)
from laws.cases import ROUNDING, SOLVED, Case, agree, case_of
from random_mechanisms import MECHANISMS, random_vehicle

CLOSED = 1e-9  # Newton stops at 1e-13 in the residuals; poses go through a dozen transforms

CONSTRAINED = [
    name
    for name in MECHANISMS
    if not name.startswith(("tree", "all_joints", "arm", "parametric_arm"))
]


def all_rows(case):
    rows = list(case.system.rows)
    return matrix_of(rows, case.tree.v.shape[0]), column_of([r.rate for r in rows])


@pytest.mark.parametrize("name", CONSTRAINED)
def test_every_row_holds_for_every_choice_of_independent_speeds(name):
    case = case_of(name)
    A, b = all_rows(case)
    forced = ca.substitute(
        case.equations.v, case.equations.nu, ca.SX.zeros(case.equations.nu.shape)
    )
    for state in case.states:
        A_n, b_n, Theta, s = case.at(state, A, b, case.equations.Theta, forced)
        agree(A_n @ Theta, np.zeros((A_n.shape[0], Theta.shape[1])), ROUNDING, "A Theta")
        agree(A_n @ s, b_n, ROUNDING, "A s")


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_complement_spans_all_that_the_rows_leave_free(name):
    case = case_of(name)
    A, _ = all_rows(case)
    for state in case.states:
        A_n, Theta = case.at(state, A, case.equations.Theta)
        rank = np.linalg.matrix_rank(A_n, tol=ROW_RANK * np.abs(A_n).max())
        assert np.linalg.matrix_rank(Theta) == Theta.shape[1] == A_n.shape[1] - rank
        assert len(case.equations.rows) == rank


@pytest.mark.parametrize("name", CONSTRAINED)
def test_holonomic_rows_are_the_rates_of_their_residuals(name):
    """For any speeds at all; rows of one loop may be mixed among themselves, one to one."""
    case = case_of(name)
    owners = dict.fromkeys(row.owner for row in case.system.rows if row.holonomic)
    for owner in owners:
        rows = [r for r in case.system.rows if r.holonomic and r.owner == owner]
        A = matrix_of(rows, case.tree.v.shape[0])
        J = ca.jacobian(column_of([r.residual for r in rows]), case.tree.q) @ case.tree.N
        for state in case.states:
            A_n, J_n = case.at(state, A, J)
            mixing = np.linalg.lstsq(A_n.T, J_n.T, rcond=1e-12)[0].T
            agree(mixing @ A_n, J_n, ROUNDING, owner)
            full = np.linalg.matrix_rank(A_n, tol=1e-9)
            assert np.linalg.matrix_rank(J_n, tol=1e-9) == full, f"{owner}: rank differs"
            if all(row.kind != "loop" for row in rows):
                agree(A_n, J_n, ROUNDING, owner)


def check_biases(case, states):
    A, b = all_rows(case)
    exact = case.tree.time_derivative(A @ case.tree.v - b)
    bias = column_of([row.bias for row in case.system.rows])
    for state in states:
        bias_n, exact_n = (x.ravel() for x in case.at(state, bias, exact))
        scale = max(1.0, np.abs(exact_n).max())
        for row, mine, right in zip(case.system.rows, bias_n, exact_n, strict=True):
            assert abs(mine - right) <= ROUNDING * scale, f"{row.name}: {mine} is not {right}"


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_bias_of_every_row_is_its_full_derivative(name):
    case = case_of(name)
    check_biases(case, case.states)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_rows_differentiated_by_hand_equal_automatic_differentiation(name, monkeypatch):
    """Where contact points move, formulas easily go wrong: none is spared by a cheaper one."""
    for module in (loops, contacts):
        monkeypatch.setattr(module, "cheaper_bias", lambda tree, entries, closed_form: closed_form)
    states = case_of(name).states
    check_biases(Case(MECHANISMS[name](), independent=case_of(name).equations.independent), states)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_closed_loops_are_closed_as_seen_from_outside(name):
    """The two joint frames differ by a motion of the joint, by kinematics that know no rows."""
    case = case_of(name)
    for state in case.states:
        poses = poses_by_hand(
            case.mechanism, dict(zip(case.equations.coordinates, state.q, strict=True))
        )
        for loop in case.mechanism.loops:
            one = poses[loop.parent] @ pose(loop.at, loop.rotation)
            two = poses[loop.child] @ pose(loop.child_at, loop.child_rotation)
            motion = np.linalg.inv(one) @ two
            nearest = joint_motion(loop.joint, coordinates_by_hand(loop.joint, motion))
            agree(motion, nearest, CLOSED, f"{loop.name}: {type(loop.joint).__name__}")


@pytest.mark.parametrize("name", CONSTRAINED)
def test_wheels_touch_and_roll_as_seen_from_outside(name):
    """Lowest point of the rim by search, material velocities from the bodies' twists."""
    case = case_of(name)
    e = case.equations
    for state in case.states:
        poses = poses_by_hand(case.mechanism, dict(zip(e.coordinates, state.q, strict=True)))
        twists = dict(zip(e.twists, case.at(state, *e.twists.values()), strict=True))
        for contact in case.mechanism.contacts:
            check_contact(case.mechanism, contact, poses, twists)


def check_contact(mechanism, contact, poses, twists):
    plane, body, ground = contact.plane, poses[contact.body], poses[contact.plane.on]
    radius = numeric(contact.wheel.radius)
    n = ground[:3, :3] @ numbers(plane.normal)
    centre = (body @ [*numbers(contact.at), 1.0])[:3]
    Q, axis = centre - radius * n, None
    if contact.wheel.has_axis:
        axis = body[:3, :3] @ numbers(contact.axis)
        across = np.cross(axis, np.cross(axis, n))
        rim = [
            centre + radius * (turn(axis, s) @ across) / np.linalg.norm(across)
            for s in np.linspace(-1, 1, 21)
        ]
        Q = rim[10]
        assert min(n @ x for x in rim) > n @ Q - CLOSED, f"{contact.name}: not the lowest point"
    touched = (ground @ [*numbers(plane.point), 1.0])[:3]
    assert abs(n @ (Q - touched)) < CLOSED, f"{contact.name} does not touch"
    slip = material_velocity(mechanism, contact.body, poses, twists, Q)
    slip -= material_velocity(mechanism, plane.on, poses, twists, Q)
    directions = {"touch": n}
    if axis is None:
        directions["longitudinal"] = directions["lateral"] = slip - (slip @ n) * n
    else:
        heading = np.cross(axis, n) / np.linalg.norm(np.cross(axis, n))
        side = np.cross(n, heading)
        directions |= {"longitudinal": heading, "lateral": side}
        angle = numeric(getattr(contact.wheel, "roller_angle", 0.0))
        # a roller stands at its angle from the wheel's axis, about the ground's normal
        directions["roller"] = turn(n, angle) @ side
    for row in ("touch", *contact.wheel.rolling_rows):
        assert abs(directions[row] @ slip) < SOLVED, f"{contact.name}.{row} slips"


def material_velocity(mechanism, body, poses, twists, point):
    if body == "ground":
        return np.zeros(3)
    com = next(numbers(b.com) for b in mechanism.bodies if b.name == body)
    centre = (poses[body] @ [*com, 1.0])[:3]
    twist = twists[body].ravel()
    return twist[3:] + np.cross(twist[:3], point - centre)


@pytest.mark.parametrize("seed", [103, 124, 128])
def test_rank_is_judged_on_the_branch_of_home(seed):
    """Upside down, wheels touch the ground too; but other speeds are free there."""
    mechanism = random_vehicle(np.random.default_rng(seed))
    system = mechanism.derive().system
    base = next(c for c in mechanism.connections if c.name == "base")
    for q in system.samples:
        quaternion = [q[system.tree.coordinate_names.index(n)] for n in base.coordinates[:4]]
        assert quaternion_turn(np.array(quaternion))[2, 2] > 0.5, "the vehicle is on its back"
