"""Rank, null space and least-norm solutions of matrices of numbers, over any leading axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
EQUALLY_FAR = 1.0 - 1e-6  # of the square of the largest distance: less of a difference is chance


def singular_vectors(A: Array, *, full: bool = True) -> tuple[Array, Array, Array]:
    """Left singular vectors U, singular values s, and right singular vectors V^T.

    LAPACK rarely fails on a matrix of sound numbers, and then finds those of its transpose.

    Args:
        A: (..., rows, columns).
        full: Whether U and V are square.
    """
    try:
        return np.linalg.svd(A, full_matrices=full)
    except np.linalg.LinAlgError:
        if not np.isfinite(A).all():
            raise
    if A.ndim > 2:
        each = [singular_vectors(matrix, full=full) for matrix in A]
        U, s, Vt = (np.stack(parts) for parts in zip(*each, strict=True))
        return U, s, Vt
    V, s, Ut = np.linalg.svd(A.T, full_matrices=full)
    return Ut.T, s, V.T


def singular_values(A: Array) -> Array:
    """Singular values, largest first."""
    return np.asarray(np.linalg.svd(A, compute_uv=False))


def smallest_singular_value(A: Array) -> Any:
    """Distance to the nearest matrix of less rank; infinite of a matrix without entries."""
    return singular_values(A).min(axis=-1, initial=np.inf)


def rank(A: Array, tolerance: float, *, floor: float = 0.0) -> Any:
    """Count the singular values that are not rounding.

    Args:
        A: (..., rows, columns).
        tolerance: Smaller singular values are zero, relative to the largest.
        floor: Relative to this instead, if it is larger than the largest.
    """
    return _solid(singular_values(A), tolerance, floor).sum(axis=-1)


def has_singular_values_between(A: Array, low: float, high: float) -> bool:
    """Return whether some singular value is above one tolerance and not above a larger one.

    Args:
        A: (..., rows, columns).
        low, high: Tolerances relative to the largest singular value.
    """
    s = singular_values(A)
    return bool((_solid(s, low, 0.0) & ~_solid(s, high, 0.0)).any())


def _solid(s: Array, tolerance: float, floor: float) -> Any:
    return s > tolerance * s.max(axis=-1, keepdims=True, initial=floor)


def null_space(
    A: Array, tolerance: float = 0.0, *, floor: float = 0.0, rank: int | None = None
) -> Array:
    """Orthonormal columns of what a matrix maps to zero.

    Args:
        A: (rows, columns).
        tolerance: Smaller singular values are zero, relative to the largest.
        floor: Relative to this instead, if it is larger than the largest.
        rank: How many singular values are not zero, if that is known.
    """
    _, s, Vt = singular_vectors(A)
    return np.asarray(Vt[int(_solid(s, tolerance, floor).sum()) if rank is None else rank :].T)


def weakest_rows(A: Array) -> Array:
    """Unit weights of the combination of rows that is nearest to zero."""
    return np.asarray(singular_vectors(A)[0][:, -1])


def column_space(A: Array, tolerance: float) -> Array:
    """Orthonormal columns that span those of a matrix; smaller singular values are zero."""
    U, s, _ = singular_vectors(A, full=False)
    return np.asarray(U[:, s > tolerance])


def least_norm(A: Array, b: Array, tolerance: float | None = None) -> Array:
    """Solve A x = b by least squares, the shortest solution where many are as good.

    Args:
        A: (..., rows, columns).
        b: (..., rows).
        tolerance: Smaller singular values are zero, relative to the largest; rounding unless given.
    """
    if not A.shape[-1] or not A.shape[-2]:
        return np.zeros((*np.broadcast_shapes(A.shape[:-2], b.shape[:-1]), A.shape[-1]))
    rounding = max(A.shape[-2:]) * np.finfo(float).eps
    inverse = np.linalg.pinv(A, rcond=rounding if tolerance is None else tolerance)
    return np.asarray((inverse @ b[..., np.newaxis])[..., 0])


def least_squares(A: Array, b: Array, tolerance: float | None = None) -> Array:
    """Solve A x = b, of one matrix and one or many columns b, by least squares.

    Args:
        A: (rows, columns).
        b: (rows,) or (rows, k).
        tolerance: Smaller singular values are zero, relative to the largest; rounding unless given.
    """
    return np.asarray(np.linalg.lstsq(A, b, rcond=tolerance)[0])


def pseudo_inverse(A: Array, tolerance: float | None = None, *, symmetric: bool = False) -> Array:
    """Moore-Penrose inverse.

    Args:
        A: (..., rows, columns).
        tolerance: Smaller singular values are zero, relative to the largest; 1e-15 unless given.
        symmetric: Whether A is, which takes less.
    """
    rounding = 1e-15 if tolerance is None else tolerance
    return np.asarray(np.linalg.pinv(A, rcond=rounding, hermitian=symmetric))


def choose_columns(A: Array, count: int) -> npt.NDArray[np.intp]:
    """Choose the columns that are farthest from each other's span, in ascending order.

    The pivots of a QR factorization; the first of columns that are equally far, but for rounding.

    Args:
        A: (..., rows, columns).
        count: How many.
    """
    left, free = A.copy(), np.ones((*A.shape[:-2], A.shape[-1]))
    taken = np.zeros((*A.shape[:-2], count), dtype=np.intp)
    for k in range(count):
        size = np.where(free > 0.0, (left * left).sum(axis=-2), -1.0)
        far = size >= EQUALLY_FAR * size.max(axis=-1, keepdims=True, initial=-1.0)
        taken[..., k] = (far & (free > 0.0)).argmax(axis=-1)
        place = taken[..., k, np.newaxis]
        np.put_along_axis(free, place, 0.0, axis=-1)
        column = np.take_along_axis(left, place[..., np.newaxis, :], axis=-1)
        length = (column * column).sum(axis=-2, keepdims=True).clip(1e-300)
        left -= column * ((column * left).sum(axis=-2, keepdims=True) / length)
    return np.sort(taken, axis=-1)
