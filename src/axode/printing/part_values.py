"""Objects of the theory as numbers at a state, with the names of their rows and columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.printing.parts import PARTS, Names, part_of

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PartValues:
    """A matrix at a state.

    Attributes:
        name, what: The object of the theory, and what it is in words.
        rows, columns: Names; a vector has one column, `value`.
        values: The numbers, (rows, columns).
    """

    name: str
    what: str
    rows: Names
    columns: Names
    values: Array


def part_values(
    equations: Equations, parts: Iterable[str], q: Array, nu: Array, u: Array
) -> list[PartValues]:
    """Evaluate objects of the theory at a state.

    Args:
        equations: What was derived.
        parts: Names of the objects, as `PARTS` lists them.
        q, nu, u: State and inputs.

    Raises:
        UnknownName: for a part that does not exist, listing those that do.
        NotApplicable: for parts of platforms on legs where there are none.
    """
    e = equations
    named = {name: part_of(name, PARTS) for name in parts}
    reduced = [ca.densify(e.system.at_speeds(part.matrix(e))) for part in named.values()]
    nu_dot = np.zeros(len(e.independent))
    if any(ca.which_depends(ca.vertcat(*map(ca.vec, reduced)), e.nu_dot)):
        state = [e.q, e.nu, e.u, e.t, e.p]
        moving = ca.Function("nu_dot", state, [e.forward_dynamics])
        nu_dot = np.array(moving(q, nu, u, 0.0, e.system.defaults)).ravel()
    function = ca.Function("parts", [e.q, e.nu, e.nu_dot, e.u, e.t, e.p], reduced)
    found = function.call([q, nu, nu_dot, u, 0.0, e.system.defaults])
    made = []
    for (name, part), value in zip(named.items(), found, strict=True):
        rows, columns = part.rows(e), part.columns(e)
        numbers = np.array(value).reshape(len(rows), len(columns))
        made.append(PartValues(name, part.what, rows, columns, numbers))
    return made
