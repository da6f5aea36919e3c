"""`axode linearize` and `axode lqr`: linear models at a state, and feedback of least cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.model_sources import Built
from axode.cli.options import AsJson, Result, Texts, numbers, one_or_named, words
from axode.cli.output import check_writable, format_number, print_json, show_table

if TYPE_CHECKING:
    from axode.problems.linearize.feedback import StateFeedback
    from axode.problems.linearize.linearization import Linearization


@dataclass(frozen=True)
class Point:
    """The state about which a linear model holds, and which signals it has."""

    state: Texts = None
    states: Texts = None
    inputs: Texts = None
    input: Texts = None
    hold: bool = False
    settle: bool = False
    parameter: Texts = None
    dt: float | None = None

    def linearize(self, built: Built, outputs: Texts = None) -> Linearization:
        """Linearize there; options are read before the model is built."""
        from axode.problems.linearize.linearize import linearize as linearize_model

        if self.hold and self.input:
            raise typer.BadParameter("give inputs, or let --hold find them", param_hint="--hold")
        point, values = numbers("--state", self.state), numbers("--parameter", self.parameter)
        held: Any = "hold" if self.hold else numbers("--input", self.input)
        made = linearize_model(
            built.model(),
            point,
            states=words(self.states) or None,
            inputs=words(self.inputs) or None,
            outputs=words(outputs) or None,
            input=held,
            settle=self.settle,
            parameters=values,
        )
        return made if self.dt is None else made.discretized(self.dt)


def linearize(
    *,
    built: Built,
    point: Point,
    outputs: Texts = None,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Linearize a mechanism at a state; print poles, controllability and observability.

    axode linearize wheeled_pendulum --states theta3,theta3_dot,surge

    axode linearize pendulum_on_slope --hold --settle

    Options:
        outputs NAME,NAME: Outputs of the linear model; the states by default.
        input NAME=VALUE: Inputs at that state; zero by default.
        out FILE: File for the matrices and names: .npz or .json.
    """
    check_writable(out, (".npz", ".json"))
    made = point.linearize(built, outputs)
    if out is not None:
        made.save(out)
    if as_json:
        print_json(made.to_dict())
    else:
        print(made)


# feedback -----------------------------------------------------------------------------------------


def lqr(
    *,
    built: Built,
    point: Point,
    q: Annotated[Texts, typer.Option("--Q")] = None,
    r: Annotated[Texts, typer.Option("--R")] = None,
    result: Result,
) -> None:
    """Find the state feedback u = u0 - K (x - x0) of least cost, the integral of x Q x + u R u.

    axode lqr wheeled_pendulum --states theta3,theta3_dot,surge --R 0.5

    axode lqr wheeled_pendulum --states theta3,theta3_dot,surge --dt 0.01

    Options:
        input NAME=VALUE: Inputs at that state; zero by default.
        q VALUE|NAME=VALUE: Weights of the squared deviations of states: one for all, or by name and
            none elsewhere; 1 by default.
        r VALUE|NAME=VALUE: Weights of the squared inputs, likewise; 1 by default.
    """
    cost_x, cost_u = one_or_named("--Q", q), one_or_named("--R", r)
    linear = point.linearize(built)
    law = linear.lqr(1.0 if cost_x is None else cost_x, 1.0 if cost_u is None else cost_u)
    formulas = _formulas(law)
    data = {
        "model": linear.name,
        "states": list(law.states),
        "inputs": list(law.inputs),
        "K": law.K,
        "x0": dict(zip(linear.states, linear.x0.tolist(), strict=True)),
        "u0": dict(law.held),
        "poles": [[pole.real, pole.imag] for pole in law.poles.tolist()],
        "dt": law.dt,
        "formulas": formulas,
    }
    result.deliver(data, lambda: _show(linear, law, formulas))


def _formulas(law: StateFeedback) -> dict[str, str]:
    """Return the law as formulas of --input; none if sampled, or if it reads quaternions."""
    if law.dt or any(reading.quaternion for reading in law.readings):
        return {}
    made = {}
    for name, gains in zip(law.inputs, law.K.tolist(), strict=True):
        terms = [f"{law.held[name]!r}" if law.held[name] else ""]
        for gain, reading in zip(gains, law.readings, strict=True):
            away = f"({reading.name}-({reading.value!r}))" if reading.value else reading.name
            if reading.turns:
                away = f"atan2(sin{_bracketed(away)},cos{_bracketed(away)})"
            if gain:
                terms.append(f"{-gain:+.12g}*{away}")
        made[name] = "".join(terms).lstrip("+") or "0"
    return made


def _bracketed(text: str) -> str:
    return text if text.startswith("(") else f"({text})"


def _show(linear: Linearization, law: StateFeedback, formulas: dict[str, str]) -> None:
    from axode.problems.linearize.controllability import poles_text

    rows = [
        (name, *map(format_number, gains)) for name, gains in zip(law.inputs, law.K, strict=True)
    ]
    step = f", in steps of {law.dt:g} s" if law.dt else ""
    show_table(
        ("K", *(f">{name}" for name in law.states)),
        rows,
        title=f"{linear.name}: u = u0 - K (x - x0){step}",
    )
    points = [(f"x0: {n}", x) for n, x in zip(linear.states, linear.x0.tolist(), strict=True)]
    points += [(f"u0: {n}", x) for n, x in law.held.items()]
    for label, value in points:
        if value:
            print(f"  {label} = {value:g}")
    print(f"  poles of the closed loop  {poles_text(law.poles)}")
    if formulas:
        print("\nFor axode simulate:")
        for name, text in formulas.items():
            print(f'  --input "{name}={text}"')
