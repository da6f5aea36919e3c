"""What a description may choose freely must not change the motion."""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.constraints.redundant_rows import choose_speeds
from kinematics_by_hand import matrix, numbers, pose
from laws.cases import ROUNDING, SOLVED, WELL_POSED, Case, State, agree, case_of
from random_mechanisms import MECHANISMS, random_rotation, ring
from variants import further

# Two derivations of one motion, each solved through its own matrices.
SAME_MOTION = SOLVED
# Wherever all geometry is in numbers, so that frames can be re-expressed.
NUMERIC = [
    "all_joints_tree",
    "tree_0",
    "tree_2",
    "four_bar",
    "rolling_ball",
    "disk_on_plate",
    "car",
    "snakeboard",
    "mecanum_base",
    "fixed_wheel",
    "steered_plate",
    "on_a_plinth",
    "double_spin",
    "loop_screw",
    "loop_planar",
    "loop_universal",
    "loop_cylindrical",
    "loop_prismatic",
    "vehicle_0",
    "vehicle_2",
    "vehicle_5",
    "vehicle_6",
]
RINGS = {
    "rcusrp": (1, ("revolute", "cylindrical", "universal", "screw", "revolute", "prismatic")),
    "spfru": (2, ("spherical", "prismatic", "fixed", "revolute", "universal")),
    "reuc": (4, ("revolute", "planar", "universal", "cylindrical")),
    "ershs": (4, ("planar", "revolute", "screw", "spherical")),
}


def accelerations(case, state):
    e = case.equations
    v_dot = ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)
    return case.vector(state, v_dot), case.vector(state, e.multipliers)


def same_motion(case, other, u_map=None):
    """All accelerations and constraint forces, at the same coordinates and speeds.

    The tangents of a ball are any two of the ground plane, so that its forces are not compared.
    """
    assert other.equations.speeds == case.equations.speeds
    independent = [other.equations.speeds.index(n) for n in other.equations.independent]
    for state in case.states:
        u = state.u if u_map is None else u_map(case, state)
        there = replace(state, nu=state.v[independent], u=u)
        v = other.vector(there, other.equations.v)
        agree(v, state.v, SAME_MOTION, "speeds")
        mine, theirs = accelerations(case, state), accelerations(other, replace(there, v=v))
        agree(theirs[0], mine[0], SAME_MOTION, "accelerations")
        balls = any(not contact.wheel.has_axis for contact in case.mechanism.contacts)
        if other.equations.rows == case.equations.rows and not balls:
            agree(theirs[1], mine[1], SAME_MOTION, "constraint forces")


# independent speeds ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [7, further(8)])
@pytest.mark.parametrize(
    "name",
    [n for n in MECHANISMS if not n.startswith(("tree", "all_joints", "arm", "parametric_arm"))],
)
def test_any_independent_speeds_give_the_same_motion(name, seed):
    case = case_of(name)
    report, speeds = case.system.report, case.equations.speeds
    rng = np.random.default_rng(seed)
    tried = {case.system.independent}
    for _ in range(2):
        chosen = tuple(choose_speeds(report, list(rng.permutation(len(speeds)))))
        if tuple(sorted(chosen)) in {tuple(sorted(t)) for t in tried}:
            continue
        tried.add(chosen)
        other = Case(MECHANISMS[name](), independent=[speeds[j] for j in chosen])
        assert other.equations.independent == tuple(speeds[j] for j in chosen)
        posed = [
            s
            for s in case.states
            if np.abs(other.at(s, other.equations.Theta)[0]).max() < WELL_POSED
        ]
        case_there = Case.__new__(Case)
        case_there.__dict__ |= case.__dict__ | {"states": posed}
        same_motion(case_there, other)


# frames ------------------------------------------------------------------------------------------


def with_frame_moved(bot, body, X):
    """The same machine, a body's frame (or the ground's) standing at X in the old one."""
    back = np.linalg.inv(X)
    R = back[:3, :3]

    def point(x):
        return tuple((back @ [*numbers(x), 1.0])[:3])

    def direction(x):
        return tuple(R @ numbers(x))

    def placed(record, side):
        at, turned = ("at", "rotation") if side == "parent" else ("child_at", "child_rotation")
        if getattr(record, side) != body:
            return {}
        new = back @ pose(getattr(record, at), getattr(record, turned))
        return {at: tuple(new[:3, 3]), turned: tuple(map(tuple, new[:3, :3]))}

    other = bot.copy()
    for connections in (other.connections, other.loops):
        connections[:] = [
            replace(c, **placed(c, "parent"), **placed(c, "child")) for c in connections
        ]
    for i, b in enumerate(other.bodies):
        if b.name == body:
            tensor = R @ tensor_of(b) @ R.T
            moved = ax.Inertia.of((tensor + tensor.T) / 2)
            other.bodies[i] = replace(
                b, com=point(b.com), inertia=replace(moved, ideal=b.inertia.ideal)
            )
    for i, c in enumerate(other.contacts):
        if c.body == body:
            c = replace(c, at=point(c.at), axis=direction(c.axis))
        if c.plane.on == body:
            c = replace(c, plane=ax.Plane(direction(c.plane.normal), point(c.plane.point), body))
        other.contacts[i] = c
    for i, s in enumerate(other.struts):
        ends = {"at": point(s.at)} if s.parent == body else {}
        ends |= {"child_at": point(s.child_at)} if s.child == body else {}
        other.struts[i] = replace(s, **ends)
    for i, w in enumerate(other.wrenches):
        if w.body == body:
            other.wrenches[i] = replace(w, at=point(w.at))
    if body == "ground":
        other.gravity = direction(other.gravity)
    return other


