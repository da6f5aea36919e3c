"""Where a trajectory comes from; not saved with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from axode.codegen.model import Model


@dataclass(frozen=True)
class Origin:
    """The model that made a trajectory.

    Attributes:
        model: The model.
        p: Its free parameters, (size,) or (runs, size) where runs differ; None if it has none.
    """

    model: Model
    p: npt.NDArray[np.float64] | None = None

    def run(self, index: int) -> Origin:
        """Of one run, counted through all axes of the batch."""
        return self if self.p is None or self.p.ndim == 1 else replace(self, p=self.p[index])

    @property
    def parameters(self) -> dict[str, float] | None:
        """By name, where all runs share them."""
        if self.p is None or self.p.ndim > 1:
            return None
        return dict(zip(self.model.parameters, self.p.tolist(), strict=True))
