"""Outputs of sweeps are those of the motion, not of the steps: extremes, crossings, integrals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipj, ellipk

import axode as ax
from axode.codegen.targets.cpu_rollout import BoundRollout
from emulated_gpu import install
from tests.problems import machines
from tests.problems.machines import G

CLOSE = 1e-9  # steps at the tolerances that are usual, over a few periods
COARSE = {"rtol": 1e-6, "atol": 1e-8}
METHODS = [{}, {"step": 1e-3}, {"method": "radau9"}, {"method": "rodas5p"}]


@pytest.mark.parametrize("options", METHODS, ids=lambda o: str(o.get("method", o)))
def test_a_pendulum_of_large_amplitude(options):
    """Closed forms by Jacobi's functions: E. T. Whittaker, *Analytical Dynamics*, section 44."""
    top, speed = np.array([0.1, 1.0, 2.5]), np.sqrt(G)
    made = ax.sweep(
        machines.pendulum(),
        3.5,
        start={"pin": top},
        outputs={
            "end": ("last", "pin"),
            "low": ("min", "pin"),
            "high": ("max", "pin"),
            "fast": ("largest", "pin.rate"),
            "forth": ("max", "pin.rate"),
            "height": ("min", "tip.z"),
            "down": ("crossing", "pin"),
            "up": ("rising", "pin"),
            "back": ("falling", "pin.rate"),
            "swept": ("integral", "pin.rate"),
            "action": ("integral", "pin.rate**2"),
        },
        **options,
    )
    quarter, part = ellipk(np.sin(top / 2) ** 2) / speed, np.sin(top / 2) ** 2

    def rate(t, k):
        _, cn, _, _ = ellipj(speed * t + quarter[k] * speed, part[k])
        return 2 * speed * np.sqrt(part[k]) * cn

    end = 2 * np.arcsin(np.sqrt(part) * ellipj(speed * (3.5 + quarter), part)[0])
    expected = {
        "end": end,
        "low": -top,
        "high": top,
        "fast": 2 * speed * np.sqrt(part),
        "forth": 2 * speed * np.sqrt(part),
        "height": -np.ones(3),
        "down": quarter,
        "up": 3 * quarter,
        "back": 4 * quarter,
        "swept": end - top,
        "action": [
            quad(lambda t, k=k: rate(t, k) ** 2, 0, 3.5, epsabs=1e-12, limit=200)[0]
            for k in range(3)
        ],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(made[name], values, rtol=0, atol=CLOSE, err_msg=name)


@pytest.mark.parametrize("options", [{}, COARSE, {"step": 0.1}], ids=str)
def test_two_crossings_within_a_part_of_a_step(options):
    """A thrown slider passes a place and comes back, while its steps last a tenth of a second."""
    model, first, width = machines.slider(), 3.01, 0.0123
    made = ax.sweep(
        model,
        10.0,
        start={"rail": first**2 - width**2, "rail.rate": -2 * first},
        input={"rail": 2.0},
        outputs={
            "gone": ("crossing", "rail"),
            "fallen": ("falling", "rail"),
            "risen": ("rising", "rail"),
            "least": ("min", "rail"),
            "most": ("max", "rail"),
            "turned": ("crossing", "rail.rate"),
            "area": ("integral", "rail"),
            "never": ("crossing", f"rail + {width**2 + 1e-9}"),
        },
        **options,
    )
    end = 10.0 - first
    expected = {
        "gone": first - width,
        "fallen": first - width,
        "risen": first + width,
        "least": -(width**2),
        "most": end**2 - width**2,
        "turned": first,
        "area": (end**3 + first**3) / 3 - 10 * width**2,
        "never": np.nan,
    }
    for name, value in expected.items():
        assert made[name] == pytest.approx(value, abs=1e-8, nan_ok=True), name


def test_numbers_with_kinks():
    """Polynomials dip below them; only the numbers themselves count."""
    made = ax.sweep(
        machines.slider(),
        10.0,
        start={"rail": -3.01, "rail.rate": 1.0},
        outputs={
            "low": ("min", "abs(rail) + 1"),
            "beyond": ("rising", "max(rail, 0.5 * rail - 0.7)"),
            "back": ("falling", "abs(rail) - 0.021"),
        },
    )
    assert made["low"] >= 1.0
    assert made["beyond"] == pytest.approx(3.01, abs=CLOSE)
    assert made["back"] == pytest.approx(3.01 - 0.021, abs=CLOSE)


KINKED = {  # of x = a cos(10 t): formula, and the same in numbers
    "bent": ("abs(x)", np.abs),
    "root": ("sqrt(abs(x))", lambda x: np.sqrt(np.abs(x))),
    "side": ("sign(x)", np.sign),
    "half": ("max(x, 0)", lambda x: np.maximum(x, 0)),
    "nested": ("where(x > 0.5, min(2 * x, 1.4), -1)", None),
    "stairs": ("floor(2 * x)", lambda x: np.floor(2 * x)),
}


@pytest.mark.parametrize("place", ["auto", "radau9", "rodas5p", "rk4", "backwards", "cuda"])
def test_kinks_and_jumps_by_the_state_are_integrated(place, monkeypatch):
    """Against quadratures between the times at which they switch."""
    given, span, a = {"method": place}, (0.0, 1.0), np.array([1.1, 0.8, 0.6])
    if place == "rk4":
        given["step"] = 0.0037
    elif place == "backwards":
        given, span = {"t0": 1.0, "backwards": True}, (1.0, 0.0)
    elif place == "cuda":
        install(monkeypatch)
        given = {"target": "cuda", "method": "dopri5"}
    bot = ax.Mechanism("oscillator", gravity=(0, 0, 0))
    body = bot.add_body("body", mass=1.0, inertia=ax.Inertia.point())
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=body)
    bot.add_spring("spring", "x", stiffness=100.0)
    outputs = {name: ("integral", formula) for name, (formula, _) in KINKED.items()}
    outputs |= {"least": ("min", "abs(x)"), "deepest": ("largest", "sqrt(abs(x))")}
    start = {"x": a * np.cos(10 * span[0]), "x.rate": -10 * a * np.sin(10 * span[0])}
    made = ax.sweep(
        bot.derive().compile(),
        span[1] - span[0],
        start=start,
        outputs=outputs,
        combine="zip",
        **given,
    )
    tolerance = 1e-7 if place == "rk4" else 1e-10
    for name, (_, values) in KINKED.items():
        for k, size in enumerate(a):
            levels = np.array([0.0, 0.5, 0.7, -0.5, 1.0]) / size
            turns = np.arccos(levels[np.abs(levels) <= 1])
            found = np.concatenate([s * turns + 2 * np.pi * n for s in (-1, 1) for n in range(3)])
            edges = [0.0, *sorted(t / 10 for t in found if 0 < t < 10), 1.0]

            def number(t, size=size, values=values):
                x = size * np.cos(10 * t)
                nested = np.minimum(2 * x, 1.4) if x > 0.5 else -1.0
                return nested if values is None else values(x)

            pairs = pairwise(edges)
            exact = sum(
                quad(number, *pair, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for pair in pairs
            )
            exact *= span[1] - span[0]
            assert made[name][k] == pytest.approx(exact, abs=tolerance), (name, k)
    np.testing.assert_allclose(made["least"], 0.0, atol=1e-7)
    np.testing.assert_allclose(made["deepest"], np.sqrt(a), rtol=1e-8)


def test_an_output_that_jumps_without_end_is_integrated_in_bounded_time():
    outputs = {"steps": ("integral", "floor(1e9 * rail)")}
    made = ax.sweep(machines.slider(), 1.0, start={"rail.rate": 1.0}, outputs=outputs)
    assert made["steps"] == pytest.approx(0.5e9, rel=1e-3)


def test_finished_rows_without_a_value_are_reported():
    outputs = {"log": ("integral", "log(rail)"), "t": ("crossing", "log(rail)")}
    with pytest.warns(
        ax.errors.RunsFailedWarning, match="'log' is not a number in 2 .* such as row 1"
    ):
        made = ax.sweep(machines.slider(), 0.1, start={"rail": [1.0, -1.0, -2]}, outputs=outputs)
    assert np.isnan(made["log"][1:]).all() and made.finished.all()


@pytest.mark.parametrize("options", [{}, {"step": 0.01}], ids=str)
def test_inputs_that_are_held(options):
    """What jumps at samples is integrated piece by piece, and crosses zero at a sample."""
    force = np.array([1.0, -2.0, 0.5, 0.25, -1.0])
    made = ax.sweep(
        machines.slider(),
        1.0,
        input=ax.Sampled({"rail": force}, period=0.2, between="hold"),
        outputs={
            "push": ("integral", "rail.force"),
            "effort": ("integral", "rail.force**2"),
            "change": ("falling", "rail.force"),
            "least": ("min", "rail.force"),
            "work": ("integral", "rail.force * rail.rate"),
            "same": ("last", "supplied"),
        },
        **options,
    )
    speeds = np.cumsum(0.2 * np.array([0.0, *force]))
    expected = {
        "push": 0.2 * force.sum(),
        "effort": 0.2 * (force**2).sum(),
        "change": 0.2,
        "least": -2.0,
        "work": speeds[-1] ** 2 / 2,
        "same": speeds[-1] ** 2 / 2,
    }
    for name, value in expected.items():
        assert made[name] == pytest.approx(value, abs=CLOSE), name


def test_rows_are_runs_of_simulate():
    """Each as accurate as the tolerances say, closed loops included."""
    model, start = machines.four_bar(), {"crank": np.linspace(0.9, 1.5, 5)}
    outputs = {
        "end": ("last", "crank"),
        "rate": ("last", "crank.rate"),
        "error": ("largest", "error"),
    }
    run = ax.simulate(model, 1.0, start=start, rtol=1e-12, atol=1e-13)
    for tolerance in (1e-6, 1e-10):
        made = ax.sweep(
            model, 1.0, start=start, outputs=outputs, rtol=tolerance, atol=tolerance / 100
        )
        for name, column in (("end", "crank"), ("rate", "crank.rate")):
            error = np.abs(made[name] - run.final[column]).max()
            assert error < 100 * tolerance * max(1.0, np.abs(run[column]).max())
        assert made["error"].max() < 1e3 * tolerance


@pytest.mark.slow
def test_stiff_rows_change_their_method(monkeypatch):
    """A slider that a law of 1e7 / s holds to a speed; rows that stay explicit are no worse."""
    model = machines.slider()
    options = {"start": {"rail": np.linspace(0.0, 1.0, 9)}, "parameters": {"mass": [1.0, 1e7]}}
    law = {"rail": "1e7 * (cos(t) - rail.rate)"}
    model = machines.slider(limit=1e9)
    made = ax.sweep(model, 2.0, input=law, outputs={"end": ("last", "rail.rate")}, **options)
    pole = 1e7 / np.array([1.0, 1e7])
    lag = (pole * np.cos(2.0) + np.sin(2.0)) * pole / (pole**2 + 1)
    exact = lag - pole**2 / (pole**2 + 1) * np.exp(-2 * pole)
    np.testing.assert_allclose(made["end"], np.tile(exact, (9, 1)), atol=CLOSE)
    again = ax.sweep(
        model,
        2.0,
        input=law,
        outputs={"end": ("last", "rail.rate")},
        chunk=5,
        executor=1,
        **options,
    )
    np.testing.assert_array_equal(again["end"], made["end"])
    monkeypatch.setattr("axode.problems.steps.adaptive.MAX_STEPS", 1000.0)
    slow = ax.sweep(
        machines.slider(limit=1e10),
        2.0,
        input=law | {"rail": "1e7 * (cos(t) - rail.rate) * 1.0"},
        method="dopri5",
        outputs={"end": ("last", "rail.rate")},
        **options,
    )
    assert slow.statuses == {"finished": 9, "failed: steps too short": 9}


def test_unknown_methods_and_tolerances():
    with pytest.raises(ax.InvalidArgument, match=r"step: dopri5 chooses its own steps"):
        ax.sweep(machines.slider(), 1.0, method="dopri5", step=1e-3)
    with pytest.raises(ax.UnknownName, match="method 'euler'"):
        ax.sweep(machines.slider(), 1.0, method="euler")


def test_runs_are_regrouped_and_keep_their_bits(monkeypatch):
    """Rows of very different numbers of steps: vectors of those that are left."""
    options = {
        "start": {"rail": 1.0},
        "parameters": {"mass": np.geomspace(0.1, 1000.0, 41)[np.argsort(np.arange(41) % 7)]},
        "input": {"rail": "-500*rail"},
        "outputs": {"end": ("last", "rail"), "path": ("integral", "abs(rail.rate)")},
        "threads": 1,
    }
    whole = ax.sweep(machines.slider(limit=1e9), 1.0, **options)
    counts = []
    real = BoundRollout.regroup
    monkeypatch.setattr(
        BoundRollout, "regroup", lambda self: real(self) or counts.append(len(self._order))
    )
    monkeypatch.setattr("axode.problems.runs.session.FIRST_SLICE", 1.0)
    monkeypatch.setattr("axode.problems.runs.session._next_budget", lambda budget, seconds: 16)
    parts = ax.sweep(machines.slider(limit=1e9), 1.0, **options)
    for name in whole:
        np.testing.assert_array_equal(parts[name], whole[name])
    speed = np.sqrt(500.0 / options["parameters"]["mass"])
    np.testing.assert_allclose(whole["end"], np.cos(speed), atol=CLOSE)
    assert counts[0] == 41 and len(set(counts)) > 3 and counts == sorted(counts, reverse=True)


@pytest.mark.slow
def test_stiff_rows_on_a_gpu(monkeypatch):
    """They change their method there as here."""
    install(monkeypatch)
    options = {
        "start": {"rail": [0.0, 1.0]},
        "parameters": {"mass": [1.0, 1e7]},
        "input": {"rail": "1e7 * (cos(t) - rail.rate)"},
        "outputs": {"end": ("last", "rail.rate"), "far": ("max", "rail")},
    }
    here = ax.sweep(machines.slider(limit=1e9), 2.0, **options)
    there = ax.sweep(machines.slider(limit=1e9), 2.0, target="cuda", **options)
    for name in here:
        np.testing.assert_allclose(there[name], here[name], atol=CLOSE)


@pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-4])
def test_equal_jumps_near_each_other_are_both_integrated(apart):
    """Symmetric rules agree on a piece in whose middle half of a staircase's jumps have come."""
    start = np.random.default_rng(0).uniform(-0.2, 0.2, 200)
    output = f"where(rail > 0.5, 1, 0) + where(rail > {0.5 + apart}, 1, 0)"
    outputs = {"both": ("integral", output), "steps": ("integral", "0.01 * floor(rail / 0.01)")}
    for name, wanted in (("both", 1.0 - apart + 2.0 * start), ("steps", None)):
        made = ax.sweep(
            machines.slider(),
            1.0,
            start={"rail": start, "rail.rate": 1.0},
            outputs={name: outputs[name]},
        )
        if wanted is None:
            edges = [np.unique([0.0, 1.0, *(k * 0.01 - s for k in range(-30, 130))]) for s in start]
            inside = [e[(e >= 0.0) & (e <= 1.0)] for e in edges]
            wanted = np.array(
                [
                    np.sum(np.diff(e) * 0.01 * np.floor((s + (e[1:] + e[:-1]) / 2) / 0.01))
                    for s, e in zip(start, inside, strict=True)
                ]
            )
        assert made[name] == pytest.approx(wanted, abs=1e-11)


def test_an_output_that_has_settled_leaves_the_pieces_to_others():
    """Its noise of 1e-16 used up all pieces of the step, so that others were 5e-5 off."""
    bot = ax.Mechanism("two masses", gravity=(0, 0, 0))
    for name in ("x", "y"):
        bot.add_body(name, mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(name, ax.Prismatic(name), parent=bot.ground, child=name)
        bot.add_motor(f"f{name}", name)
    model = bot.derive().compile()
    law = {"fx": "1600 * (0.5 - x) - 80 * x.rate", "fy": "-100 * y"}
    one = {"on": ("integral", "where(y > 0.1, 1, 0)")}
    options = {"start": {"x": 0.0, "y": 0.9}, "input": law}
    alone = ax.sweep(model, 3.0, **options, outputs=one)
    beside = ax.sweep(model, 3.0, **options, outputs=one | {"iae": ("integral", "abs(x - 0.5)")})
    assert beside["on"] == pytest.approx(alone["on"], abs=1e-9)
    assert beside["iae"] == pytest.approx(0.025, abs=1e-9)  # 2 w / k^2 of a critically damped mass
