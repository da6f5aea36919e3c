"""Argument reduction: nearest integers, exact multiples and sums, as IR."""

from __future__ import annotations

from axode.codegen.ir import Writer


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
