r"""Forces of the motors over the workspace, by inverse dynamics of the whole mechanism.

The motion of the output's reference point, its twist t and acceleration, gives the independent
speeds and accelerations through :math:`t = T(q)\, \nu`, :math:`\dot t = T \dot\nu + \dot T \nu`;
the motors' forces follow with the masses of all links, gravity and the load on the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.design.study import complete_at_home, described_at
from axode.errors import InvalidArgument, UnknownName, shortened
from axode.kinematics.robot_kinematics import Kinematics
from axode.kinematics.velocities.feasible_velocities import COMPONENTS
from axode.kinematics.velocities.singularities import MAX_POINTS, GridStates, read_axis
from axode.kinematics.velocities.velocity_jacobians import choose_output, read_point
from axode.kinematics.workspaces.pose_arguments import by_signals, signal_names
from axode.mechanism.values.expressions import numeric
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import RANK, SEVEN_DIGITS
from axode.problems.arguments import number
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")
LOAD = "load of the force map"


@dataclass(frozen=True, eq=False, repr=False)
class ForceMap:
    """Forces of the motors on a grid of two quantities; NaN where the robot has no such state.

    Attributes:
        robot: Name of the mechanism.
        names: What varies along x and y.
        units: Units of these.
        x, y: Values along the axes.
        forces: Forces and torques by the name of the input, (y, x) each [N or N m].
        force_units: Their units by name.
        limits: Largest force of each motor by name; infinite without a limit.
    """

    robot: str
    names: tuple[str, str]
    units: tuple[str, str]
    x: Array
    y: Array
    forces: dict[str, Array]
    force_units: dict[str, str]
    limits: dict[str, float]

    def __getitem__(self, name: str) -> Array:
        """Force of a motor, (y, x)."""
        if name not in self.forces:
            raise UnknownName("the force map", "input", name, list(self.forces))
        return self.forces[name]

    @property
    def largest(self) -> Array:
        """Largest force of all motors in size, (y, x)."""
        return np.max([np.abs(force) for force in self.forces.values()], axis=0)

    @property
    def share(self) -> Array:
        """Largest part of a motor's limit that is used, (y, x); zero without limits."""
        return np.max([np.abs(f) / self.limits[name] for name, f in self.forces.items()], axis=0)

    @property
    def worst(self) -> dict[str, Any]:
        """Where a motor gives the largest force: its name, the force, x and y by name."""
        if not np.isfinite(self.largest).any():
            raise InvalidArgument(f"force_map: '{self.robot}' reaches no point of the grid")
        row, column = np.unravel_index(int(np.nanargmax(self.largest)), self.largest.shape)
        name = max(self.forces, key=lambda n: abs(self.forces[n][row, column]))
        force = float(self.forces[name][row, column])
        x, y = float(self.x[column]), float(self.y[row])
        return {"motor": name, "force": force, self.names[0]: x, self.names[1]: y}

    def plot(
        self,
        motor: str | None = None,
        *,
        size: str = "screen",
        save: str | PathLike[str] | None = None,
    ) -> Any:
        """Figure of the forces over the two quantities, as colours.

        Args:
            motor: Name of an input, whose force is shown with its sign; the largest of all in size
                unless given.
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Returns:
            The `matplotlib.figure.Figure`.
        """
        force, worst = (self.largest if motor is None else self[motor]), self.worst
        what, unit = motor or "largest of all motors", self.force_units[motor or worst["motor"]]
        pairs = zip(self.names, self.units, (self.x, self.y), strict=True)
        axes = {f"{name} [{unit}]" if unit else name: at for name, unit, at in pairs}
        return call_stage("plot_map", force.T, axes, label=f"{what} [{unit}]", size=size, save=save)

    def __repr__(self) -> str:
        worst, reached = self.worst, np.isfinite(self.largest).mean()
        unit = self.force_units[worst["motor"]]
        pairs = zip(self.names, self.units, strict=True)
        place = ", ".join(f"{name} = {worst[name]:.4g} {unit}".rstrip() for name, unit in pairs)
        lines = [
            f"ForceMap of '{self.robot}' over {' and '.join(self.names)}, {reached:.0%} reached",
            f"  largest force {abs(worst['force']):.4g} {unit}, of {worst['motor']} at {place}",
        ]
        share = float(np.nanmax(self.share))
        return "\n".join([*lines, f"  {share:.0%} of the motor's limit"] if share else lines)


