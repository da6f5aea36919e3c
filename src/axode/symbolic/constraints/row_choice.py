"""Systems on the rows and speeds that do best at configurations; `row_numbers` says which."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from axode.symbolic.constraints.complement import cheapest_partition, is_worth_a_detour, partition
from axode.symbolic.constraints.redundant_rows import RankReport, describe_dropped
from axode.symbolic.constraints.row_numbers import AS_GOOD, Choice, EvaluatedRows, RowNumbers
from axode.symbolic.constraints.system import System


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
            matrices = self.numbers.regular_matrices(kept)
            report = RankReport(kept, (), (), (), matrices, weakest=self.numbers.weakest)
            cheap, direct = cheapest_partition(report), partition(report, list(asked))
            worth = is_worth_a_detour(cheap, direct)
            self._bases[key] = cheap.independent if worth else asked
        return self._bases[key]


def system_on(system: System, choice: Choice) -> System:
    """Put a system on other rows and speeds."""
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
