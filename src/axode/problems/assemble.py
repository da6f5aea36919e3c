"""Assemble: a configuration that closes the loops, and speeds that keep them closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.model import Model
from axode.errors import InvalidArgument, LoopNotClosed, UnknownName

Array = npt.NDArray[np.float64]
CLOSED = 1e-10  # [m or rad]
STEPS = 80
START_SPREADS = (0.1, 0.3, 1.0)  # of further starts, in turn


@dataclass(frozen=True)
class State:
    """A consistent state: coordinates, independent speeds, and how closed it is."""

    q: Array
    nu: Array
    residual: float
    model: Model

    def __getitem__(self, name: str) -> float:
        """A coordinate, any joint speed or a measure by name."""
        values = self.as_dict()
        return values[signal_name(self.model, name, values)]

    def as_dict(self) -> dict[str, float]:
        """Coordinates, all joint speeds and measures by name."""
        m = self.model
        values = dict(zip(m.coordinates, self.q.tolist(), strict=True))
        values |= dict(zip(m.speed_names, m.speeds(self.q, self.nu).tolist(), strict=True))
        measured = m.measures(self.q, self.nu).tolist()
        return values | dict(zip((n for n, _, _ in m.facts.measures), measured, strict=True))


def assemble(
    model: Model, near: Mapping[str, float] | npt.ArrayLike | None = None, *,
    fix: Sequence[str] | Mapping[str, float] = (), tries: int = 1, seed: int = 0,
    t: float = 0.0, parameters: Mapping[str, float] | None = None,
) -> State:  # fmt: skip
    """A state that closes every loop and touches the ground, near a guess.

    Args:
        model: What to assemble.
        near: Coordinates, speeds and measures by name, or all coordinates; home elsewhere. Measures
            are met exactly, coordinates as nearly as the loops allow.
        fix: Coordinates that must keep their value (or take the given one).
        tries: How many random starts to add if the first does not close.
        seed: Of those starts.
        t: Time, where it is explicit [s].
        parameters: Values by name instead of the defaults.

    Raises:
        LoopNotClosed: naming the worst row, its residual and the best configuration found.
    """
    guess, speeds, wanted = _split(model, near)
    held = _held(model, fix, guess)
    options: dict[str, Any] = {"t": t} | ({"parameters": parameters} if parameters else {})
    problem = _Closure(model, wanted, held, options)
    q, error = problem.solve(guess)
    generator = np.random.default_rng(seed)
    for number in range(tries - 1):
        if error <= CLOSED:
            break
        spread = START_SPREADS[number % len(START_SPREADS)]
        start = guess + generator.normal(0, spread, guess.size) * ~problem.fixed
        trial, trial_error = problem.solve(start)
        if trial_error < error:
            q, error = trial, trial_error
    if error > CLOSED:
        raise problem.open_at(q)
    return State(q, _consistent_speeds(model, q, speeds, options), error, model)


def signal_name(model: Model, name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """The signal a name means: itself, or the only one that ends in it after a dot."""
    if name in known:
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
        array = np.asarray(near, dtype=float)
        if array.shape != q.shape:
            raise InvalidArgument(f"near: expected {q.size} coordinates, got shape {array.shape}")
        return array.copy(), {}, {}
    measured = {name: needs for name, _, needs in model.facts.measures}
    known = (*model.coordinates, *model.speed_names, *measured)
    speeds, wanted = {}, {}
    for given, value in near.items():
        name = signal_name(model, given, known)
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

    def solve(self, q: Array) -> tuple[Array, float]:
        """Damped least-squares steps from a guess, and the residual they end with."""
        q = self._normalised(q)
        best, best_error, damping = q, np.inf, 1e-6
        free = ~self.fixed
        r = self.residual(q)
        for _ in range(STEPS):
            error = float(np.abs(r).max(initial=0.0))
            if error < best_error:
                best, best_error = q, error
            if error < CLOSED * 1e-3 or not np.isfinite(error):
                break
            J = self.jacobian(q)[:, free]
            step = J.T @ np.linalg.solve(J @ J.T + damping * error * np.eye(len(r)), r)
            trial = q.copy()
            trial[free] -= step * min(1.0, 1.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
            trial = self._normalised(trial)
            r_trial = self.residual(trial)
            if np.linalg.norm(r_trial) < np.linalg.norm(r):
                q, r, damping = trial, r_trial, max(damping / 5, 1e-12)
            else:
                damping *= 10
                if damping > 1e9:
                    break
        return best, best_error

    def _normalised(self, q: Array) -> Array:
        q = q.copy()
        for four in map(list, self.model.facts.quaternions):
            if not self.fixed[four].any():
                q[four] /= max(float(np.linalg.norm(q[four])), 1e-300)
        return q

    def open_at(self, q: Array) -> LoopNotClosed:
        """The error that names what stays open."""
        r = self.residual(q)
        names = [*self.model.residual_rows, *self.wanted,
                 *(self.model.coordinates[f[0]] for f in self.model.facts.quaternions)]  # fmt: skip
        worst = int(np.argmax(np.abs(np.where(np.isfinite(r), r, np.inf))))
        angular = names[worst].rsplit(".", 1)[-1] in ("rx", "ry", "rz", "cross", "pitch", "roll")
        configuration = dict(zip(self.model.coordinates, map(float, q), strict=True))
        return LoopNotClosed(
            names[worst], abs(float(r[worst])), "rad" if angular else "m", configuration,
            "Give a nearer guess, fix fewer coordinates, or pass tries=20 for random starts.",
        )  # fmt: skip


def _consistent_speeds(
    model: Model, q: Array, wanted: dict[str, float], options: dict[str, Any]
) -> Array:
    """Independent speeds that give the wanted ones, smallest otherwise."""
    n = len(model.independent)
    if not wanted:
        return np.zeros(n)
    rest = np.zeros(n)
    Theta = model.speed_map(q, **options)
    base = model.speeds(q, rest, **options)
    names = [name for name, _, _ in model.facts.measures]
    rows, right = [], []
    for name, value in wanted.items():
        if name in model.speed_names:
            j = model.speed_names.index(name)
            rows.append(Theta[j])
            right.append(value - base[j])
        else:  # measures of velocity are linear in the speeds
            j = names.index(name)
            rows.append(model.measures_jacobian(q, rest, **options)[j, q.size :])
            right.append(value - model.measures(q, rest, **options)[j])
    A, b = np.array(rows), np.array(right)
    nu: Array = np.linalg.lstsq(A, b, rcond=None)[0]
    miss = np.abs(A @ nu - b)
    if miss.max() > 1e-9 * max(1.0, np.abs(b).max()):
        worst = list(wanted)[int(np.argmax(miss))]
        raise InvalidArgument(
            f"the constraints do not allow these speeds together: '{worst}' misses its value by "
            f"{miss.max():.3g}; give fewer, for instance only {', '.join(model.independent)}"
        )
    return nu
