"""Formulas: read, written, evaluated, and built by the operators of Python and NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axode as ax
from axode.mechanism.values.expressions import (
    FUNCTIONS,
    Operation,
    Time,
    depends_on_time,
    evaluate,
    format_scalar,
    numeric,
    parameters_in,
    parse_scalar,
    shown,
)

L, K = ax.Parameter("l", 0.4), ax.Parameter("k", -3.0)
NAMED = {"l": L, "k": K}


def grown(inner):
    either = st.one_of(inner, st.floats(allow_nan=False))
    pairs = st.one_of(st.tuples(inner, either), st.tuples(either, inner))
    binary = st.builds(Operation, st.sampled_from(["+", "-", "*", "/", "**"]), pairs)
    kinds = st.sampled_from(["neg", *FUNCTIONS])
    return st.one_of(binary, st.builds(lambda kind, x: Operation(kind, (x,)), kinds, inner))


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_functions_build_formulas(name):
    ufunc = getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name))
    formula = ufunc(L)
    assert str(formula) == f"{name}(l)"
    assert numeric(formula) == pytest.approx(float(ufunc(0.4)), rel=1e-15)
    assert evaluate(formula, {"l": 0.7}) == pytest.approx(float(ufunc(0.7)), rel=1e-15)


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
    expected = "numpy.arctan2 cannot act on the formula 'l'; available are .*atan, sqrt"
    with pytest.raises(TypeError, match=expected):
        np.arctan2(L, K)
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
    with pytest.raises(ax.InvalidArgument, match="expected a number or a Parameter, got '1'"):
        ax.Parameter("x", "1")
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
