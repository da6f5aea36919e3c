"""Results of sweeps: the same in memory, on a device and in a store."""

from __future__ import annotations

import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import axode as ax
from axode.problems.sweep.sample_arguments import plan_samples
from axode.results.sweep_arrays import RowTexts
from axode.results.sweep_store import SweepManifest, SweepStore

WORDS = {1: "finished", 3: "failed: not finite", 6: "interrupted", 0: "interrupted"}
GRID = {"start": {"base.pitch": [0.1, 0.2, 0.3]}, "parameter": {"mass": [1.0, 2.0, 3.0, 4.0]}}
DRAWN = {"parameter": {"mass": ax.Uniform(1.0, 2.0)}, "start": {"base.pitch": ax.Normal(0.0, 1.0)}}


def planned(kind):
    return plan_samples(GRID) if kind == "grid" else plan_samples(DRAWN, samples=12, seed=3)


def computed(samples, first, last):
    """Numbers of some rows, as an engine would compute them."""
    rows, values = np.arange(first, last), samples.rows(first, last)
    status = np.where(rows % 5 == 4, 3, 1)
    finished = status == 1
    energy = np.where(finished, values["mass"] * values["base.pitch"] ** 2, np.nan)
    outputs = {"arm.energy": energy, "base.pitch": np.where(finished, 0.0, np.nan)}
    reasons = {int(k): f"no. {first + k}" for k in np.flatnonzero(~finished)}
    return outputs, status, reasons


def in_memory(kind, convert=np.asarray):
    samples = planned(kind)
    outputs, status, reasons = computed(samples, 0, samples.count)
    texts = RowTexts.from_codes(status, WORDS)
    return ax.Sweep(
        {name: convert(values.reshape(samples.shape)) for name, values in outputs.items()},
        samples.axes,
        convert((status == 1).reshape(samples.shape)),
        texts.counts(),
        {"model": "cart"},
        samples=samples,
        status=texts,
        reasons=reasons,
    )


def stored(kind, folder, chunks=None, chunk=5):
    samples = planned(kind)
    manifest = SweepManifest(
        study={"samples": samples.describe()},
        shape=samples.shape,
        chunk=chunk,
        swept=samples.groups,
        outputs=("arm.energy", "base.pitch"),
        recorded={"model": "cart"},
    )
    with SweepStore.create_or_resume(folder, manifest) as store:
        for number in range(manifest.chunks) if chunks is None else chunks:
            span = manifest.span(number)
            outputs, status, reasons = computed(samples, *span)
            texts = RowTexts.from_codes(status, WORDS)
            store.write(number, samples.rows(*span), outputs, texts, reasons)
    return ax.Sweep.load(folder)


class OnDevice:
    """An array as CuPy has it: NumPy may not touch it."""

    def __init__(self, array):
        self._array = np.asarray(array)
        self.shape = self._array.shape
        self.__cuda_array_interface__ = {}

    def get(self):
        return self._array

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion is not allowed")


class Tensor:
    """An array as PyTorch has it."""

    def __init__(self, array):
        self._array = np.asarray(array)
        self.shape = self._array.shape

    def detach(self):
        return self

    def cpu(self):
        return self._array


PLACES = {
    "memory": lambda kind, folder: in_memory(kind),
    "CuPy": lambda kind, folder: in_memory(kind, OnDevice),
    "PyTorch": lambda kind, folder: in_memory(kind, Tensor),
    "store": stored,
}


