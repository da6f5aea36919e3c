"""Rows that hold little of their own: kept to rounding where numbers are exact, never lost."""

import math
import random
import warnings
from fractions import Fraction

import numpy as np
import pytest

import axode as ax
from axode.errors import PlausibilityWarning

TILTS = [10.0**-k for k in range(3, 13)]


def twins(tilt, base, tolerance, *tilts):
    """A body on planes that are tilted against its first one; across the tilt it stays free."""
    bot = ax.Mechanism("twins", loop_tolerance=tolerance)
    body = bot.add_body("body", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(1.0, 2.0, 2.5))
    bot.add_joint("base", base, parent=bot.ground, child=body)
    for k, sign in enumerate(tilts):
        axis = (math.sin(sign * tilt), 0.0, math.cos(tilt))
        bot.add_loop(f"plane{k}", ax.Planar(axis), parent=bot.ground, child=body)
    bot.add_wrench("push", body=body)
    return bot


SHAPES = {
    "floating": (ax.Floating(), 0, 1),
    "planar": (ax.Planar(), 1),
    "symmetric": (ax.Planar(), 1, -1),
}


@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_exact_numbers_are_exact(shape, tilt):
    """Two planes leave one line, whatever the angle between them; along it the body slides."""
    base, *tilts = SHAPES[shape]
    equations = twins(tilt, base, 0.0, *tilts).derive()
    mobility = equations.mobility
    assert (mobility.mobility, mobility.configuration_dof) == (1, 1)
    model = equations.compile("interpreter")
    push = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0])
    assert model.forward_dynamics(equations.system.home, [1.0], push) == pytest.approx([2.0])
    if tilt < 1e-4:
        assert {text.split(".")[1][:2] for text in mobility.weak} == {"rx", "z "}
        assert "nearly follow" in str(mobility)


@pytest.mark.parametrize("tilt", TILTS[2:])
@pytest.mark.parametrize("shape", SHAPES)
def test_twins_are_left_out_together_and_reported(shape, tilt):
    """Of rounded numbers neither row is left: both are named, with what they would hold."""
    base, *tilts = SHAPES[shape]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mobility = twins(tilt, base, 1e-4, *tilts).derive().mobility
    assert mobility.mobility == 3
    within = [text for text in mobility.dropped if "to within" in text]
    rows = {text.split()[0] for text in within}
    last = len(tilts) - 1
    assert {f"plane{last}.rx", f"plane{last}.z"} <= rows
    sizes = [float(text.split("to within ")[1].rstrip(")").split()[0]) for text in within]
    assert all(0.9 * tilt <= size <= 2 * tilt for size in sizes)
    assert len(caught) == 1


def test_exactness_that_keeps_rows_is_warned_of():
    with pytest.warns(PlausibilityWarning, match=r"plane0\.rx but for 1e-09.*loop_tolerance = 0"):
        twins(1e-9, ax.Planar(), 0.0, 1).derive()


@pytest.mark.filterwarnings("ignore::axode.errors.PlausibilityWarning")
@pytest.mark.parametrize("tilt", TILTS)
def test_two_axles_meet_where_their_tilt_says(tilt):
    """Skates at one point that are nearly parallel: the body can only turn about it."""
    bot = ax.Mechanism("skates", loop_tolerance=0.0)
    body = bot.add_body("body", mass=1.0, inertia=(1.0, 2.0, 2.5))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    bot.add_contact("left", ax.Skate(), body=body)
    bot.add_contact("right", ax.Skate(), body=body, axis=(math.sin(tilt), math.cos(tilt), 0.0))
    assert bot.derive().mobility.mobility == 1


def test_rounding_is_no_constraint():
    """Redundant rows of exact linkages stay redundant: only rounding is left of them."""
    bot = ax.gallery.build("four_bar")
    bot.loop_tolerance = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlausibilityWarning)
        mobility = bot.derive().mobility
    assert mobility.mobility == 1 and not mobility.weak


RATIOS = (1, 1, -1, 2, 3, -0.5, 0.1, -0.03, 0.01, -5e-3, -2e-4, 1e-5, -7.07e-6, 1e-6)
CHANGES = (1e-6, -5e-7, 1e-2, 0.03, 7e-8)


def drawn_couplings(rng):
    """Coefficients of couplings as decimals; some repeat or combine others, nearly or quite."""
    size = rng.choice((3, 4, 5, 6))
    rows = []
    for _ in range(rng.randint(1, size - 1)):
        row = [Fraction(0)] * size
        for k in rng.sample(range(size), rng.randint(2, min(4, size))):
            row[k] = Fraction(str(rng.choice(RATIOS)))
        rows.append(row)
    for _ in range(rng.randint(0, 2)):
        a, b = rng.choice(rows), rng.choice(rows)
        factors = Fraction(str(rng.choice((1, 2, -1, 0.5)))), Fraction(str(rng.choice((0, 1, 0.1))))
        row = [factors[0] * x + factors[1] * y for x, y in zip(a, b, strict=True)]
        row[rng.randrange(size)] += rng.choice((0, Fraction(str(rng.choice(CHANGES)))))
        rows.append(row)
    rng.shuffle(rows)
    return [row for row in rows if sum(map(bool, row)) >= 2] or [[Fraction(1)] * size]


def exact_rank(rows):
    """Rank by elimination in rational numbers."""
    rows, found = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows[found:] if row[column]), None)
        if pivot is not None:
            rows.remove(pivot)
            rows.insert(found, pivot)
            found += 1
            for row in rows[found:]:
                factor = row[column] / pivot[column]
                row[:] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return found


def coupled_wheels(rows, **options):
    """Wheels that turn about one line, and couplings among them."""
    bot = ax.Mechanism("wheels", **options)
    for k in range(len(rows[0])):
        wheel = bot.add_body(f"b{k}", mass=1.0, inertia=(1.0, 1.0, 1.0))
        bot.add_joint(f"x{k}", ax.Revolute("z"), parent=bot.ground, child=wheel)
    for i, row in enumerate(rows):
        bot.add_coupling(f"c{i}", {f"x{k}": float(value) for k, value in enumerate(row) if value})
    return bot


@pytest.mark.parametrize("seed", [2, 23, 28, 42, 44, 47, 50, 54, 170, 177, 393])
def test_couplings_have_the_rank_of_rational_numbers(seed):
    """Decimals are exact unless rounding of one could make a row follow; then a warning says so."""
    rows = drawn_couplings(random.Random(seed))
    free = len(rows[0]) - exact_rank(rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlausibilityWarning)
        exactly = coupled_wheels(rows, loop_tolerance=0.0).derive().mobility.mobility
        caught.clear()
        rounded = coupled_wheels(rows).derive().mobility.mobility
    assert exactly == free
    assert rounded == free or any("contradict" in str(w.message) for w in caught)


def test_a_small_ratio_of_several_joints_is_no_rounding():
    """A remainder in a joint that the other rows do not move is no rounding, however small."""
    for rows in (
        [[3, -0.03, 0, 0], [-0.2, 0, 2, -0.04], [3, -0.03, 0.01, 0]],
        [[8, 0, -5e-6], [8, 1e-6, -5e-6]],
        [[0.03, 3, 0, -5e-3], [0, 3, 0, -5e-3], [0, 3, 7e-8, -5e-3]],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PlausibilityWarning)
            mobility = coupled_wheels(rows).derive().mobility
        assert mobility.mobility == len(rows[0]) - len(rows)
