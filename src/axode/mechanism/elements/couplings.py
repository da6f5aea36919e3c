"""Couplings: linear relations between joints, such as gears, belts and differentials.

All are one relation between coordinates (or speeds) of the tree's joints,

    c_1 q_1 + c_2 q_2 + ... = offset,

and what adds them only chooses its coefficients. Every coordinate is measured from the parent of
its own joint: wheels that mesh are joined to the body that carries their axes.
"""

from __future__ import annotations

from dataclasses import dataclass

from axode.mechanism.values.expressions import Expression, Operation, Scalar, format_scalar


@dataclass(frozen=True)
class Coupling:
    """A linear relation between joints: the terms, coefficient times coordinate, add to `offset`.

    A term names a joint, a coordinate, or a speed. One speed among them makes the relation one of
    speeds alone, which add to zero whatever the positions are. Sum and offset have the unit of the
    first term. The coupling's multiplier is a torque [N m] or force [N] on the first term's
    joint per unit coefficient: every joint feels its own coefficient times it.
    """

    name: str
    terms: tuple[tuple[str, Scalar], ...]
    offset: Scalar = 0.0

    def __str__(self) -> str:
        parts = [_term(joint, coefficient) for joint, coefficient in self.terms]
        left = "".join(f" {sign} {text}" for sign, text in parts).removeprefix(" + ")
        return f"{self.name}: {left.lstrip()} = {_shown(self.offset)}"


def _term(joint: str, coefficient: Scalar) -> tuple[str, str]:
    """Sign and text of a coefficient times a coordinate."""
    if isinstance(coefficient, Operation) and coefficient.kind == "neg":
        return "-", f"({format_scalar(coefficient.operands[0])}) {joint}"
    if isinstance(coefficient, Expression):
        return "+", f"({format_scalar(coefficient)}) {joint}"
    size = "" if abs(coefficient) == 1.0 else f"{abs(coefficient):.12g} "
    return "-" if coefficient < 0.0 else "+", f"{size}{joint}"


def _shown(scalar: Scalar) -> str:
    return format_scalar(scalar) if isinstance(scalar, Expression) else f"{scalar:.12g}"
