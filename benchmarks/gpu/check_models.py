"""Check models read from files on this GPU against stored results of the CPU.

    python benchmarks/gpu/check_models.py out/gpu

Needs NumPy, CuPy and llvmlite, not CasADi.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import axode as ax

AGREEMENT = 1e-9


def main() -> None:
    """Every model of the folder: NumPy in and out, then arrays that stay on the GPU."""
    for path in sorted(Path(sys.argv[1]).glob("*.axm")):
        model = ax.load_model(path, target="cuda")
        data = np.load(path.with_suffix(".npz"))
        given = [data[name] for name in ("q", "nu", "u")]
        got = model.forward_dynamics(*given)
        there = model.forward_dynamics(*(cp.asarray(a) for a in given))
        assert isinstance(there, cp.ndarray)
        size = np.abs(data["expected"]).max()
        errors = [np.abs(x - data["expected"]).max() / size for x in (got, cp.asnumpy(there))]
        assert max(errors) < AGREEMENT, f"{path.name}: {errors}"
        one = model.forward_dynamics(*(a[0] for a in given))
        assert np.abs(one - got[0]).max() <= AGREEMENT * size
        print(f"{model}: {len(got)} samples, error {max(errors):.1e}")


if __name__ == "__main__":
    main()
