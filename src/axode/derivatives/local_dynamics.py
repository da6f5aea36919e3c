r"""Forward dynamics at a state with its derivatives by coordinates and speeds, as numbers (X).

The derivatives along the tangents, :math:`\partial\dot\nu/\partial\xi`, are those by coordinates
that the constraints on positions let change, :math:`\delta q = T \xi`:

.. math:: \frac{\partial\dot\nu}{\partial q} = \frac{\partial\dot\nu}{\partial\xi}\, T^+.   \tag{X9}
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.derivatives.derivative_names import TableName
from axode.derivatives.derivative_tables import derivative_graph
from axode.numerics.rank import pseudo_inverse
from axode.symbolic.algebra.numeric import NumericFunction
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]

_MADE: WeakKeyDictionary[Equations, dict[bool, LocalDynamics]] = WeakKeyDictionary()


@dataclass(frozen=True)
class LocalValues:
    """Accelerations and constraint forces at one state, and how they change.

    `by_z` means by q and nu, one after the other; right only along changes that keep loops closed
    and wheels on the ground. Constraint forces are empty unless asked for.
    """

    nu_dot: Array
    by_z: Array
    by_u: Array
    forces: Array
    forces_by_z: Array
    forces_by_u: Array
    tangents: Array  # T


class LocalDynamics:
    """Forward dynamics of some equations, evaluated at one state after the other."""

    def __init__(self, e: Equations, forces: bool) -> None:
        self._sizes = [1, len(e.system.tangents.asked), len(e.independent), len(e.inputs)]
        self._n = len(e.independent)
        name = TableName("forward_dynamics", ("q", "nu", "u"), forces)
        graph = derivative_graph(e, name, fixed=False)
        symbols = {"q": e.q, "nu": e.nu, "u": e.u, "t": e.t, "p": e.p}
        flat = graph.function(*[symbols[argument] for argument in graph.arguments])
        table = ca.reshape(flat, *graph.shape[::-1]).T
        made = {"table": table, "tangents": e.system.tree.N @ e.system.tangents.Theta}
        self._function = NumericFunction("local", list(symbols.values()), made)

    def at(self, q: Array, nu: Array, u: Array, t: float, p: Array) -> LocalValues:
        """Evaluate everything at one state."""
        table, T = self._function(q, nu, u, t, p).values()
        value, by_q, by_nu, by_u = np.split(table, np.cumsum(self._sizes)[:-1], axis=1)
        by_coordinates = np.full((len(table), q.size), np.nan)
        if np.isfinite(T).all():
            by_coordinates = by_q @ pseudo_inverse(T)  # (X9)
        by_z = np.hstack([by_coordinates, by_nu])
        n = self._n
        return LocalValues(value[:n, 0], by_z[:n], by_u[:n], value[n:, 0], by_z[n:], by_u[n:], T)


def local_dynamics(e: Equations, *, forces: bool = False) -> LocalDynamics:
    """Forward dynamics of some equations, made once."""
    made = _MADE.setdefault(e, {})
    if forces not in made:
        made[forces] = LocalDynamics(e, forces)
    return made[forces]
