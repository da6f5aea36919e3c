"""`axode view`, `animate`, `report` and `page`: a mechanism and its runs, to be seen."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.interruption import keep_results, stop_early
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.options import Inputs, Parameters, Starts, numbers, pairs, refuse, words
from axode.cli.output import check_writable


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
    from axode.show.viewer.viewer import view as show

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


# movies -------------------------------------------------------------------------------------------


MOVIES = (".mp4", ".webm", ".gif", ".apng")


def animate(
    source: Source,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the movie: .mp4, .webm, .gif or .apng; NAME.mp4 by default.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trajectory to show, as axode simulate --out wrote it: .npz or .parquet.",
        ),
    ] = None,
    time: Annotated[
        float, typer.Option(metavar="SECONDS", help="Duration of the simulation.")
    ] = 5.0,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    speed: Annotated[
        float, typer.Option(metavar="NUMBER", help="Playback speed; 1 is real time.")
    ] = 1.0,
    rate: Annotated[float, typer.Option(metavar="NUMBER", help="Frames per second.")] = 25.0,
    size: Annotated[
        str, typer.Option(metavar="WIDTHxHEIGHT", help="Size of the picture, in pixels.")
    ] = "640x480",
    follow: Annotated[
        bool | None,
        typer.Option(
            "--follow/--no-follow",
            help="Let the camera go with the robot, or show its whole way; "
            "by default it goes with one that travels.",
        ),
    ] = None,
    azimuth: Annotated[
        float | None,
        typer.Option(
            metavar="RADIANS", help="Direction of the camera about the vertical; chosen by default."
        ),
    ] = None,
    elevation: Annotated[
        float | None,
        typer.Option(
            metavar="RADIANS", help="Angle of the camera above the floor; chosen by default."
        ),
    ] = None,
    tracks: Annotated[bool, typer.Option(help="Let wheels leave tracks.")] = True,
    forces: Annotated[bool, typer.Option("--forces", help="Draw forces at the contacts.")] = False,
    clock: Annotated[bool, typer.Option(help="Write the time in the picture.")] = True,
) -> None:
    """Write a run as a movie: MP4, WebM, GIF or animated PNG.

    axode animate wheeled_pendulum --time 3 --start theta3=0.3 --out pendulum.gif

    axode animate examples/balancer.toml --run run.npz --out run.mp4 --speed 0.5
    """
    from axode.show.render.animation import animate as write_animation
    from axode.show.render.movie_files import check_movie

    check_writable(out, MOVIES)
    begin, values = numbers("--start", start), numbers("--parameter", parameter)
    texts = pairs("--input", input)
    if run is not None:
        refuse("it is for a new run, not for --run", "start", "input", "parameter", "time")
    picture_size = _size(size)
    model = model_from(source, option)
    path = out or page_name(model.name, ".mp4")
    check_movie(path, rate)
    trajectory: Any
    if run is not None:
        from axode.results.trajectory import Trajectory

        trajectory = Trajectory.load(run)
    else:
        trajectory = simulate_run(model, time, begin, texts, values)
    looks: dict[str, Any] = {"azimuth": azimuth, "elevation": elevation, "follow": follow}
    looks |= {"tracks": tracks, "forces": forces, "clock": clock}
    with stop_early() as stop, keep_results():
        write_animation(
            trajectory, path, model=model, rate=rate, speed=speed, size=picture_size, **looks
        )
    if stop.interrupted:
        typer.echo(f"interrupted{'; ' + stop.message if stop.message else ''}", err=True)
        raise typer.Exit(INTERRUPTED)
    print(f"wrote {path}")


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d{1,5})\s*[xX×*]\s*(\d{1,5})\s*", text)
    if found is None:
        raise typer.BadParameter(
            f"'{text}' is not WIDTHxHEIGHT, as in 640x480", param_hint="--size"
        )
    return int(found[1]), int(found[2])


# pages --------------------------------------------------------------------------------------------


def report(
    source: Source,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of the page (.html); NAME.html by default."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trajectory to report, as axode simulate --out wrote it: .npz or .parquet.",
        ),
    ] = None,
    time: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Duration of the simulation; 0 shows the mechanism alone."
        ),
    ] = 5.0,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
) -> None:
    """Write a page: the robot in motion, plots, energy and constraints, equations, numbers.

    axode report wheeled_pendulum --start theta3=0.3

    axode report unicycle --input tau_drive=0.1,tau_steer=0.01 --out page.html
    """
    from axode.show.report import report as write_report

    check_writable(out, (".html", ".htm"))
    begin, values = numbers("--start", start), numbers("--parameter", parameter)
    texts = pairs("--input", input)
    if run is not None:
        refuse("it is for a new run, not for --run", "start", "input", "parameter", "time")
    elif not time:
        refuse("nothing is simulated in 0 s", "start", "input", "parameter")
    model = model_from(source, option)
    trajectory: Any = None
    if run is not None:
        from axode.results.trajectory import Trajectory

        trajectory = Trajectory.load(run)
    elif time:
        trajectory = simulate_run(model, time, begin, texts, values)
    path = write_report(model, out or page_name(model.name), run=trajectory)
    print(f"wrote {path}")


def page_name(name: str, ending: str = ".html") -> Path:
    """Return a file name for a mechanism of any name."""
    path = Path(re.sub(r"[^\w.+-]", "_", name).lstrip(".") + ending)
    check_writable(path, (ending,))
    return path


def page(
    source: Source,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File of the page (.html); NAME.html by default."
        ),
    ] = None,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    signals: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME", help="Signals that are shown first; the main ones by default."
        ),
    ] = None,
    step: Annotated[float, typer.Option(metavar="SECONDS", help="Length of the steps.")] = 1e-3,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the page; the mechanism's name by default."),
    ] = None,
    play: Annotated[bool, typer.Option(help="Run as soon as the page is open.")] = False,
) -> None:
    """Write a page that simulates a mechanism: one file, to be driven with keys and sliders.

    axode page tricycle -o tricycle.html

    axode page wheeled_pendulum --start theta3=0.3 --input M1=-0.2*theta1_dot
    """
    from axode.show.live.live_page import page as write_page

    check_writable(out, (".html", ".htm"))
    begin, values = numbers("--start", start), numbers("--parameter", parameter)
    law = pairs("--input", input)
    model = model_from(source, option)
    path = write_page(
        model,
        out or page_name(model.name),
        input=law or None,
        start=begin or None,
        title=title,
        signals=words(signals),
        step=step,
        parameters=values,
        play=play,
    )
    print(f"wrote {path} ({path.stat().st_size} bytes)")
