r"""Loops closed, rows sorted: also where rounded numbers close a loop only nearly (C).

Numbers from a drawing have five or ten digits, and an overconstrained loop made of them closes to
as many: rows that would follow from others contradict them a little. Within the mechanism's
tolerance such rows are left out, the others are closed exactly, and what is left open,

.. math:: r - \min(\max(r, -30 \epsilon l), 30 \epsilon l),                        \tag{C12}

with the length l of the mechanism for positions and one for angles, is what a dropped row has
beyond what rounding may grow to.

Clusters of links whose rows need nothing of the rest but the twist of the link before (N).

With the rows of a cluster read at the link that carries it,

.. math:: v_c = \Theta_c\, y + \Gamma_c\, t_p, \qquad
          A_c \Theta_c = 0, \qquad A_c \Gamma_c = -W_c,                             \tag{N13}

y being the independent speeds among its own, :math:`t_p` the carrier's twist and :math:`W_c` the
wrenches of the rows there. A chain on wheels has as many clusters as links, however few freedoms it
has, and a row of four-bars one per loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from axode.errors import LoopNotClosed, PlausibilityWarning, first_of, warn_of_description
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import tree_order
from axode.numerics.newton import METRE
from axode.numerics.tolerances import CLOSED, MATRIX_ROUNDING, NEGLIGIBLE, ROW_RANK
from axode.symbolic.algebra.spatial import ROOT, SX
from axode.symbolic.constraints.assembly import Assembly, not_closed, warn_of_moved_home
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.long_chains import anchors_of
from axode.symbolic.constraints.redundant_rows import RankReport, RowSizes, Units, analyse
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import Cluster, find_clusters
from axode.symbolic.tree.rows import Row

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
    samples = assembly.samples(home, SAMPLES, polish=not tolerance)
    matrices = [A(q) for q in samples]
    units = _units(assembly, rows, matrices)
    sizes = _sizes(assembly, rows, samples, A, units)
    strict = analyse(rows, matrices, units=units, sizes=sizes)
    report = analyse(rows, matrices, tolerance, units=units, sizes=sizes)
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
    _warn_of_small_rows(tree.mechanism, rows, made.report)
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


def _sizes(
    assembly: Assembly,
    rows: list[Row],
    samples: list[np.ndarray],
    A: Callable[[np.ndarray], np.ndarray],
    units: Units | None,
) -> RowSizes:
    """Sizes of the rows' terms, their rounding, and rows where closing may be off."""
    tree, size = assembly.tree, assembly.tree.v.shape[0]
    lengths, factor = (1.0, 1.0) if units is None else (units.speeds, units.rows)
    speeds = [ca.sum1(side.matrix(size) ** 2) for row in rows for side in row.sides]
    owners = [r for r, row in enumerate(rows) for _ in row.sides]
    function = ca.Function("sides", [tree.q, tree.parameters], [ca.vertcat(SX(0, size), *speeds)])
    linear = np.array([row.unit == "m" for row in rows], dtype=bool)
    terms = np.where(linear, 0.0, 1.0)
    for q in samples:
        velocities = np.sqrt(function(q, assembly.parameters).full()) * lengths
        reach = np.zeros(len(rows))
        np.maximum.at(reach, owners, velocities.max(axis=1, initial=0.0))
        terms = np.where(linear, np.maximum(terms, factor * reach), terms)
    nearby = _nearby(assembly, samples, A, assembly.tolerance)
    return RowSizes(terms, MATRIX_ROUNDING * terms.clip(1.0), assembly.tolerance, nearby)


def _nearby(
    assembly: Assembly,
    samples: list[np.ndarray],
    A: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
) -> tuple[tuple[np.ndarray, ...], ...]:
    """Rows of configurations that are closed as well as the samples are."""
    return tuple(
        tuple(A(q + change) for change in assembly.uncertain(q, tolerance)) for q in samples
    )


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
        matrices = [A(q) for q in samples]
        nearby = _nearby(inner, samples, A, assembly.tolerance)
        sizes = report.sizes and replace(report.sizes, nearby=nearby)
        again = analyse(rows, matrices, assembly.tolerance, hold, report.units, sizes)
        places = [start] if assembly.depends_on_time else [start, *samples]
        off = _disagreements(assembly, rows, again, places)
        far = [r for r in loose if off[r] > GROWTH * assembly.tolerance]
        if not far and set(again.kept) == set(report.kept):
            final = _report(assembly, rows, again, loose, off)
            return ClosedLoops(inner, start, samples, final)
        # a row may seem to follow next to home and hold something of its own farther away
        hold |= set(far)
        report = analyse(rows, matrices, assembly.tolerance, hold, report.units, sizes)
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
    units = _units(exact, rows, matrices)
    sizes = _sizes(exact, rows, samples, A, units)
    report = analyse(rows, matrices, units=units, sizes=sizes)
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
        and (report.rests[r] > ROW_RANK or (row.holonomic and off[r] > CLOSED * 1e-3))
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
    """Add the sizes of contradictions to the report."""
    names = {rows[r].name: r for r in loose}
    off = np.maximum(off, report.rests)
    dropped = []
    for row in report.dropped:
        if row.name in names:
            r = names[row.name]
            unit = rows[r].unit if rows[r].holonomic else ""
            size = float(off[r]) * (assembly.extent if unit == "m" else 1.0)
            row = replace(row, disagreement=size, unit=unit)
        dropped.append(row)
    return replace(report, dropped=tuple(dropped), loose=tuple(loose), extent=assembly.extent)


