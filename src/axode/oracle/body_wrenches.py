"""What acts on the bodies of a mechanism: wrenches in the world, about the frames' origins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from axode.mechanism.elements.forces import Strut
from axode.mechanism.topology import coordinate_of
from axode.oracle.joint_motions import rate_matrix
from axode.oracle.machine import BodyFrames, Machine, Twists
from axode.oracle.numbers import Array, cross, dot, matvec, numbers

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
