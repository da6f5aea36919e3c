"""Derived equations against the oracle, at two states, whenever a mechanism is derived.

At `derive`: poses, forces of the tree, input map, and every row of loops, wheels and prescribed
motions with its bias. When one of the main functions is built, its graph itself: the numbers that
it gives have to satisfy the oracle's equations. Differences are relative to the terms of the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import SelfCheckFailed
from axode.oracle.dynamics import Oracle, Rows
from axode.symbolic.constraints import column_of, matrix_of
from axode.symbolic.link_numbers import TreeNumbers
from axode.symbolic.system import System

Array = npt.NDArray[Any]
AGREEMENT = 1e-9  # of the terms of each sum; rounding leaves 1e-15 to 1e-12
ROUNDED = 100.0  # times what dropped rows contradict: lever arms and spins make so much of it
SLACK = 10.0  # on what open loops and rows that are only nearly dependent add to a bias
# The best of solvers leaves 1e-13 of the largest forces in every equation, small ones included:
# so much of them counts that AGREEMENT allows this.
SOLVED = 1e-4
INSTANT = 0.37  # [s]: any instant but the special one at zero
STATES = 2
CHECKED = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
REMEDY = (
    "This is a defect of Axode: please report it with the description (mechanism.save('...')). "
    "derive(self_check=False) returns the equations as they are, wrong by as much."
)


@dataclass(frozen=True)
class Disagreement:
    """A quantity that differs, relative to the size of its terms."""

    what: str
    error: float


@dataclass(frozen=True)
class State:
    """A feasible state, and what may be given with it."""

    q: Array
    v: Array
    v_dot: Array
    u: Array


class SelfCheck:
    """The oracle of a derived system and the states at which the two are compared."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.oracle = Oracle(system.mechanism)
        tree, rows = system.tree, list(system.rows)
        size = tree.v.shape[0]
        forces = system.forces
        arguments = [tree.q, tree.v, tree.t, tree.parameters]
        passive = ca.densify(forces.dissipative + forces.elastic)
        self._forces = ca.Function("forces", arguments, [passive, forces.armature, forces.B])
        self._rows = ca.Function(
            "rows",
            arguments,
            [
                ca.densify(matrix_of(rows, size)),
                ca.densify(column_of([row.rate for row in rows])),
                ca.densify(column_of([row.bias for row in rows])),
            ],
        )
        self.instant = INSTANT
        self._residual = ca.Function(
            "residual", arguments, [column_of([r.residual for r in rows if r.residual is not None])]
        )
        self.states = self._choose_states()
        self.agreement = max(AGREEMENT, ROUNDED * max(map(self._contradiction, self.states)))

    def _contradiction(self, state: State) -> float:
        """By how much rows that were dropped contradict the others, as rounded numbers make them.

        Rows hold of closed loops: where one is open, others differ by as much.
        """
        if not self.system.report.dropped:
            return 0.0
        A, b, _ = self._rows_at(state.q, state.v)
        rates = np.abs(A @ state.v - b).max(initial=0.0) / max(1.0, np.abs(state.v).max())
        if any(row.kind == "prescribed" for row in self.system.rows):
            return float(rates)  # at another instant than the sample's
        residual = self._residual(state.q, state.v, INSTANT, self.system.defaults)
        gap = np.abs(np.array(ca.DM(residual))).max(initial=0.0) / self.system.assembly.extent
        return float(max(rates, gap))

    def _choose_states(self) -> list[State]:
        system, generator = self.system, np.random.default_rng(0)
        chosen = [system.samples[0], system.samples[-1]][:STATES]
        states = []
        for q in chosen:
            v, v_dot = generator.normal(size=(2, system.tree.v.shape[0]))
            u = generator.normal(size=len(system.forces.input_names))
            if system.kept:
                A, b, _ = self._rows_at(q, v)
                kept = list(system.report.kept)
                v = v - np.linalg.lstsq(A[kept], A[kept] @ v - b[kept], rcond=None)[0]
            states.append(State(q, v, v_dot, u))
        return states

    def _rows_at(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        A, b, bias = self._rows(q, v, INSTANT, self.system.defaults)
        return np.array(ca.DM(A)), np.array(ca.DM(b)).ravel(), np.array(ca.DM(bias)).ravel()

    @cached_property
    def oracle_rows(self) -> list[Rows]:
        """Rows of the oracle at every state."""
        return [self.oracle.rows(state.q, state.v, INSTANT) for state in self.states]

    # at derive -----------------------------------------------------------------------------------

    def check_system(self) -> None:
        """Compare what every formulation starts from.

        Raises:
            SelfCheckFailed: naming what differs and by how much.
        """
        found = [*self._tree_differences(), *self._row_differences()]
        self._refuse(found)

    def _refuse(self, found: Sequence[Disagreement]) -> None:
        worst: dict[str, float] = {}
        for item in found:
            if not item.error <= self.agreement:  # which is also how NaN comes here
                error = np.inf if np.isnan(item.error) else item.error
                worst[item.what] = max(error, worst.get(item.what, 0.0))
        if worst:
            ordered = sorted(worst, key=lambda what: -worst[what])
            told = [f"{what}: off by {worst[what]:.1e} of its terms" for what in ordered]
            raise SelfCheckFailed(self.system.mechanism.name, told, REMEDY)

    def _tree_differences(self) -> Iterator[Disagreement]:
        system, oracle = self.system, self.oracle
        q, v, v_dot = (
            np.array([getattr(state, n) for state in self.states]) for n in ("q", "v", "v_dot")
        )
        numbers = TreeNumbers(system, q, system.defaults)
        names = [body.name for body in system.mechanism.bodies]
        for mine, other, what in zip(
            numbers.poses(names), oracle.poses(q), ("axes", "position"), strict=True
        ):
            scale = max(1e-300, np.abs(other).max(initial=0.0))
            errors = np.abs(mine - other).reshape(len(q), len(names), -1).max(axis=(0, 2)) / scale
            yield _worst(errors, [f"{what} of body '{name}'" for name in names])
        expected = oracle.inverse(q, v, v_dot)
        given = numbers.forces(v, v_dot)
        for i, state in enumerate(self.states):
            passive, armature, B = (
                np.array(ca.DM(x)) for x in self._forces(state.q, state.v, INSTANT, system.defaults)
            )
            mine = given[i] + armature.ravel() * v_dot[i] - passive.ravel()
            errors = np.abs(mine - expected.value[i]) / expected.size[i].clip(1e-300)
            yield _worst(errors, [f"force on {name}" for name in oracle.speeds])
            if B.size:
                inputs = oracle.inputs(state.q)
                errors = np.abs(B - inputs.value).max(axis=0)
                errors = errors / inputs.size.max(axis=0).clip(1e-300)
                yield _worst(errors, [f"input {name}" for name in system.forces.input_names])

    def _row_differences(self) -> Iterator[Disagreement]:
        if not self.system.rows:
            return
        names = [row.name for row in self.system.rows]
        for state, other in zip(self.states, self.oracle_rows, strict=True):
            A, b, bias = self._rows_at(state.q, state.v)
            open_by = self._violations(state, A, b)
            known = [names.index(name) for name in other.names]
            labels = [f"row {name}" for name in other.names]
            A_error = np.abs(A[known] - other.A).max(axis=1, initial=0.0)
            yield _worst(A_error / other.A_size.clip(1e-300), labels)
            yield _worst(np.abs(b[known] - other.b) / (1.0 + np.abs(other.b)), labels)
            slack = open_by[known] / AGREEMENT
            errors = np.abs(bias[known] - other.bias) / (other.bias_size + slack).clip(1e-300)
            yield _worst(errors, [f"bias of {label}" for label in labels])

    def _violations(self, state: State, A: Array, b: Array) -> Array:
        """What loops that are not quite closed may add to the biases, row by row."""
        spin = float(np.abs(state.v).max(initial=0.0))
        residual = np.abs(self.system.assembly.residual(state.q, INSTANT)).max(initial=0.0)
        if any(row.kind == "prescribed" for row in self.system.rows):
            residual = 0.0  # at another instant than the sample's; those rows do not depend on it
        return SLACK * (np.abs(A @ state.v - b) * spin + residual * spin**2)

    # when functions are built --------------------------------------------------------------------

    @cached_property
    def _expansions(self) -> list[tuple[Array, Array, Array]]:
        """Per state: v_dot = Theta nu_dot + s from the oracle's rows, and the input map."""
        system = self.system
        independent, size = list(system.independent), system.tree.v.shape[0]
        chosen = np.eye(size)[independent]
        found = []
        kept = {row.name for row in system.kept}
        for state, rows in zip(self.states, self.oracle_rows, strict=True):
            held = [i for i, name in enumerate(rows.names) if name in kept]
            scale = np.abs(rows.A[held]).max(axis=1, initial=1e-300)[:, np.newaxis]
            everything = np.vstack([rows.A[held] / scale, chosen])
            right = np.zeros((len(everything), len(independent) + 1))
            right[len(held) :, :-1] = np.eye(len(independent))
            right[: len(held), -1] = -rows.bias[held] / scale[:, 0]
            solved = np.linalg.lstsq(everything, right, rcond=None)[0]
            found.append((solved[:, :-1], solved[:, -1], self.oracle.inputs(state.q).value))
        return found

    def check_function(self, name: str, function: ca.Function, arguments: Sequence[str]) -> None:
        """Compare one of the functions in `CHECKED`, as it will be compiled.

        Raises:
            SelfCheckFailed: naming the speeds whose equation of motion does not hold.
        """
        for i, state in enumerate(self.states):
            nu_dot = state.v_dot[list(self.system.independent)]
            values: dict[str, Any] = {
                "q": state.q,
                "nu": state.v[list(self.system.independent)],
                "u": state.u,
                "nu_dot": nu_dot,
                "t": INSTANT,
                "p": self.system.defaults,
                "weights": np.ones(self.system.forces.motors),
            }
            result = np.array(ca.DM(function(*[values[a] for a in arguments]))).ravel()
            errors = self.function_errors(i, name, result, nu_dot)
            speeds = [self.system.tree.speed_names[j] for j in self.system.independent]
            self._refuse([_worst(errors, [f"{name}, motion of {speed}" for speed in speeds])])

    def function_errors(self, i: int, name: str, result: Array, nu_dot: Array) -> Array:
        """By how much a function's result at a state misses each equation of motion."""
        state = self.states[i]
        Theta, drift, B = self._expansions[i]
        # dependent rows of Theta are solved for, each entry to the rounding of the largest
        solved = np.abs(Theta).max(axis=1, initial=0.0)
        solved[list(self.system.independent)] = 0.0
        parts = np.abs(Theta.T) + SOLVED * solved
        if name == "mass_matrix":
            M = self.oracle.mass_matrix(state.q)
            size = parts @ np.sqrt(np.diag(M))
            wrong = np.abs(result.reshape(len(nu_dot), -1) - Theta.T @ M @ Theta)
            return np.asarray((wrong / np.outer(size, size).clip(1e-300)).max(axis=1, initial=0.0))
        u = state.u
        if name == "forward_dynamics":
            nu_dot = result
        else:
            u = result
        need = self.oracle.inverse(state.q, state.v, Theta @ nu_dot + drift)
        size = parts @ (need.size + np.abs(B) @ np.abs(u))
        if name == "forward_dynamics":
            # a solver leaves rounding of the largest forces and speeds in the smallest ones
            felt = np.sqrt(np.diag(self.oracle.mass_matrix(state.q)))
            moved = solved * np.abs(nu_dot).max(initial=0.0)
            moved[list(self.system.independent)] = np.abs(nu_dot)
            size = size + SOLVED * (np.abs(Theta.T) @ felt) * (felt @ moved)
        return np.asarray(np.abs(Theta.T @ (need.value - B @ u)) / size.clip(1e-300))


def _worst(errors: Array, names: Sequence[str]) -> Disagreement:
    if not len(errors):
        return Disagreement("", 0.0)
    i = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    return Disagreement(names[i], float(errors[i]))
