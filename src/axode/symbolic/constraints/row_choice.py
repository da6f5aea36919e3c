r"""Which rows and speeds do best at configurations (N).

Where more rows than needed hold a mechanism, as in a loop of skew axes that moves nevertheless, the
rows that were kept may lose rank although all rows together do not. Rank is therefore found from
all rows, each against its usual size,

.. math:: D^{-1} A_{all} = U \Sigma V^T, \qquad \sigma_r / \sigma_1,              \tag{N7}

r the rank of the rows wherever the mechanism moves freely. Rows to keep are the pivots of a QR
factorization of :math:`A_{all}^T D^{-1}`, independent speeds those of the null space
:math:`Z = [v_{r+1} \dots v_n]`.                                                  (N8)

How far rows R and independent speeds I are from singular is the share that they keep of both,

.. math:: \frac{\sigma_r([D^{-1} A_{all}]_R)}{\sigma_r(D^{-1} A_{all})} \;
          \sigma_{\min}(Z_I),                                                    \tag{N10}

at the configuration and where the next step leads, zero where a determinant changes its sign in
between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.numerics.rank import (
    choose_columns,
    singular_values,
    singular_vectors,
    smallest_singular_value,
)
from axode.numerics.tolerances import NEARLY_SINGULAR, RANK

if TYPE_CHECKING:
    from axode.symbolic.constraints.system import System


AS_GOOD = 0.5  # of what the best choice keeps: rows that keep this stay, as do small blocks
AS_GOOD_OWN = 0.35  # of what the best speeds keep: the user's that keep this stay
AS_GOOD_ROUNDED = 0.8  # the same of rows that contradict others, the more the less they keep


Chosen = np.ndarray | tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """Rows that are kept, speeds that are independent, and those on which the solves are built.

    It determines the equations of a mechanism: runs that choose alike have the same ones.
    """

    rows: tuple[int, ...]
    independent: tuple[int, ...]
    base: tuple[int, ...]

    @classmethod
    def of(cls, system: System) -> Choice:
        """Return what a system is on."""
        return cls(system.report.kept, system.independent, system.complement.base.independent)


@dataclass(frozen=True)
class RowNumbers:
    """What numbers alone say of the rows of a system: enough to choose among them.

    Attributes:
        names: Names of all rows.
        own: What the user's system is on.
        matrices: All rows at the configurations at which the system was derived.
        samples: Those configurations.
        usual: Usual largest entry of each row; zero of those that vanish everywhere.
        units: Factor per speed in which rows are compared; none for metres.
        rounded: Whether some rows contradict others.
        disagreement: By how much those do that were dropped [m or rad].
        weakest: Relative singular value below which kept rows lose rank.
        extent: Extent of the mechanism [m].
    """

    names: tuple[str, ...]
    own: Choice
    matrices: tuple[tuple[tuple[float, ...], ...], ...]
    samples: tuple[tuple[float, ...], ...]
    usual: tuple[float, ...]
    units: tuple[float, ...]
    rounded: bool
    disagreement: float
    weakest: float
    extent: float

    @classmethod
    def of(cls, system: System) -> RowNumbers:
        """Collect those of a system."""
        report = system.report
        return cls(
            tuple(row.name for row in system.rows),
            Choice.of(system),
            _as_tuples(report.all_matrices),
            _as_tuples(system.samples),
            _as_tuples(_usual_sizes(system)),
            () if report.units is None else _as_tuples(report.units.speeds),
            bool(report.loose),
            float(max((row.disagreement for row in report.dropped), default=0.0)),
            float(report.weakest),
            float(system.assembly.extent),
        )

    @property
    def scales(self) -> np.ndarray:
        """Usual largest entry of each row."""
        return np.array(self.usual)

    @property
    def speed_units(self) -> np.ndarray:
        """Factor per speed in which rows are compared."""
        return np.array(self.units or 1.0)

    @property
    def speeds(self) -> int:
        """How many joint speeds there are."""
        return len(self.own.rows) + len(self.own.independent)

    def regular_matrices(self, kept: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Some rows at the configurations where they are regular; at all if they are nowhere."""
        rows, shape = list(kept), (len(self.names), self.speeds)
        matrices = [np.reshape(A, shape)[rows] for A in self.matrices]
        if kept == self.own.rows:
            return tuple(matrices)
        scales = self.scales[rows, np.newaxis].clip(1e-300)
        regular = (
            A for A in matrices if smallest_singular_value(A * self.speed_units / scales) > RANK
        )
        return tuple(regular) or tuple(matrices)

    @property
    def faults(self) -> Iterator[str]:
        """What contradicts itself, of numbers from a file."""
        rows, speeds = len(self.names), self.speeds
        for kind, chosen, size in (
            ("rows", self.own.rows, rows),
            ("speeds", self.own.independent, speeds),
            ("speeds", self.own.base, speeds),
        ):
            if len(set(chosen)) != len(chosen) or not all(0 <= k < size for k in chosen):
                yield f"unknown {kind} in a choice"
        if len(self.own.base) != len(self.own.independent):
            yield "solves on other speeds than are independent"
        if len(self.usual) != rows or len(self.units) not in (0, speeds):
            yield "more or fewer sizes than rows and speeds"
        if any(len(A) != rows or any(len(row) != speeds for row in A) for A in self.matrices):
            yield "matrices of other sizes than the rows"
        if not self.matrices or not self.samples:
            yield "no configurations"


