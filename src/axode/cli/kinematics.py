"""`axode kinematics`, `reach` and `workspace`: postures, and where a robot can bring its bodies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, mechanism_from, model_from
from axode.cli.options import AsJson, JsonFile, Parameters, Plot, numbers, ranges, refuse, words
from axode.cli.output import check_writable, deliver, print_json
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.kinematics.postures.postures import Postures
    from axode.kinematics.reaching.inverse_kinematics import InverseKinematicsResult
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.model.model import Model


def kinematics(
    source: Source,
    option: Options = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Body that the robot moves; found by default."),
    ] = None,
    driven: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Driven coordinates; those with motors by default."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Driven coordinates; those at home by default."),
    ] = None,
    pose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="x, y, z (metres), roll, pitch, yaw (radians) of the output, at home by "
            "default: all configurations of a serial robot that reach it.",
        ),
    ] = None,
    parameter: Parameters = None,
    plot: Plot = None,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """Find all postures of a robot: its legs, its assembly modes, which of them are real.

    axode kinematics dietmaier_platform

    axode kinematics planar_3rrr --values theta1=-0.5 --plot modes.png
    """
    from axode.kinematics.robot_kinematics import Kinematics

    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    robot = Kinematics(mechanism_from(source, option), output, words(driven) or None)
    if pose:
        if values or parameter:
            raise typer.BadParameter("give a pose, or values and parameters", param_hint="--pose")
        found = robot.all_inverse(numbers("--pose", pose))
    else:
        found = robot.direct(
            numbers("--values", values), parameters=numbers("--parameter", parameter) or None
        )
    legs = _legs(robot)
    data = {
        "mechanism": robot.mechanism.name,
        "output": robot.output,
        "mobility": robot.mobility,
        "driven": list(robot.driven),
        "legs": legs,
        **found.to_dict(),
    }
    deliver(data, lambda: _show_postures(robot, legs, found), as_json=as_json, out=out)
    if plot is not None:
        found.plot(save=plot)


def _legs(robot: Kinematics) -> dict[str, str]:
    """Joints of every leg by its name; none where chains branch on the way."""
    from axode.errors import NotApplicable

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


def reach(
    source: Source,
    option: Options = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES", help=f"Where to bring what, in metres and radians: {TARGET}."
        ),
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Posture to stay near; home by default."),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Limits of coordinates, in radians or metres; none by default.",
        ),
    ] = None,
    hold: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Coordinates that keep their values."),
    ] = None,
    attempts: Annotated[
        int, typer.Option(metavar="COUNT", help="Starts, random ones after the first.")
    ] = 10,
    parameter: Parameters = None,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """Find a posture in which bodies, coordinates or measures are where they are wanted.

    axode reach seven_axis_arm --target link7=0.4,0.1,0.6,pi,0,0

    axode reach mobile_manipulator --target gripper=2,1,0.5 --hold theta1
    """
    from axode.kinematics.reaching.inverse_kinematics import inverse_kinematics

    if not target:
        raise typer.BadParameter(f"give at least one, {TARGET}", param_hint="--target")
    targets = dict(_target(text) for text in target)
    bounded = ranges("--limits", limits, (2,))
    model = model_from(source, option)
    found = inverse_kinematics(
        model,
        targets,
        start=numbers("--start", start),
        limits=bounded,
        hold=words(hold),
        attempts=attempts,
        parameters=numbers("--parameter", parameter) or None,
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
    deliver(data, lambda: _show_reached(model, found), as_json=as_json, out=out)


def _show_reached(model: Model, found: InverseKinematicsResult) -> None:
    from axode.cli.output import format_number, show_table
    from axode.errors import counted

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


PICTURES = (".png", ".svg", ".pdf")


def workspace(
    source: Source,
    option: Options = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Body that the robot moves; found by default."),
    ] = None,
    driven: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Driven coordinates; those with motors by default."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Kind of workspace: constant-orientation, orientation, reachable, "
            "dexterous, or pose for all pose coordinates of a robot with up to three.",
        ),
    ] = "constant-orientation",
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Pose coordinates that are held; home by default."),
    ] = None,
    orientations: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH:COUNT", help="Angles for reachable and dexterous workspaces."
        ),
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH|NAME=ANGLE",
            help="Limits of driven coordinates, and largest angles of passive joints from "
            "home; 'l_*' stands for all names that begin so.",
        ),
    ] = None,
    diameter: Annotated[
        float | None,
        typer.Option(
            metavar="METRES", help="Diameter of the legs, which may not touch; lines by default."
        ),
    ] = None,
    condition: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Largest condition number; any by default."),
    ] = None,
    length: Annotated[
        float | None,
        typer.Option(metavar="METRES", help="Characteristic length; the robot's size by default."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LOW:HIGH", help="Bounds of the grid; found by default."),
    ] = None,
    grid: Annotated[
        int, typer.Option(metavar="COUNT", help="Cells of the grid along each axis.")
    ] = 100,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the grid and the boundary (.npz) or the boundary (.stl, .obj).",
        ),
    ] = None,
    plot: Plot = None,
    show: Annotated[
        str, typer.Option(metavar="limits|margin|dexterity|regions", help="Colours of the plot.")
    ] = "limits",
    as_json: AsJson = False,
) -> None:
    """Find the workspace of a parallel robot: size, limits that end it, singularities.

    axode workspace flight_simulator --limits l_*=0.9:1.5,ball_*=0.8 --plot ws.png

    axode workspace five_bar --output tool --show dexterity --plot ws.png
    """
    from axode.kinematics.robot_kinematics import Kinematics

    check_writable(out, (".npz", ".stl", ".obj"))
    check_writable(plot, PICTURES, "--plot")
    if plot is None:
        refuse("it needs --plot", "show")
    robot = Kinematics(mechanism_from(source, option), output, words(driven) or None)
    made = robot.workspace(
        kind,  # type: ignore[arg-type]
        at=numbers("--at", at),
        orientations=ranges("--orientations", orientations, (3,)) or None,
        limits=ranges("--limits", limits, (1, 2)),
        diameter=diameter,
        condition=condition,
        length=length,
        bounds=ranges("--bounds", bounds, (2,)),
        grid=grid,
    )
    if plot is not None:
        made.plot(show, save=plot)  # type: ignore[arg-type]
    if out is not None:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
    else:
        print(made)
