"""Runs that cannot go on say when and why, and keep what they have."""

import ast
import re

import numpy as np
import pytest

import axode as ax
from tests.problems import machines

METHODS = [{"method": "rk4", "step": 1e-3}, {}, {"method": "rodas5p"}, {"method": "radau9"}]
each_method = pytest.mark.parametrize("options", METHODS, ids=["rk4", "auto", "rodas5p", "radau9"])


@each_method
def test_an_input_that_stops_being_a_number(options: dict):
    with pytest.raises(ax.SimulationFailed) as caught:
        ax.simulate(machines.slider(), 3.0, input={"rail.force": "sqrt(1 - t)"}, **options)
    error, run = caught.value, caught.value.trajectory
    assert error.time == pytest.approx(1.0, abs=1e-3) and "t = 1 s" in str(error)
    assert "the input rail.force is nan" in str(error) and ".trajectory" in str(error)
    assert isinstance(run, ax.Trajectory) and run.time[-1] == pytest.approx(1.0, abs=1e-3)
    # v = 2/3 (1 - (1-t)^(3/2)): all samples before are good
    exact = 2 / 3 * (1 - np.maximum(1 - run.time, 0) ** 1.5)
    assert np.abs(run["rail.rate"] - exact).max() < 1e-4
    assert np.isfinite(run["rail"]).all() and run.status.startswith("failed: not finite")


@each_method
def test_a_callback_that_gives_nan(options: dict):
    given = ax.Callback(lambda t, s: [np.nan if t > 0.5 else 1.0])
    with pytest.raises(ax.SimulationFailed, match=r"the input rail\.force is nan") as caught:
        ax.simulate(machines.slider(), 1.0, input=given, **options)
    assert caught.value.time == pytest.approx(0.5, abs=5e-3)


@each_method
def test_others_of_a_batch_go_on(options: dict):
    """x'' = sqrt(p - x): a number only up to x = p."""
    with pytest.warns(ax.RunsFailedWarning, match=r"2 of 4 runs failed \(2 failed: not finite\)"):
        run = ax.simulate(
            machines.slider(),
            1.0,
            start={"rail": [0.0, 0.9, 0.99, -5.0]},
            input=lambda s: [(1 - s["rail"]) ** 0.5],
            **options,
        )
    failed = [status.startswith("failed: not finite") for status in run.statuses]
    assert failed == [False, True, True, False]
    assert "input rail.force is nan" in run.statuses[1] and "t = " in run.statuses[1]
    assert run.ended[3] == 1.0 and run.ended[1] < 1.0
    assert np.isnan(run["rail"][1, -1]) and np.isfinite(run["rail"][0]).all()


@each_method
def test_ended_runs_are_nan_beyond_their_ends_in_every_column(options: dict):
    """Inputs, energies and measures too, whether or not they depend on the state."""
    begin = {"rail": [0.0, 0.5], "rail.rate": 1.0}
    with pytest.warns(ax.RunsFailedWarning, match="2 of 2 runs failed"):
        failed = ax.simulate(
            machines.slider(),
            2.0,
            start=begin,
            input=lambda s: [(0.9 - s["rail"]) ** 0.5],
            **options,
        )
    far = ax.Event("far", lambda s: s["rail"] - 1.0, stop=True)
    stopped = ax.simulate(
        machines.slider(), 2.0, start=begin, input={"rail.force": 0.2}, events=[far], **options
    )
    for run in (failed, stopped):
        assert run.lengths[1] < run.lengths[0] <= len(run)
        for values, length in zip(run.values, run.lengths, strict=True):
            assert np.isnan(values[length:]).all() and np.isfinite(values[: length - 1]).all()


@each_method
def test_a_motion_that_blows_up(options: dict):
    """v' = v^2 from 1 is 1/(1-t): beyond one second there is nothing."""
    with pytest.raises(ax.SimulationFailed, match="failed at t =") as caught:
        ax.simulate(
            machines.slider(limit=1e308),
            2.0,
            start={"rail.rate": 1.0},
            input=lambda s: [s["rail.rate"] ** 2],
            **options,
        )
    assert caught.value.time == pytest.approx(1.0, abs=0.02)


def test_steps_that_become_too_short():
    """Dry friction as a sign has no solution once the speed is zero, only shorter steps."""
    with pytest.raises(ax.SimulationFailed) as caught:
        ax.simulate(
            machines.slider(limit=1e12),
            2.0,
            start={"rail.rate": 1.0},
            rtol=1e-10,
            atol=1e-12,
            input=lambda s: [-1e6 * np.sign(s["rail.rate"])],
        )
    assert caught.value.time == pytest.approx(1e-6, rel=1e-3)
    assert "still too long for the tolerances" in str(caught.value)
    assert "Loosen rtol" in str(caught.value) and "rk4" in str(caught.value)
    assert caught.value.trajectory is not None


def test_what_a_rejected_step_leaves_behind():
    """A failed run's last row is the last good state, with its energy balance."""
    with pytest.raises(ax.SimulationFailed) as caught:
        ax.simulate(
            machines.pendulum(), 3.0, start={"pin": 1.0}, input={"pin.torque": "log(2 - t)"}
        )
    run = caught.value.trajectory
    assert isinstance(run, ax.Trajectory)
    assert run.energy_error < 1e-6 and run.time[-1] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.slow
