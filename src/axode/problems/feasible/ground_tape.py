r"""Forces of the ground on the wheels as a tape, so that compiled steps compute them.

The balance is that of `loads`, A' lambda = need, with the vehicle's bases set free in space. Its
equations for the independent speeds hold by themselves, since the motion obeys the equations of
motion. Of all lambda that satisfy the others, D, the shortest is

.. math:: \lambda = A_D (A_D^T A_D)^{-1} n_D,

which is that of equally stiff wheels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import NotApplicable
from axode.model.function_source import shaped_tape
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import column_space, null_space, rank, weakest_rows
from axode.numerics.tolerances import RANK, UNBALANCED
from axode.problems.feasible.loads import FreeVehicle

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GroundTape:
    """Forces of the ground on the wheels at a state.

    Attributes:
        tape: t, q, nu, u (p) to the longitudinal, lateral and normal force of every wheel, then, if
            loads can be shared in other ways, a change of all loads that keeps the balance.
        contacts: How many wheels there are.
        shares: In how many independent ways loads could be shared otherwise.
    """

    tape: Tape
    contacts: int
    shares: int


_TAPES: WeakKeyDictionary[Model, GroundTape] = WeakKeyDictionary()


def ground_tape(model: Model) -> GroundTape:
    """Return the tape of the forces of the ground on the wheels of a model, made once.

    Raises:
        NotApplicable: for a mechanism without wheels, for one that its wheels cannot hold, and for
            a model read from a file.
    """
    if model not in _TAPES:
        _TAPES[model] = _build(model)
    return _TAPES[model]


def _build(model: Model) -> GroundTape:
    import casadi as ca

    from axode.symbolic.algebra.linear import Factor

    free = FreeVehicle(model)
    e = model.equations
    need, A = _at_state(model, free)
    dependent = [k for k, name in enumerate(free.speed_names) if name not in e.independent]
    A_D = A[:, dependent]
    at_home = _at_home(model, A_D)
    _require_support(model, free, dependent, at_home)
    touches = [free.rows.index(f"{name}.touch") for name in model.contacts]
    gram = Factor.of(A_D.T @ A_D)
    lam = A_D @ gram.solve(need[dependent])
    values = [_forces(model, free, lam)]
    z = null_space(at_home.T, RANK)
    shares = column_space(z[touches], UNBALANCED).shape[1]
    if shares:
        turned = int(np.argmax(np.linalg.norm(z[touches], axis=1)))
        row = touches[turned]
        unit = ca.SX.zeros(len(free.rows))
        unit[row] = 1
        values.append((unit - A_D @ gram.solve(A_D[row, :].T))[touches])
    return GroundTape(_tape(model, ca.vertcat(*values)), len(model.contacts), shares)


def _at_state(model: Model, free: FreeVehicle) -> tuple[Any, Any]:
    """Joint forces that the motion needs, and all rows, in the symbols of the model."""
    import casadi as ca

    e, SX = model.equations, ca.SX
    q = dict(zip(e.coordinates, ca.vertsplit(e.q), strict=True))
    for joint, yaw in free.freed.items():
        q |= {f"{joint}.qw": ca.cos(q[yaw] / 2), f"{joint}.qz": ca.sin(q[yaw] / 2)}
    v = dict(zip(e.speeds, ca.vertsplit(e.v), strict=True))
    a = ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)
    v_dot = dict(zip(e.speeds, ca.vertsplit(a), strict=True))
    u = dict(zip(e.inputs, ca.vertsplit(e.u), strict=True)) if e.inputs else {}
    known = {
        "q": [q.get(name, SX(0)) for name in free.coordinates],
        "v": [v.get(name, SX(0)) for name in free.speed_names],
        "a": [v_dot.get(name, SX(0)) for name in free.speed_names],
        "u": [u[name] for name in free.inputs],
        "t": [e.t],
        "p": [e.p[k] for k in free.parameters],
    }
    balance = ca.Function("balance", list(free.symbols.values()), [free.need, free.matrix])
    need, A = balance(*(ca.vertcat(SX(0, 1), *known[name]) for name in free.symbols))
    return need, A


def _at_home(model: Model, A: Any) -> Array:
    import casadi as ca

    e = model.equations
    function = ca.Function("rows", [e.t, e.q, e.p], [A])
    return np.array(ca.DM(function(0.0, model.home, e.system.defaults)).full())


def _require_support(model: Model, free: FreeVehicle, dependent: list[int], A: Array) -> None:
    """Check that the rows hold every speed that is not independent."""
    if rank(A, RANK) == len(dependent):
        return
    loose = free.speed_names[dependent[int(np.argmax(np.abs(weakest_rows(A.T))))]]
    raise NotApplicable(
        f"the wheels of '{model.name}' cannot hold it: nothing balances {loose}, and loads on the "
        "wheels are not known. Add wheels, or a joint for this motion"
    )


def _forces(model: Model, free: FreeVehicle, lam: Any) -> Any:
    """Longitudinal, lateral and normal force of every wheel, one after the other."""
    import casadi as ca

    from axode.symbolic.wheels import symbolic_wheel

    e = model.equations
    own = dict(zip(free.rows, ca.vertsplit(lam), strict=True))
    made = []
    for contact in free.mechanism.contacts:
        rows = ("touch", *contact.wheel.rolling_rows)
        wheel = symbolic_wheel(contact.wheel, e.system.tree.values)
        made += wheel.force({row: own[f"{contact.name}.{row}"] for row in rows})
    return ca.vertcat(*made)


def _tape(model: Model, values: Any) -> Tape:
    import casadi as ca

    e = model.equations
    values = ca.densify(values)
    symbols = {"t": e.t, "q": e.q, "nu": e.nu, "u": e.u, "p": e.p}
    if facts_of(model).fixed and e.parameters:
        values = ca.substitute(values, e.p, ca.DM(e.system.defaults))
        del symbols["p"]
    used = {name: symbol for name, symbol in symbols.items() if symbol.shape[0]}
    function = ca.Function("ground", list(used.values()), [values], list(used), ["ground"])
    sizes = {name: symbol.shape[0] for name, symbol in used.items()}
    return shaped_tape(function, sizes, "ground", (values.shape[0],))
