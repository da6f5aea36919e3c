"""State feedback: gains with names, and the law that a simulation takes as its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.named_arguments import as_numbers
from axode.names import Names
from axode.numerics.tolerances import NEGLIGIBLE, SAME_ROOT
from axode.problems.linearize.controllability import controllable, observable, poles_of, poles_text

if TYPE_CHECKING:
    from axode.problems.linearize.linearization import Linearization

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """How a state is read and compared with its value at the operating point.

    Attributes:
        name, value: Name and value of the state.
        turns: Whether it is an angle that jumps by a full turn, as yaw does.
        quaternion, reference, axis: For a small angle: the coordinates of the attitude,
            their values at the operating point, and which axis is meant.
    """

    name: str
    value: float
    turns: bool = False
    quaternion: tuple[str, ...] = ()
    reference: tuple[float, ...] = ()
    axis: int = 0

    def deviation(self, s: Any) -> Any:
        """The state less its value, in numbers or in symbols."""
        if self.quaternion:
            from axode.derivatives.small_motions import small_angle

            now = [s[name] for name in self.quaternion]
            same = sum(a * b for a, b in zip(now, self.reference, strict=True))  # or -1: as well
            return small_angle(self.reference, now, self.axis) * same - self.value
        difference = s[self.name] - self.value
        if self.turns:
            return np.arctan2(np.sin(difference), np.cos(difference))
        return difference


@dataclass(frozen=True, eq=False)
class StateFeedback:
    """Inputs u = u0 - K (x - x0), to be given to `simulate` as they are: `input=feedback`.

    Attributes:
        K: Gains, (inputs, states).
        states, inputs: Names.
        readings: How each state is read, and its value x0.
        held: Inputs at the operating point, u0; all of the model's.
        poles: Poles of the closed loop.
        dt: Time between samples that it was designed for [s]; 0 in continuous time.
    """

    K: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    readings: tuple[Reading, ...] = field(repr=False)
    held: Mapping[str, float] = field(repr=False)
    poles: npt.NDArray[np.complex128]
    dt: float = 0.0

    def __call__(self, s: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs by name at a state, given as names with numbers or as a simulation's symbols."""
        away = [reading.deviation(s) for reading in self.readings]
        made: dict[str, Any] = dict(self.held)
        for name, gains in zip(self.inputs, self.K.tolist(), strict=True):
            made[name] = made[name] - sum(k * x for k, x in zip(gains, away, strict=True))
        return made

    def at(self, targets: Mapping[str, float]) -> StateFeedback:
        """Return the same gains about other values of some states, such as a speed to keep."""
        named = Names("the feedback", "state", self.states).by_full_name(targets)
        moved = [replace(r, value=float(named.get(r.name, r.value))) for r in self.readings]
        return replace(self, readings=tuple(moved))

    def __str__(self) -> str:
        from axode.problems.linearize.linearization import named_matrix

        return "\n".join(
            [
                "u = u0 - K (x - x0)",
                *named_matrix(self.inputs, self.states, self.K),
                f"  closed loop: poles {poles_text(self.poles)}",
            ]
        )


def feedback(lin: Linearization, K: Any) -> StateFeedback:
    """A law with given gains: a matrix, or gains by input and state."""
    if isinstance(K, Mapping):
        gains = np.zeros(lin.B.T.shape)
        for name, row in lin.names("input").by_full_name(K).items():
            for state, gain in lin.names("state").by_full_name(row).items():
                gains[lin.inputs.index(name), lin.states.index(state)] = gain
    else:
        gains = as_numbers("K", K)
    if gains.shape != lin.B.T.shape or not np.isfinite(gains).all():
        raise InvalidArgument(
            f"K: {len(lin.inputs)} inputs times {len(lin.states)} finite gains are needed, got "
            f"shape {gains.shape}"
        )
    poles = poles_of(lin.A - lin.B @ gains)
    return StateFeedback(gains, lin.states, lin.inputs, lin.readings, lin.held, poles, lin.dt)


