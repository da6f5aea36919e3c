"""What a motion asks of each motor: torque, speed, power, heat, and what exceeds its limits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import (
    InvalidArgument,
    MotorLimitWarning,
    NotApplicable,
    SingularConfiguration,
    UnknownName,
    level_outside,
)
from axode.mechanism.elements.forces import Motor
from axode.mechanism.values.expressions import (
    TIME,
    UFUNCS,
    Parameter,
    Scalar,
    evaluate,
    numeric,
    parse_scalar,
)
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import NEGLIGIBLE
from axode.stages import call_stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from axode.motors.sizing import Sizing
    from axode.results.trajectory import Trajectory


_ON_ARRAYS: dict[str, Any] = {kind: getattr(np, n) for n, kind in UFUNCS.items()}
_ON_ARRAYS["where"] = np.where
# what stands for a number that a motor does not have
ABSENT = {name: np.inf for name in ("limit", "continuous", "no_load_speed", "voltage")}
ABSENT |= {"torque_constant": np.nan, "resistance": np.nan, "inductance": 0.0}


@dataclass(frozen=True)
class Ratings:
    """Numbers of a motor, as in `Motor`: each one number, or one per run of a batch.

    A limit that it does not have is infinite, a constant of a winding that is not known NaN.
    """

    limit: Any
    gear: Any
    rotor_inertia: Any
    continuous: Any
    no_load_speed: Any
    efficiency: Any
    torque_constant: Any
    resistance: Any
    inductance: Any
    voltage: Any

    @classmethod
    def of(cls, motor: Motor, values: Mapping[str, Any] | None = None) -> Ratings:
        """Read the numbers of a motor at values of its parameters, their defaults elsewhere."""
        return cls(
            **{f.name: _value_of(getattr(motor, f.name), f.name, values) for f in fields(cls)}
        )

    @property
    def free_speed(self) -> Any:
        """Speed at which it has no torque left [rad/s]."""
        by_voltage = self.voltage / self.torque_constant
        return np.fmin(self.no_load_speed, by_voltage)

    @property
    def stall_torque(self) -> Any:
        """Torque at rest on the line to the free speed; its current may not allow so much."""
        stall = self.torque_constant * self.voltage / self.resistance
        return np.where(np.isfinite(stall), stall, self.limit)

    def range_at(self, speed: Any) -> tuple[Any, Any]:
        """Least and largest torque that it can give at a speed, with sign [N m].

        The voltage of the supply bounds both: a motor that is driven backwards brakes with up to
        its limit, beyond the free speed it can only brake.
        """
        limit, stall, free = self.limit, self.stall_torque, self.free_speed
        bounded = np.isfinite(stall) & np.isfinite(free)
        with np.errstate(invalid="ignore"):
            slope = np.where(bounded, stall / free, 0.0) * speed
            line = np.where(bounded, stall, np.inf)
            return np.maximum(-limit, -line - slope), np.minimum(limit, line - slope)


def _value_of(scalar: Scalar | None, name: str, values: Mapping[str, Any] | None) -> Any:
    if scalar is None:
        return ABSENT[name]
    if values is None:
        return numeric(scalar)
    return np.asarray(evaluate(scalar, {TIME: 0.0, **values}, _ON_ARRAYS), dtype=float)


def ratings_of(model: Model, parameters: Mapping[str, Any]) -> tuple[Ratings, ...]:
    """Return the numbers of all motors of a model.

    Args:
        model: Whose motors they are.
        parameters: Values by name instead of the defaults, numbers or arrays.
    """
    facts = facts_of(model)
    known = {name: Parameter(name, default) for name, default in facts.parameters}
    values = {**dict(facts.parameters), **parameters}
    motors = (
        Motor(**{name: parse_scalar(text, known) for name, text in numbers})
        for numbers in facts.motor_numbers
    )
    return tuple(Ratings.of(motor, values) for motor in motors)


Array = npt.NDArray[np.float64]
REMEDY = (
    "Remedy: move more slowly, change the gear, or take a stronger motor; run.motors shows all "
    "of them, and run.motors.size(catalogue) tries others"
)


@dataclass(frozen=True)
class Excess:
    """A limit that a motion exceeds.

    Attributes:
        motor: Name of the motor.
        what: "limit" (torque), "range" (torque at this speed), "no_load_speed" or "continuous".
        time: When it is exceeded most [s]; NaN for the continuous torque.
        first: When it is first exceeded [s]; NaN likewise.
        value, allowed: What the motion takes there, and what the motor allows.
        runs: How many runs of a batch exceed it.
        sentence: All of that in words.
    """

    motor: str
    what: str
    time: float
    first: float
    value: float
    allowed: float
    runs: int
    sentence: str


@dataclass(frozen=True, eq=False, repr=False)
class MotorDuty:
    """What a motion asks of one motor, on its own shaft; arrays are (*batch, T).

    Attributes:
        name: Name of the motor.
        ratings: Its numbers.
        time: Times of the samples [s].
        torque: Torque of the shaft, with what the gear loses [N m; N where it slides a joint].
        speed: Speed of the shaft [rad/s or m/s].
        load: Torque that turns rotor and mechanism, as in the column of the input.
        units: Units of torque and speed.
    """

    name: str
    ratings: Ratings
    time: Array
    torque: Array
    speed: Array
    load: Array
    units: tuple[str, str]

    # over time -----------------------------------------------------------------------------------

    @property
    def power(self) -> Array:
        """Power of the shaft [W]; negative where the motion drives the motor."""
        return self.torque * self.speed

    @property
    def gear_loss(self) -> Array:
        """Power that the gear turns into heat [W]."""
        return (self.torque - self.load) * self.speed

    @cached_property
    def current(self) -> Array:
        """Current of the winding [A]; NaN where the torque constant is not known."""
        return np.asarray(self.torque / self.ratings.torque_constant)

    @property
    def heat(self) -> Array:
        """Power that the winding turns into heat [W]."""
        return np.asarray(self.ratings.resistance * self.current**2)

    @cached_property
    def supply(self) -> Array:
        """Voltage that it takes [V]: of resistance, inductance and speed."""
        r = self.ratings
        voltage = r.resistance * self.current + r.torque_constant * self.speed
        if np.any(r.inductance) and len(self.time) > 1:
            voltage = voltage + r.inductance * np.gradient(self.current, self.time, axis=-1)
        return np.asarray(voltage)

    @property
    def electric_power(self) -> Array:
        """Power that it takes from its supply [W]; negative where it feeds power back."""
        return self.supply * self.current

    # numbers of each run -------------------------------------------------------------------------

    @property
    def peak_torque(self) -> Any:
        """Largest torque [N m]."""
        return _largest(self.torque)

    @property
    def peak_speed(self) -> Any:
        """Largest speed [rad/s]."""
        return _largest(self.speed)

    @property
    def peak_power(self) -> Any:
        """Largest power that the shaft gives [W]; zero if it only brakes."""
        return _number(np.fmax.reduce(np.fmax(self.power, 0.0), axis=-1))

    @property
    def rms_torque(self) -> Any:
        """Root of the mean square of the torque [N m], exact for torques of straight lines."""
        return _number(np.sqrt(_mean_square(self.time, self.torque)))

    @property
    def energy(self) -> Any:
        """Work that the shaft gives [J], without what it takes back."""
        return _integral(self.time, np.maximum(self.power, 0.0))

    @property
    def recovered(self) -> Any:
        """Work that the motion does on the shaft [J], which a drive may store or has to burn."""
        return _integral(self.time, np.maximum(-self.power, 0.0))

    @property
    def lost(self) -> Any:
        """Energy that gear and winding turn into heat [J]; without a winding, the gear's."""
        heat = self.heat if np.isfinite(self.ratings.resistance).all() else 0.0
        return _integral(self.time, self.gear_loss + heat)

    @cached_property
    def share(self) -> Array:
        """Part of the torque available at each speed that is used, (*batch, T); beyond 1 too much.

        Infinite beyond the free speed where the motor has to drive.
        """
        low, high = self.ratings.range_at(self.speed)
        allowed = np.where(self.torque > 0, high, -low)
        size = np.abs(self.torque)
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.where(allowed > 0, size / allowed, np.inf)
        return np.where(np.isnan(self.torque), np.nan, np.where(size > 0, used, 0.0))

    @property
    def saturated(self) -> Any:
        """Part of the time for which the torque is at the limit or beyond."""
        at_limit = self.share >= 1 - NEGLIGIBLE
        samples = np.maximum((~np.isnan(self.torque)).sum(axis=-1), 1)
        return _number(at_limit.sum(axis=-1) / samples)

    # limits --------------------------------------------------------------------------------------

    def excesses(self) -> Iterator[Excess]:
        """Limits that the motion exceeds."""
        r, (torque, speed) = self.ratings, self.units
        size, rate = np.abs(self.torque), np.abs(self.speed)
        limit = np.broadcast_to(r.limit, size.shape)
        yield from self._excess("limit", size, limit, torque, "its limit")
        allowed = np.where(self.share > 0, size / np.where(self.share > 0, self.share, 1.0), limit)
        within = np.where(size <= limit * (1 + NEGLIGIBLE), size, np.nan)  # the others are reported
        fast = " that it has at this speed"
        yield from self._excess("range", within, allowed, torque, "the", fast)
        free = np.broadcast_to(r.free_speed, rate.shape)
        yield from self._excess("no_load_speed", rate, free, speed, "its no-load speed")
        rms = np.atleast_1d(self.rms_torque)
        continuous = np.broadcast_to(np.squeeze(r.continuous), rms.shape)
        over = rms > continuous * (1 + NEGLIGIBLE)
        if over.any():
            k = np.unravel_index(int(np.argmax(np.where(over, rms / continuous, 0.0))), rms.shape)
            value, most = float(rms[k]), float(continuous[k])
            words = (
                f"motor '{self.name}' gives {value:.4g} {torque} root mean square, "
                f"{value / most:.3g} times its continuous torque of {most:.4g} {torque}: it gets "
                f"too hot{_of_runs(int(over.sum()), rms.size)}"
            )
            nan = float("nan")
            yield Excess(self.name, "continuous", nan, nan, value, most, int(over.sum()), words)

    def _excess(
        self, what: str, size: Array, allowed: Array, unit: str, limit: str, more: str = ""
    ) -> Iterator[Excess]:
        with np.errstate(invalid="ignore", divide="ignore"):
            over = size > allowed * (1 + NEGLIGIBLE)
            ratio = np.where(over, size / allowed, 0.0)
        if not over.any():
            return
        k = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        value, most = float(size[k]), float(allowed[k])
        time = float(self.time[k[-1]])
        first = float(self.time[over.reshape(-1, over.shape[-1]).any(axis=0).argmax()])
        runs = int(over.any(axis=-1).sum())
        times = f"{value / most:.3g} times" if most > 0 else "beyond"
        verb = "turns at" if what == "no_load_speed" else "takes"
        since = "" if first == time else f", first at t = {first:.4g} s"
        words = (
            f"motor '{self.name}' {verb} {value:.4g} {unit} at t = {time:.4g} s, {times} {limit} "
            f"{'of ' if not more else ''}{most:.4g} {unit}{more}{since}"
            f"{_of_runs(runs, over[..., 0].size)}"
        )
        yield Excess(self.name, what, time, first, value, most, runs, words)


