"""Parameters of a gallery mechanism: a table of defaults, changed by keywords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from axode.errors import UnknownName
from axode.mechanism.values.expressions import Parameter


def parameters(
    owner: str, defaults: Mapping[str, float], values: Mapping[str, float]
) -> SimpleNamespace:
    """A `Parameter` for every default, as attributes; values take the place of defaults.

    Raises:
        UnknownName: for a value that no default stands for.
    """
    for name in values:
        if name not in defaults:
            raise UnknownName(f"'{owner}' of the gallery", "parameter", name, defaults)
    merged = {**defaults, **values}
    return SimpleNamespace(**{name: Parameter(name, value) for name, value in merged.items()})


@dataclass(frozen=True)
class Difference:
    """A measure: one signal of the state less another."""

    first: str
    second: str

    def __call__(self, state: Any) -> Any:
        return state[self.first] - state[self.second]
