"""`axode inverse`: motor torques and forces for a motion, a path or a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.motion_options import Motion, PathText, Point, along_motion, along_path
from axode.cli.shared import (
    AsJson,
    Columns,
    ColumnsFile,
    Degrees,
    Parameters,
    Plot,
    check_writable,
    numbers,
    print_json,
    words,
)
from axode.cli.verb_options import refuse
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model

KINDS = ("input", "force", "power")  # of the columns that answer the question


def inverse(
    source: Source,
    option: Options = None,
    motion: Motion = None,
    path: PathText = None,
    point: Point = "0,0,0",
    time: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Duration of a motion given by formulas."),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time between samples; 1/500 of the duration, or a file's own times, by default.",
        ),
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Coordinates that the motion does not determine; home by default.",
        ),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="One state, instead of a motion; home at rest by default."
        ),
    ] = None,
    acceleration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Accelerations at that state, by the names of speeds; zero by default.",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MOTOR=VALUE",
            help="Weight of a motor where there are more than needed; 1 by default.",
        ),
    ] = None,
    parameter: Parameters = None,
    columns: Columns = None,
    out: ColumnsFile = None,
    plot: Plot = None,
    degrees: Degrees = False,
    as_json: AsJson = False,
) -> None:
    """Compute the motor torques and forces along a motion, along a path, or at one state.

    axode inverse five_axis_arm --state theta2=0.5 --acceleration theta1_dot=1

    axode inverse differential_drive --path circle:radius=2,speed=0.5
    """
    from axode.cli.run_summaries import RunSummary
    from axode.cli.time_tables import ENDINGS, LOGS

    for alone in ({"--state": state}, {"--acceleration": acceleration}):
        _check_one_of({"--motion": motion, "--path": path} | alone)
    check_writable(out, (*ENDINGS, *LOGS))
    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    options: dict[str, Any] = {
        "parameters": numbers("--parameter", parameter) or None,
        "weights": numbers("--weight", weight) or None,
    }
    begin, where = numbers("--start", start), numbers("--state", state)
    rates = numbers("--acceleration", acceleration)
    if not motion and not path:
        needs_motion = ("out", "plot", "time", "every", "start", "columns", "point")
        refuse("it needs --motion or --path", *needs_motion)
        _one_state(model_from(source, option), where, rates, options, as_json=as_json)
        return
    model, options = model_from(source, option), options | {"save_every": every}
    if path:
        refuse("a path has its own duration", "time")
        run = along_path(model, path, point, begin, options)
    else:
        refuse("it needs --path", "point")
        run = along_motion(model, motion or [], time, begin, options)
    summary = RunSummary(words(columns), out, plot, KINDS, degrees)
    summary.write(run)
    if as_json:
        print_json(summary.summary(run))
    else:
        summary.show(run)


def _check_one_of(given: dict[str, Any]) -> None:
    named = [option for option, value in given.items() if value]
    if len(named) > 1:
        raise typer.BadParameter(f"choose one of {' and '.join(named)}", param_hint=named[1])


# one state ---------------------------------------------------------------------------------------


def _one_state(
    model: Model,
    state: dict[str, float],
    rates: dict[str, float],
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    from axode.cli.tables import format_number, show_table
    from axode.model.force_deficit import find_deficit, force_size
    from axode.model.signals import STATE_KINDS
    from axode.problems.assemble.assemble import assemble

    values = {"parameters": options["parameters"]} if options["parameters"] else {}
    signals = [model.signals.resolve(name, *STATE_KINDS) for name in state]
    given = [signal.name for signal in signals if signal.kind == "coordinate"]
    there = assemble(model, state, fix=given, parameters=options["parameters"])
    nu_dot = model.signals.names("independent").by_full_name(rates)
    u, missing = model.inverse_dynamics_with_residual(
        there.q, there.nu, nu_dot, weights=options["weights"], **values
    )
    inputs = dict(zip(model.inputs, u.tolist(), strict=True))
    lacking = dict(zip(model.independent, missing.tolist(), strict=True))
    size = force_size(model, there.q, there.nu, u, missing, values)
    short = find_deficit(model, missing, size) is not None
    if as_json:
        input_units = dict(zip(model.inputs, facts_of(model).input_units, strict=True))
        print_json(
            {
                "model": model.name,
                "state": there.as_dict(),
                "accelerations": nu_dot,
                "inputs": inputs,
                "missing": lacking,
                "units": input_units,
            }
        )
        return
    units = dict(zip(model.speed_names, facts_of(model).speed_units, strict=True))
    rows = [
        (name, format_number(x), unit)
        for (name, x), unit in zip(inputs.items(), facts_of(model).input_units, strict=True)
    ]
    if short:
        rows += [
            (f"{name}.missing", format_number(x), "N" if units[name] == "m/s" else "N m")
            for name, x in lacking.items()
        ]
    where = ", ".join(f"{name} = {x:g}" for name, x in {**state, **rates}.items())
    note = f"It is {model.actuation}: what is missing the motors cannot give." if short else ""
    show_table(
        ("input", ">value", "unit"), rows, title=f"{model.name} at {where or 'home'}", note=note
    )
