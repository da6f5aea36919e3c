"""Vectors, axes and rotations as a description holds them: tuples of numbers and formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, TypeAlias

import numpy as np

from axode.errors import InvalidArgument, shortened
from axode.mechanism.values.expressions import Expression, Scalar, apply, as_scalar, numeric
from axode.numerics.rank import singular_vectors
from axode.numerics.tolerances import FOUR_DIGITS, ORTHOGONAL, SEVEN_DIGITS, TWO_ROUNDINGS

Vector: TypeAlias = tuple[Scalar, Scalar, Scalar]
Matrix: TypeAlias = tuple[Vector, Vector, Vector]
# roll-pitch-yaw (3), unit quaternion w, x, y, z (4), or a rotation matrix (3 x 3)
Rotation: TypeAlias = "Vector | tuple[Scalar, Scalar, Scalar, Scalar] | Matrix"

ORIGIN: Vector = (0.0, 0.0, 0.0)
NO_ROTATION: Rotation = (0.0, 0.0, 0.0)
NO_TURN: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
AXES: dict[str, Vector] = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "-z": (0.0, 0.0, -1.0),
}


def as_vector(value: Any) -> Vector:
    """Three numbers or formulas, from any sequence of three."""
    if isinstance(value, str):
        if value in AXES:
            return AXES[value]
        raise InvalidArgument(f"expected three numbers or one of {', '.join(AXES)}, got '{value}'")
    items = tuple(map(as_scalar, _items(value, "three numbers")))
    if len(items) != 3:
        raise InvalidArgument(f"expected three numbers, got {len(items)}")
    return items


def take(part: Any, conversion: Callable[[Any], Any], *names: str) -> None:
    """Convert fields of a frozen part in place; an error names the part and the field."""
    for name in names:
        try:
            object.__setattr__(part, name, conversion(getattr(part, name)))
        except InvalidArgument as error:
            raise InvalidArgument(f"{type(part).__name__}, {name}: {error}") from None


def _items(value: Any, expected: str) -> list[Any]:
    """What an ordered collection holds."""
    if type(value) is tuple or not isinstance(value, str | bytes | Mapping | Set):
        try:
            return list(value)
        except TypeError:
            pass
    raise InvalidArgument(f"expected {expected}, got {shortened(value)}")


def as_rotation(value: Any) -> Rotation:
    """Roll-pitch-yaw, a quaternion or a matrix, distinguished by their size.

    SciPy's `Rotation` is understood as well.
    """
    expected = "roll, pitch, yaw (3 numbers), a quaternion w, x, y, z (4) or a 3 x 3 matrix"
    rows = _items(value.as_matrix() if hasattr(value, "as_matrix") else value, expected)
    if len(rows) == 3 and all([hasattr(row, "__len__") for row in rows]):
        return tuple(as_vector(row) for row in rows)  # type: ignore[return-value]
    items = tuple(as_scalar(v) for v in rows)
    if len(items) not in (3, 4):
        raise InvalidArgument(f"expected {expected}, got {len(items)} numbers")
    return items  # type: ignore[return-value]


def scalars(value: Any) -> Iterator[Scalar]:
    """Every number and formula inside nested tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from scalars(item)
    else:
        yield value


def rotation_matrix(rotation: Rotation) -> Matrix:
    """Return the matrix of a rotation, exact for multiples of a right angle.

    A matrix of numbers that was written with few digits gives the rotation nearest to it.

    Roll, pitch, yaw turn about fixed x, y, z in this order: `R = Rz(yaw) Ry(pitch) Rx(roll)`.
    """
    if rotation == NO_ROTATION:
        return NO_TURN
    if isinstance(rotation[0], tuple):
        return _nearest_rotation(rotation)  # type: ignore[arg-type]
    if len(rotation) == 4:
        return _from_quaternion(*rotation)  # type: ignore[arg-type]
    (cr, sr), (cp, sp), (cy, sy) = (cos_sin(angle) for angle in rotation)  # type: ignore[arg-type]
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def _nearest_rotation(matrix: Matrix) -> Matrix:
    """Return the rotation next to a matrix that is one but for the rounding of its entries."""
    R = np.array([[numeric(entry) for entry in row] for row in matrix])
    if not np.isfinite(R).all() or np.abs(R.T @ R - np.eye(3)).max() < ORTHOGONAL:
        return matrix
    if any(isinstance(entry, Expression) for row in matrix for entry in row):
        # one step of Newton's towards it, R (3 - R^T R) / 2, as a formula
        square = product(transposed(matrix), matrix)
        half = tuple(
            tuple(plus(1.5 * (i == j), times(-0.5, entry)) for j, entry in enumerate(row))
            for i, row in enumerate(square)
        )
        return product(matrix, half)  # type: ignore[arg-type]
    U, _, Vt = singular_vectors(R)
    return tuple(tuple(snap(float(x)) for x in row) for row in U @ Vt)  # type: ignore[return-value]


