"""Triangles as arrays: cleaned, simplified, with normals that keep edges sharp."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import FileError
from axode.mechanism.scene.scene import Array, Colour
from axode.numerics.tolerances import ROUNDING, WELD

CREASE = math.cos(math.radians(40.0))  # sharper edges stay edges
LARGEST = 1e6  # [m]
MAX_TRIANGLES = 1_000_000  # of one file
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Triangles of one colour, None if the file has none: points (n, 3), faces (m, 3)."""

    points: Array
    faces: Indices
    colour: Colour | None = None


def fans(corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Triangles of polygons whose corners follow each other: (triangles, 3).

    Raises:
        FileError: if they are too many.
    """
    check_count(int(np.maximum(sizes - 2, 0).sum()))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else np.zeros(0, int)
    made = []
    for size in np.unique(sizes[sizes >= 3]).tolist():
        first = starts[sizes == size]
        ring = corners[first[:, None] + np.arange(size)]
        fan = np.stack([np.zeros(size - 2, int), np.arange(1, size - 1), np.arange(2, size)], -1)
        made.append(ring[:, fan].reshape(-1, 3))
    return np.concatenate(made) if made else np.zeros((0, 3), int)


def check_count(triangles: int) -> None:
    """Raise an error for more triangles than any robot has."""
    if triangles > MAX_TRIANGLES:
        raise FileError(f"has {triangles} triangles, more than {MAX_TRIANGLES}")


def used_points(points: Array, faces: Indices) -> tuple[Array, Indices]:
    """Leave out points that no triangle has, and triangles whose points are missing."""
    faces = faces[((faces >= 0) & (faces < len(points))).all(1)]
    used, renumbered = np.unique(faces, return_inverse=True)
    return points[used], renumbered.reshape(-1, 3)


def clean(part: Part) -> Part:
    """Leave out triangles whose corners are missing, not finite, or no triangle at all."""
    points = np.asarray(part.points, float).reshape(-1, 3)
    faces = np.asarray(part.faces, np.int64).reshape(-1, 3)
    sound = np.isfinite(points).all(1) & (np.abs(points) < LARGEST).all(1)
    faces = faces[((faces >= 0) & (faces < len(points))).all(1)]
    faces = faces[sound[faces].all(1)]
    faces = faces[_doubled_areas(Part(points, faces)) > 0]
    return Part(*used_points(points, faces), part.colour)


def cluster(part: Part, cell: float) -> Part:
    """Replace all points in a cell of a grid by their mean; triangles that collapse vanish."""
    if not len(part.faces):
        return part
    low = part.points.min(0)
    extent = float(np.ptp(part.points, axis=0).max())
    cell = max(cell, WELD * extent)
    if not cell > 0:
        return Part(part.points[:0], part.faces[:0], part.colour)
    boxes = np.floor((part.points - low) / cell).astype(np.int64)
    keys = (boxes[:, 0] << 42) | (boxes[:, 1] << 21) | boxes[:, 2]
    _, group, count = np.unique(keys, return_inverse=True, return_counts=True)
    sums = [np.bincount(group, part.points[:, k], len(count)) for k in range(3)]
    points = np.stack(sums, -1) / count[:, None]
    faces = group[part.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return Part(points, _distinct(faces), part.colour)


def _distinct(faces: Indices) -> Indices:
    """Triangles without copies, as two sides of a thin plate that fell into one cell."""
    ordered = np.sort(faces, axis=1)
    count = int(ordered.max(initial=0)) + 1
    if count > 1 << 21:
        return faces
    keys = (ordered[:, 0] * count + ordered[:, 1]) * count + ordered[:, 2]
    _, first = np.unique(keys, return_index=True)
    return faces[np.sort(first)]


def simplify(parts: list[Part], limit: int) -> list[Part]:
    """Simplify surfaces to `limit` triangles in all, on a grid that is as fine as allows that."""
    parts = [cluster(part, 0.0) for part in parts]
    count = sum(len(part.faces) for part in parts)
    if count <= limit:
        return parts
    area = sum(float(_doubled_areas(part).sum()) for part in parts)
    cell, best = math.sqrt(area / limit), parts
    for _ in range(12):
        best = [cluster(part, cell) for part in parts]
        count = sum(len(part.faces) for part in best)
        if 0.75 * limit <= count <= limit:
            break
        cell *= min(max(math.sqrt(count / (0.9 * limit)), 0.6), 4.0)
    while sum(len(part.faces) for part in best) > limit:
        cell *= 1.5
        best = [cluster(part, cell) for part in parts]
    return best


def _doubled_areas(part: Part) -> Array:
    a, b, c = (part.points[part.faces[:, k]] for k in range(3))
    areas: Array = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return areas


def with_normals(part: Part) -> tuple[Array, Array, npt.NDArray[np.int32]]:
    """Vertices, unit normals and triangles; a vertex on a sharp edge occurs once per side of it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    points, faces = part.points, part.faces
    a, b, c = (points[faces[:, k]] for k in range(3))
    around = np.cross(b - a, c - a)
    length = np.linalg.norm(around, axis=1)
    real = length > 0
    faces, around, length = faces[real], around[real], length[real]
    unit = around / length[:, None]
    n = len(faces)
    # Corners 3 f + k of two faces that share an edge without a crease are one vertex.
    starts, ends = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    corner, after = np.arange(3 * n), np.roll(np.arange(3 * n).reshape(n, 3), -1, 1).ravel()
    key = np.minimum(starts, ends) * np.int64(len(points)) + np.maximum(starts, ends)
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    near = key[first] == key[second]
    near &= np.einsum("ij,ij->i", unit[first // 3], unit[second // 3]) > CREASE
    first, second = first[near], second[near]
    same = starts[first] == starts[second]
    other = np.where(same, second, after[second])  # the corner at the start of the first edge
    next_other = np.where(same, after[second], second)
    rows = np.concatenate([corner[first], after[first]])
    columns = np.concatenate([other, next_other])
    links = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(3 * n, 3 * n))
    count, label = connected_components(links, directed=False)
    vertices = np.zeros((count, 3))
    vertices[label] = points[starts]
    weights = np.repeat(around, 3, axis=0)
    normals = np.stack([np.bincount(label, weights[:, k], count) for k in range(3)], -1)
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    flat = np.zeros((count, 3))
    flat[label] = np.repeat(unit, 3, axis=0)
    whole = (size > ROUNDING * length.max(initial=1.0)).ravel()
    flat[whole] = normals[whole] / size[whole]
    return vertices, flat, label.reshape(n, 3).astype(np.int32)
