"""The workspace of a robot: which poses it reaches, how far from its limits, and where it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from axode.disk.atomic import write_atomically
from axode.errors import FileError, InvalidArgument
from axode.kinematics.workspaces.boundary import BoundaryMesh, level_set
from axode.numerics.tolerances import NOTICEABLE
from axode.stages import call_stage

Array = npt.NDArray[np.float64]
MEASURES = {1: "length", 2: "area", 3: "volume"}
POWERS = ("", "", "²", "³")
MOST_PARTS = 8  # that are listed
SHOWN = 5e-7  # of a number, in the six digits that are printed
ARRAYS = ("margin", "active", "determinant", "dexterity")
SAVED = (".npz", ".stl", ".obj")


@dataclass(frozen=True, eq=False)
class WorkspacePart:
    """A part of a workspace: no other one can be reached from it within the limits.

    Attributes:
        workspace: The whole workspace.
        number: Number of the part in `regions`.
        has_home: Whether home is in it.
    """

    workspace: Workspace
    number: int
    has_home: bool

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Return whether each point of the grid is in the part."""
        return self.workspace.regions == self.number

    @cached_property
    def boundary(self) -> BoundaryMesh:
        """The boundary: triangles, segments or points, on limits or singularities."""
        return self.coarse_boundary(1)

    @cached_property
    def size(self) -> float:
        """Volume, area or length of the part, in units of the axes."""
        return self.boundary.enclosed

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value along each axis."""
        v = self.boundary.vertices
        lows, highs = v.min(axis=0).tolist(), v.max(axis=0).tolist()
        return dict(zip(self.workspace.axes, zip(lows, highs, strict=True), strict=True))

    def coarse_boundary(self, step: int) -> BoundaryMesh:
        """Boundary of every step-th point of the grid; see `Workspace.coarse_boundary`.

        Args:
            step: A divisor of the number of cells per axis.
        """
        whole, own = self.workspace, self.inside
        if (own == whole.inside).all():
            return whole.boundary if step == 1 else whole.coarse_boundary(step)
        determinant = whole.determinant
        scale = float(np.nanmax(np.abs(determinant[whole.inside]), initial=0.0)) or 1.0
        sign = -1.0 if (determinant[own] < 0).any() else 1.0

        def value(margin: Array, determinant: Array) -> Array:
            return np.fmin(margin, sign * determinant / scale)  # NaN: as if there were none

        def function(points: Array) -> Array:
            made = whole.functions.measure(points)
            return value(made[:, 0], made[:, 2])

        some = (slice(None, None, step),) * own.ndim
        known = value(whole.margin, determinant)
        known = np.where(own, known, np.where(known < 0, known, -1.0))[some]
        axes = [axis[::step] for axis in whole.axes.values()]
        return level_set(known, axes, None if whole.functions is None else function)


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
        """Volume, area or length of all that is inside, in units of the axes.

        More than that of `parts` together, which leave out what is thinner than the grid.
        """
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
        what, error = MEASURES[len(self.axes)], f", error about {self.size_error:.1g} {unit}"
        parts, cut = self.parts, "; cut by the bounds" if self.is_cut else ""
        small, rest = self._rest
        size = f"{self.size:.6g} {unit}"
        if len(parts) > 1:
            size = f"{size} in {len(parts)} parts" + (" and a rest" if rest else "")
        if parts and parts[0].has_home and len(parts) > 1:
            size = f"{parts[0].size:.6g} {unit} reachable from home, of {size}"
        lines = [
            f"Workspace of '{self.name}', {self.kind}, over {', '.join(self.axes)} ({grid} points)"
            + (f" at {held}" if held else ""),
            f"  {what} {size}{error}{cut}",
        ]
        if len(parts) > 1 or rest:
            for part in parts[:MOST_PARTS]:
                spans = ", ".join(
                    f"{n} {low + 0.0:.3g} to {high + 0.0:.3g}"
                    for n, (low, high) in part.ranges.items()
                )
                home = "home is in it; " if part.has_home else ""
                lines.append(f"    part {part.number}: {part.size:.6g} {unit}, {home}{spans}")
            if len(parts) > MOST_PARTS:
                more = parts[MOST_PARTS:]
                size = f"{sum(part.size for part in more):.6g} {unit}"
                lines.append(f"    and {len(more)} more: {size} together")
            if rest:
                torn = f"{small} smaller parts and what is " if small else ""
                lines.append(f"    the rest, {torn}thinner than the grid: {rest:.6g} {unit}")
        if not self.inside.any():
            lines.append(f"  no pose of the grid is reached{self._nearest_miss}")
        else:
            lines.append(
                f"  largest margin {np.nanmax(self.margin):.3g}, condition number up to "
                f"{self.largest_condition:.4g}"
            )
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
            "parts": [
                {
                    "number": part.number,
                    MEASURES[len(self.axes)]: part.size,
                    "home": part.has_home,
                    "ranges": {name: list(span) for name, span in part.ranges.items()},
                }
                for part in self.parts
            ],
            "rest": dict(zip(("parts", MEASURES[len(self.axes)]), self._rest, strict=True)),
            "ended by": self.active_shares,
            "info": dict(self.info),
        }

    @property
    def home_part(self) -> int:
        """Number in `regions` of the part next to home; zero if home is outside."""
        home = self.info.get("home", {})
        places = [int(np.argmin(np.abs(axis - home[n]))) for n, axis in self.axes.items()]
        return int(self.regions[tuple(places)])

    @cached_property
    def parts(self) -> tuple[WorkspacePart, ...]:
        """Parts between which there is no way: that of home first, then the largest first.

        Limits and singularities of type 2 part them; those of less than a thousandth of the
        workspace are left out, and so is what singularities cut off between points. A platform
        whose legs reach below its base has a second part there.
        """
        sizes = np.bincount(self.regions.ravel())[1:]
        large = np.flatnonzero(sizes > NOTICEABLE * sizes.sum()) + 1
        home = self.home_part
        order = sorted(large.tolist(), key=lambda number: (number != home, number))
        return tuple(WorkspacePart(self, number, number == home) for number in order)

    @property
    def _rest(self) -> tuple[int, float]:
        """How many parts `parts` leaves out, and what `size` has besides those; 0 if no digit."""
        rest = self.size - sum(part.size for part in self.parts)
        left_out = int(self.regions.max(initial=0)) - len(self.parts)
        return left_out, rest if abs(rest) > SHOWN * self.size else 0.0

    @property
    def _nearest_miss(self) -> str:
        """Name the limit that an empty workspace misses, and by how much at the nearest pose."""
        if np.isnan(self.margin).all():
            return ""
        best = np.unravel_index(np.nanargmax(self.margin), self.margin.shape)
        return (
            f": the nearest one is beyond '{self.limits[self.active[best]]}' by "
            f"{-self.margin[best]:.3g} of its range"
        )

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
                part_meshes = [
                    BoundaryMesh(data[f"part.{k}.vertices"], data[f"part.{k}.faces"])
                    for k in range(about.pop("parts", 0))
                ]
            own = {"boundary": mesh, "size_error": about.pop("size_error")}
            made = cls(axes=axes, limits=limits, **about, **arrays)
            made.__dict__.update(own)
            for part, own_mesh in zip(made.parts, part_meshes, strict=False):
                part.__dict__["boundary"] = own_mesh
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
    parts = [part.boundary for part in workspace.parts] if workspace.regions.max() > 1 else []
    about["parts"] = len(parts)
    arrays: dict[str, Any] = {
        "about": json.dumps(about),
        **{name: getattr(workspace, name) for name in ARRAYS},
        "vertices": workspace.boundary.vertices,
        "faces": workspace.boundary.faces,
        **{f"part.{k}.vertices": part.vertices for k, part in enumerate(parts)},
        **{f"part.{k}.faces": part.faces for k, part in enumerate(parts)},
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
