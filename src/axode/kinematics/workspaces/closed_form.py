r"""Driven coordinates of a pose in closed form, leg by leg, in symbols.

For a revolute, A + B cos x + C sin x = 0 has the solutions

.. math:: \cos x = (-A B \pm C s) / h^2, \quad \sin x = (-A C \mp B s) / h^2,

with h^2 = B^2 + C^2 and s^2 = h^2 - A^2. Where s vanishes, the two solutions meet: the leg is
singular, and beyond it cannot reach the pose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    ScalarEquation,
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
from axode.numerics.rank import choose_columns, rank
from axode.numerics.rotations import to_angles
from axode.numerics.tolerances import NEGLIGIBLE, PRODUCT_ROUNDING, RANK, ROUNDING, SEVEN_DIGITS

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.kinematics.robot_kinematics import Kinematics


Array = npt.NDArray[np.float64]
SX = ca.SX
NEARLY = 1e6  # times what counts as the same point: a thousandth of the robot's size
NEWTON_STEPS = 8  # to complete a pose; poses far from home need about five
_LEGS: WeakKeyDictionary[Any, ClosedFormLegs] = WeakKeyDictionary()
BRANCHES = ("home", "all")


@dataclass(frozen=True, eq=False)
class DrivenLeg:
    """A leg with one driven coordinate.

    Attributes:
        equation: Its equations.
        joint: The driven joint.
        drive: The equation of the driven coordinate.
        coordinate: Name of the driven coordinate.
        home: Its value at home.
        sign: Sign of the root in the solution that home has.
    """

    equation: LegEquation
    joint: HomeScrew
    drive: ScalarEquation
    coordinate: str
    home: float
    sign: float

    @property
    def turns(self) -> bool:
        """Return whether the driven joint is a revolute."""
        return self.joint.kind == "turn"

    @property
    def is_straight(self) -> bool:
        """Return whether the leg's two points are joined by a straight link."""
        e = self.equation
        if e.near.slides or e.far.slides or not self.drive.distance:
            return False
        return e.place != 1 or (not self.turns and self._on_axis)

    @property
    def _on_axis(self) -> bool:
        """Return whether a sliding leg keeps its direction while it changes its length."""
        span = self.equation.far.point - self.equation.near.point
        across = np.linalg.norm(np.cross(span, self.joint.axis))
        return bool(across <= NEGLIGIBLE * np.linalg.norm(span))

    @property
    def always_reaches(self) -> bool:
        """Return whether there is a solution at every pose."""
        keeps_direction = self.equation.place == 1 and self._on_axis
        return not self.turns and (not self.drive.square or keeps_direction)

    def solve(self, sign: float = 1.0, middle: SX | None = None) -> tuple[SX, SX, SX, SX]:
        """Driven coordinate, its two functions in `ScalarEquation`, and how far it is reached.

        Args:
            sign: 1 for the solution that home has, -1 for the other one.
            middle: Angles are returned within half a turn of it; of home unless given.

        Returns:
            The coordinate; c and s of its displacement from home; a number between -1 and 1 that is
            negative where there is no solution and zero where the two meet.
        """
        drive = self.drive
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
        points = np.array([self.motion.r_home, *(s.point for chain in chains for s in chain)])
        spread = np.linalg.norm(points - self.motion.r_home, axis=1)
        self.size = max(float(spread.max()), ROUNDING)
        others = {n: T[:3, 3] for n, T in robot.home_poses.items() if n != GROUND.name}
        away = np.array([*others.values()]) - others.pop(robot.output)
        self.length = math.sqrt(float((away**2).sum()) / max(len(others), 1)) or self.size
        r_home, R_home = self.motion.r_home, self.motion.R_home
        self.pose = PoseSymbols(
            SX.sym("r", 3), SX.sym("R", 3, 3), r_home, R_home, self.motion.samples
        )
        driven = tuple(robot.driven)
        home = dict(zip(model.coordinates, model.home, strict=True))
        held = [[s.coordinate for s in chain if s.coordinate in driven] for chain in chains]
        of_names = {
            name: [c for c, own in zip(chains, held, strict=True) if own == [name]]
            for name in driven
        }
        found = {name: self._equation(name, own) for name, own in of_names.items()}
        self._require_all([name for name, e in found.items() if e is None], of_names, chains)
        self.legs = [
            DrivenLeg(e, e.driven, e.drive, name, float(home[name]), self._home_sign(e))
            for name, e in found.items()
            if e is not None and e.driven is not None and e.drive is not None
        ]
        undriven = [c for c, own in zip(chains, held, strict=True) if not own]
        self.others = [e for c in undriven if (e := self._equation("", [c])) is not None]
        self.functions: dict[Any, Any] = {}  # compiled, by the structure of limits

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
        self,
        missing: Sequence[str],
        of_names: Mapping[str, list[list[HomeScrew]]],
        chains: list[list[HomeScrew]],
    ) -> None:
        if not missing:
            return
        alone = [name for name in missing if of_names[name]]
        others = [name for name in missing if not of_names[name]]
        lines = []
        if alone:
            lines.append(
                f"{', '.join(alone)}: the passive joints are not two groups of one revolute, of "
                "one slide, or of revolutes that meet in a point"
            )
            if any(split_chain(c, name, NEARLY * self.size) for name in alone for c in chains):
                lines[-1] += "; axes of revolutes nearly meet: let them meet"
        if others:
            listed = ", ".join(others)
            lines.append(f"{listed}: no chains of joints from the ground hold them each alone")
        raise NotApplicable(
            f"the legs of '{self.robot_name}' cannot be solved one by one for the pose of "
            f"'{self.output}':\n  " + "\n  ".join(lines) + "\n  "
            "Use inverse_kinematics, which finds one posture by iteration, all_inverse for a "
            "serial robot with as many joints as its pose has coordinates, or another output"
        )

    def _home_sign(self, equation: LegEquation) -> float:
        assert equation.drive is not None and equation.driven is not None
        turns = equation.driven.kind == "turn"
        wanted = equation.drive.sine if turns else equation.drive.cosine
        function = ca.Function("sign", [self.pose.r, self.pose.R], [wanted])
        return 1.0 if float(function(self.motion.r_home, self.motion.R_home)) >= 0 else -1.0

    @property
    def restrictions(self) -> list[SX]:
        """What vanishes at the poses that the output can have."""
        made = []
        for leg in self.legs:
            _, c, s, _ = leg.solve()
            made += [e.at(c, s) for e in leg.equation.restrictions]
        return made + [e.constant for other in self.others for e in other.restrictions]

    @cached_property
    def completed(self) -> tuple[SX, SX, SX]:
        """Position and rotation with the coordinates that follow solved for, and the error left."""
        if self.motion.kind != "restricted":
            return self.pose.r, self.pose.R, SX(0)
        return _completed(self)

    @cached_property
    def solutions(self) -> CompiledFunction:
        """The two solutions of every leg, how far they are reached, and the pose's error."""
        columns = []
        for leg in self.legs:
            first, _, _, reach = leg.solve()
            has_two = leg.turns or leg.drive.square
            columns += [first, leg.solve(-1.0)[0] if has_two else SX(np.nan), reach]
        return CompiledFunction(pose_tape(self, "leg_solutions", ca.vertcat(*columns)))

    @cached_property
    def offsets(self) -> CompiledFunction:
        """How far poses are from those that follow from their free coordinates, and the error."""
        (place, turn, error), pose = self.completed, [self.pose.r, self.pose.R]
        off = ca.norm_inf(ca.veccat((place - pose[0]) / self.size, turn - pose[1]))
        values = ca.densify(ca.vertcat(off, error))
        function = ca.Function("offsets", pose, [values], ["r", "R"], ["offsets"])
        return CompiledFunction(shaped_tape(function, {"r": 3, "R": 9}, "offsets", (2,)))


