"""Assemble: a configuration that closes the loops, and speeds that keep them closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, LoopNotClosed, UnknownName
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.model.state import State
from axode.problems.arguments import refuse_no_model
from axode.problems.assemble.dropped_rows import refuse_rows_that_no_longer_follow
from axode.problems.assemble.overruled_coordinates import warn_of_overruled
from axode.problems.assemble.start_speeds import consistent_speeds
from axode.problems.parameter_arguments import check_parameters

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
CLOSED = 1e-10  # [m or rad]
STEPS = 200
LEAST_DAMPING, MOST_DAMPING = 1e-13, 1e6  # of the mean squared row length
CONTRADICTION = 1e-6  # [m or rad] by which rows that follow from others may stay open
NEARBY = 1.0  # [m or rad] that others may move for the sake of coordinates that were named
START_SPREADS = (0.1, 0.3, 1.0)  # of further starts, in turn


def assemble(
    model: Model,
    near: Mapping[str, float] | npt.ArrayLike | None = None,
    *,
    fix: Sequence[str] | Mapping[str, float] = (),
    tries: int = 1,
    seed: int = 0,
    t: float = 0.0,
    parameters: Mapping[str, float] | None = None,
) -> State:
    """A state that closes every loop and touches the ground, near a guess.

    Args:
        model: What to assemble.
        near: Coordinates, speeds and measures by name, or all coordinates; home elsewhere. Measures
            are met exactly, coordinates as nearly as the loops allow; a `NotAsAsked` warning tells
            of one that a measure or the ground leaves another value.
        fix: Coordinates that must keep their value (or take the given one).
        tries: How many random starts to add if the first does not close.
        seed: Of those starts.
        t: Time, where it is explicit [s].
        parameters: Values by name instead of the defaults.

    Raises:
        LoopNotClosed: naming the worst row, its residual and the best configuration found.
        InvalidArgument: for parameters at which constraints hold that the model left out.
    """
    refuse_no_model("assemble", model)
    check_parameters(model, parameters)
    guess, speeds, wanted = _split(model, near)
    held = _held(model, fix, guess)
    options: dict[str, Any] = {"t": t} | ({"parameters": parameters} if parameters else {})
    closure = _Closure(model, wanted, held, options)
    q, error = closure.closed_keeping(_named_places(model, near), guess, tries, seed)
    closure.warn_of_overruled(near, guess, q)
    if parameters:
        p = model.parameter_vector(parameters)
        refuse_rows_that_no_longer_follow(model, q, t, p)
    nu = consistent_speeds(
        model, q[np.newaxis], {n: np.array([v]) for n, v in speeds.items()}, options
    )
    return State(q, nu[0], error, model, options)


def assembled(
    model: Model, near: Mapping[str, Array], count: int, t: float, p: Array | None
) -> tuple[Array, Array]:
    """Coordinates and speeds of many states, (count, size) each.

    Args:
        model: What to assemble.
        near: As for `assemble`, with one value per state.
        count: How many states.
        t: Time [s].
        p: Free parameters, (size,) or (count, size).
    """
    known = (*model.coordinates, *model.speed_names, *model.measure_names)
    needs = {name: needs for name, _, needs in model.facts.measures}
    names = {given: signal_name(model, given, known) for given in near}
    speeds = {
        names[g]: v for g, v in near.items() if names[g] in model.speed_names or needs.get(names[g])
    }
    places = {g: v for g, v in near.items() if names[g] not in speeds}
    q = _placed(model, {names[g]: v for g, v in places.items()}, count)
    if q is None:
        q = _solved(model, places, count, t, p)
    options: dict[str, Any] = {"t": np.full(count, t)}
    if p is not None:
        options["parameters"] = dict(zip(model.parameters, p.T, strict=True))
    return q, consistent_speeds(model, q, speeds, options)


def _placed(model: Model, places: Mapping[str, Array], count: int) -> Array | None:
    """Coordinates as given, where nothing ties them to each other."""
    tied = {model.coordinates[k] for four in model.facts.quaternions for k in four}
    if model.residual_rows or not set(places) <= set(model.coordinates) - tied:
        return None
    q = np.tile(model.home, (count, 1))
    for name, values in places.items():
        if np.shape(values) not in ((), (count,)):
            raise InvalidArgument(f"'{name}': expected one number, got shape {np.shape(values)}")
        q[:, model.coordinates.index(name)] = values
    return q


def _solved(
    model: Model, places: Mapping[str, Array], count: int, t: float, p: Array | None
) -> Array:
    """Closed configurations, each different one found once."""
    first, which = _different([*places.values(), *([] if p is None or p.ndim == 1 else p.T)], count)
    solved, told = [], False
    for run in first.tolist():
        own = (
            None
            if p is None
            else dict(zip(model.parameters, p if p.ndim == 1 else p[run], strict=True))
        )
        near = {n: float(values[run]) for n, values in places.items()}
        guess, _, wanted = _split(model, near)
        closure = _Closure(model, wanted, [], {"t": t} | ({"parameters": own} if own else {}))
        solved.append(closure.closed_keeping(_named_places(model, near), guess)[0])
        told = told or closure.warn_of_overruled(near, guess, solved[-1])  # of one of many
    return np.array(solved)[which]


def _different(columns: Sequence[Array], count: int) -> tuple[Indices, Indices]:
    """Rows that differ from all before them, and the place of every row among those."""
    number = np.zeros(count, dtype=np.intp)
    for column in columns:  # one after the other: sorting whole rows takes many times as long
        values, place = np.unique(column, return_inverse=True)
        if len(values) > 1:
            number = np.unique(number * len(values) + place.reshape(-1), return_inverse=True)[1]
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def signal_name(model: Model, name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """The signal a name means: itself, or the only one that ends in it after a dot."""
    if isinstance(name, str) and name in known:
        return name
    ending = [other for other in known if other.endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    raise UnknownName(f"model '{model.name}'", "signal", name, ending or tuple(known))


def _split(model: Model, near: Any) -> tuple[Array, dict[str, float], dict[str, float]]:
    """A guess of q, wanted speeds and wanted measures, from what the user gave."""
    q: Array = model.home
    if near is None:
        return q, {}, {}
    if not isinstance(near, Mapping):
        array = as_numbers("near", near)
        if array.shape != q.shape:
            raise InvalidArgument(f"near: expected {q.size} coordinates, got shape {array.shape}")
        return array.copy(), {}, {}
    measured = {name: needs for name, _, needs in model.facts.measures}
    known = (*model.coordinates, *model.speed_names, *measured)
    speeds, wanted = {}, {}
    for given, value in near.items():
        name = signal_name(model, given, known)
        if not np.isfinite(value):
            raise InvalidArgument(f"near '{given}': must be finite, got {value}")
        if name in model.coordinates:
            q[model.coordinates.index(name)] = float(value)
        elif name in model.speed_names or measured[name]:
            speeds[name] = float(value)
        else:
            wanted[name] = float(value)
    return q, speeds, wanted


def _held(model: Model, fix: Any, guess: Array) -> list[int]:
    held = []
    for given in fix:
        name = signal_name(model, given, model.coordinates)
        index = model.coordinates.index(name)
        if isinstance(fix, Mapping):
            guess[index] = float(fix[given])
        held.append(index)
    return held


def _named_places(model: Model, near: Any) -> list[int]:
    """Places of the coordinates that were named, quaternions apart: these come by four."""
    tied = {k for four in model.facts.quaternions for k in four}
    known = (*model.coordinates, *model.speed_names, *model.measure_names)
    names = (
        [signal_name(model, given, known) for given in near] if isinstance(near, Mapping) else []
    )
    places = [model.coordinates.index(name) for name in names if name in model.coordinates]
    return [place for place in places if place not in tied]


class _Closure:
    """Residuals of loops, contacts, wanted measures and unit quaternions as one system."""

    def __init__(
        self, model: Model, wanted: dict[str, float], held: list[int], options: dict[str, Any]
    ) -> None:
        self.model, self.wanted, self.options = model, wanted, options
        names = [name for name, _, _ in model.facts.measures]
        self.measures = [names.index(name) for name in wanted]
        self.targets = np.array(list(wanted.values()))
        self.fixed = np.zeros(len(model.coordinates), dtype=bool)
        self.fixed[held] = True

    def residual(self, q: Array) -> Array:
        """Everything that must vanish, rows first."""
        parts: list[Any] = [self.model.residual(q, **self.options)]
        if self.measures:
            nu = np.zeros(len(self.model.independent))
            values = self.model.measures(q, nu, **self.options)[self.measures]
            parts.append(values - self.targets)
        parts += [[float(np.sum(q[list(four)] ** 2)) - 1] for four in self.model.facts.quaternions]
        return np.concatenate([np.asarray(p, dtype=float) for p in parts])

    def jacobian(self, q: Array) -> Array:
        """Its derivative by q."""
        blocks = [self.model.residual_jacobian(q, **self.options)]
        if self.measures:
            nu = np.zeros(len(self.model.independent))
            full = self.model.measures_jacobian(q, nu, **self.options)
            blocks.append(full[self.measures, : q.size])
        for four in map(list, self.model.facts.quaternions):
            row = np.zeros((1, q.size))
            row[0, four] = 2 * q[four]
            blocks.append(row)
        return np.vstack(blocks)

    def closed_keeping(
        self, named: Sequence[int], guess: Array, tries: int = 1, seed: int = 0
    ) -> tuple[Array, float]:
        """Like `closed`, with coordinates that were named as they are if that closes nearby."""
        free = [k for k in named if not self.fixed[k]]
        if free and self.model.residual_rows:
            self.fixed[free] = True
            start = self._with_followers(guess)
            q, error = self.solve(start)
            self.fixed[free] = False
            if error <= CLOSED and np.abs(q - self._normalised(start)).max() <= NEARBY:
                return q, error
        return self.closed(guess, tries, seed)

    def _with_followers(self, q: Array) -> Array:
        """The guess with coupled coordinates where their couplings want them, however far."""
        coupled = [name.endswith(".coupling") for name in self.model.residual_rows]
        if not any(coupled) or self.fixed.all():
            return q
        J = self.model.residual_jacobian(q, **self.options)[coupled][:, ~self.fixed]
        r = self.model.residual(q, **self.options)[coupled]
        q = q.copy()
        q[~self.fixed] -= np.linalg.lstsq(J, r, rcond=1e-12)[0]
        return q

    def closed(self, guess: Array, tries: int = 1, seed: int = 0) -> tuple[Array, float]:
        """A configuration near a guess at which everything vanishes, and how nearly.

        Raises:
            LoopNotClosed: naming the worst row.
        """
        q, error = self.solve(guess)
        generator = np.random.default_rng(seed)
        for number in range(tries - 1):
            if error <= CLOSED:
                break
            spread = START_SPREADS[number % len(START_SPREADS)]
            start = guess + generator.normal(0, spread, guess.size) * ~self.fixed
            trial, trial_error = self.solve(start)
            if trial_error < error:
                q, error = trial, trial_error
        if error > CLOSED:
            raise self.open_at(q)
        return q, error

    def solve(self, q: Array) -> tuple[Array, float]:
        """A configuration near a guess that leaves little open, and how much.

        At other parameters than the defaults, rows that follow from others may contradict them a
        little; closing these as well leads far away, to where the contradiction happens to vanish.
        """
        everything = np.ones(self.residual(q).size, dtype=bool)
        if self.options.get("parameters"):
            rows, kept = self.model.residual_rows, set(self.model.rows)
            some = everything.copy()
            some[: len(rows)] = [row in kept for row in rows]
            found, error = self._descend(q, some)
            rest = float(np.abs(self.residual(found)[~some]).max(initial=0.0))
            if error <= CLOSED and rest <= CONTRADICTION:
                return found, error
        return self._descend(q, everything)

    def _descend(self, q: Array, rows: npt.NDArray[np.bool_]) -> tuple[Array, float]:
        """Damped least-squares steps on some rows from a guess, and the residual they end with."""
        q = self._normalised(q)
        r, damping, free = self.residual(q)[rows], LEAST_DAMPING, ~self.fixed
        for _ in range(STEPS):
            error = float(np.abs(r).max(initial=0.0))
            if error < CLOSED * 1e-3 or damping > MOST_DAMPING or not np.isfinite(error):
                break
            J = self.jacobian(q)[np.ix_(rows, free)]
            gram = J @ J.T
            size = max(float(np.trace(gram)) / len(r), 1e-12)
            step = J.T @ np.linalg.solve(gram + damping * size * np.eye(len(r)), r)
            trial = q.copy()
            trial[free] -= step * min(1.0, 1.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
            trial = self._normalised(trial)
            r_trial = self.residual(trial)[rows]
            if np.linalg.norm(r_trial) < np.linalg.norm(r):
                q, r, damping = trial, r_trial, max(damping / 10, LEAST_DAMPING)
            else:
                damping *= 10
        return q, float(np.abs(r).max(initial=0.0))

    def _normalised(self, q: Array) -> Array:
        q = q.copy()
        for four in map(list, self.model.facts.quaternions):
            if not self.fixed[four].any():
                q[four] /= max(float(np.linalg.norm(q[four])), 1e-300)
        return q

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows of the residual."""
        facts = self.model.facts
        return (
            *facts.residual_rows,
            *self.wanted,
            *(self.model.coordinates[f[0]] for f in facts.quaternions),
        )

    def warn_of_overruled(self, near: Any, guess: Array, q: Array) -> bool:
        """Warn of coordinates, given by name, that came out otherwise; whether there were any."""
        known = (*self.model.coordinates, *self.model.speed_names, *self.model.measure_names)
        places = {name: place for place, name in enumerate(self.model.coordinates)}
        asked = {
            places[name]: given
            for given in (near if isinstance(near, Mapping) else ())
            if (name := signal_name(self.model, given, known)) in places
        }
        if not asked:
            return False
        begun = self._normalised(guess)
        system = self.residual(begun), self.jacobian(begun) * ~self.fixed
        return warn_of_overruled(asked, (guess, begun, q), self.names, self.wanted, system)

    def open_at(self, q: Array) -> LoopNotClosed:
        """The error that names what stays open."""
        r = self.residual(q)
        facts, names = self.model.facts, self.names
        units = [
            *facts.residual_units,
            *(facts.measures[k][1] for k in self.measures),
            *("" for _ in facts.quaternions),
        ]
        worst = int(np.argmax(np.abs(np.where(np.isfinite(r), r, np.inf))))
        configuration = dict(zip(self.model.coordinates, map(float, q), strict=True))
        return LoopNotClosed(
            names[worst],
            abs(float(r[worst])),
            units[worst],
            configuration,
            "Give a nearer guess, fix fewer coordinates, or pass tries=20 for random starts.",
        )
