"""Many runs at once are the same as each by itself."""

import numpy as np
import pytest

import axode as ax
from tests.problems import machines

ROUNDING = 1e-11  # after hundreds of steps: vectors contract products differently from scalars


@pytest.mark.parametrize("options", [{"method": "rk4", "step": 1e-3}, {"rtol": 1e-9}])
@pytest.mark.parametrize("count", [2, 4, 7])
def test_a_batch_equals_single_runs(options: dict, count: int):
    model = machines.wheeled_pendulum()
    pitches = np.linspace(-1.0, 1.0, count)
    start = {"left.rate": 2.0}
    batch = ax.simulate(model, 0.7, start={**start, "pitch": pitches}, **options)
    assert batch.batch == (count,)
    for run, pitch in enumerate(pitches):
        alone = ax.simulate(model, 0.7, start={**start, "pitch": pitch}, **options)
        for name in ("base.x", "pitch", "pitch.rate", "base.yaw", "kinetic"):
            assert np.abs(batch[name][run] - alone[name]).max() < ROUNDING, name


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(threads: int):
    model = machines.wheeled_pendulum()
    start = {"pitch": np.linspace(-1, 1, 41)}
    one = ax.simulate(model, 0.3, start=start, threads=1, method="rk4")
    some = ax.simulate(model, 0.3, start=start, threads=threads, method="rk4")
    assert np.array_equal(one.values, some.values, equal_nan=True)


def test_parameters_starts_and_inputs_are_axes():
    """x = v t + F t^2 / 2m, for every mass, speed and force."""
    model = machines.slider()
    mass, speed = np.array([1.0, 2.0, 4.0]), np.array([[0.0], [1.0]])
    force = np.array([[[1.0]], [[-3.0]]])
    run = ax.simulate(
        model,
        2.0,
        start={"rail.rate": speed},
        parameters={"mass": mass},
        input={"rail.force": force},
    )
    assert run.batch == (2, 2, 3)
    exact = speed * 2 + force * 2**2 / (2 * mass)
    assert run.final["rail"] == pytest.approx(exact, abs=1e-12)
    samples = ax.Sampled({"rail.force": np.broadcast_to(force, (2, 2, 3))[..., np.newaxis]}, 1.0)
    again = ax.simulate(
        model, 2.0, start={"rail.rate": speed}, parameters={"mass": mass}, input=samples
    )
    assert again.final["rail"] == pytest.approx(exact, abs=1e-12)


def test_batches_that_do_not_fit():
    with pytest.raises(ax.InvalidArgument, match="do not fit"):
        ax.simulate(
            machines.slider(), 1.0, start={"rail": [1.0, 2.0]}, parameters={"mass": [1.0, 2.0, 3.0]}
        )


def test_arrays_as_start():
    model = machines.four_bar()
    states = [ax.assemble(model, {"crank": a, "crank.rate": 3.0}) for a in (0.2, 1.0, 2.5)]
    q, nu = np.array([s.q for s in states]), np.array([s.nu for s in states])
    run = ax.simulate(model, 0.2, start=(q, nu))
    assert run["crank"][:, 0] == pytest.approx(q[:, 0])
    single = ax.simulate(model, 0.2, start=states[1])
    assert run.run(1)["rocker"] == pytest.approx(single["rocker"], abs=ROUNDING)


def test_a_start_that_is_open_is_refused():
    model = machines.four_bar()
    with pytest.raises(ax.LoopNotClosed, match=r"'hinge.[xy]' is open by .* m") as caught:
        ax.simulate(model, 1.0, start=(model.home + 0.1, [0.0]))
    assert set(caught.value.configuration) == set(model.coordinates)
    assert "Call axode.assemble(model, start) first, or give the start by name" in str(caught.value)
    disk = machines.rolling_disk()
    with pytest.raises(ax.InvalidArgument, match=r"quaternion base\.qw"):
        ax.simulate(disk, 1.0, start=(disk.home * [2, 1, 1, 1, 1, 1, 1], np.zeros(3)))
    with pytest.raises(ax.InvalidArgument, match="sizes 3 and 1"):
        ax.simulate(model, 1.0, start=(model.home, [0.0, 0.0]))
    with pytest.raises(ax.InvalidArgument, match=r"'crank'.*finite"):
        ax.simulate(model, 1.0, start={"crank": np.nan})
    with pytest.raises(ax.InvalidArgument, match="by name"):
        ax.simulate(model, 1.0, start=3.0)


def test_free_parameters_must_be_free():
    with pytest.raises(ax.InvalidArgument, match="no parameters"):
        ax.simulate(machines.pendulum(), 1.0, parameters={"mass": 1.0})
    with pytest.raises(ax.InvalidArgument, match="'mass': must be finite"):
        ax.simulate(machines.slider(), 1.0, parameters={"mass": np.inf})
