"""Systems of polynomials that differ in their parameters only, Newton's method and proofs on them.

Krawczyk's test proves that a real root is near a given point, by interval arithmetic: with the
midpoint m of a box X, a matrix Y near the inverse Jacobian, and the Jacobian J(X) over the whole
box, the set

    K = m - Y f(m) + (1 - Y J(X)) (X - m)

contains every root in X. If K lies inside X, there is exactly one root in X, and it is regular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument
from axode.kinematics.polynomials.tape_algebra import check_rational, filled_leaves, tape_levels
from axode.numerics.tolerances import SUM_ROUNDING, TINY

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
        error = np.linalg.norm(step, axis=1) / np.linalg.norm(points, axis=1).clip(TINY)
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
        values = filled_leaves(tape, (x[rows], p[rows]), kind)
        for operations in tape_levels(tape):
            values[operations.results] = operations.apply(values)
        made[rows] = values[tape.results].T
    return made


Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
OUTWARD = np.array([-np.inf, np.inf])
CHUNK = 4096  # points at a time
TRIALS = 8  # boxes that are tried, each larger than the one before
INFLATION = 4.0  # size of a box against what the test left of the one before


@dataclass(frozen=True, eq=False)
class IntervalArray:
    """Intervals [a, b] as an array with the ends along its first axis; results contain all values.

    Attributes:
        ends: Shape (2, ...).
    """

    ends: Array

    @classmethod
    def between(cls, low: npt.ArrayLike, high: npt.ArrayLike) -> IntervalArray:
        """Return the intervals from `low` to `high`."""
        return cls(np.stack(np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))))

    @classmethod
    def at(cls, value: npt.ArrayLike) -> IntervalArray:
        """Return intervals of one number each."""
        return cls.between(value, value)

    def __add__(self, other: IntervalArray) -> IntervalArray:
        return _outward(self.ends + other.ends)

    def __sub__(self, other: IntervalArray) -> IntervalArray:
        return _outward(self.ends - other.ends[::-1])

    def __neg__(self) -> IntervalArray:
        return IntervalArray(-self.ends[::-1])

    def __mul__(self, other: IntervalArray) -> IntervalArray:
        products = self.ends[:, np.newaxis] * other.ends[np.newaxis]
        flat = products.reshape((4, *products.shape[2:]))
        return _outward(np.stack([flat.min(axis=0), flat.max(axis=0)]))

    def __truediv__(self, other: IntervalArray) -> IntervalArray:
        low, high = other.ends
        with np.errstate(divide="ignore"):
            inverse = _outward(1.0 / other.ends[::-1])
        around_zero = (low <= 0) & (high >= 0)
        whole = np.where(around_zero, OUTWARD.reshape(2, *[1] * low.ndim), inverse.ends)
        with np.errstate(invalid="ignore"):  # zero by zero may be anything: NaN proves nothing
            return self * IntervalArray(whole)

    def __getitem__(self, index: object) -> IntervalArray:
        return IntervalArray(
            self.ends[(slice(None), *(index if isinstance(index, tuple) else (index,)))]
        )

    def total(self) -> IntervalArray:
        """Return the sums along the last axis."""
        made = self[..., 0]
        for k in range(1, self.ends.shape[-1]):
            made = made + self[..., k]
        return made

    @property
    def size(self) -> Array:
        """Largest absolute value in each."""
        return np.asarray(np.abs(self.ends).max(axis=0))


def _outward(ends: Array) -> IntervalArray:
    directions = OUTWARD.reshape(2, *[1] * (ends.ndim - 1))
    return IntervalArray(np.nextafter(ends, directions))


@dataclass(frozen=True)
class RootCertificates:
    """What was proved of each point.

    Attributes:
        certified: Whether there is exactly one root in the box around the point.
        radius: Half the width of the box of each unknown, (roots, unknowns).
    """

    certified: Mask
    radius: Array


def certify_roots(family: PolynomialFamily, x: npt.ArrayLike, p: npt.ArrayLike) -> RootCertificates:
    """Prove that there is exactly one real root near each point.

    Where the proof fails nothing is known: the root may be singular, or the point not near one.

    Args:
        family: The polynomials.
        x: Points, (roots, unknowns), polished to rounding.
        p: Real parameters, one row per point, taken to be exact.
    """
    points = np.atleast_2d(np.asarray(x, dtype=float))
    parameters = np.atleast_2d(np.asarray(p, dtype=float))
    certified, radius = np.zeros(len(points), dtype=bool), np.full(points.shape, np.nan)
    for first in range(0, len(points), CHUNK):
        rows = slice(first, first + CHUNK)
        certified[rows], radius[rows] = _certify(family, points[rows], parameters[rows])
    return RootCertificates(certified, radius)


def _certify(family: PolynomialFamily, points: Array, parameters: Array) -> tuple[Mask, Array]:
    """Try boxes about points, each larger than the one before; which are proved, and their size."""
    count, n = points.shape
    with np.errstate(all="ignore"):
        inverse = inverse_jacobians(family, points, parameters)
        moved = _times(
            IntervalArray.at(inverse),
            _values(family.residual_tape, IntervalArray.at(points), parameters),
        )
        radius = SUM_ROUNDING * (1.0 + np.abs(points)) + INFLATION * moved.size
        certified, proved = np.zeros(count, dtype=bool), np.full((count, n), np.nan)
        waiting = np.flatnonzero(np.isfinite(radius).all(axis=1))
        for _ in range(TRIALS):
            if not waiting.size:
                break
            own: Any = [x[waiting] for x in (points, parameters, inverse, moved, radius)]
            inside, image = _krawczyk(family, *own)
            done = waiting[inside]
            certified[done], proved[done] = True, radius[done]
            wanted = INFLATION * image[~inside]
            waiting = waiting[~inside]
            radius[waiting] = np.maximum(INFLATION * radius[waiting], wanted)
            waiting = waiting[np.isfinite(radius[waiting]).all(axis=1)]
    return certified, proved


def _krawczyk(
    family: PolynomialFamily,
    x: Array,
    p: Array,
    inverse: Array,
    moved: IntervalArray,
    radius: Array,
) -> tuple[Mask, Array]:
    """Test boxes: which contain what Krawczyk's operator makes of them, and how large that is."""
    n = x.shape[1]
    box = _outward(np.stack([x - radius, x + radius]))
    entries = _values(family.jacobian_tape, box, p).ends.reshape(2, len(x), n, n)
    columns = IntervalArray(np.swapaxes(entries, 2, 3)[:, :, np.newaxis])
    product = (IntervalArray.at(inverse[:, :, np.newaxis]) * columns).total()
    rest = IntervalArray.at(np.eye(n)[np.newaxis]) - product
    change = _times(rest, box - IntervalArray.at(x)) - moved
    image = IntervalArray.at(x) + change  # (H7)
    inside = (image.ends[0] > box.ends[0]) & (image.ends[1] < box.ends[1])
    return inside.all(axis=1), change.size


def _values(tape: Tape, x: IntervalArray, p: Array) -> IntervalArray:
    """Evaluate a tape at boxes of unknowns: (..., results)."""
    ends = filled_leaves(tape, (x.ends, np.stack([p, p])), float)
    for operations in tape_levels(tape):
        ends[:, operations.results] = operations.apply(IntervalArray(ends)).ends
    return IntervalArray(np.swapaxes(ends[:, tape.results], 1, 2))


def _times(matrix: IntervalArray, vector: IntervalArray) -> IntervalArray:
    return (matrix * IntervalArray(vector.ends[:, :, np.newaxis])).total()
