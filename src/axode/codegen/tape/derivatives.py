"""Derivatives of tapes: along a direction of the arguments, in reverse, and their products.

Every operation carries its derivative along, so that a tape from a file, of a formula or of a
traced function is differentiated exactly and without CasADi. One pass over the operations backwards
gives the derivatives of a weighted sum of the results by all arguments at once, at two to three
times the operations of the tape itself. Products are tapes with one result, a vector, because a
kernel on a GPU writes one array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Port, Tape

Rule = Callable[..., Formula]

# Derivative of a function of one variable, from its argument x and its value r. Where a slope is
# infinite (a root or a length at zero) it counts as zero: what is multiplied by it is zero too.
SLOPES: dict[Kind, Callable[[Formula, Formula], Formula | float]] = {
    Kind.NEG: lambda x, r: -1.0,
    Kind.SQRT: lambda x, r: r.equals(0.0).then(0.0, 0.5 / r),
    Kind.SIN: lambda x, r: x.apply(Kind.COS),
    Kind.COS: lambda x, r: -x.apply(Kind.SIN),
    Kind.TAN: lambda x, r: 1.0 + r * r,
    Kind.ASIN: lambda x, r: 1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
    Kind.ACOS: lambda x, r: -1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
    Kind.ATAN: lambda x, r: 1.0 / (1.0 + x * x),
    Kind.EXP: lambda x, r: r,
    Kind.EXPM1: lambda x, r: 1.0 + r,
    Kind.LOG: lambda x, r: 1.0 / x,
    Kind.LOG1P: lambda x, r: 1.0 / (1.0 + x),
    Kind.SINH: lambda x, r: x.apply(Kind.COSH),
    Kind.COSH: lambda x, r: x.apply(Kind.SINH),
    Kind.TANH: lambda x, r: 1.0 - r * r,
    Kind.ASINH: lambda x, r: 1.0 / (1.0 + x * x).sqrt(),
    Kind.ACOSH: lambda x, r: 1.0 / ((x - 1.0) * (x + 1.0)).sqrt(),
    Kind.ATANH: lambda x, r: 1.0 / ((1.0 - x) * (1.0 + x)),
    Kind.ERF: lambda x, r: (2.0 / math.sqrt(math.pi)) * (-(x * x)).apply(Kind.EXP),
    Kind.FABS: lambda x, r: x.apply(Kind.SIGN),
}

# Derivatives of functions of two variables by each of them, from the arguments and the value.
PARTIALS: dict[Kind, tuple[Rule, Rule]] = {
    Kind.MUL: (lambda x, y, r: y, lambda x, y, r: x),
    Kind.DIV: (lambda x, y, r: 1.0 / y, lambda x, y, r: -r / y),
    Kind.ATAN2: (lambda x, y, r: y / (x * x + y * y), lambda x, y, r: -x / (x * x + y * y)),
    Kind.HYPOT: (
        lambda x, y, r: r.equals(0.0).then(0.0, x / r),
        lambda x, y, r: r.equals(0.0).then(0.0, y / r),
    ),
    Kind.POW: (
        lambda x, y, r: y.equals(0.0).then(0.0, y * x ** (y - 1.0)),
        lambda x, y, r: x.equals(0.0).then(0.0, r * x.function("log")),
    ),
}

# Steps: between them the value does not change.
FLAT = frozenset(
    (
        Kind.FLOOR,
        Kind.CEIL,
        Kind.SIGN,
        Kind.LT,
        Kind.LE,
        Kind.EQ,
        Kind.NE,
        Kind.NOT,
        Kind.AND,
        Kind.OR,
    )
)


def forward_tape(
    tape: Tape, moving: Mapping[str, tuple[str, int]], sizes: Mapping[str, int]
) -> Tape:
    """Derivative of a tape along a direction.

    Args:
        tape: What is differentiated.
        moving: The arguments that change, each with the port of the new tape that holds its
            change and the place of its first element there; the others stay.
        sizes: Sizes of those ports.

    Returns:
        A tape of the same arguments and of these ports, with the changes of the results.
    """
    builder = TapeBuilder()
    first = len(tape.inputs)
    ports = {name: first + k for k, name in enumerate(sizes)}
    arguments = [
        [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, port in enumerate(tape.inputs)
    ]
    directions: list[list[Formula | None]] = []
    for port in tape.inputs:
        place = moving.get(port.name)
        directions.append(
            [
                None
                if place is None
                else Formula(builder, builder.input(ports[place[0]], place[1] + i))
                for i in range(port.size)
            ]
        )
    changes = changes_along(tape, arguments, directions)
    still = builder.constant(0.0)
    results = [still if change is None else change.number for change in changes]
    return Tape.build(
        f"{tape.name}_along",
        (*tape.inputs, *(Port(name, (size,)) for name, size in sizes.items())),
        tuple(Port(f"{port.name}_change", port.shape) for port in tape.outputs),
        builder,
        results,
    )


def changes_along(
    tape: Tape, arguments: Sequence[Vector], directions: Sequence[Sequence[Formula | None]]
) -> list[Formula | None]:
    """Changes of a tape's results along a direction, as formulas of another tape.

    Args:
        tape: What is differentiated.
        arguments: Values of its arguments there, one vector per port.
        directions: Change of each value; None where it stays.

    Returns:
        One per result; None where it is zero whatever the numbers are.
    """
    builder = next(x.builder for vector in arguments for x in vector)
    values: list[Formula] = []
    changes: list[Formula | None] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            values.append(arguments[row[0]][row[1]])
            changes.append(directions[row[0]][row[1]])
        elif kind == Kind.CONSTANT:
            constant = builder.constant(float(tape.constants[row[0]]))
            values.append(Formula(builder, constant))
            changes.append(None)
        else:
            used = row[: ARITY[Kind(kind)]]
            x = [values[i] for i in used]
            values.append(Formula(builder, builder.apply(Kind(kind), *(v.number for v in x))))
            changes.append(_change(Kind(kind), x, [changes[i] for i in used], values[-1]))
    return [changes[i] for i in tape.results.tolist()]


def reads(tape: Tape, argument: str) -> bool:
    """Return whether any result depends on an argument."""
    place = next((k for k, port in enumerate(tape.inputs) if port.name == argument), None)
    return place is not None and bool(
        ((tape.kinds == Kind.INPUT) & (tape.operands[:, 0] == place)).any()
    )


def dependencies(tape: Tape) -> list[set[tuple[str, int]]]:
    """Arguments and elements on which each result of a tape depends."""
    elements = {
        (port.name, i): 1 << k
        for k, (port, i) in enumerate((p, i) for p in tape.inputs for i in range(p.size))
    }
    masks: list[int] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        mask = 0
        if kind == Kind.INPUT:
            mask = elements[tape.inputs[row[0]].name, row[1]]
        elif kind not in LEAVES:
            for i in row[: ARITY[Kind(kind)]]:
                mask |= masks[i]
        masks.append(mask)
    return [
        {element for element, bit in elements.items() if masks[i] & bit}
        for i in tape.results.tolist()
    ]


def _change(kind: Kind, x: list[Formula], dx: list[Formula | None], r: Formula) -> Formula | None:
    """Change of an operation's value; None where it is zero whatever the numbers are."""
    if kind in FLAT or all(change is None for change in dx):
        return None
    if kind in SLOPES:
        assert dx[0] is not None
        return dx[0] * SLOPES[kind](x[0], r)
    if kind in PARTIALS:
        terms = [
            change * partial(*x, r)
            for partial, change in zip(PARTIALS[kind], dx, strict=True)
            if change is not None
        ]
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
    zero = 0.0 * r
    full = [zero if change is None else change for change in dx]
    match kind:
        case Kind.ADD:
            return full[0] + full[1]
        case Kind.SUB:
            return full[0] - full[1]
        case Kind.SELECT:
            return x[0].then(full[1], full[2])
        case Kind.FMIN:
            return (x[0] <= x[1]).then(full[0], full[1])
        case Kind.FMAX:
            return (x[0] >= x[1]).then(full[0], full[1])
        case Kind.COPYSIGN:
            return full[0] * x[0].apply(Kind.SIGN) * r.apply(Kind.SIGN)
        case Kind.FMOD | Kind.REMAINDER:  # a whole number of y less than x
            return full[0] - full[1] * ((x[0] - r) / x[1])
    raise NotImplementedError(f"no derivative of {kind.label}")


