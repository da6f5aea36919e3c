"""Solids of links for files of other programs: what pictures show, and wheels for contacts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from axode.formats.written.frame_poses import Array, FramePose, numbers_of, turn_to
from axode.formats.written.written_tree import WrittenLink, WrittenTree
from axode.mechanism.elements.bodies import Box, Cylinder, Sphere
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.values.expressions import numeric

WIDTH_OF_WHEEL = 0.35  # of its radius, where no shape is given


@dataclass(frozen=True)
class WrittenSolid:
    """A solid on a link: a cylinder is along z of its own frame.

    `size` holds the edges of a box, radius and length of a cylinder, the radius of a sphere, or
    the scales of a mesh.
    """

    name: str
    kind: str
    size: tuple[float, ...]
    place: FramePose
    file: str = ""


class WrittenFloor(NamedTuple):
    """A plane that wheels roll on: its frame on a link, whose z is the normal."""

    link: str
    place: FramePose


def pictures(link: WrittenLink) -> Iterator[WrittenSolid]:
    """Yield the solids that pictures of a link show."""
    for shape in link.body.shapes if link.body else ():
        at, name = numbers_of(shape.at), link.body.name if link.body else ""
        if isinstance(shape, Box):
            place = link.place @ FramePose.of(at, shape.rotation)
            yield WrittenSolid(name, "box", numbers_of(shape.size), place)
        elif isinstance(shape, Cylinder):
            place = link.place @ _along(numbers_of(shape.axis), at)
            size = (numeric(shape.radius), numeric(shape.length))
            yield WrittenSolid(name, "cylinder", size, place)
        elif isinstance(shape, Sphere):
            place = link.place @ FramePose.of(at, (0.0, 0.0, 0.0))
            yield WrittenSolid(name, "sphere", (numeric(shape.radius),), place)
        else:
            place = link.place @ FramePose.of(at, shape.rotation)
            yield WrittenSolid(name, "mesh", numbers_of(shape.scale), place, shape.file)


def _along(axis: tuple[float, ...], at: tuple[float, ...]) -> FramePose:
    """Return a frame whose z is along an axis."""
    direction = np.array(axis, dtype=float)
    return FramePose(turn_to(direction / np.linalg.norm(direction)), np.array(at, dtype=float))


def wheels(tree: WrittenTree) -> Iterator[tuple[str, WrittenSolid]]:
    """Yield links and the solids that roll on the ground; note what they are instead."""
    shapes = {body.name: body.shapes for body in tree.mechanism.bodies}
    for contact in tree.mechanism.contacts:
        radius = numeric(contact.wheel.radius)
        if not radius:
            tree.left_out.append(
                f"wheel '{contact.name}', a knife edge: no solid slides along itself alone"
            )
            continue
        link, place = tree.frames[contact.body]
        at = numbers_of(contact.at)
        if contact.wheel.has_axis:
            cylinders = [s for s in shapes.get(contact.body, ()) if isinstance(s, Cylinder)]
            width = WIDTH_OF_WHEEL * radius
            if len(cylinders) == 1:
                width = numeric(cylinders[0].length)
            size: tuple[float, ...] = (radius, width)
            placed = place @ _along(numbers_of(contact.axis), at)
            solid = WrittenSolid(contact.name, "cylinder", size, placed)
        else:
            placed = place @ FramePose.of(at, (0.0, 0.0, 0.0))
            solid = WrittenSolid(contact.name, "sphere", (radius,), placed)
        tree.left_out.append(_rolling(contact, solid.kind))
        yield link, solid


def _rolling(contact: Contact, solid: str) -> str:
    wheel = contact.wheel
    lost = f"wheel '{contact.name}' rolls exactly; in the file a {solid} touches the ground, "
    if wheel.picture == "rollers":
        return lost + "with friction in all directions and without rollers"
    free = [n for n in ("longitudinal", "lateral") if n not in wheel.rolling_rows]
    return lost + (f"with friction, {' and '.join(free)} too" if free else "with friction")


def floors(tree: WrittenTree) -> Iterator[WrittenFloor]:
    """Yield the planes that wheels roll on, each once."""
    seen: dict[tuple[object, ...], None] = {}
    for contact in tree.mechanism.contacts:
        plane = contact.plane
        normal, point = numbers_of(plane.normal), numbers_of(plane.point)
        key = (plane.on, normal, point)
        if key not in seen:
            seen[key] = None
            link, place = tree.frames[plane.on]
            yield WrittenFloor(link, place @ _along(normal, point))


def normal_of(floor: WrittenFloor) -> Array:
    """Return the unit normal of a floor in its link."""
    return floor.place.R[:, 2]
