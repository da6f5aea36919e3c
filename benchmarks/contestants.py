"""Who computes a mechanism's dynamics, each made ready to be timed on the same states.

A contestant returns seconds a sample. Those of Axode run over arrays prepared beforehand, as a loop
in C++ would; what a call from Python costs on top is measured apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

import axode as ax
from axode.codegen.targets.c import c_code
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.function_source import graph_tape
from axode.symbolic.functions import FunctionGraph, function_graph
from benchmarks.correctness import TOLERANCE, relative_error
from benchmarks.peers import c_loop
from benchmarks.peers.pinocchio_model import PinocchioPeer, pinocchio_peer
from benchmarks.peers.pinocchio_native.build import NativeLoop
from benchmarks.peers.pinocchio_native.build import Skipped as NativeSkipped
from benchmarks.states import States
from benchmarks.timing import Contestant, net, repeated

IN_CACHE = 1024  # samples
PEER_STATES = 64  # of those, for peers that are called one sample at a time
NATIVE_REPETITIONS = 3  # a turn
SCALAR, SIMD, C99 = "Axode, scalar", "Axode, SIMD", "Axode, C99 by cc"


@dataclass
class Subject:
    """One function of one mechanism: what it computes, and on which states."""

    mechanism: ax.Mechanism
    equations: ax.Equations
    function: str  # "inverse_dynamics" or "forward_dynamics"
    states: States
    model: ax.Model = field(init=False)
    graph: FunctionGraph = field(init=False)

    def __post_init__(self) -> None:
        self.model = self.equations.compile(parameters="fixed")
        self.graph = function_graph(self.equations, self.function, fixed=True)
        self.tape = graph_tape(self.graph)
        self.arguments = self.states.arguments(tuple(port.name for port in self.tape.inputs))
        self.wanted = self.model.evaluate(
            self.function, dict(zip(self.graph.arguments, self.arguments, strict=True))
        )

    @property
    def direct(self) -> bool:
        return self.function == "forward_dynamics"

    def check(self, found: np.ndarray, tolerance: float = TOLERANCE) -> float:
        """Error against Axode's compiled model, which was checked against Pinocchio."""
        return relative_error(found, self.wanted[: len(found)], tolerance)


@dataclass
class Entrants:
    """Contestants by name, their errors, remarks on them, and why some are missing."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, contestant: Contestant, error: float | None, remark: str = "") -> None:
        self.contestants[name] = contestant
        if error is not None:
            self.errors[name] = error
        self.remarks[name] = remark


def kernel(function: CompiledFunction, arrays: list[np.ndarray]) -> tuple[Callable, np.ndarray]:
    """The compiled loop alone, on one thread, and the array it writes to."""
    inputs, batch = function._inputs(tuple(arrays))
    outputs = function._outputs(None, batch)
    places, code = function._places(inputs, outputs), function._kernel(function.lanes)

    def run(alive: object = (inputs, outputs)) -> None:  # places are only addresses
        code.run(places, 0, batch[0])

    return run, outputs[0]


def add_axode(entrants: Entrants, subject: Subject, all_lanes: bool = True) -> None:
    """The scalar loop and the SIMD loops of all widths."""
    best = CompiledFunction(subject.tape).lanes
    names = {1: SCALAR, best: SIMD}
    for lanes in (1, 2, 4, 8) if all_lanes else (1, best):
        if lanes > best:
            continue
        name = names.get(lanes, f"Axode, {lanes} lanes")
        run, out = kernel(CompiledFunction(subject.tape, lanes=lanes), subject.arguments)
        run()
        remark = "" if lanes == 1 else f"{lanes} lanes"
        entrants.add(name, repeated(run, len(out)), subject.check(out), remark)


def add_casadi(entrants: Entrants, subject: Subject) -> None:
    """CasADi's interpreter, called and mapped, and C."""
    f = subject.graph.function
    rows = [[argument[i] for argument in subject.arguments] for i in range(PEER_STATES)]
    found = np.array([np.array(f(*row)).ravel() for row in rows])
    entrants.add(
        "CasADi, interpreter",
        repeated(lambda: [f(*row) for row in rows], len(rows)),
        subject.check(found),
        "calls from Python",
    )
    count = len(subject.states)
    buffer, trigger = f.map(count).buffer()
    out = np.empty((count, f.nnz_out(0)))
    for k, argument in enumerate(subject.arguments):
        buffer.set_arg(k, memoryview(argument))
    buffer.set_res(0, memoryview(out))

    def mapped(alive: object = (buffer, out)) -> None:  # the buffer has only addresses
        trigger()

    mapped()
    entrants.add("CasADi, interpreter mapped", repeated(mapped, count), subject.check(out))
    _add_c(entrants, subject, "CasADi, C by cc", c_loop.casadi_c(f))
    _add_c(entrants, subject, C99, c_loop.axode_c(c_code(subject.tape), subject.tape))


def _add_c(entrants: Entrants, subject: Subject, name: str, source: str) -> None:
    out = np.empty((len(subject.states), subject.graph.function.nnz_out(0)))
    try:
        loop = c_loop.CLoop(source, subject.arguments, out)
    except c_loop.Skipped as reason:
        entrants.skipped[name] = str(reason)
        return
    loop()
    entrants.add(
        name,
        repeated(loop, len(out)),
        subject.check(out),
        f"-O3 -march=native, {loop.seconds:.1f} s to compile",
    )


