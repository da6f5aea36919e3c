r"""Radau's fully implicit method of five stages, order 9, for stiff equations at any tolerance.

Its stages are collocation of order 5, so that stiffness does not spoil its accuracy, which is what
Rosenbrock and diagonally implicit methods suffer from at small tolerances; it is L-stable. The
stages' increments z = T w follow from Newton's method with the exact Jacobian J of the rate at the
start of the step, inputs that depend on the state included:

.. math:: \Bigl(\frac{1}{h}\Lambda - J\Bigr)\,\Delta w = T^{-1} f(x + T w) - \frac{1}{h}\Lambda w

where Lambda has a real number and two complex pairs; it starts from the last step's polynomial.
The error is that of an embedded formula of order 5, damped by J as in E. Hairer and G. Wanner,
*Solving Ordinary Differential Equations II*, section IV.8.

Coefficients of Radau IIA methods: collocation at the nodes of a Radau quadrature.

E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, sections IV.5 and IV.8. The
stages' increments z solve z = h A f(x + z). In the basis of A^{-1}'s eigenvectors, z = T w, the
linear systems of Newton's method decouple into one real system and pairs of complex ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Legendre, Polynomial

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import (
    Evaluate,
    LargestElement,
    MaskedCopy,
    Operation,
    Program,
    Slice,
    WeightedSum,
    While,
    slices,
)
from axode.codegen.tape.tape import Tape
from axode.problems.steps.adaptive import (
    CONTROL,
    ERROR_SHARE,
    Gathering,
    RepeatedStep,
    adaptive_program,
    clip_step,
    control,
    count_steps,
    error_size,
)
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.rosenbrock import StateSystem, state_parts, whole_state
from axode.problems.steps.step_acceptance import RUNNING, STIFF, accept_step

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Radau:
    """The method with a number of stages, an odd one; its order is twice that less one."""

    stages: int

    @cached_property
    def nodes(self) -> Array:
        """Where the stages are, parts of a step; the last one is its end."""
        n = self.stages
        polynomial = Legendre.basis(n) - Legendre.basis(n - 1)
        roots = polynomial.roots().real
        for _ in range(3):  # to the last digit
            roots = roots - polynomial(roots) / polynomial.deriv()(roots)
        nodes = np.sort((roots + 1) / 2)
        nodes[-1] = 1.0
        return np.asarray(nodes, dtype=float)

    @cached_property
    def lagrange(self) -> list[Polynomial]:
        """Polynomials in the part of a step, one at a node and zero at the others and at 0."""
        made = []
        for i, node in enumerate(self.nodes):
            others = [0.0, *np.delete(self.nodes, i)]
            whole = Polynomial.fromroots(others)
            made.append(whole / whole(node))
        return made

    @cached_property
    def A(self) -> Array:
        """Weights of the rates in the stages."""
        powers = np.arange(self.stages)
        values = self.nodes[:, np.newaxis] ** powers
        integrals = self.nodes[:, np.newaxis] ** (powers + 1) / (powers + 1)
        return np.asarray(np.linalg.solve(values.T, integrals.T).T)

    @cached_property
    def _basis(self) -> tuple[Array, Array]:
        """T and the blocks of T^-1 A^-1 T: a number, then pairs [[a, -b], [b, a]]."""
        inverse = np.linalg.inv(self.A)
        values, vectors = np.linalg.eig(inverse)
        real = int(np.argmin(np.abs(values.imag)))
        columns = [vectors[:, real].real]
        for k in np.argsort(values.imag):
            if values[k].imag < -1e-9:  # a - i b: of v = r + i s, A^-1 r = a r + b s
                columns += [vectors[:, k].real, vectors[:, k].imag]
        T = np.stack(columns, axis=1)
        T = T / np.abs(T).max(axis=0)[[0, *np.repeat(np.arange(1, self.stages, 2), 2)]]
        return T, np.linalg.solve(T, inverse @ T)

    @property
    def T(self) -> Array:
        """Stages from transformed ones."""
        return self._basis[0]

    @property
    def blocks(self) -> Array:
        """T^-1 A^-1 T, zero outside of its blocks."""
        mask = np.zeros((self.stages, self.stages))
        mask[0, 0] = 1.0
        for k in range(1, self.stages, 2):
            mask[k : k + 2, k : k + 2] = 1.0
        return np.asarray(mask * self._basis[1])

    @cached_property
    def error(self) -> Array:
        """Weights of the stages' increments in the error of a step.

        A quadrature of the same nodes and of the start, weighted by the real number's reciprocal,
        less the method itself.
        """
        n, first = self.stages, 1 / self.blocks[0, 0]
        powers = self.nodes ** np.arange(n)[:, np.newaxis]
        wanted = 1 / np.arange(1, n + 1)
        wanted[0] -= first
        embedded = np.linalg.solve(powers, wanted)
        return np.asarray((embedded - self.A[-1]) @ np.linalg.inv(self.A))

    def extrapolation(self) -> list[list[Polynomial]]:
        """Transformed stages of the next step from the increments of the last one.

        Entry (k, j) is a polynomial in the ratio of the lengths of the two steps.
        """
        inverse = np.linalg.inv(self.T)
        ahead = [
            [
                p(Polynomial([1.0, node])) - float(j == self.stages - 1)
                for j, p in enumerate(self.lagrange)
            ]
            for node in self.nodes
        ]
        return [
            [
                sum((inverse[k, i] * ahead[i][j] for i in range(self.stages)), Polynomial([0.0]))
                for j in range(self.stages)
            ]
            for k in range(self.stages)
        ]


METHOD = Radau(5)
STAGES = METHOD.stages
MAX_ITERATIONS = 10  # of Newton's method
SOLVED = 0.03  # of the tolerance: what its last correction may leave
STALLED = 0.3  # of the tolerance: corrections below it that no longer shrink are rounding errors
SHRINKING = 0.3  # ratio of two corrections below which they shrink
DIVERGING = 2.0  # ratio of two corrections above which a shorter step is tried
NOT_SOLVED = (
    34.0  # error that counts for a step that Newton's method did not solve: half of it next
)
MAX_EXTRAPOLATION = 2.0  # times the last step: how far its polynomial is used
READ_ONLY = ("solve_rtol", "solve_atol", "review")  # beside what all methods read
ZS = tuple(f"z{i + 1}" for i in range(STAGES))
LAST = tuple(f"last{i + 1}" for i in range(STAGES))  # increments of the step before
# Transformed stages and their right sides: a vector, then pairs of them in one buffer each.
PARTS = ("a", "b", "b", "c", "c")


def radau9_program(d: Dynamics, gathering: Gathering | None = None) -> Program:
    """Implicit steps as long as rtol and atol allow; see `adaptive_program`."""
    rate = d.rate_at("q", "nu", "t", "k1")
    n, system = d.n_k, StateSystem(d)
    systems = [system.factor(f"_{p}", pair=p != "a") for p in "abc"]
    body: list[Operation] = [*clip_step(d), whole_state(d), *rate, *system.jacobian()]
    body += [
        Evaluate(
            _coefficients(), ("t", "h_s", "stage_times", "stages", "sides", "errors", *_scales())
        ),
        *systems,
        Evaluate(_weights(d), ("x", "solve_rtol", "solve_atol", "weight")),
        Evaluate(_predictor(), ("h_s", "h_last", "ahead")),
        *(
            WeightedSum(("ahead", STAGES * k), slices(*LAST), _part("w", k, n), n)
            for k in range(STAGES)
        ),
        Evaluate(_begin(), ("status", "iterate", "solved", "round", "change")),
        While("iterate", tuple(_newton(system))),
        *_increments(n),
    ]
    body += _end(system)

    def inside(part: str, made: str) -> list[Operation]:
        weights = Evaluate(_inside(), (part, "inside"))
        return [weights, WeightedSum(("inside", 0), slices("x", *ZS), (made, 0), n)]

    body += [*d.closed(), *accept_step(d, inside=inside), count_steps()]

    after: list[Operation] = [
        *(MaskedCopy("commit", z, last) for z, last in zip(ZS, LAST, strict=True)),
        MaskedCopy("commit", "h_s", "h_last"),
        _review(),
    ]
    state = dict.fromkeys(LAST, n) | {"h_last": 1}
    step = RepeatedStep(body, inside, after, state=state, given=READ_ONLY)
    return adaptive_program("radau9", d, step, gathering)


def _review() -> Evaluate:
    """Stop after a number of steps, to check whether the method pays off."""

    def review(status: Vector, commit: Vector, steps: Vector, at: Vector) -> dict[str, Vector]:
        asks = commit[0] & status[0].equals(float(RUNNING)) & steps[0].equals(at[0])
        return {"status": [asks.then(float(STIFF), status[0])]}

    tape = formula_tape("review", dict.fromkeys(("status", "commit", "steps", "at"), 1), review)
    return Evaluate(tape, ("status", "commit", "steps", "review", "status"))


def _part(name: str, stage: int, size: int) -> Slice:
    """Buffer and offset of a transformed stage."""
    return f"{name}_{PARTS[stage]}", size if stage in (2, 4) else 0


def _parts(name: str, size: int) -> tuple[Slice, ...]:
    return tuple(_part(name, k, size) for k in range(STAGES))


def _scales() -> tuple[str, ...]:
    return ("scale_a", "scale_b", "scale_c")


def _coefficients() -> Tape:
    """Compute what depends on the step size: times, weights of sums, scales."""
    T, blocks, inverse = METHOD.T, METHOD.blocks, np.linalg.inv(METHOD.T)

    def made(t: Vector, h: Vector) -> dict[str, Vector]:
        one, zero = 1.0 + 0.0 * h[0], 0.0 * h[0]
        sides = [
            [*(zero + a for a in inverse[k].tolist()), *(-a / h[0] for a in blocks[k].tolist())]
            for k in range(STAGES)
        ]
        real, pull = float(blocks[0, 0]), METHOD.error @ T
        return {
            "times": [t[0] + c * h[0] for c in METHOD.nodes.tolist()],
            "stages": [v for row in T.tolist() for v in (one, *(zero + a for a in row))],
            "sides": [v for row in sides for v in row],
            "errors": [one, *(real * e / h[0] for e in pull.tolist())],
            "scale_a": [real / h[0]],
            **{
                f"scale_{p}": [float(blocks[k, k]) / h[0], float(blocks[k + 1, k]) / h[0]]
                for p, k in (("b", 1), ("c", 3))
            },
        }

    return formula_tape("coefficients", {"t": 1, "h": 1}, made)


def _weights(d: Dynamics) -> Tape:
    """Reciprocals of the tolerances of the states; the works have none of their own."""

    def weights(x: Vector, rtol: Vector, atol: Vector) -> dict[str, Vector]:
        n = d.n_q + d.n_nu
        made = [1.0 / (ERROR_SHARE * (atol[0] + rtol[0] * abs(a))) for a in x[:n]]
        return {"weight": [*made, *[0.0 * rtol[0]] * 2]}

    return formula_tape("weights", {"x": d.n_k, "rtol": 1, "atol": 1}, weights)


def _value(polynomial: Polynomial, x: Formula) -> Formula:
    coefficients = polynomial.coef.tolist()
    value = 0.0 * x + coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _predictor() -> Tape:
    """Weights of the last step's increments in the first guess; zero where it is no good guess."""

    def weights(h: Vector, h_last: Vector) -> dict[str, Vector]:
        known = ~h_last[0].equals(0.0)
        ratio = known.then(h[0] / known.then(h_last[0], 1.0), 0.0)
        near = known & (ratio > 0.0) & (ratio <= MAX_EXTRAPOLATION)
        return {
            "ahead": [
                near.then(_value(p, ratio), 0.0) for row in METHOD.extrapolation() for p in row
            ]
        }

    return formula_tape("predictor", {"h": 1, "h_last": 1}, weights)


