"""What a peer's process tells the one that started it: rows of numbers, a line each."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MARK = "row: "
LONG_ENOUGH = 0.2  # [s] of one timed call
FOR_COMPILING = 0.6  # of the time a stage has
_begun = time.perf_counter()


def tell(**row: Any) -> None:
    """Hand a row over at once: what comes later may fail."""
    print(MARK + json.dumps(row), flush=True)


def patience() -> float:
    """Seconds to wait for compilers from now on, by the limit that the stage was given."""
    limit = float(os.environ.get("PEERS_LIMIT", "300"))
    return max(0.0, FOR_COMPILING * limit - (time.perf_counter() - _begun))


def seconds_a_call(repeat: Callable[[int], None]) -> float:
    """Median of samples that are long enough; `repeat` calls so often and waits for the end."""
    repeat(1)
    calls, spent = 1, timed(repeat, 1)
    while spent < LONG_ENOUGH / 4:
        calls *= 4
        spent = timed(repeat, calls)
    calls = max(1, math.ceil(calls * LONG_ENOUGH / spent))
    samples = 5 if spent < 1.0 else 1
    return float(np.median([timed(repeat, calls) for _ in range(samples)])) / calls


def timed(call: Callable[..., None], *arguments: int) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def tiled(array: np.ndarray, count: int) -> np.ndarray:
    """The stored samples repeated to a batch."""
    return np.resize(array, (count, *array.shape[1:]))
