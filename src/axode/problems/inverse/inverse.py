"""Inverse: what the motors must give along a motion, and what else the motion takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, SingularConfiguration, UnknownName
from axode.model.conditions import Conditions
from axode.model.force_deficit import force_size, warn_of_deficit
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.model.signals import Signal
from axode.model.state import signal_values, update_balance
from axode.names import Names
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import LIES_FLAT, RANK
from axode.problems.arguments import (
    StateArgument,
    check_parameters,
    read_state,
    require_model,
    start_time,
)
from axode.problems.assemble.closure import allowed_residual
from axode.problems.assemble.start_warnings import check_dropped_rows
from axode.problems.inverse.motions import (
    ORDER,
    DesiredMotion,
    MotionSamples,
    as_signal,
    check_times,
    full_names,
    rows_by_name,
)
from axode.problems.other_models import DescribedStates, SignalsElsewhere
from axode.problems.runs.settings import MAX_SAMPLES
from axode.problems.singular.approaches import warn_of_motors
from axode.problems.singular.pivots import evaluate_pivots, measure_lean_between
from axode.problems.singular.switching import choose_models
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory


def evaluate_power(model: Model, q: Array, nu: Array, u: Array, missing: Array, o: Any) -> Array:
    """Evaluate the power supplied and dissipated [W]."""
    power = model.evaluate("state_rate", {"q": q, "nu": nu, "u": u}, o)[..., -2:].copy()
    power[..., 0] += (missing * nu).sum(axis=-1)
    return power


class SingularSamples:
    """Samples of a motion that other models describe, where the user's is singular."""

    def __init__(
        self,
        own: Model,
        described: DescribedStates | None,
        motion: tuple[Array, Array, Array, Array],
        conditions: Conditions,
        weights: Any,
    ) -> None:
        self.own, self.conditions, self.weights = own, conditions, weights
        self.q, self.nu, self.nu_dot, self.outside = motion
        self.parts = [] if described is None else list(described.others())

    def own_speeds(self) -> tuple[Array, Array]:
        """Give speeds and accelerations of the user's model; NaN where others do better."""
        nu, nu_dot = self.nu.copy(), self.nu_dot.copy()
        for _, k in self.parts:
            nu[k] = nu_dot[k] = np.nan
        return nu, nu_dot

    def solve(self, u: Array, missing: Array, power: Array) -> None:
        """Fill in inputs, missing forces on the user's speeds and powers of these samples."""
        for model, k in self.parts:
            o, q, nu = self.conditions.at(k).options, self.q[k], self.nu[k]
            u[k], short = model.inverse_dynamics_with_residual(
                q, nu, self.nu_dot[k], u=self.outside[k], weights=self.weights, **o
            )
            power[k] = evaluate_power(model, q, nu, u[k], short, o)
            chosen = [model.speed_names.index(name) for name in self.own.independent]
            to_own = np.swapaxes(model.speed_map(q, **o)[:, chosen], 1, 2)
            missing[k] = least_norm(to_own, short)

    def overwrite(self, values: Array, w: Array, u: Array) -> None:
        """Fill in all signals of these samples."""
        for model, k in self.parts:
            there = SignalsElsewhere(
                model, self.own, self.q[k], self.nu[k], w[k], u[k], self.conditions.at(k)
            )
            values[k] = there.values()
        if self.parts:
            update_balance(self.own, values)


Array = npt.NDArray[np.float64]
SAMPLES = 500  # of a motion given by functions, unless another time is given


