"""Differences of starts, where no equations determine how `assemble` moves them.

Its results are differentiated as they are, by central differences of order six, with steps so short
that their errors are those of rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.numerics.tolerances import SUM_ROUNDING
from axode.problems.assemble.assemble import assemble_runs
from axode.problems.simulate.starts import Starts

Array = npt.NDArray[np.float64]
FEW = 256  # states that are assembled at once
STEP = 2e-3  # the longest, of a number or of one
SHORTER, LEVELS = 1 / 8, 8  # steps that are tried: down to 1e-9
EXACT, AGREE = 1e-11, 1e-5  # relative: no shorter step is tried; this is no derivative
SMALL = 0.1  # derivatives of this relative size, and smaller ones, are exact to rounding only
SHIFTS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # in steps, with weights of differences
SIXTH = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60
FOURTH = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12
MIDDLE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0]) / 20  # weights that interpolate the start


@dataclass(frozen=True)
class _Moved:
    """Something by which starts are differentiated: a value by name, or a parameter.

    Attributes:
        name: Its name.
        sizes: How large it is in every run.
        by: Values by name and parameters of all runs, with this one moved by so much each.
    """

    name: str
    sizes: Array
    by: Callable[[Array], tuple[dict[str, Array], Array | None]]


class StartDifferences:
    """Central differences of assembled starts.

    Args:
        model: What moves.
        named: What was given, by full name, (runs,) each.
        starts: The starts.
        t0: Time at the start [s].

    How far a start may be moved depends on the size of the mechanism and on what is near: the ends
    of reach, other ways to close the loops. Steps therefore become shorter until differences of
    order four and six agree and lead back to the start.
    """

    def __init__(self, model: Model, named: dict[str, Array], starts: Starts, t0: float) -> None:
        self.model, self.named, self.starts, self.t0 = model, named, starts, t0
        self._count = len(starts.q)
        self._state = np.concatenate([starts.q, starts.nu], axis=1)
        self._missing = np.isin(np.arange(self._count), starts.failed.runs)

    def value(self, name: str) -> _Moved:
        """A value of the start."""

        def by(amount: Array) -> tuple[dict[str, Array], Array | None]:
            return {**self.named, name: self.named[name] + amount}, self.starts.p

        return _Moved(name, np.maximum(1.0, np.abs(self.named[name])), by)

    def parameter(self, name: str) -> _Moved:
        """A parameter."""
        p, place = self.starts.p, list(self.model.parameters).index(name)
        assert p is not None
        rows = np.broadcast_to(p, (self._count, p.shape[-1]))

        def by(amount: Array) -> tuple[dict[str, Array], Array | None]:
            return self.named, rows + np.outer(amount, np.eye(p.shape[-1])[place])

        present = np.abs(rows[:, place])
        return _Moved(name, np.where(present == 0.0, 1.0, present), by)

    def compute(self, moved: Sequence[_Moved]) -> list[Array]:
        """Derivatives of q and nu by all that is moved, (runs, size) each.

        Raises:
            NotApplicable: naming one along which starts have none.
        """
        found = [np.zeros_like(self._state) for _ in moved]
        misses = [np.where(self._missing, 0.0, np.inf) for _ in moved]
        waiting = list(range(len(moved)))
        for level in range(LEVELS):
            steps = [STEP * SHORTER**level * moved[k].sizes for k in waiting]
            pairs = zip(waiting, steps, strict=True)
            states = self._assemble([moved[k].by(s * h) for k, h in pairs for s in SHIFTS])
            left = []
            for k, h, some in zip(waiting, steps, states, strict=True):
                made, miss = self._difference(some, h, moved[k].sizes)
                better = miss < misses[k]
                found[k][better], misses[k][better] = made[better], miss[better]
                if not ((misses[k] < EXACT) | (~better & (misses[k] < AGREE))).all():
                    left.append(k)
            waiting = left
            if not waiting:
                break
        for k in waiting:
            if not (misses[k] < AGREE).all():
                raise NotApplicable(
                    "start: it cannot be assembled a little beside where it is, along "
                    f"'{moved[k].name}'; it has no derivative there. Start elsewhere, or give q "
                    "and nu"
                )
        return found

    def _difference(self, states: Array, h: Array, sizes: Array) -> tuple[Array, Array]:
        """Difference of states beside the start, and an estimate of its relative error."""
        made, other = (np.tensordot(w, states, 1) / h[:, np.newaxis] for w in (SIXTH, FOURTH))
        aside = np.abs(np.tensordot(MIDDLE, states, 1) - self._state).max(axis=1)
        size = np.abs(self._state).max(axis=1)
        largest = np.maximum(np.abs(made).max(axis=1), SMALL * size / sizes)
        largest[largest == 0.0] = 1.0
        order = (np.abs(made - other).max(axis=1) / largest) ** 1.5
        return made, np.maximum(order, np.maximum(aside / sizes, SUM_ROUNDING * size / h) / largest)

    def _assemble(self, given: Sequence[tuple[dict[str, Array], Array | None]]) -> Array:
        """States of all runs, (variables, shifts, runs, size); NaN where there are none.

        Few are assembled at once, many as the starts were.
        """
        count, made = self._count, []
        together = max(1, FEW // count)
        for k in range(0, len(given), together):
            part = given[k : k + together]
            named = {n: np.concatenate([values[n] for values, _ in part]) for n in self.named}
            rows = [p for _, p in part if p is not None]
            p = rows[0] if rows else None
            if p is not None and len(part) > 1:
                p = np.concatenate([np.broadcast_to(x, (count, x.shape[-1])) for x in rows])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = assemble_runs(self.model, named, count * len(part), Conditions(self.t0, p))
            states = np.concatenate([found.q, found.nu], axis=1)
            states[found.failed.runs] = np.nan
            made.append(states)
        return np.concatenate(made).reshape(-1, len(SHIFTS), *self._state.shape)
