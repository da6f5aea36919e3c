"""Measure whole calls on this GPU, as a user makes them, Python included.

    python benchmarks/gpu/calls.py out/gpu results.json

Needs what `check.py` needs, and the folder that `prepare.py` wrote. Times are medians of wall clock
times; all but the cold start are of warm calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import axode as ax
from axode.runtime import staging

MODELS = ("pendulum", "caster", "arm")
SMALL, LARGE = 2**12, 2**20
SWEEPS = ((2**20, 1000), (2**22, 1000), (2**20, 10_000), (2**24, 1000))
ARRAYS = {"NumPy": None, "CuPy": "cupy"}  # of results
OUTPUTS: dict[str, dict[str, tuple[str, Any]]] = {
    "1 number kept": {"turn": ("max", "phi")},
    "3 numbers kept, energy error": {
        "turn": ("max", "phi"),
        "far": ("last", "C.x"),
        "error": ("largest", "error"),
    },
}
COLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
started = time.perf_counter()
import axode as ax
import numpy as np
imported = time.perf_counter()
import cupy
cupy_imported = time.perf_counter()
model = ax.load_model(sys.argv[2])
made = ax.sweep(
    model,
    0.1,
    start={"theta1_dot": np.linspace(-1, 1, 32)},
    outputs={"turn": ("max", "phi")},
    target="cuda",
)
assert made.finished.all()
done = time.perf_counter()
print(imported - started, cupy_imported - imported, done - cupy_imported)
"""


def seconds(call: Callable[[], Any], repeats: int = 5, calls: int = 1) -> float:
    """Median seconds of a call, the GPU's work included, after warming up."""
    call()
    cp.cuda.Device().synchronize()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        cp.cuda.Device().synchronize()
        found.append((time.perf_counter() - began) / calls)
    return float(np.median(found))


def repeated(data: Any, name: str, count: int) -> np.ndarray:
    """The stored samples, repeated to a batch."""
    return np.ascontiguousarray(np.resize(data[name], (count, data[name].shape[1])))


def measure_functions(folder: Path) -> list[dict[str, Any]]:
    """Direct dynamics on arrays of CuPy, PyTorch and NumPy."""
    rows = []
    for name in MODELS:
        model = ax.load_model(folder / f"{name}.axm", target="cuda")
        data = np.load(folder / f"{name}.npz")
        for count in (SMALL, LARGE):
            here = [repeated(data, key, count) for key in ("q", "nu", "u")]
            for kind, call in _calls(model, here).items():
                took = seconds(call, calls=1000 if count == SMALL and "NumPy" not in kind else 3)
                rows.append(
                    {
                        "what": f"{name}, forward_dynamics",
                        "arrays": kind,
                        "batch": count,
                        "us a call": took * 1e6,
                        "evaluations/s": count / took,
                    }
                )
                print(_line(rows[-1]), flush=True)
    return rows


def _calls(model: ax.Model, here: list[np.ndarray]) -> dict[str, Callable[[], Any]]:
    out = model.forward_dynamics(*here)
    there = [cp.asarray(a) for a in here]
    made = cp.empty_like(cp.asarray(out))
    pinned = [_pinned(a) for a in (*here, out)]
    space = [cp.empty_like(cp.asarray(a)) for a in (*here, out)]

    def copy() -> None:
        for a, b in zip(pinned[:-1], space[:-1], strict=True):
            b.set(a)
        space[-1].get(out=pinned[-1])

    turned = [cp.asfortranarray(a) for a in there]
    calls: dict[str, Callable[[], Any]] = {
        "CuPy, out=": lambda: model.forward_dynamics(*there, out=made),
        "CuPy, transposed, out=": lambda: model.forward_dynamics(*turned, out=made),
        "CuPy": lambda: model.forward_dynamics(*there),
        "NumPy, out=": lambda: model.forward_dynamics(*here, out=out),
        "NumPy": lambda: model.forward_dynamics(*here),
        "NumPy: transfers alone, page-locked": copy,
        "NumPy: copies alone, by CuPy": lambda: ([cp.asarray(a) for a in here], cp.asnumpy(made)),
        "NumPy: copies alone, staged": lambda: (
            [staging.send(cp, a, b) for a, b in zip(here, space, strict=False)],
            staging.receive(cp, space[-1], out),
        ),
    }
    try:
        import torch
    except ImportError:
        return calls
    tensors = [torch.as_tensor(a, device="cuda") for a in here]
    result = torch.empty(out.shape, dtype=torch.float64, device="cuda")
    return calls | {"PyTorch, out=": lambda: model.forward_dynamics(*tensors, out=result)}


def _pinned(array: np.ndarray) -> np.ndarray:
    memory = cp.cuda.alloc_pinned_memory(array.nbytes)
    made = np.frombuffer(memory, dtype=array.dtype, count=array.size).reshape(array.shape)
    made[...] = array
    return made


def measure_sweeps(folder: Path) -> list[dict[str, Any]]:
    """Sweeps over a grid of a start and a parameter."""
    model = ax.load_model(folder / "whole_caster_robot.axm")
    rows = []
    for (kept, outputs), arrays, (count, steps) in product(OUTPUTS.items(), ARRAYS, SWEEPS):
        side = 2 ** ((count.bit_length() - 1) // 2)
        call = partial(
            ax.sweep,
            model,
            1e-3 * steps,
            start={"theta1_dot": np.linspace(-1, 1, side)},
            parameters={"mp": np.linspace(5, 25, count // side)},
            step=1e-3,
            outputs=outputs,
            target="cuda",
            asarray=ARRAYS[arrays],
        )
        assert call().finished.all()
        took = seconds(call, repeats=5)
        rows.append(
            {
                "what": f"caster robot, sweep, {kept}",
                "arrays": arrays,
                "runs": count,
                "steps": steps,
                "s a call": took,
                "steps/s": count * steps / took,
            }
        )
        print(_line(rows[-1]), flush=True)
    return rows


def measure_cold(folder: Path) -> list[dict[str, Any]]:
    """Time to the first result of a sweep in a new process, without and with what is kept."""
    rows = []
    source = str(Path(__file__).parents[2] / "src")
    path = str(folder / "whole_caster_robot.axm")
    cache = folder / f"cache-{os.getpid()}"
    for kind in ("nothing kept", "kept", "kept"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", COLD, source, path],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "AXODE_CACHE": str(cache), "CUDA_CACHE_DISABLE": "1"},
        )
        own, library, sweep = map(float, done.stdout.split()[-3:])
        rows.append(
            {
                "what": f"first sweep of a process, {kind}",
                "s to import axode": own,
                "s to import cupy": library,
                "s to the result": sweep,
            }
        )
        print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    return "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


def main() -> None:
    """Measure everything that is asked for by name, or all."""
    folder, target, *wanted = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    parts = {"functions": measure_functions, "cold": measure_cold, "sweeps": measure_sweeps}
    about = {
        "gpu": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "cupy": cp.__version__,
        "driver": cp.cuda.runtime.driverGetVersion(),
    }
    rows: list[dict[str, Any]] = []
    for name in wanted or parts:
        rows += parts[name](folder)
        target.write_text(json.dumps({**about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