@stoppable
def inverse_dynamics(
    model: Model,
    motion: Any,
    *,
    times: npt.ArrayLike | None = None,
    start: Any = None,
    wrenches: Mapping[str, npt.ArrayLike] | None = None,
    weights: Mapping[str, float] | npt.ArrayLike | None = None,
    save_every: float | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Trajectory:
    """Find the motors' forces along a motion, with contact and constraint forces and energies.

    Args:
        model: What moves.
        motion: A `Trajectory` of this model, a motion of `ax.motions`, or coordinates, speeds and
            measures of position by name: numbers, formulas of t (text, `Expression`, a Python
            function) or samples at `times`. As many as there are independent speeds determine the
            rest.
        times: Times of the samples [s]; for functions also the duration, from the time of `start`,
            zero unless it has one.
        start: State at the first time, as arrays, a `State` or `run.at(t)`, or coordinates by name,
            where the motion does not fix them (the swivel of a caster, the place of a vehicle);
            coordinates by name are kept, speeds follow from the motion. Home unless given.
        wrenches: Known inputs from outside by name, numbers or samples [N, N m]; those of the
            trajectory or zero unless given.
        weights: Weights of the motors' efforts, by motor or for all, where there are more
            motors than needed: the sum of weight times square is least. One each unless given.
        save_every: Time between samples [s]; 1/500 of the duration for functions, the samples' own
            times otherwise, unless given.
        parameters: Values by name instead of the defaults.

    Returns:
        Coordinates, speeds, inputs, energies, measures and forces over time. Where motors are too
        few, columns `<speed>.missing` hold the generalized force they cannot give. `info` names
        motors that the motion takes beyond their limits under "beyond_limit".

    Raises:
        UnknownName: for a name the model does not have.
        InvalidArgument: for times that do not increase, too few samples, or a motion that the
            constraints do not allow or that is not determined.
    """
    check_arguments(inverse_dynamics, locals())
    from axode.results.interpolation import resample_exact
    from axode.results.trajectory import Trajectory

    require_model("inverse_dynamics", model)
    check_parameters(model, parameters)
    conditions = Conditions.of(model, parameters=parameters)
    lengths = wanted = None
    if isinstance(motion, Trajectory):
        if times is not None or start is not None:
            raise InvalidArgument("times, start: a Trajectory has its own; leave them out")
        wanted = None if save_every is None else equal_times(motion.time, save_every)
        finer = None if wanted is None else resample_exact(motion, wanted)
        motion, wanted = (motion, wanted) if finer is None else (finer, None)
        samples, outside, _ = read_motion(model, motion, conditions, change=True)
        lengths = motion.lengths
    elif isinstance(motion, Mapping) or hasattr(motion, "solve_for"):
        given = read_state(model, start, "start")
        given.require_one("start")
        if isinstance(motion, Mapping):
            samples = _solve_signals(model, motion, times, given, save_every, conditions)
        else:  # a PlannedMotion
            samples = motion.solve_for(model, times, given, save_every, conditions)
        outside = np.zeros((samples.times.size, len(model.inputs)))
    else:
        raise InvalidArgument(
            "motion: expected a Trajectory, a motion of ax.motions or signals by name such as "
            f"{{'{model.independent[0]}': '0.5 * t'}}, got {type(motion).__name__}"
        )
    outside = _add_wrenches(model, outside, wrenches or {})
    solved = solve_forces(model, samples, outside, conditions, weights, lengths)
    call_stage("warn_of_motor_limits", solved)
    return solved if wanted is None else solved.resample(wanted, method="interpolate")


# motions -----------------------------------------------------------------------------------------


def read_motion(
    model: Model, trajectory: Trajectory, conditions: Conditions, *, change: bool = False
) -> tuple[MotionSamples, Array, Array]:
    """Read coordinates, independent speeds, inputs and missing forces of a trajectory.

    Accelerations are the model's where all inputs are known, those of splines elsewhere. With
    `change`, samples at which the model is singular are described by others.
    """
    for name in (*model.coordinates, *model.independent):
        if name not in trajectory:
            raise UnknownName(
                f"the trajectory, which has to be one of model '{model.name}',",
                "column",
                name,
                trajectory.columns("coordinate") + trajectory.columns("speed"),
            )

    def picked(names: tuple[str, ...]) -> Array:
        shape = (*trajectory.batch, len(trajectory))
        columns = [trajectory[n] if n in trajectory else np.zeros(shape) for n in names]
        return np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))

    q, nu, u = picked(model.coordinates), picked(model.independent), picked(model.inputs)
    missing = picked(tuple(f"{name}.missing" for name in model.independent))
    conditions = replace(conditions, t=np.broadcast_to(trajectory.time, q.shape[:-1]))
    o = conditions.options
    _require_closed(model, q, conditions)
    there = ~np.isnan(q).any(axis=-1)
    change = change and not missing[there].any()
    change = change and all(name in trajectory for name in model.speed_names)
    described = choose_models(model, q, conditions) if change else None
    require_regular(model, q, conditions, described)
    known = all(name in trajectory for name in model.inputs) and bool(np.isfinite(u[there]).all())
    if not known:
        nu_dot = differentiate(trajectory.time, nu)
    elif missing[there].any():
        full = drive_every_speed(model)
        nu_dot = full.forward_dynamics(q, nu, _all_inputs(model, full, u, missing), **o)
    else:
        nu_dot = model.forward_dynamics(q, nu, u, **o)
    for other, k in described.others() if described is not None else ():
        theirs = picked(other.independent)
        nu[k] = theirs[k]
        nu_dot[k] = (
            other.forward_dynamics(q[k], nu[k], u[k], **conditions.at(k).options)
            if known
            else differentiate(trajectory.time, theirs)[k]
        )
    samples = MotionSamples(np.array(trajectory.time), q, nu, nu_dot, described)
    return samples, np.nan_to_num(u), missing


