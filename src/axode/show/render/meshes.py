"""Triangles of solids and of surfaces in files, of arrows and rods, and of contact forces."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import (
    GROUND,
    Array,
    Colour,
    Scene,
    Solid,
    touch_axes,
    touch_points,
)
from axode.numerics.tolerances import ROUNDING

FLATNESS = 2.5e-4  # of the mechanism's size: how far the sides of a circle are inside it
FEWEST, MOST = 20, 128  # sides of a circle
MAX_SURFACE = 60_000  # triangles of all surfaces in files


@dataclass(frozen=True)
class TriangleMesh:
    """Triangles of one colour that move with one body; edges are sharp, so no vertex is shared
    across one.

    Attributes:
        body: The body.
        colour: Red, green, blue, 0 to 255.
        vertices, normals: In the body's frame: (n, 3).
        triangles: Indices of vertices: (m, 3).
        two_sided: Whether it may be open, or its triangles may go round either way.
    """

    body: str
    colour: Colour
    vertices: Array
    normals: Array
    triangles: npt.NDArray[np.int32]
    two_sided: bool = False


def meshes(scene: Scene, limit: int = MAX_SURFACE) -> list[TriangleMesh]:
    """One mesh for all solids of a body that share a colour, and one for its surfaces.

    Args:
        scene: What is drawn.
        limit: How many triangles the surfaces in files may have in all; they are simplified.
    """
    if not scene.surfaces:
        return _of_solids((*scene.solids, *scene.stand_ins), scene.size)
    # only those who have such files wait for what reads them
    from axode.formats.meshes.mesh_formats import with_normals
    from axode.formats.meshes.mesh_library import surface_parts

    surfaces = [
        TriangleMesh(item.body, item.colour, *with_normals(item.part), two_sided=True)
        for item in surface_parts(scene, limit)
    ]
    seen = {mesh.body for mesh in surfaces}
    have = {surface.body for surface in scene.surfaces}
    stand_ins = [s for s in scene.stand_ins if s.body not in seen and (s.body in have or not seen)]
    return [*_of_solids((*scene.solids, *stand_ins), scene.size), *surfaces]


def sides_of(radius: float, size: float) -> int:
    """Return how many sides a circle needs to look round where `size` is all that is seen.

    The middle of a side of n is r (1 - cos(pi/n)) inside the circle.
    """
    allowed = FLATNESS * size / max(radius, ROUNDING * size)
    if allowed >= 1.0:
        return FEWEST
    return min(max(4 * math.ceil(math.pi / math.acos(1.0 - allowed) / 4), FEWEST), MOST)


def _of_solids(solids: Iterable[Solid], size: float) -> list[TriangleMesh]:
    groups: dict[tuple[str, Colour], list[Solid]] = {}
    for solid in solids:
        groups.setdefault((solid.body, solid.colour), []).append(solid)
    return [_merge(body, colour, group, size) for (body, colour), group in groups.items()]


def _merge(body: str, colour: Colour, group: list[Solid], size: float) -> TriangleMesh:
    vertices, normals, triangles, count = [], [], [], 0
    for solid in group:
        points, directions, faces = _KINDS[solid.kind](solid, sides_of(solid.size[0], size))
        axes = np.array(solid.axes).T
        vertices.append(points @ axes.T + np.array(solid.at))
        normals.append(directions @ axes.T)
        triangles.append(faces + count)
        count += len(points)
    return TriangleMesh(
        body,
        colour,
        np.concatenate(vertices),
        np.concatenate(normals),
        np.concatenate(triangles).astype(np.int32),
    )


def _box(solid: Solid, around: int) -> tuple[Array, Array, Array]:
    points: list[Array] = []
    normals: list[Array] = []
    faces: list[list[int]] = []
    for axis in range(3):
        u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
        for sign in (1.0, -1.0):
            n = sign * np.eye(3)[axis]
            first = len(points)
            points += [n + a * u + sign * b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += [n] * 4
            faces += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return np.array(points) * np.array(solid.size) / 2, np.array(normals), np.array(faces)


def _cylinder(solid: Solid, around: int) -> tuple[Array, Array, Array]:
    radius, length, _ = solid.size
    angle = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(around)])
    half = np.array([0.0, 0.0, length / 2])
    low, high = radius * ring - half, radius * ring + half
    k = np.arange(around)
    after = (k + 1) % around
    side = np.concatenate(
        [
            np.column_stack([k, after, after + around]),
            np.column_stack([k, after + around, k + around]),
        ]
    )
    lid = np.column_stack([np.zeros(around - 2, int), k[1:-1], k[2:]])
    points = np.concatenate([low, high, low, high])
    up = np.broadcast_to([0.0, 0.0, 1.0], (around, 3))
    normals = np.concatenate([ring, ring, -up, up])
    faces = np.concatenate([side, lid[:, ::-1] + 2 * around, lid + 3 * around])
    return points, normals, faces


def _sphere(solid: Solid, around: int) -> tuple[Array, Array, Array]:
    rows, columns = around // 2, around
    polar = np.linspace(0.0, np.pi, rows + 1)[:, None]
    angle = np.linspace(0.0, 2 * np.pi, columns + 1)[None, :]
    z = np.cos(polar) + 0 * angle
    normals = np.stack([np.sin(polar) * np.cos(angle), np.sin(polar) * np.sin(angle), z], -1)
    normals = normals.reshape(-1, 3)
    i, j = (g.ravel() for g in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    corner = i * (columns + 1) + j
    below = corner + columns + 1
    faces = np.concatenate(
        [
            np.column_stack([corner, below, below + 1]),
            np.column_stack([corner, below + 1, corner + 1]),
        ]
    )
    return solid.size[0] * normals, normals, faces


_KINDS = {"box": _box, "cylinder": _cylinder, "sphere": _sphere}


# arrows and rods ----------------------------------------------------------------------------------


ARROW_SIDES = 10  # sides
FORCES = ((26, 71, 186), (208, 95, 22), (19, 143, 97))  # longitudinal, lateral, normal
LEAST = 0.02  # usual forces: smaller ones are not drawn
LENGTH = 0.5  # of the mechanism's size, for a usual force ...
ABOVE = 2.6  # ... but at least this many radii of the largest wheel, which would hide it
LONGEST = 2.0  # usual forces: larger ones are drawn no longer


def arrows(starts: Array, vectors: Array, thickness: float, colour: Colour) -> TriangleMesh:
    """Arrows of one colour.

    Args:
        starts: Where they start [m]: (n, 3).
        vectors: From there to their tips [m]: (n, 3).
        thickness: Radius of a shaft [m].
        colour: Red, green, blue, 0 to 255.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    ahead = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    neck = np.maximum(length - 6.0 * thickness, 0.4 * length)
    zero, thin, wide = np.zeros_like(length), thickness + 0 * length, 2.4 * thickness + 0 * length
    rings = [(zero, thin, 0.0), (neck, thin, 0.0), (neck, wide, 0.35), (length, zero, 0.35)]
    return _turned(starts, ahead, rings, colour)


