"""Steppers take the steps of `simulate`, in place, from a loop in Python."""

import copy
import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import axode as ax
from axode.errors import (
    InvalidArgument,
    NotApplicable,
    SimulationFailed,
    SingularConfiguration,
    UnknownName,
)
from axode.runtime.launch import SUMMARY_BYTES
from emulated_gpu import DeviceArray, install
from tests.problems import machines

STEP = 1 / 1024  # a power of two: times are exact, so that no last step differs in length


def law(s):
    return {"M1": -0.1 * s["theta3_dot"] + 0.01 * np.sin(s.t), "M2": 0.02}


@pytest.fixture(scope="module")
def model():
    return ax.gallery.build("wheeled_pendulum").derive().compile()


def state_of(run, model, t):
    """Coordinates and independent speeds of a run, (..., size)."""
    values = run.at(t)
    return np.stack([values[name] for name in (*model.coordinates, *model.independent)], axis=-1)


def test_a_run_has_the_bits_of_simulate(model):
    given = {"start": {"theta3": 0.3}, "parameters": {"m": 11.0}}
    inputs = {"M1": 0.03, "M2": -0.02}
    stepper = model.stepper(STEP, **given)
    run = ax.simulate(model, 0.5, method="rk4", step=STEP, save_every=1 / 8, input=inputs, **given)
    for k in range(1, 5):
        for _ in range(64):
            assert stepper.step(np.array([0.03, -0.02]))
        assert stepper.step(inputs, steps=64) and stepper.t == k / 8
        assert np.array_equal(stepper.x, state_of(run, model, k / 8))
    assert stepper["theta3"] == stepper.q[model.coordinates.index("theta3")] == run.final["theta3"]


@pytest.mark.parametrize(
    "source",
    [law, ax.Sampled({"M1": np.linspace(0, 0.1, 40)}, period=8 * STEP)],
    ids=["law", "samples"],
)
def test_laws_and_samples_have_the_bits_of_simulate(model, source):
    given = {"start": {"theta3": 0.3}, "input": source}
    stepper = model.stepper(STEP, **given)
    assert stepper.step(steps=256) and stepper.u is None
    run = ax.simulate(model, 0.25, method="rk4", step=STEP, **given)
    assert np.array_equal(stepper.x, state_of(run, model, 0.25))
    assert stepper["M1"] == pytest.approx(run.final["M1"], rel=1e-14)
    assert stepper["motor1.power"] == pytest.approx(run.final["motor1.power"], rel=1e-12)
    with pytest.raises(InvalidArgument, match="made with gives u"):
        stepper.step([0.0, 0.0])


@pytest.mark.parametrize(
    "source",
    [
        ax.Law(lambda s, pi: {"M1": pi(0.1 - s["theta3"])}, pi=ax.blocks.PI(0.5, 4.0, period=0.01)),
        ax.Sampled({"M1": np.linspace(0, 0.1, 40)}, period=0.0125),
    ],
    ids=["law", "samples"],
)
def test_steps_in_which_samples_are_taken_are_whole(model, source):
    """No call ends at a sample inside its last step, and a run reset on its own is not held up."""
    stepper = model.stepper(STEP, start={"theta3": 0.3}, input=source, batch=2)
    for k in range(100):
        assert stepper.step() and (stepper.t == (k + 1) * STEP).all()
    stepper.reset(runs=[1])
    assert stepper.step(steps=50) and stepper.t.tolist() == [150 * STEP, 50 * STEP]
    for row, steps in ((0, 150), (1, 50)):
        end = steps * STEP
        run = ax.simulate(
            model, end, method="rk4", step=STEP, start={"theta3": [0.3, 0.3]}, input=source
        )
        there = state_of(run, model, end)[row]
        assert np.array_equal(stepper.x[row, : len(there)], there)  # before what the law remembers


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_steps_back_have_the_bits_of_simulate(model, method):
    given = {"method": method, "t0": 0.5, "backwards": True, "start": {"theta3": 0.3}}
    stepper = model.stepper(-1 / 8 if method == "dopri5" else -STEP, **given)
    assert stepper.step({"M1": 0.03, "M2": -0.02}, steps=1 if method == "dopri5" else 128)
    equal = {} if method == "dopri5" else {"step": STEP}
    run = ax.simulate(model, -1 / 8, input={"M1": 0.03, "M2": -0.02}, **equal, **given)
    assert stepper.t == run.time[-1] == 3 / 8
    assert np.array_equal(stepper.x, state_of(run, model, 3 / 8))