def _of_runs(count: int, all_runs: int) -> str:
    return f", in {count} of {all_runs} runs" if all_runs > 1 else ""


def _number(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else values


def _largest(values: Array) -> Any:
    return _number(np.fmax.reduce(np.abs(values), axis=-1))


def _integral(time: Array, values: Array) -> Any:
    """Integral over time by straight lines between the samples."""
    steps = np.abs(np.diff(time))
    return _number(np.nansum(steps * (values[..., 1:] + values[..., :-1]) / 2, axis=-1))


def _mean_square(time: Array, values: Array) -> Array:
    """Mean of the square of what goes in straight lines from sample to sample."""
    a, b, steps = values[..., :-1], values[..., 1:], np.abs(np.diff(time))
    parts = steps * (a * a + a * b + b * b) / 3
    known = np.where(np.isnan(parts), 0.0, steps).sum(axis=-1)
    return np.where(known > 0, np.nansum(parts, axis=-1) / np.where(known > 0, known, 1.0), 0.0)


def differences(time: Array, values: Array) -> Array:
    """Differentiate samples of what may jump and bend, (..., T, columns), to second order.

    Of the parabolas through a sample and two neighbours the one around it counts, unless another
    bends less than half as much: then a jump or a corner lies on the other side.
    """
    steps = np.diff(time)[:, np.newaxis]
    slopes = np.diff(values, axis=-2) / steps
    outside = np.full((*values.shape[:-2], 1, values.shape[-1]), np.nan)
    # what two samples tell, of runs that have no more
    found = np.concatenate([slopes, outside], axis=-2)
    found = np.where(np.isnan(found), np.concatenate([outside, slopes], axis=-2), found)
    if len(time) > 2:
        h, h_next, slope = steps[:-1], steps[1:], slopes[..., :-1, :]
        bend = np.diff(slopes, axis=-2) / (h + h_next)
        two = np.concatenate([outside, outside], axis=-2)

        def at(factor: Array, before: Array, after: Array) -> tuple[Array, Array]:
            parts = [before, slope + bend * factor, after], [before, bend, after]
            rate, size = (np.concatenate(part, axis=-2) for part in parts)
            return rate, np.where(np.isnan(size), np.inf, np.abs(size))

        none = two[..., :0, :]
        around, least = at(h, outside, outside)
        found = np.where(np.isfinite(least), around, found)
        least = least / 2
        for factor, before, after in ((h + 2 * h_next, two, none), (-h, none, two)):
            rate, size = at(factor, before, after)
            better = size < least
            found, least = np.where(better, rate, found), np.where(better, size, least)
    return np.where(np.isnan(values), np.nan, found)


# all motors ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class MotorReport(Mapping[str, MotorDuty]):
    """What a motion asks of the motors, by name.

    Attributes:
        name: Name of the model.
        duties: Each motor.
        accelerations: Finds accelerations of the shafts when they are asked for, (*batch, T) each.
    """

    name: str
    duties: tuple[MotorDuty, ...]
    accelerations: Any = field(default=None)

    def __getitem__(self, name: str) -> MotorDuty:
        for duty in self.duties:
            if duty.name == name:
                return duty
        raise UnknownName(f"the motors of '{self.name}'", "motor", name, tuple(self))

    def __iter__(self) -> Iterator[str]:
        return (duty.name for duty in self.duties)

    def __len__(self) -> int:
        return len(self.duties)

    @cached_property
    def excesses(self) -> tuple[Excess, ...]:
        """Every limit that the motion exceeds."""
        return tuple(excess for duty in self.duties for excess in duty.excesses())

    @property
    def ok(self) -> bool:
        """Return whether no motor is asked for more than it can give."""
        return not self.excesses

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Numbers of each motor, of a batch those of the run that asks for most."""
        return [
            {
                "motor": duty.name,
                "peak_torque": _worst(duty.peak_torque),
                "rms_torque": _worst(duty.rms_torque),
                "peak_speed": _worst(duty.peak_speed),
                "peak_power": _worst(duty.peak_power),
                "energy": _worst(duty.energy),
                "recovered": _worst(duty.recovered),
                "lost": _worst(duty.lost),
                "used": _worst(np.fmax.reduce(duty.share, axis=-1)),
                "of_continuous": _worst(duty.rms_torque / np.squeeze(duty.ratings.continuous)),
                "units": duty.units,
            }
            for duty in self.duties
        ]

    @property
    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Heads and cells of the table."""
        heads = (
            "motor",
            "peak",
            "used",
            "rms",
            "of cont.",
            "speed",
            "power",
            "given",
            "taken back",
        )
        return heads, [
            (
                row["motor"],
                f"{row['peak_torque']:.4g} {row['units'][0]}",
                _percent(row["used"]),
                f"{row['rms_torque']:.4g} {row['units'][0]}",
                _percent(row["of_continuous"]),
                f"{row['peak_speed']:.4g} {row['units'][1]}",
                f"{row['peak_power']:.4g} W",
                f"{row['energy']:.4g} J",
                f"{row['recovered']:.4g} J",
            )
            for row in self.rows
        ]

    def __repr__(self) -> str:
        heads, table = self.cells
        wide = [max(map(len, column)) for column in zip(heads, *table, strict=True)]
        lines = [f"Motors of '{self.name}', torques and speeds of their shafts"]
        for cells in (heads, *table):
            padded = (cell.rjust(w) for cell, w in zip(cells[1:], wide[1:], strict=True))
            lines.append("  " + "  ".join([cells[0].ljust(wide[0]), *padded]))
        lines += [f"  {excess.sentence}" for excess in self.excesses]
        return "\n".join(lines)

    def size(self, candidates: Any, *, margin: float = 1.0, motors: Sequence[str] = ()) -> Sizing:
        """Try motors of a catalogue in the places of these; the motion stays as it is.

        Args:
            candidates: A TOML file with tables `[motor.NAME]`, motors by name, or candidates.
            margin: How many times torque, heat and speed must reach each limit, 1.5 for half more.
            motors: Names of the motors to replace; all unless given.
        """
        from axode.motors.sizing import catalogue, size_motors

        return size_motors(self, catalogue(candidates), margin, motors)

    def plot(self, *motors: str, **options: Any) -> Figure:
        """Draw torque against speed of motors, with what each can give.

        Args:
            motors: Names; all unless given.
            options: `save`, a file, and `size` as for `run.plot`.
        """
        return call_stage("plot_motors", self, motors, **options)


def _worst(values: Any) -> float:
    return float(np.fmax.reduce(np.ravel(values)))


def _percent(share: float) -> str:
    return "-" if share == 0.0 or not np.isfinite(share) else f"{share:.0%}"


def motor_report(trajectory: Trajectory) -> MotorReport:
    """Find what a motion asks of each motor of the model that made it.

    Raises:
        InvalidArgument: for a trajectory that no model made, such as one from a file.
        NotApplicable: for a model without motors.
    """
    model = trajectory.model
    if model is None:
        raise InvalidArgument(
            "motors: the trajectory does not know its model, since it was read from a file.\n"
            "  Remedy: ax.inverse_dynamics(model, run).motors"
        )
    facts = facts_of(model)
    if not facts.motor_speeds:
        raise NotApplicable(
            f"'{model.name}' has no motors"
            + (" that its file describes; save the model again" if facts.motors else "")
        )
    conditions = _conditions(trajectory)
    ratings = ratings_of(model, conditions.named(model))
    shafts = _Shafts(model, trajectory, conditions, ratings)
    duties = []
    for k, name in enumerate(facts.motor_names):
        torque_unit = facts.input_units[k]
        load = trajectory[model.inputs[k]]
        units = (torque_unit, "m/s" if torque_unit == "N" else "rad/s")
        torque, speed = shafts.torque(k, load), shafts.speed(k)
        duties.append(MotorDuty(name, ratings[k], trajectory.time, torque, speed, load, units))
    return MotorReport(model.name, tuple(duties), shafts.acceleration)


def _conditions(trajectory: Trajectory) -> Conditions:
    origin = trajectory.origin
    if origin is None or origin.p is None:
        return Conditions()
    p = origin.p
    if p.ndim > 1:
        p = p.reshape(*trajectory.batch, 1, p.shape[-1])
    return Conditions(p=p)


@dataclass(frozen=True, eq=False)
class _Shafts:
    """Speeds, accelerations and torques of the motors' shafts along a motion."""

    model: Model
    trajectory: Trajectory
    conditions: Conditions
    ratings: tuple[Ratings, ...]

    def speed(self, k: int) -> Array:
        rate = self.trajectory[facts_of(self.model).motor_speeds[k]]
        return np.asarray(self.ratings[k].gear * rate)

    def acceleration(self, k: int) -> Array:
        place = self.model.speed_names.index(facts_of(self.model).motor_speeds[k])
        return np.asarray(self.ratings[k].gear * self._joints[..., place])

    @cached_property
    def _joints(self) -> Array:
        """Accelerations of all joints; by splines where the model cannot say."""
        from axode.problems.inverse.inverse import differentiate, read_motion

        model, run = self.model, self.trajectory
        if facts_of(model).contact_table:
            return self._with_contacts()
        speeds = np.stack([run[name] for name in model.speed_names], axis=-1)
        found = np.full(speeds.shape, np.nan)
        try:
            samples, _, _ = read_motion(model, run, self.conditions)
            there = Conditions(np.broadcast_to(run.time, speeds.shape[:-1]), self.conditions.p)
            found = model.accelerations(samples.q, samples.nu, samples.nu_dot, **there.options)
        except SingularConfiguration:
            pass
        unknown = np.isnan(found) & ~np.isnan(speeds)
        return np.where(unknown, differentiate(run.time, speeds), found) if unknown.any() else found

    def _with_contacts(self) -> Array:
        """Accelerations with the forces of contacts: of their modes, or by differences."""
        model, run = self.model, self.trajectory
        rates = run.evaluate("state_rate") if run.info.get("contacts") == "events" else None
        if rates is not None:
            q, nu = run[model.coordinates].values, run[model.independent].values
            first = len(model.coordinates)
            nu_dot = rates[..., first : first + len(model.independent)]
            there = Conditions(np.broadcast_to(run.time, nu.shape[:-1]), self.conditions.p)
            return model.accelerations(q, nu, nu_dot, **there.options)
        if len(run) < 2:
            raise NotApplicable(
                f"motors: accelerations of '{model.name}', with contacts in steps, are differences "
                "of its samples, and this run has one.\n  Remedy: simulate(..., save_every=...) "
                "for more samples"
            )
        return differences(run.time, run[model.speed_names].values)

    def torque(self, k: int, load: Array) -> Array:
        """Torque of a shaft: what passes through the gear, with its losses, and the rotor's."""
        r = self.ratings[k]
        if not np.any(np.asarray(r.efficiency) != 1.0):
            return load
        speed, acceleration = self.speed(k), self.acceleration(k)
        return shaft_torque(r, load, speed, acceleration)


def shaft_torque(ratings: Ratings, load: Array, speed: Array, acceleration: Array) -> Array:
    r"""Torque of a shaft whose gear loses a part of the power that passes through it.

    .. math:: \tau = J \alpha + \eta^{\mp 1} (\tau_0 - J \alpha)

    with the torque :math:`\tau_0` for an ideal gear; the upper sign where power flows towards the
    joint. At rest, the motion before decides, then the one that begins; what is held still loses
    nothing.
    """
    rotor = ratings.rotor_inertia * acceleration
    passed = load - rotor
    before = np.concatenate([speed[..., :1], speed[..., :-1]], axis=-1)
    moving = np.where(before == 0.0, acceleration, before)
    way = np.sign(passed * np.where(speed == 0.0, moving, speed))
    return np.asarray(rotor + passed * ratings.efficiency**-way)


def warn_of_motor_limits(trajectory: Trajectory) -> MotorReport | None:
    """Warn of every limit of a motor that a motion exceeds; return the report if there are limits.

    Motors without limits cost nothing, nor do torque limits alone that a simulation keeps.
    """
    model = trajectory.model
    limits = ["continuous", "no_load_speed", "voltage"]
    if trajectory.info.get("method") == "inverse":
        limits.append("limit")
    if model is None or not any(
        name in limits for numbers in facts_of(model).motor_numbers for name, _ in numbers
    ):
        return None
    report = motor_report(trajectory)
    if report.excesses:
        words = "\n  ".join(excess.sentence for excess in report.excesses)
        warnings.warn(
            f"'{model.name}': {words}\n  {REMEDY}", MotorLimitWarning, stacklevel=level_outside()
        )
    return report
