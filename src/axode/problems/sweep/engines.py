"""Engines of a sweep: compute chunks in this process, in others, elsewhere, or on GPUs.

Processes on this machine that compute chunks; one that is lost is replaced.

They are started as programs of their own, so that scripts need no `if __name__ == "__main__"`, and
nothing of the caller's code runs in them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from queue import SimpleQueue
from typing import IO, Any

from axode.codegen.targets.jit import start_python
from axode.errors import (
    InvalidArgument,
    NotApplicable,
    PlausibilityWarning,
    SweepFailed,
    install_command,
    shortened,
)
from axode.problems.runs.session import Session
from axode.problems.sweep.chunk import ChunkResult, PreparedJob, SweepJob, process_name
from axode.problems.sweep.gpu_rows import gpus_of
from axode.problems.sweep.study import Study
from axode.problems.sweep.sweep_rows import SweepRows
from axode.runtime.device import on_own_stream

UNDER_WAY = 3  # chunks per GPU: of one starts are found, one runs, one brings its numbers back


def compute_on_gpus(
    study: Study,
    numbers: Iterable[int],
    session: Session,
    show: Callable[[float], None],
    *,
    stay: bool = False,
) -> Iterator[tuple[int, ChunkResult]]:
    """Compute chunks on the GPUs of the study; after Ctrl-C the last ones are incomplete.

    Args:
        study: Job and rows.
        numbers: Which chunks.
        session: Answers Ctrl-C.
        show: Called with how many rows of chunks under way are done.
        stay: Leave the numbers there.
    """
    devices = gpus_of(study.job.settings.place)
    prepared, turn = PreparedJob(study.job), threading.Lock()
    places: SimpleQueue[tuple[int, int]] = SimpleQueue()
    for place in range(UNDER_WAY):
        for device in devices:
            places.put((device, place))

    def work(number: int, beside: Session) -> ChunkResult:
        with turn:  # one after the other: a chunk is begun while others run
            begun = prepared.begin(study.rows, *study.span(number))
        device, place = places.get()
        try:
            with on_own_stream(device, place):
                return prepared.compute(begun, beside, on_gpu=stay)
        finally:
            places.put((device, place))

    count, left = UNDER_WAY * len(devices), iter(numbers)
    waiting: dict[Future[ChunkResult], tuple[int, Session]] = {}
    with ThreadPoolExecutor(count, "axode-gpu") as pool:
        while True:
            for number in islice(left, count - len(waiting)):
                first, last = study.span(number)
                beside = session.beside(last - first)
                waiting[pool.submit(work, number, beside)] = (number, beside)
            if not waiting:
                return
            done, _ = wait(waiting, POLL, FIRST_COMPLETED)
            for future in done:
                number, beside = waiting.pop(future)
                yield number, future.result()
                if beside.interrupted:
                    left = iter(())
            show(sum(beside.done for _, beside in waiting.values()))


MAX_LOST = 3  # processes that one call may take with it
# The process that called `sweep` answers Ctrl-C, also while this one starts.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from axode.problems.sweep.engines import serve; serve()"
)
_LENGTH = struct.Struct("<Q")


class ProcessesLost(BrokenExecutor):
    """One call took several processes with it, as where the memory ends."""


class WorkerProcesses(Executor):
    """An executor whose processes are replaced when they are lost.

    Args:
        workers: How many processes.
        spread_gpus: Give each process one of the GPUs that are visible here, in turn.
    """

    def __init__(self, workers: int, *, spread_gpus: bool = False) -> None:
        self.num_workers = workers
        self._queue: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._closed = False
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * workers
        gpus = _visible_gpus() if spread_gpus else []
        self._threads = [
            threading.Thread(target=self._serve, args=(k, gpus[k % len(gpus)] if gpus else None))
            for k in range(workers)
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes that run."""
        return [process.pid for process in self._processes if process is not None]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in one of the processes."""
        future: Future[Any] = Future()
        self._queue.put((future, pickle.dumps((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; what they still compute is lost if `cancel_futures` is set."""
        self._closed = cancel_futures
        for _ in self._threads:
            self._queue.put(None)
        if cancel_futures:
            for process in self._processes:
                if process is not None:
                    process.kill()
        if wait:
            for thread in self._threads:
                thread.join()

    def _serve(self, place: int, gpu: str | None) -> None:
        """Hand calls to one process, from a thread of this one."""
        try:
            while (item := self._queue.get()) is not None:
                future, call = item
                if not self._closed and future.set_running_or_notify_cancel():
                    try:
                        future.set_result(self._call(place, call, gpu))
                    except BaseException as error:
                        future.set_exception(error)
        finally:
            self._end(place)

    def _call(self, place: int, call: bytes, gpu: str | None) -> Any:
        for _ in range(MAX_LOST):
            process = self._processes[place]
            if process is None:
                process = self._processes[place] = _start(gpu)
            assert process.stdin is not None and process.stdout is not None
            try:
                _send(process.stdin, call)
                return pickle.loads(_receive(process.stdout))
            except (OSError, EOFError):  # it was killed, or ran out of memory
                self._end(place)
                if self._closed:
                    break
        raise ProcessesLost(f"{MAX_LOST} processes were lost in the same call")

    def _end(self, place: int) -> None:
        process, self._processes[place] = self._processes[place], None
        if process is not None:
            process.kill()
            process.communicate()


