r"""Driven coordinates of a pose in closed form, leg by leg, in symbols.

For a revolute, A + B cos x + C sin x = 0 has the solutions

.. math:: \cos x = (-A B \pm C s) / h^2, \quad \sin x = (-A C \mp B s) / h^2,

with h^2 = B^2 + C^2 and s^2 = h^2 - A^2. Where s vanishes, the two solutions meet: the leg is
singular, and beyond it cannot reach the pose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import NotApplicable, UnknownName
from axode.kinematics.workspaces.leg_equations import (
    HomeScrew,
    LegEquation,
    PoseSymbols,
    leg_equation,
    serial_chains,
    split_chain,
)
from axode.kinematics.workspaces.pose_arguments import (
    NAMES,
    OutputMotion,
    as_poses,
    by_rows,
    output_motion,
    raise_off_motion,
)
from axode.mechanism.elements.bodies import GROUND
from axode.model.function_source import shaped_tape
from axode.numerics.tolerances import LAST_STEP, PRODUCT_ROUNDING, RANK, SEVEN_DIGITS

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.kinematics.robot_kinematics import Kinematics


Array = npt.NDArray[np.float64]
SX = ca.SX
NEARLY = 1e6  # times what counts as the same point: a thousandth of the robot's size
NEWTON_STEPS = 8  # to complete a pose; poses far from home need about five
_LEGS: WeakKeyDictionary[Any, ClosedFormLegs] = WeakKeyDictionary()
BRANCHES = ("home", "all")
_SOLUTIONS: WeakKeyDictionary[ClosedFormLegs, CompiledFunction] = WeakKeyDictionary()
_OFFSETS: WeakKeyDictionary[ClosedFormLegs, CompiledFunction] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class DrivenLeg:
    """A leg with one driven coordinate.

    Attributes:
        equation: The equation as text.
        coordinate: Name of the driven coordinate.
        home: Its value at home.
        sign: Sign of the root in the solution that home has.
    """

    equation: LegEquation
    coordinate: str
    home: float
    sign: float

    @property
    def turns(self) -> bool:
        """Return whether the driven joint is a revolute."""
        assert self.equation.driven is not None
        return self.equation.driven.kind == "turn"

    @property
    def has_two(self) -> bool:
        """Return whether the equation has two solutions."""
        drive = self.equation.drive
        return self.turns or (drive is not None and drive.square != 0.0)

    @property
    def is_straight(self) -> bool:
        """Return whether the leg's two points are joined by a straight link."""
        e = self.equation
        if e.near.slides or e.far.slides or e.drive is None or not e.drive.distance:
            return False
        return e.place != 1 or (not self.turns and self._on_axis)

    @property
    def _on_axis(self) -> bool:
        """Return whether a sliding leg keeps its direction while it changes its length."""
        assert self.equation.driven is not None
        span = self.equation.far.point - self.equation.near.point
        across = np.cross(span, self.equation.driven.axis)
        return float(np.linalg.norm(across)) <= 1e-9 * float(np.linalg.norm(span))

    @property
    def always_reaches(self) -> bool:
        """Return whether there is a solution at every pose."""
        drive = self.equation.drive
        assert drive is not None
        return not self.turns and (not drive.square or (self.equation.place == 1 and self._on_axis))

    def solve(self, sign: float = 1.0, middle: SX | None = None) -> tuple[SX, SX, SX, SX]:
        """Driven coordinate, its two functions in `ScalarEquation`, and how far it is reached.

        Args:
            sign: 1 for the solution that home has, -1 for the other one.
            middle: Angles are returned within half a turn of it; of home unless given.

        Returns:
            The coordinate; c and s of its displacement from home; a number between -1 and 1 that is
            negative where there is no solution and zero where the two meet.
        """
        drive = self.equation.drive
        assert drive is not None
        A, B, C, E = drive.constant, drive.cosine, drive.sine, drive.square
        sign *= self.sign
        if not self.turns:
            if not E:
                x = -A / B
                return self.home + x, x, SX(0), SX(1)
            free = B * B - 4 * A * E
            x = (-B + sign * ca.sqrt(ca.fmax(free, 0))) / (2 * E)
            return self.home + x, x, SX(0), free / (B * B + 4 * ca.fabs(A * E))
        h = B * B + C * C
        free = h - A * A
        s = sign * ca.sqrt(ca.fmax(free, 0))
        c, s = (C * s - A * B) / h, (-B * s - A * C) / h
        if middle is None:
            x = self.home + ca.atan2(s, c)
        else:
            cos, sin = ca.cos(middle - self.home), ca.sin(middle - self.home)
            x = middle + ca.atan2(s * cos - c * sin, c * cos + s * sin)
        return x, c, s, free / (h + A * A)


