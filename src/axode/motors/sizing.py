"""Try motors of a catalogue, with their gears, in the places of those that made a motion."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any

import numpy as np

from axode.argument_types import check_arguments
from axode.disk.bounded import read_bounded
from axode.errors import FileError, InvalidArgument, UnknownName, shortened
from axode.mechanism.elements.forces import Motor
from axode.mechanism.values.expressions import Expression
from axode.motors.duty import MotorDuty, MotorReport, Ratings, shaft_torque

LARGEST_CATALOGUE = 1 << 20  # bytes


@dataclass(frozen=True)
class Candidate:
    """A motor of a catalogue.

    Args:
        name: What the catalogue calls it.
        motor: Its numbers.
        gears: Ratios that it is tried with; that of the motor alone unless given.
    """

    name: str
    motor: Motor
    gears: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = [getattr(self.motor, f.name) for f in fields(Motor)]
        if any(isinstance(number, Expression) for number in numbers):
            raise InvalidArgument(f"catalogue, '{self.name}': its numbers cannot be parameters")
        faults = [f"{name} {message}" for name, message in self.motor.faults()]
        gears = self.gears or (float(self.motor.gear),)  # type: ignore[arg-type]
        if not all(np.isfinite(gear) and gear != 0 for gear in gears):
            faults.append("gears must be numbers other than 0")
        if faults:
            raise InvalidArgument(f"catalogue, '{self.name}': {'; '.join(faults)}")
        object.__setattr__(self, "gears", gears)


@dataclass(frozen=True)
class Choice:
    """One motor of a catalogue, with one gear, in the place of one motor.

    Attributes:
        motor: Name of the motor that it stands for.
        candidate: Name of the candidate.
        gear: Turns of the candidate to one of the joint.
        duty: What the motion asks of it.
        margin: How many times the worst of torque, heat and speed would reach its limit.
        reasons: Why it cannot do it; empty if it can.
    """

    motor: str
    candidate: str
    gear: float
    duty: MotorDuty
    margin: float
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether it can do it."""
        return not self.reasons