def _all_inputs(model: Model, full: Model, u: Array, missing: Array) -> Array:
    """Inputs of the model with a motor on every speed."""
    inputs = np.zeros((*u.shape[:-1], len(full.inputs)))
    for k, name in enumerate(full.inputs):
        if name in model.inputs:
            inputs[..., k] = u[..., model.inputs.index(name)]
        else:
            speed = name.removesuffix(".missing")
            inputs[..., k] = missing[..., model.independent.index(speed)]
    return inputs


def require_regular(
    model: Model, q: Array, conditions: Conditions, described: DescribedStates | None = None
) -> Array:
    """Require configurations where the independent speeds determine the others and no wheel lies
    flat.

    Returns:
        The smallest pivot of the solves behind all speeds, per configuration.

    Raises:
        SingularConfiguration: naming the time and what to do.
    """
    solves, pairs = evaluate_pivots(model, q, conditions)
    wheels = measure_lean_between(pairs)
    if np.nanmin(wheels, initial=1.0) < LIES_FLAT:
        place = np.unravel_index(int(np.nanargmin(wheels)), wheels.shape)
        t = float(np.broadcast_to(conditions.t, wheels.shape[:-1])[place[:-1]])
        wheel = facts_of(model).leaning[int(place[-1])]
        raise SingularConfiguration(
            f"'{model.name}' is at t = {t:.6g} s where the wheel '{wheel}' lies flat on the "
            "ground, so that no point of its rim is the lowest.\n  Leave that time out",
            None,
            t,
        )
    smallest = np.asarray(solves.min(axis=-1, initial=1.0))
    pivots = smallest
    if described is not None:
        pivots = np.where(described.elsewhere.reshape(pivots.shape), 1.0, pivots)
    if np.nanmin(pivots, initial=1.0) >= RANK:
        return smallest
    low = np.unravel_index(int(np.nanargmin(pivots)), pivots.shape)
    t = float(np.broadcast_to(conditions.t, pivots.shape)[low])
    raise SingularConfiguration(
        f"'{model.name}' is at t = {t:.6g} s where {', '.join(model.independent)} do not determine "
        "the other speeds.\n  Derive it with other independent speeds, derive(independent=[...]), "
        "or leave that time out",
        None,
        t,
    )


def _require_closed(model: Model, q: Array, conditions: Conditions) -> None:
    if not model.residual_rows:
        return
    residual = np.abs(model.residual(q, **conditions.options))
    allowed = allowed_residual(model)
    if (residual > allowed).any():
        worst = np.nanmax(residual.reshape(-1, residual.shape[-1]), axis=0)
        row = int(np.argmax(worst / allowed))
        raise InvalidArgument(
            f"motion: the trajectory leaves '{model.residual_rows[row]}' open by {worst[row]:.3g} "
            f"(m or rad): it does not belong to model '{model.name}' with these parameters"
        )


def differentiate(time: Array, nu: Array) -> Array:
    """Differentiate samples along the last axis but one by splines of order 5."""
    from scipy.interpolate import make_interp_spline

    way = 1.0 if time[-1] >= time[0] else -1.0
    if time.size <= ORDER:
        raise InvalidArgument(
            f"motion: the trajectory has {time.size} samples and not all inputs; to differentiate "
            f"its speeds at least {ORDER + 1} are needed.\n  Record it with a smaller save_every"
        )
    rates = np.full(nu.shape, np.nan)
    flat, found = nu.reshape(-1, *nu.shape[-2:]), rates.reshape(-1, *nu.shape[-2:])
    for run, values in enumerate(flat):
        length = int((~np.isnan(values).any(axis=-1)).sum())
        if length > ORDER:
            spline = make_interp_spline(way * time[:length], values[:length], k=ORDER)
            found[run, :length] = way * spline.derivative()(way * time[:length])
    return found.reshape(nu.shape)