def test_a_batch_has_the_bits_of_simulate(model):
    given = {"start": {"theta3": np.linspace(0.1, 0.3, 7)}, "parameters": {"m": 11.0}}
    stepper = model.stepper(STEP, **given)
    u = np.linspace(-0.1, 0.1, 14).reshape(7, 2)
    assert stepper.batch == (7,) and stepper.step(u) and stepper.step(steps=63)
    run = ax.simulate(
        model, 1 / 16, method="rk4", step=STEP, input={"M1": u[:, 0], "M2": u[:, 1]}, **given
    )
    assert np.array_equal(stepper.x, state_of(run, model, 1 / 16))
    assert np.array_equal(stepper["theta3"], run.final["theta3"])
    assert stepper.q.base is not None and np.shares_memory(stepper["theta3"], stepper.x)
    assert stepper.t.tolist() == [1 / 16] * 7 and not stepper.status.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "delta_robot", "ballbot", "cam_follower", "tricycle"])
def test_mechanisms_of_every_kind_move_as_in_simulate(name):
    """Samples of a trajectory are closed once more, by rounding."""
    model = ax.gallery.build(name).derive().compile()
    start = model.home, 0.1 * np.random.default_rng(0).normal(size=len(model.independent))
    stepper = model.stepper(STEP, start=start)
    assert stepper.step(steps=32)
    run = ax.simulate(model, 32 * STEP, start=start, method="rk4", step=STEP)
    assert np.abs(stepper.x - state_of(run, model, 32 * STEP)).max() < 1e-14


def test_a_model_from_a_file_steps_with_the_same_bits(model, tmp_path):
    model.save(tmp_path / "pendulum.axm")
    read = ax.load_model(tmp_path / "pendulum.axm")
    steppers = [m.stepper(STEP, start={"theta3": 0.2}) for m in (model, read)]
    for stepper in steppers:
        stepper.step([0.1, 0.0], steps=20)
    assert np.array_equal(steppers[0].x, steppers[1].x)
    assert steppers[0].pivot == steppers[1].pivot


def test_a_batch_of_many_is_shared_among_threads(model):
    stepper = model.stepper(STEP, batch=(40, 500), threads=2)
    stepper.step(np.full(2, 0.01), steps=3)
    one = model.stepper(STEP)
    one.step([0.01, 0.01], steps=3)
    assert stepper.x.shape == (40, 500, one.x.size)
    assert np.abs(stepper.x - one.x).max() < 1e-15


@pytest.mark.parametrize("method", ["dopri5", "radau9", "rodas5p"])
def test_adaptive_methods_reach_every_step(model, method):
    given = {"start": {"theta3": 0.3}, "rtol": 1e-8, "atol": 1e-10}
    stepper = model.stepper(0.01, method, **given)
    for _ in range(10):
        assert stepper.step([0.03, 0.0])
    assert stepper.t == 0.1
    run = ax.simulate(model, 0.1, input={"M1": 0.03}, method=method, **given)
    assert np.abs(stepper.x - state_of(run, model, 0.1)).max() < 1e-7
    stepper.reset()
    assert stepper.t == 0.0 and stepper.step(steps=10) and stepper.t == 0.1