def lqr(lin: Linearization, Q: Any, R: Any) -> StateFeedback:
    """The gains of least cost, the integral of x Q x + u R u.

    Raises:
        InvalidArgument: if no gain makes the cost finite, naming the states that are to blame.
    """
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    if not lin.inputs:
        raise InvalidArgument(
            "lqr: there are no inputs to feed back to; add a motor or a wrench to the mechanism"
        )
    cost_x = weights("Q", Q, lin.names("state"))
    cost_u = weights("R", R, lin.names("input"))
    if np.linalg.eigvalsh(cost_u).min(initial=1.0) <= 0:
        raise InvalidArgument("R: every input must cost something: weights must be > 0")
    _refuse_unstabilisable(lin)
    _refuse_unweighted(lin, cost_x)
    if lin.dt:
        P = solve_discrete_are(lin.A, lin.B, cost_x, cost_u)
        K = np.linalg.solve(cost_u + lin.B.T @ P @ lin.B, lin.B.T @ P @ lin.A)
    else:
        P = solve_continuous_are(lin.A, lin.B, cost_x, cost_u)
        K = np.linalg.solve(cost_u, lin.B.T @ P)
    return feedback(lin, K)


def weights(what: str, given: Any, known: Names) -> Array:
    """A symmetric matrix of weights: from a number, numbers in order or by name, or itself."""
    names = tuple(known)
    if isinstance(given, Mapping):
        diagonal = np.zeros(len(names))
        for name, weight in known.by_full_name(given).items():
            diagonal[names.index(name)] = weight
        if what == "R" and len(given) < len(names):
            left = [n for n, w in zip(names, diagonal, strict=True) if not w]
            raise InvalidArgument(f"R: a weight > 0 is needed for {', '.join(left)} too")
        W = np.diag(diagonal)
    else:
        array = as_numbers(what, given)
        fits = array.shape in ((), (1,), (len(names),))
        W = np.diag(np.broadcast_to(array, (len(names),))) if fits else array
    size = max(float(np.abs(W).max(initial=0.0)), 1e-300)
    if W.shape != (len(names),) * 2 or np.abs(W - W.T).max(initial=0.0) > NEGLIGIBLE * size:
        raise InvalidArgument(
            f"{what}: one weight for each of {', '.join(names)} is needed, or a symmetric matrix"
        )
    if not np.isfinite(W).all() or np.linalg.eigvalsh(W).min(initial=0.0) < -NEGLIGIBLE * size:
        raise InvalidArgument(f"{what}: weights must be finite and not negative")
    return np.asarray(W)


def growth(lin: Linearization, poles: npt.NDArray[np.complex128]) -> Array:
    """How fast modes grow, relative to the fastest pole; 0 at the edge of stability."""
    if lin.dt:
        return np.asarray(np.abs(poles) - 1)
    return np.asarray(poles.real / max(1.0, float(np.abs(lin.poles).max(initial=0.0))))


def _refuse_unstabilisable(lin: Linearization) -> None:
    found = controllable(lin.A, lin.B, lin.states)
    if (growth(lin, found.poles) < -SAME_ROOT).all():
        return
    fewer = ", ".join(f'"{name}"' for name in _stabilisable(lin))
    raise InvalidArgument(
        f"no feedback to {', '.join(lin.inputs)} brings all states back: "
        f"{'; '.join(found.missing)} cannot be moved (poles {poles_text(found.poles)}).\n"
        + (
            f"  Leave out what nothing depends on: lin.reduced([{fewer}])"
            if fewer
            else "  They do not die out by themselves, and other states depend on them."
        )
    )


def _stabilisable(lin: Linearization) -> list[str]:
    """States that are left when those that cannot be moved and that no other needs are taken out,
    the last ones first; none if that does not help."""
    keep = list(range(len(lin.states)))
    while keep:
        A, B = lin.A[np.ix_(keep, keep)], lin.B[keep]
        names = [lin.states[k] for k in keep]
        found = controllable(A, B, names)
        if (growth(lin, found.poles) < -SAME_ROOT).all():
            return names
        blamed = {n for text in found.missing for n in text.split()}
        needed = np.abs(A - np.diag(np.diag(A))).max(axis=0) > SAME_ROOT
        idle = [
            k for k, n, used in zip(keep, names, needed, strict=True) if n in blamed and not used
        ]
        if not idle:
            return []
        keep.remove(idle[-1])
    return []


def _refuse_unweighted(lin: Linearization, cost: Array) -> None:
    values, vectors = np.linalg.eigh(cost)
    seen = np.sqrt(values.clip(0))[:, np.newaxis] * vectors.T
    found = observable(lin.A, seen, lin.states)
    if (np.abs(growth(lin, found.poles)) > SAME_ROOT).all():
        return
    raise InvalidArgument(
        f"Q: there is no weight on {'; '.join(found.missing)}, which would not be brought back "
        "(poles on the edge of stability).\n  Give these states a weight, or leave them out: "
        "lin.reduced([...])."
    )
