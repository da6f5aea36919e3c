"""`axode animate`: a run as a movie."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli import INTERRUPTED
from axode.cli.interruption import keep_results, stop_early
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.report import page_name
from axode.cli.shared import Inputs, Parameters, Starts, check_writable, numbers, pairs
from axode.cli.verb_options import refuse

ENDINGS = (".mp4", ".webm", ".gif", ".apng")


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

    check_writable(out, ENDINGS)
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
        from axode.cli.view import simulate_run

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
