"""Poses, axes, inertia and shapes in the elements of a URDF file."""

from __future__ import annotations

import math
from dataclasses import dataclass

from axode.formats.xml.findings import Findings, Owner
from axode.formats.xml.values import Numbers, box, exact_angle, matrix, numbers_in
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.files.wheel_proposals import LinkSolid
from axode.mechanism.values.geometry import ORIGIN

_SOLIDS = ("sphere", "cylinder", "box")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass(frozen=True)
class UrdfOwner(Owner):
    """The link or joint that elements belong to."""

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
        self.only(tensor, *_MOMENTS)
        known = self.count()
        for moment in _MOMENTS[:3]:
            if moment not in tensor.attributes:
                done = "the link is a point mass"
                self.note(tensor, f"inertia {moment}", "is missing", done)
        entries = [self.number(tensor, name, 0.0, required=False) for name in _MOMENTS]
        if self.count() > known:
            return mass, com, Inertia.point()
        R = matrix(angles) if any(angles) else None
        return mass, com, self.inertia(weight, tensor, mass, entries, R)

    # pictures ------------------------------------------------------------------------------------

    def shapes(self, link: Element, tag: str, colours: dict[str, Numbers]) -> list[Shape]:
        """All shapes of a link that pictures can show.

        Args:
            link: The element.
            tag: Those of its "visual" or "collision" elements.
            colours: Colours of the whole file, by the names of their materials.
        """
        reader = self.aside("not drawn")
        found: list[Shape] = []
        for element in link.all(tag):
            geometry = element.first("geometry")
            rgba = reader.colour(element.first("material"), colours)
            if rgba[3:] == (0.0,):  # not to be seen
                continue
            for solid in geometry.children if geometry else ():
                known = self.count()
                shape = reader._solid(solid, *reader.origin(element), rgba[:3] or None)
                if shape and self.count() == known and not any(shape.faults()):
                    found.append(shape)
        return found

    def colour(self, material: Element | None, colours: dict[str, Numbers]) -> Numbers:
        """Red, green, blue and opacity of a material; nothing where it has none."""
        given = material.first("color") if material else None
        if material is None or given is None:
            return colours.get(material.attributes.get("name", ""), ()) if material else ()
        values = numbers_in(self.words(given, "rgba"))
        if values is None or len(values) not in (3, 4):
            text = given.attributes.get("rgba", "")
            self.note(given, "color rgba", f"expected four numbers, got '{text}'", "ignored")
            return ()
        if not all(map(math.isfinite, values)):
            return ()
        return tuple(min(max(value, 0.0), 1.0) for value in (*values, 1.0)[:4])

    def solids(self, link: Element, body: str) -> list[LinkSolid]:
        """List the boxes, cylinders and spheres of a link, those that touch others first."""
        reader = type(self)(self.kind, self.name, Findings())  # `shapes` reports what is wrong
        found: list[LinkSolid | None] = []
        for element in (*link.all("collision"), *link.all("visual")):
            geometry = element.first("geometry")
            solids = [s for s in geometry.children if s.tag in _SOLIDS] if geometry else []
            if solids:
                place = reader.origin(element)
                found += [LinkSolid.of(body, reader._solid(s, *place)) for s in solids]
        return [solid for solid in found if solid] if not reader.findings.faults else []

    def _solid(
        self, solid: Element, at: Numbers, angles: Numbers, colour: Numbers | None = None
    ) -> Shape | None:
        if solid.tag == "sphere":
            return Sphere(self.number(solid, "radius", 1.0), at, colour)
        if solid.tag == "cylinder":
            radius, length = (self.number(solid, n, 1.0) for n in ("radius", "length"))
            axis = _no_minus(tuple(matrix(angles)[:, 2].tolist()))
            return Cylinder(radius, length, axis, at, colour)
        if solid.tag == "box":
            size = self.numbers(solid, "size", (1.0, 1.0, 1.0))
            return box(size, at, matrix(angles), angles, colour)
        if solid.tag == "mesh":
            file = solid.attributes.get("filename", "")
            scale = self.numbers(solid, "scale", (1.0, 1.0, 1.0), required=False)
            return Mesh(file, scale, at, angles, colour) if file.isprintable() else None
        return None


def _no_minus(values: Numbers) -> Numbers:
    """Remove negative zeros."""
    return tuple(value + 0.0 for value in values)
