r"""Which rows hold something, which speeds may be chosen (C, N).

Rows that vanish everywhere (an upright wheel on a planar base cannot leave the ground) and rows
that follow from the others wherever the mechanism can be (the second wheel of an axle cannot slide
sideways if the first cannot) are left out and reported. Numbers that were rounded when they were
written make such rows contradict the others a little; a tolerance says how much is a little.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from axode.numerics.rank import (
    least_norm,
    least_squares,
    null_space,
    rank,
    singular_values,
    smallest_singular_value,
)
from axode.numerics.tolerances import FAINT, MATRIX_ROUNDING, NEARLY_SINGULAR, ROW_RANK, SPANNING
from axode.symbolic.tree.rows import Row

AMPLIFIED = 100.0  # times the tolerance: a larger rest is no rounding, whatever rows it takes
UNCERTAIN = 10.0  # times what rows change by where closing was inexact
WELL_CONDITIONED = 0.05  # smallest singular value asked of a choice of speeds, if one has it


@dataclass(frozen=True)
class DroppedRow:
    """A row that was left out, why, and the rows it follows from.

    Attributes:
        name: Name of the row.
        follows_from: Names of kept rows; none if it vanishes.
        disagreement: By how much it contradicts them where they hold, at the configurations that
            were tried; zero if it does so by rounding errors only.
        unit: Unit of the disagreement: that of the residual, none for a velocity's row.
    """

    name: str
    follows_from: tuple[str, ...]
    disagreement: float = 0.0
    unit: str = ""

    def __str__(self) -> str:
        off = f"{self.disagreement:.2g} {self.unit}".strip()
        if not self.follows_from:
            within = f" to within {off}" if self.disagreement else ""
            return f"{self.name} (vanishes everywhere{within})"
        within = f", to within {off}" if self.disagreement else ""
        return f"{self.name} (follows from {', '.join(self.follows_from)}{within})"


@dataclass(frozen=True)
class Units:
    """Units of rows and speeds, in which small machines are compared as large ones are.

    In metres the levers of a machine of millimetres would look like rounding errors beside ones.

    Attributes:
        rows: Factor per row: one by the unit of length for a row of metres.
        speeds: Factor per speed: the unit of length for a speed along a line.
    """

    rows: np.ndarray
    speeds: np.ndarray

    def measure(self, A: np.ndarray) -> np.ndarray:
        """Measure rows at a configuration in these units."""
        measured: np.ndarray = self.rows[:, np.newaxis] * A * self.speeds
        return measured

    def of_rows(self, rows: Sequence[int]) -> Units:
        """Select the units of some rows."""
        return Units(self.rows[list(rows)], self.speeds)


@dataclass(frozen=True)
class RankReport:
    """Which rows are kept, and what they leave free."""

    kept: tuple[int, ...]
    dropped: tuple[DroppedRow, ...]
    indeterminate: tuple[str, ...]  # rows whose forces statics does not separate
    null_bases: tuple[np.ndarray, ...]  # per sample: orthonormal, speeds x mobility
    matrices: tuple[np.ndarray, ...]  # per sample: A of the kept rows
    all_matrices: tuple[np.ndarray, ...] = ()  # per sample: A of all rows
    home_matrix: tuple[np.ndarray, ...] = ()  # A of the kept rows at home, where motions start
    rests: tuple[float, ...] = ()  # per row: what the kept ones do not span, of its scale
    tolerance: float = 0.0  # up to which rests were taken for rounding
    loose: tuple[int, ...] = ()  # rows that were dropped though they contradict kept ones
    extent: float = 1.0  # [m] of the mechanism, for the tolerance
    units: Units | None = None  # in which rows were compared; metres if none
    sizes: RowSizes | None = None
    weak: tuple[tuple[str, float], ...] = ()  # rows kept though others leave only this part of them
    weakest: float = ROW_RANK  # relative singular value below which kept rows lose rank


@dataclass(frozen=True)
class RowSizes:
    """What the entries of rows are sums of, and what of them is rounding.

    Attributes:
        terms: Size of the terms of each row; zero if that of its owner's entries is enough.
        rounding: How far entries may be off.
        exact: Parts of rows that are smaller, but no rounding, are left out nevertheless.
        nearby: Per sample, all rows where the configuration may be instead: it is closed but for
            rounding.
    """

    terms: np.ndarray
    rounding: np.ndarray
    exact: float = 0.0
    nearby: tuple[tuple[np.ndarray, ...], ...] = ()

    def of_rows(self, rows: Sequence[int]) -> RowSizes:
        """Select the sizes of some rows."""
        some = list(rows)
        nearby = tuple(tuple(A[some] for A in each) for each in self.nearby)
        return replace(self, terms=self.terms[some], rounding=self.rounding[some], nearby=nearby)


def analyse(
    rows: list[Row],
    matrices: list[np.ndarray],
    tolerance: float = 0.0,
    hold: Collection[int] = (),
    units: Units | None = None,
    sizes: RowSizes | None = None,
) -> RankReport:
    """Find redundant rows from their values at several closed configurations.

    First come the rows that hold much of their own, in order; then, the largest first, those of
    which anything is left beyond rounding, unless it is less than the tolerance.

    Args:
        rows: All of them.
        matrices: Their entries at each configuration.
        tolerance: What of a row may be rounding, in parts of the rows of its kind.
        hold: Rows to which the tolerance does not apply.
        units: In which to compare them, instead of metres.
        sizes: What in them is small; rounding below `RANK_TOLERANCE` unless given.
    """
    given = matrices
    matrices = [_measured(rows, A, units) for A in given]
    own = np.array([max(np.abs(A[r]).max(initial=0.0) for A in matrices) for r in range(len(rows))])
    scales = _scales(rows, own)
    if sizes is not None:
        scales = np.maximum(scales, sizes.terms)
    free = np.array([0.0 if r in hold else tolerance for r in range(len(rows))])
    least = np.maximum(ROW_RANK * own, free * scales)
    kept: list[int] = []
    dropped: list[tuple[int, np.ndarray]] = []  # row and its coefficients in the kept ones
    left, cuts, alone = np.zeros((3, len(rows)))
    spans = [_Span(matrices[0].shape[1]) for _ in matrices]
    for r in range(len(rows)):
        if own[r] < max(ROW_RANK, least[r]):
            dropped.append((r, np.zeros(0)))
            left[r] = own[r] / scales[r]
            continue
        rests = [span.rest(A[r]) for span, A in zip(spans, matrices, strict=True)]
        there = np.array([np.abs(rest).max() for rest in rests])
        left[r] = there.max() / scales[r]
        # a small ratio of a coupling, such as a spindle's pitch, is no rounding
        if rows[r].kind == "coupling":
            alone[r] = max(_share(A[kept], A[r]) for A in matrices)
        exact = r in hold or alone[r] > AMPLIFIED * tolerance
        if exact:
            least[r] = (FAINT if alone[r] > 0.0 else ROW_RANK) * own[r]
        elif least[r] <= there.max() < AMPLIFIED * tolerance * scales[r]:
            # rounding errors of the rows it follows from count as often as it takes these rows
            taken = [np.abs(_coefficients(A[kept], A[r], tolerance)) for A in matrices]
            terms = scales[r] + np.array(taken) @ scales[kept]
            least[r] = np.inf if (there < tolerance * terms).all() else 0.0
        if (there < least[r]).all():
            weights = [np.abs(_coefficients(A[kept], A[r], tolerance)) for A in matrices]
            dropped.append((r, np.max(weights, axis=0)))
            continue
        kept.append(r)
        cuts[r] = 0.0 if exact else tolerance
        for span, rest, A in zip(spans, rests, matrices, strict=True):
            span.add(rest, A[r], cuts[r])
    least_weight = max(1e-6, tolerance)
    follows = {
        r: [kept[i] for i, c in enumerate(weights) if abs(c) > least_weight]
        for r, weights in dropped
    }
    strong, weak, parts = list(kept), dict[int, float](), dict[int, float]()
    if sizes is not None:
        every = [
            [A, *(_measured(rows, B, units) for B in near)]
            for A, near in zip(matrices, sizes.nearby or [()] * len(matrices), strict=True)
        ]
        around = [
            [span, *(_Span.of(B[strong], cuts[strong]) for B in there[1:])]
            for span, there in zip(spans, every, strict=True)
        ]
        parts, weak = _small_rows(every, strong, dropped, around, sizes, scales)
        kept = sorted([*strong, *weak])
    for r, _ in dropped:
        if alone[r] > 0.0:
            parts[r] = max(parts.get(r, 0.0), float(left[r]))
    for r in weak:
        del follows[r]
    if weak:
        for r in set(follows) & set(parts):
            mix = _weights_in_unit_rows([A / own[r] for A in matrices], kept, r)
            follows[r] = [k for k, c in zip(kept, mix, strict=True) if c > least_weight]
    reports, indeterminate = _describe(rows, follows, parts)
    kept_matrices = tuple(A[kept] for A in given)
    remaining = np.maximum(left, alone)
    nearly = {r: float(left[r]) for r in strong if remaining[r] < NEARLY_SINGULAR} | weak
    named = tuple((rows[r].name, part) for r, part in sorted(nearly.items()))
    regularity = max(map(_regularity, kept_matrices)) if kept else 1.0
    weakest = min(ROW_RANK, 0.1 * regularity)
    free_bases = [null_basis(A, A.shape[1] - len(kept), weakest) for A in kept_matrices]
    regular = tuple(basis for basis in free_bases if basis is not None)
    return RankReport(
        tuple(kept),
        reports,
        indeterminate,
        regular,
        kept_matrices,
        tuple(given),
        rests=tuple(left.tolist()),
        tolerance=tolerance,
        units=units,
        sizes=sizes,
        weak=named,
        weakest=weakest,
    )


def _small_rows(
    matrices: list[list[np.ndarray]],
    kept: list[int],
    dropped: list[tuple[int, np.ndarray]],
    spans: list[list[_Span]],
    sizes: RowSizes,
    scales: np.ndarray,
) -> tuple[dict[int, float], dict[int, float]]:
    """Parts that kept rows leave of small rows beyond rounding, and those that are to be kept too.

    The largest comes first, whatever the order of the rows, so that twins are treated alike. What
    is left of a row is rounding if it changes by as much where the configuration may be instead:
    entries change too, but those of rows that follow change with them. Matrices and spans are given
    per sample, there and nearby.
    """
    left = {
        r: [
            np.array([span.rest(A[r]) for span, A in zip(*here, strict=True)])
            for here in zip(spans, matrices, strict=True)
        ]
        for r, _ in dropped
    }
    rounding = {
        r: np.full(len(spans), sizes.rounding[r] + weights @ sizes.rounding[kept[: len(weights)]])
        for r, weights in dropped
    }

    def size(r: int) -> float:
        return max(float(np.abs(rests[0]).max()) for rests in left[r])

    def beyond(r: int) -> float:
        """Times its rounding at the sample where it holds most."""
        return max(
            float(np.abs(rests[0]).max() / (off + UNCERTAIN * np.abs(rests - rests[0]).max()))
            for rests, off in zip(left[r], rounding[r], strict=True)
        )

    parts = {r: size(r) / scales[r] for r in left if beyond(r) > 1.0}
    found: dict[int, float] = {}
    least = sizes.exact if sizes.exact < ROW_RANK else np.inf
    while True:
        large = {r: beyond(r) for r in left if size(r) > least * scales[r]}
        first = max(large, key=large.__getitem__, default=-1)
        if first < 0 or large[first] <= 1.0:
            for r in parts.keys() - found:
                parts[r] = size(r) / scales[r] if beyond(r) > 1.0 else 0.0
            return parts, found
        found[first] = float(size(first) / scales[first])
        for i, rest in enumerate(left.pop(first)):
            length = np.linalg.norm(rest, axis=1, keepdims=True)
            if length[0] <= rounding[first][i]:
                continue
            for r, rests in left.items():
                share = (rests[i] * rest).sum(axis=1, keepdims=True) / length.clip(1e-300) ** 2
                rests[i] = rests[i] - share * rest
                amplified = 2.0 * abs(share[0, 0]) * rounding[first][i]
                rounding[r][i] = max(rounding[r][i], amplified)


def _weights_in_unit_rows(matrices: list[np.ndarray], kept: list[int], row: int) -> np.ndarray:
    """Largest coefficients of a row in the kept ones, these scaled to length one."""
    unit = [A[kept] / np.linalg.norm(A[kept], axis=1, keepdims=True) for A in matrices]
    pairs = zip(unit, matrices, strict=True)
    return np.max([np.abs(least_norm(Z.T, A[row])) for Z, A in pairs], axis=0)


def _describe(
    rows: list[Row], follows: dict[int, list[int]], parts: dict[int, float]
) -> tuple[tuple[DroppedRow, ...], tuple[str, ...]]:
    """Describe dropped rows, and name those whose forces statics does not determine separately."""
    reports = tuple(
        DroppedRow(rows[r].name, tuple(rows[k].name for k in kept), parts.get(r, 0.0))
        for r, kept in follows.items()
    )
    # a row that vanishes bears any force whatever, as the pins of a flat linkage do across it
    undecided = {name for report in reports for name in (report.name, *report.follows_from)}
    indeterminate = sorted(undecided, key=[row.name for row in rows].index)
    return reports, tuple(indeterminate)


def _measured(rows: list[Row], A: np.ndarray, units: Units | None) -> np.ndarray:
    """Rows in units in which they are compared; of couplings the largest coefficient is one."""
    made = A.copy() if units is None else units.measure(A)
    coupled = [r for r, row in enumerate(rows) if row.kind == "coupling"]
    made[coupled] /= np.abs(made[coupled]).max(axis=1, keepdims=True, initial=0.0).clip(1e-300)
    return made


def _share(kept: np.ndarray, row: np.ndarray) -> float:
    """Largest part of an entry of a row that kept rows leave, of the terms that make it.

    A factor of a coordinate changes nothing: where fast and slow gears meet, entries of a small
    column are compared with each other.
    """
    size = np.maximum(np.abs(kept).max(axis=0, initial=0.0), np.abs(row)).clip(1e-300)
    weights = least_squares((kept / size).T, row / size, MATRIX_ROUNDING)
    made = np.abs(weights[:, np.newaxis] * kept).max(axis=0, initial=0.0)
    terms = np.maximum(made, np.abs(row)).clip(1e-300)
    rest = np.abs(row - weights @ kept)
    solid = rest / size > MATRIX_ROUNDING * (terms / size).max()
    return float((rest / terms)[solid].max(initial=0.0))


def _scales(rows: list[Row], own: np.ndarray) -> np.ndarray:
    """Sizes to which rounding is compared: turning rows are of unit vectors, others of levers."""
    largest: dict[str, float] = {}
    for row, size in zip(rows, own.tolist(), strict=True):
        if row.unit == "m" and size > ROW_RANK:
            largest[row.owner] = max(largest.get(row.owner, 0.0), size)
    return np.array([largest.get(row.owner, 1.0) if row.unit == "m" else 1.0 for row in rows])


def describe_dropped(
    rows: list[Row], report: RankReport, scales: np.ndarray, kept: list[int]
) -> tuple[DroppedRow, ...]:
    """Describe which rows to keep each other row follows from.

    Args:
        rows: All of them.
        report: What they amount to.
        scales: Their usual sizes, zero of those that vanish everywhere.
        kept: The rows to keep.
    """
    found = []
    for r, row in enumerate(rows):
        if r in kept:
            continue
        follows = np.zeros(len(kept))
        if scales[r] > 0.0:
            weights = [
                np.abs(_coefficients(A[kept], A[r], report.tolerance)) for A in report.all_matrices
            ]
            follows = np.max(weights, axis=0)
        least = max(1e-6, report.tolerance)
        names = (rows[k].name for k, c in zip(kept, follows, strict=True) if c > least)
        found.append(DroppedRow(row.name, tuple(names)))
    return tuple(found)


class _Span:
    """Orthonormal basis of what some rows span, extended row by row (Gram-Schmidt)."""

    def __init__(self, size: int) -> None:
        self._basis = np.zeros((size, size))
        self._count = 0

    @classmethod
    def of(cls, rows: np.ndarray, tolerances: np.ndarray) -> _Span:
        """Make that of some rows."""
        span = cls(rows.shape[1])
        for row, tolerance in zip(rows, tolerances, strict=True):
            span.add(span.rest(row), row, tolerance)
        return span

    def rest(self, row: np.ndarray) -> np.ndarray:
        """Part of a row that they do not span."""
        basis = self._basis[: self._count]
        for _ in range(2):  # twice is enough, whatever cancels
            row = row - basis.T @ (basis @ row)
        return row

    def add(self, rest: np.ndarray, row: np.ndarray, tolerance: float = 0.0) -> None:
        """Add a row, given the part of it that was not spanned."""
        length = float(np.linalg.norm(rest))
        if length > max(FAINT, tolerance) * float(np.linalg.norm(row)):
            self._basis[self._count] = rest / length
            self._count += 1


def _coefficients(basis: np.ndarray, row: np.ndarray, tolerance: float) -> np.ndarray:
    return least_norm(basis.T, row, max(1e-10, tolerance))


def rank_of(A: np.ndarray) -> int:
    """Numerical rank, rows scaled alike."""
    if A.size == 0:
        return 0
    size = np.abs(A).max(axis=1)
    scaled = A[size > ROW_RANK] / size[size > ROW_RANK, np.newaxis]
    return int(rank(scaled, ROW_RANK, floor=1.0))


def null_basis(A: np.ndarray, dimension: int, tolerance: float = ROW_RANK) -> np.ndarray | None:
    """Orthonormal basis of what the rows leave free, or None where rank is lost."""
    if A.shape[0] == 0:
        return np.eye(A.shape[1])
    scaled = _unit_largest(A)
    if rank(scaled, tolerance) < len(A):
        return None
    return null_space(scaled, rank=A.shape[1] - dimension)


def _regularity(A: np.ndarray) -> float:
    """Smallest singular value of rows scaled alike, of the largest."""
    s = singular_values(_unit_largest(A))
    return float(s[-1] / s[0])


def _unit_largest(A: np.ndarray) -> np.ndarray:
    """Scale rows so that their largest entry is one."""
    scaled: np.ndarray = A / np.abs(A).max(axis=1, keepdims=True).clip(1e-300)
    return scaled


def condition_of(report: RankReport, chosen: list[int]) -> float:
    """Distance of a choice of independent speeds from dependence, 0 to 1, at its best sample.

    One generic configuration at which the choice works is enough for it to be valid. Speeds are
    compared by direction only, so that units do not matter.
    """
    n = report.null_bases[0].shape[1]
    if len(chosen) != n:
        return 0.0
    free = _free_speeds(report.null_bases)
    tied = [speed for speed in chosen if speed not in free]
    if not tied:
        return 1.0  # nothing to choose
    smallest = [smallest_singular_value(_unit_rows(Z[tied])) for Z in report.null_bases]
    return float(max(smallest))


def choose_speeds(report: RankReport, preferred: list[int]) -> list[int]:
    """Choose independent speeds, preferred ones in order where they are well conditioned."""
    n = report.null_bases[0].shape[1]
    bases = [_unit_rows(Z) for Z in report.null_bases]
    homes = [null_basis(A, n, report.weakest) for A in report.home_matrix]
    at_home = [_unit_rows(Z) for Z in homes if Z is not None]
    free = _free_speeds(report.null_bases)
    for threshold in (WELL_CONDITIONED, 1e-3, SPANNING):
        chosen: list[int] = []
        for speed in preferred:
            if len(chosen) == n:
                break
            trial = [j for j in [*chosen, speed] if j not in free]
            values = [
                [smallest_singular_value(Z[trial]) for Z in group]
                for group in (bases, at_home)
                if group and speed not in free
            ]
            if min((float(np.median(group)) for group in values), default=1.0) > threshold:
                chosen.append(speed)
        if len(chosen) == n:
            return chosen
    raise AssertionError("a null basis always has n independent rows")


def _free_speeds(bases: Sequence[np.ndarray]) -> set[int]:
    """Speeds that no constraint touches: orthogonal to all others, so they suit any choice."""
    lengths = np.min([np.linalg.norm(Z, axis=1) for Z in bases], axis=0)
    return set(np.flatnonzero(lengths > 1.0 - 1e-12).tolist())


def _unit_rows(Z: np.ndarray) -> np.ndarray:
    """Scale rows to unit length; those that vanish stay zero."""
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    scaled: np.ndarray = np.where(lengths > SPANNING, Z / lengths.clip(1e-300), 0.0)
    return scaled
