"""Axode: exact dynamics of robots that roll, that close on themselves, and that do both.

Describe a mechanism, derive its equations, compile them, ask questions:

    import axode as ax

    bot = ax.Mechanism("cart")
    ...
    model = bot.derive().compile()
"""

from __future__ import annotations

from typing import Any

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
    "AxodeError", "Ball", "Box", "Callback", "Cylinder", "Cylindrical", "Equations", "Fixed",
    "Floating", "Inertia", "Mecanum", "Mechanism", "Model", "Motor", "Omni", "Parameter", "Planar",
    "Plane", "Prismatic", "Revolute", "Rolling", "Sampled", "Screw", "Skate", "Sphere", "Spherical",
    "Trajectory", "Universal", "Watch", "assemble", "chain_from_dh", "compare", "errors",
    "feasible", "gallery", "inverse", "linearize", "load", "load_model", "paths", "schema",
    "simulate", "sweep", "verify", "view",
]  # fmt: skip


_LAZY_MODULES = {"gallery": "axode.gallery", "paths": "axode.problems.paths"}


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
