"""Operating points: a consistent state, the inputs there, and the equilibrium next to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.state import State
from axode.numerics.newton import find_roots
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import OPEN, POLISHED
from axode.problems.arguments import read_state
from axode.problems.assemble.assemble import assemble
from axode.problems.assemble.closure import allowed_residual
from axode.problems.inputs.inputs import InputPlan, plan_input

Array = npt.NDArray[np.float64]
MAX_STEP = 0.3  # [rad or m] of Newton's method


def find_operating_point(model: Model, state: Any, conditions: Conditions) -> State:
    """Find a consistent state from any form of a state."""
    given = read_state(model, state, "state")
    more: dict[str, Any] = {"t": conditions.t, "parameters": conditions.named(model)}
    given.require_one("state")
    if given.q is None or given.nu is None:
        return assemble(model, given.named, **more)
    q, nu = given.q, given.nu
    residual = np.abs(model.residual(q, **conditions.options))
    worst = float(residual.max(initial=0.0))
    lengths = [
        abs(float(np.linalg.norm(q[list(four)])) - 1) for four in facts_of(model).quaternions
    ]
    if not ((residual <= allowed_residual(model)).all() and max([0.0, *lengths]) <= OPEN):
        raise InvalidArgument(
            f"state: this q is open by {max([worst, *lengths]):.3g}; give the state by name, or "
            "call axode.assemble(model, state) first"
        )
    return State(q, nu, worst, model, conditions)


def is_hold(given: Any) -> bool:
    """Return whether inputs are asked for that keep the speeds."""
    return isinstance(given, str) and given == "hold"


def find_inputs(model: Model, given: Any, point: State) -> Array:
    """Find all inputs at the operating point."""
    if is_hold(given):
        rest = np.zeros(len(model.independent))
        options = point.conditions.options
        held, _ = model.inverse_dynamics_with_residual(point.q, point.nu, rest, **options)
        return np.asarray(held, dtype=float)
    plan = InputPlan() if isinstance(given, str) else plan_input(model, given)
    if plan.constant is None or plan.constant.ndim != 1:
        raise InvalidArgument(
            'input: constant inputs by name are needed, or "hold" for those that keep the speeds'
        )
    return plan.constant


def find_equilibrium(model: Model, point: State, given: Any, tangents: Any) -> State:
    """Find the configuration nearest to a point at which its speeds would last.

    With given inputs no independent speed changes there; with inputs on hold, nothing is left of
    the forces that the motors cannot give.

    Args:
        model: What is to rest.
        point: Where to begin; its independent speeds are kept.
        given: Its inputs, or "hold".
        tangents: For a configuration, changes of q that keep the constraints, orthonormal columns.

    Raises:
        InvalidArgument: if there is none near.
    """
    balance, conditions = _Balance(model, point, given), point.conditions
    more: dict[str, Any] = {"t": conditions.t, "parameters": conditions.named(model)}
    before = float(np.abs(balance.at(point.q)).max(initial=0.0))
    rounding = POLISHED * max(before, balance.size)
    if before <= rounding:
        return point

    def slope(x: Array, _: Any) -> Array:
        Z = tangents(x[0])
        return (balance.slope(x[0]) @ Z @ Z.T)[np.newaxis]

    found, left = find_roots(
        lambda x, _: balance.at(x[0])[np.newaxis],
        slope,
        point.q[np.newaxis],
        retract=lambda x: assemble(model, x[0], **more).q[np.newaxis],
        tolerance=rounding,
        max_step=MAX_STEP,
    )
    if left[0] <= rounding:
        return State(found[0], point.nu, point.residual, model, conditions)
    after = np.abs(balance.at(found[0]))
    raise InvalidArgument(
        f"settle: no equilibrium was found near that point; {before:.3g} of unbalanced force or "
        f"acceleration became {after.max():.3g} on {model.independent[int(np.argmax(after))]}.\n"
        '  Begin nearer, or let the inputs help: input="hold".'
    )


class _Balance:
    """Unbalanced force or acceleration, and its derivative by the configuration."""

    def __init__(self, model: Model, point: State, given: Any) -> None:
        self.model, self.options = model, point.conditions.options
        weight = np.abs(model.potential_force(point.q, **self.options))
        M = model.mass_matrix(point.q, **self.options)
        rest = np.zeros(len(model.independent))
        if is_hold(given):  # forces: those of gravity and of unit accelerations
            self.size = float(max(weight.max(initial=0.0), np.diag(M).max(initial=0.0)))
            self.function, self.given = "inverse_residual", {"nu": point.nu, "nu_dot": rest}
        else:  # accelerations
            self.size = float((np.abs(pseudo_inverse(M)) @ weight).max(initial=1.0))
            u = find_inputs(model, given, point)
            self.function, self.given = "forward_dynamics", {"nu": point.nu, "u": u}

    def at(self, q: Array) -> Array:
        """Unbalanced generalized force, or acceleration, at `q`."""
        return self.model.evaluate(self.function, {"q": q, **self.given}, self.options)

    def slope(self, q: Array) -> Array:
        """Derivative of `at` by q, right along the tangents."""
        model, options = self.model, self.options
        if self.function != "forward_dynamics":
            return model.jacobian(self.function, "q", q, *self.given.values(), **options)
        found = model.derivatives("forward_dynamics", q, *self.given.values(), by="q", **options)
        assert found.by_q is not None
        return found.by_q @ pseudo_inverse(model.tangent_map(q, **options))  # (X9)
