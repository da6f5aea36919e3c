"""Elementary functions: accuracy, special values, provenance of the polynomials."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from axode.codegen.math import coefficients
from axode.codegen.tape.operations import ARITY, LEAVES, MEANING, Kind
from axode.codegen.targets.cpu import CompiledFunction
from tests.targets import accuracy, fit

KINDS = [kind for kind in Kind if kind not in LEAVES]

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 7.25, 1e-310, 5e-324),
    *(1e-20, 1e10, -1e10, 1e300, -1e300, 1.7e308, np.inf, -np.inf, np.nan),
)

# Functions that the hardware computes exactly or that only move bits and numbers.
EXACT = frozenset(KINDS) - {test.kind for test in accuracy.RANGES} | {Kind.SQRT}


@pytest.mark.parametrize("test", accuracy.RANGES, ids=lambda t: f"{t.kind.label} {t.label}")
def test_accuracy(test):
    assert accuracy.worst_error(test, 300, seed=1) <= test.budget


@pytest.mark.parametrize("test", accuracy.SINGLE_RANGES, ids=lambda t: f"{t.kind.label} {t.label}")
def test_accuracy_in_single_precision(test):
    assert accuracy.worst_error(test, 300, seed=1, single=True) <= test.budget


IN_SINGLE = (*(0.0, 1.0, -1.0, 0.5, 2.5, -7.25, 1e-40, 1e30, -3e38), *(np.inf, -np.inf, np.nan))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_special_values_in_single_precision(kind):
    points = np.array(list(itertools.product(IN_SINGLE, repeat=ARITY[kind])), dtype=np.float32)
    points = points[::7] if kind == Kind.SELECT else points
    arguments = list(points.T)
    got = accuracy.in_single(kind, arguments)
    with np.errstate(all="ignore"):
        wide = MEANING[kind](*(a.astype(np.float64) for a in arguments))
        expected = wide.astype(np.float32)
    known = domain(kind, arguments, 2.0**17, 2.0**24)
    wrong = known & ~same(got, expected, 0.0 if kind in EXACT else 4e-7, 2e-45)
    assert not wrong.any(), "\n".join(
        f"{kind.label}{tuple(p)} = {g}, expected {e}"
        for p, g, e in zip(points[wrong], got[wrong], expected[wrong], strict=True)
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
@pytest.mark.parametrize("lanes", [1, 4])
def test_special_values(kind, lanes):
    arity = ARITY[kind]
    points = np.array(list(itertools.product(SPECIAL, repeat=arity)))
    if kind == Kind.SELECT:
        points = points[::7]
    arguments = list(points.T)
    function = CompiledFunction(accuracy.single_operation(kind).tape, lanes=lanes)
    got = function(*arguments)
    with np.errstate(all="ignore"):
        expected = MEANING[kind](*arguments)
    known = domain(kind, arguments)
    wrong = known & ~same(got, expected, 0.0 if kind in EXACT else 1e-15)
    assert not wrong.any(), "\n".join(
        f"{kind.label}{tuple(p)} = {g}, expected {e}"
        for p, g, e in zip(points[wrong], got[wrong], expected[wrong], strict=True)
    )
    if kind in (Kind.SIN, Kind.TAN):  # one instruction an angle is too much for the sign of zero
        return
    signs = known & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    assert not signs.any(), f"sign of zero of {kind.label}{points[signs].tolist()}"


def domain(
    kind: Kind, arguments: list[np.ndarray], largest: float = 2.0**40, ratios: float = 2.0**53
) -> np.ndarray:
    """Where the definition and the documented behaviour of the targets coincide."""
    with np.errstate(all="ignore"):
        if kind in (Kind.SIN, Kind.COS, Kind.TAN):
            return ~(np.isfinite(arguments[0]) & (np.abs(arguments[0]) > largest))
        if kind in (Kind.FMOD, Kind.REMAINDER):
            ratio = np.abs(arguments[0] / arguments[1])
            return ~(np.isfinite(arguments[0]) & (arguments[1] != 0) & (ratio >= ratios))
        if kind == Kind.HYPOT:
            return ~(np.isnan(arguments[0]) ^ np.isnan(arguments[1]))
        if kind in (Kind.FMIN, Kind.FMAX):
            return ~((arguments[0] == 0) & (arguments[1] == 0))
    return np.ones(len(arguments[0]), dtype=bool)


def same(
    got: np.ndarray, expected: np.ndarray, tolerance: float, least: float = 1e-323
) -> np.ndarray:
    with np.errstate(all="ignore"):
        close = np.abs(got - expected) <= np.maximum(tolerance * np.abs(expected), least)
    return close | (got == expected) | (np.isnan(got) & np.isnan(expected))


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in (Kind.POW, Kind.COPYSIGN)])
def test_nan_never_vanishes(kind):
    """A NaN argument gives NaN, whatever the others are (comparisons give 0 or 1)."""
    if kind in (Kind.LT, Kind.LE, Kind.EQ, Kind.NE, Kind.NOT, Kind.AND, Kind.OR, Kind.SELECT):
        return
    function = accuracy.single_operation(kind)
    for place in range(ARITY[kind]):
        for other in (0.0, 1.0, np.inf):
            arguments = [np.full(3, other) for _ in range(ARITY[kind])]
            arguments[place] = np.full(3, np.nan)
            assert np.isnan(function(*arguments)).all(), f"{kind.label}, argument {place}"


def test_unknown_angles_are_not_guessed():
    for kind in (Kind.SIN, Kind.COS, Kind.TAN):
        assert np.isnan(accuracy.single_operation(kind)(np.array([1e13, -1e300]))).all()


def test_polynomials_are_what_the_fit_derives():
    text = Path(coefficients.__file__).read_text()
    assert text == fit.source(), (
        "run: python -m tests.targets.fit > src/axode/codegen/math/coefficients.py"
    )
