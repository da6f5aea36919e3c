"""Starts that differ from the request, or fail: warned of at once, or collected for later.

Rows that a model left out because they follow from others, at the parameters' defaults.

At other values they may hold something of their own: two wheels on one axle slide sideways
together, two wheels one behind the other do not. Such values ask for another model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, RequestNotMetWarning, level_outside
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import FIVE_DIGITS, NOTICEABLE
from axode.results.sweep_arrays import NO_TEXT, RowTexts

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn_of_start(text: str) -> None:
    """Warn of a start that differs from the request, or keep the text for `collect_warnings`."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(text, RequestNotMetWarning, stacklevel=level_outside())
    else:
        collected.append(text)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of this thread, so that a sweep of many chunks warns once."""
    found: list[str] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


# coordinates that were overruled ------------------------------------------------------------------


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


# rows that were dropped ---------------------------------------------------------------------------


NAMED = 4  # rows and parameters that a message names


def check_dropped_rows(model: Model, q: Array, conditions: Conditions) -> None:
    """Require parameters at which the rows that the model left out still follow from others.

    Args:
        model: Whose parameters they are.
        q: Closed coordinates, (size,) or (states, size).
        conditions: Time and parameters, of all states or one per state.

    Raises:
        InvalidArgument: naming the rows and the parameters that differ from their defaults.
    """
    missed = describe_missed_rows(model, q, conditions)
    if missed:
        raise InvalidArgument(missed)


def describe_missed_rows(model: Model, q: Array, conditions: Conditions) -> str | None:
    """Describe constraints that a model lacks at some parameters, and the remedy."""
    facts, p = facts_of(model), conditions.p
    if p is None or not facts.row_parameters or "dropped_rows" not in model.functions:
        return None
    names, defaults = list(model.parameters), model.parameter_vector()
    which = [names.index(name) for name in facts.row_parameters]
    q = np.atleast_2d(q)
    many = p.ndim > 1
    p = np.broadcast_to(p, (len(q), len(names)))
    differs = np.zeros(len(p), dtype=bool)
    for k in which:  # column by column: a million rows of all take longer
        differs |= p[:, k] != defaults[k]
    other = np.flatnonzero(differs)
    other = other[np.isfinite(q[other]).all(axis=1)]
    if not other.size:
        return None
    there = conditions.spread((len(q),)).at(other)
    off = model.evaluate("dropped_rows", {"q": np.ascontiguousarray(q[other])}, there.options)
    worst = np.nanmax(off, axis=1, initial=0.0)
    if worst.max() <= FIVE_DIGITS:
        return None
    run = int(np.argmax(worst))
    rows = [row for row, size in zip(facts.dropped, off[run], strict=True) if size > FIVE_DIGITS]
    values = [
        f"{names[k]} = {p[other[run], k]:.6g} instead of {defaults[k]:.6g}"
        for k in which
        if p[other[run], k] != defaults[k]
    ]
    of = f" (run {other[run]} of {len(p)})" if many else ""
    return (
        f"'{model.name}' with {_listed(values)}{of}: constraints that this model left out, because "
        f"they follow from others at the parameters' defaults, no longer do: {_listed(rows)}.\n"
        "  Build the mechanism with these values as defaults and derive it again."
    )


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more


# starts that failed -------------------------------------------------------------------------------


def _no_numbers() -> Indices:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class FailedStarts:
    """Runs of a batch that could not be assembled; texts are made when they are asked for.

    Attributes:
        runs: Their numbers, in ascending order.
        cause: Number of each one's cause among `causes`.
        size: By how much it fails, in the cause's unit.
        causes: Different causes, a few.
        units: Their units.
    """

    runs: Indices = field(default_factory=_no_numbers)
    cause: Indices = field(default_factory=_no_numbers)
    size: Array = field(default_factory=lambda: np.zeros(0))
    causes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.runs)

    def part(self, runs: Indices) -> FailedStarts:
        """Return those of some runs, in ascending order, which are numbered from zero."""
        at = np.isin(self.runs, runs)
        places = np.searchsorted(runs, self.runs[at])
        return replace(self, runs=places, cause=self.cause[at], size=self.size[at])

    def describe(self, place: int) -> str:
        """Describe why a run failed, by its place among those that did."""
        one = slice(place, place + 1)
        return str(replace(self, cause=self.cause[one], size=self.size[one]).texts()[0])

    def texts(self) -> npt.NDArray[np.object_]:
        """Descriptions of all, as objects."""
        causes = np.array([f"{cause} by " for cause in self.causes], dtype=object)
        units = np.array([f" {unit}" if unit else "" for unit in self.units], dtype=object)
        sizes = np.char.mod("%.3g", self.size).astype(object)
        return np.asarray(causes[self.cause] + sizes + units[self.cause])

    def reasons(self, count: int) -> RowTexts:
        """Causes by run, without sizes: a few texts for a number of runs."""
        used, code = np.unique(self.cause, return_inverse=True)
        codes = np.full(count, NO_TEXT, dtype=np.int32)
        codes[self.runs] = code
        return RowTexts(codes, tuple(self.causes[k] for k in used))

    def joined(self, other: FailedStarts) -> FailedStarts:
        """Failures of both, of different runs."""
        if not len(self) or not len(other):
            return self if len(self) else other
        runs = np.concatenate([self.runs, other.runs])
        order = np.argsort(runs)
        cause = np.concatenate([self.cause, other.cause + len(self.causes)])
        return FailedStarts(
            runs[order],
            cause[order],
            np.concatenate([self.size, other.size])[order],
            self.causes + other.causes,
            self.units + other.units,
        )

    def spread(self, which: Indices | None, count: int) -> FailedStarts:
        """Failures of all runs, from those of the runs that were solved.

        Args:
            which: Place of every run among those that were solved; None if all were.
            count: How many were solved.
        """
        if which is None or not len(self):
            return self
        place = np.full(count, -1)
        place[self.runs] = np.arange(len(self))
        runs = np.flatnonzero(place[which] >= 0)
        of = place[which[runs]]
        return FailedStarts(runs, self.cause[of], self.size[of], self.causes, self.units)


def open_rows(names: Sequence[str]) -> tuple[str, ...]:
    """Causes of runs whose rows stay open."""
    return tuple(f"'{name}' is open" for name in names)
