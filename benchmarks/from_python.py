"""Section `from_python`: one call of a function, one step, one short run, from Python.

Functions of an arm with seven joints against Pinocchio's binding, steps of a wheeled pendulum
against MuJoCo's, all in one process. Pinocchio's functions leave poses and derivatives in its data;
ours return arrays. Times are processor times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import axode as ax
from benchmarks.correctness import relative_error
from benchmarks.mechanisms import arm, balancer, wheeled_pendulum
from benchmarks.peers.mujoco_pendulum import mujoco_pendulum, start
from benchmarks.peers.pinocchio_model import pinocchio_peer
from benchmarks.timing import Times, in_turn, repeated

STEP = 1e-3  # [s]
COLUMNS = ("", "default µs", "prepared µs", "peer µs")
Contestants = dict[str, Callable[[], object]]


def from_python(console: Console, repeat: int) -> dict[str, object]:
    """Measure and show: medians of CPU time."""
    rows = {**functions(), **steps(), **runs()}
    table = Table(title="CPU time of a call from Python, median (least..most) [us]")
    names = ("default", "prepared", "peer")
    for column in ("", *names, "the peer"):
        table.add_column(column, justify="left" if column in ("", "the peer") else "right")
    found: dict[str, object] = {}
    for label, (peer, works) in rows.items():
        timed = {n: repeated(work, clock=time.process_time) for n, work in works.items()}
        times = in_turn(timed, repeat)
        found[label] = {"peer": peer, "seconds": {n: list(t.seconds) for n, t in times.items()}}
        shown = (times[n].text("us", 2) if n in times else "" for n in names)
        table.add_row(label, *shown, peer)
    console.print(table)
    return {"from_python": found}


def functions() -> dict[str, tuple[str, Contestants]]:
    """Functions of the arm, called as users call them and prepared."""
    mechanism = arm()
    model, peer = mechanism.derive().compile(), pinocchio_peer(mechanism)
    q, v, x = 0.5 * np.random.default_rng(0).normal(size=(3, 7))
    there = peer.q(q), peer.v(v), peer.v(x)
    M, D = peer.model, peer.data
    relative_error(model.inverse_dynamics(q, v, x), peer.inverse_dynamics(q, v, x))
    relative_error(model.forward_dynamics(q, v, x), peer.direct_dynamics(q, v, x)[0])
    by = {"forward_dynamics": ("q", "nu", "u"), "inverse_dynamics": ("q", "nu", "nu_dot")}
    prepared = {
        name: model.prepare(name)
        for name in (
            *("inverse_dynamics", "forward_dynamics", "mass_matrix", "poses"),
            *(f"{name}_derivatives_by_{'_'.join(arguments)}" for name, arguments in by.items()),
        )
    }
    call = {name.partition("_by_")[0]: function for name, function in prepared.items()}
    return {
        "7-dof arm, inverse dynamics": (
            "Pinocchio rnea",
            {
                "default": lambda: model.inverse_dynamics(q, v, x),
                "prepared": lambda: call["inverse_dynamics"](q, v, x),
                "peer": lambda: pin.rnea(M, D, *there),
            },
        ),
        "7-dof arm, forward dynamics": (
            "Pinocchio aba",
            {
                "default": lambda: model.forward_dynamics(q, v, x),
                "prepared": lambda: call["forward_dynamics"](q, v, x),
                "peer": lambda: pin.aba(M, D, *there),
            },
        ),
        "7-dof arm, mass matrix": (
            "Pinocchio crba",
            {
                "default": lambda: model.mass_matrix(q),
                "prepared": lambda: call["mass_matrix"](q),
                "peer": lambda: pin.crba(M, D, there[0]),
            },
        ),
        "7-dof arm, poses": (
            "Pinocchio forwardKinematics",
            {
                "default": lambda: model.poses(q),
                "prepared": lambda: call["poses"](q),
                "peer": lambda: pin.forwardKinematics(M, D, there[0]),
            },
        ),
        "7-dof arm, derivatives of forward dynamics": (
            "Pinocchio computeABADerivatives",
            {
                "default": lambda: model.derivatives(
                    "forward_dynamics", q, v, x, by=by["forward_dynamics"]
                ),
                "prepared": lambda: call["forward_dynamics_derivatives"](q, v, x),
                "peer": lambda: pin.computeABADerivatives(M, D, *there),
            },
        ),
        "7-dof arm, derivatives of inverse dynamics": (
            "Pinocchio computeRNEADerivatives",
            {
                "default": lambda: model.derivatives(
                    "inverse_dynamics", q, v, nu_dot=x, by=by["inverse_dynamics"]
                ),
                "prepared": lambda: call["inverse_dynamics_derivatives"](q, v, x),
                "peer": lambda: pin.computeRNEADerivatives(M, D, *there),
            },
        ),
    }


def steps() -> dict[str, tuple[str, Contestants]]:
    """Ten steps of Runge and Kutta of the wheeled pendulum: by one call, and by ten."""
    model = wheeled_pendulum().derive().compile()
    begin = {"pitch": 0.0}  # where it stays
    stepper, u = model.stepper(STEP, start=begin), np.zeros(len(model.inputs))
    stepper.step(u + 0.1, 100)
    pushed = dict.fromkeys(model.inputs, 0.1)
    run = ax.simulate(model, 100 * STEP, start=begin, input=pushed, method="rk4", step=STEP)
    relative_error(stepper.q, np.array([run.final[name] for name in model.coordinates]))
    stepper.reset()
    theirs, data = mujoco_pendulum(STEP)
    start(theirs, data, 0.0, 0.0, 0.0)

    def ours_ten() -> None:
        for _ in range(10):
            stepper.step(u)

    def theirs_ten() -> None:
        for _ in range(10):
            mujoco.mj_step(theirs, data)

    def again() -> object:
        return ax.simulate(model, 10 * STEP, start=begin, method="rk4", step=STEP)

    return {
        "wheeled pendulum, 10 steps, one call": (
            "MuJoCo mj_step(nstep=10)",
            {
                "default": again,
                "prepared": lambda: stepper.step(u, 10),
                "peer": lambda: mujoco.mj_step(theirs, data, nstep=10),
            },
        ),
        "wheeled pendulum, 10 steps, ten calls": (
            "MuJoCo mj_step",
            {"prepared": ours_ten, "peer": theirs_ten},
        ),
    }


def runs() -> dict[str, tuple[str, Contestants]]:
    """Short runs, callbacks and linear models of the balancer of the README."""
    model = balancer().derive().compile()
    begin, calls = {"pitch": 0.02}, ax.Callback(lambda t, s: [60 * s["pitch"]] * 2)

    def law(s: Any) -> list:
        return [60 * s["pitch"] + 15 * s["pitch_rate"]] * 2

    def with_callback(steps: int) -> object:
        options = {"method": "rk4", "step": STEP, "save_every": STEP}
        return ax.simulate(model, steps * STEP, start=begin, input=calls, **options)

    return {
        "balancer, simulate 10 ms, same law": (
            "",
            {"default": lambda: ax.simulate(model, 0.01, start=begin, input=law)},
        ),
        "balancer, 100 steps with a Callback": ("", {"default": lambda: with_callback(100)}),
        "balancer, 10 steps with a Callback": ("", {"default": lambda: with_callback(10)}),
        "balancer, linearize": ("", {"default": lambda: ax.linearize(model)}),
    }


def calls(found: dict) -> list[tuple[str, ...]]:
    """Rows for the manual."""
    made = []
    for label, row in found["from_python"].items():
        times = {name: Times(tuple(seconds)) for name, seconds in row["seconds"].items()}
        shown = (times[n].text("us", 2) if n in times else "" for n in ("default", "prepared"))
        peer = f"{row['peer']} {times['peer'].text('us', 2)}" if "peer" in times else ""
        made.append((label, *shown, peer))
    return made
