r"""The load cut free of the arms that hold it, in symbols.

Every grasp becomes a joint that closes a loop, and bodies left without a joint float. Joint
forces that a motion needs beyond those of motors, springs and dampers come from the rows,

.. math:: A^T \lambda = \mathcal M \dot v + h - B u,

also from rows that follow from others. The columns of A that belong to the load's own freedoms are
what each grasp can do to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import (
    InvalidArgument,
    NotApplicable,
    PlausibilityWarning,
    RequestNotMetWarning,
    UnknownName,
    level_outside,
)
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.names import Names, as_names
from axode.numerics.rank import least_norm, null_space, pseudo_inverse, singular_values
from axode.numerics.rotations import to_quaternions
from axode.numerics.tolerances import RANK, TINY, UNBALANCED
from axode.problems.arguments import number, require_model
from axode.problems.assemble.assemble import read_states
from axode.problems.inputs.tracing import compile_expression
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]
ENDING = ".carrier"  # of the names of joints that let a cut body float


@dataclass(frozen=True)
class LoadAt:
    """The load at states: arrays with the states' axes first.

    Attributes:
        centre: Its mass centre in the world [m]: (..., 3).
        rotation: Its axes in the world: (..., 3, 3).
        points: Where each grasp holds it, in the world [m]: (..., grasps, 3).
        inertia: About the mass centre in world axes, moments first: (..., 6, 6).
        freedoms: Twists of the mass centre for its own speeds: (..., 6, freedoms).
        rows: What each row of a grasp does to those speeds: (..., rows, freedoms).
    """

    centre: Array
    rotation: Array
    points: Array
    inertia: Array
    freedoms: Array
    rows: Array


def find_grasps(mechanism: Mechanism, load: str) -> tuple[Connection, ...]:
    """Find the joints that hold a body and lead to the ground without passing it again.

    A joint between the load and the ground itself is a support, not an arm.

    Raises:
        UnknownName: for an unknown body.
        NotApplicable: if fewer than two arms hold it.
    """
    names = [body.name for body in mechanism.bodies]
    if load not in names:
        raise UnknownName(f"mechanism '{mechanism.name}'", "body", load, names)
    joints = [*mechanism.connections, *mechanism.loops]
    standing = {GROUND.name}
    for _ in names:
        for joint in joints:
            ends = {joint.parent, joint.child}
            if load not in ends and ends & standing:
                standing |= ends
    standing.remove(GROUND.name)
    own = [joint for joint in joints if load in (joint.parent, joint.child)]
    found = [joint for joint in own if {joint.parent, joint.child} & standing]
    if len(found) < 2:
        raise NotApplicable(
            f"'{load}' of '{mechanism.name}' is held by {len(found)} arm{'s' * (not found)}: "
            "cooperation takes two or more.\n  Join the load to the last link of every arm, with "
            "add_joint or add_loop"
        )
    return tuple(found)


def cut(mechanism: Mechanism, grasps: Sequence[Connection]) -> tuple[Mechanism, tuple[str, ...]]:
    """Return a copy whose grasps close loops, and the bodies that float there.

    Raises:
        NotApplicable: for a grasp whose own coordinate has a motor, a spring, or the like.
    """
    free = mechanism.copy()
    held = {grasp.name for grasp in grasps}
    moved = [joint for joint in free.connections if joint.name in held]
    single: list[Any] = [*free.drives, *free.dampers, *free.springs, *free.prescribed]
    used = {part.coordinate for part in single}
    used |= {name for coupling in free.couplings for name in coupling.joints}
    for joint in moved:
        names = {joint.name, *joint.coordinates, *joint.speeds} & used
        if names:
            raise NotApplicable(
                f"grasp '{joint.name}': a motor, spring, damper, coupling or prescribed motion "
                f"acts on {', '.join(sorted(names))}.\n  Put a body without mass between that "
                "joint and the load, and join it to the load by Fixed()"
            )
    free.connections = [joint for joint in free.connections if joint.name not in held]
    free.loops = [*free.loops, *moved]
    free.measures = []
    floating = tuple(joint.child for joint in moved)
    for body in floating:
        free.connections.append(Connection(f"{body}{ENDING}", Floating(), GROUND.name, body))
    return free, floating


class CutLoad:
    """A model's mechanism with its load cut free, and its balance of joint forces.

    Args:
        model: The whole, compiled from equations.
        load: The load's name.
        grasps: Joints that hold it.
    """

    def __init__(self, model: Model, load: str, grasps: Sequence[Connection]) -> None:
        import casadi as ca

        from axode.symbolic.constraints.system import build_open_system
        from axode.symbolic.tree.inertia import link_inertias
        from axode.symbolic.tree.recursions import newton_euler
        from axode.symbolic.tree.rows import matrix_of

        self.model, self.load, self.grasps = model, load, tuple(grasps)
        self.mechanism, self.floating = cut(model.equations.system.mechanism, grasps)
        system = build_open_system(self.mechanism)
        tree, forces = system.tree, system.forces
        inertias = link_inertias(tree)
        a = ca.SX.sym("a", tree.v.shape[0])
        need = newton_euler(tree, inertias, tree.motion(tree.v, a))
        need += forces.armature * a - forces.dissipative - forces.elastic
        self.coordinates, self.speed_names = tree.coordinate_names, tree.speed_names
        owners = [row.owner for row in system.rows]
        self.slices = [[k for k, own in enumerate(owners) if own == g.name] for g in self.grasps]
        names = list(model.parameters)
        self.parameters = [names.index(name) for name in system.parameter_names]
        order = [forces.input_names.index(name) for name in model.inputs]
        link = tree.links[tree.body_link[load]]
        self.own = slice(link.speeds.start, link.speeds.stop)
        self._symbols = {"q": tree.q, "v": tree.v, "a": a, "t": tree.t, "p": tree.parameters}
        self._expressions = {
            "need": need,
            "rows": ca.densify(matrix_of(list(system.rows), tree.v.shape[0])),
            "inputs": ca.densify(forces.B[:, order]),
            "load": _load_expression(tree, load, self.grasps, inertias),
        }

    @cached_property
    def _functions(self) -> dict[str, CompiledFunction]:
        return {
            name: compile_expression(name, self._symbols, value, value.shape)
            for name, value in self._expressions.items()
        }

    def _evaluate(self, name: str, known: Mapping[str, Array]) -> Array:
        function = self._functions[name]
        ports = [port.name for port in function.tape.inputs]
        result = function(*(np.ascontiguousarray(known[port]) for port in ports))
        value = np.asarray(result)
        return np.broadcast_to(value, (*known["q"].shape[:-1], *value.shape[-2:]))

    def arguments(self, q: Array, nu: Array, nu_dot: Array, conditions: Conditions) -> Any:
        """Coordinates, speeds and accelerations of the cut mechanism, for those of the model."""
        model, o = self.model, conditions.options
        v, v_dot = model.joint_speeds(q, nu, **o), model.accelerations(q, nu, nu_dot, **o)
        own_q = np.zeros((*q.shape[:-1], len(self.coordinates)))
        own_v = np.zeros((*q.shape[:-1], len(self.speed_names)))
        own_a = np.zeros_like(own_v)
        for k, name in enumerate(self.coordinates):
            if name in model.coordinates:
                own_q[..., k] = q[..., model.coordinates.index(name)]
        for k, name in enumerate(self.speed_names):
            if name in model.speed_names:
                own_v[..., k] = v[..., model.speed_names.index(name)]
                own_a[..., k] = v_dot[..., model.speed_names.index(name)]
        for body in self.floating:
            places = _floating_motion(model, body, q, nu, nu_dot, conditions)
            c = self.coordinates.index(f"{body}{ENDING}.qw")
            s = self.speed_names.index(f"{body}{ENDING}.wx")
            own_q[..., c : c + 7] = places[0]
            own_v[..., s : s + 6], own_a[..., s : s + 6] = places[1], places[2]
        t = np.broadcast_to(conditions.t, q.shape[:-1])[..., np.newaxis]
        p = model.parameter_vector(conditions.p)[..., self.parameters]
        return {"q": own_q, "v": own_v, "a": own_a, "t": t, "p": p}

    def balance(self, known: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        """Evaluate joint forces that a motion needs, the inputs' share of them, and all rows."""
        need = self._evaluate("need", known)[..., 0]
        return need, self._evaluate("inputs", known), self._evaluate("rows", known)

    def load_at(self, known: Mapping[str, Array], rows: Array) -> LoadAt:
        """Evaluate the load's place, inertia and freedoms."""
        numbers = self._evaluate("load", known)
        d, g = self.own.stop - self.own.start, len(self.grasps)
        kept = [k for own in self.slices for k in own]
        return LoadAt(
            numbers[..., :3, 0],
            numbers[..., :3, 1:4],
            np.swapaxes(numbers[..., :3, 4 : 4 + g], -1, -2),
            numbers[..., 4 + g : 10 + g],
            numbers[..., 10 + g : 10 + g + d],
            rows[..., kept, self.own],
        )


