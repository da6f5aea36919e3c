"""`axode view`: a mechanism, or what it does, in the browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli import interruption
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import Parameters, Starts, numbers, pairs, words
from axode.cli.verb_options import refuse


def view(
    source: Source,
    option: Options = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trajectory to play, as axode simulate --out wrote it: .npz or .parquet.",
        ),
    ] = None,
    time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Duration of a simulation to play.")
    ] = None,
    start: Starts = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FORMULA",
            help="Inputs as formulas of time t and of the state; with --time. Zero by default.",
        ),
    ] = None,
    parameter: Parameters = None,
    drive: Annotated[
        bool, typer.Option("--drive", help="Drive the mechanism in real time.")
    ] = False,
    torque: Annotated[
        bool,
        typer.Option(
            "--torque", help="Let the sliders set torques instead of speeds; with --drive."
        ),
    ] = False,
    trail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Body, or 'NAME contact' for a wheel, that leaves a trail; may be repeated.",
        ),
    ] = None,
    signal: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column to plot as a curve; may be repeated."),
    ] = None,
    forces: Annotated[bool, typer.Option("--forces", help="Draw forces at the contacts.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Port to listen on; the first free one from 8080 by default."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; this machine only by default."),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Show a mechanism in the browser, drive it, or play a run.

    axode view mecanum_rover --drive

    axode view wheeled_pendulum --time 3 --start theta3=0.3

    axode view examples/balancer.toml --run run.npz
    """
    _check_compatible(run, time, drive)
    from axode.show.viewer.opening import view as show

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
    shown: Any = model_from(source, option)
    if run is not None:
        from axode.results.trajectory import Trajectory

        looks["model"], shown = shown, Trajectory.load(run)
    elif time is not None:
        shown = simulate_run(shown, time, begin, texts, values)
    else:
        mode = "torque" if torque else "speed"
        looks |= {"drive": mode if drive else False, "start": begin or None, "parameters": values}
    with interruption.close_on_interrupt():
        show(shown, **looks)


def _check_compatible(run: Path | None, time: float | None, drive: bool) -> None:
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
    if time is None:
        refuse("needs --time, the duration", "input")
    if not drive:
        refuse("it needs --drive", "torque")
    if run is not None:
        refuse("it is for a new run, not for --run", "start", "parameter")


def simulate_run(model: Any, time: float, start: Any, texts: Any, values: Any) -> Any:
    """Simulate; a run that failed is shown up to its end."""
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
