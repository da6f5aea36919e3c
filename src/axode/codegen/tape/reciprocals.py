"""Divisions by one number many times over, as products with its reciprocal."""

from __future__ import annotations

import numpy as np

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape

# From this many divisions by one value on, they become multiplications by its reciprocal.
SHARED_DIVISIONS = 3


def share_reciprocals(tape: Tape, least: int = SHARED_DIVISIONS) -> Tape:
    """Divide once by each number that divides several; a division takes as long as ten products.

    A one is the first instruction then, and every reciprocal follows its number.
    """
    divides = tape.kinds == Kind.DIV
    found, counts = np.unique(tape.operands[divides, 1], return_counts=True)
    shared = found[counts >= least]
    if not shared.size:
        return tape
    place = 1 + np.arange(len(tape.kinds))
    place += np.searchsorted(shared, np.arange(len(tape.kinds)))
    calculates = (tape.kinds != Kind.INPUT) & (tape.kinds != Kind.CONSTANT)
    refers = calculates[:, np.newaxis] & (tape.operands >= 0)
    moved = np.where(refers, place[tape.operands], tape.operands)
    turned = divides & np.isin(tape.operands[:, 1], shared)
    moved[turned, 1] += 1
    size = len(tape.kinds) + len(shared) + 1
    kinds = np.full(size, Kind.DIV, dtype=tape.kinds.dtype)
    operands = np.full((size, 3), -1, dtype=tape.operands.dtype)
    kinds[0], operands[0, 0] = Kind.CONSTANT, len(tape.constants)
    kinds[place] = np.where(turned, Kind.MUL, tape.kinds)
    operands[place] = moved
    operands[place[shared] + 1, 0], operands[place[shared] + 1, 1] = 0, place[shared]
    constants = np.append(tape.constants, 1.0)
    results = place[tape.results].astype(tape.results.dtype)
    return Tape(tape.name, tape.inputs, tape.outputs, kinds, operands, constants, results)
