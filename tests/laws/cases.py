"""A mechanism ready to be judged: its equations, feasible states, and numbers of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import casadi as ca
import numpy as np

import axode as ax
from axode import gallery
from axode.symbolic.equations import Equations
from random_mechanisms import MECHANISMS

Array = np.ndarray

# Double precision, some thousand operations, matrices of condition up to about 1e4.
ROUNDING = 1e-10
# What is solved for through a matrix and put back through another route loses its condition twice.
SOLVED = 1e-9
SPREAD = 0.15  # of the coordinates about home [rad, m]: generic, yet on the same branch
STATES = 2
FOR_LOOPS = ("pseudo_joints", "reduced_order", "legs")  # formulations that take loops alone
WELL_POSED = 60.0  # largest speed a unit independent speed may cause: away from singularities
WELL_CONDITIONED = 1e5  # of the inertia: else rounding alone breaks the tolerances


@dataclass(frozen=True)
class State:
    """A feasible state and everything that may be given with it."""

    q: Array
    nu: Array
    nu_dot: Array
    u: Array
    t: float
    p: Array
    v: Array


class Case:
    """One mechanism and what the laws ask about it."""

    def __init__(
        self,
        mechanism: ax.Mechanism,
        seed: int = 0,
        independent: Sequence[str] | None = None,
        self_check: bool = True,
    ) -> None:
        self.mechanism = mechanism
        self.seed = seed
        self.equations = mechanism.derive(independent=independent, self_check=self_check)
        self.system = self.equations.system
        self.tree = self.system.tree
        self._last: tuple[Any, ...] = ()

    @cache  # noqa: B019  (a case lives as long as its tests)
    def by(self, formulation: str) -> Equations:
        """The same system by another formulation."""
        if formulation == self.equations.formulation:
            return self.equations
        rival = Equations(self.system, formulation)
        rival.__dict__["weights"] = self.equations.weights  # one set of symbols for all
        return rival

    @property
    def symbols(self) -> list[Any]:
        """What expressions may depend on, in the order of a state's fields."""
        e = self.equations
        return [e.q, e.nu, e.nu_dot, e.u, e.t, e.p, self.tree.v, e.weights]

    def at(self, state: State, *expressions: Any) -> list[Array]:
        """Values of expressions at a state."""
        if len(expressions) != len(self._last) or any(
            x is not y for x, y in zip(expressions, self._last, strict=True)
        ):
            self._last = expressions  # the same ones usually come again with another state
            self._function = ca.Function(
                "f", self.symbols, [ca.densify(ca.SX(x)) for x in expressions]
            )
        weights = np.ones(self.equations.weights.shape[0])
        results = self._function.call(
            [
                ca.DM(x)
                for x in (
                    state.q,
                    state.nu,
                    state.nu_dot,
                    state.u,
                    state.t,
                    state.p,
                    state.v,
                    weights,
                )
            ]
        )
        return [np.array(x) for x in results]

    def vector(self, state: State, expression: Any) -> Array:
        """One expression as a flat array."""
        return self.at(state, expression)[0].ravel()

    def along(self, expression: Any, nu_dot: Any = None) -> Any:
        """Rate of an expression of q, nu and t along the motion, by automatic differentiation."""
        e = self.equations
        rate = ca.jtimes(ca.vec(expression), e.q, e.q_dot) + ca.jtimes(ca.vec(expression), e.t, 1)
        if nu_dot is not None:
            rate += ca.jtimes(ca.vec(expression), e.nu, nu_dot)
        return ca.reshape(rate, expression.shape)

    @cached_property
    def states(self) -> list[State]:
        """Feasible, generic, well-posed states."""
        rng = np.random.default_rng([self.seed, 2026])
        e, assembly = self.equations, self.system.assembly
        home = assembly.find_home()
        found: list[State] = []
        measure = ca.Function("m", [e.q, e.t, e.p], [e.Theta, e.I])
        speeds = ca.Function("v", [e.q, e.nu, e.t, e.p], [e.v])
        for attempt in range(200):
            t = float(rng.uniform(0, 1)) if self.system.rheonomic else 0.0
            spread = SPREAD * 0.97**attempt
            q, error = assembly.close(home + rng.normal(0, spread, home.size), t)
            if error > 1e-12:
                continue
            p = self.system.defaults
            Theta, I = (np.array(x) for x in measure(q, t, p))
            if not np.abs(Theta).max() < WELL_POSED or np.linalg.cond(I) > WELL_CONDITIONED:
                continue
            nu, nu_dot = rng.normal(size=(2, len(e.independent)))
            u = rng.normal(size=len(e.inputs))
            v = np.array(speeds(q, nu, t, p)).ravel()
            found.append(State(q, nu, nu_dot, u, t, p, v))
            if len(found) == STATES:
                return found
        raise AssertionError(f"{self.mechanism.name}: no well-posed state near home")


@cache
def case_of(name: str) -> Case:
    """A case of the registry, derived once a process."""
    return Case(MECHANISMS[name]())


@cache
def gallery_case(name: str) -> Case:
    """A case of the gallery, derived once a process."""
    return Case(gallery.build(name))


def agree(actual: Any, expected: Any, tolerance: float = ROUNDING, what: str = "") -> None:
    """Equal to a tolerance relative to the largest entry, or to one if all are small."""
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    assert actual.shape == expected.shape, f"{what}: shapes {actual.shape}, {expected.shape}"
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    difference = np.abs(actual - expected).max(initial=0.0) / scale
    assert difference <= tolerance, f"{what}: off by {difference:.2e} of {scale:.3g}"
