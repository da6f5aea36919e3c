"""Motions without inertia: massless bodies are welcome where something else gives them mass."""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.errors import Fault, MechanismError
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.system import System

SINGULAR = 1e-12  # smallest eigenvalue of the scaled inertia that still is one


def check_inertia(system: System) -> None:
    """Refuse a mechanism some of whose motions nothing resists.

    Only idealised bodies (point masses, thin rods, massless brackets) can cause that.

    Raises:
        MechanismError: naming the speed that has no inertia and the bodies to look at.
    """
    ideal = [body.name for body in system.mechanism.bodies if body.is_idealised]
    if not ideal:
        return
    inertia = RecursiveFormulation(system).inertia()
    tree = system.tree
    function = ca.Function("I", [tree.q, tree.t, tree.parameters], [inertia])
    smallest, direction = 0.0, np.zeros(len(system.independent))
    for q in system.samples:
        matrix = np.array(function(q, 0.0, system.defaults))
        scale = np.sqrt(np.abs(np.diag(matrix)).clip(1e-300))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        if values[0] > SINGULAR and np.abs(np.diag(matrix)).min() > 1e-200:
            return
        smallest, direction = values[0], vectors[:, 0] / scale
    speed = tree.speed_names[system.independent[int(np.argmax(np.abs(direction)))]]
    raise MechanismError(
        f"mechanism '{system.mechanism.name}'",
        [Fault("body", ", ".join(ideal), "inertia",
               f"nothing resists the motion of {speed} (smallest eigenvalue {smallest:.2g}); give "
               "one of these idealised bodies an inertia, or the joint's motor a rotor_inertia")],
    )  # fmt: skip
