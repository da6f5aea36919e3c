"""Settings of a simulation: method, step size, tolerances and times of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.codegen.host import check_threads
from axode.errors import InvalidArgument, UnknownName
from axode.numerics.tolerances import ON_TIME, ORDER_EIGHT
from axode.problems.arguments import number
from axode.problems.steps.audit import STEPS_TOLERANCE, energy_rounding, energy_tolerance
from axode.problems.steps.compiled import (
    AUTOMATIC,
    EQUAL_STEPS,
    EXPLICIT,
    EXPLICIT_FINE,
    METHODS,
    PROGRAMS,
    STEPS,
    Place,
)

Array = npt.NDArray[np.float64]
SINGULAR_CHOICES = ("stop", "pass")
JUMP_CHOICES = ("impulse", "refuse")
DEFAULT_SAMPLES = 500  # saved unless `save_every` is given
DEFAULT_STEP = 1e-3  # [s] of rk4, pages, the viewer and FMUs unless given
# neighbouring floating-point times that an interval has to span
MIN_TIMES = {"duration": 1024, "save_every": 4, "step": 4}
MAX_SAMPLES = 1e8  # that are kept: a gigabyte per column
MAX_STEPS = 1e12  # of rk4: a day of a fast machine


@dataclass(frozen=True)
class Settings:
    """Method, time and tolerances, all of them checked."""

    method: str
    t0: float
    duration: float
    step: float | None
    save_every: float | None
    rtol: float
    atol: float
    threads: int | None
    place: Place = field(default_factory=Place)
    review: float = math.inf  # implicit steps after which their cost is compared
    singular: str = "stop"  # what to do where constraints lose rank
    jumps: str = "impulse"  # what to do where prescribed rates jump
    at: tuple[float, ...] = ()  # times at which states are saved, where they are not equally spaced
    longest: float = math.inf  # adaptive step [s]

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in (AUTOMATIC, *PROGRAMS):
            raise UnknownName("simulate", "method", self.method, (AUTOMATIC, *METHODS))
        if not isinstance(self.singular, str) or self.singular not in SINGULAR_CHOICES:
            raise UnknownName("simulate(singular=...)", "choice", self.singular, SINGULAR_CHOICES)
        if not isinstance(self.jumps, str) or self.jumps not in JUMP_CHOICES:
            raise UnknownName("jumps=...", "choice", self.jumps, JUMP_CHOICES)
        if self.step is not None and self.adaptive:
            raise InvalidArgument(
                f"step: {self.method} chooses its own steps; use method='rk4', or rtol and atol"
            )
        for name in ("duration", "t0", "rtol", "atol", "step", "save_every"):
            if getattr(self, name) is not None:
                value = number(name, getattr(self, name))
                if not math.isfinite(value):
                    raise InvalidArgument(f"{name}: must be a finite number, got {value}")
                object.__setattr__(self, name, value)
        if self.duration == 0:
            raise InvalidArgument("duration: must not be zero")
        if self.threads is not None:
            check_threads(self.threads)
        for name in ("rtol", "atol", "step", "save_every"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidArgument(f"{name}: must be > 0, got {value}")
        self._check_possible()
        self.place.check(self.stepper, 0 if self.adaptive else self.n_steps)

    @property
    def solve_tolerances(self) -> tuple[float, float]:
        """Relative and absolute tolerance to which implicit stages are solved."""
        return self.rtol, self.atol

    @property
    def stepper(self) -> str:
        """The method that takes the first step."""
        if self.method != AUTOMATIC:
            return self.method
        # on a GPU the rates of many stages leave the registers
        return (
            EXPLICIT_FINE if self.rtol <= ORDER_EIGHT and self.place.target == "cpu" else EXPLICIT
        )

    @property
    def explicit(self) -> bool:
        """True if the first steps are explicit and adaptive."""
        return self.stepper in (EXPLICIT, EXPLICIT_FINE)

    @property
    def adaptive(self) -> bool:
        """True if the method chooses its own steps."""
        return self.method not in EQUAL_STEPS

    def steps_taken(self) -> dict[str, str | float]:
        """Describe what the length of the steps follows from."""
        if not self.adaptive:
            return {"method": self.method, "step": self.step_size, "steps": self.n_steps}
        return {"method": self.method, "rtol": self.rtol, "atol": self.atol}

    def _check_possible(self) -> None:
        """Check that times of steps differ as numbers, and that the samples fit into memory."""
        step = self.step if self.adaptive else self.step_size
        asked = {"duration": abs(self.duration), "save_every": self.save_every, "step": step}
        latest = max(abs(self.t0), abs(self.t_end))
        for name, value in asked.items():
            if value is not None and value < MIN_TIMES[name] * math.ulp(latest):
                raise InvalidArgument(
                    f"{name}: {value:g} s is too short at t = {latest:g} s, where times are "
                    f"{math.ulp(latest):.2g} s apart; make it longer, or t0 smaller"
                )
        samples = 0.0 if self.save_every is None else abs(self.duration) / self.save_every
        if samples > MAX_SAMPLES:
            raise InvalidArgument(
                f"save_every: {self.save_every:g} s makes {samples:.2g} samples, and at most "
                f"{MAX_SAMPLES:g} are kept; make it longer"
            )
        if not self.adaptive and self.n_steps > MAX_STEPS:
            raise InvalidArgument(
                f"step: {self.step_size:g} s makes {self.n_steps:.2g} steps, and at most "
                f"{MAX_STEPS:g} are done; make it longer, or the duration shorter"
            )

    def numbers(self) -> dict[str, float]:
        """Numbers that steps of any method read, by the names of their buffers."""
        numbers = {
            "t0": self.t0,
            "t_end": self.t_end,
            "time_direction": self.direction,
            "rtol": self.rtol,
            "atol": self.atol,
            "rows": len(self.times),
            "longest": min(abs(self.duration), self.longest),
            "energy_tolerance": self.energy_tolerance,
            "energy_rounding": energy_rounding(self.place.precision),
        }
        if not self.adaptive:
            numbers |= {
                "h": self.direction * self.step_size,
                "n_steps": self.n_steps,
                "save_steps": self.save_steps,
            }
        return numbers | dict(zip(("solve_rtol", "solve_atol"), self.solve_tolerances, strict=True))

    @property
    def t_end(self) -> float:
        """Time at the end [s]."""
        return self.t0 + self.duration

    @property
    def energy_tolerance(self) -> float:
        """Error of the balance of energy that passes, relative to the largest energy of a run."""
        if self.method == STEPS:
            return STEPS_TOLERANCE
        return energy_tolerance(self.rtol if self.adaptive else None)

    @property
    def direction(self) -> float:
        """1 forwards in time, -1 backwards."""
        return math.copysign(1.0, self.duration)

    @cached_property
    def step_size(self) -> float:
        """Step size of rk4 [s]: the given one, or the next smaller one that meets the samples."""
        step = DEFAULT_STEP if self.step is None else self.step
        if self.save_every is None:
            return min(step, abs(self.duration))
        return self.save_every / max(1, math.ceil(self.save_every / step - ON_TIME))

    @property
    def n_steps(self) -> int:
        """Number of steps of rk4, the last one perhaps shorter."""
        return max(1, math.ceil(abs(self.duration) / self.step_size - ON_TIME))

    @property
    def save_steps(self) -> int:
        """Number of steps of rk4 between samples."""
        every = abs(self.duration) / DEFAULT_SAMPLES if self.save_every is None else self.save_every
        return max(1, round(every / self.step_size))

    @cached_property
    def times(self) -> Array:
        """Times at which states are saved, start and end included [s]."""
        if self.at:
            return np.array([self.t0, *self.at])
        if not self.adaptive:
            every = self.save_steps * self.step_size
        else:
            every = (
                abs(self.duration) / DEFAULT_SAMPLES if self.save_every is None else self.save_every
            )
        count = max(0, math.ceil(abs(self.duration) / every - ON_TIME) - 1)
        times = self.t0 + self.direction * every * np.arange(count + 1)
        return np.append(times, self.t_end)
