"""Exponentials, logarithms, powers and their relatives, as straight-line IR of doubles."""

from __future__ import annotations

import math

from axode.codegen.ir import DOUBLE, Writer
from axode.codegen.math import coefficients as poly
from axode.codegen.math.trigonometry import minus_multiple, nearest, two_sum

LN2 = (0.6931471805599453, 2.3190468138462996e-17)
INF, NAN = math.inf, math.nan


def _clamp(w: Writer, x: str, low: float, high: float) -> str:
    """x within limits; NaN stays."""
    x = w.select(w.compare("olt", x, w.constant(low)), w.constant(low), x)
    return w.select(w.compare("ogt", x, w.constant(high)), w.constant(high), x)


def _power_of_two(w: Writer, n: str) -> str:
    """2**n for -1023 < n < 1024."""
    biased = w.whole_operation("add", n, w.whole(1023))
    return w.from_bits(w.whole_operation("shl", biased, w.whole(52)))


def _exp_parts(w: Writer, x: str) -> tuple[str, str]:
    """(p, n) with exp(x) = 2**n (1 + p), |p| < 0.42."""
    n, bits = nearest(w, x, 1 / math.log(2))
    whole = w.whole_operation("sub", bits, w.whole(w.format.rounder_bits))
    r = minus_multiple(w, x, n, LN2)
    return w.fma(w.mul(r, r), w.polynomial(r, poly.EXP), r), whole


def _scale(w: Writer, value: str, n: str) -> str:
    """value * 2**n, gradual underflow and overflow included, |n| < 2000."""
    # Two factors, as 2**n alone may not be a number; the shift needs a positive integer.
    half = w.whole_operation("lshr", w.whole_operation("add", n, w.whole(4096)), w.whole(1))
    half = w.whole_operation("sub", half, w.whole(2048))
    rest = w.whole_operation("sub", n, half)
    return w.mul(w.mul(value, _power_of_two(w, half)), _power_of_two(w, rest))


def exp(w: Writer, x: str) -> str:
    p, n = _exp_parts(w, _clamp(w, x, -746.0, 710.0))
    return _scale(w, w.add(p, w.constant(1.0)), n)


def _quarter_expm1(w: Writer, x: str) -> str:
    """expm1(x)/4 for -40 <= x <= 710.6, where expm1 itself may overflow."""
    p, n = _exp_parts(w, x)
    quarter = _power_of_two(w, w.whole_operation("sub", n, w.whole(2)))
    return w.fma(quarter, p, w.sub(quarter, w.constant(0.25)))


def expm1(w: Writer, x: str) -> str:
    value = w.mul(_quarter_expm1(w, _clamp(w, x, -40.0, 710.0)), w.constant(4.0))
    return w.copysign(value, x)


def sinh(w: Writer, x: str) -> str:
    q = _quarter_expm1(w, _clamp(w, w.fabs(x), 0.0, 710.6))
    twice = w.mul(q, w.constant(2.0))
    return w.copysign(w.add(twice, w.div(q, w.add(twice, w.constant(0.5)))), x)


def cosh(w: Writer, x: str) -> str:
    p, n = _exp_parts(w, _clamp(w, w.fabs(x), 0.0, 710.6))
    quarter = _power_of_two(w, w.whole_operation("sub", n, w.whole(2)))
    grown = w.fma(quarter, p, quarter)
    return w.fma(grown, w.constant(2.0), w.div(w.constant(0.125), grown))


def tanh(w: Writer, x: str) -> str:
    doubled = w.mul(_clamp(w, w.fabs(x), 0.0, 22.0), w.constant(2.0))
    q = _quarter_expm1(w, doubled)
    return w.copysign(w.div(q, w.add(q, w.constant(0.5))), x)


def _mantissa(w: Writer, x: str) -> tuple[str, str]:
    """(k, m) with x = 2**k m and m between sqrt(1/2) and sqrt(2), for 0 < x < inf."""
    tiny = w.compare("olt", x, w.constant(2.0**-1022))
    x = w.select(tiny, w.mul(x, w.constant(2.0**54)), x)
    shift = w.select(tiny, w.constant(54.0), w.constant(0.0))
    # Counting the exponent from sqrt(1/2) rounds it to the nearest power of two.
    root = 0x3FE6A09E667F3BCC
    above = w.whole_operation("sub", w.bits(x), w.whole(root))
    field = w.whole_operation("and", above, w.whole(-(1 << 52)))
    mantissa = w.from_bits(w.whole_operation("sub", w.bits(x), field))
    # field >> 52 as a real: move it into the low bits of the rounding constant.
    biased = w.whole_operation("add", field, w.whole(2048 << 52))
    count = w.whole_operation("lshr", biased, w.whole(52))
    as_real = w.from_bits(w.whole_operation("add", count, w.whole(DOUBLE.rounder_bits)))
    exponent = w.sub(as_real, w.constant(DOUBLE.rounder + 2048.0))
    return w.sub(exponent, shift), mantissa


