"""Steering: wheels that a path tells how to stand, although turning them moves nothing.

A steering speed does not appear in the velocity of the base, so the path's velocity does not tell
it. The steering angle decides instead which velocities are possible: it is the one at which nothing
of the path's velocity is left over, and its rate the one at which nothing of the acceleration is.
Both are the same wherever the vehicle stands and whichever way it looks, so home will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.problems.motions import GivenMotion
from axode.problems.signals import Signal

Array = npt.NDArray[np.float64]
SILENT = 1e-9  # a speed of unit size that moves the rows by less steers, or is not told at all
STEERS = 1e-6  # what a radian of steering turns of a unit velocity, at least
STEPS = 25  # of Newton's method
BOLD = 0.5  # [rad] no step is longer
SMALL = 1e-5  # [rad, rad/s] of difference quotients
SPACING = 2e-4  # of the duration, between the five times that are differentiated over
ROUNDING = 1e-13  # [rad, rad/s] of a step
JUMP = 5e-3  # [rad] that an angle may change beside its rate
LOOKS = 2001  # at a path, for jumps
PLACES = np.arange(-2.0, 3.0)


def steering_signals(motion: GivenMotion, duration: float) -> list[Signal]:
    """Angles that the path tells by what they allow; none if the vehicle does not steer.

    Args:
        motion: Given by the rows path.x, path.y and path.heading first.
        duration: Of the path [s].
    """
    model = motion.model
    q = model.home
    options = {**motion.options, "t": np.asarray(0.0)}
    G = motion._matrix(q, options["t"])[0]
    silent = [k for k in range(G.shape[-1]) if np.abs(G[:, k]).max(initial=0.0) < SILENT]
    unit = np.eye(len(model.independent))
    rest = model.rates(q, 0.0 * unit[0], **options)
    pairs = []
    for k in silent:
        moved = np.flatnonzero(np.abs(model.rates(q, unit[k], **options) - rest) > SILENT)
        if moved.size == 1:
            pairs.append((k, int(moved[0])))
    return _Steering(motion, duration, q, pairs).that_steers(duration / 2).signals()


def refuse_jumps(name: str, steering: Sequence[Signal], duration: float) -> None:
    """Stop at a path along which an angle changes faster than by its rate.

    Raises:
        InvalidArgument: telling where, and by how much.
    """
    times = np.linspace(0.0, duration, LOOKS)
    every = times[1]
    for signal in steering:
        angle, rate, _ = signal.values(times)
        told = every * (rate[1:] + rate[:-1]) / 2
        jump = np.abs(np.diff(angle) - told) - every * np.abs(np.diff(rate))
        if jump.max() > JUMP:
            k = int(np.argmax(jump))
            raise InvalidArgument(
                f"{name}: its curvature jumps at t = {times[k]:.4g} s, where '{signal.name}' would "
                f"have to turn by {angle[k + 1] - angle[k]:.3g} rad at once.\n  Use a path whose "
                "curvature is continuous, such as parallel_lines, or stop there and start again"
            )


@dataclass(frozen=True)
class _Steering:
    """Steering speeds with their coordinates, and the motion that asks for them."""

    motion: GivenMotion
    duration: float
    home: Array
    pairs: list[tuple[int, int]]

    def that_steers(self, time: float) -> _Steering:
        """Without what turns no wheel."""
        if not self.pairs:
            return self
        q, at, times, _ = self._there(np.array([time]))
        effect = np.abs(_slopes(lambda d: self._left(q, d, at, times)[0], self._angles(q)))
        kept = [p for p, x in zip(self.pairs, effect[0].max(axis=0), strict=True) if x > STEERS]
        return _Steering(self.motion, self.duration, self.home, kept)

    def signals(self) -> list[Signal]:
        """The angles with two derivatives each, over time; all share one solution."""
        last: list[tuple[Array, Array]] = []

        def part(i: int) -> Callable[[Array], Array]:
            def values(times: Array) -> Array:
                if not last or last[0][0] is not times:
                    last[:] = [(times, self._over(times))]
                found: Array = last[0][1][i]
                return found

            return values

        names = [self.motion.model.coordinates[j] for _, j in self.pairs]
        return [Signal(name, part(i)) for i, name in enumerate(names)]

    def _over(self, times: Array) -> Array:
        """Angles, rates and second rates: (angles, 3, T)."""
        step = SPACING * self.duration
        middle = np.clip(times, 3 * step, self.duration - 3 * step)
        place = (times - middle) / step  # zero but at the ends, where a path may stand still
        solved = self._solved((middle[:, np.newaxis] + step * PLACES).ravel())
        angle, rate = (x.T.reshape(len(self.pairs), -1, PLACES.size) for x in solved)
        slopes = [_through(b, place)[1] / step for b in rate]
        return np.array([[_through(a, place)[0], _through(b, place)[0], slope]
                         for a, b, slope in zip(angle, rate, slopes, strict=True)])  # fmt: skip

    def _there(self, times: Array) -> tuple[Array, tuple[Array, Array, Array], Array, Array]:
        """Home, what the path asks for seen from there, the times, and its speeds."""
        positions, rates, seconds = self.motion._at(times)
        q = np.broadcast_to(self.home, (times.size, self.home.size)).copy()
        own = self.motion.rows.call("value", q, {**self.motion.options, "t": times})[:, 2]
        turn = own - positions[:, 2]
        c, s = np.cos(turn), np.sin(turn)
        rates, seconds = rates.copy(), seconds.copy()
        for x in (rates, seconds):
            x[:, 0], x[:, 1] = c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]
        size = np.linalg.norm(rates[:, :3], axis=-1).clip(1e-300)
        return q, (positions, rates, seconds), times, size

    def _angles(self, q: Array) -> Array:
        return q[:, [j for _, j in self.pairs]]

    def _left(
        self, q: Array, angles: Array, at: tuple[Array, Array, Array], times: Array
    ) -> tuple[Array, Array, Array]:
        """What is left of a unit velocity with wheels that stand so; speeds and coordinates."""
        q = q.copy()
        q[:, [j for _, j in self.pairs]] = angles
        nu, misfit = self.motion._speeds(q, at, times, refuse=False)
        size = np.linalg.norm(at[1][:, :3], axis=-1, keepdims=True).clip(1e-300)
        return misfit / size, nu, q

    def _solved(self, times: Array) -> tuple[Array, Array]:
        """Angles and their rates, (T, angles) each."""
        q, at, times, size = self._there(times)
        angles = _root(lambda d: self._left(q, d, at, times)[0], self._angles(q))
        _, nu, q = self._left(q, angles, at, times)
        columns = [k for k, _ in self.pairs]

        def left(rates: Array) -> Array:
            turned = nu.copy()
            turned[:, columns] = rates
            return self.motion._accelerations(q, turned, at, times)[1] / size[:, np.newaxis]

        return angles, _root(left, np.zeros_like(angles))


def _root(function: Callable[[Array], Array], x: Array) -> Array:
    """Newton's method in least squares, all samples at once, until only rounding is left."""
    last = np.inf
    for _ in range(STEPS):
        left = function(x)
        step = (np.linalg.pinv(_slopes(function, x)) @ left[..., np.newaxis])[..., 0]
        x = x - np.clip(step, -BOLD, BOLD)
        size = float(np.abs(step).max(initial=0.0))
        if size < ROUNDING or (size < SMALL and size > last / 2):
            break
        last = size
    return x


def _slopes(function: Callable[[Array], Array], x: Array) -> Array:
    """Derivatives by central differences, (T, rows, columns of x)."""
    found = []
    for k in range(x.shape[-1]):
        off = np.zeros_like(x)
        off[:, k] = SMALL
        found.append((function(x + off) - function(x - off)) / (2 * SMALL))
    return np.stack(found, axis=-1)


def _through(values: Array, place: Array) -> tuple[Array, Array]:
    """Value and slope at a place of the polynomials through five values a unit apart."""
    powers = np.linalg.inv(np.vander(PLACES, increasing=True)) @ values.T
    order = np.arange(PLACES.size)
    basis = place[:, np.newaxis] ** order
    slopes = order[1:] * place[:, np.newaxis] ** order[:-1]
    return np.einsum("tk,kt->t", basis, powers), np.einsum("tk,kt->t", slopes, powers[1:])
