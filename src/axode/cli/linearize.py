"""`axode linearize`: linear model of a mechanism at a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import AsJson, Parameters, check_writable, numbers, print_json, words

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.problems.linearize.linearization import Linearization

Names = list[str] | None
AtState = Annotated[
    Names,
    typer.Option(
        metavar="NAME=VALUE",
        help="State: coordinates, speeds or measures; home at rest by default.",
    ),
]
StateNames = Annotated[
    Names,
    typer.Option(
        metavar="NAME,NAME", help="States of the linear model; all independent ones by default."
    ),
]
InputNames = Annotated[
    Names, typer.Option(metavar="NAME,NAME", help="Inputs of the linear model; all by default.")
]
OutputNames = Annotated[
    Names,
    typer.Option(metavar="NAME,NAME", help="Outputs of the linear model; the states by default."),
]
AtInput = Annotated[
    Names, typer.Option(metavar="NAME=VALUE", help="Inputs at that state; zero by default.")
]
Hold = Annotated[bool, typer.Option("--hold", help="Find inputs that keep the speeds constant.")]
Settle = Annotated[
    bool, typer.Option("--settle", help="Find the equilibrium nearest to that state first.")
]
SamplingTime = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Sampling time of a discrete-time model with inputs held; continuous time by default.",
    ),
]


def linearize(
    source: Source,
    option: Options = None,
    state: AtState = None,
    states: StateNames = None,
    inputs: InputNames = None,
    outputs: OutputNames = None,
    input: AtInput = None,
    hold: Hold = False,
    settle: Settle = False,
    parameter: Parameters = None,
    dt: SamplingTime = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the matrices and names: .npz or .json."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Linearize a mechanism at a state; print poles, controllability and observability.

    axode linearize wheeled_pendulum --states theta3,theta3_dot,surge

    axode linearize pendulum_on_slope --hold --settle
    """
    check_writable(out, (".npz", ".json"))
    made = linear_model(
        lambda: model_from(source, option),
        state=state,
        states=states,
        inputs=inputs,
        outputs=outputs,
        input=input,
        hold=hold,
        settle=settle,
        parameter=parameter,
        dt=dt,
    )
    if out is not None:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
    else:
        print(made)


def linear_model(
    build: Any,
    *,
    state: Names,
    states: Names,
    inputs: Names,
    input: Names,
    hold: bool,
    settle: bool,
    parameter: Names,
    dt: float | None,
    outputs: Names = None,
) -> Linearization:
    """Linearize according to the options.

    Args:
        build: Returns the model; called when the options have been read.
        state, states, inputs, input, hold, settle, parameter, dt, outputs: Options.
    """
    from axode.problems.linearize.linearize import linearize as linearize_model

    if hold and input:
        raise typer.BadParameter("give inputs, or let --hold find them", param_hint="--hold")
    point, values = numbers("--state", state), numbers("--parameter", parameter)
    held: Any = "hold" if hold else numbers("--input", input)
    model: Model = build()
    made = linearize_model(
        model,
        point,
        states=words(states) or None,
        inputs=words(inputs) or None,
        outputs=words(outputs) or None,
        input=held,
        settle=settle,
        parameters=values,
    )
    return made if dt is None else made.discretized(dt)
