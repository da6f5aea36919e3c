"""The N-four-bar mechanism: N windows of rods a metre long and of one kilogram.

Benchmark A02 of the library of the IFToMM Technical Committee for Multibody Dynamics. Whenever all
rods lie in one line the constraints lose rank N, and the mechanism has N + 1 freedoms for an
instant; it passes with momentum. As long as it stays a row of parallelograms it is a pendulum,
whose equation is the reference here.
"""

import functools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axode as ax
from variants import further, slow

G = 9.81
KEPT = 1e-6  # [J] of energy in 10 s, as the benchmark is judged here
SAME = 1e-7  # [rad] after five turns, integrated with rtol 1e-10


def windows(n: int, longer: float = 0.0, cart: bool = False) -> ax.Mechanism:
    """n windows; the first coupler may be longer, the whole may slide on a cart."""
    bot = ax.Mechanism(f"{n}-four-bar", gravity=(0, -G, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": ax.Inertia.rod(1.0, 1.0, "x")}
    base = bot.ground
    if cart:
        base = bot.add_body("cart", mass=3.0, inertia=(1, 1, 1))
        bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=base)
    cranks = [bot.add_body(f"crank{i}", **rod) for i in range(n + 1)]
    for i, crank in enumerate(cranks):
        bot.add_joint(f"a{i}", ax.Revolute("z"), parent=base, child=crank, at=(i, 0, 0))
    for i in range(n):
        coupler = bot.add_body(f"coupler{i}", **rod)
        end = (1.0 + (longer if i == 0 else 0.0), 0, 0)
        bot.add_joint(f"b{i}", ax.Revolute("z"), parent=cranks[i], child=coupler, at=(1, 0, 0))
        bot.add_loop(
            f"c{i}",
            ax.Revolute("z"),
            parent=coupler,
            child=cranks[i + 1],
            at=end,
            child_at=(1, 0, 0),
        )
    upright = {f"a{i}": math.pi / 2 for i in range(n + 1)}
    bot.set_home(upright | {f"b{i}": -math.pi / 2 for i in range(n)})
    return bot


@functools.cache
def model_of(n: int) -> ax.Model:
    return windows(n).derive().compile()


def pendulum(n: int, t: np.ndarray, rate: float = -1.0) -> np.ndarray:
    """Angle and rate of n + 1 cranks about their pivots and n couplers that stay level."""
    inertia, moment = (n + 1) / 3 + n, (n + 1) / 2 + n

    def rates(_, x):
        return [x[1], -G * moment * math.cos(x[0]) / inertia]

    found = solve_ivp(
        rates, (t[0], t[-1]), [math.pi / 2, rate], "DOP853", t_eval=t, rtol=1e-13, atol=1e-13
    )
    return found.y.T


START = {"a0.rate": -1.0}  # the first tip at 1 m/s along x


@pytest.mark.parametrize("n", [2, further(5)])
def test_ten_seconds_of_the_benchmark(n: int):
    run = ax.simulate(model_of(n), 10.0, start=START, singular="pass")
    assert run.status == "finished" and np.abs(run["error"]).max() < KEPT
    exact = pendulum(n, run.time)
    assert exact[-1, 0] < -9 * math.pi  # nearly five turns
    for i in range(n + 1):
        assert np.abs(run[f"a{i}"] - exact[:, 0]).max() < SAME
        assert np.abs(run[f"a{i}.rate"] - exact[:, 1]).max() < 10 * SAME
    assert run["residual"].max() < 1e-10
    # every half turn, and every one is reported
    passed = run.info["passed"]
    flat = np.sum(np.diff(np.floor(exact[:, 0] / math.pi)) != 0)
    assert len(passed) == flat >= 9
    assert all(0 < p["until"] - p["time"] < 0.05 and "there" in p["what"] for p in passed)
    assert max(abs(p["correction"]) for p in passed) < 1e-8


def test_it_stops_unless_asked_to_pass():
    with pytest.raises(ax.SingularConfiguration, match=r"c0\.x") as caught:
        ax.simulate(model_of(2), 10.0, start=START)
    assert abs(caught.value.trajectory.final["a1"]) < 2e-3
    assert 'singular="pass"' in str(caught.value)
    with pytest.raises(ax.UnknownName, match=r"has no choice 'jump'\.\n  Choices: stop, pass"):
        ax.simulate(model_of(2), 1.0, start=START, singular="jump")


def test_samples_and_events_on_the_way():
    """What lies between is recorded too, but for forces, which nothing determines there."""
    watch = ax.Event("flat", lambda s: np.sin(s["a1"]))
    run = ax.simulate(
        model_of(2), 2.0, start=START, singular="pass", events=[watch], save_every=1e-3
    )
    exact = pendulum(2, run.time)
    assert np.abs(run["a2"] - exact[:, 0]).max() < SAME
    assert np.abs(run["error"]).max() < KEPT
    assert [e.state["a1"] for e in run.events] == pytest.approx([0.0, -math.pi], abs=1e-9)
    inside = np.zeros(len(run), dtype=bool)
    for p in run.info["passed"]:
        inside |= (run.time > p["time"]) & (run.time <= p["until"])
    assert inside.sum() > 5 and (np.isnan(run["c1.x.force"]) == inside).all()
    # an event that ends the run there
    stop = ax.Event("level", "a0", stop=True)
    ended = ax.simulate(model_of(2), 2.0, start=START, singular="pass", events=[stop])
    assert ended.final["a2"] == pytest.approx(0.0, abs=1e-9)
    assert ended.time[-1] == pytest.approx(run.events[0].time, abs=1e-9)
    speed = -math.sqrt(1 + 2 * G * 3.5 / 3)
    assert ended.final["a2.rate"] == pytest.approx(speed, abs=1e-8)


def test_a_run_that_ends_on_the_way_and_one_that_comes_back():
    model = model_of(2)
    there = ax.simulate(model, 1.5, start=START, singular="pass")
    back = ax.simulate(model, -1.5, backwards=True, t0=1.5, start=there, singular="pass")
    assert back.final["a2"] == pytest.approx(math.pi / 2, abs=SAME)
    assert back.final["a2.rate"] == pytest.approx(-1.0, abs=10 * SAME)
    when = there.info["passed"][0]
    ended = ax.simulate(model, 0.5 * (when["time"] + when["until"]), start=START, singular="pass")
    assert ended.status == "finished" and np.abs(ended["error"]).max() < KEPT


def test_runs_of_a_batch_pass_by_themselves():
    rates = [-1.0, -2.0, 0.5]
    run = ax.simulate(model_of(2), 2.0, start={"a0.rate": rates}, singular="pass")
    assert set(run.statuses) == {"finished"}
    for k, rate in enumerate(rates):
        exact = pendulum(2, run.time, rate)
        assert np.abs(run["a1"][k] - exact[:, 0]).max() < SAME
    assert {p["run"] for p in run.info["passed"]} == {0, 1, 2}


@pytest.mark.parametrize(
    "options", slow([{}, {"method": "rk4", "step": 1e-3}], {}), ids=["adaptive", "rk4"]
)
def test_runs_pass_alike_in_any_company(options):
    """The same bits in reverse, among others, and by a model that nothing has used before."""
    rates = np.random.default_rng(0).uniform(-3.0, 3.0, 6)
    watch = ax.Event("flat", lambda s: np.sin(s["a1"]))

    def passed(model: ax.Model, rows: list[int]) -> tuple[np.ndarray, list[list]]:
        start = {"a0.rate": rates[rows]}
        run = ax.simulate(model, 1.5, start=start, singular="pass", events=[watch], **options)
        assert set(run.statuses) == {"finished"}
        told = [[] for _ in rows]
        for p in run.info["passed"]:
            told[p["run"]].append((p["time"], p["until"], p["correction"]))
        for event in run.events:
            told[event.index_of_run].append(event.time)
        assert all(told)
        return np.stack([run[c] for c in (*model.coordinates, *model.speed_names)], axis=1), told

    every, told = passed(model_of(1), [*range(6)])
    for model, rows in ((model_of(1), [5, 4, 3, 2, 1, 0]), (windows(1).derive().compile(), [4, 2])):
        found, said = passed(model, rows)
        np.testing.assert_array_equal(found, every[rows])
        assert said == [told[k] for k in rows]


def test_fixed_steps_pass_too():
    run = ax.simulate(model_of(2), 3.0, start=START, singular="pass", method="rk4", step=1e-3)
    assert run.status == "finished" and len(run.info["passed"]) == 3
    assert np.abs(run["a0"] - pendulum(2, run.time)[:, 0]).max() < SAME
    assert np.allclose(run.time, np.append(np.arange(0, 3.0, 0.006), 3.0))


def test_momentum_of_a_cart_is_kept():
    """Two freedoms: nothing acts along the rail, whatever the windows do."""
    bot = windows(2, cart=True)
    bot.measure(
        "centre",
        lambda s: (
            3 * s["x.rate"]
            + sum(
                s["x.rate"] - s[f"a{i}.rate"] * np.sin(s[f"a{i}"]) * (0.5 if i == 2 else 1.5)
                for i in range(3)
            )
            + 2 * s["x.rate"]
        ),
    )
    model = bot.derive().compile()
    run = ax.simulate(model, 4.0, start=START | {"x.rate": 0.3}, singular="pass")
    assert len(run.info["passed"]) >= 3 and np.abs(run["error"]).max() < KEPT
    assert np.ptp(run["centre"]) < 1e-7


def test_an_isosceles_slider_crank_passes_its_pivot():
    """Crank and rod alike: the slide comes back to the pivot twice a turn and goes on beyond."""
    bot = ax.Mechanism("isosceles", gravity=(0, -G, 0))
    names = ("crank", "rod", "slide")
    crank, rod, slide = (
        bot.add_body(n, mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01)) for n in names
    )
    bot.add_joint("a", ax.Revolute("z"), parent=bot.ground, child=crank)
    bot.add_joint("b", ax.Revolute("z"), parent=crank, child=rod, at=(0.3, 0, 0))
    bot.add_joint("s", ax.Prismatic("x"), parent=bot.ground, child=slide)
    bot.add_loop("pin", ax.Revolute("z"), parent=rod, child=slide, at=(0.3, 0, 0))
    bot.add_motor("drive", "a")
    bot.set_home(a=0.5, b=-1.0, s=0.6 * math.cos(0.5))
    model = bot.derive().compile()
    pulses = ax.Sampled({"drive.torque": [0.2, -0.1, 0.3]}, period=0.7)
    for given in (None, pulses, ax.Callback(lambda t, state: {"drive.torque": -0.05})):
        run = ax.simulate(model, 2.0, start={"a.rate": 10.0}, input=given, singular="pass")
        assert run.status == "finished" and len(run.info["passed"]) >= 4
        assert np.abs(run["s"] - 0.6 * np.cos(run["a"])).max() < 1e-9
        assert run.energy_error < 1e-8


@pytest.mark.parametrize("longer", [1e-11, -1e-13])
def test_lengths_rounded_in_the_last_digits_pass(longer: float):
    model = windows(1, longer).derive().compile()
    run = ax.simulate(model, 2.0, start=START, singular="pass")
    assert run.status == "finished" and np.abs(run["error"]).max() < KEPT
    assert np.abs(run["a1"] - pendulum(1, run.time)[:, 0]).max() < 1e-6


@pytest.mark.parametrize("longer", [1e-6, further(-1e-4)])
def test_lengths_that_do_not_fit_do_not_pass(longer: float):
    """Their motion turns off before the line; no smooth one leads across, and none is invented."""
    model = windows(1, longer).derive().compile()
    try:
        run = ax.simulate(model, 1.0, start=START, singular="pass")
    except ax.SingularConfiguration as error:
        run = error.trajectory
    assert "passed" not in run.info and np.abs(run["error"]).max() < KEPT
