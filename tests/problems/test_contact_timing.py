"""Contacts that wait for an input, and contacts that strike at the start."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import axode as ax

MOMENT = 0.1  # of inertia of the rubbing joint [kg m2]


def rubbing_joint(friction):
    bench = ax.Mechanism("bench")
    wheel = bench.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, MOMENT))
    bench.add_joint("p", ax.Revolute("z"), parent=bench.ground, child=wheel, friction=friction)
    bench.add_motor("drive", "p")
    return bench.derive().compile()


@pytest.mark.parametrize(("height", "width"), [(2.0, 0.7), (0.7, 1.0), (4.0, 0.5), (2.0, 0.25)])
def test_pulses_are_seen_while_everything_sticks(height, width):
    law = f"{height}*exp(-((t-5)/{width})**2)"
    run = ax.simulate(rubbing_joint(0.5), 10.0, input={"drive.torque": law})

    def pulse(t):
        return height * np.exp(-(((t - 5) / width) ** 2))

    begins = brentq(lambda t: pulse(t) - 0.5, 0.0, 5.0, xtol=1e-14)
    rate = solve_ivp(
        lambda t, y: [y[1], (pulse(t) - 0.5) / MOMENT],
        (begins, 10.0),
        [0.0, 0.0],
        rtol=1e-12,
        atol=1e-13,
        max_step=0.01,
        events=lambda t, y: y[1] if t > begins + 1e-6 else 1.0,
        dense_output=True,
    )
    stops = rate.t_events[0][0] if rate.t_events[0].size else 10.0
    assert run["p"][-1] == pytest.approx(rate.sol(stops)[0], abs=1e-8)
    work = quad(lambda t: pulse(t) * rate.sol(t)[1], begins, stops, limit=400, epsabs=1e-10)[0]
    assert run["supplied"][-1] == pytest.approx(work, abs=1e-7)


def test_what_strikes_at_the_start_is_in_the_balance():
    ball = ax.Mechanism("ball")
    body = ball.add_body("body", mass=1.0, inertia=(0.004, 0.004, 0.004))
    ball.add_joint("b", ax.Floating(), parent=ball.ground, child=body)
    ball.add_contact("touch", ax.Ball(0.1, friction=0.4, restitution=0.5), body=body)
    ball.set_home({"b.z": 0.1})
    run = ax.simulate(ball.derive().compile(), 0.2, start={"b.z": 0.1, "b.vz": -3.0})
    assert run.energy_error < 1e-12
    assert run["dissipated"][0] == pytest.approx(0.5 * 3.0**2 * (1 - 0.5**2), rel=1e-12)
