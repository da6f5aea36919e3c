"""Trajectories joined end to end, and with more columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.numerics.tolerances import SAME_TIME
from axode.results.columns import LazyValue, TrajectoryColumns, group_quaternions
from axode.results.trajectory import Trajectory

ACCUMULATED = ("supplied", "dissipated", "error")  # energies that count from the start of a run


def join(pieces: Sequence[Trajectory], *, shift: bool) -> Trajectory:
    """Join trajectories end to end; see `Trajectory.concatenate`."""
    if not pieces:
        raise InvalidArgument("concatenate: one or more trajectories are needed")
    result = pieces[0]
    for number, piece in enumerate(pieces[1:], start=2):
        try:
            result = _pair(result, piece, shift)
        except InvalidArgument as error:
            raise InvalidArgument(f"trajectory {number} cannot follow: {error}") from None
    return result


def _pair(first: Trajectory, second: Trajectory, shift: bool) -> Trajectory:
    _check_columns(first, second)
    second = second[first.names]
    if shift:
        second = _moved(second, float(first.time[-1] - second.time[0]))
    shared = _find_shared_sample(first, second)
    lengths = _check_ends(first, second, shared)
    went_on = first.lengths.reshape(-1) == len(first)
    earlier, later = (np.array(piece.statuses, dtype=object) for piece in (first, second))
    statuses = tuple(np.where(went_on, later, earlier).tolist())
    status = second.status if statuses == second.statuses else ""
    time = np.concatenate([first.time, second.time[shared:]])
    follow = dict(zip(first.names, second.names, strict=True))

    def compute(name: str) -> Any:
        both = [first[name], _counted_on(first, second, shared, name, follow[name])]
        return np.concatenate(both, axis=-1)

    def resume(times: npt.NDArray[np.float64]) -> TrajectoryColumns | None:
        return _pieces_at(first, second, shared, follow, times)

    return first.changed(
        time=time,
        values=TrajectoryColumns((*first.batch, len(time)), compute, resume),
        events=LazyValue(lambda _: (*first.events, *second.events)),
        status=status,
        statuses=statuses,
        info=_info(first.info, second.info),
        lengths=lengths,
    )


def _check_columns(first: Trajectory, second: Trajectory) -> None:
    lacking = [name for name in first.names if name not in second]
    besides = [name for name in second.names if name not in first]
    if lacking or besides:
        faults = (("it lacks", lacking), ("it alone has", besides))
        texts = (f"{verb} {', '.join(map(repr, names))}" for verb, names in faults if names)
        raise InvalidArgument("; ".join(texts))
    for name in first.names:
        if first.unit(name) != second.unit(name):
            raise InvalidArgument(
                f"'{name}' is in '{second.unit(name)}' here and in '{first.unit(name)}' before"
            )
        if first.kinds[name] != second.kinds[name]:
            raise InvalidArgument(
                f"'{name}' is of kind '{second.kinds[name]}' here and '{first.kinds[name]}' before"
            )
    if first.batch != second.batch:
        raise InvalidArgument(f"its batch is {second.batch}, and before it was {first.batch}")


def _moved(piece: Trajectory, by: float) -> Trajectory:
    events = tuple(replace(event, time=event.time + by) for event in piece.events)
    return replace(piece, time=piece.time + by, events=events)


def _find_shared_sample(first: Trajectory, second: Trajectory) -> bool:
    """Return whether one sample ends the first and starts the second; times must continue."""
    ways = {float(np.sign(piece.time[-1] - piece.time[0])) for piece in (first, second)} - {0.0}
    if len(ways) > 1:
        raise InvalidArgument("its time goes the other way")
    end, start, forward = first.time[-1], second.time[0], max(ways, default=1.0)
    shared = bool(abs(start - end) <= SAME_TIME * max(abs(end), abs(start)))
    if not shared and forward * (start - end) < 0:
        raise InvalidArgument(
            f"it starts at {start:g} s, before the end at {end:g} s.\n"
            "  Remedy: Trajectory.concatenate(..., shift=True), or .between(t0, t1) of either"
        )
    return shared


def _check_ends(first: Trajectory, second: Trajectory, shared: bool) -> Any:
    goes_on = (first.lengths < len(first)) & (second.lengths > shared)
    if goes_on.any():
        run = int(np.flatnonzero(goes_on.reshape(-1))[0])
        ended = np.reshape(first.ended, -1)[run]
        raise InvalidArgument(f"run {run} had ended at {ended:g} s and goes on here")
    return first.lengths + np.maximum(second.lengths - shared, 0)


def _counted_on(
    first: Trajectory, second: Trajectory, shared: bool, name: str, other: str
) -> npt.NDArray[np.float64]:
    """Column of the second without the shared sample; energies count from the first's start."""
    column = second[other]
    if not shared:
        return column
    before = _counted_before(first, second, name, other)
    return (column + before if np.any(before != 0) else column)[..., 1:]


