"""Which roots of a system are the same, for many systems at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.kinematics.polynomials.polynomial_family import ComplexArray

SAME = 1e-7  # distance of equal roots, relative to their size
NEIGHBOURS = 3  # roots next to each other in order that are compared


def first_of_each(
    roots: ComplexArray, usable: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Mark usable roots of each system that no earlier usable one equals.

    Roots are put in order by a random combination of their unknowns, and compared with their
    neighbours there.

    Args:
        roots: Roots of all systems, (systems, roots, unknowns).
        usable: Which of them count; all unless given.
    """
    systems, count, n = roots.shape
    usable = np.ones((systems, count), dtype=bool) if usable is None else usable
    weights = np.random.default_rng(0).normal(size=n) + 1j * np.random.default_rng(1).normal(size=n)
    with np.errstate(all="ignore"):
        keys = np.where(usable, (roots @ weights).real, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    rows = np.arange(systems)[:, np.newaxis]
    ordered, alive = roots[rows, order], usable[rows, order]
    first = alive.copy()
    for k in range(1, min(NEIGHBOURS, count - 1) + 1):
        with np.errstate(all="ignore"):
            apart = np.abs(ordered[:, k:] - ordered[:, :-k]).max(axis=2)
            size = 1.0 + np.abs(ordered[:, k:]).max(axis=2)
        same = (apart <= SAME * size) & alive[:, k:] & alive[:, :-k]
        first[:, k:] &= ~same
    made = np.zeros_like(first)
    made[rows, order] = first
    return made
