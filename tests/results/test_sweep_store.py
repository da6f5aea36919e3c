"""Stores of sweeps: whole chunks or none, resumed by the same study only, read by anything."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import axode as ax
from axode.results.sweep_arrays import NOT_COMPUTED, RowTexts
from axode.results.sweep_store import (
    DIGEST,
    FORMAT,
    KEY,
    MANIFEST,
    STUDY,
    SweepManifest,
    SweepStore,
)

WORDS = {1: "finished", 3: "failed: not finite"}
ROWS, CHUNK = 10, 4


def manifest(**changes):
    made = SweepManifest(
        study={
            "model": {"name": "cart", "sha256": "ab", "limit": float("nan")},
            "settings": {"step": 0.001, "t0": 0.0},
        },
        shape=(ROWS,),
        chunk=CHUNK,
        swept={"pitch": "start", "C.mass": "parameter"},
        outputs=("pitch", "status", "far"),
        recorded={"axode": "1"},
    )
    return replace(made, **changes)


def columns(first, last):
    rows = np.arange(first, last)
    status = np.where(rows % 5 == 3, 3, 1)
    far = np.where(status == 1, rows**2.0, np.nan)
    swept = {"pitch": rows * 0.5, "C.mass": rows + 1.0}
    return (
        swept,
        {"pitch": -rows, "status": rows + 0.25, "far": far},
        RowTexts.from_codes(status, WORDS),
        {k: "the mass is infinite" for k in np.flatnonzero(status != 1).tolist()},
    )


def fill(store, *chunks):
    for chunk in chunks:
        store.write(chunk, *columns(*store.manifest.span(chunk)))


@pytest.fixture
def folder(tmp_path):
    with SweepStore.create_or_resume(tmp_path / "store", manifest()) as store:
        fill(store, 2, 0, 1)
    return tmp_path / "store"


NAMES = ["row", "start.pitch", "C.mass", "pitch", "status_", "far", "status", "reason"]


def test_other_programs_read_the_folder_as_it_is(folder):
    import duckdb
    import pandas as pd
    import polars as pl

    tables = {
        "pandas": pd.read_parquet(folder),
        "Polars": pl.read_parquet(folder / "*.parquet").to_pandas(),
        "Polars, folder": pl.scan_parquet(folder).collect().to_pandas(),
        "DuckDB": duckdb.sql(f"select * from '{folder}/*.parquet'").df(),
        "Arrow": pq.read_table(folder).to_pandas(),
    }
    swept, outputs, status, reasons = columns(0, ROWS)
    for reader, table in tables.items():
        table = table.sort_values("row").reset_index(drop=True)
        assert list(table) == NAMES, reader
        assert table["row"].tolist() == list(range(ROWS))
        for name, values in (("start.pitch", swept["pitch"]), ("far", outputs["far"])):
            np.testing.assert_array_equal(table[name], values, err_msg=reader)
        assert table["status"].astype(str).tolist() == [status[k] for k in range(ROWS)]
        assert [k for k, text in enumerate(table["reason"]) if not pd.isna(text)] == list(reasons)
        assert set(table["reason"].dropna()) == {"the mass is infinite"}


def test_a_store_without_finished_chunks_is_readable_too(tmp_path):
    import duckdb
    import polars as pl

    SweepStore.create_or_resume(tmp_path, manifest()).close()
    assert pl.scan_parquet(tmp_path).collect().shape == (0, len(NAMES))
    assert duckdb.sql(f"select * from '{tmp_path}/*.parquet'").fetchall() == []
    assert SweepStore.open(tmp_path).finished() == set()


def test_the_same_study_resumes_and_recomputes_nothing_finished(folder):
    os.unlink(folder / "part-00000001.parquet")
    before = (folder / "part-00000000.parquet").stat().st_mtime_ns
    with SweepStore.create_or_resume(folder, manifest(recorded={"axode": "2"})) as store:
        assert store.finished() == {0, 2}
        fill(store, 1)
        assert store.finished() == {0, 1, 2}
    assert (folder / "part-00000000.parquet").stat().st_mtime_ns == before
    read = SweepStore.open(folder)
    assert read.manifest.recorded == {"axode": "1"} and read.finished() == {0, 1, 2}
    sent = pickle.loads(pickle.dumps(read))
    assert [chunk for chunk, _ in sent.read(["far"])] == [0, 1, 2]


def test_another_study_is_refused_with_every_difference(folder):
    study = {
        "model": {"name": "cart", "sha256": "cd", "limit": float("nan")},
        "settings": {"step": 0.002, "t1": 0.0},
    }
    with pytest.raises(ax.FileError) as caught:
        SweepStore.create_or_resume(folder, manifest(study=study, chunk=5, outputs=("far",)))
    text = str(caught.value)
    for part in (
        "holds another sweep than this one.",
        "model.sha256: 'ab' in the store, 'cd' now",
        "settings.step: 0.001 in the store, 0.002 now",
        "settings.t0: 0.0 in the store, nothing now",
        "settings.t1: nothing in the store, 0.0 now",
        "chunk: 4 in the store, 5 now",
        "outputs: ['pitch', 'status', 'far'] in the store, ['far'] now",
        "Remedy: name another folder, or repeat what was given before",
    ):
        assert part in text
    assert "axode" not in text.replace(str(folder), "") and "model.name" not in text
    many = manifest(study={f"k{n}": n for n in range(40)})
    with pytest.raises(ax.FileError, match="and 25 more"):
        SweepStore.create_or_resume(folder, many)
    SweepStore.create_or_resume(folder, manifest()).close()  # the lock is free again


def damage(path, how):
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "of another study":
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({STUDY: "x"}), path)
    elif how == "with rows of another chunk":
        path.write_bytes((path.parent / "part-00000000.parquet").read_bytes())
    elif how == "with fewer rows":
        table = pq.read_table(path)
        pq.write_table(table.slice(0, 1), path)
    else:
        table = pq.read_table(path)
        pq.write_table(table.drop_columns(["far"]), path)


DAMAGES = (
    "truncated",
    "empty",
    "of another study",
    "with rows of another chunk",
    "with fewer rows",
    "with fewer columns",
)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_part_is_computed_again(folder, how):
    damage(folder / "part-00000001.parquet", how)
    with SweepStore.create_or_resume(folder, manifest()) as store:
        assert store.finished() == {0, 2}
        fill(store, 1)
    assert SweepStore.open(folder).finished() == {0, 1, 2}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "is damaged: "),
        ("of another study", "is damaged: it belongs to another sweep"),
        ("with rows of another chunk", "is damaged: it has the rows of another chunk"),
        ("with fewer rows", "is damaged: it has 1 rows instead of 4"),
        ("with fewer columns", "is damaged: it has other columns than its sweep"),
    ],
)
def test_what_was_damaged_after_it_was_opened_is_reported(folder, how, message):
    store = SweepStore.open(folder)
    assert store.finished() == {0, 1, 2}
    damage(folder / "part-00000001.parquet", how)
    with pytest.raises(ax.FileError, match=f"(?s){message}.*run the same sweep again"):
        list(store.read(["pitch"]))


def test_flipped_bits_are_seen(folder):
    path = folder / "part-00000000.parquet"
    store = SweepStore.open(folder)
    data = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(NAMES.index("far"))
    data[column.data_page_offset + column.total_compressed_size - 3] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(ax.FileError, match="is damaged: "):
        list(store.read(["far"], [0]))


def test_more_bytes_than_numbers_are_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr("axode.results.sweep_store.PAGES", -64)  # none for headers of pages
    store = SweepStore.open(folder)
    assert store.finished() == set()
    with pytest.raises(ax.FileError, match="'row' has more bytes than numbers"):
        list(store.read(["far"], [0]))


def test_what_a_killed_process_left_is_removed(folder):
    draft = folder / ".part-00000001.parquet.0123abcd.part"
    draft.write_bytes(b"half")
    other = folder / ".notes"
    other.write_text("kept")
    SweepStore.create_or_resume(folder, manifest()).close()
    assert not draft.exists() and other.exists()


def test_foreign_files_are_refused(tmp_path, folder):
    (tmp_path / "data.parquet").write_bytes(b"")
    with pytest.raises(ax.FileError, match=r"holds files that do not belong to this sweep: data"):
        SweepStore.create_or_resume(tmp_path, manifest())
    (folder / "part-00000007.parquet").write_bytes(b"")  # it has three chunks
    with pytest.raises(ax.FileError, match=r"that do not belong to this sweep: part-00000007"):
        SweepStore.create_or_resume(folder, manifest())
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ax.FileError, match="is a file, and a store of a sweep is a folder"):
        SweepStore.create_or_resume(file, manifest())
    with pytest.raises(ax.FileError, match=r"cannot make the folder '.*file/in': Not a directory"):
        SweepStore.create_or_resume(file / "in", manifest())
    with pytest.raises(ax.FileError, match=r"cannot make the folder 'a.*embedded null byte"):
        SweepStore.create_or_resume("a\0b", manifest())


@pytest.mark.parametrize("name", ["part-00000001.parquet", "_lock", MANIFEST])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_nothing_is_written_through_a_link(tmp_path, folder, name, kind):
    """The target of a link was overwritten by rows."""
    (folder / name).unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    (folder / name).symlink_to(elsewhere) if kind == "link" else (folder / name).mkdir()
    with pytest.raises(ax.FileError, match=rf"{name}'(: it)? is a (link|directory)|{name}': Is a"):
        SweepStore.create_or_resume(folder, manifest())
    assert elsewhere.read_bytes() == b"kept"


def test_a_link_that_comes_later_is_replaced(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    with SweepStore.create_or_resume(tmp_path / "store", manifest()) as store:
        for chunk in range(3):
            (tmp_path / "store" / f"part-0000000{chunk}.parquet").symlink_to(elsewhere)
        fill(store, 0, 1, 2)
    assert elsewhere.read_bytes() == b"kept"
    assert SweepStore.open(tmp_path / "store").finished() == {0, 1, 2}


def test_a_full_disk_keeps_the_chunks_that_are_there(tmp_path, monkeypatch):
    with SweepStore.create_or_resume(tmp_path, manifest()) as store:
        fill(store, 0)
        with monkeypatch.context() as patch:
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            patch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(full))
            with pytest.raises(
                ax.FileError, match=r"cannot write '.*part-00000001.parquet': No sp"
            ):
                fill(store, 1)
        assert store.finished() == {0}
        assert sorted(os.listdir(tmp_path)) == ["_lock", MANIFEST, "part-00000000.parquet"]
        fill(store, 1)
    assert SweepStore.open(tmp_path).finished() == {0, 1}


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, flags, *rest, **options):
        if str(path).endswith("_lock"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, *rest, **options)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(ax.FileError, match=r"cannot write '.*_lock': Permission denied"):
        SweepStore.create_or_resume(tmp_path, manifest())


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_finished_store_on_a_disk_that_takes_nothing(folder, monkeypatch, reason):
    """Nothing is left to write, so that nothing has to be locked."""
    real = os.open

    def refuse(path, flags, *rest, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(reason, os.strerror(reason))
        return real(path, flags, *rest, **options)

    monkeypatch.setattr("os.open", refuse)
    with SweepStore.create_or_resume(folder, manifest()) as store:
        assert store.finished() == {0, 1, 2}
    with pytest.raises(ax.FileError, match="holds another sweep"):
        SweepStore.create_or_resume(folder, manifest(outputs=("pitch",)))
    (folder / "part-00000001.parquet").unlink()
    with pytest.raises(ax.FileError, match=f"cannot write '.*_lock': {os.strerror(reason)}"):
        SweepStore.create_or_resume(folder, manifest())
    assert sorted(os.listdir(folder)) == [
        "_lock",
        MANIFEST,
        "part-00000000.parquet",
        "part-00000002.parquet",
    ]


def test_links_and_the_umask_are_respected(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    old = os.umask(0o027)
    try:
        with SweepStore.create_or_resume(tmp_path / "link", manifest()) as store:
            fill(store, 0)
    finally:
        os.umask(old)
    assert (tmp_path / "link").is_symlink()
    mode = (tmp_path / "real" / "part-00000000.parquet").stat().st_mode & 0o777
    assert mode == 0o640


# one process at a time ---------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_a_reader_is_not(folder):
    with SweepStore.create_or_resume(folder, manifest()):
        with pytest.raises(
            ax.FileError, match=f"is being written by another process .*{os.getpid()} .*\n.*wait"
        ):
            SweepStore.create_or_resume(folder, manifest())
        assert SweepStore.open(folder).finished() == {0, 1, 2}
    SweepStore.create_or_resume(folder, manifest()).close()


HOLD = """
import os, sys, time
from pathlib import Path
from axode.disk.atomic import FolderLock
lock = FolderLock(Path(sys.argv[1]))
if os.fork() == 0:  # a worker, which outlives its parent
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(60)
"""


def test_a_killed_writer_leaves_no_lock_though_its_workers_live(folder):
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        worker = int(process.stdout.readline())
        try:
            with pytest.raises(ax.FileError, match=rf"another process \(process {process.pid} "):
                SweepStore.create_or_resume(folder, manifest())
            process.kill()
            process.wait()
            os.kill(worker, 0)  # it lives
            SweepStore.create_or_resume(folder, manifest()).close()
        finally:
            process.kill()
            os.kill(worker, signal.SIGKILL)


def test_without_locks_on_a_file_system_stores_still_work(tmp_path, monkeypatch):
    import axode.disk.atomic as lock

    def refuse(handle, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    SweepStore.create_or_resume(tmp_path, manifest()).close()


# descriptions ------------------------------------------------------------------------------------


def rewrite(folder, text, key=KEY):
    path = folder / MANIFEST
    table = pq.read_table(path)
    digest = hashlib.sha256(text.encode()).hexdigest()
    pq.write_table(table.replace_schema_metadata({key: text, DIGEST: digest}), path)


def changed(**changes):
    data = json.loads(manifest().to_json())
    return json.dumps({**data, **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "its description is not JSON"),
        ("[]", "its description is not that of a sweep"),
        (changed(format=99), f"it has format 99, and this Axode reads format {FORMAT}"),
        (changed(study=3), "its description has no table 'study'"),
        (changed(swept={"a": 3}), "a: expected printable text"),
        (changed(shape=[-1]), "its description has impossible sizes"),
        (changed(shape=[1 << 30, 1 << 30]), "its description has impossible sizes"),
        (changed(chunk=0), "its description has impossible sizes"),
        (changed(outputs=None), "outputs: expected a list"),
        (changed(recorded={"units": 3}), "units: expected a table"),
        (changed(recorded={"units": {"far": 3}}), "the unit of far: expected printable text"),
        (changed(study={"samples": {"axes": []}}), "axes: expected a table"),
        (changed(study={"samples": {"axes": {"a": ["x"]}}}), "axis 'a'.0.: expected a finite num"),
        (changed(study={"samples": {"axes": {"a": [1.0]}}}), "its axes are not those of"),
    ],
)
def test_descriptions_that_are_none(folder, text, message):
    rewrite(folder, text)
    with pytest.raises(ax.FileError, match=f"cannot be read: {message}"):
        SweepStore.open(folder)


def test_rows_that_are_only_claimed_take_no_time_and_no_memory(folder):
    """A column of 2**53 rows was made, and each of their chunks was looked for."""
    rewrite(folder, changed(shape=[1 << 53]))
    made = ax.Sweep.load(folder)
    assert made.statuses == {NOT_COMPUTED: 1 << 53} and made.arrays.extremes("far") is None
    for column in (lambda: made["far"], lambda: made.status, lambda: made.finished):
        with pytest.raises(ax.FileError, match=f"describes {1 << 53} rows and holds 0: arrays"):
            column()


def test_folders_that_are_no_stores(folder, tmp_path):
    with pytest.raises(ax.FileError, match="is not the folder of a sweep: it has no file"):
        SweepStore.open(tmp_path)
    with pytest.raises(ax.FileError, match="is not the folder of a sweep: it has no file"):
        SweepStore.open(folder / MANIFEST)
    table = pq.read_table(folder / MANIFEST)
    flipped = {**table.schema.metadata, KEY: changed(chunk=5)}
    pq.write_table(table.replace_schema_metadata(flipped), folder / MANIFEST)
    with pytest.raises(ax.FileError, match="is damaged: its checksum does not match"):
        SweepStore.open(folder)
    rewrite(folder, "{}", b"pandas")
    with pytest.raises(ax.FileError, match="its description is not that of a sweep"):
        SweepStore.open(folder)
    (folder / MANIFEST).write_bytes(b"{}")
    with pytest.raises(ax.FileError, match=r"cannot be read: _manifest.parquet: "):
        SweepStore.open(folder)


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ax.NotApplicable, match=r"a store of a sweep needs pyarrow.*\n.*\[data"):
        SweepStore.create_or_resume(tmp_path / "new", manifest())
    assert not (tmp_path / "new").exists()


def test_names_of_columns_are_unique():
    swept, outputs = manifest(
        swept={"a": "start", "row": "input", "b": "parameter"}, outputs=("a", "start.a", "reason")
    ).columns
    assert outputs == {"a": "a", "start.a": "start.a", "reason": "reason_"}
    assert swept == {"a": "start.a_", "row": "input.row", "b": "b"}
