r"""Derivatives of starts by the equations that they satisfy.

A start is closed by steps of least norm from a guess, `axode.numerics.newton`,

.. math:: x' = x - C \tilde J^T y, \qquad \tilde J \tilde J^T y = \tilde r, \qquad
          \tilde J = R^{-1} J C, \quad \tilde r = R^{-1} r.

The gradient of :math:`w^T x'` is that of :math:`w^T (x - C \tilde J^T y) + z^T (\tilde r -
\tilde J \tilde J^T y)` at fixed y and z, with :math:`\tilde J \tilde J^T z = -\tilde J C w`. At the
closed start y vanishes, and one step back is the theorem of implicit functions. Where rows and
named coordinates leave a choice, the steps that made it are taken back, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.newton import MAX_NEWTON_STEP, residual_size
from axode.numerics.rank import pseudo_inverse, rank
from axode.numerics.tolerances import CLOSED, NEARLY_SINGULAR, NEGLIGIBLE, PART_OF_TOLERANCE
from axode.problems.assemble.closure import ClosureSystem
from axode.problems.assemble.start_speeds import speed_rows
from axode.problems.gradients.single_states import weighted_gradient
from axode.problems.simulate.starts import Starts
from axode.problems.steps.compiled import tape_of

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
MAX_ITERATES = 40  # steps that are taken again at most


class StartGradient(NamedTuple):
    """Gradient of weighted starts, one row per run: by values by name and by parameters."""

    values: dict[str, Array]
    parameters: Array


@dataclass(frozen=True)
class _Iterate:
    """A configuration of some runs, what is open there, and the triangle of its rows.

    Attributes:
        x: Coordinates.
        r: What is open, in the rows' units.
        Q, R: Factors of the transposed Jacobian, in the units of rows and coordinates.
    """

    x: Array
    r: Array
    Q: Array
    R: Array

    @property
    def y(self) -> Array:
        """Multipliers of the rows."""
        return _solve(self.R, _solve(np.swapaxes(self.R, 1, 2), self.r))

    @property
    def step(self) -> Array:
        """The step from here, in the units of coordinates."""
        return (self.Q @ _solve(np.swapaxes(self.R, 1, 2), self.r)[..., np.newaxis])[..., 0]

    @property
    def is_regular(self) -> npt.NDArray[np.bool_]:
        """Which runs have independent rows here."""
        diagonal = np.abs(np.diagonal(self.R, axis1=1, axis2=2))
        least = diagonal.min(axis=1, initial=1.0)
        return np.asarray(least > NEARLY_SINGULAR * diagonal.max(axis=1, initial=1.0))


class ClosedPlaces:
    """Configurations of some runs that were closed alike: from guesses, some coordinates held.

    Args:
        model: What was closed.
        wanted: Values of measures by name, (runs,) each.
        guess: Where the search began, (runs, coordinates).
        q: Where it ended.
        fixed: Coordinates that kept their values.
        conditions: Time and parameters.

    Attributes:
        exact: Runs whose derivatives are known.
    """

    def __init__(
        self,
        model: Model,
        wanted: Mapping[str, Array],
        guess: Array,
        q: Array,
        fixed: npt.NDArray[np.bool_],
        conditions: Conditions,
    ) -> None:
        self.model, self.fixed = model, fixed
        self.closure = ClosureSystem(model, wanted, [], conditions)
        self._runs = np.arange(len(q))
        self._columns = self.closure.columns * ~fixed
        self._rows = self.closure.first_rows
        self._units = self.closure.rows[self._rows]
        self._guess = guess
        with np.errstate(all="ignore"):
            last = self._iterate(q, self._residual(q))
            self._path = [last]
            self.exact = last.is_regular & (residual_size(last.r, self._units) <= CLOSED)
            if self._rows.sum() < (~fixed).sum():
                self._take_again(q)

    def _residual(self, x: Array) -> Array:
        return self.closure.residual(x, self._runs)[:, self._rows] / self._units

    def _iterate(self, x: Array, r: Array) -> _Iterate:
        closure, rows = self.closure, self._rows
        J = closure.jacobian(x, self._runs)[:, rows] * self._columns / self._units[:, np.newaxis]
        Q, R = np.linalg.qr(np.swapaxes(np.nan_to_num(J), 1, 2))
        return _Iterate(x, r, Q, R)

    def _take_again(self, q: Array) -> None:
        """Go the steps of the search again; those of all runs must lead to where it ended."""
        x, path = self.closure.normalized(self._guess, self.fixed), []
        r = self._residual(x)
        done = np.zeros(len(q), dtype=bool)
        for _ in range(MAX_ITERATES):
            done |= residual_size(r, self._units) <= PART_OF_TOLERANCE * CLOSED
            if done.all():
                break
            now = self._iterate(x, r)
            step = np.where(done[:, np.newaxis], 0.0, now.step)
            length = np.abs(step).max(axis=1, initial=0.0)
            self.exact &= done | (now.is_regular & (length < MAX_NEWTON_STEP))
            trial = self.closure.normalized(x - self._columns * step, self.fixed)
            there = self._residual(trial)
            helps = np.linalg.norm(there, axis=1) < np.linalg.norm(now.r, axis=1)
            self.exact &= done | helps | (length < NEGLIGIBLE)
            done |= length < NEGLIGIBLE
            path.append(now)
            x, r = trial, there
        missed = np.abs(x - q) / self.closure.columns
        self.exact &= missed.max(axis=1, initial=0.0) < NEGLIGIBLE
        if path and self.closure.follows(self.fixed):
            self.exact[:] = False  # couplings moved the guess first
        self._path = [*path, *self._path]

    def pull_back(self, w: Array) -> tuple[Array, Array, Array | None]:
        """Gradient of w . q by the guess, (runs, coordinates), wanted measures and parameters."""
        w = np.array(w)
        by_wanted = np.zeros((len(w), len(self.closure.measures)))
        by_p: Array | None = None
        for number, at in reversed(list(enumerate(self._path))):
            more, wanted, p = self._step_back(at, w, bends=number < len(self._path) - 1)
            w = more
            by_wanted += wanted
            if p is not None:
                by_p = p if by_p is None else by_p + p
        return self._through_normal(self._guess, w), by_wanted, by_p

    def _step_back(
        self, at: _Iterate, w: Array, *, bends: bool
    ) -> tuple[Array, Array, Array | None]:
        """Take weights back through one step, by coordinates, wanted measures and parameters."""
        n, m = at.x.shape[1], len(self._rows)
        if bends:
            w = self._through_normal(at.x - self._columns * at.step, w)
        turned = self._columns * w
        z = -_solve(at.R, np.einsum("rnm,rn->rm", at.Q, turned))
        of_rows = np.zeros((len(w), m))
        of_rows[:, self._rows] = z / self._units
        of_slopes = None
        if bends:
            y = at.y
            along_y, along_z = (
                np.einsum("rnm,rm->rn", at.Q, np.einsum("rmk,rk->rm", at.R, v)) for v in (y, z)
            )
            inner = _outer(y, turned + along_z) + _outer(z, along_y)
            of_slopes = np.zeros((len(w), m, n))
            of_slopes[:, self._rows] = -inner * self._columns / self._units[:, np.newaxis]
        return self._pull_rows(at.x, w, of_rows, of_slopes)

    def _pull_rows(
        self, x: Array, w: Array, of_rows: Array, of_slopes: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Add gradients of weighted rows, and of weighted slopes of these."""
        closure, n = self.closure, x.shape[1]
        rows = slice(0, len(self.model.residual_rows))
        measured = slice(rows.stop, rows.stop + len(closure.measures))
        w, by_p = np.array(w), None
        pairs = [("residual", of_rows[:, rows])]
        if of_slopes is not None:
            pairs.append(("residual_jacobian", of_slopes[:, rows].reshape(len(x), -1)))
        if closure.measures:
            whole = np.zeros((len(x), len(self.model.measure_names)))
            whole[:, closure.measures] = of_rows[:, measured]
            pairs.append(("measures", whole))
            if of_slopes is not None:
                slopes = np.zeros((len(x), whole.shape[1], n + len(self.model.independent)))
                slopes[:, closure.measures, :n] = of_slopes[:, measured]
                pairs.append(("measures_jacobian", slopes.reshape(len(x), -1)))
        known = self._known(x)
        for name, weights in pairs:
            if weights.shape[1]:
                found = weighted_gradient(tape_of(self.model, name), known, weights)
                w += found.get("q", 0.0)
                by_p = _added(by_p, found.get("p"))
        for k, four in enumerate(closure.quaternions):
            row = measured.stop + k
            w[:, four] += 2 * of_rows[:, row, np.newaxis] * x[:, four]
            if of_slopes is not None:
                w[:, four] += 2 * of_slopes[:, row][:, four]
        return w, -of_rows[:, measured], by_p

    def _known(self, x: Array) -> dict[str, Array]:
        known = {"q": x, "nu": np.zeros((len(x), len(self.model.independent)))}
        given = self.closure.buffers_read(self._runs)
        return known | {"t": given["t"], "p": given["p"]}

    def _through_normal(self, x: Array, w: Array) -> Array:
        """Take weights back through the division of quaternions by their length."""
        w = np.array(w)
        for four in self.closure.quaternions:
            if self.fixed[four].any():
                continue
            length = np.linalg.norm(x[:, four], axis=1, keepdims=True)
            unit = x[:, four] / length
            along = (unit * w[:, four]).sum(axis=1, keepdims=True)
            w[:, four] = (w[:, four] - unit * along) / length
        return w


