"""Systems of polynomials that differ in their parameters only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument
from axode.kinematics.polynomials.tape_algebra import check_rational

if TYPE_CHECKING:
    import casadi as ca

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class PolynomialFamily:
    """As many polynomials as unknowns, with parameters.

    Unknowns and parameters should be of order one: roots much larger count as being at infinity.

    Attributes:
        key: Name of the structure; start sets are kept on disk under it and the residual.
        residual: Real CasADi function (x[n], p[m]) -> n residuals of + - * / and constants.
        unknowns: Their number n.
        parameters: Their number m.
        seed: Makes a generic complex member and one root of it, (x, p), from a generator. The
            residuals at it must be analytic in p, so that every p nearby is a member too.
    """

    key: str
    residual: ca.Function
    unknowns: int
    parameters: int
    seed: Callable[[np.random.Generator], tuple[ComplexArray, ComplexArray]]

    def __post_init__(self) -> None:
        wanted = [("arguments", (self.unknowns, self.parameters)), ("results", (self.unknowns,))]
        function = self.residual
        sizes = (
            tuple(function.numel_in(k) for k in range(function.n_in())),
            tuple(function.numel_out(k) for k in range(function.n_out())),
        )
        wrong = [
            f"{what} of sizes {found}, expected {expected}"
            for (what, expected), found in zip(wanted, sizes, strict=True)
            if found != expected
        ]
        if wrong:
            raise InvalidArgument(f"residual of family '{self.key}': {'; '.join(wrong)}.")

    @cached_property
    def residual_tape(self) -> Tape:
        """The residuals, of "x" and "p".

        Raises:
            InvalidArgument: naming an operation that is not rational.
        """
        return self._tape("residual", lambda x, p, r: r)  # (H1)

    @cached_property
    def jacobian_tape(self) -> Tape:
        """Derivatives of the residuals by the unknowns, row by row."""
        import casadi as ca

        return self._tape("jacobian", lambda x, p, r: ca.jacobian(r, x))

    @property
    def digest(self) -> str:
        """Name of the family and of its equations."""
        return f"{self.key} {self.residual_tape.digest}"

    def _tape(self, name: str, make: Callable[..., Any]) -> Tape:
        import casadi as ca

        x, p = ca.SX.sym("x", self.unknowns), ca.SX.sym("p", self.parameters)
        made = ca.vec(make(x, p, ca.vec(self.residual(x, p))).T)
        tape = Tape.from_casadi(ca.Function(name, [x, p], [ca.densify(made)], ["x", "p"], ["r"]))
        check_rational(tape, self.key)
        return tape
