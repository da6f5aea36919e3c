"""What WebAssembly lacks: a fused multiplication and addition, and sines that do not need one."""

from __future__ import annotations

import math
from fractions import Fraction

from axode.codegen.ir import DOUBLE, Writer
from axode.codegen.math.reduction import two_sum
from axode.codegen.math.trigonometry import half_pi_parts, quadrant_of, sin_cos_of_rest

NEAR = 2.0**20  # [rad]: whole numbers of quarter turns below it have at most 20 bits
PART = 33  # bits of the parts of pi/2: products with such numbers are exact
SPLIT = 2.0**27 + 1.0  # cuts a number into two halves of its digits


def fma(w: Writer, a: str, b: str, c: str) -> str:
    """a b + c with one rounding, while no product of halves overflows or underflows.

    The exact product and sum are three numbers; the lower two are added to an odd last digit, so
    that the last addition rounds as the exact sum would (Boldo and Melquiond, 2008).
    """
    product, low = _two_product(w, a, b)
    high, tail = two_sum(w, c, low)
    total, rest = two_sum(w, product, high)
    odd = _add_to_odd(w, tail, rest)
    value = w.add(total, odd)
    finite = w.compare("oeq", w.sub(value, value), w.constant(0.0))
    return w.select(finite, value, w.add(product, c))


def _two_product(w: Writer, a: str, b: str) -> tuple[str, str]:
    """a b and what rounding lost, exactly."""
    (a_high, a_low), (b_high, b_low) = _halves(w, a), _halves(w, b)
    product = w.mul(a, b)
    lost = w.sub(w.mul(a_high, b_high), product)
    lost = w.add(w.add(lost, w.mul(a_high, b_low)), w.mul(a_low, b_high))
    return product, w.add(lost, w.mul(a_low, b_low))


def _halves(w: Writer, a: str) -> tuple[str, str]:
    scaled = w.mul(a, w.constant(SPLIT))
    high = w.sub(scaled, w.sub(scaled, a))
    return high, w.sub(a, high)


def _add_to_odd(w: Writer, a: str, b: str) -> str:
    """a + b; where it is not exact, the neighbour whose last digit is odd."""
    total, lost = two_sum(w, a, b)
    zero, one = w.constant(0.0), w.whole(1)
    even = w.compare_whole("eq", w.whole_operation("and", w.bits(total), one), w.whole(0))
    inexact = w.combine("and", even, w.compare("une", lost, zero))
    away = w.compare("ogt", w.mul(w.copysign(w.constant(1.0), lost), total), zero)
    up = w.from_bits(w.whole_operation("add", w.bits(total), one))
    down = w.from_bits(w.whole_operation("sub", w.bits(total), one))
    return w.select(inexact, w.select(away, up, down), total)


def _parts() -> tuple[float, ...]:
    """pi/2 in parts of few bits, and the rest."""
    rest = sum(map(Fraction, half_pi_parts(DOUBLE)), Fraction(0))
    parts = []
    for _ in range(3):
        exponent = math.frexp(float(rest))[1]
        unit = Fraction(2) ** (exponent - PART)
        parts.append(float(unit * (rest // unit)))
        rest -= Fraction(parts[-1])
    return *parts, float(rest)


def near_sin_cos(w: Writer, x: str) -> tuple[str, str]:
    """Sine and cosine of an angle below `NEAR`."""
    rounder = w.constant(w.format.rounder)
    shifted = w.add(w.mul(x, w.constant(2 / math.pi)), rounder)
    n = w.sub(shifted, rounder)
    first, second, third, last = (w.mul(n, w.constant(-part)) for part in _parts())
    r, lost = two_sum(w, w.add(x, first), second)
    r, lost_too = two_sum(w, r, third)
    r = w.add(r, w.add(w.add(lost, lost_too), last))
    return quadrant_of(w, sin_cos_of_rest(w, r, fused=False), w.bits(shifted))
