"""Waypoints: numbers and poses by name, checked, as rows of one array; limits of their motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import as_rotation, as_vector, rotation_fault, rotation_matrix
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.model.state import State
from axode.names import NamedValues
from axode.numerics.rotations import to_quaternions
from axode.numerics.tolerances import NEGLIGIBLE, SEVEN_DIGITS
from axode.problems.inverse.motions import full_names

Array = npt.NDArray[np.float64]
POSE_COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz")
POSE_UNITS = ("m", "m", "m", "", "", "", "")


@dataclass(frozen=True)
class Channel:
    """A coordinate, a speed or a measure by name, or the pose of a body.

    Attributes:
        name: Name of the coordinate, speed, measure or body.
        first: Its first column.
        is_pose: Whether it has seven columns, position and unit quaternion, instead of one.
        unit: Unit of a number; "" if no model said so.
    """

    name: str
    first: int
    is_pose: bool
    unit: str = ""

    @property
    def columns(self) -> slice:
        """Its columns among those of all channels."""
        return slice(self.first, self.first + (7 if self.is_pose else 1))

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(f"{self.name}.{c}" for c in POSE_COLUMNS) if self.is_pose else (self.name,)

    @property
    def column_units(self) -> tuple[str, ...]:
        """Units of its columns."""
        return POSE_UNITS if self.is_pose else (self.unit,)

    @property
    def parts(self) -> tuple[str, ...]:
        """What has a speed of its own: a number, or the position and the rotation of a pose."""
        return (f"{self.name} position", f"{self.name} rotation") if self.is_pose else (self.name,)


@dataclass(frozen=True)
class Waypoints:
    """Places that a motion passes.

    Attributes:
        channels: What moves.
        values: (waypoints, columns); neighbouring quaternions are less than half a turn apart.
    """

    channels: tuple[Channel, ...]
    values: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(name for channel in self.channels for name in channel.column_names)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of all columns."""
        return tuple(unit for channel in self.channels for unit in channel.column_units)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of what has a speed of its own."""
        return tuple(part for channel in self.channels for part in channel.parts)

    @property
    def turns(self) -> list[slice]:
        """Columns of the quaternions of all bodies."""
        return [slice(c.first + 3, c.first + 7) for c in self.channels if c.is_pose]

    def normalize(self, derivatives: Array) -> None:
        """Divide quaternions z in columns with two derivatives (3, ..., n) by |z|, in place."""
        for k in self.turns:
            z = derivatives[..., k]
            size = np.sqrt((z[0] * z[0]).sum(axis=-1, keepdims=True))
            y = z[0] / size
            growth = (y * z[1]).sum(axis=-1, keepdims=True)
            rate = (z[1] - growth * y) / size
            second = (rate * z[1] + y * z[2]).sum(axis=-1, keepdims=True)
            bend = (z[2] - 2 * growth * rate - second * y) / size
            derivatives[..., k] = y, rate, bend

    def magnitudes(self, derivatives: Array) -> tuple[Array, Array]:
        """Speeds and accelerations of the parts, from columns with two derivatives (3, T, n).

        Positions and rotations of bodies have the length of their vectors.

        Returns:
            Two arrays (T, parts), in units per unit of the parameter.
        """
        y, rate, second = derivatives
        speeds, accelerations = [], []
        for channel in self.channels:
            k = channel.columns
            if not channel.is_pose:
                speeds.append(np.abs(rate[:, k.start]))
                accelerations.append(np.abs(second[:, k.start]))
                continue
            place, turn = slice(k.start, k.start + 3), slice(k.start + 3, k.stop)
            speeds += [_length(rate[:, place]), 2 * _length(rate[:, turn])]
            # angular acceleration: twice the vector part of conj(q) q_ddot
            along = (y[:, turn] * second[:, turn]).sum(axis=-1, keepdims=True)
            accelerations.append(_length(second[:, place]))
            accelerations.append(2 * _length(second[:, turn] - along * y[:, turn]))
        return np.stack(speeds, axis=-1), np.stack(accelerations, axis=-1)

    def distances(self) -> Array:
        """How far each part goes from one waypoint to the next: (waypoints - 1, parts)."""
        found = []
        for channel in self.channels:
            steps = self.values[1:, channel.columns] - self.values[:-1, channel.columns]
            if not channel.is_pose:
                found.append(np.abs(steps[:, 0]))
                continue
            sums = self.values[1:, channel.columns] + self.values[:-1, channel.columns]
            angle = 4 * np.arctan2(_length(steps[:, 3:]), _length(sums[:, 3:]))
            found += [_length(steps[:, :3]), angle]
        return np.stack(found, axis=-1)

    def without_repeats(self) -> tuple[Waypoints, npt.NDArray[np.intp]]:
        """Leave out waypoints that equal the ones before them.

        Returns:
            The others, and the number among them of each of the waypoints.
        """
        distances = self.distances()
        moves = (distances > SEVEN_DIGITS * distances.sum(axis=0)).any(axis=1)
        kept = np.flatnonzero(np.concatenate([[True], moves]))
        number = np.concatenate([[0], np.cumsum(moves)])
        return Waypoints(self.channels, self.values[kept]), number


def _length(vectors: Array) -> Array:
    return np.asarray(np.linalg.norm(vectors, axis=-1))


# reading -----------------------------------------------------------------------------------------


def read_waypoints(
    verb: str, given: Sequence[Any], labels: Sequence[str], model: Model | None
) -> Waypoints:
    """Read waypoints, each a mapping of the same names to numbers and poses.

    Args:
        verb: Function that they were given to, for messages.
        given: The waypoints; samples of a trajectory may have more names than the others.
        labels: What messages call each of them.
        model: The model whose names they are, if it is known.

    Raises:
        InvalidArgument: with everything that is wrong with them.
    """
    faults: list[str] = []
    for label, point in zip(labels, given, strict=True):
        if not isinstance(point, Mapping) or not point:
            hint = ".\n  Name what moves: {name: state[name] for name in (...)}"
            raise InvalidArgument(
                f"{verb}, {label}: expected values by name, such as {{'theta1': 0.5}} or "
                f"{{'platform': (position, rotation)}}, got {shortened(point)}"
                + (hint if isinstance(point, State) else "")
            )
    own = [point for point in given if not isinstance(point, NamedValues)]
    names = tuple((own or list(given))[0])
    columns = []
    for name in names:
        values = [
            _column(f"{label}, '{name}'", point, name, faults)
            for label, point in zip(labels, given, strict=True)
        ]
        if len({len(v) for v in values if v is not None}) > 1:
            faults.append(f"'{name}': a pose at one waypoint and a number at another")
        columns.append(values)
    for label, point in zip(labels, given, strict=True):
        extra = [n for n in point if n not in names and not isinstance(point, NamedValues)]
        faults += [f"{label}: '{name}' is not given at the others" for name in extra]
    units = _check_names(names, columns, model, faults)
    raise_faults(verb, faults)
    channels, first = [], 0
    for name, values, (full, unit) in zip(names, columns, units, strict=True):
        channels.append(Channel(full or str(name), first, len(values[0] or ()) == 7, unit))
        first = channels[-1].columns.stop
    table = np.hstack([np.array(values, dtype=float) for values in columns])
    for channel in channels:
        if channel.is_pose:
            _align(verb, channel, table[:, channel.columns], labels)
    return Waypoints(tuple(channels), table)


def raise_faults(verb: str, faults: Sequence[str]) -> None:
    """Report all faults of the arguments of a function at once, if there are some.

    Raises:
        InvalidArgument: with one line per fault.
    """
    if faults:
        count = f"{len(faults)} problem" + "s" * (len(faults) != 1)
        raise InvalidArgument("\n  ".join([f"{verb}: the arguments have {count}.", *faults]))


def _column(
    label: str, point: Mapping[str, Any], name: str, faults: list[str]
) -> list[float] | None:
    """One value of a waypoint as numbers; None, and a fault, if there is none."""
    try:
        value = point[name]
    except KeyError:
        faults.append(f"{label} is missing")
        return None
    try:
        is_pose = isinstance(value, tuple | list) or getattr(value, "ndim", 0) > 0
        found = _pose(value) if is_pose else [float(value)]
    except InvalidArgument as error:
        faults.append(f"{label}: {error}")
        return None
    except (TypeError, ValueError, AttributeError):
        faults.append(
            f"{label}: expected a number, or a pose (position, rotation) with a position of three "
            f"numbers and a rotation (roll-pitch-yaw, quaternion, matrix), got {shortened(value)}"
        )
        return None
    if not np.isfinite(found).all():
        faults.append(f"{label}: must be finite")
        return None
    return found


def _pose(value: Any) -> list[float]:
    """Position and quaternion of a pose: (position, rotation), or a homogeneous 4 x 4 matrix."""
    if isinstance(value, np.ndarray) and value.shape == (4, 4):
        value = value[:3, 3], value[:3, :3]
    place, turn = value
    position, rotation = as_vector(place), as_rotation(turn)
    fault = rotation_fault(rotation)
    if fault is not None:
        raise InvalidArgument(fault)
    R = np.array([[numeric(x) for x in row] for row in rotation_matrix(rotation)])
    return [*map(numeric, position), *to_quaternions(R)]


def _align(verb: str, channel: Channel, columns: Array, labels: Sequence[str]) -> None:
    """Turn quaternions to the side of the ones before them, in place."""
    q = columns[:, 3:]
    cosines = (q[1:] * q[:-1]).sum(axis=-1)
    half = np.flatnonzero(np.abs(cosines) < NEGLIGIBLE)
    if half.size:
        k = int(half[0])
        raise InvalidArgument(
            f"{verb}: '{channel.name}' makes half a turn from {labels[k]} to {labels[k + 1]}, and "
            "both directions are equally short.\n  Give a waypoint between them"
        )
    q[1:] *= np.cumprod(np.sign(cosines))[:, np.newaxis]


def _check_names(
    names: Sequence[str], columns: Sequence[Any], model: Model | None, faults: list[str]
) -> list[tuple[str, str]]:
    """Full names and units of what a model calls so; faults for what it does not know."""
    found = [("", "") for _ in names]
    if model is None:
        return found
    for k, (name, values) in enumerate(zip(names, columns, strict=True)):
        is_pose = any(v is not None and len(v) == 7 for v in values)
        try:
            if is_pose:
                if name not in facts_of(model).bodies:
                    raise UnknownName(f"model '{model.name}'", "body", name, facts_of(model).bodies)
            else:
                (full,) = full_names(model, [name])
                found[k] = full, model.signals.resolve(full, *STATE_KINDS).unit
        except (UnknownName, InvalidArgument) as error:
            faults.append(str(error).replace("\n", "\n  "))
    return found


def read_limits(name: str, given: Any, waypoints: Waypoints, faults: list[str]) -> Array:
    """Limits of all parts, in their order; infinity where there is none.

    Args:
        name: Name of the argument, for messages.
        given: None for no limits; a number for all parts that are numbers; or limits by name, a
            pair for the position and the rotation of a body.
        waypoints: What moves.
        faults: What is wrong is added to it.
    """
    channels = waypoints.channels
    found = np.full(len(waypoints.parts), np.inf)
    if given is None:
        return found
    if not isinstance(given, Mapping):
        bodies = [channel.name for channel in channels if channel.is_pose]
        if bodies:
            faults.append(
                f"{name}: give limits by name, a pair (position, rotation) for '{bodies[0]}'"
            )
            return found
        given = {channel.name: given for channel in channels}
    by_name = _full_names(name, given, waypoints, faults)
    k = 0
    for channel in channels:
        size = len(channel.parts)
        if channel.name in by_name:
            label = f"{name}, '{channel.name}'"
            found[k : k + size] = read_limit(label, by_name[channel.name], size, faults)
        else:
            faults.append(f"{name}: no limit for '{channel.name}'; float('inf') means none")
        k += size
    return found


def _full_names(
    name: str, given: Mapping[str, Any], waypoints: Waypoints, faults: list[str]
) -> dict[str, Any]:
    known = [channel.name for channel in waypoints.channels]
    found = {}
    for short, limit in given.items():
        meant = [n for n in known if n == short or n.endswith(f".{short}")]
        if len(meant) == 1:
            found[meant[0]] = limit
        else:
            faults.append(f"{name}: '{short}' does not move; what moves is {', '.join(known)}")
    return found


def read_limit(label: str, given: Any, size: int, faults: list[str]) -> Array:
    """One positive number per part."""
    expected = "a number > 0" if size == 1 else "two numbers > 0, for position and rotation,"
    try:
        limits = np.asarray(given, dtype=float).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        limits = np.zeros(0)
    if limits.size != size or not (limits > 0).all():
        faults.append(
            f"{label}: expected {expected} got {shortened(given)}".replace("0 got", "0, got")
        )
        return np.full(size, np.inf)
    return limits
