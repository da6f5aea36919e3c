r"""The mobility report: what a mechanism can do, in numbers and words (C).

Nonholonomic rows forbid velocities, not always configurations. How many configurations the motion
reaches is the dimension of the smallest set of directions that holds the columns of N Theta and all
their Lie brackets:

.. math:: [X, Y] = \frac{\partial Y}{\partial q} X - \frac{\partial X}{\partial q} Y.  \tag{C9}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from axode.errors import first_of
from axode.mechanism.mechanism import Mechanism
from axode.symbolic.algebra.rank import smallest_singular_value
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.analysis.wheel_conflicts import turning_conflicts
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.system import System

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

BRACKET_TOLERANCE = 1e-7
BRACKET_NOISE = 1e-9  # of the lengths of both fields: what differences of their derivatives leave
ZERO_SPEED = 1e-9
MOST_COUPLINGS = 12  # lines of a report; a hand may have more


@dataclass(frozen=True)
class Mobility:
    """Everything the analysis found; `str` prints it as a page."""

    name: str
    bodies: int
    joints: int
    loops: int  # independent ones, by Euler's formula
    speeds: tuple[str, ...]
    rows: int
    rank: int
    dropped: tuple[str, ...]
    indeterminate: tuple[str, ...]
    configuration_dof: int
    mobility: int
    reachable: int  # dimension of what motion reaches: between mobility and configuration_dof
    rheonomic: bool
    actuation: str
    motors: int
    independent: tuple[str, ...]
    locked: tuple[str, ...]  # speeds that vanish in every motion
    conflicts: tuple[str, ...]
    couplings: tuple[str, ...] = ()  # as equations between coordinates

    @property
    def integrable(self) -> int:
        """Number of velocity constraints that are integrable to positions."""
        return self.configuration_dof - self.reachable

    @property
    def holonomic(self) -> bool:
        """Return whether every constraint is one on positions, openly or in disguise."""
        return self.reachable == self.mobility

    @property
    def catastatic(self) -> bool:
        """Return whether rest is possible: no speed is forced by time alone."""
        return not self.rheonomic

    def __str__(self) -> str:
        lines = [f"{self.name}: mobility {self.mobility}, {self.actuation}"]
        lines += [f"  {label:<15}{text}" for label, text in self.entries() if text]
        return "\n".join(lines)

    def entries(self) -> list[tuple[str, str]]:
        """What it says, by label; texts may be empty."""
        kind = "holonomic" if self.holonomic else "nonholonomic"
        time = "rheonomic, not catastatic" if self.rheonomic else "scleronomic, catastatic"
        reach = f"{self.configuration_dof} dof"
        if self.mobility != self.configuration_dof:
            reach += f", motion reaches {self.reachable} of them"
            if self.integrable:
                plural = "s" if self.integrable > 1 else ""
                reach += f" ({self.integrable} velocity constraint{plural} integrable)"
        return [
            ("bodies", f"{self.bodies}, joints {self.joints}, independent loops {self.loops}"),
            ("speeds", f"{len(self.speeds)}: {_listed(self.speeds)}"),
            *(("coupling", coupling) for coupling in self.couplings[:MOST_COUPLINGS]),
            ("coupling", self._more_couplings()),
            ("rows", f"{self.rows}, rank {self.rank}" if self.rows else "none"),
            ("dropped", _listed(self.dropped)),
            ("indeterminate", _listed(self.indeterminate, "forces of ")),
            ("configuration", reach),
            ("kind", f"{kind}, {time}"),
            ("independent", _listed(self.independent)),
            ("actuation", f"{self.actuation}, {self.motors} motor{'s' * (self.motors != 1)}"),
            ("never move", _listed(self.locked)),
            *(("conflict", conflict) for conflict in self.conflicts),
        ]

    def _more_couplings(self) -> str:
        more = len(self.couplings) - MOST_COUPLINGS
        return f"... ({len(self.couplings)} in all)" if more > 0 else ""


def _listed(names: tuple[str, ...], prefix: str = "") -> str:
    return prefix + first_of(names) if names else ""


def mobility_of(equations: Equations) -> Mobility:
    """Analyse a derived mechanism."""
    system = equations.system
    report, n = system.report, len(equations.independent)
    configuration = configuration_dof(system)
    mechanism = system.mechanism
    return Mobility(
        name=equations.name,
        bodies=len(mechanism.bodies),
        joints=len(mechanism.connections) + len(mechanism.loops),
        loops=euler_loops(mechanism),
        speeds=equations.speeds,
        rows=len(system.rows),
        rank=len(report.kept),
        dropped=tuple(map(str, report.dropped)),
        indeterminate=report.indeterminate,
        configuration_dof=configuration,
        mobility=n,
        reachable=n if n == configuration else reachable_dimension(system, configuration),
        rheonomic=system.rheonomic,
        actuation=equations.actuation,
        motors=system.forces.motors,
        independent=equations.independent,
        locked=_locked(system),
        conflicts=tuple(turning_conflicts(system)),
        couplings=tuple(map(str, mechanism.couplings)),
    )


def configuration_dof(system: System) -> int:
    """Number of coordinates that the constraints on positions leave free."""
    loose = set(system.report.loose)  # they contradict others a little and do not count
    holonomic = [r for r, row in enumerate(system.rows) if row.holonomic and r not in loose]
    ranks = (rank_of(A[holonomic]) for A in system.report.all_matrices)
    return len(system.tree.speed_names) - max(ranks, default=0)


def euler_loops(mechanism: Mechanism) -> int:
    """Independent loops of the graph of bodies and joints: joints - bodies + components.

    A floating joint joins nothing and does not count; the ground does.
    """
    names = ["ground", *(body.name for body in mechanism.bodies)]
    component = {name: name for name in names}

    def root(name: str) -> str:
        while component[name] != name:
            name = component[name]
        return name

    joints = [c for c in (*mechanism.connections, *mechanism.loops) if not c.joint.is_free]
    for connection in joints:
        component[root(connection.parent)] = root(connection.child)
    components = len({root(name) for name in names})
    return len(joints) - len(names) + components


def reachable_dimension(system: System, most: int) -> int:
    """Dimension of the Lie-bracket closure of the free directions, at a generic configuration.

    Only brackets that add a direction are kept and bracketed again.             (C9)
    """
    q = system.tree.q
    base = newest = _Fields(system, ca.densify(system.tree.N @ system.complement.Theta_0))
    found = base.values
    while newest.count and found.shape[1] < most:
        fresh: list[SX] = []
        for i in range(base.count):
            X, x = base.fields[:, i], base.values[:, i]
            brackets = newest.rates_along(x) - base.rates_of(i, newest.values)  # (C9)
            for j in range(i + 1 if newest is base else 0, newest.count):
                Y, y = newest.fields[:, j], newest.values[:, j]
                # a bracket that vanishes leaves rounding errors, and long fields large ones
                terms = float(np.linalg.norm(x) * np.linalg.norm(y))
                if found.shape[1] < most and _independent(found, brackets[:, j], terms):
                    found = np.column_stack([found, brackets[:, j]])
                    fresh.append(ca.jtimes(Y, q, X) - ca.jtimes(X, q, Y))
        newest = _Fields(system, ca.horzcat(SX(q.shape[0], 0), *fresh))
    return found.shape[1]


class _Fields:
    """Vector fields, one per column, with their values and slopes at a generic configuration."""

    def __init__(self, system: System, fields: SX) -> None:
        tree = system.tree
        self.fields, (self.size, self.count) = fields, fields.shape
        results = [fields, ca.jacobian(fields, tree.q)]
        function = ca.Function("fields", [tree.q, tree.t, tree.parameters], results)
        q0 = max(system.samples, key=lambda q: float(np.linalg.norm(q)))
        values, slopes = function(q0, 0.0, system.defaults)
        self.values = np.array(values).reshape(fields.shape)
        self._slopes = slopes  # of one field after the other
        self._each = ca.vertsplit(slopes, self.size) if self.count else []

    def rates_of(self, number: int, directions: np.ndarray) -> np.ndarray:
        """Return how one field changes along each of many directions."""
        return np.array(self._each[number] @ ca.DM(directions)).reshape(directions.shape)

    def rates_along(self, direction: np.ndarray) -> np.ndarray:
        """Return how every field changes along a direction, one per column."""
        rates = np.array(self._slopes @ ca.DM(direction))
        return rates.reshape(self.count, self.size).T


def _independent(found: np.ndarray, column: np.ndarray, terms: float) -> bool:
    """Return whether a column is more than rounding and not spanned by those found."""
    length = np.linalg.norm(column)
    if not length >= max(BRACKET_TOLERANCE, BRACKET_NOISE * terms):
        return False
    columns = np.column_stack([found, column])
    if not np.isfinite(columns).all():
        return False
    lengths = np.linalg.norm(columns, axis=0)
    return bool(smallest_singular_value(columns / lengths) > BRACKET_TOLERANCE)


def _locked(system: System) -> tuple[str, ...]:
    """Speeds that no motion has, unless time is explicit."""
    if system.rheonomic:
        return ()
    names = system.tree.speed_names
    return tuple(
        name
        for j, name in enumerate(names)
        if all(np.abs(Z[j]).max(initial=0.0) < ZERO_SPEED for Z in system.report.null_bases)
        and not any(row.kind == "prescribed" and j in row.entries for row in system.kept)
    )
