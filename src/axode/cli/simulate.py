"""`axode simulate`: motion of a mechanism from a start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import model_from
from axode.cli.options import (
    AsJson,
    PlotFile,
    Source,
    Texts,
    numbers,
    refuse,
    run_options,
    tolerances,
    words,
)
from axode.cli.output import print_json
from axode.cli.trajectories import ColumnsFile
from axode.errors import SimulationFailed

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


def simulate(
    source: Source,
    option: Texts = None,
    time: float = 5.0,
    start: Texts = None,
    input: Texts = None,
    parameter: Texts = None,
    until: Texts = None,
    method: str | None = "auto",
    step: float | None = None,
    contacts: str = "auto",
    rtol: float = 1e-10,
    atol: float = 1e-12,
    every: float | None = None,
    backwards: bool = False,
    singular: str = "stop",
    columns: Texts = None,
    out: ColumnsFile = None,
    plot: PlotFile = None,
    degrees: bool = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a mechanism from a start with given inputs; print the final state and extremes.

    axode simulate examples/balancer.toml --start pitch=0.05 --until pitch=1

    axode simulate wheeled_pendulum --start theta3=0.3 --input "M1=-theta3_dot"

    Options:
        time SECONDS: Duration.
        until NAME=VALUE: Value at which the run stops, as in pitch=1.0; may be repeated.
        every SECONDS: Time between samples; 1/500 of the duration by default.
        backwards: Run backwards in time, which takes a negative --time.
        singular stop|pass: Where constraints lose rank: stop, or pass with the momentum kept.
    """
    from axode.cli.trajectories import RunSummary
    from axode.results.columns import INACCURATE_TEXT

    if method == "rk4":
        refuse("rk4 has fixed steps: --step, and no tolerances", "rtol", "atol")
    given, ends = run_options(start, input, parameter), numbers("--until", until)
    model = model_from(source, option)
    summary = RunSummary(words(columns), out, plot, degrees=degrees)
    options = {"method": method, "step": step, "save_every": every}
    options |= {"backwards": True} if backwards else {}
    options |= tolerances(rtol, atol) | {"contacts": contacts}
    with interruption.keep_results():
        run, failure = _run(model, time, ends, **given, **options, singular=singular)
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
            kept = "; --out FILE keeps it" if out is None else f" and kept in {out}"
            failure.add_note(f"What was computed until then is shown above{kept}.")
        raise failure
    if run is not None and run.status == "interrupted":
        typer.echo("interrupted; what was computed is kept", err=True)
        raise typer.Exit(INTERRUPTED)
    if run is not None and INACCURATE_TEXT in run.status:
        raise typer.Exit(1)


def _run(
    model: Model, time: float, ends: dict[str, float], **options: Any
) -> tuple[Trajectory | None, Exception | None]:
    """Return the run, and why it failed if it did; what was computed until then is kept."""
    from axode.problems.simulate.simulate import simulate as simulate_model
    from axode.results.event import Event

    events = [
        Event(f"{name} = {value:g}", _difference(model, name, value), stop=True)
        for name, value in ends.items()
    ]
    try:
        run = simulate_model(model, time, events=events, on_interrupt="return", **options)
    except SimulationFailed as error:
        so_far: Any = error.trajectory
        return so_far, error
    return run, None


def _difference(model: Model, name: str, value: float) -> Callable[[Any], Any]:
    signal = model.signals.state_names.resolve(name)
    return lambda s: s[signal] - value
