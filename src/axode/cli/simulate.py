"""`axode simulate`: motion of a mechanism from a start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Built
from axode.cli.options import Conditions, Steps, Texts, numbers
from axode.cli.trajectories import RunSummary
from axode.errors import SimulationFailed

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


@dataclass(frozen=True)
class RunSteps(Steps):
    """How one run is integrated and recorded."""

    contacts: str = "auto"
    every: float | None = None
    backwards: bool = False
    singular: str = "stop"

    def read(self) -> dict[str, Any]:
        """Return the arguments of `simulate`."""
        return super().read() | {
            "contacts": self.contacts,
            "save_every": self.every,
            "backwards": self.backwards,
            "singular": self.singular,
        }


def simulate(
    *,
    built: Built,
    time: float = 5.0,
    conditions: Conditions,
    until: Texts = None,
    steps: RunSteps,
    summary: RunSummary,
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
    from axode.results.columns import INACCURATE_TEXT

    options, ends = steps.read() | conditions.read(), numbers("--until", until)
    model = built.model()
    with interruption.keep_results():
        run, failure = _run(model, time, ends, **options)
    if run is not None and run.status == "interrupted":
        interruption.write_results()
    summary.deliver(run, failure)
    if failure is not None:
        if run is not None:
            kept = "; --out FILE keeps it" if summary.out is None else f" and kept in {summary.out}"
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
    from axode.results.columns import Event

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