@stoppable
def force_map(
    robot: Kinematics,
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    *,
    points: int = 61,
    state: Mapping[str, float] | None = None,
    load: Mapping[str, float] | None = None,
    twist: Mapping[str, float] | None = None,
    acceleration: Mapping[str, float] | None = None,
    components: Sequence[str] | None = None,
    at: Any = None,
    parameters: Mapping[str, float] | None = None,
) -> ForceMap:
    """Find the forces of all motors on a grid of two coordinates or measures.

    At rest they are those of statics, of the weight of all links and of the load.

    Args:
        robot: The robot.
        x, y: Name, smallest and largest value of what varies along the axes.
        points: Number of values along each axis.
        state: Other coordinates and measures by name, or pose coordinates of the output; home
            unless given.
        load: Wrench on the output at the reference point by mx, my, mz [N m], fx, fy, fz [N], in
            world axes.
        twist: Velocity of the output by name of the components, in world axes; at rest unless
            given.
        acceleration: Rate of change of these components; zero unless given.
        components: Names of the output's velocities that count; the whole twist unless given.
        at: Reference point in the output's frame [m]; its origin unless given.
        parameters: Values by name instead of the defaults.

    Raises:
        UnknownName: for unknown components, coordinates and parameters.
        InvalidArgument: for ranges that are none, and motions that the output cannot have.
    """
    check_arguments(force_map, locals())
    if not 2 <= points <= MAX_POINTS:
        raise InvalidArgument(f"points: expected 2 to {MAX_POINTS} along an axis, got {points}")
    (x_name, x_range), (y_name, y_range) = read_axis("x", x), read_axis("y", y)
    output, point = choose_output(components), read_point(at)
    wanted = [
        _by_name("twist", twist, output.names),
        _by_name("acceleration", acceleration, output.names),
    ]
    wrench = _by_name("load", load, WRENCH)
    known = robot.model.parameters
    values = {name: number(name, value) for name, value in (parameters or {}).items()}
    for name in values:
        if name not in known:
            raise UnknownName(f"'{robot.model.name}'", "parameter", name, list(known))
    mechanism = described_at(robot, values)
    place = np.zeros(3) if point is None else point
    mechanism.add_wrench(LOAD, robot.output, at=place.tolist())
    model = mechanism.derive(self_check=False).compile()
    meant = signal_names(robot, (x_name, y_name))
    signals = [model.signals.resolve(n, "coordinate", "measure") for n in meant]
    xs, ys = np.linspace(*x_range, points), np.linspace(*y_range, points)
    names = signals[0].name, signals[1].name
    grid = dict(zip(names, np.meshgrid(xs, ys), strict=True))
    wanted_state = by_signals(robot, state or {})
    given = {**model.signals.names("coordinate", "measure").by_full_name(wanted_state)}
    given |= complete_at_home(robot, [*names, *given])
    states = GridStates(model, grid, given).spread().reshape(-1, len(model.coordinates))
    there = np.flatnonzero(np.isfinite(states).all(axis=-1))
    q = np.ascontiguousarray(states[there])
    nu, nu_dot = _motion(model, q, robot.output, place, output.matrix, wanted)
    loads = {f"{LOAD}.{name}": value for name, value in zip(WRENCH, wrench, strict=True)}
    u = np.array([loads.get(name, 0.0) for name in model.inputs])
    found = np.full((points**2, len(model.inputs)), np.nan)
    if len(q):
        found[there] = model.inverse_dynamics(q, nu, nu_dot, u=np.tile(u, (len(q), 1)))
    motors = [k for k, name in enumerate(model.inputs) if not name.startswith(LOAD)]
    limits = dict(zip(model.inputs, facts_of(model).limits, strict=False))  # motors come first
    return ForceMap(
        robot.mechanism.name,
        names,
        (signals[0].unit, signals[1].unit),
        xs,
        ys,
        {model.inputs[k]: found[:, k].reshape(points, points) for k in motors},
        {model.inputs[k]: model.signals.resolve(model.inputs[k]).unit for k in motors},
        {model.inputs[k]: limits.get(model.inputs[k]) or np.inf for k in motors},
    )


