"""WebAssembly: elementary functions, bits of tapes, steps of models."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

import axode as ax
from axode.codegen.lowering.wasm_writer import I32, WasmWriter, signed, unsigned
from axode.codegen.tape.operations import ARITY, LEAVES, MEANING, Kind
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.wasm import SECTION, WasmModule
from axode.model.model_parts import function_tape
from axode.problems.inputs.inputs import plan_input
from axode.problems.steps.compiled import dynamics_of, program_of, rollout_program
from tests.targets import accuracy
from tests.targets.test_math import EXACT, KINDS, SPECIAL, domain, same
from tests.targets.wasm_machine import Machine, evaluated


def compute(kind: Kind, arguments: list[np.ndarray]) -> np.ndarray:
    return evaluated(accuracy.elementwise(kind, len(arguments[0])), arguments)[0]


@pytest.mark.parametrize("test", accuracy.RANGES, ids=lambda t: f"{t.kind.label} {t.label}")
def test_accuracy(test):
    assert accuracy.worst_error(test, 150, seed=1, compute=compute) <= test.budget


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_special_values(kind):
    points = np.array(list(itertools.product(SPECIAL, repeat=ARITY[kind])))
    arguments = list((points[::7] if kind == Kind.SELECT else points).T)
    got = compute(kind, arguments)
    with np.errstate(all="ignore"):
        expected = MEANING[kind](*arguments)
    wrong = domain(kind, arguments) & ~same(got, expected, 0.0 if kind in EXACT else 1e-15)
    assert not wrong.any(), [a[wrong] for a in (*arguments, got, expected)]


def fused(a: float, b: float, c: float) -> float:
    """a b + c, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_fma_rounds_once():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2000))
    c = rng.normal(size=2000) * 2.0 ** rng.integers(-60, 60, 2000)
    c[:800] = -(a * b)[:800] * (1.0 + 2.0**-52 * rng.integers(-2, 3, 800))
    ulp = 2.0**-53
    ties = [(1.0 + ulp * 2, 1.0 + ulp * 2, 0.0), (1.0, 1.0 + 2 * ulp, ulp), (1.0, 1.0, ulp)]
    ties += [(1.0, 1.0, ulp + ulp**2), (1.0, -1.0, -ulp - ulp**2), (ulp, 1.0, 1.0)]
    cases = [*zip(a.tolist(), b.tolist(), c.tolist(), strict=True), *ties]
    results = _call_fma(cases)
    assert [float(x) for x in results] == [fused(*case) for case in cases]


def _call_fma(cases: list[tuple[float, ...]]) -> np.ndarray:
    """Results of the module's own fma, through a function that is called nowhere else."""
    module = WasmModule()
    n = len(cases)
    places = [module.place(name, n) for name in ("a", "b", "c", "out")]
    w = WasmWriter((), module.number)
    for k in range(n):
        addresses = [w._make(b"\x41" + signed(p), (), I32, constant=True) for p in places]
        a, b, c = (w.load(address, k) for address in addresses[:3])
        w.store(addresses[3], k, w.fma(a, b, c))
    module._add("f", w.function())
    module._exports["f"] = "f"
    machine = Machine(module)
    for name, column in zip("abc", np.array(cases).T, strict=True):
        machine[name][:] = column
    machine.call("f")
    return machine["out"].copy()


def test_whole_numbers_as_bytes():
    assert unsigned(624485) == bytes([0xE5, 0x8E, 0x26])
    assert signed(-123456) == bytes([0xC0, 0xBB, 0x78])
    assert signed(64) == bytes([0xC0, 0x00]) and signed(-64) == bytes([0x40])


TURNS = (Kind.SIN, Kind.COS)


@pytest.mark.parametrize("name", ["wheeled_pendulum", "four_bar", "delta_robot"])
def test_bits_of_arithmetic(name):
    """Without elementary functions, results have the bits of the definition in NumPy."""
    tape = function_tape(
        ax.gallery.build(name).derive().compile(parameters="fixed"), "forward_dynamics"
    )
    tape = _with_turns_as_inputs(tape)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=port.shape) for port in tape.inputs]
    for got, expected in zip(evaluated(tape, inputs), tape.evaluate(*inputs), strict=True):
        assert got.tobytes() == expected.tobytes()


def _with_turns_as_inputs(tape: Tape) -> Tape:
    """The tape with a sine or cosine of an angle replaced by the angle itself."""
    kinds, operands = tape.kinds.copy(), tape.operands.copy()
    turned = np.isin(kinds, TURNS)
    assert turned.any()
    zero = int(np.flatnonzero(kinds == Kind.INPUT)[0])
    kinds[turned] = Kind.ADD
    operands[turned, 1] = zero
    used = {Kind(k) for k in kinds.tolist()} - set(LEAVES)
    assert used <= {Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.NEG, Kind.SQRT, Kind.HYPOT}
    return Tape(tape.name, tape.inputs, tape.outputs, kinds, operands, tape.constants, tape.results)


@pytest.mark.parametrize("name", ["wheeled_pendulum", "four_bar"])
def test_steps(name):
    model = ax.gallery.build(name).derive().compile(parameters="fixed")
    program = rollout_program(model, "rk4", None)
    module = WasmModule()
    module.add_program("run", program, {"q": "q", "nu": "nu", "u": "u"}, {"out": 8})
    machine = Machine(module)
    assert b"axode" in machine.data and SECTION == "axode"
    facts = json.loads(machine.data[machine.data.index(b'{"buffers"') :])
    assert facts["buffers"]["q"]["size"] == len(model.coordinates)
    start = {"q": model.home, "nu": np.full(len(model.independent), 0.3)}
    inputs = np.full(len(model.inputs), 0.02)
    names = [*model.coordinates, *model.independent]
    numbers = np.concatenate(list(start.values())).tolist()
    run = ax.simulate(
        model,
        0.5,
        start=dict(zip(names, numbers, strict=True)),
        input=inputs,
        method="rk4",
        step=1e-3,
    )
    for key, value in start.items():
        machine[key][:] = value
    machine["u"][:] = inputs
    given = {"h": 1e-3, "t_end": 0.5, "n_steps": 500, "save_steps": 1e9}
    for key, number in given.items():
        machine[f"run.{key}"][:] = number
    machine.call("run", 10**6)
    assert machine["run.t"][0] == pytest.approx(0.5)
    computed = np.concatenate([machine["q"], machine["nu"]])
    expected = [run.final[name] for name in names]
    assert computed == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_implicit_methods_are_refused():
    model = ax.gallery.build("unicycle").derive().compile(parameters="fixed")
    plan = plan_input(model, None)
    program = program_of(model, "radau9", dynamics_of(model, plan, ()))
    with pytest.raises(ax.errors.NotApplicable, match="solves linear systems, and WebAssembly"):
        WasmModule().add_program("run", program, {}, {"out": 1, "times": 1})
