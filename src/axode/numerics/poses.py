"""Poses of frames in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RigidPose:
    """Orientation and position of one frame in another: axes in columns of `R`, origin `p` [m]."""

    R: Array
    p: Array

    def __matmul__(self, other: RigidPose) -> Self:
        return type(self)(self.R @ other.R, self.point(other.p))

    def inverse(self) -> Self:
        """Return the pose of the outer frame in the inner one."""
        return type(self)(self.R.T, -self.R.T @ self.p)

    def point(self, at: Any) -> Array:
        """Return a point of the inner frame in the outer one."""
        return self.p + self.R @ np.asarray(at, float)

    def direction(self, axis: Any) -> Array:
        """Return a direction of the inner frame in the outer one."""
        return np.asarray(self.R @ np.asarray(axis, float))
