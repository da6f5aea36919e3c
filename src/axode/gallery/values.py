"""Parameters of a gallery mechanism: a table of defaults, changed by keywords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def difference(first: str, second: str) -> Callable[[Any], Any]:
    """A measure: one signal of the state less another."""
    return lambda s: s[first] - s[second]