def test_signals_are_those_of_a_run(model):
    given = {"start": {"theta3": 0.3}, "input": {"M1": 0.03}}
    stepper = model.stepper(STEP, **given)
    stepper.step(steps=128)
    run = ax.simulate(model, 0.125, method="rk4", step=STEP, **given)
    for name in run.names:
        if name != "error":
            assert stepper[name] == pytest.approx(
                run.final[name], rel=1e-12, abs=1e-14, nan_ok=True
            )
    assert abs(stepper["error"] - run.final["error"]) < 1e-14
    many = model.stepper(STEP, batch=3, **given)
    many.step(steps=128)
    for name in ("kinetic", "theta3", "motor1.power", "error"):
        assert many[name].shape == (3,) and many[name] == pytest.approx(stepper[name], abs=1e-12)
    with pytest.raises(UnknownName, match="theta4"):
        stepper["theta4"]


def test_limits_of_motors_are_kept():
    model = machines.slider(2.0)
    for given in ([5.0], np.array([5.0]), {"rail.force": 5.0}):
        stepper = model.stepper(STEP)
        stepper.step(given)
        assert stepper.u.tolist() == [2.0]
        stepper.u[0] = -7.0
        stepper.step()
        assert stepper["rail.force"] == -2.0


def test_a_step_neither_allocates_nor_calls_python(model):
    stepper, u, calls = model.stepper(STEP), np.zeros(2), []
    stepper.step(u)
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        stepper.step(u)
    finally:
        sys.setprofile(None)
    assert calls.count("call") == 1
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            stepper.step(u)
        assert tracemalloc.get_traced_memory()[0] - before < 1000
    finally:
        tracemalloc.stop()


def test_a_failed_run_stays_and_the_others_go_on():
    model = machines.slider()
    stepper = model.stepper(
        STEP, start={"rail": [0.9, 0.1]}, input=lambda s: [(1 - s["rail"]) ** 0.5]
    )
    stepper.reset({"rail": 0.99, "rail.rate": 5.0}, runs=0)
    assert not stepper.step(steps=20) and stepper.status[0] > 0 == stepper.status[1]
    stopped = stepper.x[0].copy()
    assert not stepper.step() and np.array_equal(stepper.x[0], stopped)
    assert stepper.t[1] == 21 * STEP
    with pytest.raises(SimulationFailed, match=r"run 0 of 2.*rail.force is nan"):
        stepper.check()
    stepper.reset(runs=np.array([True, False]))
    assert stepper["rail"][0] == 0.9 and stepper.step() and stepper.t.tolist() == [STEP, 22 * STEP]
    stepper.check()


def test_a_singular_configuration_is_a_status():
    """The rocker's speed vanishes where it turns back; `simulate` takes another one there."""
    stepper = machines.four_bar("rocker").stepper(1e-4, start={"crank": 0.4, "crank.rate": 8.0})
    near = stepper.pivot
    assert not stepper.step(steps=4000) and 0 < stepper.t < 0.35
    assert stepper.status > 0 and abs(stepper.pivot) < 0.01 * near
    with pytest.raises(SingularConfiguration, match="keeps its own"):
        stepper.check()


def test_an_unsuitable_speed_is_named_where_the_rows_are_regular():
    """theta3 turns back where the mechanism itself is far from singular."""
    model = ax.gallery.build("four_bar").derive(independent=["theta3_dot"]).compile()
    stepper = model.stepper(start={"theta1_dot": 2})
    while stepper.step():
        pass
    with pytest.raises(SingularConfiguration) as caught:
        stepper.check()
    assert "the speed theta3_dot does not determine the others there" in str(caught.value)
    assert "derive(independent=['theta2_dot'])" in str(caught.value)
    assert abs(stepper["error"]) > 1e-5  # of a joule: fixed steps lose accuracy before the stop


