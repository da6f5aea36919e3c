"""Rotations, inertia, quaternions and small linear systems."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axode.symbolic.algebra.linear import Block, Factor, householder
from axode.symbolic.algebra.spatial import (
    SX,
    Pose,
    RigidInertia,
    Rotation,
    Turn,
    align,
    cross,
    quaternion_matrix,
    quaternion_rate,
    skew,
)
from kinematics_by_hand import quaternion_turn, shortest_turn, turn
from laws.cases import agree

EXACT = 1e-13  # some dozen operations on numbers near one
SEEDS = st.integers(0, 2**31 - 1)


def number(x):
    return np.array(ca.DM(ca.SX(x)))


def rotation_and_matrix(rng):
    """A rotation as turns of every kind, and the matrix it must be, by Rodrigues' formula."""
    angles = rng.uniform(-np.pi, np.pi, 3)
    q = rng.normal(size=4)
    turns = [
        Turn.about("z", angles[0]),
        Turn.about("x", angles[1]),
        Turn("matrix", SX(quaternion_turn(q))),
        Turn.about("z", angles[2]),
    ]
    z, x = np.array([0, 0, 1.0]), np.array([1.0, 0, 0])
    R = turn(z, angles[0]) @ turn(x, angles[1]) @ quaternion_turn(q) @ turn(z, angles[2])
    return Rotation.of(*turns), R


def random_pose(rng):
    return Pose(SX(rotation_and_matrix(rng)[1]), SX(rng.normal(size=3)))


@given(seed=SEEDS)
def test_turns_act_as_their_matrix_both_ways(seed):
    rng = np.random.default_rng(seed)
    rotation, R = rotation_and_matrix(rng)
    x, S = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    agree(number(rotation.matrix), R, EXACT, "matrix")
    agree(number(rotation.outward(SX(x))), R @ x, EXACT, "outward")
    agree(number(rotation.inward(SX(x))), R.T @ x, EXACT, "inward")
    agree(number(rotation.outward_symmetric(SX(S + S.T))), R @ (S + S.T) @ R.T, EXACT, "symmetric")
    agree(number(rotation.outward_matrix(SX(S))), R @ S @ R.T, EXACT, "any matrix")


@given(seed=SEEDS)
def test_poses_form_a_group(seed):
    rng = np.random.default_rng(seed)
    A, B, C = (random_pose(rng) for _ in range(3))
    x = SX(rng.normal(size=3))
    left, right = (A @ B) @ C, A @ (B @ C)
    agree(number(left.R), number(right.R), EXACT, "associative")
    agree(number(left.p), number(right.p), EXACT, "associative")
    agree(number((A @ B).point(x)), number(A.point(B.point(x))), EXACT, "action")
    one = A @ A.inverse()
    agree(number(one.R), np.eye(3), EXACT, "inverse")
    agree(number(one.p), np.zeros((3, 1)), EXACT, "inverse")


@given(seed=SEEDS)
def test_cross_product_and_its_matrix(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 3))
    agree(number(skew(SX(a))) @ b, np.cross(a, b), EXACT, "matrix")
    agree(number(cross(SX(a), SX(b))).ravel(), np.cross(a, b), EXACT, "product")


@given(seed=SEEDS)
def test_quaternions_turn_as_their_axis_and_angle_say(seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    agree(number(quaternion_matrix(*map(SX, q))), quaternion_turn(q), EXACT, "matrix")
    E = number(quaternion_rate(*map(SX, q)))
    agree(E.T @ E, np.eye(3) / 4, EXACT, "columns of half length")
    agree(q @ E, np.zeros(3), EXACT, "tangent to the sphere")
    # R_dot = R w^ with w in the turning body's axes
    s, w = SX.sym("q", 4), rng.normal(size=3)
    R = quaternion_matrix(*(s[i] for i in range(4)))
    R_dot = ca.substitute(ca.jtimes(R, s, SX(E @ w)), s, ca.DM(q))
    agree(number(R_dot), quaternion_turn(q) @ number(skew(SX(w))), EXACT, "rate")


@given(seed=SEEDS)
def test_aligning_takes_z_to_the_axis_by_the_shortest_turn(seed):
    axis = np.random.default_rng(seed).normal(size=3)
    axis /= np.linalg.norm(axis)
    agree(number(align(SX(axis))), shortest_turn(axis), 1e-11, "shortest turn")


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3)])
def test_aligning_with_coordinate_axes_is_exact(axis):
    R = number(align(SX(axis)))
    assert set(R.ravel()) <= {-1.0, 0.0, 1.0}
    assert (R[:, 2] == axis).all() and np.linalg.det(R) == 1.0


def cloud(rng):
    """Point masses, their inertia about the origin by the definition."""
    m, x = rng.uniform(0.1, 1, 5), rng.normal(size=(5, 3))
    return m, x


def inertia_of(m, x):
    tensor = sum(mi * (xi @ xi * np.eye(3) - np.outer(xi, xi)) for mi, xi in zip(m, x, strict=True))
    return RigidInertia(SX(m.sum()), SX(m @ x), SX(tensor))


def agree_inertia(a, b, what):
    for name in ("mass", "moment", "tensor"):
        agree(number(getattr(a, name)), number(getattr(b, name)), 1e-12, f"{what}: {name}")


@given(seed=SEEDS)
def test_moved_inertia_is_that_of_the_moved_points(seed):
    rng = np.random.default_rng(seed)
    rotation, R = rotation_and_matrix(rng)
    m, x = cloud(rng)
    p = rng.normal(size=3)
    agree_inertia(inertia_of(m, x).moved(rotation, SX(p)), inertia_of(m, x @ R.T + p), "moved")
    half = inertia_of(m[:2], x[:2]) + inertia_of(m[2:], x[2:])
    agree_inertia(half, inertia_of(m, x), "sum")
    centre = m @ x / m.sum()
    central = inertia_of(m, x - centre).tensor
    agree_inertia(
        RigidInertia.at_centre(SX(m.sum()), SX(centre), central), inertia_of(m, x), "centre"
    )


@settings(max_examples=30)
@given(seed=SEEDS, n=st.integers(1, 6))
def test_small_systems_are_solved_both_ways(seed, n):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.7) + 3 * np.eye(n)[rng.permutation(n)]
    if np.linalg.cond(A) > 1e3:
        A = A + 10 * np.eye(n)
    b = rng.normal(size=(n, 2))
    block = Block.of(SX(A))
    agree(A @ number(block.solve(SX(b))), b, 1e-11, "A x = b")
    agree(A.T @ number(block.solve_transposed(SX(b))), b, 1e-11, "A^T x = b")
    agree(A @ number(block.inverted()), np.eye(n), 1e-11, "A A^-1")
    reflections, triangle = householder(SX(A))
    turned = SX.eye(A.shape[0])
    for reflection in reflections:
        reflection.apply(turned)
    Q, R = number(turned).T, number(triangle)
    agree(Q @ R, A, EXACT * 100, "Q R")
    agree(Q.T @ Q, np.eye(n), EXACT, "Q")
    agree(np.tril(R, -1), np.zeros((n, n)), 0.0, "R is upper triangular")
    S = A @ A.T + np.eye(n)
    agree(S @ number(Factor.of(SX(S)).solve(SX(b))), b, 1e-11, "L D L^T x = b")
