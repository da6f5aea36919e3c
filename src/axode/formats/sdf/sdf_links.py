"""Links of an SDF file: mass, inertia, and the shapes that pictures show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from axode.formats.sdf.sdf_scopes import FrameResolver, SdfFrame
from axode.formats.sdf.sdf_values import LINK_PARTS, MOVED, UNKNOWN, SdfOwner, SdfPose
from axode.formats.xml.findings import FLUID, Findings
from axode.formats.xml.values import Numbers, box, cleaned
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import GROUND, Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.files.wheel_proposals import Geometry, LinkSolid

WATER = 1000.0  # [kg/m^3], the density of what has none
_SOLIDS = ("box", "cylinder", "sphere", "capsule", "ellipsoid", "cone")
_DEFAULT = "1 kg and 1 kg m^2 about each axis, the format's default"
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass(frozen=True)
class SdfLink:
    """A link with all its numbers."""

    frame: SdfFrame
    owner: SdfOwner
    mass: float
    com: Numbers
    inertia: Inertia
    shapes: tuple[Shape, ...]
    has_weight: bool


@dataclass(frozen=True)
class LinkReader:
    """Reads one link."""

    frame: SdfFrame
    owner: SdfOwner
    frames: FrameResolver
    is_static: bool

    def read(self) -> SdfLink:
        """Read the link; parts that a mechanism cannot hold are noted."""
        element, owner = self.frame.element, self.owner
        owner.sort(element, LINK_PARTS)
        weight = element.first("gravity")
        if owner.flag(element.first("kinematic")) and not self.is_static:
            owner.leave_out(MOVED, element.first("kinematic") or element)
        decay = element.first("velocity_decay")
        rates = [owner.value(decay, name, 0.0) for name in ("linear", "angular")]
        if decay is not None and any(rates):
            owner.leave_out(FLUID, decay)
        mass, com, inertia = self._inertial(element.first("inertial"))
        has_weight = weight is None or owner.flag(weight)
        return SdfLink(self.frame, owner, mass, com, inertia, self._shapes(), has_weight)

    # inertia -------------------------------------------------------------------------------------

    def _inertial(self, inertial: Element | None) -> tuple[float, Numbers, Inertia]:
        owner = self.owner
        if inertial is None:
            if not self.is_static:
                owner.note(self.frame.element, "", "has no <inertial>", _DEFAULT)
            return 1.0, (0.0, 0.0, 0.0), Inertia(1.0, 1.0, 1.0)
        parts = dict.fromkeys(("pose", "mass", "inertia", "density", "auto_inertia_params"), "")
        owner.sort(inertial, parts | {"fluid_added_mass": FLUID, "frame": UNKNOWN})
        if inertial.attributes.get("auto", "").lower() in ("true", "1"):
            return self._computed(inertial)
        given, tensor = inertial.first("pose"), inertial.first("inertia")
        pose = self.frames.placed(inertial, self.frame, owner) if given else owner.read_pose(None)
        mass = owner.value(inertial, "mass", 1.0)
        missing = [tag for tag in ("mass", "inertia") if inertial.first(tag) is None]
        if missing and not self.is_static:
            message = f"has no <{'> and no <'.join(missing)}>"
            owner.note(inertial, "inertial", message, "1 (SI units), the format's default")
        if tensor is not None:
            owner.sort(tensor, dict.fromkeys(_MOMENTS, ""))
        usual = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        values = [owner.value(tensor, n, u) for n, u in zip(_MOMENTS, usual, strict=True)]
        weight = inertial.first("mass") or inertial
        inertia = owner.inertia(weight, tensor or inertial, mass, values, pose.R)
        return mass, pose.at, inertia

    def _computed(self, inertial: Element) -> tuple[float, Numbers, Inertia]:
        """Mass, mass centre and inertia of the collision shapes, as solids."""
        owner, usual = self.owner, self.owner.value(inertial, "density", WATER)
        known, parts = owner.count(), []
        for collision in self.frame.element.all("collision"):
            density = owner.value(collision, "density", usual)
            parts += self._solid_inertia(collision, density)
        mass = sum(m for m, _, _ in parts)
        if not mass > 0:
            if owner.count() == known:
                message = 'auto="true" needs collision shapes with a volume'
                owner.report(inertial, "inertial", f"{message}; give <mass> and <inertia>")
            return 1.0, (0.0, 0.0, 0.0), Inertia(1.0, 1.0, 1.0)
        com = np.sum([m * p for m, p, _ in parts], axis=0) / mass
        total = np.zeros((3, 3))
        for m, p, tensor in parts:
            d = p - com
            total += tensor + m * ((d @ d) * np.eye(3) - np.outer(d, d))
        given = owner.value(inertial, "mass", mass)
        total *= given / mass
        xx, yy, zz, xy, xz, yz = total[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist()
        small = 1e-15 * (xx + yy + zz)
        xy, xz, yz = (0.0 if abs(x) < small else x for x in (xy, xz, yz))
        return given, cleaned(com, 1.0), Inertia(xx, yy, zz, xy, xz, yz)

    def _solid_inertia(
        self, collision: Element, density: float
    ) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Mass, mass centre and inertia of a solid in the link's frame; nothing for no solid."""
        geometry = collision.first("geometry")
        pose = self.frames.placed(collision, self.frame, self.owner)
        found = []
        for solid in geometry.children if geometry else ():
            if solid.tag == "empty":
                continue
            if solid.tag not in _SOLIDS:
                message = (
                    f'auto="true" is not computed for <{solid.tag}>; give <mass> and <inertia>'
                )
                self.owner.report(solid, "inertial", message)
                continue
            sizes = self._sizes(solid)
            volume, moments = _solid(solid.tag, sizes)
            tensor = pose.R @ np.diag(moments) @ pose.R.T * (density * volume)
            below = sizes[1] / 4 if solid.tag == "cone" else 0.0  # its mass centre
            found.append((density * volume, pose.p - pose.R[:, 2] * below, tensor))
        return found

    def _sizes(self, solid: Element) -> Numbers:
        owner = self.owner
        if solid.tag == "box":
            return owner.vector(solid, "size", (1.0, 1.0, 1.0))
        if solid.tag == "ellipsoid":
            return owner.vector(solid, "radii", (1.0, 1.0, 1.0))
        radius = owner.value(solid, "radius", 0.5 if solid.tag == "capsule" else 1.0)
        return radius, 0.0 if solid.tag == "sphere" else owner.value(solid, "length", 1.0)

    # shapes --------------------------------------------------------------------------------------

    def _shapes(self) -> tuple[Shape, ...]:
        """Shapes for pictures: those of the visuals, or else of the collisions."""
        reader = replace(self, owner=self.owner.aside("not drawn"))
        found: list[Shape] = []
        for tag in ("visual", "collision"):
            for element, solid in _solids_in(self.frame.element, tag):
                known = self.owner.count()
                pose = reader.frames.placed(element, self.frame, reader.owner)
                shape = reader._drawn(solid, pose)
                if shape and not any(shape.faults()) and self.owner.count() == known:
                    found.append(replace(shape, colour=reader._colour(element)))
            if found:
                break
        return tuple(found)

    def _colour(self, element: Element) -> Numbers | None:
        """Red, green and blue of what is drawn; None where the file gives none."""
        material = element.first("material")
        diffuse = material.first("diffuse") if material else None
        words = diffuse.text.split()[:3] if diffuse else []
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            return None
        return values if len(values) == 3 and all(0 <= x <= 1 for x in values) else None

    def _drawn(self, solid: Element, pose: SdfPose) -> Shape | None:
        at, R = pose.at, pose.R
        if solid.tag == "mesh":
            uri = solid.first("uri")
            scale = self.owner.vector(solid, "scale", (1.0, 1.0, 1.0))
            file = uri.text if uri else ""
            return Mesh(file, scale, at, pose.rotation) if file.isprintable() else None
        if solid.tag not in ("box", "sphere", "cylinder", "capsule"):
            return None
        sizes = self._sizes(solid)
        if solid.tag == "sphere":
            return Sphere(sizes[0], at)
        if solid.tag in ("cylinder", "capsule"):
            return Cylinder(sizes[0], sizes[1], cleaned(R[:, 2], 1.0), at)
        return box(sizes, at, R, pose.rotation)

    def add_geometry(self, geometry: Geometry, body: str) -> None:
        """Add the solids of the link, those that touch others first, and its planes.

        Args:
            geometry: Where to put them.
            body: The link's name in the mechanism; the ground's for scenery.
        """
        reader = replace(self, owner=replace(self.owner, findings=Findings()))
        reader = replace(reader, frames=replace(self.frames, findings=reader.owner.findings))
        link = self.frame.element
        for element, solid in (*_solids_in(link, "collision"), *_solids_in(link, "visual")):
            pose = reader.frames.placed(element, self.frame, reader.owner)
            if body == GROUND.name:
                pose = self.frames.in_world(self.frame) @ pose
            if solid.tag == "plane":
                normal = np.array(reader.owner.vector(solid, "normal", (0.0, 0.0, 1.0)))
                length = math.hypot(*normal)
                if 0 < length < math.inf:
                    up = cleaned(pose.R @ normal / length, 1.0)
                    geometry.planes.append((body, pose.at, up))
            elif body != GROUND.name:
                shape = reader._drawn(solid, pose)
                described = LinkSolid.of(body, shape) if shape else None
                if described is not None and not any(shape.faults()):  # type: ignore[union-attr]
                    geometry.solids.append(described)