class ExactStarts:
    """Starts of runs as solutions of equations.

    Args:
        model: What moves.
        named: What was given, by full name, (runs,) each.
        starts: The starts.
        t0: Time at the start [s].

    Attributes:
        exact: Runs whose derivatives are known.
    """

    def __init__(self, model: Model, named: Mapping[str, Array], starts: Starts, t0: float) -> None:
        self.model, self.starts = model, starts
        self._conditions = Conditions(t0, starts.p)
        depends = model.signals.depends_on_speeds
        self._speeds = {name: v for name, v in named.items() if depends(name)}
        self._places = {name: v for name, v in named.items() if name not in self._speeds}
        self._count = len(starts.q)
        self.exact = np.ones(self._count, dtype=bool)
        self.exact[starts.failed.runs] = False
        with np.errstate(all="ignore"):
            for runs, group in self._groups:
                self.exact[runs] &= group.exact
            if not self._speeds_are_given:
                self.exact &= self._speed_rows[2]

    @cached_property
    def _groups(self) -> list[tuple[Numbers, ClosedPlaces]]:
        return list(self._make_groups())

    def _make_groups(self) -> Iterator[tuple[Numbers, ClosedPlaces]]:
        """Runs whose named coordinates were kept, and those whose were not."""
        model = self.model
        coordinates = list(model.coordinates)
        tied = {k for four in facts_of(model).quaternions for k in four}
        asked = [coordinates.index(name) for name in self._places if name in coordinates]
        guess = np.tile(model.home, (self._count, 1))
        for place in asked:
            guess[:, place] = self._places[coordinates[place]]
        held = [place for place in asked if place not in tied] if model.residual_rows else []
        kept = (self.starts.q[:, held] == guess[:, held]).all(axis=1)
        measures = {n: v for n, v in self._places.items() if n not in coordinates}
        for places, runs in ((held, np.flatnonzero(kept)), ([], np.flatnonzero(~kept))):
            fixed = np.zeros(len(coordinates), dtype=bool)
            fixed[places] = True
            if runs.size:
                wanted = {name: values[runs] for name, values in measures.items()}
                there = self._conditions.at(runs)
                q = np.ascontiguousarray(self.starts.q[runs])
                yield runs, ClosedPlaces(model, wanted, guess[runs], q, fixed, there)

    @property
    def _speeds_are_given(self) -> bool:
        return set(self._speeds) <= set(self.model.independent)

    @cached_property
    def _speed_rows(self) -> tuple[Array, list[str], npt.NDArray[np.bool_]]:
        """Rows that determine the speeds, their names, and whether they do."""
        q = np.ascontiguousarray(self.starts.q)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return speed_rows(self.model, q, self._speeds, self._conditions)

    def pull_back(self, weights: Mapping[str, Array]) -> StartGradient:
        """Gradient of weighted coordinates and speeds; of runs that are exact."""
        nothing = np.zeros((self._count, len(self.model.parameters)))
        if not self.exact.any():
            named = (*self._places, *self._speeds)
            return StartGradient({name: np.zeros(self._count) for name in named}, nothing)
        w = {name: np.nan_to_num(array) for name, array in weights.items()}
        values, by_q, by_p = self._pull_speeds(w["nu"])
        w_q = w["q"] + by_q
        coordinates = list(self.model.coordinates)
        values |= {name: np.zeros(self._count) for name in self._places}
        with np.errstate(all="ignore"):
            for runs, group in self._groups:
                by_guess, by_wanted, more = group.pull_back(w_q[runs])
                for k, name in enumerate(n for n in self._places if n not in coordinates):
                    values[name][runs] = by_wanted[:, k]
                for name in self._places:
                    if name in coordinates:
                        values[name][runs] = by_guess[:, coordinates.index(name)]
                if more is not None:
                    whole = np.zeros((self._count, more.shape[1]))
                    whole[runs] = more
                    by_p = _added(by_p, whole)
        return StartGradient(values, nothing if by_p is None else by_p)

    def _pull_speeds(self, w: Array) -> tuple[dict[str, Array], Array, Array | None]:
        """Gradient of weighted speeds by values, coordinates and parameters."""
        model = self.model
        by_q, by_p = np.zeros(self.starts.q.shape), None
        if self._speeds_are_given:
            places = [model.independent.index(name) for name in self._speeds]
            return dict(zip(self._speeds, w[:, places].T, strict=True)), by_q, by_p
        slopes, rows, _ = self._speed_rows
        mu = np.zeros(slopes.shape[:2])
        at = self.exact
        mu[at] = np.einsum("rni,rn->ri", pseudo_inverse(slopes[at]), w[at])
        known = {"q": np.nan_to_num(self.starts.q), "nu": np.nan_to_num(self.starts.nu)}
        known |= {"t": np.full((self._count, 1), self._conditions.t)}
        known |= {} if self.starts.p is None else {"p": self.starts.p}
        names = {"joint_speeds": model.speed_names, "measures": model.measure_names}
        for function, order in names.items():
            felt = np.zeros((self._count, len(order)))
            for k, name in enumerate(rows):
                if (name in model.speed_names) == (function == "joint_speeds"):
                    felt[:, order.index(name)] -= mu[:, k]
            if felt.any():
                found = weighted_gradient(tape_of(model, function), known, felt)
                by_q += found.get("q", 0.0)
                by_p = _added(by_p, found.get("p"))
        return dict(zip(self._speeds, mu.T, strict=False)), by_q, by_p


def _solve(R: Array, b: Array) -> Array:
    """Solve square systems, one right-hand side each; NaN where they are singular."""
    if not b.shape[1]:
        return np.zeros(b.shape)
    try:
        return np.asarray(np.linalg.solve(R, b[..., np.newaxis])[..., 0])
    except np.linalg.LinAlgError:
        good = rank(R, max(R.shape[-2:]) * np.finfo(float).eps) == R.shape[-1]
        found = np.full(b.shape, np.nan)
        found[good] = np.linalg.solve(R[good], b[good][..., np.newaxis])[..., 0]
        return found


def _outer(a: Array, b: Array) -> Array:
    return np.asarray(a[:, :, np.newaxis] * b[:, np.newaxis, :])


def _added(total: Array | None, more: Array | None) -> Array | None:
    if more is None:
        return total
    return more if total is None else total + more
