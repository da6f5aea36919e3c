"""Platforms on legs: which body is the platform, and the chains that lead to it."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.symbolic.algebra.spatial import SX, cross
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.system import System
from axode.symbolic.tree.frames import ROOT, symbolic_scalar, symbolic_vector
from axode.symbolic.tree.kinematics import Tree

FREEDOMS = 6  # of a leg: as many as a free body has
CONCURRENT = 1e-9  # [m]: how far an axis may miss a point that it passes through
ELSEWHERE = 0.01  # change of parameters that shows whether axes meet only at their defaults
SPANNING = 1e-6  # smallest volume that three axes of a spherical joint span


@dataclass(frozen=True)
class LegJoint:
    """One freedom of a leg: what a unit rate adds to the velocity of all that lies beyond it."""

    speed: int | None  # among all speeds; None for a freedom of the joint that closes the loop
    e: SX  # turning, world axes
    s: SX  # sliding, at the point
    at: SX

    def column(self, point: SX) -> SX:
        r"""Twist at a point for a unit rate.

        .. math:: \begin{bmatrix} e \\ s + e \times (c - p) \end{bmatrix}         \tag{F13}
        """
        return ca.vertcat(self.e, self.s + cross(self.e, point - self.at))  # (F13)


@dataclass(frozen=True)
class Leg:
    """A chain of six freedoms from the ground to the platform."""

    name: str
    joints: tuple[LegJoint, ...]
    links: tuple[tuple[int, int], ...]  # link, and how many of the joints lie before it

    def columns(self, point: SX, before: int = FREEDOMS) -> SX:
        """Twists at a point for unit rates of the first joints."""
        found = SX(6, len(self.joints))
        for k, joint in enumerate(self.joints[:before]):
            found[:, k] = joint.column(point)
        return found


@dataclass(frozen=True)
class Platform:
    """A body that several legs carry."""

    link: int
    floats: bool  # whether the tree holds it by a joint of its own that constrains nothing
    legs: tuple[Leg, ...]
    centre: SX  # C_M in the world


@dataclass(frozen=True)
class _Edge:
    """A joint between two links, of the tree or closing a loop."""

    name: str
    ends: tuple[int, int]
    link: int | None = None  # of the tree: the link that it carries
    closure: Closure | None = None

    def beyond(self, link: int) -> int:
        return self.ends[1] if self.ends[0] == link else self.ends[0]


def find_platform(system: System) -> Platform:
    """The platform of a mechanism, or a refusal that says what is in the way."""
    tree = system.tree
    mechanism = tree.mechanism
    if mechanism.contacts:
        raise _refusal(f"'{mechanism.contacts[0].name}' rolls, and legs only have joints")
    if mechanism.prescribed:
        raise _refusal(f"'{mechanism.prescribed[0].coordinate}' is prescribed")
    if mechanism.couplings:
        raise _refusal(f"coupling '{mechanism.couplings[0].name}' relates joints outside the legs")
    edges = _edges(tree)
    link, floats = _platform_link(tree, edges)
    if floats:
        edges = [edge for edge in edges if edge.link != link]
    legs = []
    for edge in _touching(edges, ROOT):
        legs.append(_leg(tree, edges, edge, link))
    if not legs:
        raise _refusal(f"nothing carries '{_name(tree, link)}'")
    reached = {link} | {i for leg in legs for i, _ in leg.links}
    for i in range(len(tree.links)):
        if i not in reached:
            raise _refusal(f"'{_name(tree, i)}' belongs to no leg from the ground to the platform")
    return Platform(link, floats, tuple(legs), _centre(tree, link))


def _refusal(reason: str) -> NotApplicable:
    return NotApplicable(
        f"formulation 'legs' takes a platform that is carried by legs from the ground: {reason}.\n"
        "  Use another formulation."
    )


def _edges(tree: Tree) -> list[_Edge]:
    found = [_Edge(_name(tree, i), (link.parent, i), link=i) for i, link in enumerate(tree.links)]
    for loop in tree.mechanism.loops:
        closure = Closure(tree, loop)
        found.append(_Edge(loop.name, (closure.first, closure.second), closure=closure))
    return found


def _touching(edges: list[_Edge], link: int) -> list[_Edge]:
    return [edge for edge in edges if link in edge.ends]


def _name(tree: Tree, link: int) -> str:
    bodies = [body for body, own in tree.body_link.items() if own == link]
    return bodies[0] if bodies else tree.speed_names[tree.links[link].speeds.start]


def _platform_link(tree: Tree, edges: list[_Edge]) -> tuple[int, bool]:
    """The link that is free in the tree, else the one that three or more joints hold."""
    free = [i for i, link in enumerate(tree.links) if link.joint.description.is_free]
    if len(free) > 1:
        raise _refusal(f"'{_name(tree, free[0])}' and '{_name(tree, free[1])}' both move freely")
    if free and tree.links[free[0]].parent != ROOT:
        raise _refusal(f"'{_name(tree, free[0])}' moves freely, but not on the ground")
    if free:
        return free[0], True
    busy = [i for i in range(len(tree.links)) if len(_touching(edges, i)) > 2]
    if len(busy) == 1:
        return busy[0], False
    if not busy:
        raise _refusal("no body is held by three joints or more, nor moves freely in the tree")
    raise _refusal(f"'{_name(tree, busy[0])}' and '{_name(tree, busy[1])}' both branch")


def _leg(tree: Tree, edges: list[_Edge], first: _Edge, platform: int) -> Leg:
    """The chain that begins with a joint on the ground."""
    joints: list[LegJoint] = []
    links: list[tuple[int, int]] = []
    here, edge = ROOT, first
    while True:
        joints += _joints(tree, edge, here)
        here = edge.beyond(here)
        if here == platform:
            break
        onward = [other for other in _touching(edges, here) if other is not edge]
        if here == ROOT or len(onward) != 1 or here in {i for i, _ in links}:
            where = "the ground" if here == ROOT else f"'{_name(tree, here)}'"
            raise _refusal(f"the leg of '{first.name}' does not continue from {where}")
        links.append((here, len(joints)))
        edge = onward[0]
    if len(joints) != FREEDOMS:
        raise _refusal(
            f"the leg of '{first.name}' has {len(joints)} freedoms from the ground to "
            f"'{_name(tree, platform)}', not six"
        )
    return Leg(first.name, tuple(joints), tuple(links))


def _joints(tree: Tree, edge: _Edge, start: int) -> list[LegJoint]:
    if edge.closure is not None:  # which way its motions count matters to nothing
        at = edge.closure.world_point
        free = edge.closure.joint.free_directions(edge.closure)
        return [LegJoint(None, e, s, at) for e, s in free]
    assert edge.link is not None
    link, pose = tree.links[edge.link], tree.pose(edge.link)
    sign = 1 if start == link.parent else -1  # seen from beyond, the parent moves the other way
    return [
        LegJoint(j, sign * (pose.R @ link.S_w[:, k]), sign * (pose.R @ link.S_v[:, k]), pose.p)
        for k, j in enumerate(link.speeds)
    ]


def _centre(tree: Tree, link: int) -> SX:
    """Mass centre of the platform; its origin if it weighs nothing."""
    bodies = [b for b in tree.mechanism.bodies if tree.body_link[b.name] == link]
    places = [
        tree.body_world_pose(b.name).point(symbolic_vector(b.com, tree.values)) for b in bodies
    ]
    if len(bodies) == 1:
        return places[0]
    masses = [symbolic_scalar(b.mass, tree.values) for b in bodies]
    whole = sum(masses, SX(0))
    if whole.is_zero():
        return tree.pose(link).p
    return sum((m * c for m, c in zip(masses, places, strict=True)), SX.zeros(3)) / whole


def spherical_joints(system: System, leg: Leg) -> tuple[tuple[int, int, int], SX] | None:
    """Three joints one after the other that turn about a common point, and that point.

    They must do so at all configurations that were looked at, and whatever the parameters are.
    """
    tree, count = system.tree, len(leg.joints)
    stacked = ca.horzcat(*[ca.vertcat(joint.e, joint.s, joint.at) for joint in leg.joints])
    function = ca.Function("axes", [tree.q, tree.t, tree.parameters], [stacked])
    usual = system.defaults
    other = usual + ELSEWHERE * (1 + np.abs(usual)) * (1 + np.arange(usual.size) / 7)
    seen = [
        np.array(function(q, 0.0, p))
        for q in (*system.samples, system.home)
        for p in (usual, other)
    ]
    for first in range(count - 2):
        three = (first, first + 1, first + 2)
        for k in three:
            if all(_concurrent(axes[:, list(three)], axes[6:9, k]) for axes in seen):
                return three, leg.joints[k].at
    return None


def _concurrent(axes: np.ndarray, point: np.ndarray) -> bool:
    e, s, at = axes[0:3], axes[3:6], axes[6:9]
    if np.abs(s).max() > 0 or abs(np.linalg.det(e)) < SPANNING:
        return False
    return bool(np.abs(np.cross(e.T, (point[:, np.newaxis] - at).T)).max() < CONCURRENT)