def _counted_before(first: Trajectory, second: Trajectory, name: str, other: str) -> Any:
    """What the first has counted more than the second at their shared sample."""
    if first.kinds[name] == "energy" and name.rpartition(".")[2] in ACCUMULATED:
        return first[name][..., -1:] - second[other][..., :1]
    return 0.0


def _pieces_at(
    first: Trajectory,
    second: Trajectory,
    shared: bool,
    follow: Mapping[str, str],
    times: npt.NDArray[np.float64],
) -> TrajectoryColumns | None:
    """Columns at other times, of the part in which each lies; None where one has no such column."""
    forward = np.sign(second.time[-1] - first.time[0])
    early = forward * times <= forward * first.time[-1]
    if not shared and (forward * times[~early] < forward * second.time[0]).any():
        return None
    made = []
    for piece, part in ((first, times[early]), (second, times[~early])):
        columns = piece.columns_at(part) if part.size else None
        if part.size and columns is None:
            return None
        made.append(columns)

    def compute(name: str) -> Any:
        parts = [] if made[0] is None else [made[0].get(name)]
        if made[1] is not None:
            counted = _counted_before(first, second, name, follow[name]) if shared else 0.0
            parts.append(made[1].get(follow[name]) + counted)
        return np.concatenate(parts, axis=-1)

    return TrajectoryColumns((*first.batch, len(times)), compute)


def _info(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    shared = {key: value for key, value in first.items() if second.get(key, ...) == value}
    pieces = [one for info in (first, second) for one in info.get("pieces", [dict(info)])]
    return {**shared, "pieces": pieces}


def widened(
    trajectory: Trajectory,
    columns: Mapping[str, npt.ArrayLike],
    units: Mapping[str, str],
    kind: str,
) -> Trajectory:
    """A trajectory with more columns; see `Trajectory.with_columns`."""
    shape = (*trajectory.batch, len(trajectory))
    for name in units:
        if name not in columns:
            raise UnknownName("with_columns", "column", name, tuple(columns))
    added = {}
    beyond = np.arange(len(trajectory)) >= trajectory.lengths[..., np.newaxis]
    for name, column in columns.items():
        try:
            added[name] = np.empty(shape)
            added[name][...] = column
        except ValueError as error:
            raise InvalidArgument(
                f"'{name}' has shape {np.shape(column)}; (*batch, T) is {shape}"
            ) from error
        added[name][beyond] = np.nan
    return trajectory.changed(
        values=TrajectoryColumns(shape, lambda n: added[n] if n in added else trajectory[n]),
        names=(*trajectory.names, *columns),
        units=(*trajectory.units, *(units.get(name, "") for name in columns)),
        kinds={**trajectory.kinds, **dict.fromkeys(columns, kind)},
        quaternions=(*trajectory.quaternions, *group_quaternions(columns)),
    )
