"""The book's explicit matrices: twists of all bodies, their inertia, and products."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.mechanism.elements.bodies import Body
from axode.mechanism.values.geometry import Vector
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    cross,
    skew,
    symbolic_scalar,
    symbolic_vector,
    symmetric,
)
from axode.symbolic.formulations.base import AbstractFormulation, projected
from axode.symbolic.tree.inertia import body_tensor


class ComplementFormulation(AbstractFormulation):
    r"""Twists t = U v = T nu at the mass centres, in world axes.

    .. math:: T = U \Theta, \qquad I = T^T M T, \qquad C = T^T M \dot T + T^T W M T,  \tag{F6}

    M = diag(I_i, m_i 1), W = diag(\hat\omega_i, 0). Rotors of geared motors add one row each: the
    joint's speed with the inertia it feels.
    """

    name: ClassVar[str] = "complement"

    @cached_property
    def U(self) -> SX:
        r"""Twists for unit joint speeds, one column each: t = U v.  (F7)"""
        blocks = [self._body_columns(body.name, body.com) for body in self._bodies]
        return ca.vertcat(*blocks, *self._rotor_rows)

    @property
    def _bodies(self) -> list[Body]:
        return self.system.mechanism.bodies

    @cached_property
    def _rotors(self) -> list[int]:
        armature = self.system.forces.armature
        return [j for j in range(armature.shape[0]) if not armature[j].is_zero()]

    @property
    def _rotor_rows(self) -> list[SX]:
        size = self.system.tree.v.shape[0]
        rows = []
        for j in self._rotors:
            row = SX(1, size)
            row[0, j] = 1
            rows.append(row)
        return rows

    def _body_columns(self, body: str, com: Vector) -> SX:
        tree = self.system.tree
        columns = SX(6, tree.v.shape[0])
        centre = tree.body_world_pose(body).point(symbolic_vector(com, tree.values))
        for i in tree.path(tree.body_link[body]):
            link, pose = tree.links[i], tree.pose(i)
            for k, j in enumerate(link.speeds):
                e, s = pose.R @ link.S_w[:, k], pose.R @ link.S_v[:, k]
                columns[:, j] = ca.vertcat(e, s + cross(e, centre - pose.p))  # (F7)
        return columns

    @cached_property
    def M(self) -> SX:
        """diag(I_i, m_i 1) in world axes."""
        tree, values = self.system.tree, self.system.tree.values
        blocks = []
        for body in self._bodies:
            R = tree.body_world_pose(body.name).R
            mass = symbolic_scalar(body.mass, values)
            blocks += [symmetric(R @ body_tensor(body, values) @ R.T), mass * SX.eye(3)]
        blocks += [self.system.forces.armature[j] for j in self._rotors]
        return ca.diagcat(*blocks)

    @cached_property
    def W(self) -> SX:
        """diag(w_i^, 0)."""
        twists = self.U @ self.system.tree.v
        blocks = []
        for i in range(len(self._bodies)):
            blocks += [skew(twists[6 * i : 6 * i + 3]), SX(3, 3)]
        blocks += [SX(1, 1) for _ in self._rotors]
        return ca.diagcat(*blocks)

    @cached_property
    def T(self) -> SX:
        """Twists for unit independent speeds."""
        return self.U @ self.Theta

    @cached_property
    def T_dot(self) -> SX:
        """Its rate along the motion, by differentiation."""
        return self.system.tree.time_derivative(ca.densify(self.T))

    def inertia(self) -> SX:
        """I = T^T M T."""
        return projected(self.T, self.M)

    def coriolis(self) -> SX:
        """C = T^T M Tdot + T^T W M T.  (F6)"""
        return ca.densify(self.T.T @ (self.M @ self.T_dot + self.W @ self.M @ self.T))

    def bias(self) -> SX:
        """T^T (M (Tdot nu + d/dt(U s)) + W M t): explicit time included."""
        tree = self.system.tree
        push = self.T_dot @ self.system.chosen(tree.v)
        if self.system.rheonomic:
            push += tree.time_derivative(ca.densify(self.U @ self._forced_speeds()))
        twists = self.U @ tree.v
        return ca.densify(self.T.T @ (self.M @ push + self.W @ (self.M @ twists)))

    def _forced_speeds(self) -> SX:
        """s(q, t): all speeds at zero independent ones."""
        return self.system.complement.speeds(SX.zeros(len(self.system.independent)))

    def gravity(self) -> SX:
        """T^T w, w the weights of the bodies."""
        return ca.densify(self.T.T @ self._weights())

    def _weights(self) -> SX:
        tree = self.system.tree
        blocks = []
        for body in self._bodies:
            mass = symbolic_scalar(body.mass, tree.values)
            moving = tree.body_link[body.name] != ROOT
            blocks += [SX.zeros(3), mass * tree.gravity if moving else SX.zeros(3)]
        return ca.vertcat(*blocks, *[SX(0) for _ in self._rotors])

    def tree_forces(self, v_dot: SX) -> SX:
        """U^T (M (U v_dot + Udot v) + W M U v - w) minus dampers and springs."""
        forces = self.system.forces
        need = self.required_wrenches(v_dot)
        return ca.densify(self.U.T @ need) - forces.dissipative - forces.elastic

    def required_wrenches(self, v_dot: SX) -> SX:
        """Wrenches on the bodies besides their weight, M t_dot + W M t - w, stacked as U is."""
        tree, U = self.system.tree, ca.densify(self.U)
        t_dot = U @ v_dot + tree.time_derivative(U) @ tree.v
        return self.M @ t_dot + self.W @ (self.M @ (U @ tree.v)) - self._weights()
