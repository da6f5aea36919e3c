"""Zero crossings: where they are in closed form, and what happens at them."""

import numpy as np
import pytest
from scipy.special import ellipk

import axode as ax
from tests.problems import machines
from tests.problems.machines import G

LOCATED = 1e-10  # [s]
FINE = {"rtol": 1e-11, "atol": 1e-13}
METHODS = [
    {"method": "rk4", "step": 1e-3},
    FINE,
    FINE | {"method": "rodas5p"},
    FINE | {"method": "radau9"},
]
each_method = pytest.mark.parametrize("options", METHODS, ids=["rk4", "auto", "rodas5p", "radau9"])


def ramp(*events: ax.Event, duration: float = 2.0, **options) -> ax.Trajectory:
    """x = t^2 / 2 from rest."""
    return ax.simulate(
        machines.slider(), duration, input={"rail.force": 1.0}, events=events, **options
    )


@each_method
def test_times_in_closed_form(options: dict):
    """x = a at sqrt(2 a), several in one step too."""
    places = [0.3, 0.30001, 0.30002, 1.1, 1.9999]
    watches = [ax.Event(f"at {a}", lambda s, a=a: s["rail"] - a) for a in places]
    run = ramp(*watches, **options)
    assert [e.name for e in run.events] == [w.name for w in watches]
    for event, place in zip(run.events, places, strict=True):
        assert abs(event.time - np.sqrt(2 * place)) < LOCATED
        assert event.state["rail"] == pytest.approx(place, abs=LOCATED)
        assert event.state["rail.rate"] == pytest.approx(event.time, abs=LOCATED)
    assert run.status == "finished" and run.time[-1] == 2.0


@each_method
def test_every_half_period_of_a_pendulum(options: dict):
    """It hangs down at T/4, 3T/4, ...: a watch by name, both directions or one."""
    half = 2 * np.sqrt(1 / G) * ellipk(np.sin(0.5) ** 2)
    watches = [
        ax.Event("down", "pin"),
        ax.Event("forth", "pin", direction=1),
        ax.Event("back", "pin", direction=-1),
    ]
    run = ax.simulate(machines.pendulum(), 6.0, start={"pin": 1.0}, events=watches, **options)
    times = {w.name: [e.time for e in run.events if e.name == w.name] for w in watches}
    exact = half / 2 + half * np.arange(6)
    assert times["down"] == pytest.approx(exact[exact < 6], abs=LOCATED)
    assert times["back"] == times["down"][::2] and times["forth"] == times["down"][1::2]


@each_method
def test_stop(options: dict):
    """The run ends where the first stop is; the last row is the state there."""
    run = ramp(
        ax.Event("later", lambda s: s["rail"] - 0.7, stop=True),
        ax.Event("first", lambda s: s["rail"] - 0.5, stop=True),
        ax.Event("before", lambda s: s["rail"] - 0.499999),
        **options,
    )
    assert run.status == "stopped by event 'first'"
    assert [e.name for e in run.events] == ["before", "first"]
    assert abs(run.time[-1] - 1.0) < LOCATED and run.final["rail"] == pytest.approx(0.5, abs=1e-12)
    assert len(run) > 200 and (np.diff(run.time) > 0).all()
    assert run["rail"] == pytest.approx(run.time**2 / 2, abs=1e-9)  # samples inside the last step
    assert run.final["rail.force"] == 1.0 and abs(run.final["error"]) < 1e-12


@each_method
def test_zero_at_the_start_is_no_crossing(options: dict):
    """Thrown up from zero it comes back at 2 v / g, and only that counts."""
    thrown = {"start": {"rail.rate": 1.0}, "input": {"rail.force": -2.0}}
    run = ax.simulate(
        machines.slider(), 1.5, events=[ax.Event("floor", "rail")], **thrown, **options
    )
    assert [e.time for e in run.events] == pytest.approx([1.0], abs=LOCATED)
    stays = ax.simulate(machines.slider(), 1.0, events=[ax.Event("floor", "rail")], **options)
    assert stays.events == ()


@each_method
def test_at_the_very_ends(options: dict):
    """A crossing within a millionth of a second of the start, and one of the end."""
    run = ramp(
        ax.Event("start", lambda s: s.t - 1e-6),
        ax.Event("end", lambda s: s.t - 1.999999),
        **options,
    )
    assert [e.time for e in run.events] == pytest.approx([1e-6, 1.999999], abs=LOCATED)
    beyond = ramp(ax.Event("beyond", lambda s: s.t - 2.000001), **options)
    assert beyond.events == () and beyond.status == "finished"


@each_method
def test_backwards(options: dict):
    half = ax.Event("half", lambda s: s["rail"] - 0.125, stop=True)
    run = ax.simulate(
        machines.slider(),
        -1.0,
        backwards=True,
        t0=1.0,
        start={"rail": 0.5, "rail.rate": 1.0},
        input={"rail.force": 1.0},
        events=[half],
        **options,
    )
    assert run.time[-1] == pytest.approx(0.5, abs=LOCATED)


@each_method
def test_in_batches(options: dict):
    """Each run has its own crossing; those that stopped do not hold up the others."""
    amplitudes = np.array([0.2, 0.9, 1.6, 2.2, 2.9])
    quarter = np.sqrt(1 / G) * ellipk(np.sin(amplitudes / 2) ** 2)
    watches = [ax.Event("down", "pin", stop=True), ax.Event("fast", lambda s: s["pin.rate"] + 5.0)]
    run = ax.simulate(
        machines.pendulum(), 0.8, start={"pin": amplitudes}, events=watches, **options
    )
    down = {e.index_of_run: e for e in run.events if e.name == "down"}
    assert set(down) == set(np.flatnonzero(quarter < 0.8).tolist()) != set(range(5))
    for k, event in down.items():
        assert abs(event.time - quarter[k]) < LOCATED
        assert abs(event.state["pin"]) < LOCATED
        assert run.run(k).time[-1] <= quarter[k]
    # rate^2 / 2 = g (cos q - cos a)
    fast = {e.index_of_run: e.state for e in run.events if e.name == "fast"}
    assert fast
    for k, state in fast.items():
        lost = G * (np.cos(state["pin"]) - np.cos(amplitudes[k]))
        assert lost == pytest.approx(5.0**2 / 2, abs=1e-8)
    stopped = [status == "stopped by event 'down'" for status in run.statuses]
    assert stopped == (quarter < 0.8).tolist()


