"""Compute chunks of a sweep on GPUs, a few at a time: starts, runs and results overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from queue import SimpleQueue

from axode.problems.runs.session import Session
from axode.problems.sweep.chunk import ChunkResult, PreparedJob
from axode.problems.sweep.gpu_rows import gpus_of
from axode.problems.sweep.study import Study
from axode.runtime.device import on_own_stream

UNDER_WAY = 3  # chunks per GPU: of one starts are found, one runs, one brings its numbers back
POLL = 0.1  # [s] between updates of the progress bar


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
