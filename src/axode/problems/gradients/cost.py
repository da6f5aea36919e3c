"""Costs of runs: one number per run, from what happens on the way and at the end."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, shortened
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.model.signals import STATE_KINDS
from axode.numerics.tolerances import ON_TIME, SEVEN_DIGITS
from axode.problems.arguments import StateArgument
from axode.problems.gradients.backward import EndCosts
from axode.problems.gradients.ended_runs import as_ends_only, check_input, check_method
from axode.problems.gradients.steps_of_cost import CostTapes
from axode.problems.gradients.variables import Variables
from axode.problems.inputs.inputs import Sampled
from axode.problems.inputs.state_formulas import name_or_function
from axode.problems.inputs.tracing import traced_tape
from axode.problems.runs.settings import DEFAULT_STEP
from axode.problems.runs.step_log import Grid
from axode.problems.simulate.scenario import RunOptions, Scenario
from axode.problems.steps.compiled import EXPLICIT

if TYPE_CHECKING:
    from axode.problems.gradients.wrapped_costs import JaxCost, TorchCost
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]


class Cost:
    """One number per run: the integral of a rate, a cost of the end, a distance to measurements.

    It is evaluated with `cost.value()` and differentiated with `gradient`. The run is that of
    `simulate` with the same arguments; arrays make a batch of runs, each with a cost of its own.

    Args:
        model: What moves, or a `Scenario`.
        duration: How long [s]; an event may end it before.
        running: Rate of the cost: a function of the state's symbols, inputs included, the name of a
            signal, or a formula. It is integrated by the method of the steps.
        final: Cost of the end: a function of the state's symbols, a name or a formula.
        match: A `Trajectory` of measured columns, equally spaced in time: the cost has the mean
            over its samples of the sum of squared differences. Coordinates, speeds and measures
            count, other signals do not. `run[["pitch", "yaw_rate"]]` selects columns.
        scales: By column of `match`, what its differences are divided by; one unless given.
        options: Those of `RunOptions`, but `singular`. `method` is "dopri5", or "rk4" with fixed
            steps, which it is if `step` is given; `precision` is "float64". Steps end at the
            samples of `match`.

    Raises:
        InvalidArgument: for a cost without terms, and for arguments that make no run.
        NotApplicable: for methods and precisions that have no gradients.
    """

    def __init__(
        self,
        model: Model | Scenario,
        duration: float | None = None,
        *,
        running: Any = None,
        final: Any = None,
        match: Trajectory | None = None,
        scales: Mapping[str, float] | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        check_arguments(Cost.__init__, {**locals(), "self": self})
        scenario = Scenario.read(
            "Cost", model, duration, options, refused=("singular",), own=Cost.__init__
        )
        method = scenario.options.get("method")
        if method is None:
            method = EXPLICIT if scenario.options.get("step") is None else "rk4"
        check_method(method, scenario.place.precision)
        if running is None and final is None and match is None:
            raise InvalidArgument("Cost: give at least one of running, final and match")
        self.grid: Grid | None = None
        self.measured: Array | None = None
        self._columns: tuple[str, ...] = ()
        if match is not None:
            span = scenario.t0, scenario.duration
            self.grid, self.measured, self._columns = _measured(scenario.model, match, *span)
            if method == "rk4":
                longest = scenario.options.get("step") or DEFAULT_STEP
                step = self.grid.period / math.ceil(self.grid.period / longest - ON_TIME)
                scenario = scenario.changed(step=step)
        self.scenario, self.model = scenario, scenario.model
        self._scales = _checked_scales(scales, self._columns)
        self.settings = as_ends_only(scenario.settings(method))
        self._given = {"running": running, "final": final}
        check_input(scenario.plan)
        self._running, self._final = self._functions()
        self.variables = Variables(
            self.model, self.input, self.state.named if self.state.q is None else None
        )
        self._ends: dict[Model, EndCosts] = {}
        self.ends(self.model)  # faults of functions are reported here

    def __repr__(self) -> str:
        has = {"running": self._running, "final": self._final, "match": self.grid}
        parts = [name for name, part in has.items() if part is not None]
        return f"Cost('{self.model.name}', {self.scenario.duration:g} s, {', '.join(parts)})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the functions made from formulas."""
        left_out = ("_running", "_final", "_ends")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._running, self._final = self._functions()
        self._ends = {}

    def _functions(self) -> tuple[Any, Any]:
        """Functions of the rate and of the end, None where there is none."""
        running, final = self._given["running"], self._given["final"]
        return (
            _function(self.model, running, "running", inputs=True),
            _function(self.model, final, "final", inputs=False),
        )

    @property
    def input(self) -> Any:
        """The input as it was given."""
        return self.scenario.input

    @property
    def state(self) -> StateArgument:
        """The start as it was given."""
        return self.scenario.state

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what it can be differentiated by."""
        return self.variables.known

    def value(self, at: Mapping[str, npt.ArrayLike] | None = None) -> Array:
        """Cost of every run, of the shape of the batch.

        Args:
            at: Values by name instead of those that were given; see `names`.
        """
        check_arguments(Cost.value, locals())
        from axode.problems.gradients.gradient import evaluate_cost

        return evaluate_cost(self.changed(at) if at else self)

    def torch_function(self, by: str | Sequence[str]) -> TorchCost:
        """Function of tensors of PyTorch, one per name, which differentiates through it.

        Args:
            by: Names as for `gradient`; tensors are given in this order or by name.
        """
        check_arguments(Cost.torch_function, locals())
        from axode.problems.gradients.wrapped_costs import TorchCost

        return TorchCost(self, by)

    def jax_function(self, by: str | Sequence[str]) -> JaxCost:
        """Function of arrays of JAX, one per name, which differentiates through it.

        Args:
            by: Names as for `gradient`; arrays are given in this order or by name.
        """
        check_arguments(Cost.jax_function, locals())
        from axode.problems.gradients.wrapped_costs import JaxCost

        return JaxCost(self, by)

    def present(self, name: str) -> Array:
        """Return the present value of a variable, or its samples."""
        variable = self.variables.resolve(name)
        if variable.kind == "start":
            names = self.model.signals.names(*STATE_KINDS)
            return np.asarray(names.by_full_name(self.state.named)[variable.name])
        if variable.kind == "parameter":
            assert self.scenario.p is not None
            return self.scenario.p[..., variable.place]
        if variable.kind == "gain":
            return np.asarray(self.input.gains[variable.name])
        plan = self.scenario.plan
        table = plan.constant if plan.sampled is None else plan.sampled.table
        assert table is not None
        return table[..., variable.place]

    def changed(self, at: Mapping[str, npt.ArrayLike]) -> Cost:
        """Return the same cost with other values of some of its variables.

        Raises:
            UnknownName: for unknown names.
            InvalidArgument: for values that are not finite numbers.
        """
        changed: dict[str, dict[str, Array]] = {}
        for name, value in at.items():
            variable = self.variables.resolve(name)
            changed.setdefault(variable.kind, {})[variable.name] = _finite(name, value)
        options: RunOptions = {}
        if "start" in changed:
            names = self.model.signals.names(*STATE_KINDS)
            options["start"] = names.by_full_name(self.state.named) | changed["start"]
        if "parameter" in changed:
            known = self.scenario.options.get("parameters") or {}
            options["parameters"] = {**known, **changed["parameter"]}
        if "gain" in changed:
            options["input"] = self.input.changed(**changed["gain"])
        if "input" in changed:
            options["input"] = _changed_input(self.model, self.input, changed["input"])
        made = copy.copy(self)  # functions are traced once
        made.scenario = self.scenario.changed(**options)
        return made

    def ends(self, model: Model) -> EndCosts:
        """What runs cost, for the user's model or one on other independent speeds."""
        known = self._ends.get(model)
        if known is None:
            speeds = None if model is self.model else self.model.independent

            def trace(name: str, function: Callable[[Any], Any] | None, inputs: bool) -> Any:
                if function is None:
                    return None

                def made(state: Any) -> list[Any]:
                    return [_one(name, function(state))]

                return traced_tape(model, name, made, speeds, inputs=inputs)

            tapes = CostTapes(trace("running", self._running, True), self._match(model, speeds))
            known = EndCosts(trace("final", self._final, False), tapes, self.measured)
            self._ends[model] = known
        return known

    def _match(self, model: Model, speeds: Sequence[str] | None) -> Tape | None:
        """Cost of one measured instant: squared differences of all columns, scaled."""
        if self.grid is None:
            return None
        columns = self._columns
        signals = traced_tape(model, "match", lambda s: [s[name] for name in columns], speeds)
        count = self.grid.count

        def missed(y: Vector, **state: Vector) -> dict[str, Vector]:
            builder = y[0].builder
            arguments = [[x.number for x in state[port.name]] for port in signals.inputs]
            found = [Formula(builder, n) for n in builder.replay(signals, arguments)]
            total = 0.0 * y[0]
            for value, wanted, scale in zip(found, y, self._scales, strict=True):
                difference = (value - wanted) / scale
                total = total + difference * difference
            return {"missed": [total / float(count)]}

        sizes = {port.name: port.size for port in signals.inputs} | {"y": len(columns)}
        return formula_tape("match", sizes, missed)


