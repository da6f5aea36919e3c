"""Runs from event to event that take steps where events crowd or find no modes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import axode as ax
from axode.errors import ContactStepsWarning, SimulationFailed
from axode.mechanism.elements.wheels import ContactTable
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of
from axode.problems.contact_events.decisions import Instant
from axode.problems.contact_events.mode_model import STRAIGHT, ModeValues
from problems.contact_robots import G, block, rover, suspended_rover, tripod

SLOW = 2e-6  # [m/s] of slip that counts as none


@pytest.fixture(scope="module")
def suspended():
    return suspended_rover().derive().compile()


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        {"base.z": 0.3, "pitch": 0.2, "roll": 0.15, "vx": 1.0},
        {"base.z": 0.6, "pitch": 0.3, "roll": -0.2, "vx": 1.0, "vy": 0.5},
    ],
)
def test_a_tilted_rover_that_drops_onto_its_stops_comes_to_rest(suspended, start):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContactStepsWarning)
        run = ax.simulate(suspended, 1.5, start=start, rtol=1e-9)
    assert run.status == "finished"
    energy = run["kinetic"] + run["potential"]
    assert np.diff(energy).max() < 1e-7 * np.ptp(energy)
    assert np.abs(run["error"]).max() < 1e-6 * np.ptp(energy)
    assert {spans[-1][1] for name, spans in run.modes.items() if name[0] == "w"} == {"stick"}
    steps = ax.simulate(suspended, 1.5, start=start, contacts="steps", step=2e-4)
    for name in ("base.x", "base.y", "base.z"):
        assert run[name][-1] == pytest.approx(steps[name][-1], abs=5e-3)


def crowded(monkeypatch, model, **options):
    """Run a model whose decisions fail at first."""
    from axode.problems.contact_events.decisions import Undetermined

    honest, count = Instant.decide, []

    def fails(self, *given):
        count.append(self.time)
        if len(count) == 2:
            raise Undetermined("")
        return honest(self, *given)

    monkeypatch.setattr(Instant, "decide", fails)
    return ax.simulate(model, 0.6, **options)


@pytest.mark.slow
def test_steps_take_over_where_no_modes_are_found_and_give_back(monkeypatch):
    """A box is pushed by 20 N/s; no modes are found where friction has to be shared anew."""
    model = tripod().derive().compile()
    push = {"p.fx": "20 * t"}
    with pytest.warns(ContactStepsWarning, match="goes through .* in steps of 0.1 ms"):
        run = crowded(monkeypatch, model, input=push)
    (span,) = run.info["stepped"]
    assert 0.4 < span["start"] < span["end"] < span["start"] + 0.02
    assert "no modes" in span["why"] and span["step"] <= 1e-4
    assert (np.diff(run.time) > 0).all() and run.time[-1] == 0.6
    slips = [e["time"] for e in run.contact_events if e["what"] == "slips"]
    assert slips == pytest.approx([G / 20] * 3, abs=1e-6)
    moved = 20.0 / 12 * (0.6 - G / 20) ** 3
    assert run["base.x"][-1] == pytest.approx(moved, rel=1e-6)
    assert [words for _, words in run.modes["c0"]] == ["stick", "slip"]
    assert np.isfinite(run["c0.normal"]).all()


@pytest.mark.slow
def test_events_alone_end_where_no_modes_are_found(monkeypatch):
    model = tripod().derive().compile()
    with pytest.raises(SimulationFailed, match="rigid bodies determine no motion"):
        crowded(monkeypatch, model, input={"p.fx": "20 * t"}, contacts="events")


@pytest.mark.slow
@pytest.mark.parametrize("speed", [-1e-7, -1e-8, 1e-7])
def test_what_begins_to_slip_is_not_pushed_by_its_friction(speed):
    """A block that slipped uphill, too slowly to count, slides downhill on a steep slope."""
    model = block(0.2, 0.3).derive().compile()
    table: ContactTable = facts_of(model).contact_table
    rows = list(table.rubbing[0].rows)
    q = np.asarray(model.home, dtype=float)
    nu = np.zeros(len(model.independent))
    nu[list(model.independent).index("block.vx")] = speed
    instant = Instant(model, table, q, nu, np.zeros(0), Conditions(0.0, None))
    before = ModeValues(table)
    before.active[table.normals[0]] = 1.0
    before.coefficient[rows], before.slip[rows] = 0.2, STRAIGHT
    before.direction[rows] = 0.0, 1.0  # sideways, where it has ended
    modes = instant.decide(SLOW, before)
    assert modes.coefficient[rows[0]] == 0.2
    assert instant.v[rows] @ modes.direction[rows] >= -1e-15


@pytest.mark.slow
@pytest.mark.parametrize("braked", [("fl",), ("fl", "rr")])
def test_a_load_that_slipping_wheels_share_is_that_of_equal_springs(braked):
    """Four wheels on a rigid chassis: their shares decide how a skidding one brakes it."""
    mechanism = rover(0.6)
    for name in braked:
        mechanism.change_joint(name, friction=50.0)
    model = mechanism.derive().compile()
    start = {"vx": 1.0}
    run = ax.simulate(model, 0.2, start=start)
    steps = ax.simulate(model, 0.2, start=start, contacts="steps", step=5e-4)
    assert run["base.x"][-1] == pytest.approx(steps["base.x"][-1], abs=1e-6)
    assert run["yaw"][-1] == pytest.approx(steps["yaw"][-1], abs=5e-6)
