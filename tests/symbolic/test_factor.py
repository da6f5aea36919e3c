"""Factors of symmetric matrices: any order of rows, structural zeros kept."""

import casadi as ca
import numpy as np
import pytest

from axode.symbolic.algebra.linear import Factor, elimination_order

SOLVED = 1e-11  # random matrices of condition about 1e3


def branched_pattern(limbs: int, length: int, base: int = 3) -> np.ndarray:
    """Entries of a tree's inertia: a base, and limbs that do not feel each other."""
    n = base + limbs * length
    pattern = np.eye(n, dtype=bool)
    pattern[:base] = pattern[:, :base] = True
    for k in range(limbs):
        own = slice(base + k * length, base + (k + 1) * length)
        pattern[own, own] = True
    return pattern


def random_matrix(pattern: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    lower = np.tril(rng.normal(size=pattern.shape) * pattern)
    whole = lower + lower.T
    return whole + (1 + np.abs(whole).sum(axis=1).max()) * np.eye(len(whole))


def symbols_of(pattern: np.ndarray) -> tuple[ca.SX, ca.SX]:
    """A full matrix of symbols and zeros, and its symbols."""
    n = len(pattern)
    matrix = ca.SX.zeros(n, n)
    entries = [(i, j) for i in range(n) for j in range(i + 1) if pattern[i, j]]
    symbols = ca.SX.sym("m", len(entries))
    for k, (i, j) in enumerate(entries):
        matrix[i, j] = matrix[j, i] = symbols[k]
    return matrix, symbols


@pytest.mark.parametrize("limbs", [0, 1, 2, 4])
def test_solutions_are_those_of_numpy(limbs):
    pattern = branched_pattern(limbs, 3)
    matrix, symbols = symbols_of(pattern)
    right = ca.SX.sym("b", len(pattern), 2)
    solve = ca.Function("solve", [symbols, right], [Factor.of(matrix).solve(right)])
    numbers = random_matrix(pattern, limbs)
    b = np.random.default_rng(9).normal(size=(len(pattern), 2))
    values = [numbers[i, j] for i in range(len(pattern)) for j in range(i + 1) if pattern[i, j]]
    found = np.array(solve(values, b))
    np.testing.assert_allclose(numbers @ found, b, atol=SOLVED)


def test_limbs_do_not_fill_each_other_in():
    """L has as many entries as the matrix below its diagonal, whatever order is given."""
    pattern = branched_pattern(limbs=5, length=3)
    turned = np.random.default_rng(2).permutation(len(pattern))
    for rows in (np.arange(len(pattern)), turned):
        matrix, _ = symbols_of(pattern[np.ix_(rows, rows)])
        filled = sum(len(column) for column in Factor.of(matrix).columns)
        assert filled == (pattern.sum() - len(pattern)) // 2


def test_operations_grow_linearly_with_the_limbs():
    def operations(limbs: int) -> int:
        matrix, symbols = symbols_of(branched_pattern(limbs, 4))
        right = ca.SX.sym("b", matrix.shape[0])
        solved = Factor.of(matrix).solve(right)
        return int(ca.Function("solve", [symbols, right], [solved]).n_instructions())

    few, more, most = operations(2), operations(4), operations(8)
    assert (most - more) / 4 <= 1.1 * (more - few) / 2


def test_a_full_matrix_keeps_its_order():
    full = [(i, j) for i in range(5) for j in range(i + 1)]
    assert elimination_order(5, full) == (0, 1, 2, 3, 4)
