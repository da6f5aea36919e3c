"""Answers to a case, and its run: intervals without jumps, states at any time, extremes, holds.

A motor that holds something need not act on it alone: the one that keeps a wheel of a pendulum from
turning pushes the body as well. Its effort is therefore solved for from the equations of motion,
so that what is held does not accelerate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from axode.errors import AxodeError, InvalidArgument, UnknownName
from axode.literature.acceptance.adapters import Adapter, Instant, adapter_of
from axode.literature.acceptance.cases import Case, Quantity
from axode.mechanism.values.expressions import Scalar
from axode.model.model import Model
from axode.numerics.tolerances import NEGLIGIBLE, SAME_TIME
from axode.problems.simulate.simulate import simulate
from axode.symbolic.algebra.formula_symbols import symbolic_value
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
RTOL, ATOL = 1e-12, 1e-13
SPACING = 0.01  # [s] between samples of a run, and at least
FEWEST = 200  # samples per interval
NODES = 10  # of the polynomial that refines an extreme
CANDIDATES = 4  # extremes of the samples that are refined
MOST_SAMPLES = 40_000  # per interval


@dataclass(frozen=True)
class Interval:
    """A part of a run in which nothing jumps.

    Attributes:
        model: What moves.
        begin, end: [s]
        times, q, nu: Samples, both ends included.
        formulas: Inputs during the interval.
        holding: What is held.
    """

    model: Model
    begin: float
    end: float
    times: Array
    q: Array
    nu: Array
    formulas: Mapping[str, Any]
    holding: Holding | None

    def state(self, t: float) -> tuple[Array, Array]:
        """Coordinates and independent speeds at a time, integrated from the sample before."""
        k = int(np.clip(np.searchsorted(self.times, t + SAME_TIME) - 1, 0, len(self.times) - 1))
        if abs(self.times[k] - t) <= SAME_TIME:
            return self.q[k], self.nu[k]
        start = (self.q[k], self.nu[k])
        _, q, nu = integrate(self.model, start, self.times[k], t, self.formulas, samples=1)
        return q[-1], nu[-1]


def integrate(
    model: Model,
    start: tuple[Array, Array],
    t0: float,
    t1: float,
    formulas: Mapping[str, Any],
    samples: int,
) -> tuple[Array, Array, Array]:
    """Times, coordinates and independent speeds of a motion."""
    run = simulate(
        model,
        t1 - t0,
        start=start,
        input=dict(formulas) if formulas else None,
        t0=t0,
        rtol=RTOL,
        atol=ATOL,
        save_every=(t1 - t0) / samples,
        progress=False,
    )
    return run.time, run[model.coordinates].values, run[model.independent].values


class Run:
    """The motion of a case from its state to `t_end`.

    Args:
        adapter: Adapter of the case.
        stops: Times whose states are asked for; they end intervals, so that nothing there is
            interpolated.
    """

    def __init__(self, adapter: Adapter, stops: Iterable[float] = ()) -> None:
        self.adapter = adapter
        end = adapter.case.t_end
        if end is None or not end > 0:
            raise InvalidArgument(f"case {adapter.case.id}: a run needs t_end > 0, got {end}")
        self.end = end
        given = adapter.case.input.get("hold")
        self.holds = read_holds(given, adapter.equations, adapter.holders)
        jumps = {signal.until for signal in adapter.inputs.values()}
        jumps |= {hold.until for hold in self.holds} | set(stops)
        cuts = [0.0, *sorted(t for t in jumps if SAME_TIME < t < end - SAME_TIME), end]
        self.intervals: list[Interval] = []
        instant = adapter.initial
        for begin, until in pairwise(cuts):
            if until - begin > SAME_TIME:
                self.intervals.append(self._advance(instant, begin, until))
                instant = self._instant(self.intervals[-1], until)

    def _advance(self, instant: Instant, begin: float, end: float) -> Interval:
        model = self.adapter.model
        formulas: Mapping[str, Any] = {
            name: signal.during(begin) for name, signal in self.adapter.inputs.items()
        }
        holds = tuple(hold for hold in self.holds if begin < hold.until - SAME_TIME)
        holding = Holding(self.adapter.equations, holds) if holds else None
        if holding:
            holding.check(instant.q, instant.nu, begin)
            formulas = holding.formulas(formulas)
        samples = int(np.clip((end - begin) / SPACING, FEWEST, MOST_SAMPLES))
        found = integrate(model, (instant.q, instant.nu), begin, end, formulas, samples)
        return Interval(model, begin, end, *found, formulas, holding)

    def _instant(self, interval: Interval, t: float) -> Instant:
        q, nu = interval.state(t)
        u = np.array([signal(t) for signal in self.adapter.inputs.values()])
        if interval.holding:
            u = interval.holding.inputs(q, nu, u, t)
        return Instant(interval.model, t, q, nu, u)

    def at(self, t: float) -> Instant:
        """The state at a time of the run.

        Raises:
            InvalidArgument: for a time outside it.
        """
        if not -SAME_TIME <= t <= self.end + SAME_TIME:
            raise InvalidArgument(f"{t:g} s is outside the run, which ends at {self.end:g} s")
        for interval in self.intervals:
            if t <= interval.end + SAME_TIME:
                return self._instant(interval, min(max(t, interval.begin), interval.end))
        raise AssertionError("the intervals fill the run")

    # extremes -------------------------------------------------------------------------------------

    def extreme(self, quantity: Quantity) -> float:
        """Largest or smallest value over an interval of time, or when it is reached."""
        low, high = quantity.between or (0.0, self.end)
        low, high = max(low, 0.0), min(high, self.end)
        if not low < high:
            raise InvalidArgument(f"no time of the run lies from {low:g} s to {high:g} s")
        sign = -1.0 if quantity.extreme.endswith("min") else 1.0
        best: tuple[float, float] | None = None
        for interval in self.intervals:
            t0, t1 = max(low, interval.begin), min(high, interval.end)
            if t1 - t0 > SAME_TIME:
                found = self._largest(interval, quantity, sign, t0, t1)
                best = found if best is None or found[1] > best[1] else best
        assert best is not None
        return best[0] if quantity.extreme.startswith("arg") else sign * best[1]

    def _largest(
        self, interval: Interval, quantity: Quantity, sign: float, t0: float, t1: float
    ) -> tuple[float, float]:
        """Time and value of the largest of sign * quantity in an interval."""

        def value(t: float) -> float:
            return sign * self._scalar(quantity, self._instant(interval, t))

        inner = interval.times[
            (interval.times > t0 + SAME_TIME) & (interval.times < t1 - SAME_TIME)
        ]
        times = np.concatenate([[t0], inner, [t1]])
        values = sign * self._sample(interval, quantity, times)
        best = max(((t, value(t)) for t in (t0, t1)), key=lambda pair: pair[1])
        left, middle, right = values[:-2], values[1:-1], values[2:]
        peaks = 1 + np.flatnonzero((middle >= left) & (middle >= right))
        curvature = 2 * values[peaks] - values[peaks - 1] - values[peaks + 1]
        slope = (values[peaks + 1] - values[peaks - 1]) / 2
        gain = np.where(curvature > 0, slope**2 / (2 * np.maximum(curvature, 1e-300)), 0.0)
        for k in peaks[np.argsort(values[peaks] + gain)[::-1][:CANDIDATES]]:
            found = _refine(value, float(times[k - 1]), float(times[k + 1]))
            if found[1] > best[1]:
                best = found
        return best

    def _sample(self, interval: Interval, quantity: Quantity, times: Array) -> Array:
        """The quantity at samples of an interval; coordinates as they were recorded."""
        model = interval.model
        if quantity.name in model.coordinates and quantity.name not in self.adapter.quantities():
            column = interval.q[:, model.coordinates.index(quantity.name)]
            values = np.interp(times, interval.times, column)
            return np.abs(values) if quantity.absolute else values
        return np.array([self._scalar(quantity, self._instant(interval, float(t))) for t in times])

    def _scalar(self, quantity: Quantity, now: Instant) -> float:
        value = np.asarray(self.adapter.of(quantity.name, now), dtype=float)
        if value.size != 1:
            raise InvalidArgument(f"'{quantity.name}' is {value.size} numbers and has no extreme")
        number = float(value.reshape(()))
        return abs(number) if quantity.absolute else number


def _refine(value: Any, low: float, high: float) -> tuple[float, float]:
    """Largest value in a short interval, where a polynomial through a few points is flat."""
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * np.arange(NODES + 1) / NODES)
    values = np.array([value(float(t)) for t in nodes])
    best = int(np.argmax(values))
    found = [(float(nodes[best]), float(values[best]))]
    if values.max() - values.min() > 1e-14 * max(1e-300, float(np.abs(values).max())):
        shape = Chebyshev.fit(nodes, values, NODES, domain=[low, high])
        roots = shape.deriv().roots()
        real = roots[np.abs(np.imag(roots)) < 1e-9].real
        flat = [float(t) for t in real if low <= t <= high]
        # the flat place is better known than the values around it
        found += [
            (t, max(value(t), found[0][1]))
            for t in flat
            if float(shape(t)) >= values.max() - 1e-12 * np.abs(values).max()
        ]
    return found[-1] if len(found) == 2 else max(found, key=lambda pair: pair[1])


class Answers:
    """Answers to the quantities of one case.

    Raises:
        UnknownName: if no adapter knows the case's system.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.adapter: Adapter = adapter_of(case.system)(case)

    @cached_property
    def run(self) -> Run:
        """The motion, its intervals ending at every time that the case asks about."""
        stops = []
        for key in self.case.expected:
            try:
                asked = Quantity.of(key)
            except AxodeError:
                continue  # reported where it is asked for
            stops += [asked.at] if asked.at is not None else []
        return Run(self.adapter, stops)

    def of(self, quantity: Quantity) -> Any:
        """A quantity at the state, at the end of the run, at a time, or its extreme."""
        if self.case.t_end is None:
            if quantity.at is not None or quantity.extreme:
                raise InvalidArgument(f"'{quantity.name}': the case has no t_end, hence no run")
            return self.adapter.of(quantity.name, self.adapter.initial)
        if quantity.extreme:
            return self.run.extreme(quantity)
        time = self.run.end if quantity.at is None else quantity.at
        return self.adapter.of(quantity.name, self.run.at(time))


