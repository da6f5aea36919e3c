"""A mechanism that runs in real time under what its driver wants of motors, or drags."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.errors import AxodeError, InvalidArgument, NotApplicable
from axode.mechanism.scene.scene import Array
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import RANK, ROUNDING
from axode.problems.assemble.assemble import assemble
from axode.problems.inputs.inputs import limit_inputs
from axode.problems.runs.settings import DEFAULT_STEP
from axode.problems.simulate.simulate import simulate
from axode.show.driving_axes import STEERING_ANGLE, driving_axes, moved_by

HOLD_STEPS = 25  # steps over which torques and pulls are held
LONGEST = 0.1  # [s] made up for at once; a longer delay is lost, and reported
STRENGTH = 4.0  # times a brisk torque: what a speed is worth, near a singularity above all
WINDOW = 60  # frames over which the real-time factor is taken
STEERING = 0.15  # [s]: steering approaches a wanted angle with this time constant
MODES = ("speed", "torque")
PULL = 200.0  # [m/s2] of what the spring moves, if it is as long as the mechanism
NEAR = 0.1  # of the mechanism's size: the spring suits points at least so far from the mass centre
SETTLING = 0.08  # [s]: a motor's speed approaches the wanted one with this time constant
TURN_RATE, WHEEL_RATE = 2.0, 8.0  # [rad/s] that a slider reaches, of a joint and of a wheel
SLIDE_RATE = 0.2  # sizes of the mechanism per second
RISE = 0.4  # [s] in which the largest torque of a slider reaches the largest speed of one


class RealTimeRun:
    """A state that advances in real time.

    Attributes:
        model: What moves.
        running: Whether it advances.
        mode: What `wanted` means: "speed" of the motors, or "torque".
        modes: Those that there are: contacts that slip leave torques alone.
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
        slips = bool(facts_of(model).contact_table)
        self.modes = MODES[1:] if slips else MODES
        if mode == "speed" and slips and facts_of(model).motors:
            raise NotApplicable(
                f"drive: '{model.name}' has contacts that slip and lift, and how fast its motors "
                'turn is not theirs alone.\n  drive="torque" sets torques; wheels that never slip '
                "take speeds: view(mechanism.ideal(), drive=True)"
            )
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
        """Contact forces [N], (contacts, 3), NaN where unknown, as in steps through contacts."""
        if facts_of(self.model).contact_table:
            return np.full((len(self.model.scene.touches), 3), np.nan)
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
        steps = round(min(seconds, LONGEST) / DEFAULT_STEP)
        for piece in range(0, steps, HOLD_STEPS):
            if self.running:
                self._frame(DEFAULT_STEP * min(HOLD_STEPS, steps - piece))

    def _compile(self) -> None:
        """Take a step that does not count, so that all is compiled before the clock starts."""
        kept = self.q, self.nu, self.time, self.u
        if self.motors.count:
            self._strength = STRENGTH * self.motors.most_torques(self.q, self.options)
        self._frame(DEFAULT_STEP)
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
                **self._stepping,
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

    @property
    def _stepping(self) -> dict[str, Any]:
        """How to integrate: through contacts that slip and lift, where there are some."""
        slips = bool(facts_of(self.model).contact_table)
        return {"step": DEFAULT_STEP, **({"contacts": "steps"} if slips else {"method": "rk4"})}

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


@dataclass(frozen=True)
class Pull:
    """A body that is dragged.

    Attributes:
        body: Its place among the bodies.
        centre: Its mass centre, in its own axes [m].
        point: Where it is held, in its own axes [m].
        target: Where the pointer is, in the world [m].
        size: Size of the mechanism [m].
    """

    body: int
    centre: Array
    point: Array
    target: Array
    size: float


def pulled_speeds(
    model: Model, q: Array, nu: Array, pull: Pull, duration: float, options: dict[str, Any]
) -> Array:
    """Speeds after the impulse of a damped spring over some time.

    The spring suits the least effective mass of points around the mass centre, as far from it as
    the one that is held: critically damped, and as strong for a light part as for a heavy one.
    Where the held point hardly moves, as next to an axis, it is not stronger than that. Its force
    is that at the end of the time (implicit Euler), so that long frames do not make it unstable.

    Args:
        model: What moves.
        q: Coordinates.
        nu: Independent speeds before.
        pull: The body and the pointer.
        duration: Length of time [s].
        options: Time and parameters, as the model's functions take them.

    Returns:
        Independent speeds after.
    """
    pose = model.poses(q, **options)[pull.body]
    arm = pose[:3, :3] @ (pull.point - pull.centre)
    held = pose[:3, :3] @ pull.point + pose[:3, 3]
    still = model.twists(q, np.zeros(len(nu)), **options)[pull.body]
    twists = model.twists(q, np.eye(len(nu)), **options)[:, pull.body] - still
    inertia = model.mass_matrix(q, **options)
    J = _point_jacobian(twists, arm)
    velocity = J @ nu + still[3:] + np.cross(still[:3], arm)
    answer = np.linalg.solve(inertia, J.T)  # speeds per impulse
    response = J @ answer
    around = max(float(np.linalg.norm(arm)), NEAR * pull.size) * np.concatenate(
        [np.eye(3), -np.eye(3)]
    )
    others = [_point_jacobian(twists, other) for other in around]
    responses = [response, *(K @ np.linalg.solve(inertia, K.T) for K in others)]
    softest = float(np.linalg.eigvalsh(np.stack(responses)).max())
    if not softest > ROUNDING:  # [1/kg]: a body that responds less does not move
        return nu
    frequency = np.sqrt(PULL / pull.size)
    stiffness, damping = frequency**2 / softest, 2 * frequency / softest
    coming = stiffness * (pull.target - held - duration * velocity) - damping * velocity
    weight = duration * damping + duration**2 * stiffness
    force = np.linalg.solve(np.eye(3) + weight * response, coming)
    after: Array = nu + duration * answer @ force
    return after


