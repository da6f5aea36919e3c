"""Columns of a trajectory, each computed when it is first asked for, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model


Array = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.intp]  # samples of all runs alike, or (runs, samples) of each


class TrajectoryColumns:
    """Columns by name, computed when they are first asked for and then kept.

    Args:
        shape: Shape of a column, (*batch, T).
        compute: Makes a column from its name; a subclass may have `_make` instead.
        resume: Finds columns at other times, where the motion between the samples is known.
    """

    def __init__(
        self,
        shape: Sequence[int],
        compute: Callable[[str], Array] | None = None,
        resume: Callable[[Array], TrajectoryColumns | None] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self._compute, self._resume = compute, resume
        self._kept: dict[str, Array] = {}

    def get(self, name: str) -> Array:
        """Column of a name, (*batch, T), read-only."""
        column = self._kept.get(name)
        if column is None:
            column = self._kept[name] = read_only(self._make(name))
        return column

    def _make(self, name: str) -> Array:
        assert self._compute is not None
        return self._compute(name)

    def stack(self, names: Sequence[str]) -> Array:
        """Several columns in one array, (*batch, T, columns); none is kept."""
        values = np.empty((*self.shape, len(names)))
        for k, name in enumerate(names):
            kept = self._kept.get(name)
            values[..., k] = self._make(name) if kept is None else kept
        return values

    def at_times(
        self, time: Array, lengths: npt.NDArray[np.intp], times: Array
    ) -> TrajectoryColumns | None:
        """Find columns at other times, as exact as the samples; None where nothing knows them.

        Args:
            time: Times of the samples [s], (T,).
            lengths: How many samples each run has.
            times: Times asked for, between the first and the last and in their direction.
        """
        return None if self._resume is None else self._resume(times)

    def part(self, runs: slice, rows: Rows, shape: Sequence[int]) -> TrajectoryColumns:
        """Columns of some samples.

        Args:
            runs: Runs, counted through all axes of the batch.
            rows: Their samples.
            shape: Shape of the columns then.
        """

        def compute(name: str) -> Array:
            column = self.get(name)
            return pick(column.reshape(-1, column.shape[-1]), runs, rows).reshape(shape)

        return TrajectoryColumns(shape, compute)


class ArrayColumns(TrajectoryColumns):
    """Columns of one array, (*batch, T, columns), and those that it was stacked from."""

    def __init__(
        self, values: Array, names: Sequence[str], made: TrajectoryColumns | None = None
    ) -> None:
        super().__init__(values.shape[:-1])
        self._values, self._made = values, made
        self._places = {name: k for k, name in enumerate(names)}

    def _make(self, name: str) -> Array:
        return self._values[..., self._places[name]]

    def stack(self, names: Sequence[str]) -> Array:
        if tuple(names) == tuple(self._places):
            return self._values
        return self._values[..., [self._places[name] for name in names]]

    def part(self, runs: slice, rows: Rows, shape: Sequence[int]) -> TrajectoryColumns:
        samples, width = self._values.shape[-2:]
        flat = self._values.reshape(math.prod(self.shape[:-1]), samples, width)
        made = None if self._made is None else self._made.part(runs, rows, shape)
        return ArrayColumns(pick(flat, runs, rows).reshape(*shape, width), [*self._places], made)

    def at_times(
        self, time: Array, lengths: npt.NDArray[np.intp], times: Array
    ) -> TrajectoryColumns | None:
        return None if self._made is None else self._made.at_times(time, lengths, times)


def pick(values: Array, runs: slice, rows: Rows) -> Array:
    """Select samples of an array whose first axes are runs and samples."""
    if isinstance(rows, slice):
        return values[runs, rows]
    chosen = values[runs]
    return np.take_along_axis(chosen, rows.reshape(*rows.shape, *[1] * (values.ndim - 2)), axis=1)


def read_only(values: npt.ArrayLike) -> Array:
    """View of an array that cannot be written to."""
    view = np.asarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


class LazyValue:
    """Value of a deferred field that is made when the field is first read.

    Args:
        make: Makes it, from the object that has the field.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make


class _Deferred:
    """Field of a frozen dataclass that may be given as `LazyValue`."""

    def __init__(self, *default: Any) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            if not self._default:
                raise AttributeError(self._name)  # dataclass: no default
            return self._default[0]
        value = instance.__dict__[self._name]
        if isinstance(value, LazyValue):
            value = instance.__dict__[self._name] = value.make(instance)
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value


def deferred(*default: Any) -> Any:
    """Declare a field of a frozen dataclass that may be given as `LazyValue`.

    Args:
        default: Value unless given; without one the field is required.
    """
    return _Deferred(*default)


# origin -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Origin:
    """The model that made a trajectory.

    Attributes:
        model: The model.
        p: Its free parameters, (size,) or (runs, size) where runs differ; None if it has none.
    """

    model: Model
    p: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(cls, model: Model, parameters: Any = None) -> Origin:
        """Origin from a model and values of its parameters by name, defaults elsewhere."""
        if not model.parameters or facts_of(model).fixed:
            return cls(model)
        p = model.parameter_vector(parameters)
        return cls(model, p.reshape(-1, p.shape[-1]) if p.ndim > 1 else p)

    def run(self, index: int) -> Origin:
        """Origin of one run, counted through all axes of the batch."""
        return self if self.p is None or self.p.ndim == 1 else replace(self, p=self.p[index])

    @property
    def parameters(self) -> dict[str, float] | None:
        """Parameters by name, where all runs share them."""
        if self.p is None or self.p.ndim > 1:
            return None
        return dict(zip(self.model.parameters, self.p.tolist(), strict=True))
