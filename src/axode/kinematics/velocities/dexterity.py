r"""How evenly a robot moves its output: condition number, characteristic length, manipulability.

Angular and linear velocities compare only by a length L: the condition number is that of the map
:math:`\dot\theta \to (L \omega, v)`. The characteristic length is the one for which it is smallest;
where it becomes one, the robot is isotropic. (J. Angeles, *Fundamentals of Robotic Mechanical
Systems*, chapter 5.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, counted
from axode.kinematics.velocities.velocity_jacobians import (
    VelocityJacobians,
    check_length,
    velocity_jacobians,
)
from axode.numerics.rank import singular_values

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
OPTIMAL = "optimal"
SPREAD = 1e4  # times the ratio of linear to angular velocities, either way: where L is looked for
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
SECTIONS = 90  # of the golden ratio: to the last digit


@dataclass(frozen=True)
class Dexterity:
    """How evenly motors move the output at a state or a batch of states.

    Attributes:
        condition: Condition number of driven speeds to (L w, v); one if isotropic, infinite at a
            singularity.
        length: Length L [m]; NaN where angular and linear velocities do not occur together.
        manipulability: Product of the singular values (Yoshikawa), with that length.
        distance: Smallest relative change of the map that makes it singular: 1 / condition.
    """

    condition: Array
    length: Array
    manipulability: Array

    @property
    def distance(self) -> Array:
        """Smallest relative change of the map that makes it singular."""
        return np.asarray(1.0 / self.condition)

    def __repr__(self) -> str:
        if self.condition.ndim:
            low, high = self.condition.min(), self.condition.max()
            states = counted(self.condition.size, "state")
            return f"Dexterity of {states}: condition {low:.4g} to {high:.4g}"
        length = f", length {self.length:.4g} m" if np.isfinite(self.length) else ""
        return (
            f"Dexterity: condition {self.condition:.4g}{length}, manipulability "
            f"{self.manipulability:.4g}"
        )


def dexterity(
    robot: Kinematics,
    state: Any = None,
    *,
    length: float | Literal["optimal"] | None = None,
    components: Sequence[str] | None = None,
    at: Any = None,
    t: float | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> Dexterity:
    """Measure the dexterity of a robot at a state; see `Kinematics.dexterity`."""
    if isinstance(length, str) and length != OPTIMAL:
        raise InvalidArgument(f"length: expected a number [m] or 'optimal', got '{length}'")
    wanted = None if length == OPTIMAL else check_length(length)
    found = velocity_jacobians(
        robot, state, components=components, at=at, t=t, parameters=parameters
    )
    return dexterity_of(found, OPTIMAL if length == OPTIMAL else wanted)


def dexterity_of(jacobians: VelocityJacobians, length: float | str | None = None) -> Dexterity:
    """Measure the dexterity of given Jacobians.

    Args:
        jacobians: Jacobians of a robot.
        length: Length L [m], "optimal", or the robot's size unless given.
    """
    J = jacobians.forward
    turning = np.array([name.startswith("w") for name in jacobians.components])
    if not (turning.any() and not turning.all()):
        L = np.full(J.shape[:-2], np.nan)
        scaled = J
    else:
        if length == OPTIMAL:
            L = characteristic_length(J, turning)
        else:
            L = np.full(J.shape[:-2], jacobians.length if length is None else float(length))
        scaled = _scaled(J, turning, L)
    s = _singular_values(scaled)
    return Dexterity(_ratio(s), L, np.prod(s, axis=-1))


def characteristic_length(J: npt.ArrayLike, turning: npt.ArrayLike) -> Array:
    """Find the length that makes the condition number of (L w, v) smallest [m].

    The condition number has a single valley along L, so that golden sections find it.

    Args:
        J: Velocities for unit driven speeds, (..., components, driven).
        turning: Which components are angular velocities.

    Returns:
        The length per matrix; NaN for a matrix that is singular whatever the length.
    """
    J, turning = np.asarray(J, dtype=float), np.asarray(turning, dtype=bool)
    angular, linear = (
        np.linalg.norm(J[..., part, :], axis=(-2, -1)) for part in (turning, ~turning)
    )
    whole = (angular > 0) & (linear > 0) & np.isfinite(angular) & np.isfinite(linear)
    middle = np.log(np.where(whole, linear, 1.0) / np.where(whole, angular, 1.0))
    low, high = middle - np.log(SPREAD), middle + np.log(SPREAD)

    def value(x: Array) -> Array:
        return _ratio(_singular_values(_scaled(J, turning, np.exp(x))))

    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [value(x) for x in inner]
    for _ in range(SECTIONS):
        left = values[0] < values[1]
        low, high = np.where(left, low, inner[0]), np.where(left, inner[1], high)
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = value(new)
        inner, values = (
            [np.where(left, new, inner[1]), np.where(left, inner[0], new)],
            [np.where(left, at_new, values[1]), np.where(left, values[0], at_new)],
        )
    length = np.exp((low + high) / 2)
    return np.asarray(np.where(whole & np.isfinite(value((low + high) / 2)), length, np.nan))


def _scaled(J: Array, turning: Array, L: Array) -> Array:
    factor = np.where(turning, L[..., np.newaxis], 1.0)
    return np.asarray(factor[..., np.newaxis] * J)


def _singular_values(J: Array) -> Array:
    """Singular values, largest first; zero of a matrix that is not finite, so that all end."""
    known = np.isfinite(J).all(axis=(-2, -1), keepdims=True)
    finite: Array = np.where(known, J, 0.0)
    return singular_values(finite)


def _ratio(s: Array) -> Array:
    """Condition number; infinite of a singular matrix."""
    if not s.shape[-1]:
        return np.full(s.shape[:-1], np.inf)
    regular = s[..., -1] > np.finfo(float).eps * s[..., 0]
    return np.asarray(np.where(regular, s[..., 0] / np.where(regular, s[..., -1], 1.0), np.inf))
