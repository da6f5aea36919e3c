"""Closure: configurations of many runs that close every loop, found together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.rewriting import share_reciprocals
from axode.codegen.tape.tape import Tape
from axode.errors import LoopNotClosed
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.newton import add_in_order, find_roots, quick_step
from axode.numerics.tolerances import CLOSED, OPEN
from axode.problems.arguments import coordinate_units, in_units, residual_units
from axode.problems.assemble.closure_program import (
    ClosureTapes,
    closure_program,
    evaluation_program,
    is_zero,
    read_elements,
)
from axode.problems.assemble.start_warnings import FailedStarts, open_rows, warn_of_overruled
from axode.problems.other_models import measure_disagreement
from axode.problems.steps.compiled import Place, compiled, tape_of

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
NEARBY = 1.0  # [rad, or of the length] that others may move for coordinates that were named
MAX_INTERPRETED = 256  # runs that NumPy closes: for more of them it pays to compile
NEARER = (
    "Give a nearer guess, fix fewer coordinates, or try random starts: "
    "axode.assemble(model, start, attempts=20)."
)
OTHER_SIDE = (
    "Wheels keep this base level on the side on which home stands: set_home on the other side, or "
    "derive(reduce=False), whose equations hold on both."
)
START_SPREADS = (0.1, 0.3, 1.0)  # of further starts, in turn


def allowed_residual(model: Model) -> Array:
    """Largest residual of each row [m or rad] at which a given configuration counts as closed."""
    return np.maximum(OPEN * residual_units(model), measure_disagreement(model))


def is_tilt(row: str, unit: str) -> bool:
    """Return whether a residual is that of a base which wheels keep level."""
    return unit == "rad" and row.endswith((".tilt.x", ".tilt.y"))


def is_always_closed(model: Model) -> bool:
    """Check whether nothing can open: there are no rows, or they vanish whatever the state is."""
    if not model.residual_rows:
        return True
    return is_zero(tape_of(model, "residual"))


def parameters_of_closure(model: Model, with_measures: bool) -> list[int]:
    """Numbers of the free parameters that decide which configurations are closed."""
    names = ("residual", "measures") if with_measures else ("residual",)
    return sorted({k for name in names for k in read_elements(tape_of(model, name), "p")})


class ClosureSystem:
    """Residuals of loops, contacts, wanted measures and unit quaternions as one system per run.

    Attributes:
        model: What to close.
        wanted: Values of measures by name, (runs,) each.
        fixed: Coordinates that keep their values.
        conditions: Time and parameters, one for all runs or one per run.
        many: Whether more runs are closed elsewhere, so that compiling pays for few of them.
        place: Where many runs are closed.
    """

    def __init__(
        self,
        model: Model,
        wanted: Mapping[str, Array],
        held: Sequence[int],
        conditions: Conditions,
        *,
        many: bool = False,
        target: str = "cpu",
    ) -> None:
        self.many, self.place = many, Place(target)
        self.model, self.wanted, self.conditions = model, dict(wanted), conditions
        facts = facts_of(model)
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

    def residual(self, q: Array, runs: Indices) -> Array:
        """Everything that must vanish, rows first: (runs, rows)."""
        return self._evaluated(q, runs, slopes=False)

    def jacobian(self, q: Array, runs: Indices) -> Array:
        """Derivative of the residuals by q: (runs, rows, coordinates)."""
        return self._evaluated(q, runs, slopes=True).reshape(len(q), len(self.rows), -1)

    def _evaluated(self, q: Array, runs: Indices, *, slopes: bool) -> Array:
        """Evaluate by the same code for one run as for several: others round differently."""
        if not len(self.rows):
            return np.zeros((len(q), 0))
        rollout = compiled(
            self.model,
            ("closure", tuple(self.measures), slopes),
            Place(),
            lambda: evaluation_program(self._tapes(slopes=slopes), slopes=slopes),
            alike=True,
        )
        given = self.buffers_read(runs) | {"q": np.ascontiguousarray(q)}
        made = {name: np.zeros((len(q), size)) for name, size in rollout.program.state.items()}
        read = {name: given[name] for name in rollout.program.given}
        rollout(made | read, {}, budget=0, threads=1 if len(q) <= MAX_INTERPRETED else None)
        return made["value"]

    def close(
        self, guess: Array, named: Sequence[int] = (), attempts: int = 1, seed: int = 0
    ) -> Array:
        """Find configurations near guesses at which everything vanishes: (runs, coordinates).

        Args:
            guess: One per run.
            named: Coordinates that keep their values if that closes nearby.
            attempts: How many starts a run may have.
            seed: Seed of the random starts after the first.

        Raises:
            LoopNotClosed: naming the worst row of the first run that stays open.
        """
        q, error = self.find(guess, named, attempts, seed)
        reason = self.failures(q, error)[1]
        if reason is not None:
            raise reason
        return q

    def find(
        self, guess: Array, named: Sequence[int] = (), attempts: int = 1, seed: int = 0
    ) -> tuple[Array, Array]:
        """Find configurations as `close` does, and how much they leave open, of the rows' units."""
        q, error = self._found(guess, named, attempts, seed)
        turned = self._turned_over(guess)
        q[turned], error[turned] = guess[turned], np.inf
        return q, error

    def _turned_over(self, guess: Array) -> Indices:
        """Runs whose level bases are asked to stand on another side than the equations hold for."""
        rows = enumerate(zip(self.names, self.units, strict=True))
        tilts = [k for k, row in rows if is_tilt(*row)]
        if not tilts:
            return np.zeros(0, dtype=int)
        q, runs = self.normalized(guess, self.fixed), np.arange(len(guess))
        tilted = np.linalg.norm(self.residual(q, runs)[:, tilts], axis=1)
        return np.flatnonzero(tilted > np.pi / 2)

    def _found(
        self, guess: Array, named: Sequence[int], attempts: int, seed: int
    ) -> tuple[Array, Array]:
        everyone = np.arange(len(guess))
        free = [k for k in named if not self.fixed[k]]
        if not free or not self.model.residual_rows:
            return self._search(guess, everyone, attempts, seed)
        fixed = self.fixed.copy()
        fixed[free] = True
        q, error, moved = self._solve(guess, everyone, fixed, follow=True)
        waiting = np.flatnonzero(~((error <= CLOSED) & (moved <= NEARBY)))
        if waiting.size:
            q[waiting], error[waiting] = self._search(guess[waiting], waiting, attempts, seed)
        return q, error

    def _search(self, guess: Array, runs: Indices, attempts: int, seed: int) -> tuple[Array, Array]:
        """Close some runs from their guesses, then from random starts about them."""
        q, error, _ = self._solve(guess, runs, self.fixed)
        generator = np.random.default_rng(seed)
        for number in range(attempts - 1):
            waiting = np.flatnonzero(~(error <= CLOSED))
            if not waiting.size:
                break
            spread = START_SPREADS[number % len(START_SPREADS)] * self.columns * ~self.fixed
            start = guess[waiting] + generator.normal(size=guess[waiting].shape) * spread
            trial, left, _ = self._solve(start, runs[waiting], self.fixed)
            better = left < error[waiting]
            q[waiting[better]], error[waiting[better]] = trial[better], left[better]
        return q, error

    def _with_followers(self, q: Array, runs: Indices, fixed: Mask) -> Array:
        """Move coupled coordinates of the guesses to the values that their couplings give."""
        coupled = self._coupled()
        if not coupled or fixed.all():
            return q
        units, columns = self.rows[coupled], self.columns * ~fixed
        J = self.jacobian(q, runs)[:, coupled] * (columns / units[:, np.newaxis])
        r = self.residual(q, runs)[:, coupled] * (1 / units)
        return np.asarray(q - columns * quick_step(J, r, np.zeros(len(q))))

    def follows(self, fixed: Mask) -> bool:
        """Return whether couplings move guesses before rows are solved, some coordinates held."""
        return bool(self._coupled()) and bool(fixed.any())

    def _coupled(self) -> list[int]:
        rows = self.model.residual_rows
        return [k for k, name in enumerate(rows) if name.endswith(".coupling")]

    @property
    def first_rows(self) -> Mask:
        """Rows that do not follow from others."""
        rows, kept = self.model.residual_rows, set(self.model.rows)
        more = len(self.names) - len(rows)
        return np.array([row in kept for row in rows] + [True] * more, dtype=bool)

    @property
    def limit(self) -> float:
        """What the rows that follow from others may leave open, of their units."""
        return CLOSED if self.conditions.p is None else OPEN

    def _solve(
        self, q: Array, runs: Indices, fixed: Mask, *, follow: bool = False
    ) -> tuple[Array, Array, Array]:
        """Find configurations near guesses, how much they leave open, and how far they moved.

        Rows that follow from others are solved only where the others do not close them. An open
        guess makes them almost dependent, and at other parameters than the defaults they may
        contradict a little: closing both would lead far away.
        """
        some = self.first_rows
        found, error, rest, moved = self._newton(q, runs, fixed, some, follow)
        again = np.flatnonzero(~((error <= CLOSED) & (rest <= self.limit)))
        if again.size and not some.all():
            found[again], error[again], _, moved[again] = self._newton(
                q[again], runs[again], fixed, np.ones_like(some), follow
            )
        return found, error, moved

    def _newton(
        self, q: Array, runs: Indices, fixed: Mask, rows: Mask, follow: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Solve some rows for the coordinates that are not fixed.

        Returns:
            Configurations, what is left of these rows and of all others, of the rows' units, and
            how far coordinates moved, of theirs.
        """
        if self.many or len(q) > MAX_INTERPRETED:
            return self._newton_compiled(q, runs, fixed, rows, follow)
        start = self._with_followers(q, runs, fixed) if follow else q
        found, error = find_roots(
            lambda x, k: self.residual(x, runs[k])[:, rows],
            lambda x, k: self.jacobian(x, runs[k])[:, rows],
            start,
            rows=self.rows[rows],
            columns=self.columns * ~fixed,
            step=quick_step,
            retract=lambda x: self.normalized(x, fixed),
        )
        others = np.abs(self.residual(found, runs) / self.rows)[:, ~rows]
        moved = np.abs(found - self.normalized(start, fixed)) / self.columns
        return found, error, others.max(axis=1, initial=0.0), moved.max(axis=1, initial=0.0)

    def _newton_compiled(
        self, q: Array, runs: Indices, fixed: Mask, rows: Mask, follow: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Solve some rows by compiled code, on all threads or on the GPU."""
        rollout = self.rollout(fixed, rows, self.place, follow=follow)
        buffers = {name: np.zeros((len(q), size)) for name, size in rollout.program.state.items()}
        buffers["q"][...] = q
        given = self.buffers_read(runs)
        rollout(buffers | {name: given[name] for name in rollout.program.given}, {}, budget=0)
        error, rest, moved = (buffers[name][:, 0] for name in ("error", "rest", "moved"))
        return buffers["q"], error, rest, moved

    def buffers_read(self, runs: Indices) -> dict[str, Array]:
        """What the compiled steps read, by name: one row per run, or shared."""
        all_runs = self.conditions.shape == (len(runs),)
        there = self.conditions if all_runs else self.conditions.at(runs)
        t = np.asarray(there.t, dtype=float)
        given = {"t": np.ascontiguousarray(t[..., np.newaxis])}
        given["p"] = self.model.parameter_vector() if there.p is None else there.p
        if self.wanted:
            given["wanted"] = np.stack([values[runs] for values in self.wanted.values()], axis=-1)
        return {name: np.ascontiguousarray(array, dtype=float) for name, array in given.items()}

    def rollout(self, fixed: Mask, rows: Mask, place: Place, *, follow: bool) -> Any:
        """Compile the program that solves some rows, once per model and choice of names."""
        key = ("closure", tuple(self.measures), fixed.tobytes(), rows.tobytes(), follow)
        return compiled(
            self.model,
            key,
            place,
            lambda: closure_program(self._tapes(), fixed.tolist(), rows.tolist(), follow=follow),
            alike=True,
        )

    def _tapes(self, *, slopes: bool = True) -> ClosureTapes:
        model, facts = self.model, facts_of(self.model)
        measured = bool(self.measures)

        def tape(name: str, wanted: bool) -> Tape | None:
            # one reciprocal per divisor, however many quotients there are: the bits do not differ
            return share_reciprocals(tape_of(model, name), least=1) if wanted else None

        return ClosureTapes(
            tape("residual", True),
            tape("residual_jacobian", slopes),
            tape("measures", measured),
            tape("measures_jacobian", measured and slopes),
            wanted=tuple(self.measures),
            quaternions=tuple(map(tuple, self.quaternions)),
            rows=tuple(self.rows.tolist()),
            columns=tuple(self.columns.tolist()),
            coupled=tuple(self._coupled()),
            speeds=len(model.independent),
            parameters=0 if facts.fixed else len(facts.parameters),
        )

    def normalized(self, q: Array, fixed: Mask) -> Array:
        """Coordinates with quaternions of unit length, but for those that keep a value."""
        if not self.quaternions:
            return q
        q = q.copy()
        for four in self.quaternions:
            if not fixed[four].any():
                length = np.sqrt(add_in_order(q[:, four] ** 2))
                q[:, four] *= (1.0 / length.clip(1e-300))[:, np.newaxis]
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
        begun = self.normalized(guess, self.fixed)

        def system(runs: Indices) -> tuple[Array, Array]:
            rows = self.residual(begun[runs], runs)
            return rows, self.jacobian(begun[runs], runs) * ~self.fixed

        warn_of_overruled(asked, (guess, begun, q), self.names, self.wanted, system)

    def _remedy(self, row: int, run: int) -> str:
        """Return the remedy for a row that stays open in a run."""
        name = self.names[row]
        if is_tilt(name, self.units[row]):
            return OTHER_SIDE
        base, _, angle = name.rpartition(".")
        if name in self.wanted and angle in ("roll", "pitch") and f"{base}.tilt.x" in self.names:
            asked = self.wanted[name][run]
            return f"Wheels keep '{base}' level, so that {name} = {asked:g} rad cannot be met."
        return NEARER

    def failures(self, q: Array, error: Array) -> tuple[FailedStarts, LoopNotClosed | None]:
        """Name what stays open, run by run, and make the error of the first of them.

        Args:
            q: Best configurations.
            error: What they leave open, from `find`.
        """
        runs = np.flatnonzero(~(error <= CLOSED))
        if not runs.size:
            return FailedStarts(), None
        r = self.residual(q[runs], runs)
        worst = np.argmax(np.abs(np.where(np.isfinite(r), r / self.rows, np.inf)), axis=1)
        size = np.abs(r[np.arange(len(runs)), worst])
        first = int(worst[0])
        reason = LoopNotClosed(
            self.names[first],
            float(size[0]),
            self.units[first],
            dict(zip(self.model.coordinates, q[runs[0]].tolist(), strict=True)),
            self._remedy(first, int(runs[0])),
        )
        return FailedStarts(runs, worst, size, open_rows(self.names), self.units), reason
