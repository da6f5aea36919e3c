"""Inputs of a simulation: what the motors and outside wrenches do.

An input may be a number, a formula of time, a function of the state traced once into machine code,
a table of samples, a trajectory, or a Python function that is called at every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import TAPE_FUNCTIONS, Formula, Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, shortened
from axode.mechanism.values.expressions import Expression, evaluate
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import check_tracked, real_array
from axode.names import NamedValues
from axode.numerics.tolerances import ON_TIME
from axode.problems.arguments import number
from axode.problems.inputs.laws import Law
from axode.problems.inputs.state_formulas import parse_formula
from axode.problems.inputs.tracing import is_symbolic, saturate, traced_tape

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
JOINED = (
    "laws and formulas of t are joined by name, {name: law, name: formula}; for noise and samples "
    "beside a law, call the law in a loop around model.stepper(...)"
)
MAX_SAMPLES = 10_000_000  # of an input


@dataclass(frozen=True)
class Sampled:
    """Inputs given at equal intervals.

    Before the first sample its value holds, after the last one that of the last.

    Args:
        values: By name, each (samples,) or (runs, samples); or one array (..., samples, inputs).
        period: Between samples [s].
        start: Time of the first one [s].
        between: "hold" keeps a value until the next, "linear" joins them.
        time_first: Whether samples are along the first axis of arrays, as a loop over time stacks
            them: (samples, runs), or one array (samples, runs, inputs).
    """

    values: Mapping[str, npt.ArrayLike] | npt.ArrayLike
    period: float
    start: float = 0.0
    between: Literal["hold", "linear"] = "hold"
    time_first: bool = False

    def checked(self, model: Model) -> SampleTable:
        """Make a table of all inputs of a model, within the limits of its motors.

        Raises:
            InvalidArgument: for invalid shapes, numbers or choices.
        """
        if not isinstance(self.between, str) or self.between not in ("hold", "linear"):
            shown = shortened(self.between)
            raise InvalidArgument(f"between: {shown} is neither 'hold' nor 'linear'")
        period, start = (
            number(f"sampled inputs: {name}", getattr(self, name), "a number of seconds")
            for name in ("period", "start")
        )
        if not (np.isfinite(period) and period > 0):
            raise InvalidArgument(f"sampled inputs: period must be > 0 s, got {self.period}")
        if not np.isfinite(start):
            raise InvalidArgument(f"sampled inputs: start must be finite, got {self.start}")
        if isinstance(self.values, Mapping):
            table = _stacked(model, {n: self._last(v, -1) for n, v in self.values.items()})
        else:
            table = self._last(_numbers("sampled inputs", self.values), -2)
        if table.ndim < 2 or table.shape[-1] != len(model.inputs) or not table.shape[-2]:
            raise InvalidArgument(
                f"sampled inputs: expected arrays of samples for {', '.join(model.inputs)}, got "
                f"shape {table.shape}"
            )
        _refuse_nan(model, table)
        limits = np.ascontiguousarray(limit_inputs(model, table))
        return SampleTable(limits, float(self.period), float(self.start), self.between)

    def _last(self, values: Any, axis: int) -> Any:
        """Return values whose samples are along the axis of a table."""
        shape = np.shape(values) if self.time_first else ()
        return np.moveaxis(np.asarray(values), 0, axis) if len(shape) > -axis else values


@dataclass(frozen=True)
class SampleTable:
    """Samples of all inputs, (samples, inputs) or (runs, samples, inputs)."""

    table: Array
    period: float
    start: float
    between: str

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.table.shape[-2]

    def numbers(self) -> dict[str, float]:
        """Numbers that steps read, by the names of their buffers."""
        return {
            "sample_start": self.start,
            "sample_period": self.period,
            "sample_count": self.count,
        }

    def at(self, times: Array, runs: Any = None) -> Array:
        """Inputs of all runs at some times, or of one run or several at a time of each."""
        table = self.table
        place = np.clip((times - self.start) / self.period, 0.0, self.count - 1.0)
        row = np.floor(place + (1e-9 if self.between == "hold" else 0.0)).astype(int)

        def samples(row: npt.NDArray[np.intp]) -> Array:
            found: Array = (
                table[..., row, :] if runs is None or table.ndim == 2 else table[runs, row]
            )
            return found

        values = samples(row)
        if self.between == "linear":
            after = samples(np.minimum(row + 1, self.count - 1))
            values = values + (place - row)[..., np.newaxis] * (after - values)
        return values

    def rate_at(self, times: Array) -> Array:
        """How fast the inputs of all runs change at some times [1/s]."""
        place = (times - self.start) / self.period
        inside = (place >= 0) & (place < self.count - 1) & (self.between == "linear")
        row = np.clip(np.floor(place), 0, max(self.count - 2, 0)).astype(int)
        after = np.minimum(row + 1, self.count - 1)
        rates: Array = (self.table[..., after, :] - self.table[..., row, :]) / self.period
        return rates * inside[:, np.newaxis]


@dataclass(frozen=True)
class Callback:
    """A Python function that is called at every step: slow, and free to do anything.

    Its inputs are held during the step; there is a step from every saved sample to the next, or
    more.

    Args:
        function: Called with the time and a mapping of the state (coordinates, speeds and measures
            by name); returns inputs by name, or all of them.
    """

    function: Callable[[float, Mapping[str, float]], Any]


@dataclass(frozen=True)
class Updates:
    """What samples change of the memory of a law.

    Attributes:
        tape: t, q, nu, due (p, gains) to nu after the samples that are due.
        periods: Times between samples [s], one for each number of `due`.
    """

    tape: Tape
    periods: tuple[float, ...]


@dataclass(frozen=True)
class InputPlan:
    """The input of runs: one of a constant, a tape, samples, a callback."""

    constant: Array | None = None  # (inputs,) or (runs, inputs)
    tape: Tape | None = None
    sampled: SampleTable | None = None
    callback: Callback | None = None
    gains: Array | None = None  # of the tape, (gains,) or (runs, gains)
    updates: Updates | None = None  # of what a law samples

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch that it is for; () if it serves any."""
        if self.constant is not None:
            return self.constant.shape[:-1]
        if self.gains is not None:
            return self.gains.shape[:-1]
        return () if self.sampled is None else self.sampled.table.shape[:-2]

    def spread(self, batch: tuple[int, ...]) -> InputPlan:
        """Plan with one axis for all runs of a batch."""
        if not self.batch:
            return self
        if self.constant is not None:
            return replace(self, constant=_spread(self.constant, batch))
        if self.gains is not None:
            return replace(self, gains=_spread(self.gains, batch))
        assert self.sampled is not None
        table = self.sampled.table
        full = np.broadcast_to(table, (*batch, *table.shape[-2:])).reshape(-1, *table.shape[-2:])
        return replace(self, sampled=replace(self.sampled, table=np.ascontiguousarray(full)))

    def part(self, runs: npt.NDArray[np.intp]) -> InputPlan:
        """Plan of some runs only."""
        if not self.batch:
            return self
        if self.constant is not None:
            return replace(self, constant=self.constant[runs])
        if self.gains is not None:
            return replace(self, gains=self.gains[runs])
        assert self.sampled is not None
        table = np.ascontiguousarray(self.sampled.table[runs])
        return replace(self, sampled=replace(self.sampled, table=table))


