"""Section `derivatives`: direct dynamics with all first derivatives against Pinocchio from C++.

One call gives the accelerations and their derivatives by configuration, speeds and inputs. The arm
and the tree stand against `computeABADerivatives`, the platform against `constraintDynamics` with
`computeConstraintDynamicsDerivatives`, whose universal joints are two revolute ones each: with
Pinocchio's own universal joints, timed too, its derivatives are wrong. Times are processor times.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.model_parts import function_tape
from benchmarks.contestants import NATIVE_REPETITIONS, PEER_STATES, SCALAR, SIMD, kernel
from benchmarks.correctness import relative_error
from benchmarks.mechanisms import arm, platform, tree
from benchmarks.peers.pinocchio_model import PinocchioPeer, pinocchio_peer
from benchmarks.peers.pinocchio_native.build import NativeLoop, Skipped
from benchmarks.states import States, random_states
from benchmarks.timing import Contestant, Times, in_turn, repeated

STATES = 256
FUNCTION = "forward_dynamics_derivatives"
MECHANISMS: dict[str, Callable[[], ax.Mechanism]] = {
    "7-dof arm": arm,
    "30-dof tree": tree,
    "6-UPS platform": platform,
}


def derivatives(console: Console, repeat: int, native: bool) -> dict[str, object]:
    """Measure everything and show it."""
    found: dict[str, object] = {}
    for label, make in MECHANISMS.items():
        row = measure(make(), repeat, native)
        found[label] = row
        console.print(_table(label, row))
    return {"derivatives": found}


def measure(mechanism: ax.Mechanism, repeat: int, native: bool) -> dict[str, object]:
    """Times of all contestants, seconds to build and to compile, and the error."""
    seconds: dict[str, float] = {}
    started = time.process_time()
    model = mechanism.derive().compile(parameters="fixed")
    seconds["derive"] = time.process_time() - started
    started = time.process_time()
    tape = function_tape(model, FUNCTION)
    seconds["build"] = time.process_time() - started
    states = random_states(mechanism, model, STATES)
    arguments = states.arguments(tuple(port.name for port in tape.inputs))
    best = CompiledFunction(tape).lanes
    contestants: dict[str, Contestant] = {}
    results: dict[str, np.ndarray] = {}
    with mock.patch.dict("os.environ", AXODE_CACHE="off"):
        for name, lanes in ((SCALAR, 1), (SIMD, best)):
            before = _spent()
            run, results[name] = kernel(CompiledFunction(tape, lanes=lanes), arguments)
            seconds[f"compile {name}"] = _spent() - before
            contestants[name] = repeated(run, STATES, time.process_time)
            run()
    error = _error(mechanism, model, states, results[SIMD])
    relative_error(results[SCALAR], results[SIMD])
    contestants |= _pinocchio(mechanism, states) if native else {}
    times = in_turn(contestants, repeat)
    return {
        "operations": tape.n_operations,
        "numbers": tape.outputs[0].size,
        "seconds": seconds,
        "error": error,
        "times": {name: list(t.seconds) for name, t in times.items()},
    }


def _spent() -> float:
    """Processor time of this process and of compilers that it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _pinocchio(mechanism: ax.Mechanism, states: States) -> dict[str, Contestant]:
    """Loops in C++ around Pinocchio's derivatives."""
    some = states.first(PEER_STATES)
    rows = list(zip(some.q, some.v, some.force, strict=True))
    found: dict[str, Contestant] = {}
    peers = {"": pinocchio_peer(mechanism, split_universals=True)}
    if mechanism.loops:
        peers[", own universal joints (wrong)"] = pinocchio_peer(mechanism)
    for remark, peer in peers.items():
        try:
            loop = NativeLoop(peer, rows)
        except Skipped:
            return {}
        wanted = "constraintDynamicsDerivatives" if peer.loops else "computeABADerivatives"

        def run(loop: NativeLoop = loop, name: str = wanted) -> list[float]:
            return loop.times(NATIVE_REPETITIONS)[name]

        found[f"Pinocchio C++, {wanted}{remark}"] = run
    return found


def _error(mechanism: ax.Mechanism, model: ax.Model, states: States, table: np.ndarray) -> float:
    """Largest difference from Pinocchio's derivatives, along what keeps loops closed."""
    peer = pinocchio_peer(mechanism, split_universals=True)
    errors = []
    n, own = len(model.independent), [model.speed_names.index(s) for s in model.independent]
    for k in range(8):
        q, nu = states.q[k], states.nu[k]
        by_q, by_v, by_force = _theirs(peer, q, states.v[k], states.force[k])
        if mechanism.loops:
            moved = model.jacobian("joint_speeds", "q", q, nu) @ model.tangent_map(q)
            Theta = model.speed_map(q)
            by_q, by_v = by_q @ Theta + by_v @ moved, by_v @ Theta
        wanted = np.hstack([by_q[own], by_v[own], by_force[np.ix_(own, own)]])
        errors.append(relative_error(table[k, :, 1 : 1 + 3 * n], wanted))
    return max(errors)


def _theirs(peer: PinocchioPeer, q: np.ndarray, v: np.ndarray, force: np.ndarray) -> list:
    """Derivatives of all accelerations by displacements, speeds and forces, in Axode's order."""
    at = np.argsort(peer.speed_order)
    if peer.loops:
        peer.direct_dynamics(q, v, force)
        pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, peer.loops, peer._loop_data)
        found = [peer.data.ddq_dq, peer.data.ddq_dv, peer.data.ddq_dtau]
    else:
        pin.computeABADerivatives(peer.model, peer.data, peer.q(q), peer.v(v), peer.v(force))
        Minv = np.triu(peer.data.Minv) + np.triu(peer.data.Minv, 1).T
        found = [peer.data.ddq_dq, peer.data.ddq_dv, Minv]
    return [np.array(matrix)[np.ix_(at, at)] for matrix in found]


def _table(label: str, row: dict) -> Table:
    table = Table(
        title=f"{label}: {row['operations']} operations for {row['numbers']} numbers, "
        f"error {row['error']:.1e}"
    )
    for head in ("", "ns per state", "least", "times faster, of medians", "of least"):
        table.add_column(head)
    times = {name: Times(tuple(seconds)) for name, seconds in row["times"].items()}
    peer = next((t for name, t in times.items() if name.startswith("Pinocchio")), None)
    for name, t in times.items():
        ratio = f"{peer.median / t.median:.1f}" if peer else ""
        least = f"{peer.least / t.least:.1f}" if peer else ""
        table.add_row(name, t.text("ns", 0), f"{1e9 * t.least:.0f}", ratio, least)
    for name, seconds in row["seconds"].items():
        table.add_row(name, f"{seconds:.2f} s")
    return table
