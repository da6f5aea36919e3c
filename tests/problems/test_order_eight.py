"""Explicit steps of order eight: their coefficients, interpolant, choice and cost."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.integrate

import axode as ax
from axode.problems.steps.tableaus import DOP853, DOPRI5, ButcherTableau
from tests.problems import machines


def weights_inside(method: ButcherTableau, s: Fraction) -> list[float]:
    """Weights of the stages at a part of the step."""
    return [float(sum(c * s ** (k + 1) for k, c in enumerate(row))) for row in method.dense]


@pytest.mark.parametrize("method", [DOPRI5, DOP853], ids=lambda m: m.name)
def test_coefficients_fit_each_other(method):
    """Estimates of a constant are zero; the interpolant ends where the step does, as steep."""
    count = len(method.weights)
    assert abs(sum(method.weights) - 1) < 1e-18
    assert abs(sum(method.error)) < 1e-18 and abs(sum(method.coarse)) < 1e-18
    ends = weights_inside(method, Fraction(1))
    assert ends[:count] == pytest.approx([float(b) for b in method.weights], abs=1e-15)
    slopes = [float(sum((k + 1) * c for k, c in enumerate(row))) for row in method.dense]
    assert slopes == pytest.approx([float(i == count - 1) for i in range(len(slopes))], abs=1e-14)
    for i, row in enumerate((*method.stages, *method.inner)):
        assert len(row) <= i and abs(float(sum(row)) - float(method.nodes[i])) < 1e-15


def test_quadrature_conditions_hold_up_to_order_eight():
    for power in range(8):
        value = sum(b * c**power for b, c in zip(DOP853.weights, DOP853.nodes, strict=False))
        assert float(value) == pytest.approx(1 / (power + 1), abs=1e-15)


def test_the_interpolant_is_that_of_scipy():
    """Inside one step, from the rates that SciPy computed there."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        return np.array([y[1], -1.3 * np.sin(y[0]) + 0.1 * t])

    steps = scipy.integrate.DOP853(rate, 0.0, np.array([1.0, 0.3]), 10.0, rtol=1e-6, first_step=0.3)
    start = steps.y.copy()
    steps.step()
    theirs, rates = steps.dense_output(), steps.K_extended
    for s in (0.1, 0.5, 0.9, 1.0):
        ours = start + steps.t * np.array(weights_inside(DOP853, Fraction(s))) @ rates
        assert ours == pytest.approx(theirs(s * steps.t), abs=1e-13)


def test_states_inside_steps_have_the_order_of_the_motion():
    """Few steps, many samples: all of them as exact as the end, with and without events."""
    model = ax.gallery.build("five_axis_arm").derive().compile()
    given = {"start": dict(zip(model.independent, [0.4, -0.3, 0.5, 0.2, -0.6], strict=True))}
    exact = ax.simulate(model, 1.0, method="radau9", rtol=1e-12, atol=1e-13, **given)
    watch = ax.Event("never", f"{model.coordinates[0]} - 100")
    for events in ((), watch):
        run = ax.simulate(model, 1.0, method="dop853", events=events, **given)
        assert run.info["steps"] < len(run) / 2
        for name in (*model.coordinates, *model.independent):
            np.testing.assert_allclose(run[name], exact[name], atol=2e-10)
        ends = ax.simulate(model, 1.0, method="dop853", events=events, save_every=1.0, **given)
        assert all(ends.final[name] == run.final[name] for name in model.coordinates)


def test_inputs_of_time_are_read_inside_the_step_that_has_ended():
    """Samples in between, where rates are computed once more after the step."""
    ramp = ax.Sampled({"rail.force": [0.0, 3.0, 3.0, -1.0]}, 0.4, between="linear")
    for between in (ramp, {"rail.force": "where(t > 0.55, cos(20 * t), t ** 2)"}):
        given = {"input": between, "save_every": 0.01}
        run = ax.simulate(machines.slider(), 1.2, method="dop853", **given)
        other = ax.simulate(machines.slider(), 1.2, method="dopri5", **given)
        np.testing.assert_allclose(run["rail"], other["rail"], atol=1e-11)


def test_small_tolerances_choose_it_and_take_fewer_evaluations():
    model = machines.wheeled_pendulum()
    given = {"start": {model.independent[0]: 0.5}, "input": [0.02, 0.01]}
    fine, five = (ax.simulate(model, 3.0, method=m, **given) for m in ("auto", "dopri5"))
    assert fine.info["method"] == "dop853"
    assert ax.simulate(model, 3.0, rtol=1e-6, **given).info["method"] == "dopri5"
    evaluations = 15 * (fine.info["steps"] + fine.info["rejected"])
    assert 1.5 * evaluations < 6 * (five.info["steps"] + five.info["rejected"])


def test_rows_have_the_same_bits_alone_and_in_company():
    model = ax.gallery.build("rolling_disk").derive().compile()
    speeds = np.random.default_rng(8).uniform(-1, 1, (37, len(model.independent)))
    q = np.broadcast_to(model.home, (37, len(model.home)))
    together = ax.simulate(model, 0.5, start=(q, speeds))
    for k in (0, 17, 36):
        alone = ax.simulate(model, 0.5, start=(q[k : k + 1], speeds[k : k + 1]))
        assert np.array_equal(alone.values[0], together.values[k], equal_nan=True)


def test_gradients_name_the_methods_that_they_know():
    with pytest.raises(ax.NotApplicable, match="method='dop853' has no gradients"):
        ax.Cost(machines.pendulum(), 1.0, final="pin", method="dop853")
