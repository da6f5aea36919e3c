"""Measure exported kernels on this GPU; needs NumPy and CuPy, nothing else.

    python benchmarks/gpu/measure.py out/gpu results.json

Correctness against the CPU's results comes first; then times by events, ceilings of arithmetic and
memory measured on the same card.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from axode.runtime.cuda import GpuKernel, soa

AGREEMENT = 1e-9  # relative to the largest result: sums are ordered differently
BATCHES = [2**k for k in (10, 12, 14, 16, 18, 20, 22)]
STEPS = 1000


def timed(call: Any, repeats: int = 7) -> float:
    """Median seconds of a call, by events, after warming up."""
    call()
    seconds = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(cp.cuda.get_elapsed_time(start, end) / 1e3)
    return float(np.median(seconds))


def ceilings() -> dict[str, float]:
    """What the card does at best: a large copy, and a chain of fused multiply-adds."""
    a = cp.random.random(2**27)
    b = cp.empty_like(a)
    bandwidth = 2 * a.nbytes / timed(lambda: cp.copyto(b, a))
    fma = cp.RawKernel(
        """extern "C" __global__ void f(double* y) {
        double a = y[threadIdx.x], b = a + 1, c = a + 2, d = a + 3, x = 1.0000001;
        for (int k = 0; k < 4096; ++k) { a = a*x+x; b = b*x+x; c = c*x+x; d = d*x+x; }
        y[threadIdx.x] = a + b + c + d; }""",
        "f",
    )
    y = cp.ones(1024)
    blocks, threads = 132 * 16, 256
    seconds = timed(lambda: fma((blocks,), (threads,), (y,)))
    return {"GB/s": bandwidth / 1e9, "FP64 GFLOP/s": blocks * threads * 4096 * 8 / seconds / 1e9}


def tiled(array: np.ndarray, count: int) -> np.ndarray:
    """The stored samples repeated to a batch."""
    return np.resize(array, (count, *array.shape[1:])) if array.ndim == 2 else array


def measure_map(folder: Path, name: str) -> list[dict[str, Any]]:
    """Direct dynamics of growing batches."""
    kernel, data = GpuKernel.load(folder / f"{name}.ptx"), np.load(folder / f"{name}.npz")
    (result,) = kernel.header["state"]
    rows = []
    for batch in [len(data["q"]), *BATCHES]:
        given = {k: soa(tiled(data[k], batch)) for k in kernel.header["given"]}
        out = soa(np.full((batch, data["expected"].shape[1]), np.nan))
        kernel({**given, result: out})
        expected = tiled(data["expected"], batch)
        error = float(np.abs(cp.asnumpy(out) - expected).max() / np.abs(expected).max())
        assert error < AGREEMENT, f"{name}: error {error}"
        seconds = timed(lambda given=given, out=out: kernel({**given, result: out}))
        moved = 8 * (sum(a.shape[1] for a in given.values()) + out.shape[1]) * batch
        rows.append({"kernel": name, "batch": batch, "ns a sample": seconds / batch * 1e9,
                     "evaluations/s": batch / seconds, "error": error,
                     "GFLOP/s": int(data["operations"]) * batch / seconds / 1e9,
                     "GB/s": moved / seconds / 1e9, "registers": kernel.registers,
                     "spilled bytes": kernel.spilled_bytes})  # fmt: skip
    return rows[1:]


def measure_rollout(folder: Path, name: str) -> list[dict[str, Any]]:
    """Fixed steps of growing batches of runs."""
    kernel, data = GpuKernel.load(folder / f"{name}.ptx"), np.load(folder / f"{name}.npz")
    names = [*kernel.header["state"], *kernel.header["given"]]
    rows = []
    for batch in [len(data["q"]), *BATCHES]:
        start = {k: tiled(data[k], batch) for k in names}
        out = cp.zeros((int(data["n_k"]), 1, batch)).transpose(2, 1, 0)

        def fresh(start: dict[str, np.ndarray] = start) -> dict[str, Any]:
            return {k: soa(v) if v.ndim == 2 else cp.asarray(v) for k, v in start.items()}

        buffers = fresh()
        kernel(buffers, {"out": out})
        error = 0.0
        for key in ("q", "nu"):
            expected = tiled(data[f"expected_{key}"], batch)
            error = max(error, float(np.abs(cp.asnumpy(buffers[key]) - expected).max()))
        assert error < 1e-6, f"{name}: error {error}"
        seconds = []
        for _ in range(5):
            buffers = fresh()
            a, b = cp.cuda.Event(), cp.cuda.Event()
            a.record()
            kernel(buffers, {"out": out})
            b.record()
            b.synchronize()
            seconds.append(cp.cuda.get_elapsed_time(a, b) / 1e3)
        median = float(np.median(seconds))
        steps = int(data["steps"])
        rows.append({"kernel": name, "batch": batch, "steps/s": batch * steps / median,
                     "ns a step": median / batch / steps * 1e9, "error": error,
                     "registers": kernel.registers,
                     "spilled bytes": kernel.spilled_bytes})  # fmt: skip
    return rows[1:]


def main() -> None:
    """Measure everything and print a table."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    best = ceilings()
    print("ceilings:", {k: round(v) for k, v in best.items()}, flush=True)
    rows: list[dict[str, Any]] = []
    for name in ("arm", "platform", "pendulum", "caster"):
        rows += measure_map(folder, name)
        print(*(_line(row) for row in rows[-len(BATCHES) :]), sep="\n", flush=True)
    rows += measure_rollout(folder, "pendulum_rk4")
    print(*(_line(row) for row in rows[-len(BATCHES) :]), sep="\n", flush=True)
    properties = cp.cuda.runtime.getDeviceProperties(0)
    about = {"gpu": properties["name"].decode(), "cupy": cp.__version__,
             "driver": cp.cuda.runtime.driverGetVersion(), "ceilings": best}  # fmt: skip
    target.write_text(json.dumps({**about, "rows": rows}, indent=1))


def _line(row: dict[str, Any]) -> str:
    return "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


if __name__ == "__main__":
    main()
