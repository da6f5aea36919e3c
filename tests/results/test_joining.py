"""Trajectories end to end: the sample they share, energies counted on, what does not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from axode.errors import InvalidArgument
from axode.results.columns import Event
from axode.results.trajectory import Trajectory
from tests.results import runs


def test_what_was_cut_is_joined_to_the_bit():
    for whole in (runs.one(), runs.one(np.linspace(2, 0, 41)), runs.batch((2, 2))):
        first, second = whole.between(0, 1), whole.between(1, 2)
        if whole.time[0] > whole.time[-1]:
            first, second = second, first
        joined = first + second
        assert joined.time.tobytes() == whole.time.tobytes()
        assert joined.values.tobytes() == whole.values.tobytes()
        np.testing.assert_array_equal(joined.lengths, whole.lengths)


def test_pieces_that_do_not_touch_keep_all_samples():
    whole = runs.one()
    joined = whole.between(0, 0.5) + whole.between(1.5, 2)
    assert len(joined) == 22 and joined.time[11] == 1.5


def test_three_pieces_in_any_order_of_columns():
    whole = runs.one()
    pieces = [whole.between(0, 0.5), whole.between(0.5, 1.5), whole.between(1.5, 2)]
    pieces[1] = pieces[1][list(reversed(whole.names))]
    joined = Trajectory.concatenate(*pieces)
    assert joined.values.tobytes() == whole.values.tobytes() and joined.names == whole.names
    assert Trajectory.concatenate(whole) is whole


def test_shifted_in_time_only_if_asked():
    run = runs.one(events=(Event("hit", time=0.5, state={"pitch": 0.1}),))
    joined = Trajectory.concatenate(run, run, shift=True)
    assert len(joined) == 81 and joined.time[-1] == 4.0
    assert joined.events == (run.events[0], Event("hit", time=2.5, state={"pitch": 0.1}))
    np.testing.assert_array_equal(joined["pitch"][41:], run["pitch"][1:])
    with pytest.raises(InvalidArgument) as caught:
        run + run
    assert str(caught.value) == (
        "trajectory 2 cannot follow: it starts at 0 s, before the end at 2 s.\n"
        "  Remedy: Trajectory.concatenate(..., shift=True), or .between(t0, t1) of either"
    )


def test_the_earlier_of_two_shared_samples_is_kept():
    run = runs.one()
    values = run.values.copy()
    values[0, 0] = 7.0
    joined = Trajectory.concatenate(run, runs.one(values=values), shift=True)
    assert 7.0 not in joined["pitch"] and joined["pitch"][40] == run["pitch"][40]


def test_energies_are_counted_on():
    run = runs.one()
    joined = Trajectory.concatenate(run, run, run, shift=True)
    for word in ("supplied", "dissipated", "error"):
        final = run[f"energy.{word}"][-1]
        assert joined[f"energy.{word}"][-1] == pytest.approx(3 * final, rel=1e-14)
        steps = np.diff(joined[f"energy.{word}"])
        np.testing.assert_allclose(steps[40:80], steps[:40], atol=1e-15)
    for word in ("kinetic", "potential"):
        np.testing.assert_array_equal(joined[f"energy.{word}"][81:], run[f"energy.{word}"][1:])


def test_status_is_that_of_the_last():
    whole = runs.one()
    first, second = whole.between(0, 1), replace(whole.between(1, 2), status="", statuses=["cut"])
    assert (first + second).status == "cut" and (first + second).statuses == ("cut",)


def test_info_keeps_what_all_share_and_every_piece():
    run = runs.one()
    infos = [{"model": "b", "steps": n} for n in (10, 20, 30)]
    pieces = [replace(run, info=info) for info in infos]
    joined = Trajectory.concatenate(*pieces, shift=True)
    assert joined.info == {"model": "b", "pieces": infos}


def test_runs_that_had_ended_stay_ended():
    first = runs.batch((2,), lengths=[41, 11], statuses=["paused", "stopped by event 'fall'"])
    second = runs.batch((2,), lengths=[41, 0], statuses=["finished", "not started"])
    joined = Trajectory.concatenate(first, second, shift=True)
    np.testing.assert_array_equal(joined.lengths, [81, 11])
    assert joined.statuses == ("finished", "stopped by event 'fall'")
    assert joined.status == "1 finished, 1 stopped by event 'fall'"
    assert np.isnan(joined.values[1, 11:]).all()
    with pytest.raises(InvalidArgument, match=r"run 1 had ended at 0\.5 s and goes on here"):
        Trajectory.concatenate(first, runs.batch((2,)), shift=True)


DIFFERENT = {
    "it lacks 'residual'": lambda run: run[list(run.names[:-1])],
    "it alone has 'tip', 'top'": lambda run: run.with_columns({"tip": 0.0, "top": 0.0}),
    "it lacks 'residual'; it alone has 'tip'": lambda run: run[list(run.names[:-1])].with_columns(
        {"tip": 0.0}
    ),
    "'pitch' is in 'deg' here and in 'rad' before": lambda run: replace(
        run, units=("deg", *run.units[1:])
    ),
    "'pitch' is of kind 'measure' here and 'coordinate' before": lambda run: replace(
        run, kinds={**run.kinds, "pitch": "measure"}
    ),
    "its batch is (3,), and before it was ()": lambda run: runs.batch((3,)),
    "its time goes the other way": lambda run: replace(run, time=run.time[::-1]),
}


@pytest.mark.parametrize("text", DIFFERENT)
def test_the_difference_is_named(text):
    run = runs.one()
    assert len(Trajectory.concatenate(run, run, shift=True)) == 81
    with pytest.raises(InvalidArgument) as caught:
        Trajectory.concatenate(run, DIFFERENT[text](run), shift=True)
    assert str(caught.value) == f"trajectory 2 cannot follow: {text}"


def test_nothing_to_join():
    with pytest.raises(InvalidArgument, match="concatenate: one or more trajectories are needed"):
        Trajectory.concatenate()
    with pytest.raises(TypeError, match="unsupported operand"):
        runs.one() + 1
