"""Steady motions: which axes to move along with, so that a motion becomes an equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError
from axode.model.model import Model
from axode.model.state import State
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import NO_MOTION
from axode.problems.assemble.assemble import assemble
from axode.problems.linearize.observables import Observables

if TYPE_CHECKING:
    from axode.problems.linearize.symmetries import Symmetries

Array = npt.NDArray[np.float64]
NEARBY = 0.2  # [rad or m] about the operating point: states at which symmetry is judged
STEPS = 60  # to a unit of the fastest coordinate, where matrices are compared
CHECKED = 2  # how many of them

# candidates of a model: their brackets are derived once
_SYMMETRIES: WeakKeyDictionary[Model, Symmetries] = WeakKeyDictionary()


@dataclass(frozen=True)
class CoMoving:
    """Axes in which a steady motion is at rest.

    Attributes:
        weights: By which the model's symmetries add up to the motion that is taken out.
        rates: Names and speeds of those that turn [rad/s].
        proven: Whether the motion was found to stay steady in these axes.
    """

    weights: Array = field(default_factory=lambda: np.zeros(0))
    rates: Mapping[str, float] = field(default_factory=dict)
    proven: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{words} at {rate:.4g} rad/s" for words, rate in self.rates.items())


def symmetries_of(observables: Observables) -> Symmetries:
    """Candidates of a model, made once."""
    from axode.problems.linearize.symmetries import Symmetries

    model = observables.model
    if model not in _SYMMETRIES:
        _SYMMETRIES[model] = Symmetries(observables.equations)
    return _SYMMETRIES[model]


def co_moving(observables: Observables, point: State, u: Array, t: float, p: Array) -> CoMoving:
    """Axes that move with the motion at a point, if it is steady in some.

    First coordinates that drift and on which nothing depends: they need no axes. Then turning with
    the whole mechanism, which leaves all speeds what they are. Then bodies that spin about axes of
    their own.
    """
    e = observables.equations
    if e.system.rheonomic:
        return CoMoving()
    symmetries = symmetries_of(observables)
    X, f = symmetries.values(point.q, point.nu, u, t, p).values()
    if np.abs(f).max(initial=0.0) <= NO_MOTION:
        return CoMoving(proven=True)
    if _weights(X, f.ravel()) is None:
        return CoMoving()  # whatever commutes, it does not add up to this motion
    good = symmetries.commuting(nearby_states(observables.model, point), u, t, p)
    for kinds in (("shift",), ("shift", "world"), ("shift", "spin"), ("shift", "world", "spin")):
        chosen = [k for k in good if symmetries.found[k].kind in kinds]
        weights = _weights(X[:, chosen], f.ravel())
        if weights is not None:
            return _made(symmetries, chosen, weights)
    return CoMoving()


def nearby_states(model: Model, point: State) -> list[tuple[Array, Array]]:
    """The point, and a few states beside it at other speeds."""
    rng, conditions = np.random.default_rng(7), point.conditions
    more: dict[str, Any] = {"t": conditions.t, "parameters": conditions.named(model)}
    states = [(point.q, point.nu)]
    for spread in (NEARBY, NEARBY / 10):
        for _ in range(CHECKED):
            if len(states) > CHECKED:
                return states
            guess = point.q + spread * rng.normal(size=point.q.size)
            try:
                q = assemble(model, guess, **more).q
            except AxodeError:
                continue
            states.append((q, point.nu + rng.normal(size=point.nu.size)))
    return states


def _weights(X: Array, f: Array) -> Array | None:
    """Return the weights by which fields add up to a motion, or None."""
    if not X.shape[1]:
        return None
    sizes = np.linalg.norm(X, axis=0).clip(1e-300)
    weights: Array = least_norm(X / sizes, f, 1e-9) / sizes
    return weights if np.abs(X @ weights - f).max() <= NO_MOTION else None


def _made(symmetries: Symmetries, chosen: list[int], c: Array) -> CoMoving:
    weights, rates = np.zeros(len(symmetries.found)), {}
    turned: set[int] = set()  # coordinates of what turns with the world: nothing of them drifts
    for k, weight in zip(chosen, c.tolist(), strict=True):
        symmetry = symmetries.found[k]
        if symmetry.kind != "shift" and abs(weight) > NO_MOTION:
            weights[k] = weight
            rates[symmetry.words] = weight
            if symmetry.kind == "world":
                turned |= set(symmetry.coordinates)
    for k, weight in zip(chosen, c.tolist(), strict=True):
        symmetry = symmetries.found[k]
        if symmetry.kind == "shift" and set(symmetry.coordinates) <= turned:
            weights[k] = weight
    return CoMoving(weights, rates, True)


def axes_field(observables: Observables, moving: CoMoving) -> Any:
    """Return the field of the axes' motion in symbols, or None if they are fixed."""
    import casadi as ca

    if not moving.rates:
        return None
    used = np.flatnonzero(moving.weights)
    fields = symmetries_of(observables).fields[:, used.tolist()]
    return fields @ ca.DM(moving.weights[used])


def later_states(model: Model, point: State, u: Array) -> list[State]:
    """States that a motion passes through when its fastest coordinate has changed by one unit."""
    options = point.conditions.options
    sizes = (point.q.size, point.nu.size)

    def rate(z: Array) -> Array:
        q, nu = z[: sizes[0]], z[sizes[0] :]
        found = [
            model.evaluate("rates", {"q": q, "nu": nu}, options),
            model.evaluate("forward_dynamics", {"q": q, "nu": nu, "u": u}, options),
        ]
        return np.concatenate(found)

    z = np.concatenate([point.q, point.nu])
    h = 1 / (STEPS * max(float(np.abs(rate(z)).max(initial=0.0)), NO_MOTION))
    states = []
    for step in range(STEPS):
        k1 = rate(z)
        k2 = rate(z + h / 2 * k1)
        k3 = rate(z + h / 2 * k2)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(z + h * k3))
        if step in (STEPS // 3, STEPS - 1):
            states.append(State(z[: sizes[0]], z[sizes[0] :], 0.0, model, point.conditions))
    return states
