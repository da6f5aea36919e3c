"""Laws of contacts that stick, slip, lift and land, of stops and of joints that rub: plain data.

What has such a law is not eliminated from the equations of motion: the mechanism moves as if it
were not there, and the contact acts by impulses on *rows*, the speeds with which it opens, slides,
turns or rubs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, PlausibilityWarning, first_of, level_outside, shortened
from axode.mechanism.values.expressions import Scalar, as_scalar, numeric, shown

Array: TypeAlias = npt.NDArray[np.float64]
Friction: TypeAlias = "tuple[Scalar, Scalar] | None"
Stops: TypeAlias = "tuple[Scalar, Scalar] | None"


def as_friction(value: Any) -> Friction:
    """Static and kinetic friction, from one number or two; None for a contact that never slips."""
    if value is None:
        return None
    if not isinstance(value, tuple | list):
        one = as_scalar(value)
        return one, one
    if len(value) != 2:
        raise InvalidArgument(f"expected a number or (static, kinetic), got {len(value)} numbers")
    return as_scalar(value[0]), as_scalar(value[1])


def as_stops(value: Any) -> Stops:
    """Lowest and highest coordinate; None among them, or an infinite one, is no stop."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidArgument(f"expected (low, high), got {shortened(value)}")
    low, high = value
    return (
        as_scalar(-math.inf if low is None else low),
        as_scalar(math.inf if high is None else high),
    )


def friction_faults(friction: Friction, unit: str = "") -> Iterator[tuple[str, str]]:
    """Field and message of everything wrong with a friction."""
    if friction is None:
        return
    static, kinetic = friction
    for scalar in dict.fromkeys(friction):
        if not 0 <= numeric(scalar) < math.inf:
            yield "friction", f"must be >= 0{unit} and finite, got {shown(scalar)}"
            return
    if numeric(static) < numeric(kinetic):
        message = f"static friction, {shown(static)}, must not be below the kinetic one, "
        yield "friction", message + f"{shown(kinetic)}; give friction=(static, kinetic)"


def restitution_fault(restitution: Scalar) -> Iterator[tuple[str, str]]:
    """Field and message for a restitution that is none."""
    if not 0 <= numeric(restitution) <= 1:
        message = "must be from 0 (plastic) to 1 (elastic), got "
        yield "restitution", message + shown(restitution)


@dataclass(frozen=True)
class RubbingGroup:
    """Rows whose impulses lie in an interval or a disk.

    Attributes:
        rows: One row or two, across each other.
        normal: The row whose impulse times the coefficient is the radius; -1 if the coefficient
            itself is it, as of joints that rub.
        contact: Place of the contact among the names.
    """

    rows: tuple[int, ...]
    normal: int
    contact: int


class RowValues(NamedTuple):
    """Contact rows in numbers, at a state; batch axes first.

    Rows move by v = J nu + drift, and dv/dt = J d(nu)/dt + rate.
    """

    gap: Array  # [m or rad], of the normal rows
    J: Array  # rows x independent speeds
    drift: Array
    rate: Array
    limits: Array  # static coefficients: of friction, length [m], force [N] or torque [N m]
    kinetic: Array
    restitution: Array  # of the normal rows


@dataclass(frozen=True)
class ContactTable:
    """What the contact rows of a model are.

    Attributes:
        rows: Names, such as `left.touch`, `left.longitudinal`, `elbow.friction`, `elbow.low`.
        normals: Rows that open and close, whose impulse is never negative.
        rubbing: Rows that rub, in groups.
        names: Contacts, joints that rub and stops, as reports call them.
        normal_contacts: Place among the names of the contact of each normal row.
    """

    rows: tuple[str, ...] = ()
    normals: tuple[int, ...] = ()
    rubbing: tuple[RubbingGroup, ...] = ()
    names: tuple[str, ...] = ()
    normal_contacts: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)

    def sizes(self, dof: int) -> tuple[int, ...]:
        """Lengths of the parts of what the function `contact_rows` gives, in their order."""
        m, n = len(self.rows), len(self.normals)
        return n, m * dof, m, m, m, m, n

    def split(self, values: Array, dof: int) -> RowValues:
        """Take apart what the function `contact_rows` gives."""
        ends = np.cumsum(self.sizes(dof))
        parts: Sequence[Array] = np.split(values, ends[:-1], axis=-1)
        gap, J, *others = parts
        return RowValues(gap, J.reshape(*J.shape[:-1], len(self.rows), dof), *others)


# functions of a model that give motions or forces, and leave those of its contacts out
WITHOUT_CONTACTS = frozenset(
    {
        "forward_dynamics",
        "inverse_dynamics",
        "inverse_residual",
        "hybrid_dynamics",
        "state_rate",
        "multipliers",
        "contact_forces",
    }
)


def warn_without_contacts(name: str, contacts: Sequence[str], functions: Iterable[str]) -> None:
    """Warn that functions leave the forces of contacts with friction and stops out.

    Args:
        name: The mechanism's.
        contacts: Names of such contacts; without any nothing is missing.
        functions: What is asked for.

    Warns:
        PlausibilityWarning: naming functions and contacts, with what has their forces.
    """
    without = [function for function in functions if function in WITHOUT_CONTACTS]
    if contacts and without:
        warnings.warn(
            f"{first_of(without)} of '{name}': forces of {first_of(list(contacts), 4)} are left "
            "out, as if nothing were touched; simulate has them, and contact_rows is the function "
            "of gaps and rows.\n  With wheels that never slip: mechanism.ideal().derive()",
            PlausibilityWarning,
            stacklevel=level_outside(),
        )
