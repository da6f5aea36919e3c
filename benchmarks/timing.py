"""Times of contestants that run in turn, so that what disturbs one disturbs all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
SECONDS_A_MEASUREMENT = 0.01

# One measurement: seconds a sample, one or several of them.
Contestant = Callable[[], float | list[float]]


@dataclass(frozen=True)
class Times:
    """Seconds of repeated measurements."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)

    def text(self, unit: str = "ms", digits: int = 1) -> str:
        """Median, and least and most in brackets."""
        scale = UNITS[unit]
        low, high = scale * self.least, scale * self.most
        return f"{scale * self.median:.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"

    def __str__(self) -> str:
        return self.text()


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def repeated(work: Callable[[], object], samples: int = 1) -> Contestant:
    """Seconds a sample of some work, done often enough for the clock."""
    work()
    once = max(min(timed(work)[0] for _ in range(3)), 1e-7)
    times = max(1, round(SECONDS_A_MEASUREMENT / once))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) / (times * samples)

    return measure


def net(work: Contestant, overhead: Contestant) -> Contestant:
    """What is left of some work without the overhead of its calls, measured next to it."""

    def measure() -> float:
        return max(float(work()) - float(overhead()), 0.0)

    return measure


def in_turn(contestants: Mapping[str, Contestant], repeat: int) -> dict[str, Times]:
    """Every contestant once, then all again, `repeat` times."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeat):
        for name, measure in contestants.items():
            seconds = measure()
            found[name] += seconds if isinstance(seconds, list) else [seconds]
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}
