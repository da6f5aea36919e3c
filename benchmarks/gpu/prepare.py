"""Write the kernels and the CPU's results that `measure.py` needs, into a folder to be carried.

python -m benchmarks.gpu.prepare out/gpu
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import axode as ax
from axode.codegen.ptx import kernel, map_program
from axode.codegen.rollout import Rollout
from axode.problems.batch import dynamics_of
from axode.problems.inputs import plan_input
from axode.problems.integrators import METHODS
from benchmarks import mechanisms

SAMPLES = 4096
STEP, STEPS = 1e-3, 1000
CAPABILITY = "9.0"


def prepare_map(folder: Path, name: str, equations: ax.Equations) -> None:
    """Direct dynamics at random states, and what the CPU gives."""
    model = equations.compile(parameters="fixed")
    tape = model.tape("forward_dynamics")
    kernel(map_program(tape), CAPABILITY).export(folder / f"{name}.ptx")
    rng = np.random.default_rng(0)
    q = np.array(equations.system.samples)[
        rng.integers(len(equations.system.samples), size=SAMPLES)
    ]
    nu = rng.normal(size=(SAMPLES, len(model.independent)))
    u = rng.normal(size=(SAMPLES, len(model.inputs)))
    given = {"q": q, "nu": nu, "u": u}
    model.save(folder / f"{name}.axm", ["forward_dynamics"])
    result = model.forward_dynamics(q, nu, u)
    np.savez(folder / f"{name}.npz", **given, expected=result, operations=tape.n_operations)


def prepare_rollout(folder: Path, name: str, model: ax.Model) -> None:
    """Fixed steps from random starts, and where the CPU ends."""
    d = dynamics_of(model, plan_input(model, None), ())
    program = METHODS["rk4"](d)
    kernel(program, CAPABILITY).export(folder / f"{name}.ptx")
    rng = np.random.default_rng(0)
    q = np.repeat(model.home[np.newaxis], SAMPLES, axis=0)
    nu = 0.5 * rng.normal(size=(SAMPLES, d.n_nu))
    buffers = rollout_buffers(program.external, q, nu, STEPS)
    start = {key: value.copy() for key, value in buffers.items()}
    Rollout(program)(buffers, {"out": np.zeros((SAMPLES, 1, d.n_k))}, budget=2**62)
    operations = sum(tape.n_operations for tape in program.tapes)
    np.savez(folder / f"{name}.npz", expected_q=buffers["q"], expected_nu=buffers["nu"],
             operations=operations, n_k=d.n_k, steps=STEPS, **start)  # fmt: skip


def rollout_buffers(
    sizes: dict[str, int], q: np.ndarray, nu: np.ndarray, steps: int
) -> dict[str, np.ndarray]:
    """Start of runs that save nothing but their end."""
    runs = len(q)
    own = {"q": q, "nu": nu, "w": np.zeros((runs, 2))}
    shared = {"h": STEP, "n_steps": float(steps), "save_steps": float(steps), "t_end": steps * STEP}
    buffers: dict[str, np.ndarray] = {}
    for name, size in sizes.items():
        if name in own:
            buffers[name] = np.ascontiguousarray(own[name], dtype=float)
        elif name in shared:
            buffers[name] = np.array([shared[name]])
        elif name in ("t0", "u"):
            buffers[name] = np.zeros(size)
        else:
            buffers[name] = np.zeros((runs, size))
    return buffers


def main() -> None:
    """Prepare everything."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/gpu")
    folder.mkdir(parents=True, exist_ok=True)
    prepare_map(folder, "arm", mechanisms.arm().derive())
    platform = mechanisms.platform(6)
    prepare_map(folder, "platform", platform.derive(independent=mechanisms.platform_twist()))
    pendulum = mechanisms.wheeled_pendulum()
    prepare_map(folder, "pendulum", pendulum.derive())
    prepare_map(folder, "caster", mechanisms.caster_robot().derive())
    prepare_rollout(folder, "pendulum_rk4", pendulum.derive().compile(parameters="fixed"))
    print(f"kernels and references are in {folder}")


if __name__ == "__main__":
    main()