def _warn_of_small_rows(mechanism: Mechanism, rows: list[Row], report: RankReport) -> None:
    """Warn of rows that were left out although something is left of them, and of weak ones.

    Wheels that disagree by what they slip in no drive are in the report alone: angles of a file
    such as -1.57 leave that much of any axle.
    """
    least = {row.name: 0.0 if row.holonomic else NEGLIGIBLE for row in rows}
    loose = [row for row in report.dropped if row.disagreement > least[row.name]]
    loose.sort(key=lambda row: -row.disagreement)
    off = [f"{row.name} by {row.disagreement:.2g} {row.unit}".strip() for row in loose]
    weak = [f"{name} but for {part:.1g}" for name, part in report.weak]
    taken = f"loop_tolerance = {mechanism.loop_tolerance:g}"
    texts = {
        f"some constraints contradict others, {first_of(off)}; they are left out as an effect of "
        f"rounded numbers ({taken}); if the numbers are exact, use loop_tolerance=0": off,
        f"some constraints nearly follow from others: {first_of(weak)}; they are kept ({taken}), "
        "and results lose as many digits": weak,
    }
    for text, names in texts.items():
        if names:
            warn_of_description(f"'{mechanism.name}': {text}", PlausibilityWarning)


def beyond_tolerance(residual: SX, unit: str, report: RankReport) -> SX:
    """Part of a dropped row's residual that its tolerance does not cover.  (C12)"""
    most = GROWTH * report.tolerance * (report.extent if unit == "m" else 1.0)
    return residual - ca.fmin(ca.fmax(residual, -most), most)


# clusters -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CarriedClusters:
    """Clusters, and how their speeds follow.

    Attributes:
        clusters: Links of each, the innermost cluster first.
        Theta: Speeds for unit independent speeds of their cluster: speeds x base speeds.
        Gamma: Speeds for unit twists of the link before their cluster, in its axes: speeds x 6.
    """

    clusters: list[Cluster]
    Theta: SX
    Gamma: SX


def carried_clusters(c: Complement) -> CarriedClusters:
    """Find the clusters of a complement whose rows are about links of its tree."""
    tree = c.tree
    assert tree is not None
    anchors = anchors_of(tree, c.sides, c.base.blocks, c.base.independent, least=1)
    near = [
        {j for j in mentioned if r not in anchors or j not in anchors[r].speeds}
        for r, mentioned in enumerate(c.mentions)
    ]
    clusters = find_clusters(tree, near)
    Theta, Gamma = SX(c.size, len(c.base.independent)), SX(c.size, 6)
    place = {j: k for k, j in enumerate(c.base.independent)}
    number = {j: n for n, own in enumerate(clusters) for i in own for j in tree.links[i].speeds}
    solves: list[list[int]] = [[] for _ in clusters]
    for b, (_, columns) in enumerate(c.base.blocks):
        solves[number[columns[0]]].append(b)
    for links, own in zip(clusters, solves, strict=True):
        speeds = sorted(j for i in links for j in tree.links[i].speeds)
        free = [j for j in speeds if j in place]
        x = SX(c.size, len(free) + 6)
        for k, j in enumerate(free):
            x[j, k] = 1
        carrier = tree.links[links[0]].parent
        for b in own:
            rows, columns = c.base.blocks[b]
            others = [j for j in speeds if j not in columns]
            known = c.A[list(rows), others] @ x[others, :]
            for i, r in enumerate(rows):
                known[i, len(free) :] += _felt_at(c, r, carrier)
            solved = ca.sparsify(c.blocks[b].solve(-known))
            for i, j in enumerate(columns):
                x[j, :] = solved[i, :]
        Theta[speeds, [place[j] for j in free]] = x[speeds, : len(free)]
        Gamma[speeds, :] = x[speeds, len(free) :]
    return CarriedClusters(clusters, ca.sparsify(Theta), ca.sparsify(Gamma))


def _felt_at(c: Complement, row: int, link: int) -> SX:
    """A row's wrench at a link before its cluster: 1 x 6; nothing where its sides meet or end."""
    side = c.sides[row]
    if side is not None and link != ROOT:
        for at, wrench in side.felt[:-1]:
            if at == link:
                return ca.horzcat(wrench.n.T, wrench.f.T)
    return SX(1, 6)
