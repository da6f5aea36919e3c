"""Curves over time in the panel, with what has passed shaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from axode.mechanism.scene.scene import Array
from axode.show.style import COLOURS

MOST = 600  # samples drawn
SHADE = "rgba(26, 71, 186, 0.10)"


class Curves:
    """One chart of some signals of one unit, or of several."""

    def __init__(self, gui: Any) -> None:
        self._gui = gui
        self._chart: Any = None
        self._names: tuple[str, ...] = ()

    def draw(self, time: Array, columns: dict[str, Array], now: float | None = None) -> None:
        """Draw columns by name over time; `now` parts what has passed from what comes."""
        stride = max(1, -(-len(time) // MOST))
        x = time[::stride]
        passed = np.zeros(len(x)) if now is None else (x <= now).astype(float)
        data = (x, *(column[::stride] for column in columns.values()), passed)
        if self._chart is not None and self._names == tuple(columns):
            self._chart.data = data
            return
        self.remove()
        self._names = tuple(columns)
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        series += [
            {
                "label": name,
                "stroke": COLOURS[k % len(COLOURS)],
                "width": 1.6,
                "points": {"show": False},
            }
            for k, name in enumerate(columns)
        ]
        series.append(
            {"label": "", "scale": "passed", "fill": SHADE, "width": 0, "points": {"show": False}}
        )
        self._chart = self._gui.add_uplot(
            data,
            tuple(series),
            aspect=1.5,
            title=", ".join(columns),
            legend={"show": False},
            scales={"x": {"time": False}, "passed": {"range": (0.0, 1.0)}},
            padding=(8, 16, 0, 0),
            order=1000.0,
        )

    def remove(self) -> None:
        """Take it away."""
        if self._chart is not None:
            self._chart.remove()
        self._chart = None