class ClosedFormLegs:
    """The legs of a robot, each with its equation.

    Args:
        robot: The robot.

    Attributes:
        motion: How its output moves.
        pose: Symbols of the output's pose.
        legs: One per driven coordinate, in their order.
        others: Equations of chains without a driven coordinate.
        size: Largest distance of a joint from the output's origin at home [m].
        length: Root mean square distance of the other bodies' frames from the output's at home [m].

    Raises:
        NotApplicable: naming the legs that have no closed form.
    """

    def __init__(self, robot: Kinematics) -> None:
        self.robot_name, self.output = robot.mechanism.name, robot.output
        model = robot.model
        self.motion: OutputMotion = output_motion(model, robot.output)
        chains = serial_chains(robot)
        if self.motion.kind == "point":  # its orientation is whatever it is
            ball = [HomeScrew("turn", self.motion.r_home, axis, "output") for axis in np.eye(3)]
            chains = [chain + ball for chain in chains]
        self.size = _size(chains, self.motion)
        self.length = _length(robot) or self.size
        self.pose = PoseSymbols.at(self.motion.r_home, self.motion.R_home, self.motion.samples)
        driven = tuple(robot.driven)
        home = dict(zip(model.coordinates, model.home, strict=True))
        held = [[s.coordinate for s in chain if s.coordinate in driven] for chain in chains]
        found = {
            name: self._equation(
                name, [c for c, own in zip(chains, held, strict=True) if own == [name]]
            )
            for name in driven
        }
        self._require_all(found, chains)
        self.legs = [
            DrivenLeg(equation, name, float(home[name]), self._home_sign(equation))
            for name, equation in found.items()
            if equation is not None
        ]
        undriven = [c for c, own in zip(chains, held, strict=True) if not own]
        self.others = [e for c in undriven if (e := self._equation("", [c])) is not None]

    def _equation(self, name: str, chains: list[list[HomeScrew]]) -> LegEquation | None:
        """Equation of the first chain that has one."""
        for chain in chains:
            split = split_chain(chain, name, self.size)
            if split is not None:
                made = leg_equation(self.pose, *split, self.size)
                if made.drive is not None or not name:
                    return made
        return None

    def _require_all(
        self, found: dict[str, LegEquation | None], chains: list[list[HomeScrew]]
    ) -> None:
        missing = [name for name, equation in found.items() if equation is None]
        if not missing:
            return
        alone = [
            name
            for name in missing
            if any([s.coordinate for s in c if s.coordinate in found] == [name] for c in chains)
        ]
        others = [name for name in missing if name not in alone]
        lines = []
        if alone:
            lines.append(
                f"{', '.join(alone)}: the passive joints are not two groups of one revolute, of "
                "one slide, or of revolutes that meet in a point"
            )
            if any(split_chain(c, name, NEARLY * self.size) for name in alone for c in chains):
                lines[-1] += "; axes of revolutes nearly meet: let them meet"
        if others:
            lines.append(
                f"{', '.join(others)}: no chains of joints from the ground hold them each alone"
            )
        raise NotApplicable(
            f"the legs of '{self.robot_name}' cannot be solved one by one for the pose of "
            f"'{self.output}':\n  " + "\n  ".join(lines) + "\n  "
            "Use inverse_kinematics, which finds one posture by iteration, all_inverse for a "
            "serial robot with as many joints as its pose has coordinates, or another output"
        )

    def _home_sign(self, equation: LegEquation | None) -> float:
        assert equation is not None and equation.drive is not None and equation.driven is not None
        drive = equation.drive
        wanted = drive.sine if equation.driven.kind == "turn" else drive.cosine
        function = ca.Function("sign", [self.pose.r, self.pose.R], [wanted])
        value = float(function(self.motion.r_home, self.motion.R_home))
        return 1.0 if value >= 0 else -1.0

    @cached_property
    def completed(self) -> tuple[SX, SX, SX]:
        """Position and rotation with the coordinates that follow solved for, and the error left."""
        if self.motion.kind != "restricted":
            return self.pose.r, self.pose.R, SX(0)
        return _completed(self)


