"""Loads: what the ground must give to every wheel, where statics determines it and where not.

The base of a vehicle is set free in space, so that the ground's contacts carry all of it. Joint
forces that the motion needs must then come from the rows of contacts and loops, dropped ones
included: A' lambda = I~ v_dot + h~ - B u. Where many lambda do, the one of least weighted norm is
taken, which is that of equally stiff wheels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.values.expressions import numeric
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.numerics.rank import column_space, least_norm, null_space
from axode.numerics.tolerances import RANK, UNBALANCED
from axode.problems.arguments import number
from axode.problems.inputs.tracing import compile_expression

Array = npt.NDArray[np.float64]
_FREE = "_free_vehicle"  # kept with the model
ROUNDED = 10.0  # times what dropped rows have of their own: likewise


@dataclass(frozen=True)
class GroundForces:
    """Forces of the ground on the wheels, (T, contacts) each [N].

    Attributes:
        longitudinal, lateral, normal: On each wheel, in the axes of its contact.
        evenness: Smallest load over the mean load when loads are shared as evenly as equilibrium
            allows, (T,): one on even loads, zero where a wheel is about to lift, -inf where the
            contacts cannot carry the robot at all.
        shared_normals, shared_tangents: Contacts whose forces statics alone does not determine.
        unsupported: Name of the speed that nothing holds, where contacts cannot carry the robot.
        redistributed: Whether some loads had to be shared otherwise than by stiffness, because a
            wheel cannot pull.
    """

    longitudinal: Array
    lateral: Array
    normal: Array
    evenness: Array
    shared_normals: tuple[str, ...]
    shared_tangents: tuple[str, ...]
    unsupported: str
    redistributed: bool


@dataclass(frozen=True)
class DrivenMotion:
    """Samples of a motion, and what drives it.

    Attributes:
        q, v, v_dot: Coordinates, all joint speeds and accelerations: (T, size).
        u: Inputs: (T, inputs).
        extra: Further generalized forces on the joint speeds: (T, speeds).
    """

    q: Array
    v: Array
    v_dot: Array
    u: Array
    extra: Array


def ground_forces(
    model: Model, motion: DrivenMotion, stiffness: Mapping[str, float], conditions: Conditions
) -> GroundForces:
    """Find contact forces along a motion.

    Args:
        model: The vehicle.
        motion: How it moves.
        stiffness: Stiffness of the wheels, relative to each other, by contact.
        conditions: Time and parameters.
    """
    kept = vars(model)
    free = kept[_FREE] = kept.get(_FREE) or FreeVehicle(model)
    need, A = free.balance(motion, conditions)
    touches = [free.rows.index(f"{name}.touch") for name in model.contacts]
    weights = np.ones(len(free.rows))
    for row, name in zip(touches, model.contacts, strict=True):
        weights[row] = stiffness[name]
    weights[touches] /= weights[touches].mean()
    report = model.equations.system.report
    nearly = set(range(len(report.rests))) - set(report.kept)
    rounding = ROUNDED * max((report.rests[r] for r in nearly), default=0.0)
    lam, null = _least_norm(A, need, np.sqrt(weights), max(RANK, rounding))
    left = need - np.einsum("tri,tr->ti", A, lam)
    allowed = max(UNBALANCED, rounding) * np.abs(need).max(initial=1e-12)
    unbalanced = np.abs(left).max(axis=-1, initial=0.0) > allowed
    lam, evenness, redistributed = _share_loads(lam, null, touches, np.sqrt(weights[touches]))
    evenness[unbalanced] = -np.inf
    loose = ""
    if unbalanced.any():
        worst = np.abs(left[int(np.argmax(unbalanced))])
        loose = free.speed_names[int(np.argmax(worst))]
    return GroundForces(
        **_by_contact(model, free, lam, null, conditions),
        evenness=evenness,
        unsupported=loose,
        redistributed=redistributed,
    )


def _by_contact(
    model: Model, free: FreeVehicle, lam: Array, null: list[Array], conditions: Conditions
) -> dict[str, Any]:
    """Forces of each contact, and which contacts share theirs."""
    from axode.symbolic.wheels import symbolic_wheel

    loosely = (
        np.array(
            [np.abs(z).max(axis=1) if z.shape[1] else np.zeros(len(free.rows)) for z in null]
        ).max(axis=0)
        > UNBALANCED
    )
    values = {**model.parameters, **conditions.named(model), "t": 0.0}
    parts: dict[str, list[Array]] = {"longitudinal": [], "lateral": [], "normal": []}
    normals, tangents = [], []
    for contact in free.mechanism.contacts:
        own = {
            row: free.rows.index(f"{contact.name}.{row}")
            for row in ("touch", *contact.wheel.rolling_rows)
        }
        force = {row: lam[:, k] for row, k in own.items()}
        zero = np.zeros(len(lam))
        components = symbolic_wheel(contact.wheel, values).components
        for i, part in enumerate(parts):
            terms = (float(components[row][i]) * x for row, x in force.items())
            parts[part].append(sum(terms, zero))
        if loosely[own["touch"]]:
            normals.append(contact.name)
        if any(loosely[k] for row, k in own.items() if row != "touch"):
            tangents.append(contact.name)
    arrays = {name: np.stack(columns, axis=-1) for name, columns in parts.items()}
    return {**arrays, "shared_normals": tuple(normals), "shared_tangents": tuple(tangents)}


# sharing -----------------------------------------------------------------------------------------


def _least_norm(A: Array, need: Array, root: Array, tolerance: float) -> tuple[Array, list[Array]]:
    """Solve A' lambda = need by least weighted norm; and what may be added: (rows, free)."""
    scaled = np.swapaxes(A * root[:, np.newaxis], 1, 2)
    lam = root * least_norm(scaled, need, tolerance)
    null = []
    for matrix in scaled:
        basis = root[:, np.newaxis] * null_space(matrix, tolerance)
        null.append(np.linalg.qr(basis)[0] if basis.shape[1] else basis)
    return lam, null


