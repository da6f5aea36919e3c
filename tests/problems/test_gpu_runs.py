"""Runs on a GPU, an emulated one: the same call, the same trajectory as on the CPU."""

from __future__ import annotations

import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import axode as ax
from axode.runtime.launch import SUMMARY_BYTES
from emulated_gpu import DeviceArray, install
from tests.problems import machines

ROUNDING = 1e-9  # relative: the optimizer may regroup sums, and steps pile the difference up
SINGLE = 2e-4


@pytest.fixture
def gpu(monkeypatch):
    return install(monkeypatch)


@cache
def equations(name):
    return ax.gallery.build(name).derive()


@cache
def model(name):
    return equations(name).compile()


def starts(name, runs=5):
    m, rng = model(name), np.random.default_rng(1)
    nu = 0.5 * rng.normal(size=(runs, len(m.independent)))
    return np.repeat(m.home[np.newaxis], runs, axis=0), nu


def assert_same(got, expected, tolerance=ROUNDING):
    assert got.names == expected.names and got.statuses == expected.statuses
    np.testing.assert_allclose(got.time, expected.time, rtol=1e-12)
    size = np.fmax.reduce(np.abs(expected.values), axis=(0, 1)) + 1e-3
    difference = np.abs(got.values - expected.values) / size
    assert np.nanmax(difference) < tolerance
    assert np.array_equal(np.isnan(got.values), np.isnan(expected.values))


@pytest.mark.parametrize("method", ["rk4", "dopri5", "rodas5p", "radau9"])
@pytest.mark.parametrize("name", ["caster_robot", "four_bar"])
def test_a_batch_on_the_gpu_is_the_batch_on_the_cpu(gpu, name, method):
    """Loops are closed after every step there too, and speeds changed near singularities."""
    options = {"start": starts(name), "method": method, "save_every": 0.05}
    there = ax.simulate(model(name), 0.3, target="cuda", **options)
    assert_same(there, ax.simulate(model(name), 0.3, **options))
    assert there.info["target"] == "cuda" and gpu.launches
    assert np.nanmax(np.abs(there["error"])) < 1e-6


def test_a_model_for_the_gpu_is_simulated_there(gpu):
    there = equations("caster_robot").compile("cuda")
    options = {"start": starts("caster_robot"), "method": "rk4", "save_every": 0.05}
    expected = ax.simulate(model("caster_robot"), 0.2, **options)
    assert_same(ax.simulate(there, 0.2, **options), expected)
    gpu.launches.clear()
    assert_same(ax.simulate(there, 0.2, target="cpu", **options), expected)
    assert not gpu.launches


def test_single_precision_keeps_six_digits(gpu):
    options = {"start": starts("caster_robot"), "method": "rk4", "save_every": 0.05}
    got = ax.simulate(model("caster_robot"), 0.3, target="cuda", precision="float32", **options)
    assert got.info["precision"] == "float32"
    names = list(model("caster_robot").coordinates)
    expected = ax.simulate(model("caster_robot"), 0.3, **options)
    assert_same(got[names], expected[names], SINGLE)
    assert not np.allclose(got[names].values, expected[names].values, rtol=1e-12, atol=0)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_sampled_inputs_are_tables_on_the_gpu(gpu, between, precision):
    """A sample that begins with a step holds in that step, in seven digits too."""
    rng = np.random.default_rng(2)
    table = ax.Sampled(
        {"tau1": rng.normal(size=(5, 30)), "tau2": rng.normal(size=30)}, 0.01, between=between
    )
    options = {
        "start": starts("caster_robot"),
        "input": table,
        "method": "rk4",
        "step": 5e-3,
        "save_every": 0.05,
    }
    got = ax.simulate(model("caster_robot"), 0.3, target="cuda", precision=precision, **options)
    expected = ax.simulate(model("caster_robot"), 0.3, **options)
    names = [*model("caster_robot").coordinates, *model("caster_robot").independent]
    assert_same(got[names], expected[names], ROUNDING if precision == "float64" else SINGLE)


def test_parameters_and_formulas_of_time(gpu):
    options = {
        "start": {"theta1_dot": [0.1, 0.5, 1.0]},
        "parameters": {"mp": [10.0, 15.0, 20.0]},
        "input": {"tau1": "0.2*sin(3*t)"},
        "method": "rk4",
        "save_every": 0.1,
    }
    there = ax.simulate(model("caster_robot"), 0.3, target="cuda", **options)
    assert_same(there, ax.simulate(model("caster_robot"), 0.3, **options))


