"""Elementary functions as straight-line IR: no calls, no branches, no tables.

The same recipes serve scalars, SIMD vectors and GPUs, so every target gives
the same digits. In single precision, trigonometry and arithmetic have their own
polynomials; exponentials and their relatives are computed in double precision and
rounded. NaN in gives NaN out, infinities behave as in C99 (a minimum,
maximum or hypotenuse does not hide a NaN, unlike C's). Measured errors:
docs/guide/accuracy.md. Polynomials: `axode.codegen.math.coefficients`.
WebAssembly lacks fused steps: a product and sum with one rounding, and sines without it, stand at
the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from axode.codegen.ir import DOUBLE, SINGLE, Writer
from axode.codegen.math import exponentials as ex
from axode.codegen.math import trigonometry as trig
from axode.codegen.math.trigonometry import half_pi_parts, quadrant_of, sin_cos_of_rest, two_sum
from axode.codegen.tape.operations import Kind

INF, NAN = math.inf, math.nan

# Powers of two between which squares are harmless, and by how much others are moved.
_HYPOT_EXPONENTS = {DOUBLE: (500, -450, 600), SINGLE: (60, -55, 90)}


def hypot(w: Writer, x: str, y: str) -> str:
    """sqrt(x^2 + y^2) without overflow or underflow on the way."""
    a, b = w.fabs(x), w.fabs(y)
    largest = w.select(w.compare("ogt", a, b), a, b)
    one = w.constant(1.0)
    large, small, shift = _HYPOT_EXPONENTS[w.format]
    huge, tiny = w.constant(2.0**large), w.constant(2.0**small)
    down = w.compare("ogt", largest, huge)
    up = w.compare("olt", largest, tiny)
    scale = w.select(down, w.constant(2.0**-shift), w.select(up, w.constant(2.0**shift), one))
    back = w.select(down, w.constant(2.0**shift), w.select(up, w.constant(2.0**-shift), one))
    a, b = w.mul(a, scale), w.mul(b, scale)
    return w.mul(w.sqrt(w.fma(a, a, w.mul(b, b))), back)


def fmod(w: Writer, x: str, y: str) -> str:
    """Remainder with the sign of x; exact for |x/y| < 2**53 (2**24), NaN beyond."""
    return _remainder(w, x, y, "trunc")


def remainder(w: Writer, x: str, y: str) -> str:
    """IEEE remainder, nearest multiple; exact for |x/y| < 2**53 (2**24), NaN beyond."""
    return _remainder(w, x, y, "rint")


def _remainder(w: Writer, x: str, y: str, rounding: str) -> str:
    size = w.fabs(y)
    quotient = w.div(w.fabs(x), size)
    known = w.compare("olt", quotient, w.constant(2.0**w.format.digits))
    n = w.intrinsic(rounding, quotient)
    left = w.fma(w.neg(n), size, w.fabs(x))
    # A rounded quotient may name the neighbouring multiple: move by one.
    if rounding == "trunc":
        low, high = w.constant(0.0), size
        left = w.select(w.compare("oge", left, high), w.sub(left, size), left)
    else:
        low = w.mul(size, w.constant(-0.5))
        high = w.mul(size, w.constant(0.5))
        left = w.select(w.compare("ogt", left, high), w.sub(left, size), left)
    left = w.select(w.compare("olt", left, low), w.add(left, size), left)
    left = w.select(known, left, w.constant(NAN))
    far = w.combine(
        "and", w.compare("oeq", size, w.constant(INF)), w.compare("olt", w.fabs(x), w.constant(INF))
    )
    left = w.select(far, w.fabs(x), left)
    sign = w.whole_operation("and", w.bits(x), w.whole(w.format.sign_bit))
    return w.from_bits(w.whole_operation("xor", w.bits(left), sign))


def sign(w: Writer, x: str) -> str:
    zero = w.constant(0.0)
    negative = w.select(w.compare("olt", x, zero), w.constant(-1.0), x)
    return w.select(w.compare("ogt", x, zero), w.constant(1.0), negative)


def _extreme(predicate: str) -> Callable[[Writer, str, str], str]:
    def extreme(w: Writer, x: str, y: str) -> str:
        chosen = w.select(w.compare(predicate, x, y), x, y)  # y if either is NaN
        return w.select(w.compare("uno", x, x), x, chosen)

    return extreme


def _intrinsic(name: str) -> Callable[..., str]:
    return lambda w, *arguments: w.intrinsic(name, *arguments)


def _in_double(recipe: Callable[..., str]) -> Callable[..., str]:
    """A recipe that works on doubles, whatever the writer's numbers are."""

    def in_double(w: Writer, *arguments: str) -> str:
        if w.format is DOUBLE:
            return recipe(w, *arguments)
        return w.narrow(recipe(w.double_writer(), *(w.widen(a) for a in arguments)))

    return in_double


def _model(operation: str) -> Callable[[Writer, str, str], str]:
    return lambda w, a, b: w.model(operation, a, b)


# Arithmetic of the model, by the names that `Writer.model` takes.
MODEL_OPERATIONS = {Kind.ADD: "fadd", Kind.SUB: "fsub", Kind.MUL: "fmul", Kind.DIV: "fdiv"}

# Sine and cosine are missing: lowering shares their reduction through `trigonometry.sin_cos`.
# Comparisons and logic are missing: lowering keeps them as bits.
RECIPES: dict[Kind, Callable[..., str]] = {
    **{kind: _model(name) for kind, name in MODEL_OPERATIONS.items()},
    Kind.NEG: lambda w, a: w.neg(a),
    Kind.SQRT: _intrinsic("sqrt"),
    Kind.TAN: trig.tan,
    Kind.ASIN: trig.asin,
    Kind.ACOS: trig.acos,
    Kind.ATAN: trig.atan,
    Kind.ATAN2: trig.atan2,
    Kind.EXP: _in_double(ex.exp),
    Kind.EXPM1: _in_double(ex.expm1),
    Kind.LOG: _in_double(ex.log),
    Kind.LOG1P: _in_double(ex.log1p),
    Kind.POW: _in_double(ex.power),
    Kind.SINH: _in_double(ex.sinh),
    Kind.COSH: _in_double(ex.cosh),
    Kind.TANH: _in_double(ex.tanh),
    Kind.ASINH: _in_double(ex.asinh),
    Kind.ACOSH: _in_double(ex.acosh),
    Kind.ATANH: _in_double(ex.atanh),
    Kind.ERF: _in_double(ex.erf),
    Kind.HYPOT: hypot,
    Kind.FLOOR: _intrinsic("floor"),
    Kind.CEIL: _intrinsic("ceil"),
    Kind.FMOD: fmod,
    Kind.REMAINDER: remainder,
    Kind.FABS: _intrinsic("fabs"),
    Kind.SIGN: sign,
    Kind.COPYSIGN: _intrinsic("copysign"),
    Kind.FMIN: _extreme("olt"),
    Kind.FMAX: _extreme("ogt"),
}

COMPARISONS = {Kind.LT: "olt", Kind.LE: "ole", Kind.EQ: "oeq", Kind.NE: "une"}


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
