"""Columns of a sweep by name: held in memory, drawn again, or read from a store when asked for.

All have one interface: a mapping to arrays of the shape of the batch, pieces of a column in the
order of the rows, and the numbers of some rows. Texts that many rows share are kept once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.names import Names

if TYPE_CHECKING:
    from axode.results.sweep_store import SweepStore


NO_TEXT = -1


@dataclass(frozen=True, eq=False)
class RowTexts(Mapping[int, str]):
    """Texts by row number; as a mapping, it has the rows that have a text.

    Attributes:
        codes: By row, which of the texts; -1 for none.
        texts: The texts, each once.
    """

    codes: npt.NDArray[Any]
    texts: tuple[str, ...]

    @classmethod
    def from_codes(cls, codes: npt.NDArray[Any], words: Mapping[int, str]) -> RowTexts:
        """Texts of the codes of all rows; codes may share a word, and those without one have none.

        Args:
            codes: By row, small and not negative.
            words: Texts by code.
        """
        texts = tuple(dict.fromkeys(words.values()))
        places = np.full(max(words, default=0) + 1, NO_TEXT, dtype=np.int32)
        for code, word in words.items():
            places[code] = texts.index(word)
        flat = np.asarray(codes).reshape(-1)
        if flat.size and (flat == flat[0]).all():  # the usual case
            return cls(np.full(flat.size, places[int(flat[0])]), texts)
        return cls(places[flat.astype(np.intp)], texts)

    @classmethod
    def from_rows(cls, count: int, found: Mapping[int, str]) -> RowTexts:
        """Texts of some rows by number.

        Args:
            count: How many rows there are.
            found: Texts by row.
        """
        if isinstance(found, RowTexts):
            return found
        codes = np.full(count, NO_TEXT, dtype=np.int32)
        texts = {text: k for k, text in enumerate(dict.fromkeys(found.values()))}
        if found:
            codes[list(found)] = [texts[text] for text in found.values()]
        return cls(codes, tuple(texts))

    @classmethod
    def join(cls, parts: Sequence[RowTexts]) -> RowTexts:
        """Texts of rows that follow one another."""
        texts = {t: k for k, t in enumerate(dict.fromkeys(t for part in parts for t in part.texts))}
        codes = [
            np.array([*map(texts.__getitem__, part.texts), NO_TEXT], dtype=np.int32)[part.codes]
            for part in parts
        ]
        return cls(np.concatenate(codes) if codes else np.empty(0, np.int32), tuple(texts))

    def replaced(self, others: RowTexts) -> RowTexts:
        """Texts, with those of others where they have one."""
        codes = np.where(others.codes >= 0, others.codes + len(self.texts), self.codes)
        return RowTexts(codes, (*self.texts, *others.texts))

    def compact(self) -> RowTexts:
        """Return the same without texts that no row has, each text once."""
        used = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts)) > 0
        texts = {t: k for k, t in enumerate(dict.fromkeys(np.array(self.texts, object)[used]))}
        places = [texts.get(text, NO_TEXT) for text in self.texts]
        return RowTexts(np.array([*places, NO_TEXT], dtype=np.int32)[self.codes], tuple(texts))

    def take(self, rows: npt.NDArray[np.intp]) -> RowTexts:
        """Texts of some rows, renumbered."""
        return RowTexts(self.codes[rows], self.texts)

    def equal(self, text: str) -> npt.NDArray[np.bool_]:
        """Which rows have this text."""
        if text not in self.texts:
            return np.zeros(len(self.codes), dtype=bool)
        return np.asarray(self.codes == self.texts.index(text))

    def counts(self) -> dict[str, int]:
        """How often each text occurs, without those that do not."""
        found, left = {}, len(self.codes)
        for place, text in enumerate(self.texts):
            if left and (times := int(np.count_nonzero(self.codes == place))):
                found[text] = times
                left -= times
        return found

    def __getitem__(self, row: int) -> str:
        code = self.codes[row] if -len(self.codes) <= row < len(self.codes) else NO_TEXT
        if code == NO_TEXT:
            raise KeyError(row)
        return self.texts[code]

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.codes != NO_TEXT).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.codes != NO_TEXT))


Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
PIECE = 1 << 20  # rows that are drawn at a time
NOT_COMPUTED = "not computed"
SWEPT = "swept value"
NO_GROUPS: Mapping[str, str] = {}


class SweptRows(Protocol):
    """What can compute swept values of any rows: see `problems.sweep.samples`."""

    @property
    def groups(self) -> Mapping[str, Any]:
        """What each value belongs to: "start", "parameter", "gain" or "input"."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values."""

    @property
    def count(self) -> int:
        """How many rows there are."""

    def rows(self, first: int, last: int, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Values of the rows `first` ... `last - 1` by name."""


class AbstractColumns(Mapping[str, Any]):
    """Columns of a sweep by name, which may be short."""

    kind = "output"  # what the columns are, for error messages
    groups: Mapping[str, str] = (
        NO_GROUPS  # whether swept values are of the start, parameters or inputs
    )

    def __getitem__(self, name: str) -> Any:
        return self.whole(Names("the sweep", self.kind, self.names).resolve(name))

    @abstractmethod
    def whole(self, name: str) -> Any:
        """Return a column in the shape of the batch."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    @abstractmethod
    def pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """First rows and numbers of parts of a column, in order; rows without any are left out."""

    @abstractmethod
    def take(self, name: str, rows: Numbers) -> Array:
        """Numbers of some rows."""

    def extremes(self, name: str) -> tuple[float, float] | None:
        """Smallest and largest finite number; None if there is none."""
        low, high = np.inf, -np.inf
        for _, piece in self.pieces(name):
            known = piece[np.isfinite(piece)]
            low, high = min(low, known.min(initial=np.inf)), max(high, known.max(initial=-np.inf))
        return (float(low), float(high)) if low <= high else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class MemoryColumns(AbstractColumns):
    """Arrays in memory, or on a device: they are copied from there only when numbers are needed.

    Args:
        arrays: By name, each of the shape of the batch.
        kind: What they are, for error messages.
        groups: Whether swept values are of the start, the parameters or the inputs, by name.
    """

    def __init__(
        self, arrays: Mapping[str, Any], kind: str = "output", groups: Mapping[str, str] = NO_GROUPS
    ) -> None:
        self._arrays, self.kind, self.groups = dict(arrays), kind, groups

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._arrays)

    def whole(self, name: str) -> Any:
        """Return a column as it was given."""
        return self._arrays[name]

    def pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """Yield the column as a whole."""
        yield 0, as_host(self._arrays[name]).reshape(-1)

    def take(self, name: str, rows: Numbers) -> Array:
        """Numbers of some rows."""
        return np.asarray(as_host(self._arrays[name]).reshape(-1)[rows])


