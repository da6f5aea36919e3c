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
from axode.problems.assemble.assemble import assemble
from axode.problems.simulate.inputs import limit_inputs
from axode.problems.simulate.simulate import simulate
from axode.show.viewer.servo import Motors

STEP = 1e-3  # [s] of the compiled integration
LONGEST = 0.1  # [s] made up for at once; a longer delay is lost, and reported
STRENGTH = 4.0  # times a brisk torque: what a speed is worth, near a singularity above all
WINDOW = 60  # frames over which the real-time factor is taken
MODES = ("speed", "torque")


class RealTimeRun:
    """A state that advances in real time.

    Attributes:
        model: What moves.
        running: Whether it advances.
        mode: What `wanted` means: "speed" of the motors, or "torque".
        wanted: One number per motor.
        q, nu, time: The state [s].
        u: Inputs of the last frame.
        last: What was recorded of the last frame: columns by name.
        message: Why it stopped, if it did by itself.
    """

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
        free = {} if model.facts.fixed else dict(model.parameters)
        self.parameters = free | dict(parameters or {})
        self.running = self._compiled = False
        self._strength = np.full(self.motors.count, np.inf)
        self.reset()

    @property
    def options(self) -> dict[str, Any]:
        """Time and parameters, as the model's functions take them."""
        return {"t": self.time} | ({"parameters": self.parameters} if self.parameters else {})

    def reset(self) -> None:
        """Return to the start, at rest unless the start has speeds; set all wishes to zero."""
        self.time, self.message = 0.0, ""
        self.wanted = np.zeros(self.motors.count)
        self.u = np.zeros(len(self.model.inputs))
        state = assemble(self.model, self._start, parameters=self.parameters or None)
        self.q, self.nu = state.q, state.nu
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
        duration = STEP * round(min(seconds, LONGEST) / STEP)
        if duration > 0 and self.running:
            self._frame(duration)

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
            self.u = self._inputs(duration)
            run = simulate(
                self.model,
                duration,
                start=(self.q, self.nu),
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

    def _inputs(self, duration: float) -> Array:
        if self.mode == "speed" and self.motors.count:  # held: right in the middle of the frame
            q = self.q + 0.5 * duration * self.model.rates(self.q, self.nu, **self.options)
            u = self.motors.torques(q, self.nu, self.wanted, self.options)
            k = self.motors.count
            u[:k] = np.clip(u[:k], -self._strength, self._strength)
            return u
        u = np.zeros(len(self.model.inputs))
        u[: self.motors.count] = self.wanted
        return limit_inputs(self.model, u)
