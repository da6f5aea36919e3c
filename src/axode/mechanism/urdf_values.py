"""What the elements of a URDF file say in numbers: places, inertia, shapes.

Each reader returns something usable even where the file is wrong, so that one fault does not hide
the others; what is wrong has been told then, and the result is thrown away.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from axode.errors import Fault, suggest
from axode.mechanism.bodies import Box, Cylinder, Inertia, Shape, Sphere
from axode.mechanism.geometry import ORIGIN, rotation_matrix
from axode.mechanism.markup import Element

Numbers: TypeAlias = tuple[float, ...]

# A right angle written with nine digits is one: zeros then stay zeros in the equations.
RIGHT_ANGLE_ROUNDING = 1e-8
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)", re.I | re.A)
SOUND = Inertia(1.0, 1.0, 1.0)  # stands in for one that is wrong
_COUNTED = {1: "a number", 3: "three numbers"}


@dataclass(frozen=True)
class Owner:
    """The link or joint that elements belong to, and the list its faults go to."""

    kind: str
    name: str
    faults: list[Fault]

    def tell(self, element: Element, field: str, message: str) -> None:
        """Note a fault at the line of an element."""
        self.faults.append(Fault(self.kind, self.name, field, message, element.line))

    # numbers -------------------------------------------------------------------------------------

    def numbers(self, element: Element, attribute: str, usual: Numbers, *,
                required: bool = True) -> Numbers:  # fmt: skip
        """As many numbers as there usually are."""
        field = f"{element.tag} {attribute}"
        text = element.attributes.get(attribute)
        if text is None:
            if required:
                self.tell(element, field, "is missing")
            return usual
        words = text.split()
        if len(words) != len(usual) or not all(map(_NUMBER.fullmatch, words)):
            self.tell(element, field, f"expected {_COUNTED[len(usual)]}, got '{text}'")
            return usual
        values = tuple(map(float, words))
        if not all(map(math.isfinite, values)):
            self.tell(element, field, f"must be finite, got '{text}'")
            return usual
        return values

    def number(self, element: Element, attribute: str, usual: float, *,
               required: bool = True) -> float:  # fmt: skip
        """One number."""
        return self.numbers(element, attribute, (usual,), required=required)[0]

    def not_negative(self, element: Element, attribute: str) -> float:
        """A number that is zero unless given, and never less."""
        value = self.number(element, attribute, 0.0, required=False)
        if value < 0:
            self.tell(element, f"{element.tag} {attribute}", f"must be >= 0, got {value:g}")
        return value

    # words that nobody reads ---------------------------------------------------------------------

    def look_for_slips(self, element: Element, known: tuple[str, ...]) -> None:
        """Tell of elements that look like a known one misspelt; all others may be extensions."""
        for child in element.children:
            if child.tag not in known:
                close = difflib.get_close_matches(child.tag.lower(), known, n=1, cutoff=0.8)
                if close:
                    message = f"unknown element <{child.tag}>.   Did you mean <{close[0]}>?"
                    self.tell(child, "", message)

    def only(self, element: Element, *known: str) -> None:
        """Tell of attributes other than these: they would change the mechanism and be ignored."""
        for attribute in element.attributes:
            if attribute not in known:
                hint = suggest("attribute", attribute, known)
                self.tell(element, element.tag, f"unknown attribute '{attribute}'. {hint}")

    # parts ---------------------------------------------------------------------------------------

    def origin(self, element: Element) -> tuple[Numbers, Numbers]:
        """Position [m] and roll, pitch, yaw [rad] of a link's or joint's element."""
        origin = element.first("origin")
        if origin is None:
            return ORIGIN, ORIGIN  # type: ignore[return-value]
        self.only(origin, "xyz", "rpy")
        place = self.numbers(origin, "xyz", (0.0, 0.0, 0.0), required=False)
        angles = self.numbers(origin, "rpy", (0.0, 0.0, 0.0), required=False)
        return _no_minus(place), _no_minus(tuple(map(_right_angle, angles)))

    def axis(self, joint: Element) -> Numbers:
        """The unit axis of a joint, x unless the file says another."""
        element = joint.first("axis")
        if element is None:
            return (1.0, 0.0, 0.0)
        axis = self.numbers(element, "xyz", (1.0, 0.0, 0.0))
        length = math.hypot(*axis)
        if not 0.0 < length < math.inf:
            self.tell(element, "axis xyz", "points nowhere; give a direction such as '0 0 1'")
            return (1.0, 0.0, 0.0)
        return _no_minus(tuple(part / length for part in axis))

    def inertial(self, link: Element) -> tuple[float, Numbers, Inertia]:
        """Mass, mass centre and inertia about it in the link's axes; all zero without inertial."""
        element = link.first("inertial")
        if element is None:
            return 0.0, ORIGIN, Inertia.point()  # type: ignore[return-value]
        self.look_for_slips(element, ("origin", "mass", "inertia"))
        com, angles = self.origin(element)
        weight, tensor = element.first("mass"), element.first("inertia")
        mass = 1.0
        if weight is None:
            self.tell(element, "inertial", 'has no <mass value="..."/>')
        else:
            self.only(weight, "value")
            mass = self.number(weight, "value", 1.0)
        if tensor is None:
            self.tell(element, "inertial", "has no <inertia ixx=... iyy=... izz=.../>")
            return mass, com, SOUND
        return mass, com, self._inertia(tensor, angles)

    def _inertia(self, tensor: Element, angles: Numbers) -> Inertia:
        """In the link's axes; URDF writes the entries of the tensor, as we do."""
        known = len(self.faults)
        self.only(tensor, "ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        xx, yy, zz = (self.number(tensor, n, 1.0) for n in ("ixx", "iyy", "izz"))
        xy, xz, yz = (self.number(tensor, n, 0.0, required=False) for n in ("ixy", "ixz", "iyz"))
        if len(self.faults) > known:
            return SOUND
        entries = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if any(angles):
            R = _matrix(angles)
            entries = R @ entries @ R.T
            entries = (entries + entries.T) / 2 + 0.0  # without negative zeros
        # a file cannot say that zero moments are meant, so they are believed
        ideal = bool(np.linalg.eigvalsh(entries)[0] <= 0.0)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = entries.tolist()
        return Inertia(xx, yy, zz, xy, xz, yz, ideal)

    def shape(self, link: Element) -> Shape | None:
        """The first box, cylinder or sphere that pictures can show; meshes are not read."""
        for element in (*link.all("visual"), *link.all("collision")):
            geometry = element.first("geometry")
            for solid in geometry.children if geometry else ():
                shape = self._solid(solid, *self.origin(element))
                if shape is not None and not any(shape.faults()):  # dynamics never looks at it
                    return shape
        return None

    def _solid(self, solid: Element, at: Numbers, angles: Numbers) -> Shape | None:
        R = _matrix(angles)
        if solid.tag == "sphere":
            return Sphere(self.number(solid, "radius", 1.0), at)
        if solid.tag == "cylinder":
            radius, length = (self.number(solid, n, 1.0) for n in ("radius", "length"))
            return Cylinder(radius, length, _no_minus(tuple(map(float, R[:, 2]))), at)
        if solid.tag == "box":
            size = np.abs(R) @ self.numbers(solid, "size", (1.0, 1.0, 1.0))
            upright = np.abs(R).max(axis=1).min() > 1 - 1e-6  # boxes have the axes of their body
            return Box(tuple(map(float, size)), at) if upright else None
        return None


def _matrix(angles: Numbers) -> np.ndarray:
    return np.array(rotation_matrix(angles), dtype=float)  # type: ignore[arg-type]


def _right_angle(angle: float) -> float:
    nearest = round(angle / (math.pi / 2)) * (math.pi / 2)
    return nearest if abs(angle - nearest) < RIGHT_ANGLE_ROUNDING else angle


def _no_minus(values: Numbers) -> Numbers:
    """Without negative zeros."""
    return tuple(value + 0.0 for value in values)