def _load_expression(tree: Any, load: str, grasps: Sequence[Connection], inertias: Any) -> Any:
    """Centre, axes, grasp points, inertia and freedoms of the load side by side, six rows each."""
    import casadi as ca

    from axode.symbolic.algebra.spatial import SX, symbolic_vector

    number = tree.body_link[load]
    link, pose, own = tree.links[number], tree.pose(number), inertias[number]
    body = tree.body_pose[load]
    com = next(b.com for b in tree.mechanism.bodies if b.name == load)
    has_mass = not own.mass.is_zero()
    c = own.moment / own.mass if has_mass else body.point(symbolic_vector(com, tree.values))
    tensor = own.tensor - own.mass * (ca.dot(c, c) * SX.eye(3) - c @ c.T)
    inertia = ca.diagcat(pose.R @ tensor @ pose.R.T, own.mass * SX.eye(3))
    points = []
    for grasp in grasps:
        at = grasp.at if grasp.parent == load else grasp.child_at
        points.append(pose.point(body.point(symbolic_vector(at, tree.values))))
    twist = ca.vertcat(pose.R @ link.S_w, pose.R @ (link.S_v + ca.skew(c).T @ link.S_w))
    R = pose.R @ body.R
    upper = ca.horzcat(pose.point(c), R, *points)
    return ca.horzcat(ca.vertcat(upper, SX.zeros(3, upper.shape[1])), inertia, twist)


