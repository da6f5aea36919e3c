"""How the joints of a URDF file hang together: a tree with one root, or why not."""

from __future__ import annotations

from dataclasses import dataclass

from axode.errors import suggest
from axode.mechanism.files.urdf_values import Numbers, Owner
from axode.mechanism.files.xml_tree import Element


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
) -> str:
    """Find the link that no joint holds; report all that keeps the file from being a tree.

    Args:
        links: By name.
        elements: Elements of the links, by name.
        joints: All of them.
        links_named: Whether every link has a name of its own; else names may seem unknown.
        joints_named: Whether every joint has one; else links may seem to hang free.
    """
    known = [_knows_its_links(joint, links, links_named) for joint in joints]
    holding = _holding_joints(joints)
    roots = [name for name in links if name not in holding]
    if (
        all(known) and links_named and joints_named
    ):  # else what seems loose may hang on what could not be read
        _report_rings(roots, holding)
        for name in roots[1:]:
            links[name].report(
                elements[name],
                "",
                f"no joint holds it, and none holds '{roots[0]}'; "
                "a robot has one root: make this link the child of a "
                "joint",
            )
    return roots[0] if roots else ""


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
                f"unknown link '{name}'. {suggest('link', name, list(links))}",
            )
    if joint.parent and joint.parent == joint.child:
        report(element, "child", "a joint needs two different links")
    return joint.parent in links and joint.child in links and joint.parent != joint.child


def _holding_joints(joints: list[Joint]) -> dict[str, Joint]:
    """The joint that holds each link; report a second one."""
    holding: dict[str, Joint] = {}
    for joint in joints:
        first = holding.setdefault(joint.child, joint)
        if first is not joint and joint.child:
            joint.owner.report(
                joint.element,
                "child",
                f"joint '{first.name}' holds link "
                f"'{joint.child}' already, and a URDF file is a tree; leave this "
                "joint out and close the loop after loading, with "
                "add_loop",
            )
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