def _start(gpu: str | None) -> subprocess.Popen[bytes]:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")  # more would wait for each other
    environment = {"OPENBLAS_NUM_THREADS": threads}
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
    return start_python(_PROGRAM, stdin=subprocess.PIPE, env=environment)


def _visible_gpus() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name]
    from axode.runtime import device

    return [str(k) for k in range(device.cupy().cuda.runtime.getDeviceCount())]


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """Read a message.

    Raises:
        EOFError: where there are no more.
    """
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    message = stream.read(length)
    if len(message) < length:
        raise EOFError
    return message


def serve() -> None:
    """Answer calls until there are no more, as one of the processes."""
    given, made = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what functions print is no answer
    with contextlib.suppress(EOFError, BrokenPipeError):  # the other process has gone
        while True:
            function, args, kwargs = pickle.loads(_receive(given))
            _send(made, pickle.dumps(function(*args, **kwargs)))


MAX_PREPARED = 4  # jobs that a process keeps
_PREPARED: dict[str, PreparedJob] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Failure:
    """A chunk that another process could not compute.

    Attributes:
        worker: Machine and process.
        message: Why.
    """

    worker: str
    message: str


@dataclass(frozen=True)
class Payload:
    """A job for other processes, pickled once; few bytes beside the chunks that it makes.

    Attributes:
        version: Version of Axode that wrote it.
        digest: Names the content.
        content: The job.
    """

    version: str
    digest: str
    content: bytes

    @classmethod
    def of(cls, job: SweepJob) -> Payload:
        """Pickle a job; where it has no number of threads, other processes use one each."""
        threads = job.settings.threads or 1
        content = pickle.dumps(replace(job, settings=replace(job.settings, threads=threads)))
        return cls(own_version(), hashlib.sha256(content).hexdigest(), content)

    def prepare(self) -> PreparedJob:
        """Return the job, prepared once in a process."""
        with _LOCK:
            if self.digest not in _PREPARED:
                while len(_PREPARED) >= MAX_PREPARED:
                    del _PREPARED[next(iter(_PREPARED))]
                _PREPARED[self.digest] = PreparedJob(pickle.loads(self.content))
            return _PREPARED[self.digest]


def own_version() -> str:
    """Version of Axode in this process."""
    return str(sys.modules["axode"].__version__)


def compute_chunk(
    payload: Payload, rows: SweepRows, first: int, last: int
) -> ChunkResult | Failure:
    """Compute the rows `first` ... `last - 1` of a sweep in another process.

    Errors are returned: the process that called `sweep` computes the chunk itself, where they can
    be raised, and may have the equations that are missing here.
    """
    if payload.version != own_version():
        return Failure(process_name(), f"has Axode {own_version()}, not {payload.version}")
    try:
        job = payload.prepare()
        with Session(job.job.model.name, job.job.settings, last - first, False) as session:
            made = job.compute(job.begin(rows, first, last), session)
        session.check()
        return made
    except Exception as error:
        return Failure(process_name(), f"{type(error).__name__}: {error}")


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
