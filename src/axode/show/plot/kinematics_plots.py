"""Plots of what `Kinematics` finds: postures, maps of singularities, workspaces.

Of workspaces: the boundary in space, and slices coloured by limits or by dexterity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.scene.scene import Array, Floor, Scene
from axode.numerics.tolerances import NEGLIGIBLE
from axode.show.contact_marks import MODES
from axode.show.render.meshes import meshes
from axode.show.render.painter import camera_of, picture
from axode.show.style import (
    COLOURS,
    FAINT,
    GREY,
    INK,
    Size,
    add_title,
    drawing,
    new_figure,
    pin_ticks,
    readable,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from axode.kinematics.postures.postures import Postures
    from axode.kinematics.velocities.singularities import SingularityMap
    from axode.kinematics.workspaces.workspace_result import Workspace
    from axode.results.trajectory import Trajectory


SHOWN = ("limits", "margin", "dexterity", "regions")
LENGTHS = ("x", "y", "z", "u", "v")
SURFACE, SINGULAR = "#86aeff", "#d05f16"
MAX_SLICES = 8
FINE = 401  # points per axis of a slice
MAX_TRIANGLES = 20_000  # that are drawn; of more, those of a coarser grid are
VALUES = ("margin", "active", "determinant", "dexterity")
FRAME = 0.7  # [in] that axis and title take besides a panel
HEIGHT = 0.62  # of the width
LEVELS = 12
SHADES = ("#ffffff", "#dfe8ff", "#86aeff", COLOURS[0])
NEARLY = 0.02  # of the largest margin: where a line is drawn if no sign marks the curve
TITLES = {
    "serial": "Margin from singularities of type 1",
    "parallel": "Margin from singularities of type 2",
    "mobility": "Margin from constraint singularities",
    "passive": "Margin of passive joints",
}
MAX_COLUMNS = 4
PIXELS = 960  # across a row of pictures
ASPECT = 1.2  # width by height of a picture
TITLE = 0.28  # [in] above each picture


def plot_workspace(
    workspace: Workspace,
    show: str = "limits",
    *,
    slices: Sequence[float] | None = None,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
) -> Any:
    """Draw a workspace; see `Workspace.plot`."""
    sized(size)
    if show not in SHOWN:
        raise UnknownName("plot", "quantity", show, SHOWN)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        if len(workspace.axes) == 1:
            figure = _line(workspace, measures)
        elif len(workspace.axes) == 2:
            figure = new_figure(measures.width, 0.8 * measures.width)
            _draw_slice(figure, figure.add_subplot(), workspace, show, None, measures)
        else:
            figure = _panels(workspace, show, slices, measures)
        notes = [workspace.name, workspace.kind] if measures.title else []
        if len(workspace.axes) == 3 and len(workspace.parts) > 1 and workspace.home_part:
            notes.append(f"the part of home, 1 of {len(workspace.parts)}, in space")
        add_title(figure, notes, measures)
        drawn.figure = figure
    return figure


def _label(name: str) -> str:
    return f"{name} [m]" if name in LENGTHS else f"{name} [rad]"


def _line(workspace: Workspace, size: Size) -> Any:
    """Margin over the only axis."""
    figure = new_figure(size.width, 1.6 * size.panel)
    axes = figure.add_subplot()
    ((name, x),) = workspace.axes.items()
    axes.plot(x, workspace.margin)
    axes.fill_between(x, 0, workspace.margin, where=list(workspace.inside), alpha=0.25)
    axes.axhline(0, color=GREY, linewidth=0.6 * size.line)
    axes.set(xlabel=_label(name), ylabel="margin")
    pin_ticks(axes)
    return figure


def _panels(workspace: Workspace, show: str, slices: Sequence[float] | None, size: Size) -> Any:
    """The boundary in space and slices across the last axis."""
    places = _places(workspace, slices)
    count = 1 + len(places)
    down = -(-count // 2)
    figure = new_figure(size.width, down * (0.42 * size.width + FRAME))
    grid = figure.add_gridspec(down, 2)
    engine: Any = figure.get_layout_engine()
    engine.set(wspace=0.08)
    space: Any = figure.add_subplot(grid[0, 0], projection="3d")
    _draw_boundary(space, workspace, size)
    for k, place in enumerate(places, start=1):
        axes = figure.add_subplot(grid[k // 2, k % 2])
        _draw_slice(figure, axes, workspace, show, place, size)
    return figure


def _places(workspace: Workspace, slices: Sequence[float] | None) -> list[float]:
    """Values of the last axis where slices are: given ones, or quarters of the range at home."""
    axis = list(workspace.axes.values())[-1]
    name = list(workspace.axes)[-1]
    if slices is not None:
        if not 1 <= len(slices) <= MAX_SLICES:
            raise InvalidArgument(f"plot, slices: expected 1 to {MAX_SLICES} values of {name}")
        return [float(value) for value in slices]
    held = np.flatnonzero(_part_of_home(workspace).any(axis=(0, 1)))
    low, high = (int(held[0]), int(held[-1])) if len(held) else (0, len(axis) - 1)
    return [float(axis[round(low + share * (high - low))]) for share in (0.25, 0.5, 0.75)]


def _part_of_home(workspace: Workspace) -> Any:
    """Points of the connected part that holds home; all points inside if home is outside."""
    from scipy.ndimage import label

    if not workspace.home_part:
        return workspace.inside
    found, _ = label(workspace.inside)
    return found == found[workspace.regions == workspace.home_part][0]


def _nearest(workspace: Workspace, place: float | None) -> Any:
    """Index of the plane of the grid that is nearest to a value of the last axis."""
    if place is None:
        return ...
    axis = list(workspace.axes.values())[-1]
    return ..., int(np.argmin(np.abs(axis - place)))


def _draw_boundary(axes: Any, workspace: Workspace, size: Size) -> None:
    from matplotlib.colors import LightSource, to_rgb
    from matplotlib.ticker import MaxNLocator
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    parts = workspace.parts
    shown = parts[0] if parts and parts[0].has_home else workspace
    mesh = shown.boundary
    step = 1
    while len(mesh.faces) > MAX_TRIANGLES and step < 8:
        step *= 2
        mesh = shown.coarse_boundary(step)
    corners = mesh.vertices[mesh.faces]
    if len(corners):
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        light = LightSource(azdeg=315, altdeg=40).direction
        lengths = np.linalg.norm(normals, axis=1)
        shade = 0.62 + 0.38 * (normals @ light) / np.where(lengths > 0, lengths, 1.0)
        colours = np.clip(shade[:, np.newaxis] * np.array(to_rgb(SURFACE)), 0, 1)
        surface = {"facecolors": colours, "edgecolors": colours, "linewidths": 0.3}
        axes.add_collection3d(Poly3DCollection(corners, **surface))
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        if all(name in LENGTHS for name in workspace.axes):
            axes.set_box_aspect(high - low, zoom=0.88)
    x, y, z = map(_label, workspace.axes)
    axes.set(xlabel=x, ylabel=y)
    axes.set_zlabel(z, labelpad=0.2 * size.text)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=0.8 * size.text)


@dataclass(frozen=True, eq=False)
class Slice:
    """A plane of a workspace: coordinates along its two axes, and values at all points of it."""

    x: Array
    y: Array
    margin: Array
    active: npt.NDArray[np.int16]
    determinant: Array
    dexterity: Array

    @classmethod
    def of(cls, workspace: Workspace, place: float | None) -> Slice:
        """Cut a workspace at a value of its last axis, finely where values can be computed."""
        axes = list(workspace.axes.values())
        x, y = axes[:2]
        if workspace.functions is None:
            cut = _nearest(workspace, place)
            arrays = [getattr(workspace, name)[cut] for name in VALUES]
            return cls(x, y, *arrays)
        x, y = (np.linspace(axis[0], axis[-1], max(FINE, len(axis))) for axis in (x, y))
        grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        if place is not None:
            grid = np.column_stack([grid, np.full(len(grid), place)])
        values = workspace.functions.measure(grid).reshape(len(x), len(y), 4)
        margin, active, determinant, dexterity = np.moveaxis(values, -1, 0)
        return cls(x, y, margin, active.astype(np.int16), determinant, dexterity)

    @property
    def style(self) -> dict[str, Any]:
        """Options of `imshow` that put every value where it belongs."""
        half = [(axis[1] - axis[0]) / 2 for axis in (self.x, self.y)]
        (x0, x1), (y0, y1) = (
            (axis[0] - reach, axis[-1] + reach)
            for axis, reach in zip((self.x, self.y), half, strict=True)
        )
        extent = (x0, x1, y0, y1)
        return {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "nearest"}


def _draw_slice(
    figure: Any, axes: Any, workspace: Workspace, show: str, place: float | None, size: Size
) -> None:
    """A plane of the grid: colours inside, the boundary, and singularities of type 2."""
    from matplotlib.lines import Line2D
    from scipy.ndimage import binary_dilation

    names = list(workspace.axes)
    cut = Slice.of(workspace, place)
    inside = cut.margin >= 0
    shown = binary_dilation(inside, iterations=2)  # what is beyond the boundary is covered again
    handles: list[Any] = []
    if show == "limits":
        handles = _draw_limits(axes, workspace, cut, shown)
    elif show == "regions":
        regions = workspace.regions[_nearest(workspace, place)]
        x, y = list(workspace.axes.values())[:2]
        _draw_regions(axes, regions, (x[0], x[-1], y[0], y[-1]))
    else:
        values = np.where(shown, getattr(cut, show), np.nan)
        top = float(np.nanmax(np.where(workspace.inside, getattr(workspace, show), 0.0)))
        image = axes.imshow(values.T, vmin=0, vmax=top or 1.0, cmap="viridis", **cut.style)
        figure.colorbar(image, ax=axes, label=show, shrink=0.9)
    if inside.any() and not inside.all():
        axes.contourf(cut.x, cut.y, cut.margin.T, [-np.inf, 0.0], colors="white")
        axes.contour(cut.x, cut.y, cut.margin.T, [0.0], colors=INK, linewidths=0.8 * size.line)
    determinant = np.where(inside, cut.determinant, np.nan)
    with np.errstate(invalid="ignore"):
        if (determinant < 0).any() and (determinant > 0).any():
            axes.contour(cut.x, cut.y, determinant.T, [0.0], colors=SINGULAR, linewidths=size.line)
            handles.append(Line2D([], [], color=SINGULAR, linewidth=size.line, label="singular"))
    if handles:
        axes.legend(handles=handles, fontsize=0.75 * size.text, loc="best")
    xlim, ylim = _shown_ranges(workspace)
    axes.set(xlabel=_label(names[0]), ylabel=_label(names[1]), xlim=xlim, ylim=ylim)
    axes.grid(False)
    if all(name in LENGTHS for name in names[:2]):
        axes.set_aspect("equal")
    if place is not None:
        near_zero = abs(place) < NEGLIGIBLE * float(np.ptp(workspace.axes[names[2]]))
        unit = _label(names[2]).split()[-1][1:-1]
        axes.set_title(f"{names[2]} = {0.0 if near_zero else place:.3g} {unit}")
    pin_ticks(axes)


def _shown_ranges(workspace: Workspace) -> list[tuple[float, float]]:
    """Ranges of the first two axes that hold the workspace, with some room."""
    found = []
    for k, axis in enumerate(list(workspace.axes.values())[:2]):
        others = tuple(j for j in range(workspace.margin.ndim) if j != k)
        places = np.flatnonzero(workspace.inside.any(axis=others))
        low, high = (places[0], places[-1]) if len(places) else (0, len(axis) - 1)
        spare = 0.06 * (axis[high] - axis[low]) + (axis[1] - axis[0])
        found.append((float(axis[low] - spare), float(axis[high] + spare)))
    return found


def limit_group(name: str) -> str:
    """Limits of the same kind on legs that are alike: without the numbers of the legs."""
    first, _, kind = name.rpartition(" ")
    if " and " in name:
        return "legs touch"
    stem = re.sub(r"[_.]?([IVXL]+|\d+)(?=$|[_.])|[_.]?\d+$", "", first)
    return f"{stem} {kind}".strip()


def _draw_limits(axes: Any, workspace: Workspace, cut: Slice, shown: Any) -> list[Any]:
    """Draw colours of the nearest limit, fainter where it is far; return what a legend shows."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    groups = list(dict.fromkeys(map(limit_group, workspace.limits)))
    number = np.array([groups.index(limit_group(name)) for name in workspace.limits])
    palette = np.array([to_rgb(COLOURS[k % len(COLOURS)]) for k in range(len(groups))])
    kinds = number[cut.active]
    top = max(float(workspace.margin.max()), 1e-12)
    near = 1 - np.clip(cut.margin / top, 0, 1)
    strength = np.where(shown, 0.15 + 0.75 * near**2, 0.0)[..., np.newaxis]
    colours = strength * palette[kinds] + (1 - strength)
    axes.imshow(colours.transpose(1, 0, 2), **cut.style)
    inside = cut.margin >= 0
    found = [k for k in range(len(groups)) if (inside & (kinds == k)).any()]
    return [Patch(color=palette[k], label=groups[k]) for k in found]


