"""`axode linearize`: linear model of a mechanism at a state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import AsJson, Parameters, check_writable, numbers, print_json, words

Names = list[str] | None


def linearize(
    source: Source,
    option: Options = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=VALUE of coordinates, speeds or measures; home at rest by default."
        ),
    ] = None,
    states: Annotated[
        Names, typer.Option(help="States, separated by commas; all independent ones by default.")
    ] = None,
    inputs: Annotated[
        Names, typer.Option(help="Inputs, separated by commas; all by default.")
    ] = None,
    outputs: Annotated[
        Names, typer.Option(help="Outputs, separated by commas; the states by default.")
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of inputs at that state; zero by default.")
    ] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Find inputs that keep the speeds constant.")
    ] = False,
    settle: Annotated[
        bool, typer.Option("--settle", help="Find the equilibrium nearest to that state first.")
    ] = False,
    parameter: Parameters = None,
    dt: Annotated[
        float | None,
        typer.Option(help="Sampling time of a discrete-time model with inputs held, in seconds."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the matrices and names: .npz or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Linearize a mechanism at a state; print poles, controllability and observability.

    axode linearize wheeled_pendulum --states theta3,theta3_dot,surge

    axode linearize pendulum_on_slope --hold --settle
    """
    from axode.problems.linearize.linearize import linearize as linearize_model

    if hold and input:
        raise typer.BadParameter("give inputs, or let --hold find them", param_hint="--hold")
    check_writable(out, (".npz", ".json"))
    made = linearize_model(
        model_from(source, option),
        numbers("--state", state),
        states=words(states) or None,
        inputs=words(inputs) or None,
        outputs=words(outputs) or None,
        input="hold" if hold else numbers("--input", input),
        settle=settle,
        parameters=numbers("--parameter", parameter),
    )
    if dt is not None:
        made = made.discretized(dt)
    if out is not None:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
    else:
        print(made)
