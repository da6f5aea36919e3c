"""Checks of what a trajectory is made of, and texts about how runs ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.model.signals import KINDS
from axode.numerics.tolerances import SAME_TIME

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory


Array = npt.NDArray[np.float64]

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
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidArgument(f"two columns have the name '{twice[0]}'")
    if len(trajectory.units) != len(names):
        raise InvalidArgument(f"{len(trajectory.units)} units for {counted(len(names), 'column')}")


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
    names = tuple(names)
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