Gradient = list[Formula | None]
Choice = tuple[Formula, bool]  # a condition, and which value of it counts

_KINDS = {int(kind): kind for kind in Kind}  # much faster than Kind(number)


class _Share(NamedTuple):
    """Part of a gradient that counts only where some choices are taken.

    What is not chosen may be infinite, and zero times infinity does not vanish: a share is
    therefore multiplied as if it counted, and left out where it meets other shares.
    """

    weight: Formula
    under: tuple[Choice, ...] = ()

    def masked(self, depth: int) -> Formula:
        """Weight with zero where any choice but the first few is not taken."""
        weight = self.weight
        for condition, taken in reversed(self.under[depth:]):
            weight = condition.then(weight, 0.0) if taken else condition.then(0.0, weight)
        return weight

    def joined(self, other: _Share) -> _Share:
        """Sum of both, under the choices that they have in common."""
        depth = 0
        for mine, theirs in zip(self.under, other.under, strict=False):
            if (mine[0].number, mine[1]) != (theirs[0].number, theirs[1]):
                break
            depth += 1
        return _Share(self.masked(depth) + other.masked(depth), self.under[:depth])


def adjoint_tape(tape: Tape, of: Sequence[str], *, values: bool = False) -> Tape:
    """Vector-Jacobian product of a tape.

    Args:
        tape: What is differentiated.
        of: The arguments by which it is differentiated.
        values: Whether the results of the tape itself come first.

    Returns:
        A tape of the same arguments and of the weights `<output>_weight` of the results, with the
        gradient `<argument>_gradient` of the weighted sum for every argument in `of`.
    """
    builder = TapeBuilder()
    first = len(tape.inputs)
    arguments, weights = (
        [
            [Formula(builder, builder.input(k, i)) for i in range(port.size)]
            for k, port in enumerate(ports, begin)
        ]
        for ports, begin in ((tape.inputs, 0), (tape.outputs, first))
    )
    results, found = gradients(tape, arguments, [w for port in weights for w in port], of)
    zero = builder.constant(0.0)
    numbers = [x.number for x in results] if values else []
    numbers += [zero if x is None else x.number for name in of for x in found[name]]
    ports = {port.name: port for port in tape.inputs}
    return Tape.build(
        f"{tape.name}_adjoint",
        (*tape.inputs, *(Port(f"{port.name}_weight", port.shape) for port in tape.outputs)),
        (
            *(tape.outputs if values else ()),
            *(Port(f"{name}_gradient", ports[name].shape) for name in of),
        ),
        builder,
        numbers,
    )


