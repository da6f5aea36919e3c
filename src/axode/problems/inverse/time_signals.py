"""Signals: quantities given over time, as formulas or as samples, with two derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, shortened
from axode.mechanism.values.expressions import Expression, Parameter, Time, parse_scalar
from axode.model.function_source import shaped_tape
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.problems.inputs.tracing import TracedFunction

Array = npt.NDArray[np.float64]
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
