"""Tables of derivatives as functions of a model, and their names.

Names of tables of derivatives: of which function, by which arguments, with which rows.

A table has the value of a function in its first column and the derivatives by one argument after
the other beside it. `forward_dynamics_derivatives` is by all arguments,
`forward_dynamics_derivatives_by_q_nu` by some, and `forward_dynamics_multipliers_derivatives` has
the constraint forces below the accelerations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from axode.errors import InvalidArgument, UnknownName

if TYPE_CHECKING:  # models from files read names without CasADi
    from axode.symbolic.algebra.spatial import SX
    from axode.symbolic.equations import Equations
    from axode.symbolic.functions import FunctionGraph

ENDING, SOME, FORCES = "_derivatives", "_by_", "_multipliers"

# Arguments by which each function is differentiated, in the order of the columns.
DIFFERENTIATED: dict[str, tuple[str, ...]] = {
    "forward_dynamics": ("q", "nu", "u", "p", "t"),
    "inverse_dynamics": ("q", "nu", "nu_dot", "u", "p", "t"),
}
ROWS = {"forward_dynamics": "nu", "inverse_dynamics": "u"}


@dataclass(frozen=True)
class TableName:
    """What a table of derivatives holds.

    Attributes:
        function: "forward_dynamics" or "inverse_dynamics".
        by: Arguments; None for all that the mechanism has.
        multipliers: Whether constraint forces follow below.
    """

    function: str
    by: tuple[str, ...] | None = None
    multipliers: bool = False

    @classmethod
    def read(cls, name: str) -> TableName | None:
        """What a function of this name holds; None if it is no table of derivatives."""
        head, ending, tail = name.partition(ENDING)
        if not ending or (tail and not tail.startswith(SOME)):
            return None
        by = None
        if tail:
            words = tail.removeprefix(SOME).replace("nu_dot", "nu-dot").split("_")
            by = tuple(word.replace("-", "_") for word in words)
        return cls(head.removesuffix(FORCES), by, head.endswith(FORCES))

    @property
    def text(self) -> str:
        """The name."""
        some = "" if self.by is None else SOME + "_".join(self.by)
        return self.function + FORCES * self.multipliers + ENDING + some

    def columns(self, sizes: Mapping[str, int]) -> dict[str, slice]:
        """Columns of every argument; the value is in column 0.

        Args:
            sizes: Number of derivatives by each argument.

        Raises:
            UnknownName: for a function that has no table, or an argument that it does not have.
            InvalidArgument: for constraint forces of a function that does not give them.
        """
        if self.function not in DIFFERENTIATED:
            raise UnknownName("derivatives", "function", self.function, DIFFERENTIATED)
        if self.multipliers and self.function != "forward_dynamics":
            raise InvalidArgument(
                f"{self.function} has no derivatives of multipliers; those of forward_dynamics do"
            )
        known = [name for name in DIFFERENTIATED[self.function] if name in sizes]
        chosen: Sequence[str] = known if self.by is None else self.by
        for name in chosen:
            if name not in known:
                raise UnknownName(f"function '{self.function}'", "argument", name, known)
        places, first = {}, 1
        for name in chosen:
            places[name] = slice(first, first + sizes[name])
            first += sizes[name]
        return places

    def shape(self, sizes: Mapping[str, int], rows: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of the table."""
        columns = self.columns(sizes)
        count = rows[ROWS[self.function]] + (rows["rows"] if self.multipliers else 0)
        return count, max((place.stop for place in columns.values()), default=1)


def derivative_sizes(
    function: str,
    tangents: int,
    independent: int,
    inputs: int,
    motors: int,
    parameters: int,
    driven: bool,
) -> dict[str, int]:
    """Number of derivatives by each argument that a function of some mechanism has.

    Args:
        function: Name of the function.
        tangents, independent, inputs: How many of these there are.
        motors: Inputs that are motors; inverse dynamics does not depend on them.
        parameters: Parameters that are free.
        driven: Whether time prescribes anything.
    """
    sizes = {"q": tangents, "nu": independent}
    if function == "inverse_dynamics":
        sizes["nu_dot"] = independent
    if function == "forward_dynamics" or inputs > motors:
        sizes["u"] = inputs
    if parameters:
        sizes["p"] = parameters
    if driven:
        sizes["t"] = 1
    return sizes


def derivative_graph(equations: Equations, name: TableName, *, fixed: bool) -> FunctionGraph:
    """Table of the value and the derivatives of a function.

    Raises:
        UnknownName: for an unknown function or argument.
    """
    from axode.derivatives.inverse_derivatives import InverseDerivatives
    from axode.symbolic.functions import make_graph

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
    from axode.derivatives.lifted_derivatives import ForwardDerivatives

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
    import casadi as ca

    from axode.derivatives.step_adjoints import RateAdjoint
    from axode.symbolic.algebra.spatial import SX

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
    import casadi as ca

    e = equations
    given = [e.q, e.nu, e.u, e.t, e.p]

    def count(x: SX) -> int:
        return int(ca.Function("count", given, [ca.cse(x)]).n_instructions())

    return min(expressions, key=count)
