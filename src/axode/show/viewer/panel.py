"""What panels share: choices of a view that follows, forces and trails; curves over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from axode.mechanism.scene.scene import Array
from axode.show.style import COLOURS
from axode.show.viewer.drawing import CONTACTS, Drawing, check_trails, trail_names

MOST = 600  # samples drawn
SHADE = "rgba(26, 71, 186, 0.10)"
ASPECT = 1.5  # of a chart
HIDDEN = {"show": False}
# Charts lay out their axes again only if a range changes, and fail to if their size changes with
# their data, as when they first appear while a recording plays. Every other time, their range
# is longer by this share of it, too little to see.
RANGE_CHANGE = 1e-7
NO_SIGNAL = "none"


class Curves:
    """One chart of signals for each of their units."""

    def __init__(self, gui: Any) -> None:
        self._gui = gui
        self._charts: dict[str, Any] = {}
        self._names: tuple[str, ...] = ()
        self._even = False

    def draw(
        self,
        time: Array,
        columns: Mapping[str, Array],
        units: Mapping[str, str],
        now: float | None = None,
    ) -> None:
        """Draw columns by name over time; `now` parts what has passed from what comes."""
        stride = max(1, -(-len(time) // MOST))
        x = np.array(time[::stride], dtype=float)
        self._even = not self._even
        passed = () if now is None else ((x <= now).astype(float),)
        if self._even:
            x[-1] += RANGE_CHANGE * (x[-1] - x[0])
        if self._names != tuple(columns):
            self.remove()
            self._names = tuple(columns)
        for unit in dict.fromkeys(units[name] for name in columns):
            chosen = {name: y[::stride] for name, y in columns.items() if units[name] == unit}
            data = (x, *chosen.values(), *passed)
            if unit in self._charts:
                self._charts[unit].data = data
            else:
                self._charts[unit] = self._add(data, tuple(chosen), unit)

    def _add(self, data: tuple[Array, ...], names: tuple[str, ...], unit: str) -> Any:
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        series += [
            {"label": name, "stroke": COLOURS[k % len(COLOURS)], "width": 1.6, "points": HIDDEN}
            for k, name in enumerate(names)
        ]
        if len(data) > len(series):
            series.append(
                {
                    "label": "already shown",
                    "scale": "passed",
                    "fill": SHADE,
                    "stroke": SHADE,
                    "width": 0,
                    "points": HIDDEN,
                }
            )
        label = {"labelSize": 18, "size": 44}
        return self._gui.add_uplot(
            data,
            tuple(series),
            aspect=ASPECT,
            legend={"show": True, "live": False},
            scales={"x": {"time": False}, "passed": {"range": (0.0, 1.0)}},
            axes=({"label": "t [s]", **label, "size": 32}, {"label": unit or "1", **label}),
            padding=(8, 16, 0, 0),
            order=1000.0,
        )

    def remove(self) -> None:
        """Take all charts away."""
        for chart in self._charts.values():
            chart.remove()
        self._charts, self._names = {}, ()


class Looks:
    """A folder of the panel.

    Attributes:
        trails: Names of the points whose paths are drawn.
        signals: Names of the columns whose curves are drawn.
        forces: Whether contact forces are drawn.
        changed: Set when one of them has changed.
    """

    def __init__(
        self,
        gui: Any,
        drawing: Drawing,
        columns: Sequence[str],
        *,
        follow: bool,
        forces: bool,
        trails: Sequence[str],
        signals: Sequence[str],
        own: Callable[..., Any],
    ) -> None:
        self.trails = check_trails(drawing.scene, trails)
        self.signals = tuple(signals)
        self.forces = forces and bool(drawing.scene.touches)
        self.changed = True
        drawing.follow(follow)
        with gui.add_folder("Show"):
            followed = gui.add_checkbox("follow", follow, hint="Keep the mechanism in view.")
            followed.on_update(own(lambda event: drawing.follow(followed.value)))
            shaded = gui.add_checkbox("shadows", True, hint="Without them pages draw faster.")
            shaded.on_update(own(lambda event: drawing.shadows(shaded.value)))
            if drawing.scene.touches:
                hint = (
                    "Of the ground on the wheels: longitudinal blue, lateral orange, normal green."
                )
                shown = gui.add_checkbox("contact forces", self.forces, hint=hint)
                shown.on_update(own(lambda event: self._set(forces=shown.value)))
            names = trail_names(drawing.scene)
            trail = gui.add_dropdown("trail", names, initial_value=_one(self.trails, names))
            trail.on_update(own(lambda event: self._trail(drawing, trail.value)))
            if columns:
                first = self.signals[0] if self.signals else NO_SIGNAL
                curve = gui.add_dropdown("curve", (NO_SIGNAL, *columns), initial_value=first)
                curve.on_update(own(lambda event: self._set(signals=_chosen(curve.value))))

    def _trail(self, drawing: Drawing, name: str) -> None:
        drawing.forget_trails()
        self._set(trails=check_trails(drawing.scene, [name]))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        self.changed = True


def _one(trails: tuple[str, ...], names: tuple[str, ...]) -> str:
    """The choice that stands for some trails, or for none where no single one does."""
    if len(trails) == 1:
        return trails[0]
    return CONTACTS if trails and CONTACTS in names else NO_SIGNAL


def _chosen(name: str) -> tuple[str, ...]:
    return () if name == NO_SIGNAL else (name,)