def _point_jacobian(twists: Array, arm: Array) -> Array:
    """Velocity of a point, so far from the mass centre, for unit independent speeds: (3, n)."""
    jacobian: Array = (twists[:, 3:] + np.cross(twists[:, :3], arm)).T
    return jacobian


class Motors:
    """The motors of a model; rates are those that their torques work on, by the power they give."""

    def __init__(self, model: Model, size: float) -> None:
        self.model, self.count = model, facts_of(model).motors
        self.names = model.inputs[: self.count]
        units = facts_of(model).input_units[: self.count]
        self.units = tuple(units)
        self.rate_units = tuple("m/s" if unit == "N" else "rad/s" for unit in units)
        turn = WHEEL_RATE if model.contacts else TURN_RATE
        slide = _round_up(SLIDE_RATE * size)
        self.most_rates = np.array([slide if unit == "N" else turn for unit in units])

    def rates(self, q: Array, nu: Array, options: dict[str, Any]) -> Array:
        """Speeds of all motors [rad/s or m/s]."""
        return self._shares(q, options) @ nu

    def rate_names(self, q: Array, options: dict[str, Any]) -> list[str]:
        """Names of the motors' speeds: those of joints, or numbers for motors between joints."""
        joints = self.model.joint_speeds(q, np.eye(len(self.model.independent)), **options)
        joints = joints - self.model.joint_speeds(q, **options)
        names: list[str] = []
        for k, share in enumerate(self._shares(q, options)):
            place = moved_by(joints, share)
            names.append(self.model.speed_names[place] if place >= 0 else f"motor {k + 1}")
        return names

    def torques(self, q: Array, nu: Array, wanted: Array, options: dict[str, Any]) -> Array:
        """Inputs under which the motors approach the wanted rates, limits kept.

        Accelerations are affine in the inputs, so the inputs for wanted ones solve a linear system;
        least squares where motors are too few, least effort where they are too many.
        """
        shares = self._shares(q, options)
        still, gains = self._response(q, nu, shares, options)
        missing = (wanted - shares @ nu) / SETTLING - still
        if not (np.isfinite(gains).all() and np.isfinite(missing).all()):
            raise NotApplicable(f"'{self.model.name}' has accelerations that are not finite")
        u = np.zeros(len(self.model.inputs))
        u[: self.count] = least_norm(gains, missing, RANK)
        return limit_inputs(self.model, u)

    def most_torques(self, q: Array, options: dict[str, Any]) -> Array:
        """Return the largest torque of each slider: its limit, or what moves it briskly."""
        nu = np.zeros(len(self.model.independent))
        _, gains = self._response(q, nu, self._shares(q, options), options)
        alone = np.abs(np.diag(gains))
        brisk = np.divide(self.most_rates / RISE, alone, out=np.ones(self.count), where=alone > 0)
        hold = np.abs(self.torques(q, nu, np.zeros(self.count), options)[: self.count])
        limits = [math.inf if x is None else float(x) for x in facts_of(self.model).limits]
        rough = np.maximum(brisk, 2 * hold)
        if facts_of(self.model).contact_table:  # what drives free wheels does not move a vehicle
            weight = np.abs(self.model.potential_force(q, **options)).max(initial=0.0)
            radii = [touch.radius for touch in self.model.scene.touches]
            rough = np.maximum(rough, weight * max(radii, default=0.0))
        return np.array(
            [
                bound if math.isfinite(bound) else _round_up(x)
                for x, bound in zip(rough, limits, strict=True)
            ]
        )

    def _shares(self, q: Array, options: dict[str, Any]) -> Array:
        """Rates of the motors for unit independent speeds: the transpose of what torques do."""
        return self.model.input_force(q, self._units(), **options)

    def _units(self) -> Array:
        return np.eye(self.count, len(self.model.inputs))

    def _response(
        self, q: Array, nu: Array, shares: Array, options: dict[str, Any]
    ) -> tuple[Array, Array]:
        """Accelerations of the motors without inputs, and what each input of one adds to each."""
        u = np.concatenate([np.zeros((1, len(self.model.inputs))), self._units()])
        arrays = {"q": np.broadcast_to(q, (len(u), q.size)), "u": u}
        arrays["nu"] = np.broadcast_to(nu, (len(u), nu.size))
        made = self.model.evaluate("forward_dynamics", arrays, options) @ shares.T  # type: ignore[arg-type]
        return made[0], (made[1:] - made[0]).T


def _round_up(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least as large."""
    if not (math.isfinite(rough) and rough > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return float(power * min(step for step in (1.0, 2.0, 5.0, 10.0) if step * power >= rough))
