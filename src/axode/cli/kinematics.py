"""`axode kinematics`: legs and postures of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, mechanism_from
from axode.cli.shared import (
    AsJson,
    JsonFile,
    Parameters,
    Plot,
    check_writable,
    deliver,
    numbers,
    words,
)

if TYPE_CHECKING:
    from axode.kinematics.postures.postures import Postures
    from axode.kinematics.robot_kinematics import Kinematics


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
    deliver(data, lambda: _show(robot, legs, found), as_json=as_json, out=out)
    if plot is not None:
        found.plot(save=plot)


def _legs(robot: Kinematics) -> dict[str, str]:
    """Joints of every leg by its name; none where chains branch on the way."""
    from axode.errors import NotApplicable

    try:
        return {leg.name: leg.letters for leg in robot.legs}
    except NotApplicable:
        return {}


def _show(robot: Kinematics, legs: dict[str, str], found: Postures) -> None:
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
