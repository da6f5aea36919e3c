"""Time-optimal motions: whole calls, first and later ones, beside toppra where it is installed.

    python -m benchmarks.motions [--out results.json] [--repeat 7]

Times are of the processor, so that other programs disturb them little; the least of some turns is
shown. toppra gets the same spline through the same waypoints, the same limits and the same grid;
for limits of torques it calls Axode's compiled inverse dynamics, sample by sample, as it does with
any.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.model.model_parts import facts_of
from benchmarks.conditions import conditions

POINTS = 1001
SPEED, ACCELERATION, TORQUE = 1.5, 4.0, 60.0
PATHS = 64  # of a batch
FEW_POINTS = 301  # about as accurate as toppra with 1001


def arm_waypoints(seed: int = 0, count: int = 5) -> list[dict[str, float]]:
    """Random waypoints of the five-axis arm."""
    rng = np.random.default_rng(seed)
    return [
        dict(zip([f"theta{k}" for k in range(1, 6)], row.tolist(), strict=True))
        for row in rng.uniform(-1, 1, (count, 5))
    ]


def problems() -> dict[str, Callable[[], Any]]:
    """Calls of `time_optimal`, each on a model that has been compiled."""
    arm, five_bar, platform, cart = (
        ax.gallery.build(name).derive().compile()
        for name in ("five_axis_arm", "five_bar", "six_legged_platform", "differential_drive")
    )
    places = arm_waypoints()
    tip = [
        {"tip.x": x, "tip.y": y} for x, y in ((0.0, 0.3), (0.1, 0.35), (0.05, 0.25), (-0.1, 0.3))
    ]
    home = platform.poses(platform.home)[facts_of(platform).bodies.index("platform")]
    poses = [
        {"platform": home},
        {"platform": ((0.1, 0.05, 0.9), (0.2, 0.1, 0.3))},
        {"platform": ((-0.1, 0.05, 0.95), (0.0, 0.1, -0.3))},
    ]
    many = [ax.motions.through(arm_waypoints(seed), times=[0, 1, 2, 3, 4]) for seed in range(PATHS)]
    lane = ax.paths.parallel_lines(1.0, 2.0, 8.0)
    fast = ax.motions.time_optimal
    limits = {"speed": SPEED, "acceleration": ACCELERATION}
    return {
        "arm, speeds and accelerations": lambda: fast(arm, places, **limits),
        "arm, torques": lambda: fast(arm, places, torque=TORQUE),
        f"arm, torques, {FEW_POINTS} points": lambda: fast(
            arm, places, torque=TORQUE, points=FEW_POINTS
        ),
        f"arm, torques, {PATHS} paths": lambda: fast(arm, many, torque=TORQUE),
        "five-bar, torques": lambda: fast(five_bar, tip, torque=2.0),
        "platform on six legs, torques": lambda: fast(platform, poses, torque=60.0),
        "differential drive, torques": lambda: fast(cart, lane, torque=0.5),
    }


def peers() -> dict[str, Callable[[], Any]]:
    """The same problems of the arm by toppra; none if it is not installed."""
    if find_spec("toppra") is None:
        return {}
    import toppra
    import toppra.algorithm
    import toppra.constraint as bounds

    toppra.setup_logging("ERROR")
    arm = ax.gallery.build("five_axis_arm").derive().compile()
    motion = ax.motions.time_optimal(arm, arm_waypoints(), torque=TORQUE)
    names = motion.names
    knots = motion.curve.knots
    values = motion.waypoints.values
    scheme = bounds.DiscretizationType.Interpolation
    grid = motion.optimum.places
    order = [names.index(name) for name in arm.coordinates]

    def inverse(q: Any, v: Any, a: Any) -> Any:
        return arm.inverse_dynamics(q, v, a)

    def solve(limits: list[Any]) -> Any:
        path = toppra.SplineInterpolator(knots, values[:, order], bc_type="natural")
        solver = toppra.algorithm.TOPPRA(limits, path, gridpoints=grid)
        rates = solver.compute_parameterization(0, 0)[1]
        if rates is None:
            raise RuntimeError("toppra finds no motion")
        return float((2 * np.diff(grid) / (rates[1:] + rates[:-1])).sum())

    both = np.array([-1.0, 1.0])
    five = np.ones((5, 1))
    kinematic = [
        bounds.JointVelocityConstraint(SPEED * both * five),
        bounds.JointAccelerationConstraint(ACCELERATION * both * five, scheme),
    ]
    torque = [bounds.JointTorqueConstraint(inverse, TORQUE * both * five, np.zeros(5), scheme)]
    return {
        "arm, speeds and accelerations": lambda: solve(kinematic),
        "arm, torques": lambda: solve(torque),
    }


def measure(work: Callable[[], Any], repeat: int) -> tuple[float, float, float]:
    """Seconds of the first call and of the quickest later one, and the duration it found."""
    start = time.process_time()
    found = work()
    first = time.process_time() - start
    later = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        later.append(time.process_time() - start)
    found = found[0] if isinstance(found, list) else found
    return first, min(later), float(getattr(found, "duration", found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file for the numbers, .json")
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    theirs = peers()
    rows = []
    for name, work in problems().items():
        first, later, duration = measure(work, given.repeat)
        row = {"problem": name, "first_s": first, "later_s": later, "duration_s": duration}
        if name in theirs:
            _, row["toppra_s"], row["toppra_duration_s"] = measure(theirs[name], given.repeat)
        rows.append(row)
    table = Table("problem", "first call", "later", "toppra", "duration", "toppra's", title="")
    for row in rows:
        times = [f"{1e3 * row[k]:.1f} ms" if k in row else "" for k in TIMES]
        ends = [f"{row[k]:.6f} s" if k in row else "" for k in ("duration_s", "toppra_duration_s")]
        table.add_row(row["problem"], *times, *ends)
    Console().print(table)
    if given.out:
        found = {"conditions": conditions(), "points": POINTS, "rows": rows}
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


TIMES = ("first_s", "later_s", "toppra_s")

if __name__ == "__main__":
    main()
