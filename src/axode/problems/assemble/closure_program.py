r"""Newton's method of `axode.numerics.newton` as compiled code, for very many runs.

One program closes all runs of a batch, each with its own damping, on the CPU or on a GPU: the same
steps, :math:`\Delta x = -C \tilde J^T (\tilde J \tilde J^T + \mu \sigma 1)^{-1} R^{-1} r`, and the
same ends as `find_roots` with `quick_step`, on the CPU to the bit. Coordinates that stay are left
out of the equations when the program is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.operations import Kind
from axode.codegen.tape.program import Evaluate, Operation, Program, While
from axode.codegen.tape.tape import Tape
from axode.numerics.newton import MAX_DAMPING, MAX_NEWTON_STEP, MAX_STEPS, MIN_DAMPING
from axode.numerics.tolerances import (
    CLOSED,
    LEAST_DAMPING,
    NEGLIGIBLE,
    ONE_ROUNDING,
    PART_OF_TOLERANCE,
)

Array = npt.NDArray[np.float64]
NOT_FINITE = 1e300  # error of residuals that are not finite


@dataclass(frozen=True)
class ClosureTapes:
    """What must vanish, as tapes, and the units that it is measured in.

    Attributes:
        residual, jacobian: Rows of loops and contacts, and their derivatives by q.
        measures, measures_jacobian: All measures, and their derivatives by q and nu.
            Tapes are None where nothing is wanted of them.
        wanted: Numbers of the measures that have values to meet.
        quaternions: Places of the four parts of each.
        rows: One unit of each row: those of the residual, of wanted measures, of quaternions.
        columns: One unit of each coordinate.
        coupled: Rows of couplings.
        speeds: Number of independent speeds.
        parameters: Number of free parameters.
    """

    residual: Tape | None
    jacobian: Tape | None
    measures: Tape | None
    measures_jacobian: Tape | None
    wanted: tuple[int, ...]
    quaternions: tuple[tuple[int, ...], ...]
    rows: tuple[float, ...]
    columns: tuple[float, ...]
    coupled: tuple[int, ...]
    speeds: int
    parameters: int

    @property
    def sizes(self) -> dict[str, int]:
        """Buffers that every evaluation reads."""
        sizes = {"q": len(self.columns), "t": 1, "p": self.parameters, "wanted": len(self.wanted)}
        return {name: size for name, size in sizes.items() if size}

    def rows_at(self, q: Vector, **given: Vector) -> Vector:
        """Everything that must vanish, in the rows' units."""
        return [
            r * (1 / unit) for r, unit in zip(self.residual_at(q, **given), self.rows, strict=True)
        ]

    def residual_at(self, q: Vector, **given: Vector) -> Vector:
        """Everything that must vanish."""
        assert self.residual is not None
        made = call_tape(self.residual, {"q": q, **given})
        if self.measures is not None:
            measures = call_tape(self.measures, {"q": q, "nu": self._rest(q), **given})
            made += [measures[k] - w for k, w in zip(self.wanted, given["wanted"], strict=True)]
        return made + [total([q[k] * q[k] for k in four]) - 1.0 for four in self.quaternions]

    def derivatives_at(
        self, rows: Sequence[int], free: Sequence[int], q: Vector, **given: Vector
    ) -> list[Vector]:
        """Derivatives of some rows by some coordinates, in the units of both."""
        table, units = self.jacobian_at(q, **given), (self.rows, self.columns)
        return [[table[i][j] * (units[1][j] / units[0][i]) for j in free] for i in rows]

    def jacobian_at(self, q: Vector, **given: Vector) -> list[Vector]:
        """Derivatives of everything by all coordinates."""
        assert self.jacobian is not None
        n, found = len(self.columns), call_tape(self.jacobian, {"q": q, **given})
        table = [found[k : k + n] for k in range(0, len(found), n)]
        if self.measures_jacobian is not None:
            found = call_tape(self.measures_jacobian, {"q": q, "nu": self._rest(q), **given})
            table += [found[k * (n + self.speeds) :][:n] for k in self.wanted]
        zero = 0.0 * q[0]
        for four in self.quaternions:
            table.append([2.0 * q[k] if k in four else zero for k in range(n)])
        return table

    def normalized(self, q: Vector, free: Sequence[int]) -> Vector:
        """Coordinates with unit quaternions, of those that are free."""
        q = list(q)
        for four in self.quaternions:
            if set(four) <= set(free):
                shorter = 1.0 / total([q[k] * q[k] for k in four]).sqrt().most(1e-300)
                for k in four:
                    q[k] = q[k] * shorter
        return q

    def _rest(self, q: Vector) -> Vector:
        return [0.0 * q[0]] * self.speeds


