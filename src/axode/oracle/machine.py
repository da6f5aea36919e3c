"""A described mechanism in numbers: its bodies, its joints, and how they move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.quasi_velocities import NamedState, QuasiVelocity
from axode.mechanism.topology import parameters_of, speed_meanings, tree_order
from axode.mechanism.values.expressions import evaluate
from axode.oracle.joint_motions import (
    Placed,
    joint_pose,
    links_of,
    moving_directions,
    place,
    rate_matrix,
)
from axode.oracle.numbers import JET_FUNCTIONS, STEP, Array, Jet, as_jet, cross, matvec, numbers


@dataclass(frozen=True)
class BodyFrames:
    """Where everything is: axes and origins of bodies, and of the joints' frames on both sides.

    Bodies are numbered along the first axis of the lists, the ground is 0.
    """

    R: list[Array]
    p: list[Array]
    parent_axes: list[Array]  # of each joint of the tree: its frame on the parent
    child_axes: list[Array]  # and on the child
    child_origin: list[Array]


@dataclass(frozen=True)
class Twists:
    """Angular velocity of every body and velocity of its frame's origin, in world axes."""

    w: list[Array]
    u: list[Array]


class Machine:
    """A mechanism at values of its parameters, with everything read from its description.

    Arguments `q`, `v`, `v_dot` may have leading axes.
    """

    def __init__(self, mechanism: Mechanism, parameters: Mapping[str, float] | None = None) -> None:
        self.mechanism = mechanism
        defaults = {name: p.default for name, p in parameters_of(mechanism).items()}
        self.parameters: dict[str, Any] = {**defaults, **(parameters or {}), "t": 0.0}
        self.body_names = (GROUND.name, *(body.name for body in mechanism.bodies))
        self.number = {name: i for i, name in enumerate(self.body_names)}
        self.joints: list[Placed] = []
        self.coordinates: list[str] = []
        self.speeds: list[str] = []
        for connection in tree_order(mechanism):
            q = slice(len(self.coordinates), len(self.coordinates) + len(connection.coordinates))
            v = slice(len(self.speeds), len(self.speeds) + len(connection.speeds))
            self.joints.append(place(connection, self.number, self.parameters, q, v))
            self.coordinates += connection.coordinates
            self.speeds += connection.speeds
        self.joint_speeds = len(self.speeds)  # the others are quasi-velocities, by their formulas
        self.speeds += [quasi.name for quasi in mechanism.quasi_velocities]
        self.meanings = speed_meanings(mechanism)
        self.loops = [place(loop, self.number, self.parameters) for loop in mechanism.loops]
        self.gravity = numbers(mechanism.gravity, self.parameters)

    def value(self, scalar: Any) -> float:
        """A number or formula of the description."""
        return float(evaluate(scalar, self.parameters))

    @cached_property
    def mass(self) -> Array:
        """Mass of every body; the ground has none."""
        bodies = self.mechanism.bodies
        return np.array([0.0, *(self.value(body.mass) for body in bodies)])

    @cached_property
    def centre(self) -> Array:
        """Mass centre of every body in its frame."""
        coms = [numbers(body.com, self.parameters) for body in self.mechanism.bodies]
        return np.array([np.zeros(3), *coms])

    @cached_property
    def tensor(self) -> Array:
        """Central inertia of every body in its axes."""
        tensors = [np.zeros((3, 3))]
        for body in self.mechanism.bodies:
            xx, yy, zz, xy, xz, yz = numbers(body.inertia.entries, self.parameters)
            tensors.append(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return np.array(tensors)

    @cached_property
    def depth(self) -> list[int]:
        """Moves between the ground and each body."""
        depth = [0] * len(self.body_names)
        for joint in self.joints:
            depth[joint.child] = depth[joint.parent] + links_of(joint.joint)
        return depth

    # motion ------------------------------------------------------------------------------------

    def rates(self, q: Array, v: Array) -> Array:
        """Rates of the coordinates."""
        q_dot = np.zeros(q.shape, dtype=np.result_type(q, v))
        for joint in self.joints:
            q_dot[..., joint.q] = matvec(rate_matrix(joint, q[..., joint.q]), v[..., joint.v])
        return q_dot

    def frames(self, q: Array) -> BodyFrames:
        """Frames at coordinates q."""
        count, leading = len(self.body_names), q.shape[:-1]
        R = [np.broadcast_to(np.eye(3), (*leading, 3, 3))] * count
        p = [np.zeros((*leading, 3))] * count
        parent_axes, child_axes, child_origin = [], [], []
        for joint in self.joints:
            outer = R[joint.parent] @ joint.rotation
            turn, shift = joint_pose(joint, q[..., joint.q])
            inner = outer @ turn
            origin = p[joint.parent] + matvec(R[joint.parent], joint.at) + matvec(outer, shift)
            R[joint.child] = inner @ joint.child_rotation.T
            p[joint.child] = origin - matvec(R[joint.child], joint.child_at)
            parent_axes.append(outer)
            child_axes.append(inner)
            child_origin.append(origin)
        return BodyFrames(R, p, parent_axes, child_axes, child_origin)

    def twists(self, frames: BodyFrames, v: Array) -> Twists:
        """Twists of all bodies, outward from the ground."""
        zero = np.zeros((*v.shape[:-1], 3))
        w, u = [zero] * len(self.body_names), [zero] * len(self.body_names)
        for i, joint in enumerate(self.joints):
            W, V = moving_directions(joint, frames.parent_axes[i], frames.child_axes[i])
            own, held = v[..., joint.v], joint.parent
            w[joint.child] = w[held] + matvec(W, own)
            there = u[held] + cross(w[held], frames.child_origin[i] - frames.p[held])
            out = frames.p[joint.child] - frames.child_origin[i]
            u[joint.child] = there + matvec(V, own) + cross(w[joint.child], out)
        return Twists(w, u)

    def jacobian(self, q: Array) -> Array:
        """Twists of all bodies for unit speeds at one configuration: 6 x bodies by speeds."""
        size = len(self.speeds)
        frames = self.frames(np.broadcast_to(q, (size, *q.shape)))
        twists = self.twists(frames, np.eye(size))
        pairs = zip(twists.w[1:], twists.u[1:], strict=True)
        return np.concatenate([x for pair in pairs for x in pair], axis=-1).T

    def along(self, q: Array, v: Array, v_dot: Array | None = None) -> tuple[BodyFrames, Twists]:
        """Frames and twists whose imaginary parts are their rates along the motion."""
        v_h = v if v_dot is None else v + 1j * STEP * v_dot
        frames = self.frames(self.step(q, v))
        return frames, self.twists(frames, v_h)

    def definitions(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Weights of the joints' speeds in quasi-velocities at one state, and their rates."""
        moving = [Jet(*pair) for pair in zip(q, self.rates(q, v), strict=True)]
        coordinates = dict(zip(self.coordinates, moving, strict=True))

        def value(quasi: QuasiVelocity, unit: Array) -> Jet:
            speeds = dict(zip(self.speeds, map(Jet, unit), strict=False))
            values = {**self.parameters, **coordinates, **speeds}
            return as_jet(quasi.value(NamedState(self.mechanism, values, JET_FUNCTIONS)))

        none, units = np.zeros(self.joint_speeds), np.eye(self.joint_speeds)
        every = self.mechanism.quasi_velocities
        found = [[value(quasi, e) - value(quasi, none) for e in units] for quasi in every]
        shape = (len(every), self.joint_speeds)
        weights, rates = ([getattr(x, n) for row in found for x in row] for n in ("x", "d"))
        return np.reshape(weights, shape), np.reshape(rates, shape)

    def step(self, q: Array, v: Array) -> Array:
        """Return coordinates whose imaginary parts are their rates."""
        return np.asarray(q + 1j * STEP * self.rates(q, v))


def real(frames: BodyFrames) -> BodyFrames:
    """Frames without the rates that they carry."""
    parts = (getattr(frames, field.name) for field in fields(frames))
    return BodyFrames(*([x.real for x in part] for part in parts))
