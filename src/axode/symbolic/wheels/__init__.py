"""Wheels in symbols: one file per kind of contact, found by the class of the description."""

from __future__ import annotations

from axode.errors import NotApplicable
from axode.mechanism.elements import wheels as descriptions
from axode.mechanism.elements.wheels import AbstractWheel
from axode.symbolic.algebra.spatial import Values
from axode.symbolic.wheels.ball import SymbolicBall
from axode.symbolic.wheels.base import SymbolicWheel
from axode.symbolic.wheels.disk import SymbolicDisk
from axode.symbolic.wheels.mecanum import SymbolicMecanum

SYMBOLIC_WHEELS: dict[type[AbstractWheel], type[SymbolicWheel]] = {
    descriptions.Rolling: SymbolicDisk,
    descriptions.Omni: SymbolicDisk,
    descriptions.Skate: SymbolicDisk,
    descriptions.Mecanum: SymbolicMecanum,
    descriptions.Ball: SymbolicBall,
    descriptions.Point: SymbolicBall,
}


def symbolic_wheel(wheel: AbstractWheel, values: Values) -> SymbolicWheel:
    """Return a wheel in symbols, with `values` for its parameters."""
    for kind in type(wheel).__mro__:
        if kind in SYMBOLIC_WHEELS:
            return SYMBOLIC_WHEELS[kind](wheel, values)
    raise NotApplicable(
        f"wheels of class {type(wheel).__name__} have no symbolic counterpart: register one in "
        "axode.symbolic.wheels.SYMBOLIC_WHEELS"
    )
