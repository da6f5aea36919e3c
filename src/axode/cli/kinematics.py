"""`axode kinematics`, `reach`, `workspace` and `design`: postures, reach and geometry of robots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from axode.cli.model_sources import Built, Robot
from axode.cli.options import (
    WRONG_DATA,
    AsJson,
    PlotFile,
    Result,
    Texts,
    numbers,
    ranges,
    refuse,
    words,
)
from axode.cli.output import check_writable, format_number, print_json, show_table
from axode.errors import NotApplicable, counted
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.design.study import Study
    from axode.kinematics.postures.postures import Postures
    from axode.kinematics.reaching.inverse_kinematics import InverseKinematicsResult
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.model.model import Model


def kinematics(
    *,
    robot: Robot,
    values: Texts = None,
    pose: Texts = None,
    parameter: Texts = None,
    plot: PlotFile = None,
    result: Result,
) -> None:
    """Find all postures of a robot: its legs, its assembly modes, which of them are real.

    axode kinematics dietmaier_platform

    axode kinematics planar_3rrr --values theta1=-0.5 --plot modes.png

    Options:
        values NAME=VALUE: Driven coordinates; those at home by default.
        pose NAME=VALUE: x, y, z (metres), roll, pitch, yaw (radians) of the output, at home by
            default: all configurations of a serial robot that reach it.
    """
    made = robot.kinematics()
    if pose:
        if values or parameter:
            raise typer.BadParameter("give a pose, or values and parameters", param_hint="--pose")
        found = made.all_inverse(numbers("--pose", pose))
    else:
        found = made.direct(
            numbers("--values", values), parameters=numbers("--parameter", parameter) or None
        )
    legs = _legs(made)
    data = {
        "mechanism": made.mechanism.name,
        "output": made.output,
        "mobility": made.mobility,
        "driven": list(made.driven),
        "legs": legs,
        **found.to_dict(),
    }
    result.deliver(data, lambda: _show_postures(made, legs, found))
    if plot is not None:
        found.plot(save=plot)


def _legs(robot: Kinematics) -> dict[str, str]:
    """Joints of every leg by its name; none where chains branch on the way."""
    try:
        return {leg.name: leg.letters for leg in robot.legs}
    except NotApplicable:
        return {}


def _show_postures(robot: Kinematics, legs: dict[str, str], found: Postures) -> None:
    entries: list[tuple[str, Any]] = [
        ("output", robot.output),
        ("mobility", robot.mobility),
        ("driven", ", ".join(robot.driven)),
        ("legs", ", ".join(f"{letters} ({name})" for name, letters in legs.items())),
    ]
    for label, text in entries:
        if text:
            print(f"{label:<10}{text}")
    print()
    print(found)


# reach --------------------------------------------------------------------------------------------


TARGET = "NAME=X,Y,Z or NAME=X,Y,Z,ROLL,PITCH,YAW of a body, NAME=VALUE of a coordinate or measure"


@dataclass(frozen=True)
class Search:
    """Where a posture is searched for."""

    start: Texts = None
    limits: Texts = None
    hold: Texts = None
    attempts: int = 10

    def read(self) -> dict[str, Any]:
        """Return the arguments of `inverse_kinematics`."""
        return {
            "start": numbers("--start", self.start),
            "limits": ranges("--limits", self.limits, (2,)),
            "hold": words(self.hold),
            "attempts": self.attempts,
        }


def reach(
    *, built: Built, target: Texts = None, search: Search, parameter: Texts = None, result: Result
) -> None:
    """Find a posture in which bodies, coordinates or measures are where they are wanted.

    axode reach seven_axis_arm --target link7=0.4,0.1,0.6,pi,0,0

    axode reach mobile_manipulator --target gripper=2,1,0.5 --hold theta1

    The exit code is 1 if not all targets can be met; what is shown then is the nearest posture.

    Options:
        target NAME=VALUES: Where to bring what, in metres and radians: NAME=X,Y,Z or
            NAME=X,Y,Z,ROLL,PITCH,YAW of a body, NAME=VALUE of a coordinate or measure.
        start NAME=VALUE: Posture to stay near; home by default.
        limits NAME=LOW:HIGH: Limits of coordinates, in radians or metres; none by default.
        hold NAME,NAME: Coordinates that keep their values.
        attempts COUNT: Starts, random ones after the first.
    """
    from axode.kinematics.reaching.inverse_kinematics import inverse_kinematics

    if not target:
        raise typer.BadParameter(f"give at least one, {TARGET}", param_hint="--target")
    targets = dict(_target(text) for text in target)
    options = search.read()
    model = built.model()
    found = inverse_kinematics(
        model, targets, **options, parameters=numbers("--parameter", parameter) or None
    )
    data = {
        "model": model.name,
        "reached": bool(found.reached),
        "errors": {name: float(error) for name, error in found.errors.items()},
        "coordinates": dict(zip(model.coordinates, found.q.tolist(), strict=True)),
        "at_limit": list(found.limits),
        "residual": float(found.residual),
        "iterations": int(found.iterations),
        "attempts": int(found.attempts),
    }
    result.deliver(data, lambda: _show_reached(model, found))
    if not found.reached:
        raise typer.Exit(WRONG_DATA)


def _show_reached(model: Model, found: InverseKinematicsResult) -> None:
    units = dict(zip(model.coordinates, facts_of(model).coordinate_units, strict=True))
    rows = [
        (name, format_number(x), units[name], "at its limit" if name in found.limits else "")
        for name, x in zip(model.coordinates, found.q.tolist(), strict=True)
    ]
    errors = ", ".join(f"{name} {float(error):.2g}" for name, error in found.errors.items())
    what = "All targets are met" if found.reached else "Not all targets can be met"
    show_table(
        ("coordinate", ">value", "unit", ""),
        rows,
        title=f"{model.name}, {counted(int(found.iterations), 'step')}",
        note=f"{what}; errors: {errors}.",
    )


def _target(text: str) -> tuple[str, Any]:
    from axode.kinematics.reaching.goals import Target

    name, values = _coordinates("--target", text, ",")
    if len(values) == 6:
        return name, Target(position=values[:3], rotation=values[3:])
    if len(values) in (1, 3):
        return name, values if len(values) == 3 else values[0]
    raise typer.BadParameter(
        f"'{text}' has {len(values)} numbers; expected {TARGET}", param_hint="--target"
    )


def _coordinates(option: str, text: str, separator: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint=option)
    name = name.strip()
    return name, [numbers(option, [f"{name}={x}"])[name] for x in values.split(separator)]


# workspace ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Volume:
    """Which poses are looked at, and which of them a robot may take."""

    kind: str = "constant-orientation"
    at: Texts = None
    orientations: Texts = None
    limits: Texts = None
    diameter: float | None = None
    condition: float | None = None
    length: float | None = None
    bounds: Texts = None
    grid: int = 100

    def read(self) -> dict[str, Any]:
        """Return the arguments of `Kinematics.workspace`."""
        return vars(self) | {
            "at": numbers("--at", self.at),
            "orientations": ranges("--orientations", self.orientations, (3,)) or None,
            "limits": ranges("--limits", self.limits, (1, 2)),
            "bounds": ranges("--bounds", self.bounds, (2,)),
        }


def workspace(
    *,
    robot: Robot,
    volume: Volume,
    out: Path | None = None,
    plot: PlotFile = None,
    show: str = "limits",
    as_json: AsJson = False,
) -> None:
    """Find the workspace of a parallel robot: size, limits that end it, singularities.

    axode workspace flight_simulator --limits l_*=0.9:1.5,ball_*=0.8 --plot ws.png

    axode workspace five_bar --output tool --show dexterity --plot ws.png

    Options:
        kind KIND: Kind of workspace: constant-orientation, orientation, reachable, dexterous, or
            pose for all pose coordinates of a robot with up to three.
        at NAME=VALUE: Pose coordinates that are held; home by default.
        orientations NAME=LOW:HIGH:COUNT: Angles for reachable and dexterous workspaces.
        limits NAME=LOW:HIGH|NAME=ANGLE: Limits of driven coordinates, and largest angles of passive
            joints from home; 'l_*' stands for all names that begin so.
        diameter METRES: Diameter of the legs, which may not touch; lines by default.
        condition NUMBER: Largest condition number; any by default.
        length METRES: Characteristic length; the robot's size by default.
        bounds NAME=LOW:HIGH: Bounds of the grid; found by default.
        grid COUNT: Cells of the grid along each axis.
        out FILE: File for the grid and the boundary (.npz) or the boundary (.stl, .obj).
        show limits|margin|dexterity|regions: Colours of the plot.
    """
    check_writable(out, (".npz", ".stl", ".obj"))
    if plot is None:
        refuse("it needs --plot", "show")
    made = robot.kinematics().workspace(**volume.read())
    if plot is not None:
        made.plot(show, save=plot)  # type: ignore[arg-type]
    if out is not None:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
    else:
        print(made)


# design -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What a robot is designed for."""

    poses: Texts = None
    limits: Texts = None
    margins: Texts = None
    components: Texts = None
    length: float | None = None

    def study(self, robot: Robot, vary: Texts) -> Study:
        """Set up the choice of parameters."""
        from axode.design.study import Study

        made = robot.kinematics()
        axes: dict[str, Any] = ranges("--poses", self.poses, (1, 3))
        grid = np.meshgrid(*axes.values(), indexing="ij")
        return Study(
            made,
            ranges("--vary", vary, (2,)),
            dict(zip(axes, grid, strict=True)),
            limits=ranges("--limits", self.limits, (2,)),
            margins=ranges("--margins", self.margins, (1,)),
            components=words(self.components) or None,
            length=self.length,
        )


