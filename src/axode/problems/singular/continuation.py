"""Pass configurations at which the constraints lose rank, with momentum.

Where rows lose rank several motions are possible at once, and accelerations are not determined.
The motion that arrives there is smooth nevertheless, and goes on as it came: coordinates and speeds
are continued as polynomials of time, fitted to the motion just before, to a place beyond at which
rank is back; there they are brought onto the constraints, and the speeds are scaled so that the
energy balance holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev

from axode.model.function_source import SymbolicLibrary
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of, row_numbers_of
from axode.model.state import state_values
from axode.numerics.tolerances import NEGLIGIBLE, NO_MOTION
from axode.problems.arguments import residual_units
from axode.problems.inputs.events import event_tape
from axode.problems.inputs.tracing import TracedFunction, call_traced
from axode.problems.runs.batch import Batch
from axode.problems.singular.pivots import find_smallest_pivots

Array = npt.NDArray[np.float64]
CONTINUATION_PIVOT = 0.1  # below which a motion may be continued across
NODES, DEGREE = 14, 9  # of the motion before, and of the polynomials through it
HISTORY = 4.0  # how much longer than the gap the motion before it is
BEYOND = np.linspace(1.1, 8.0, 70)  # places beyond, in times until rank is lost
MIN_FALL = 0.3  # of the present pivot: what it must fall below in the passage
EVENT_SAMPLES = 25  # in the passage, at which event functions are compared
CLOSURE_SAMPLES = 9  # in the passage, at which constraints are checked


@dataclass(frozen=True)
class Landing:
    """Where a motion goes on beyond a singular configuration.

    Attributes:
        start, time: Time before and after [s].
        state: q, nu and w there, in the speeds of the batch's model.
        path: All of q, v and w in between, as polynomials of time.
        correction: Relative change of the speeds that the energy balance asked for.
        uncertainty: Relative difference of polynomials of two degrees.
        pivots: Smallest ones before and after.
    """

    start: float
    time: float
    state: Array
    path: Callable[[float], Array]
    correction: float
    uncertainty: float
    pivots: tuple[float, float]


def land_beyond(batch: Batch, run: int) -> Landing | None:
    """Continue a run across the singular configuration ahead of it.

    Returns:
        None if the motion does not come to one, is not smooth enough, or lands on no constraints.
    """
    if row_numbers_of(batch.model) is None:
        return None
    if facts_of(batch.model).driven:
        return None  # prescribed motion drives it there, not momentum
    with np.errstate(all="ignore"):
        return _Approach(batch, run).landing()


@dataclass
class Candidates:
    """The best landings that were found for runs before a singular configuration.

    Nearer to it the passage is shorter, but the motion before it is less well known.
    """

    best: dict[int, Landing] = field(default_factory=dict)

    def better(self, run: int, found: Landing | None, now: float) -> Landing | None:
        """Choose a landing to take now; None as long as a better one may come."""
        known = self.best.pop(run, None)
        if known is not None and (known.time - now) * (known.time - known.start) <= 0:
            known = None  # the motion turned round, or has gone on otherwise
        if found is None or (known is not None and found.uncertainty > known.uncertainty):
            return None if known is None else replace(known, start=now)
        if found.uncertainty <= NEGLIGIBLE:
            return found
        self.best[run] = found
        return None


class _Approach:
    """The motion of one run just before a singular configuration."""

    def __init__(self, batch: Batch, run: int) -> None:
        self.batch, self.run, self.model = batch, run, batch.model
        b = batch.buffers
        self.t = float(b["t"][run, 0])
        self.direction = batch.settings.direction
        self.x = batch.state(run)
        self.n_q = b["q"].shape[1]
        self.pivot = self._pivot(self.x[: self.n_q])

    def _pivot(self, q: Array) -> float:
        return float(find_smallest_pivots(self.model, q, self.batch.conditions(self.run, self.t)))

    def landing(self) -> Landing | None:
        """Find where it goes on."""
        ahead = self._time_until()
        if ahead is None:
            return None
        before = self._before(HISTORY * 2 * ahead)
        if before is None:
            return None
        fine, coarse = (self._fit(before, degree) for degree in (DEGREE, DEGREE - 2))
        gap = self._gap(fine, ahead)
        if gap is None or self._misses_samples(gap):
            return None
        end = self.t + self.direction * gap
        x = fine(end)
        if not self._stays_closed(fine, gap):
            return None
        uncertain = float(np.abs(x - coarse(end)).max() / (1 + np.abs(x).max()))
        if not uncertain < NO_MOTION:
            return None
        found = self._on_constraints(x, end)
        if found is None:
            return None
        state, correction = found
        pivots = self.pivot, self._pivot(state[: self.n_q])
        return Landing(self.t, end, state, fine, correction, uncertain, pivots)

    def _time_until(self) -> float | None:
        """Estimate when the smallest pivot vanishes, from the rate at which it falls."""
        rate = self._rates(self.t, self.x)
        speed = float(np.abs(rate[: self.n_q]).max(initial=0.0))
        if not speed > 0:
            return None
        back = self.direction * 0.1 * self.pivot / speed
        fallen = self._pivot(self.x[: self.n_q] - back * rate[: self.n_q]) - self.pivot
        return abs(back) * self.pivot / fallen if fallen > 0 else None

    @cached_property
    def _input(self) -> Callable[[float, Array], Array]:
        """Inputs at a time and a state; held ones stay what they are."""
        plan, batch, run = self.batch.plan, self.batch, self.run
        if plan.tape is not None:
            function = TracedFunction(plan.tape)
            return lambda t, x: call_traced(
                function, x[: self.n_q], x[self.n_q : -2], batch.conditions(run, t)
            )
        if plan.sampled is not None and plan.sampled.between == "linear":
            return lambda t, x: batch.input_at(run, t, x[: self.n_q], x[self.n_q : -2])
        inside = self.t + 0.5 * float(batch.buffers["h_s"][run, 0])
        held = batch.input_at(run, inside, self.x[: self.n_q], self.x[self.n_q : -2])
        return lambda t, x: held

    def _rates(self, t: float, x: Array) -> Array:
        state = {"q": x[: self.n_q], "nu": x[self.n_q : -2], "u": self._input(t, x)}
        return self.model.evaluate("state_rate", state, self.batch.conditions(self.run, t).options)

    def _before(self, length: float) -> tuple[Array, Array] | None:
        """Integrate back to Chebyshev's nodes of the interval before: times, and q, v, w."""
        from scipy.integrate import solve_ivp

        nodes = 0.5 * (1 - np.cos(np.linspace(0, np.pi, NODES)))
        times = self.t - self.direction * length * nodes
        made = solve_ivp(
            self._rates,
            (times[0], times[-1]),
            self.x,
            "DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-14,
        )
        if made.status != 0 or made.y.shape[1] != NODES:
            return None
        q, nu, w = np.split(made.y.T, [self.n_q, self.x.size - 2], axis=1)
        options = self.batch.conditions(self.run).options
        v = self.model.joint_speeds(np.ascontiguousarray(q), np.ascontiguousarray(nu), **options)
        x = np.concatenate([q, v, w], axis=1)
        return (times, x) if np.isfinite(x).all() else None

    def _fit(self, before: tuple[Array, Array], degree: int) -> Callable[[float], Array]:
        times, x = before
        domain = sorted((float(times[0]), float(times[-1])))
        # about where it is now, so that no digits are lost on what stays as it is
        parts = [Chebyshev.fit(times, column - column[0], degree, domain=domain) for column in x.T]
        offset = [column[0] - part(times[0]) for column, part in zip(x.T, parts, strict=True)]
        return lambda t: np.array([part(t) + o for part, o in zip(parts, offset, strict=True)])

    def _gap(self, path: Callable[[float], Array], ahead: float) -> float | None:
        """Find the time until the pivot is as large as now, if it becomes small in between."""
        spans = ahead * BEYOND
        if not self.batch.settings.adaptive:
            step = self.batch.settings.step_size
            spans = np.unique(np.ceil(spans / step)) * step
        lowest = self._pivot(path(self.t + self.direction * ahead)[: self.n_q])
        for span in spans.tolist():
            pivot = self._pivot(path(self.t + self.direction * span)[: self.n_q])
            if lowest < MIN_FALL * self.pivot and pivot >= self.pivot:
                return float(span)
            lowest = min(lowest, pivot)
        return None

    def _stays_closed(self, path: Callable[[float], Array], gap: float) -> bool:
        """Check that the path itself keeps the constraints.

        Where lengths differ a little from those that would lose rank, the motion turns off just
        before, and no smooth one leads across.
        """
        times = self.t + self.direction * gap * np.linspace(0.0, 1.0, CLOSURE_SAMPLES)
        q = np.array([path(t)[: self.n_q] for t in times])
        residual = self.model.residual(q, **self.batch.conditions(self.run).options)
        return bool(np.abs(residual / residual_units(self.model)).max(initial=0.0) < NEGLIGIBLE)

    def _misses_samples(self, gap: float) -> bool:
        """Check whether a held input changes in the passage."""
        sampled = self.batch.plan.sampled
        if sampled is None:
            return False
        times = self.t + self.direction * np.array([1e-9, 1.0]) * gap
        first, last = np.floor((times - sampled.start) / sampled.period)
        inside = 0 <= min(first, last) + 1 < sampled.count
        return bool(first != last and inside)

    def _on_constraints(self, x: Array, t: float) -> tuple[Array, float] | None:
        """Find a state that keeps the constraints and the energy, and how much was corrected."""
        model, options = self.model, self.batch.conditions(self.run, t).options
        q, v, w = np.split(x, [self.n_q, x.size - 2])
        for _ in range(3):
            q = model.evaluate("projection", {"q": q}, options)
        if (
            not np.abs(model.residual(q, **options) / residual_units(model)).max(initial=0.0)
            < NEGLIGIBLE
        ):
            return None
        independent = [model.speed_names.index(name) for name in model.independent]
        nu = v[independent]
        moved = np.abs(model.joint_speeds(q, nu, **options) - v).max()
        if not moved < NO_MOTION * (1 + np.abs(v).max()):
            return None
        before = model.energy(self.x[: self.n_q], self.x[self.n_q : -2], **options)
        gained = w - self.x[-2:]
        kinetic, potential = model.energy(q, nu, **options)
        wanted = float(before.sum() + gained[0] - gained[1] - potential)
        if not (kinetic > 0 and wanted > 0):
            return None
        scale = float(np.sqrt(wanted / kinetic))
        if not abs(scale - 1) < NO_MOTION:
            return None
        return np.concatenate([q, scale * nu, w]), scale - 1


