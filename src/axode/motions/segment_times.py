"""Times of waypoints: as short as limits allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from axode.motions.quintic_splines import KnotGroup, knot_groups
from axode.motions.waypoint_curves import normalized
from axode.motions.waypoints import Waypoints

Array = npt.NDArray[np.float64]
PLACES = np.linspace(0.0, 1.0, 17)  # of an interval while its duration is searched for
FINE_PLACES = np.linspace(0.0, 1.0, 65)
REFINEMENTS = 3  # of the neighbourhood of the largest sample
NORM = 24.0  # of the sum of powers that stands for the largest sample
STEP = 1e-6  # of the logarithm of a duration, for derivatives
ITERATIONS = 60
SHORTEST = 0.05  # of the mean duration, at first


class SegmentTimes:
    """Durations between waypoints under limits of the parts' speeds and accelerations.

    Args:
        waypoints: Two or more, no two neighbours alike.
        stops: Numbers of those to stop at.
        speed, acceleration: Limits of the parts; infinity for none.
    """

    def __init__(
        self, waypoints: Waypoints, stops: Sequence[int], speed: Array, acceleration: Array
    ) -> None:
        self.waypoints, self.speed, self.acceleration = waypoints, speed, acceleration
        self.groups: list[KnotGroup] = knot_groups(waypoints, stops)

    def shortest(self) -> Array:
        """Find times of the waypoints whose last is least, at least near the guess.

        The sum of the durations is minimized with the largest part of a limit in every interval as
        a constraint, by sequential quadratic programming in the logarithms of the durations.
        """
        from scipy.optimize import minimize

        distances = self.waypoints.distances()
        guess = np.maximum(distances / self.speed, 2 * np.sqrt(distances / self.acceleration)).max(
            axis=1
        )
        guess = np.maximum(guess, SHORTEST * guess.mean())
        guess = guess * self.factors(guess, PLACES).max()
        if guess.size > 1:
            found = minimize(
                lambda x: np.log(np.exp(x).sum()),
                np.log(guess),
                jac=lambda x: np.exp(x) / np.exp(x).sum(),
                constraints={"type": "ineq", "fun": self._slack, "jac": self._slack_jacobian},
                method="SLSQP",
                options={"maxiter": ITERATIONS, "ftol": 1e-5},
            )
            if np.isfinite(found.x).all():
                better = np.exp(found.x)
                better = better * self.factors(better, PLACES).max()
                guess = better if better.sum() < guess.sum() else guess
        return np.concatenate([[0.0], np.cumsum(guess)]) * self._largest(guess)

    def factors(self, durations: Array, places: Array) -> Array:
        """How many times slower the limits would have to be: (..., intervals, places, limits)."""
        batch = durations.shape[:-1]
        shape = (3, *durations.shape, places.size, self.waypoints.values.shape[1])
        y = np.empty(shape)
        for group in self.groups:
            y[..., group.columns] = group.sample(durations, places)
        for channel in self.waypoints.channels:
            if channel.is_pose:
                k = slice(channel.first + 3, channel.first + 7)
                y[..., k] = normalized(y[..., k])
        v, a = self.waypoints.magnitudes(y.reshape(3, -1, shape[-1]))
        both = np.concatenate([v / self.speed, np.sqrt(a / self.acceleration)], axis=-1)
        return both.reshape(*batch, durations.shape[-1], places.size, -1)

    def _slack(self, x: Array) -> Array:
        """Minus the logarithm of a smooth largest factor, in every interval."""
        factors = self.factors(np.exp(x), PLACES).clip(1e-12)
        factors = factors.reshape(*factors.shape[:-2], -1)
        most = factors.max(axis=-1, keepdims=True)
        sums = ((factors / most) ** NORM).sum(axis=-1)
        return np.asarray(-np.log(most[..., 0]) - np.log(sums) / NORM)

    def _slack_jacobian(self, x: Array) -> Array:
        found = self._slack(np.concatenate([x + STEP * np.eye(x.size), x[np.newaxis]]))
        return np.asarray((found[:-1] - found[-1]).T / STEP)

    def _largest(self, durations: Array) -> float:
        """Largest factor anywhere, to rounding: samples, then more around the largest of each."""
        found = self.factors(durations, FINE_PLACES)
        most, width = float(found.max()), FINE_PLACES[1]
        # the interval and the place of the largest sample of every limit
        flat = found.reshape(-1, found.shape[-1]).argmax(axis=0)
        at = FINE_PLACES[flat % FINE_PLACES.size]
        for _ in range(REFINEMENTS):
            near = np.clip(at[:, np.newaxis] + width * (2 * FINE_PLACES - 1), 0.0, 1.0)
            found = self.factors(durations, near.ravel())
            found = found.reshape(found.shape[0], *near.shape, -1).max(axis=0)
            own = found[np.arange(at.size), :, np.arange(at.size)]
            most = max(most, float(own.max()))
            at = near[np.arange(at.size), own.argmax(axis=1)]
            width *= 2 * FINE_PLACES[1]
        return most
