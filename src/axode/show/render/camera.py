"""Viewpoint of a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from axode.mechanism.scene.scene import Array, Triple


@dataclass(frozen=True)
class Camera:
    """A viewpoint: it looks at `target` from a distance, turned about the vertical, and raised.

    Attributes:
        target: The point in the middle of the picture [m].
        distance: From there [m].
        azimuth, elevation: Direction from the target to the eye [rad].
        field: Opening angle of the picture's height [rad].
    """

    target: Triple
    distance: float
    azimuth: float = math.radians(-55)
    elevation: float = math.radians(22)
    field: float = math.radians(30)

    @classmethod
    def around(
        cls,
        points: Array,
        azimuth: float | None = None,
        elevation: float | None = None,
        aspect: float = 4 / 3,
    ) -> Camera:
        """Return a camera that sees all points."""
        low, high = points.min(0), points.max(0)
        centre = (low + high) / 2
        camera = cls((float(centre[0]), float(centre[1]), float(centre[2])), 1.0)
        turn = camera.azimuth if azimuth is None else azimuth
        raised = camera.elevation if elevation is None else elevation
        camera = cls(camera.target, 1.0, turn, raised)
        seen = (points - centre) @ camera.axes.T
        half = math.tan(camera.field / 2) * 0.86
        needed = np.maximum(np.abs(seen[:, 0]) / (half * aspect), np.abs(seen[:, 1]) / half)
        distance = float(np.max(needed + seen[:, 2]))  # what is nearer looks larger
        return cls(camera.target, max(distance, 1e-3), turn, raised)

    @property
    def axes(self) -> Array:
        """Rows: right, up, and backwards from the target to the eye."""
        ca, sa = math.cos(self.azimuth), math.sin(self.azimuth)
        ce, se = math.cos(self.elevation), math.sin(self.elevation)
        return np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])

    def pixel(self, height: int) -> float:
        """Return the size of a pixel at the target, in a picture of this many rows [m]."""
        return 2.0 * self.distance * math.tan(self.field / 2) / height

    @property
    def eye(self) -> Array:
        """Where it stands [m]."""
        return np.array(self.target) + self.distance * self.axes[2]
