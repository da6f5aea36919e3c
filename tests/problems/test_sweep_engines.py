"""Engines of sweeps: every row once, with the bits of one process, whoever is lost meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import numpy as np
import pytest

import axode as ax
from axode.mechanism.parameter_values import find_impossible
from axode.problems.sweep import engines
from axode.problems.sweep.chunk import ChunkResult
from axode.problems.sweep.engines import WorkerProcesses
from axode.results.sweep_arrays import RowTexts
from tests.problems import machines

ROWS, CHUNK = 600, 25
OPTIONS = {
    "start": {"pitch": ax.Uniform(-0.2, 0.2), "pitch.rate": ax.Normal(0.0, 0.3)},
    "samples": ROWS,
    "step": 2e-3,
    "chunk": CHUNK,
    "outputs": {"top": ("max", "pitch"), "squares": ("integral", lambda s: s["pitch"] ** 2)},
}


def sweep(**more):
    return ax.sweep(machines.wheeled_pendulum(), 0.5, **OPTIONS, **more)


@pytest.fixture(scope="module")
def here():
    return sweep()


def assert_same(made, expected):
    assert made.finished.all() and made.statuses == expected.statuses
    for name in expected:
        np.testing.assert_array_equal(made[name], expected[name])


@pytest.fixture
def arrivals(monkeypatch):
    """First rows of the chunks that arrive, and what to do when the first one does."""
    seen: dict[str, list] = {"rows": [], "then": []}
    real = engines.Tally.add

    def add(self, made):
        seen["rows"].append(made.first)
        while seen["then"]:
            seen["then"].pop()()
        real(self, made)

    monkeypatch.setattr(engines.Tally, "add", add)
    return seen


@pytest.mark.slow
def test_processes_that_are_killed_are_replaced(here, arrivals):
    with WorkerProcesses(2) as pool:
        killed = []

        def kill():
            killed.extend(pool.pids[:1])
            os.kill(*killed, signal.SIGKILL)

        arrivals["then"] = [kill]
        assert_same(sweep(executor=pool), here)
        assert sorted(arrivals["rows"]) == list(range(0, ROWS, CHUNK))
        assert killed[0] not in pool.pids
        modules = pool.submit(eval, "{*__import__('sys').modules}").result()
        assert "axode.problems.sweep.chunk" in modules and "casadi" not in modules


@pytest.mark.slow
def test_a_worker_of_a_cluster_is_killed(here, arrivals):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        first, _ = client.run(os.getpid).values()
        arrivals["then"] = [lambda: os.kill(first, signal.SIGKILL)]
        assert_same(sweep(executor=client), here)
    assert sorted(arrivals["rows"]) == list(range(0, ROWS, CHUNK))


def test_a_cluster_that_failed_is_asked_again(here, monkeypatch):
    """What is lost in one call is no part of the next, although both have the same job."""
    distributed = pytest.importorskip("distributed")
    real, lost = engines.Payload.__init__, [True]

    def make(self, *arguments):
        if lost and threading.current_thread() is not threading.main_thread():
            raise OSError("the worker was lost")
        real(self, *arguments)

    monkeypatch.setattr(engines.Payload, "__init__", make)
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        with pytest.raises(ax.SweepFailed, match="the worker was lost") as kept:
            sweep(executor=client)
        lost.clear()
        assert_same(sweep(executor=client), here)
    assert kept.value.result.statuses == {"interrupted": ROWS}


def test_a_cluster_without_workers_is_waited_for(here, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(engines, "RECOUNT", 0.0)
    monkeypatch.setattr(engines, "PATIENCE", 0.0)
    options = {"n_workers": 0, "processes": False, "dashboard_address": None}
    waited = pytest.warns(ax.PlausibilityWarning, match="no workers, and the sweep waits for one")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        later = threading.Timer(0.5, cluster.scale, [1])
        later.start()
        with waited as told:
            assert_same(sweep(executor=client), here)
    assert len(told) == 1


def test_a_scheduler_that_is_lost(here, arrivals):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        arrivals["then"] = [client.close]
        with pytest.raises(ax.SweepFailed, match="the executor stopped computing") as kept:
            sweep(executor=client)
        assert kept.value.result.statuses["finished"] >= CHUNK
        with pytest.raises(ax.SweepFailed, match="the executor stopped computing"):
            sweep(executor=client)


def test_runs_that_change_rows_are_finished_here(monkeypatch):
    """Functions without equations cannot choose other rows; the process that has them can."""
    angles = np.linspace(1.0, np.pi - 0.03, 5)
    start = {"crank": angles, "coupler": -angles, "rocker": angles, "crank.rate": -9.0}
    options = {"start": start, "combine": "zip", "step": 1e-3, "chunk": 3}
    model = machines.parallelogram()
    expected = ax.sweep(model, 0.02, **options)
    left = []
    real = ChunkResult.finished_by
    monkeypatch.setattr(
        ChunkResult,
        "finished_by",
        lambda self, other: left.append(self.left.tolist()) or real(self, other),
    )
    with ThreadPoolExecutor(2) as pool:
        assert_same(ax.sweep(model, 0.02, **options, executor=pool), expected)
    assert left == [[False, True]]


@pytest.mark.parametrize("executor", [None, 1])
def test_what_was_not_asked_for_is_warned_of_once(executor):
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    start = {"wheel1.contact.x": [0.5, 0.6], "x": [3.0, 4.0], "psi": [0.0, 0.0]}
    with pytest.warns(ax.RequestNotMetWarning, match="x = [34] was asked for") as told:
        ax.sweep(model, 2e-3, start=start, combine="zip", chunk=1, executor=executor)
    assert [w.filename for w in told if w.category is ax.RequestNotMetWarning] == [__file__]


def test_runs_of_tables_and_arrays_travel_with_their_chunks():
    model, rng = machines.wheeled_pendulum(), np.random.default_rng(0)
    q, nu = np.tile(model.home, (7, 1)), rng.normal(size=(7, len(model.independent)))
    table = ax.Sampled(rng.normal(size=(7, 5, len(model.inputs))), 0.01)
    options = {"start": (q, nu), "input": table, "combine": "zip", "step": 1e-2, "chunk": 3}
    expected = ax.sweep(model, 0.05, **options)
    with ThreadPoolExecutor(2) as pool:
        assert_same(ax.sweep(model, 0.05, **options, executor=pool), expected)


def test_reasons_are_of_their_rows():
    """A reason names what is wrong in its own row, whatever is wrong in others of the chunk."""
    bot = ax.Mechanism("slider")
    cart = bot.add_body("cart", mass=ax.Parameter("mass", 1.0), inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_damper("oil", "rail", coefficient=ax.Parameter("oil", 1.0))
    values = {"mass": np.array([-1.0, 1, 1, -2]), "oil": np.array([-3.0, -1, 1, 1])}
    kinds, texts = find_impossible(bot, values)
    mass, oil = "[body.cart] mass: must be > 0 kg", "[damper.oil] coefficient: must be >= 0"
    assert [texts.get(kind) for kind in kinds.tolist()] == [mass, oil, None, mass]


def test_rows_with_impossible_parameters_fail_and_others_do_not():
    """Drawn values are rows that fail; listed ones are mistakes."""
    model = machines.slider()
    options = {"input": {model.inputs[0]: 1.0}, "step": 1e-2, "outputs": {"x": ("last", "rail")}}
    drawn = options | {"parameters": {"mass": ax.Normal(0.0, 1.0)}, "samples": 40, "chunk": 16}
    here = ax.sweep(model, 0.1, **drawn)
    assert 10 < here.statuses["failed: not assembled"] < 30
    assert here.finished.tolist() == (here.samples["mass"] > 0).tolist()
    (reason,) = set(here.reasons.values())  # one for all: it has no value of a single row
    assert reason.endswith("[body.cart] mass: must be > 0 kg")
    with ThreadPoolExecutor(2) as pool:
        there = ax.sweep(model, 0.1, **drawn, executor=pool)
    np.testing.assert_array_equal(there["x"], here["x"])
    assert dict(there.reasons) == dict(here.reasons)
    with pytest.raises(ax.InvalidArgument, match=r"cannot have mass = -1 \(run 1 of 2\)"):
        ax.sweep(model, 0.1, **options, parameters={"mass": [1.0, -1.0]})
    with pytest.raises(ax.InvalidArgument, match=r"cannot have mass = -1"):
        ax.sweep(model, 0.1, **options, samples={"mass": [1.0, -1.0]})


class Stopping(Executor):
    """An executor that computes two chunks and then loses its processes."""

    def __init__(self):
        self.left = 2

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        self.left -= 1
        if self.left >= 0:
            future.set_result(fn(*args, **kwargs))
        else:
            future.set_exception(BrokenProcessPool("a process ended"))
        return future


def test_an_executor_that_stops_leaves_what_it_had_computed(here):
    with pytest.raises(ax.SweepFailed, match=r"stopped computing \(BrokenProcessPool") as e:
        sweep(executor=Stopping())
    made = e.value.result
    assert made.statuses == {"finished": 2 * CHUNK, "interrupted": ROWS - 2 * CHUNK}
    np.testing.assert_array_equal(made["top"][: 2 * CHUNK], here["top"][: 2 * CHUNK])


def test_an_executor_that_takes_no_chunks():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(ax.SweepFailed, match=r"stopped computing \(RuntimeError: .*shutdown"):
        sweep(executor=pool)


def test_a_chunk_that_kills_every_process_is_given_up(monkeypatch):
    monkeypatch.setattr(engines, "compute_chunk", os._exit)
    monkeypatch.setattr(engines, "Payload", SimpleNamespace(of=lambda job: 1))
    lost = r"3 processes were lost.*\n.*smaller chunks need less memory"
    with pytest.raises(ax.SweepFailed, match=lost):
        sweep(executor=1)


def test_workers_with_another_version_leave_the_work_here(here, monkeypatch):
    with ThreadPoolExecutor(1) as pool:
        payload = engines.Payload("0.0", "", b"")
        failure = pool.submit(engines.compute_chunk, payload, None, 0, 1).result()
    assert failure.message == f"has Axode {ax.__version__}, not 0.0"
    monkeypatch.setattr(engines, "compute_chunk", lambda *_: failure)
    left = pytest.warns(
        ax.PlausibilityWarning, match="leaves its chunks to this process: has Axode"
    )
    with ThreadPoolExecutor(1) as pool, left:
        assert_same(sweep(executor=pool), here)


def test_ctrl_c_keeps_the_chunks_that_arrived(arrivals):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    arrivals["then"] = [lambda: os.kill(os.getpid(), signal.SIGINT)]
    try:
        with ThreadPoolExecutor(2) as pool:
            made = sweep(executor=pool, on_interrupt="return")
    finally:
        signal.signal(signal.SIGINT, before)
    assert CHUNK <= made.statuses["finished"] < ROWS


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        (0, "executor: must be 1 to 1024 processes, got 0"),
        (10**30, "executor: must be 1 to 1024 processes, got 1000000000"),
        ("threads", "executor: expected a number of processes.*got 'threads'"),
        (True, "executor: expected a number of processes"),
    ],
)
def test_what_is_no_executor(executor, message):
    with pytest.raises(ax.InvalidArgument, match=message):
        sweep(executor=executor)


class FakeRay:
    """What a sweep uses of Ray, without a cluster."""

    __name__ = "ray"

    def __init__(self, running):
        self.running, self.pool = running, ThreadPoolExecutor(1)

    def is_initialized(self):
        return self.running

    def cluster_resources(self):
        return {"CPU": 2.0}

    def put(self, value):
        return value

    def remote(self, **options):
        assert options == {"max_retries": engines.RETRIES}
        return lambda function: _Remote(self.pool, function)


class _Remote:
    def __init__(self, pool, function):
        self.pool, self.function = pool, function

    def remote(self, *arguments):
        made = self.pool.submit(self.function, *arguments)
        made.future = lambda: made
        return made


def test_the_calls_of_ray(here):
    assert_same(sweep(executor=FakeRay(True)), here)
    with pytest.raises(ax.NotApplicable, match=r"call ray\.init\(\) first"):
        sweep(executor=FakeRay(False))


def test_a_cluster_of_ray(here):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2)
    try:
        assert_same(sweep(executor=ray), here)
    finally:
        ray.shutdown()


def test_processes_of_mpi(here):
    try:
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError):
        pytest.skip("mpi4py finds no MPI library")
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(1) as pool:
        assert_same(sweep(executor=pool), here)


def test_the_rate_of_every_worker():
    class Bar:
        def show(self, share, label):
            self.share, self.label = share, label

    bar = Bar()
    tally = engines.Tally(bar, "robot", 100, 20)
    for worker in ("a:1", "b:2"):
        codes, none = np.zeros(30, np.int8), RowTexts.from_rows(30, {})
        tally.add(ChunkResult(0, np.zeros((30, 1)), codes, none, None, worker, 0.5))
    assert bar.share == 0.8
    assert bar.label.startswith("robot: ") and bar.label.endswith("2 workers, 60 to 60 each")


@pytest.mark.slow
def test_starts_that_their_speed_does_not_describe():
    """A slider at its dead centre: rows begin with the speed of the crank, as `simulate` does."""
    made = ax.Mechanism("slider-crank", gravity=(0, -9.81, 0))
    for link, com in (("crank", 0.1), ("rod", 0.25), ("slider", 0.0)):
        made.add_body(link, mass=1.0, com=(com, 0, 0), inertia=(1e-2, 1e-2, 1e-2))
    made.add_joint("crank", ax.Revolute("z"), parent=made.ground, child="crank")
    made.add_joint("rod", ax.Revolute("z"), parent="crank", child="rod", at=(0.3, 0, 0))
    made.add_joint("slide", ax.Prismatic("x"), parent=made.ground, child="slider")
    made.add_loop("pin", ax.Revolute("z"), parent="rod", child="slider", at=(0.5, 0, 0))
    made.set_home({"crank": np.pi / 2, "rod": -np.arcsin(0.6) - np.pi / 2, "slide": 0.4})
    model = made.derive(independent=["slide.rate"]).compile()
    start = np.array([[0.0, 0.0, 0.8], [np.pi / 2, -np.arcsin(0.6) - np.pi / 2, 0.4]])
    options = {"start": (start, np.zeros((2, 1))), "outputs": {"far": ("min", "crank")}}
    swept = ax.sweep(model, 0.3, **options)
    runs = ax.simulate(model, 0.3, start=options["start"], rtol=1e-12)
    assert swept.finished.all()
    np.testing.assert_allclose(swept["far"], runs["crank"].min(axis=1), atol=1e-8)
    assert_same(ax.sweep(model, 0.3, executor=1, **options), swept)