def test_events_stop_runs_there_too(gpu):
    far = ax.Event("far", lambda s: s["y"] - 0.01, stop=True)
    options = {
        "start": {"theta1_dot": [-1.0, -2.0], "theta2_dot": [1.0, -2.0]},
        "events": [far],
        "method": "rk4",
        "save_every": 0.1,
    }
    there = ax.simulate(model("caster_robot"), 0.5, target="cuda", **options)
    here = ax.simulate(model("caster_robot"), 0.5, **options)
    assert_same(there, here)
    assert [e.time for e in there.events] == pytest.approx([e.time for e in here.events])


def test_several_gpus_share_the_runs(monkeypatch):
    gpu = install(monkeypatch, devices=2)
    options = {"start": starts("caster_robot", 7), "method": "rk4", "save_every": 0.02}
    shared = ax.simulate(model("caster_robot"), 0.1, target="cuda:all", **options)
    assert {launch.device for launch in gpu.launches} == {0, 1}
    assert {launch.runs for launch in gpu.launches} == {3, 4}
    assert_same(shared, ax.simulate(model("caster_robot"), 0.1, **options))
    sweeps = [
        ax.sweep(model("caster_robot"), 0.1, start=options["start"], target=target)
        for target in ("cuda:1,0", "cpu")
    ]
    for name in sweeps[0]:
        np.testing.assert_allclose(*(made[name] for made in sweeps), rtol=1e-9, atol=1e-9)
    with pytest.raises(ax.InvalidArgument, match=r"cuda:2.*this machine has 2, counted from 0"):
        ax.simulate(model("caster_robot"), 0.1, target="cuda:2")
    with pytest.raises(ax.UnknownName, match="cpu, cuda"):
        ax.simulate(model("caster_robot"), 0.1, target="cpu:0")


@pytest.mark.parametrize("asarray", [None, "cupy"])
def test_ctrl_c_ends_a_sweep_whose_chunks_run_side_by_side(gpu, monkeypatch, asarray):
    def press(interrupt):
        interrupt.pressed = True
        raise KeyboardInterrupt

    options = {
        "start": starts("caster_robot", 12),
        "target": "cuda",
        "chunk": 2,
        "asarray": asarray,
    }
    whole = ax.sweep(model("caster_robot"), 0.1, **options)
    assert whole.finished.all()
    assert {launch.runs for launch in gpu.launches} == {2}
    monkeypatch.setattr("axode.problems.progress.Interrupt.check", press)
    monkeypatch.setattr("axode.problems.runs.session.FIRST_SLICE", 1.0)
    made = ax.sweep(model("caster_robot"), 0.1, on_interrupt="return", **options)
    assert not made.finished.any() and np.isnan(made["phi"]).all()
    assert made.statuses == {"interrupted": 12}
    with pytest.raises(ax.Interrupted):
        ax.sweep(model("caster_robot"), 0.1, **options)


def test_results_of_a_sweep_are_handed_out_on_the_gpu(gpu):
    options = {"start": starts("caster_robot", 4), "outputs": {"turn": ("max", "phi")}}
    there = ax.sweep(model("caster_robot"), 0.1, target="cuda", asarray="cupy", **options)
    assert isinstance(there["turn"], DeviceArray) and there["turn"] is there["turn"]
    here = ax.sweep(model("caster_robot"), 0.1, **options)
    np.testing.assert_allclose(there["turn"], here["turn"], rtol=1e-9)
    with pytest.raises(ax.UnknownName, match="Libraries: cupy, torch, jax"):
        ax.sweep(model("caster_robot"), 0.1, asarray="numpy", **options)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_results_of_a_sweep_stay_on_the_gpu(monkeypatch, precision):
    """Nothing but counts comes back, and other libraries see the same memory."""
    gpu = install(monkeypatch, devices=2)
    dlpack = SimpleNamespace(from_dlpack=np.from_dlpack)
    for module in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch.utils.dlpack", dlpack)
    outputs = {"turn": ("max", "phi"), "far": ("last", "x")}
    options = {"start": {"theta1_dot": np.linspace(-1, 1, 6)}, "outputs": outputs, "step": 1e-2}
    options |= {"parameters": {"mp": [10.0, 15.0]}}
    here = ax.sweep(model("caster_robot"), 0.1, **options)
    options |= {"target": "cuda:1,0", "chunk": 5, "precision": precision}
    there = ax.sweep(model("caster_robot"), 0.1, asarray="torch", **options)
    assert set(gpu.fetched) == {SUMMARY_BYTES}
    assert there.statuses == {"finished": 12} and there.batch == (6, 2) and there.finished.all()
    loose = ROUNDING if precision == "float64" else SINGLE
    for name in outputs:
        assert np.shares_memory(there[name], there.arrays[name])
        np.testing.assert_allclose(there[name], here[name], rtol=loose, atol=loose)
    assert there.best("turn", 3).rows.tolist() == here.best("turn", 3).rows.tolist()


