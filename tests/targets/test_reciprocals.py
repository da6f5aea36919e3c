"""Divisions by one number many times over."""

import casadi as ca
import numpy as np

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.rewriting import SHARED_DIVISIONS, share_reciprocals
from axode.codegen.tape.tape import Tape


def quotients(count):
    x, y = ca.SX.sym("x", count), ca.SX.sym("y", 2)
    result = ca.vertcat(1 / y[0], x / y[0], x[0] / y[1])
    return Tape.from_casadi(ca.Function("f", [x, y], [result]))


def test_a_number_that_divides_often_divides_once():
    tape = quotients(SHARED_DIVISIONS)
    shared = share_reciprocals(tape)
    assert np.count_nonzero(shared.kinds == Kind.DIV) == 2
    x, y = np.arange(1.0, 1.0 + SHARED_DIVISIONS), np.array([3.0, 7.0])
    expected, found = (t.evaluate(x, y)[0] for t in (tape, shared))
    assert np.allclose(found, expected, rtol=1e-15, atol=0)
    assert found[0] == 1 / y[0] and found[-1] == x[0] / y[1]


def test_a_tape_with_few_divisions_stays_as_it_is():
    tape = quotients(1)
    assert share_reciprocals(tape) is tape
