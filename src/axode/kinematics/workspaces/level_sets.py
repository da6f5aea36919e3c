"""Boundary of the region of a grid where a function is positive: points, segments or triangles.

Cells are divided into simplices around their diagonals (Kuhn's triangulation), so that any number
of axes is treated alike and the boundary of a region inside the grid is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
MAX_STEPS = 60  # of the search along an edge
ON_BOUNDARY = 1e-12  # value of a function that is as good as zero


@dataclass(frozen=True)
class BoundaryMesh:
    """Simplices between points: triangles in space, segments in a plane.

    Attributes:
        vertices: Coordinates of the points, (n, axes).
        faces: Numbers of the points of each simplex, (m, axes), seen from outside in
            counterclockwise order in space.
    """

    vertices: Array
    faces: Indices

    @property
    def enclosed(self) -> float:
        """Volume, area or length that is enclosed."""
        corners = self.vertices[self.faces]
        n = self.vertices.shape[1]
        if not len(corners):
            return 0.0
        if n == 1:
            return float(np.abs(np.diff(np.sort(self.vertices[:, 0]))[::2].sum()))
        middle = self.vertices.mean(axis=0)
        factor = {2: 2.0, 3: 6.0}[n]
        return float(np.linalg.det(corners - middle).sum() / factor)


def level_set(
    values: Array, axes: Sequence[Array], function: Callable[[Array], Array] | None = None
) -> BoundaryMesh:
    """Boundary of the region where values on a grid are not negative.

    Args:
        values: One per point of the grid; NaN counts as negative.
        axes: Coordinates of the grid along each axis.
        function: Gives the values at points (n, axes); vertices are then moved along their edges to
            where it is zero. Without it they are interpolated.
    """
    n = values.ndim
    padded = np.pad(np.where(np.isnan(values), -1.0, values), 1, constant_values=-1.0)
    shape = padded.shape
    inside = padded >= 0
    low, high, faces = _edges(inside)
    if not len(low):
        return BoundaryMesh(np.zeros((0, n)), np.zeros((0, n), dtype=np.intp))
    clipped = [np.pad(axis, 1, mode="edge") for axis in axes]
    places = [np.stack(np.unravel_index(k, shape), axis=-1) for k in (low, high)]
    ends = [np.stack([clipped[j][p[:, j]] for j in range(n)], axis=-1) for p in places]
    flat = padded.ravel()
    first = inside.ravel()[low]
    a, b = (np.where(first[:, np.newaxis], *pair) for pair in (ends, ends[::-1]))  # in, out
    fa, fb = (np.where(first, *pair) for pair in ((flat[low], flat[high]), (flat[high], flat[low])))
    outer = np.where(first[:, np.newaxis], places[1], places[0])
    beyond = ((outer == 0) | (outer == np.array(shape) - 1)).any(axis=1)
    vertices = a.copy()  # where the grid ends, its last points are the boundary
    inner = np.flatnonzero(~beyond)
    vertices[inner] = _crossings(a[inner], b[inner], fa[inner], fb[inner], function)
    return BoundaryMesh(vertices, faces)


def _edges(inside: npt.NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
    """Ends of the edges that cross the boundary, and simplices between these edges."""
    n, shape = inside.ndim, inside.shape
    strides = np.array([int(np.prod(shape[k + 1 :])) for k in range(n)], dtype=np.intp)
    corners = np.array(list(np.ndindex(*(2,) * n)), dtype=np.intp)
    total = np.zeros(tuple(s - 1 for s in shape), dtype=np.intp)
    for corner in corners:
        total += inside[tuple(slice(c, s - 1 + c) for c, s in zip(corner, shape, strict=True))]
    cells = np.stack(np.nonzero((total > 0) & (total < len(corners))), axis=-1) @ strides
    flat = inside.ravel()
    made: list[Indices] = []
    for order in permutations(range(n)):
        steps = np.cumsum([0, *strides[list(order)]])
        made += _simplices(cells[:, np.newaxis] + steps, flat, strides, shape)
    if not made:
        return (np.zeros(0, dtype=np.intp),) * 3
    pairs = np.concatenate(made)  # (simplices, corners, 2)
    ends = np.sort(pairs, axis=-1).reshape(-1, 2)
    code = ends[:, 0] * (1 << n) + _offset_code(ends[:, 1] - ends[:, 0], strides)
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    low, high = ends[first].T
    return low, high, number.reshape(-1, n)


def _offset_code(offsets: Indices, strides: Indices) -> Indices:
    """Number the directions of edges: a bit per axis."""
    n = len(strides)
    known = {
        int(np.dot(bits, strides)): k for k, bits in enumerate(np.ndindex(*(2,) * n)) if any(bits)
    }
    keys = np.array(sorted(known))
    codes = np.array([known[key] for key in keys])
    found: Indices = codes[np.searchsorted(keys, offsets)]
    return found


def _simplices(
    corners: Indices, inside: npt.NDArray[np.bool_], strides: Indices, shape: tuple[int, ...]
) -> list[Indices]:
    """Faces, as edges that they cut, of one simplex in every cell."""
    n = corners.shape[1] - 1
    flags = inside[corners]
    order = np.argsort(~flags, axis=1, kind="stable")  # inner corners first
    corners = np.take_along_axis(corners, order, axis=1)
    count = flags.sum(axis=1)
    made: list[Indices] = []
    for k in range(1, n + 1):
        own = corners[count == k]
        if not len(own):
            continue
        for face in _faces(n, k):
            pairs = np.stack([own[:, [i, j]] for i, j in face], axis=1)
            made.append(_oriented(pairs, own, k, shape))
    return made


def _faces(n: int, k: int) -> list[list[tuple[int, int]]]:
    """Faces of a simplex whose first k corners are inside: edges (inner, outer)."""
    if k == 1:
        return [[(0, j) for j in range(1, n + 1)]]
    if k == n:
        return [[(i, n) for i in range(n)]]
    return [[(0, 2), (0, 3), (1, 3)], [(0, 2), (1, 3), (1, 2)]]  # n = 3, k = 2


def _oriented(pairs: Indices, corners: Indices, k: int, shape: tuple[int, ...]) -> Indices:
    """Turn faces so that their normals point out of the region."""
    n = len(shape)
    if n == 1:
        return pairs
    at = np.stack(np.unravel_index(corners, shape), axis=-1).astype(float)
    out = at[:, k:].mean(axis=1) - at[:, :k].mean(axis=1)
    points = np.stack(np.unravel_index(pairs, shape), axis=-1).mean(axis=2)
    edges = points[:, 1:] - points[:, :1]
    if n == 3:
        normal = np.cross(edges[:, 0], edges[:, 1])
    else:
        normal = np.stack([edges[:, 0, 1], -edges[:, 0, 0]], axis=-1)
    wrong = (normal * out).sum(axis=1) < 0
    pairs[wrong, :2] = pairs[wrong, 1::-1]
    return pairs


def _crossings(
    a: Array, b: Array, fa: Array, fb: Array, function: Callable[[Array], Array] | None
) -> Array:
    """Points between inner ends a and outer ends b where a function vanishes.

    By secants that keep the zero between their ends (Illinois), all edges at once.
    """
    s, t = np.zeros(len(a)), np.ones(len(a))
    fa, fb = fa.copy(), np.where(fb < 0, fb, -1e-300)
    x = fa / (fa - fb)
    if function is None or not len(a):
        return a + x[:, np.newaxis] * (b - a)
    side = np.zeros(len(a))
    active = np.flatnonzero(fa > ON_BOUNDARY)
    x[fa <= ON_BOUNDARY] = 0.0
    for step in range(MAX_STEPS):
        if not len(active):
            break
        k = active
        middle = 0.5 * (s[k] + t[k])
        guess = (s[k] * fb[k] - t[k] * fa[k]) / (fb[k] - fa[k])
        x[k] = middle if step % 8 == 7 else guess
        value = function(a[k] + x[k, np.newaxis] * (b[k] - a[k]))
        value = np.where(np.isnan(value), -1.0, value)
        inner = value >= 0
        i, o = k[inner], k[~inner]
        fb[i] *= np.where(side[i] == 1, 0.5, 1.0)
        fa[o] *= np.where(side[o] == -1, 0.5, 1.0)
        s[i], fa[i], side[i] = x[i], value[inner], 1
        t[o], fb[o], side[o] = x[o], value[~inner], -1
        done = (np.abs(value) <= ON_BOUNDARY) | (t[k] - s[k] < 1e-14)
        active = k[~done]
    return a + x[:, np.newaxis] * (b - a)