def _draw_regions(
    axes: Any, regions: npt.NDArray[np.int32], extent: tuple[float, float, float, float]
) -> None:
    from matplotlib.colors import to_rgb

    palette = np.array([(1.0, 1.0, 1.0), *(to_rgb(c) for c in COLOURS)])
    shown = np.where(regions > 0, 1 + (regions - 1) % len(COLOURS), 0)
    colours = (0.55 * palette[shown] + 0.45).transpose(1, 0, 2)
    axes.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def plot_singularity_map(
    found: SingularityMap,
    kind: str,
    *,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
) -> Any:
    """Draw a map of singularities; see `SingularityMap.plot`."""
    with drawing(size, save) as drawn:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.lines import Line2D

        measures = drawn.measures
        figure = drawn.figure = new_figure(measures.width, HEIGHT * measures.width)
        axes = figure.subplots()
        margin = found.margins[kind]
        largest = float(np.nanmax(np.where(np.isfinite(margin), margin, np.nan)))
        shades = LinearSegmentedColormap.from_list("margin", SHADES)
        axes.set_facecolor(FAINT)
        levels = np.linspace(0.0, largest, LEVELS + 1)
        filled = axes.contourf(found.x, found.y, margin, levels=levels, cmap=shades)
        bar = figure.colorbar(filled, ax=axes, pad=0.02, format="%.2g")
        bar.set_label("margin")
        bar.outline.set_visible(False)  # type: ignore[operator]
        is_signed = kind in ("serial", "parallel") and bool(np.any(found.side))
        curve, level = (found.signed(kind), 0.0) if is_signed else (margin, NEARLY * largest)
        line = 1.4 * measures.line
        if np.nanmin(curve) <= level <= np.nanmax(curve):
            axes.contour(
                found.x, found.y, curve, levels=[level], colors=COLOURS[1], linewidths=line
            )
            label = "singular" if is_signed else "nearly singular"
            axes.legend(
                handles=[Line2D([], [], color=COLOURS[1], linewidth=line, label=label)],
                loc="lower left",
                bbox_to_anchor=(0.0, 1.01),
            )
        pairs = zip(found.names, found.units, strict=True)
        x, y = (f"{name} [{unit}]" if unit else name for name, unit in pairs)
        axes.set(xlabel=x, ylabel=y)
        if measures.title:
            axes.set_title(f"{found.robot}: {TITLES[kind].lower()}", loc="right", color=INK)
        if found.units == ("m", "m"):
            axes.set_aspect("equal")
        axes.grid(visible=False)
        pin_ticks(axes)
    return figure