def _size(chains: list[list[HomeScrew]], motion: OutputMotion) -> float:
    points = [screw.point for chain in chains for screw in chain] or [motion.r_home]
    spread = np.array([*points, motion.r_home]) - motion.r_home
    return max(float(np.linalg.norm(spread, axis=1).max()), 1e-12)


def _length(robot: Kinematics) -> float:
    origin = robot.home_poses[robot.output][:3, 3]
    others = [
        pose[:3, 3]
        for name, pose in robot.home_poses.items()
        if name not in (robot.output, GROUND.name)
    ]
    return math.sqrt(float(np.mean(np.sum((np.array(others) - origin) ** 2, axis=1))))


def _completed(legs: ClosedFormLegs) -> tuple[SX, SX, SX]:
    """Newton's steps, unrolled, for the pose coordinates that the others leave no choice."""
    pose, motion = legs.pose, legs.motion
    residuals = [
        e.at(c, s)
        for leg in legs.legs
        for _, c, s, _ in [leg.solve()]
        for e in leg.equation.restrictions
    ]
    residuals += [e.constant for other in legs.others for e in other.restrictions]
    unknown = [k for k, name in enumerate(NAMES) if name not in motion.names]
    x = SX.sym("x", 6)
    r, R = x[:3], _rotation(x[3:])
    rows = ca.substitute(
        ca.vertcat(SX(0, 1), *residuals), ca.veccat(pose.r, pose.R), ca.veccat(r, R)
    )
    J = ca.jacobian(rows, x)[:, unknown]
    home = np.concatenate([motion.r_home, _angles(motion.R_home)])
    kept = _independent_rows(ca.Function("J", [x], [J])(home).full(), len(unknown))
    if len(kept) < len(unknown):
        free = ", ".join(motion.names)
        raise NotApplicable(
            f"the pose of '{legs.output}' does not follow from {free} by the equations of the "
            "legs.\n  Use inverse_kinematics, which finds one posture by iteration"
        )
    step = ca.Function("step", [x], [ca.solve(J[kept, :], rows[kept])])
    # poses by coordinates have those that follow as at home
    values = ca.vertsplit(ca.vertcat(pose.r, _symbolic_angles(pose.R)))
    for _ in range(NEWTON_STEPS):
        change = step(ca.vertcat(*values))
        for k, place in enumerate(unknown):
            values[place] = values[place] - change[k]
    found = ca.vertcat(*values)
    error = ca.norm_inf(ca.Function("rows", [x], [rows])(found)) / legs.size
    return found[:3], _rotation(found[3:]), error


def _independent_rows(J: Array, count: int) -> list[int]:
    """Rows that determine the unknowns, the strongest first."""
    left, found = J.copy(), []
    scale = max(float(np.linalg.norm(J, axis=1).max(initial=0.0)), 1e-300)
    for _ in range(count):
        sizes = np.linalg.norm(left, axis=1)
        k = int(np.argmax(sizes)) if len(sizes) else 0
        if not len(sizes) or sizes[k] < RANK * scale:
            break
        found.append(k)
        row = left[k] / sizes[k]
        left = left - np.outer(left @ row, row)
    return sorted(found)


