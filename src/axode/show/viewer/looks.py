"""Choices of the panel: a view that follows, forces, trails, curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axode.show.viewer.drawing import Drawing
from axode.show.viewer.trails import CONTACTS, check_trails, trail_names

NO_SIGNAL = "none"


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
