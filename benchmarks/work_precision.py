"""Work and precision of sweeps: adaptive steps, of order five too, against fixed ones, in one run.

    python -m benchmarks.work_precision --out benchmarks/results/DATE-work-precision.json

Rows start at home, with random independent speeds and without inputs, and run for half a second.
Each is measured at several tolerances and several fixed steps, in turn, on one thread: whole calls
of `sweep` that have been compiled. The error is the largest distance of a last coordinate or speed
of any row from that at a tolerance of 1e-13, relative to the largest one; rows without numbers at
any setting do not count. `--markdown` prints the table of such a file.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax
from axode.results.sweep_result import Sweep
from benchmarks.conditions import conditions

CASES = {
    "wheeled_pendulum": 512,
    "caster_robot": 512,
    "platform_3rps": 24,
    "gough_stewart": 16,
    "seven_axis_arm": 128,
}
DURATION, SPEED, SEED = 0.5, 0.3, 26  # [s], largest independent speed, of the starts
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
STEPS = (1e-2, 4e-3, 2e-3, 1e-3)  # [s]
FINEST: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-15}
REPEATS = 3


def measure(name: str, rows: int) -> dict[str, Any]:
    """Seconds and errors of one mechanism."""
    model = ax.gallery.build(name).derive().compile()
    q = ax.assemble(model).q
    nu = np.random.default_rng(SEED).uniform(-SPEED, SPEED, (rows, len(model.independent)))
    start = np.broadcast_to(q, (rows, len(q))).copy(), nu
    outputs = {n: ("last", n) for n in (*model.coordinates, *model.independent)}

    def sweep(**options: Any) -> Sweep:
        return ax.sweep(model, DURATION, start=start, outputs=outputs, threads=1, **options)

    tolerances = {f"rtol {r:g}": {"rtol": r, "atol": r / 100} for r in TOLERANCES}
    fifth = {f"{k}, dopri5": {**v, "method": "dopri5"} for k, v in tolerances.items()}
    fixed: dict[str, dict[str, Any]] = {f"step {h:g} s": {"step": h} for h in STEPS}
    settings = tolerances | fifth | fixed
    exact = sweep(**FINEST)
    seconds: dict[str, list[float]] = {key: [] for key in settings}
    made = {key: sweep(**options) for key, options in settings.items()}
    for _ in range(REPEATS):
        for key, options in settings.items():
            began = time.perf_counter()
            sweep(**options)
            seconds[key].append(time.perf_counter() - began)
    first = next(iter(outputs))
    finished = np.logical_and.reduce([np.isfinite(m[first]) for m in (exact, *made.values())])

    def error(result: Sweep) -> float:
        sizes = [np.abs(exact[n][finished]).max() for n in outputs]
        found = [np.abs(result[n] - exact[n])[finished].max() for n in outputs]
        return float(max(found) / max(sizes))

    return {
        "rows": rows,
        "compared": int(finished.sum()),
        "settings": {
            key: {
                "seconds": min(seconds[key]),
                "error": error(result),
                "finished": int(result.finished.sum()),
            }
            for key, result in made.items()
        },
    }


def table(measured: dict[str, Any]) -> str:
    """Table of a file's measurements, in Markdown."""
    lines = ["| mechanism, rows | steps | time [ms] | error | finished |", "|---|---|---|---|---|"]
    for name, case in measured.items():
        for key, found in case["settings"].items():
            lines.append(
                f"| {name}, {case['rows']} | {key} | {1e3 * found['seconds']:.1f} | "
                f"{found['error']:.1e} | {found['finished']} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure all mechanisms, or print the table of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    if given.markdown is not None:
        print(table(json.loads(given.markdown.read_text())["measured"]))
        return
    warnings.simplefilter("ignore", ax.RunsInaccurateWarning)  # counted in the table
    measured = {name: measure(name, rows) for name, rows in CASES.items()}
    print(table(measured))
    if given.out is not None:
        text = json.dumps({"conditions": conditions(), "measured": measured}, indent=1)
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