class DrawnColumns(AbstractColumns):
    """Swept values, which are computed from the numbers of the rows.

    Args:
        samples: What computes them.
    """

    kind = SWEPT

    def __init__(self, samples: SweptRows) -> None:
        self.samples, self.groups = samples, samples.groups

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.samples.names)

    def whole(self, name: str) -> Array:
        """Compute a column."""
        values = self.samples.rows(0, self.samples.count, [name])[name]
        return values.reshape(self.samples.shape)

    def pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """Yield the column in parts of `PIECE` rows."""
        for first in range(0, self.samples.count, PIECE):
            last = min(first + PIECE, self.samples.count)
            yield first, self.samples.rows(first, last, [name])[name]

    def take(self, name: str, rows: Numbers) -> Array:
        """Numbers of some rows."""
        found = np.empty(len(rows))
        for number in np.unique(rows // PIECE):
            inside = rows // PIECE == number
            first, last = int(rows[inside].min()), int(rows[inside].max()) + 1
            found[inside] = self.samples.rows(first, last, [name])[name][rows[inside] - first]
        return found


class DatasetColumns(AbstractColumns):
    """Columns of a store; every access reads the files again, one column at a time.

    Args:
        store: The store.
        columns: Columns of the files by name.
        kind: What they are, for error messages.
    """

    def __init__(self, store: SweepStore, columns: Mapping[str, str], kind: str = "output") -> None:
        self._store, self._columns, self.kind = store, dict(columns), kind
        self.groups = store.manifest.swept

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    def whole(self, name: str) -> Array:
        """Read a column; NaN where chunks are not finished."""
        self._store.require_rows()
        found = np.full(self._store.manifest.rows, np.nan)
        for first, piece in self.pieces(name):
            found[first : first + len(piece)] = piece
        return found.reshape(self._store.manifest.shape)

    def pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """Yield the column chunk by chunk."""
        for chunk, table in self._store.read([self._columns[name]]):
            yield self._store.manifest.span(chunk)[0], table.column(0).to_numpy()

    def take(self, name: str, rows: Numbers) -> Array:
        """Numbers of some rows; NaN where their chunks are not finished."""
        found = np.full(len(rows), np.nan)
        chunks = rows // self._store.manifest.chunk
        wanted = sorted(self._store.finished() & set(chunks.tolist()))
        for chunk, table in self._store.read([self._columns[name]], wanted):
            inside, first = chunks == chunk, self._store.manifest.span(chunk)[0]
            found[inside] = table.column(0).to_numpy()[rows[inside] - first]
        return found

    def extremes(self, name: str) -> tuple[float, float] | None:
        """Smallest and largest number, from what the files declare."""
        found = self._store.extremes(self._columns[name])
        if found is None or not np.isfinite(found).all():
            return None if found is None else super().extremes(name)
        return found[0] + 0.0, found[1] + 0.0  # files declare -0.0 for a smallest 0.0


class DatasetTexts:
    """A column of texts of a store.

    Args:
        store: The store.
        column: Its column.
        missing: Text of rows whose chunks are not finished; none if empty.
    """

    def __init__(self, store: SweepStore, column: str, missing: str = "") -> None:
        self._store, self._column, self._missing = store, column, missing

    def whole(self) -> RowTexts:
        """Texts of all rows."""
        self._store.require_rows()
        parts, end = [], 0
        for chunk in sorted(self._store.finished()):
            first, last = self._store.manifest.span(chunk)
            parts += [self._nothing(first - end), self._read(chunk)]
            end = last
        parts.append(self._nothing(self._store.manifest.rows - end))
        return RowTexts.join([part for part in parts if len(part.codes)])

    def counts(self) -> dict[str, int]:
        """How often each text occurs."""
        found: Counter[str] = Counter()
        for chunk in sorted(self._store.finished()):
            found.update(self._read(chunk).counts())
        missing = self._store.manifest.rows - self._store.finished_rows()
        if missing and self._missing:
            found[self._missing] = missing
        return dict(found)

    def take(self, rows: Numbers) -> RowTexts:
        """Texts of some rows, renumbered."""
        chunks = rows // self._store.manifest.chunk
        order = np.argsort(chunks, kind="stable")
        parts = [
            self._read(chunk).take(rows[chunks == chunk] - self._store.manifest.span(chunk)[0])
            for chunk in np.unique(chunks).tolist()
        ]
        return RowTexts.join(parts).take(np.argsort(order))

    def _read(self, chunk: int) -> RowTexts:
        if chunk not in self._store:
            first, last = self._store.manifest.span(chunk)
            return self._nothing(last - first)
        ((_, table),) = self._store.read([self._column], [chunk])
        array = table.column(0).combine_chunks()
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return RowTexts(codes.astype(np.int32), tuple(array.dictionary.to_pylist()))

    def _nothing(self, rows: int) -> RowTexts:
        """Texts of rows that are not finished."""
        texts = (self._missing,) if self._missing else ()
        return RowTexts(np.full(rows, len(texts) - 1, dtype=np.int32), texts)


class DeviceTexts:
    """A few texts that rows on a device share; they are copied from there when asked for.

    Args:
        codes: By row, which of the texts, of the shape of the batch.
        texts: The texts.
        counts: How often each occurs.
    """

    def __init__(self, codes: Any, texts: tuple[str, ...], counts: Mapping[str, int]) -> None:
        self._codes, self._texts, self._counts = codes, texts, dict(counts)
        self.shape = tuple(codes.shape)

    def whole(self) -> RowTexts:
        """Texts of all rows."""
        return RowTexts(as_host(self._codes).reshape(-1), self._texts)

    def counts(self) -> dict[str, int]:
        """How often each text occurs."""
        return self._counts

    def take(self, rows: Numbers) -> RowTexts:
        """Texts of some rows, renumbered."""
        return self.whole().take(rows)


def as_host(array: Any) -> npt.NDArray[Any]:
    """Array of NumPy with the numbers of any array, on whatever device it is."""
    if hasattr(array, "__cuda_array_interface__") and hasattr(array, "get"):
        array = array.get()  # CuPy
    elif hasattr(array, "detach"):
        array = array.detach().cpu()  # PyTorch
    return np.asarray(array)