def _by_name(argument: str, given: Mapping[str, Any] | None, names: Sequence[str]) -> Array:
    """Read numbers by name, zero unless given."""
    found = np.zeros(len(names))
    for name, value in (given or {}).items():
        if name not in names:
            raise UnknownName(f"force_map, {argument}", "component", name, names)
        found[list(names).index(name)] = number(f"{argument} '{name}'", value)
    if not np.isfinite(found).all():
        raise InvalidArgument(f"{argument}: must be finite, got {shortened(given)}")
    return found


def _motion(
    model: Model, q: Array, body: str, point: Array, S: Array, wanted: Sequence[Array]
) -> tuple[Array, Array]:
    """Independent speeds and accelerations for a motion of chosen components of the output.

    Args:
        model: What moves.
        q: States, (states, coordinates).
        body: Name of the output.
        point: Its reference point in its frame [m].
        S: Rows that select components of the twist, (components, 6).
        wanted: Velocities and accelerations of the components.
    """
    n, k = len(model.independent), model.bodies.index(body)
    if not any(values.any() for values in wanted) or not len(q):
        return np.zeros((len(q), n)), np.zeros((len(q), n))
    mechanism = model.equations.system.mechanism
    com = np.array([numeric(x) for x in mechanism.bodies[k].com])
    arm = model.poses(q)[:, k, :3, :3] @ (point - com)  # from the mass centre, in world axes

    def moved(twists: Array, arms: Array) -> Array:
        """Refer rates of a rigid body's motion to the point."""
        angular, linear = twists[..., :3], twists[..., 3:]
        return np.concatenate([angular, linear + np.cross(angular, arms)], axis=-1)

    unit = np.broadcast_to(np.eye(n), (len(q), n, n))
    each = model.twists(np.repeat(q, n, axis=0), unit.reshape(-1, n)).reshape(len(q), n, -1, 6)
    T = S @ np.swapaxes(moved(each[:, :, k], arm[:, np.newaxis]), -1, -2)
    inverse = pseudo_inverse(T, tolerance=RANK)
    twist, rate = wanted
    nu = inverse @ twist
    drift = model.jvp("twists", {"q": model.rates(q, nu)}, q, nu)[:, k]
    omega = model.twists(q, nu)[:, k, :3]
    drift = moved(drift, arm)
    drift[:, 3:] += np.cross(omega, np.cross(omega, arm))
    left = rate - drift @ S.T
    nu_dot = (inverse @ left[..., np.newaxis])[..., 0]
    for what, values, made in (
        ("twist", np.broadcast_to(twist, left.shape), (T @ nu[..., np.newaxis])[..., 0]),
        ("acceleration", left, (T @ nu_dot[..., np.newaxis])[..., 0]),
    ):
        size = np.abs(values).max()
        if np.abs(made - values).max() > SEVEN_DIGITS * max(size, np.abs(wanted[0]).max()):
            raise InvalidArgument(
                f"{what}: '{body}' cannot move like this everywhere; name the components that "
                f"count, components=[...], of {', '.join(COMPONENTS)}"
            )
    return nu, nu_dot