def _spread(array: Array, batch: tuple[int, ...]) -> Array:
    """One row per run of a batch."""
    return np.broadcast_to(array, (*batch, array.shape[-1])).reshape(-1, array.shape[-1])


def plan_input(
    model: Model, given: Any, speeds: Sequence[str] | None = None, *, gains: bool = False
) -> InputPlan:
    """Make a plan of what the user gave as input.

    Args:
        model: Whose input it is.
        given: What the user gave.
        speeds: What the user calls nu, where the model has other independent speeds.
        gains: Whether gains of a `Law` are arguments, which may differ from run to run.

    Raises:
        UnknownName: for an input the model does not have.
        InvalidArgument: for anything that is not an input.
    """
    from axode.results.trajectory import Trajectory

    given = inputs_of_sample(model, given)
    if given is None or (isinstance(given, Trajectory) and not model.inputs):
        return InputPlan(constant=np.zeros(len(model.inputs)))
    if isinstance(given, Sampled):
        return InputPlan(sampled=given.checked(model))
    if isinstance(given, Callback):
        return InputPlan(callback=given)
    if isinstance(given, Trajectory):
        return InputPlan(sampled=_from_trajectory(model, given).checked(model))
    if isinstance(given, str | Expression):
        raise InvalidArgument(
            f"input: {shortened(given)} needs the name of an input, {{name: formula}}. Inputs: "
            f"{', '.join(model.inputs)}"
        )
    if is_symbolic(given):
        return InputPlan(tape=_traced(model, lambda s: given, speeds))
    if isinstance(given, Law) and given.memory and isinstance(model, ModelWithMemory):
        return _plan_memory(model, given, gains=gains)
    if isinstance(given, Law) and gains and given.gains:
        tape = _traced(model, given.function, speeds, tuple(given.gains))
        return InputPlan(tape=tape, gains=given.array())
    if callable(given):
        return InputPlan(tape=_traced(model, given, speeds))
    if isinstance(given, Mapping):
        return _by_name(model, given, speeds)
    if isinstance(given, list | tuple) and any(
        callable(x) or isinstance(x, Sampled) for x in given
    ):
        raise InvalidArgument(f"input: {shortened(given)} is not one input; {JOINED}")
    array = _numbers("input", given)
    if array.ndim == 0 or array.shape[-1] != len(model.inputs):
        raise InvalidArgument(
            f"input: expected {len(model.inputs)} numbers ({', '.join(model.inputs)}), got shape "
            f"{array.shape}"
        )
    _refuse_nan(model, array)
    return InputPlan(constant=limit_inputs(model, array))


