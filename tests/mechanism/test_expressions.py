"""Formulas: read, written, evaluated, and built by the operators of Python and NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axode as ax
from axode.codegen.tape.formulas import TAPE_FUNCTIONS, formula_tape
from axode.mechanism.parameter_values import _ON_ARRAYS
from axode.mechanism.values.expressions import (
    FUNCTIONS,
    NAMES,
    Operation,
    Time,
    depends_on_time,
    evaluate,
    format_scalar,
    numeric,
    parameters_in,
    parse_scalar,
    shown,
    takes,
)
from axode.oracle.numbers import JET_FUNCTIONS, motion_at
from axode.symbolic.algebra.formula_symbols import SYMBOLIC, symbolic_value

L, K = ax.Parameter("l", 0.4), ax.Parameter("k", -3.0)
NAMED = {"l": L, "k": K}


def grown(inner):
    either = st.one_of(inner, st.floats(allow_nan=False))
    pairs = st.one_of(st.tuples(inner, either), st.tuples(either, inner))
    infix = ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "and", "or"]
    binary = st.builds(Operation, st.sampled_from([*infix, "atan2", "min", "hypot"]), pairs)
    kinds = st.sampled_from(["neg", "not", *(name for name in NAMES if takes(name, 1))])
    unary = st.builds(lambda kind, x: Operation(kind, (x,)), kinds, inner)
    three = st.sampled_from(["where", "clip", "max"])
    return st.one_of(binary, unary, st.builds(Operation, three, st.tuples(inner, either, inner)))


formulas = st.recursive(st.sampled_from([L, K, Time()]), grown, max_leaves=12)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(formulas)
def test_reading_undoes_writing(formula):
    text = format_scalar(formula)
    again = parse_scalar(text, NAMED)
    assert again == formula
    assert repr(again) == repr(formula)  # which also tells 0.0 from -0.0


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.floats(allow_nan=False))
def test_numbers_keep_every_bit(number):
    assert repr(parse_scalar(format_scalar(number), {})) == repr(number)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4", 14.0),
        ("2 ** 3 ** 2", 512.0),
        ("-2 ** 2", -4.0),
        ("(-2) ** 2", 4.0),
        ("2 ** -1", 0.5),
        ("8 / 4 / 2", 1.0),
        ("7 - 4 - 2", 1.0),
        ("- - 3", 3.0),
        ("+1.5e-3", 1.5e-3),
        ("2 * -l", -0.8),
        ("-l ** 2", -(0.4**2)),
        ("l - -k", -2.6),
        ("sqrt(l * 10) + cos(0)", 3.0),
        ("pi / 2", math.pi / 2),
        ("  l\n  / 2 ", 0.2),
        ("k ** 3", -27.0),
        ("abs(k) + sign(k)", 2.0),
        ("min(l, k, 7) + max(l, 1)", -2.0),
        ("atan2(l, k)", math.atan2(0.4, -3.0)),
        ("hypot(3, 10 * l)", 5.0),
        ("step(k) + step(0) + 2 * step(l)", 3.0),
        ("clip(k, -1, 1)", -1.0),
        ("where(l > 0.3, 5, 6)", 5.0),
        ("0 < l < 0.3", 0.0),
        ("0 < l <= 0.4 and not k > 0 or l > 9", 1.0),
        ("(l > 0) & (k < 0) | ~(l > 0)", 1.0),
        ("7.5 % 2 + floor(-0.5)", 0.5),
        ("-7.5 % 2", 0.5),
    ],
)
def test_formulas_mean_what_python_means(text, value):
    assert numeric(parse_scalar(text, NAMED)) == pytest.approx(value, rel=1e-15)


def test_operators_build_what_the_text_says():
    t = Time()
    built = {
        "l / 2.0": L / 2,
        "2.0 - l": 2 - L,
        "l ** 2.0 + k": L**2 + K,
        "-(l + k) * 2.0": -(L + K) * 2,
        "2.0 ** l": 2**L,
        "2.0 / l": 2 / L,
        "0.3 * sin(6.0 * t)": 0.3 * np.sin(6 * t),
        "l": +L,
    }
    assert [str(formula) for formula in built.values()] == list(built)
    assert repr(L / 2) == "Expression('l / 2.0')"


NUMPY = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "floor", "sign", "abs")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_functions_build_formulas(name):
    formula = NUMPY[name](L)
    assert str(formula) == f"{name}(l)"
    assert numeric(formula) == pytest.approx(float(NUMPY[name](0.4)), rel=1e-15)
    assert evaluate(formula, {"l": 0.7}) == pytest.approx(float(NUMPY[name](0.7)), rel=1e-15)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda t, l: np.clip(t, 0, 1) ** 2, "clip(t, 0.0, 1.0) ** 2.0"),
        (lambda t, l: np.clip(t, None, l), "min(t, l)"),
        (lambda t, l: np.minimum(1, t) + np.fmax(t, l), "min(1.0, t) + max(t, l)"),
        (lambda t, l: np.where((t > 1) & (t < 2), t, 0), "where(t > 1.0 and t < 2.0, t, 0.0)"),
        (
            lambda t, l: np.where(~(t <= 1) | (t < 0), 1, l),
            "where(not t <= 1.0 or t < 0.0, 1.0, l)",
        ),
        (
            lambda t, l: np.select([t < 1, t < 2], [1, t], l),
            "where(t < 1.0, 1.0, where(t < 2.0, t, l))",
        ),
        (
            lambda t, l: np.heaviside(t - 1, 0.5),
            "where(t - 1.0 > 0.0, 1.0, where(t - 1.0 < 0.0, 0.0, 0.5))",
        ),
        (lambda t, l: abs(t % 2) + np.mod(t, l), "abs(t % 2.0) + t % l"),
        (lambda t, l: np.arctan2(l, t) + np.hypot(t, 1), "atan2(l, t) + hypot(t, 1.0)"),
        (
            lambda t, l: np.ceil(t) + np.square(t) + np.radians(180) * t,
            "-floor(-t) + t * t + 3.141592653589793 * t",
        ),
    ],
)
def test_functions_with_corners_build_formulas(build, text):
    formula = build(Time(), L)
    assert str(formula) == text
    for t in (-0.7, 0.3, 1.5, 2.2):
        assert evaluate(formula, {"l": 0.4, "t": t}) == pytest.approx(
            float(build(np.float64(t), 0.4))
        )


def test_every_kind_of_value_knows_every_function():
    import casadi as ca

    for table in (SYMBOLIC, TAPE_FUNCTIONS, JET_FUNCTIONS, _ON_ARRAYS):
        assert set(table) >= set(FUNCTIONS)
    counts = {name: next(n for n in (1, 2, 3) if takes(name, n)) for name in NAMES}
    for name, count in (counts | {"and": 2, "or": 2, "not": 1}).items():
        t = ca.SX.sym("t")
        for operands in ((0.3 * Time(), 0.2, 0.7), (0.2, 0.7 * Time(), 0.9), (0.1, 0.2, Time()))[
            :count
        ]:
            formula = Operation(name, operands[:count])
            x = ca.SX(symbolic_value(formula, {"t": t}))
            first = ca.jacobian(x, t)
            rates = ca.Function("f", [t], [x, first, ca.jacobian(first, t)])
            expected = [float(value) for value in rates(0.9)]
            jet = motion_at(formula, {}, 0.9)
            assert [jet.x, jet.d, jet.dd] == pytest.approx(expected, abs=1e-12), name
            tape = formula_tape(
                "f",
                {"t": 1},
                lambda t, formula=formula: {
                    "f": [0.0 * t[0] + evaluate(formula, {"t": t[0]}, TAPE_FUNCTIONS)]
                },
            )
            assert float(tape.evaluate(np.array([0.9]))[0][0]) == pytest.approx(expected[0])
            on_array = evaluate(formula, {"t": np.array([0.9, 2.0])}, _ON_ARRAYS)
            assert np.broadcast_to(on_array, 2)[0] == pytest.approx(expected[0]), name
            assert evaluate(formula, {"t": 0.9}) == pytest.approx(expected[0]), name


def test_numpy_scalars_and_arrays_mix_with_formulas():
    assert np.float64(2.0) * L == 2.0 * L
    assert L / np.int64(2) == L / 2.0
    assert np.negative(L) == -L
    doubled = np.array([1.0, 0.0, 2.0]) * L
    assert [numeric(item) for item in doubled] == [0.4, 0.0, 0.8]
    assert list(L - np.array([1.0, 2.0])) == [L - 1.0, L - 2.0]
    assert list(np.array([L, 1.0], dtype=object) + 1) == [L + 1.0, 2.0]


def test_functions_of_math_are_refused_with_a_remedy():
    expected = "the formula 'l / 2.0' is not a number yet; use functions such as numpy.sin on it"
    with pytest.raises(TypeError, match=expected):
        math.sin(L / 2)


def test_functions_that_formulas_lack_are_named():
    for name, arguments in (("cbrt", (L,)), ("interp", (L, [0, 1], [0, 2]))):
        expected = rf"numpy\.{name} cannot act on the formula 'l'; available are .*where.*sin, cos"
        with pytest.raises(TypeError, match=expected):
            getattr(np, name)(*arguments)
    with pytest.raises(TypeError, match=r"the condition 't < 1.0' is not decided yet.*numpy.where"):
        min(1.0, Time())
    with pytest.raises(TypeError, match=r"numpy\.add cannot act"):
        np.add(L, 1.0, where=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l /", "'l /' is not a formula"),
        ("", "'' is not a formula"),
        ("l = 2", "'l = 2' is not a formula"),
        ("length", "'length' in 'length' is not a parameter. Names: l, k, pi, t."),
        ("l ^ 2", "'l \\^ 2' is not understood .*; write \\*\\* for powers"),
        ("sinus(l)", "'sinus\\(l\\)' is not understood \\(numbers, .*sin, cos"),
        ("sin(l, k)", "'sin\\(l, k\\)' is not understood"),
        ("max(l)", "'max\\(l\\)' is not understood"),
        ("l == 2", "'l == 2' is not understood"),
        ("1 / 0", "'1 / 0' has no value"),
        ("sqrt(-1) + l", "'sqrt\\(-1\\)' has no value"),
        ("(-8) ** 0.5", "'\\(-8\\) \\*\\* 0.5' has no value"),
        ("10.0 ** 400", "'10.0 \\*\\* 400' has no value"),
        ("__import__('os')", "is not understood"),
        ("l.__class__", "is not understood"),
        ("[l]", "is not understood"),
        ("lambda: 1", "is not understood"),
        ("True", "'True' is not understood"),
        ("'l'", "is not understood"),
        ("(" * 300 + "l" + ")" * 300, "is not a formula|nested too deeply"),
        ("-" * 9000 + "l", "nested too deeply|is not a formula"),
        ("l" * 10_001, "a formula of 10001 characters is too long"),
    ],
)
def test_what_is_no_formula_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        parse_scalar(text, NAMED)


def test_a_misspelt_parameter_is_guessed():
    with pytest.raises(ValueError, match="Did you mean 'length'"):
        parse_scalar("lenght / 2", {"length": ax.Parameter("length", 1)})


@pytest.mark.parametrize(
    "formula", [1 / (L - L), np.sqrt(K), K**0.5, np.exp(1000 / L), np.log(L * 0)]
)
def test_formulas_without_a_value_are_nan(formula):
    assert math.isnan(numeric(formula))


@pytest.mark.parametrize("name", ["t", "pi", "sin", "lambda", "None", "2l", "l m", "a.b", ""])
def test_names_that_formulas_could_not_hold_are_refused(name):
    with pytest.raises(ax.InvalidArgument, match="cannot name a Parameter: use letters, digits"):
        ax.Parameter(name, 1.0)


def test_parameters_take_numbers_only():
    with pytest.raises(ax.InvalidArgument, match="a Parameter's name is text, got 3"):
        ax.Parameter(3, 1.0)
    with pytest.raises(ax.InvalidArgument, match="the default of Parameter 'x' must be a number"):
        ax.Parameter("x", L)
    for wrong in ("1", b"1", bytearray(b"1"), np.array("1"), np.complex64(1), np.timedelta64(1)):
        with pytest.raises(ax.InvalidArgument, match="expected a number or a Parameter, got"):
            ax.Parameter("x", wrong)
    assert ax.Parameter("x", 1) == ax.Parameter("x", np.float64(1.0))


def test_a_parameter_with_the_micro_sign_is_found_in_formulas():
    micro = ax.Parameter("\N{MICRO SIGN}", 2.0)
    assert parse_scalar(str(micro / 2), {micro.name: micro}) == micro / 2


def test_what_a_formula_depends_on():
    t = Time()
    assert [p.name for p in parameters_in(L * K + L)] == ["l", "k", "l"]
    assert depends_on_time(np.sin(2 * t) + L) and not depends_on_time(L / 2)
    assert shown(L / 2) == "0.2 ('l / 2.0')" and shown(0.25) == "0.25"


def test_motions_are_functions_of_time_written_with_numpy():
    arm = ax.Mechanism("arm")
    swing = arm.prescribe("elbow", lambda t: 0.3 * np.sin(2 * np.pi * t) + L)
    assert str(swing.motion) == "0.3 * sin(6.283185307179586 * t) + l"
    assert arm.prescribe("knee", lambda t: 1).motion == 1.0
    assert arm.prescribe("hip", np.sin).motion == Operation("sin", (Time(),))
    with pytest.raises(TypeError, match=r"prescribe 'elbow': the formula 't' is not a number yet"):
        arm.prescribe("elbow", math.sin)
    with pytest.raises(ax.InvalidArgument, match="prescribe 'elbow', motion: expected a number"):
        arm.prescribe("elbow", lambda t: None)
