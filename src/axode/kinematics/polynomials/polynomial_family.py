"""Systems of polynomials that differ in their parameters only, Newton's method and proofs on them.

Krawczyk's test proves that a real root is near a given point, by interval arithmetic: with the
midpoint m of a box X, a matrix Y near the inverse Jacobian, and the Jacobian J(X) over the whole
box, the set

    K = m - Y f(m) + (1 - Y J(X)) (X - m)

contains every root in X. If K lies inside X, there is exactly one root in X, and it is regular.

Their tapes are sums, products and quotients: a real straight-line function that is rational means
the same thing for any numbers that can be added, multiplied and divided, complex ones and truncated
series included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument
from axode.numerics.tolerances import SUM_ROUNDING, TINY

if TYPE_CHECKING:
    import casadi as ca


Indices = npt.NDArray[np.intp]
RATIONAL = (Kind.INPUT, Kind.CONSTANT, Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.NEG)


class Number(Protocol):
    """What a rational tape can be evaluated on."""

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def __mul__(self, other: Self) -> Self: ...
    def __truediv__(self, other: Self) -> Self: ...
    def __neg__(self) -> Self: ...


T = TypeVar("T", bound=Number)
_MEANING: dict[Kind, Callable[..., Any]] = {
    Kind.ADD: lambda a, b: a + b,
    Kind.SUB: lambda a, b: a - b,
    Kind.MUL: lambda a, b: a * b,
    Kind.DIV: lambda a, b: a / b,
    Kind.NEG: lambda a: -a,
}


def check_rational(tape: Tape, name: str) -> None:
    """Check that a tape is rational.

    Raises:
        InvalidArgument: listing the operations that are not.
    """
    others = sorted({Kind(kind).label for kind in tape.kinds.tolist()} - _LABELS)
    if others:
        raise InvalidArgument(
            f"family '{name}' uses {', '.join(others)}; polynomials are made of + - * / and "
            "constants.\n  Replace sines and cosines of an angle by rational functions of the "
            "tangent of its half, and roots by further unknowns."
        )


_LABELS = {kind.label for kind in RATIONAL}


def evaluate_rational(
    tape: Tape, arguments: Sequence[Sequence[T]], constant: Callable[[float], T]
) -> list[T]:
    """Evaluate a rational tape.

    Args:
        tape: Sums, differences, products, quotients.
        arguments: Elements of each input.
        constant: Makes a number of a real one.
    """
    numbers: list[T] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            numbers.append(arguments[row[0]][row[1]])
        elif kind == Kind.CONSTANT:
            numbers.append(constant(float(tape.constants[row[0]])))
        else:
            operands = (numbers[i] for i in row[: ARITY[Kind(kind)]])
            numbers.append(_MEANING[Kind(kind)](*operands))
    return [numbers[i] for i in tape.results.tolist()]


@dataclass(frozen=True)
class LevelOperations:
    """Operations of one kind whose operands are all known: they can be done together.

    Attributes:
        kind: What they do.
        results: Their places among the tape's values.
        operands: Places of the first operands, and of the second ones if there are any.
    """

    kind: Kind
    results: Indices
    operands: tuple[Indices, ...]

    def apply(self, values: Any) -> Any:
        """Return the results for values by place."""
        return _MEANING[self.kind](*(values[places] for places in self.operands))


@lru_cache(maxsize=256)
def tape_levels(tape: Tape) -> tuple[LevelOperations, ...]:
    """Operations of a rational tape in an order in which few calls of NumPy do all of them."""
    depth = np.zeros(len(tape.kinds), dtype=np.intp)
    for number, (kind, row) in enumerate(zip(tape.kinds.tolist(), tape.operands, strict=True)):
        if kind > Kind.CONSTANT:
            depth[number] = 1 + depth[row[: ARITY[Kind(kind)]]].max()
    made = []
    for level in range(1, int(depth.max(initial=0)) + 1):
        here = np.flatnonzero(depth == level)
        for kind in np.unique(tape.kinds[here]).tolist():
            results = here[tape.kinds[here] == kind]
            operands = tape.operands[results, : ARITY[Kind(kind)]].astype(np.intp)
            made.append(LevelOperations(Kind(kind), results, tuple(operands.T)))
    return tuple(made)


def filled_leaves(tape: Tape, arguments: Sequence[Any], kind: npt.DTypeLike) -> Any:
    """Array for the values of a tape, (..., values, points), with inputs and constants in place.

    Args:
        tape: The tape.
        arguments: Its arguments, (..., points, elements) each.
        kind: Kind of the numbers.
    """
    *batch, points, _ = arguments[0].shape
    made = np.empty((*batch, len(tape.kinds), points), dtype=kind)
    leaves = np.flatnonzero(tape.kinds == Kind.INPUT)
    numbers, elements = tape.operands[leaves, 0], tape.operands[leaves, 1].astype(np.intp)
    for number, given in enumerate(arguments):
        own = numbers == number
        made[..., leaves[own], :] = np.swapaxes(given, -1, -2)[..., elements[own], :]
    leaves = np.flatnonzero(tape.kinds == Kind.CONSTANT)
    made[..., leaves, :] = tape.constants[tape.operands[leaves, 0].astype(np.intp), np.newaxis]
    return made


@dataclass(frozen=True)
class Complex:
    """A complex value of a tape under construction."""

    re: Formula
    im: Formula

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        if self == other:
            return Complex(self.re * self.re - self.im * self.im, 2.0 * (self.re * self.im))
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __truediv__(self, other: Complex) -> Complex:
        if other.im.is_zero():
            return Complex(self.re / other.re, self.im / other.re)
        return self * other.inverse()

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def inverse(self) -> Complex:
        """Return the reciprocal."""
        scale = 1.0 / self.square()
        return Complex(self.re * scale, -(self.im * scale))

    def square(self) -> Formula:
        """Return the square of its absolute value."""
        return self.re * self.re + self.im * self.im

    def scaled(self, factor: Formula | float) -> Complex:
        """Return a real multiple of it."""
        return Complex(self.re * factor, self.im * factor)

    def then(self, flag: Formula, other: Complex) -> Complex:
        """Return it where a flag is up, else the other one."""
        return Complex(flag.then(self.re, other.re), flag.then(self.im, other.im))

    def real(self, value: float) -> Complex:
        """Return a real number as a value of the same tape."""
        zero = self.re.like(0.0)
        return Complex(zero if value == 0.0 else self.re.like(value), zero)


def pairs(vector: Vector) -> list[Complex]:
    """Complex numbers of a vector that holds real and imaginary parts in turn."""
    return [Complex(a, b) for a, b in zip(vector[::2], vector[1::2], strict=True)]


def parts(numbers: Sequence[Complex]) -> Vector:
    """Real and imaginary parts in turn, as NumPy lays complex numbers out."""
    return [part for number in numbers for part in (number.re, number.im)]


@dataclass(frozen=True)
class Series:
    """A power series of complex values, cut after as many terms as it has."""

    terms: tuple[Complex, ...]

    def __add__(self, other: Series) -> Series:
        return Series(tuple(a + b for a, b in zip(self.terms, other.terms, strict=True)))

    def __sub__(self, other: Series) -> Series:
        return Series(tuple(a - b for a, b in zip(self.terms, other.terms, strict=True)))

    def __mul__(self, other: Series) -> Series:
        return Series(tuple(self._product(other, k) for k in range(len(self.terms))))

    def __truediv__(self, other: Series) -> Series:
        inverse = other.terms[0].inverse()
        made: list[Complex] = []
        for k, term in enumerate(self.terms):
            for i in range(k):
                term = term - made[i] * other.terms[k - i]
            made.append(term * inverse)
        return Series(tuple(made))

    def __neg__(self) -> Series:
        return Series(tuple(-a for a in self.terms))

    def real(self, value: float) -> Series:
        """Return a real number as a series of the same tape."""
        first = self.terms[0]
        return Series((first.real(value), *[first.real(0.0)] * (len(self.terms) - 1)))

    def _product(self, other: Series, k: int) -> Complex:
        """Return term k of a product; the terms of a square come in equal pairs."""
        if self == other:
            total = self.terms[k // 2] * self.terms[k // 2] if k % 2 == 0 else None
            for i in range((k + 1) // 2):
                twice = (self.terms[i] * self.terms[k - i]).scaled(2.0)
                total = twice if total is None else total + twice
            assert total is not None
            return total
        total = self.terms[0] * other.terms[k]
        for i in range(1, k + 1):
            total = total + self.terms[i] * other.terms[k - i]
        return total


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
