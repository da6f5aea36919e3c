"""A few texts that many rows share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