def _completed(legs: ClosedFormLegs) -> tuple[SX, SX, SX]:
    """Newton's steps, unrolled, for the pose coordinates that the others leave no choice."""
    pose, motion = legs.pose, legs.motion
    unknown = [k for k, name in enumerate(NAMES) if name not in motion.names]
    x = SX.sym("x", 6)
    r, R = x[:3], _rotation(x[3:])
    values = ca.vertcat(SX(0, 1), *legs.restrictions)
    rows = ca.substitute(values, ca.veccat(pose.r, pose.R), ca.veccat(r, R))
    J = ca.jacobian(rows, x)[:, unknown]
    home = np.concatenate([motion.r_home, to_angles(motion.R_home)])
    slopes = ca.Function("J", [x], [J])(home).full()
    if min(slopes.shape) < len(unknown) or rank(slopes, RANK) < len(unknown):
        free = ", ".join(motion.names)
        raise NotApplicable(
            f"the pose of '{legs.output}' does not follow from {free} by the equations of the "
            "legs.\n  Use inverse_kinematics, which finds one posture by iteration"
        )
    kept = choose_columns(slopes.T, len(unknown)).tolist()
    step = ca.Function("step", [x], [ca.solve(J[kept, :], rows[kept])])
    # poses by coordinates have those that follow as at home
    places = ca.vertsplit(ca.vertcat(pose.r, _angles(pose.R)))
    for _ in range(NEWTON_STEPS):
        change = step(ca.vertcat(*places))
        for k, place in enumerate(unknown):
            places[place] = places[place] - change[k]
    found = ca.vertcat(*places)
    error = ca.norm_inf(ca.Function("rows", [x], [rows])(found)) / legs.size
    return found[:3], _rotation(found[3:]), error


