"""Inverse kinematics of an arm with seven axes, against SciPy and Pinocchio.

    python -m benchmarks.inverse_kinematics [--out results.json] [--targets 100000] [--peers 200]

Targets are poses of random postures, within the limits or not. All contestants start from the same
posture and may try once, or ten times from random ones. A target is met if the position is within a
micrometre and the orientation within a microradian.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from benchmarks.conditions import conditions

BODY = "link7"
LIMIT = 2.6  # [rad] of every axis, where there are limits
MET = 1e-6  # [m, rad]
RESTARTS = 10
DAMPING, MAX_ITERATIONS = 1e-6, 200  # of Pinocchio's closed-loop inverse kinematics
SEED = 3

Solve = Callable[[np.ndarray, int], np.ndarray]  # of one pose and of starts: a posture


def draw_targets(model: ax.Model, count: int) -> np.ndarray:
    """Poses of random postures within the limits."""
    generator = np.random.default_rng(SEED)
    q = generator.uniform(-LIMIT, LIMIT, size=(count, len(model.coordinates)))
    return model.poses(q)[:, model.bodies.index(BODY)]


def starts_of(model: ax.Model) -> np.ndarray:
    """Postures that every contestant starts from, the first at home."""
    generator = np.random.default_rng(SEED + 1)
    more = generator.uniform(-LIMIT, LIMIT, size=(RESTARTS - 1, len(model.coordinates)))
    return np.concatenate([model.home[np.newaxis], more])


def is_met(model: ax.Model, q: np.ndarray, T: np.ndarray, bounded: bool) -> np.ndarray:
    """Whether postures bring the body to its pose, within limits if there are any."""
    P = model.poses(q)[..., model.bodies.index(BODY), :, :]
    place = np.linalg.norm((P - T)[..., :3, 3], axis=-1)
    turn = np.linalg.norm((P - T)[..., :3, :3], axis=(-2, -1)) / np.sqrt(2)
    inside = (np.abs(q) <= LIMIT + 1e-12).all(axis=-1) | (not bounded)
    return (place <= MET) & (turn <= MET) & inside


def scipy_solver(model: ax.Model, *, bounded: bool) -> Solve:
    """`least_squares` with exact Jacobians from Axode's compiled functions."""
    from scipy.optimize import least_squares

    k = model.bodies.index(BODY)
    starts = starts_of(model)
    scale = np.array([1 / np.sqrt(2)] * 3 + [1.0])

    def solve(T: np.ndarray, attempts: int) -> np.ndarray:
        def residual(q: np.ndarray) -> np.ndarray:
            return ((model.poses(q)[k, :3] - T[:3]) * scale).ravel()

        def jacobian(q: np.ndarray) -> np.ndarray:
            J = model.jacobian("poses", "q", q)[k, :3]
            return (J * scale[:, np.newaxis]).reshape(12, -1)

        bounds = (-LIMIT, LIMIT) if bounded else (-np.inf, np.inf)
        best, least = starts[0], np.inf
        for start in starts[:attempts]:
            found = least_squares(residual, start, jacobian, bounds, xtol=1e-12, ftol=1e-14)
            if found.cost < least:
                best, least = found.x, found.cost
            if is_met(model, best, T, bounded):
                break
        return best

    return solve


def pinocchio_solver(model: ax.Model, mechanism: ax.Mechanism) -> Solve:
    """Closed-loop inverse kinematics by damped steps, as in Pinocchio's own example."""
    import pinocchio as pin

    from benchmarks.peers.pinocchio_model import pinocchio_peer

    peer = pinocchio_peer(mechanism)
    pin_model, data = peer.model, peer.data
    joint = pin_model.njoints - 1
    starts = starts_of(model)
    at_zero = model.poses(np.zeros(len(model.coordinates)))[model.bodies.index(BODY)]
    pin.forwardKinematics(pin_model, data, np.zeros(pin_model.nq))
    offset = data.oMi[joint].inverse() * pin.SE3(at_zero)

    def solve(T: np.ndarray, attempts: int) -> np.ndarray:
        goal = pin.SE3(T) * offset.inverse()
        for start in starts[:attempts]:
            q = peer.q(start).copy()
            for _ in range(MAX_ITERATIONS):
                pin.forwardKinematics(pin_model, data, q)
                apart = data.oMi[joint].actInv(goal)
                error = pin.log6(apart).vector
                if np.abs(error).max() < MET / 10:
                    break
                J = -pin.Jlog6(apart.inverse()) @ pin.computeJointJacobian(
                    pin_model, data, q, joint
                )
                step = -J.T @ np.linalg.solve(J @ J.T + DAMPING * np.eye(6), error)
                q = pin.integrate(pin_model, q, step)
            found = peer.back(q)
            if is_met(model, found, T, bounded=False):
                break
        return found

    return solve


