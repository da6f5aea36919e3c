"""What limits the workspace of a robot, as margins in symbols.

A margin is positive where a limit is kept, zero on it and negative beyond, relative to the range
that the limit leaves. The margin of a pose is the smallest of all, and its active limit is the one
that has it.

Determinants and condition numbers are evaluated at very many poses in straight-line code, without
pivots: no order of elimination would suit all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.kinematics.workspaces.closed_form import ClosedFormLegs, DrivenLeg
from axode.kinematics.workspaces.leg_equations import MovedPoint, displaced
from axode.numerics.tolerances import LEAST_PIVOT, NEGLIGIBLE

SQUARINGS = 7  # the largest eigenvalue of six from traces of 128th and 129th powers: within 0.7 %
Array = npt.NDArray[np.float64]
SX = ca.SX


def determinant(A: SX) -> SX:
    """Determinant by minors that are shared, for matrices of a few rows."""
    n = A.shape[0]
    minors: dict[tuple[int, ...], SX] = {(): SX(1)}
    for row in reversed(range(n)):
        larger: dict[tuple[int, ...], SX] = {}
        for columns in combinations(range(n), n - row):
            total = SX(0)
            for k, column in enumerate(columns):
                rest = (*columns[:k], *columns[k + 1 :])
                total += (-1) ** k * A[row, column] * minors[rest]
            larger[columns] = total
        minors = larger
    return minors[tuple(range(n))]


def reciprocal_condition(J: SX) -> SX:
    """Smallest by largest singular value of a matrix with at least as many rows as columns.

    From the largest eigenvalues of J'J and of its inverse; within 1 %, and better the farther the
    singular values are apart. Values below 1e-8 are rounding.
    """
    gram = ca.mtimes(J.T, J)
    inverse, trace = _inverse(gram)
    return 1 / ca.sqrt(_largest_eigenvalue(gram / trace) * _largest_eigenvalue(inverse * trace))


def _inverse(A: SX) -> tuple[SX, SX]:
    """Inverse of a symmetric positive definite matrix by L D L', and the trace of the matrix."""
    n = A.shape[0]
    trace = ca.trace(A)
    lower = SX.eye(n)
    pivots: list[SX] = []
    for i in range(n):
        for j in range(i):
            total = A[i, j] - sum((lower[i, k] * lower[j, k] * pivots[k] for k in range(j)), SX(0))
            lower[i, j] = total / pivots[j]
        left = A[i, i] - sum((lower[i, k] ** 2 * pivots[k] for k in range(i)), SX(0))
        pivots.append(ca.fmax(left, LEAST_PIVOT * trace))
    # the inverse of L, column by column below its diagonal
    back = SX.eye(n)
    for j in range(n):
        for i in range(j + 1, n):
            back[i, j] = -sum((lower[i, k] * back[k, j] for k in range(j, i)), SX(0))
    scaled = ca.vertcat(*[back[i, :] / pivots[i] for i in range(n)])
    return ca.mtimes(back.T, scaled), trace


def _largest_eigenvalue(A: SX) -> SX:
    """Largest eigenvalue of a symmetric positive definite matrix: tr A^129 / tr A^128."""
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    scale = ca.trace(A)
    unit = power = A / scale
    for _ in range(SQUARINGS):
        power = _symmetric_square(power)
        power = power / ca.trace(power)
    return (
        scale
        * sum((unit[i, j] * power[i, j] for i in range(n) for j in range(n)), SX(0))
        / ca.trace(power)
    )


def _symmetric_square(A: SX) -> SX:
    made = SX(*A.shape)
    for i in range(A.shape[0]):
        for j in range(i + 1):
            made[i, j] = made[j, i] = ca.dot(A[i, :], A[j, :])
    return made


