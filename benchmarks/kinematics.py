"""All postures of platforms on six legs: time, counts, certificates.

    python -m benchmarks.kinematics [--platforms 2000] [--out results.json] [--peer platforms.npz]

`--peer` writes a hundred platforms and their roots for `benchmarks/peers/bertini_platforms.py`.
Times are CPU times, so that other programs disturb them less; one thread unless said otherwise.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from axode.kinematics.polynomials.path_tracker import USUAL, tracker_of
from axode.kinematics.polynomials.polynomial_family import certify_roots, evaluate_at, polish_roots
from axode.kinematics.polynomials.solve_family import (
    FamilyRoots,
    monodromy,
    solve_family,
    start_set,
)
from benchmarks.conditions import conditions, load
from benchmarks.platform_numbers import LEGS, dietmaier, platforms, real_in_own_charts
from benchmarks.platforms import gough_stewart

POSTURES = 40
REAL = 1e-8  # imaginary part of a root that counts as real
CHUNK = 1000  # platforms at a time
PEER = 100  # platforms for the independent solver
SEED = 2026


def cpu_times(call: Callable[[], Any], repeats: int) -> list[float]:
    """CPU milliseconds of calls, after one that is not counted."""
    call()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        taken.append(1e3 * (time.process_time() - began))
    return taken


def summary(taken: list[float]) -> dict[str, float]:
    """Median and least of times."""
    return {"median": float(np.median(taken)), "least": min(taken)}


def measure_start(repeats: int = 3) -> dict[str, Any]:
    """Time the search for a start set, compiled code being there."""
    family = gough_stewart()
    taken = cpu_times(lambda: monodromy(family, threads=1), repeats)
    return {"roots": len(start_set(family).roots), "CPU ms of monodromy": summary(taken)}


def measure_dietmaier(repeats: int) -> dict[str, Any]:
    """Solve the platform with 40 real postures, and certify them."""
    family, target = gough_stewart(), dietmaier()
    found = solve_family(family, target, threads=1)
    x, p, imaginary = real_in_own_charts(found.of(0), target)
    polished, error = polish_roots(family, x, p)
    certificates = certify_roots(family, polished, p)
    # the chart's row is one minus the square of a root's size
    residual = np.abs(evaluate_at(family.residual_tape, polished, p)).max()
    return {
        "roots": int(found.count[0]),
        "real": int((imaginary < REAL).sum()),
        "certified": int(certificates.certified.sum()),
        "largest residual": float(residual),
        "largest residual before polishing": _residual(family, target, found),
        "largest Newton step": float(error.max()),
        "steps": found.steps,
        "CPU ms of the call": summary(
            cpu_times(lambda: solve_family(family, target, threads=1), repeats)
        ),
        "CPU ms of its compiled part": summary(_compiled_times(target, repeats)),
        "CPU ms of polishing": summary(cpu_times(lambda: polish_roots(family, x, p), repeats)),
        "CPU ms of certificates": summary(
            cpu_times(lambda: certify_roots(family, polished, p), repeats)
        ),
    }


def _residual(family: Any, target: np.ndarray, found: FamilyRoots) -> float:
    roots = found.of(0)
    values = evaluate_at(family.residual_tape, roots, np.tile(target, (len(roots), 1)))
    return float(np.abs(values).max())


def _compiled_times(target: np.ndarray, repeats: int) -> list[float]:
    """CPU milliseconds in machine code."""
    family = gough_stewart()
    rollout, start = tracker_of(family), start_set(family)
    given = {
        "start": start.parameters.view(float),
        "which": np.zeros((POSTURES, 1)),
        "settings": np.array([USUAL.tolerance, USUAL.radius, USUAL.max_steps]),
    }
    taken = []
    for _ in range(repeats):
        state = rollout.new_state(POSTURES, {"x": start.roots.view(float), "s": 1, "factor": 1})
        bound = rollout.bind({**state, **given}, {"targets": target[np.newaxis].view(float)})
        began = time.process_time()
        bound(0, 1)
        taken.append(1e3 * (time.process_time() - began))
    return taken


def measure_random(count: int) -> dict[str, Any]:
    """Solve random platforms on all threads, and count what happens."""
    family, rng = gough_stewart(), np.random.default_rng(SEED)
    totals: dict[str, int] = {}
    attempts, complete, worst, real, certified = np.zeros(8, dtype=int), 0, 0.0, 0, 0
    taken = 0.0
    for first in range(0, count, CHUNK):
        targets = platforms(min(CHUNK, count - first), rng)
        began = time.process_time()
        found = solve_family(family, targets)
        taken += time.process_time() - began
        for key, value in found.statistics().items():
            totals[key] = totals.get(key, 0) + value
        attempts += np.bincount(found.attempts, minlength=8)
        complete += int((found.count == POSTURES).sum())
        worst = max(worst, float(found.error[found.finished].max()))
        made = _certify_real(family, targets, found)
        real, certified = real + made[0], certified + made[1]
    return {
        **totals,
        "platforms with 40 roots": complete,
        "attempts": attempts.tolist(),
        "largest Newton step": worst,
        "real roots": real,
        "certified": certified,
        "CPU ms per platform": 1e3 * taken / count,
    }


def _certify_real(family: Any, targets: np.ndarray, found: FamilyRoots) -> tuple[int, int]:
    which, path = np.nonzero(found.finished)
    x, p, imaginary = real_in_own_charts(found.roots[which, path], targets[which])
    real = imaginary < REAL
    polished, _ = polish_roots(family, x[real], p[real])
    return int(real.sum()), int(certify_roots(family, polished, p[real]).certified.sum())


def write_for_peer(path: Path) -> None:
    """Write some platforms and their roots."""
    targets = platforms(PEER, np.random.default_rng(SEED))
    found = solve_family(gough_stewart(), targets)
    assert (found.count == POSTURES).all()
    np.savez(path, parameters=targets[:, :LEGS].real, roots=found.roots)


def main() -> None:
    """Measure everything, print it, and save it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platforms", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peer", type=Path)
    chosen = parser.parse_args()
    if chosen.peer:
        write_for_peer(chosen.peer)
        return
    made: dict[str, Any] = {"conditions": conditions()}
    made["start set"] = measure_start()
    made["Dietmaier"] = measure_dietmaier(chosen.repeat)
    made["random"] = measure_random(chosen.platforms)
    made["conditions"]["load after"] = load()
    text = json.dumps(made, indent=1)
    print(text)
    if chosen.out:
        chosen.out.write_text(text)


if __name__ == "__main__":
    main()
