"""Platforms on legs: which body is the platform, and the chains that lead to it."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.mechanism.elements.parts import Connection
from axode.symbolic.algebra.frames import ROOT, symbolic_scalar, symbolic_vector
from axode.symbolic.algebra.spatial import SX, cross
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.constraints.system import System
from axode.symbolic.tree.kinematics import Tree


@dataclass(frozen=True)
class LegEdge:
    """A joint between two links, of the tree or closing a loop."""

    name: str
    ends: tuple[int, int]
    speeds: tuple[str, ...]
    link: int | None = None  # of the tree: the link that it carries
    loop: Connection | None = None

    def beyond(self, link: int) -> int:
        """Link at the other end."""
        return self.ends[1] if self.ends[0] == link else self.ends[0]


@dataclass(frozen=True)
class LegTopology:
    """Joints of one leg in order from the ground, and the links that they pass.

    Attributes:
        name: Name of its joint on the ground.
        steps: Joints, each with the link before it.
        links: Links between ground and platform, each with the freedoms that lie before it.
    """

    name: str
    steps: tuple[tuple[LegEdge, int], ...]
    links: tuple[tuple[int, int], ...]

    @property
    def speeds(self) -> tuple[str, ...]:
        """Names of the freedoms, those of the joint that closes a loop included."""
        return tuple(name for edge, _ in self.steps for name in edge.speeds)


@dataclass(frozen=True)
class PlatformTopology:
    """A platform and the paths of its legs."""

    link: int
    floats: bool  # whether the tree holds it by a joint of its own that constrains nothing
    body: str
    legs: tuple[LegTopology, ...]


def platform_topology(tree: Tree) -> PlatformTopology:
    """Find the platform of a mechanism and its legs.

    Raises:
        NotApplicable: saying what is in the way.
    """
    mechanism = tree.mechanism
    if mechanism.contacts:
        raise refusal(f"'{mechanism.contacts[0].name}' rolls, and legs only have joints")
    if mechanism.prescribed:
        raise refusal(f"'{mechanism.prescribed[0].coordinate}' is prescribed")
    if mechanism.couplings:
        raise refusal(f"coupling '{mechanism.couplings[0].name}' relates joints outside the legs")
    edges = _edges(tree)
    link, floats = _platform_link(tree, edges)
    if floats:
        edges = [edge for edge in edges if edge.link != link]
    legs = tuple(_leg_path(tree, edges, edge, link) for edge in _touching(edges, ROOT))
    if not legs:
        raise refusal(f"nothing carries '{_name(tree, link)}'")
    reached = {link} | {i for leg in legs for i, _ in leg.links}
    for i in range(len(tree.links)):
        if i not in reached:
            raise refusal(f"'{_name(tree, i)}' belongs to no leg from the ground to the platform")
    return PlatformTopology(link, floats, _name(tree, link), legs)


def refusal(reason: str) -> NotApplicable:
    """Error for a mechanism without a platform on legs."""
    return NotApplicable(
        "formulation 'legs' and model.legs take a platform that is carried by legs from the "
        f"ground: {reason}.\n  Other formulations and functions do not need legs."
    )


def _edges(tree: Tree) -> list[LegEdge]:
    owners = {
        speed: connection.name
        for connection in tree.mechanism.connections
        for speed in connection.speeds
    }
    found = []
    for i, link in enumerate(tree.links):
        speeds = tuple(tree.speed_names[j] for j in link.speeds)
        found.append(LegEdge(owners[speeds[0]], (link.parent, i), speeds, link=i))
    for loop in tree.mechanism.loops:
        ends = (tree.body_link[loop.parent], tree.body_link[loop.child])
        found.append(LegEdge(loop.name, ends, loop.speeds, loop=loop))
    return found


def _touching(edges: list[LegEdge], link: int) -> list[LegEdge]:
    return [edge for edge in edges if link in edge.ends]


def _name(tree: Tree, link: int) -> str:
    bodies = [body for body, own in tree.body_link.items() if own == link]
    return bodies[0] if bodies else tree.speed_names[tree.links[link].speeds.start]


def _platform_link(tree: Tree, edges: list[LegEdge]) -> tuple[int, bool]:
    """The link that is free in the tree, else the one that three or more joints hold."""
    free = [i for i, link in enumerate(tree.links) if link.joint.description.is_free]
    if len(free) > 1:
        raise refusal(f"'{_name(tree, free[0])}' and '{_name(tree, free[1])}' both move freely")
    if free and tree.links[free[0]].parent != ROOT:
        raise refusal(f"'{_name(tree, free[0])}' moves freely, but not on the ground")
    if free:
        return free[0], True
    busy = [i for i in range(len(tree.links)) if len(_touching(edges, i)) > 2]
    if len(busy) == 1:
        return busy[0], False
    if not busy:
        raise refusal("no body is held by three joints or more, nor moves freely in the tree")
    raise refusal(f"'{_name(tree, busy[0])}' and '{_name(tree, busy[1])}' both branch")


def _leg_path(tree: Tree, edges: list[LegEdge], first: LegEdge, platform: int) -> LegTopology:
    """The chain that begins with a joint on the ground."""
    steps: list[tuple[LegEdge, int]] = []
    links: list[tuple[int, int]] = []
    here, edge, freedoms = ROOT, first, 0
    while True:
        steps.append((edge, here))
        freedoms += len(edge.speeds)
        here = edge.beyond(here)
        if here == platform:
            return LegTopology(first.name, tuple(steps), tuple(links))
        onward = [other for other in _touching(edges, here) if other is not edge]
        if here == ROOT or len(onward) != 1 or here in {i for i, _ in links}:
            where = "the ground" if here == ROOT else f"'{_name(tree, here)}'"
            raise refusal(f"the leg of '{first.name}' does not continue from {where}")
        links.append((here, freedoms))
        edge = onward[0]


FREEDOMS = 6  # of a leg that constrains nothing: as many as a free body has
CONCURRENT = 1e-9  # [m]: how far an axis may miss a point that it passes through
PERTURBATION = 0.01  # change of parameters that shows whether axes meet only at their defaults
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
class ClosingJoint:
    """The joint of a leg that closes a loop, seen on the way to the platform."""

    name: str
    closure: Closure
    towards: int  # the link behind it
    beyond: tuple[int, ...]  # links from there to the platform, which is not among them


@dataclass(frozen=True)
class Leg:
    """A chain of joints from the ground to the platform."""

    name: str
    joints: tuple[LegJoint, ...]
    links: tuple[tuple[int, int], ...]  # link, and how many of the joints lie before it
    closing: ClosingJoint | None  # None for the leg that the tree goes through

    def columns(self, point: SX, before: int | None = None) -> SX:
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


def find_platform(system: System) -> Platform:
    """The platform of a mechanism, or a refusal that says what is in the way."""
    tree = system.tree
    paths = platform_topology(tree)
    legs = tuple(_leg(tree, path) for path in paths.legs)
    return Platform(paths.link, paths.floats, legs, _centre(tree, paths.link))


def require_six_freedoms(system: System, platform: Platform) -> None:
    """Refuse platforms whose legs, or which themselves, have not six freedoms.

    Raises:
        NotApplicable: naming the first leg with more or fewer, or the quasi-velocities.
    """
    for leg in platform.legs:
        if len(leg.joints) != FREEDOMS:
            raise NotApplicable(
                "formulation 'legs' and the matrices Y and Z take legs of six freedoms: the leg of "
                f"'{leg.name}' has {len(leg.joints)} freedoms from the ground to the platform.\n"
                "  Other formulations take it; model.legs has its Jacobian and its wrench."
            )
    if system.definitions:
        names = ", ".join(row.owner for row in system.definitions)
        raise NotApplicable(
            "formulation 'legs' and the matrices Y and Z take speeds of joints as independent "
            f"ones, and no quasi-velocities: {names}.\n  Use another formulation."
        )
    if len(system.independent) != FREEDOMS:
        raise NotApplicable(
            f"formulation 'legs' takes platforms with six freedoms; '{system.mechanism.name}' "
            f"has {len(system.independent)}.\n  Use another formulation."
        )


def _leg(tree: Tree, path: LegTopology) -> Leg:
    joints: list[LegJoint] = []
    closing = None
    for k, (edge, before) in enumerate(path.steps):
        if edge.loop is not None:  # which way its motions count matters to nothing
            closure = Closure(tree, edge.loop)
            beyond = tuple(link for link, _ in path.links[k:])
            closing = ClosingJoint(edge.name, closure, edge.beyond(before), beyond)
            free = closure.joint.free_directions(closure)
            joints += [LegJoint(None, e, s, closure.world_point) for e, s in free]
        else:
            joints += _joints(tree, edge, before)
    return Leg(path.name, tuple(joints), path.links, closing)


def _joints(tree: Tree, edge: LegEdge, start: int) -> list[LegJoint]:
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
    other = usual + PERTURBATION * (1 + np.abs(usual)) * (1 + np.arange(usual.size) / 7)
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
