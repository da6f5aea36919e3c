r"""Which rows and speeds do best at a configuration (N).

Where more rows than needed hold a mechanism, as in a loop of skew axes that moves nevertheless, the
rows that were kept may lose rank although all rows together do not. Rank is therefore found from
all rows, each against its usual size,

.. math:: D^{-1} A_{all} = U \Sigma V^T, \qquad \sigma_r / \sigma_1,              \tag{N7}

r the rank of the rows wherever the mechanism moves freely. Rows to keep are the pivots of a QR
factorization of :math:`A_{all}^T D^{-1}`, independent speeds those of the null space
:math:`[v_{r+1} \dots v_n]^T`.                                                    (N8)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from axode.symbolic.algebra.rank import (
    choose_columns,
    singular_values,
    singular_vectors,
    smallest_singular_value,
)
from axode.symbolic.constraints.redundant_rows import Units, describe_dropped
from axode.symbolic.system import System

LOST_RANK = 1e-4  # of the rows, relative: nearer to singular no choice helps
AS_GOOD = 0.3  # of the best choice's smallest singular value: rows that offer this stay
AS_GOOD_ROUNDED = 0.8  # the same of rows that contradict others, the more the smaller it is
REGULAR = 1e-9  # smallest singular value of scaled rows at samples that still say what is usual


@dataclass(frozen=True)
class EvaluatedRows:
    """All rows at one configuration."""

    names: tuple[str, ...]
    matrix: np.ndarray
    scales: np.ndarray  # usual largest entries; zero of rows that vanish everywhere
    present: tuple[int, ...]  # the rows that are kept now
    units: Units | None = None  # in which they are compared; metres if none
    rounded: bool = False  # whether some contradict others

    @property
    def rank(self) -> int:
        """Rank of the rows wherever the mechanism is not singular."""
        return len(self.present)

    @cached_property
    def scaled(self) -> np.ndarray:
        """Rows divided by their usual size; those that vanish everywhere are zero."""
        holds = self.scales > 0.0
        lengths = np.where(holds, self.scales, 1.0)
        matrix = self.matrix if self.units is None else self.matrix * self.units.speeds
        scaled: np.ndarray = np.where(holds, 1.0 / lengths, 0.0)[:, np.newaxis] * matrix
        return scaled

    @cached_property
    def _svd(self) -> tuple[np.ndarray, np.ndarray]:
        _, s, Vt = singular_vectors(self.scaled)
        return s, Vt

    @property
    def lost(self) -> bool:
        """Return whether all rows together have lost rank.  (N7)"""
        s = self._svd[0]
        return self.rank > 0 and bool(s[self.rank - 1] < LOST_RANK * s[0])

    @property
    def null_space(self) -> np.ndarray:
        """Speeds that they allow, in columns, in the units in which they are compared."""
        return self._svd[1][self.rank :].T

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """The rows to keep: the present ones unless others do much better.  (N8)"""
        if self.rank in (0, len(self.matrix)):
            return self.present
        best = choose_columns(self.scaled.T, self.rank)
        as_good = AS_GOOD_ROUNDED if self.rounded else AS_GOOD
        enough = smallest_singular_value(self.scaled[list(best)]) * as_good
        return (
            self.present
            if smallest_singular_value(self.scaled[list(self.present)]) >= enough
            else best
        )

    @property
    def best_pivot(self) -> float:
        """Relative distance of the best choice of rows and speeds from singular."""
        dependent = [j for j in range(self.matrix.shape[1]) if j not in self.independent]
        s = singular_values(self.scaled[list(self.chosen)][:, dependent])
        return float(s[-1] / s[0]) if s.size else 1.0

    @property
    def weakest(self) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Rows nearest to dependent, their weights, and the speeds that they set free."""
        rows = list(self.chosen)
        U, s, Vt = singular_vectors(self.scaled[rows])
        names = tuple(self.names[r] for r in rows)
        return names, U[:, len(s) - 1], Vt[len(s) - 1]

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Speeds whose directions are farthest apart.  (N8)"""
        Z = self.null_space
        return choose_columns(Z.T, Z.shape[1])


def rows_at(system: System, q: np.ndarray, t: float, p: np.ndarray) -> EvaluatedRows:
    """Evaluate all rows at a configuration, a time and values of the parameters."""
    matrix = np.array(ca.DM(system.all_rows_function(q, t, p)).full())
    units = system.report.units
    speeds = 1.0 if units is None else units.speeds
    sizes = [np.abs(M * speeds).max(axis=1) for M in system.report.all_matrices]
    usual = np.array(sizes).max(axis=0)
    names = tuple(row.name for row in system.rows)
    vanish = {row.name for row in system.report.dropped if not row.follows_from}
    usual[[name in vanish for name in names]] = 0.0  # what rounding leaves of a row is no row
    rounded = bool(system.report.loose)
    return EvaluatedRows(names, matrix, usual, system.report.kept, units, rounded)


def repartition(
    system: System, rows: EvaluatedRows, independent: tuple[int, ...] | None = None
) -> System:
    """Put a system on the rows and speeds that do best where some rows were evaluated.

    Args:
        system: What moves.
        rows: Evaluated where it is.
        independent: Speeds to keep; the best unless given.
    """
    kept = list(rows.chosen)
    speeds = np.ones(rows.matrix.shape[1]) if rows.units is None else rows.units.speeds
    usual = [
        A[kept]
        for A in system.report.all_matrices
        if smallest_singular_value(A[kept] * speeds / rows.scales[kept, np.newaxis]) > REGULAR
    ]
    here = rows.matrix[kept]
    report = system.report
    if rows.chosen != report.kept:
        dropped = describe_dropped(list(system.rows), report, rows.scales, kept)
        loose = tuple(r for r in {*report.loose, *report.kept} if r not in rows.chosen)
        report = replace(
            report, kept=rows.chosen, dropped=dropped, loose=loose if report.loose else ()
        )
    # an entry may vanish here by chance: the pattern is taken from all samples
    basis = speeds[:, np.newaxis] * rows.null_space
    report = replace(report, matrices=(here, *usual), null_bases=(basis,), home_matrix=(here,))
    chosen = rows.independent if independent is None else independent
    return replace(system, report=report, independent=chosen)


def remove_rows(system: System) -> System:
    """Remove all rows of a system: every joint speed becomes independent."""
    size = system.tree.v.shape[0]
    empty = np.zeros((0, size))
    report = replace(
        system.report,
        kept=(),
        dropped=(),
        indeterminate=(),
        matrices=(empty,),
        home_matrix=(empty,),
        null_bases=(np.eye(size),),
    )
    return replace(system, report=report, independent=tuple(range(size)))
