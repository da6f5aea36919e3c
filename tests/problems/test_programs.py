"""Programs of tapes: loops, tables, budgets, joined tapes, one run or many."""

from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Program, ReadRow, While, WriteRow
from axode.codegen.tape.rewriting import FusionLimits, fuse
from axode.codegen.targets.cpu_rollout import Rollout
from axode.model.model_parts import function_tape
from tests.problems import machines


def accumulate() -> Program:
    """Running sums of a table's rows; those at odd places go to another table."""

    def add(total: Vector, row: Vector, active: Vector) -> dict[str, Vector]:
        return {"total": [a + active[0] * b for a, b in zip(total, row, strict=True)]}

    def count(index: Vector, left: Vector) -> dict[str, Vector]:
        go = left[0] > 1.0
        return {"index": [index[0] + 1.0], "left": [left[0] - 1.0], "active": [go]}

    def odd(index: Vector, active: Vector) -> dict[str, Vector]:
        half = index[0] / 2.0
        return {"flag": [active[0] & ~half.equals(half.floor())]}

    start = formula_tape("start", {"left": 1}, lambda left: {"active": [left[0] > 0.0]})
    body = (
        ReadRow("rows", "index", "row"),
        Evaluate(
            formula_tape("add", {"total": 2, "row": 2, "active": 1}, add),
            ("total", "row", "active", "total"),
        ),
        Evaluate(formula_tape("odd", {"index": 1, "active": 1}, odd), ("index", "active", "flag")),
        WriteRow("sums", "index", "total", "flag"),
        Evaluate(
            formula_tape("count", {"index": 1, "left": 1}, count),
            ("index", "left", "index", "left", "active"),
        ),
    )
    return Program(
        "accumulate",
        state={"total": 2, "index": 1, "left": 1},
        given={},
        tables={"rows": 2, "sums": 2},
        operations=(Evaluate(start, ("left", "active")), While("active", body, counted=True)),
    )


