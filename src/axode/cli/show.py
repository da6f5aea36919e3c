"""`axode view`, `animate`, `report` and `page`: a mechanism and its runs, to be seen."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.interruption import keep_results, stop_early
from axode.cli.model_sources import Built
from axode.cli.options import Conditions, Texts, refuse, words
from axode.cli.output import check_writable
from axode.errors import SimulationFailed


@dataclass(frozen=True)
class Played(Conditions):
    """A run from a file, or one that is simulated."""

    run: Path | None = None
    time: float | None = None

    def of(self, model: Any, usual: float = 0.0) -> Any:
        """Read the run, or simulate it for as long as asked, or as is usual."""
        from axode.results.trajectory import Trajectory

        if self.run is not None:
            return Trajectory.load(self.run)
        return simulated(model, usual if self.time is None else self.time, self)

    def check(self) -> None:
        """Refuse what is for a new run beside one from a file."""
        if self.run is not None:
            refuse("it is for a new run, not for --run", "start", "input", "parameter", "time")


@dataclass(frozen=True)
class Drawn:
    """What is drawn beside the mechanism."""

    trail: Texts = None
    signal: Texts = None
    forces: bool = False


@dataclass(frozen=True)
class Served:
    """Where the viewer's page is."""

    port: int | None = None
    host: str = "127.0.0.1"
    browser: bool = True


def view(
    *,
    built: Built,
    played: Played,
    drive: bool = False,
    torque: bool = False,
    drawn: Drawn,
    served: Served,
) -> None:
    """Show a mechanism in the browser, drive it, or play a run.

    axode view mecanum_rover --drive

    axode view wheeled_pendulum --time 3 --start theta3=0.3

    axode view examples/balancer.toml --run run.npz

    Options:
        run FILE: Trajectory to play, as axode simulate --out wrote it: .npz or .parquet.
        time SECONDS: Duration of a simulation to play.
        input NAME=FORMULA: Inputs as formulas of time t and of the state; with --time. Zero by
            default.
        drive: Drive the mechanism in real time.
        torque: Let the sliders set torques instead of speeds; with --drive.
        trail NAME: Body, or 'NAME contact' for a wheel, that leaves a trail; may be repeated.
        signal NAME: Column to plot as a curve; may be repeated.
        port NUMBER: Port to listen on; the first free one from 8080 by default.
        host ADDRESS: Address to listen on; this machine only by default.
        browser: Open the page in the browser.
    """
    _check_compatible(played, drive)
    from axode.show.viewer.viewer import view as show

    looks: dict[str, Any] = {
        "trails": words(drawn.trail),
        "signals": words(drawn.signal),
        "forces": drawn.forces,
    }
    given = played.read()
    shown: Any = built.model()
    if played.run is not None:
        looks["model"] = shown
    if played.run is not None or played.time is not None:
        shown = played.of(shown)
    else:
        mode = "torque" if torque else "speed"
        looks |= {"drive": mode if drive else False}
        looks |= {"start": given["start"], "parameters": given["parameters"]}
    with interruption.close_on_interrupt():
        show(
            shown,
            port=served.port,
            host=served.host,
            open_browser=served.browser,
            block=True,
            **looks,
        )


def _check_compatible(played: Played, drive: bool) -> None:
    run, time = played.run, played.time
    given = {"--run": run is not None, "--time": time is not None, "--drive": drive}
    chosen = [name for name in given if given[name]]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} exclude each other: choose one")
    if time is None:
        refuse("needs --time, the duration", "input")
    if not drive:
        refuse("it needs --drive", "torque")
    if run is not None:
        refuse("it is for a new run, not for --run", "start", "parameter")


def simulated(model: Any, time: float, conditions: Conditions) -> Any:
    """Simulate a run; one that failed is shown up to its end."""
    from axode.problems.simulate.simulate import simulate

    try:
        return simulate(model, time, **conditions.read())
    except SimulationFailed as error:
        if error.trajectory is None:
            raise
        typer.echo(f"{type(error).__name__}: {error.message}\n  It is shown until then.", err=True)
        return error.trajectory


# movies -------------------------------------------------------------------------------------------


USUAL = 5.0  # [s] that are simulated
MOVIES = (".mp4", ".webm", ".gif", ".apng")