def test_rows_that_python_has_to_finish_are_written_among_those_on_the_gpu(gpu):
    """Some end before a change point, one goes on with smaller pivots; some have no start."""
    angles, rates = np.array([1.0, 1.0, 1.0, np.pi - 0.03]), [20.0, 1.0, 30.0, -9.0]
    start = {"crank": angles, "coupler": -angles, "rocker": angles, "crank.rate": rates}
    options = {"start": start, "combine": "zip", "step": 1e-3}
    compare_with_cpu(machines.parallelogram(), 0.1, options)
    drawn = {"parameters": {"mass": ax.Normal(0.0, 1.0)}, "samples": 20, "chunk": 8, "step": 1e-2}
    slider = machines.slider()
    compare_with_cpu(slider, 0.05, drawn | {"input": {slider.inputs[0]: 1.0}})
    gpu.free = 1000  # in pieces, whose numbers come back and go there again
    compare_with_cpu(slider, 0.05, drawn)


def compare_with_cpu(model, duration, options):
    here = ax.sweep(model, duration, **options)
    there = ax.sweep(model, duration, target="cuda", asarray="cupy", **options)
    assert there.statuses == here.statuses and "finished" in here.statuses
    assert len(here.statuses) == 2 and dict(there.reasons) == dict(here.reasons)
    assert there.finished.tolist() == here.finished.tolist()
    for name in here:
        assert isinstance(there[name], DeviceArray)
        np.testing.assert_allclose(there[name], here[name], rtol=1e-6, atol=1e-9, err_msg=name)


def test_runs_that_do_not_fit_go_in_pieces(gpu):
    options = {"start": starts("caster_robot", 20), "method": "rk4", "save_every": 0.02}
    whole = ax.simulate(model("caster_robot"), 0.1, target="cuda", **options)
    gpu.launches.clear()
    gpu.free = 10_000
    pieces = ax.simulate(model("caster_robot"), 0.1, target="cuda", **options)
    assert max(launch.runs for launch in gpu.launches) < 20
    np.testing.assert_array_equal(pieces.values, whole.values)
    gpu.free = 100
    with pytest.raises(ax.NotApplicable, match=r"the GPU has 0 MiB free.*free some memory"):
        ax.simulate(model("caster_robot"), 0.1, target="cuda", **options)


def test_matrices_that_are_too_large_are_refused(gpu, monkeypatch):
    """An implicit method says why; the automatic choice stays explicit there."""
    monkeypatch.setattr("axode.problems.steps.compiled.MAX_SIZE_ON_GPU", 5)
    with pytest.raises(ax.NotApplicable, match=r"radau9.*at most 5 x 5; use target='cpu'"):
        ax.simulate(model("caster_robot"), 1.0, target="cuda", method="radau9")
    options = {"start": starts("caster_robot"), "save_every": 0.05}
    there = ax.simulate(model("caster_robot"), 0.1, target="cuda", **options)
    assert there.info["method"] == "dopri5"


def test_what_seven_digits_cannot_do_is_refused(gpu):
    m = model("caster_robot")
    with pytest.raises(ax.InvalidArgument, match=r"dopri5 needs float64.*method='rk4'"):
        ax.simulate(m, 1.0, target="cuda", precision="float32")
    with pytest.raises(ax.InvalidArgument, match="counts 16777216 steps at most"):
        ax.simulate(m, 1e5, target="cuda", precision="float32", method="rk4", step=1e-3)
    with pytest.raises(ax.NotApplicable, match="target='cuda'"):
        ax.simulate(m, 1.0, precision="float32")
    with pytest.raises(ax.UnknownName, match="cpu, cuda"):
        ax.simulate(m, 1.0, target="tpu")


def test_without_a_gpu_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ax.NotApplicable, match=r"\[cuda\]"):
        ax.simulate(model("caster_robot"), 0.1, target="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", ["caster_robot", "four_bar"])
def test_runs_on_a_real_gpu(name, precision):
    options = {"start": starts(name, 1000), "method": "rk4", "save_every": 0.1}
    there = ax.simulate(model(name), 0.3, target="cuda", precision=precision, **options)
    names = list(model(name).coordinates)
    tolerance = 1e-6 if precision == "float64" else 1e-2
    assert_same(there[names], ax.simulate(model(name), 0.3, **options)[names], tolerance)
