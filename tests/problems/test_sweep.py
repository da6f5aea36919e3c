"""Sweeps: what is gathered on the way is what a stored trajectory tells afterwards."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.interpolate import CubicSpline

import axode as ax
from axode.problems.sweep.accumulate import KINDS
from axode.runtime.launch import SUMMARY_BYTES
from emulated_gpu import install
from variants import slow

ROUNDING = 1e-12
STEP = 5e-3
FAST = 0.9  # [rad/s]: some wheels get faster and slower again, others never are


@cache
def model(name="caster_robot"):
    return ax.gallery.build(name).derive().compile()


def fast(s):
    return s["theta1_dot"] - FAST


OUTPUTS = {
    "last": ("last", "x"),
    "min": ("min", "theta3_dot"),
    "max": ("max", "phi"),
    "largest": ("largest", "error"),
    "integral": ("integral", "kinetic"),
    "squares": ("integral", lambda s: s["y"] ** 2 + s["phi"] ** 2),
    "crossing": ("crossing", fast),
    "rising": ("rising", fast),
    "falling": ("falling", fast),
    "work": ("last", "supplied"),
    "push": ("max", "wheel1.longitudinal"),
    "torque": ("min", "tau1"),
    "place": ("last", "C.x"),
}
STARTS = {"theta1_dot": [0.5, -1.0, 0.8], "theta2_dot": [-1.0, 0.6]}
PARAMETERS = {"mp": [10.0, 20.0]}
INPUT = {"tau1": "0.4*sin(15*t)"}


def test_formulas_in_outputs():
    outputs = {
        "squares": ("integral", "y**2 + phi**2"),
        "same": ("integral", lambda s: s["y"] ** 2 + s["phi"] ** 2),
    }
    made = ax.sweep(model(), 0.1, start=STARTS, step=STEP, outputs=outputs)
    assert made["squares"] == pytest.approx(made["same"], rel=ROUNDING)
    with pytest.raises(ax.InvalidArgument, match=r"outputs, 'far': 'yy' in '2\*yy' is not known"):
        ax.sweep(model(), 0.1, outputs={"far": ("max", "2*yy")})


@pytest.mark.slow
def test_outputs_of_inputs(tmp_path):
    """Power of a motor and the square of its torque, of a law, of a table and of constants."""
    model().save(tmp_path / "robot.axm")
    outputs = {
        "work": ("integral", "tau1 * theta1_dot"),
        "effort": ("integral", lambda s: s["tau1"] ** 2),
        "peak": ("largest", "tau1"),
    }
    table = ax.Sampled({"tau1": np.sin(np.arange(12.0))}, period=0.01)
    from_file = ax.load_model(tmp_path / "robot.axm")
    law = {"tau1": "0.3 - 0.2*theta1_dot"}
    for robot, given in (
        (model(), law),
        (model(), table),
        (from_file, INPUT),
        (from_file, {"tau1": 0.2}),
    ):
        made = ax.sweep(robot, 0.1, input=given, outputs=outputs)
        run = ax.simulate(robot, 0.1, input=given, save_every=1e-4)
        torque = run["tau1"]
        effort = simpson(torque**2, x=run.time)
        if given is table:  # held
            effort = 0.01 * (table.values["tau1"][:10] ** 2).sum()
        assert made["work"] == pytest.approx(run["supplied"][-1], abs=1e-9)
        assert made["effort"] == pytest.approx(effort, abs=1e-9)
        assert made["peak"] == pytest.approx(np.abs(torque).max(), rel=1e-6)
    with pytest.raises(ax.InvalidArgument, match="cannot depend on inputs"):
        ax.simulate(model(), 0.1, input=lambda s: {"tau1": s["tau2"]})


def first_crossing(t, y, rising, falling):
    found = np.full(y.shape[:-1], np.nan)
    for run in np.ndindex(found.shape):
        curve = CubicSpline(t, y[run])
        places = curve.roots(extrapolate=False)
        slopes = curve(places, 1)
        places = places[((slopes > 0) & rising) | ((slopes < 0) & falling)]
        if len(places):
            found[run] = places[0]
    return found


def from_trajectory(run):
    t, y = run.time, run["theta1_dot"] - FAST
    squares = run["y"] ** 2 + run["phi"] ** 2
    return {
        "last": run["x"][..., -1],
        "min": run["theta3_dot"].min(-1),
        "max": run["phi"].max(-1),
        "integral": simpson(run["kinetic"], x=t),
        "squares": simpson(squares, x=t),
        "crossing": first_crossing(t, y, True, True),
        "rising": first_crossing(t, y, True, False),
        "falling": first_crossing(t, y, False, True),
        "work": run["supplied"][..., -1],
        "push": run["wheel1.longitudinal"].max(-1),
        "torque": run["tau1"].min(-1),
        "place": run["C.x"][..., -1],
    }


@pytest.mark.parametrize("options", slow([{}, {"step": STEP / 10}], {}), ids=str)
def test_gathered_numbers_are_those_of_the_stored_trajectory(options):
    made = ax.sweep(
        model(), 0.4, start=STARTS, parameters=PARAMETERS, input=INPUT, outputs=OUTPUTS, **options
    )
    assert made.batch == (3, 2, 2) and made.finished.all()
    assert list(made.axes) == ["theta1_dot", "theta2_dot", "mp"]
    along = {"theta1_dot": (3, 1, 1), "theta2_dot": (2, 1), "mp": (2,)}
    spread = {
        name: np.reshape(values, along[name]) for name, values in (STARTS | PARAMETERS).items()
    }
    mass = {"mp": spread.pop("mp")}
    run = ax.simulate(model(), 0.4, start=spread, parameters=mass, input=INPUT, save_every=1e-4)
    expected = from_trajectory(run)
    assert set(made) == {*expected, "largest"} == set(OUTPUTS)
    for name, values in expected.items():
        np.testing.assert_allclose(made[name], values, rtol=1e-6, atol=1e-8, err_msg=name)
    assert made["largest"].max() < 1e-9  # the error of the energy balance
    for name in ("crossing", "rising", "falling"):  # some cross, some do not
        assert 0 < np.isnan(made[name]).sum() < made[name].size


def test_every_kind_is_tested_above():
    assert {how for how, _ in OUTPUTS.values()} == set(KINDS)


@pytest.mark.parametrize(
    ("precision", "steps"),
    [
        ("float64", {"step": STEP}),
        ("float32", {"step": STEP}),
        pytest.param("float64", {}, marks=pytest.mark.slow),
    ],
    ids=["float64", "float32", "adaptive"],
)
def test_a_sweep_on_the_gpu_is_the_sweep_on_the_cpu(monkeypatch, precision, steps):
    gpu = install(monkeypatch, free=1000 if steps else 5000)  # in pieces
    options = {
        "start": STARTS,
        "parameters": PARAMETERS,
        "input": INPUT,
        "outputs": OUTPUTS | {"power": ("integral", "tau1 * theta1_dot")},
        **steps,
    }
    here = ax.sweep(model(), 0.4, **options)
    there = ax.sweep(model(), 0.4, target="cuda", precision=precision, **options)
    assert max(launch.runs for launch in gpu.launches) < 12
    assert there.info["precision"] == precision
    loose = 3e-4 if precision == "float32" else 1e-9
    for name in here:
        if name in ("crossing", "rising", "falling") and precision == "float32":
            continue  # a value that just touches zero
        np.testing.assert_allclose(there[name], here[name], rtol=loose, atol=loose, err_msg=name)


@pytest.mark.slow
def test_the_state_of_a_sweep_stays_on_the_gpu_between_slices(monkeypatch):
    gpu = install(monkeypatch)
    monkeypatch.setattr("axode.problems.runs.session._next_budget", lambda budget, seconds: 5)
    options = {"start": {"theta1_dot": [0.5, 1.0, 1.5]}, "step": 1e-2, "outputs": OUTPUTS}
    moves = []
    for duration, slices in ((0.1, 2), (0.4, 8)):
        here = ax.sweep(model(), duration, **options)
        gpu.copies.clear()
        gpu.launches.clear()
        monkeypatch.setattr("axode.problems.runs.session.FIRST_SLICE", 1.0)  # one step
        there = ax.sweep(model(), duration, target="cuda", **options)
        assert len(gpu.launches) >= slices
        moves.append(sum(size != SUMMARY_BYTES for size in gpu.copies))
        for name in OUTPUTS:
            np.testing.assert_allclose(there[name], here[name], rtol=1e-9, atol=1e-9, err_msg=name)
    assert moves[0] == moves[1]


@pytest.mark.parametrize("steps", [{}, {"step": 1e-2}], ids=str)
@pytest.mark.parametrize(
    ("name", "start"),
    [("caster_robot", {"theta1_dot": (-1.0, 1.0)}), ("four_bar", {"theta2": (0.9, 1.5)})],
)
def test_rows_are_the_same_to_the_last_bit_whatever_the_chunk(name, start, steps):
    values = {key: np.linspace(*ends, 13) for key, ends in start.items()}
    options = {"start": values, "combine": "zip", **steps}
    whole = ax.sweep(model(name), 0.1, **options)
    for chunk, threads in ((1, 1), (5, 2)):
        parts = ax.sweep(model(name), 0.1, **options, chunk=chunk, threads=threads)
        for output in whole:
            np.testing.assert_array_equal(parts[output], whole[output])
    with pytest.raises(ax.InvalidArgument, match="chunk: must be >= 1 row, got 0"):
        ax.sweep(model(name), 0.1, **options, chunk=0)


def test_many_starts_of_a_model_whose_closure_rows_all_follow_from_others():
    start = {"theta3": np.linspace(-0.1, 0.1, 300)}
    made = ax.sweep(model("wheeled_pendulum"), 0.01, start=start, step=5e-3)
    assert made.finished.all()


def test_arrays_of_runs_are_taken_chunk_by_chunk():
    m, rng = model(), np.random.default_rng(0)
    q, nu = np.repeat(m.home[np.newaxis], 6, axis=0), rng.normal(size=(6, 2))
    table = ax.Sampled(rng.normal(size=(6, 10, 2)), 0.01)
    mass = {"mp": np.linspace(10.0, 20.0, 6)}
    options = {"start": (q, nu), "input": table, "parameters": mass, "step": 1e-2, "combine": "zip"}
    whole, parts = (ax.sweep(m, 0.1, **options, chunk=chunk) for chunk in (6, 4))
    for output in whole:
        np.testing.assert_array_equal(parts[output], whole[output])
    constants = {"input": table.values[:, 0], "step": 1e-2}
    whole, parts = (ax.sweep(m, 0.1, **constants, chunk=chunk) for chunk in (6, 4))
    np.testing.assert_array_equal(parts["phi"], whole["phi"])


def test_the_last_state_and_the_error_unless_told_otherwise():
    made = ax.sweep(model("four_bar"), 0.2, start={"theta2": [0.9, 1.2, 1.5]}, step=1e-3)
    run = ax.simulate(
        model("four_bar"),
        0.2,
        start={"theta2": [0.9, 1.2, 1.5]},
        method="rk4",
        step=1e-3,
        save_every=1e-3,
    )
    assert list(made) == [
        *model("four_bar").coordinates,
        *model("four_bar").independent,
        "energy_error",
    ]
    for name in (*model("four_bar").coordinates, *model("four_bar").independent):
        np.testing.assert_allclose(made[name], run.final[name], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made["energy_error"], np.abs(run["error"]).max(-1), atol=1e-10)


def test_zipped_values_and_arrays_of_starts():
    m, rng = model(), np.random.default_rng(0)
    zipped = ax.sweep(
        m,
        0.1,
        start={"theta1_dot": [0.1, 0.2]},
        parameters={"mp": [10.0, 20.0]},
        combine="zip",
        step=1e-2,
    )
    grid = ax.sweep(
        m, 0.1, start={"theta1_dot": [0.1, 0.2]}, parameters={"mp": [10.0, 20.0]}, step=1e-2
    )
    assert zipped.batch == (2,) and grid.batch == (2, 2) and not zipped.axes
    np.testing.assert_array_equal(zipped["phi"], np.diagonal(grid["phi"]))
    q, nu = np.repeat(m.home[np.newaxis], 3, axis=0), rng.normal(size=(3, 2))
    assert ax.sweep(m, 0.1, start=(q, nu), step=1e-2).batch == (3,)
    mixed = "mp make a grid, but start is an array of runs; use combine='zip', or names"
    with pytest.raises(ax.InvalidArgument, match=mixed):
        ax.sweep(m, 0.1, start=(q, nu), parameters={"mp": [10.0, 20.0]})
    table = ax.Sampled({"tau1": np.zeros((2, 5))}, 0.01)
    with pytest.raises(ax.InvalidArgument, match="mp make a grid, but input is an array of runs"):
        ax.sweep(m, 0.1, input=table, parameters={"mp": [10.0, 20.0]})


def test_inputs_are_swept_too():
    made = ax.sweep(
        model(),
        0.1,
        input={"tau1": [0.0, 0.1, 0.2], "tau2": 0.1},
        step=1e-2,
        outputs={"turn": ("last", "phi")},
    )
    assert made.batch == (3,) and list(made.axes) == ["tau1"]
    assert np.all(np.diff(made["turn"]) != 0)
    table = ax.Sampled(np.random.default_rng(0).normal(size=(3, 10, 2)), 0.01)
    sampled = ax.sweep(model(), 0.1, input=table, step=1e-2, outputs={"u": ("max", "tau1")})
    run = ax.simulate(model(), 0.1, input=table, method="rk4", step=1e-2, save_every=1e-2)
    np.testing.assert_allclose(sampled["u"], run["tau1"].max(-1))


def test_inputs_of_a_sample_of_runs_are_not_a_grid():
    inputs = {"tau1": [0.1, 0.2], "tau2": [0.3, -0.1]}
    end = ax.simulate(model(), 0.01, input=inputs).final
    outputs = {name: ("last", name) for name in inputs}
    made = ax.sweep(model(), 0.01, input=end, outputs=outputs)
    assert {name: made[name].tolist() for name in made} == inputs


def test_runs_that_fail_are_told_and_not_numbers():
    made = ax.sweep(model(), 0.1, input={"tau1": [0.1, 1e305]}, step=1e-3)
    assert made.finished.tolist() == [True, False]
    assert made.statuses == {"finished": 1, "failed: not finite": 1}
    assert np.isnan(made["phi"][1]) and np.isfinite(made["phi"][0])
    assert "2 runs over tau1 (2): 1 finished, 1 failed" in repr(made)


def test_a_model_from_a_file_is_swept_by_names(tmp_path):
    model().save(tmp_path / "robot.axm")
    loaded = ax.load_model(tmp_path / "robot.axm")
    options = {"start": {"theta1_dot": [0.1, 0.5]}, "step": 1e-2}
    here = ax.sweep(model(), 0.1, outputs={"far": ("max", "C.x")}, **options)
    there = ax.sweep(loaded, 0.1, outputs={"far": ("max", "C.x")}, **options)
    np.testing.assert_array_equal(here["far"], there["far"])
    by_function = ax.sweep(loaded, 0.1, outputs={"far": ("max", lambda s: s["C.x"])}, **options)
    np.testing.assert_array_equal(here["far"], by_function["far"])


def test_the_end_is_called_as_in_a_run():
    outputs = {"a": ("last", "x"), "b": ("final", "x")}
    made = ax.sweep(model(), 0.1, start={"theta1_dot": [0.5, 1.0]}, step=STEP, outputs=outputs)
    np.testing.assert_array_equal(made["a"], made["b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": {"a": ("most", "x")}}, r"has no kind 'most'.*max"),
        ({"outputs": {"a": ("max", "height")}}, r"has no signal 'height'"),
        ({"outputs": {"a": "max x"}}, r"'a': expected a pair such as \('max', 'pitch'\)"),
        ({"outputs": {"a": ("max", 3)}}, r"name of a column, a formula or a function of the state"),
        ({"outputs": {}}, r"give at least one"),
        ({"outputs": {"a\0b": ("max", "x")}}, r"a name must be printable text"),
        (
            {"outputs": {"a": ("max", "wheel1.lateral")}},
            r"'wheel1.lateral': .* leave this force indeterminate; ask for 'wheel1.load'",
        ),
        (
            {"start": (np.zeros(7), np.zeros(2)), "samples": {"theta1_dot": [1.0, 2.0]}},
            r"start: give values by name where the table has columns",
        ),
        (
            {"input": {"tau1": [0.1, 0.2], "tau2": "sin(t)"}},
            r"input: tau1 swept beside formulas or functions; give the mechanism a parameter for "
            r"the number, use it in the formula and sweep the parameter",
        ),
        (
            {"input": {"tau1": 0.1, "tau2": lambda s: s["x"]}, "samples": {"tau1": [0.1]}},
            r"'tau1': given as input and as a column",
        ),
        ({"outputs": {"a": ("max", lambda s: s.q)}}, r"one number is needed, not \(7, 1\)"),
        ({"combine": "mix"}, r"has no combination 'mix'.*grid, zip"),
        ({"start": {"x": np.zeros((2, 2))}}, r"a grid takes a list of values, got shape \(2, 2\)"),
        ({"input": ax.Callback(lambda t, s: None)}, r"a Callback runs in Python"),
        ({"target": "tpu"}, r"cpu, cuda"),
    ],
)
def test_what_cannot_be_swept_is_refused(options, message):
    with pytest.raises(ax.AxodeError, match=f"(?s){message}"):
        ax.sweep(model(), 0.1, **options)


def test_an_unknown_output_of_the_result_lists_the_others():
    made = ax.sweep(model(), 0.02, outputs={"far": ("max", "x")}, step=1e-2)
    assert made.batch == () and made["far"].shape == ()
    with pytest.raises(ax.UnknownName, match="Outputs: far"):
        made["near"]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sweeps_on_a_real_gpu(precision):
    options = {
        "start": {"theta1_dot": np.linspace(-1, 1, 200)},
        "input": INPUT,
        "step": STEP,
        "parameters": {"mp": np.linspace(10, 20, 50)},
        "outputs": OUTPUTS,
    }
    here = ax.sweep(model(), 0.4, **options)
    there = ax.sweep(model(), 0.4, target="cuda", precision=precision, **options)
    loose = 1e-3 if precision == "float32" else 1e-9
    for name in ("last", "max", "integral", "push"):
        np.testing.assert_allclose(there[name], here[name], rtol=loose, atol=loose, err_msg=name)


def test_rows_whose_loops_are_closed_have_the_same_bits_in_any_chunk():
    """More rows than NumPy closes, in chunks of more and of fewer."""
    linkage = model("four_bar")
    near = {linkage.coordinates[0]: ax.Uniform(linkage.home[0] - 0.05, linkage.home[0] + 0.05)}
    whole, few, fewer = (
        ax.sweep(linkage, 0.01, start=near, samples=300, step=STEP, chunk=chunk)
        for chunk in (300, 64, 7)
    )
    for name in whole:
        assert np.array_equal(whole[name], few[name]) and np.array_equal(whole[name], fewer[name])
