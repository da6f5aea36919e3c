"""Solids of a scene: boxes, rods between points, wheels whose spin is visible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Colour, Solid, Triple

BODIES: tuple[Colour, ...] = (
    (70, 108, 148),
    (214, 128, 60),
    (96, 150, 118),
    (150, 108, 158),
    (190, 160, 84),
    (110, 130, 150),
)
TYRE: Colour = (52, 54, 58)
HUB: Colour = (206, 208, 212)
MARK: Colour = (222, 110, 48)
ROLLER: Colour = (120, 124, 130)
JOINT: Colour = (150, 154, 160)

IDENTITY = np.eye(3)


def solid(
    body: str, kind: str, size: npt.ArrayLike, at: npt.ArrayLike, axes: Array, colour: Colour
) -> Solid:
    """One solid; `axes` has its own axes in its columns."""
    columns = tuple(triple(axes[:, k]) for k in range(3))
    return Solid(body, kind, triple(size), triple(at), columns, colour)  # type: ignore[arg-type]


def rod(body: str, a: Array, b: Array, radius: float, colour: Colour) -> Solid:
    """A cylinder from point to point."""
    span = b - a
    length = float(np.linalg.norm(span))
    return solid(body, "cylinder", (radius, length, 0.0), (a + b) / 2, axes_along(span), colour)


def wheel(body: str, at: Array, axis: Array, radius: float, width: float) -> Iterator[Solid]:
    """A tyre with spokes, one of them marked, so that it is seen to turn."""
    axes = axes_along(axis)
    yield solid(body, "cylinder", (radius, width, 0.0), at, axes, TYRE)
    yield solid(body, "cylinder", (0.22 * radius, 1.24 * width, 0.0), at, axes, HUB)
    for k in range(3):  # bars from rim to rim: six spokes
        turn = axes @ _about_z(k * math.pi / 3)
        size = (1.5 * radius, 0.16 * radius, 1.08 * width)
        yield solid(body, "box", size, at, turn, HUB)
    mark = at + axes[:, 0] * 0.5 * radius
    yield solid(body, "box", (0.52 * radius, 0.2 * radius, 1.14 * width), mark, axes, MARK)


def rollers(
    body: str, at: Array, axis: Array, radius: float, width: float, angle: float
) -> Iterator[Solid]:
    """A hub with free rollers around it, `angle` between a roller's axis and the wheel's."""
    axes = axes_along(axis)
    count = 10
    thick, gap = 0.2 * radius, 2.2 * radius * math.sin(math.pi / count)
    yield solid(body, "cylinder", (radius - 1.7 * thick, 0.9 * width, 0.0), at, axes, HUB)
    for k in range(count):
        outward = axes @ _about_z(2 * math.pi * k / count)
        along = math.cos(angle) * outward[:, 2] + math.sin(angle) * outward[:, 1]
        length = min(gap, width) / max(abs(math.sin(angle)), 0.6)
        centre = at + (radius - thick) * outward[:, 0]
        colour = MARK if k == 0 else TYRE if k % 2 else ROLLER
        yield solid(body, "cylinder", (thick, length, 0.0), centre, axes_along(along), colour)


def ball(body: str, at: Array, radius: float, colour: Colour) -> Iterator[Solid]:
    """A sphere with studs, so that it is seen to turn."""
    yield solid(body, "sphere", (radius, 0.0, 0.0), at, IDENTITY, colour)
    for k in range(3):
        for sign in (-1.0, 1.0):
            stud = at + sign * 0.87 * radius * IDENTITY[k]
            yield solid(body, "sphere", (0.17 * radius, 0.0, 0.0), stud, IDENTITY, MARK)


def equivalent_box(body: str, mass: float, com: Array, inertia: Array, colour: Colour) -> Solid:
    """The box of this mass and inertia."""
    moments, axes = np.linalg.eigh(inertia)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / mass
    edges = np.sqrt(np.maximum(squares, 0.0))
    edges = np.maximum(edges, 0.05 * edges.max())
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return solid(body, "box", edges, com, axes, colour)


def axes_along(direction: npt.ArrayLike) -> Array:
    """A right-handed frame whose z is along a direction; x as level as can be."""
    z = np.asarray(direction, float)
    length = np.linalg.norm(z)
    if not length > 0:
        return IDENTITY
    z = z / length
    other = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    y = np.cross(z, other)
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])


def _about_z(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def triple(value: Any) -> Triple:
    """Three plain numbers."""
    x, y, z = (float(v) for v in value)
    return x, y, z
