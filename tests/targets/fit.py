"""Derives the polynomials of ``axode.codegen.math.coefficients`` and prints that file.

Each elementary function is a few exact terms plus a polynomial; the
polynomial interpolates the smooth remainder at Chebyshev nodes in 60-digit
arithmetic, which is within a small factor of the best approximation.

    python -m tests.targets.fit > src/axode/codegen/math/coefficients.py
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 60

# Remainders divide by powers of z that vanish at 0, where their limit is used instead.
NEAR_ZERO = mp.mpf(10) ** -18
TAIL_SHIFT, TAIL_CENTRE = 3, mp.mpf("0.18")
WIDEN = mp.mpf("1.0001")  # rounding in the reduction may leave the interval by a hair

HEADER = '''"""Polynomial remainders of the elementary functions, lowest power first.

Written by ``python -m tests.targets.fit``; a test derives them again.
"""

'''


def _even(value: Callable, exact: Callable, power: int, limit) -> Callable:
    """(value(x)/x - exact(z)) / z**power with z = x**2, and its limit at 0."""

    def remainder(z):
        if abs(z) < NEAR_ZERO:
            return mp.mpf(limit)
        x = mp.sqrt(z)
        return (value(x) - exact(x)) / x / z**power

    return remainder


def _scaled_erfc(u):
    x = 1 / (u + TAIL_CENTRE) - TAIL_SHIFT
    return mp.exp(x**2) * mp.erfc(x)


def recipes() -> dict[str, tuple[Callable, object, object, int, str]]:
    """Name to (remainder, low, high, terms, meaning)."""
    quarter = (mp.pi / 4) ** 2 * WIDEN
    half_ln2 = mp.log(2) / 2 * WIDEN
    atanh_end = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * WIDEN
    atan_end = (mp.sqrt(2) - 1) ** 2 * WIDEN
    two_over = 2 / mp.sqrt(mp.pi)

    def exp_rest(r):
        return mp.mpf(1) / 2 if abs(r) < NEAR_ZERO else (mp.expm1(r) - r) / r**2

    def cos_rest(z):
        return mp.mpf(1) / 24 if z < NEAR_ZERO else (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2

    def log_rest(x):
        return 2 * mp.atanh(x)

    tail = [1 / (TAIL_SHIFT + mp.mpf(x)) - TAIL_CENTRE for x in ("6.1", "0.999")]
    return {
        "SIN": (
            _even(mp.sin, lambda x: x, 1, -mp.mpf(1) / 6),
            0,
            quarter,
            6,
            "sin x = x + x z P(z), z = x^2, |x| <= pi/4",
        ),
        "COS": (cos_rest, 0, quarter, 6, "cos x = 1 - z/2 + z^2 P(z)"),
        "EXP": (exp_rest, -half_ln2, half_ln2, 11, "exp r = 1 + r + r^2 P(r), |r| <= ln(2)/2"),
        "LOG": (
            _even(log_rest, lambda x: 2 * x, 1, mp.mpf(2) / 3),
            0,
            atanh_end,
            7,
            "2 atanh s = 2 s + s z P(z), z = s^2, |s| <= (sqrt 2 - 1)/(sqrt 2 + 1)",
        ),
        "LOG_TAIL": (
            _even(log_rest, lambda x: 2 * x + 2 * x**3 / 3, 2, mp.mpf(2) / 5),
            0,
            atanh_end,
            8,
            "2 atanh s = 2 s + 2/3 s^3 + s^5 P(z)",
        ),
        "ASIN": (
            _even(mp.asin, lambda x: x, 1, mp.mpf(1) / 6),
            0,
            mp.mpf("0.25"),
            13,
            "asin x = x + x z P(z), |x| <= 1/2",
        ),
        "ATAN": (
            _even(mp.atan, lambda x: x, 1, -mp.mpf(1) / 3),
            0,
            atan_end,
            11,
            "atan x = x + x z P(z), |x| <= sqrt 2 - 1",
        ),
        "ERF": (
            _even(mp.erf, lambda x: two_over * x, 1, -two_over / 3),
            0,
            mp.mpf(1),
            12,
            "erf x = 2/sqrt(pi) x + x z P(z), |x| <= 1",
        ),
        "ERFC": (
            _scaled_erfc,
            tail[0],
            tail[1],
            16,
            "erfc x = exp(-x^2) P(1/(x + 3) - 0.18), 1 <= x <= 6",
        ),
    }


# Fewer terms for single precision.
SINGLE_TERMS = {"SIN": 4, "COS": 3, "ASIN": 6, "ATAN": 5}


def fitted(g: Callable, low, high, terms: int) -> list[float]:
    """Polynomial that equals g at the Chebyshev nodes of an interval."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    nodes = [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * terms)) for k in range(terms)]
    difference = [g(x) for x in nodes]
    for j in range(1, terms):
        for i in range(terms - 1, j - 1, -1):
            difference[i] = (difference[i] - difference[i - 1]) / (nodes[i] - nodes[i - j])
    polynomial = [difference[-1]]
    for i in range(terms - 2, -1, -1):
        shifted = [mp.mpf(0), *polynomial]
        polynomial = [a - nodes[i] * b for a, b in zip(shifted, [*polynomial, 0], strict=True)]
        polynomial[0] += difference[i]
    return [float(c) for c in polynomial]


def source() -> str:
    """Text of the coefficients file."""
    blocks = []
    made = recipes()
    for name, terms in SINGLE_TERMS.items():
        g, low, high, _, meaning = made[name]
        made[f"{name}_SINGLE"] = (g, low, high, terms, f"{meaning}, single precision")
    for name, (g, low, high, terms, meaning) in made.items():
        numbers = [repr(c) for c in fitted(g, low, high, terms)]
        line = f"{name} = ({', '.join(numbers)})\n"
        if len(line) > 100:  # laid out as the formatter does
            line = f"{name} = (\n" + "".join(f"    {c},\n" for c in numbers) + ")\n"
        blocks.append(f"# {meaning}\n{line}")
    return HEADER + "\n".join(blocks)


if __name__ == "__main__":
    print(source(), end="")
