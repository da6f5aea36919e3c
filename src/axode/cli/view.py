"""`axode view`: a mechanism, or what it does, in the browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import Parameters, Starts, numbers, pairs, words


def view(
    source: Source,
    option: Options = None,
    run: Annotated[
        Path | None, typer.Option(help="Play this trajectory, as `axode simulate --out` wrote it.")
    ] = None,
    time: Annotated[
        float | None, typer.Option(help="Simulate for so many seconds, and play that.")
    ] = None,
    start: Starts = None,
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FORMULA of time t and of the state; with --time.")
    ] = None,
    parameter: Parameters = None,
    drive: Annotated[bool, typer.Option("--drive", help="Run it in real time at once.")] = False,
    torque: Annotated[
        bool, typer.Option("--torque", help="Sliders set torques, not speeds; with --drive.")
    ] = False,
    trail: Annotated[
        list[str] | None,
        typer.Option(help="A body, or 'NAME contact' for a wheel, that leaves a trail."),
    ] = None,
    signal: Annotated[list[str] | None, typer.Option(help="A column to draw as a curve.")] = None,
    forces: Annotated[bool, typer.Option("--forces", help="Draw forces at the contacts.")] = False,
    port: Annotated[
        int | None, typer.Option(help="Where to listen; the next free one from 8080 on.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to answer on; only this machine unless given.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
) -> None:
    """Show a mechanism in the browser; drive it, or play what it did.

    axode view mecanum_rover --drive

    axode view wheeled_pendulum --time 3 --start theta3=0.3

    axode view examples/balancer.toml --run run.npz
    """
    from axode.show.viewer.opening import view as show

    _refuse_mixed(run, time, drive, input)
    looks: dict[str, Any] = {
        "trails": words(trail),
        "signals": words(signal),
        "forces": forces,
        "port": port,
        "host": host,
        "open_browser": browser,
        "block": True,
    }
    begin, values = numbers("--start", start), numbers("--parameter", parameter)
    texts = pairs("--input", input)
    model = model_from(source, option)
    if run is not None:
        from axode.results.trajectory import Trajectory

        show(Trajectory.load(run), model=model, **looks)
    elif time is not None:
        show(simulated(model, time, begin, texts, values), **looks)
    else:
        mode = "torque" if torque else "speed"
        show(model, drive=mode if drive else False, start=begin or None, parameters=values, **looks)


def _refuse_mixed(run: Path | None, time: float | None, drive: bool, input: Any) -> None:
    chosen = [
        name
        for name, given in (
            ("--run", run is not None),
            ("--time", time is not None),
            ("--drive", drive),
        )
        if given
    ]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} exclude each other: choose one")
    if input and time is None:
        raise typer.BadParameter("needs --time, which says how long", param_hint="--input")


def simulated(model: Any, time: float, start: Any, texts: Any, values: Any) -> Any:
    """A run; one that failed is shown as far as it came."""
    from axode.errors import SimulationFailed
    from axode.problems.simulate.simulate import simulate

    try:
        return simulate(
            model, time, start=start or None, input=texts or None, parameters=values or None
        )
    except SimulationFailed as error:
        if error.trajectory is None:
            raise
        typer.echo(f"{type(error).__name__}: {error.message}\n  It is shown until then.", err=True)
        return error.trajectory