def plot_postures(
    postures: Postures, *, size: str = "screen", save: str | PathLike[str] | None = None
) -> Any:
    """Draw a picture of every posture; see `Postures.plot`."""
    if postures.shape:
        raise InvalidArgument(
            f"plot shows the postures of one target, and there are {postures.number.size}; choose "
            "one with postures.of(k)"
        )
    if not len(postures):
        raise InvalidArgument(f"'{postures.model.name}' has no posture to show for these values")
    columns = min(MAX_COLUMNS, math.ceil(math.sqrt(len(postures))))
    rows = math.ceil(len(postures) / columns)
    poses = postures.model.poses(postures.q)
    scene = _with_floor(postures.model.scene, poses)
    width = PIXELS // columns
    camera = camera_of(scene, poses, ASPECT)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        across = measures.width / columns
        figure = drawn.figure = new_figure(measures.width, rows * (across / ASPECT + TITLE))
        for k, label in enumerate(postures.labels):
            axes = figure.add_subplot(rows, columns, k + 1)
            height = round(width / ASPECT)
            axes.imshow(picture(scene, poses[k], camera=camera, width=width, height=height))
            axes.set_axis_off()
            home = ", nearest home" if k == postures.nearest else ""
            axes.set_title(f"{label}{home}", color=INK, fontsize=measures.text)
    return figure


