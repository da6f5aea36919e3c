"""Write the kernels and the CPU's results that `check.py` and `measure.py` need, into a folder.

    python -m benchmarks.gpu.prepare out/gpu

The folder can be carried to a machine with a GPU that has no CasADi.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax
from axode.codegen.tape.program import Evaluate, Program, While
from axode.codegen.targets.cpu_rollout import Rollout
from axode.problems.steps.compiled import rollout_program
from benchmarks import mechanisms

SAMPLES = 4096
STEP, STEPS = 1e-3, 200
CAPABILITY = "9.0"
PRECISIONS = {"float64": "", "float32": "_single"}
# Mechanisms of the gallery that are simulated and swept whole, and what is kept of their sweeps.
WHOLE = {
    "caster_robot": {
        "turn": ("max", "phi"),
        "far": ("last", "C.x"),
        "error": ("largest", "error"),
        "effort": ("integral", "kinetic"),
        "back": ("crossing", "theta3_dot"),
    },
    "four_bar": {"turn": ("max", "theta3"), "error": ("largest", "error")},
    "rolling_disk": {"turn": ("max", "base.roll"), "error": ("largest", "error")},
}
METHODS = ("rk4", "dopri5", "radau9", "rodas5p")


def prepare_map(folder: Path, name: str, equations: ax.Equations) -> None:
    """Direct dynamics at random states, and what the CPU gives."""
    model = equations.compile(parameters="fixed")
    for precision, ending in PRECISIONS.items():
        model.export(
            folder / f"{name}{ending}.ptx",
            ["forward_dynamics"],
            capability=CAPABILITY,
            precision=precision,
        )
    rng = np.random.default_rng(0)
    q = np.array(equations.system.samples)[
        rng.integers(len(equations.system.samples), size=SAMPLES)
    ]
    given = {
        "q": q,
        "nu": rng.normal(size=(SAMPLES, len(model.independent))),
        "u": rng.normal(size=(SAMPLES, len(model.inputs))),
    }
    model.save(folder / f"{name}.axm", ["forward_dynamics"])
    operations = model.operations("forward_dynamics")
    np.savez(
        folder / f"{name}.npz",
        **given,
        expected=model.forward_dynamics(**given),
        operations=operations,
    )


def prepare_rollout(folder: Path, name: str, equations: ax.Equations) -> None:
    """Fixed steps from random starts, and where the CPU ends."""
    model = equations.compile(parameters="fixed")
    for precision, ending in PRECISIONS.items():
        model.export(
            folder / f"{name}_rk4{ending}.ptx",
            [],
            rollout="rk4",
            capability=CAPABILITY,
            precision=precision,
        )
    program = rollout_program(model, "rk4", None)
    rng = np.random.default_rng(0)
    q = np.repeat(model.home[np.newaxis], SAMPLES, axis=0)
    nu = 0.5 * rng.normal(size=(SAMPLES, len(model.independent)))
    buffers = rollout_buffers(program.external, q, nu)
    start = {key: value.copy() for key, value in buffers.items()}
    width = program.tables["out"]
    Rollout(program)(buffers, {"out": np.zeros((SAMPLES, 1, width))}, budget=2**62)
    np.savez(
        folder / f"{name}_rk4.npz",
        expected_q=buffers["q"],
        expected_nu=buffers["nu"],
        operations=operations_a_step(program),
        n_k=width,
        steps=STEPS,
        **start,
    )


def operations_a_step(program: Program) -> int:
    """Operations of the loop's body; a sine counts one."""
    (loop,) = (o for o in program.operations if isinstance(o, While))
    parts = program.flatten(loop.body)
    return sum(o.tape.n_operations for o in parts if isinstance(o, Evaluate))


def rollout_buffers(sizes: dict[str, int], q: np.ndarray, nu: np.ndarray) -> dict[str, np.ndarray]:
    """Start of runs that save nothing but their end."""
    runs = len(q)
    own = {"q": q, "nu": nu, "w": np.zeros((runs, 2))}
    shared = {
        "h": STEP,
        "n_steps": STEPS,
        "save_steps": STEPS,
        "t_end": STEPS * STEP,
        "least_pivot": 0.0,
    }
    buffers: dict[str, np.ndarray] = {}
    for name, size in sizes.items():
        if name in own:
            buffers[name] = np.ascontiguousarray(own[name], dtype=float)
        elif name in shared:
            buffers[name] = np.array([float(shared[name])])
        elif name in ("t0", "u"):
            buffers[name] = np.zeros(size)
        else:
            buffers[name] = np.zeros((runs, size))
    return buffers


def prepare_runs(folder: Path, name: str) -> None:
    """A model with all its functions, and what the CPU makes of a simulation and of a sweep."""
    model = ax.gallery.build(name).derive().compile()
    model.save(folder / f"whole_{name}.axm")
    rng = np.random.default_rng(1)
    q = np.repeat(model.home[np.newaxis], 64, axis=0)
    nu = 0.3 * rng.normal(size=(64, len(model.independent)))
    if name == "rolling_disk":  # some of these fall flat on the way, and stop there
        nu[::2] = 0.0
        leans = np.linspace(0.2, 1.2, 64).tolist()
        q = np.array([ax.assemble(model, {"base.roll": lean}).q for lean in leans])
    known: dict[str, Any] = {"q": q, "nu": nu}
    columns = [*model.coordinates, *model.independent, "error"]
    for method in METHODS:
        run = ax.simulate(model, 0.5, start=(q, nu), method=method, save_every=0.1)
        known[method] = run[columns].values
    made = ax.sweep(model, 0.5, start=(q, nu), outputs=WHOLE[name])
    np.savez(
        folder / f"whole_{name}.npz",
        **known,
        columns=columns,
        **{f"sweep.{key}": values for key, values in made.items()},
    )


def main() -> None:
    """Prepare everything."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/gpu")
    folder.mkdir(parents=True, exist_ok=True)
    arm, pendulum = mechanisms.arm().derive(), mechanisms.wheeled_pendulum().derive()
    caster = mechanisms.caster_robot().derive()
    platform = mechanisms.platform(6).derive(independent=mechanisms.platform_twist())
    for name, equations in {
        "arm": arm,
        "platform": platform,
        "pendulum": pendulum,
        "caster": caster,
    }.items():
        prepare_map(folder, name, equations)
    for name, equations in {"arm": arm, "pendulum": pendulum, "caster": caster}.items():
        prepare_rollout(folder, name, equations)
    for name in WHOLE:
        prepare_runs(folder, name)
    print(f"kernels and references are in {folder}")


if __name__ == "__main__":
    main()
