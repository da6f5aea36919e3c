"""Gather extremes, integrals and first crossings during the runs, so that none is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axode.codegen.lowering.program import Evaluate
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.model import Model
from axode.problems.state_formulas import name_or_function
from axode.problems.steps.explicit import Gathering
from axode.problems.steps.rates import Dynamics
from axode.problems.sweep.ground_quantities import resolve_quantity
from axode.problems.sweep.state_columns import START_ENERGY, Quantity, StateColumns
from axode.problems.tracing import traced_tape

NEVER = float("nan")


@dataclass(frozen=True)
class Step:
    """A step for an accumulator: value before and after, time at its start, step size."""

    before: Formula
    after: Formula
    t: Formula
    h: Formula

    def crossing(self, rising: bool, falling: bool) -> Formula:
        """Return whether the value crosses zero; one that starts on it does not."""
        a, b = self.before, self.after
        up, down = (a < 0.0) & (b >= 0.0), (a > 0.0) & (b <= 0.0)
        return up | down if rising and falling else up if rising else down

    @property
    def zero(self) -> Formula:
        """Time at which the straight line between the two values is zero."""
        return self.t + self.h * (self.before / (self.before - self.after))


@dataclass(frozen=True)
class OutputKind:
    """How one number of a whole run is made.

    Attributes:
        begin: From the value at the start.
        go_on: From what there is and a step.
        description: What it is.
    """

    begin: Callable[[Formula], Formula]
    go_on: Callable[[Formula, Step], Formula]
    description: str


def _first(rising: bool, falling: bool) -> Callable[[Formula, Step], Formula]:
    def go_on(known: Formula, step: Step) -> Formula:
        found = step.crossing(rising, falling) & ~known.equals(known)  # NaN equals nothing
        return found.then(step.zero, known)

    return go_on


def _never(x: Formula) -> Formula:
    return 0.0 * x + NEVER


KINDS: dict[str, OutputKind] = {
    "last": OutputKind(lambda x: x, lambda _, s: s.after, "value at the end"),
    "min": OutputKind(lambda x: x, lambda known, s: known.least(s.after), "smallest value"),
    "max": OutputKind(lambda x: x, lambda known, s: known.most(s.after), "largest value"),
    "largest": OutputKind(abs, lambda known, s: known.most(abs(s.after)), "largest absolute value"),
    "integral": OutputKind(
        lambda x: 0.0 * x,
        lambda known, s: known + 0.5 * s.h * (s.before + s.after),
        "integral over time, by the trapezoidal rule",
    ),
    "crossing": OutputKind(_never, _first(True, True), "time of the first zero crossing"),
    "rising": OutputKind(_never, _first(True, False), "time of the first rising zero crossing"),
    "falling": OutputKind(_never, _first(False, True), "time of the first falling zero crossing"),
}


@dataclass(frozen=True)
class Output:
    """One number of a run: how it is made, and of what."""

    how: str
    what: Quantity


@dataclass(frozen=True)
class Outputs:
    """Numbers of every run by name.

    Attributes:
        named: How each is made, and of what.
        functions: Functions of the state's symbols, to which numbers among `named` refer.
    """

    named: Mapping[str, Output]
    functions: tuple[Callable[[Any], Any], ...] = ()

    def trace(self, model: Model, speeds: Sequence[str] | None = None) -> Tape | None:
        """Trace the functions into one tape; None if there are none.

        Args:
            model: Whose state they are functions of.
            speeds: What they call nu, where the model has other independent speeds.
        """
        if not self.functions:
            return None
        return traced_tape(model, "outputs", self._expressions, speeds, inputs=True)

    def _expressions(self, state: Any) -> list[Any]:
        made = []
        for function in self.functions:
            value = function(state)
            if getattr(value, "shape", ()) not in ((), (1, 1)):
                raise InvalidArgument(f"outputs: one number is needed, not {value.shape}")
            made.append(value)
        return made


def check_outputs(
    model: Model, given: Any, friction: float | Mapping[str, float] | None = None
) -> Outputs:
    """Outputs of every run, from what the user gave.

    Args:
        model: What moves.
        given: Pairs by name; None for the last state and the error of the energy balance.
        friction: Coefficient of friction of the wheels, one or by wheel; one unless given.

    Raises:
        UnknownName: for an unknown kind of output, or an unknown name.
        InvalidArgument: for anything that is not a pair.
    """
    if given is None:
        names = (*model.coordinates, *model.independent)
        made = {name: Output("last", name) for name in names}
        return Outputs(made | {"energy_error": Output("largest", "error")})
    made = {}
    functions: list[Callable[[Any], Any]] = []
    for name, pair in dict(given).items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise InvalidArgument(
                f"outputs, '{name}': expected a pair such as ('max', 'pitch') or "
                f"('integral', lambda s: s['pitch'] ** 2), got {shortened(pair)}"
            )
        if not (name and name.isprintable()):
            raise InvalidArgument(f"outputs: a name must be printable text, got {shortened(name)}")
        how, what = pair
        if how not in KINDS:
            raise UnknownName(f"output '{name}'", "kind", how, KINDS)
        if not (isinstance(what, str) or callable(what)):
            raise InvalidArgument(
                f"outputs, '{name}': expected the name of a column, a formula or a function of "
                f"the state, got {shortened(what)}"
            )
        what = name_or_function(model, what, f"outputs, '{name}'", inputs=True)
        if isinstance(what, str):
            what = resolve_quantity(model, what, friction)
        else:
            functions.append(what)
            what = len(functions) - 1
        made[name] = Output(how, what)
    if not made:
        raise InvalidArgument("outputs: give at least one")
    return Outputs(made, tuple(functions))


def gather_outputs(
    model: Model, d: Dynamics, outputs: Sequence[Output], functions: Tape | None = None
) -> Gathering:
    """Operations that compute the outputs in order, into the buffer `made`.

    Args:
        model: What moves.
        d: Its steps.
        outputs: What to make.
        functions: Functions of the state to which the outputs refer by number.
    """
    wanted = list(dict.fromkeys(output.what for output in outputs))
    numbers = StateColumns(model, d, wanted, functions)
    kinds = [(KINDS[output.how], wanted.index(output.what)) for output in outputs]
    n, m = len(wanted), len(outputs)

    def begin(step: Vector, y: Vector, made: Vector) -> dict[str, Vector]:
        fresh = step[0].equals(0.0)
        return {
            "made": [fresh.then(kind.begin(y[k]), made[i]) for i, (kind, k) in enumerate(kinds)]
        }

    def go_on(
        commit: Vector, t: Vector, h: Vector, y: Vector, y_n: Vector, made: Vector
    ) -> dict[str, Vector]:
        after = []
        for i, (kind, k) in enumerate(kinds):
            step = Step(y[k], y_n[k], t[0], h[0])
            after.append(commit[0].then(kind.go_on(made[i], step), made[i]))
        return {"made": after, "y": [commit[0].then(b, a) for a, b in zip(y, y_n, strict=True)]}

    first = formula_tape("begin", {"step": 1, "y": n, "made": m}, begin)
    each = formula_tape(
        "gather_step", {"commit": 1, "t": 1, "h": 1, "y": n, "y_n": n, "made": m}, go_on
    )
    energy = numbers.energy_at_start() if numbers.needs_start_energy else []
    return Gathering(
        first=(*energy, *numbers.operations("y"), Evaluate(first, ("step", "y", "made", "made"))),
        each_step=(
            *numbers.operations("y_n"),
            Evaluate(each, ("commit", "t_o", "h_s", "y", "y_n", "made", "made", "y")),
        ),
        state={"made": m} | ({START_ENERGY: 1} if numbers.needs_start_energy else {}),
    )
