"""Picture of a map of singularities: margins as shades, singular curves as lines."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.disk.atomic import write_atomically
from axode.show.plot.plots import picture_bytes, picture_suffix
from axode.show.style import COLOURS, FAINT, INK, figure_style, new_figure, pin_ticks, sized

if TYPE_CHECKING:
    from axode.kinematics.velocities.singularities import SingularityMap

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


def plot_singularity_map(
    found: SingularityMap,
    kind: str,
    *,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
) -> Any:
    """Draw a map of singularities; see `SingularityMap.plot`."""
    sized(size)
    suffix = None if save is None else picture_suffix(save)
    with figure_style(size) as measures:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.lines import Line2D

        drawn = new_figure(measures.width, HEIGHT * measures.width)
        axes = drawn.subplots()
        margin = found.margins[kind]
        largest = float(np.nanmax(np.where(np.isfinite(margin), margin, np.nan)))
        shades = LinearSegmentedColormap.from_list("margin", SHADES)
        axes.set_facecolor(FAINT)
        levels = np.linspace(0.0, largest, LEVELS + 1)
        filled = axes.contourf(found.x, found.y, margin, levels=levels, cmap=shades)
        bar = drawn.colorbar(filled, ax=axes, pad=0.02, format="%.2g")
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
        axes.set_xlabel(_label(found.names[0], found.units[0]))
        axes.set_ylabel(_label(found.names[1], found.units[1]))
        if measures.title:
            axes.set_title(f"{found.robot}: {TITLES[kind].lower()}", loc="right", color=INK)
        if found.units == ("m", "m"):
            axes.set_aspect("equal")
        axes.grid(visible=False)
        pin_ticks(axes)
        drawn.canvas.figure.draw_without_rendering()
        if save is not None and suffix is not None:
            write_atomically(Path(save), picture_bytes(drawn, suffix, measures))
    return drawn


def _label(name: str, unit: str) -> str:
    return f"{name} [{unit}]" if unit else name
