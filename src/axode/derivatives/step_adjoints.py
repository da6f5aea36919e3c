"""Gradients of what a step is made of, from the equations: of rates and of the projection."""

from __future__ import annotations

from axode.derivatives.projection_adjoint import projection_adjoint
from axode.derivatives.rate_adjoint import RateAdjoint
from axode.errors import NotApplicable
from axode.symbolic.equations import Equations
from axode.symbolic.functions import FunctionGraph


def adjoint_graph(equations: Equations, name: str, *, fixed: bool) -> FunctionGraph:
    """Gradient of `state_rate`, without the work done, or of `projection`.

    Raises:
        NotApplicable: where the rates that are computed solve no short equations.
    """
    if name == "projection_adjoint":
        return projection_adjoint(equations, fixed)
    for by_composites in (False, True):
        made = RateAdjoint(equations, by_composites)
        if equations.independent and made.are_solved():
            return made.graph(fixed)
    raise NotApplicable(f"'{equations.name}' has no {name}: its rates solve no short equations")
