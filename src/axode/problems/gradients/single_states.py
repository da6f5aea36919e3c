"""Numbers of single states, with their gradients.

Costs at the end, events, changes of speeds, and the samples that a law takes at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.reversal import part_of_tape, weighted_adjoint
from axode.codegen.tape.tape import Tape
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.problems.inputs.inputs import InputPlan
from axode.problems.inputs.tracing import compile_tape
from axode.problems.simulate.starts import Starts

Array = npt.NDArray[np.float64]
ARGUMENTS = ("q", "nu", "t", "p", "gains")


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


class FirstSamples:
    """What samples at the start make of the state that was asked for.

    Args:
        model: What moves.
        plan: Its input, one row per run or one for all.
        starts: The starts, after the samples.
        t0: Time at the start [s].
    """

    def __init__(self, model: Model, plan: InputPlan, starts: Starts, t0: float) -> None:
        taken = plan.updates is not None and isinstance(model, ModelWithMemory)
        self._fresh = list(starts.fresh) if taken else []
        if not (self._fresh and isinstance(model, ModelWithMemory) and plan.updates is not None):
            return
        self._tape = plan.updates.tape
        nu = np.array(starts.nu)
        first = nu.shape[1] - len(model.memory)
        nu[:, self._fresh] = [model.memory[k - first].start for k in self._fresh]
        self._known = {"q": starts.q, "nu": nu, "t": np.full((len(nu), 1), float(t0))}
        self._known |= {"due": np.ones(len(plan.updates.periods))}
        kept = {"p": starts.p, "gains": plan.gains}
        self._known |= {name: array for name, array in kept.items() if array is not None}

    def pull_back(
        self,
        weights: dict[str, Array],
        shared: Mapping[str, Array],
        of: Mapping[str, Sequence[int]],
    ) -> dict[str, Array]:
        """Return gradients by the state before the samples.

        Args:
            weights: Gradients by q and nu after them, (runs, size) each.
            shared: Gradients by what a run keeps, to which those of the samples are added.
            of: Which elements these are.
        """
        if not self._fresh:
            return weights
        taken = np.zeros_like(weights["nu"])
        taken[:, self._fresh] = weights["nu"][:, self._fresh]
        found = weighted_gradient(self._tape, self._known, taken)
        for name, total in shared.items():
            if name in found:
                total += found[name][:, list(of[name])]
        return {
            name: w - (taken if name == "nu" else 0.0) + found.get(name, 0.0)
            for name, w in weights.items()
        }

    def push_on(self, change: Mapping[str, Array], shared: Mapping[str, Array]) -> dict[str, Array]:
        """Return the change of the state after the samples.

        Args:
            change: That of q and nu before them, (runs, size) each.
            shared: That of what a run keeps, by name.
        """
        nu = np.array(change["nu"])
        for k in self._fresh:
            one = np.zeros_like(nu)
            one[:, k] = 1.0
            slopes = weighted_gradient(self._tape, self._known, one)
            moved = {**change, **shared}
            nu[:, k] = sum(
                (slopes[name] * moved[name]).sum(axis=1) for name in slopes if name in moved
            )
        return {**change, "nu": nu}
