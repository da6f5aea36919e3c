r"""Loops closed, rows sorted: also where rounded numbers close a loop only nearly (C).

Numbers out of a drawing have five or ten digits, and an overconstrained loop made of them closes to
as many: rows that would follow from others contradict them a little. Within the mechanism's
tolerance such rows are left out, the others are closed exactly, and what is left open,

.. math:: r - \min(\max(r, -30 \epsilon l), 30 \epsilon l),                        \tag{C12}

with the length l of the mechanism for positions and one for angles, is what a dropped row has
beyond what rounding may grow to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from axode.errors import Doubtful, LoopNotClosed, level_outside
from axode.mechanism.topology import tree_order
from axode.symbolic.algebra.newton import CLOSED, METRE
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.assembly import Assembly
from axode.symbolic.constraints.open_loops import not_closed, warn_of_moved_home
from axode.symbolic.constraints.redundant_rows import (
    RANK_TOLERANCE,
    DroppedRow,
    RankReport,
    Units,
    analyse,
)
from axode.symbolic.constraints.rows import Row
from axode.symbolic.tree.kinematics import Tree

SAMPLES = 5  # closed configurations at which rank is found
GROWTH = 30  # times the tolerance: what rounding may grow to away from home, and no more
ROUNDS = 8  # of sorting rows and closing those that are kept


@dataclass(frozen=True)
class ClosedLoops:
    """Closed configurations of a mechanism, and which of its rows constrain it there."""

    assembly: Assembly
    home: np.ndarray
    samples: list[np.ndarray]
    report: RankReport


def close_loops(
    tree: Tree, rows: list[Row], defaults: np.ndarray, A: Callable[[np.ndarray], np.ndarray]
) -> ClosedLoops:
    """Close all loops of a mechanism and find its redundant rows.

    Args:
        tree: Tree of the mechanism.
        rows: All of them.
        defaults: Values of the parameters.
        A: Their matrix at a configuration.

    Raises:
        LoopNotClosed: naming the rows that contradict each other.
    """
    tolerance = tree.mechanism.loop_tolerance
    assembly = Assembly.of(tree, rows, defaults, tolerance)
    home = assembly.find_home()
    samples = assembly.samples(home, SAMPLES)
    matrices = [A(q) for q in samples]
    units = _units(assembly, rows, matrices)
    strict = analyse(rows, matrices, units=units)
    report = analyse(rows, matrices, tolerance, units=units)
    exact = all(
        assembly.is_exact(assembly.error(assembly.residual(q)))
        for q in (home, *samples[: 0 if assembly.depends_on_time else None])
    )
    made = ClosedLoops(replace(assembly, tolerance=0.0), home, samples, strict)
    if not (exact and strict.kept == report.kept):
        try:
            made = _close_nearly(assembly, rows, home, report, A)
        except LoopNotClosed as error:
            made = _close_exactly(made.assembly, rows, home, A, error)
    warn_of_moved_home(assembly, made.home)
    return made


def _units(assembly: Assembly, rows: list[Row], matrices: list[np.ndarray]) -> Units | None:
    """Units in which a small mechanism's rows are compared: its own length instead of a metre."""
    units = [u for c in tree_order(assembly.tree.mechanism) for u in c.joint.speed_units]
    straight = np.array([unit == "m/s" for unit in units], dtype=bool)
    linear = np.array([row.unit == "m" for row in rows], dtype=bool)
    levers = [np.abs(A[np.ix_(linear, ~straight)]).max(initial=0.0) for A in matrices]
    length = max(assembly.extent, *levers)  # radii of wheels, too
    if length >= METRE[0]:
        return None
    return Units(np.where(linear, 1.0 / length, 1.0), np.where(straight, length, 1.0))


