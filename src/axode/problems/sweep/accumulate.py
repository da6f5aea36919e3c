"""Outputs of sweeps: how one number of a run is computed, and from which quantity."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, RunsFailedWarning, UnknownName, level_outside, shortened
from axode.model.model import Model
from axode.problems.inputs.state_formulas import name_or_function
from axode.problems.inputs.tracing import require_sign_changes, traced_tape
from axode.problems.steps.step_acceptance import FINISHED, INACCURATE
from axode.problems.sweep.ground_quantities import resolve_quantity
from axode.problems.sweep.state_columns import BALANCE, RESIDUAL, Quantity

if TYPE_CHECKING:
    from axode.problems.sweep.chunk import ChunkResult

AT_ENDS = (BALANCE, RESIDUAL)  # errors of the steps: inside one, an interpolant has its own
EXTREMES = ("min", "max", "largest")
CROSSINGS = ("crossing", "rising", "falling")
# kinds of outputs, and what they are
KINDS = {
    "last": "value at the end",
    "min": "smallest value",
    "max": "largest value",
    "largest": "largest absolute value",
    "integral": "integral over time",
    "crossing": "time of the first zero crossing",
    "rising": "time of the first rising zero crossing",
    "falling": "time of the first falling zero crossing",
}


@dataclass(frozen=True)
class Output:
    """One number of a run: how it is computed, and from which quantity."""

    how: str
    what: Quantity


@dataclass(frozen=True)
class Outputs:
    """Numbers of every run by name.

    Attributes:
        named: How each is computed, and from which quantity.
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
        tape = traced_tape(model, "outputs", self._expressions, speeds, inputs=True)
        crossings = {
            f"output '{name}'": output.what
            for name, output in self.named.items()
            if output.how in CROSSINGS and isinstance(output.what, int)
        }
        require_sign_changes(tape, crossings)
        return tape

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
        how, what = "last" if pair[0] == "final" else pair[0], pair[1]  # as run.final
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


class Gaps:
    """Finished rows in which functions of the user have no value.

    Args:
        outputs: Numbers of every run by name.
    """

    def __init__(self, outputs: Mapping[str, Output]) -> None:
        self._columns = {
            name: k
            for k, (name, output) in enumerate(outputs.items())
            if isinstance(output.what, int) and output.how not in CROSSINGS
        }
        self._found: dict[str, list[int]] = {}  # how many rows, and the first of them

    def look(self, part: ChunkResult) -> None:
        """Count those of a chunk; of numbers that stay on a GPU none."""
        if isinstance(part.values, np.ndarray):
            ended = np.isin(part.status, (FINISHED, INACCURATE))
            for name, column in self._columns.items():
                rows = np.flatnonzero(ended & np.isnan(part.values[:, column]))
                if rows.size:
                    known = self._found.setdefault(name, [0, part.first + int(rows[0])])
                    known[0] += rows.size

    def warn(self) -> None:
        """Warn of each output of which there were some."""
        for name, (count, first) in self._found.items():
            warnings.warn(
                f"output '{name}' is not a number in {count} finished rows, such as row {first}: "
                "its function has no value there, as the logarithm of a negative number has none",
                RunsFailedWarning,
                stacklevel=level_outside(),
            )
