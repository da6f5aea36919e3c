"""Where a trajectory comes from; not saved with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.model import Model


@dataclass(frozen=True)
class Origin:
    """The model that made a trajectory.

    Attributes:
        model: The model.
        p: Its free parameters, (size,) or (runs, size) where runs differ; None if it has none.
    """

    model: Model
    p: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(cls, model: Model, parameters: Any = None) -> Origin:
        """Origin from a model and values of its parameters by name, defaults elsewhere."""
        if not model.parameters or facts_of(model).fixed:
            return cls(model)
        p = model.parameter_vector(parameters)
        return cls(model, p.reshape(-1, p.shape[-1]) if p.ndim > 1 else p)

    def run(self, index: int) -> Origin:
        """Origin of one run, counted through all axes of the batch."""
        return self if self.p is None or self.p.ndim == 1 else replace(self, p=self.p[index])

    @property
    def parameters(self) -> dict[str, float] | None:
        """Parameters by name, where all runs share them."""
        if self.p is None or self.p.ndim > 1:
            return None
        return dict(zip(self.model.parameters, self.p.tolist(), strict=True))
