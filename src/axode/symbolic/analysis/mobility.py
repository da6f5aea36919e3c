r"""The mobility report: what a mechanism can do, as numbers and text (C).

Nonholonomic rows forbid velocities, not always configurations. How many configurations the motion
reaches is the dimension of the closure of the columns of N Theta under Lie brackets.  (C9)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from axode.errors import first_of
from axode.mechanism.mechanism import Mechanism
from axode.symbolic.analysis.reachable import reachable_dimension
from axode.symbolic.analysis.wheel_conflicts import turning_conflicts
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.constraints.system import System

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

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
    reachable_is_certain: bool  # otherwise it is at least that
    rheonomic: bool
    actuation: str
    motors: int
    independent: tuple[str, ...]
    locked: tuple[str, ...]  # speeds that vanish in every motion
    conflicts: tuple[str, ...]
    couplings: tuple[str, ...] = ()  # as equations between coordinates
    weak: tuple[str, ...] = ()  # rows kept though they nearly follow from others
    driven: tuple[str, ...] = ()  # what the rows prescribe that have explicit time
    quasi_velocities: tuple[str, ...] = ()  # each with its formula
    integrals: tuple[str, ...] = ()  # velocity constraints that integrate to sums of coordinates

    @property
    def integrable(self) -> int:
        """Number of velocity constraints that are integrable to positions."""
        return self.configuration_dof - self.reachable

    @property
    def holonomic(self) -> bool:
        """Return whether every constraint is one on positions, given as such or integrable."""
        return self.reachable == self.mobility

    @property
    def catastatic(self) -> bool:
        """Return whether nothing moves while the independent speeds are zero.

        Otherwise the constraints A v = b have a term b without speeds: the mechanism is
        acatastatic, and its kinetic energy does not vanish with these speeds.
        """
        return not self.driven

    def __str__(self) -> str:
        lines = [f"{self.name}: mobility {self.mobility}, {self.actuation}"]
        lines += [f"  {label:<15}{text}" for label, text in self.entries() if text]
        return "\n".join(lines)

    def entries(self) -> list[tuple[str, str]]:
        """What it says, by label; texts may be empty."""
        kind = "holonomic" if self.holonomic else "nonholonomic"
        time = "rheonomic" if self.rheonomic else "scleronomic"
        rest = "catastatic"
        if self.driven:
            rest = f"acatastatic (time alone gives a speed to {_listed(self.driven)})"
        reach = f"{self.configuration_dof} dof"
        if self.mobility != self.configuration_dof:
            at_least = "" if self.reachable_is_certain else "at least "
            reach += f", {at_least}{self.reachable} reachable"
            if self.integrable and self.reachable_is_certain:
                plural = "s" if self.integrable > 1 else ""
                reach += f" ({self.integrable} velocity constraint{plural} integrable)"
        return [
            ("bodies", f"{self.bodies}, joints {self.joints}, independent loops {self.loops}"),
            ("speeds", f"{len(self.speeds)}: {_listed(self.speeds)}"),
            *(("coupling", coupling) for coupling in self.couplings[:MOST_COUPLINGS]),
            ("coupling", self._more_couplings()),
            ("rows", f"{self.rows}, rank {self.rank}" if self.rows else "none"),
            ("dropped", _listed(self.dropped)),
            ("nearly follow", _listed(self.weak)),
            ("indeterminate", _listed(self.indeterminate, "forces of ")),
            ("configuration", reach),
            *(("integral", text) for text in self.integrals),
            ("kind", f"{kind}, {time}, {rest}"),
            ("independent", _listed(self.independent)),
            *(("quasi-velocity", text) for text in self.quasi_velocities),
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
    reach = (n, True) if n in (0, configuration) else reachable_dimension(system, configuration)
    mechanism = system.mechanism
    return Mobility(
        name=equations.name,
        bodies=len(mechanism.bodies),
        joints=len(mechanism.connections) + len(mechanism.loops),
        loops=euler_loops(mechanism),
        speeds=equations.speeds[: system.W.shape[1]],
        rows=len(system.rows) - len(system.definitions),
        rank=len(report.kept) - len(system.definitions),
        dropped=tuple(map(str, report.dropped)),
        indeterminate=report.indeterminate,
        configuration_dof=configuration,
        mobility=n,
        reachable=reach[0],
        reachable_is_certain=reach[1],
        rheonomic=system.rheonomic,
        actuation=equations.actuation,
        motors=system.forces.motors,
        independent=equations.independent,
        locked=_locked(system),
        conflicts=tuple(turning_conflicts(system)),
        couplings=tuple(map(str, mechanism.couplings)),
        driven=tuple(row.owner for row in system.kept if not row.rate.is_zero()),
        weak=tuple(f"{name} (but for {part:.1g})" for name, part in report.weak),
        quasi_velocities=tuple(_definition(system, k) for k in range(len(system.definitions))),
    )


def _definition(system: System, k: int) -> str:
    """A quasi-velocity by its formula; that of a measure as symbols have it."""
    quasi, text = system.mechanism.quasi_velocities[k], ""
    if not isinstance(quasi.definition, str):
        text = str(system.W[k, :] @ system.tree.v[: system.W.shape[1]]).strip("[]()")
    return str(quasi) + f" = {text}" * bool(text)


def configuration_dof(system: System) -> int:
    """Number of coordinates that the constraints on positions leave free."""
    loose = set(system.report.loose)  # they contradict others a little and do not count
    holonomic = [r for r, row in enumerate(system.rows) if row.places and r not in loose]
    ranks = (rank_of(A[holonomic]) for A in system.report.all_matrices)
    kept = sum(row.places for row in system.kept)  # weak ones among them
    return len(system.tree.speed_names) - max(*ranks, kept, 0)


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