def _positive_only(w: Writer, x: str, value: str) -> str:
    """The logarithm's answers outside (0, inf): -inf at 0, NaN below, inf and NaN stay."""
    zero = w.constant(0.0)
    outside = w.select(w.compare("oeq", x, zero), w.constant(-INF), x)
    outside = w.select(w.compare("olt", x, zero), w.constant(NAN), outside)
    positive = w.compare("ogt", x, zero)
    finite = w.compare("olt", x, w.constant(INF))
    return w.select(w.combine("and", positive, finite), value, outside)


def log(w: Writer, x: str) -> str:
    k, m = _mantissa(w, x)
    f = w.sub(m, w.constant(1.0))
    s = w.div(f, w.add(m, w.constant(1.0)))
    z = w.mul(s, s)
    # 2 atanh(s) = f - s (f - z P(z)): the large term f is exact.
    rest = w.fma(w.neg(z), w.polynomial(z, poly.LOG), f)
    low = w.fma(k, w.constant(LN2[1]), w.neg(w.mul(s, rest)))
    # k ln 2 is rounded once; its error returns with the small terms.
    high = w.mul(k, w.constant(LN2[0]))
    high_lost = w.fma(k, w.constant(LN2[0]), w.neg(high))
    total, lost = two_sum(w, high, f)
    return _positive_only(w, x, w.add(total, w.add(w.add(lost, high_lost), low)))


def log1p(w: Writer, x: str) -> str:
    one = w.constant(1.0)
    total, lost = two_sum(w, one, x)
    inside = w.compare("ogt", total, w.constant(0.0))
    inside = w.combine("and", inside, w.compare("olt", total, w.constant(INF)))
    correction = w.select(inside, w.div(lost, total), w.constant(0.0))
    value = w.add(log(w, total), correction)
    # log(1 + -0.0) would lose the sign of zero.
    return w.select(w.compare("oeq", x, w.constant(0.0)), x, value)


def _double_log(w: Writer, x: str) -> tuple[str, str]:
    """log(x) as high + low to about 2**-65, for 0 < x < inf."""
    k, m = _mantissa(w, x)
    f, g = w.sub(m, w.constant(1.0)), w.add(m, w.constant(1.0))
    g_lost = w.sub(m, w.sub(g, w.constant(1.0)))
    s = w.div(f, g)
    # Remainder of the division, f - s (g + g_lost).
    left = w.fma(w.neg(s), g_lost, w.fma(w.neg(s), g, f))
    s_low = w.div(left, g)
    z = w.mul(s, s)
    z_low = w.fma(w.mul(s, w.constant(2.0)), s_low, w.fma(s, s, w.neg(z)))
    cube = w.mul(s, z)
    cube_low = w.fma(s, z_low, w.fma(s_low, z, w.fma(s, z, w.neg(cube))))
    third, third_low = 2 / 3, 3.700743415417188e-17  # 2/3 in two parts
    term = w.mul(cube, w.constant(third))
    term_low = w.fma(cube, w.constant(third), w.neg(term))
    term_low = w.fma(cube, w.constant(third_low), term_low)
    term_low = w.fma(cube_low, w.constant(third), term_low)
    tail = w.mul(w.mul(cube, z), w.polynomial(z, poly.LOG_TAIL))
    high, lost = two_sum(w, w.mul(s, w.constant(2.0)), term)
    low = w.add(w.fma(s_low, w.constant(2.0), lost), w.add(term_low, tail))
    scale = w.mul(k, w.constant(LN2[0]))
    scale_low = w.fma(k, w.constant(LN2[0]), w.neg(scale))
    scale_low = w.fma(k, w.constant(LN2[1]), scale_low)
    total, lost = two_sum(w, scale, high)
    # The low part is not below the last digit of the high one yet: renormalize.
    return two_sum(w, total, w.add(lost, w.add(scale_low, low)))