def _as_tuples(values: Any) -> Any:
    """Nested arrays or sequences of numbers as tuples."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    return tuple(map(_as_tuples, values)) if isinstance(values, list | tuple) else values


@dataclass(frozen=True)
class EvaluatedRows:
    """All rows at a configuration, or at several (leading axes), and where the next step leads."""

    names: tuple[str, ...]
    matrix: np.ndarray
    scales: np.ndarray  # usual largest entries; zero of rows that vanish everywhere
    own: Choice  # what the user's system is on
    units: np.ndarray  # factor per speed in which they are compared
    rounded: bool = False  # whether some contradict others
    ahead: EvaluatedRows | None = None

    @property
    def rank(self) -> int:
        """Rank of the rows wherever the mechanism is not singular."""
        return len(self.own.rows)

    @cached_property
    def scaled(self) -> np.ndarray:
        """Rows divided by their usual size; those that vanish everywhere are zero."""
        holds = self.scales > 0.0
        lengths = np.where(holds, self.scales, 1.0)
        matrix = self.matrix * self.units
        scaled: np.ndarray = np.where(holds, 1.0 / lengths, 0.0)[:, np.newaxis] * matrix
        return scaled

    @cached_property
    def _svd(self) -> tuple[np.ndarray, np.ndarray]:
        _, s, Vt = singular_vectors(self.scaled)
        return s, Vt

    @property
    def margin(self) -> np.ndarray:
        """How far all rows together are from losing rank, relative.  (N7)"""
        s = self._svd[0]
        lasting = (
            s[..., self.rank - 1] / s[..., 0].clip(1e-300) if self.rank else np.ones(s.shape[:-1])
        )
        return np.asarray(lasting)

    @property
    def lost(self) -> np.ndarray:
        """Return where all rows together have lost rank.  (N7)"""
        return np.asarray(self.margin < NEARLY_SINGULAR)

    @property
    def null_space(self) -> np.ndarray:
        """Speeds that they allow, in columns, in the units in which they are compared."""
        return np.swapaxes(self._svd[1][..., self.rank :, :], -1, -2)

    def kept_by_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the share of the smallest singular value of all rows that some keep."""
        if self.rank in (0, self.matrix.shape[-2]):
            return np.ones(self.matrix.shape[:-2])
        basis = np.swapaxes(self._svd[1][..., : self.rank, :], -1, -2)
        part = _picked(self.scaled, rows) @ basis
        kept = smallest_singular_value(part) / self._svd[0][..., self.rank - 1].clip(1e-300)
        if self.ahead is None:
            return np.asarray(kept)
        there = np.swapaxes(self.ahead._svd[1][..., : self.rank, :], -1, -2)
        flips = _flips(part, _picked(self.ahead.scaled, rows) @ there, basis, there)
        return np.where(flips, 0.0, np.minimum(kept, self.ahead.kept_by_rows(rows)))

    def kept_by_speeds(self, speeds: np.ndarray) -> np.ndarray:
        """Return the smallest singular value of some speeds in the motions that are possible."""
        Z = self.null_space
        if not Z.shape[-1]:
            return np.ones(self.matrix.shape[:-2])
        part = _picked(Z, speeds)
        kept = smallest_singular_value(part)
        if self.ahead is None:
            return np.asarray(kept)
        there = self.ahead.null_space
        flips = _flips(part, _picked(there, speeds), Z, there)
        return np.where(flips, 0.0, np.minimum(kept, self.ahead.kept_by_speeds(speeds)))

    def regularity(self, rows: Chosen, independent: Chosen, base: Chosen) -> np.ndarray:
        """Return how far a choice, or one of each, is from singular; one at best.  (N10)"""
        kept, *speeds = (np.array(x, dtype=int) for x in (rows, independent, base))
        least = np.minimum(*(self.kept_by_speeds(x) for x in speeds))
        return np.asarray(self.kept_by_rows(kept) * least)

    @cached_property
    def chosen(self) -> np.ndarray:
        """The rows to keep: the user's unless others do much better.  (N8)"""
        own = np.array(self.own.rows, dtype=int)
        if self.rank in (0, self.matrix.shape[-2]):
            return np.broadcast_to(own, (*self.matrix.shape[:-2], self.rank))
        best = choose_columns(np.swapaxes(self.scaled, -1, -2), self.rank)
        as_good = AS_GOOD_ROUNDED if self.rounded else AS_GOOD
        stay = self.kept_by_rows(own) >= as_good * self.kept_by_rows(best)
        return np.where(stay[..., np.newaxis], own, best)

    @property
    def best_pivot(self) -> np.ndarray:
        """Relative distance of the best choice of rows and speeds from singular."""
        every = np.arange(self.matrix.shape[-1])
        free = (self.farthest[..., np.newaxis] == every).any(axis=-2)
        dependent = np.argsort(free, axis=-1, kind="stable")[..., : self.rank]
        if not self.rank:
            return np.ones(self.matrix.shape[:-2])
        part = _picked(np.swapaxes(_picked(self.scaled, self.chosen), -1, -2), dependent)
        s = singular_values(part)
        return np.asarray(s[..., -1] / s[..., 0])

    @property
    def weakest(self) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Rows nearest to dependent, their weights, and the speeds that they set free."""
        U, s, Vt = singular_vectors(self.scaled[self.chosen])
        names = tuple(self.names[r] for r in self.chosen)
        return names, U[:, len(s) - 1], Vt[len(s) - 1]

    @cached_property
    def farthest(self) -> np.ndarray:
        """Speeds whose directions are farthest apart.  (N8)"""
        Z = self.null_space
        return choose_columns(np.swapaxes(Z, -1, -2), Z.shape[-1])

    @cached_property
    def independent(self) -> np.ndarray:
        """The speeds to choose: the user's, or those of the smallest blocks, unless others do
        much better.  (N8)"""
        chosen, best = self.farthest, self.kept_by_speeds(self.farthest)
        for known, part in ((self.own.base, AS_GOOD), (self.own.independent, AS_GOOD_OWN)):
            speeds = np.array(known, dtype=int)
            stay = self.kept_by_speeds(speeds) >= part * best
            chosen = np.where(stay[..., np.newaxis], speeds, chosen)
        return chosen


def _picked(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Select rows of each of several matrices."""
    rows = np.broadcast_to(rows, (*matrix.shape[:-2], rows.shape[-1]))
    return np.take_along_axis(matrix, rows[..., np.newaxis], axis=-2)


