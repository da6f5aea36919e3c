"""The joints of a URDF file, one by one, and which of them follow others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from axode.errors import suggest
from axode.formats.urdf.urdf_tree import Joint, Mimic
from axode.formats.urdf.urdf_values import Numbers, Owner, matrix
from axode.formats.xml.xml_tree import Element

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
DRIVEN = ("revolute", "continuous", "prismatic")  # what one motor can move
EXTENSION = "spherical"  # a type that some programs add
X = (1.0, 0.0, 0.0)
BY_ITSELF = "the joint moves by itself"


@dataclass(frozen=True)
class JointReader:
    """Reads one joint."""

    owner: Owner

    def read(self, element: Element) -> Joint:
        """Read the joint with all its numbers."""
        owner = self.owner
        kind = written = self._type(element)
        at, angles = owner.origin(element)
        ends = (element.first("parent"), element.first("child"))
        parent, child = (end.attributes.get("link", "") if end else "" for end in ends)
        axis: Numbers = X
        if kind not in ("fixed", "floating", EXTENSION):
            kind, axis = self._axis(element, kind)
        limit = element.first("limit")
        dynamics = element.first("dynamics") if written != "fixed" else None
        effort = owner.not_negative(limit, "effort") if limit else 0.0
        damping, friction = (
            owner.not_negative(dynamics, n) if dynamics else 0.0 for n in ("damping", "friction")
        )
        return Joint(
            owner,
            element,
            kind,
            parent,
            child,
            at,
            angles,
            axis,
            effort,
            damping,
            friction,
            self._mimic(element),
        )

    def _type(self, element: Element) -> str:
        kind = element.attributes.get("type", "")
        if not kind:
            self.owner.report(element, "type", f"is missing. {suggest('type', '', TYPES)}")
        elif kind == EXTENSION:
            message = f"'{kind}' is no type of URDF. {suggest('type', '', TYPES)}"
            self.owner.note(element, "type", message, "a ball joint, as its name says")
        elif kind not in TYPES:
            hint = suggest("type", kind, TYPES)
            self.owner.report(element, "type", f"unknown type '{kind}'. {hint}")
        return kind

    def _axis(self, element: Element, kind: str) -> tuple[str, Numbers]:
        """Read type and axis; without a direction there is nothing to turn about or slide along."""
        axis = self.owner.axis(element)
        if axis is not None:
            return kind, axis
        place = element.first("axis") or element
        message = "points nowhere; give a direction such as '0 0 1'"
        if kind == "planar":
            self.owner.report(place, "axis xyz", message)
        else:
            self.owner.note(place, "axis xyz", message, "the joint is fixed")
        return "fixed", X

    def _mimic(self, element: Element) -> Mimic | None:
        mimic = element.first("mimic")
        if mimic is None:
            return None
        self.owner.only(mimic, "joint", "multiplier", "offset")
        multiplier = self.owner.number(mimic, "multiplier", 1.0, required=False)
        offset = self.owner.number(mimic, "offset", 0.0, required=False)
        return Mimic(mimic, mimic.attributes.get("joint", ""), multiplier, offset)


def follow(joints: dict[str, Joint]) -> dict[str, Joint]:
    """Resolve what each joint follows.

    A leader that cannot move, and a multiplier of zero, hold a joint at its offset. A leader that
    is unknown or has several coordinates leads nothing.
    """
    return {name: _follow(joint, joints) for name, joint in joints.items()}


def _follow(joint: Joint, joints: dict[str, Joint]) -> Joint:
    mimic = joint.mimic
    if mimic is None:
        return joint
    alone = replace(joint, mimic=None)
    note = joint.owner.note
    if joint.type not in DRIVEN:
        message = f"a joint of type {joint.type} cannot follow another"
        note(mimic.element, "mimic", message, "ignored")
        return alone
    leader, start = joints.get(mimic.leader), joint.name
    if leader is None or mimic.leader == start:
        others = [name for name, other in joints.items() if name != start and other.type in DRIVEN]
        hint = joint.owner.hint("joint", mimic.leader, others)
        message = f"cannot follow joint '{mimic.leader}'. {hint}"
        note(mimic.element, "mimic", message, BY_ITSELF)
        return alone
    if leader.type == "fixed" or mimic.multiplier == 0.0:
        why = f"follows joint '{mimic.leader}', which is fixed"
        if leader.type != "fixed":
            why = f"follows joint '{mimic.leader}' with multiplier 0"
        note(mimic.element, "mimic", why, f"held at {mimic.offset:g}")
        return _hold(alone, mimic.offset)
    if leader.type not in DRIVEN:
        message = f"joint '{mimic.leader}' is {leader.type}, and has no single position to follow"
        note(mimic.element, "mimic", message, BY_ITSELF)
        return alone
    return joint


def _hold(joint: Joint, position: float) -> Joint:
    """Fix a joint where it is."""
    R = matrix(joint.angles)
    axis = np.array(joint.axis)
    at: Any = joint.at
    turned: Any = joint.angles
    if joint.type == "prismatic":
        at = tuple(map(float, np.array(joint.at) + R @ axis * position))
    elif position:
        half = position / 2
        q = (float(np.cos(half)), *map(float, np.sin(half) * axis))
        turned = tuple(tuple(row) for row in (R @ matrix(q)).tolist())
    return replace(joint, type="fixed", at=at, angles=turned, effort=0.0, damping=0.0, friction=0.0)
