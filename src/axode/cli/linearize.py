"""`axode linearize`: how a mechanism moves near one state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import AsJson, Parameters, numbers, print_json, words, writable

Names = list[str] | None


def linearize(
    source: Source,
    option: Options = None,
    state: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of coordinates, speeds or measures; home at rest elsewhere."),
    ] = None,
    states: Annotated[
        Names, typer.Option(help="Names between commas; all that the constraints leave free.")
    ] = None,
    inputs: Annotated[Names, typer.Option(help="Names between commas; all unless given.")] = None,
    outputs: Annotated[
        Names, typer.Option(help="Names between commas; the states unless given.")
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of inputs at that state; zero elsewhere.")
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Inputs that keep the speeds.")] = False,
    settle: Annotated[
        bool, typer.Option("--settle", help="Go to the equilibrium next to that state first.")
    ] = False,
    parameter: Parameters = None,
    dt: Annotated[
        float | None, typer.Option(help="In steps of so many seconds, inputs held.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write all of it: .npz or .json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Linearise a mechanism at a state; tell poles, and what inputs move and outputs show.

    axode linearize wheeled_pendulum --states theta3,theta3_dot,surge

    axode linearize pendulum_on_slope --hold --settle
    """
    from axode.problems.linearize.linearize import linearize as linearize_model

    if hold and input:
        raise typer.BadParameter("give inputs, or let --hold find them", param_hint="--hold")
    writable(out, (".npz", ".json"))
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
