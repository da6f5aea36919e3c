"""Objects of the theory as numbers at a state, with the names of their rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import UnknownName
from axode.symbolic.tree.frames import symbolic_scalar

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
ONE = ("value",)  # the column of a vector
Names = Sequence[str]
Part = tuple[str, Names, Names, Any]  # what it is, names of rows and columns, expression


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
    named = []
    for name in parts:
        if name not in PARTS:
            raise UnknownName("the model", "part", name, PARTS)
        named.append((name, *PARTS[name](e)))
    reduced = [ca.densify(e.system.at_speeds(expression)) for *_, expression in named]
    nu_dot = np.zeros(len(e.independent))
    if any(ca.which_depends(ca.vertcat(*map(ca.vec, reduced)), e.nu_dot)):
        state = [e.q, e.nu, e.u, e.t, e.p]
        moving = ca.Function("nu_dot", state, [e.forward_dynamics])
        nu_dot = np.array(moving(q, nu, u, 0.0, e.system.defaults)).ravel()
    function = ca.Function("parts", [e.q, e.nu, e.nu_dot, e.u, e.t, e.p], reduced)
    found = function.call([q, nu, nu_dot, u, 0.0, e.system.defaults])
    return [
        PartValues(name, what, rows, columns, np.array(value).reshape(len(rows), len(columns)))
        for (name, what, rows, columns, _), value in zip(named, found, strict=True)
    ]


# mechanisms ---------------------------------------------------------------------------------------


def _bodies(e: Equations) -> list[str]:
    """Rows of all twists."""
    return [f"{body.name}.{axis}" for body, axis in product(e.system.mechanism.bodies, TWIST)]


def _rate(e: Equations, matrix: Any) -> Any:
    return e.system.tree.time_derivative(matrix)


def _of_bodies(
    what: str, columns: Callable[[Equations], Names], matrix: Callable[[Equations], Any]
) -> Callable[[Equations], Part]:
    """Rows of all bodies, without those of motors' rotors."""

    def part(e: Equations) -> Part:
        rows = _bodies(e)
        value = matrix(e)[: len(rows), :]
        names = columns(e)
        return what, rows, names, value[:, : len(names)]

    return part


def _poses(e: Equations) -> Part:
    rows = [f"{body}.{axis}" for body, axis in product(e.poses, "xyz")]
    stacked = ca.vertcat(*[ca.horzcat(pose.R, pose.p) for pose in e.poses.values()])
    return "axes and origin of every body's frame", rows, ("ex", "ey", "ez", "origin"), stacked


def _twist_rows(e: Equations) -> Part:
    rows = e.twist_constraints
    return "constraints on the twists of the bodies", rows.rows, _bodies(e), rows.A


def _tree_coriolis(e: Equations) -> Any:
    U_dot = _rate(e, e.U)
    return e.U.T @ (e.M @ U_dot + e.W @ e.M @ e.U)


def _tree_gravity(e: Equations) -> Any:
    tree = e.system.tree
    weights = ca.SX.zeros(e.U.shape[0])
    for k, body in enumerate(e.system.mechanism.bodies):
        mass = symbolic_scalar(body.mass, tree.values)
        weights[6 * k + 3 : 6 * k + 6] = mass * tree.gravity
    return e.U.T @ weights + e.system.forces.elastic


def _on_speeds(what: str, vector: Callable[[Equations], Any]) -> Callable[[Equations], Part]:
    return lambda e: (what, e.independent, ONE, vector(e))


def _on_joints(what: str, vector: Callable[[Equations], Any]) -> Callable[[Equations], Part]:
    return lambda e: (what, e.speeds, ONE, vector(e))


# platforms on legs --------------------------------------------------------------------------------


def _of_legs(
    what: str, columns: Callable[[Equations], Names], matrix: Callable[[Equations, Any], Any]
) -> Callable[[Equations], Part]:
    def part(e: Equations) -> Part:
        legs = e.legs.legs
        names = [f"leg {n}.{k}" for n, k in product(range(1, len(legs) + 1), range(1, 7))]
        return what, names, columns(e), ca.vertcat(*[matrix(e, leg) for leg in legs])

    return part


def _six(_: Equations) -> Names:
    return tuple(str(k) for k in range(1, 7))


def _independent(e: Equations) -> Names:
    return e.independent


def _wrenches(e: Equations) -> Part:
    rows = [f"leg {n}" for n in range(1, len(e.legs.legs) + 1)]
    return "what the legs exert on the platform", rows, TWIST, e.legs.wrenches(e.nu_dot)


