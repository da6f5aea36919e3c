"""Axode: exact dynamics of robots that roll, that close on themselves, and that do both.

Describe a mechanism, derive its equations, compile them, ask questions:

    import axode as ax

    bot = ax.Mechanism("cart")
    ...
    model = bot.derive().compile()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axode import errors
from axode.errors import AxodeError
from axode.mechanism.bodies import Box, Cylinder, Inertia, Sphere
from axode.mechanism.dh import chain_from_dh
from axode.mechanism.expressions import Parameter
from axode.mechanism.forces import Motor
from axode.mechanism.joints import (
    Cylindrical,
    Fixed,
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.wheels import Ball, Mecanum, Omni, Plane, Rolling, Skate

if TYPE_CHECKING:  # what `__getattr__` finds, for editors and type checkers
    from axode import gallery as gallery
    from axode.codegen.model import Model as Model
    from axode.codegen.modelfile import load_model as load_model
    from axode.errors import Doubtful as Doubtful
    from axode.errors import DoubtfulFile as DoubtfulFile
    from axode.errors import Fault as Fault
    from axode.errors import FileError as FileError
    from axode.errors import Immobile as Immobile
    from axode.errors import InvalidArgument as InvalidArgument
    from axode.errors import InvalidIndependent as InvalidIndependent
    from axode.errors import LeftOut as LeftOut
    from axode.errors import LoopNotClosed as LoopNotClosed
    from axode.errors import MechanismError as MechanismError
    from axode.errors import NotAnEquilibrium as NotAnEquilibrium
    from axode.errors import NotApplicable as NotApplicable
    from axode.errors import NotAsAsked as NotAsAsked
    from axode.errors import RunsFailed as RunsFailed
    from axode.errors import SelfCheckFailed as SelfCheckFailed
    from axode.errors import SimulationFailed as SimulationFailed
    from axode.errors import SingularConfiguration as SingularConfiguration
    from axode.errors import StiffSystem as StiffSystem
    from axode.errors import UnderactuatedMotion as UnderactuatedMotion
    from axode.errors import UnknownName as UnknownName
    from axode.mechanism.files import load as load
    from axode.mechanism.files import schema as schema
    from axode.problems import paths as paths
    from axode.problems.assemble import assemble as assemble
    from axode.problems.compare import compare as compare
    from axode.problems.feasible import feasible as feasible
    from axode.problems.inputs import Callback as Callback
    from axode.problems.inputs import Sampled as Sampled
    from axode.problems.inverse import inverse as inverse
    from axode.problems.linearize import linearize as linearize
    from axode.problems.simulate import simulate as simulate
    from axode.problems.sweep import sweep as sweep
    from axode.problems.watches import Watch as Watch
    from axode.results.trajectory import Trajectory as Trajectory
    from axode.show.viewer.opening import view as view
    from axode.symbolic.equations import Equations as Equations
    from axode.symbolic.formulations import FORMULATIONS as FORMULATIONS
    from axode.verification import verify as verify

__version__ = "0.1.0.dev0"

# Loaded when first used, so that importing axode stays fast and needs nothing but NumPy.
_LAZY = {
    "load": "axode.mechanism.files",
    "schema": "axode.mechanism.files",
    "Equations": "axode.symbolic.equations",
    "FORMULATIONS": "axode.symbolic.formulations",
    "assemble": "axode.problems.assemble",
    "simulate": "axode.problems.simulate",
    "Sampled": "axode.problems.inputs",
    "Callback": "axode.problems.inputs",
    "Watch": "axode.problems.watches",
    "Trajectory": "axode.results.trajectory",
    "compare": "axode.problems.compare",
    "feasible": "axode.problems.feasible",
    "inverse": "axode.problems.inverse",
    "linearize": "axode.problems.linearize",
    "sweep": "axode.problems.sweep",
    "view": "axode.show.viewer.opening",
    "verify": "axode.verification",
    "Model": "axode.codegen.model",
    "load_model": "axode.codegen.modelfile",
}

__all__ = [
    "AxodeError",
    "Ball",
    "Box",
    "Callback",
    "Cylinder",
    "Cylindrical",
    "Equations",
    "Fixed",
    "Floating",
    "Inertia",
    "Mecanum",
    "Mechanism",
    "Model",
    "Motor",
    "Omni",
    "Parameter",
    "Planar",
    "Plane",
    "Prismatic",
    "Revolute",
    "Rolling",
    "Sampled",
    "Screw",
    "Skate",
    "Sphere",
    "Spherical",
    "Trajectory",
    "Universal",
    "Watch",
    "assemble",
    "chain_from_dh",
    "compare",
    "errors",
    "feasible",
    "gallery",
    "inverse",
    "linearize",
    "load",
    "load_model",
    "paths",
    "schema",
    "simulate",
    "sweep",
    "verify",
    "view",
]


_LAZY_MODULES = {"gallery": "axode.gallery", "paths": "axode.problems.paths"}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _LAZY_MODULES:
            return import_module(_LAZY_MODULES[name])
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        if hasattr(errors, name):
            return getattr(errors, name)
        raise AttributeError(f"module 'axode' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY, *_LAZY_MODULES])