def _floating_motion(
    model: Model, body: str, q: Array, nu: Array, nu_dot: Array, conditions: Conditions
) -> tuple[Array, Array, Array]:
    """Coordinates, speeds and accelerations of a Floating joint that moves as a body does."""
    from axode.mechanism.values.expressions import evaluate

    k, o = model.bodies.index(body), conditions.options
    pose = model.poses(q, **o)[..., k, :, :]
    R, origin = pose[..., :3, :3], pose[..., :3, 3]
    twist = model.twists(q, nu, **o)[..., k, :]
    by_q = model.jacobian("twists", "q", q, nu, **o)[..., k, :, :]
    by_nu = model.jacobian("twists", "nu", q, nu, **o)[..., k, :, :]
    change = np.einsum("...ij,...j->...i", by_q, model.rates(q, nu, **o))
    change = change + np.einsum("...ij,...j->...i", by_nu, nu_dot)
    w, w_dot = twist[..., :3], change[..., :3]
    mechanism = model.equations.system.mechanism
    values = {**model.parameters, **conditions.named(model)}
    com = [evaluate(x, values) for b in mechanism.bodies if b.name == body for x in b.com]
    centre = np.stack(np.broadcast_arrays(*com), axis=-1)
    arm = -np.einsum("...ij,...j->...i", R, np.broadcast_to(centre, origin.shape))
    velocity = twist[..., 3:] + np.cross(w, arm)
    acceleration = change[..., 3:] + np.cross(w_dot, arm) + np.cross(w, np.cross(w, arm))
    vectors = np.stack([w, velocity, w_dot, acceleration - np.cross(w, velocity)], axis=-2)
    own = np.einsum("...ji,...kj->...ki", R, vectors)  # in the body's axes
    v, a = (own[..., k : k + 2, :].reshape(*own.shape[:-2], 6) for k in (0, 2))
    return np.concatenate([to_quaternions(R), origin], axis=-1), v, a


