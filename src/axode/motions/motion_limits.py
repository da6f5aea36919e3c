"""Limits of motions: speed, acceleration and jerk of each part, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import shortened
from axode.motions.waypoints import Waypoints

Array = npt.NDArray[np.float64]


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
            found[k : k + size] = _limit(
                f"{name}, '{channel.name}'", by_name[channel.name], size, faults
            )
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


def _limit(label: str, given: Any, size: int, faults: list[str]) -> Array:
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
