"""`axode workspace`: poses that a parallel robot reaches, their limits and singularities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axode.cli.model_sources import Options, Source, mechanism_from
from axode.cli.shared import AsJson, Plot, check_writable, numbers, print_json, ranges, words
from axode.cli.verb_options import refuse

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
