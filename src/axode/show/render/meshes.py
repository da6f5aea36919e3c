"""Triangles of the solids, and of the surfaces in files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Colour, Scene, Solid

AROUND = 28  # sides of a cylinder
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
        return _of_solids((*scene.solids, *scene.stand_ins))
    # only those who have such files wait for what reads them
    from axode.formats.meshes.mesh_arrays import with_normals
    from axode.formats.meshes.mesh_library import surface_parts

    surfaces = [
        TriangleMesh(item.body, item.colour, *with_normals(item.part), two_sided=True)
        for item in surface_parts(scene, limit)
    ]
    seen = {mesh.body for mesh in surfaces}
    have = {surface.body for surface in scene.surfaces}
    stand_ins = [s for s in scene.stand_ins if s.body not in seen and (s.body in have or not seen)]
    return [*_of_solids((*scene.solids, *stand_ins)), *surfaces]


def _of_solids(solids: Iterable[Solid]) -> list[TriangleMesh]:
    groups: dict[tuple[str, Colour], list[Solid]] = {}
    for solid in solids:
        groups.setdefault((solid.body, solid.colour), []).append(solid)
    return [_merge(body, colour, group) for (body, colour), group in groups.items()]


def _merge(body: str, colour: Colour, group: list[Solid]) -> TriangleMesh:
    vertices, normals, triangles, count = [], [], [], 0
    for solid in group:
        points, directions, faces = _KINDS[solid.kind](solid)
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


def _box(solid: Solid) -> tuple[Array, Array, Array]:
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


def _cylinder(solid: Solid) -> tuple[Array, Array, Array]:
    radius, length, _ = solid.size
    angle = np.linspace(0.0, 2 * np.pi, AROUND, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(AROUND)])
    half = np.array([0.0, 0.0, length / 2])
    low, high = radius * ring - half, radius * ring + half
    k = np.arange(AROUND)
    after = (k + 1) % AROUND
    side = np.concatenate(
        [
            np.column_stack([k, after, after + AROUND]),
            np.column_stack([k, after + AROUND, k + AROUND]),
        ]
    )
    lid = np.column_stack([np.zeros(AROUND - 2, int), k[1:-1], k[2:]])
    points = np.concatenate([low, high, low, high])
    up = np.broadcast_to([0.0, 0.0, 1.0], (AROUND, 3))
    normals = np.concatenate([ring, ring, -up, up])
    faces = np.concatenate([side, lid[:, ::-1] + 2 * AROUND, lid + 3 * AROUND])
    return points, normals, faces


def _sphere(solid: Solid) -> tuple[Array, Array, Array]:
    rows, columns = AROUND // 2, AROUND
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
