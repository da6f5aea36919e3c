r"""Stiffness of the output of a robot that springs hold: those of motors, and of flexible joints.

With springs K on some joints and all other driven joints rigid, feasible velocities
:math:`(t, \dot\theta) = Q c` give the compliance of the output

.. math:: C = Q_t\, (Q_\theta^T K Q_\theta)^{-1} Q_t^T,

which is the inverse of :math:`A^T B^{-T} K B^{-1} A` where both Jacobians are square. It holds for
the unloaded robot: what a preload adds by turning the legs is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.kinematics.velocities.feasible_velocities import TWIST, Velocities, speed_scales
from axode.kinematics.velocities.velocity_jacobians import (
    OutputChoice,
    choose_output,
    velocities_at,
)
from axode.mechanism.topology import speed_meanings
from axode.numerics.rank import pseudo_inverse, singular_vectors
from axode.numerics.tolerances import RANK, ROUNDING
from axode.problems.arguments import number

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OutputStiffness:
    """Stiffness of a robot's output at a state or a batch of states.

    Attributes:
        components: Directions of turns [rad] and moves [m] of the output, and of the couples and
            forces that belong to them.
        compliance: (..., components, components), displacement per load; infinite where nothing
            holds the output.
        stiffness: Its inverse; where the legs hold the output rigidly in some directions, that of
            the displacements which are possible.
    """

    components: tuple[str, ...]
    compliance: Array
    stiffness: Array


def output_stiffness(
    robot: Kinematics,
    state: Any = None,
    springs: float | Mapping[str, float] = 1.0,
    *,
    components: Sequence[str] | None = None,
    at: Any = None,
    t: float | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> OutputStiffness:
    """Find the stiffness of a robot's output; see `Kinematics.stiffness`."""
    output = choose_output(components)
    stiff = read_springs(robot, springs)
    velocities = velocities_at(robot, state, at=at, t=t, parameters=parameters, joints=tuple(stiff))
    return stiffness_of(velocities, stiff, output)


def read_springs(robot: Kinematics, springs: Any) -> dict[str, float]:
    """Read stiffnesses by the names of speeds; a number holds for every driven joint.

    Raises:
        UnknownName: for an unknown joint or coordinate.
        InvalidArgument: for numbers that are not positive.
    """
    meanings = speed_meanings(robot.mechanism)
    if not isinstance(springs, Mapping):
        springs = dict.fromkeys(robot.driven, springs)
    found: dict[str, float] = {}
    for name, value in springs.items():
        if name not in meanings:
            raise UnknownName(f"mechanism '{robot.mechanism.name}'", "joint", name, list(meanings))
        stiffness = number(f"springs '{name}'", value)
        if not 0.0 < stiffness < np.inf:
            raise InvalidArgument(f"springs '{name}': must be finite and > 0, got {stiffness:g}")
        found[meanings[name]] = stiffness
    return found


def stiffness_of(
    velocities: Velocities, springs: Mapping[str, float], output: OutputChoice
) -> OutputStiffness:
    """Find the stiffness of feasible velocities; driven joints without a spring are rigid."""
    rows, length = velocities.rows, velocities.length
    Q = velocities.basis()
    sprung = [TWIST + rows.driven.index(name) for name in springs]
    rigid = [TWIST + k for k in range(len(rows.driven)) if TWIST + k not in sprung]
    if rigid:  # motions in which they stand
        Q = Q @ np.swapaxes(singular_vectors(Q[..., rigid, :])[2][..., len(rigid) :, :], -1, -2)
    units = [rows.units[k - TWIST] for k in sprung]
    K = np.array(list(springs.values())) * speed_scales(units, length) ** 2
    S = np.swapaxes(Q[..., sprung, :], -1, -2) @ (K[:, np.newaxis] * Q[..., sprung, :])
    X = output.matrix @ Q[..., :TWIST, :]
    w, V = np.linalg.eigh(S)
    held = w[..., 0] > ROUNDING * w[..., -1] if w.shape[-1] else np.ones(w.shape[:-1], bool)
    Y = X @ V
    C = (Y / np.where(held[..., np.newaxis], w, 1.0)[..., np.newaxis, :]) @ np.swapaxes(Y, -1, -2)
    stiffness = pseudo_inverse(C, tolerance=RANK, symmetric=True)
    C[~held], stiffness[~held] = np.inf, np.nan
    x = speed_scales(output.units, length)
    both = x[:, np.newaxis] * x
    return OutputStiffness(
        output.names, velocities.fill(C * both), velocities.fill(stiffness / both)
    )
