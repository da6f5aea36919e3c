"""A trajectory: what it holds, its parts by name, run and time, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from axode.errors import InvalidArgument, UnknownName
from axode.results.columns import Event
from axode.results.trajectory import Trajectory
from tests.results import runs

FALL = Event("fall", time=1.2, state={"pitch": 0.9})


# what it holds -----------------------------------------------------------------------------------


def test_columns_by_name():
    run = runs.one()
    np.testing.assert_array_equal(run["pitch"], np.sin(run.time))
    assert run["pitch"].shape == (41,) and run.batch == ()
    assert run.unit("left.torque") == "N m" and run.unit("base.qw") == ""
    assert runs.batch((2, 3))["pitch"].shape == (2, 3, 41)


def test_iteration_gives_names_and_length_samples():
    run = runs.one()
    assert list(run) == list(runs.COLUMNS) and len(run) == 41
    assert "pitch" in run and "roll" not in run


def test_one_line_says_what_it_is():
    assert repr(runs.one()) == "Trajectory('balancer': 1 run, 41 samples, 2 s, 14 columns)"
    many = runs.batch((2, 2), status="interrupted", info={})
    assert repr(many[["pitch"]]) == "Trajectory(4 runs, 41 samples, 2 s, 1 column, interrupted)"
    assert str(many) == repr(many)


def test_columns_of_a_kind():
    run = runs.one()
    assert run.columns("independent") == ("pitch.rate",)
    assert run.columns("speed") == ("pitch.rate", "left.rate")  # independent speeds are speeds too
    assert run.columns("force") == ()
    assert run.columns() == run.names
    with pytest.raises(UnknownName, match="Did you mean 'energy'") as caught:
        run.columns("energie")
    assert str(caught.value).startswith("a trajectory has no column kind 'energie'.")


def test_several_columns_make_a_trajectory():
    run = runs.one(events=(FALL,), status="interrupted")
    part = run[["left.torque", "pitch"]]
    assert part.names == ("left.torque", "pitch") and part.units == ("N m", "rad")
    assert part.kinds == {"left.torque": "input", "pitch": "coordinate"}
    np.testing.assert_array_equal(part["pitch"], run["pitch"])
    assert (part.events, part.status, part.info) == (run.events, run.status, run.info)
    assert run[run.columns("energy")].names == run.columns("energy")
    assert run[[]].values.shape == (41, 0)


def test_a_part_of_a_quaternion_is_none():
    assert runs.one().quaternions == (("base.qw", "base.qx", "base.qy", "base.qz"),)
    assert runs.one()[["base.qw", "base.qx"]].quaternions == ()


def test_unknown_names_are_told_with_alternatives():
    run = runs.one()
    for ask in (lambda: run["pitsh"], lambda: run[["pitch", "pitsh"]], lambda: run.unit("pitsh")):
        with pytest.raises(UnknownName) as caught:
            ask()
        text = str(caught.value)
        assert text.startswith(
            "trajectory of 'balancer' has no column 'pitsh'.\n  Columns: pitch, "
        )
        assert text.endswith("Did you mean 'pitch'?")
    with pytest.raises(UnknownName, match="the trajectory has no column '7'"):
        runs.one(info={})[[7]]


@pytest.mark.parametrize("key", [0, slice(0, 3), None])
def test_an_index_that_is_no_name(key):
    with pytest.raises(InvalidArgument, match=r"not by .*\n  Remedy: .run\(i\) for one run"):
        runs.one()[key]


def test_the_last_sample():
    assert runs.one().final["pitch"] == np.sin(2.0)
    assert isinstance(runs.one().final["pitch"], float)
    with pytest.raises(UnknownName, match=r"has no column 'pich'(.|\n)*Did you mean 'pitch'"):
        runs.one().final["pich"]
    assert pickle.loads(pickle.dumps(runs.one().final)) == dict(runs.one().final)
    many = runs.batch((3,), lengths=[41, 11, 0])
    np.testing.assert_array_equal(many.final["pitch"], [np.sin(2), 2 * np.sin(0.5), np.nan])


def test_energy_error_is_relative_to_the_largest_energy():
    run = runs.one()
    largest = max(
        np.abs(run[f"energy.{word}"]).max()
        for word in ("kinetic", "potential", "supplied", "dissipated")
    )
    assert run.energy_error == pytest.approx(2e-6 / largest, rel=1e-12)
    assert isinstance(run.energy_error, float)
    many = runs.batch((3,), lengths=[41, 41, 0])  # scaled: the relative error is the same
    np.testing.assert_allclose(many.energy_error[:2], run.energy_error, rtol=1e-12)
    assert many.energy_error.shape == (3,)
    backwards = runs.one().values.copy()
    backwards[..., run.names.index("energy.error")] *= -1
    assert runs.one(values=backwards).energy_error == run.energy_error


def test_energy_error_at_rest_and_without_energies():
    assert runs.one(values=np.zeros((41, 14))).energy_error == 0.0
    with pytest.raises(UnknownName, match=r"has no energy 'error'.\n  Energies: energy.kinetic"):
        runs.one()[["energy.kinetic"]].energy_error  # noqa: B018


# immutable, plain --------------------------------------------------------------------------------


def test_it_cannot_be_changed_in_place():
    run = runs.one()
    for array in (run.time, run.values, run["pitch"], run.lengths, run.run(0).values):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(FrozenInstanceError):
        run.status = "finished"


def test_values_are_kept_without_a_copy():
    values = np.zeros((2, 1))
    run = Trajectory(time=[0, 1], values=values, names=["a"], units=[""], kinds={"a": "measure"})
    assert np.shares_memory(run.values, values) and values.flags.writeable
    assert run.time.dtype == np.float64 and run.names == ("a",)


def test_numbers_of_numpy_become_plain():
    info = {"steps": np.int64(3), "p": {"k": np.arange(2.0)}, "on": np.bool_(True), "t": (1, 2)}
    run = runs.one(info=info)
    assert run.info == {"steps": 3, "p": {"k": [0.0, 1.0]}, "on": True, "t": [1, 2]}
    assert type(run.info["steps"]) is int and type(run.info["on"]) is bool
    event = Event("hit", time=np.float32(0.5), index_of_run=np.int64(2), state={"q": np.float64(1)})
    assert type(event.time) is float and type(event.index_of_run) is int
    assert type(event.state["q"]) is float


def test_it_can_be_copied_to_another_process():
    run = runs.batch((2,), events=(FALL,))
    assert runs.same(pickle.loads(pickle.dumps(run)), run)
    assert runs.same(copy.deepcopy(run), run)


# what it refuses ---------------------------------------------------------------------------------

BAD = {
    "time: one or more samples": {"time": [], "values": np.zeros((0, 1))},
    "time: one or more samples are needed, not shape (2, 1)": {"time": [[0], [1]]},
    "time: it has to be finite, and to go one way": {"time": [0, 0]},
    "time: it has to be finite, and": {"time": [0, np.nan]},
    "values have shape (3, 1); (*batch, T, columns) would end in (2, 1)": {
        "values": np.zeros((3, 1))
    },
    "values have shape (2,)": {"values": np.zeros(2)},
    "values have shape (0, 2, 1): a batch of no runs": {"values": np.zeros((0, 2, 1))},
    "two columns have the name 'a'": {"names": ["a", "a"], "values": np.zeros((2, 2))},
    "2 units for 1 column": {"units": ["m", "m"]},
    "kinds: 'a' has none; one of coordinate, speed": {"kinds": {"b": "measure"}},
    "2 statuses for 1 run": {"statuses": ["x", "y"]},
    "lengths: 0 to 2 for each run, in shape ()": {"lengths": 3},
    "lengths: 0 to 2": {"lengths": [1]},
    "lengths: 0 to 2 for each": {"lengths": -1},
    "quaternions: 1 columns are no quaternion": {"quaternions": [["a"]]},
    "info: 'p.k' is object, not of JSON's own types": {"info": {"p": {"k": object()}}},
}


@pytest.mark.parametrize("text", BAD)
def test_what_does_not_fit_is_refused(text):
    good = {
        "time": [0, 1],
        "values": np.zeros((2, 1)),
        "names": ["a"],
        "units": ["m"],
        "kinds": {"a": "measure"},
    }
    assert len(Trajectory(**good)) == 2
    with pytest.raises(InvalidArgument) as caught:
        Trajectory(**{**good, **BAD[text]})
    assert str(caught.value).startswith(text)


def test_unknown_kinds_and_parts_of_quaternions_are_told():
    with pytest.raises(UnknownName, match=r"no column kind 'sped'.*\n.*Did you mean 'speed'"):
        runs.one(kinds=dict.fromkeys(runs.COLUMNS, "sped"))
    with pytest.raises(UnknownName, match="a quaternion has no column 'w'"):
        runs.one(quaternions=(("w", "x", "y", "z"),))


# runs of a batch ---------------------------------------------------------------------------------


def test_runs_that_ended_early():
    many = runs.batch((3,), lengths=[41, 11, 0])
    np.testing.assert_array_equal(many.lengths, [41, 11, 0])
    np.testing.assert_array_equal(many.ended, [2.0, 0.5, np.nan])
    assert runs.one().ended == 2.0 and runs.one().lengths == 41


def test_a_force_that_nobody_knows_is_no_end():
    run = runs.one().with_columns({"left.normal": np.nan}, kind="force")
    again = runs.one(values=run.values, names=run.names, units=run.units, kinds=run.kinds)
    for one in (run, again, again[["left.normal"]]):
        assert one.lengths == 41


def test_coordinates_tell_the_end():
    many = runs.batch((2,), lengths=[41, 11])
    values = many.values.copy()
    values[..., many.names.index("left.torque")] = 1.0  # an input is known at any time
    np.testing.assert_array_equal(runs.one(values=values).lengths, [41, 11])
    only = runs.one(values=values[..., :1], names=["a"], units=[""], kinds={"a": "measure"})
    np.testing.assert_array_equal(only.lengths, [41, 11])


def test_runs_that_fail_alike_at_different_times_count_together():
    alike = [
        f"failed: singular configuration at t = {t} s, a wheel lies flat" for t in (0.25, 1e-05)
    ]
    many = runs.batch((3,), lengths=[11, 1, 41], statuses=[*alike, "finished"])
    assert many.status == "2 failed: singular configuration, a wheel lies flat, 1 finished"
    assert many.run(0).status == alike[0]


def test_one_run_of_a_batch():
    statuses = ["finished", "stopped by event 'fall'", "finished"]
    events = [
        Event("fall", time=0.5, index_of_run=1),
        Event("all", time=0.7),
        Event("hit", time=0.1, index_of_run=2),
    ]
    many = runs.batch((3,), lengths=[41, 11, 41], statuses=statuses, events=events)
    assert many.status == "2 finished, 1 stopped by event 'fall'"
    second = many.run(1)
    assert second.batch == () and len(second) == 11 and second.time[-1] == 0.5
    assert second.status == "stopped by event 'fall'"
    assert second.events == (Event("fall", time=0.5), Event("all", time=0.7))
    np.testing.assert_array_equal(second["pitch"], 2 * np.sin(second.time))
    assert many.run(-1).final["pitch"] == 3 * np.sin(2.0)
    assert many.run(0).status == "finished"


def test_runs_count_through_all_axes():
    many = runs.batch((2, 3))
    for number, index in enumerate(np.ndindex(2, 3)):
        assert runs.same(many.run(number), many.run(index))
        assert many.run(number).final["pitch"] == (number + 1) * np.sin(2.0)
    assert runs.same(runs.one().run(0), runs.one())
    assert runs.same(runs.one().run(()), runs.one())


@pytest.mark.parametrize("index", [6, -7, (2, 0), (0,), (0, 0, 0)])
def test_a_run_that_is_not_there(index):
    with pytest.raises(InvalidArgument) as caught:
        runs.batch((2, 3)).run(index)
    text = f"there is no run {index}: the batch has shape (2, 3), 6 runs counted from 0"
    assert str(caught.value) == text


def test_a_run_without_samples_shows_one_of_nan():
    empty = runs.batch((2,), lengths=[41, 0]).run(1)
    assert len(empty) == 1 and empty.lengths == 0 and np.isnan(empty.values).all()


# times -------------------------------------------------------------------------------------------


def test_between_two_times():
    many = runs.batch(
        (2,),
        lengths=[41, 21],
        events=[Event("a", time=0.4, index_of_run=0), Event("b", time=0.6, index_of_run=0)],
    )
    part = many.between(0.5, 1.5)
    np.testing.assert_array_equal(part.time, many.time[10:31])
    np.testing.assert_array_equal(part.values, many.values[:, 10:31])
    np.testing.assert_array_equal(part.lengths, [21, 11])
    assert [event.name for event in part.events] == ["b"]
    assert runs.same(many.between(-np.inf, np.inf), many)
    assert len(many.between(1.5, 0.5)) == len(part)


def test_between_forgives_rounding():
    run = runs.one(np.arange(11) * 0.1)
    assert run.time[3] > 0.3 and run.between(0, 0.3).time[-1] == run.time[3]


def test_between_where_nothing_is():
    with pytest.raises(InvalidArgument) as caught:
        runs.one().between(0.51, 0.52)
    assert str(caught.value) == (
        "trajectory of 'balancer' has no sample from 0.51 s to 0.52 s; its time goes from 0 s to "
        "2 s.\n  Remedy: .at(t) interpolates"
    )


# more columns ------------------------------------------------------------------------------------


def test_more_columns():
    many = runs.batch((2,), lengths=[41, 11])
    more = many.with_columns(
        {"tip.x": 2 * many["pitch"], "clock": many.time, "one": 1.0}, units={"tip.x": "m"}
    )
    assert more.names == (*many.names, "tip.x", "clock", "one")
    assert more.unit("tip.x") == "m" and more.unit("one") == ""
    assert more.columns("measure") == ("tip.x", "clock", "one")
    np.testing.assert_array_equal(more["tip.x"], 2 * many["pitch"])
    np.testing.assert_array_equal(more["clock"][0], many.time)
    assert np.isnan(more["clock"][1, 11:]).all() and (more["clock"][1, :11] == many.time[:11]).all()
    np.testing.assert_array_equal(more.values[..., :14], many.values)
    assert more.with_columns({"f": 0.0}, kind="force").columns("force") == ("f",)


def test_more_columns_can_be_a_quaternion():
    parts = {f"tip.q{part}": np.full(41, 0.5) for part in "wxyz"}
    more = runs.one().with_columns(parts)
    assert more.quaternions == (*runs.one().quaternions, tuple(parts))
    unnamed = runs.one(quaternions=()).with_columns({"a": 0.0})
    assert unnamed.quaternions == ()


def test_columns_that_do_not_fit():
    run = runs.one()
    with pytest.raises(InvalidArgument) as caught:
        run.with_columns({"tip": np.zeros(3)})
    assert str(caught.value) == "'tip' has shape (3,); (*batch, T) is (41,)"
    with pytest.raises(InvalidArgument, match="two columns have the name 'pitch'"):
        run.with_columns({"pitch": 0.0})
    with pytest.raises(UnknownName, match="has no column 'tap'"):
        run.with_columns({"tip": 0.0}, units={"tap": "m"})
    with pytest.raises(UnknownName, match="column kind 'mesure'"):
        run.with_columns({"tip": 0.0}, kind="mesure")
