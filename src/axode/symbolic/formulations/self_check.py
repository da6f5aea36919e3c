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
from axode.numerics.rank import least_norm, least_squares
from axode.numerics.tolerances import MATRIX_ROUNDING, NEGLIGIBLE, ONE_ROUNDING
from axode.oracle.body_laws import ConstraintRows, Oracle
from axode.oracle.numbers import cross, matvec
from axode.symbolic.algebra.spatial import ROOT, ROUNDING, SX
from axode.symbolic.constraints.system import System
from axode.symbolic.tree.rows import column_of, matrix_of


@dataclass(frozen=True)
class LinkNumbers:
    """Numbers of one link at some configurations, these along the first axis."""

    parent: int
    speeds: range
    turns: tuple[Array, ...]
    spins: int  # how many of the turns the recursions use
    p: Array
    S_w: Array
    S_v: Array
    mass: Array
    moment: Array
    tensor: Array

    def rotation(self, *, still: bool) -> Array:
        """Link's components to the parent's, with or without the spin of a balanced wheel."""
        R = np.eye(3)
        for turn in self.turns[: self.spins] if still else self.turns:
            R = R @ turn
        return R


class TreeNumbers:
    """A whole tree at some configurations.

    The recursions are the same code for every mechanism; frames, transforms and inertias are not.
    """

    def __init__(self, system: System, q: Array, p: Array) -> None:
        tree = system.tree
        expressions: list[SX] = [tree.gravity]
        for link, own in zip(tree.links, system.regrouped, strict=True):
            expressions += [turn.matrix for turn in link.rotation.turns]
            expressions += [link.p, link.S_w, link.S_v, own.mass, own.moment, own.tensor]
        for pose in tree.body_pose.values():
            expressions += [pose.R, pose.p]
        function = ca.Function(
            "links", [tree.q, tree.t, tree.parameters], [ca.densify(ca.veccat(*expressions))]
        )
        columns = [np.array(function(x, 0.0, p)).ravel() for x in q]
        self._numbers, self._next = np.array(columns), 0
        self.size = tree.v.shape[0]
        self.gravity = self._take(3, 1)[..., 0]
        self.links = []
        for link, still in zip(tree.links, system.still_tree.links, strict=True):
            turns = tuple(self._take(3, 3) for _ in link.rotation.turns)
            k = len(link.speeds)
            self.links.append(
                LinkNumbers(
                    link.parent,
                    link.speeds,
                    turns,
                    len(still.rotation.turns),
                    self._take(3, 1)[..., 0],
                    self._take(3, k),
                    self._take(3, k),
                    self._take(1, 1)[..., 0],
                    self._take(3, 1)[..., 0],
                    self._take(3, 3),
                )
            )
        self.bodies = {
            body: (tree.body_link[body], self._take(3, 3), self._take(3, 1)[..., 0])
            for body in tree.body_pose
        }

    def _take(self, rows: int, columns: int) -> Array:
        """The next matrix, which CasADi lists column by column."""
        end = self._next + rows * columns
        block = self._numbers[:, self._next : end].reshape(-1, columns, rows)
        self._next = end
        return np.swapaxes(block, -1, -2)

    def poses(self, names: list[str]) -> tuple[Array, Array]:
        """Axes and origins of bodies: configurations x bodies x 3 x 3, ... x 3."""
        placed: list[tuple[Array, Array]] = []
        for link in self.links:
            R, p = placed[link.parent] if link.parent != ROOT else (np.eye(3), np.zeros(3))
            placed.append((R @ link.rotation(still=False), matvec(R, link.p) + p))
        axes, origins = [], []
        for name in names:
            number, R_body, p_body = self.bodies[name]
            R, p = placed[number] if number != ROOT else (np.eye(3), np.zeros(3))
            axes.append(R @ R_body)
            origins.append(matvec(R, p_body) + p)
        return np.stack(axes, axis=1), np.stack(origins, axis=1)

    def forces(self, v: Array, v_dot: Array) -> Array:
        """Joint forces that a motion needs, by Newton and Euler in the link frames."""
        zero = np.zeros((len(v), 3))
        w, w_dot, a, f, n = ([zero] * len(self.links) for _ in range(5))
        R = [link.rotation(still=True) for link in self.links]
        for i, link in enumerate(self.links):
            k, into = link.parent, np.swapaxes(R[i], -1, -2)
            own, own_dot = (x[:, link.speeds.start : link.speeds.stop] for x in (v, v_dot))
            w_p, w_dot_p, a_p = (zero, zero, -self.gravity) if k == ROOT else (w[k], w_dot[k], a[k])
            w_rel, u_rel, w_in = matvec(link.S_w, own), matvec(link.S_v, own), matvec(into, w_p)
            w[i] = w_in + w_rel
            w_dot[i] = matvec(into, w_dot_p) + cross(w_in, w_rel) + matvec(link.S_w, own_dot)
            lever = cross(w_dot_p, link.p) + cross(w_p, cross(w_p, link.p))
            a[i] = matvec(into, a_p + lever) + cross(2 * w_in + w_rel, u_rel)
            a[i] = a[i] + matvec(link.S_v, own_dot)
            h, tensor = link.moment, link.tensor
            f[i] = link.mass * a[i] + cross(w_dot[i], h) + cross(w[i], cross(w[i], h))
            n[i] = matvec(tensor, w_dot[i]) + cross(w[i], matvec(tensor, w[i])) + cross(h, a[i])
        total = np.zeros((len(v), self.size))
        for i in reversed(range(len(self.links))):
            link, k = self.links[i], self.links[i].parent
            out = matvec(np.swapaxes(link.S_w, -1, -2), n[i])
            out = out + matvec(np.swapaxes(link.S_v, -1, -2), f[i])
            total[:, link.speeds.start : link.speeds.stop] = out
            if k != ROOT:
                f_out = matvec(R[i], f[i])
                f[k] = f[k] + f_out
                n[k] = n[k] + matvec(R[i], n[i]) + cross(link.p, f_out)
        return total


