"""Runs with an error in the balance of energy: their status, and the error as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

INACCURATE_TEXT = "inaccurate"
_OFF, _OF = "energy off by ", " of the largest"


def describe_inaccuracy(errors: npt.ArrayLike) -> npt.NDArray[np.object_]:
    """Describe errors relative to the largest energy of a run, with one digit: few texts differ."""
    texts: npt.NDArray[np.object_] = np.char.mod(f"{_OFF}%.0e{_OF}", errors).astype(object)
    return texts


def largest_inaccuracy(reasons: Iterable[str]) -> float:
    """Return the largest error among texts of `describe_inaccuracy` and others; zero if none is."""
    errors = (r.partition(_OFF)[2].removesuffix(_OF) for r in reasons if _OFF in r)
    return max(map(float, errors), default=0.0)


def describe_endings(statuses: Mapping[str, int], reasons: Iterable[str]) -> str:
    """Describe how often runs ended in each way, and the largest error of those inaccurate."""
    made = [f"{runs} {words}" for words, runs in statuses.items()]
    if INACCURATE_TEXT in statuses:
        worst = describe_inaccuracy(largest_inaccuracy(reasons))
        made = [f"{m} ({worst} at most)" if m.endswith(INACCURATE_TEXT) else m for m in made]
    return ", ".join(made)
