"""Columns of a trajectory, each computed when it is first asked for, and where they come from.

What a trajectory is made of is checked, and how runs ended is put into words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.model.model_parts import facts_of
from axode.model.signals import KINDS
from axode.names import NamedValues
from axode.numerics.tolerances import SAME_TIME

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


Array = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.intp]  # samples of all runs alike, or (runs, samples) of each


class ContactModes(dict[str, list[tuple[float, str]]]):
    """Modes of contacts by name; another name raises an error that names what the run has."""

    def __init__(self, found: Mapping[str, Any], owner: str, columns: Sequence[str]) -> None:
        super().__init__({name: [(t, word) for t, word in spans] for name, spans in found.items()})
        self._owner, self._columns = owner, columns

    def __missing__(self, name: str) -> list[tuple[float, str]]:
        own = [n for n in self._columns if n.startswith(f"{name}.") and n.endswith("_slip")]
        if self or not own:
            raise UnknownName(self._owner, "contact with modes", name, self)
        raise InvalidArgument(
            f"{self._owner} was integrated in steps, which have no modes: '{name}' touches where "
            f"'{name}.normal' is above zero, and slips where {' or '.join(map(repr, own))} is not "
            'zero.\n  Modes come with runs from event to event: contacts="events"'
        )


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

    def evaluate(self, function: str) -> Array | None:
        """Function of the model that made the states, (*batch, T, size); None if unknown."""
        return None

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

    def evaluate(self, function: str) -> Array | None:
        return None if self._made is None else self._made.evaluate(function)

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


WHEN = re.compile(r" at t = \S+ s\b")  # in the status of a run that failed


def check_shapes(trajectory: Trajectory, shape: tuple[int, ...]) -> None:
    """Require times, values of a shape, names and units that fit each other."""
    time, names = trajectory.time, trajectory.names
    if time.ndim != 1 or not len(time):
        raise InvalidArgument(f"time: one or more samples are needed, not shape {time.shape}")
    steps = np.diff(time)
    if not np.isfinite(time).all() or not ((steps > 0).all() or (steps < 0).all()):
        raise InvalidArgument("time: it has to be finite, and to go one way from sample to sample")
    if shape[-2:] != (len(time), len(names)):
        raise InvalidArgument(
            f"values have shape {shape}; (*batch, T, columns) would end in "
            f"({len(time)}, {len(names)})"
        )
    if 0 in shape[:-2]:
        raise InvalidArgument(f"values have shape {shape}: a batch of no runs")
    twice = _find_repeated(names)
    if twice is not None:
        raise InvalidArgument(f"two columns have the name '{twice}'")
    if len(trajectory.units) != len(names):
        raise InvalidArgument(f"{len(trajectory.units)} units for {counted(len(names), 'column')}")


@lru_cache(64)  # runs of one model have the same columns
def _find_repeated(names: tuple[str, ...]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)


def check_kinds(trajectory: Trajectory) -> None:
    """Require a known kind for every column."""
    for name in trajectory.names:
        if name not in trajectory.kinds:
            raise InvalidArgument(f"kinds: '{name}' has none; one of {', '.join(KINDS)}")
        if trajectory.kinds[name] not in KINDS:
            raise UnknownName("a trajectory", "column kind", trajectory.kinds[name], KINDS)


def find_lengths(trajectory: Trajectory) -> npt.NDArray[np.intp]:
    """Number of samples of each run, as given or up to the NaN of its coordinates."""
    batch, samples = trajectory.batch, len(trajectory.time)
    kinds = [trajectory.kinds[name] for name in trajectory.names]
    if trajectory.lengths is not None:
        lengths = np.array(trajectory.lengths, dtype=np.intp)
        if lengths.shape != batch or (lengths < 0).any() or (lengths > samples).any():
            raise InvalidArgument(f"lengths: 0 to {samples} for each run, in shape {batch}")
    elif not kinds or not np.isnan((values := trajectory.values)[..., -1, :]).any():
        lengths = np.full(batch, samples, dtype=np.intp)
    else:
        telling = np.array([kind == "coordinate" for kind in kinds])  # a force may be unknown
        there = ~np.isnan(values[..., telling] if telling.any() else values).all(axis=-1)
        from_end = there[..., ::-1].argmax(axis=-1)
        lengths = np.where(there.any(axis=-1), samples - from_end, 0).astype(np.intp)
    lengths.flags.writeable = False
    return lengths


def find_quaternions(trajectory: Trajectory) -> tuple[tuple[str, ...], ...]:
    """Groups of four columns, as given or by their endings."""
    names = trajectory.names
    if trajectory.quaternions is None:
        return group_quaternions(names)
    groups = [tuple(group) for group in trajectory.quaternions]
    for group in groups:
        for name in group:
            if name not in names:
                raise UnknownName("a quaternion", "column", name, names)
        if len(group) != 4:
            raise InvalidArgument(f"quaternions: {len(group)} columns are no quaternion: {group}")
    return tuple(groups)


def group_quaternions(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of four names that differ in .qw .qx .qy .qz alone."""
    return _quaternions_among(tuple(names))


