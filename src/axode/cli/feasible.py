"""`axode feasible`: whether the ground can give the forces of ideal rolling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.motion_options import Motion, PathText, Point, along_motion, along_path
from axode.cli.shared import (
    AsJson,
    ColumnsFile,
    Inputs,
    Parameters,
    Plot,
    Starts,
    check_writable,
    numbers,
    pairs,
    print_json,
    words,
)
from axode.cli.verb_options import refuse

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.problems.feasible.feasible import Feasibility

MARGINS = ("slipping_margin", "tipping_margin")


def feasible(
    source: Source,
    friction: Annotated[
        list[str],
        typer.Option(metavar="VALUE|WHEEL=VALUE", help="Coefficient of friction, one or by wheel."),
    ],
    option: Options = None,
    stiffness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE|WHEEL=VALUE",
            help="Stiffness of the wheels across the ground, one or by wheel, in N/m; equal by "
            "default.",
        ),
    ] = None,
    path: PathText = None,
    point: Point = "0,0,0",
    motion: Motion = None,
    time: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Duration of a simulation, or of a motion given by formulas."
        ),
    ] = None,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Columns to plot; both margins by default."),
    ] = None,
    out: ColumnsFile = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a vehicle can really roll along a path, a motion or a simulated run.

    axode feasible tricycle --friction 0.5 --path circle:radius=2,speed=1.5

    axode feasible mecanum_rover --friction 0.4 --time 2 --input tau1=5,tau2=5
    """
    from axode.cli.time_tables import ENDINGS, LOGS, save_columns
    from axode.problems.feasible.feasible import feasible as check_motion

    chosen = [name for name, value in {"--path": path, "--motion": motion}.items() if value]
    if len(chosen) > 1:
        raise typer.BadParameter("choose one of --path and --motion", param_hint="--motion")
    if not chosen and time is None:
        raise typer.BadParameter("give --path, --motion, or --time for a simulation")
    check_writable(out, (*ENDINGS, *LOGS))
    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    if plot is None:
        refuse("it needs --plot", "columns")
    mu, stiff = _by_wheel("--friction", friction), _by_wheel("--stiffness", stiffness)
    given: dict[str, Any] = {
        "start": numbers("--start", start),
        "input": pairs("--input", input),
        "parameters": numbers("--parameter", parameter) or None,
    }
    model = model_from(source, option)
    run = _motion(model, path, point, motion or [], time, given)
    found = check_motion(model, run, mu, stiffness=stiff, parameters=given["parameters"])
    if out is not None:
        save_columns(found.trajectory, out)
    if plot is not None:
        found.trajectory.plot(*(words(columns) or MARGINS), save=plot)
    files = [str(file) for file in (out, plot) if file is not None]
    if as_json:
        print_json(_summary(found) | {"files": files})
        return
    _show(found)
    for file in files:
        print(f"wrote {file}")


def _motion(
    model: Model,
    path: str | None,
    point: str,
    motion: list[str],
    time: float | None,
    given: dict[str, Any],
) -> Any:
    from axode.cli.view import simulate_run

    options = {"parameters": given["parameters"]}
    if path or motion:
        refuse("it is for a simulation, not for a given motion", "input")
    if path:
        refuse("a path has its own duration", "time")
        return along_path(model, path, point, given["start"], options)
    refuse("it needs --path", "point")
    if motion:
        return along_motion(model, motion, time, given["start"], options)
    return simulate_run(model, time or 0.0, given["start"], given["input"], given["parameters"])


def _by_wheel(option: str, given: list[str] | None) -> Any:
    """Read one number for all wheels, or WHEEL=VALUE."""
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return numbers(option, [f"wheels={given[0]}"])["wheels"]
    return numbers(option, given)


def _summary(found: Feasibility) -> dict[str, Any]:
    wheels = {
        name: {
            "least_load": found.normal[:, k].min(),
            "largest_load": found.normal[:, k].max(),
            "friction_used": found.share[:, k].max(),
        }
        for k, name in enumerate(found.wheels)
    }
    return {
        "model": found.trajectory.name,
        "feasible": found.ok,
        "time": [found.time[0], found.time[-1]],
        "friction": dict(found.friction),
        "wheels": wheels,
        "slipping_margin": found.slipping_margin.min(),
        "slips_at": found.slips_at,
        "slips": found.slips,
        "tipping_margin": found.tipping_margin.min(),
        "tips_at": found.tips_at,
        "lifts": found.lifts,
        "notes": list(found.notes),
    }


def _show(found: Feasibility) -> None:
    from axode.cli.tables import format_number, show_table

    title, _, *lines = str(found).splitlines()
    rows = [
        (
            wheel,
            format_number(found.normal[:, k].min()),
            format_number(found.normal[:, k].max()),
            "N",
            f"{found.share[:, k].max():.1%}",
        )
        for k, wheel in enumerate(found.wheels)
    ]
    show_table(
        ("wheel", ">least load", ">largest load", "unit", ">friction used"),
        rows,
        title=title,
        note="\n".join(lines[len(found.wheels) :]),
    )
