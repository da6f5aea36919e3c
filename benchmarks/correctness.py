"""Is it right? Each mechanism against a peer at random states, before anything is timed.

Every check returns the largest relative error it saw and asserts that it is below `TOLERANCE`.
"""

from __future__ import annotations

import numpy as np

import axode as ax
from benchmarks.peers.kane_disk import kane_disk
from benchmarks.peers.pinocchio_model import pinocchio_peer
from benchmarks.states import States, random_states

# Rounding alone: a chain of 64 links amplifies it to about 1e-12.
TOLERANCE = 1e-9
STATES = 4


def relative_error(found: np.ndarray, wanted: np.ndarray, tolerance: float = TOLERANCE) -> float:
    """The largest difference over the largest entry; asserted to be small."""
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert error < tolerance, f"relative error {error:.3g}"
    return error


def check_with_pinocchio(mechanism: ax.Mechanism, model: ax.Model) -> float:
    """Direct dynamics, and inverse dynamics of trees.

    Of loops, inverse dynamics must give back the inputs that direct dynamics was given.
    """
    peer = pinocchio_peer(mechanism)
    states = random_states(mechanism, model, STATES)
    errors = []
    for q, nu, nu_dot, u, v, force in zip(
        states.q, states.nu, states.nu_dot, states.u, states.v, states.force, strict=True
    ):
        wanted, _ = peer.direct_dynamics(q, v, force)
        found = model.forward_dynamics(q, nu, u)
        errors.append(relative_error(model.accelerations(q, nu, found), wanted))
        if not mechanism.loops:
            wanted = peer.inverse_dynamics(q, v, nu_dot)
            errors.append(relative_error(model.inverse_dynamics(q, nu, nu_dot), wanted))
        elif model.actuation == "fully actuated":
            errors.append(relative_error(model.inverse_dynamics(q, nu, found), u))
    return max(errors)


def check_batch(model: ax.Model, states: States) -> float:
    """Machine code, one sample at a time and in batches, against CasADi's interpreter."""
    interpreter = model.equations.compile("interpreter")
    few = states.first(STATES + 7)  # whole vectors of lanes, and a part of one
    errors = []
    for name in ("forward_dynamics", "inverse_dynamics"):
        arguments = {key: getattr(few, key) for key in ("q", "nu", "nu_dot", "u")}
        wanted = interpreter.evaluate(name, arguments)
        errors.append(relative_error(model.evaluate(name, arguments), wanted))
        one = {key: value[0] for key, value in arguments.items()}
        errors.append(relative_error(model.evaluate(name, one), wanted[0]))
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
        q = {
            name: rng.uniform(-2, 2)
            for name in model.coordinates
            if name in ("base.x", "base.yaw", "left", "caster_bracket")
        }
        wanted = other.forward_dynamics(q, nu, u)
        errors.append(relative_error(model.forward_dynamics(q, nu, u), wanted))
    return max(errors)


def check_with_kane(_: ax.Mechanism, model: ax.Model) -> float:
    """The rolling disk against SymPy, leaning by an angle about x."""
    evaluate = kane_disk(2.0, 0.3, 0.045, 0.09, 9.81)
    errors = []
    for lean in (0.0, 0.3, -0.9):
        u = np.array([0.4, 6.0, -0.8])
        M, forcing, _, w_L = evaluate((0.0, lean, 0.0), u, (0.0, 0.0, 0.0))
        u_dot = np.linalg.solve(M, forcing).ravel()
        q = {"base.qw": np.cos(lean / 2), "base.qx": np.sin(lean / 2), "base.z": 0.3 * np.cos(lean)}
        named = dict(zip(("base.wx", "base.wy", "base.wz"), u, strict=True))
        found = model.forward_dynamics(q, named)
        errors.append(relative_error(found, u_dot + np.cross(w_L.ravel(), u)))
    return max(errors)
