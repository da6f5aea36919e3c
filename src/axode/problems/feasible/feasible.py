"""Feasible: whether ideal rolling could really happen on ground of some friction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, MotorLimitWarning
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.arguments import require_model
from axode.problems.feasible.loads import DrivenMotion, GroundForces, by_contact, ground_forces
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.motors.duty import MotorReport
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Feasibility:
    """What a motion asks of the ground, wheel by wheel, against what the ground can give.

    Attributes:
        time: (T,) [s]
        wheels: Names of the contacts.
        normal, longitudinal, lateral: Forces of the ground on each wheel, (T, wheels) [N].
        share: Part of the friction circle each wheel uses, (T, wheels); it slips beyond one.
        slipping_margin: One minus the largest share, (T,); negative where a wheel slips.
        tipping_margin: Smallest load over the mean load, loads shared as evenly as equilibrium
            allows, (T,); negative where the robot tips, -inf where its wheels cannot hold it.
        slips_at, slips: First time a wheel slips [s] and which one; None if none does.
        tips_at, lifts: First time the robot tips [s] and which wheel lifts; None if it does not.
        overloaded: What the motion asks beyond the limits of motors, a sentence for each.
        notes: How forces that statics does not determine were shared, and what is not held.
        trajectory: The motion with `<wheel>.load`, `<wheel>.share` and both margins as columns.
    """

    time: Array
    wheels: tuple[str, ...]
    normal: Array
    longitudinal: Array
    lateral: Array
    share: Array
    slipping_margin: Array
    tipping_margin: Array
    friction: Mapping[str, float]
    slips_at: float | None
    slips: str | None
    tips_at: float | None
    lifts: str | None
    notes: tuple[str, ...]
    trajectory: Trajectory = field(repr=False)
    overloaded: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether nothing slips, nothing tips and no motor is overloaded."""
        return self.slips_at is None and self.tips_at is None and not self.overloaded

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        mus = sorted(set(self.friction.values()))
        words = f"{mus[0]:g}" if len(mus) == 1 else f"{mus[0]:g} to {mus[-1]:g}"
        name = f" of '{self.trajectory.name}'" if self.trajectory.name else ""
        length = abs(self.time[-1] - self.time[0])
        wide = max(5, *(len(wheel) for wheel in self.wheels))
        lines = [f"Feasibility{name}: {length:g} s, friction {words}"]
        lines.append(f"  {'wheel':<{wide}}  {'least load':>12}  {'largest':>12}  friction used")
        for k, wheel in enumerate(self.wheels):
            lines.append(
                f"  {wheel:<{wide}}  {self.normal[:, k].min():>10.4g} N  "
                f"{self.normal[:, k].max():>10.4g} N  {self.share[:, k].max():>12.1%}"
            )
        slipping = self._verdict(self.slips_at, self.slips, self.slipping_margin)
        tipping = self._verdict(self.tips_at, self.lifts, self.tipping_margin)
        lines += [f"  slipping: {slipping}", f"  tipping:  {tipping}"]
        lines += [f"  motors:   {sentence}" for sentence in self.overloaded]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _verdict(self, at: float | None, wheel: str | None, margin: Array) -> str:
        if at is not None:
            return f"from t = {at:.4g} s" + (f" ({wheel} first)" if wheel else "")
        k = int(np.argmin(margin))
        return f"never; least margin {margin[k]:.3g} at t = {self.time[k]:.4g} s"