def _begin() -> Tape:
    def begin(status: Vector) -> dict[str, Vector]:
        zero = 0.0 * status[0]
        return {
            "iterate": [status[0].equals(float(RUNNING))],
            "solved": [zero],
            "round": [zero],
            "change": [zero],
        }

    return formula_tape("begin", {"status": 1}, begin)


def _newton(system: StateSystem) -> list[Operation]:
    """Make one iteration: rates of all stages, corrections, and whether they are small enough."""
    d = system.d
    n, rates = d.n_k, tuple(f"k_{i + 1}" for i in range(STAGES))
    operations: list[Operation] = []
    for i in range(STAGES):
        time = formula_tape(f"time{i + 1}", {"times": STAGES}, lambda times, i=i: {"t": [times[i]]})
        operations += [
            WeightedSum(("stages", i * (STAGES + 1)), (("x", 0), *_parts("w", n)), ("x_s", 0), n),
            state_parts(d),
            Evaluate(time, ("stage_times", "t_s")),
            *d.rate_at("q_s", "nu_s", "t_s", rates[i]),
        ]
    operations += [
        WeightedSum(
            ("sides", 2 * STAGES * k), (*slices(*rates), *_parts("w", n)), _part("r", k, n), n
        )
        for k in range(STAGES)
    ]
    for p in "abc":
        operations += system.solve(system.factor(f"_{p}", pair=p != "a"), f"r_{p}")
    steps = formula_tape(
        "steps", {"flag": 1}, lambda flag: {"weights": [1.0 + 0.0 * flag[0], flag[0]]}
    )
    operations += [
        LargestElement(_parts("r", n), "weight", "size", n),
        Evaluate(steps, ("iterate", "correction")),
        *(
            WeightedSum(
                ("correction", 0), (_part("w", k, n), _part("r", k, n)), _part("w", k, n), n
            )
            for k in range(STAGES)
        ),
        Evaluate(
            _check_convergence(),
            (
                "iterate",
                "solved",
                "round",
                "change",
                "size",
                "iterate",
                "solved",
                "round",
                "change",
            ),
        ),
    ]
    return operations


