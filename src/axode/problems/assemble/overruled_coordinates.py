"""Coordinates asked for and not kept: a measure, a coupling or the ground rules them out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from axode.errors import NotAsAsked

Array = npt.NDArray[np.float64]
KEPT = 1e-3  # [m or rad] below one, relative above: a coordinate that moves less was kept
TOUCH, COUPLING = ".touch", ".coupling"


def warn_of_overruled(
    asked: Mapping[int, str],
    values: tuple[Array, Array, Array],
    names: tuple[str, ...],
    wanted: Mapping[str, float],
    system: tuple[Array, Array],
) -> bool:
    """Warn of coordinates that left the values they were given; whether there were any.

    Loops move what is not fixed, and a guess for them is no more than that: they are not told.

    Args:
        asked: Names that the user gave, by the coordinate's place.
        values: Coordinates as asked for, with unit quaternions, and as they came out.
        names: Of all rows that had to vanish.
        wanted: Measures among them.
        system: Those rows and their derivative where the search began.
    """
    given, begun, found = values
    rows, derivative = system
    moved = np.abs(found - begun) > KEPT * np.maximum(1.0, np.abs(given))
    if not any(moved[place] for place in asked):
        return False
    # the step of least norm is a sum over the rows: the largest term is whose doing it is
    shares, *_ = np.linalg.lstsq(derivative @ derivative.T, rows, rcond=None)
    told = []
    for place, name in asked.items():
        row = names[int(np.argmax(np.abs(derivative[:, place] * shares)))]
        if not moved[place] or not (row in wanted or row.endswith((TOUCH, COUPLING))):
            continue
        if row in wanted:
            why = f"what {row} = {wanted[row]:.4g} needs: leave one of them out"
        elif row.endswith(COUPLING):
            why = f"what the coupling '{row.removesuffix(COUPLING)}' allows: leave one of them out"
        else:
            why = f"where {row.removesuffix(TOUCH)} touches the ground"
        told.append(f"{name} = {given[place]:.4g} was asked for, {found[place]:.4g} is {why}")
    if told:
        warnings.warn("; ".join(told), NotAsAsked, stacklevel=4)
    return bool(told)
