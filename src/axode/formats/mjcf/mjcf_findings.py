"""What a reader of MJCF files finds: faults, deviations, and elements that are left out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from axode.errors import Fault, OmissionWarning, first_of
from axode.formats.urdf.urdf_values import UrdfFindings
from axode.formats.xml.xml_tree import Element

CONTACTS = "contacts of geoms (add_contact lets a body roll)"
PICTURES = "only for pictures, and marks"
OTHER_PROGRAMS = "data for other programs"
FLEXIBLE = "deformable and generated parts"
PLUGINS = "plugins"
SENSORS = "sensors (measure names quantities of the state)"
TERRAIN = "height fields and distance fields"
FLUID = "forces of air and water"
LIMITS = "limits of joints and tendons"
DRY_FRICTION = "dry friction (damping is viscous here)"
SPRINGS = "springs that are not linear in one coordinate"
DAMPERS = "damping that is not linear in the speed"
ARMATURE = "armature of free joints and of tendons along paths"
NEGATIVE = "stiffness, damping and armature below zero"
TENDONS = "tendons along paths, with what acts on them"
EQUALITIES = "equality constraints that are switched off or of tendons along paths"
LAWS = "control laws of actuators (the motor's input is its force)"
FORCE_LIMITS = "limits of forces that are not symmetric, or of joints and tendons"
ACTUATORS = "actuators that are no motor of one joint or fixed tendon"
WEIGHT = "compensation of weight"
MOCAP = "motion-capture bodies (they are held where they stand)"
KEYS = "keyframes, but for the positions of 'home'"

MOST_NAMED = 5  # of each kind, in a warning; of more, three


@dataclass
class MjcfFindings(UrdfFindings):
    """What is wrong with a file, what was done about it, and what a mechanism cannot hold.

    Attributes:
        left_out: By what they are, the elements that were left out.
        files: By the identity of an element, the included file that it comes from.
        counted: What is no loss: its elements are counted, and `strict` does not refuse them.
        refused: What `strict` refuses, as in the summary.
    """

    counted: ClassVar[tuple[str, ...]] = (PICTURES,)
    refused: ClassVar[str] = "all but pictures"

    left_out: dict[str, list[Fault]] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)

    def _fault(self, element: Element, name: str, field: str, message: str) -> Fault:
        file = self.files.get(id(element), "")
        where = f" (in {file})" if file else ""
        return Fault(element.tag, name, field, message + where, element.line)

    def report(self, element: Element, message: str, field: str = "", name: str = "") -> None:
        """Note a fault at the line of an element."""
        name = name or element.attributes.get("name", "")
        self.faults.append(self._fault(element, name, field, message))

    def note(
        self, element: Element, message: str, done: str, field: str = "", name: str = ""
    ) -> None:
        """Note a deviation at the line of an element, and what was done about it."""
        name = name or element.attributes.get("name", "")
        self.deviations.append((self._fault(element, name, field, message), done))

    def leave_out(self, what: str, element: Element, detail: str = "", name: str = "") -> None:
        """Note an element, or the part of it given by `detail`, as left out."""
        name = name or element.attributes.get("name", "")
        fault = self._fault(element, name, "", detail)
        self.left_out.setdefault(what, []).append(fault)

    def not_negative(self, value: float, element: Element, what: str, name: str) -> float:
        """Return a number; one below zero is left out, and zero instead of it."""
        if value < 0:
            self.leave_out(NEGATIVE, element, f"({what} {value:g})", name)
        return max(value, 0.0)

    def strict_faults(self) -> list[Fault]:
        """List faults, deviations and what is left out, by line; pictures are no loss."""
        lost = [
            replace(fault, message=f"{what} cannot be kept{_detail(fault)}")
            for what, faults in self.left_out.items()
            if what not in self.counted
            for fault in faults
        ]
        return sorted([*self.all_faults(), *lost], key=lambda fault: fault.line or 0)

    def warning(self, source: str) -> OmissionWarning | None:
        """Describe what is left out, kind by kind; None if there is nothing."""
        if not self.left_out:
            return None
        lines = [f"{source}: left out (strict=True refuses {self.refused}):"]
        listed: dict[str, list[str]] = {}
        for what, faults in sorted(self.left_out.items(), key=lambda x: x[0] in self.counted):
            if what in self.counted:
                tags = [fault.kind for fault in faults]
                listed[what] = [f"{tags.count(tag)} {tag}" for tag in dict.fromkeys(tags)]
                lines.append(f"{what}: {', '.join(listed[what])}")
            else:
                listed[what] = [_place(fault) for fault in faults]
                lines.append(f"{what}: {first_of(listed[what], MOST_NAMED, 3)}")
        if any(len(faults) > MOST_NAMED for faults in listed.values()):
            lines.append("strict=True lists every one of them (--option strict=true)")
        return OmissionWarning("\n  ".join(lines), listed)


def _place(fault: Fault) -> str:
    name = f"{fault.kind} {fault.name}" if fault.name else fault.kind
    return f"{name} (line {fault.line}){_detail(fault)}"


def _detail(fault: Fault) -> str:
    text = fault.message.strip()
    return f" {text}" if text.startswith("(") else f": {text}" if text else ""
