"""Exact derivatives of tapes by complex steps: f(x + i h d) / h, without any differentiation.

The imaginary part of a value is h times its derivative, up to h^2: with h = 1e-40 nothing cancels
and nothing is left out. What decides (comparisons, signs, sizes) looks at real parts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from axode.codegen.tape.operations import MEANING, Kind
from axode.codegen.tape.tape import Tape

STEP = 1e-40

DECIDING = (Kind.LT, Kind.LE, Kind.EQ, Kind.NE, Kind.NOT, Kind.AND, Kind.OR, Kind.SIGN)


def _select(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.real(condition) != 0, x, y)


COMPLEX = {
    Kind.FABS: lambda x: np.where(np.real(x) < 0, -x, x),
    Kind.COPYSIGN: lambda x, y: np.where(
        np.signbit(np.real(x)) == np.signbit(np.real(y)), x, -np.asarray(x)
    ),
    Kind.FMIN: lambda x, y: np.where(np.real(x) <= np.real(y), x, y),
    Kind.FMAX: lambda x, y: np.where(np.real(x) >= np.real(y), x, y),
    Kind.HYPOT: lambda x, y: np.sqrt(x * x + y * y),
    Kind.SELECT: _select,
}


def _apply(kind: Kind, *operands: np.ndarray) -> np.ndarray:
    if kind in COMPLEX:
        return COMPLEX[kind](*operands)
    if kind in DECIDING:
        return MEANING[kind](*map(np.real, operands))
    return MEANING[kind](*operands)


def derivatives_along(
    tape: Tape, values: Mapping[str, np.ndarray], directions: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Derivatives of a tape's results: (results, directions).

    Args:
        tape: What is differentiated.
        values: One vector per argument.
        directions: Changes of arguments, one column per direction; the others stay.
    """
    names = [port.name for port in tape.inputs]
    columns = {
        name: np.asarray(values[name])[:, np.newaxis] + 1j * STEP * np.asarray(directions[name])
        for name in directions
        if name in names
    }
    count = max(direction.shape[1] for direction in directions.values())

    def take(argument: int, element: int) -> np.ndarray:
        name = names[argument]
        return columns[name][element] if name in columns else values[name][element] + 0j

    with np.errstate(all="ignore"):
        found = tape.fold(take, lambda x: np.asarray(x + 0j), _apply)
    return np.array([np.broadcast_to(np.imag(x) / STEP, (count,)) for x in found])