def cos_sin(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Cosine and sine of an angle, exact for multiples of a right angle."""
    return snap(apply("cos", angle)), snap(apply("sin", angle))


def snap(value: Scalar) -> Scalar:
    """Remove the rounding of cos(pi/2) and its like, so that zeros stay structural."""
    if isinstance(value, float):
        nearest = float(round(value))
        return nearest if abs(value - nearest) < TWO_ROUNDINGS else value
    return value


def _from_quaternion(w: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Matrix:
    norm2 = w * w + x * x + y * y + z * z
    s = 2.0 / norm2
    return (
        (1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
        (s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)),
        (s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)),
    )


def product(A: Matrix, B: Matrix) -> Matrix:
    """A B, without the terms that are zero, so that formulas stay short."""
    columns = tuple(zip(*B, strict=True))
    return tuple(tuple(_dot(row, column) for column in columns) for row in A)  # type: ignore[return-value]


def turned(R: Matrix, x: Vector) -> Vector:
    """R x"""
    return tuple(_dot(row, x) for row in R)  # type: ignore[return-value]


def added(x: Vector, y: Vector) -> Vector:
    """x + y"""
    return tuple(plus(a, b) for a, b in zip(x, y, strict=True))  # type: ignore[return-value]


def transposed(R: Matrix) -> Matrix:
    """The inverse of a rotation."""
    return tuple(zip(*R, strict=True))  # type: ignore[return-value]


def _dot(x: Vector, y: Vector) -> Scalar:
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        total = plus(total, times(a, b))
    return total


def plus(a: Scalar, b: Scalar) -> Scalar:
    """a + b, just the other one where one is zero."""
    return b if a == 0.0 else a if b == 0.0 else a + b


def times(a: Scalar, b: Scalar) -> Scalar:
    """a b, without formulas that are zero or multiplied by one."""
    if a == 0.0 or b == 0.0:
        return 0.0
    return b if a == 1.0 else a if b == 1.0 else a * b


def minus(a: Scalar) -> Scalar:
    """-a, and no negative zero."""
    return 0.0 if a == 0.0 else -a


def unit(axis: Vector) -> Vector:
    """Unit vector along an axis that may be too long; zero for one that points nowhere."""
    length = math.hypot(*(numeric(a) for a in axis))
    if not 0.0 < length < math.inf:
        return ORIGIN
    if abs(length - 1.0) <= TWO_ROUNDINGS:
        return axis
    return tuple(a / length for a in axis)  # type: ignore[return-value]


def axis_fault(axis: Vector) -> str | None:
    """Why an axis is not a unit axis, or None."""
    length = math.hypot(*(numeric(a) for a in axis))
    if not math.isfinite(length):
        return "must be finite"
    if abs(length - 1.0) <= _unit_tolerance(axis):
        return None
    if length == 0.0:
        return "must be a unit vector, got zero length"
    unit = ", ".join(f"{numeric(a) / length:.9g}" for a in axis)
    return f"must be a unit vector, got length {length:.6g}; along it the unit one is ({unit})"


def _unit_tolerance(value: Any) -> float:
    """How much a length may differ from one."""
    formulas = any(isinstance(entry, Expression) for entry in scalars(value))
    return SEVEN_DIGITS if formulas else FOUR_DIGITS


def rotation_fault(rotation: Rotation) -> str | None:
    """Why a rotation is not one, or None."""
    if rotation == NO_ROTATION:
        return None
    values = [numeric(s) for s in scalars(rotation)]
    if not all(map(math.isfinite, values)):
        return "must be finite"
    if len(values) == 4 and abs(math.hypot(*values) - 1.0) > _unit_tolerance(rotation):
        return f"the quaternion w, x, y, z must have length 1, got {math.hypot(*values):.6g}"
    if len(values) == 9:
        rows = [values[0:3], values[3:6], values[6:9]]
        tolerance = 2.0 * _unit_tolerance(rotation)  # of squares of lengths
        for i in range(3):
            for j in range(3):
                product = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
                if abs(product - (i == j)) > tolerance:
                    return "the matrix is not orthogonal"
        (a, b, c), (d, e, f), (g, h, i_) = rows
        if a * (e * i_ - f * h) - b * (d * i_ - f * g) + c * (d * h - e * g) < 0:
            return "the matrix is a reflection (determinant -1), not a rotation"
    return None
