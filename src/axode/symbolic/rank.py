r"""Which rows hold something, which speeds may be chosen (C, N).

Rows that vanish everywhere (an upright wheel on a planar base cannot leave the ground) and rows
that follow from the others wherever the mechanism can be (the second wheel of an axle cannot slide
sideways if the first cannot) are left out, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from axode.symbolic.constraints import Row

RANK_TOLERANCE = 1e-7  # relative to the row; feasible configurations are closed to 1e-13
NOTHING_NEW = 1e-10  # of a row's length: less than this may be rounding
WELL_CONDITIONED = 0.05  # smallest singular value asked of a choice of speeds, if one has it
VALID = 1e-6  # smallest singular value at which a choice still describes the motion


@dataclass(frozen=True)
class DroppedRow:
    """A row that was left out, why, and the rows it follows from."""

    name: str
    follows_from: tuple[str, ...]

    def __str__(self) -> str:
        if not self.follows_from:
            return f"{self.name} (vanishes everywhere)"
        return f"{self.name} (follows from {', '.join(self.follows_from)})"


@dataclass(frozen=True)
class RankReport:
    """What the rows amount to."""

    kept: tuple[int, ...]
    dropped: tuple[DroppedRow, ...]
    indeterminate: tuple[str, ...]  # rows whose constraint forces statics cannot tell apart
    null_bases: tuple[np.ndarray, ...]  # per sample: orthonormal, speeds x mobility
    matrices: tuple[np.ndarray, ...]  # per sample: A of the kept rows
    all_matrices: tuple[np.ndarray, ...] = ()  # per sample: A of all rows
    singular_samples: int = 0
    home_matrix: tuple[np.ndarray, ...] = ()  # A of the kept rows at home, where motions start


def analyse(rows: list[Row], matrices: list[np.ndarray]) -> RankReport:
    """Judge rows by their values at several feasible configurations."""
    size = matrices[0].shape[1]
    scales = np.array([max(np.abs(A[r]).max(initial=0.0) for A in matrices)
                       for r in range(len(rows))])  # fmt: skip
    kept: list[int] = []
    dropped: list[tuple[int, np.ndarray]] = []  # row and its coefficients in the kept ones
    spans = [_Span(size) for _ in matrices]
    for r in range(len(rows)):
        if scales[r] < RANK_TOLERANCE:
            dropped.append((r, np.zeros(0)))
            continue
        rests = [span.rest(A[r]) for span, A in zip(spans, matrices, strict=True)]
        if all(np.abs(rest).max() < RANK_TOLERANCE * scales[r] for rest in rests):
            weights = [np.abs(_coefficients(A[kept], A[r])) for A in matrices]
            dropped.append((r, np.max(weights, axis=0)))
            continue
        kept.append(r)
        for span, rest, A in zip(spans, rests, matrices, strict=True):
            span.add(rest, A[r])
    reports = tuple(
        DroppedRow(rows[r].name, tuple(rows[kept[i]].name for i, c in enumerate(weights)
                                       if abs(c) > 1e-6))
        for r, weights in dropped
    )  # fmt: skip
    # a row that vanishes bears any force whatever, as the pins of a flat linkage do across it
    undecided = {name for report in reports for name in (report.name, *report.follows_from)}
    indeterminate = sorted(undecided, key=[row.name for row in rows].index)
    kept_matrices = tuple(A[kept] for A in matrices)
    bases = [_null_basis(A, size - len(kept)) for A in kept_matrices]
    regular = tuple(basis for basis in bases if basis is not None)
    return RankReport(tuple(kept), reports, tuple(indeterminate), regular, kept_matrices,
                      tuple(matrices), len(bases) - len(regular))  # fmt: skip


def describe_dropped(
    rows: list[Row], matrices: list[np.ndarray], kept: list[int]
) -> tuple[DroppedRow, ...]:
    """Tell which of some rows to keep each other row follows from."""
    found = []
    for r, row in enumerate(rows):
        if r in kept:
            continue
        follows = np.zeros(len(kept))
        if max(np.abs(A[r]).max(initial=0.0) for A in matrices) >= RANK_TOLERANCE:
            weights = [np.abs(_coefficients(A[kept], A[r])) for A in matrices]
            follows = np.max(weights, axis=0)
        names = (rows[k].name for k, c in zip(kept, follows, strict=True) if c > 1e-6)
        found.append(DroppedRow(row.name, tuple(names)))
    return tuple(found)


class _Span:
    """What some rows span: an orthonormal basis that grows with them, by Gram and Schmidt."""

    def __init__(self, size: int) -> None:
        self._basis = np.zeros((size, size))
        self._count = 0

    def rest(self, row: np.ndarray) -> np.ndarray:
        """What of a row they do not span."""
        basis = self._basis[: self._count]
        for _ in range(2):  # twice is enough, whatever cancels
            row = row - basis.T @ (basis @ row)
        return row

    def add(self, rest: np.ndarray, row: np.ndarray) -> None:
        """One row more, and what of it was not spanned."""
        length = float(np.linalg.norm(rest))
        if length > NOTHING_NEW * float(np.linalg.norm(row)):
            self._basis[self._count] = rest / length
            self._count += 1


def _coefficients(basis: np.ndarray, row: np.ndarray) -> np.ndarray:
    c: np.ndarray = np.linalg.lstsq(basis.T, row, rcond=1e-10)[0]
    return c


def rank_of(A: np.ndarray) -> int:
    """Numerical rank, rows scaled alike."""
    if A.size == 0:
        return 0
    size = np.abs(A).max(axis=1)
    scaled = A[size > RANK_TOLERANCE] / size[size > RANK_TOLERANCE, np.newaxis]
    return int(np.linalg.matrix_rank(scaled, tol=RANK_TOLERANCE)) if scaled.size else 0


def _null_basis(A: np.ndarray, dimension: int) -> np.ndarray | None:
    """Orthonormal basis of what the rows leave free, or None where rank is lost."""
    if A.shape[0] == 0:
        return np.eye(A.shape[1])
    scaled = A / np.abs(A).max(axis=1, keepdims=True).clip(1e-300)
    _, s, Vt = np.linalg.svd(scaled)
    if s[-1] < RANK_TOLERANCE * s[0]:
        return None
    basis: np.ndarray = Vt[A.shape[1] - dimension :].T
    return basis


def condition_of(report: RankReport, chosen: list[int]) -> float:
    """How far a choice of independent speeds is from dependence, 0 to 1, at its best sample.

    One generic configuration at which the choice works is enough for it to be valid. Speeds are
    compared by direction only, so that units do not matter.
    """
    n = report.null_bases[0].shape[1]
    if len(chosen) != n:
        return 0.0
    if n == 0:
        return 1.0  # nothing to choose
    smallest = [np.linalg.svd(_unit_rows(Z[chosen]), compute_uv=False)[-1]
                for Z in report.null_bases]  # fmt: skip
    return float(max(smallest))


def complete(report: RankReport, preferred: list[int]) -> list[int]:
    """A valid choice of independent speeds, taking preferred ones in order where they do well."""
    n = report.null_bases[0].shape[1]
    bases = [_unit_rows(Z) for Z in report.null_bases]
    homes = [_null_basis(A, n) for A in report.home_matrix]
    at_home = [_unit_rows(Z) for Z in homes if Z is not None]
    for threshold in (WELL_CONDITIONED, 1e-3, VALID):
        chosen: list[int] = []
        for speed in preferred:
            if len(chosen) == n:
                break
            trial = [*chosen, speed]
            values = [[np.linalg.svd(Z[trial], compute_uv=False)[-1] for Z in group]
                      for group in (bases, at_home) if group]  # fmt: skip
            if min(float(np.median(group)) for group in values) > threshold:
                chosen = trial
        if len(chosen) == n:
            return chosen
    raise AssertionError("a null basis always has n independent rows")


def _unit_rows(Z: np.ndarray) -> np.ndarray:
    """Rows made unit length; those that vanish stay zero."""
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    scaled: np.ndarray = np.where(lengths > VALID, Z / lengths.clip(1e-300), 0.0)
    return scaled
