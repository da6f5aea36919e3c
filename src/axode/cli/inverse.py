"""`axode inverse` and `axode feasible`: forces along motions, paths and at states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.options import (
    AsJson,
    Columns,
    ColumnsFile,
    Degrees,
    Inputs,
    Parameters,
    Plot,
    Starts,
    numbers,
    pairs,
    refuse,
    words,
)
from axode.cli.output import check_writable, print_json
from axode.cli.trajectories import Motion, PathText, Point, along_motion, along_path
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.problems.feasible.feasible import Feasibility


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
    from axode.cli.trajectories import ENDINGS, LOGS, RunSummary

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
    from axode.cli.output import format_number, show_table
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


# forces of the ground -----------------------------------------------------------------------------


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
    from axode.cli.trajectories import ENDINGS, LOGS, save_columns
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
    from axode.cli.show import simulate_run

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
    from axode.cli.output import format_number, show_table

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
