r"""The load cut free of the arms that hold it, in symbols.

Every grasp becomes a joint that closes a loop, and bodies left without a joint float. Joint
forces that a motion needs beyond those of motors, springs and dampers come from the rows,

.. math:: A^T \lambda = \mathcal M \dot v + h - B u,

also from rows that follow from others. The columns of A that belong to the load's own freedoms are
what each grasp can do to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import NotApplicable, UnknownName
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.numerics.rotations import to_quaternions
from axode.problems.inputs.tracing import compile_expression

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
    own = [joint for joint in joints if load in (joint.parent, joint.child)]
    found = [joint for joint in own if _other_end(joint, load) in standing - {GROUND.name}]
    if len(found) < 2:
        raise NotApplicable(
            f"'{load}' of '{mechanism.name}' is held by {len(found)} arm{'s' * (not found)}: "
            "cooperation takes two or more.\n  Join the load to the last link of every arm, with "
            "add_joint or add_loop"
        )
    return tuple(found)


def _other_end(joint: Connection, body: str) -> str:
    return joint.child if joint.parent == body else joint.parent


def cut(mechanism: Mechanism, grasps: Sequence[Connection]) -> tuple[Mechanism, tuple[str, ...]]:
    """Return a copy whose grasps close loops, and the bodies that float there.

    Raises:
        NotApplicable: for a grasp whose own coordinate has a motor, a spring, or the like.
    """
    free = mechanism.copy()
    held = {grasp.name for grasp in grasps}
    moved = [joint for joint in free.connections if joint.name in held]
    used = {name for part in _parts_on_joints(free) for name in part}
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


def _parts_on_joints(mechanism: Mechanism) -> list[tuple[str, ...]]:
    single: list[Any] = [*mechanism.drives, *mechanism.dampers, *mechanism.springs]
    return [
        *((part.coordinate,) for part in [*single, *mechanism.prescribed]),
        *(part.joints for part in mechanism.couplings),
    ]


class CutLoad:
    """A model's mechanism with its load cut free, and its balance of joint forces.

    Args:
        model: The whole, compiled from equations.
        load: The load's name.
        grasps: Joints that hold it.
    """

    def __init__(self, model: Model, load: str, grasps: Sequence[Connection]) -> None:
        self.model, self.load, self.grasps = model, load, tuple(grasps)
        self.mechanism, self.floating = cut(model.equations.system.mechanism, grasps)
        self._build()

    def _build(self) -> None:
        import casadi as ca

        from axode.symbolic.constraints.system import build_open_system
        from axode.symbolic.tree.inertia import link_inertias
        from axode.symbolic.tree.recursions import newton_euler
        from axode.symbolic.tree.rows import matrix_of

        system = build_open_system(self.mechanism)
        tree, forces = system.tree, system.forces
        inertias = link_inertias(tree)
        a = ca.SX.sym("a", tree.v.shape[0])
        need = newton_euler(tree, inertias, tree.motion(tree.v, a))
        need += forces.armature * a - forces.dissipative - forces.elastic
        self.coordinates, self.speed_names = tree.coordinate_names, tree.speed_names
        self.rows = [row.name for row in system.rows]
        self.slices = self._own_rows([row.owner for row in system.rows])
        names = list(self.model.parameters)
        self.parameters = [names.index(name) for name in system.parameter_names]
        symbols = {"q": tree.q, "v": tree.v, "a": a, "t": tree.t, "p": tree.parameters}
        matrix = ca.densify(matrix_of(list(system.rows), tree.v.shape[0]))
        order = [forces.input_names.index(name) for name in self.model.inputs]
        inputs = ca.densify(forces.B[:, order])
        link = tree.links[tree.body_link[self.load]]
        self.own = slice(link.speeds.start, link.speeds.stop)
        self._symbols = symbols
        self._expressions = {
            "need": need,
            "rows": matrix,
            "inputs": inputs,
            "load": _load_expression(tree, self.load, self.grasps, inertias),
        }

    def _own_rows(self, owners: list[str]) -> list[list[int]]:
        """Rows of each grasp."""
        return [[k for k, own in enumerate(owners) if own == g.name] for g in self.grasps]

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

    from axode.symbolic.algebra.frames import symbolic_vector
    from axode.symbolic.algebra.spatial import SX

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
    k, o = model.bodies.index(body), conditions.options
    pose = model.poses(q, **o)[..., k, :, :]
    R, origin = pose[..., :3, :3], pose[..., :3, 3]
    twist = model.twists(q, nu, **o)[..., k, :]
    by_q = model.jacobian("twists", "q", q, nu, **o)[..., k, :, :]
    by_nu = model.jacobian("twists", "nu", q, nu, **o)[..., k, :, :]
    change = np.einsum("...ij,...j->...i", by_q, model.rates(q, nu, **o))
    change = change + np.einsum("...ij,...j->...i", by_nu, nu_dot)
    w, w_dot = twist[..., :3], change[..., :3]
    centre = _centre_in_body(model, body, conditions)
    arm = -np.einsum("...ij,...j->...i", R, np.broadcast_to(centre, origin.shape))
    velocity = twist[..., 3:] + np.cross(w, arm)
    acceleration = change[..., 3:] + np.cross(w_dot, arm) + np.cross(w, np.cross(w, arm))
    v = np.concatenate([_turned(R, w), _turned(R, velocity)], axis=-1)
    a = np.concatenate([_turned(R, w_dot), _turned(R, acceleration - np.cross(w, velocity))], -1)
    return np.concatenate([to_quaternions(R), origin], axis=-1), v, a


def _turned(R: Array, x: Array) -> Array:
    """World vectors in the body's axes."""
    return np.asarray(np.einsum("...ji,...j->...i", R, x))


def _centre_in_body(model: Model, body: str, conditions: Conditions) -> Array:
    from axode.mechanism.values.expressions import evaluate

    mechanism = model.equations.system.mechanism
    com = next(b.com for b in mechanism.bodies if b.name == body)
    values = {**model.parameters, **conditions.named(model)}
    return np.stack(np.broadcast_arrays(*[evaluate(x, values) for x in com]), axis=-1)