def _from_trajectory(model: Model, run: Trajectory) -> Sampled:
    """Inputs of a trajectory, joined by straight lines.

    Times that are not equally spaced are resampled at their shortest interval.

    Raises:
        InvalidArgument: naming motors that the trajectory lacks.
    """
    missing = [name for name in model.inputs[: facts_of(model).motors] if name not in run.names]
    if missing:
        raise InvalidArgument(
            f"input: {run!r} has no columns of {', '.join(missing)}; give a trajectory of inverse "
            "or simulate for this model, or inputs by name"
        )
    given = run[[name for name in model.inputs if name in run.names]]
    first, last = sorted((float(run.time[0]), float(run.time[-1])))
    count, period = len(run), 1.0
    if count > 1:
        steps = np.abs(np.diff(run.time))
        if np.ptp(steps) > ON_TIME * (last - first):
            count = 1 + math.ceil((last - first) / float(steps.min()) - ON_TIME)
        if count > MAX_SAMPLES:
            raise InvalidArgument(
                f"input: samples {steps.min():.3g} s apart would make {count} of equal distance; "
                "resample the trajectory first: run.resample(times)"
            )
        period = (last - first) / (count - 1)
        if count != len(run):
            times = np.linspace(float(run.time[0]), float(run.time[-1]), count)
            given = given.resample(times, method="linear")
    values = given.values if run.time[0] <= run.time[-1] else given.values[..., ::-1, :]
    columns = {name: values[..., k] for k, name in enumerate(given.names)}
    return Sampled(columns, period, first, "linear")


def inputs_of_sample(model: Model, given: Any) -> Any:
    """Inputs of the sample of a trajectory, as `run.at(t)` gives it; anything else as it is."""
    if not isinstance(given, NamedValues):
        return given
    return {name: given[name] for name in model.inputs}


def limit_inputs(model: Model, u: Array) -> Array:
    """Cut inputs to the limits of the motors."""
    bounds = input_bounds(model)
    return np.clip(u, -bounds, bounds)


def is_cut(model: Model, u: Array) -> npt.NDArray[np.bool_]:
    """Return which of the inputs, after `limit_inputs`, are at the limit of their motor."""
    at_limit: npt.NDArray[np.bool_] = np.abs(u) >= input_bounds(model)
    return at_limit


def input_bounds(model: Model) -> Array:
    """Largest absolute value of each input: the limits of the motors, infinity for the rest."""
    limits = [np.inf if x is None else x for x in facts_of(model).limits]
    return np.array([*limits, *[np.inf] * (len(model.inputs) - len(limits))])


class InputReader:
    """Reads what a loop gives as inputs again and again, within the limits of the motors.

    Args:
        model: Whose inputs they are.
        what: What gives them, in messages.
    """

    def __init__(self, model: Model, what: str = "callback") -> None:
        self._model, self._bounds, self._what = model, input_bounds(model), what
        self._limited = bool(np.isfinite(self._bounds).any())
        self._places: dict[tuple[Any, ...], list[int]] = {}  # by the names that were given

    def __call__(self, given: Any) -> Array:
        """Return all inputs, from numbers in order or by name."""
        u = self._read(given)
        if self._limited:
            np.minimum(np.maximum(u, -self._bounds, out=u), self._bounds, out=u)
        return u

    def _read(self, given: Any) -> Array:
        named, count = type(given) is dict, len(self._model.inputs)
        values = list(given.values()) if named else given
        if not named and not (type(given) is list and len(given) == count):
            return _all_inputs(self._model, given, self._what)
        if not {*map(type, values)} <= {float, int, np.float64}:
            return _all_inputs(self._model, given, self._what)
        if not named:
            return np.array(values, dtype=float)
        names, u = tuple(given), np.zeros(count)
        if names not in self._places:
            full = self._model.signals.names("input").by_full_name(given)
            self._places[names] = [self._model.inputs.index(name) for name in full]
        for place, value in zip(self._places[names], values, strict=True):
            u[place] = value
        return u


