"""Is it right? Each mechanism against a peer at random states, before anything is timed.

Every check returns the largest relative error it saw and asserts that it is below `TOLERANCE`.
"""

from __future__ import annotations

import numpy as np

import axode as ax
from benchmarks.mechanisms import platform_coordinates
from benchmarks.peers.kane_disk import kane_disk
from benchmarks.peers.pinocchio_model import pinocchio_peer

# Rounding alone: a chain of 64 links amplifies it to about 1e-12.
TOLERANCE = 1e-9
STATES = 4


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert error < TOLERANCE, f"relative error {error:.3g}"
    return error


def _coordinates(mechanism: ax.Mechanism, model: ax.Model, rng: np.random.Generator) -> np.ndarray:
    """Random coordinates that close the loops of a platform, any for a chain."""
    if not mechanism.loops:
        return rng.uniform(-2, 2, len(model.coordinates))
    quaternion = np.array([1.0, *rng.uniform(-0.1, 0.1, 3)])
    position = np.array([0.0, 0.0, 0.7]) + rng.uniform(-0.08, 0.08, 3)
    unit = quaternion / np.linalg.norm(quaternion)
    named = platform_coordinates(len(mechanism.loops), position, unit)
    return np.array([named[name] for name in model.coordinates])


def check_with_pinocchio(mechanism: ax.Mechanism, model: ax.Model) -> float:
    """Direct dynamics, and inverse dynamics of trees."""
    peer, rng = pinocchio_peer(mechanism), np.random.default_rng(0)
    driven = [model.speed_names.index(f"{drive.coordinate}.rate") for drive in mechanism.drives]
    errors = []
    for _ in range(STATES):
        q = _coordinates(mechanism, model, rng)
        nu, nu_dot = rng.uniform(-1, 1, (2, len(model.independent)))
        u = rng.uniform(-50, 50, len(model.inputs))
        v = model.speeds(q, nu)
        force = np.zeros(len(v))
        force[driven] = u
        wanted, _ = peer.direct_dynamics(q, v, force)
        found = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))
        errors.append(_error(found, wanted))
        if not mechanism.loops:
            wanted = peer.inverse_dynamics(q, v, nu_dot)
            errors.append(_error(model.inverse_dynamics(q, nu, nu_dot), wanted))
    return max(errors)


def check_rolling(mechanism: ax.Mechanism, model: ax.Model) -> float:
    """Against Axode's own `lagrange`: energies differentiated, nothing of the recursions shared.

    No peer here has ideal rolling of several wheels; SymPy's Kane has a cart in the tests.
    """
    other = mechanism.derive("lagrange", independent=model.independent).compile("interpreter")
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(STATES):
        nu = rng.uniform(-1, 1, len(model.independent))
        u = rng.uniform(-1, 1, len(model.inputs))
        q = {name: rng.uniform(-2, 2) for name in model.coordinates
             if name in ("base.x", "base.yaw", "left", "caster_bracket")}  # fmt: skip
        wanted = other.forward_dynamics(q, nu, u)
        errors.append(_error(model.forward_dynamics(q, nu, u), wanted))
    return max(errors)


def check_with_kane(_: ax.Mechanism, model: ax.Model) -> float:
    """The rolling disk against SymPy, leaning by an angle about x."""
    evaluate = kane_disk(2.0, 0.3, 0.045, 0.09, 9.81)
    errors = []
    for lean in (0.0, 0.3, -0.9):
        u = np.array([0.4, 6.0, -0.8])
        M, forcing, _, w_L = evaluate((0.0, lean, 0.0), u, (0.0, 0.0, 0.0))
        u_dot = np.linalg.solve(M, forcing).ravel()
        q = {"base.qw": np.cos(lean / 2), "base.qx": np.sin(lean / 2),
             "base.z": 0.3 * np.cos(lean)}  # fmt: skip
        named = dict(zip(("base.wx", "base.wy", "base.wz"), u, strict=True))
        found = model.forward_dynamics(q, named)
        errors.append(_error(found, u_dot + np.cross(w_L.ravel(), u)))
    return max(errors)
