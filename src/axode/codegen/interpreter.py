"""CasADi's own evaluator as a target: nothing to compile, so a first answer comes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
Compiled = tuple[Callable[..., Array], tuple[str, ...], tuple[int, ...]]


class InterpreterBackend:
    """Functions of a model on CasADi's virtual machine."""

    target = "interpreter"

    def __init__(self, equations: Equations, *, fixed: bool) -> None:
        self.equations = equations
        self.fixed = fixed
        self.function = cache(self._function)

    def _function(self, name: str) -> Compiled:
        """A function, the arguments it takes (time and parameters follow) and its shape."""
        from axode.symbolic.functions import RECIPES

        recipe = RECIPES[name]
        expression = recipe.expression(self.equations)
        return (
            self._callable(name, recipe.arguments, expression), recipe.arguments,
            recipe.shape(self.equations),
        )  # fmt: skip

    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Callable[..., Array]:
        """All accelerations and inputs from the known ones, as one vector."""
        import casadi as ca

        solved = self.equations.hybrid_dynamics(accelerations, inputs)
        return self._callable("hybrid", ("q", "nu", "nu_dot", "u"), ca.vertcat(*solved))

    def _callable(
        self, name: str, arguments: Sequence[str], expression: object
    ) -> Callable[..., Array]:
        import casadi as ca

        e = self.equations
        symbols = [getattr(e, argument) for argument in arguments]
        flat = ca.vec(ca.densify(expression).T)  # row-major, as NumPy reads it
        if self.fixed and e.p.shape[0]:
            flat = ca.substitute(flat, e.p, ca.DM(e.system.defaults))
        function = ca.Function(name, [*symbols, e.t, e.p], [flat])
        size = flat.shape[0]

        def evaluate(*columns: Array) -> Array:
            count = columns[0].shape[0]
            if count == 0 or size == 0:
                return np.zeros((count, size))
            # one column a sample: CasADi maps over columns by itself
            result: Array = np.array(function(*(c.T for c in columns))).reshape(size, count).T
            return np.ascontiguousarray(result)

        return evaluate
