"""What another process does for a sweep: prepare a job once, compute chunks, return columns."""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from dataclasses import dataclass, replace

from axode.problems.runs.session import Session
from axode.problems.sweep.chunk import ChunkResult, PreparedJob, SweepJob, process_name
from axode.problems.sweep.sweep_rows import SweepRows

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