def _with_floor(scene: Scene, poses: Array) -> Scene:
    """Put one floor below all postures, unless the mechanism stands on one."""
    if scene.floors:
        return scene
    heights = []
    for mesh in meshes(scene):
        rows = np.stack([(scene.stance @ scene.pose_of(mesh.body, pose))[2] for pose in poses])
        heights.append((mesh.vertices @ rows[:, :3].T + rows[:, 3]).min())
    lowest = float(min(heights, default=0.0))
    return replace(scene, floors=(Floor(GROUND.name, (0.0, 0.0, lowest), (0.0, 0.0, 1.0)),))


# strips of modes ----------------------------------------------------------------------------------


HIGH = 0.62  # of the distance between two strips
STRUCK = ("strikes", "lands")


def plot_modes(
    run: Trajectory, *, size: str = "screen", save: str | PathLike[str] | None = None
) -> Figure:
    """Draw when each contact sticks, slips and is open; see `Trajectory.plot_modes`.

    Raises:
        InvalidArgument: for a run without modes.
    """
    sized(size)
    modes = run.modes
    if not modes:
        raise InvalidArgument(
            "plot_modes: the run has no modes; simulate a mechanism with friction or stops from "
            'event to event, contacts="events"'
        )
    with drawing(size, save) as drawn:
        measures = drawn.measures
        figure = new_figure(measures.width, (0.32 * len(modes) + 0.8) * measures.panel / 1.6)
        axes = figure.subplots()
        end = float(run.time[-1])
        shown: dict[str, Any] = {}
        for k, spans in enumerate(modes.values()):
            for (begin, mode), (until, _) in zip(spans, [*spans[1:], (end, "")], strict=True):
                if mode in MODES and until > begin:
                    (shown[mode],) = axes.barh(
                        k, until - begin, HIGH, begin, color=MODES[mode], linewidth=0
                    )
        places = {name: k for k, name in enumerate(modes)}
        struck = [e for e in run.contact_events if e["what"] in STRUCK]
        if struck:
            times, rows = [e["time"] for e in struck], [places[e["contact"]] for e in struck]
            marks: dict[str, Any] = {"marker": "|", "color": INK, "s": 40 * measures.line}
            shown["impact"] = axes.scatter(times, rows, zorder=3, **marks)
        axes.set(xlim=(float(run.time[0]), end), ylim=(len(modes) - 0.5, -0.5), xlabel="time [s]")
        axes.set_yticks(range(len(modes)), [readable(name) for name in modes])
        axes.tick_params(axis="y", length=0)
        figure.legend(shown.values(), shown.keys(), loc="outside lower left", ncols=4)
        add_title(figure, [run.name, "contacts"] if measures.title else [], measures)
        drawn.figure = figure
    return figure
