"""Newton's and Euler's laws of all bodies, what acts on them, and the joint forces that follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from axode.mechanism.elements.forces import Strut
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of
from axode.oracle.joint_motions import moving_directions, rate_matrix
from axode.oracle.machine import BodyFrames, Machine, Twists, real
from axode.oracle.numbers import STEP, Array, cross, dot, matvec, numbers, rate
from axode.oracle.twist_rows import (
    apply,
    changed,
    constraint_rows,
    joint_rows,
    matrix_of,
    speed_forms,
)

SPREAD = 1e-4  # what the scaling of unknowns leaves of the spread of their inertia


@dataclass(frozen=True)
class ConstraintRows:
    """Rows on the joint speeds at one state: A v = b and A v_dot + bias = 0.

    Sizes are those of the terms that entries and biases are sums of, row by row.
    """

    names: tuple[str, ...]
    A: Array
    b: Array
    bias: Array
    A_size: Array
    bias_size: Array


@dataclass(frozen=True)
class TreeForces:
    """Forces on the joint speeds, and how large the terms are that they are sums of."""

    value: Array
    size: Array


@dataclass(frozen=True)
class Solution:
    """Accelerations of the joint speeds, and the condition of the system they solve."""

    v_dot: Array
    condition: float


class Oracle(Machine):
    """A mechanism by maximal coordinates: six for every body, all joints as constraints.

    Args:
        mechanism: What is described.
        parameters: Values of its parameters instead of their defaults.
    """

    def __init__(self, mechanism: Mechanism, parameters: Mapping[str, float] | None = None) -> None:
        super().__init__(mechanism, parameters)
        self.armature = armature(self)
        self.motors = motor_map(self)

    # what can be said without solving anything -------------------------------------------------

    def poses(self, q: Array) -> tuple[Array, Array]:
        """Axes and origins of all bodies but the ground: bodies x 3 x 3, bodies x 3."""
        frames = self.frames(np.asarray(q, dtype=float))
        return np.stack(frames.R[1:], axis=-3), np.stack(frames.p[1:], axis=-2)

    def inverse(self, q: Array, v: Array, v_dot: Array) -> TreeForces:
        """What inputs and constraints must give on all joint speeds, by virtual power.

        Arrays may have a leading axis of states.
        """
        frames, twists = self.along(q, v, v_dot)
        loads = [-1.0 * x for x in self._inertial(frames, twists)]
        sizes = self._inertial_sizes(frames, twists)
        for strut in body_loads(self, real(frames), _real(twists)):
            for body, n, f in strut:
                loads[body] = loads[body] + np.concatenate([n, f], axis=-1)
                sizes[body] = sizes[body] + np.stack([_length(n), _length(f)], axis=-1)
        passive, rotors = joint_forces(self, q, v), self.armature * v_dot
        virtual = self._power(real(frames), loads, sizes)
        return TreeForces(
            rotors - passive - virtual.value, np.abs(rotors) + np.abs(passive) + virtual.size
        )

    def inputs(self, q: Array) -> TreeForces:
        """Force on each speed for unit inputs at one configuration, motors before wrenches."""
        if not self.mechanism.wrenches:
            return TreeForces(self.motors, np.abs(self.motors))
        J, frames = self.jacobian(q), self.frames(q)
        columns, sizes = [self.motors], [np.abs(self.motors)]
        for wrench in wrench_loads(self, frames):
            for body, n, f in (load for unit in wrench for load in unit):
                own = J[6 * body - 6 : 6 * body] if body else np.zeros((6, len(self.speeds)))
                columns.append((own.T @ np.concatenate([n, f]))[:, np.newaxis])
                sizes.append(_lengths(own.T) @ np.array([_length(n), _length(f)])[:, np.newaxis])
        return TreeForces(np.concatenate(columns, axis=1), np.concatenate(sizes, axis=1))

    def rows(self, q: Array, v: Array, t: float = 0.0) -> ConstraintRows:
        """Loops, wheels and prescribed motions at one state, on the joint speeds."""
        frames, twists = self.along(q, v)
        moving = constraint_rows(self, frames, self.step(q, v), t)
        J = self.jacobian(q)
        G = matrix_of([row.form for row in moving], len(self.body_names) - 1)
        bias = [rate(apply(row.form, twists.w, twists.u)) - row.motion.dd for row in moving]
        rates = np.array([row.motion.d for row in moving])
        names = tuple(row.name for row in moving)
        A_size = (_lengths(G.real) @ _lengths(J.T).T).max(axis=1, initial=0.0)
        bias_size = [changed(row.form, twists.w, twists.u) + abs(row.motion.dd) for row in moving]
        found = ConstraintRows(
            names, G.real @ J, rates, np.array(bias, dtype=float), A_size, np.array(bias_size)
        )
        return self._with_definitions(found, q, v) if self.mechanism.quasi_velocities else found

    def _with_definitions(self, rows: ConstraintRows, q: Array, v: Array) -> ConstraintRows:
        """Add w - W v = 0 for quasi-velocities w, which have no row on twists."""
        W, W_dot = self.definitions(q, v)
        moved, v = np.abs(W_dot) @ np.abs(v[: self.joint_speeds]), v[: self.joint_speeds]
        own = np.hstack([-W, np.eye(len(W))])
        names = [f"{quasi.name}.definition" for quasi in self.mechanism.quasi_velocities]
        return ConstraintRows(
            (*rows.names, *names),
            np.vstack([rows.A, own]),
            np.append(rows.b, np.zeros(len(W))),
            np.append(rows.bias, -W_dot @ v),
            np.append(rows.A_size, np.abs(own).max(axis=1)),
            np.append(rows.bias_size, moved + np.abs(W).max(axis=1, initial=1.0)),
        )

    def mass_matrix(self, q: Array) -> Array:
        """Inertia on all joint speeds, constraints aside: of every body at its mass centre."""
        J, frames = self.jacobian(q), self.frames(q)
        M = np.diag(self.armature)
        for body in range(1, len(self.body_names)):
            w, u = J[6 * body - 6 : 6 * body - 3], J[6 * body - 3 : 6 * body]
            at_centre = u + cross(w.T, matvec(frames.R[body], self.centre[body])).T
            own = frames.R[body].T @ w
            M = M + own.T @ self.tensor[body] @ own
            M = M + self.mass[body] * at_centre.T @ at_centre
        return np.asarray(M)

    # all bodies at once --------------------------------------------------------------------------

    def forward(self, q: Array, v: Array, u: Array, t: float = 0.0) -> Array:
        """Accelerations of all joint speeds for inputs u."""
        return self.solve(q, v, u, t).v_dot

    def solve(
        self, q: Array, v: Array, u: Array, t: float = 0.0, kept: Collection[str] | None = None
    ) -> Solution:
        """Solve for the accelerations of all bodies at once.

        Newton and Euler for all bodies, every joint of the tree a constraint like the others:

            [M  G^T] [V_dot]   [F]
            [G   0 ] [-l   ] = [-g],   least squares, shortest where rows repeat each other.

        Args:
            q, v, u, t: State, inputs and time.
            kept: Names of the rows beyond the tree's joints that hold; all unless given.
        """
        frames, twists = self.along(q, v)
        bodies = len(self.body_names) - 1
        rows = [row for i in range(len(self.joints)) for row in joint_rows(self, frames, i)]
        others = constraint_rows(self, frames, self.step(q, v), t)
        rows += [row for row in others if kept is None or row.name in kept]
        G = matrix_of([row.form for row in rows], bodies)
        V = np.concatenate([np.concatenate(pair) for pair in zip(twists.w, twists.u, strict=True)])
        V = V[6:].real
        g = rate(G) @ V - np.array([row.motion.dd for row in rows])
        speeds = matrix_of(speed_forms(self, frames), bodies)
        W, W_dot = self.definitions(q, v)
        speeds = np.vstack([speeds, (W + 1j * STEP * W_dot) @ speeds])
        S, drift = speeds.real, rate(speeds) @ V
        M = self._mass(real(frames)) + S.T @ (self.armature[:, np.newaxis] * S)
        F = self._loads(q, v, u, real(frames), _real(twists))
        F = F + S.T @ (joint_forces(self, q, v) + self.motors @ u[: self.motors.shape[1]])
        # inertial forces for constant twists, less gravity
        still = Twists([x.real for x in twists.w], [x.real for x in twists.u])
        F = F - S.T @ (self.armature * drift) - np.concatenate(self._inertial(frames, still)[1:])
        V_dot, condition = _solve_bodies(M, G.real, F, -g)
        return Solution(S @ V_dot + drift, condition)

    def _loads(self, q: Array, v: Array, u: Array, frames: BodyFrames, twists: Twists) -> Array:
        """Wrenches on all bodies from struts and from outside."""
        total = np.zeros(6 * len(self.body_names))
        loads = [load for strut in body_loads(self, frames, twists) for load in strut]
        units = [unit for wrench in wrench_loads(self, frames) for unit in wrench]
        for value, unit in zip(u[self.motors.shape[1] :], units, strict=True):
            loads += [(body, value * n, value * f) for body, n, f in unit]
        for body, n, f in loads:
            total[6 * body : 6 * body + 6] += np.concatenate([n, f])
        return total[6:]

    def _mass(self, frames: BodyFrames) -> Array:
        """M of all bodies on their twists at the frames' origins."""
        bodies = len(self.body_names) - 1
        M = np.zeros((6 * bodies, 6 * bodies))
        for body in range(1, bodies + 1):
            r, m = matvec(frames.R[body], self.centre[body]), self.mass[body]
            skew = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
            own = slice(6 * body - 6, 6 * body)
            tensor = frames.R[body] @ self.tensor[body] @ frames.R[body].T
            M[own, own] = np.block(
                [[tensor - m * skew @ skew, m * skew], [-m * skew, m * np.eye(3)]]
            )
        return M

    def _inertial(self, frames: BodyFrames, twists: Twists) -> list[Array]:
        """Rate of momentum minus weight of every body, moment about its frame's origin first.

        Momenta are complex steps: their imaginary parts are what Newton and Euler ask for.
        """
        needs = []
        for body, (R, w, u) in enumerate(zip(frames.R, twists.w, twists.u, strict=True)):
            arm = matvec(R, self.centre[body])
            linear = self.mass[body] * (u + cross(w, arm))
            angular = matvec(R, matvec(self.tensor[body], matvec(np.swapaxes(R, -1, -2), w)))
            f = rate(linear + 0j) - self.mass[body] * self.gravity
            n = rate(angular + 0j) + cross(arm.real, f)
            needs.append(np.concatenate([n, f], axis=-1))
        return needs

    def _inertial_sizes(self, frames: BodyFrames, twists: Twists) -> list[Array]:
        """How large the terms of `_inertial` are, of moments and of forces."""
        found = []
        for body, (R, w, u) in enumerate(zip(frames.R, twists.w, twists.u, strict=True)):
            spin, turning = _length(w.real), _length(rate(w + 0j))
            arm = _length(matvec(R.real, self.centre[body]))
            a = _length(rate(u + 0j)) + arm * (turning + spin**2) + _length(self.gravity)
            force = self.mass[body] * a
            moment = np.linalg.norm(self.tensor[body]) * (turning + spin**2) + arm * force
            found.append(np.stack([moment, force], axis=-1))
        return found

    def _power(self, frames: BodyFrames, loads: list[Array], sizes: list[Array]) -> TreeForces:
        """Power of loads on all bodies for unit joint speeds, with the size of its terms."""
        leading = loads[0].shape[:-1]
        value = np.zeros((*leading, len(self.speeds)))
        size = np.zeros((*leading, len(self.speeds)))
        n = [load[..., :3].copy() for load in loads]  # about the frames' origins
        f = [load[..., 3:].copy() for load in loads]
        n_size, f_size = ([size[..., i] for size in sizes] for i in range(2))
        for i in reversed(range(len(self.joints))):
            joint = self.joints[i]
            child, parent, origin = joint.child, joint.parent, frames.child_origin[i]
            out, back = frames.p[child] - origin, frames.p[child] - frames.p[parent]
            moment = n[child] + cross(out, f[child])
            reach, far = _length(out), _length(back)
            W, V = moving_directions(joint, frames.parent_axes[i], frames.child_axes[i])
            for k in range(joint.v.stop - joint.v.start):
                angular, linear = W[..., k], V[..., k]
                j = joint.v.start + k
                value[..., j] = dot(angular, moment) + dot(linear, f[child])
                turns, slides = _length(angular), _length(linear)
                size[..., j] = turns * (n_size[child] + reach * f_size[child])
                size[..., j] += slides * f_size[child]
            n[parent] = n[parent] + n[child] + cross(back, f[child])
            f[parent] = f[parent] + f[child]
            n_size[parent] = n_size[parent] + n_size[child] + far * f_size[child]
            f_size[parent] = f_size[parent] + f_size[child]
        return TreeForces(value, size)


