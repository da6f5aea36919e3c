"""A mechanism that runs in real time under what its driver wants."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from axode.errors import AxodeError, InvalidArgument
from axode.mechanism.scene.scene import Array
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.problems.assemble.assemble import assemble
from axode.problems.inputs.inputs import limit_inputs
from axode.problems.simulate.simulate import simulate
from axode.show.driving_axes import STEERING_ANGLE, driving_axes
from axode.show.viewer.pulling import Pull, pulled_speeds
from axode.show.viewer.servo import Motors

STEP = 1e-3  # [s] of the compiled integration
HOLD_STEPS = 25  # steps over which torques and pulls are held
LONGEST = 0.1  # [s] made up for at once; a longer delay is lost, and reported
STRENGTH = 4.0  # times a brisk torque: what a speed is worth, near a singularity above all
WINDOW = 60  # frames over which the real-time factor is taken
STEERING = 0.15  # [s]: steering approaches a wanted angle with this time constant
MODES = ("speed", "torque")


class RealTimeRun:
    """A state that advances in real time.

    Attributes:
        model: What moves.
        running: Whether it advances.
        mode: What `wanted` means: "speed" of the motors, or "torque".
        wanted: One number per motor; for "speed", motors that steer are given an angle instead.
        axes: What a driver can ask for, found at the start.
        steered: For each motor, the place of the coordinate that it steers; -1 for no steering.
        q, nu, time: The state [s].
        u: Inputs of the last frame.
        last: What was recorded of the last frame: columns by name.
        pull: A body that is dragged, and to where.
        message: Why it stopped, unless the user stopped it.
    """

    pull: Pull | None = None

    def __init__(
        self,
        model: Model,
        size: float,
        *,
        start: Any = None,
        mode: str = "speed",
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        if mode not in MODES:
            raise InvalidArgument(f"drive: '{mode}' is neither 'speed' nor 'torque'")
        self.model, self.motors, self.mode = model, Motors(model, size), mode
        self._start = start
        if parameters:
            model.parameter_vector(parameters)  # an error that lists them
        free = {} if facts_of(model).fixed else dict(model.parameters)
        self.parameters = free | dict(parameters or {})
        self.running = self._compiled = False
        self._strength = np.full(self.motors.count, np.inf)
        self.reset()
        self.axes = driving_axes(model, model.scene, self.q, self.options)
        self.steered = np.full(self.motors.count, -1)
        for axis in self.axes:
            if axis.coordinates:
                self.steered = np.array(axis.coordinates)

    @property
    def options(self) -> dict[str, Any]:
        """Time and parameters, as the model's functions take them."""
        return {"t": self.time} | ({"parameters": self.parameters} if self.parameters else {})

    def reset(self) -> None:
        """Return to the start, at rest unless the start has speeds; set all wishes to zero."""
        self.message = ""
        self.wanted = np.zeros(self.motors.count)
        self.u = np.zeros(len(self.model.inputs))
        state = assemble(self.model, self._start, parameters=self.parameters or None)
        self.q, self.nu, self.time = state.q, state.nu, float(state.conditions.t)
        self.last: dict[str, float] = {}
        self._frames: deque[tuple[float, float]] = deque(maxlen=WINDOW)

    def set_parameter(self, name: str, value: float) -> None:
        """Change a parameter; close the configuration again, next to where it was.

        Raises:
            LoopNotClosed: if that cannot be; the old value then stays.
        """
        given = self.parameters | {name: value}
        near = dict(zip(self.model.coordinates, self.q.tolist(), strict=True))
        speeds = dict(zip(self.model.independent, self.nu.tolist(), strict=True))
        state = assemble(self.model, near | speeds, t=self.time, parameters=given)
        self.parameters, self.q, self.nu = given, state.q, state.nu

    def most_wanted(self) -> Array:
        """Largest value of `wanted` for each motor."""
        if self.mode == "torque":
            return self.motors.most_torques(self.q, self.options)
        return np.where(self.steered >= 0, STEERING_ANGLE, self.motors.most_rates)

    def wanted_names(self) -> list[tuple[str, str]]:
        """Name and unit of what each entry of `wanted` sets."""
        motors, model = self.motors, self.model
        if self.mode == "torque":
            return list(zip(motors.names, motors.units, strict=True))
        names = list(zip(motors.rate_names(self.q, self.options), motors.rate_units, strict=True))
        for k in np.flatnonzero(self.steered >= 0):
            names[k] = (model.coordinates[self.steered[k]], "rad")
        return names

    def poses(self) -> Array:
        """Poses of all bodies: (bodies, 4, 4)."""
        return self.model.poses(self.q, **self.options)

    def forces(self) -> Array:
        """Contact forces [N], (contacts, 3), NaN where unknown."""
        return self.model.contact_forces(self.q, self.nu, self.u, **self.options)

    def energy(self) -> float:
        """Kinetic and potential [J]."""
        return float(self.model.energy(self.q, self.nu, **self.options).sum())

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per second on the clock, over the last frames."""
        if len(self._frames) < 2:
            return 1.0
        (wall_0, time_0), (wall_1, time_1) = self._frames[0], self._frames[-1]
        return (time_1 - time_0) / max(wall_1 - wall_0, 1e-9)

    def advance(self, seconds: float) -> None:
        """Advance by so much time, at most 0.1 s; a failure stops it and is reported."""
        if not self.running:
            self._frames.clear()
            return
        if not self._compiled:
            self._compile()
        self._frames.append((time.perf_counter(), self.time))
        steps = round(min(seconds, LONGEST) / STEP)
        for piece in range(0, steps, HOLD_STEPS):
            if self.running:
                self._frame(STEP * min(HOLD_STEPS, steps - piece))

    def _compile(self) -> None:
        """Take a step that does not count, so that all is compiled before the clock starts."""
        kept = self.q, self.nu, self.time, self.u
        if self.motors.count:
            self._strength = STRENGTH * self.motors.most_torques(self.q, self.options)
        self._frame(STEP)
        self.q, self.nu, self.time, self.u = kept
        if self.model.contacts:
            self.forces()
        self._compiled = True

    def _frame(self, duration: float) -> None:
        try:
            nu = self.nu
            if self.pull is not None:
                nu = pulled_speeds(self.model, self.q, nu, self.pull, duration, self.options)
            self.u = self._inputs(nu, duration)
            run = simulate(
                self.model,
                duration,
                start=(self.q, nu),
                input=self.u if len(self.u) else None,
                method="rk4",
                step=STEP,
                save_every=duration,
                t0=self.time,
                progress=False,
                parameters=self.parameters or None,
            )
        except (AxodeError, np.linalg.LinAlgError) as error:
            self.running, self.message = False, str(error).split("\n")[0]
            return
        self.last = run.final
        self.q = np.array([self.last[name] for name in self.model.coordinates])
        self.nu = np.array([self.last[name] for name in self.model.independent])
        self.time = float(run.time[-1])

    def _inputs(self, nu: Array, duration: float) -> Array:
        if self.mode == "speed" and self.motors.count:  # held: right in the middle of the frame
            q = self.q + 0.5 * duration * self.model.rates(self.q, nu, **self.options)
            u = self.motors.torques(q, nu, self._wanted_rates(), self.options)
            k = self.motors.count
            u[:k] = np.clip(u[:k], -self._strength, self._strength)
            return u
        u = np.zeros(len(self.model.inputs))
        u[: self.motors.count] = self.wanted
        return limit_inputs(self.model, u)

    def _wanted_rates(self) -> Array:
        """Rates of the motors; those that steer approach their angle, counted from home."""
        rates, on = self.wanted.copy(), self.steered >= 0
        place = self.steered[on]
        missing = rates[on] - (self.q[place] - self.model.home[place])
        most = self.motors.most_rates[on]
        rates[on] = np.clip(missing / STEERING, -most, most)
        return rates
