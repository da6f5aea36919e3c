"""Simulate: integrate the motion of a mechanism from a start, under inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, SimulationFailed, SingularConfiguration, shortened
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, require_ideal
from axode.model.named_arguments import as_numbers
from axode.numerics.tolerances import ON_TIME
from axode.problems.assemble.start_warnings import describe_missed_rows
from axode.problems.inputs.inputs import Callback
from axode.problems.runs.session import Session, Task, check_on_interrupt
from axode.problems.runs.settings import Settings
from axode.problems.simulate.continuing import KnownMotion
from axode.problems.simulate.record import record
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.scenario import RunOptions, Scenario
from axode.problems.simulate.starts import check_start_speeds
from axode.problems.simulate.switch_to_implicit import warn_of_stiffness
from axode.problems.singular.pivots import FLAT_WHEEL
from axode.problems.steps.compiled import AUTOMATIC, EXPLICIT, STEPS
from axode.problems.steps.step_acceptance import (
    CHATTERING,
    NOT_FINITE,
    SINGULAR,
    UNDERFLOW,
    UNSOLVED,
)
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.problems.gradients.sensitivities import FollowedChanges
    from axode.results.trajectory import Trajectory

REMEDIES = {
    NOT_FINITE: "Check the inputs and the state at that time.",
    UNDERFLOW: "Loosen rtol and atol, choose the method rk4, or smooth jumps: tanh(v / v0) for "
    "sign(v).",
    CHATTERING: "A law with sign(v) that holds a motion at rest does this: use tanh(v / v0) with a "
    "small v0, or a dead zone in which it is zero, or hold inputs for a while, by a Callback.",
    UNSOLVED: "Rigid bodies may have no motion there, or several (Painleve), where friction "
    "presses a contact onto the ground: use less friction, or a suspension.",
}
FAILED = tuple(REMEDIES)


def simulate(
    model: Model | Scenario,
    duration: float | None = None,
    *,
    save_every: float | None = None,
    t_eval: npt.ArrayLike | None = None,
    sensitivities: Sequence[str] = (),
    progress: bool | None = None,
    on_interrupt: str = "raise",
    **options: Unpack[RunOptions],
) -> Trajectory:
    """Integrate the motion and record it.

    Args:
        model: What moves, or a `Scenario`.
        duration: How long [s]; negative with `backwards=True`.
        save_every: Time between recorded samples [s]; 1/500 of the duration unless given.
        t_eval: Times of the recorded samples [s], instead of `save_every`; start and end are
            recorded as well. Not with rk4, whose samples are ends of steps.
        sensitivities: Names of what to differentiate the run by, such as `["pole.mass", "kp",
            "start.pitch"]`: parameters, gains of a `Law`, constant inputs, values of the start by
            name; `run.sensitivity(signal, name)` gives the derivatives. The method is rk4 or
            dopri5, with "auto" the latter.
        progress: Show a bar; unless given, after a second on a terminal.
        on_interrupt: What Ctrl-C does: "raise" an `Interrupted` error, a `KeyboardInterrupt` that
            carries the trajectory so far, or "return" that trajectory. While starts are not known,
            the error is raised in either case and carries None.
        options: Those of `RunOptions`: `start`, `input`, `parameters`, `events`, `backwards`, `t0`,
            `contacts`, `method`, `step`, `rtol`, `atol`, `singular`, `jumps`, `threads`, `target`
            and `precision`.

    Raises:
        Interrupted: after Ctrl-C.
        SimulationFailed: if a number stops being finite or steps become too short; the error
            carries the trajectory so far, as does SingularConfiguration. Also, at the end, if
            constraints hold at these parameters that the model left out.
        InvalidArgument: if they do so at the start; if a prescribed position jumps, or a rate
            that must not.
        LoopNotClosed: if no run has a start that closes the loops; of a batch in which some have,
            the others are marked as failed, with a `RunsFailedWarning` warning.
    """
    check_arguments(simulate, locals())
    check_on_interrupt("simulate", on_interrupt)
    scenario = Scenario.read("simulate", model, duration, options, own=simulate)
    settings = scenario.settings(save_every=save_every)
    if t_eval is not None:
        settings = _record_at(settings, t_eval, save_every, sensitivities)
    if facts_of(scenario.model).contact_table and scenario.contacts != STEPS:
        if sensitivities:
            require_ideal("simulate(sensitivities=...)", scenario.model)
        return call_stage("simulate_with_contacts", scenario, settings, progress, on_interrupt)
    if settings.method == AUTOMATIC and sensitivities:
        settings = replace(settings, method=EXPLICIT)
    model, plan, watches = scenario.model, scenario.plan, scenario.events
    followed: FollowedChanges | None = None
    if sensitivities:
        require_ideal("simulate(sensitivities=...)", model)
        state = scenario.state
        followed = call_stage(
            "FollowedChanges", model, scenario.input, state, plan, settings, sensitivities
        )
    with Session(model.name, settings, 0, progress) as session:
        begun = scenario.starts
        q, p, batch = begun.q, begun.p, begun.batch
        session.begin(len(q), 0.0, 1.0)
        if plan.callback is not None:
            plan = replace(plan, callback=Callback(session.unguarded(plan.callback.function)))
        log = None if followed is None else followed.log
        task = Task(model, plan.spread(batch), settings, watches, log=log)
        runs = Runs(task, scenario.input, q, begun.nu, p)
        with session.keep_results():
            if len(begun.failed):
                runs.end_unassembled(begun.failed)
            runs.advance(session)
        steps = settings.method == STEPS  # between whose samples there is more than a smooth curve
        motion = None if steps else KnownMotion.of(task, scenario.input, begun)
        trajectory = record(runs, batch, session.seconds, motion)
        if followed is not None and not session.interrupted:
            with session.keep_results():
                followed.compute(runs, begun, session, trajectory)
    if session.interrupted:
        return session.deliver(trajectory, on_interrupt)
    if settings.explicit and settings.method != AUTOMATIC:
        warn_of_stiffness(model.name, runs.stiff, settings.method)
    if not batch:
        if runs.outcomes.status[0] in FAILED and runs.outcomes.time[0] == settings.t0:
            check_start_speeds(model, q, settings.t0, p)
        raise_if_failed(runs, trajectory)
    there = Conditions(settings.t_end, p)
    missed = describe_missed_rows(model, runs.out[:, -1, : q.shape[1]], there)
    if missed:  # a start may be special: straight wheels, links in line
        raise SimulationFailed(missed, trajectory, settings.t_end)
    runs.warn_of_approaches()
    if any(facts_of(model).motor_numbers):
        call_stage("warn_of_motor_limits", trajectory)
    return trajectory


def _record_at(
    settings: Settings, t_eval: Any, save_every: float | None, sensitivities: Sequence[str]
) -> Settings:
    """Return the settings with samples at given times, at the start and at the end."""
    times = as_numbers("t_eval", t_eval)
    ends = np.array([settings.t0, settings.t_end])
    ahead = settings.direction * np.diff(times) > 0 if times.ndim == 1 else np.zeros(1, dtype=bool)
    if not ahead.all() or not ((ends.min() <= times) & (times <= ends.max())).all():
        raise InvalidArgument(
            f"t_eval: times in order, from {ends[0]:g} s to {ends[1]:g} s, are needed, got "
            f"{shortened(t_eval)}"
        )
    if save_every is not None or sensitivities or not settings.adaptive:
        raise InvalidArgument(
            "t_eval: not with save_every, with sensitivities or with method='rk4'; "
            "run.resample(times) gives other times of any run"
        )
    between = times[~np.isin(times, ends)]
    return replace(settings, at=(*between.tolist(), settings.t_end))


def raise_if_failed(runs: Runs, trajectory: Trajectory | None) -> None:
    """Raise the error of a single run that failed; it carries the trajectory."""
    name, ended = runs.model.name, runs.outcomes
    status, t, cause = int(ended.status[0]), float(ended.time[0]), str(ended.cause[0])
    step = ""
    if not runs.settings.adaptive:
        step = f"\n  The step of {runs.settings.step_size:g} s may also be too long for it."
    if status == SINGULAR:
        step += _rank_loss_advice(runs, cause, t)
        raise SingularConfiguration(
            f"'{name}' reaches a singular configuration at t = {t:.6g} s, where the motion is no "
            f"longer determined: {cause}.{step}",
            trajectory,
            t,
        )
    if status in FAILED:
        if t == runs.settings.t0 and "the rate of" in cause:
            step += _start_beside(runs.model)
        apart = math.ulp(t)
        if status == UNDERFLOW and apart > ON_TIME * abs(runs.settings.duration):
            step += (
                f"\n  Or times are too coarse: there they are {apart:.2g} s apart; make t0 smaller."
            )
        raise SimulationFailed(
            f"'{name}' failed at t = {t:.6g} s: {cause}.\n  {REMEDIES[status]}{step}", trajectory, t
        )


def _rank_loss_advice(runs: Runs, cause: str, t: float) -> str:
    """Advise what else to try where constraints lose rank."""
    if FLAT_WHEEL in cause:
        return ""
    if t == runs.settings.t0:
        return _start_beside(runs.model)
    if runs.settings.singular == "pass":
        return "\n  The motion before it leads across on no smooth path that keeps the constraints."
    return '\n  singular="pass" lets momentum carry the motion across, where it is smooth.'


def _start_beside(model: Model) -> str:
    """Advise to start where the wheels, or the links, are not in line."""
    joints = [name.removesuffix(".rate") for name in model.independent]
    angles = [name for name in model.coordinates if "." not in name]  # of joints with one
    moved = next((name for name in (*joints, *angles) if name in model.coordinates), None)
    moved = moved or model.coordinates[-1]
    return (
        "\n  The start itself is singular: begin a little away from it, "
        f"start={{'{moved}': 0.05}}, or set_home to derive the equations at another configuration."
    )
