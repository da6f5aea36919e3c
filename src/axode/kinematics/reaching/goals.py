"""Goals of inverse kinematics: what is wanted of which body, coordinate or measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.numerics.rotations import angles_between, as_rotations

Array = npt.NDArray[np.float64]
SIZES = {"position": 3, "rotation": 9, "direction": 3, "coordinate": 1, "measure": 1}
UNITS = {"position": "m", "rotation": "rad", "direction": "rad"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is wanted of a body: a position, an orientation, a direction, or several of them.

    Values may have batch axes first.

    Args:
        position: Place of the body's frame, or of `at`, in the world [m]: (..., 3).
        rotation: Orientation of the body: matrices (..., 3, 3), quaternions w x y z (..., 4) or
            roll, pitch, yaw (..., 3).
        direction: Where `axis` is to point in the world, (..., 3); turns about it are free.
        at: Point fixed in the body that `position` means [m].
        axis: Axis fixed in the body that `direction` means.
        weight: Weight of the position's error per metre, where not all targets can be met.
        turn_weight: Weight of the error in orientation or direction per radian.
    """

    position: npt.ArrayLike | None = None
    rotation: npt.ArrayLike | None = None
    direction: npt.ArrayLike | None = None
    at: npt.ArrayLike = (0.0, 0.0, 0.0)
    axis: npt.ArrayLike = (0.0, 0.0, 1.0)
    weight: float = 1.0
    turn_weight: float = 1.0


@dataclass(frozen=True)
class Goal:
    """One quantity that is to have a value.

    Attributes:
        name: What the user calls it.
        kind: One of `SIZES`.
        index: Number of the body, coordinate or measure.
        wanted: Value, (..., size).
        fixed: Point or axis fixed in the body.
        weight: Weight of its error.
        unit: "m", "rad", or that of a measure.
    """

    name: str
    kind: str
    index: int
    wanted: Array
    fixed: tuple[float, ...] = ()
    weight: float = 1.0
    unit: str = ""

    @property
    def size(self) -> int:
        """Numbers of its value, and rows of its error."""
        return SIZES[self.kind]

    @property
    def title(self) -> str:
        """Its name, and for bodies what is wanted of them."""
        return f"{self.name}.{self.kind}" if self.kind in UNITS else self.name

    @property
    def structure(self) -> tuple[str, int]:
        """What the compiled program depends on."""
        return self.kind, self.index

    def error(self, poses: Array, q: Array, measures: Array | None) -> Array:
        """How far configurations are from the goal, (...) [m, rad, or the measure's unit]."""
        if self.kind == "coordinate":
            return np.asarray(np.abs(q[..., self.index] - self.wanted[..., 0]))
        if self.kind == "measure":
            assert measures is not None
            return np.asarray(np.abs(measures[..., self.index] - self.wanted[..., 0]))
        pose = poses[..., self.index, :, :]
        R = pose[..., :3, :3]
        if self.kind == "position":
            there = pose[..., :3, 3] + R @ np.array(self.fixed)
            return np.asarray(np.linalg.norm(there - self.wanted, axis=-1))
        if self.kind == "rotation":
            return angles_between(R, self.wanted.reshape(*self.wanted.shape[:-1], 3, 3))
        apart = np.linalg.norm(R @ np.array(self.fixed) - self.wanted, axis=-1)
        return np.asarray(2 * np.arcsin(np.clip(apart / 2, 0.0, 1.0)))


def read_goals(model: Model, targets: Mapping[str, Any]) -> list[Goal]:
    """Read targets by the name of a body, coordinate or measure.

    Raises:
        UnknownName: for a name that none of them has.
        InvalidArgument: for values of another shape, or nothing at all.
    """
    if not targets:
        raise InvalidArgument(
            f"targets: give at least one by name, such as {{'{model.bodies[-1]}': (x, y, z)}}"
        )
    goals = [goal for name, given in targets.items() for goal in _read(model, name, given)]
    for goal in goals:
        if not (np.isfinite(goal.wanted).all() and 0 < goal.weight < np.inf):
            raise InvalidArgument(
                f"target '{goal.name}': its {goal.kind} must be finite, and its weight > 0"
            )
    return goals


