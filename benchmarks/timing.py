"""Times of contestants that run in turn, so that what disturbs one disturbs all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from axode.codegen.targets import jit

jit.OPTIMISING = 0.0  # code is measured as it is in the long run
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


def repeated(
    work: Callable[[], object], samples: int = 1, clock: Callable[[], float] = time.perf_counter
) -> Contestant:
    """Seconds a sample of some work, done often enough for the clock.

    Args:
        work: What is measured.
        samples: How many of them it does.
        clock: `time.process_time` for work of one thread on a machine that others use too.
    """
    work()
    once = max(min(timed(work)[0] for _ in range(3)), 1e-7)
    times = max(1, round(SECONDS_A_MEASUREMENT / once))

    def measure() -> float:
        start = clock()
        for _ in range(times):
            work()
        return (clock() - start) / (times * samples)

    return measure


def net(work: Contestant, overhead: Contestant) -> Contestant:
    """What is left of some work without the overhead of its calls, measured next to it."""

    def measure() -> float:
        return max(float(work()) - float(overhead()), 0.0)

    return measure


class Quiet:
    """Whether other programs kept the processor busy, and how long to put up with it.

    A turn during which others used more than `SHARE` of one core is repeated, until as many seconds
    as `patience` have gone into repeating; then it counts. Where the system does not tell, all
    turns count.
    """

    SHARE = 0.1
    PAUSE = 0.5  # [s] before trying again

    def __init__(self) -> None:
        self.reset(0.0)

    def reset(self, patience: float) -> None:
        """Start counting anew."""
        self.patience = patience  # [s]
        self.turns = self.disturbed = self.repeated = 0

    def others(self, work: Callable[[], None]) -> float:
        """Cores that others kept busy, on average, while some work was done."""
        busy, own, start = _busy(), _own(), time.perf_counter()
        work()
        spent = time.perf_counter() - start
        return max(0.0, _busy() - busy - (_own() - own)) / max(spent, 0.1)

    def turn(self, work: Callable[[], None], undo: Callable[[], None]) -> None:
        """Do a turn, again if it was disturbed and patience is left."""
        while True:
            start = time.perf_counter()
            disturbed = self.others(work) > self.SHARE
            if not disturbed or self.patience <= 0:
                break
            time.sleep(self.PAUSE)
            self.patience -= time.perf_counter() - start
            self.repeated += 1
            undo()
        self.turns += 1
        self.disturbed += disturbed

    def __str__(self) -> str:
        return (
            f"{self.turns} turns, {self.disturbed} of them while other programs used more than "
            f"{self.SHARE:.0%} of a core, {self.repeated} repeated for that"
        )


QUIET = Quiet()


def _busy() -> float:
    """Seconds that all processors have been busy, since they were started."""
    try:
        user, nice, system, _, _, irq, softirq, *_ = (
            float(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        )
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """Seconds of them for this process and those it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def turns(work: Callable[[], Mapping[str, list[float]]], repeat: int) -> dict[str, Times]:
    """Seconds by name, of work done `repeat` times."""
    done: list[Mapping[str, list[float]]] = []
    for _ in range(repeat):
        QUIET.turn(lambda: done.append(work()), undo=done.pop)
    return {name: Times(tuple(x for found in done for x in found[name])) for name in done[0]}


def in_turn(contestants: Mapping[str, Contestant], repeat: int) -> dict[str, Times]:
    """Every contestant once, then all again, `repeat` times."""

    def turn() -> dict[str, list[float]]:
        found = {name: measure() for name, measure in contestants.items()}
        return {name: x if isinstance(x, list) else [x] for name, x in found.items()}

    return turns(turn, repeat)
