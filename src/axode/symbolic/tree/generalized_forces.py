r"""Generalized forces of motors, wrenches, dampers and springs on the tree's speeds (D)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca

from axode.mechanism.elements.forces import Strut
from axode.mechanism.topology import coordinate_of, speed_meanings, speed_units
from axode.symbolic.algebra.spatial import ROOT, SX, dot, skew, symbolic_scalar, symbolic_vector
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import inward


@dataclass(frozen=True)
class AppliedForces:
    r"""What acts on the tree: :math:`\tilde\tau = B u`, dissipation and springs.

    Motors come first among the inputs, components of wrenches after them.       (D7)
    """

    input_names: tuple[str, ...]
    motors: int
    limits: tuple[SX | None, ...]
    B: SX  # speeds x inputs
    armature: SX  # rotor inertia each speed feels
    dissipative: SX  # -D v
    elastic: SX  # of springs
    elastic_energy: SX


@dataclass(frozen=True)
class BodyLoad:
    """A moment and a force on a body at a point, all in the world."""

    body: str
    point: SX
    moment: SX
    force: SX


def applied_forces(tree: Tree, free_tree: Tree | None = None) -> AppliedForces:
    """Collect everything that acts, except gravity.

    Args:
        tree: The tree.
        free_tree: The same tree at any configuration, closed or not, by which the energy of struts
            is differentiated; `tree` unless given.
    """
    size = tree.v.shape[0]
    columns, names, limits = [], [], []
    armature = SX.zeros(size)
    meanings, units = speed_meanings(tree.mechanism), speed_units(tree.mechanism)
    for joint in tree.mechanism.connections:
        for speed in joint.speeds:
            felt = symbolic_scalar(joint.armature, tree.values)
            armature[tree.speed_names.index(speed)] += felt
    for drive in tree.mechanism.drives:
        speed = meanings[drive.coordinate]
        j = tree.speed_names.index(speed)
        gear = symbolic_scalar(drive.motor.gear, tree.values)
        column = SX(size, 1)
        column[j] = gear
        columns.append(column)
        names.append(
            drive.input or f"{drive.name}.{'force' if units[speed] == 'm/s' else 'torque'}"
        )
        limit = drive.motor.limit
        limits.append(None if limit is None else symbolic_scalar(limit, tree.values))
        armature[j] += gear * gear * symbolic_scalar(drive.motor.rotor_inertia, tree.values)
    motors = len(columns)
    for wrench in tree.mechanism.wrenches:
        columns.append(_wrench_columns(tree, wrench.body, wrench.at, wrench.frame))
        names += wrench.input_names
        limits += [None] * 6
    placed = tree if free_tree is None else replace(tree, links=free_tree.links, _poses={})
    elastic_energy = _spring_energy(tree) + _strut_energy(placed)
    elastic = -(ca.jacobian(elastic_energy, tree.q) @ tree.N).T
    return AppliedForces(
        tuple(names),
        motors,
        tuple(limits),
        ca.horzcat(*columns) if columns else SX(size, 0),
        armature,
        _damper_force(tree) + _strut_damping(placed),
        ca.densify(elastic),
        elastic_energy,
    )


def _wrench_columns(tree: Tree, body: str, at: object, frame: str) -> SX:
    """Generalized force of a unit moment and force at a point of a body: speeds x 6."""
    size, link = tree.v.shape[0], tree.body_link[body]
    columns = SX(size, 6)
    if link == ROOT:
        return columns
    pose = tree.body_pose[body]
    axes = pose.R if frame == "body" else tree.carry(SX.eye(3), ROOT, link)
    point = pose.point(symbolic_vector(at, tree.values))  # type: ignore[arg-type]
    n = ca.horzcat(axes, skew(point) @ axes)
    f = ca.horzcat(SX.zeros(3, 3), axes)
    for i, n_i, f_i in inward(tree, link, n, f):
        own = tree.links[i]
        columns[own.speeds.start : own.speeds.stop, :] = own.S_w.T @ n_i + own.S_v.T @ f_i
    return ca.sparsify(columns)


def joint_forces(tree: Tree) -> SX:
    """Springs and dampers on joints, as forces on the speeds."""
    elastic = -(ca.jacobian(_spring_energy(tree), tree.q) @ tree.N).T
    return ca.densify(elastic) + _damper_force(tree)


def body_loads(tree: Tree, wrenches: SX) -> list[BodyLoad]:
    """What acts on bodies, not on joints: struts and wrenches.

    Args:
        tree: The tree.
        wrenches: Components of all wrenches, six each, in the order of the inputs.
    """
    loads = []
    for k, wrench in enumerate(tree.mechanism.wrenches):
        pose = tree.body_world_pose(wrench.body)
        axes = pose.R if wrench.frame == "body" else SX.eye(3)
        n, f = wrenches[6 * k : 6 * k + 3], wrenches[6 * k + 3 : 6 * k + 6]
        at = pose.point(symbolic_vector(wrench.at, tree.values))
        loads.append(BodyLoad(wrench.body, at, axes @ n, axes @ f))
    for strut in tree.mechanism.struts:
        pull, none = _pull(tree, strut), SX.zeros(3)
        first, second = _ends(tree, strut)
        loads.append(BodyLoad(strut.parent, first, none, pull))
        loads.append(BodyLoad(strut.child, second, none, -pull))
    return loads


def _pull(tree: Tree, strut: Strut) -> SX:
    """Force of a strut on its first end."""
    stiffness, damping, rest = (
        symbolic_scalar(x, tree.values) for x in (strut.stiffness, strut.damping, strut.rest)
    )
    apart = _between(tree, strut)
    length = ca.norm_2(apart)
    pull = stiffness * apart
    if not rest.is_zero():
        pull = pull * (1 - rest / length)
    if not damping.is_zero():
        rate = ca.jacobian(length, tree.q) @ (tree.N @ tree.v)
        pull += damping * rate / length * apart
    return ca.densify(pull)


def _ends(tree: Tree, strut: Strut) -> list[SX]:
    """Both ends of a strut in the world."""
    return [
        tree.body_world_pose(body).point(symbolic_vector(point, tree.values))
        for body, point in ((strut.parent, strut.at), (strut.child, strut.child_at))
    ]


def _between(tree: Tree, strut: Strut) -> SX:
    """From one end of a strut to the other, in the world."""
    first, second = _ends(tree, strut)
    return second - first


def _spring_energy(tree: Tree) -> SX:
    energy = SX(0)
    for spring in tree.mechanism.springs:
        name = coordinate_of(tree.mechanism, spring.coordinate)
        assert name is not None
        stretch = tree.q[tree.coordinate_names.index(name)] - symbolic_scalar(
            spring.rest, tree.values
        )
        energy += symbolic_scalar(spring.stiffness, tree.values) * stretch * stretch / 2
    return energy


def _strut_energy(tree: Tree) -> SX:
    energy = SX(0)
    for strut in tree.mechanism.struts:
        stiffness = symbolic_scalar(strut.stiffness, tree.values)
        if stiffness.is_zero():
            continue
        apart, rest = _between(tree, strut), symbolic_scalar(strut.rest, tree.values)
        if rest.is_zero():  # smooth even where the ends meet, which a length is not
            energy += stiffness * dot(apart, apart) / 2
        else:
            stretch = ca.norm_2(apart) - rest
            energy += stiffness * stretch * stretch / 2
    return energy


def _damper_force(tree: Tree) -> SX:
    """-dD/dv of Rayleigh's function, of dampers on joints."""
    force = SX.zeros(tree.v.shape[0])
    meanings = speed_meanings(tree.mechanism)
    for damper in tree.mechanism.dampers:
        j = tree.speed_names.index(meanings[damper.coordinate])
        force[j] -= symbolic_scalar(damper.coefficient, tree.values) * tree.v[j]
    return force


def _strut_damping(tree: Tree) -> SX:
    """-dD/dv of Rayleigh's function, of struts."""
    force = SX.zeros(tree.v.shape[0])
    for strut in tree.mechanism.struts:
        damping = symbolic_scalar(strut.damping, tree.values)
        if not damping.is_zero():
            J = ca.jacobian(ca.norm_2(_between(tree, strut)), tree.q) @ tree.N
            force -= ca.densify(J.T @ (damping * (J @ tree.v)))
    return force