def _share_loads(
    lam: Array, null: list[Array], touches: list[int], root: Array
) -> tuple[Array, Array, bool]:
    """Share loads so that no wheel pulls, where that is possible, and find how even they can be."""
    lam, evenness, redistributed = lam.copy(), np.empty(len(lam)), False
    for t, z in enumerate(null):
        N = lam[t, touches]
        mean = N.mean()
        Z = column_space(z[touches], UNBALANCED)
        least = _find_largest_least_load(N, Z)
        if least >= 0 and N.min() < 0:
            wanted = _remove_pull(N, Z, root)
            change = least_norm(z[touches], wanted - N)
            lam[t] += z @ change
            redistributed = True
        evenness[t] = least / mean if mean > 0 else -1.0
    return lam, evenness, redistributed


def _find_largest_least_load(N: Array, Z: Array) -> float:
    """Find the largest least load that adding columns of Z can give."""
    if not Z.shape[1]:
        return float(N.min())
    from scipy.optimize import linprog

    size = np.abs(N).max(initial=1e-300)
    count, free = Z.shape
    # most least: minimize -least subject to least - Z x <= N
    found = linprog(
        np.r_[np.zeros(free), -1.0],
        A_ub=np.c_[-Z, np.ones(count)],
        b_ub=N / size,
        bounds=[(None, None)] * (free + 1),
    )
    return float(-found.fun * size) if found.status == 0 else float(N.min())


def _remove_pull(N: Array, Z: Array, root: Array) -> Array:
    """Find loads of least weighted norm, none negative, that carry the same as N."""
    from scipy.optimize import nnls

    carry = null_space(Z.T, RANK).T  # what sharing does not change
    size = np.abs(N).max()
    slight = 1e-6
    system = np.vstack([carry, slight * np.diag(1 / root)])
    found: Array = nnls(system, np.r_[carry @ N / size, np.zeros(N.size)])[0]
    return found * size


# the vehicle set free ----------------------------------------------------------------------------


