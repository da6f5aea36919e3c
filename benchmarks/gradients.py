"""Gradients of runs: against the run itself, and beside MuJoCo's finite differences of every step.

    python -m benchmarks.gradients [--out results.json] [--repeat 15]

Runs have steps of 1 ms by rk4. Gradients are by the start, the inputs and all parameters, of a cost
with a running and a final part; whole calls are timed, compiled before. Times are of the processor,
on one thread, so that other programs disturb them little; the least of some turns is
shown. MuJoCo steps the wheeled pendulum on soft contacts by its implicit method, since
`mjd_transitionFD` takes no RK4, and the matrices of all steps are multiplied: the derivative of the
last pitch by the first one is compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from benchmarks import mechanisms
from benchmarks.conditions import conditions

STEP, STEPS = 1e-3, 1000
RUNS = 1024
GOAL = 4.0  # times the run
START = {"pitch": 0.3, "base.surge": 0.5}
SOFT = 0.05  # relative: MuJoCo's wheels creep
FALL = 0.5  # [s], for the comparison of derivatives


def least(work: Callable[[], Any], repeat: int) -> float:
    """Least processor time of some calls, after one that compiles [s]."""
    work()
    found = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


@dataclass(frozen=True)
class Case:
    """Runs to differentiate.

    Attributes:
        name: What moves.
        build: Makes it.
        runs: How many runs, each a row.
        steps: How many steps.
        start: Values by name, of a start that is assembled, the first for every run another one;
            coordinates of home and random speeds unless given.
    """

    name: str
    build: Callable[[], ax.Mechanism]
    runs: tuple[int, ...] = (1, RUNS)
    steps: int = STEPS
    start: dict[str, float] | None = None

    def begin(self, model: ax.Model, runs: int) -> Any:
        """Start of so many runs."""
        rng = np.random.default_rng(0)
        if self.start is not None:
            spread = 1.0 if runs == 1 else np.linspace(1.0, 1.05, runs)
            first = next(iter(self.start), None)
            return {n: x * spread if n == first else x for n, x in self.start.items()}
        shape = () if runs == 1 else (runs,)
        q = np.broadcast_to(model.home, (*shape, len(model.coordinates)))
        return q, 0.1 * rng.normal(size=(*shape, len(model.independent)))


def lengths_of_a_balancer() -> ax.Mechanism:
    """The balancer with four free lengths."""
    radius, half, height, ahead = (
        ax.Parameter(name, value)
        for name, value in (("radius", 0.1), ("half", 0.2), ("height", 0.4), ("ahead", 0.01))
    )
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(ahead, 0, height), inertia=(0.5, 0.4, 0.1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", half), ("right", -half)):
        bot.add_wheel(side, ax.Rolling(radius=radius), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot


CASES = (
    Case("wheeled pendulum", mechanisms.wheeled_pendulum),
    Case("wheeled pendulum, 9 parameters", lambda: ax.gallery.build("wheeled_pendulum")),
    Case("four-bar, 8 parameters", lambda: ax.gallery.build("four_bar")),
    Case("arm with 7 joints", mechanisms.arm),
    Case("balancer on a floating base", mechanisms.balancer),
    Case("balancer, 4 lengths, assembled", lengths_of_a_balancer, start={"pitch": 0.2}),
    Case(
        "five-bar, 7 parameters, assembled",
        lambda: ax.gallery.build("five_bar"),
        (256,),
        200,
        {"theta1": 1.4},
    ),
    Case("tree of 30 joints", mechanisms.tree, (1, 64)),
    Case("6-UPS platform", mechanisms.platform, (1, 64), 300),
    Case(
        "Gough-Stewart, 40 parameters, assembled",
        lambda: ax.gallery.build("gough_stewart"),
        (1, 64),
        300,
        {"position.z": 1.0},
    ),
)


def against_the_run(case: Case, model: ax.Model, runs: int, repeat: int) -> dict[str, Any]:
    """Time of a run, of its gradient by everything, and of its cost alone."""
    given: dict[str, Any] = {
        "start": case.begin(model, runs),
        "input": dict.fromkeys(model.inputs, 0.01),
        "method": "rk4",
        "step": STEP,
        "threads": 1,
    }
    length, first = STEP * case.steps, model.coordinates[0]
    cost = ax.Cost(model, length, running=f"{first} ** 2", final=f"{first} ** 2", **given)
    options = {"save_every": length, "progress": False}
    seconds = {
        "run": least(lambda: ax.simulate(model, length, **options, **given), repeat),
        "gradient": least(lambda: ax.gradient(cost, cost.names, progress=False), repeat),
        "value": least(cost.value, repeat),
    }
    made = {"mechanism": case.name, "runs": runs, "steps": case.steps, "by": len(cost.names)}
    return made | {"ratio": seconds["gradient"] / seconds["run"], "seconds": seconds}


def pendulum_cost(model: ax.Model) -> ax.Cost:
    """The pitch at the end of a fall."""
    return ax.Cost(model, FALL, start=START, final="pitch", step=STEP, threads=1)


def beside_mujoco(model: ax.Model, repeat: int) -> dict[str, Any]:
    """Derivative of the last pitch by the first one, and seconds of a run of 1000 steps."""
    import mujoco

    from benchmarks.peers.mujoco_pendulum import document, start

    theirs = mujoco.MjModel.from_xml_string(document(STEP, options='integrator="implicitfast"'))
    data = mujoco.MjData(theirs)
    n = 2 * theirs.nv
    matrix = np.zeros((n, n))

    def product(steps: int) -> np.ndarray:
        start(theirs, data, START["pitch"], 0.0, START["base.surge"])
        whole = np.eye(n)
        for _ in range(steps):
            mujoco.mjd_transitionFD(theirs, data, 1e-6, True, matrix, None, None, None)
            whole = matrix @ whole
            mujoco.mj_step(theirs, data)
        return whole

    about_y = 4  # of a free joint: three translations, then rotations
    found = float(product(round(FALL / STEP))[about_y, about_y])
    cost = pendulum_cost(model)
    own = float(ax.gradient(cost, "start.pitch")["start.pitch"])
    difference = abs(found - own) / abs(own)
    assert difference < SOFT, f"derivatives differ by {difference:.2%}: {own:.6g}, {found:.6g}"
    whole = ax.Cost(model, STEP * STEPS, start=START, final="pitch", step=STEP, threads=1)
    names = ["start.pitch", "start.base.surge", *model.inputs]
    return {
        "Axode": least(lambda: ax.gradient(whole, names, progress=False), repeat),
        "MuJoCo": least(lambda: product(STEPS), 2),
        "derivative, Axode": own,
        "derivative, MuJoCo": found,
    }


def show(console: Console, rows: list[dict[str, Any]], peer: dict[str, Any] | None) -> None:
    """Print what was found."""
    table = Table(title=f"Gradients by everything against the run, goal {GOAL:g} times")
    for column in ("mechanism", "runs", "steps", "by", "run [ms]", "gradient [ms]", "ratio"):
        table.add_column(column, justify="left" if column == "mechanism" else "right")
    for row in rows:
        run, whole = (1e3 * row["seconds"][key] for key in ("run", "gradient"))
        counts = (str(row[key]) for key in ("runs", "steps", "by"))
        numbers = (*counts, f"{run:.2f}", f"{whole:.2f}")
        table.add_row(row["mechanism"], *numbers, f"{row['ratio']:.2f}")
    console.print(table)
    if peer is None:
        console.print("MuJoCo is not installed; pip install mujoco")
        return
    console.print(
        f"derivative of a run of the pendulum: Axode {1e3 * peer['Axode']:.2f} ms, MuJoCo's finite "
        f"differences {1e3 * peer['MuJoCo']:.0f} ms ({peer['MuJoCo'] / peer['Axode']:.0f} times); "
        f"pitch by pitch after {FALL:g} s: {peer['derivative, Axode']:.5f}, "
        f"{peer['derivative, MuJoCo']:.5f}"
    )


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradients")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    where = conditions()
    rows = []
    for case in CASES:
        model = case.build().derive().compile()
        rows += [against_the_run(case, model, runs, options.repeat) for runs in case.runs]
    pendulum = CASES[0].build().derive().compile()
    peer = None
    if find_spec("mujoco") is not None:
        peer = beside_mujoco(pendulum, options.repeat)
    show(Console(width=120), rows, peer)
    if options.out:
        text = json.dumps({"conditions": where, "rows": rows, "mujoco": peer}, indent=1)
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