def measure_one_by_one(
    model: ax.Model, solve: Solve, T: np.ndarray, attempts: int, *, bounded: bool
) -> dict[str, float]:
    """Success and time of a contestant that takes one target at a time."""
    begin = time.process_time()
    found = np.array([solve(pose, attempts) for pose in T])
    seconds = time.process_time() - begin
    met = is_met(model, found, T, bounded)
    return _figures(met, seconds, len(T))


def measure_axode(
    model: ax.Model, T: np.ndarray, attempts: int, *, bounded: bool, nearest: bool = False
) -> dict[str, float]:
    """Success and time of Axode on all targets at once, by the time of all threads together."""
    limits = {name: (-LIMIT, LIMIT) for name in model.coordinates} if bounded else None
    options: dict[str, Any] = {"limits": limits, "attempts": attempts, "nearest": nearest}
    ax.inverse_kinematics(model, {BODY: T[:16]}, **options)  # compiles
    wall, begin = time.perf_counter(), time.process_time()
    found = ax.inverse_kinematics(model, {BODY: T}, **options)
    seconds, wall = time.process_time() - begin, time.perf_counter() - wall
    figures = _figures(is_met(model, found.q, T, bounded), seconds, len(T))
    return {**figures, "wall_us_per_target": wall / len(T) * 1e6}


def _figures(met: np.ndarray, seconds: float, count: int) -> dict[str, float]:
    return {
        "targets": count,
        "met": float(met.mean()),
        "cpu_us_per_target": seconds / count * 1e6,
        "targets_per_cpu_second": count / seconds,
    }


def measure(targets: int, peers: int) -> dict[str, Any]:
    """All figures, by case and contestant."""
    mechanism = ax.gallery.build("seven_axis_arm")
    model = mechanism.derive().compile()
    T = draw_targets(model, targets)
    few = T[:peers]
    cases: dict[str, Any] = {}
    for bounded in (False, True):
        for attempts in (1, RESTARTS):
            own: dict[str, Any] = {}
            own["Axode, all at once"] = measure_axode(model, T, attempts, bounded=bounded)
            own["Axode, nearest"] = measure_axode(model, T, attempts, bounded=bounded, nearest=True)
            one = scipy_solver(model, bounded=bounded)
            own["SciPy least_squares"] = measure_one_by_one(
                model, one, few, attempts, bounded=bounded
            )
            if not bounded:
                clik = pinocchio_solver(model, mechanism)
                own["Pinocchio CLIK, Python"] = measure_one_by_one(
                    model, clik, few, attempts, bounded=False
                )
            own["Axode, one call per target"] = measure_one_by_one(
                model, _single(model, bounded=bounded), few, attempts, bounded=bounded
            )
            limits = f"limits of {LIMIT} rad" if bounded else "no limits"
            cases[f"{limits}, {attempts} attempt{'s' * (attempts > 1)}"] = own
    return {"conditions": conditions(), "cases": cases}


def _single(model: ax.Model, *, bounded: bool) -> Solve:
    limits = {name: (-LIMIT, LIMIT) for name in model.coordinates} if bounded else None

    def solve(T: np.ndarray, attempts: int) -> np.ndarray:
        options: dict[str, Any] = {"limits": limits, "attempts": attempts, "nearest": False}
        return ax.inverse_kinematics(model, {BODY: T}, **options).q

    return solve


def show(results: dict[str, Any]) -> None:
    """Print the figures."""
    for case, own in results["cases"].items():
        table = Table("contestant", "targets", "met", "CPU us per target", title=case)
        for name, figures in own.items():
            table.add_row(
                name,
                f"{figures['targets']:.0f}",
                f"{100 * figures['met']:.2f} %",
                f"{figures['cpu_us_per_target']:.1f}",
            )
        Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--targets", type=int, default=100_000)
    parser.add_argument("--peers", type=int, default=200)
    given = parser.parse_args()
    results = measure(given.targets, given.peers)
    show(results)
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
