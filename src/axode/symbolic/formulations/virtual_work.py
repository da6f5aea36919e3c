"""Virtual powers, body by body: no matrix of the whole system is ever formed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.mechanism.elements.bodies import Body
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    RigidInertia,
    cross,
    skew,
    symbolic_scalar,
    symbolic_vector,
    symmetric,
)
from axode.symbolic.formulations.base import AbstractFormulation
from axode.symbolic.tree.inertia import body_tensor


@dataclass(frozen=True)
class Moving:
    r"""A frame in motion, in its own axes: what its origin does and how it turns.

    `U` is :math:`\hat\omega\hat\omega + \hat\varepsilon`; the angular acceleration is in it.
    """

    w: SX
    U: SX
    a: SX  # acceleration of the origin

    @property
    def epsilon(self) -> SX:
        """Angular acceleration: the axial vector of U."""
        U = self.U
        return ca.vertcat(U[2, 1] - U[1, 2], U[0, 2] - U[2, 0], U[1, 0] - U[0, 1]) / 2

    def inside(self, R: SX, p: SX) -> Moving:
        """A frame that stands still in this one, at p and turned by R."""
        return Moving(R.T @ self.w, R.T @ self.U @ R, R.T @ (self.a + self.U @ p))


@dataclass(frozen=True)
class Virtual:
    """Virtual velocities of a frame in its own axes, one column for each virtual motion."""

    w: SX  # 3 x motions
    v: SX

    def inside(self, R: SX, p: SX) -> Virtual:
        """Those of a frame that stands still in this one."""
        return Virtual(R.T @ self.w, R.T @ (self.v - skew(p) @ self.w))


class VirtualWorkFormulation(AbstractFormulation):
    r"""Inertia forces of every body at its own reference point, times virtual velocities.

    .. math:: \sum_i \left( v_i^{k} \cdot F_i + \omega_i^{k} \cdot M_i \right)
              + \text{power of what acts} = 0, \qquad k = 1 \ldots n,             \tag{F12}

    :math:`v_i^k, \omega_i^k` being the velocities that body i has when the k-th independent speed
    is one and the others are zero. Inertia is what multiplies the accelerations in it.
    """

    name: ClassVar[str] = "virtual_work"

    def inertia(self) -> SX:
        """Coefficients of nu_dot in the powers of inertia forces."""
        nu_dot = self.system.nu_dot
        powers = self.inertia_powers(self.accelerations(nu_dot), self.Theta)
        return symmetric(ca.densify(-ca.jacobian(powers, nu_dot)))

    def bias(self) -> SX:
        """Their value at zero nu_dot, the other way round."""
        rest = self.accelerations(SX.zeros(len(self.system.independent)))
        return -self.inertia_powers(rest, self.Theta)

    def gravity(self) -> SX:
        """Virtual powers of the weights."""
        return self._weight_powers(self.Theta)

    def tree_forces(self, v_dot: SX) -> SX:
        """Return the same powers for virtual motions of single joints, constraints let go."""
        each, forces = SX.eye(self.system.tree.v.shape[0]), self.system.forces
        powers = self.inertia_powers(v_dot, each) + self._weight_powers(each)
        return -powers - forces.dissipative - forces.elastic

    @cached_property
    def _bodies(self) -> list[tuple[Body, int, RigidInertia]]:
        """Bodies that move: each with its link, and its inertia about its own origin."""
        tree, found = self.system.tree, []
        for body in tree.mechanism.bodies:
            link = tree.body_link[body.name]
            if link != ROOT:
                mass = symbolic_scalar(body.mass, tree.values)
                centre = symbolic_vector(body.com, tree.values)
                tensor = body_tensor(body, tree.values)
                found.append((body, link, RigidInertia.at_centre(mass, centre, tensor)))
        return found

    def inertia_powers(self, v_dot: SX, motions: SX) -> SX:
        """Power of all inertia forces, rotors included, for virtual speeds in columns.  (F12)"""
        moving = self.accelerated(v_dot)
        powers = -ca.densify(motions.T @ (self.system.forces.armature * v_dot))
        for (body, link, own), virtual in self.virtual_bodies(motions):
            pose = self.system.tree.body_pose[body.name]
            F, M = inertia_force(own, moving[link].inside(pose.R, pose.p))
            powers += ca.densify(virtual.v.T @ F + virtual.w.T @ M)
        return powers

    def _weight_powers(self, motions: SX) -> SX:
        tree = self.system.tree
        powers = SX.zeros(motions.shape[1])
        for (body, _, own), virtual in self.virtual_bodies(motions):
            down = tree.body_world_pose(body.name).R.T @ tree.gravity
            powers += virtual.v.T @ (own.mass * down) + virtual.w.T @ cross(own.moment, down)
        return ca.densify(powers)

    def accelerated(self, v_dot: SX) -> list[Moving]:
        r"""Every link in motion, outward, by the square matrices U alone.

        .. math:: U = R^T U_p R + \hat\omega_r \hat\omega_r + \hat\varepsilon_r
                      + 2 R^T \hat\omega_p R\, \hat\omega_r                       \tag{F10}
        """
        tree = self.system.tree
        ground = Moving(SX.zeros(3), SX.zeros(3, 3), SX.zeros(3))
        found: list[Moving] = []
        for link in tree.links:
            before = ground if link.parent == ROOT else found[link.parent]
            carried = before.inside(link.rotation.matrix, link.p)
            own = slice(link.speeds.start, link.speeds.stop)
            turn, slide = link.S_w @ tree.v[own], link.S_v @ tree.v[own]
            w_r, e_r = skew(turn), skew(link.S_w @ v_dot[own])
            U = carried.U + w_r @ w_r + e_r + 2 * skew(carried.w) @ w_r  # (F10)
            a = carried.a + cross(2 * carried.w + turn, slide) + link.S_v @ v_dot[own]
            found.append(Moving(carried.w + turn, U, a))
        return found

    def virtual_bodies(
        self, motions: SX
    ) -> Iterator[tuple[tuple[Body, int, RigidInertia], Virtual]]:
        """Every body with its virtual velocities."""
        tree = self.system.tree
        still = Virtual(SX(3, motions.shape[1]), SX(3, motions.shape[1]))
        links: list[Virtual] = []
        for link in tree.links:
            before = still if link.parent == ROOT else links[link.parent]
            carried = before.inside(link.rotation.matrix, link.p)
            own = motions[link.speeds.start : link.speeds.stop, :]
            links.append(Virtual(carried.w + link.S_w @ own, carried.v + link.S_v @ own))
        for entry in self._bodies:
            pose = tree.body_pose[entry[0].name]
            yield entry, links[entry[1]].inside(pose.R, pose.p)


def inertia_force(own: RigidInertia, moving: Moving) -> tuple[SX, SX]:
    r"""Force and moment of inertia at a body's reference point, which need not be its centre.

    .. math:: F = -m (\gamma + U r_G), \qquad
              M = -(m\, r_G \times \gamma + J \varepsilon + \omega \times J \omega)  \tag{F11}
    """
    F = -(own.mass * moving.a + moving.U @ own.moment)
    J, w = own.tensor, moving.w
    return F, -(cross(own.moment, moving.a) + J @ moving.epsilon + cross(w, J @ w))  # (F11)
