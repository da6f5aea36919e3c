r"""Quasi-velocities among the speeds: each with the row that defines it (N).

.. math:: w = W(q)\, v, \qquad \begin{bmatrix} A & 0 \\ -W & 1 \end{bmatrix}
          \begin{bmatrix} v \\ w \end{bmatrix} = \begin{bmatrix} b \\ 0 \end{bmatrix}   \tag{N11}

No body carries w, and no force works on it: multipliers of these rows vanish. As speeds like any
others they may be independent, and the complement of the extended rows is :math:`[\Theta W'^{-1};
1]`, so that every formulation, derivative and choice of speeds serves them as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from axode.errors import InvalidIndependent
from axode.mechanism.quasi_velocities import NamedState, QuasiVelocity
from axode.numerics.tolerances import MATRIX_ROUNDING, ROUNDING
from axode.symbolic.algebra.formula_symbols import SYMBOLIC, trace
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.redundant_rows import RankReport, Units, null_basis
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import DEFINITION, Row


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