def rods(starts: Array, ends: Array, thickness: float, colour: Colour) -> TriangleMesh:
    """Rods of one colour between points: (n, 3) each."""
    vectors = ends - starts
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    ahead = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    thin = thickness + 0 * length
    return _turned(starts, ahead, [(0 * length, thin, 0.0), (length, thin, 0.0)], colour)


def _turned(
    starts: Array, ahead: Array, rings: list[tuple[Array, Array, float]], colour: Colour
) -> TriangleMesh:
    """Rings about axes, each with its place, its radius and its normals' slope, joined by walls."""
    least = np.eye(3)[np.argmin(np.abs(ahead), axis=1)]
    right = np.cross(ahead, least)
    right /= np.maximum(np.linalg.norm(right, axis=1, keepdims=True), 1e-300)
    up = np.cross(ahead, right)
    angle = np.linspace(0.0, 2 * np.pi, ARROW_SIDES, endpoint=False)
    outwards = (
        np.cos(angle)[:, None] * right[:, None] + np.sin(angle)[:, None] * up[:, None]
    )  # (n, around, 3)
    points = [
        starts[:, None] + place[:, None] * ahead[:, None] + radius[:, None] * outwards
        for place, radius, _ in rings
    ]
    normals = [(outwards + slope * ahead[:, None]) / np.hypot(1.0, slope) for *_, slope in rings]
    n = ARROW_SIDES
    k = np.arange(n)
    after = (k + 1) % n
    wall = np.stack([[k, after, after + n], [k, after + n, k + n]], 0)
    walls = [wall + ring * n for ring in range(len(rings) - 1)]
    one = np.concatenate(walls).swapaxes(1, 2).reshape(-1, 3)
    per = n * len(rings)
    triangles = (one[None] + per * np.arange(len(starts))[:, None, None]).reshape(-1, 3)
    return TriangleMesh(
        GROUND,
        colour,
        np.stack(points, axis=1).reshape(-1, 3),
        np.stack(normals, axis=1).reshape(-1, 3),
        triangles.astype(np.int32),
        two_sided=True,
    )


def spots(points: Array, radius: float, colour: Colour) -> TriangleMesh:
    """Balls of one size and colour about points in the world, (n, 3)."""
    solids = [
        Solid(GROUND, "sphere", (radius, radius, radius), tuple(p), _WORLD, colour)
        for p in points.tolist()
    ]
    return _merge(GROUND, colour, solids, 40 * radius)


_WORLD = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def force_arrows(
    scene: Scene, poses: Array, forces: Array, usual: float
) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Draw the forces of the ground on the wheels as arrows, with their colours.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies.
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN is not drawn.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Starts and tips (n, 2, 3) in the world, red, green and blue (n, 3).
    """
    if not usual > 0 or not scene.touches:
        return np.zeros((0, 2, 3)), np.zeros((0, 3), np.uint8)
    starts, vectors = force_vectors(scene, poses, forces, usual)
    tips = starts[:, np.newaxis, :] + vectors
    drawn = np.abs(np.nan_to_num(forces)) > LEAST * usual
    points = np.stack([np.broadcast_to(starts[:, np.newaxis, :], tips.shape), tips], axis=2)
    colours = np.broadcast_to(np.array(FORCES, np.uint8), (len(vectors), 3, 3))
    return points[drawn], colours[drawn]


def force_vectors(scene: Scene, poses: Array, forces: Array, usual: float) -> tuple[Array, Array]:
    """Points of contact and, from there, arrows of the forces, for any number of instants.

    Args:
        scene: What is drawn; it has contacts.
        poses: Poses of all bodies: (..., bodies, 4, 4).
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN has length zero.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Points (..., contacts, 3) and arrows (..., contacts, 3 forces, 3) in the world [m].
    """
    axes = touch_axes(scene, poses)
    known = np.nan_to_num(forces) / usual if usual > 0 else np.zeros(forces.shape)
    length = max(LENGTH * scene.size, ABOVE * max(touch.radius for touch in scene.touches))
    arrows = length * np.clip(known, -LONGEST, LONGEST)[..., np.newaxis] * axes
    return touch_points(scene, poses), arrows