@dataclass(frozen=True)
class Hold:
    """A coordinate or measure kept at a value until a time, and the input that does so."""

    name: str
    value: float
    until: float
    input: str


class Holding:
    """Inputs that hold some things, as expressions of the state and the other inputs."""

    def __init__(self, equations: Equations, holds: tuple[Hold, ...]) -> None:
        self.equations, self.holds = equations, holds
        e = equations
        self.positions = [e.inputs.index(hold.input) for hold in holds]
        held = ca.vertcat(*[_symbol(e, hold.name) for hold in holds])
        rate = ca.jtimes(held, e.q, e.q_dot) + ca.jtimes(held, e.t, 1)
        acceleration = ca.jtimes(rate, e.q, e.q_dot) + ca.jtimes(rate, e.t, 1)
        acceleration += ca.jtimes(rate, e.nu, e.forward_dynamics)
        unknown = e.u[self.positions]
        effect = ca.jacobian(acceleration, unknown)
        without = ca.substitute(acceleration, unknown, ca.SX.zeros(unknown.shape))
        self.efforts = ca.solve(effect, -without)
        self._state = ca.Function("state", [e.q, e.nu, e.t, e.p], [held, rate])

    def formulas(self, others: Mapping[str, Scalar]) -> dict[str, Any]:
        """All inputs, those that hold in terms of the state."""
        e = self.equations
        known = [symbolic_value(others.get(name, 0.0), {"t": e.t}) for name in e.inputs]
        efforts = ca.substitute(self.efforts, e.u, ca.vertcat(*known))
        return dict(others) | {hold.input: efforts[k] for k, hold in enumerate(self.holds)}

    @cached_property
    def _function(self) -> Any:
        e = self.equations
        return ca.Function("efforts", [e.q, e.nu, e.u, e.t, e.p], [self.efforts])

    def inputs(self, q: Array, nu: Array, u: Array, t: float) -> Array:
        """All inputs at a state, those that hold put in."""
        full = np.array(u, dtype=float)
        parameters = list(self.equations.parameters.values())
        full[self.positions] = np.array(self._function(q, nu, u, t, parameters)).ravel()
        return full

    def check(self, q: Array, nu: Array, t: float) -> None:
        """Refuse to hold what is elsewhere or moves.

        Raises:
            InvalidArgument: naming it.
        """
        parameters = list(self.equations.parameters.values())
        values, rates = (np.array(x).ravel() for x in self._state(q, nu, t, parameters))
        for hold, value, rate in zip(self.holds, values, rates, strict=True):
            if abs(value - hold.value) > NEGLIGIBLE or abs(rate) > NEGLIGIBLE:
                raise InvalidArgument(
                    f"hold: '{hold.name}' is to be kept at {hold.value:g} and is at {value:g}, "
                    f"moving at {rate:g}"
                )


