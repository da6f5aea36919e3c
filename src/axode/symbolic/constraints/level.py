r"""Bases that contacts keep from tilting: described as floating, written as what they can do (K).

Three wheels on a plane leave a floating base three motions in it. Where the rows on positions leave
every base twist, at all closed configurations that were tried, an angular velocity along one
direction n of the parent, the rotation is a turn about n alone, (K7): on the configurations that
are closed next to home every expression of it is another one with many zeros, equal and shorter.
Coordinates, speeds, rows, forces and their names stay.

Residuals keep the floating base, and two more follow from the others: the tilt, which separates the
configurations next to home from others, such as upside down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from axode.mechanism.topology import tree_order
from axode.numerics.rank import null_space, singular_vectors
from axode.numerics.tolerances import MATRIX_ROUNDING, RANK, ROUNDING
from axode.symbolic.algebra.spatial import SX, Rotation, align, quaternion_matrix, turned_by
from axode.symbolic.constraints.assembly import Assembly
from axode.symbolic.constraints.redundant_rows import RankReport
from axode.symbolic.joints.floating import SymbolicLevel
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import Row, column_of, matrix_of

DRAWS, CHANGE = 3, 0.1  # other values of parameters, and how far from their defaults
FROM_ZERO = 0.01  # how far from defaults of zero, which no factor changes


@dataclass(frozen=True)
class LevelBase:
    """A floating base that does not tilt: its link, its name and how it turns."""

    link: int
    name: str
    first: int  # of its coordinates
    joint: SymbolicLevel

    def __str__(self) -> str:
        n = ", ".join(f"{x:.3g}" for x in self.joint.normal)
        return f"{self.name} turns about ({n}) alone"


def level_bases(
    tree: Tree,
    rows: Sequence[Row],
    report: RankReport,
    assembly: Assembly,
    closed: Sequence[np.ndarray],
) -> list[LevelBase]:
    """Find the floating bases that rows on positions keep from tilting, whatever the parameters.

    Args:
        tree: Tree of the mechanism.
        rows: All of them.
        report: Their ranks.
        assembly: What closes them.
        closed: Closed configurations, home last.
    """
    found: list[LevelBase] = []
    holding = [row for row in rows if _holds(row, tree)]
    if report.loose or not holding:
        return found
    hangs = ca.which_depends(
        column_of([row.residual for row in holding if row.residual is not None]),
        tree.parameters,
        1,
        False,
    )
    for connection in tree_order(tree.mechanism):
        if not (connection.joint.is_free and connection.joint.has_quaternion):
            continue
        if any(row.name.startswith(f"{connection.name}.tilt.") for row in rows):
            continue  # the names of its residuals are taken
        first = tree.coordinate_names.index(connection.coordinates[0])
        speed = tree.speed_names.index(connection.speeds[0])
        turning = _Turning(tree, holding, report, range(speed, speed + 3), first)
        axes = turning.directions(closed, assembly.parameters)
        if axes is None:
            continue
        if any(hangs) and not _always(turning, assembly, hangs, closed[-1], axes):
            continue
        k = next(i for i, link in enumerate(tree.links) if link.speeds.start == speed and link.k)
        joint = SymbolicLevel(connection.joint, tree.links[k].joint.values, *axes)
        found.append(LevelBase(k, connection.name, first, joint))
    return found


def _holds(row: Row, tree: Tree) -> bool:
    """Return whether a row comes from a position, at all times and alike."""
    if row.residual is None or row.kind == "prescribed":
        return False
    return not ca.depends_on(row.residual, tree.t)


@dataclass(frozen=True)
class _Turning:
    """About which directions a floating body turns where some rows hold."""

    tree: Tree
    rows: Sequence[Row]
    report: RankReport
    speeds: Sequence[int]
    first: int

    def directions(
        self, closed: Sequence[np.ndarray], parameters: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Direction in the parent and in the child; None if there are several or it moves."""
        tree = self.tree
        A = matrix_of(list(self.rows), tree.v.shape[0])
        function = ca.Function("A", [tree.q, tree.t, tree.parameters], [ca.densify(A)])
        units = self.report.units
        turned, R = [], []
        for q in closed:
            R.append(_rotation(q[self.first : self.first + 4]))
            M = function(q, 0.0, parameters).full() * (1.0 if units is None else units.speeds)
            lengths = np.abs(M).max(axis=1, keepdims=True)
            free = null_space((M / lengths.clip(1e-300))[lengths[:, 0] > RANK], RANK)
            turned.append(R[-1] @ free[list(self.speeds)])
        U, s, _ = singular_vectors(np.hstack(turned[:-1]), full=False)  # home may be singular
        if not s.size or s[0] < ROUNDING or s[1:].max(initial=0.0) > ROUNDING * s[0]:
            return None
        n = U[:, 0] * np.sign(U[np.argmax(np.abs(U[:, 0])), 0])
        n = _direction(n)
        b = [each.T @ n for each in R]
        if np.abs(np.array(b) - b[-1]).max() > ROUNDING:
            return None
        return n, _direction(b[-1])


