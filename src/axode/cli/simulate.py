"""`axode simulate`: motion of a mechanism from a start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.given_options import refuse
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import (
    AsJson,
    Columns,
    ColumnsFile,
    Degrees,
    Inputs,
    Parameters,
    Plot,
    Starts,
    check_writable,
    numbers,
    pairs,
    print_json,
    words,
)

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

MOST_SAMPLES, MOST_STEPS = 10**7, 10**11  # more would fill the memory, or take a day


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
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|dopri5|radau9|rodas5p|rk4",
            help="Integrator; radau9 and rodas5p are for stiff systems, rk4 has fixed steps.",
        ),
    ] = "auto",
    step: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Step size of rk4, which needs one.")
    ] = None,
    rtol: Annotated[
        float, typer.Option(metavar="NUMBER", help="Relative tolerance of the motion; not for rk4.")
    ] = 1e-10,
    atol: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", help="Absolute tolerance of the motion, in SI units; not for rk4."
        ),
    ] = 1e-12,
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
    from axode.cli.run_summaries import RunSummary
    from axode.cli.time_tables import ENDINGS, LOGS
    from axode.results.inaccuracy import INACCURATE_TEXT

    check_writable(out, (*ENDINGS, *LOGS))
    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    if method == "rk4":
        refuse("rk4 has fixed steps: --step, and no tolerances", "rtol", "atol")
    _check_size(time, every, method, step)
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


def _check_size(time: float, every: float | None, method: str, step: float | None) -> None:
    """Check that a run would neither fill the memory nor take longer than a day."""
    from axode.errors import InvalidArgument

    steps = step if method == "rk4" else None
    for option, span, most, what in (
        ("--every", every, MOST_SAMPLES, "samples"),
        ("--step", steps, MOST_STEPS, "steps"),
    ):
        if span and span > 0 and abs(time) / span > most:
            raise InvalidArgument(
                f"{option} {span:g} makes {abs(time) / span:.3g} {what} of {time:g} s; at most "
                f"{most:g} are made"
            )
