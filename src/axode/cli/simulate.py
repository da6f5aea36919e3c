"""`axode simulate`: motion of a mechanism from a start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.options import (
    AsJson,
    Atol,
    Columns,
    ColumnsFile,
    Degrees,
    Inputs,
    Method,
    Parameters,
    Plot,
    Rtol,
    Starts,
    Step,
    numbers,
    pairs,
    refuse,
    words,
)
from axode.cli.output import check_writable, print_json

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


def simulate(
    source: Source,
    option: Options = None,
    time: Annotated[
        float, typer.Option(metavar="SECONDS", help="Duration; negative to run backwards.")
    ] = 5.0,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Value at which the run stops, as in pitch=1.0; may be repeated.",
        ),
    ] = None,
    method: Method = "auto",
    step: Step = None,
    rtol: Rtol = 1e-10,
    atol: Atol = 1e-12,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Time between samples; 1/500 of the duration by default."
        ),
    ] = None,
    singular: Annotated[
        str,
        typer.Option(
            metavar="stop|pass",
            help="Where constraints lose rank: stop, or pass with the momentum kept.",
        ),
    ] = "stop",
    columns: Columns = None,
    out: ColumnsFile = None,
    plot: Plot = None,
    degrees: Degrees = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a mechanism from a start with given inputs; print the final state and extremes.

    axode simulate examples/balancer.toml --start pitch=0.05 --until pitch=1

    axode simulate wheeled_pendulum --start theta3=0.3 --input "M1=-theta3_dot"
    """
    from axode.cli.trajectories import ENDINGS, LOGS, RunSummary
    from axode.results.column_checks import INACCURATE_TEXT

    check_writable(out, (*ENDINGS, *LOGS))
    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    if method == "rk4":
        refuse("rk4 has fixed steps: --step, and no tolerances", "rtol", "atol")
    given = {
        "start": numbers("--start", start),
        "until": numbers("--until", until),
        "parameters": numbers("--parameter", parameter),
    }
    texts = pairs("--input", input)
    model = model_from(source, option)
    summary = RunSummary(words(columns), out, plot, degrees=degrees)
    options = {"method": method, "step": step, "rtol": rtol, "atol": atol, "save_every": every}
    with interruption.keep_results():
        run, failure = _run(model, time, texts, given, **options, singular=singular)
    if run is not None and run.status == "interrupted":
        interruption.write_results()
    if run is not None:
        summary.write(run)
    if as_json:
        print_json(summary.summary(run, failure))
    elif run is not None:
        summary.show(run)
    if failure is not None:
        if run is not None:
            failure.add_note(f"What was computed until then is shown above{_kept(out)}.")
        raise failure
    if run is not None and run.status == "interrupted":
        typer.echo("interrupted; what was computed is kept", err=True)
        raise typer.Exit(INTERRUPTED)
    if run is not None and INACCURATE_TEXT in run.status:
        raise typer.Exit(1)


def _kept(out: Path | None) -> str:
    return "; --out FILE keeps it" if out is None else f" and kept in {out}"


def _run(
    model: Model, time: float, texts: dict[str, str], given: dict[str, Any], **options: Any
) -> tuple[Trajectory | None, Exception | None]:
    """Return the run, and why it failed if it did; what was computed until then is kept."""
    from axode.errors import SimulationFailed
    from axode.problems.simulate.simulate import simulate as simulate_model
    from axode.results.event import Event

    events = [
        Event(f"{name} = {value:g}", _difference(model, name, value), stop=True)
        for name, value in given["until"].items()
    ]
    try:
        run = simulate_model(
            model,
            time,
            start=given["start"] or None,
            input=texts or None,
            parameters=given["parameters"] or None,
            events=events,
            on_interrupt="return",
            **options,
        )
    except SimulationFailed as error:
        so_far: Any = error.trajectory
        return so_far, error
    return run, None


def _difference(model: Model, name: str, value: float) -> Callable[[Any], Any]:
    signal = model.signals.state_names.resolve(name)
    return lambda s: s[signal] - value
