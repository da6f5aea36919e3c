r"""Hybrid dynamics: some accelerations known, some forces known, one linear solve (D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.topology import speed_meanings
from axode.symbolic.algebra.linear import Block, Factor
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.analysis.actuation import direct_rows

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


def hybrid_dynamics(
    equations: Equations, accelerations: Sequence[str], inputs: Sequence[str]
) -> tuple[SX, SX]:
    r"""All accelerations and inputs from the known ones.

    .. math:: \begin{bmatrix} I_x & -G_y \end{bmatrix}
              \begin{bmatrix} \dot\nu_x \\ u_y \end{bmatrix}
              = \gamma + \delta - C \nu + G_k u_k - I_k \dot\nu_k                 \tag{D11}

    A row that an unknown input has for itself gives that input once the rest is solved.
    """
    mechanism = equations.system.mechanism
    meanings = speed_meanings(mechanism)
    speeds = [meanings.get(name, name) for name in accelerations]
    known = _positions(equations, "independent speed", speeds, equations.independent)
    given = _positions(equations, "input", inputs, equations.inputs)
    x = [i for i in range(len(equations.independent)) if i not in known]
    y = [i for i in range(len(equations.inputs)) if i not in given]
    if len(y) != len(known):
        free = ", ".join(equations.inputs[i] for i in y) or "none"
        raise InvalidArgument(
            f"hybrid dynamics: {len(known)} known accelerations need {len(known)} unknown inputs, "
            f"got {len(y)} ({free}); name the other inputs as known (zero if they are idle)"
        )
    G = ca.jacobian(equations.tau, equations.u)
    rest = equations.gamma + equations.delta - equations.bias
    rest += ca.densify(G[:, given] @ equations.u[given]) if given else SX(0)
    rest -= equations.I[:, known] @ equations.nu_dot[known] if known else SX(0)
    nu_dot, u = SX(equations.nu_dot), SX(equations.u)
    own = {y[k]: row for k, row in direct_rows(G[:, y]).items()}  # inputs with a row of their own
    rows = [i for i in range(len(equations.independent)) if i not in own.values()]
    shared = [k for k in y if k not in own]
    solved = _solve_rows(equations.I, ca.densify(-G[:, shared]), rows, x, rest)
    for k, i in enumerate(x):
        nu_dot[i] = solved[k]
    for k, i in enumerate(shared):
        u[i] = solved[len(x) + k]
    for k, row in own.items():
        force = -rest[row]
        for i in x:
            force += equations.I[row, i] * nu_dot[i]
        for i in shared:
            force -= G[row, i] * u[i]
        u[k] = force / G[row, k]
    return nu_dot, u


def _solve_rows(inertia: SX, others: SX, rows: list[int], x: list[int], rest: SX) -> SX:
    """Unknown accelerations and inputs from some of the rows of (D11)."""
    if rows == x:  # symmetric and positive definite: no inputs are among them
        return Factor.of(inertia[x, x]).solve(rest[x]) if x else SX.zeros(0)
    return Block.of(ca.horzcat(inertia[rows, x], others[rows, :])).solve(rest[rows])


def _positions(
    equations: Equations, kind: str, names: Sequence[str], known: Sequence[str]
) -> list[int]:
    for name in names:
        if name not in known:
            raise UnknownName(f"model '{equations.name}'", kind, name, known)
    return [list(known).index(name) for name in dict.fromkeys(names)]
