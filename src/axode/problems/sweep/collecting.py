"""Where the numbers of a sweep go: arrays in memory, or a store on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.problems.simulate.record import STATUS_WORDS
from axode.problems.steps.step_acceptance import FINISHED, LEFT, RUNNING
from axode.problems.sweep.chunk import ChunkResult
from axode.problems.sweep.gpu_rows import GpuRows, gpus_of
from axode.problems.sweep.study import Study
from axode.results.sweep_arrays import NO_TEXT, DeviceTexts, RowTexts
from axode.results.sweep_result import Sweep
from axode.results.sweep_store import SweepStore

# a text per code; runs that had not ended count as left
STATUS_TEXTS = tuple(
    "" if code == RUNNING else STATUS_WORDS.get(code, "") for code in range(max(STATUS_WORDS) + 1)
)


class AbstractCollector(ABC):
    """Takes chunks in any order and makes the result of them."""

    on_gpu = False  # whether numbers are to stay there

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def finished(self) -> set[int]:
        """Return the numbers of the chunks that exist already."""

    @abstractmethod
    def add(self, number: int, part: ChunkResult) -> None:
        """Keep the numbers of a chunk."""

    @abstractmethod
    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Return the numbers of all rows; `took` describes the computation."""

    @abstractmethod
    def close(self) -> None:
        """Let other processes write to the folder of the numbers."""


class MemoryCollector(AbstractCollector):
    """Numbers of all rows in memory."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        shape = study.rows.count, len(study.job.outputs)
        by_column = study.job.settings.place.target == "cuda"  # as a GPU returns them
        try:
            self._values = np.empty(shape, order="F" if by_column else "C")
        except MemoryError:
            raise InvalidArgument(
                f"sweep: {shape[0]} runs with {shape[1]} outputs do not fit into the memory; "
                "store='folder' keeps them on disk"
            ) from None
        self._status = np.full(study.rows.count, LEFT, dtype=np.int8)
        self._reasons = _Reasons(study.rows.count)

    def finished(self) -> set[int]:
        """Return none: the sweep begins here."""
        return set()

    def add(self, number: int, part: ChunkResult) -> None:
        """Keep the numbers of a chunk."""
        rows = slice(part.first, part.first + len(part.status))
        self._values[rows], self._status[rows] = part.values, part.status
        self._reasons.add(rows, part.reasons)

    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Name the numbers."""
        study, shape = self.study, self.study.rows.shape
        self._status[self._status == RUNNING] = LEFT
        self._values[np.flatnonzero(self._status == LEFT)] = np.nan  # those not computed as well
        names = enumerate(study.job.outputs)
        codes = range(len(STATUS_TEXTS))
        counts = [np.count_nonzero(self._status == code) for code in codes]
        return Sweep(
            {name: self._values[:, k].reshape(shape) for k, name in names},
            study.rows.samples.axes,
            (self._status == FINISHED).reshape(shape),
            _by_text(np.array(counts)),
            {**study.info(), **took},
            samples=study.rows.samples if study.rows.samples.names else None,
            status=RowTexts(self._status, STATUS_TEXTS),
            reasons=self._reasons.texts(),
        )

    def close(self) -> None:
        """Do nothing: the memory is this process's own."""


class GpuCollector(AbstractCollector):
    """Numbers of all rows on the first GPU of the study."""

    on_gpu = True

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        count, (first, *_) = study.rows.count, gpus_of(study.job.settings.place)
        self._rows = GpuRows(count, len(study.job.outputs), first)
        self._reasons = _Reasons(count)

    def finished(self) -> set[int]:
        """Return none: the sweep begins here."""
        return set()

    def add(self, number: int, part: ChunkResult) -> None:
        """Keep the numbers of a chunk."""
        self._rows.add(part.first, part.values, part.status, part.counts)
        self._reasons.add(slice(part.first, part.first + len(part.status)), part.reasons)

    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Name the numbers, which stay there."""
        self._rows.finish()
        study, shape, made = self.study, self.study.rows.shape, self._rows
        status = DeviceTexts(made.status.reshape(shape), STATUS_TEXTS, _by_text(made.counts))
        names = enumerate(study.job.outputs)
        return Sweep(
            {name: made.values[k].reshape(shape) for k, name in names},
            study.rows.samples.axes,
            None,
            status.counts(),
            {**study.info(), **took},
            samples=study.rows.samples if study.rows.samples.names else None,
            status=status,
            reasons=self._reasons.texts(),
        )

    def close(self) -> None:
        """Do nothing: the memory is this process's own."""


def _by_text(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    """How often each occurring status does."""
    words = {code: text for code, text in STATUS_WORDS.items() if code != RUNNING}
    return {text: int(counts[code]) for code, text in words.items() if counts[code]}


class _Reasons:
    """Why runs failed, of all rows."""

    def __init__(self, rows: int) -> None:
        self._rows, self._known = rows, dict[str, int]()
        self._codes = np.empty(0, dtype=np.int32)

    def add(self, rows: slice, texts: RowTexts) -> None:
        """Keep those of some rows."""
        if not texts:
            return
        if not self._codes.size:
            self._codes = np.full(self._rows, NO_TEXT, dtype=np.int32)
        known = self._known
        places = [known.setdefault(text, len(known)) for text in texts.texts]
        self._codes[rows] = np.array([*places, NO_TEXT], dtype=np.int32)[texts.codes]

    def texts(self) -> RowTexts | None:
        """Return them by row; None if there are none."""
        return RowTexts(self._codes, tuple(self._known)) if self._known else None


class StoreCollector(AbstractCollector):
    """Collect the numbers of all rows in a folder; existing chunks are not recomputed."""

    def __init__(self, study: Study, folder: str | PathLike[str]) -> None:
        super().__init__(study)
        self._store = SweepStore.create_or_resume(folder, study.manifest())

    def finished(self) -> set[int]:
        """Numbers of the chunks that are in the store."""
        return self._store.finished()

    def add(self, number: int, part: ChunkResult) -> None:
        """Write a chunk, unless Ctrl-C left it incomplete."""
        if np.isin(part.status, (RUNNING, LEFT)).any():
            return
        swept: dict[str, Any] = self.study.rows.samples.rows(*self.study.span(number))
        outputs = {name: part.values[:, k] for k, name in enumerate(self.study.job.outputs)}
        status = RowTexts.from_codes(part.status, STATUS_WORDS)
        self._store.write(number, swept, outputs, status, part.reasons)

    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Open the store; columns are read when they are asked for."""
        made = Sweep.load(self._store.folder)
        made.info.update(took)
        return made

    def close(self) -> None:
        """Let other processes write to the folder."""
        self._store.close()
