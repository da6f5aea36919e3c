"""Functions of CasADi for numbers give what CasADi gives, to the last bit."""

import casadi as ca
import numpy as np

from axode.symbolic.algebra.linear import NumericFunction


def test_matrices_vectors_numbers_and_nothing():
    x, y, none = ca.SX.sym("x", 3), ca.SX.sym("y"), ca.SX.sym("none", 0)
    A = ca.SX(2, 3)
    A[0, 1], A[1, 2] = x[0] * y, ca.sin(x[2])
    made = {"A": A, "x": x * y, "number": x[0] + y, "none": none}
    function = NumericFunction("f", [x, y, none], made)
    known = ca.Function("f", [x, y, none], list(made.values()))
    for seed in range(3):
        q, t = np.random.default_rng(seed).normal(size=3), 0.3 + seed
        found = function(q, t, np.zeros(0))
        for result, expected in zip(found.values(), known(q, t, []), strict=True):
            assert np.array_equal(result, np.array(ca.DM(expected).full()))
    first = function(np.ones(3), 1.0, [])["A"]
    function(np.zeros(3), 0.0, [])
    assert first[0, 1] == 1.0  # an array of its own
    assert np.isnan(function(np.full(3, np.nan), 1.0, [])["x"]).all()
