"""`axode inverse`: motor torques and forces for a motion, a path or a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import (
    AsJson,
    Columns,
    ColumnsFile,
    Degrees,
    Parameters,
    Plot,
    check_writable,
    numbers,
    pairs,
    print_json,
    words,
)

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

KINDS = ("input", "force")  # of the columns that answer the question


def inverse(
    source: Source,
    option: Options = None,
    motion: Annotated[
        list[str] | None,
        typer.Option(
            help="Motion: a file of columns (.csv, .npz, .parquet), or NAME=FORMULA of time t."
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            help="Path of a vehicle: straight, circle, parallel_lines or along, with values: "
            "circle:radius=2,speed=0.5."
        ),
    ] = None,
    point: Annotated[
        str, typer.Option(help="Point X,Y,Z of the base that follows the path, in metres.")
    ] = "0,0,0",
    time: Annotated[
        float | None, typer.Option(help="Duration of a motion given by formulas, in seconds.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Time between samples, in seconds.")] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of coordinates that the motion does not determine."),
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of one state, instead of a motion.")
    ] = None,
    acceleration: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of accelerations at that state, by the names of speeds."),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="MOTOR=VALUE: weight of a motor where there are more than needed."),
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
        _check_needed(
            {"--out": out, "--plot": plot, "--time": time, "--every": every, "--start": start}
        )
        _one_state(model_from(source, option), where, rates, options, as_json=as_json)
        return
    model, options = model_from(source, option), options | {"save_every": every}
    if path:
        run = _along_path(model, path, point, begin, options)
    else:
        run = _along_motion(model, motion or [], time, begin, options)
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


def _check_needed(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter("it needs --motion or --path", param_hint=option)


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
    from axode.model.shortfall import find_shortfall, force_size
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
    short = find_shortfall(model, missing, size) is not None
    if as_json:
        input_units = dict(zip(model.inputs, model.facts.input_units, strict=True))
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
    units = dict(zip(model.speed_names, model.facts.speed_units, strict=True))
    rows = [
        (name, format_number(x), unit)
        for (name, x), unit in zip(inputs.items(), model.facts.input_units, strict=True)
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


# motions -----------------------------------------------------------------------------------------


def _along_motion(
    model: Model,
    motion: list[str],
    time: float | None,
    start: dict[str, float],
    options: dict[str, Any],
) -> Trajectory:
    from axode.problems.inverse.inverse import inverse as inverse_along

    if any("=" in item for item in motion):
        if time is None:
            raise typer.BadParameter("a motion by formulas needs its duration", param_hint="--time")
        return inverse_along(model, pairs("--motion", motion), times=time, start=start, **options)
    if len(motion) > 1:
        raise typer.BadParameter("name one file", param_hint="--motion")
    if time is not None:
        raise typer.BadParameter("a file has its own times", param_hint="--time")
    return _along_file(model, Path(motion[0]), start, options)


def _along_file(
    model: Model, file: Path, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    from axode.cli.time_tables import TIME, as_trajectory, load_columns, time_of
    from axode.problems.inverse.inverse import inverse as inverse_along

    found = load_columns(file)
    if not isinstance(found, dict):
        return inverse_along(model, found, start=start or None, **options)
    whole = as_trajectory(model, found)
    if whole is not None:
        return inverse_along(model, whole, start=start or None, **options)
    signals = {name: column for name, column in found.items() if name not in TIME}
    return inverse_along(model, signals, times=time_of(found), start=start, **options)


# paths -------------------------------------------------------------------------------------------


def _along_path(
    model: Model, text: str, point: str, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    from axode.problems.paths import paths

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
