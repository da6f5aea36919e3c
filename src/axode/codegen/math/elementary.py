"""Elementary functions as straight-line IR: no calls, no branches, no tables.

The same recipes serve scalars, SIMD vectors and GPUs, so every target gives
the same digits. In single precision, trigonometry and arithmetic have their own
polynomials; exponentials and their relatives are computed in double precision and
rounded. NaN in gives NaN out, infinities behave as in C99 (a minimum,
maximum or hypotenuse does not hide a NaN, unlike C's). Measured errors:
docs/guide/accuracy.md. Polynomials: `axode.codegen.math.coefficients`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from axode.codegen.ir import DOUBLE, SINGLE, Writer
from axode.codegen.math import exponentials as ex
from axode.codegen.math import trigonometry as trig
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
