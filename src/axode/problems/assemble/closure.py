"""Closure: configurations of many runs that close every loop, found together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from axode.errors import LoopNotClosed
from axode.model.conditions import Conditions, Options
from axode.model.model import Model
from axode.problems.assemble.overruled_coordinates import warn_of_overruled
from axode.problems.singular.other_models import measure_disagreement
from axode.symbolic.algebra.newton import CLOSED, find_roots, quick_step
from axode.symbolic.algebra.rank import least_norm

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
OPEN = 1e-6  # [rad, or of the length]: a configuration given by the user is open by no more
CONTRADICTION = 1e-6  # [rad, or of the length] by which redundant rows may stay open
NEARBY = 1.0  # [rad, or of the length] that others may move for coordinates that were named
START_SPREADS = (0.1, 0.3, 1.0)  # of further starts, in turn


def residual_units(model: Model) -> Array:
    """One unit of each residual of a model: a radian, or the mechanism's length."""
    return in_units(model, model.facts.residual_units)


def allowed_residual(model: Model) -> Array:
    """Largest residual of each row [m or rad] at which a given configuration counts as closed."""
    return np.maximum(OPEN * residual_units(model), measure_disagreement(model))


def coordinate_units(model: Model) -> Array:
    """One unit of each coordinate of a model: a radian, or the mechanism's length."""
    return in_units(model, model.facts.coordinate_units)


def in_units(model: Model, units: Sequence[str]) -> Array:
    """One unit of quantities: the mechanism's length for those in metres, one for others."""
    return np.array([model.facts.length if unit == "m" else 1.0 for unit in units])