def _all_inputs(model: Model, made: Any, what: str) -> Array:
    """All inputs of the model, from what a callback or a loop gives."""
    if isinstance(made, Mapping):
        made = _in_order(model, made)
    array = np.zeros(0) if made is None else np.array(_numbers(what, made)).reshape(-1)
    if array.size != len(model.inputs):
        raise InvalidArgument(
            f"{what}: expected {len(model.inputs)} inputs ({', '.join(model.inputs)}), got "
            f"{array.size}"
        )
    return array


def _in_order(model: Model, given: Mapping[str, Any]) -> list[Any]:
    """Inputs in the model's order, zero where none is given."""
    named = model.signals.names("input").by_full_name(given)
    return [named.get(name, 0.0) for name in model.inputs]


def _numbers(what: str, given: Any) -> Array:
    try:
        return real_array(given)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        check_tracked(what, given)
        raise InvalidArgument(
            f"{what}: expected numbers, got {shortened(given)} ({error})"
        ) from None


def _stacked(model: Model, given: Mapping[str, Any]) -> Array:
    """Columns by name as one array, zero where none is given."""
    items = zip(model.inputs, _in_order(model, given), strict=True)
    columns = [_numbers(f"input '{name}'", item) for name, item in items]
    try:
        return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)
    except ValueError:
        shapes = {n: np.shape(given[n]) for n in given}
        raise InvalidArgument(f"input: shapes do not fit each other: {shapes}") from None


def _refuse_nan(model: Model, u: Array) -> None:
    bad = ~np.isfinite(u).all(axis=tuple(range(u.ndim - 1)))
    if bad.any():
        name = model.inputs[int(np.argmax(bad))]
        raise InvalidArgument(f"input '{name}': every number must be finite")


def _by_name(model: Model, given: Mapping[str, Any], speeds: Sequence[str] | None) -> InputPlan:
    named = model.signals.names("input").by_full_name(given)
    for name, value in named.items():
        if isinstance(value, str):
            named[name] = parse_formula(model, value, f"input '{name}'")
        elif isinstance(value, Sampled | Callback):
            kind = type(value).__name__
            alike = "{name: values}, period" if kind == "Sampled" else "..."
            raise InvalidArgument(
                f"input '{name}': a {kind} gives all inputs; input=ax.{kind}({alike})\n  Or "
                f"{JOINED}"
            )
    if any(is_symbolic(v) or callable(v) for v in named.values()):
        made = lambda s: {n: _called(v, s) for n, v in named.items()}  # noqa: E731
        return InputPlan(tape=_traced(model, made, speeds))
    if any(isinstance(v, Expression) for v in named.values()):
        return InputPlan(tape=_formula_input(model, named))
    u = _stacked(model, named)
    _refuse_nan(model, u)
    return InputPlan(constant=limit_inputs(model, u))


def _called(value: Any, state: Any) -> Any:
    if isinstance(value, Expression):
        return state.evaluate(value, {})
    return value(state) if callable(value) and not is_symbolic(value) else value


def _formula_input(model: Model, given: Mapping[str, Any]) -> Tape:
    """Formulas of time and parameters as a tape, without CasADi."""
    free = model.parameters if not facts_of(model).fixed else {}

    def inputs(t: Vector, p: Vector | None = None) -> dict[str, Vector]:
        values: dict[str, Any] = dict(model.parameters) | {"t": t[0]}
        values |= dict(zip(free, p or [], strict=True))
        zero = 0.0 * t[0]
        made = []
        for name, bound in zip(model.inputs, input_bounds(model).tolist(), strict=True):
            item = given.get(name, 0.0)
            if isinstance(item, Expression):
                item = evaluate(item, values, TAPE_FUNCTIONS)
            elif np.ndim(item):
                raise InvalidArgument(f"input '{name}': one number, where others are formulas")
            made.append(saturate(zero + item, bound))
        return {"u": made}

    sizes = {"t": 1} | ({"p": len(free)} if free else {})
    return formula_tape("input", sizes, inputs)


