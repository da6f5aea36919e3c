"""Figures of reproductions: panels in the source's order, our curves and the source's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axode.reproduce.item import Curve, Outcome, Panel
from axode.show.style import COLOURS, FAINT, INK, figure_style, new_figure, png

HEIGHT = 2.35  # [in] of a row of panels
LEGEND = 0.32  # [in] of a row of the legend
DPI = 110
BROAD = 5.0  # [pt] of the source's curves, beneath ours, so that both are seen where they agree
DOTS = (0, (1, 1.5))  # its numbers


def drawn(outcome: Outcome) -> bytes:
    """The figure of an outcome as the bytes of a PNG."""
    with figure_style() as size:
        rows = -(-len(outcome.panels) // outcome.across)
        figure = new_figure(size.width, rows * HEIGHT + LEGEND)
        grid: Any = figure.subplots(rows, outcome.across, squeeze=False).ravel()
        for axes, panel in zip(grid, outcome.panels, strict=False):
            _draw(axes, panel)
        for axes in grid[len(outcome.panels) :]:
            axes.set_visible(False)
        _explain(figure, grid[: len(outcome.panels)], outcome.panels)
        return png(figure, DPI)


def _draw(axes: Any, panel: Panel) -> None:
    theirs = [curve for curve in panel.curves if curve.role == "printed"]
    for k, curve in enumerate(_ours(panel)):
        axes.plot(curve.x, curve.y, color=COLOURS[k % len(COLOURS)], label=curve.label)
    for curve in theirs:
        axes.plot(curve.x, curve.y, color=FAINT, linewidth=BROAD, label=curve.label, zorder=1.5)
    for level in panel.levels:
        axes.axhline(level.value, color=INK, linestyle=DOTS, linewidth=1.2, label=level.label)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.window:
        axes.set_xlim(*panel.window)
    if panel.heights:
        axes.set_ylim(*panel.heights)
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")


def _explain(figure: Any, grid: Sequence[Any], panels: Sequence[Panel]) -> None:
    """One legend for all panels if their curves have the same names, one in each if not."""
    names = {tuple(curve.label for curve in _ours(panel)) for panel in panels}
    if len(names) > 1:
        for axes in grid:
            if axes.get_legend_handles_labels()[1]:
                axes.legend(loc="best")
        return
    shared: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shared.setdefault(label, handle)
    if shared:
        figure.legend(shared.values(), shared.keys(), loc="outside lower center",
                      ncols=min(len(shared), 6))  # fmt: skip


def _ours(panel: Panel) -> list[Curve]:
    return [curve for curve in panel.curves if curve.role == "ours"]