class FreeVehicle:
    """The mechanism with its planar bases set free in space, and its balance of joint forces."""

    def __init__(self, model: Model) -> None:
        if not model.contacts:
            raise NotApplicable(f"'{model.name}' has no wheels that could slip")
        equations = model.equations
        self.model = model
        self.mechanism, self.freed = float_bases(equations.system.mechanism)
        self._build()

    def _build(self) -> None:
        import casadi as ca

        from axode.symbolic.constraints.system import build_open_system
        from axode.symbolic.tree.inertia import link_inertias
        from axode.symbolic.tree.recursions import newton_euler
        from axode.symbolic.tree.rows import matrix_of

        system = build_open_system(self.mechanism)
        tree, forces = system.tree, system.forces
        a = ca.SX.sym("a", tree.v.shape[0])
        u = ca.SX.sym("u", len(forces.input_names))
        need = newton_euler(tree, link_inertias(tree), tree.motion(tree.v, a))
        need += forces.armature * a - forces.dissipative - forces.elastic
        need -= ca.densify(forces.B @ u) if forces.input_names else 0
        self.rows = [row.name for row in system.rows]
        self.speed_names, self.inputs = tree.speed_names, forces.input_names
        self.coordinates = tree.coordinate_names
        names = list(self.model.parameters)
        self.parameters = [names.index(name) for name in system.parameter_names]
        self.need, self.matrix = need, ca.densify(matrix_of(system.rows, tree.v.shape[0]))
        self.symbols = {"q": tree.q, "v": tree.v, "a": a, "u": u, "t": tree.t, "p": tree.parameters}

    @cached_property
    def _functions(self) -> tuple[CompiledFunction, CompiledFunction]:
        """Joint forces that the motion needs, and the rows, compiled."""
        return (
            compile_expression("need", self.symbols, self.need, (self.need.shape[0],)),
            compile_expression("rows", self.symbols, self.matrix, self.matrix.shape),
        )

    def balance(self, motion: DrivenMotion, conditions: Conditions) -> tuple[Array, Array]:
        """Evaluate joint forces that the ground must give, and the rows through which it does."""
        q = motion.q
        own_v, own_a, more = map(self._speeds, (motion.v, motion.v_dot, motion.extra))
        order = [self.model.inputs.index(name) for name in self.inputs]
        known = {
            "q": self._coordinates(q),
            "v": own_v,
            "a": own_a,
            "u": motion.u[:, order],
            "t": np.broadcast_to(conditions.t, q.shape[:1])[:, np.newaxis],
            "p": self.model.parameter_vector(conditions.p)[..., self.parameters],
        }
        results = []
        for function in self._functions:
            ports = [port.name for port in function.tape.inputs]
            result = function(*(np.ascontiguousarray(known[name]) for name in ports))
            results.append(result)
        A = np.array(np.broadcast_to(results[1], (len(q), *results[1].shape[-2:])))
        return results[0] - more, A

    def _coordinates(self, q: Array) -> Array:
        """Coordinates of the free vehicle: a quaternion instead of a yaw."""
        own = np.zeros((len(q), len(self.coordinates)))
        for k, name in enumerate(self.coordinates):
            if name in self.model.coordinates:
                own[:, k] = q[:, self.model.coordinates.index(name)]
        for joint, yaw in self.freed.items():
            half = q[:, self.model.coordinates.index(yaw)] / 2
            own[:, self.coordinates.index(f"{joint}.qw")] = np.cos(half)
            own[:, self.coordinates.index(f"{joint}.qz")] = np.sin(half)
        return own

    def _speeds(self, v: Array) -> Array:
        own = np.zeros((len(v), len(self.speed_names)))
        for k, name in enumerate(self.speed_names):
            if name in self.model.speed_names:
                own[:, k] = v[:, self.model.speed_names.index(name)]
        return own


def float_bases(mechanism: Mechanism) -> tuple[Mechanism, dict[str, str]]:
    """Return a copy whose planar bases float, and the yaw of each by the joint's name."""
    from axode.symbolic.joints import symbolic_joint

    free = mechanism.copy()
    freed: dict[str, str] = {}
    for k, connection in enumerate(free.connections):
        if connection.joint.carries_base and _carries(free, connection):
            floating = symbolic_joint(connection.joint, {}).floating_equivalent(connection)
            if floating is not None:
                freed[connection.name] = connection.coordinates[2]
                free.connections[k] = floating
    bound = [*(s.coordinate for s in free.springs), *(p.coordinate for p in free.prescribed)]
    bound += [name for coupling in free.couplings for name in coupling.joints]
    for name in bound:
        if name in freed.values():
            raise NotApplicable(
                f"'{name}' is prescribed, coupled or on a spring, which supports the "
                "base: wheel loads are known only for vehicles that stand on their wheels alone"
            )
    return free, freed


def _carries(mechanism: Mechanism, base: Connection) -> bool:
    """Return whether wheels stand on the ground for the body that a joint holds."""
    held = {base.child}
    for connection in mechanism.connections * len(mechanism.connections):
        if connection.parent in held:
            held.add(connection.child)
    return any(c.body in held and c.plane.on not in held for c in mechanism.contacts)


def by_contact(model: Model, what: str, given: Any, default: float) -> dict[str, float]:
    """A positive number for every contact, from one number or from numbers by name."""
    if given is None:
        return dict.fromkeys(model.contacts, default)
    values = given if isinstance(given, Mapping) else dict.fromkeys(model.contacts, given)
    for name in values:
        if name not in model.contacts:
            raise UnknownName(f"model '{model.name}'", "wheel", name, model.contacts)
    for name in model.contacts:
        if name not in values:
            raise InvalidArgument(f"{what}: wheel '{name}' has none; give one number, or one each")
        value = number(f"{what}, '{name}'", numeric(values[name]))
        if not (np.isfinite(value) and value > 0):
            raise InvalidArgument(f"{what}, '{name}': must be finite and > 0, got {values[name]}")
    return {name: float(numeric(values[name])) for name in model.contacts}
