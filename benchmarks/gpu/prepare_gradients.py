"""Write the kernels of `gradients.py` and what the CPU finds, into a folder.

    python -m benchmarks.gpu.prepare_gradients out/gradients

The folder can be carried to a machine with a GPU that has no CasADi.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import axode as ax
from axode.codegen.tape.program import Program
from axode.codegen.tape.rewriting import fuse
from axode.codegen.targets.cpu_rollout import Rollout
from axode.codegen.targets.ptx import kernels
from axode.problems.gradients.backward import LIMITS
from axode.problems.gradients.reverse_program import reverse_program
from axode.problems.gradients.steps_of_cost import CostTapes, StepOfCost
from axode.problems.inputs.inputs import plan_input
from axode.problems.inputs.tracing import traced_tape
from axode.problems.steps.compiled import METHODS, adjoints_of, dynamics_of
from axode.problems.steps.tableaus import RK4
from benchmarks import mechanisms
from benchmarks.gpu.prepare import CAPABILITY, operations_a_step, rollout_buffers

RUNS, STEPS = 4096, 200


def programs(model: ax.Model) -> tuple[Program, Program]:
    """Steps of 1 ms that are logged, and the gradient of a cost by the state and the inputs."""
    d = dynamics_of(model, plan_input(model, None), ())
    first, motor = model.coordinates[-1], model.inputs[0]
    running = traced_tape(
        model, "running", lambda s: [s[first] ** 2 + 0.1 * s[motor] ** 2], inputs=True
    )
    step = StepOfCost(RK4, d, CostTapes(running), adjoints_of(model))
    backwards = fuse(reverse_program(step, {"u": range(d.n_u)}), LIMITS)
    return METHODS["rk4"](replace(d, log=True)), backwards


def prepare(folder: Path, name: str, equations: ax.Equations) -> None:
    """Kernels of one mechanism, starts, and the CPU's gradients."""
    model = equations.compile(parameters="fixed")
    forwards, backwards = programs(model)
    made = kernels({"steps": forwards, "gradient": backwards}, CAPABILITY).assemble()
    made.export(folder / f"{name}.ptx")
    print(made)
    rng = np.random.default_rng(0)
    q = np.repeat(model.home[np.newaxis], RUNS, axis=0)
    nu = 0.5 * rng.normal(size=(RUNS, len(model.independent)))
    buffers = rollout_buffers(forwards.external, q, nu)
    start = {f"steps.{key}": value.copy() for key, value in buffers.items()}
    log = np.zeros((RUNS, STEPS, forwards.tables["log"]))
    out = np.zeros((RUNS, 1, forwards.tables["out"]))
    Rollout(forwards)(buffers, {"log": log, "out": out}, budget=2**62)
    rollout = Rollout(backwards)
    seeds = {f"a_{key}": 1.0 for key in ("q", "nu")}
    known = rollout.new_state(RUNS, seeds | {"index": STEPS - 1.0})
    known |= {"count": np.array([float(STEPS)]), "u": np.zeros(len(model.inputs))}
    begin = {f"gradient.{key}": value.copy() for key, value in known.items()}
    rollout(known, {"log": log}, budget=2**62)
    np.savez(
        folder / f"{name}.npz",
        steps=STEPS,
        width=log.shape[-1],
        saved=out.shape[-1],
        operations=operations_a_step(backwards),
        expected_q=buffers["q"],
        **{f"expected_{key}": known[key] for key in ("a_q", "a_nu", "g_u", "cost")},
        **start,
        **begin,
    )


def main() -> None:
    """Prepare everything."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/gradients")
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, "pendulum", mechanisms.wheeled_pendulum().derive())
    prepare(folder, "caster", mechanisms.caster_robot().derive())
    prepare(folder, "arm", mechanisms.arm().derive())
    whole = ax.gallery.build("caster_robot").derive().compile()
    whole.save(folder / "whole_caster_robot.axm")
    print(f"kernels and references are in {folder}")


if __name__ == "__main__":
    main()
