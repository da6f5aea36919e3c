"""`axode report`: one page about a mechanism and a run."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import Inputs, Parameters, Starts, check_writable, numbers, pairs
from axode.cli.verb_options import refuse


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
        from axode.cli.view import simulate_run

        trajectory = simulate_run(model, time, begin, texts, values)
    path = write_report(model, out or page_name(model.name), run=trajectory)
    print(f"wrote {path}")


def page_name(name: str, ending: str = ".html") -> Path:
    """Return a file name for a mechanism of any name."""
    path = Path(re.sub(r"[^\w.+-]", "_", name).lstrip(".") + ending)
    check_writable(path, (ending,))
    return path
