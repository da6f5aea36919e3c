"""Sensitivities of runs: derivatives of every signal at every sample, forwards with the steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.model.model import Model
from axode.problems.arguments import StateArgument
from axode.problems.gradients.ended_runs import EndedRuns, check_input, check_method
from axode.problems.gradients.forward import Forward, push_forward
from axode.problems.gradients.single_states import FirstSamples
from axode.problems.gradients.start_derivatives import StartDerivatives
from axode.problems.gradients.state_jumps import StateJumps
from axode.problems.gradients.variables import Variable, Variables, read_variables
from axode.problems.inputs.inputs import InputPlan, is_cut
from axode.problems.runs.session import Session
from axode.problems.runs.settings import Settings
from axode.problems.runs.step_log import Grid, StepLog
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.starts import Starts
from axode.problems.steps.compiled import tape_of
from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
WITHOUT = ("w", "energy_balance", "largest_residual")  # signals that need more than a state


class Sensitivities:
    """Derivatives of the signals of a trajectory by some variables.

    Args:
        model: What moves.
        plan: Its input.
        variables: What it is differentiated by, by the names given.
        known: All variables of the run.
        changes: Per variable, changes of coordinates and speeds, (runs, samples, size), of times,
            (runs, samples), and of what all samples share: p, gains, u, (runs, size) each.
    """

    def __init__(
        self,
        model: Model,
        plan: InputPlan,
        variables: Mapping[str, Variable],
        known: Variables,
        changes: Mapping[Variable, tuple[Array, Array, dict[str, Array]]],
    ) -> None:
        self.model, self.plan, self._variables, self._known = model, plan, variables, known
        self._changes = dict(changes)

    def evaluate(self, run: Trajectory, signal: str, by: str) -> Array:
        """Derivative of a signal at all samples of a trajectory.

        Raises:
            UnknownName: for unknown signals and variables.
            NotApplicable: for signals that depend on the whole run.
        """
        variable = self._variables.get(by) or self._known.resolve(by)
        if variable not in self._changes:
            problem = f"the run has no sensitivity by '{by}'; add it to those of `simulate`."
            raise UnknownName("the run", "sensitivity", by, tuple(self._variables), problem)
        model, found = self.model, self.model.signals.resolve(signal)
        if found.function in WITHOUT:
            raise NotApplicable(
                f"'{found.name}' has no sensitivity: it sums up the whole run; coordinates, "
                "speeds, measures, inputs, kinetic and potential energy and forces have one"
            )
        state, times, shared = self._changes[variable]
        rows, n = state.shape[1], len(model.coordinates)
        flat = state.reshape(-1, state.shape[-1])
        if found.function in ("q", "nu"):
            made = flat[:, (0 if found.function == "q" else n) + found.index]
            return made.reshape(*run.batch, rows)
        known = self._states(run)
        changes: dict[str, Array] = {"q": flat[:, :n], "nu": flat[:, n:]}
        changes |= {name: np.repeat(a, rows, axis=0) for name, a in shared.items()}
        if times.any():
            changes["t"] = times.reshape(-1, 1)
        if self.plan.tape is not None:
            changes["u"] = push_forward(self.plan.tape, known, changes, len(flat))
        elif self.plan.sampled is not None and times.any():  # of one run, which an event stopped
            changes["u"] = self.plan.sampled.rate_at(run.time).reshape(rows, -1) * changes["t"]
        if found.function == "u":
            u = changes.get("u", np.zeros((len(flat), len(model.inputs))))
            return u[:, found.index].reshape(*run.batch, rows)
        tape = tape_of(model, found.function)
        made = push_forward(tape, known, changes, len(flat))[:, found.index]
        made = made.reshape(*run.batch, rows)
        return np.where(np.isnan(run[found.name]), np.nan, made)  # forces left open by statics

    def _states(self, run: Trajectory) -> dict[str, Array]:
        """States of all samples, one per row."""
        model, rows, count = self.model, len(run.time), run.count

        def stack(names: tuple[str, ...]) -> Array:
            if not names:
                return np.zeros((count * rows, 0))
            return np.stack([run[name].reshape(-1) for name in names], axis=-1)

        known = {"q": stack(model.coordinates), "nu": stack(model.independent)}
        known["u"] = stack(model.inputs)
        known["t"] = np.tile(run.time, count)[:, np.newaxis]
        p = None if run.origin is None else run.origin.p
        for name, array in (("p", p), ("gains", self.plan.gains)):
            if array is not None:
                known[name] = array if array.ndim == 1 else np.repeat(array, rows, axis=0)
        return known


def check_sensitivities(variables: Variables, by: Any, plan: InputPlan) -> dict[str, Variable]:
    """Variables of sensitivities by the names that were given.

    Raises:
        InvalidArgument: for samples of inputs, of which there are many.
    """
    found = read_variables(variables, by, "sensitivities")
    for name, variable in found.items():
        if variable.kind == "input" and plan.sampled is not None:
            raise InvalidArgument(
                f"sensitivities: '{name}' has {plan.sampled.count} samples; gradient "
                "differentiates by all of them in one pass"
            )
    return found


class FollowedChanges:
    """What `simulate` does for sensitivities: it logs the steps, and follows changes afterwards.

    Args:
        model: What moves.
        input: Its input, as the user gave it.
        start: Its start.
        plan: Its input.
        settings: How to integrate.
        of: Names of what to differentiate by.

    Raises:
        NotApplicable, InvalidArgument: for what cannot be differentiated.
    """

    def __init__(
        self,
        model: Model,
        input: Any,
        start: StateArgument,
        plan: InputPlan,
        settings: Settings,
        of: Any,
    ) -> None:
        check_method(settings.method, settings.place.precision)
        check_input(plan)
        if settings.singular != "stop":
            raise NotApplicable(
                "sensitivities: runs that pass singular configurations have none; use "
                'singular="stop"'
            )
        self._model = model
        self._named = start.named if start.q is None else None
        self._known = Variables(model, input, self._named)
        self._variables = check_sensitivities(self._known, of, plan)
        grid = _grid(settings) if settings.adaptive else None
        self.log = StepLog(grid, target=settings.place.target)

    def compute(self, runs: Runs, starts: Starts, session: Session, run: Trajectory) -> None:
        """Compute the sensitivities of runs that have ended, and add them to their trajectory."""
        logged = EndedRuns(runs, starts, self.log, self._model)
        samples = len(run.time)
        made = compute_sensitivities(
            logged, self._named, self._variables, self._known, session, samples
        )
        object.__setattr__(run, "_sensitivities", made)


def _grid(settings: Settings) -> Grid:
    """Times at which samples are saved, at equal intervals from the earliest on."""
    times = settings.times
    spacing = abs(float(times[1] - times[0]))
    if settings.direction > 0:
        return Grid(settings.t0, spacing, len(times))
    count = len(times) - 1
    return Grid(settings.t0 - count * spacing, spacing, count + 1)


def compute_sensitivities(
    run: EndedRuns,
    named: Mapping[str, Array] | None,
    variables: Mapping[str, Variable],
    known: Variables,
    session: Session,
    samples: int,
) -> Sensitivities:
    """Follow the changes along all variables through the steps of runs.

    Args:
        run: The runs and the log of their steps.
        named: Their start as given by name; None for arrays.
        variables: What to differentiate by.
        known: All variables of the run.
        session: The call that this is part of.
        samples: How many samples the trajectory has.
    """
    model, runs = run.model, run.runs
    along = StartDerivatives(
        model,
        named,
        run.starts,
        runs.settings.t0,
        [v.name for v in variables.values() if v.kind == "start"],
        [v.name for v in variables.values() if v.kind == "parameter"],
    ).along
    first_samples = FirstSamples(model, runs.plan, run.starts, runs.settings.t0)
    changes: dict[Variable, tuple[Array, Array, dict[str, Array]]] = {}
    jumps = StateJumps("sensitivities", runs.count)
    jumps.look_through(run.log)
    jumps.warn()
    for variable in variables.values():
        key = f"start.{variable.name}" if variable.kind == "start" else variable.name
        still = {"q": np.zeros((runs.count, len(model.coordinates)))}
        still["nu"] = np.zeros((runs.count, len(model.independent)))
        shared = _shared(model, variable, runs.count, runs.plan)
        begun = first_samples.push_on(along.get(key, still), shared)
        made = Forward(run, begun, shared, session)
        saved = made.saved[:, :samples]
        times = np.zeros(saved.shape[:2])
        if runs.count == 1 and samples > runs.lengths[0]:  # the end of a run that was stopped
            saved = np.concatenate([made.saved[:, : runs.lengths[0]], made.last[:, np.newaxis]], 1)
            times = np.append(times[:, : runs.lengths[0]], made.end[:, np.newaxis], axis=1)
        changes[variable] = (saved, times, shared)
    return Sensitivities(model, runs.plan, variables, known, changes)


def _shared(model: Model, variable: Variable, count: int, plan: InputPlan) -> dict[str, Array]:
    """Unit change of a parameter, gain or constant input, for every run.

    An input that is cut by the limit of its motor does not change.
    """
    sizes = {"parameter": ("p", len(model.parameters)), "input": ("u", len(model.inputs))}
    if plan.gains is not None:
        sizes["gain"] = ("gains", plan.gains.shape[-1])
    if variable.kind not in sizes:
        return {}
    name, size = sizes[variable.kind]
    change = np.zeros((count, size))
    change[:, variable.place] = 1.0
    if variable.kind == "input" and plan.constant is not None:
        change[np.broadcast_to(is_cut(model, plan.constant), change.shape)] = 0.0
    return {name: change}
