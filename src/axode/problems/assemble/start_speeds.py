"""Speeds to start with: those that were named, and as few others as the constraints allow.

Rolling wheels move their robot, so a start that names the wheels' speeds says something of others.
Where several motions would do, speeds that were not named stay at zero as far as they can: joints
first, then how a base rolls, pitches and turns, last how it moves ahead.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotAsAsked, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.symbolic.algebra.rank import least_norm, smallest_singular_value

Array = npt.NDArray[np.float64]
IMPOSSIBLE = 1e-9  # relative: wanted speeds that are missed by more exclude each other
SINGULAR_SPEED = 1e9  # speed that a unit independent one may cause: beyond, these are singular
GROWTH = 5.0  # times the smallest speeds that will do: more is no price for another zero
RANK = 1e-12  # relative singular value below which a direction is not determined
IDLE = 1e-9  # of the largest entry: a speed that no independent one moves


def consistent_speeds(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> Array:
    """Find independent speeds that give the wanted ones, one state per row.

    Raises:
        InvalidArgument: for speeds that exclude each other.
        SingularConfiguration: where the independent speeds do not determine the others.
    """
    rest = np.zeros((len(q), len(model.independent)))
    if set(wanted) <= set(model.independent):
        for name, values in wanted.items():
            rest[:, model.independent.index(name)] = values
        return rest
    options = conditions.options
    Theta, base = model.speed_map(q, **options), model.joint_speeds(q, rest, **options)
    if not np.abs(Theta).max(initial=0.0) < SINGULAR_SPEED:
        found = _speeds_elsewhere(model, q, wanted, conditions)
        if found is not None:
            return found
    rows, right = [], []
    for name, values in wanted.items():
        if name in model.speed_names:
            j = model.speed_names.index(name)
            rows.append(Theta[:, j])
            right.append(values - base[:, j])
        else:  # measures of velocity are linear in the speeds
            j = model.measure_names.index(name)
            rows.append(model.measures_jacobian(q, rest, **options)[:, j, q.shape[1] :])
            right.append(values - model.measures(q, rest, **options)[:, j])
    A, b = np.stack(rows, axis=1), np.stack(right, axis=1)
    if not np.isfinite(A).all():
        raise SingularConfiguration(
            f"'{model.name}' is where its independent speeds {', '.join(model.independent)} do not "
            "determine the others; give these speeds, or other coordinates"
        )
    least = least_norm(A, b, RANK)
    miss = _missed(A, b, least)
    allowed = IMPOSSIBLE * max(1.0, float(np.abs(b).max()))
    if miss.max() > allowed:
        worst = list(wanted)[int(np.argmax(miss.max(axis=0)))]
        raise InvalidArgument(
            f"the constraints do not allow these speeds together: '{worst}' misses its value by "
            f"{miss.max():.3g}; give fewer, for instance only {', '.join(model.independent)}"
        )
    held = _held(model, wanted, Theta[0], (A[0], b[0]), allowed)
    if not held:
        return least
    A = np.concatenate([A, Theta[:, held]], axis=1)
    b = np.concatenate([b, -base[:, held]], axis=1)
    nu = least_norm(A, b, RANK)
    fits = _missed(A, b, nu).max(axis=1) <= allowed  # a state may be special
    return np.where(fits[:, np.newaxis], nu, least)


def _speeds_elsewhere(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> Array | None:
    """Find them by another model, state by state, where the model's own rows are dependent."""
    from axode.problems.singular.switching import choose_models

    conditions = conditions.spread(q.shape[:-1])
    described = choose_models(model, q, conditions)
    if not described.elsewhere.any():
        return None
    nu = np.empty((len(q), len(model.independent)))
    chosen = [model.speed_names.index(name) for name in model.independent]
    for k, number in enumerate(described.made_by.tolist()):
        other, at = described.models[number], slice(k, k + 1)
        there = conditions.at(at)
        own = {name: values[at] for name, values in wanted.items()}
        theta = other.speed_map(q[at], **there.options)[0, chosen]
        if smallest_singular_value(theta) < 1 / SINGULAR_SPEED:
            return None  # the user's speeds, not the rows, are what is singular
        theirs = consistent_speeds(other, q[at], own, there)
        nu[k] = other.joint_speeds(q[at], theirs, **there.options)[0, chosen]
    return nu


def _missed(A: Array, b: Array, nu: Array) -> Array:
    return np.abs((A @ nu[..., np.newaxis])[..., 0] - b)


def _held(
    model: Model,
    wanted: Mapping[str, Array],
    Theta: Array,
    system: tuple[Array, Array],
    allowed: float,
) -> list[int]:
    """Find the speeds that stay at zero, at one state; warn of others that could."""
    A, b = system
    nu = least_norm(A, b, RANK)
    most = GROWTH * float(np.linalg.norm(nu))
    held: list[int] = []
    left: list[int] = []
    for j in _order(model):
        if model.speed_names[j] in wanted or np.abs(Theta[j]).max() < IDLE * np.abs(Theta).max():
            continue
        rows, right = np.vstack([A, Theta[[*held, j]]]), np.append(b, np.zeros(len(held) + 1))
        trial = least_norm(rows, right, RANK)
        if np.abs(rows @ trial - right).max() > allowed:
            continue  # the wanted speeds move it
        if np.linalg.norm(trial) > most:
            left.append(j)
            continue
        held.append(j)
        nu = trial
    moving = [(model.speed_names[j], float(Theta[j] @ nu)) for j in left]
    moving = [(n, v) for n, v in moving if n in model.independent and abs(v) > allowed]
    if moving:
        listed = ", ".join(f"{name} = {value:.4g}" for name, value in moving)
        warnings.warn(
            f"{', '.join(wanted)} can be had in several ways, and this one has {listed}, which "
            "was not asked for; name these speeds too, to choose another",
            NotAsAsked,
            stacklevel=5,
        )
    return held


def _order(model: Model) -> list[int]:
    """Order independent speeds and those of bases, first those that had better not move."""
    names = list(model.speed_names)
    own = [names.index(name) for name in model.independent]
    if not model.has_equations:
        return own[::-1]
    from axode.mechanism.topology import tree_order
    from axode.symbolic.system import preference

    system = model.equations.system
    joints = tree_order(system.mechanism)
    bases = {
        names.index(speed): speed_unit
        for c in joints
        if c.joint.carries_base
        for speed, speed_unit in zip(c.speeds, c.joint.speed_units, strict=True)
    }
    wheels = {contact.body for contact in system.mechanism.contacts}
    spins = {names.index(s) for c in joints if c.child in wheels for s in c.speeds} - set(bases)
    last_first = [j for j in preference(system.mechanism, system.tree)[::-1] if j in bases]
    turning = [j for j in last_first if bases[j] == "rad/s"]
    sliding = [j for j in last_first if bases[j] == "m/s" and j in own]
    inner = [j for j in own if j not in bases and j not in spins]
    return [*inner, *turning, *sliding, *(j for j in own if j in spins)]