@dataclass(frozen=True)
class PoseLimits:
    """Limits of a robot's poses.

    Attributes:
        driven: Smallest and largest value by the name of the driven coordinate.
        cones: Largest angle of a leg against its direction at home, by the name of the joint [rad].
        diameter: Diameter of the legs, which may not touch [m]; None if they may.
        condition: Largest condition number; None for any.
        length: Length by which angular velocities are multiplied in condition numbers [m].
    """

    driven: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    cones: Mapping[str, float] = field(default_factory=dict)
    diameter: float | None = None
    condition: float | None = None
    length: float = 1.0

    @property
    def structure(self) -> tuple[Any, ...]:
        """Names of what is limited."""
        kinds = (self.diameter is None, self.condition is None)
        return tuple(self.driven), tuple(self.cones), *kinds

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers, by name."""
        found = {"length": self.length}
        for name, (low, high) in self.driven.items():
            found |= {f"{name} min": low, f"{name} max": high}
        found |= {f"{joint} angle": angle for joint, angle in self.cones.items()}
        more = {"diameter": self.diameter, "condition": self.condition}
        return found | {name: value for name, value in more.items() if value is not None}


def read_limits(
    legs: ClosedFormLegs,
    limits: Mapping[str, Any],
    diameter: float | None,
    condition: float | None,
    length: float | None,
) -> PoseLimits:
    """Check limits and find what they are of.

    Args:
        legs: The legs of the robot.
        limits: By names of driven coordinates (smallest and largest value) and of passive joints
            (largest angle); patterns such as `l_*` stand for several.
        diameter: Diameter of the legs [m].
        condition: Largest condition number.
        length: Characteristic length; the robot's size unless given [m].

    Raises:
        UnknownName: for a name or pattern that fits nothing.
        InvalidArgument: for impossible limits, all of them.
        NotApplicable: for a limit that this robot cannot have.
    """
    driven = {leg.coordinate: leg for leg in legs.legs}
    joints = {
        joint: leg
        for leg in legs.legs
        for end in (leg.equation.near, leg.equation.far)
        for joint in end.joints
        if not end.slides
    }
    ranges: dict[str, tuple[float, float]] = {}
    cones: dict[str, float] = {}
    faults: list[str] = []
    for pattern, value in limits.items():
        found = _matching(pattern, value, list(driven), list(joints))
        for name in found:
            fault = _read(name, value, ranges if name in driven else None, cones)
            faults += [fault] if fault else []
    faults += [
        f"{name}: expected a positive number, got {shortened(value)}"
        for name, value in (("diameter", diameter), ("condition", condition), ("length", length))
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf)
    ]
    if faults:
        raise InvalidArgument("limits: " + "\n  ".join(faults))
    _require_straight(legs, [joints[name] for name in cones], "the angle of a joint")
    if diameter is not None:
        _require_straight(legs, legs.legs, "the distance of the legs")
    return PoseLimits(ranges, cones, diameter, condition, length or legs.length)


def _matching(pattern: str, value: Any, driven: list[str], joints: list[str]) -> list[str]:
    """Names that a pattern means: with two numbers driven coordinates first, with one joints."""
    every = [*driven, *joints]
    if pattern in every:
        return [pattern]
    fitting = {2: driven, 1: joints}.get(len(_numbers(value)), every)
    for names in (fitting, every):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if found:
            return found
    raise UnknownName("the robot", "driven coordinate or passive joint", pattern, every)


def _numbers(value: Any) -> list[float]:
    """Numbers of a limit; none if it is something else."""
    try:
        return [float(x) for x in np.atleast_1d(np.asarray(value, dtype=float))]
    except (TypeError, ValueError):
        return []


def _read(
    name: str, value: Any, ranges: dict[str, tuple[float, float]] | None, cones: dict[str, float]
) -> str:
    """Read a limit into ranges, or without these into cones; return what is wrong with it."""
    numbers = _numbers(value)
    if ranges is not None:
        if len(numbers) != 2 or not -math.inf < numbers[0] < numbers[1] < math.inf:
            return f"{name}: expected (smallest, largest), got {shortened(value)}"
        ranges[name] = (numbers[0], numbers[1])
        return ""
    if len(numbers) != 1 or not 0 < numbers[0] <= math.pi:
        return f"{name}: expected its largest angle from home, up to pi, got {shortened(value)}"
    cones[name] = numbers[0]
    return ""


def _require_straight(legs: ClosedFormLegs, needed: Sequence[DrivenLeg], what: str) -> None:
    bent = [leg.coordinate for leg in needed if not leg.is_straight]
    if bent:
        raise NotApplicable(
            f"limits on {what} need legs with a straight link between their two passive joints; "
            f"not so in '{legs.robot_name}': the legs of {', '.join(bent)}"
        )


@dataclass(frozen=True, eq=False)
class PoseMeasures:
    """What is computed at every pose, in symbols.

    Attributes:
        margins: By the name of the limit.
        determinant: Determinant of the legs' unit wrenches, if as many as freedoms; else NaN.
        dexterity: Reciprocal condition number of the driven speeds' map to the output's velocity.
        numbers: Symbols of the limits' numbers, in the order of `PoseLimits.numbers`.
    """

    margins: dict[str, SX]
    determinant: SX
    dexterity: SX
    numbers: SX

    @property
    def smallest(self) -> tuple[SX, SX]:
        """The smallest margin, and the number of the limit that has it."""
        least, active = SX(math.inf), SX(-1)
        for k, margin in enumerate(self.margins.values()):
            closer = margin < least
            least, active = ca.if_else(closer, margin, least), ca.if_else(closer, k, active)
        return least, active


def pose_measures(legs: ClosedFormLegs, limits: PoseLimits) -> PoseMeasures:
    """Margins of all limits, and how near a pose is to a singularity."""
    symbols = {name: SX.sym(name) for name in limits.numbers}
    margins: dict[str, SX] = {}
    ends: list[tuple[SX, SX]] = []
    rows: list[SX] = []
    rates: list[SX] = []
    for leg in legs.legs:
        name = leg.coordinate
        low, high = (symbols.get(f"{name} {end}") for end in ("min", "max"))
        middle = None if low is None or high is None else (low + high) / 2
        x, c, s, reach = leg.solve(middle=middle)
        if not leg.always_reaches:
            margins[f"{name} reach"] = reach
        if low is not None and high is not None:
            margins[f"{name} min"] = (x - low) / (high - low)
            margins[f"{name} max"] = (high - x) / (high - low)
        ends.append((leg.equation.start.at(c, s), leg.equation.end.at(c, s)))
        for joint, angle in _cone_angles(legs, leg, limits.cones, c, s).items():
            margins[f"{joint} angle"] = 1 - angle / symbols[f"{joint} angle"]
        rows.append(_wrench(legs, leg, c, s))
        rates.append(_rate(legs, leg, c, s))
    if limits.diameter is not None:
        for (i, a), (j, b) in combinations(enumerate(ends), 2):
            first, second = legs.legs[i].coordinate, legs.legs[j].coordinate
            gap = segment_distance(a, b)
            margins[f"{first} and {second}"] = gap / symbols["diameter"] - 1
    if legs.motion.kind == "restricted":
        rows += [velocity_row(legs, value) for value in legs.restrictions]
        rates += [SX(1)] * (len(rows) - len(rates))
    J = _scaled(legs, rows, symbols["length"])
    count, n = J.shape
    dexterity = SX(0)
    if count >= n:
        dexterity = reciprocal_condition(ca.vertcat(*[J[k, :] / rates[k] for k in range(count)]))
    if limits.condition is not None:
        margins["condition"] = dexterity * symbols["condition"] - 1
    whole = determinant(J) if count == n else SX(math.nan)
    return PoseMeasures(margins, whole, dexterity, ca.vertcat(*symbols.values()))


def _cone_angles(
    legs: ClosedFormLegs, leg: DrivenLeg, cones: Mapping[str, float], c: SX, s: SX
) -> dict[str, SX]:
    """Angles of a straight leg against its direction at home, seen from either end, by joint."""
    e = leg.equation
    ends = [(e.near, True), (e.far, False)]
    wanted = [(joint, near) for end, near in ends for joint in end.joints if joint in cones]
    if not wanted:
        return {}
    span = e.far.point - e.near.point
    along = span / np.linalg.norm(span)
    seen = e.end.at(c, s) - e.start.at(c, s)
    seen = seen / ca.norm_2(seen)
    base = MovedPoint(
        *map(SX, displaced(e.driven if e.place == 0 else None, along, is_point=False))
    )
    moved = displaced(e.driven if e.place == 2 else None, along, -1.0, is_point=False)
    top = MovedPoint(*(legs.pose.vector(part) for part in moved))
    return {
        joint: ca.acos(ca.fmax(-1, ca.fmin(1, ca.dot(seen, (base if near else top).at(c, s)))))
        for joint, near in wanted
    }


def _wrench(legs: ClosedFormLegs, leg: DrivenLeg, c: SX, s: SX) -> SX:
    """Row of the pose's velocity in the equation of a leg: velocity, angular velocity.

    Of a distance it is the unit force along the line of the two points.
    """
    e, pose = leg.equation, legs.pose
    if leg.drive.distance:
        line = e.end.at(c, s) - e.start.at(c, s)
        line = line / ca.norm_2(line)
        return ca.horzcat(line.T, ca.cross(e.end.at(c, s) - pose.r, line).T)
    own = SX.sym("cs", 2)
    row = velocity_row(legs, leg.drive.at(own[0], own[1]))
    return ca.substitute(row, own, ca.vertcat(c, s))


def _rate(legs: ClosedFormLegs, leg: DrivenLeg, c: SX, s: SX) -> SX:
    """Size of the driven speed's coefficient beside the row of `_wrench`; never quite zero."""
    e, drive = leg.equation, leg.drive
    slope = drive.sine * c - drive.cosine * s if leg.turns else drive.cosine + 2 * drive.square * c
    least = NEGLIGIBLE
    if drive.distance:
        slope = slope / (2 * ca.norm_2(e.end.at(c, s) - e.start.at(c, s)))
        least *= legs.size if leg.turns else 1.0
    return ca.fmax(ca.fabs(slope), least)


