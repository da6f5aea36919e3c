"""A run may start where another one ended."""

from __future__ import annotations

import numpy as np

import axode as ax
from random_mechanisms import MECHANISMS

SAME = 1e-7  # two tolerances of 1e-9 along the way


def test_a_trajectory_goes_on_where_it_ended():
    model = MECHANISMS["balancer"]().derive().compile()
    start = {"base.pitch": 0.1, "base.yaw_rate": 0.2}
    whole = ax.simulate(model, 0.4, start=start, save_every=0.1, rtol=1e-9)
    first = ax.simulate(model, 0.2, start=start, save_every=0.1, rtol=1e-9)
    second = ax.simulate(model, 0.2, start=first, t0=0.2, save_every=0.1, rtol=1e-9)
    joined = first + second
    np.testing.assert_allclose(joined.time, whole.time, atol=1e-12)
    for name in (*model.coordinates, *model.speed_names):
        np.testing.assert_allclose(joined[name], whole[name], atol=SAME, err_msg=name)
    assert np.isnan(first.final["left.lateral"])  # what statics cannot tell is no hindrance


def test_a_batch_goes_on_as_a_batch():
    model = MECHANISMS["caster_robot"]().derive().compile()
    speed = model.independent[0]
    first = ax.simulate(model, 0.1, start={speed: np.array([0.5, 1.0, 2.0])}, save_every=0.05)
    second = ax.simulate(model, 0.1, start=first, save_every=0.05)
    assert second.batch == (3,)
    for name in model.coordinates:
        np.testing.assert_allclose(second[name][:, 0], first[name][:, -1], atol=1e-9)
