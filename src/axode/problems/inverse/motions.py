"""Motions given by some of their signals: functions of time or samples, and what follows of them.

A few coordinates, speeds or measures as functions of time say how the whole mechanism moves. Speeds
and accelerations follow by least squares whose residual must vanish; coordinates by quadrature from
a start, then by Newton's method on loops, contacts and what was given, all samples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import InvalidArgument, NotApplicable, SingularConfiguration, shortened
from axode.mechanism.values.expressions import Expression, Parameter, Time, parse_scalar
from axode.model.conditions import Conditions
from axode.model.function_source import shaped_tape
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.model.signals import STATE_KINDS
from axode.numerics.newton import find_roots
from axode.numerics.rank import least_norm, null_space, rank, singular_values
from axode.numerics.tolerances import NEGLIGIBLE, RANK
from axode.problems.arguments import StateArgument, coordinate_units, in_units, residual_units
from axode.problems.inputs.tracing import TracedFunction, compile_tape
from axode.problems.inverse.quadrature import Rates, integrate
from axode.problems.other_models import DescribedStates
from axode.problems.singular.approaches import usual_margin, warn_of_signals
from axode.problems.singular.switching import choose_models, describe_own_loss

_KEPT: WeakKeyDictionary[Model, dict[Any, dict[str, CompiledFunction]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class PositionRow:
    """A function of the configuration that a motion is given by.

    Attributes:
        name: What messages call it.
        expression: In CasADi's symbols of the model's equations.
        unit: Unit of its value.
        is_angle: Whether full turns do not matter.
    """

    name: str
    expression: Any
    unit: str
    is_angle: bool = False


class Rows:
    """What a motion is given by, as functions of the configuration and of all joint speeds.

    Functions of rows that belong to the equations of the model are kept with it if `keep` is set.
    """

    def __init__(
        self,
        model: Model,
        rows: Sequence[PositionRow],
        speeds: Sequence[str],
        *,
        keep: bool = False,
    ) -> None:
        self.model = model
        self.positions = tuple(rows)
        self.speeds = [model.speed_names.index(name) for name in speeds]
        self.names = (*(row.name for row in rows), *speeds)
        self.angles = np.array([row.is_angle for row in rows], dtype=bool)
        kept = _KEPT.setdefault(model, {}) if keep else {}
        key = tuple((row.name, row.expression.element_hash()) for row in rows if keep)
        if rows and key not in kept:
            kept[key] = _row_functions(model, rows)
        self._functions = kept.get(key, {})

    def call(
        self, name: str, q: Array, conditions: Conditions, v: Any = 0.0, a: Any = 0.0
    ) -> Array:
        """Evaluate values, Jacobians or derivatives of the rows of position, batch axes first."""
        if not self.positions:
            shape = {
                "jacobian": (0, len(self.model.speed_names)),
                "by_q": (0, len(self.model.coordinates)),
            }
            return np.zeros((*q.shape[:-1], *shape.get(name, (0,))))
        function = self._functions[name]
        size = (*q.shape[:-1], len(self.model.speed_names))
        known = {
            "q": q,
            "v": np.broadcast_to(v, size),
            "a": np.broadcast_to(a, size),
            "t": np.broadcast_to(conditions.t, q.shape[:-1])[..., np.newaxis],
            "p": self.model.parameter_vector(conditions.p),
        }
        arrays = [np.ascontiguousarray(known[port.name]) for port in function.tape.inputs]
        result: Array = function(*arrays)
        return result


def _row_functions(model: Model, rows: Sequence[PositionRow]) -> dict[str, CompiledFunction]:
    """y(q), its derivative by q, its rate, its Jacobian on the joint speeds, its second rate."""
    import casadi as ca

    e = model.equations
    tree, q, t = e.system.tree, e.q, e.t
    a = ca.SX.sym("a", tree.v.shape[0])
    y = ca.vertcat(*[row.expression for row in rows])
    q_dot = tree.N @ tree.v
    rate = ca.jtimes(y, q, q_dot) + ca.jtimes(y, t, ca.SX(1))
    second = ca.jtimes(rate, q, q_dot) + ca.jtimes(rate, t, ca.SX(1)) + ca.jtimes(rate, tree.v, a)
    made = {
        "value": y,
        "by_q": ca.jacobian(y, q),
        "rate": rate,
        "jacobian": ca.jacobian(rate, tree.v),
        "second": second,
    }
    symbols = {"q": q, "v": tree.v, "a": a, "t": t}
    if e.parameters:
        symbols["p"] = e.p
    found = {}
    for name, x in made.items():
        shape = x.shape if name in ("by_q", "jacobian") else (y.shape[0],)
        flat = ca.vec(ca.densify(x).T)
        function = ca.Function(name, list(symbols.values()), [flat], list(symbols), [name])
        sizes = {n: s.shape[0] for n, s in symbols.items()}
        found[name] = compile_tape(shaped_tape(function, sizes, name, shape))
    return found


def rows_by_name(model: Model, names: Sequence[str]) -> Rows:
    """Make rows for coordinates, speeds and measures of position.

    Raises:
        UnknownName: for any other name.
    """
    placed = {n: unit for n, unit, needs_speeds in facts_of(model).measures if not needs_speeds}
    positions: list[PositionRow] = []
    speeds: list[str] = []
    for name in names:
        if name in model.speed_names:
            speeds.append(name)
        elif name in model.coordinates:
            k = model.coordinates.index(name)
            unit = facts_of(model).coordinate_units[k]
            positions.append(PositionRow(name, model.equations.q[k], unit))
        else:
            expression = model.equations.measures[name].expression
            unit = placed[name]
            positions.append(PositionRow(name, expression, unit, is_angle=unit == "rad"))
    return Rows(model, positions, speeds, keep=True)


def full_names(model: Model, names: Sequence[str]) -> list[str]:
    """Full names of the signals that a motion gives.

    Raises:
        InvalidArgument: for a measure of speed.
    """
    signals = [model.signals.resolve(name, *STATE_KINDS) for name in names]
    for name, signal in zip(names, signals, strict=True):
        if signal.kind == "measure" and model.signals.depends_on_speeds(signal.name):
            raise InvalidArgument(
                f"motion: '{name}' is a measure of speed, and a motion is given by coordinates, "
                "joint speeds and measures of position.\n"
                f"  {_equal_speeds(model, signal.name)}Joint speeds: {', '.join(model.speed_names)}"
            )
    return [signal.name for signal in signals]


def _equal_speeds(model: Model, measure: str) -> str:
    """Name the joint speeds that equal a measure of speed at home, for whatever motion there."""
    n = len(model.independent)
    if not n:
        return ""
    q, nu = np.tile(model.home, (n + 1, 1)), np.eye(n + 1, n)  # at rest last
    rates = model.measures(q, nu)[:, model.measure_names.index(measure)]
    miss = np.abs(model.joint_speeds(q, nu) - rates[:, np.newaxis]).max(axis=0)
    if np.ptp(rates) == 0.0:
        return ""
    equal = [n for n, x in zip(model.speed_names, miss, strict=True) if x <= NEGLIGIBLE]
    return f"At home it equals {' and '.join(equal)}; give that instead. " if equal else ""


ORDER = 5  # of the splines that differentiate samples


@dataclass(frozen=True)
class TimeSignal:
    """One quantity over time.

    Attributes:
        name: Coordinate, speed or measure of the model, or a name of the user's own.
        values: Function of times (T,): value and first two derivatives: (3, T).
        exact: Whether derivatives are, or come from splines.
        quick: The same at less expense, for quadrature, where there is such.
    """

    name: str
    values: Callable[[Array], Array]
    exact: bool = True
    quick: Callable[[Array], Array] | None = None


def sampled_signal(name: str, times: Array, samples: Array) -> TimeSignal:
    """Make a signal through samples, by splines of order 5."""
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(times, samples, k=ORDER)
    rates = [spline, spline.derivative(1), spline.derivative(2)]
    return TimeSignal(name, lambda t: np.array([f(t) for f in rates]), exact=False)


def formula_signal(
    model: Model, name: str, given: Any, parameters: Mapping[str, float]
) -> TimeSignal:
    """Make a signal from a number or a formula of time, differentiated exactly.

    Args:
        model: Whose parameters the formula may mention.
        name: Name of the signal.
        given: A number, text, an `Expression`, or a function of time.
        parameters: Values by name.

    Raises:
        InvalidArgument: if it is none of these.
    """
    import casadi as ca

    t = ca.SX.sym("t")
    x = ca.SX(_as_symbol(model, name, given, t, parameters))
    if x.shape != (1, 1):
        raise InvalidArgument(f"motion, '{name}': expected one number of time, got {x.shape}")
    first = ca.jacobian(x, t)
    stacked = ca.densify(ca.vertcat(x, first, ca.jacobian(first, t)))
    function = ca.Function("signal", [t], [stacked], ["t"], ["signal"])
    call = TracedFunction(shaped_tape(function, {"t": 1}, "signal", (3,)))

    def values(times: Array) -> Array:
        found: Array = call(np.asarray(times, dtype=float)[..., np.newaxis])
        return np.moveaxis(found, -1, 0)

    return TimeSignal(name, values)


def _as_symbol(model: Model, name: str, given: Any, t: Any, parameters: Mapping[str, float]) -> Any:
    from axode.symbolic.algebra.formula_symbols import numpy_on_symbols, symbolic_value

    known = dict(model.parameters) | dict(parameters)
    if isinstance(given, str):
        symbols = {n: Parameter(n, float(x)) for n, x in known.items()}
        try:
            given = parse_scalar(given, symbols)
        except ValueError as error:
            raise InvalidArgument(f"motion, '{name}': {error}") from None
    if isinstance(given, Expression):
        return symbolic_value(given, {**known, "t": t})
    if not callable(given):
        return given
    for symbol in (Time(), t):  # a formula of its own, else one of CasADi's
        try:
            with numpy_on_symbols():
                made = given(symbol)
        except (TypeError, AttributeError, ValueError, NotImplementedError, RuntimeError):
            continue
        is_formula = isinstance(made, Expression)
        return symbolic_value(made, {**known, "t": t}) if is_formula else made
    raise NotApplicable(f"motion, '{name}': the function cannot be written as a formula")


def as_signal(
    model: Model, name: str, given: Any, times: Array, parameters: Mapping[str, float]
) -> TimeSignal:
    """Make a signal from a number, a formula, a function or samples.

    A Python function that cannot be traced is called at every time and differentiated by splines.
    """
    array = np.asarray(given) if isinstance(given, np.ndarray | list | tuple) else None
    if array is not None and array.ndim:
        return sampled_signal(name, times, check_samples(name, array, times))
    try:
        return formula_signal(model, name, given, parameters)
    except NotApplicable:
        called = np.array([float(given(float(t))) for t in times])
        return sampled_signal(name, times, check_samples(name, called, times))


def check_samples(name: str, samples: Any, times: Array) -> Array:
    """Require samples that splines can differentiate.

    Raises:
        InvalidArgument: if there are too few, too many or some are not finite.
    """
    array = as_numbers(f"motion, '{name}'", samples)
    if array.shape != times.shape:
        raise InvalidArgument(
            f"motion, '{name}': {array.shape} samples for {times.size} times; give one per time"
        )
    if array.size <= ORDER:
        raise InvalidArgument(
            f"motion, '{name}': {array.size} samples are too few; splines of order {ORDER} need at "
            f"least {ORDER + 1}.\n  Give more samples, or a formula of t"
        )
    if not np.isfinite(array).all():
        worst = float(times[int(np.argmin(np.isfinite(array)))])
        raise InvalidArgument(f"motion, '{name}': the sample at t = {worst:g} s is not finite")
    return array


def check_times(times: Any) -> Array:
    """Require times that increase.

    Raises:
        InvalidArgument: naming the first two that do not.
    """
    array = as_numbers("times", times)
    if array.ndim != 1 or array.size < 2 or not np.isfinite(array).all():
        raise InvalidArgument(f"times: two or more finite times are needed, got {shortened(times)}")
    back = np.flatnonzero(np.diff(array) <= 0)
    if back.size:
        k = int(back[0])
        raise InvalidArgument(
            f"times: they have to increase, and {array[k + 1]:g} s follows {array[k]:g} s "
            f"(samples {k} and {k + 1})"
        )
    return array


Array = npt.NDArray[np.float64]
MISFIT = {True: 1e-7, False: 1e-3}  # relative, of what is exact and of what splines differentiate
TWO_PI = 2 * np.pi


@dataclass(frozen=True)
class MotionSamples:
    """A motion at the times asked for: (..., T, size) each, independent speeds and their rates."""

    times: Array
    q: Array
    nu: Array
    nu_dot: Array
    described: DescribedStates | None = None  # by other models, where the user's is singular


# the whole motion --------------------------------------------------------------------------------


class DesiredMotion:
    """Some signals of a motion, and the motion of everything that follows from them."""

    def __init__(
        self, model: Model, rows: Rows, signals: Sequence[TimeSignal], conditions: Conditions
    ) -> None:
        order = {signal.name: signal for signal in signals}
        self.model, self.rows, self.conditions = model, rows, conditions
        self.signals = [order[name] for name in rows.names]
        self.count = len(rows.positions)
        self.exact = all(signal.exact for signal in signals)

    def solve(self, times: Array, start: StateArgument) -> MotionSamples:
        """Solve for the motion at all times, from a start.

        Raises:
            InvalidArgument: if the constraints do not allow it, or it is not determined.
        """
        at = self.desired_values(times)
        first = self._start(float(times[0]), start)
        q = self._close(self._integrate(times, first, at[0]), times, at[0])
        described = choose_models(self.model, q, self.conditions_at(times))
        own = np.flatnonzero(~described.elsewhere)
        nu, nu_dot = (np.zeros((times.size, len(self.model.independent))) for _ in range(2))
        for model, (k, *_) in [(self.model, (own,)), *described.others()]:
            part, there = self._described_by(model), tuple(x[k] for x in at)
            nu[k], misfit = part.fit_speeds(q[k], there, times[k], determined=True, warn=True)
            self.check_misfit(misfit, at[1], times[k], "speeds")
            nu_dot[k], misfit = part.fit_accelerations(q[k], nu[k], there, times[k])
            self.check_misfit(misfit, at[2], times[k], "accelerations")
        return MotionSamples(times, q, nu, nu_dot, described)

    def _described_by(self, model: Model) -> DesiredMotion:
        """Solve the same motion on another model's speeds."""
        if model is self.model:
            return self
        part = copy(self)
        part.model = model
        return part

    def residuals(self, times: Array, start: StateArgument) -> Array:
        """What the nearest admissible speeds leave of each row: (T, rows) [m/s or rad/s]."""
        at = self.desired_values(times)
        q = self._integrate(times, self._start(float(times[0]), start), at[0])
        return self.fit_speeds(q, at, times, determined=True)[1]

    def desired_values(self, times: Array, *, quick: bool = False) -> tuple[Array, Array, Array]:
        """Positions, rates and second rates of the rows; a speed's own value is a rate.

        Args:
            times: (T,) [s]
            quick: Use the less exact values of signals that offer them.

        Returns:
            Arrays (T, rows), positions without the rows of speeds.
        """
        signals = [(s.quick if quick else None) or s.values for s in self.signals]
        found = np.array([values(times) for values in signals])  # rows, 3, T
        if not np.isfinite(found).all():
            row, _, k = (int(i[0]) for i in np.nonzero(~np.isfinite(found)))
            raise InvalidArgument(
                f"motion, '{self.rows.names[row]}': it or a derivative is not finite at "
                f"t = {np.atleast_1d(times)[k]:g} s"
            )
        found = np.moveaxis(found, 0, -1)  # 3, T, rows
        n = self.count
        rates = np.concatenate([found[1][..., :n], found[0][..., n:]], axis=-1)
        seconds = np.concatenate([found[2][..., :n], found[1][..., n:]], axis=-1)
        return found[0][..., :n], rates, seconds

    def conditions_at(self, t: Any) -> Conditions:
        """Conditions of the motion at given times."""
        return replace(self.conditions, t=t)

    def rate_matrix(self, q: Array, t: Any) -> tuple[Array, Array, Array]:
        """Rates of the rows for unit independent speeds, all speeds likewise, and those at rest.

        Args:
            q: Coordinates, (..., size).
            t: Time [s], one or one per configuration.

        Raises:
            SingularConfiguration: where the rows or the speeds of the mechanism are singular.
        """
        conditions = self.conditions_at(t)
        Theta = self.model.speed_map(q, **conditions.options)
        rest = np.zeros((*q.shape[:-1], len(self.model.independent)))
        v0 = self.model.joint_speeds(q, rest, **conditions.options)
        G = self.rows.call("jacobian", q, conditions) @ Theta
        G = np.concatenate([G, Theta[..., self.rows.speeds, :]], axis=-2)
        if not np.isfinite(G).all():
            self._raise_singular(G, q, t)
        return G, Theta, v0

    def _raise_singular(self, G: Array, q: Array, t: Any) -> NoReturn:
        """Raise the error of the first configuration whose rates are not finite."""
        place = tuple(np.argwhere(~np.isfinite(G).all(axis=(-2, -1)))[0])
        when = float(np.broadcast_to(t, q.shape[:-1])[place])
        cause, better = describe_own_loss(self.model, q[place], self.conditions_at(when))
        raise SingularConfiguration(
            f"'{self.model.name}' is at t = {when:.6g} s at a singular configuration: {cause}.\n  "
            f"{better or 'Begin a little away from it, start={...}, or leave that time out'}",
            None,
            when,
        )

    def fit_speeds(
        self,
        q: Array,
        at: tuple[Array, Array, Array],
        t: Any,
        *,
        determined: bool,
        warn: bool = False,
    ) -> tuple[Array, Array]:
        """Fit independent speeds to the rates by least squares.

        Args:
            q: Coordinates, (T, size).
            at: What `desired_values` returned at the times.
            t: Times, (T,) [s].
            determined: Require that the rows determine all speeds.
            warn: Warn where they nearly fail to.

        Returns:
            Speeds, and what is left of every row: (T, size) each.

        Raises:
            InvalidArgument: naming speeds that are not determined.
        """
        G, _, v0 = self.rate_matrix(q, t)
        own = self.rows.call("rate", q, self.conditions_at(t), v=v0)
        need = at[1] - np.concatenate([own, v0[..., self.rows.speeds]], axis=-1)
        if determined:
            self._require_determined(G, t)
        if warn and len(q) and self.model.has_equations:
            usual = usual_margin(self.model, self._margins)
            warn_of_signals(self.model, self.rows.names, self._smallest(G), t, usual)
        nu = _fit(G, need)
        return nu, (G @ nu[..., np.newaxis])[..., 0] - need

    def _margins(self, q: Array, conditions: Conditions) -> Array:
        return self._smallest(self.rate_matrix(q, np.zeros(len(q)))[0])

    def _smallest(self, G: Array) -> Array:
        """Smallest singular value of rates for unit speeds, in parts of the mechanism's length."""
        facts, length = facts_of(self.model), self.model.equations.system.assembly.extent
        units = [row.unit for row in self.rows.positions]
        units += [facts.speed_units[k].removesuffix("/s") for k in self.rows.speeds]
        own = [facts.speed_units[self.model.speed_names.index(n)] for n in facts.independent]
        rows = np.array([length if unit == "m" else 1.0 for unit in units])
        columns = np.array([length if unit == "m/s" else 1.0 for unit in own])
        return singular_values(G * columns / rows[:, np.newaxis])[..., -1]

    def fit_accelerations(
        self, q: Array, nu: Array, at: tuple[Array, Array, Array], t: Any
    ) -> tuple[Array, Array]:
        """Fit independent accelerations likewise."""
        conditions = self.conditions_at(t)
        G, _, _ = self.rate_matrix(q, t)
        v = self.model.joint_speeds(q, nu, **conditions.options)
        a0 = self.model.accelerations(q, nu, np.zeros_like(nu), **conditions.options)
        own = self.rows.call("second", q, conditions, v=v, a=a0)
        need = at[2] - np.concatenate([own, a0[..., self.rows.speeds]], axis=-1)
        nu_dot = _fit(G, need)
        return nu_dot, (G @ nu_dot[..., np.newaxis])[..., 0] - need

    def _integrate(self, times: Array, q0: Array, positions: Array) -> Array:
        """Integrate the rates of the coordinates, unless their positions are given."""
        names = self.rows.names[: self.count]
        if set(self.model.coordinates) <= set(names):
            return positions[:, [names.index(name) for name in self.model.coordinates]]
        if times.size == 1:
            return q0[np.newaxis]

        def rates_at(t: Array) -> Rates:
            at = self.desired_values(t, quick=True)

            def rates(q: Array) -> Array:
                described = choose_models(self.model, q, self.conditions_at(t))
                if not described.elsewhere.any():
                    return rates_by(self, q, slice(None))
                own = np.flatnonzero(~described.elsewhere)
                found = np.empty(q.shape)
                for model, (k, *_) in [(self.model, (own,)), *described.others()]:
                    found[k] = rates_by(self._described_by(model), q, k)
                return found

            def rates_by(part: DesiredMotion, q: Array, k: Any) -> Array:
                nu, _ = part.fit_speeds(q[k], tuple(x[k] for x in at), t[k], determined=False)
                return part.model.rates(q[k], nu, **self.conditions_at(t[k]).options)

            return rates

        tolerance = 1e-8 if self._is_determined(q0, float(times[0])) else 1e-11
        q, reached = integrate(rates_at, times, q0, tolerance)
        if reached != times[-1] or not np.isfinite(q).all():
            raise InvalidArgument(
                f"motion: it cannot be followed beyond t = {reached:.6g} s; the mechanism is at a "
                "singular configuration there, or cannot reach what is asked"
            )
        return q

    def _is_determined(self, q: Array, t: float) -> bool:
        """Return whether loops, contacts and the rows determine every coordinate."""
        J = self._position_jacobian(q, np.asarray(t))
        return bool(J.shape[0]) and int(rank(J, 1e-7, floor=1.0)) == q.size

    def _start(self, t: float, start: StateArgument) -> Array:
        """A configuration that the motion starts from, coordinates given by name kept."""
        q = self.model.home if start.q is None else start.q.copy()
        held = np.zeros(q.size, dtype=bool)
        for name, value in start.named.items():
            k = self.model.signals.resolve(name, "coordinate").index
            q[k], held[k] = float(value), True
        wanted, _, _ = self.desired_values(np.array([t]))
        return self._close(q[np.newaxis], np.array([t]), wanted, ~held)[0]

    def _position_residual(self, q: Array, t: Any, wanted: Array) -> Array:
        conditions = self.conditions_at(t)
        miss = self.rows.call("value", q, conditions) - wanted
        turns = np.round(miss / TWO_PI) * TWO_PI
        miss = miss - np.where(self.rows.angles, turns, 0.0) if self.count else miss
        parts = [miss, self.model.residual(q, **conditions.options)]
        parts += [
            (q[..., list(four)] ** 2).sum(axis=-1, keepdims=True) - 1
            for four in facts_of(self.model).quaternions
        ]
        return np.concatenate(parts, axis=-1)

    def _position_jacobian(self, q: Array, t: Any) -> Array:
        conditions = self.conditions_at(t)
        blocks = [
            self.rows.call("by_q", q, conditions),
            self.model.residual_jacobian(q, **conditions.options),
        ]
        for four in map(list, facts_of(self.model).quaternions):
            row = np.zeros((*q.shape[:-1], 1, q.shape[-1]))
            row[..., 0, four] = 2 * q[..., four]
            blocks.append(row)
        return np.concatenate(blocks, axis=-2)

    def _close(
        self, q: Array, times: Array, wanted: Array, free: npt.NDArray[np.bool_] | None = None
    ) -> Array:
        """Solve loops, contacts and given positions for the coordinates, all samples at once."""
        columns = coordinate_units(self.model)
        q, error = find_roots(
            lambda x, k: self._position_residual(x, times[k], wanted[k]),
            lambda x, k: self._position_jacobian(x, times[k]),
            q,
            rows=self._position_units,
            columns=columns if free is None else columns * free,
        )
        if not (error <= NEGLIGIBLE).all():
            self._raise_open(q, times, wanted)
        return q

    @property
    def _position_units(self) -> Array:
        """One unit of each row that positions must satisfy."""
        given = in_units(self.model, [row.unit for row in self.rows.positions])
        ones = np.ones(len(facts_of(self.model).quaternions))
        return np.concatenate([given, residual_units(self.model), ones])

    # errors ------------------------------------------------------------------------------------

    def _raise_open(self, q: Array, times: Array, wanted: Array) -> None:
        r = np.abs(self._position_residual(q, times, wanted))
        relative = np.nan_to_num(r / self._position_units, nan=np.inf)
        sample, row = np.unravel_index(int(np.argmax(relative)), r.shape)
        names = [
            *self.rows.names[: self.count],
            *self.model.residual_rows,
            *("unit quaternion" for _ in facts_of(self.model).quaternions),
        ]
        raise InvalidArgument(
            f"motion: the constraints do not allow it: '{names[int(row)]}' stays off by "
            f"{r[sample, row]:.3g} (m or rad) at t = {times[int(sample)]:.6g} s.\n  "
            "Give fewer signals, values within reach, or a start nearer to the motion with "
            "start={...}"
        )

    def _require_determined(self, G: Array, t: Any) -> None:
        n = len(self.model.independent)
        if _is_identity(G):
            return
        scaled = G / np.abs(G).max(axis=-1, keepdims=True).clip(1e-12)
        ranks = rank(scaled, RANK)
        if (ranks == n).all():
            return
        k = int(np.argmax(ranks < n))
        weights = np.abs(null_space(scaled[k], rank=int(ranks[k]))).max(axis=1)
        loose = [name for name, w in zip(self.model.independent, weights, strict=True) if w > 1e-6]
        given = ", ".join(self.rows.names)
        verb = "leaves" if len(self.rows.names) == 1 else "leave"
        where = ", with others={...} of paths.follow" if given.startswith("path.") else ""
        more = n - int(ranks[k])
        raise InvalidArgument(
            f"motion: {given} {verb} {', '.join(loose)} undetermined at t = "
            f"{np.atleast_1d(t)[k]:.6g} s.\n  '{self.model.name}' has {n} independent speeds: give "
            f"{more} more signal{'s' * (more > 1)} of time, such as {loose[0]} or its "
            f"coordinate{where}"
        )

    def check_misfit(self, misfit: Array, size: Array, times: Array, what: str) -> None:
        """Require that speeds or accelerations give what was asked for.

        Args:
            misfit: What is left of every row, (T, rows).
            size: What was asked for.
            times: (T,) [s]
            what: "speeds" or "accelerations".

        Raises:
            InvalidArgument: naming the time and the row.
        """
        worst = np.abs(misfit)
        allowed = MISFIT[self.exact] * max(1.0, float(np.abs(size).max(initial=0.0)))
        if worst.max(initial=0.0) <= allowed:
            return
        sample, row = np.unravel_index(int(np.argmax(worst)), worst.shape)
        raise InvalidArgument(
            f"motion: the constraints do not allow these {what}: at t = {times[int(sample)]:.6g} s "
            f"'{self.rows.names[int(row)]}' misses what is asked by {worst.max():.3g}.\n  "
            f"Give fewer signals ({len(self.model.independent)} independent ones determine the "
            "motion), or some that belong together"
        )


def _is_identity(A: Array) -> bool:
    """Return whether the independent speeds themselves are given, in their order."""
    return A.shape[-2] == A.shape[-1] and bool((np.eye(A.shape[-1]) == A).all())


def _fit(A: Array, b: Array) -> Array:
    """Fit by least squares of least norm, over any leading axes."""
    if A.shape[-2] == A.shape[-1] == 1 and (np.abs(A) > 1e-12).all():
        return b / A[..., 0]
    if _is_identity(A):
        return b
    return least_norm(A, b, RANK)
