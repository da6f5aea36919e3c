"""Kinetic and potential energy of a system (D)."""

from __future__ import annotations

import casadi as ca

from axode.symbolic.algebra.spatial import SX, cross, dot
from axode.symbolic.constraints.system import System


def kinetic_energy(system: System) -> SX:
    r"""Kinetic energy of all links and rotors at the speeds v.

    .. math:: \sum \tfrac12 m u^2 + u \cdot (\omega \times h) + \tfrac12 \omega^T I \omega \tag{D8}
    """
    tree = system.tree
    w, u = tree.velocities(tree.v)
    energy = SX(0)
    for own, w_i, u_i in zip(system.inertias, w, u, strict=True):
        energy += own.mass * dot(u_i, u_i) / 2 + dot(u_i, cross(w_i, own.moment))
        energy += dot(w_i, own.tensor @ w_i) / 2  # (D8)
    return energy + dot(system.forces.armature, tree.v * tree.v) / 2


def potential_energy(system: System, *, springs: bool = True) -> SX:
    r"""Potential energy of gravity, zero with all mass centres at the origin, and of springs.

    .. math:: -\sum g \cdot (m p + R h)                                           \tag{D9}
    """
    tree = system.tree
    energy = SX(0)
    for i, own in enumerate(system.inertias):
        pose = tree.pose(i)
        energy -= dot(tree.gravity, own.mass * pose.p + pose.R @ own.moment)  # (D9)
    return energy + (system.forces.elastic_energy if springs else 0)


def energies(system: System) -> SX:
    """Kinetic and potential energy, stacked."""
    return ca.vertcat(kinetic_energy(system), potential_energy(system))
