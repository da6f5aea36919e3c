"""Argument reduction: nearest integers and exact multiples, as IR."""

from __future__ import annotations

from axode.codegen.ir import Writer

# Adding this leaves the nearest integer in the low bits of the sum (|n| < 2**51).
ROUNDER = 1.5 * 2.0**52
ROUNDER_BITS = 0x4338000000000000
SIGN_BIT = -(2**63)


def nearest(w: Writer, x: str) -> tuple[str, str]:
    """The nearest integer of x, as a real and as an integer."""
    shifted = w.add(x, w.constant(ROUNDER))
    whole = w.whole_operation("sub", w.bits(shifted), w.whole(ROUNDER_BITS))
    return w.sub(shifted, w.constant(ROUNDER)), whole


def minus_multiple(w: Writer, x: str, n: str, parts: tuple[float, ...]) -> str:
    """x - n * sum(parts), largest part first, each step fused."""
    for part in parts:
        x = w.fma(n, w.constant(-part), x)
    return x
