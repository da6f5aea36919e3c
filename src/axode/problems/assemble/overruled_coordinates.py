"""Coordinates asked for and not kept: a measure, a coupling or the ground rules them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from axode.numerics.rank import least_norm
from axode.numerics.tolerances import NOTICEABLE
from axode.problems.assemble.start_warnings import warn_of_start

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
EXPLAINED = 1000  # runs among which one to warn of is looked for
TOUCH, COUPLING = ".touch", ".coupling"


def warn_of_overruled(
    asked: Mapping[int, str],
    values: tuple[Array, Array, Array],
    names: tuple[str, ...],
    wanted: Mapping[str, Array],
    system: Callable[[Indices], tuple[Array, Array]],
) -> None:
    """Warn of coordinates that left the values they were given, in the first run that has some.

    Loops move what is not fixed, and a guess for them is no more than that: no warning.

    Args:
        asked: Names that the user gave, by the coordinate's place.
        values: Coordinates as asked for, with unit quaternions, and closed: (runs, size) each.
        names: Names of all rows that had to vanish.
        wanted: Measures among them, (runs,) each.
        system: Those rows and their derivative where the search began, of some runs.
    """
    places = list(asked)
    rules = np.array([row in wanted or row.endswith((TOUCH, COUPLING)) for row in names])
    if not rules.any():
        return
    given, begun, found = (array[:, places] for array in values)
    moved = np.abs(found - begun) > NOTICEABLE * np.maximum(1.0, np.abs(given))
    runs = np.flatnonzero(moved.any(axis=1))[:EXPLAINED]
    if not runs.size:
        return
    rows, derivative = system(runs)
    # the step of least norm is a sum over the rows: the largest term is the cause
    shares = least_norm(derivative @ np.swapaxes(derivative, 1, 2), rows)
    terms = np.abs(derivative[:, :, places] * shares[..., np.newaxis])
    causes = terms.argmax(axis=1)
    overruled = moved[runs] & rules[causes]
    if not overruled.any():
        return
    first = int(overruled.any(axis=1).argmax())
    run = int(runs[first])
    listed = [
        f"{asked[place]} = {given[run, k]:.4g} was asked for, {found[run, k]:.4g} is "
        f"{_cause(names[causes[first, k]], wanted, run)}"
        for k, place in enumerate(places)
        if overruled[first, k]
    ]
    warn_of_start("; ".join(listed))


def _cause(row: str, wanted: Mapping[str, Array], run: int) -> str:
    if row in wanted:
        return f"what {row} = {wanted[row][run]:.4g} needs: leave one of them out"
    if row.endswith(COUPLING):
        name = row.removesuffix(COUPLING)
        return f"what the coupling '{name}' allows near home: leave one of them out"
    return f"where {row.removesuffix(TOUCH)} touches the ground"