@pytest.mark.parametrize("runs", [1, 3, 4, 9])
@pytest.mark.parametrize("budget", [1, 3, 100])
def test_tables_loops_and_budgets(runs: int, budget: int):
    """Each run sums its own number of rows, in as many calls as the budget makes necessary."""
    rollout = Rollout(accumulate())
    rows = np.arange(20.0).reshape(10, 2)
    wanted = 1 + np.arange(runs) % 7
    buffers = {
        "total": np.zeros((runs, 2)),
        "index": np.zeros((runs, 1)),
        "left": wanted[:, np.newaxis].astype(float),
    }
    tables = {"rows": rows, "sums": np.full((runs, 10, 2), -1.0)}
    calls = 0
    while (buffers["left"] > 0).any():
        rollout(buffers, tables, budget=budget, threads=2)
        calls += 1
    assert calls == -(-wanted.max() // budget)
    for run, n in enumerate(wanted):
        sums = np.cumsum(rows[:n], axis=0)
        assert buffers["total"][run] == pytest.approx(sums[-1], abs=0)
        for k in range(10):
            there = sums[k] if k < n and k % 2 else [-1.0, -1.0]
            assert tables["sums"][run, k] == pytest.approx(there, abs=0)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("runs", [1, 3, 19])
def test_runs_side_by_side(runs: int, together: bool):
    """Tables that hold each number of a group of runs side by side: in step, and out of it."""
    plain = Rollout(accumulate())
    other = Rollout(replace(accumulate(), interleaved=frozenset({"rows", "sums"})))
    rng = np.random.default_rng(0)
    rows, lanes = rng.normal(size=(runs, 10, 2)), other.lanes_of(runs)
    first = np.zeros((runs, 1)) if together else 1.0 * (np.arange(runs)[:, np.newaxis] % 4)

    def side_by_side(array: np.ndarray) -> np.ndarray:
        groups = array[np.minimum(np.arange(-(-runs // lanes) * lanes), runs - 1)]
        shaped = groups.reshape(-1, lanes, *array.shape[1:]).transpose(0, 2, 3, 1)
        assert shaped.shape == other.table_shape("rows", runs, 10)
        return np.ascontiguousarray(shaped)

    start = {"index": first, "left": 6.0}
    here, there = plain.new_state(runs, start), other.new_state(runs, start)
    sums = np.zeros((runs, 10, 2))
    tables = {"rows": side_by_side(rows), "sums": side_by_side(sums)}
    plain(here, {"rows": rows, "sums": sums}, budget=100, threads=1)
    other(there, tables, budget=100, threads=2)
    assert np.array_equal(here["total"], there["total"])
    back = tables["sums"].transpose(0, 3, 1, 2).reshape(-1, 10, 2)[:runs]
    assert np.array_equal(back, sums) and sums.any()
    with pytest.raises(ValueError, match="table 'rows': shape"):
        other(there, tables | {"rows": rows}, budget=1)


def test_rows_beyond_a_table_are_its_ends():
    read = Program(
        "read",
        state={"index": 1, "row": 1},
        given={},
        tables={"rows": 1},
        operations=(ReadRow("rows", "index", "row"),),
    )
    index = np.array([[-5.0], [0.9], [2.0], [1e300], [np.nan]])
    buffers = {"index": index, "row": np.zeros((5, 1))}
    Rollout(read)(buffers, {"rows": np.array([[1.0], [2.0], [3.0]])}, budget=1)
    assert buffers["row"][:, 0].tolist() == [1.0, 1.0, 3.0, 3.0, 1.0]


def chain() -> Program:
    """Small tapes that read each other's buffers, one of which lives from turn to turn."""
    double = formula_tape("double", {"x": 1}, lambda x: {"y": [2.0 * x[0]]})
    add = formula_tape("add", {"x": 1, "y": 1}, lambda x, y: {"z": [x[0] + y[0]]})
    less = formula_tape("less", {"n": 1}, lambda n: {"n": [n[0] - 1.0], "go": [n[0] > 1.0]})
    body = (
        Evaluate(double, ("memory", "a")),
        Evaluate(add, ("x", "a", "b")),
        Evaluate(add, ("b", "memory", "x")),
        Evaluate(double, ("b", "memory")),
        Evaluate(less, ("n", "n", "go")),
    )
    first = formula_tape("first", {"n": 1}, lambda n: {"go": [n[0] > 0.0], "m": [n[0]]})
    return Program(
        "chain",
        state={"x": 1, "n": 1},
        given={},
        tables={},
        operations=(Evaluate(first, ("n", "go", "memory")), While("go", body)),
    )


@pytest.mark.parametrize("runs", [1, 6])
def test_joined_tapes_give_the_same(runs: int):
    """With and without joining; the buffer that outlives a turn is kept."""
    joined = Rollout(chain())
    loop = joined.program.operations[-1]
    assert isinstance(loop, While) and len(loop.body) == 1  # five became one
    assert "a" not in joined.program.local and "memory" in joined.program.local
    plain = Rollout(chain(), limits=FusionLimits(part=0, whole=0))
    found = []
    for rollout in (joined, plain):
        buffers = {"x": 1.0 + np.arange(runs)[:, np.newaxis], "n": np.full((runs, 1), 4.0)}
        rollout(buffers, {}, budget=1)
        found.append(buffers["x"])
    x, memory = 1.0 + np.arange(runs), 4.0
    for _ in range(4):
        b = x + 2 * memory
        x, memory = b + memory, 2 * b
    assert found[0][:, 0] == pytest.approx(x) and np.array_equal(*found)


def test_long_tapes_are_left_alone():
    """A platform's rates are compiled once, not once a stage."""
    from axode.problems.inputs.inputs import plan_input
    from axode.problems.steps.compiled import METHODS, dynamics_of

    model = machines.platform()
    program = METHODS["rk4"](dynamics_of(model, plan_input(model, None), ()))
    rate = function_tape(model, "state_rate").digest
    uses = [o for o in fuse(program).flatten() if isinstance(o, Evaluate) and o.tape.digest == rate]
    assert len(uses) == 4
    small = machines.wheeled_pendulum()
    program = METHODS["rk4"](dynamics_of(small, plan_input(small, None), ()))
    (loop,) = (o for o in fuse(program).operations if isinstance(o, While))
    assert sum(isinstance(o, Evaluate) for o in loop.body) <= 2


def test_buffers_of_the_wrong_size_are_refused():
    rollout = Rollout(chain())
    with pytest.raises(ValueError, match="buffer 'n'"):
        rollout({"x": np.zeros((2, 1)), "n": np.zeros((2, 3))}, {}, budget=1)
    with pytest.raises(ValueError, match="evenly spaced rows"):
        rollout({"x": np.zeros((2, 1), dtype=int), "n": np.zeros((2, 1))}, {}, budget=1)


def test_nothing_is_allocated_a_step():
    """Ten times as many steps, the same memory."""
    import tracemalloc

    model = machines.wheeled_pendulum()
    peaks = []
    for duration in (2.0, 2.0, 20.0):
        tracemalloc.start()
        ax.simulate(model, duration, start={"pitch": 0.5}, method="rk4", save_every=duration)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]
