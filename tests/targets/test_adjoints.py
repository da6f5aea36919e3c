"""Reverse derivatives of tapes against forward ones, operation by operation and of whole models."""

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.adjoints import adjoint_tape
from axode.codegen.tape.derivatives import forward_tape
from axode.codegen.tape.formulas import formula_tape
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.targets.cpu import CompiledFunction

ROUNDING = 1e-13  # relative: both use the same partial derivatives in another order
FACTOR = 3.5  # operations of values and gradient by everything, against those of the values
OPERATIONS = [kind for kind in Kind if kind not in LEAVES]


@pytest.mark.parametrize("kind", OPERATIONS, ids=[kind.label for kind in OPERATIONS])
def test_every_operation(kind: Kind):
    """w . (J v) = (J^T w) . v, with the operation used twice."""
    n, rng = ARITY[kind], np.random.default_rng(int(kind))
    tape = formula_tape(
        "f", {"z": n}, lambda z: {"y": [z[0]._apply(kind, *z), z[0] * z[0]._apply(kind, *z)]}
    )
    along = forward_tape(tape, {"z": ("v", 0)}, {"v": n})
    against = adjoint_tape(tape, ["z"])
    for _ in range(5):
        z = rng.uniform(0.2, 0.8, n) + (1.5 if kind == Kind.ACOSH else 0.0)
        v, w = rng.normal(size=n), rng.normal(size=2)
        change, gradient = along.evaluate(z, v)[0], against.evaluate(z, w)[0]
        scale = np.abs(w * change).sum() + 1.0
        assert w @ change == pytest.approx(gradient @ v, abs=ROUNDING * scale)


def test_choices_that_are_not_taken_leave_no_nan():
    """A branch that is not taken may be infinite; the gradient of the other one stays finite."""
    tape = formula_tape(
        "f", {"z": 1}, lambda z: {"y": [(z[0] > 0.0).then(z[0].sqrt(), -z[0]) * 3.0]}
    )
    against = adjoint_tape(tape, ["z"])
    assert against.evaluate([0.0], [1.0])[0] == pytest.approx(-3.0)
    assert against.evaluate([4.0], [1.0])[0] == pytest.approx(0.75)


def test_only_what_is_asked_for_is_propagated():
    tape = formula_tape(
        "f", {"a": 1, "b": 1}, lambda a, b: {"x": [a[0] * b[0].function("sin")], "y": [b[0]]}
    )
    by_a = adjoint_tape(tape, ["a"], values=True)
    assert [port.name for port in by_a.inputs] == ["a", "b", "x_weight", "y_weight"]
    assert [port.name for port in by_a.outputs] == ["x", "y", "a_gradient"]
    assert "cos" not in by_a.operations
    x, y, gradient = by_a.evaluate([2.0], [0.5], [3.0], [7.0])
    assert (x, y, gradient) == pytest.approx((2 * np.sin(0.5), 0.5, 3 * np.sin(0.5)))


@pytest.mark.parametrize("name", ["four_bar", "rolling_disk", "mecanum_rover", "delta_robot"])
def test_rates_of_models(name: str):
    """Loops, quaternions, wheels: forward and reverse agree, at a small multiple of the cost."""
    model, rng = ax.gallery.build(name).derive().compile(), np.random.default_rng(3)
    tape = model.tape("state_rate")
    of = [port.name for port in tape.inputs]
    sizes = {port.name: port.size for port in tape.inputs}
    known = {
        "q": model.home + 0.1 * rng.normal(size=sizes["q"]),
        "nu": rng.normal(size=sizes["nu"]),
        "u": rng.normal(size=len(model.inputs)),
        "t": np.zeros(1),
        "p": np.array([*model.parameters.values()]),
    }
    arrays = [known[name] for name in of]
    both = adjoint_tape(tape, of, values=True)
    assert both.n_operations < FACTOR * tape.n_operations
    w = rng.normal(size=tape.outputs[0].size)
    value, *found = CompiledFunction(both)(*arrays, w)
    assert value == pytest.approx(CompiledFunction(tape)(*arrays), rel=ROUNDING, abs=ROUNDING)
    scale = max(np.abs(gradient).max(initial=1.0) for gradient in found)
    for name, gradient in zip(of, found, strict=True):
        along = CompiledFunction(forward_tape(tape, {name: ("v", 0)}, {"v": sizes[name]}))
        expected = np.array([w @ along(*arrays, v) for v in np.eye(sizes[name])])
        assert gradient == pytest.approx(expected, rel=100 * ROUNDING, abs=100 * ROUNDING * scale)