def find_events(
    landing: Landing, batch: Batch, run: int, speeds: Sequence[str]
) -> list[tuple[float, int, Mapping[str, float]]]:
    """Find events in between: time, number of the event, values by name.

    Args:
        landing: Where the run goes on.
        batch, run: Where it is.
        speeds: What the events call nu.
    """
    from scipy.optimize import brentq  # takes half a second to import

    free = remove_constraints(batch.model)
    tape = event_tape(free, batch.watches, speeds)
    if tape is None:
        return []
    function, n_q = TracedFunction(tape), len(free.coordinates)

    def watched(t: float) -> Array:
        x = landing.path(t)
        return np.atleast_1d(call_traced(function, x[:n_q], x[n_q:-2], batch.conditions(run, t)))

    times = np.linspace(landing.start, landing.time, EVENT_SAMPLES)
    g = np.array([watched(t) for t in times])
    found = []
    for k, watch in enumerate(batch.watches):
        for a, b, x, y in zip(times, times[1:], g[:, k], g[1:, k], strict=False):
            rising, falling = x < 0 <= y, x > 0 >= y
            if (rising and watch.direction >= 0) or (falling and watch.direction <= 0):
                t = float(b) if y == 0 else float(brentq(lambda s: watched(s)[k], a, b, xtol=1e-15))  # noqa: B023
                found.append((t, k))
    found.sort(key=lambda pair: abs(pair[0] - landing.start))
    return [
        (t, k, state_values(free, x[:n_q], x[n_q:-2], batch.conditions(run, t)))
        for t, k in found
        for x in (landing.path(t),)
    ]


_UNCONSTRAINED: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()


def remove_constraints(model: Model) -> Model:
    """Make a model of the same bodies without rows: all joint speeds are independent.

    Energies and measures of a state are the same there, also where constraints lose rank.
    """
    if model not in _UNCONSTRAINED:
        _UNCONSTRAINED[model] = _without_rows(model)
    return _UNCONSTRAINED[model]


def _without_rows(model: Model) -> Model:
    from axode.model.metadata import Facts
    from axode.symbolic.constraints.row_choice import remove_rows
    from axode.symbolic.equations import Equations

    whole = library_of(model).row_equations
    assert whole is not None
    equations = Equations(remove_rows(whole.system), "recursive")
    library = SymbolicLibrary(equations, "interpreter", fixed=facts_of(model).fixed)
    return Model(Facts.of(equations, fixed=facts_of(model).fixed), library)
