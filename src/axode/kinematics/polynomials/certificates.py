"""Proofs that a real root is near a given point, by interval arithmetic.

Krawczyk's test: with the midpoint m of a box X, a matrix Y near the inverse Jacobian, and the
Jacobian J(X) over the whole box, the set

    K = m - Y f(m) + (1 - Y J(X)) (X - m)

contains every root in X. If K lies inside X, there is exactly one root in X, and it is regular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape
from axode.kinematics.polynomials.polynomial_family import PolynomialFamily, inverse_jacobians
from axode.kinematics.polynomials.tape_algebra import tape_leaves, tape_levels
from axode.numerics.tolerances import SUM_ROUNDING

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
            inside, image = _krawczyk(
                family,
                points[waiting],
                parameters[waiting],
                inverse[waiting],
                moved[waiting],
                radius[waiting],
            )
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
    product = _times_matrix(IntervalArray.at(inverse), IntervalArray(entries))
    rest = IntervalArray.at(np.eye(n)[np.newaxis]) - product
    change = _times(rest, box - IntervalArray.at(x)) - moved
    image = IntervalArray.at(x) + change  # (H7)
    inside = (image.ends[0] > box.ends[0]) & (image.ends[1] < box.ends[1])
    return inside.all(axis=1), change.size


def _values(tape: Tape, x: IntervalArray, p: Array) -> IntervalArray:
    """Evaluate a tape at boxes of unknowns: (..., results)."""
    ends = np.empty((2, len(tape.kinds), len(p)))
    for argument, given in enumerate((x.ends, np.stack([p, p]))):
        places, elements = tape_leaves(tape, Kind.INPUT, argument)
        ends[:, places] = np.swapaxes(given, 1, 2)[:, elements]
    places, elements = tape_leaves(tape, Kind.CONSTANT)
    ends[:, places] = tape.constants[elements, np.newaxis]
    values = IntervalArray(ends)
    for operations in tape_levels(tape):
        ends[:, operations.results] = operations.apply(values).ends
    return IntervalArray(np.swapaxes(ends[:, tape.results], 1, 2))


def _times(matrix: IntervalArray, vector: IntervalArray) -> IntervalArray:
    return (matrix * IntervalArray(vector.ends[:, :, np.newaxis])).total()


def _times_matrix(a: IntervalArray, b: IntervalArray) -> IntervalArray:
    columns = np.swapaxes(b.ends, 2, 3)[:, :, np.newaxis]
    return (IntervalArray(a.ends[:, :, :, np.newaxis]) * IntervalArray(columns)).total()