def velocity_row(legs: ClosedFormLegs, value: SX) -> SX:
    """Derivative of a function of the pose by velocity and angular velocity."""
    pose = legs.pose
    by_rotation = ca.reshape(ca.jacobian(value, ca.vec(pose.R)), 3, 3)
    spin = sum((ca.cross(pose.R[:, k], by_rotation[:, k]) for k in range(3)), SX.zeros(3))
    return ca.densify(ca.horzcat(ca.jacobian(value, pose.r), spin.T))


def _scaled(legs: ClosedFormLegs, rows: list[SX], length: SX) -> SX:
    """Rows in the freedoms of the output, angular velocities times a length."""
    motion = legs.motion
    J = ca.vertcat(*rows)
    if motion.kind == "spherical":
        # about the centre, of which the rows hold the velocity as well
        arm = legs.pose.r - SX(motion.centre)
        return J[:, 3:] + ca.vertcat(*[ca.cross(arm, J[k, :3].T).T for k in range(J.shape[0])])
    scaled = ca.horzcat(J[:, :3], J[:, 3:] / length)
    return ca.mtimes(scaled, SX(motion.basis))


def segment_distance(a: tuple[SX, SX], b: tuple[SX, SX]) -> SX:
    """Distance of two segments."""
    d1, d2, r = a[1] - a[0], b[1] - b[0], a[0] - b[0]
    A, B, C = ca.dot(d1, d1), ca.dot(d1, d2), ca.dot(d2, d2)
    D, E = ca.dot(d1, r), ca.dot(d2, r)

    def clip(x: SX) -> SX:
        return ca.fmax(0, ca.fmin(1, x))

    free = A * C - B * B
    s = clip((B * E - C * D) / ca.fmax(free, 1e-30))
    t = clip((B * s + E) / C)
    s = clip((B * t - D) / A)
    gap = r + s * d1 - t * d2
    return ca.sqrt(ca.dot(gap, gap))
