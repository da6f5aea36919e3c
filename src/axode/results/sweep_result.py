"""The result of a sweep: named arrays, one number per run, over the values that were swept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.names import Names

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Mapping[str, Array]):
    """Numbers of many runs by name.

    Attributes:
        arrays: By name, each of the shape of the batch; NaN for runs that did not finish.
        axes: Values of each axis of the batch by name; none where arrays were zipped.
        finished: Which runs came to their end.
        statuses: How often runs ended in each way.
        info: Model, steps and time it took, in JSON's own types.
    """

    arrays: Mapping[str, Array]
    axes: Mapping[str, Array]
    finished: npt.NDArray[np.bool_]
    statuses: Mapping[str, int]
    info: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[Names("the sweep", "output", self.arrays).resolve(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch of runs."""
        return self.finished.shape

    def _repr_html_(self) -> str:
        from axode.results.notebook import sweep_html

        return sweep_html(self)

    def __repr__(self) -> str:
        over = " x ".join(f"{name} ({len(a)})" for name, a in self.axes.items())
        ended = ", ".join(f"{count} {words}" for words, count in self.statuses.items())
        lines = [f"Sweep({self.finished.size} runs{' over ' + over if over else ''}: {ended})"]
        for name, array in self.arrays.items():
            known = array[np.isfinite(array)]
            span = f"{known.min():.6g} ... {known.max():.6g}" if known.size else "not a number"
            lines.append(f"  {name}: {span}")
        return "\n".join(lines)
