"""Methods of `Kinematics` about velocities: Jacobians, singularities, dexterity, stiffness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.kinematics.velocities.clearance import Clearance
    from axode.kinematics.velocities.dexterity import Dexterity
    from axode.kinematics.velocities.output_stiffness import OutputStiffness
    from axode.kinematics.velocities.singularities import Singularities
    from axode.kinematics.velocities.singularity_map import SingularityMap
    from axode.kinematics.velocities.velocity_jacobians import VelocityJacobians
    from axode.results.trajectory import Trajectory


class VelocityMethods:
    """Jacobians of a robot and what follows from them.

    A state is given in any of the forms that verbs take: coordinates and measures by name, arrays,
    a `State`, `run.at(t)`; arrays make a batch. `components` chooses what of the output's motion
    counts, of wx, wy, wz (angular velocity) and vx, vy, vz (velocity of the reference point), in
    world axes; all unless given. `at` is the reference point in the output's frame [m].
    """

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
        check_arguments(VelocityMethods.jacobians, locals())
        from axode.kinematics.velocities.velocity_jacobians import velocity_jacobians

        return velocity_jacobians(
            _robot(self), state, components=components, at=at, t=t, parameters=parameters
        )

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
        check_arguments(VelocityMethods.singularities, locals())
        from axode.kinematics.velocities.singularities import find_singularities

        return find_singularities(
            _robot(self),
            state,
            components=components,
            at=at,
            length=length,
            tolerance=tolerance,
            t=t,
            parameters=parameters,
        )

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
        check_arguments(VelocityMethods.dexterity, locals())
        from axode.kinematics.velocities.dexterity import dexterity

        return dexterity(
            _robot(self),
            state,
            length=length,
            components=components,
            at=at,
            t=t,
            parameters=parameters,
        )

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
        check_arguments(VelocityMethods.stiffness, locals())
        from axode.kinematics.velocities.output_stiffness import output_stiffness

        return output_stiffness(
            _robot(self), state, springs, components=components, at=at, t=t, parameters=parameters
        )

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
        from axode.kinematics.velocities.clearance import clearance

        return clearance(_robot(self), run, components=components, at=at, length=length)

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
            state: Other coordinates and measures by name; home unless given.
            components: Names of the output's velocities that count; the whole twist unless given.
            at: Reference point in the output's frame [m]; its origin unless given.
            length: As for `singularities`.
        """
        from axode.kinematics.velocities.singularity_map import map_singularities

        return map_singularities(
            _robot(self),
            x,
            y,
            points=points,
            state=state,
            components=components,
            at=at,
            length=length,
        )


def _robot(methods: VelocityMethods) -> Kinematics:
    """The robot that has the methods."""
    return cast("Kinematics", methods)
