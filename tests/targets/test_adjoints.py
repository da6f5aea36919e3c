"""Derivatives of tapes, forward and reverse: against multiprecision and against each other."""

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.derivatives import adjoint_tape, forward_tape
from axode.codegen.tape.formulas import formula_tape
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.model.model_parts import function_tape
from multiprecision import change

ROUNDING = 1e-13  # relative: both use the same partial derivatives in another order
ONE_OPERATION = 1e-14  # relative, of one derivative: some ten roundings
FACTOR = 3.5  # operations of values and gradient by everything, against those of the values
OPERATIONS = [kind for kind in Kind if kind not in LEAVES]
# Close to the ends of a domain, where a difference of squares would lose half of the digits.
ENDS = {
    Kind.ASIN: (1 - 1e-9, -1 + 1e-12),
    Kind.ACOS: (1 - 1e-9, -1 + 1e-12),
    Kind.ATANH: (1 - 1e-9, -1 + 1e-12),
    Kind.ACOSH: (1 + 1e-9, 1 + 1e-12),
    Kind.LOG: (1e-9,),
    Kind.LOG1P: (-1 + 1e-12, 1e-18),
    Kind.EXPM1: (1e-18, -30.0),
    Kind.SQRT: (1e-9,),
}


@pytest.mark.parametrize("kind", OPERATIONS, ids=[kind.label for kind in OPERATIONS])
def test_every_operation(kind: Kind):
    """Forward against multiprecision; w . (J v) = (J^T w) . v, with the operation used twice."""
    n, rng = ARITY[kind], np.random.default_rng(int(kind))
    tape = formula_tape(
        "f", {"z": n}, lambda z: {"y": [z[0]._apply(kind, *z), z[0] * z[0]._apply(kind, *z)]}
    )
    along = forward_tape(tape, {"z": ("v", 0)}, {"v": n})
    against = adjoint_tape(tape, ["z"])
    points = rng.uniform(0.2, 0.8, (5, n)) + (1.5 if kind == Kind.ACOSH else 0.0)
    for z in (*points, *([x] for x in ENDS.get(kind, ()))):
        v, w = rng.normal(size=n), rng.normal(size=2)
        forward, gradient = along.evaluate(z, v)[0], against.evaluate(z, w)[0]
        expected = change(tape, [z], [v])
        parts = np.abs([change(tape, [z], [v * e]) for e in np.eye(n)]).max(axis=0)
        assert forward == pytest.approx(expected, abs=ONE_OPERATION * max(parts.max(), 1e-300))
        scale = np.abs(w).max() * max(parts.max(), 1e-300)
        assert w @ expected == pytest.approx(gradient @ v, abs=3 * ONE_OPERATION * scale)