def _flips(
    here: np.ndarray, there: np.ndarray, basis: np.ndarray, turned: np.ndarray
) -> np.ndarray:
    """Return where a determinant changes its sign, written in bases that turn along."""
    along = np.swapaxes(basis, -1, -2) @ turned
    signs = [np.sign(np.linalg.det(matrix)) for matrix in (here, there, along)]
    return np.asarray(signs[0] * signs[1] * signs[2] < 0.0)


def _usual_sizes(system: System) -> np.ndarray:
    """Return the usual largest entry of each row; zero of those that vanish everywhere."""
    report = system.report
    speeds = 1.0 if report.units is None else report.units.speeds
    usual = np.array([np.abs(M * speeds).max(axis=1) for M in report.all_matrices]).max(axis=0)
    vanish = {row.name for row in report.dropped if not row.follows_from}
    usual[[row.name in vanish for row in system.rows]] = 0.0  # what rounding leaves is no row
    return np.asarray(usual)


@dataclass(frozen=True)
class Chooser:
    """Chooses rows and speeds for configurations of a system, as functions of these alone.

    Attributes:
        numbers: Numbers of the system's rows.
    """

    numbers: RowNumbers
    _bases: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def choose(
        self, rows: EvaluatedRows, speeds: np.ndarray | None = None
    ) -> tuple[list[Choice], np.ndarray, np.ndarray]:
        """Choose for each configuration, what the user chose where that does nearly as well.

        Args:
            rows: Evaluated there, with one leading axis.
            speeds: Independent speeds; chosen unless given.

        Returns:
            Different choices, the number of one per configuration, and how regular it is there.
        """
        kept, independent = rows.chosen, rows.independent
        if speeds is not None:
            independent = np.broadcast_to(speeds, independent.shape)
        split = np.cumsum([kept.shape[1], independent.shape[1]])
        pairs, number = np.unique(
            np.concatenate([kept, independent], axis=1), axis=0, return_inverse=True
        )
        cheap = np.array([self._detour(*np.split(pair, split[:1])) for pair in pairs], dtype=int)
        cheap = cheap.reshape(len(pairs), -1)[number.ravel()]
        detour = rows.kept_by_speeds(cheap) >= AS_GOOD * rows.kept_by_speeds(independent)
        base = np.where(detour[:, np.newaxis], cheap, independent)
        every = np.concatenate([kept, independent, base], axis=1)
        codes, which = np.unique(every, axis=0, return_inverse=True)
        choices = [Choice(*(tuple(x.tolist()) for x in np.split(code, split))) for code in codes]
        return choices, which.ravel(), rows.regularity(kept, independent, base)

    def _detour(self, rows: np.ndarray, independent: np.ndarray) -> tuple[int, ...]:
        """Find the speeds of the smallest blocks, if a detour by way of them saves operations."""
        kept, asked = tuple(rows.tolist()), tuple(independent.tolist())
        if (kept, asked) == (self.numbers.own.rows, self.numbers.own.independent):
            return self.numbers.own.base
        key = (*kept, -1, *asked)
        if key not in self._bases:
            from axode.symbolic.constraints.complement import (  # models from files need no CasADi
                cheapest_partition,
                is_worth_a_detour,
                partition,
            )
            from axode.symbolic.constraints.redundant_rows import RankReport

            matrices = self.numbers.regular_matrices(kept)
            report = RankReport(kept, (), (), (), matrices, weakest=self.numbers.weakest)
            cheap, direct = cheapest_partition(report), partition(report, list(asked))
            worth = is_worth_a_detour(cheap, direct)
            self._bases[key] = cheap.independent if worth else asked
        return self._bases[key]


def system_on(system: System, choice: Choice) -> System:
    """Put a system on other rows and speeds."""
    from axode.symbolic.constraints.redundant_rows import describe_dropped

    report, kept = system.report, choice.rows
    if kept != report.kept:
        numbers = RowNumbers.of(system)
        loose = tuple(r for r in {*report.loose, *report.kept} if r not in kept)
        dropped = describe_dropped(list(system.rows), report, numbers.scales, list(kept))
        matrices = numbers.regular_matrices(kept)
        loose = loose if report.loose else ()
        report = replace(report, kept=kept, dropped=dropped, loose=loose, matrices=matrices)
    return replace(system, report=report, independent=choice.independent, base=choice.base)


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
    return replace(system, report=report, independent=tuple(range(size)), base=None)
