"""Motions that verbs are given: formulas of time, files of columns, and paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.shared import numbers, pairs

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


Motion = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|NAME=FORMULA",
        help="Motion: columns in a file (.csv, .npz, .parquet), or formulas of time t.",
    ),
]
PathText = Annotated[
    str | None,
    typer.Option(
        metavar="KIND:NAME=VALUE",
        help="Path of a vehicle: straight, circle, parallel_lines or along, with values: "
        "circle:radius=2,speed=0.5.",
    ),
]
Point = Annotated[
    str, typer.Option(metavar="X,Y,Z", help="Point of the base that follows the path, in metres.")
]


def along_motion(
    model: Model,
    motion: list[str],
    time: float | None,
    start: dict[str, float],
    options: dict[str, Any],
) -> Trajectory:
    """Compute the inputs along formulas of time, or along a file of columns."""
    from axode.problems.inverse.inverse import inverse_dynamics

    if any("=" in item for item in motion):
        if time is None:
            raise typer.BadParameter("a motion by formulas needs its duration", param_hint="--time")
        return inverse_dynamics(
            model, pairs("--motion", motion), times=time, start=start, **options
        )
    if len(motion) > 1:
        raise typer.BadParameter("name one file", param_hint="--motion")
    if time is not None:
        raise typer.BadParameter("a file has its own times", param_hint="--time")
    return _along_file(model, Path(motion[0]), start, options)


def _along_file(
    model: Model, file: Path, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    from axode.cli.time_tables import TIME, as_trajectory, load_columns, time_of
    from axode.problems.inverse.inverse import inverse_dynamics

    found = load_columns(file)
    if not isinstance(found, dict):
        return inverse_dynamics(model, found, start=start or None, **options)
    whole = as_trajectory(model, found)
    if whole is not None:
        return inverse_dynamics(model, whole, start=start or None, **options)
    signals = {name: column for name, column in found.items() if name not in TIME}
    return inverse_dynamics(model, signals, times=time_of(found), start=start, **options)


def along_path(
    model: Model, text: str, point: str, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    """Compute the inputs along a path of a vehicle, KIND:NAME=VALUE."""
    from axode.motions import paths

    kind, _, values = text.partition(":")
    given: dict[str, Any] = dict(pairs("--path", [values] if values else []))
    if kind != "along":
        given = {
            n: x if n == "start" else numbers("--path", [f"{n}={x}"])[n] for n, x in given.items()
        }
    elif "duration" in given:
        given["duration"] = numbers("--path", [f"duration={given['duration']}"])["duration"]
    path = _make_path(paths, kind, given)
    try:
        place = tuple(float(x) for x in point.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"'{point}' is not X,Y,Z in metres", param_hint="--point"
        ) from None
    return paths.follow(model, path, point=place, start=start, **options)


def _make_path(paths: Any, kind: str, given: dict[str, Any]) -> Any:
    """Make a path by its name; an unknown value is reported with the known ones."""
    from inspect import signature

    from axode.errors import UnknownName

    kinds = ("straight", "circle", "parallel_lines", "along")
    if kind not in kinds:
        raise UnknownName("axode", "path", kind, kinds)
    function = getattr(paths, kind)
    takes = signature(function).parameters
    for name in given:
        if name not in takes:
            raise UnknownName(f"the path '{kind}'", "value", name, tuple(takes))
    needed = [n for n, p in takes.items() if p.default is p.empty and n not in given]
    if needed:
        raise typer.BadParameter(f"{kind} needs {', '.join(needed)}", param_hint="--path")
    return function(**given)