def _function(model: Model, given: Any, what: str, *, inputs: bool) -> Any:
    """A function of the state's symbols from what was given."""
    if given is None or callable(given):
        return given
    if not isinstance(given, str):
        raise InvalidArgument(
            f"{what}: expected a function of the state, the name of a signal or a formula, got "
            f"{shortened(given)}"
        )
    made = name_or_function(model, given, what, inputs=inputs)
    if callable(made):
        return made
    known = model.signals.step_names if inputs else model.signals.state_names
    full = known.resolve(made)
    return lambda s: s[full]


def _one(what: str, value: Any) -> Any:
    """One number that a function gave."""
    if getattr(value, "shape", ()) not in ((), (1, 1)):
        raise InvalidArgument(f"{what}: the function must give one number, not {value.shape}")
    return value


def _finite(name: str, value: npt.ArrayLike) -> Array:
    array = as_numbers(f"'{name}'", value)
    if not array.size:
        raise InvalidArgument(f"'{name}': an array without values")
    if not np.isfinite(array).all():
        raise InvalidArgument(f"'{name}': must be finite")
    return array


def _changed_input(model: Model, given: Any, values: dict[str, Array]) -> Any:
    """Input with other numbers or samples of some names."""
    if isinstance(given, Sampled):
        table = given.checked(model).table
        columns = {name: table[..., k] for k, name in enumerate(model.inputs)}
        return Sampled({**columns, **values}, given.period, given.start, given.between)
    if given is None or isinstance(given, Mapping):
        named = model.signals.names("input").by_full_name(given or {})
        return {**named, **values}
    table = np.asarray(given, dtype=float)
    return {name: table[..., k] for k, name in enumerate(model.inputs)} | values


