"""All roots of polynomial families, by parameter homotopy."""

import re
from functools import cache

import casadi as ca
import numpy as np
import pytest

import axode as ax
import polynomial_families
from axode.disk.object_cache import ObjectCache
from axode.kinematics.polynomials import path_tracker
from axode.kinematics.polynomials import solve_family as families
from axode.kinematics.polynomials.path_tracker import PathStatus, TrackingSettings
from axode.kinematics.polynomials.polynomial_family import (
    PolynomialFamily,
    certify_roots,
    evaluate_at,
    polish_roots,
)
from axode.kinematics.polynomials.solve_family import monodromy, solve_family, start_set
from benchmarks.platform_numbers import dietmaier, platforms, random_complex, real_in_own_charts
from benchmarks.platforms import gough_stewart
from emulated_gpu import install


@cache
def family(name):
    if name == "gough_stewart":
        return gough_stewart()
    return getattr(polynomial_families, name)()


def residuals(family, targets, roots):
    count = roots.shape[1]
    x, p = roots.reshape(-1, roots.shape[2]), np.repeat(targets, count, axis=0)
    return np.abs(evaluate_at(family.residual_tape, x, p)).reshape(len(targets), count, -1)


@pytest.mark.parametrize(("name", "count"), [("planar", 6), ("three_angles", 16), ("parabola", 2)])
def test_generic_members_have_as_many_roots_as_the_literature_counts(name, count):
    found = start_set(family(name))
    assert len(found.roots) == count
    targets = random_complex(np.random.default_rng(2), 20, family(name).parameters)
    made = solve_family(family(name), targets)
    assert made.count.tolist() == [count] * 20
    assert residuals(family(name), targets, made.roots).max() < 1e-9


@pytest.mark.slow
def test_platforms_on_six_legs_have_forty_postures():
    six = family("gough_stewart")
    targets = platforms(16, np.random.default_rng(1))
    found = solve_family(six, targets)
    assert found.count.tolist() == [40] * 16 and found.complete.all()
    assert found.error.max() < 1e-9
    assert residuals(six, targets, found.roots).max() < 1e-12


@pytest.mark.soak
def test_two_thousand_platforms_have_forty_postures_each():
    found = solve_family(family("gough_stewart"), platforms(2000, np.random.default_rng(9)))
    assert (found.count == 40).all()
    assert found.statistics()["targets tracked again"] < 20


def test_dietmaiers_platform_has_forty_real_postures():
    six, target = family("gough_stewart"), dietmaier()
    found = solve_family(six, target)
    x, p, imaginary = real_in_own_charts(found.of(0), target)
    assert len(x) == 40 and imaginary.max() < 1e-9
    polished, error = polish_roots(six, x, p)
    assert error.max() < 1e-14
    assert np.abs(evaluate_at(six.residual_tape, polished, p)).max() < 1e-14
    certificates = certify_roots(six, polished, p)
    assert certificates.certified.all() and certificates.radius.max() < 1e-9


TRIANGLE = np.exp(2j * np.pi * np.arange(3) / 3)


def octahedral(rng, spread, count):
    """Parameters of platforms whose six legs meet in pairs, nearly: two triangles."""
    base, top = (
        TRIANGLE[[0, 0, 1, 1, 2, 2]],
        0.6 * TRIANGLE[[1, 2, 2, 0, 0, 1]] * np.exp(1j * np.pi),
    )
    a, b = (np.stack([z.real, z.imag, 0 * z.real], axis=1) for z in (base, top))
    made = platforms(count, rng)
    made[:, :18] = (a + spread * rng.normal(size=(count, 6, 3))).reshape(count, 18)
    made[:, 18:36] = (b + spread * rng.normal(size=(count, 6, 3))).reshape(count, 18)
    made[:, 36:42] = rng.uniform(0.9, 1.3, size=(count, 6)) ** 2
    return made


@pytest.mark.parametrize(("spread", "count"), [(0.0, 16), (1e-10, 16), (1e-2, 40)])
def test_legs_that_meet_in_pairs_leave_sixteen_postures(spread, count):
    """The other paths end at singular roots; nearly so if the legs nearly meet."""
    targets = octahedral(np.random.default_rng(3), spread, 6)
    found = solve_family(family("gough_stewart"), targets)
    assert found.count.tolist() == [count] * 6 and found.complete.all()
    assert (found.status == PathStatus.SINGULAR).sum() == 6 * (40 - count)


def test_roots_at_infinity_and_double_roots_are_counted_apart():
    """a x^2 + b x + c: of degree one, with a double root, and nearly so."""
    targets = [[0, 1, 2], [1, -2, 1], [1, 0, -1], [1e-6, 1, 2], [1, -2, 1 - 1e-10]]
    found = solve_family(family("parabola"), np.array(targets, dtype=complex))
    assert found.count.tolist() == [1, 0, 2, 2, 2]
    assert found.complete.all()
    assert found.status[0].max() == PathStatus.AT_INFINITY
    assert (found.status[1] == PathStatus.SINGULAR).all()
    assert found.of(0) == pytest.approx(-2)
    assert sorted(found.of(2).real[:, 0]) == pytest.approx([-1, 1])
    counts = found.statistics()
    assert (counts["at infinity"], counts["singular"], counts["finished"]) == (1, 2, 7)