def gradients(
    tape: Tape, arguments: Sequence[Vector], weights: Sequence[Formula | None], of: Collection[str]
) -> tuple[Vector, dict[str, Gradient]]:
    """Results of a tape and gradients of their weighted sum, as formulas of another tape.

    Args:
        tape: What is differentiated.
        arguments: Values of its arguments, one vector per port.
        weights: One per result; None where it does not count.
        of: The arguments by which it is differentiated.

    Returns:
        The results; the gradient by each of these arguments, None where it is zero whatever the
        numbers are.
    """
    wanted = {k for k, port in enumerate(tape.inputs) if port.name in of}
    found: dict[str, Gradient] = {
        tape.inputs[k].name: [None] * tape.inputs[k].size for k in sorted(wanted)
    }
    if not len(tape.results):
        return [], found
    kinds, rows = tape.kinds.tolist(), tape.operands.tolist()
    values, moves = _replay(tape, arguments, wanted, weights)
    felt: list[_Share | None] = [None] * len(values)

    def add(number: int, share: _Share | None) -> None:
        known = felt[number]
        felt[number] = known.joined(share) if known and share else share or known

    for number, weight in zip(tape.results.tolist(), weights, strict=True):
        if weight is not None and moves[number]:
            add(number, _Share(weight))
    for number in reversed(range(len(values))):
        share, kind, row = felt[number], _KINDS[kinds[number]], rows[number]
        if share is None:
            continue
        if kind == Kind.INPUT:
            found[tape.inputs[row[0]].name][row[1]] = share.masked(0)
            continue
        used = row[: ARITY[kind]]
        x, needed = list(map(values.__getitem__, used)), list(map(moves.__getitem__, used))
        for i, part in zip(used, _parts(kind, x, values[number], share, needed), strict=True):
            add(i, part)
        felt[number] = None
    return [values[i] for i in tape.results.tolist()], found


