"""Systems of polynomials that differ in their parameters only, and Newton's method on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument
from axode.kinematics.polynomials.tape_algebra import check_rational, tape_leaves, tape_levels

if TYPE_CHECKING:
    import casadi as ca


ComplexArray = npt.NDArray[np.complex128]
STEPS = 4
JACOBIANS = 2  # steps with a Jacobian of their own; the others use the last one
MAX_NUMBERS = 1 << 21  # values of a tape that are in memory at a time
NumberArray = npt.NDArray[Any]


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


def polish_roots(
    family: PolynomialFamily, x: npt.ArrayLike, p: npt.ArrayLike
) -> tuple[NumberArray, npt.NDArray[np.float64]]:
    """Improve roots by Newton's method, real ones by real numbers.

    Residuals are computed in the machine's extended precision, where it has one, so that roots
    become as exact as their numbers can be, even where the Jacobian is nearly singular.

    Args:
        family: The polynomials.
        x: Points near roots, (roots, unknowns), real or complex.
        p: Parameters, one row per root.

    Returns:
        The roots, and the size of the last step relative to each; NaN where it is singular.
    """
    points, parameters = np.atleast_2d(np.asarray(x)), np.atleast_2d(np.asarray(p))
    kind = np.result_type(points, parameters, np.float64)
    longer = np.result_type(kind, np.longdouble)
    points, given = points.astype(kind), parameters.astype(longer)
    error, n = np.full(len(points), np.nan), points.shape[1]
    inverse = np.full((len(points), n, n), np.nan, dtype=kind)
    for number in range(STEPS):
        if number < JACOBIANS:
            inverse = inverse_jacobians(family, points, parameters)
        residual = evaluate_at(family.residual_tape, points.astype(longer), given).astype(kind)
        step = (inverse @ residual[..., np.newaxis])[..., 0]
        points = points - step
        error = np.linalg.norm(step, axis=1) / np.linalg.norm(points, axis=1).clip(1e-300)
    return points, error


def inverse_jacobians(family: PolynomialFamily, x: NumberArray, p: NumberArray) -> NumberArray:
    """Return approximate inverse Jacobians at points; NaN where they are singular."""
    n = x.shape[1]
    matrices = evaluate_at(family.jacobian_tape, x, p).reshape(-1, n, n)
    usable = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    usable[usable] = np.abs(np.linalg.det(matrices[usable])) > 0
    inverse = np.full_like(matrices, np.nan)
    inverse[usable] = np.linalg.inv(matrices[usable])
    return inverse


def evaluate_at(tape: Tape, x: NumberArray, p: NumberArray) -> NumberArray:
    """Evaluate a tape of a family at points, each with its own parameters: (points, results)."""
    kind, most = np.result_type(x, p), max(1, MAX_NUMBERS // len(tape.kinds))
    made = np.empty((len(x), len(tape.results)), dtype=kind)
    for first in range(0, len(x), most):
        rows = slice(first, first + most)
        values = np.empty((len(tape.kinds), len(x[rows])), dtype=kind)
        for argument, given in enumerate((x[rows], p[rows])):
            places, elements = tape_leaves(tape, Kind.INPUT, argument)
            values[places] = given.T[elements]
        places, elements = tape_leaves(tape, Kind.CONSTANT)
        values[places] = tape.constants[elements, np.newaxis]
        for operations in tape_levels(tape):
            values[operations.results] = operations.apply(values)
        made[rows] = values[tape.results].T
    return made