PARTS: dict[str, Callable[[Equations], Part]] = {
    "q_dot": lambda e: ("rates of the coordinates", e.coordinates, ONE, e.q_dot),
    "v": _on_joints("joint speeds", lambda e: e.v),
    "v_dot": _on_joints("joint accelerations under the inputs", lambda e: e.accelerations),
    "nu_dot": _on_speeds("independent accelerations", lambda e: e.forward_dynamics),
    "U": _of_bodies("twists for unit joint speeds", lambda e: e.speeds, lambda e: e.U),
    "T": _of_bodies("twists for unit independent speeds", _independent, lambda e: e.T),
    "T_dot": _of_bodies("rate of T", _independent, lambda e: e.twist_map_rate),
    "twists": lambda e: (
        "twists of the bodies",
        tuple(e.twists),
        TWIST,
        ca.vertcat(*[twist.T for twist in e.twists.values()]),
    ),
    "poses": _poses,
    "M": _of_bodies("inertia of all bodies", _bodies, lambda e: e.M),
    "W": _of_bodies("angular velocities of all bodies", _bodies, lambda e: e.W),
    "A": lambda e: ("constraints on joint speeds", e.rows, e.speeds, e.A),
    "A_t": _twist_rows,
    "Theta": lambda e: ("joint for independent speeds", e.speeds, e.independent, e.Theta),
    "Theta_dot": lambda e: ("rate of Theta", e.speeds, e.independent, _rate(e, e.Theta)),
    "I": lambda e: ("generalized inertia", e.independent, e.independent, e.I),
    "C": lambda e: ("Coriolis matrix", e.independent, e.independent, e.C),
    "bias": _on_speeds("C nu", lambda e: e.bias),
    "tau": _on_speeds("generalized force of the inputs", lambda e: e.tau),
    "gamma": _on_speeds("generalized force of gravity and springs", lambda e: e.gamma),
    "delta": _on_speeds("generalized force of dissipation", lambda e: e.delta),
    "I_tree": lambda e: ("U^T M U", e.speeds, e.speeds, e.U.T @ e.M @ e.U),
    "C_tree": lambda e: ("U^T M U_dot + U^T W M U", e.speeds, e.speeds, _tree_coriolis(e)),
    "tau_tree": _on_joints("forces of the inputs on all joints", lambda e: e.system.forces.B @ e.u),
    "gamma_tree": _on_joints("gravity and springs on all joints", _tree_gravity),
    "delta_tree": _on_joints("dissipation on all joints", lambda e: e.system.forces.dissipative),
    "lambda": lambda e: ("constraint forces", e.rows, ONE, e.multipliers),
    "energy": lambda e: ("energy", ("kinetic", "potential"), ONE, e.energy),
    "M_M": lambda e: ("inertia of the platform", TWIST, TWIST, e.legs.platform_bodies.M),
    "W_M": lambda e: ("angular velocity of the platform", TWIST, TWIST, e.legs.platform_bodies.W),
    "t_M": lambda e: ("twist of the platform", TWIST, ONE, e.legs.t_M),
    "T_M": lambda e: ("the platform's T", TWIST, e.independent, e.legs.T),
    "T_M_dot": lambda e: ("rate of T_M", TWIST, e.independent, e.legs.T_dot),
    "Y": lambda e: ("Z nu = Y t_M", e.independent, TWIST, e.legs.Y),
    "Z": lambda e: ("Z nu = Y t_M", e.independent, e.independent, e.legs.Z),
    "Lambda": lambda e: ("from motors to nu", e.independent, e.independent, e.legs.Lambda),
    "N": lambda e: ("Coriolis matrix, leg by leg", e.independent, e.independent, e.legs.N),
    "J_J": _of_legs("Jacobians of the legs", _six, lambda _, leg: leg.J),
    "L_J": _of_legs("rates of the legs for unit nu", _independent, lambda _, leg: leg.L),
    "L_J_dot": _of_legs("rates of L_J", _independent, lambda e, leg: e.legs.L_dot(leg)),
    "K_J": _of_legs("inverse Jacobians of the legs", _six, lambda _, leg: leg.inverse.matrix),
    "I_J": _of_legs("inertia of the legs", _six, lambda _, leg: leg.I),
    "C_J": _of_legs("Coriolis matrices of the legs", _six, lambda _, leg: leg.C),
    "w_J": _wrenches,
}
