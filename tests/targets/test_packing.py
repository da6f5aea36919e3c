"""Equal limbs in vectors: what is packed, and that it changes nothing."""

from __future__ import annotations

import re

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axode.codegen.lowering import instructions as packed_module
from axode.codegen.lowering.batch_loop import module
from axode.codegen.tape.packing import Packing, best_packing, packings
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu import CompiledFunction
from random_mechanisms import arm, platform
from tests.targets.agreement import assert_agree, interpreter, largest_terms, samples

WHOLE = ("add", "sub", "mul", "fmin", "fmax", "neg", "sq", "choose")


def limbs(count: int = 6) -> ca.Function:
    """A sum over limbs that differ in their numbers, and one value of a single limb."""
    q, shared = ca.SX.sym("q", 2 * count), ca.SX.sym("shared", 2)
    rng = np.random.default_rng(count)
    total, lengths = ca.SX(0), []
    for k in range(count):
        a, b = q[2 * k], q[2 * k + 1]
        x = rng.normal() * shared[0] + shared[1]
        length = ca.sqrt(1 + (ca.sin(a) * x + ca.cos(a) * ca.cos(b)) ** 2)
        total += length * x - ca.sin(b) / length
        lengths.append(length)
    return ca.Function(
        "limbs",
        [q, shared],
        [total / (1 + shared[1] ** 2), lengths[1]],
        ["q", "shared"],
        ["total", "one"],
    )


@st.composite
def random_limbs(draw: st.DrawFn) -> ca.Function:
    """The same random operations on several limbs, some of them missing in some limbs.

    All are exact on small integers.
    """
    count = draw(st.integers(2, 9))
    x, y, shared = ca.SX.sym("x", count), ca.SX.sym("y", count), ca.SX.sym("s", 2)
    values = [[x[k], y[k], shared[0], shared[1], ca.SX(k + 2)] for k in range(count)]
    for _ in range(draw(st.integers(2, 12))):
        name = draw(st.sampled_from(WHOLE))
        first, second = (draw(st.integers(0, len(values[0]) - 1)) for _ in range(2))
        without = draw(st.sampled_from((None, None, None, 0, count - 1)))
        for k, own in enumerate(values):
            a, b = own[first], own[second]
            if name == "choose":
                value = ca.if_else(a < b, a, -b)
            elif name in ("neg", "sq"):
                value = ca.SX.unary(getattr(ca, f"OP_{name.upper()}"), a)
            else:
                value = ca.SX.binary(getattr(ca, f"OP_{name.upper()}"), a, b)
            own.append(
                a if k == without else ca.fmod(value, 64) if name in ("mul", "sq") else value
            )
    last = [own[-1] for own in values]
    total = sum(last[1:], last[0]) - shared[1] + sum(own[-2] for own in values)
    return ca.Function("random", [x, y, shared], [total, total * last[0], ca.vertcat(*last)])


def evaluated(tape: Tape, packing: Packing, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """One sample after the other, packed this way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_module, "best_packing", lambda _: packing)
        patch.setenv("AXODE_CACHE", "off")  # objects are kept by tape, not by packing
        results = CompiledFunction(tape, lanes=1)(*arrays)
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("count", [2, 3, 6, 13])
def test_limbs_share_every_function_and_division(count):
    tape = Tape.from_casadi(limbs(count))
    packing = best_packing(tape)
    assert packing.lanes == count
    ir = module(tape, 1)
    wide = re.findall(rf"<{count} x double> @llvm.sqrt", ir)
    assert len(wide) == 2  # a declaration and a call
    assert "double @llvm.sqrt.f64" not in ir
    assert ir.count("fdiv") == 2  # of the limbs, and of their sum


@pytest.mark.parametrize("count", [2, 3, 6, 13])
def test_packed_limbs_agree_with_the_interpreter(count):
    source = limbs(count)
    tape = Tape.from_casadi(source)
    arrays = samples(tape, 2000)
    expected = interpreter(source, arrays)
    got = evaluated(tape, best_packing(tape), arrays)
    assert_agree(got, expected, tape, "limbs", largest_terms(tape, arrays))


@settings(max_examples=40, deadline=None)
@given(random_limbs())
def test_any_packing_of_random_limbs_is_exact(source):
    tape = Tape.from_casadi(source)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 10, (19, *port.shape)).astype(float) for port in tape.inputs]
    expected = interpreter(source, arrays)
    for packing in packings(tape):
        for got, wanted in zip(evaluated(tape, packing, arrays), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_numbers_that_are_not_numbers_stay_in_their_limb():
    tape = Tape.from_casadi(limbs())
    q, shared = np.full(12, 0.3), np.array([1.0, 2.0])
    q[4] = np.nan
    total, second = CompiledFunction(tape)(q, shared)
    assert np.isnan(total)
    assert np.isfinite(second)


def test_legs_of_a_platform_take_a_third_of_the_instructions():
    twist = [f"base.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")]
    tape = direct(platform(6), twist)
    packing = best_packing(tape)
    assert packing.lanes == 6
    alone = sum(isinstance(unit, int) for unit in packing.units)
    assert len(packing.home) > tape.n_operations / 2
    assert alone < tape.n_operations / 4


def test_an_arm_has_no_limbs():
    assert best_packing(direct(arm(7), None)) is None


def direct(mechanism, independent) -> Tape:
    """The tape of its forward dynamics."""
    e = mechanism.derive(independent=independent)
    return Tape.from_casadi(ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], [e.forward_dynamics]))
