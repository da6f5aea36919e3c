r"""Singularities of a robot: margins that vanish there, and the motions that appear or are lost.

Feasible velocities of output and driven joints are :math:`(t, \dot\theta) = Q c` with orthonormal
columns, scaled by a length. The margins are smallest singular values:

- serial (type 1, B singular): of the output's rows of Q, zero where the output can stand while
  driven joints move, so that it cannot move in some direction;
- parallel (type 2, A singular): of the driven rows of Q, zero where the output moves though all
  driven joints are locked;
- mobility: of the legs' rows, zero where the legs' wrenches become dependent and a freedom is
  gained, a constraint singularity;
- passive: of the columns of passive joints, zero where some of these move by themselves.

C. Gosselin, J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE Trans.
Robotics and Automation 6, 1990, have the first two; D. Zlatanov, R. G. Fenton, B. Benhabib, "A
unifying framework for classification and interpretation of mechanism singularities", ASME J.
Mechanical Design 117, 1995, the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.kinematics.velocities.feasible_velocities import Velocities, speed_scales
from axode.kinematics.velocities.leg_rows import TWIST
from axode.kinematics.velocities.screws import InstantaneousScrew, name_largest
from axode.kinematics.velocities.velocity_jacobians import (
    UNITS,
    OutputChoice,
    choose_output,
    velocities_at,
)
from axode.numerics.rank import singular_values, singular_vectors

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
KINDS = ("serial", "parallel", "mobility", "passive")
SINGULAR_MARGIN = 1e-8  # states are closed to 1e-13, and margins follow them linearly
AT_REST = 1e-6  # of a unit motion: what moves less stands


@dataclass(frozen=True)
class Margins:
    """Distances from singularities at a state or a batch of states, one array per kind.

    Smallest singular values without unit, at most one for the first two; infinite for what a
    robot cannot have, NaN where no state was found.

    Attributes:
        serial, parallel, mobility, passive: See the names of kinds in `Singularities`.
    """

    serial: Array
    parallel: Array
    mobility: Array
    passive: Array

    def __getitem__(self, kind: str) -> Array:
        """Margin of a kind."""
        found: Array = {name: getattr(self, name) for name in KINDS}[kind]
        return found

    @property
    def smallest(self) -> Array:
        """Smallest margin of all kinds."""
        return np.asarray(np.min([self[kind] for kind in KINDS], axis=0))


def margins_of(velocities: Velocities, output: OutputChoice) -> Margins:
    """Evaluate the margins of feasible velocities."""
    Q, passive, m = velocities.basis(), velocities.passive_margin, len(output.names)
    moves = velocities.output_rank(output.matrix)
    if not output.is_whole and Q.shape[-1]:  # what else the output does is passive
        counts = np.concatenate([output.matrix @ Q[..., :TWIST, :], Q[..., TWIST:, :]], axis=-2)
        Q, s, _ = singular_vectors(counts, full=False)
        if Q.shape[-1] == velocities.freedoms:
            passive = np.minimum(passive, s[..., -1])
    found = (
        _smallest(Q[..., :m, :], moves),
        _smallest(Q[..., m:, :], Q.shape[-1]),
        velocities.mobility_margin,
        passive,
    )
    return Margins(*map(velocities.fill, found))


def _smallest(part: Array, count: int) -> Array:
    """Last of the singular values that count; infinite if there are none."""
    count = min(count, *part.shape[-2:])
    if not count:
        return np.full(part.shape[:-2], np.inf)
    return np.asarray(singular_values(part)[..., count - 1])


@dataclass(frozen=True)
class Singularity:
    """A singularity at a state, and what is singular about it.

    Attributes:
        kind: "serial" (type 1), "parallel" (type 2), "mobility" (a constraint singularity if the
            output gains the freedom) or "passive".
        margin: Smallest singular value that belongs to it.
        motion: Screw of the output in the motion that is free or, of a serial singularity, in the
            velocity that the output cannot have; None where the output stands.
        driven: Driven speeds in that motion by name.
        text: The same as text.
    """

    kind: str
    margin: float
    motion: InstantaneousScrew | None
    driven: dict[str, float]
    text: str


@dataclass(frozen=True)
class Singularities:
    """What is singular, or nearly so, at a state or a batch of states.

    Attributes:
        margins: Distance from each kind of singularity.
        length: Length by which turning and moving are compared [m].
        tolerance: Margin below which a state is called singular.
    """

    margins: Margins
    length: float
    tolerance: float
    _output: str
    _choice: OutputChoice
    _velocities: Velocities

    @property
    def is_singular(self) -> Any:
        """Return whether a state is singular in any way."""
        return self.margins.smallest < self.tolerance

    @property
    def type(self) -> Any:
        """Type after Gosselin and Angeles: 1, 2, or 3 for both; 0 for none of these."""
        serial, parallel = (self.margins[kind] < self.tolerance for kind in KINDS[:2])
        return 1 * serial + 2 * parallel

    @cached_property
    def found(self) -> tuple[Singularity, ...]:
        """Singularities of the state, those of a batch at `self[k].found`."""
        if self._velocities.batch:
            raise InvalidArgument(
                f"found: these are {self._velocities.batch} states; choose one with [k]"
            )
        return tuple(self.describe(kind) for kind in KINDS if self.margins[kind] < self.tolerance)

    def __getitem__(self, k: Any) -> Singularities:
        """Singularities of some states of a batch."""
        margins = Margins(*(np.asarray(self.margins[kind][k]) for kind in KINDS))
        return Singularities(
            margins,
            self.length,
            self.tolerance,
            self._output,
            self._choice,
            self._velocities.select(k),
        )

    def describe(self, kind: str) -> Singularity:
        """Describe the motion that belongs to a kind, at a state that may only be near it."""
        if kind not in KINDS:
            raise InvalidArgument(f"kind: expected one of {', '.join(KINDS)}, got '{kind}'")
        margin = float(self.margins[kind])
        describers = {
            "serial": self._serial,
            "parallel": self._parallel,
            "mobility": self._mobility,
            "passive": self._passive,
        }
        if np.isinf(margin):
            text = f"'{self._output}' has no singularity of this kind"
            return Singularity(kind, margin, None, {}, text)
        motion, driven, text = describers[kind]()
        return Singularity(kind, margin, motion, driven, text)

    def __str__(self) -> str:
        if self._velocities.batch:
            count = int(np.sum(self.is_singular))
            return f"Singularities: {count} of {np.size(self.is_singular)} states are singular"
        head = ", ".join(f"{kind} {float(self.margins[kind]):.3g}" for kind in KINDS)
        lines = [f"{one.kind} singularity: {one.text}" for one in self.found]
        return "\n  ".join([f"Margins: {head}", *(lines or ["regular"])])

    __repr__ = __str__

    # motions -----------------------------------------------------------------------------------

    def _motion(self, velocity: Array) -> tuple[InstantaneousScrew | None, dict[str, float]]:
        """InstantaneousScrew of the output and driven speeds of a scaled feasible velocity."""
        rows, length = self._velocities.rows, self._velocities.length
        twist = velocity[:TWIST] * speed_scales(UNITS, length)
        driven = velocity[TWIST:] * speed_scales(rows.units, length)
        size = float(np.abs(velocity).max())
        screw = None
        if np.abs(velocity[:TWIST]).max() > AT_REST * size:
            screw = InstantaneousScrew.of(twist, self._velocities.origin, length)
        return screw, dict(zip(rows.driven, driven.tolist(), strict=True))

    def _serial(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        Q = self._velocities.basis()
        U, _, Vt = singular_vectors(self._choice.matrix @ Q[:TWIST])
        least = self._velocities.output_rank(self._choice.matrix) - 1
        moving = Q @ Vt[least]
        _, driven = self._motion(moving)
        impossible = np.zeros(len(moving))
        impossible[:TWIST] = self._choice.matrix.T @ U[:, least]
        blocked, _ = self._motion(impossible)
        rows = self._velocities.rows
        shares = np.array(list(driven.values())) / speed_scales(rows.units, self.length)
        what = "chosen velocities" if not self._choice.is_whole else "motion"
        text = f"it can move with the {what} of '{self._output}' at rest"
        if np.abs(shares).max(initial=0.0) > AT_REST:
            text = f"{name_largest(rows.driven, shares)} can move while '{self._output}' stands"
        if blocked is not None:
            lost = blocked.describe(self._output, self.length)
            text += f"; no motor gives the velocity in which {lost}"
        return blocked, driven, text

    def _parallel(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        Q = self._velocities.basis()
        Vt = singular_vectors(Q[TWIST:])[2]
        screw, driven = self._motion(Q @ Vt[min(Q.shape[0] - TWIST, Q.shape[1]) - 1])
        return screw, driven, f"with all driven joints locked, {self._moves(screw)}"

    def _mobility(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        leg = min(self._velocities.legs, key=lambda leg: float(leg.row_margin))
        if float(leg.row_margin) <= float(self.margins.mobility):
            speeds = self._velocities.rows.speeds
            own = ", ".join(speeds[k] for k in (*leg.part.driven, *leg.part.passive))
            return None, {}, f"the rows of the leg with {own} depend on each other"
        Q = self._velocities.basis(1)
        Vt = singular_vectors(Q[TWIST:])[2]
        screw, driven = self._motion(Q @ Vt[-1])
        gained = "the legs' wrenches depend on each other, so that also"
        return screw, driven, f"{gained} {self._moves(screw)}"

    def _passive(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        leg = min(self._velocities.legs, key=lambda leg: float(leg.passive_margin))
        if float(leg.passive_margin) > float(self.margins.passive):
            Q = self._velocities.basis()
            both = np.concatenate([self._choice.matrix @ Q[:TWIST], Q[TWIST:]])
            screw, driven = self._motion(Q @ singular_vectors(both)[2][-1])
            chosen = f"with {', '.join(self._choice.names)} and all driven joints at rest"
            return screw, driven, f"{chosen}, {self._moves(screw)}"
        names = tuple(self._velocities.rows.speeds[k] for k in leg.part.passive)
        return None, {}, f"passive joints can move alone: {name_largest(names, leg.passive_motion)}"

    def _moves(self, screw: InstantaneousScrew | None) -> str:
        if screw is None:
            return "passive joints move"
        return screw.describe(self._output, self.length)


def find_singularities(
    robot: Kinematics,
    state: Any = None,
    *,
    components: Sequence[str] | None = None,
    at: Any = None,
    length: float | None = None,
    tolerance: float = SINGULAR_MARGIN,
    t: float | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> Singularities:
    """Find what is singular at a state; see `Kinematics.singularities`."""
    output = choose_output(components)
    if not tolerance > 0.0:
        raise InvalidArgument(f"tolerance: must be > 0, got {tolerance}")
    velocities = velocities_at(robot, state, at=at, length=length, t=t, parameters=parameters)
    margins = margins_of(velocities, output)
    return Singularities(margins, velocities.length, tolerance, robot.output, output, velocities)
