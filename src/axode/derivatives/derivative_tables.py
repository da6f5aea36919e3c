"""Tables of derivatives as functions of a model."""

from __future__ import annotations

from axode.derivatives.derivative_names import TableName, derivative_sizes
from axode.derivatives.inverse_derivatives import InverseDerivatives
from axode.derivatives.lifted_derivatives import ForwardDerivatives
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
        table = ForwardDerivatives(equations).table(by, name.multipliers)
        arguments: tuple[str, ...] = ("q", "nu", "u")
    else:
        if equations.actuation == "underactuated":
            equations.require_inertia()
        table = InverseDerivatives(equations).table(by)
        arguments = ("q", "nu", "nu_dot", "u", "weights")
    shape = name.shape(sizes, rows)
    return make_graph(equations, name.text, arguments, table, shape, fixed)