@stoppable
def feasible(
    model: Model,
    trajectory: Trajectory,
    friction: float | Mapping[str, float],
    *,
    stiffness: float | Mapping[str, float] | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Feasibility:
    """Check whether ideal rolling along a motion is possible: loads, friction, tipping, slipping.

    Loads on three wheels are unique. On more they are those of equally stiff wheels (least norm),
    or of wheels with the given stiffnesses; lateral forces of wheels on one axle are shared by
    least norm too, in equal parts however they are loaded. That is on the safe side: the wheel with
    less load is reported to slip although the other could still hold the axle. The
    result's notes name such wheels. A planar base is set free in space for this, so that its wheels
    and nothing else hold it up.

    Args:
        model: The vehicle.
        trajectory: Its motion, from `simulate`, `inverse_dynamics` or `follow`; one run.
        friction: Coefficient of friction, one or by wheel.
        stiffness: Stiffness of the wheels across the ground [N/m], one or by wheel.
        parameters: Values by name instead of the defaults.

    Raises:
        UnknownName: for a wheel the model does not have.
        NotApplicable: for a mechanism without wheels.
    """
    require_model("feasible", model)
    check_arguments(feasible, locals())
    mu = by_contact(model, "friction", friction, 1.0)
    stiff = by_contact(model, "stiffness", stiffness, 1.0)
    if trajectory.batch:
        raise InvalidArgument("trajectory: it has many runs; take one with trajectory.run(0)")
    conditions = Conditions.of(model, parameters=parameters)
    run, found = _forces(model, trajectory, stiff, conditions)
    share = friction_shares(found, np.array([mu[name] for name in model.contacts]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotorLimitWarning)  # the result has them
        limits: MotorReport | None = call_stage("warn_of_motor_limits", run)
    time = np.array(run.time)
    slipping, tipping = 1 - share.max(axis=-1), found.evenness
    slips_at, slips = _first(time, slipping, share.argmax(axis=-1), model.contacts)
    tips_at, lifts = _first(time, tipping, found.normal.argmin(axis=-1), model.contacts)
    return Feasibility(
        time=time,
        wheels=model.contacts,
        normal=found.normal,
        longitudinal=found.longitudinal,
        lateral=found.lateral,
        share=share,
        slipping_margin=slipping,
        tipping_margin=tipping,
        friction=mu,
        slips_at=slips_at,
        slips=slips,
        tips_at=tips_at,
        lifts=None if found.unsupported else lifts,
        notes=_notes(found, stiffness is not None),
        trajectory=_with_columns(run, model.contacts, found, share, slipping, tipping),
        overloaded=tuple(excess.sentence for excess in limits.excesses) if limits else (),
    )


def _forces(
    model: Model, trajectory: Trajectory, stiffness: dict[str, float], conditions: Conditions
) -> tuple[Trajectory, GroundForces]:
    """Find ground forces along a motion, after its inputs where it does not have them."""
    from axode.problems.inverse.inverse import inverse_dynamics, read_motion

    if any(name not in trajectory or np.isnan(trajectory[name]).any() for name in model.inputs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MotorLimitWarning)  # the result has them
            trajectory = inverse_dynamics(model, trajectory, parameters=conditions.named(model))
    samples, u, missing = read_motion(model, trajectory, conditions)
    conditions = replace(conditions, t=samples.times)
    o = conditions.options
    v = model.joint_speeds(samples.q, samples.nu, **o)
    v_dot = model.accelerations(samples.q, samples.nu, samples.nu_dot, **o)
    extra = np.zeros_like(v)
    extra[:, [model.speed_names.index(name) for name in model.independent]] = missing
    motion = DrivenMotion(samples.q, v, v_dot, u, extra)
    forces = ground_forces(model, motion, stiffness, conditions)
    return trajectory, forces


def friction_shares(found: GroundForces, mu: Array) -> Array:
    """Return the part of its friction that each wheel uses; infinite for one that lifts."""
    tangent = np.hypot(found.longitudinal, found.lateral)
    idle = tangent <= NEGLIGIBLE * max(float(np.abs(found.normal).max(initial=0.0)), 1e-300)
    limit = mu * np.maximum(found.normal, 0.0)
    loaded = limit > 0
    share = np.where(loaded, tangent / np.where(loaded, limit, 1.0), np.inf)
    return np.where(idle, 0.0, share)


def _first(
    time: Array, margin: Array, wheel: npt.NDArray[np.intp], names: tuple[str, ...]
) -> tuple[float | None, str | None]:
    """Find when a margin first falls below zero, by a straight line, and which wheel it is of."""
    below = np.flatnonzero(margin < -NEGLIGIBLE)
    if not below.size:
        return None, None
    k = int(below[0])
    at = float(time[k])
    if k and np.isfinite(margin[k]):
        part = max(margin[k - 1], 0.0) / (max(margin[k - 1], 0.0) - margin[k])
        at = float(time[k - 1] + part * (time[k] - time[k - 1]))
    return at, names[int(wheel[k])]


def _notes(found: GroundForces, stiffness_given: bool) -> tuple[str, ...]:
    notes = []
    if found.shared_normals:
        how = "the given stiffnesses" if stiffness_given else "equally stiff wheels (least norm)"
        names = ", ".join(found.shared_normals)
        notes.append(
            f"loads of {names} are shared as by {how}: statics alone does not determine them"
        )
    else:
        notes.append("loads are unique")
    if found.redistributed:
        notes.append("a wheel would have to pull: the others carry its load while it lifts")
    if found.shared_tangents:
        names = ", ".join(found.shared_tangents)
        notes.append(
            f"forces along the ground of {names} are shared by least norm: another share "
            "might not slip where this one does"
        )
    if found.unsupported:
        notes.append(f"the wheels cannot hold the robot: nothing balances {found.unsupported}")
    return tuple(notes)


def _with_columns(
    run: Trajectory,
    wheels: tuple[str, ...],
    found: GroundForces,
    share: Array,
    slipping: Array,
    tipping: Array,
) -> Trajectory:
    loads = {f"{name}.load": found.normal[:, k] for k, name in enumerate(wheels)}
    run = run.with_columns(loads, units=dict.fromkeys(loads, "N"), kind="force")
    shares = {f"{name}.share": share[:, k] for k, name in enumerate(wheels)}
    margins = {"slipping_margin": slipping, "tipping_margin": tipping}
    return run.with_columns(shares | margins, kind="force")
