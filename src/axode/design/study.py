r"""Designs of a robot, evaluated over the poses of a task in compiled batches.

A design is a value for each of some parameters of the description. Poses are states by name, which
are assembled for each design from home. With J the map from driven speeds to the output's velocity
:math:`(L \omega, v)`, lengths L making turning and moving comparable, a pose of a design has

- dexterity :math:`\sigma_{min}(J) / \sigma_{max}(J)`, one where the robot is isotropic;
- force :math:`\sigma_{max}(J)`, since motors bear a load w by :math:`\tau = -J^T w`: the norm of
  the motors' forces at the worst load of unit norm, couples divided by L;
- stiffness of the softest direction, angles multiplied by L: by how much the largest compliance
  divides one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.kinematics.robot_kinematics import Kinematics
from axode.kinematics.velocities.singularities import KINDS, Margins, margins_of
from axode.kinematics.velocities.velocity_jacobians import (
    check_length,
    choose_output,
    dexterity_of,
    jacobians_of,
    read_point,
    read_springs,
    robot_velocities,
    stiffness_of,
)
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.parameter_values import at_values
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.model.state import signal_values
from axode.numerics.rank import singular_values
from axode.numerics.tolerances import ROW_RANK, SEVEN_DIGITS
from axode.problems.arguments import checked_parameters, number, read_state
from axode.problems.assemble.assemble import assemble
from axode.problems.simulate.starts import find_starts
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.design.optimum import Cost, Optimum


def complete_at_home(robot: Kinematics, named: Collection[str]) -> dict[str, float]:
    """Return values at home of coordinates and measures that, with the named ones, make a state.

    Closing loops moves whatever is not named. Measures are taken first, then coordinates of the
    joint that carries the output, then driven ones, as far as each adds a freedom at home.

    Args:
        robot: The robot.
        named: Full names of coordinates and measures that are given.
    """
    model = robot.model
    n, q = len(model.independent), model.home
    rates = model.rates(np.tile(q, (n, 1)), np.eye(n)) if n else np.zeros((0, len(q)))
    by_name = dict(zip(model.coordinates, rates.T, strict=True))
    values = dict(zip(model.coordinates, q, strict=True))
    places = [
        k for k, s in enumerate(model.measure_names) if not model.signals.depends_on_speeds(s)
    ]
    if places:
        slopes, found = model.measures_jacobian(q)[:, : len(q)], model.measures(q)
        for k in places:
            by_name[model.measure_names[k]] = rates @ slopes[k]
            values[model.measure_names[k]] = found[k]
    parts = {model.coordinates[k] for four in facts_of(model).quaternions for k in four}
    carrier = next(c for c in robot.mechanism.connections if c.child == robot.output)
    candidates = [model.measure_names[k] for k in places]
    candidates += [name for name in carrier.coordinates if name not in parts]
    basis: list[np.ndarray] = []
    chosen: dict[str, float] = {}
    for name in [*named, *candidates, *robot.driven]:
        row = by_name.get(name)
        if row is None or len(basis) == n:
            continue
        left = row - sum((row @ b) * b for b in basis)
        size = np.linalg.norm(left)
        if size > ROW_RANK * np.linalg.norm(row):
            basis.append(left / size)
            if name not in named:
                chosen[name] = float(values[name])
    return chosen


def described_at(robot: Kinematics, values: Mapping[str, float]) -> Mechanism:
    """Return the description with other values of parameters, the output at home as before."""
    made = at_values(robot.mechanism, values)
    if values:
        home = assemble(robot.model, complete_at_home(robot, ()), parameters=values)
        made.set_home(dict(zip(robot.model.coordinates, home.q.tolist(), strict=True)))
    return made


Array = npt.NDArray[np.float64]
MOST_STATES = 20_000  # that are evaluated together: their matrices take some 200 MB
LIMITED = ("coordinate", "measure")


@dataclass(frozen=True, eq=False, repr=False)
class Designs:
    """What some designs do at the poses of a study; arrays are (designs, poses).

    Where a design does not reach a pose, values are NaN.

    Attributes:
        parameters: Values of the variables by name, (designs,) each.
        condition: Condition number of the map from driven speeds to the output's velocity.
        manipulability: Product of the singular values of that map.
        force: Norm of the motors' forces that hold the worst load of unit norm.
        stiffness: Smallest stiffness of the output, of any direction [N/m if driven by springs in
            N/m].
        margins: Distances from singularities of every kind.
        signals: Values of the limited coordinates and measures by name.
        limits: Smallest and largest value of each of them.
        least_margins: Smallest margins from singularities that are allowed, by kind.
    """

    parameters: dict[str, Array]
    condition: Array
    manipulability: Array
    force: Array
    stiffness: Array
    margins: Margins
    signals: dict[str, Array]
    limits: dict[str, tuple[float, float]]
    least_margins: dict[str, float]

    @property
    def dexterity(self) -> Array:
        """Reciprocal of the condition number: one if isotropic, zero if singular."""
        return np.asarray(1.0 / self.condition)

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """Return which poses are reached, limits aside."""
        return np.isfinite(self.force)

    @property
    def room(self) -> Array:
        """Distances from all limits, (designs, poses, limits); negative beyond them.

        Those of signals are parts of their range, those of singularities margins.
        """
        found = []
        for name, (low, high) in self.limits.items():
            values, width = self.signals[name], high - low if np.isfinite(high - low) else 1.0
            found += [(values - low) / width] if np.isfinite(low) else []
            found += [(high - values) / width] if np.isfinite(high) else []
        found += [self.margins[kind] - least for kind, least in self.least_margins.items()]
        nothing = np.zeros((*self.condition.shape, 0))
        return np.stack(found, axis=-1) if found else nothing

    @property
    def within(self) -> npt.NDArray[np.bool_]:
        """Return which poses are reached within all limits, to a millionth of their ranges."""
        return np.asarray(self.reached & (self.room >= -SEVEN_DIGITS).all(axis=-1))

    @property
    def workspace(self) -> Array:
        """Part of the poses that each design reaches within all limits, (designs,)."""
        return np.asarray(self.within.mean(axis=-1))

    def __len__(self) -> int:
        return len(self.condition)

    def __getitem__(self, k: Any) -> Designs:
        """Select some designs."""
        places = np.atleast_1d(np.arange(len(self))[k])
        return _each(lambda array: array[places], self)

    def __repr__(self) -> str:
        designs, poses = self.condition.shape
        head = f"{counted(designs, 'design')} at {counted(poses, 'pose')}"
        known = self.reached.any()
        worst = np.where(self.reached, self.dexterity, np.inf).min(axis=-1)
        range_ = f", smallest dexterity {worst.min():.4g} to {worst.max():.4g}" if known else ""
        return f"Designs: {head}{range_}, workspace up to {self.workspace.max(initial=0):.0%}"


_PER_POSE = ("condition", "manipulability", "force", "stiffness")


class Study:
    """Parameters of a robot to be chosen, and the poses and limits by which they are judged.

    Args:
        robot: What is designed; the variables are parameters of its description.
        variables: Bounds (smallest, largest) of the variables by the names of the parameters.
        poses: Poses of the task: coordinates and measures by name, arrays of any common shape;
            freedoms that are left out are as at home.
        limits: (smallest, largest) of coordinates and measures that every pose must keep, such as
            the lengths of legs; infinite for none. Patterns such as `l*` stand for several.
        margins: Smallest margins from singularities by kind: "serial", "parallel", "mobility" or
            "passive".
        springs: Stiffness of joints, as for `Kinematics.stiffness`.
        components: Names of the output's velocities that count; the whole twist unless given.
        at: Reference point in the output's frame [m]; its origin unless given.
        length: Length by which turning and moving are compared [m]; the robot's size at home
            unless given, the same for all designs.

    Attributes:
        robot: As given.
        variables: Bounds by name.
        length: The length that is used [m].

    Raises:
        UnknownName: for unknown parameters, coordinates and kinds.
        InvalidArgument: for bounds and limits that are no ranges, and poses that do not fit.
    """

    def __init__(
        self,
        robot: Kinematics,
        variables: Mapping[str, Sequence[float]],
        poses: Mapping[str, npt.ArrayLike] | None = None,
        *,
        limits: Mapping[str, Sequence[float]] | None = None,
        margins: Mapping[str, float] | None = None,
        springs: float | Mapping[str, float] = 1.0,
        components: Sequence[str] | None = None,
        at: Any = None,
        length: float | None = None,
    ) -> None:
        check_arguments(Study.__init__, locals())
        if not isinstance(robot, Kinematics):
            raise InvalidArgument(f"Study, robot: expected a Kinematics, got {shortened(robot)}")
        self.robot, model = robot, robot.model
        for name in variables:
            if name not in model.parameters:
                raise UnknownName(f"'{model.name}'", "parameter", name, list(model.parameters))
        if not variables:
            known = ", ".join(model.parameters) or "it has none; see ax.Parameter"
            raise InvalidArgument(f"Study: name the parameters that vary, of {known}")
        self.variables = {n: _range(f"variables, '{n}'", b) for n, b in variables.items()}
        if not all(np.isfinite(bounds).all() for bounds in self.variables.values()):
            raise InvalidArgument("Study, variables: bounds must be finite")
        self._output, self._point = choose_output(components), read_point(at)
        self._springs = read_springs(robot, springs)
        self._velocities = robot_velocities(robot)
        self._sprung = robot_velocities(robot, tuple(self._springs))
        self.length = check_length(length) or self._velocities.rows.length
        self._least_margins: dict[str, float] = {}
        for kind, least in (margins or {}).items():
            if kind not in KINDS:
                raise UnknownName("Study, margins", "kind of singularity", kind, KINDS)
            self._least_margins[kind] = number(f"margins '{kind}'", least)
        self._limits = self._read_limits(limits or {})
        given = read_state(model, dict(poses or {}), "poses")
        named: dict[str, Any] = model.signals.names(*STATE_KINDS).by_full_name(given.named)
        named |= complete_at_home(robot, named)
        arrays = np.broadcast_arrays(*named.values())
        self._poses = {n: a.ravel() for n, a in zip(named, arrays, strict=True)}
        self._pose_count = arrays[0].size
        if not self._pose_count:
            raise InvalidArgument("Study, poses: give at least one")

    def _read_limits(self, given: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        signals = self.robot.model.signals
        names = [s.name for s in signals if s.kind in LIMITED]
        found: dict[str, tuple[float, float]] = {}
        for pattern, bounds in given.items():
            meant = [name for name in names if fnmatchcase(name, pattern)]
            if not meant:
                meant = [signals.resolve(pattern, *STATE_KINDS).name]
            found |= dict.fromkeys(meant, _range(f"limits '{pattern}'", bounds))
        return found

    @stoppable
    def evaluate(
        self, designs: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None
    ) -> Designs:
        """Evaluate designs at all poses.

        Args:
            designs: Values of the variables by name, numbers or arrays (designs,), the others as
                described; or an array (designs, variables). The described design unless given.
        """
        model = self.robot.model
        if designs is None or isinstance(designs, Mapping):
            for name in designs or {}:
                if name not in self.variables:
                    raise UnknownName("Study", "variable", name, list(self.variables))
            named = {n: (designs or {}).get(n, model.parameters[n]) for n in self.variables}
            x = np.stack(np.broadcast_arrays(*map(np.asarray, named.values())), axis=-1)
        else:
            x = np.asarray(designs, dtype=float)
        x = np.atleast_2d(np.asarray(x, dtype=float))
        if x.ndim != 2 or x.shape[1] != len(self.variables) or not np.isfinite(x).all():
            raise InvalidArgument(
                f"designs: expected finite numbers for {', '.join(self.variables)}, (designs, "
                f"{len(self.variables)}), got shape {x.shape}"
            )
        at_once = max(1, MOST_STATES // self._pose_count)
        parts = [self._evaluate(x[k : k + at_once]) for k in range(0, len(x), at_once)]
        return _each(lambda *arrays: np.concatenate(arrays), *parts)

    def _evaluate(self, x: Array) -> Designs:
        model, shape = self.robot.model, (len(x), self._pose_count)
        parameters = {n: x[:, k] for k, n in enumerate(self.variables)}
        p = checked_parameters(model, {n: v[:, np.newaxis] for n, v in parameters.items()})
        start = read_state(model, self._poses, "poses")
        starts = find_starts(model, start, 0.0, p, shape, many=True)
        conditions = Conditions(0.0, starts.p)
        reference = (model, starts.q, conditions, self._point, self.length)
        found = self._velocities.at(*reference)
        sprung = found if self._sprung is self._velocities else self._sprung.at(*reference)
        jacobians = jacobians_of(found, self._output)
        measured = dexterity_of(jacobians, self.length)
        L = np.where([unit == "rad/s" for unit in self._output.units], self.length, 1.0)
        J, soft = jacobians.forward, stiffness_of(sprung, self._springs, self._output).compliance
        known, held = (np.asarray(np.isfinite(A).all(axis=(-2, -1))) for A in (J, soft))
        loose = np.isinf(soft).any(axis=(-2, -1))
        sizes = singular_values(np.where(known[:, None, None], L[:, None] * J, 0.0))
        scaled = np.where(held[:, None, None], soft * np.outer(L, L), 0.0)
        softest = np.linalg.eigvalsh(scaled)[:, -1]
        with np.errstate(divide="ignore"):
            least = np.where(loose, 0.0, 1.0 / softest)
        margins = margins_of(found, self._output)
        state = np.broadcast_to(starts.nu, (len(starts.q), starts.nu.shape[-1]))
        values = signal_values(model, starts.q, state, conditions=conditions, kinds=LIMITED)
        places = {name: k for k, name in enumerate(model.signals.layout(*LIMITED).names)}

        def shaped(values: Array, known: Any = True) -> Array:
            return np.where(known, values, np.nan).reshape(shape)

        return Designs(
            parameters,
            shaped(measured.condition, known),
            shaped(measured.manipulability, known),
            shaped(sizes[:, 0], known),
            shaped(least, held | loose),
            Margins(*(shaped(margins[kind]) for kind in KINDS)),
            {name: shaped(values[:, places[name]]) for name in self._limits},
            self._limits,
            self._least_margins,
        )

    @stoppable
    def optimize(
        self,
        cost: Literal["dexterity", "force", "stiffness", "workspace"] | Cost,
        *,
        constraints: Sequence[Callable[[Designs], Any]] = (),
        method: Literal["descent", "evolution"] | None = None,
        starts: int = 6,
        samples: int = 64,
        seed: int = 0,
        progress: bool | None = None,
    ) -> Optimum:
        """Find the design of least cost, within the bounds of the variables and the limits.

        "descent" draws designs from the bounds (Sobol points), and follows the best of them by
        sequential quadratic programming (SciPy's SLSQP), with differences of whole batches as
        derivatives. The worst of many poses is not smooth; its cost is a further unknown that
        no pose may exceed. "evolution" is SciPy's `differential_evolution`, for costs with steps.

        Args:
            cost: "dexterity" and "stiffness" make the smallest over the poses as large, "force"
                makes the largest as small, "workspace" the part of the poses that are reached
                within the limits as large as possible. Or a function of `Designs` that returns
                costs (designs,), or (designs, poses), of which the worst counts.
            constraints: Functions of `Designs` whose values (designs,) or (designs, any) must not
                be negative.
            method: "evolution" for "workspace", else "descent", unless given.
            starts: How many of the drawn designs "descent" follows, besides the described one.
            samples: How many it draws, and members of each generation of "evolution".
            seed: Seed of the draws.
            progress: Show a bar; unless given, after a second on a terminal.

        Raises:
            InvalidArgument: if no design that was tried keeps all limits.
        """
        check_arguments(Study.optimize, locals())
        from axode.design.optimum import optimize

        return optimize(
            self,
            cost,
            tuple(constraints),
            method,
            starts=starts,
            samples=samples,
            seed=seed,
            progress=progress,
        )

    def __repr__(self) -> str:
        ranges = ", ".join(f"{n} {a:g} to {b:g}" for n, (a, b) in self.variables.items())
        poses = counted(self._pose_count, "pose")
        return f"Study of '{self.robot.mechanism.name}' at {poses}: {ranges}"


def _range(owner: str, given: Any) -> tuple[float, float]:
    """Read a smallest and a largest value."""
    try:
        low, high = (float(x) for x in given)
    except (TypeError, ValueError):
        low = high = np.nan
    if not low < high:
        raise InvalidArgument(
            f"Study, {owner}: expected (smallest, largest), got {shortened(given)}"
        )
    return low, high


def _each(function: Callable[..., Array], *parts: Designs) -> Designs:
    """Apply a function to the arrays that some designs have in common."""

    def by_name(values: Callable[[Designs], Mapping[str, Array]]) -> dict[str, Array]:
        return {
            name: function(*(values(part)[name] for part in parts)) for name in values(parts[0])
        }

    per_pose: Any = by_name(lambda part: {name: getattr(part, name) for name in _PER_POSE})
    return replace(
        parts[0],
        parameters=by_name(lambda part: part.parameters),
        margins=Margins(**by_name(lambda part: vars(part.margins))),
        signals=by_name(lambda part: part.signals),
        **per_pose,
    )
