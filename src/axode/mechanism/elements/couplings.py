"""Couplings: relations between joints, such as gears, belts, differentials and cams.

All are one relation between coordinates (or speeds) of the tree's joints,

    c_1 q_1 + c_2 q_2 + ... = offset + f(q),

and what adds them only chooses its coefficients; f is zero for all but cams and their like. Every
coordinate is measured from the parent of its own joint: wheels that mesh are joined to the body
that carries their axes.
"""

from __future__ import annotations

from dataclasses import dataclass

from axode.mechanism.values.expressions import (
    Expression,
    Operation,
    Scalar,
    coordinates_in,
    format_scalar,
)


@dataclass(frozen=True)
class Coupling:
    """A relation between joints: the terms, coefficient times coordinate, add to `offset`.

    With a function of coordinates, to the offset and that function's value. A term names a joint, a
    coordinate, or a speed. One speed among them makes the relation one of speeds alone, which add
    to zero whatever the positions are. Sum and offset have the unit of the first term. The
    coupling's multiplier is a torque [N m] or force [N] on the first term's joint per unit
    coefficient: every joint feels its own coefficient times it, those of the function the negative
    of its slope times it.
    """

    name: str
    terms: tuple[tuple[str, Scalar], ...]
    offset: Scalar = 0.0
    function: Scalar = 0.0

    @property
    def joints(self) -> tuple[str, ...]:
        """What it names: joints, coordinates or speeds of the terms, then those of the function."""
        return tuple(dict.fromkeys([*(joint for joint, _ in self.terms), *self.arguments]))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Joints and coordinates that the function names."""
        return coordinates_in(self.function)

    def __str__(self) -> str:
        parts = [_term(joint, coefficient) for joint, coefficient in self.terms]
        left = "".join(f" {sign} {text}" for sign, text in parts).removeprefix(" + ")
        right = [x for x in (self.function, self.offset) if isinstance(x, Expression) or x != 0.0]
        shown = " + ".join(map(_shown, right)).replace(" + -", " - ") or "0"
        return f"{self.name}: {left.lstrip()} = {shown}"


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
