"""Where to linearise: a consistent state, the inputs there, and the equilibrium next to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.model.state import State
from axode.problems.assemble.assemble import assemble
from axode.problems.simulate.inputs import InputPlan, plan_input

Array = npt.NDArray[np.float64]
OPEN = 1e-6  # [m or rad]: a point that is open by more is refused
BALANCED = 1e-11  # of the forces at work: what is left is rounding
STEPS = 60
LONGEST = 0.3  # [rad or m] that one step may go
SHORTEST = 1e-6  # of a step: a shorter one does not help any more


def operating_point(model: Model, at: Any, options: dict[str, Any]) -> State:
    """A consistent state from any of the ways to say one."""
    if isinstance(at, State):
        at = (at.q, at.nu)
    elif hasattr(at, "final") and not isinstance(at, Mapping):
        last = at.final
        at = tuple(
            np.array([last[name] for name in names], dtype=float)
            for names in (model.coordinates, model.independent)
        )
    if not isinstance(at, tuple):
        if at is not None and not isinstance(at, Mapping):
            raise InvalidArgument(
                "at: expected coordinates, speeds and measures by name, a State of assemble, a "
                f"trajectory, or (q, nu), got {at!r}"
            )
        several = [name for name, value in (at or {}).items() if np.ndim(value)]
        if several:
            raise InvalidArgument(f"at: one number is needed for each of {', '.join(several)}")
        return assemble(model, at, **options)
    q, nu = _arrays(model, at)
    worst = float(np.abs(model.residual(q, **options)).max(initial=0.0))
    lengths = [abs(float(np.linalg.norm(q[list(four)])) - 1) for four in model.facts.quaternions]
    if not max([worst, *lengths]) <= OPEN:
        raise InvalidArgument(
            f"at: this q is open by {max([worst, *lengths]):.3g}; give the point by name, or call "
            "axode.assemble(model, near=...) first"
        )
    return State(q, nu, worst, model, options)


def _arrays(model: Model, at: tuple[Any, ...]) -> tuple[Array, Array]:
    sizes = (len(model.coordinates), len(model.independent))
    arrays = [np.asarray(a, dtype=float) for a in at]
    if [a.shape for a in arrays] != [(n,) for n in sizes]:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidArgument(
            f"at: one (q, nu) of sizes {sizes[0]} and {sizes[1]} is needed, got {shapes}"
        )
    return arrays[0], arrays[1]


def is_hold(given: Any) -> bool:
    """Whether inputs are asked for that keep the speeds."""
    return isinstance(given, str) and given == "hold"


def inputs_there(model: Model, given: Any, point: State) -> Array:
    """All inputs at the operating point."""
    if is_hold(given):
        rest = np.zeros(len(model.independent))
        held, _ = model.inverse_dynamics_with_residual(point.q, point.nu, rest, **point.options)
        return np.asarray(held, dtype=float)
    plan = InputPlan() if isinstance(given, str) else plan_input(model, given)
    if plan.constant is None or plan.constant.ndim != 1:
        raise InvalidArgument(
            'input: constant inputs by name are needed, or "hold" for those that keep the speeds'
        )
    return plan.constant


def settled(model: Model, point: State, given: Any, tangents: Any) -> State:
    """The configuration nearest to a point at which its speeds would last.

    With given inputs no independent speed changes there; with inputs on hold, nothing is left of
    the forces that the motors cannot give. Newton's steps along the tangents, each the shortest.

    Args:
        model: What is to rest.
        point: Where to begin; its independent speeds are kept.
        given: Its inputs, or "hold".
        tangents: Of a configuration: changes of q that keep the constraints, in columns.

    Raises:
        InvalidArgument: if there is none near.
    """
    balance = _Balance(model, point, given)
    q, unbalanced = point.q, balance.at(point.q)
    size = float(np.abs(unbalanced).max(initial=0.0))
    rounding = BALANCED * max(1.0, size, balance.gravity)
    for _ in range(STEPS):
        if np.abs(unbalanced).max(initial=0.0) <= rounding:
            return State(q, point.nu, point.residual, model, point.options)
        Z = tangents(q)
        step = Z @ np.linalg.lstsq(balance.slope(q) @ Z, -unbalanced, rcond=1e-10)[0]
        share = min(1.0, LONGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        while share > SHORTEST:
            trial = assemble(model, q + share * step, **point.options).q
            there = balance.at(trial)
            if np.linalg.norm(there) < np.linalg.norm(unbalanced):
                break
            share /= 2
        else:
            break
        q, unbalanced = trial, there
    raise InvalidArgument(
        f"settle: no equilibrium was found near that point; {size:.3g} of unbalanced force or "
        f"acceleration became {np.abs(unbalanced).max():.3g} on "
        f"{model.independent[int(np.argmax(np.abs(unbalanced)))]}.\n"
        '  Begin nearer, or let the inputs help: input="hold".'
    )


class _Balance:
    """What keeps a configuration from lasting, and how it changes with the configuration."""

    def __init__(self, model: Model, point: State, given: Any) -> None:
        self.model, self.options = model, point.options
        weight = model.potential_force(point.q, **self.options)
        self.gravity = float(np.abs(weight).max(initial=0.0))
        rest = np.zeros(len(model.independent))
        if is_hold(given):
            self.function, self.given = "inverse_residual", {"nu": point.nu, "nu_dot": rest}
        else:
            u = inputs_there(model, given, point)
            self.function, self.given = "forward_dynamics", {"nu": point.nu, "u": u}

    def at(self, q: Array) -> Array:
        """It, at one configuration."""
        more: Any = self.options
        return self.model.evaluate(self.function, {"q": q, **self.given}, more)

    def slope(self, q: Array) -> Array:
        """Its derivative by q."""
        return self.model.jacobian(self.function, "q", q, *self.given.values(), **self.options)
