"""Sine, cosine, tangent, their inverses and the reduction of arguments, as straight-line IR."""

from __future__ import annotations

import math
from dataclasses import dataclass

from axode.codegen.ir import DOUBLE, SINGLE, Format, Writer
from axode.codegen.math import coefficients as poly


def nearest(w: Writer, x: str, scale: float) -> tuple[str, str]:
    """The integer nearest to a multiple of x: as a real, and as the low bits of an integer.

    The bits above are those of `Format.rounder_bits`.
    """
    rounder = w.constant(w.format.rounder)
    shifted = w.fma(x, w.constant(scale), rounder)
    return w.sub(shifted, rounder), w.bits(shifted)


def minus_multiple(w: Writer, x: str, n: str, parts: tuple[float, ...]) -> str:
    """x - n * sum(parts), largest part first, each step fused."""
    for part in parts:
        x = w.fma(n, w.constant(-part), x)
    return x


def two_sum(w: Writer, a: str, b: str) -> tuple[str, str]:
    """a + b and what rounding lost, exactly."""
    total = w.add(a, b)
    from_b = w.sub(total, a)
    return total, w.add(w.sub(a, w.sub(total, from_b)), w.sub(b, from_b))


@dataclass(frozen=True)
class _Numbers:
    """What the recipes need to know of a format.

    Attributes:
        half_pi: pi/2 in three numbers of the format. With fused steps x - n * (pi/2) keeps full
            relative accuracy up to the largest angle: the first step is exact, the second rounds
            once.
        largest: Angles beyond [rad] are NaN: neighbouring numbers are too far apart.
        huge, shrink: Arguments of atan2 beyond one are multiplied by the other.
        sin, cos, asin, atan: Polynomials.
    """

    half_pi: tuple[float, float, float]
    largest: float
    huge: float
    shrink: float
    sin: tuple[float, ...]
    cos: tuple[float, ...]
    asin: tuple[float, ...]
    atan: tuple[float, ...]


