"""Map the workspace and the singularities of a hexapod on this GPU; needs NumPy and CuPy alone.

    python benchmarks/gpu/workspace.py out/workspace results.json

The grid is made on the GPU, slab by slab; every pose gives its margin, its active limit, the
determinant and the dexterity. What comes back is the volume, counts per limit, the smallest
numbers and a coarse map. Results are compared with the CPU's first.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from axode.runtime.cuda import GpuKernel

ENDINGS = {"float64": "", "float32": "_single"}
AGREEMENT = {"float64": 1e-9, "float32": 1e-3}
SIDE = 464  # points per axis: 464^3 is 1.0e8
BLOCK = 16  # points per axis of a cell of the coarse map
REPEATS = 5


class SlabMap:
    """A grid of poses that is evaluated slab by slab along its first axis.

    Args:
        kernel: Margin, active limit, determinant, dexterity and error of poses.
        data: What the CPU wrote.
        side: Points per axis, a multiple of `block`.
        block: Points per axis of a cell of the coarse map, and points of a slab.
    """

    def __init__(self, kernel: GpuKernel, data: Any, side: int, block: int) -> None:
        self.side, self.block, self.names = side, block, json.loads(str(data["names"]))
        self.axes = [
            np.linspace(a, b, side) for a, b in zip(data["low"], data["high"], strict=True)
        ]
        self.cell = float(np.prod((data["high"] - data["low"]) / (side - 1)))
        shape = (block, side, side)
        number = kernel.dtype
        self._x = cp.asarray(self.axes[0].astype(number))
        self._r = cp.empty((3, block * side * side), dtype=number)
        for row, axis, place in ((1, self.axes[1], (1, side, 1)), (2, self.axes[2], (1, 1, side))):
            values = cp.asarray(axis.astype(number)).reshape(place)
            self._r[row].reshape(shape)[...] = values
        self._out = cp.empty((5, block * side * side), dtype=number)
        (result,) = kernel.header["state"]
        self._launch = kernel.prepare(
            {
                "r": self._r.T,
                "R": cp.asarray(data["R"].astype(number)),
                "numbers": cp.asarray(data["numbers"].astype(number)),
                result: self._out.T,
            }
        )

    def slab(self, k: int) -> Any:
        """Evaluate the k-th slab: an array (5, block, side, side)."""
        shape = (self.block, self.side, self.side)
        x = self._x[k * self.block : (k + 1) * self.block].reshape(self.block, 1, 1)
        self._r[0].reshape(shape)[...] = x
        self._launch()
        return self._out.reshape(5, *shape)

    def summary(self) -> dict[str, Any]:
        """Evaluate all poses and sum them up."""
        cells = self.side // self.block
        parts = (self.block, cells, self.block, cells, self.block)
        sums, least, coarse = [], [], []
        for k in range(cells):
            margin, active, determinant, dexterity, _ = self.slab(k)
            inside = margin >= 0
            found = [(inside & (active == j)).sum() for j in range(len(self.names))]
            sums.append([inside.sum(), (inside & (determinant < 0)).sum(), *found])
            least.append([margin.max(), cp.where(inside, dexterity, 1.0).min()])
            coarse.append(margin.reshape(parts).max(axis=(0, 2, 4)))
        counts = np.sum([[int(x) for x in row] for row in sums], axis=0)
        extremes = np.array([[float(x) for x in row] for row in least])
        return {
            "poses": self.side**3,
            "inside": int(counts[0]),
            "negative": int(counts[1]),
            "volume": counts[0] * self.cell,
            "active": {n: int(c) for n, c in zip(self.names, counts[2:], strict=True) if c},
            "largest margin": float(extremes[:, 0].max()),
            "smallest dexterity": float(extremes[:, 1].min()),
            "coarse": np.array([cp.asnumpy(x) for x in coarse]),
        }


def check(kernel: GpuKernel, data: Any) -> dict[str, Any]:
    """Compare random poses, and the counts of a small grid, with the CPU's."""
    number = kernel.dtype
    r = cp.asarray(np.ascontiguousarray(data["r"].T.astype(number))).T
    out = cp.empty((5, len(data["r"])), dtype=number)
    (result,) = kernel.header["state"]
    fixed = {name: cp.asarray(data[name].astype(number)) for name in ("R", "numbers")}
    kernel.prepare({"r": r, **fixed, result: out.T})()
    got, expected = cp.asnumpy(out).T[:, :4], data["expected"]
    error = float(np.abs(got - expected)[:, [0, 2, 3]].max())
    assert error < AGREEMENT[str(number)], f"error {error}"
    side = int(data["cells"])
    small = SlabMap(kernel, data, side, 16).summary()
    known = {"inside": int(data["inside"]), "negative": int(data["negative"])}
    off = abs(small["inside"] - known["inside"])
    assert off <= (2 if number == np.float64 else 1e-3 * known["inside"]), (small, known)
    return {
        "error": error,
        "inside of a small grid": small["inside"],
        "on the CPU": known["inside"],
    }


def main() -> None:
    """Check, then measure the whole map."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    side = int(sys.argv[3]) if len(sys.argv) > 3 else SIDE
    data = np.load(folder / "workspace.npz")
    rows = []
    for precision, ending in ENDINGS.items():
        began = time.perf_counter()
        kernel = GpuKernel.load(folder / f"workspace{ending}.ptx")
        row: dict[str, Any] = {"precision": precision, "loading [s]": time.perf_counter() - began}
        row |= check(kernel, data)
        seconds = []
        for _ in range(REPEATS):  # the first one makes CuPy's own kernels and memory
            began = time.perf_counter()
            made = SlabMap(kernel, data, side, BLOCK).summary()
            seconds.append(time.perf_counter() - began)
        coarse = made.pop("coarse")
        row |= made
        row["first call [s]"], row["seconds"] = seconds[0], float(np.median(seconds[1:]))
        row["poses/s"] = side**3 / row["seconds"]
        row["GFLOP/s"] = int(data["operations"]) * row["poses/s"] / 1e9
        row["cells of the coarse map inside"] = int((coarse >= 0).sum())
        row["registers"], row["spilled bytes"] = kernel.registers, kernel.spilled_bytes
        print(json.dumps(row), flush=True)
        rows.append(row)
    properties = cp.cuda.runtime.getDeviceProperties(0)
    about = {"gpu": properties["name"].decode(), "cupy": cp.__version__}
    target.write_text(json.dumps({**about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
