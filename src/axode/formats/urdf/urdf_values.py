"""Numbers in the elements of a URDF file: places, inertia, shapes.

Each reader returns something usable even where the file is wrong, so that one fault does not hide
the others. What makes a file unreadable is a fault; what can be read all the same is a deviation,
kept with what was done about it.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from axode.errors import Fault, suggest
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import Box, Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.files.wheel_proposals import LinkSolid
from axode.mechanism.values.geometry import ORIGIN, rotation_matrix
from axode.numerics.tolerances import MATRIX_ROUNDING

Numbers: TypeAlias = tuple[float, ...]

RIGHT_ANGLE = Decimal("1.5707963267948966192313216916397514420986")
LEAST_DIGITS = 10  # of a right angle that is written as one: 1.570796327 is 2e-10 beside it
MANY_TURNS = 100.0  # [rad]
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.I | re.A)
_COUNTED = {1: "a number", 3: "three numbers"}
AS_WRITTEN = "used as written"
MANY_FOUND = 200  # faults and deviations, after which unknown names are reported without a hint
LARGEST = 1e150  # moments of inertia whose squares are numbers, too


@dataclass
class UrdfFindings:
    """What is wrong with a file: faults, and deviations with what was done about them."""

    faults: list[Fault] = field(default_factory=list)
    deviations: list[tuple[Fault, str]] = field(default_factory=list)

    def all_faults(self) -> list[Fault]:
        """List faults and deviations alike, by line."""
        return _by_line([*self.faults, *(fault for fault, _ in self.deviations)])

    def only_faults(self) -> list[Fault]:
        """List the faults by line."""
        return _by_line(self.faults)

    def with_remedies(self) -> list[Fault]:
        """List the deviations by line; each message ends with what was done."""
        return _by_line(
            replace(fault, message=f"{fault.message} -> {done}") for fault, done in self.deviations
        )


def _by_line(faults: Iterable[Fault]) -> list[Fault]:
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)


@dataclass(frozen=True)
class Owner:
    """The link or joint that elements belong to, and where its faults are kept.

    With `otherwise`, nothing read through it is a fault: that is what is done instead.
    """

    kind: str
    name: str
    findings: UrdfFindings
    otherwise: str = ""

    def report(self, element: Element, field: str, message: str) -> None:
        """Note a fault at the line of an element."""
        if self.otherwise:
            self.note(element, field, message, self.otherwise)
        else:
            self.findings.faults.append(Fault(self.kind, self.name, field, message, element.line))

    def note(self, element: Element, field: str, message: str, done: str) -> None:
        """Note a deviation at the line of an element, and what was done about it."""
        fault = Fault(self.kind, self.name, field, message, element.line)
        self.findings.deviations.append((fault, done))

    def count(self) -> int:
        """Count what has been found until now."""
        return len(self.findings.faults) + len(self.findings.deviations)

    def hint(self, kind: str, name: str, known: Sequence[str]) -> str:
        """The alternatives to an unknown name, unless there were many: each is a long search."""
        return suggest(kind, name, known) if self.count() < MANY_FOUND else ""

    # numbers -------------------------------------------------------------------------------------

    def words(self, element: Element, attribute: str) -> list[str]:
        """Split an attribute into words; commas between them are blanks."""
        text = element.attributes.get(attribute, "")
        if "," in text and re.fullmatch(r"[^,]+(,\s+[^,\s]+)+\s*", text):
            self.note(element, f"{element.tag} {attribute}", "has commas", "taken as blanks")
            text = text.replace(",", " ")
        return text.split()

    def numbers(
        self, element: Element, attribute: str, usual: Numbers, *, required: bool = True
    ) -> Numbers:
        """As many numbers as there usually are."""
        field = f"{element.tag} {attribute}"
        text = element.attributes.get(attribute)
        if text is None:
            if required:
                self.report(element, field, "is missing")
            return usual
        words = self.words(element, attribute)
        if len(words) != len(usual) or not all(map(_NUMBER.fullmatch, words)):
            self.report(element, field, f"expected {_COUNTED[len(usual)]}, got '{text}'")
            return usual
        values = tuple(map(float, words))
        if not all(map(math.isfinite, values)):
            self.report(element, field, f"must be finite, got '{text}'")
            return usual
        return values

    def number(
        self, element: Element, attribute: str, usual: float, *, required: bool = True
    ) -> float:
        """One number."""
        return self.numbers(element, attribute, (usual,), required=required)[0]

    def not_negative(self, element: Element, attribute: str) -> float:
        """A number that is zero unless the file gives a sound one."""
        reader = replace(self, otherwise="left out")
        value = reader.number(element, attribute, 0.0, required=False)
        if value < 0:
            reader.report(element, f"{element.tag} {attribute}", f"must be >= 0, got {value:g}")
        return max(value, 0.0)

    # words that are not read ---------------------------------------------------------------------

    def look_for_slips(self, element: Element, known: tuple[str, ...]) -> None:
        """Note elements that look like a known one misspelt; all others may be extensions."""
        for child in element.children:
            close = close_to(child.tag, known)
            if close and child.tag not in known:
                message = f"unknown element <{child.tag}>.   Did you mean <{close[0]}>?"
                self.note(child, "", message, "ignored")

    def only(self, element: Element, *known: str) -> None:
        """Note attributes other than these: they might be meant to change the mechanism."""
        for attribute in element.attributes:
            if attribute not in known:
                hint = suggest("attribute", attribute, known)
                message = f"unknown attribute '{attribute}'. {hint}"
                self.note(element, element.tag, message, "ignored")

    # parts ---------------------------------------------------------------------------------------

    def origin(self, element: Element) -> tuple[Numbers, Numbers]:
        """Position [m] and roll, pitch, yaw [rad] of a link's or joint's element."""
        return self.pose(element.first("origin"))

    def pose(self, origin: Element | None, *more: str) -> tuple[Numbers, Numbers]:
        """Position [m] and roll, pitch, yaw [rad] in the attributes of an element."""
        if origin is None:
            return ORIGIN, ORIGIN  # type: ignore[return-value]
        self.only(origin, "xyz", "rpy", *more)
        place = self.numbers(origin, "xyz", (0.0, 0.0, 0.0), required=False)
        known = self.count()
        angles = self.numbers(origin, "rpy", (0.0, 0.0, 0.0), required=False)
        if self.count() == known and "rpy" in origin.attributes:
            angles = tuple(map(exact_angle, origin.attributes["rpy"].split()))
        return _no_minus(place), _no_minus(angles)

    def axis(self, joint: Element, tag: str = "axis") -> Numbers | None:
        """Read the unit axis of a joint, x unless the file has another; None for a zero axis."""
        element = joint.first(tag)
        if element is None:
            return (1.0, 0.0, 0.0)
        axis = self.numbers(element, "xyz", (1.0, 0.0, 0.0))
        length = math.hypot(*axis)
        if length == 0.0:
            return None
        if not length < math.inf:
            self.report(element, f"{tag} xyz", "points nowhere; give a direction such as '0 0 1'")
            return (1.0, 0.0, 0.0)
        return _no_minus(tuple(part / length for part in axis))

    def inertial(self, link: Element) -> tuple[float, Numbers, Inertia]:
        """Mass, mass centre and inertia about it in the link's axes; all zero without inertial."""
        element = link.first("inertial")
        nothing = 0.0, ORIGIN, Inertia.point()
        if element is None:
            return nothing  # type: ignore[return-value]
        self.look_for_slips(element, ("origin", "mass", "inertia"))
        com, angles = self.origin(element)
        weight, tensor = element.first("mass"), element.first("inertia")
        if weight is None or "value" not in weight.attributes:
            what = 'has no <mass value="..."/>'
            self.note(element, "inertial", what, "the link is massless")
            return nothing  # type: ignore[return-value]
        self.only(weight, "value")
        mass = self.number(weight, "value", 1.0)
        if tensor is None:
            what = "has no <inertia ixx=... iyy=... izz=.../>"
            self.note(element, "inertial", what, "the link is a point mass")
            return mass, com, Inertia.point()
        return mass, com, self._inertia(weight, tensor, mass, angles)

    def _inertia(self, weight: Element, tensor: Element, mass: float, angles: Numbers) -> Inertia:
        """Inertia in the link's axes; URDF too writes the entries of the tensor."""
        self.only(tensor, "ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        known = self.count()
        point = replace(self, otherwise="the link is a point mass")
        for moment in ("ixx", "iyy", "izz"):
            if moment not in tensor.attributes:
                point.report(tensor, f"inertia {moment}", "is missing")
        names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        xx, yy, zz, xy, xz, yz = (self.number(tensor, n, 0.0, required=False) for n in names)
        if self.count() > known:
            return Inertia.point()
        entries = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if any(angles):
            R = matrix(angles)
            with np.errstate(over="ignore", invalid="ignore"):
                entries = R @ entries @ R.T
                entries = (entries + entries.T) / 2 + 0.0  # without negative zeros
        if not np.isfinite(entries).all() or np.abs(entries).max() > LARGEST:
            self.report(tensor, "inertia", f"no moment may be larger than {LARGEST:g} kg m^2")
            return Inertia.point()
        # a file cannot mark zero moments as intended, so they are accepted
        ideal = bool(np.linalg.eigvalsh(entries)[0] <= 0.0)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = entries.tolist()
        inertia = Inertia(xx, yy, zz, xy, xz, yz, ideal)
        if inertia.is_point(mass):
            return replace(inertia, ideal=True)
        fault = inertia.fault()
        if fault:
            self.note(tensor, "inertia", fault, AS_WRITTEN)
            inertia = replace(inertia, unphysical=True)
        if mass == 0.0 and not inertia.vanishes:
            message = "must be > 0 kg, got 0; a massless body has the inertia of a point"
            self.note(weight, "mass", message, "mass and inertia are " + AS_WRITTEN)
            inertia = replace(inertia, ideal=True)
        return inertia

    # pictures ------------------------------------------------------------------------------------

    def shapes(self, link: Element, tag: str, colours: dict[str, Numbers]) -> list[Shape]:
        """All shapes of a link that pictures can show.

        Args:
            link: The element.
            tag: Those of its "visual" or "collision" elements.
            colours: Colours of the whole file, by the names of their materials.
        """
        reader = replace(self, otherwise="not drawn")
        found: list[Shape] = []
        for element in link.all(tag):
            geometry = element.first("geometry")
            rgba = reader.colour(element.first("material"), colours)
            if rgba[3:] == (0.0,):  # not to be seen
                continue
            for solid in geometry.children if geometry else ():
                known = self.count()
                shape = reader._solid(solid, *reader.origin(element))
                if shape and not any(shape.faults()) and self.count() == known:
                    found.append(replace(shape, colour=rgba[:3] or None))
        return found

    def colour(self, material: Element | None, colours: dict[str, Numbers]) -> Numbers:
        """Red, green, blue and opacity of a material; nothing where it has none."""
        given = material.first("color") if material else None
        if material is None or given is None:
            return colours.get(material.attributes.get("name", ""), ()) if material else ()
        words = self.words(given, "rgba")
        if len(words) not in (3, 4) or not all(map(_NUMBER.fullmatch, words)):
            text = given.attributes.get("rgba", "")
            self.note(given, "color rgba", f"expected four numbers, got '{text}'", "ignored")
            return ()
        values = [float(word) for word in [*words, "1"][:4]]
        if not all(map(math.isfinite, values)):
            return ()
        return tuple(min(max(value, 0.0), 1.0) for value in values)

    def solids(self, link: Element, body: str) -> list[LinkSolid]:
        """List the boxes, cylinders and spheres of a link, those that touch others first."""
        reader = replace(self, findings=UrdfFindings())  # `shape` reports what is wrong
        found: list[LinkSolid] = []
        for element in (*link.all("collision"), *link.all("visual")):
            geometry = element.first("geometry")
            at, angles = reader.origin(element)
            R = matrix(angles)
            for solid in geometry.children if geometry else ():
                if solid.tag == "box":
                    size = reader.numbers(solid, "size", (0.0, 0.0, 0.0))
                    found.append(LinkSolid.box(body, at, size, R))
                elif solid.tag == "sphere":
                    found.append(LinkSolid(body, at, reader.number(solid, "radius", 0.0)))
                elif solid.tag == "cylinder":
                    radius, length = (reader.number(solid, n, 0.0) for n in ("radius", "length"))
                    found.append(LinkSolid.cylinder(body, at, radius, length, R[:, 2]))
        return found if not reader.findings.faults else []

    def _solid(self, solid: Element, at: Numbers, angles: Numbers) -> Shape | None:
        R = matrix(angles)
        if solid.tag == "sphere":
            return Sphere(self.number(solid, "radius", 1.0), at)
        if solid.tag == "cylinder":
            radius, length = (self.number(solid, n, 1.0) for n in ("radius", "length"))
            return Cylinder(radius, length, _no_minus(tuple(map(float, R[:, 2]))), at)
        if solid.tag == "box":
            size = self.numbers(solid, "size", (1.0, 1.0, 1.0))
            upright = np.abs(R).max(axis=1).min() > 1 - 1e-6
            if upright:  # the same box along the body's axes
                return Box(tuple(map(float, np.abs(R) @ size)), at)
            return Box(size, at, angles)
        if solid.tag == "mesh":
            file = solid.attributes.get("filename", "")
            scale = self.numbers(solid, "scale", (1.0, 1.0, 1.0), required=False)
            return Mesh(file, scale, at, angles) if file.isprintable() else None
        return None


def close_to(tag: str, known: tuple[str, ...]) -> list[str]:
    """List the known tag that a tag is a slip of, if it is one."""
    return difflib.get_close_matches(tag.lower(), known, n=1, cutoff=0.8)


def exact_angle(text: str) -> float:
    """Read an angle [rad]: a multiple of a right angle where it is written as one.

    That is a decimal number which shows the first digits of the multiple, ten of them rounded, or
    more of them rounded or cut off, or which differs from it as computed numbers do. Zeros then
    stay zeros in the equations. All other numbers are kept as they are written.
    """
    value = float(text)
    turns = round(value / (math.pi / 2)) if abs(value) < MANY_TURNS else 0
    nearest = turns * (math.pi / 2)
    if abs(value - nearest) < MATRIX_ROUNDING:
        return nearest
    if not turns:
        return value
    written, exact = Decimal(text), turns * RIGHT_ANGLE
    places = -int(written.as_tuple().exponent)
    digits = len(written.as_tuple().digits)
    last_digit = Decimal(1).scaleb(-places)
    allowed = last_digit if digits > LEAST_DIGITS else last_digit / 2
    return nearest if digits >= LEAST_DIGITS and abs(written - exact) <= allowed else value


def matrix(rotation: Numbers) -> np.ndarray:
    """Compute the matrix of roll, pitch, yaw or of a quaternion."""
    return np.array(rotation_matrix(rotation), dtype=float)  # type: ignore[arg-type]


def _no_minus(values: Numbers) -> Numbers:
    """Remove negative zeros."""
    return tuple(value + 0.0 for value in values)
