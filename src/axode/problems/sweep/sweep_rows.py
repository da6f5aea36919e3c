"""Start, parameters and input of the rows of a sweep, made when they are computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, UnknownName
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.names import NamedValues
from axode.problems.arguments import (
    StateArgument,
    checked_parameters,
    find_impossible_runs,
    read_state,
)
from axode.problems.inputs.blocks import RANGES
from axode.problems.inputs.inputs import InputPlan, inputs_of_sample, plan_input
from axode.problems.inputs.laws import Law, ambiguous_gain
from axode.problems.simulate.starts import require_runs, shared_batch
from axode.problems.sweep.sample_arguments import plan_samples
from axode.problems.sweep.samples import GROUPS, AbstractSamples, Group
from axode.results.sweep_arrays import RowTexts

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class RowValues:
    """Start, parameters and input of some rows.

    Attributes:
        start: State to start from.
        p: Free parameters, (size,) or (rows, size); defaults where they are impossible.
        plan: Input.
        impossible: Why no mechanism can have the parameters of some rows; None if all are shared.
    """

    start: StateArgument
    p: Array | None
    plan: InputPlan
    impossible: RowTexts | None = None


@dataclass(frozen=True)
class SweepRows:
    """What the rows of a sweep start from.

    Attributes:
        samples: Values that are swept, row by row.
        start: State to start from: values by name that all rows share, or arrays, with leading
            axes where they are arrays of runs.
        parameters: Parameters by name that all rows share; None if none are given.
        plan: Input, with leading axes where it is an array of runs.
        inputs: Inputs by name that all rows share, where others are swept; they replace the plan.
        gains: Names of the plan's gains, where some are swept.
        ranges: Which numbers some of them may be, as a `Block` has them.
        shape: Shape of the rows.
        first: Number of the first row of the arrays of runs, where only some rows are here.
        impossible: Why no mechanism can have the parameters of some, where only some are here.
    """

    samples: AbstractSamples
    start: StateArgument
    parameters: Mapping[str, Any] | None
    plan: InputPlan
    inputs: Mapping[str, Any] | None
    shape: tuple[int, ...]
    gains: tuple[str, ...] = ()
    ranges: Mapping[str, str] = field(default_factory=dict)
    first: int | None = None
    impossible: RowTexts | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(np.prod(self.shape, dtype=int))

    def untouched(self, model: Model) -> tuple[str, ...]:
        """Names of parameters that keep their defaults in all rows."""
        groups = self.samples.groups
        changed = {*(self.parameters or ()), *(n for n in groups if groups[n] == "parameter")}
        return tuple(name for name in model.parameters if name not in changed)

    def part(self, model: Model, first: int, last: int) -> SweepRows:
        """Return what is needed for the rows `first` ... `last - 1`, which keep their numbers.

        Args:
            model: What moves; other processes cannot check parameters without its equations.
            first: Number of the first row.
            last: Number after that of the last row.
        """
        rows, impossible = np.arange(first, last), None
        if "parameter" in self.samples.groups.values():
            impossible = self.values(model, first, last).impossible
        return replace(
            self,
            impossible=impossible,
            samples=self.samples.part(first, last),
            start=self._start_of(rows, {}),
            plan=self._plan_of(rows),
            first=first,
        )

    def values(self, model: Model, first: int, last: int) -> RowValues:
        """Start, parameters and input of the rows `first` ... `last - 1`."""
        rows = np.arange(first, last)
        groups: dict[Group, dict[str, Array]] = {group: {} for group in GROUPS}
        for name, values in self.samples.rows(first, last).items():
            groups[self.samples.groups[name]][name] = values
        p = impossible = None
        if model.parameters and not facts_of(model).fixed:
            p = model.parameter_vector({**(self.parameters or {}), **groups["parameter"]})
        if p is not None and p.ndim > 1:
            impossible = self._impossible_in(model, p, list(groups["parameter"]))
            p[impossible.codes >= 0] = model.parameter_vector()
        plan = self._plan_of(rows)
        if self.inputs is not None:
            plan = plan_input(model, {**self.inputs, **groups["input"]})
        if self.gains:
            assert plan.gains is not None
            gains = np.tile(plan.gains, (len(rows), 1))
            for name, values in groups["gain"].items():
                if name in self.ranges:  # a drawn gain that no block can have: the row fails
                    values = np.where(RANGES[self.ranges[name]](values, 0.0), values, np.nan)
                gains[:, self.gains.index(name)] = values
            plan = replace(plan, gains=gains)
        return RowValues(self._start_of(rows, groups["start"]), p, plan, impossible)

    def _impossible_in(self, model: Model, p: Array, names: list[str]) -> RowTexts:
        if self.impossible is not None:
            return self.impossible
        return find_impossible_runs(model, p, names)

    def check_parameters(self, model: Model) -> None:
        """Check parameters that are listed, not drawn; those of all rows at once.

        Raises:
            InvalidArgument: as `checked_parameters` does.
        """
        names = [name for name, group in self.samples.groups.items() if group == "parameter"]
        axes = self.samples.axes
        listed: dict[str, Any] = {}
        if axes:  # only parameters matter: a small part of a large grid
            along = np.meshgrid(*(axes[name] for name in names), indexing="ij", sparse=True)
            listed = dict(zip(names, along, strict=True))
        elif names and self.samples.kind == "table":
            listed = self.samples.rows(0, self.samples.count, names)
        given = {**(self.parameters or {}), **listed}
        checked_parameters(model, given or self.parameters)

    def _start_of(self, rows: Numbers, drawn: Mapping[str, Array]) -> StateArgument:
        s = self.start
        if s.q is None or s.nu is None:
            return replace(s, named={**s.named, **drawn})
        time = None if s.time is None else self._rows_of(np.asarray(s.time), 0, rows)
        q, nu = (self._rows_of(a, 1, rows) for a in (s.q, s.nu))
        return replace(s, q=q, nu=nu, time=time)

    def _plan_of(self, rows: Numbers) -> InputPlan:
        plan = self.plan
        if plan.constant is not None:
            return replace(plan, constant=self._rows_of(plan.constant, 1, rows))
        if plan.sampled is None:
            return plan
        table = self._rows_of(plan.sampled.table, 2, rows)
        return replace(plan, sampled=replace(plan.sampled, table=table))

    def _rows_of(self, array: Array, own_axes: int, rows: Numbers) -> Array:
        """Some rows of an array that is broadcast to all of them; itself if they share it."""
        axes = array.ndim - own_axes
        if not axes:
            return array
        if self.first is not None:
            return array[rows - self.first]
        whole = np.broadcast_to(array, (*self.shape, *array.shape[axes:]))
        return np.ascontiguousarray(whole[np.unravel_index(rows, self.shape)])


def plan_rows(
    model: Model, given: Mapping[Group, Any], combine: str, **choice: Any
) -> tuple[SweepRows, Tape | None, Any]:
    """Check what the user varies; return the rows, the input as a tape, and as it is planned.

    Args:
        model: What moves.
        given: Start, parameters, among them gains of a law, and input.
        combine: "grid" or "zip".
        choice: Samples, sampler and seed, as `plan_samples` takes them.

    Raises:
        InvalidArgument: for what cannot be swept.
    """
    input = _inputs_by_name(model, given["input"])
    given = {**given, **_gains_apart(model, given["parameter"], input)}
    named = {group: value for group, value in given.items() if not isinstance(value, NamedValues)}
    named["input"] = input
    gains, ranges = (tuple(input.gains), input.ranges) if isinstance(input, Law) else ((), {})
    swept = plan_samples(
        named, combine=combine, batch=(), locate=lambda n: locate(model, n, gains), **choice
    )
    state = read_state(model, _shared("start", given["start"], swept), "start")
    if state.q is not None and "start" in swept.groups.values():
        raise InvalidArgument("start: give values by name where the table has columns of some")
    inputs = None
    if "input" in swept.groups.values():
        inputs = _shared("input", {} if input is None else input, swept)
        _require_constants(model, inputs, swept)
    if isinstance(input, Law):
        own = [name for name, group in swept.groups.items() if group == "gain"]
        listed = swept.axes
        if swept.kind == "table":
            listed = swept.rows(0, swept.count, own)
        for name in own:
            if name in listed:
                input.changed(**{name: listed[name]})  # refuses what no block can have
        shared = _shared("gain", given["gain"], swept)
        input, gains = input.changed(**shared, **dict.fromkeys(own, 1.0)), gains if own else ()
    plan = InputPlan() if inputs is not None else plan_input(model, input, gains=bool(gains))
    if plan.callback is not None:
        raise InvalidArgument(
            "input: a Callback runs in Python, one run after the other; give a sweep formulas, "
            "functions of the state or Sampled(...), or use simulate"
        )
    shape = shared_batch(plan.batch, state.shapes)
    require_runs(shape)
    if shape and swept.names:
        _refuse_mixture(swept, combine, "start" if any(state.shapes) else "input")
        swept = plan_samples(named, combine=combine, batch=shape, **choice)
    shape = swept.shape if swept.names else shape
    parameters = _shared("parameter", given["parameter"], swept)
    rows = SweepRows(
        swept, state, parameters, replace(plan, tape=None), inputs, shape, gains, ranges
    )
    rows.check_parameters(model)
    return rows, plan.tape, input


def locate(model: Model, name: str, gains: Collection[str] = ()) -> Group:
    """Find whether a column of a table is a parameter, a gain, an input or a value of the start.

    Raises:
        UnknownName: for any other.
    """
    if name in model.parameters:
        if name in gains:
            raise ambiguous_gain(name)
        return "parameter"
    if name in gains:
        return "gain"
    if model.signals.names("input").matching(name):
        return "input"
    known = model.signals.names(*STATE_KINDS)
    if not known.matching(name):
        others = (*model.parameters, *gains, *model.inputs, *known)
        raise UnknownName(f"model '{model.name}'", "parameter, input or signal", name, others)
    known.resolve(name)
    return "start"


def _gains_apart(model: Model, parameters: Any, input: Any) -> dict[Group, Any]:
    """Take gains of a law from what is given as parameters; arrays in the law are lists, too."""
    if not isinstance(input, Law):
        return {}
    gains: dict[str, Any] = {name: gain for name, gain in input.gains.items() if gain.ndim}
    if isinstance(parameters, Mapping):
        known = (*model.parameters, *input.gains)
        for name in parameters:
            if name not in known:
                raise UnknownName(f"model '{model.name}'", "parameter or gain", name, known)
            locate(model, name, tuple(input.gains))
        apart = [n for n in parameters if n in input.gains and n not in model.parameters]
        gains |= {name: parameters[name] for name in apart}
        parameters = {n: value for n, value in parameters.items() if n not in apart} or None
    return {"parameter": parameters, "gain": gains}


def _shared(group: Group, given: Any, swept: AbstractSamples) -> Any:
    """What a mapping gives to all rows alike; anything else as it is."""
    if not isinstance(given, Mapping) or isinstance(given, NamedValues):
        return given
    return {name: value for name, value in given.items() if swept.groups.get(name) != group}


def _inputs_by_name(model: Model, given: Any) -> Any:
    """Inputs of the sample of a trajectory, those of a batch as an array of runs."""
    made = inputs_of_sample(model, given)
    if isinstance(given, NamedValues) and any(map(np.ndim, made.values())):
        return np.stack(list(made.values()), axis=-1)
    return made


def _require_constants(model: Model, inputs: Any, swept: AbstractSamples) -> None:
    """Check that inputs are numbers by name where others are swept."""
    if not isinstance(inputs, Mapping):
        raise InvalidArgument("input: give inputs by name where the table has columns of some")
    names = [name for name, group in swept.groups.items() if group == "input"]
    if plan_input(model, {**inputs, **dict.fromkeys(names, 0.0)}).tape is not None:
        raise InvalidArgument(
            f"input: {', '.join(names)} swept beside formulas or functions; give the mechanism a "
            "parameter for the number, use it in the formula and sweep the parameter"
        )


def _refuse_mixture(swept: AbstractSamples, combine: str, argument: str) -> None:
    """Refuse values by name beside arrays whose runs have no names, unless they are zipped."""
    if combine != "zip" or swept.kind != "table":
        raise InvalidArgument(
            f"sweep: {', '.join(swept.names)} make a {swept.kind}, but {argument} is an array of "
            "runs; use combine='zip', or names"
        )