def test_measures_and_parameters_in_events():
    run = ax.simulate(
        machines.slider(),
        3.0,
        start={"rail.rate": 1.0},
        parameters={"mass": 1.5},
        events=[ax.Event("mass", lambda s: s["rail"] - s["mass"])],
    )
    assert run.events[0].time == pytest.approx(1.5, abs=LOCATED)
    swing = ax.simulate(
        machines.pendulum(),
        1.0,
        start={"pin": 0.5},
        rtol=1e-11,
        events=[ax.Event("below", "tip.x")],
    )
    assert abs(swing.events[0].state["pin"]) < 1e-9


@pytest.mark.slow
def test_many_crossings_cost_little():
    """Two thousand half turns, each located."""
    run = ax.simulate(
        machines.slider(),
        2000.0,
        start={"rail.rate": np.pi},
        method="rk4",
        step=0.01,
        events=[ax.Event("half turn", lambda s: np.sin(s["rail"] + 0.5))],
    )
    times = np.array([e.time for e in run.events])
    assert len(times) == 2000
    assert times == pytest.approx(np.arange(1, 2001) - 0.5 / np.pi, abs=1e-8)
    assert run.info["seconds"] < 30


def test_formulas_in_events():
    run = ramp(ax.Event("far", "rail - 0.3"), ax.Event("late", "t - 1"))
    assert [e.time for e in run.events] == pytest.approx([np.sqrt(0.6), 1.0], abs=LOCATED)
    with pytest.raises(ax.InvalidArgument, match="event 'far': 'rial' in 'rial"):
        ramp(ax.Event("far", "rial - 0.3"))


def test_events_must_be_numbers():
    with pytest.raises(ax.InvalidArgument, match=r"event 'all'.*one number"):
        ax.simulate(machines.pendulum(), 1.0, events=[ax.Event("all", lambda s: s.position("rod"))])
    with pytest.raises(ax.UnknownName, match="no signal 'pins'"):
        ax.simulate(machines.pendulum(), 1.0, events=[ax.Event("all", "pins")])


def test_events_may_be_in_a_set():
    event = ax.Event("half", lambda s: s["rail"] - 0.5)
    assert len({event, *ramp(event).events}) == 2


# several crossings inside one step ----------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "dopri5", "rodas5p", "radau9", "rk4"])
def test_a_parabola_that_touches_beyond_a_level_within_one_step_crosses_it_twice(method):
    """x = t - t^2 / 2 has its top of 1/2 at 1 s, in the middle of a step that takes two seconds."""
    given = {"start": {"rail.rate": 1.0}, "input": {"rail": -1.0}, "method": method}
    given |= {"step": 2.0} if method == "rk4" else {}
    for depth in (0.2, 1e-3, 1e-7):
        level = ax.Event("level", f"rail - {0.5 - depth}")
        run = ax.simulate(machines.slider(), 2.0, events=level, save_every=1.0, **given)
        assert run.info["steps"] < 10
        away = np.sqrt(2 * depth)
        found = [event.time for event in run.events]
        assert found == pytest.approx([1 - away, 1 + away], abs=1e-10 + 1e-15 / away)
        last = ax.Event("level", f"rail - {0.5 - depth}", direction=-1, stop=True)
        run = ax.simulate(machines.slider(), 2.0, events=last, **given)
        assert run.time[-1] == pytest.approx(1 + away, abs=1e-9) and run.status.endswith("'level'")
    above = ax.Event("level", "rail - 0.500001")
    assert not ax.simulate(machines.slider(), 2.0, events=above, **given).events


def test_each_run_of_a_batch_has_its_own_crossings_inside_a_step():
    heights = np.array([0.1, 0.499, 0.51, 0.4])
    given = {"start": {"rail": 0.5 - heights, "rail.rate": 1.0}, "input": {"rail": -1.0}}
    run = ax.simulate(
        machines.slider(), 2.0, events=ax.Event("top", "rail - 0.5"), method="radau9", **given
    )
    for k, height in enumerate(heights):
        away = np.sqrt(max(0.0, 1 - 2 * height))
        expected = [1 - away, 1 + away] if height < 0.5 else []
        found = [event.time for event in run.events if event.index_of_run == k]
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "function",
    ["t > 0.3", "not (rail > 0.5)", "where(rail > 0.5, 1, 0)", "abs(rail)", "rail**2", "1 + 0*t"],
)
def test_functions_that_never_change_their_sign_are_refused(function: str):
    """A comparison is 0 or 1: it would fire never, or where it ceases to hold."""
    with pytest.raises(ax.InvalidArgument, match="event 'far' never changes its sign"):
        ramp(ax.Event("far", function))
    with pytest.raises(ax.InvalidArgument, match="event 'far' never"):
        ax.Cost(machines.slider(), 1.0, final="rail", events=ax.Event("far", function)).value()
    outputs = {"far": ("rising", function)}
    with pytest.raises(ax.InvalidArgument, match="output 'far' never changes its sign"):
        ax.sweep(machines.slider(), 1.0, start={"rail": [0.0, 0.1]}, outputs=outputs)
