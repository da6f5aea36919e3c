"""Parameters of a gallery mechanism: a table of defaults, changed by keywords."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import UnknownName
from axode.mechanism.values.expressions import Parameter

Array = npt.NDArray[np.float64]


def parameters(
    owner: str, defaults: Mapping[str, float], values: Mapping[str, float]
) -> SimpleNamespace:
    """A `Parameter` for every default, as attributes; values take the place of defaults.

    Raises:
        UnknownName: for a value that no default stands for.
    """
    for name in values:
        if name not in defaults:
            function = getattr(import_module(f"axode.gallery.{owner}"), owner)
            own = [entry for entry in signature(function).parameters if entry != "values"]
            raise UnknownName(f"'{owner}' of the gallery", "parameter", name, [*own, *defaults])
    merged = {**defaults, **values}
    return SimpleNamespace(**{name: Parameter(name, value) for name, value in merged.items()})


def turn(axes: str, *angles: float) -> Array:
    """Return the matrix of turns about axes that turn along, such as "ZYX"."""
    R = np.eye(3)
    for axis, angle in zip(axes, angles, strict=True):
        i, j = ((1, 2), (2, 0), (0, 1))["XYZ".index(axis)]
        own = np.eye(3)
        own[i, i] = own[j, j] = math.cos(angle)
        own[j, i] = math.sin(angle)
        own[i, j] = -own[j, i]
        R = R @ own
    return R


@dataclass(frozen=True)
class Difference:
    """A measure: one signal of the state less another."""

    first: str
    second: str

    def __call__(self, state: Any) -> Any:
        return state[self.first] - state[self.second]