@dataclass(frozen=True)
class Sampling:
    """How many designs are looked at."""

    starts: int = 6
    samples: int = 64
    seed: int = 0


def design(
    *,
    robot: Robot,
    vary: Texts = None,
    task: Task,
    cost: str = "dexterity",
    sampling: Sampling,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Find the geometry of a robot that serves the poses of a task best.

    axode design planar_3rrr --vary l1=0.2:0.5 --poses x=-0.05:0.05:3

    axode design planar_3rrr --vary l1=0.2:0.5,l2=0.2:0.5 --out best.toml

    Options:
        vary NAME=LOW:HIGH: Parameters to choose, and their bounds.
        poses NAME=LOW:HIGH:COUNT: Poses of the task, all combinations, NAME=VALUE for one value;
            home by default.
        limits NAME=LOW:HIGH: Limits of coordinates and measures at all poses; 'l_*' stands for all
            names that begin so.
        margins NAME=VALUE: Smallest margins from singularities: serial, parallel, mobility or
            passive.
        cost dexterity|force|stiffness|workspace: What is made best: the smallest dexterity or
            stiffness, the largest force of the motors under a unit load, the part of the poses that
            is reached.
        components NAME,NAME: Velocities of the output that count: wx, wy, wz, vx, vy, vz.
        length METRES: Length by which turning compares with moving; the robot's size by default.
        starts COUNT: How many designs are followed downhill.
        samples COUNT: How many designs are drawn from the bounds.
        seed NUMBER: Seed of the draws.
        out FILE: File for the description with the values that were found (.toml).
    """
    check_writable(out, (".toml",))
    if not vary:
        raise typer.BadParameter("give at least one, NAME=LOW:HIGH", param_hint="--vary")
    best = task.study(robot, vary).optimize(cost, **vars(sampling))  # type: ignore[arg-type]
    if out is not None:
        best.mechanism.save(out)
    if as_json:
        print_json(best.to_dict())
    else:
        print(best)