@dataclass(frozen=True)
class GraspWrenches:
    """Wrenches that arms exert on their load: moment first [N m], then force [N], in world axes.

    Arrays have the axes of the states first. `wrenches["grip"]` is the one of a grasp.

    Attributes:
        grasps: Names of the grasps, in order.
        on_load: About each grasp's own point: (..., grasps, 6).
        internal: Parts of these that only strain the load: (..., grasps, 6). Their sum is zero.
        motion_inducing: Parts that move the load and carry its weight: (..., grasps, 6).
        resultant: Sum of all grasps' wrenches about the load's mass centre: (..., 6).
        shares: Part of the resultant that each arm carries, (..., grasps): its wrench along the
            resultant, measured by the load's inertia. Their sum is one; NaN where nothing is
            carried.
    """

    grasps: tuple[str, ...]
    on_load: Array
    internal: Array
    motion_inducing: Array
    resultant: Array
    shares: Array

    def __getitem__(self, grasp: str) -> Array:
        """Wrench of one grasp on the load, about its point."""
        names = Names("the load", "grasp", self.grasps)
        return np.asarray(self.on_load[..., self.grasps.index(names.resolve(grasp)), :])

    def __repr__(self) -> str:
        if self.shares.ndim > 1:
            return f"GraspWrenches of {', '.join(self.grasps)}, states {self.shares.shape[:-1]}"
        lines = ["Forces on the load [N]: of each grasp, the internal part, share of the resultant"]
        for k, name in enumerate(self.grasps):
            whole, inside = self.on_load[k, 3:].round(4) + 0.0, self.internal[k, 3:].round(4) + 0.0
            lines.append(f"  {name}: {whole}, {inside}, {self.shares[k]:.3f}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Holding:
    """How grasps hold the load at some states, in units in which its inertia is one.

    Attributes:
        load: The load there.
        root: Lower triangular root of its inertia in its own freedoms: (..., d, d).
        rows: Effects of the grasps' rows, by the root: a list of (..., d, rows).
        projectors: Onto what each grasp transmits: (..., grasps, d, d).
        share: Part that each arm carries.
    """

    load: LoadAt
    root: Array
    rows: list[Array]
    projectors: Array
    share: Array

    def moving(self, resultant: Array) -> Array:
        """Wrenches of the grasps that move the load, for a resultant: (..., grasps, d)."""
        weighted = self.share[:, np.newaxis, np.newaxis] * self.projectors
        common = pseudo_inverse(weighted.sum(axis=-3), tolerance=RANK, symmetric=True)
        return np.einsum("...gij,...jk,...k->...gi", weighted, common, resultant)

    def wrenches(self, scaled: Array) -> Array:
        """Wrenches about the grasps' points in world axes, from those in units of the inertia."""
        load = self.load
        own = np.einsum("...ij,...gj->...gi", self.root, scaled)
        inverse = np.linalg.inv(self.root)
        metric = np.swapaxes(inverse, -1, -2) @ inverse
        spread = load.inertia @ load.freedoms @ metric  # the wrench that such a motion takes
        at_centre = np.einsum("...ij,...gj->...gi", spread, own)
        return moved(at_centre, load.centre[..., np.newaxis, :] - load.points)

    def scaled(self, wrenches: Array) -> Array:
        """Wrenches in units of the inertia, from those about the grasps' points in world axes."""
        load = self.load
        at_centre = moved(wrenches, load.points - load.centre[..., np.newaxis, :])
        own = np.einsum("...ji,...gj->...gi", load.freedoms, at_centre)
        return np.asarray(np.linalg.solve(self.root[..., np.newaxis, :, :], own[..., np.newaxis]))[
            ..., 0
        ]


def moved(wrench: Array, arm: Array) -> Array:
    """Wrench about another point, `arm` being the way from that point to the one before."""
    moment = wrench[..., :3] + np.cross(arm, wrench[..., 3:])
    return np.concatenate([moment, wrench[..., 3:]], axis=-1)


def grasp_matrix(reaches: Array) -> Array:
    r"""Resultant of wrenches at several points: [G_1 G_2 ...], (..., 6, 6 points).

    .. math:: V_t = A V_c, \qquad A^\top F_t = F_c, \qquad A^\top = [G_1\; G_2 \ldots]  \tag{F28}

    Args:
        reaches: From the reference point to each of the points, (..., points, 3) [m].
    """
    blocks = np.zeros((*reaches.shape[:-1], 6, 6))
    blocks[..., range(6), range(6)] = 1.0
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        blocks[..., i, 3 + k] = reaches[..., j]
        blocks[..., i, 3 + j] = -reaches[..., k]
    return np.concatenate(np.moveaxis(blocks, -3, 0), axis=-1)


class Cooperation:
    """Arms that hold one load: who carries what of it, and how they strain it.

    Any joints may hold the load, in the tree or closing loops, and the arms may stand on anything,
    a vehicle for instance. Where the load has a joint to the ground, such as `Planar`, wrenches
    are those along the freedoms of that joint; the rest is carried there.

    Args:
        model: A mechanism, or a model compiled from one.
        load: The body that is held.
        grasps: Names of the joints that hold it; unless given, all that lead to arms.
        shares: Part of the load that each arm is to carry, by grasp or in order; they are divided
            by their sum. Equal unless given.
        radius: Length by which moments are compared with forces [m], instead of the load's
            own inertia; needed if the load has none.

    Attributes:
        grasps: Names of the joints that hold the load.
        indeterminate: Grasps whose wrenches the motion and the motors do not determine, because
            some constraints follow from others. Equally stiff arms are assumed there.
    """

    @stoppable
    def __init__(
        self,
        model: Model | Mechanism,
        load: str,
        *,
        grasps: Sequence[str] | None = None,
        shares: Mapping[str, float] | Sequence[float] | None = None,
        radius: float | None = None,
    ) -> None:
        check_arguments(Cooperation.__init__, locals())
        if isinstance(model, Mechanism):
            model = model.derive().compile()
        require_model("Cooperation", model)
        self.model, self.load = model, load
        found = find_grasps(model.equations.system.mechanism, load)
        if grasps is not None:
            names = Names(f"'{load}' of '{model.name}'", "grasp", [g.name for g in found])
            wanted = [names.resolve(name) for name in as_names(grasps)]
            found = tuple(g for g in found if g.name in wanted)
        self.grasps = tuple(grasp.name for grasp in found)
        self.radius = None if radius is None else number("radius", radius)
        if self.radius is not None and not 0 < self.radius < np.inf:
            raise InvalidArgument(f"radius: must be finite and > 0 m, got {radius}")
        self.share = self._shares(shares)
        self._cut = CutLoad(model, load, found)
        self.indeterminate = self._find_indeterminate()

    def __repr__(self) -> str:
        return f"Cooperation('{self.load}' of '{self.model.name}': {', '.join(self.grasps)})"

    def _shares(self, given: Mapping[str, float] | Sequence[float] | None) -> Array:
        """One part per grasp; their sum is one."""
        count = len(self.grasps)
        if given is None:
            return np.full(count, 1.0 / count)
        if isinstance(given, Mapping):
            given = Names("the load", "grasp", self.grasps).by_full_name(given)
            given = [given.get(name, np.nan) for name in self.grasps]
        values = as_numbers("shares", given)
        if values.shape != (count,) or not (np.isfinite(values) & (values > 0)).all():
            raise InvalidArgument(
                f"shares: one number > 0 is needed for each of {', '.join(self.grasps)}"
            )
        return np.asarray(values / values.sum())

    # what the grasps are ------------------------------------------------------------------------

    def grasp_matrix(self, state: Any = None, **options: Any) -> Array:
        """Resultant about the load's mass centre of unit wrenches at the grasps: (..., 6, 6 g).

        Wrenches are in world axes, moment first, each about its grasp's point.

        Args:
            state: Any form of a state, or a `Trajectory`; home unless given.
            options: Time `t` and `parameters`.
        """
        q, nu, _, conditions = read_states(self.model, state, options)
        load = self._hold(q, nu, np.zeros_like(nu), conditions)[0].load
        return grasp_matrix(load.points - load.centre[..., np.newaxis, :])

    @cached_property
    def internal_dimension(self) -> int:
        """Number of independent ways in which the arms can strain the load, at home."""
        nu = np.zeros(len(self.model.independent))
        P = self._hold(self.model.home, nu, nu, Conditions())[0].projectors
        ranks = np.round(np.trace(P, axis1=-2, axis2=-1)).sum()
        return int(ranks) - int((singular_values(P.sum(axis=0)) > RANK).sum())

    def _hold(
        self, q: Array, nu: Array, nu_dot: Array, conditions: Conditions
    ) -> tuple[_Holding, Array, Array, Array]:
        """How the load is held, joint forces that a motion needs, the inputs' part, all rows."""
        cut = self._cut
        known = cut.arguments(q, nu, nu_dot, conditions)
        need, inputs, rows = cut.balance(known)
        load = cut.load_at(known, rows)
        if self.radius is not None:
            own = np.diag([self.radius**2] * 3 + [1.0] * 3)
            load = replace(load, inertia=np.broadcast_to(own, load.inertia.shape))
        M = np.swapaxes(load.freedoms, -1, -2) @ load.inertia @ load.freedoms
        if not (np.linalg.eigvalsh(M) > 0).all():
            raise NotApplicable(
                f"'{self.load}' has no inertia by which moments and forces could be compared; give "
                "it one, or pass radius=, a length in metres"
            )
        root = np.asarray(np.linalg.cholesky(M), dtype=float)
        scaled = np.linalg.solve(root, np.swapaxes(load.rows, -1, -2))
        ends = np.cumsum([len(own) for own in cut.slices])[:-1]
        parts = [np.asarray(part) for part in np.split(scaled, ends, axis=-1)]
        projectors = [part @ pseudo_inverse(part, tolerance=RANK) for part in parts]
        held = _Holding(load, root, parts, np.stack(projectors, axis=-3), self.share)
        return held, need, inputs, rows

    def _find_indeterminate(self) -> tuple[str, ...]:
        nu = np.zeros(len(self.model.independent))
        held, _, _, rows = self._hold(self.model.home, nu, nu, Conditions())
        null = null_space(rows.T, RANK)
        found = []
        for name, own, part in zip(self.grasps, self._cut.slices, held.rows, strict=True):
            effect = part @ null[own]
            if np.abs(effect).max(initial=0.0) > UNBALANCED * np.abs(part).max(initial=0.0):
                found.append(name)
        if found:
            warnings.warn(
                f"'{self.model.name}': constraints that follow from others leave open how "
                f"{' and '.join(found)} strain '{self.load}'; equally stiff arms are assumed",
                PlausibilityWarning,
                stacklevel=level_outside(),
            )
        return tuple(found)

    # what they carry ----------------------------------------------------------------------------

    def wrenches(self, state: Any = None, u: Any = None, **options: Any) -> GraspWrenches:
        """Wrenches of the arms on the load at a state, under inputs.

        Args:
            state: Any form of a state, arrays with batch axes, or a `Trajectory`, which has its own
                inputs; home at rest unless given.
            u: Inputs by name or in order; zero unless given.
            options: Time `t` and `parameters`.
        """
        q, nu, own, conditions = read_states(self.model, state, options)
        names = self.model.signals.names("input")
        given = own if u is None and own is not None else _in_order("u", names, u)
        nu_dot = self.model.forward_dynamics(q, nu, given, **conditions.options)
        held, need, inputs, rows = self._hold(q, nu, nu_dot, conditions)
        forces = need - np.einsum("...ij,...j->...i", inputs, given)
        return self._report(held, self._grasp_map(held, rows, forces[..., np.newaxis])[..., 0])

    def decompose(self, wrenches: Any, state: Any = None, **options: Any) -> GraspWrenches:
        """Split known wrenches, of force sensors for instance, into internal and motion-inducing.

        Args:
            wrenches: On the load, about the grasps' points in world axes: (..., grasps, 6).
            state: Any form of a state; home unless given.
            options: Time `t` and `parameters`.
        """
        q, nu, _, conditions = read_states(self.model, state, options)
        held = self._hold(q, nu, np.zeros_like(nu), conditions)[0]
        values = as_numbers("wrenches", wrenches)
        if values.shape[-2:] != (len(self.grasps), 6):
            raise InvalidArgument(
                f"wrenches: expected the shape (..., {len(self.grasps)}, 6), moments first, got "
                f"{values.shape}"
            )
        return self._report(held, held.scaled(values))

    def torques(
        self,
        state: Any = None,
        nu_dot: Any = None,
        *,
        squeeze: float | Mapping[str, npt.ArrayLike] | None = None,
        frame: Literal["world", "body"] = "world",
        **options: Any,
    ) -> Array:
        """Find inputs that give a motion of the load and internal wrenches in it: (..., inputs).

        Motors beyond those that the motion and the internal wrenches take are used as little as
        possible. The load is carried in the shares that the `Cooperation` was made with.

        Args:
            state: Any form of a state, arrays with batch axes, or a `Trajectory`.
            nu_dot: Independent accelerations, by name or in order; zero unless given.
            squeeze: Internal wrenches on the load by grasp, forces (..., 3) [N] or moments and
                forces (..., 6), about the grasps' points; that of one grasp may be left out and
                balances the others. For two grasps also a number: how hard they press towards
                each other [N]. None unless given.
            frame: Axes of `squeeze`: those of the world, or of the load ("body").
            options: Time `t` and `parameters`.
        """
        check_arguments(Cooperation.torques, locals())
        model = self.model
        q, nu, _, conditions = read_states(model, state, options)
        o = conditions.options
        nu_dot = _in_order("nu_dot", model.signals.names("independent"), nu_dot)
        nu_dot = np.broadcast_to(nu_dot, nu.shape)
        motors = facts_of(model).motors
        u = np.array(model.inverse_dynamics(q, nu, nu_dot, **o))
        B = model.jacobian("input_force", "u", q, u, **o)[..., :motors]
        free = np.eye(motors) - pseudo_inverse(B, tolerance=RANK) @ B
        held, need, inputs, rows = self._hold(q, nu, nu_dot, conditions)
        part = inputs[..., :motors]
        forces = need - np.einsum("...ij,...j->...i", inputs, u)
        both = np.concatenate([forces[..., np.newaxis], -part @ free], axis=-1)
        made = self._grasp_map(held, rows, both)
        now, change = made[..., 0], made[..., 1:]
        wanted = held.moving(now.sum(axis=-2)) + self._squeeze(held, squeeze, frame)
        flat = (*now.shape[:-2], now.shape[-2] * now.shape[-1])
        change = change.reshape(*flat, motors)
        lack = (wanted - now).reshape(flat)
        step = least_norm(change, lack, RANK)
        self._report_deficit(held, wanted, lack - np.einsum("...ij,...j->...i", change, step))
        u[..., :motors] += np.einsum("...ij,...j->...i", free, step)
        return u

    def _grasp_map(self, held: _Holding, rows: Array, forces: Array) -> Array:
        """Grasp wrenches in units of the inertia for joint forces that rows give: (g, d, k)."""
        multipliers = pseudo_inverse(np.swapaxes(rows, -1, -2), tolerance=RANK) @ forces
        parts = [
            part @ multipliers[..., own, :]
            for own, part in zip(self._cut.slices, held.rows, strict=True)
        ]
        return np.stack(parts, axis=-3)

    def _report(self, held: _Holding, scaled: Array) -> GraspWrenches:
        resultant = scaled.sum(axis=-2)
        moving = held.moving(resultant)
        size = (resultant**2).sum(axis=-1)[..., np.newaxis]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.einsum("...gi,...i->...g", scaled, resultant) / size
        on_load = held.wrenches(scaled)
        reaches = held.load.points - held.load.centre[..., np.newaxis, :]
        return GraspWrenches(
            self.grasps,
            on_load,
            held.wrenches(scaled - moving),
            held.wrenches(moving),
            moved(on_load, reaches).sum(axis=-2),
            shares,
        )

    def _squeeze(self, held: _Holding, given: Any, frame: str) -> Array:
        """Internal wrenches that are asked for, in units of the inertia."""
        load, count = held.load, len(self.grasps)
        batch = load.centre.shape[:-1]
        if given is None:
            return np.zeros((*batch, count, held.root.shape[-1]))
        wrenches = np.zeros((*batch, count, 6))
        left_out: list[str] = []
        if isinstance(given, Mapping):
            named = Names("the load", "grasp", self.grasps).by_full_name(given)
            left_out = [name for name in self.grasps if name not in named]
            for name, value in named.items():
                wrenches[..., self.grasps.index(name), :] = _wrench(name, value)
            if frame == "body":
                parts = wrenches.reshape(*batch, count, 2, 3)
                parts = np.einsum("...ij,...gkj->...gki", load.rotation, parts)
                wrenches = parts.reshape(wrenches.shape)
        else:
            if count != 2:
                raise InvalidArgument(
                    f"squeeze: a number is for two grasps, '{self.load}' has {count}; give "
                    "wrenches by grasp"
                )
            way = load.points[..., 1, :] - load.points[..., 0, :]
            way = way / np.linalg.norm(way, axis=-1, keepdims=True)
            size = np.broadcast_to(as_numbers("squeeze", given), batch)
            wrenches[..., 0, 3:] = size[..., np.newaxis] * way
            left_out = [self.grasps[1]]
        return self._balanced(held, wrenches, left_out)

    def _balanced(self, held: _Holding, wrenches: Array, left_out: list[str]) -> Array:
        scaled = held.scaled(wrenches)
        if len(left_out) == 1:
            k = self.grasps.index(left_out[0])
            scaled[..., k, :] = -scaled.sum(axis=-2)
        size = np.abs(scaled).max(initial=TINY)
        left = np.abs(scaled.sum(axis=-2)).max()
        if len(left_out) > 1 or left > UNBALANCED * size:
            raise InvalidArgument(
                "squeeze: internal wrenches balance each other, these do not; leave one of "
                f"{', '.join(self.grasps)} out, and it balances the others"
            )
        kept = np.einsum("...gij,...gj->...gi", held.projectors, scaled)
        if np.abs(kept - scaled).max() > UNBALANCED * size:
            off = np.abs(kept - scaled).reshape(-1, *scaled.shape[-2:]).max(axis=(0, 2))
            raise InvalidArgument(
                f"squeeze: '{self.grasps[int(np.argmax(off))]}' cannot transmit this wrench; its "
                "joint is free in that direction"
            )
        return scaled

    def _report_deficit(self, held: _Holding, wanted: Array, lack: Array) -> None:
        missing = lack.reshape(wanted.shape)
        size = np.abs(wanted).max(initial=0.0)
        if np.abs(missing).max(initial=0.0) <= UNBALANCED * max(size, TINY):
            return
        worst = float(np.linalg.norm(held.wrenches(missing)[..., 3:], axis=-1).max())
        warnings.warn(
            f"the motors of '{self.model.name}' cannot give the motion and all grasp wrenches "
            f"asked for: forces fall short by {worst:.3g} N.  Torques of the motion with the "
            "nearest wrenches are returned",
            RequestNotMetWarning,
            stacklevel=level_outside(),
        )


def _wrench(name: str, given: npt.ArrayLike) -> Array:
    values = as_numbers(f"squeeze, '{name}'", given)
    if values.shape[-1:] == (3,):
        return np.concatenate([np.zeros_like(values), values], axis=-1)
    if values.shape[-1:] == (6,):
        return values
    raise InvalidArgument(
        f"squeeze, '{name}': expected a force (..., 3), or a moment and a force (..., 6), got "
        f"shape {values.shape}"
    )


def _in_order(argument: str, names: Names, given: Any) -> Array:
    """Numbers in the order of names; those that are not named are zero."""
    if isinstance(given, Mapping):
        full = names.by_full_name(given)
        return np.stack(np.broadcast_arrays(*(full.get(n, 0.0) for n in names)), axis=-1)
    return np.zeros(len([*names])) if given is None else as_numbers(argument, given)