Array = npt.NDArray[Any]
AGREEMENT = NEGLIGIBLE  # of the terms of each sum; rounding leaves 1e-15 to 1e-12
SLACK = 10.0  # on what open loops and rows that are only nearly dependent add to a bias
# The best of solvers leaves 1e-13 of the largest forces in every equation, small ones included:
# so much of them counts that AGREEMENT allows this.
SOLVED = MATRIX_ROUNDING / AGREEMENT
EXPLAINED = 1e3 * ONE_ROUNDING  # of the condition of the equations explains as much
INSTANT = 0.37  # [s]: any instant but the special one at zero
STATES = 2
CHECKED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "state_rate")
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
class CheckedState:
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
        # prescribed rows are those of another instant than the samples', and do not depend on q
        residuals = [r.residual for r in rows if r.residual is not None and r.kind != "prescribed"]
        self._residual = ca.Function(
            "residual", [tree.q, tree.parameters], [ca.densify(column_of(residuals))]
        )
        self.states = self._choose_states()

    @property
    def _pace(self) -> Array:
        """Speeds that a mechanism may have, one or, along lines in a small one, its length."""
        units = self.system.report.units
        return np.ones(self.system.tree.v.shape[0]) if units is None else units.speeds

    def _choose_states(self) -> list[CheckedState]:
        system, generator = self.system, np.random.default_rng(0)
        units, pace = system.report.units, self._pace
        chosen = [system.samples[0], system.samples[-1]][:STATES]
        states = []
        for q in chosen:
            v, v_dot = pace * generator.normal(size=(2, system.tree.v.shape[0]))
            u = generator.normal(size=len(system.forces.input_names))
            if system.kept:
                A, b, _ = self._rows_at(q, v)
                kept = list(system.report.kept)
                scale = np.ones(len(kept)) if units is None else units.of_rows(kept).rows
                measured = scale[:, np.newaxis] * A[kept] * pace
                for _ in range(2):  # the second time for what cancels where ratios are small
                    wrong = scale * (A[kept] @ v - b[kept])
                    v = v - pace * least_norm(measured, wrong)
            states.append(CheckedState(q, v, v_dot, u))
        return states

    def _rows_at(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        A, b, bias = self._rows(q, v, INSTANT, self.system.defaults)
        return np.array(ca.DM(A)), np.array(ca.DM(b)).ravel(), np.array(ca.DM(bias)).ravel()

    @cached_property
    def oracle_rows(self) -> list[ConstraintRows]:
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

    def _refuse(self, found: Sequence[Disagreement], remedy: str = REMEDY) -> None:
        worst: dict[str, float] = {}
        for item in found:
            if not item.error <= AGREEMENT:  # which is also how NaN comes here
                error = np.inf if np.isnan(item.error) else item.error
                worst[item.what] = max(error, worst.get(item.what, 0.0))
        if worst:
            ordered = sorted(worst, key=lambda what: -worst[what])
            texts = [f"{what}: off by {worst[what]:.1e} of its terms" for what in ordered]
            raise SelfCheckFailed(self.system.mechanism.name, texts, remedy)

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
            rounding = np.finfo(float).eps * expected.size[i].max(initial=0.0)
            off = (np.abs(mine - expected.value[i]) - rounding).clip(0.0)
            errors = off / expected.size[i].clip(1e-300)
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
            known = [names.index(name) for name in other.names]
            labels = [f"row {name}" for name in other.names]
            A_error = np.abs(A[known] - other.A).max(axis=1, initial=0.0)
            off = SLACK * self._gap(state) + ROUNDING * self.system.report.extent
            A_size = other.A_size + off / AGREEMENT  # of terms that are all zero, too
            yield _worst(A_error / A_size.clip(1e-300), labels)
            yield _worst(np.abs(b[known] - other.b) / (1.0 + np.abs(other.b)), labels)
            spin = float(np.abs(state.v).max(initial=0.0))
            slack = SLACK * (self._slip(state) * spin + self._gap(state) * spin * spin)
            size = other.bias_size + slack / AGREEMENT
            errors = np.abs(bias[known] - other.bias) / size.clip(1e-300)
            yield _worst(errors, [f"bias of {label}" for label in labels])

    def allowed(self, state: CheckedState) -> float:
        """How far functions may be off: rows hold of closed loops, and these may be rounded.

        Rows of which little is their own leave as many digits fewer, as `derive` has warned.
        """
        report = self.system.report
        open_by = self._gap(state) / report.extent + self._slip(state)
        weakest = min((part for _, part in report.weak), default=1.0)
        return AGREEMENT + SLACK * (open_by + ROUNDING / weakest)

    def _slip(self, state: CheckedState) -> float:
        """How far speeds are from what all rows ask for [m/s or rad/s]: by rounding at least."""
        A, b, _ = self._rows_at(state.q, state.v)
        rounding = ROUNDING * float((np.abs(A) @ np.abs(state.v)).max(initial=0.0))
        return max(rounding, float(np.abs(A @ state.v - b).max(initial=0.0)))

    def _gap(self, state: CheckedState) -> float:
        """How far loops are from closed [m or rad]: by rounding, or by their tolerance."""
        return float(np.abs(self._residual(state.q, self.system.defaults).full()).max(initial=0.0))

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
            A = rows.A[held] * self._pace
            scale = np.abs(A).max(axis=1, initial=1e-300)[:, np.newaxis]
            everything = np.vstack([A / scale, chosen * self._pace])
            right = np.zeros((len(everything), len(independent) + 1))
            right[len(held) :, :-1] = np.eye(len(independent))
            right[: len(held), -1] = -rows.bias[held] / scale[:, 0]
            solved = self._pace[:, np.newaxis] * least_squares(everything, right)
            solved[independent] = right[len(held) :]  # what rounding leaves there is no motion
            found.append((solved[:, :-1], solved[:, -1], self.oracle.inputs(state.q).value))
        return found

    def check_function(self, name: str, function: ca.Function, arguments: Sequence[str]) -> None:
        """Compare a function, as it will be compiled, if it is one of `CHECKED`.

        Raises:
            SelfCheckFailed: naming the speeds whose equation of motion does not hold.
        """
        for i, state in enumerate(self.states if name in CHECKED else ()):
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
            kind = name
            if name == "state_rate":  # q_dot, nu_dot, powers
                kind, rates = "forward_dynamics", len(state.q)
                self._refuse([self._rate_difference(state, result[:rates])])
                result = result[rates : rates + len(nu_dot)]
            errors = self.function_errors(i, kind, result, nu_dot)
            speeds = [self.system.tree.speed_names[j] for j in self.system.independent]
            found = _worst(errors, [f"{name}, motion of {speed}" for speed in speeds])
            if not found.error <= self.allowed(state):
                self._refuse([found], self._function_remedy(state, found.error))

    def _rate_difference(self, state: CheckedState, q_dot: Array) -> Disagreement:
        other = self.oracle.rates(state.q, state.v)
        errors = np.abs(q_dot - other) / max(1e-300, np.abs(state.v).max(initial=0.0))
        return _worst(errors, [f"rate of {name}" for name in self.oracle.coordinates])

    def _function_remedy(self, state: CheckedState, error: float) -> str:
        condition = self.condition(state)
        if not error <= EXPLAINED * condition:
            return REMEDY
        return (
            f"The equations have condition {condition:.0e}: masses, moments or constraints of very "
            "different size, more than double precision can solve for. Enlarge the smallest masses "
            "and moments, remove angles and lengths that are only rounding, try another "
            "formulation, or take the digits there are with derive(self_check=False)."
        )

    def condition(self, state: CheckedState) -> float:
        """Condition number of the tree's inertia, or of the system of all bodies if worse."""
        kept = {row.name for row in self.system.kept}
        solution = self.oracle.solve(state.q, state.v, state.u, INSTANT, kept)
        joints = slice(0, self.oracle.joint_speeds)
        inertia = self.oracle.mass_matrix(state.q)[joints, joints]
        return max(float(np.linalg.cond(inertia)) if inertia.size else 1.0, solution.condition)

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
            size = parts @ np.sqrt(np.abs(np.diag(M)))  # a file may give a negative one
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
            felt = np.sqrt(np.abs(np.diag(self.oracle.mass_matrix(state.q))))
            moved = solved * np.abs(nu_dot).max(initial=0.0)
            moved[list(self.system.independent)] = np.abs(nu_dot)
            size = size + SOLVED * (np.abs(Theta.T) @ felt) * (felt @ moved)
        return np.asarray(np.abs(Theta.T @ (need.value - B @ u)) / size.clip(1e-300))


def _worst(errors: Array, names: Sequence[str]) -> Disagreement:
    if not len(errors):
        return Disagreement("", 0.0)
    i = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    return Disagreement(names[i], float(errors[i]))
