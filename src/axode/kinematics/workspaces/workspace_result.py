"""The workspace of a robot: which poses it reaches, how far from its limits, and where it ends.

Its boundary is that of the region of a grid where a function is positive. Cells are divided into
simplices around their diagonals (Kuhn's triangulation), so that any number of axes is treated alike
and the boundary of a region inside the grid is closed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from axode.disk.atomic import write_atomically
from axode.errors import FileError, InvalidArgument
from axode.numerics.tolerances import NOTICEABLE, PRODUCT_ROUNDING, ROUNDING
from axode.stages import call_stage

Indices = npt.NDArray[np.intp]
MAX_STEPS = 60  # of the search along an edge
Array = npt.NDArray[np.float64]
MEASURES = {1: "length", 2: "area", 3: "volume"}
POWERS = ("", "", "²", "³")
ARRAYS = ("margin", "active", "determinant", "dexterity")
SAVED = (".npz", ".stl", ".obj")


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
    return np.asarray(codes[np.searchsorted(keys, offsets)])


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
        value = np.where(np.isnan(value), -1.0, value)
        inner = value >= 0
        i, o = k[inner], k[~inner]
        fb[i] *= np.where(side[i] == 1, 0.5, 1.0)
        fa[o] *= np.where(side[o] == -1, 0.5, 1.0)
        s[i], fa[i], side[i] = x[i], value[inner], 1
        t[o], fb[o], side[o] = x[o], value[~inner], -1
        done = (np.abs(value) <= ROUNDING) | (t[k] - s[k] < PRODUCT_ROUNDING)
        active = k[~done]
    return a + x[:, np.newaxis] * (b - a)


@dataclass(frozen=True, eq=False)
class Workspace:
    """Poses that a robot reaches, on a grid.

    Attributes:
        name: The robot.
        kind: "constant-orientation", "orientation", "reachable", "dexterous" or "pose".
        axes: Values of the grid along each axis, by the name of the pose coordinate.
        held: Pose coordinates that are the same at all points.
        margin: Smallest margin of all limits at every point, relative to the range of each limit:
            positive inside, negative outside. Of several orientations the best one's for
            "reachable", the worst one's for "dexterous".
        active: Number in `limits` of the limit that has this margin.
        limits: Names of the limits.
        determinant: Determinant of the legs' unit wrenches, zero at singularities of type 2.
        dexterity: Reciprocal condition number of the map from driven speeds to the output's
            velocity, within 1 %; zero at singularities of type 1 and 2.
        info: Number of poses, seconds, characteristic length, pose coordinates at home.
        functions: Values at any points; None for a workspace read from a file.
    """

    name: str
    kind: str
    axes: Mapping[str, Array]
    held: Mapping[str, float]
    margin: Array
    active: npt.NDArray[np.int16]
    limits: tuple[str, ...]
    determinant: Array
    dexterity: Array
    info: Mapping[str, Any] = field(default_factory=dict)
    functions: Any = field(default=None, repr=False)

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Return whether each point of the grid is in the workspace."""
        return self.margin >= 0

    @property
    def points(self) -> Array:
        """Coordinates of the grid, with an axis for the coordinates behind those of the grid."""
        return np.stack(np.meshgrid(*self.axes.values(), indexing="ij"), axis=-1)

    def margin_at(self, points: npt.ArrayLike) -> Array:
        """Margin at any points, with the coordinates of the grid's axes along the last axis.

        Raises:
            InvalidArgument: for points of other shapes, and for a workspace read from a file.
        """
        given = np.asarray(points, dtype=float)
        if given.shape[-1:] != (len(self.axes),):
            names = ", ".join(self.axes)
            raise InvalidArgument(
                f"margin_at: expected {names} along the last axis, got shape {given.shape}"
            )
        if self.functions is None:
            raise InvalidArgument("a workspace read from a file has the margins of its grid only")
        flat = given.reshape(-1, given.shape[-1])
        return np.asarray(self.functions.margin(flat)).reshape(given.shape[:-1])

    @cached_property
    def boundary(self) -> BoundaryMesh:
        """The boundary: triangles, segments or points, on limits to rounding."""
        return self.coarse_boundary(1)

    @cached_property
    def size(self) -> float:
        """Volume, area or length of the workspace, in units of its axes."""
        return self.boundary.enclosed

    @cached_property
    def size_error(self) -> float:
        """Estimated error of `size`, which falls with the square of the distance of points.

        From grids of half and of a quarter as many cells per axis; the larger of two estimates,
        since errors of opposite parts of the boundary may cancel by chance.
        """
        half, quarter = (self.coarse_boundary(step).enclosed for step in (2, 4))
        return max(abs(self.size - half) / 3, abs(half - quarter) / 12)

    def coarse_boundary(self, step: int) -> BoundaryMesh:
        """Boundary of every step-th point of the grid, on limits to rounding.

        Args:
            step: A divisor of the number of cells per axis.
        """
        some = (slice(None, None, step),) * self.margin.ndim
        axes = [axis[::step] for axis in self.axes.values()]
        margin = None if self.functions is None else self.functions.margin
        return level_set(self.margin[some], axes, margin)

    @cached_property
    def is_cut(self) -> bool:
        """Return whether the workspace extends beyond the bounds of the grid."""
        return any(
            bool((np.take(self.margin, place, axis=k) >= 0).any())
            for k in range(self.margin.ndim)
            for place in (0, -1)
        )

    @cached_property
    def regions(self) -> npt.NDArray[np.int32]:
        """Numbers of the parts that singularities of type 2 and the limits divide it into.

        Zero outside; parts on which the determinant is positive and negative are numbered apart,
        the largest first.
        """
        from scipy.ndimage import label

        with np.errstate(invalid="ignore"):
            signs = [self.inside & ~(self.determinant < 0), self.inside & (self.determinant < 0)]
        made = np.zeros(self.margin.shape, dtype=np.int32)
        count = 0
        for part in signs:
            found, number = label(part)
            made += np.where(found > 0, found + count, 0).astype(np.int32)
            count += number
        sizes = np.bincount(made.ravel(), minlength=count + 1)[1:]
        order = np.argsort(-sizes, kind="stable")
        renumbered = np.zeros(count + 1, dtype=np.int32)
        renumbered[order + 1] = np.arange(1, count + 1)
        return renumbered[made]

    @property
    def active_shares(self) -> dict[str, float]:
        """Share of the points next to the boundary, outside, at which each limit is active."""
        from scipy.ndimage import binary_dilation

        edge = binary_dilation(self.inside) & ~self.inside
        counts = np.bincount(self.active[edge], minlength=len(self.limits))
        total = max(int(counts.sum()), 1)
        return {n: c / total for n, c in zip(self.limits, counts.tolist(), strict=True) if c}

    def __repr__(self) -> str:
        units = ["m" if name in ("x", "y", "z", "u", "v") else "rad" for name in self.axes]
        powers = {unit: units.count(unit) for unit in units}
        unit = " ".join(f"{name}{POWERS[power]}" for name, power in powers.items())
        grid = " x ".join(str(len(axis)) for axis in self.axes.values())
        held = ", ".join(f"{n} = {round(value, 12) + 0.0:.4g}" for n, value in self.held.items())
        lines = [
            f"Workspace of '{self.name}', {self.kind}, over {', '.join(self.axes)} ({grid} points)"
            + (f" at {held}" if held else ""),
            f"  {MEASURES[len(self.axes)]} {self.size:.6g} {unit}, error about "
            f"{self.size_error:.1g} {unit}" + ("; cut by the bounds" if self.is_cut else ""),
        ]
        if self.inside.any():
            lines.append(f"  largest margin {np.nanmax(self.margin):.3g}")
            parts = f"{self.parts} parts" if self.parts != 1 else "one part"
            lines.append(f"  condition number up to {self.largest_condition:.4g}, {parts}")
            shares = sorted(self.active_shares.items(), key=lambda item: -item[1])[:6]
            listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares)
            lines.append(f"  ended by {listed}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Numbers of the summary, in JSON's own types."""
        inside = self.inside
        return {
            "name": self.name,
            "kind": self.kind,
            "axes": {name: [float(x[0]), float(x[-1])] for name, x in self.axes.items()},
            "held": dict(self.held),
            "points": list(self.margin.shape),
            MEASURES[len(self.axes)]: self.size,
            "error": self.size_error,
            "cut": self.is_cut,
            "largest margin": float(np.nanmax(self.margin)),
            "largest condition number": self.largest_condition if inside.any() else None,
            "parts": self.parts,
            "ended by": self.active_shares,
            "info": dict(self.info),
        }

    @property
    def home_part(self) -> int:
        """Number in `regions` of the part next to home; zero if home is outside."""
        home = self.info.get("home", {})
        places = [int(np.argmin(np.abs(axis - home[n]))) for n, axis in self.axes.items()]
        return int(self.regions[tuple(places)])

    @property
    def parts(self) -> int:
        """Number of `regions`, without those of less than a thousandth of the workspace."""
        sizes = np.bincount(self.regions.ravel())[1:]
        return int((sizes > NOTICEABLE * sizes.sum()).sum())

    @property
    def largest_condition(self) -> float:
        """Largest condition number in the workspace; infinite at singularities."""
        least = float(np.nanmin(self.dexterity[self.inside], initial=1.0))
        return 1 / least if least > 0 else math.inf

    def plot(
        self,
        show: Literal["limits", "margin", "dexterity", "regions"] = "limits",
        *,
        slices: Sequence[float] | None = None,
        size: str = "screen",
        save: str | PathLike[str] | None = None,
    ) -> Any:
        """Figure of the boundary and of slices across the last axis.

        Args:
            show: What colours show inside: the nearest limit, its margin, the dexterity, or the
                parts that singularities divide the workspace into.
            slices: Values of the last axis; three quarters of its range unless given.
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows. Singularities of type 2 are
            drawn as lines.

        Raises:
            UnknownName: for something else to show.
            InvalidArgument: for no slices, or too many.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        return call_stage("plot_workspace", self, show, slices=slices, size=size, save=save)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Workspace:
        """Read what `save` wrote to a .npz file.

        Args:
            path: The file.

        Raises:
            FileError: if there is no such file, or another one.
        """
        try:
            with np.load(Path(path), allow_pickle=False) as data:
                about = json.loads(str(data["about"]))
                names, limits = about.pop("axes"), tuple(about.pop("limits"))
                axes = {name: data[f"axis.{name}"] for name in names}
                arrays = {name: data[name] for name in ARRAYS}
                mesh = BoundaryMesh(data["vertices"], data["faces"])
            own = {"boundary": mesh, "size_error": about.pop("size_error")}
            made = cls(axes=axes, limits=limits, **about, **arrays)
            made.__dict__.update(own)
        except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise FileError(f"cannot read the workspace '{path}': {error}") from None
        return made

    def save(self, path: str | PathLike[str]) -> None:
        """Write the grid and the boundary (.npz), or the boundary alone (.stl, .obj).

        Raises:
            InvalidArgument: for another ending, and for a boundary that is no surface.
            FileError: if the folder or the disk refuses.
        """
        place = Path(path)
        if place.suffix not in SAVED:
            raise InvalidArgument(f"'{place.name}' should end in {', '.join(SAVED)}")
        if place.suffix == ".npz":
            write_atomically(place, _npz(self))
            return
        if len(self.axes) != 3:
            raise InvalidArgument(
                f"a workspace over {', '.join(self.axes)} has no surface to write to "
                f"'{place.name}'; .npz holds its boundary"
            )
        written = _stl if place.suffix == ".stl" else _obj
        write_atomically(place, written(self.boundary))


def _npz(workspace: Workspace) -> bytes:
    from io import BytesIO

    about: dict[str, Any] = {"name": workspace.name, "kind": workspace.kind}
    about |= {"held": dict(workspace.held), "axes": list(workspace.axes)}
    about |= {"limits": list(workspace.limits), "info": dict(workspace.info)}
    about["size_error"] = workspace.size_error
    arrays: dict[str, Any] = {
        "about": json.dumps(about),
        **{name: getattr(workspace, name) for name in ARRAYS},
        "vertices": workspace.boundary.vertices,
        "faces": workspace.boundary.faces,
        **{f"axis.{name}": axis for name, axis in workspace.axes.items()},
    }
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _stl(mesh: BoundaryMesh) -> bytes:
    """Binary STL: 80 bytes, the number of triangles, then normal, corners and two bytes each."""
    corners = mesh.vertices[mesh.faces].astype("<f4")
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sizes = np.linalg.norm(normals, axis=1, keepdims=True)
    kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    rows = np.zeros(len(corners), dtype=kind)
    rows["normal"] = np.divide(normals, sizes, out=np.zeros_like(normals), where=sizes > 0)
    rows["corners"] = corners
    return b"axode workspace".ljust(80) + np.uint32(len(rows)).tobytes() + rows.tobytes()


def _obj(mesh: BoundaryMesh) -> bytes:
    """Wavefront OBJ: vertices, then triangles that count them from one."""
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
    return ("\n".join(lines) + "\n").encode()
