"""Mechanisms as texts for other programs: what they share, whatever their format."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, NotApplicable, OmissionWarning, UnknownName, shortened
from axode.formats.written.written_joints import FramePose, numbers_of, turn_to
from axode.formats.written.written_tree import WrittenJoint, WrittenLink, WrittenTree
from axode.mechanism.elements.bodies import Box, Cylinder, Sphere
from axode.mechanism.elements.wheels import AbstractWheel, Contact
from axode.mechanism.files.imported import Surface
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.parameter_values import at_values
from axode.mechanism.topology import coordinate_names, parameters_of
from axode.mechanism.values.expressions import Expression, depends_on_time, numeric

# solids ---------------------------------------------------------------------------------------


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
    surface: Surface | None = None


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
        if not radius and contact.wheel.picture == "point":
            tree.left_out.append(f"contact '{contact.name}', a point that may touch the ground")
            continue
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
        surface = surface_of(contact.wheel)
        lost = _rolling(contact, solid.kind) if surface is None else _unlike(contact, solid.kind)
        tree.left_out += filter(None, [lost])
        yield link, replace(solid, surface=surface)


def surface_of(wheel: AbstractWheel) -> Surface | None:
    """Return how a wheel rubs on the ground; None for one that never slips."""
    if wheel.is_ideal:
        return None
    kinetic = 0.0 if wheel.friction is None else numeric(wheel.friction[1])
    lengths = numeric(wheel.scrub), numeric(wheel.rolling_resistance)
    return Surface(kinetic, *lengths, numeric(wheel.restitution))


def _unlike(contact: Contact, solid: str) -> str:
    """What a solid with friction in a file is not that a wheel with friction is."""
    wheel, lost = contact.wheel, []
    if wheel.friction is not None and numeric(wheel.friction[0]) != numeric(wheel.friction[1]):
        lost.append("the friction is the kinetic one")
    if wheel.picture == "rollers":
        lost.append(f"a {solid} without rollers rubs in all directions")
    elif wheel.picture != "point":
        free = [n for n in ("longitudinal", "lateral") if n not in wheel.rolling_rows]
        lost += [f"it rubs in the {' and '.join(free)} direction too"] if free else []
    return f"wheel '{contact.name}' in the file: {', '.join(lost)}" if lost else ""


def joint_laws(
    tree: WrittenTree,
) -> Iterator[tuple[WrittenJoint, float, tuple[float, float] | None]]:
    """Yield joints with their dry friction and stops, and note what no format can say of them."""
    for connection in tree.mechanism.connections:
        if not connection.rubs_or_stops:
            continue
        name, friction, stops = connection.name, 0.0, None
        joint = tree.joint_of_coordinate(connection.coordinates[0])
        if joint is None:
            tree.left_out.append(f"friction and stops of joint '{name}'")
            continue
        if connection.friction is not None:
            static, friction = map(numeric, connection.friction)
            if static != friction:
                tree.left_out.append(
                    f"static friction of joint '{name}', {static:g}; its kinetic one is in the file"
                )
        if connection.stops is not None:
            low, high = map(numeric, connection.stops)
            stops = low, high
            if numeric(connection.restitution):
                tree.left_out.append(f"restitution of the stops of joint '{name}'")
        yield joint, friction, stops


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


# texts ----------------------------------------------------------------------------------------


XmlElement = ElementTree.Element

MOST_SENTENCES = 40  # in one warning


@dataclass(frozen=True)
class MechanismText:
    """A mechanism in the format of other programs.

    Attributes:
        format: "URDF", "MJCF" or "SDF".
        text: What a file holds.
        left_out: One sentence for each thing that the text omits or changes.
    """

    format: str
    text: str
    left_out: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text to a file; one that was there is replaced completely or left as it was.

        Raises:
            FileError: if the file cannot be written.
        """
        write_atomically(path, self.text.encode())

    def __str__(self) -> str:
        return self.text


def finish(
    mechanism: Mechanism,
    kind: str,
    root: XmlElement,
    left_out: Iterable[str],
    path: str | os.PathLike[str] | None,
    *,
    strict: bool,
) -> MechanismText:
    """Make the text of a tree of elements, and write and report as asked.

    Raises:
        NotApplicable: if something is left out and `strict` is true.
        FileError: if the file cannot be written.

    Warns:
        OmissionWarning: listing everything that the text omits.
    """
    result = MechanismText(kind, _xml(root), tuple(dict.fromkeys(left_out)))
    head = f"mechanism '{mechanism.name}' as {kind}:"
    if result.left_out and strict:
        lost = "\n  ".join([head, *result.left_out])
        raise NotApplicable(f"{lost}\n  Leave strict out to write the rest")
    if path is not None:
        result.save(path)
    if result.left_out:
        shown = list(result.left_out[:MOST_SENTENCES])
        if len(shown) < len(result.left_out):
            shown.append(f"... ({len(result.left_out)} in all; the text's .left_out has them)")
        text = "\n  ".join([head, *shown])
        warnings.warn(OmissionWarning(text, {kind: result.left_out}), stacklevel=4)
    return result