def _rotation(q: np.ndarray) -> np.ndarray:
    R: np.ndarray = ca.DM(quaternion_matrix(*map(ca.SX, q.tolist()))).full()
    return R


def snapped(x: np.ndarray) -> np.ndarray:
    """Entries within rounding of 0, 1 and -1 made exact."""
    exact: np.ndarray = np.where(np.abs(x - np.round(x)) < MATRIX_ROUNDING, np.round(x), x) + 0.0
    return exact


def _direction(x: np.ndarray) -> np.ndarray:
    x = snapped(x)
    return np.asarray(x / np.linalg.norm(x))


def _always(
    turning: _Turning,
    assembly: Assembly,
    hangs: Sequence[bool],
    home: np.ndarray,
    expected: tuple[np.ndarray, np.ndarray],
) -> bool:
    """Return whether directions are the same at other values of parameters that matter."""
    generator = np.random.default_rng(2)
    for _ in range(DRAWS):
        draw, defaults = generator.uniform(-1.0, 1.0, len(hangs)), assembly.parameters
        other_value = np.where(defaults == 0.0, FROM_ZERO * draw, defaults * (1.0 + CHANGE * draw))
        parameters = np.where(hangs, other_value, defaults)
        other = replace(assembly, parameters=parameters)
        q, error = other.close(home)
        if not other.is_exact(error):
            return False
        samples = other.samples(q, 2)
        found = turning.directions([*samples, q], parameters)
        if found is None or np.abs(np.array(found) - expected).max() > ROUNDING:
            return False
    return True


def level_tree(tree: Tree, bases: Sequence[LevelBase]) -> Tree:
    """The tree with the rotations of some bases as turns about one direction."""
    links, N = list(tree.links), SX(tree.N)
    for base in bases:
        link = links[base.link]
        q = tree.q[base.first : base.first + 7]
        constant = link.rotation_at_rest.turns
        rotation = Rotation.of(*constant, *base.joint.turns(q))
        links[base.link] = replace(link, joint=base.joint, rotation=rotation)
        at, speeds = base.first, link.speeds
        N[at : at + 7, speeds.start : speeds.stop] = base.joint.rate_matrix(q)
    return replace(tree, links=tuple(links), N=N, _poses={})


def tilts(tree: Tree, bases: Sequence[LevelBase]) -> Iterator[tuple[str, SX]]:
    """Residuals by name: how far bases tilt [rad], zero next to home.

    Args:
        tree: The tree, its bases floating.
        bases: Those that contacts keep from tilting.
    """
    for base in bases:
        R = quaternion_matrix(*ca.vertsplit(tree.q[base.first : base.first + 4]))
        x, y, z = ca.vertsplit(align(SX(base.joint.normal.tolist())).T @ R @ base.joint.in_child)
        tilt = turned_by(ca.vertcat(x, y), z)
        yield f"{base.name}.tilt.x", tilt[0]
        yield f"{base.name}.tilt.y", tilt[1]
