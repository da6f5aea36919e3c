"""Axode: exact dynamics of robots that roll, that close on themselves, and that do both.

Describe a mechanism, derive its equations, compile them, ask questions:

    import axode as ax

    bot = ax.Mechanism("cart")
    ...
    model = bot.derive().compile()
"""

from __future__ import annotations

from typing import Any

from axode.errors import (
    AxodeError,
    FileError,
    Immobile,
    InvalidArgument,
    InvalidIndependent,
    LoopNotClosed,
    MechanismError,
    NotApplicable,
    SingularConfiguration,
    UnderactuatedMotion,
    UnknownName,
)
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
    "Model": "axode.codegen.model",
    "load_model": "axode.codegen.modelfile",
}

__all__ = [
    "FORMULATIONS", "AxodeError", "Ball", "Box", "Cylinder", "Cylindrical", "Equations",
    "FileError", "Fixed", "Floating", "Immobile", "Inertia", "InvalidArgument",
    "InvalidIndependent", "LoopNotClosed", "Mecanum", "Mechanism", "MechanismError", "Model",
    "Motor", "NotApplicable", "Omni", "Parameter", "Planar", "Plane", "Prismatic", "Revolute",
    "Rolling", "Screw", "SingularConfiguration", "Skate", "Sphere", "Spherical",
    "UnderactuatedMotion", "Universal", "UnknownName", "chain_from_dh", "load", "load_model", "schema",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'axode' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