def _close_nearly(
    assembly: Assembly,
    rows: list[Row],
    home: np.ndarray,
    report: RankReport,
    A: Callable[[np.ndarray], np.ndarray],
) -> ClosedLoops:
    """Close the loops by the rows that are kept; the others stay open within the tolerance."""
    hold: set[int] = set()
    for _ in range(ROUNDS):
        loose = _loose(assembly, rows, report, [home])
        tight = [row for r, row in enumerate(rows) if r not in loose]
        inner = Assembly.of(assembly.tree, tight, assembly.parameters)
        start, error = inner.close(home)
        if not inner.is_exact(error):
            raise not_closed(assembly, home)
        samples = inner.samples(start, SAMPLES)
        again = analyse(rows, [A(q) for q in samples], assembly.tolerance, hold, report.units)
        places = [start] if assembly.depends_on_time else [start, *samples]
        off = _disagreements(assembly, rows, again, places)
        far = [r for r in loose if off[r] > GROWTH * assembly.tolerance]
        if not far and set(again.kept) == set(report.kept):
            final = _report(assembly, rows, again, loose, off)
            return ClosedLoops(inner, start, samples, final)
        # a row may seem to follow next to home and hold something of its own farther away
        hold |= set(far)
        report = analyse(rows, [A(q) for q in samples], assembly.tolerance, hold, report.units)
    raise not_closed(assembly, home)


def _close_exactly(
    exact: Assembly,
    rows: list[Row],
    home: np.ndarray,
    A: Callable[[np.ndarray], np.ndarray],
    error: LoopNotClosed,
) -> ClosedLoops:
    """Keep all rows, where some nearly follow next to home and do not farther away.

    Raises:
        LoopNotClosed: the error, if the loops do not close exactly at home and around it.
    """
    samples = exact.samples(home, SAMPLES)
    residuals = [exact.residual(q) for q in (home, *samples)]
    if len(samples) < SAMPLES or not all(exact.is_exact(exact.error(r)) for r in residuals):
        raise error
    matrices = [A(q) for q in samples]
    report = analyse(rows, matrices, units=_units(exact, rows, matrices))
    return ClosedLoops(exact, home, samples, report)


def _loose(
    assembly: Assembly, rows: list[Row], report: RankReport, places: list[np.ndarray]
) -> list[int]:
    """Dropped rows that contradict the kept ones by more than rounding errors."""
    kept = set(report.kept)
    off = _disagreements(assembly, rows, report, places)
    return [
        r
        for r, row in enumerate(rows)
        if r not in kept
        and (report.rests[r] > RANK_TOLERANCE or (row.holonomic and off[r] > CLOSED * 1e-3))
    ]


def _disagreements(
    assembly: Assembly, rows: list[Row], report: RankReport, places: list[np.ndarray]
) -> np.ndarray:
    """Largest residuals of every row at some configurations [rad, or of the extent]."""
    worst = np.array(report.rests)
    holonomic = [r for r, row in enumerate(rows) if row.holonomic]
    if holonomic:
        worst[holonomic] = np.max([np.abs(assembly.relative_residual(q)) for q in places], axis=0)
    return worst


def _report(
    assembly: Assembly, rows: list[Row], report: RankReport, loose: list[int], off: np.ndarray
) -> RankReport:
    """Add the sizes of contradictions to the report, and warn of them."""
    names = {rows[r].name: r for r in loose}
    dropped = []
    for row in report.dropped:
        if row.name in names:
            r = names[row.name]
            unit = rows[r].unit if rows[r].holonomic else ""
            size = float(off[r]) * (assembly.extent if unit == "m" else 1.0)
            row = replace(row, disagreement=size, unit=unit)
        dropped.append(row)
    seen = [row for row in dropped if row.name in names and off[names[row.name]] > RANK_TOLERANCE]
    if seen:
        _warn(assembly, seen)
    return replace(report, dropped=tuple(dropped), loose=tuple(loose), extent=assembly.extent)


def _warn(assembly: Assembly, seen: list[DroppedRow]) -> None:
    listed = ", ".join(f"{row.name} by {row.disagreement:.2g} {row.unit}".strip() for row in seen)
    noun, verb, they = ("s", "", "they are") if len(seen) > 1 else ("", "s", "it is")
    warnings.warn(
        f"'{assembly.tree.mechanism.name}': constraint{noun} contradict{verb} others, {listed}; "
        f"{they} left out as an "
        f"effect of rounded numbers (loop_tolerance = {assembly.tolerance:g}); if the numbers are "
        "exact, use loop_tolerance=0",
        Doubtful,
        stacklevel=level_outside(),
    )


def beyond_tolerance(residual: SX, unit: str, report: RankReport) -> SX:
    """Part of a dropped row's residual that its tolerance does not cover.  (C12)"""
    most = GROWTH * report.tolerance * (report.extent if unit == "m" else 1.0)
    return residual - ca.fmin(ca.fmax(residual, -most), most)
