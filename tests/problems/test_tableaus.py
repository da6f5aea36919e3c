"""Explicit Runge-Kutta methods: order conditions in exact fractions, and few operations."""

from fractions import Fraction

import numpy as np
import pytest

from axode.codegen.tape.formulas import formula_tape
from axode.problems.steps.explicit import increment
from axode.problems.steps.tableaus import DOPRI5, RK4, ButcherTableau
from tests.problems.rooted_trees import density, nodes_of, trees

HALF = Fraction(1, 2)


def product(tree: tuple, method: ButcherTableau) -> list[Fraction]:
    """The elementary weight of a tree at every stage."""
    values = [Fraction(1)] * len(method.stages)
    for branch in tree:
        inner = product(branch, method)
        sums = [sum((a * x for a, x in zip(row, inner, strict=False))) for row in method.stages]
        values = [value * part for value, part in zip(values, sums, strict=True)]
    return values


def holds(tree: tuple, method: ButcherTableau, weights, part: Fraction = Fraction(1)) -> bool:
    total = sum(b * x for b, x in zip(weights, product(tree, method), strict=True))
    return total == part ** nodes_of(tree) / density(tree)


@pytest.mark.parametrize(("method", "order"), [(RK4, 4), (DOPRI5, 5)])
def test_orders(method, order):
    """Every condition of the order holds exactly, and one of the next order does not."""
    for size in range(1, order + 1):
        assert all(holds(tree, method, method.weights) for tree in trees(size))
    assert not all(holds(tree, method, method.weights) for tree in trees(order + 1))


def test_the_embedded_method_and_the_interpolant_are_of_order_4():
    embedded = [b - e for b, e in zip(DOPRI5.weights, DOPRI5.error, strict=True)]
    inside = [sum(c * HALF ** (k + 1) for k, c in enumerate(row)) for row in DOPRI5.dense]
    for size in range(1, 5):
        assert all(holds(tree, DOPRI5, embedded) for tree in trees(size))
        assert all(holds(tree, DOPRI5, inside, HALF) for tree in trees(size))
    assert tuple(map(sum, DOPRI5.dense)) == DOPRI5.weights
    assert DOPRI5.first_same_as_last and not RK4.first_same_as_last


@pytest.mark.parametrize(
    ("weights", "operations"),
    [(RK4.weights, 6), (RK4.stages[2], 2), (RK4.stages[3], 1), (DOPRI5.stages[2], 4)],
)
def test_increments_take_few_operations(weights, operations):
    """A common factor multiplies h; zeros and ones cost nothing."""
    names = [f"k{i}" for i in range(len(weights))]
    tape = formula_tape(
        "increment",
        dict.fromkeys(("h", *names), 1),
        lambda h, **ks: {"x": [increment(h[0], weights, [k[0] for k in ks.values()])]},
    )
    assert tape.n_operations == operations
    rates = np.arange(1.0, 1.0 + len(weights))
    (found,) = tape.evaluate([0.3], *rates[:, np.newaxis])
    expected = 0.3 * float(sum(w * Fraction(k) for w, k in zip(weights, rates, strict=True)))
    assert found[0] == pytest.approx(expected, rel=1e-15)