@dataclass(frozen=True, repr=False)
class Sizing:
    """Motors of a catalogue that were tried, with the gear that leaves the largest margin.

    Attributes:
        name: Name of the model.
        margin: Times that every limit had to be reached.
        choices: In the order of the motors, then of the catalogue.
    """

    name: str
    margin: float
    choices: tuple[Choice, ...]

    @property
    def best(self) -> dict[str, Choice | None]:
        """First candidate of the catalogue that can do it, by motor; None where none can."""
        found: dict[str, Choice | None] = {}
        for choice in self.choices:
            if found.get(choice.motor) is None:
                found[choice.motor] = choice if choice.ok else None
        return found

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Cells of the table: motor, candidate, gear, torques, speed, margin, verdict."""
        best = self.best
        rows: list[tuple[str, ...]] = []
        for choice in self.choices:
            duty, r, (torque, speed) = choice.duty, choice.duty.ratings, choice.duty.units
            verdict = "; ".join(choice.reasons)
            if choice.ok:
                verdict = "first that fits" if best[choice.motor] is choice else "fits"
            rows.append(
                (
                    choice.motor,
                    choice.candidate,
                    f"{choice.gear:g}",
                    _of(np.max(duty.peak_torque), r.limit, torque),
                    _of(np.max(duty.rms_torque), r.continuous, torque),
                    _of(np.max(duty.peak_speed), r.free_speed, speed),
                    f"{choice.margin:.2f}" if np.isfinite(choice.margin) else "-",
                    verdict,
                )
            )
        return rows

    def __repr__(self) -> str:
        heads = ("motor", "candidate", "gear", "peak", "rms", "speed", "margin", "")
        table = [heads, *self.rows]
        wide = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [f"Motors for '{self.name}', margin {self.margin:g}"]
        lines += [
            "  " + "  ".join(c.ljust(w) for c, w in zip(cells, wide, strict=True)).rstrip()
            for cells in table
        ]
        lines += [
            f"  no candidate can do it for '{name}'" for name, one in self.best.items() if not one
        ]
        return "\n".join(lines)


def _of(value: float, allowed: Any, unit: str) -> str:
    most = float(np.max(allowed))
    return f"{value:.3g} of {most:.3g} {unit}" if np.isfinite(most) else f"{value:.3g} {unit}"


def size_motors(
    report: MotorReport,
    candidates: Sequence[Candidate],
    margin: float = 1.0,
    motors: Sequence[str] = (),
) -> Sizing:
    """Try every candidate for every motor, its own rotor in the place of the other's.

    The motion stays as it is, and so does what the joint needs; the rotor of the candidate is
    accelerated instead of the other's, and its gear loses its own part. Masses of casings stay.
    """
    if not (np.isfinite(margin) and margin >= 1):
        raise InvalidArgument(f"margin: must be >= 1, got {margin}")
    if not candidates:
        raise InvalidArgument("catalogue: it has no motor")
    choices = []
    for name in motors or tuple(report):
        duty = report[name]  # names are checked
        acceleration = report.accelerations(tuple(report).index(name))
        for candidate in candidates:
            tried = [
                _tried(duty, acceleration, candidate, gear, margin) for gear in candidate.gears
            ]
            choices.append(max(tried, key=lambda choice: (choice.ok, choice.margin)))
    return Sizing(report.name, float(margin), tuple(choices))


def _tried(
    duty: MotorDuty, acceleration: Any, candidate: Candidate, gear: float, margin: float
) -> Choice:
    own = duty.ratings
    ratings = replace(Ratings.of(candidate.motor), gear=float(gear))
    joint_load = own.gear * (duty.load - own.rotor_inertia * acceleration)
    speed, turning = gear * duty.speed / own.gear, gear * acceleration / own.gear
    load = joint_load / gear + ratings.rotor_inertia * turning
    torque = shaft_torque(ratings, load, speed, turning)
    found = replace(duty, ratings=ratings, torque=torque, load=load, speed=speed)
    reached = {
        "torque": np.fmax.reduce(found.share, axis=None),
        "rms torque": np.max(found.rms_torque / ratings.continuous),
        "speed": np.max(found.peak_speed / ratings.free_speed),
    }
    reasons = [
        f"{what} at {part:.0%} of what it has" if np.isfinite(part) else f"{what} beyond its line"
        for what, part in reached.items()
        if part * margin > 1 + 1e-9
    ]
    worst = max(reached.values())
    left = 1 / worst if worst > 0 else np.inf
    return Choice(duty.name, candidate.name, float(gear), found, float(left), tuple(reasons))


# catalogues ---------------------------------------------------------------------------------------


def catalogue(
    source: str | PathLike[str] | Mapping[str, Motor] | Sequence[Candidate],
) -> tuple[Candidate, ...]:
    """Read motors to choose from.

    Args:
        source: A TOML file with a table `[motor.NAME]` for each, with the numbers of a `Motor` and
            `gears`, a list of ratios; or motors by name; or candidates.

    Raises:
        FileError: for a file that cannot be read.
        InvalidArgument: for numbers that no motor has.
    """
    check_arguments(catalogue, locals())
    if isinstance(source, Mapping):
        return tuple(Candidate(name, _motor(name, motor)) for name, motor in source.items())
    if isinstance(source, str | PathLike):
        return tuple(_read(source))
    return tuple(source)


def _motor(name: str, motor: Any) -> Motor:
    if isinstance(motor, Motor):
        return motor
    raise InvalidArgument(
        f"catalogue, '{name}': expected a Motor(limit=...), got {shortened(motor)}"
    )


def _read(path: str | PathLike[str]) -> Iterator[Candidate]:
    try:
        text = read_bounded(path, LARGEST_CATALOGUE, "catalogue of motors").decode()
        tables = tomllib.loads(text)
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path}' is not a TOML file: {error}") from None
    motors = tables.get("motor")
    if not isinstance(motors, dict) or set(tables) != {"motor"}:
        raise FileError(f"'{path}': a catalogue has tables [motor.NAME] and nothing else")
    known = [f.name for f in fields(Motor)]
    for name, table in motors.items():
        if not isinstance(table, dict):
            raise FileError(f"'{path}': '{name}' is not a table [motor.{name}]")
        numbers = dict(table)
        if {"gear", "gears"} <= numbers.keys():
            raise FileError(
                f"'{path}', motor '{name}': it has gear and gears; give gears, a list of all ratios"
            )
        gears = numbers.pop("gears", [])
        for key, value in numbers.items():
            if key not in known:
                raise UnknownName(f"'{path}', motor '{name}'", "number", key, [*known, "gears"])
            _real(path, name, key, value)
        if not isinstance(gears, list):
            raise FileError(f"'{path}', motor '{name}': gears is a list of numbers")
        ratios = tuple(_real(path, name, "gears", gear) for gear in gears)
        yield Candidate(name, Motor(**numbers), ratios)


def _real(path: Any, name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FileError(
            f"'{path}', motor '{name}', {key}: expected a number, got {shortened(value)}"
        )
    return float(value)