def _rotation(rpy: SX) -> SX:
    cr, cp, cy = (ca.cos(rpy[k]) for k in range(3))
    sr, sp, sy = (ca.sin(rpy[k]) for k in range(3))
    return ca.vertcat(
        ca.horzcat(cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        ca.horzcat(sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        ca.horzcat(-sp, cp * sr, cp * cr),
    )


def _angles(R: SX) -> SX:
    pitch = ca.atan2(-R[2, 0], ca.sqrt(R[0, 0] ** 2 + R[1, 0] ** 2))
    return ca.vertcat(ca.atan2(R[2, 1], R[2, 2]), pitch, ca.atan2(R[1, 0], R[0, 0]))


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


def inverse(
    robot: Kinematics, pose: Any, branch: Literal["home", "all"] = "home"
) -> dict[str, Array]:
    """Find the driven coordinates of poses of the output; see `Kinematics.inverse`."""
    if branch not in BRANCHES:
        raise UnknownName("inverse", "branch", branch, BRANCHES)
    legs = closed_form_legs(robot)
    r, R = as_poses(legs.motion, pose)
    if legs.motion.kind == "restricted" and not isinstance(pose, Mapping):
        off, error = np.moveaxis(legs.offsets(np.ascontiguousarray(r), by_rows(R)), -1, 0)
        worst = float(np.max(off, where=error < NEGLIGIBLE, initial=0.0))
        if worst > SEVEN_DIGITS:
            raise_off_motion(legs.motion, worst)
    batch = r.shape[:-1]
    values = legs.solutions(np.ascontiguousarray(r), by_rows(R))
    made = values[..., :-1].reshape(*batch, len(legs.legs), 3)
    known = np.isfinite(r).all(axis=-1, keepdims=True) & (values[..., -1:] < NEGLIGIBLE)
    missed = (made[..., 2] < -PRODUCT_ROUNDING) | ~known
    solutions = np.where(missed[..., np.newaxis], np.nan, made[..., :2])
    kept = (0,) if branch == "home" else (slice(None),)
    return {leg.coordinate: solutions[(..., k, *kept)] for k, leg in enumerate(legs.legs)}
