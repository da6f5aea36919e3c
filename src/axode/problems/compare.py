"""Compare: one mechanism by every formulation, agreement and cost side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import NotApplicable
from axode.mechanism.mechanism import Mechanism
from axode.model.compile import compile_model
from axode.model.model_parts import function_tape
from axode.names import as_names
from axode.problems.arguments import require_mechanism
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
REFERENCE = "recursive"
STATES = 8
COMPARED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "multipliers")


@dataclass(frozen=True)
class FormulationResult:
    """What one formulation gives and costs.

    Attributes:
        name: Name of the formulation.
        errors: Largest relative difference from the reference, by function.
        operations: Operation counts of forward and inverse dynamics.
        seconds: Time to derive forward dynamics [s].
        refused: Why the formulation does not take this mechanism; empty if it does.
    """

    name: str
    errors: dict[str, float]
    operations: tuple[int, int]
    seconds: float
    refused: str = ""

    @property
    def worst(self) -> float:
        """Largest of its errors."""
        return max(self.errors.values(), default=0.0)


@dataclass(frozen=True)
class Comparison:
    """All formulations on one mechanism; prints as a table."""

    mechanism: str
    reference: str
    rivals: tuple[FormulationResult, ...]

    @property
    def agrees(self) -> bool:
        """True if all that apply agree to 1e-9."""
        return all(rival.worst < 1e-9 for rival in self.rivals)

    def __str__(self) -> str:
        title = f"{self.mechanism}: difference from '{self.reference}', operations, time to derive"
        heads = f"  {'formulation':<18}{'difference':>12}{'direct':>9}{'inverse':>9}{'ms':>8}"
        lines = [title, heads]
        for rival in self.rivals:
            if rival.refused:
                lines.append(f"  {rival.name:<18}{'-':>12}   {rival.refused.splitlines()[0]}")
            else:
                direct, inverse = rival.operations
                lines.append(
                    f"  {rival.name:<18}{rival.worst:>12.1e}{direct:>9}{inverse:>9}"
                    f"{rival.seconds * 1e3:>8.0f}"
                )
        return "\n".join(lines)


@stoppable
def compare(
    mechanism: Mechanism, formulations: Sequence[str] | None = None, *, seed: int = 0
) -> Comparison:
    """Derive a mechanism by every formulation and compare their numbers at random states.

    Args:
        mechanism: What to derive.
        formulations: Names to compare; all unless given.
        seed: Seed of the random states.

    Raises:
        InvalidArgument: for anything but a mechanism.
    """
    check_arguments(compare, locals())
    require_mechanism("compare", mechanism)
    from axode.symbolic.formulations import FORMULATIONS

    reference = mechanism.derive(REFERENCE)
    states = _states(reference, seed)
    expected = _values(reference, states)
    rivals = [
        _rival(mechanism, name, reference, states, expected)
        for name in as_names(formulations or FORMULATIONS)
    ]
    return Comparison(mechanism.name, REFERENCE, tuple(rivals))


def _states(equations: Equations, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    q = equations.system.assembly.samples(equations.system.home, STATES, seed + 1)
    n, count = len(equations.independent), len(q)
    return {
        "q": np.array(q),
        "nu": rng.normal(size=(count, n)),
        "nu_dot": rng.normal(size=(count, n)),
        "u": rng.normal(size=(count, len(equations.inputs))),
    }


def _values(equations: Equations, states: dict[str, Array]) -> dict[str, Array]:
    model = compile_model(equations, "interpreter")
    return {
        name: model.evaluate(name, states)
        for name in COMPARED
        if name != "inverse_dynamics" or model.inputs
    }


def _rival(
    mechanism: Mechanism,
    name: str,
    reference: Equations,
    states: dict[str, Array],
    expected: dict[str, Array],
) -> FormulationResult:
    started = time.perf_counter()
    try:
        equations = mechanism.derive(name, list(reference.independent))
        model: Any = compile_model(equations, "interpreter")
        tape = function_tape(model, "forward_dynamics")
        seconds = time.perf_counter() - started
        got = _values(equations, states)
        inverse = model.operations("inverse_dynamics") if model.inputs else 0
    except NotApplicable as refusal:
        return FormulationResult(name, {}, (0, 0), 0.0, str(refusal))
    # a force that cancels to nothing is compared with the terms that cancel: speeds are near one
    size = float(np.abs(expected["mass_matrix"]).max(initial=0.0))
    least = {"bias": size, "multipliers": size}
    errors = {key: _difference(got[key], expected[key], least.get(key, 0.0)) for key in expected}
    return FormulationResult(name, errors, (tape.n_operations, inverse), seconds)


def _difference(a: Array, b: Array, least: float = 0.0) -> float:
    """Largest difference, relative to the largest number or to `least` if that is more."""
    if not b.size:
        return 0.0
    return float(np.abs(a - b).max() / max(float(np.abs(b).max()), least, 1e-12))
