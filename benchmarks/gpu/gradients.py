"""Measure steps backwards, the gradient of a cost, on this GPU; needs NumPy, CuPy and llvmlite.

    python benchmarks/gpu/gradients.py out/gradients results.json

Runs are stepped forwards and logged, then walked backwards, both on the GPU; the numbers of the log
that belong to one step lie side by side for all runs. Gradients are compared with the CPU's first.
Whole calls, as a user makes them, are timed by the wall clock, beside sweeps of the same runs.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import axode as ax
from axode.runtime.cuda import GpuKernel, KernelFile
from benchmarks.gpu.calls import seconds
from benchmarks.gpu.measure import described, difference, tiled, timed

NAMES = ("pendulum", "caster", "arm")
BATCHES = (2**12, 2**14, 2**16, 2**18, 2**19)
CALLS = ((2**10, 1000), (2**14, 1000), (2**17, 1000))  # runs and steps
MAX_BYTES = 60e9  # of a log
REGISTERS = (None, 168, 128)  # a thread, at most, tried for the steps backwards
AGREEMENT = 1e-8  # relative to the largest number


def buffers_of(kernel: GpuKernel, data: Any, part: str, batch: int) -> dict[str, Any]:
    """Start of a batch, the same number of all runs side by side."""
    names = [*kernel.header["state"], *kernel.header["given"]]
    made = {name: tiled(data[f"{part}.{name}"], batch, "float64") for name in names}
    return {name: array.copy(order="F") for name, array in made.items()}


def measure(folder: Path, name: str, batch: int, limit: int | None) -> dict[str, Any] | None:
    """Time logging and walking back of a batch of runs; None if its log is too large."""
    data = np.load(folder / f"{name}.npz")
    steps, width = int(data["steps"]), int(data["width"])
    if 8.0 * batch * steps * width > MAX_BYTES:
        return None
    text = (folder / f"{name}.ptx").read_text()
    header = json.loads((folder / f"{name}.json").read_text())
    if limit is not None:
        text = text.replace(")\n{", f")\n.maxnreg {limit}\n{{")
    kernels = KernelFile(text, header)
    forwards, backwards = kernels["steps"], kernels["gradient"]
    log = cp.empty((steps, width, batch)).transpose(2, 0, 1)
    out = cp.zeros((int(data["saved"]), 1, batch)).transpose(2, 1, 0)
    first, second = (
        buffers_of(kernel, data, part, batch)
        for kernel, part in ((forwards, "steps"), (backwards, "gradient"))
    )
    ahead = forwards.prepare(first, {"log": log, "out": out})
    back = backwards.prepare(second, {"log": log})

    def restart(buffers: dict[str, Any], kernel: GpuKernel, part: str) -> None:
        for key, value in buffers_of(kernel, data, part, batch).items():
            buffers[key][...] = value

    ahead()
    back()
    error = max(difference(second[k], data[f"expected_{k}"]) for k in ("a_q", "a_nu", "cost"))
    assert error < AGREEMENT, f"{name}: gradients differ by {error}"
    seconds = {
        "ahead": timed(ahead, 3, lambda: restart(first, forwards, "steps")),
        "back": timed(back, 3, lambda: restart(second, backwards, "gradient")),
    }
    made = described(backwards, f"{name}, backwards", "float64", batch)
    return made | {
        "logged steps/s": batch * steps / seconds["ahead"],
        "reverse steps/s": batch * steps / seconds["back"],
        "gradient steps/s": batch * steps / (seconds["ahead"] + seconds["back"]),
        "GFLOP/s": int(data["operations"]) * batch * steps / seconds["back"] / 1e9,
        "error": error,
    }


def measure_call(model: ax.Model, runs: int, steps: int) -> dict[str, Any]:
    """Time a gradient by three parameters and the start, and a sweep of the same runs."""
    given: dict[str, Any] = {
        "start": {"theta1_dot": np.linspace(-1, 1, runs)},
        "step": 1e-3,
        "target": "cuda",
    }
    of = ["mp", "r", "b", "start.theta1_dot"]
    cost = ax.Cost(model, 1e-3 * steps, running="phi ** 2", final="phi ** 2", **given)
    assert np.isfinite(ax.gradient(cost, of).value).all()
    run = partial(ax.sweep, model, 1e-3 * steps, outputs={"far": ("last", "phi")}, **given)
    alone, took = (seconds(call, repeats=3) for call in (run, partial(ax.gradient, cost, of)))
    return {
        "runs": runs,
        "steps": steps,
        "s a call": took,
        "steps/s": runs * steps / took,
        "times the sweep": took / alone,
    }


def shown(row: dict[str, Any]) -> None:
    """Print a row."""
    parts = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
    print("  ".join(parts), flush=True)


def main() -> None:
    """Measure everything and write a file."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        for limit in REGISTERS:
            for batch in BATCHES if limit is None else BATCHES[-2:]:
                row = measure(folder, name, batch, limit)
                cp.get_default_memory_pool().free_all_blocks()
                if row is not None:
                    rows.append(row)
                    shown(row)
    robot, calls = ax.load_model(folder / "whole_caster_robot.axm"), []
    for runs, steps in CALLS:
        calls.append(measure_call(robot, runs, steps))
        shown(calls[-1])
    properties = cp.cuda.runtime.getDeviceProperties(0)
    about = {"gpu": properties["name"].decode(), "cupy": cp.__version__}
    target.write_text(json.dumps({**about, "rows": rows, "calls": calls}, indent=1))


if __name__ == "__main__":
    main()
