r"""Gradients of weighted coordinates after a step back onto the constraints (X)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.equations import Equations
from axode.symbolic.functions import FunctionGraph, closing_step, normalized


def projection_adjoint(equations: Equations, fixed: bool) -> FunctionGraph:
    r"""Function of the arguments of the projection, of its result and of weights of that.

    The multipliers y of (N5) solve :math:`K y = r`. With :math:`K z = -A N^T w`, the gradient of
    :math:`w^T q'` is that of

    .. math:: S = w^T (q - N A^T y) + z^T (r - K y)                                \tag{X13}

    at fixed w, y and z: K is not differentiated through its factors. Weights of quaternions are
    taken back through their division by their length first.
    """
    system, tree = equations.system, equations.system.tree
    arguments = {"q": tree.q}
    if system.rheonomic:
        arguments["t"] = tree.t
    if equations.parameters and not fixed:
        arguments["p"] = tree.parameters
    weight, result = SX.sym("w", tree.q.shape[0]), SX.sym("result", tree.q.shape[0])
    moved = SX.sym("moved", tree.q.shape[0])  # before quaternions are divided by their length
    back = ca.gradient(ca.dot(weight, normalized(system, moved)), moved)
    by = ca.vertcat(*arguments.values())
    step = closing_step(system)
    if step is None:
        made, q = ca.vertcat(back, SX.zeros(by.shape[0] - back.shape[0])), tree.q
    else:
        w, y, z = (SX.sym(n, s) for n, s in (("w", weight.shape[0]), ("y", step.n), ("z", step.n)))
        turned = ca.densify(tree.N.T @ w)
        S = ca.dot(w, tree.q) + ca.dot(z, step.r)
        S -= ca.dot(turned, step.A.T @ y) + step.product(z, y)
        made = ca.gradient(S, by)
        made = ca.substitute(made, z, -step.factor.solve(step.A @ turned))
        solved = step.factor.solve(step.r)
        made = ca.substitute(ca.substitute(made, y, solved), w, back)
        q = tree.q - tree.N @ (step.A.T @ solved)
    made = ca.substitute(made, moved, q)
    if fixed and equations.p.shape[0]:
        made = ca.substitute(made, tree.parameters, ca.DM(system.defaults))
    arguments |= {"projection": result, "weight": weight}
    name = "projection_adjoint"
    function = ca.Function(name, [*arguments.values()], [made], [*arguments], [name])
    sizes = tuple(int(np.prod(x.shape)) for x in arguments.values())
    return FunctionGraph(name, tuple(arguments), sizes, (made.shape[0],), function)
