"""Measures: named quantities of the state that are worth looking at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from axode.mechanism.values.geometry import ORIGIN, Vector

# kind: (suffixes of the names it gives, units, whether it needs speeds)
KINDS: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "position": ((".x", ".y", ".z"), "m", False),
    "velocity": ((".vx", ".vy", ".vz"), "m/s", True),
    "distance": (("",), "m", False),
    "roll": (("",), "rad", False),
    "pitch": (("",), "rad", False),
    "yaw": (("",), "rad", False),
    "roll_rate": (("",), "rad/s", True),
    "pitch_rate": (("",), "rad/s", True),
    "yaw_rate": (("",), "rad/s", True),
    "surge": (("",), "m/s", True),
    "sway": (("",), "m/s", True),
    "heave": (("",), "m/s", True),
}


@dataclass(frozen=True)
class Measure:
    """A named quantity of the state.

    Args:
        name: What it is called; a position is three: `name.x`, `name.y`, `name.z`.
        kind: One of `KINDS`, or "function".
        body, at: The body and the point of it that is meant [m].
        other, other_at: The far end of a distance.
        function: For "function": called once with the state's symbols.
        unit: Unit of a function's value.
    """

    name: str
    kind: str
    body: str = ""
    at: Vector = ORIGIN
    other: str = "ground"
    other_at: Vector = ORIGIN
    function: Callable[[Any], Any] | None = None
    unit: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its components."""
        suffixes = KINDS[self.kind][0] if self.kind in KINDS else ("",)
        return tuple(self.name + suffix for suffix in suffixes)