def _read(model: Model, name: str, given: Any) -> list[Goal]:
    if isinstance(given, Target):
        return _of_body(model, name, given)
    is_body = name in model.bodies
    if is_body and isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]):
        return _of_body(model, name, Target(position=given[0], rotation=given[1]))
    values = as_numbers(f"target '{name}'", given)
    if is_body and values.shape[-2:] == (4, 4):
        place, turn = values[..., :3, 3], values[..., :3, :3]
        return _of_body(model, name, Target(position=place, rotation=turn))
    if is_body and values.shape[-1:] == (3,):
        return _of_body(model, name, Target(position=values))
    components = [f"{name}.{axis}" for axis in "xyz"]
    if values.shape[-1:] == (3,) and set(components) <= set(model.measure_names):
        return [
            _of_signal(model, component, values[..., k]) for k, component in enumerate(components)
        ]
    if is_body and values.ndim and name not in model.signals:
        raise InvalidArgument(
            f"target '{name}': expected a position (..., 3), a pose (..., 4, 4), a tuple "
            f"(position, rotation) or a Target, got shape {values.shape}"
        )
    return [_of_signal(model, name, values)]


def _of_body(model: Model, name: str, target: Target) -> list[Goal]:
    if name not in model.bodies:
        raise UnknownName(f"model '{model.name}'", "body", name, model.bodies)
    k, owner = model.bodies.index(name), f"target '{name}'"
    goals = []
    if target.position is not None:
        place, at = _vectors(owner, "position", target.position), _vector(owner, "at", target.at)
        goals.append(Goal(name, "position", k, place, at, _weight(owner, target.weight), "m"))
    weight = _weight(owner, target.turn_weight)
    if target.rotation is not None:
        label = f"{owner}, rotation"
        R = as_rotations(label, as_numbers(label, target.rotation))
        flat = R.reshape(*R.shape[:-2], 9)
        goals.append(Goal(name, "rotation", k, flat, (), weight, "rad"))
    if target.direction is not None:
        way = _unit(owner, "direction", _vectors(owner, "direction", target.direction))
        own = _unit(owner, "axis", np.array(_vector(owner, "axis", target.axis)))
        goals.append(Goal(name, "direction", k, way, tuple(own.tolist()), weight, "rad"))
    if not goals:
        raise InvalidArgument(f"{owner}: give a position, a rotation or a direction")
    return goals


def _of_signal(model: Model, name: str, values: Array) -> Goal:
    known = model.signals.names("coordinate", "measure")
    if not known.matching(name):
        places = [*model.bodies, *known]
        raise UnknownName(f"model '{model.name}'", "body, coordinate or measure", name, places)
    signal = model.signals.resolve(name, "coordinate", "measure")
    if model.signals.depends_on_speeds(signal.name):
        raise InvalidArgument(
            f"target '{name}': it depends on speeds, and inverse kinematics finds postures; "
            "resolved_rates finds speeds"
        )
    unit = signal.unit
    return Goal(name, signal.kind, signal.index, values[..., np.newaxis], (), 1.0, unit)


def _weight(owner: str, given: Any) -> float:
    values = as_numbers(f"{owner}, weight", given)
    if values.ndim:
        raise InvalidArgument(f"{owner}, weight: one number is needed, got {shortened(given)}")
    return float(values)


def _vectors(owner: str, field: str, given: Any) -> Array:
    values = as_numbers(f"{owner}, {field}", given)
    if values.shape[-1:] != (3,):
        raise InvalidArgument(
            f"{owner}, {field}: expected three numbers (..., 3), got shape {values.shape}"
        )
    return values


def _vector(owner: str, field: str, given: Any) -> tuple[float, ...]:
    values = _vectors(owner, field, given)
    if values.ndim != 1:
        raise InvalidArgument(f"{owner}, {field}: one vector for all targets is needed")
    return tuple(values.tolist())


def _unit(owner: str, field: str, values: Array) -> Array:
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    if not (lengths > 0).all():
        raise InvalidArgument(f"{owner}, {field}: a vector of zero length points nowhere")
    return values / lengths
