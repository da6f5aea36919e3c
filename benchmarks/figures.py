"""Figures of the saved numbers, for the manual."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from axode.names import title_words
from axode.show.style import COLOURS, GREY, INK, figure_style
from benchmarks.contestants import SCALAR, SIMD
from benchmarks.timing import Times

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

OURS, OURS_LIGHT, THEIRS, THEIRS_LIGHT = COLOURS[1], COLOURS[6], INK, GREY
FEWER_BYTES = {"svg.fonttype": "none"}  # text stays text, in whatever font the reader has
FAMILIES = (
    ("chain", "links of a chain", "Chain"),
    ("platform", "legs of a platform", "Platform on legs, closed loops"),
)
# Names of a line, the first of them that was measured; its label, colour, and the label's shift.
LINES = (
    ((SCALAR,), "Axode, scalar", OURS, 0),
    ((SIMD,), "Axode, SIMD batch", OURS_LIGHT, 0),
    (("Pinocchio C++, aba", "Pinocchio from Python, aba"), "Pinocchio, aba", THEIRS, 0),
    (
        ("Pinocchio C++, constraintDynamics", "Pinocchio from Python, constraintDynamics"),
        "Pinocchio, constraintDynamics",
        THEIRS,
        5,
    ),
    (("Pinocchio C++, lcaba",), "Pinocchio, lcaba", THEIRS_LIGHT, -5),
)


def draw_growth(found: dict[str, Any], folder: Path) -> list[Path]:
    """Time a sample, and time to build, against size."""
    with figure_style("screen"), plt.rc_context(FEWER_BYTES):  # type: ignore[arg-type]
        return [*_times(found, folder), *_building(found, folder)]


def _times(found: dict[str, Any], folder: Path) -> list[Path]:
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), sharey=True, layout="constrained")
    for axis, (key, label, title) in zip(axes, FAMILIES, strict=True):
        rows = found[key]
        sizes = [row["size"] for row in rows]
        for names, text, colour, shift in LINES:
            name = next((n for n in names if n in rows[0]["seconds"]), None)
            if name is None:
                continue
            times = [Times(tuple(row["seconds"][name])) for row in rows]
            axis.fill_between(
                sizes,
                [1e9 * t.least for t in times],
                [1e9 * t.most for t in times],
                color=colour,
                alpha=0.15,
                linewidth=0,
            )
            axis.plot(sizes, [1e9 * t.median for t in times], "o-", color=colour, markersize=4)
            axis.annotate(
                text,
                (sizes[-1], 1e9 * times[-1].median),
                xytext=(8, shift),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize=9,
            )
        _logarithmic(axis, rows, label, title, room=0.7)
    axes[0].set_ylabel("direct dynamics, one core [ns per sample]")
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}".replace(",", " ")))
    return _save(figure, folder / "benchmark-growth")


def _building(found: dict[str, Any], folder: Path) -> list[Path]:
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), sharey=True, layout="constrained")
    kinds = (
        ("derive", "derive the equations", THEIRS),
        ("compile_scalar", "compile, scalar", OURS),
        ("compile_simd", "compile, SIMD", OURS_LIGHT),
    )
    for axis, (key, label, title) in zip(axes, FAMILIES, strict=True):
        rows = found[key]
        sizes = [row["size"] for row in rows]
        for kind, text, colour in kinds:
            seconds = [Times(tuple(row[kind])).median for row in rows]
            axis.plot(sizes, seconds, "o-", color=colour, markersize=4, label=text)
        _logarithmic(axis, rows, label, title, room=0.05)
    axes[0].legend(frameon=False, loc="upper left")
    axes[0].set_ylabel("once, from scratch [s]")
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    return _save(figure, folder / "benchmark-build")


WAYS = (  # how a setting ends or begins; label, colour, marker
    (re.compile(r"rtol [^,]*"), "adaptive, order 5 or 8", OURS, "o"),
    (re.compile(r"rtol .*, dopri5"), "adaptive, order 5", OURS_LIGHT, "s"),
    (re.compile(r"step .*"), "fixed, order 4", THEIRS, "^"),
)


def draw_work_precision(measured: dict[str, Any], folder: Path) -> list[Path]:
    """Time against error of sweeps, one panel per mechanism."""
    with figure_style("screen"), plt.rc_context(FEWER_BYTES):  # type: ignore[arg-type]
        figure, panels = plt.subplots(2, 3, figsize=(10.5, 6.4), layout="constrained")
        for axes, (name, case) in zip(panels.flat, measured.items(), strict=False):
            for pattern, label, colour, marker in WAYS:
                found = [v for key, v in case["settings"].items() if pattern.fullmatch(key)]
                # runs without a number have no error to compare
                points = [(v["error"], 1e3 * v["seconds"]) for v in found if v["finished"]]
                whole = [v["finished"] == case["rows"] for v in found if v["finished"]]
                line = np.array(points).reshape(-1, 2).T
                axes.plot(*line, marker + "-", color=colour, label=label, markersize=5)
                axes.plot(*line[:, ~np.array(whole, bool)], marker, color="white", markersize=3)
            axes.set(xscale="log", yscale="log")
            axes.margins(0.06)
            axes.invert_xaxis()
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_locator(NullLocator())
            axes.set_title(f"{title_words(name)}, {case['rows']} runs")
        for axes in panels[:, 0]:
            axes.set_ylabel("whole call, one thread [ms]")
        for axes in panels.flat[2:5]:
            axes.set_xlabel("largest error, of the largest number")
        panels.flat[3].plot([], [], "o", color="white", mec=INK, label="some runs without a number")
        legend = panels.flat[3].get_legend_handles_labels()
        panels.flat[5].axis("off")
        panels.flat[5].legend(*legend, loc="center left", title="lower and further right is better")
        return _save(figure, folder / "benchmark-work-precision")


def _logarithmic(
    axis: Axes, rows: Sequence[dict[str, Any]], label: str, title: str, room: float
) -> None:
    """Both axes, sizes and operations below, and `room` for names to the right of the lines."""
    sizes = [row["size"] for row in rows]
    named = [rows[-1]]
    for row in reversed(rows):  # as many as there is room for
        if 1.3 * row["size"] <= named[-1]["size"]:
            named.append(row)
    axis.set_xscale("log")
    axis.set_yscale("log")
    texts = [f"{row['size']}\n{row['operations']}" for row in named]
    axis.set_xticks([row["size"] for row in named], texts)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(f"{label}, and operations of the function")
    axis.set_title(title)
    low, high = np.log(sizes[0]), np.log(sizes[-1])
    axis.set_xlim(np.exp(low - 0.05 * (high - low)), np.exp(high + room * (high - low)))


def _save(figure: Any, path: Path) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(".svg"), path.with_suffix(".png")]
    figure.savefig(files[0], metadata={"Date": None})
    figure.savefig(files[1], dpi=160)
    plt.close(figure)
    return files