def power(w: Writer, x: str, y: str) -> str:
    """x**y with C99's special cases."""
    one, zero, inf = w.constant(1.0), w.constant(0.0), w.constant(INF)
    size = w.fabs(x)
    log_high, log_low = _double_log(w, size)
    high = w.mul(y, log_high)
    low = w.fma(y, log_low, w.fma(y, log_high, w.neg(high)))
    moderate = w.compare("olt", w.fabs(high), w.constant(1000.0))
    low = w.select(moderate, low, zero)
    high = _clamp(w, high, -760.0, 760.0)
    p, n = _exp_parts(w, high)
    grown = w.add(p, one)
    value = _scale(w, w.fma(grown, low, grown), n)
    grows = w.combine("xor", w.compare("olt", size, one), w.compare("ogt", y, zero))
    limit = w.select(grows, inf, zero)
    edge = w.combine("or", w.compare("oeq", size, zero), w.compare("oeq", size, inf))
    edge = w.combine("or", edge, w.compare("oeq", w.fabs(y), inf))
    edge = w.combine("and", edge, w.compare("ord", x, y))
    value = w.select(edge, limit, value)
    value = w.select(w.compare("oeq", size, one), w.select(w.compare("ord", y, y), one, y), value)
    value = _with_sign_of_power(w, x, y, value)
    # Splitting the bits of x would hide a NaN.
    value = w.select(w.compare("uno", x, y), w.add(x, y), value)
    trivial = w.combine("or", w.compare("oeq", y, zero), w.compare("oeq", x, one))
    return w.select(trivial, one, value)


def _with_sign_of_power(w: Writer, x: str, y: str, value: str) -> str:
    """Sign for negative x: odd powers are negative, fractional ones are not numbers."""
    half = w.mul(y, w.constant(0.5))
    whole = w.compare("oeq", w.intrinsic("trunc", y), y)
    even = w.compare("oeq", w.intrinsic("trunc", half), half)
    odd = w.combine("and", whole, w.negate(even))
    value = w.select(odd, w.copysign(value, x), value)
    below = w.compare("olt", x, w.constant(0.0))
    below = w.combine("and", below, w.compare("one", x, w.constant(-INF)))
    fractional = w.combine("and", below, w.compare("une", w.intrinsic("trunc", y), y))
    return w.select(fractional, w.constant(NAN), value)


def _big_log1p(w: Writer, x: str, small: str) -> str:
    """log1p(small), or log(2 x) where x is so large that small would overflow."""
    big = w.compare("ogt", x, w.constant(2.0**60))
    value = log1p(w, w.select(big, x, small))
    return w.add(value, w.select(big, w.constant(LN2[0]), w.constant(0.0)))


def asinh(w: Writer, x: str) -> str:
    a = w.fabs(x)
    square = w.mul(a, a)
    root = w.sqrt(w.add(square, w.constant(1.0)))
    small = w.add(a, w.div(square, w.add(root, w.constant(1.0))))
    return w.copysign(_big_log1p(w, a, small), x)


def acosh(w: Writer, x: str) -> str:
    t = w.sub(x, w.constant(1.0))
    small = w.add(t, w.sqrt(w.fma(t, t, w.mul(t, w.constant(2.0)))))
    value = _big_log1p(w, x, small)
    return w.select(w.compare("olt", x, w.constant(1.0)), w.constant(NAN), value)


def atanh(w: Writer, x: str) -> str:
    a = w.fabs(x)
    ratio = w.div(w.mul(a, w.constant(2.0)), w.sub(w.constant(1.0), a))
    return w.copysign(w.mul(log1p(w, ratio), w.constant(0.5)), x)


def erf(w: Writer, x: str) -> str:
    a = w.fabs(x)
    z = w.mul(x, x)
    two_over, two_over_low = 1.1283791670955126, 1.533545961316588e-17  # 2/sqrt(pi)
    rest = w.fma(w.mul(x, z), w.polynomial(z, poly.ERF), w.mul(x, w.constant(two_over_low)))
    inner = w.fma(x, w.constant(two_over), rest)
    b = w.select(w.compare("ogt", a, w.constant(6.0)), w.constant(6.0), a)
    u = w.sub(w.div(w.constant(1.0), w.add(b, w.constant(3.0))), w.constant(0.18))
    p, n = _exp_parts(w, w.neg(w.mul(b, b)))
    decay = _scale(w, w.add(p, w.constant(1.0)), n)
    outer = w.fma(w.neg(decay), w.polynomial(u, poly.ERFC), w.constant(1.0))
    small = w.compare("olt", a, w.constant(1.0))
    return w.copysign(w.select(small, inner, outer), x)