def _replay(
    tape: Tape,
    arguments: Sequence[Vector],
    wanted: Collection[int],
    weights: Sequence[Formula | None],
) -> tuple[Vector, list[bool]]:
    """Values of all instructions on another tape, and whether wanted arguments move them."""
    known = (x for vector in (*arguments, weights) for x in vector if x is not None)
    builder = next(x.builder for x in known)
    values: Vector = []
    moves: list[bool] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = _KINDS[code]
        if kind == Kind.INPUT:
            values.append(arguments[row[0]][row[1]])
            moves.append(row[0] in wanted)
        elif kind == Kind.CONSTANT:
            values.append(Formula(builder, builder.constant(float(tape.constants[row[0]]))))
            moves.append(False)
        else:
            used = row[: ARITY[kind]]
            number = builder.apply(kind, *[values[i].number for i in used])
            values.append(Formula(builder, number))
            moves.append(kind not in FLAT and any(map(moves.__getitem__, used)))
    return values, moves


def _parts(
    kind: Kind, x: list[Formula], r: Formula, share: _Share, needed: list[bool]
) -> list[_Share | None]:
    """What each operand of an operation adds to its gradient; None where nothing is needed.

    Args:
        kind: The operation.
        x: Its operands.
        r: Its value.
        share: Gradient by its value.
        needed: Which operands move.
    """
    made: Sequence[_Share | None]
    if kind in (Kind.SELECT, Kind.FMIN, Kind.FMAX):
        made = _choices(kind, x, share)
    else:
        parts = _products(kind, x, r, share.weight, needed)
        made = [None if part is None else _Share(part, share.under) for part in parts]
    return [part if moves else None for part, moves in zip(made, needed, strict=True)]


def _choices(kind: Kind, x: list[Formula], share: _Share) -> list[_Share | None]:
    """Operations that choose one of two operands; the same one as forward derivatives."""
    match kind:
        case Kind.FMIN:
            condition = x[0] <= x[1]
        case Kind.FMAX:
            condition = x[0] >= x[1]
        case _:
            condition = x[0]
    chosen = [_Share(share.weight, (*share.under, (condition, taken))) for taken in (True, False)]
    return [None, *chosen] if kind == Kind.SELECT else [*chosen]


def _products(
    kind: Kind, x: list[Formula], r: Formula, weight: Formula, needed: list[bool]
) -> Gradient:
    """A weight times the partial derivatives of an operation."""
    if kind in SLOPES:
        return [weight * SLOPES[kind](x[0], r)]
    if kind == Kind.DIV:
        return _quotient_parts(x, r, weight, needed)
    if kind in PARTIALS:
        return [
            weight * partial(*x, r) if moves else None
            for partial, moves in zip(PARTIALS[kind], needed, strict=True)
        ]
    match kind:
        case Kind.ADD:
            return [weight, weight]
        case Kind.SUB:
            return [weight, -weight]
        case Kind.COPYSIGN:
            return [weight * x[0].apply(Kind.SIGN) * r.apply(Kind.SIGN), None]
        case Kind.FMOD | Kind.REMAINDER:  # a whole number of y less than x
            return [weight, -(weight * ((x[0] - r) / x[1]))]
    raise NotImplementedError(f"no derivative of {kind.label}")


def _quotient_parts(x: list[Formula], r: Formula, weight: Formula, needed: list[bool]) -> Gradient:
    """Share one division between both operands; the square of a reciprocal needs none."""
    if not needed[0] and r.builder.value(x[0].number) == 1.0:
        return [None, -(weight * (r * r))]
    share = weight * (1.0 / x[1])  # which others that divide by it share
    return [share, -(share * r) if needed[1] else None]


TANGENTS = "tangents"


def jvp_tape(tape: Tape, along: Sequence[str]) -> Tape:
    """Change of a tape's results along changes of some arguments, `<argument>_direction`."""
    return _at_rest(_forward(tape, along))


def second_change_tape(tape: Tape, along: Sequence[str], again: Sequence[str]) -> Tape:
    """Change of what `jvp_tape` gives along changes of arguments, `<argument>_direction_2`."""
    return _forward(_forward(tape, along), again, "_2")


