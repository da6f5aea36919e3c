"""`axode reach`: a posture that brings bodies where they are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import AsJson, JsonFile, Parameters, deliver, numbers, ranges, words
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.kinematics.reaching.inverse_kinematics import InverseKinematicsResult
    from axode.model.model import Model

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
    deliver(data, lambda: _show(model, found), as_json=as_json, out=out)


def _show(model: Model, found: InverseKinematicsResult) -> None:
    from axode.cli.tables import format_number, show_table
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

    name, values = _parts("--target", text, ",")
    if len(values) == 6:
        return name, Target(position=values[:3], rotation=values[3:])
    if len(values) in (1, 3):
        return name, values if len(values) == 3 else values[0]
    raise typer.BadParameter(
        f"'{text}' has {len(values)} numbers; expected {TARGET}", param_hint="--target"
    )


def _parts(option: str, text: str, separator: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint=option)
    name = name.strip()
    return name, [numbers(option, [f"{name}={x}"])[name] for x in values.split(separator)]