@pytest.mark.parametrize("kind", ["grid", "drawn"])
@pytest.mark.parametrize("place", PLACES)
def test_a_sweep_is_the_same_wherever_its_numbers_are(place, kind, tmp_path):
    made, plain = PLACES[place](kind, tmp_path / "s"), in_memory(kind)
    assert repr(made) == repr(plain) and made._repr_html_() == plain._repr_html_()
    assert made.batch == plain.batch == ((3, 4) if kind == "grid" else (12,))
    assert made.runs == 12 and list(made) == list(plain) and len(made) == 2
    assert dict(made.statuses) == {"finished": 10, "failed: not finite": 2}
    assert dict(made.reasons) == {4: "no. 4", 9: "no. 9"} and made.status[4] == WORDS[3]
    assert made.info == {"model": "cart"} and made.rows is None
    assert list(made.samples) == list(plain.samples)
    for name in ("mass", "base.pitch", "pitch"):
        np.testing.assert_array_equal(made.samples[name], plain.samples[name])
    for name, values in plain.axes.items():
        np.testing.assert_array_equal(made.axes[name], values)
    assert made.to_pandas().equals(plain.to_pandas())
    again = pickle.loads(pickle.dumps(made))
    assert again.to_pandas().equals(plain.to_pandas()) and repr(again) == repr(plain)
    best = made.best("energy", 3)
    assert repr(best) == repr(plain.best("energy", 3))
    if place in ("memory", "store"):
        np.testing.assert_array_equal(made["energy"], plain["arm.energy"])
        np.testing.assert_array_equal(made.finished, plain.finished)


@pytest.mark.parametrize("place", ["memory", "store"])
def test_the_best_rows_with_their_swept_values(place, tmp_path):
    made = PLACES[place]("drawn", tmp_path / "s")
    energy = np.ravel(made["arm.energy"])
    order = [k for k in np.argsort(energy) if np.isfinite(energy[k])]
    for count in (1, 4, 100):
        for largest in (False, True):
            best = made.best("energy", count, largest=largest)
            expected = (order[::-1] if largest else order)[:count]
            assert best.rows.tolist() == expected and best.finished.all()
            np.testing.assert_array_equal(best["arm.energy"], energy[expected])
            np.testing.assert_array_equal(best.samples["mass"], made.samples["mass"][expected])
    table = best.to_pandas()
    assert table.index.tolist() == expected
    assert list(table) == ["mass", "start.base.pitch", "arm.energy", "base.pitch", *LAST]
    again = best.take([2, 0])
    assert again.rows.tolist() == [expected[2], expected[0]] and again.batch == (2,)
    assert dict(made.take([4, 0]).reasons) == {0: "no. 4"}


LAST = ("status", "reason")


def test_equal_numbers_are_chosen_in_the_order_of_the_rows(tmp_path):
    made = in_memory("grid")
    assert made.best("base.pitch", 3).rows.tolist() == [0, 1, 2]
    assert stored("grid", tmp_path).best("base.pitch", 3, largest=True).rows.tolist() == [0, 1, 2]