def jacobian_tape(tape: Tape, by: str) -> Tape:
    """Derivatives of a tape's one result by an argument, along one more axis, the last.

    Column by column, or row by row in reverse where these are fewer.
    """
    place, argument = next((k, port) for k, port in enumerate(tape.inputs) if port.name == by)
    builder, (port,) = TapeBuilder(), tape.outputs
    arguments = [
        [Formula(builder, builder.input(k, i)) for i in range(p.size)]
        for k, p in enumerate(tape.inputs)
    ]

    def unit(size: int, i: int) -> list[Formula | None]:
        one = Formula(builder, builder.constant(1.0))
        return [one if k == i else None for k in range(size)]

    rows: list[list[Formula | None]] = [[None] * argument.size for _ in range(port.size)]
    moving = {i for found in dependencies(tape) for name, i in found if name == by}
    if port.size < len(moving):
        for i in range(port.size):
            rows[i] = gradients(tape, arguments, unit(port.size, i), [by])[1][by]
    else:
        directions: list[list[Formula | None]] = [[None] * p.size for p in tape.inputs]
        for j in moving:
            directions[place] = unit(argument.size, j)
            for row, change in zip(rows, changes_along(tape, arguments, directions), strict=True):
                row[j] = change
    zero = builder.constant(0.0)
    name = f"{tape.name}_by_{by}"
    return Tape.build(
        name,
        tape.inputs,
        (Port(name, (*port.shape, argument.size)),),
        builder,
        [zero if x is None else x.number for row in rows for x in row],
    )


def vjp_tape(tape: Tape, of: Sequence[str]) -> Tape:
    """Gradients of the weighted results by some arguments, one after the other.

    The weights are one vector, the last argument.
    """
    return _at_rest(_one_result(adjoint_tape(tape, of)))


def second_order_tape(tape: Tape, of: Sequence[str], along: Sequence[str], *, jvp: bool) -> Tape:
    """Change of what `vjp_tape` gives along changes of some arguments.

    Args:
        tape: What is differentiated.
        of: Arguments of the gradient.
        along: Arguments that change, by `<argument>_direction`, the last ports.
        jvp: Whether the change of the results themselves comes first.
    """
    adjoint = adjoint_tape(tape, of, values=jvp)
    return _at_rest(_one_result(_forward(adjoint, along)))


def with_tangents(tape: Tape, tangent_map: Tape) -> Tape:
    r"""A function at displaced coordinates, with the displacement as another argument.

    .. math:: q' = q + T(q)\, \xi + \tfrac12 (\partial_{T \xi} T)\, \xi

    is the curve with q_dot = T(q) xi up to the second order, so that second derivatives by xi
    at zero are symmetric and belong to motions that exist.
    """
    builder = TapeBuilder()
    own = [
        [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, port in enumerate(tape.inputs)
    ]
    place = next(k for k, port in enumerate(tape.inputs) if port.name == "q")
    size = tangent_map.outputs[0].shape[1]
    xi = [Formula(builder, builder.input(len(own), i)) for i in range(size)]
    known = dict(zip([port.name for port in tape.inputs], own, strict=True))
    given = [known[port.name] for port in tangent_map.inputs]
    numbers = builder.replay(tangent_map, [[x.number for x in vector] for vector in given])
    first = _times(builder, [Formula(builder, number) for number in numbers], xi)
    still: list[Formula | None] = [None]
    directions = [first if port.name == "q" else still * port.size for port in tangent_map.inputs]
    zero = Formula(builder, builder.constant(0.0))
    changes = changes_along(tangent_map, given, directions)
    second = _times(builder, [zero if c is None else c for c in changes], xi)
    terms = zip(own[place], first, second, strict=True)
    own[place] = [q + (a + 0.5 * b) for q, a, b in terms]
    results = builder.replay(tape, [[x.number for x in vector] for vector in own])
    inputs = (*tape.inputs, Port(TANGENTS, (size,)))
    return Tape.build(tape.name, inputs, tape.outputs, builder, results)


def _times(builder: TapeBuilder, matrix: Vector, xi: Vector) -> Vector:
    rows = [matrix[k : k + len(xi)] for k in range(0, len(matrix), len(xi))] if xi else []
    zero = Formula(builder, builder.constant(0.0))
    return [sum((a * x for a, x in zip(row, xi, strict=True)), zero) for row in rows]


def _forward(tape: Tape, along: Sequence[str], ending: str = "") -> Tape:
    sizes = {port.name: port.size for port in tape.inputs}
    ports = {argument: f"{argument}_direction{ending}" for argument in along}
    return forward_tape(
        tape,
        {argument: (port, 0) for argument, port in ports.items()},
        {port: sizes[argument] for argument, port in ports.items()},
    )


def _one_result(tape: Tape) -> Tape:
    """Join all results, and make every argument a vector."""
    inputs = tuple(Port(port.name, (port.size,)) for port in tape.inputs)
    size = sum(port.size for port in tape.outputs)
    return replace(tape, inputs=inputs, outputs=(Port(tape.name, (size,)),))


def _at_rest(tape: Tape) -> Tape:
    """Put zero for displacements along tangents; only directions of them are left."""
    places = [k for k, port in enumerate(tape.inputs) if port.name != TANGENTS]
    if len(places) == len(tape.inputs):
        return tape
    builder = TapeBuilder()
    zero = builder.constant(0.0)
    order = {k: new for new, k in enumerate(places)}
    arguments = [
        [builder.input(order[k], i) if k in order else zero for i in range(port.size)]
        for k, port in enumerate(tape.inputs)
    ]
    results = builder.replay(tape, arguments)
    return Tape.build(
        tape.name, tuple(tape.inputs[k] for k in places), tape.outputs, builder, results
    )


# which entries of a Hessian there are ------------------------------------------------------------


@dataclass(frozen=True)
class HessianPlan:
    """How few directions give a symmetric matrix, and where its entries are found.

    Attributes:
        seeds: Directions, (directions, size).
        entries: Rows and columns of the entries that are not always zero.
        sources: Direction and place of each of them in the products with the seeds, twice: an
            entry that two products hold is their mean.
    """

    seeds: npt.NDArray[np.float64]
    entries: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
    sources: tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], ...]


