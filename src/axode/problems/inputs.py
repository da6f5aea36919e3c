"""Inputs of a simulation: what the motors and outside wrenches do.

An input may be a number, a formula of time, a function of the state traced once into machine code,
a table of samples, or a Python function that is called at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.codegen.formulas import Formula, Vector, formula_tape
from axode.codegen.library import SymbolicLibrary
from axode.codegen.model import Model
from axode.codegen.tape import Tape
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.mechanism.expressions import Expression, Parameter, evaluate, parse_scalar

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """Inputs given at equal intervals.

    Args:
        values: By name, each (samples,) or (runs, samples); or one array (..., samples, inputs).
        period: Between samples [s].
        start: Time of the first one [s].
        between: "hold" keeps a value until the next, "linear" joins them.
    """

    values: Mapping[str, npt.ArrayLike] | npt.ArrayLike
    period: float
    start: float = 0.0
    between: Literal["hold", "linear"] = "hold"

    def table(self, model: Model) -> Array:
        """All inputs, (samples, inputs) or (runs, samples, inputs), limits kept."""
        if isinstance(self.values, Mapping):
            _known(model, self.values)
            columns = [np.asarray(self.values.get(name, 0.0), dtype=float) for name in model.inputs]
            table = np.stack(np.broadcast_arrays(*columns), axis=-1)
        else:
            table = np.asarray(self.values, dtype=float)
        if table.ndim < 2 or table.shape[-1] != len(model.inputs):
            raise InvalidArgument(
                f"sampled inputs: expected arrays of samples for {', '.join(model.inputs)}, got "
                f"shape {table.shape}"
            )
        if not self.period > 0:
            raise InvalidArgument(f"sampled inputs: period must be > 0 s, got {self.period}")
        return limited(model, table)


@dataclass(frozen=True)
class Callback:
    """A Python function that is called at every step: slow, and free to do anything.

    Args:
        function: Of time and a mapping of the state (coordinates, speeds, measures by name); gives
            inputs by name, or all of them.
    """

    function: Callable[[float, Mapping[str, float]], Any]


@dataclass(frozen=True)
class InputPlan:
    """What a run needs to know of its input: one of a constant, a tape, samples, a callback."""

    constant: Array | None = None
    tape: Tape | None = None
    sampled: Sampled | None = None
    callback: Callback | None = None


def plan_input(model: Model, given: Any) -> InputPlan:
    """Understand what the user gave as input.

    Raises:
        UnknownName: for an input the model does not have.
        InvalidArgument: for anything that is not an input.
    """
    if given is None:
        return InputPlan(constant=np.zeros(len(model.inputs)))
    if isinstance(given, Sampled):
        return InputPlan(sampled=given)
    if isinstance(given, Callback):
        return InputPlan(callback=given)
    if callable(given):
        return InputPlan(tape=_traced(model, given))
    if isinstance(given, Mapping):
        return _by_name(model, given)
    array = np.asarray(given, dtype=float)
    if array.ndim == 0 or array.shape[-1] != len(model.inputs):
        raise InvalidArgument(
            f"input: expected {len(model.inputs)} numbers ({', '.join(model.inputs)}), got shape "
            f"{array.shape}"
        )
    return InputPlan(constant=limited(model, array))


def limited(model: Model, u: Array) -> Array:
    """Inputs cut to what the motors can give."""
    bounds = np.array([np.inf if x is None else x for x in model.facts.limits]
                      + [np.inf] * (len(model.inputs) - model.facts.motors))  # fmt: skip
    return np.clip(u, -bounds, bounds)


def _as_array(model: Model, made: Any) -> Array:
    """Inputs that a callback gave, by name or all of them."""
    if isinstance(made, Mapping):
        _known(model, made)
        return np.array([float(made.get(name, 0.0)) for name in model.inputs])
    array = np.asarray(made, dtype=float).reshape(-1)
    if array.size != len(model.inputs):
        raise InvalidArgument(
            f"callback: expected {len(model.inputs)} inputs ({', '.join(model.inputs)}), got "
            f"{array.size}"
        )
    return array


def _known(model: Model, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in model.inputs:
            raise UnknownName(f"model '{model.name}'", "input", name, model.inputs)


def _by_name(model: Model, given: Mapping[str, Any]) -> InputPlan:
    _known(model, given)
    plain = {n: v for n, v in given.items() if not isinstance(v, str | Expression)}
    if len(plain) == len(given) and not any(callable(v) or _is_symbolic(v) for v in given.values()):
        columns = [np.asarray(given.get(name, 0.0), dtype=float) for name in model.inputs]
        return InputPlan(constant=limited(model, np.stack(np.broadcast_arrays(*columns), axis=-1)))
    if any(callable(v) or _is_symbolic(v) for v in plain.values()):
        return InputPlan(tape=_traced(model, lambda s: {n: _called(v, s, model)
                                                        for n, v in given.items()}))  # fmt: skip
    return InputPlan(tape=_formula_input(model, given))


def _is_symbolic(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "casadi"


def _called(value: Any, state: Any, model: Model) -> Any:
    if isinstance(value, str | Expression):
        formula = _formula(model, value)
        known = {name: state[name] for name in model.parameters}
        return evaluate(formula, known | {"t": state.t})
    return value(state) if callable(value) else value


def _formula(model: Model, value: str | Expression) -> Any:
    if isinstance(value, Expression):
        return value
    parameters = {name: Parameter(name, default) for name, default in model.parameters.items()}
    try:
        return parse_scalar(value, parameters)
    except ValueError as error:
        raise InvalidArgument(f"input: {error}") from None


def _formula_input(model: Model, given: Mapping[str, Any]) -> Tape:
    """Formulas of time and parameters as a tape, without CasADi."""
    free = model.parameters if not model.facts.fixed else {}

    def inputs(t: Vector, p: Vector | None = None) -> dict[str, Vector]:
        values: dict[str, Any] = dict(model.parameters) | {"t": t[0]}
        values |= dict(zip(free, p or [], strict=True))
        zero = 0.0 * t[0]
        made = []
        for k, name in enumerate(model.inputs):
            item = given.get(name, 0.0)
            if isinstance(item, str | Expression):
                item = evaluate(_formula(model, item), values)
            value: Formula = zero + item
            limit = model.facts.limits[k] if k < model.facts.motors else None
            made.append(value if limit is None else value.least(limit).most(-limit))
        return {"u": made}

    sizes = {"t": 1} | ({"p": len(free)} if free else {})
    return formula_tape("input", sizes, inputs)


def _traced(model: Model, function: Callable[..., Any]) -> Tape:
    """A function of the state's symbols as a tape."""
    return traced_tape(model, "input", lambda state: _as_inputs(model, function(state)))


