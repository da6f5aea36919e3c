"""How the joints of a URDF file hang together: a tree with one root, or why not."""

from __future__ import annotations

from dataclasses import dataclass

from axode.errors import suggest
from axode.mechanism.markup import Element
from axode.mechanism.urdf_values import Numbers, Owner


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

    @property
    def name(self) -> str:
        """Unique among the joints of a sound file."""
        return self.owner.name


def root_of(links: dict[str, Owner], elements: dict[str, Element], joints: list[Joint]) -> str:
    """The link that no joint holds; everything that keeps the file from being a tree is told."""
    holding = _holding_joints(links, joints)
    roots = [name for name in links if name not in holding]
    reached = set(roots)
    children: dict[str, list[str]] = {}
    for child, joint in holding.items():
        children.setdefault(joint.parent, []).append(child)
    waiting = list(roots)
    while waiting:
        found = children.get(waiting.pop(), [])
        reached.update(found)
        waiting.extend(found)
    for name, joint in holding.items():
        if name not in reached and joint.parent in links:
            joint.owner.tell(joint.element, "", "its links hold each other in a ring and reach no "
                             "root; one link is the child of no joint")  # fmt: skip
    for name in roots[1:]:
        links[name].tell(elements[name], "", f"no joint holds it, and none holds '{roots[0]}'; a "
                         "robot has one root: make this link the child of a joint")  # fmt: skip
    return roots[0] if roots else ""


def _holding_joints(links: dict[str, Owner], joints: list[Joint]) -> dict[str, Joint]:
    """The joint that holds each link."""
    holding: dict[str, Joint] = {}
    for joint in joints:
        tell, element = joint.owner.tell, joint.element
        for field, name in (("parent", joint.parent), ("child", joint.child)):
            if not name:
                tell(element, field, f'is missing; name a link: <{field} link="..."/>')
            elif name not in links:
                tell(element.first(field) or element, field,
                     f"unknown link '{name}'. {suggest('link', name, list(links))}")  # fmt: skip
        other = holding.get(joint.child)
        if joint.parent and joint.parent == joint.child:
            tell(element, "child", "a joint needs two different links")
        elif other is not None:
            tell(element, "child", f"joint '{other.name}' holds link '{joint.child}' already, and "
                 "a URDF file is a tree; leave this joint out and close the loop after loading, "
                 "with add_loop")  # fmt: skip
        elif joint.child in links:
            holding[joint.child] = joint
    return holding