def plan_hessian(tape: Tape, of: Sequence[str]) -> HessianPlan:
    """Choose directions from what each entry of the gradient depends on.

    Columns that are known from the rows of others are left out, and columns without a common row
    share a direction.

    Args:
        tape: Function whose weighted results are differentiated twice.
        of: Arguments by which they are.
    """
    pattern = _dependence(adjoint_tape(tape, of), of)
    pattern &= pattern.T
    columns = _columns(pattern)
    colours = _colours(pattern, columns)
    size = len(pattern)
    seeds = np.zeros((1 + max(colours.values(), default=-1), size))
    colour = np.full(size, -1)
    for column, number in colours.items():
        seeds[number, column] = 1.0
        colour[column] = number
    i, j = np.nonzero(pattern)
    by_column, by_row = (colour[j], i), (colour[i], j)
    first = tuple(np.where(colour[j] >= 0, a, b) for a, b in zip(by_column, by_row, strict=True))
    second = tuple(np.where(colour[i] >= 0, b, a) for a, b in zip(by_column, by_row, strict=True))
    return HessianPlan(seeds, (i, j), ((first[0], first[1]), (second[0], second[1])))


def _dependence(gradient: Tape, of: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which results of a tape depend on which elements of some arguments."""
    sizes = {port.name: port.size for port in gradient.inputs}
    elements = [(name, i) for name in of for i in range(sizes[name])]
    rows = [[element in found for element in elements] for found in dependencies(gradient)]
    return np.array(rows, dtype=bool).reshape(len(rows), len(elements))


def _columns(pattern: npt.NDArray[np.bool_]) -> list[int]:
    """Columns that, as rows and columns, hold every entry."""
    left_out = np.zeros(len(pattern), dtype=bool)
    for k in np.argsort(pattern.sum(axis=0), kind="stable"):
        if not pattern[k, k] and not (pattern[k] & left_out).any():
            left_out[k] = True
    return np.flatnonzero(~left_out & pattern.any(axis=0)).tolist()


def _colours(pattern: npt.NDArray[np.bool_], columns: Sequence[int]) -> dict[int, int]:
    """Number for every column; columns of one number have no row in common."""
    rows: list[npt.NDArray[np.bool_]] = []
    found: dict[int, int] = {}
    for column in columns:
        free = (k for k, taken in enumerate(rows) if not (taken & pattern[:, column]).any())
        number = next(free, len(rows))
        if number == len(rows):
            rows.append(np.zeros(len(pattern), dtype=bool))
        rows[number] |= pattern[:, column]
        found[column] = number
    return found