def _as_inputs(model: Model, made: Any) -> list[Any]:
    import casadi as ca

    if isinstance(made, Mapping):
        _known(model, made)
        items = [made.get(name, 0.0) for name in model.inputs]
    else:
        items = ca.vertsplit(ca.SX(made)) if _is_symbolic(made) else list(made)
    if len(items) != len(model.inputs):
        raise InvalidArgument(
            f"input: the function gives {len(items)} values, the model takes {len(model.inputs)}"
        )
    limits = [*model.facts.limits, *[None] * (len(items) - model.facts.motors)]
    return [ca.SX(x) if b is None else ca.fmax(ca.fmin(ca.SX(x), b), -b)
            for x, b in zip(items, limits, strict=True)]  # fmt: skip


def traced_tape(model: Model, name: str, function: Callable[[Any], list[Any]]) -> Tape:
    """Expressions of the state as a tape of t, q, nu and free parameters."""
    import casadi as ca

    from axode.codegen.library import shaped_tape
    from axode.symbolic.measures import StateSymbols

    if not isinstance(model.library, SymbolicLibrary):
        raise NotApplicable(
            f"{name}: functions of the state need the mechanism; this model was read from a file. "
            "Use formulas of time, Sampled(...) or Callback(...)."
        )
    e = model.library.equations
    values = ca.vertcat(*function(StateSymbols(e)))
    if model.facts.fixed and e.parameters:
        values = ca.substitute(values, e.p, ca.DM(e.system.defaults))
    symbols = {"t": e.t, "q": e.q, "nu": e.nu}
    if e.parameters and not model.facts.fixed:
        symbols["p"] = e.p
    made = ca.Function(name, list(symbols.values()), [values], list(symbols), [name])
    return shaped_tape(made, {n: s.shape[0] for n, s in symbols.items()}, name, (values.shape[0],))