CORNERS = {
    "the root of a square": (lambda z: (z[0] * z[0]).sqrt() + z[1], (0.0, 2.0), (0.0, 1.0)),
    "a length": (lambda z: z[0]._apply(Kind.HYPOT, z[0], z[1]), (0.0, 0.0), (0.0, 0.0)),
    "a magnitude": (lambda z: abs(z[0]) + z[1], (0.0, 1.0), (0.0, 1.0)),
    "equal numbers, the smaller": (lambda z: z[0].least(z[1]), (1.0, 1.0), (1.0, 0.0)),
    "equal numbers, the larger": (lambda z: z[0].most(z[1]), (1.0, 1.0), (1.0, 0.0)),
    "zero to a power": (lambda z: z[0] ** z[1], (0.0, 2.0), (0.0, 0.0)),
    "zero to the power of zero": (lambda z: z[0] ** z[1], (0.0, 0.0), (0.0, 0.0)),
    "the sign of zero": (lambda z: z[0]._apply(Kind.COPYSIGN, z[0], z[1]), (-2.0, 0.0), (-1.0, 0)),
    "sin(x) / x, guarded": (
        lambda z: (z[0].equals(0.0)).then(1.0, z[0].function("sin") / z[0]) * z[1],
        (0.0, 3.0),
        (0.0, 1.0),
    ),
    "a root that is not taken": (
        lambda z: (z[0] > 0.0).then(z[0].sqrt() * z[1], -z[0]),
        (-4.0, 3.0),
        (-1.0, 0.0),
    ),
    "a quotient inside a choice inside a choice": (
        lambda z: (z[0] > 1.0).then(
            z[1], (z[0].equals(0.0)).then(z[1] * 2.0, z[1] / z[0] * z[1].function("log"))
        ),
        (0.0, -3.0),
        (0.0, 2.0),
    ),
    "the smaller of a number and infinity": (
        lambda z: (1.0 / (z[0] * z[0])).least(z[1]),
        (0.0, 5.0),
        (0.0, 1.0),
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners(name: str):
    """What is not chosen may be infinite or no number; the gradient has no trace of it."""
    make, point, expected = CORNERS[name]
    tape = formula_tape("f", {"z": 2}, lambda z: {"y": [make(z)]})
    gradient = adjoint_tape(tape, ["z"]).evaluate(point, [1.0])[0]
    assert gradient.tolist() == list(expected)
    along = forward_tape(tape, {"z": ("v", 0)}, {"v": 2})
    assert [along.evaluate(point, v)[0][0] for v in np.eye(2)] == list(expected)


SAFE = {  # operations on numbers of any size, and what keeps the others inside their domain
    kind: (lambda x: x * x + 0.1) for kind in (Kind.SQRT, Kind.LOG, Kind.LOG1P)
} | {
    Kind.ASIN: lambda x: x.apply(Kind.SIN) * 0.9,
    Kind.ACOS: lambda x: x.apply(Kind.SIN) * 0.9,
    Kind.ATANH: lambda x: x.apply(Kind.SIN) * 0.9,
    Kind.ACOSH: lambda x: x * x + 1.1,
    **dict.fromkeys(
        (Kind.EXP, Kind.EXPM1, Kind.SINH, Kind.COSH, Kind.TAN), lambda x: x.apply(Kind.SIN)
    ),
}


def random_tape(rng: np.random.Generator, size: int = 60):
    """Operations of all kinds on each other's results."""

    def make(x, y):
        values = [*x, *y]
        for _ in range(size):
            kind = Kind(rng.choice(OPERATIONS))
            picks = [values[i] for i in rng.integers(len(values), size=ARITY[kind])]
            if kind in (Kind.DIV, Kind.FMOD, Kind.REMAINDER, Kind.ATAN2):
                picks[1] = picks[1] * picks[1] + 0.5
            if kind == Kind.POW:
                picks = [picks[0] * picks[0] + 0.5, picks[1].apply(Kind.SIN)]
            picks[0] = SAFE.get(kind, lambda z: z)(picks[0])
            values.append(picks[0]._apply(kind, *picks).apply(Kind.TANH))
        return {"f": values[-4:], "g": values[-8:-6]}

    return formula_tape("random", {"x": 3, "y": 2}, make)


@pytest.mark.parametrize("seed", range(25))
def test_random_tapes(seed: int):
    rng = np.random.default_rng(seed)
    tape = random_tape(rng)
    x, y, dx, dy = (rng.normal(size=n) for n in (3, 2, 3, 2))
    w = rng.normal(size=6)
    expected = w @ change(tape, [x, y], [dx, dy])
    by_x, by_y = adjoint_tape(tape, ["x", "y"]).evaluate(x, y, w[:4], w[4:])
    scale = 1.0 + np.abs(by_x).max() + np.abs(by_y).max()
    assert by_x @ dx + by_y @ dy == pytest.approx(expected, abs=100 * ROUNDING * scale)
    along = forward_tape(tape, {"x": ("v", 0), "y": ("v", 3)}, {"v": 5})
    parts = along.evaluate(x, y, [*dx, *dy])
    assert w @ np.concatenate(parts) == pytest.approx(expected, abs=100 * ROUNDING * scale)


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


def test_functions_without_results():
    tape = formula_tape("f", {"a": 2}, lambda a: {"x": []})
    assert adjoint_tape(tape, ["a"]).evaluate([1.0, 2.0], [])[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["four_bar", "rolling_disk", "mecanum_rover", "delta_robot"])
def test_rates_of_models(name: str):
    """Loops, quaternions, wheels: forward and reverse agree, at a small multiple of the cost."""
    model, rng = ax.gallery.build(name).derive().compile(), np.random.default_rng(3)
    tape = function_tape(model, "state_rate")
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
    value, *found = both.evaluate(*arrays, w)
    assert value == pytest.approx(tape.evaluate(*arrays)[0], rel=ROUNDING, abs=ROUNDING)
    scale = max(np.abs(gradient).max(initial=1.0) for gradient in found)
    for name, gradient in zip(of, found, strict=True):
        along = forward_tape(tape, {name: ("v", 0)}, {"v": sizes[name]})
        expected = along.evaluate(*arrays, np.eye(sizes[name]))[0] @ w
        assert gradient == pytest.approx(expected, rel=100 * ROUNDING, abs=100 * ROUNDING * scale)
