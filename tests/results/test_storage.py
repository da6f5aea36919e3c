"""Files and tables: to the bit and back, never half a file, errors that name file and remedy."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings

from axode.errors import FileError, NotApplicable, install_command
from axode.results import storage
from axode.results.columns import Event
from axode.results.trajectory import Trajectory
from tests.results import runs

ENDINGS = (".npz", ".parquet")
ended = pytest.mark.parametrize("ending", ENDINGS)


def full() -> Trajectory:
    return runs.batch(
        (2, 3),
        lengths=[[41, 11, 0], [41, 41, 1]],
        statuses=list("abcdef"),
        events=[Event("fall", time=0.5, index_of_run=1, state={"pitch": 0.1})],
    )


# there and back ----------------------------------------------------------------------------------


@pytest.mark.slow
@ended
@given(run=runs.trajectories())
@settings(deadline=None, max_examples=60)
def test_any_trajectory_survives_to_the_bit(tmp_path_factory, ending, run):
    path = tmp_path_factory.mktemp("any") / f"run{ending}"
    run.save(path)
    assert runs.same(Trajectory.load(path), run)


@ended
def test_one_nan_is_not_taken_for_another(tmp_path, ending):
    quiet, signalling, negative = 0x7FF8 << 48, (0x7FF0 << 48) + 1, 1 << 63
    bits = [quiet, quiet + 1, quiet + negative, signalling, 0, negative]
    values = np.array(bits * 2, dtype=np.uint64).view(np.float64)[:, np.newaxis]
    run = Trajectory(
        time=np.arange(12), values=values, names=["a"], units=[""], kinds={"a": "measure"}
    )
    run.save(tmp_path / f"run{ending}")
    assert runs.same(Trajectory.load(tmp_path / f"run{ending}"), run)


@ended
def test_a_batch_survives(tmp_path, ending):
    path = tmp_path / f"RUN{ending.upper()}"
    full().save(str(path))
    assert runs.same(Trajectory.load(str(path)), full())
    assert os.listdir(tmp_path) == [path.name]


def test_numpy_reads_the_file_without_axode(tmp_path):
    runs.one().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as data:
        np.testing.assert_array_equal(data["values"], runs.one().values)
        assert json.loads(str(data[storage.KEY]))["units"][0] == "rad"


def test_pandas_reads_the_file_without_axode(tmp_path):
    run = runs.batch((2,)).with_columns({"time": 0.0, "run": 1.0})
    run.save(tmp_path / "run.parquet")
    import pandas

    frame = pandas.read_parquet(tmp_path / "run.parquet")
    assert list(frame.columns) == ["run_", "time_", *run.names]
    np.testing.assert_array_equal(frame["pitch"], run["pitch"].ravel())
    np.testing.assert_array_equal(frame["run_"], np.repeat([0, 1], 41))
    schema = pyarrow.parquet.read_schema(tmp_path / "run.parquet")
    assert schema.field("pitch").metadata[b"unit"] == b"rad"


# files that cannot be read -----------------------------------------------------------------------


def refused(path) -> str:
    with pytest.raises(FileError) as caught:
        Trajectory.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@ended
def test_truncated_files(tmp_path, ending):
    path = tmp_path / f"run{ending}"
    full().save(path)
    data = path.read_bytes()
    for size in (0, 3, 4, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        text = refused(path)
        assert text.startswith(f"'{path}' is truncated or damaged: ")
        assert text.endswith(".\n  Remedy: save the trajectory again")


@ended
def test_a_changed_byte_is_seen_or_does_no_harm(tmp_path, ending):
    path = tmp_path / f"run{ending}"
    run = runs.one(np.arange(3.0))
    run.save(path)
    data, seen = path.read_bytes(), 0
    for place in np.random.default_rng(3).integers(0, len(data), 400):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        try:
            assert runs.same(Trajectory.load(path), run), f"byte {place}"
        except FileError as error:
            assert str(path) in str(error)
            seen += 1
    assert seen > 150  # the rest is padding, dates and statistics


@ended
def test_foreign_files(tmp_path, ending):
    path = tmp_path / f"run{ending}"
    text = f"'{path}' is not a trajectory of Axode; write one with trajectory.save(...)."
    path.write_bytes(b"t,pitch\n0,1\n")
    assert refused(path) == text
    if ending == ".npz":
        np.savez(path, time=np.zeros(3))
    else:
        pyarrow.parquet.write_table(pyarrow.table({"time": [1.0]}), path)
    assert refused(path) == text


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "run.npz"
    objects = np.array([{"a": 1}], dtype=object)
    header = {storage.KEY: np.array(storage._header(runs.one()))}
    np.savez(path, time=runs.one().time, values=objects, **header)
    assert "Object arrays cannot be loaded" in refused(path)


@ended
def test_another_version(tmp_path, monkeypatch, ending):
    path = tmp_path / f"run{ending}"
    monkeypatch.setattr(storage, "FORMAT", 7)
    runs.one().save(path)
    monkeypatch.undo()
    assert refused(path) == (
        f"'{path}' has format 7; this Axode reads format 1.\n"
        "  Remedy: read it with the version of Axode that wrote it, or a newer one"
    )


@ended
@pytest.mark.parametrize(
    "header",
    ["[", "[]", "{}", '{"format": 1}', '{"format": 1, "shape": [2]}', '{"format": 1, "shape": 3}'],
)
def test_a_description_that_does_not_fit(tmp_path, monkeypatch, ending, header):
    path = tmp_path / f"run{ending}"
    monkeypatch.setattr(storage, "_header", lambda _: header)
    runs.one().save(path)
    monkeypatch.undo()
    assert "is truncated or damaged" in refused(path)


@ended
@pytest.mark.parametrize(
    "change",
    [
        {"names": ["a"]},
        {"shape": [40, 14]},
        {"kinds": ["x"] * 14},
        {"lengths": 99},
        {"events": [{"x": 1}]},
        {"info": 3},
        {"units": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_description_that_contradicts_itself(tmp_path, monkeypatch, ending, change):
    path = tmp_path / f"run{ending}"
    header = json.dumps({**json.loads(storage._header(runs.one())), **change})
    monkeypatch.setattr(storage, "_header", lambda _: header)
    runs.one().save(path)
    monkeypatch.undo()
    assert "is truncated or damaged" in refused(path)


@ended
def test_a_file_that_is_not_there(tmp_path, ending):
    path = tmp_path / f"run{ending}"
    assert refused(path) == f"cannot read '{path}': No such file or directory"
    path.mkdir()
    assert refused(path) == f"cannot read '{path}': Is a directory"


def test_other_endings():
    text = (
        "'run.xls': a trajectory's file ends in .npz, .parquet or .csv.\n"
        "  For other formats: trajectory.to_pandas() or .to_xarray(), and what these write"
    )
    for ask in (lambda: runs.one().save("run.xls"), lambda: Trajectory.load("run.xls")):
        with pytest.raises(FileError) as caught:
            ask()
        assert str(caught.value) == text


def test_tables_of_text_hold_what_the_run_holds(tmp_path):
    path, run = tmp_path / "run.csv", runs.one()
    run.save(path)
    table = np.genfromtxt(path, delimiter=",", names=True, deletechars="")
    assert table.dtype.names[0] == "time"
    np.testing.assert_array_equal(table["time"], run.time)
    for name in run.names:
        np.testing.assert_array_equal(table[name], run[name])
    with pytest.raises(FileError, match=r"has no units.*\n.*pandas\.read_csv"):
        Trajectory.load(path)


def test_tables_of_batches_begin_with_the_number_of_the_run(tmp_path):
    path, run = tmp_path / "runs.csv", runs.batch()
    run.save(path)
    lines = path.read_text().splitlines()
    axes = lines[0].split(",")[: len(run.batch)]
    assert all(axis.startswith("run") for axis in axes) and lines[0].split(",")[len(axes)] == "time"
    assert len(lines) == 1 + int(run.lengths.sum())
    last = [float(cell) for cell in lines[-1].split(",")]
    at = tuple(int(x) for x in last[: len(axes)])
    np.testing.assert_array_equal(last[len(axes) + 1 :], run.values[(*at, run.lengths[at] - 1)])


# files that cannot be written --------------------------------------------------------------------


@ended
@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, ending, step):
    path = tmp_path / f"run{ending}"
    runs.one().save(path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(FileError) as caught:
        full().save(path)
    assert str(caught.value) == f"cannot write '{path}': No space left on device"
    monkeypatch.undo()
    assert runs.same(Trajectory.load(path), runs.one())
    assert os.listdir(tmp_path) == [path.name]
    full().save(path)
    assert runs.same(Trajectory.load(path), full())


@ended
def test_a_folder_that_is_not_there(tmp_path, ending):
    path = tmp_path / "none" / f"run{ending}"
    with pytest.raises(FileError) as caught:
        runs.one().save(path)
    assert str(caught.value) == f"cannot write '{path}': No such file or directory"


# pandas ------------------------------------------------------------------------------------------


def test_a_table_of_one_run():
    run = runs.one(status="interrupted")
    frame = run.to_pandas()
    assert frame.index.name == "time" and list(frame.columns) == list(run.names)
    np.testing.assert_array_equal(frame.index, run.time)
    np.testing.assert_array_equal(frame["pitch"], run["pitch"])
    assert frame.attrs["units"]["left.torque"] == "N m"
    assert frame.attrs["kinds"]["pitch"] == "coordinate"
    assert frame.attrs["status"] == "interrupted" and frame.attrs["info"] == run.info


def test_a_table_of_a_batch():
    many = runs.batch((3,), lengths=[41, 11, 0])
    frame = many.to_pandas()
    assert frame.index.names == ["run", "time"] and len(frame) == 52
    np.testing.assert_array_equal(frame.loc[1]["pitch"], many["pitch"][1, :11])
    np.testing.assert_array_equal(frame.loc[0].index, many.time)


def test_a_table_of_a_batch_of_two_axes():
    frame = full().to_pandas()
    assert frame.index.names == ["run_0", "run_1", "time"]
    np.testing.assert_array_equal(frame.loc[(1, 1)]["pitch"], full()["pitch"][1, 1])


# without the extra -------------------------------------------------------------------------------


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotApplicable) as caught:
        runs.one().to_pandas()
    assert str(caught.value) == (
        "to_pandas needs pandas, which is not installed.\n  Remedy: " + install_command("data")
    )


def test_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "run.parquet"
    runs.one().save(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for verb, ask in (
        ("write", lambda: runs.one().save(path)),
        ("read", lambda: Trajectory.load(path)),
    ):
        with pytest.raises(NotApplicable) as caught:
            ask()
        assert str(caught.value) == (
            f"to {verb} .parquet needs pyarrow, which is not installed.\n"
            f"  Remedy: {install_command('data')}, or a file that ends in .npz"
        )
    runs.one().save(tmp_path / "run.npz")
    assert runs.same(Trajectory.load(tmp_path / "run.npz"), runs.one())