def test_lost_paths_are_tracked_again():
    """Steps that are far too long lead to other paths, or to where all unknowns of q vanish."""
    targets = platforms(30, np.random.default_rng(8))
    careless = TrackingSettings(tolerance=3.0, radius=1.0)
    once = solve_family(family("gough_stewart"), targets, settings=careless, attempts=1)
    assert (once.count < 40).any()
    again = solve_family(family("gough_stewart"), targets, settings=careless, attempts=8)
    assert again.count.tolist() == [40] * 30
    assert again.statistics()["targets tracked again"] == (once.count < 40).sum()
    assert again.statistics()["paths lost on the way"] > 0


def test_too_few_steps_are_reported():
    found = solve_family(
        family("parabola"), [[1, 2, 3]], attempts=1, settings=TrackingSettings(max_steps=1)
    )
    assert (found.status == PathStatus.TOO_LONG).all() and not found.complete.any()


def test_roots_that_no_loop_connects_are_found():
    """(x - p) (x + p) has a root on either branch, which never change places."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p")

    def seed(rng):
        value = random_complex(rng, 1)
        return value * rng.choice([-1.0, 1.0]), value

    apart = PolynomialFamily("test branches", ca.Function("r", [x, p], [x * x - p * p]), 1, 1, seed)
    found = solve_family(apart, [[3.0]])
    assert sorted(found.of(0).real[:, 0]) == pytest.approx([-3, 3])


def test_start_sets_are_kept_on_disk(monkeypatch, tmp_path):
    curve, made = family("parabola"), []
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(families, "monodromy", lambda *a, **k: made.append(1) or monodromy(*a, **k))

    def fresh():
        monkeypatch.setattr(families, "_MEMORY", {})
        return start_set(curve)

    first = fresh()
    (kept,) = (tmp_path / "cache").glob("*.o")
    second = fresh()
    assert len(made) == 1 and (first.roots == second.roots).all()
    kept.write_bytes(kept.read_bytes()[:-3])
    with pytest.warns(UserWarning, match="is damaged"):
        third = fresh()
    assert len(made) == 2 and (first.roots == third.roots).all()
    size = curve.parameters + curve.unknowns * (families.MAX_ROOTS + 1)
    ObjectCache(kept.parent).write(kept.stem, bytes(16 * size))  # more roots than any family has
    assert (first.roots == fresh().roots).all() and len(made) == 3
    monkeypatch.setattr(families, "VERSION", 0)  # another version is another file
    fresh()
    assert len(made) == 4


def test_on_a_gpu(monkeypatch):
    targets = random_complex(np.random.default_rng(3), 10, 19)
    expected = solve_family(family("planar"), targets)
    gpu = install(monkeypatch)
    monkeypatch.setattr(path_tracker, "_TRACKERS", type(path_tracker._TRACKERS)())
    found = solve_family(family("planar"), targets, target="cuda")
    assert len(gpu.launches) == 1
    assert (found.status == expected.status).all()
    assert np.abs(found.roots - expected.roots).max() < 1e-12


def test_what_is_no_polynomial_is_refused():
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    wave = PolynomialFamily("wave", ca.Function("r", [x, p], [ca.sin(x) - p]), 1, 1, None)
    text = "family 'wave' uses sin; polynomials are made of + - * / and constants"
    with pytest.raises(ax.InvalidArgument, match=re.escape(text)):
        solve_family(wave, [[0.0]])
    with pytest.raises(
        ax.InvalidArgument,
        match=r"residual of family 'wave': arguments of sizes \(1, 1\), expected \(2, 1\)",
    ):
        PolynomialFamily("wave", wave.residual, 2, 1, None)


def test_targets_must_fit():
    curve = family("parabola")
    with pytest.raises(
        ax.InvalidArgument,
        match=r"targets of family 'test parabola' have shape \(2, 2\), expected \(targets, 3\)",
    ):
        solve_family(curve, np.zeros((2, 2)))
    with pytest.raises(ax.UnknownName, match="gpu"):
        solve_family(curve, [[1, 2, 3]], target="gpu")
    with pytest.raises(
        ax.InvalidArgument, match="'test parabola' are not finite: number 1 and 0 others"
    ):
        solve_family(curve, [[1, 2, 3], [1, np.nan, 3]])


def test_families_without_regular_roots_are_refused(monkeypatch):
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    square = ca.Function("r", [x, p], [(x - p) ** 2])

    def seed(rng):
        value = random_complex(rng, 1)
        return value, value

    double = PolynomialFamily("test double", square, 1, 1, seed)
    with pytest.raises(
        ax.NotApplicable,
        match="'test double': its roots cannot be distinguished or followed from member to member",
    ):
        solve_family(double, [[1.0]])
    curve = family("parabola")
    start_set(curve)
    monkeypatch.setattr(families, "MOVES", 0)
    monkeypatch.setenv("AXODE_CACHE", "off")
    monkeypatch.setattr(families, "_MEMORY", {curve.digest: [start_set(curve)]})
    with pytest.raises(ax.NotApplicable, match="its 2 roots cannot be followed to other generic"):
        start_set(curve, 1)
