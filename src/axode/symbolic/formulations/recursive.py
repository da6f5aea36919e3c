"""Production default: recursions on the tree, projected by the complement."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import ROOT, SX
from axode.symbolic.constraints.closing import CarriedClusters, carried_clusters
from axode.symbolic.formulations.base import AbstractFormulation, projected
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import (
    ClusterSolve,
    CommonAxes,
    composite_inertia,
    coriolis_matrix,
    find_clusters,
    inertia_of_twists,
    newton_euler,
)

ALWAYS_COMPOSITE = 7  # speeds; up to here it is the cheaper one without counting
# speeds from the ground outwards: the composite way grows with their cube, and loses from ten on
ALWAYS_ARTICULATED = 15
GAIN = 0.98  # of the operations of the usual way: more is no gain, as numbers fold differently


class RecursiveFormulation(AbstractFormulation):
    r"""Composite inertia and Newton-Euler recursion, both in link frames, projected.

    .. math:: I_0 = \Theta_0^T \tilde I \Theta_0, \qquad
              I_0 \dot\nu_0 = \Theta_0^T (B u + Q - \tilde I \sigma_0 - \tilde h), \qquad
              \dot v = \Theta_0 \dot\nu_0 + \sigma_0,                             \tag{F4}

    the recursion taking sigma_0 as its acceleration, so that I~ sigma_0 costs nothing extra. A tree
    takes the articulated-body recursion instead where that counts fewer operations.
    """

    name: ClassVar[str] = "recursive"

    @cached_property
    def tree_inertia(self) -> SX:
        """I~, rotors included."""
        inertia = composite_inertia(self.system.still_tree, self.system.regrouped)
        return inertia + ca.diag(self.system.forces.armature)

    def tree_forces(self, v_dot: SX | None, gravity: bool = True) -> SX:
        """What inputs and constraints must give for all accelerations v_dot."""
        tree, forces = self.system.still_tree, self.system.forces
        motion = tree.motion(tree.v, v_dot, gravity=gravity)
        need = newton_euler(tree, self.system.regrouped, motion)
        if v_dot is not None:
            need += forces.armature * v_dot
        return need - forces.dissipative - forces.elastic if gravity else need

    def inertia(self) -> SX:
        """I = Theta^T I~ Theta, by composite bodies or link by link."""
        return self._shorter(projected(self.Theta, self.tree_inertia), self.Theta)

    def _shorter(self, by_composites: SX, Theta: SX) -> SX:
        """Return an inertia, or the same as a sum over links if that is shorter."""
        if not self._has_few_freedoms:
            return by_composites
        by_twists = self._sum_over_links(Theta)
        counts = [self._operations(ca.cse(x)) for x in (by_composites, by_twists)]
        return by_composites if counts[0] * GAIN <= counts[1] else by_twists

    @cached_property
    def _has_few_freedoms(self) -> bool:
        """Return whether rows leave so few speeds that sums over links may be shorter."""
        system, c = self.system, self.system.complement
        large = c.size > ALWAYS_COMPOSITE and not system.definitions
        return large and not c.legs and len(c.base.independent) ** 2 <= c.size

    def _sum_over_links(self, Theta: SX) -> SX:
        """Theta^T I~ Theta, (D22)."""
        system, armature = self.system, self.system.forces.armature
        return inertia_of_twists(system.still_tree, system.regrouped, armature, ca.sparsify(Theta))

    def required_inertia(self) -> SX:
        """I_0 on the base's speeds, by composite bodies or link by link."""
        c = self.system.complement
        return self._shorter(c.project_inertia(self.tree_inertia), c.Theta_0)

    def coriolis(self) -> SX:
        r"""C = Theta^T (I~ \dot Theta + C~ Theta), C~ by composite bodies.  (F5)

        These all in the same axes, or in those of their links where that takes fewer operations.
        """
        tree, Theta = self.system.tree, ca.sparsify(self.Theta)
        of_links = (tree, self.system.inertias, self.system.spreads)
        rest = SX(*Theta.shape)
        if not Theta.is_constant():
            rest = self.tree_inertia @ ca.sparsify(tree.time_derivative(Theta))
        ways = [CommonAxes(*of_links).coriolis()]
        if _longest_path(tree) <= ALWAYS_ARTICULATED:
            ways.append(coriolis_matrix(*of_links))
        found = [ca.densify(Theta.T @ (rest + ca.sparsify(C) @ Theta)) for C in ways]
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda C: self._operations(ca.cse(self.system.at_speeds(C))))

    def bias(self) -> SX:
        """Theta^T (I~ sigma + h~), sigma the accelerations at zero nu_dot."""
        sigma = self.accelerations(SX.zeros(len(self.system.independent)))
        need = self.tree_forces(None if self.system.is_tree else sigma, gravity=False)
        return ca.densify(self.Theta.T @ need)

    def gravity(self) -> SX:
        """Gravity alone, by the recursion at rest."""
        tree = self.system.still_tree
        at_rest = tree.motion(SX.zeros(tree.v.shape[0]), None)
        force = newton_euler(tree, self.system.regrouped, at_rest)
        return -ca.densify(self.Theta.T @ force)

    def forward_dynamics(self) -> SX:
        """Independent accelerations for the inputs u, (F4)."""
        system, c = self.system, self.system.complement
        applied = ca.densify(system.forces.B @ system.u)
        if system.is_tree:
            return system.chosen(self.solve_forces(applied - self.tree_forces(None)))
        return system.chosen(self.solve_forces(applied - self.tree_forces(c.sigma_0)) + c.sigma_0)

    def solve_forces(self, force: SX, inertia_is_there: bool = False) -> SX:
        """Solve Theta_0^T (I~ a - force) = 0 for accelerations a = Theta_0 nu_0_dot.

        Args:
            force: Forces on all joints.
            inertia_is_there: Whether I~ is formed anyway, so that it costs nothing here.
        """
        if self.system.is_tree:
            return self._tree_forward(force)
        if inertia_is_there and not all(row.on_joints for row in self.system.kept):
            return self._by_composites(force)
        first, *others = [way(force) for way in self._ways]
        if not others:
            return first
        counts = [self._operations(ca.cse(x)) for x in (first, *others)]
        least = min(counts)
        return first if counts[0] * GAIN <= least else others[counts.index(least) - 1]

    @cached_property
    def _ways(self) -> list[Callable[[SX], SX]]:
        """Ways to solve where rows constrain a tree, those that may take fewest operations."""
        system, c = self.system, self.system.complement
        if c.size <= ALWAYS_COMPOSITE or system.definitions:
            return [self._by_composites]
        ways: list[Callable[[SX], SX]] = []
        clusters, longest = self._clusters.clusters, _longest_path(system.tree)
        if longest <= ALWAYS_ARTICULATED or max(map(len, clusters)) >= longest / 2:
            ways.append(self._by_composites)
        if self._has_few_freedoms:
            ways.append(self._by_twists)
        if len(clusters) > 1:
            ways.append(self._by_clusters)
        return ways or [self._by_composites]

    @cached_property
    def _clusters(self) -> CarriedClusters:
        return carried_clusters(self.system.complement)

    def _by_composites(self, force: SX) -> SX:
        """Theta_0 nu_0_dot by the projected composite inertia, (F4)."""
        c = self.system.complement
        inertia = c.project_inertia(self.tree_inertia)
        return c.expand(Factor.of(inertia).solve(c.project(force)))

    def _by_twists(self, force: SX) -> SX:
        """Return the same by an inertia that is projected link by link, (D22)."""
        c = self.system.complement
        inertia = self._sum_over_links(c.Theta_0)
        return c.expand(Factor.of(inertia).solve(ca.densify(c.Theta_0.T @ force)))

    def _by_clusters(self, force: SX) -> SX:
        """Return the same by articulated bodies, cluster by cluster, (D18) and (D23)."""
        found = self._clusters
        return self._articulated(found.Theta, force, found.Gamma).accelerations(found.clusters)

    def _tree_forward(self, force: SX) -> SX:
        """Whichever of composite inertia and articulated bodies takes fewer operations."""
        system = self.system
        if system.tree.v.shape[0] <= ALWAYS_COMPOSITE:
            return Factor.of(self.tree_inertia).solve(force)
        solve = self._articulated(SX.eye(force.shape[0]), force)
        articulated = solve.accelerations(find_clusters(system.tree, ()))
        if _longest_path(system.tree) > ALWAYS_ARTICULATED:
            return articulated
        composite = Factor.of(self.tree_inertia).solve(force)
        return min((composite, articulated), key=self._operations)

    def _articulated(self, Theta_0: SX, force: SX, Gamma: SX | None = None) -> ClusterSolve:
        """The recursion of articulated bodies, for speeds that some independent ones allow."""
        system = self.system
        armature = system.forces.armature
        return ClusterSolve(system.still_tree, system.regrouped, armature, Theta_0, force, Gamma)

    def _operations(self, expression: SX) -> int:
        system = self.system
        tree = system.tree
        inputs = [tree.q, tree.v, system.nu, system.u, system.nu_dot, tree.t, tree.parameters]
        return int(ca.Function("count", inputs, [expression]).n_instructions())

    def required(self, nu_dot: SX) -> tuple[SX, SX]:
        """On the base's speeds: Theta_0^T (I~ v_dot + h~ - Q) and Theta_0^T B."""
        c = self.system.complement
        need = self.tree_forces(self.accelerations(nu_dot))
        return c.project(need), c.project(self.system.forces.B)

    def hold(self, held: list[int], force: SX) -> SX:
        """On a tree, whichever of composite inertia and articulated bodies takes fewer operations.

        Where paths are long, articulated bodies.                                 (D20)
        """
        system = self.system
        if not system.is_tree:
            return self._coupled_hold(held, force)
        order = list(system.complement.base.independent)  # of the speeds that force belongs to
        on_tree = SX.zeros(force.shape)
        on_tree[order] = force
        fixed = [order[j] for j in held]
        free = [j for j in range(force.shape[0]) if j not in fixed]
        solve = self._articulated(SX.eye(force.shape[0])[:, free], on_tree)
        by_links = solve.holding_forces(find_clusters(system.tree, ()))[fixed]
        if _longest_path(system.tree) > ALWAYS_ARTICULATED:
            return by_links
        return min((super().hold(held, force), by_links), key=self._operations)

    def _coupled_hold(self, held: list[int], force: SX) -> SX:
        """Return the same where rows on joints alone constrain a tree, by clusters.  (D18)"""
        system, c = self.system, self.system.complement
        on_joints = all(row.on_joints for row in system.kept) and not system.definitions
        if not on_joints or system.tree.v.shape[0] <= ALWAYS_COMPOSITE:
            return super().hold(held, force)
        free = [k for k in range(force.shape[0]) if k not in set(held)]
        whole = SX.zeros(system.tree.v.shape[0])
        whole[list(c.base.independent)] = force  # Theta_0^T whole = force
        clusters = find_clusters(system.tree, [row.entries for row in system.kept])
        v_dot = self._articulated(c.Theta_0[:, free], whole).accelerations(clusters)
        at_rest = system.still_tree.motion(SX.zeros(whole.shape[0]), v_dot, gravity=False)
        need = newton_euler(system.still_tree, system.regrouped, at_rest)
        need += system.forces.armature * v_dot
        by_links = force[held] - c.project(need)[held]  # (D20)
        longest = _longest_path(system.tree)
        if longest > ALWAYS_ARTICULATED and max(map(len, clusters)) < longest / 2:
            return by_links
        return min((super().hold(held, force), by_links), key=self._operations)

    def on_independent(self, force: SX) -> SX:
        """B^-T times a force on the base's speeds, (N3)."""
        c = self.system.complement
        return force if c.is_direct else c.B.solve_transposed(force)


def _longest_path(tree: Tree) -> int:
    """Most speeds that one link moves with."""
    moved: list[int] = []
    for link in tree.links:
        own = link.speeds.stop - link.speeds.start
        moved.append(own + (0 if link.parent == ROOT else moved[link.parent]))
    return max(moved, default=0)