class ClosureSystem:
    """Residuals of loops, contacts, wanted measures and unit quaternions as one system per run.

    Attributes:
        model: What to close.
        wanted: Values of measures by name, (runs,) each.
        fixed: Coordinates that keep their values.
        conditions: Time and parameters, one for all runs or one per run.
    """

    def __init__(
        self, model: Model, wanted: Mapping[str, Array], held: Sequence[int], conditions: Conditions
    ) -> None:
        self.model, self.wanted, self.conditions = model, dict(wanted), conditions
        facts = model.facts
        names = [name for name, _, _ in facts.measures]
        self.measures = [names.index(name) for name in wanted]
        self.fixed = np.zeros(len(model.coordinates), dtype=bool)
        self.fixed[list(held)] = True
        self.quaternions = [list(four) for four in facts.quaternions]
        self.names = (
            *facts.residual_rows,
            *wanted,
            *(model.coordinates[k[0]] for k in self.quaternions),
        )
        self.units = (
            *facts.residual_units,
            *(facts.measures[k][1] for k in self.measures),
            *("" for _ in self.quaternions),
        )
        self.rows = in_units(model, self.units)
        self.columns = coordinate_units(model)

    def _at(self, runs: Indices) -> Options:
        """Time and parameters of some runs, as keywords of the model's functions."""
        return self.conditions.at(runs).options

    def residual(self, q: Array, runs: Indices) -> Array:
        """Everything that must vanish, rows first: (runs, rows)."""
        options = self._at(runs)
        parts = [self.model.residual(q, **options)]
        if self.measures:
            nu = np.zeros((len(q), len(self.model.independent)))
            targets = np.stack([values[runs] for values in self.wanted.values()], axis=-1)
            parts.append(self.model.measures(q, nu, **options)[:, self.measures] - targets)
        parts += [(q[:, four] ** 2).sum(axis=1, keepdims=True) - 1 for four in self.quaternions]
        return np.concatenate(parts, axis=1)

    def jacobian(self, q: Array, runs: Indices) -> Array:
        """Derivative of the residuals by q: (runs, rows, coordinates)."""
        options, size = self._at(runs), q.shape[1]
        blocks = [self.model.residual_jacobian(q, **options)]
        if self.measures:
            nu = np.zeros((len(q), len(self.model.independent)))
            full = self.model.measures_jacobian(q, nu, **options)
            blocks.append(full[:, self.measures, :size])
        for four in self.quaternions:
            row = np.zeros((len(q), 1, size))
            row[:, 0, four] = 2 * q[:, four]
            blocks.append(row)
        return np.concatenate(blocks, axis=1)

    def close(
        self, guess: Array, named: Sequence[int] = (), tries: int = 1, seed: int = 0
    ) -> Array:
        """Find configurations near guesses at which everything vanishes: (runs, coordinates).

        Args:
            guess: One per run.
            named: Coordinates that keep their values if that closes nearby.
            tries: How many starts a run may have.
            seed: Seed of the random starts after the first.

        Raises:
            LoopNotClosed: naming the worst row of the first run that stays open.
        """
        q, waiting = guess.copy(), np.arange(len(guess))
        free = [k for k in named if not self.fixed[k]]
        if free and self.model.residual_rows:
            fixed = self.fixed.copy()
            fixed[free] = True
            start = self._with_followers(guess, fixed)
            q, error = self._solve(start, waiting, fixed)
            moved = np.abs(q - self._normalized(start, fixed)) / self.columns
            waiting = waiting[~((error <= CLOSED) & (moved.max(axis=1) <= NEARBY))]
        if waiting.size:
            q[waiting] = self._search(guess[waiting], waiting, tries, seed)
        return q

    def _search(self, guess: Array, runs: Indices, tries: int, seed: int) -> Array:
        """Close some runs from their guesses, then from random starts about them."""
        q, error = self._solve(guess, runs, self.fixed)
        if (error <= CLOSED).all():
            return q
        generator = np.random.default_rng(seed)
        for number in range(tries - 1):
            waiting = np.flatnonzero(~(error <= CLOSED))
            if not waiting.size:
                break
            spread = START_SPREADS[number % len(START_SPREADS)] * self.columns * ~self.fixed
            start = guess[waiting] + generator.normal(size=guess[waiting].shape) * spread
            trial, left = self._solve(start, runs[waiting], self.fixed)
            better = left < error[waiting]
            q[waiting[better]], error[waiting[better]] = trial[better], left[better]
        if not (error <= CLOSED).all():
            first = int(np.argmin(error <= CLOSED))
            raise self._not_closed(q[first], runs[first])
        return q

    def _with_followers(self, q: Array, fixed: Mask) -> Array:
        """Move coupled coordinates of the guesses to where their couplings want them."""
        coupled = [name.endswith(".coupling") for name in self.model.residual_rows]
        if not any(coupled) or fixed.all():
            return q
        runs = np.arange(len(q))
        J = self.model.residual_jacobian(q, **self._at(runs))[:, coupled][..., ~fixed]
        r = self.model.residual(q, **self._at(runs))[:, coupled]
        q = q.copy()
        q[:, ~fixed] -= least_norm(J, r, 1e-12)
        return q

    def _solve(self, q: Array, runs: Indices, fixed: Mask) -> tuple[Array, Array]:
        """Find configurations near guesses that leave little open, and how much.

        At other parameters than the defaults, rows that follow from others may contradict them a
        little; closing these as well leads far away, to where the contradiction happens to vanish.
        """
        every = np.ones(len(self.names), dtype=bool)
        if self.conditions.p is None:
            return self._newton(q, runs, fixed, every)
        rows, kept = self.model.residual_rows, set(self.model.rows)
        some = every.copy()
        some[: len(rows)] = [row in kept for row in rows]
        found, error = self._newton(q, runs, fixed, some)
        rest = np.abs(self.residual(found, runs) / self.rows)[:, ~some].max(axis=1, initial=0.0)
        again = np.flatnonzero(~((error <= CLOSED) & (rest <= CONTRADICTION)))
        if again.size:
            found[again], error[again] = self._newton(q[again], runs[again], fixed, every)
        return found, error

    def _newton(self, q: Array, runs: Indices, fixed: Mask, rows: Mask) -> tuple[Array, Array]:
        """Solve some rows for the coordinates that are not fixed."""
        return find_roots(
            lambda x, k: self.residual(x, runs[k])[:, rows],
            lambda x, k: self.jacobian(x, runs[k])[:, rows],
            q,
            rows=self.rows[rows],
            columns=self.columns * ~fixed,
            step=quick_step,
            retract=lambda x: self._normalized(x, fixed),
        )

    def _normalized(self, q: Array, fixed: Mask) -> Array:
        q = q.copy()
        for four in self.quaternions:
            if not fixed[four].any():
                q[:, four] /= np.linalg.norm(q[:, four], axis=1, keepdims=True).clip(1e-300)
        return q

    def warn_of_overruled(self, asked: Mapping[int, str], guess: Array, q: Array) -> None:
        """Warn of coordinates, given by name, that closing moved: of the first run that has some.

        Args:
            asked: Names that the user gave, by the coordinate's place.
            guess: Coordinates as asked for.
            q: Closed ones.
        """
        if not asked:
            return
        begun = self._normalized(guess, self.fixed)

        def system(runs: Indices) -> tuple[Array, Array]:
            rows = self.residual(begun[runs], runs)
            return rows, self.jacobian(begun[runs], runs) * ~self.fixed

        warn_of_overruled(asked, (guess, begun, q), self.names, self.wanted, system)

    def _not_closed(self, q: Array, run: int) -> LoopNotClosed:
        """Make the error that names what stays open."""
        r = self.residual(q[np.newaxis], np.array([run]))[0]
        worst = int(np.argmax(np.abs(np.where(np.isfinite(r), r / self.rows, np.inf))))
        configuration = dict(zip(self.model.coordinates, map(float, q), strict=True))
        return LoopNotClosed(
            self.names[worst],
            abs(float(r[worst])),
            self.units[worst],
            configuration,
            "Give a nearer guess, fix fewer coordinates, or pass tries=20 for random starts.",
        )
