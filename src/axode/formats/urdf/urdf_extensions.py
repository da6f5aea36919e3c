"""Extensions of URDF by other programs that affect the motion.

They are not read, but reported, since the mechanism moves differently without them.
"""

from __future__ import annotations

from axode.formats.urdf.urdf_values import Owner, UrdfFindings, close_to
from axode.formats.xml.xml_tree import Element

NOT_READ = "not read"
ROTORS = ("drake:rotor_inertia", "motorInertia")
# in <gazebo>, and whether it acts if it is on
FORCES = {
    "springStiffness": True,
    "dampingFactor": True,
    "gravity": False,
    "turnGravityOff": True,
    "kinematic": True,
    "static": True,
}


def note_extensions(robot: Element, findings: UrdfFindings, known: tuple[str, ...]) -> None:
    """Note forces, inertia and elements of joints that are not of URDF.

    Args:
        robot: The file's outermost element.
        findings: Where they are noted.
        known: Elements of a joint that are of URDF.
    """
    for element in robot.children:
        name = element.attributes.get("name", "")
        if element.tag == "gazebo":
            owner = Owner("gazebo", element.attributes.get("reference", ""), findings)
            for part in element.children:
                if part.tag in FORCES and _is_on(part) == FORCES[part.tag]:
                    owner.note(part, part.tag, f"is {_value(part)}", NOT_READ)
        elif element.tag == "transmission":
            owner = Owner("transmission", name, findings)
            for part in (p for actuator in element.all("actuator") for p in actuator.children):
                if part.tag in ROTORS and _is_on(part):
                    owner.note(part, part.tag, f"is {_value(part)}", NOT_READ)
        elif element.tag == "joint" and name:
            _note_joint(element, Owner("joint", name, findings), known)


def _note_joint(joint: Element, owner: Owner, known: tuple[str, ...]) -> None:
    for part in joint.children:
        if part.tag == "dynamics":
            owner.only(part, "damping", "friction")
        elif part.tag not in known and not close_to(part.tag, known):
            owner.note(part, "", f"<{part.tag}> is not of URDF", NOT_READ)


def _value(element: Element) -> str:
    return (element.attributes.get("value") or element.text or "").strip()


def _is_on(element: Element) -> bool:
    """Return whether a switch is on, or a number is not zero."""
    value = _value(element).lower()
    try:
        return float(value) != 0.0
    except ValueError:
        return value not in ("", "false")
