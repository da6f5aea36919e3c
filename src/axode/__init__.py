"""Axode: exact dynamics of robots that roll, that close on themselves, and that do both.

Describe a mechanism, derive its equations, compile them, ask questions:

    import axode as ax

    bot = ax.Mechanism("cart")
    ...
    model = bot.derive().compile()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` finds, for editors and type checkers
    from axode import design as design
    from axode import errors as errors
    from axode import gallery as gallery
    from axode import motions as motions
    from axode import motors as motors
    from axode import ros as ros
    from axode.cooperation.cooperation import Cooperation as Cooperation
    from axode.cooperation.cooperation import GraspWrenches as GraspWrenches
    from axode.errors import AxodeError as AxodeError
    from axode.errors import ContactStepsWarning as ContactStepsWarning
    from axode.errors import Fault as Fault
    from axode.errors import FileDeviationWarning as FileDeviationWarning
    from axode.errors import FileError as FileError
    from axode.errors import Immobile as Immobile
    from axode.errors import Interrupted as Interrupted
    from axode.errors import InvalidArgument as InvalidArgument
    from axode.errors import InvalidIndependent as InvalidIndependent
    from axode.errors import LoopNotClosed as LoopNotClosed
    from axode.errors import MechanismError as MechanismError
    from axode.errors import MotorLimitWarning as MotorLimitWarning
    from axode.errors import NearSingularityWarning as NearSingularityWarning
    from axode.errors import NotAnEquilibriumWarning as NotAnEquilibriumWarning
    from axode.errors import NotApplicable as NotApplicable
    from axode.errors import OmissionWarning as OmissionWarning
    from axode.errors import PlausibilityWarning as PlausibilityWarning
    from axode.errors import RequestNotMetWarning as RequestNotMetWarning
    from axode.errors import RunsFailedWarning as RunsFailedWarning
    from axode.errors import RunsInaccurateWarning as RunsInaccurateWarning
    from axode.errors import SelfCheckFailed as SelfCheckFailed
    from axode.errors import SimulationFailed as SimulationFailed
    from axode.errors import SingularConfiguration as SingularConfiguration
    from axode.errors import StiffSystemWarning as StiffSystemWarning
    from axode.errors import SweepFailed as SweepFailed
    from axode.errors import UnderactuatedMotionWarning as UnderactuatedMotionWarning
    from axode.errors import UnknownName as UnknownName
    from axode.formats.loading import load as load
    from axode.formats.loading import schema as schema
    from axode.formats.written.mechanism_text import MechanismText as MechanismText
    from axode.kinematics.postures.postures import Postures as Postures
    from axode.kinematics.reaching.goals import Target as Target
    from axode.kinematics.reaching.inverse_kinematics import (
        InverseKinematicsResult as InverseKinematicsResult,
    )
    from axode.kinematics.reaching.inverse_kinematics import (
        inverse_kinematics as inverse_kinematics,
    )
    from axode.kinematics.reaching.resolved_motion import ResolvedRates as ResolvedRates
    from axode.kinematics.reaching.resolved_motion import resolved_motion as resolved_motion
    from axode.kinematics.reaching.resolved_motion import resolved_rates as resolved_rates
    from axode.kinematics.robot_kinematics import Kinematics as Kinematics
    from axode.kinematics.velocities.singularities import Clearance as Clearance
    from axode.kinematics.velocities.singularities import Singularities as Singularities
    from axode.kinematics.velocities.singularities import SingularityMap as SingularityMap
    from axode.kinematics.velocities.velocity_jacobians import Dexterity as Dexterity
    from axode.kinematics.velocities.velocity_jacobians import OutputStiffness as OutputStiffness
    from axode.kinematics.velocities.velocity_jacobians import (
        VelocityJacobians as VelocityJacobians,
    )
    from axode.kinematics.workspaces.workspace_result import Workspace as Workspace
    from axode.literature.acceptance import verify as verify
    from axode.literature.acceptance.table import Verification as Verification
    from axode.mechanism.dh import chain_from_dh as chain_from_dh
    from axode.mechanism.elements.bodies import Box as Box
    from axode.mechanism.elements.bodies import Cylinder as Cylinder
    from axode.mechanism.elements.bodies import Inertia as Inertia
    from axode.mechanism.elements.bodies import Mesh as Mesh
    from axode.mechanism.elements.bodies import Sphere as Sphere
    from axode.mechanism.elements.forces import Motor as Motor
    from axode.mechanism.elements.joints import Cylindrical as Cylindrical
    from axode.mechanism.elements.joints import Fixed as Fixed
    from axode.mechanism.elements.joints import Floating as Floating
    from axode.mechanism.elements.joints import Planar as Planar
    from axode.mechanism.elements.joints import Prismatic as Prismatic
    from axode.mechanism.elements.joints import Revolute as Revolute
    from axode.mechanism.elements.joints import Screw as Screw
    from axode.mechanism.elements.joints import Spherical as Spherical
    from axode.mechanism.elements.joints import Universal as Universal
    from axode.mechanism.elements.wheels import Ball as Ball
    from axode.mechanism.elements.wheels import Mecanum as Mecanum
    from axode.mechanism.elements.wheels import Omni as Omni
    from axode.mechanism.elements.wheels import Plane as Plane
    from axode.mechanism.elements.wheels import Point as Point
    from axode.mechanism.elements.wheels import Rolling as Rolling
    from axode.mechanism.elements.wheels import Skate as Skate
    from axode.mechanism.mechanism import Mechanism as Mechanism
    from axode.mechanism.values.expressions import Parameter as Parameter
    from axode.model.derivative_products import Derivatives as Derivatives
    from axode.model.leg_functions import NewtonEuler as NewtonEuler
    from axode.model.leg_functions import PlatformLegs as PlatformLegs
    from axode.model.model import Model as Model
    from axode.model.model_file import load_model as load_model
    from axode.model.state import State as State
    from axode.motions import paths
    from axode.motions.paths import Path as Path
    from axode.motions.planned_motion import PlannedMotion as PlannedMotion
    from axode.printing.derivation.derivation import Derivation as Derivation
    from axode.problems.assemble.assemble import assemble as assemble
    from axode.problems.compare import Comparison as Comparison
    from axode.problems.compare import compare as compare
    from axode.problems.feasible.feasible import Feasibility as Feasibility
    from axode.problems.feasible.feasible import feasible as feasible
    from axode.problems.gradients.cost import Cost as Cost
    from axode.problems.gradients.gradient import Gradient as Gradient
    from axode.problems.gradients.gradient import gradient as gradient
    from axode.problems.inputs import blocks as blocks
    from axode.problems.inputs.inputs import Callback as Callback
    from axode.problems.inputs.inputs import Sampled as Sampled
    from axode.problems.inputs.laws import Law as Law
    from axode.problems.inverse.inverse import inverse_dynamics as inverse_dynamics
    from axode.problems.linearize.feedback import StateFeedback as StateFeedback
    from axode.problems.linearize.linearization import Linearization as Linearization
    from axode.problems.linearize.linearize import linearize as linearize
    from axode.problems.simulate.scenario import Scenario as Scenario
    from axode.problems.simulate.simulate import simulate as simulate
    from axode.problems.stepping.stepper import Stepper as Stepper
    from axode.problems.sweep.distributions import LogUniform as LogUniform
    from axode.problems.sweep.distributions import Normal as Normal
    from axode.problems.sweep.distributions import Uniform as Uniform
    from axode.problems.sweep.sweep import sweep as sweep
    from axode.results.columns import Event as Event
    from axode.results.sweep_result import Sweep as Sweep
    from axode.results.trajectory import Trajectory as Trajectory
    from axode.show.live.live_page import page as page
    from axode.show.viewer.viewer import Viewer as Viewer
    from axode.show.viewer.viewer import view as view
    from axode.symbolic.analysis.mobility import Mobility as Mobility
    from axode.symbolic.analysis.twist_constraints import TwistConstraints as TwistConstraints
    from axode.symbolic.analysis.twist_constraints import TwistRedundancy as TwistRedundancy
    from axode.symbolic.equations import Equations as Equations
    from axode.symbolic.formulations import FORMULATIONS as FORMULATIONS

__version__ = "0.3.0"

# Loaded when first used, so that importing axode takes no time.
_LAZY = {
    "chain_from_dh": "axode.mechanism.dh",
    "Box": "axode.mechanism.elements.bodies",
    "Cylinder": "axode.mechanism.elements.bodies",
    "Inertia": "axode.mechanism.elements.bodies",
    "Mesh": "axode.mechanism.elements.bodies",
    "Sphere": "axode.mechanism.elements.bodies",
    "Motor": "axode.mechanism.elements.forces",
    "Cylindrical": "axode.mechanism.elements.joints",
    "Fixed": "axode.mechanism.elements.joints",
    "Floating": "axode.mechanism.elements.joints",
    "Planar": "axode.mechanism.elements.joints",
    "Prismatic": "axode.mechanism.elements.joints",
    "Revolute": "axode.mechanism.elements.joints",
    "Screw": "axode.mechanism.elements.joints",
    "Spherical": "axode.mechanism.elements.joints",
    "Universal": "axode.mechanism.elements.joints",
    "Ball": "axode.mechanism.elements.wheels",
    "Mecanum": "axode.mechanism.elements.wheels",
    "Omni": "axode.mechanism.elements.wheels",
    "Plane": "axode.mechanism.elements.wheels",
    "Point": "axode.mechanism.elements.wheels",
    "Rolling": "axode.mechanism.elements.wheels",
    "Skate": "axode.mechanism.elements.wheels",
    "Mechanism": "axode.mechanism.mechanism",
    "Parameter": "axode.mechanism.values.expressions",
    "load": "axode.formats.loading",
    "schema": "axode.formats.loading",
    "MechanismText": "axode.formats.written.mechanism_text",
    "Equations": "axode.symbolic.equations",
    "FORMULATIONS": "axode.symbolic.formulations",
    "assemble": "axode.problems.assemble.assemble",
    "Scenario": "axode.problems.simulate.scenario",
    "Stepper": "axode.problems.stepping.stepper",
    "simulate": "axode.problems.simulate.simulate",
    "Sampled": "axode.problems.inputs.inputs",
    "Callback": "axode.problems.inputs.inputs",
    "Law": "axode.problems.inputs.laws",
    "Cost": "axode.problems.gradients.cost",
    "gradient": "axode.problems.gradients.gradient",
    "Event": "axode.results.columns",
    "Trajectory": "axode.results.trajectory",
    "Cooperation": "axode.cooperation.cooperation",
    "compare": "axode.problems.compare",
    "feasible": "axode.problems.feasible.feasible",
    "Target": "axode.kinematics.reaching.goals",
    "inverse_dynamics": "axode.problems.inverse.inverse",
    "inverse_kinematics": "axode.kinematics.reaching.inverse_kinematics",
    "Kinematics": "axode.kinematics.robot_kinematics",
    "Workspace": "axode.kinematics.workspaces.workspace_result",
    "linearize": "axode.problems.linearize.linearize",
    "LogUniform": "axode.problems.sweep.distributions",
    "Normal": "axode.problems.sweep.distributions",
    "Uniform": "axode.problems.sweep.distributions",
    "sweep": "axode.problems.sweep.sweep",
    "view": "axode.show.viewer.viewer",
    "page": "axode.show.live.live_page",
    "resolved_motion": "axode.kinematics.reaching.resolved_motion",
    "resolved_rates": "axode.kinematics.reaching.resolved_motion",
    "verify": "axode.literature.acceptance",
    "Linearization": "axode.problems.linearize.linearization",
    "Model": "axode.model.model",
    "Path": "axode.motions.paths",
    "State": "axode.model.state",
    "Sweep": "axode.results.sweep_result",
    "load_model": "axode.model.model_file",
    "Clearance": "axode.kinematics.velocities.singularities",
    "Comparison": "axode.problems.compare",
    "Derivation": "axode.printing.derivation.derivation",
    "Derivatives": "axode.model.derivative_products",
    "Dexterity": "axode.kinematics.velocities.velocity_jacobians",
    "Feasibility": "axode.problems.feasible.feasible",
    "Gradient": "axode.problems.gradients.gradient",
    "GraspWrenches": "axode.cooperation.cooperation",
    "InverseKinematicsResult": "axode.kinematics.reaching.inverse_kinematics",
    "Mobility": "axode.symbolic.analysis.mobility",
    "NewtonEuler": "axode.model.leg_functions",
    "OutputStiffness": "axode.kinematics.velocities.velocity_jacobians",
    "PlannedMotion": "axode.motions.planned_motion",
    "PlatformLegs": "axode.model.leg_functions",
    "Postures": "axode.kinematics.postures.postures",
    "ResolvedRates": "axode.kinematics.reaching.resolved_motion",
    "Singularities": "axode.kinematics.velocities.singularities",
    "SingularityMap": "axode.kinematics.velocities.singularities",
    "StateFeedback": "axode.problems.linearize.feedback",
    "TwistConstraints": "axode.symbolic.analysis.twist_constraints",
    "TwistRedundancy": "axode.symbolic.analysis.twist_constraints",
    "VelocityJacobians": "axode.kinematics.velocities.velocity_jacobians",
    "Verification": "axode.literature.acceptance.table",
    "Viewer": "axode.show.viewer.viewer",
}

__all__ = [
    "AxodeError",
    "Ball",
    "Box",
    "Callback",
    "Clearance",
    "Comparison",
    "Cooperation",
    "Cost",
    "Cylinder",
    "Cylindrical",
    "Derivation",
    "Derivatives",
    "Dexterity",
    "Equations",
    "Event",
    "Feasibility",
    "Fixed",
    "Floating",
    "Gradient",
    "GraspWrenches",
    "Inertia",
    "InverseKinematicsResult",
    "Kinematics",
    "Law",
    "Linearization",
    "LogUniform",
    "Mecanum",
    "Mechanism",
    "MechanismText",
    "Mesh",
    "Mobility",
    "Model",
    "Motor",
    "NewtonEuler",
    "Normal",
    "Omni",
    "OutputStiffness",
    "Parameter",
    "Path",
    "Planar",
    "Plane",
    "PlannedMotion",
    "PlatformLegs",
    "Point",
    "Postures",
    "Prismatic",
    "ResolvedRates",
    "Revolute",
    "Rolling",
    "Sampled",
    "Scenario",
    "Screw",
    "Singularities",
    "SingularityMap",
    "Skate",
    "Sphere",
    "Spherical",
    "State",
    "StateFeedback",
    "Stepper",
    "Sweep",
    "Target",
    "Trajectory",
    "TwistConstraints",
    "TwistRedundancy",
    "Uniform",
    "Universal",
    "VelocityJacobians",
    "Verification",
    "Viewer",
    "Workspace",
    "assemble",
    "blocks",
    "chain_from_dh",
    "compare",
    "design",
    "errors",
    "feasible",
    "gallery",
    "gradient",
    "inverse_dynamics",
    "inverse_kinematics",
    "linearize",
    "load",
    "load_model",
    "motions",
    "motors",
    "page",
    "paths",
    "resolved_motion",
    "resolved_rates",
    "ros",
    "schema",
    "simulate",
    "sweep",
    "verify",
    "view",
]


_LAZY_MODULES = {
    "blocks": "axode.problems.inputs.blocks",
    "design": "axode.design",
    "errors": "axode.errors",
    "gallery": "axode.gallery",
    "motions": "axode.motions",
    "motors": "axode.motors",
    "paths": "axode.motions.paths",
    "ros": "axode.ros",
}


_RENAMED = {"inverse": "inverse_dynamics"}  # former names; removed in the next version


if not TYPE_CHECKING:  # a checker would accept every name

    def __getattr__(name: str) -> Any:
        import sys
        from importlib import import_module

        if name in _LAZY_MODULES:
            return import_module(_LAZY_MODULES[name])
        if name in _LAZY:
            with import_module("axode.errors").naming_packages():
                return getattr(import_module(_LAZY[name]), name)
        errors = import_module("axode.errors")
        if name in _RENAMED:
            errors.warn_renamed(f"axode.{name}", f"axode.{_RENAMED[name]}")
            return __getattr__(_RENAMED[name])
        found = getattr(errors, name, None)
        if isinstance(found, type):
            return found
        message = f"module 'axode' has no attribute '{name}'"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
