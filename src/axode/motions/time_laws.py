"""Laws of time: how far along a path a motion is, with its derivatives.

All of them are polynomials between breakpoints: one for the smoothest motion, three for the
trapezoid, seven with limited jerk, one per interval of a grid for time-optimal motions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
HUGE = 1e100  # a larger jerk is no limit
# peaks of the quintic from 0 to 1 within a unit of time
PEAK_SPEED, PEAK_ACCELERATION, PEAK_JERK = 15 / 8, 10 / np.sqrt(3), 60.0


@dataclass(frozen=True)
class TimeLaw:
    """A parameter over time, polynomials between breakpoints.

    Attributes:
        breaks: [s], ascending from zero, (pieces + 1,).
        coefficients: Factors of ascending powers of the time since a piece began, (pieces, powers).
    """

    breaks: Array
    coefficients: Array

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.breaks[-1])

    def at(self, times: Array) -> Array:
        """Parameter, rate and second rate: (3, T); at rest before the start and after the end."""
        times = np.asarray(times, dtype=float)
        inside = (times >= 0.0) & (times <= self.duration)
        clipped = np.clip(times, 0.0, self.duration)
        piece = np.searchsorted(self.breaks, clipped, side="right") - 1
        piece = np.minimum(piece, len(self.coefficients) - 1)
        h, c = clipped - self.breaks[piece], self.coefficients[piece]
        value, rate, second = (np.zeros_like(h) for _ in range(3))
        for k in range(c.shape[1] - 1, -1, -1):  # Horner's rule, of the derivatives too
            second = second * h + 2 * rate
            rate = rate * h + value
            value = value * h + c[:, k]
        return np.array([value, rate * inside, second * inside])

    def scaled(self, factor: float) -> TimeLaw:
        """Return the same law, `factor` times slower."""
        powers = float(factor) ** -np.arange(self.coefficients.shape[1])
        return TimeLaw(self.breaks * factor, self.coefficients * powers)


def uniform_law(end: float, duration: float) -> TimeLaw:
    """From zero to `end` at one speed."""
    return TimeLaw(np.array([0.0, duration]), np.array([[0.0, end / duration]]))


def minimum_jerk_law(duration: float) -> TimeLaw:
    """From 0 to 1 with the least integral of squared jerk, at rest at the ends.

    The quintic of T. Flash and N. Hogan, "The coordination of arm movements", J. Neuroscience 5,
    1985.
    """
    made = TimeLaw(np.array([0.0, 1.0]), np.array([[0.0, 0.0, 0.0, 10.0, -15.0, 6.0]]))
    return made.scaled(duration)


def trapezoidal_law(speed: float, acceleration: float, jerk: float = np.inf) -> TimeLaw:
    """From 0 to 1, at rest at the ends, in the least time under limits of the derivatives.

    With a limit of the jerk: up to seven pieces. Speed and acceleration may be without limit, not
    all three.
    """
    if jerk > HUGE:
        jerk = HUGE if np.isinf(acceleration) else np.inf
    rise, hold = _acceleration_phases(speed, acceleration, jerk)
    peak = _peak_speed(rise, hold, acceleration, jerk)
    cruise = max(1 / peak - (2 * rise + hold), 0.0)
    if rise:
        J = peak / (rise * (rise + hold))  # the jerk itself but for rounding
        jerks = np.array([J, 0.0, -J, 0.0, -J, 0.0, J])
        steps = np.array([rise, hold, rise, cruise, rise, hold, rise])
        jumps = np.zeros(7)
    else:
        A = peak / hold
        jerks = np.zeros(3)
        steps, jumps = np.array([hold, cruise, hold]), np.array([A, -A, -A])
    return _integrate(steps, jerks, jumps)


def _acceleration_phases(V: float, A: float, J: float) -> tuple[float, float]:
    """How long the acceleration rises, and how long it is held, on the way to the peak speed."""
    if np.isinf(J):
        return 0.0, min(V / A, np.sqrt(1 / A))
    # speed reached, acceleration reached or not
    rise = min(A / J, np.sqrt(V / J))
    hold = max(V / A - rise, 0.0) if rise >= A / J else 0.0
    if V * (2 * rise + hold) <= 1:
        return rise, hold
    # speed not reached: rise and hold cover half the distance
    rise = min(A / J, np.cbrt(1 / (2 * J)))
    # J rise (rise + hold) (2 rise + hold) = 1
    hold = 0.0
    if rise >= A / J:
        hold = (np.sqrt(rise**2 + 4 / (J * rise)) - 3 * rise) / 2
    return float(rise), max(float(hold), 0.0)


def _peak_speed(rise: float, hold: float, A: float, J: float) -> float:
    return J * rise * (rise + hold) if rise else A * hold


def _integrate(steps: Array, jerks: Array, jumps: Array) -> TimeLaw:
    """Integrate pieces of constant jerk, with jumps of the acceleration before each."""
    kept = steps > 0
    # a piece without duration leaves its jump to the next
    totals = np.cumsum(jumps)
    level = np.diff(totals[kept], prepend=0.0)
    coefficients = np.zeros((int(kept.sum()), 4))
    s = v = a = 0.0
    for k, (h, j, jump) in enumerate(zip(steps[kept], jerks[kept], level, strict=True)):
        a += jump
        coefficients[k] = s, v, a / 2, j / 6
        s, v, a = s + h * (v + h * (a / 2 + h * j / 6)), v + h * (a + h * j / 2), a + h * j
    return TimeLaw(np.concatenate([[0.0], np.cumsum(steps[kept])]), coefficients)


def law_of_rates(parameters: Array, rates: Array, bends: Array) -> TimeLaw:
    """Law of a grid between whose points the second rate is linear in time.

    Args:
        parameters: Ascending, (N,).
        rates: Rates there, (N,), no two neighbours zero.
        bends: How much the second rate grows between them, (N - 1,), little beside itself.
    """
    steps, sums = np.diff(parameters), rates[1:] + rates[:-1]
    # the parameter grows by sums h / 2 - bends h^2 / 12
    h = 12 * steps / (3 * sums + np.sqrt(9 * sums**2 - 12 * steps * bends))
    seconds = np.diff(rates) / h - bends / 2
    coefficients = [parameters[:-1], rates[:-1], seconds / 2, bends / (6 * h)]
    breaks = np.concatenate([[0.0], np.cumsum(h)])
    return TimeLaw(breaks, np.stack(coefficients, axis=-1))