def _symbol(e: Equations, name: str) -> Any:
    if name in e.coordinates:
        return e.q[e.coordinates.index(name)]
    if name in e.measures:
        return e.measures[name].expression
    raise UnknownName(f"model '{e.name}'", "coordinate", name, (*e.coordinates, *e.measures))


def read_holds(given: Any, equations: Equations, holders: Mapping[str, str]) -> tuple[Hold, ...]:
    """What a case holds: {name: value, "until": T}.

    Args:
        given: The case's entry for it.
        equations: Equations of the mechanism.
        holders: Inputs that hold things on which no motor acts directly, by the things' names.

    Raises:
        InvalidArgument: if it is no such thing, or no motor can hold it.
    """
    if not given:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"hold: expected {{name: value, 'until': T}}, got {given!r}")
    until = float(given.get("until", np.inf))
    return tuple(
        Hold(name, float(value), until, holders.get(name) or _motor(equations, name))
        for name, value in given.items()
        if name != "until"
    )


def _motor(equations: Equations, name: str) -> str:
    """The input of the motor that acts on a coordinate."""
    _symbol(equations, name)
    mechanism = equations.system.mechanism
    for connection in mechanism.connections:
        if name in connection.coordinates:
            speed = connection.speeds[
                min(connection.coordinates.index(name), len(connection.speeds) - 1)
            ]
            for drive, input in zip(mechanism.drives, equations.inputs, strict=False):
                if drive.coordinate in (connection.name, name, speed):
                    return input
    raise InvalidArgument(f"hold: no motor acts on '{name}', so that none can hold it")
