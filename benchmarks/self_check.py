"""What the self-check of `derive` costs, in processor time.

    python -m benchmarks.self_check --out benchmarks/results/DATE-self-check.json

Per mechanism: seconds of `derive` without the check, of the check itself, and of the link inertias
that it asks for and that direct and inverse dynamics would otherwise build later.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import axode as ax
from axode.mechanism.mechanism import Mechanism
from axode.symbolic.formulations.self_check import SelfCheck

REPEAT = 3
SIZES = (7, 30, 50, 100)


def chain(n: int) -> Mechanism:
    """A chain of revolute joints whose axes alternate."""
    bot = ax.Mechanism(f"chain of {n}")
    parent: Any = bot.ground
    for i in range(n):
        body = bot.add_body(f"b{i}", mass=1.0, com=(0.1, 0.02, 0.01), inertia=(0.01, 0.02, 0.025))
        at = (0.2, 0.0, 0.0) if i else (0.0, 0.0, 0.0)
        axis = "z" if i % 2 else "y"
        bot.add_joint(f"j{i}", ax.Revolute(axis), parent=parent, child=body, at=at)
        parent = body
    return bot


def measure(build: Callable[[], Mechanism]) -> dict[str, float]:
    """Least of several times, in milliseconds."""
    found: list[tuple[float, float, float]] = []
    for _ in range(REPEAT):
        mechanism = build()
        start = time.process_time()
        system = mechanism.derive(self_check=False).system
        derived = time.process_time()
        _ = system.regrouped, system.still_tree
        grouped = time.process_time()
        SelfCheck(system).check_system()
        checked = time.process_time()
        found.append((derived - start, checked - grouped, grouped - derived))
    names = ("derive", "check", "link inertias")
    return {
        n: round(1e3 * min(times), 1)
        for n, times in zip(names, zip(*found, strict=True), strict=True)
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    builds: dict[str, Callable[[], Mechanism]] = {
        f"chain of {n}": lambda n=n: chain(n) for n in SIZES
    }
    builds |= {name: lambda name=name: ax.gallery.build(name) for name in ax.gallery.NAMES}
    table = {name: measure(build) for name, build in builds.items()}
    for name, times in table.items():
        print(f"{name:22}" + "".join(f"{key} {value:8.1f} ms  " for key, value in times.items()))
    if options.out:
        date = datetime.now(UTC).date().isoformat()
        options.out.write_text(json.dumps({"date": date, "milliseconds": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