def test_a_start_that_the_independent_speeds_do_not_tell_names_others():
    """Steered by a right angle, a tricycle turns about its axle and has no speed ahead."""
    bot = ax.gallery.build("tricycle")
    ahead = bot.derive(independent=["v", "delta_dot"]).compile("interpreter")
    across = {"delta": np.pi / 2}
    with pytest.raises(ax.SingularConfiguration) as caught:
        ax.simulate(ahead, 0.1, start=across | {"v": 1.0})
    found = re.search(r"derive\(independent=(\[.*\])\)", str(caught.value))
    assert found, caught.value
    better = bot.derive(independent=ast.literal_eval(found[1])).compile("interpreter")
    run = ax.simulate(better, 0.5, start=across | {"theta_dot": 1.0})
    np.testing.assert_allclose(run["theta"], run.time, atol=1e-9)
    beside = ax.simulate(ahead, 0.1, start={"delta": 1.55, "theta_dot": 1.0})
    assert beside.status == "finished"


def test_a_fixed_step_may_be_to_blame():
    model = ax.gallery.build("wheeled_pendulum").derive().compile("interpreter")
    with pytest.raises(ax.SimulationFailed, match=r"The step of 2 s may also be too long for it\."):
        ax.simulate(model, 4000.0, start={"theta3": 1.0}, method="rk4", step=2.0)


# laws that chatter --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "dopri5", "rodas5p", "radau9"])
@pytest.mark.parametrize(
    ("surface", "time"), [("rail.rate", 0.4), ("rail.rate + rail", (-1.5 + 7.25**0.5) / 2.5)]
)
def test_a_law_that_chatters_is_reported_within_few_steps(method, surface, time):
    """A cart at 1 m/s that loses 2.5 m/s every second comes to the surface and cannot leave it."""
    law = {"rail": f"0.5 - 3 * sign({surface})"}
    given = {"start": {"rail.rate": 1.0}, "input": law, "method": method}
    with pytest.raises(ax.SimulationFailed, match=r"tanh\(v / v0\)") as failed:
        ax.simulate(machines.slider(), 2.0, **given)
    run = failed.value.trajectory
    assert run.info["steps"] + run.info["rejected"] < 50_000
    assert run.time[-1] == pytest.approx(time, abs=1e-4) and len(run) > 100
    assert run.final["rail"] == pytest.approx(time - 1.25 * time**2, abs=1e-4)
    smooth = given | {"input": {"rail": f"0.5 - 3 * tanh(({surface}) / 1e-3)"}}
    assert abs(ax.simulate(machines.slider(), 2.0, **smooth).final["rail.rate"]) < 0.2


@pytest.mark.parametrize("method", ["auto", "dopri5", "rodas5p", "radau9"])
@pytest.mark.parametrize("rtol", [1e-10, 1e-8])
@pytest.mark.parametrize(
    "braking", ["-5 * sign({})", "-5 * where({0} > 0, 1, where({0} < 0, -1, 0))"]
)
def test_a_law_that_brakes_to_a_stop_and_holds_it_chatters(method, braking, rtol):
    """At rest nothing is rejected: jumps of steps of 1e-12 s are within the tolerance."""
    law = {"rail": braking.format("rail.rate")}
    given = {"start": {"rail.rate": 1.0}, "input": law, "rtol": rtol, "atol": 0.01 * rtol}
    with pytest.raises(ax.SimulationFailed, match=r"tanh\(v / v0\)") as failed:
        ax.simulate(machines.slider(), 1.0, method=method, **given)
    run = failed.value.trajectory
    assert run.info["steps"] + run.info["rejected"] < 50_000
    assert run.time[-1] == pytest.approx(0.2, abs=1e-4)
    assert run.final["rail"] == pytest.approx(0.1, abs=1e-8)


def test_runs_of_a_batch_that_chatter_leave_the_others_alone():
    force = np.array([0.5, 4.0])
    law = ax.Law(lambda s, force: {"rail": force - 3 * np.sign(s["rail.rate"])}, force=force)
    with pytest.warns(ax.RunsFailedWarning, match="1 failed: chattering"):
        run = ax.simulate(machines.slider(), 2.0, start={"rail.rate": 1.0}, input=law)
    assert run.final["rail.rate"][1] == pytest.approx(1.0 + 1.0 * 2.0)


def test_a_singular_start_says_where_to_start():
    """Three steered wheels that all point ahead leave the motion ahead undetermined."""
    bot = ax.Mechanism("swerve")
    body = bot.add_body("body", mass=10, inertia=(1, 1, 1), com=(0, 0, 0.1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    for k, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1)]):
        fork = bot.add_body(f"fork{k}", mass=0.1, inertia=(0.01, 0.01, 0.01))
        bot.add_joint(f"steer{k}", ax.Revolute("z"), parent=body, child=fork, at=(x, y, 0))
        bot.add_wheel(f"w{k}", ax.Rolling(radius=0.1), on=fork, at=(0, 0, 0), mass=0.1, motor=True)
    model = bot.derive().compile()
    with pytest.raises(ax.SingularConfiguration, match="begin a little away") as caught:
        ax.simulate(model, 0.1, input={"w0.torque": 0.5})
    start = ast.literal_eval(re.search(r"start=(\{.*?\})", str(caught.value))[1])
    assert ax.simulate(model, 0.1, start=start).status == "finished"  # as advised
