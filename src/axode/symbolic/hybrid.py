r"""Hybrid dynamics: some accelerations known, some forces known, one linear solve (D)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.topology import speed_of
from axode.symbolic.linear import Block
from axode.symbolic.spatial import SX

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


def hybrid_dynamics(
    equations: Equations, accelerations: Sequence[str], inputs: Sequence[str]
) -> tuple[SX, SX]:
    r"""All accelerations and inputs from the known ones.

    .. math:: \begin{bmatrix} I_x & -G_y \end{bmatrix}
              \begin{bmatrix} \dot\nu_x \\ u_y \end{bmatrix}
              = \gamma + \delta - C \nu + G_k u_k - I_k \dot\nu_k                 \tag{D11}
    """
    mechanism = equations.system.mechanism
    speeds = [speed_of(mechanism, name) or name for name in accelerations]
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
    matrix = ca.horzcat(equations.I[:, x], ca.densify(-G[:, y]))
    solved = Block.of(matrix).solve(rest)  # (D11)
    nu_dot, u = SX(equations.nu_dot), SX(equations.u)
    for k, i in enumerate(x):
        nu_dot[i] = solved[k]
    for k, i in enumerate(y):
        u[i] = solved[len(x) + k]
    return nu_dot, u


def _positions(
    equations: Equations, kind: str, names: Sequence[str], known: Sequence[str]
) -> list[int]:
    for name in names:
        if name not in known:
            raise UnknownName(f"model '{equations.name}'", kind, name, known)
    return [list(known).index(name) for name in dict.fromkeys(names)]
