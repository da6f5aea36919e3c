"""Columns of a matrix that are computed alike: found, put side by side, and right."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from axode.codegen.lowering import chunk_plan, instructions
from axode.codegen.lowering.batch_loop import module
from axode.codegen.tape.packing import column_sets, last_columns, packings
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu import CompiledFunction
from axode.symbolic.algebra.linear import Factor

SIZE, COLUMNS = 5, 7


def solve() -> Tape:
    """A symmetric system; its right-hand sides are computed in two ways."""
    x, y = ca.SX.sym("x", SIZE), ca.SX.sym("y", COLUMNS)
    M = x @ x.T + ca.diag(2 + x * x)
    right = ca.SX(SIZE, COLUMNS)
    for i in range(SIZE):
        for k in range(COLUMNS):
            right[i, k] = ca.sin(y[k]) * x[i] if i < k else y[k] + x[i] * y[i] - ca.cos(x[i])
    odd = ca.exp(x)
    table = ca.horzcat(odd, -Factor.of(M).solve(right), x * x)
    return Tape.from_casadi(ca.Function("solve", [x, y], [table], ["x", "y"], ["table"]))


def arrays(count: int = 11) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=(count, SIZE)), rng.normal(size=(count, COLUMNS))]


def test_columns_begin_with_the_right_hand_sides():
    (columns,) = column_sets(solve())
    assert columns.lanes == COLUMNS
    assert len(columns.seeds) == SIZE
    computed = {group for step in columns.steps for group in (step.group, *step.operands)}
    assert all(len(group) == COLUMNS for group in computed)
    early = {value for seed in columns.seeds for value in seed}
    assert not early & columns.values


def test_columns_side_by_side_in_one_function():
    tape = solve()
    packing = packings(tape)[-1]
    assert packing.lanes == COLUMNS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instructions, "best_packing", lambda _: packing)
        patch.setenv("AXODE_CACHE", "off")
        assert f"<{COLUMNS} x double>" in module(tape, 1)
        got = CompiledFunction(tape, lanes=1)(*arrays())
    np.testing.assert_allclose(got, tape.evaluate(*arrays())[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("stores", [16, 512])  # results copied by a loop, or stored one by one
@pytest.mark.parametrize("lanes", [1, 4])
def test_columns_of_long_tapes_have_one_function(monkeypatch, lanes, stores):
    tape = solve()
    monkeypatch.setattr(instructions, "best_packing", lambda _: None)
    monkeypatch.setattr(chunk_plan, "LONGEST_FUNCTION", 60)
    monkeypatch.setattr(chunk_plan, "LONGEST_ON_VECTORS", 60)
    monkeypatch.setattr(chunk_plan, "CHUNK", 40)
    monkeypatch.setattr(chunk_plan, "MOST_STORES", stores)
    monkeypatch.setenv("AXODE_CACHE", "off")
    chunk_plan.plan_with_columns.cache_clear()
    try:
        assert chunk_plan.plan_with_columns(tape).columns is not None
        text = module(tape, lanes)
        assert text.count("call void @chunk") > text.count("define internal void @chunk") / 2
        assert text.count("_set0(ptr %bases, ptr %work, i64 %column, i64 %place)") == 1
        got = CompiledFunction(tape, lanes=lanes)(*arrays())
    finally:
        chunk_plan.plan_with_columns.cache_clear()
    np.testing.assert_allclose(got, tape.evaluate(*arrays())[0], rtol=1e-13, atol=1e-13)


def test_columns_that_lead_to_others_are_not_computed_last():
    """The second solve begins with what the first one found: nothing of the first is last."""
    x, y = ca.SX.sym("x", SIZE), ca.SX.sym("y", COLUMNS)
    factor = Factor.of(x @ x.T + ca.diag(2 + x * x))
    first = factor.solve(ca.sin(x) @ y.T)
    second = factor.solve(first * first)
    tape = Tape.from_casadi(ca.Function("f", [x, y], [second], ["x", "y"], ["table"]))
    found = last_columns(tape)
    own = set().union(*(columns.values for columns in found))
    for columns in found:
        assert not any(value in own for group in columns.outside for value in group)
    for number, row in enumerate(tape.operands.tolist()):
        if number not in own and tape.kinds[number] > 1:
            assert not own & set(row)