def _solve_signals(
    model: Model,
    motion: Mapping[str, Any],
    times: Any,
    start: StateArgument,
    save_every: float | None,
    conditions: Conditions,
) -> MotionSamples:
    if not motion:
        raise InvalidArgument(
            f"motion: give signals by name, for instance {', '.join(model.independent)}"
        )
    names = full_names(model, tuple(motion))
    if len(set(names)) != len(names):
        raise InvalidArgument("motion: a signal is given twice")
    is_sampled = any(
        np.ndim(given) for given in motion.values() if isinstance(given, np.ndarray | list | tuple)
    )
    given = _times(times, is_sampled, save_every, start_time(None, start))
    parameters = conditions.named(model)
    signals = [
        as_signal(model, name, value, given, parameters)
        for name, value in zip(names, motion.values(), strict=True)
    ]
    wanted = equal_times(given, save_every) if is_sampled and save_every is not None else given
    desired = DesiredMotion(model, rows_by_name(model, names), signals, conditions)
    return desired.solve(wanted, start)


def _times(times: Any, is_sampled: bool, save_every: float | None, t0: float) -> Array:
    if times is None:
        kind = "of the samples" if is_sampled else "of the motion, or its duration"
        raise InvalidArgument(f"times: give the times {kind} [s]")
    if np.ndim(times):
        return check_times(times)
    if is_sampled:
        raise InvalidArgument("times: samples need the time of each, not a duration")
    duration = float(times)
    if not (np.isfinite(duration) and duration > 0):
        raise InvalidArgument(f"times: a duration must be > 0 s, got {duration}")
    return equal_times(
        np.array([t0, t0 + duration]), duration / SAMPLES if save_every is None else save_every
    )


def equal_times(time: Array, every: float) -> Array:
    """Space times equally from the first to the last, as closely to `every` as possible."""
    if not every > 0:
        raise InvalidArgument(f"save_every: must be > 0 s, got {every}")
    length = float(time[-1] - time[0])
    if not abs(length) <= MAX_SAMPLES * float(every):
        raise InvalidArgument(
            f"save_every: {every:g} s makes more than {MAX_SAMPLES:g} samples; make it longer"
        )
    count = max(1, round(abs(length) / float(every)))
    spaced: Array = time[0] + length * np.arange(count + 1) / count
    return spaced


def _add_wrenches(model: Model, u: Array, given: Mapping[str, npt.ArrayLike]) -> Array:
    """Set known inputs from outside; those of the motors are solved for."""
    wrenches = model.inputs[facts_of(model).motors :]
    names = Names(f"model '{model.name}'", "input from outside", wrenches)
    u = np.array(u)
    u[..., : facts_of(model).motors] = 0.0
    for name, value in names.by_full_name(given).items():
        try:
            u[..., model.inputs.index(name)] = value
        except ValueError:
            raise InvalidArgument(
                f"wrenches, '{name}': expected a number or {u.shape[-2]} samples, got shape "
                f"{np.shape(value)}"
            ) from None
    return u


# forces ------------------------------------------------------------------------------------------


def solve_forces(
    model: Model,
    samples: MotionSamples,
    outside: Array,
    conditions: Conditions,
    weights: Any = None,
    lengths: Any = None,
) -> Trajectory:
    """Solve for the inputs of a motion and record all signals, as `simulate` does."""
    from axode.results.columns import Origin
    from axode.results.trajectory import Trajectory

    batch, n = samples.q.shape[:-2], samples.times.size
    arrays = (samples.q, samples.nu, samples.nu_dot, outside)
    runs = math.prod(batch)  # not -1: there may be no inputs
    q, nu, nu_dot, outside = (np.ascontiguousarray(x.reshape(runs, n, x.shape[-1])) for x in arrays)
    conditions = replace(conditions, t=np.broadcast_to(samples.times, q.shape[:-1]))
    o = conditions.options
    described = samples.described
    if described is not None:
        described = DescribedStates(described.models, described.made_by.reshape(runs, n))
    pivots = require_regular(model, q, conditions, described).reshape(-1)
    flat, spread = q.reshape(-1, q.shape[-1]), conditions.spread(q.shape[:-1])
    check_dropped_rows(model, flat, spread)
    warn_of_motors(model, flat, spread, pivots)
    motion = (q, nu, nu_dot, outside)
    others = SingularSamples(model, described, motion, conditions, _weights(model, weights))
    nu, nu_dot = others.own_speeds()
    u, missing = model.inverse_dynamics_with_residual(
        q, nu, nu_dot, u=outside, weights=others.weights, **o
    )
    short = _warn_if_short(model, q, nu, u, missing, o)
    power = evaluate_power(model, q, nu, u, missing, o)
    others.solve(u, missing, power)
    w = _work(samples.times, power)
    values = signal_values(model, q, nu, u, w, conditions=conditions)
    others.overwrite(values, w, u)
    if short:
        _correct_forces(model, values, (q, nu, u), missing, conditions)
    signals = tuple(model.signals)
    if model.is_underactuated:
        lacking = model.signals.of_kind("independent")
        values = np.concatenate([values, missing[..., [s.index for s in lacking]]], axis=-1)
        units = {"m/s": "N", "rad/s": "N m"}
        signals += tuple(
            Signal(f"{s.name}.missing", units[s.unit], "force", "missing", s.index) for s in lacking
        )
    return Trajectory(
        time=samples.times,
        values=values.reshape(*batch, n, len(signals)),
        names=tuple(signal.name for signal in signals),
        units=tuple(signal.unit for signal in signals),
        kinds={signal.name: signal.kind for signal in signals},
        lengths=lengths,
        origin=Origin.of(model, conditions.p),
        info={
            "model": model.name,
            "method": "inverse",
            "actuation": model.actuation,
            "beyond_limit": _beyond_limit(model, u),
            "bases": facts_of(model).bases,
        },
    )


