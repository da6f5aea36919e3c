"""Boundaries of regions of a grid, by dual contouring.

A cell through which the boundary passes has a vertex, or one for each sheet that passes; an edge of
the grid that it crosses has a face between the vertices of the cells around it. A vertex is where
the tangent planes of the crossings of its cell meet best (Ju, Losasso, Schaefer and Warren, 2002),
and is then moved onto the boundary. So edges and corners, where limits change, are sharp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from axode.numerics.tolerances import DIFFERENCE_STEP, PRODUCT_ROUNDING, ROUNDING

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Function = Callable[[Array], Array]
MAX_STEPS = 60  # of the search along an edge
CellEdge = tuple[int, tuple[int, ...]]  # its axis and its lower corner
FLAT = 0.05  # of the largest eigenvalue: below, normals differ by curvature and not by an edge
NEXT = {1: ((),), 2: ((1,), (0,)), 3: ((1, 2), (2, 0), (0, 1))}  # axes across an edge
BEYOND = -1.0  # value of points without one


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
    values: Array, axes: Sequence[Array], function: Function | None = None
) -> BoundaryMesh:
    """Boundary of the region where values on a grid are not negative.

    Args:
        values: One per point of the grid; NaN counts as negative.
        axes: Coordinates of the grid along each axis.
        function: Gives the values at points (n, axes); vertices are then where it is zero. Without
            it they are interpolated.
    """
    n = values.ndim
    known = np.where(np.isnan(values), BEYOND, values)
    inside = np.pad(known >= 0, 1)
    edges = _Edges.of(inside, known, axes, function)
    if not len(edges.axis):
        return BoundaryMesh(np.zeros((0, n)), np.zeros((0, n), dtype=np.intp))
    cells, owner = _sheets(inside, edges)
    vertices = _vertices(edges, owner, cells, axes)
    if function is not None:
        vertices = _moved_onto(vertices, edges, owner, function)
    return BoundaryMesh(vertices, _faces(edges, owner, vertices, function))


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges of a padded grid that cross the boundary.

    Attributes:
        low: Number of the lower end along each axis, (edges, n).
        axis: Axis along which each lies.
        rising: Whether the upper end is inside.
        inner: Coordinates of the end inside.
        outer: Coordinates of the end outside.
        outside: Value there; NaN where the grid ends.
        crossing: Where the boundary is.
        normal: Unit vector across the boundary, outwards, in cells; zero if unknown.
        spacing: Width of a cell along each axis.
    """

    low: Indices
    axis: Indices
    rising: npt.NDArray[np.bool_]
    inner: Array
    outer: Array
    outside: Array
    crossing: Array
    normal: Array
    spacing: Array

    @classmethod
    def of(
        cls,
        inside: npt.NDArray[np.bool_],
        values: Array,
        axes: Sequence[Array],
        function: Function | None,
    ) -> _Edges:
        """Find the edges, and where along them the boundary is."""
        n = values.ndim
        found = [np.argwhere(np.diff(inside, axis=k)) for k in range(n)]
        low = np.concatenate(found)
        axis = np.repeat(np.arange(n), [len(one) for one in found])
        high = low + np.eye(n, dtype=np.intp)[axis]
        rising = inside[tuple(high.T)]
        inner, outer = (np.where((rising == up)[:, None], high, low) for up in (True, False))
        beyond = ((outer == 0) | (outer == np.array(inside.shape) - 1)).any(axis=1)
        padded = np.pad(values, 1, constant_values=np.nan)
        clipped = [np.pad(one, 1, mode="edge") for one in axes]
        a, b = (np.stack([clipped[j][e[:, j]] for j in range(n)], -1) for e in (inner, outer))
        fa, fb = padded[tuple(inner.T)], padded[tuple(outer.T)]
        crossing = a.copy()  # where the grid ends, its last points are the boundary
        some = np.flatnonzero(~beyond)
        crossing[some] = zeros_between(a[some], b[some], fa[some], fb[some], function)
        spacing = np.array([float(one[1] - one[0]) if len(one) > 1 else 1.0 for one in axes])
        normal = np.eye(n)[axis] * np.where(rising, -1.0, 1.0)[:, None]
        if function is None:
            slopes = np.atleast_2d(np.stack([_slope(values, k) for k in range(n)], axis=-1))
            part = fa[some] / (fa[some] - fb[some])
            at = [slopes[tuple(np.minimum(e[some] - 1, np.array(values.shape) - 1).T)]
                  for e in (inner, outer)]  # fmt: skip
            normal[some] = -((1 - part[:, None]) * at[0] + part[:, None] * at[1])
        else:
            normal[some] = -_gradient(crossing[some], spacing, function)
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        usable = np.isfinite(length) & (length > 0)
        normal = np.where(usable, normal, 0.0) / np.where(usable, length, 1.0)
        return cls(low, axis, rising, a, b, fb, crossing, normal, spacing)