def test_what_was_saved_returns_with_all_its_bits(model):
    stepper = model.stepper(STEP, start={"theta3": 0.3})
    stepper.step(steps=10)
    saved = stepper.save()
    stepper.step([0.1, 0.1], steps=10)
    first = stepper.x.copy()
    stepper.restore(saved)
    assert stepper.t == 10 * STEP and not np.array_equal(stepper.x, first)
    stepper.step(steps=10)
    assert np.array_equal(stepper.x, first)
    stepper.reset()
    assert stepper.t == 0 and stepper["theta3"] == 0.3
    stepper.reset({"theta3": 0.1})
    assert stepper["theta3"] == 0.1 and stepper["error"] == 0.0


def test_tensors_share_the_memory():
    torch = pytest.importorskip("torch", reason="`make test-all` installs it")
    model = machines.slider()
    stepper = model.stepper(STEP, batch=3)
    x, u = torch.from_dlpack(stepper.x), torch.from_dlpack(stepper.u)
    u[:] = 1.0
    stepper.step()
    assert (x[:, 1] > 0).all() and x[0, 1].item() == stepper["rail.rate"][0]
    stepper.step(torch.full((3, 1), 2.0))
    assert stepper.u.tolist() == [[2.0]] * 3


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({"input": ax.Callback(lambda t, s: [0, 0])}, InvalidArgument, "in the loop"),
        ({"method": "auto"}, UnknownName, "method"),
        ({"singular": "pass"}, NotApplicable, "singular"),
        ({"input": lambda s: [s.t > 1, 0]}, NotApplicable, "known ahead"),
        ({"step": -1.0}, InvalidArgument, "^step: -1 s is negative"),
        ({"backwards": True}, InvalidArgument, "the step 0.001 s goes forwards"),
        ({"step": 0}, InvalidArgument, "^step: expected a number of seconds other than zero"),
        ({"batch": 10**15}, InvalidArgument, "^batch: .* more memory than there is"),
        ({"batch": 0}, InvalidArgument, "no runs"),
        ({"batch": -3}, InvalidArgument, "batch: expected a whole number"),
        ({"batch": "a"}, InvalidArgument, "batch: expected a whole number"),
        ({"batch": (2, 1.5)}, InvalidArgument, "batch: expected a whole number"),
        ({"foo": 1}, UnknownName, "stepper has no keyword 'foo'"),
        ({"rtol": 1e-6}, InvalidArgument, "rtol: rk4 takes steps of a fixed length"),
    ],
)
def test_what_it_does_not_take_is_refused(model, given, error, text):
    with pytest.raises(error, match=text):
        model.stepper(**given)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda s: s.step(np.zeros(3)), "M1, M2"),
        (lambda s: s.step("much"), "numbers"),
        (lambda s: s.step(None, 0), "steps"),
        (lambda s: s.step(None, 1.5), "steps"),
        (lambda s: s.step({"M3": 1.0}), "M3"),
        (lambda s: s.reset({"theta3": np.nan}), "finite"),
        (lambda s: s.step([1.0]), "^u: expected 2 inputs"),
        (lambda s: s.step(1.0), "^u: expected 2 numbers"),
        (lambda s: s.restore(None), "restore: expected what save"),
        (lambda s: s.restore({}), "restore: expected what save"),
        (lambda s: s.restore(machines.slider().stepper().save()), "restore: expected what save"),
        (lambda s: s.restore(s.model.stepper(batch=4).save()), "restore: expected what save"),
    ],
)
def test_mistakes_are_named(model, call, text):
    with pytest.raises((InvalidArgument, UnknownName), match=text):
        call(model.stepper())


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda s: s.step(np.ones((4, 1))), "u: expected 2 numbers"),
        (lambda s: s.step(np.ones((1, 2))), "u: expected 2 numbers"),
        (lambda s: s.step(1.0), "u: expected 2 numbers"),
        (lambda s: s.step({"M1": np.ones(3)}), r"M1: expected a number, or .* \(4,\)"),
        (lambda s: s.restore(s.model.stepper().save()), "restore: expected what save"),
        *((lambda s, k=k: s.reset(runs=k), "^runs: expected") for k in (5000, -5, "a", 1.5)),
        (lambda s: s.reset(runs=np.array([True, False])), r"^runs: expected a mask of shape \(4,"),
    ],
)
def test_mistakes_with_many_runs_are_named(model, call, text):
    stepper = model.stepper(batch=4)
    stepper.step()
    before = stepper.x.copy()
    with pytest.raises(InvalidArgument, match=text):
        call(stepper)
    assert np.array_equal(stepper.x, before)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stepper_is_not_copied(model, copied):
    with pytest.raises(NotApplicable, match=r"save\(\) returned, by restore\(\)"):
        copied(model.stepper())


