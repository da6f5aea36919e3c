"""Which links a platform's legs consist of: topology alone, without geometry."""

from __future__ import annotations

from dataclasses import dataclass

from axode.errors import NotApplicable
from axode.mechanism.elements.parts import Connection
from axode.symbolic.algebra.frames import ROOT
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
    legs = tuple(_leg(tree, edges, edge, link) for edge in _touching(edges, ROOT))
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


def _leg(tree: Tree, edges: list[LegEdge], first: LegEdge, platform: int) -> LegTopology:
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
