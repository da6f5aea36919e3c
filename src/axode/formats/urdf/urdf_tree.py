"""How the joints of a URDF file are connected: a tree with one root, or why not."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from axode.formats.urdf.urdf_values import Numbers, Owner
from axode.formats.xml.xml_tree import Element


@dataclass(frozen=True)
class Mimic:
    """What a joint follows: its position is multiplier times the leader's, plus offset."""

    element: Element
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint of the file with all its numbers."""

    owner: Owner
    element: Element
    type: str
    parent: str
    child: str
    at: Numbers
    angles: Numbers
    axis: Numbers
    effort: float
    damping: float
    friction: float
    mimic: Mimic | None = None

    @property
    def name(self) -> str:
        """Unique among the joints of a sound file."""
        return self.owner.name


def root_of(
    links: dict[str, Owner],
    elements: dict[str, Element],
    joints: list[Joint],
    *,
    links_named: bool = True,
    joints_named: bool = True,
) -> tuple[str, dict[str, Joint]]:
    """Find the link that no joint holds, and the joint that holds each other link.

    What keeps the file from being a tree is reported; joints that hold a link a second time are
    noted, and not among the holding ones.

    Args:
        links: By name.
        elements: Elements of the links, by name.
        joints: All of them.
        links_named: Whether every link has a name of its own; else names may seem unknown.
        joints_named: Whether every joint has one; else links may seem to hang free.
    """
    known = [_knows_its_links(joint, links, links_named) for joint in joints]
    holding = _holding_joints(joints, links)
    roots = [name for name in links if name not in holding]
    if (
        all(known) and links_named and joints_named
    ):  # else what seems loose may belong to what could not be read
        _report_rings(roots, holding)
        for name in roots[1:]:
            links[name].report(
                elements[name],
                "",
                f"no joint holds it, and none holds '{roots[0]}'; "
                "a robot has one root: make this link the child of a "
                "joint",
            )
    return (roots[0] if roots else ""), holding


def _knows_its_links(joint: Joint, links: dict[str, Owner], links_named: bool) -> bool:
    """Return whether a joint has two links; report why not."""
    report, element = joint.owner.report, joint.element
    for field, name in (("parent", joint.parent), ("child", joint.child)):
        if not name:
            report(element, field, f'is missing; name a link: <{field} link="..."/>')
        elif name not in links and links_named:
            report(
                element.first(field) or element,
                field,
                f"unknown link '{name}'. {joint.owner.hint('link', name, [*links])}",
            )
    if joint.parent and joint.parent == joint.child:
        report(element, "child", "a joint needs two different links")
    return joint.parent in links and joint.child in links and joint.parent != joint.child


def _holding_joints(joints: list[Joint], links: dict[str, Owner]) -> dict[str, Joint]:
    """The joint that holds each link; note a second one, which closes a loop.

    Of several joints that could hold a link, it is the first in the file that a root leads to.
    """
    leaving: dict[str, list[int]] = {}
    for number, joint in enumerate(joints):
        leaving.setdefault(joint.parent, []).append(number)
    held = {joint.child for joint in joints}
    holding: dict[str, Joint] = {}
    waiting = [number for name in links if name not in held for number in leaving.get(name, ())]
    heapq.heapify(waiting)
    while waiting:
        joint = joints[heapq.heappop(waiting)]
        if joint.child not in holding:
            holding[joint.child] = joint
            for number in leaving.get(joint.child, ()):
                heapq.heappush(waiting, number)
    for joint in joints:
        first = holding.setdefault(joint.child, joint)
        if first is not joint and joint.child:
            already = f"joint '{first.name}' holds link '{joint.child}' already"
            message = f"{already}, and a URDF file is a tree"
            joint.owner.note(joint.element, "child", message, "closes a loop")
    return holding


def _report_rings(roots: list[str], holding: dict[str, Joint]) -> None:
    """Report joints that no root leads to."""
    children: dict[str, list[str]] = {}
    for child, joint in holding.items():
        children.setdefault(joint.parent, []).append(child)
    reached, waiting = set(roots), list(roots)
    while waiting:
        found = children.get(waiting.pop(), [])
        reached.update(found)
        waiting.extend(found)
    for child, joint in holding.items():
        if child not in reached:
            joint.owner.report(
                joint.element,
                "",
                "its links hold each other in a ring and reach no "
                "root; one link is the child of no joint",
            )