def _slope(values: Array, axis: int) -> Array:
    if values.shape[axis] < 2:
        return np.zeros_like(values)
    return np.asarray(np.gradient(values, axis=axis))


def _gradient(points: Array, spacing: Array, function: Function) -> Array:
    """Change of a function per cell along each axis, by central differences."""
    made = np.empty_like(points)
    for k, width in enumerate(spacing):
        step = np.zeros(len(spacing))
        step[k] = DIFFERENCE_STEP * width
        made[:, k] = function(points + step) - function(points - step)
    return made


def zeros_between(a: Array, b: Array, fa: Array, fb: Array, function: Function | None) -> Array:
    """Points between inner ends a and outer ends b where a function vanishes.

    By secants that keep the zero between their ends (Illinois), all edges at once.
    """
    s, t = np.zeros(len(a)), np.ones(len(a))
    fa, fb = fa.copy(), np.where(fb < 0, fb, -1e-300)
    x = fa / (fa - fb)
    if function is None or not len(a):
        return a + x[:, np.newaxis] * (b - a)
    side = np.zeros(len(a))
    active = np.flatnonzero(fa > ROUNDING)
    x[fa <= ROUNDING] = 0.0
    for step in range(MAX_STEPS):
        if not len(active):
            break
        k = active
        middle = 0.5 * (s[k] + t[k])
        guess = (s[k] * fb[k] - t[k] * fa[k]) / (fb[k] - fa[k])
        x[k] = middle if step % 8 == 7 else guess
        value = function(a[k] + x[k, np.newaxis] * (b[k] - a[k]))
        value = np.where(np.isnan(value), BEYOND, value)
        inner = value >= 0
        i, o = k[inner], k[~inner]
        fb[i] *= np.where(side[i] == 1, 0.5, 1.0)
        fa[o] *= np.where(side[o] == -1, 0.5, 1.0)
        s[i], fa[i], side[i] = x[i], value[inner], 1
        t[o], fb[o], side[o] = x[o], value[~inner], -1
        done = (np.abs(value) <= ROUNDING) | (t[k] - s[k] < PRODUCT_ROUNDING)
        active = k[~done]
    return a + x[:, np.newaxis] * (b - a)


# cells -------------------------------------------------------------------------------------------


@lru_cache(maxsize=3)
def _sheet_table(n: int) -> npt.NDArray[np.int8]:
    """Sheets that pass through a cell: by its corners inside and by axis and place of an edge.

    Where all four edges of a side are crossed, corners inside are kept apart, so that both cells
    at the side agree.
    """
    corners = list(product((0, 1), repeat=n))
    table = np.full((1 << len(corners), n, 1 << n), -1, dtype=np.int8)
    for code in range(len(table)):
        inside = {c: bool(code >> k & 1) for k, c in enumerate(corners)}
        crossed = {
            (k, c): tuple(sorted((c, _with(c, k, 1)), key=lambda end: not inside[end]))
            for k in range(n)
            for c in corners
            if not c[k] and inside[c] != inside[_with(c, k, 1)]
        }
        sheet = {edge: number for number, edge in enumerate(crossed)}
        for edge, other in _joined(crossed, n):
            old, new = sheet[edge], sheet[other]
            sheet = {one: new if number == old else number for one, number in sheet.items()}
        order = {number: place for place, number in enumerate(dict.fromkeys(sheet.values()))}
        for (k, c), number in sheet.items():
            table[code, k, corners.index(c)] = order[number]
    return table


def _joined(
    crossed: dict[CellEdge, tuple[tuple[int, ...], ...]], n: int
) -> Iterator[tuple[CellEdge, CellEdge]]:
    """Pairs of crossed edges that a sheet joins across a side of the cell."""
    for pair in combinations(range(n), 2):
        for rest in product((0, 1), repeat=n):
            if any(rest[k] for k in pair):
                continue
            own = [
                (k, _with(rest, j, place))
                for k, j in (pair, pair[::-1])
                for place in (0, 1)
                if (k, _with(rest, j, place)) in crossed
            ]
            together = len(own) == 2
            for one, other in combinations(own, 2):
                if together or crossed[one][0] == crossed[other][0]:
                    yield one, other


def _with(corner: tuple[int, ...], k: int, value: int) -> tuple[int, ...]:
    return (*corner[:k], value, *corner[k + 1 :])


