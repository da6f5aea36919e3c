"""Motions without inertia: massless bodies are allowed where others contribute inertia."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from axode.errors import Fault, MechanismError, PlausibilityWarning, warn_of_description
from axode.mechanism.elements.bodies import Body
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import numeric
from axode.numerics.rank import choose_columns
from axode.numerics.tolerances import RANK, ROUNDING
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.recursive import RecursiveFormulation

LIGHT = 1e-7  # of the heaviest body: lighter ones count as massless
MOST_NAMES = 8  # of bodies in one message


def find_missing_inertia(system: System) -> MechanismError | None:
    """Find the motions of a mechanism that nothing resists: forward dynamics is not defined.

    Only idealised bodies (point masses, thin rods, massless brackets), nearly massless ones and
    unphysical ones can cause that. Kinematics, mass matrix and inverse dynamics are defined all the
    same, so the mechanism is not refused.

    Returns:
        An error that names every speed without inertia and the bodies to look at, or None.

    Warns:
        PlausibilityWarning: if forward dynamics loses most of its digits, or if the kinetic energy
            can be negative.
    """
    suspects = suspicious_bodies(system.mechanism)
    if not suspects:
        return None
    inertia = RecursiveFormulation(system).inertia()
    tree = system.tree
    function = ca.Function("I", [tree.q, tree.t, tree.parameters], [inertia])
    smallest, directions = math.inf, np.zeros((0, len(system.independent)))
    for q in system.samples:
        matrix = np.array(function(q, 0.0, system.defaults))
        scale = np.sqrt(np.abs(np.diag(matrix)).clip(1e-300))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        smallest = float(values[np.argmin(np.abs(values))])
        if abs(smallest) > ROUNDING and np.abs(np.diag(matrix)).min() > 1e-200:
            _warn(system, suspects, smallest, float(values[0]))
            return None
        lost = np.abs(values) <= max(ROUNDING, abs(smallest))
        directions = (vectors[:, lost] / scale[:, None]).T
    return MechanismError(
        f"mechanism '{system.mechanism.name}'", _faults(system, suspects, smallest, directions)
    )


def suspicious_bodies(mechanism: Mechanism) -> list[Body]:
    """List the bodies that may lack inertia: idealised, or far lighter than the heaviest."""
    heaviest = max((numeric(body.mass) for body in mechanism.bodies), default=0.0)
    return [b for b in mechanism.bodies if b.is_idealised or numeric(b.mass) < LIGHT * heaviest]


def _faults(
    system: System, suspects: list[Body], smallest: float, directions: np.ndarray
) -> list[Fault]:
    """Report each motion that nothing resists, at the speed that has most of it."""
    size = np.linalg.norm(directions, axis=1, keepdims=True)
    found: dict[str, list[str]] = {}
    for pivot in choose_columns(directions / size, len(directions)):
        speed = system.tree.speed_names[system.independent[pivot]]
        carried = _carried(system.mechanism, speed)
        names = [body.name for body in suspects if body.name in carried]
        names = names or [body.name for body in suspects]
        more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
        found.setdefault(", ".join(names[:MOST_NAMES] + more), []).append(speed)
    return [
        Fault(
            "body",
            names,
            "inertia",
            f"nothing resists the motion of {', '.join(speeds)} (smallest eigenvalue "
            f"{smallest:.2g}); give one of these idealised bodies an inertia, or the joint's "
            "motor a rotor_inertia",
        )
        for names, speeds in found.items()
    ]


def _carried(mechanism: Mechanism, speed: str) -> set[str]:
    """Collect the bodies that the joint with this speed moves."""
    carried: set[str] = set()
    waiting = [c.child for c in mechanism.connections if speed in c.speeds]
    while waiting:
        body = waiting.pop()
        carried.add(body)
        waiting.extend(c.child for c in mechanism.connections if c.parent == body)
    return carried


def _warn(system: System, suspects: list[Body], smallest: float, lowest: float) -> None:
    """Warn of a nearly singular or negative inertia."""
    name = f"mechanism '{system.mechanism.name}'"
    if lowest < -ROUNDING:
        listed = ", ".join(body.name for body in suspects if body.inertia.unphysical)
        message = (
            f"{name}: the kinetic energy of some motions is negative, so that forces accelerate "
            f"them backwards; check the inertia of {listed}"
        )
    elif smallest < RANK:
        digits = max(round(16 + math.log10(smallest)), 0)
        message = (
            f"{name}: bodies of very different mass leave forward dynamics about {digits} digits; "
            f"check {', '.join(body.name for body in suspects[:MOST_NAMES])}"
        )
    else:
        return
    warn_of_description(message, PlausibilityWarning)
