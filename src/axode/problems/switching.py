"""Another choice of independent speeds, where the present one becomes singular."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from axode.codegen.facts import Facts
from axode.codegen.library import SymbolicLibrary
from axode.codegen.model import Model
from axode.problems.integrators import SMALLEST_PIVOT

Array = npt.NDArray[np.float64]


def switched_model(model: Model, q: Array, t: float) -> Model | None:
    """The same mechanism on speeds that do well at a configuration, or None if none do."""
    library = model.library
    if not isinstance(library, SymbolicLibrary):
        return None
    from axode.symbolic.equations import Equations
    from axode.symbolic.system import repartitioned

    system = repartitioned(library.equations.system, q, t)
    if system is None:
        return None
    equations = Equations(system, library.equations.formulation)
    facts = Facts.of(equations, fixed=model.facts.fixed)
    other = Model(replace(facts, home=model.facts.home),
                  SymbolicLibrary(equations, library.target, fixed=model.facts.fixed))  # fmt: skip
    pivots = other.library.entry("pivots")
    if other.tape("pivots").outputs[0].size:
        values = pivots.call(q, *_extras(other, pivots.arguments, t))
        if np.abs(values).min() < SMALLEST_PIVOT * 1.5:
            return None
    return other


def _extras(model: Model, arguments: tuple[str, ...], t: float) -> list[Array]:
    known = {"t": np.array([t]), "p": np.array(list(model.parameters.values()))}
    return [known[name] for name in arguments if name in known]
