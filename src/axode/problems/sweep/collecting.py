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
from axode.problems.sweep.study import Study
from axode.results.row_texts import NO_TEXT, RowTexts
from axode.results.sweep_result import Sweep
from axode.results.sweep_store import SweepStore

Array = npt.NDArray[np.float64]


class AbstractCollector(ABC):
    """Takes chunks in any order and makes the result of them."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def finished(self) -> set[int]:
        """Numbers of the chunks that are there already."""

    @abstractmethod
    def add(self, number: int, part: ChunkResult) -> None:
        """Keep the numbers of a chunk."""

    @abstractmethod
    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Return the numbers of all rows; `took` describes the computation."""

    @abstractmethod
    def close(self) -> None:
        """Let others write to where the numbers are."""


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
        self._reasons: dict[str, int] = {}
        self._reason_codes = np.empty(0, dtype=np.int32)

    def finished(self) -> set[int]:
        """Return none: the sweep begins here."""
        return set()

    def add(self, number: int, part: ChunkResult) -> None:
        """Keep the numbers of a chunk."""
        rows = slice(part.first, part.first + len(part.status))
        self._values[rows], self._status[rows] = part.values, part.status
        if part.reasons:
            self._add_reasons(rows, part.reasons)

    def _add_reasons(self, rows: slice, texts: RowTexts) -> None:
        if not self._reason_codes.size:
            self._reason_codes = np.full(self.study.rows.count, NO_TEXT, dtype=np.int32)
        known = self._reasons
        places = [known.setdefault(text, len(known)) for text in texts.texts]
        self._reason_codes[rows] = np.array([*places, NO_TEXT], dtype=np.int32)[texts.codes]

    def result(self, took: Mapping[str, Any]) -> Sweep:
        """Name the numbers."""
        study, shape = self.study, self.study.rows.shape
        self._status[self._status == RUNNING] = LEFT
        self._values[np.flatnonzero(self._status == LEFT)] = np.nan  # those not computed as well
        words = {code: text for code, text in STATUS_WORDS.items() if code != RUNNING}
        counts = {text: int((self._status == code).sum()) for code, text in words.items()}
        texts = tuple(words.get(code, "") for code in range(max(words) + 1))  # a word per code
        reasons = RowTexts(self._reason_codes, tuple(self._reasons)) if self._reasons else None
        names = enumerate(study.job.outputs)
        arrays = {name: self._values[:, k].reshape(shape) for k, name in names}
        return Sweep(
            arrays,
            study.rows.samples.axes,
            (self._status == FINISHED).reshape(shape),
            {text: n for text, n in counts.items() if n},
            {**study.info(), **took},
            samples=study.rows.samples if study.rows.samples.names else None,
            status=RowTexts(self._status, texts),
            reasons=reasons,
        )

    def close(self) -> None:
        """Do nothing: the memory is this process's own."""


class StoreCollector(AbstractCollector):
    """Numbers of all rows in a folder; chunks that are there are not computed again."""

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
