"""Fewer points for the same picture: what is left out lies between points that are kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def keep_extremes(signals: npt.ArrayLike, buckets: int) -> npt.NDArray[np.intp]:
    """Samples that a picture needs, in their order.

    The samples are cut into buckets, each narrower than a pixel; of each bucket are kept the least
    and the largest sample of every signal, and a NaN if there is one, so that gaps stay. The first
    and the last sample are always among them.

    Args:
        signals: One signal, shape (T,), or several that are drawn together, shape (signals, T).
        buckets: How many there are at most.
    """
    rows = np.atleast_2d(np.asarray(signals, dtype=np.float64))
    samples = rows.shape[-1]
    width = -(-samples // max(buckets, 1))
    if width <= 4:  # nothing to gain
        return np.arange(samples)
    whole = -(-samples // width)
    padded = np.full((len(rows), whole * width), np.nan)
    padded[:, :samples] = rows
    cut = padded.reshape(len(rows), whole, width)
    gap = np.isnan(cut)
    chosen = [
        np.where(gap, np.inf, cut).argmin(axis=-1),
        np.where(gap, -np.inf, cut).argmax(axis=-1),
        gap.argmax(axis=-1),  # the first NaN; without one the first sample
    ]
    starts = width * np.arange(whole)
    found = np.unique(np.concatenate([(starts + one).ravel() for one in chosen]))
    return np.unique(np.concatenate([[0], found[found < samples], [samples - 1]]))