def closure_program(
    tapes: ClosureTapes, fixed: Sequence[bool], rows: Sequence[bool], *, follow: bool
) -> Program:
    """Make the program that closes configurations, each near its guess.

    The buffer `q` holds guesses before and the best configurations after. `error` is what is left
    of the rows that were solved, `rest` of the others, both of the rows' units; `moved` is the
    longest way of a coordinate from its guess, of its unit.

    Args:
        tapes: What must vanish.
        fixed: Coordinates that keep their values.
        rows: Rows to solve.
        follow: Whether coupled coordinates first move to the values that their couplings give.
    """
    free = [j for j, held in enumerate(fixed) if not held]
    solved = [i for i, chosen in enumerate(rows) if chosen]
    sizes, n, m = tapes.sizes, len(tapes.columns), len(solved)
    state = {"q": n, "error": 1, "rest": 1, "moved": 1}
    given = {name: size for name, size in sizes.items() if name != "q"}

    def begin(q: Vector, **v: Vector) -> dict[str, Vector]:
        if follow and tapes.coupled:
            q = _followed(tapes, free, q, v)
        q = tapes.normalized(q, free)
        every, zero = tapes.rows_at(q, **v), 0.0 * q[0]
        r = [every[i] for i in solved]
        error = _size(r, [tapes.rows[i] for i in solved], zero)
        damping, count = [zero], [zero]
        return {
            "q": q,
            "begun": q,
            "r": r,
            "error": [error],
            "damping": damping,
            "count": count,
            "active": [_goes_on(error, zero, zero)],
        }

    def newton(q: Vector, r: Vector, error: Vector, **v: Vector) -> dict[str, Vector]:
        given = {name: v[name] for name in sizes if name != "q"}
        return _step(tapes, solved, free, (q, r, error[0], v["damping"][0], v["count"][0]), given)

    def end(q: Vector, begun: Vector, **v: Vector) -> dict[str, Vector]:
        every, zero = tapes.rows_at(q, **v), 0.0 * q[0]
        others = [abs(every[i]) for i in range(len(every)) if i not in solved]
        ways = [abs(q[j] - begun[j]) / tapes.columns[j] for j in range(n)]
        return {"rest": [largest(others, zero)], "moved": [largest(ways, zero)]}

    loop = {"r": m, "error": 1, "damping": 1, "count": 1}
    made = ("q", *loop, "active")
    newton_loop: list[Operation] = []
    if solved:  # else all rows follow from others, or there are none
        step = formula_tape("close_step", sizes | loop, newton)
        newton_loop.append(While("active", (Evaluate(step, (*sizes, *loop, *made)),)))
    operations: list[Operation] = [
        Evaluate(
            formula_tape("close_begin", sizes, begin), (*sizes, "q", "begun", *loop, "active")
        ),
        *newton_loop,
        Evaluate(
            formula_tape("close_end", sizes | {"begun": n}, end), (*sizes, "begun", "rest", "moved")
        ),
    ]
    return Program("closure", state, given, {}, tuple(operations), in_order=True)


