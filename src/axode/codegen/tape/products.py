"""Products with derivatives of tapes, of first and second order, as tapes with one result each.

One result, a vector, because a kernel on a GPU writes one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.adjoints import adjoint_tape, gradients
from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import changes_along, dependencies, forward_tape
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.tape import Port, Tape

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