def add_pinocchio(entrants: Entrants, subject: Subject, native: bool) -> None:
    """Pinocchio from Python less the cost of the call, and from C++."""
    if subject.mechanism.loops and not subject.direct:
        entrants.skipped["Pinocchio"] = "no inverse dynamics of closed loops by motors"
        return
    peer = pinocchio_peer(subject.mechanism)
    states = subject.states.first(PEER_STATES)
    third = states.force if subject.direct else states.nu_dot
    rows = list(zip(states.q, states.v, third, strict=True))
    _add_pinocchio_python(entrants, subject, peer, rows)
    if not native:
        entrants.skipped["Pinocchio from C++"] = "ask with --native"
        return
    try:
        loop = NativeLoop(peer, rows)
    except NativeSkipped as reason:
        entrants.skipped["Pinocchio from C++"] = str(reason)
        return
    remarks = {
        "constraintDynamics": "default settings: mu = 0, one iteration",
        "constraintDynamics_proximal": "mu = 1e-6, to 1e-12",
        "lcaba": "mu = 1e-6, to 1e-12",
    }
    turn: dict[str, list[float]] = {}

    def again(name: str, first: bool) -> list[float]:
        if first:
            turn.update(loop.times(NATIVE_REPETITIONS))
        return turn[name]

    unused = "rnea" if subject.direct else "aba"
    names = [n for n in loop.errors if n != unused and not n.endswith("Derivatives")]
    for k, name in enumerate(names):
        entrants.add(
            f"Pinocchio C++, {name}",
            lambda n=name, k=k: again(n, k == 0),
            loop.errors[name],
            remarks.get(name, ""),
        )


def _add_pinocchio_python(
    entrants: Entrants, subject: Subject, peer: PinocchioPeer, rows: list[tuple[np.ndarray, ...]]
) -> None:
    model, data = peer.model, peer.data
    given = [(peer.q(q), peer.v(v), peer.v(x)) for q, v, x in rows]
    nothing, none = pin.Model(), np.zeros(0)
    empty = nothing.createData()
    more: tuple[object, ...] = ()
    no_more: tuple[object, ...] = ()
    algorithm = pin.aba if subject.direct else pin.rnea
    if peer.loops:
        algorithm = pin.constraintDynamics
        # Vectors of Pinocchio's own: a list would be converted in every call, for longer than the
        # computation takes.
        more, no_more = (_loop_vectors(loops) for loops in (peer.loops, []))
        pin.initConstraintDynamics(model, data, *more)
        pin.initConstraintDynamics(nothing, empty, *no_more)
    found = [peer.back(np.array(algorithm(model, data, *row, *more))) for row in given]
    wanted = subject.wanted[: len(rows)]
    if subject.direct:
        states = subject.states.first(len(rows))
        wanted = subject.model.accelerations(states.q, states.nu, wanted)
    error = relative_error(np.array(found), wanted)

    def work() -> None:
        for q, v, x in given:
            algorithm(model, data, q, v, x, *more)

    def calls() -> None:
        for _ in given:
            algorithm(nothing, empty, none, none, none, *no_more)

    overhead = repeated(calls, len(given))
    name = f"Pinocchio from Python, {algorithm.__name__}"
    entrants.add(
        name,
        net(repeated(work, len(given)), overhead),
        error,
        f"less {1e9 * float(overhead()):.0f} ns, a call with an empty model",
    )


def _loop_vectors(loops: list) -> tuple[object, object]:
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in loops:
        models.append(loop)
        data.append(loop.createData())
    return models, data


def add_mujoco(entrants: Entrants, subject: Subject) -> None:
    """MuJoCo from Python less the cost of the call and of setting the state."""
    try:
        import mujoco
    except ImportError:
        entrants.skipped["MuJoCo"] = "not installed; pip install mujoco"
        return
    from benchmarks.peers.mujoco_model import MujocoPeer

    peer = MujocoPeer(subject.mechanism)
    model, data = peer.model, peer.data
    states = subject.states.first(PEER_STATES)
    accelerations = subject.model.accelerations(states.q, states.nu, states.nu_dot)
    wanted = subject.wanted[: len(states)]
    q, v = peer.q(states.q), peer.v(states.q, states.v)
    if subject.direct:
        third, target, result, compute = (
            states.force,
            data.qfrc_applied,
            data.qacc,
            mujoco.mj_forward,
        )
        v_dot = subject.model.accelerations(states.q, states.nu, wanted)
        wanted = peer.v_dot(states.q, states.v, v_dot)
    else:
        third = peer.v_dot(states.q, states.v, accelerations)
        target, result, compute = data.qacc, data.qfrc_inverse, mujoco.mj_inverse
    rows = list(zip(q, v, third, strict=True))
    found = []
    for row in rows:
        data.qpos[:], data.qvel[:], target[:] = row
        compute(model, data)
        found.append(result.copy())
    soft = bool(subject.mechanism.loops)
    error, remark = None, "soft loops, another question" if soft else ""
    if not soft:
        error = relative_error(np.array(found), wanted)
    elif subject.direct:
        error = relative_error(np.array(found), wanted, np.inf)
        remark = "soft loops"

    def run(function: Callable[..., object]) -> Callable[[], None]:
        qpos, qvel = data.qpos, data.qvel

        def turn() -> None:
            for a, b, c in rows:
                qpos[:] = a
                qvel[:] = b
                target[:] = c
                function(model, data)

        return turn

    overhead = repeated(run(mujoco.mj_checkPos), len(rows))
    remark = f"{remark + '; ' if remark else ''}less {1e9 * float(overhead()):.0f} ns of calls"
    name = f"MuJoCo from Python, {compute.__name__}"
    entrants.add(name, net(repeated(run(compute), len(rows)), overhead), error, remark)


def single_call(subject: Subject) -> Contestant:
    """One sample through the model's method, from Python, as users call it."""
    rows = [tuple(argument[i] for argument in subject.arguments) for i in range(PEER_STATES)]
    method = getattr(subject.model, subject.function)
    return repeated(lambda: [method(*row) for row in rows], len(rows))