def _solids_in(link: Element, tag: str) -> Iterator[tuple[Element, Element]]:
    """Every visual or collision of a link with what its geometry holds."""
    for element in link.all(tag):
        geometry = element.first("geometry")
        for solid in geometry.children if geometry else ():
            yield element, solid


def _solid(kind: str, sizes: Numbers) -> tuple[float, Numbers]:
    """Volume of a solid, and its moments of inertia per mass."""
    if kind == "box":
        x, y, z = sizes
        return x * y * z, ((y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12)
    if kind == "ellipsoid":
        x, y, z = sizes
        volume = 4 / 3 * math.pi * x * y * z
        return volume, ((y * y + z * z) / 5, (x * x + z * z) / 5, (x * x + y * y) / 5)
    r, h = sizes
    if kind == "cone":
        across = 3 / 80 * (4 * r * r + h * h)
        return math.pi * r * r * h / 3, (across, across, 0.3 * r * r)
    tube, ball = math.pi * r * r * h, 4 / 3 * math.pi * r**3
    if kind == "cylinder":
        ball = 0.0
    volume = tube + ball
    if not volume > 0:
        return 0.0, (0.0, 0.0, 0.0)
    along = (tube * r * r / 2 + ball * 0.4 * r * r) / volume
    ends = 0.4 * r * r + h * h / 4 + 3 / 8 * h * r
    across = (tube * (h * h / 12 + r * r / 4) + ball * ends) / volume
    return volume, (across, across, along)