def _sheets(inside: npt.NDArray[np.bool_], edges: _Edges) -> tuple[Indices, Indices]:
    """The cell of each vertex, and the vertices of the cells around each edge, (edges, 2^(n-1))."""
    n = inside.ndim
    corners = np.array(list(product((0, 1), repeat=n)))
    weights = 1 << np.arange(n)[::-1]  # the place of a corner in that list
    owners = []
    for shift in product((1, 0), repeat=n - 1):
        across = np.zeros((len(edges.axis), n), dtype=np.intp)
        for k in range(n):
            across[np.ix_(edges.axis == k, NEXT[n][k])] = shift
        cell = edges.low - across
        code = np.zeros(len(cell), dtype=np.intp)
        for bit, corner in enumerate(corners):
            code |= inside[tuple((cell + corner).T)].astype(np.intp) << bit
        sheet = _sheet_table(n)[code, edges.axis, across @ weights]
        owners.append(np.ravel_multi_index(tuple(cell.T), inside.shape) * 8 + sheet)
    keys, owner = np.unique(np.stack(owners, axis=1), return_inverse=True)
    cells = np.stack(np.unravel_index(keys // 8, inside.shape), axis=-1)
    return cells, owner.reshape(len(edges.axis), -1)


def _vertices(edges: _Edges, owner: Indices, cells: Indices, axes: Sequence[Array]) -> Array:
    """Points of the cells where the tangent planes of the crossings meet best."""
    n, count = edges.crossing.shape[1], len(cells)
    who = owner.ravel()
    points = np.repeat(edges.crossing / edges.spacing, owner.shape[1], axis=0)
    normals = np.repeat(edges.normal, owner.shape[1], axis=0)

    def total(x: Array) -> Array:
        flat = x.reshape(len(x), -1)
        made = np.stack([np.bincount(who, column, minlength=count) for column in flat.T], axis=-1)
        return made.astype(float).reshape(count, *x.shape[1:])

    middle = total(points) / np.bincount(who, minlength=count)[:, None]
    offset = ((points - middle[who]) * normals).sum(axis=1)
    A = total(normals[:, :, None] * normals[:, None, :])
    b = total(normals * offset[:, None])
    size, along = np.linalg.eigh(A)
    steep = size > FLAT * size[:, -1:]
    parts = np.einsum("vij,vi->vj", along, b)
    parts = np.where(steep, parts / np.where(steep, size, 1.0), 0.0)
    found = (middle + np.einsum("vij,vj->vi", along, parts)) * edges.spacing
    clipped = [np.pad(one, 1, mode="edge") for one in axes]
    low, high = (np.stack([clipped[j][cells[:, j] + up] for j in range(n)], -1) for up in (0, 1))
    return np.asarray(np.clip(found, low, high))


def _moved_onto(vertices: Array, edges: _Edges, owner: Indices, function: Function) -> Array:
    """Vertices, moved to where a function is zero, towards an end of an edge beyond.

    Of the edges around a vertex, that whose end is most straight across the boundary. Where the
    grid ends, vertices inside stay.
    """
    who, which = owner.ravel(), np.repeat(np.arange(len(owner)), owner.shape[1])
    outward = np.zeros_like(vertices)
    for k in range(vertices.shape[1]):
        outward[:, k] = np.bincount(who, edges.normal[which, k], minlength=len(vertices))
    value = function(vertices)
    value = np.where(np.isnan(value), BEYOND, value)
    made = vertices.copy()
    is_inner = value >= 0
    for inner in (True, False):
        some = is_inner[who] == inner
        if inner:
            some &= ~np.isnan(edges.outside[which])
        v, e = who[some], which[some]
        ends = (edges.outer if inner else edges.inner)[e]
        way = (ends - vertices[v]) / edges.spacing
        across = (way * outward[v]).sum(axis=1) / np.maximum(np.linalg.norm(way, axis=1), 1e-300)
        order = np.lexsort((-across if inner else across, v))
        v, first = np.unique(v[order], return_index=True)
        ends, f = ends[order][first], value[v]
        far = function(ends)
        far = np.where(np.isnan(far), BEYOND, far)
        if inner:
            made[v] = zeros_between(vertices[v], ends, f, far, function)
        else:
            made[v] = zeros_between(ends, vertices[v], np.maximum(far, 0.0), f, function)
    return made


def _faces(edges: _Edges, owner: Indices, vertices: Array, function: Function | None) -> Indices:
    """A face across every edge, seen from outside in counterclockwise order."""
    n = vertices.shape[1]
    if n == 1:
        return owner
    if n == 2:
        turned = edges.rising ^ (edges.axis == 1)
        return np.asarray(np.where(turned[:, None], owner[:, ::-1], owner))
    ring = owner[:, [0, 2, 3, 1]]
    ring = np.where(edges.rising[:, None], ring[:, ::-1], ring)
    diagonals = vertices[ring[:, [0, 1]]] + vertices[ring[:, [2, 3]]]
    if function is None:
        off = np.linalg.norm(vertices[ring[:, [0, 1]]] - vertices[ring[:, [2, 3]]], axis=-1)
    else:  # the one along an edge of the region, if there is one, lies on its boundary
        off = np.abs(function(0.5 * diagonals.reshape(-1, n))).reshape(-1, 2)
        off = np.where(np.isnan(off), -BEYOND, off)
    other = off[:, 1] < off[:, 0]
    ring = np.where(other[:, None], np.roll(ring, -1, axis=1), ring)
    return np.concatenate([ring[:, [0, 1, 2]], ring[:, [0, 2, 3]]]).astype(np.intp)
