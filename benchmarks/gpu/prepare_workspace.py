"""Write the kernels of a hexapod's workspace, and what the CPU finds, into a folder.

    python -m benchmarks.gpu.prepare_workspace out/workspace

The folder can be carried to a machine with a GPU that has no CasADi; `workspace.py` runs there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import axode as ax
from axode.codegen.targets.ptx import kernels, map_program
from axode.kinematics.workspaces.closed_form import closed_form_legs
from axode.kinematics.workspaces.pose_limits import read_limits
from axode.kinematics.workspaces.workspace import PoseEvaluator
from benchmarks.gpu.prepare import CAPABILITY, PRECISIONS

ROBOT = "flight_simulator"
LIMITS = {"l_*": (0.9, 1.5), "cross_*": 0.7, "ball_*": 0.8}
BOUNDS = {"x": (-0.75, 0.75), "y": (-0.75, 0.75), "z": (0.5, 1.5)}
SAMPLES = 4096
CELLS = 48  # points per axis of the grid whose counts are compared


def main() -> None:
    """Prepare everything."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/workspace")
    folder.mkdir(parents=True, exist_ok=True)
    robot = ax.Kinematics(ax.gallery.build(ROBOT))
    legs = closed_form_legs(robot)
    limits = read_limits(legs, LIMITS, None, None, None)
    evaluator = PoseEvaluator(legs, limits)
    tape = evaluator.functions.measures
    for precision, ending in PRECISIONS.items():
        made = kernels({tape.name: map_program(tape)}, CAPABILITY, precision)
        made.export(folder / f"workspace{ending}.ptx")
    R = np.eye(3).reshape(9)
    rng = np.random.default_rng(0)
    low, high = (np.array([BOUNDS[name][k] for name in "xyz"]) for k in (0, 1))
    r = low + (high - low) * rng.random((SAMPLES, 3))
    axes = [np.linspace(a, b, CELLS) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    margin, active, determinant, dexterity = evaluator.measure(grid, R).T
    inside = margin >= 0
    counts = np.bincount(active[inside].astype(int), minlength=len(evaluator.functions.names))
    np.savez(
        folder / "workspace.npz",
        r=r,
        R=R,
        numbers=evaluator.numbers,
        expected=evaluator.measure(r, R),
        low=low,
        high=high,
        cells=CELLS,
        inside=inside.sum(),
        counts=counts,
        negative=(inside & (determinant < 0)).sum(),
        dexterity=dexterity[inside].min(),
        operations=tape.n_operations,
        names=json.dumps(evaluator.functions.names),
    )
    print(f"kernels and references are in {folder}: {tape}")


if __name__ == "__main__":
    main()
