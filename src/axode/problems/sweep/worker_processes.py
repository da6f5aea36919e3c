"""Processes on this machine that compute chunks; one that is lost is replaced.

They are started as programs of their own, so that scripts need no `if __name__ == "__main__"`, and
nothing of the caller's code runs in them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import IO, Any

from axode.codegen.targets.compiler_process import start_python

MAX_LOST = 3  # processes that one call may take with it
# The process that called `sweep` answers Ctrl-C, also while this one starts.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from axode.problems.sweep.worker_processes import serve; serve()"
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