def _traced(
    model: Model,
    function: Callable[..., Any],
    speeds: Sequence[str] | None,
    gains: Sequence[str] = (),
) -> Tape:
    """A function of the state's symbols, and of gains by name, as a tape."""

    def inputs(state: Any, **named: Any) -> list[Any]:
        return _as_inputs(model, function(state, **named))

    return traced_tape(model, "input", inputs, speeds, input_bounds(model).tolist(), gains=gains)


def _plan_memory(model: ModelWithMemory, law: Law, *, gains: bool) -> InputPlan:
    """Plan a law that remembers: inputs and rates of the memory as one tape, samples as another."""
    names = tuple(law.gains) if gains else ()
    numbers = {} if gains else law.numbers()
    due = tuple(f"due {k}" for k in range(len(law.periods)))
    memory, count = [state.name for state in model.memory], len(names)

    def called(state: Any, named: Mapping[str, Any]) -> Any:
        flags = {period: named[flag] for period, flag in zip(law.periods, due, strict=True)}
        return law.evaluate(state, {**named, **numbers}, flags)

    def flow(state: Any, **named: Any) -> list[Any]:
        made, rates, _ = called(state, named)
        return [*_as_inputs(model.base, made), *(rates.get(name, 0.0) for name in memory)]

    def update(state: Any, **named: Any) -> list[Any]:
        after = called(state, named)[2]
        return [after.get(name, state[name]) for name in memory]

    bounds = input_bounds(model).tolist()
    tape = traced_tape(model, "input", flow, None, bounds, gains=(*names, *due))
    between = _without_samples(tape, count)
    if not due:
        return InputPlan(tape=between, gains=law.array() if names else None)
    after = traced_tape(model, "update", update, gains=(*names, *due))
    of_period = {
        f"{name}.{state}": law.periods.index(block.period)
        for name, block in law.blocks.items()
        for state in block.states
        if block.period is not None
    }

    def whole(**ports: Vector) -> dict[str, Vector]:
        builder, nu, flags = ports["t"][0].builder, ports["nu"], ports["due"]
        known = {**ports, "gains": [*ports.get("gains", []), *flags]}
        given = [[x.number for x in known[port.name]] for port in after.inputs]
        new = [Formula(builder, k) for k in builder.replay(after, given)]
        kept = nu[-len(memory) :]
        for k, name in enumerate(memory):
            flag = flags[of_period[name]] if name in of_period else None
            new[k] = kept[k] if flag is None else flag.then(new[k], kept[k])
        return {"nu": [*nu[: -len(memory)], *new]}

    sizes = {port.name: port.size for port in after.inputs if port.name != "gains"}
    sizes |= {"due": len(due)} | ({"gains": count} if count else {})
    updates = Updates(formula_tape("update", sizes, whole), law.periods)
    return InputPlan(tape=between, gains=law.array() if names else None, updates=updates)


def _without_samples(tape: Tape, gains: int) -> Tape:
    """Tape of a law between its samples, from one whose gains end in flags of what is due."""
    sizes = {port.name: port.size for port in tape.inputs if port.name != "gains"}
    sizes |= {"gains": gains} if gains else {}

    def build(**ports: Vector) -> dict[str, Vector]:
        zero = ports["t"][0].like(0.0)
        last = next((p.size for p in tape.inputs if p.name == "gains"), 0) - gains
        known = {**ports, "gains": [*ports.get("gains", []), *[zero] * last]}
        given = [[x.number for x in known[port.name]] for port in tape.inputs]
        numbers = zero.builder.replay(tape, given)
        return {tape.name: [Formula(zero.builder, k) for k in numbers]}

    return formula_tape(tape.name, sizes, build)


def _as_inputs(model: Model, made: Any) -> list[Any]:
    if isinstance(made, Mapping):
        items = _in_order(model, made)
    elif is_symbolic(made):
        import casadi as ca

        items = ca.vertsplit(ca.vec(made))
    else:
        items = list(made) if isinstance(made, list | tuple) or np.ndim(made) else [made]
    if len(items) != len(model.inputs):
        raise InvalidArgument(
            f"input: the function gives {len(items)} values, the model takes {len(model.inputs)} "
            f"({', '.join(model.inputs)})"
        )
    return items