def _check_convergence() -> Tape:
    """Decide whether Newton's method continues: until corrections are small or no longer shrink."""

    def judge(**v: Vector) -> dict[str, Vector]:
        iterate, solved, count, before, size = (
            v[name][0] for name in ("iterate", "solved", "round", "change", "size")
        )
        first = count.equals(0.0)
        ratio = size / before
        left = (size * ratio / (1.0 - ratio)).most(0.0)
        small = first.then(
            size <= 1e-3 * SOLVED,
            ((ratio < 1.0) & (left <= SOLVED)) | ((size <= STALLED) & (ratio > SHRINKING)),
        )
        wrong = (
            ~(size < 1e300)
            | (~first & (ratio > DIVERGING))
            | (count + 1.0 >= float(MAX_ITERATIONS))
        )
        return {
            "iterate": [iterate & ~small & ~wrong],
            "solved": [iterate.then(small, solved)],
            "round": [count + iterate],
            "change": [iterate.then(size, before)],
        }

    names = ("iterate", "solved", "round", "change", "size")
    return formula_tape("judge_round", dict.fromkeys(names, 1), judge)


def _increments(n: int) -> list[Operation]:
    """The stages' increments from the transformed ones."""
    return [
        WeightedSum(("stages", i * (STAGES + 1) + 1), _parts("w", n), (z, 0), n)
        for i, z in enumerate(ZS)
    ]


