"""Limits of a model along a path: of speeds, accelerations and efforts, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import SPEED_KINDS
from axode.motions.waypoints import raise_faults
from axode.problems.inverse.motion_rows import full_names

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PathLimits:
    """Limits by full names: of speeds and measures, and of motors by their inputs.

    Attributes:
        speed: By speeds and measures of position [rad/s, m/s].
        acceleration: Likewise [rad/s^2, m/s^2].
        effort: By inputs [N m, N].
        bodies: Limits of the speeds of position and rotation of bodies whose pose is given.
        path: Limit of the speed along a path in the plane [m/s].
    """

    speed: Mapping[str, float]
    acceleration: Mapping[str, float]
    effort: Mapping[str, float]
    bodies: Mapping[str, tuple[float, float]]
    path: float


def read_path_limits(
    verb: str, model: Model, bodies: Sequence[str], given: Mapping[str, Any]
) -> PathLimits:
    """Read the limits of `time_optimal`.

    Args:
        verb: Function that they were given to, for messages.
        model: Whose names they are.
        bodies: Bodies whose pose the path gives.
        given: The arguments speed, acceleration and torque.

    Raises:
        InvalidArgument: with everything that is wrong with them, and if there are none.
    """
    faults: list[str] = []
    whole = _as_mapping("speed", given["speed"], driven_speeds(model), faults)
    pairs = {name: whole.pop(name) for name in bodies if name in whole}
    path = whole.pop("path", np.inf)
    speed = _by_name(model, "speed", whole, faults)
    acceleration = _by_name(
        model,
        "acceleration",
        _as_mapping("acceleration", given["acceleration"], driven_speeds(model), faults),
        faults,
    )
    motors = model.inputs[: facts_of(model).motors]
    own = {n: x for n, x in zip(motors, facts_of(model).limits, strict=True) if x is not None}
    effort = _as_mapping("torque", given["torque"], motors, faults)
    try:
        effort = own | model.signals.names("input").by_full_name(effort)
    except (UnknownName, InvalidArgument) as error:
        faults.append(str(error).replace("\n", "\n  "))
    outside = [name for name in effort if name in model.inputs and name not in motors]
    faults += [f"torque: '{name}' is no motor but a wrench from outside" for name in outside]
    found = PathLimits(
        {n: _positive(f"speed, '{n}'", x, faults) for n, x in speed.items()},
        {n: _positive(f"acceleration, '{n}'", x, faults) for n, x in acceleration.items()},
        {n: _positive(f"torque, '{n}'", x, faults) for n, x in effort.items()},
        {n: _pair(f"speed, '{n}'", x, faults) for n, x in pairs.items()},
        _positive("speed, 'path'", path, faults),
    )
    speeds = found.speed or pairs or np.isfinite(found.path)
    others = [*found.acceleration.values(), *found.effort.values()]
    if not speeds and not others:
        faults.append(
            "there are no limits: give speed, acceleration or torque, or motors with a limit of "
            "their own"
        )
    elif speeds and np.isinf(others).all():
        faults.append(
            "nothing limits accelerations: give acceleration or torque, too, or motors with a "
            "limit of their own"
        )
    raise_faults(verb, faults)
    return found


def driven_speeds(model: Model) -> list[str]:
    """Speeds of the joints that motors drive."""
    drives = model.equations.system.mechanism.drives
    names = [model.signals.resolve(drive.coordinate, *SPEED_KINDS).name for drive in drives]
    return list(dict.fromkeys(names))


def _as_mapping(name: str, given: Any, names: Sequence[str], faults: list[str]) -> dict[str, Any]:
    """Limits by name; one number is that of every name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if not names:
        faults.append(f"{name}: there are no motors; give limits by name")
    return dict.fromkeys(names, given)


def _by_name(
    model: Model, kind: str, given: Mapping[str, Any], faults: list[str]
) -> dict[str, Any]:
    """Limits by the full names of speeds and of measures of position."""
    found = {}
    for name, limit in given.items():
        try:
            if model.signals.names(*SPEED_KINDS).accepts(name):
                full = model.signals.resolve(name, *SPEED_KINDS).name
            else:
                (full,) = full_names(model, [name])
        except (UnknownName, InvalidArgument) as error:
            faults.append(f"{kind}: " + str(error).replace("\n", "\n  "))
            continue
        if full in found:
            faults.append(f"{kind}: '{name}' means {full}, which is given twice")
        found[full] = limit
    return found


def _positive(label: str, given: Any, faults: list[str]) -> float:
    try:
        limit = float(given)
    except (TypeError, ValueError, OverflowError):
        limit = np.nan
    if not limit > 0:
        faults.append(f"{label}: expected a number > 0, got {shortened(given)}")
        return np.inf
    return limit


def _pair(label: str, given: Any, faults: list[str]) -> tuple[float, float]:
    if not isinstance(given, Sequence | np.ndarray) or len(given) != 2:
        faults.append(f"{label}: expected two numbers > 0, for position and rotation")
        return np.inf, np.inf
    return _positive(label, given[0], faults), _positive(label, given[1], faults)