def tensor_of(body):
    xx, yy, zz, xy, xz, yz = (float(x) for x in body.inertia.entries)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def turned_inputs(bot, body, X):
    """Inputs of wrenches whose components are in the axes that were turned."""

    def u_map(case, state):
        u = state.u.copy()
        for w in bot.wrenches:
            if (w.frame == "body" and w.body == body) or (w.frame == "world" and body == "ground"):
                i = case.equations.inputs.index(f"{w.name}.mx")
                u[i : i + 3], u[i + 3 : i + 6] = (
                    X[:3, :3].T @ u[i : i + 3],
                    X[:3, :3].T @ u[i + 3 : i + 6],
                )
        return u

    return u_map


def random_pose(seed):
    rng = np.random.default_rng(seed)
    X = np.eye(4)
    X[:3, :3] = matrix(as_given(random_rotation(rng)))
    X[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return X


def as_given(rotation):
    from axode.mechanism.values.geometry import as_rotation

    return as_rotation(rotation)


@pytest.mark.parametrize("name", NUMERIC)
def test_where_body_frames_stand_does_not_matter(name):
    case = case_of(name)
    for k, body in enumerate((case.mechanism.bodies[0].name, case.mechanism.bodies[-1].name)):
        X = random_pose(11 + k)
        moved = with_frame_moved(case.mechanism, body, X)
        other = Case(moved, independent=case.equations.independent)
        same_motion(case, other, turned_inputs(case.mechanism, body, X))


@pytest.mark.parametrize("name", NUMERIC)
def test_how_the_world_is_turned_does_not_matter(name):
    case = case_of(name)
    X = random_pose(5)
    moved = with_frame_moved(case.mechanism, "ground", X)
    other = Case(moved, independent=case.equations.independent)
    same_motion(case, other, turned_inputs(case.mechanism, "ground", X))


@pytest.mark.parametrize("name", NUMERIC)
def test_one_body_or_two_welded_together(name):
    case = case_of(name)
    whole = next(b for b in reversed(case.mechanism.bodies) if not b.inertia.ideal)
    m, c, tensor = float(whole.mass), numbers(whole.com), tensor_of(whole)
    share = 0.4
    # apart along the thinnest direction: what is left of a disk is still physical
    moments, axes = np.linalg.eigh(tensor)
    d = 0.3 * np.sqrt(moments[0] / (m * share * (1 - share))) * axes[:, 0]
    rest = tensor - m * share * (1 - share) * (d @ d * np.eye(3) - np.outer(d, d))
    bot = case.mechanism.copy()
    bot.bodies[bot.bodies.index(whole)] = replace(
        whole, mass=share * m, com=tuple(c + (1 - share) * d), inertia=ax.Inertia.of(rest / 2)
    )
    X = random_pose(9)
    turned = X[:3, :3] @ (rest / 2) @ X[:3, :3].T
    half = bot.add_body(
        "other half",
        mass=(1 - share) * m,
        inertia=(turned + turned.T) / 2,
        com=tuple((X @ [*(c - share * d), 1.0])[:3]),
    )
    bot.add_joint(
        "weld them",
        ax.Fixed(),
        parent=whole.name,
        child=half,
        child_at=tuple(X[:3, 3]),
        child_rotation=X[:3, :3],
    )
    same_motion(case, Case(bot, independent=case.equations.independent))


# which joint of a ring closes it -----------------------------------------------------------------


@cache
def ring_closed_last(name):
    seed, kinds = RINGS[name]
    return Case(ring(len(kinds) - 1, kinds, seed))


def body_motion(case, nu=None, twists=None):
    """Twists and their rates of all bodies at home, from nu or from the twists."""
    e = case.equations
    t = ca.vertcat(*e.twists.values())
    n, p = len(e.independent), case.system.defaults
    state = State(
        case.system.assembly.named_home,
        np.zeros(n),
        np.zeros(n),
        np.zeros(0),
        0.0,
        p,
        np.zeros(len(e.speeds)),
    )
    if nu is None:
        T = case.at(state, ca.jacobian(t, e.nu))[0]
        nu = np.linalg.lstsq(T, twists, rcond=None)[0]
    state = replace(state, nu=nu)
    rates = case.along(t, e.forward_dynamics)
    return case.vector(state, t), case.vector(state, rates)


@pytest.mark.parametrize(
    ("name", "cut"),
    [(name, k) for name, (_, kinds) in RINGS.items() for k in range(len(kinds) - 1)],
)
def test_any_joint_of_a_ring_may_close_it(name, cut):
    """Every joint in the tree, described from either side, and as a loop: one motion."""
    seed, kinds = RINGS[name]
    reference = ring_closed_last(name)
    nu = np.random.default_rng(4).normal(size=len(reference.equations.independent))
    t, t_dot = body_motion(reference, nu)
    other = Case(ring(cut, kinds, seed))
    residual = other.system.assembly.residual(other.system.assembly.named_home)
    agree(residual, np.zeros_like(residual), ROUNDING, "home")
    t_other, t_dot_other = body_motion(other, twists=t)
    agree(t_other, t, SAME_MOTION, "twists")
    agree(t_dot_other, t_dot, SAME_MOTION, "rates of twists")