@dataclass(frozen=True)
class Looks:
    """The camera of a movie, and what it shows beside the mechanism."""

    follow: bool | None = None
    azimuth: float | None = None
    elevation: float | None = None
    tracks: bool = True
    forces: bool = False
    clock: bool = True


def animate(
    *,
    built: Built,
    out: Path | None = None,
    played: Played,
    speed: float = 1.0,
    rate: float = 25.0,
    size: str = "640x480",
    looks: Looks,
) -> None:
    """Write a run as a movie: MP4, WebM, GIF or animated PNG.

    axode animate wheeled_pendulum --time 3 --start theta3=0.3 --out pendulum.gif

    axode animate examples/balancer.toml --run run.npz --out run.mp4 --speed 0.5

    Options:
        out FILE: File of the movie: .mp4, .webm, .gif or .apng; NAME.mp4 by default.
        run FILE: Trajectory to show, as axode simulate --out wrote it: .npz or .parquet.
        time SECONDS: Duration of the simulation; 5 by default.
        speed NUMBER: Playback speed; 1 is real time.
        rate NUMBER: Frames per second.
        size WIDTHxHEIGHT: Size of the picture, in pixels.
        follow: Let the camera go with the robot, or show its whole way; by default it goes with one
            that travels.
        azimuth RADIANS: Direction of the camera about the vertical; chosen by default.
        elevation RADIANS: Angle of the camera above the floor; chosen by default.
        tracks: Let wheels leave tracks.
        clock: Write the time in the picture.
    """
    from axode.show.render.animation import animate as write_animation
    from axode.show.render.movie_files import check_movie

    check_writable(out, MOVIES)
    played.check()
    picture_size = _size(size)
    model = built.model()
    path = out or page_name(model.name, ".mp4")
    check_movie(path, rate)
    trajectory = played.of(model, USUAL)
    with stop_early() as stop, keep_results():
        write_animation(
            trajectory, path, model=model, rate=rate, speed=speed, size=picture_size, **vars(looks)
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


def report(*, built: Built, out: Path | None = None, played: Played) -> None:
    """Write a page: the robot in motion, plots, energy and constraints, equations, numbers.

    axode report wheeled_pendulum --start theta3=0.3

    axode report unicycle --input tau_drive=0.1,tau_steer=0.01 --out page.html

    Options:
        out FILE: File of the page (.html); NAME.html by default.
        run FILE: Trajectory to report, as axode simulate --out wrote it: .npz or .parquet.
        time SECONDS: Duration of the simulation, 5 by default; 0 shows the mechanism alone.
    """
    from axode.show.report import report as write_report

    check_writable(out, (".html", ".htm"))
    played.check()
    if played.time == 0:
        refuse("nothing is simulated in 0 s", "start", "input", "parameter")
    model = built.model()
    trajectory = None if played.time == 0 else played.of(model, USUAL)
    path = write_report(model, out or page_name(model.name), run=trajectory)
    print(f"wrote {path}")


def page_name(name: str, ending: str = ".html") -> Path:
    """Return a file name for a mechanism of any name."""
    path = Path(re.sub(r"[^\w.+-]", "_", name).lstrip(".") + ending)
    check_writable(path, (ending,))
    return path


def page(
    *,
    built: Built,
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    conditions: Conditions,
    signals: Texts = None,
    step: float = 0.001,
    title: str | None = None,
    play: Annotated[bool, typer.Option("--play/--no-play")] = False,
) -> None:
    """Write a page that simulates a mechanism: one file, to be driven with keys and sliders.

    axode page tricycle -o tricycle.html

    axode page wheeled_pendulum --start theta3=0.3 --input M1=-0.2*theta1_dot

    Options:
        out FILE: File of the page (.html); NAME.html by default.
        signals NAME,NAME: Signals that are shown first; the main ones by default.
        step SECONDS: Length of the steps.
        title TEXT: Title of the page; the mechanism's name by default.
        play: Run as soon as the page is open.
    """
    from axode.show.live.live_page import page as write_page

    check_writable(out, (".html", ".htm"))
    given = conditions.read()
    model = built.model()
    path = out or page_name(model.name)
    write_page(model, path, step=step, title=title, signals=words(signals), play=play, **given)
    print(f"wrote {path} ({path.stat().st_size} bytes)")
