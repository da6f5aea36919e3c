"""Numbers of single states, with their gradients: costs at the end, events, changes of speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.reversal import part_of_tape, weighted_adjoint
from axode.codegen.tape.tape import Tape
from axode.problems.inputs.tracing import compile_tape

Array = npt.NDArray[np.float64]
ARGUMENTS = ("q", "nu", "t", "p", "gains")


@dataclass(frozen=True)
class StateGradient:
    """Gradient of numbers of states, by what they depend on: q, nu, t, p; (states, size) each."""

    parts: dict[str, Array]

    @classmethod
    def zero(cls, count: int, sizes: Mapping[str, int]) -> StateGradient:
        """Return an empty gradient."""
        return cls({name: np.zeros((count, size)) for name, size in sizes.items()})

    def add(self, other: Mapping[str, Array], at: npt.NDArray[np.intp]) -> None:
        """Add the gradient of some of the states."""
        for name, array in other.items():
            self.parts[name][at] += array


def pull_back(
    tape: Tape, known: Mapping[str, Array], weights: Array, outputs: Sequence[int] | None = None
) -> tuple[Array, dict[str, Array]]:
    """Results of a tape at states, and the gradient of their weighted sum.

    Args:
        tape: A function of states.
        known: Its arguments by name, (states, size) or (size,).
        weights: Weights of the results, (states, results).
        outputs: Which results there are; all of them unless given.

    Returns:
        Results, (states, results); gradients by `ARGUMENTS`, those that it depends on.
    """
    if outputs is not None:
        tape = part_of_tape(tape, outputs)
    if not len(weights):
        return np.zeros((0, tape.outputs[0].size)), {}
    values = np.asarray(compile_tape(tape)(*_arguments(tape, known, len(weights))))
    return values.reshape(len(weights), -1), weighted_gradient(tape, known, weights)


def weighted_gradient(tape: Tape, known: Mapping[str, Array], weights: Array) -> dict[str, Array]:
    """Gradient of the weighted sum of a tape's results at states; see `pull_back`."""
    count = len(weights)
    of = tuple((port.name, None) for port in tape.inputs if port.name in ARGUMENTS)
    adjoint = weighted_adjoint(tape, ((None,),), of)
    if not adjoint.outputs:
        return {}
    shaped = np.ascontiguousarray(weights).reshape((count, *tape.outputs[0].shape))
    made = compile_tape(adjoint)(*_arguments(tape, known, count), shaped)
    made = made if isinstance(made, tuple) else (made,)
    return {
        port.name: np.asarray(array).reshape(count, -1)
        for port, array in zip(adjoint.outputs, made, strict=True)
    }


def _arguments(tape: Tape, known: Mapping[str, Array], count: int) -> list[Array]:
    """Arguments of a tape, one row per state."""
    return [
        np.ascontiguousarray(np.broadcast_to(known[port.name], (count, port.size))).reshape(
            (count, *port.shape)
        )
        for port in tape.inputs
    ]
