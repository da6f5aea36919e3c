"""Sweeps with a store: what was finished stays, whatever ends the sweep, and is not repeated."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import axode as ax
from axode.problems.sweep import engines
from tests.problems import machines

ROWS, CHUNK = 60, 8
OUTPUTS = {"far": ("max", "rail"), "squares": ("integral", lambda s: s["rail"] ** 2)}
OPTIONS = {
    "start": {"rail.rate": ax.Uniform(-1.0, 1.0)},
    "samples": ROWS,
    "sampler": "latin_hypercube",
    "step": 1e-2,
    "chunk": CHUNK,
    "outputs": OUTPUTS,
}


def sweep(**more):
    return ax.sweep(machines.slider(), 0.1, **(OPTIONS | more))


@pytest.fixture
def computed(monkeypatch):
    """First rows of the chunks that are computed."""
    seen: list[int] = []
    real = engines.Tally.add
    monkeypatch.setattr(
        engines.Tally, "add", lambda self, made: seen.append(made.first) or real(self, made)
    )
    return seen


def assert_same(made, expected):
    for name in expected:
        np.testing.assert_array_equal(made[name], expected[name])
    np.testing.assert_array_equal(made.samples["rail.rate"], expected.samples["rail.rate"])
    assert made.statuses == expected.statuses and made.batch == expected.batch


def test_a_stored_sweep_is_the_one_in_memory(tmp_path, computed):
    made, expected = sweep(store=tmp_path / "s"), sweep()
    assert_same(made, expected)
    assert made.info.keys() >= expected.info.keys()
    computed.clear()
    again = sweep(store=tmp_path / "s")
    assert_same(again, expected)
    assert not computed and again.info["computed"] == 0 and made.info["computed"] == ROWS
    (tmp_path / "s" / "part-00000003.parquet").unlink()
    assert_same(sweep(store=tmp_path / "s", executor=1), expected)
    assert computed == [3 * CHUNK]


SCRIPT = """
import sys, time
from axode.results.sweep_store import SweepStore
from tests.problems.test_sweep_resume import sweep

write, parts = SweepStore.write, []

def slow(*arguments):
    if len(parts) == 3:
        print("three", flush=True)
        time.sleep(60)
    write(*arguments)
    parts.append(1)

SweepStore.write = slow
sweep(store=sys.argv[1])
"""


def test_a_killed_sweep_is_resumed(tmp_path, computed):
    folder = tmp_path / "s"
    path = os.pathsep.join(part or "." for part in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", SCRIPT, folder],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    )
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == "three\n"
        child.send_signal(signal.SIGKILL)
    assert len(list(folder.glob("part-*.parquet"))) == 3
    so_far = ax.Sweep.load(folder)
    assert so_far.statuses["finished"] == 3 * CHUNK
    assert_same(sweep(store=folder), sweep())
    assert computed[: -(-ROWS // CHUNK) - 3] == list(range(3 * CHUNK, ROWS, CHUNK))


def test_an_interrupted_sweep_is_resumed(tmp_path, computed, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    press = lambda self, rows: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    try:
        with (
            monkeypatch.context() as patch,
            pytest.raises(ax.Interrupted, match="same call computes the rest") as caught,
        ):
            patch.setattr(engines.Tally, "begin", press)
            sweep(store=tmp_path / "s")
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.result.statuses.get("finished", 0) in (0, CHUNK)
    assert_same(sweep(store=tmp_path / "s"), sweep())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": 64}, r"samples\.rows: 60 in the store, 64 now"),
        ({"seed": 1}, r"samples\.seed: 0 in the store, 1 now"),
        ({"chunk": 10}, r"chunk: 8 in the store, 10 now"),
        ({"step": 2e-2}, r"step: 0\.01 in the store, 0\.02 now"),
        ({"outputs": OUTPUTS | {"far": ("min", "rail")}}, r"gathered\.far: .*'max', 'rail'"),
        ({"input": {"rail.force": 1.0}}, r"input\.u: "),
        ({"outputs": OUTPUTS | {"squares": ("integral", "rail**3")}}, r"gathered\.squares: "),
    ],
)
def test_another_study_is_refused(tmp_path_factory, change, words):
    folder = tmp_path_factory.getbasetemp() / "one_study"
    sweep(store=folder)
    with pytest.raises(ax.FileError, match=f"(?s)holds another sweep than this one.*{words}"):
        sweep(store=folder, **change)


def test_another_model_is_refused(tmp_path):
    options = {"samples": {"pitch": [0.1, 0.2]}, "step": 1e-2, "store": tmp_path / "s"}
    ax.sweep(machines.wheeled_pendulum(), 0.02, **options)
    heavier = machines.wheeled_pendulum().equations.system.mechanism.copy()
    heavier.bodies[0] = type(heavier.bodies[0])(**{**vars(heavier.bodies[0]), "mass": 2.0})
    with pytest.raises(ax.FileError, match=r"model\.sha256: "):
        ax.sweep(heavier.derive().compile(), 0.02, **options)


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch):
    from axode.results import sweep_store

    real, parts = sweep_store.write_atomically, []

    def full(path, content, **options):
        parts.append(path)
        if len(parts) == 4:
            raise ax.FileError(f"cannot write '{path}': No space left on device")
        real(path, content, **options)

    monkeypatch.setattr(sweep_store, "write_atomically", full)
    with pytest.raises(ax.FileError, match="No space left"):
        sweep(store=tmp_path / "s")
    assert_same(sweep(store=tmp_path / "s"), sweep())
    assert len(parts) == 4 + (-(-ROWS // CHUNK) - 2)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_of_a_pool_is_killed_amid_a_chunk(tmp_path, method):
    """The pool is broken; the same call with another computes the rest, to the same bits."""
    folder, long = tmp_path / "s", OPTIONS | {"step": 1e-6, "chunk": 20}

    def pool():
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method))

    def kill(own) -> None:
        while not list(folder.glob("part-*.parquet")):
            time.sleep(1e-3)
        os.kill(next(iter(own._processes)), signal.SIGKILL)

    with pool() as own, pytest.raises(ax.SweepFailed, match="the same call computes only"):
        killer = threading.Thread(target=kill, args=(own,))
        killer.start()
        try:
            sweep(store=folder, executor=own, **long)
        finally:
            killer.join()
    assert 1 <= len(list(folder.glob("part-*.parquet"))) < 3
    with pool() as own:
        assert_same(sweep(store=folder, executor=own, **long), sweep(**long))
