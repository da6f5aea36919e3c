"""Gradient: the derivatives of a cost by everything that it depends on, in one pass backwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, RunsFailedWarning, UnknownName, level_outside, shortened
from axode.model.conditions import Conditions
from axode.problems.gradients.backward import Backward, Totals
from axode.problems.gradients.cost import Cost
from axode.problems.gradients.ended_runs import LoggedRuns, begin_runs
from axode.problems.gradients.start_derivatives import StartDerivatives
from axode.problems.gradients.state_jumps import StateJumps
from axode.problems.gradients.variables import Variable, read_variables
from axode.problems.inputs.inputs import is_cut
from axode.problems.runs.session import Session
from axode.problems.runs.step_log import StepLog
from axode.problems.simulate.starts import Starts
from axode.problems.steps.audit import warn_of_inaccuracy

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gradient(Mapping[str, Array]):
    """Value and derivatives of a cost; `gradient["kp"]` is the derivative by `kp`.

    Attributes:
        value: The cost, of the shape of the batch of runs.
        derivatives: By name as given, of the shape of the batch; samples of an input have one more
            axis at the end. Of a batch, each run has the derivatives of its own cost.
        by_speeds: Derivatives by the independent speeds at the start, (..., speeds).
    """

    value: Array
    derivatives: dict[str, Array]
    by_speeds: Array
    _displace: Callable[[], Array]

    @cached_property
    def by_tangents(self) -> Array:
        """Derivatives along displacements of the start that keep loops closed, (..., tangents).

        They are those of `model.tangents`; independent speeds and parameters stay as they are.
        """
        return self._displace()

    def __getstate__(self) -> dict[str, Any]:
        """Everything as numbers, for pickles and copies."""
        return {**vars(self), "by_tangents": self.by_tangents, "_displace": None}

    def __getitem__(self, name: str) -> Array:
        try:
            return self.derivatives[name]
        except (KeyError, TypeError):
            raise UnknownName("the gradient", "variable", name, tuple(self.derivatives)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.derivatives)

    def __len__(self) -> int:
        return len(self.derivatives)

    def __repr__(self) -> str:
        shape = f", {self.value.shape}" if self.value.ndim else f", value {self.value:.6g}"
        return f"Gradient(by {', '.join(self.derivatives) or 'start'}{shape})"


def gradient(cost: Cost, by: Any = (), *, progress: bool | None = None) -> Gradient:
    """Differentiate a cost by parameters, gains, inputs and values of the start.

    The derivatives are those of the steps that were computed. Adaptive steps keep the lengths that
    they had; the end of a run that an event stops moves with everything.

    Args:
        cost: What to differentiate.
        by: Names, such as `["pole.mass", "start.pitch", "kp", "left.torque"]`, see `cost.names`; or
            values by name, at which to differentiate. Derivatives by the state at the start come in
            any case.
        progress: Show a bar; unless given, after a second on a terminal.

    Raises:
        UnknownName: for unknown names.
        SimulationFailed, SingularConfiguration: for a single run that fails; of a batch, values and
            derivatives of such runs are NaN, with a `RunsFailedWarning` warning.
        Interrupted: after Ctrl-C.
    """
    if not isinstance(cost, Cost):
        raise InvalidArgument(f"gradient: expected a Cost, got {shortened(cost)}")
    variables = read_variables(cost.variables, by)
    if isinstance(by, Mapping):
        cost = cost.changed(by)
    settings = cost.settings
    with Session(cost.model.name, settings, 0, progress) as session:
        run = _run(cost, _buffers(variables), session)
        totals = run.totals
        of_starts = StartDerivatives(
            cost.model,
            cost.state.named if cost.state.q is None else None,
            run.starts,
            settings.t0,
            [v.name for v in variables.values() if v.kind == "start"],
            [v.name for v in variables.values() if v.kind == "parameter"],
        ).pull_back(totals.start)
    batch, order = run.starts.batch, _buffers(variables)
    found: dict[str, Array] = {}
    for name, variable in variables.items():
        derivative = _derivative(variable, totals, order, run)
        key = f"start.{variable.name}" if variable.kind == "start" else variable.name
        derivative = derivative + of_starts.get(key, 0.0)
        derivative[~run.ended] = np.nan
        found[name] = derivative.reshape((*batch, *derivative.shape[1:]))
    lost = np.where(run.ended, 0.0, np.nan)[:, np.newaxis]
    by_q, by_speeds = (totals.start[name] + lost for name in ("q", "nu"))
    by_start = np.concatenate([by_q, by_speeds], axis=1)
    _warn_of_overflow(run, {"the start": by_start, **found})

    def displace() -> Array:
        there = Conditions(settings.t0, run.starts.p)
        tangents = cost.model.tangent_map(run.starts.q, **there.options)
        return np.einsum("rq,rqt->rt", by_q, tangents).reshape(*batch, -1)

    by_speeds = by_speeds.reshape(*batch, -1)
    return Gradient(totals.value.reshape(batch), found, by_speeds, displace)


def _warn_of_overflow(run: _Whole, derivatives: Mapping[str, Array]) -> None:
    """Warn of runs whose cost is known and whose derivatives are not finite numbers."""
    count = len(run.ended)
    lost = {
        name: run.ended & ~np.isfinite(array.reshape(count, -1)).all(axis=1)
        for name, array in derivatives.items()
    }
    names = [name for name, runs in lost.items() if runs.any()]
    if names:
        warnings.warn(
            f"derivatives of {int(np.any([*lost.values()], axis=0).sum())} of {count} runs are not "
            f"finite, those by {', '.join(names)}: small changes grow beyond all numbers (make the "
            "duration shorter), or the cost has none at the end, as asin(x) at 1",
            RunsFailedWarning,
            stacklevel=level_outside(),
        )


def evaluate_cost(cost: Cost) -> Array:
    """Evaluate a cost, of the shape of its batch."""
    with Session(cost.model.name, cost.settings, 0, None) as session:
        run = _run(cost, None, session)
    return run.totals.value.reshape(run.starts.batch)


@dataclass(frozen=True)
class _Whole:
    """All runs of a cost.

    Attributes:
        runs: The runs.
        totals: Their values and gradients.
        ended: Which of them came to an end that has a value.
    """

    runs: LoggedRuns
    totals: Totals
    ended: npt.NDArray[np.bool_]

    @property
    def starts(self) -> Starts:
        """Where they started."""
        return self.runs.starts


def _run(cost: Cost, of: dict[str, tuple[int, ...]] | None, session: Session) -> _Whole:
    """Run forwards and backwards, some runs at a time; the value alone if `of` is None."""
    measured = () if cost.measured is None else cost.measured.shape[:-2]
    runs = begin_runs(cost.scenario, cost.settings, measured)
    runs = replace(runs, quadrature=lambda model: cost.ends(model).tapes.running)
    totals, ended, off, count = [], [], [], len(runs.starts.q)
    jumps = StateJumps("gradient", count)
    for numbers in runs.parts():
        session.begin(len(numbers), numbers[0] / count, len(numbers) / count)
        log = StepLog(cost.grid, backwards=True, target=cost.settings.place.target)
        run = runs.run(log, session, numbers)
        totals.append(Backward(run, cost.ends, of, session, jumps).compute())
        ended.append(run.ended)
        off.append(run.runs.outcomes.inaccuracies)
    joined, came = Totals.joined(totals), np.concatenate(ended)
    if runs.starts.batch and not came.all():
        warnings.warn(
            f"{(~came).sum()} of {count} runs failed; their values and derivatives are NaN",
            RunsFailedWarning,
            stacklevel=4,
        )
    _warn_of_no_value(joined.value, came)
    jumps.warn()
    warn_of_inaccuracy(np.concatenate(off))
    return _Whole(runs, joined, came & np.isfinite(joined.value))


def _warn_of_no_value(value: Array, ended: npt.NDArray[np.bool_]) -> None:
    """Warn of finished runs whose cost is not finite."""
    lost = np.flatnonzero(ended & ~np.isfinite(value))
    if lost.size:
        warnings.warn(
            f"costs of {lost.size} of {len(value)} runs are not finite, the first that of run "
            f"{lost[0]}: {value[lost[0]]:g}. The runs have ended, but `running`, `final` or a "
            "column of `match` has no value there, as the logarithm of a negative number has none; "
            "their derivatives are NaN",
            RunsFailedWarning,
            stacklevel=level_outside(),
        )


def _buffers(variables: Mapping[str, Variable]) -> dict[str, tuple[int, ...]]:
    """Buffers of the steps, and the elements by which to differentiate; samples all together."""
    names = {"parameter": "p", "gain": "gains", "input": "u"}
    found: dict[str, list[int]] = {}
    for variable in variables.values():
        if variable.kind in names:
            found.setdefault(names[variable.kind], []).append(variable.place)
    return {name: tuple(sorted(places)) for name, places in found.items()}


def _derivative(
    variable: Variable, totals: Totals, order: Mapping[str, tuple[int, ...]], run: _Whole
) -> Array:
    """Derivative of every run by a variable, but for what the start has to do with it."""
    count = len(totals.value)
    if variable.kind == "start":
        return np.zeros(count)
    if variable.kind == "input":
        return _by_input(variable, totals, order, run)
    name = "p" if variable.kind == "parameter" else "gains"
    return np.array(totals.shared[name][:, order[name].index(variable.place)])


def _by_input(
    variable: Variable, totals: Totals, order: Mapping[str, tuple[int, ...]], run: _Whole
) -> Array:
    """Derivative by a constant input or by its samples; zero where a motor's limit cuts them."""
    place, plan = variable.place, run.runs.plan
    if totals.samples is not None:
        found = np.array(totals.samples[..., place])
    else:
        found = np.array(totals.shared["u"][:, order["u"].index(place)])
    values = plan.constant if plan.sampled is None else plan.sampled.table
    assert values is not None
    found[np.broadcast_to(is_cut(run.runs.model, values)[..., place], found.shape)] = 0.0
    return found