def test_inputs_given_once_are_those_of_all_runs(model):
    stepper = model.stepper(batch=3)
    stepper.step([0.1, 0.2])
    assert stepper.u.tolist() == [[0.1, 0.2]] * 3
    single = machines.slider().stepper(batch=2)
    single.step(0.5)
    assert single.u.tolist() == [[0.5]] * 2
    stepper.reset(runs=[])
    stepper.reset(runs=-1)
    assert stepper.t.tolist() == [1e-3, 1e-3, 0.0]


@pytest.fixture
def gpu(monkeypatch):
    return install(monkeypatch)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("source", [None, law], ids=["inputs", "law"])
def test_runs_stay_on_a_gpu(gpu, model, method, source):
    given = {"start": {"theta3": np.linspace(0.1, 0.3, 7)}, "input": source}
    there, here = (model.stepper(0.01, method, target=t, **given) for t in ("cuda", "cpu"))
    u = None if source else np.linspace(-0.1, 0.1, 14).reshape(7, 2)
    inputs = None if source else gpu.asarray(u)
    assert there.step(inputs) and here.step(u)
    copied = sum(gpu.copies)
    assert there.step(inputs, steps=3) and here.step(u, steps=3)
    assert sum(gpu.copies) - copied <= 4 * SUMMARY_BYTES
    assert type(there.x) is type(there["theta3"]) is DeviceArray and there.t.tolist() == [0.04] * 7
    assert np.abs(np.asarray(there.x) - here.x).max() < 1e-12
    for name in ("kinetic", "M1", "motor1.power", "error"):
        assert np.abs(np.asarray(there[name]) - here[name]).max() < 1e-12, name
    assert np.abs(there.pivot - here.pivot).max() < 1e-12
    saved = there.save()
    there.step(steps=2)
    there.restore(saved)
    assert np.abs(np.asarray(there.x) - here.x).max() < 1e-12
    there.reset({"theta3": 0.5}, runs=np.array([1, 2]))
    assert there["theta3"][1:3].tolist() == [0.5, 0.5] and there.t.tolist()[:2] == [0.04, 0.0]
    there.check()


def test_limits_of_motors_and_failures_on_a_gpu(gpu):
    stepper = machines.slider(2.0).stepper(0.01, batch=3, target="cuda")
    assert stepper.step(gpu.asarray(np.array([[1.0], [5.0], [-5.0]])))
    assert stepper.u.tolist() == [[1.0], [2.0], [-2.0]]
    assert not stepper.step({"rail.force": [0.0, np.nan, 0.0]})
    assert stepper.status.tolist()[::2] == [0.0, 0.0] and stepper.status[1] > 0
    with pytest.raises(SimulationFailed, match="run 1 of 3"):
        stepper.check()


@pytest.mark.parametrize("given", [{}, {"batch": (2, 2)}, {"batch": 2, "precision": "float32"}])
def test_what_a_gpu_does_not_take(gpu, given):
    with pytest.raises(NotApplicable, match=r"one axis|float64"):
        machines.slider().stepper(target="cuda", **given)
