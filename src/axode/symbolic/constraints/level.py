r"""Bases that contacts keep from tilting: described as floating, written as what they can do (K).

Three wheels on a plane leave a floating base three motions in it. Where the rows on positions leave
every base twist, at all closed configurations that were tried, an angular velocity along one
direction n of the parent, the rotation is a turn about n alone, (K7): on the configurations that
are closed next to home every expression of it is another one with many zeros, equal and shorter.
Coordinates, speeds, rows, forces and their names stay.

Residuals keep the floating base, and two more follow from the others: the tilt, which separates the
configurations next to home from others, such as upside down.

Quasi-velocities among the speeds: each with the row that defines it (N).

.. math:: w = W(q)\, v, \qquad \begin{bmatrix} A & 0 \\ -W & 1 \end{bmatrix}
          \begin{bmatrix} v \\ w \end{bmatrix} = \begin{bmatrix} b \\ 0 \end{bmatrix}   \tag{N11}

No body carries w, and no force works on it: multipliers of these rows vanish. As speeds like any
others they may be independent, and the complement of the extended rows is :math:`[\Theta W'^{-1};
1]`, so that every formulation, derivative and choice of speeds serves them as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from axode.errors import InvalidIndependent
from axode.mechanism.quasi_velocities import NamedState, QuasiVelocity
from axode.mechanism.topology import tree_order
from axode.numerics.rank import null_space, singular_vectors
from axode.numerics.tolerances import MATRIX_ROUNDING, RANK, ROUNDING
from axode.symbolic.algebra.formula_symbols import SYMBOLIC, trace
from axode.symbolic.algebra.spatial import SX, Rotation, align, quaternion_matrix, turned_by
from axode.symbolic.constraints.assembly import Assembly
from axode.symbolic.constraints.redundant_rows import RankReport, Units, null_basis
from axode.symbolic.joints.floating import SymbolicLevel
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import DEFINITION, Row, column_of, matrix_of

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


# quasi-velocities ---------------------------------------------------------------------------------


def with_quasi_velocities(
    tree: Tree,
    rows: Sequence[Row],
    report: RankReport,
    samples: Sequence[np.ndarray],
    home: np.ndarray,
    defaults: np.ndarray,
) -> tuple[Tree, list[Row], RankReport]:
    """Add the quasi-velocities of a mechanism to its speeds, and their rows to those kept.  (N11)

    Raises:
        InvalidIndependent: for what is not linear in the speeds, or depends on time.
    """
    quasi = tree.mechanism.quasi_velocities
    joints = tree.v.shape[0]
    expressions = [_expression(tree, one) for one in quasi]
    W = ca.vertcat(*[_weights(tree, *pair) for pair in zip(quasi, expressions, strict=True)])
    _check_rest(tree, quasi, expressions, samples, defaults)
    units = [one.unit or _unit_of_terms(tree, W[k, :]) for k, one in enumerate(quasi)]
    quasi = [replace(one, unit=unit) for one, unit in zip(quasi, units, strict=True)]
    mechanism = tree.mechanism.copy()
    mechanism.quasi_velocities = quasi
    added = [SX.sym(one.name) for one in quasi]
    wider = replace(
        tree,
        mechanism=mechanism,
        v=ca.vertcat(tree.v, *added),
        speed_names=(*tree.speed_names, *(one.name for one in quasi)),
        N=ca.horzcat(tree.N, SX.zeros(tree.N.shape[0], len(quasi))),
    )
    defined = [_row(tree, one, W[k, :], joints + k) for k, one in enumerate(quasi)]
    function = ca.Function("W", [tree.q, tree.parameters], [ca.densify(W)])
    numbers = [np.array(ca.DM(function(q, defaults)).full()) for q in (*samples, home)]
    return wider, [*rows, *defined], wider_report(report, numbers, units, len(rows))


def _expression(tree: Tree, quasi: QuasiVelocity) -> SX:
    """A quasi-velocity in the symbols of the tree."""
    names = (*tree.coordinate_names, *tree.speed_names)
    values = dict(zip(names, ca.vertsplit(ca.vertcat(tree.q, tree.v)), strict=True))
    state = NamedState(tree.mechanism, {**tree.values, **values}, SYMBOLIC)
    return SX(trace(f"independent speed '{quasi.name}'", quasi.value, state))  # type: ignore[arg-type]


def _weights(tree: Tree, quasi: QuasiVelocity, expression: SX) -> SX:
    """Its row of W."""
    if ca.depends_on(expression, tree.t):
        raise InvalidIndependent(
            f"'{quasi}' cannot be an independent speed: it depends on time; a combination of "
            "speeds may depend on coordinates and parameters alone."
        )
    weights = ca.jacobian(expression, tree.v)
    if ca.depends_on(weights, tree.v):
        raise InvalidIndependent(
            f"'{quasi}' cannot be an independent speed: it is not linear in the speeds "
            f"{', '.join(tree.speed_names)}."
        )
    if weights.nnz() == 0:
        raise InvalidIndependent(
            f"'{quasi}' cannot be an independent speed: none of the speeds occurs in it.\n"
            f"  Speeds: {', '.join(tree.speed_names)}"
        )
    return weights


def _check_rest(
    tree: Tree,
    quasi: Sequence[QuasiVelocity],
    expressions: Sequence[SX],
    samples: Sequence[np.ndarray],
    defaults: np.ndarray,
) -> None:
    """Require that all vanish where the speeds do."""
    arguments = [tree.q, tree.v, tree.parameters]
    function = ca.Function("w", arguments, [ca.vertcat(*expressions)])
    still = np.zeros(tree.v.shape[0])
    for q in samples:
        rest = np.abs(np.array(function(q, still, defaults))).ravel()
        moving = np.abs(np.array(function(q, still + 1.0, defaults))).ravel()
        for one, off in zip(quasi, rest > ROUNDING * (1.0 + moving), strict=True):
            if off:
                raise InvalidIndependent(
                    f"'{one}' cannot be an independent speed: it is not zero where all speeds are."
                )


def _unit_of_terms(tree: Tree, weights: SX) -> str:
    """Unit of speeds that are only added and subtracted; none where they are weighed."""
    from axode.mechanism.topology import speed_units

    units = [*speed_units(tree.mechanism).values()][: tree.v.shape[0]]
    used = {units[j] for j in range(weights.shape[1]) if weights.has_nz(0, j)}
    plain = weights.is_constant() and set(np.abs(np.array(ca.DM(weights))).ravel()) <= {0.0, 1.0}
    return used.pop() if plain and len(used) == 1 else ""


def _row(tree: Tree, quasi: QuasiVelocity, weights: SX, own: int) -> Row:
    entries = {j: -weights[0, j] for j in range(weights.shape[1]) if weights.has_nz(0, j)}
    moving = not weights.is_constant()
    bias = -ca.jtimes(weights @ tree.v, tree.q, tree.q_dot) if moving else SX(0)
    unit = quasi.unit.removesuffix("/s")
    name = f"{quasi.name}.{DEFINITION}"
    return Row(name, quasi.name, DEFINITION, unit, entries | {own: SX(1)}, bias)


def wider_report(
    report: RankReport, W: Sequence[np.ndarray], units: Sequence[str], count: int
) -> RankReport:
    """Return the report with these rows among the kept ones: what was decided stays.

    Args:
        report: What was decided on the speeds of the joints.
        W: Their weights at every sample, and at home.
        units: Units of the quasi-velocities.
        count: How many rows there were.
    """
    added = len(units)
    *there, at_home = W
    mobility = report.null_bases[0].shape[1]
    bases = [null_basis(A, mobility, report.weakest) for A in report.matrices]
    wider = [
        np.linalg.qr(np.vstack([Z, w @ Z]))[0]
        for Z, w in zip(bases, there, strict=True)
        if Z is not None
    ]
    own = report.units
    if own is not None:
        length = float(own.speeds.min())
        speeds = np.array([length if unit == "m/s" else 1.0 for unit in units])
        own = Units(np.append(own.rows, 1 / speeds), np.append(own.speeds, speeds))
    sizes = report.sizes
    if sizes is not None:
        ones = np.ones(added)
        near = zip(sizes.nearby, there, strict=False)  # none without loops
        sizes = replace(
            sizes,
            terms=np.append(sizes.terms, ones),
            rounding=np.append(sizes.rounding, MATRIX_ROUNDING * ones),
            nearby=tuple(tuple(_extended(A, w) for A in each) for each, w in near),
        )
    return replace(
        report,
        kept=(*report.kept, *range(count, count + added)),
        null_bases=tuple(wider),
        matrices=tuple(map(_extended, report.matrices, there)),
        all_matrices=tuple(map(_extended, report.all_matrices, there)),
        home_matrix=tuple(_extended(A, at_home) for A in report.home_matrix),
        rests=(*report.rests, *(1.0 for _ in units)),
        units=own,
        sizes=sizes,
    )


def _extended(A: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Rows on the joints' speeds, then those that define others."""
    right = np.vstack([np.zeros((len(A), len(W))), np.eye(len(W))])
    return np.hstack([np.vstack([A, -W]), right])