def _end(system: StateSystem) -> list[Operation]:
    """Find the new state and its error, and whether the step is accepted."""
    d = system.d
    n, x = d.n_k, d.n_q + d.n_nu

    def finish(
        x_o: Vector, z: Vector, error: Vector, solved: Vector, change: Vector, **v: Vector
    ) -> dict[str, Vector]:
        x_n = [a + b for a, b in zip(x_o, z, strict=True)]
        size = error_size(x_o[:x], x_n[:x], error[:x], v["rtol"][0], v["atol"][0])
        unsolved = (change[0] < 1e300).then(NOT_SOLVED, change[0])
        size = solved[0].then(size, unsolved)
        return {**control(size, v, 1 / (STAGES + 1)), **d.split(x_n)}

    sizes = dict.fromkeys(("x_o", "z", "error"), n) | {"solved": 1, "change": 1}
    tape = formula_tape("finish", sizes | dict.fromkeys(CONTROL, 1), finish)
    made = ("t_n", "h_n", "accepted", "status", "q_n", "nu_n", "w_n")
    return [
        WeightedSum(("errors", 0), (("k1", 0), *_parts("w", n)), ("error", 0), n),
        *system.solve(system.factor("_a"), "error"),
        Evaluate(tape, ("x", ZS[-1], "error", "solved", "change", *CONTROL, *made)),
    ]


def _inside() -> Tape:
    """Weights of the start and of the increments at a part of the step."""
    return formula_tape(
        "inside",
        {"part": 1},
        lambda part: {
            "weights": [1.0 + 0.0 * part[0], *(_value(p, part[0]) for p in METHOD.lagrange)]
        },
    )
