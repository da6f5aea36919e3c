"""Engines of a sweep: compute chunks in this process, or in others through an executor."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any

from axode.errors import (
    InvalidArgument,
    NotApplicable,
    PlausibilityWarning,
    SweepFailed,
    install_command,
    shortened,
)
from axode.problems.runs.session import Session
from axode.problems.sweep.chunk import ChunkResult, PreparedJob, SweepJob
from axode.problems.sweep.gpu_engine import compute_on_gpus
from axode.problems.sweep.remote import Failure, Payload, compute_chunk
from axode.problems.sweep.study import Study
from axode.problems.sweep.sweep_rows import SweepRows
from axode.problems.sweep.worker_processes import ProcessesLost, WorkerProcesses

Submit = Callable[[SweepRows, int, int], Future[Any]]
POLL = 0.1  # [s] between checks for Ctrl-C
SPARE = 2  # chunks per worker that are under way, so that none waits for this process
RETRIES = 3  # times that a cluster starts a chunk again whose worker was lost
CONNECT_TIMEOUT = 10.0  # [s]
MAX_PROCESSES = 1024  # of one call, all on this machine
RECOUNT = 2.0  # [s] between looks at how many workers a cluster has
PATIENCE = 20.0  # [s] without workers before a warning
PROCESSES = "processes"
EXPECTED = (
    "a number of processes, 'processes', an executor such as "
    "concurrent.futures.ProcessPoolExecutor or mpi4py.futures.MPIPoolExecutor, a "
    "dask.distributed.Client, or the module ray"
)


class Tally:
    """Counts rows and shows how fast they are computed.

    Args:
        session: Shows it.
        name: What is being done.
        count: How many rows there are.
        done: How many exist already.
    """

    def __init__(self, session: Session, name: str, count: int, done: int) -> None:
        self._session, self._name, self._count, self._done = session, name, count, done
        self._before, self._began = done, time.perf_counter()
        self._workers: dict[str, tuple[int, float]] = {}

    def begin(self, rows: int) -> None:
        """Show the progress of the next rows as they are computed here."""
        self._session.begin(rows, self._done / self._count, rows / self._count)

    def add(self, made: ChunkResult) -> None:
        """Count the rows of a chunk."""
        rows = len(made.status)
        self._done += rows
        known, seconds = self._workers.get(made.worker, (0, 0.0))
        self._workers[made.worker] = (known + rows, seconds + made.seconds)
        self.show(0.0)

    def show(self, under_way: float) -> None:
        """Show the progress, with the number of rows of pending chunks."""
        self._session.show((self._done + under_way) / self._count, self.label())

    @property
    def computed(self) -> int:
        """How many rows were computed."""
        return self._done - self._before

    def label(self) -> str:
        """Describe the rate of all workers, and of each."""
        seconds = max(time.perf_counter() - self._began, 1e-9)
        label = f"{self._name}: {self.computed / seconds:,.0f} runs/s"
        rates = [rows / max(busy, 1e-9) for rows, busy in self._workers.values()]
        if len(rates) > 1:
            label += f", {len(rates)} workers, {min(rates):,.0f} to {max(rates):,.0f} each"
        return label


def compute_here(
    study: Study, numbers: Iterable[int], session: Session, tally: Tally, *, on_gpu: bool = False
) -> Iterator[tuple[int, ChunkResult]]:
    """Compute chunks in this process; after Ctrl-C the last are incomplete.

    Args:
        study: Job and rows.
        numbers: Which chunks.
        session: Shows the progress and answers Ctrl-C.
        tally: Counts rows.
        on_gpu: Leave numbers on the GPU that computes them.
    """
    if study.job.settings.place.target == "cuda":
        for number, made in compute_on_gpus(study, numbers, session, tally.show, stay=on_gpu):
            tally.add(made)
            yield number, made
        return
    prepared = PreparedJob(study.job)
    for number in numbers:
        first, last = study.span(number)
        tally.begin(last - first)
        made = prepared.compute(prepared.begin(study.rows, first, last), session)
        tally.add(made)
        yield number, made
        if session.interrupted:
            return


def compute_elsewhere(
    executor: Any, study: Study, numbers: Iterable[int], session: Session, tally: Tally
) -> Iterator[tuple[int, ChunkResult]]:
    """Compute chunks through an executor, a few at a time, in any order.

    Raises:
        SweepFailed: if the executor stops computing.
    """
    finisher = _Finisher(study, session, tally)
    numbers = iter(numbers)
    waiting: dict[Future[Any], int] = {}
    with _submitter(executor, study.job) as (submit, workers):
        try:
            while True:
                for number in islice(numbers, max(0, SPARE * workers() - len(waiting))):
                    first, last = study.span(number)
                    rows = study.rows.part(study.job.model, first, last)
                    waiting[_submitted(submit, rows, first, last)] = number
                if not waiting:
                    return
                done, _ = wait(waiting, POLL, FIRST_COMPLETED)
                session.check()
                for future in sorted(done, key=_has_failed):  # what was computed is kept
                    number = waiting.pop(future)
                    with _as_sweep_failed():
                        found = future.result()
                    made = finisher.finish(number, found)
                    tally.add(made)
                    yield number, made
        finally:
            for future in waiting:
                future.cancel()


def _submitted(submit: Submit, rows: SweepRows, first: int, last: int) -> Future[Any]:
    """Submit a chunk; an executor that takes none has failed as one that returns none."""
    try:
        return submit(rows, first, last)
    except Exception as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


class _Finisher:
    """Computes what other processes leave to this one."""

    def __init__(self, study: Study, session: Session, tally: Tally) -> None:
        self._study, self._session, self._tally = study, session, tally
        self._prepared: PreparedJob | None = None
        self._failed: set[str] = set()

    def finish(self, number: int, made: ChunkResult | Failure) -> ChunkResult:
        """Return a chunk with all of its rows."""
        if isinstance(made, ChunkResult) and (made.left is None or not made.left.any()):
            return made
        if self._prepared is None:
            self._prepared = PreparedJob(self._study.job)
        first, last = self._study.span(number)
        only = None if isinstance(made, Failure) else made.left
        rows = self._study.rows
        self._tally.begin(last - first)
        here = self._prepared.compute(self._prepared.begin(rows, first, last), self._session, only)
        if isinstance(made, Failure) and made.worker not in self._failed:
            self._failed.add(made.worker)
            warnings.warn(
                f"the worker {made.worker} leaves its chunks to this process: {made.message}",
                PlausibilityWarning,
                stacklevel=2,
            )
        return here if isinstance(made, Failure) else made.finished_by(here)


def _has_failed(future: Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None


@contextmanager
def _as_sweep_failed() -> Iterator[None]:
    """Raise what an executor raises as a `SweepFailed` with a remedy."""
    try:
        yield
    except Exception as error:
        remedy = "executor='processes' replaces processes that are lost"
        if isinstance(error, ProcessesLost):
            remedy = "fewer processes and smaller chunks need less memory"
        raise SweepFailed(
            f"the executor stopped computing ({type(error).__name__}: {shortened(str(error))}).\n"
            f"  With store=... the same call computes only what is missing; {remedy}."
        ) from error


@contextmanager
def _submitter(executor: Any, job: SweepJob) -> Iterator[tuple[Submit, Callable[[], int]]]:
    """Yield what submits a chunk to an executor, and what counts its workers."""
    payload = Payload.of(job)
    if executor == PROCESSES or (isinstance(executor, int) and not isinstance(executor, bool)):
        with _own_processes(executor, job) as own:
            yield _submit_to(own, payload), lambda: own.num_workers
    elif _is_dask(executor):
        # a task, not scattered data: it is made again where its worker is lost; one per call, for
        # Dask remembers a task that failed
        parts = payload.version, payload.digest, payload.content
        with _as_sweep_failed():  # a client that is closed
            shared = executor.submit(Payload, *parts, retries=RETRIES, pure=False)
            pool = executor.get_executor(retries=RETRIES, pure=False)
        yield _submit_to(pool, shared), _recounted(lambda: sum(executor.nthreads().values()))
    elif getattr(executor, "__name__", "") == "ray":
        submit = _submit_to_ray(executor, payload)
        yield submit, _recounted(lambda: int(executor.cluster_resources().get("CPU", 1)))
    else:
        yield _submit_to(executor, payload), lambda: _workers_of(executor)


def check_executor(executor: Any) -> None:
    """Check that chunks can be given to an executor.

    Raises:
        InvalidArgument: for anything else.
    """
    named = isinstance(executor, str) and executor == PROCESSES  # arrays compare by element
    if executor is None or named or _is_dask(executor):
        return
    if isinstance(executor, int) and not isinstance(executor, bool):
        if not 1 <= executor <= MAX_PROCESSES:
            raise InvalidArgument(
                f"executor: must be 1 to {MAX_PROCESSES} processes, got {shortened(executor)}"
            )
        return
    ray = getattr(executor, "__name__", "") == "ray" and hasattr(executor, "remote")
    if not ray and not callable(getattr(executor, "submit", None)):
        raise InvalidArgument(f"executor: expected {EXPECTED}; got {shortened(executor)}")


def connect_to_dask(address: str) -> Any:
    """Connect to the scheduler of a Dask cluster.

    Raises:
        NotApplicable: if `distributed` is not installed.
        InvalidArgument: if nothing answers at the address.
    """
    try:
        from distributed import Client
    except ImportError:
        raise NotApplicable(
            f"a cluster needs Dask: {install_command('cluster')}, on its workers too"
        ) from None
    try:
        return Client(address, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"cluster: no scheduler of Dask answers at '{address}' ({shortened(str(error))}); give "
            "the address that `dask scheduler` prints, as in tcp://host:8786"
        ) from None


def _is_dask(executor: Any) -> bool:
    kind = type(executor)
    return kind.__module__.partition(".")[0] == "distributed" and hasattr(executor, "nthreads")


def _recounted(count: Callable[[], int]) -> Callable[[], int]:
    """Count the workers of a cluster regularly: they come and go, and none may be left."""
    found, at, seen = 1, -RECOUNT, time.monotonic()

    def recount() -> int:
        nonlocal found, at, seen
        now = time.monotonic()
        if now - at >= RECOUNT:
            with _as_sweep_failed():  # a scheduler that has gone
                found, at = count(), now
            if found:
                seen = now
            elif now - seen >= PATIENCE:
                seen = float("inf")  # warn once
                warnings.warn(
                    "the cluster has no workers, and the sweep waits for one; Ctrl-C ends it and "
                    "keeps what was computed",
                    PlausibilityWarning,
                    stacklevel=2,
                )
        return max(1, found)

    return recount


def _workers_of(executor: Any) -> int:
    for name in ("_max_workers", "num_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return os.cpu_count() or 1


@contextmanager
def _own_processes(executor: Any, job: SweepJob) -> Iterator[WorkerProcesses]:
    count = (os.cpu_count() or 1) if executor == PROCESSES else executor
    own = WorkerProcesses(count, spread_gpus=job.settings.place.target == "cuda")
    try:
        yield own
    finally:
        own.shutdown(cancel_futures=True)


def _submit_to(executor: Executor, payload: Any) -> Submit:
    return lambda rows, first, last: executor.submit(compute_chunk, payload, rows, first, last)


def _submit_to_ray(ray: Any, payload: Payload) -> Submit:
    """Submit to the cluster of Ray that the caller is connected to."""
    if not ray.is_initialized():
        raise NotApplicable("executor=ray: call ray.init() first, to start or join a cluster")
    remote, shared = ray.remote(max_retries=RETRIES)(compute_chunk), ray.put(payload)

    def submit(rows: SweepRows, first: int, last: int) -> Future[Any]:
        made: Future[Any] = remote.remote(shared, rows, first, last).future()
        return made

    return submit