def evaluation_program(tapes: ClosureTapes, *, slopes: bool) -> Program:
    """Make the program that evaluates everything that must vanish, or its derivatives.

    They have the same bits as in the steps of `closure_program`.
    """
    sizes = tapes.sizes
    size = len(tapes.rows) * (len(tapes.columns) if slopes else 1)

    def evaluated(q: Vector, **v: Vector) -> dict[str, Vector]:
        if slopes:
            return {"value": [x for row in tapes.jacobian_at(q, **v) for x in row]}
        return {"value": tapes.residual_at(q, **v)}

    tape = formula_tape("close_slopes" if slopes else "close_rows", sizes, evaluated)
    operation = Evaluate(tape, (*sizes, "value"))
    return Program(tape.name, {"value": size}, sizes, {}, (operation,), in_order=True)


def _step(
    tapes: ClosureTapes,
    solved: Sequence[int],
    free: Sequence[int],
    at: tuple[Vector, Vector, Formula, Formula, Formula],
    given: Mapping[str, Vector],
) -> dict[str, Vector]:
    """Make one damped step of least norm, and keep it where it reduces the residual."""
    q, r, error, damping, count = at
    zero = 0.0 * q[0]
    J = tapes.derivatives_at(solved, free, q, **given)
    y = least_norm_step(J, r, damping)
    length = largest([abs(a) for a in y], zero)
    undamped = damping.equals(0.0)
    is_last = undamped & (length < NEGLIGIBLE)
    shorter = MAX_NEWTON_STEP / length.most(MAX_NEWTON_STEP)
    trial = list(q)
    for j, a in zip(free, y, strict=True):
        trial[j] = q[j] - (tapes.columns[j] * shorter) * a
    trial = tapes.normalized(trial, free)
    every = tapes.rows_at(trial, **given)
    there = [every[i] for i in solved]
    # a lane whose run has ended keeps its values while the others continue
    active = _goes_on(error, damping, count)
    helps = active & (total([a * a for a in there]) < total([a * a for a in r]))
    better = _size(there, [tapes.rows[i] for i in solved], zero)
    more = (10.0 * damping).most(MIN_DAMPING)
    less = (damping > MIN_DAMPING).then(damping / 10.0, 0.0)
    after = is_last.then(2 * MAX_DAMPING, helps.then(less, more))
    error = helps.then(better, error)
    damping = active.then(after, damping)
    count = count + 1.0
    return {
        "q": [helps.then(a, b) for a, b in zip(trial, q, strict=True)],
        "r": [helps.then(a, b) for a, b in zip(there, r, strict=True)],
        "error": [error],
        "damping": [damping],
        "count": [count],
        "active": [_goes_on(error, damping, count)],
    }


def _goes_on(error: Formula, damping: Formula, count: Formula) -> Formula:
    open_ = (error > PART_OF_TOLERANCE * CLOSED) & (error < NOT_FINITE)
    return open_ & (damping <= MAX_DAMPING) & (count < float(MAX_STEPS))


def least_norm_step(J: list[Vector], r: Vector, damping: Formula) -> Vector:
    """Solve J y = r by the shortest y, as `quick_step` does, to the bit.

    Without damping, the least there must be for redundant rows is taken out again by a correction.
    """
    zero, m = 0.0 * damping, len(r)
    if not m or not J[0]:
        return [zero] * (len(J[0]) if m else 0)
    gram = [
        [total([a * b for a, b in zip(J[i], J[k], strict=True)]) for k in range(i + 1)]
        for i in range(m)
    ]
    size = (total([gram[i][i] for i in range(m)]) / float(m)).most(LEAST_DAMPING)
    extra = damping.most(MIN_DAMPING) * size
    for i in range(m):
        gram[i][i] = gram[i][i] + extra
    lower, pivots = factor_symmetric(gram)
    columns = list(zip(*J, strict=True))

    def shortest(right: Vector) -> Vector:
        shares = solve_symmetric(lower, pivots, right)
        return [total([a * s for a, s in zip(column, shares, strict=True)]) for column in columns]

    y = shortest(r)
    undamped = damping.equals(0.0)
    left = [
        undamped.then(b - total([a * c for a, c in zip(row, y, strict=True)]), 0.0)
        for row, b in zip(J, r, strict=True)
    ]
    return [a + b for a, b in zip(y, shortest(left), strict=True)]


