"""Kinematics of a robot: which body it moves, which coordinates are driven, what follows from them.

A thin class: every capability stands in a file of its own and is imported when it is called.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, shortened
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import BodyLike, body_name
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import (
    coordinate_names,
    coordinate_of,
    not_in_tree,
    quaternion_components,
    speed_meanings,
)
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.kinematics.motion_graph import LegPath, MotionGraph
    from axode.kinematics.postures.closure_family import ClosureFamily
    from axode.kinematics.postures.postures import Postures
    from axode.kinematics.velocities.singularities import Clearance, Singularities, SingularityMap
    from axode.kinematics.velocities.velocity_jacobians import (
        Dexterity,
        OutputStiffness,
        VelocityJacobians,
    )
    from axode.kinematics.workspaces.workspace_result import Workspace
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
OUTPUT_NAMES = ("platform", "tool")


class Kinematics:
    """A robot whose driven coordinates move an output body.

    Methods take a state in any of the forms that verbs take: coordinates and measures by name,
    arrays, a `State`, `run.at(t)`; arrays make a batch. Names may be pose coordinates of the output
    such as x and yaw, where a coordinate or measure equals them. `components` chooses what of the
    output's motion counts, of wx, wy, wz (angular velocity) and vx, vy, vz (velocity of the
    reference point), in world axes; all unless given. `at` is the reference point in the output's
    frame [m].

    Args:
        mechanism: What the robot is made of.
        output: The body that it moves; unless given, the one called "platform" or "tool", else the
            only one on which three joints or more end, or the end of a serial chain.
        driven: Names of the coordinates that motors hold; those with motors unless given.

    Attributes:
        mechanism: An independent copy of the description.
        output: Name of the output body.
        driven: Names of the driven coordinates.

    Raises:
        MechanismError: if the description is wrong.
        UnknownName: for an unknown output or driven coordinate.
        InvalidArgument: if the output or the driven coordinates must be named.
    """

    @stoppable
    def __init__(
        self,
        mechanism: Mechanism,
        output: BodyLike | None = None,
        driven: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(
                f"Kinematics, mechanism: expected a Mechanism, got {shortened(mechanism)}"
            )
        check_arguments(Kinematics.__init__, locals())
        mechanism.check()
        self.mechanism = mechanism.copy()
        self.output = _output_body(self.mechanism, output)
        self.driven = _driven_coordinates(self.mechanism, driven)
        self.closure: ClosureFamily | None = None
        self.inverse_polynomials: ClosureFamily | None = None

    @cached_property
    def equations(self) -> Equations:
        """Equations of motion of the mechanism."""
        return self.mechanism.derive()

    @cached_property
    def model(self) -> Model:
        """Compiled functions of the mechanism."""
        return self.equations.compile()

    @cached_property
    def legs(self) -> tuple[LegPath, ...]:
        """Chains of joints from the ground to the output body, in numbers."""
        from axode.kinematics.motion_graph import leg_paths

        names = self.graph.values
        parameters = np.array([self.model.parameters[name] for name in names])
        return leg_paths(self.graph, self.output, self.driven, parameters, self.home_poses)

    @cached_property
    def graph(self) -> MotionGraph:
        """Links and elementary joints of the mechanism."""
        from axode.kinematics.motion_graph import motion_graph

        return motion_graph(self.mechanism)

    @cached_property
    def home_poses(self) -> dict[str, Array]:
        """Poses of all bodies and of the ground at home, homogeneous matrices by name."""
        poses = zip(self.model.bodies, self.model.poses(self.model.home), strict=True)
        return {GROUND.name: np.eye(4), **dict(poses)}

    @cached_property
    def mobility(self) -> int:
        """Number of independent motions near home."""
        return len(self.equations.independent)

    @stoppable
    def direct(
        self,
        values: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None,
        *,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        certify: bool = True,
        threads: int | None = None,
        target: str = "cpu",
    ) -> Postures:
        """Find all postures for given driven coordinates: the assembly modes of the robot.

        The polynomials of closure of a general robot of the same structure are solved once, over
        the complex numbers, and their solutions kept on disk; those of this robot are reached from
        there by continuous change of geometry. Real ones are polished, proved to exist, and turned
        into coordinates of the mechanism. Of legs that can take a posture in several ways the way
        nearest to home is chosen.

        Args:
            values: Driven coordinates by name, those left out as at home; or an array with all of
                them along its last axis. Arrays make a batch.
            parameters: Parameters of the mechanism by name instead of the defaults; arrays make a
                batch.
            certify: Whether to prove by interval arithmetic that there is exactly one solution at
                each posture.
            threads: How many threads share a batch; all unless given.
            target: "cpu" or "cuda": where solutions are followed.

        Raises:
            NotApplicable: for wheels and couplings, passive screws, and chains of joints that
                cannot be reduced to equations of points and axes; and if the driven coordinates
                do not determine the posture.
        """
        check_arguments(Kinematics.direct, locals())
        return call_stage("direct", self, values, parameters, certify, threads, target)

    @stoppable
    def all_inverse(
        self, pose: Any, *, threads: int | None = None, target: str = "cpu"
    ) -> Postures:
        """Find all configurations of a serial robot that give its output a pose.

        A general arm of six revolutes has 16 of them over the complex numbers. They are found as
        those of `direct` are; `labels` count them by distance from home.

        Args:
            pose: As `inverse` takes it.
            threads: How many threads share a batch; all unless given.
            target: "cpu" or "cuda": where solutions are followed.

        Raises:
            NotApplicable: for robots with loops, and with more or fewer joints than a pose needs.
        """
        check_arguments(Kinematics.all_inverse, locals())
        return call_stage("inverse_postures", self, pose, threads, target)

    @stoppable
    def inverse(self, pose: Any, branch: Literal["home", "all"] = "home") -> dict[str, Array]:
        """Driven coordinates of poses of the output.

        Args:
            pose: A dictionary of pose coordinates, 4 x 4 matrices, or (position, rotation) with the
                rotation as matrix, quaternion or roll, pitch, yaw; with any leading batch axes.
            branch: "home" for the solution that continues the one at home, "all" for both of every
                leg.

        Returns:
            Values by the names of the driven coordinates, NaN where a leg does not reach the pose.
            With "all", a last axis of two: first the solution of "home". Legs do not depend on each
            other, so that any combination of their solutions is one of the robot.

        Raises:
            NotApplicable: if a leg has no closed form.
        """
        from axode.kinematics.workspaces.closed_form import inverse

        return inverse(self, pose, branch)

    @stoppable
    def workspace(
        self,
        kind: Literal[
            "constant-orientation", "orientation", "reachable", "dexterous", "pose"
        ] = "constant-orientation",
        *,
        at: Mapping[str, float] | None = None,
        orientations: Mapping[str, npt.ArrayLike] | None = None,
        limits: Mapping[str, Any] | None = None,
        diameter: float | None = None,
        condition: float | None = None,
        length: float | None = None,
        bounds: Mapping[str, Sequence[float]] | None = None,
        grid: int | Mapping[str, int] = 100,
        target: Literal["cpu", "cuda"] = "cpu",
        threads: int | None = None,
        progress: bool | None = None,
    ) -> Workspace:
        """Poses that a robot reaches within its limits.

        Args:
            kind: "constant-orientation": positions at one orientation; "orientation": orientations
                at one position; "reachable" and "dexterous": positions with some, or all, of the
                given orientations; "pose": all pose coordinates of a robot with up to three.
            at: Pose coordinates that are held; home unless given.
            orientations: Angles by name for "reachable" and "dexterous"; all their combinations.
            limits: (smallest, largest) by the names of driven coordinates; largest angle between a
                leg and its direction at home by the names of passive joints [rad]. Patterns such
                as `l_*` stand for several.
            diameter: Diameter of straight legs, which may not touch each other [m].
            condition: Largest condition number.
            length: Characteristic length for condition numbers; the robot's size unless given [m].
            bounds: (smallest, largest) of the grid by pose coordinate; unless given, found for
                positions, and from home a quarter turn for roll and pitch, half a turn for others.
            grid: Cells per axis, for all or by pose coordinate; the next multiple of four is taken.
            target: "cpu" or "cuda".
            threads: How many threads share the work.
            progress: Show a bar; unless given, after a second on a terminal.

        Raises:
            NotApplicable: if a leg has no closed form, or a limit does not suit the robot.
            UnknownName: for names that the robot does not have.
            InvalidArgument: for impossible numbers.
            Interrupted: at Ctrl-C.
        """
        check_arguments(Kinematics.workspace, locals())
        from axode.kinematics.workspaces.closed_form import closed_form_legs
        from axode.kinematics.workspaces.pose_limits import read_limits
        from axode.kinematics.workspaces.workspace import PoseEvaluator, plan_grid, sample_grid

        started = time.perf_counter()
        legs = closed_form_legs(self)
        kept = read_limits(legs, limits or {}, diameter, condition, length)
        evaluator = PoseEvaluator(legs, kept, target, threads)
        plan = plan_grid(legs, kept, kind, at, orientations, bounds, grid)
        return sample_grid(plan, evaluator, progress, started)

    @stoppable
    def jacobians(
        self,
        state: Any = None,
        *,
        components: Sequence[str] | None = None,
        at: Any = None,
        t: float | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> VelocityJacobians:
        """Find the Jacobians of A x' = B theta' between output and driven speeds.

        Args:
            state: Where; home unless given.
            components: Names of the output's velocities x'; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            t: Time, where it is explicit [s]; that of `state` or zero unless given.
            parameters: Values by name instead of the defaults.
        """
        check_arguments(Kinematics.jacobians, locals())
        from axode.kinematics.velocities.velocity_jacobians import (
            choose_output,
            jacobians_of,
            velocities_at,
        )

        output = choose_output(components)
        return jacobians_of(velocities_at(self, state, at=at, t=t, parameters=parameters), output)

    @stoppable
    def singularities(
        self,
        state: Any = None,
        *,
        components: Sequence[str] | None = None,
        at: Any = None,
        length: float | None = None,
        tolerance: float = 1e-8,
        t: float | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Singularities:
        """Find what is singular at a state, and how far each kind of singularity is.

        Args:
            state: Where; home unless given.
            components: Names of the output's velocities that count; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            length: Length by which turning and moving are compared [m]; the root mean square
                distance of the other bodies from the output at home unless given.
            tolerance: Margin below which a state is called singular.
            t: Time, where it is explicit [s]; that of `state` or zero unless given.
            parameters: Values by name instead of the defaults.
        """
        check_arguments(Kinematics.singularities, locals())
        from axode.kinematics.velocities.singularities import singularities_of
        from axode.kinematics.velocities.velocity_jacobians import choose_output, velocities_at

        output = choose_output(components)
        if not tolerance > 0.0:
            raise InvalidArgument(f"tolerance: must be > 0, got {tolerance}")
        found = velocities_at(self, state, at=at, length=length, t=t, parameters=parameters)
        return singularities_of(found, output, self.output, tolerance)

    @stoppable
    def dexterity(
        self,
        state: Any = None,
        *,
        length: float | Literal["optimal"] | None = None,
        components: Sequence[str] | None = None,
        at: Any = None,
        t: float | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Dexterity:
        """Measure how evenly motors move the output: condition number and manipulability.

        Args:
            state: Where; home unless given.
            length: Length by which turning and moving are compared [m], or "optimal" for the
                characteristic length, which makes the condition number smallest; that of
                `singularities` unless given.
            components: Names of the output's velocities that count; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            t: Time, where it is explicit [s]; that of `state` or zero unless given.
            parameters: Values by name instead of the defaults.
        """
        check_arguments(Kinematics.dexterity, locals())
        from axode.kinematics.velocities.velocity_jacobians import dexterity_of

        found = self.jacobians(state, components=components, at=at, t=t, parameters=parameters)
        return dexterity_of(found, length)

    @stoppable
    def stiffness(
        self,
        state: Any = None,
        springs: float | Mapping[str, float] = 1.0,
        *,
        components: Sequence[str] | None = None,
        at: Any = None,
        t: float | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> OutputStiffness:
        """Find the stiffness of the output that springs in the joints give, without preload.

        Args:
            state: Where; home unless given.
            springs: Stiffness of joints by name [N/m or N m/rad], of motors and of passive joints
                that stand for flexible links; driven joints that are left out are rigid. A number
                holds for every driven joint.
            components: Directions that count; all six unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            t: Time, where it is explicit [s]; that of `state` or zero unless given.
            parameters: Values by name instead of the defaults.
        """
        check_arguments(Kinematics.stiffness, locals())
        from axode.kinematics.velocities.velocity_jacobians import (
            choose_output,
            read_springs,
            stiffness_of,
            velocities_at,
        )

        output, stiff = choose_output(components), read_springs(self, springs)
        found = velocities_at(self, state, at=at, t=t, parameters=parameters, joints=tuple(stiff))
        return stiffness_of(found, stiff, output)

    @stoppable
    def clearance(
        self,
        run: Trajectory,
        *,
        components: Sequence[str] | None = None,
        at: Any = None,
        length: float | None = None,
    ) -> Clearance:
        """Find the margins from singularities along a motion, and the closest approaches.

        Args:
            run: Result of `simulate` or `inverse_dynamics` for this mechanism, or a batch of runs.
            components: Names of the output's velocities that count; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            length: As for `singularities`.
        """
        from axode.kinematics.velocities.singularities import find_clearance
        from axode.kinematics.velocities.velocity_jacobians import choose_output

        return find_clearance(self, run, choose_output(components), at, length)

    @stoppable
    def singularity_map(
        self,
        x: tuple[str, float, float],
        y: tuple[str, float, float],
        *,
        points: int = 101,
        state: Mapping[str, float] | None = None,
        components: Sequence[str] | None = None,
        at: Any = None,
        length: float | None = None,
    ) -> SingularityMap:
        """Evaluate the margins from singularities on a grid of two coordinates or measures.

        Args:
            x, y: Name, smallest and largest value of what varies along the axes.
            points: Number of values along each axis.
            state: Other coordinates and measures by name, or pose coordinates of the output; home
                unless given.
            components: Names of the output's velocities that count; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            length: As for `singularities`.
        """
        from axode.kinematics.velocities.singularities import map_singularities
        from axode.kinematics.velocities.velocity_jacobians import choose_output

        axes, output = [("x", x), ("y", y)], choose_output(components)
        return map_singularities(self, axes, points, state or {}, output, (at, length))

    def __repr__(self) -> str:
        driven = ", ".join(self.driven)
        return f"Kinematics('{self.mechanism.name}': {driven} move '{self.output}')"


def _output_body(mechanism: Mechanism, output: BodyLike | None) -> str:
    """Name of the output body, given or found."""
    names = [body.name for body in mechanism.bodies]
    if output is not None:
        name = body_name("Kinematics", "output", output)
        if name not in names:
            raise UnknownName(f"mechanism '{mechanism.name}'", "body", name, names)
        return name
    called = [name for name in names if name in OUTPUT_NAMES]
    if len(called) == 1:
        return called[0]
    moving = [joint for joint in (*mechanism.connections, *mechanism.loops) if joint.joint.dof > 0]
    ends = {name: sum(name in (joint.parent, joint.child) for joint in moving) for name in names}
    candidates = [name for name, count in ends.items() if count > 2]
    if not candidates and not mechanism.loops:
        candidates = [name for name, count in ends.items() if count == 1]
    if len(candidates) != 1:
        listed = ", ".join(candidates or names)
        raise InvalidArgument(
            f"Kinematics of '{mechanism.name}': name the output body, output=...: {listed}"
        )
    return candidates[0]


def _driven_coordinates(mechanism: Mechanism, driven: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the driven coordinates, given or those with motors."""
    if driven is None:
        found = _with_motors(mechanism)
        if not found:
            listed = ", ".join(coordinate_names(mechanism))
            raise InvalidArgument(
                f"Kinematics of '{mechanism.name}': no coordinate has a motor; "
                f"name those that are driven, driven=[...]: {listed}"
            )
        return found
    if isinstance(driven, str) or not all(isinstance(name, str) for name in driven):
        raise InvalidArgument(
            f"Kinematics, driven: expected a list of names, got {shortened(driven)}"
        )
    meant = {name: coordinate_of(mechanism, name) for name in driven}
    unknown = [name for name, coordinate in meant.items() if coordinate is None]
    if unknown:
        raise UnknownName(
            f"mechanism '{mechanism.name}'",
            "coordinate",
            unknown[0],
            coordinate_names(mechanism),
            "; ".join(not_in_tree(mechanism, name, "coordinate") for name in unknown),
        )
    coordinates = [coordinate for coordinate in meant.values() if coordinate is not None]
    parts = sorted(quaternion_components(mechanism).intersection(coordinates))
    if parts:
        raise InvalidArgument(
            f"Kinematics, driven: {', '.join(parts)} are parts of quaternions, which no motor holds"
        )
    if len(set(coordinates)) != len(tuple(driven)):
        raise InvalidArgument(f"Kinematics, driven: {', '.join(driven)} names one of them twice")
    return tuple(coordinates)


def _with_motors(mechanism: Mechanism) -> tuple[str, ...]:
    """Coordinates with motors, in the order of the motors."""
    speeds = speed_meanings(mechanism)
    rates = {
        speed: connection.coordinates[place]
        for connection in mechanism.connections
        for k, speed in enumerate(connection.speeds)
        if (place := connection.joint.rate_of(k)) is not None
    }
    found = [rates.get(speeds.get(drive.coordinate, "")) for drive in mechanism.drives]
    return tuple(dict.fromkeys(name for name in found if name is not None))