def test_chosen_rows_are_printed():
    lines = repr(in_memory("grid").best("energy", 2)).splitlines()
    assert lines[0] == "Sweep(2 runs over base.pitch, mass: 2 finished)"
    assert lines[1].split() == ["row", "start.base.pitch", "mass", "arm.energy", "base.pitch"]
    assert lines[2].split() == ["0", "0.1", "1", "0.01", "0"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert repr(in_memory("grid").take([0] * 30)).endswith("and 10 more")
    assert "<td" in in_memory("grid").best("energy", 2)._repr_html_()


def test_a_store_that_is_not_finished(tmp_path):
    made = stored("drawn", tmp_path, chunks=[1])
    assert dict(made.statuses) == {"finished": 4, "failed: not finite": 1, "not computed": 7}
    assert np.flatnonzero(made.finished).tolist() == [5, 6, 7, 8]
    energy = made["energy"]
    assert np.isnan(energy[[0, 4, 9, 10, 11]]).all() and np.isfinite(energy[5:9]).all()
    assert np.isnan(made.take([0])["energy"]).all()
    assert made.to_pandas().index.tolist() == [5, 6, 7, 8, 9]
    assert made.best("energy", 1).rows[0] == np.nanargmin(energy)
    empty = stored("drawn", tmp_path / "empty", chunks=[])
    assert empty.best("energy").rows.size == 0 and "no values" in repr(empty)
    assert len(empty.to_pandas()) == 0 and "12 not computed" in repr(empty)


def test_infinite_numbers_in_a_store(tmp_path):
    samples = plan_samples({"parameter": {"a": [1.0, 2.0, 3.0]}})
    manifest = SweepManifest({}, (3,), 3, samples.groups, ("x",))
    with SweepStore.create_or_resume(tmp_path, manifest) as store:
        texts = RowTexts.from_codes(np.ones(3), WORDS)
        store.write(0, samples.rows(0, 3), {"x": np.array([np.inf, 2.0, 3.0])}, texts)
    made = ax.Sweep.load(tmp_path)
    assert "x: 2 ... 3" in repr(made) and made.best("x", largest=True).rows.tolist() == [2, 1]


def test_a_loaded_sweep_takes_the_memory_of_a_chunk(tmp_path):
    count, chunk = 100_000, 10_000
    samples = plan_samples(DRAWN, samples=count)
    manifest = SweepManifest({}, (count,), chunk, samples.groups, ("x",))
    with SweepStore.create_or_resume(tmp_path, manifest) as store:
        texts = RowTexts.from_codes(np.ones(chunk), WORDS)
        for number in range(manifest.chunks):
            rows = samples.rows(*manifest.span(number))
            store.write(number, rows, {"x": rows["mass"]}, texts)
    made = ax.Sweep.load(tmp_path)
    repr(made.best("x", 1))  # modules are loaded
    tracemalloc.start()
    best = made.best("x", 3)
    repr(made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * count  # less than a column
    assert best.rows.tolist() == np.argsort(samples.rows(0, count)["mass"])[:3].tolist()


def test_what_is_not_there_is_refused(tmp_path, monkeypatch):
    made = in_memory("grid")
    with pytest.raises(ax.UnknownName, match="the sweep has no output 'far'"):
        made.best("far")
    with pytest.raises(ax.UnknownName, match=r"the sweep has no swept value 'far'.\n.*mass"):
        made.samples["far"]
    with pytest.raises(ax.InvalidArgument, match="best: count must be > 0, got 0"):
        made.best("energy", 0)
    with pytest.raises(ax.InvalidArgument, match=r"count: expected a whole number, got 2\.5"):
        made.best("energy", 2.5)
    with pytest.raises(ax.InvalidArgument, match="take: expected numbers of rows, got"):
        made.take([0.5])
    assert made == made and made != made.take([0]) and len({made, made}) == 1
    with pytest.raises(ax.InvalidArgument, match="take: there is no row 12; the sweep has 12"):
        made.take([1, 12])
    with pytest.raises(ax.FileError, match="is not the folder of a sweep"):
        ax.Sweep.load(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ax.NotApplicable, match="to_pandas needs pandas"):
        made.to_pandas()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ax.NotApplicable, match="to_arrow needs pyarrow"):
        made.to_arrow()


def test_a_sweep_without_samples_has_those_of_its_axes():
    axes = {"a": np.array([1.0, 2.0]), "b": np.arange(3.0)}
    made = ax.Sweep({"x": np.zeros((2, 3))}, axes, np.ones((2, 3), bool), {"finished": 6})
    assert made.samples["b"].tolist() == [[0.0, 1.0, 2.0]] * 2
    assert made.to_pandas()["a"].tolist() == [1.0] * 3 + [2.0] * 3
    assert set(made.to_pandas()["status"]) == {"finished"} and not made.reasons
    bare = ax.Sweep({"x": np.zeros(())}, {}, np.array(True), {"finished": 1})
    assert not bare.samples and bare.to_pandas()["x"].tolist() == [0.0]


def test_texts_of_rows():
    texts = RowTexts.from_rows(4, {1: "a", 3: "b"})
    joined = RowTexts.join([texts, RowTexts.from_codes(np.array([6, 0, 9, 1]), {**WORDS, 9: "a"})])
    assert dict(joined) == {1: "a", 3: "b", 4: "interrupted", 5: "interrupted", 6: "a", 7: WORDS[1]}
    assert len(joined) == 6 and joined.counts()["interrupted"] == 2
    with pytest.raises(KeyError):
        joined[0]
    with pytest.raises(KeyError):
        joined[8]
    assert not joined.equal("c").any() and joined.equal("a").sum() == 2
    assert RowTexts.join([]).counts() == {}
    few = RowTexts(np.array([2, -1, 3, 0], dtype=np.int8), ("a", "", "b", "a")).compact()
    assert few.texts == ("a", "b") and few.codes.tolist() == [1, -1, 0, 0]
