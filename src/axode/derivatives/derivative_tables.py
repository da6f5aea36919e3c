"""Tables of derivatives as functions of a model."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from axode.derivatives.derivative_names import TableName, derivative_sizes
from axode.derivatives.inverse_derivatives import InverseDerivatives
from axode.derivatives.lifted_derivatives import ForwardDerivatives
from axode.derivatives.step_adjoints import RateAdjoint
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.equations import Equations
from axode.symbolic.functions import FunctionGraph, make_graph


def derivative_graph(equations: Equations, name: TableName, *, fixed: bool) -> FunctionGraph:
    """Table of the value and the derivatives of a function.

    Raises:
        UnknownName: for an unknown function or argument.
    """
    tangents, inputs = len(equations.system.tangents.asked), len(equations.inputs)
    n, motors = len(equations.independent), equations.system.forces.motors
    free = 0 if fixed else len(equations.parameters)
    driven = equations.system.rheonomic
    sizes = derivative_sizes(name.function, tangents, n, inputs, motors, free, driven)
    by = tuple(name.columns(sizes))
    rows = {"nu": n, "u": inputs, "rows": len(equations.rows)}
    if name.function == "forward_dynamics":
        equations.require_inertia()
        table = _forward_table(equations, by, name.multipliers)
        arguments: tuple[str, ...] = ("q", "nu", "u")
    else:
        if equations.actuation == "underactuated":
            equations.require_inertia()
        table = InverseDerivatives(equations).table(by)
        arguments = ("q", "nu", "nu_dot", "u", "weights")
    shape = name.shape(sizes, rows)
    return make_graph(equations, name.text, arguments, table, shape, fixed)


def _forward_table(equations: Equations, by: Sequence[str], multipliers: bool) -> SX:
    """Choose the shorter of two ways; of a long chain with few freedoms only one is tried."""
    lifted = ForwardDerivatives(equations)
    system = equations.system
    rolling = all(row.residual is None for row in system.kept) and not system.definitions
    if multipliers or not rolling or not system.complement.anchors:
        return lifted.table(by, multipliers)
    by_adjoints = table_by_adjoints(equations, by)
    if len(equations.independent) ** 2 <= len(equations.speeds):
        return by_adjoints
    return shorter(equations, lifted.table(by, multipliers), by_adjoints)


def table_by_adjoints(equations: Equations, by: Sequence[str]) -> SX:
    """Accelerations and their derivatives, one gradient per acceleration: few rows, many columns.

    Args:
        equations: Equations of a mechanism without rows on coordinates, which would close again.
        by: Arguments, of "q", "nu", "u", "p" and "t", in the order of the columns.
    """
    e, system = equations, equations.system
    symbols = {"q": e.q, "nu": e.nu, "u": e.u, "p": e.p, "t": e.t}
    adjoint, value = RateAdjoint(e), e.forward_dynamics
    made = adjoint.gradient(SX.zeros(e.q.shape), value, [symbols[name] for name in by])
    rows = []
    for k in range(len(e.independent)):
        weights = SX.zeros(value.shape)
        weights[k] = 1
        rows.append(ca.substitute(made, system.nu_dot, weights).T)
    ends = [0]
    for name in by:
        ends.append(ends[-1] + symbols[name].shape[0])
    parts = ca.horzsplit(ca.vertcat(SX(0, ends[-1]), *rows), ends)
    along = ca.sparsify(system.tree.N) @ ca.sparsify(system.tangents.Theta)
    found = [part @ along if name == "q" else part for name, part in zip(by, parts, strict=True)]
    return ca.densify(ca.horzcat(value, *found))


def shorter(equations: Equations, *expressions: SX) -> SX:
    """Return the expression with the fewest operations."""
    e = equations
    given = [e.q, e.nu, e.u, e.t, e.p]

    def count(x: SX) -> int:
        return int(ca.Function("count", given, [ca.cse(x)]).n_instructions())

    return min(expressions, key=count)