_NUMBERS: dict[Format, _Numbers] = {
    DOUBLE: _Numbers(
        (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        2.0**40,
        2.0**1000,
        2.0**-60,
        poly.SIN,
        poly.COS,
        poly.ASIN,
        poly.ATAN,
    ),
    SINGLE: _Numbers(
        (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        2.0**17,
        2.0**120,
        2.0**-20,
        poly.SIN_SINGLE,
        poly.COS_SINGLE,
        poly.ASIN_SINGLE,
        poly.ATAN_SINGLE,
    ),
}


def sin_cos(w: Writer, x: str) -> tuple[str, str]:
    """Sine and cosine from one reduction to |r| <= pi/4.

    Far out, from 2**40 rad or 2**17 in single precision, the answer is NaN.
    """
    numbers = _NUMBERS[w.format]
    known = w.compare("olt", w.fabs(x), w.constant(numbers.largest))
    x = w.select(known, x, w.constant(math.nan))
    n, quadrant = nearest(w, x, 2 / math.pi)  # the two low bits are used
    return quadrant_of(w, sin_cos_of_rest(w, minus_multiple(w, x, n, numbers.half_pi)), quadrant)


def half_pi_parts(number: Format) -> tuple[float, float, float]:
    """pi/2 in three numbers of a format."""
    return _NUMBERS[number].half_pi


def sin_cos_of_rest(w: Writer, r: str, *, fused: bool = True) -> tuple[str, str]:
    """Sine and cosine for |r| <= pi/4; without fused steps, the last digit may be another."""
    numbers = _NUMBERS[w.format]
    z = w.mul(r, r)
    join = w.fma if fused else lambda a, b, c: w.add(w.mul(a, b), c)
    sine = join(w.mul(z, w.polynomial(z, numbers.sin)), r, r)
    half = w.mul(z, w.constant(0.5))
    near = w.sub(w.constant(1.0), half)
    lost = w.sub(w.sub(w.constant(1.0), near), half)
    return sine, w.add(near, join(w.mul(z, z), w.polynomial(z, numbers.cos), lost))


def quadrant_of(w: Writer, pair: tuple[str, str], quadrant: str) -> tuple[str, str]:
    """Sine and cosine in the quadrant that the two low bits of a whole number name."""
    sine, cosine = pair
    odd = w.compare_whole("ne", w.whole_operation("and", quadrant, w.whole(1)), w.whole(0))
    next_quadrant = w.whole_operation("add", quadrant, w.whole(1))
    return (
        _apply_sign(w, w.select(odd, cosine, sine), quadrant),
        _apply_sign(w, w.select(odd, sine, cosine), next_quadrant),
    )


def _apply_sign(w: Writer, value: str, quadrant: str) -> str:
    """Negate the value in quadrants 2 and 3."""
    second = w.whole_operation("shl", quadrant, w.whole(w.format.bits - 2))
    sign = w.whole_operation("and", second, w.whole(w.format.sign_bit))
    return w.from_bits(w.whole_operation("xor", w.bits(value), sign))


def tan(w: Writer, x: str) -> str:
    return w.div(*sin_cos(w, x))


def _asin_parts(w: Writer, x: str) -> tuple[str, str, str]:
    """(outer, a, rest): asin of the reduced argument a is a + rest.

    For |x| <= 1/2 a is |x|; beyond, a = sqrt((1 - |x|)/2) and asin |x| = pi/2 - 2 asin a.
    """
    size = w.fabs(x)
    outer = w.compare("ogt", size, w.constant(0.5))
    half = w.fma(size, w.constant(-0.5), w.constant(0.5))
    z = w.select(outer, half, w.mul(size, size))
    a = w.select(outer, w.sqrt(half), size)
    return outer, a, w.mul(w.mul(a, z), w.polynomial(z, _NUMBERS[w.format].asin))


def asin(w: Writer, x: str) -> str:
    outer, a, rest = _asin_parts(w, x)
    half_pi = _NUMBERS[w.format].half_pi
    inner_value = w.add(a, rest)
    # pi/2 - 2 a - 2 rest, the two large terms first and their rounding kept.
    minus_two = w.constant(-2.0)
    first = w.fma(a, minus_two, w.constant(half_pi[0]))
    lost = w.fma(a, minus_two, w.sub(w.constant(half_pi[0]), first))
    small = w.fma(rest, minus_two, w.add(lost, w.constant(half_pi[1])))
    return w.copysign(w.select(outer, w.add(first, small), inner_value), x)


def acos(w: Writer, x: str) -> str:
    outer, a, rest = _asin_parts(w, x)
    half_pi = _NUMBERS[w.format].half_pi
    # outer: 2 (a + rest), or pi minus it; inner: pi/2 minus or plus (a + rest).
    scale = w.select(outer, w.constant(2.0), w.constant(-1.0))
    signed = w.select(w.compare("olt", x, w.constant(0.0)), w.neg(scale), scale)
    below = w.compare("olt", x, w.constant(0.0))
    base = w.select(below, w.constant(2 * half_pi[0]), w.constant(0.0))
    base_low = w.select(below, w.constant(2 * half_pi[1]), w.constant(0.0))
    base = w.select(outer, base, w.constant(half_pi[0]))
    base_low = w.select(outer, base_low, w.constant(half_pi[1]))
    first = w.fma(a, signed, base)
    lost = w.fma(a, signed, w.sub(base, first))
    return w.add(first, w.fma(rest, signed, w.add(lost, base_low)))


def _atan_ratio(w: Writer, y: str, x: str) -> str:
    """atan(y/x) for y, x >= 0, one division, |reduced| <= tan(pi/8)."""
    numbers = _NUMBERS[w.format]
    half_pi = numbers.half_pi
    steep = w.compare("ogt", y, w.mul(x, w.constant(1 + math.sqrt(2))))
    middle = w.compare("ogt", y, w.mul(x, w.constant(math.sqrt(2) - 1)))
    numerator = w.select(middle, w.sub(y, x), y)
    denominator = w.select(middle, w.add(y, x), x)
    numerator = w.select(steep, w.neg(x), numerator)
    denominator = w.select(steep, y, denominator)
    t = w.div(numerator, denominator)
    base = w.select(middle, w.constant(half_pi[0] / 2), w.constant(0.0))
    base_low = w.select(middle, w.constant(half_pi[1] / 2), w.constant(0.0))
    base = w.select(steep, w.constant(half_pi[0]), base)
    base_low = w.select(steep, w.constant(half_pi[1]), base_low)
    # Equal arguments may both be 0 or inf, where the quotient is not a number.
    equal = w.compare("oeq", y, x)
    t = w.select(equal, w.constant(0.0), t)
    diagonal = w.combine("and", equal, w.compare("ogt", y, w.constant(0.0)))
    base = w.select(diagonal, w.constant(half_pi[0] / 2), base)
    base_low = w.select(diagonal, w.constant(half_pi[1] / 2), base_low)
    z = w.mul(t, t)
    rest = w.fma(w.mul(t, z), w.polynomial(z, numbers.atan), base_low)
    first = w.add(base, t)
    lost = w.add(w.sub(base, first), t)
    return w.add(first, w.add(lost, rest))


def atan(w: Writer, x: str) -> str:
    return w.copysign(_atan_ratio(w, w.fabs(x), w.constant(1.0)), x)


def atan2(w: Writer, y: str, x: str) -> str:
    numbers = _NUMBERS[w.format]
    half_pi = numbers.half_pi
    size_y, size_x = w.fabs(y), w.fabs(x)
    # Shrinking both keeps the sum of two huge numbers finite; the angle stays.
    huge = w.constant(numbers.huge)
    large = w.combine("or", w.compare("ogt", size_y, huge), w.compare("ogt", size_x, huge))
    scale = w.select(large, w.constant(numbers.shrink), w.constant(1.0))
    angle = _atan_ratio(w, w.mul(size_y, scale), w.mul(size_x, scale))
    behind = w.compare_whole("slt", w.bits(x), w.whole(0))
    turned = w.sub(w.constant(2 * half_pi[0]), w.sub(angle, w.constant(2 * half_pi[1])))
    return w.copysign(w.select(behind, turned, angle), y)