@lru_cache(64)
def _quaternions_among(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    stems = [name.removesuffix(".qw") for name in names if name.endswith(".qw")]
    groups = [tuple(f"{stem}.q{part}" for part in "wxyz") for stem in stems]
    return tuple(group for group in groups if set(group) <= set(names))


def find_statuses(trajectory: Trajectory) -> tuple[str, ...]:
    """Status of each run, as given or that of the whole."""
    runs = trajectory.count
    statuses = tuple(map(str, trajectory.statuses)) or (trajectory.status or "finished",) * runs
    if len(statuses) != runs:
        raise InvalidArgument(f"{len(statuses)} statuses for {counted(runs, 'run')}")
    return statuses


def time_rounding(time: Array) -> float:
    """Difference below which two times of a trajectory are the same [s]."""
    return float(SAME_TIME * max(abs(time[0]), abs(time[-1])))


def time_range(time: Array) -> str:
    """Range of times, for error messages."""
    return f"its time goes from {time[0]:g} s to {time[-1]:g} s"


def number(value: Array) -> Any:
    """Float for one run, array for a batch."""
    return float(value) if np.ndim(value) == 0 else value


def summary(statuses: Sequence[str]) -> str:
    """Status that all runs share, or how many have which; times that differ are left out."""
    timeless = list(map(partial(WHEN.sub, ""), statuses))
    first = dict(zip(reversed(timeless), reversed(statuses), strict=True))
    differ = Counter(map(itemgetter(0), set(zip(timeless, statuses, strict=True))))
    counts = Counter(timeless)
    shared = {first[what] if differ[what] == 1 else what: n for what, n in counts.items()}
    if len(shared) == 1:
        return next(iter(shared))
    return ", ".join(f"{runs} {status}" for status, runs in Counter(shared).most_common())


def plain(key: str, value: Any) -> Any:
    """Value in the types of JSON."""
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(f"{key}.{k}", v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(key, v) for v in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InvalidArgument(f"info: '{key}' is {type(value).__name__}, not of JSON's own types")


def run_number(index: int | tuple[int, ...], batch: tuple[int, ...], runs: int) -> int:
    """Number of a run of a batch, from its own number or from its place in the batch."""
    shape = batch if isinstance(index, tuple) else (runs,)
    asked = index if isinstance(index, tuple) else (index,)
    fits = len(asked) == len(shape) and all(
        isinstance(i, Integral) and -n <= i < n for i, n in zip(asked, shape, strict=True)
    )
    if not fits:
        raise InvalidArgument(
            f"there is no run {shortened(index)}: the batch has shape {batch}, "
            f"{counted(runs, 'run')} counted from 0"
        )
    inside = [i % n for i, n in zip(asked, shape, strict=True)]
    return int(np.ravel_multi_index(inside, shape)) if inside else 0


# errors in the balance of energy ------------------------------------------------------------------


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


# events -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A zero crossing to locate during a simulation, or one that was located.

    `simulate(events=[Event("fallen", lambda s: s["pitch"] - 1.0)])` takes what to look for;
    `run.events` holds an `Event` of the same name for every crossing, with its time and state.

    Crossings are looked for inside every step, at five nodes and the extremes between them; a
    function that is zero at the start crosses only later. One that never changes its sign, such as
    a comparison or a square, is refused: give "pitch - 1" for "pitch > 1".

    Args:
        name: What the event is called.
        function: Function of the state's symbols, the name of a coordinate, speed or measure, or a
            formula such as "pitch - 1". Events that were located have none.
        stop: Whether the run ends there.
        direction: 1 for rising, -1 for falling crossings only, 0 for both.
        time: When it happened [s]; NaN for an event to look for.
        index_of_run: In which run of a batch, counted through all its axes; None if there is one.
        state: Values by name at that time; short names will do.
    """

    name: str
    function: Callable[[Any], Any] | str | None = field(default=None, compare=False, repr=False)
    stop: bool = field(default=False, compare=False, repr=False)
    direction: int = field(default=0, compare=False, repr=False)
    time: float = math.nan
    index_of_run: int | None = None
    state: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        run = None if self.index_of_run is None else int(self.index_of_run)
        object.__setattr__(self, "time", float(self.time))
        object.__setattr__(self, "index_of_run", run)
        values = {str(name): float(value) for name, value in self.state.items()}
        object.__setattr__(self, "state", NamedValues(values, time=self.time))

    def located(self, time: float, index_of_run: int | None, state: Mapping[str, float]) -> Event:
        """Event of the same name at the time it happened, without its function."""
        return Event(self.name, time=time, index_of_run=index_of_run, state=state)

    def expression(self, state: Any) -> Any:
        """Expression of its function in symbols."""
        assert self.function is not None
        value = state[self.function] if isinstance(self.function, str) else self.function(state)
        if getattr(value, "shape", ()) not in ((), (1, 1)):
            raise InvalidArgument(f"event '{self.name}': one number is needed, not {value.shape}")
        return value
