"""Measure exported kernels on this GPU; needs NumPy and CuPy, nothing else.

    python benchmarks/gpu/measure.py out/gpu results.json

Correctness against the CPU's results comes first; then times by events, ceilings of arithmetic and
memory measured on the same card. Operations are those of the tape: a sine counts one, a sum or
product too, so that achieved GFLOP/s are lower bounds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from axode.runtime.cuda import GpuKernel, KernelFile, soa

MAPS = ("arm", "platform", "pendulum", "caster")
ROLLOUTS = ("pendulum", "caster", "arm")
ENDINGS = {"float64": "", "float32": "_single"}
AGREEMENT = {"float64": 1e-9, "float32": 1e-3}  # relative to the largest result
RUNS_AGREE = {"float64": 1e-6, "float32": 2e-2}
BATCHES = [2**k for k in range(10, 23, 2)]
REGISTERS = (128, 168)  # a thread, at most, tried for whole runs: more threads, more spills
FMA = """extern "C" __global__ void f(T* y) {
T a = y[threadIdx.x], b = a + 1, c = a + 2, d = a + 3, x = 1.0000001;
for (int k = 0; k < 4096; ++k) { a = a*x+x; b = b*x+x; c = c*x+x; d = d*x+x; }
y[threadIdx.x] = a + b + c + d; }"""


def timed(call: Callable[[], Any], repeats: int = 7, before: Callable[[], Any] = int) -> float:
    """Median seconds of a call, by events, after warming up."""
    before()
    call()
    seconds = []
    for _ in range(repeats):
        before()
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(cp.cuda.get_elapsed_time(start, end) / 1e3)
    return float(np.median(seconds))


def ceilings() -> dict[str, float]:
    """What the card does at best: a large copy, and chains of fused multiply-adds."""
    a = cp.random.random(2**27)
    b = cp.empty_like(a)
    best = {"GB/s": 2 * a.nbytes / timed(lambda: cp.copyto(b, a)) / 1e9}
    blocks, threads = 132 * 16, 256
    for precision, kind in (("float64", "double"), ("float32", "float")):
        fma = cp.RawKernel(FMA.replace("T ", f"{kind} ").replace("T*", f"{kind}*"), "f")
        y = cp.ones(1024, dtype=precision)
        seconds = timed(lambda fma=fma, y=y: fma((blocks,), (threads,), (y,)))  # type: ignore[misc]
        best[f"{precision} GFLOP/s"] = blocks * threads * 4096 * 8 / seconds / 1e9
    return best


def tiled(array: np.ndarray, count: int, precision: str) -> Any:
    """The stored samples repeated to a batch, on the GPU."""
    there = cp.asarray(array, dtype=precision)
    return there if array.ndim < 2 else soa(there[cp.arange(count) % len(array)], precision)


def difference(got: Any, expected: np.ndarray) -> float:
    """Largest difference against the largest number, NaN if there is one."""
    known = tiled(expected, len(got), "float64")
    return float(cp.abs(got - known).max() / cp.abs(known).max())


def measure_map(folder: Path, name: str, precision: str) -> list[dict[str, Any]]:
    """Direct dynamics of growing batches."""
    data = np.load(folder / f"{name}.npz")
    kernel = GpuKernel.load(folder / f"{name}{ENDINGS[precision]}.ptx")
    (result,) = kernel.header["state"]
    rows = []
    for batch in BATCHES:
        given = {k: tiled(data[k], batch, precision) for k in kernel.header["given"]}
        out = cp.full((data["expected"].shape[1], batch), np.nan, dtype=precision).T
        launch = kernel.prepare({**given, result: out})
        launch()
        error = difference(out, data["expected"])
        assert error < AGREEMENT[precision], f"{name}: error {error}"
        seconds = timed(launch)
        numbers = sum(a.shape[1] for a in given.values()) + out.shape[1]
        row = {
            "ns a sample": seconds / batch * 1e9,
            "evaluations/s": batch / seconds,
            "GFLOP/s": int(data["operations"]) * batch / seconds / 1e9,
            "GB/s": kernel.dtype.itemsize * numbers * batch / seconds / 1e9,
        }
        rows.append(described(kernel, name, precision, batch) | row | {"error": error})
    return rows


def measure_rollout(folder: Path, name: str, precision: str) -> list[dict[str, Any]]:
    """Fixed steps of growing batches of runs; of the largest also with fewer registers a thread."""
    path = folder / f"{name}_rk4{ENDINGS[precision]}.ptx"
    text, header = path.read_text(), json.loads(path.with_suffix(".json").read_text())
    rows = rollout_rows(KernelFile(text, header)["rk4"], folder, name, precision, BATCHES)
    for limit in REGISTERS:
        fewer = KernelFile(text.replace(")\n{", f")\n.maxnreg {limit}\n{{"), header)["rk4"]
        rows += rollout_rows(fewer, folder, name, precision, BATCHES[-1:])
    return rows


def rollout_rows(
    kernel: GpuKernel, folder: Path, name: str, precision: str, batches: list[int]
) -> list[dict[str, Any]]:
    """Rows of one kernel of whole runs."""
    data = np.load(folder / f"{name}_rk4.npz")
    names, steps = [*kernel.header["state"], *kernel.header["given"]], int(data["steps"])
    rows = []
    for batch in batches:
        start = {k: tiled(data[k], batch, precision) for k in names}
        buffers = {k: v.copy(order="F") for k, v in start.items()}
        out = cp.zeros((int(data["n_k"]), 1, batch), dtype=precision).transpose(2, 1, 0)
        launch = kernel.prepare(buffers, {"out": out})

        def again(start: Any = start, buffers: Any = buffers) -> None:
            for k, v in start.items():
                buffers[k][...] = v

        launch()
        error = sum(difference(buffers[key], data[f"expected_{key}"]) for key in ("q", "nu"))
        assert error < RUNS_AGREE[precision], f"{name}: error {error}"
        seconds = timed(launch, repeats=3, before=again)
        rate = batch * steps / seconds
        row = {
            "ns a step": 1e9 / rate,
            "steps/s": rate,
            "GFLOP/s": int(data["operations"]) * rate / 1e9,
        }
        rows.append(described(kernel, f"{name}_rk4", precision, batch) | row | {"error": error})
    return rows


def described(kernel: GpuKernel, name: str, precision: str, batch: int) -> dict[str, Any]:
    """What a row says of its kernel."""
    blocks, threads = kernel.geometry(batch)
    return {
        "kernel": name,
        "precision": precision,
        "batch": batch,
        "blocks": blocks,
        "threads": threads,
        "registers": kernel.registers,
        "spilled bytes": kernel.spilled_bytes,
    }


def main() -> None:
    """Measure everything and print a table."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    best = ceilings()
    print("ceilings:", {k: round(v) for k, v in best.items()}, flush=True)
    rows: list[dict[str, Any]] = []
    jobs = [(measure_map, name) for name in MAPS] + [(measure_rollout, name) for name in ROLLOUTS]
    for precision in ENDINGS:
        for job, name in jobs:
            made = job(folder, name, precision)
            print(*(_line(row) for row in made), sep="\n", flush=True)
            rows += made
    properties = cp.cuda.runtime.getDeviceProperties(0)
    about = {
        "gpu": properties["name"].decode(),
        "cupy": cp.__version__,
        "driver": cp.cuda.runtime.driverGetVersion(),
        "ceilings": best,
    }
    target.write_text(json.dumps({**about, "rows": rows}, indent=1))


def _line(row: dict[str, Any]) -> str:
    return "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


if __name__ == "__main__":
    main()
