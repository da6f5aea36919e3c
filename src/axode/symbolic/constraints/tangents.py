r"""Displacements that loops, the ground and couplings leave free (N).

Rolling forbids speeds, not places: a wheel that cannot slide sideways may have started farther to
the side. Derivatives by the configuration are taken along

.. math:: \delta q = N(q)\, \Theta_h(q)\, \xi, \qquad A_h \Theta_h = 0,            \tag{N9}

with A_h the rows that come from positions. Each tangent is named by a speed, of which it is the
displacement: the independent ones first, and what rolling rows make dependent after them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.redundant_rows import RankReport, analyse, choose_speeds
from axode.symbolic.tree.rows import Row, column_of, matrix_of

if TYPE_CHECKING:
    from axode.symbolic.constraints.system import System


def find_tangents(system: System) -> Complement:
    """Complement of the rows that come from positions; of all rows if none is a rolling one."""
    if all(row.places for row in system.kept):
        return system.complement
    from axode.symbolic.constraints.system import preference

    rows, report = _on_positions(system)
    kept = [rows[r] for r in report.kept]
    own = [j for j in system.independent if j < system.W.shape[1]]  # others have no place
    preferred = [*own, *preference(system.mechanism, system.tree)]
    chosen = choose_speeds(report, list(dict.fromkeys(preferred)))
    A, b = matrix_of(kept, system.tree.v.shape[0]), column_of([row.rate for row in kept])
    return Complement.of(A, b, column_of([row.bias for row in kept]), report, chosen)


def position_rows(system: System) -> list[Row]:
    """Rows that `System.tangents` is the complement of."""
    if all(row.places for row in system.kept):
        return system.kept
    rows, report = _on_positions(system)
    return [rows[r] for r in report.kept]


def _on_positions(system: System) -> tuple[list[Row], RankReport]:
    """Rows that come from positions, but for those that contradict others a little."""
    whole = system.report
    places = [r for r, row in enumerate(system.rows) if row.places and r not in set(whole.loose)]
    rows = [system.rows[r] for r in places]
    units = whole.units and whole.units.of_rows(places)
    matrices = [A[places] for A in whole.all_matrices]
    sizes = whole.sizes and whole.sizes.of_rows(places)
    report = analyse(rows, matrices, whole.tolerance, units=units, sizes=sizes)
    at_home = np.array(system.all_rows_function(system.home, 0.0, system.defaults))[places]
    return rows, replace(report, home_matrix=(at_home[list(report.kept)],))