def _xml(root: XmlElement) -> str:
    """Write a tree of elements, however deep it is."""
    lines = ['<?xml version="1.0"?>']
    waiting: list[tuple[int, XmlElement | str]] = [(0, root)]
    while waiting:
        depth, part = waiting.pop()
        if isinstance(part, str):
            lines.append(f"{'  ' * depth}</{part}>")
            continue
        named = "".join(f" {name}={quoteattr(value)}" for name, value in part.items())
        start = f"{'  ' * depth}<{part.tag}{named}"
        if part.text:
            lines.append(f"{start}>{escape(part.text)}</{part.tag}>")
        elif len(part):
            lines.append(f"{start}>")
            waiting.append((depth, part.tag))
            waiting += [(depth + 1, child) for child in reversed(part)]
        else:
            lines.append(f"{start}/>")
    return "\n".join(lines) + "\n"


def with_parameters(mechanism: Mechanism, given: Mapping[str, float] | None) -> Mechanism:
    """Return the description at values of its parameters, checked.

    Raises:
        UnknownName: for a name that is no parameter's.
        InvalidArgument: for a value that is not a finite number.
        MechanismError: if no mechanism can have these values.
    """
    known = parameters_of(mechanism)
    for name, value in (given or {}).items():
        if name not in known:
            raise UnknownName(f"mechanism '{mechanism.name}'", "parameter", name, known)
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InvalidArgument(
                f"parameter '{name}': expected a finite number, got {shortened(value)}"
            )
    values = {name: float(value) for name, value in (given or {}).items()}
    found = at_values(mechanism, values) if values else mechanism.copy()
    found.check()
    return found


def home_values(mechanism: Mechanism, *, closed: bool) -> dict[str, float]:
    """Return all coordinates of the home configuration, by name.

    Args:
        mechanism: Whose home it is.
        closed: Whether loops and couplings must hold there and wheels touch the ground.
    """
    if closed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            home = mechanism.derive(self_check=False).system.home
        return dict(zip(coordinate_names(mechanism), map(float, home), strict=True))
    found: dict[str, float] = {}
    for connection in mechanism.connections:
        values = [mechanism.home_coordinates.get(name, 0.0) for name in connection.coordinates]
        if connection.joint.has_quaternion:
            length = math.hypot(*values[:4])
            unit = [x / length for x in values[:4]] if length else [1.0, 0.0, 0.0, 0.0]
            values[:4] = unit
        found |= dict(zip(connection.coordinates, map(float, values), strict=True))
    return found


def unsaid(tree: WrittenTree) -> Iterator[str]:
    """Yield sentences about what none of the formats can express."""
    mechanism = tree.mechanism
    for wrench in mechanism.wrenches:
        yield f"wrench '{wrench.name}' is an input; the other program applies forces by itself"
    for prescribed in mechanism.prescribed:
        if is_constant(prescribed.motion):
            continue
        yield f"the motion of '{prescribed.coordinate}', a function of time"
    for measure in mechanism.measures:
        yield f"measure '{measure.name}'"


def is_constant(motion: Any) -> bool:
    """Return whether a prescribed motion holds its coordinate still."""
    return not (isinstance(motion, Expression) and depends_on_time(motion))


def motor_efforts(tree: WrittenTree) -> dict[tuple[str, int], float]:
    """Return the largest forces of motors by the names of joints and the numbers of speeds.

    The force of a motor without limit is infinite.
    """
    found: dict[tuple[str, int], list[float]] = {}
    for drive in tree.mechanism.drives:
        driven = tree.joint_of_speed(drive.coordinate)
        if driven is not None:
            limit = math.inf if drive.motor.limit is None else numeric(drive.motor.limit)
            effort = limit * abs(numeric(drive.motor.gear))
            found.setdefault((driven[0].name, driven[1]), []).append(effort)
    return {speed: sum(efforts) for speed, efforts in found.items()}


def number(value: float) -> str:
    """Write a number with the fewest digits that read back to it."""
    text = repr(float(value) + 0.0)
    return text.removesuffix(".0")


def row(values: Iterable[Any]) -> str:
    """Write numbers with spaces between them."""
    return " ".join(number(float(value)) for value in values)


def add(parent: XmlElement, tag: str, text: str | None = None, **attributes: str) -> XmlElement:
    """Add an element; a trailing underscore of an attribute's name is dropped."""
    named = {name.removesuffix("_"): value for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, named)
    element.text = text
    return element