def _lengths(rows: Array) -> Array:
    """Return the lengths of the vectors, three numbers each, that rows are made of."""
    return np.asarray(np.linalg.norm(rows.reshape(len(rows), rows.shape[1] // 3, 3), axis=-1))


def _length(x: Array) -> Array:
    return np.sqrt(dot(x, x))


def _real(twists: Twists) -> Twists:
    return Twists([x.real for x in twists.w], [x.real for x in twists.u])


def _solve_bodies(M: Array, G: Array, F: Array, c: Array) -> tuple[Array, float]:
    """V_dot of the KKT system, unknowns and rows scaled to the size of one."""
    inertia = np.diag(M)
    usual = np.median(inertia[inertia > 0.0]) if (inertia > 0.0).any() else 1.0
    D = 1.0 / np.sqrt(np.where(inertia > 0.0, inertia, usual))
    G_scaled = G * D
    length = np.linalg.norm(G_scaled, axis=1).clip(1e-300)
    G_scaled = G_scaled / length[:, np.newaxis]
    size, count = len(M), len(G)
    K = np.zeros((size + count, size + count))
    K[:size, :size] = M * D * D[:, np.newaxis]
    K[:size, size:], K[size:, :size] = G_scaled.T, G_scaled
    x, _, rank, values = np.linalg.lstsq(K, np.concatenate([F * D, c / length]), rcond=1e-13)
    # rows that repeat each other leave as many zeros; any other zero is a digit lost
    repeated = count - (np.linalg.matrix_rank(G) if count else 0)
    regular = values[: len(values) - repeated]
    condition = float(values[0] / max(regular[-1], 1e-300)) if len(regular) else 1.0
    spread = SPREAD * float(
        inertia.max(initial=0.0) / inertia.min(where=inertia > 0.0, initial=1e300)
    )
    if rank < len(regular):
        return np.asarray(x[:size] * D), np.inf
    return np.asarray(x[:size] * D), max(condition, spread)


Loads = list[tuple[int, Array, Array]]  # body, moment about its frame's origin, force


def speed_index(machine: Machine, name: str) -> int:
    """Index of the speed that a joint, coordinate or speed means."""
    return machine.speeds.index(machine.meanings[name])


def armature(machine: Machine) -> Array:
    """Rotor inertia that each speed feels."""
    felt = np.zeros(len(machine.speeds))
    for connection in machine.mechanism.connections:
        for speed in connection.speeds:
            felt[speed_index(machine, speed)] += machine.value(connection.armature)
    for drive in machine.mechanism.drives:
        gear, inertia = (machine.value(x) for x in (drive.motor.gear, drive.motor.rotor_inertia))
        felt[speed_index(machine, drive.coordinate)] += gear**2 * inertia
    return felt


def motor_map(machine: Machine) -> Array:
    """Force on each speed for unit motor inputs: speeds x motors."""
    drives = machine.mechanism.drives
    B = np.zeros((len(machine.speeds), len(drives)))
    for k, drive in enumerate(drives):
        B[speed_index(machine, drive.coordinate), k] = machine.value(drive.motor.gear)
    return B


def joint_forces(machine: Machine, q: Array, v: Array) -> Array:
    """Springs and dampers on joints, as forces on the speeds."""
    force = np.zeros(v.shape)
    for damper in machine.mechanism.dampers:
        j = speed_index(machine, damper.coordinate)
        force[..., j] -= machine.value(damper.coefficient) * v[..., j]
    for spring in machine.mechanism.springs:
        name = coordinate_of(machine.mechanism, spring.coordinate)
        k = machine.coordinates.index(str(name))
        joint = next(joint for joint in machine.joints if joint.q.start <= k < joint.q.stop)
        N = rate_matrix(joint, q[..., joint.q])[..., k - joint.q.start, :]
        pull = -machine.value(spring.stiffness) * (q[..., k] - machine.value(spring.rest))
        force[..., joint.v] += N * pull[..., np.newaxis]
    return force


def body_loads(machine: Machine, frames: BodyFrames, twists: Twists) -> Iterator[Loads]:
    """Struts, each as the wrenches at its two ends."""
    for strut in machine.mechanism.struts:
        yield _strut_loads(machine, frames, twists, strut)


def _strut_loads(machine: Machine, frames: BodyFrames, twists: Twists, strut: Strut) -> Loads:
    ends: list[tuple[int, Array]] = []
    points: list[Array] = []
    velocities: list[Array] = []
    for name, point in ((strut.parent, strut.at), (strut.child, strut.child_at)):
        body = machine.number[name]
        arm = matvec(frames.R[body], numbers(point, machine.parameters))
        ends.append((body, arm))
        points.append(frames.p[body] + arm)
        velocities.append(twists.u[body] + cross(twists.w[body], arm))
    apart, moving = points[1] - points[0], velocities[1] - velocities[0]
    length = np.sqrt(dot(apart, apart))
    rest, stiffness, damping = (
        machine.value(x) for x in (strut.rest, strut.stiffness, strut.damping)
    )
    # a spring of no length pulls along the line between its ends even where they meet
    pull = stiffness * apart
    if rest != 0.0 and stiffness != 0.0:
        pull = pull * (1.0 - rest / length)[..., np.newaxis]
    if damping != 0.0:
        along = apart / length[..., np.newaxis]
        pull = pull + damping * dot(along, moving)[..., np.newaxis] * along
    (first, arm_1), (second, arm_2) = ends
    return [(first, cross(arm_1, pull), pull), (second, -cross(arm_2, pull), -pull)]


def wrench_loads(machine: Machine, frames: BodyFrames) -> list[list[Loads]]:
    """Return the loads of the six unit inputs of every external wrench."""
    found = []
    for wrench in machine.mechanism.wrenches:
        body = machine.number[wrench.body]
        axes = frames.R[body] if wrench.frame == "body" else np.eye(3)
        arm = matvec(frames.R[body], numbers(wrench.at, machine.parameters))
        e = [np.broadcast_to(axes[..., i], arm.shape) for i in range(3)]
        moments: list[Loads] = [[(body, x, np.zeros(3))] for x in e]
        found.append([*moments, *([(body, cross(arm, x), x)] for x in e)])
    return found