def _rotation(rpy: SX) -> SX:
    cr, cp, cy = (ca.cos(rpy[k]) for k in range(3))
    sr, sp, sy = (ca.sin(rpy[k]) for k in range(3))
    return ca.vertcat(
        ca.horzcat(cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        ca.horzcat(sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        ca.horzcat(-sp, cp * sr, cp * cr),
    )


def _symbolic_angles(R: SX) -> SX:
    pitch = ca.atan2(-R[2, 0], ca.sqrt(R[0, 0] ** 2 + R[1, 0] ** 2))
    return ca.vertcat(ca.atan2(R[2, 1], R[2, 2]), pitch, ca.atan2(R[1, 0], R[0, 0]))


def _angles(R: Array) -> Array:
    return np.array(ca.DM(_symbolic_angles(SX(R)))).ravel()


def closed_form_legs(robot: Kinematics) -> ClosedFormLegs:
    """Return the legs of a robot, made once.

    Raises:
        NotApplicable: naming the legs that have no closed form.
    """
    if robot not in _LEGS:
        _LEGS[robot] = ClosedFormLegs(robot)
    return _LEGS[robot]


def pose_tape(legs: ClosedFormLegs, name: str, values: Any, numbers: Any = None) -> Tape:
    """Tape from position r, rotation R (by rows) and numbers to values in symbols of these.

    The last value is the error of a pose that had to be completed, relative to the robot's size.
    """
    pose = [legs.pose.r, legs.pose.R]
    more = [] if numbers is None else [numbers]
    error = ca.SX(0)
    if legs.motion.kind == "restricted":
        r, R, error = legs.completed
        values = ca.Function("at", [*pose, *more], [values])(r, R, *more)
    values = ca.densify(ca.vertcat(values, error))
    sizes = {"r": 3, "R": 9} | ({} if numbers is None else {"numbers": numbers.shape[0]})
    function = ca.Function(name, [*pose, *more], [values], list(sizes), [name])
    return shaped_tape(function, sizes, name, (values.shape[0],))


def leg_solutions(legs: ClosedFormLegs) -> CompiledFunction:
    """Compile the two solutions of every leg, how far they are reached, and the pose's error."""
    if legs not in _SOLUTIONS:
        columns = []
        for leg in legs.legs:
            first, _, _, reach = leg.solve()
            columns += [first, leg.solve(-1.0)[0] if leg.has_two else ca.SX(np.nan), reach]
        tape = pose_tape(legs, "leg_solutions", ca.vertcat(*columns))
        _SOLUTIONS[legs] = CompiledFunction(tape)
    return _SOLUTIONS[legs]


def inverse(
    robot: Kinematics, pose: Any, branch: Literal["home", "all"] = "home"
) -> dict[str, Array]:
    """Find the driven coordinates of poses of the output; see `Kinematics.inverse`."""
    if branch not in BRANCHES:
        raise UnknownName("inverse", "branch", branch, BRANCHES)
    legs = closed_form_legs(robot)
    r, R = as_poses(legs.motion, pose)
    if legs.motion.kind == "restricted" and not isinstance(pose, Mapping):
        _check_completed(legs, r, R)
    batch = r.shape[:-1]
    values = leg_solutions(legs)(np.ascontiguousarray(r), by_rows(R))
    made = values[..., :-1].reshape(*batch, len(legs.legs), 3)
    known = np.isfinite(r).all(axis=-1, keepdims=True) & (values[..., -1:] < LAST_STEP)
    missed = (made[..., 2] < -PRODUCT_ROUNDING) | ~known
    solutions = np.where(missed[..., np.newaxis], np.nan, made[..., :2])
    if branch == "home":
        solutions = solutions[..., 0]
        return {leg.coordinate: solutions[..., k] for k, leg in enumerate(legs.legs)}
    return {leg.coordinate: solutions[..., k, :] for k, leg in enumerate(legs.legs)}


def _check_completed(legs: ClosedFormLegs, r: Array, R: Array) -> None:
    """Check that whole poses are those that follow from their freely chosen coordinates.

    Raises:
        InvalidArgument: if the output cannot have one of them.
    """
    if legs not in _OFFSETS:
        place, turn, error = legs.completed
        off = ca.norm_inf(ca.veccat((place - legs.pose.r) / legs.size, turn - legs.pose.R))
        pose, values = [legs.pose.r, legs.pose.R], ca.densify(ca.vertcat(off, error))
        function = ca.Function("offsets", pose, [values], ["r", "R"], ["offsets"])
        _OFFSETS[legs] = CompiledFunction(shaped_tape(function, {"r": 3, "R": 9}, "offsets", (2,)))
    off, error = np.moveaxis(_OFFSETS[legs](np.ascontiguousarray(r), by_rows(R)), -1, 0)
    worst = float(np.max(off, where=error < LAST_STEP, initial=0.0))
    if worst > SEVEN_DIGITS:
        raise_off_motion(legs.motion, worst)
