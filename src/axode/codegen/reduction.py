"""Argument reduction: nearest integers and exact multiples, as IR."""

from __future__ import annotations

from axode.codegen.ir import Writer


def nearest(w: Writer, x: str) -> tuple[str, str]:
    """The nearest integer of x, as a real and as an integer; two digits are left unused."""
    rounder = w.constant(w.format.rounder)
    shifted = w.add(x, rounder)
    whole = w.whole_operation("sub", w.bits(shifted), w.whole(w.format.rounder_bits))
    return w.sub(shifted, rounder), whole


def minus_multiple(w: Writer, x: str, n: str, parts: tuple[float, ...]) -> str:
    """x - n * sum(parts), largest part first, each step fused."""
    for part in parts:
        x = w.fma(n, w.constant(-part), x)
    return x
