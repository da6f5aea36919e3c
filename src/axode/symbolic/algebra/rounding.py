"""Numbers that are nothing but rounding, made exact, so that they vanish from the code.

A number counts as rounding only against the terms it is the sum of: in a robot of micrometres a
nanometre is a length, and what is small because a frame stands far away is not small at all.
"""

from __future__ import annotations

import numpy as np

from axode.symbolic.algebra.spatial import SX, Rotation, constant_values, is_constant

ROUNDING = 16 * np.finfo(float).eps  # of the terms of a sum: what a few operations leave
SNAPPED = 1e-14  # from 0, 1 or -1: an entry of a rotation matrix that is meant to be that


def snap_rotation(R: SX) -> SX:
    """Make entries of a rotation within rounding of 0, 1 and -1 exact."""
    if not is_constant(R):
        return R
    entries = constant_values(R)
    nearest = np.round(entries)
    return SX(np.where(np.abs(entries - nearest) < SNAPPED, nearest, entries))


def place(R: SX, x: SX, p: SX) -> SX:
    """Return R x + p without the rounding of its terms."""
    placed = R @ x + p
    if not (is_constant(R) and is_constant(x) and is_constant(p)):
        return placed
    pattern = constant_values(R) != 0  # a rotation's entries are off by rounding, not its zeros
    terms = pattern @ np.abs(constant_values(x)) + np.abs(constant_values(p))
    return _without_rounding(placed, terms)


def turn_tensor(R: SX, tensor: SX, *, ideal: bool) -> SX:
    """Return R I R^T without the rounding of its terms.

    A small moment is all that the joint of a thin rod feels, so moments stay, unless the body is
    an ideal one (a point, a line), whose moments may be zero.
    """
    turned = Rotation.from_matrix(R).outward_symmetric(tensor)
    if not (is_constant(R) and is_constant(tensor)):
        return turned
    pattern = constant_values(R) != 0
    terms = pattern @ np.abs(constant_values(tensor)) @ pattern.T
    if not ideal:
        np.fill_diagonal(terms, 0.0)
    return _without_rounding(turned, terms)


def add_up(parts: list[SX], total: SX) -> SX:
    """Return a total, or zero where its parts cancel but for rounding."""
    if not all(map(is_constant, parts)) or len(parts) < 2:
        return total
    return _without_rounding(
        total, np.sum([np.abs(constant_values(part)) for part in parts], axis=0)
    )


def _without_rounding(x: SX, terms: np.ndarray) -> SX:
    values = constant_values(x)
    return SX(np.where(np.abs(values) < ROUNDING * terms, 0.0, values))
