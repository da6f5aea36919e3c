"""Variants of tests that `make test` leaves out: `make test-slow` or `make soak` runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# Random draws of the registry beyond the first of each kind.
FURTHER_DRAWS = frozenset(
    [
        *(f"tree_{seed}" for seed in (1, 2, 3)),
        *(f"loop_{seed}" for seed in (31, 32, 33)),
        *("on_a_plinth", "double_spin", "parametric_arm"),
        *(f"vehicle_{seed}" for seed in (2, 3, 4, 5, 6, 7)),
    ]
)


def further(*values: Any, marks: Any = pytest.mark.soak) -> Any:
    """Return arguments for `parametrize` that only `make soak` tries."""
    return pytest.param(*values, marks=marks)


def slow(values: Iterable[Any], *slow: Any) -> list[Any]:
    """Return values for `parametrize`, those of `slow` for `make test-slow` only."""
    return [further(value, marks=pytest.mark.slow) if value in slow else value for value in values]


def quick(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return values for `parametrize`, those beside `quick` for `make test-slow` only."""
    values = list(values)
    return slow(values, *(value for value in values if value not in quick))


def some(values: Iterable[Any], *rest: Any) -> list[Any]:
    """Return values for `parametrize`, those of `rest` for `make soak` only."""
    return [further(value) if value in rest else value for value in values]