def _measured(
    model: Model, run: Any, t0: float, duration: float
) -> tuple[Grid, Array, tuple[str, ...]]:
    """Times, numbers and columns of what was measured."""
    known = model.signals.names(*STATE_KINDS)
    columns = [name for name in run.names if known.accepts(name)]
    for name in run.names:
        model.signals.resolve(name)  # energies and forces are left out, unknown names are refused
    if not columns:
        raise InvalidArgument(
            f"match: {run!r} has no column of a coordinate, a speed or a measure of '{model.name}'"
        )
    order = slice(None) if run.time[-1] >= run.time[0] else slice(None, None, -1)
    times = run.time[order]
    period = float(times[1] - times[0]) if len(times) > 1 else abs(duration)
    if len(times) > 1 and np.abs(np.diff(times) - period).max() > SEVEN_DIGITS * period:
        raise InvalidArgument(
            "match: samples must be equally spaced; resample the run first: run.resample(times)"
        )
    first = (float(times[0]) - t0) / period
    if abs(first - round(first)) > SEVEN_DIGITS:
        raise InvalidArgument(
            f"match: samples every {period:g} s from {times[0]:g} s on are not at times of a run "
            f"from {t0:g} s on; start it at one of them, t0={times[0]:g}"
        )
    table = np.stack([run[name][..., order] for name in columns], axis=-1)
    part = (times - t0) / duration
    inside = (part >= -SEVEN_DIGITS) & (part <= 1 + SEVEN_DIGITS)
    if not inside.any():
        raise InvalidArgument(f"match: no sample of {run!r} is inside the run")
    table = np.ascontiguousarray(table[..., inside, :])
    bad = ~np.isfinite(table).reshape(-1, len(columns)).all(axis=0)
    if bad.any():
        raise InvalidArgument(f"match: column '{columns[int(np.argmax(bad))]}' is not all finite")
    return Grid(float(times[inside][0]), period, int(inside.sum())), table, tuple(columns)


def _checked_scales(given: Mapping[str, float] | None, columns: Sequence[str]) -> list[float]:
    from axode.names import Names

    if given and not columns:
        raise InvalidArgument("scales: differences to `match` are scaled, which is not given")
    scales = dict.fromkeys(columns, 1.0)
    for name, value in Names("match", "column", columns).by_full_name(given or {}).items():
        scale = _finite(f"scales, {name}", value)
        if scale.ndim or not scale > 0:
            shown = shortened(value)
            raise InvalidArgument(f"scales: '{name}' must be one number > 0, got {shown}")
        scales[name] = float(scale)
    return list(scales.values())