def _weights(model: Model, weights: Any) -> Any:
    if weights is None or isinstance(weights, Mapping):
        given = as_numbers("weights", list((weights or {1: 1.0}).values()))
    else:
        given = as_numbers("weights", weights)
        if given.shape != (facts_of(model).motors,):
            raise InvalidArgument(
                f"weights: expected {facts_of(model).motors} numbers "
                f"({', '.join(model.inputs[: facts_of(model).motors])}), got shape {given.shape}"
            )
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise InvalidArgument("weights: they must be finite and > 0")
    return weights


def _warn_if_short(model: Model, q: Array, nu: Array, u: Array, missing: Array, o: Any) -> bool:
    """Warn if the motors fall short of the motion, and return whether they do."""
    if not model.is_underactuated:
        return False
    size = force_size(model, q, nu, u, missing, o)
    return warn_of_deficit(model, missing, size, "see the columns that end in '.missing'")


def _work(times: Array, power: Array) -> Array:
    """Energy supplied and dissipated since the first sample [J]: power integrated by splines."""
    from scipy.interpolate import make_interp_spline

    way = 1.0 if times[-1] >= times[0] else -1.0
    work = np.full(power.shape, np.nan)
    for run, values in enumerate(power):
        length = int((~np.isnan(values).any(axis=-1)).sum())
        work[run, :length] = 0.0
        if length > 1:
            t = way * times[:length]
            spline = make_interp_spline(t, values[:length], k=_odd(min(ORDER, length - 1)))
            work[run, :length] = way * spline.antiderivative()(t)
    return work


def _odd(order: int) -> int:
    return order if order % 2 else max(order - 1, 1)


def _correct_forces(
    model: Model,
    values: Array,
    state: tuple[Array, Array, Array],
    missing: Array,
    conditions: Conditions,
) -> None:
    """Replace contact and constraint forces by those with the missing force acting too."""
    q, nu, u = state
    full = drive_every_speed(model)
    inputs = _all_inputs(model, full, u, missing)
    forces = signal_values(full, q, nu, inputs, conditions=conditions, kinds=("force",))
    columns = {signal.name: k for k, signal in enumerate(model.signals)}
    for k, signal in enumerate(full.signals.of_kind("force")):
        if signal.name in columns:
            values[..., columns[signal.name]] = forces[..., k]


def drive_every_speed(model: Model) -> Model:
    """Add a motor to every independent speed of a model, input `<speed>.missing`.

    Rows and speeds are the model's own; it is made once per model.
    """
    if model not in _DRIVEN:
        from axode.symbolic.constraints.system import add_motors
        from axode.symbolic.equations import Equations

        equations = model.equations
        motors = {f"{speed}.missing": speed for speed in model.independent}
        driven = Equations(add_motors(equations.system, motors), equations.formulation)
        kind: Any = "fixed" if facts_of(model).fixed else "free"
        _DRIVEN[model] = driven.compile(target=model.target, parameters=kind)
    return _DRIVEN[model]


_DRIVEN: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()


def _beyond_limit(model: Model, u: Array) -> list[str]:
    names = []
    for k, limit in enumerate(facts_of(model).limits):
        if limit is not None and np.nanmax(np.abs(u[..., k]), initial=0.0) > limit * (1 + 1e-9):
            names.append(model.inputs[k])
    return names