def factor_symmetric(gram: list[Vector]) -> tuple[list[Vector], Vector]:
    """Factor a symmetric matrix into L D L^T: L below its diagonal, and reciprocals of D."""
    lower: list[Vector] = []
    pivots: Vector = []
    for i, row in enumerate(gram):
        shares: Vector = []  # of row i, times D
        for j in range(i):
            shares.append(row[j] - total([shares[k] * lower[j][k] for k in range(j)], row[j]))
        own = [a * d for a, d in zip(shares, pivots, strict=True)]
        pivot = row[i] - total([a * b for a, b in zip(shares, own, strict=True)], row[i])
        lower.append(own)
        pivots.append(1.0 / pivot)
    return lower, pivots


def solve_symmetric(lower: list[Vector], pivots: Vector, right: Vector) -> Vector:
    """Solve a system that `factor_symmetric` has factored."""
    x: Vector = []
    for i, b in enumerate(right):
        x.append(b - total([lower[i][k] * x[k] for k in range(i)], b))
    x = [a * d for a, d in zip(x, pivots, strict=True)]
    for i in reversed(range(len(x))):
        x[i] = x[i] - total([lower[k][i] * x[k] for k in reversed(range(i + 1, len(x)))], x[i])
    return x


def _followed(
    tapes: ClosureTapes, free: Sequence[int], q: Vector, given: Mapping[str, Vector]
) -> Vector:
    """Move coupled coordinates of a guess to the values that their couplings give."""
    J = tapes.derivatives_at(tapes.coupled, free, q, **given)
    every = tapes.rows_at(q, **given)
    y = least_norm_step(J, [every[i] for i in tapes.coupled], 0.0 * q[0])
    q = list(q)
    for j, a in zip(free, y, strict=True):
        q[j] = q[j] - tapes.columns[j] * a
    return q


def _size(r: Vector, units: Sequence[float], zero: Formula) -> Formula:
    """Largest residual without what rounding leaves."""
    beyond = [abs(a) - ONE_ROUNDING / unit for a, unit in zip(r, units, strict=True)]
    # a largest number forgets NaN, a sum does not
    finite = total([abs(a) for a in r], zero) < NOT_FINITE
    return finite.then(largest(beyond, zero), NOT_FINITE)


def largest(values: Sequence[Formula], zero: Formula) -> Formula:
    """Return the largest of values, at least `zero`."""
    for value in values:
        zero = zero.most(value)
    return zero


def total(values: Sequence[Formula], like: Formula | None = None) -> Formula:
    """Sum of values; zero, like another value, if there are none."""
    if not values:
        assert like is not None
        return 0.0 * like
    return reduce(add, values)


def call_tape(tape: Tape, arguments: Mapping[str, Vector]) -> Vector:
    """Results of a tape for other values of its arguments."""
    builder = next(vector[0].builder for vector in arguments.values() if vector)
    numbers = [[x.number for x in arguments[port.name]] for port in tape.inputs]
    return [Formula(builder, number) for number in builder.replay(tape, numbers)]


def is_zero(tape: Tape) -> bool:
    """Return whether all results of a tape are zero, whatever its arguments are."""
    kinds, places = tape.kinds[tape.results], tape.operands[tape.results, 0]
    return bool((kinds == Kind.CONSTANT).all()) and not tape.constants[places].any()


def read_elements(tape: Tape, argument: str) -> set[int]:
    """Return the elements of an argument that any result of a tape depends on."""
    names = [port.name for port in tape.inputs]
    if argument not in names:
        return set()
    own = (tape.kinds == Kind.INPUT) & (tape.operands[:, 0] == names.index(argument))
    return set(tape.operands[own, 1].tolist())
